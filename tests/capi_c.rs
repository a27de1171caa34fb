//! The C ABI from C and C++: programs in `tests/capi`, `csrc/examples` and `examples/languages`, built by the host's compiler with
//! the address and undefined-behaviour sanitizers, and linked with the shared library of a debug build. They run on the fake
//! driver, and the examples also without a driver. They need Linux, a C compiler and cargo.
#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

#[path = "common/mod.rs"]
mod common;
#[path = "capi/hostile.rs"]
mod hostile;
// Its `main` is another program's.
#[allow(dead_code)]
#[path = "../examples/languages/train.rs"]
mod languages;
#[path = "cases/model_folders.rs"]
mod model_folders;
#[path = "fake/variant.rs"]
mod variant;

use variant::Variant;

const SANITIZERS: [&str; 4] = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
/// The sanitizer of the programs and the library with `SELVEDGE_TEST_SANITIZER=thread`.
const THREAD_SANITIZER: [&str; 3] = ["-g", "-O1", "-fsanitize=thread"];
const NEEDS: &str = "the source tree, cargo and a C compiler";
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
/// Warnings that a program may turn on beside those of `WARNINGS`, and that the headers must not give either.
const HEADER_WARNINGS: [&str; 3] = ["-Wshadow", "-Wconversion", "-Wsign-conversion"];

fn header() -> String {
    fs::read_to_string(common::repository().join("include/selvedge.h")).expect("the header is there")
}

/// A folder for programs and copies of the library.
fn folder() -> PathBuf {
    variant::scratch("capi").expect("the scratch folder is writable")
}

/// Returns the folder of the shared library, which is built once.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = folder().join("lib");
        let mut command = Command::new("sh");
        command.current_dir(common::repository());
        command.arg("scripts/build_library.sh").arg(&folder).args(["dev", "shared"]);
        // The folder of a target is where this executable is: <target>/<profile>/deps, or <target>/<triple>/<profile>/deps.
        let depth = if std::env::var_os("CARGO_BUILD_TARGET").is_some() { 4 } else { 3 };
        let target =
            std::env::current_exe().ok().and_then(|path| path.ancestors().nth(depth).map(Path::to_owned));
        command.env("CARGO_TARGET_DIR", target.expect("cargo's folder of test executables"));
        succeeds("scripts/build_library.sh", &command.output().expect("sh runs"));
        folder
    })
}

#[track_caller]
fn succeeds(what: &str, output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{out}{errors}", output.status);
}

/// Compiles a C or C++ program against the headers and the shared library.
fn compile(name: &str, source: &Path, more: &[&str]) -> PathBuf {
    let sanitizers: &[&str] = if has_thread_sanitizer() { &[] } else { &SANITIZERS };
    compile_with(name, source, &[sanitizers, more].concat())
}

/// Returns whether this executable and the library have ThreadSanitizer, as .ci/run says.
fn has_thread_sanitizer() -> bool {
    std::env::var_os("SELVEDGE_TEST_SANITIZER").is_some_and(|value| value == "thread")
}

/// As `compile`, without the sanitizers of `SANITIZERS`.
fn compile_with(name: &str, source: &Path, more: &[&str]) -> PathBuf {
    let program = folder().join(name);
    let compiler = || {
        let mut command = variant::compiler();
        command.args(WARNINGS).args(more);
        command.arg("-I").arg(common::repository().join("include"));
        command.arg("-I").arg(common::repository().join("tests/capi"));
        command
    };
    let run = |command: &mut Command| variant::compile(command).unwrap_or_else(|error| panic!("{error}"));
    let mut command = compiler();
    if has_thread_sanitizer() {
        let object = program.with_extension("o");
        run(compiler().args(THREAD_SANITIZER).arg("-c").arg(source).arg("-o").arg(&object));
        command.arg(object).arg("-Wl,--whole-archive").arg(thread_sanitizer_runtime());
        command.args(["-Wl,--no-whole-archive", "-rdynamic"]);
    } else {
        command.arg(source);
    }
    command.arg("-o").arg(&program);
    command.arg("-L").arg(library()).args(["-lselvedge", "-ldl", "-lpthread", "-lm"]);
    if source.extension().is_some_and(|extension| extension == "cpp") {
        command.arg("-lstdc++");
    }
    command.arg(format!("-Wl,-rpath,{}", library().display()));
    run(&mut command);
    program
}

