//! [`OptimizerPair`].

use std::collections::BTreeMap;

use super::Optimizer;
use crate::error::{Error, Result};
use crate::nn::Variable;
use crate::tensor::Tensor;

const NAME: &str = "OptimizerPair";
const FIRST: &str = "first.";
const SECOND: &str = "second.";

/// Two optimizers of different parameters as one, such as a [`Muon`](super::Muon) of the matrices and an [`AdamW`](super::AdamW) of the
/// other parameters, for a [`TrainingStep`](crate::nn::TrainingStep).
///
/// The learning rate is the first's. [`set_learning_rate`](Optimizer::set_learning_rate) changes the second's too, by the same factor.
/// The entries of the [`state_dict`](Optimizer::state_dict) begin with `first.` and `second.`.
///
/// ```
/// use selvedge::nn::{
///     AdamW, Gelu, Initializer, LayerNorm, Linear, Module, Muon, Optimizer, OptimizerPair, Sequential, Variable,
/// };
/// use selvedge::{Device, Tensor};
/// let initializer = Initializer::new(&Device::cpu()).with_seed(1);
/// let model = Sequential::new()
///     .with(Linear::new(4, 16, &initializer)?)
///     .with(LayerNorm::new(&[16], &initializer)?)
///     .with(Gelu)
///     .with(Linear::new(16, 2, &initializer)?);
/// let (matrices, others): (Vec<Variable>, Vec<Variable>) =
///     model.parameters().into_iter().partition(|parameter| parameter.shape().rank() == 2);
/// let mut optimizer = OptimizerPair::new(Muon::new(matrices, 0.02)?, AdamW::new(others, 1e-3)?)?;
/// let x = Variable::new(Tensor::new([[1.0f32, -1.0, 0.5, 2.0]], &Device::cpu())?);
/// model.forward(&x)?.square()?.sum_all()?.backward()?;
/// optimizer.step()?;
/// // A schedule changes both rates: the second's is now 5e-4.
/// optimizer.set_learning_rate(0.01);
/// assert_eq!(optimizer.state_dict()?["second.learning_rate"].item::<f64>()?, 5e-4);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct OptimizerPair<A, B> {
    first: A,
    second: B,
    /// The first's, and then the second's.
    parameters: Vec<Variable>,
    /// The second's learning rate in terms of the first's, when they were last set together.
    ratio: f64,
}

impl<A: Optimizer, B: Optimizer> OptimizerPair<A, B> {
    /// Creates an optimizer that takes the steps of both, the first's first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a parameter that both have, and for a first learning rate of 0 with another second one, which
    /// have no ratio.
    pub fn new(first: A, second: B) -> Result<OptimizerPair<A, B>> {
        for (at, parameter) in first.parameters().iter().enumerate() {
            if let Some(other) = second.parameters().iter().position(|other| other.is_same(parameter)) {
                let (first, second) = (first.name(), second.name());
                let found = format!("parameter {at} of the {first} as parameter {other} of the {second}");
                return Err(Error::invalid(NAME, found, "each parameter in one optimizer"));
            }
        }
        let rates = (first.learning_rate(), second.learning_rate());
        let ratio = match rates {
            (first, second) if first == second => 1.0,
            (0.0, second) => {
                let found = format!("learning rates of 0 and {second}");
                let wanted = "a first one above 0: a schedule keeps the ratio to the second one";
                return Err(Error::invalid(NAME, found, wanted));
            }
            (first, second) => second / first,
        };
        let parameters = first.parameters().iter().chain(second.parameters()).cloned().collect();
        Ok(OptimizerPair { first, second, parameters, ratio })
    }

    /// Returns the ratio of the learning rates: the last one, bit for bit, unless the rates were loaded, or one was set alone.
    fn current_ratio(&self) -> f64 {
        let (first, second) = (self.first.learning_rate(), self.second.learning_rate());
        if first == 0.0 || first * self.ratio == second { self.ratio } else { second / first }
    }

    fn apply_both(&mut self, apply: impl Fn(&mut dyn Optimizer) -> Result<()>) -> Result<()> {
        if let Err(error) = apply(&mut self.first) {
            self.second.withdraw();
            return Err(error);
        }
        apply(&mut self.second)
    }
}

/// Returns the entries whose names begin with a prefix, without it.
fn entries_of(prefix: &str, entries: &BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    let part = entries.iter().filter_map(|(name, entry)| Some((name.strip_prefix(prefix)?, entry)));
    part.map(|(name, entry)| (name.to_owned(), entry.clone())).collect()
}

impl<A: Optimizer, B: Optimizer> Optimizer for OptimizerPair<A, B> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn advance(&mut self) -> Result<()> {
        self.first.advance()?;
        self.second.advance().inspect_err(|_| self.first.withdraw())
    }

    fn apply(&mut self) -> Result<()> {
        self.apply_both(|optimizer| optimizer.apply())
    }

    fn apply_if(&mut self, condition: &Tensor) -> Result<()> {
        self.apply_both(|optimizer| optimizer.apply_if(condition))
    }

    fn apply_scaled(&mut self, condition: &Tensor, factor: &Tensor) -> Result<()> {
        self.apply_both(|optimizer| optimizer.apply_scaled(condition, factor))
    }

    fn withdraw(&mut self) {
        self.first.withdraw();
        self.second.withdraw();
    }

    fn capture_key(&self) -> u64 {
        self.first.capture_key().rotate_left(32).wrapping_add(self.second.capture_key())
    }

    fn parameters(&self) -> &[Variable] {
        &self.parameters
    }

    fn learning_rate(&self) -> f64 {
        self.first.learning_rate()
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        self.ratio = self.current_ratio();
        self.first.set_learning_rate(learning_rate);
        self.second.set_learning_rate(learning_rate * self.ratio);
    }

    fn state_dict(&self) -> Result<BTreeMap<String, Tensor>> {
        let named = |prefix: &'static str, entries: BTreeMap<String, Tensor>| {
            entries.into_iter().map(move |(name, entry)| (format!("{prefix}{name}"), entry))
        };
        let second = named(SECOND, self.second.state_dict()?);
        Ok(named(FIRST, self.first.state_dict()?).chain(second).collect())
    }

    fn check_state_dict(&self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        let is_known = |name: &str| name.starts_with(FIRST) || name.starts_with(SECOND);
        let extra = entries.keys().filter(|name| !is_known(name));
        let mut faults: Vec<String> = extra.map(|name| format!("'{name}' is extra")).collect();
        let results = [
            (FIRST, self.first.check_state_dict(&entries_of(FIRST, entries))),
            (SECOND, self.second.check_state_dict(&entries_of(SECOND, entries))),
        ];
        for (prefix, result) in results {
            match result {
                Err(error @ Error::InvalidArgument { .. }) => faults.push(format!("of '{prefix}': {error}")),
                other => other?,
            }
        }
        if faults.is_empty() {
            return Ok(());
        }
        let wanted =
            "the state_dict of a pair of these optimizers, with names that begin with 'first.' and 'second.'";
        Err(Error::invalid("OptimizerPair::load_state_dict", faults.join(", "), wanted))
    }

    fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        self.check_state_dict(entries)?;
        self.first.load_state_dict(&entries_of(FIRST, entries))?;
        self.second.load_state_dict(&entries_of(SECOND, entries))
    }
}
