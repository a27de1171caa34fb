//! A fused expression on large data beside the driver's own copy: the fraction of the memory's speed that it reaches.

use selvedge::driver::Device;
use selvedge::fuse::{DeviceInput, DeviceOutput, Graph};
use selvedge::types::{DType, Layout};

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
        "Device time, by events around it, of one launch of the fused f32 addition on vectors of 1 GiB, and of \
         the driver's own copy of 1 GiB. Speeds count every byte read and written: three vectors for the addition, \
         two for the copy. The sum is compared with the CPU's.",
    )?;
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let graph = Graph::new();
    let [x, y] = graph.inputs([DType::F32; 2]);
    let sum = graph.expression(&[x + y])?;
    let layout = Layout::contiguous(&[COUNT])?;
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
                    let inputs = [DeviceInput::new(&a, layout)?, DeviceInput::new(&b, layout)?];
                    Ok(sum.run(&stream, &inputs, &[], &mut [DeviceOutput::new(&mut c, layout)?])?)
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

    let found = stream.download(&c)?;
    if let Some(index) = (0..COUNT).find(|&index| found[index] != left[index] + right[index]) {
        return Err(format!("element {index} of the sum is {}", found[index]).into());
    }
    bare.free(source)?;
    bare.free(target)?;
    recorder.add(figure);
    recorder.finish(&options.out)
}
