//! Compilation targets, and the best target for a device.
//!
//! Machine code needs no assembler at load time, and is chosen if this NVRTC knows the device. For a device newer than
//! NVRTC, the target is PTX of the newest architecture below it. The driver assembles it, which requires a driver as
//! new as that PTX.

use std::fmt;
use std::str::FromStr;

use super::cache::Cache;
use super::lookup;
use crate::error::{Error, Result};

/// A compilation target: `sm_80` selects machine code (a cubin), `compute_80` PTX.
///
/// ```
/// use selvedge::nvrtc::Target;
/// let target: Target = "sm_90a".parse()?;
/// assert_eq!(target.capability(), (9, 0));
/// assert!(!target.is_ptx());
/// assert_eq!(target.to_string(), "sm_90a");
/// assert!("sm90".parse::<Target>().is_err());
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    ptx: bool,
    /// Ten times the compute capability, such as 90.
    architecture: u32,
    /// Instructions that later architectures lack: `a` for this architecture alone, `f` for its family.
    suffix: Option<char>,
}

/// The architectures and versions that an NVRTC supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) version: (i32, i32),
    /// Ascending.
    pub(super) architectures: Vec<u32>,
}

impl Target {
    /// Returns the best target for a device of this compute capability, under a driver that accepts PTX up to
    /// `driver_isa`. It is machine code with the architecture's own instructions (`sm_90a`, `sm_86`) if this NVRTC
    /// knows it, and otherwise PTX of the newest architecture below.
    ///
    /// [`Cache::standard`] stores NVRTC's capabilities, so a process with a complete cache need not load it.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedImage`] if the device is older than all that NVRTC supports, or the PTX would be too new for
    /// the driver; [`Error::LibraryUnavailable`] without NVRTC.
    pub fn for_device(capability: (i32, i32), driver_isa: (i32, i32)) -> Result<Target> {
        Target::for_device_in(capability, driver_isa, &Cache::standard())
    }

    /// As [`Target::for_device`], with NVRTC's capabilities stored in this cache.
    ///
    /// # Errors
    ///
    /// As [`Target::for_device`].
    pub fn for_device_in(capability: (i32, i32), driver_isa: (i32, i32), cache: &Cache) -> Result<Target> {
        let capabilities = lookup::capabilities(cache)?;
        match best(capability, &capabilities) {
            Some(target) => Ok(target),
            None => ptx(capability, driver_isa, &capabilities, || lookup::isa(cache)),
        }
    }

    /// Returns the PTX target for a device: its own architecture, or the newest below that NVRTC knows.
    ///
    /// # Errors
    ///
    /// As [`Target::for_device`].
    pub fn ptx_for_device(capability: (i32, i32), driver_isa: (i32, i32)) -> Result<Target> {
        Target::ptx_for_device_in(capability, driver_isa, &Cache::standard())
    }

    /// As [`Target::ptx_for_device`], with NVRTC's capabilities stored in this cache.
    ///
    /// # Errors
    ///
    /// As [`Target::for_device`].
    pub fn ptx_for_device_in(
        capability: (i32, i32),
        driver_isa: (i32, i32),
        cache: &Cache,
    ) -> Result<Target> {
        ptx(capability, driver_isa, &lookup::capabilities(cache)?, || lookup::isa(cache))
    }

    /// Returns whether the target is PTX, not machine code.
    pub fn is_ptx(self) -> bool {
        self.ptx
    }

    /// The compute capability, such as (9, 0).
    pub fn capability(self) -> (i32, i32) {
        // At most three digits.
        let architecture = self.architecture as i32;
        (architecture / 10, architecture % 10)
    }

    /// Ten times the compute capability, in NVRTC's notation.
    pub(super) fn architecture(self) -> u32 {
        self.architecture
    }
}

fn architecture_of((major, minor): (i32, i32)) -> Option<u32> {
    let number = major.checked_mul(10)?.checked_add(minor)?;
    u32::try_from(number).ok().filter(|number| (10..1000).contains(number))
}

/// Returns machine code for exactly this device, if NVRTC knows it.
fn best(capability: (i32, i32), capabilities: &Capabilities) -> Option<Target> {
    let architecture = architecture_of(capability)?;
    // From 9.0 on, architectures have instructions of their own; NVRTC knows those names from 12.0 on.
    let own = architecture >= 90 && capabilities.version >= (12, 0);
    let known = capabilities.architectures.contains(&architecture);
    known.then_some(Target { ptx: false, architecture, suffix: own.then_some('a') })
}

