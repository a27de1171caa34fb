//! Integers, exact numbers and snapping.

use super::super::arguments::slice;
use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::super::tensor::{device, dtype, give, tensor};
use super::{give_all, number};
use crate::srt::{self, Checked, GoldenTensor};
use crate::tensor::Tensor;

/// x + y.
pub const SV_SRT_GOLDEN_ADD: i32 = 1;
/// x - y.
pub const SV_SRT_GOLDEN_SUB: i32 = 2;
/// x y.
pub const SV_SRT_GOLDEN_MUL: i32 = 3;
/// -x.
pub const SV_SRT_GOLDEN_NEG: i32 = 4;
/// The conjugate (a + b, -b).
pub const SV_SRT_GOLDEN_CONJUGATE: i32 = 5;
/// phi x.
pub const SV_SRT_GOLDEN_RECURSION: i32 = 6;
/// x/phi.
pub const SV_SRT_GOLDEN_RECURSION_INVERSE: i32 = 7;

pub(super) fn golden(a: u64, b: u64, names: [&str; 2]) -> Result<GoldenTensor> {
    Ok(GoldenTensor::new(tensor(a, names[0])?, tensor(b, names[1])?)?)
}

fn checked(result: Checked) -> [Tensor; 2] {
    [result.values().clone(), result.overflow().clone()]
}

pub(super) fn points(points: &GoldenTensor) -> [Tensor; 2] {
    [points.a().clone(), points.b().clone()]
}

/// Computes phi^n of |n| up to 1474.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_phi_pow(n: i32, result: *mut f64) -> i32 {
    number("sv_srt_phi_pow", result, || Ok(srt::phi_pow(n)?))
}

/// Computes phi^n as a float, of |n| up to 184.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_phi_pow_f32(n: i32, result: *mut f32) -> i32 {
    number("sv_srt_phi_pow_f32", result, || Ok(srt::phi_pow_f32(n)?))
}

/// Computes the Fibonacci number F(k); `SV_ERROR_OVERFLOW` if 64 bits do not hold it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_fibonacci(k: i32, result: *mut i64) -> i32 {
    number("sv_srt_fibonacci", result, || Ok(srt::fibonacci(k)?))
}

/// Computes the Lucas number L(k); `SV_ERROR_OVERFLOW` if 64 bits do not hold it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_lucas(k: i32, result: *mut i64) -> i32 {
    number("sv_srt_lucas", result, || Ok(srt::lucas(k)?))
}

/// Computes F(k) as a double, infinite where a double does not reach.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_fibonacci_f64(k: i32, result: *mut f64) -> i32 {
    number("sv_srt_fibonacci_f64", result, || Ok(srt::fibonacci_f64(k)))
}

/// Computes L(k) as a double, infinite where a double does not reach.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_lucas_f64(k: i32, result: *mut f64) -> i32 {
    number("sv_srt_lucas_f64", result, || Ok(srt::lucas_f64(k)))
}

/// Computes F(value) modulo `modulus`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_fib_mod(value: u64, modulus: u64, result: *mut u64) -> i32 {
    number("sv_srt_fib_mod", result, || Ok(srt::fib_mod(value, modulus)?))
}

/// Computes the period of the Fibonacci numbers modulo `modulus`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_pisano(modulus: u64, result: *mut u64) -> i32 {
    number("sv_srt_pisano", result, || Ok(srt::pisano(modulus)?))
}

/// Computes floor(phi n) exactly.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_winding_recursion(n: i64, result: *mut i64) -> i32 {
    number("sv_srt_winding_recursion", result, || Ok(srt::winding_recursion(n)?))
}

/// Computes floor(phi n) of each element exactly. `overflow` gets a tensor that is true at results which 64 bits do not
/// hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_winding_recursion_batch(
    n: sv_tensor,
    result: *mut sv_tensor,
    overflow: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_winding_recursion_batch", [(result, "result"), (overflow, "overflow")], || {
        Ok(checked(srt::winding_recursion_batch(&tensor(n, "n")?)?))
    })
}

/// Computes floor(n/phi) exactly.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_winding_recursion_inverse(n: i64, result: *mut i64) -> i32 {
    number("sv_srt_winding_recursion_inverse", result, || Ok(srt::winding_recursion_inverse(n)?))
}

/// Computes floor(n/phi) of each element exactly. `overflow` gets a tensor that is true at results which 64 bits do not
/// hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_winding_recursion_inverse_batch(
    n: sv_tensor,
    result: *mut sv_tensor,
    overflow: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_winding_recursion_inverse_batch", [(result, "result"), (overflow, "overflow")], || {
        Ok(checked(srt::winding_recursion_inverse_batch(&tensor(n, "n")?)?))
    })
}

/// Computes F(k) of each index as an integer. `overflow` gets a tensor that is true at results which 64 bits do not
/// hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_fibonacci_batch(
    k: sv_tensor,
    result: *mut sv_tensor,
    overflow: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_fibonacci_batch", [(result, "result"), (overflow, "overflow")], || {
        Ok(checked(srt::fibonacci_batch(&tensor(k, "k")?)?))
    })
}

/// Computes F(k) of each index as a double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_fibonacci_batch_f64(k: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_fibonacci_batch_f64", result, || Ok(srt::fibonacci_batch_f64(&tensor(k, "k")?)?))
}

/// Computes L(k) of each index as an integer. `overflow` gets a tensor that is true at results which 64 bits do not
/// hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_lucas_batch(
    k: sv_tensor,
    result: *mut sv_tensor,
    overflow: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_lucas_batch", [(result, "result"), (overflow, "overflow")], || {
        Ok(checked(srt::lucas_batch(&tensor(k, "k")?)?))
    })
}

