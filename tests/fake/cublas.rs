//! Products by cuBLAS, on a cuBLAS that multiplies on the host (`csrc/fake_cublas`): that rows, leading dimensions, batches,
//! conjugation and factors are asked for as they are meant, element by element; in which order with other streams; and what
//! is said where there is no such library.

#[path = "../gpu/gemm/case.rs"]
mod case;
#[path = "../gpu/gemm/numbers.rs"]
mod numbers;

use std::fs;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use libtest_mimic::{Failed, Trial};
use num_complex::Complex;
use selvedge::driver::{Device, DeviceBuffer, Stream};
use selvedge::gemm::{Choice, Engine, Machine, Operation, Plan, Product, gemm};
use selvedge::tensor::Tensor;
use selvedge::types::DType;

use super::children;
use super::support::Fake;
use super::variant::{self, Variant};
use case::{Case, LAYOUTS};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const CUBLAS: Choice = Choice::Only(Engine::Cublas);

fn check(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn passes(outcome: Result<(), Failed>) -> Outcome {
    outcome.map_err(|failed| failed.message().unwrap_or("failed").into())
}

/// Every pair of types that cuBLAS multiplies.
fn every_type(stream: &Stream, case: Case) -> Outcome {
    passes(case.check::<f16, f16>(stream, CUBLAS))?;
    passes(case.check::<f16, f32>(stream, CUBLAS))?;
    passes(case.check::<bf16, bf16>(stream, CUBLAS))?;
    passes(case.check::<bf16, f32>(stream, CUBLAS))?;
    passes(case.check::<f32, f32>(stream, CUBLAS))?;
    passes(case.check::<f64, f64>(stream, CUBLAS))?;
    passes(case.check::<Complex<f32>, Complex<f32>>(stream, CUBLAS))?;
    passes(case.check::<Complex<f64>, Complex<f64>>(stream, CUBLAS))
}

/// Child: sizes, layouts, gaps, batches, factors.
fn cases(fake: &Fake) -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for operations in LAYOUTS {
        every_type(&stream, Case { operations, ..Case::new(9, 5, 7) })?;
        for (m, n, k) in [(1, 1, 1), (1, 6, 3), (6, 1, 3), (3, 6, 1), (17, 16, 33), (0, 3, 3), (3, 0, 3)] {
            passes(Case { operations, ..Case::new(m, n, k) }.check::<f32, f32>(&stream, CUBLAS))?;
        }
        for (batch, shared, interleaved) in [
            (1, (false, false), false),
            (3, (false, false), false),
            (3, (true, false), false),
            (3, (false, true), true),
            (0, (false, false), false),
        ] {
            let case = Case { operations, batch, shared, interleaved, ..Case::new(6, 7, 4) };
            every_type(&stream, Case { gaps: (3, 5, 1), starts: (1, 3, 7), ..case })?;
        }
        for (alpha, beta) in [(1, 0), (3, 0), (1, 1), (-2, 3)] {
            let case = Case { operations, ..Case::new(4, 6, 5) };
            every_type(&stream, Case { alpha: (alpha, 0), beta: (beta, 0), ..case })?;
            every_type(&stream, Case { alpha: (alpha, 2), beta: (beta, -1), ..case })?;
        }
    }
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: conjugates, and what cuBLAS has no word for.
fn conjugates(_: &Fake) -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let all = [Operation::None, Operation::Transpose, Operation::Conjugate, Operation::Adjoint];
    for operations in all.into_iter().flat_map(|a| all.map(|b| (a, b))) {
        let case = Case { operations, ..Case::new(5, 4, 3) };
        passes(case.check::<f32, f32>(&stream, CUBLAS))?;
        let complex = case.check::<Complex<f32>, Complex<f32>>(&stream, CUBLAS);
        let plain = [operations.0, operations.1].contains(&Operation::Conjugate);
        match (plain, complex) {
            (false, complex) => passes(complex)?,
            (true, Ok(())) => return Err(format!("{operations:?} was taken").into()),
            (true, Err(failed)) => {
                let text = failed.message().unwrap_or_default();
                check(text.contains("does not conjugate"), text)?;
            }
        }
    }
    Ok(())
}

struct Operands {
    a: DeviceBuffer<f32>,
    b: DeviceBuffer<f32>,
    c: DeviceBuffer<f32>,
}

impl Operands {
    fn new(stream: &Stream) -> selvedge::Result<Operands> {
        let operands = Operands { a: stream.zeros(64)?, b: stream.zeros(64)?, c: stream.zeros(64)? };
        stream.synchronize()?;
        Ok(operands)
    }

