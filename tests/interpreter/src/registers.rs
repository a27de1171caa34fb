//! The registers of a warp's threads.

use super::pure::LANES;

/// The registers of a warp, with a lane for each thread.
pub struct Registers {
    values: Vec<[u64; LANES]>,
    /// The lanes that have been written, as bits.
    written: Vec<u32>,
}

impl Registers {
    pub fn new(count: usize) -> Registers {
        Registers { values: vec![[0; LANES]; count], written: vec![0; count] }
    }

    /// Makes the registers those of new threads.
    pub fn forget(&mut self) {
        self.written.fill(0);
    }

    pub fn is_written(&self, register: usize, lane: usize) -> bool {
        self.written[register] >> lane & 1 != 0
    }

    /// Returns the bits of a register that its thread has written.
    pub fn get(&self, register: usize, lane: usize) -> u64 {
        assert!(self.is_written(register, lane), "a read of a register that was not written");
        self.values[register][lane]
    }

    pub fn set(&mut self, register: usize, lane: usize, bits: u64) {
        self.values[register][lane] = bits;
        self.written[register] |= 1 << lane;
    }

    /// Returns a register of 32 threads that have all written it.
    pub fn get_all(&self, register: usize) -> &[u64; LANES] {
        assert_eq!(self.written[register], u32::MAX, "a read of a register that was not written");
        &self.values[register]
    }

    pub fn set_all(&mut self, register: usize, bits: [u64; LANES]) {
        self.values[register] = bits;
        self.written[register] = u32::MAX;
    }
}
