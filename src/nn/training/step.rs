//! [`TrainingStep`], a step of training that runs as one graph on CUDA devices.

use std::collections::BTreeMap;

use super::loss_scale::{self, LossScale, LossScaler};
use super::step_graph::{StepGraph, StepWork};
use crate::error::{Error, Result};
use crate::nn::parameters::check_one_device;
use crate::nn::{Optimizer, Parameters, Variable, clip_grad_norm};
use crate::tensor::{Device, Tensor};

const NAME: &str = "TrainingStep";

/// A step of training: the gradients of a loss, clipped if wanted, and the optimizer's change of the parameters.
///
/// On a CUDA device the first step of a run is uncaptured, the second is captured as one graph, and each later step is one
/// launch of the graph, as with `torch.cuda.make_graphed_callables` but for the whole step. The bits are those of uncaptured
/// steps. On the CPU each step runs the closure.
///
/// A graph runs no Rust code. A captured step repeats the branches and numbers that the closure took when it was captured; the
/// inputs, the learning rate, the number of the step, the draws of generators such as
/// [`Dropout`](crate::nn::Dropout)'s, and running statistics are those of each step. A step that cannot be captured runs
/// uncaptured: [`uncaptured_reason`](Self::uncaptured_reason) and the log give the reason. Examples are a closure that reads
/// a tensor on the host, that keeps a tensor of its inputs, or that changes variables outside of [`Parameters`]. Inputs of
/// other shapes than the first ones run uncaptured too.
///
/// ```
/// use selvedge::nn::{AdamW, Initializer, Linear, Module, Parameters, Reduction, TrainingStep, Variable, mse_loss};
/// use selvedge::{Device, Tensor};
/// let device = Device::best();
/// let model = Linear::new(2, 1, &Initializer::new(&device).with_seed(1))?;
/// let parameters = Parameters::new(&model)?;
/// let optimizer = AdamW::new(parameters.variables(), 0.1)?;
/// let mut step = TrainingStep::new(&parameters, optimizer, |inputs: &[Variable]| {
///     mse_loss(&model.forward(&inputs[0])?, &inputs[1], Reduction::Mean)
/// })?
/// .with_max_norm(1.0)?;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &device)?;
/// let y = Tensor::new([[1.0f32], [2.0]], &device)?;
/// let first = step.run(&[&x, &y])?.item::<f32>()?;
/// step.set_learning_rate(0.05);
/// assert!(step.run(&[&x, &y])?.item::<f32>()? < first);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct TrainingStep<O, F> {
    optimizer: O,
    loss: F,
    parameters: Vec<Variable>,
    max_norm: Option<f64>,
    scaler: Option<LossScaler>,
    grad_norm: Option<Tensor>,
    is_skipped: bool,
    graph: StepGraph,
}

/// Its results are the loss, the norm of the gradients if they are clipped or scaled, and if they are scaled whether they are
/// finite and the optimizer's factor.
struct LossWork<'a, O, F> {
    optimizer: &'a mut O,
    loss: &'a mut F,
    parameters: &'a [Variable],
    max_norm: Option<f64>,
    scaler: Option<&'a mut LossScaler>,
}

impl<O, F> StepWork for LossWork<'_, O, F>
where
    O: Optimizer,
    F: FnMut(&[Variable]) -> Result<Variable>,
{
    fn gradients(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.parameters.iter().for_each(Variable::zero_grad);
        let inputs: Vec<Variable> = inputs.iter().cloned().map(Variable::new).collect();
        let loss = (self.loss)(&inputs)?;
        let mut results = vec![loss.tensor()];
        if let Some(scaler) = &self.scaler {
            scaler.backward(&loss)?;
            let scaled = scaler.gradients(self.parameters, self.max_norm)?;
            results.extend([scaled.norm, scaled.is_finite, scaled.factor]);
            return Ok(results);
        }
        loss.backward()?;
        if let Some(max_norm) = self.max_norm {
            results.push(clip_grad_norm(self.parameters, max_norm)?);
        }
        Ok(results)
    }

    fn apply(&mut self, results: &[Tensor]) -> Result<()> {
        match (&mut self.scaler, results) {
            (Some(scaler), [_, _, is_finite, factor]) => scaler.apply(self.optimizer, is_finite, factor),
            _ => self.optimizer.apply(),
        }
    }

    fn optimizer(&mut self) -> &mut dyn Optimizer {
        self.optimizer
    }

    fn parameters(&self) -> &[Variable] {
        self.parameters
    }
}

