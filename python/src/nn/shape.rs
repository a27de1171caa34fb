//! Operations of variables that move elements: views, joining, repeating, masks and index arrays.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use selvedge::fuse::Number;
use selvedge::nn::Variable;

use super::variable::{IndexArgument, PyVariable, VariableArgument};
use crate::arguments::{
    InRange, Integers, NumberArgument, Sizes, axis_or, either, given, given_axis, spread,
};
use crate::error::Result;
use crate::tensor::shape::{padding, sizes};

fn list(variables: Vec<Variable>) -> Vec<PyVariable> {
    variables.into_iter().map(PyVariable).collect()
}

#[pymethods]
impl PyVariable {
    /// The variable with its axes in reverse order.
    #[getter]
    #[pyo3(name = "T")]
    fn transposed(&self, py: Python<'_>) -> Result<PyVariable> {
        self.map(py, |variable| {
            let rank = variable.shape().rank() as isize;
            variable.permute(&(0..rank).rev().collect::<Vec<_>>())
        })
    }

    /// The variable with its last two axes exchanged.
    #[getter]
    #[pyo3(name = "mT")]
    fn matrices_transposed(&self, py: Python<'_>) -> Result<PyVariable> {
        self.map(py, |variable| variable.transpose(-2, -1))
    }

    #[doc = doc!(transpose)]
    #[pyo3(signature = (first=InRange(-2), second=InRange(-1)), text_signature = "($self, first=-2, second=-1)")]
    fn transpose(&self, py: Python<'_>, first: InRange<isize>, second: InRange<isize>) -> Result<PyVariable> {
        self.map(py, |variable| variable.transpose(first.0, second.0))
    }

    #[doc = doc!(t)]
    fn t(&self, py: Python<'_>) -> Result<PyVariable> {
        self.map(py, |variable| variable.t())
    }

    #[doc = doc!(permute)]
    #[pyo3(signature = (*axes))]
    fn permute(&self, py: Python<'_>, axes: &Bound<'_, PyTuple>) -> Result<PyVariable> {
        let axes = spread(axes)?;
        self.map(py, |variable| variable.permute(&axes))
    }

    #[doc = doc!(reshape)]
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> Result<PyVariable> {
        let shape = spread(shape)?;
        self.map(py, |variable| variable.reshape(&shape))
    }

    #[doc = doc!(flatten)]
    #[pyo3(signature = (first=InRange(0), last=InRange(-1)), text_signature = "($self, first=0, last=-1)")]
    fn flatten(&self, py: Python<'_>, first: InRange<isize>, last: InRange<isize>) -> Result<PyVariable> {
        self.map(py, |variable| variable.flatten(first.0, last.0))
    }

