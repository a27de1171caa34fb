//! Pickles and copies of variables, modules and optimizers.
//!
//! A module becomes its class by name, its attributes, its mode, its hooks, and the class, the arguments and the tensors of its layer of Rust.
//! A parameter of a layer becomes the layer and a name, so that an optimizer and a model of one pickle still share it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use selvedge::nn::Variable;

use super::layers::PyInitializer;
use super::module::{ObjectModule, Origin, PyNnModule, dict_of, entries_of};
use super::optimizers::PyOptimizer;
use super::variable::{PyBuffer, PyParameter, PyVariable};
use crate::arguments::{DTypeArgument, DeviceArgument, InRange, Sizes};
use crate::error::{Result, invalid};
use crate::random::PyGenerator;
use crate::tensor::PyTensor;

/// The function that restores an object, its arguments, and the state that is set then.
type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>, Option<Bound<'py, PyAny>>);

/// An argument of a constructor, which makes the object again.
pub trait Recorded {
    /// Returns the argument of the new object; `None` for one that follows from the tensors.
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>>;
}

macro_rules! recorded {
    ($($type:ty: |$this:ident, $py:ident| $value:expr;)*) => {$(
        impl Recorded for $type {
            fn record<'py>(&self, $py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
                let $this = self;
                Ok($value)
            }
        }
    )*};
}

recorded! {
    bool: |this, py| Some(this.into_pyobject(py)?.to_owned().into_any());
    &str: |this, py| Some(PyString::new(py, this).into_any());
    InRange<usize>: |this, py| Some(this.0.into_pyobject(py)?.into_any());
    InRange<f64>: |this, py| Some(this.0.into_pyobject(py)?.into_any());
    Sizes: |this, py| Some(PyTuple::new(py, &this.0)?.into_any());
    DeviceArgument: |_this, _py| None;
    DTypeArgument: |_this, _py| None;
    &Bound<'_, PyGenerator>: |this, py| Some(this.as_any().clone().unbind().into_bound(py));
    &Bound<'_, PyInitializer>: |this, py| match this.get().0.compute_dtype() {
        Some(dtype) => Some(PyString::new(py, dtype.name()).into_any()),
        None => Some(py.None().into_bound(py)),
    };
    (InRange<f64>, InRange<f64>): |this, py| Some((this.0.0, this.1.0).into_pyobject(py)?.into_any());
    (InRange<f64>, InRange<f64>, InRange<f64>): |this, py| Some((this.0.0, this.1.0, this.2.0).into_pyobject(py)?.into_any());
    (Option<InRange<f64>>, InRange<f64>): |this, py| Some((this.0.map(|eps| eps.0), this.1.0).into_pyobject(py)?.into_any());
}

impl<T: Recorded> Recorded for Option<T> {
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.as_ref().map_or_else(|| Ok(Some(py.None().into_bound(py))), |argument| argument.record(py))
    }
}

/// Returns arguments by name as a dict.
macro_rules! arguments {
    ($py:expr $(, $argument:ident)* $(,)?) => {{
        let recorded = pyo3::types::PyDict::new($py);
        $(if let Some(value) = crate::nn::pickle::Recorded::record(&$argument, $py)? {
            recorded.set_item(stringify!($argument), value)?;
        })*
        recorded
    }};
}
pub(super) use arguments;

/// Returns the class of a module's name and its own.
fn class_of_path<'py>(py: Python<'py>, module: &str, name: &str) -> Result<Bound<'py, PyType>> {
    let find = || -> PyResult<Bound<'py, PyAny>> {
        let mut found = py.import(module)?.into_any();
        for part in name.split('.') {
            found = found.getattr(part)?;
        }
        Ok(found)
    };
    let refused = |reason: String| {
        let found = format!("the class {module}.{name}, which cannot be imported: {reason}");
        invalid(
            "pickle",
            found,
            "a class at the top level of a module of Python that this process can import",
        )
    };
    let found = find().map_err(|error| refused(error.to_string()))?;
    Ok(found.cast_into::<PyType>().map_err(|error| refused(error.to_string()))?)
}

