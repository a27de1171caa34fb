//! `selvedge.Tensor`: its constructor, properties, conversions and protocols. The other files of this folder add methods.
//!
//! A Python object holds a tensor behind a lock, for writes by several threads. Every other call takes a clone of the tensor,
//! which shares the elements, and works on it while other threads of Python run.

mod attention;
pub(crate) mod elementwise;
pub(crate) mod indexing;
mod memory;
mod normalization;
#[allow(unsafe_op_in_unsafe_fn, reason = "PyO3 generates such code for operators that a macro names")]
pub(crate) mod operators;
mod products;
pub(crate) mod reductions;
mod selection;
pub(crate) mod shape;

use std::sync::{PoisonError, RwLock};

pub use memory::shares_elements;
use num_complex::Complex;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::RwLockExt;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};
use selvedge::tensor::TensorMut;
use selvedge::{DType, Device, Tensor, bf16, f16};

use crate::arguments::{DTypeArgument, DeviceArgument, InRange, TensorArgument, number_or_item};
use crate::device::{PyDevice, device_or_default};
use crate::dtype::PyDType;
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::{buffer, dlpack, nested};

/// An array of numbers on the CPU or a CUDA device.
///
/// `Tensor(data, dtype=None, device=None)` copies a number, nested lists or tuples, an array, or another tensor.
#[pyclass(name = "Tensor", module = "selvedge", frozen)]
pub struct PyTensor(RwLock<Tensor>);

impl From<Tensor> for PyTensor {
    fn from(tensor: Tensor) -> PyTensor {
        PyTensor(RwLock::new(tensor))
    }
}

impl PyTensor {
    /// Returns the tensor, which shares its elements.
    pub fn tensor(&self, py: Python<'_>) -> Tensor {
        if let Ok(tensor) = self.0.try_read() {
            return tensor.clone();
        }
        self.0.read_py_attached(py).unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Computes a result while other threads of Python run.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Tensor) -> selvedge::Result<T> + Send,
    ) -> Result<T> {
        let tensor = self.tensor(py);
        Ok(py.detach(|| work(&tensor))?)
    }

    /// Computes a tensor while other threads of Python run.
    fn map(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Tensor) -> selvedge::Result<Tensor> + Send,
    ) -> Result<PyTensor> {
        self.run(py, work).map(PyTensor::from)
    }

    /// Computes two tensors while other threads of Python run.
    fn map_two(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Tensor) -> selvedge::Result<(Tensor, Tensor)> + Send,
    ) -> Result<(PyTensor, PyTensor)> {
        self.run(py, work).map(|(first, second)| (first.into(), second.into()))
    }

    /// Writes to the elements while other threads of Python run.
    fn write(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut TensorMut<'_>) -> selvedge::Result<()> + Send,
    ) -> Result<()> {
        Ok(py.detach(|| {
            let mut tensor = self.0.write().unwrap_or_else(PoisonError::into_inner);
            work(&mut tensor.in_place())
        })?)
    }
}

