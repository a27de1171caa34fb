//! [`Sgd`], stochastic gradient descent.

use std::collections::BTreeMap;

use super::Optimizer;
use super::core::{Guard, NUMBERS, OptimizerCore, StepRule, outputs, scaled};
use crate::error::Result;
use crate::fuse::Expr;
use crate::nn::Variable;
use crate::nn::checks::check_number;
use crate::nn::precision::widened;
use crate::tensor::{Fused, Tensor, TensorMut};

const NAME: &str = "Sgd";

/// The step. The operands of the functions end with the gradient, lr and λ; then those with momentum read μ, and the
/// guarded ones the condition and the factor of a guard.
#[derive(Debug)]
struct SgdRule {
    momentum: f64,
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
fn momentum_step([p, buffer, g, rate, decay, momentum]: [Expr<'_>; 6]) -> [Expr<'_>; 2] {
    let p = widened(p);
    let buffer = buffer * momentum + (widened(g) + p * decay);
    [p - buffer * rate, buffer]
}

impl StepRule for SgdRule {
    const NAME: &'static str = NAME;
    const STATES: &'static [&'static str] = &["momentum_buffer"];
    const COUNTS_STEPS: bool = false;

    fn uses_states(&self) -> bool {
        self.momentum != 0.0
    }

    fn numbers(&self, learning_rate: f64, weight_decay: f64, _: i32) -> [f64; NUMBERS] {
        [learning_rate, weight_decay, self.momentum]
    }

    fn run(
        &self,
        elements: Vec<TensorMut<'_>>,
        gradient: &Tensor,
        [rate, decay, momentum]: &[Tensor; NUMBERS],
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
pub struct Sgd(OptimizerCore<SgdRule>);

impl Sgd {
    /// Creates an optimizer without momentum.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a learning rate that is negative or not finite, for no
    /// parameters, and for parameters other than leaves with a gradient.
    pub fn new(parameters: Vec<Variable>, learning_rate: f64) -> Result<Sgd> {
        let rule = SgdRule {
            momentum: 0.0,
            plain: Fused::new(plain_step),
            with_momentum: Fused::with_outputs(momentum_step),
            guarded_plain: Fused::new(|[p, g, rate, decay, condition, factor]| {
                condition.choose(plain_step([p, scaled(g, factor), rate, decay]), widened(p))
            }),
            guarded_with_momentum: Fused::with_outputs(
                |[p, buffer, g, rate, decay, momentum, condition, factor]| {
                    let operands = [p, buffer, scaled(g, factor), rate, decay, momentum];
                    let [new_p, new_buffer] = momentum_step(operands);
                    [condition.choose(new_p, widened(p)), condition.choose(new_buffer, buffer)]
                },
            ),
        };
        OptimizerCore::new(rule, parameters, learning_rate).map(Sgd)
    }

    /// Sets the momentum μ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a number that is negative or not finite.
    pub fn with_momentum(mut self, momentum: f64) -> Result<Sgd> {
        check_number(NAME, "a momentum", momentum)?;
        self.0.rule.momentum = momentum;
        Ok(self)
    }

    /// Sets the weight decay λ.
    ///
    /// # Errors
    ///
    /// As [`with_momentum`](Self::with_momentum).
    pub fn with_weight_decay(mut self, weight_decay: f64) -> Result<Sgd> {
        check_number(NAME, "a weight decay", weight_decay)?;
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

super::optimizer!(Sgd);
