//! Reductions: a fold over axes, with an expression of the inputs before it and an expression of the result
//! after it, in one pass over memory.
//!
//! [`Graph::reduction`](crate::fuse::Graph::reduction) creates a [`Reduction`] from a [`Graph`](crate::fuse::Graph) and a
//! [`Fold`]. Axes in which the output has size 1 are folded, the reverse of broadcasting.
//!
//! ```
//! use selvedge::fuse::{Fold, Graph, HostInput, HostOutput};
//! use selvedge::types::{DType, Layout};
//!
//! let graph = Graph::new();
//! let [x, mean] = graph.inputs([DType::F32; 2]);
//! let squares = graph.reduction(Fold::Sum, (x - mean).square())?;
//!
//! let (matrix, column) = (Layout::contiguous(&[2, 3])?, Layout::contiguous(&[2, 1])?);
//! let mut sums = [0.0f32; 2];
//! squares.run_host(
//!     &[HostInput::new(&[1.0f32, 2.0, 3.0, 4.0, 6.0, 8.0], matrix)?, HostInput::new(&[2.0f32, 6.0], column)?],
//!     &[],
//!     &mut HostOutput::new(&mut sums, column)?,
//! )?;
//! assert_eq!(sums, [2.0, 8.0]);
//! # Ok::<(), selvedge::Error>(())
//! ```
//!
//! **The tree.** The order in which a row is folded depends only on its length, never on the device, the
//! layout or the threads, so sums are equal bit for bit everywhere. A row holds its elements in row-major
//! order of the inputs' axes. A segment has 1024 elements in 256 lanes. Lane l folds the elements l, l + 256,
//! l + 512 and l + 768 in this order. The upper half of the lanes is then folded into the lower half until
//! one lane is left (l with l + 128, l + 64, …). Neighbouring segments are folded (0 with 1, 2 with 3, …),
//! and their results likewise. Missing elements are skipped. Every aligned power of two of segments is
//! therefore a node of the tree, which a warp, a block or a launch can compute, and the error grows with the
//! logarithm of the length.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use super::expression::{Expression, ExpressionState};
use crate::driver::{DeviceCache, Function};
use crate::error::{Error, Result};
use crate::fuse::cpu::Schedule;
use crate::fuse::ir::number::Number;
use crate::fuse::ir::program::parts;
use crate::fuse::language::fold::{Fold, FoldRules};
use crate::fuse::language::graph::{Expr, Graph};
use crate::fuse::plan;
use crate::fuse::plan::reduction_dimensions::Dimensions;
use crate::types::{DType, Layout};

/// A reduction of any number of inputs over axes: one kernel on a device, with small ones after it for long
/// rows, or a pass on the CPU.
///
/// Cloning is cheap, and clones share the compiled kernels.
#[derive(Clone)]
pub struct Reduction(pub(in crate::fuse) Arc<ReductionState>);

pub(in crate::fuse) struct ReductionState {
    pub(in crate::fuse) fold: Fold,
    pub(in crate::fuse) rules: FoldRules,
    /// The expression of the inputs, in the dtype that is folded.
    pub(in crate::fuse) prologue: Arc<ExpressionState>,
    /// Of a [`Fold::SumOfSquares`], the squares of the elements times a factor, the input after those of the prologue.
    pub(in crate::fuse) rescaled: Option<Arc<ExpressionState>>,
    /// The expression of the folded value.
    pub(in crate::fuse) epilogue: Arc<ExpressionState>,
    pub(in crate::fuse) merge: Schedule,
    pub(in crate::fuse) append: Schedule,
    pub(in crate::fuse) restore: Option<Schedule>,
    /// The compiled kernels.
    pub(super) kernels: DeviceCache<plan::reduction::ReductionKey, Function>,
}

impl ReductionState {
    /// Returns the expression of a kernel's elements, with a factor as the last input of a [`Fold::SumOfSquares`].
    pub(in crate::fuse) fn element(&self) -> &ExpressionState {
        self.rescaled.as_ref().unwrap_or(&self.prologue)
    }

    /// Returns the number of scalars of both expressions, including literals.
    pub(in crate::fuse) fn scalars(&self) -> usize {
        self.prologue.scalars.len() + self.epilogue.scalars.len()
    }

    /// Returns a 0 for each scalar of a run.
    pub(super) fn zero_scalars(&self) -> Vec<Number> {
        vec![Number::Integer(0); self.prologue.run_scalars.len() + self.epilogue.run_scalars.len()]
    }

