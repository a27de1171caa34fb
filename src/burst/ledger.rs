//! The fire ledger: the spikes of the last bursts as bitmaps.

use std::collections::VecDeque;

use super::state::Spike;
use crate::{Error, Result};

/// The most bursts that a rule looks back.
pub const MAX_PLASTICITY_WINDOW: usize = 1024;

/// The fired neurons of the last `window` bursts, one bit per neuron and burst.
///
/// ```
/// use selvedge::burst::{FireLedger, Spike};
///
/// let mut ledger = FireLedger::new(100, 2);
/// ledger.record(1, &[Spike { id: 7, potential: 1.0 }]);
/// // Burst 2 was not recorded, so it counts as empty.
/// ledger.record(3, &[Spike { id: 9, potential: 1.0 }]);
/// assert!(ledger.has_fired(3, 9)?);
/// assert!(ledger.fired(2)?.is_empty());
/// assert!(ledger.fired(1).is_err());
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FireLedger {
    neurons: usize,
    window: usize,
    /// The last recorded burst.
    last: u64,
    /// The bitmaps of the bursts up to `last`, oldest first.
    bitmaps: VecDeque<Vec<u64>>,
}

impl FireLedger {
    /// Returns an empty ledger of `window` bursts, at least 1. A simulation takes windows up to [`MAX_PLASTICITY_WINDOW`].
    pub fn new(neurons: usize, window: usize) -> FireLedger {
        FireLedger { neurons, window: window.max(1), last: 0, bitmaps: VecDeque::new() }
    }

    /// Returns an empty ledger of a run that stands at `burst`.
    pub(super) fn starting_after(neurons: usize, window: usize, burst: u64) -> FireLedger {
        FireLedger { last: burst, ..FireLedger::new(neurons, window) }
    }

    /// Returns the ledger of a run that stands at burst `last`; the bitmaps are those of the bursts up to it.
    pub(super) fn from_bitmaps(
        neurons: usize,
        window: usize,
        last: u64,
        bitmaps: Vec<Vec<u64>>,
    ) -> FireLedger {
        FireLedger { last, bitmaps: bitmaps.into(), ..FireLedger::new(neurons, window) }
    }

    /// Checks that a simulation can keep a ledger of `window` bursts.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] above [`MAX_PLASTICITY_WINDOW`].
    pub(super) fn check_window(window: u64) -> Result<()> {
        if window > MAX_PLASTICITY_WINDOW as u64 {
            let wanted = format!("at most {MAX_PLASTICITY_WINDOW}");
            return Err(Error::invalid("the fire ledger", format!("a window of {window} bursts"), wanted));
        }
        Ok(())
    }

    /// Returns the bitmaps held, oldest first.
    pub(super) fn bitmaps(&self) -> impl Iterator<Item = &[u64]> {
        self.bitmaps.iter().map(Vec::as_slice)
    }

    /// Makes the window at least `window` bursts long.
    pub(super) fn grow(&mut self, window: usize) {
        self.window = self.window.max(window);
    }

    /// Returns the number of neurons.
    pub fn neurons(&self) -> usize {
        self.neurons
    }

    /// Returns the number of bursts that the ledger holds at most.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Records the spikes of a burst. Bursts left out since the last one count as empty; an older burst and spikes of no neuron
    /// are ignored.
    pub fn record(&mut self, burst: u64, fired: &[Spike]) {
        if burst <= self.last {
            return;
        }
        let (neurons, words) = (self.neurons, self.neurons.div_ceil(64));
        if burst - self.last > self.window as u64 {
            self.bitmaps.clear();
            self.last = burst - self.window as u64;
        }
        for _ in self.last..burst {
            // The oldest bitmap becomes the newest, so a full ledger allocates nothing.
            let mut bitmap = if self.bitmaps.len() == self.window { self.bitmaps.pop_front() } else { None }
                .unwrap_or_default();
            bitmap.clear();
            bitmap.resize(words, 0);
            self.bitmaps.push_back(bitmap);
        }
        self.last = burst;
        if let Some(bitmap) = self.bitmaps.back_mut() {
            for spike in fired.iter().filter(|spike| (spike.id as usize) < neurons) {
                if let Some(word) = bitmap.get_mut(spike.id as usize / 64) {
                    *word |= 1 << (spike.id % 64);
                }
            }
        }
    }

    /// Returns the bursts that the ledger holds.
    pub fn bursts(&self) -> std::ops::RangeInclusive<u64> {
        self.last - self.bitmaps.len() as u64 + 1..=self.last
    }

    /// Returns the bitmap of a burst: bit `id % 64` of word `id / 64`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a burst beyond the window.
    pub fn bitmap(&self, burst: u64) -> Result<&[u64]> {
        let held = self.bursts();
        if !held.contains(&burst) {
            let wanted = format!("a burst from {} to {}", held.start(), held.end());
            return Err(Error::invalid("the fire ledger", format!("burst {burst}"), wanted));
        }
        Ok(&self.bitmaps[(burst - held.start()) as usize])
    }

    /// Returns the ids that fired in a burst, ascending.
    ///
    /// # Errors
    /// As [`bitmap`](FireLedger::bitmap).
    pub fn fired(&self, burst: u64) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for (at, word) in self.bitmap(burst)?.iter().enumerate() {
            let mut bits = *word;
            while bits != 0 {
                ids.push((at * 64) as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        Ok(ids)
    }

    /// Returns true if a neuron fired in a burst.
    ///
    /// # Errors
    /// As [`bitmap`](FireLedger::bitmap).
    pub fn has_fired(&self, burst: u64, id: u32) -> Result<bool> {
        Ok(self.bitmap(burst)?.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1))
    }

    /// Returns in how many of the last `window` bursts both neurons fired.
    pub(super) fn fired_together(&self, window: usize, left: u32, right: u32) -> usize {
        let bit = |bitmap: &Vec<u64>, id: u32| bitmap[id as usize / 64] >> (id % 64) & 1 == 1;
        self.bitmaps
            .iter()
            .rev()
            .take(window)
            .filter(|bitmap| bit(bitmap, left) && bit(bitmap, right))
            .count()
    }

    /// Returns the neurons that fired in at least one of the last `window` bursts, ascending.
    pub(super) fn active(&self, window: usize) -> Vec<u32> {
        self.folded(window, 0, |bits, bitmap| bits | bitmap)
    }

    /// Returns the neurons that fired in all of the last `window` bursts, ascending; none where fewer bursts are held.
    pub(super) fn steady(&self, window: usize) -> Vec<u32> {
        if self.bitmaps.len() < window {
            Vec::new()
        } else {
            self.folded(window, !0, |bits, bitmap| bits & bitmap)
        }
    }

    fn folded(&self, window: usize, start: u64, fold: impl Fn(u64, u64) -> u64) -> Vec<u32> {
        let mut ids = Vec::new();
        for word in 0..self.neurons.div_ceil(64) {
            let last = self.bitmaps.iter().rev().take(window);
            let mut bits = last.fold(start, |bits, bitmap| fold(bits, bitmap[word]));
            while bits != 0 {
                ids.push((word * 64) as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        ids
    }

    /// Returns the number of bursts held.
    pub(super) fn len(&self) -> usize {
        self.bitmaps.len()
    }
}
