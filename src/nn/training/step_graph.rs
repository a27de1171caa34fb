//! [`StepGraph`], which captures a step of training as one graph and launches it for later steps.
//!
//! The first step of a shape runs uncaptured: it shows the generators that the step draws from, and creates states,
//! kernels and plans. The second is captured and launched, and each later one is a launch. Before a launch the numbers
//! that change between steps are written to memory at fixed addresses: the inputs, the numbers of the optimizer, and the
//! offsets of the generators. After it the host counts what the launch did: the positions of the generators, the versions
//! of the changed values, and which parameters have gradients.
//!
//! Invariants:
//!
//! - A launch has the bits of the same step without a capture.
//! - Before a launch all storages that it changes are where they were in the capture, and no tensor shares them;
//!   otherwise the step runs uncaptured, and the next but one is captured again.
//! - A step within [`detect_anomaly`](crate::nn::detect_anomaly) runs uncaptured, and the graph stays for later ones.
//! - A step that cannot be captured runs uncaptured from then on, and the log has the reason once.
//!
//! Tests: `tests/nn/step.rs`, `tests/fake/training.rs`, `tests/gpu/steps.rs`.

use crate::driver::{ExecutableGraph, captures_on_this_thread};
use crate::error::{Error, Result};
use crate::nn::autograd::{Changes, detects_anomaly};
use crate::nn::{Optimizer, Variable};
use crate::tensor::{CapturedGenerators, Device, Tensor};

/// The parts of a step.
pub(super) trait StepWork {
    /// Computes the gradients, clipped if they are, and returns the step's results, such as its loss.
    ///
    /// # Errors
    ///
    /// Errors of the step. A captured step may not wait for the device.
    fn gradients(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>>;

    /// Changes the parameters by the optimizer, given the results.
    ///
    /// # Errors
    ///
    /// Errors of the optimizer and of operations.
    fn apply(&mut self, results: &[Tensor]) -> Result<()>;

    fn optimizer(&mut self) -> &mut dyn Optimizer;

    /// Returns the parameters, which are in [`Parameters`](crate::nn::Parameters).
    fn parameters(&self) -> &[Variable];
}

/// A step, captured where that is possible.
pub(super) struct StepGraph {
    device: Device,
    stage: Stage,
    /// True once the log has said that inputs of another shape run uncaptured.
    has_logged_shapes: bool,
}

enum Stage {
    First,
    /// The next step is captured.
    Prepared(PreparedStep),
    Captured(PreparedStep, Box<CapturedStep>),
    Uncaptured(String),
}

/// State that an uncaptured step leaves for a capture.
struct PreparedStep {
    /// Tensors at fixed addresses that the captured step reads.
    inputs: Vec<Tensor>,
    generators: CapturedGenerators,
    /// True for each parameter that has a gradient after a step.
    has_gradients: Vec<bool>,
}

/// A captured step.
struct CapturedStep {
    graph: ExecutableGraph,
    results: Vec<Tensor>,
    changes: Changes,
    /// The optimizer's [`capture_key`](Optimizer::capture_key).
    key: u64,
}

impl PreparedStep {
    fn fits(&self, inputs: &[Tensor]) -> bool {
        let same = |(stored, other): (&Tensor, &Tensor)| {
            stored.shape() == other.shape() && stored.dtype() == other.dtype()
        };
        self.inputs.len() == inputs.len() && self.inputs.iter().zip(inputs).all(same)
    }

    /// Copies inputs to the tensors that the captured step reads, and sets the other numbers of the next step.
    fn write(&mut self, device: &Device, inputs: &[Tensor], work: &mut dyn StepWork) -> Result<()> {
        for (stored, input) in self.inputs.iter_mut().zip(inputs) {
            stored.in_place().assign(&input.to(device)?)?;
        }
        for (parameter, has_gradient) in work.parameters().iter().zip(&self.has_gradients) {
            parameter.set_has_gradient(*has_gradient);
        }
        self.generators.write()?;
        work.optimizer().advance()
    }
}

impl StepGraph {
    /// Creates a step whose parameters are on a device. On the CPU it never captures.
    pub(super) fn new(device: &Device) -> StepGraph {
        let stage = match device.is_cpu() {
            true => Stage::Uncaptured("the step runs on the CPU".to_owned()),
            false => Stage::First,
        };
        StepGraph { device: *device, stage, has_logged_shapes: false }
    }

