//! Views, joining, repeating and padding.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use selvedge::Tensor;
use selvedge::fuse::Number;
use selvedge::tensor::Padding;

use super::PyTensor;
use crate::arguments::{DTypeArgument, Integers, NumberArgument, Operand, Sizes, TensorArgument, spread};
use crate::error::{Result, invalid};

fn list(tensors: Vec<Tensor>) -> Vec<PyTensor> {
    tensors.into_iter().map(PyTensor::from).collect()
}

#[pymethods]
impl PyTensor {
    /// The tensor with its axes in reverse order.
    #[getter]
    #[pyo3(name = "T")]
    fn transposed(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.permute(&(0..tensor.rank() as isize).rev().collect::<Vec<_>>()))
    }

    /// The tensor with its last two axes exchanged.
    #[getter]
    #[pyo3(name = "mT")]
    fn matrices_transposed(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.transpose(-2, -1))
    }

    /// Two axes exchanged: the last two if none are given.
    #[pyo3(signature = (first=-2, second=-1))]
    fn transpose(&self, py: Python<'_>, first: isize, second: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.transpose(first, second))
    }

    fn t(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.t())
    }

    #[pyo3(signature = (*axes))]
    fn permute(&self, py: Python<'_>, axes: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let axes = spread(axes)?;
        self.map(py, |tensor| tensor.permute(&axes))
    }

    /// Another shape, in which one size may be -1.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let shape = spread(shape)?;
        self.map(py, |tensor| tensor.reshape(&shape))
    }

    #[pyo3(signature = (first=0, last=-1))]
    fn flatten(&self, py: Python<'_>, first: isize, last: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.flatten(first, last))
    }

    fn ravel(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.ravel())
    }

    fn unflatten(&self, py: Python<'_>, axis: isize, sizes: Integers) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.unflatten(axis, &sizes.0))
    }

    #[pyo3(signature = (*shape))]
    fn expand(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let shape = sizes("expand", spread(shape)?)?;
        self.map(py, |tensor| tensor.expand(&shape))
    }

    fn movedim(&self, py: Python<'_>, from_axes: Integers, to_axes: Integers) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.movedim(&from_axes.0, &to_axes.0))
    }

    fn narrow(&self, py: Python<'_>, axis: isize, start: usize, length: usize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.narrow(axis, start, length))
    }

    fn select(&self, py: Python<'_>, axis: isize, index: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.select(axis, index))
    }

    /// Without an axis of size 1; without all of them if none is given.
    #[pyo3(signature = (axis=None))]
    fn squeeze(&self, py: Python<'_>, axis: Option<isize>) -> Result<PyTensor> {
        self.map(py, |tensor| match axis {
            Some(axis) => tensor.squeeze(axis),
            None => tensor.squeeze_all(),
        })
    }

    fn unsqueeze(&self, py: Python<'_>, axis: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.unsqueeze(axis))
    }

    fn flip(&self, py: Python<'_>, axes: Integers) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.flip(&axes.0))
    }

    #[pyo3(signature = (offset=0, first=0, second=1))]
    fn diagonal(&self, py: Python<'_>, offset: isize, first: isize, second: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.diagonal(offset, first, second))
    }

    fn unfold(&self, py: Python<'_>, axis: isize, size: usize, step: usize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.unfold(axis, size, step))
    }

    fn view_as_real(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.view_as_real())
    }

    fn view_as_complex(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.view_as_complex())
    }

    fn view_dtype(&self, py: Python<'_>, dtype: DTypeArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.view_dtype(dtype.0))
    }

    fn roll(&self, py: Python<'_>, shifts: Integers, axes: Integers) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.roll(&shifts.0, &axes.0))
    }

    #[pyo3(signature = (sizes, axis=0))]
    fn split(&self, py: Python<'_>, sizes: Sizes, axis: isize) -> Result<Vec<PyTensor>> {
        self.run(py, |tensor| tensor.split(&sizes.0, axis)).map(list)
    }

    #[pyo3(signature = (count, axis=0))]
    fn chunk(&self, py: Python<'_>, count: usize, axis: isize) -> Result<Vec<PyTensor>> {
        self.run(py, |tensor| tensor.chunk(count, axis)).map(list)
    }

    #[pyo3(signature = (axis=0))]
    fn unbind(&self, py: Python<'_>, axis: isize) -> Result<Vec<PyTensor>> {
        self.run(py, |tensor| tensor.unbind(axis)).map(list)
    }

    #[pyo3(signature = (*times))]
    fn repeat(&self, py: Python<'_>, times: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let times = sizes("repeat", spread(times)?)?;
        self.map(py, |tensor| tensor.repeat(&times))
    }

    fn repeat_interleave(&self, py: Python<'_>, times: usize, axis: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.repeat_interleave(times, axis))
    }

    /// The tensor with a border of `widths[i]` elements before and behind axis i; `mode` is "constant", "reflect",
    /// "replicate" or "circular".
    #[pyo3(signature = (widths, mode="constant", value=NumberArgument(Number::Integer(0))))]
    fn pad(
        &self,
        py: Python<'_>,
        widths: Vec<(usize, usize)>,
        mode: &str,
        value: NumberArgument,
    ) -> Result<PyTensor> {
        let padding = match mode {
            "constant" => Padding::Constant(value.0),
            "reflect" => Padding::Reflect,
            "replicate" => Padding::Replicate,
            "circular" => Padding::Circular,
            other => {
                let wanted = "\"constant\", \"reflect\", \"replicate\" or \"circular\"";
                return Err(invalid("pad", format!("the mode {other:?}"), wanted).into());
            }
        };
        self.map(py, |tensor| tensor.pad(&widths, padding))
    }

    #[pyo3(signature = (diagonal=0))]
    fn tril(&self, py: Python<'_>, diagonal: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.tril(diagonal))
    }

    #[pyo3(signature = (diagonal=0))]
    fn triu(&self, py: Python<'_>, diagonal: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.triu(diagonal))
    }

    #[pyo3(signature = (offset=0))]
    fn diag(&self, py: Python<'_>, offset: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.diag(offset))
    }

    fn trace(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.trace())
    }

    fn masked_fill(&self, py: Python<'_>, mask: TensorArgument, value: Operand) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.masked_fill(&mask.0, value.operand()))
    }
}

/// Returns sizes, none of which may be negative.
fn sizes(operation: &'static str, sizes: Vec<isize>) -> Result<Vec<usize>> {
    let size = |size: isize| {
        usize::try_from(size)
            .map_err(|_| invalid(operation, format!("a size of {size}"), "sizes from 0 on").into())
    };
    sizes.into_iter().map(size).collect()
}
