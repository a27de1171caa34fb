//! Exact numbers a + b phi with rational a and b, as structs of the caller.

use std::cmp::Ordering;
use std::ffi::c_char;

use super::super::arguments::{out, slice, write_text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::exact::{
    SV_SRT_GOLDEN_ADD, SV_SRT_GOLDEN_CONJUGATE, SV_SRT_GOLDEN_MUL, SV_SRT_GOLDEN_NEG,
    SV_SRT_GOLDEN_RECURSION, SV_SRT_GOLDEN_RECURSION_INVERSE, SV_SRT_GOLDEN_SUB,
};
use super::number;
use crate::srt::{GoldenExact, GoldenInteger, Rational};

/// x/y, of exact numbers alone.
pub const SV_SRT_GOLDEN_DIV: i32 = 8;
/// 1/x, of exact numbers alone.
pub const SV_SRT_GOLDEN_INVERSE: i32 = 9;

/// An integer of 128 bits: high 2^64 + low. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct sv_srt_integer {
    /// The lower 64 bits.
    pub low: u64,
    /// The upper 64 bits, with the sign; -1 for small negative numbers.
    pub high: i64,
}

/// A fraction. Results are in lowest terms with a denominator above 0; operands need only a denominator other than 0. The layout
/// is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct sv_srt_rational {
    /// The numerator.
    pub numerator: sv_srt_integer,
    /// The denominator.
    pub denominator: sv_srt_integer,
}

/// A number a + b phi. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct sv_srt_exact {
    /// The multiple of 1.
    pub a: sv_srt_rational,
    /// The multiple of phi.
    pub b: sv_srt_rational,
}

impl From<i128> for sv_srt_integer {
    fn from(integer: i128) -> sv_srt_integer {
        sv_srt_integer { low: integer as u64, high: (integer >> 64) as i64 }
    }
}

impl sv_srt_integer {
    fn integer(self) -> i128 {
        i128::from(self.high) << 64 | i128::from(self.low)
    }
}

impl From<Rational> for sv_srt_rational {
    fn from(rational: Rational) -> sv_srt_rational {
        sv_srt_rational { numerator: rational.numerator().into(), denominator: rational.denominator().into() }
    }
}

impl sv_srt_rational {
    fn rational(self) -> Result<Rational> {
        Ok(Rational::new(self.numerator.integer(), self.denominator.integer())?)
    }
}

impl From<GoldenExact> for sv_srt_exact {
    fn from(number: GoldenExact) -> sv_srt_exact {
        sv_srt_exact { a: number.a().into(), b: number.b().into() }
    }
}

/// Returns the number at a pointer.
///
/// # Safety
///
/// `number` is NULL or points to a struct that nobody writes during the call.
pub(super) unsafe fn exact(number: *const sv_srt_exact, name: &str) -> Result<GoldenExact> {
    match slice(number, 1, name)? {
        [number] => Ok(GoldenExact::new(number.a.rational()?, number.b.rational()?)),
        _ => Err(Failure::argument(name, "NULL", "a pointer")),
    }
}

/// Computes a_numerator/a_denominator + b_numerator/b_denominator phi in lowest terms. `SV_ERROR_DIVISION_BY_ZERO` for a
/// denominator of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_create(
    a_numerator: i64,
    a_denominator: i64,
    b_numerator: i64,
    b_denominator: i64,
    result: *mut sv_srt_exact,
) -> i32 {
    number("sv_srt_exact_create", result, || {
        let a = Rational::new(a_numerator.into(), a_denominator.into())?;
        let b = Rational::new(b_numerator.into(), b_denominator.into())?;
        Ok(GoldenExact::new(a, b).into())
    })
}

