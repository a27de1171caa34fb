//! The ring of free energies.

use std::collections::VecDeque;

/// The number of free energies that a classifier remembers.
pub const HISTORY_LENGTH: usize = 100;

/// The free energies of the last rows.
#[derive(Debug, Default)]
pub(super) struct History(VecDeque<f64>);

impl History {
    /// Adds values, the newest last.
    pub fn extend(&mut self, values: &[f64]) {
        let newest = &values[values.len().saturating_sub(HISTORY_LENGTH)..];
        let excess = (self.0.len() + newest.len()).saturating_sub(HISTORY_LENGTH);
        self.0.drain(..excess);
        self.0.extend(newest);
    }

    /// Returns the values, the oldest first.
    pub fn to_vec(&self) -> Vec<f64> {
        self.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_keeps_the_last_hundred() {
        let mut history = History::default();
        for (count, first, length) in [(3usize, 0.0, 3), (60, 0.0, 63), (60, 23.0, 100), (250, 273.0, 100)] {
            let next = history.0.back().map_or(0.0, |last| last + 1.0);
            history.extend(&(0..count).map(|at| next + at as f64).collect::<Vec<_>>());
            let found = history.to_vec();
            assert_eq!((found.first().copied(), found.len()), (Some(first), length));
            assert!(found.windows(2).all(|pair| pair[1] - pair[0] == 1.0));
        }
    }
}
