//! Sorting, searching, sets and counts; gathering and scattering by index.

use pyo3::prelude::*;
use selvedge::fuse::Number;
use selvedge::tensor::ScatterReduction;

use super::PyTensor;
use crate::arguments::{NumberArgument, TensorArgument};
use crate::error::{Result, invalid};

#[pymethods]
impl PyTensor {
    /// The elements in order along an axis, and their positions before.
    #[pyo3(signature = (axis=-1, descending=false))]
    fn sort(&self, py: Python<'_>, axis: isize, descending: bool) -> Result<(PyTensor, PyTensor)> {
        self.map_two(py, |tensor| tensor.sort(axis, descending))
    }

    /// The elements in order along an axis.
    #[pyo3(signature = (axis=-1, descending=false))]
    fn sorted(&self, py: Python<'_>, axis: isize, descending: bool) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.sorted(axis, descending))
    }

    #[pyo3(signature = (axis=-1, descending=false))]
    fn argsort(&self, py: Python<'_>, axis: isize, descending: bool) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.argsort(axis, descending))
    }

    fn msort(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.msort())
    }

    /// The k largest or smallest elements along an axis in order, and their positions.
    #[pyo3(signature = (k, axis=-1, largest=true))]
    fn topk(&self, py: Python<'_>, k: usize, axis: isize, largest: bool) -> Result<(PyTensor, PyTensor)> {
        self.map_two(py, |tensor| tensor.topk(k, axis, largest))
    }

    #[pyo3(signature = (k, axis=-1))]
    fn kthvalue(&self, py: Python<'_>, k: usize, axis: isize) -> Result<(PyTensor, PyTensor)> {
        self.map_two(py, |tensor| tensor.kthvalue(k, axis))
    }

    #[pyo3(signature = (values, right=false))]
    fn searchsorted(&self, py: Python<'_>, values: TensorArgument, right: bool) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.searchsorted(&values.0, right))
    }

    #[pyo3(signature = (boundaries, right=false))]
    fn bucketize(&self, py: Python<'_>, boundaries: TensorArgument, right: bool) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.bucketize(&boundaries.0, right))
    }

    fn nonzero(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.nonzero())
    }

    fn argwhere(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.argwhere())
    }

    fn unique(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.unique())
    }

    /// The distinct elements, the place of each element among them, and their counts.
    fn unique_with_counts(&self, py: Python<'_>) -> Result<(PyTensor, PyTensor, PyTensor)> {
        self.run(py, |tensor| tensor.unique_with_counts())
            .map(|(values, places, counts)| (values.into(), places.into(), counts.into()))
    }

    fn unique_consecutive(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.unique_consecutive())
    }

    /// The first of each run of equal elements, the run of each element, and the lengths of the runs.
    fn unique_consecutive_with_counts(&self, py: Python<'_>) -> Result<(PyTensor, PyTensor, PyTensor)> {
        self.run(py, |tensor| tensor.unique_consecutive_with_counts())
            .map(|(values, places, counts)| (values.into(), places.into(), counts.into()))
    }

    fn isin(&self, py: Python<'_>, elements: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.isin(&elements.0))
    }

    #[pyo3(signature = (minlength=0))]
    fn bincount(&self, py: Python<'_>, minlength: usize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.bincount(minlength))
    }

    #[pyo3(signature = (bins=100, min=0.0, max=0.0))]
    fn histc(&self, py: Python<'_>, bins: usize, min: f64, max: f64) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.histc(bins, min, max))
    }

    fn histogram(&self, py: Python<'_>, edges: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.histogram(&edges.0))
    }

    fn take(&self, py: Python<'_>, index: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.take(&index.0))
    }

    fn masked_select(&self, py: Python<'_>, mask: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.masked_select(&mask.0))
    }

    fn masked_scatter(
        &self,
        py: Python<'_>,
        mask: TensorArgument,
        elements: TensorArgument,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.masked_scatter(&mask.0, &elements.0))
    }

    fn put(&self, py: Python<'_>, index: TensorArgument, elements: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.put(&index.0, &elements.0))
    }

    fn one_hot(&self, py: Python<'_>, classes: usize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.one_hot(classes))
    }

    fn index_fill(
        &self,
        py: Python<'_>,
        axis: isize,
        index: TensorArgument,
        number: NumberArgument,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.index_fill(axis, &index.0, number.0))
    }

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

    /// Combines elements at the places of an index; `reduction` is "sum", "prod", "mean", "amin" or "amax".
    #[pyo3(signature = (axis, index, elements, reduction, include_self=true))]
    fn scatter_reduce(
        &self,
        py: Python<'_>,
        axis: isize,
        index: TensorArgument,
        elements: TensorArgument,
        reduction: &str,
        include_self: bool,
    ) -> Result<PyTensor> {
        let reduction = scatter_reduction("scatter_reduce", reduction)?;
        self.map(py, |tensor| tensor.scatter_reduce(axis, &index.0, &elements.0, reduction, include_self))
    }

    /// Combines neighbouring rows: the first `lengths[0]`, the next `lengths[1]`, and so on. A length of 0 gives `initial`.
    #[pyo3(signature = (lengths, reduction, initial=NumberArgument(Number::Integer(0))))]
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

    #[pyo3(signature = (count, replacement=false))]
    fn multinomial(&self, py: Python<'_>, count: usize, replacement: bool) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.multinomial(count, replacement))
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
            $(fn $read(&self, py: Python<'_>, axis: isize, index: TensorArgument) -> Result<PyTensor> {
                self.map(py, |tensor| tensor.$read(axis, &index.0))
            })*

            $(fn $write(
                &self,
                py: Python<'_>,
                axis: isize,
                index: TensorArgument,
                elements: TensorArgument,
            ) -> Result<PyTensor> {
                self.map(py, |tensor| tensor.$write(axis, &index.0, &elements.0))
            })*
        }
    };
}

by_index! {
    [gather take_along_axis index_select]
    [scatter scatter_add index_copy index_add]
}
