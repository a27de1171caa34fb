//! Golden-ratio operations on a device: each worked number, and the CPU's result within the tolerance class of the operation.

use selvedge::tensor::Device;

use crate::support::{Outcome, device_tests};

#[path = "../../src/bin/selvedge/srt/worked/mod.rs"]
mod worked;

device_tests! { worked_numbers_are_met_and_agree_with_the_cpu }

fn worked_numbers_are_met_and_agree_with_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    let mut failures = Vec::new();
    for case in worked::cases().into_iter().filter(|case| !case.is_on_host()) {
        let name = format!("{} ({}, {})", case.operation, case.section, case.class.name());
        let (there, here) = (case.compute(&device)?, case.compute(&Device::cpu())?);
        if let (error, false) = case.error(&there) {
            failures.push(format!("{name}: {there:?}, wanted {:?}, error {error:e}", case.wanted));
        }
        if !case.agrees(&there, &here) {
            failures.push(format!("{name}: {there:?}, the CPU {here:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}