/// Creates a tensor of what `Tensor` takes.
pub fn new_tensor(data: &Bound<'_, PyAny>, dtype: Option<DType>, device: Option<Device>) -> Result<Tensor> {
    let py = data.py();
    let made = if nested::is_sequence(data) {
        return nested::tensor(data, dtype, &device.unwrap_or(Device::cpu()));
    } else if let Ok(tensor) = data.cast::<PyTensor>() {
        tensor.get().tensor(py)
    } else if let Some(tensor) = buffer::tensor(data, &device.unwrap_or(Device::cpu()))? {
        tensor
    } else if data.hasattr("__dlpack__")? {
        dlpack::import(data)?
    } else if number_or_item(data)?.is_some() {
        // A scalar of NumPy has a dtype.
        let own = || data.getattr("dtype").and_then(|own| own.extract::<DTypeArgument>()).ok();
        let dtype = dtype.or_else(|| own().map(|own| own.0));
        return nested::tensor(data, dtype, &device.unwrap_or(Device::cpu()));
    } else {
        let wanted = "a number, nested lists of numbers, an array or a tensor";
        return Err(wrong_type("data", type_name(data), wanted).into());
    };
    Ok(py.detach(|| {
        let made = match device {
            Some(device) => made.to(&device)?,
            None => made,
        };
        match dtype {
            Some(dtype) => made.cast(dtype),
            None => Ok(made),
        }
    })?)
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (data, dtype=None, device=None))]
    pub fn new(
        data: &Bound<'_, PyAny>,
        dtype: Option<DTypeArgument>,
        device: Option<DeviceArgument>,
    ) -> Result<PyTensor> {
        let is_tensor = data.is_instance_of::<PyTensor>();
        let device = if is_tensor { device.map(|device| device.0) } else { Some(device_or_default(device)) };
        new_tensor(data, dtype.map(|dtype| dtype.0), device).map(PyTensor::from)
    }

    /// The sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor(py).shape().iter().copied())
    }

    /// The type of the elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyDType {
        PyDType(self.tensor(py).dtype())
    }

    /// The device of the elements.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyDevice {
        PyDevice(self.tensor(py).device())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> usize {
        self.tensor(py).rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> usize {
        self.tensor(py).count()
    }

    /// The number of elements, as `size`, by PyTorch's name.
    ///
    /// >>> sv.zeros(2, 3).numel()
    /// 6
    fn numel(&self, py: Python<'_>) -> usize {
        self.size(py)
    }

    /// The number of dimensions, as `ndim`, by PyTorch's name.
    ///
    /// >>> sv.zeros(2, 3).dim()
    /// 2
    fn dim(&self, py: Python<'_>) -> usize {
        self.ndim(py)
    }

    /// The bytes of an element.
    #[getter]
    fn itemsize(&self, py: Python<'_>) -> usize {
        self.tensor(py).dtype().size()
    }

    /// The bytes of all elements.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> u128 {
        let tensor = self.tensor(py);
        // A view repeats elements without memory.
        tensor.count() as u128 * tensor.dtype().size() as u128
    }

    /// True if the elements are adjacent in memory, in row-major order.
    #[getter]
    fn is_contiguous(&self, py: Python<'_>) -> bool {
        self.tensor(py).is_contiguous()
    }

    /// The tensor on another device, with another dtype, or both: `to("cuda")`, `to("f32")`, `to("cuda", "f32")`.
    #[pyo3(signature = (*targets, device=None, dtype=None))]
    fn to(
        &self,
        py: Python<'_>,
        targets: &Bound<'_, PyTuple>,
        mut device: Option<DeviceArgument>,
        mut dtype: Option<DTypeArgument>,
    ) -> Result<PyTensor> {
        for target in targets {
            match (target.extract::<DTypeArgument>(), target.extract::<DeviceArgument>()) {
                (Ok(found), _) => dtype = Some(found),
                (_, Ok(found)) => device = Some(found),
                // The name of a device that is not there.
                (_, Err(error)) if target.to_string().starts_with("cuda") => return Err(error.into()),
                _ => return Err(invalid("to", target.to_string(), "a dtype or a device").into()),
            }
        }
        self.map(py, |tensor| {
            let cast = match dtype {
                Some(dtype) => tensor.cast(dtype.0)?,
                None => tensor.clone(),
            };
            match device {
                Some(device) => cast.to(&device.0),
                None => Ok(cast),
            }
        })
    }

    /// The tensor on another device, by the array API's name of `to`.
    #[pyo3(signature = (device, /, *, stream=None))]
    fn to_device(
        &self,
        py: Python<'_>,
        device: DeviceArgument,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyTensor> {
        if stream.is_some() {
            return Err(invalid("to_device", "a stream", "None, as tensors know their streams").into());
        }
        self.map(py, |tensor| tensor.to(&device.0))
    }

    /// The namespace of the array API standard.
    #[pyo3(signature = (*, api_version=None))]
    fn __array_namespace__<'py>(
        &self,
        py: Python<'py>,
        api_version: Option<&str>,
    ) -> Result<Bound<'py, PyAny>> {
        const VERSIONS: [&str; 4] = ["2021.12", "2022.12", "2023.12", "2024.12"];
        match api_version {
            Some(version) if !VERSIONS.contains(&version) => {
                Err(invalid("api_version", version, format!("one of {VERSIONS:?}")).into())
            }
            _ => Ok(py.import("selvedge.array_api")?.into_any()),
        }
    }

    #[doc = doc!(cast)]
    fn cast(&self, py: Python<'_>, dtype: DTypeArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.cast(dtype.0))
    }

    /// The tensor in another dtype, by NumPy's name of `cast`.
    fn astype(&self, py: Python<'_>, dtype: DTypeArgument) -> Result<PyTensor> {
        self.cast(py, dtype)
    }

    /// The tensor on the CPU.
    fn cpu(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.to(&Device::cpu()))
    }

    /// The tensor on a CUDA device.
    #[pyo3(signature = (ordinal=InRange(0)), text_signature = "($self, ordinal=0)")]
    fn cuda(&self, py: Python<'_>, ordinal: InRange<usize>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.to(&Device::cuda(ordinal.0)?))
    }

    #[doc = doc!(copy)]
    fn copy(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, Tensor::copy)
    }

    #[doc = doc!(contiguous)]
    fn contiguous(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, Tensor::contiguous)
    }

    /// A new array of NumPy with the elements.
    fn numpy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        buffer::to_numpy(py, &self.tensor(py))
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(invalid(
                "__array__",
                "copy=False",
                "a copy, or numpy.from_dlpack, which shares the elements",
            )
            .into());
        }
        let array = self.numpy(py)?;
        match dtype {
            Some(dtype) => Ok(array.call_method1("astype", (dtype,))?),
            None => Ok(array),
        }
    }

    /// Operators with an array of NumPy on the left are those of the tensor.
    #[classattr]
    #[pyo3(name = "__array_ufunc__")]
    fn array_ufunc() -> Option<bool> {
        None
    }

    /// The elements as nested lists of Python's numbers; the number itself without dimensions.
    fn tolist<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let tensor = self.tensor(py);
        lists(py, &tensor)
    }

    /// The only element as a number of Python.
    fn item<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let tensor = self.tensor(py);
        if tensor.count() != 1 {
            return Err(invalid(
                "item",
                format!("a tensor of {} elements", tensor.count()),
                "a tensor of one",
            )
            .into());
        }
        lists(py, &tensor.reshape(&[])?)
    }

    fn __bool__(&self, py: Python<'_>) -> Result<bool> {
        let tensor = self.tensor(py);
        if tensor.count() != 1 {
            let found = format!("a tensor of {} elements", tensor.count());
            return Err(invalid("the truth of a tensor", found, "one element; see any() and all()").into());
        }
        Ok(py.detach(|| tensor.cast(DType::Bool)?.reshape(&[])?.item::<bool>())?)
    }

    fn __float__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(py.get_type::<pyo3::types::PyFloat>().call1((self.item(py)?,))?)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(py.get_type::<pyo3::types::PyInt>().call1((self.item(py)?,))?)
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(py.get_type::<pyo3::types::PyComplex>().call1((self.item(py)?,))?)
    }

    fn __index__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let dtype = self.tensor(py).dtype();
        if !dtype.is_integer() {
            return Err(wrong_type("an index", format!("a tensor of {dtype}"), "one of integers").into());
        }
        // Python tries other conversions, such as the buffer of `bytes(x)`, after an error of the type.
        let count = self.tensor(py).count();
        if count != 1 {
            return Err(wrong_type("an index", format!("a tensor of {count} elements"), "one element").into());
        }
        self.item(py)
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        let tensor = self.tensor(py);
        let wanted = || wrong_type("len()", "a tensor without dimensions", "a tensor with dimensions").into();
        tensor.shape().first().copied().ok_or_else(wanted)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let tensor = self.tensor(py);
        if tensor.rank() == 0 {
            return Err(
                wrong_type("iter()", "a tensor without dimensions", "a tensor with dimensions").into()
            );
        }
        let rows = py.detach(|| tensor.unbind(0))?;
        Ok(PyList::new(py, rows.into_iter().map(PyTensor::from))?.as_any().try_iter()?.into_any())
    }

    /// The identity of the object, as `==` compares elements.
    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // Objects lie at multiples of 16.
        (slf.as_ptr().addr() >> 4) as isize
    }

    /// The text of the only element of a tensor without dimensions by a format of Python's numbers.
    fn __format__(&self, py: Python<'_>, format: &str) -> Result<String> {
        let tensor = self.tensor(py);
        if format.is_empty() {
            return Ok(self.__str__(py));
        }
        if tensor.rank() > 0 {
            let found = format!("the format {format:?} for a tensor of shape {:?}", tensor.shape());
            return Err(wrong_type("format()", found, "no format, or a tensor without dimensions").into());
        }
        Ok(lists(py, &tensor)?.call_method1("__format__", (format,))?.extract::<String>()?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let tensor = self.tensor(py);
        py.detach(|| format!("{tensor:?}"))
    }

    fn __str__(&self, py: Python<'_>) -> String {
        let tensor = self.tensor(py);
        py.detach(|| tensor.to_string())
    }

    fn __copy__(&self, py: Python<'_>) -> PyTensor {
        self.tensor(py).into()
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyTensor {
        // Tensors that share elements never see each other's writes.
        self.tensor(py).into()
    }

    #[allow(clippy::type_complexity, reason = "the tuple that pickle takes")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> Result<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, &'static str, Vec<usize>, String))> {
        let tensor = self.tensor(py);
        let bytes = py.detach(|| tensor.to_bytes())?;
        let restore = py.get_type::<PyTensor>().getattr("_from_bytes")?;
        let state = (
            PyBytes::new(py, &bytes),
            tensor.dtype().name(),
            tensor.shape().to_vec(),
            tensor.device().to_string(),
        );
        Ok((restore, state))
    }

    /// Restores a pickled tensor.
    #[classmethod]
    fn _from_bytes(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        bytes: &Bound<'_, PyBytes>,
        dtype: DTypeArgument,
        shape: Vec<usize>,
        device: DeviceArgument,
    ) -> Result<PyTensor> {
        let bytes = bytes.as_bytes();
        Ok(py.detach(|| Tensor::from_bytes(bytes, dtype.0, &shape, &device.0))?.into())
    }

    #[doc = doc!(equal)]
    fn equal(&self, py: Python<'_>, other: TensorArgument) -> Result<bool> {
        self.run(py, |tensor| tensor.equal(&other.0))
    }

    #[doc = doc!(isclose)]
    #[pyo3(signature = (other, rtol=InRange(1e-5), atol=InRange(1e-8)), text_signature = "($self, other, rtol=1e-5, atol=1e-8)")]
    fn isclose(
        &self,
        py: Python<'_>,
        other: TensorArgument,
        rtol: InRange<f64>,
        atol: InRange<f64>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.isclose(&other.0, rtol.0, atol.0))
    }

    #[doc = doc!(allclose)]
    #[pyo3(signature = (other, rtol=InRange(1e-5), atol=InRange(1e-8)), text_signature = "($self, other, rtol=1e-5, atol=1e-8)")]
    fn allclose(
        &self,
        py: Python<'_>,
        other: TensorArgument,
        rtol: InRange<f64>,
        atol: InRange<f64>,
    ) -> Result<bool> {
        self.run(py, |tensor| tensor.allclose(&other.0, rtol.0, atol.0))
    }
}

