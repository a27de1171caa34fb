//! `selvedge.nn.Module`, which users subclass and of which the layers are subclasses.
//!
//! A module's parameters, buffers and modules are its attributes, and the entries of its lists, tuples and dicts: they are found when they are
//! asked for, so an assignment needs no bookkeeping. A layer of Rust holds its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use selvedge::Tensor;
use selvedge::nn::{Activation, Linear, Module, Variable};

use super::variable::{PyBuffer, PyParameter, PyVariable, VariableArgument, buffer, parameter_of};
use crate::error::{Result, invalid, raised, type_name, wrong_type};
use crate::tensor::{PyTensor, new_tensor};

/// A layer of Rust.
pub enum Layer {
    /// Without a training mode.
    Fixed(Box<dyn Module>),
    /// With one.
    Moded(RwLock<Box<dyn Module>>),
}

impl Layer {
    fn with<R>(&self, work: impl FnOnce(&dyn Module) -> R) -> R {
        match self {
            Layer::Fixed(module) => work(&**module),
            Layer::Moded(module) => work(&**module.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    fn set_training(&self, is_training: bool) {
        if let Layer::Moded(module) = self {
            module.write().unwrap_or_else(PoisonError::into_inner).set_training(is_training);
        }
    }
}

/// The class of a layer of Rust and the arguments of its `__init__`, of which a pickle makes it again. `initializer` is the name of the
/// dtype to compute in.
pub struct Origin {
    pub class: Py<PyType>,
    pub arguments: Py<PyDict>,
}

/// The base class of models and layers. A subclass defines `forward`, which a call of the module calls.
///
/// Attributes that are a `Parameter`, a `Buffer` or a `Module` belong to it, and so do those in lists, tuples and dicts.
///
/// >>> class Residual(sv.nn.Module):
/// ...     def __init__(self, width):
/// ...         self.norm = sv.nn.LayerNorm(width)
/// ...         self.scale = sv.nn.Parameter(sv.ones(width))
/// ...     def forward(self, x):
/// ...         return x + self.norm(x) * self.scale
/// >>> [name for name, parameter in Residual(4).named_parameters()]
/// ['norm.weight', 'norm.bias', 'scale']
#[pyclass(name = "Module", module = "selvedge.nn", frozen, subclass, dict, weakref)]
pub struct PyNnModule {
    layer: Mutex<Option<(Arc<Layer>, Arc<Origin>)>>,
    /// True if the object's class is that of the layer, so that Python changes nothing of it.
    is_plain: AtomicBool,
    is_training: AtomicBool,
    /// The hooks with their numbers, in the order of their registration.
    hooks: Mutex<Vec<(u64, Py<PyAny>)>>,
    hook_count: AtomicU64,
}

/// A hook of a module: `remove()` removes it.
#[pyclass(name = "HookHandle", module = "selvedge.nn", frozen)]
pub struct PyHookHandle {
    module: Py<PyNnModule>,
    number: u64,
}

#[pymethods]
impl PyHookHandle {
    /// Removes the hook.
    fn remove(&self) {
        self.module.get().hooks().retain(|(number, _)| *number != self.number);
    }
}

impl PyNnModule {
    fn hooks(&self) -> MutexGuard<'_, Vec<(u64, Py<PyAny>)>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a module without a layer, which `__init__` sets.
    pub fn empty() -> PyNnModule {
        PyNnModule {
            layer: Mutex::new(None),
            is_plain: AtomicBool::new(false),
            is_training: AtomicBool::new(true),
            hooks: Mutex::new(Vec::new()),
            hook_count: AtomicU64::new(0),
        }
    }

    fn layer(&self) -> Option<Arc<Layer>> {
        self.layer_and_origin().map(|(layer, _)| layer)
    }

    /// Returns the layer with its origin.
    pub fn layer_and_origin(&self) -> Option<(Arc<Layer>, Arc<Origin>)> {
        self.layer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the module is in the training mode.
    pub fn is_in_training(&self) -> bool {
        self.is_training.load(Ordering::Relaxed)
    }

    /// Sets the mode of this module alone.
    pub fn set_mode(&self, py: Python<'_>, is_training: bool) {
        self.note_mode(is_training);
        if let Some(layer) = self.layer() {
            py.detach(|| layer.set_training(is_training));
        }
    }

    /// Takes the mode that the layer has.
    pub fn note_mode(&self, is_training: bool) {
        self.is_training.store(is_training, Ordering::Relaxed);
    }

    /// Returns the hooks in their order.
    pub fn hook_list(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.hooks().iter().map(|(_, hook)| hook.clone_ref(py)).collect()
    }

    /// Sets the hooks.
    pub fn set_hooks(&self, hooks: Vec<Py<PyAny>>) {
        self.hook_count.store(hooks.len() as u64, Ordering::Relaxed);
        *self.hooks() = (0..).zip(hooks).collect();
    }

    /// Takes the layer, the mode and the hooks of another module.
    pub fn share(&self, other: &PyNnModule, py: Python<'_>) {
        let layer = other.layer_and_origin();
        *self.layer.lock().unwrap_or_else(PoisonError::into_inner) = layer;
        self.is_plain.store(other.is_plain.load(Ordering::Relaxed), Ordering::Relaxed);
        self.note_mode(other.is_in_training());
        self.set_hooks(other.hook_list(py));
    }

    /// Sets the layer of an object of a class or of a subclass of it.
    pub fn set_layer(
        object: &Bound<'_, PyNnModule>,
        class: &Bound<'_, PyType>,
        layer: Layer,
        arguments: &Bound<'_, PyDict>,
    ) {
        let module = object.get();
        layer.set_training(module.is_training.load(Ordering::Relaxed));
        module.is_plain.store(object.get_type().is(class), Ordering::Relaxed);
        let origin = Arc::new(Origin::new(class, arguments));
        *module.layer.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::new(layer), origin));
    }

    /// Returns a parameter or a buffer of the layer.
    pub fn variable_of_layer(&self, name: &str) -> Option<Variable> {
        let layer = self.layer()?;
        let all = layer.with(|module| [module.named_parameters(), module.named_buffers()].concat());
        all.into_iter().find(|(known, _)| known == name).map(|(_, variable)| variable)
    }
}

/// Something that belongs to a module.
enum Member<'py> {
    Parameter(Bound<'py, PyAny>),
    Buffer(Bound<'py, PyAny>),
    Module(Bound<'py, PyNnModule>),
}

/// The members of a module and of the modules within it, with their names.
struct Members<'py> {
    found: Vec<(String, Member<'py>)>,
    /// The modules from the first one to that whose members are added.
    path: Vec<Bound<'py, PyNnModule>>,
}

impl<'py> Members<'py> {
    /// Returns all members. The first one is the module itself, without a name.
    fn of(module: &Bound<'py, PyNnModule>) -> Result<Vec<(String, Member<'py>)>> {
        let mut members = Members { found: Vec::new(), path: Vec::new() };
        members.add_module(String::new(), module)?;
        Ok(members.found)
    }

    fn add_module(&mut self, name: String, module: &Bound<'py, PyNnModule>) -> Result<()> {
        if self.path.iter().any(|outer| outer.is(module)) {
            let found = format!("{} '{name}', which contains itself", type_name(module.as_any()));
            return Err(invalid("a module", found, "modules that are a tree").into());
        }
        self.found.push((name.clone(), Member::Module(module.clone())));
        self.path.push(module.clone());
        let py = module.py();
        if let Some(layer) = module.get().layer() {
            let (parameters, buffers) =
                layer.with(|module| (module.named_parameters(), module.named_buffers()));
            for (own, variable) in parameters {
                let object = parameter_of(py, variable, module.as_any(), &own)?.into_any();
                self.found.push((joined(&name, &own), Member::Parameter(object)));
            }
            for (own, variable) in buffers {
                self.found.push((joined(&name, &own), Member::Buffer(buffer(py, variable)?.into_any())));
            }
        }
        if !module.get().is_plain.load(Ordering::Relaxed) {
            refuse_class_attributes(module)?;
        }
        let attributes = module.getattr("__dict__")?;
        let attributes = attributes.cast::<PyDict>()?;
        for (key, value) in attributes.iter() {
            self.add(joined(&name, &key.str()?.to_string()), &value)?;
        }
        self.path.pop();
        Ok(())
    }

    fn add(&mut self, name: String, value: &Bound<'py, PyAny>) -> Result<()> {
        if value.is_instance_of::<PyParameter>() {
            self.found.push((name, Member::Parameter(value.clone())));
        } else if value.is_instance_of::<PyBuffer>() {
            self.found.push((name, Member::Buffer(value.clone())));
        } else if let Ok(module) = value.cast::<PyNnModule>() {
            self.add_module(name, module)?;
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            for (position, entry) in value.try_iter()?.enumerate() {
                self.add(format!("{name}.{position}"), &entry?)?;
            }
        } else if let Ok(entries) = value.cast::<PyDict>() {
            for (key, entry) in entries.iter() {
                if let Ok(key) = key.cast::<PyString>() {
                    self.add(format!("{name}.{key}"), &entry)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns a name within a module.
fn joined(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}.{name}") }
}

/// Refuses parameters that all objects of a class would share.
fn refuse_class_attributes(module: &Bound<'_, PyNnModule>) -> Result<()> {
    for class in module.get_type().mro().iter() {
        let attributes = class.getattr("__dict__")?;
        if class.is(module.py().get_type::<PyNnModule>()) {
            return Ok(());
        }
        for entry in attributes.call_method0("items")?.try_iter()? {
            let (name, value): (String, Bound<'_, PyAny>) = entry?.extract()?;
            if value.is_instance_of::<PyVariable>() || value.is_instance_of::<PyNnModule>() {
                let found = format!(
                    "the {} '{name}' as an attribute of the class {}",
                    type_name(&value),
                    class.getattr("__name__")?
                );
                return Err(invalid("a module", found, "an attribute of the object, set in __init__").into());
            }
        }
    }
    Ok(())
}

/// A module of Python for the functions of Rust.
pub struct ObjectModule {
    object: Py<PyNnModule>,
    /// The layer, if Python changes nothing of it.
    layer: Option<Arc<Layer>>,
    parameters: Vec<(String, Variable)>,
    buffers: Vec<(String, Variable)>,
}

impl ObjectModule {
    /// Collects the parameters and buffers that a module has now.
    pub fn new(object: &Bound<'_, PyNnModule>) -> Result<ObjectModule> {
        let (mut parameters, mut buffers) = (Vec::new(), Vec::new());
        let variable = |object: &Bound<'_, PyAny>| -> Result<Variable> {
            Ok(object.cast::<PyVariable>()?.get().0.clone())
        };
        for (name, member) in Members::of(object)? {
            match member {
                Member::Parameter(found) => parameters.push((name, variable(&found)?)),
                Member::Buffer(found) => buffers.push((name, variable(&found)?)),
                Member::Module(_) => {}
            }
        }
        Ok(ObjectModule { parameters, buffers, ..ObjectModule::of_forward(object) })
    }

    /// Returns a layer's parameters and buffers.
    pub fn of_layer(object: &Bound<'_, PyNnModule>, layer: &Arc<Layer>) -> ObjectModule {
        let (parameters, buffers) = layer.with(|module| (module.named_parameters(), module.named_buffers()));
        ObjectModule { object: object.clone().unbind(), layer: Some(layer.clone()), parameters, buffers }
    }

    /// Returns a module for [`forward`](Module::forward) alone, without its parameters.
    pub fn of_forward(object: &Bound<'_, PyNnModule>) -> ObjectModule {
        let module = object.get();
        let is_plain = module.is_plain.load(Ordering::Relaxed) && module.hooks().is_empty();
        let layer = if is_plain { module.layer() } else { None };
        ObjectModule { object: object.clone().unbind(), layer, parameters: Vec::new(), buffers: Vec::new() }
    }
}

impl Module for ObjectModule {
    fn forward(&self, input: &Variable) -> selvedge::Result<Variable> {
        if let Some(layer) = &self.layer {
            return layer.with(|module| module.forward(input));
        }
        Python::attach(|py| {
            let result = self.object.bind(py).call1((PyVariable(input.clone()),)).map_err(raised)?;
            Ok(result.extract::<VariableArgument>().map_err(raised)?.0)
        })
    }

    fn as_linear(&self) -> Option<&Linear> {
        match self.layer.as_deref() {
            Some(Layer::Fixed(module)) => module.as_linear(),
            _ => None,
        }
    }

    fn as_activation(&self) -> Option<Activation> {
        self.layer.as_ref().and_then(|layer| layer.with(|module| module.as_activation()))
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        self.parameters.clone()
    }

    fn named_buffers(&self) -> Vec<(String, Variable)> {
        self.buffers.clone()
    }
}

/// Returns tensors by name as a dict.
pub fn dict_of(py: Python<'_>, tensors: BTreeMap<String, Tensor>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, tensor) in tensors {
        dict.set_item(name, PyTensor::from(tensor).into_pyobject(py)?)?;
    }
    Ok(dict)
}

/// Returns the tensor of a variable, or of what `Tensor` takes.
pub fn value_of(object: &Bound<'_, PyAny>) -> Result<Tensor> {
    match object.cast::<PyVariable>() {
        Ok(variable) => Ok(variable.get().0.tensor()),
        Err(_) => new_tensor(object, None, None),
    }
}

/// Returns the tensors of a dict of tensors, arrays or variables.
pub fn entries_of(state_dict: &Bound<'_, PyAny>) -> Result<BTreeMap<String, Tensor>> {
    let wanted = || wrong_type("load_state_dict", type_name(state_dict), "a dict of tensors by name");
    let items = state_dict.call_method0("items").map_err(|_| wanted())?;
    let mut entries = BTreeMap::new();
    for item in items.try_iter()? {
        let (name, value): (String, Bound<'_, PyAny>) = item?.extract()?;
        entries.insert(name, value_of(&value)?);
    }
    Ok(entries)
}

#[pymethods]
impl PyNnModule {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords), text_signature = "()")]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> PyNnModule {
        PyNnModule::empty()
    }

    /// The result for inputs. A subclass defines it; a layer takes one variable or tensor.
    #[pyo3(signature = (*inputs, **keywords))]
    fn forward(
        slf: &Bound<'_, Self>,
        inputs: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> Result<PyVariable> {
        let Some(layer) = slf.get().layer() else {
            let found = format!("the class {} without it", type_name(slf.as_any()));
            let wanted = "a method forward(self, ...), and super().__init__(...) in a subclass of a layer";
            return Err(invalid("forward", found, wanted).into());
        };
        if inputs.len() != 1 || keywords.is_some_and(|keywords| !keywords.is_empty()) {
            let count = inputs.len() + keywords.map_or(0, |keywords| keywords.len());
            return Err(wrong_type("forward", format!("{count} arguments"), "one input").into());
        }
        let input = inputs.get_item(0)?.extract::<VariableArgument>()?;
        let result = slf.py().detach(|| layer.with(|module| module.forward(&input.0)))?;
        Ok(PyVariable(result))
    }

    #[pyo3(signature = (*inputs, **keywords))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        inputs: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut result = slf.getattr("forward")?.call(inputs, keywords)?;
        let hooks: Vec<Py<PyAny>> =
            slf.get().hooks().iter().map(|(_, hook)| hook.clone_ref(slf.py())).collect();
        for hook in hooks {
            let other = hook.bind(slf.py()).call1((slf, inputs, &result))?;
            if !other.is_none() {
                result = other;
            }
        }
        Ok(result)
    }

    /// Calls `hook(module, inputs, result)` after each call of the module, with the tuple of its inputs. A result other than None takes the
    /// place of the module's.
    fn register_forward_hook(slf: &Bound<'_, Self>, hook: Py<PyAny>) -> PyHookHandle {
        let number = slf.get().hook_count.fetch_add(1, Ordering::Relaxed);
        slf.get().hooks().push((number, hook));
        PyHookHandle { module: slf.clone().unbind(), number }
    }

    /// The parameters with their names, in the order of the attributes.
    pub fn named_parameters<'py>(slf: &Bound<'py, Self>) -> Result<Vec<(String, Bound<'py, PyAny>)>> {
        let members = Members::of(slf)?.into_iter();
        Ok(members
            .filter_map(|(name, member)| match member {
                Member::Parameter(found) => Some((name, found)),
                _ => None,
            })
            .collect())
    }

    /// The parameters, in the order of the attributes.
    fn parameters<'py>(slf: &Bound<'py, Self>) -> Result<Vec<Bound<'py, PyAny>>> {
        let named = PyNnModule::named_parameters(slf)?.into_iter();
        Ok(named.map(|(_, parameter)| parameter).collect())
    }

    /// The buffers with their names.
    fn named_buffers<'py>(slf: &Bound<'py, Self>) -> Result<Vec<(String, Bound<'py, PyAny>)>> {
        let members = Members::of(slf)?.into_iter();
        Ok(members
            .filter_map(|(name, member)| match member {
                Member::Buffer(found) => Some((name, found)),
                _ => None,
            })
            .collect())
    }

    /// This module and those within it with their names, of which this one's is empty.
    fn named_modules<'py>(slf: &Bound<'py, Self>) -> Result<Vec<(String, Bound<'py, PyNnModule>)>> {
        let members = Members::of(slf)?.into_iter();
        Ok(members
            .filter_map(|(name, member)| match member {
                Member::Module(found) => Some((name, found)),
                _ => None,
            })
            .collect())
    }

