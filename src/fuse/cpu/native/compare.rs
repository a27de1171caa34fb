//! Comparisons, selections and truth values.
//!
//! AVX-512 keeps truth values in mask registers, and AVX2 in lanes of 32 bits, all ones or zeros: a comparison of 64-bit
//! lanes is narrowed, and a selection between such lanes widens its condition.

use super::encoder::{Rm, op};
use super::generate::Generator;
use super::select::Applied;
use super::{Instruction as I, Unsupported};

const AND: u8 = 0x41;
const NOT: u8 = 0x44;
const OR: u8 = 0x45;
const XOR: u8 = 0x47;

impl Generator<'_> {
    pub(super) fn apply_comparison(&mut self, step: &Applied) -> Result<(), Unsupported> {
        match step.instruction {
            I::EqualFloat32 | I::EqualFloat64 => self.compare_floats(step, 0x00),
            I::LessFloat32 | I::LessFloat64 => self.compare_floats(step, 0x11),
            I::LessEqualFloat32 | I::LessEqualFloat64 => self.compare_floats(step, 0x12),
            I::UnorderedFloat32 | I::UnorderedFloat64 => self.compare_floats(step, 0x03),
            I::Equal32
            | I::Equal64
            | I::LessSigned32
            | I::LessSigned64
            | I::LessUnsigned32
            | I::LessUnsigned64 => match self.is_vex() {
                true => self.compare_integers_in_lanes(step),
                false => self.compare_integers(step),
            },
            I::Select32 | I::Select64 | I::SelectFloat32 | I::SelectFloat64 => self.select(step),
            I::AndPredicate | I::OrPredicate | I::XorPredicate | I::NotPredicate | I::SelectPredicate => {
                match self.is_vex() {
                    true => self.combine_lanes(step),
                    false => self.combine_masks(step),
                }
            }
            other => Err(Unsupported::Instruction(other)),
        }
    }

    fn compare_floats(&mut self, step: &Applied, predicate: u8) -> Result<(), Unsupported> {
        let (a, b) = (self.register(step.operands[0], 0), self.operand(step.operands[1]));
        let w = u8::from(step.wide);
        let compare = op(1, w, w, 0xc2);
        if self.is_vex() && step.wide {
            self.op_immediate(compare, step.length, 0, a, b, predicate);
            let to = self.result_of(step)?;
            self.narrow(to, 0);
        } else {
            let to = self.result_of(step)?;
            self.op_immediate(compare, step.length, to, a, b, predicate);
        }
        Ok(())
    }

    fn compare_integers(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let (a, b) = (self.register(step.operands[0], 0), self.operand(step.operands[1]));
        let (opcode, predicate) = match step.instruction {
            I::Equal32 | I::Equal64 => (0x1f, 0),
            I::LessSigned32 | I::LessSigned64 => (0x1f, 1),
            _ => (0x1e, 1),
        };
        let to = self.result_of(step)?;
        self.op_immediate(op(3, 1, u8::from(step.wide), opcode), step.length, to, a, b, predicate);
        Ok(())
    }

    fn compare_integers_in_lanes(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let [mut a, mut b, _] = step.operands;
        let is_equality = matches!(step.instruction, I::Equal32 | I::Equal64);
        if !is_equality {
            // The machine compares whether the first is greater.
            (a, b) = (b, a);
        }
        let (mut first, mut last) = (self.register(a, 0), self.operand(b));
        if matches!(step.instruction, I::LessUnsigned32 | I::LessUnsigned64) {
            // The order of signed numbers, with the sign bits flipped.
            let kind = self.kind(a);
            let sign = self.fixed(step.wide, 1 << 31, 1 << 63);
            let sign = self.in_register(kind, sign, 2);
            self.op(op(1, 1, 0, 0xef), step.length, 1, sign, last);
            self.op(op(1, 1, 0, 0xef), step.length, 0, sign, Rm::Register(first));
            (first, last) = (0, Rm::Register(1));
        }
        let compare = match (step.wide, is_equality) {
            (false, true) => op(1, 1, 0, 0x76),
            (false, false) => op(1, 1, 0, 0x66),
            (true, true) => op(2, 1, 0, 0x29),
            (true, false) => op(2, 1, 0, 0x37),
        };
        if step.wide {
            self.op(compare, step.length, 0, first, last);
            let to = self.result_of(step)?;
            self.narrow(to, 0);
        } else {
            let to = self.result_of(step)?;
            self.op(compare, step.length, to, first, last);
        }
        Ok(())
    }

    /// Writes the low halves of four 64-bit lanes to four lanes, with scratch register 1.
    pub(super) fn narrow(&mut self, to: u8, from: u8) {
        // vextractf128, vshufps
        self.op_immediate(op(3, 1, 0, 0x19), 1, from, 0, Rm::Register(1), 1);
        self.op_immediate(op(1, 0, 0, 0xc6), 0, to, from, Rm::Register(1), 0x88);
    }

    fn select(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let [a, b, condition] = step.operands;
        let w = u8::from(step.wide);
        if let Some(opcode) = self.analysis.machine_extreme(step.index) {
            let (a, b) = (self.register(a, 0), self.operand(b));
            let to = self.result(step.position, step.index, &step.operands[..2], None)?;
            self.op(op(1, w, w, opcode), step.length, to, a, b);
            return Ok(());
        }
        if !self.is_vex() {
            // A condition that is equal for all elements passes through register 0, so it comes before the operand there.
            let mask = self.mask(condition, 1);
            let (b, a) = (self.register(b, 0), self.operand(a));
            let to = self.result_of(step)?;
            // vpblendmd, vpblendmq
            self.op_masked(op(2, 1, w, 0x64), step.length, to, b, a, mask);
            return Ok(());
        }
        let (b, a) = (self.register(b, 0), self.operand(a));
        let condition = match step.wide {
            true => {
                let condition = self.operand(condition);
                self.op(op(2, 1, 0, 0x25), step.length, 2, 0, condition);
                2
            }
            false => self.register(condition, 2),
        };
        let to = self.result_of(step)?;
        self.op_immediate(op(3, 1, 0, 0x4a + w), step.length, to, b, a, condition << 4);
        Ok(())
    }

    fn combine_lanes(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let [a, b, condition] = step.operands;
        let length = step.length;
        let opcode = match step.instruction {
            I::NotPredicate => {
                let ones = self.fixed32(u32::MAX);
                let a = self.register(a, 0);
                let to = self.result_of(step)?;
                self.op(op(1, 1, 0, 0xef), length, to, a, ones);
                return Ok(());
            }
            I::SelectPredicate => {
                let (b, a) = (self.register(b, 0), self.operand(a));
                let condition = self.register(condition, 2);
                let to = self.result_of(step)?;
                self.op_immediate(op(3, 1, 0, 0x4a), length, to, b, a, condition << 4);
                return Ok(());
            }
            I::AndPredicate => 0xdb,
            I::OrPredicate => 0xeb,
            _ => 0xef,
        };
        let (a, b) = (self.register(a, 0), self.operand(b));
        let to = self.result_of(step)?;
        self.op(op(1, 1, 0, opcode), length, to, a, b);
        Ok(())
    }

    fn combine_masks(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let [a, b, condition] = step.operands;
        // The form of 8 lanes clears the bits above them, which `knot` of 16 would set.
        let bytes = self.lanes == 8;
        match step.instruction {
            I::NotPredicate => {
                let a = self.mask(a, 1);
                let to = self.result_of(step)?;
                self.code.mask_unary(NOT, bytes, to, a);
            }
            I::SelectPredicate => {
                // b ^ (p & (a ^ b)) needs two registers of scratch.
                let (first, second) = (self.mask(a, 1), self.mask(b, 2));
                self.code.mask(XOR, bytes, 1, first, second);
                let condition = self.mask(condition, 2);
                self.code.mask(AND, bytes, 1, 1, condition);
                let second = self.mask(b, 2);
                let to = self.result_of(step)?;
                self.code.mask(XOR, bytes, to, 1, second);
            }
            _ => {
                let (a, b) = (self.mask(a, 1), self.mask(b, 2));
                let opcode = match step.instruction {
                    I::AndPredicate => AND,
                    I::OrPredicate => OR,
                    _ => XOR,
                };
                let to = self.result_of(step)?;
                self.code.mask(opcode, bytes, to, a, b);
            }
        }
        Ok(())
    }
}
