//! Reductions, statistics and scans. `axis=None` folds all axes.

use pyo3::prelude::*;

use super::PyTensor;
use crate::arguments::{AxesArgument, InRange, TensorArgument, axes_or_all, axis_or, either, given_axis};
use crate::error::Result;

/// Returns the correction of a variance, which NumPy names `ddof` and PyTorch once named `unbiased`.
pub(crate) fn correction(
    operation: &'static str,
    correction: Option<InRange<usize>>,
    ddof: Option<InRange<usize>>,
    unbiased: Option<bool>,
) -> Result<usize> {
    let unbiased = unbiased.map(|unbiased| InRange(usize::from(unbiased)));
    let named = either(operation, ["ddof", "unbiased"], ddof, unbiased)?;
    let given = either(operation, ["correction", "ddof or unbiased"], correction, named)?;
    Ok(given.map_or(1, |correction| correction.0))
}

macro_rules! reductions {
    ($($name:ident $keepdim:ident)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                #[doc = doc!($name)]
                #[pyo3(signature = (axis=None, keepdim=false, *, dim=None, keepdims=false))]
                fn $name(
                    &self,
                    py: Python<'_>,
                    axis: Option<AxesArgument>,
                    keepdim: bool,
                    dim: Option<AxesArgument>,
                    keepdims: bool,
                ) -> Result<PyTensor> {
                    let axis = axes_or_all(stringify!($name), axis, dim)?;
                    self.map(py, |tensor| match keepdim || keepdims {
                        true => tensor.$keepdim(axis.axes()),
                        false => tensor.$name(axis.axes()),
                    })
                }
            )*
        }
    };
}

reductions! {
    sum sum_keepdim prod prod_keepdim min min_keepdim max max_keepdim argmin argmin_keepdim argmax argmax_keepdim
    any any_keepdim all all_keepdim count_nonzero count_nonzero_keepdim mean mean_keepdim logsumexp logsumexp_keepdim
}

macro_rules! deviations {
    ([$($name:ident $keepdim:ident)*] [$($with_mean:ident)*]) => {
        #[pymethods]
        impl PyTensor {
            $(
                #[doc = doc!($name)]
                #[pyo3(
                    signature = (axis=None, keepdim=false, correction=None, *, dim=None, keepdims=false, ddof=None, unbiased=None),
                    text_signature = "($self, axis=None, keepdim=False, correction=1, *, dim=None, keepdims=False, ddof=None, unbiased=None)"
                )]
                #[allow(clippy::too_many_arguments, reason = "the names of NumPy and PyTorch")]
                fn $name(
                    &self,
                    py: Python<'_>,
                    axis: Option<AxesArgument>,
                    keepdim: bool,
                    correction: Option<InRange<usize>>,
                    dim: Option<AxesArgument>,
                    keepdims: bool,
                    ddof: Option<InRange<usize>>,
                    unbiased: Option<bool>,
                ) -> Result<PyTensor> {
                    let axis = axes_or_all(stringify!($name), axis, dim)?;
                    let correction = self::correction(stringify!($name), correction, ddof, unbiased)?;
                    self.map(py, |tensor| match keepdim || keepdims {
                        true => tensor.$keepdim(axis.axes(), correction),
                        false => tensor.$name(axis.axes(), correction),
                    })
                }
            )*

            $(
                #[doc = doc!($with_mean)]
                #[pyo3(
                    signature = (axis=None, correction=None, *, dim=None, ddof=None, unbiased=None),
                    text_signature = "($self, axis=None, correction=1, *, dim=None, ddof=None, unbiased=None)"
                )]
                #[allow(clippy::too_many_arguments, reason = "the names of NumPy and PyTorch")]
                fn $with_mean(
                    &self,
                    py: Python<'_>,
                    axis: Option<AxesArgument>,
                    correction: Option<InRange<usize>>,
                    dim: Option<AxesArgument>,
                    ddof: Option<InRange<usize>>,
                    unbiased: Option<bool>,
                ) -> Result<(PyTensor, PyTensor)> {
                    let axis = axes_or_all(stringify!($with_mean), axis, dim)?;
                    let correction = self::correction(stringify!($with_mean), correction, ddof, unbiased)?;
                    self.map_two(py, |tensor| tensor.$with_mean(axis.axes(), correction))
                }
            )*
        }
    };
}

deviations! { [var var_keepdim std std_keepdim] [std_mean var_mean] }

