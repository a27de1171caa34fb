//! The architectures that images are compiled for, and which device runs which.

use std::fmt;

/// An architecture, such as `sm_80` or `sm_90a`.
///
/// The order is by capability, with `sm_90a` just above `sm_90`: of the targets that fit a device, the greatest one uses
/// most of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The compute capability, such as (9, 0).
    pub capability: (i32, i32),
    /// Whether the code uses what only this architecture has (the `a`), and so runs on no other.
    pub specific: bool,
}

impl Target {
    /// Reads `sm_` and a number of two or three digits, the last of which is the minor one, with an `a` or without.
    pub fn parse(name: &str) -> Option<Target> {
        let digits = name.strip_prefix("sm_")?;
        let (digits, specific) = match digits.strip_suffix('a') {
            Some(digits) => (digits, true),
            None => (digits, false),
        };
        if !(2..=3).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: i32 = digits.parse().ok()?;
        if number < 10 {
            return None;
        }
        Some(Target { capability: (number / 10, number % 10), specific })
    }

    /// Whether PTX for this target can be assembled for a device of this capability: for any that is not older, and with
    /// an `a` for its own.
    pub fn assembles_for(self, device: (i32, i32)) -> bool {
        if self.specific { self.capability == device } else { self.capability <= device }
    }

    /// Whether machine code for this target runs on a device of this capability: on one of the same major number that is
    /// not older, and with an `a` on its own.
    pub fn runs_on(self, device: (i32, i32)) -> bool {
        self.assembles_for(device) && self.capability.0 == device.0
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.capability;
        write!(formatter, "sm_{major}{minor}{}", if self.specific { "a" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        Target::parse(name).unwrap()
    }

    #[test]
    fn names_are_read_and_written() {
        for name in ["sm_60", "sm_75", "sm_90a", "sm_100", "sm_120a"] {
            assert_eq!(target(name).to_string(), name);
        }
        for name in
            ["", "80", "sm_", "sm_8", "sm_09", "sm_80b", "sm_+8", "sm_1000", "SM_80", "compute_80", "sm_80 "]
        {
            assert_eq!(Target::parse(name), None, "{name}");
        }
    }

    #[test]
    fn targets_are_ordered_by_what_they_use() {
        assert!(target("sm_60") < target("sm_90"));
        assert!(target("sm_90") < target("sm_90a"));
        assert!(target("sm_90a") < target("sm_100"));
    }

    #[test]
    fn devices_run_what_fits_them() {
        assert!(target("sm_60").assembles_for((12, 0)));
        assert!(!target("sm_90").assembles_for((8, 9)));
        assert!(target("sm_90a").assembles_for((9, 0)));
        assert!(!target("sm_90a").assembles_for((10, 0)));
        assert!(target("sm_80").runs_on((8, 6)));
        assert!(!target("sm_80").runs_on((9, 0)));
        assert!(!target("sm_90a").runs_on((9, 3)));
    }
}
