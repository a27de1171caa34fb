//! Launches that may begin before the kernel ahead of them has ended: which launches have the attribute, and which not.
//!
//! The fake refuses the attribute in each case that no documentation allows, so the library asks for it in no such case.

use std::ffi::c_int;
use std::sync::Mutex;

use half::bf16;
use selvedge::Error;
use selvedge::driver::{Device, DeviceBuffer, Function, LaunchConfig, Stream};
use selvedge::gemm::{Choice, Engine, Product, gemm};

use super::children;
use super::kernels::PTX;
use super::support::{Fake, FakeLaunch};
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const LENGTH: usize = 64;

/// Of each kernel that ran, whether it was allowed to overlap the one ahead.
static RAN: Mutex<Vec<bool>> = Mutex::new(Vec::new());

extern "C" fn record_launch(launch: *const FakeLaunch) -> c_int {
    if let Ok(mut ran) = RAN.lock() {
        // SAFETY: the fake gives a launch that lives as long as the call.
        ran.push(unsafe { &*launch }.is_programmatic());
    }
    0
}

/// Returns the kernels that ran since the last call, true for those that may overlap.
fn ran(stream: &Stream) -> Result<Vec<bool>, Error> {
    stream.synchronize()?;
    Ok(RAN.lock().map(|mut ran| std::mem::take(&mut *ran)).unwrap_or_default())
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, not {wanted:?}").into()) }
}

/// Two launches of `make`, of which the second may overlap the first.
fn two(stream: &Stream, make: &Function, a: &mut DeviceBuffer<u8>) -> Result<(), Error> {
    let config = LaunchConfig::new(1, 32);
    // SAFETY: `make` writes `LENGTH` bytes; the fake's kernels run one after the other.
    unsafe {
        make.launch(stream, config, (&mut *a, LENGTH as u64, 1u32))?;
        make.launch(stream, config.programmatic_dependent(), (a, LENGTH as u64, 2u32))
    }
}

/// Child: launches of any kernel; `live` and `captured` say what the driver and the device allow.
fn launches(fake: &Fake, [capability, live, captured]: [i32; 3]) -> Outcome {
    fake.set_capability(capability);
    fake.set_runner(Some(record_launch));
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let make = device.load(PTX.as_bytes())?.function("make")?;
    let mut a = stream.zeros::<u8>(LENGTH)?;
    two(&stream, &make, &mut a)?;
    equal("launched", ran(&stream)?, vec![false, live != 0])?;
    let (graph, ()) = stream.capture(|stream| two(stream, &make, &mut a))?;
    match graph.nodes() {
        Err(Error::MissingSymbol { .. }) => {}
        nodes => equal("its order", nodes?[1].after(), &[0])?,
    }
    graph.instantiate()?.launch(&stream)?;
    equal("captured", ran(&stream)?, vec![false, captured != 0])?;
    // In a part of a graph they are plain ones, and behind it they are not.
    let condition = stream.upload(&[1u32])?;
    let graph = stream.capture(|stream| {
        stream.run_if(&condition, |stream| two(stream, &make, &mut a))?;
        two(stream, &make, &mut a)
    });
    match graph {
        Err(Error::MissingSymbol { .. }) => return Ok(()),
        graph => graph?.0.instantiate()?.launch(&stream)?,
    }
    // The first one sets the condition.
    equal("in a part", ran(&stream)?, vec![false, false, false, false, captured != 0])
}

/// Child: products on Hopper's tensor cores overlap the kernel ahead of them, unless the caller forbids it; others do not.
fn products(fake: &Fake) -> Outcome {
    fake.set_runner(Some(record_launch));
    let stream = Device::new(0)?.stream()?;
    let (a, b) = (stream.zeros::<bf16>(4096)?, stream.zeros::<bf16>(4096)?);
    let mut c = stream.zeros::<bf16>(4096)?;
    ran(&stream)?;
    let product = Product::new(64, 64, 64);
    let mut multiply = |stream: &Stream, product: &Product| gemm(stream, product, 1.0, &a, &b, 0.0, &mut c);
    for algorithm in ["persistent/64", "split-k/128x64x1", "split-k/128x16x1/swapped"] {
        let product = product.with_algorithm(algorithm.parse()?);
        multiply(&stream, &product)?;
        multiply(&stream, &product.overlapping(false))?;
        equal(algorithm, ran(&stream)?, vec![true, false])?;
    }
    for engine in [Engine::Mma, Engine::Simt] {
        multiply(&stream, &product.by(Choice::Only(engine)))?;
        equal("another engine", ran(&stream)?, vec![false])?;
    }
    // A graph keeps it, is looked at as ever, and takes over only one that overlaps in the same places.
    let product = product.by(Choice::Only(Engine::Wgmma));
    let mut record = |product: Product| {
        stream.capture(|stream| (0..3).try_for_each(|_| multiply(stream, &product))).map(|(graph, ())| graph)
    };
    let (graph, same, other) = (record(product)?, record(product)?, record(product.overlapping(false))?);
    let after: Vec<Vec<usize>> = graph.nodes()?.iter().map(|node| node.after().to_vec()).collect();
    equal("the order of three products", after, vec![vec![], vec![0], vec![1]])?;
    equal("arrows", graph.to_dot()?.matches("->").count(), 2)?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.update(same).map_err(Error::from)?;
    graph.launch(&stream)?;
    equal("a graph of three, and its update", ran(&stream)?, vec![true; 6])?;
    match graph.update(other).map_err(|refused| *refused.error) {
        Err(Error::GraphNotUpdatable { .. }) => {}
        other => return Err(format!("an update by plain launches: {other:?}").into()),
    }
    graph.launch(&stream)?;
    equal("the graph as it was", ran(&stream)?, vec![true; 3])
}

/// One child of this module by name.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    let numbers: Vec<i32> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    match <[i32; 3]>::try_from(numbers) {
        Ok(numbers) => launches(fake, numbers)?,
        Err(_) => products(fake)?,
    }
    let violations = fake.violations();
    if violations.is_empty() { Ok(()) } else { Err(violations.join("\n").into()) }
}

pub fn tests() -> Vec<Test> {
    let mut tests = vec![Test::new("overlaps::products", || {
        children::must_succeed(&Variant::new(12040), "overlaps", &[], &[]).map(drop)
    })];
    for (name, version, numbers) in [
        ("everywhere", 12040, [90, 1, 1]),
        ("not_in_captures_before_12_3", 12020, [90, 1, 0]),
        ("not_before_11_8", 11070, [90, 0, 0]),
        ("not_without_attributes", 11050, [90, 0, 0]),
        ("not_on_older_devices", 12040, [80, 0, 0]),
    ] {
        tests.push(Test::new(format!("overlaps::{name}"), move || {
            let arguments = numbers.map(|number| number.to_string());
            children::must_succeed(&Variant::new(version), "overlaps", &arguments, &[]).map(drop)
        }));
    }
    tests
}
