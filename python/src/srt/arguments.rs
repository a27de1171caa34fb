//! Arguments of golden-ratio functions: modes and sets by name, and how the table of functions converts each kind.

use pyo3::prelude::*;
use selvedge::Tensor;
use selvedge::gemm::Operation;
use selvedge::srt::{
    Correction, E8Layout, E8Roots, GoldenCone, GoldenTarget, GoldenTensor, ProductMode, ResidualMode,
    SnapGradientMode, SyntonyAggregate, Uniform,
};

use super::classes::PyGoldenTensor;
use crate::arguments::TensorArgument;
use crate::error::{Failure, invalid, type_name, wrong_type};

macro_rules! named {
    ($($argument:ident($type:ty) $word:literal { $($name:literal => $value:expr,)* })*) => {$(
        /// A value by its name in Python.
        pub struct $argument(pub $type);

        impl<'a, 'py> FromPyObject<'a, 'py> for $argument {
            type Error = PyErr;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                let names: &[&str] = &[$($name),*];
                let name: String = object.extract().map_err(|_| {
                    Failure::from(wrong_type($word, type_name(&object), format!("one of {names:?}")))
                })?;
                match name.as_str() {
                    $($name => Ok($argument($value)),)*
                    _ => Err(Failure::from(invalid($word, format!("{name:?}"), format!("one of {names:?}"))).into()),
                }
            }
        }
    )*};
}

named! {
    ProductModeArgument(ProductMode) "mode" { "fast" => ProductMode::Fast, "exact" => ProductMode::Exact, }
    ResidualModeArgument(ResidualMode) "mode" {
        "phi" => ResidualMode::Phi,
        "phi_symmetric" => ResidualMode::PhiSymmetric,
        "standard" => ResidualMode::Standard,
    }
    GradientModeArgument(SnapGradientMode) "mode" {
        "weighted" => SnapGradientMode::Weighted,
        "magnitude" => SnapGradientMode::Magnitude,
        "plain" => SnapGradientMode::Plain,
    }
    AggregateArgument(SyntonyAggregate) "aggregate" {
        "mean" => SyntonyAggregate::Mean,
        "minimum" => SyntonyAggregate::Minimum,
        "geometric" => SyntonyAggregate::Geometric,
    }
    IntervalArgument(Uniform) "interval" {
        "half_open" => Uniform::HalfOpen,
        "open_at_zero" => Uniform::OpenAtZero,
    }
    LayoutArgument(E8Layout) "layout" { "offset4" => E8Layout::Offset4, "adjacent" => E8Layout::Adjacent, }
    ConeArgument(GoldenCone) "cone" { "pair" => GoldenCone::Pair, "null" => GoldenCone::Null, }
    RootsArgument(E8Roots) "set" {
        "all" => E8Roots::All,
        "positive" => E8Roots::Positive,
        "pair_cone" => E8Roots::Cone(GoldenCone::Pair),
        "null_cone" => E8Roots::Cone(GoldenCone::Null),
        "e6" => E8Roots::E6,
    }
    OperationArgument(Operation) "operation" {
        "none" => Operation::None,
        "transpose" => Operation::Transpose,
        "adjoint" => Operation::Adjoint,
    }
    NamedTarget(GoldenTarget) "target" { "golden" => GoldenTarget::Golden, "standard" => GoldenTarget::Standard, }
}

/// The variance at which a norm aims: "golden", "standard" or a number.
pub struct TargetArgument(pub GoldenTarget);

impl<'a, 'py> FromPyObject<'a, 'py> for TargetArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<f64>() {
            Ok(variance) => Ok(TargetArgument(GoldenTarget::Custom(variance))),
            Err(_) => object.extract::<NamedTarget>().map(|target| TargetArgument(target.0)),
        }
    }
}

/// Points of Z\[φ\].
pub struct GoldenArgument(pub GoldenTensor);

