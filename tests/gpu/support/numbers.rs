//! Random numbers that every run has alike.

/// Small numbers that look random: a linear congruential generator's upper half.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }
}
