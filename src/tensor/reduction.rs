//! Reductions of tensors along any axes: sums, extremes, means, variances, norms.
//!
//! Each pass is one [`Reduction`] of the compiler: one kernel evaluates the expressions before and after the fold. A second
//! pass, such as a variance's, reads the first pass's result as an input. The compiler builds each reduction once for each
//! kind and dtype.
//!
//! Invariants: numbers that a caller chooses are scalars of the kernel, never part of a cached reduction.
//!
//! Tests: `tests/tensor/reductions.rs`, and `tests/parity/reductions.rs` for devices.

use super::axes::Axes;
use super::evaluate::{OperandSource, evaluate_one};
use super::kernel::{Output, OutputTarget, run_targets};
use super::reduction_kind::ReductionKind;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Fold, Number, Reduction};
use crate::types::{Layout, Shape};

/// Smallest number of elements for which a contiguous copy is faster than reading rows across memory.
const MIN_COPIED_ELEMENTS: usize = 1 << 16;

/// The axes that a reduction folds.
struct FoldedAxes {
    /// True for each axis that is folded.
    is_folded: Vec<bool>,
    /// The number of elements that one result folds.
    row: usize,
}

impl FoldedAxes {
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an axis out of range or listed twice.
    fn new(operation: &'static str, shape: &Shape, axes: Axes<'_>) -> Result<FoldedAxes> {
        let mut is_folded = vec![axes == Axes::All; shape.rank()];
        let axes = match &axes {
            Axes::All => return Ok(FoldedAxes { is_folded, row: shape.iter().product() }),
            Axes::One(axis) => std::slice::from_ref(axis),
            Axes::Of(axes) => axes,
        };
        for &axis in axes {
            let index = shape.axis(operation, axis)?;
            if std::mem::replace(&mut is_folded[index], true) {
                let found = format!("axes {axes:?} of {} dimensions", shape.rank());
                return Err(Error::invalid(operation, found, "each axis once"));
            }
        }
        let folded = shape.iter().zip(&is_folded).filter(|(_, is_folded)| **is_folded);
        let row = folded.map(|(size, _)| *size).product();
        Ok(FoldedAxes { is_folded, row })
    }

    /// Returns the shape with size 1 in folded axes.
    fn keepdim_shape(&self, shape: &Shape) -> Result<Shape> {
        let axes = shape.iter().zip(&self.is_folded);
        Shape::new(&axes.map(|(&size, &is_folded)| if is_folded { 1 } else { size }).collect::<Vec<_>>())
    }

    /// Returns whether rows run across the tensor's memory while no neighbouring rows are adjacent. A contiguous copy is
    /// then faster to read, and changes no bit of the result.
    fn is_strided(&self, tensor: &Tensor) -> bool {
        let layout = tensor.layout();
        let strides = |folded: bool| {
            let axes = self.is_folded.iter().zip(layout.shape().iter().zip(layout.strides()));
            axes.filter(move |(is_folded, (size, _))| **is_folded == folded && **size > 1)
                .map(|(_, (_, stride))| stride.unsigned_abs())
        };
        let rows_are_contiguous = strides(true).next_back().is_none_or(|stride| stride <= 1);
        let rows_are_adjacent = strides(false).any(|stride| stride == 1);
        tensor.count() >= MIN_COPIED_ELEMENTS
            && !rows_are_contiguous
            && !rows_are_adjacent
            && strides(true).any(|stride| stride == 1)
    }
}

/// A result with size 1 in its folded axes.
struct Reduced {
    result: Tensor,
    axes: FoldedAxes,
}

impl Reduced {
    /// Returns the result without its folded axes.
    fn squeeze(self) -> Result<Tensor> {
        let axes = self.result.shape().iter().zip(&self.axes.is_folded);
        let sizes: Vec<usize> = axes.filter(|(_, is_folded)| !**is_folded).map(|(size, _)| *size).collect();
        // The result is fresh, and so contiguous.
        Ok(self.result.view_as(Layout::contiguous(&sizes)?))
    }

    /// Returns the result with size 1 in its folded axes.
    fn keepdim(self) -> Result<Tensor> {
        Ok(self.result)
    }
}

