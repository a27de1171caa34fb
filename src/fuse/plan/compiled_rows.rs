//! [`CompiledRows`], a row program without the caches of its runs.

use std::sync::Arc;

use super::compiled_expression::CompiledExpression;
use super::compiled_reduction::CompiledReduction;
use super::rows_split::{PhaseInput, PhaseScalar};
use super::rows_stages::RowStages;
use super::rows_stored::StoredValues;
use crate::driver::KernelError;
use crate::types::DType;

/// The name of a row program in errors.
pub(in crate::fuse) const OPERATION: &str = "a row program";

/// A row program: its phases, and the program as one expression.
pub(in crate::fuse) struct CompiledRows {
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
    pub(in crate::fuse) element_indices: Option<Arc<CompiledExpression>>,
    /// The values that phases read from memory, such as random words.
    pub(in crate::fuse) stored: Vec<StoredValues>,
    /// The inputs that seeds and offsets of random words depend on.
    pub(in crate::fuse) stream_inputs: Vec<usize>,
    /// The program as one expression, for a single kernel, or the reason why there is none.
    pub(in crate::fuse) stages: Result<RowStages, &'static str>,
    pub(in crate::fuse) compares_by_value: bool,
    /// True if there are sums over groups, which then hold the programs that a run executes.
    pub(in crate::fuse) has_sums: bool,
}

impl CompiledRows {
    /// Returns whether several expressions write outputs per element.
    pub(in crate::fuse) fn writes_in_turns(&self) -> bool {
        self.finishes.iter().filter(|finish| !finish.is_per_group).count() > 1
    }
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
    pub(in crate::fuse) reduction: Arc<CompiledReduction>,
    pub(in crate::fuse) operands: PhaseOperands,
    pub(in crate::fuse) phase: usize,
}

/// An index of [`Expr::at_group`](crate::fuse::Expr::at_group), which a run checks.
pub(in crate::fuse) struct GroupIndex {
    pub(in crate::fuse) expression: Arc<CompiledExpression>,
    pub(in crate::fuse) operands: PhaseOperands,
    /// The reduction that chooses the element.
    pub(in crate::fuse) reduction: usize,
    pub(in crate::fuse) error: &'static KernelError,
}

/// The expression of outputs after the last reduction.
pub(in crate::fuse) struct Finish {
    pub(in crate::fuse) expression: Arc<CompiledExpression>,
    pub(in crate::fuse) operands: PhaseOperands,
    pub(in crate::fuse) is_per_group: bool,
    /// The number of each output in the program.
    pub(in crate::fuse) outputs: Vec<usize>,
}

impl PhaseOperands {
    /// Returns the numbers of the program's inputs that the phase reads.
    pub(in crate::fuse) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.inputs.iter().filter_map(|input| match *input {
            PhaseInput::Input(number) => Some(number),
            PhaseInput::Group(_) | PhaseInput::Index | PhaseInput::Stored(_) => None,
        })
    }
}
