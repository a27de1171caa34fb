//! Reductions: a fold over axes, with an expression of the inputs before it and one of the result behind it, in one pass
//! over memory.
//!
//! A [`Reduction`] comes of a [`Graph`](super::Graph) ([`Graph::reduction`](super::Graph::reduction)) and a [`Fold`]. Axes in
//! which the output has size 1 are folded, as broadcasting read backwards.
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
//! **The tree.** In what order a row is folded depends on its length alone, never on the device, the layout or threads, so
//! sums are equal bit for bit everywhere. A row is its elements in row-major order of the inputs' axes. 1024 of them are a
//! segment, of 256 lanes: lane l folds elements l, l + 256, l + 512, l + 768 in this order; then the upper half of the
//! lanes is folded into the lower half until one is left (l with l + 128, l + 64, …). Segments are folded with their
//! neighbours (0 with 1, 2 with 3, …), what comes of that likewise. Elements that are not there are left out. So a power
//! of two of neighbouring segments is a node of the tree, and a warp, a block or a launch can have as many as suit
//! it; and an error grows with the logarithm of the length.

mod device;
mod dimensions;
mod fold;
mod host;
mod plan;
mod ptx;
mod scan;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::expression::{Expression, State as ExpressionState};
use super::graph::Graph;
use super::host::Schedule;
use super::number::Number;
use super::program::parts;
use crate::driver::Function;
use crate::error::{Error, Result};
use crate::types::{DType, Layout};
pub use device::{LaunchMemory, ReductionExplanation, ReductionLaunch};
use dimensions::Dimensions;
pub use fold::Fold;
use fold::Rules;
pub use scan::Scan;

/// A fold over axes of any number of inputs: one kernel (and small ones where rows are long), on a device or the CPU.
///
/// Cheap to clone; clones share the kernels that were assembled.
#[derive(Clone)]
pub struct Reduction(Arc<State>);

struct State {
    fold: Fold,
    rules: Rules,
    /// Of the inputs, in the dtype that is folded.
    prologue: Arc<ExpressionState>,
    /// Of the folded value.
    epilogue: Arc<ExpressionState>,
    merge: Schedule,
    append: Schedule,
    restore: Option<Schedule>,
    /// By device and key.
    kernels: Mutex<HashMap<(usize, plan::Key), Function>>,
}

impl State {
    /// Scalars of both expressions, with their own numbers.
    fn scalars(&self) -> usize {
        self.prologue.scalars.len() + self.epilogue.scalars.len()
    }

    /// The bits of all scalars: those of the prologue, then those of the epilogue.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of them.
    fn scalar_bits(&self, given: &[Number]) -> Result<Vec<[u64; 2]>> {
        let of = |state: &ExpressionState| state.given.len();
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

    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DTypeMismatch`] for operands that are not the reduction's.
    fn check_operands(&self, inputs: &[(DType, Layout)], output: DType) -> Result<()> {
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

    /// # Errors
    ///
    /// As [`check_operands`](Self::check_operands) and
    /// [`Dimensions::new`], and [`Error::InvalidArgument`] for an extreme of nothing.
    fn dimensions(&self, inputs: &[(DType, Layout)], output: (DType, Layout)) -> Result<Dimensions> {
        let operation = self.fold.name();
        self.check_operands(inputs, output.0)?;
        let layouts: Vec<Layout> = inputs.iter().map(|(_, layout)| *layout).collect();
        let dimensions = Dimensions::new(operation, &layouts, &output.1)?;
        if dimensions.row == 0 && dimensions.rows > 0 && !self.fold.has_empty() {
            let found = match dimensions.rows {
                1 => "no elements to reduce".to_owned(),
                rows => format!("no elements to reduce for each of {rows} results"),
            };
            let wanted = "an axis with at least one element, because no elements have no extreme";
            return Err(Error::invalid(operation, found, wanted));
        }
        Ok(dimensions)
    }
}

impl Graph {
    /// A fold of the elements of a node. The result has the dtype of [`Fold::result`]; [`Reduction::then`] goes on from there.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`] and [`Fold::result`]; [`Error::InvalidArgument`] for a node without inputs.
    pub fn reduction(&self, fold: Fold, of: super::Expr<'_>) -> Result<Reduction> {
        let dtype = of.dtype();
        let result = fold.result(dtype)?;
        let accumulator = fold.accumulator(dtype)?;
        let of = if matches!(fold, Fold::Any | Fold::All) { of.cast(DType::Bool) } else { of };
        let prologue = self.expression(&[of.cast(accumulator)])?;
        if prologue.inputs().is_empty() {
            return Err(Error::invalid(fold.name(), "a graph without inputs", "at least one"));
        }
        refuse_coordinates(fold.name(), &prologue)?;
        let behind = Graph::new();
        let value = behind.input(if fold.has_index() { DType::I64 } else { accumulator });
        let epilogue = behind.expression(&[value.cast(result)])?;
        Ok(Reduction::new(fold, accumulator, prologue.0, epilogue.0))
    }
}

