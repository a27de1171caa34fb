//! [`Lion`].
//!
//! Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.

use std::collections::BTreeMap;

use super::Optimizer;
use super::core::{Guard, HYPERPARAMETERS, OptimizerCore, StepRule, check_real, outputs, scaled, shaped};
use crate::error::Result;
use crate::fuse::Expr;
use crate::nn::Variable;
use crate::nn::checks::{check_fraction, check_non_negative};
use crate::nn::precision::widened;
use crate::tensor::{Fused, Tensor, TensorMut};
use crate::types::Shape;

const NAME: &str = "Lion";

/// The step. The operands of the functions are the parameter, the momentum, the gradient, lr, 1 - lr λ, and the condition and the
/// factor of a guard.
#[derive(Debug)]
struct LionRule {
    function: Fused<5, 2>,
    guarded: Fused<7, 2>,
}

/// Returns the new parameter, in the dtype that steps are computed in, and the new momentum.
fn step(betas: (f64, f64), [p, momentum, g, rate, decay]: [Expr<'_>; 5]) -> [Expr<'_>; 2] {
    let (p, g) = (widened(p), widened(g));
    let direction = (momentum + (g - momentum) * (1.0 - betas.0)).sign();
    [p * decay - direction * rate, momentum + (g - momentum) * (1.0 - betas.1)]
}

impl LionRule {
    fn new(betas: (f64, f64)) -> LionRule {
        LionRule {
            function: Fused::with_outputs(move |operands| step(betas, operands)),
            guarded: Fused::with_outputs(move |[p, momentum, g, rate, decay, condition, factor]| {
                let [new_p, new_momentum] = step(betas, [p, momentum, scaled(g, factor), rate, decay]);
                [condition.choose(new_p, widened(p)), condition.choose(new_momentum, momentum)]
            }),
        }
    }
}

impl StepRule for LionRule {
    const NAME: &'static str = NAME;
    const COUNTS_STEPS: bool = false;

    fn states(shape: &Shape) -> Result<Vec<(&'static str, Shape)>> {
        Ok(shaped(&["exp_avg"], shape))
    }

    fn uses_states(&self) -> bool {
        true
    }

    fn hyperparameters(&self, learning_rate: f64, weight_decay: f64, _: i32) -> [f64; HYPERPARAMETERS] {
        [learning_rate, 1.0 - learning_rate * weight_decay, 0.0]
    }

    fn run(
        &self,
        elements: Vec<TensorMut<'_>>,
        gradient: &Tensor,
        [rate, decay, _]: &[Tensor; HYPERPARAMETERS],
        guard: Option<Guard<'_>>,
    ) -> Result<()> {
        let outputs = outputs::<2>(elements)?;
        match guard {
            None => {
                let others = [gradient.into(), rate.into(), decay.into()];
                self.function.run_in_place(outputs, others)
            }
            Some(Guard { condition, factor }) => {
                let others = [gradient.into(), rate.into(), decay.into(), condition.into(), factor];
                self.guarded.run_in_place(outputs, others)
            }
        }
    }
}

/// Lion: the sign of a momentum, with decoupled weight decay. Its state is half of Adam's.
///
/// p = p (1 - lr λ) - lr sign(β₁ m + (1 - β₁) g), m = β₂ m + (1 - β₂) g. Each element of a step is lr or 0, so the learning rate is
/// three to ten times smaller than [`AdamW`](super::AdamW)'s, and the weight decay as many times larger.
///
/// ```
/// use selvedge::nn::{Lion, Optimizer, Variable};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([3.0f64, -0.5], &Device::cpu())?)?;
/// let mut optimizer = Lion::new(vec![x.clone()], 0.25)?;
/// x.square()?.sum_all()?.backward()?;
/// optimizer.step()?;
/// assert_eq!(x.tensor().to_vec::<f64>()?, [2.75, -0.25]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct Lion(OptimizerCore<LionRule>);

impl Lion {
    /// Creates an optimizer with β of 0.9 and 0.99, without weight decay.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a learning rate that is negative or not finite, for no
    /// parameters, and for parameters other than leaves with a gradient;
    /// [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) for complex ones.
    pub fn new(parameters: Vec<Variable>, learning_rate: f64) -> Result<Lion> {
        check_real::<LionRule>(&parameters)?;
        OptimizerCore::new(LionRule::new((0.9, 0.99)), parameters, learning_rate).map(Lion)
    }

    /// Sets β₁ and β₂.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a number outside 0 to 1, without 1.
    pub fn with_betas(mut self, first: f64, second: f64) -> Result<Lion> {
        check_fraction(NAME, "a first beta", first)?;
        check_fraction(NAME, "a second beta", second)?;
        self.0.rule = LionRule::new((first, second));
        Ok(self)
    }

    /// Sets the weight decay λ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a number that is negative or not finite.
    pub fn with_weight_decay(mut self, weight_decay: f64) -> Result<Lion> {
        check_non_negative(NAME, "a weight decay", weight_decay)?;
        self.0.weight_decay = weight_decay;
        Ok(self)
    }

    /// Limits the weight decay to parameters of at least so many dimensions. With 2 it leaves out biases and the weights of
    /// norms.
    #[must_use]
    pub fn with_min_decay_rank(mut self, rank: usize) -> Lion {
        self.0.min_decay_rank = rank;
        self
    }
}

super::optimizer!(Lion);
