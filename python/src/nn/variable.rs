//! `selvedge.nn.Variable`, `Parameter` and `Buffer`: their constructors, properties, conversions and the backward.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyWeakrefMethods, PyWeakrefReference};
use selvedge::fuse::Number;
use selvedge::nn::{Variable, VariableOperand, no_grad};
use selvedge::{DType, Tensor};

use crate::arguments::{DTypeArgument, DeviceArgument, TensorArgument, number_or_item};
use crate::device::PyDevice;
use crate::dtype::PyDType;
use crate::error::{Failure, Result, invalid, type_name, wrong_type};
use crate::tensor::{PyTensor, new_tensor};

/// A tensor that takes part in automatic differentiation.
///
/// `Variable(data, requires_grad=False)` takes what `Tensor` takes; a tensor shares its elements. Operations have the names and the rules of
/// `Tensor`'s, and the other operand is a variable, a tensor, an array or a number.
///
/// >>> x = sv.nn.Variable([1.0, 2.0], requires_grad=True)
/// >>> (3 * x ** 2).sum().backward()
/// >>> x.grad.tolist()
/// [6.0, 12.0]
#[pyclass(name = "Variable", module = "selvedge.nn", frozen, subclass)]
pub struct PyVariable(pub Variable);

/// A variable that a module holds as an attribute, and that optimizers change: `Parameter(data, requires_grad=True)`.
#[pyclass(name = "Parameter", module = "selvedge.nn", frozen, extends = PyVariable, subclass)]
pub struct PyParameter {
    /// The module whose layer holds it, and its name there.
    owner: Option<(Py<PyWeakrefReference>, String)>,
}

impl PyParameter {
    /// Returns the module whose layer holds the parameter, and its name there.
    pub fn owner<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyAny>, &str)> {
        let (module, name) = self.owner.as_ref()?;
        module.bind(py).upgrade().map(|module| (module, name.as_str()))
    }
}

/// A variable without a gradient that belongs to the state of the module whose attribute it is: `Buffer(data)`.
#[pyclass(name = "Buffer", module = "selvedge.nn", frozen, extends = PyVariable, subclass)]
pub struct PyBuffer;

impl From<Variable> for PyVariable {
    fn from(variable: Variable) -> PyVariable {
        PyVariable(variable)
    }
}

/// Returns a variable as an object of the class `Parameter`.
pub fn parameter(py: Python<'_>, variable: Variable) -> PyResult<Bound<'_, PyParameter>> {
    Bound::new(py, PyClassInitializer::from(PyVariable(variable)).add_subclass(PyParameter { owner: None }))
}

/// Returns a variable of a module's layer as an object of the class `Parameter`.
pub fn parameter_of<'py>(
    py: Python<'py>,
    variable: Variable,
    module: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Bound<'py, PyParameter>> {
    let owner = Some((PyWeakrefReference::new(module)?.unbind(), name.to_owned()));
    Bound::new(py, PyClassInitializer::from(PyVariable(variable)).add_subclass(PyParameter { owner }))
}

/// Returns a variable as an object of the class `Buffer`.
pub fn buffer(py: Python<'_>, variable: Variable) -> PyResult<Bound<'_, PyBuffer>> {
    Bound::new(py, PyClassInitializer::from(PyVariable(variable)).add_subclass(PyBuffer))
}

/// Creates a variable of what `Tensor` takes.
fn new_variable(
    data: &Bound<'_, PyAny>,
    requires_grad: bool,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
) -> Result<PyVariable> {
    let (dtype, device) = (dtype.map(|dtype| dtype.0), device.map(|device| device.0));
    let tensor = match data.cast::<PyVariable>() {
        Ok(variable) => {
            let tensor = variable.get().0.tensor();
            let tensor = device.map_or_else(|| Ok(tensor.clone()), |device| tensor.to(&device))?;
            dtype.map_or_else(|| Ok(tensor.clone()), |dtype| tensor.cast(dtype))?
        }
        Err(_) => new_tensor(data, dtype, device)?,
    };
    Ok(PyVariable(if requires_grad { Variable::with_grad(tensor)? } else { Variable::new(tensor) }))
}

#[pymethods]
impl PyParameter {
    #[new]
    #[pyo3(signature = (data, requires_grad=true, *, dtype=None, device=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        requires_grad: bool,
        dtype: Option<DTypeArgument>,
        device: Option<DeviceArgument>,
    ) -> Result<PyClassInitializer<PyParameter>> {
        let variable = new_variable(data, requires_grad, dtype, device)?;
        Ok(PyClassInitializer::from(variable).add_subclass(PyParameter { owner: None }))
    }
}

