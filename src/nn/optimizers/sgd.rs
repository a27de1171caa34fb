//! [`Sgd`], stochastic gradient descent.

use std::collections::BTreeMap;

use super::parameters::{ParameterList, ParameterState, check_number, fields};
use super::{Optimizer, widened};
use crate::error::Result;
use crate::nn::{Variable, no_grad};
use crate::tensor::{Fused, Tensor};

const NAME: &str = "Sgd";

/// The buffer b of a parameter.
#[derive(Debug)]
struct MomentumBuffer(Tensor);

impl ParameterState for MomentumBuffer {
    const FIELDS: &'static [&'static str] = &["momentum_buffer"];

    fn to_tensors(&self) -> Result<Vec<Tensor>> {
        Ok(vec![self.0.clone()])
    }

    fn from_tensors(tensors: Vec<Tensor>) -> Result<MomentumBuffer> {
        let [buffer] = fields(tensors)?;
        Ok(MomentumBuffer(buffer))
    }
}

/// Stochastic gradient descent with momentum: b = μ b + g + λ p, p = p - lr b.
///
/// ```
/// use selvedge::nn::{Optimizer, Sgd, Variable};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([3.0f64], &Device::cpu())?)?;
/// let mut optimizer = Sgd::new(vec![x.clone()], 0.25)?;
/// x.square()?.sum_all()?.backward()?;
/// optimizer.step()?;
/// assert_eq!(x.tensor().to_vec::<f64>()?, [1.5]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct Sgd {
    parameters: ParameterList<MomentumBuffer>,
    learning_rate: f64,
    momentum: f64,
    weight_decay: f64,
    plain: Fused<4>,
    with_momentum: Fused<6, 2>,
}

impl Sgd {
    /// Creates an optimizer without momentum.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a learning rate that is negative or not finite, and for
    /// parameters other than leaves with a gradient.
    pub fn new(parameters: Vec<Variable>, learning_rate: f64) -> Result<Sgd> {
        check_number(NAME, "learning rate", learning_rate)?;
        Ok(Sgd {
            parameters: ParameterList::new(NAME, parameters)?,
            learning_rate,
            momentum: 0.0,
            weight_decay: 0.0,
            plain: Fused::new(|[p, g, rate, decay]| {
                let p = widened(p);
                p - (widened(g) + p * decay) * rate
            }),
            with_momentum: Fused::with_outputs(|[p, g, buffer, rate, decay, momentum]| {
                let p = widened(p);
                let buffer = buffer * momentum + (widened(g) + p * decay);
                [p - buffer * rate, buffer]
            }),
        })
    }

    /// Sets the momentum μ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a number that is negative or not finite.
    pub fn with_momentum(self, momentum: f64) -> Result<Sgd> {
        check_number(NAME, "momentum", momentum)?;
        Ok(Sgd { momentum, ..self })
    }

    /// Sets the weight decay λ.
    ///
    /// # Errors
    ///
    /// As [`with_momentum`](Self::with_momentum).
    pub fn with_weight_decay(self, weight_decay: f64) -> Result<Sgd> {
        check_number(NAME, "weight decay", weight_decay)?;
        Ok(Sgd { weight_decay, ..self })
    }
}

impl Optimizer for Sgd {
    fn step(&mut self) -> Result<()> {
        let (rate, decay, momentum) = (self.learning_rate, self.weight_decay, self.momentum);
        let (plain, with_momentum) = (&self.plain, &self.with_momentum);
        let ParameterList { variables, states } = &mut self.parameters;
        no_grad(|| {
            for (parameter, state) in variables.iter().zip(states) {
                let Some(gradient) = parameter.grad() else { continue };
                let value = parameter.tensor();
                if momentum == 0.0 {
                    parameter.update(|elements| {
                        plain.run_into((&value, &gradient, rate, decay), [elements.reborrow()])
                    })?;
                    continue;
                }
                let before = match state.take() {
                    Some(MomentumBuffer(buffer)) => buffer,
                    None => value.zeros_like()?.cast(super::compute_dtype(value.dtype()))?,
                };
                let MomentumBuffer(buffer) = state.insert(MomentumBuffer(before.clone()));
                parameter.update(|elements| {
                    let operands = (&value, &gradient, &before, rate, decay, momentum);
                    with_momentum.run_into(operands, [elements.reborrow(), buffer.in_place()])
                })?;
            }
            Ok(())
        })
    }

    fn parameters(&self) -> &[Variable] {
        &self.parameters.variables
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
    }

    fn state_dict(&self) -> Result<BTreeMap<String, Tensor>> {
        self.parameters.state_dict(self.learning_rate)
    }

    fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        self.learning_rate = self.parameters.load_state_dict("Sgd::load_state_dict", entries)?;
        Ok(())
    }
}