/// Returns ThreadSanitizer's runtime of the library's compiler. That of the host's compiler may be older, and lacks functions
/// that the library calls.
fn thread_sanitizer_runtime() -> PathBuf {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output().expect("rustc runs");
    succeeds("rustc --print target-libdir", &output);
    let folder = String::from_utf8(output.stdout).unwrap();
    Path::new(folder.trim_end()).join("librustc-nightly_rt.tsan.a")
}

/// Runs a program on the fake driver, without any other library of CUDA.
fn on_fake<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Output {
    let driver = variant::build(&Variant::new(12040)).expect("the fake driver builds");
    let mut command = Command::new(program);
    common::hide_libraries(&mut command).env("SELVEDGE_LIBCUDA", driver).args(arguments);
    command.output().expect("the program runs")
}

#[track_caller]
fn runs_in_silence<S: AsRef<OsStr>>(what: &str, program: &Path, arguments: &[S]) {
    let output = on_fake(program, arguments);
    succeeds(what, &output);
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{what} prints {output:?}");
}

fn is_there(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_headers_are_clean_c89_c99_cpp17_and_cpp20() {
    if common::is_left_out("the_headers_are_clean_c89_c99_cpp17_and_cpp20", NEEDS) {
        return;
    }
    let sources = ["selvedge.h", "selvedge.hpp"].map(|header| {
        let file = folder().join(format!("includes_{header}"));
        fs::write(&file, format!("#include \"{header}\"\n#include \"{header}\"\n")).unwrap();
        file
    });
    let mut checked = 0;
    for (compilers, file, options) in [
        (["gcc", "clang"], &sources[0], &["-std=c89", "-xc"][..]),
        (["gcc", "clang"], &sources[0], &["-std=c99", "-xc"]),
        (["g++", "clang++"], &sources[0], &["-std=c++17", "-xc++"]),
        (["g++", "clang++"], &sources[1], &["-std=c++17", "-fno-exceptions", "-xc++"]),
        (["g++", "clang++"], &sources[1], &["-std=c++20", "-xc++"]),
    ] {
        for compiler in compilers.into_iter().filter(|compiler| is_there(compiler)) {
            let mut command = Command::new(compiler);
            command.args(WARNINGS).args(HEADER_WARNINGS).args(options).arg("-fsyntax-only").arg("-I");
            command.arg(common::repository().join("include")).arg(file);
            succeeds(&format!("{compiler} {options:?}"), &command.output().unwrap());
            checked += 1;
        }
    }
    assert!(checked >= 2, "no C compiler");
}

#[test]
fn the_page_of_cpp_shows_code_that_compiles() {
    if common::is_left_out("the_page_of_cpp_shows_code_that_compiles", NEEDS) {
        return;
    }
    let page = fs::read_to_string(common::repository().join("docs/cpp.md")).expect("the page is there");
    let blocks = common::blocks(&page, "cpp");
    assert!(blocks.len() >= 6, "{blocks:?}");
    // Each block sees the names of those before it, and may give them another meaning.
    let (opened, closed) = (blocks.join("\n{\n"), "}".repeat(blocks.len() - 1));
    let program = format!(
        "#include <iostream>\n#include <selvedge.hpp>\nusing selvedge::Device;\nusing selvedge::Slice;\n\
         using selvedge::Tensor;\nint main()\n{{\nconst std::string ptx = \".version 7.0\";\n{opened}\n{closed}\n}}\n"
    );
    let source = folder().join("page.cpp");
    fs::write(&source, program).unwrap();
    let mut command = variant::compiler();
    command.args(WARNINGS).args(["-Wno-unused", "-std=c++17", "-fsyntax-only", "-I"]);
    command.arg(common::repository().join("include")).arg(&source);
    variant::compile(&mut command).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn clang_accepts_the_programs_without_a_warning() {
    let name = "clang_accepts_the_programs_without_a_warning";
    if common::is_left_out(name, NEEDS) {
        return;
    }
    if !is_there("clang") {
        println!("not run: no clang");
        return;
    }
    let root = common::repository();
    let mut count = 0;
    for folder in ["csrc/examples", "examples/languages", "tests/capi"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let source = entry.unwrap().path();
            let options = match (source.extension().and_then(OsStr::to_str), source.file_stem()) {
                // Its program is generated; see `every_function_refuses_null_and_bad_handles`.
                (_, Some(stem)) if stem == "hostile" => continue,
                (Some("c"), _) => &["-std=c99"][..],
                (Some("cpp"), Some(stem)) if stem == "without_exceptions" => {
                    &["-std=c++17", "-fno-exceptions"]
                }
                (Some("cpp"), _) => &["-std=c++17"],
                _ => continue,
            };
            let mut command = Command::new("clang");
            command.args(WARNINGS).args(options).arg("-fsyntax-only");
            command.arg("-I").arg(root.join("include")).arg("-I").arg(root.join("tests/capi")).arg(&source);
            succeeds(&source.display().to_string(), &command.output().unwrap());
            count += 1;
        }
    }
    assert!(count >= 10, "{count} programs");
}

#[test]
fn the_library_leaves_its_process_as_it_found_it() {
    if common::is_left_out("the_library_leaves_its_process_as_it_found_it", NEEDS) {
        return;
    }
    let program = compile("living", &common::repository().join("tests/capi/living.c"), &[]);
    let cases = [
        "use",
        "versions",
        "loading",
        "rounding",
        "locale",
        "environment",
        "signals",
        "context",
        "messages",
        "forking",
        "panic",
        "many_threads",
        "shutdown_twice",
        "shutdown_first",
    ];
    for case in cases {
        runs_in_silence(case, &program, &[case]);
    }
    let copies = ["one", "two"].map(|name| folder().join(format!("lib{name}.so")));
    for copy in &copies {
        fs::copy(library().join("libselvedge.so"), copy).unwrap();
    }
    runs_in_silence("closing", &program, &[OsStr::new("closing"), copies[0].as_os_str()]);
    let paths = [OsStr::new("two_copies"), copies[0].as_os_str(), copies[1].as_os_str()];
    runs_in_silence("two_copies", &program, &paths);
}

#[test]
fn threads_share_handles_tensors_and_a_device() {
    if common::is_left_out("threads_share_handles_tensors_and_a_device", NEEDS) {
        return;
    }
    let program = compile("threads", &common::repository().join("tests/capi/threads.c"), &["-std=gnu11"]);
    for case in ["tensors", "pool", "stale", "device", "shut_down"] {
        runs_in_silence(case, &program, &[case]);
    }
    // ThreadSanitizer sees both sides of a call. It misses a race in one run of ten.
    let is_reported = |_| {
        let output = on_fake(&program, &["race"]);
        !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("data race")
    };
    assert!(!has_thread_sanitizer() || (0..10).any(is_reported), "ThreadSanitizer reports no race");
}

#[test]
fn every_function_refuses_null_and_bad_handles() {
    if common::is_left_out("every_function_refuses_null_and_bad_handles", NEEDS) {
        return;
    }
    let source = folder().join("hostile_main.c");
    fs::write(&source, hostile::program(&header())).unwrap();
    let program = compile("hostile", &source, &["-std=c11", "-O0"]);
    let models = model_folders::unpacked();
    runs_in_silence("hostile", &program, &[models.path().join("gpt2")]);
}

#[test]
fn the_shared_library_exports_the_functions_of_the_header_alone() {
    if common::is_left_out("the_shared_library_exports_the_functions_of_the_header_alone", NEEDS) {
        return;
    }
    let output =
        Command::new("nm").args(["-D", "--defined-only"]).arg(library().join("libselvedge.so")).output();
    let output = output.expect("nm runs");
    succeeds("nm", &output);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found: Vec<&str> = text.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    // Debug builds have one function more (src/capi/guard.rs).
    found.retain(|name| *name != "sv_test_panic");
    let functions = hostile::functions(&header());
    let mut wanted: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

/// The Python for tests with other libraries: that of `SELVEDGE_TEST_PYTHON`, or `python3`.
fn python() -> Command {
    Command::new(std::env::var_os("SELVEDGE_TEST_PYTHON").unwrap_or_else(|| "python3".into()))
}

#[test]
fn arrays_are_exchanged_with_numpy() {
    if common::is_left_out("arrays_are_exchanged_with_numpy", NEEDS) {
        return;
    }
    if !python().args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success()) {
        println!("not run: no Python with NumPy (SELVEDGE_TEST_PYTHON names one)");
        return;
    }
    let mut command = python();
    common::hide_libraries(&mut command).arg("-B");
    command.arg(common::repository().join("tests/capi/dlpack_numpy.py"));
    command.arg(library().join("libselvedge.so")).arg(common::repository().join("include/selvedge.h"));
    succeeds("dlpack_numpy.py", &command.output().expect("Python runs"));
}

#[test]
fn the_version_for_cargo_c_is_that_of_the_abi() {
    let manifest = include_str!("../Cargo.toml");
    let symbols = include_str!("../include/selvedge.symbols");
    let abi = symbols.lines().find_map(|line| line.strip_prefix("abi ")).unwrap();
    let (_, library) = manifest.split_once("[package.metadata.capi.library]").unwrap();
    let version = library.lines().find_map(|line| line.strip_prefix("version = ")).unwrap();
    assert_eq!(version, format!("\"{abi}.0.0\""));
    assert_eq!(selvedge::capi::library::SV_ABI_VERSION.to_string(), abi);
}

/// The text of the headers for C++.
fn cpp_headers() -> String {
    let entries = fs::read_dir(common::repository().join("include/selvedge")).expect("the headers are there");
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| fs::read_to_string(path).expect("headers are text")).collect()
}