macro_rules! along_axis {
    ([$($one:ident)*] [$($two:ident)*] [$($median:ident $median_all:ident)*] [$($quantile:ident $quantile_all:ident)*]) => {
        #[pymethods]
        impl PyTensor {
            $(
                #[doc = doc!($one)]
                #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis, *, dim=None)")]
                fn $one(
                    &self,
                    py: Python<'_>,
                    axis: Option<InRange<isize>>,
                    dim: Option<InRange<isize>>,
                ) -> Result<PyTensor> {
                    let axis = given_axis(stringify!($one), axis, dim)?;
                    self.map(py, |tensor| tensor.$one(axis))
                }
            )*

            $(
                #[doc = doc!($two)]
                #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis=-1, *, dim=None)")]
                fn $two(
                    &self,
                    py: Python<'_>,
                    axis: Option<InRange<isize>>,
                    dim: Option<InRange<isize>>,
                ) -> Result<(PyTensor, PyTensor)> {
                    let axis = axis_or(stringify!($two), axis, dim, -1)?;
                    self.map_two(py, |tensor| tensor.$two(axis))
                }
            )*

            $(
                #[doc = doc!($median)]
                ///
                /// Without an axis: the median of all elements, without positions.
                #[pyo3(signature = (axis=None, *, dim=None))]
                fn $median<'py>(
                    &self,
                    py: Python<'py>,
                    axis: Option<InRange<isize>>,
                    dim: Option<InRange<isize>>,
                ) -> Result<Bound<'py, PyAny>> {
                    match either(stringify!($median), ["axis", "dim"], axis, dim)? {
                        Some(axis) => {
                            let both = self.map_two(py, |tensor| tensor.$median(axis.0))?;
                            Ok(both.into_pyobject(py)?.into_any())
                        }
                        None => {
                            let median = self.map(py, |tensor| tensor.$median_all())?;
                            Ok(Bound::new(py, median)?.into_any())
                        }
                    }
                }
            )*

            $(
                #[doc = doc!($quantile)]
                ///
                /// Without an axis: the quantile of all elements.
                #[pyo3(signature = (q, axis=None, *, dim=None))]
                fn $quantile(
                    &self,
                    py: Python<'_>,
                    q: InRange<f64>,
                    axis: Option<InRange<isize>>,
                    dim: Option<InRange<isize>>,
                ) -> Result<PyTensor> {
                    let axis = either(stringify!($quantile), ["axis", "dim"], axis, dim)?;
                    self.map(py, |tensor| match axis {
                        Some(axis) => tensor.$quantile(q.0, axis.0),
                        None => tensor.$quantile_all(q.0),
                    })
                }
            )*
        }
    };
}

along_axis! {
    [cumsum cumprod cummax cummin]
    [max_with_indices min_with_indices mode]
    [median median_all nanmedian nanmedian_all]
    [quantile quantile_all nanquantile nanquantile_all]
}

#[pymethods]
impl PyTensor {
    #[doc = doc!(norm)]
    #[pyo3(signature = (p=InRange(2.0), axis=None, keepdim=false, *, dim=None, keepdims=false), text_signature = "($self, p=2.0, axis=None, keepdim=False, *, dim=None, keepdims=False)")]
    fn norm(
        &self,
        py: Python<'_>,
        p: InRange<f64>,
        axis: Option<AxesArgument>,
        keepdim: bool,
        dim: Option<AxesArgument>,
        keepdims: bool,
    ) -> Result<PyTensor> {
        let axis = axes_or_all("norm", axis, dim)?;
        self.map(py, |tensor| match keepdim || keepdims {
            true => tensor.norm_keepdim(p.0, axis.axes()),
            false => tensor.norm(p.0, axis.axes()),
        })
    }

    #[doc = doc!(nansum)]
    #[pyo3(signature = (axis=None, *, dim=None))]
    fn nansum(
        &self,
        py: Python<'_>,
        axis: Option<AxesArgument>,
        dim: Option<AxesArgument>,
    ) -> Result<PyTensor> {
        let axis = axes_or_all("nansum", axis, dim)?;
        self.map(py, |tensor| tensor.nansum(axis.axes()))
    }

    #[doc = doc!(nanmean)]
    #[pyo3(signature = (axis=None, *, dim=None))]
    fn nanmean(
        &self,
        py: Python<'_>,
        axis: Option<AxesArgument>,
        dim: Option<AxesArgument>,
    ) -> Result<PyTensor> {
        let axis = axes_or_all("nanmean", axis, dim)?;
        self.map(py, |tensor| tensor.nanmean(axis.axes()))
    }

    #[doc = doc!(aminmax)]
    #[pyo3(signature = (axis=None, *, dim=None))]
    fn aminmax(
        &self,
        py: Python<'_>,
        axis: Option<AxesArgument>,
        dim: Option<AxesArgument>,
    ) -> Result<(PyTensor, PyTensor)> {
        let axis = axes_or_all("aminmax", axis, dim)?;
        self.map_two(py, |tensor| tensor.aminmax(axis.axes()))
    }

    #[doc = doc!(diff)]
    #[pyo3(signature = (order=InRange(1), axis=None, *, dim=None), text_signature = "($self, order=1, axis=-1, *, dim=None)")]
    fn diff(
        &self,
        py: Python<'_>,
        order: InRange<usize>,
        axis: Option<InRange<isize>>,
        dim: Option<InRange<isize>>,
    ) -> Result<PyTensor> {
        let axis = axis_or("diff", axis, dim, -1)?;
        self.map(py, |tensor| tensor.diff(order.0, axis))
    }

    #[doc = doc!(cov)]
    #[pyo3(signature = (correction=None, *, ddof=None), text_signature = "($self, correction=1, *, ddof=None)")]
    fn cov(
        &self,
        py: Python<'_>,
        correction: Option<InRange<usize>>,
        ddof: Option<InRange<usize>>,
    ) -> Result<PyTensor> {
        let correction = self::correction("cov", correction, ddof, None)?;
        self.map(py, |tensor| tensor.cov(correction))
    }

    #[doc = doc!(corrcoef)]
    fn corrcoef(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.corrcoef())
    }

    #[doc = doc!(cdist)]
    #[pyo3(signature = (other, p=InRange(2.0)), text_signature = "($self, other, p=2.0)")]
    fn cdist(&self, py: Python<'_>, other: TensorArgument, p: InRange<f64>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.cdist(&other.0, p.0))
    }
}
