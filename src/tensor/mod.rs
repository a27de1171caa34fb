//! Tensors: arrays of any dtype on the CPU and on CUDA devices, as in NumPy and PyTorch.
//!
//! A [`Tensor`] has a dtype, a shape and strides that are known at run time, and lives on a [`Device`]. The same program runs
//! on either device; elementwise operations, sums and random numbers have the same bits on both. Nothing is linked, and without
//! a GPU [`Device::best`] is the CPU.
//!
//! ```
//! use selvedge::tensor::{Device, Fused, Tensor};
//! use selvedge::types::Slice;
//!
//! let device = Device::best();
//! let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &device)?;
//! let row = Tensor::new([0.5f32, 0.0, -0.5], &device)?;
//!
//! // Operators and methods give a `Result`, because dtypes, shapes and devices are known only now.
//! let y = (&x * &row)?.exp()?;
//! // Views copy nothing.
//! let last = y.slice(1, Slice::from(..).step(-1))?.select(0, 0)?;
//! assert_eq!(last.count(), 3);
//! // Any number of operations as one kernel.
//! let gate = Fused::new(|[x, row]| (x * row + 1.0).relu().sqrt());
//! println!("{}", gate.run([&x, &row])?);
//! // A write takes `&mut`, and no other tensor sees it.
//! let mut z = x.clone();
//! z.slice_mut(0, 1..)?.fill(0.0)?;
//! assert_eq!(z.to_vec::<f32>()?, [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
//! # Ok::<(), selvedge::Error>(())
//! ```
//!
//! # Rules
//!
//! The rules are PyTorch's if PyTorch and NumPy differ.
//!
//! - **Promotion** looks at kinds first and widths second: bool, integers, real floats, complex. `i64 + f16` is f16 (NumPy:
//!   f64), `f32 + c64` is c64, `f16 + bf16` is f32. Two integer dtypes promote to the narrowest
//!   dtype that holds both; u64 beside a signed one is an error that names the cast. See [`DType::promote`](crate::types::DType::promote).
//! - **Scalars** promote by kind only: for an f16 `x`, `x * 2.0` is f16; for an integer `x` it is f32. A number
//!   beside several tensors promotes with the tensors' common dtype. See
//!   [`DType::promote_number`](crate::types::DType::promote_number). Comparisons, `minimum`, `maximum` and `clamp` accept
//!   a number that the tensors' dtype does not hold, and use its value: no u8 is below -1, and `clamp(-1, 300)` changes no u8.
//!   Every other operation refuses such a number: `x + 300` of i8 and `x * 1e39` of f32 are errors, as is a bound that would
//!   be the result. A float dtype holds every number up to its largest one, rounded. See
//!   [`Number::fits`](crate::fuse::Number::fits).
//! - **0-d tensors** promote like scalars beside tensors with dimensions: f16 times a 0-d f64 is f16.
//!   Comparisons of integers keep the values. See
//!   [`DType::promote_zero_dim`](crate::types::DType::promote_zero_dim).
//! - **Broadcasting** aligns shapes at the last dimension; a size of 1, or no such dimension, takes the other's size.
//! - **Division**: `/` of integers is a fraction, in f32. [`floor_divide`](Tensor::floor_divide) rounds down, and `%` is its
//!   remainder, with the divisor's sign; [`trunc_divide`](Tensor::trunc_divide) and [`fmod`](Tensor::fmod) round towards 0.
//!   In these four operations an integer divided by 0 is 0 (PyTorch's CPU raises an error), and the minimum divided by -1 wraps
//!   to itself.
//! - **Powers** of integers are integers: a negative exponent gives 0, except for the bases 1 and -1 (NumPy refuses it).
//! - **Integers wrap**; floats become integers by dropping the fraction and saturating, with 0 for NaN.
//! - **Storage dtypes**: tensors of f8e4m3 and f8e5m2 can be cast, moved and written to files; other operations return an error
//!   that names the cast.
//! - **Devices**: an operation on tensors of two devices is an error that names both; [`Tensor::to`] copies.
//!
//! # Sharing and writes
//!
//! Clones and views share elements, and never see them change. Every write ([`Tensor::in_place`], [`Tensor::slice_mut`],
//! [`Tensor::with_output`], [`Fused::run_into`], `x += &y`) takes `&mut` and copies shared elements first, so an operand may be
//! any view of the output. Tensors are `Send` and `Sync`.
//!
//! # Operators
//!
//! Operators take owned and borrowed tensors and numbers of every type, and return a `Result`: `(&x * 2.0)?`, `(1.5f32 - x)?`.
//! A literal on the left needs its type. A compound assignment (`x += &y`) has no result to return: if it fails, `x` holds the
//! error, and every later use of `x` returns it, until all of its elements are replaced (`x.in_place().fill(0)`).
//!
//! # Threads
//!
//! CPU operations share one pool of threads. [`set_threads`](crate::set_threads) and `SELVEDGE_THREADS` set the number; results
//! do not depend on it.
//!
//! # Custom operations
//!
//! [`kernel::run`] runs a closure on the CPU and a kernel on a CUDA device, with tensors as operands.
//!
//! # Streams and graphs
//!
//! Work on a CUDA device goes to the device's default stream, which waits for nothing of the legacy stream; or to that of
//! [`Device::with_stream`] or a [`StreamGuard`], which a thread sets for a time. Tensors go between streams freely: an operation waits for what
//! wrote its operands. Only what brings elements to the host waits for the device ([`Tensor::to_vec`],
//! [`Tensor::item`], text).
//!
//! A program is captured as all work of its thread's stream is, and its tensors hold what the last launch wrote:
//!
//! ```no_run
//! use selvedge::tensor::{Device, Tensor};
//! # fn main() -> selvedge::Result<()> {
//! let device = Device::cuda(0)?;
//! let x = Tensor::new([1.0f32; 1000], &device)?;
//! let stream = device.stream()?;
//! let (graph, y) = stream.capture(|_| (&x * 2.0)?.exp())?;
//! let graph = graph.instantiate()?;
//! graph.launch(&stream)?;
//! println!("{y}");
//! # Ok(())
//! # }
//! ```