/// Computes one of `SV_SRT_GOLDEN_...` exactly. `SV_ERROR_OVERFLOW` if 128 bits do not hold a numerator or a denominator,
/// `SV_ERROR_DIVISION_BY_ZERO` for a quotient by 0. Operations of one operand do not read `y`. `result` may be an operand.
///
/// # Safety
///
/// `x`, `y` and `result` each point to a struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_operation(
    operation: i32,
    x: *const sv_srt_exact,
    y: *const sv_srt_exact,
    result: *mut sv_srt_exact,
) -> i32 {
    number("sv_srt_exact_operation", result, || {
        let x = exact(x, "x")?;
        let y = || exact(y, "y");
        let number = match operation {
            SV_SRT_GOLDEN_ADD => x.checked_add(y()?),
            SV_SRT_GOLDEN_SUB => x.checked_sub(y()?),
            SV_SRT_GOLDEN_MUL => x.checked_mul(y()?),
            SV_SRT_GOLDEN_DIV => x.checked_div(y()?),
            SV_SRT_GOLDEN_NEG => x.checked_neg(),
            SV_SRT_GOLDEN_CONJUGATE => x.conjugate(),
            SV_SRT_GOLDEN_INVERSE => x.inverse(),
            SV_SRT_GOLDEN_RECURSION => x.checked_mul(GoldenExact::PHI),
            // 1/φ = φ - 1.
            SV_SRT_GOLDEN_RECURSION_INVERSE => x.checked_mul((-1, 1).into()),
            other => return Err(Failure::argument("operation", other, "one of SV_SRT_GOLDEN_...")),
        }?;
        Ok(number.into())
    })
}

/// Computes x to an integer power; a power of 0 is 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_pow(
    x: *const sv_srt_exact,
    exponent: i32,
    result: *mut sv_srt_exact,
) -> i32 {
    number("sv_srt_exact_pow", result, || Ok(exact(x, "x")?.checked_pow(exponent)?.into()))
}

/// Computes phi^n = F(n-1) + F(n) phi; `SV_ERROR_OVERFLOW` if 128 bits do not hold them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_phi_pow(n: i32, result: *mut sv_srt_exact) -> i32 {
    number("sv_srt_exact_phi_pow", result, || Ok(GoldenExact::phi_pow(n)?.into()))
}

/// Computes a^2 + a b - b^2 of a number a + b phi, its product with the conjugate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_norm(x: *const sv_srt_exact, result: *mut sv_srt_rational) -> i32 {
    number("sv_srt_exact_norm", result, || Ok(exact(x, "x")?.norm()?.into()))
}

/// Computes 2 a + b of a number a + b phi, its sum with the conjugate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_trace(x: *const sv_srt_exact, result: *mut sv_srt_rational) -> i32 {
    number("sv_srt_exact_trace", result, || Ok(exact(x, "x")?.trace()?.into()))
}

/// Compares two numbers exactly: `*order` gets -1 for x < y, 0 for equal numbers and 1 for x > y.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_compare(
    x: *const sv_srt_exact,
    y: *const sv_srt_exact,
    order: *mut i32,
) -> i32 {
    guard::call("sv_srt_exact_compare", || {
        let (order, x, y) = (out(order, "order")?, exact(x, "x")?, exact(y, "y")?);
        order.write(match x.cmp(&y) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        });
        Ok(())
    })
}

/// Computes a + b phi as a double, within a few units in the last place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_value(x: *const sv_srt_exact, result: *mut f64) -> i32 {
    number("sv_srt_exact_value", result, || Ok(exact(x, "x")?.to_f64()))
}

/// Writes the coefficients of a number whose a and b are integers of 64 bits, as tensors of points have them. Other numbers are
/// `SV_ERROR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_integers(x: *const sv_srt_exact, a: *mut i64, b: *mut i64) -> i32 {
    guard::call("sv_srt_exact_integers", || {
        let (a, b, x) = (out(a, "a")?, out(b, "b")?, exact(x, "x")?);
        let point = GoldenInteger::try_from(x)?;
        a.write(point.a);
        b.write(point.b);
        Ok(())
    })
}

/// Writes a number as a text in UTF-8, such as `3/5 - 1/5 φ`. `text`, `capacity` and `length` are as for `sv_library_report`.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_exact_text(
    x: *const sv_srt_exact,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_srt_exact_text", || write_text(&exact(x, "x")?.to_string(), text, capacity, length))
}
