//! Products with weights. A weight of 0 leaves a term out, so an infinite term counts as 0 and not as NaN.

use std::sync::Arc;

use super::recordable::RuleOfClosures;
use super::tape::Node;
use super::value::Saved;
use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{Tensor, fuse};

const OPERATION: &str = "a product with a weight";

fn product(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    fuse([x, weight], |[x, weight]| (weight.eq(0) & x.is_infinite()).choose(0, x * weight))
}

impl Variable {
    /// Returns the product with a weight of the same shape; 0 where the weight is 0 and the element is infinite.
    ///
    /// # Errors
    ///
    /// As [`Tensor::mul`].
    pub(in crate::nn) fn weighted(&self, weight: &Variable) -> Result<Variable> {
        let result = product(&self.tensor(), &weight.tensor())?;
        let parents = vec![self.tracked(), weight.tracked()];
        let wanted = [parents[0].is_some(), parents[1].is_some()];
        // The gradient of one operand reads the other.
        let saved = [wanted[1].then(|| self.save()), wanted[0].then(|| weight.save())];
        Ok(Variable::new(result).recorded_with_second_derivatives(OPERATION, parents, |_| {
            Box::new(RuleOfClosures {
                saved,
                gradients: |[x, weight]: &[Option<Saved>; 2], gradient: &Tensor| {
                    let read = |saved: &Option<Saved>| {
                        saved.as_ref().map(|saved| saved.tensor(OPERATION)).transpose()
                    };
                    let of_x = read(weight)?.map(|weight| product(gradient, &weight)).transpose()?;
                    let of_weight = read(x)?.map(|x| product(&x, gradient)).transpose()?;
                    Ok(vec![of_x, of_weight])
                },
                recorded: |[x, weight]: &[Option<Saved>; 2], node: &Arc<Node>, gradient: &Variable| {
                    let read = |saved: &Option<Saved>, index: usize| {
                        let of_operand = node.operands().get(index).cloned().flatten();
                        saved.as_ref().map(|saved| saved.variable(OPERATION, of_operand)).transpose()
                    };
                    let of_x = read(weight, 1)?.map(|weight| gradient.weighted(&weight)).transpose()?;
                    let of_weight = read(x, 0)?.map(|x| x.weighted(gradient)).transpose()?;
                    Ok(vec![of_x, of_weight])
                },
            })
        }))
    }
}
