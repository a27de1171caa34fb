// Generated from the list of src/fuse/language/operation.rs by the test of src/capi/tensor/elementwise.rs; do not edit. Again with:
// SELVEDGE_WRITE_OPERATIONS=1 cargo test --features capi --lib operations_are_those_of_the_list

//! A constant and functions for each elementwise operation.

use super::elementwise::{call, call_in_place};
use crate::fuse::Operation;

/// x + y; integers wrap, bools are or-ed.
pub const SV_OP_ADD: u32 = 1;

/// Computes `SV_OP_ADD` of tensors, as `sv_operation`: x + y; integers wrap, bools are or-ed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_add(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_add", Operation::Add, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_ADD`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_add_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_add_in_place", Operation::Add, x, [y])
}

/// x - y; integers wrap.
pub const SV_OP_SUB: u32 = 2;

/// Computes `SV_OP_SUB` of tensors, as `sv_operation`: x - y; integers wrap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_sub(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_sub", Operation::Sub, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_SUB`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_sub_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_sub_in_place", Operation::Sub, x, [y])
}

/// x · y; integers wrap, bools are and-ed.
pub const SV_OP_MUL: u32 = 3;

/// Computes `SV_OP_MUL` of tensors, as `sv_operation`: x · y; integers wrap, bools are and-ed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_mul(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_mul", Operation::Mul, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_MUL`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_mul_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_mul_in_place", Operation::Mul, x, [y])
}

/// x / y. Integers are divided in f32. Complex numbers use Smith's scaled formula; as in C99, a number other than 0 and NaN divided by 0 is infinite.
pub const SV_OP_DIV: u32 = 4;

/// Computes `SV_OP_DIV` of tensors, as `sv_operation`: x / y. Integers are divided in f32. Complex numbers use Smith's scaled formula; as in C99, a number other than 0 and NaN divided by 0 is infinite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_div(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_div", Operation::Div, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_DIV`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_div_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_div_in_place", Operation::Div, x, [y])
}

/// The upper half of the product x · y.
pub const SV_OP_MUL_HIGH: u32 = 95;

/// Computes `SV_OP_MUL_HIGH` of tensors, as `sv_operation`: The upper half of the product x · y.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_mul_high(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_mul_high", Operation::MulHigh, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_MUL_HIGH`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_mul_high_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_mul_high_in_place", Operation::MulHigh, x, [y])
}

/// x / y rounded down. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself. For floats, the quotient matches `remainder`.
pub const SV_OP_FLOOR_DIVIDE: u32 = 5;

/// Computes `SV_OP_FLOOR_DIVIDE` of tensors, as `sv_operation`: x / y rounded down. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself. For floats, the quotient matches `remainder`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_floor_divide(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_floor_divide", Operation::FloorDivide, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_FLOOR_DIVIDE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_floor_divide_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_floor_divide_in_place", Operation::FloorDivide, x, [y])
}

/// x / y rounded towards 0. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself.
pub const SV_OP_TRUNC_DIVIDE: u32 = 6;

/// Computes `SV_OP_TRUNC_DIVIDE` of tensors, as `sv_operation`: x / y rounded towards 0. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_trunc_divide(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_trunc_divide", Operation::TruncDivide, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_TRUNC_DIVIDE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_trunc_divide_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_trunc_divide_in_place", Operation::TruncDivide, x, [y])
}

/// The remainder of `floor_divide`, with the sign of y (zeros too, as in Python); 0 for integers if y is 0.
pub const SV_OP_REMAINDER: u32 = 7;

/// Computes `SV_OP_REMAINDER` of tensors, as `sv_operation`: The remainder of `floor_divide`, with the sign of y (zeros too, as in Python); 0 for integers if y is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_remainder(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_remainder", Operation::Remainder, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_REMAINDER`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_remainder_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_remainder_in_place", Operation::Remainder, x, [y])
}

/// The exact remainder of `trunc_divide`, with the sign of x; 0 for integers if y is 0.
pub const SV_OP_FMOD: u32 = 8;

/// Computes `SV_OP_FMOD` of tensors, as `sv_operation`: The exact remainder of `trunc_divide`, with the sign of x; 0 for integers if y is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fmod(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_fmod", Operation::Fmod, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_FMOD`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_fmod_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_fmod_in_place", Operation::Fmod, x, [y])
}

/// -x; integers wrap.
pub const SV_OP_NEG: u32 = 9;

