//! Exact arithmetic in Q(φ) and Z[φ].

use selvedge::Error;
use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};

use crate::close;

fn rational(numerator: i128, denominator: i128) -> Rational {
    Rational::new(numerator, denominator).unwrap()
}

#[test]
fn worked_numbers_are_exact() {
    let (x, y) = (GoldenExact::from((2, 3)), GoldenExact::from((1, -1)));
    assert_eq!(x.checked_mul(y).unwrap(), (-1, -2).into());
    assert_eq!((x.norm().unwrap(), x.trace().unwrap()), (Rational::ONE, 7i64.into()));
    assert_eq!(x.checked_div(y).unwrap(), (-3, -5).into());
    let inverse = GoldenExact::from((2, 1)).inverse().unwrap();
    assert_eq!(inverse, GoldenExact::new(rational(3, 5), rational(-1, 5)));
    assert_eq!(inverse.to_string(), "3/5 - 1/5 φ");
    assert_eq!(x.conjugate().unwrap(), (5, -3).into());
    assert_eq!(x.checked_sub(y).unwrap().checked_add(y).unwrap(), x);
    assert_eq!(GoldenExact::sqrt5().checked_pow(2).unwrap(), 5.into());
    for n in -184..=184 {
        let power = GoldenExact::phi_pow(n).ok();
        assert_eq!(power.is_some(), n > -184, "{n}");
        if n.abs() <= 91 {
            assert_eq!(power, GoldenExact::PHI.checked_pow(n).ok(), "{n}");
        }
        if let Some(power) = power {
            close(power.to_f64(), phi_pow(n).unwrap(), 1e-14);
        }
    }
    for (number, text) in
        [((0, 0), "0"), ((0, 1), "φ"), ((0, -1), "-φ"), ((4, 1), "4 + φ"), ((0, -3), "-3 φ")]
    {
        assert_eq!(GoldenExact::from(number).to_string(), text);
    }
}

#[test]
fn order_is_that_of_the_numbers() {
    let mut numbers: Vec<GoldenExact> =
        (-12..=12).flat_map(|a| (-12..=12).map(move |b| (a, b).into())).collect();
    numbers.sort();
    for pair in numbers.windows(2) {
        let [x, y] = pair else { unreachable!() };
        assert!(x < y && x.to_f64() < y.to_f64(), "{x} before {y}");
    }
    // F(n+1)/F(n) approaches φ from both sides, in numbers whose squares i128 does not hold.
    for n in 100..=183 {
        let quotient = GoldenExact::from(rational(fibonacci(n + 1).unwrap(), fibonacci(n).unwrap()));
        assert_eq!(quotient < GoldenExact::PHI, n % 2 == 1, "{n}");
        assert_eq!(quotient.cmp(&quotient), std::cmp::Ordering::Equal);
    }
    let extremes = [i128::MIN, i128::MAX].map(|a| GoldenExact::new(a, a));
    assert!(extremes[0] < extremes[1] && extremes[0].to_f64() < -1e38);
    assert!(GoldenInteger::new(i64::MIN, i64::MAX) > GoldenInteger::new(i64::MAX, i64::MIN));
    assert!(rational(1, 3) < rational(1, 2) && rational(i128::MIN, 1) < rational(i128::MIN + 1, i128::MAX));
}

#[test]
fn conversion_to_f64_does_not_cancel() {
    for (a, b, wanted) in [
        (rational(1, 3), rational(-1, 5), 0.009726535583354384),
        (
            fibonacci::<i128>(150).unwrap().into(),
            rational(-fibonacci::<i128>(149).unwrap(), 1),
            -phi_pow(-149).unwrap(),
        ),
        (
            rational(-fibonacci::<i128>(149).unwrap(), 7),
            rational(fibonacci::<i128>(148).unwrap(), 7),
            -phi_pow(-148).unwrap() / 7.0,
        ),
    ] {
        let number = GoldenExact::new(a, b);
        close(number.to_f64(), wanted, 1e-14);
        close(number.checked_neg().unwrap().to_f64(), -wanted, 1e-14);
    }
}

#[test]
fn overflow_and_division_by_zero_are_errors() {
    let large = GoldenExact::from(Rational::from(i128::MAX));
    let overflows = [
        large.checked_add(large).err(),
        large.checked_mul(large).err(),
        GoldenExact::from((2, 0)).checked_pow(127).err(),
        GoldenExact::from(Rational::from(i128::MIN)).checked_neg().err(),
        Rational::new(1, i128::MIN).err(),
        Rational::new(i128::MIN, -1).err(),
        GoldenExact::phi_pow(186).err(),
        GoldenExact::phi_pow(i32::MIN).err(),
    ];
    for error in overflows {
        assert!(matches!(error, Some(Error::Overflow { .. })), "{error:?}");
    }
    // The last square of a power is not computed.
    assert!(GoldenExact::from((2, 0)).checked_pow(126).is_ok());
    let divisions = [
        GoldenExact::ONE.checked_div(GoldenExact::ZERO).err(),
        GoldenExact::ZERO.inverse().err(),
        GoldenExact::ZERO.checked_pow(-1).err(),
        Rational::new(3, 0).err(),
        Rational::ONE.checked_div(Rational::ZERO).err(),
    ];
    for error in divisions {
        assert!(matches!(error, Some(Error::DivisionByZero { .. })), "{error:?}");
    }
    assert_eq!(GoldenExact::ZERO.checked_pow(0).unwrap(), GoldenExact::ONE);
    assert_eq!(GoldenInteger::try_from(GoldenExact::from((3, -4))).unwrap(), (3, -4).into());
    assert!(GoldenInteger::try_from(GoldenExact::from(rational(1, 2))).is_err());
}

