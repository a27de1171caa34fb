//! [`Adam`] and [`AdamW`].

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

/// The step of both optimizers.
#[derive(Debug)]
struct AdamRule<const IS_DECOUPLED: bool> {
    betas: (f64, f64),
    eps: f64,
    function: Fused<7, 3>,
    /// The function with the condition and the factor of a guard behind its operands.
    guarded: Fused<9, 3>,
}

/// Returns the new parameter, in the dtype that steps are computed in, and both moments.
fn step(
    is_decoupled: bool,
    (betas, eps): ((f64, f64), f64),
    [p, first, second, g, rate, correction, decay]: [Expr<'_>; 7],
) -> [Expr<'_>; 3] {
    let (p, g) = (widened(p), widened(g));
    let (p, g) = if is_decoupled { (p * decay, g) } else { (p, g + p * decay) };
    let first = first + (g - first) * (1.0 - betas.0);
    let second = second * betas.1 + g.square() * (1.0 - betas.1);
    [p - first / (second.sqrt() / correction + eps) * rate, first, second]
}

impl<const IS_DECOUPLED: bool> AdamRule<IS_DECOUPLED> {
    /// The operands of the function: the parameter, both moments, the gradient, lr / (1 - β₁ᵗ), sqrt(1 - β₂ᵗ), and the factor
    /// of the decay: 1 - lr λ if it is decoupled, otherwise λ.
    fn new(betas: (f64, f64), eps: f64) -> AdamRule<IS_DECOUPLED> {
        let function = Fused::with_outputs(move |operands| step(IS_DECOUPLED, (betas, eps), operands));
        let guarded =
            Fused::with_outputs(move |[p, first, second, g, rate, correction, decay, condition, factor]| {
                let operands = [p, first, second, scaled(g, factor), rate, correction, decay];
                let [new_p, new_first, new_second] = step(IS_DECOUPLED, (betas, eps), operands);
                [
                    condition.choose(new_p, widened(p)),
                    condition.choose(new_first, first),
                    condition.choose(new_second, second),
                ]
            });
        AdamRule { betas, eps, function, guarded }
    }
}

impl<const IS_DECOUPLED: bool> StepRule for AdamRule<IS_DECOUPLED> {
    const NAME: &'static str = if IS_DECOUPLED { "AdamW" } else { "Adam" };
    const COUNTS_STEPS: bool = true;

    fn states(shape: &Shape) -> Result<Vec<(&'static str, Shape)>> {
        Ok(shaped(&["exp_avg", "exp_avg_sq"], shape))
    }

    fn uses_states(&self) -> bool {
        true
    }

    fn hyperparameters(&self, learning_rate: f64, weight_decay: f64, step: i32) -> [f64; HYPERPARAMETERS] {
        let rate = learning_rate / (1.0 - self.betas.0.powi(step));
        let correction = (1.0 - self.betas.1.powi(step)).sqrt();
        let decay = if IS_DECOUPLED { 1.0 - learning_rate * weight_decay } else { weight_decay };
        [rate, correction, decay]
    }

    fn run(
        &self,
        elements: Vec<TensorMut<'_>>,
        gradient: &Tensor,
        [rate, correction, decay]: &[Tensor; HYPERPARAMETERS],
        guard: Option<Guard<'_>>,
    ) -> Result<()> {
        let outputs = outputs::<3>(elements)?;
        match guard {
            None => {
                let others = [gradient.into(), rate.into(), correction.into(), decay.into()];
                self.function.run_in_place(outputs, others)
            }
            Some(Guard { condition, factor }) => {
                let others =
                    [gradient.into(), rate.into(), correction.into(), decay.into(), condition.into(), factor];
                self.guarded.run_in_place(outputs, others)
            }
        }
    }
}

fn new<const IS_DECOUPLED: bool>(
    parameters: Vec<Variable>,
    learning_rate: f64,
    weight_decay: f64,
) -> Result<OptimizerCore<AdamRule<IS_DECOUPLED>>> {
    check_real::<AdamRule<IS_DECOUPLED>>(&parameters)?;
    let rule = AdamRule::new((0.9, 0.999), 1e-8);
    let mut core = OptimizerCore::new(rule, parameters, learning_rate)?;
    core.weight_decay = weight_decay;
    Ok(core)
}

macro_rules! optimizers {
    ($($(#[doc = $doc:literal])* $name:ident, $decay:literal, $is_decoupled:literal;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug)]
        pub struct $name(OptimizerCore<AdamRule<$is_decoupled>>);

        impl $name {
            #[doc = concat!("Creates an optimizer with β of 0.9 and 0.999, an eps of 1e-8 and a weight decay of ", $decay, ".")]
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a learning rate that is negative or not finite, for no parameters, and for
            /// parameters other than leaves with a gradient; [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) for complex ones.
            pub fn new(parameters: Vec<Variable>, learning_rate: f64) -> Result<$name> {
                new(parameters, learning_rate, $decay).map($name)
            }

            /// Sets β₁ and β₂.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a number outside 0 to 1, without 1.
            pub fn with_betas(mut self, first: f64, second: f64) -> Result<$name> {
                check_fraction(stringify!($name), "a first beta", first)?;
                check_fraction(stringify!($name), "a second beta", second)?;
                self.0.rule = AdamRule::new((first, second), self.0.rule.eps);
                Ok(self)
            }

            /// Sets the number that is added to the denominator.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a number that is negative or not finite.
            pub fn with_eps(mut self, eps: f64) -> Result<$name> {
                check_non_negative(stringify!($name), "an eps", eps)?;
                self.0.rule = AdamRule::new(self.0.rule.betas, eps);
                Ok(self)
            }

            /// Sets the weight decay λ.
            ///
            /// # Errors
            ///
            /// As [`with_eps`](Self::with_eps).
            pub fn with_weight_decay(mut self, weight_decay: f64) -> Result<$name> {
                check_non_negative(stringify!($name), "a weight decay", weight_decay)?;
                self.0.weight_decay = weight_decay;
                Ok(self)
            }

            /// Limits the weight decay to parameters of at least so many dimensions. With 2 it leaves out biases and the
            /// weights of norms.
            #[must_use]
            pub fn with_min_decay_rank(mut self, rank: usize) -> $name {
                self.0.min_decay_rank = rank;
                self
            }
        }

        super::optimizer!($name);
    )*};
}

optimizers! {
    /// Adam with bias correction. The weight decay λ p is part of the gradient.
    ///
    /// m = β₁ m + (1 - β₁) g, v = β₂ v + (1 - β₂) g², p = p - lr m / (1 - β₁ᵗ) / (sqrt(v / (1 - β₂ᵗ)) + eps).
    Adam, 0.0, false;
    /// [`Adam`] with decoupled weight decay: p is multiplied by 1 - lr λ first.
    AdamW, 0.01, true;
}
