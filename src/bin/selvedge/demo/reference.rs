//! The same values by plain scalar code in f64, and the bounds that results keep.
//!
//! Nothing here uses the library, so that the same mistake in a kernel and in the CPU code is found.

use num_complex::Complex;

/// The error allowed for `x / (1 + exp(-x)) * y` in f32: 2 ulp of the exponential and half an ulp of each operation, which
/// the quotient and the product add up.
pub const GATE_ULPS: f64 = 4.0;

/// Compares `x / (1 + exp(-x)) * y` and returns the largest error in units of the last place.
pub fn gate(x: &[f32], y: &[f32], found: &[f32]) -> Result<f64, String> {
    same_length(x, found)?;
    let mut largest = 0.0f64;
    for (index, ((x, y), found)) in x.iter().zip(y).zip(found).enumerate() {
        let (wide_x, wide_y) = (f64::from(*x), f64::from(*y));
        let wanted = wide_x / (1.0 + (-wide_x).exp()) * wide_y;
        // The last place of the value, as f32 has it; of subnormal numbers the least.
        let ulp = wanted.abs().max(f64::from(f32::MIN_POSITIVE)) * f64::from(f32::EPSILON);
        let ulps = (f64::from(*found) - wanted).abs() / ulp;
        if ulps.is_nan() || ulps > GATE_ULPS {
            return Err(format!(
                "element {index} of x = {x}, y = {y} is {found}, but {wanted:e} when computed in f64"
            ));
        }
        largest = largest.max(ulps);
    }
    Ok(largest)
}

/// Compares bits, so that the sign of a zero counts.
pub fn equal_bits(found: &[f32], wanted: &[f32]) -> Result<(), String> {
    same_length(wanted, found)?;
    match found.iter().zip(wanted).position(|(found, wanted)| found.to_bits() != wanted.to_bits()) {
        None => Ok(()),
        Some(index) => Err(format!("element {index} is {}, not {}", found[index], wanted[index])),
    }
}

/// Compares rows of a product of square matrices that are spread over it, and returns the largest part of the bound that an
/// error takes: one rounding to the result's type and one of f32 for each of the products that an element sums.
pub fn product(
    a: &[f32],
    b: &[f32],
    found: &[f32],
    side: usize,
    rows: usize,
    epsilon: f64,
) -> Result<f64, String> {
    same_length(a, found)?;
    let mut largest = 0.0f64;
    for row in (0..side).step_by(side.div_ceil(rows.max(1)).max(1)) {
        let (mut sums, mut magnitudes) = (vec![0.0f64; side], vec![0.0f64; side]);
        for (inner, a) in a[row * side..][..side].iter().enumerate() {
            let columns = sums.iter_mut().zip(&mut magnitudes).zip(&b[inner * side..][..side]);
            for ((sum, magnitude), b) in columns {
                let product = f64::from(*a) * f64::from(*b);
                *sum += product;
                *magnitude += product.abs();
            }
        }
        for (column, found) in found[row * side..][..side].iter().enumerate() {
            let wanted = sums[column];
            let bound = epsilon * wanted.abs()
                + side as f64 * f64::from(f32::EPSILON) * magnitudes[column]
                + f64::from(f32::MIN_POSITIVE);
            let part = (f64::from(*found) - wanted).abs() / bound;
            if part.is_nan() || part > 1.0 {
                return Err(format!(
                    "element ({row}, {column}) is {found}, but {wanted} when computed in f64 (bound {bound:e})"
                ));
            }
            largest = largest.max(part);
        }
    }
    Ok(largest)
}

fn same_length<T, U>(wanted: &[T], found: &[U]) -> Result<(), String> {
    if wanted.len() == found.len() {
        return Ok(());
    }
    Err(format!("{} elements instead of {}", found.len(), wanted.len()))
}

/// The limits of a floating-point type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The largest finite value.
    pub max: f64,
    /// The distance from 1 to the next value.
    pub epsilon: f64,
    /// The least positive value.
    pub least: f64,
}

