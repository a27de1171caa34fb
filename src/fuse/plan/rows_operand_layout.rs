//! The operands of a plan: how the threads of a row access them, the registers and bytes of their elements, and the
//! parameters of their kernel.

use super::elementwise::WIDEST;
use super::reduction::{ReductionParameters, blocks};
use super::reduction_dimensions::{Dimension, Dimensions};
use super::rows_access::RowAccess;
use super::rows_key::{RowKey, RowPlan};
use super::rows_stages::RowStages;
use super::rows_storage::RowOperand;
use super::rows_storage_reason::RowStorageReasons;
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::parts;
use crate::types::{DType, Layout};

/// The dimensions of a run with the dtypes and alignment of its operands.
pub(super) struct OperandLayout<'a> {
    pub(super) dimensions: &'a Dimensions,
    pub(in crate::fuse) operands: &'a [(DType, Layout)],
    pub(super) starts: &'a [u64],
}

impl OperandLayout<'_> {
    /// Returns the launch of a kernel, given the numbers of its segments and threads, the bytes of its dynamic shared memory,
    /// and the registers of a thread.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(super) fn planned(
        &self,
        stages: &RowStages,
        key: RowKey,
        [segments, threads, shared, registers]: [usize; 4],
    ) -> Result<RowPlan, &'static str> {
        let (dimensions, operands) = (self.dimensions, self.operands);
        let (row, rows) = (dimensions.row, dimensions.rows);
        let scalars = stages.scalars();
        let parameters =
            ReductionParameters::new(scalars, key.wide, key.outer_dims, key.reduced_dims, operands.len());
        let block = parameters.block(row, rows, rows, segments, &dimensions.sizes());
        let block = block.map_err(|_| "the strides of all operands exceed the parameters of a kernel")?;
        let bytes = |operand: usize| dimensions.offsets[operand] * operands[operand].0.size();
        let blocks = blocks(rows.div_ceil(key.rows_per_block), key.cluster);
        Ok(RowPlan {
            blocks: blocks.map_err(|_| "a grid has too many blocks")?,
            threads: threads as u32,
            shared: shared as u32,
            key,
            parameters,
            block,
            offsets: (0..operands.len()).map(bytes).collect(),
            registers,
            reasons: RowStorageReasons::default(),
        })
    }

    /// Returns whether neighbouring groups are adjacent and the elements of a group are not.
    pub(in crate::fuse) fn has_columns(&self) -> bool {
        let (leader, all) = (self.dimensions.leader, self.dimensions);
        let stride = |dimensions: &[Dimension]| dimensions.first().map(|dimension| dimension.strides[leader]);
        matches!((stride(&all.kept), stride(&all.folded)), (Some(1), Some(inner)) if inner.unsigned_abs() > 1)
    }

    /// Returns the access to each operand, and the adjacent elements of one access.
    pub(in crate::fuse) fn accesses(&self) -> (Vec<RowAccess>, usize) {
        let mut accesses: Vec<RowAccess> =
            (0..self.operands.len()).map(|operand| self.access(operand)).collect();
        let vector = self.vector(&accesses);
        if vector == 1 {
            for access in &mut accesses {
                if matches!(access, RowAccess::Spans | RowAccess::OfSpan) {
                    *access = RowAccess::Strided;
                }
            }
        }
        (accesses, vector)
    }

    fn access(&self, operand: usize) -> RowAccess {
        let folded = &self.dimensions.folded;
        match &folded[..] {
            all if all.iter().all(|dimension| dimension.strides[operand] == 0) => RowAccess::Broadcast,
            [one] if one.strides[operand] == 1 => RowAccess::Contiguous,
            [inner, ..] if inner.strides[operand] == 1 => RowAccess::Spans,
            [inner, ..] if inner.strides[operand] == 0 => RowAccess::OfSpan,
            _ => RowAccess::Strided,
        }
    }

    /// Returns the longest vector of adjacent elements that suits all operands.
    fn vector(&self, accesses: &[RowAccess]) -> usize {
        let is_adjacent = |&at: &usize| matches!(accesses[at], RowAccess::Contiguous | RowAccess::Spans);
        let adjacent = || (0..accesses.len()).filter(is_adjacent);
        if accesses.contains(&RowAccess::Strided) {
            return 1;
        }
        let Some(widest) = adjacent().map(|operand| self.operands[operand].0.size()).max() else {
            return 1;
        };
        let mut vector = (WIDEST as usize / widest).clamp(1, 8);
        // All vectors of a row are whole if those of its spans are.
        let span = self.dimensions.folded.first().map_or(1, |inner| inner.size);
        let fits =
            |vector: usize| span.is_multiple_of(vector) && adjacent().all(|at| self.is_aligned(at, vector));
        while vector > 1 && !fits(vector) {
            vector /= 2;
        }
        vector
    }

    /// Returns whether every row of an operand, and every span of it, begins at a whole vector.
    fn is_aligned(&self, operand: usize, vector: usize) -> bool {
        let mut others = self.dimensions.kept.iter().chain(self.dimensions.folded.iter().skip(1));
        self.is_aligned_along(operand, vector, &mut others)
    }

    /// Returns whether an operand begins at a whole vector, and so does each index of some dimensions.
    pub(super) fn is_aligned_along(
        &self,
        operand: usize,
        vector: usize,
        others: &mut dyn Iterator<Item = &Dimension>,
    ) -> bool {
        let size = self.operands[operand].0.size();
        let width = (size * vector).min(WIDEST as usize);
        let mut pitches = others.map(|other| other.strides[operand].unsigned_abs() * size);
        self.start(operand).is_multiple_of(width) && pitches.all(|pitch| pitch.is_multiple_of(width))
    }

    /// Returns the address of an operand's first element, as far as [`starts`](Self::starts) are known.
    fn start(&self, operand: usize) -> usize {
        self.starts[operand] as usize + self.dimensions.offsets[operand] * self.operands[operand].0.size()
    }

    /// Returns the properties of operands that [`SharedRow`](super::rows_storage::SharedRow) depends on.
    pub(super) fn row_operands(&self, accesses: &[RowAccess]) -> Vec<RowOperand> {
        let kept = &self.dimensions.kept;
        let operands = accesses.iter().enumerate().map(|(operand, &access)| {
            let (dtype, line) = (self.operands[operand].0, WIDEST as usize);
            let distances = kept.iter().map(|dimension| dimension.strides[operand] * dtype.size() as isize);
            let pitches = distances.map(|distance| distance.rem_euclid(line as isize) as usize);
            let misalignments = std::iter::once(self.start(operand) % line).chain(pitches);
            // The one row of a run is read for the first time, too.
            let varies = kept.is_empty() || kept.iter().any(|dimension| dimension.strides[operand] != 0);
            RowOperand { dtype, access, varies, misalignments: misalignments.collect() }
        });
        operands.collect()
    }

    /// Returns the bytes of a vector's inputs that a thread reads from memory.
    pub(in crate::fuse) fn bytes_read(
        &self,
        stages: &RowStages,
        accesses: &[RowAccess],
        vector: usize,
    ) -> usize {
        let bytes = |operand: usize| {
            let dtype = self.operands[operand].0;
            let elements = match accesses[operand] {
                RowAccess::Broadcast => 0,
                RowAccess::OfSpan => 1,
                RowAccess::Contiguous | RowAccess::Spans | RowAccess::Strided => vector,
            };
            elements * dtype.size() / parts(dtype)
        };
        stages.operand_of().into_iter().flatten().map(bytes).sum()
    }

    /// Returns the registers of an element between two stages, at most. `holds_inputs` if inputs stay in registers.
    pub(in crate::fuse) fn registers(
        &self,
        stages: &RowStages,
        accesses: &[RowAccess],
        saved: &[Vec<bool>],
        holds_inputs: bool,
    ) -> usize {
        let operand_of = stages.operand_of();
        let steps = &stages.expression.program.steps;
        // In halves of registers: packed elements of 16 bits take one.
        let computed = stages.computed(saved);
        let halves = |stage: usize| -> usize {
            let inputs = operand_of.iter().enumerate().filter_map(|(input, operand)| {
                let operand = operand.filter(|&operand| accesses[operand] != RowAccess::Broadcast)?;
                let (before, after) = computed.split_at(stage + 1);
                let loads = |steps: &Vec<bool>| stages.is_loaded(input, steps);
                let is_held = before.iter().any(loads) && after.iter().any(loads);
                let dtype = self.operands[operand].0;
                let packed = matches!(accesses[operand], RowAccess::Contiguous | RowAccess::Spans)
                    && dtype.size() / parts(dtype) < 4;
                let size = if packed { dtype.size().max(2) / 2 } else { dtype.size().max(4) / 2 };
                (is_held && holds_inputs).then_some(size)
            });
            let values = (0..=stage).flat_map(|stage| saved[stage].iter().zip(steps));
            let values = values.filter(|(saved, _)| **saved);
            let wide = RegisterKind::Float64;
            let values = values.map(|(_, (_, kind))| if *kind == wide { 4 } else { 2 });
            inputs.sum::<usize>() + values.sum::<usize>()
        };
        (0..stages.stages.len()).map(halves).max().unwrap_or(0).div_ceil(2)
    }
}
