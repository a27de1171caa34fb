//! [`CompiledReduction`], a fold between two compiled expressions, and the checks of a run's operands.

use std::cell::RefCell;
use std::sync::Arc;

use super::compiled_expression::CompiledExpression;
use super::reduction::{PlanInput, ReductionPlan};
use super::reduction_dimensions::Dimensions;
use super::register_allocation::RegisterAllocation;
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::fuse::ir::program::parts;
use crate::fuse::language::fold::{Fold, FoldMap, FoldRules};
use crate::fuse::language::graph::{Expr, Graph};
use crate::types::{DType, Layout};

/// A reduction without the caches of its runs.
pub(in crate::fuse) struct CompiledReduction {
    pub(in crate::fuse) fold: Fold,
    pub(in crate::fuse) rules: FoldRules,
    /// The expression of the inputs, in the dtype that is folded.
    pub(in crate::fuse) prologue: Arc<CompiledExpression>,
    /// Of a [`Fold::SumOfSquares`], the squares of the elements times a factor, the input after those of the prologue.
    pub(in crate::fuse) rescaled: Option<Arc<CompiledExpression>>,
    /// The expression of the folded value.
    pub(in crate::fuse) epilogue: Arc<CompiledExpression>,
    pub(in crate::fuse) merge: RegisterAllocation,
    pub(in crate::fuse) append: RegisterAllocation,
    pub(in crate::fuse) restore: Option<RegisterAllocation>,
}

impl CompiledReduction {
    /// Compiles the reduction of a node's elements.
    ///
    /// # Errors
    ///
    /// As [`Graph::reduction`].
    pub(in crate::fuse) fn of(graph: &Graph, fold: Fold, of: Expr<'_>) -> Result<CompiledReduction> {
        let dtype = of.dtype();
        let result = fold.result(dtype)?;
        let accumulator = fold.accumulator(dtype)?;
        let of = if fold.map() == FoldMap::ToBool { of.cast(DType::Bool) } else { of };
        let is_squared = fold.map() == FoldMap::Square;
        let of = if is_squared && dtype.is_complex() { of } else { of.cast(accumulator) };
        let prologue = CompiledExpression::of(graph, &[if is_squared { square(of) } else { of }])?;
        if prologue.inputs.is_empty() {
            return Err(Error::invalid(fold.name(), "a graph without inputs", "at least one"));
        }
        refuse_coordinates(fold.name(), &prologue)?;
        let behind = Graph::new();
        let value = behind.input(match fold {
            Fold::SumOfSquares => result,
            _ if fold.has_index() => DType::I64,
            _ => accumulator,
        });
        let epilogue = CompiledExpression::of(&behind, &[value.cast(result)])?;
        let rescaled = if is_squared { Some(rescaled(graph, of, accumulator)?) } else { None };
        Ok(CompiledReduction::new(fold, accumulator, Arc::new(prologue), rescaled, Arc::new(epilogue)))
    }

    fn new(
        fold: Fold,
        accumulator: DType,
        prologue: Arc<CompiledExpression>,
        rescaled: Option<Arc<CompiledExpression>>,
        epilogue: Arc<CompiledExpression>,
    ) -> CompiledReduction {
        let rules = FoldRules::new(fold, accumulator);
        let (merge, append) = (RegisterAllocation::new(&rules.merge), RegisterAllocation::new(&rules.append));
        let restore = rules.restore.as_ref().map(RegisterAllocation::new);
        CompiledReduction { fold, rules, prologue, rescaled, epilogue, merge, append, restore }
    }

    /// Returns the reduction with another expression after the fold, whose operands have been checked.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an expression with indices or positions.
    pub(in crate::fuse) fn with_epilogue(
        &self,
        epilogue: Arc<CompiledExpression>,
    ) -> Result<CompiledReduction> {
        refuse_coordinates("the epilogue of a reduction", &epilogue)?;
        let CompiledReduction { fold, prologue, rescaled, .. } = self;
        let accumulator = prologue.outputs[0];
        Ok(CompiledReduction::new(*fold, accumulator, prologue.clone(), rescaled.clone(), epilogue))
    }

    /// Returns the dtype of the value before the last expression.
    pub(in crate::fuse) fn accumulator(&self) -> DType {
        self.epilogue.inputs[0]
    }

    /// Returns the dtype of the output.
    pub(in crate::fuse) fn output(&self) -> DType {
        self.epilogue.outputs[0]
    }

    /// Returns the bytes of the value of an empty reduction, and a layout that broadcasts it to the output.
    pub(in crate::fuse) fn empty_value(&self, output: Layout) -> Result<(Vec<u8>, Layout)> {
        let dtype = self.accumulator();
        let part = dtype.size() / parts(dtype);
        let empty = self.rules.empty[..parts(dtype)].iter();
        let bytes = empty.flat_map(|bits| bits.to_le_bytes()[..part].to_vec()).collect();
        Ok((bytes, Layout::contiguous(&[])?.expand(output.shape())?))
    }

