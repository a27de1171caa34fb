//! Kernels by name, from source or image: compiled, loaded, checked, launched and cached.
//!
//! A [`Launcher`] is a device with a table of names. [`compile`](Launcher::compile) and [`load`](Launcher::load) define
//! a name, and [`run`](Launcher::run) launches it. A [`Definition`] has more options: a program with options and
//! headers, both an image and a program in order of preference, one kernel of an image with several, and a fallback.
//! [`kernel!`](crate::kernel) creates a typed function from a declaration. [`GpuCompute`] is a launcher behind one call for each
//! step, with arguments in one vector.
//!
//! A name is defined before its first run, because loading waits for running kernels and compiling takes long. The
//! caller chooses when both happen, and gets the errors of a source or an image there, once.
//!
//! Invariants:
//!
//! - A run by name costs one lookup under a shared lock, and a launch of the driver layer; a tuple needs no allocation.
//! - Images are identified by their content: no image is loaded twice while a user holds it (`shared`).
//! - A fallback is never silent: it is logged, counted, and reported in the result of a run. It replaces an unavailable
//!   kernel, and never covers wrong arguments or failed launches.
//!
//! ```no_run
//! use selvedge::driver::Device;
//! use selvedge::launcher::Launcher;
//!
//! # fn main() -> selvedge::Result<()> {
//! let launcher = Launcher::new(&Device::new(0)?)?;
//! launcher.compile(
//!     "add",
//!     "__global__ void add(const float *a, const float *b, float *sum, unsigned n) {
//!          unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//!          if (i < n) sum[i] = a[i] + b[i];
//!      }",
//! )?;
//! let stream = launcher.stream();
//! let (a, b) = (stream.upload(&[1.0f32; 1024])?, stream.upload(&[2.0f32; 1024])?);
//! let mut sum = stream.zeros::<f32>(1024)?;
//! // SAFETY: add touches n = 1024 elements of each buffer.
//! unsafe { launcher.run("add", 4, 256, (&a, &b, &mut sum, 1024u32))? };
//! assert_eq!(stream.download(&sum)?, [3.0; 1024]);
//! # Ok(())
//! # }
//! ```

mod build;
mod compute;
mod declare;
mod definition;
mod fallback;
mod kernel;
mod names;
mod shared;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::driver::{Device, Dim3, KernelArguments, LaunchConfig, Stream, check_not_forked};
use crate::error::{Error, Result};
use crate::nvrtc::{Cache, Program};

pub use compute::{GpuArg, GpuCompute};
#[doc(hidden)]
pub use declare::__kernel;
pub use definition::{Definition, Prefer};
pub use fallback::{Fallback, HostArgument, HostFunction, HostLaunch};
pub use kernel::{Kernel, LaunchOutcome, Origin};

/// The kernels of a device by name. Cheap to clone; clones share their names, and any thread may use them.
#[derive(Clone)]
pub struct Launcher(Arc<LauncherState>);

struct LauncherState {
    device: Device,
    stream: Stream,
    cache: Cache,
    kernels: RwLock<HashMap<String, Kernel>>,
    programs: build::Programs,
}

impl Launcher {
    /// Creates a launcher of a device, with a stream of its own and the user's cache of compiled programs
    /// ([`Cache::standard`]).
    ///
    /// # Errors
    ///
    /// The driver's errors, or [`Error::ContextLost`].
    pub fn new(device: &Device) -> Result<Launcher> {
        Launcher::with_cache(device, Cache::standard())
    }

    /// As [`new`](Self::new), with another cache of compiled programs, or none.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_cache(device: &Device, cache: Cache) -> Result<Launcher> {
        Ok(Launcher(Arc::new(LauncherState {
            device: *device,
            stream: device.stream()?,
            cache,
            kernels: RwLock::default(),
            programs: build::Programs::default(),
        })))
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The stream that [`run`](Self::run) launches on.
    pub fn stream(&self) -> &Stream {
        &self.0.stream
    }

    /// Defines a name by CUDA C++ source, compiled by NVRTC for this device or taken from the cache.
    ///
    /// The source contains a kernel of that name, or only one kernel. The same source under two names is compiled and
    /// loaded once.
    ///
    /// # Errors
    ///
    /// As [`define`](Self::define); [`Error::Compilation`] names the position.
    pub fn compile(&self, name: &str, source: impl Into<String>) -> Result<Kernel> {
        self.define(Definition::new(name).source(source))
    }

