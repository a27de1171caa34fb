//! The barriers of a row, and the values that the blocks of a cluster send each other.
//!
//! A block has a barrier in shared memory for each stage with reductions. A store to another block counts at the barrier of that
//! block, which opens after all bytes of the stage have come: so a block waits for values alone, and no store to global
//! memory has to end before. `barrier.cluster` with memory orders waits for all of them (a `MEMBAR` of the device), and for every
//! block twice a row.

use super::super::super::ptx::Name;
use super::super::super::reduce::fold::bytes;
use super::super::super::reduce::plan::WARP;
use super::super::super::reduce::ptx::{Folded, type_of};
use super::RowWriter;

/// Bytes of shared memory of a barrier.
const BARRIER: usize = 16;

/// The barrier of a stage, in shared memory of each block.
#[derive(Clone)]
pub(super) struct Barrier {
    address: Name,
    /// The bytes that open it.
    bytes: Name,
    /// The predicate of the thread that says so.
    first: Name,
}

impl RowWriter<'_> {
    /// Prepares the barriers of a cluster and starts the wait for its blocks, which must exist before another stores to
    /// them.
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
            true => (key.cluster * key.across).to_string(),
            false => {
                let segments =
                    kernel.bits32("ld.param.u32", &[&format!("[block+{}]", kernel.parameters.launch())]);
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
            let kernel = &mut self.kernel;
            let place = kernel.reserve(BARRIER).to_string();
            let address = kernel.bits32("add.u32", &[&start, &place]);
            let bytes = kernel.bits32("mul.lo.u32", &[&of_value.to_string(), &values]);
            kernel.line(format!("@{first} mbarrier.init.shared::cta.b64 [{address}], 1;"));
            let barrier = Barrier { address, bytes, first: first.clone() };
            self.expect(&barrier);
            self.barriers.push_back(barrier);
        }
        self.kernel.line("fence.mbarrier_init.release.cluster;");
        self.kernel.line("barrier.cluster.arrive.relaxed.aligned;");
        self.has_arrived = true;
    }

    /// Ends the wait of [`arrive`](Self::arrive), once.
    pub(super) fn wait(&mut self) {
        if std::mem::take(&mut self.has_arrived) {
            self.kernel.line("barrier.cluster.wait.aligned;");
        }
    }

    /// Emits the bytes that a barrier waits for.
    fn expect(&mut self, Barrier { address, bytes, first }: &Barrier) {
        let mnemonic = "mbarrier.arrive.expect_tx.shared::cta.b64";
        self.kernel.line(format!("@{first} {mnemonic} _, [{address}], {bytes};"));
    }

    /// Emits the wait for the values of a stage from all threads of a row.
    pub(super) fn barrier(&mut self) {
        let Some(barrier) = self.barriers.pop_front() else {
            self.kernel.line("bar.sync 0;");
            return;
        };
        let parity = if self.parity.is_empty() { "0" } else { &*self.parity };
        let place = format!("[{}]", barrier.address);
        let kernel = &mut self.kernel;
        let label = format!("$wait_{}", kernel.writer.unique());
        kernel.line(format!("{label}:"));
        let is_open = kernel.predicate("mbarrier.try_wait.parity.shared::cta.b64", &[&place, parity]);
        kernel.line(format!("@!{is_open} bra {label};"));
        if !self.parity.is_empty() {
            // For the next row. No block sends its values before this one has sent those of the next stage.
            self.expect(&barrier);
        }
    }

    /// Emits the begin of a loop over rows, each of which opens the barriers of a cluster once.
    pub(super) fn begin_parity(&mut self) {
        if self.key.cluster > 1 || self.key.warps > 1 && self.has_one_stage() {
            self.parity = self.kernel.bits32("mov.u32", &["0"]);
        }
    }

    /// Emits the end of a row of the loop.
    pub(super) fn end_parity(&mut self) {
        if !self.parity.is_empty() {
            self.kernel.line(format!("xor.b32 {0}, {0}, 1;", self.parity));
        }
    }

    /// Returns whether rows of a loop take one barrier. Then a warp may store a value of the next row before another has read
    /// those of this one, so the slots of two rows differ.
    pub(super) fn has_one_stage(&self) -> bool {
        self.stages.stages.iter().filter(|stage| !stage.reductions.is_empty()).count() == 1
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
        let Some(Barrier { address, .. }) = self.barriers.front() else { return };
        let kernel = &mut self.kernel;
        let barrier = kernel.bits32("mapa.shared::cluster.u32", &[address, block]);
        let mnemonic = "st.async.shared::cluster.mbarrier::complete_tx::bytes";
        for (part, kind) in kernel.kinds().into_iter().enumerate() {
            let slot = kernel.bits32("mapa.shared::cluster.u32", &[&slots[part], block]);
            for (number, value) in values.iter().enumerate() {
                let (at, value) = (number * apart * bytes(kind), &value[part]);
                let kind = type_of(kind);
                kernel.line(format!("@{guard} {mnemonic}.{kind} [{slot}+{at}], {value}, [{barrier}];"));
            }
        }
    }
}
