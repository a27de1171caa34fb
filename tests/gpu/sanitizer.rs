//! A kernel that writes past its buffer, to prove that a run under compute-sanitizer can fail: with `SELVEDGE_POOL=none` and
//! `--ignored seeded_out_of_bounds` memcheck must report it. Without a checker it passes quietly, because the driver's
//! pages are larger than the buffer.

use selvedge::driver::LaunchConfig;

use crate::support::{Lab, Outcome, device_tests};

device_tests! { seeded_out_of_bounds => on_request() }

fn seeded_out_of_bounds() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("write_past_the_end")?;
    let mut values = lab.stream.zeros::<u32>(1000)?;
    // SAFETY: not safe: element 1000 of 1000 is written, into the rest of the driver's page. A checker has to see it.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 256), (&mut values, 1000u32))? };
    lab.stream.synchronize()?;
    Ok(())
}
