//! The counter-based random draw: a pure function of the seed, the burst and the neuron, so it needs no state and is the
//! same on every device, with any number of threads or shards.

/// The PCG hash of a 32-bit word (RXS-M-XS output of one LCG step).
///
/// ```
/// assert_eq!(selvedge::burst::pcg(42), 1_223_963_391);
/// ```
#[inline]
pub const fn pcg(x: u32) -> u32 {
    let state = x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}

/// The key of a burst: all draws of one burst share it.
#[inline]
pub const fn burst_key(seed: u32, burst: u64) -> u32 {
    pcg(burst as u32 ^ pcg((burst >> 32) as u32 ^ pcg(seed)))
}

/// The draw of neuron `id` in the burst with this key, uniform over all `u32`.
///
/// The draws of two bursts are the same set where their keys differ in bits below the number of neurons alone: neuron `id` then
/// draws in one burst what neuron `id ^ (key ^ other_key)` draws in the other. Of 4096 neurons, a power of two, 20,000 bursts have
/// about 190 such pairs (the number of pairs times neurons / 2³²), so counts of spikes of neurons that are all alike repeat in them.
/// Two bursts have one key after about 2¹⁶ bursts. Stored networks and golden values rest on these draws.
#[inline]
pub const fn draw(id: u32, key: u32) -> u32 {
    pcg(id ^ key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_whose_keys_differ_in_low_bits_share_their_draws() {
        let [one, other] = [659, 918].map(|burst| burst_key(0, burst));
        assert_eq!(one ^ other, 2064);
        assert!((0..4096).all(|id| draw(id, one) == draw(id ^ 2064, other)));
    }

    #[test]
    fn hashes_keys_and_draws_equal_the_golden_values() {
        assert_eq!([0, 1, 42, u32::MAX].map(pcg), [129_708_002, 2_831_084_092, 1_223_963_391, 3_861_530_882]);
        assert_eq!(
            [1, 2, 3, 4, 12].map(|burst| burst_key(0, burst)),
            [3_375_797_271, 3_031_296_677, 656_647_665, 618_479_748, 4_152_511_473]
        );
        assert_eq!(burst_key(12_345, (1 << 32) + 7), 3_163_763_253);
        let draws: Vec<u32> = (1..=12).map(|burst| draw(4, burst_key(0, burst))).collect();
        assert_eq!(
            draws,
            [
                437_237_123,
                420_721_870,
                3_118_079_807,
                126_146_049,
                1_430_075_461,
                1_748_028_488,
                2_497_791_551,
                3_190_612_460,
                148_006_032,
                755_110_255,
                2_277_465_648,
                1_514_304_148
            ]
        );
    }
}
