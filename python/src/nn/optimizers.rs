//! Optimizers with PyTorch's names and arguments, the clipping of gradients, and schedules of the learning rate.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType, PyWeakrefMethods, PyWeakrefReference};
use selvedge::Tensor;
use selvedge::nn::{
    self, Adafactor, Adam, AdamW, LearningRateSchedule, Lion, Optimizer, Parameters, ScheduleShape, Sgd,
    Variable,
};

use super::module::{ObjectModule, PyNnModule, dict_of, entries_of};
use super::pickle::arguments;
use super::variable::{PyParameter, PyVariable, parameter, parameter_of, variables};
use crate::arguments::InRange;
use crate::error::{Result, invalid};
use crate::tensor::PyTensor;

/// The parameters of a module in one buffer for each dtype, so that clipping and an optimizer's step are one launch: `Parameters(module)`.
///
/// Each parameter stays the variable that it was.
#[pyclass(name = "Parameters", module = "selvedge.nn", frozen)]
pub struct PyParameters {
    pub parameters: Parameters,
    module: Py<PyWeakrefReference>,
}

#[pymethods]
impl PyParameters {
    #[new]
    fn new(py: Python<'_>, module: &Bound<'_, PyNnModule>) -> Result<PyParameters> {
        let weak = PyWeakrefReference::new(module.as_any())?.unbind();
        let module = ObjectModule::new(module)?;
        Ok(PyParameters { parameters: py.detach(|| Parameters::new(&module))?, module: weak })
    }

    /// Removes the gradients.
    fn zero_grad(&self, py: Python<'_>) {
        py.detach(|| self.parameters.zero_grad());
    }

    /// The parameters with their names, each once.
    fn named_parameters<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyParameter>)>> {
        let module = self.module.bind(py).upgrade();
        let one = |(name, variable): (&str, &Variable)| {
            let object = match &module {
                Some(module) => parameter_of(py, variable.clone(), module, name)?,
                None => parameter(py, variable.clone())?,
            };
            Ok((name.to_owned(), object))
        };
        self.parameters.iter().map(one).collect()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyType>, (Bound<'py, PyAny>,))> {
        let Some(module) = slf.get().module.bind(slf.py()).upgrade() else {
            let found = "the Parameters of a module that was freed";
            return Err(invalid("pickle", found, "a module that lives").into());
        };
        Ok((slf.get_type(), (module,)))
    }

    fn __len__(&self) -> usize {
        self.parameters.iter().count()
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self
            .parameters
            .iter()
            .map(|(name, parameter)| format!("{name}: {}", parameter.shape()))
            .collect();
        format!("Parameters({})", names.join(", "))
    }
}

/// Returns the argument of an optimizer, of which a list takes the place of an iterator.
pub fn listed<'py>(object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let is_known = object.is_instance_of::<PyParameters>()
        || object.is_instance_of::<PyNnModule>()
        || object.is_instance_of::<PyVariable>();
    match object.try_iter() {
        Ok(items) if !is_known => {
            let items = items.collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(object.py(), items)?.into_any())
        }
        _ => Ok(object.clone()),
    }
}

/// Returns the parameters of `Parameters`, of a module, or of an iterable.
pub fn parameters(object: &Bound<'_, PyAny>) -> Result<Vec<Variable>> {
    if let Ok(parameters) = object.cast::<PyParameters>() {
        return Ok(parameters.get().parameters.variables());
    }
    if let Ok(module) = object.cast::<PyNnModule>() {
        let mut parameters = nn::Module::parameters(&ObjectModule::new(module)?);
        // A constant is no parameter to change.
        parameters.retain(Variable::requires_grad);
        return Ok(parameters);
    }
    variables("parameters", object)
}

/// Returns a reference to the module whose parameters an object is.
fn module_of(object: &Bound<'_, PyAny>) -> Result<Option<Py<PyWeakrefReference>>> {
    if let Ok(parameters) = object.cast::<PyParameters>() {
        return Ok(Some(parameters.get().module.clone_ref(object.py())));
    }
    match object.is_instance_of::<PyNnModule>() {
        true => Ok(Some(PyWeakrefReference::new(object)?.unbind())),
        false => Ok(None),
    }
}

type SharedOptimizer = Arc<Mutex<Box<dyn Optimizer + Send>>>;

/// The base class of the optimizers.
#[pyclass(name = "Optimizer", module = "selvedge.nn", frozen, subclass)]
pub struct PyOptimizer {
    shared: SharedOptimizer,
    parameters: Vec<Variable>,
    /// The module whose parameters they are, if the optimizer was made of one.
    module: Option<Py<PyWeakrefReference>>,
    /// `Parameters`, a list of parameters, or the first optimizer of a pair; `None` if the optimizer was made of a module.
    source: Option<Py<PyAny>>,
    /// The arguments beside the parameters.
    options: Py<PyDict>,
}

