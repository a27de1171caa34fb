//! [`Adam`] and [`AdamW`].

use std::collections::BTreeMap;

use super::parameters::{ParameterList, ParameterState, STEP, check_fraction, check_number, fields};
use super::{Optimizer, compute_dtype, widened};
use crate::error::{Error, Result};
use crate::nn::{Variable, no_grad};
use crate::tensor::{Device, Fused, Tensor};

/// The moments of a parameter, and its steps.
#[derive(Debug)]
struct Moments {
    first: Tensor,
    second: Tensor,
    steps: i32,
}

impl ParameterState for Moments {
    const FIELDS: &'static [&'static str] = &["exp_avg", "exp_avg_sq", STEP];

    fn to_tensors(&self) -> Result<Vec<Tensor>> {
        let steps = Tensor::new(i64::from(self.steps), &Device::cpu())?;
        Ok(vec![self.first.clone(), self.second.clone(), steps])
    }

    fn from_tensors(tensors: Vec<Tensor>) -> Result<Moments> {
        let [first, second, steps] = fields(tensors)?;
        let found = steps.item::<i64>()?;
        let steps = i32::try_from(found).ok().filter(|steps| *steps >= 0).ok_or_else(|| {
            let wanted = format!("a number from 0 to {}", i32::MAX);
            Error::invalid("load_state_dict", format!("{found} steps of a parameter"), wanted)
        })?;
        Ok(Moments { first, second, steps })
    }
}

/// The state of both optimizers.
#[derive(Debug)]
struct AdamCore {
    name: &'static str,
    parameters: ParameterList<Moments>,
    learning_rate: f64,
    betas: (f64, f64),
    eps: f64,
    weight_decay: f64,
    is_decoupled: bool,
    function: Fused<7, 3>,
}

/// Returns one step. Operands: the parameter, its gradient, both moments, lr / (1 - β₁ᵗ), sqrt(1 - β₂ᵗ), and the factor of
/// the decay: 1 - lr λ if it is decoupled, otherwise λ.
fn step_function(betas: (f64, f64), eps: f64, is_decoupled: bool) -> Fused<7, 3> {
    Fused::with_outputs(move |[p, g, first, second, rate, correction, decay]| {
        let (p, g) = (widened(p), widened(g));
        let (p, g) = if is_decoupled { (p * decay, g) } else { (p, g + p * decay) };
        let first = first + (g - first) * (1.0 - betas.0);
        let second = second * betas.1 + g.square() * (1.0 - betas.1);
        [p - first / (second.sqrt() / correction + eps) * rate, first, second]
    })
}

impl AdamCore {
    fn new(
        name: &'static str,
        parameters: Vec<Variable>,
        learning_rate: f64,
        weight_decay: f64,
        is_decoupled: bool,
    ) -> Result<AdamCore> {
        check_number(name, "learning rate", learning_rate)?;
        if let Some(parameter) = parameters.iter().find(|parameter| parameter.dtype().is_complex()) {
            let (wanted, found) = ("parameters of floats".to_owned(), parameter.dtype().to_string());
            return Err(Error::DTypeMismatch { operation: name, wanted, found });
        }
        let (betas, eps) = ((0.9, 0.999), 1e-8);
        Ok(AdamCore {
            name,
            parameters: ParameterList::new(name, parameters)?,
            learning_rate,
            betas,
            eps,
            weight_decay,
            is_decoupled,
            function: step_function(betas, eps, is_decoupled),
        })
    }

    fn with_betas(self, first: f64, second: f64) -> Result<AdamCore> {
        check_fraction(self.name, "first beta", first)?;
        check_fraction(self.name, "second beta", second)?;
        let betas = (first, second);
        Ok(AdamCore { betas, function: step_function(betas, self.eps, self.is_decoupled), ..self })
    }

