//! The folds of a row program: lanes of a segment in a warp, then segments by shared memory.

use super::once::segments_of_row;
use super::{RowWriter, WARP};
use crate::fuse::ptx::reduction::{Folded, type_of};
use crate::fuse::ptx::{Name, immediate};

/// Shared memory of a reduction: its start and the offset of each part's plane.
pub(super) type Planes = (Name, Vec<usize>);

impl RowWriter<'_> {
    /// Chooses the rules that the kernel folds with.
    pub(super) fn with(&mut self, reduction: usize) {
        self.kernel.compiled = &self.reductions[reduction].reduction;
    }

    /// Returns registers for the lanes of a thread that hold missing elements.
    pub(super) fn identities(&mut self, reduction: usize, count: usize) -> Vec<Folded> {
        self.with(reduction);
        (0..count)
            .map(|_| {
                self.kernel.each_part(|kernel, part, kind| {
                    let identity = immediate(kernel.compiled.rules.identity[part], kind);
                    kernel.result(kind.into(), &format!("mov.{}", type_of(kind)), &[&identity])
                })
            })
            .collect()
    }

    /// Merges an element into the registers of a lane.
    pub(super) fn merge_into(&mut self, lane: &Folded, element: &Folded) {
        let next = self.kernel.merged(lane, element);
        self.assign(lane, &next);
    }

    /// Copies a value to the registers of a lane.
    pub(super) fn assign(&mut self, lane: &Folded, value: &Folded) {
        for (part, kind) in self.kernel.kinds().into_iter().enumerate() {
            self.kernel.line(format!("mov.{} {}, {};", type_of(kind), lane[part], value[part]));
        }
    }

    /// Folds the lanes of a segment. The first thread of the segment has the value, and if
    /// [`exchanges`](Self::exchanges) every thread.
    pub(super) fn segment(&mut self, reduction: usize, lanes: Vec<Folded>) -> Folded {
        self.with(reduction);
        let left = self.values_left();
        let mut values = self.kernel.halve(lanes, left);
        if self.exchanges(reduction) {
            return self.exchange(values);
        }
        let mut distance = self.key.threads / 2;
        while distance > 0 {
            for value in &mut values {
                let further = self.kernel.shuffled(value, distance);
                *value = self.kernel.merged(value, &further);
            }
            distance /= 2;
        }
        self.kernel.halve(values, 1).swap_remove(0)
    }

    /// Returns the number of values to which a thread merges its own, before those of other threads.
    fn values_left(&self) -> usize {
        // The tree merges the elements of a vector last. Without an order, a thread first merges all that it has.
        if self.kernel.compiled.fold.has_order() { self.key.vector } else { 1 }
    }

    /// Returns whether threads exchange the values of a segment, so that each has the result.
    pub(super) fn exchanges(&mut self, reduction: usize) -> bool {
        self.with(reduction);
        self.kernel.compiled.fold.is_commutative() && self.values_left() <= self.key.threads
    }

    /// Folds the values of a vector in all threads of a segment: a thread sends one half of its values to its partner and keeps
    /// the other, until it has one, so 8 values take 12 shuffles and not 40. Every thread has the result.
    fn exchange(&mut self, mut values: Vec<Folded>) -> Folded {
        let distances: Vec<usize> = (0..self.key.threads.ilog2()).rev().map(|bit| 1 << bit).collect();
        let (sent, rest) = distances.split_at(values.len().ilog2() as usize);
        for &distance in sent {
            let upper = values.split_off(values.len() / 2);
            let kernel = &mut self.kernel;
            let bit = kernel.bits32("and.b32", &[&self.thread.lane, &distance.to_string()]);
            let is_upper = kernel.predicate("setp.ne.u32", &[&bit, "0"]);
            let pairs = values.iter().zip(&upper);
            values = pairs
                .map(|(low, high)| {
                    let sent = kernel.chosen(low, high, &is_upper);
                    let own = kernel.chosen(high, low, &is_upper);
                    let other = kernel.partners(&sent, distance);
                    kernel.merged(&own, &other)
                })
                .collect();
        }
        let mut value = values.swap_remove(0);
        // The other threads of an element, then the elements, which lie as far apart as they were sent.
        for &distance in rest.iter().chain(sent) {
            let other = self.kernel.partners(&value, distance);
            value = self.kernel.merged(&value, &other);
        }
        value
    }

    /// Returns the value of the first of `threads` threads in all of them.
    pub(super) fn spread(&mut self, reduction: usize, value: &Folded, threads: usize) -> Folded {
        self.with(reduction);
        match threads {
            1 => value.clone(),
            _ => self.kernel.exchanged(value, "idx", "0", threads as u32),
        }
    }

    pub(super) fn planes(&mut self, reduction: usize) -> Planes {
        self.with(reduction);
        if self.key.warps == 1 {
            return (Name::new(), Vec::new());
        }
        let before = self.kernel.shared;
        let (start, planes) = self.kernel.planes(self.key.partial_slots);
        let bytes = self.kernel.shared - before;
        if !self.parity.is_empty() {
            self.kernel.reserve(bytes);
        }
        (self.of_row(&start, bytes), planes)
    }

    /// Stores the value of a segment in its slot.
    pub(super) fn publish(&mut self, reduction: usize, planes: &Planes, segment: &str, value: &Folded) {
        self.with(reduction);
        let slots = self.kernel.slots(&planes.0, segment, &planes.1);
        if self.key.cluster > 1 {
            return self.publish_to_cluster(&slots, value);
        }
        let leads = self.thread.leads.clone();
        self.kernel.put_shared(&leads, &slots, 0, value);
    }

    /// Folds the values of all segments, neighbours first. Every warp does so, which saves a second barrier.
    pub(super) fn collect(&mut self, reduction: usize, planes: &Planes) -> Folded {
        self.with(reduction);
        let (holders, slots) = (self.holders(), self.key.partial_slots);
        let each = slots / holders;
        let kernel = &mut self.kernel;
        let segments = segments_of_row(kernel);
        let holder = kernel.bits32("and.b32", &[&self.thread.lane, &(holders - 1).to_string()]);
        let slot = kernel.bits32("mul.lo.u32", &[&holder, &each.to_string()]);
        let last = kernel.bits32("sub.u32", &[&segments, "1"]);
        let values = (0..each)
            .map(|next| {
                let at = kernel.bits32("add.u32", &[&slot, &next.to_string()]);
                let exists = kernel.predicate("setp.lt.u32", &[&at, &segments]);
                // Slots past the last segment hold nothing.
                let at = kernel.bits32("min.u32", &[&at, &last]);
                let slots = kernel.slots(&planes.0, &at, &planes.1);
                let value = kernel.get_shared(&slots, 0);
                kernel.or_identity(&value, &exists)
            })
            .collect();
        let mut value = kernel.merge_neighbours(values);
        let is_commutative = kernel.compiled.fold.is_commutative();
        let mut distance = 1;
        while distance < holders {
            let further = match is_commutative {
                true => kernel.partners(&value, distance),
                false => kernel.shuffled(&value, distance),
            };
            value = kernel.merged(&value, &further);
            distance *= 2;
        }
        if is_commutative { value } else { self.spread(reduction, &value, WARP) }
    }
}
