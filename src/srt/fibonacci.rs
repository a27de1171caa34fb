//! Fibonacci and Lucas numbers, and the Fibonacci numbers modulo m.
//!
//! F(0) = 0, F(1) = 1, F(k+1) = F(k) + F(k-1), and L(k) = 2 F(k+1) - F(k). At negative indices F(-k) = (-1)^(k+1) F(k) and
//! L(-k) = (-1)^k L(k). All are computed by fast doubling:
//!
//! ```text
//! F(2m) = F(m) (2 F(m+1) - F(m))        F(2m+1) = F(m)² + F(m+1)²
//! ```
//!
//! The batches are fused expressions of unrolled doublings, so they are exact and equal on the CPU and every device. In f64
//! the same doublings are exact up to F(78) and L(76), and within k · 4e-16 of the exact number beyond.
//!
//! Tests: `tests/srt/fibonacci.rs`.

use std::sync::LazyLock;

use super::checked::Checked;
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Device, Fused, Tensor};
use crate::types::DType;

/// The largest index whose F fits i128.
const MAX_INDEX: u32 = 184;
/// The largest indices whose F and L fit i64.
const LARGEST_I64: [u64; 2] = [92, 90];
/// Bits of the largest index of a batch of i64, and of f64.
const BITS_I64: u32 = 7;
const BITS_F64: u32 = 11;

/// Returns F(k) and F(k+1), for k up to 184.
pub(super) fn pair(k: u32) -> (u128, u128) {
    (0..k).fold((0, 1), |(low, high), _| (high, low + high))
}

fn overflow(operation: &'static str, k: i32, type_name: &str) -> Error {
    let symbol = if operation == "lucas" { "L" } else { "F" };
    Error::overflow(operation, format!("{symbol}({k})"), format!("a number that {type_name} holds"))
}

