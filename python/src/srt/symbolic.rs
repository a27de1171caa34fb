//! `selvedge.srt.SymExpr`: expressions of exact numbers, constants and inputs, evaluated for rows of a tensor.

use std::sync::OnceLock;

use pyo3::prelude::*;
use selvedge::srt::{CompiledExpr, Constant, SymExpr};

use super::exact::{PyGoldenExact, RationalArgument};
use crate::arguments::TensorArgument;
use crate::error::Result;
use crate::tensor::PyTensor;

/// An expression of exact numbers, constants and inputs: `SymExpr(number)` of a GoldenExact, an int or a `fractions.Fraction`.
/// Operators on two exact numbers of one kind are exact; nothing else is evaluated before a run.
#[pyclass(name = "SymExpr", module = "selvedge.srt", frozen)]
pub struct PySymExpr {
    tree: SymExpr,
    compiled: OnceLock<CompiledExpr>,
}

impl From<SymExpr> for PySymExpr {
    fn from(tree: SymExpr) -> PySymExpr {
        PySymExpr { tree, compiled: OnceLock::new() }
    }
}

/// An expression, or a number that is one.
pub struct SymbolicArgument(SymExpr);

impl<'a, 'py> FromPyObject<'a, 'py> for SymbolicArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(expression) = object.cast::<PySymExpr>() {
            return Ok(SymbolicArgument(expression.get().tree.clone()));
        }
        if let Ok(number) = object.cast::<PyGoldenExact>() {
            return Ok(SymbolicArgument(number.get().0.into()));
        }
        let number = object.extract::<RationalArgument>()?.0;
        Ok(SymbolicArgument(number.to_integer().map_or(number.into(), SymExpr::from)))
    }
}

impl PySymExpr {
    /// Returns the compiled expression, made by the first run.
    fn compiled(&self) -> selvedge::Result<&CompiledExpr> {
        if let Some(compiled) = self.compiled.get() {
            return Ok(compiled);
        }
        let compiled = self.tree.compile()?;
        Ok(self.compiled.get_or_init(|| compiled))
    }
}

#[pymethods]
impl PySymExpr {
    /// pi.
    #[classattr]
    #[allow(non_snake_case, reason = "the name in Python")]
    fn PI() -> PySymExpr {
        SymExpr::from(Constant::Pi).into()
    }

    /// e.
    #[classattr]
    #[allow(non_snake_case, reason = "the name in Python")]
    fn E() -> PySymExpr {
        SymExpr::from(Constant::E).into()
    }

    /// phi.
    #[classattr]
    #[allow(non_snake_case, reason = "the name in Python")]
    fn PHI() -> PySymExpr {
        SymExpr::from(Constant::Phi).into()
    }

    /// E* = e^pi - pi.
    #[classattr]
    #[allow(non_snake_case, reason = "the name in Python")]
    fn ESTAR() -> PySymExpr {
        SymExpr::from(Constant::EStar).into()
    }

    /// q.
    #[classattr]
    #[allow(non_snake_case, reason = "the name in Python")]
    fn Q() -> PySymExpr {
        SymExpr::from(Constant::Q).into()
    }

    #[new]
    fn new(number: SymbolicArgument) -> PySymExpr {
        number.0.into()
    }

    /// Input `slot`: that column of the rows of a run.
    #[staticmethod]
    fn input(slot: crate::arguments::InRange<usize>) -> PySymExpr {
        SymExpr::input(slot.0).into()
    }

    /// e to the power of the expression.
    fn exp(&self) -> PySymExpr {
        self.tree.exp().into()
    }

    /// The natural logarithm.
    fn ln(&self) -> PySymExpr {
        self.tree.ln().into()
    }

    /// The gamma function.
    fn gamma(&self) -> PySymExpr {
        self.tree.gamma().into()
    }

    /// The sine.
    fn sin(&self) -> PySymExpr {
        self.tree.sin().into()
    }

    /// The cosine.
    fn cos(&self) -> PySymExpr {
        self.tree.cos().into()
    }

    /// The number of leaves and functions.
    #[getter]
    fn node_count(&self) -> usize {
        self.tree.node_count()
    }

    /// The number of inputs: the highest slot, plus 1.
    #[getter]
    fn slots(&self) -> usize {
        self.tree.slots()
    }

    /// Evaluates the expression for one row of inputs on the CPU.
    #[pyo3(signature = (inputs=Vec::new()))]
    fn evaluate(&self, py: Python<'_>, inputs: Vec<f64>) -> Result<f64> {
        Ok(py.detach(|| self.compiled()?.evaluate(&inputs))?)
    }

    /// Evaluates the expression for each row of a matrix of f64, whose columns are the inputs. The first run compiles it.
    fn run_rows(&self, py: Python<'_>, rows: TensorArgument) -> Result<PyTensor> {
        Ok(py.detach(|| self.compiled()?.run_rows(&rows.0))?.into())
    }

    fn __add__(&self, other: SymbolicArgument) -> PySymExpr {
        (self.tree.clone() + other.0).into()
    }

    fn __radd__(&self, other: SymbolicArgument) -> PySymExpr {
        (other.0 + self.tree.clone()).into()
    }

    fn __sub__(&self, other: SymbolicArgument) -> PySymExpr {
        (self.tree.clone() - other.0).into()
    }

    fn __rsub__(&self, other: SymbolicArgument) -> PySymExpr {
        (other.0 - self.tree.clone()).into()
    }

    fn __mul__(&self, other: SymbolicArgument) -> PySymExpr {
        (self.tree.clone() * other.0).into()
    }

    fn __rmul__(&self, other: SymbolicArgument) -> PySymExpr {
        (other.0 * self.tree.clone()).into()
    }

    fn __truediv__(&self, other: SymbolicArgument) -> PySymExpr {
        (self.tree.clone() / other.0).into()
    }

    fn __rtruediv__(&self, other: SymbolicArgument) -> PySymExpr {
        (other.0 / self.tree.clone()).into()
    }

    fn __pow__(&self, exponent: RationalArgument, _modulo: Option<&Bound<'_, PyAny>>) -> PySymExpr {
        self.tree.pow(exponent.0).into()
    }

    fn __neg__(&self) -> PySymExpr {
        (-self.tree.clone()).into()
    }

    fn __str__(&self) -> String {
        self.tree.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<SymExpr {}>", self.tree)
    }
}
