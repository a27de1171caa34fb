//! The instructions of the list that are one vector instruction on both targets, or a few.

use super::analysis::is_wide;
use super::encoder::{Op, Rm, op};
use super::generate::Generator;
use super::{Instruction as I, Unsupported};
use crate::fuse::ir::instruction::Instruction;

/// A machine instruction for one of the list.
#[derive(Debug, Clone, Copy)]
struct Direct {
    op: Op,
    /// The operands may be swapped.
    commutes: bool,
    immediate: Option<u8>,
    /// AVX2 has no such instruction.
    needs_avx512: bool,
}

const fn direct(op: Op) -> Direct {
    Direct { op, commutes: false, immediate: None, needs_avx512: false }
}

const fn commuting(op: Op) -> Direct {
    Direct { commutes: true, ..direct(op) }
}

const fn avx512(op: Op) -> Direct {
    Direct { needs_avx512: true, ..direct(op) }
}

const fn rounding(op: Op, immediate: u8) -> Direct {
    Direct { immediate: Some(immediate), ..direct(op) }
}

/// Returns the machine instruction of the same operands.
fn direct_of(instruction: Instruction) -> Option<Direct> {
    let (single, double) = (|opcode| op(1, 0, 0, opcode), |opcode| op(1, 1, 1, opcode));
    let (integer, wide) = (|opcode| op(1, 1, 0, opcode), |opcode| op(1, 1, 1, opcode));
    let second = |w, opcode| op(2, 1, w, opcode);
    Some(match instruction {
        I::AddFloat32 => commuting(single(0x58)),
        I::AddFloat64 => commuting(double(0x58)),
        I::SubtractFloat32 => direct(single(0x5c)),
        I::SubtractFloat64 => direct(double(0x5c)),
        I::MultiplyFloat32 => commuting(single(0x59)),
        I::MultiplyFloat64 => commuting(double(0x59)),
        I::DivideFloat32 => direct(single(0x5e)),
        I::DivideFloat64 => direct(double(0x5e)),
        I::SquareRootFloat32 => direct(single(0x51)),
        I::SquareRootFloat64 => direct(double(0x51)),
        I::RoundFloat32 => rounding(op(3, 1, 0, 8), 8),
        I::FloorFloat32 => rounding(op(3, 1, 0, 8), 9),
        I::CeilFloat32 => rounding(op(3, 1, 0, 8), 10),
        I::TruncateFloat32 => rounding(op(3, 1, 0, 8), 11),
        I::RoundFloat64 => rounding(op(3, 1, 1, 9), 8),
        I::FloorFloat64 => rounding(op(3, 1, 1, 9), 9),
        I::CeilFloat64 => rounding(op(3, 1, 1, 9), 10),
        I::TruncateFloat64 => rounding(op(3, 1, 1, 9), 11),
        I::Add32 => commuting(integer(0xfe)),
        I::Add64 => commuting(wide(0xd4)),
        I::Subtract32 => direct(integer(0xfa)),
        I::Subtract64 => direct(wide(0xfb)),
        I::Multiply32 => commuting(second(0, 0x40)),
        I::Multiply64 => Direct { commutes: true, ..avx512(second(1, 0x40)) },
        I::And32 => commuting(integer(0xdb)),
        I::And64 => commuting(wide(0xdb)),
        I::Or32 => commuting(integer(0xeb)),
        I::Or64 => commuting(wide(0xeb)),
        I::Xor32 => commuting(integer(0xef)),
        I::Xor64 => commuting(wide(0xef)),
        I::MinimumSigned32 => commuting(second(0, 0x39)),
        I::MinimumUnsigned32 => commuting(second(0, 0x3b)),
        I::MaximumSigned32 => commuting(second(0, 0x3d)),
        I::MaximumUnsigned32 => commuting(second(0, 0x3f)),
        I::MinimumSigned64 => avx512(second(1, 0x39)),
        I::MinimumUnsigned64 => avx512(second(1, 0x3b)),
        I::MaximumSigned64 => avx512(second(1, 0x3d)),
        I::MaximumUnsigned64 => avx512(second(1, 0x3f)),
        I::SignExtend32 => direct(second(0, 0x25)),
        I::ZeroExtend32 => direct(second(0, 0x35)),
        I::Widen => direct(op(1, 0, 0, 0x5a)),
        I::Narrow => direct(op(1, 1, 1, 0x5a)),
        I::SignedToFloat32 => direct(op(1, 0, 0, 0x5b)),
        I::UnsignedToFloat32 => avx512(op(1, 3, 0, 0x7a)),
        I::SignedToFloat64 => direct(op(1, 2, 0, 0xe6)),
        I::UnsignedToFloat64 => avx512(op(1, 2, 0, 0x7a)),
        I::Signed64ToFloat64 => avx512(op(1, 2, 1, 0xe6)),
        I::Unsigned64ToFloat64 => avx512(op(1, 2, 1, 0x7a)),
        I::Signed64ToFloat32 => avx512(op(1, 0, 1, 0x5b)),
        I::Unsigned64ToFloat32 => avx512(op(1, 3, 1, 0x7a)),
        _ => return None,
    })
}

