//! Softmax, normalisation and products.

use pyo3::prelude::*;

use super::PyTensor;
use crate::arguments::{AxesArgument, Sizes, TensorArgument};
use crate::error::Result;

fn given(tensor: &Option<TensorArgument>) -> Option<&selvedge::Tensor> {
    tensor.as_ref().map(|tensor| &tensor.0)
}

#[pymethods]
impl PyTensor {
    #[pyo3(signature = (axis=-1))]
    fn softmax(&self, py: Python<'_>, axis: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.softmax(axis))
    }

    #[pyo3(signature = (axis=-1))]
    fn log_softmax(&self, py: Python<'_>, axis: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.log_softmax(axis))
    }

    #[pyo3(signature = (normalized_shape, weight=None, bias=None, eps=1e-5))]
    fn layer_norm(
        &self,
        py: Python<'_>,
        normalized_shape: Sizes,
        weight: Option<TensorArgument>,
        bias: Option<TensorArgument>,
        eps: f64,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.layer_norm(&normalized_shape.0, given(&weight), given(&bias), eps))
    }

    #[pyo3(signature = (normalized_shape, weight=None, eps=None))]
    fn rms_norm(
        &self,
        py: Python<'_>,
        normalized_shape: Sizes,
        weight: Option<TensorArgument>,
        eps: Option<f64>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.rms_norm(&normalized_shape.0, given(&weight), eps))
    }

    #[pyo3(signature = (num_groups, weight=None, bias=None, eps=1e-5))]
    fn group_norm(
        &self,
        py: Python<'_>,
        num_groups: usize,
        weight: Option<TensorArgument>,
        bias: Option<TensorArgument>,
        eps: f64,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.group_norm(num_groups, given(&weight), given(&bias), eps))
    }

    #[pyo3(signature = (running_mean, running_var, weight=None, bias=None, eps=1e-5))]
    fn batch_norm(
        &self,
        py: Python<'_>,
        running_mean: TensorArgument,
        running_var: TensorArgument,
        weight: Option<TensorArgument>,
        bias: Option<TensorArgument>,
        eps: f64,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| {
            tensor.batch_norm(&running_mean.0, &running_var.0, given(&weight), given(&bias), eps)
        })
    }

    #[pyo3(signature = (p=2.0, axis=AxesArgument::Of(vec![1]), eps=1e-12))]
    fn normalize(&self, py: Python<'_>, p: f64, axis: AxesArgument, eps: f64) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.normalize(p, axis.axes(), eps))
    }

    #[pyo3(signature = (axis=AxesArgument::Of(vec![-1])))]
    fn standardize(&self, py: Python<'_>, axis: AxesArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.standardize(axis.axes()))
    }
}

macro_rules! with_other {
    ($($name:ident)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(&self, py: Python<'_>, other: TensorArgument) -> Result<PyTensor> {
                self.map(py, |tensor| tensor.$name(&other.0))
            })*
        }
    };
}

with_other! { matmul gemv dot outer kron }
