//! The barriers of a row, and the values that the blocks of a cluster send each other.
//!
//! A block has an mbarrier in shared memory for each stage with reductions. An asynchronous store to another block (`st.async`)
//! counts its bytes at the mbarrier of that block, whose phase completes after all bytes of the stage: so a block waits for
//! values alone, and no store to global memory has to end before. `barrier.cluster` with memory orders waits for all of them (a
//! `MEMBAR` of the device), and for every block twice a row.

use super::RowWriter;
use super::once::segments_of_row;
use crate::fuse::language::fold::bytes;
use crate::fuse::plan::reduction::WARP;
use crate::fuse::ptx::Name;
use crate::fuse::ptx::reduction::{Folded, type_of};

/// Bytes of shared memory of a barrier.
const BARRIER: usize = 16;

/// The barrier of a stage (an mbarrier), in shared memory of each block.
#[derive(Clone)]
pub(super) struct Barrier {
    address: Name,
    /// The bytes that complete a phase.
    pub(super) bytes: Name,
    /// The predicate of the block's first thread, which arrives with the number of bytes.
    first: Name,
}

impl RowWriter<'_> {
    /// Initializes the barriers of a cluster, two of a stage if rows of a loop alternate, and starts the wait for its blocks, which
    /// must exist before another stores to them.
    pub(super) fn arrive(&mut self) {
        let key = self.key;
        if key.cluster == 1 {
            return;
        }
        let kernel = &mut self.kernel;
        let index = kernel.bits32("mov.u32", &["%tid.x"]);
        let first = kernel.predicate("setp.eq.u32", &[&index, "0"]);
        let start = kernel.bits32("mov.u32", &["shared"]);
        let values = match key.has_columns {
            true => (key.cluster * key.rows_per_block).to_string(),
            false => {
                let segments = segments_of_row(kernel);
                // Warps without a segment store the identity.
                kernel.bits32("max.u32", &[&segments, &(key.cluster * key.warps).to_string()])
            }
        };
        for stage in self.stages.stages.iter().filter(|stage| !stage.reductions.is_empty()) {
            let mut of_value = 0;
            for &reduction in &stage.reductions {
                self.with(reduction);
                of_value += self.kernel.kinds().into_iter().map(bytes).sum::<usize>();
            }
            let bytes = self.kernel.bits32("mul.lo.u32", &[&of_value.to_string(), &values]);
            let init = |writer: &mut Self| {
                let offset = writer.kernel.reserve(BARRIER).to_string();
                let address = writer.kernel.bits32("add.u32", &[&start, &offset]);
                writer.kernel.line(format!("@{first} mbarrier.init.shared::cta.b64 [{address}], 1;"));
                let barrier = Barrier { address, bytes: bytes.clone(), first: first.clone() };
                writer.expect(&barrier);
                barrier
            };
            let barrier = init(self);
            if !self.parity.is_empty() {
                init(self);
            }
            self.barriers.push_back(barrier);
        }
        self.kernel.line("fence.mbarrier_init.release.cluster;");
        self.kernel.line("barrier.cluster.arrive.relaxed.aligned;");
    }

    /// Ends the wait of [`arrive`](Self::arrive).
    pub(super) fn wait(&mut self) {
        if self.key.cluster > 1 {
            self.kernel.line("barrier.cluster.wait.aligned;");
        }
    }

    /// Emits the bytes that a barrier waits for.
    pub(super) fn expect(&mut self, Barrier { address, bytes, first }: &Barrier) {
        let mnemonic = "mbarrier.arrive.expect_tx.shared::cta.b64";
        self.kernel.line(format!("@{first} {mnemonic} _, [{address}], {bytes};"));
    }

    /// Emits the wait for the values of a stage from all threads of a row.
    pub(super) fn barrier(&mut self) {
        let Some(barrier) = self.barriers.pop_front() else {
            self.kernel.line("bar.sync 0;");
            return;
        };
        let barrier = Barrier { address: self.of_row(&barrier.address, BARRIER), ..barrier };
        let mut phase = if self.phase.is_empty() { "0".to_owned() } else { self.phase.clone() };
        let second = self.passes.as_ref().map(|passes| passes.second.clone());
        if let Some(second) = &second {
            // Each pass completes a phase.
            phase = self.kernel.bits32("xor.b32", &[second, &phase]);
        }
        let source = format!("[{}]", barrier.address);
        let kernel = &mut self.kernel;
        let label = format!("$wait_{}", kernel.writer.unique());
        kernel.line(format!("{label}:"));
        let is_complete = kernel.predicate("mbarrier.try_wait.parity.shared::cta.b64", &[&source, &phase]);
        kernel.line(format!("@!{is_complete} bra {label};"));
        if let Some(passes) = &mut self.passes {
            passes.barrier = Some(barrier.clone());
        }
        if !self.phase.is_empty() {
            if let Some(second) = &second {
                self.pass_phase(second, &barrier);
            }
            // For a later row. No block sends its values before it has those of this block's next stage or row.
            self.expect(&barrier);
        }
    }

    /// Emits the start of a loop over rows, each of which completes a phase of the barriers of a cluster.
    ///
    /// With one stage, a block may send values of the next row before others have received all of this one, and a warp may
    /// store one before another warp has read those of this row. So every other row has the same barrier and the same slots: a
    /// block that sends values of a row has received those of the row before, so all warps have waited for the row before that.
    pub(super) fn begin_rows(&mut self) {
        let key = self.key;
        if key.warps > 1 && self.has_one_stage() {
            self.parity = self.kernel.bits32("mov.u32", &["0"]);
        }
        if key.cluster > 1 {
            self.phase = self.kernel.bits32("mov.u32", &["0"]);
        }
    }

    /// Emits the end of a row of the loop.
    pub(super) fn end_row(&mut self) {
        let one = if self.parity.is_empty() { "1" } else { &*self.parity };
        if !self.phase.is_empty() {
            self.kernel.line(format!("xor.b32 {0}, {0}, {one};", self.phase));
        }
        if !self.parity.is_empty() {
            self.kernel.line(format!("xor.b32 {0}, {0}, 1;", self.parity));
        }
    }

    /// Returns whether rows take one barrier.
    fn has_one_stage(&self) -> bool {
        self.stages.stages.iter().filter(|stage| !stage.reductions.is_empty()).count() == 1
    }

    /// Returns the address for the row at hand of what has `bytes` for each of two rows, if rows of the loop alternate.
    pub(super) fn of_row(&mut self, address: &str, bytes: usize) -> Name {
        match self.parity.is_empty() {
            true => address.to_owned(),
            false => self.kernel.bits32("mad.lo.u32", &[&self.parity, &bytes.to_string(), address]),
        }
    }

    /// Stores the value of a segment in its slot of each block.
    pub(super) fn publish_to_cluster(&mut self, slots: &[Name], value: &Folded) {
        let kernel = &mut self.kernel;
        let value = kernel.exchanged(value, "idx", "0", WARP as u32);
        let (lane, cluster) = (&self.thread.lane, self.key.cluster);
        let target = kernel.bits32("and.b32", &[lane, &(cluster - 1).to_string()]);
        let stores = kernel.predicate("setp.lt.u32", &[lane, &cluster.to_string()]);
        self.send(&stores, &target, slots, 0, &[value]);
    }

    /// Stores values in slots of another block, some `apart`, and counts them at its barrier of the stage at hand.
    pub(super) fn send(&mut self, guard: &str, block: &str, slots: &[Name], apart: usize, values: &[Folded]) {
        let Some(Barrier { address, .. }) = self.barriers.front().cloned() else { return };
        let address = self.of_row(&address, BARRIER);
        let kernel = &mut self.kernel;
        let barrier = kernel.bits32("mapa.shared::cluster.u32", &[&address, block]);
        let mnemonic = "st.async.shared::cluster.mbarrier::complete_tx::bytes";
        for (part, kind) in kernel.kinds().into_iter().enumerate() {
            let slot = kernel.bits32("mapa.shared::cluster.u32", &[&slots[part], block]);
            for (value_index, value) in values.iter().enumerate() {
                let (at, value) = (value_index * apart * bytes(kind), &value[part]);
                let kind = type_of(kind);
                kernel.line(format!("@{guard} {mnemonic}.{kind} [{slot}+{at}], {value}, [{barrier}];"));
            }
        }
    }
}
