//! Row programs: expressions that contain reductions over groups of their elements, such as softmax and
//! normalisation.
//!
//! [`Graph::row_program`](crate::fuse::Graph::row_program) splits the graph into phases at its reductions (`plan::rows_split`). A
//! reduction over groups is an expression of inputs, scalars and the values of earlier reductions; so are the
//! outputs. Reductions of phase 0 depend on no other, those of phase n on one of phase n - 1.
//!
//! **One kernel.** On a device, the whole program is one kernel if its groups are rows (`plan::rows`): a row stays in
//! registers or in shared memory (`plan::rows_storage`) between the reductions, or each stage reads it again. `plan::rows_stages` lowers the program
//! to one expression for this kernel, and `ptx::rows` writes it. Groups of strided elements are walked in tiles of neighbouring
//! groups (`plan::rows_columns`). Random words and positions are computed in registers if a group
//! is the last axes.
//!
//! **Blocks of rows.** On a CPU with machine code, all phases of a block of rows run one after another in the cache, if
//! the elements of a group are adjacent (`cpu::rows`). Outputs read the elements that a reduction has folded, and
//! values of groups that are computed once (`cpu::rows::folded`).
//!
//! **Several kernels.** For other programs and layouts on the CPU or a device (longer strided groups, few long groups, more
//! than 2²¹ elements a group, `Graph::index` or `Graph::position`, too many instructions or operands), each reduction runs as a
//! [`Reduction`] with its phase's expression before the fold, into temporary memory with one value per group. Then
//! one [`Expression`] computes the outputs per element and one those per group. The values of groups broadcast
//! over their elements. Random words and coordinates that a reduction depends on are computed into memory first (`plan::rows_stored`).
//! This execution is the reference of the others.
//!
//! **Sections.** A program with a phase of more operands or instructions than one expression may have is divided into
//! sections (`plan::rows_sections`), which store the values that later ones read. It runs as several kernels.
//!
//! **Dtypes.** f16 and bf16 are computed in f32 and rounded where an output is stored or the expression casts to the dtype.
//! A comparison with a number uses the number that the dtype holds.
//!
//! **`at_group`** is the sum over the group of the element at the index and -0 for each other element. A run checks the
//! index: on the CPU before it writes outputs, on a device in the kernel (`ptx::rows::report`).
//!
//! Invariants: the order of each sum is the tree of [`Reduction`], so results have the same bits on every
//! device. Scalars and the size of a group are parameters of kernels, never text.
//!
//! Tests: `tests/tensor/rows.rs`, `tests/tensor/row_blocks.rs`; the kernels in `tests/parity/rows.rs`,
//! `tests/parity/row_spans.rs`, `tests/parity/row_draws.rs`, `tests/parity/row_squares.rs` and `tests/parity/row_sections.rs`.

use std::fmt;
use std::sync::Arc;

use super::expression::Expression;
use super::reduction::Reduction;
use super::rows_sums::SumsOverGroups;
use crate::driver::{DeviceCache, Function};
use crate::error::{Error, Result};
use crate::fuse::cpu::backend::CpuCode;
#[cfg(target_arch = "x86_64")]
use crate::fuse::cpu::rows::{BlockFinishes, BlockRuns};
use crate::fuse::language::graph::{Expr, Graph};
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::compiled_rows::{CompiledRows, OPERATION};
use crate::fuse::plan::rows_key::RowKey;
use crate::fuse::plan::rows_split;
use crate::types::DType;

/// A compiled computation on groups of elements: an expression that may contain reductions over the group of
/// each element, such as a softmax.
///
/// [`Graph::row_program`](crate::fuse::Graph::row_program) creates it. A run chooses the axes of a group, which are the
/// same for all reductions. Inputs broadcast to one shape, the shape of the elements: an input may have a value
/// per element, per group (size 1 in the axes of the group), along a group (size 1 elsewhere), or one for all. An
/// output has a value per element, or a value per group if it depends on inputs through reductions only
/// ([`is_per_group`](Self::is_per_group)); the latter has size 1 in the axes of the group. A sum over groups
/// ([`sum_over_groups`](crate::fuse::Expr::sum_over_groups)) has size 1 in the other axes.
///
/// Values of f16 and bf16 are computed in f32 and rounded once, when an output is stored or where the expression
/// casts to the dtype. A reduction's value stays in f32 too, so a softmax of bf16 has no rounding but the last.
///
/// Cloning is cheap, and clones share the compiled kernels.
///
/// ```
/// use selvedge::fuse::{Graph, HostInput, HostOutput};
/// use selvedge::types::{DType, Layout};
///
/// let graph = Graph::new();
/// let x = graph.input(DType::F32);
/// let centred = x - x.mean_group();
/// let variance = centred.square().mean_group();
/// let standardised = graph.row_program(&[centred / variance.sqrt(), variance])?;
/// assert!(!standardised.is_per_group(0) && standardised.is_per_group(1));
///
/// let (matrix, column) = (Layout::contiguous(&[2, 2])?, Layout::contiguous(&[2, 1])?);
/// let (mut result, mut variances) = ([0.0f32; 4], [0.0f32; 2]);
/// standardised.run_host(
///     &[HostInput::new(&[1.0f32, 3.0, -5.0, 5.0], matrix)?],
///     &[],
///     &[-1],
///     &mut [HostOutput::new(&mut result, matrix)?, HostOutput::new(&mut variances, column)?],
/// )?;
/// assert_eq!((result, variances), ([-1.0, 1.0, -1.0, 1.0], [1.0, 25.0]));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone)]
pub struct RowProgram(pub(in crate::fuse) Arc<RowProgramState>);

