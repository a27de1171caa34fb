//! Reductions, statistics and scans. `axis=None` folds all axes.

use pyo3::prelude::*;

use super::PyTensor;
use crate::arguments::{AxesArgument, TensorArgument};
use crate::error::Result;

macro_rules! reductions {
    ($($name:ident $keepdim:ident [$($first:ident: $first_type:ty = $first_default:tt)?] [$($last:ident: $last_type:ty = $last_default:tt)?];)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                #[pyo3(signature = ($($first=$first_default,)? axis=AxesArgument::All, keepdim=false $(, $last=$last_default)?))]
                fn $name(
                    &self,
                    py: Python<'_>,
                    $($first: $first_type,)?
                    axis: AxesArgument,
                    keepdim: bool,
                    $($last: $last_type,)?
                ) -> Result<PyTensor> {
                    self.map(py, |tensor| match keepdim {
                        true => tensor.$keepdim($($first,)? axis.axes() $(, $last)?),
                        false => tensor.$name($($first,)? axis.axes() $(, $last)?),
                    })
                }
            )*
        }
    };
}

reductions! {
    sum sum_keepdim [] [];
    prod prod_keepdim [] [];
    min min_keepdim [] [];
    max max_keepdim [] [];
    argmin argmin_keepdim [] [];
    argmax argmax_keepdim [] [];
    any any_keepdim [] [];
    all all_keepdim [] [];
    count_nonzero count_nonzero_keepdim [] [];
    mean mean_keepdim [] [];
    var var_keepdim [] [correction: usize = 1];
    std std_keepdim [] [correction: usize = 1];
    norm norm_keepdim [p: f64 = 2.0] [];
    logsumexp logsumexp_keepdim [] [];
}

macro_rules! along_axis {
    ([$($one:ident)*] [$($two:ident)*]) => {
        #[pymethods]
        impl PyTensor {
            $(fn $one(&self, py: Python<'_>, axis: isize) -> Result<PyTensor> {
                self.map(py, |tensor| tensor.$one(axis))
            })*

            $(#[pyo3(signature = (axis=-1))]
            fn $two(&self, py: Python<'_>, axis: isize) -> Result<(PyTensor, PyTensor)> {
                self.map_two(py, |tensor| tensor.$two(axis))
            })*
        }
    };
}

along_axis! {
    [cumsum cumprod cummax cummin]
    [max_with_indices min_with_indices median nanmedian mode]
}

#[pymethods]
impl PyTensor {
    #[pyo3(signature = (axis=AxesArgument::All))]
    fn nansum(&self, py: Python<'_>, axis: AxesArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.nansum(axis.axes()))
    }

    #[pyo3(signature = (axis=AxesArgument::All))]
    fn nanmean(&self, py: Python<'_>, axis: AxesArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.nanmean(axis.axes()))
    }

    #[pyo3(signature = (axis=AxesArgument::All))]
    fn aminmax(&self, py: Python<'_>, axis: AxesArgument) -> Result<(PyTensor, PyTensor)> {
        self.map_two(py, |tensor| tensor.aminmax(axis.axes()))
    }

    #[pyo3(signature = (axis=AxesArgument::All, correction=1))]
    fn std_mean(
        &self,
        py: Python<'_>,
        axis: AxesArgument,
        correction: usize,
    ) -> Result<(PyTensor, PyTensor)> {
        self.map_two(py, |tensor| tensor.std_mean(axis.axes(), correction))
    }

    #[pyo3(signature = (axis=AxesArgument::All, correction=1))]
    fn var_mean(
        &self,
        py: Python<'_>,
        axis: AxesArgument,
        correction: usize,
    ) -> Result<(PyTensor, PyTensor)> {
        self.map_two(py, |tensor| tensor.var_mean(axis.axes(), correction))
    }

    #[pyo3(signature = (order=1, axis=-1))]
    fn diff(&self, py: Python<'_>, order: usize, axis: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.diff(order, axis))
    }

    #[pyo3(signature = (correction=1))]
    fn cov(&self, py: Python<'_>, correction: usize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.cov(correction))
    }

    fn corrcoef(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.corrcoef())
    }

    #[pyo3(signature = (other, p=2.0))]
    fn cdist(&self, py: Python<'_>, other: TensorArgument, p: f64) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.cdist(&other.0, p))
    }

    #[pyo3(signature = (q, axis=-1))]
    fn quantile(&self, py: Python<'_>, q: f64, axis: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.quantile(q, axis))
    }

    #[pyo3(signature = (q, axis=-1))]
    fn nanquantile(&self, py: Python<'_>, q: f64, axis: isize) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.nanquantile(q, axis))
    }
}
