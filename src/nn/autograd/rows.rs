//! Softmax, normalisation and cross-entropy of variables. The backward of each is a function of tensors.

use std::sync::{Mutex, PoisonError};

use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{CrossEntropyOptions, NormGradients, Tensor, machine_epsilon};

/// The gradient of a function along an axis, from its result and the result's gradient.
type AlongBackward = fn(&Tensor, &Tensor, isize) -> Result<Tensor>;

/// The gradients of a normalisation of x, from the result's gradient, the normalised shape, the weight and eps; those of
/// the parameters on request.
type NormBackward = fn(&Tensor, &Tensor, &[usize], Option<&Tensor>, f64, bool) -> Result<NormGradients>;

impl Variable {
    /// Records a function along an axis whose gradient follows from the result.
    fn along(
        &self,
        operation: &'static str,
        axis: isize,
        result: Tensor,
        backward: AlongBackward,
    ) -> Variable {
        Variable::new(result).recorded(operation, vec![self.tracked()], |result| {
            let result = result.save();
            Box::new(move |gradient| Ok(vec![Some(backward(&result.tensor(operation)?, gradient, axis)?)]))
        })
    }

    /// Returns e^x / Σ e^x along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::softmax`].
    pub fn softmax(&self, axis: isize) -> Result<Variable> {
        let backward: AlongBackward = |y, g, axis| y.softmax_backward(g, axis, None);
        Ok(self.along("softmax", axis, self.tensor().softmax(axis)?, backward))
    }

    /// Returns the logarithm of [`softmax`](Self::softmax).
    ///
    /// # Errors
    ///
    /// As [`Tensor::log_softmax`].
    pub fn log_softmax(&self, axis: isize) -> Result<Variable> {
        let backward: AlongBackward = |y, g, axis| y.log_softmax_backward(g, axis, None);
        Ok(self.along("log_softmax", axis, self.tensor().log_softmax(axis)?, backward))
    }

    /// Returns (x - mean) / sqrt(variance + eps) · weight + bias over the last axes, whose sizes are `normalized_shape`.
    ///
    /// # Errors
    ///
    /// As [`Tensor::layer_norm`].
    pub fn layer_norm(
        &self,
        normalized_shape: &[usize],
        weight: Option<&Variable>,
        bias: Option<&Variable>,
        eps: f64,
    ) -> Result<Variable> {
        let tensors = [weight, bias].map(|parameter| parameter.map(Variable::tensor));
        let result =
            self.tensor().layer_norm(normalized_shape, tensors[0].as_ref(), tensors[1].as_ref(), eps)?;
        let backward: NormBackward =
            |x, g, shape, weight, eps, all| x.layer_norm_backward(g, shape, weight, eps, None, all);
        Ok(self.normalised("layer_norm", result, normalized_shape, [weight, bias], eps, backward))
    }

    /// Returns x / sqrt(mean(x²) + eps) · weight over the last axes, whose sizes are `normalized_shape`. Without `eps` it is
    /// the machine epsilon of the dtype.
    ///
    /// # Errors
    ///
    /// As [`Tensor::rms_norm`].
    pub fn rms_norm(
        &self,
        normalized_shape: &[usize],
        weight: Option<&Variable>,
        eps: Option<f64>,
    ) -> Result<Variable> {
        let eps = eps.unwrap_or_else(|| machine_epsilon(self.dtype()));
        let tensor = weight.map(Variable::tensor);
        let result = self.tensor().rms_norm(normalized_shape, tensor.as_ref(), Some(eps))?;
        let backward: NormBackward =
            |x, g, shape, weight, eps, all| x.rms_norm_backward(g, shape, weight, Some(eps), None, all);
        Ok(self.normalised("rms_norm", result, normalized_shape, [weight, None], eps, backward))
    }

    /// Records a normalisation over the last axes.
    fn normalised(
        &self,
        operation: &'static str,
        result: Tensor,
        normalized_shape: &[usize],
        [weight, bias]: [Option<&Variable>; 2],
        eps: f64,
        backward: NormBackward,
    ) -> Variable {
        let normalized_shape = normalized_shape.to_vec();
        let tracked = |parameter: Option<&Variable>| parameter.and_then(Variable::tracked);
        let parents = vec![self.tracked(), tracked(weight), tracked(bias)];
        let wanted = [parents[0].is_some() || parents[1].is_some(), parents[1].is_some()];
        let saved = (self.save(), weight.map(Variable::save));
        Variable::new(result).recorded(operation, parents, |_| {
            Box::new(move |gradient| {
                if !wanted[0] || gradient.count() == 0 {
                    return Ok(vec![Some(gradient.clone()), Some(gradient.clone()), Some(gradient.clone())]);
                }
                let x = saved.0.tensor(operation)?;
                let weight = saved.1.as_ref().map(|weight| weight.tensor(operation)).transpose()?;
                let found = backward(&x, gradient, &normalized_shape, weight.as_ref(), eps, wanted[1])?;
                // The tape sums the gradient of the result to the shape of the bias.
                let of_bias = found.bias.unwrap_or_else(|| gradient.clone());
                Ok(vec![Some(found.input), found.weight, Some(of_bias)])
            })
        })
    }

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
