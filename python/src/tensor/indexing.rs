//! `x[…]` and `x[…] = values`, by the rules of NumPy.

use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use selvedge::tensor::Index;
use selvedge::types::Slice;
use selvedge::{DType, Device, Tensor};

use super::{PyTensor, new_tensor};
use crate::arguments::{Operand, text};
use crate::error::{Result, index_beyond_64_bits, type_name, wrong_type};
use crate::nested;

/// An entry of an index expression, which owns its array.
#[allow(clippy::large_enum_variant, reason = "it lives for the time of a call")]
pub(crate) enum Entry {
    At(isize),
    Slice(Slice),
    NewAxis,
    Ellipsis,
    Tensor(Tensor),
}

impl Entry {
    pub(crate) fn index(&self) -> Index<'_> {
        match self {
            Entry::At(position) => Index::At(*position),
            Entry::Slice(slice) => Index::Slice(*slice),
            Entry::NewAxis => Index::NewAxis,
            Entry::Ellipsis => Index::Ellipsis,
            Entry::Tensor(tensor) => Index::Tensor(tensor),
        }
    }
}

/// Returns the positions of a slice, of which missing and very large ones are the ends of the range of integers.
fn slice(object: &Bound<'_, PySlice>) -> PyResult<Slice> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: the object is a slice, and the three places are this function's.
    if unsafe { ffi::PySlice_Unpack(object.as_ptr(), &mut start, &mut stop, &mut step) } < 0 {
        return Err(PyErr::fetch(object.py()));
    }
    Ok(Slice::from(start..stop).step(step))
}

fn entry(object: &Bound<'_, PyAny>, device: &Device) -> Result<Entry> {
    if let Ok(found) = object.cast::<PySlice>() {
        return Ok(Entry::Slice(slice(found)?));
    }
    if object.is_none() {
        return Ok(Entry::NewAxis);
    }
    if object.is_instance_of::<PyEllipsis>() {
        return Ok(Entry::Ellipsis);
    }
    let wanted =
        || wrong_type("an index", type_name(object), "integers, slices, None, ..., masks and index arrays");
    if object.is_instance_of::<PyBool>() {
        return Err(wanted().into());
    }
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(Entry::Tensor(tensor.get().tensor(object.py())));
    }
    if nested::is_sequence(object) {
        let index = new_tensor(object, None, Some(*device))?;
        // A list without elements is an index without positions.
        return Ok(Entry::Tensor(if index.count() == 0 { index.cast(DType::I64)? } else { index }));
    }
    match object.extract::<isize>() {
        Ok(position) => return Ok(Entry::At(position)),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            return Err(index_beyond_64_bits(object.py(), &text(object)).into());
        }
        // Another object may be an array.
        Err(_) => {}
    }
    match new_tensor(object, None, Some(*device)) {
        Ok(index) if index.rank() > 0 => Ok(Entry::Tensor(index)),
        _ => Err(wanted().into()),
    }
}

pub(crate) fn entries(key: &Bound<'_, PyAny>, device: &Device) -> Result<Vec<Entry>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|object| entry(&object, device)).collect(),
        Err(_) => Ok(vec![entry(key, device)?]),
    }
}

/// Returns the mask without dimensions that is the whole key. It selects the whole tensor or nothing.
fn scalar_mask(entries: &[Entry]) -> Option<&Tensor> {
    match entries {
        [Entry::Tensor(mask)] if mask.rank() == 0 && mask.dtype() == DType::Bool => Some(mask),
        _ => None,
    }
}

#[pymethods]
impl PyTensor {
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<PyTensor> {
        let tensor = self.tensor(py);
        let entries = entries(key, &tensor.device())?;
        if let Some(mask) = scalar_mask(&entries) {
            return Ok(py.detach(|| tensor.unsqueeze(0)?.index(&mask.reshape(&[1])?))?.into());
        }
        let indices: Vec<Index<'_>> = entries.iter().map(Entry::index).collect();
        Ok(py.detach(|| tensor.index(&indices[..]))?.into())
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> Result<()> {
        // No clone may live on, or the write copies the elements.
        let (device, dtype) = {
            let tensor = self.tensor(py);
            (tensor.device(), tensor.dtype())
        };
        let entries = entries(key, &device)?;
        let values = match nested::is_sequence(values) {
            true => Operand::Tensor(new_tensor(values, Some(dtype), Some(device))?),
            false => values.extract::<Operand>()?,
        };
        if let Some(mask) = scalar_mask(&entries) {
            return match py.detach(|| mask.item::<bool>())? {
                true => self.write(py, |tensor| tensor.index_assign(Index::Ellipsis, values.operand())),
                false => Ok(()),
            };
        }
        let indices: Vec<Index<'_>> = entries.iter().map(Entry::index).collect();
        self.write(py, |tensor| tensor.index_assign(&indices[..], values.operand()))
    }

    fn __contains__(&self, py: Python<'_>, value: Operand) -> Result<bool> {
        self.run(py, |tensor| tensor.eq(value.operand())?.any_all()?.item::<bool>())
    }
}