/// Returns PTX of the newest architecture that NVRTC knows and the device runs, if the driver accepts it.
fn ptx(
    capability: (i32, i32),
    driver_isa: (i32, i32),
    capabilities: &Capabilities,
    isa: impl FnOnce() -> Result<(i32, i32)>,
) -> Result<Target> {
    let (major, minor) = capabilities.version;
    let device = format!("a device of compute capability {}.{}", capability.0, capability.1);
    let below = |known: &&u32| architecture_of(capability).is_some_and(|wanted| **known <= wanted);
    let Some(&architecture) = capabilities.architectures.iter().filter(below).max() else {
        return Err(Error::UnsupportedImage {
            found: format!("NVRTC {major}.{minor} compiles for {}", list(&capabilities.architectures)),
            wanted: format!("{device} needs an older NVRTC: name one by SELVEDGE_LIBNVRTC"),
        });
    };
    let isa = isa()?;
    if isa > driver_isa {
        return Err(Error::UnsupportedImage {
            found: format!("NVRTC {major}.{minor} writes PTX {}.{}", isa.0, isa.1),
            wanted: format!(
                "the driver takes PTX up to {}.{}: for {device} use a newer driver or an older NVRTC (SELVEDGE_LIBNVRTC)",
                driver_isa.0, driver_isa.1
            ),
        });
    }
    Ok(Target { ptx: true, architecture, suffix: None })
}

/// Formats `50, 52, 90` for errors.
pub(super) fn list(architectures: &[u32]) -> String {
    architectures.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", if self.ptx { "compute" } else { "sm" }, self.architecture)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

impl FromStr for Target {
    type Err = Error;

    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an unknown name.
    fn from_str(name: &str) -> Result<Target> {
        let parse = || {
            let (ptx, rest) = match name.strip_prefix("sm_") {
                Some(rest) => (false, rest),
                None => (true, name.strip_prefix("compute_")?),
            };
            let digits = rest.trim_end_matches(['a', 'f']);
            let suffix = rest.get(digits.len()..)?;
            let plain = (2..=3).contains(&digits.len())
                && suffix.len() <= 1
                && !digits.starts_with('0')
                && digits.bytes().all(|byte| byte.is_ascii_digit());
            let architecture = plain.then(|| digits.parse().ok())??;
            Some(Target { ptx, architecture, suffix: suffix.chars().next() })
        };
        parse().ok_or_else(|| {
            Error::invalid(
                "Target::from_str",
                format!("'{name}'"),
                "sm_80 or sm_90a for machine code, compute_80 for PTX",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(version: (i32, i32), architectures: &[u32]) -> Capabilities {
        Capabilities { version, architectures: architectures.to_vec() }
    }

    fn target(
        capability: (i32, i32),
        driver_isa: (i32, i32),
        known: &Capabilities,
        isa: (i32, i32),
    ) -> Result<String> {
        let target = match best(capability, known) {
            Some(target) => target,
            None => ptx(capability, driver_isa, known, || Ok(isa))?,
        };
        Ok(target.to_string())
    }

    #[test]
    fn names_are_read_and_written() {
        for name in ["sm_50", "sm_90a", "sm_100f", "compute_80", "compute_120", "compute_90a"] {
            assert_eq!(name.parse::<Target>().unwrap().to_string(), name);
        }
        for name in [
            "", "sm_", "sm_8", "80", "sm_080", "sm_80b", "sm_90aa", "sm_1000", "SM_80", "sm_8a0", "sm_+8",
            "compute_",
        ] {
            let error = name.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{name}'")), "{error}");
        }
        assert_eq!("sm_103".parse::<Target>().unwrap().capability(), (10, 3));
    }

    #[test]
    fn a_known_device_gets_machine_code() {
        let old = capabilities((11, 8), &[75, 80, 86, 90]);
        let new = capabilities((12, 9), &[75, 80, 86, 90, 100, 120]);
        assert_eq!(target((8, 6), (1, 0), &new, (8, 8)).unwrap(), "sm_86");
        assert_eq!(target((9, 0), (1, 0), &new, (8, 8)).unwrap(), "sm_90a");
        assert_eq!(target((12, 0), (1, 0), &new, (8, 8)).unwrap(), "sm_120a");
        assert_eq!(target((9, 0), (1, 0), &old, (7, 8)).unwrap(), "sm_90");
    }

    #[test]
    fn an_unknown_device_gets_ptx_of_the_newest_below() {
        let known = capabilities((12, 0), &[50, 80, 90]);
        assert_eq!(target((12, 0), (8, 0), &known, (8, 0)).unwrap(), "compute_90");
        assert_eq!(target((8, 9), (8, 8), &known, (8, 0)).unwrap(), "compute_80");
        let error = target((12, 0), (7, 8), &known, (8, 0)).unwrap_err().to_string();
        assert!(error.contains("NVRTC 12.0 writes PTX 8.0") && error.contains("up to 7.8"), "{error}");
        let error = target((3, 5), (8, 8), &known, (8, 0)).unwrap_err().to_string();
        assert!(error.contains("compiles for 50, 80, 90") && error.contains("3.5"), "{error}");
        for nonsense in [(-1, 0), (0, 0), (i32::MAX, i32::MAX), (1000, 0)] {
            assert!(target(nonsense, (8, 8), &known, (8, 0)).is_err(), "{nonsense:?}");
        }
    }
}
