//! The demonstration on a device: the sum by a kernel that is compiled here where there is NVRTC, the rest, and the sum
//! elsewhere, by the embedded ones.

use bytemuck::cast_slice;
use selvedge::driver::{Device, Module, Stream, driver_isa};
use selvedge::images;
use selvedge::nvrtc::{self, Cache, Program, Target};
use selvedge::{Error, Result};

use super::operation::{Add, Divide, Operation};
use super::{Trial, middle, operands, trial};
use crate::failure::{Failure, NO_DEVICE};
use crate::output::Progress;

/// Elements where none are asked for: 64 to 256 MiB an array, far beyond the caches.
pub const ON_A_DEVICE: usize = 1 << 24;
/// Timed launches, and copies, of which the median counts.
const ROUNDS: usize = 20;
/// Rounds before them.
const WARM_UP: usize = 3;
/// Elements of the CPU's result that are held against an independent computation.
const PROVEN: usize = 1 << 16;
/// The sum in CUDA C++.
const ADD: &str = include_str!("add.cu");

/// A loaded kernel's module and where it came from.
struct Origin {
    module: Module,
    text: String,
}

/// Why there is nothing to run on, where that is the reason; every other failure is one.
pub fn reason_for_the_cpu(failure: &Error) -> bool {
    Failure::from(failure.clone()).code == NO_DEVICE || matches!(failure, Error::UnsupportedImage { .. })
}

/// The device and the embedded kernels on it.
pub fn open(ordinal: usize) -> Result<(Device, Module)> {
    let device = Device::new(ordinal)?;
    let _progress = Progress::spinner("loading the embedded kernels");
    Ok((device, images::load(&device, "arithmetic")?))
}

/// Runs every operation on the device.
pub fn run(device: Device, module: &Module, elements: usize) -> Result<Vec<Trial>, Failure> {
    let stream = device.stream()?;
    let sum = sum(device, module)?;
    let embedded = Origin { module: module.clone(), text: embedded(module) };
    let progress = Progress::of_steps(&format!("computing on {}", device.name()), 3);
    let mut trials = vec![on_the_device::<Add>(&stream, &sum, elements)?];
    progress.set(1);
    trials.push(on_the_device::<Divide<f32>>(&stream, &embedded, elements)?);
    progress.set(2);
    trials.push(on_the_device::<Divide<f64>>(&stream, &embedded, elements)?);
    Ok(trials)
}

/// The sum's kernel from its source; the embedded one where there is no NVRTC, or one that does not fit this machine.
fn sum(device: Device, embedded_module: &Module) -> Result<Origin> {
    let _progress = Progress::spinner("compiling a kernel");
    let reason = match compiled(device) {
        Err(Error::LibraryUnavailable { .. }) => "there is no NVRTC here".to_owned(),
        Err(error @ Error::UnsupportedImage { .. }) => error.to_string(),
        result => return result,
    };
    let text = format!("{}; {reason}", embedded(embedded_module));
    Ok(Origin { module: embedded_module.clone(), text })
}

fn compiled(device: Device) -> Result<Origin> {
    let target = Target::for_device(device.compute_capability(), driver_isa()?)?;
    let compiled = Program::new("add.cu", ADD).compile(target, &Cache::standard())?;
    let module = device.load(compiled.image())?;
    let (major, minor) = nvrtc::version()?;
    let whence = if compiled.is_from_cache() { "taken from the cache" } else { "just now" };
    Ok(Origin { module, text: format!("compiled by NVRTC {major}.{minor} for {target}, {whence}") })
}

/// What the embedded kernels are, such as `embedded PTX for sm_60`.
fn embedded(module: &Module) -> String {
    let info = module.info();
    let target = info.targets.first().map(|target| format!(" for {target}")).unwrap_or_default();
    format!("embedded {}{target}", info.kind)
}

fn on_the_device<O: Operation>(stream: &Stream, origin: &Origin, elements: usize) -> Result<Trial, Failure> {
    let function = origin.module.function(O::KERNEL)?;
    let (left, right) = operands::<O>(elements)?;
    let (device_left, device_right) = (stream.upload(&left)?, stream.upload(&right)?);
    let mut out = stream.zeros::<O::Element>(elements)?;

    let config = images::elementwise_launch(elements, size_of::<O::Element>());
    let count = elements as u64;
    // SAFETY: KERNEL(const T*, const T*, T*, u64 n) touches the first n elements of each, which all three have.
    let mut launch =
        || unsafe { function.launch(stream, config, (&device_left, &device_right, &mut out, count)) };
    let time = median_of_events(stream, &mut launch)?;

    let found = stream.download(&out)?;
    let wanted: Vec<O::Element> =
        left.iter().zip(&right).map(|(left, right)| O::compute(*left, *right)).collect();
    let proven = elements.min(PROVEN);
    let wrong =
        |wrong: String| Failure::failed(format!("{} of {} ({}): {wrong}", O::NAME, O::KERNEL, origin.text));
    O::prove(&left[..proven], &right[..proven], &wanted[..proven]).map_err(wrong)?;
    // Bytes, so that the sign of a zero counts.
    if cast_slice::<_, u8>(&found) != cast_slice::<_, u8>(&wanted) {
        let same =
            |pair: &(&O::Element, &O::Element)| bytemuck::bytes_of(pair.0) == bytemuck::bytes_of(pair.1);
        let index = found.iter().zip(&wanted).position(|pair| !same(&pair)).unwrap_or_default();
        let (found, wanted) = (found[index], wanted[index]);
        return Err(wrong(format!("element {index} is {found:?} on the device and {wanted:?} on the CPU")));
    }
    let copy_time = median_of_events(stream, &mut || stream.copy(&device_left, &mut out))?;
    let verified = format!("bit for bit the CPU's, all {elements}");
    Ok(Trial { kernel: Some(origin.text.clone()), ..trial::<O>(elements, verified, time, copy_time) })
}

/// The median of some rounds, each between two events, queued together so that the host's part is not timed.
fn median_of_events(stream: &Stream, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    for _ in 0..WARM_UP {
        work()?;
    }
    let device = stream.device();
    let mut events = Vec::new();
    for _ in 0..ROUNDS {
        events.push((device.timing_event()?, device.timing_event()?));
    }
    for (start, end) in &mut events {
        start.record(stream)?;
        work()?;
        end.record(stream)?;
    }
    stream.synchronize()?;
    let mut times = Vec::new();
    for (start, end) in &events {
        times.push(f64::from(start.elapsed_ms(end)?) / 1e3);
    }
    Ok(middle(&mut times))
}
