//! x86-64 instructions as bytes: vector instructions in their VEX and EVEX encodings, and the few scalar ones of a
//! kernel's loop.
//!
//! An [`Op`] has the W bit of the EVEX form. The VEX form has it where [`has_vex_w`] says so, and 0 elsewhere: processors
//! ignore the bit there, but valgrind refuses the instruction.

/// A vector instruction: opcode map (1: 0F, 2: 0F38, 3: 0F3A), mandatory prefix (0: none, 1: 66, 2: F3, 3: F2), W
/// and opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Op {
    pub(super) map: u8,
    pub(super) prefix: u8,
    pub(super) w: u8,
    pub(super) opcode: u8,
}

pub(super) const fn op(map: u8, prefix: u8, w: u8, opcode: u8) -> Op {
    Op { map, prefix, w, opcode }
}

/// True for an instruction whose VEX form distinguishes words of 64 bits by W: fused multiply-adds, shifts by lane, masked
/// moves and gathers of integers, permutations of 64-bit lanes, and moves of general registers.
const fn has_vex_w(op: Op) -> bool {
    match op.map {
        1 => op.prefix == 1 && matches!(op.opcode, 0x6e | 0x7e),
        2 => matches!(op.opcode, 0x45..=0x47 | 0x8c | 0x8e | 0x90..=0x93 | 0x96..=0xbf),
        _ => matches!(op.opcode, 0x00 | 0x01),
    }
}

/// A general register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct General(pub(super) u8);

/// The spill slots.
pub(super) const SPILL: General = General(1);
/// The constants.
pub(super) const POOL: General = General(2);
/// The address of an operand beyond [`POINTERS`], or of one whose elements have 16 bytes.
pub(super) const ADDRESS: General = General(3);
/// The table of the operands' addresses.
const TABLE: General = General(7);
/// The registers of the first operands' addresses: r8 to r15.
pub(super) const POINTERS: u8 = 8;

/// The last operand of a vector instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rm {
    Register(u8),
    /// `[base + displacement]`
    Memory(General, i32),
    /// `[base + index * scale + displacement]`, with the loop's index in rax.
    Element(General, u8, i32),
}

/// Machine code under construction.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) bytes: Vec<u8>,
    /// The vector instructions so far.
    pub(super) instructions: usize,
    /// The offset of the first byte of each instruction.
    pub(super) starts: Vec<u32>,
}

const fn inverted(bit: u8) -> u8 {
    (bit ^ 1) & 1
}

impl Code {
    /// Adds an instruction's first bytes.
    fn begin<const COUNT: usize>(&mut self, bytes: [u8; COUNT]) {
        self.starts.push(self.bytes.len() as u32);
        self.bytes.extend(bytes);
    }

    fn begin_vector<const COUNT: usize>(&mut self, bytes: [u8; COUNT]) {
        self.instructions += 1;
        self.begin(bytes);
    }

