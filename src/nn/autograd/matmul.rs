//! Products of variables.

use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{Matmul, Tensor};

const OPERATION: &str = "matmul";

impl Variable {
    /// Returns the product of matrices, of vectors, or of batches of them, as [`Tensor::matmul`]. For C = A B the gradients
    /// are G Bᴴ and Aᴴ G; batches that were broadcast are summed.
    ///
    /// # Errors
    ///
    /// As [`Tensor::matmul`].
    pub fn matmul(&self, other: &Variable) -> Result<Variable> {
        let (a, b) = (self.tensor(), other.tensor());
        let result = a.matmul(&b)?;
        let parents = vec![self.tracked(), other.tracked()];
        let wanted = [parents[0].is_some(), parents[1].is_some()];
        let (is_row, is_column) = (a.rank() == 1, b.rank() == 1);
        // The gradient of one operand reads the other.
        let saved = [wanted[1].then(|| self.save()), wanted[0].then(|| other.save())];
        Ok(Variable::new(result).recorded(OPERATION, parents, |_| {
            Box::new(move |gradient| {
                let mut gradient = gradient.clone();
                if is_column {
                    gradient = gradient.unsqueeze(-1)?;
                }
                if is_row {
                    gradient = gradient.unsqueeze(-2)?;
                }
                let [a, b] = &saved;
                let of_a = b.as_ref().map(|b| {
                    let b = b.tensor(OPERATION)?;
                    let b = if is_column { b.unsqueeze(1)? } else { b };
                    let found = product(&gradient, &b.transpose(-2, -1)?, [false, true])?;
                    if is_row { found.squeeze(-2) } else { Ok(found) }
                });
                let of_b = a.as_ref().map(|a| {
                    let a = a.tensor(OPERATION)?;
                    let a = if is_row { a.unsqueeze(0)? } else { a };
                    let found = product(&a.transpose(-2, -1)?, &gradient, [true, false])?;
                    if is_column { found.squeeze(-1) } else { Ok(found) }
                });
                Ok(vec![of_a.transpose()?, of_b.transpose()?])
            })
        }))
    }
}

/// The product with the marked operand conjugated.
pub(super) fn product(a: &Tensor, b: &Tensor, conjugate: [bool; 2]) -> Result<Tensor> {
    if a.dtype().is_complex() {
        let [a, b] = [(a, conjugate[0]), (b, conjugate[1])].map(|(x, is_conjugate)| match is_conjugate {
            true => x.conj(),
            false => Ok(x.clone()),
        });
        return Matmul::new().of(&a?, &b?);
    }
    Matmul::new().of(a, b)
}