    /// Runs all later steps uncaptured.
    pub(super) fn forbid(&mut self, reason: &str) {
        self.stage = Stage::Uncaptured(reason.to_owned());
    }

    /// Drops the graph. The next step but one is captured again, if steps are.
    pub(super) fn forget(&mut self) {
        if !matches!(self.stage, Stage::Uncaptured(_)) {
            self.stage = Stage::First;
        }
    }

    /// Returns whether a graph is captured.
    pub(super) fn is_captured(&self) -> bool {
        matches!(self.stage, Stage::Captured(..))
    }

    /// Returns why steps run uncaptured, if they always do.
    pub(super) fn uncaptured_reason(&self) -> Option<&str> {
        match &self.stage {
            Stage::Uncaptured(reason) => Some(reason),
            _ => None,
        }
    }

    /// Takes a step, and returns its results, which later steps do not change.
    ///
    /// # Errors
    ///
    /// Errors of the step; driver errors.
    pub(super) fn run(&mut self, inputs: &[Tensor], work: &mut dyn StepWork) -> Result<Vec<Tensor>> {
        // A step in a capture of the caller's is a part of it. A step that checks its gradients reads them on the host.
        if captures_on_this_thread() || detects_anomaly() {
            return self.run_uncaptured(inputs, work);
        }
        match &self.stage {
            Stage::Uncaptured(_) => return self.run_uncaptured(inputs, work),
            Stage::Prepared(prepared) | Stage::Captured(prepared, _) if !prepared.fits(inputs) => {
                if !std::mem::replace(&mut self.has_logged_shapes, true) {
                    let shapes: Vec<String> = inputs.iter().map(|input| input.shape().to_string()).collect();
                    let shapes = shapes.join(", ");
                    log::info!(
                        "training steps of shapes {shapes} run uncaptured: the graph is of other shapes"
                    );
                }
                return self.run_uncaptured(inputs, work);
            }
            _ => {}
        }
        match std::mem::replace(&mut self.stage, Stage::First) {
            Stage::Prepared(prepared) => self.capture(prepared, inputs, work),
            Stage::Captured(prepared, captured) => self.launch(prepared, captured, inputs, work),
            Stage::First | Stage::Uncaptured(_) => self.prepare(inputs, work),
        }
    }

    /// Takes the first step.
    fn prepare(&mut self, inputs: &[Tensor], work: &mut dyn StepWork) -> Result<Vec<Tensor>> {
        let copies = inputs.iter().map(|input| input.to(&self.device)?.copy());
        let copies = copies.collect::<Result<Vec<Tensor>>>()?;
        let (generators, results) = CapturedGenerators::observe(&self.device, || take(&copies, work))?;
        let has_gradients = gradients_of(work);
        self.stage = Stage::Prepared(PreparedStep { inputs: copies, generators, has_gradients });
        Ok(results)
    }

    /// Takes a step without the graph, which stays for later ones, and returns its results.
    ///
    /// # Errors
    ///
    /// Errors of the step; driver errors.
    pub(super) fn run_uncaptured(&self, inputs: &[Tensor], work: &mut dyn StepWork) -> Result<Vec<Tensor>> {
        take(&self.on_device(inputs)?, work)
    }

    fn on_device(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        inputs.iter().map(|input| input.to(&self.device)).collect()
    }

    /// Captures a step and launches it.
    fn capture(
        &mut self,
        mut prepared: PreparedStep,
        inputs: &[Tensor],
        work: &mut dyn StepWork,
    ) -> Result<Vec<Tensor>> {
        if !prepared.inputs.iter().all(Tensor::is_unique) {
            self.refuse("the step keeps a tensor of its inputs");
            return self.run_uncaptured(inputs, work);
        }
        prepared.write(&self.device, inputs, work)?;
        match self.captured(&mut prepared, work) {
            Ok(captured) => {
                log::info!("the training step is captured as one graph on {}", self.device);
                let results = self.launch_written(&prepared, &captured, work);
                self.stage = Stage::Captured(prepared, Box::new(captured));
                results
            }
            Err(error) => {
                self.refuse(&error.to_string());
                // The step is counted already.
                self.finish_counted(inputs, &prepared.has_gradients, work)
            }
        }
    }

