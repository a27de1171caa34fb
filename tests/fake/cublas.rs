//! Products by cuBLAS and cuBLASLt, on ones that multiply on the host (`csrc/fake_cublas`): that rows, leading dimensions,
//! batches, conjugation, factors and epilogues are asked for as they are meant, element by element; in which order with
//! other streams; that descriptors are given back, whatever fails; and what is said where there is no such library.

use std::ffi::{CString, c_char, c_int, c_long};
use std::path::PathBuf;

use libtest_mimic::Failed;
use num_complex::Complex;
use selvedge::driver::{Device, DeviceBuffer, Stream};
use selvedge::gemm::{
    Activation, Choice, DeviceProperties, Engine, Epilogue, Operation, Plan, Product, gemm, gemm_with,
};
use selvedge::tensor::{Matmul, Tensor};
use selvedge::types::DType;

use super::products::cases::{self, Case, for_each_dtype};
use super::products::epilogues;
use super::support::Fake;
use super::variant::{self, Variant};
use super::{children, common};
use crate::common::suite::Test;

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
    for_each_dtype!(floats, T, C => passes(case.check::<T, C>(stream, CUBLAS))?);
    Ok(())
}

/// Child: sizes, layouts, gaps, batches, factors.
fn cases(fake: &Fake) -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for case in cases::layouts_of((9, 5, 7)) {
        every_type(&stream, case)?;
    }
    for case in cases::SMALL_SIZES.into_iter().flat_map(cases::layouts_of) {
        passes(case.check::<f32, f32>(&stream, CUBLAS))?;
    }
    for case in cases::batches_of((6, 7, 4)) {
        every_type(&stream, case.unaligned())?;
    }
    for case in cases::layouts_of((4, 6, 5)) {
        for (alpha, beta) in [(1, 0), (3, 0), (1, 1), (-2, 3)] {
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

/// The fake cuBLASLt that the crate has loaded, as its counts see it.
struct Fused {
    alive: unsafe extern "C" fn() -> c_long,
    calls: unsafe extern "C" fn(*const c_char) -> c_long,
    fail: unsafe extern "C" fn(*const c_char, c_long, c_int),
    /// Lives as long as the pointers.
    _library: libloading::Library,
}

impl Fused {
    fn open() -> Result<Fused, Box<dyn std::error::Error>> {
        let path = PathBuf::from(std::env::var("SELVEDGE_LIBCUBLAS")?).with_file_name("libcublasLt.so.12");
        // SAFETY: the library is this suite's own, and the types are those of fake_cublaslt.c.
        unsafe {
            let library = libloading::Library::new(path)?;
            Ok(Fused {
                alive: *library.get(b"fake_cublaslt_alive")?,
                calls: *library.get(b"fake_cublaslt_calls")?,
                fail: *library.get(b"fake_cublaslt_fail")?,
                _library: library,
            })
        }
    }

    fn alive(&self) -> i64 {
        // SAFETY: see `open`.
        unsafe { (self.alive)() }
    }

    fn calls(&self, function: &str) -> Result<i64, std::ffi::NulError> {
        let name = CString::new(function)?;
        // SAFETY: the name is terminated and outlives the call.
        Ok(unsafe { (self.calls)(name.as_ptr()) })
    }

    fn fail(&self, function: &str, number: i64, status: i32) -> Result<(), std::ffi::NulError> {
        let name = CString::new(function)?;
        // SAFETY: as above.
        unsafe { (self.fail)(name.as_ptr(), number, status) };
        Ok(())
    }
}

/// Child: every part of an epilogue that cuBLASLt has, and what is said of the others; algorithms are chosen once, and no
/// descriptor is left.
fn fused(fake: &Fake) -> Outcome {
    let library = Fused::open()?;
    let stream = Device::new(0)?.stream()?;
    passes(epilogues::by_cublas(&stream, &[(16, 24, 5), (1, 8, 3), (5, 16, 9)]))?;
    passes(epilogues::beyond_cublas(&stream))?;
    check(library.alive() == 0, "a descriptor is left")?;

    let (numbers, mut c) = (stream.upload(&[1.0f32; 64])?, stream.zeros::<f32>(64)?);
    let mut multiply = |m: usize, start: usize, activation: Activation| {
        let product = Product::new(m, 4, 4).by(CUBLAS);
        let epilogue = Epilogue::new().activation(activation);
        let part = &numbers.slice(start..)?;
        gemm_with(&stream, &product, 1.0, part, part, 0.0, &mut c, epilogue)
    };
    let choices = "cublasLtMatmulAlgoGetHeuristic";
    let before = library.calls(choices)?;
    for _ in 0..3 {
        // Another size, another alignment and another epilogue each have an algorithm of their own.
        multiply(4, 0, Activation::Relu)?;
        multiply(3, 0, Activation::Relu)?;
        multiply(4, 1, Activation::Relu)?;
        multiply(4, 0, Activation::GeluTanh)?;
    }
    check(library.calls(choices)? - before == 4, "an algorithm is not chosen once for each product")?;
    // Types without an order, and types that cuBLASLt sums with another compute type.
    let (whole, mut into) = (stream.zeros::<Complex<f32>>(16)?, stream.zeros::<Complex<f32>>(16)?);
    let epilogue = Epilogue::new().residual(&whole);
    let (one, zero) = (Complex::new(1.0, 0.0), Complex::new(0.0, 0.0));
    let product = Product::new(4, 4, 4).by(CUBLAS);
    let failed = gemm_with(&stream, &product, one, &whole, &whole, zero, &mut into, epilogue);
    let text = failed.err().map(|error| error.to_string()).unwrap_or_default();
    check(text.contains("an epilogue needs a result of f16"), &text)?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: whatever call of cuBLASLt fails, the error names it, nothing is written, and no descriptor is left; the next
/// product is made.
fn fused_failures(fake: &Fake) -> Outcome {
    let library = Fused::open()?;
    let stream = Device::new(0)?.stream()?;
    let numbers = stream.upload(&[1.0f32; 64])?;
    let mut columns = 0;
    // Each has a size of its own, so that an algorithm is chosen for it.
    let mut multiply = || -> Result<Option<selvedge::Error>, Box<dyn std::error::Error>> {
        columns += 8;
        let (mut c, mut aux) = (stream.zeros::<f32>(4 * columns)?, stream.zeros::<f32>(4 * columns)?);
        let (bias, b) = (stream.zeros::<f32>(columns)?, stream.zeros::<f32>(4 * columns)?);
        stream.fill(&mut c, 7.0)?;
        let product = Product::new(2, columns, 4).batch(2, 8, 0, 2 * columns).by(CUBLAS);
        let epilogue = Epilogue::new().bias_of_columns(&bias).activation(Activation::GeluTanh).aux(&mut aux);
        let failed = gemm_with(&stream, &product, 1.0, &numbers, &b, 0.0, &mut c, epilogue).err();
        let wanted = if failed.is_some() { 7.0 } else { 0.0 };
        let written = stream.download(&c)?;
        check(written.iter().all(|x| *x == wanted), "what a failed product wrote")?;
        check(library.alive() == 0, "a descriptor is left")?;
        Ok(failed)
    };
    let mut tried = 0;
    for function in [
        "cublasLtCreate",
        "cublasLtMatmulDescCreate",
        "cublasLtMatmulDescSetAttribute",
        "cublasLtMatrixLayoutCreate",
        "cublasLtMatrixLayoutSetAttribute",
        "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulPreferenceSetAttribute",
        "cublasLtMatmulAlgoGetHeuristic",
        "cublasLtMatmul",
    ] {
        for number in 1.. {
            library.fail(function, number, 14)?;
            let Some(error) = multiply()? else { break };
            let text = error.to_string();
            check(text.contains(function) && text.contains("INTERNAL_ERROR"), &text)?;
            tried += 1;
        }
        library.fail("", 0, 0)?;
    }
    // Attributes: seven of the description, two of each of three layouts, six of the preference; and the calls themselves.
    check(tried == 1 + 1 + 7 + 3 + 6 + 1 + 6 + 1 + 1, &format!("{tried} failures"))?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: the memory of an epilogue is waited for, and its product by what comes after; captured, it is one node.
fn fused_order(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let (home, other) = (device.stream()?, device.stream()?);
    let mut operands = Operands::new(&home)?;
    let mut more = [home.zeros::<f32>(64)?, home.zeros::<f32>(64)?];
    let multiply = |stream: &Stream, operands: &mut Operands, [bias, aux]: &mut [DeviceBuffer<f32>; 2]| {
        let epilogue = Epilogue::new().bias_of_columns(&*bias).activation(Activation::GeluTanh).aux(aux);
        let (product, Operands { a, b, c }) = (Product::new(8, 8, 8).by(CUBLAS), operands);
        gemm_with(stream, &product, 1.0, a, b, 0.0, c, epilogue)
    };
    multiply(&home, &mut operands, &mut more)?;
    let waits = || fake.call_count("cuStreamWaitEvent");
    for which in 0..2 {
        home.synchronize()?;
        let before = waits();
        other.fill(&mut more[which], 0.0)?;
        multiply(&home, &mut operands, &mut more)?;
        check(waits() > before, "a product does not wait for a writer")?;
        let before = waits();
        other.fill(&mut more[which], 0.0)?;
        check(waits() > before, "a writer does not wait for a product")?;
    }
    // A residual is read, as the matrix that beta multiplies.
    let residual = other.zeros::<f32>(64)?;
    let before = waits();
    let (product, Operands { a, b, c }) = (Product::new(8, 8, 8).by(CUBLAS), &mut operands);
    gemm_with(&home, &product, 1.0, a, b, 0.0, c, Epilogue::new().residual(&residual))?;
    check(waits() > before, "a product does not wait for the writer of a residual")?;
    multiply(&home, &mut operands, &mut more)?;
    let (graph, ()) = home.capture(|stream| multiply(stream, &mut operands, &mut more))?;
    check(graph.nodes()?.len() == 1, "a product is not one node")?;
    let graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&home)?;
        multiply(&other, &mut operands, &mut more)?;
    }
    home.synchronize()?;
    other.synchronize()?;
    drop((graph, operands, more, residual, home, other));
    // SAFETY: nothing else uses CUDA in this process.
    let device = unsafe { device.reset()? };
    let stream = device.stream()?;
    let mut more = [stream.zeros::<f32>(64)?, stream.zeros::<f32>(64)?];
    multiply(&stream, &mut Operands::new(&stream)?, &mut more)?;
    stream.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: what is chosen, with and without the library.
fn choices(_: &Fake) -> Outcome {
    let properties = DeviceProperties::from_device(&Device::new(0)?)?;
    let product = Product::new(64, 64, 64);
    let explain =
        |name: &str, product: &Product, dtype| match Plan::explain(product, dtype, dtype, properties) {
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
    let transposed: View = |other| other.transpose(2, 3);
    let views: [(View, View); 7] = [
        // Rows with gaps from somewhere on, and columns.
        (
            |wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8)?.select(0, 1),
            |other| other.transpose(2, 3)?.select(0, 1),
        ),
        // One matrix for all, and one of a batch for each.
        (cut, |other| other.transpose(2, 3)?.select(0, 1)?.select(0, 2)),
        (|wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8)?.select(1, 2)?.select(0, 3), transposed),
        // Batches that are broadcast against each other.
        (
            |wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8)?.narrow(0, 0, 2),
            |other| other.transpose(2, 3)?.select(0, 0),
        ),
        (|wide| wide.narrow(2, 1, 6)?.narrow(3, 3, 8)?.unsqueeze(1), transposed),
        // Vectors, with steps too.
        (cut, |other| other.select(0, 0)?.select(0, 0)?.select(0, 4)),
        (|wide| wide.select(0, 0)?.select(0, 0)?.select(1, 3)?.narrow(0, 2, 8), transposed),
    ];
    let (wide_there, other_there) = (wide.to(&device)?, other.to(&device)?);
    for (index, (left, right)) in views.into_iter().enumerate() {
        let wanted = left(&wide)?.matmul(&right(&other)?)?.to_vec::<f32>()?;
        let copies = fake.call_count("cuLaunchKernel");
        let found = left(&wide_there)?.matmul(&right(&other_there)?)?;
        check(found.to_vec::<f32>()? == wanted, &format!("views {index}"))?;
        check(fake.call_count("cuLaunchKernel") == copies, &format!("views {index}: something was copied"))?;
    }
    layers(&device)?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Layers by cuBLASLt, against the same on the CPU.
fn layers(device: &selvedge::tensor::Device) -> Outcome {
    let cpu = selvedge::tensor::Device::cpu();
    let tensor = |sizes: &[usize]| {
        let elements = (0..sizes.iter().product::<usize>()).map(|x| (x * 7 % 11) as f32 / 4.0 - 1.25);
        Tensor::from_vec(elements.collect(), sizes, &cpu)
    };
    let (x, weights, bias, residual) =
        (tensor(&[2, 5, 12])?, tensor(&[16, 12])?, tensor(&[16])?, tensor(&[2, 5, 16])?);
    for (activation, has_residual) in
        [(Activation::None, true), (Activation::Relu, false), (Activation::GeluTanh, false)]
    {
        let layer = |place: &selvedge::tensor::Device| -> selvedge::Result<Vec<f32>> {
            let (bias, residual) = (bias.to(place)?, residual.to(place)?);
            let mut matmul = Matmul::new().bias(&bias).activation(activation);
            if has_residual {
                matmul = matmul.residual(&residual);
            }
            let (x, weights) = (x.to(place)?, weights.to(place)?);
            let weights = weights.transpose(0, 1)?;
            let mut all = matmul.of(&x, &weights)?.to_vec::<f32>()?;
            if activation == Activation::GeluTanh {
                let (product, aux) = matmul.of_with_aux(&x, &weights)?;
                all.extend(product.to_vec::<f32>()?);
                all.extend(aux.to_vec::<f32>()?);
            }
            Ok(all)
        };
        let (found, wanted) = (layer(device)?, layer(&cpu)?);
        let near = found.iter().zip(&wanted).all(|(x, y)| (x - y).abs() <= 1e-5 * y.abs().max(1.0));
        check(near && found.len() == wanted.len(), &format!("{activation:?}: {found:?}, wanted {wanted:?}"))?;
    }
    Ok(())
}

/// One child of this module by name.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    match arguments {
        [name] if name == "cases" => cases(fake),
        [name] if name == "conjugates" => conjugates(fake),
        [name] if name == "fused" => fused(fake),
        [name] if name == "fused_failures" => fused_failures(fake),
        [name] if name == "fused_order" => fused_order(fake),
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
    const SOURCES: &str = "csrc/fake_cublas";
    let sources = common::repository().join(SOURCES);
    let folder = variant::scratch(&format!("fake-cublas-{:016x}", variant::fingerprint(SOURCES, ())?))?;
    for (source, name) in [("fake_cublaslt.c", "libcublasLt.so.12"), ("fake_cublas.c", "libcublas.so.12")] {
        variant::make(&folder.join(name), |unfinished| {
            variant::compile(
                variant::compiler()
                    .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra"])
                    .arg(sources.join(source))
                    .args(["-ldl", "-lm", "-lpthread", "-o"])
                    .arg(unfinished),
            )
        })?;
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

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("cublas::cases", || with_library("cases", &[]).map(drop)),
        Test::new("cublas::tensors", || with_library("tensors", &[("SELVEDGE_GEMM", "cublas")]).map(drop)),
        Test::new("cublas::conjugates", || with_library("conjugates", &[]).map(drop)),
        Test::new("cublas::order", || {
            let text = with_library("order", &[("FAKE_CUBLAS", "launch")])?;
            // Threads one after another share handles; after a reset a new one is made.
            let handles = text.matches("a handle").count();
            if (2..=5).contains(&handles) { Ok(()) } else { Err(format!("{handles} handles: {text}").into()) }
        }),
        Test::new("cublas::fused", || with_library("fused", &[]).map(drop)),
        Test::new("cublas::fused_failures", || with_library("fused_failures", &[]).map(drop)),
        Test::new("cublas::fused_order", || {
            with_library("fused_order", &[("FAKE_CUBLAS", "launch")]).map(drop)
        }),
        Test::new("cublas::choices", || {
            let text = with_library("choices", &[])?;
            says(
                &text,
                &[
                    "nothing asked: 64x64x64 (nn) of f64 into f64, compute capability 9.0",
                    "multiprocessors: mma",
                    "multiprocessors: cublas\n  cublasGemmEx of cuBLAS",
                    "integers: a matrix product",
                    "cublas: it does not multiply i32 into i32",
                    "cublas: it needs a depth k of at least 1",
                    "cublas: there are too many elements from a row to the next for it",
                ],
            )
        }),
        Test::new("cublas::chosen_by_the_environment", || {
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
        Test::new("cublas::absent", || {
            let text = run("choices", "none", &[])?;
            says(
                &text,
                &[
                    "nothing asked: 64x64x64",
                    ": mma",
                    "cublas: cuBLAS could not be loaded",
                    "SELVEDGE_LIBCUBLAS",
                ],
            )?;
            let text = run("choices", "none", &[("SELVEDGE_GEMM", "auto")])?;
            says(&text, &["nothing asked: 64x64x64", ": mma"])
        }),
    ]
}
