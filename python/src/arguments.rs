//! Arguments: dtypes, numbers, axes, sizes, tensors and operands as Python passes them.

use num_complex::Complex;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use selvedge::fuse::Number;
use selvedge::tensor::{Axes, TensorOperand};
use selvedge::{DType, Device, Tensor};

use crate::buffer;
use crate::device::PyDevice;
use crate::dtype::PyDType;
use crate::error::{Failure, Result, invalid, type_name, wrong_type};
use crate::tensor::PyTensor;

/// Takes a value from an object, with the library's errors.
macro_rules! extracted {
    ($type:ty, |$object:ident| $body:expr) => {
        impl<'a, 'py> FromPyObject<'a, 'py> for $type {
            type Error = PyErr;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                let work = |$object: &Bound<'py, PyAny>| -> Result<$type> { $body };
                work(&object).map_err(PyErr::from)
            }
        }
    };
}

/// A dtype: a `selvedge.DType`, a name such as `"f32"` or `"float32"`, a type of Python, or one of NumPy.
#[derive(Clone, Copy)]
pub struct DTypeArgument(pub DType);

extracted!(DTypeArgument, |object| {
    if let Ok(dtype) = object.cast::<PyDType>() {
        return Ok(DTypeArgument(dtype.get().0));
    }
    let py = object.py();
    let is = |known: Bound<'_, PyType>| object.is(&known);
    let of_python = match () {
        () if is(py.get_type::<PyBool>()) => Some(DType::Bool),
        () if is(py.get_type::<PyInt>()) => Some(DType::I64),
        () if is(py.get_type::<PyFloat>()) => Some(DType::F64),
        () if is(py.get_type::<PyComplex>()) => Some(DType::C128),
        () => None,
    };
    if let Some(dtype) = of_python {
        return Ok(DTypeArgument(dtype));
    }
    let name = match object.cast::<PyString>() {
        Ok(name) => Ok(name.to_string()),
        Err(_) => ["name", "__name__"]
            .iter()
            .find_map(|attribute| object.getattr(*attribute).ok()?.extract::<String>().ok())
            .ok_or_else(|| wrong_type("dtype", type_name(object), wanted_dtype(object))),
    };
    Ok(DTypeArgument(name?.parse()?))
});

fn wanted_dtype(object: &Bound<'_, PyAny>) -> &'static str {
    match object.is_instance_of::<PyInt>() {
        true => "a dtype, or the name of one; several sizes are one argument, such as (2, 3)",
        false => "a dtype, or the name of one",
    }
}

/// A device: a `selvedge.Device`, or a name such as `"cpu"` or `"cuda:0"`.
pub struct DeviceArgument(pub Device);

extracted!(DeviceArgument, |object| {
    if let Ok(device) = object.cast::<PyDevice>() {
        return Ok(DeviceArgument(device.get().0));
    }
    match object.cast::<PyString>() {
        Ok(name) => Ok(DeviceArgument(name.to_string().parse()?)),
        Err(_) => Err(wrong_type("device", type_name(object), "a device, or the name of one").into()),
    }
});

/// Returns the number that an object is, `None` if it is no number.
fn number(object: &Bound<'_, PyAny>) -> Result<Option<Number>> {
    if object.is_instance_of::<PyFloat>() {
        return Ok(Some(Number::Real(object.extract()?)));
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Some(Number::Bool(object.extract()?)));
    }
    if object.is_instance_of::<PyInt>() {
        return match object.extract::<i64>() {
            Ok(number) => Ok(Some(Number::Integer(number.into()))),
            Err(_) => object
                .extract::<u64>()
                .map(|number| Some(Number::Integer(number.into())))
                .map_err(|_| invalid("a number", text(object), "an integer of at most 64 bits").into()),
        };
    }
    if object.is_instance_of::<PyComplex>() {
        return Ok(Some(Number::Complex(object.extract::<Complex<f64>>()?)));
    }
    Ok(None)
}

/// Returns the number that an object is or that its `item()` returns, as for NumPy's scalars.
pub fn number_or_item(object: &Bound<'_, PyAny>) -> Result<Option<Number>> {
    if let Some(found) = number(object)? {
        return Ok(Some(found));
    }
    let is_scalar =
        object.getattr("ndim").and_then(|rank| rank.extract::<usize>()).is_ok_and(|rank| rank == 0);
    match object.call_method0("item") {
        Ok(item) if is_scalar => number(&item),
        _ => Ok(None),
    }
}

/// A number.
#[derive(Clone, Copy)]
pub struct NumberArgument(pub Number);

extracted!(NumberArgument, |object| {
    let wanted = || wrong_type("a number", type_name(object), "an int, float, complex number or bool").into();
    number_or_item(object)?.map(NumberArgument).ok_or_else(wanted)
});