mod attention;
mod axes;
mod cached_blocks;
mod cached_operation;
mod clip;
mod comparison;
mod convert;
mod creation;
mod device;
mod diagonals;
mod display;
pub mod dlpack;
mod dynamic_fused;
mod element_generator;
mod elementwise;
mod evaluate;
#[cfg(feature = "io")]
mod files;
mod format;
mod fused;
mod groups;
mod host_memory;
mod in_place;
mod indexing;
pub mod kernel;
mod losses;
mod matmul;
#[cfg(feature = "ndarray")]
mod ndarray;
mod normalization;
mod operand;
mod operators;
mod product_backward;
mod random;
mod ranges;
mod raw_memory;
mod reduction;
mod reduction_kind;
mod scan;
mod shape;
mod sorting;
mod statistics;
mod storage;
#[allow(clippy::module_inception, reason = "the module is named after its type")]
mod tensor;
mod traced;

pub(crate) use attention::{
    Attention, AttentionResult, ComposedAttention, DecodeAngles, DecodeSettings, ResultOrder,
};
pub use attention::{AttentionOptions, SequenceLengths};
pub use axes::Axes;
pub(crate) use cached_operation::OperandKind;
pub use convert::{Item, Nested};
pub use device::{Device, StreamGuard};
pub(crate) use device::{pop_stream, push_stream};
pub use dynamic_fused::DynamicFused;
pub use elementwise::apply;
pub(crate) use evaluate::{broadcast, evaluate};
#[cfg(feature = "nn")]
pub(crate) use files::Uploads;
pub use fused::{Fused, FusedOperands, fuse};
pub(crate) use groups::GroupAxes;
pub use host_memory::{
    HostMemoryStatistics, host_memory_statistics, reset_peak_host_memory, set_host_allocator,
};
pub use in_place::{TensorMut, WithOutput};
pub use indexing::{Index, IndexExpression, ScatterReduction};
pub(crate) use losses::Probabilities;
pub use losses::{CrossEntropyOptions, LossReduction};
pub use matmul::Matmul;
pub(crate) use matmul::{TensorRows, TensorRowsNorm};
pub use normalization::NormGradients;
pub(crate) use normalization::machine_epsilon;
pub use operand::TensorOperand;
pub(crate) use random::{CapturedGenerators, RecordedDraws};
pub use random::{Generator, GeneratorState};
pub use shape::{Padding, Rows};
pub(crate) use shape::{in_shape, sizes};
pub use tensor::Tensor;
