//! Sorting, searching, sets and counts; gathering and scattering by index.

use pyo3::prelude::*;
use selvedge::fuse::Number;
use selvedge::tensor::ScatterReduction;

use super::PyTensor;
use crate::arguments::{InRange, NumberArgument, TensorArgument, axis_or, given, given_axis};
use crate::error::{Result, invalid};

/// Methods that sort along an axis, the last one by default.
macro_rules! sorts {
    ($($name:ident $map:ident $result:ty;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                #[doc = doc!($name)]
                #[pyo3(
                    signature = (axis=None, descending=false, *, dim=None),
                    text_signature = "($self, axis=-1, descending=False, *, dim=None)"
                )]
                fn $name(
                    &self,
                    py: Python<'_>,
                    axis: Option<InRange<isize>>,
                    descending: bool,
                    dim: Option<InRange<isize>>,
                ) -> Result<$result> {
                    let axis = axis_or(stringify!($name), axis, dim, -1)?;
                    self.$map(py, |tensor| tensor.$name(axis, descending))
                }
            )*
        }
    };
}

sorts! {
    sort map_two (PyTensor, PyTensor);
    sorted map PyTensor;
    argsort map PyTensor;
}

#[pymethods]
impl PyTensor {
    #[doc = doc!(msort)]
    fn msort(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.msort())
    }

    #[doc = doc!(topk)]
    #[pyo3(signature = (k, axis=None, largest=true, *, dim=None), text_signature = "($self, k, axis=-1, largest=True, *, dim=None)")]
    fn topk(
        &self,
        py: Python<'_>,
        k: InRange<usize>,
        axis: Option<InRange<isize>>,
        largest: bool,
        dim: Option<InRange<isize>>,
    ) -> Result<(PyTensor, PyTensor)> {
        let axis = axis_or("topk", axis, dim, -1)?;
        self.map_two(py, |tensor| tensor.topk(k.0, axis, largest))
    }

    #[doc = doc!(kthvalue)]
    #[pyo3(signature = (k, axis=None, *, dim=None), text_signature = "($self, k, axis=-1, *, dim=None)")]
    fn kthvalue(
        &self,
        py: Python<'_>,
        k: InRange<usize>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<(PyTensor, PyTensor)> {
        let axis = axis_or("kthvalue", axis, dim, -1)?;
        self.map_two(py, |tensor| tensor.kthvalue(k.0, axis))
    }

    #[doc = doc!(searchsorted)]
    #[pyo3(signature = (values, right=false))]
    fn searchsorted(&self, py: Python<'_>, values: TensorArgument, right: bool) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.searchsorted(&values.0, right))
    }

    #[doc = doc!(bucketize)]
    #[pyo3(signature = (boundaries, right=false))]
    fn bucketize(&self, py: Python<'_>, boundaries: TensorArgument, right: bool) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.bucketize(&boundaries.0, right))
    }

    #[doc = doc!(nonzero)]
    fn nonzero(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.nonzero())
    }

    #[doc = doc!(argwhere)]
    fn argwhere(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.argwhere())
    }

    #[doc = doc!(unique)]
    fn unique(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.unique())
    }

    #[doc = doc!(unique_with_counts)]
    fn unique_with_counts(&self, py: Python<'_>) -> Result<(PyTensor, PyTensor, PyTensor)> {
        self.run(py, |tensor| tensor.unique_with_counts())
            .map(|(values, places, counts)| (values.into(), places.into(), counts.into()))
    }

    #[doc = doc!(unique_consecutive)]
    fn unique_consecutive(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.unique_consecutive())
    }

    #[doc = doc!(unique_consecutive_with_counts)]
    fn unique_consecutive_with_counts(&self, py: Python<'_>) -> Result<(PyTensor, PyTensor, PyTensor)> {
        self.run(py, |tensor| tensor.unique_consecutive_with_counts())
            .map(|(values, places, counts)| (values.into(), places.into(), counts.into()))
    }

    #[doc = doc!(isin)]
    fn isin(&self, py: Python<'_>, elements: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.isin(&elements.0))
    }

    #[doc = doc!(bincount)]
    #[pyo3(signature = (minlength=InRange(0)), text_signature = "($self, minlength=0)")]
    fn bincount(&self, py: Python<'_>, minlength: InRange<usize>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.bincount(minlength.0))
    }

    #[doc = doc!(histc)]
    #[pyo3(signature = (bins=InRange(100), min=InRange(0.0), max=InRange(0.0)), text_signature = "($self, bins=100, min=0.0, max=0.0)")]
    fn histc(
        &self,
        py: Python<'_>,
        bins: InRange<usize>,
        min: InRange<f64>,
        max: InRange<f64>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.histc(bins.0, min.0, max.0))
    }

    #[doc = doc!(histogram)]
    fn histogram(&self, py: Python<'_>, edges: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.histogram(&edges.0))
    }

    #[doc = doc!(take)]
    fn take(&self, py: Python<'_>, index: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.take(&index.0))
    }

    #[doc = doc!(masked_select)]
    fn masked_select(&self, py: Python<'_>, mask: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.masked_select(&mask.0))
    }

    #[doc = doc!(masked_scatter)]
    fn masked_scatter(
        &self,
        py: Python<'_>,
        mask: TensorArgument,
        elements: TensorArgument,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.masked_scatter(&mask.0, &elements.0))
    }

    #[doc = doc!(put)]
    fn put(&self, py: Python<'_>, index: TensorArgument, elements: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.put(&index.0, &elements.0))
    }

    #[doc = doc!(one_hot)]
    fn one_hot(&self, py: Python<'_>, classes: InRange<usize>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.one_hot(classes.0))
    }

    #[doc = doc!(index_fill)]
    #[pyo3(signature = (axis=None, index=None, number=None, *, dim=None), text_signature = "($self, axis, index, number, *, dim=None)")]
    fn index_fill(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        index: Option<TensorArgument>,
        number: Option<NumberArgument>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = given_axis("index_fill", axis, dim)?;
        let index = given("index_fill", "index", index)?;
        let number = given("index_fill", "number", number)?;
        self.map(py, |tensor| tensor.index_fill(axis, &index.0, number.0))
    }

    #[doc = doc!(index_put)]
    #[pyo3(signature = (indices, elements, accumulate=false))]
    fn index_put(
        &self,
        py: Python<'_>,
        indices: Vec<TensorArgument>,
        elements: TensorArgument,
        accumulate: bool,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| {
            let indices: Vec<_> = indices.iter().map(|index| &index.0).collect();
            tensor.index_put(&indices, &elements.0, accumulate)
        })
    }

    #[doc = doc!(scatter_reduce)]
    ///
    /// `reduction` is "sum", "prod", "mean", "amin" or "amax".
    #[pyo3(signature = (axis=None, index=None, elements=None, reduction=None, include_self=true, *, dim=None), text_signature = "($self, axis, index, elements, reduction, include_self=True, *, dim=None)")]
    #[allow(clippy::too_many_arguments, reason = "the arguments of PyTorch, with both names of the axis")]
    fn scatter_reduce(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        index: Option<TensorArgument>,
        elements: Option<TensorArgument>,
        reduction: Option<&str>,
        include_self: bool,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = given_axis("scatter_reduce", axis, dim)?;
        let index = given("scatter_reduce", "index", index)?;
        let elements = given("scatter_reduce", "elements", elements)?;
        let reduction = given("scatter_reduce", "reduction", reduction)?;
        let reduction = scatter_reduction("scatter_reduce", reduction)?;
        self.map(py, |tensor| tensor.scatter_reduce(axis, &index.0, &elements.0, reduction, include_self))
    }

    #[doc = doc!(segment_reduce)]
    #[pyo3(signature = (lengths, reduction, initial=NumberArgument(Number::Integer(0))), text_signature = "($self, lengths, reduction, initial=0)")]
    fn segment_reduce(
        &self,
        py: Python<'_>,
        lengths: TensorArgument,
        reduction: &str,
        initial: NumberArgument,
    ) -> Result<PyTensor> {
        let reduction = scatter_reduction("segment_reduce", reduction)?;
        self.map(py, |tensor| tensor.segment_reduce(&lengths.0, reduction, initial.0))
    }

    #[doc = doc!(multinomial)]
    #[pyo3(signature = (count, replacement=false))]
    fn multinomial(&self, py: Python<'_>, count: InRange<usize>, replacement: bool) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.multinomial(count.0, replacement))
    }
}

