//! Compiling: images, names, options, headers, and what is said of programs that do not compile.

use libtest_mimic::Trial;
use selvedge::Error;
use selvedge::nvrtc::{self, Cache, Compiled, Program, Target};

use crate::test;

pub fn tests() -> Vec<Trial> {
    vec![
        test("compile::a_cubin_and_ptx", || Ok(cubin_and_ptx()?)),
        test("compile::names_of_templates", || Ok(names_of_templates()?)),
        test("compile::headers_and_macros", || Ok(headers_and_macros()?)),
        test("compile::errors_show_the_line_and_a_caret", || Ok(errors_show_the_line()?)),
        test("compile::errors_in_headers_show_theirs", || Ok(errors_in_headers()?)),
        test("compile::warnings_are_returned", || Ok(warnings_are_returned()?)),
        test("compile::refusals", || Ok(refusals()?)),
        test("compile::targets_of_devices", || Ok(targets_of_devices()?)),
        test("compile::from_eight_threads", || Ok(from_eight_threads()?)),
    ]
}

pub fn sm_80() -> Target {
    "sm_80".parse().expect("a target")
}

fn compiled(program: &Program) -> selvedge::Result<Compiled> {
    program.compile(sm_80(), &Cache::none())
}

fn failed(program: &Program) -> String {
    compiled(program).expect_err("it does not compile").to_string()
}

fn cubin_and_ptx() -> selvedge::Result<()> {
    let program =
        Program::new("saxpy.cu", "extern \"C\" __global__ void saxpy(float *x) { x[threadIdx.x] = 2; }");
    let cubin = compiled(&program)?;
    assert!(cubin.image().starts_with(b"\x7fELF"));
    assert!(cubin.image().windows(5).any(|window| window == b"saxpy"));
    assert_eq!(cubin.target(), sm_80());
    assert_eq!((cubin.log(), cubin.is_from_cache()), ("", false));
    assert!(cubin.lowered_names().is_empty());

    let (major, minor) = nvrtc::isa()?;
    let ptx = program.compile("compute_80".parse()?, &Cache::none())?;
    let text = std::str::from_utf8(ptx.image()).expect("PTX is text");
    assert!(text.contains(&format!(".version {major}.{minor}\n.target sm_80\n")), "{text}");
    assert!(text.contains(".entry saxpy") && !text.contains('\0'), "{text}");
    let known = nvrtc::architectures()?;
    assert!(known.is_sorted() && known.contains(&90), "{known:?}");
    let wanted = match nvrtc::version()? {
        (11, 8) => (7, 8),
        (12, 0) => (8, 0),
        (12, 9) => (8, 8),
        (13, 0) => (9, 0),
        other => panic!("which ISA does NVRTC {other:?} write? It says {:?}", (major, minor)),
    };
    assert_eq!((major, minor), wanted);
    Ok(())
}

fn names_of_templates() -> selvedge::Result<()> {
    let source = "template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }\n\
                  namespace ours { __global__ void fill(int *x) { *x = 1; } }\n";
    let program = Program::new("scale.cu", source);
    let program = program.expression("scale<float>").expression("ours::fill").expression("scale< double >");
    let compiled = compiled(&program.expression("scale<float>"))?;
    assert_eq!(compiled.lowered_name("scale<float>"), Some("_Z5scaleIfEvPT_S0_"));
    assert_eq!(compiled.lowered_name("ours::fill"), Some("_ZN4ours4fillEPi"));
    assert_eq!(compiled.lowered_name("scale< double >"), Some("_Z5scaleIdEvPT_S0_"));
    assert_eq!(compiled.lowered_name("scale<int>"), None);
    assert_eq!(compiled.lowered_names().len(), 3);
    let image = compiled.image();
    for (_, lowered) in compiled.lowered_names() {
        assert!(image.windows(lowered.len()).any(|window| window == lowered.as_bytes()), "{lowered}");
    }
    Ok(())
}

fn headers_and_macros() -> selvedge::Result<()> {
    let source = "#include \"ours/twice.cuh\"\n#include <thrice.cuh>\n#include <cstdint>\n#include <stdint.h>\n\
                  static_assert(WIDTH == 16, \"\");\nstatic_assert(sizeof(std::int64_t) == 8, \"\");\n\
                  extern \"C\" __global__ void f(uint32_t *x) { *x = thrice(twice(*x)); }";
    let program = Program::new("f.cu", source)
        .header("ours/twice.cuh", "wrong")
        .header("ours/twice.cuh", "__device__ unsigned twice(unsigned x) { return 2 * x; }")
        .header("thrice.cuh", "__device__ unsigned thrice(unsigned x) { return 3 * x; }")
        .define("WIDTH", 16);
    compiled(&program)?;
    // C++17, unless another is asked for.
    let dialect = Program::new(
        "f.cu",
        "extern \"C\" __global__ void f() { static_assert(__cplusplus == 201703L, \"wrong\"); }",
    );
    compiled(&dialect)?;
    let wrong = failed(&dialect.option("--std=c++14"));
    assert!(wrong.contains("wrong"), "{wrong}");
    // One of the crate's own names can be replaced.
    let replaced = program.header("stdint.h", "#error \"it was replaced\"");
    assert!(failed(&replaced).contains("it was replaced"));
    Ok(())
}

