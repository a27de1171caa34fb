//! Conversions between integers and floats, and rounding to narrow floats.
//!
//! The machine gives the least integer for a float that does not fit; the list saturates.

use super::encoder::{Rm, op};
use super::generate::Generator;
use super::select::Applied;
use super::{Instruction as I, Unsupported};

/// The last bit of a sum with this number has the value 1.
const UNITS: f64 = 6_755_399_441_055_744.0;

impl Generator<'_> {
    pub(super) fn apply_conversion(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let a = step.operands[0];
        let (length, w) = (step.length, u8::from(step.wide));
        match step.instruction {
            I::Float32ToSigned | I::Float64ToSigned => self.convert_to_signed(step),
            I::Float32ToUnsigned | I::Float64ToUnsigned | I::Float64ToUnsigned64 if !self.is_vex() => {
                // Negative numbers give 0, and great ones all bits.
                let a = self.register(a, 0);
                let zero = self.fixed64(0);
                self.op(op(1, w, w, 0x5f), length, 1, a, zero);
                let convert = match step.instruction {
                    I::Float32ToUnsigned => op(1, 0, 0, 0x78),
                    I::Float64ToUnsigned => op(1, 0, 1, 0x78),
                    _ => op(1, 1, 1, 0x78),
                };
                let to = self.result_of(step)?;
                self.op(convert, length, to, 0, Rm::Register(1));
                Ok(())
            }
            I::Float32ToUnsigned => self.single_to_unsigned(step),
            I::Float64ToUnsigned => self.double_to_unsigned(step),
            I::Float32ToSigned64 | I::Float32ToUnsigned64 => {
                let length = self.length_of(true);
                let a = self.operand(a);
                self.op(op(1, 0, 0, 0x5a), length, 0, 0, a);
                self.convert_to_wide(step, 0, step.instruction == I::Float32ToSigned64)
            }
            I::Float64ToSigned64 | I::Float64ToUnsigned64 => {
                let a = self.register(a, 0);
                self.convert_to_wide(step, a, step.instruction == I::Float64ToSigned64)
            }
            I::Float64TowardsZero | I::Signed64TowardsZero | I::Unsigned64TowardsZero if !self.is_vex() => {
                let a = self.register(a, 0);
                let convert = match step.instruction {
                    I::Float64TowardsZero => op(1, 1, 1, 0x5a),
                    I::Signed64TowardsZero => op(1, 0, 1, 0x5b),
                    _ => op(1, 3, 1, 0x7a),
                };
                let to = self.result_of(step)?;
                self.code.evex_towards_zero(convert, to, a);
                Ok(())
            }
            I::UnsignedToFloat32 => {
                // Both halves are exact, and their sum is rounded once.
                let low = self.fixed32(0xffff);
                let scale = self.fixed32(65536f32.to_bits());
                let a = self.register(a, 0);
                self.shift(2, 1, a, 16, length, false);
                self.op(op(1, 0, 0, 0x5b), length, 1, 0, Rm::Register(1));
                self.op(op(1, 1, 0, 0xdb), length, 2, a, low);
                self.op(op(1, 0, 0, 0x5b), length, 2, 0, Rm::Register(2));
                self.op(op(2, 1, 0, 0x98), length, 1, 2, scale);
                let to = self.result_of(step)?;
                self.load(length, to, Rm::Register(1));
                Ok(())
            }
            I::UnsignedToFloat64 => {
                // The bits of 2^52 and the number, less 2^52.
                let length = self.length_of(true);
                let base = self.fixed64(4_503_599_627_370_496f64.to_bits());
                let a = self.operand(a);
                self.op(op(2, 1, 0, 0x35), length, 0, 0, a);
                self.op(op(1, 1, 1, 0xeb), length, 0, 0, base);
                let to = self.result_of(step)?;
                self.op(op(1, 1, 1, 0x5c), length, to, 0, base);
                Ok(())
            }
            I::Signed64ToFloat64 => self.wide_to_double(step, 0x4530_0000_8000_0000, 0x4530_0000_8010_0000),
            I::Unsigned64ToFloat64 => self.wide_to_double(step, 0x4530_0000_0000_0000, 0x4530_0000_0010_0000),
            I::RoundToHalf => {
                let a = self.register(a, 0);
                // vcvtps2ph, vcvtph2ps
                self.op_immediate(op(3, 1, 0, 0x1d), length, a, 0, Rm::Register(2), 0);
                let to = self.result_of(step)?;
                self.op(op(2, 1, 0, 0x13), length, to, 0, Rm::Register(2));
                Ok(())
            }
            I::RoundToBrain => {
                let (half, high) = (self.fixed32(0x7fff), self.fixed32(0xffff_0000));
                let nan = self.fixed32(0x7fff_0000);
                let a = self.register(a, 0);
                self.shift(6, 2, a, 15, length, false);
                self.shift(2, 2, 2, 31, length, false);
                self.op(op(1, 1, 0, 0xfe), length, 2, 2, Rm::Register(a));
                self.op(op(1, 1, 0, 0xfe), length, 2, 2, half);
                self.op(op(1, 1, 0, 0xdb), length, 2, 2, high);
                self.op_immediate(op(1, 0, 0, 0xc2), length, 1, a, Rm::Register(a), 3);
                self.replace(step, 2, 1, nan)
            }
            I::ReciprocalWithin | I::SquareRootWithin => self.within(step),
            other => Err(Unsupported::Instruction(other)),
        }
    }

    /// Writes `value`, or `other` where the mask is set: mask register 1 of AVX-512, or vector register 1 of AVX2.
    fn replace(&mut self, step: &Applied, value: u8, mask: u8, other: Rm) -> Result<(), Unsupported> {
        let to = self.result_of(step)?;
        let length = self.length(step.instruction.result());
        let w = u8::from(length > self.length_of(false));
        match self.is_vex() {
            true => self.op_immediate(op(3, 1, 0, 0x4a + w), length, to, value, other, mask << 4),
            false => self.op_masked(op(2, 1, w, 0x64), length, to, value, other, mask),
        }
        Ok(())
    }

    fn convert_to_signed(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let (length, w) = (step.length, u8::from(step.wide));
        let convert = if step.wide { op(1, 1, 1, 0xe6) } else { op(1, 2, 0, 0x5b) };
        let a = self.register(step.operands[0], 0);
        if self.analysis.range(step.operands[0]).is_some_and(|(least, most)| least > -2e9 && most < 2e9) {
            let to = self.result_of(step)?;
            self.op(convert, length, to, 0, Rm::Register(a));
            return Ok(());
        }
        // Numbers from 2^31 on give the greatest integer.
        let limit = self.fixed(step.wide, 2_147_483_648f32.to_bits(), 2_147_483_648f64.to_bits());
        self.op_immediate(op(1, w, w, 0xc2), length, 1, a, limit, 0x1d);
        self.op(convert, length, 2, 0, Rm::Register(a));
        if self.is_vex() {
            if step.wide {
                self.op_immediate(op(3, 1, 0, 0x19), 1, 1, 0, Rm::Register(3), 1);
                self.op_immediate(op(1, 0, 0, 0xc6), 0, 1, 1, Rm::Register(3), 0x88);
            }
            // The least integer with all bits flipped.
            let to = self.result_of(step)?;
            self.op(op(1, 1, 0, 0xef), self.length_of(false), to, 2, Rm::Register(1));
            return Ok(());
        }
        let most = self.fixed32(i32::MAX as u32);
        self.replace(step, 2, 1, most)
    }

    /// AVX2: from 2^31 on, the rest is converted and the last bit added.
    fn single_to_unsigned(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let length = step.length;
        let zero = self.fixed32(0);
        let half = self.fixed32(2_147_483_648f32.to_bits());
        let end = self.fixed32(4_294_967_296f32.to_bits());
        let a = self.register(step.operands[0], 0);
        self.op(op(1, 0, 0, 0x5f), length, 0, a, zero);
        self.op_immediate(op(1, 0, 0, 0xc2), length, 1, 0, half, 0x1d);
        self.op(op(1, 1, 0, 0xdb), length, 2, 1, half);
        self.op(op(1, 0, 0, 0x5c), length, 2, 0, Rm::Register(2));
        self.op(op(1, 2, 0, 0x5b), length, 2, 0, Rm::Register(2));
        self.shift(6, 1, 1, 31, length, false);
        self.op(op(1, 1, 0, 0xef), length, 2, 2, Rm::Register(1));
        self.op_immediate(op(1, 0, 0, 0xc2), length, 1, 0, end, 0x1d);
        let to = self.result_of(step)?;
        self.op(op(1, 1, 0, 0xeb), length, to, 2, Rm::Register(1));
        Ok(())
    }

    /// AVX2: within the range, the last bits of a sum.
    fn double_to_unsigned(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let length = step.length;
        let (zero, most) = (self.fixed64(0), self.fixed64(4_294_967_295f64.to_bits()));
        let units = self.fixed64(UNITS.to_bits());
        let a = self.register(step.operands[0], 0);
        self.op(op(1, 1, 1, 0x5f), length, 0, a, zero);
        self.op(op(1, 1, 1, 0x5d), length, 0, 0, most);
        self.op_immediate(op(3, 1, 1, 9), length, 0, 0, Rm::Register(0), 11);
        self.op(op(1, 1, 1, 0x58), length, 0, 0, units);
        let to = self.result_of(step)?;
        self.narrow(to, 0);
        Ok(())
    }

    /// Converts 64-bit floats in register `from` to 64-bit integers.
    fn convert_to_wide(&mut self, step: &Applied, from: u8, is_signed: bool) -> Result<(), Unsupported> {
        let length = self.length_of(true);
        if !self.is_vex() {
            if is_signed {
                let limit = self.fixed64(9_223_372_036_854_775_808f64.to_bits());
                self.op_immediate(op(1, 1, 1, 0xc2), length, 1, from, limit, 0x1d);
                self.op(op(1, 1, 1, 0x7a), length, 2, 0, Rm::Register(from));
                let most = self.fixed64(i64::MAX as u64);
                return self.replace(step, 2, 1, most);
            }
            let zero = self.fixed64(0);
            self.op(op(1, 1, 1, 0x5f), length, 1, from, zero);
            let to = self.result_of(step)?;
            self.op(op(1, 1, 1, 0x78), length, to, 0, Rm::Register(1));
            return Ok(());
        }
        // Two words of the number within the range, as the interpreter does.
        let (least, end) = match is_signed {
            true => (-9_223_372_036_854_775_808f64, 9_223_372_036_854_775_808f64),
            false => (0.0, 18_446_744_073_709_551_616f64),
        };
        let most = f64::from_bits(end.to_bits() - 1);
        let (least, most) = (self.fixed64(least.to_bits()), self.fixed64(most.to_bits()));
        let limit = self.fixed64(end.to_bits());
        let saturated = self.fixed64(if is_signed { i64::MAX as u64 } else { u64::MAX });
        let (word, part) = (4_294_967_296f64, 1.0 / 4_294_967_296f64);
        let (word, part) = (self.fixed64(word.to_bits()), self.fixed64(part.to_bits()));
        let (units, low) = (self.fixed64(UNITS.to_bits()), self.fixed64(0xffff_ffff));
        self.op(op(1, 1, 1, 0x5f), length, 1, from, least);
        self.op(op(1, 1, 1, 0x5d), length, 1, 1, most);
        self.op_immediate(op(3, 1, 1, 9), length, 1, 0, Rm::Register(1), 11);
        self.op(op(1, 1, 1, 0x59), length, 2, 1, part);
        self.op_immediate(op(3, 1, 1, 9), length, 2, 0, Rm::Register(2), 9);
        self.op(op(1, 1, 1, 0x59), length, 3, 2, word);
        self.op(op(1, 1, 1, 0x5c), length, 3, 1, Rm::Register(3));
        self.op(op(1, 1, 1, 0x58), length, 3, 3, units);
        self.op(op(1, 1, 1, 0xdb), length, 3, 3, low);
        self.op(op(1, 1, 1, 0x58), length, 2, 2, units);
        self.shift(6, 2, 2, 32, length, true);
        self.op(op(1, 1, 1, 0xeb), length, 2, 2, Rm::Register(3));
        self.op_immediate(op(1, 1, 1, 0xc2), length, 1, from, limit, 0x1d);
        self.replace(step, 2, 1, saturated)
    }

    /// AVX2: the halves as floats with great exponents. `high` is the upper one's, and `base` what both add.
    fn wide_to_double(&mut self, step: &Applied, high: u64, base: u64) -> Result<(), Unsupported> {
        let length = step.length;
        let (high, base) = (self.fixed64(high), self.fixed64(base));
        let (low, exponent) = (self.fixed64(0xffff_ffff), self.fixed64(0x4330_0000_0000_0000));
        let a = self.register(step.operands[0], 0);
        self.shift(2, 1, a, 32, length, true);
        self.op(op(1, 1, 1, 0xef), length, 1, 1, high);
        self.op(op(1, 1, 1, 0x5c), length, 1, 1, base);
        self.op(op(1, 1, 1, 0xdb), length, 2, a, low);
        self.op(op(1, 1, 1, 0xeb), length, 2, 2, exponent);
        let to = self.result_of(step)?;
        self.op(op(1, 1, 1, 0x58), length, to, 1, Rm::Register(2));
        Ok(())
    }

    /// A reciprocal that is NaN for 0 and infinities, or a root that is NaN except for positive finite numbers.
    fn within(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let length = step.length;
        let a = self.register(step.operands[0], 0);
        let is_reciprocal = step.instruction == I::ReciprocalWithin;
        let to = if self.is_vex() { 2 } else { self.result_of(step)? };
        if is_reciprocal {
            let one = self.fixed32(1f32.to_bits());
            let one = self.in_register(step.instruction.result(), one, 1);
            self.op(op(1, 0, 0, 0x5e), length, to, one, Rm::Register(a));
        } else {
            self.op(op(1, 0, 0, 0x51), length, to, 0, Rm::Register(a));
        }
        if !self.is_vex() {
            // The other arguments have the results 0, infinity and NaN, and the table of `vfixupimmps` makes the two NaN.
            let table = self.fixed32(0x0033_0300);
            self.op_immediate(op(3, 1, 0, 0x54), length, to, to, table, 0);
            return Ok(());
        }
        let nan = self.fixed32(f32::NAN.to_bits());
        let (zero, infinity) = (self.fixed32(0), self.fixed32(f32::INFINITY.to_bits()));
        let compare = op(1, 0, 0, 0xc2);
        let tested = if is_reciprocal {
            let magnitude = self.fixed32(!(1 << 31));
            self.op(op(1, 1, 0, 0xdb), length, 3, 2, magnitude);
            3
        } else {
            a
        };
        // Not above 0, or not below infinity.
        self.op_immediate(compare, length, 1, tested, zero, 0x1a);
        self.op_immediate(compare, length, 3, tested, infinity, 0x15);
        self.op(op(1, 1, 0, 0xeb), length, 1, 1, Rm::Register(3));
        self.replace(step, 2, 1, nan)
    }
}
