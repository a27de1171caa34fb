//! Functions that create or join tensors.

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use selvedge::fuse::{Number, Operation};
use selvedge::types::NumberKind;
use selvedge::{DType, Tensor};

use crate::arguments::{
    DTypeArgument, DeviceArgument, InRange, NumberArgument, Operand, Sizes, SizesAndOthers, TensorArgument,
    axis_or, given,
};
use crate::device::device_or_default;
use crate::dlpack;
use crate::error::{Result, invalid};
use crate::fuse::{self, PyExpression};
use crate::tensor::PyTensor;

/// The dtype of numbers made without one.
pub const DEFAULT: DType = DType::F32;

pub fn dtype_or_default(dtype: Option<DTypeArgument>) -> DType {
    dtype.map_or(DEFAULT, |dtype| dtype.0)
}

/// The dtype of a number that is given without one, as of a list of it.
fn dtype_of(number: Number) -> DType {
    match number.kind() {
        NumberKind::Bool => DType::Bool,
        NumberKind::Integer => DType::I64,
        NumberKind::Real => DEFAULT,
        NumberKind::Complex => DType::C64,
    }
}

macro_rules! of_shape {
    ($($name:ident $document:literal)*) => {$(
        #[doc = $document]
        #[pyfunction]
        #[pyo3(signature = (*sizes, shape=None, dtype=None, device=None), text_signature = "(*shape, dtype=None, device=None)")]
        pub fn $name(
            sizes: &Bound<'_, PyTuple>,
            shape: Option<Sizes>,
            dtype: Option<DTypeArgument>,
            device: Option<DeviceArgument>,
        ) -> Result<PyTensor> {
            let operation = stringify!($name);
            let mut arguments = SizesAndOthers::new(operation, sizes, shape)?;
            let dtype = dtype_or_default(arguments.next("dtype", dtype)?);
            let device = device_or_default(arguments.next("device", device)?);
            let shape = given(operation, "shape", arguments.shape()?)?;
            Ok(sizes.py().detach(|| Tensor::$name(&shape.0, dtype, &device))?.into())
        }
    )*};
}

of_shape! {
    zeros "A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`."
    ones "A tensor of ones: `ones(2, 3)` or `ones((2, 3))`."
    empty "A tensor whose elements are not set: `empty(2, 3)` or `empty((2, 3))`."
}

macro_rules! like {
    ($($name:ident $document:literal)*) => {$(
        #[doc = $document]
        #[pyfunction]
        pub fn $name(py: Python<'_>, tensor: TensorArgument) -> Result<PyTensor> {
            Ok(py.detach(|| tensor.0.$name())?.into())
        }
    )*};
}

like! {
    zeros_like "Zeros in the shape and dtype of a tensor, on its device."
    ones_like "Ones in the shape and dtype of a tensor, on its device."
    empty_like "Elements that are not set in the shape and dtype of a tensor, on its device."
    rand_like "Uniform random numbers in the shape and dtype of a tensor, on its device."
    randn_like "Normal random numbers in the shape and dtype of a tensor, on its device."
}

/// A tensor of one number.
#[pyfunction]
#[pyo3(signature = (shape, number, dtype=None, device=None))]
pub fn full(
    py: Python<'_>,
    shape: Sizes,
    number: NumberArgument,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
) -> Result<PyTensor> {
    let dtype = dtype.map_or(dtype_of(number.0), |dtype| dtype.0);
    let device = device_or_default(device);
    Ok(py.detach(|| Tensor::full(&shape.0, number.0, dtype, &device))?.into())
}

/// A number in the shape and dtype of a tensor, on its device.
#[pyfunction]
pub fn full_like(py: Python<'_>, tensor: TensorArgument, number: NumberArgument) -> Result<PyTensor> {
    Ok(py.detach(|| tensor.0.full_like(number.0))?.into())
}

/// The numbers from start to before end: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`.
#[pyfunction]
#[pyo3(signature = (*range, dtype=None, device=None))]
pub fn arange(
    range: &Bound<'_, PyTuple>,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
) -> Result<PyTensor> {
    let numbers =
        range.iter().map(|number| Ok(number.extract::<NumberArgument>()?.0)).collect::<Result<Vec<_>>>()?;
    let (zero, one) = (Number::Integer(0), Number::Integer(1));
    let [start, end, step] = match numbers[..] {
        [end] => [zero, end, one],
        [start, end] => [start, end, one],
        [start, end, step] => [start, end, step],
        _ => return Err(invalid("arange", format!("{} numbers", numbers.len()), "1, 2 or 3").into()),
    };
    let are_whole = [start, end, step].iter().all(|number| number.kind() == NumberKind::Integer);
    let default = if are_whole { DType::I64 } else { DEFAULT };
    let (dtype, device) = (dtype.map_or(default, |dtype| dtype.0), device_or_default(device));
    Ok(range.py().detach(|| Tensor::arange(start, end, step, dtype, &device))?.into())
}