/// An optimizer that a training step and an object of Python share.
pub struct OptimizerHandle {
    shared: SharedOptimizer,
    parameters: Vec<Variable>,
}

fn locked(shared: &SharedOptimizer) -> MutexGuard<'_, Box<dyn Optimizer + Send>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PyOptimizer {
    /// The option that is the second optimizer of a pair.
    pub const SECOND: &'static str = "second";

    pub fn new(
        params: &Bound<'_, PyAny>,
        optimizer: impl Optimizer + Send + 'static,
        options: Bound<'_, PyDict>,
    ) -> Result<PyOptimizer> {
        let parameters = optimizer.parameters().to_vec();
        let shared: SharedOptimizer = Arc::new(Mutex::new(Box::new(optimizer)));
        let is_module = params.is_instance_of::<PyNnModule>();
        let source = if is_module { None } else { Some(params.clone().unbind()) };
        Ok(PyOptimizer { shared, parameters, module: module_of(params)?, source, options: options.unbind() })
    }

    /// Returns the object of the parameters: the module, `Parameters` or a list. Of a module that is freed, the parameters stay.
    pub fn source<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        if let Some(source) = &self.source {
            return Ok(source.bind(py).clone());
        }
        if let Some(module) = self.module.as_ref().and_then(|module| module.bind(py).upgrade()) {
            return Ok(module);
        }
        let objects = self.parameters.iter().map(|variable| parameter(py, variable.clone()));
        Ok(PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    /// Returns the arguments beside the parameters.
    pub fn options<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        self.options.bind(py).clone()
    }

    /// Returns the optimizer for a training step.
    pub fn handle(&self) -> OptimizerHandle {
        OptimizerHandle { shared: self.shared.clone(), parameters: self.parameters.clone() }
    }

    /// Refuses a step after another parameter took the place of one in the module.
    pub fn check_module(&self, py: Python<'_>) -> Result<()> {
        let second = self.options.bind(py).get_item(PyOptimizer::SECOND)?;
        let first = self.source.as_ref().map(|source| source.bind(py).clone());
        for optimizer in first.iter().chain(&second) {
            if let Ok(optimizer) = optimizer.cast::<PyOptimizer>() {
                optimizer.get().check_module(py)?;
            }
        }
        let Some(module) = self.module.as_ref().and_then(|module| module.bind(py).upgrade()) else {
            return Ok(());
        };
        let module = ObjectModule::new(module.cast::<PyNnModule>()?)?;
        for (name, parameter) in nn::Module::named_parameters(&module) {
            if parameter.requires_grad() && !self.parameters.iter().any(|known| known.is_same(&parameter)) {
                let found =
                    format!("the parameter '{name}', which the module got after the optimizer was made");
                return Err(
                    invalid("step", found, "an optimizer of the parameters that the module has").into()
                );
            }
        }
        Ok(())
    }
}

impl Optimizer for OptimizerHandle {
    fn name(&self) -> &'static str {
        locked(&self.shared).name()
    }

    fn advance(&mut self) -> selvedge::Result<()> {
        locked(&self.shared).advance()
    }

    fn apply(&mut self) -> selvedge::Result<()> {
        locked(&self.shared).apply()
    }

    fn apply_if(&mut self, condition: &Tensor) -> selvedge::Result<()> {
        locked(&self.shared).apply_if(condition)
    }

    fn apply_scaled(&mut self, condition: &Tensor, factor: &Tensor) -> selvedge::Result<()> {
        locked(&self.shared).apply_scaled(condition, factor)
    }

    fn withdraw(&mut self) {
        locked(&self.shared).withdraw();
    }

    fn capture_key(&self) -> u64 {
        locked(&self.shared).capture_key()
    }

    fn parameters(&self) -> &[Variable] {
        &self.parameters
    }

    fn learning_rate(&self) -> f64 {
        locked(&self.shared).learning_rate()
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        locked(&self.shared).set_learning_rate(learning_rate);
    }

    fn state_dict(&self) -> selvedge::Result<BTreeMap<String, Tensor>> {
        locked(&self.shared).state_dict()
    }

    fn check_state_dict(&self, entries: &BTreeMap<String, Tensor>) -> selvedge::Result<()> {
        locked(&self.shared).check_state_dict(entries)
    }

    fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> selvedge::Result<()> {
        locked(&self.shared).load_state_dict(entries)
    }
}

