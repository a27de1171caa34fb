//! An embedded kernel on large data beside the driver's own copy: how near the memory's speed the ground floors come.

use selvedge::driver::{Device, LaunchConfig, driver_isa};
use selvedge::images;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// Bytes of each vector, and of the copy.
const BYTES: usize = 1 << 30;
const COUNT: usize = BYTES / 4;

/// `a + b` of 1 GiB each in f32, in device time.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "vector_add",
        "Vector add at the memory's speed",
        "Device time, by events around it, of one launch of the embedded f32 addition on vectors of 1 GiB, and of \
         the driver's own copy of 1 GiB. Speeds count every byte read and written: three vectors for the addition, \
         two for the copy. The sum is compared with the CPU's.",
    )?;
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let image = images::select("arithmetic", device.compute_capability(), driver_isa()?)?;
    let function = device.load(&image.bytes()?)?.function("add_f32")?;
    let block = 256;
    let config = LaunchConfig::new(COUNT.div_ceil(images::items_per_thread(4) * block) as u32, block as u32);
    let (left, right) = (Random::new(5).floats(COUNT), Random::new(6).floats(COUNT));
    let (a, b) = (stream.upload(&left)?, stream.upload(&right)?);
    let mut c = stream.zeros::<f32>(COUNT)?;
    let raw_stream = stream.as_raw();

    let (source, target) = (bare.allocate(BYTES)?, bare.allocate(BYTES)?);
    let mut pinned = bare.pinned(BYTES)?;
    Random::new(7).fill(pinned.words());
    bare.upload(source, &pinned)?;
    bare.synchronize()?;
    bare.free_pinned(pinned)?;

    let figure = turns(
        options.turns(5, 40),
        &Subject {
            name: "a + b, f32, 1 GiB each",
            against: "cuMemcpyDtoDAsync of 1 GiB",
            unit: Unit::Microseconds,
            bytes: Some((3 * BYTES as u64, 2 * BYTES as u64)),
            rule: Rule::Speed,
            goal: None,
        },
        || {
            // SAFETY: the stream lives until the end of this function.
            let taken = unsafe {
                bare.device_time(raw_stream, || {
                    // SAFETY: the three buffers have COUNT elements, which is what the kernel reads and writes.
                    Ok(function.launch(&stream, config, (&a, &b, &mut c, COUNT as u64))?)
                })
            }?;
            Ok(taken * 1e3)
        },
        || {
            // SAFETY: the stream lives as long as the process.
            let taken = unsafe { bare.device_time(bare.stream, || bare.copy(target, source, BYTES)) }?;
            Ok(taken * 1e3)
        },
    )?;

    let sum = stream.download(&c)?;
    if let Some(index) = (0..COUNT).find(|&index| sum[index] != left[index] + right[index]) {
        return Err(format!("element {index} of the sum is {}", sum[index]).into());
    }
    bare.free(source)?;
    bare.free(target)?;
    recorder.add(figure);
    recorder.finish(&options.out)
}