/// Arrays of `--npy` in the type that they are compared in.
#[derive(Debug, Clone, PartialEq)]
pub enum Wide {
    Bools(Vec<bool>),
    /// Integers, which wrap modulo 2 to the power of `bits`.
    Integers {
        values: Vec<i128>,
        bits: u32,
        signed: bool,
    },
    Reals(Vec<f64>, Limits),
    Complex(Vec<Complex<f64>>, Limits),
}

/// Compares x · y + x; all three are of the result's type and shape.
pub fn product_and_sum(x: &Wide, y: &Wide, found: &Wide) -> Result<(), String> {
    match (x, y, found) {
        (Wide::Bools(x), Wide::Bools(y), Wide::Bools(found)) => each(
            x,
            y,
            found,
            |x, y| u8::from(*x) * u8::from(*y) + u8::from(*x) > 0,
            |wanted, found, _, _| wanted == found,
        ),
        (
            Wide::Integers { values: x, .. },
            Wide::Integers { values: y, .. },
            Wide::Integers { values: found, bits, signed },
        ) => {
            let wanted = |x: &i128, y: &i128| wrapped(x.wrapping_mul(*y).wrapping_add(*x), *bits, *signed);
            each(x, y, found, wanted, |wanted, found, _, _| wanted == found)
        }
        (Wide::Reals(x, _), Wide::Reals(y, _), Wide::Reals(found, limits)) => each(
            x,
            y,
            found,
            |x, y| x.mul_add(*y, *x),
            |wanted, found, x, y| is_near_real(*found, *wanted, x * y, limits),
        ),
        (Wide::Complex(x, _), Wide::Complex(y, _), Wide::Complex(found, limits)) => each(
            x,
            y,
            found,
            |x, y| x * y + x,
            |wanted, found, x, y| is_near_complex(*found, *wanted, *x, *y, limits),
        ),
        _ => Err("operands and result have different kinds".to_owned()),
    }
}

fn each<T: std::fmt::Display>(
    x: &[T],
    y: &[T],
    found: &[T],
    wanted: impl Fn(&T, &T) -> T,
    is_right: impl Fn(&T, &T, &T, &T) -> bool,
) -> Result<(), String> {
    same_length(x, found)?;
    same_length(y, found)?;
    for (index, ((x, y), found)) in x.iter().zip(y).zip(found).enumerate() {
        let wanted = wanted(x, y);
        if !is_right(&wanted, found, x, y) {
            return Err(format!("element {index} is {found}, but {wanted} when computed by plain code"));
        }
    }
    Ok(())
}

/// One rounding of the product and one of the sum; a value beyond the type's largest overflows as the type does.
fn is_near_real(found: f64, wanted: f64, product: f64, limits: &Limits) -> bool {
    if wanted.is_nan() {
        return found.is_nan();
    }
    if product.abs().max(wanted.abs()) > limits.max {
        return !found.is_finite() || found.abs() >= limits.max;
    }
    (found - wanted).abs() <= limits.epsilon * (product.abs() + wanted.abs()) + 2.0 * limits.least
}

/// The same of each part, with the bounds of all terms. Elements that are not finite or overflow are not compared.
fn is_near_complex(
    found: Complex<f64>,
    wanted: Complex<f64>,
    x: Complex<f64>,
    y: Complex<f64>,
    limits: &Limits,
) -> bool {
    let terms = x.norm() * y.norm() + x.norm();
    if !terms.is_finite() || terms > limits.max {
        return true;
    }
    let bound = 2.0 * limits.epsilon * terms + 4.0 * limits.least;
    (found.re - wanted.re).abs() <= bound && (found.im - wanted.im).abs() <= bound
}

