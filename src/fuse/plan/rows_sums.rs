//! The launch that computes the sums of chunks: with the whole program, or of the terms alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::compiled_expression::CompiledExpression;
use super::compiled_reduction::CompiledReduction;
use super::compiled_rows::{CompiledRows, PhaseOperands, RowOutput};
use super::reduction::{BLOCK, ReductionParameters, WARP, blocks};
use super::reduction_dimensions::Dimensions;
use super::rows_key::{RowKey, RowOperands, RowPlan};
use super::rows_limits::{MAX_INSTRUCTIONS, MAX_REGISTERS_WITH_SUMS, MIN_RECOMPUTE_COST};
use super::rows_operand_layout::OperandLayout;
use super::rows_shape::RowShape;
use super::rows_split::Phase;
use super::rows_stages::RowStages;
use super::rows_storage::{RowDevice, RowStorage};
use super::rows_storage_reason::RowStorageReasons;
use crate::error::Result;
use crate::fuse::language::graph::Nodes;
use crate::fuse::language::node::NodeIndex;
use crate::types::{DType, Layout, Shape};

/// Warps below which one kernel for all would leave most of a device idle, because a warp computes the rows of a chunk
/// one after the other.
const FEW_WARPS: usize = 512;
/// Registers of a multiprocessor for one of two blocks.
const BLOCK_REGISTERS: usize = 32768;
/// The most elements of a workspace whose index takes 32 bits.
const NARROW: usize = 1 << 30;

/// The groups of a chunk.
pub(in crate::fuse) const CHUNK: usize = 64;

/// The programs of a run with sums over groups, but the one without them.
pub(in crate::fuse) struct CompiledSums {
    /// The outputs that are no sums, followed by the elements that are summed: the program of the one kernel. `None`
    /// without reductions of groups.
    pub(in crate::fuse) fused: Option<Arc<CompiledRows>>,
    /// The numbers of the outputs that are no sums, and of those that are.
    pub(in crate::fuse) own: Vec<usize>,
    pub(in crate::fuse) sums: Vec<usize>,
    /// The values that terms read and the main program computes.
    pub(in crate::fuse) values: Vec<SumValue>,
    /// All terms together, or each alone.
    pub(in crate::fuse) terms: Vec<SumTerms>,
    /// By sum, the terms in memory as an input, for terms that do not fit a kernel, and the sum over chunks.
    pub(in crate::fuse) copies: Vec<RowStages>,
    pub(in crate::fuse) folds: Vec<Arc<CompiledReduction>>,
    pub(in crate::fuse) outputs: Vec<RowOutput>,
}

/// A value of the main program that terms read.
#[derive(Debug, Clone, Copy)]
pub(in crate::fuse) struct SumValue {
    pub(in crate::fuse) dtype: DType,
    /// One value for each group, or one for each element.
    pub(in crate::fuse) is_per_group: bool,
}

impl SumValue {
    /// Returns the layout of the value in memory.
    pub(in crate::fuse) fn layout(self, shape: &RowShape) -> Layout {
        Layout::from_shape(if self.is_per_group { shape.groups } else { shape.elements })
    }
}

/// Elements that are summed by one kernel.
pub(in crate::fuse) struct SumTerms {
    /// Its inputs are those of the program, followed by values of the main program.
    pub(in crate::fuse) expression: Arc<CompiledExpression>,
    pub(in crate::fuse) operands: PhaseOperands,
    /// The same for a kernel.
    pub(in crate::fuse) stages: Option<RowStages>,
    /// The number of the first sum. The others follow it.
    first: usize,
}

impl SumTerms {
    /// Compiles terms.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`].
    pub(in crate::fuse) fn new(nodes: &Nodes, terms: &[NodeIndex], first: usize) -> Result<SumTerms> {
        let phase = Phase::new(nodes, terms, &HashMap::new(), &HashMap::new());
        let expression = Arc::new(CompiledExpression::of(&phase.graph, &phase.outputs())?);
        let operands = PhaseOperands { inputs: phase.inputs.clone(), scalars: phase.scalars.clone() };
        Ok(SumTerms { expression, operands, stages: RowStages::new(phase, &[], 0).ok(), first })
    }

