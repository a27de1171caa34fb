//! [`DynamicFused`], a [`Fused`](super::Fused) function whose numbers of operands and outputs are known only at run time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::cached_operation::OperandKind;
use super::evaluate::OperandSource;
use super::fused::{holds_all, layouts, lower_list};
use super::groups::{CompiledFunction, GroupAxes};
use super::in_place::TensorMut;
use super::operand::TensorOperand;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Explanation, Expr, ExpressionTree, Graph, Number};

const OPERATION: &str = "a fused run";

type Build = dyn for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Result<Vec<Expr<'g>>> + Send + Sync;

/// A function of elements that is one kernel, compiled once for each combination of its operands' dtypes. It is a
/// [`Fused`](super::Fused) function whose numbers of operands and outputs are known only at run time. Groups of its reductions
/// are rows along the last axis.
pub struct DynamicFused {
    inputs: usize,
    outputs: usize,
    build: Box<Build>,
    cache: Mutex<HashMap<Vec<OperandKind>, CompiledFunction>>,
    axes: GroupAxes,
}

impl DynamicFused {
    /// Creates a function of `inputs` operands with `outputs` results.
    pub(crate) fn new(
        inputs: usize,
        outputs: usize,
        build: impl for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Result<Vec<Expr<'g>>> + Send + Sync + 'static,
    ) -> DynamicFused {
        DynamicFused {
            inputs,
            outputs,
            build: Box::new(build),
            cache: Mutex::default(),
            axes: GroupAxes::Last,
        }
    }

    /// Sets the axes of a group for reductions, as [`Fused::over`](super::Fused::over) does.
    pub(crate) fn over(self, axes: GroupAxes) -> DynamicFused {
        DynamicFused { axes, ..self }
    }

    /// Creates a function with one result for each tree. See [`ExpressionTree`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] without trees.
    pub fn from_trees(outputs: Vec<ExpressionTree>) -> Result<DynamicFused> {
        if outputs.is_empty() {
            return Err(Error::invalid("outputs", "no expressions", "at least one"));
        }
        let inputs = ExpressionTree::inputs(&outputs) as usize;
        let count = outputs.len();
        Ok(DynamicFused::new(inputs, count, move |graph, inputs| {
            ExpressionTree::build_all(&outputs, graph, inputs)
        }))
    }

    /// Returns the number of operands of a run.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of results of a run.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Computes the outputs of these operands, each in the shape to which the operands broadcast.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of operands; otherwise as
    /// [`Fused::run_all`](super::Fused::run_all).
    pub fn run(&self, operands: &[TensorOperand<'_>]) -> Result<Vec<Tensor>> {
        let (function, numbers) = self.lowered(operands)?;
        let sources: Vec<OperandSource<'_>> =
            operands.iter().filter_map(TensorOperand::tensor).map(OperandSource::Tensor).collect();
        function.evaluate(OPERATION, &sources, &numbers, &self.axes)
    }

    /// Replaces the elements of a tensor by a function of them, the first operand, and of other operands, which broadcast
    /// to its shape.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and for a result that the elements' dtype cannot hold.
    pub(crate) fn run_in_place(
        &self,
        output: &mut TensorMut<'_>,
        others: &[TensorOperand<'_>],
    ) -> Result<()> {
        let (function, numbers) = {
            let current = output.current();
            let operands: Vec<TensorOperand<'_>> =
                std::iter::once((&current).into()).chain(others.iter().copied()).collect();
            self.lowered(&operands)?
        };
        // Shared elements are read where they are, and the result is somewhere else.
        let before = (!output.is_own()).then(|| output.current());
        let first = before.as_ref().map_or(OperandSource::Output(0), OperandSource::Tensor);
        let others_of = others.iter().filter_map(TensorOperand::tensor).map(OperandSource::Tensor);
        let sources: Vec<OperandSource<'_>> = std::iter::once(first).chain(others_of).collect();
        output
            .write(|target| function.evaluate_into(OPERATION, &sources, &numbers, &self.axes, &mut [target]))
    }

    /// Returns the launches of a run on operands like these, with the kernel's text, as
    /// [`Fused::explain`](super::Fused::explain) does.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and for a function of several kernels or with reductions over groups.
    pub fn explain(&self, operands: &[TensorOperand<'_>]) -> Result<Explanation> {
        let (CompiledFunction::Elementwise(expression), _) = self.lowered(operands)? else {
            let found = "a function of several kernels or reductions over groups";
            return Err(Error::invalid(OPERATION, found, "elementwise operations of one kernel"));
        };
        let (inputs, output, capability) = layouts(operands)?;
        expression.explain(&inputs, &vec![output; self.outputs], capability)
    }

    /// Returns the function for operands like these, and the numbers that a run gives it: none if they are its literals.
    fn lowered(&self, operands: &[TensorOperand<'_>]) -> Result<(CompiledFunction, Vec<Number>)> {
        if operands.len() != self.inputs {
            let (wanted, found) = (self.inputs, operands.len());
            return Err(Error::LengthMismatch { operation: OPERATION, wanted, found });
        }
        if operands.iter().all(|operand| operand.tensor().is_none()) {
            return Err(Error::invalid(OPERATION, "no tensors", "at least one"));
        }
        let kinds: Vec<OperandKind> = operands.iter().map(OperandKind::of).collect();
        let numbers = numbers(operands);
        if holds_all(operands)? {
            let function = self.cached(&kinds)?;
            if !function.compares_by_value() {
                return Ok((function, numbers));
            }
        }
        Ok((self.compile(&kinds, &numbers)?, Vec::new()))
    }

    /// Returns the function for operands of these kinds.
    fn cached(&self, kinds: &[OperandKind]) -> Result<CompiledFunction> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = cache.get(kinds) {
            return Ok(function.clone());
        }
        let function = self.compile(kinds, &[])?;
        cache.insert(kinds.to_vec(), function.clone());
        Ok(function)
    }

    fn compile(&self, kinds: &[OperandKind], literals: &[Number]) -> Result<CompiledFunction> {
        lower_list(kinds, literals, &vec![None; self.outputs], CompiledFunction::new, &self.build)
    }
}

/// Returns the numbers of operands.
fn numbers(operands: &[TensorOperand<'_>]) -> Vec<Number> {
    let number = |operand: &TensorOperand<'_>| match *operand {
        TensorOperand::Number(number) => Some(number),
        TensorOperand::Tensor(_) => None,
    };
    operands.iter().filter_map(number).collect()
}

impl fmt::Debug for DynamicFused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DynamicFused({} -> {})", self.inputs, self.outputs)
    }
}
