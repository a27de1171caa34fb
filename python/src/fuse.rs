//! `selvedge.fuse`: functions of elements that are traced in Python and run as one kernel.
//!
//! A trace calls the function with [`PyExpression`]s, whose operators build trees. The trees know no dtypes, so a function is
//! traced once for each number of operands, and compiled by the library for each combination of dtypes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use selvedge::fuse::{ExpressionTree, Operation};
use selvedge::nn::{DynamicFusedFunction, VariableOperand};
use selvedge::tensor::{DynamicFused, TensorOperand};

use crate::arguments::{DTypeArgument, Operand, either, number_or_item};
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::nn::{OperandArgument, PyVariable};
use crate::tensor::PyTensor;
use crate::tensor::elementwise::with_elementwise;
use crate::tensor::operators::{comparison_operation, with_operators};

/// The elements of an operand of a fused function while it is traced, with the elementwise methods and operators of a tensor.
#[pyclass(name = "Expression", module = "selvedge", frozen)]
pub struct PyExpression(ExpressionTree);

/// An expression or a number.
pub struct ExpressionArgument(ExpressionTree);

impl<'a, 'py> FromPyObject<'a, 'py> for ExpressionArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(expression) = object.cast::<PyExpression>() {
            return Ok(ExpressionArgument(expression.get().0.clone()));
        }
        // A tensor without dimensions is no number: it would be read while the function is traced.
        let is_tensor = object.is_instance_of::<PyTensor>();
        match number_or_item(&object) {
            Ok(Some(number)) if !is_tensor => Ok(ExpressionArgument(ExpressionTree::number(number))),
            _ => {
                let wanted = "an expression or a number; pass tensors as arguments of the fused function";
                Err(crate::error::Failure::from(wrong_type("a fused function", type_name(&object), wanted))
                    .into())
            }
        }
    }
}

/// Returns an operation on trees.
fn operation(operation: Operation, operands: &[&ExpressionTree]) -> Result<PyExpression> {
    let operands: Vec<ExpressionTree> = operands.iter().map(|tree| (*tree).clone()).collect();
    Ok(PyExpression(ExpressionTree::operation(operation, &operands)?))
}

/// Returns `where(condition, yes, no)` of expressions.
pub fn choose(
    condition: &ExpressionArgument,
    yes: &ExpressionArgument,
    no: &ExpressionArgument,
) -> Result<PyExpression> {
    operation(Operation::Select, &[&condition.0, &yes.0, &no.0])
}

macro_rules! methods {
    ([$($unary:ident $one:ident)*] [$($binary:ident $operation:ident)*] [$($ternary:ident($second:ident, $third:ident) $last:ident)*]) => {
        #[pymethods]
        impl PyExpression {
            $(fn $unary(&self) -> Result<PyExpression> {
                operation(Operation::$one, &[&self.0])
            })*

            $(fn $binary(&self, other: ExpressionArgument) -> Result<PyExpression> {
                operation(Operation::$operation, &[&self.0, &other.0])
            })*

            $(fn $ternary(&self, $second: ExpressionArgument, $third: ExpressionArgument) -> Result<PyExpression> {
                operation(Operation::$last, &[&self.0, &$second.0, &$third.0])
            })*
        }
    };
}

with_elementwise! { methods }

#[pymethods]
impl PyExpression {
    /// The elements within bounds, of which one suffices. `min` and `max` are other names of `low` and `high`.
    #[pyo3(signature = (low=None, high=None, *, min=None, max=None))]
    fn clamp(
        &self,
        low: Option<ExpressionArgument>,
        high: Option<ExpressionArgument>,
        min: Option<ExpressionArgument>,
        max: Option<ExpressionArgument>,
    ) -> Result<PyExpression> {
        let low = either("clamp", ["low", "min"], low, min)?;
        let high = either("clamp", ["high", "max"], high, max)?;
        match (low, high) {
            (Some(low), Some(high)) => operation(Operation::Clamp, &[&self.0, &low.0, &high.0]),
            (Some(low), None) => operation(Operation::Maximum, &[&self.0, &low.0]),
            (None, Some(high)) => operation(Operation::Minimum, &[&self.0, &high.0]),
            (None, None) => Err(wrong_type("clamp", "no bound", "min=, max= or both").into()),
        }
    }
}

