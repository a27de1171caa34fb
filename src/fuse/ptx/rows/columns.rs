//! Tiles of neighbouring rows whose elements are further apart than the rows: the columns of a matrix.
//!
//! Thread t of a block takes column t mod C of the tile's C, or two neighbouring ones, and a lane of the column's segment with
//! those as far apart as a column has threads. Threads of a column in the same warp have the lanes that the tree merges first,
//! so they exchange them by shuffles. The warps exchange theirs through shared memory, once a reduction: each thread then
//! halves the values of all warps itself. In a cluster, each block has a segment of the columns, or every other lane of it,
//! and receives the values of all blocks.

use super::element::Access;
use super::fold::Planes;
use super::{RowWriter, Thread};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::plan::reduction::{SEGMENT, WARP};
use crate::fuse::plan::rows_access::RowAccess;
use crate::fuse::ptx::Name;
use crate::fuse::ptx::reduction::Folded;

impl RowWriter<'_> {
    /// Emits the whole kernel.
    pub(super) fn columns(&mut self) {
        let (key, kernel) = (self.key, &mut self.kernel);
        let (columns, across) = (key.rows_per_block.to_string(), key.threads_across());
        let index = kernel.bits32("mov.u32", &["%tid.x"]);
        let mut tile = kernel.bits32("mov.u32", &["%ctaid.x"]);
        let column = kernel.bits32("and.b32", &[&index, &(across - 1).to_string()]);
        let mut lane = kernel.bits32("shr.u32", &[&index, &across.trailing_zeros().to_string()]);
        let leads = kernel.predicate("setp.eq.u32", &[&lane, "0"]);
        // The high bits of a lane are those of the thread in its warp.
        let in_warp = key.threads_in_warp();
        if in_warp > 1 {
            let high = kernel.bits32("and.b32", &[&lane, &(in_warp - 1).to_string()]);
            let low = kernel.bits32("shr.u32", &[&lane, &in_warp.trailing_zeros().to_string()]);
            let warps = (key.threads / in_warp).to_string();
            lane = kernel.bits32("mad.lo.u32", &[&high, &warps, &low]);
        }
        let mut first = kernel.widened(&lane);
        // The blocks of a cluster share a tile.
        let mut warp = Name::new();
        if key.cluster > 1 {
            let cluster = key.cluster.to_string();
            let block = tile;
            tile = kernel.bits32("div.u32", &[&block, &cluster]);
            let before = kernel.bits32("mul.lo.u32", &[&tile, &cluster]);
            warp = kernel.bits32("sub.u32", &[&block, &before]);
            let mut segment = warp.clone();
            if key.parts > 1 {
                segment = kernel.bits32("shr.u32", &[&warp, &key.parts.trailing_zeros().to_string()]);
                let part = kernel.bits32("and.b32", &[&warp, &(key.parts - 1).to_string()]);
                let part = kernel.widened(&part);
                first = kernel.times_plus(&first, &key.parts.to_string(), &part);
            }
            let segment = kernel.widened(&segment);
            first = kernel.times_plus(&segment, &SEGMENT.to_string(), &first);
        }
        let (tile, mut of_tile) = (kernel.widened(&tile), kernel.widened(&column));
        if key.vector > 1 {
            of_tile = kernel.index("mul.lo.u32", "mul.lo.u64", &[&of_tile, &key.vector.to_string()]);
        }
        let item = kernel.times_plus(&tile, &columns, &of_tile);
        let items = kernel.word(kernel.parameters.items());
        let inside = kernel.is_below(&item, &items);
        let last = kernel.index("sub.u32", "sub.u64", &[&items, &key.vector.to_string()]);
        let item = kernel.lesser(&item, &last);
        self.thread = Thread { lane, column, warp, first, inside, leads, ..Thread::default() };
        self.arrive();
        self.row(&item);
        self.wait();
        if self.key.reduced_dims == 1 {
            self.begin_steps();
        }
        self.held();
    }

    /// Emits the addresses of a thread's first elements, from which those of its other elements follow: so addresses take two
    /// registers for an operand, and none for an element.
    fn begin_steps(&mut self) {
        let (key, kernel) = (self.key, &mut self.kernel);
        let row = kernel.word(kernel.parameters.row());
        let last = kernel.index("sub.u32", "sub.u64", &[&row, "1"]);
        let column = kernel.lesser(&self.thread.first, &last);
        for operand in 0..key.accesses.len() {
            if key.accesses[operand] == RowAccess::Broadcast {
                continue;
            }
            let size = self.stages.operand_dtype(operand, self.reductions.len()).size();
            let kernel = &mut self.kernel;
            let offset = kernel.offset(operand, std::slice::from_ref(&column), key.outer_dims);
            self.bases[operand] = kernel.address(&self.bases[operand], offset.as_deref(), size);
        }
        let kernel = &mut self.kernel;
        let left = kernel.index("sub.u32", "sub.u64", &[&row, &self.thread.first]);
        self.thread.left = match key.wide {
            true => kernel.bits32("cvt.u32.u64", &[&left]),
            false => left,
        };
    }

    /// Returns the address of a thread's element, some after its first; of the first if the predicate `valid` is false.
    pub(super) fn stepped(
        &mut self,
        operand: usize,
        first: &str,
        steps: usize,
        valid: &str,
        size: usize,
    ) -> Name {
        let (key, kernel) = (self.key, &mut self.kernel);
        if steps == 0 || key.accesses[operand] == RowAccess::Broadcast {
            return first.to_owned();
        }
        let mut bytes = (steps * size).to_string();
        if !valid.is_empty() {
            bytes = kernel.index("selp.b32", "selp.b64", &[&bytes, "0", valid]);
        }
        let stride = match key.accesses[operand] {
            RowAccess::Contiguous => "1".to_owned(),
            _ => kernel.word(kernel.parameters.stride(operand, key.outer_dims)),
        };
        let mnemonic = if key.wide { "mad.lo.u64" } else { "mad.wide.s32" };
        kernel.result(RegisterKind::Bits64.into(), mnemonic, &[&bytes, &stride, first])
    }

    /// Computes a stage's elements, and folds the lanes of a thread for each reduction and each of its columns: as in
    /// [`halve`](super::KernelWriter::halve), but two halves as soon as both are there, so that few values need registers.
    pub(super) fn fold_lanes(
        &mut self,
        stage: usize,
        accesses: &mut [Access],
        wanted: &[bool],
    ) -> Vec<Vec<Folded>> {
        let (key, reductions) = (self.key, &self.stages.stages[stage].reductions);
        // By reduction and column.
        let mut halves: Vec<Vec<Vec<Folded>>> = vec![vec![Vec::new(); key.vector]; reductions.len()];
        for lane in 0..key.accesses_per_round {
            // The bits in reverse order: the lane that merges with an even one follows it.
            let group =
                (0..key.accesses_per_round.ilog2()).fold(0, |group, bit| 2 * group + (lane >> bit & 1));
            let mut values: Vec<Vec<Folded>> = Vec::with_capacity(reductions.len());
            for round in 0..key.rounds {
                let access = &mut accesses[round * key.accesses_per_round + group];
                let all = self.evaluate(stage, access, wanted);
                for (at, &reduction) in reductions.iter().enumerate() {
                    let elements = self.arguments(reduction, access, &all);
                    let Some(values) = values.get_mut(at) else {
                        values.push(elements);
                        continue;
                    };
                    let append = &self.kernel.compiled.rules.append;
                    for (value, element) in values.iter_mut().zip(&elements) {
                        *value = self.kernel.combine(append, value, element);
                    }
                }
            }
            let merges = lane.trailing_ones() as usize;
            for ((&reduction, halves), values) in reductions.iter().zip(&mut halves).zip(values) {
                self.with(reduction);
                for (halves, mut high) in halves.iter_mut().zip(values) {
                    for low in halves.split_off(halves.len() - merges).iter().rev() {
                        high = self.kernel.merged(low, &high);
                    }
                    halves.push(high);
                }
            }
        }
        halves.into_iter().map(|columns| columns.into_iter().flatten().collect()).collect()
    }

    /// Folds the values of the threads of columns.
    pub(super) fn fold_columns(&mut self, reductions: &[usize], mut folded: Vec<Vec<Folded>>) {
        let key = self.key;
        if key.threads > 1 && !folded.is_empty() {
            let all: Vec<Planes> = reductions
                .iter()
                .zip(&folded)
                .map(|(&reduction, values)| self.put_warp(reduction, values))
                .collect();
            self.kernel.line("bar.sync 0;");
            for ((&reduction, values), planes) in reductions.iter().zip(&mut folded).zip(&all) {
                self.with(reduction);
                let slots = self.kernel.slots(&planes.0, &self.thread.column, &planes.1);
                for (column, value) in values.iter_mut().enumerate() {
                    *value = self.value_of_warps(&slots, column * key.threads_across(), 0, 1);
                }
            }
        }
        if key.cluster > 1 && !folded.is_empty() {
            let mut all = Vec::with_capacity(folded.len());
            for (&reduction, values) in reductions.iter().zip(&folded) {
                all.push(self.send_values(reduction, values));
            }
            self.barrier();
            for ((&reduction, values), planes) in reductions.iter().zip(&mut folded).zip(&all) {
                self.with(reduction);
                let slots = self.kernel.slots(&planes.0, &self.thread.column, &planes.1);
                for (column, value) in values.iter_mut().enumerate() {
                    // The blocks of a segment have its even and its odd lanes, which are merged last, and before segments.
                    let at = |block: usize| block * key.rows_per_block + column * key.threads_across();
                    let blocks =
                        (0..key.cluster).map(|block| self.kernel.get_shared(&slots, at(block))).collect();
                    *value = self.kernel.merge_neighbours(blocks);
                }
            }
        }
        for (&reduction, values) in reductions.iter().zip(&folded) {
            for (column, value) in values.iter().enumerate() {
                self.finish(reduction, value, column);
            }
        }
    }

    /// Folds the lanes of the threads of columns in a warp, and stores the values in shared memory.
    fn put_warp(&mut self, reduction: usize, values: &[Folded]) -> Planes {
        self.with(reduction);
        let (key, kernel) = (self.key, &mut self.kernel);
        let (across, in_warp) = (key.threads_across(), key.threads_in_warp());
        let mut slot = kernel.bits32("mov.u32", &["%tid.x"]);
        let mut stores = Name::new();
        if in_warp > 1 {
            let of_warp = kernel.bits32("and.b32", &[&slot, &(WARP - 1).to_string()]);
            stores = kernel.predicate("setp.lt.u32", &[&of_warp, &across.to_string()]);
            let warp = kernel.bits32("shr.u32", &[&slot, &WARP.trailing_zeros().to_string()]);
            slot =
                kernel.bits32("mad.lo.u32", &[&warp, &key.rows_per_block.to_string(), &self.thread.column]);
        } else if key.vector > 1 {
            let row = kernel.bits32("sub.u32", &[&slot, &self.thread.column]);
            slot = kernel.bits32("mad.lo.u32", &[&row, &key.vector.to_string(), &self.thread.column]);
        }
        let planes = kernel.planes(key.threads / in_warp * key.rows_per_block);
        let slots = kernel.slots(&planes.0, &slot, &planes.1);
        for (column, value) in values.iter().enumerate() {
            let mut value = value.clone();
            let mut distance = in_warp / 2;
            while distance > 0 {
                let further = kernel.shuffled(&value, distance * across);
                value = kernel.merged(&value, &further);
                distance /= 2;
            }
            kernel.put_shared(&stores, &slots, column * across, &value);
        }
        planes
    }

    /// Returns the fold of a column's values in shared memory at `warp` and every `step` after it: of halves, as in
    /// [`halve`](super::KernelWriter::halve), but one half after the other, so that few values need registers.
    fn value_of_warps(&mut self, slots: &[Name], column: usize, warp: usize, step: usize) -> Folded {
        if step == self.key.threads / self.key.threads_in_warp() {
            return self.kernel.get_shared(slots, warp * self.key.rows_per_block + column);
        }
        let low = self.value_of_warps(slots, column, warp, 2 * step);
        let high = self.value_of_warps(slots, column, warp + step, 2 * step);
        self.kernel.merged(&low, &high)
    }

    /// Stores the values of the block's part of columns in shared memory of each block of the cluster.
    fn send_values(&mut self, reduction: usize, values: &[Folded]) -> Planes {
        self.with(reduction);
        let (key, kernel) = (self.key, &mut self.kernel);
        let planes = kernel.planes(key.cluster * key.rows_per_block);
        let (block, column) = (&self.thread.warp, &self.thread.column);
        let slot = kernel.bits32("mad.lo.u32", &[block, &key.rows_per_block.to_string(), column]);
        let slots = kernel.slots(&planes.0, &slot, &planes.1);
        // Each thread of a column stores to every so many blocks.
        for first in (0..key.cluster).step_by(key.threads) {
            let kernel = &mut self.kernel;
            let target = kernel.bits32("add.u32", &[&self.thread.lane, &first.to_string()]);
            let stores = kernel.predicate("setp.lt.u32", &[&target, &key.cluster.to_string()]);
            // Threads past the last block store nothing, but name a block that exists.
            let target = kernel.bits32("min.u32", &[&target, &(key.cluster - 1).to_string()]);
            self.send(&stores, &target, &slots, key.threads_across(), values);
        }
        planes
    }
}