/// Computes `SV_OP_NEG` of tensors, as `sv_operation`: -x; integers wrap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_neg(x: u64, result: *mut u64) -> i32 {
    call("sv_neg", Operation::Neg, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_NEG`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_neg_in_place(x: u64) -> i32 {
    call_in_place("sv_neg_in_place", Operation::Neg, x, [])
}

/// |x|, exact for real numbers; the minimum integer wraps to itself. For complex numbers, the magnitude.
pub const SV_OP_ABS: u32 = 10;

/// Computes `SV_OP_ABS` of tensors, as `sv_operation`: |x|, exact for real numbers; the minimum integer wraps to itself. For complex numbers, the magnitude.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_abs(x: u64, result: *mut u64) -> i32 {
    call("sv_abs", Operation::Abs, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ABS`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_abs_in_place(x: u64) -> i32 {
    call_in_place("sv_abs_in_place", Operation::Abs, x, [])
}

/// 1, 0 or -1 with the sign of x; zeros and NaN are unchanged. For complex numbers, x / |x|, and 0 at 0.
pub const SV_OP_SIGN: u32 = 11;

/// Computes `SV_OP_SIGN` of tensors, as `sv_operation`: 1, 0 or -1 with the sign of x; zeros and NaN are unchanged. For complex numbers, x / |x|, and 0 at 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_sign(x: u64, result: *mut u64) -> i32 {
    call("sv_sign", Operation::Sign, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SIGN`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_sign_in_place(x: u64) -> i32 {
    call_in_place("sv_sign_in_place", Operation::Sign, x, [])
}

/// The square root, rounded to nearest. For real numbers, NaN below 0; for complex numbers, the root with a nonnegative real part.
pub const SV_OP_SQRT: u32 = 12;

/// Computes `SV_OP_SQRT` of tensors, as `sv_operation`: The square root, rounded to nearest. For real numbers, NaN below 0; for complex numbers, the root with a nonnegative real part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_sqrt(x: u64, result: *mut u64) -> i32 {
    call("sv_sqrt", Operation::Sqrt, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SQRT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_sqrt_in_place(x: u64) -> i32 {
    call_in_place("sv_sqrt_in_place", Operation::Sqrt, x, [])
}

/// 1 / sqrt(x); for real numbers both steps round to nearest.
pub const SV_OP_RSQRT: u32 = 13;

/// Computes `SV_OP_RSQRT` of tensors, as `sv_operation`: 1 / sqrt(x); for real numbers both steps round to nearest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_rsqrt(x: u64, result: *mut u64) -> i32 {
    call("sv_rsqrt", Operation::Rsqrt, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_RSQRT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_rsqrt_in_place(x: u64) -> i32 {
    call_in_place("sv_rsqrt_in_place", Operation::Rsqrt, x, [])
}

/// 1 / x.
pub const SV_OP_RECIPROCAL: u32 = 14;

/// Computes `SV_OP_RECIPROCAL` of tensors, as `sv_operation`: 1 / x.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_reciprocal(x: u64, result: *mut u64) -> i32 {
    call("sv_reciprocal", Operation::Reciprocal, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_RECIPROCAL`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_reciprocal_in_place(x: u64) -> i32 {
    call_in_place("sv_reciprocal_in_place", Operation::Reciprocal, x, [])
}

/// x · x.
pub const SV_OP_SQUARE: u32 = 15;

/// Computes `SV_OP_SQUARE` of tensors, as `sv_operation`: x · x.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_square(x: u64, result: *mut u64) -> i32 {
    call("sv_square", Operation::Square, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SQUARE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_square_in_place(x: u64) -> i32 {
    call_in_place("sv_square_in_place", Operation::Square, x, [])
}

/// The largest integer at most x.
pub const SV_OP_FLOOR: u32 = 16;

/// Computes `SV_OP_FLOOR` of tensors, as `sv_operation`: The largest integer at most x.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_floor(x: u64, result: *mut u64) -> i32 {
    call("sv_floor", Operation::Floor, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_FLOOR`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_floor_in_place(x: u64) -> i32 {
    call_in_place("sv_floor_in_place", Operation::Floor, x, [])
}

/// The smallest integer at least x.
pub const SV_OP_CEIL: u32 = 17;

/// Computes `SV_OP_CEIL` of tensors, as `sv_operation`: The smallest integer at least x.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_ceil(x: u64, result: *mut u64) -> i32 {
    call("sv_ceil", Operation::Ceil, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_CEIL`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_ceil_in_place(x: u64) -> i32 {
    call_in_place("sv_ceil_in_place", Operation::Ceil, x, [])
}

/// x rounded towards 0.
pub const SV_OP_TRUNC: u32 = 18;

/// Computes `SV_OP_TRUNC` of tensors, as `sv_operation`: x rounded towards 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_trunc(x: u64, result: *mut u64) -> i32 {
    call("sv_trunc", Operation::Trunc, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_TRUNC`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_trunc_in_place(x: u64) -> i32 {
    call_in_place("sv_trunc_in_place", Operation::Trunc, x, [])
}

/// x rounded to the nearest integer, ties to even.
pub const SV_OP_ROUND: u32 = 19;

/// Computes `SV_OP_ROUND` of tensors, as `sv_operation`: x rounded to the nearest integer, ties to even.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_round(x: u64, result: *mut u64) -> i32 {
    call("sv_round", Operation::Round, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ROUND`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_round_in_place(x: u64) -> i32 {
    call_in_place("sv_round_in_place", Operation::Round, x, [])
}

/// x - trunc(x), exact, with the sign of x; NaN for infinities.
pub const SV_OP_FRAC: u32 = 20;

/// Computes `SV_OP_FRAC` of tensors, as `sv_operation`: x - trunc(x), exact, with the sign of x; NaN for infinities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_frac(x: u64, result: *mut u64) -> i32 {
    call("sv_frac", Operation::Frac, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_FRAC`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_frac_in_place(x: u64) -> i32 {
    call_in_place("sv_frac_in_place", Operation::Frac, x, [])
}

/// max(x, 0); NaN stays NaN.
pub const SV_OP_RELU: u32 = 21;

/// Computes `SV_OP_RELU` of tensors, as `sv_operation`: max(x, 0); NaN stays NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_relu(x: u64, result: *mut u64) -> i32 {
    call("sv_relu", Operation::Relu, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_RELU`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_relu_in_place(x: u64) -> i32 {
    call_in_place("sv_relu_in_place", Operation::Relu, x, [])
}

/// The smaller operand; NaN if either is NaN. -0 is less than 0.
pub const SV_OP_MINIMUM: u32 = 22;

/// Computes `SV_OP_MINIMUM` of tensors, as `sv_operation`: The smaller operand; NaN if either is NaN. -0 is less than 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_minimum(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_minimum", Operation::Minimum, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_MINIMUM`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_minimum_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_minimum_in_place", Operation::Minimum, x, [y])
}

/// The larger operand; NaN if either is NaN. 0 is greater than -0.
pub const SV_OP_MAXIMUM: u32 = 23;

/// Computes `SV_OP_MAXIMUM` of tensors, as `sv_operation`: The larger operand; NaN if either is NaN. 0 is greater than -0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_maximum(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_maximum", Operation::Maximum, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_MAXIMUM`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_maximum_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_maximum_in_place", Operation::Maximum, x, [y])
}

/// The smaller operand; the other operand if one is NaN.
pub const SV_OP_FMIN: u32 = 24;

/// Computes `SV_OP_FMIN` of tensors, as `sv_operation`: The smaller operand; the other operand if one is NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fmin(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_fmin", Operation::Fmin, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_FMIN`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_fmin_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_fmin_in_place", Operation::Fmin, x, [y])
}

/// The larger operand; the other operand if one is NaN.
pub const SV_OP_FMAX: u32 = 25;

/// Computes `SV_OP_FMAX` of tensors, as `sv_operation`: The larger operand; the other operand if one is NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fmax(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_fmax", Operation::Fmax, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_FMAX`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_fmax_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_fmax_in_place", Operation::Fmax, x, [y])
}

/// min(max(x, low), high): NaN if any operand is NaN, and high if low exceeds it.
pub const SV_OP_CLAMP: u32 = 26;

/// Computes `SV_OP_CLAMP` of tensors, as `sv_operation`: min(max(x, low), high): NaN if any operand is NaN, and high if low exceeds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_clamp(x: u64, y: u64, z: u64, result: *mut u64) -> i32 {
    call("sv_clamp", Operation::Clamp, [x, y, z], result)
}

/// Replaces the elements of `x` by `SV_OP_CLAMP`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_clamp_in_place(x: u64, y: u64, z: u64) -> i32 {
    call_in_place("sv_clamp_in_place", Operation::Clamp, x, [y, z])
}

