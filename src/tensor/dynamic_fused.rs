//! [`DynamicFused`], a [`Fused`](super::Fused) function whose numbers of operands and outputs are known only at run time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::cached_operation::OperandKind;
use super::evaluate::evaluate;
use super::fused::{holds_all, lower_list};
use super::operand::TensorOperand;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Expr, Expression, Graph, Number};

const OPERATION: &str = "a fused run";

type Build = dyn for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Result<Vec<Expr<'g>>> + Send + Sync;

/// A function of elements that is one kernel, compiled once for each combination of its operands' dtypes.
pub(crate) struct DynamicFused {
    inputs: usize,
    outputs: usize,
    build: Box<Build>,
    cache: Mutex<HashMap<Vec<OperandKind>, Expression>>,
}

impl DynamicFused {
    /// Creates a function of `inputs` operands with `outputs` results.
    pub(crate) fn new(
        inputs: usize,
        outputs: usize,
        build: impl for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Result<Vec<Expr<'g>>> + Send + Sync + 'static,
    ) -> DynamicFused {
        DynamicFused { inputs, outputs, build: Box::new(build), cache: Mutex::default() }
    }

    /// Returns the number of operands of a run.
    #[cfg(feature = "capi")]
    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of results of a run.
    #[cfg(feature = "capi")]
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Computes the outputs of these operands, each in the shape to which the operands broadcast.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of operands; otherwise as
    /// [`Fused::run_all`](super::Fused::run_all).
    pub(crate) fn run(&self, operands: &[TensorOperand<'_>]) -> Result<Vec<Tensor>> {
        if operands.len() != self.inputs {
            let (wanted, found) = (self.inputs, operands.len());
            return Err(Error::LengthMismatch { operation: OPERATION, wanted, found });
        }
        let tensors: Vec<&Tensor> = operands.iter().filter_map(TensorOperand::tensor).collect();
        if tensors.is_empty() {
            return Err(Error::invalid(OPERATION, "no tensors", "at least one"));
        }
        let number = |operand: &TensorOperand<'_>| match *operand {
            TensorOperand::Number(number) => Some(number),
            TensorOperand::Tensor(_) => None,
        };
        let numbers: Vec<Number> = operands.iter().filter_map(number).collect();
        let kinds: Vec<OperandKind> = operands.iter().map(OperandKind::of).collect();
        if holds_all(operands)? {
            let expression = self.expression(&kinds)?;
            if !expression.compares_by_value() {
                return evaluate(&expression, &tensors, &numbers);
            }
        }
        // The numbers are literals of an expression for this run alone.
        let expression =
            lower_list(&kinds, &numbers, &vec![None; self.outputs], Graph::expression, &self.build)?;
        evaluate(&expression, &tensors, &[])
    }

    /// Returns the expression for operands of these kinds.
    fn expression(&self, kinds: &[OperandKind]) -> Result<Expression> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(expression) = cache.get(kinds) {
            return Ok(expression.clone());
        }
        let expression = lower_list(kinds, &[], &vec![None; self.outputs], Graph::expression, &self.build)?;
        cache.insert(kinds.to_vec(), expression.clone());
        Ok(expression)
    }
}

impl fmt::Debug for DynamicFused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DynamicFused({} -> {})", self.inputs, self.outputs)
    }
}