    fn modrm(&mut self, reg: u8, rm: Rm) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Register(register) => self.bytes.push(0xc0 | reg | register & 7),
            Rm::Memory(base, displacement) => {
                self.bytes.push(0x80 | reg | base.0 & 7);
                self.bytes.extend(displacement.to_le_bytes());
            }
            Rm::Element(base, scale, displacement) => {
                self.bytes.push(0x84 | reg);
                self.bytes.push((scale.trailing_zeros() as u8) << 6 | base.0 & 7);
                self.bytes.extend(displacement.to_le_bytes());
            }
        }
    }

    /// Adds an EVEX instruction. `length` is 0, 1 or 2 for 128, 256 or 512 bits; lanes outside the mask register
    /// `mask` are kept, or cleared with `zero`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn evex(&mut self, op: Op, length: u8, reg: u8, v: u8, rm: Rm, mask: u8, zero: bool) {
        self.evex_with(op, length, reg, v, rm, mask, zero, 0);
    }

    /// Adds an EVEX instruction on 512 bits of registers that rounds towards zero.
    pub(super) fn evex_towards_zero(&mut self, op: Op, reg: u8, from: u8) {
        self.evex_with(op, 3, reg, 0, Rm::Register(from), 0, false, 1);
    }

    #[allow(clippy::too_many_arguments)]
    fn evex_with(&mut self, op: Op, length: u8, reg: u8, v: u8, rm: Rm, mask: u8, zero: bool, rounding: u8) {
        let (x, b) = match rm {
            Rm::Register(register) => (inverted(register >> 4 & 1), inverted(register >> 3 & 1)),
            Rm::Memory(base, _) | Rm::Element(base, ..) => (1, inverted(base.0 >> 3 & 1)),
        };
        self.begin_vector([0x62]);
        self.bytes.push(inverted(reg >> 3 & 1) << 7 | x << 6 | b << 5 | inverted(reg >> 4 & 1) << 4 | op.map);
        self.bytes.push(op.w << 7 | (!v & 15) << 3 | 4 | op.prefix);
        self.bytes.push(u8::from(zero) << 7 | length << 5 | rounding << 4 | inverted(v >> 4 & 1) << 3 | mask);
        self.bytes.push(op.opcode);
        self.modrm(reg, rm);
    }

    /// Adds a VEX instruction. `length` is 0 or 1 for 128 or 256 bits.
    pub(super) fn vex(&mut self, op: Op, length: u8, reg: u8, v: u8, rm: Rm) {
        let base = match rm {
            Rm::Register(register) => register,
            Rm::Memory(base, _) | Rm::Element(base, ..) => base.0,
        };
        self.begin_vector([0xc4]);
        self.bytes.push(inverted(reg >> 3 & 1) << 7 | 0x40 | inverted(base >> 3 & 1) << 5 | op.map);
        let w = if has_vex_w(op) { op.w } else { 0 };
        self.bytes.push(w << 7 | (!v & 15) << 3 | length << 2 | op.prefix);
        self.bytes.push(op.opcode);
        self.modrm(reg, rm);
    }

    pub(super) fn immediate(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Adds a mask instruction on two registers; `bytes` selects the form of 8 lanes.
    pub(super) fn mask(&mut self, opcode: u8, bytes: bool, to: u8, a: u8, b: u8) {
        self.begin_vector([0xc5, 0x84 | (!a & 15) << 3 | u8::from(bytes), opcode, 0xc0 | to << 3 | b]);
    }

    /// Adds a mask instruction on one register: `knot` (0x44), or `kortest` (0x98) of the register with itself.
    pub(super) fn mask_unary(&mut self, opcode: u8, bytes: bool, to: u8, a: u8) {
        self.begin_vector([0xc5, 0xf8 | u8::from(bytes), opcode, 0xc0 | to << 3 | a]);
    }

    /// Loads (0x90) or stores (0x91) the 16 bits of a mask register in a spill slot.
    pub(super) fn mask_slot(&mut self, opcode: u8, mask: u8, displacement: i32) {
        self.begin_vector([0xc5, 0xf8, opcode, 0x80 | mask << 3 | SPILL.0]);
        self.bytes.extend(displacement.to_le_bytes());
    }

    /// `mov register, [table + 8 * operand]`
    pub(super) fn load_address(&mut self, register: General, operand: usize) {
        self.begin([0x48 | register.0 >> 3 << 2, 0x8b, 0x80 | (register.0 & 7) << 3 | TABLE.0]);
        self.bytes.extend((8 * operand as i32).to_le_bytes());
    }

    /// `lea ADDRESS, [base + 8 * index]`
    pub(super) fn advance_address(&mut self, base: General) {
        self.begin([0x48 | base.0 >> 3, 0x8d, 0x84 | ADDRESS.0 << 3, 0xc0 | base.0 & 7]);
        self.bytes.extend(0i32.to_le_bytes());
    }

    /// Saves the registers that the caller keeps, loads the operands' addresses, and clears index and flag.
    pub(super) fn prologue(&mut self, operands: usize) {
        // push rbx, rbp
        self.begin([0x53]);
        self.begin([0x55]);
        // push r12, r13, r14, r15
        (0x54..=0x57).for_each(|register| self.begin([0x41, register]));
        for operand in 0..operands.min(POINTERS as usize) {
            self.load_address(General(8 + operand as u8), operand);
        }
        // xor eax, eax; xor ebp, ebp
        self.begin([0x31, 0xc0]);
        self.begin([0x31, 0xed]);
    }

    /// Fills with `nop` up to the loop's head, which it returns.
    pub(super) fn loop_head(&mut self) -> usize {
        while !self.bytes.len().is_multiple_of(32) {
            self.begin([0x90]);
        }
        self.bytes.len()
    }

    /// Sets the flag unless the last test found zeros only.
    pub(super) fn set_flag(&mut self) {
        // jz over; or ebp, 1
        self.begin([0x74, 0x03]);
        self.begin([0x83, 0xcd, 0x01]);
    }

    /// Advances the index, loops while it is below the count, and returns the flag.
    pub(super) fn epilogue(&mut self, head: usize, elements: usize) {
        // add rax, elements; cmp rax, rsi; jb head
        self.begin([0x48, 0x05]);
        self.bytes.extend((elements as i32).to_le_bytes());
        self.begin([0x48, 0x39, 0xf0]);
        self.begin([0x0f, 0x82]);
        let back = head as i64 - (self.bytes.len() as i64 + 4);
        self.bytes.extend((back as i32).to_le_bytes());
        // mov eax, ebp; vzeroupper
        self.begin([0x89, 0xe8]);
        self.begin([0xc5, 0xf8, 0x77]);
        // pop r15, r14, r13, r12
        (0x5c..=0x5f).rev().for_each(|register| self.begin([0x41, register]));
        // pop rbp, rbx; ret
        for byte in [0x5d, 0x5b, 0xc3] {
            self.begin([byte]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(emit: impl Fn(&mut Code)) -> Vec<u8> {
        let mut code = Code::default();
        emit(&mut code);
        code.bytes
    }

    #[test]
    fn instructions_have_the_bytes_of_an_assembler() {
        let add = op(1, 0, 0, 0x58);
        let fma = op(2, 1, 1, 0xb8);
        let table: Vec<(&str, Vec<u8>, &[u8])> = vec![
            (
                "vaddps ymm3, ymm4, ymm5",
                bytes(|code| code.vex(add, 1, 3, 4, Rm::Register(5))),
                &[0xc4, 0xe1, 0x5c, 0x58, 0xdd],
            ),
            (
                "vaddps xmm11, xmm12, [rdx + 64]",
                bytes(|code| code.vex(add, 0, 11, 12, Rm::Memory(POOL, 64))),
                &[0xc4, 0x61, 0x18, 0x58, 0x9a, 0x40, 0, 0, 0],
            ),
            (
                "vmovq [rdx], xmm0",
                bytes(|code| code.vex(op(1, 1, 1, 0xd6), 0, 0, 0, Rm::Memory(POOL, 0))),
                &[0xc4, 0xe1, 0x79, 0xd6, 0x82, 0, 0, 0, 0],
            ),
            (
                "vmulpd ymm1, ymm2, ymm3",
                bytes(|code| code.vex(op(1, 1, 1, 0x59), 1, 1, 2, Rm::Register(3))),
                &[0xc4, 0xe1, 0x6d, 0x59, 0xcb],
            ),
            (
                "vbroadcastsd ymm1, [rdx]",
                bytes(|code| code.vex(op(2, 1, 1, 0x19), 1, 1, 0, Rm::Memory(POOL, 0))),
                &[0xc4, 0xe2, 0x7d, 0x19, 0x8a, 0, 0, 0, 0],
            ),
            (
                "vfmadd231pd ymm1, ymm2, ymm3",
                bytes(|code| code.vex(fma, 1, 1, 2, Rm::Register(3))),
                &[0xc4, 0xe2, 0xed, 0xb8, 0xcb],
            ),
            (
                "vpsrlvq ymm1, ymm2, ymm3",
                bytes(|code| code.vex(op(2, 1, 1, 0x45), 1, 1, 2, Rm::Register(3))),
                &[0xc4, 0xe2, 0xed, 0x45, 0xcb],
            ),
            (
                "vpermq ymm1, ymm2, 1",
                bytes(|code| {
                    code.vex(op(3, 1, 1, 0x00), 1, 1, 0, Rm::Register(2));
                    code.immediate(1);
                }),
                &[0xc4, 0xe3, 0xfd, 0x00, 0xca, 1],
            ),
            (
                "vaddps zmm20, zmm21, zmm22",
                bytes(|code| code.evex(add, 2, 20, 21, Rm::Register(22), 0, false)),
                &[0x62, 0xa1, 0x54, 0x40, 0x58, 0xe6],
            ),
            (
                "vaddps zmm3 {k2}{z}, zmm4, [r9 + rax * 4 + 128]",
                bytes(|code| code.evex(add, 2, 3, 4, Rm::Element(General(9), 4, 128), 2, true)),
                &[0x62, 0xd1, 0x5c, 0xca, 0x58, 0x9c, 0x81, 0x80, 0, 0, 0],
            ),
            (
                "vfmadd231pd zmm30, zmm1, [rcx]",
                bytes(|code| code.evex(fma, 2, 30, 1, Rm::Memory(SPILL, 0), 0, false)),
                &[0x62, 0x62, 0xf5, 0x48, 0xb8, 0xb1, 0, 0, 0, 0],
            ),
            (
                "vcvtpd2ps ymm1, zmm2, {rz-sae}",
                bytes(|code| code.evex_towards_zero(op(1, 1, 1, 0x5a), 1, 2)),
                &[0x62, 0xf1, 0xfd, 0x78, 0x5a, 0xca],
            ),
            ("kandw k3, k4, k5", bytes(|code| code.mask(0x41, false, 3, 4, 5)), &[0xc5, 0xdc, 0x41, 0xdd]),
            ("kandb k3, k4, k5", bytes(|code| code.mask(0x41, true, 3, 4, 5)), &[0xc5, 0xdd, 0x41, 0xdd]),
            ("knotb k3, k4", bytes(|code| code.mask_unary(0x44, true, 3, 4)), &[0xc5, 0xf9, 0x44, 0xdc]),
            (
                "mov r12, [rdi + 32]",
                bytes(|code| code.load_address(General(12), 4)),
                &[0x4c, 0x8b, 0xa7, 0x20, 0, 0, 0],
            ),
            (
                "lea rbx, [r12 + rax * 8]",
                bytes(|code| code.advance_address(General(12))),
                &[0x49, 0x8d, 0x9c, 0xc4, 0, 0, 0, 0],
            ),
        ];
        for (text, found, wanted) in table {
            assert_eq!(found, wanted, "{text}");
        }
    }
}