/// True if x equals y; NaN equals nothing.
pub const SV_OP_EQ: u32 = 27;

/// Computes `SV_OP_EQ` of tensors, as `sv_operation`: True if x equals y; NaN equals nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_eq(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_eq", Operation::Equal, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_EQ`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_eq_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_eq_in_place", Operation::Equal, x, [y])
}

/// True if x differs from y; true if either is NaN.
pub const SV_OP_NE: u32 = 28;

/// Computes `SV_OP_NE` of tensors, as `sv_operation`: True if x differs from y; true if either is NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_ne(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_ne", Operation::NotEqual, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_NE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_ne_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_ne_in_place", Operation::NotEqual, x, [y])
}

/// True if x < y; false if either is NaN.
pub const SV_OP_LT: u32 = 29;

/// Computes `SV_OP_LT` of tensors, as `sv_operation`: True if x < y; false if either is NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_lt(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_lt", Operation::Less, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_LT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_lt_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_lt_in_place", Operation::Less, x, [y])
}

/// True if x <= y; false if either is NaN.
pub const SV_OP_LE: u32 = 30;

/// Computes `SV_OP_LE` of tensors, as `sv_operation`: True if x <= y; false if either is NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_le(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_le", Operation::LessEqual, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_LE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_le_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_le_in_place", Operation::LessEqual, x, [y])
}

/// True if x > y; false if either is NaN.
pub const SV_OP_GT: u32 = 31;

/// Computes `SV_OP_GT` of tensors, as `sv_operation`: True if x > y; false if either is NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gt(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_gt", Operation::Greater, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_GT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_gt_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_gt_in_place", Operation::Greater, x, [y])
}

/// True if x >= y; false if either is NaN.
pub const SV_OP_GE: u32 = 32;

/// Computes `SV_OP_GE` of tensors, as `sv_operation`: True if x >= y; false if either is NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_ge(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_ge", Operation::GreaterEqual, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_GE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_ge_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_ge_in_place", Operation::GreaterEqual, x, [y])
}

/// True if x is NaN; for complex numbers, if either part is.
pub const SV_OP_IS_NAN: u32 = 33;

/// Computes `SV_OP_IS_NAN` of tensors, as `sv_operation`: True if x is NaN; for complex numbers, if either part is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_is_nan(x: u64, result: *mut u64) -> i32 {
    call("sv_is_nan", Operation::IsNan, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_IS_NAN`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_is_nan_in_place(x: u64) -> i32 {
    call_in_place("sv_is_nan_in_place", Operation::IsNan, x, [])
}

/// True if x is infinite; for complex numbers, if either part is.
pub const SV_OP_IS_INFINITE: u32 = 34;

/// Computes `SV_OP_IS_INFINITE` of tensors, as `sv_operation`: True if x is infinite; for complex numbers, if either part is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_is_infinite(x: u64, result: *mut u64) -> i32 {
    call("sv_is_infinite", Operation::IsInfinite, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_IS_INFINITE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_is_infinite_in_place(x: u64) -> i32 {
    call_in_place("sv_is_infinite_in_place", Operation::IsInfinite, x, [])
}

/// True if x is neither NaN nor infinite; for complex numbers, if both parts are finite.
pub const SV_OP_IS_FINITE: u32 = 35;

/// Computes `SV_OP_IS_FINITE` of tensors, as `sv_operation`: True if x is neither NaN nor infinite; for complex numbers, if both parts are finite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_is_finite(x: u64, result: *mut u64) -> i32 {
    call("sv_is_finite", Operation::IsFinite, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_IS_FINITE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_is_finite_in_place(x: u64) -> i32 {
    call_in_place("sv_is_finite_in_place", Operation::IsFinite, x, [])
}

/// True if both operands are nonzero.
pub const SV_OP_LOGICAL_AND: u32 = 36;

/// Computes `SV_OP_LOGICAL_AND` of tensors, as `sv_operation`: True if both operands are nonzero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_logical_and(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_logical_and", Operation::LogicalAnd, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_LOGICAL_AND`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_logical_and_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_logical_and_in_place", Operation::LogicalAnd, x, [y])
}

/// True if either operand is nonzero.
pub const SV_OP_LOGICAL_OR: u32 = 37;

