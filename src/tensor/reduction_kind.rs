//! [`ReductionKind`]: the reductions of tensors, as expressions before and after a fold. Each is built once for each dtype.

use super::cached_operation::AppendOnlyMap;
use crate::error::{Error, Result};
use crate::fuse::{Expr, Expression, Fold, Graph, Reduction};
use crate::types::DType;

/// One pass over a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReductionKind {
    Fold(Fold),
    CountNonzero,
    /// Divided by a scalar.
    Mean,
    /// A mean in the dtype that it was computed in.
    UnroundedMean,
    /// Squared distances from a second input, divided by a scalar.
    Variance,
    /// The square root of a variance.
    StandardDeviation,
    NormZero,
    NormOne,
    NormTwo,
    NormInfinity,
    NormNegativeInfinity,
    /// The p-norm for any other p, which is passed as two scalars.
    NormPower,
    /// The largest element, or 0 if it is infinite: the shift that a logsumexp subtracts first.
    LogSumExpShift,
    /// The shift of an empty group: 0 in the dtype of a shift.
    LogSumExpEmptyShift,
    /// The sum of e^(x - shift), with the shift as a second input.
    LogSumExpSum,
}

/// The dtype that a mean of elements is computed in: f32 for narrower floats, f64 for integers and bools.
fn working(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        _ if dtype.is_float() || dtype.is_complex() => dtype,
        _ => DType::F64,
    }
}

/// The dtype of a fraction: that of the elements, f32 for integers.
fn fraction(dtype: DType) -> DType {
    if dtype.is_float() || dtype.is_complex() { dtype } else { DType::F32 }
}