/// The operators, apart because the macro's names need code that is `unsafe` without a block.
#[allow(unsafe_op_in_unsafe_fn, reason = "PyO3 generates such code for operators that a macro names")]
mod operators {
    use super::*;

    macro_rules! operators {
        ($($method:ident $reflected:ident $in_place:ident $operation:ident;)*) => {
            #[pymethods]
            impl PyExpression {
                $(
                    fn $method(&self, other: ExpressionArgument) -> Result<PyExpression> {
                        operation(Operation::$operation, &[&self.0, &other.0])
                    }

                    fn $reflected(&self, other: ExpressionArgument) -> Result<PyExpression> {
                        operation(Operation::$operation, &[&other.0, &self.0])
                    }
                )*
            }
        };
    }

    with_operators! { operators }
}

#[pymethods]
impl PyExpression {
    /// The elements in another dtype.
    fn cast(&self, dtype: DTypeArgument) -> Result<PyExpression> {
        Ok(PyExpression(self.0.cast(dtype.0)?))
    }

    /// The elements in another dtype, by NumPy's name of `cast`.
    fn astype(&self, dtype: DTypeArgument) -> Result<PyExpression> {
        self.cast(dtype)
    }

    fn __pow__(&self, other: ExpressionArgument, _modulo: Option<&Bound<'_, PyAny>>) -> Result<PyExpression> {
        operation(Operation::Pow, &[&self.0, &other.0])
    }

    fn __rpow__(
        &self,
        other: ExpressionArgument,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyExpression> {
        operation(Operation::Pow, &[&other.0, &self.0])
    }

    fn __neg__(&self) -> Result<PyExpression> {
        operation(Operation::Neg, &[&self.0])
    }

    fn __pos__(&self) -> PyExpression {
        PyExpression(self.0.clone())
    }

    fn __abs__(&self) -> Result<PyExpression> {
        operation(Operation::Abs, &[&self.0])
    }

    fn __invert__(&self) -> Result<PyExpression> {
        operation(Operation::BitNot, &[&self.0])
    }

    fn __richcmp__(&self, other: ExpressionArgument, comparison: CompareOp) -> Result<PyExpression> {
        operation(comparison_operation(comparison), &[&self.0, &other.0])
    }

    fn __bool__(&self) -> Result<bool> {
        let wanted =
            "selvedge.where(condition, yes, no), as the elements are not known while a function is traced";
        Err(wrong_type("a fused function", "the truth of an expression", wanted).into())
    }

    fn __repr__(&self) -> String {
        format!("Expression({:?})", self.0)
    }
}

/// A traced function with one result, or a tuple of them.
struct TracedFunction {
    function: DynamicFused,
    /// The same function of variables.
    with_gradients: DynamicFusedFunction,
    is_tuple: bool,
}

/// A function of elements that runs as one kernel; see `selvedge.fuse`.
#[pyclass(name = "Fused", module = "selvedge", frozen, dict)]
pub struct PyFused {
    function: Py<PyAny>,
    traced: Mutex<HashMap<usize, Arc<TracedFunction>>>,
}

/// Makes a function of elements one kernel: `fuse(lambda x, y: (x * y + 1).relu())`, or `@fuse` above a `def`.
///
/// The function is called once for each number of operands, with expressions in place of tensors. It may return a tuple.
/// Numbers that it captures stay as they are at that call; pass a number that changes as an argument.
///
/// Operands with a variable of `selvedge.nn` among them give variables. The backward is one kernel too, with gradients of every order.
///
/// >>> swish = sv.fuse(lambda x: x * x.sigmoid())
/// >>> swish(sv.Tensor([0.0, 1.0], "f32")).shape
/// (2,)
/// >>> x = sv.nn.Variable([0.0, 0.0], requires_grad=True)
/// >>> swish(x).sum().backward()
/// >>> x.grad.tolist()
/// [0.5, 0.5]
#[pyfunction]
pub fn fuse(function: &Bound<'_, PyAny>) -> Result<PyFused> {
    if !function.is_callable() {
        return Err(wrong_type("fuse", type_name(function), "a function of tensors").into());
    }
    Ok(PyFused { function: function.clone().unbind(), traced: Mutex::default() })
}

impl PyFused {
    /// Returns the traced function of so many operands.
    fn traced(&self, py: Python<'_>, count: usize) -> Result<Arc<TracedFunction>> {
        let known = || self.traced.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(traced) = known().get(&count) {
            return Ok(traced.clone());
        }
        // Without the lock, as the function is Python's and may call this one.
        let inputs = (0..count).map(|index| {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            Ok(PyExpression(ExpressionTree::input(index)?))
        });
        let inputs = PyTuple::new(py, inputs.collect::<Result<Vec<_>>>()?)?;
        let result = self.function.bind(py).call1(inputs)?;
        let is_tuple = result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>();
        let outputs = match is_tuple {
            true => result.try_iter()?.map(|output| tree(&output?)).collect::<Result<Vec<_>>>()?,
            false => vec![tree(&result)?],
        };
        let function = DynamicFused::from_trees(outputs.clone())?;
        let with_gradients = DynamicFusedFunction::from_trees(outputs)?;
        let traced = Arc::new(TracedFunction { function, with_gradients, is_tuple });
        Ok(known().entry(count).or_insert(traced).clone())
    }
}

/// Returns the tree of a function's result.
fn tree(object: &Bound<'_, PyAny>) -> Result<ExpressionTree> {
    match object.cast::<PyExpression>() {
        Ok(expression) => Ok(expression.get().0.clone()),
        Err(_) => Err(wrong_type(
            "the result of a fused function",
            type_name(object),
            "an expression, or a tuple of them",
        )
        .into()),
    }
}

/// Returns the operands as the library takes them, with unused last ones left out.
fn used<'a>(operands: &'a [Operand], function: &DynamicFused) -> Vec<TensorOperand<'a>> {
    operands.iter().take(function.inputs()).map(Operand::operand).collect()
}

