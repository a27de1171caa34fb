//! The check of probabilities: at once on the CPU, and by a device-side error on a CUDA device, so that it can be
//! captured.

use crate::driver::{KernelError, KernelReport};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::groups::{GroupAxes, fuse_groups};
use crate::tensor::tensor::Tensor;
use crate::types::DType;

const OPERATION: &str = "binary_cross_entropy";
const WANTED: &str = "probabilities from 0 to 1";

static INPUT: KernelError = KernelError::new(OPERATION, |report| outside(report, "an input"));
static TARGET: KernelError = KernelError::new(OPERATION, |report| outside(report, "a target"));

fn outside(report: &KernelReport, name: &str) -> Error {
    Error::invalid(report.operation, format!("{name} with elements outside of 0 to 1, or NaN"), WANTED)
}

/// Returns the least element; reports an index that does not exist unless both extremes are probabilities.
fn checked<'g>([least, greatest]: [Expr<'g>; 2], error: &'static KernelError) -> [Expr<'g>; 1] {
    let (least, greatest) = (least.min_group(), greatest.max_group());
    let are_inside = least.ge(0).logical_and(greatest.le(1));
    [least.at_group_of(are_inside.choose(0, -1), error)]
}

impl Tensor {
    /// Checks that input and target of a binary cross-entropy are from 0 to 1.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for elements outside of 0 to 1 and NaN: here on the CPU, and on a CUDA device at the next
    /// call that waits.
    pub(crate) fn check_probabilities(input: &Tensor, target: &Tensor) -> Result<()> {
        for (tensor, is_target) in [(input, false), (target, true)] {
            if tensor.count() == 0 {
                continue;
            }
            let (least, greatest) = tensor.aminmax(..)?;
            if tensor.device().is_cpu() {
                let [least, greatest] = [least, greatest].map(|x| x.cast(DType::F64)?.item::<f64>());
                let (least, greatest) = (least?, greatest?);
                if !(least >= 0.0 && greatest <= 1.0) {
                    let name = if is_target { "a target" } else { "an input" };
                    let found = format!("{name} from {least} to {greatest}");
                    return Err(Error::invalid(OPERATION, found, WANTED));
                }
                continue;
            }
            let (operands, axes) = ([(&least).into(), (&greatest).into()], &GroupAxes::All);
            let [_] = match is_target {
                false => fuse_groups(OPERATION, operands, axes, |operands| checked(operands, &INPUT)),
                true => fuse_groups(OPERATION, operands, axes, |operands| checked(operands, &TARGET)),
            }?;
        }
        Ok(())
    }
}