impl Reduction {
    fn new(
        fold: Fold,
        accumulator: DType,
        prologue: Arc<ExpressionState>,
        epilogue: Arc<ExpressionState>,
    ) -> Reduction {
        let rules = Rules::new(fold, accumulator);
        let (merge, append) = (Schedule::new(&rules.merge), Schedule::new(&rules.append));
        let restore = rules.restore.as_ref().map(Schedule::new);
        Reduction(Arc::new(State {
            fold,
            rules,
            prologue,
            epilogue,
            merge,
            append,
            restore,
            kernels: Mutex::default(),
        }))
    }

    /// With an expression of the folded value, such as a root or a cast, before it is stored. It has one input, of the dtype
    /// [`accumulator`](Self::accumulator), and one output; its scalars are given behind those of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an expression of other operands.
    pub fn then(&self, expression: &Expression) -> Result<Reduction> {
        let wanted = self.accumulator();
        if expression.inputs() != [wanted] || expression.outputs().len() != 1 {
            let wanted = format!("one of {wanted} with one output");
            return Err(Error::invalid("the end of a reduction", format!("{expression:?}"), wanted));
        }
        refuse_coordinates("the end of a reduction", expression)?;
        let State { fold, prologue, .. } = &*self.0;
        Ok(Reduction::new(*fold, prologue.outputs[0], prologue.clone(), expression.0.clone()))
    }

    /// The bytes of the value of nothing, and a layout that has it for every element of an output.
    fn empty_value(&self, output: Layout) -> Result<(Vec<u8>, Layout)> {
        let dtype = self.accumulator();
        let part = dtype.size() / parts(dtype);
        let empty = self.0.rules.empty[..parts(dtype)].iter();
        let bytes = empty.flat_map(|bits| bits.to_le_bytes()[..part].to_vec()).collect();
        Ok((bytes, Layout::contiguous(&[])?.expand(output.shape())?))
    }

    /// The expression behind the fold.
    fn last(&self) -> Expression {
        Expression(self.0.epilogue.clone())
    }

    /// The scalars that a run gives it; as many were given as there must be.
    fn scalars_of_last<'a>(&self, scalars: &'a [Number]) -> &'a [Number] {
        let count = self.last().scalars().len();
        &scalars[scalars.len() - count..]
    }

    /// What is folded.
    pub fn fold(&self) -> Fold {
        self.0.fold
    }

    /// The dtype of the value before the last expression: f32 for sums of f16, i64 for places.
    pub fn accumulator(&self) -> DType {
        self.0.epilogue.inputs[0]
    }

    /// The dtypes of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.0.prologue.inputs
    }

    /// The dtype of the output.
    pub fn output(&self) -> DType {
        self.0.epilogue.outputs[0]
    }
}

/// # Errors
///
/// [`Error::InvalidArgument`] for an expression with indices: of which shape they would be a reduction does not know.
fn refuse_coordinates(operation: &'static str, expression: &Expression) -> Result<()> {
    if expression.0.coordinates.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(operation, "indices or positions of elements", "inputs and scalars alone"))
}

impl fmt::Debug for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs: Vec<&str> = self.inputs().iter().map(|dtype| dtype.name()).collect();
        write!(formatter, "Reduction({} of {} -> {})", self.0.fold.name(), inputs.join(", "), self.output())
    }
}
