//! A kernel that has a name: its function on the device, or what stands in for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::build::{Found, Loaded};
use super::fallback::{self, HostFunction};
use crate::driver::{Function, KernelArguments, LaunchConfig, Stream};
use crate::error::{Error, Result};

/// Where a kernel came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A [`Function`] of the caller's.
    Function,
    /// An image.
    Image,
    /// A program, compiled by NVRTC.
    Source {
        /// Whether it had been compiled before.
        from_cache: bool,
    },
}

/// Which way a run took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// The kernel was launched on the device.
    Device,
    /// The kernel cannot be had, and its fallback ran on the CPU; it is done.
    Fallback,
}

/// A kernel that has a name. Cheap to clone; it stays what it is when its name is entered anew.
#[derive(Clone)]
pub struct Kernel(Arc<KernelState>);

struct KernelState {
    name: String,
    way: Way,
    taken: AtomicU64,
}

enum Way {
    Device { function: Function, origin: Origin, log: String, _program: Option<Arc<Loaded>> },
    Host { function: HostFunction, reason: Error },
}

impl Kernel {
    pub(super) fn on_device(name: String, found: Found) -> Kernel {
        let Found { function, origin, log, program } = found;
        Kernel::of(name, Way::Device { function, origin, log, _program: program })
    }

    /// A fallback, and why it is needed.
    pub(super) fn on_host(name: String, function: HostFunction, reason: Error) -> Kernel {
        Kernel::of(name, Way::Host { function, reason })
    }

    fn of(name: String, way: Way) -> Kernel {
        Kernel(Arc::new(KernelState { name, way, taken: AtomicU64::new(0) }))
    }

    /// The name that it was entered under.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The driver's function, where the kernel could be had: for its attributes, occupancy and graphs.
    ///
    /// # Errors
    ///
    /// Why it could not be had, where a fallback stands in.
    pub fn function(&self) -> Result<&Function> {
        match &self.0.way {
            Way::Device { function, .. } => Ok(function),
            Way::Host { reason, .. } => Err(reason.clone()),
        }
    }

    /// Where it came from; `None` for a fallback.
    pub fn origin(&self) -> Option<Origin> {
        match &self.0.way {
            Way::Device { origin, .. } => Some(*origin),
            Way::Host { .. } => None,
        }
    }

    /// What the compiler or the assembler printed; mostly empty.
    pub fn log(&self) -> &str {
        match &self.0.way {
            Way::Device { log, .. } => log,
            Way::Host { .. } => "",
        }
    }

    /// How often the fallback was taken.
    pub fn fallbacks_taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Whether arguments of this type fit the kernel, as its first run with them asks. A fallback says so only when it runs.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] or [`Error::ArgumentMismatch`].
    pub fn accepts<A: KernelArguments>(&self) -> Result<()> {
        match &self.0.way {
            Way::Device { function, .. } => function.accepts::<A>(),
            Way::Host { .. } => Ok(()),
        }
    }

    /// Runs the kernel, as [`Launcher::run_on`](super::Launcher::run_on).
    ///
    /// # Errors
    ///
    /// Those of [`Function::launch`], where nothing was launched; those of a fallback.
    ///
    /// # Safety
    ///
    /// As [`Function::launch`].
    #[inline]
    pub unsafe fn run<A: KernelArguments>(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: A,
    ) -> Result<Ran> {
        match &self.0.way {
            Way::Device { function, .. } => {
                // SAFETY: the caller vouches for it.
                unsafe { function.launch(stream, config, arguments)? };
                Ok(Ran::Device)
            }
            Way::Host { function, reason } => self.fall_back(function, reason, stream, config, &arguments),
        }
    }

    #[cold]
    fn fall_back(
        &self,
        function: &HostFunction,
        reason: &Error,
        stream: &Stream,
        config: LaunchConfig,
        arguments: &impl KernelArguments,
    ) -> Result<Ran> {
        let name = self.name();
        if self.0.taken.fetch_add(1, Ordering::Relaxed) == 0 {
            log::warn!("kernel '{name}' runs on the CPU: {reason}");
        } else {
            log::debug!("kernel '{name}' runs on the CPU again");
        }
        fallback::run(name, function, stream, config, &arguments.describe())?;
        Ok(Ran::Fallback)
    }
}

/// A kernel of the caller's own, by its name.
impl From<Function> for Kernel {
    fn from(function: Function) -> Kernel {
        let name = function.name().to_owned();
        let found = Found { function, origin: Origin::Function, log: String::new(), program: None };
        Kernel::on_device(name, found)
    }
}

impl From<&Function> for Kernel {
    fn from(function: &Function) -> Kernel {
        function.clone().into()
    }
}

impl From<&Kernel> for Kernel {
    fn from(kernel: &Kernel) -> Kernel {
        kernel.clone()
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.way {
            Way::Device { function, origin, .. } => {
                write!(formatter, "Kernel({}, {function:?}, {origin:?})", self.name())
            }
            Way::Host { .. } => write!(formatter, "Kernel({}, a fallback)", self.name()),
        }
    }
}