/// A tensor, or an array with a buffer, which is copied to the CPU.
pub struct TensorArgument(pub Tensor);

impl TensorArgument {
    pub fn of(object: &Bound<'_, PyAny>) -> Result<Option<Tensor>> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(Some(tensor.get().tensor(object.py())));
        }
        buffer::tensor(object, &Device::cpu())
    }
}

extracted!(TensorArgument, |object| {
    let wanted = || wrong_type("a tensor", type_name(object), "a selvedge.Tensor or an array").into();
    TensorArgument::of(object)?.map(TensorArgument).ok_or_else(wanted)
});

/// A tensor, an array or a number.
#[allow(clippy::large_enum_variant, reason = "it lives for the time of a call")]
pub enum Operand {
    Tensor(Tensor),
    Number(Number),
}

impl Operand {
    pub fn operand(&self) -> TensorOperand<'_> {
        match self {
            Operand::Tensor(tensor) => tensor.into(),
            Operand::Number(number) => (*number).into(),
        }
    }
}

extracted!(Operand, |object| {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(Operand::Tensor(tensor.get().tensor(object.py())));
    }
    if let Some(number) = number_or_item(object)? {
        return Ok(Operand::Number(number));
    }
    let wanted =
        || wrong_type("an operand", type_name(object), "a selvedge.Tensor, an array or a number").into();
    TensorArgument::of(object)?.map(Operand::Tensor).ok_or_else(wanted)
});

/// The axes of a reduction: None for all, one axis, or several.
pub enum AxesArgument {
    All,
    Of(Vec<isize>),
}

impl AxesArgument {
    pub fn axes(&self) -> Axes<'_> {
        match self {
            AxesArgument::All => Axes::All,
            AxesArgument::Of(axes) => Axes::Of(axes),
        }
    }
}

extracted!(AxesArgument, |object| {
    if object.is_none() {
        return Ok(AxesArgument::All);
    }
    integers("axis", object).map(AxesArgument::Of)
});

/// Returns one integer, or those of a list or tuple.
fn integers(argument: &'static str, object: &Bound<'_, PyAny>) -> Result<Vec<isize>> {
    let one = |object: &Bound<'_, PyAny>| -> Result<isize> {
        object.extract::<isize>().map_err(|error| {
            match error.is_instance_of::<PyOverflowError>(object.py()) {
                true => invalid(argument, text(object), "integers of at most 64 bits").into(),
                false => wrong_type(argument, type_name(object), "integers").into(),
            }
        })
    };
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().map(|entry| one(&entry)).collect();
    }
    match object.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|entry| one(&entry)).collect(),
        Err(_) => Ok(vec![one(object)?]),
    }
}

/// Returns the text of an integer, for errors. Python writes no integer of more than 4300 digits.
pub fn text(object: &Bound<'_, PyAny>) -> String {
    object.str().map_or_else(|_| "an integer of thousands of digits".to_owned(), |text| text.to_string())
}

/// A number of Python that a type of Rust holds. Others are errors of the library.
#[derive(Clone, Copy)]
pub struct InRange<T>(pub T);

/// The numbers that a type holds, for errors.
pub trait Holds {
    fn wanted() -> String;
}

macro_rules! holds {
    ($($integer:ty)*) => {$(
        impl Holds for $integer {
            fn wanted() -> String {
                format!("an integer from {} to {}", <$integer>::MIN, <$integer>::MAX)
            }
        }
    )*};
}

holds! { isize usize i32 u32 i64 u64 i128 }

impl Holds for f32 {
    fn wanted() -> String {
        "a real number that f32 holds".to_owned()
    }
}

impl Holds for f64 {
    fn wanted() -> String {
        "a real number that f64 holds".to_owned()
    }
}

impl<'a, 'py, T: Holds + FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for InRange<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract::<T>().map(InRange).map_err(|error| {
            let error: PyErr = error.into();
            let py = object.py();
            if error.is_instance_of::<PyOverflowError>(py) {
                return Failure::from(invalid("a number", text(&object), T::wanted())).into();
            }
            match error.is_instance_of::<PyTypeError>(py) {
                true => Failure::from(wrong_type("a number", type_name(&object), T::wanted())).into(),
                false => error,
            }
        })
    }
}

/// Returns an argument that has two names, `None` if the caller gives neither.
pub fn either<T>(
    operation: &'static str,
    names: [&str; 2],
    first: Option<T>,
    second: Option<T>,
) -> Result<Option<T>> {
    match (first, second) {
        (Some(_), Some(_)) => {
            let [first, second] = names;
            Err(invalid(operation, format!("both {first} and {second}"), "one of them").into())
        }
        (first, second) => Ok(first.or(second)),
    }
}

