//! Row programs on tensors: functions with reductions over groups, for [`Fused`](super::Fused) and for the
//! functions of `rows`.
//!
//! Tests: `tests/tensor/rows.rs`.

use std::any::TypeId;
use std::ops::Deref;

use super::axes::Axes;
use super::cached_operation::{AppendOnlyMap, OperandKind};
use super::evaluate::{OperandSource, broadcast, evaluate, evaluate_into, evaluate_one};
use super::fused::{holds_all, lower_list};
use super::in_place::TensorMut;
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
    /// An elementwise function that exceeds the limits of one kernel.
    Several(RowProgram),
    Rows(RowProgram),
}

/// The axes of a function without reductions.
static NO_AXES: GroupAxes = GroupAxes::Of(Vec::new());

impl CompiledFunction {
    /// Compiles the outputs of a graph. Elementwise operations that exceed the limits of one kernel become several.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`] and [`Graph::row_program`].
    pub(super) fn new(graph: &Graph, outputs: &[Expr<'_>]) -> Result<CompiledFunction> {
        Ok(match graph.has_groups() {
            true => CompiledFunction::Rows(graph.row_program(outputs)?),
            false => match graph.expression(outputs) {
                Ok(expression) => CompiledFunction::Elementwise(expression),
                // The error of one expression names the limit, or another fault of the graph.
                Err(error) => graph
                    .several_expressions(outputs)
                    .map_or(Err(error), |program| Ok(CompiledFunction::Several(program)))?,
            },
        })
    }

    /// Returns the axes of a group.
    fn axes<'a>(&self, axes: &'a GroupAxes) -> &'a GroupAxes {
        match self {
            CompiledFunction::Several(_) => &NO_AXES,
            CompiledFunction::Elementwise(_) | CompiledFunction::Rows(_) => axes,
        }
    }

    #[inline]
    pub(super) fn compares_by_value(&self) -> bool {
        match self {
            CompiledFunction::Elementwise(expression) => expression.compares_by_value(),
            CompiledFunction::Several(program) | CompiledFunction::Rows(program) => {
                program.compares_by_value()
            }
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
            CompiledFunction::Several(program) | CompiledFunction::Rows(program) => {
                let axes = self.axes(axes);
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
            CompiledFunction::Several(program) | CompiledFunction::Rows(program) => {
                evaluate_rows(operation, program, &tensors, scalars, self.axes(axes))
            }
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
            CompiledFunction::Several(program) | CompiledFunction::Rows(program) => {
                let mut shape = broadcast(operation, tensors(sources))?.into_owned();
                for source in sources {
                    let OperandSource::Output(index) = *source else { continue };
                    if let Some(target) = targets.get(index) {
                        shape = shape.broadcast_in(operation, target.layout().shape())?;
                    }
                }
                run(
                    operation,
                    program,
                    sources.iter().copied(),
                    scalars,
                    &self.axes(axes).of(&shape),
                    targets,
                )
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
    let sources = tensors.iter().copied().map(OperandSource::Tensor);
    run(operation, program, sources, scalars, &axes, &mut targets)?;
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

fn run<'a>(
    operation: &'static str,
    program: &RowProgram,
    sources: impl Iterator<Item = OperandSource<'a>> + Clone,
    scalars: &[Number],
    axes: &[isize],
    targets: &mut [OutputTarget<'_>],
) -> Result<()> {
    run_targets(
        operation,
        sources,
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
    let mut inputs = Inputs::<INPUTS>::default();
    operands.iter().for_each(|operand| inputs.push(operand));
    let compiled = compiled_groups(&operands, inputs.numbers(), OUTPUTS, own, &|inputs| {
        function(std::array::from_fn(|at| inputs[at])).to_vec()
    })?;
    let outputs = compiled.evaluate(operation, inputs.sources(), compiled.given(inputs.numbers()), axes)?;
    let found = outputs.len();
    outputs.try_into().map_err(|_| Error::LengthMismatch { operation, wanted: OUTPUTS, found })
}

/// A row program of a function, with the numbers of its run as scalars or as literals.
enum CompiledGroups {
    Cached(&'static CompiledFunction),
    /// The numbers are literals of a program for this call alone.
    Once(CompiledFunction),
}

impl Deref for CompiledGroups {
    type Target = CompiledFunction;

    fn deref(&self) -> &CompiledFunction {
        match self {
            CompiledGroups::Cached(function) => function,
            CompiledGroups::Once(function) => function,
        }
    }
}

impl CompiledGroups {
    /// Returns the numbers that a run gives to the program.
    fn given<'n>(&self, numbers: &'n [Number]) -> &'n [Number] {
        match self {
            CompiledGroups::Cached(_) => numbers,
            CompiledGroups::Once(_) => &[],
        }
    }
}

/// Compiles a function by its type for operands like these, or returns it from the cache.
fn compiled_groups(
    operands: &[TensorOperand<'_>],
    numbers: &[Number],
    outputs: usize,
    own: TypeId,
    function: &dyn for<'g> Fn(&[Expr<'g>]) -> Vec<Expr<'g>>,
) -> Result<CompiledGroups> {
    static CACHE: AppendOnlyMap<(TypeId, Vec<OperandKind>), CompiledFunction> = AppendOnlyMap::new();
    let kinds: Vec<OperandKind> = operands.iter().map(OperandKind::of).collect();
    let compile = |literals: &[Number]| {
        let rows =
            |graph: &Graph, outputs: &[Expr<'_>]| graph.row_program(outputs).map(CompiledFunction::Rows);
        let stored = vec![None::<DType>; outputs];
        lower_list(&kinds, literals, &stored, rows, &|_, inputs| Ok(function(inputs)))
    };
    if !holds_all(operands)? {
        return Ok(CompiledGroups::Once(compile(numbers)?));
    }
    let same = |key: &(TypeId, Vec<OperandKind>)| key.0 == own && key.1 == kinds;
    let cached = CACHE.find_or_add(same, || Ok(((own, kinds.clone()), compile(&[])?)))?;
    Ok(CompiledGroups::Cached(cached))
}

/// As [`fuse_groups`], with the elements of a tensor as the first operand, which the first output replaces. Returns the other
/// outputs. Shared elements are read where they are, and the tensor gets other memory.
///
/// # Errors
///
/// As [`fuse_groups`]; [`Error::InvalidArgument`] for a first output of another shape or dtype than the tensor's.
pub(super) fn fuse_groups_in_place<const INPUTS: usize, const OUTPUTS: usize, F>(
    operation: &'static str,
    elements: &mut TensorMut<'_>,
    others: [TensorOperand<'_>; INPUTS],
    axes: &GroupAxes,
    function: F,
) -> Result<Vec<Tensor>>
where
    F: for<'g> Fn(Expr<'g>, [Expr<'g>; INPUTS]) -> [Expr<'g>; OUTPUTS] + 'static,
{
    const { assert!(size_of::<F>() == 0, "the function captures values") };
    fuse_groups_in_place_of(operation, elements, &others, axes, (TypeId::of::<F>(), OUTPUTS), &|inputs| {
        function(inputs[0], std::array::from_fn(|at| inputs[1 + at])).to_vec()
    })
}

#[inline(never)]
fn fuse_groups_in_place_of(
    operation: &'static str,
    elements: &mut TensorMut<'_>,
    others: &[TensorOperand<'_>],
    axes: &GroupAxes,
    (own, outputs): (TypeId, usize),
    function: &dyn for<'g> Fn(&[Expr<'g>]) -> Vec<Expr<'g>>,
) -> Result<Vec<Tensor>> {
    let number = |operand: &TensorOperand<'_>| match operand {
        TensorOperand::Number(number) => Some(*number),
        TensorOperand::Tensor(_) => None,
    };
    let numbers: Vec<Number> = others.iter().filter_map(number).collect();
    let compiled = {
        // The elements are shared while this tensor lives, so it ends before the run.
        let current = elements.current();
        let operands: Vec<TensorOperand<'_>> =
            std::iter::once((&current).into()).chain(others.iter().copied()).collect();
        compiled_groups(&operands, &numbers, outputs, own, function)?
    };
    let CompiledFunction::Rows(program) = &*compiled else {
        return Err(Error::invalid(
            operation,
            "an elementwise function",
            "a function with reductions over groups",
        ));
    };
    let axes = axes.of(elements.shape());
    let shapes = output_shapes(operation, program, elements.shape(), &axes)?;
    let mut fresh = Vec::with_capacity(shapes.len());
    for (dtype, shape) in program.outputs().into_iter().zip(&shapes).skip(1) {
        fresh.push(Output::of_shape(&elements.device(), dtype, shape)?);
    }
    let before = (!elements.is_own()).then(|| elements.current());
    let first = before.as_ref().map_or(OperandSource::Output(0), OperandSource::Tensor);
    let others = others.iter().filter_map(TensorOperand::tensor).map(OperandSource::Tensor);
    let sources = std::iter::once(first).chain(others);
    elements.write(|target| {
        let mut targets = vec![target];
        targets.extend(fresh.iter_mut().map(OutputTarget::all));
        run(operation, program, sources, compiled.given(&numbers), &axes, &mut targets)
    })?;
    Ok(fresh.into_iter().map(Output::into_tensor).collect())
}