/// Computes `SV_OP_LOGICAL_OR` of tensors, as `sv_operation`: True if either operand is nonzero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_logical_or(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_logical_or", Operation::LogicalOr, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_LOGICAL_OR`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_logical_or_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_logical_or_in_place", Operation::LogicalOr, x, [y])
}

/// True if exactly one operand is nonzero.
pub const SV_OP_LOGICAL_XOR: u32 = 38;

/// Computes `SV_OP_LOGICAL_XOR` of tensors, as `sv_operation`: True if exactly one operand is nonzero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_logical_xor(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_logical_xor", Operation::LogicalXor, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_LOGICAL_XOR`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_logical_xor_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_logical_xor_in_place", Operation::LogicalXor, x, [y])
}

/// True if x is 0.
pub const SV_OP_LOGICAL_NOT: u32 = 39;

/// Computes `SV_OP_LOGICAL_NOT` of tensors, as `sv_operation`: True if x is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_logical_not(x: u64, result: *mut u64) -> i32 {
    call("sv_logical_not", Operation::LogicalNot, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_LOGICAL_NOT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_logical_not_in_place(x: u64) -> i32 {
    call_in_place("sv_logical_not_in_place", Operation::LogicalNot, x, [])
}

/// The bitwise and.
pub const SV_OP_BIT_AND: u32 = 40;

/// Computes `SV_OP_BIT_AND` of tensors, as `sv_operation`: The bitwise and.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_bit_and(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_bit_and", Operation::BitAnd, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_BIT_AND`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_bit_and_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_bit_and_in_place", Operation::BitAnd, x, [y])
}

/// The bitwise or.
pub const SV_OP_BIT_OR: u32 = 41;

/// Computes `SV_OP_BIT_OR` of tensors, as `sv_operation`: The bitwise or.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_bit_or(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_bit_or", Operation::BitOr, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_BIT_OR`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_bit_or_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_bit_or_in_place", Operation::BitOr, x, [y])
}

/// The bitwise exclusive or.
pub const SV_OP_BIT_XOR: u32 = 42;

/// Computes `SV_OP_BIT_XOR` of tensors, as `sv_operation`: The bitwise exclusive or.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_bit_xor(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_bit_xor", Operation::BitXor, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_BIT_XOR`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_bit_xor_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_bit_xor_in_place", Operation::BitXor, x, [y])
}

/// The bitwise complement.
pub const SV_OP_BIT_NOT: u32 = 43;

/// Computes `SV_OP_BIT_NOT` of tensors, as `sv_operation`: The bitwise complement.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_bit_not(x: u64, result: *mut u64) -> i32 {
    call("sv_bit_not", Operation::BitNot, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_BIT_NOT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_bit_not_in_place(x: u64) -> i32 {
    call_in_place("sv_bit_not_in_place", Operation::BitNot, x, [])
}

/// x · 2^y, wrapped; 0 if y is negative or at least the width.
pub const SV_OP_SHIFT_LEFT: u32 = 44;

/// Computes `SV_OP_SHIFT_LEFT` of tensors, as `sv_operation`: x · 2^y, wrapped; 0 if y is negative or at least the width.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_shift_left(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_shift_left", Operation::ShiftLeft, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_SHIFT_LEFT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_shift_left_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_shift_left_in_place", Operation::ShiftLeft, x, [y])
}

/// x / 2^y rounded down; 0, or -1 for a negative x, if y is negative or at least the width.
pub const SV_OP_SHIFT_RIGHT: u32 = 45;

/// Computes `SV_OP_SHIFT_RIGHT` of tensors, as `sv_operation`: x / 2^y rounded down; 0, or -1 for a negative x, if y is negative or at least the width.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_shift_right(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_shift_right", Operation::ShiftRight, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_SHIFT_RIGHT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_shift_right_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_shift_right_in_place", Operation::ShiftRight, x, [y])
}

/// The second operand if the first is true, otherwise the third.
pub const SV_OP_CHOOSE: u32 = 46;

/// Computes `SV_OP_CHOOSE` of tensors, as `sv_operation`: The second operand if the first is true, otherwise the third.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_choose(x: u64, y: u64, z: u64, result: *mut u64) -> i32 {
    call("sv_choose", Operation::Select, [x, y, z], result)
}

/// Replaces the elements of `x` by `SV_OP_CHOOSE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_choose_in_place(x: u64, y: u64, z: u64) -> i32 {
    call_in_place("sv_choose_in_place", Operation::Select, x, [y, z])
}

/// x · y + z, rounded once; integers wrap.
pub const SV_OP_FMA: u32 = 47;

/// Computes `SV_OP_FMA` of tensors, as `sv_operation`: x · y + z, rounded once; integers wrap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fma(x: u64, y: u64, z: u64, result: *mut u64) -> i32 {
    call("sv_fma", Operation::Fma, [x, y, z], result)
}

/// Replaces the elements of `x` by `SV_OP_FMA`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_fma_in_place(x: u64, y: u64, z: u64) -> i32 {
    call_in_place("sv_fma_in_place", Operation::Fma, x, [y, z])
}

/// The interpolation from x to y by weight z: x + z (y - x) below 1/2, otherwise y - (y - x) (1 - z); x (1 - z) + y z if y - x of finite ends overflows.
pub const SV_OP_LERP: u32 = 48;

/// Computes `SV_OP_LERP` of tensors, as `sv_operation`: The interpolation from x to y by weight z: x + z (y - x) below 1/2, otherwise y - (y - x) (1 - z); x (1 - z) + y z if y - x of finite ends overflows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_lerp(x: u64, y: u64, z: u64, result: *mut u64) -> i32 {
    call("sv_lerp", Operation::Lerp, [x, y, z], result)
}

/// Replaces the elements of `x` by `SV_OP_LERP`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_lerp_in_place(x: u64, y: u64, z: u64) -> i32 {
    call_in_place("sv_lerp_in_place", Operation::Lerp, x, [y, z])
}