#[pymethods]
impl PyOptimizer {
    /// Changes each parameter that has a gradient.
    ///
    /// An optimizer of a module refuses a step if the module has another parameter by then.
    fn step(&self, py: Python<'_>) -> Result<()> {
        self.check_module(py)?;
        Ok(py.detach(|| locked(&self.shared).step())?)
    }

    /// Removes the gradients.
    fn zero_grad(&self, py: Python<'_>) {
        py.detach(|| locked(&self.shared).zero_grad());
    }

    /// The learning rate. The next step uses a new one.
    #[getter]
    fn lr(&self, py: Python<'_>) -> f64 {
        py.detach(|| locked(&self.shared).learning_rate())
    }

    #[setter]
    fn set_lr(&self, py: Python<'_>, lr: InRange<f64>) {
        py.detach(|| locked(&self.shared).set_learning_rate(lr.0));
    }

    /// The learning rate and the state of each parameter as tensors, by the parameter's position and PyTorch's name.
    pub fn state_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let tensors = py.detach(|| locked(&self.shared).state_dict())?;
        Ok(dict_of(py, tensors)?)
    }

    /// Sets the learning rate and the states, bit for bit. A parameter without entries begins anew.
    pub fn load_state_dict(&self, py: Python<'_>, state_dict: &Bound<'_, PyAny>) -> Result<()> {
        let entries = entries_of(state_dict)?;
        Ok(py.detach(|| locked(&self.shared).load_state_dict(&entries))?)
    }
}

/// Stochastic gradient descent: v = momentum v + g, p = p - lr v, with weight_decay p as a part of g. With nesterov, p = p - lr (g + momentum v).
#[pyclass(name = "SGD", module = "selvedge.nn", frozen, extends = PyOptimizer, subclass)]
pub struct PySgd;

#[pymethods]
impl PySgd {
    #[new]
    #[pyo3(
        signature = (params, lr=InRange(1e-3), momentum=InRange(0.0), weight_decay=InRange(0.0), nesterov=false, *, min_decay_rank=InRange(0)),
        text_signature = "(params, lr=0.001, momentum=0.0, weight_decay=0.0, nesterov=False, *, min_decay_rank=0)"
    )]
    fn new(
        params: &Bound<'_, PyAny>,
        lr: InRange<f64>,
        momentum: InRange<f64>,
        weight_decay: InRange<f64>,
        nesterov: bool,
        min_decay_rank: InRange<usize>,
    ) -> Result<PyClassInitializer<PySgd>> {
        let params = &listed(params)?;
        let options = arguments!(params.py(), lr, momentum, weight_decay, nesterov, min_decay_rank);
        let parameters = parameters(params)?;
        let optimizer = params.py().detach(|| {
            let optimizer = Sgd::new(parameters, lr.0)?.with_momentum(momentum.0)?.with_nesterov(nesterov)?;
            Ok::<_, selvedge::Error>(
                optimizer.with_weight_decay(weight_decay.0)?.with_min_decay_rank(min_decay_rank.0),
            )
        })?;
        Ok(PyClassInitializer::from(PyOptimizer::new(params, optimizer, options)?).add_subclass(PySgd))
    }
}

macro_rules! adams {
    ($($(#[doc = $document:literal])* $class:ident $rust:ident $name:literal $decay:literal $signature:literal;)*) => {$(
        $(#[doc = $document])*
        #[pyclass(name = $name, module = "selvedge.nn", frozen, extends = PyOptimizer, subclass)]
        pub struct $class;

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(
                signature = (params, lr=InRange(1e-3), betas=(InRange(0.9), InRange(0.999)), eps=InRange(1e-8), weight_decay=InRange($decay), *, min_decay_rank=InRange(0)),
                text_signature = $signature
            )]
            fn new(
                params: &Bound<'_, PyAny>,
                lr: InRange<f64>,
                betas: (InRange<f64>, InRange<f64>),
                eps: InRange<f64>,
                weight_decay: InRange<f64>,
                min_decay_rank: InRange<usize>,
            ) -> Result<PyClassInitializer<$class>> {
                let params = &listed(params)?;
                let options = arguments!(params.py(), lr, betas, eps, weight_decay, min_decay_rank);
                let parameters = parameters(params)?;
                let optimizer = params.py().detach(|| {
                    let optimizer = $rust::new(parameters, lr.0)?.with_betas(betas.0.0, betas.1.0)?;
                    let optimizer = optimizer.with_eps(eps.0)?.with_weight_decay(weight_decay.0)?;
                    Ok::<_, selvedge::Error>(optimizer.with_min_decay_rank(min_decay_rank.0))
                })?;
                Ok(PyClassInitializer::from(PyOptimizer::new(params, optimizer, options)?).add_subclass($class))
            }
        }
    )*};
}

