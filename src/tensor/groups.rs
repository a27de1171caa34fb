//! Row programs on tensors: functions with reductions over groups, for [`Fused`](super::Fused) and for the
//! functions of `rows`.
//!
//! Tests: `tests/tensor/rows.rs`.

use std::any::TypeId;

use super::axes::Axes;
use super::cached_operation::{AppendOnlyMap, OperandKind};
use super::evaluate::{OperandSource, broadcast, evaluate, evaluate_into, evaluate_one};
use super::fused::{holds_all, lower_list};
use super::kernel::{Output, OutputTarget, run_targets};
use super::operand::{Inputs, TensorOperand};
use super::tensor::{Tensor, one_device};
use crate::error::{Error, Result};
use crate::fuse::{Expr, Expression, Graph, Number, RowProgram};
use crate::types::{DType, Shape};

/// The axes of a group, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroupAxes {
    All,
    Last,
    Of(Vec<isize>),
}

impl GroupAxes {
    /// Returns the axes of a shape. Without dimensions, axis 0 or -1 names the only element, as in PyTorch.
    pub(crate) fn of(&self, shape: &Shape) -> Vec<isize> {
        match self {
            GroupAxes::All => (0..shape.rank() as isize).collect(),
            GroupAxes::Last => (0..shape.rank() as isize).rev().take(1).collect(),
            GroupAxes::Of(axes) if shape.rank() == 0 => {
                axes.iter().copied().filter(|axis| !(-1..=0).contains(axis)).collect()
            }
            GroupAxes::Of(axes) => axes.clone(),
        }
    }
}

impl From<Axes<'_>> for GroupAxes {
    fn from(axes: Axes<'_>) -> GroupAxes {
        match axes {
            Axes::All => GroupAxes::All,
            Axes::One(axis) => GroupAxes::Of(vec![axis]),
            Axes::Of(axes) => GroupAxes::Of(axes.to_vec()),
        }
    }
}

/// A compiled function: elementwise, or with reductions over groups.
#[derive(Clone)]
pub(super) enum CompiledFunction {
    Elementwise(Expression),
    Rows(RowProgram),
}

