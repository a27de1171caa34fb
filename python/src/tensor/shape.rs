//! Views, joining, repeating and padding.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use selvedge::Tensor;
use selvedge::fuse::Number;
use selvedge::tensor::Padding;

use super::PyTensor;
use crate::arguments::{
    DTypeArgument, InRange, Integers, NumberArgument, Operand, Sizes, TensorArgument, axis_or, either, given,
    given_axis, spread,
};
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

    #[doc = doc!(transpose)]
    #[pyo3(signature = (first=InRange(-2), second=InRange(-1)), text_signature = "($self, first=-2, second=-1)")]
    fn transpose(&self, py: Python<'_>, first: InRange<isize>, second: InRange<isize>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.transpose(first.0, second.0))
    }

    #[doc = doc!(t)]
    fn t(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.t())
    }

    #[doc = doc!(permute)]
    #[pyo3(signature = (*axes))]
    fn permute(&self, py: Python<'_>, axes: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let axes = spread(axes)?;
        self.map(py, |tensor| tensor.permute(&axes))
    }

    #[doc = doc!(reshape)]
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let shape = spread(shape)?;
        self.map(py, |tensor| tensor.reshape(&shape))
    }

    #[doc = doc!(flatten)]
    #[pyo3(signature = (first=InRange(0), last=InRange(-1)), text_signature = "($self, first=0, last=-1)")]
    fn flatten(&self, py: Python<'_>, first: InRange<isize>, last: InRange<isize>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.flatten(first.0, last.0))
    }

    #[doc = doc!(ravel)]
    fn ravel(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.ravel())
    }

    #[doc = doc!(unflatten)]
    #[pyo3(signature = (axis=None, sizes=None, *, dim=None), text_signature = "($self, axis, sizes, *, dim=None)")]
    fn unflatten(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        sizes: Option<Integers>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = given_axis("unflatten", axis, dim)?;
        let sizes = given("unflatten", "sizes", sizes)?;
        self.map(py, |tensor| tensor.unflatten(axis, &sizes.0))
    }

    #[doc = doc!(expand)]
    #[pyo3(signature = (*shape))]
    fn expand(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let shape = sizes("expand", spread(shape)?)?;
        self.map(py, |tensor| tensor.expand(&shape))
    }

    #[doc = doc!(movedim)]
    fn movedim(&self, py: Python<'_>, from_axes: Integers, to_axes: Integers) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.movedim(&from_axes.0, &to_axes.0))
    }

    #[doc = doc!(narrow)]
    #[pyo3(signature = (axis=None, start=None, length=None, *, dim=None), text_signature = "($self, axis, start, length, *, dim=None)")]
    fn narrow(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        start: Option<InRange<usize>>,
        length: Option<InRange<usize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = given_axis("narrow", axis, dim)?;
        let start = given("narrow", "start", start)?;
        let length = given("narrow", "length", length)?;
        self.map(py, |tensor| tensor.narrow(axis, start.0, length.0))
    }

    #[doc = doc!(select)]
    #[pyo3(signature = (axis=None, index=None, *, dim=None), text_signature = "($self, axis, index, *, dim=None)")]
    fn select(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        index: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = given_axis("select", axis, dim)?;
        let index = given("select", "index", index)?;
        self.map(py, |tensor| tensor.select(axis, index.0))
    }

    #[doc = doc!(squeeze)]
    ///
    /// Without an axis: all dimensions of size 1.
    #[pyo3(signature = (axis=None, *, dim=None))]
    fn squeeze(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = either("squeeze", ["axis", "dim"], axis, dim)?;
        self.map(py, |tensor| match axis {
            Some(axis) => tensor.squeeze(axis.0),
            None => tensor.squeeze_all(),
        })
    }

    #[doc = doc!(unsqueeze)]
    #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis, *, dim=None)")]
    fn unsqueeze(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = given_axis("unsqueeze", axis, dim)?;
        self.map(py, |tensor| tensor.unsqueeze(axis))
    }

    #[doc = doc!(flip)]
    #[pyo3(signature = (axes=None, *, dims=None), text_signature = "($self, axes, *, dims=None)")]
    fn flip(&self, py: Python<'_>, axes: Option<Integers>, dims: Option<Integers>) -> Result<PyTensor> {
        let axes = given("flip", "axes", either("flip", ["axes", "dims"], axes, dims)?)?;
        self.map(py, |tensor| tensor.flip(&axes.0))
    }

    #[doc = doc!(diagonal)]
    #[pyo3(signature = (offset=InRange(0), first=InRange(0), second=InRange(1)), text_signature = "($self, offset=0, first=0, second=1)")]
    fn diagonal(
        &self,
        py: Python<'_>,
        offset: InRange<isize>,
        first: InRange<isize>,
        second: InRange<isize>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.diagonal(offset.0, first.0, second.0))
    }

    #[doc = doc!(unfold)]
    #[pyo3(signature = (axis=None, size=None, step=None, *, dim=None), text_signature = "($self, axis, size, step, *, dim=None)")]
    fn unfold(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        size: Option<InRange<usize>>,
        step: Option<InRange<usize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = given_axis("unfold", axis, dim)?;
        let size = given("unfold", "size", size)?;
        let step = given("unfold", "step", step)?;
        self.map(py, |tensor| tensor.unfold(axis, size.0, step.0))
    }

    #[doc = doc!(view_as_real)]
    fn view_as_real(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.view_as_real())
    }

    #[doc = doc!(view_as_complex)]
    fn view_as_complex(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.view_as_complex())
    }

    #[doc = doc!(view_dtype)]
    fn view_dtype(&self, py: Python<'_>, dtype: DTypeArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.view_dtype(dtype.0))
    }

    #[doc = doc!(roll)]
    #[pyo3(signature = (shifts, axes=None, *, dims=None), text_signature = "($self, shifts, axes, *, dims=None)")]
    fn roll(
        &self,
        py: Python<'_>,
        shifts: Integers,
        axes: Option<Integers>,
        dims: Option<Integers>,
    ) -> Result<PyTensor> {
        let axes = given("roll", "axes", either("roll", ["axes", "dims"], axes, dims)?)?;
        self.map(py, |tensor| tensor.roll(&shifts.0, &axes.0))
    }

    #[doc = doc!(split)]
    #[pyo3(signature = (sizes, axis=None, *, dim=None), text_signature = "($self, sizes, axis=0, *, dim=None)")]
    fn split(
        &self,
        py: Python<'_>,
        sizes: Sizes,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<Vec<PyTensor>> {
        let axis = axis_or("split", axis, dim, 0)?;
        self.run(py, |tensor| tensor.split(&sizes.0, axis)).map(list)
    }

    #[doc = doc!(chunk)]
    #[pyo3(signature = (count, axis=None, *, dim=None), text_signature = "($self, count, axis=0, *, dim=None)")]
    fn chunk(
        &self,
        py: Python<'_>,
        count: InRange<usize>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<Vec<PyTensor>> {
        let axis = axis_or("chunk", axis, dim, 0)?;
        self.run(py, |tensor| tensor.chunk(count.0, axis)).map(list)
    }

    #[doc = doc!(unbind)]
    #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis=0, *, dim=None)")]
    fn unbind(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<Vec<PyTensor>> {
        let axis = axis_or("unbind", axis, dim, 0)?;
        self.run(py, |tensor| tensor.unbind(axis)).map(list)
    }

    #[doc = doc!(repeat)]
    #[pyo3(signature = (*times))]
    fn repeat(&self, py: Python<'_>, times: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let times = sizes("repeat", spread(times)?)?;
        self.map(py, |tensor| tensor.repeat(&times))
    }

    #[doc = doc!(repeat_interleave)]
    #[pyo3(signature = (times, axis=None, *, dim=None), text_signature = "($self, times, axis, *, dim=None)")]
    fn repeat_interleave(
        &self,
        py: Python<'_>,
        times: InRange<usize>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = given_axis("repeat_interleave", axis, dim)?;
        self.map(py, |tensor| tensor.repeat_interleave(times.0, axis))
    }

    #[doc = doc!(pad)]
    ///
    /// `mode` is "constant", "reflect", "replicate" or "circular".
    #[pyo3(signature = (widths, mode="constant", value=NumberArgument(Number::Integer(0))), text_signature = "($self, widths, mode=\"constant\", value=0)")]
    fn pad(
        &self,
        py: Python<'_>,
        widths: Vec<(InRange<usize>, InRange<usize>)>,
        mode: &str,
        value: NumberArgument,
    ) -> Result<PyTensor> {
        let padding = padding(mode, value)?;
        let widths: Vec<_> = widths.into_iter().map(|(before, behind)| (before.0, behind.0)).collect();
        self.map(py, |tensor| tensor.pad(&widths, padding))
    }

    #[doc = doc!(tril)]
    #[pyo3(signature = (diagonal=InRange(0)), text_signature = "($self, diagonal=0)")]
    fn tril(&self, py: Python<'_>, diagonal: InRange<isize>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.tril(diagonal.0))
    }

    #[doc = doc!(triu)]
    #[pyo3(signature = (diagonal=InRange(0)), text_signature = "($self, diagonal=0)")]
    fn triu(&self, py: Python<'_>, diagonal: InRange<isize>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.triu(diagonal.0))
    }

    #[doc = doc!(diag)]
    #[pyo3(signature = (offset=InRange(0)), text_signature = "($self, offset=0)")]
    fn diag(&self, py: Python<'_>, offset: InRange<isize>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.diag(offset.0))
    }

    #[doc = doc!(trace)]
    fn trace(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.trace())
    }

    #[doc = doc!(masked_fill)]
    fn masked_fill(&self, py: Python<'_>, mask: TensorArgument, value: Operand) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.masked_fill(&mask.0, value.operand()))
    }
}

/// Returns sizes, none of which may be negative.
pub(crate) fn padding(mode: &str, value: NumberArgument) -> Result<Padding> {
    Ok(match mode {
        "constant" => Padding::Constant(value.0),
        "reflect" => Padding::Reflect,
        "replicate" => Padding::Replicate,
        "circular" => Padding::Circular,
        other => {
            let wanted = "\"constant\", \"reflect\", \"replicate\" or \"circular\"";
            return Err(invalid("pad", format!("the mode {other:?}"), wanted).into());
        }
    })
}

pub(crate) fn sizes(operation: &'static str, sizes: Vec<isize>) -> Result<Vec<usize>> {
    let size = |size: isize| {
        usize::try_from(size)
            .map_err(|_| invalid(operation, format!("a size of {size}"), "sizes from 0 on").into())
    };
    sizes.into_iter().map(size).collect()
}