adams! {
    /// Adam with bias correction. The weight decay is a part of the gradient.
    PyAdam Adam "Adam" 0.0 "(params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, *, min_decay_rank=0)";
    /// Adam whose weight decay multiplies the parameter by 1 - lr weight_decay.
    PyAdamW AdamW "AdamW" 0.01 "(params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, *, min_decay_rank=0)";
}

/// Lion: p = p (1 - lr weight_decay) - lr sign(b1 m + (1 - b1) g), then m = b2 m + (1 - b2) g.
#[pyclass(name = "Lion", module = "selvedge.nn", frozen, extends = PyOptimizer, subclass)]
pub struct PyLion;

#[pymethods]
impl PyLion {
    #[new]
    #[pyo3(
        signature = (params, lr=InRange(1e-4), betas=(InRange(0.9), InRange(0.99)), weight_decay=InRange(0.0), *, min_decay_rank=InRange(0)),
        text_signature = "(params, lr=0.0001, betas=(0.9, 0.99), weight_decay=0.0, *, min_decay_rank=0)"
    )]
    fn new(
        params: &Bound<'_, PyAny>,
        lr: InRange<f64>,
        betas: (InRange<f64>, InRange<f64>),
        weight_decay: InRange<f64>,
        min_decay_rank: InRange<usize>,
    ) -> Result<PyClassInitializer<PyLion>> {
        let params = &listed(params)?;
        let options = arguments!(params.py(), lr, betas, weight_decay, min_decay_rank);
        let parameters = parameters(params)?;
        let optimizer = params.py().detach(|| {
            let optimizer = Lion::new(parameters, lr.0)?.with_betas(betas.0.0, betas.1.0)?;
            Ok::<_, selvedge::Error>(
                optimizer.with_weight_decay(weight_decay.0)?.with_min_decay_rank(min_decay_rank.0),
            )
        })?;
        Ok(PyClassInitializer::from(PyOptimizer::new(params, optimizer, options)?).add_subclass(PyLion))
    }
}

/// PyTorch's Adafactor: the second moments of a matrix are those of its rows and columns.
///
/// A step of size min(lr, 1 / sqrt(step)) is relative to the root mean square of the parameter, unless relative_step is False: then it is
/// lr. eps is the least root of a second moment, None for the machine epsilon of the dtype, and the least root mean square of a
/// parameter. d is the root mean square to which larger updates are scaled down.
#[pyclass(name = "Adafactor", module = "selvedge.nn", frozen, extends = PyOptimizer, subclass)]
pub struct PyAdafactor;

#[pymethods]
impl PyAdafactor {
    #[new]
    #[pyo3(
        signature = (params, lr=InRange(1e-2), beta2_decay=InRange(-0.8), eps=(None, InRange(1e-3)), d=InRange(1.0), weight_decay=InRange(0.0), *, relative_step=true, min_decay_rank=InRange(0)),
        text_signature = "(params, lr=0.01, beta2_decay=-0.8, eps=(None, 0.001), d=1.0, weight_decay=0.0, *, relative_step=True, min_decay_rank=0)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn new(
        params: &Bound<'_, PyAny>,
        lr: InRange<f64>,
        beta2_decay: InRange<f64>,
        eps: (Option<InRange<f64>>, InRange<f64>),
        d: InRange<f64>,
        weight_decay: InRange<f64>,
        relative_step: bool,
        min_decay_rank: InRange<usize>,
    ) -> Result<PyClassInitializer<PyAdafactor>> {
        let params = &listed(params)?;
        let options =
            arguments!(params.py(), lr, beta2_decay, eps, d, weight_decay, relative_step, min_decay_rank);
        let parameters = parameters(params)?;
        let optimizer = params.py().detach(|| {
            let optimizer = Adafactor::new(parameters, lr.0)?.with_beta2_decay(beta2_decay.0)?;
            let optimizer =
                optimizer.with_eps(eps.0.map(|eps| eps.0), eps.1.0)?.with_clipping_threshold(d.0)?;
            let optimizer = optimizer.with_weight_decay(weight_decay.0)?.with_relative_step(relative_step);
            Ok::<_, selvedge::Error>(optimizer.with_min_decay_rank(min_decay_rank.0))
        })?;
        Ok(PyClassInitializer::from(PyOptimizer::new(params, optimizer, options)?).add_subclass(PyAdafactor))
    }
}