/// Returns the elements as nested lists.
fn lists<'py>(py: Python<'py>, tensor: &Tensor) -> Result<Bound<'py, PyAny>> {
    macro_rules! of {
        ($type:ty, |$element:ident| $value:expr) => {{
            let elements = py.detach(|| tensor.to_vec::<$type>())?;
            nest(py, tensor.shape(), &mut elements.into_iter().map(|$element| $value))
        }};
        ($type:ty) => {
            of!($type, |element| element)
        };
    }
    match tensor.dtype() {
        DType::Bool => of!(bool),
        DType::U8 => of!(u8),
        DType::I8 => of!(i8),
        DType::U16 => of!(u16),
        DType::I16 => of!(i16),
        DType::U32 => of!(u32),
        DType::I32 => of!(i32),
        DType::U64 => of!(u64),
        DType::I64 => of!(i64),
        DType::F16 => of!(f16, |element| element.to_f64()),
        DType::BF16 => of!(bf16, |element| element.to_f64()),
        DType::F32 => of!(f32, |element| f64::from(element)),
        DType::F64 => of!(f64),
        DType::C64 => of!(Complex<f32>, |element| Complex::new(f64::from(element.re), f64::from(element.im))),
        DType::C128 => of!(Complex<f64>),
        _ => lists(py, &tensor.cast(DType::F32)?),
    }
}

/// Returns elements as nested lists of this shape.
fn nest<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    shape: &[usize],
    elements: &mut impl ExactSizeIterator<Item = T>,
) -> Result<Bound<'py, PyAny>> {
    match shape.split_first() {
        None => match elements.next() {
            Some(element) => Ok(element.into_bound_py_any(py)?),
            None => Err(invalid("tolist", "too few elements", "one").into()),
        },
        Some((size, [])) => {
            let row = PyList::empty(py);
            for element in elements.take(*size) {
                row.append(element)?;
            }
            Ok(row.into_any())
        }
        Some((size, inner)) => {
            let rows = PyList::empty(py);
            for _ in 0..*size {
                rows.append(nest(py, inner, elements)?)?;
            }
            Ok(rows.into_any())
        }
    }
}
