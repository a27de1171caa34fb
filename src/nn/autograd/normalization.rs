//! Softmax and normalisation of variables. The backward of each is a function of tensors.

use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{NormGradients, Tensor, machine_epsilon};

/// The gradient of a function along an axis, from its result and the result's gradient.
type AlongAxisBackward = fn(&Tensor, &Tensor, isize) -> Result<Tensor>;

/// The gradients of a normalisation of x, from the result's gradient, the normalized shape, the weight, eps, and whether the
/// parameters have gradients too.
type NormBackward = fn(&Tensor, &Tensor, &[usize], Option<&Tensor>, f64, bool) -> Result<NormGradients>;

impl Variable {
    /// Records a function along an axis whose gradient follows from the result.
    fn recorded_along_axis(
        &self,
        operation: &'static str,
        axis: isize,
        result: Tensor,
        backward: AlongAxisBackward,
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
        let backward: AlongAxisBackward = |y, g, axis| y.softmax_backward(g, axis, None);
        Ok(self.recorded_along_axis("softmax", axis, self.tensor().softmax(axis)?, backward))
    }

    /// Returns the logarithm of [`softmax`](Self::softmax).
    ///
    /// # Errors
    ///
    /// As [`Tensor::log_softmax`].
    pub fn log_softmax(&self, axis: isize) -> Result<Variable> {
        let backward: AlongAxisBackward = |y, g, axis| y.log_softmax_backward(g, axis, None);
        Ok(self.recorded_along_axis("log_softmax", axis, self.tensor().log_softmax(axis)?, backward))
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
        let backward: NormBackward = |x, g, shape, weight, eps, with_parameters| {
            x.layer_norm_backward(g, shape, weight, eps, None, with_parameters)
        };
        Ok(self.recorded_norm("layer_norm", result, normalized_shape, [weight, bias], eps, backward))
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
        let backward: NormBackward = |x, g, shape, weight, eps, with_parameters| {
            x.rms_norm_backward(g, shape, weight, Some(eps), None, with_parameters)
        };
        Ok(self.recorded_norm("rms_norm", result, normalized_shape, [weight, None], eps, backward))
    }

    /// Records a normalisation over the last axes.
    fn recorded_norm(
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
        let with_parameters = parents[1].is_some();
        let reads_input = parents[0].is_some() || with_parameters;
        let saved = (self.save(), weight.map(Variable::save));
        Variable::new(result).recorded(operation, parents, |_| {
            Box::new(move |gradient| {
                if !reads_input || gradient.count() == 0 {
                    return Ok(vec![Some(gradient.clone()), Some(gradient.clone()), Some(gradient.clone())]);
                }
                let x = saved.0.tensor(operation)?;
                let weight = saved.1.as_ref().map(|weight| weight.tensor(operation)).transpose()?;
                let found = backward(&x, gradient, &normalized_shape, weight.as_ref(), eps, with_parameters)?;
                // The tape sums the gradient of the result to the shape of the bias.
                let of_bias = found.bias.unwrap_or_else(|| gradient.clone());
                Ok(vec![Some(found.input), found.weight, Some(of_bias)])
            })
        })
    }
}