#[pymethods]
impl PyBuffer {
    #[new]
    #[pyo3(signature = (data, *, dtype=None, device=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        dtype: Option<DTypeArgument>,
        device: Option<DeviceArgument>,
    ) -> Result<PyClassInitializer<PyBuffer>> {
        let variable = new_variable(data, false, dtype, device)?;
        Ok(PyClassInitializer::from(variable).add_subclass(PyBuffer))
    }
}

/// A variable, a tensor or an array.
pub struct VariableArgument(pub Variable);

impl<'a, 'py> FromPyObject<'a, 'py> for VariableArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match VariableArgument::of(&object).map_err(PyErr::from)? {
            Some(variable) => Ok(VariableArgument(variable)),
            None => {
                let wanted = "a selvedge.nn.Variable, a selvedge.Tensor or an array";
                Err(Failure::from(wrong_type("a variable", type_name(&object), wanted)).into())
            }
        }
    }
}

impl VariableArgument {
    fn of(object: &Bound<'_, PyAny>) -> Result<Option<Variable>> {
        if let Ok(variable) = object.cast::<PyVariable>() {
            return Ok(Some(variable.get().0.clone()));
        }
        Ok(TensorArgument::of(object)?.map(Variable::new))
    }
}

/// A tensor of indices or of bools: a variable's, a tensor or an array.
pub struct IndexArgument(pub Tensor);

impl<'a, 'py> FromPyObject<'a, 'py> for IndexArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(IndexArgument(object.extract::<VariableArgument>()?.0.tensor()))
    }
}

/// A variable, a tensor, an array or a number.
pub enum OperandArgument {
    Variable(Variable),
    Number(Number),
}

impl OperandArgument {
    pub fn operand(&self) -> VariableOperand<'_> {
        match self {
            OperandArgument::Variable(variable) => variable.into(),
            OperandArgument::Number(number) => VariableOperand::Number(*number),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for OperandArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(variable) = object.cast::<PyVariable>() {
            return Ok(OperandArgument::Variable(variable.get().0.clone()));
        }
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(OperandArgument::Variable(Variable::new(tensor.get().tensor(object.py()))));
        }
        if let Some(number) = number_or_item(&object).map_err(PyErr::from)? {
            return Ok(OperandArgument::Number(number));
        }
        object.extract::<VariableArgument>().map(|variable| OperandArgument::Variable(variable.0))
    }
}

impl PyVariable {
    /// Computes a result while other threads of Python run.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Variable) -> selvedge::Result<T> + Send,
    ) -> Result<T> {
        Ok(py.detach(|| work(&self.0))?)
    }

    /// Computes a variable while other threads of Python run.
    pub fn map(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Variable) -> selvedge::Result<Variable> + Send,
    ) -> Result<PyVariable> {
        self.run(py, work).map(PyVariable)
    }

    /// Returns the value as an object of `Tensor`.
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        Bound::new(py, PyTensor::from(self.0.tensor()))
    }
}