/// Returns the names by which the class of an object is imported.
///
/// # Errors
///
/// An invalid argument with the name of a class that cannot be imported, such as one within a function.
fn path_of_class(object: &Bound<'_, PyAny>) -> Result<(String, String)> {
    let class = object.get_type();
    let module: String = class.getattr("__module__")?.extract()?;
    let name: String = class.getattr("__qualname__")?.extract()?;
    if !class_of_path(object.py(), &module, &name)?.is(&class) {
        let found = format!("the class {module}.{name}, whose name is now that of another one");
        return Err(invalid("pickle", found, "a class that is found by its name").into());
    }
    Ok((module, name))
}

/// Copies a value with `copy.deepcopy`.
fn deep<'py>(value: &Bound<'py, PyAny>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    value.py().import("copy")?.getattr("deepcopy")?.call1((value, memo))
}

/// Notes a copy, so that `copy.deepcopy` finds it where the object occurs again.
fn note(memo: &Bound<'_, PyAny>, object: &Bound<'_, PyAny>, copy: &Bound<'_, PyAny>) -> PyResult<()> {
    memo.set_item(object.as_ptr() as usize, copy)
}

/// Returns a copy of the elements, which shares none with the variable's.
fn elements(py: Python<'_>, variable: &Variable) -> Result<PyTensor> {
    if !variable.is_leaf() {
        let found = "a variable that recorded operations made";
        return Err(invalid("pickle", found, "x.detach(), or a variable without operations").into());
    }
    Ok(py.detach(|| variable.tensor().copy())?.into())
}

#[pymethods]
impl PyVariable {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Reduced<'py>> {
        let (py, variable) = (slf.py(), &slf.get().0);
        let arguments = (elements(py, variable)?, variable.requires_grad()).into_pyobject(py)?;
        Ok((slf.get_type().into_any(), arguments, None))
    }
}

#[pymethods]
impl PyBuffer {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Reduced<'py>> {
        let py = slf.py();
        let arguments = (elements(py, &slf.as_super().get().0)?,).into_pyobject(py)?;
        Ok((slf.get_type().into_any(), arguments, None))
    }
}

#[pymethods]
impl PyParameter {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Reduced<'py>> {
        let py = slf.py();
        match slf.get().owner(py) {
            Some((module, name)) => {
                let arguments = (module, name).into_pyobject(py)?;
                Ok((py.get_type::<PyNnModule>().getattr("_member")?, arguments, None))
            }
            None => PyVariable::__reduce__(slf.as_super()),
        }
    }
}

impl PyNnModule {
    /// Returns the class, the arguments and the tensors of the layer.
    fn layer_state<'py>(slf: &Bound<'py, Self>) -> Result<Option<Bound<'py, PyDict>>> {
        let py = slf.py();
        let Some((layer, origin)) = slf.get().layer_and_origin() else { return Ok(None) };
        let module = ObjectModule::of_layer(slf, &layer);
        let tensors = py.detach(|| selvedge::nn::Module::state_dict(&module));
        let state = PyDict::new(py);
        if let Some((_, parameter)) = selvedge::nn::Module::named_parameters(&module).first() {
            state.set_item("device", parameter.device().to_string())?;
            state.set_item("dtype", parameter.dtype().name())?;
        }
        state.set_item("class", origin.class.bind(py))?;
        state.set_item("arguments", origin.arguments.bind(py))?;
        state.set_item("tensors", dict_of(py, tensors)?)?;
        Ok(Some(state))
    }

    /// Makes the layer of a state.
    fn set_layer_state(slf: &Bound<'_, Self>, state: &Bound<'_, PyAny>) -> Result<()> {
        let py = slf.py();
        let arguments = state.get_item("arguments")?.cast_into::<PyDict>().map_err(PyErr::from)?.copy()?;
        if let Some(compute_dtype) = arguments.get_item("initializer")? {
            let device = state.get_item("device")?.extract::<DeviceArgument>()?;
            let dtype = state.get_item("dtype")?.extract::<DTypeArgument>()?;
            let compute_dtype = compute_dtype.extract::<Option<DTypeArgument>>()?;
            let initializer = PyInitializer::restored(device, dtype, compute_dtype);
            arguments.set_item("initializer", Bound::new(py, initializer)?)?;
        }
        state.get_item("class")?.getattr("__init__")?.call((slf,), Some(&arguments))?;
        let Some((layer, _)) = slf.get().layer_and_origin() else { return Ok(()) };
        let (mut module, tensors) =
            (ObjectModule::of_layer(slf, &layer), entries_of(&state.get_item("tensors")?)?);
        Ok(py.detach(|| selvedge::nn::Module::load_state_dict(&mut module, &tensors))?)
    }
}

