//! Integer instructions that take several of the machine's.

use super::encoder::{Rm, op};
use super::generate::Generator;
use super::select::Applied;
use super::{Instruction as I, Unsupported};

/// The last bit of a sum with this number has the value 1.
const UNITS: f64 = 6_755_399_441_055_744.0;

impl Generator<'_> {
    pub(super) fn apply_integer(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let [a, b, _] = step.operands;
        let length = step.length;
        match step.instruction {
            I::SignExtend8 | I::SignExtend16 => {
                let count = if step.instruction == I::SignExtend8 { 24 } else { 16 };
                let a = self.register(a, 0);
                self.shift(6, 0, a, count, length, false);
                let to = self.result_of(step)?;
                self.shift(4, to, 0, count, length, false);
                Ok(())
            }
            I::Truncate64 => {
                let a = self.register(a, 0);
                let to = self.result_of(step)?;
                match self.is_vex() {
                    true => self.narrow(to, a),
                    // vpmovqd
                    false => self.op(op(2, 2, 0, 0x35), length, a, 0, Rm::Register(to)),
                }
                Ok(())
            }
            I::MultiplyHigh32 => {
                // Products of even and of odd lanes, and their upper halves together.
                let (a, b) = if self.analysis.uniform[a] { (b, a) } else { (a, b) };
                // A factor that is equal for all elements is the same in odd lanes.
                let is_same = self.analysis.uniform[b];
                let a = self.register(a, 0);
                let b = if is_same { self.operand(b) } else { Rm::Register(self.register(b, 1)) };
                self.op(op(1, 1, 1, 0xf4), length, 2, a, b);
                self.shift(2, 3, a, 32, length, true);
                let b = match b {
                    Rm::Register(register) if !is_same => {
                        self.shift(2, 1, register, 32, length, true);
                        Rm::Register(1)
                    }
                    same => same,
                };
                self.op(op(1, 1, 1, 0xf4), length, 3, 3, b);
                let to = self.result_of(step)?;
                if self.is_vex() {
                    self.shift(2, 2, 2, 32, length, true);
                    // vpblendd
                    self.op_immediate(op(3, 1, 0, 0x02), length, to, 2, Rm::Register(3), 0xaa);
                } else {
                    self.shift(2, to, 2, 32, length, true);
                    let odd = self.words(|at| if at % 2 == 0 { 0 } else { u32::MAX });
                    // vpternlogd: the second one where the third one has ones, otherwise the first one.
                    self.op_immediate(op(3, 1, 0, 0x25), length, to, 3, odd, 0xd8);
                }
                Ok(())
            }
            I::Multiply64 => {
                let (a, b) = (self.register(a, 0), self.register(b, 1));
                self.shift(2, 2, a, 32, length, true);
                self.op(op(1, 1, 1, 0xf4), length, 2, 2, Rm::Register(b));
                self.shift(2, 3, b, 32, length, true);
                self.op(op(1, 1, 1, 0xf4), length, 3, 3, Rm::Register(a));
                self.op(op(1, 1, 1, 0xd4), length, 2, 2, Rm::Register(3));
                self.shift(6, 2, 2, 32, length, true);
                self.op(op(1, 1, 1, 0xf4), length, 3, a, Rm::Register(b));
                let to = self.result_of(step)?;
                self.op(op(1, 1, 1, 0xd4), length, to, 2, Rm::Register(3));
                Ok(())
            }
            I::MultiplyHigh64 => self.multiply_high(step),
            I::MinimumSigned64 | I::MinimumUnsigned64 | I::MaximumSigned64 | I::MaximumUnsigned64 => {
                let (a, b) = (self.register(a, 0), self.register(b, 1));
                let (mut first, mut second) = (a, b);
                if matches!(step.instruction, I::MinimumUnsigned64 | I::MaximumUnsigned64) {
                    let sign = self.fixed64(1 << 63);
                    self.op(op(1, 1, 1, 0xef), length, 2, a, sign);
                    self.op(op(1, 1, 1, 0xef), length, 3, b, sign);
                    (first, second) = (2, 3);
                }
                self.op(op(2, 1, 1, 0x37), length, 2, first, Rm::Register(second));
                let takes_greater = matches!(step.instruction, I::MaximumSigned64 | I::MaximumUnsigned64);
                // A lane with the mask takes the last operand.
                let (otherwise, greater) = if takes_greater { (b, a) } else { (a, b) };
                let to = self.result_of(step)?;
                self.op_immediate(op(3, 1, 0, 0x4b), length, to, otherwise, Rm::Register(greater), 2 << 4);
                Ok(())
            }
            I::DivideSigned32 | I::DivideUnsigned32 if !self.is_vex() => self.divide(step),
            I::DivideSigned64 | I::DivideUnsigned64 if !self.is_vex() => self.divide_wide(step),
            other => Err(Unsupported::Instruction(other)),
        }
    }

    /// Four products of 32 bits, with the carries of the middle ones.
    fn multiply_high(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let length = step.length;
        let (a, b) = (self.register(step.operands[0], 0), self.register(step.operands[1], 1));
        let (multiply, add) = (op(1, 1, 1, 0xf4), op(1, 1, 1, 0xd4));
        let low_half = self.fixed64(0xffff_ffff);
        let (high_a, middle) = (self.temporary()?, self.temporary()?);
        self.shift(2, high_a, a, 32, length, true);
        self.shift(2, 2, b, 32, length, true);
        self.op(multiply, length, middle, high_a, Rm::Register(b));
        self.op(multiply, length, high_a, high_a, Rm::Register(2));
        self.op(multiply, length, 2, a, Rm::Register(2));
        self.op(multiply, length, 3, a, Rm::Register(b));
        self.shift(2, 3, 3, 32, length, true);
        self.op(add, length, middle, middle, Rm::Register(3));
        self.op(op(1, 1, 1, 0xdb), length, 3, middle, low_half);
        self.op(add, length, 2, 2, Rm::Register(3));
        self.shift(2, middle, middle, 32, length, true);
        self.shift(2, 2, 2, 32, length, true);
        self.op(add, length, 2, 2, Rm::Register(middle));
        self.op(add, length, 2, 2, Rm::Register(high_a));
        self.registers.give_back(high_a);
        self.registers.give_back(middle);
        let to = self.result_of(step)?;
        self.load(length, to, Rm::Register(2));
        Ok(())
    }

    /// Quotients of f64, which has more than twice the bits, half of the lanes at a time.
    fn divide(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let (a, b) = (self.register(step.operands[0], 0), self.register(step.operands[1], 1));
        let convert =
            if step.instruction == I::DivideSigned32 { op(1, 2, 0, 0xe6) } else { op(1, 2, 0, 0x7a) };
        let units = self.fixed64(UNITS.to_bits());
        let halves = self.lanes / 8;
        let quotient = self.temporary()?;
        // The upper half first, into register 3.
        for half in (0..halves).rev() {
            let to = if half == 1 { 3 } else { 2 };
            let (mut x, mut y) = (a, b);
            if half == 1 {
                // vextracti64x4
                self.op_immediate(op(3, 1, 1, 0x3b), 2, a, 0, Rm::Register(2), 1);
                self.op_immediate(op(3, 1, 1, 0x3b), 2, b, 0, Rm::Register(3), 1);
                (x, y) = (2, 3);
            }
            self.op(convert, 2, quotient, 0, Rm::Register(x));
            self.op(convert, 2, 2, 0, Rm::Register(y));
            self.op(op(1, 1, 1, 0x5e), 2, quotient, quotient, Rm::Register(2));
            self.op_immediate(op(3, 1, 1, 9), 2, quotient, 0, Rm::Register(quotient), 11);
            self.op(op(1, 1, 1, 0x58), 2, quotient, quotient, units);
            self.op(op(2, 2, 0, 0x35), 2, quotient, 0, Rm::Register(to));
        }
        self.registers.give_back(quotient);
        let to = self.result_of(step)?;
        match halves {
            // vinserti64x4
            2 => self.op_immediate(op(3, 1, 1, 0x3a), 2, to, 2, Rm::Register(3), 1),
            _ => self.load(step.length, to, Rm::Register(2)),
        }
        Ok(())
    }

    /// Quotients of 64 bits from two quotients of f64.
    ///
    /// The first quotient is q = n/d within 1 + |n/d| / 2^51, modulo 2^64 where the conversion overflows, so its remainder
    /// is at most |d| + 2^13 (it has 64 bits, unless an unsigned divisor has all of them). The second one is the
    /// remainder's, rounded to nearest, which leaves at most (1/2 + 2^-38) |d|. The sum of both is therefore the truncated
    /// quotient, or one more in magnitude: the remainder's sign says which.
    ///
    /// Programs never divide by 0, nor the minimum by -1.
    fn divide_wide(&mut self, step: &Applied) -> Result<(), Unsupported> {
        let length = step.length;
        let is_signed = step.instruction == I::DivideSigned64;
        let (a, b) = (self.register(step.operands[0], 0), self.register(step.operands[1], 1));
        let (add, subtract, xor) = (op(1, 1, 1, 0xd4), op(1, 1, 1, 0xfb), op(1, 1, 1, 0xef));
        let (multiply, divide) = (op(2, 1, 1, 0x40), op(1, 1, 1, 0x5e));
        // vcvtqq2pd, vcvttpd2qq or their unsigned forms
        let signed_to_float = op(1, 2, 1, 0xe6);
        let to_float = if is_signed { signed_to_float } else { op(1, 2, 1, 0x7a) };
        let truncate = op(1, 1, 1, if is_signed { 0x7a } else { 0x78 });
        let (to_nearest, signs) = (op(1, 1, 1, 0x7b), op(2, 2, 1, 0x39));
        let one = self.fixed64(1);
        let (divisor, quotient) = (self.temporary()?, self.temporary()?);
        self.op(to_float, length, divisor, 0, Rm::Register(b));
        self.op(to_float, length, 2, 0, Rm::Register(a));
        self.op(divide, length, 2, 2, Rm::Register(divisor));
        self.op(truncate, length, quotient, 0, Rm::Register(2));
        self.op(multiply, length, 3, quotient, Rm::Register(b));
        self.op(subtract, length, 2, a, Rm::Register(3));
        self.op(signed_to_float, length, 3, 0, Rm::Register(2));
        self.op(divide, length, 3, 3, Rm::Register(divisor));
        self.op(to_nearest, length, 3, 0, Rm::Register(3));
        self.op(add, length, quotient, quotient, Rm::Register(3));
        self.op(multiply, length, 3, 3, Rm::Register(b));
        self.op(subtract, length, 2, 2, Rm::Register(3));
        if is_signed {
            // A remainder other than 0 has the dividend's sign; the magnitude is corrected by the quotient's sign.
            self.op(xor, length, 3, a, Rm::Register(2));
            self.op(signs, length, 1, 0, Rm::Register(3));
            self.op_masked(op(2, 1, 1, 0x27), length, 1, 2, Rm::Register(2), 1);
            self.op(xor, length, 3, a, Rm::Register(b));
            self.shift(4, 3, 3, 63, length, true);
            self.op(op(1, 1, 1, 0xeb), length, 3, 3, one);
            self.op_masked(subtract, length, quotient, quotient, Rm::Register(3), 1);
        } else {
            self.op(signs, length, 1, 0, Rm::Register(2));
            self.op_masked(subtract, length, quotient, quotient, one, 1);
            // The quotient by a divisor of 64 bits is whether the dividend is not less.
            self.op(signs, length, 1, 0, Rm::Register(b));
            self.op_masked(xor, length, quotient, quotient, Rm::Register(quotient), 1);
            self.op_masked(op(3, 1, 1, 0x1e), length, 1, a, Rm::Register(b), 1);
            self.code.immediate(5);
            self.op_masked(add, length, quotient, quotient, one, 1);
        }
        self.registers.give_back(divisor);
        self.registers.give_back(quotient);
        let to = self.result_of(step)?;
        self.load(length, to, Rm::Register(quotient));
        Ok(())
    }
}
