//! Any kernel, from source or image, by name: compiled, loaded, checked, run, and kept.
//!
//! A [`Launcher`] is a device with a table of names. [`compile`](Launcher::compile) and [`load`](Launcher::load) enter a
//! name, [`run`](Launcher::run) launches it, and a [`Definition`] says the rest: a program with options and headers, an
//! image and a program with the one to prefer, the entry of an image with many, what to do where the kernel cannot be had.
//! [`kernel!`](crate::kernel) makes a typed function of a declaration.
//!
//! Why a name is entered before it is run, and not with its first run: loading waits for running kernels and compiling takes
//! long, so both happen where the caller says; and what is wrong with a source or an image is said there, once.
//!
//! What must stay true:
//!
//! - A run by name is one lookup under a lock that no other run holds exclusively, and the launch of the driver floor;
//!   nothing is allocated for a tuple.
//! - What is loaded is found again by its content: no image is loaded twice while somebody holds it (`shared`).
//! - A fallback is never silent: it is logged, counted, and told by what the run returns; and it stands in for a kernel
//!   that cannot be had, never for arguments or launches that fail.
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

#[doc(hidden)]
pub use declare::__kernel;
pub use definition::{Definition, Prefer};
pub use fallback::{Fallback, HostArgument, HostFunction, HostLaunch};
pub use kernel::{Kernel, Origin, Ran};

/// Kernels of a device by name. Cheap to clone; clones share their names, and any thread may use them.
#[derive(Clone)]
pub struct Launcher(Arc<State>);

struct State {
    device: Device,
    stream: Stream,
    cache: Cache,
    kernels: RwLock<HashMap<String, Kernel>>,
    programs: build::Programs,
}

impl Launcher {
    /// A launcher of a device, with a stream of its own and the user's cache of compiled programs
    /// ([`Cache::standard`]).
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn new(device: &Device) -> Result<Launcher> {
        Launcher::with_cache(device, Cache::standard())
    }

    /// As [`new`](Self::new), with another cache of compiled programs, or none.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_cache(device: &Device, cache: Cache) -> Result<Launcher> {
        Ok(Launcher(Arc::new(State {
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

    /// Enters a name for CUDA C++ source, compiled by NVRTC for this device or taken from the cache.
    ///
    /// The name is that of the kernel, or the source has but one kernel. The same source under two names is compiled and
    /// loaded once.
    ///
    /// # Errors
    ///
    /// As [`define`](Self::define); [`Error::Compilation`] shows the place.
    pub fn compile(&self, name: &str, source: impl Into<String>) -> Result<Kernel> {
        self.define(Definition::new(name).source(source))
    }

    /// Enters a name for a program with options, headers or instances of templates; as [`compile`](Self::compile).
    ///
    /// # Errors
    ///
    /// As [`define`](Self::define).
    pub fn compile_program(&self, name: &str, program: Program) -> Result<Kernel> {
        self.define(Definition::new(name).program(program))
    }

    /// Enters a name for a kernel of an image: PTX, a cubin or a fatbin. The name is that of the kernel, or the image has but
    /// one kernel.
    ///
    /// # Errors
    ///
    /// As [`define`](Self::define).
    pub fn load(&self, name: &str, image: impl Into<Vec<u8>>) -> Result<Kernel> {
        self.define(Definition::new(name).image(image))
    }

    /// Enters what is defined, in the place of what had its name; a [`Kernel`] of that goes on as it was. Where this fails
    /// nothing is changed.
    ///
    /// # Errors
    ///
    /// [`Error::LibraryUnavailable`] without NVRTC, [`Error::Compilation`], [`Error::ImageRejected`] and whatever else
    /// [`Program::compile`] and [`Device::load`] say, [`Error::KernelUnavailable`] where neither image nor source gives the
    /// kernel; unless there is a [`Fallback`] for these. [`Error::UnknownName`] where there is no such kernel, with those
    /// that there are; [`Error::InvalidArgument`] for a definition of nothing; [`Error::ForkedProcess`].
    pub fn define(&self, definition: Definition) -> Result<Kernel> {
        // Before any lock: in a child it may stay locked for ever.
        check_not_forked()?;
        let kernel = build::kernel(&self.0.programs, self.0.device, &self.0.cache, definition)?;
        let mut kernels = self.0.kernels.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = kernels.insert(kernel.name().to_owned(), kernel.clone());
        drop(kernels);
        // Outside of the lock: its module may be retired, and its fallback's destructor be anything.
        drop(replaced);
        Ok(kernel)
    }

    /// The kernel of a name, to run without looking it up.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownName`] with the names that there are; [`Error::ForkedProcess`].
    #[inline]
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        check_not_forked()?;
        let kernels = self.0.kernels.read().unwrap_or_else(PoisonError::into_inner);
        match kernels.get(name) {
            Some(kernel) => Ok(kernel.clone()),
            None => Err(unknown(name, kernels.keys())),
        }
    }

    /// The names that there are, in order.
    pub fn names(&self) -> Vec<String> {
        let kernels = self.0.kernels.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = kernels.keys().cloned().collect();
        names.sort();
        names
    }

    /// How often fallbacks were taken, by all kernels that have a name now. A run whose fallback then failed counts too.
    pub fn fallbacks_taken(&self) -> u64 {
        let kernels = self.0.kernels.read().unwrap_or_else(PoisonError::into_inner);
        kernels.values().map(Kernel::fallbacks_taken).sum()
    }

    /// Runs a kernel on the launcher's stream: a grid of blocks, each of so many threads, with a tuple of arguments or a
    /// list of [`Argument`](crate::driver::Argument)s. What it returns says whether the device runs it or its fallback did.
    ///
    /// The stream first waits for whatever still uses the buffers. The call returns when the launch is queued, or the
    /// fallback done.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownName`] with the names that there are; those of [`Function::launch`](crate::driver::Function::launch),
    /// where nothing was launched; those of a fallback.
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
    ) -> Result<Ran> {
        // SAFETY: the caller vouches for it.
        unsafe { self.run_on(&self.0.stream, name, LaunchConfig::new(grid, block), arguments) }
    }

    /// As [`run`](Self::run), on any stream and in any shape.
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
    ) -> Result<Ran> {
        // No lock is held while it runs: a launch can block, and a fallback may enter names.
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
