//! Tiles of neighbouring rows whose elements are further apart than the rows: the columns of a matrix.
//!
//! Thread t of a block takes column t mod C of the tile's C, and lane t / C of the column's segment with those as far apart
//! as a column has threads. The threads of a column are in different warps, so they exchange their lanes through shared
//! memory, once a reduction: each then halves all lanes itself. In a cluster, block b has segment b of the columns, and
//! each block receives the values of all segments.

use super::super::super::instruction::RegisterKind;
use super::super::super::ptx::Name;
use super::super::super::reduce::plan::SEGMENT;
use super::super::super::reduce::ptx::{Folded, type_of};
use super::super::plan::RowAccess;
use super::element::Access;
use super::fold::Planes;
use super::{RowWriter, Thread};

impl RowWriter<'_> {
    /// Emits the whole kernel.
    pub(super) fn columns(&mut self) {
        let (key, kernel) = (self.key, &mut self.kernel);
        let columns = key.across.to_string();
        let index = kernel.bits32("mov.u32", &["%tid.x"]);
        let mut tile = kernel.bits32("mov.u32", &["%ctaid.x"]);
        let column = kernel.bits32("and.b32", &[&index, &(key.across - 1).to_string()]);
        let lane = kernel.bits32("shr.u32", &[&index, &key.across.trailing_zeros().to_string()]);
        let leads = kernel.predicate("setp.eq.u32", &[&lane, "0"]);
        let mut first = kernel.widened(&lane);
        // The blocks of a cluster share a tile.
        let mut warp = Name::new();
        if key.cluster > 1 {
            let cluster = key.cluster.to_string();
            let block = tile;
            tile = kernel.bits32("div.u32", &[&block, &cluster]);
            let before = kernel.bits32("mul.lo.u32", &[&tile, &cluster]);
            warp = kernel.bits32("sub.u32", &[&block, &before]);
            let segment = kernel.widened(&warp);
            first = kernel.times_plus(&segment, &SEGMENT.to_string(), &first);
        }
        let (tile, of_tile) = (kernel.widened(&tile), kernel.widened(&column));
        let item = kernel.times_plus(&tile, &columns, &of_tile);
        let items = kernel.word(kernel.parameters.items());
        let inside = kernel.is_below(&item, &items);
        let last = kernel.index("sub.u32", "sub.u64", &[&items, "1"]);
        let item = kernel.lesser(&item, &last);
        self.thread = Thread { lane, column, warp, first, inside, leads, ..Thread::default() };
        self.arrive();
        self.row(&item);
        self.wait();
        if self.key.folded == 1 {
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
        let place = kernel.lesser(&self.thread.first, &last);
        for operand in 0..key.accesses.len() {
            if key.accesses[operand] == RowAccess::Still {
                continue;
            }
            let size = self.stages.operand_dtype(operand, self.reductions.len()).size();
            let kernel = &mut self.kernel;
            let offset = kernel.offset(operand, std::slice::from_ref(&place), key.kept);
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
        if steps == 0 || key.accesses[operand] == RowAccess::Still {
            return first.to_owned();
        }
        let mut bytes = (steps * size).to_string();
        if !valid.is_empty() {
            bytes = kernel.index("selp.b32", "selp.b64", &[&bytes, "0", valid]);
        }
        let stride = match key.accesses[operand] {
            RowAccess::Contiguous => "1".to_owned(),
            _ => kernel.word(kernel.parameters.stride(operand, key.kept)),
        };
        let mnemonic = if key.wide { "mad.lo.u64" } else { "mad.wide.s32" };
        kernel.result(RegisterKind::Bits64.into(), mnemonic, &[&bytes, &stride, first])
    }

    /// Computes a stage's elements, and folds the lanes of a thread for each reduction: as in
    /// [`halve`](super::KernelWriter::halve), but two halves as soon as both are there, so that few values need registers.
    pub(super) fn fold_lanes(
        &mut self,
        stage: usize,
        accesses: &mut [Access],
        wanted: &[bool],
    ) -> Vec<Folded> {
        let (key, reductions) = (self.key, &self.stages.stages[stage].reductions);
        let mut halves: Vec<Vec<Folded>> = vec![Vec::new(); reductions.len()];
        for lane in 0..key.groups {
            // The bits in reverse order: the lane that merges with an even one follows it.
            let group = (0..key.groups.ilog2()).fold(0, |group, bit| 2 * group + (lane >> bit & 1));
            let mut values: Vec<Folded> = Vec::with_capacity(reductions.len());
            for round in 0..key.rounds {
                let access = &mut accesses[round * key.groups + group];
                let all = self.evaluate(stage, access, wanted);
                for (at, &reduction) in reductions.iter().enumerate() {
                    let element = self.arguments(reduction, access, &all).swap_remove(0);
                    match values.get_mut(at) {
                        None => values.push(element),
                        Some(value) => {
                            let append = &self.kernel.state.rules.append;
                            *value = self.kernel.combine(append, value, &element);
                        }
                    }
                }
            }
            for ((&reduction, halves), mut high) in reductions.iter().zip(&mut halves).zip(values) {
                self.with(reduction);
                let merges = lane.trailing_ones() as usize;
                for low in halves.split_off(halves.len() - merges).iter().rev() {
                    high = self.kernel.merged(low, &high);
                }
                halves.push(high);
            }
        }
        halves.into_iter().flatten().collect()
    }

    /// Folds the values of the threads of columns.
    pub(super) fn fold_columns(&mut self, reductions: &[usize], mut folded: Vec<Folded>) {
        let key = self.key;
        if key.threads > 1 && !folded.is_empty() {
            let index = self.kernel.bits32("mov.u32", &["%tid.x"]);
            let mut all = Vec::with_capacity(folded.len());
            for (&reduction, value) in reductions.iter().zip(&folded) {
                self.with(reduction);
                let planes = self.kernel.planes(key.threads * key.across);
                let slots = self.kernel.slots(&planes.0, &index, &planes.1);
                self.kernel.put_shared("", &slots, 0, value);
                all.push(planes);
            }
            self.kernel.line("bar.sync 0;");
            for ((&reduction, value), planes) in reductions.iter().zip(&mut folded).zip(&all) {
                self.with(reduction);
                let slots = self.kernel.slots(&planes.0, &self.thread.column, &planes.1);
                *value = self.value_of_lanes(&slots, 0, 1);
            }
        }
        if key.cluster > 1 && !folded.is_empty() {
            let mut all = Vec::with_capacity(folded.len());
            for (&reduction, value) in reductions.iter().zip(&folded) {
                all.push(self.send_segment(reduction, value));
            }
            self.barrier();
            for ((&reduction, value), planes) in reductions.iter().zip(&mut folded).zip(&all) {
                let segments = self.values_of_segments(reduction, planes);
                *value = self.kernel.merge_neighbours(segments);
            }
        }
        for (&reduction, value) in reductions.iter().zip(&folded) {
            self.finish(reduction, value);
        }
    }

    /// Returns the fold of a column's lanes in shared memory at `lane` and every `step` after it: of halves, as in
    /// [`halve`](super::KernelWriter::halve), but one half after the other, so that few values need registers.
    fn value_of_lanes(&mut self, slots: &[Name], lane: usize, step: usize) -> Folded {
        if step == self.key.threads {
            return self.kernel.get_shared(slots, lane * self.key.across);
        }
        let low = self.value_of_lanes(slots, lane, 2 * step);
        let high = self.value_of_lanes(slots, lane + step, 2 * step);
        self.kernel.merged(&low, &high)
    }

    /// Loads the values of a column's segments from shared memory.
    fn values_of_segments(&mut self, reduction: usize, planes: &Planes) -> Vec<Folded> {
        self.with(reduction);
        let key = self.key;
        let slots = self.kernel.slots(&planes.0, &self.thread.column, &planes.1);
        (0..key.cluster).map(|segment| self.kernel.get_shared(&slots, segment * key.across)).collect()
    }

    /// Stores the value of the block's segment in shared memory of each block of the cluster.
    fn send_segment(&mut self, reduction: usize, value: &Folded) -> Planes {
        self.with(reduction);
        let (key, kernel) = (self.key, &mut self.kernel);
        let planes = kernel.planes(key.cluster * key.across);
        let (segment, column) = (&self.thread.warp, &self.thread.column);
        let slot = kernel.bits32("mad.lo.u32", &[segment, &key.across.to_string(), column]);
        let slots = kernel.slots(&planes.0, &slot, &planes.1);
        // Each thread of a column stores to every so many blocks.
        for first in (0..key.cluster).step_by(key.threads) {
            let target = kernel.bits32("add.u32", &[&self.thread.lane, &first.to_string()]);
            let stores = kernel.predicate("setp.lt.u32", &[&target, &key.cluster.to_string()]);
            // Threads past the last block store nothing, but name a block that exists.
            let target = kernel.bits32("min.u32", &[&target, &(key.cluster - 1).to_string()]);
            for (part, kind) in kernel.kinds().into_iter().enumerate() {
                let slot = kernel.bits32("mapa.shared::cluster.u32", &[&slots[part], &target]);
                let (kind, value) = (type_of(kind), &value[part]);
                kernel.line(format!("@{stores} st.shared::cluster.{kind} [{slot}], {value};"));
            }
        }
        planes
    }
}
