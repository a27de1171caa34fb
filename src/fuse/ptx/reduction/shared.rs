//! Folded values in shared memory: a plane of slots for each part of a value.

use super::{Folded, KernelWriter, type_of};
use crate::fuse::language::fold::bytes;
use crate::fuse::ptx::Name;

impl KernelWriter<'_> {
    /// Reserves bytes of shared memory, and returns their offset.
    pub(in crate::fuse) fn reserve(&mut self, bytes: usize) -> usize {
        let offset = self.shared;
        self.shared += bytes.next_multiple_of(16);
        offset
    }

    /// Reserves shared memory for `slots` values, and returns its start and the offset of each part's plane.
    pub(in crate::fuse) fn planes(&mut self, slots: usize) -> (Name, Vec<usize>) {
        let mut planes = Vec::new();
        for kind in self.kinds() {
            // Vectors of slots may be read at once.
            planes.push(self.reserve(slots * bytes(kind)));
        }
        let start = match &self.start {
            Some(start) => start.clone(),
            None => self.bits32("mov.u32", &["shared"]),
        };
        (start, planes)
    }

    /// Returns the address of the thread's slot in each plane.
    pub(in crate::fuse) fn slots(&mut self, start: &str, slot: &str, planes: &[usize]) -> Vec<Name> {
        let kinds = self.kinds();
        kinds
            .iter()
            .zip(planes)
            .map(|(kind, plane)| {
                let at = self.bits32("mad.lo.u32", &[slot, &bytes(*kind).to_string(), start]);
                if *plane == 0 { at } else { self.bits32("add.u32", &[&at, &plane.to_string()]) }
            })
            .collect()
    }

    /// Stores a value in the thread's slots. An empty guard is none.
    pub(in crate::fuse) fn put_shared(&mut self, guard: &str, slots: &[Name], offset: usize, value: &Folded) {
        let guard = if guard.is_empty() { String::new() } else { format!("@{guard} ") };
        for (part, kind) in self.kinds().into_iter().enumerate() {
            let (at, bytes) = (&slots[part], offset * bytes(kind));
            let text = format!("{guard}st.shared.{} [{at}+{bytes}], {};", type_of(kind), value[part]);
            self.line(text);
        }
    }

    pub(in crate::fuse) fn get_shared(&mut self, slots: &[Name], offset: usize) -> Folded {
        self.each_part(|kernel, part, kind| {
            let source = format!("[{}+{}]", slots[part], offset * bytes(kind));
            kernel.result(kind.into(), &format!("ld.shared.{}", type_of(kind)), &[&source])
        })
    }

    /// Returns the merged value of each group of `count` warps, in its first thread; all other threads exit.
    pub(super) fn merge_warps(
        &mut self,
        value: Folded,
        count: usize,
        warps: usize,
        warp: &str,
        first: &str,
    ) -> Folded {
        let (start, planes) = self.planes(warps);
        let slots = self.slots(&start, warp, &planes);
        self.put_shared(first, &slots, 0, &value);
        self.line("bar.sync 0;");
        let within = self.bits32("and.b32", &[warp, &(count - 1).to_string()]);
        let leads = self.predicate("setp.eq.u32", &[&within, "0"]);
        let leads = self.predicate("and.pred", &[&leads, first]);
        self.line(format!("@!{leads} bra $exit;"));
        let values = (0..count).map(|next| self.get_shared(&slots, next)).collect();
        self.merge_neighbours(values)
    }
}