/// The integer of these bits that is congruent.
fn wrapped(value: i128, bits: u32, signed: bool) -> i128 {
    let unused = 128 - bits;
    let shifted = value << unused;
    if signed { shifted >> unused } else { (shifted as u128 >> unused) as i128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_gate_is_seen() {
        let (x, y) = ([1.0f32, -20.0, 0.0, 3.5], [2.0f32, 1.0, 4.0, -1.0]);
        let mut found: Vec<f32> = x
            .iter()
            .zip(&y)
            .map(|(x, y)| (f64::from(*x) / (1.0 + (-f64::from(*x)).exp()) * f64::from(*y)) as f32)
            .collect();
        assert!(gate(&x, &y, &found).unwrap() <= 0.5);
        found[3] *= 1.0 + 8.0 * f32::EPSILON;
        assert!(gate(&x, &y, &found).is_err_and(|wrong| wrong.contains("element 3")));
        found[3] = f32::NAN;
        assert!(gate(&x, &y, &found).is_err());
        assert!(gate(&x, &y, &found[..3]).is_err());
        assert!(equal_bits(&[0.0], &[-0.0]).is_err());
    }

    #[test]
    fn a_wrong_product_is_seen() {
        let (a, b) = ([1.0f32, 2.0, 3.0, 4.0], [5.0f32, 6.0, 7.0, 8.0]);
        let right = [19.0f32, 22.0, 43.0, 50.0];
        let epsilon = f64::from(f32::EPSILON);
        assert_eq!(product(&a, &b, &right, 2, 8, epsilon), Ok(0.0));
        for index in 0..4 {
            let mut wrong = right;
            wrong[index] += 0.001;
            assert!(product(&a, &b, &wrong, 2, 8, epsilon).is_err(), "{index}");
        }
        assert!(product(&a, &b, &[0.0; 4], 2, 1, epsilon).is_err());
    }

    #[test]
    fn a_wrong_sum_of_products_is_seen() {
        let limits = Limits { max: f64::from(f32::MAX), epsilon: f64::from(f32::EPSILON), least: 1e-45 };
        let reals = |values: &[f64]| Wide::Reals(values.to_vec(), limits);
        let (x, y) = (reals(&[1.0, 2.0, f64::NAN, 3e38]), reals(&[10.0, 0.5, 1.0, 2.0]));
        assert_eq!(product_and_sum(&x, &y, &reals(&[11.0, 3.0, f64::NAN, f64::INFINITY])), Ok(()));
        for wrong in [
            [11.0, 3.0, 0.0, f64::INFINITY],
            [11.0, 3.001, f64::NAN, f64::INFINITY],
            [f64::INFINITY, 3.0, f64::NAN, f64::INFINITY],
            [f64::NAN, 3.0, f64::NAN, f64::INFINITY],
            [11.0, 3.0, f64::NAN, 1.0],
        ] {
            assert!(product_and_sum(&x, &y, &reals(&wrong)).is_err(), "{wrong:?}");
        }

        let complex = |values: &[Complex<f64>]| Wide::Complex(values.to_vec(), limits);
        let x = complex(&[Complex::new(1.0, 2.0)]);
        assert_eq!(product_and_sum(&x, &x, &complex(&[Complex::new(-2.0, 6.0)])), Ok(()));
        // Without the imaginary parts.
        assert!(product_and_sum(&x, &x, &complex(&[Complex::new(2.0, 0.0)])).is_err());

        let bytes = |values: &[i128]| Wide::Integers { values: values.to_vec(), bits: 8, signed: true };
        assert_eq!(product_and_sum(&bytes(&[100, -128]), &bytes(&[2, 1]), &bytes(&[44, 0])), Ok(()));
        assert!(product_and_sum(&bytes(&[100]), &bytes(&[2]), &bytes(&[127])).is_err());
        assert_eq!(
            (wrapped(-1, 8, false), wrapped(200, 8, true), wrapped(1 << 64, 64, false)),
            (255, -56, 0)
        );
        let bools = |values: &[bool]| Wide::Bools(values.to_vec());
        assert!(product_and_sum(&bools(&[true]), &bools(&[false]), &bools(&[false])).is_err());
        assert!(product_and_sum(&bools(&[true]), &bytes(&[1]), &bytes(&[1])).is_err());
    }
}