    /// The tensors of the parameters and buffers by name. Later steps do not change them.
    fn state_dict<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyDict>> {
        let module = ObjectModule::new(slf)?;
        let tensors = slf.py().detach(|| module.state_dict());
        Ok(dict_of(slf.py(), tensors)?)
    }

    /// Sets the parameters and buffers to tensors, arrays or tensors of PyTorch by name, which are copied and cast.
    ///
    /// One error names every missing and every extra entry, and every entry of a wrong shape. Nothing changes then.
    fn load_state_dict(slf: &Bound<'_, Self>, state_dict: &Bound<'_, PyAny>) -> Result<()> {
        let (mut module, entries) = (ObjectModule::new(slf)?, entries_of(state_dict)?);
        Ok(slf.py().detach(|| module.load_state_dict(&entries))?)
    }

    /// Sets the training mode of this module and of those within it, and returns the module.
    #[pyo3(signature = (mode=true))]
    fn train<'py>(slf: &Bound<'py, Self>, mode: bool) -> Result<Bound<'py, Self>> {
        for (_, module) in PyNnModule::named_modules(slf)? {
            module.get().set_mode(slf.py(), mode);
        }
        Ok(slf.clone())
    }

    /// Sets the evaluation mode of this module and of those within it, and returns the module.
    fn eval<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        PyNnModule::train(slf, false)
    }

    /// True in the training mode, in which modules begin.
    #[getter]
    fn training(&self) -> bool {
        self.is_in_training()
    }

    /// Removes the gradients of the parameters.
    fn zero_grad(slf: &Bound<'_, Self>) -> Result<()> {
        ObjectModule::new(slf)?.parameters.iter().for_each(|(_, parameter)| parameter.zero_grad());
        Ok(())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> Result<String> {
        let module = ObjectModule::new(slf)?;
        let shapes: Vec<String> = module
            .parameters
            .iter()
            .map(|(name, parameter)| format!("{name}: {}", parameter.shape()))
            .collect();
        Ok(format!("{}({})", type_name(slf.as_any()), shapes.join(", ")))
    }
}
