//! Cross-entropy of variables, whose backward may overwrite the logits.

use std::sync::{Mutex, PoisonError};

use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{CrossEntropyOptions, Tensor};

impl Variable {
    /// Returns -ln softmax(x) at the labels. A backward writes the gradient over this variable's elements if nothing else
    /// has them then, so large logits need no second memory. In a capture it does so only if the same capture computed them.
    ///
    /// # Errors
    ///
    /// As [`Tensor::cross_entropy`].
    pub fn cross_entropy(&self, labels: &Tensor, options: CrossEntropyOptions) -> Result<Variable> {
        const OPERATION: &str = "cross_entropy";
        let Some(parent) = self.tracked() else {
            return Ok(Variable::new(self.tensor().cross_entropy(labels, options)?));
        };
        let (result, statistics) = self.tensor().cross_entropy_with_statistics(labels, options)?;
        let saved = Mutex::new(Some(self.save()));
        let rule = move |gradient: &Tensor, is_last: bool| {
            let mut saved = saved.lock().unwrap_or_else(PoisonError::into_inner);
            let logits = match (is_last, &*saved) {
                (false, Some(saved)) => saved.tensor(OPERATION)?,
                _ => match saved.take() {
                    Some(saved) => saved.into_tensor(OPERATION)?,
                    // The tape uses no rule after the last backward.
                    None => return Ok(vec![None]),
                },
            };
            Ok(vec![Some(statistics.backward(logits, gradient)?)])
        };
        Ok(Variable::new(result).recorded_overwriting(OPERATION, parent, Box::new(rule)))
    }
}
