//! The plan of a row program in one kernel: checks the operands, then `rows_schedule` (adjacent elements) or `rows_columns`
//! (strided elements) chooses the launch. Other programs run as several kernels, for a reason that
//! [`RowExplanation`](crate::fuse::RowExplanation) gives.
//!
//! A row of several folded dimensions consists of spans, one for each index of all but the innermost. The element
//! at an index of the row has the coordinates of that index, in the order of the axes, so segments do not depend on
//! spans. Accesses are vectors if every span is whole vectors, so that none crosses the end of a span; a multiplication by a
//! reciprocal finds the span. An input with one value for each span, such as a weight of group norm, is loaded once for a
//! vector.
//!
//! The text of a kernel depends only on the program and the [`RowKey`](super::rows_key::RowKey), and the schedule never changes a bit of a
//! result.

use super::compiled_rows::{CompiledRows, RowReduction};
use super::reduction_dimensions::Dimensions;
use super::rows_key::{RowOperands, RowPlan};
use super::rows_operand_layout::OperandLayout;
use super::rows_shape::RowShape;
use super::rows_stages::{RowStages, Stage};
use super::rows_storage::RowDevice;
use crate::types::Layout;

impl CompiledRows {
    /// Returns the program's inputs in the order of the kernel's operands.
    pub(in crate::fuse) fn kernel_inputs(stages: &RowStages) -> Vec<usize> {
        stages.operands.numbers().collect()
    }

    /// Plans a run in one kernel.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(in crate::fuse) fn plan(
        &self,
        shape: &RowShape,
        given: &RowOperands<'_>,
        device: RowDevice,
    ) -> Result<RowPlan, &'static str> {
        self.plan_for(shape, given, device, None)
    }

    /// Plans a run in one kernel. With `sum_registers`, the registers of the sums over groups of an element, blocks loop over rows,
    /// and share long rows in clusters.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(super) fn plan_for(
        &self,
        shape: &RowShape,
        given: &RowOperands<'_>,
        device: RowDevice,
        sum_registers: Option<usize>,
    ) -> Result<RowPlan, &'static str> {
        let stages = self.stages.as_ref().map_err(|reason| *reason)?;
        if shape.size == 0 || shape.groups.count() == 0 {
            return Err("there are no elements");
        }
        if given.outputs.iter().any(|(_, layout)| layout.may_overlap()) {
            return Err("elements of an output overlap");
        }
        let kernel_inputs = CompiledRows::kernel_inputs(stages);
        let (mut operands, mut starts) = (Vec::new(), Vec::new());
        for &number in &kernel_inputs {
            operands.push(given.inputs[number]);
            starts.push(given.starts[number]);
        }
        operands.extend(given.outputs);
        starts.extend(&given.starts[given.inputs.len()..]);
        let expanded: Result<Vec<Layout>, _> =
            operands.iter().map(|(_, layout)| layout.expand(&shape.elements)).collect();
        let expanded = expanded.map_err(|_| "an operand does not broadcast to the elements")?;
        let dimensions = Dimensions::of_operands(&shape.elements, &expanded, kernel_inputs.len(), |axis| {
            shape.groups[axis] != shape.elements[axis]
        });
        let layout = OperandLayout { dimensions: &dimensions, operands: &operands, starts: &starts };
        // The position of an element follows from those of its row and of the element in it.
        if stages.has_positions() && (dimensions.kept.len() > 1 || !shape.has_trailing_groups()) {
            return Err("positions, such as of random words, need groups of the last axes");
        }
        match (layout.has_columns(), sum_registers) {
            (false, _) => self.plan_rows(stages, &layout, device, sum_registers),
            (true, None) => self.plan_columns(stages, &layout, device),
            (true, Some(_)) => {
                Err("the elements of a group are further apart than those of neighbouring groups")
            }
        }
    }

    /// Returns an estimate of the instructions of an element in all stages: steps of the expression (loads, not constants)
    /// and of folds. A step counts in each stage that needs it, even if an earlier stage saves its value. A template of
    /// several PTX lines counts as one. These are not SASS instructions.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(in crate::fuse) fn instructions(
        &self,
        stages: &RowStages,
        uniform: &[bool],
        vector: usize,
    ) -> Result<usize, &'static str> {
        let program = &stages.expression.program;
        if stages.indices().any(|index| !uniform[program.outputs[index][0].index()]) {
            return Err("an index of at_group differs within a group");
        }
        let of_stage = |stage: &Stage| {
            let of_elements = (0..uniform.len()).filter(|&step| stage.wanted[step] && !uniform[step]);
            // In quarters, as up to 4 elements share a step.
            of_elements.map(|step| 4 / stages.sharing(step, vector)).sum::<usize>().div_ceil(4)
        };
        let folds = self.reductions.iter().map(|reduction| {
            let rules = &reduction.reduction.rules;
            // The square of an element is no step.
            let square = usize::from(reduction.reduction.rescaled.is_some());
            rules.append.steps.len() + rules.kinds.len() + square
        });
        Ok(stages.stages.iter().map(of_stage).sum::<usize>() + folds.sum::<usize>())
    }
}

/// Returns the bytes of a segment's value.
pub(super) fn slot_bytes(reduction: &RowReduction) -> usize {
    reduction.reduction.rules.bytes()
}