/// Returns the reduction of a name.
fn scatter_reduction(operation: &'static str, name: &str) -> Result<ScatterReduction> {
    match name {
        "sum" => Ok(ScatterReduction::Sum),
        "prod" => Ok(ScatterReduction::Prod),
        "mean" => Ok(ScatterReduction::Mean),
        "amin" => Ok(ScatterReduction::Amin),
        "amax" => Ok(ScatterReduction::Amax),
        other => {
            let wanted = "\"sum\", \"prod\", \"mean\", \"amin\" or \"amax\"";
            Err(invalid(operation, format!("the reduction {other:?}"), wanted).into())
        }
    }
}

macro_rules! by_index {
    ([$($read:ident)*] [$($write:ident)*]) => {
        #[pymethods]
        impl PyTensor {
            $(#[doc = doc!($read)]
            #[pyo3(signature = (axis=None, index=None, *, dim=None), text_signature = "($self, axis, index, *, dim=None)")]
            fn $read(&self, py: Python<'_>, axis: Option<InRange<isize>>, index: Option<TensorArgument>, dim: Option<InRange<isize>>) -> Result<PyTensor> {
                let axis = given_axis(stringify!($read), axis, dim)?;
                let index = given(stringify!($read), "index", index)?;
                self.map(py, |tensor| tensor.$read(axis, &index.0))
            })*

            $(#[doc = doc!($write)]
            #[pyo3(signature = (axis=None, index=None, elements=None, *, dim=None), text_signature = "($self, axis, index, elements, *, dim=None)")]
            fn $write(
                &self,
                py: Python<'_>,
                axis: Option<InRange<isize>>,
                index: Option<TensorArgument>,
                elements: Option<TensorArgument>, dim: Option<InRange<isize>>) -> Result<PyTensor> {
                let axis = given_axis(stringify!($write), axis, dim)?;
                let index = given(stringify!($write), "index", index)?;
                let elements = given(stringify!($write), "elements", elements)?;
                self.map(py, |tensor| tensor.$write(axis, &index.0, &elements.0))
            })*
        }
    };
}

by_index! {
    [gather take_along_axis index_select]
    [scatter scatter_add index_copy index_add]
}
