//! Softmax, normalisation and products.

use pyo3::prelude::*;

use super::PyTensor;
use crate::arguments::{AxesArgument, InRange, Sizes, TensorArgument, axis_or, either};
use crate::error::Result;

fn given(tensor: &Option<TensorArgument>) -> Option<&selvedge::Tensor> {
    tensor.as_ref().map(|tensor| &tensor.0)
}

#[pymethods]
impl PyTensor {
    #[doc = doc!(softmax)]
    #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis=-1, *, dim=None)")]
    fn softmax(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = axis_or("softmax", axis, dim, -1)?;
        self.map(py, |tensor| tensor.softmax(axis))
    }

    #[doc = doc!(log_softmax)]
    #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis=-1, *, dim=None)")]
    fn log_softmax(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = axis_or("log_softmax", axis, dim, -1)?;
        self.map(py, |tensor| tensor.log_softmax(axis))
    }

    #[doc = doc!(layer_norm)]
    #[pyo3(signature = (normalized_shape, weight=None, bias=None, eps=InRange(1e-5)), text_signature = "($self, normalized_shape, weight=None, bias=None, eps=1e-5)")]
    fn layer_norm(
        &self,
        py: Python<'_>,
        normalized_shape: Sizes,
        weight: Option<TensorArgument>,
        bias: Option<TensorArgument>,
        eps: InRange<f64>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.layer_norm(&normalized_shape.0, given(&weight), given(&bias), eps.0))
    }

    #[doc = doc!(rms_norm)]
    #[pyo3(signature = (normalized_shape, weight=None, eps=None))]
    fn rms_norm(
        &self,
        py: Python<'_>,
        normalized_shape: Sizes,
        weight: Option<TensorArgument>,
        eps: Option<InRange<f64>>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.rms_norm(&normalized_shape.0, given(&weight), eps.map(|eps| eps.0)))
    }

    #[doc = doc!(group_norm)]
    #[pyo3(signature = (num_groups, weight=None, bias=None, eps=InRange(1e-5)), text_signature = "($self, num_groups, weight=None, bias=None, eps=1e-5)")]
    fn group_norm(
        &self,
        py: Python<'_>,
        num_groups: InRange<usize>,
        weight: Option<TensorArgument>,
        bias: Option<TensorArgument>,
        eps: InRange<f64>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.group_norm(num_groups.0, given(&weight), given(&bias), eps.0))
    }

    #[doc = doc!(batch_norm)]
    #[pyo3(signature = (running_mean, running_var, weight=None, bias=None, eps=InRange(1e-5)), text_signature = "($self, running_mean, running_var, weight=None, bias=None, eps=1e-5)")]
    fn batch_norm(
        &self,
        py: Python<'_>,
        running_mean: TensorArgument,
        running_var: TensorArgument,
        weight: Option<TensorArgument>,
        bias: Option<TensorArgument>,
        eps: InRange<f64>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| {
            tensor.batch_norm(&running_mean.0, &running_var.0, given(&weight), given(&bias), eps.0)
        })
    }

    #[doc = doc!(normalize)]
    #[pyo3(signature = (p=InRange(2.0), axis=None, eps=InRange(1e-12), *, dim=None), text_signature = "($self, p=2.0, axis=1, eps=1e-12, *, dim=None)")]
    fn normalize(
        &self,
        py: Python<'_>,
        p: InRange<f64>,
        axis: Option<AxesArgument>,
        eps: InRange<f64>,
        dim: Option<AxesArgument>,
    ) -> Result<PyTensor> {
        let axis = either("normalize", ["axis", "dim"], axis, dim)?.unwrap_or(AxesArgument::Of(vec![1]));
        self.map(py, |tensor| tensor.normalize(p.0, axis.axes(), eps.0))
    }

    #[doc = doc!(standardize)]
    #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis=-1, *, dim=None)")]
    fn standardize(
        &self,
        py: Python<'_>,
        axis: Option<AxesArgument>,
        dim: Option<AxesArgument>,
    ) -> Result<PyTensor> {
        let axis = either("standardize", ["axis", "dim"], axis, dim)?.unwrap_or(AxesArgument::Of(vec![-1]));
        self.map(py, |tensor| tensor.standardize(axis.axes()))
    }
}

macro_rules! with_other {
    ($($name:ident)*) => {
        #[pymethods]
        impl PyTensor {
            $(#[doc = doc!($name)]
            fn $name(&self, py: Python<'_>, other: TensorArgument) -> Result<PyTensor> {
                self.map(py, |tensor| tensor.$name(&other.0))
            })*
        }
    };
}

with_other! { gemv dot outer kron }