    /// Returns the bits of all scalars: those of the prologue, then those of the epilogue.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of scalars.
    pub(in crate::fuse) fn scalar_bits(&self, given: &[Number]) -> Result<Vec<[u64; 2]>> {
        let of = |state: &ExpressionState| state.run_scalars.len();
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
}

impl Graph {
    /// Creates a reduction of a node's elements. The result has the dtype [`Fold::result`];
    /// [`Reduction::then`] continues from it.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`] and [`Fold::result`]; [`Error::InvalidArgument`] for a node without inputs.
    pub fn reduction(&self, fold: Fold, of: Expr<'_>) -> Result<Reduction> {
        let dtype = of.dtype();
        let result = fold.result(dtype)?;
        let accumulator = fold.accumulator(dtype)?;
        let of = if matches!(fold, Fold::Any | Fold::All) { of.cast(DType::Bool) } else { of };
        let is_squared = fold == Fold::SumOfSquares;
        let of = if is_squared && dtype.is_complex() { of } else { of.cast(accumulator) };
        let prologue = self.expression(&[if is_squared { square(of) } else { of }])?;
        if prologue.inputs().is_empty() {
            return Err(Error::invalid(fold.name(), "a graph without inputs", "at least one"));
        }
        refuse_coordinates(fold.name(), &prologue)?;
        let behind = Graph::new();
        let value = behind.input(match fold {
            Fold::SumOfSquares => result,
            _ if fold.has_index() => DType::I64,
            _ => accumulator,
        });
        let epilogue = behind.expression(&[value.cast(result)])?;
        let rescaled = if is_squared { Some(rescaled(self, of, accumulator)?) } else { None };
        Ok(Reduction::new(fold, accumulator, prologue.0, rescaled, epilogue.0))
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
fn rescaled(graph: &Graph, of: Expr<'_>, accumulator: DType) -> Result<Arc<ExpressionState>> {
    // The caller's graph keeps its inputs.
    let graph = Graph(RefCell::new(graph.0.borrow().clone()));
    let of = Expr { graph: &graph, node: of.node };
    let factor = graph.input(accumulator);
    let scaled = match of.dtype().is_complex() {
        true => (of.real() * factor).square() + (of.imag() * factor).square(),
        false => (of * factor).square(),
    };
    Ok(graph.expression(&[scaled])?.0)
}

impl Reduction {
    fn new(
        fold: Fold,
        accumulator: DType,
        prologue: Arc<ExpressionState>,
        rescaled: Option<Arc<ExpressionState>>,
        epilogue: Arc<ExpressionState>,
    ) -> Reduction {
        let rules = FoldRules::new(fold, accumulator);
        let (merge, append) = (Schedule::new(&rules.merge), Schedule::new(&rules.append));
        let restore = rules.restore.as_ref().map(Schedule::new);
        Reduction(Arc::new(ReductionState {
            fold,
            rules,
            prologue,
            rescaled,
            epilogue,
            merge,
            append,
            restore,
            kernels: DeviceCache::new(),
        }))
    }

    /// Applies an expression to the folded value before it is stored, such as a root or a cast. The
    /// expression has one input of dtype [`accumulator`](Self::accumulator) and one output. Its scalars
    /// follow those of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an expression of other operands.
    pub fn then(&self, expression: &Expression) -> Result<Reduction> {
        let wanted = self.accumulator();
        if expression.inputs() != [wanted] || expression.outputs().len() != 1 {
            let wanted = format!("an expression of {wanted} with one output");
            return Err(Error::invalid("the epilogue of a reduction", format!("{expression:?}"), wanted));
        }
        refuse_coordinates("the epilogue of a reduction", expression)?;
        let ReductionState { fold, prologue, rescaled, .. } = &*self.0;
        let (accumulator, last) = (prologue.outputs[0], expression.0.clone());
        Ok(Reduction::new(*fold, accumulator, prologue.clone(), rescaled.clone(), last))
    }

    /// Returns the bytes of the value of an empty reduction, and a layout that broadcasts it to the output.
    pub(in crate::fuse) fn empty_value(&self, output: Layout) -> Result<(Vec<u8>, Layout)> {
        let dtype = self.accumulator();
        let part = dtype.size() / parts(dtype);
        let empty = self.0.rules.empty[..parts(dtype)].iter();
        let bytes = empty.flat_map(|bits| bits.to_le_bytes()[..part].to_vec()).collect();
        Ok((bytes, Layout::contiguous(&[])?.expand(output.shape())?))
    }

    /// Returns the expression after the fold.
    pub(in crate::fuse) fn last(&self) -> Expression {
        Expression(self.0.epilogue.clone())
    }

    /// Returns the scalars of the expression after the fold. The number of scalars has been checked.
    pub(in crate::fuse) fn scalars_of_last<'a>(&self, scalars: &'a [Number]) -> &'a [Number] {
        let count = self.last().scalars().len();
        &scalars[scalars.len() - count..]
    }

    /// Returns the fold.
    pub fn fold(&self) -> Fold {
        self.0.fold
    }

    /// Returns the dtype of the value before the last expression: f32 for sums of f16, i64 for indices, a complex dtype for
    /// [`Fold::SumOfSquares`].
    pub fn accumulator(&self) -> DType {
        self.0.epilogue.inputs[0]
    }

    /// Returns the dtypes of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.0.prologue.inputs
    }

    /// Returns the dtype of the output.
    pub fn output(&self) -> DType {
        self.0.epilogue.outputs[0]
    }
}

/// Refuses an expression with indices: a reduction has no output shape that they could refer to.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an expression with indices or positions.
fn refuse_coordinates(operation: &'static str, expression: &Expression) -> Result<()> {
    if expression.0.coordinates.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(
        operation,
        "indices or positions of elements",
        "an expression of inputs and scalars only",
    ))
}

impl fmt::Debug for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs: Vec<&str> = self.inputs().iter().map(|dtype| dtype.name()).collect();
        write!(formatter, "Reduction({} of {} -> {})", self.0.fold.name(), inputs.join(", "), self.output())
    }
}