fn errors_show_the_line() -> selvedge::Result<()> {
    let source =
        "extern \"C\" __global__ void f(float *x) {\n    int unused;\n    x[0] = y + 1;\n    z = 2;\n}\n";
    let Err(Error::Compilation { name, log, details }) = compiled(&Program::new("f.cu", source)) else {
        panic!("it compiled, or another error");
    };
    assert_eq!(name, "f.cu");
    assert_eq!((details.file.as_str(), details.line, details.column), ("f.cu", 3, 12), "{log}");
    let (major, minor) = nvrtc::version()?;
    assert_eq!((details.target, details.version), ("sm_80".to_owned(), format!("{major}.{minor}")));
    let head = "f.cu(3): error: identifier \"y\" is undefined\n      x[0] = y + 1;\n             ^\n";
    assert!(log.starts_with(head), "{log}");
    assert!(log.contains("f.cu(4): error: identifier \"z\" is undefined\n      z = 2;\n      ^\n"), "{log}");
    assert!(log.contains("2 errors detected"), "{log}");
    let text = failed(&Program::new("f.cu", source));
    let first = format!("f.cu does not compile for sm_80 (NVRTC {major}.{minor}), f.cu line 3 column 12:\n");
    assert!(text.starts_with(&first) && text.contains(head), "{text}");
    Ok(())
}

fn errors_in_headers() -> selvedge::Result<()> {
    let program =
        Program::new("f.cu", "#include \"deep/inner.cuh\"\nextern \"C\" __global__ void f() { g(); }\n");
    let program = program.header("deep/inner.cuh", "\n__device__ void g() {\n\twrong();\n}\n");
    let Err(Error::Compilation { log, details, .. }) = compiled(&program) else {
        panic!("it compiled, or another error");
    };
    assert_eq!((details.file.as_str(), details.line, details.column), ("deep/inner.cuh", 3, 2), "{log}");
    assert!(
        log.contains("deep/inner.cuh(3): error: identifier \"wrong\" is undefined\n  \twrong();\n  \t^"),
        "{log}"
    );
    Ok(())
}

fn warnings_are_returned() -> selvedge::Result<()> {
    let source = "extern \"C\" __global__ void f() {\n    int unused;\n}\n";
    let log = compiled(&Program::new("f.cu", source))?.log().to_owned();
    assert!(log.contains("f.cu(2): warning") && log.contains("\n      int unused;\n          ^"), "{log}");
    Ok(())
}

fn refusals() -> selvedge::Result<()> {
    let good = || Program::new("f.cu", "extern \"C\" __global__ void f() {}");
    for option in ["--gpu-architecture=sm_90", "-arch=sm_90", "-arch sm_90", "-arch"] {
        let text = failed(&good().option(option));
        assert!(text.contains(option) && text.contains("the architecture as the target"), "{text}");
    }
    assert!(failed(&good().option("--no-such-option")).contains("no-such-option"));
    assert!(failed(&good().expression("nowhere<int>")).contains("nowhere"));
    for (what, program) in [
        ("a source", Program::new("f.cu", "\0")),
        ("a name", Program::new("\0", "")),
        ("a header", good().header("a.h", "\0")),
        ("a header's name", good().header("\0", "")),
        ("an option", good().option("\0")),
        ("a name expression", good().expression("\0")),
    ] {
        let text = failed(&program);
        assert!(text.contains(&format!("{what} with a zero at byte 0")), "{text}");
    }
    let target: Target = "sm_20".parse()?;
    let text = good().compile(target, &Cache::none()).unwrap_err().to_string();
    assert!(text.contains("target sm_20") && text.contains("75, 80"), "{text}");
    // Inline PTX that the assembler refuses.
    let text = failed(&Program::new("f.cu", "extern \"C\" __global__ void f() { asm(\"bogus;\"); }"));
    assert!(text.contains("bogus"), "{text}");
    let text = failed(&Program::new("f.cu", "#include \"nowhere.h\"\n"));
    assert!(text.contains("nowhere.h") && text.contains("line 1"), "{text}");
    Ok(())
}

fn targets_of_devices() -> selvedge::Result<()> {
    let version = nvrtc::version()?;
    let own = if version >= (12, 0) { "sm_90a" } else { "sm_90" };
    assert_eq!(Target::for_device((9, 0), (1, 0))?.to_string(), own);
    assert_eq!(Target::for_device((8, 6), (1, 0))?.to_string(), "sm_86");
    assert_eq!(Target::ptx_for_device((8, 6), (99, 0))?.to_string(), "compute_86");
    let newest = nvrtc::architectures()?.into_iter().max().unwrap_or_default();
    assert_eq!(Target::for_device((90, 0), (99, 0))?.to_string(), format!("compute_{newest}"));
    let error = Target::for_device((90, 0), (6, 0)).unwrap_err().to_string();
    assert!(error.contains("writes PTX") && error.contains("up to 6.0"), "{error}");
    let program = Program::new("f.cu", "extern \"C\" __global__ void f() {}");
    program.compile(Target::for_device((9, 0), (1, 0))?, &Cache::none())?;
    Ok(())
}

fn from_eight_threads() -> selvedge::Result<()> {
    let compile = |thread: u32| {
        (0..4).try_for_each(|round| {
            let name = format!("kernel_{thread}_{round}");
            let good = Program::new(
                "f.cu",
                format!("extern \"C\" __global__ void {name}(float *x) {{ *x = sinf(*x); }}"),
            );
            let image = compiled(&good)?;
            assert!(image.image().windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
            let bad = Program::new("f.cu", format!("missing_{name} x;\n"));
            assert!(failed(&bad).contains(&format!("missing_{name}")));
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || compile(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}
