//! Products of variables.

use std::sync::Arc;

use super::recordable::RuleOfClosures;
use super::tape::Node;
use super::value::Saved;
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
        Ok(Variable::new(result).recorded_with_second_derivatives(OPERATION, parents, |_| {
            Box::new(RuleOfClosures {
                saved,
                gradients: move |[a, b]: &[Option<Saved>; 2], gradient: &Tensor| {
                    let value = |saved: &Option<Saved>| {
                        saved.as_ref().map(|saved| saved.tensor(OPERATION)).transpose()
                    };
                    gradients(gradient, value(a)?, value(b)?, is_row, is_column)
                },
                recorded: move |[a, b]: &[Option<Saved>; 2], node: &Arc<Node>, gradient: &Variable| {
                    let value = |saved: &Option<Saved>, index: usize| {
                        let of_operand = node.operands().get(index).cloned().flatten();
                        saved.as_ref().map(|saved| saved.variable(OPERATION, of_operand)).transpose()
                    };
                    gradients(gradient, value(a, 0)?, value(b, 1)?, is_row, is_column)
                },
            })
        }))
    }
}

/// Returns the gradients of the operands whose other operand is given.
fn gradients<M: Matrix>(
    gradient: &M,
    a: Option<M>,
    b: Option<M>,
    is_row: bool,
    is_column: bool,
) -> Result<Vec<Option<M>>> {
    let mut gradient = gradient.clone();
    if is_column {
        gradient = gradient.unsqueeze(-1)?;
    }
    if is_row {
        gradient = gradient.unsqueeze(-2)?;
    }
    let of_a = b.map(|b| {
        let b = if is_column { b.unsqueeze(1)? } else { b };
        let found = gradient.product(&b.transpose(-2, -1)?, [false, true])?;
        if is_row { found.squeeze(-2) } else { Ok(found) }
    });
    let of_b = a.map(|a| {
        let a = if is_row { a.unsqueeze(0)? } else { a };
        let found = a.transpose(-2, -1)?.product(&gradient, [true, false])?;
        if is_column { found.squeeze(-1) } else { Ok(found) }
    });
    Ok(vec![of_a.transpose()?, of_b.transpose()?])
}

/// The operations of a product's gradients: of tensors, or recorded ones of variables.
pub(super) trait Matrix: Clone {
    fn unsqueeze(&self, axis: isize) -> Result<Self>;

    fn squeeze(&self, axis: isize) -> Result<Self>;

    fn transpose(&self, first: isize, second: isize) -> Result<Self>;

    /// Returns the product with the marked operands conjugated.
    fn product(&self, other: &Self, conjugate: [bool; 2]) -> Result<Self>;
}

macro_rules! matrices {
    ($($type:ident |$a:ident, $b:ident, $conjugate:ident| $product:expr;)*) => {$(
        impl Matrix for $type {
            fn unsqueeze(&self, axis: isize) -> Result<$type> {
                $type::unsqueeze(self, axis)
            }

            fn squeeze(&self, axis: isize) -> Result<$type> {
                $type::squeeze(self, axis)
            }

            fn transpose(&self, first: isize, second: isize) -> Result<$type> {
                $type::transpose(self, first, second)
            }

            fn product(&self, $b: &$type, $conjugate: [bool; 2]) -> Result<$type> {
                let $a = self;
                $product
            }
        }
    )*};
}

matrices! {
    Tensor |a, b, conjugate| product(a, b, conjugate);
    Variable |a, b, conjugate| match a.dtype().is_complex() {
        true => {
            let a = if conjugate[0] { a.conj()? } else { a.clone() };
            if conjugate[1] { a.matmul(&b.conj()?) } else { a.matmul(b) }
        }
        false => a.matmul(b),
    };
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
