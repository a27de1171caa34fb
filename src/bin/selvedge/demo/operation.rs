//! The operations of the demonstration: how the CPU computes them, and how that is proven by other means.

use num_complex::Complex;
use selvedge::types::complex::divide;
use selvedge::types::{DType, Element};

/// A function of two arrays, element by element.
pub trait Operation {
    type Element: Element;
    const NAME: &'static str;
    /// The kernel in the embedded family `arithmetic`, and in `add.cu`.
    const KERNEL: &'static str;

    /// One element, with the same IEEE operations in the same order as the kernel.
    fn compute(left: Self::Element, right: Self::Element) -> Self::Element;

    /// Checks results against a computation of another kind. `Ok` says how, `Err` what is wrong.
    fn prove(
        left: &[Self::Element],
        right: &[Self::Element],
        out: &[Self::Element],
    ) -> Result<String, String>;
}

/// `f32` addition.
pub struct Add;

impl Operation for Add {
    type Element = f32;
    const NAME: &'static str = "add";
    const KERNEL: &'static str = "add_f32";

    fn compute(left: f32, right: f32) -> f32 {
        left + right
    }

    /// The sum in f64, rounded to f32, has the bits of the f32 sum: f64 has more than twice the digits (S. A. Figueroa,
    /// "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
    fn prove(left: &[f32], right: &[f32], out: &[f32]) -> Result<String, String> {
        for (index, ((left, right), out)) in left.iter().zip(right).zip(out).enumerate() {
            let wanted = (f64::from(*left) + f64::from(*right)) as f32;
            if wanted.to_bits() != out.to_bits() {
                return Err(format!("element {index}: {left:?} + {right:?} gave {out:?}, wanted {wanted:?}"));
            }
        }
        Ok("bit for bit the f64 sum, rounded".to_owned())
    }
}

/// Complex division, for parts of `f32` or `f64`.
pub struct Divide<T>(std::marker::PhantomData<T>);

impl Operation for Divide<f32> {
    type Element = Complex<f32>;
    const NAME: &'static str = "divide";
    const KERNEL: &'static str = "div_c64";

    fn compute(left: Complex<f32>, right: Complex<f32>) -> Complex<f32> {
        divide(left, right)
    }

    /// Against the textbook quotient in f64, which these values cannot overflow.
    fn prove(left: &[Complex<f32>], right: &[Complex<f32>], out: &[Complex<f32>]) -> Result<String, String> {
        let wide = |value: &Complex<f32>| Complex::new(f64::from(value.re), f64::from(value.im));
        let error = |left: &Complex<f32>, right: &Complex<f32>, out: &Complex<f32>| {
            let wanted = wide(left) * wide(right).conj() / wide(right).norm_sqr();
            (wide(out) - wanted).norm() / wanted.norm()
        };
        within_ulps(left, right, out, f64::from(f32::EPSILON), error, "the textbook quotient in f64")
    }
}

impl Operation for Divide<f64> {
    type Element = Complex<f64>;
    const NAME: &'static str = "divide";
    const KERNEL: &'static str = "div_c128";

    fn compute(left: Complex<f64>, right: Complex<f64>) -> Complex<f64> {
        divide(left, right)
    }

    /// Multiplied back: what is missing from the dividend, summed without losing a product's low half.
    fn prove(left: &[Complex<f64>], right: &[Complex<f64>], out: &[Complex<f64>]) -> Result<String, String> {
        let error = |left: &Complex<f64>, right: &Complex<f64>, out: &Complex<f64>| {
            let re = remainder(left.re, (out.re, right.re), (-out.im, right.im));
            let im = remainder(left.im, (out.re, right.im), (out.im, right.re));
            re.hypot(im) / left.norm()
        };
        within_ulps(left, right, out, f64::EPSILON, error, "the dividend, multiplied back")
    }
}

/// The error of a complex quotient that scaling allows for, in units of the last place of its magnitude.
const ULPS: f64 = 8.0;