/// |x| with the sign of y.
pub const SV_OP_COPYSIGN: u32 = 49;

/// Computes `SV_OP_COPYSIGN` of tensors, as `sv_operation`: |x| with the sign of y.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_copysign(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_copysign", Operation::Copysign, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_COPYSIGN`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_copysign_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_copysign_in_place", Operation::Copysign, x, [y])
}

/// sqrt(x² + y²) without intermediate overflow; infinite if either operand is.
pub const SV_OP_HYPOT: u32 = 50;

/// Computes `SV_OP_HYPOT` of tensors, as `sv_operation`: sqrt(x² + y²) without intermediate overflow; infinite if either operand is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_hypot(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_hypot", Operation::Hypot, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_HYPOT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_hypot_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_hypot_in_place", Operation::Hypot, x, [y])
}

/// The real part.
pub const SV_OP_REAL: u32 = 51;

/// Computes `SV_OP_REAL` of tensors, as `sv_operation`: The real part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_real(x: u64, result: *mut u64) -> i32 {
    call("sv_real", Operation::Real, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_REAL`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_real_in_place(x: u64) -> i32 {
    call_in_place("sv_real_in_place", Operation::Real, x, [])
}

/// The imaginary part; 0 for real numbers.
pub const SV_OP_IMAG: u32 = 52;

/// Computes `SV_OP_IMAG` of tensors, as `sv_operation`: The imaginary part; 0 for real numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_imag(x: u64, result: *mut u64) -> i32 {
    call("sv_imag", Operation::Imag, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_IMAG`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_imag_in_place(x: u64) -> i32 {
    call_in_place("sv_imag_in_place", Operation::Imag, x, [])
}

/// The complex conjugate; real numbers are unchanged.
pub const SV_OP_CONJ: u32 = 53;

/// Computes `SV_OP_CONJ` of tensors, as `sv_operation`: The complex conjugate; real numbers are unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_conj(x: u64, result: *mut u64) -> i32 {
    call("sv_conj", Operation::Conj, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_CONJ`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_conj_in_place(x: u64) -> i32 {
    call_in_place("sv_conj_in_place", Operation::Conj, x, [])
}

/// e^x.
pub const SV_OP_EXP: u32 = 54;

/// Computes `SV_OP_EXP` of tensors, as `sv_operation`: e^x.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_exp(x: u64, result: *mut u64) -> i32 {
    call("sv_exp", Operation::Exp, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_EXP`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_exp_in_place(x: u64) -> i32 {
    call_in_place("sv_exp_in_place", Operation::Exp, x, [])
}

/// 2^x.
pub const SV_OP_EXP2: u32 = 55;

/// Computes `SV_OP_EXP2` of tensors, as `sv_operation`: 2^x.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_exp2(x: u64, result: *mut u64) -> i32 {
    call("sv_exp2", Operation::Exp2, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_EXP2`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_exp2_in_place(x: u64) -> i32 {
    call_in_place("sv_exp2_in_place", Operation::Exp2, x, [])
}

/// e^x - 1, accurate near 0.
pub const SV_OP_EXPM1: u32 = 56;

/// Computes `SV_OP_EXPM1` of tensors, as `sv_operation`: e^x - 1, accurate near 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expm1(x: u64, result: *mut u64) -> i32 {
    call("sv_expm1", Operation::Expm1, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_EXPM1`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_expm1_in_place(x: u64) -> i32 {
    call_in_place("sv_expm1_in_place", Operation::Expm1, x, [])
}

/// The natural logarithm; for real numbers, NaN below 0.
pub const SV_OP_LOG: u32 = 57;

/// Computes `SV_OP_LOG` of tensors, as `sv_operation`: The natural logarithm; for real numbers, NaN below 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_log(x: u64, result: *mut u64) -> i32 {
    call("sv_log", Operation::Log, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_LOG`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_log_in_place(x: u64) -> i32 {
    call_in_place("sv_log_in_place", Operation::Log, x, [])
}

/// The logarithm to base 2, exact for powers of 2.
pub const SV_OP_LOG2: u32 = 58;

/// Computes `SV_OP_LOG2` of tensors, as `sv_operation`: The logarithm to base 2, exact for powers of 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_log2(x: u64, result: *mut u64) -> i32 {
    call("sv_log2", Operation::Log2, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_LOG2`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_log2_in_place(x: u64) -> i32 {
    call_in_place("sv_log2_in_place", Operation::Log2, x, [])
}

/// The logarithm to base 10.
pub const SV_OP_LOG10: u32 = 59;

/// Computes `SV_OP_LOG10` of tensors, as `sv_operation`: The logarithm to base 10.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_log10(x: u64, result: *mut u64) -> i32 {
    call("sv_log10", Operation::Log10, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_LOG10`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_log10_in_place(x: u64) -> i32 {
    call_in_place("sv_log10_in_place", Operation::Log10, x, [])
}

/// ln(1 + x), accurate near 0.
pub const SV_OP_LOG1P: u32 = 60;

/// Computes `SV_OP_LOG1P` of tensors, as `sv_operation`: ln(1 + x), accurate near 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_log1p(x: u64, result: *mut u64) -> i32 {
    call("sv_log1p", Operation::Log1p, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_LOG1P`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_log1p_in_place(x: u64) -> i32 {
    call_in_place("sv_log1p_in_place", Operation::Log1p, x, [])
}

/// The hyperbolic sine.
pub const SV_OP_SINH: u32 = 61;

/// Computes `SV_OP_SINH` of tensors, as `sv_operation`: The hyperbolic sine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_sinh(x: u64, result: *mut u64) -> i32 {
    call("sv_sinh", Operation::Sinh, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SINH`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_sinh_in_place(x: u64) -> i32 {
    call_in_place("sv_sinh_in_place", Operation::Sinh, x, [])
}

/// The hyperbolic cosine.
pub const SV_OP_COSH: u32 = 62;

/// Computes `SV_OP_COSH` of tensors, as `sv_operation`: The hyperbolic cosine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_cosh(x: u64, result: *mut u64) -> i32 {
    call("sv_cosh", Operation::Cosh, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_COSH`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_cosh_in_place(x: u64) -> i32 {
    call_in_place("sv_cosh_in_place", Operation::Cosh, x, [])
}

/// The hyperbolic tangent.
pub const SV_OP_TANH: u32 = 63;

/// Computes `SV_OP_TANH` of tensors, as `sv_operation`: The hyperbolic tangent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tanh(x: u64, result: *mut u64) -> i32 {
    call("sv_tanh", Operation::Tanh, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_TANH`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tanh_in_place(x: u64) -> i32 {
    call_in_place("sv_tanh_in_place", Operation::Tanh, x, [])
}

/// The inverse hyperbolic sine.
pub const SV_OP_ASINH: u32 = 64;

/// Computes `SV_OP_ASINH` of tensors, as `sv_operation`: The inverse hyperbolic sine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_asinh(x: u64, result: *mut u64) -> i32 {
    call("sv_asinh", Operation::Asinh, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ASINH`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_asinh_in_place(x: u64) -> i32 {
    call_in_place("sv_asinh_in_place", Operation::Asinh, x, [])
}

/// The inverse hyperbolic cosine; for real numbers, NaN below 1.
pub const SV_OP_ACOSH: u32 = 65;

/// Computes `SV_OP_ACOSH` of tensors, as `sv_operation`: The inverse hyperbolic cosine; for real numbers, NaN below 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_acosh(x: u64, result: *mut u64) -> i32 {
    call("sv_acosh", Operation::Acosh, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ACOSH`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_acosh_in_place(x: u64) -> i32 {
    call_in_place("sv_acosh_in_place", Operation::Acosh, x, [])
}

/// The inverse hyperbolic tangent; infinite at 1 and -1, and for real numbers NaN beyond.
pub const SV_OP_ATANH: u32 = 66;

/// Computes `SV_OP_ATANH` of tensors, as `sv_operation`: The inverse hyperbolic tangent; infinite at 1 and -1, and for real numbers NaN beyond.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_atanh(x: u64, result: *mut u64) -> i32 {
    call("sv_atanh", Operation::Atanh, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ATANH`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_atanh_in_place(x: u64) -> i32 {
    call_in_place("sv_atanh_in_place", Operation::Atanh, x, [])
}

/// 1 / (1 + e^-x).
pub const SV_OP_SIGMOID: u32 = 67;

/// Computes `SV_OP_SIGMOID` of tensors, as `sv_operation`: 1 / (1 + e^-x).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_sigmoid(x: u64, result: *mut u64) -> i32 {
    call("sv_sigmoid", Operation::Sigmoid, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SIGMOID`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_sigmoid_in_place(x: u64) -> i32 {
    call_in_place("sv_sigmoid_in_place", Operation::Sigmoid, x, [])
}

/// x · sigmoid(x); -0 for minus infinity.
pub const SV_OP_SILU: u32 = 68;

/// Computes `SV_OP_SILU` of tensors, as `sv_operation`: x · sigmoid(x); -0 for minus infinity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_silu(x: u64, result: *mut u64) -> i32 {
    call("sv_silu", Operation::Silu, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SILU`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_silu_in_place(x: u64) -> i32 {
    call_in_place("sv_silu_in_place", Operation::Silu, x, [])
}

/// ln(1 + e^x).
pub const SV_OP_SOFTPLUS: u32 = 69;

/// Computes `SV_OP_SOFTPLUS` of tensors, as `sv_operation`: ln(1 + e^x).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_softplus(x: u64, result: *mut u64) -> i32 {
    call("sv_softplus", Operation::Softplus, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SOFTPLUS`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_softplus_in_place(x: u64) -> i32 {
    call_in_place("sv_softplus_in_place", Operation::Softplus, x, [])
}

/// The sine, for any finite argument; NaN for infinities.
pub const SV_OP_SIN: u32 = 70;

/// Computes `SV_OP_SIN` of tensors, as `sv_operation`: The sine, for any finite argument; NaN for infinities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_sin(x: u64, result: *mut u64) -> i32 {
    call("sv_sin", Operation::Sin, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SIN`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_sin_in_place(x: u64) -> i32 {
    call_in_place("sv_sin_in_place", Operation::Sin, x, [])
}

/// The cosine, for any finite argument; NaN for infinities.
pub const SV_OP_COS: u32 = 71;

/// Computes `SV_OP_COS` of tensors, as `sv_operation`: The cosine, for any finite argument; NaN for infinities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_cos(x: u64, result: *mut u64) -> i32 {
    call("sv_cos", Operation::Cos, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_COS`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_cos_in_place(x: u64) -> i32 {
    call_in_place("sv_cos_in_place", Operation::Cos, x, [])
}

/// The tangent, for any finite argument; NaN for infinities.
pub const SV_OP_TAN: u32 = 72;

/// Computes `SV_OP_TAN` of tensors, as `sv_operation`: The tangent, for any finite argument; NaN for infinities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tan(x: u64, result: *mut u64) -> i32 {
    call("sv_tan", Operation::Tan, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_TAN`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tan_in_place(x: u64) -> i32 {
    call_in_place("sv_tan_in_place", Operation::Tan, x, [])
}

/// The inverse sine; for real numbers, NaN beyond 1 and -1.
pub const SV_OP_ASIN: u32 = 73;

/// Computes `SV_OP_ASIN` of tensors, as `sv_operation`: The inverse sine; for real numbers, NaN beyond 1 and -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_asin(x: u64, result: *mut u64) -> i32 {
    call("sv_asin", Operation::Asin, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ASIN`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_asin_in_place(x: u64) -> i32 {
    call_in_place("sv_asin_in_place", Operation::Asin, x, [])
}

/// The inverse cosine; for real numbers, NaN beyond 1 and -1.
pub const SV_OP_ACOS: u32 = 74;

/// Computes `SV_OP_ACOS` of tensors, as `sv_operation`: The inverse cosine; for real numbers, NaN beyond 1 and -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_acos(x: u64, result: *mut u64) -> i32 {
    call("sv_acos", Operation::Acos, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ACOS`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_acos_in_place(x: u64) -> i32 {
    call_in_place("sv_acos_in_place", Operation::Acos, x, [])
}

/// The inverse tangent.
pub const SV_OP_ATAN: u32 = 75;

/// Computes `SV_OP_ATAN` of tensors, as `sv_operation`: The inverse tangent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_atan(x: u64, result: *mut u64) -> i32 {
    call("sv_atan", Operation::Atan, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ATAN`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_atan_in_place(x: u64) -> i32 {
    call_in_place("sv_atan_in_place", Operation::Atan, x, [])
}

/// The angle of the point (second operand, first operand), from -π to π. Signs of zeros count, and two infinities lie on a diagonal.
pub const SV_OP_ATAN2: u32 = 76;

/// Computes `SV_OP_ATAN2` of tensors, as `sv_operation`: The angle of the point (second operand, first operand), from -π to π. Signs of zeros count, and two infinities lie on a diagonal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_atan2(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_atan2", Operation::Atan2, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_ATAN2`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_atan2_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_atan2_in_place", Operation::Atan2, x, [y])
}

/// sin(πx) / (πx), 1 at 0, as in NumPy.
pub const SV_OP_SINC: u32 = 77;

/// Computes `SV_OP_SINC` of tensors, as `sv_operation`: sin(πx) / (πx), 1 at 0, as in NumPy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_sinc(x: u64, result: *mut u64) -> i32 {
    call("sv_sinc", Operation::Sinc, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SINC`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_sinc_in_place(x: u64) -> i32 {
    call_in_place("sv_sinc_in_place", Operation::Sinc, x, [])
}

/// The angle of a complex number, as `atan2` gives it; for real numbers, π below 0 and otherwise 0.
pub const SV_OP_ANGLE: u32 = 78;

/// Computes `SV_OP_ANGLE` of tensors, as `sv_operation`: The angle of a complex number, as `atan2` gives it; for real numbers, π below 0 and otherwise 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_angle(x: u64, result: *mut u64) -> i32 {
    call("sv_angle", Operation::Angle, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ANGLE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_angle_in_place(x: u64) -> i32 {
    call_in_place("sv_angle_in_place", Operation::Angle, x, [])
}

/// x to the power y, as in C: 1 if y is 0 or x is 1, NaN for a negative x with a fractional y. Integers wrap, and a negative y gives 0 except for x of 1 and -1, as in PyTorch (NumPy refuses it): 2 to the power -1 is 0. For complex numbers, e^(y ln x); the error bound holds up to |y ln x| of 6, and the error grows beyond.
pub const SV_OP_POW: u32 = 79;

/// Computes `SV_OP_POW` of tensors, as `sv_operation`: x to the power y, as in C: 1 if y is 0 or x is 1, NaN for a negative x with a fractional y. Integers wrap, and a negative y gives 0 except for x of 1 and -1, as in PyTorch (NumPy refuses it): 2 to the power -1 is 0. For complex numbers, e^(y ln x); the error bound holds up to |y ln x| of 6, and the error grows beyond.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_pow(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_pow", Operation::Pow, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_POW`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_pow_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_pow_in_place", Operation::Pow, x, [y])
}

/// The cube root, for negative numbers too; exact for cubes.
pub const SV_OP_CBRT: u32 = 80;

/// Computes `SV_OP_CBRT` of tensors, as `sv_operation`: The cube root, for negative numbers too; exact for cubes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_cbrt(x: u64, result: *mut u64) -> i32 {
    call("sv_cbrt", Operation::Cbrt, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_CBRT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_cbrt_in_place(x: u64) -> i32 {
    call_in_place("sv_cbrt_in_place", Operation::Cbrt, x, [])
}

/// The error function.
pub const SV_OP_ERF: u32 = 81;

/// Computes `SV_OP_ERF` of tensors, as `sv_operation`: The error function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_erf(x: u64, result: *mut u64) -> i32 {
    call("sv_erf", Operation::Erf, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ERF`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_erf_in_place(x: u64) -> i32 {
    call_in_place("sv_erf_in_place", Operation::Erf, x, [])
}

/// 1 - erf(x), accurate if that is small.
pub const SV_OP_ERFC: u32 = 82;

/// Computes `SV_OP_ERFC` of tensors, as `sv_operation`: 1 - erf(x), accurate if that is small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_erfc(x: u64, result: *mut u64) -> i32 {
    call("sv_erfc", Operation::Erfc, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_ERFC`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_erfc_in_place(x: u64) -> i32 {
    call_in_place("sv_erfc_in_place", Operation::Erfc, x, [])
}

/// x Φ(x) with the normal distribution function Φ, accurate for negative x too; -0 for minus infinity.
pub const SV_OP_GELU: u32 = 83;

/// Computes `SV_OP_GELU` of tensors, as `sv_operation`: x Φ(x) with the normal distribution function Φ, accurate for negative x too; -0 for minus infinity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gelu(x: u64, result: *mut u64) -> i32 {
    call("sv_gelu", Operation::Gelu, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_GELU`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_gelu_in_place(x: u64) -> i32 {
    call_in_place("sv_gelu_in_place", Operation::Gelu, x, [])
}

/// x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2, accurate for negative x too; -0 for minus infinity.
pub const SV_OP_GELU_TANH: u32 = 84;

/// Computes `SV_OP_GELU_TANH` of tensors, as `sv_operation`: x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2, accurate for negative x too; -0 for minus infinity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gelu_tanh(x: u64, result: *mut u64) -> i32 {
    call("sv_gelu_tanh", Operation::GeluTanh, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_GELU_TANH`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_gelu_tanh_in_place(x: u64) -> i32 {
    call_in_place("sv_gelu_tanh_in_place", Operation::GeluTanh, x, [])
}

/// ln |Γ(x)|; infinite at 0 and negative integers. Below 0 the error is relative to the larger of 1 and ln Γ(|x|).
pub const SV_OP_LGAMMA: u32 = 85;

/// Computes `SV_OP_LGAMMA` of tensors, as `sv_operation`: ln |Γ(x)|; infinite at 0 and negative integers. Below 0 the error is relative to the larger of 1 and ln Γ(|x|).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_lgamma(x: u64, result: *mut u64) -> i32 {
    call("sv_lgamma", Operation::Lgamma, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_LGAMMA`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_lgamma_in_place(x: u64) -> i32 {
    call_in_place("sv_lgamma_in_place", Operation::Lgamma, x, [])
}

/// ln(x / (1 - x)); infinite at 0 and 1, NaN beyond.
pub const SV_OP_LOGIT: u32 = 86;

/// Computes `SV_OP_LOGIT` of tensors, as `sv_operation`: ln(x / (1 - x)); infinite at 0 and 1, NaN beyond.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_logit(x: u64, result: *mut u64) -> i32 {
    call("sv_logit", Operation::Logit, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_LOGIT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_logit_in_place(x: u64) -> i32 {
    call_in_place("sv_logit_in_place", Operation::Logit, x, [])
}

/// ln(e^x + e^y) without overflow; near 0 the error is relative to the operands.
pub const SV_OP_LOG_ADD_EXP: u32 = 87;

/// Computes `SV_OP_LOG_ADD_EXP` of tensors, as `sv_operation`: ln(e^x + e^y) without overflow; near 0 the error is relative to the operands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_log_add_exp(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_log_add_exp", Operation::LogAddExp, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_LOG_ADD_EXP`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_log_add_exp_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_log_add_exp_in_place", Operation::LogAddExp, x, [y])
}

/// x ln(y); 0 if x is 0 and y is not NaN.
pub const SV_OP_XLOGY: u32 = 88;

/// Computes `SV_OP_XLOGY` of tensors, as `sv_operation`: x ln(y); 0 if x is 0 and y is not NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_xlogy(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_xlogy", Operation::Xlogy, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_XLOGY`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_xlogy_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_xlogy_in_place", Operation::Xlogy, x, [y])
}

/// x ln(1 + y); 0 if x is 0 and y is not NaN.
pub const SV_OP_XLOG1PY: u32 = 89;

/// Computes `SV_OP_XLOG1PY` of tensors, as `sv_operation`: x ln(1 + y); 0 if x is 0 and y is not NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_xlog1py(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_xlog1py", Operation::Xlog1py, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_XLOG1PY`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_xlog1py_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_xlog1py_in_place", Operation::Xlog1py, x, [y])
}

/// 0 below 0, 1 above, y at 0; NaN for NaN.
pub const SV_OP_HEAVISIDE: u32 = 90;

/// Computes `SV_OP_HEAVISIDE` of tensors, as `sv_operation`: 0 below 0, 1 above, y at 0; NaN for NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_heaviside(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_heaviside", Operation::Heaviside, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_HEAVISIDE`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_heaviside_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_heaviside_in_place", Operation::Heaviside, x, [y])
}

/// The next number of the dtype after x towards y; y if they are equal.
pub const SV_OP_NEXT_AFTER: u32 = 91;

/// Computes `SV_OP_NEXT_AFTER` of tensors, as `sv_operation`: The next number of the dtype after x towards y; y if they are equal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_next_after(x: u64, y: u64, result: *mut u64) -> i32 {
    call("sv_next_after", Operation::NextAfter, [x, y], result)
}

/// Replaces the elements of `x` by `SV_OP_NEXT_AFTER`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_next_after_in_place(x: u64, y: u64) -> i32 {
    call_in_place("sv_next_after_in_place", Operation::NextAfter, x, [y])
}

/// True if the sign bit is set, for -0 too.
pub const SV_OP_SIGNBIT: u32 = 92;

/// Computes `SV_OP_SIGNBIT` of tensors, as `sv_operation`: True if the sign bit is set, for -0 too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_signbit(x: u64, result: *mut u64) -> i32 {
    call("sv_signbit", Operation::Signbit, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_SIGNBIT`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_signbit_in_place(x: u64) -> i32 {
    call_in_place("sv_signbit_in_place", Operation::Signbit, x, [])
}

/// x · π/180, with the constant rounded to nearest.
pub const SV_OP_RADIANS: u32 = 93;

/// Computes `SV_OP_RADIANS` of tensors, as `sv_operation`: x · π/180, with the constant rounded to nearest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_radians(x: u64, result: *mut u64) -> i32 {
    call("sv_radians", Operation::Radians, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_RADIANS`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_radians_in_place(x: u64) -> i32 {
    call_in_place("sv_radians_in_place", Operation::Radians, x, [])
}

/// x · 180/π, with the constant rounded to nearest.
pub const SV_OP_DEGREES: u32 = 94;

/// Computes `SV_OP_DEGREES` of tensors, as `sv_operation`: x · 180/π, with the constant rounded to nearest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_degrees(x: u64, result: *mut u64) -> i32 {
    call("sv_degrees", Operation::Degrees, [x], result)
}

/// Replaces the elements of `x` by `SV_OP_DEGREES`, as `sv_operation_in_place`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_degrees_in_place(x: u64) -> i32 {
    call_in_place("sv_degrees_in_place", Operation::Degrees, x, [])
}
