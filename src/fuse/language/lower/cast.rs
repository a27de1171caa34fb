//! Conversions between any two dtypes, including the 8-bit floats.
//!
//! Conversions to integers truncate and saturate; NaN gives 0. Integers keep their low bits. Conversions to a
//! narrower float round every source once: if the hardware would round twice, the first rounding is to odd,
//! which keeps the second one correct. A complex number gives its real part; its conversion to bool tests
//! both parts. e4m3 has no infinity, so numbers beyond its range become NaN, as in PyTorch.

use super::{real_parts_of, rounded};
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Value, ValueParts, kind_of};
use crate::types::DType;

pub(crate) fn cast(program: &mut Program, from: DType, to: DType, parts: ValueParts) -> ValueParts {
    if from == to {
        return parts;
    }
    if to.is_complex() {
        let real = number(program, from.part(), to.part(), parts[0]);
        let imaginary = if from.is_complex() {
            number(program, from.part(), to.part(), parts[1])
        } else {
            program.float(real, 0.0)
        };
        return [real, imaginary];
    }
    if to == DType::Bool && from.is_complex() {
        let [real, imaginary] = parts.map(|part| number(program, from.part(), to, part));
        return real_parts_of(program.or(real, imaginary));
    }
    real_parts_of(number(program, from.part(), to, parts[0]))
}

/// Converts a real number, integer or truth value to another dtype.
fn number(program: &mut Program, from: DType, to: DType, x: Value) -> Value {
    if from == to {
        return x;
    }
    match (from, to) {
        (DType::F8E4M3 | DType::F8E5M2, _) => {
            let wide = widen_eight_bits(program, from, x);
            number(program, DType::F32, to, wide)
        }
        (DType::Bool, DType::F8E4M3 | DType::F8E5M2) => {
            let wide = from_truth(program, DType::F32, x);
            narrow_to_eight_bits(program, to, wide)
        }
        (_, DType::F8E4M3 | DType::F8E5M2) => {
            let wide = for_narrowing(program, from, x);
            narrow_to_eight_bits(program, to, wide)
        }
        (DType::Bool, _) => from_truth(program, to, x),
        (_, DType::Bool) => {
            let zero = if from.is_float() { program.float(x, 0.0) } else { program.integer(x, 0) };
            let is_zero = program.equal(x, zero);
            program.not(is_zero)
        }
        (_, DType::F16 | DType::BF16) => {
            let wide = for_narrowing(program, from, x);
            rounded(program, to, wide)
        }
        (_, DType::F32 | DType::F64) => to_float(program, from, to, x),
        _ if from.is_float() => saturated(program, to, x),
        _ => resized(program, from, to, x),
    }
}

/// Returns 1 or 0.
fn from_truth(program: &mut Program, to: DType, truth: Value) -> Value {
    let (yes, no) = match kind_of(to) {
        RegisterKind::Float32 => (program.float32(1.0), program.float32(0.0)),
        RegisterKind::Float64 => (program.float64(1.0), program.float64(0.0)),
        RegisterKind::Bits64 => (program.bits64(1), program.bits64(0)),
        _ => (program.bits32(1), program.bits32(0)),
    };
    program.choose(truth, yes, no)
}

/// Converts an integer to another width or signedness.
fn resized(program: &mut Program, from: DType, to: DType, x: Value) -> Value {
    let x = match (kind_of(from), kind_of(to)) {
        (RegisterKind::Bits32, RegisterKind::Bits64) => extended(program, from, x),
        (RegisterKind::Bits64, RegisterKind::Bits32) => program.apply(Instruction::Truncate64, &[x]),
        _ => x,
    };
    rounded(program, to, x)
}

/// Extends an integer of up to 32 bits to 64.
fn extended(program: &mut Program, from: DType, x: Value) -> Value {
    let signed = from.is_signed_integer();
    program.apply(if signed { Instruction::SignExtend32 } else { Instruction::ZeroExtend32 }, &[x])
}

/// Converts to f32 or f64.
fn to_float(program: &mut Program, from: DType, to: DType, x: Value) -> Value {
    let signed = from.is_signed_integer();
    let instruction = match (program.kind(x), to == DType::F64) {
        (RegisterKind::Float32, true) => Instruction::Widen,
        (RegisterKind::Float64, false) => Instruction::Narrow,
        (RegisterKind::Bits32, true) if signed => Instruction::SignedToFloat64,
        (RegisterKind::Bits32, true) => Instruction::UnsignedToFloat64,
        (RegisterKind::Bits32, false) if signed => Instruction::SignedToFloat32,
        (RegisterKind::Bits32, false) => Instruction::UnsignedToFloat32,
        (RegisterKind::Bits64, true) if signed => Instruction::Signed64ToFloat64,
        (RegisterKind::Bits64, true) => Instruction::Unsigned64ToFloat64,
        (RegisterKind::Bits64, false) if signed => Instruction::Signed64ToFloat32,
        (RegisterKind::Bits64, false) => Instruction::Unsigned64ToFloat32,
        // f16 and bf16 as f32, their register format.
        _ => return x,
    };
    program.apply(instruction, &[x])
}

