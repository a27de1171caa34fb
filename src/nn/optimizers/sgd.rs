//! [`Sgd`], stochastic gradient descent.

use std::collections::BTreeMap;

use super::Optimizer;
use super::core::{Guard, HYPERPARAMETERS, OptimizerCore, StepRule, outputs, scaled, shaped};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::nn::Variable;
use crate::nn::checks::check_non_negative;
use crate::nn::precision::widened;
use crate::tensor::{Fused, Tensor, TensorMut};
use crate::types::Shape;

const NAME: &str = "Sgd";

/// The step. The operands of the functions end with the gradient, lr and λ; then those with momentum read μ, and the
/// guarded ones the condition and the factor of a guard.
#[derive(Debug)]
struct SgdRule {
    momentum: f64,
    is_nesterov: bool,
    plain: Fused<4>,
    with_momentum: Fused<6, 2>,
    guarded_plain: Fused<6>,
    guarded_with_momentum: Fused<8, 2>,
}

/// Returns the new parameter in the dtype that steps are computed in.
fn plain_step([p, g, rate, decay]: [Expr<'_>; 4]) -> Expr<'_> {
    let p = widened(p);
    p - (widened(g) + p * decay) * rate
}

/// Returns the new parameter, as [`plain_step`], and the new momentum.
fn momentum_step(is_nesterov: bool, [p, buffer, g, rate, decay, momentum]: [Expr<'_>; 6]) -> [Expr<'_>; 2] {
    let p = widened(p);
    let g = widened(g) + p * decay;
    let buffer = buffer * momentum + g;
    let direction = if is_nesterov { g + buffer * momentum } else { buffer };
    [p - direction * rate, buffer]
}

impl SgdRule {
    fn new(momentum: f64, is_nesterov: bool) -> SgdRule {
        SgdRule {
            momentum,
            is_nesterov,
            plain: Fused::new(plain_step),
            with_momentum: Fused::with_outputs(move |operands| momentum_step(is_nesterov, operands)),
            guarded_plain: Fused::new(|[p, g, rate, decay, condition, factor]| {
                condition.choose(plain_step([p, scaled(g, factor), rate, decay]), widened(p))
            }),
            guarded_with_momentum: Fused::with_outputs(
                move |[p, buffer, g, rate, decay, momentum, condition, factor]| {
                    let operands = [p, buffer, scaled(g, factor), rate, decay, momentum];
                    let [new_p, new_buffer] = momentum_step(is_nesterov, operands);
                    [condition.choose(new_p, widened(p)), condition.choose(new_buffer, buffer)]
                },
            ),
        }
    }
}

impl StepRule for SgdRule {
    const NAME: &'static str = NAME;
    const COUNTS_STEPS: bool = false;

    fn states(shape: &Shape) -> Result<Vec<(&'static str, Shape)>> {
        Ok(shaped(&["momentum_buffer"], shape))
    }

    fn uses_states(&self) -> bool {
        self.momentum != 0.0
    }

    fn hyperparameters(&self, learning_rate: f64, weight_decay: f64, _: i32) -> [f64; HYPERPARAMETERS] {
        [learning_rate, weight_decay, self.momentum]
    }

    fn run(
        &self,
        elements: Vec<TensorMut<'_>>,
        gradient: &Tensor,
        [rate, decay, momentum]: &[Tensor; HYPERPARAMETERS],
        guard: Option<Guard<'_>>,
    ) -> Result<()> {
        match (self.uses_states(), guard) {
            (false, None) => {
                let others = [gradient.into(), rate.into(), decay.into()];
                self.plain.run_in_place(outputs::<1>(elements)?, others)
            }
            (false, Some(Guard { condition, factor })) => {
                let others = [gradient.into(), rate.into(), decay.into(), condition.into(), factor];
                self.guarded_plain.run_in_place(outputs::<1>(elements)?, others)
            }
            (true, None) => {
                let others = [gradient.into(), rate.into(), decay.into(), momentum.into()];
                self.with_momentum.run_in_place(outputs::<2>(elements)?, others)
            }
            (true, Some(Guard { condition, factor })) => {
                let others =
                    [gradient.into(), rate.into(), decay.into(), momentum.into(), condition.into(), factor];
                self.guarded_with_momentum.run_in_place(outputs::<2>(elements)?, others)
            }
        }
    }
}

/// Stochastic gradient descent with momentum: b = μ b + g + λ p, p = p - lr b. [`with_nesterov`](Sgd::with_nesterov) looks ahead.
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
pub struct Sgd(OptimizerCore<SgdRule>);

impl Sgd {
    /// Creates an optimizer without momentum.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a learning rate that is negative or not finite, for no
    /// parameters, and for parameters other than leaves with a gradient.
    pub fn new(parameters: Vec<Variable>, learning_rate: f64) -> Result<Sgd> {
        let rule = SgdRule::new(0.0, false);
        OptimizerCore::new(rule, parameters, learning_rate).map(Sgd)
    }

    /// Sets the momentum μ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is negative or not finite, and for 0 with
    /// [`with_nesterov`](Self::with_nesterov).
    pub fn with_momentum(mut self, momentum: f64) -> Result<Sgd> {
        check_non_negative(NAME, "a momentum", momentum)?;
        check_nesterov(momentum, self.0.rule.is_nesterov)?;
        self.0.rule.momentum = momentum;
        Ok(self)
    }

    /// Sets whether the momentum is Nesterov's: p = p - lr (g + λ p + μ b), with the new b. The momentum is set before.
    ///
    /// ```
    /// use selvedge::nn::{Optimizer, Sgd, Variable};
    /// use selvedge::{Device, Tensor};
    /// let x = Variable::with_grad(Tensor::new([3.0f64], &Device::cpu())?)?;
    /// let mut optimizer = Sgd::new(vec![x.clone()], 0.25)?.with_momentum(0.5)?.with_nesterov(true)?;
    /// x.square()?.sum_all()?.backward()?;
    /// optimizer.step()?;
    /// assert_eq!(x.tensor().to_vec::<f64>()?, [0.75]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] without a momentum.
    pub fn with_nesterov(mut self, is_nesterov: bool) -> Result<Sgd> {
        let momentum = self.0.rule.momentum;
        check_nesterov(momentum, is_nesterov)?;
        self.0.rule = SgdRule::new(momentum, is_nesterov);
        Ok(self)
    }

    /// Sets the weight decay λ.
    ///
    /// # Errors
    ///
    /// As [`with_momentum`](Self::with_momentum).
    pub fn with_weight_decay(mut self, weight_decay: f64) -> Result<Sgd> {
        check_non_negative(NAME, "a weight decay", weight_decay)?;
        self.0.weight_decay = weight_decay;
        Ok(self)
    }

    /// Limits the weight decay to parameters of at least so many dimensions. With 2 it leaves out biases and the weights of
    /// norms.
    #[must_use]
    pub fn with_min_decay_rank(mut self, rank: usize) -> Sgd {
        self.0.min_decay_rank = rank;
        self
    }
}

fn check_nesterov(momentum: f64, is_nesterov: bool) -> Result<()> {
    if is_nesterov && momentum == 0.0 {
        return Err(Error::invalid(NAME, "Nesterov momentum with a momentum of 0", "a momentum above 0"));
    }
    Ok(())
}

super::optimizer!(Sgd);
