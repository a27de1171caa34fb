//! Softmax and normalisation of variables. The backward of each is one row program.

use std::sync::OnceLock;

use super::shape::in_shape;
use super::variable::Variable;
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor, TensorOperand, machine_epsilon};
use crate::types::DType;

/// Gradients of 16-bit floats are computed in f32.
pub(super) fn widened(x: Expr<'_>) -> Expr<'_> {
    if matches!(x.dtype(), DType::F16 | DType::BF16) { x.cast(DType::F32) } else { x }
}

/// p (g - Σ p g).
fn softmax_gradient() -> &'static Fused<2> {
    static FUNCTION: OnceLock<Fused<2>> = OnceLock::new();
    FUNCTION.get_or_init(|| {
        Fused::new(|[p, g]| {
            let (p, g) = (widened(p), widened(g));
            p * (g - (p * g).sum_group())
        })
    })
}

/// g - e^y Σ g.
fn log_softmax_gradient() -> &'static Fused<2> {
    static FUNCTION: OnceLock<Fused<2>> = OnceLock::new();
    FUNCTION.get_or_init(|| {
        Fused::new(|[y, g]| {
            let (y, g) = (widened(y), widened(g));
            g - y.exp() * g.sum_group()
        })
    })
}

/// With r = 1 / sqrt(variance + eps), h = (x - mean) r and v = g weight, the gradients of the input and, before its sum,
/// of the weight: r (v - mean(v) - h mean(v h)) and g h.
pub(super) fn normalised_gradients<'g>([x, g, weight, eps]: [Expr<'g>; 4]) -> [Expr<'g>; 2] {
    let (x, g, weight) = (widened(x), widened(g), widened(weight));
    let centred = x - x.mean_group();
    let inverse = (centred.square().mean_group() + eps).rsqrt();
    let (h, v) = (centred * inverse, g * weight);
    [inverse * (v - v.mean_group() - h * (v * h).mean_group()), g * h]
}

fn layer_norm_gradients() -> &'static Fused<4, 2> {
    static FUNCTION: OnceLock<Fused<4, 2>> = OnceLock::new();
    FUNCTION.get_or_init(|| Fused::with_outputs(normalised_gradients))
}

/// With r = 1 / sqrt(mean(x²) + eps), h = x r and v = g weight, the gradients of the input and, before its sum, of the
/// weight: r (v - h mean(v h)) and g h.
fn rms_norm_gradients() -> &'static Fused<4, 2> {
    static FUNCTION: OnceLock<Fused<4, 2>> = OnceLock::new();
    FUNCTION.get_or_init(|| {
        Fused::with_outputs(|[x, g, weight, eps]| {
            let (x, g, weight) = (widened(x), widened(g), widened(weight));
            let inverse = (x.square().mean_group() + eps).rsqrt();
            let (h, v) = (x * inverse, g * weight);
            [inverse * (v - h * (v * h).mean_group()), g * h]
        })
    })
}

impl Variable {
    /// Records a function along an axis whose gradient follows from the result.
    fn along(
        &self,
        operation: &'static str,
        axis: isize,
        result: Tensor,
        function: fn() -> &'static Fused<2>,
    ) -> Variable {
        let has_axes = result.rank() > 0;
        Variable::new(result).recorded(operation, vec![self.tracked()], |result| {
            let result = result.save();
            Box::new(move |gradient| {
                let result = result.tensor(operation)?;
                if !has_axes {
                    return Ok(vec![Some(function().run([&result, gradient])?)]);
                }
                let last = |x: &Tensor| x.transpose(axis, -1);
                let found = function().run([&last(&result)?, &last(gradient)?])?;
                Ok(vec![Some(last(&found)?)])
            })
        })
    }

    /// Returns e^x / Σ e^x along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::softmax`].
    pub fn softmax(&self, axis: isize) -> Result<Variable> {
        Ok(self.along("softmax", axis, self.tensor().softmax(axis)?, softmax_gradient))
    }

    /// Returns the logarithm of [`softmax`](Self::softmax).
    ///
    /// # Errors
    ///
    /// As [`Tensor::log_softmax`].
    pub fn log_softmax(&self, axis: isize) -> Result<Variable> {
        Ok(self.along("log_softmax", axis, self.tensor().log_softmax(axis)?, log_softmax_gradient))
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
        let axes = normalized_shape.len();
        Ok(self.normalised("layer_norm", result, axes, [weight, bias], eps, layer_norm_gradients))
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
        let axes = normalized_shape.len();
        Ok(self.normalised("rms_norm", result, axes, [weight, None], eps, rms_norm_gradients))
    }

    /// Records a normalisation over the last axes.
    fn normalised(
        &self,
        operation: &'static str,
        result: Tensor,
        axes: usize,
        [weight, bias]: [Option<&Variable>; 2],
        eps: f64,
        function: fn() -> &'static Fused<4, 2>,
    ) -> Variable {
        let shape = *result.shape();
        let tracked = |parameter: Option<&Variable>| parameter.and_then(Variable::tracked);
        let parents = vec![self.tracked(), tracked(weight), tracked(bias)];
        let wanted = [parents[0].is_some() || parents[1].is_some(), parents[2].is_some()];
        let saved = (self.save(), weight.map(Variable::save));
        Variable::new(result).recorded(operation, parents, |_| {
            Box::new(move |gradient| {
                let of_bias = wanted[1].then(|| gradient.clone());
                if !wanted[0] || gradient.count() == 0 {
                    return Ok(vec![Some(gradient.clone()), Some(gradient.clone()), of_bias]);
                }
                let rows = |x: &Tensor| x.flatten(-(axes as isize), -1);
                let x = rows(&saved.0.tensor(operation)?)?;
                let weight = saved.1.as_ref().map(|weight| rows(&weight.tensor(operation)?)).transpose()?;
                let weight = weight.as_ref().map_or(TensorOperand::from(1.0), TensorOperand::Tensor);
                let [of_x, of_weight] = function().run_all((&x, &rows(gradient)?, weight, eps))?;
                Ok(vec![Some(in_shape(&of_x, &shape)?), Some(in_shape(&of_weight, &shape)?), of_bias])
            })
        })
    }
}
