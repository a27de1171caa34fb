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

use std::fmt;
use std::sync::Arc;

use super::expression::Expression;
use crate::driver::{DeviceCache, Function};
use crate::error::{Error, Result};
use crate::fuse::cpu::backend::CpuCode;
use crate::fuse::cpu::reduction::ReductionCode;
use crate::fuse::language::fold::Fold;
use crate::fuse::language::graph::{Expr, Graph};
use crate::fuse::plan::compiled_reduction::CompiledReduction;
use crate::fuse::plan::reduction::ReductionKey;
use crate::types::DType;

/// A reduction of any number of inputs over axes: one kernel on a device, with small ones after it for long
/// rows, or a pass on the CPU.
///
/// Cloning is cheap, and clones share the compiled kernels.
#[derive(Clone)]
pub struct Reduction(pub(in crate::fuse) Arc<ReductionState>);

/// A compiled reduction and the caches of its runs.
pub(in crate::fuse) struct ReductionState {
    pub(in crate::fuse) compiled: Arc<CompiledReduction>,
    pub(in crate::fuse) cpu_code: ReductionCode,
    /// The expression of the folded value.
    epilogue: Expression,
    /// The compiled kernels.
    pub(super) kernels: DeviceCache<ReductionKey, Function>,
}

impl Graph {
    /// Creates a reduction of a node's elements. The result has the dtype [`Fold::result`];
    /// [`Reduction::then`] continues from it.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`] and [`Fold::result`]; [`Error::InvalidArgument`] for a node without inputs.
    pub fn reduction(&self, fold: Fold, of: Expr<'_>) -> Result<Reduction> {
        Ok(Reduction::uncached(Arc::new(CompiledReduction::of(self, fold, of)?)))
    }
}

impl Reduction {
    /// Creates a reduction without caches.
    pub(super) fn uncached(compiled: Arc<CompiledReduction>) -> Reduction {
        let epilogue = Expression::new(compiled.epilogue.clone(), CpuCode::default());
        Reduction::new(compiled, epilogue, ReductionCode::default())
    }

    /// Creates a reduction without kernels. `cpu_code` is that of the expressions before the fold.
    fn new(compiled: Arc<CompiledReduction>, epilogue: Expression, cpu_code: ReductionCode) -> Reduction {
        let cpu_code = ReductionCode { epilogue: epilogue.0.cpu_code.clone(), ..cpu_code };
        let kernels = DeviceCache::new();
        Reduction(Arc::new(ReductionState { compiled, cpu_code, epilogue, kernels }))
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
        let compiled = self.0.compiled.with_epilogue(expression.0.compiled.clone())?;
        Ok(Reduction::new(Arc::new(compiled), expression.clone(), self.0.cpu_code.clone()))
    }

    /// Returns the expression after the fold.
    pub(super) fn last(&self) -> &Expression {
        &self.0.epilogue
    }

    /// Returns the fold.
    pub fn fold(&self) -> Fold {
        self.0.compiled.fold
    }

    /// Returns the dtype of the value before the last expression: f32 for sums of f16, i64 for indices, a complex dtype for
    /// [`Fold::SumOfSquares`].
    pub fn accumulator(&self) -> DType {
        self.0.compiled.accumulator()
    }

    /// Returns the dtypes of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.0.compiled.prologue.inputs
    }

    /// Returns the dtype of the output.
    pub fn output(&self) -> DType {
        self.0.compiled.output()
    }
}

impl fmt::Debug for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs: Vec<&str> = self.inputs().iter().map(|dtype| dtype.name()).collect();
        write!(
            formatter,
            "Reduction({} of {} -> {})",
            self.0.compiled.fold.name(),
            inputs.join(", "),
            self.output()
        )
    }
}