fn within_ulps<T: Element>(
    left: &[T],
    right: &[T],
    out: &[T],
    epsilon: f64,
    error: impl Fn(&T, &T, &T) -> f64,
    against: &str,
) -> Result<String, String> {
    let mut largest = 0.0f64;
    for (index, ((left, right), out)) in left.iter().zip(right).zip(out).enumerate() {
        let ulps = error(left, right, out) / epsilon;
        if ulps.is_nan() || ulps > ULPS {
            return Err(format!("element {index}: {left:?} / {right:?} gave {out:?}, {ulps:.1} ulp off"));
        }
        largest = largest.max(ulps);
    }
    Ok(format!("within {largest:.1} ulp of {against}"))
}

/// `whole - a.0·a.1 - b.0·b.1`, rounded about once.
fn remainder(whole: f64, a: (f64, f64), b: (f64, f64)) -> f64 {
    let (first, second) = (a.0 * a.1, b.0 * b.1);
    let lost = a.0.mul_add(a.1, -first) + b.0.mul_add(b.1, -second);
    // `whole - first` is exact or has its rounding error found (D. E. Knuth, TAOCP 2, 4.2.2, theorem B).
    let (difference, error) = two_sum(whole, -first);
    let (difference, more) = two_sum(difference, -second);
    difference + (error + more - lost)
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Random values with magnitudes from 2⁻⁸ to 2⁸ in each part, the same for a seed on every machine; `None` without memory.
pub fn values<T: Element>(count: usize, seed: u64) -> Option<Vec<T>> {
    let mut values: Vec<T> = Vec::new();
    values.try_reserve_exact(count).ok()?;
    values.resize(count, T::zeroed());
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        let bits = mixed(&mut state);
        // 52 random fraction bits in [1, 2), times a power of two, with a sign.
        let fraction = f64::from_bits((bits >> 12) | 1.0f64.to_bits());
        let exponent = 2.0f64.powi((bits & 15) as i32 - 8);
        if bits & 16 == 0 { fraction * exponent } else { -fraction * exponent }
    };
    match T::DTYPE {
        DType::F64 | DType::C128 => {
            bytemuck::cast_slice_mut::<T, f64>(&mut values).fill_with(next);
        }
        DType::F32 | DType::C64 => {
            bytemuck::cast_slice_mut::<T, f32>(&mut values).fill_with(|| next() as f32);
        }
        _ => return None,
    }
    Some(values)
}

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_result_is_seen() {
        let (left, right) = (values::<f32>(100, 1).unwrap(), values::<f32>(100, 2).unwrap());
        let mut out: Vec<f32> = left.iter().zip(&right).map(|(left, right)| left + right).collect();
        assert!(Add::prove(&left, &right, &out).is_ok());
        out[70] = f32::from_bits(out[70].to_bits() ^ 1);
        assert!(Add::prove(&left, &right, &out).is_err_and(|wrong| wrong.contains("element 70")));

        let (left, right) =
            (values::<Complex<f64>>(100, 1).unwrap(), values::<Complex<f64>>(100, 2).unwrap());
        let mut out: Vec<_> = left.iter().zip(&right).map(|(left, right)| divide(*left, *right)).collect();
        assert!(Divide::<f64>::prove(&left, &right, &out).is_ok());
        out[30].im *= 1.0 + 1e-13;
        out[30].re *= 1.0 + 1e-13;
        assert!(Divide::<f64>::prove(&left, &right, &out).is_err_and(|wrong| wrong.contains("element 30")));
        out[30].re = f64::NAN;
        assert!(Divide::<f64>::prove(&left, &right, &out).is_err());
    }

    #[test]
    fn values_are_fixed_and_of_both_signs() {
        let values = values::<f64>(1000, 7).unwrap();
        assert!(values.iter().all(|value| (2.0f64.powi(-8)..2.0f64.powi(8)).contains(&value.abs())));
        assert!(values.iter().any(|value| *value < 0.0) && values.iter().any(|value| *value > 0.0));
    }
}