/// |x|² of a real or complex number, real.
fn square(x: Expr<'_>) -> Expr<'_> {
    if x.dtype().is_complex() { x.real().square() + x.imag().square() } else { x.square() }
}

/// Returns a reduction followed by an expression of its value.
fn finish<'g>(
    reduction: Reduction,
    behind: &'g Graph,
    make: impl FnOnce(Expr<'g>) -> Expr<'g>,
) -> Result<Reduction> {
    let value = behind.input(reduction.accumulator());
    reduction.then(&behind.expression(&[make(value)])?)
}

impl ReductionKind {
    /// The operation's name in errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            ReductionKind::Fold(fold) => fold.name(),
            ReductionKind::CountNonzero => "count_nonzero",
            ReductionKind::Mean | ReductionKind::UnroundedMean => "mean",
            ReductionKind::Variance => "var",
            ReductionKind::StandardDeviation => "std",
            ReductionKind::NormZero
            | ReductionKind::NormOne
            | ReductionKind::NormTwo
            | ReductionKind::NormInfinity
            | ReductionKind::NormNegativeInfinity
            | ReductionKind::NormPower => "norm",
            ReductionKind::LogSumExpShift
            | ReductionKind::LogSumExpEmptyShift
            | ReductionKind::LogSumExpSum => "logsumexp",
        }
    }

    /// The reduction for elements of a dtype.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for a dtype that the reduction does not support.
    pub(super) fn reduction(self, dtype: DType) -> Result<&'static Reduction> {
        static CACHE: [AppendOnlyMap<(ReductionKind, DType), Reduction>; 32] =
            [const { AppendOnlyMap::new() }; 32];
        let key = (self, dtype);
        let slot = dtype as usize % CACHE.len();
        CACHE[slot].find_or_add(|known| *known == key, || Ok((key, self.make(dtype)?)))
    }

    fn make(self, dtype: DType) -> Result<Reduction> {
        let refuse = |wanted: &str| {
            let (operation, wanted) = (self.name(), wanted.to_owned());
            Err(Error::DTypeMismatch { operation, wanted, found: dtype.to_string() })
        };
        if dtype.is_storage_only() {
            return refuse("a dtype to compute in; cast it first, such as to f32");
        }
        if dtype.is_complex()
            && matches!(
                self,
                ReductionKind::LogSumExpShift
                    | ReductionKind::LogSumExpEmptyShift
                    | ReductionKind::LogSumExpSum
            )
        {
            return refuse("a real dtype, or bool");
        }
        let (graph, behind) = (Graph::new(), Graph::new());
        let x = graph.input(dtype);
        let (work, result) = (working(dtype), fraction(dtype));
        let size = || x.cast(work).abs();
        let sum = |of: Expr<'_>| graph.reduction(Fold::Sum, of);
        match self {
            ReductionKind::Fold(fold) => graph.reduction(fold, x),
            ReductionKind::CountNonzero => sum(x.cast(DType::Bool)),
            ReductionKind::Mean | ReductionKind::UnroundedMean => {
                // In f64 for integers, whose sum in i64 may overflow.
                let total = sum(x.cast(work))?;
                let kept = if self == ReductionKind::Mean { result } else { work };
                finish(total, &behind, |total| (total / behind.scalar(work)).cast(kept))
            }
            ReductionKind::Variance | ReductionKind::StandardDeviation => {
                let mean = graph.input(work);
                let centred = x.cast(work) - mean;
                if self == ReductionKind::StandardDeviation {
                    return finish(graph.reduction(Fold::SumOfSquares, centred)?, &behind, |total| {
                        let variance = total.real() / behind.scalar(work.part());
                        (variance.sqrt() / total.imag()).cast(result.part())
                    });
                }
                finish(sum(square(centred))?, &behind, |total| {
                    (total / behind.scalar(work.part())).cast(result.part())
                })
            }
            ReductionKind::NormZero => {
                finish(sum(x.cast(DType::Bool))?, &behind, |count| count.cast(result.part()))
            }
            ReductionKind::NormOne => finish(sum(size())?, &behind, |total| total.cast(result.part())),
            ReductionKind::NormTwo => {
                finish(graph.reduction(Fold::SumOfSquares, x.cast(work))?, &behind, |total| {
                    (total.real().sqrt() / total.imag()).cast(result.part())
                })
            }
            ReductionKind::NormInfinity | ReductionKind::NormNegativeInfinity => {
                let fold = if self == ReductionKind::NormInfinity { Fold::Maximum } else { Fold::Minimum };
                finish(graph.reduction(fold, size())?, &behind, |most| most.cast(result.part()))
            }
            ReductionKind::NormPower => {
                // In f64, where the logarithm's error is none of the result's. 0^p is 0, which e^(p ln 0) is too.
                let power = graph.scalar(DType::F64);
                let total = sum((size().cast(DType::F64).log() * power).exp())?;
                finish(total, &behind, |total| {
                    (total.log() / behind.scalar(DType::F64)).exp().cast(result.part())
                })
            }
            ReductionKind::LogSumExpShift => {
                let most = graph.reduction(Fold::Maximum, x.cast(work))?;
                finish(most, &behind, |most| {
                    most.is_infinite().choose(behind.number(0.0, most.dtype()), most)
                })
            }
            ReductionKind::LogSumExpEmptyShift => sum(x.cast(work)),
            ReductionKind::LogSumExpSum => {
                let shift = graph.input(work);
                sum((x.cast(work) - shift).exp())
            }
        }
    }

    /// Returns the last step of a logsumexp: ln(sum) + shift.
    ///
    /// # Errors
    ///
    /// As [`reduction`](Self::reduction).
    pub(super) fn logarithm(dtype: DType) -> Result<&'static Expression> {
        static CACHE: AppendOnlyMap<DType, Expression> = AppendOnlyMap::new();
        CACHE.find_or_add(
            |known| *known == dtype,
            || {
                let graph = Graph::new();
                let [sum, shift] = graph.inputs([working(dtype); 2]);
                Ok((dtype, graph.expression(&[(sum.log() + shift).cast(fraction(dtype))])?))
            },
        )
    }
}
