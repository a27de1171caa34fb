//! Random data: zeros hide what was not written, and some hardware is faster on them.

use selvedge::types::DType;

/// The bits of a random word to keep, and those to set, that make its floats numbers of half to two with either sign; every bit
/// of integers is kept.
pub fn half_to_two(dtype: DType) -> (u64, u64) {
    match dtype {
        _ if dtype.is_integer() => (u64::MAX, 0),
        DType::F64 | DType::C128 => (0x801f_ffff_ffff_ffff, 0x3fe0_0000_0000_0000),
        DType::BF16 => (0x80ff_80ff_80ff_80ff, 0x3f00_3f00_3f00_3f00),
        DType::F16 => (0x87ff_87ff_87ff_87ff, 0x3800_3800_3800_3800),
        _ => (0x80ff_ffff_80ff_ffff, 0x3f00_0000_3f00_0000),
    }
}

/// A small generator (xorshift64*, Vigna 2016), because a benchmark needs fast bytes and not good ones.
pub struct Random(u64);

impl Random {
    /// Starts at a seed; the same seed gives the same numbers.
    pub fn new(seed: u64) -> Random {
        // The state must not be zero.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Fills words.
    pub fn fill(&mut self, words: &mut [u64]) {
        words.fill_with(|| self.bits());
    }

    /// Floats from -1 to 1.
    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| ((self.bits() >> 40) as f32 / (1u64 << 23) as f32) - 1.0).collect()
    }
}
