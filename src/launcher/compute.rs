//! [`GpuCompute`]: the launcher with one call for each step of a computation, and arguments in one vector.

use std::borrow::Borrow;

use bytemuck::Pod;
use half::{bf16, f16};

use super::{Definition, Fallback, HostLaunch, Kernel, LaunchOutcome, Launcher};
use crate::driver::{Argument, Device, DeviceBuffer, Dim3};
use crate::error::Result;

/// A [`Launcher`] behind five calls: `compile_kernel`, `upload`, `allocate`, `run_kernel` and `download`, all on the launcher's
/// stream. Cheap to clone; clones share their kernels, and any thread may use them.
///
/// ```no_run
/// use selvedge::driver::Device;
/// use selvedge::launcher::{GpuArg, GpuCompute};
///
/// # fn main() -> selvedge::Result<()> {
/// let gpu = GpuCompute::new(&Device::new(0)?)?;
/// gpu.compile_kernel(
///     "vector_add",
///     "__global__ void vector_add(const float *a, const float *b, float *sum, int n) {
///          int i = blockIdx.x * blockDim.x + threadIdx.x;
///          if (i < n) sum[i] = a[i] + b[i];
///      }",
/// )?;
/// let (a, b) = (gpu.upload(&[1.0f32; 1024])?, gpu.upload(&[2.0f32; 1024])?);
/// let mut sum = gpu.allocate::<f32>(1024)?;
/// let arguments = vec![GpuArg::from(&a), GpuArg::from(&b), GpuArg::from(&mut sum), GpuArg::I32(1024)];
/// // SAFETY: vector_add touches n = 1024 elements of each buffer.
/// unsafe { gpu.run_kernel("vector_add", 4, 256, arguments)? };
/// assert_eq!(gpu.download(&sum)?, [3.0; 1024]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct GpuCompute(Launcher);

impl GpuCompute {
    /// Creates a launcher of a device, with a stream of its own and the user's cache of compiled programs. `GpuCompute::from`
    /// takes an existing launcher, with its kernels.
    ///
    /// # Errors
    ///
    /// As [`Launcher::new`].
    pub fn new(device: &Device) -> Result<GpuCompute> {
        Launcher::new(device).map(GpuCompute)
    }

    /// The launcher, which has kernels from images, tuples of arguments, other streams and launch configurations.
    pub fn launcher(&self) -> &Launcher {
        &self.0
    }

    /// Defines a name by CUDA C++ source. An unavailable kernel is an error.
    ///
    /// # Errors
    ///
    /// As [`Launcher::compile`]; [`Error::Compilation`](crate::Error::Compilation) has the compiler's log.
    pub fn compile_kernel(&self, name: &str, source: impl Into<String>) -> Result<Kernel> {
        self.0.compile(name, source)
    }