/// Functions that the C++ layer has no use for: operations by code and their names, work in a callback that a scope replaces, and
/// DLPack before 1.0.
const LEFT_TO_C: [&str; 11] = [
    "sv_abi_version",
    "sv_binary",
    "sv_no_grad",
    "sv_operation_arity",
    "sv_operation_code",
    "sv_operation_name",
    "sv_tensor_from_dlpack_legacy",
    "sv_tensor_to_dlpack_legacy",
    "sv_ternary",
    "sv_unary",
    "sv_version",
];

#[test]
fn the_cpp_headers_cover_every_function_and_operation() {
    let text = cpp_headers();
    let words: HashSet<&str> =
        text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').collect();
    let header = header();
    let named = |prefix| header.split(prefix).skip(1).filter_map(|rest| rest.split_whitespace().next());
    // The classes take the lists of the header, each of which has all operations of its number of operands.
    for list in ["SV_UNARY_OPERATIONS", "SV_BINARY_OPERATIONS", "SV_TERNARY_OPERATIONS"] {
        assert!(words.contains(list), "the C++ headers do not use {list}");
    }
    for operation in named("#define SV_OP_") {
        let entry = format!("X({}, {operation})", operation.to_lowercase());
        assert!(header.contains(&entry), "the lists of selvedge.h lack {entry}");
    }
    for function in hostile::functions(&header) {
        let name = function.name.as_str();
        // Some of `sv_srt_` are made by macros from the rest of their names.
        let is_made = name.strip_prefix("sv_srt_").is_some_and(|rest| words.contains(rest));
        assert!(
            words.contains(name) || is_made || LEFT_TO_C.contains(&name),
            "the C++ headers do not use {name}"
        );
    }
}