    fn multiply(&mut self, stream: &Stream) -> selvedge::Result<()> {
        gemm(stream, &Product::new(8, 8, 8).by(CUBLAS), 1.0, &self.a, &self.b, 1.0, &mut self.c)
    }
}

/// Child: a product waits for the writer of each buffer, and the next one for it; several streams and threads share
/// handles, and no workspace; captured it is a part of the graph, with its workspace.
fn order(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let (home, other) = (device.stream()?, device.stream()?);
    let mut operands = Operands::new(&home)?;
    operands.multiply(&home)?;
    for which in 0..3 {
        home.synchronize()?;
        let waits = fake.call_count("cuStreamWaitEvent");
        other.fill([&mut operands.a, &mut operands.b, &mut operands.c][which], 0.0)?;
        operands.multiply(&home)?;
        check(fake.call_count("cuStreamWaitEvent") > waits, "a product does not wait for a writer")?;
        let waits = fake.call_count("cuStreamWaitEvent");
        other.fill([&mut operands.a, &mut operands.b, &mut operands.c][which], 0.0)?;
        check(fake.call_count("cuStreamWaitEvent") > waits, "a writer does not wait for a product")?;
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| -> selvedge::Result<()> {
                    let stream = device.stream()?;
                    let mut operands = Operands::new(&stream)?;
                    (0..20).try_for_each(|_| operands.multiply(&stream))?;
                    stream.synchronize()
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result.map_err(Into::into),
            Err(_) => Err("a thread panicked".into()),
        }) as Outcome
    })?;
    let (graph, ()) = home.capture(|stream| operands.multiply(stream))?;
    check(graph.nodes()?.len() == 1, "a product is not one node")?;
    let graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&home)?;
        operands.multiply(&other)?;
    }
    home.synchronize()?;
    other.synchronize()?;
    drop((graph, operands, home, other));
    // SAFETY: nothing else uses CUDA in this process.
    let device = unsafe { device.reset()? };
    let stream = device.stream()?;
    Operands::new(&stream)?.multiply(&stream)?;
    stream.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: what is chosen, with and without the library.
fn choices(_: &Fake) -> Outcome {
    let machine = Machine::of(&Device::new(0)?)?;
    let product = Product::new(64, 64, 64);
    let explain = |name: &str, product: &Product, dtype| match Plan::explain(product, dtype, dtype, machine) {
        Ok(plan) => println!("{name}: {plan}"),
        Err(error) => println!("{name}: {error}"),
    };
    explain("nothing asked", &product, DType::F64);
    explain("cublas", &product.by(CUBLAS), DType::F64);
    explain("integers", &product.by(CUBLAS), DType::I32);
    explain("no depth", &Product::new(4, 4, 0).by(CUBLAS), DType::F32);
    explain("far", &product.leading(1 << 31, 64, 64).by(CUBLAS), DType::F32);
    Ok(())
}

/// Child: tensors on the device whose operands no copy is made of, against the same on the CPU.
fn tensors(fake: &Fake) -> Outcome {
    let device = selvedge::tensor::Device::cuda(0)?;
    let tensor = |sizes: &[usize]| {
        let elements: Vec<f32> =
            (0..sizes.iter().product()).map(|x: usize| (x * 7 % 11) as f32 - 5.0).collect();
        Tensor::from_vec(elements, sizes, &selvedge::tensor::Device::cpu())
    };
    let (wide, other) = (tensor(&[4, 3, 10, 12])?, tensor(&[2, 3, 9, 8])?);
    type View = fn(&Tensor) -> selvedge::Result<Tensor>;
    let cut: View = |wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8);
    let turned: View = |other| other.transpose(2, 3);
    let views: [(View, View); 7] = [
        // Rows with gaps from somewhere on, and columns.
        (
            |wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8)?.select(0, 1),
            |other| other.transpose(2, 3)?.select(0, 1),
        ),
        // One matrix for all, and one of a batch for each.
        (cut, |other| other.transpose(2, 3)?.select(0, 1)?.select(0, 2)),
        (|wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8)?.select(1, 2)?.select(0, 3), turned),
        // Batches that are broadcast against each other.
        (
            |wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8)?.narrow(0, 0, 2),
            |other| other.transpose(2, 3)?.select(0, 0),
        ),
        (|wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8)?.unsqueeze(1), turned),
        // Vectors, with steps too.
        (cut, |other| other.select(0, 0)?.select(0, 0)?.select(0, 4)),
        (|wide| wide.select(0, 0)?.select(0, 0)?.select(1, 3)?.narrow(0, 2, 8), turned),
    ];
    let (wide_there, other_there) = (wide.to(&device)?, other.to(&device)?);
    for (index, (left, right)) in views.into_iter().enumerate() {
        let wanted = left(&wide)?.matmul(&right(&other)?)?.to_vec::<f32>()?;
        let copies = fake.call_count("cuLaunchKernel");
        let found = left(&wide_there)?.matmul(&right(&other_there)?)?;
        check(found.to_vec::<f32>()? == wanted, &format!("views {index}"))?;
        check(fake.call_count("cuLaunchKernel") == copies, &format!("views {index}: something was copied"))?;
    }
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// One child of this module by name.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    match arguments {
        [name] if name == "cases" => cases(fake),
        [name] if name == "conjugates" => conjugates(fake),
        [name] if name == "order" => order(fake),
        [name] if name == "choices" => choices(fake),
        [name] if name == "tensors" => tensors(fake),
        other => Err(format!("no child {other:?}").into()),
    }
}

