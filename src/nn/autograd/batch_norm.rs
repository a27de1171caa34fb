//! Normalisation by channel of variables.

use std::sync::OnceLock;

use super::variable::Variable;
use crate::error::Result;
use crate::nn::precision::widened;
use crate::tensor::{Fused, Tensor, TensorOperand};

const OPERATION: &str = "batch_norm";

/// With r = 1 / sqrt(variance + eps), the gradients of the input and, before its sum, of the weight: g weight r and
/// g (x - mean) r.
fn evaluation_gradients() -> &'static Fused<6, 2> {
    static FUNCTION: OnceLock<Fused<6, 2>> = OnceLock::new();
    FUNCTION.get_or_init(|| {
        Fused::with_outputs(|[x, g, weight, mean, variance, eps]| {
            let (x, g, weight) = (widened(x), widened(g), widened(weight));
            let scaled = g * (widened(variance) + eps).rsqrt();
            [scaled * weight, scaled * (x - widened(mean))]
        })
    })
}

/// The statistics of an evaluation: mean and variance.
type Statistics = (Tensor, Tensor);

impl Variable {
    /// Returns the elements of shape (N, C, …) normalised by channel with given statistics, as
    /// [`Tensor::batch_norm`]. The statistics are constants.
    ///
    /// # Errors
    ///
    /// As [`Tensor::batch_norm`].
    pub fn batch_norm(
        &self,
        running_mean: &Tensor,
        running_var: &Tensor,
        weight: Option<&Variable>,
        bias: Option<&Variable>,
        eps: f64,
    ) -> Result<Variable> {
        let parameters = [weight, bias].map(|parameter| parameter.map(Variable::tensor));
        let [of_weight, of_bias] = parameters.each_ref().map(Option::as_ref);
        let result = self.tensor().batch_norm(running_mean, running_var, of_weight, of_bias, eps)?;
        let statistics = (running_mean.clone(), running_var.clone());
        self.recorded_norm_by_channel(result, Some(statistics), weight, bias, eps)
    }

    /// Returns the elements of shape (N, C, …) normalised by channel with the statistics of each channel, and updates the
    /// running ones, if given, in place, as [`Tensor::batch_norm_training`].
    ///
    /// # Errors
    ///
    /// As [`Tensor::batch_norm_training`] and [`update`](Self::update).
    pub fn batch_norm_training(
        &self,
        running: Option<(&Variable, &Variable)>,
        weight: Option<&Variable>,
        bias: Option<&Variable>,
        momentum: f64,
        eps: f64,
    ) -> Result<Variable> {
        let parameters = [weight, bias].map(|parameter| parameter.map(Variable::tensor));
        let [of_weight, of_bias] = parameters.each_ref().map(Option::as_ref);
        // Statistics in a storage are written there, which no tensor may share then.
        let mut new = running.map(|(mean, variance)| (mean.snapshot(), variance.snapshot()));
        let pair = new.as_mut().map(|(mean, variance)| (mean, variance));
        let result = self.tensor().batch_norm_training(pair, of_weight, of_bias, momentum, eps)?;
        let result = self.recorded_norm_by_channel(result, None, weight, bias, eps)?;
        if let (Some((mean, variance)), Some(new)) = (running, new) {
            // Assigned, not replaced: a captured graph relies on their addresses.
            mean.update(|elements| elements.assign(&new.0).map(|_| ()))?;
            variance.update(|elements| elements.assign(&new.1).map(|_| ()))?;
        }
        Ok(result)
    }

    /// Records a normalisation by channel: with statistics, or with those of the elements.
    fn recorded_norm_by_channel(
        &self,
        result: Tensor,
        statistics: Option<Statistics>,
        weight: Option<&Variable>,
        bias: Option<&Variable>,
        eps: f64,
    ) -> Result<Variable> {
        // In this shape a parameter broadcasts to the elements.
        let sizes: Vec<isize> = (0..result.rank()).map(|axis| if axis == 1 { -1 } else { 1 }).collect();
        let by_channel =
            |parameter: Option<&Variable>| parameter.map(|parameter| parameter.reshape(&sizes)).transpose();
        let (weight, bias) = (by_channel(weight)?, by_channel(bias)?);
        let tracked = |parameter: &Option<Variable>| parameter.as_ref().and_then(Variable::tracked);
        let parents = vec![self.tracked(), tracked(&weight), tracked(&bias)];
        let reads_input = parents[0].is_some() || parents[1].is_some();
        let (x, weight) = (self.save(), weight.map(|weight| weight.save()));
        Ok(Variable::new(result).recorded(OPERATION, parents, |_| {
            Box::new(move |gradient| {
                if !reads_input || gradient.count() == 0 {
                    return Ok(vec![Some(gradient.clone()), Some(gradient.clone()), Some(gradient.clone())]);
                }
                let x = x.tensor(OPERATION)?;
                let weight = weight.as_ref().map(|weight| weight.tensor(OPERATION)).transpose()?;
                let [of_x, of_weight, of_bias] = match &statistics {
                    None => {
                        let weight = weight.map(|weight| weight.reshape(&[-1])).transpose()?;
                        let found = x.batch_norm_backward(gradient, weight.as_ref(), eps, None)?;
                        let of_channels = [found.weight, found.bias];
                        let [of_weight, of_bias] =
                            of_channels.map(|sum| sum.map(|sum| sum.reshape(&sizes)).transpose());
                        [Some(found.input), of_weight?, of_bias?]
                    }
                    Some((mean, variance)) => {
                        let (mean, variance) = (mean.reshape(&sizes)?, variance.reshape(&sizes)?);
                        let weight = weight.as_ref().map_or(TensorOperand::from(1.0), TensorOperand::Tensor);
                        let operands = (&x, gradient, weight, &mean, &variance, eps);
                        // The tape sums the gradient of a broadcast operand.
                        let [of_x, of_weight] = evaluation_gradients().run_all(operands)?;
                        [Some(of_x), Some(of_weight), Some(gradient.clone())]
                    }
                };
                Ok(vec![of_x, of_weight, of_bias])
            })
        }))
    }
}
