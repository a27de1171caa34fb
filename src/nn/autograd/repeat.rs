//! Variables with repeated and moved elements: `roll`, `repeat`, and `pad`.

use super::indexing::AddToZeros;
use super::recordable::recorded_linear;
use super::shape::sizes;
use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{Padding, Tensor};
use crate::types::DType;

/// # Errors
///
/// As the same operation of [`Tensor`].
#[allow(clippy::missing_errors_doc)]
impl Variable {
    /// Returns the elements rotated along axes: by `shifts[i]` positions forwards along `axes[i]`.
    pub fn roll(&self, shifts: &[isize], axes: &[isize]) -> Result<Variable> {
        let result = self.tensor().roll(shifts, axes)?;
        let back = (shifts.iter().map(|shift| shift.wrapping_neg()).collect::<Vec<_>>(), axes.to_vec());
        Ok(recorded_linear!(self, "roll", result, back, |(shifts, axes), gradient| gradient
            .roll(shifts, axes)))
    }

    /// Repeats the elements `times[i]` times along dimension i. More numbers than dimensions add dimensions in front.
    pub fn repeat(&self, times: &[usize]) -> Result<Variable> {
        let (shape, result) = (self.shape(), self.tensor().repeat(times)?);
        // The gradient has a dimension of repetitions before each dimension.
        let own = std::iter::repeat_n(&1, result.rank() - shape.rank()).chain(shape.iter());
        let split = own.zip(result.shape().iter()).flat_map(|(&size, &repeated)| {
            let times = repeated.checked_div(size).unwrap_or(1);
            [times as isize, size as isize]
        });
        let axes: Vec<isize> = (0..result.rank()).map(|axis| 2 * axis as isize).collect();
        let saved = (split.collect::<Vec<_>>(), axes, sizes(&shape));
        Ok(recorded_linear!(self, "repeat", result, saved, |(split, axes, shape), gradient| {
            gradient.reshape(split)?.sum(&axes[..])?.reshape(shape)
        }))
    }

    /// Returns the variable with padding: `widths[i]` has the numbers of elements before and after axis i. Repeated elements
    /// get the sum of the gradients.
    pub fn pad(&self, widths: &[(usize, usize)], padding: Padding) -> Result<Variable> {
        const OPERATION: &str = "pad";
        let (x, result) = (self.tensor(), self.tensor().pad(widths, padding)?);
        if let Padding::Constant(_) = padding {
            let saved = (*x.shape(), widths.to_vec());
            return Ok(recorded_linear!(self, OPERATION, result, saved, |(shape, widths), gradient| {
                let mut part = gradient.clone();
                for (axis, (&(before, _), &size)) in widths.iter().zip(shape.iter()).enumerate() {
                    part = part.narrow(axis as isize, before, size)?;
                }
                Ok(part)
            }));
        }
        // Each axis of the result reads the padded positions of the operand's.
        let positions = widths.iter().zip(x.shape().iter()).map(|(&width, &size)| {
            let positions = Tensor::arange(0, size as i64, 1, DType::I64, &x.device())?;
            Ok((size, positions.pad(&[width], padding)?))
        });
        let positions = positions.collect::<Result<Vec<_>>>()?;
        Ok(recorded_linear!(self, OPERATION, result, positions, |positions, gradient| {
            let mut sum = gradient.clone();
            for (axis, (size, index)) in positions.iter().enumerate() {
                let mut shape = sum.shape().to_vec();
                shape[axis] = *size;
                sum = sum.add_to_zeros(&shape, axis as isize, index)?;
            }
            Ok(sum)
        }))
    }
}