/// Folds inputs along axes. The first input has the shape that the axes index.
fn run(
    operation: &'static str,
    reduction: &Reduction,
    inputs: &[&Tensor],
    scalars: &[Number],
    axes: &FoldedAxes,
) -> Result<Tensor> {
    let Some((first, _)) = inputs.split_first() else {
        return Err(Error::invalid(operation, "no inputs", "at least one"));
    };
    let shape = axes.keepdim_shape(first.shape())?;
    let mut result = Output::of_shape(&first.device(), reduction.output(), &shape)?;
    let targets = &mut [OutputTarget::all(&mut result)];
    run_targets(
        operation,
        inputs.iter().copied().map(OperandSource::Tensor),
        targets,
        |inputs, mut outputs| {
            outputs.iter_mut().try_for_each(|output| reduction.run_host(&inputs, scalars, output))
        },
        |stream, inputs, mut outputs| {
            outputs.iter_mut().try_for_each(|output| reduction.run(stream, &inputs, scalars, output))
        },
    )?;
    Ok(result.into_tensor())
}

impl Tensor {
    /// Runs one pass, with the results of earlier passes as further inputs.
    fn reduce_pass(
        &self,
        kind: ReductionKind,
        others: &[&Tensor],
        scalars: &[Number],
        axes: &FoldedAxes,
    ) -> Result<Tensor> {
        let reduction = kind.reduction(self.dtype())?;
        let copy = if axes.is_strided(self) { Some(self.contiguous()?) } else { None };
        let mut inputs = vec![copy.as_ref().unwrap_or(self)];
        inputs.extend_from_slice(others);
        run(kind.name(), reduction, &inputs, scalars, axes)
    }

    /// Reduces in a single pass.
    fn reduce(&self, kind: ReductionKind, scalars: &[Number], axes: Axes<'_>) -> Result<Reduced> {
        let axes = FoldedAxes::new(kind.name(), self.shape(), axes)?;
        let result = self.reduce_pass(kind, &[], scalars, &axes)?;
        Ok(Reduced { result, axes })
    }

    fn reduce_mean(&self, axes: Axes<'_>) -> Result<Reduced> {
        let axes = FoldedAxes::new("mean", self.shape(), axes)?;
        let result = self.reduce_pass(ReductionKind::Mean, &[], &[divisor(axes.row)], &axes)?;
        Ok(Reduced { result, axes })
    }

    /// Returns the mean in the dtype in which it is computed, which is f32 for f16 and bf16, with size 1 in the folded axes.
    ///
    /// # Errors
    ///
    /// As [`mean`](Self::mean).
    pub(crate) fn unrounded_mean_keepdim<'a>(&self, axes: impl Into<Axes<'a>>) -> Result<Tensor> {
        let axes = FoldedAxes::new("mean", self.shape(), axes.into())?;
        self.reduce_pass(ReductionKind::UnroundedMean, &[], &[divisor(axes.row)], &axes)
    }

    /// Reduces to a variance or its root.
    fn reduce_variance(&self, kind: ReductionKind, axes: Axes<'_>, correction: usize) -> Result<Reduced> {
        let axes = FoldedAxes::new(kind.name(), self.shape(), axes)?;
        let mean = self.reduce_pass(ReductionKind::UnroundedMean, &[], &[divisor(axes.row)], &axes)?;
        let divisor = divisor(axes.row.saturating_sub(correction));
        let result = self.reduce_pass(kind, &[&mean], &[divisor], &axes)?;
        Ok(Reduced { result, axes })
    }

    fn reduce_norm(&self, p: f64, axes: Axes<'_>) -> Result<Reduced> {
        let kind = match p {
            _ if p.is_nan() => return Err(Error::invalid("norm", "p = NaN", "a number")),
            0.0 => ReductionKind::NormZero,
            1.0 => ReductionKind::NormOne,
            2.0 => ReductionKind::NormTwo,
            f64::INFINITY => ReductionKind::NormInfinity,
            f64::NEG_INFINITY => ReductionKind::NormNegativeInfinity,
            _ => ReductionKind::NormPower,
        };
        let scalars: &[Number] = match kind {
            ReductionKind::NormPower => &[Number::Real(p), Number::Real(p)],
            _ => &[],
        };
        self.reduce(kind, scalars, axes)
    }

    fn reduce_logsumexp(&self, axes: Axes<'_>) -> Result<Reduced> {
        const OPERATION: &str = "logsumexp";
        let axes = FoldedAxes::new(OPERATION, self.shape(), axes)?;
        let shift = match axes.row {
            0 => self.reduce_pass(ReductionKind::LogSumExpEmptyShift, &[], &[], &axes)?,
            _ => self.reduce_pass(ReductionKind::LogSumExpShift, &[], &[], &axes)?,
        };
        let sum = self.reduce_pass(ReductionKind::LogSumExpSum, &[&shift], &[], &axes)?;
        let last = ReductionKind::logarithm(self.dtype())?;
        let sources = [OperandSource::Tensor(&sum), OperandSource::Tensor(&shift)];
        let result = evaluate_one(OPERATION, last, &sources, &[])?;
        Ok(Reduced { result, axes })
    }
}