    /// Returns the numbers of the sums.
    pub(in crate::fuse) fn sums(&self) -> Range<usize> {
        self.first..self.first + self.expression.outputs.len()
    }
}

/// Everything but the program that the text of a kernel depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) enum SumKey {
    /// The outputs and the sums.
    Fused(RowKey),
    /// The sums of terms, by their number.
    Terms(usize, RowKey),
    /// The sum of terms in memory.
    Copy(usize, RowKey),
}

/// A kernel that computes the sums of chunks.
pub(in crate::fuse) struct SumLaunch {
    pub(in crate::fuse) key: SumKey,
    pub(in crate::fuse) plan: RowPlan,
}

impl RowShape {
    /// Returns the layout of a chunk's sums in the workspace, with the chunks along an axis that is not a group's, and
    /// the layout of one sum.
    pub(in crate::fuse) fn workspace_of_sums(&self) -> Result<Layout> {
        let element_indices = self.element_indices()?;
        let chunks = self.groups.count().div_ceil(CHUNK);
        let (mut sizes, mut strides) = (element_indices.shape().to_vec(), element_indices.strides().to_vec());
        // Without such an axis there is one group, and one chunk.
        let axis = (0..sizes.len()).find(|&axis| self.groups[axis] != 1);
        if let Some(axis) = axis {
            (sizes[axis], strides[axis]) = (chunks, self.size as isize);
        }
        Layout::strided(&sizes, &strides, 0)
    }

    /// Returns the layout of some of the elements with the groups in row-major order, and within each its elements in
    /// row-major order.
    pub(in crate::fuse) fn by_rows(&self, elements: &Shape) -> Result<Layout> {
        let is_group = |axis: usize| self.groups[axis] != 1;
        let mut strides = vec![0isize; elements.rank()];
        let mut next = 1;
        for of_groups in [false, true] {
            for axis in (0..elements.rank()).rev().filter(|&axis| is_group(axis) == of_groups) {
                strides[axis] = next;
                next *= elements[axis] as isize;
            }
        }
        Layout::strided(elements, &strides, 0)
    }
}

impl CompiledSums {
    /// Returns the dtypes and layouts of the sums as operands of a plan: one element for each group, which no kernel
    /// stores.
    fn sums_as_operands(&self, shape: &RowShape) -> Vec<(DType, Layout)> {
        self.outputs.iter().map(|output| (output.dtype, Layout::from_shape(shape.groups))).collect()
    }