    /// Defines a name by CUDA C++ source, and by a function that does the kernel's work on the CPU if the kernel is unavailable:
    /// without NVRTC, or if the source does not compile. See [`Fallback::cpu`].
    ///
    /// A fallback is never silent: its definition and its first run are logged as warnings with the reason, each run is counted
    /// ([`fallbacks_taken`](Self::fallbacks_taken)), and `run_kernel` returns [`LaunchOutcome::Fallback`].
    ///
    /// # Errors
    ///
    /// As [`Launcher::define`], but for those that the fallback replaces.
    pub fn compile_kernel_or(
        &self,
        name: &str,
        source: impl Into<String>,
        fallback: impl Fn(&mut HostLaunch<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Kernel> {
        self.0.define(Definition::new(name).source(source).fallback(Fallback::cpu(fallback)))
    }

    /// How often fallbacks ran, over all kernels defined now.
    pub fn fallbacks_taken(&self) -> u64 {
        self.0.fallbacks_taken()
    }

    /// Copies elements to a new buffer.
    ///
    /// # Errors
    ///
    /// As [`Stream::upload`](crate::driver::Stream::upload).
    pub fn upload<T: Pod>(&self, elements: &[T]) -> Result<DeviceBuffer<T>> {
        self.0.stream().upload(elements)
    }

    /// Creates a buffer of zeros.
    ///
    /// # Errors
    ///
    /// As [`Stream::zeros`](crate::driver::Stream::zeros).
    pub fn allocate<T: Pod>(&self, length: usize) -> Result<DeviceBuffer<T>> {
        self.0.stream().zeros(length)
    }

    /// Copies a buffer, given by reference or by value, to a vector, after the kernels that write it.
    ///
    /// # Errors
    ///
    /// As [`Stream::download`](crate::driver::Stream::download).
    pub fn download<T: Pod>(&self, buffer: impl Borrow<DeviceBuffer<T>>) -> Result<Vec<T>> {
        self.0.stream().download(buffer.borrow())
    }

    /// Copies a buffer, given by reference or by value, to a slice of its length, after the kernels that write it.
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_to_host`](crate::driver::Stream::copy_to_host), which compares the lengths.
    pub fn download_into<T: Pod>(
        &self,
        buffer: impl Borrow<DeviceBuffer<T>>,
        elements: &mut [T],
    ) -> Result<()> {
        self.0.stream().copy_to_host(buffer.borrow(), elements)
    }

    /// Runs a kernel: a grid of blocks of `block` threads, with a vector or an array of arguments. The call returns when the launch
    /// is queued, or the fallback is done; the result says which.
    ///
    /// # Errors
    ///
    /// As [`Launcher::run`], with nothing launched: an unknown name, or a wrong number, size or kind of arguments.
    ///
    /// # Safety
    ///
    /// As [`Function::launch`](crate::driver::Function::launch).
    pub unsafe fn run_kernel<'a>(
        &self,
        name: &str,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        arguments: impl Into<Vec<GpuArg<'a>>>,
    ) -> Result<LaunchOutcome> {
        let arguments: Vec<Argument<'a>> = arguments.into().into_iter().map(Argument::from).collect();
        // SAFETY: the caller vouches for it.
        unsafe { self.0.run(name, grid, block, &arguments) }
    }
}

impl From<Launcher> for GpuCompute {
    fn from(launcher: Launcher) -> GpuCompute {
        GpuCompute(launcher)
    }
}

macro_rules! scalars {
    ($($(#[$doc:meta])* $variant:ident $type:ty => $make:expr;)*) => {
        /// An argument of [`GpuCompute::run_kernel`]: a buffer or a scalar. `GpuArg::from` takes each of them.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum GpuArg<'a> {
            /// A buffer: `&buffer` is read, `&mut buffer` is written or read, and `buffer` is consumed.
            Buffer(Argument<'a>),
            /// Any other argument: a slice, a struct by value, an address.
            Other(Argument<'a>),
            $($(#[$doc])* $variant($type),)*
        }

        $(impl From<$type> for GpuArg<'_> {
            fn from(value: $type) -> Self {
                GpuArg::$variant(value)
            }
        })*

        impl<'a> From<GpuArg<'a>> for Argument<'a> {
            fn from(argument: GpuArg<'a>) -> Argument<'a> {
                match argument {
                    GpuArg::Buffer(argument) | GpuArg::Other(argument) => argument,
                    $(GpuArg::$variant(value) => $make(value),)*
                }
            }
        }
    };
}

scalars! {
    /// A bool.
    Bool bool => |value| Argument::integer(u8::from(value));
    /// An integer of 8 bits.
    I8 i8 => Argument::integer;
    /// An unsigned integer of 8 bits.
    U8 u8 => Argument::integer;
    /// An integer of 16 bits.
    I16 i16 => Argument::integer;
    /// An unsigned integer of 16 bits.
    U16 u16 => Argument::integer;
    /// An integer of 32 bits.
    I32 i32 => Argument::integer;
    /// An unsigned integer of 32 bits.
    U32 u32 => Argument::integer;
    /// An integer of 64 bits.
    I64 i64 => Argument::integer;
    /// An unsigned integer of 64 bits.
    U64 u64 => Argument::integer;
    /// A float of 16 bits.
    F16 f16 => Argument::float;
    /// A bfloat16.
    BF16 bf16 => Argument::float;
    /// A float of 32 bits.
    F32 f32 => Argument::float;
    /// A float of 64 bits.
    F64 f64 => Argument::float;
}

impl<'a, T: Pod> From<&'a DeviceBuffer<T>> for GpuArg<'a> {
    fn from(buffer: &'a DeviceBuffer<T>) -> Self {
        GpuArg::Buffer(Argument::read(buffer))
    }
}

impl<'a, T: Pod> From<&'a mut DeviceBuffer<T>> for GpuArg<'a> {
    fn from(buffer: &'a mut DeviceBuffer<T>) -> Self {
        GpuArg::Buffer(Argument::write(buffer))
    }
}

impl<T: Pod> From<DeviceBuffer<T>> for GpuArg<'_> {
    fn from(buffer: DeviceBuffer<T>) -> Self {
        GpuArg::Buffer(Argument::consumed(buffer))
    }
}

impl<'a> From<Argument<'a>> for GpuArg<'a> {
    fn from(argument: Argument<'a>) -> Self {
        GpuArg::Other(argument)
    }
}