/// The divisor of a mean, as a scalar.
fn divisor(count: usize) -> Number {
    Number::Integer(count as i128)
}

macro_rules! reductions {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident, $name_keepdim:ident, $name_all:ident
            [$($first:ident: $first_type:ty)?] [$($last:ident: $last_type:ty)?] |$x:ident, $axes:ident| $reduce:expr;
    )*) => {
        /// Reductions.
        ///
        /// `sum(axes)` folds the given axes and drops them from the shape; `sum_keepdim(axes)` leaves them with size 1;
        /// `sum_all()` folds every axis, to a tensor without dimensions. `axes` is one axis, a list of axes, or `..` for all
        /// ([`Axes`]); a negative axis counts from the last. Every reduction has these three forms.
        ///
        /// Sums of floats are trees, so the rounding error grows with the logarithm of the length. The tree depends on the
        /// length alone: a result has the same bits on the CPU and every device, in any layout.
        ///
        /// # Errors
        ///
        /// [`InvalidArgument`](crate::Error::InvalidArgument) for an axis out of range or listed twice, and for an extreme of
        /// no elements; [`DTypeMismatch`](crate::Error::DTypeMismatch) for a dtype that the reduction does not support;
        /// [`OutOfMemory`](crate::Error::OutOfMemory).
        impl Tensor {
            $(
                $(#[doc = $doc])*
                #[allow(clippy::missing_errors_doc)]
                pub fn $name<'a>(&self, $($first: $first_type,)? axes: impl Into<Axes<'a>> $(, $last: $last_type)?) -> Result<Tensor> {
                    let ($x, $axes) = (self, axes.into());
                    $reduce?.squeeze()
                }

                #[doc = concat!("Reduces as [`", stringify!($name), "`](Self::", stringify!($name), "), and leaves the folded axes with size 1.")]
                #[allow(clippy::missing_errors_doc)]
                pub fn $name_keepdim<'a>(&self, $($first: $first_type,)? axes: impl Into<Axes<'a>> $(, $last: $last_type)?) -> Result<Tensor> {
                    let ($x, $axes) = (self, axes.into());
                    $reduce?.keepdim()
                }

                #[doc = concat!("Reduces every axis as [`", stringify!($name), "`](Self::", stringify!($name), "), to a tensor without dimensions.")]
                #[allow(clippy::missing_errors_doc)]
                pub fn $name_all(&self $(, $first: $first_type)? $(, $last: $last_type)?) -> Result<Tensor> {
                    let ($x, $axes) = (self, Axes::All);
                    $reduce?.squeeze()
                }
            )*
        }
    };
}