#[test]
fn operations_are_functions_of_the_header() {
    if common::is_left_out("operations_are_functions_of_the_header", NEEDS) {
        return;
    }
    let source = common::repository().join("tests/capi/operations.c");
    runs_in_silence::<&str>("operations", &compile("operations", &source, &["-std=c89"]), &[]);
}

#[test]
fn a_program_in_c_generates_with_a_published_model() {
    if common::is_left_out("a_program_in_c_generates_with_a_published_model", NEEDS) {
        return;
    }
    let source = common::repository().join("tests/capi/decoder.c");
    let (program, models) = (compile("decoder", &source, &["-std=c99"]), model_folders::unpacked());
    runs_in_silence("decoder", &program, &[models.path(), models.path()]);
}

#[test]
fn a_program_in_c_records_a_trace() {
    if common::is_left_out("a_program_in_c_records_a_trace", NEEDS) {
        return;
    }
    let source = common::repository().join("tests/capi/trace.c");
    let path = folder().join("trace_of_c.json.gz");
    runs_in_silence("trace", &compile("trace", &source, &["-std=c99"]), &[&path]);
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
    for name in [r#""outer \"range\"""#, r#""inner range""#, r#""add""#] {
        assert_eq!(text.matches(name).count(), 1, "{name} in {text}");
    }
    assert!(!text.contains("before the trace"), "{text}");
}