#[pymethods]
impl PyVariable {
    #[new]
    #[pyo3(signature = (data, requires_grad=false, *, dtype=None, device=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        requires_grad: bool,
        dtype: Option<DTypeArgument>,
        device: Option<DeviceArgument>,
    ) -> Result<PyVariable> {
        new_variable(data, requires_grad, dtype, device)
    }

    /// Operators with an array of NumPy on the left are those of the variable.
    #[classattr]
    #[pyo3(name = "__array_ufunc__")]
    fn array_ufunc() -> Option<bool> {
        None
    }

    /// The tensor, which shares the elements.
    #[getter]
    fn data(&self) -> PyTensor {
        self.0.tensor().into()
    }

    /// The sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, self.0.shape().iter().copied())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.shape().rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.0.tensor().count()
    }

    /// The dtype of the elements.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.0.dtype())
    }

    /// The device of the elements.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.0.device())
    }

    /// True if operations on the variable are recorded.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.0.requires_grad()
    }

    /// True if no recorded operation made the variable.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.0.is_leaf()
    }

    /// The sum of the gradients that backwards have computed, None before the first one and for variables other than leaves. Setting it to
    /// None removes it.
    #[getter]
    fn grad(&self) -> Option<PyTensor> {
        self.0.grad().map(PyTensor::from)
    }

    #[setter]
    fn set_grad(&self, gradient: &Bound<'_, PyAny>) -> Result<()> {
        if !gradient.is_none() {
            return Err(wrong_type("grad", type_name(gradient), "None, which removes the gradient").into());
        }
        self.0.zero_grad();
        Ok(())
    }

    /// Removes the gradient.
    fn zero_grad(&self) {
        self.0.zero_grad();
    }

    /// A constant with the same value.
    fn detach(&self) -> PyVariable {
        PyVariable(self.0.detach())
    }

    /// Computes the gradients with respect to all leaves, and adds them to their `grad`. Without a gradient the variable has one element.
    ///
    /// Frees the saved values unless `retain_graph` is true: a second backward through them is an error.
    #[pyo3(signature = (gradient=None, retain_graph=false))]
    fn backward(&self, py: Python<'_>, gradient: Option<IndexArgument>, retain_graph: bool) -> Result<()> {
        self.run(py, |variable| match (gradient, retain_graph) {
            (gradient, true) => variable.backward_retain_graph(gradient.as_ref().map(|gradient| &gradient.0)),
            (Some(gradient), false) => variable.backward_with(&gradient.0),
            (None, false) => variable.backward(),
        })
    }

    /// Sets the elements to those of another tensor of the same shape, and returns the variable. One that requires a gradient is changed
    /// within `no_grad`.
    fn copy_<'py>(slf: Bound<'py, Self>, other: IndexArgument) -> Result<Bound<'py, Self>> {
        let variable = &slf.get().0;
        slf.py().detach(|| {
            let tensor = other.0.to(&variable.device())?.cast(variable.dtype())?;
            variable.update(|elements| elements.assign(&tensor).map(|_| ()))
        })?;
        Ok(slf)
    }

    /// The variable in another dtype. The gradient is cast back.
    fn cast(&self, py: Python<'_>, dtype: DTypeArgument) -> Result<PyVariable> {
        self.map(py, |variable| variable.cast(dtype.0))
    }

    /// The variable on another device or in another dtype. The gradient is copied back.
    #[pyo3(signature = (target=None, *, device=None, dtype=None))]
    fn to(
        &self,
        py: Python<'_>,
        target: Option<&Bound<'_, PyAny>>,
        device: Option<DeviceArgument>,
        dtype: Option<DTypeArgument>,
    ) -> Result<PyVariable> {
        let (mut device, mut dtype) = (device, dtype);
        if let Some(target) = target {
            match target.extract::<DTypeArgument>() {
                Ok(found) if dtype.is_none() => dtype = Some(found),
                Ok(_) => return Err(invalid("to", "two dtypes", "one of them").into()),
                Err(_) if device.is_some() => return Err(invalid("to", "two devices", "one of them").into()),
                Err(_) => device = Some(target.extract()?),
            }
        }
        self.map(py, |variable| {
            let moved = device.map_or_else(|| Ok(variable.clone()), |device| variable.to(&device.0))?;
            dtype.map_or_else(|| Ok(moved.clone()), |dtype| moved.cast(dtype.0))
        })
    }

    /// A NumPy array with a copy of the elements.
    fn numpy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        crate::buffer::to_numpy(py, &self.0.tensor())
    }

    /// The elements as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.object(py)?.call_method0("tolist")
    }

    /// The only element as a number of Python.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.object(py)?.call_method0("item")
    }

    /// The number of elements.
    fn numel(&self) -> usize {
        self.0.tensor().count()
    }

    /// The number of dimensions.
    fn dim(&self) -> usize {
        self.0.shape().rank()
    }

    fn __bool__(&self, py: Python<'_>) -> Result<bool> {
        let tensor = self.0.tensor();
        if tensor.count() != 1 {
            let found = format!("a variable of {} elements", tensor.count());
            return Err(invalid("the truth of a variable", found, "one element").into());
        }
        Ok(py.detach(|| tensor.cast(DType::Bool)?.reshape(&[])?.item::<bool>())?)
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<PyFloat>().call1((self.item(py)?,))
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<PyInt>().call1((self.item(py)?,))
    }

    fn __len__(&self) -> Result<usize> {
        let wanted = || wrong_type("len()", "a variable without dimensions", "one with dimensions").into();
        self.0.shape().first().copied().ok_or_else(wanted)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.object(py)?.call_method1("__array__", (dtype, copy.map(|copy| PyBool::new(py, copy).to_owned())))
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // Objects lie at multiples of 16.
        (slf.as_ptr().addr() >> 4) as isize
    }

    fn __format__<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyAny>> {
        self.object(py)?.call_method1("__format__", (format,))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> Result<String> {
        let (py, variable) = (slf.py(), &slf.get().0);
        let tensor = variable.tensor();
        let text = py.detach(|| tensor.to_string());
        let class = type_name(slf.as_any());
        let gradient = if variable.requires_grad() { ", requires_grad=True" } else { "" };
        Ok(format!("{class}({text}{gradient})"))
    }
}

