//! `selvedge.srt.GoldenTensor` and `RunningStatistics`, and the functions that need more than the table.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use selvedge::gemm::Operation;
use selvedge::srt::{
    self, Checked, GoldenExact, GoldenInteger, GoldenNorm, GoldenTensor, ProductMode, RunningStatistics,
};

use super::arguments::{GoldenArgument, OperationArgument, ProductModeArgument, TargetArgument, given};
use super::exact::{ExactArgument, PyGoldenExact};
use crate::arguments::{DeviceArgument, InRange, NumberArgument, Sizes, TensorArgument};
use crate::device::device_or_default;
use crate::error::Result;
use crate::tensor::PyTensor;

/// Numbers a + b phi with integers a and b: two tensors of i64. A result that i64 does not hold is an ExactArithmeticError.
#[pyclass(name = "GoldenTensor", module = "selvedge.srt", frozen)]
pub struct PyGoldenTensor(pub GoldenTensor);

macro_rules! operations {
    ([$($unary:ident $one:ident)*] [$($binary:ident $two:ident)*] [$($to_tensor:ident)*]) => {
        #[pymethods]
        impl PyGoldenTensor {
            $(fn $unary(&self, py: Python<'_>) -> Result<PyGoldenTensor> {
                Ok(PyGoldenTensor(py.detach(|| self.0.$one().and_then(Checked::check))?))
            })*

            $(fn $binary(&self, py: Python<'_>, other: GoldenArgument) -> Result<PyGoldenTensor> {
                Ok(PyGoldenTensor(py.detach(|| self.0.$two(&other.0).and_then(Checked::check))?))
            })*

            $(fn $to_tensor(&self, py: Python<'_>) -> Result<PyTensor> {
                Ok(py.detach(|| self.0.$to_tensor().and_then(Checked::check))?.into())
            })*
        }
    };
}

#[allow(unsafe_op_in_unsafe_fn, reason = "PyO3 generates such code for operators that a macro names")]
mod operators {
    use super::*;

    operations! {
        [__neg__ neg conjugate conjugate recursion recursion recursion_inverse recursion_inverse]
        [__add__ add __sub__ sub __mul__ mul]
        [norm trace]
    }
}

#[pymethods]
impl PyGoldenTensor {
    #[new]
    fn new(a: TensorArgument, b: TensorArgument) -> Result<PyGoldenTensor> {
        Ok(PyGoldenTensor(GoldenTensor::new(a.0, b.0)?))
    }

    /// The multiples of 1.
    #[getter]
    fn a(&self) -> PyTensor {
        self.0.a().clone().into()
    }

    /// The multiples of phi.
    #[getter]
    fn b(&self) -> PyTensor {
        self.0.b().clone().into()
    }

    /// A tensor of exact numbers in row-major order, whose a and b are integers. Without a shape it is a vector.
    #[staticmethod]
    #[pyo3(signature = (numbers, shape=None, device=None))]
    fn from_numbers(
        numbers: Vec<ExactArgument>,
        shape: Option<Sizes>,
        device: Option<DeviceArgument>,
    ) -> Result<PyGoldenTensor> {
        let point = |number: ExactArgument| GoldenInteger::try_from(number.number()?);
        let points = numbers.into_iter().map(point).collect::<selvedge::Result<Vec<_>>>()?;
        let shape = shape.map_or_else(|| vec![points.len()], |shape| shape.0);
        Ok(PyGoldenTensor(GoldenTensor::from_slice(&points, &shape, &device_or_default(device))?))
    }

    /// The numbers in row-major order.
    fn to_numbers(&self, py: Python<'_>) -> Result<Vec<PyGoldenExact>> {
        let points = py.detach(|| self.0.to_vec())?;
        Ok(points.into_iter().map(|point| PyGoldenExact(GoldenExact::from(point))).collect())
    }

    /// a + b phi as f64.
    fn values(&self, py: Python<'_>) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.values())?.into())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        py.detach(|| format!("GoldenTensor(a={:?}, b={:?})", self.0.a(), self.0.b()))
    }
}

/// The mean and variance of each channel over batches: `RunningStatistics(channels, momentum=0.1)`.
#[pyclass(name = "RunningStatistics", module = "selvedge.srt", frozen)]
pub struct PyRunningStatistics(Mutex<RunningStatistics>);

