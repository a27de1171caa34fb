//! Fibonacci numbers modulo m, and their period.
//!
//! The period π(m) is the least p > 0 with F(p) = 0 and F(p+1) = 1 modulo m; π(m) <= 6m. It is found from a multiple: for
//! a prime p, π(p) divides 3 (p = 2), 20 (p = 5), p - 1 (p = ±1 modulo 5) or 2 (p + 1) (the others), π(pᵉ) divides
//! p^(e-1) times that, and π(m) is the least common multiple over the powers of primes in m. Prime factors of the multiple
//! are then removed as long as it stays a period.

use std::sync::LazyLock;

use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

const OPERATION: &str = "fib_mod";

/// Returns F(k) modulo m.
///
/// ```
/// use selvedge::srt::fib_mod;
/// assert_eq!(fib_mod(1_000_000_000_000, 1_000_000_007)?, 730_695_249);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for m = 0.
pub fn fib_mod(k: u64, m: u64) -> Result<u64> {
    check_modulus(OPERATION, m)?;
    Ok(pair_mod(k.into(), m).0)
}

fn check_modulus(operation: &'static str, m: u64) -> Result<()> {
    if m == 0 {
        return Err(Error::invalid(operation, "m = 0", "a modulus of at least 1"));
    }
    Ok(())
}

/// Returns F(k) and F(k+1) modulo m.
fn pair_mod(k: u128, m: u64) -> (u64, u64) {
    let m = u128::from(m);
    let (at, above) = (0..128 - k.leading_zeros()).rev().fold((0, 1 % m), |(at, above), bit| {
        let (even, odd) = (at * ((2 * above + m - at) % m) % m, (at * at % m + above * above % m) % m);
        if k >> bit & 1 == 1 { (odd, (even + odd) % m) } else { (even, odd) }
    });
    (at as u64, above as u64)
}

/// Residues of a modulus m that each run gives as d = m · 2^shift with its highest bit set, and the reciprocal
/// floor((2^128 - 1) / d) - 2^64 (Möller and Granlund, "Improved division by invariant integers").
struct Modulus<'g> {
    divisor: Expr<'g>,
    reciprocal: Expr<'g>,
    shift: Expr<'g>,
    modulus: Expr<'g>,
    /// 1: a literal for each use would be a parameter for each.
    unity: Expr<'g>,
}

impl<'g> Modulus<'g> {
    fn product(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        let x = x << self.shift;
        let (high, low) = (x.mul_high(y), x * y);
        let fraction = self.reciprocal * high;
        let fraction_and_low = fraction + low;
        let carry = fraction_and_low.lt(fraction).cast(DType::U64);
        let quotient = self.reciprocal.mul_high(high) + high + carry + self.unity;
        let rest = low - quotient * self.divisor;
        let rest = rest.gt(fraction_and_low).choose(rest + self.divisor, rest);
        let rest = rest.ge(self.divisor).choose(rest - self.divisor, rest);
        rest >> self.shift
    }

    fn sum(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        let sum = x + y;
        sum.lt(x).logical_or(sum.ge(self.modulus)).choose(sum - self.modulus, sum)
    }

    fn difference(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        x.lt(y).choose(x - y + self.modulus, x - y)
    }
}

fn residue<'g>([k, divisor, reciprocal, shift]: [Expr<'g>; 4]) -> Expr<'g> {
    let zero = k.bit_and(0u64);
    let modulus = Modulus { divisor, reciprocal, shift, modulus: divisor >> shift, unity: zero + 1u64 };
    let unity = modulus.modulus.gt(modulus.unity).choose(modulus.unity, zero);
    let highest = zero + 63u64;
    let (at, ..) = (0..64).fold((zero, unity, k), |(at, above, bits), _| {
        let twice = modulus.difference(modulus.sum(above, above), at);
        let even = modulus.product(at, twice);
        let odd = modulus.sum(modulus.product(at, at), modulus.product(above, above));
        let is_odd = (bits >> highest).eq(modulus.unity);
        (is_odd.choose(odd, even), is_odd.choose(modulus.sum(even, odd), odd), bits + bits)
    });
    at
}

/// Returns F(k) modulo m of each index k of u64.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for m = 0, [`Error::DTypeMismatch`] for another dtype; those of a fused run.
pub fn fib_mod_batch(k: &Tensor, m: u64) -> Result<Tensor> {
    static EXPRESSION: LazyLock<Fused<4>> = LazyLock::new(|| Fused::new(residue));
    check_modulus(OPERATION, m)?;
    if k.dtype() != DType::U64 {
        let (wanted, found) = ("indices of u64".to_owned(), k.dtype().to_string());
        return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
    }
    let shift = m.leading_zeros();
    let divisor = m << shift;
    // Its upper half is 1, which the cast removes.
    let reciprocal = (u128::MAX / u128::from(divisor)) as u64;
    EXPRESSION.run((k, divisor, reciprocal, u64::from(shift)))
}

/// Returns the period π(m) of the Fibonacci numbers modulo m.
///
/// ```
/// use selvedge::srt::pisano;
/// assert_eq!((pisano(1)?, pisano(10)?, pisano(1_000_000_007)?), (1, 60, 2_000_000_016));
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for m = 0, [`Error::Overflow`] for a period above 2^64 - 1.
pub fn pisano(m: u64) -> Result<u64> {
    check_modulus("pisano", m)?;
    let (mut period, mut primes) = (1u128, Vec::new());
    for (prime, power) in factors(m) {
        let multiple = match (prime, prime % 5) {
            (2, _) => 3,
            (5, _) => 20,
            (_, 1 | 4) => u128::from(prime) - 1,
            _ => 2 * (u128::from(prime) + 1),
        };
        // All are even but 3, so the common multiple stays far below 2^128.
        let multiple = multiple * u128::from(power / prime);
        period = period / greatest_common_divisor(period, multiple) * multiple;
        let beside = [prime, prime - 1, (prime / 2).wrapping_add(prime % 2), 2, 3, 5];
        for number in beside.into_iter().filter(|number| *number > 1) {
            primes.extend(factors(number).into_iter().map(|(prime, _)| prime));
        }
    }
    primes.sort_unstable();
    primes.dedup();
    for prime in primes.into_iter().map(u128::from) {
        while period % prime == 0 && pair_mod(period / prime, m) == (0, 1 % m) {
            period /= prime;
        }
    }
    u64::try_from(period)
        .map_err(|_| Error::overflow("pisano", format!("the period of {m}"), "a period below 2^64"))
}

fn greatest_common_divisor(x: u128, y: u128) -> u128 {
    if y == 0 { x } else { greatest_common_divisor(y, x % y) }
}

/// Returns the prime factors of a number with their powers in it.
fn factors(mut number: u64) -> Vec<(u64, u64)> {
    let (mut found, mut prime) = (Vec::new(), 2u64);
    while prime <= number / prime {
        let mut power = 1;
        while number.is_multiple_of(prime) {
            (number, power) = (number / prime, power * prime);
        }
        if power > 1 {
            found.push((prime, power));
        }
        prime += 1 + prime % 2;
    }
    if number > 1 {
        found.push((number, number));
    }
    found
}
