//! From scores to probabilities: the keys that a query reads, the soft cap and the dropout.

use std::ops::Range;

use super::super::problem::{Band, Dropout, Problem, Sizes};
use super::job::Sequence;
use super::real::Real;

/// The keys that the queries of a sequence read, both counted from its beginning.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    band: Band,
    queries: usize,
    keys: usize,
}

impl Reach {
    pub fn new(band: Band, sequence: &Sequence) -> Reach {
        Reach { band, queries: sequence.queries.len(), keys: sequence.keys.len() }
    }

    /// Returns the keys that a query reads.
    pub fn keys_of(&self, query: usize) -> Range<usize> {
        // Positions are counted from the first of both, so that none is negative.
        let position = query + self.keys;
        let shift = self.queries;
        let first =
            self.band.before.map_or(0, |before| position.saturating_sub(before).saturating_sub(shift));
        let end = self.band.after.map_or(self.keys, |after| {
            position.saturating_add(after).saturating_add(1).saturating_sub(shift).min(self.keys)
        });
        first.min(end)..end
    }

    /// Returns the keys of a block that a query reads, counted from the block's first.
    pub fn keys_in(&self, query: usize, block: &Range<usize>) -> Range<usize> {
        let read = self.keys_of(query);
        let start = read.start.clamp(block.start, block.end);
        start - block.start..read.end.clamp(block.start, block.end).max(start) - block.start
    }

    /// Returns keys that hold all that some queries read.
    pub fn keys_of_all(&self, queries: Range<usize>) -> Range<usize> {
        let (first, last) = (self.keys_of(queries.start), self.keys_of(queries.end.max(1) - 1));
        // Queries without keys are the first ones, or the last ones.
        let start = if first.is_empty() { 0 } else { first.start };
        start.min(last.end)..last.end.max(first.end)
    }
}

/// Replaces scaled scores x by c tanh(x / c).
pub(super) fn cap<R: Real>(scores: &mut [R], limit: f64) {
    let (limit, inverse) = (R::from_f64(limit), R::from_f64(1.0 / limit));
    for score in scores {
        *score = limit.times(score.times(inverse).tanh());
    }
}

/// Random probabilities that become 0, in a head of a sequence.
#[derive(Clone, Copy)]
pub(super) struct HeadDropout {
    dropout: Dropout,
    /// The number of the head's first block of random bits, and the blocks of 16 keys.
    first: u64,
    key_blocks: u64,
}

/// Rows and columns of the random bits of 32 lanes.
const SIDE: usize = 16;
const LANES: u64 = 32;

impl HeadDropout {
    /// Returns the dropout of a head, if the problem has one.
    pub fn of(problem: &Problem, sizes: &Sizes, sequence: usize, head: usize) -> Option<HeadDropout> {
        let dropout = problem.dropout.filter(|dropout| dropout.threshold > 0)?;
        let (queries, keys) =
            problem.sequences.map_or((sizes.queries, sizes.keys), |all| (all.max_queries, all.max_keys));
        let heads = (sequence * sizes.heads + head) as u64;
        let first = heads * Dropout::blocks(1, 1, queries, keys);
        Some(HeadDropout { dropout, first, key_blocks: keys.div_ceil(SIDE) as u64 })
    }

    /// Calls `drop` with each query and key of a tile, counted from the tile's, whose probability becomes 0. The tile begins at
    /// multiples of 16.
    pub fn for_each(&self, queries: Range<usize>, keys: Range<usize>, mut drop: impl FnMut(usize, usize)) {
        let Dropout { seed, offset, threshold } = self.dropout;
        for row in queries.clone().step_by(SIDE) {
            for column in keys.clone().step_by(SIDE) {
                let block = (row / SIDE) as u64 * self.key_blocks + (column / SIDE) as u64;
                for lane in 0..LANES {
                    let counter_low = offset.wrapping_add(self.first + block * LANES + lane);
                    for (word, bits) in philox(seed, counter_low).into_iter().enumerate() {
                        let query = row + lane as usize / 4 + 8 * (word % 2);
                        for (half, bits) in [bits & 0xffff, bits >> 16].into_iter().enumerate() {
                            let key = column + 2 * (lane as usize % 4) + 8 * (word / 2) + half;
                            if bits < threshold && query < queries.end && key < keys.end {
                                drop(query - queries.start, key - keys.start);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a block of Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011).
fn philox(seed: u64, counter_low: u64) -> [u32; 4] {
    let mut key = [seed as u32, (seed >> 32) as u32];
    let mut counter = [counter_low as u32, (counter_low >> 32) as u32, 0, 0];
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
        }
        let products = [0xD251_1F53 * u64::from(counter[0]), 0xCD9E_8D57 * u64::from(counter[2])];
        let [high, low] = [32, 0].map(|shift| products.map(|product| (product >> shift) as u32));
        counter = [high[1] ^ counter[1] ^ key[0], low[1], high[0] ^ counter[3] ^ key[1], low[0]];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_has_the_words_of_the_paper() {
        // The known answers of Random123, for a counter and a key of zeros.
        assert_eq!(philox(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }

    #[test]
    fn a_query_reads_the_keys_of_its_band() {
        for (queries, keys) in [(5, 5), (3, 7), (7, 3), (1, 4), (4, 1), (2, 0)] {
            let sequence = Sequence { batch: 0, queries: 0..queries, keys: 0..keys };
            let limits = [None, Some(0), Some(1), Some(4), Some(usize::MAX)];
            for (before, after) in limits.iter().flat_map(|before| limits.map(|after| (*before, after))) {
                let reach = Reach::new(Band { before, after }, &sequence);
                for query in 0..queries {
                    let position = query as i128 + keys as i128 - queries as i128;
                    let is_read = |key: &usize| {
                        let distance = *key as i128 - position;
                        before.is_none_or(|before| distance >= -(before as i128))
                            && after.is_none_or(|after| distance <= after as i128)
                    };
                    let wanted: Vec<usize> = (0..keys).filter(is_read).collect();
                    let found: Vec<usize> = reach.keys_of(query).collect();
                    assert_eq!(
                        found, wanted,
                        "query {query} of {queries}, {keys} keys, {before:?} {after:?}"
                    );
                    let all = reach.keys_of_all(0..queries);
                    assert!(wanted.iter().all(|key| all.contains(key)));
                }
            }
        }
    }
}
