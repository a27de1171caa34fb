//! The execution of instructions by the interpreter: a loop over the lanes of a block for each.

use super::block::{Block, Lanes};
#[cfg(target_arch = "x86_64")]
use super::has_vectors;
use crate::fuse::ir::conversion::{
    choose32, choose64, divide_signed, divide_unsigned, float32_to_signed, float32_to_unsigned,
    float64_to_signed, float64_to_signed64, float64_to_unsigned, float64_to_unsigned64, float64_towards_zero,
    round_to_brain, round_to_half, signed64_towards_zero, unsigned64_to_float32, unsigned64_towards_zero,
};
use crate::fuse::ir::instruction::{Instruction, with_instructions};
use crate::fuse::ir::permutation::permuted;

macro_rules! kinds {
    ($($kind:ident $rust:ty;)*) => {$(
        /// The CPU type of the register kind.
        pub(in crate::fuse) type $kind = $rust;
    )*};
}

/// The CPU types of the register kinds.
mod register {
    kinds! { Predicate u32; Bits32 u32; Bits64 u64; Float32 f32; Float64 f64; }
}

macro_rules! execution {
    ($($name:ident ($($operand:ident: $kind:ident),*) -> $result:ident $body:expr;)*) => {
        impl Instruction {
            /// Executes the instruction on `count` lanes, with vector instructions if the processor has them.
            pub(in crate::fuse) fn run(self, operands: [&Block; 3], result: &mut Block, count: usize) {
                #[cfg(target_arch = "x86_64")]
                if has_vectors() {
                    // SAFETY: the processor supports these instructions.
                    unsafe { self.run_in_vectors(operands, result, count) };
                    return;
                }
                self.run_in_any(operands, result, count);
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn run_in_vectors(self, operands: [&Block; 3], result: &mut Block, count: usize) {
                self.run_in_any(operands, result, count);
            }

            // Only called here, because each instruction is a loop that takes long to compile.
            #[inline(always)]
            fn run_in_any(self, operands: [&Block; 3], result: &mut Block, count: usize) {
                match self {
                    $(Instruction::$name => execution!(@run operands, result, count, $result,
                        ($($operand: $kind),*) $body)),*
                }
            }
        }
    };
    (@run $operands:ident, $out:ident, $count:ident, $result:ident, ($a:ident: $ka:ident) $body:expr) => {{
        let a = <register::$ka as Lanes>::of($operands[0], $count);
        let out = <register::$result as Lanes>::of_mut($out, $count);
        for (out, &$a) in out.iter_mut().zip(a) { *out = $body; }
    }};
    (@run $operands:ident, $out:ident, $count:ident, $result:ident,
     ($a:ident: $ka:ident, $b:ident: $kb:ident) $body:expr) => {{
        let a = <register::$ka as Lanes>::of($operands[0], $count);
        let b = <register::$kb as Lanes>::of($operands[1], $count);
        let out = <register::$result as Lanes>::of_mut($out, $count);
        for ((out, &$a), &$b) in out.iter_mut().zip(a).zip(b) { *out = $body; }
    }};
    (@run $operands:ident, $out:ident, $count:ident, $result:ident,
     ($a:ident: $ka:ident, $b:ident: $kb:ident, $c:ident: $kc:ident) $body:expr) => {{
        let a = <register::$ka as Lanes>::of($operands[0], $count);
        let b = <register::$kb as Lanes>::of($operands[1], $count);
        let c = <register::$kc as Lanes>::of($operands[2], $count);
        let out = <register::$result as Lanes>::of_mut($out, $count);
        for (((out, &$a), &$b), &$c) in out.iter_mut().zip(a).zip(b).zip(c) { *out = $body; }
    }};
}

with_instructions!(execution);

/// Returns the reciprocal, or NaN if it is 0 or infinite.
#[inline(always)]
fn reciprocal_within(a: f32) -> f32 {
    let reciprocal = 1.0 / a;
    if reciprocal != 0.0 && reciprocal.abs() < f32::INFINITY { reciprocal } else { f32::NAN }
}

/// Returns 2^a, or 0 if that is subnormal.
#[inline(always)]
fn normal_power(a: f32) -> f32 {
    let power = f64::from(a).exp2() as f32;
    if power < f32::MIN_POSITIVE { 0.0 } else { power }
}

/// Returns the logarithm if it is not finite, and 0 otherwise.
#[inline(always)]
fn limit_of_logarithm(a: f32) -> f32 {
    let positive = if a < f32::INFINITY { 0.0 } else { a };
    let other = if a == 0.0 { f32::NEG_INFINITY } else { f32::NAN };
    if a > 0.0 { positive } else { other }
}

macro_rules! raises {
    ($($name:ident $word:ty;)*) => {$(
        /// Returns the power, wrapped.
        #[inline(always)]
        fn $name(mut base: $word, mut exponent: $word) -> $word {
            let mut power: $word = 1;
            while exponent != 0 {
                if exponent & 1 != 0 {
                    power = power.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                exponent >>= 1;
            }
            power
        }
    )*};
}

raises! {
    raise32 u32;
    raise64 u64;
}

macro_rules! extremes {
    ($($minimum:ident $maximum:ident $float:ty;)*) => {$(
        /// Returns the smaller operand: the number if one is NaN, and the negative one of two zeros.
        #[inline(always)]
        fn $minimum(a: $float, b: $float) -> $float {
            let lesser = if a < b || b.is_nan() { a } else { b };
            if a == b { <$float>::from_bits(a.to_bits() | b.to_bits()) } else { lesser }
        }

        /// Returns the larger operand: the number if one is NaN, and the positive one of two zeros.
        #[inline(always)]
        fn $maximum(a: $float, b: $float) -> $float {
            let greater = if a > b || b.is_nan() { a } else { b };
            if a == b { <$float>::from_bits(a.to_bits() & b.to_bits()) } else { greater }
        }
    )*};
}

extremes! {
    min32 max32 f32;
    min64 max64 f64;
}
