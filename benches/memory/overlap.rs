//! Copies from and to pinned memory at the same time, while kernels run, beside the bare driver doing the same.

use std::time::Instant;

use selvedge::driver::{Device, LaunchConfig};

use crate::Options;
use crate::harness::bare::{Bare, Handle};
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const VECTOR_ADD: &str = include_str!("../../csrc/bench/vector_add.ptx");
const BYTES: usize = 256 << 20;
const WORDS: usize = BYTES / 8;
/// Elements of the kernels' vectors, of 256 MiB each, and the threads of a block.
const LENGTH: u32 = 1 << 26;
const BLOCK: u32 = 256;
/// Kernels of a round: on a card of 5 TB/s they need three times as long as the copies on a bus of 50 GB/s.
const KERNELS: usize = 120;

/// Both directions, with and without kernels.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "overlap",
        "Pinned copies both ways at once",
        "256 MiB to the device on one stream and 256 MiB from it on another, the host's time from the first call until \
         both are there; in the second figure while a third stream runs kernels that add vectors of 256 MiB, more of \
         them than the copies last. Random data, all of which is compared at the end.",
    )?;
    recorder.add(both_ways(bare, options, "256 MiB each way", 0, None)?);
    recorder.add(both_ways(bare, options, "256 MiB each way beside kernels", KERNELS, Some(0.97))?);
    recorder.finish(&options.out)
}

fn both_ways(
    bare: &Bare,
    options: &Options,
    name: &str,
    kernels: usize,
    goal: Option<f64>,
) -> Result<Figure, Failure> {
    let mut random = Random::new(7);
    let mut data = vec![0u64; WORDS];
    random.fill(&mut data);

    let device = Device::new(0)?;
    let (upward, downward, compute) = (device.stream()?, device.stream()?, device.stream()?);
    let function = device.load(VECTOR_ADD.as_bytes())?.function("vector_add")?;
    let (mut sent, mut received) = (device.pinned::<u64>(WORDS)?, device.pinned::<u64>(WORDS)?);
    random.fill(&mut sent);
    received.fill(0);
    let mut target = upward.zeros::<u64>(WORDS)?;
    let source = downward.upload(&data)?;
    let left = compute.zeros::<f32>(LENGTH as usize)?;
    let mut sum = compute.zeros::<f32>(LENGTH as usize)?;

    // Each has a stream of its own in the same context.
    let (bare_up, bare_down) = (Bare::open(0)?, Bare::open(0)?);
    let kernel = bare.kernel(VECTOR_ADD, "vector_add")?;
    let (mut bare_sent, mut bare_received) = (bare.pinned(BYTES)?, bare.pinned(BYTES)?);
    let (bare_target, bare_source) = (bare.allocate(BYTES)?, bare.allocate(BYTES)?);
    bare_sent.words().copy_from_slice(&data);
    bare.upload(bare_source, &bare_sent)?;
    bare.synchronize()?;
    bare_sent.words().copy_from_slice(&sent);
    let (mut bare_left, mut bare_sum) = (left.address(), sum.address());

    let mut idle = Some((sent, received));
    let config = LaunchConfig::new(LENGTH / BLOCK, BLOCK);
    let mut early = 0;
    let figure = turns(
        options.turns(3, 30),
        &Subject {
            name,
            against: "the bare driver",
            unit: Unit::Microseconds,
            bytes: Some((2 * BYTES as u64, 2 * BYTES as u64)),
            rule: Rule::Speed,
            goal,
        },
        || {
            let (sent, received) = idle.take().ok_or("the pinned buffers were lost")?;
            for _ in 0..kernels {
                // SAFETY: all three vectors have LENGTH elements; the sum is none of the other two.
                unsafe { function.launch(&compute, config, (&left, &left, &mut sum, LENGTH)) }?;
            }
            let start = Instant::now();
            let up = upward.upload_async(sent, &mut target)?;
            let down = downward.download_async(&source, received)?;
            let (sent, received) = (up.wait()?, down.wait()?);
            let taken = start.elapsed().as_secs_f64() * 1e6;
            early += usize::from(kernels > 0 && compute.is_idle()?);
            compute.synchronize()?;
            idle = Some((sent, received));
            Ok(taken)
        },
        || {
            for _ in 0..kernels {
                let mut length = LENGTH;
                let mut arguments: [Handle; 4] = [
                    (&raw mut bare_left).cast(),
                    (&raw mut bare_left).cast(),
                    (&raw mut bare_sum).cast(),
                    (&raw mut length).cast(),
                ];
                // SAFETY: the arguments are the kernel's three addresses and their length.
                unsafe { bare.launch(kernel, LENGTH / BLOCK, BLOCK, &mut arguments) }?;
            }
            let start = Instant::now();
            bare_up.upload(bare_target, &bare_sent)?;
            bare_down.download(&mut bare_received, bare_source)?;
            bare_up.synchronize()?;
            bare_down.synchronize()?;
            let taken = start.elapsed().as_secs_f64() * 1e6;
            bare.synchronize()?;
            Ok(taken)
        },
    )?;
    if early > 0 {
        return Err(format!("{name}: in {early} rounds the kernels ended before the copies").into());
    }

    let (sent, received) = idle.ok_or("the pinned buffers were lost")?;
    if received[..] != data[..] || upward.download(&target)?[..] != sent[..] {
        return Err(format!("{name}: own copies brought other data").into());
    }
    if bare_received.words() != &data[..] {
        return Err(format!("{name}: the bare download brought other data").into());
    }
    bare.download(&mut bare_received, bare_target)?;
    bare.synchronize()?;
    if bare_received.words() != &sent[..] {
        return Err(format!("{name}: the bare upload brought other data").into());
    }
    bare.free(bare_target)?;
    bare.free(bare_source)?;
    bare.free_pinned(bare_sent)?;
    bare.free_pinned(bare_received)?;
    Ok(figure)
}
