//! Runs CUDA kernels with nothing but the NVIDIA driver at run time and nothing but `cargo` at build time.
//!
//! The crate needs no toolkit, no choice of a CUDA version, and no linking: it loads the driver on first use, and each of
//! its functions at the first call. A program that uses this crate starts on every machine. If the machine lacks a driver or
//! a device, calls return an [`Error`] that names both what was found and what was wanted.
//!
//! | module | contents |
//! |---|---|
//! | [`driver`] | devices, streams, events, memory, modules and launches: the thin safe layer |
//! | [`gemm`] | matrix products on device memory and on slices |
//! | [`sort`] | sorted order, search and counts of rows in memory |
//! | [`launcher`] | kernels by name, from source or image |
//! | [`images`] | the crate's own kernels, embedded, and their selection |
//! | [`nvrtc`] | CUDA C++ compiled at run time, and a cache of the results |
//! | [`cublas`] | cuBLAS, if it is installed and requested |
//! | [`types`] | number types and memory layouts, independent of storage and device |
//! | [`fuse`] | elementwise expressions as one kernel, on a device or the CPU |
//! | [`tensor`] | arrays on the CPU and CUDA devices, as in NumPy and PyTorch |
//! | `io` | arrays in files (feature `io`) |
//! | `burst` | spiking neural networks on the CPU and CUDA devices (feature `burst`) |
//! | `catalogue` | functions of numerical models: oscillators, information, policies (feature `catalogue`) |
//! | `nn` | automatic differentiation, layers, optimizers and training (feature `nn`) |
//! | `classifier` | an active-inference classifier (feature `classifier`) |
//! | `srt` | golden-ratio tensor operations on the CPU and CUDA devices (feature `srt`) |
//! | `capi` | the C ABI (feature `capi`) |
//! | [`trace`] | a file of what the host and the device did, and when |
//! | [`error`] | the error type, and the hook for errors of `Drop` |
//!
//! Start with [`tensor`] for tensors, and with [`driver::Device::new`] for kernels of your own. The repository's `examples` show
//! the rest, one step per file; `docs/environment.md`
//! lists the environment variables, and `docs/from-numpy.md`, `from-pytorch.md` and `from-cudarc.md` map other names to these.
//!
//! ```no_run
//! use selvedge::driver::{Device, LaunchConfig};
//!
//! # fn main() -> selvedge::Result<()> {
//! # let ptx = b"";
//! let device = Device::new(0)?;
//! let stream = device.stream()?;
//! let kernel = device.load(ptx)?.function("scale")?;
//! let mut x = stream.upload(&[1.0f32; 1000])?;
//! // SAFETY: scale(float *x, float factor, unsigned n) stays below n = 1000.
//! unsafe { kernel.launch(&stream, LaunchConfig::for_elements(1000), (&mut x, 2.0f32, 1000u32))? };
//! assert_eq!(stream.download(&x)?, [2.0; 1000]);
//! # Ok(())
//! # }
//! ```

// A layer does not know which layers above it are built: parts that only those use have no feature of their own. The build
// with all systems finds what is dead.
#![cfg_attr(not(feature = "capi"), allow(dead_code, unused_imports, unused_macros))]
#![deny(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[cfg(feature = "tensor")]
pub mod attention;
#[cfg(feature = "burst")]
pub mod burst;
#[cfg(feature = "capi")]
pub mod capi;
#[cfg(feature = "catalogue")]
pub mod catalogue;
#[cfg(feature = "classifier")]
pub mod classifier;
#[cfg(feature = "collective")]
pub mod collective;
pub mod cublas;
pub mod driver;
pub mod error;
#[cfg(feature = "tensor")]
pub mod fuse;
#[cfg(feature = "tensor")]
pub mod gemm;
#[cfg(feature = "tensor")]
pub mod images;
#[cfg(feature = "io")]
pub mod io;
pub mod launcher;
#[cfg(feature = "collective")]
pub mod nccl;
#[cfg(feature = "nn")]
pub mod nn;
pub mod nvrtc;
#[cfg(feature = "tensor")]
pub mod sort;
#[cfg(feature = "srt")]
pub mod srt;
#[doc(hidden)]
pub mod sys;
#[cfg(feature = "tensor")]
pub mod tensor;
#[cfg(feature = "tensor")]
mod threads;
pub mod trace;
pub mod types;

pub use error::{Error, Result};
pub use half::{bf16, f16};
pub use num_complex::Complex;
#[cfg(feature = "tensor")]
pub use tensor::{Device, Tensor};
#[cfg(feature = "tensor")]
pub use threads::{Executor, set_executor, set_threads, thread_count};
pub use types::DType;

/// Compiles the examples of that page.
#[cfg(doctest)]
#[doc = include_str!("../docs/from-cudarc.md")]
mod from_cudarc {}

/// Compiles the examples of that page.
#[cfg(all(doctest, feature = "collective"))]
#[doc = include_str!("../docs/collective.md")]
mod collective_page {}

/// Compiles the examples of that page.
#[cfg(all(doctest, feature = "tensor"))]
#[doc = include_str!("../docs/from-numpy.md")]
mod from_numpy {}

/// Compiles the examples of that page.
#[cfg(all(doctest, feature = "tensor"))]
#[doc = include_str!("../docs/from-pytorch.md")]
mod from_pytorch {}

/// Compiles the examples of that page.
#[cfg(all(doctest, feature = "catalogue"))]
#[doc = include_str!("../docs/catalogue.md")]
mod catalogue_page {}

/// Compiles the examples of that page.
#[cfg(all(doctest, feature = "classifier"))]
#[doc = include_str!("../docs/classifier.md")]
mod classifier_page {}

/// Compiles the examples of that page.
#[cfg(doctest)]
#[doc = include_str!("../docs/tracing.md")]
mod tracing {}

/// Compiles the examples of that page.
#[cfg(all(doctest, feature = "nn"))]
#[doc = include_str!("../docs/training.md")]
mod training {}