impl<'a, 'py> FromPyObject<'a, 'py> for GoldenArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyGoldenTensor>() {
            Ok(points) => Ok(GoldenArgument(points.get().0.clone())),
            Err(_) => Err(Failure::from(wrong_type("points", type_name(&object), "a GoldenTensor")).into()),
        }
    }
}

/// Returns the corrections of pairs of a divisor and a sign.
pub fn corrections(pairs: &[(f64, i32)]) -> selvedge::Result<Vec<Correction>> {
    pairs.iter().map(|(divisor, sign)| Correction::new(*divisor, *sign)).collect()
}

/// Returns references to tensors.
pub fn references(tensors: &[TensorArgument]) -> Vec<&Tensor> {
    tensors.iter().map(|tensor| &tensor.0).collect()
}

/// Returns a tensor that may be left out.
pub fn given(tensor: &Option<TensorArgument>) -> Option<&Tensor> {
    tensor.as_ref().map(|tensor| &tensor.0)
}

/// Names the Python type of an argument's kind in the table.
macro_rules! argument_type {
    (tensor) => { TensorArgument };
    (optional) => { Option<TensorArgument> };
    (operand) => { Operand };
    (tensors) => { Vec<TensorArgument> };
    (numbers) => { Vec<f64> };
    (pairs) => { Vec<(f64, i32)> };
    (ranges) => { Vec<(usize, usize)> };
    (windings) => { [i64; 4] };
    (shape) => { Sizes };
    (device) => { Option<DeviceArgument> };
    (dtype) => { DTypeArgument };
    (golden) => { GoldenArgument };
    (mode) => { ProductModeArgument };
    (residual) => { ResidualModeArgument };
    (gradient) => { GradientModeArgument };
    (aggregate) => { AggregateArgument };
    (interval) => { IntervalArgument };
    (layout) => { LayoutArgument };
    (cone) => { ConeArgument };
    (roots) => { RootsArgument };
    (sign) => { i32 };
    (f64) => { f64 };
    ($plain:ident) => { crate::arguments::InRange<$plain> };
}

/// Converts an argument to that of the Rust function.
macro_rules! passed {
    (tensor $x:ident) => {
        &$x.0
    };
    (optional $x:ident) => {
        given(&$x)
    };
    (operand $x:ident) => {
        $x.operand()
    };
    (tensors $x:ident) => {
        &references(&$x)
    };
    (numbers $x:ident) => {
        &$x
    };
    (pairs $x:ident) => {
        &corrections(&$x)?
    };
    (ranges $x:ident) => {
        &$x.iter().map(|(start, end)| *start..*end).collect::<Vec<_>>()
    };
    (windings $x:ident) => {
        $x
    };
    (shape $x:ident) => {
        &$x.0
    };
    (device $x:ident) => {
        &device_or_default($x)
    };
    (golden $x:ident) => {
        &$x.0
    };
    (f64 $x:ident) => {
        $x
    };
    (sign $x:ident) => {
        $x
    };
    ($named:ident $x:ident) => {
        $x.0
    };
}

/// Names the Python type of a result's kind.
macro_rules! result_type {
    (tensor) => {
        PyTensor
    };
    (checked) => {
        PyTensor
    };
    (two) => {
        (PyTensor, PyTensor)
    };
    (golden) => {
        PyGoldenTensor
    };
    ($plain:ident) => {
        $plain
    };
}

/// Converts the result of the Rust function.
macro_rules! converted {
    (tensor $result:expr) => {
        $result.map(PyTensor::from)
    };
    (checked $result:expr) => {
        $result.and_then(Checked::check).map(PyTensor::from)
    };
    (two $result:expr) => {
        $result.map(|(first, second)| (PyTensor::from(first), PyTensor::from(second)))
    };
    (golden $result:expr) => {
        $result.map(PyGoldenTensor)
    };
    ($plain:ident $result:expr) => {
        $result
    };
}

pub(super) use {argument_type, converted, passed, result_type};