#[pymethods]
impl PyFused {
    #[pyo3(signature = (*operands))]
    fn __call__<'py>(&self, py: Python<'py>, operands: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyAny>> {
        let traced = self.traced(py, operands.len())?;
        let results: Vec<Bound<'py, PyAny>> = if operands.iter().any(|one| one.is_instance_of::<PyVariable>())
        {
            let operands = operands.extract::<Vec<OperandArgument>>()?;
            let used = operands.iter().take(traced.function.inputs()).map(OperandArgument::operand);
            let used: Vec<VariableOperand<'_>> = used.collect();
            let results = py.detach(|| traced.with_gradients.run(&used))?.into_iter().map(PyVariable);
            results.map(|one| Bound::new(py, one).map(Bound::into_any)).collect::<PyResult<_>>()?
        } else {
            let operands = operands.extract::<Vec<Operand>>()?;
            let results = py.detach(|| traced.function.run(&used(&operands, &traced.function)))?;
            let results = results.into_iter().map(PyTensor::from);
            results.map(|one| Bound::new(py, one).map(Bound::into_any)).collect::<PyResult<_>>()?
        };
        if traced.is_tuple {
            return Ok(PyTuple::new(py, results)?.into_any());
        }
        let none = || invalid("a fused function", "no result", "one");
        Ok(results.into_iter().next().ok_or_else(none)?)
    }

    /// The launches of a run on operands like these, with the text of the kernel.
    #[pyo3(signature = (*operands))]
    fn explain(&self, py: Python<'_>, operands: Vec<Operand>) -> Result<String> {
        let traced = self.traced(py, operands.len())?;
        let explained = py.detach(|| traced.function.explain(&used(&operands, &traced.function)))?;
        Ok(explained.to_string())
    }

    /// The function in Python.
    #[getter(__wrapped__)]
    fn wrapped(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<selvedge.fuse of {}>", self.function.bind(py).repr()?))
    }
}
