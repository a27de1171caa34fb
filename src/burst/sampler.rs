//! Samplers: rate-limited snapshots of the fire queue for displays and outputs.

use std::collections::BTreeMap;
use std::ops::Range;

use super::state::Spike;

/// Collects the spikes of a range of neurons and hands them out at most once per `every` bursts, each neuron once with the
/// potential of its latest spike.
///
/// ```
/// use selvedge::burst::{Sampler, Spike};
///
/// let mut sampler = Sampler::new(0..10, 2);
/// sampler.record(1, &[Spike { id: 3, potential: 1.0 }]);
/// assert!(sampler.take().is_none());
/// sampler.record(2, &[Spike { id: 3, potential: 2.0 }, Spike { id: 40, potential: 2.0 }]);
/// assert_eq!(sampler.take().unwrap().fired, [Spike { id: 3, potential: 2.0 }]);
/// assert!(sampler.take().is_none());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sampler {
    ids: Range<u32>,
    every: u64,
    /// The burst of the last snapshot, and the last recorded one.
    taken: u64,
    last: u64,
    pending: BTreeMap<u32, f32>,
}

/// The spikes that a [`Sampler`] hands out.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The last burst of the snapshot.
    pub burst: u64,
    /// One spike per neuron that fired since the last snapshot, ascending by id.
    pub fired: Vec<Spike>,
}

impl Sampler {
    /// Returns a sampler of these neurons with one snapshot per `every` bursts, at least 1.
    pub fn new(ids: Range<u32>, every: u64) -> Sampler {
        Sampler { ids, every: every.max(1), taken: 0, last: 0, pending: BTreeMap::new() }
    }

    /// Drops what was collected, after another state was set; the next snapshot comes `every` bursts after this one.
    pub(super) fn restart(&mut self, burst: u64) {
        self.pending.clear();
        (self.taken, self.last) = (burst, burst);
    }

    /// Adds the spikes of a burst.
    pub fn record(&mut self, burst: u64, fired: &[Spike]) {
        self.last = burst;
        let first = fired.partition_point(|spike| spike.id < self.ids.start);
        for spike in fired[first..].iter().take_while(|spike| spike.id < self.ids.end) {
            self.pending.insert(spike.id, spike.potential);
        }
    }

    /// Returns the snapshot if `every` bursts have passed since the last one.
    pub fn take(&mut self) -> Option<Snapshot> {
        if self.last.saturating_sub(self.taken) < self.every {
            return None;
        }
        self.taken = self.last;
        let spike = |(id, potential)| Spike { id, potential };
        Some(Snapshot {
            burst: self.last,
            fired: std::mem::take(&mut self.pending).into_iter().map(spike).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_that_never_gives_a_snapshot_may_start_anew_at_any_burst() {
        let mut sampler = Sampler::new(0..1, u64::MAX);
        sampler.restart(5);
        sampler.record(6, &[]);
        assert_eq!(sampler.take(), None);
    }
}