#[pymethods]
impl PyNnModule {
    /// Makes a module of a class without a state.
    #[classmethod]
    fn _restore<'py>(_class: &Bound<'py, PyType>, module: &str, name: &str) -> Result<Bound<'py, PyAny>> {
        let class = class_of_path(_class.py(), module, name)?;
        Ok(class.call_method1("__new__", (&class,))?)
    }

    /// Returns a parameter or a buffer of a module.
    #[classmethod]
    fn _member<'py>(
        _class: &Bound<'py, PyType>,
        module: &Bound<'py, PyNnModule>,
        name: &str,
    ) -> Result<Bound<'py, PyAny>> {
        let missing =
            || invalid("pickle", format!("no parameter '{name}' in the module"), "one of its parameters");
        let mut found = PyNnModule::named_parameters(module)?.into_iter();
        Ok(found.find(|(known, _)| known == name).ok_or_else(missing)?.1)
    }

    /// The attributes, and the mode, the hooks and the layer.
    fn __getstate__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let (py, module) = (slf.py(), slf.get());
        let attributes = slf.getattr("__dict__")?.cast_into::<PyDict>().map_err(PyErr::from)?.copy()?;
        let native = PyDict::new(py);
        native.set_item("training", module.is_in_training())?;
        native.set_item("hooks", module.hook_list(py))?;
        native.set_item("layer", PyNnModule::layer_state(slf)?)?;
        Ok((attributes, native))
    }

    /// Sets what `__getstate__` returns, or a dict of attributes alone.
    fn __setstate__(slf: &Bound<'_, Self>, state: &Bound<'_, PyAny>) -> Result<()> {
        let (attributes, native) = match state.cast::<PyTuple>() {
            Ok(both) => (both.get_item(0)?, Some(both.get_item(1)?)),
            Err(_) => (state.clone(), None),
        };
        slf.getattr("__dict__")?.call_method1("update", (attributes,))?;
        let Some(native) = native else { return Ok(()) };
        let layer = native.get_item("layer")?;
        if !layer.is_none() {
            PyNnModule::set_layer_state(slf, &layer)?;
        }
        slf.get().set_mode(slf.py(), native.get_item("training")?.extract()?);
        slf.get().set_hooks(native.get_item("hooks")?.extract()?);
        Ok(())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Reduced<'py>> {
        let py = slf.py();
        let path = path_of_class(slf.as_any())?.into_pyobject(py)?;
        let state = slf.call_method0("__getstate__")?;
        Ok((py.get_type::<PyNnModule>().getattr("_restore")?, path, Some(state)))
    }

    /// A module whose attributes and layer are those of this one.
    pub fn __copy__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let class = slf.get_type();
        let copy = class.call_method1("__new__", (&class,))?;
        copy.getattr("__dict__")?.call_method1("update", (slf.getattr("__dict__")?,))?;
        copy.cast::<PyNnModule>()?.get().share(slf.get(), slf.py());
        Ok(copy)
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let class = slf.get_type();
        let copy = class.call_method1("__new__", (&class,))?;
        note(memo, slf.as_any(), &copy)?;
        copy.call_method1("__setstate__", (deep(&slf.call_method0("__getstate__")?, memo)?,))?;
        Ok(copy)
    }
}

