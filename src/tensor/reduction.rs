//! Reductions of tensors: folds over any axes, and what is made of them.
//!
//! Each is a [`Reduction`] of the compiler, with what stands before and behind the fold in the same kernel; a mean's or a
//! maximum's second pass takes the first one's result as an input. Reductions are finite (measures and dtypes), made once
//! and kept. What must stay true: numbers that a caller chooses are scalars, never part of what is kept.

use super::axes::Axes;
use super::evaluate::{OperandSource, evaluate_one};
use super::kernel::{Output, OutputTarget, run_targets};
use super::reduction_kind::ReductionKind;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Fold, Number, Reduction};
use crate::types::{Layout, Shape};

/// Elements from which a copy in order pays where rows lie across memory.
const WORTH_A_COPY: usize = 1 << 16;

/// Which axes of a tensor are folded.
struct FoldedAxes {
    /// By axis.
    folded: Vec<bool>,
    /// Elements of a row.
    row: usize,
}

impl FoldedAxes {
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an axis that is not there, or twice.
    fn new(operation: &'static str, shape: &Shape, axes: Axes<'_>) -> Result<FoldedAxes> {
        let mut folded = vec![axes == Axes::All; shape.rank()];
        let Axes::Of(axes) = axes else {
            return Ok(FoldedAxes { folded, row: shape.iter().product() });
        };
        for &axis in axes {
            let place = shape.axis(operation, axis)?;
            if std::mem::replace(&mut folded[place], true) {
                let found = format!("axes {axes:?} of {} dimensions", shape.rank());
                return Err(Error::invalid(operation, found, "each axis once"));
            }
        }
        let row = shape.iter().zip(&folded).filter(|(_, folded)| **folded).map(|(size, _)| *size).product();
        Ok(FoldedAxes { folded, row })
    }

    /// The shape with size 1 in folded axes.
    fn kept(&self, shape: &Shape) -> Result<Shape> {
        let sizes = shape.iter().zip(&self.folded).map(|(&size, &folded)| if folded { 1 } else { size });
        Shape::new(&sizes.collect::<Vec<_>>())
    }

    /// A result as its caller wants it.
    fn finish(&self, result: Tensor, keepdim: bool) -> Result<Tensor> {
        if keepdim {
            return Ok(result);
        }
        let sizes: Vec<usize> = result
            .shape()
            .iter()
            .zip(&self.folded)
            .filter(|(_, folded)| !**folded)
            .map(|(size, _)| *size)
            .collect();
        // Fresh, and so contiguous.
        Ok(result.view_as(Layout::contiguous(&sizes)?))
    }

    /// Whether a tensor's rows run across its memory while no neighbouring rows lie together: then a copy in order is
    /// the faster way to read it, and changes no bit.
    fn is_across(&self, tensor: &Tensor) -> bool {
        let layout = tensor.layout();
        let along = |wanted: bool| {
            let axes = self.folded.iter().zip(layout.shape().iter().zip(layout.strides()));
            axes.filter(move |(folded, (size, _))| **folded == wanted && **size > 1)
                .map(|(_, (_, stride))| stride.unsigned_abs())
        };
        let in_line = along(true).next_back().is_none_or(|stride| stride <= 1);
        let together = along(false).any(|stride| stride == 1);
        tensor.count() >= WORTH_A_COPY && !in_line && !together && along(true).any(|stride| stride == 1)
    }
}

/// Folds inputs, the first of which has the shape, along axes, to a result with size 1 there.
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
    let mut result = Output::of_shape(&first.device(), reduction.output(), &axes.kept(first.shape())?)?;
    let targets = vec![OutputTarget::all(&mut result)];
    run_targets(
        operation,
        inputs,
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
    /// A kind of one pass.
    fn reduce(
        &self,
        kind: ReductionKind,
        scalars: &[Number],
        axes: Axes<'_>,
        keepdim: bool,
    ) -> Result<Tensor> {
        let axes = FoldedAxes::new(kind.name(), self.shape(), axes)?;
        let result = self.reduce_axes(kind, &[], scalars, &axes)?;
        axes.finish(result, keepdim)
    }

    /// The same with other inputs, that the first pass gave.
    fn reduce_axes(
        &self,
        kind: ReductionKind,
        others: &[&Tensor],
        scalars: &[Number],
        axes: &FoldedAxes,
    ) -> Result<Tensor> {
        let reduction = kind.reduction(self.dtype())?;
        let in_order = if axes.is_across(self) { Some(self.contiguous()?) } else { None };
        let mut inputs = vec![in_order.as_ref().unwrap_or(self)];
        inputs.extend_from_slice(others);
        run(kind.name(), reduction, &inputs, scalars, axes)
    }
}

