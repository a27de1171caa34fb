//! The crate's headers: that they compile for every target of this NVRTC, beside the toolkit's own, and what they compile to.

use libtest_mimic::Trial;
use selvedge::nvrtc::{self, Cache, Program, Target};

use crate::test;

pub fn tests() -> Vec<Trial> {
    vec![
        test("headers::every_target_takes_them", || Ok(every_target()?)),
        test("headers::both_namespaces_can_be_used", || Ok(using_namespaces()?)),
        test("headers::arithmetic_is_rounded_whatever_the_options", || Ok(rounded_whatever_the_options()?)),
        test("headers::they_stand_beside_the_toolkits", || Ok(beside_the_toolkit()?)),
        test("headers::misuse_is_refused", || Ok(misuse()?)),
    ]
}

/// Uses everything that the headers have.
const ALL: &str = r#"
#include <selvedge/bfloat16.cuh>
#include <selvedge/complex.cuh>
#include <selvedge/half.cuh>
#include <selvedge/integers.cuh>
#include "selvedge/half.cuh"
#include <cstdint>
#include <stdint.h>

static_assert(sizeof(int8_t) == 1 && sizeof(uint8_t) == 1 && sizeof(int16_t) == 2 && sizeof(uint16_t) == 2, "");
static_assert(sizeof(int32_t) == 4 && sizeof(uint32_t) == 4 && sizeof(int64_t) == 8 && sizeof(uint64_t) == 8, "");
static_assert(sizeof(intptr_t) == sizeof(void *) && sizeof(std::uintptr_t) == sizeof(void *), "");
static_assert((int8_t)-1 < 0 && (int64_t)-1 < 0 && (uint8_t)-1 > 0 && (std::uint64_t)-1 > 0, "");

// Plain data: in shared memory, by value, in a union, with braces.
union Plain {
    selvedge::f16 half;
    selvedge::bf16 brain;
    selvedge::c64 complex;
};

template <typename Small>
__device__ void small(Small *x, float *y, long n) {
    __shared__ Small shared[32];
    Small a = x[0], b = x[1];
    shared[0] = a + b;
    shared[0] += a - b;
    shared[0] *= a * b;
    shared[0] /= -(a / b);
    shared[0] -= abs(sqrt(a));
    x[2] = shared[0];
    x[3] = a < b ? Small(1.5f) : Small(2.5);
    x[4] = Small(3);
    x[5] = Small(4u);
    x[6] = Small(n);
    x[7] = Small((unsigned long)n);
    x[8] = Small((long long)n);
    x[9] = Small((unsigned long long)n);
    x[10] = Small::from_bits(x[9].bits);
    y[0] = a + 1.0f;
    y[1] = a * y[0];
    if (a == b || a != Small(0)) y[2] = a;
}

template <typename Part>
__device__ void parts(selvedge::complex<Part> *x, Part *y) {
    __shared__ selvedge::complex<Part> shared[32];
    selvedge::complex<Part> a = x[0], b{1, 2};
    shared[0] = a + b;
    shared[0] += a - b;
    shared[0] *= a * b;
    shared[0] /= a / b;
    shared[0] -= -conjugate(a);
    x[1] = shared[0] * 2 + 3 * a - b / 4;
    y[0] = norm_squared(a) + abs(b);
    if (a == b || a != b) y[1] = a.real - a.imaginary;
}

extern "C" __global__ void all(selvedge::f16 *half, selvedge::bf16 *brain, selvedge::c64 *c64, selvedge::c128 *c128,
                               float *y, double *z, Plain plain, int64_t n) {
    small(half, y, n);
    small(brain, y + 8, n);
    parts(c64, y + 16);
    parts(c128, z);
    half[20] = plain.half;
}
"#;

fn every_target() -> selvedge::Result<()> {
    let program = Program::new("all.cu", ALL);
    let mut targets: Vec<String> = Vec::new();
    for architecture in nvrtc::architectures()?.into_iter().filter(|number| *number >= 60) {
        targets.push(format!("sm_{architecture}"));
        targets.push(format!("compute_{architecture}"));
        if architecture >= 90 && nvrtc::version()? >= (12, 0) {
            targets.push(format!("sm_{architecture}a"));
        }
    }
    assert!(targets.len() >= 10, "{targets:?}");
    for target in targets {
        let compiled = program.compile(target.parse()?, &Cache::none())?;
        // That an architecture goes out of support is not about these.
        let own = |line: &&str| !line.is_empty() && !line.contains("deprecated and may be removed");
        assert_eq!(compiled.log().lines().find(own), None, "{target}");
    }
    let dialects = ["c++11", "c++14", "c++20"];
    // 11 has no C++20.
    for dialect in &dialects[..if nvrtc::version()? < (12, 0) { 2 } else { 3 }] {
        let target: Target = "sm_80".parse()?;
        program.clone().option(format!("--std={dialect}")).compile(target, &Cache::none())?;
    }
    Ok(())
}

