//! Matrix products on device memory and on slices: C = alpha · op(A) · op(B) + beta · C, one or a batch, of every number type.
//!
//! The module knows element types, buffers, leading dimensions and streams, not tensors. A [`Product`] describes the sizes and
//! operands, [`gemm`] computes it by the best [`Engine`] that can, and [`Plan::explain`] names that engine and the reason, with or
//! without a device.
//!
//! | engine | needs | element types | added in |
//! |---|---|---|---|
//! | `wgmma` | compute capability 9.0; A and B with all rows and matrices at multiples of 16 bytes, or so many operations (2²⁶ and more) or so long a k in few tiles that copies of them pay; k of 1 or more | `f16` and `bf16`, into themselves or `f32` | `f32`, by the tensor cores: products are exact, sums of 16 of them are cut, not rounded |
//! | `mma` | 8.0 or more, or 7.5 for `f16`; any alignment | `f16` and `bf16`, into themselves or `f32`; `f64` and `c128` | `f16` and `bf16` as `wgmma`; `f64` by fma with k ascending; `c128` so too, by real parts: of 8 k after one another first those of real with real (to the imaginary part: real with imaginary), then those of imaginary with imaginary (imaginary with real) |
//! | `simt` | 6.0 or more | all but `Bool` and the 8-bit floats | `f32` for `f16` and `bf16`, else their own type, by fma with k ascending, or in small products of `f32` in two such sums for each 16 of k; integers wrap |
//! | `cublas` | the library, and that it is asked for; no conjugation without transposition; k of 1 or more | `f16` and `bf16`, into themselves or `f32`; `f32`, `f64`, complex | `f32` for `f16` and `bf16`, partial sums too; else their own type, never in TF32, `f32` and `c64` by cuBLAS's pedantic arithmetic |
//!
//! On compute capability 9.0 `simt` loads A and B of `f32` and `c64` by TMA, if all rows and matrices begin at multiples of 16
//! bytes, k is 1 or more, and each conjugated operand is transposed. Otherwise threads load them, with the same bits.
//!
//! If the tiles of one product fill less than half of the device and k is at least 1024, `simt` (`f32`, `c64`) and `mma` (`f64`,
//! `c128`) divide k: a batch of products of slices, each of which is added as above, and a kernel that adds the slices' results with
//! k ascending ([`Plan::slices`]). The slices depend on sizes, type and device, not on the alignment.
//!
//! An [`Epilogue`] adds a bias, stores the pre-activation (aux), applies an activation and adds a residual before C is stored. This
//! crate's engines support all of it, for `f16`, `bf16`, `f32` and `f64`. `cublas` uses cuBLASLt, which does not support a bias by
//! row; silu; a residual after an activation, or beside a C that is read; aux without gelu, or whose rows and matrices do not begin at
//! multiples of 8 elements and 16 bytes; a bias that does not begin at a multiple of 16 bytes; gelu of `f64` to more than
//! eleven digits. Its relu may return 0 for NaN.
//!
//! [`gemm_host`] is the same on the CPU, and [`gemm_host_with`] with an epilogue.
//!
//! [`multiply_rows`] computes products of one to eight rows of 16 bits with the norm before and the gate, activation and residual behind
//! them, for steps of decoding, which load the weights once.
//!
//! `SELVEDGE_GEMM` is `own` (the default), `auto`, or an engine's name; [`Product::by`] overrides it. If an engine that was
//! requested by name cannot run, the error gives the reason, and no other engine runs.
//!
//! Invariants:
//!
//! - The result is rounded once, when it is stored: alpha and beta are applied in the type that is added in.
//! - With beta 0 C is not read, and with alpha 0 neither are A and B, so that NaN in them does not count.
//! - The same product on the same card has the same bits every time; see [`Plan`].
//! - Kernels never leave the matrices that a checked [`Product`] describes.

mod activation;
mod algorithm;
mod batch_invariance;
mod blocks;
mod configuration;
mod cublas;
mod element;
mod engine;
mod epilogue;
mod geometry;
mod host;
mod maps;
mod mma;
mod packed;
mod parallel_split_k;
mod plan;
mod problem;
mod product;
mod rows;
mod simt;
mod slices_of_k;
mod wgmma;

pub use activation::Activation;
pub(crate) use activation::ActivationElement;
pub use algorithm::GemmAlgorithm;
pub use batch_invariance::{batch_invariant, is_batch_invariant};
pub(crate) use blocks::Scalars;
pub use element::{GemmElement, GemmResult};
pub use engine::{Choice, Engine, Unsupported};
pub use epilogue::Epilogue;
pub(crate) use epilogue::{DeviceEpilogue, EpilogueParts};
pub use host::{HostEpilogue, gemm_host, gemm_host_with};
pub use plan::Plan;
pub use product::{Operation, Product};
pub use rows::{MAX_MATRICES, MAX_ROWS, RowsMatrix, RowsNorm, RowsProduct, multiply_rows};

use crate::driver::{DeviceRead, DeviceSlice, DeviceSliceMut, DeviceWrite, Stream};
use crate::error::Result;
pub use crate::images::DeviceProperties;
use crate::trace;
use crate::types::DType;
use plan::Selection;
use problem::GemmProblem;