impl CompiledFunction {
    /// Compiles the outputs of a graph.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`] and [`Graph::row_program`].
    pub(super) fn new(graph: &Graph, outputs: &[Expr<'_>]) -> Result<CompiledFunction> {
        Ok(match graph.has_groups() {
            true => CompiledFunction::Rows(graph.row_program(outputs)?),
            false => CompiledFunction::Elementwise(graph.expression(outputs)?),
        })
    }

    #[inline]
    pub(super) fn compares_by_value(&self) -> bool {
        match self {
            CompiledFunction::Elementwise(expression) => expression.compares_by_value(),
            CompiledFunction::Rows(program) => program.compares_by_value(),
        }
    }

    /// Computes the only output.
    #[inline]
    pub(super) fn evaluate_one(
        &self,
        operation: &'static str,
        sources: &[OperandSource<'_>],
        scalars: &[Number],
        axes: &GroupAxes,
    ) -> Result<Tensor> {
        match self {
            CompiledFunction::Elementwise(expression) => {
                evaluate_one(operation, expression, sources, scalars)
            }
            CompiledFunction::Rows(program) => {
                let outputs = evaluate_rows(operation, program, &tensors(sources), scalars, axes)?;
                only(operation, outputs)
            }
        }
    }

    /// Computes all outputs.
    pub(super) fn evaluate(
        &self,
        operation: &'static str,
        sources: &[OperandSource<'_>],
        scalars: &[Number],
        axes: &GroupAxes,
    ) -> Result<Vec<Tensor>> {
        let tensors = tensors(sources);
        match self {
            CompiledFunction::Elementwise(expression) => evaluate(expression, &tensors, scalars),
            CompiledFunction::Rows(program) => evaluate_rows(operation, program, &tensors, scalars, axes),
        }
    }

    /// As [`evaluate`](Self::evaluate), into memory of other tensors.
    pub(super) fn evaluate_into(
        &self,
        operation: &'static str,
        sources: &[OperandSource<'_>],
        scalars: &[Number],
        axes: &GroupAxes,
        targets: &mut [OutputTarget<'_>],
    ) -> Result<()> {
        match self {
            CompiledFunction::Elementwise(expression) => evaluate_into(expression, sources, scalars, targets),
            CompiledFunction::Rows(program) => {
                let tensors = tensors(sources);
                let shape = broadcast(operation, tensors.iter().copied())?;
                run(operation, program, &tensors, scalars, &axes.of(&shape), targets)
            }
        }
    }
}

fn tensors<'a>(sources: &[OperandSource<'a>]) -> Vec<&'a Tensor> {
    sources.iter().filter_map(OperandSource::tensor).collect()
}

fn only(operation: &'static str, mut outputs: Vec<Tensor>) -> Result<Tensor> {
    let found = outputs.len();
    match (outputs.pop(), found) {
        (Some(output), 1) => Ok(output),
        _ => Err(Error::LengthMismatch { operation, wanted: 1, found }),
    }
}

/// Computes the outputs of a row program. An output per group has size 1 in the axes of the group, and a sum over groups
/// in the others.
///
/// # Errors
///
/// As [`RowProgram::run`]; [`Error::DeviceMismatch`]; [`Error::InvalidArgument`] without tensors.
pub(super) fn evaluate_rows(
    operation: &'static str,
    program: &RowProgram,
    tensors: &[&Tensor],
    scalars: &[Number],
    axes: &GroupAxes,
) -> Result<Vec<Tensor>> {
    let device = one_device(operation, tensors.iter().copied())?;
    let shape = broadcast(operation, tensors.iter().copied())?;
    let axes = axes.of(&shape);
    let shapes = output_shapes(operation, program, &shape, &axes)?;
    let mut fresh = Vec::with_capacity(shapes.len());
    for (dtype, shape) in program.outputs().into_iter().zip(&shapes) {
        fresh.push(Output::of_shape(&device, dtype, shape)?);
    }
    let mut targets: Vec<OutputTarget<'_>> = fresh.iter_mut().map(OutputTarget::all).collect();
    run(operation, program, tensors, scalars, &axes, &mut targets)?;
    drop(targets);
    Ok(fresh.into_iter().map(Output::into_tensor).collect())
}

/// Returns the shapes of a program's outputs for elements of this shape.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an axis that does not exist.
pub(super) fn output_shapes(
    operation: &'static str,
    program: &RowProgram,
    shape: &Shape,
    axes: &[isize],
) -> Result<Vec<Shape>> {
    let (mut groups, mut along) = (shape.to_vec(), vec![1; shape.rank()]);
    for &axis in axes {
        let axis = shape.axis(operation, axis)?;
        (groups[axis], along[axis]) = (1, shape[axis]);
    }
    let (groups, along) = (Shape::new(&groups)?, Shape::new(&along)?);
    let of_output = |index| match (program.is_per_group(index), program.is_over_groups(index)) {
        (true, _) => groups,
        (_, true) => along,
        _ => *shape,
    };
    Ok((0..program.outputs().len()).map(of_output).collect())
}

fn run(
    operation: &'static str,
    program: &RowProgram,
    tensors: &[&Tensor],
    scalars: &[Number],
    axes: &[isize],
    targets: &mut [OutputTarget<'_>],
) -> Result<()> {
    run_targets(
        operation,
        tensors,
        targets,
        |inputs, mut outputs| program.run_host(&inputs, scalars, axes, &mut outputs),
        |stream, inputs, mut outputs| program.run(stream, &inputs, scalars, axes, &mut outputs),
    )
}

/// Computes a function as a row program, so f16 and bf16 are computed in f32. The function must capture nothing,
/// because its type is the key of a cache.
///
/// # Errors
///
/// As [`Graph::row_program`] and [`evaluate_rows`].
pub(super) fn fuse_groups<const INPUTS: usize, const OUTPUTS: usize, F>(
    operation: &'static str,
    operands: [TensorOperand<'_>; INPUTS],
    axes: &GroupAxes,
    function: F,
) -> Result<[Tensor; OUTPUTS]>
where
    F: for<'g> Fn([Expr<'g>; INPUTS]) -> [Expr<'g>; OUTPUTS] + 'static,
{
    const { assert!(size_of::<F>() == 0, "the function captures values") };
    fuse_groups_of(operation, operands, axes, TypeId::of::<F>(), &function)
}

/// [`fuse_groups`] of a function by its type, which compiles once for a number of operands and outputs.
#[inline(never)]
fn fuse_groups_of<const INPUTS: usize, const OUTPUTS: usize>(
    operation: &'static str,
    operands: [TensorOperand<'_>; INPUTS],
    axes: &GroupAxes,
    own: TypeId,
    function: &dyn for<'g> Fn([Expr<'g>; INPUTS]) -> [Expr<'g>; OUTPUTS],
) -> Result<[Tensor; OUTPUTS]> {
    static CACHE: AppendOnlyMap<(TypeId, Vec<OperandKind>), CompiledFunction> = AppendOnlyMap::new();
    let kinds = operands.each_ref().map(OperandKind::of);
    let mut inputs = Inputs::<INPUTS>::default();
    operands.iter().for_each(|operand| inputs.push(operand));
    let compile = |literals: &[Number]| {
        let rows =
            |graph: &Graph, outputs: &[Expr<'_>]| graph.row_program(outputs).map(CompiledFunction::Rows);
        lower_list(&kinds, literals, &[None::<DType>; OUTPUTS], rows, &|_, inputs| {
            Ok(function(std::array::from_fn(|at| inputs[at])).to_vec())
        })
    };
    let outputs = if holds_all(&operands)? {
        let same = |key: &(TypeId, Vec<OperandKind>)| key.0 == own && key.1 == kinds;
        let cached = CACHE.find_or_add(same, || Ok(((own, kinds.to_vec()), compile(&[])?)))?;
        cached.evaluate(operation, inputs.sources(), inputs.numbers(), axes)?
    } else {
        // The numbers are literals of a program for this call alone.
        compile(inputs.numbers())?.evaluate(operation, inputs.sources(), &[], axes)?
    };
    let found = outputs.len();
    outputs.try_into().map_err(|_| Error::LengthMismatch { operation, wanted: OUTPUTS, found })
}
