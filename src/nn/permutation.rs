//! [`Permutation`], a shuffled order without a list of it in memory.

/// A permutation of 0 to `count` less 1, as a function of a seed.
///
/// A Feistel network permutes the numbers of an even count of bits; a result outside the range is permuted again until it is inside
/// (cycle walking), which takes fewer than four applications on average.
#[derive(Debug, Clone, Copy)]
pub(super) struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 6;

impl Permutation {
    /// `epoch` chooses one of the permutations of a seed. A count of 0 has no index.
    pub(super) fn new(count: u64, seed: u64, epoch: u64) -> Permutation {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let first = mixed(mixed(seed) ^ epoch.wrapping_mul(GOLDEN));
        let keys = std::array::from_fn(|round| mixed(first.wrapping_add(GOLDEN.wrapping_mul(round as u64))));
        Permutation { count, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Returns the number at an index below the count.
    pub(super) fn at(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            value = self.permuted(value);
            if value < self.count || self.count == 0 {
                return value;
            }
        }
    }

    fn permuted(&self, value: u64) -> u64 {
        let mask = u64::MAX >> (u64::BITS - self.half_bits);
        let (mut left, mut right) = ((value >> self.half_bits) & mask, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mixed(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of a number, as the generator SplitMix64 does.
fn mixed(value: u64) -> u64 {
    let mut value = value.wrapping_add(GOLDEN);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_comes_once() {
        for count in [1, 2, 3, 4, 5, 15, 16, 17, 64, 1000, 4097] {
            for seed in 0..3 {
                let order = Permutation::new(count, seed, 0);
                let mut values: Vec<u64> = (0..count).map(|index| order.at(index)).collect();
                let is_sorted = values.is_sorted();
                values.sort_unstable();
                assert!(values.into_iter().eq(0..count), "{count} by seed {seed}");
                assert!(count < 15 || !is_sorted, "{count} by seed {seed} is in order");
            }
        }
        let large = Permutation::new(u64::MAX, 3, 0);
        assert_ne!(large.at(0), large.at(u64::MAX - 1));
    }

    #[test]
    fn neighbours_end_far_apart_and_orders_differ() {
        let count = 10_000u64;
        let orders = [(1, 0), (1, 1), (2, 0)].map(|(seed, epoch)| Permutation::new(count, seed, epoch));
        for order in &orders {
            let distance: f64 = (1..count).map(|at| order.at(at).abs_diff(order.at(at - 1)) as f64).sum();
            // The mean distance of two random numbers is a third of the count.
            let mean = distance / (count - 1) as f64 / count as f64;
            assert!((mean - 1.0 / 3.0).abs() < 0.02, "{mean}");
        }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let same = (0..count).filter(|&at| orders[one].at(at) == orders[other].at(at)).count();
            assert!(same < 20, "{same} indices have the same number");
        }
    }
}
