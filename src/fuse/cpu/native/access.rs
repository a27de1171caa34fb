//! Loads and stores of contiguous elements, and the flags of rare bodies.

use super::Unsupported;
use super::analysis::is_wide;
use super::encoder::{Rm, op};
use super::generate::Generator;
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::kind_of;
use crate::types::DType;

const UNPACK_LOW: u8 = 0x14;
const UNPACK_HIGH: u8 = 0x15;

impl Generator<'_> {
    /// Loads part `part` of the elements at hand.
    pub(super) fn load_elements(
        &mut self,
        operand: usize,
        dtype: DType,
        part: usize,
        to: u8,
        kind: RegisterKind,
    ) {
        let length = self.length(kind);
        if dtype.is_complex() {
            return self.load_part(operand, dtype, part, to, kind);
        }
        let memory = self.memory(operand, dtype.size(), 0);
        match dtype {
            DType::F32 | DType::I32 | DType::U32 | DType::F64 | DType::I64 | DType::U64 => {
                self.load(length, to, memory);
            }
            // vcvtph2ps
            DType::F16 => self.op(op(2, 1, 0, 0x13), length, to, 0, memory),
            DType::BF16 => {
                self.op(op(2, 1, 0, 0x33), length, to, 0, memory);
                self.shift(6, to, to, 16, length, false);
            }
            DType::U8 | DType::F8E4M3 | DType::F8E5M2 => self.op(op(2, 1, 0, 0x31), length, to, 0, memory),
            DType::I8 => self.op(op(2, 1, 0, 0x21), length, to, 0, memory),
            DType::U16 => self.op(op(2, 1, 0, 0x33), length, to, 0, memory),
            DType::I16 => self.op(op(2, 1, 0, 0x23), length, to, 0, memory),
            DType::Bool => {
                self.op(op(2, 1, 0, 0x31), length, 0, 0, memory);
                if self.is_vex() {
                    let zero = self.fixed32(0);
                    self.op(op(1, 1, 0, 0x66), length, to, 0, zero);
                } else {
                    // vptestmd
                    self.op(op(2, 1, 0, 0x27), length, to, 0, Rm::Register(0));
                }
            }
            DType::C64 | DType::C128 => {}
        }
    }

    fn load_part(&mut self, operand: usize, dtype: DType, part: usize, to: u8, kind: RegisterKind) {
        let (length, wide) = (self.length(kind), u8::from(is_wide(kind)));
        let half = self.lanes * dtype.size() / 2;
        if !self.is_vex() {
            // Two loads, and a permutation of both.
            let part = part as u32;
            let index = match wide {
                1 => self.words(|at| if at % 2 == 0 { 2 * (at / 2) + part } else { 0 }),
                _ => self.words(|at| 2 * at + part),
            };
            let index = self.in_register(kind, index, 0);
            let first = self.memory(operand, dtype.size(), 0);
            self.load(length, to, first);
            let second = self.memory(operand, dtype.size(), half);
            self.op(op(2, 1, wide, 0x7f), length, to, index, second);
            return;
        }
        let first = self.memory(operand, dtype.size(), 0);
        self.load(length, to, first);
        let second = self.memory(operand, dtype.size(), half);
        match wide {
            1 => {
                let opcode = if part == 0 { UNPACK_LOW } else { UNPACK_HIGH };
                self.op(op(1, 1, 1, opcode), length, to, to, second);
            }
            // vshufps
            _ => {
                let selection = if part == 0 { 0x88 } else { 0xdd };
                self.op_immediate(op(1, 0, 0, 0xc6), length, to, to, second, selection);
            }
        }
        if length == 1 {
            // vpermpd
            self.op_immediate(op(3, 1, 1, 0x01), length, to, 0, Rm::Register(to), 0xd8);
        }
    }

    /// Stores the elements at hand of an output.
    pub(super) fn store(
        &mut self,
        operand: usize,
        dtype: DType,
        values: [usize; 2],
    ) -> Result<(), Unsupported> {
        let length = self.length(kind_of(dtype));
        if dtype.is_complex() {
            self.store_parts(operand, dtype, values);
            return Ok(());
        }
        if dtype == DType::Bool {
            if self.is_vex() {
                let mask = self.register(values[0], 0);
                self.pack_words(mask);
                let one = self.fixed32(0x0101_0101);
                self.op(op(1, 1, 0, 0xdb), 0, 0, 0, one);
                self.store_bytes(operand);
            } else {
                let mask = self.mask(values[0], 1);
                self.store_mask(operand, mask);
            }
            return Ok(());
        }
        let value = self.register(values[0], 0);
        let memory = |generator: &mut Self| generator.memory(operand, dtype.size(), 0);
        match dtype {
            DType::F16 => {
                let memory = memory(self);
                self.op_immediate(op(3, 1, 0, 0x1d), length, value, 0, memory, 0);
            }
            DType::BF16 | DType::U16 | DType::I16 => {
                let mut value = value;
                if dtype == DType::BF16 {
                    self.shift(2, 0, value, 16, length, false);
                    value = 0;
                }
                if !self.is_vex() {
                    // vpmovdw
                    let memory = memory(self);
                    self.op(op(2, 2, 0, 0x33), length, value, 0, memory);
                    return Ok(());
                }
                if dtype != DType::BF16 {
                    let low = self.fixed32(0xffff);
                    self.op(op(1, 1, 0, 0xdb), length, 0, value, low);
                }
                self.pack_halves();
                let memory = memory(self);
                match self.lanes {
                    8 => self.write(0, 0, memory),
                    _ => self.op(op(1, 1, 0, 0xd6), 0, 0, 0, memory),
                }
            }
            DType::U8 | DType::I8 | DType::F8E4M3 | DType::F8E5M2 => {
                if !self.is_vex() {
                    // vpmovdb
                    let memory = memory(self);
                    self.op(op(2, 2, 0, 0x31), length, value, 0, memory);
                    return Ok(());
                }
                let low = self.fixed32(0xff);
                self.op(op(1, 1, 0, 0xdb), length, 0, value, low);
                self.pack_halves();
                // vpackuswb
                self.op(op(1, 1, 0, 0x67), 0, 0, 0, Rm::Register(0));
                self.store_bytes(operand);
            }
            _ => {
                let memory = memory(self);
                self.write_output(length, value, memory, dtype.size());
            }
        }
        Ok(())
    }

    /// Packs words below 2^16 in register 0 to half words (`vpackusdw`).
    fn pack_halves(&mut self) {
        if self.lanes == 8 {
            self.op_immediate(op(3, 1, 0, 0x39), 1, 0, 0, Rm::Register(1), 1);
            self.op(op(2, 1, 0, 0x2b), 0, 0, 0, Rm::Register(1));
        } else {
            self.op(op(2, 1, 0, 0x2b), 0, 0, 0, Rm::Register(0));
        }
    }

    /// Packs masks of words to bytes in register 0.
    fn pack_words(&mut self, mask: u8) {
        let mut second = mask;
        if self.lanes == 8 {
            self.op_immediate(op(3, 1, 0, 0x39), 1, mask, 0, Rm::Register(1), 1);
            second = 1;
        }
        // vpackssdw, vpacksswb
        self.op(op(1, 1, 0, 0x6b), 0, 0, mask, Rm::Register(second));
        self.op(op(1, 1, 0, 0x63), 0, 0, 0, Rm::Register(0));
    }

    /// Stores a byte a lane of register 0.
    fn store_bytes(&mut self, operand: usize) {
        let memory = self.memory(operand, 1, 0);
        match self.lanes {
            16 => self.write(0, 0, memory),
            8 => self.op(op(1, 1, 1, 0xd6), 0, 0, 0, memory),
            _ => self.op(op(1, 1, 0, 0x7e), 0, 0, 0, memory),
        }
    }

    /// Stores a mask register as a byte a lane.
    fn store_mask(&mut self, operand: usize, mask: u8) {
        let ones = self.fixed32(0x0101_0101);
        // vmovdqu8
        self.code.evex(op(1, 3, 0, 0x6f), 0, 0, 0, ones, mask, true);
        self.store_bytes(operand);
    }

    fn store_parts(&mut self, operand: usize, dtype: DType, values: [usize; 2]) {
        let kind = self.kind(values[0]);
        let (length, wide) = (self.length(kind), u8::from(is_wide(kind)));
        let half = self.lanes * dtype.size() / 2;
        let (real, imaginary) = (self.register(values[0], 0), self.register(values[1], 1));
        for side in 0..2 {
            if self.is_vex() {
                let is_whole = length == 0;
                let opcode = if side == 1 && is_whole { UNPACK_HIGH } else { UNPACK_LOW };
                self.op(op(1, wide, wide, opcode), length, 2, real, Rm::Register(imaginary));
                if !is_whole {
                    self.op(op(1, wide, wide, UNPACK_HIGH), length, 3, real, Rm::Register(imaginary));
                    // vperm2f128
                    let selection = if side == 0 { 0x20 } else { 0x31 };
                    self.op_immediate(op(3, 1, 0, 0x06), 1, 2, 2, Rm::Register(3), selection);
                }
            } else {
                let (lanes, side) = (self.lanes as u32, side as u32);
                let lane = |at: u32| (side * lanes + at) / 2 % lanes + if at % 2 == 1 { lanes } else { 0 };
                let index = match wide {
                    1 => self.words(|at| if at % 2 == 0 { lane(at / 2) } else { 0 }),
                    _ => self.words(lane),
                };
                self.load(length, 2, index);
                // vpermi2ps, vpermi2pd
                self.op(op(2, 1, wide, 0x77), length, 2, real, Rm::Register(imaginary));
            }
            let memory = self.memory(operand, dtype.size(), side as usize * half);
            self.write_output(length, 2, memory, dtype.size());
        }
    }

    /// Stores a byte for each lane that needs a body left out, and sets the flag if there is one.
    pub(super) fn store_flags(&mut self, operand: usize) {
        let conditions = self.analysis.conditions.clone();
        let length = self.length_of(false);
        if self.is_vex() {
            for (at, &condition) in conditions.iter().enumerate() {
                let mask = self.register(condition, 1);
                match at {
                    0 => self.load(length, 2, Rm::Register(mask)),
                    _ => self.op(op(1, 1, 0, 0xeb), length, 2, 2, Rm::Register(mask)),
                }
            }
            self.pack_words(2);
            self.store_bytes(operand);
            // vptest
            self.op(op(2, 1, 0, 0x17), length, 2, 0, Rm::Register(2));
        } else {
            let bytes = self.lanes == 8;
            for (at, &condition) in conditions.iter().enumerate() {
                let mask = self.mask(condition, 2);
                match at {
                    0 => self.code.mask(0x45, bytes, 1, mask, mask),
                    _ => self.code.mask(0x45, bytes, 1, 1, mask),
                }
            }
            self.store_mask(operand, 1);
            // The form of 8 lanes ignores the bits above, which other forms may have set.
            self.code.mask_unary(0x98, bytes, 1, 1);
        }
        self.code.set_flag();
    }
}