macro_rules! folds {
    ($($(#[doc = $doc:literal])* $name:ident $kind:expr;)*) => {
        /// Reductions. `axes` are those that are folded, `..` for all ([`Axes`]); negative ones count from the last. With
        /// `keepdim` they stay with size 1, otherwise they are gone.
        ///
        /// Sums of floats are trees (`selvedge::fuse::Reduction`), so an error grows with the logarithm of the length; the tree
        /// depends on the length alone, so a result's bits are the same on the CPU and every device, in any layout.
        ///
        /// # Errors
        ///
        /// [`InvalidArgument`](crate::Error::InvalidArgument) for an axis that is not there or twice, and for an extreme of no
        /// elements; [`DTypeMismatch`](crate::Error::DTypeMismatch) for a dtype for which it has no meaning; those of memory.
        impl Tensor {
            $(
                $(#[doc = $doc])*
                #[allow(clippy::missing_errors_doc)]
                pub fn $name<'a>(&self, axes: impl Into<Axes<'a>>, keepdim: bool) -> Result<Tensor> {
                    self.reduce($kind, &[], axes.into(), keepdim)
                }
            )*
        }
    };
}

folds! {
    /// The sum; 0 of no elements. Integers and bools give i64 (u64 stays, and integers wrap); f16 and bf16 are added in f32.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::cpu())?;
    /// assert_eq!(x.sum(.., false)?.item::<f32>()?, 21.0);
    /// assert_eq!(x.sum(&[-1], false)?.to_vec::<f32>()?, [6.0, 15.0]);
    /// assert_eq!(x.sum(&[0], true)?.shape()[..], [1, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    sum ReductionKind::Fold(Fold::Sum);
    /// The product, in the dtypes of [`sum`](Self::sum); 1 of no elements.
    prod ReductionKind::Fold(Fold::Product);
    /// The least element; NaN where one is NaN.
    min ReductionKind::Fold(Fold::Minimum);
    /// The greatest element; NaN where one is NaN.
    max ReductionKind::Fold(Fold::Maximum);
    /// Where the least element is, as i64: the first of equal ones, and the first NaN where there is one. Over several
    /// axes it is the row-major index in them.
    argmin ReductionKind::Fold(Fold::ArgMinimum);
    /// Where the greatest element is; as [`argmin`](Self::argmin).
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1i32, 7, 7], [9, 5, 6]], &Device::cpu())?;
    /// assert_eq!(x.argmax(&[1], false)?.to_vec::<i64>()?, [1, 0]);
    /// assert_eq!(x.argmax(.., false)?.item::<i64>()?, 3);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    argmax ReductionKind::Fold(Fold::ArgMaximum);
    /// Whether one element is not 0 (a NaN is not); false of no elements.
    any ReductionKind::Fold(Fold::Any);
    /// Whether no element is 0; true of no elements.
    all ReductionKind::Fold(Fold::All);
    /// How many elements are not 0, as i64.
    count_nonzero ReductionKind::CountNonzero;
}

/// The divisor of a mean, as a scalar.
fn count(row: usize) -> Number {
    Number::Integer(row as i128)
}