    #[doc = doc!(unflatten)]
    #[pyo3(signature = (axis=None, sizes=None, *, dim=None), text_signature = "($self, axis, sizes, *, dim=None)")]
    fn unflatten(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        sizes: Option<Integers>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyVariable> {
        let axis = given_axis("unflatten", axis, dim)?;
        let sizes = given("unflatten", "sizes", sizes)?;
        self.map(py, |variable| variable.unflatten(axis, &sizes.0))
    }

    #[doc = doc!(expand)]
    #[pyo3(signature = (*shape))]
    fn expand(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> Result<PyVariable> {
        let shape = sizes("expand", spread(shape)?)?;
        self.map(py, |variable| variable.expand(&shape))
    }

    #[doc = doc!(movedim)]
    fn movedim(&self, py: Python<'_>, from_axes: Integers, to_axes: Integers) -> Result<PyVariable> {
        self.map(py, |variable| variable.movedim(&from_axes.0, &to_axes.0))
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
    ) -> Result<PyVariable> {
        let axis = either("squeeze", ["axis", "dim"], axis, dim)?;
        self.map(py, |variable| match axis {
            Some(axis) => variable.squeeze(axis.0),
            None => variable.squeeze_all(),
        })
    }

    #[doc = doc!(unsqueeze)]
    #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis, *, dim=None)")]
    fn unsqueeze(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyVariable> {
        let axis = given_axis("unsqueeze", axis, dim)?;
        self.map(py, |variable| variable.unsqueeze(axis))
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
    ) -> Result<PyVariable> {
        let axis = given_axis("narrow", axis, dim)?;
        let start = given("narrow", "start", start)?;
        let length = given("narrow", "length", length)?;
        self.map(py, |variable| variable.narrow(axis, start.0, length.0))
    }

    #[doc = doc!(select)]
    #[pyo3(signature = (axis=None, index=None, *, dim=None), text_signature = "($self, axis, index, *, dim=None)")]
    fn select(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        index: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyVariable> {
        let axis = given_axis("select", axis, dim)?;
        let index = given("select", "index", index)?;
        self.map(py, |variable| variable.select(axis, index.0))
    }

    #[doc = doc!(split)]
    #[pyo3(signature = (sizes, axis=None, *, dim=None), text_signature = "($self, sizes, axis=0, *, dim=None)")]
    fn split(
        &self,
        py: Python<'_>,
        sizes: Sizes,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<Vec<PyVariable>> {
        let axis = axis_or("split", axis, dim, 0)?;
        self.run(py, |variable| variable.split(&sizes.0, axis)).map(list)
    }

    #[doc = doc!(chunk)]
    #[pyo3(signature = (count, axis=None, *, dim=None), text_signature = "($self, count, axis=0, *, dim=None)")]
    fn chunk(
        &self,
        py: Python<'_>,
        count: InRange<usize>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<Vec<PyVariable>> {
        let axis = axis_or("chunk", axis, dim, 0)?;
        self.run(py, |variable| variable.chunk(count.0, axis)).map(list)
    }

    #[doc = doc!(unbind)]
    #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis=0, *, dim=None)")]
    fn unbind(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<Vec<PyVariable>> {
        let axis = axis_or("unbind", axis, dim, 0)?;
        self.run(py, |variable| variable.unbind(axis)).map(list)
    }

    #[doc = doc!(diagonal)]
    #[pyo3(signature = (offset=InRange(0), first=InRange(0), second=InRange(1)), text_signature = "($self, offset=0, first=0, second=1)")]
    fn diagonal(
        &self,
        py: Python<'_>,
        offset: InRange<isize>,
        first: InRange<isize>,
        second: InRange<isize>,
    ) -> Result<PyVariable> {
        self.map(py, |variable| variable.diagonal(offset.0, first.0, second.0))
    }

    #[doc = doc!(flip)]
    #[pyo3(signature = (axes=None, *, dims=None), text_signature = "($self, axes, *, dims=None)")]
    fn flip(&self, py: Python<'_>, axes: Option<Integers>, dims: Option<Integers>) -> Result<PyVariable> {
        let axes = given("flip", "axes", either("flip", ["axes", "dims"], axes, dims)?)?;
        self.map(py, |variable| variable.flip(&axes.0))
    }

    #[doc = doc!(roll)]
    #[pyo3(signature = (shifts, axes=None, *, dims=None), text_signature = "($self, shifts, axes, *, dims=None)")]
    fn roll(
        &self,
        py: Python<'_>,
        shifts: Integers,
        axes: Option<Integers>,
        dims: Option<Integers>,
    ) -> Result<PyVariable> {
        let axes = given("roll", "axes", either("roll", ["axes", "dims"], axes, dims)?)?;
        self.map(py, |variable| variable.roll(&shifts.0, &axes.0))
    }

    #[doc = doc!(repeat)]
    #[pyo3(signature = (*times))]
    fn repeat(&self, py: Python<'_>, times: &Bound<'_, PyTuple>) -> Result<PyVariable> {
        let times = sizes("repeat", spread(times)?)?;
        self.map(py, |variable| variable.repeat(&times))
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
    ) -> Result<PyVariable> {
        let padding = padding(mode, value)?;
        let widths: Vec<_> = widths.into_iter().map(|(before, behind)| (before.0, behind.0)).collect();
        self.map(py, |variable| variable.pad(&widths, padding))
    }

    #[doc = doc!(tril)]
    #[pyo3(signature = (diagonal=InRange(0)), text_signature = "($self, diagonal=0)")]
    fn tril(&self, py: Python<'_>, diagonal: InRange<isize>) -> Result<PyVariable> {
        self.map(py, |variable| variable.tril(diagonal.0))
    }

    #[doc = doc!(triu)]
    #[pyo3(signature = (diagonal=InRange(0)), text_signature = "($self, diagonal=0)")]
    fn triu(&self, py: Python<'_>, diagonal: InRange<isize>) -> Result<PyVariable> {
        self.map(py, |variable| variable.triu(diagonal.0))
    }

    #[doc = doc!(masked_fill)]
    fn masked_fill(&self, py: Python<'_>, mask: IndexArgument, value: NumberArgument) -> Result<PyVariable> {
        self.map(py, |variable| variable.masked_fill(&mask.0, value.0))
    }

    #[doc = doc!(masked_select)]
    fn masked_select(&self, py: Python<'_>, mask: IndexArgument) -> Result<PyVariable> {
        self.map(py, |variable| variable.masked_select(&mask.0))
    }

    #[doc = doc!(take)]
    fn take(&self, py: Python<'_>, index: IndexArgument) -> Result<PyVariable> {
        self.map(py, |variable| variable.take(&index.0))
    }
}

macro_rules! by_index {
    ([$($read:ident)*] [$($added:ident)*]) => {
        #[pymethods]
        impl PyVariable {
            $(
                #[doc = doc!($read)]
                #[pyo3(signature = (axis=None, index=None, *, dim=None), text_signature = "($self, axis, index, *, dim=None)")]
                fn $read(
                    &self,
                    py: Python<'_>,
                    axis: Option<InRange<isize>>,
                    index: Option<IndexArgument>,
                    dim: Option<InRange<isize>>,
                ) -> Result<PyVariable> {
                    let axis = given_axis(stringify!($read), axis, dim)?;
                    let index = given(stringify!($read), "index", index)?;
                    self.map(py, |variable| variable.$read(axis, &index.0))
                }
            )*

            $(
                #[doc = doc!($added)]
                #[pyo3(signature = (axis=None, index=None, elements=None, *, dim=None), text_signature = "($self, axis, index, elements, *, dim=None)")]
                fn $added(
                    &self,
                    py: Python<'_>,
                    axis: Option<InRange<isize>>,
                    index: Option<IndexArgument>,
                    elements: Option<VariableArgument>,
                    dim: Option<InRange<isize>>,
                ) -> Result<PyVariable> {
                    let axis = given_axis(stringify!($added), axis, dim)?;
                    let index = given(stringify!($added), "index", index)?;
                    let elements = given(stringify!($added), "elements", elements)?;
                    self.map(py, |variable| variable.$added(axis, &index.0, &elements.0))
                }
            )*
        }
    };
}

by_index! { [index_select gather take_along_axis] [index_add scatter_add] }

macro_rules! joins {
    ($($(#[doc = $document:literal])* $name:ident)*) => {$(
        $(#[doc = $document])*
        #[pyfunction]
        #[pyo3(signature = (variables, axis=None, *, dim=None), text_signature = "(variables, axis=0, *, dim=None)")]
        pub fn $name(
            py: Python<'_>,
            variables: Vec<VariableArgument>,
            axis: Option<InRange<isize>>,
            dim: Option<InRange<isize>>,
        ) -> Result<PyVariable> {
            let axis = axis_or(stringify!($name), axis, dim, 0)?;
            let variables: Vec<Variable> = variables.into_iter().map(|variable| variable.0).collect();
            let joined = py.detach(|| Variable::$name(&variables.iter().collect::<Vec<_>>(), axis))?;
            Ok(PyVariable(joined))
        }
    )*};
}

joins! {
    /// The variables one after another along an axis.
    ///
    /// >>> sv.nn.cat([sv.nn.Variable([1.0]), sv.Tensor([2.0])]).tolist()
    /// [1.0, 2.0]
    cat
    /// The variables along a new axis.
    ///
    /// >>> sv.nn.stack([sv.nn.Variable([1.0]), sv.Tensor([2.0])]).tolist()
    /// [[1.0], [2.0]]
    stack
}
