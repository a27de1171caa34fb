//! The architectures that images are compiled for: their names, their order, and which device runs which.

use crate::driver::image::{ArchitectureSuffix, TargetArchitecture};

/// Reads `sm_` and a number of two or three digits, the last of which is the minor one, with an `a` or without.
pub(super) fn parse(name: &str) -> Option<TargetArchitecture> {
    let digits = name.strip_prefix("sm_")?;
    let (digits, suffix) = match digits.strip_suffix('a') {
        Some(digits) => (digits, ArchitectureSuffix::Architecture),
        None => (digits, ArchitectureSuffix::None),
    };
    if !(2..=3).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i32 = digits.parse().ok()?;
    (number >= 10).then_some(TargetArchitecture { capability: (number / 10, number % 10), suffix })
}

/// The order of targets, with `sm_90a` just above `sm_90`: of those that fit a device, the greatest uses most of it.
pub(super) fn order(target: TargetArchitecture) -> ((i32, i32), bool) {
    (target.capability, target.suffix != ArchitectureSuffix::None)
}

/// Returns true where PTX for the target can be assembled for a device of this capability: for any that is not older, and with a
/// letter for its own.
pub(super) fn assembles_for(target: TargetArchitecture, device: (i32, i32)) -> bool {
    if target.suffix == ArchitectureSuffix::None {
        target.capability <= device
    } else {
        target.capability == device
    }
}

/// Returns true where machine code for the target runs on a device of this capability: on one of the same major number that is not
/// older, and with a letter on its own.
pub(super) fn runs_on(target: TargetArchitecture, device: (i32, i32)) -> bool {
    assembles_for(target, device) && target.capability.0 == device.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> TargetArchitecture {
        parse(name).unwrap()
    }

    #[test]
    fn names_are_read() {
        for name in ["sm_60", "sm_75", "sm_90a", "sm_100", "sm_120a"] {
            assert_eq!(target(name).to_string(), name);
        }
        for name in
            ["", "80", "sm_", "sm_8", "sm_09", "sm_80b", "sm_+8", "sm_1000", "SM_80", "compute_80", "sm_80 "]
        {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn targets_are_ordered_by_what_they_use() {
        let names = ["sm_60", "sm_90", "sm_90a", "sm_100"];
        assert!(names.windows(2).all(|pair| order(target(pair[0])) < order(target(pair[1]))));
    }

    #[test]
    fn devices_run_what_fits_them() {
        assert!(assembles_for(target("sm_60"), (12, 0)));
        assert!(!assembles_for(target("sm_90"), (8, 9)));
        assert!(assembles_for(target("sm_90a"), (9, 0)));
        assert!(!assembles_for(target("sm_90a"), (10, 0)));
        assert!(runs_on(target("sm_80"), (8, 6)));
        assert!(!runs_on(target("sm_80"), (9, 0)));
        assert!(!runs_on(target("sm_90a"), (9, 3)));
    }
}