    /// Plans one kernel for the outputs and the sums. `outputs` are those of the program, and `starts` the addresses of
    /// inputs and outputs.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(in crate::fuse) fn plan_fused(
        &self,
        shape: &RowShape,
        given: &RowOperands<'_>,
        device: RowDevice,
    ) -> Result<SumLaunch, &'static str> {
        let Some(fused) = &self.fused else { return Err("no reduction of groups shares it") };
        let chunks = shape.groups.count().div_ceil(CHUNK);
        if chunks * shape.size >= NARROW {
            return Err("the workspace of the sums is too large for one kernel");
        }
        let mut outputs: Vec<(DType, Layout)> = self.own.iter().map(|&at| given.outputs[at]).collect();
        outputs.extend(self.sums_as_operands(shape));
        let mut starts = given.starts[..given.inputs.len()].to_vec();
        starts.extend(self.own.iter().map(|&at| given.starts[given.inputs.len() + at]));
        starts.extend(self.sums.iter().map(|_| 0));
        let operands = RowOperands { inputs: given.inputs, outputs: &outputs, starts: &starts };
        let words: usize = self.outputs.iter().map(|output| output.dtype.size() / 4).sum();
        let mut plan = fused.plan_for(shape, &operands, device, Some(words))?;
        let key = &mut plan.key;
        if !matches!(key.storage, RowStorage::Registers | RowStorage::SharedDoubleBuffered(_)) {
            return Err("its rows do not stay in registers");
        }
        let folded = |axis: usize| shape.groups[axis] != shape.elements[axis];
        let mut layouts = Vec::new();
        for (_, layout) in given.inputs {
            layouts.push(layout.expand(&shape.elements).map_err(|_| "an operand does not broadcast")?);
        }
        let orders = [false, true].map(|is_in_order| {
            Dimensions::ordered(&shape.elements, &layouts, layouts.len(), folded, is_in_order).kept
        });
        if orders[0] != orders[1] {
            return Err("neighbouring groups are not neighbours in memory");
        }
        if chunks * key.warps * key.cluster < FEW_WARPS {
            return Err("there are too few chunks of 64 groups for one kernel");
        }
        let registers = plan.registers + words * key.vector * key.accesses_per_round * key.rounds;
        // A warp loops over the rows of its chunk, so a block needs no second one.
        key.rows_per_block = (WARP / key.threads).max(1);
        let threads = key.threads * key.warps * key.rows_per_block;
        if registers > MAX_REGISTERS_WITH_SUMS.min(BLOCK_REGISTERS / threads) {
            return Err("the sums do not fit the registers beside the row");
        }
        plan.threads = threads as u32;
        plan.blocks = blocks(chunks.div_ceil(key.rows_per_block), key.cluster)
            .map_err(|_| "a grid has too many blocks")?;
        let key = SumKey::Fused(plan.key.clone());
        Ok(SumLaunch { key, plan })
    }

    /// Plans the sums of terms that read these inputs, in the order of the stages.
    ///
    /// # Errors
    ///
    /// The reason why the terms do not fit the kernel.
    pub(in crate::fuse) fn plan_terms(
        &self,
        stages: &RowStages,
        shape: &RowShape,
        inputs: &[(DType, Layout)],
        starts: &[u64],
        is_ampere: bool,
    ) -> Result<RowPlan, &'static str> {
        let mut operands = inputs.to_vec();
        let groups = Layout::from_shape(shape.groups);
        operands.extend(stages.expression.outputs.iter().map(|dtype| (*dtype, groups)));
        let mut all = starts.to_vec();
        all.resize(operands.len(), 0);
        let expanded: Result<Vec<Layout>, _> =
            operands.iter().map(|(_, layout)| layout.expand(&shape.elements)).collect();
        let expanded = expanded.map_err(|_| "an operand does not broadcast to the elements")?;
        let is_folded = |axis: usize| shape.groups[axis] != shape.elements[axis];
        let dimensions = Dimensions::ordered(&shape.elements, &expanded, inputs.len(), is_folded, true);
        let layout = OperandLayout { dimensions: &dimensions, operands: &operands, starts: &all };
        let (accesses, vector) = layout.accesses();
        if stages.expression.program.steps.len() * vector > MAX_INSTRUCTIONS {
            return Err("the terms have too many instructions for one kernel");
        }
        let (row, rows) = (dimensions.row, dimensions.rows);
        let chunks = rows.div_ceil(CHUNK);
        let threads = row.div_ceil(vector).next_power_of_two().min(BLOCK);
        let columns = row.div_ceil(threads * vector);
        let rows_per_block = (BLOCK / threads).min(chunks.next_power_of_two()).max(WARP.div_ceil(threads));
        let key = RowKey {
            storage: RowStorage::Registers,
            cluster: 1,
            parts: 1,
            wide: dimensions.is_wide() || chunks * row >= NARROW,
            vector,
            threads,
            accesses_per_round: 1,
            rounds: 1,
            min_recompute_cost: MIN_RECOMPUTE_COST,
            warps: 1,
            partial_slots: 1,
            rows_per_block,
            has_columns: false,
            outer_dims: dimensions.kept.len(),
            reduced_dims: dimensions.folded.len(),
            accesses,
            tail: !row.is_multiple_of(threads * vector),
            is_ampere,
        };
        let parameters = ReductionParameters::new(
            stages.scalars(),
            key.wide,
            key.outer_dims,
            key.reduced_dims,
            operands.len(),
        );
        let block = parameters.block(row, rows, rows, columns, &dimensions.sizes());
        let block = block.map_err(|_| "the strides of all operands exceed the parameters of a kernel")?;
        let grid =
            blocks(chunks.div_ceil(rows_per_block), columns).map_err(|_| "a grid has too many blocks")?;
        Ok(RowPlan {
            blocks: grid,
            threads: (threads * rows_per_block) as u32,
            shared: 0,
            key,
            parameters,
            block,
            registers: 0,
            reasons: RowStorageReasons::default(),
            offsets: (0..operands.len())
                .map(|operand| dimensions.offsets[operand] * operands[operand].0.size())
                .collect(),
        })
    }
}