/// Converts to f32 for a rounding to a narrower float, with rounding to odd if the number is not exact.
fn for_narrowing(program: &mut Program, from: DType, x: Value) -> Value {
    if from.is_float() && from != DType::F64 || from.size() < 4 {
        return to_float(program, from, DType::F32, x);
    }
    let (cut, back, whole) = if from == DType::F64 {
        let cut = program.apply(Instruction::Float64TowardsZero, &[x]);
        (cut, program.apply(Instruction::Widen, &[cut]), x)
    } else {
        let whole = if from.size() == 4 { extended(program, from, x) } else { x };
        let (there, back) = if from.is_signed_integer() {
            (Instruction::Signed64TowardsZero, Instruction::Float32ToSigned64)
        } else {
            (Instruction::Unsigned64TowardsZero, Instruction::Float32ToUnsigned64)
        };
        let cut = program.apply(there, &[whole]);
        (cut, program.apply(back, &[cut]), whole)
    };
    let exact = program.equal(back, whole);
    let bits = program.bits_of(cut);
    let last = program.bits32(1);
    let odd = program.or(bits, last);
    let bits = program.choose(exact, bits, odd);
    program.float_of(bits)
}

/// Converts a float to an integer with saturation.
fn saturated(program: &mut Program, to: DType, x: Value) -> Value {
    let zero = program.float(x, 0.0);
    let nan = program.is_nan(x);
    let x = program.choose(nan, zero, x);
    let double = program.kind(x) == RegisterKind::Float64;
    let signed = to.is_signed_integer();
    let instruction = match (to.size() == 8, signed, double) {
        (true, true, false) => Instruction::Float32ToSigned64,
        (true, true, true) => Instruction::Float64ToSigned64,
        (true, false, false) => Instruction::Float32ToUnsigned64,
        (true, false, true) => Instruction::Float64ToUnsigned64,
        (false, true, false) => Instruction::Float32ToSigned,
        (false, true, true) => Instruction::Float64ToSigned,
        (false, false, false) => Instruction::Float32ToUnsigned,
        (false, false, true) => Instruction::Float64ToUnsigned,
    };
    let whole = program.apply(instruction, &[x]);
    let bits = 8 * to.size() as u32;
    if bits >= 32 {
        return whole;
    }
    if !signed {
        let most = program.bits32((1 << bits) - 1);
        return program.minimum_unsigned(whole, most);
    }
    let (least, most) =
        (program.integer(whole, -(1 << (bits - 1))), program.integer(whole, (1 << (bits - 1)) - 1));
    let whole = program.maximum_signed(whole, least);
    program.minimum_signed(whole, most)
}

/// The differences between the two 8-bit formats.
struct EightBits {
    /// The distance of the magnitude's bits from those of f32.
    shift: u32,
    /// The exponent of f32 with the format's bias.
    exponent: i32,
    /// The smallest magnitude that is not a number.
    first_special: u32,
    /// The exponent of the smallest number.
    smallest: i32,
}

fn format(dtype: DType) -> EightBits {
    if dtype == DType::F8E4M3 {
        EightBits { shift: 20, exponent: 120, first_special: 0x7f, smallest: -9 }
    } else {
        EightBits { shift: 21, exponent: 112, first_special: 0x7c, smallest: -16 }
    }
}

/// Converts the bits of an 8-bit float to f32. It shifts the bits into place and scales the result, which
/// also converts subnormal numbers correctly.
fn widen_eight_bits(program: &mut Program, from: DType, x: Value) -> Value {
    let format = format(from);
    let (magnitude, sign) = (program.bits32(0x7f), program.bits32(0x80));
    let (magnitude, sign) = (program.and(x, magnitude), program.and(x, sign));
    let shift = program.bits32(format.shift);
    let placed = program.shift_left(magnitude, shift);
    let placed = program.float_of(placed);
    let scale = program.float32(2f32.powi(format.exponent));
    let number = program.multiply(placed, scale);
    let number = program.bits_of(number);
    let first = program.bits32(format.first_special);
    let regular = program.less_unsigned(magnitude, first);
    // In e4m3 the pattern with all bits set is NaN.
    let exponent = program.bits32(0x7f80_0000);
    let special = program.or(number, exponent);
    let number = program.choose(regular, number, special);
    let shift = program.bits32(24);
    let sign = program.shift_left(sign, shift);
    let bits = program.or(number, sign);
    program.float_of(bits)
}

/// Rounds f32 to an 8-bit float, to nearest even.
fn narrow_to_eight_bits(program: &mut Program, to: DType, x: Value) -> Value {
    let format = format(to);
    let bits = program.bits_of(x);
    let (rest, sign) = (program.bits32(0x7fff_ffff), program.bits32(0x80));
    let magnitude = program.and(bits, rest);
    let byte_shift = program.bits32(24);
    let high = program.shift_right_unsigned(bits, byte_shift);
    let sign = program.and(high, sign);
    // Normal numbers: the low bits are rounded off.
    let (shift, unity) = (program.bits32(format.shift), program.bits32(1));
    let half = program.bits32((1 << (format.shift - 1)) - 1);
    let last = program.shift_right_unsigned(magnitude, shift);
    let last = program.and(last, unity);
    let sum = program.add(magnitude, half);
    let sum = program.add(sum, last);
    let sum = program.shift_right_unsigned(sum, shift);
    let bias = program.bits32((format.exponent as u32) << (23 - format.shift));
    let normal = program.subtract(sum, bias);
    let infinite = program.bits32(format.first_special);
    let normal = program.minimum_unsigned(normal, infinite);
    // Subnormal numbers: adding a number whose last bit is the smallest one rounds there.
    let anchor = program.float32(2f32.powi(format.smallest + 23));
    let absolute = program.absolute(x);
    let anchored = program.add(absolute, anchor);
    let (anchored, anchor) = (program.bits_of(anchored), program.bits_of(anchor));
    let small = program.subtract(anchored, anchor);
    let least = program.bits32(((format.exponent + 1) as u32) << 23);
    let is_small = program.less_unsigned(magnitude, least);
    let number = program.choose(is_small, small, normal);
    let (nan, no_number) = (program.is_nan(x), program.bits32(0x7f));
    let number = program.choose(nan, no_number, number);
    program.or(number, sign)
}