/// C = alpha · op(A) · op(B) + beta · C on the stream, in order with everything else that uses the buffers.
///
/// Each buffer may be longer than its matrices. Alpha and beta are `f32` for products of `f16` and `bf16`, whose result may
/// be `f32` too.
///
/// ```no_run
/// use selvedge::driver::Device;
/// use selvedge::gemm::{Operation, Product, gemm};
///
/// # fn main() -> selvedge::Result<()> {
/// let stream = Device::new(0)?.stream()?;
/// let a = stream.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 x 3
/// let b = stream.upload(&[1.0f32, 0.0, 1.0, 0.0, 1.0, 0.0])?; // 2 x 3, used as 3 x 2
/// let mut c = stream.zeros::<f32>(4)?;
/// gemm(&stream, &Product::new(2, 2, 3).b(Operation::Transpose), 1.0, &a, &b, 0.0, &mut c)?;
/// assert_eq!(stream.download(&c)?, [4.0, 2.0, 10.0, 5.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`](crate::Error::InvalidArgument) where a size, a leading dimension or a buffer does not fit
/// (with both sides), where C shares memory with A or B, or where no engine that was asked for can run (with what each lacks);
/// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch); the driver's errors, or
/// [`Error::ContextLost`](crate::Error::ContextLost). Nothing is launched then.
pub fn gemm<T: GemmElement, C: GemmResult<T>>(
    stream: &Stream,
    product: &Product,
    alpha: T::Scalar,
    a: &impl DeviceRead<T>,
    b: &impl DeviceRead<T>,
    beta: T::Scalar,
    c: &mut impl DeviceWrite<C>,
) -> Result<()> {
    gemm_with(stream, product, alpha, a, b, beta, c, Epilogue::new())
}

/// As [`gemm`], with an [`Epilogue`].
///
/// # Errors
///
/// As `gemm`; also where a buffer of the epilogue is too short, where aux overlaps another buffer, and where C's type is none of
/// `f16`, `bf16`, `f32` and `f64`.
#[allow(clippy::too_many_arguments)] // The arguments of `gemm` and one more.
pub fn gemm_with<T: GemmElement, C: GemmResult<T>>(
    stream: &Stream,
    product: &Product,
    alpha: T::Scalar,
    a: &impl DeviceRead<T>,
    b: &impl DeviceRead<T>,
    beta: T::Scalar,
    c: &mut impl DeviceWrite<C>,
    epilogue: Epilogue<'_, C>,
) -> Result<()> {
    let memory = (
        DeviceSlice::new(a.view().bytes::<T>()),
        DeviceSlice::new(b.view().bytes::<T>()),
        DeviceSliceMut::new(c.view().bytes::<C>()),
    );
    let scalars = Scalars::new(alpha, beta);
    multiply(stream, product, (T::DTYPE, C::DTYPE), scalars, memory, &epilogue.into_parts())
}

/// Returns whether an engine computes this call of [`multiply`], whose buffers are at these addresses.
pub(crate) fn is_supported(
    device: &crate::driver::Device,
    product: &Product,
    (operand, result): (DType, DType),
    addresses: [u64; 3],
    epilogue: EpilogueParts<u64, u64>,
) -> Result<bool> {
    let properties = DeviceProperties::from_device(device)?;
    let problem = GemmProblem { product, operand, result, addresses, properties, reads_c: false, epilogue };
    Ok(plan::select(&problem).is_ok())
}

/// As [`gemm_with`], of element types that are known at run time: two that `gemm_with` takes.
pub(crate) fn multiply(
    stream: &Stream,
    product: &Product,
    (operand, result): (DType, DType),
    scalars: Scalars,
    (a, b, c): (DeviceSlice<'_, u8>, DeviceSlice<'_, u8>, DeviceSliceMut<'_, u8>),
    epilogue: &DeviceEpilogue<'_>,
) -> Result<()> {
    let product = if scalars.reads_factors { *product } else { product.without_depth() };
    product.check()?;
    let addresses = [a.address(), b.address(), c.address()];
    let lengths = [a.len(), b.len(), c.len()];
    let bytes: [std::ops::Range<u64>; 3] =
        std::array::from_fn(|which| addresses[which]..addresses[which] + lengths[which] as u64);
    product.check_buffers(bytes.clone(), [operand.size(), operand.size(), result.size()])?;
    epilogue.check_buffers(&product, &bytes, result.size())?;
    if product.is_empty() {
        return Ok(());
    }
    let properties = DeviceProperties::from_device(&stream.device())?;
    let problem = GemmProblem {
        product: &product,
        operand,
        result,
        addresses,
        properties,
        reads_c: scalars.reads_c,
        epilogue: epilogue.addresses(),
    };
    let selection = plan::select(&problem)?;
    let _traced = trace::span("engine", || ("gemm".into(), selection.traced(&problem)));
    let Selection { configuration, split, .. } = selection;
    match split {
        Some(split) => split.run_on(stream, &problem, scalars, (a, b, c), epilogue),
        None => configuration.run_on(stream, &problem, scalars, (a, b, c), epilogue),
    }
}
