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
//! index: on the CPU before it writes outputs, on a device in the kernel (`plan::rows_index`).
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
use crate::driver::{DeviceCache, Function, KernelError};
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::fuse::cpu;
use crate::fuse::language::graph::{Expr, Graph};
use crate::fuse::plan::rows::RowKey;
use crate::fuse::plan::rows_split::{self, PhaseInput, PhaseScalar};
use crate::fuse::plan::rows_stages::RowStages;
use crate::fuse::plan::rows_stored::StoredValues;
use crate::types::DType;

pub(in crate::fuse) const OPERATION: &str = "a row program";

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

pub(in crate::fuse) struct RowProgramState {
    pub(in crate::fuse) inputs: Vec<DType>,
    /// The dtypes of the scalars that a run passes.
    pub(in crate::fuse) scalars: Vec<DType>,
    pub(in crate::fuse) outputs: Vec<RowOutput>,
    pub(in crate::fuse) reductions: Vec<RowReduction>,
    /// The outputs per element, then those per group, if any; of a divided program by section.
    pub(in crate::fuse) finishes: Vec<Finish>,
    /// The indices of `at_group`.
    pub(in crate::fuse) indices: Vec<GroupIndex>,
    /// The indices of elements within their group, if a phase reads them.
    pub(in crate::fuse) places: Option<Expression>,
    /// The values that phases read from memory, such as random words.
    pub(in crate::fuse) stored: Vec<StoredValues>,
    /// The inputs that seeds and offsets of random words depend on.
    pub(in crate::fuse) stream_inputs: Vec<usize>,
    /// The program as one expression, for a single kernel, or the reason why there is none.
    pub(in crate::fuse) stages: std::result::Result<RowStages, &'static str>,
    /// The assembled kernels.
    pub(in crate::fuse) kernels: DeviceCache<RowKey, Function>,
    /// Runs on the CPU by blocks of rows.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::fuse) blocks: cpu::rows::BlockRuns,
    pub(in crate::fuse) compares_by_value: bool,
    /// The sums over groups, which then hold the programs that a run executes.
    pub(in crate::fuse) sums: Option<SumsOverGroups>,
}

/// An output of a program.
#[derive(Debug, Clone, Copy)]
pub(in crate::fuse) struct RowOutput {
    pub(in crate::fuse) dtype: DType,
    pub(in crate::fuse) is_per_group: bool,
    pub(in crate::fuse) is_over_groups: bool,
}

/// The operands of a phase.
#[derive(Debug, Clone)]
pub(in crate::fuse) struct PhaseOperands {
    pub(in crate::fuse) inputs: Vec<PhaseInput>,
    pub(in crate::fuse) scalars: Vec<PhaseScalar>,
}

pub(in crate::fuse) struct RowReduction {
    pub(in crate::fuse) reduction: Reduction,
    pub(in crate::fuse) operands: PhaseOperands,
    pub(in crate::fuse) phase: usize,
}

/// An index of [`Expr::at_group`], which a run checks.
pub(in crate::fuse) struct GroupIndex {
    pub(in crate::fuse) expression: Expression,
    pub(in crate::fuse) operands: PhaseOperands,
    /// The reduction that chooses the element.
    pub(in crate::fuse) reduction: usize,
    pub(in crate::fuse) error: &'static KernelError,
}

/// The expression of outputs after the last reduction.
pub(in crate::fuse) struct Finish {
    pub(in crate::fuse) expression: Expression,
    pub(in crate::fuse) operands: PhaseOperands,
    pub(in crate::fuse) is_per_group: bool,
    /// The number of each output in the program.
    pub(in crate::fuse) outputs: Vec<usize>,
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
    /// Returns the dtypes of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.0.inputs
    }

    /// Returns the dtypes of the scalars that a run passes; f32 for scalars of f16 and bf16.
    pub fn scalars(&self) -> &[DType] {
        &self.0.scalars
    }

    /// Returns the dtypes of the outputs.
    pub fn outputs(&self) -> Vec<DType> {
        self.0.outputs.iter().map(|output| output.dtype).collect()
    }

    /// Returns whether an output has one value per group; false for an output that does not exist.
    pub fn is_per_group(&self, output: usize) -> bool {
        self.0.outputs.get(output).is_some_and(|output| output.is_per_group)
    }

    /// Returns whether an output is a [sum over groups](crate::fuse::Expr::sum_over_groups); false for an output that does
    /// not exist.
    pub fn is_over_groups(&self, output: usize) -> bool {
        self.0.outputs.get(output).is_some_and(|output| output.is_over_groups)
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
        self.0.compares_by_value
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