impl<O, F> TrainingStep<O, F>
where
    O: Optimizer,
    F: FnMut(&[Variable]) -> Result<Variable>,
{
    /// Creates a step that changes parameters by an optimizer of them, `&mut` or owned. `loss` computes the loss, of one
    /// element, from the inputs of a step.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for no parameters, and for a parameter of the optimizer that is not in `parameters`;
    /// [`Error::DeviceMismatch`] for parameters on several devices.
    pub fn new(parameters: &Parameters, optimizer: O, loss: F) -> Result<TrainingStep<O, F>> {
        check_one_device(NAME, parameters.iter())?;
        let parameters = parameters.variables();
        let Some(device) = parameters.first().map(Variable::device) else {
            return Err(Error::invalid(NAME, "no parameters", "at least one"));
        };
        let is_known = |of: &Variable| parameters.iter().any(|parameter| parameter.is_same(of));
        if let Some(position) = optimizer.parameters().iter().position(|of| !is_known(of)) {
            let found = format!("parameter {position} of the optimizer, which is not in the parameters");
            return Err(Error::invalid(NAME, found, "an optimizer of Parameters::variables"));
        }
        let graph = StepGraph::new(&device);
        Ok(TrainingStep {
            optimizer,
            loss,
            parameters,
            max_norm: None,
            scaler: None,
            grad_norm: None,
            is_skipped: false,
            graph,
        })
    }

    /// Clips the gradients of each step by their common norm; see [`clip_grad_norm`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is negative or NaN.
    pub fn with_max_norm(mut self, max_norm: f64) -> Result<TrainingStep<O, F>> {
        if max_norm.is_nan() || max_norm < 0.0 {
            let found = format!("a max_norm of {max_norm}");
            return Err(Error::invalid(NAME, found, "a number that is at least 0"));
        }
        self.max_norm = Some(max_norm);
        Ok(self)
    }

    /// Computes the gradients of the loss times a scale, for a model that computes in f16. The optimizer divides them by the
    /// scale and clips them in its launch, so [`Variable::grad`] is of the scaled loss and not clipped.
    ///
    /// The host waits for the end of each step, because the number of steps that the optimizer has taken depends on it.
    ///
    /// # Errors
    ///
    /// As [`LossScale::check`]; [`Error::OutOfMemory`].
    pub fn with_loss_scale(mut self, scale: LossScale) -> Result<TrainingStep<O, F>> {
        let device = self.parameters.first().map_or_else(Device::cpu, Variable::device);
        self.scaler = Some(LossScaler::new(scale, &device)?);
        Ok(self)
    }

    /// Runs each step uncaptured.
    #[must_use]
    pub fn without_capture(mut self) -> TrainingStep<O, F> {
        self.graph.forbid("TrainingStep::without_capture");
        self
    }

    /// Takes a step on inputs, which are copied to the parameters' device, and returns the loss there. The host waits for
    /// nothing in a captured step without a loss scale.
    ///
    /// # Errors
    ///
    /// Errors of the closure, of the backward and of the optimizer, and driver errors.
    pub fn run(&mut self, inputs: &[&Tensor]) -> Result<Tensor> {
        let inputs: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
        let TrainingStep { optimizer, loss, parameters, max_norm, scaler, graph, .. } = self;
        let scaler = scaler.as_mut();
        let mut work = LossWork { optimizer, loss, parameters, max_norm: *max_norm, scaler };
        let mut results = graph.run(&inputs, &mut work)?.into_iter();
        let loss = results.next();
        self.grad_norm = results.next();
        self.is_skipped = false;
        if let Some(is_finite) = results.next() {
            self.is_skipped = !is_finite.item::<bool>()?;
            if self.is_skipped {
                self.optimizer.withdraw();
            }
        }
        loss.ok_or_else(|| Error::invalid(NAME, "a step without a loss", "one loss"))
    }

    /// Returns whether the last step was skipped, because its gradients were not finite with a loss scale.
    pub fn is_skipped(&self) -> bool {
        self.is_skipped
    }

    /// Returns the loss scale of the next step, if there is one.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn loss_scale(&self) -> Result<Option<f64>> {
        self.scaler.as_ref().map(LossScaler::scale).transpose()
    }

    /// Returns the optimizer's state with that of the loss scale, `loss_scale.scale` and `loss_scale.growth_tracker`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn state_dict(&self) -> Result<BTreeMap<String, Tensor>> {
        loss_scale::state_dict(&self.optimizer, self.scaler.as_ref())
    }

    /// Sets the states of the optimizer and the loss scale, bit for bit.
    ///
    /// # Errors
    ///
    /// As [`Optimizer::load_state_dict`]; [`Error::InvalidArgument`] too for the state of a step without a loss scale if this one
    /// has one, and the other way around. Nothing changes then.
    pub fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        let TrainingStep { optimizer, scaler, .. } = self;
        loss_scale::load_state_dict("TrainingStep::load_state_dict", optimizer, scaler.as_mut(), entries)
    }

    /// Returns the norm of the last step's gradients before clipping, if they are clipped or the loss is scaled.
    pub fn grad_norm(&self) -> Option<&Tensor> {
        self.grad_norm.as_ref()
    }

    /// Sets the learning rate of the next steps, such as to a schedule's. The next step refuses one that is negative or not finite.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.optimizer.set_learning_rate(learning_rate);
    }

    /// Returns the optimizer.
    pub fn optimizer(&self) -> &O {
        &self.optimizer
    }

    /// Returns the optimizer, such as to load its state.
    pub fn optimizer_mut(&mut self) -> &mut O {
        &mut self.optimizer
    }

    /// Returns whether a graph is captured, which steps of its shapes launch.
    pub fn is_captured(&self) -> bool {
        self.graph.is_captured()
    }

    /// Returns why all steps run uncaptured, if they do.
    pub fn uncaptured_reason(&self) -> Option<&str> {
        self.graph.uncaptured_reason()
    }
}

impl<O: std::fmt::Debug, F> std::fmt::Debug for TrainingStep<O, F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match (self.graph.is_captured(), self.graph.uncaptured_reason()) {
            (true, _) => "captured",
            (false, Some(_)) => "uncaptured",
            (false, None) => "not captured yet",
        };
        write!(formatter, "TrainingStep({} parameters, {:?}, {state})", self.parameters.len(), self.optimizer)
    }
}