/// The gradients of a variable of one element, or of any shape with `grad_output`, with respect to inputs, whose `grad` stays as it is.
///
/// With `create_graph` they are recorded, so that gradients of gradients of any order exist; without it they are constants.
///
/// >>> x = sv.nn.Variable([1.0, 2.0], requires_grad=True)
/// >>> first, = sv.nn.grad((x ** 3).sum(), [x], create_graph=True)
/// >>> second, = sv.nn.grad(first.sum(), [x])
/// >>> second.tolist()
/// [6.0, 12.0]
#[pyfunction]
#[pyo3(signature = (output, inputs, grad_output=None, *, create_graph=false))]
pub fn grad(
    py: Python<'_>,
    output: &Bound<'_, PyVariable>,
    inputs: &Bound<'_, PyAny>,
    grad_output: Option<VariableArgument>,
    create_graph: bool,
) -> Result<Vec<PyVariable>> {
    let output = &output.get().0;
    let inputs = variables("inputs", inputs)?;
    let inputs: Vec<&Variable> = inputs.iter().collect();
    let work = || match &grad_output {
        Some(gradient) => output.gradients_with(&gradient.0, &inputs),
        None => output.gradients(&inputs),
    };
    let found = py.detach(|| if create_graph { work() } else { no_grad(work) })?;
    Ok(found.into_iter().map(PyVariable).collect())
}

/// Returns one variable, or those of an iterable.
pub fn variables(argument: &'static str, object: &Bound<'_, PyAny>) -> Result<Vec<Variable>> {
    if let Ok(variable) = object.cast::<PyVariable>() {
        return Ok(vec![variable.get().0.clone()]);
    }
    let wanted = |found: &Bound<'_, PyAny>| {
        wrong_type(argument, type_name(found), "a selvedge.nn.Variable, or a list of them")
    };
    let mut all = Vec::new();
    for item in object.try_iter().map_err(|_| wanted(object))? {
        let item = item?;
        all.push(item.cast::<PyVariable>().map_err(|_| wanted(&item))?.get().0.clone());
    }
    Ok(all)
}
