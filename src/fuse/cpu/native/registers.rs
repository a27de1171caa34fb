//! Registers of a kernel's loop: a linear scan of straight-line code that spills the value whose next use is furthest.
//!
//! Invariants: a register returned for an operand of the current step is not given away before the step has its result;
//! a spilled value stays in its slot; scratch registers hold nothing between steps.

use super::Unsupported;

/// The vector registers that no value is kept in: scratch of each step.
pub(super) const SCRATCH: u8 = 4;
/// The mask registers that no value is kept in: k0, which means "no mask", and two of scratch.
pub(super) const MASK_SCRATCH: u8 = 3;
const MASKS: u8 = 8;

/// The location of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    /// The value is not computed yet.
    None,
    Vector(u8),
    Mask(u8),
    /// A spill slot.
    Spilled(u32),
}

/// Registers of one class and the values in them.
#[derive(Debug)]
struct File {
    free: Vec<u8>,
    holder: [Option<u32>; 32],
}

impl File {
    fn new(registers: std::ops::Range<u8>) -> File {
        File { free: registers.rev().collect(), holder: [None; 32] }
    }

    fn held(&self) -> usize {
        self.holder.iter().flatten().count()
    }
}

/// A value that must be stored because its register was given away.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spill {
    pub(super) register: u8,
    pub(super) value: usize,
    pub(super) slot: u32,
}

/// The allocator of a kernel's registers.
#[derive(Debug)]
pub(super) struct Registers {
    locations: Vec<Location>,
    /// The positions of the uses that are left, last first.
    uses: Vec<Vec<u32>>,
    vectors: File,
    masks: File,
    /// The vector and mask registers that the current step reads, as bits.
    pinned: [u32; 2],
    pub(super) slots: u32,
    /// The most vector registers in use at a time.
    pub(super) most: usize,
}

impl Registers {
    /// Creates registers from [`SCRATCH`] to below `end`, for values with uses at these positions, first to last.
    pub(super) fn new(end: u8, mut uses: Vec<Vec<u32>>) -> Registers {
        for uses in &mut uses {
            uses.reverse();
        }
        Registers {
            locations: vec![Location::None; uses.len()],
            uses,
            vectors: File::new(SCRATCH..end),
            masks: File::new(MASK_SCRATCH..MASKS),
            pinned: [0; 2],
            slots: 0,
            most: 0,
        }
    }

    pub(super) fn location(&self, value: usize) -> Location {
        self.locations[value]
    }

    /// Returns whether the value is in a vector register and read for the last time by the step at `position`.
    pub(super) fn dies(&self, value: usize, position: u32) -> bool {
        matches!(self.locations[value], Location::Vector(_)) && self.uses[value].first() == Some(&position)
    }

    pub(super) fn pin(&mut self, register: u8) {
        self.pinned[0] |= 1 << register;
    }

    pub(super) fn pin_mask(&mut self, register: u8) {
        self.pinned[1] |= 1 << register;
    }

    pub(super) fn begin_step(&mut self) {
        self.pinned = [0; 2];
    }

    /// Frees the registers of values that the step at `position` reads for the last time.
    pub(super) fn release(&mut self, position: u32, values: &[usize]) {
        for &value in values {
            while self.uses[value].last() == Some(&position) {
                self.uses[value].pop();
            }
            if !self.uses[value].is_empty() {
                continue;
            }
            let (file, register) = match self.locations[value] {
                Location::Vector(register) => (&mut self.vectors, register),
                Location::Mask(register) => (&mut self.masks, register),
                _ => continue,
            };
            if file.holder[register as usize] == Some(value as u32) {
                file.holder[register as usize] = None;
                file.free.push(register);
            }
        }
    }