    /// Defines a name by a program with options, headers or template instances. Otherwise as
    /// [`compile`](Self::compile).
    ///
    /// # Errors
    ///
    /// As [`define`](Self::define).
    pub fn compile_program(&self, name: &str, program: Program) -> Result<Kernel> {
        self.define(Definition::new(name).program(program))
    }

    /// Defines a name by an image: PTX, a cubin or a fatbin. The image contains a kernel of that name, or only one
    /// kernel.
    ///
    /// # Errors
    ///
    /// As [`define`](Self::define).
    pub fn load(&self, name: &str, image: impl Into<Vec<u8>>) -> Result<Kernel> {
        self.define(Definition::new(name).image(image))
    }

    /// Defines a name and replaces an earlier definition. A [`Kernel`] of the earlier one is unchanged. An error
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::LibraryUnavailable`] without NVRTC, [`Error::Compilation`], [`Error::ImageRejected`], the other errors
    /// of [`Program::compile`] and [`Device::load`], and [`Error::KernelUnavailable`] if neither image nor source
    /// provides the kernel; a [`Fallback`] replaces all of these. [`Error::UnknownName`] with the image's kernels if it
    /// has none of this name; [`Error::InvalidArgument`] for an empty definition; [`Error::ForkedProcess`].
    pub fn define(&self, definition: Definition) -> Result<Kernel> {
        // Checked before any lock, which may stay locked for ever in a child.
        check_not_forked()?;
        let kernel = build::kernel(&self.0.programs, self.0.device, &self.0.cache, definition)?;
        let mut kernels = self.0.kernels.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = kernels.insert(kernel.name().to_owned(), kernel.clone());
        drop(kernels);
        // Dropped outside of the lock: the drop may retire a module, and runs the fallback's destructor.
        drop(replaced);
        Ok(kernel)
    }

    /// Returns the kernel of a name, to run it without a lookup.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownName`] with the defined names; [`Error::ForkedProcess`].
    #[inline]
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        check_not_forked()?;
        let kernels = self.0.kernels.read().unwrap_or_else(PoisonError::into_inner);
        match kernels.get(name) {
            Some(kernel) => Ok(kernel.clone()),
            None => Err(unknown(name, kernels.keys())),
        }
    }

    /// The defined names, in order.
    pub fn names(&self) -> Vec<String> {
        let kernels = self.0.kernels.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = kernels.keys().cloned().collect();
        names.sort();
        names
    }

    /// How often fallbacks ran, over all kernels defined now. A fallback that failed counts too.
    pub fn fallbacks_taken(&self) -> u64 {
        let kernels = self.0.kernels.read().unwrap_or_else(PoisonError::into_inner);
        kernels.values().map(Kernel::fallbacks_taken).sum()
    }

    /// Runs a kernel on the launcher's stream: a grid of blocks of `block` threads, with a tuple of arguments or a list
    /// of [`Argument`](crate::driver::Argument)s. The result says whether the device or the fallback ran it.
    ///
    /// The stream first waits for earlier uses of the buffers. The call returns when the launch is queued, or the
    /// fallback is done.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownName`] with the defined names; the errors of
    /// [`Function::launch`](crate::driver::Function::launch), with nothing launched; or the fallback's error.
    ///
    /// # Safety
    ///
    /// As [`Function::launch`](crate::driver::Function::launch).
    #[inline]
    pub unsafe fn run<A: KernelArguments>(
        &self,
        name: &str,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        arguments: A,
    ) -> Result<LaunchOutcome> {
        // SAFETY: the caller vouches for it.
        unsafe { self.run_on(&self.0.stream, name, LaunchConfig::new(grid, block), arguments) }
    }

    /// As [`run`](Self::run), on any stream and with any configuration.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run).
    #[inline]
    pub unsafe fn run_on<A: KernelArguments>(
        &self,
        stream: &Stream,
        name: &str,
        config: LaunchConfig,
        arguments: A,
    ) -> Result<LaunchOutcome> {
        // No lock is held while it runs: a launch can block, and a fallback may define names.
        let kernel = self.kernel(name)?;
        // SAFETY: the caller vouches for it.
        unsafe { kernel.run(stream, config, arguments) }
    }
}

#[cold]
fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a String>) -> Error {
    let mut found: Vec<String> = names.cloned().collect();
    found.sort();
    Error::UnknownName { kind: "kernel", wanted: name.to_owned(), found }
}

impl fmt::Debug for Launcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Launcher({:?}, {} kernels)", self.0.device, self.names().len())
    }
}
