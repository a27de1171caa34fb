//! Matrix products on the fake driver: which calls they make, in which order with other streams, and that nothing is
//! launched for bad input. (The fake does not multiply.)

use half::bf16;
use num_complex::Complex;
use selvedge::driver::{Device, DeviceBuffer, Stream};
use selvedge::gemm::{
    Choice, DeviceProperties, Engine, Epilogue, GemmElement, Operation, Plan, Product, gemm, gemm_with,
};
use selvedge::images;
use selvedge::tensor::Tensor;
use selvedge::types::DType;

use super::children;
use super::support::Fake;
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SIMT: Choice = Choice::Only(Engine::Simt);
const WGMMA: Choice = Choice::Only(Engine::Wgmma);

fn check(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Driver calls of a name that `work` makes.
fn calls(fake: &Fake, name: &str, work: impl FnOnce() -> selvedge::Result<()>) -> selvedge::Result<u64> {
    let before = fake.call_count(name);
    work()?;
    Ok(fake.call_count(name) - before)
}

struct Operands<T> {
    a: DeviceBuffer<T>,
    b: DeviceBuffer<T>,
    c: DeviceBuffer<T>,
}

impl<T: GemmElement> Operands<T> {
    fn new(stream: &Stream) -> selvedge::Result<Operands<T>> {
        let operands = Operands { a: stream.zeros(4096)?, b: stream.zeros(4096)?, c: stream.zeros(4096)? };
        stream.synchronize()?;
        Ok(operands)
    }

    fn multiply(&mut self, stream: &Stream, product: &Product, one: T::Scalar) -> selvedge::Result<()> {
        gemm(stream, product, one, &self.a, &self.b, one, &mut self.c)
    }
}

/// Child: a product waits for the writer of each of its buffers, and who comes after it waits for the product.
fn order<T: GemmElement>(fake: &Fake, choice: Choice, one: T::Scalar) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let (home, other) = (device.stream()?, device.stream()?);
    let mut operands = Operands::<T>::new(&home)?;
    let product = Product::new(64, 64, 64).by(choice);
    let waits = "cuStreamWaitEvent";
    // The first one looks the kernel up.
    operands.multiply(&home, &product, one)?;
    let alone = calls(fake, waits, || operands.multiply(&home, &product, one))?;
    check(alone == 0, "a product waits for its own stream")?;
    for which in 0..3 {
        home.synchronize()?;
        let buffer = match which {
            0 => &mut operands.a,
            1 => &mut operands.b,
            _ => &mut operands.c,
        };
        other.fill(buffer, bytemuck::Zeroable::zeroed())?;
        let waited = calls(fake, waits, || operands.multiply(&home, &product, one))?;
        // Each product waits again for a buffer that a tensor map names: another part of it may have been written.
        check(waited >= 1, &format!("buffer {which}: a product made {waited} waits for its writer"))?;
        let buffer = match which {
            0 => &mut operands.a,
            1 => &mut operands.b,
            _ => &mut operands.c,
        };
        let waited = calls(fake, waits, || other.fill(buffer, bytemuck::Zeroable::zeroed()))?;
        check(waited >= 1, &format!("buffer {which}: a writer made {waited} waits for the product"))?;
        operands.multiply(&home, &product, one)?;
    }
    // Operands are only read: a reader on another stream need not wait.
    home.synchronize()?;
    other.synchronize()?;
    operands.multiply(&home, &product, one)?;
    let mut copy = other.zeros::<T>(4096)?;
    let waited = calls(fake, waits, || other.copy(&operands.a, &mut copy))?;
    check(waited == 0, "a reader waits for a product that reads too")?;
    let waited = calls(fake, waits, || other.copy(&operands.c, &mut copy))?;
    check(waited == 1, "a reader of the result does not wait for it")?;
    drop(operands);
    home.synchronize()?;
    other.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: the buffers of an epilogue are ordered like the operands.
fn order_of_epilogues(fake: &Fake, choice: Choice) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let (home, other) = (device.stream()?, device.stream()?);
    let mut operands = Operands::<bf16>::new(&home)?;
    let product = Product::new(64, 64, 64).by(choice);
    let mut buffers = [home.zeros::<bf16>(64)?, home.zeros(4096)?, home.zeros(4096)?];
    let waits = "cuStreamWaitEvent";
    let multiply = |operands: &mut Operands<bf16>, [bias, residual, aux]: &mut [DeviceBuffer<bf16>; 3]| {
        let epilogue = Epilogue::new().bias_of_columns(&*bias).residual(&*residual).aux(aux);
        let Operands { a, b, c } = operands;
        gemm_with(&home, &product, 1.0, a, b, 0.0, c, epilogue)
    };
    multiply(&mut operands, &mut buffers)?;
    for which in 0..3 {
        home.synchronize()?;
        other.fill(&mut buffers[which], bf16::from_f32(0.0))?;
        let waited = calls(fake, waits, || multiply(&mut operands, &mut buffers))?;
        check(waited == 1, &format!("buffer {which}: a product made {waited} waits for its writer"))?;
        let waited = calls(fake, waits, || other.fill(&mut buffers[which], bf16::from_f32(0.0)))?;
        check(waited == 1, &format!("buffer {which}: a writer made {waited} waits for the product"))?;
        multiply(&mut operands, &mut buffers)?;
    }
    home.synchronize()?;
    other.synchronize()?;
    // A reader waits for aux alone.
    multiply(&mut operands, &mut buffers)?;
    let mut copy = other.zeros::<bf16>(4096)?;
    let waited = calls(fake, waits, || other.copy(&buffers[1], &mut copy))?;
    check(waited == 0, "a reader of the residual waits for a product that reads it too")?;
    let waited = calls(fake, waits, || other.copy(&buffers[2], &mut copy))?;
    check(waited == 1, "a reader of aux does not wait for it")?;
    drop((operands, buffers));
    home.synchronize()?;
    other.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: one launch a product, three maps for the tensor cores (two where the result has none), nothing for what is empty
/// or refused.
fn launches(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let mut operands = Operands::<bf16>::new(&stream)?;
    let odd = Product::new(64, 63, 64).b(Operation::Transpose);
    for (product, launches, maps) in [
        (Product::new(64, 64, 64).by(SIMT), 1, 0),
        // Few tiles: the result has no map.
        (Product::new(64, 64, 64).by(WGMMA), 1, 2),
        (Product::new(16, 16, 64).batch(4, 0, 1024, 1024).by(WGMMA), 1, 2),
        (odd.by(WGMMA), 1, 2),
        (odd, 1, 2),
        (Product::new(64, 63, 64), 1, 0),
        (Product::new(64, 64, 0), 1, 0),
        (Product::new(0, 64, 64), 0, 0),
        (Product::new(64, 64, 64).batch(0, 0, 0, 0), 0, 0),
    ] {
        let before = (fake.launches(), fake.call_count("cuTensorMapEncodeTiled"));
        operands.multiply(&stream, &product, 1.0)?;
        let made = (fake.launches() - before.0, fake.call_count("cuTensorMapEncodeTiled") - before.1);
        check(made == (launches, maps), &format!("{product}: {made:?} launches and maps"))?;
    }
    // Large enough that operands are copied whose rows begin anywhere, both by one launch.
    let mut large = [stream.zeros::<bf16>(600 * 513)?, stream.zeros(600 * 513)?, stream.zeros(600 * 513)?];
    for (product, launches) in [
        (Product::new(513, 513, 513), 2),
        (Product::new(513, 512, 513), 2),
        (Product::new(513, 513, 520), 2),
        (Product::new(513, 513, 520).b(Operation::Transpose), 1),
    ] {
        let [a, b, c] = &mut large;
        let before = fake.launches();
        gemm(&stream, &product, 1.0, a, b, 0.0, c)?;
        let made = fake.launches() - before;
        check(made == launches, &format!("{product}: {made} launches"))?;
    }
    // Many tiles.
    let (a, b) = (stream.zeros::<bf16>(2600 * 200)?, stream.zeros::<bf16>(2600 * 200)?);
    let mut c = stream.zeros::<bf16>(2600 * 2600)?;
    let many = Product::new(2600, 2504, 200).b(Operation::Transpose).by(WGMMA);
    for (product, maps) in [
        (many, 3),
        (Product::new(2600, 2501, 200).b(Operation::Transpose).by(WGMMA), 2),
        // Rows of the result begin at multiples of 16 bytes, but end within one.
        (Product::new(2600, 2500, 200).b(Operation::Transpose).leading(200, 200, 2504).by(WGMMA), 2),
    ] {
        let made =
            calls(fake, "cuTensorMapEncodeTiled", || gemm(&stream, &product, 1.0, &a, &b, 0.0, &mut c))?;
        check(made == maps, &format!("{product}: {made} maps"))?;
    }
    let before = fake.launches();
    for refused in [
        Product::new(65, 64, 64),
        Product::new(64, 65, 64).leading(64, 65, 64),
        Product::new(16, 16, 16).batch(4, 0, 0, 255),
        Product::new(64, 63, 64).by(WGMMA),
        Product::new(64, 64, 0).by(WGMMA),
    ] {
        check(operands.multiply(&stream, &refused, 1.0).is_err(), &format!("{refused} was not refused"))?;
    }
    check(fake.launches() == before, "what is refused is not launched")?;
    stream.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: bulk copies bring in what two maps describe; other operands are read where they are.
fn launches_by_bulk_copies(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let mut reals = Operands::<f32>::new(&stream)?;
    let mut complex = Operands::<Complex<f32>>::new(&stream)?;
    let one = Complex::new(1.0, 0.0);
    let product = Product::new(48, 52, 40).by(SIMT);
    for (of_a, maps) in [
        (Operation::None, 2),
        (Operation::Transpose, 2),
        (Operation::Adjoint, 2),
        // Only real numbers stay what they are.
        (Operation::Conjugate, 0),
    ] {
        let product = product.a(of_a);
        let before = fake.launches();
        let made = calls(fake, "cuTensorMapEncodeTiled", || reals.multiply(&stream, &product, 1.0))?;
        check(made == 2, &format!("{product} of f32: {made} maps"))?;
        let made = calls(fake, "cuTensorMapEncodeTiled", || complex.multiply(&stream, &product, one))?;
        check(made == maps, &format!("{product} of c64: {made} maps"))?;
        check(fake.launches() - before == 2, &format!("{product}: one launch each"))?;
    }
    for (product, maps) in [
        (Product::new(47, 52, 40), 2),
        (Product::new(48, 52, 39), 0),
        (Product::new(48, 51, 40), 0),
        (Product::new(48, 51, 40).b(Operation::Transpose), 2),
        (Product::new(48, 52, 0), 0),
        (Product::new(16, 16, 16).batch(4, 256, 0, 256), 2),
        (Product::new(16, 16, 16).batch(4, 257, 0, 256), 0),
    ] {
        let made = calls(fake, "cuTensorMapEncodeTiled", || reals.multiply(&stream, &product, 1.0))?;
        check(made == maps, &format!("{product}: {made} maps"))?;
    }
    // From an element on that is at no multiple of 16 bytes.
    let (a, mut c) = (reals.a.slice(1..)?, stream.zeros::<f32>(4096)?);
    let made =
        calls(fake, "cuTensorMapEncodeTiled", || gemm(&stream, &product, 1.0, &a, &reals.b, 0.0, &mut c))?;
    check(made == 0, &format!("A anywhere: {made} maps"))?;
    stream.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: a product of doubles is one launch, of any layout and alignment, and where it is conjugated.
fn launches_of_doubles(fake: &Fake) -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let all = [Operation::None, Operation::Transpose, Operation::Conjugate, Operation::Adjoint];
    let (a, b) = (stream.zeros::<f64>(1100 * 1200)?, stream.zeros::<f64>(1100 * 1200)?);
    let mut c = stream.zeros::<f64>(1100 * 1200)?;
    let complex = [stream.zeros::<Complex<f64>>(530 * 520)?, stream.zeros(530 * 520)?];
    let mut complex_c = stream.zeros::<Complex<f64>>(530 * 520)?;
    let one = Complex::new(1.0, 0.0);
    let before = fake.launches();
    let mut products = 0;
    for (of_a, of_b) in all.into_iter().flat_map(|a| all.map(|b| (a, b))) {
        for size in [1, 33, 512] {
            let product =
                Product::new(size, size + 1, size + 3).a(of_a).b(of_b).by(Choice::Only(Engine::Mma));
            gemm(&stream, &product, 1.0, &a.slice(1..)?, &b, 1.0, &mut c)?;
            gemm(&stream, &product, one, &complex[0], &complex[1], one, &mut complex_c)?;
            products += 2;
        }
        let wide = Product::new(1100, 1150, 900).a(of_a).b(of_b);
        gemm(&stream, &wide, 1.0, &a, &b, 0.0, &mut c)?;
        products += 1;
    }
    check(fake.launches() - before == products, "a product of doubles is one launch")?;
    let refused = Product::new(64, 64, 64).by(Choice::Only(Engine::Wgmma));
    check(gemm(&stream, &refused, 1.0, &a, &b, 0.0, &mut c).is_err(), "wgmma does not multiply doubles")?;
    stream.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: captured, a product is part of a graph; after a reset its kernels are looked up again.
fn captured_and_reset(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let product = Product::new(64, 64, 64).by(WGMMA);
    let mut operands = Operands::<bf16>::new(&stream)?;
    operands.multiply(&stream, &product, 1.0)?;
    let (graph, ()) = stream.capture(|stream| operands.multiply(stream, &product, 1.0))?;
    check(graph.nodes()?.len() == 1, "a product is one node")?;
    let graph = graph.instantiate()?;
    let other = device.stream()?;
    other.fill(&mut operands.a, bf16::from_f32(1.0))?;
    let waited = calls(fake, "cuStreamWaitEvent", || graph.launch(&stream))?;
    check(waited == 1, "the graph waits for the writer of an operand")?;
    stream.synchronize()?;
    drop((graph, operands, stream, other));
    // SAFETY: nothing else uses CUDA in this process.
    let device = unsafe { device.reset()? };
    let stream = device.stream()?;
    Operands::<bf16>::new(&stream)?.multiply(&stream, &product, 1.0)?;
    stream.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: every family of kernels is loaded and looked up once a context, and after a reset nothing of the old one is used.
fn lookups_and_reset(fake: &Fake) -> Outcome {
    let mut device = Device::new(0)?;
    let product = Product::new(64, 64, 64);
    for round in 0..3 {
        let work = || -> selvedge::Result<()> {
            let stream = device.stream()?;
            Operands::<bf16>::new(&stream)?.multiply(&stream, &product.by(WGMMA), 1.0)?;
            Operands::<bf16>::new(&stream)?.multiply(&stream, &product.by(SIMT), 1.0)?;
            let x = Tensor::zeros(&[8, 4], DType::F32, &device.into())?;
            let index = Tensor::zeros(&[3], DType::I64, &device.into())?;
            x.index_select(0, &index)?;
            stream.synchronize()
        };
        // Later rounds have loaded one family already, below.
        let wanted = [if round == 0 { 3 } else { 2 }, 0];
        let first = [calls(fake, "cuModuleLoadDataEx", work)?, calls(fake, "cuModuleGetFunction", work)?];
        check(first == wanted, &format!("round {round}: {first:?} loads at first and lookups after that"))?;
        check(DeviceProperties::from_device(&device)?.multiprocessors > 0, "the properties are there")?;
        // SAFETY: nothing else uses CUDA in this process.
        let new = unsafe { device.reset()? };
        check(
            images::load(&device, "gemm_simt_bf16").is_err(),
            "a family of a context that is gone is an error",
        )?;
        device = new;
        check(images::load(&device, "gemm_simt_bf16")?.device() == device, "a module of the new context")?;
    }
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: what the environment excludes is not chosen.
fn environment(_: &Fake) -> Outcome {
    let properties = DeviceProperties::from_device(&Device::new(0)?)?;
    let product = Product::new(64, 64, 64);
    let explain = |product| Plan::explain(product, DType::BF16, DType::BF16, properties);
    match explain(&product) {
        Ok(plan) => println!("{plan}"),
        Err(error) => println!("{error}"),
    }
    match explain(&product.by(WGMMA)) {
        Ok(plan) => println!("asked for: {plan}"),
        Err(error) => println!("asked for: {error}"),
    }
    Ok(())
}

/// One child of this module by name.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    match arguments {
        [name] if name == "order_simt" => order::<f64>(fake, SIMT, 1.0),
        [name] if name == "order_bulk" => order::<f32>(fake, SIMT, 1.0),
        [name] if name == "order_mma" => order::<bf16>(fake, Choice::Only(Engine::Mma), 1.0),
        [name] if name == "order_mma_double" => order::<f64>(fake, Choice::Only(Engine::Mma), 1.0),
        [name] if name == "order_wgmma" => order::<bf16>(fake, WGMMA, 1.0),
        [name] if name == "epilogues_simt" => order_of_epilogues(fake, SIMT),
        [name] if name == "epilogues_wgmma" => order_of_epilogues(fake, WGMMA),
        [name] if name == "lookups_and_reset" => lookups_and_reset(fake),
        [name] if name == "launches" => launches(fake),
        [name] if name == "launches_by_bulk_copies" => launches_by_bulk_copies(fake),
        [name] if name == "launches_of_doubles" => launches_of_doubles(fake),
        [name] if name == "captured_and_reset" => captured_and_reset(fake),
        [name] if name == "environment" => environment(fake),
        other => Err(format!("no child {other:?}").into()),
    }
}

fn run(name: &str, settings: &[(&str, &str)]) -> Result<String, libtest_mimic::Failed> {
    children::must_succeed(&Variant::new(12040), "gemm", &[name.to_owned()], settings)
}

const NAMES: [&str; 12] = [
    "order_simt",
    "order_bulk",
    "order_mma",
    "order_mma_double",
    "order_wgmma",
    "epilogues_simt",
    "epilogues_wgmma",
    "launches",
    "launches_by_bulk_copies",
    "launches_of_doubles",
    "captured_and_reset",
    "lookups_and_reset",
];

/// The children whose kernels are embedded as PTX too.
const FROM_PTX: [&str; 5] =
    ["order_simt", "order_mma", "order_mma_double", "epilogues_simt", "launches_of_doubles"];

pub fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = NAMES
        .into_iter()
        .map(|name| (name, "", ""))
        .chain(FROM_PTX.map(|name| (name, "_from_ptx", "ptx")))
        .map(|(name, suffix, image)| {
            Test::new(format!("gemm::{name}{suffix}"), move || {
                run(name, &[("SELVEDGE_IMAGE", image)]).map(drop)
            })
        })
        .collect();
    for (name, setting, chosen, asked) in [
        ("nothing_set", ("SELVEDGE_GEMM", ""), ": wgmma\n", "asked for: 64x64x64 (nn)"),
        ("own", ("SELVEDGE_GEMM", "own"), ": wgmma\n", "asked for: 64x64x64 (nn)"),
        ("simt", ("SELVEDGE_GEMM", "simt"), ": simt\n", "asked for: 64x64x64 (nn)"),
        ("unknown", ("SELVEDGE_GEMM", "fastest"), "'fastest'", "asked for: 64x64x64 (nn)"),
        ("text", ("SELVEDGE_IMAGE", "ptx"), ": mma\n", "SELVEDGE_IMAGE=ptx"),
        ("older", ("SELVEDGE_ARCH", "sm_80"), ": mma\n", "SELVEDGE_ARCH=sm_80"),
        ("oldest", ("SELVEDGE_ARCH", "sm_70"), ": simt\n", "SELVEDGE_ARCH=sm_70"),
    ] {
        tests.push(Test::new(format!("gemm::environment_{name}"), move || {
            let said = run("environment", &[setting])?;
            match said.contains(chosen) && said.contains(asked) {
                true => Ok(()),
                false => Err(said.into()),
            }
        }));
    }
    tests
}
