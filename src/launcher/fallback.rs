//! Fallbacks: functions on the CPU that replace an unavailable kernel and get the launch's arguments in host memory.
//!
//! A fallback replaces a kernel that cannot be had: NVRTC is missing, the source does not compile, or the image is refused.
//! It does not replace failed arguments, launches or contexts, nor a name that does not exist.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use bytemuck::{CheckedBitPattern, Pod};

use crate::driver::image::{ArgumentKind, ArgumentType};
use crate::driver::{ArgumentView, LaunchConfig, Stream};
use crate::error::{Error, Result};

/// A host function that replaces a kernel.
pub type HostFunction = Arc<dyn Fn(&mut HostLaunch<'_>) -> Result<()> + Send + Sync>;

/// The behaviour for an unavailable kernel: without NVRTC, with a source that does not compile, or with an image that
/// the device or its driver refuses. Wrong arguments and failed launches are errors in any case.
#[derive(Clone, Default)]
pub enum Fallback {
    /// Defining the name returns an error.
    #[default]
    Error,
    /// Defining the name succeeds, and each run calls this function on the CPU; see [`Fallback::cpu`].
    Cpu(HostFunction),
}

impl Fallback {
    /// A function that does the kernel's work on the CPU.
    ///
    /// The function gets the contents of every buffer, after the operations that write them. Its changes to the buffers
    /// that the kernel would have written are copied to the device before the run returns. If it returns an error,
    /// nothing is copied. Each run is counted ([`Kernel::fallbacks_taken`](super::Kernel::fallbacks_taken)), logged,
    /// and returns [`LaunchOutcome::Fallback`](super::LaunchOutcome::Fallback).
    pub fn cpu(function: impl Fn(&mut HostLaunch<'_>) -> Result<()> + Send + Sync + 'static) -> Fallback {
        Fallback::Cpu(Arc::new(function))
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Fallback::Error => "Error",
            Fallback::Cpu(_) => "Cpu",
        })
    }
}

/// A launch as its fallback sees it.
pub struct HostLaunch<'a> {
    kernel: &'a str,
    config: LaunchConfig,
    arguments: Vec<HostArgument>,
}

impl HostLaunch<'_> {
    /// The kernel's name.
    pub fn kernel(&self) -> &str {
        self.kernel
    }

    /// The launch configuration.
    pub fn config(&self) -> LaunchConfig {
        self.config
    }

    /// The arguments, which must be exactly `N`: `let [x, y, n] = launch.arguments()?;`
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`].
    pub fn arguments<const N: usize>(&mut self) -> Result<&mut [HostArgument; N]> {
        let (kernel, found) = (self.kernel, self.arguments.len());
        let all = self.arguments.as_mut_slice();
        all.try_into().map_err(|_| Error::ArgumentCount { kernel: kernel.to_owned(), wanted: N, found })
    }

    /// All arguments.
    pub fn all(&mut self) -> &mut [HostArgument] {
        &mut self.arguments
    }
}

/// A launch's argument on the host: a copy of the buffer, or the value.
pub struct HostArgument {
    kernel: String,
    index: usize,
    argument: ArgumentType,
    written: bool,
    has_memory: bool,
    /// In words, to align them for any type.
    words: Vec<u128>,
    length: usize,
}

impl HostArgument {
    fn new(kernel: &str, index: usize, view: &ArgumentView<'_>, stream: &Stream) -> Result<HostArgument> {
        let memory = view.device_memory();
        let length = memory.as_ref().map_or(view.bytes().len(), |memory| memory.len());
        let mut words = vec![0u128; length.div_ceil(size_of::<u128>())];
        let bytes = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..length];
        match &memory {
            Some(memory) => stream.copy_to_host(memory, bytes)?,
            None => bytes.copy_from_slice(view.bytes()),
        }
        let (argument, written, has_memory) = (view.argument(), view.is_written(), memory.is_some());
        Ok(HostArgument { kernel: kernel.to_owned(), index, argument, written, has_memory, words, length })
    }

    /// Returns the elements of a buffer.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentMismatch`] unless it is a buffer of `T`s. A buffer of `u8` can be read as any type that its
    /// length fits.
    pub fn slice<T: Pod>(&self) -> Result<&[T]> {
        self.check::<T>("memory", self.has_memory)?;
        bytemuck::try_cast_slice(self.bytes()).map_err(|_| self.mismatch::<T>("memory"))
    }

    /// Returns the elements of a buffer that the kernel would write.
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice), or the buffer is read-only.
    pub fn slice_mut<T: Pod>(&mut self) -> Result<&mut [T]> {
        self.check::<T>("memory to write", self.has_memory && self.written)?;
        if bytemuck::try_cast_slice::<u8, T>(self.bytes()).is_err() {
            return Err(self.mismatch::<T>("memory to write"));
        }
        let length = self.length;
        let bytes = bytemuck::cast_slice_mut::<u128, u8>(&mut self.words).get_mut(..length);
        Ok(bytes.and_then(|bytes| bytemuck::try_cast_slice_mut(bytes).ok()).unwrap_or_default())
    }

    /// Returns a scalar, or a struct passed by value.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentMismatch`] unless it is a value of type `T`.
    pub fn value<T: CheckedBitPattern + 'static>(&self) -> Result<T> {
        self.check::<T>("a value", self.argument.kind != ArgumentKind::Address)?;
        bytemuck::checked::try_pod_read_unaligned(self.bytes()).map_err(|_| self.mismatch::<T>("a value"))
    }

    /// The bytes of the buffer or value.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice::<u128, u8>(&self.words).get(..self.length).unwrap_or_default()
    }

    /// The type of the argument.
    pub fn argument(&self) -> ArgumentType {
        self.argument
    }

    /// Returns whether it is memory that the kernel would write.
    pub fn is_written(&self) -> bool {
        self.written
    }

    fn check<T: 'static>(&self, as_what: &str, is_so: bool) -> Result<()> {
        let fits =
            self.argument.value.is_none_or(|value| value.is::<T>() || (self.has_memory && value.is::<u8>()));
        if is_so && fits { Ok(()) } else { Err(self.mismatch::<T>(as_what)) }
    }

    fn mismatch<T>(&self, as_what: &str) -> Error {
        let value = self.argument.value.map_or("an unknown type", |value| value.name());
        let found = match (self.has_memory, self.written) {
            (true, true) => format!("memory to write, of {value} in {} bytes", self.length),
            (true, false) => format!("memory to read, of {value} in {} bytes", self.length),
            (false, _) => format!("a value of {value}"),
        };
        let wanted = format!("read by its fallback as {as_what} of {}", type_name::<T>());
        Error::ArgumentMismatch { kernel: self.kernel.clone(), index: self.index, wanted, found }
    }
}

impl fmt::Debug for HostArgument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HostArgument({:?}, {} bytes)", self.argument, self.length)
    }
}

/// Runs a fallback on the arguments of a launch.
pub(super) fn run(
    kernel: &str,
    function: &HostFunction,
    stream: &Stream,
    config: LaunchConfig,
    views: &[ArgumentView<'_>],
) -> Result<()> {
    let arguments: Result<Vec<HostArgument>> = views
        .iter()
        .enumerate()
        .map(|(index, view)| HostArgument::new(kernel, index, view, stream))
        .collect();
    let mut launch = HostLaunch { kernel, config, arguments: arguments? };
    function(&mut launch)?;
    for (view, argument) in views.iter().zip(&launch.arguments) {
        if let Some(mut memory) = view.written_memory() {
            stream.copy_from_host(argument.bytes(), &mut memory)?;
        }
    }
    Ok(())
}