    /// Returns the scalars of the expression after the fold. The number of scalars has been checked.
    pub(in crate::fuse) fn scalars_of_last<'a>(&self, scalars: &'a [Number]) -> &'a [Number] {
        &scalars[scalars.len() - self.epilogue.run_scalars.len()..]
    }

    /// Returns the expression of a kernel's elements, with a factor as the last input of a [`Fold::SumOfSquares`].
    pub(in crate::fuse) fn element(&self) -> &CompiledExpression {
        self.rescaled.as_ref().unwrap_or(&self.prologue)
    }

    /// Returns the number of scalars of both expressions, including literals.
    pub(in crate::fuse) fn scalars(&self) -> usize {
        self.prologue.scalars.len() + self.epilogue.scalars.len()
    }

    /// Returns a 0 for each scalar of a run.
    pub(in crate::fuse) fn zero_scalars(&self) -> Vec<Number> {
        vec![Number::Integer(0); self.prologue.run_scalars.len() + self.epilogue.run_scalars.len()]
    }

    /// Returns the bits of all scalars: those of the prologue, then those of the epilogue.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of scalars.
    pub(in crate::fuse) fn scalar_bits(&self, given: &[Number]) -> Result<Vec<[u64; 2]>> {
        let of = |compiled: &CompiledExpression| compiled.run_scalars.len();
        let wanted = of(&self.prologue) + of(&self.epilogue);
        if given.len() != wanted {
            return Err(Error::LengthMismatch {
                operation: "a reduction's scalars",
                wanted,
                found: given.len(),
            });
        }
        let (before, behind) = given.split_at(of(&self.prologue));
        let mut bits = self.prologue.scalar_bits(before)?;
        bits.extend(self.epilogue.scalar_bits(behind)?);
        Ok(bits)
    }

    /// Checks the number and dtypes of the operands.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DTypeMismatch`] for operands that differ from the reduction's.
    pub(super) fn check_operands(&self, inputs: &[(DType, Layout)], output: DType) -> Result<()> {
        let operation = self.fold.name();
        if inputs.len() != self.prologue.inputs.len() {
            let (wanted, found) = (self.prologue.inputs.len(), inputs.len());
            return Err(Error::LengthMismatch { operation: "a reduction's inputs", wanted, found });
        }
        let given = inputs.iter().map(|(dtype, _)| dtype).chain([&output]);
        for (wanted, found) in self.prologue.inputs.iter().chain(&self.epilogue.outputs).zip(given) {
            if wanted != found {
                let (wanted, found) = (wanted.to_string(), found.to_string());
                return Err(Error::DTypeMismatch { operation, wanted, found });
            }
        }
        Ok(())
    }

    /// Returns the dimensions of a run.
    ///
    /// # Errors
    ///
    /// As [`check_operands`](Self::check_operands) and [`Dimensions::new`], and [`Error::InvalidArgument`]
    /// for a minimum or maximum of no elements.
    pub(in crate::fuse) fn dimensions(
        &self,
        inputs: &[(DType, Layout)],
        output: (DType, Layout),
    ) -> Result<Dimensions> {
        let operation = self.fold.name();
        self.check_operands(inputs, output.0)?;
        let layouts: Vec<Layout> = inputs.iter().map(|(_, layout)| *layout).collect();
        let dimensions = Dimensions::new(operation, &layouts, &output.1)?;
        if dimensions.row == 0 && dimensions.rows > 0 && !self.fold.has_empty() {
            let found = match dimensions.rows {
                1 => "no elements to reduce".to_owned(),
                rows => format!("no elements to reduce for each of {rows} results"),
            };
            let wanted = "an axis with at least one element";
            return Err(Error::invalid(operation, found, wanted));
        }
        Ok(dimensions)
    }

    /// Returns the instruction count of one element: its expression and the fold.
    pub(super) fn steps(&self) -> usize {
        let program = &self.prologue.program;
        let live = program.live(program.outputs[0].into_iter());
        live.iter().filter(|live| **live).count() + self.rules.append.steps.len()
    }

    /// Plans the launches of a run of at least one element.
    ///
    /// # Errors
    ///
    /// As [`PlanInput::plan`].
    pub(in crate::fuse) fn plan(
        &self,
        dimensions: &Dimensions,
        starts: &[u64],
        is_ampere: bool,
    ) -> Result<ReductionPlan> {
        let dtypes = self.prologue.inputs.iter().chain(&self.epilogue.outputs);
        let bytes: Vec<usize> = dtypes.map(|dtype| dtype.size()).collect();
        let work = PlanInput {
            dimensions,
            rules: &self.rules,
            bytes: &bytes,
            starts,
            scalars: self.scalars(),
            steps: self.steps(),
            is_ampere,
            rescales: self.rescaled.is_some(),
        };
        work.plan()
    }
}

/// |x|².
fn square(x: Expr<'_>) -> Expr<'_> {
    if x.dtype().is_complex() { x.real().square() + x.imag().square() } else { x.square() }
}

/// Returns the squares of elements times a factor, which is a further input.
///
/// # Errors
///
/// As [`Graph::expression`].
fn rescaled(graph: &Graph, of: Expr<'_>, accumulator: DType) -> Result<Arc<CompiledExpression>> {
    // The caller's graph keeps its inputs.
    let graph = Graph(RefCell::new(graph.0.borrow().clone()));
    let of = Expr { graph: &graph, node: of.node };
    let factor = graph.input(accumulator);
    let scaled = match of.dtype().is_complex() {
        true => (of.real() * factor).square() + (of.imag() * factor).square(),
        false => (of * factor).square(),
    };
    Ok(Arc::new(CompiledExpression::of(&graph, &[scaled])?))
}

/// Refuses an expression with indices: a reduction has no output shape that they could refer to.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an expression with indices or positions.
fn refuse_coordinates(operation: &'static str, expression: &CompiledExpression) -> Result<()> {
    if expression.coordinates.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(
        operation,
        "indices or positions of elements",
        "an expression of inputs and scalars only",
    ))
}
