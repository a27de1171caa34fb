//! Softmax and normalisation of variables. The backward of each is a function of tensors.

use super::elementwise::record;
use super::operand::{HeldOperand, VariableOperand};
use super::variable::Variable;
use crate::error::Result;
use crate::fuse::Operation;
use crate::tensor::{NormGradients, Tensor, machine_epsilon};

/// The gradient of a function along an axis, from its result and the result's gradient.
type AlongAxisBackward = fn(&Tensor, &Tensor, isize) -> Result<Tensor>;

/// The gradients of a normalisation of x, from the result's gradient, the normalized shape, the weight, eps, a sum that is added to
/// the gradient of x, and whether the parameters have gradients too.
type NormBackward =
    fn(&Tensor, &Tensor, &[usize], Option<&Tensor>, f64, Option<&Tensor>, bool) -> Result<NormGradients>;

const OF_LAYER_NORM: NormBackward = |x, g, shape, weight, eps, residual, with_parameters| {
    x.layer_norm_backward(g, shape, weight, eps, residual, with_parameters)
};

const OF_RMS_NORM: NormBackward = |x, g, shape, weight, eps, residual, with_parameters| {
    x.rms_norm_backward(g, shape, weight, Some(eps), residual, with_parameters)
};

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
        Ok(self.recorded_norm("layer_norm", result, normalized_shape, [weight, bias], eps, OF_LAYER_NORM))
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
        Ok(self.recorded_norm("rms_norm", result, normalized_shape, [weight, None], eps, OF_RMS_NORM))
    }

    /// Returns the sum of both, and [`layer_norm`](Self::layer_norm) of the sum: in one pass where they have one shape and dtype.
    ///
    /// # Errors
    ///
    /// As the addition and [`layer_norm`](Self::layer_norm).
    pub fn add_layer_norm(
        &self,
        other: &Variable,
        normalized_shape: &[usize],
        weight: Option<&Variable>,
        bias: Option<&Variable>,
        eps: f64,
    ) -> Result<[Variable; 2]> {
        if !self.has_form_of(other) {
            let sum = (self + other)?;
            let result = sum.layer_norm(normalized_shape, weight, bias, eps)?;
            return Ok([sum, result]);
        }
        let tensors = [weight, bias].map(|parameter| parameter.map(Variable::tensor));
        let [weight_tensor, bias_tensor] = tensors.each_ref().map(Option::as_ref);
        let (x, other_tensor) = (self.tensor(), other.tensor());
        let [sum, result] =
            x.add_layer_norm(&other_tensor, normalized_shape, weight_tensor, bias_tensor, eps)?;
        let sum = self.recorded_sum(other, sum)?;
        let parameters = [weight, bias];
        let result =
            sum.recorded_norm("layer_norm", result, normalized_shape, parameters, eps, OF_LAYER_NORM);
        Ok([sum, result])
    }

    /// Returns the sum of both, and [`rms_norm`](Self::rms_norm) of the sum; see [`add_layer_norm`](Self::add_layer_norm).
    ///
    /// # Errors
    ///
    /// As the addition and [`rms_norm`](Self::rms_norm).
    pub fn add_rms_norm(
        &self,
        other: &Variable,
        normalized_shape: &[usize],
        weight: Option<&Variable>,
        eps: Option<f64>,
    ) -> Result<[Variable; 2]> {
        if !self.has_form_of(other) {
            let sum = (self + other)?;
            let result = sum.rms_norm(normalized_shape, weight, eps)?;
            return Ok([sum, result]);
        }
        let eps = eps.unwrap_or_else(|| machine_epsilon(self.dtype()));
        let (x, other_tensor, tensor) = (self.tensor(), other.tensor(), weight.map(Variable::tensor));
        let [sum, result] = x.add_rms_norm(&other_tensor, normalized_shape, tensor.as_ref(), Some(eps))?;
        let sum = self.recorded_sum(other, sum)?;
        let result =
            sum.recorded_norm("rms_norm", result, normalized_shape, [weight, None], eps, OF_RMS_NORM);
        Ok([sum, result])
    }

    /// Records the sum of both, which another operation has computed.
    fn recorded_sum(&self, other: &Variable, sum: Tensor) -> Result<Variable> {
        let operands: [VariableOperand<'_>; 2] = [self.into(), other.into()];
        record(Operation::Add, &operands, operands.iter().map(HeldOperand::of).collect(), sum)
    }

    fn has_form_of(&self, other: &Variable) -> bool {
        (self.shape(), self.dtype()) == (other.shape(), other.dtype())
    }

    /// Records a normalisation over the last axes. A residual that skips the normalisation has its gradient added in the same pass.
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
        let rule = move |gradient: &Tensor, residual: Option<&Tensor>| {
            if !reads_input || gradient.count() == 0 {
                return Ok(vec![Some(gradient.clone()), Some(gradient.clone()), Some(gradient.clone())]);
            }
            let x = saved.0.tensor(operation)?;
            let weight = saved.1.as_ref().map(|weight| weight.tensor(operation)).transpose()?;
            let found =
                backward(&x, gradient, &normalized_shape, weight.as_ref(), eps, residual, with_parameters)?;
            // The tape sums the gradient of the result to the shape of the bias.
            let of_bias = found.bias.unwrap_or_else(|| gradient.clone());
            Ok(vec![Some(found.input), found.weight, Some(of_bias)])
        };
        Variable::new(result).recorded_accumulating(operation, parents, Box::new(rule))
    }
}