/// Returns F(k) as an integer type: up to k = 92 as i64, 93 as u64, and 184 as i128.
///
/// ```
/// use selvedge::srt::{fibonacci, lucas};
/// assert_eq!(fibonacci::<i64>(92)?, 7540113804746346429);
/// assert_eq!((fibonacci::<i64>(-2)?, lucas::<i64>(10)?), (-1, 123));
/// assert!(fibonacci::<i64>(93).is_err());
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Overflow`] for a number that the type does not hold.
pub fn fibonacci<T: TryFrom<i128>>(k: i32) -> Result<T> {
    let magnitude = k.unsigned_abs();
    let number = (magnitude <= MAX_INDEX).then(|| pair(magnitude).0 as i128);
    let is_negative = k < 0 && magnitude.is_multiple_of(2);
    converted("fibonacci", k, number.map(|number| if is_negative { -number } else { number }))
}

/// Returns L(k) as an integer type: up to k = 90 as i64, 92 as u64, and 182 as i128.
///
/// # Errors
///
/// As [`fibonacci`].
pub fn lucas<T: TryFrom<i128>>(k: i32) -> Result<T> {
    let magnitude = k.unsigned_abs();
    let number = (magnitude <= MAX_INDEX).then(|| pair(magnitude)).and_then(|(at, above)| {
        // L(k) = 2 F(k+1) - F(k), in an order that stays within u128.
        i128::try_from((above - at).checked_add(above)?).ok()
    });
    let is_negative = k < 0 && magnitude % 2 == 1;
    converted("lucas", k, number.map(|number| if is_negative { -number } else { number }))
}

fn converted<T: TryFrom<i128>>(operation: &'static str, k: i32, number: Option<i128>) -> Result<T> {
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| overflow(operation, k, std::any::type_name::<T>()))
}

/// Returns F(k) rounded to f64, infinite where f64 does not reach.
pub fn fibonacci_f64(k: i32) -> f64 {
    let [at, _] = doubled_f64(k.unsigned_abs(), INFINITE_FROM[0]);
    if k < 0 && k % 2 == 0 { -at } else { at }
}

/// Returns L(k) rounded to f64, infinite where f64 does not reach.
pub fn lucas_f64(k: i32) -> f64 {
    let [at, above] = doubled_f64(k.unsigned_abs(), INFINITE_FROM[1]);
    let number = 2.0 * above - at;
    if k % 2 == 0 || k > 0 { number } else { -number }
}

/// F(k) and F(k+1) by the steps of the batches, so that the bits are theirs.
fn doubled_f64(k: u32, infinite_from: i64) -> [f64; 2] {
    let k = i64::from(k).min(infinite_from);
    (0..BITS_F64).rev().fold([0.0, 1.0], |[at, above], bit| {
        let (even, odd) = (at * (2.0 * above - at), at * at + above * above);
        if k >> bit & 1 == 1 { [odd, even + odd] } else { [even, odd] }
    })
}

/// Indices from which F and L are infinite in f64. F of the second is finite, so 2 F(k+1) - F(k) is a number.
const INFINITE_FROM: [i64; 2] = [1477, 1476];

/// F(k) and F(k+1) as this dtype, of an index as i64.
fn doubled<'g>(k: Expr<'g>, bits: u32, dtype: DType) -> [Expr<'g>; 2] {
    let bit = |bit: u32| (k >> i64::from(bit)) & 1i64;
    let at = bit(bits - 1).cast(dtype);
    let first = [at, k.bit_and(0i64).cast(dtype) + 1];
    (0..bits - 1).rev().fold(first, |[at, above], bit_index| {
        let (even, odd) = (at * (above + above - at), at * at + above * above);
        let is_odd = bit(bit_index).eq(1);
        [is_odd.choose(odd, even), is_odd.choose(even + odd, odd)]
    })
}

/// The numbers of a batch with the flag of overflow.
fn exact(k: Expr<'_>, is_lucas: bool) -> [Expr<'_>; 2] {
    let k = k.cast(DType::I64);
    let magnitude = k.abs();
    let [at, above] = doubled(magnitude, BITS_I64, DType::I64);
    let overflow = magnitude.cast(DType::U64).gt(LARGEST_I64[usize::from(is_lucas)]);
    [signed(k, at, above, is_lucas), overflow]
}

fn rounded(k: Expr<'_>, is_lucas: bool) -> Expr<'_> {
    let k = k.cast(DType::I64);
    let most = INFINITE_FROM[usize::from(is_lucas)];
    let magnitude = k.clamp(-most, most).abs();
    let [at, above] = doubled(magnitude, BITS_F64, DType::F64);
    signed(k, at, above, is_lucas)
}

fn signed<'g>(k: Expr<'g>, at: Expr<'g>, above: Expr<'g>, is_lucas: bool) -> Expr<'g> {
    let number = if is_lucas { above + above - at } else { at };
    let is_negative = k.lt(0).logical_and((k & 1i64).eq(i64::from(is_lucas)));
    is_negative.choose(-number, number)
}

/// Checks that a batch has indices.
fn check_indices(operation: &'static str, k: &Tensor) -> Result<()> {
    if !matches!(k.dtype(), DType::I32 | DType::I64) {
        let (wanted, found) = ("indices of i32 or i64".to_owned(), k.dtype().to_string());
        return Err(Error::DTypeMismatch { operation, wanted, found });
    }
    Ok(())
}

/// Returns F(k) of each index (i32 or i64) as i64. Indices beyond 92 overflow.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for another dtype; those of a fused run.
pub fn fibonacci_batch(k: &Tensor) -> Result<Checked> {
    static EXPRESSION: LazyLock<Fused<1, 2>> = LazyLock::new(|| Fused::with_outputs(|[k]| exact(k, false)));
    check_indices("fibonacci", k)?;
    let [values, overflow] = EXPRESSION.run_all([k])?;
    Ok(Checked::new("fibonacci", values, overflow))
}

/// Returns L(k) of each index (i32 or i64) as i64. Indices beyond 90 overflow.
///
/// # Errors
///
/// As [`fibonacci_batch`].
pub fn lucas_batch(k: &Tensor) -> Result<Checked> {
    static EXPRESSION: LazyLock<Fused<1, 2>> = LazyLock::new(|| Fused::with_outputs(|[k]| exact(k, true)));
    check_indices("lucas", k)?;
    let [values, overflow] = EXPRESSION.run_all([k])?;
    Ok(Checked::new("lucas", values, overflow))
}

/// Returns [`fibonacci_f64`] of each index (i32 or i64).
///
/// # Errors
///
/// As [`fibonacci_batch`].
pub fn fibonacci_batch_f64(k: &Tensor) -> Result<Tensor> {
    static EXPRESSION: LazyLock<Fused<1>> = LazyLock::new(|| Fused::new(|[k]| rounded(k, false)));
    check_indices("fibonacci", k)?;
    EXPRESSION.run([k])
}

/// Returns [`lucas_f64`] of each index (i32 or i64).
///
/// # Errors
///
/// As [`fibonacci_batch`].
pub fn lucas_batch_f64(k: &Tensor) -> Result<Tensor> {
    static EXPRESSION: LazyLock<Fused<1>> = LazyLock::new(|| Fused::new(|[k]| rounded(k, true)));
    check_indices("lucas", k)?;
    EXPRESSION.run([k])
}

/// Returns F(0) to F(n-1) as i64 or f64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for another dtype, [`Error::Overflow`] for more than 93 numbers of i64; those of
/// [`fibonacci_batch`].
pub fn fibonacci_sequence(n: usize, dtype: DType, device: &Device) -> Result<Tensor> {
    const OPERATION: &str = "fibonacci_sequence";
    if !matches!(dtype, DType::I64 | DType::F64) {
        let (wanted, found) = ("i64 or f64".to_owned(), dtype.to_string());
        return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
    }
    if dtype == DType::I64 && n as u64 > LARGEST_I64[0] + 1 {
        return Err(Error::overflow(OPERATION, format!("{n} numbers"), "at most 93 numbers of i64"));
    }
    let indices = Tensor::arange(0i64, n, 1i64, DType::I64, device)?;
    match dtype {
        DType::F64 => fibonacci_batch_f64(&indices),
        _ => Ok(fibonacci_batch(&indices)?.into_values()),
    }
}