    /// Returns a register for `value`, the preferred one if it is free, and the value that must be stored first.
    ///
    /// # Errors
    ///
    /// [`Unsupported::Registers`] if the step reads every register.
    pub(super) fn take(
        &mut self,
        value: usize,
        is_mask: bool,
        preferred: Option<u8>,
    ) -> Result<(u8, Option<Spill>), Unsupported> {
        let (register, spill) = self.take_free(is_mask, preferred)?;
        let file = if is_mask { &mut self.masks } else { &mut self.vectors };
        file.holder[register as usize] = Some(value as u32);
        self.locations[value] = if is_mask { Location::Mask(register) } else { Location::Vector(register) };
        self.most = self.most.max(self.vectors.held());
        Ok((register, spill))
    }

    /// Returns a vector register for the current step; [`give_back`](Self::give_back) frees it.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub(super) fn take_temporary(&mut self) -> Result<(u8, Option<Spill>), Unsupported> {
        let taken = self.take_free(false, None)?;
        self.most = self.most.max(self.vectors.held() + 4);
        Ok(taken)
    }

    pub(super) fn give_back(&mut self, register: u8) {
        self.vectors.free.push(register);
    }

    fn take_free(
        &mut self,
        is_mask: bool,
        preferred: Option<u8>,
    ) -> Result<(u8, Option<Spill>), Unsupported> {
        let file = if is_mask { &mut self.masks } else { &mut self.vectors };
        let at = preferred.and_then(|register| file.free.iter().position(|&free| free == register));
        if let Some(at) = at {
            return Ok((file.free.swap_remove(at), None));
        }
        if let Some(register) = file.free.pop() {
            return Ok((register, None));
        }
        let pinned = self.pinned[usize::from(is_mask)];
        let next_use = |value: u32| self.uses[value as usize].last().copied().unwrap_or(u32::MAX);
        let victim = (0..32u8)
            .filter(|register| pinned >> register & 1 == 0)
            .filter_map(|register| {
                file.holder[register as usize].map(|value| (next_use(value), register, value))
            })
            .max();
        let (_, register, value) = victim.ok_or(Unsupported::Registers)?;
        file.holder[register as usize] = None;
        let slot = self.slots;
        self.slots += 1;
        self.locations[value as usize] = Location::Spilled(slot);
        Ok((register, Some(Spill { register, value: value as usize, slot })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_with_the_furthest_use_is_spilled() {
        let uses = vec![vec![9], vec![20], vec![12], vec![30]];
        let mut registers = Registers::new(SCRATCH + 3, uses);
        for value in 0..3 {
            let (register, spill) = registers.take(value, false, None).unwrap();
            assert_eq!((register, spill.is_none()), (SCRATCH + value as u8, true));
        }
        let (register, spill) = registers.take(3, false, None).unwrap();
        let spill = spill.unwrap();
        assert_eq!((register, spill.register, spill.value), (SCRATCH + 1, SCRATCH + 1, 1));
        assert_eq!(registers.location(1), Location::Spilled(0));
        // Its next use is not until 30, but the step reads it.
        registers.pin(SCRATCH + 1);
        assert_eq!(registers.take_temporary().unwrap().1.unwrap().value, 2);
    }

    #[test]
    fn a_register_is_free_after_the_last_use_of_its_value() {
        let mut registers = Registers::new(SCRATCH + 1, vec![vec![1, 1, 4], vec![5]]);
        let (register, _) = registers.take(0, false, None).unwrap();
        assert!(!registers.dies(0, 1));
        registers.release(1, &[0, 0]);
        assert!(registers.dies(0, 4));
        registers.release(4, &[0]);
        let (again, spill) = registers.take(1, false, Some(register)).unwrap();
        assert!(spill.is_none() && again == register);
    }

    #[test]
    fn a_step_that_reads_every_register_is_refused() {
        let mut registers = Registers::new(SCRATCH + 1, vec![vec![1]]);
        let (register, _) = registers.take(0, false, None).unwrap();
        registers.pin(register);
        assert!(matches!(registers.take_temporary(), Err(Unsupported::Registers)));
    }
}