/// Returns an argument that the caller must give.
pub fn given<T>(operation: &'static str, name: &str, argument: Option<T>) -> Result<T> {
    let missing = || wrong_type(operation, format!("no {name}"), format!("{name}=...")).into();
    argument.ok_or_else(missing)
}

/// Returns the axis by either of its names, or the one that is meant without it.
pub fn axis_or(
    operation: &'static str,
    axis: Option<InRange<isize>>,
    dim: Option<InRange<isize>>,
    default: isize,
) -> Result<isize> {
    Ok(either(operation, ["axis", "dim"], axis, dim)?.map_or(default, |axis| axis.0))
}

/// Returns the axis by either of its names.
pub fn given_axis(
    operation: &'static str,
    axis: Option<InRange<isize>>,
    dim: Option<InRange<isize>>,
) -> Result<isize> {
    Ok(given(operation, "axis", either(operation, ["axis", "dim"], axis, dim)?)?.0)
}

/// Returns the axes by either of their names, or all.
pub fn axes_or_all(
    operation: &'static str,
    axis: Option<AxesArgument>,
    dim: Option<AxesArgument>,
) -> Result<AxesArgument> {
    Ok(either(operation, ["axis", "dim"], axis, dim)?.unwrap_or(AxesArgument::All))
}

/// Integers: one, or a list or tuple of them.
pub struct Integers(pub Vec<isize>);

extracted!(Integers, |object| integers("integers", object).map(Integers));

/// Sizes of dimensions: one, or a list or tuple of them, none negative.
pub struct Sizes(pub Vec<usize>);

extracted!(Sizes, |object| {
    let size = |size: isize| {
        usize::try_from(size)
            .map_err(|_| invalid("shape", format!("a size of {size}"), "sizes from 0 on").into())
    };
    integers("shape", object)?.into_iter().map(size).collect::<Result<_>>().map(Sizes)
});

/// Integers that are passed one by one or as one list or tuple: `reshape(2, 3)` and `reshape((2, 3))`.
pub fn spread(arguments: &Bound<'_, PyTuple>) -> Result<Vec<isize>> {
    match arguments.len() {
        1 => integers("integers", &arguments.get_item(0)?),
        _ => integers("integers", arguments.as_any()),
    }
}

/// The arguments of a function of sizes, which are integers or one list or tuple, and then a dtype and others:
/// `zeros(2, 3)`, `zeros(2, 3, "f32")`, `zeros((2, 3), "f32", "cpu")`, `zeros(shape=(2, 3))`.
pub struct SizesAndOthers<'py> {
    operation: &'static str,
    shape: Option<Sizes>,
    others: std::vec::IntoIter<Bound<'py, PyAny>>,
}

impl<'py> SizesAndOthers<'py> {
    /// Divides positional arguments into sizes and others. `shape` is the argument of that name.
    pub fn new(
        operation: &'static str,
        arguments: &Bound<'py, PyTuple>,
        shape: Option<Sizes>,
    ) -> Result<SizesAndOthers<'py>> {
        let mut arguments: Vec<_> = arguments.iter().collect();
        if shape.is_some() || arguments.is_empty() {
            return Ok(SizesAndOthers { operation, shape, others: arguments.into_iter() });
        }
        // A tensor of one integer is a size; a dtype is none.
        let is_size = |argument: &Bound<'_, PyAny>| {
            argument.is_instance_of::<PyInt>() || argument.extract::<isize>().is_ok()
        };
        let sizes = match arguments.iter().take_while(|argument| is_size(argument)).count() {
            0 | 1 => arguments.remove(0).extract()?,
            count => {
                let sizes: Vec<_> = arguments.drain(..count).collect();
                PyTuple::new(sizes[0].py(), &sizes)?.extract()?
            }
        };
        Ok(SizesAndOthers { operation, shape: Some(sizes), others: arguments.into_iter() })
    }

    /// Returns the next of the other arguments: by its position, or `named`, which is the one with its name.
    pub fn next<T>(&mut self, name: &str, named: Option<T>) -> Result<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(argument) = self.others.next() else { return Ok(named) };
        if named.is_some() {
            return Err(wrong_type(self.operation, format!("{name} twice"), format!("one {name}")).into());
        }
        argument.extract::<Option<T>>().map_err(|error| Failure::from(error.into()))
    }

    /// Returns the sizes, `None` if there are none, after the others are taken.
    pub fn shape(mut self) -> Result<Option<Sizes>> {
        match self.others.next() {
            None => Ok(self.shape),
            Some(argument) => {
                let found = format!("another argument of type {}", type_name(&argument));
                Err(wrong_type(self.operation, found, "sizes first, then what its signature lists").into())
            }
        }
    }
}

impl From<pyo3::CastError<'_, '_>> for Failure {
    fn from(error: pyo3::CastError<'_, '_>) -> Failure {
        Failure::Python(error.into())
    }
}
