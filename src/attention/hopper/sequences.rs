//! The device-side errors of sequences whose numbers in device memory do not fit, which `check_sequence` of attention.cuh reports.

use crate::attention::Pass;
use crate::driver::{KernelError, KernelReport};
use crate::error::Error;

static ERRORS: [KernelError; 2] =
    [KernelError::new("attention::forward", unfit), KernelError::new("attention::backward", unfit)];

/// Returns the error of the kernels of a pass.
pub(super) fn unfit_sequence(pass: Pass) -> &'static KernelError {
    &ERRORS[usize::from(pass == Pass::Backward)]
}

/// The axis that a kernel reports for a sequence that begins before the end of the one before it, above the number's place.
const BEFORE_THE_END: usize = 4;

fn unfit(report: &KernelReport) -> Error {
    const NUMBERS: [&str; 4] = ["first query", "number of queries", "first key", "number of keys"];
    let (sequence, limit) = (report.size >> 32, report.size as u32);
    let axis = report.axis.unwrap_or(0);
    let name = NUMBERS[axis % NUMBERS.len()];
    let wanted = if axis < BEFORE_THE_END {
        format!("a {name} of 0 to {limit}")
    } else {
        format!("a {name} of at least {limit}, where the sequence before ends")
    };
    Error::invalid(report.operation, format!("a {name} of {} in sequence {sequence}", report.index), wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_name_the_number_its_sequence_and_the_limit() {
        let report = |axis, index| KernelReport {
            operation: unfit_sequence(Pass::Backward).operation(),
            axis: Some(axis),
            index,
            size: 3 << 32 | 129,
        };
        for (report, wanted) in [
            (
                report(1, 1129),
                ["a number of queries of 1129 in sequence 3", "a number of queries of 0 to 129"],
            ),
            (report(2, -1), ["a first key of -1 in sequence 3", "a first key of 0 to 129"]),
            (
                report(4, 5),
                ["a first query of 5 in sequence 3", "at least 129, where the sequence before ends"],
            ),
        ] {
            let found = unfit(&report).to_string();
            assert!(found.starts_with("attention::backward: "), "{found}");
            assert!(wanted.iter().all(|part| found.contains(part)), "{found}");
        }
    }
}