/// Computes L(k) of each index as a double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_lucas_batch_f64(k: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_lucas_batch_f64", result, || Ok(srt::lucas_batch_f64(&tensor(k, "k")?)?))
}

/// Computes F(k) modulo `modulus` of each index of type `SV_DTYPE_U64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_fib_mod_batch(k: sv_tensor, modulus: u64, result: *mut sv_tensor) -> i32 {
    give("sv_srt_fib_mod_batch", result, || Ok(srt::fib_mod_batch(&tensor(k, "k")?, modulus)?))
}

/// Computes the first `count` Fibonacci numbers, as `SV_DTYPE_I64` or `SV_DTYPE_F64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_fibonacci_sequence(
    count: usize,
    dtype: i32,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_fibonacci_sequence", result, || {
        Ok(srt::fibonacci_sequence(count, self::dtype(dtype)?, &self::device(device)?)?)
    })
}

/// Computes phi v.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_recursion(v: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_recursion", result, || Ok(srt::golden_recursion(&tensor(v, "v")?)?))
}

/// Computes v/phi.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_recursion_inverse(v: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_recursion_inverse", result, || Ok(srt::golden_recursion_inverse(&tensor(v, "v")?)?))
}

/// Computes the generation of a row of 4 windings: 0 of zeros, otherwise 1 + the largest k with phi^k <= max |n_i|.
///
/// # Safety
///
/// `row` points to 4 numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_generation_of_row(row: *const i64, result: *mut i32) -> i32 {
    number("sv_srt_generation_of_row", result, || match slice(row, 4, "row")? {
        [first, second, third, fourth] => Ok(srt::generation([*first, *second, *third, *fourth])),
        _ => Err(Failure::argument("row", "NULL", "a pointer")),
    })
}

/// Computes the generation of each row of 4 windings: 0 of zeros, otherwise 1 + the largest k with phi^k <= max |n_i|.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_generation_batch(rows: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_generation_batch", result, || Ok(srt::generation_batch(&tensor(rows, "rows")?)?))
}

/// Computes one of `SV_SRT_GOLDEN_...` except `SV_SRT_GOLDEN_DIV` and `SV_SRT_GOLDEN_INVERSE` on numbers a + b phi, each a
/// pair of `SV_DTYPE_I64` tensors. Operations of one operand do not use `y_a` and `y_b`. `overflow` gets a tensor that is true at results which 64 bits do not hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_operation(
    operation: i32,
    x_a: sv_tensor,
    x_b: sv_tensor,
    y_a: sv_tensor,
    y_b: sv_tensor,
    result_a: *mut sv_tensor,
    result_b: *mut sv_tensor,
    overflow: *mut sv_tensor,
) -> i32 {
    give_all(
        "sv_srt_golden_operation",
        [(result_a, "result_a"), (result_b, "result_b"), (overflow, "overflow")],
        || {
            let x = golden(x_a, x_b, ["x_a", "x_b"])?;
            let y = || golden(y_a, y_b, ["y_a", "y_b"]);
            let result = match operation {
                SV_SRT_GOLDEN_ADD => x.add(&y()?),
                SV_SRT_GOLDEN_SUB => x.sub(&y()?),
                SV_SRT_GOLDEN_MUL => x.mul(&y()?),
                SV_SRT_GOLDEN_NEG => x.neg(),
                SV_SRT_GOLDEN_CONJUGATE => x.conjugate(),
                SV_SRT_GOLDEN_RECURSION => x.recursion(),
                SV_SRT_GOLDEN_RECURSION_INVERSE => x.recursion_inverse(),
                other => {
                    let wanted = "an operation of SV_SRT_GOLDEN_... with integer results";
                    return Err(Failure::argument("operation", other, wanted));
                }
            }?;
            let [a, b] = points(result.values());
            Ok([a, b, result.overflow().clone()])
        },
    )
}

/// Computes a^2 + a b - b^2 of numbers a + b phi. `overflow` gets a tensor that is true at results which 64 bits do not
/// hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_norm(
    a: sv_tensor,
    b: sv_tensor,
    result: *mut sv_tensor,
    overflow: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_golden_norm", [(result, "result"), (overflow, "overflow")], || {
        Ok(checked(golden(a, b, ["a", "b"])?.norm()?))
    })
}

/// Computes 2 a + b of numbers a + b phi. `overflow` gets a tensor that is true at results which 64 bits do not hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_trace(
    a: sv_tensor,
    b: sv_tensor,
    result: *mut sv_tensor,
    overflow: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_golden_trace", [(result, "result"), (overflow, "overflow")], || {
        Ok(checked(golden(a, b, ["a", "b"])?.trace()?))
    })
}

/// Computes a + b phi as doubles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_values(a: sv_tensor, b: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_values", result, || Ok(golden(a, b, ["a", "b"])?.values()?))
}

/// Finds the a + b phi with |a|, |b| <= bound that is nearest to each double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_snap(
    values: sv_tensor,
    bound: i64,
    result_a: *mut sv_tensor,
    result_b: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_snap", [(result_a, "result_a"), (result_b, "result_b")], || {
        Ok(points(&srt::snap(&tensor(values, "values")?, bound)?))
    })
}

/// Computes the values minus their points.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_snap_residual(
    values: sv_tensor,
    a: sv_tensor,
    b: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_snap_residual", result, || {
        Ok(srt::snap_residual(&tensor(values, "values")?, &golden(a, b, ["a", "b"])?)?)
    })
}

/// Computes the square root of the sum of squared residuals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_snap_distance(
    values: sv_tensor,
    a: sv_tensor,
    b: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_snap_distance", result, || {
        Ok(srt::snap_distance(&tensor(values, "values")?, &golden(a, b, ["a", "b"])?)?)
    })
}