/// Coefficients around 0, around square roots of the limits, and at the limits.
fn coefficients() -> Vec<i64> {
    vec![
        0,
        1,
        -1,
        2,
        -7,
        3_037_000_499,
        -3_037_000_500,
        1 << 40,
        i64::MAX / 2,
        i64::MIN / 2,
        i64::MAX,
        i64::MIN,
    ]
}

#[test]
fn batches_in_z_phi_equal_single_numbers_with_their_overflow() {
    let coefficients = coefficients();
    let numbers: Vec<GoldenInteger> =
        coefficients.iter().flat_map(|a| coefficients.iter().map(|b| (*a, *b).into())).collect();
    let count = numbers.len();
    let cpu = Device::cpu();
    let column = GoldenTensor::from_slice(&numbers, &[count, 1], &cpu).unwrap();
    let row = GoldenTensor::from_slice(&numbers, &[count], &cpu).unwrap();
    let pairs = || numbers.iter().flat_map(|x| numbers.iter().map(move |y| (*x, *y)));
    let check = |batch: Checked<GoldenTensor>, single: Vec<selvedge::Result<GoldenInteger>>| {
        let (values, overflow) =
            (batch.values().to_vec().unwrap(), batch.overflow().to_vec::<bool>().unwrap());
        assert_eq!(values.len(), single.len());
        for ((value, overflow), single) in values.into_iter().zip(overflow).zip(single) {
            assert_eq!(overflow, single.is_err(), "{single:?}");
            assert!(overflow || single.ok() == Some(value));
        }
    };
    check(column.add(&row).unwrap(), pairs().map(|(x, y)| x.checked_add(y)).collect());
    check(column.sub(&row).unwrap(), pairs().map(|(x, y)| x.checked_sub(y)).collect());
    check(column.mul(&row).unwrap(), pairs().map(|(x, y)| x.checked_mul(y)).collect());
    check(row.neg().unwrap(), numbers.iter().map(|x| x.checked_neg()).collect());
    check(row.conjugate().unwrap(), numbers.iter().map(|x| x.conjugate()).collect());
    check(row.recursion().unwrap(), numbers.iter().map(|x| x.recursion()).collect());
    check(row.recursion_inverse().unwrap(), numbers.iter().map(|x| x.recursion_inverse()).collect());
    for (batch, single) in [
        (row.norm().unwrap(), numbers.iter().map(|x| x.norm()).collect::<Vec<i128>>()),
        (row.trace().unwrap(), numbers.iter().map(|x| x.trace()).collect()),
    ] {
        let (values, overflow) =
            (batch.values().to_vec::<i64>().unwrap(), batch.overflow().to_vec::<bool>().unwrap());
        for ((value, overflow), single) in values.into_iter().zip(overflow).zip(single) {
            assert_eq!(overflow, i64::try_from(single).is_err(), "{single}");
            assert!(overflow || i128::from(value) == single);
        }
    }
    let values = row.values().unwrap().to_vec::<f64>().unwrap();
    assert!(values.iter().zip(&numbers).all(|(value, number)| value.to_bits() == number.value().to_bits()));
}

#[test]
fn norms_multiply() {
    let numbers: Vec<GoldenInteger> = (-6..=6).flat_map(|a| (-6..=6).map(move |b| (a, b).into())).collect();
    for x in &numbers {
        for y in &numbers {
            assert_eq!(x.checked_mul(*y).unwrap().norm(), x.norm() * y.norm());
            let exact = GoldenExact::from(*x).checked_mul((*y).into()).unwrap();
            assert_eq!(exact, x.checked_mul(*y).unwrap().into());
        }
    }
    // Of fractions, whose norms are fractions.
    let part = |seed, at| {
        rational((noise_word(seed, at) % 41) as i128 - 20, (noise_word(seed, at + 1) % 9) as i128 + 1)
    };
    let number = |seed| GoldenExact::new(part(seed, 0), part(seed, 2));
    for seed in 0..500 {
        let (x, y) = (number(seed), number(seed + 500));
        let product = x.norm().unwrap().checked_mul(y.norm().unwrap()).unwrap();
        assert_eq!(x.checked_mul(y).unwrap().norm().unwrap(), product, "{x} and {y}");
    }
}

#[test]
fn a_golden_tensor_refuses_parts_that_do_not_fit() {
    let cpu = Device::cpu();
    let whole = || Tensor::new([1i64, 2], &cpu).unwrap();
    let error = GoldenTensor::new(whole(), Tensor::new([1.0f64, 2.0], &cpu).unwrap()).err();
    assert!(matches!(error, Some(Error::DTypeMismatch { .. })), "{error:?}");
    let error = GoldenTensor::new(whole(), Tensor::new([1i64], &cpu).unwrap()).err();
    assert!(matches!(error, Some(Error::InvalidArgument { .. })), "{error:?}");
    assert!(GoldenTensor::new(whole(), whole()).is_ok());
}