#[test]
fn a_profiler_that_injects_itself_sees_ranges_and_operations() {
    if common::is_left_out("a_profiler_that_injects_itself_sees_ranges_and_operations", NEEDS) {
        return;
    }
    let sources = common::repository().join("tests/capi");
    let program = compile("trace_with_nvtx", &sources.join("trace.c"), &["-std=c99"]);
    let injection = folder().join("nvtx_injection.so");
    let mut command = variant::compiler();
    command.args(WARNINGS).args(["-std=c99", "-shared", "-fPIC"]).arg(sources.join("nvtx_injection.c"));
    command.arg("-o").arg(&injection);
    variant::compile(&mut command).unwrap_or_else(|error| panic!("{error}"));
    let (trace, ranges) = (folder().join("trace_with_nvtx.json.gz"), folder().join("nvtx_ranges.txt"));
    let mut command = Command::new(&program);
    common::hide_libraries(&mut command).arg(&trace);
    command.env("NVTX_INJECTION64_PATH", &injection).env("NVTX_TEST_OUTPUT", &ranges);
    let output = command.output().expect("the program runs");
    succeeds("trace with a profiler", &output);
    let found = fs::read_to_string(&ranges).unwrap();
    // The first range is outside of the trace, and operations are inside of both ranges.
    let start = "0 before the trace\n0 end\n0 outer \"range\"\n1 inner range\n";
    assert!(found.starts_with(start) && found.ends_with("2 add\n2 end\n1 end\n0 end\n"), "{found}");
    // A library that is none, and one without the function, are warnings.
    for path in [Path::new("/no/such/library.so"), &library().join("libselvedge.so")] {
        let mut command = Command::new(&program);
        common::hide_libraries(&mut command).arg(&trace).env("NVTX_INJECTION64_PATH", path);
        succeeds("trace without a profiler", &command.output().expect("the program runs"));
    }
}

#[test]
fn cpp_classes_do_what_the_functions_do() {
    if common::is_left_out("cpp_classes_do_what_the_functions_do", NEEDS) {
        return;
    }
    let source = common::repository().join("tests/capi/classes.cpp");
    // The sanitizers see one standard; the other one has std::span.
    for (standard, program) in [
        ("C++17", compile("classes", &source, &["-std=c++17", "-O0"])),
        ("C++20", compile_with("classes_20", &source, &["-std=c++20", "-O0"])),
    ] {
        let models = model_folders::unpacked();
        runs_in_silence(standard, &program, &[folder().as_path(), models.path()]);
    }
}

#[test]
fn cpp_classes_work_without_exceptions() {
    if common::is_left_out("cpp_classes_work_without_exceptions", NEEDS) {
        return;
    }
    let source = common::repository().join("tests/capi/without_exceptions.cpp");
    let program = compile("without_exceptions", &source, &["-std=c++17", "-fno-exceptions", "-O0"]);
    runs_in_silence::<&str>("without_exceptions", &program, &[]);
    let output = on_fake(&program, &["fail"]);
    assert!(!output.status.success() && output.status.code().is_none(), "{output:?}");
    assert!(output.stderr.starts_with(b"SV_ERROR_INVALID_ARGUMENT: sv_tensor_squeeze"), "{output:?}");
}

#[test]
fn examples_run_with_and_without_a_device() {
    if common::is_left_out("examples_run_with_and_without_a_device", NEEDS) {
        return;
    }
    let folder = common::repository().join("csrc/examples");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let source = entry.unwrap().path();
        let standard = match source.extension().and_then(OsStr::to_str) {
            Some("c") => "-std=c99",
            Some("cpp") => "-std=c++17",
            _ => continue,
        };
        let name = source.file_stem().unwrap().to_str().unwrap().to_owned();
        let program = compile(&format!("example_{name}"), &source, &[standard, "-O0"]);
        // The kernels of the fake driver compute other numbers, which an example finds after all of its calls succeeded.
        let output = on_fake::<&str>(&program, &[]);
        if !output.stderr.starts_with(b"element") {
            succeeds(&name, &output);
        }
        let mut command = Command::new(&program);
        let output = common::hide_libraries(&mut command).output().unwrap();
        succeeds(&name, &output);
        assert!(!output.stdout.is_empty(), "{name} says nothing without a device");
        count += 1;
    }
    assert!(count >= 2, "{count} examples");
}

#[test]
fn training_in_rust_c_and_cpp_ends_with_the_same_bits() {
    if common::is_left_out("training_in_rust_c_and_cpp_ends_with_the_same_bits", NEEDS) {
        return;
    }
    let root = common::repository();
    let digits = root.join("data/digits/digits.npz");
    let wanted =
        languages::lines(digits.to_str().expect("a path in UTF-8"), &selvedge::Device::cpu()).unwrap();
    assert_eq!(wanted.lines().count(), 3, "{wanted}");
    for (file, standard) in [("train.c", "-std=c99"), ("train.cpp", "-std=c++17")] {
        let source = root.join("examples/languages").join(file);
        let program = compile(&file.replace('.', "_"), &source, &[standard, "-O0"]);
        let output = Command::new(&program).arg(&digits).output().expect("the program runs");
        succeeds(file, &output);
        assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{file}");
    }
}