/// The length of a conversion is that of its wider side.
fn converts_up(instruction: Instruction) -> bool {
    matches!(
        instruction,
        I::SignExtend32 | I::ZeroExtend32 | I::Widen | I::SignedToFloat64 | I::UnsignedToFloat64
    )
}

/// A step under way: its position, its index and the values that it reads.
#[derive(Clone, Copy)]
pub(super) struct Applied {
    pub(super) position: u32,
    pub(super) index: usize,
    pub(super) instruction: Instruction,
    pub(super) operands: [usize; 3],
    /// The lanes of the first operand have 64 bits.
    pub(super) wide: bool,
    /// The vector length of the first operand.
    pub(super) length: u8,
}

impl Applied {
    pub(super) fn values(&self) -> &[usize] {
        &self.operands[..self.instruction.arity()]
    }
}

impl Generator<'_> {
    pub(super) fn apply(
        &mut self,
        position: u32,
        index: usize,
        instruction: Instruction,
        operands: [usize; 3],
    ) -> Result<(), Unsupported> {
        let kind = self.kind(operands[0]);
        let wide = is_wide(kind);
        let length = self.length(kind);
        let step = Applied { position, index, instruction, operands, wide, length };
        if let Some(direct) = direct_of(instruction)
            && !(direct.needs_avx512 && self.is_vex())
        {
            return self.apply_direct(&step, direct);
        }
        match self.apply_general(&step) {
            Err(Unsupported::Instruction(_)) => {}
            done => return done,
        }
        match self.apply_comparison(&step) {
            Err(Unsupported::Instruction(_)) => {}
            done => return done,
        }
        match self.apply_conversion(&step) {
            Err(Unsupported::Instruction(_)) => self.apply_integer(&step),
            done => done,
        }
    }

    /// Frees the operands' registers and returns the result's.
    pub(super) fn result_of(&mut self, step: &Applied) -> Result<u8, Unsupported> {
        self.result(step.position, step.index, step.values(), None)
    }

    fn apply_direct(&mut self, step: &Applied, direct: Direct) -> Result<(), Unsupported> {
        let [mut a, mut b, _] = step.operands;
        let length = match converts_up(step.instruction) {
            true => self.length(step.instruction.result()),
            false => step.length,
        };
        let (first, last) = if step.instruction.arity() == 1 {
            (0, self.operand(a))
        } else {
            if direct.commutes && !self.is_in_register(a) {
                (a, b) = (b, a);
            }
            (self.register(a, 0), self.operand(b))
        };
        let to = self.result_of(step)?;
        self.op(direct.op, length, to, first, last);
        if let Some(immediate) = direct.immediate {
            self.code.immediate(immediate);
        }
        Ok(())
    }

    fn apply_general(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let [a, b, _] = step.operands;
        let (length, w) = (step.length, u8::from(step.wide));
        match step.instruction {
            I::NegateFloat32 | I::NegateFloat64 | I::Not32 | I::Not64 => {
                let bits = match step.instruction {
                    I::Not32 | I::Not64 => (u32::MAX, u64::MAX),
                    _ => (1 << 31, 1 << 63),
                };
                let mask = self.fixed(step.wide, bits.0, bits.1);
                let a = self.register(a, 0);
                let to = self.result_of(step)?;
                self.op(op(1, 1, w, 0xef), length, to, a, mask);
            }
            I::AbsoluteFloat32 | I::AbsoluteFloat64 => {
                let mask = self.fixed(step.wide, !(1 << 31), !(1 << 63));
                let a = self.register(a, 0);
                let to = self.result_of(step)?;
                self.op(op(1, 1, w, 0xdb), length, to, a, mask);
            }
            I::ReciprocalFloat32 | I::ReciprocalFloat64 => {
                let kind = self.kind(a);
                let one = self.fixed(step.wide, 1f32.to_bits(), 1f64.to_bits());
                let one = self.in_register(kind, one, 0);
                let a = self.operand(a);
                let to = self.result_of(step)?;
                self.op(op(1, w, w, 0x5e), length, to, one, a);
            }
            I::ReciprocalRootOfNarrow => {
                // Two rounded steps are within the approximation's bound.
                let one = self.fixed32(1f32.to_bits());
                let kind = self.kind(a);
                let one = self.in_register(kind, one, 0);
                let a = self.operand(a);
                self.op(op(1, 0, 0, 0x51), length, 1, 0, a);
                let to = self.result_of(step)?;
                self.op(op(1, 0, 0, 0x5e), length, to, one, Rm::Register(1));
            }
            I::MultiplyAddFloat32 | I::MultiplyAddFloat64 => self.multiply_add(step)?,
            I::MinimumFloat32 | I::MinimumFloat64 => self.extreme(step, 0x5d)?,
            I::MaximumFloat32 | I::MaximumFloat64 => self.extreme(step, 0x5f)?,
            I::ShiftLeft32 | I::ShiftLeft64 => self.shift_by(step, 6, 0x47)?,
            I::ShiftRightUnsigned32 | I::ShiftRightUnsigned64 => self.shift_by(step, 2, 0x45)?,
            I::ShiftRightSigned32 => self.shift_by(step, 4, 0x46)?,
            I::ShiftRightSigned64 if !self.is_vex() => self.shift_by(step, 4, 0x46)?,
            I::ShiftRightSigned64 => {
                // (x ^ m) >> n, less m >> n, where m is the sign bit.
                let sign = self.fixed64(1 << 63);
                let sign = self.in_register(self.kind(a), sign, 0);
                let a = self.operand(a);
                self.op(op(1, 1, 1, 0xef), length, 2, sign, a);
                let count = self.register(b, 1);
                let most = self.fixed32(63);
                self.op(op(2, 1, 0, 0x3b), length - 1, 1, count, most);
                self.op(op(2, 1, 0, 0x35), length, 1, 0, Rm::Register(1));
                self.op(op(2, 1, 1, 0x45), length, 2, 2, Rm::Register(1));
                self.op(op(2, 1, 1, 0x45), length, 3, sign, Rm::Register(1));
                let to = self.result_of(step)?;
                self.op(op(1, 1, 1, 0xfb), length, to, 2, Rm::Register(3));
            }
            other => return Err(Unsupported::Instruction(other)),
        }
        Ok(())
    }

    /// Shifts by an immediate count: 2 right, 4 right with the sign, 6 left.
    pub(super) fn shift(&mut self, kind: u8, to: u8, from: u8, count: u8, length: u8, wide: bool) {
        let op = match (wide, kind) {
            (false, _) => op(1, 1, 0, 0x72),
            (true, 4) => op(1, 1, 1, 0x72),
            (true, _) => op(1, 1, 1, 0x73),
        };
        self.op_immediate(op, length, kind, to, Rm::Register(from), count);
    }

    fn shift_by(&mut self, step: &Applied, kind: u8, opcode: u8) -> Result<(), Unsupported> {
        let [a, b, _] = step.operands;
        let from = self.register(a, 0);
        if let Some(count) = self.analysis.constant(b) {
            let to = self.result_of(step)?;
            // The machine takes a count past the width as the list does.
            self.shift(kind, to, from, (count as u32).min(64) as u8, step.length, step.wide);
            return Ok(());
        }
        let mut count = self.operand(b);
        if step.wide {
            // The count has 32 bits.
            self.op(op(2, 1, 0, 0x35), step.length, 1, 0, count);
            count = Rm::Register(1);
        }
        let to = self.result_of(step)?;
        self.op(op(2, 1, u8::from(step.wide), opcode), step.length, to, from, count);
        Ok(())
    }

    /// Chooses the form by the operand whose register the result takes.
    fn multiply_add(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let [mut a, mut b, mut c] = step.operands;
        let (w, length) = (u8::from(step.wide), step.length);
        let mut negated = 0;
        for (operand, bit) in [(&mut a, 4), (&mut b, 4), (&mut c, 2)] {
            if let Some(number) = self.analysis.negated(*operand) {
                *operand = number;
                negated ^= bit;
            }
        }
        let values = [a, b, c];
        if !self.dies(a, step.position) && self.dies(b, step.position) {
            (a, b) = (b, a);
        }
        let opcode = |opcode: u8| op(2, 1, w, opcode + negated);
        if self.dies(c, step.position) {
            if !self.is_in_register(a) {
                (a, b) = (b, a);
            }
            let sum = self.register(c, 2);
            let (a, b) = (self.register(a, 0), self.operand(b));
            let to = self.result(step.position, step.index, &values, Some(sum))?;
            self.load(length, to, Rm::Register(sum));
            self.op(opcode(0xb8), length, to, a, b);
        } else if self.dies(a, step.position) {
            let factor = self.register(a, 2);
            let is_first_in_register = self.is_in_register(b);
            let (v, last, form) = match is_first_in_register {
                true => (self.register(b, 0), self.operand(c), 0xa8),
                false => (self.register(c, 0), self.operand(b), 0x98),
            };
            let to = self.result(step.position, step.index, &values, Some(factor))?;
            self.load(length, to, Rm::Register(factor));
            self.op(opcode(form), length, to, v, last);
        } else {
            if !self.is_in_register(a) {
                (a, b) = (b, a);
            }
            let (a, b) = (self.register(a, 0), self.operand(b));
            let sum = self.operand(c);
            // No operand is freed, so the result's register is none of theirs.
            let to = self.result(step.position, step.index, &values, None)?;
            self.load(length, to, sum);
            self.op(opcode(0xb8), length, to, a, b);
        }
        Ok(())
    }

    /// The number beside a NaN; of two zeros the negative one is the lesser. The machine's instruction gives its second
    /// operand in both cases.
    fn extreme(&mut self, step: &Applied, opcode: u8) -> Result<(), Unsupported> {
        let [mut a, mut b, _] = step.operands;
        let (w, length) = (u8::from(step.wide), step.length);
        // Of equal operands: OR for a minimum, AND for a maximum.
        let combine = op(1, 1, w, if opcode == 0x5d { 0xeb } else { 0xdb });
        let number =
            |generator: &Self, value: usize| generator.analysis.constant_float(value).filter(|x| !x.is_nan());
        if number(self, a).is_some() {
            (a, b) = (b, a);
        }
        let constant = number(self, b);
        if constant.is_some_and(|constant| constant != 0.0) {
            let (a, b) = (self.register(a, 0), self.operand(b));
            let to = self.result_of(step)?;
            self.op(op(1, w, w, opcode), length, to, a, b);
            return Ok(());
        }
        let (a, b) = (self.register(a, 0), self.register(b, 1));
        let extreme = op(1, w, w, opcode);
        let compare = op(1, w, w, 0xc2);
        if self.is_vex() {
            // The two orders differ for two zeros and for NaN alone.
            self.op(extreme, length, 2, a, Rm::Register(b));
            self.op(extreme, length, 3, b, Rm::Register(a));
            self.op(combine, length, 2, 2, Rm::Register(3));
            let blend = op(3, 1, 0, 0x4a + w);
            self.op_immediate(compare, length, 3, a, Rm::Register(a), 3);
            self.op_immediate(blend, length, 2, 2, Rm::Register(b), 3 << 4);
            self.op_immediate(compare, length, 3, b, Rm::Register(b), 3);
            let to = self.result_of(step)?;
            self.op_immediate(blend, length, to, 2, Rm::Register(a), 3 << 4);
            return Ok(());
        }
        self.op(extreme, length, 2, a, Rm::Register(b));
        self.op_immediate(compare, length, 1, a, Rm::Register(b), 0);
        self.op_masked(combine, length, 2, a, Rm::Register(b), 1);
        if constant.is_none() {
            self.op_immediate(compare, length, 1, b, Rm::Register(b), 3);
            self.op_masked(op(1, w, w, 0x28), length, 2, 0, Rm::Register(a), 1);
        }
        let to = self.result_of(step)?;
        self.load(length, to, Rm::Register(2));
        Ok(())
    }
}