/// A compiled program and the caches of its runs, with a value for each phase in the order of the compiled ones.
pub(in crate::fuse) struct RowProgramState {
    pub(in crate::fuse) compiled: Arc<CompiledRows>,
    pub(in crate::fuse) reductions: Vec<Reduction>,
    pub(in crate::fuse) finishes: Vec<Expression>,
    pub(in crate::fuse) indices: Vec<Expression>,
    pub(in crate::fuse) element_indices: Option<Expression>,
    pub(in crate::fuse) stored: Vec<Expression>,
    /// The assembled kernels.
    pub(super) kernels: DeviceCache<RowKey, Function>,
    /// Runs on the CPU by blocks of rows.
    #[cfg(target_arch = "x86_64")]
    pub(super) blocks: BlockRuns,
    /// The programs that a run with sums over groups executes.
    pub(in crate::fuse) sums: Option<SumsOverGroups>,
}

/// Returns an expression without caches.
pub(super) fn uncached(compiled: &Arc<CompiledExpression>) -> Expression {
    Expression::new(compiled.clone(), CpuCode::default())
}

impl Graph {
    /// Compiles the row program that computes these outputs, which may contain reductions such as
    /// [`sum_group`](Expr::sum_group). A program of more operands or instructions than an expression may have runs as several
    /// kernels.
    ///
    /// # Errors
    ///
    /// As [`expression`](Self::expression) and [`reduction`](Self::reduction) for each part, whose limits matter for a seed of
    /// random words and an index of [`at_group`](Expr::at_group) only; [`Error::InvalidArgument`] for a graph without inputs, and
    /// for an operation on floats with an index of [`argmax_group`](Expr::argmax_group).
    pub fn row_program(&self, outputs: &[Expr<'_>]) -> Result<RowProgram> {
        let outputs = self.checked(OPERATION, outputs)?;
        let nodes = self.0.borrow();
        if nodes.inputs.is_empty() {
            return Err(Error::invalid(OPERATION, "a graph without inputs", "at least one"));
        }
        let (nodes, outputs) = rows_split::widen(&nodes, &outputs);
        match SumsOverGroups::new(&nodes, &outputs)? {
            Some(sums) => Ok(RowProgram::with_sums(&nodes, &outputs, sums)),
            None => RowProgram::compile(&nodes, &outputs),
        }
    }
}

impl RowProgram {
    /// Creates a program without kernels.
    pub(super) fn new(
        compiled: CompiledRows,
        #[cfg(target_arch = "x86_64")] finishes_of_blocks: BlockFinishes,
        sums: Option<SumsOverGroups>,
    ) -> RowProgram {
        let reductions = compiled.reductions.iter().map(|of| Reduction::uncached(of.reduction.clone()));
        let reductions: Vec<Reduction> = reductions.collect();
        let finishes: Vec<Expression> = compiled.finishes.iter().map(|of| uncached(&of.expression)).collect();
        #[cfg(target_arch = "x86_64")]
        let blocks = BlockRuns::new(
            finishes_of_blocks,
            reductions.iter().map(|reduction| reduction.0.cpu_code.clone()).collect(),
            finishes.iter().map(|expression| expression.0.cpu_code.clone()).collect(),
        );
        RowProgram(Arc::new(RowProgramState {
            reductions,
            finishes,
            indices: compiled.indices.iter().map(|of| uncached(&of.expression)).collect(),
            element_indices: compiled.element_indices.as_ref().map(uncached),
            stored: compiled.stored.iter().map(|of| uncached(&of.expression)).collect(),
            compiled: Arc::new(compiled),
            kernels: DeviceCache::new(),
            #[cfg(target_arch = "x86_64")]
            blocks,
            sums,
        }))
    }

    /// Returns the dtypes of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.0.compiled.inputs
    }

    /// Returns the dtypes of the scalars that a run passes; f32 for scalars of f16 and bf16.
    pub fn scalars(&self) -> &[DType] {
        &self.0.compiled.scalars
    }

    /// Returns the dtypes of the outputs.
    pub fn outputs(&self) -> Vec<DType> {
        self.0.compiled.outputs.iter().map(|output| output.dtype).collect()
    }

    /// Returns whether an output has one value per group; false for an output that does not exist.
    pub fn is_per_group(&self, output: usize) -> bool {
        self.0.compiled.outputs.get(output).is_some_and(|output| output.is_per_group)
    }

    /// Returns whether an output is a [sum over groups](crate::fuse::Expr::sum_over_groups); false for an output that does
    /// not exist.
    pub fn is_over_groups(&self, output: usize) -> bool {
        self.0.compiled.outputs.get(output).is_some_and(|output| output.is_over_groups)
    }

    /// Returns the number of reductions of groups. Equal ones count once.
    pub fn reductions(&self) -> usize {
        match &self.0.sums {
            Some(sums) => sums.reductions(),
            None => self.0.reductions.len(),
        }
    }

    /// Returns whether an integer is compared with a real scalar that each run passes. Such a comparison is by
    /// value only for a literal.
    pub(crate) fn compares_by_value(&self) -> bool {
        self.0.compiled.compares_by_value
    }
}

impl fmt::Debug for RowProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |dtypes: &[DType]| dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
        write!(
            formatter,
            "RowProgram({} -> {}; {} reductions)",
            names(self.inputs()),
            names(&self.outputs()),
            self.reductions()
        )
    }
}
