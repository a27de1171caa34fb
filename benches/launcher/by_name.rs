//! The host's time for a run by name beside a bare `cuLaunchKernel` of the same kernel.

use std::ffi::c_void;
use std::time::Instant;

use selvedge::driver::{Argument, Device, LaunchConfig};
use selvedge::launcher::Launcher;
use selvedge::nvrtc::Cache;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const ACCUMULATE: &str = include_str!("../../csrc/bench/accumulate.ptx");
const BURST: usize = 256;
const COUNT: u32 = 32;
/// Other kernels with names, as a program has them.
const NAMES: usize = 40;

/// The form of a run.
#[derive(Clone, Copy)]
enum Form {
    Tuple,
    /// Without the lookup of a name.
    Held,
    List,
}

/// Bursts of launches, drained between, each of which adds a random step to a total that is checked at the end.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "run_by_name",
        "Run by name",
        "The host's time for one run by name with three arguments (two buffers and a count), one of 41 names, and by \
         the kernel that a lookup gave, as the mean over a burst of 256; the stream is drained between bursts, outside the clock. Every launch adds a random \
         step to a total that is checked at the end.",
    )?;
    let mut random = Random::new(1);
    let step: Vec<u32> = (0..COUNT).map(|_| random.bits() as u32).collect();

    let launcher = Launcher::with_cache(&Device::new(0)?, Cache::none())?;
    launcher.load("accumulate", ACCUMULATE)?;
    for number in 0..NAMES {
        launcher.load(&format!("accumulate_{number}"), ACCUMULATE)?;
    }
    let stream = launcher.stream();
    let own_step = stream.upload(&step)?;
    let mut own_total = stream.zeros::<u32>(COUNT as usize)?;

    let kernel = bare.kernel(ACCUMULATE, "accumulate")?;
    let mut words = bare.pinned(COUNT as usize * 4)?;
    let (mut step_address, mut total_address) =
        (bare.allocate(COUNT as usize * 4)?, bare.allocate(COUNT as usize * 4)?);
    bare.upload(total_address, &words)?;
    bare.synchronize()?;
    bytemuck::cast_slice_mut(words.words()).copy_from_slice(&step);
    bare.upload(step_address, &words)?;
    bare.synchronize()?;

    let (mut own_launches, mut bare_launches) = (0u32, 0u32);
    let held = launcher.kernel("accumulate")?;
    let config = LaunchConfig::new(1, COUNT);
    let forms = [
        ("a tuple", Some(60.0), Form::Tuple),
        ("a tuple, by the kernel itself", Some(60.0), Form::Held),
        ("a list made at run time", None, Form::List),
    ];
    for (name, goal, form) in forms {
        let figure = turns(
            options.turns(20, 2000),
            &Subject {
                name,
                against: "cuLaunchKernel",
                unit: Unit::Nanoseconds,
                bytes: None,
                rule: Rule::Extra,
                goal,
            },
            || {
                let start = Instant::now();
                for _ in 0..BURST {
                    // SAFETY: both buffers have COUNT elements, which is what the kernel reads and writes.
                    unsafe {
                        match form {
                            Form::Tuple => {
                                launcher.run("accumulate", 1, COUNT, (&mut own_total, &own_step, COUNT))?
                            }
                            Form::Held => held.run(stream, config, (&mut own_total, &own_step, COUNT))?,
                            Form::List => {
                                let list = [
                                    Argument::write(&mut own_total),
                                    Argument::read(&own_step),
                                    Argument::integer(COUNT),
                                ];
                                launcher.run("accumulate", 1, COUNT, &list)?
                            }
                        };
                    }
                }
                let taken = start.elapsed();
                stream.synchronize()?;
                own_launches += BURST as u32;
                Ok(taken.as_nanos() as f64 / BURST as f64)
            },
            || {
                let start = Instant::now();
                for _ in 0..BURST {
                    let mut count = COUNT;
                    let mut arguments: [*mut c_void; 3] = [
                        (&raw mut total_address).cast(),
                        (&raw mut step_address).cast(),
                        (&raw mut count).cast(),
                    ];
                    // SAFETY: the arguments are the kernel's two addresses and its count.
                    unsafe { bare.launch(kernel, 1, COUNT, &mut arguments) }?;
                }
                let taken = start.elapsed();
                bare.synchronize()?;
                bare_launches += BURST as u32;
                Ok(taken.as_nanos() as f64 / BURST as f64)
            },
        )?;
        recorder.add(figure);
    }

    let totals = |launches: u32| step.iter().map(move |step| step.wrapping_mul(launches));
    if !stream.download(&own_total)?.into_iter().eq(totals(own_launches)) {
        return Err("own launches: the total is not what the launches add up to".into());
    }
    bare.download(&mut words, total_address)?;
    bare.synchronize()?;
    if !bytemuck::cast_slice::<u64, u32>(words.words()).iter().copied().eq(totals(bare_launches)) {
        return Err("bare launches: the total is not what the launches add up to".into());
    }
    bare.free(step_address)?;
    bare.free(total_address)?;
    bare.free_pinned(words)?;
    recorder.finish(&options.out)
}