/// Numbers from start to end, both included, at equal distances.
#[pyfunction]
#[pyo3(signature = (start, end, count, dtype=None, device=None))]
pub fn linspace(
    py: Python<'_>,
    start: InRange<f64>,
    end: InRange<f64>,
    count: InRange<usize>,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
) -> Result<PyTensor> {
    let (dtype, device) = (dtype_or_default(dtype), device_or_default(device));
    Ok(py.detach(|| Tensor::linspace(start.0, end.0, count.0, dtype, &device))?.into())
}

/// Powers of a base whose exponents are at equal distances from start to end, both included.
#[pyfunction]
#[pyo3(signature = (start, end, count, base=InRange(10.0), dtype=None, device=None), text_signature = "(start, end, count, base=10.0, dtype=None, device=None)")]
pub fn logspace(
    py: Python<'_>,
    start: InRange<f64>,
    end: InRange<f64>,
    count: InRange<usize>,
    base: InRange<f64>,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
) -> Result<PyTensor> {
    let (dtype, device) = (dtype_or_default(dtype), device_or_default(device));
    Ok(py.detach(|| Tensor::logspace(start.0, end.0, count.0, base.0, dtype, &device))?.into())
}

/// A matrix with ones on its diagonal.
#[pyfunction]
#[pyo3(signature = (rows, columns=None, dtype=None, device=None))]
pub fn eye(
    py: Python<'_>,
    rows: InRange<usize>,
    columns: Option<InRange<usize>>,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
) -> Result<PyTensor> {
    let (dtype, device) = (dtype_or_default(dtype), device_or_default(device));
    Ok(py.detach(|| Tensor::eye(rows.0, columns.unwrap_or(rows).0, dtype, &device))?.into())
}

/// A tensor of data, as `Tensor(data, dtype, device)`; a tensor itself if it is one already.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None))]
pub fn asarray(
    data: &Bound<'_, PyAny>,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
) -> Result<PyTensor> {
    PyTensor::new(data, dtype, device)
}

macro_rules! joined {
    ($($name:ident $document:literal)*) => {$(
        #[doc = $document]
        #[pyfunction]
        #[pyo3(signature = (tensors, axis=None, *, dim=None), text_signature = "(tensors, axis=0, *, dim=None)")]
        pub fn $name(
            py: Python<'_>,
            tensors: Vec<TensorArgument>,
            axis: Option<InRange<isize>>,
            dim: Option<InRange<isize>>,
        ) -> Result<PyTensor> {
            let axis = axis_or(stringify!($name), axis, dim, 0)?;
            let tensors: Vec<&Tensor> = tensors.iter().map(|tensor| &tensor.0).collect();
            Ok(py.detach(|| Tensor::$name(&tensors, axis))?.into())
        }
    )*};
}

joined! {
    cat "Tensors one after another along an axis."
    stack "Tensors of one shape along a new axis."
}

/// Tensors with the coordinates of a grid, one for each vector.
#[pyfunction]
pub fn meshgrid(py: Python<'_>, vectors: Vec<TensorArgument>) -> Result<Vec<PyTensor>> {
    let vectors: Vec<&Tensor> = vectors.iter().map(|tensor| &tensor.0).collect();
    Ok(py.detach(|| Tensor::meshgrid(&vectors))?.into_iter().map(PyTensor::from).collect())
}

/// Elements of `yes` if the condition is true, otherwise of `no`. Within a fused function it takes expressions.
#[pyfunction(name = "where")]
pub fn choose<'py>(
    py: Python<'py>,
    condition: &Bound<'py, PyAny>,
    yes: &Bound<'py, PyAny>,
    no: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    if [condition, yes, no].iter().any(|operand| operand.is_instance_of::<PyExpression>()) {
        let chosen = fuse::choose(&condition.extract()?, &yes.extract()?, &no.extract()?)?;
        return Ok(Bound::new(py, chosen)?.into_any());
    }
    let (condition, yes, no) =
        (condition.extract::<TensorArgument>()?, yes.extract::<Operand>()?, no.extract::<Operand>()?);
    let work =
        || selvedge::tensor::apply(Operation::Select, &[(&condition.0).into(), yes.operand(), no.operand()]);
    Ok(Bound::new(py, PyTensor::from(py.detach(work)?))?.into_any())
}

/// A tensor that shares the elements of an object with `__dlpack__`. It has a copy of them if `copy` is true, or if they are
/// on another device than the one that is named; with `copy=False` the latter is an error.
#[pyfunction]
#[pyo3(signature = (array, *, device=None, copy=None))]
pub fn from_dlpack(
    array: &Bound<'_, PyAny>,
    device: Option<DeviceArgument>,
    copy: Option<bool>,
) -> Result<PyTensor> {
    let shared = dlpack::import(array)?;
    let here = shared.device();
    let device = device.map_or(here, |device| device.0);
    let work = || if device == here { shared.copy() } else { shared.to(&device) };
    match copy {
        Some(false) if device != here => {
            let text = format!("from_dlpack: found an array on {here} with copy=False; wanted device={here}");
            Err(PyBufferError::new_err(text).into())
        }
        None | Some(false) if device == here => Ok(shared.into()),
        _ => Ok(array.py().detach(work)?.into()),
    }
}
