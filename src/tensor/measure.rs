//! [`Measure`], what a reduction of a tensor computes: its expressions before and behind the fold, made once a dtype.

use super::recipe::Chain;
use crate::error::{Error, Result};
use crate::fuse::{Expr, Expression, Fold, Graph, Reduction};
use crate::types::DType;

/// One pass over a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Fold(Fold),
    Nonzero,
    /// Divided by a scalar.
    Mean,
    /// A mean in the dtype that it was computed in.
    Center,
    /// Squared distances from a second input, divided by a scalar.
    Variance,
    /// Its root.
    Deviation,
    NormCount,
    NormOne,
    NormTwo,
    NormMost,
    NormLeast,
    /// By two scalars that are both the power.
    NormPower,
    /// The greatest, or 0 where that is infinite.
    Shift,
    /// 0 in the dtype of a shift.
    Nothing,
    /// The sum of exponentials less a second input.
    Exponentials,
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

/// A reduction, with what is done to its value.
fn finish<'g>(
    reduction: Reduction,
    behind: &'g Graph,
    make: impl FnOnce(Expr<'g>) -> Expr<'g>,
) -> Result<Reduction> {
    let value = behind.input(reduction.accumulator());
    reduction.then(&behind.expression(&[make(value)])?)
}

impl Measure {
    /// The operation's name in errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Measure::Fold(fold) => fold.name(),
            Measure::Nonzero => "count_nonzero",
            Measure::Mean | Measure::Center => "mean",
            Measure::Variance => "var",
            Measure::Deviation => "std",
            Measure::NormCount
            | Measure::NormOne
            | Measure::NormTwo
            | Measure::NormMost
            | Measure::NormLeast
            | Measure::NormPower => "norm",
            Measure::Shift | Measure::Nothing | Measure::Exponentials => "logsumexp",
        }
    }

    /// The reduction for elements of a dtype.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for a dtype for which it has no meaning.
    pub(super) fn reduction(self, dtype: DType) -> Result<&'static Reduction> {
        static KEPT: [Chain<(Measure, DType), Reduction>; 32] = [const { Chain::new() }; 32];
        let key = (self, dtype);
        let place = dtype as usize % KEPT.len();
        KEPT[place].find_or_add(|known| *known == key, || Ok((key, self.make(dtype)?)))
    }

    fn make(self, dtype: DType) -> Result<Reduction> {
        let refuse = |wanted: &str| {
            let (operation, wanted) = (self.name(), wanted.to_owned());
            Err(Error::DTypeMismatch { operation, wanted, found: dtype.to_string() })
        };
        if dtype.is_storage_only() {
            return refuse("a dtype to compute in; cast it first, such as to f32");
        }
        if dtype.is_complex() && matches!(self, Measure::Shift | Measure::Nothing | Measure::Exponentials) {
            return refuse("a real dtype, or bool");
        }
        let (graph, behind) = (Graph::new(), Graph::new());
        let x = graph.input(dtype);
        let (work, result) = (working(dtype), fraction(dtype));
        let size = || x.cast(work).abs();
        let sum = |of: Expr<'_>| graph.reduction(Fold::Sum, of);
        match self {
            Measure::Fold(fold) => graph.reduction(fold, x),
            Measure::Nonzero => sum(x.cast(DType::Bool)),
            Measure::Mean | Measure::Center => {
                // In f64 for integers, whose sum in i64 may overflow.
                let total = sum(x.cast(work))?;
                let kept = if self == Measure::Mean { result } else { work };
                finish(total, &behind, |total| (total / behind.scalar(work)).cast(kept))
            }
            Measure::Variance | Measure::Deviation => {
                let mean = graph.input(work);
                let total = sum(square(x.cast(work) - mean))?;
                finish(total, &behind, |total| {
                    let variance = total / behind.scalar(work.part());
                    let value = if self == Measure::Deviation { variance.sqrt() } else { variance };
                    value.cast(result.part())
                })
            }
            Measure::NormCount => {
                finish(sum(x.cast(DType::Bool))?, &behind, |count| count.cast(result.part()))
            }
            Measure::NormOne => finish(sum(size())?, &behind, |total| total.cast(result.part())),
            Measure::NormTwo => {
                finish(sum(square(x.cast(work)))?, &behind, |total| total.sqrt().cast(result.part()))
            }
            Measure::NormMost | Measure::NormLeast => {
                let fold = if self == Measure::NormMost { Fold::Maximum } else { Fold::Minimum };
                finish(graph.reduction(fold, size())?, &behind, |most| most.cast(result.part()))
            }
            Measure::NormPower => {
                // In f64, where the logarithm's error is none of the result's. 0^p is 0, which e^(p ln 0) is too.
                let power = graph.scalar(DType::F64);
                let total = sum((size().cast(DType::F64).log() * power).exp())?;
                finish(total, &behind, |total| {
                    (total.log() / behind.scalar(DType::F64)).exp().cast(result.part())
                })
            }
            Measure::Shift => {
                let most = graph.reduction(Fold::Maximum, x.cast(work))?;
                finish(most, &behind, |most| {
                    most.is_infinite().choose(behind.number(0.0, most.dtype()), most)
                })
            }
            Measure::Nothing => sum(x.cast(work)),
            Measure::Exponentials => {
                let shift = graph.input(work);
                sum((x.cast(work) - shift).exp())
            }
        }
    }

    /// The last step of a logsumexp: of the sum and the shift.
    ///
    /// # Errors
    ///
    /// As [`reduction`](Self::reduction).
    pub(super) fn logarithm(dtype: DType) -> Result<&'static Expression> {
        static KEPT: Chain<DType, Expression> = Chain::new();
        KEPT.find_or_add(
            |known| *known == dtype,
            || {
                let graph = Graph::new();
                let [sum, shift] = graph.inputs([working(dtype); 2]);
                Ok((dtype, graph.expression(&[(sum.log() + shift).cast(fraction(dtype))])?))
            },
        )
    }
}