    fn captured(&self, prepared: &mut PreparedStep, work: &mut dyn StepWork) -> Result<CapturedStep> {
        let stream = self.device.stream()?;
        let PreparedStep { inputs, generators, has_gradients } = prepared;
        let (graph, (changes, results)) = stream.capture(|_| {
            generators.capture(|| {
                Changes::of(|| {
                    let results = work.gradients(inputs)?;
                    if gradients_of(work) != *has_gradients {
                        let found = "a step whose parameters with a gradient differ from the last step's";
                        return Err(not_capturable(found));
                    }
                    work.apply(&results)?;
                    Ok(results)
                })
            })
        })?;
        if !prepared.inputs.iter().all(Tensor::is_unique) {
            return Err(not_capturable("a step that keeps a tensor of its inputs"));
        }
        if !changes.are_in_place() {
            return Err(not_capturable("a step that keeps a tensor of its parameters or their gradients"));
        }
        let graph = graph.instantiate()?;
        Ok(CapturedStep { graph, results, changes, key: work.optimizer().capture_key() })
    }

    /// Takes a step by a launch, or without the graph if it no longer fits.
    fn launch(
        &mut self,
        mut prepared: PreparedStep,
        captured: Box<CapturedStep>,
        inputs: &[Tensor],
        work: &mut dyn StepWork,
    ) -> Result<Vec<Tensor>> {
        if !captured.changes.are_in_place() {
            log::debug!("a training step runs uncaptured: a tensor shares what its graph changes");
            return self.prepare(inputs, work);
        }
        prepared.write(&self.device, inputs, work)?;
        if work.optimizer().capture_key() != captured.key {
            log::debug!("a training step runs uncaptured: the optimizer's runs of parameters have changed");
            return self.finish_counted(inputs, &prepared.has_gradients, work);
        }
        let results = self.launch_written(&prepared, &captured, work);
        self.stage = Stage::Captured(prepared, captured);
        results
    }

    fn launch_written(
        &self,
        prepared: &PreparedStep,
        captured: &CapturedStep,
        work: &mut dyn StepWork,
    ) -> Result<Vec<Tensor>> {
        let stream = self.device.stream()?;
        if let Err(error) = captured.changes.launch(|| captured.graph.launch(&stream)) {
            work.optimizer().withdraw();
            return Err(error);
        }
        prepared.generators.advance();
        // The graph's own memory has other contents after the next launch.
        captured.results.iter().map(Tensor::copy).collect()
    }

    /// Takes a step that the optimizer has counted for the parameters that had gradients then.
    fn finish_counted(
        &self,
        inputs: &[Tensor],
        had_gradients: &[bool],
        work: &mut dyn StepWork,
    ) -> Result<Vec<Tensor>> {
        let results = match self.on_device(inputs).and_then(|inputs| work.gradients(&inputs)) {
            Ok(results) => results,
            Err(error) => {
                work.optimizer().withdraw();
                return Err(error);
            }
        };
        if gradients_of(work) != *had_gradients {
            work.optimizer().withdraw();
            work.optimizer().advance()?;
        }
        work.apply(&results)?;
        Ok(results)
    }

    fn refuse(&mut self, reason: &str) {
        log::info!("training steps run uncaptured: {reason}");
        self.stage = Stage::Uncaptured(reason.to_owned());
    }
}

/// Takes a step.
fn take(inputs: &[Tensor], work: &mut dyn StepWork) -> Result<Vec<Tensor>> {
    let results = work.gradients(inputs)?;
    work.optimizer().advance()?;
    work.apply(&results)?;
    Ok(results)
}

fn gradients_of(work: &dyn StepWork) -> Vec<bool> {
    work.parameters().iter().map(Variable::has_gradient).collect()
}

fn not_capturable(found: &str) -> Error {
    Error::NotCapturable { operation: "a training step", buffer: found.to_owned() }
}