impl Tensor {
    /// The mean; NaN of no elements. f16 and bf16 are added in f32. Integers and bools are added in f64, where no sum
    /// overflows, and give f32. `axes` and `keepdim` as of [`sum`](Self::sum).
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0], [4.0, 8.0]], &Device::cpu())?;
    /// assert_eq!(x.mean(&[1], false)?.to_vec::<f32>()?, [1.5, 6.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum).
    pub fn mean<'a>(&self, axes: impl Into<Axes<'a>>, keepdim: bool) -> Result<Tensor> {
        let axes = FoldedAxes::new("mean", self.shape(), axes.into())?;
        let result = self.reduce_axes(ReductionKind::Mean, &[], &[count(axes.row)], &axes)?;
        axes.finish(result, keepdim)
    }

    fn spread(
        &self,
        kind: ReductionKind,
        axes: Axes<'_>,
        keepdim: bool,
        correction: usize,
    ) -> Result<Tensor> {
        let axes = FoldedAxes::new(kind.name(), self.shape(), axes)?;
        let mean = self.reduce_axes(ReductionKind::UnroundedMean, &[], &[count(axes.row)], &axes)?;
        let divisor = count(axes.row.saturating_sub(correction));
        let result = self.reduce_axes(kind, &[&mean], &[divisor], &axes)?;
        axes.finish(result, keepdim)
    }

    /// The variance: the mean of the squared distance from the mean, by two passes, divided by the count less `correction`
    /// (1 for that of a sample, 0 for that of the whole); real for complex numbers. NaN or infinite where nothing is left
    /// to divide by. Integers and bools are computed in f64 and give f32.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([1.0f64, 2.0, 3.0, 6.0], &Device::cpu())?;
    /// assert_eq!(x.var(.., false, 0)?.item::<f64>()?, 3.5);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum).
    pub fn var<'a>(&self, axes: impl Into<Axes<'a>>, keepdim: bool, correction: usize) -> Result<Tensor> {
        self.spread(ReductionKind::Variance, axes.into(), keepdim, correction)
    }

    /// The standard deviation, the root of [`var`](Self::var).
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum).
    pub fn std<'a>(&self, axes: impl Into<Axes<'a>>, keepdim: bool, correction: usize) -> Result<Tensor> {
        self.spread(ReductionKind::StandardDeviation, axes.into(), keepdim, correction)
    }

    /// The p-norm (sum |x|^p)^(1/p): for `p` infinite the greatest |x|, for minus infinity the least, for 0 how many
    /// are not 0. It has the dtype of |x|, f32 for integers.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([3.0f32, -4.0], &Device::cpu())?;
    /// assert_eq!(x.norm(2.0, .., false)?.item::<f32>()?, 5.0);
    /// assert_eq!(x.norm(f64::INFINITY, .., false)?.item::<f32>()?, 4.0);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum); [`Error::InvalidArgument`] for a `p` that is NaN.
    pub fn norm<'a>(&self, p: f64, axes: impl Into<Axes<'a>>, keepdim: bool) -> Result<Tensor> {
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
        self.reduce(kind, scalars, axes.into(), keepdim)
    }

    /// ln(sum e^x), with the greatest element taken out first, so that nothing overflows; minus infinity of no elements.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([1000.0f32, 1000.0], &Device::cpu())?;
    /// assert!((x.logsumexp(.., false)?.item::<f32>()? - 1000.6931).abs() < 1e-3);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum).
    pub fn logsumexp<'a>(&self, axes: impl Into<Axes<'a>>, keepdim: bool) -> Result<Tensor> {
        const OPERATION: &str = "logsumexp";
        let axes = FoldedAxes::new(OPERATION, self.shape(), axes.into())?;
        let shift = match axes.row {
            // There is nothing to take out.
            0 => self.reduce_axes(ReductionKind::LogSumExpEmptyShift, &[], &[], &axes)?,
            _ => self.reduce_axes(ReductionKind::LogSumExpShift, &[], &[], &axes)?,
        };
        let sum = self.reduce_axes(ReductionKind::LogSumExpSum, &[&shift], &[], &axes)?;
        let last = ReductionKind::logarithm(self.dtype())?;
        let result = evaluate_one(
            OPERATION,
            last,
            &[OperandSource::Tensor(&sum), OperandSource::Tensor(&shift)],
            &[],
        )?;
        axes.finish(result, keepdim)
    }
}
