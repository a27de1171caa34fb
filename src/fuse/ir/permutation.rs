//! Permutations of any length without memory: the image of an index is computed from the index, the length
//! and a key.
//!
//! A Feistel network is a bijection of the numbers of a given bit width for any round function. A result at
//! or past the length is passed through the network again until it is below the length, which terminates
//! because the cycle contains the starting index (cycle walking). The bit width is the smallest that holds
//! the length, so the average is below two passes. The device computes the same (`Permute64`).

const ROUNDS: usize = 12;

/// Returns the image of `index`, below `length`. An index past the length counts as the last, and a length of
/// 0 as 1, so every call terminates.
#[inline(always)]
pub(in crate::fuse) fn permuted(index: u64, length: u64, key: u64) -> u64 {
    let length = length.max(1);
    let last = length - 1;
    let bits = (64 - last.leading_zeros()).max(2);
    let shift = bits / 2;
    let mask = |width: u32| u32::MAX >> (32 - width);
    let mut current = index.min(last);
    loop {
        let (mut left, mut right) = ((current >> shift) as u32, current as u32 & mask(shift));
        let (mut of_left, mut of_right) = (mask(bits - shift), mask(shift));
        let mut key = key;
        for _ in 0..ROUNDS {
            // D. E. Knuth's linear congruential generator, MMIX.
            key = key.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mixed = (left ^ mix(right ^ (key >> 32) as u32)) & of_left;
            (left, right) = (right, mixed);
            (of_left, of_right) = (of_right, of_left);
        }
        current = u64::from(left) << shift | u64::from(right);
        if current < length {
            return current;
        }
    }
}

/// A. Appleby's finalizer of MurmurHash3: every bit of the result depends on every bit of `x`.
#[inline(always)]
fn mix(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x85EB_CA6B);
    let x = (x ^ x >> 13).wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_permuted() {
        for length in (1..70).chain([127, 128, 129, 1000, 4096, 5003]) {
            for key in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let mut seen = vec![false; length as usize];
                for index in 0..length {
                    let current = permuted(index, length, key) as usize;
                    assert!(!std::mem::replace(&mut seen[current], true), "{length}: {current} twice");
                }
            }
        }
        for length in [(1 << 32) - 1, (1 << 32) + 1, 1 << 63, u64::MAX] {
            for index in [0, 1, length / 2, length - 1] {
                assert!(permuted(index, length, 7) < length);
            }
        }
        assert_eq!((permuted(5, 0, 3), permuted(9, 1, 3)), (0, 0));
    }

    #[test]
    fn every_order_of_a_few_is_as_likely() {
        // Chi squared with 23 degrees of freedom exceeds 49.7 once in a thousand.
        let mut counts = std::collections::HashMap::new();
        let trials = 48_000u64;
        for trial in 0..trials {
            let key = trial.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            *counts.entry([0, 1, 2, 3].map(|index| permuted(index, 4, key))).or_insert(0u64) += 1;
        }
        let wanted = trials as f64 / 24.0;
        let chi: f64 = counts.values().map(|&count| (count as f64 - wanted).powi(2) / wanted).sum();
        assert!(counts.len() == 24 && chi < 49.7, "{} orders, {chi}", counts.len());
    }
}