    fn with_eps(self, eps: f64) -> Result<AdamCore> {
        check_number(self.name, "eps", eps)?;
        Ok(AdamCore { eps, function: step_function(self.betas, eps, self.is_decoupled), ..self })
    }

    fn with_weight_decay(self, weight_decay: f64) -> Result<AdamCore> {
        check_number(self.name, "weight decay", weight_decay)?;
        Ok(AdamCore { weight_decay, ..self })
    }

    fn step(&mut self) -> Result<()> {
        let (rate, betas, function) = (self.learning_rate, self.betas, &self.function);
        let decay = if self.is_decoupled { 1.0 - rate * self.weight_decay } else { self.weight_decay };
        let ParameterList { variables, states } = &mut self.parameters;
        no_grad(|| {
            for (parameter, state) in variables.iter().zip(states) {
                let Some(gradient) = parameter.grad() else { continue };
                let value = parameter.tensor();
                let moments = match state {
                    Some(moments) => moments,
                    None => {
                        let zeros = value.zeros_like()?.cast(compute_dtype(value.dtype()))?;
                        state.insert(Moments { first: zeros.clone(), second: zeros, steps: 0 })
                    }
                };
                let steps = moments.steps.saturating_add(1);
                let (first, second) = (moments.first.clone(), moments.second.clone());
                let step = rate / (1.0 - betas.0.powi(steps));
                let correction = (1.0 - betas.1.powi(steps)).sqrt();
                parameter.update(|elements| {
                    let operands = (&value, &gradient, &first, &second, step, correction, decay);
                    let outputs = [elements.reborrow(), moments.first.in_place(), moments.second.in_place()];
                    function.run_into(operands, outputs)
                })?;
                moments.steps = steps;
            }
            Ok(())
        })
    }
}

macro_rules! optimizers {
    ($($(#[doc = $doc:literal])* $name:ident, $decay:literal, $is_decoupled:literal;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug)]
        pub struct $name(AdamCore);

        impl $name {
            #[doc = concat!("Creates an optimizer with β of 0.9 and 0.999, an eps of 1e-8 and a weight decay of ", $decay, ".")]
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`] for a learning rate that is negative or not finite, and for parameters other than
            /// leaves with a gradient; [`Error::DTypeMismatch`] for complex ones.
            pub fn new(parameters: Vec<Variable>, learning_rate: f64) -> Result<$name> {
                let name = stringify!($name);
                AdamCore::new(name, parameters, learning_rate, $decay, $is_decoupled).map($name)
            }

            /// Sets β₁ and β₂.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`] for a number outside 0 to 1, without 1.
            pub fn with_betas(self, first: f64, second: f64) -> Result<$name> {
                self.0.with_betas(first, second).map($name)
            }

            /// Sets the number that is added to the denominator.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`] for a number that is negative or not finite.
            pub fn with_eps(self, eps: f64) -> Result<$name> {
                self.0.with_eps(eps).map($name)
            }

            /// Sets the weight decay λ.
            ///
            /// # Errors
            ///
            /// As [`with_eps`](Self::with_eps).
            pub fn with_weight_decay(self, weight_decay: f64) -> Result<$name> {
                self.0.with_weight_decay(weight_decay).map($name)
            }
        }

        impl Optimizer for $name {
            fn step(&mut self) -> Result<()> {
                self.0.step()
            }

            fn parameters(&self) -> &[Variable] {
                &self.0.parameters.variables
            }

            fn learning_rate(&self) -> f64 {
                self.0.learning_rate
            }

            fn set_learning_rate(&mut self, learning_rate: f64) {
                self.0.learning_rate = learning_rate;
            }

            fn state_dict(&self) -> Result<BTreeMap<String, Tensor>> {
                self.0.parameters.state_dict(self.0.learning_rate)
            }

            fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
                let operation = concat!(stringify!($name), "::load_state_dict");
                self.0.learning_rate = self.0.parameters.load_state_dict(operation, entries)?;
                Ok(())
            }
        }
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