impl PyOptimizer {
    /// Returns the class of the library, the parameters and the options, which make an optimizer without a state.
    fn creation<'py>(
        slf: &Bound<'py, Self>,
    ) -> Result<(Bound<'py, PyType>, Bound<'py, PyAny>, Bound<'py, PyDict>)> {
        let (py, optimizer) = (slf.py(), slf.get());
        let class = native_class(slf.as_any())?;
        Ok((class, optimizer.source(py)?, optimizer.options(py)))
    }
}

/// Returns the first class of an object's that the library made.
fn native_class<'py>(object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyType>> {
    for class in object.get_type().mro().iter() {
        if class.getattr("__module__")?.extract::<String>()? == "selvedge.nn" {
            return Ok(class.cast_into::<PyType>().map_err(PyErr::from)?);
        }
    }
    Err(invalid("pickle", "an optimizer of no class of selvedge.nn", "a subclass of one").into())
}

#[pymethods]
impl PyOptimizer {
    /// Makes an optimizer of a class, without a state.
    #[classmethod]
    fn _restore<'py>(
        _class: &Bound<'py, PyType>,
        module: &str,
        name: &str,
        native: &Bound<'py, PyType>,
        params: &Bound<'py, PyAny>,
        options: &Bound<'py, PyDict>,
    ) -> Result<Bound<'py, PyAny>> {
        let class = class_of_path(_class.py(), module, name)?;
        Ok(native.getattr("__new__")?.call((class, params), Some(options))?)
    }

    /// The states of the parameters, and the attributes of an object of a subclass.
    fn __getstate__<'py>(slf: &Bound<'py, Self>) -> Result<(Option<Bound<'py, PyAny>>, Bound<'py, PyDict>)> {
        let attributes = slf.getattr("__dict__").ok();
        Ok((attributes, slf.get().state_dict(slf.py())?))
    }

    /// Sets what `__getstate__` returns.
    fn __setstate__(
        slf: &Bound<'_, Self>,
        state: (Option<Bound<'_, PyAny>>, Bound<'_, PyAny>),
    ) -> Result<()> {
        if let Some(attributes) = state.0 {
            slf.getattr("__dict__")?.call_method1("update", (attributes,))?;
        }
        slf.get().load_state_dict(slf.py(), &state.1)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Reduced<'py>> {
        let py = slf.py();
        let (module, name) = path_of_class(slf.as_any())?;
        let (native, params, options) = PyOptimizer::creation(slf)?;
        let arguments = (module, name, native, params, options).into_pyobject(py)?;
        let state = slf.call_method0("__getstate__")?;
        Ok((py.get_type::<PyOptimizer>().getattr("_restore")?, arguments, Some(state)))
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let (native, params, options) = PyOptimizer::creation(slf)?;
        let params = deep(&params, memo)?;
        // The second optimizer of a pair is an option.
        let options = deep(&options, memo)?.cast_into::<PyDict>().map_err(PyErr::from)?;
        let copy = native.getattr("__new__")?.call((slf.get_type(), params), Some(&options))?;
        note(memo, slf.as_any(), &copy)?;
        copy.call_method1("__setstate__", (deep(&slf.call_method0("__getstate__")?, memo)?,))?;
        Ok(copy)
    }
}

impl Origin {
    /// Returns the class and the arguments of a layer.
    pub fn new(class: &Bound<'_, PyType>, arguments: &Bound<'_, PyDict>) -> Origin {
        Origin { class: class.clone().unbind(), arguments: arguments.clone().unbind() }
    }
}