impl PyRunningStatistics {
    fn with<T>(&self, work: impl FnOnce(&mut RunningStatistics) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl PyRunningStatistics {
    #[new]
    #[pyo3(signature = (channels, momentum=InRange(0.1), device=None), text_signature = "(channels, momentum=0.1, device=None)")]
    fn new(
        channels: InRange<usize>,
        momentum: InRange<f64>,
        device: Option<DeviceArgument>,
    ) -> Result<PyRunningStatistics> {
        let statistics = RunningStatistics::new(channels.0, momentum.0, &device_or_default(device))?;
        Ok(PyRunningStatistics(Mutex::new(statistics)))
    }

    /// The mean of each channel.
    #[getter]
    fn mean(&self, py: Python<'_>) -> PyTensor {
        py.detach(|| self.with(|statistics| statistics.mean().clone())).into()
    }

    /// The variance of each channel.
    #[getter]
    fn variance(&self, py: Python<'_>) -> PyTensor {
        py.detach(|| self.with(|statistics| statistics.variance().clone())).into()
    }

    /// A batch that is normalized with these statistics, as in inference.
    #[pyo3(signature = (v, target=TargetArgument(srt::GoldenTarget::Golden), gamma=None, beta=None, eps=1e-5))]
    fn normalize(
        &self,
        py: Python<'_>,
        v: TensorArgument,
        target: TargetArgument,
        gamma: Option<TensorArgument>,
        beta: Option<TensorArgument>,
        eps: f64,
    ) -> Result<PyTensor> {
        let norm = GoldenNorm { target: target.0, gamma: given(&gamma), beta: given(&beta), eps };
        Ok(py.detach(|| self.with(|statistics| statistics.normalize(&v.0, &norm)))?.into())
    }
}

macro_rules! batch_norms {
    ($($name:ident $document:literal)*) => {$(
        #[doc = $document]
        #[pyfunction]
        #[pyo3(signature = (v, target=TargetArgument(srt::GoldenTarget::Golden), gamma=None, beta=None, eps=1e-5, running=None))]
        fn $name(
            py: Python<'_>,
            v: TensorArgument,
            target: TargetArgument,
            gamma: Option<TensorArgument>,
            beta: Option<TensorArgument>,
            eps: f64,
            running: Option<&Bound<'_, PyRunningStatistics>>,
        ) -> Result<PyTensor> {
            let norm = GoldenNorm { target: target.0, gamma: given(&gamma), beta: given(&beta), eps };
            let running = running.map(|running| running.get());
            Ok(py.detach(|| match running {
                Some(running) => running.with(|statistics| srt::$name(&v.0, &norm, Some(statistics))),
                None => srt::$name(&v.0, &norm, None),
            })?.into())
        }
    )*};
}

batch_norms! {
    golden_batch_norm_1d "Normalizes each feature of a batch (B, F) to a variance of 1/phi, and updates the running statistics."
    golden_batch_norm_2d "Normalizes each channel of a batch (B, C, H, W) to a variance of 1/phi, and updates the running statistics."
}

/// Normalizes each row along the last axis to a variance of 1/phi, 1 or the target.
#[pyfunction]
#[pyo3(signature = (v, target=TargetArgument(srt::GoldenTarget::Golden), gamma=None, beta=None, eps=1e-5))]
fn golden_layer_norm(
    py: Python<'_>,
    v: TensorArgument,
    target: TargetArgument,
    gamma: Option<TensorArgument>,
    beta: Option<TensorArgument>,
    eps: f64,
) -> Result<PyTensor> {
    let norm = GoldenNorm { target: target.0, gamma: given(&gamma), beta: given(&beta), eps };
    Ok(py.detach(|| srt::golden_layer_norm(&v.0, &norm))?.into())
}

/// The points with |a|, |b| <= bound nearest to the H phase of a flux, and the syntony of their values.
#[pyfunction]
fn harmonize_and_crystallize(
    py: Python<'_>,
    flux: TensorArgument,
    n2: TensorArgument,
    s: InRange<f64>,
    bound: InRange<i64>,
) -> Result<(PyGoldenTensor, PyTensor)> {
    let (points, syntony) = py.detach(|| srt::harmonize_and_crystallize(&flux.0, &n2.0, s.0, bound.0))?;
    Ok((PyGoldenTensor(points), syntony.into()))
}

/// alpha op(a) op(b) + beta c. The operations are "none", "transpose" and "adjoint"; c is not read if beta is 0.
#[pyfunction]
#[pyo3(signature = (
    alpha, a, b, beta, c, operation_a=OperationArgument(Operation::None), operation_b=OperationArgument(Operation::None),
    mode=ProductModeArgument(ProductMode::Fast)
))]
#[allow(clippy::too_many_arguments, reason = "the operands of BLAS")]
fn gemm(
    py: Python<'_>,
    alpha: NumberArgument,
    a: TensorArgument,
    b: TensorArgument,
    beta: NumberArgument,
    c: TensorArgument,
    operation_a: OperationArgument,
    operation_b: OperationArgument,
    mode: ProductModeArgument,
) -> Result<PyTensor> {
    let mut result = c.0;
    py.detach(|| {
        srt::gemm(alpha.0, (operation_a.0, &a.0), (operation_b.0, &b.0), beta.0, &mut result, mode.0)
    })?;
    Ok(result.into())
}

/// The bounds of a ramp of at most `steps` steps, each the one before times phi, rounded up.
#[pyfunction]
fn precision_ramp(first: InRange<i64>, steps: InRange<usize>) -> Result<Vec<i64>> {
    Ok(srt::precision_ramp(first.0, steps.0)?)
}

/// Snaps values at each bound of a ramp, and returns the bounds with their points.
#[pyfunction]
fn snap_ramp(
    py: Python<'_>,
    values: TensorArgument,
    first: InRange<i64>,
    steps: InRange<usize>,
) -> Result<Vec<(i64, PyGoldenTensor)>> {
    let ramp = py.detach(|| srt::snap_ramp(&values.0, first.0, steps.0))?;
    Ok(ramp.into_iter().map(|(bound, points)| (bound, PyGoldenTensor(points))).collect())
}

/// The dwell times (D phase, H phase) at a syntony.
#[pyfunction]
fn dwell(base: f64, syntony: f64) -> (f64, f64) {
    let times = srt::dwell(base, syntony);
    (times.d_phase, times.h_phase)
}

/// Adds the functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! functions {
        ($($function:ident)*) => {
            $(module.add_function(wrap_pyfunction!($function, module)?)?;)*
        };
    }
    functions! {
        golden_batch_norm_1d golden_batch_norm_2d golden_layer_norm harmonize_and_crystallize precision_ramp snap_ramp dwell gemm
    }
    Ok(())
}
