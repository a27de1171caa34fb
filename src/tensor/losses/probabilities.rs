//! The check of probabilities: at once on the CPU, and by a device-side error on a CUDA device, so that it can be
//! captured.

use crate::driver::{KernelError, KernelReport};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::groups::{GroupAxes, fuse_groups};
use crate::tensor::operand::TensorOperand;
use crate::tensor::tensor::Tensor;
use crate::types::DType;

const WANTED: &str = "probabilities from 0 to 1";

/// An operand of a loss, whose elements are probabilities.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probabilities {
    BinaryCrossEntropyInput,
    BinaryCrossEntropyTarget,
    LogitsTarget,
    DivergenceTarget,
}

const INPUT: &str = "an input";
const TARGET: &str = "a target";

/// The errors of [`Probabilities`], in their order.
static ERRORS: [KernelError; 4] = [
    KernelError::new("binary_cross_entropy", |report| outside(report, INPUT)),
    KernelError::new("binary_cross_entropy", |report| outside(report, TARGET)),
    KernelError::new("binary_cross_entropy_with_logits", |report| outside(report, TARGET)),
    KernelError::new("kl_div", |report| outside(report, TARGET)),
];

fn outside(report: &KernelReport, name: &str) -> Error {
    Error::invalid(report.operation, format!("{name} with elements outside of 0 to 1, or NaN"), WANTED)
}

impl Probabilities {
    fn error(self) -> &'static KernelError {
        &ERRORS[self as usize]
    }

    /// Checks the extremes of the operand on a device.
    ///
    /// # Errors
    ///
    /// Errors of the launch.
    fn check_on_device(self, [least, greatest]: [&Tensor; 2]) -> Result<()> {
        let operands = [least.into(), greatest.into()];
        match self {
            Probabilities::BinaryCrossEntropyInput => report::<0>(operands),
            Probabilities::BinaryCrossEntropyTarget => report::<1>(operands),
            Probabilities::LogitsTarget => report::<2>(operands),
            Probabilities::DivergenceTarget => report::<3>(operands),
        }
    }
}

/// Runs the check of one error. The type of a function is the key of a cache, so each error has a function of its own.
fn report<const ERROR: usize>(operands: [TensorOperand<'_>; 2]) -> Result<()> {
    let operation = ERRORS[ERROR].operation();
    let [_] =
        fuse_groups(operation, operands, &GroupAxes::All, |operands| checked(operands, &ERRORS[ERROR]))?;
    Ok(())
}

/// Returns the least element; reports an index that does not exist unless both extremes are probabilities.
fn checked<'g>([least, greatest]: [Expr<'g>; 2], error: &'static KernelError) -> [Expr<'g>; 1] {
    let (least, greatest) = (least.min_group(), greatest.max_group());
    let are_inside = least.ge(0).logical_and(greatest.le(1));
    [least.at_group_of(are_inside.choose(0, -1), error)]
}

impl Tensor {
    /// Checks that the elements of an operand of a loss are from 0 to 1.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for elements outside of 0 to 1 and NaN: here on the CPU, and on a CUDA device at the next
    /// call that waits.
    pub(crate) fn check_probabilities(&self, operand: Probabilities) -> Result<()> {
        if self.count() == 0 {
            return Ok(());
        }
        let operation = operand.error().operation();
        let (least, greatest) = self.aminmax(..).map_err(|error| error.in_operation(operation))?;
        if !self.device().is_cpu() {
            return operand.check_on_device([&least, &greatest]);
        }
        let [least, greatest] = [least, greatest].map(|x| x.cast(DType::F64)?.item::<f64>());
        let (least, greatest) = (least?, greatest?);
        if least >= 0.0 && greatest <= 1.0 {
            return Ok(());
        }
        let name = if operand == Probabilities::BinaryCrossEntropyInput { INPUT } else { TARGET };
        Err(Error::invalid(operation, format!("{name} from {least} to {greatest}"), WANTED))
    }
}