fn using_namespaces() -> selvedge::Result<()> {
    let source = "#include <selvedge/complex.cuh>\n#include <selvedge/half.cuh>\n#include <selvedge/bfloat16.cuh>\n\
                  using namespace selvedge;\n\
                  extern \"C\" __global__ void f(f16 *x, bf16 *y, c64 *z, int *i, float *w) {\n\
                      x[0] = sqrt(x[1]) + abs(x[2]); y[0] = sqrt(y[1]) + abs(y[2]); w[0] = abs(z[0]);\n\
                      i[0] = abs(i[1]); w[1] = sqrt(w[2]) + abs(w[3]);\n}";
    Program::new("f.cu", source).compile("sm_80".parse()?, &Cache::none())?;
    Ok(())
}

/// The instructions of one kernel as PTX, each once.
fn instructions(source: &str, options: &[&str]) -> selvedge::Result<Vec<String>> {
    let program =
        options.iter().fold(Program::new("f.cu", source), |program, option| program.option(*option));
    let compiled = program.compile("compute_80".parse()?, &Cache::none())?;
    let text = String::from_utf8_lossy(compiled.image()).into_owned();
    let words = text.lines().filter_map(|line| line.trim().split([' ', '\t']).next().map(str::to_owned));
    let mut words: Vec<String> = words.collect();
    words.sort();
    words.dedup();
    Ok(words)
}

fn rounded_whatever_the_options() -> selvedge::Result<()> {
    let complex = "#include <selvedge/complex.cuh>\n\
                   extern \"C\" __global__ void f(selvedge::c64 *x) { x[2] = x[0] * x[1]; x[3] = x[0] / x[1]; }";
    for options in [&[][..], &["--fmad=true"], &["--prec-div=false"], &["--use_fast_math", "--ftz=false"]] {
        let words = instructions(complex, options)?;
        let has = |word: &str| words.iter().any(|known| known == word);
        assert!(
            !words
                .iter()
                .any(|word| word.starts_with("fma") || word.contains("approx") || word.contains("full")),
            "{words:?}"
        );
        assert!(
            has("mul.rn.f32") && has("add.rn.f32") && has("sub.rn.f32") && has("div.rn.f32"),
            "{words:?}"
        );
    }
    let half = "#include <selvedge/half.cuh>\n\
                extern \"C\" __global__ void f(selvedge::f16 *x) { x[2] = x[0] * x[1] + x[3]; x[4] = x[0] / x[1]; }";
    let words = instructions(half, &["--use_fast_math", "--ftz=false"])?;
    assert!(
        !words.iter().any(|word| word.starts_with("fma") || word.contains("approx") || word.contains("full")),
        "{words:?}"
    );
    assert!(words.iter().any(|word| word == "cvt.rn.f16.f32"), "{words:?}");
    Ok(())
}

/// With `SELVEDGE_TEST_CUDA_INCLUDE`, folders with the toolkit's headers, separated by colons.
fn beside_the_toolkit() -> selvedge::Result<()> {
    let Some(folders) = std::env::var_os("SELVEDGE_TEST_CUDA_INCLUDE") else {
        eprintln!("SELVEDGE_TEST_CUDA_INCLUDE names no folders: the toolkit's headers are left out");
        return Ok(());
    };
    let folders: Vec<_> = std::env::split_paths(&folders).collect();
    for order in [["cuda_fp16.h", "cuda_bf16.h"], ["selvedge/half.cuh", "selvedge/bfloat16.cuh"]] {
        let first: String = order.iter().map(|header| format!("#include <{header}>\n")).collect();
        let source = format!(
            "{first}#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuComplex.h>\n{ALL}\n\
             using namespace selvedge;\n\
             extern \"C\" __global__ void g(half *x, f16 *y, __nv_bfloat16 *u, bf16 *v) {{\n\
                 y[0] = f16(__half2float(x[0] + x[1])); v[0] = bf16(__bfloat162float(u[0] + u[1]));\n}}\n"
        );
        let program = folders.iter().fold(Program::new("g.cu", source), |program, folder| {
            program.option(format!("--include-path={}", folder.display()))
        });
        program.compile("sm_80".parse()?, &Cache::none())?;
    }
    // libc++ of the toolkit, where it is there.
    if folders.iter().any(|folder| folder.join("cuda/std/cstdint").exists()) {
        let program = Program::new(
            "h.cu",
            "#include <cstdint>\n#include <cuda/std/cstdint>\n#include <cuda/std/complex>\n\
            extern \"C\" __global__ void h(cuda::std::int64_t *x, std::int64_t *y, int64_t *z) { *x = *y + *z; }",
        );
        let program = folders
            .iter()
            .fold(program, |program, folder| program.option(format!("--include-path={}", folder.display())));
        program.compile("sm_80".parse()?, &Cache::none())?;
    }
    Ok(())
}

fn misuse() -> selvedge::Result<()> {
    for line in ["x[0] = 1.0f;", "x[0] = x[1] + 1.0f;", "f16 a = 1;"] {
        let source = format!(
            "#include <selvedge/half.cuh>\nusing selvedge::f16;\nextern \"C\" __global__ void f(f16 *x) {{ {line} }}"
        );
        let error = Program::new("f.cu", source).compile("sm_80".parse()?, &Cache::none()).expect_err(line);
        assert!(error.to_string().contains("f.cu line 3"), "{error}");
    }
    Ok(())
}