/// Compiles the fake library, unless that was done, and returns its path.
fn library() -> std::io::Result<PathBuf> {
    static BUILT: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = BUILT.lock();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc/fake_cublas");
    let folder = variant::scratch(&format!("fake-cublas-{}", std::process::id()))?;
    for (source, name) in [("fake_cublaslt.c", "libcublasLt.so.12"), ("fake_cublas.c", "libcublas.so.12")] {
        if !folder.join(name).exists() {
            let unfinished = folder.join("unfinished");
            variant::compile(
                variant::compiler()
                    .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra"])
                    .arg(sources.join(source))
                    .args(["-ldl", "-lm", "-o"])
                    .arg(&unfinished),
            )?;
            fs::rename(&unfinished, folder.join(name))?;
        }
    }
    Ok(folder.join("libcublas.so.12"))
}

fn run(name: &str, library: &str, settings: &[(&str, &str)]) -> Result<String, Failed> {
    let mut all = vec![("SELVEDGE_LIBCUBLAS", library)];
    all.extend(settings);
    children::must_succeed(&Variant::new(12040), "cublas", &[name.to_owned()], &all)
}

fn with_library(name: &str, settings: &[(&str, &str)]) -> Result<String, Failed> {
    run(name, &library()?.display().to_string(), settings)
}

fn says(text: &str, parts: &[&str]) -> Result<(), Failed> {
    match parts.iter().find(|part| !text.contains(**part)) {
        None => Ok(()),
        Some(part) => Err(format!("'{part}' is not in: {text}").into()),
    }
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("cublas::cases", || with_library("cases", &[]).map(drop)),
        Trial::test("cublas::tensors", || with_library("tensors", &[("SELVEDGE_GEMM", "cublas")]).map(drop)),
        Trial::test("cublas::conjugates", || with_library("conjugates", &[]).map(drop)),
        Trial::test("cublas::order", || {
            let text = with_library("order", &[("FAKE_CUBLAS", "launch")])?;
            // Threads one after another share handles; after a reset a new one is made.
            let handles = text.matches("a handle").count();
            if (2..=5).contains(&handles) { Ok(()) } else { Err(format!("{handles} handles: {text}").into()) }
        }),
        Trial::test("cublas::choices", || {
            let text = with_library("choices", &[])?;
            says(
                &text,
                &[
                    "nothing asked: 64x64x64 (nn) of f64 into f64, compute capability 9.0",
                    "multiprocessors: simt",
                    "multiprocessors: cublas\n  cublasGemmEx of cuBLAS",
                    "integers: a matrix product",
                    "cublas: it does not multiply i32 into i32",
                    "cublas: it needs a depth k of at least 1",
                    "cublas: there are too many elements from a row to the next for it",
                ],
            )
        }),
        Trial::test("cublas::chosen_by_the_environment", || {
            let text = with_library("choices", &[("SELVEDGE_GEMM", "cublas")])?;
            says(
                &text,
                &[
                    "nothing asked: 64x64x64 (nn) of f64 into f64",
                    "cublasGemmEx",
                    "not simt: cublas was asked for",
                ],
            )
        }),
        Trial::test("cublas::absent", || {
            let text = run("choices", "none", &[])?;
            says(
                &text,
                &[
                    "nothing asked: 64x64x64",
                    ": simt",
                    "cublas: cuBLAS could not be loaded",
                    "SELVEDGE_LIBCUBLAS",
                ],
            )?;
            let text = run("choices", "none", &[("SELVEDGE_GEMM", "auto")])?;
            says(&text, &["nothing asked: 64x64x64", ": simt"])
        }),
    ]
}