reductions! {
    /// Returns the sum; 0 of no elements. Integers and bools give i64, u64 gives u64, and integers wrap. f16 and bf16 are
    /// added in f32.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::cpu())?;
    /// assert_eq!(x.sum_all()?.item::<f32>()?, 21.0);
    /// assert_eq!(x.sum(-1)?.to_vec::<f32>()?, [6.0, 15.0]);
    /// assert_eq!(x.sum(&[0, 1])?.item::<f32>()?, 21.0);
    /// assert_eq!(x.sum_keepdim(0)?.shape()[..], [1, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    sum, sum_keepdim, sum_all [] [] |x, axes| x.reduce(ReductionKind::Fold(Fold::Sum), &[], axes);
    /// Returns the product, in the dtypes of [`sum`](Self::sum); 1 of no elements.
    prod, prod_keepdim, prod_all [] [] |x, axes| x.reduce(ReductionKind::Fold(Fold::Product), &[], axes);
    /// Returns the smallest element; NaN if an element is NaN.
    min, min_keepdim, min_all [] [] |x, axes| x.reduce(ReductionKind::Fold(Fold::Minimum), &[], axes);
    /// Returns the largest element; NaN if an element is NaN.
    max, max_keepdim, max_all [] [] |x, axes| x.reduce(ReductionKind::Fold(Fold::Maximum), &[], axes);
    /// Returns the index of the smallest element as i64: the first of equal elements, and the first NaN if there is one. Over
    /// several axes it is the row-major index into them.
    argmin, argmin_keepdim, argmin_all [] [] |x, axes| x.reduce(ReductionKind::Fold(Fold::ArgMinimum), &[], axes);
    /// Returns the index of the largest element as i64, by the rules of [`argmin`](Self::argmin).
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1i32, 7, 7], [9, 5, 6]], &Device::cpu())?;
    /// assert_eq!(x.argmax(1)?.to_vec::<i64>()?, [1, 0]);
    /// assert_eq!(x.argmax_all()?.item::<i64>()?, 3);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    argmax, argmax_keepdim, argmax_all [] [] |x, axes| x.reduce(ReductionKind::Fold(Fold::ArgMaximum), &[], axes);
    /// Returns whether any element is not 0, as bool; false of no elements. NaN is not 0.
    any, any_keepdim, any_all [] [] |x, axes| x.reduce(ReductionKind::Fold(Fold::Any), &[], axes);
    /// Returns whether no element is 0, as bool; true of no elements.
    all, all_keepdim, all_all [] [] |x, axes| x.reduce(ReductionKind::Fold(Fold::All), &[], axes);
    /// Returns the number of elements that are not 0, as i64.
    count_nonzero, count_nonzero_keepdim, count_nonzero_all [] [] |x, axes| x.reduce(ReductionKind::CountNonzero, &[], axes);
    /// Returns the mean; NaN of no elements. f16 and bf16 are added in f32. Integers and bools are added in f64 and give f32.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0], [4.0, 8.0]], &Device::cpu())?;
    /// assert_eq!(x.mean(1)?.to_vec::<f32>()?, [1.5, 6.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    mean, mean_keepdim, mean_all [] [] |x, axes| x.reduce_mean(axes);
    /// Returns the variance: the sum of squared distances from the mean, divided by the count less `correction` (1 for a
    /// sample, 0 for a population). Two passes compute it. Complex elements give a real variance; integers and bools are
    /// computed in f64 and give f32. The result is NaN or infinite if the divisor is 0.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1.0f64, 2.0, 3.0, 6.0], &Device::cpu())?;
    /// assert_eq!(x.var_all(0)?.item::<f64>()?, 3.5);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    var, var_keepdim, var_all [] [correction: usize] |x, axes| x.reduce_variance(ReductionKind::Variance, axes, correction);
    /// Returns the standard deviation, the root of [`var`](Self::var), also where that leaves the range of the dtype.
    std, std_keepdim, std_all [] [correction: usize] |x, axes| x.reduce_variance(ReductionKind::StandardDeviation, axes, correction);
    /// Returns the p-norm (sum |x|^p)^(1/p): the largest |x| for an infinite `p`, the smallest for minus infinity, the number of
    /// elements that are not 0 for 0. The result has the dtype of |x|, f32 for integers. A `p` of NaN is an error. Powers of
    /// elements that leave the range of the dtype do not change the result: a 2-norm adds the squares of scaled elements then.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([3.0f32, -4.0], &Device::cpu())?;
    /// assert_eq!(x.norm_all(2.0)?.item::<f32>()?, 5.0);
    /// assert_eq!(x.norm(f64::INFINITY, 0)?.item::<f32>()?, 4.0);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    norm, norm_keepdim, norm_all [p: f64] [] |x, axes| x.reduce_norm(p, axes);
    /// Returns ln(sum e^x); minus infinity of no elements. The largest element is subtracted first, so nothing overflows.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1000.0f32, 1000.0], &Device::cpu())?;
    /// assert!((x.logsumexp_all()?.item::<f32>()? - 1000.6931).abs() < 1e-3);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    logsumexp, logsumexp_keepdim, logsumexp_all [] [] |x, axes| x.reduce_logsumexp(axes);
}
