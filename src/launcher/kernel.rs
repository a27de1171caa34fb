//! Named kernels: a function on the device, or its fallback.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::build::{BuiltKernel, Loaded};
use super::fallback::{self, HostFunction};
use crate::driver::{Function, KernelArguments, LaunchConfig, Stream};
use crate::error::{Error, Result};

/// The origin of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A [`Function`] of the caller.
    Function,
    /// An image.
    Image,
    /// A program, compiled by NVRTC.
    Source {
        /// True if it had been compiled before.
        from_cache: bool,
    },
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchOutcome {
    /// The kernel was launched on the device.
    Device,
    /// The kernel is unavailable, and its fallback ran on the CPU to the end.
    Fallback,
}

/// A named kernel. Cheap to clone; a later definition of its name does not change it.
#[derive(Clone)]
pub struct Kernel(Arc<KernelState>);

struct KernelState {
    name: String,
    backend: KernelBackend,
    taken: AtomicU64,
}

enum KernelBackend {
    Device { function: Function, origin: Origin, log: String, _program: Option<Arc<Loaded>> },
    Host { function: HostFunction, reason: Error },
}

impl Kernel {
    pub(super) fn on_device(name: String, found: BuiltKernel) -> Kernel {
        let BuiltKernel { function, origin, log, program } = found;
        Kernel::of(name, KernelBackend::Device { function, origin, log, _program: program })
    }

    /// A fallback, and the reason for it.
    pub(super) fn on_host(name: String, function: HostFunction, reason: Error) -> Kernel {
        Kernel::of(name, KernelBackend::Host { function, reason })
    }

    fn of(name: String, backend: KernelBackend) -> Kernel {
        Kernel(Arc::new(KernelState { name, backend, taken: AtomicU64::new(0) }))
    }

    /// The name of its definition.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The driver's function, for its attributes, occupancy and graphs.
    ///
    /// # Errors
    ///
    /// The reason why the kernel is unavailable, if its fallback replaces it.
    pub fn function(&self) -> Result<&Function> {
        match &self.0.backend {
            KernelBackend::Device { function, .. } => Ok(function),
            KernelBackend::Host { reason, .. } => Err(reason.clone()),
        }
    }

    /// The origin; `None` for a fallback.
    pub fn origin(&self) -> Option<Origin> {
        match &self.0.backend {
            KernelBackend::Device { origin, .. } => Some(*origin),
            KernelBackend::Host { .. } => None,
        }
    }

    /// The log of the compiler or the assembler; usually empty.
    pub fn log(&self) -> &str {
        match &self.0.backend {
            KernelBackend::Device { log, .. } => log,
            KernelBackend::Host { .. } => "",
        }
    }

    /// How often the fallback ran.
    pub fn fallbacks_taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Checks that arguments of this type fit the kernel, as its first run with them does. A fallback checks them only
    /// when it runs.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] or [`Error::ArgumentMismatch`].
    pub fn accepts<A: KernelArguments>(&self) -> Result<()> {
        match &self.0.backend {
            KernelBackend::Device { function, .. } => function.accepts::<A>(),
            KernelBackend::Host { .. } => Ok(()),
        }
    }

    /// Runs the kernel, as [`Launcher::run_on`](super::Launcher::run_on).
    ///
    /// # Errors
    ///
    /// The errors of [`Function::launch`], with nothing launched, or the fallback's error.
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
    ) -> Result<LaunchOutcome> {
        match &self.0.backend {
            KernelBackend::Device { function, .. } => {
                // SAFETY: the caller vouches for it.
                unsafe { function.launch(stream, config, arguments)? };
                Ok(LaunchOutcome::Device)
            }
            KernelBackend::Host { function, reason } => {
                self.fall_back(function, reason, stream, config, &arguments)
            }
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
    ) -> Result<LaunchOutcome> {
        let name = self.name();
        if self.0.taken.fetch_add(1, Ordering::Relaxed) == 0 {
            log::warn!("kernel '{name}' runs on the CPU: {reason}");
        } else {
            log::debug!("kernel '{name}' runs on the CPU again");
        }
        fallback::run(name, function, stream, config, &arguments.describe())?;
        Ok(LaunchOutcome::Fallback)
    }
}

/// Wraps a function of the caller, under its own name.
impl From<Function> for Kernel {
    fn from(function: Function) -> Kernel {
        let name = function.name().to_owned();
        let found = BuiltKernel { function, origin: Origin::Function, log: String::new(), program: None };
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
        match &self.0.backend {
            KernelBackend::Device { function, origin, .. } => {
                write!(formatter, "Kernel({}, {function:?}, {origin:?})", self.name())
            }
            KernelBackend::Host { .. } => write!(formatter, "Kernel({}, a fallback)", self.name()),
        }
    }
}