/// Scales the gradients so that their norm is at most `max_norm`, and returns the norm before.
#[pyfunction]
pub fn clip_grad_norm_(
    py: Python<'_>,
    parameters: &Bound<'_, PyAny>,
    max_norm: InRange<f64>,
) -> Result<PyTensor> {
    let parameters = self::parameters(parameters)?;
    Ok(py.detach(|| nn::clip_grad_norm(&parameters, max_norm.0))?.into())
}

/// The learning rate of each step: a linear warmup to the peak, then "constant", or to the minimum by "cosine", "linear" or "wsd" (constant,
/// and linear in the last fifth). "step" is PyTorch's StepLR, with step_size and gamma, and no less than the minimum. "onecycle" is
/// its OneCycleLR: a cosine from peak / div_factor to the peak in the warmup, and one to the minimum.
///
/// >>> schedule = sv.nn.LearningRateSchedule("linear", peak=1.0, total_steps=10)
/// >>> schedule(5)
/// 0.5
/// >>> sv.nn.LearningRateSchedule("step", peak=1.0, step_size=3, gamma=0.5)(6)
/// 0.25
#[pyclass(name = "LearningRateSchedule", module = "selvedge.nn", frozen)]
pub struct PySchedule(pub LearningRateSchedule);

/// Returns the shape of a name alone. `others` are further names for the error.
pub fn plain_shape(operation: &'static str, name: &str, others: &str) -> Result<ScheduleShape> {
    Ok(match name {
        "cosine" => ScheduleShape::Cosine,
        "constant" => ScheduleShape::Constant,
        "linear" => ScheduleShape::Linear,
        "wsd" => ScheduleShape::Wsd,
        _ => {
            let wanted = format!("\"cosine\", \"constant\", \"linear\", \"wsd\"{others}");
            return Err(invalid(operation, format!("\"{name}\""), wanted).into());
        }
    })
}

#[pymethods]
impl PySchedule {
    #[new]
    #[pyo3(
        signature = (shape, peak, *, minimum=InRange(0.0), warmup_steps=InRange(0), total_steps=InRange(0), step_size=None, gamma=None, div_factor=None),
        text_signature = "(shape, peak, *, minimum=0.0, warmup_steps=0, total_steps=0, step_size=None, gamma=None, div_factor=None)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn new(
        shape: &str,
        peak: InRange<f64>,
        minimum: InRange<f64>,
        warmup_steps: InRange<u64>,
        total_steps: InRange<u64>,
        step_size: Option<InRange<u64>>,
        gamma: Option<InRange<f64>>,
        div_factor: Option<InRange<f64>>,
    ) -> Result<PySchedule> {
        const NAME: &str = "LearningRateSchedule";
        let unread = [
            ("step_size", step_size.is_some(), "step"),
            ("gamma", gamma.is_some(), "step"),
            ("div_factor", div_factor.is_some(), "onecycle"),
        ];
        if let Some((name, _, wanted)) = unread.iter().find(|(_, is_set, reads)| *is_set && *reads != shape) {
            let found = format!("a {name} of the shape \"{shape}\"");
            return Err(invalid(NAME, found, format!("no {name}, or the shape \"{wanted}\"")).into());
        }
        let shape = match shape {
            "step" => {
                let size = step_size.and_then(|size| NonZeroU64::new(size.0)).ok_or_else(|| {
                    invalid(
                        NAME,
                        "the shape \"step\" without a step_size above 0",
                        "step_size=30, for example",
                    )
                })?;
                ScheduleShape::Step { size, gamma: gamma.map_or(0.1, |gamma| gamma.0) }
            }
            "onecycle" => {
                ScheduleShape::OneCycle { div_factor: div_factor.map_or(25.0, |div_factor| div_factor.0) }
            }
            _ => plain_shape(NAME, shape, ", \"step\" or \"onecycle\"")?,
        };
        let schedule = LearningRateSchedule {
            shape,
            peak: peak.0,
            minimum: minimum.0,
            warmup_steps: warmup_steps.0,
            total_steps: total_steps.0,
        };
        schedule.check()?;
        Ok(PySchedule(schedule))
    }

    /// The learning rate of a step; the first one is 0.
    fn __call__(&self, step: InRange<u64>) -> f64 {
        self.0.learning_rate(step.0)
    }
}

/// Adds the classes to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyParameters>()?;
    module.add_class::<PyOptimizer>()?;
    module.add_class::<PySgd>()?;
    module.add_class::<PyAdam>()?;
    module.add_class::<PyAdamW>()?;
    module.add_class::<PyLion>()?;
    module.add_class::<PyAdafactor>()?;
    module.add_class::<PySchedule>()
}
