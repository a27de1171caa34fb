//! Powers of φ, Fibonacci and Lucas numbers, residues and periods.

use selvedge::Error;
use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::close;

#[test]
fn powers_of_phi_are_accurate_on_both_sides_of_zero() {
    let table = [(0, 1.0), (2, 2.618033988749895), (10, 122.99186938124421), (-1, 0.6180339887498948)];
    for (n, power) in table {
        close(phi_pow(n).unwrap(), power, 1e-15);
    }
    close(phi_pow(-40).unwrap(), 4.370130339181067e-9, 1e-14);
    for n in 0..=1474 {
        close(phi_pow(n).unwrap() * phi_pow(-n).unwrap(), 1.0, 1e-15);
        close(phi_pow(n).unwrap().ln(), f64::from(n) * LN_PHI, 1e-12);
    }
    assert_eq!(phi_pow_f32(184).unwrap(), phi_pow(184).unwrap() as f32);
    assert!(phi_pow_f32(184).unwrap().is_finite() && phi_pow_f32(-184).unwrap() > 0.0);
    for error in [phi_pow(1475).err(), phi_pow(i32::MIN).err(), phi_pow_f32(-185).err()] {
        assert!(matches!(error, Some(Error::InvalidArgument { .. })), "{error:?}");
    }
}

#[test]
fn numbers_are_those_of_the_recurrence_up_to_the_limit_of_their_type() {
    let (mut f, mut l) = ((0i128, 1i128), (2i128, 1i128));
    for k in 0..=182 {
        assert_eq!(fibonacci::<i128>(k).unwrap(), f.0);
        assert_eq!(lucas::<i128>(k).unwrap(), l.0);
        let sign = if k % 2 == 0 { 1 } else { -1 };
        assert_eq!(fibonacci::<i128>(-k).unwrap(), -sign * f.0);
        assert_eq!(lucas::<i128>(-k).unwrap(), sign * l.0);
        if k <= 90 {
            assert_eq!(l.0 * l.0 - 5 * f.0 * f.0, 4 * sign);
            // F(n)² - F(n-1) F(n+1) = (-1)^(n+1)
            assert_eq!(f.0 * f.0 - (f.1 - f.0) * f.1, -sign);
        }
        f = (f.1, f.0 + f.1);
        l = (l.1, l.0.wrapping_add(l.1));
    }
    assert_eq!(fibonacci::<i64>(92).unwrap(), 7540113804746346429);
    assert_eq!(fibonacci::<u64>(93).unwrap(), 12200160415121876738);
    assert_eq!(lucas::<i64>(90).unwrap(), 6440026026380244498);
    assert!(fibonacci::<i128>(184).is_ok() && lucas::<u64>(92).is_ok());
    let errors = [
        fibonacci::<i64>(93).err(),
        fibonacci::<u64>(94).err(),
        fibonacci::<u64>(-2).err(),
        fibonacci::<i128>(185).err(),
        fibonacci::<i128>(i32::MIN).err(),
        lucas::<i64>(91).err(),
        lucas::<u64>(93).err(),
        lucas::<i128>(183).err(),
    ];
    for error in errors {
        assert!(matches!(error, Some(Error::Overflow { .. })), "{error:?}");
    }
}

#[test]
fn identities_hold_on_both_sides_of_zero() {
    // The squares are within i128 up to there.
    for n in -90..=90 {
        let [before, f, after] = [n - 1, n, n + 1].map(|k| fibonacci::<i128>(k).unwrap());
        let l = lucas::<i128>(n).unwrap();
        let sign = if n % 2 == 0 { 1 } else { -1 };
        assert_eq!(before + f, after, "{n}");
        assert_eq!(f * f - before * after, -sign, "{n}");
        assert_eq!(l * l - 5 * f * f, 4 * sign, "{n}");
        assert_eq!(before + after, l, "{n}");
    }
}

#[test]
fn batches_are_exact_and_flag_what_i64_does_not_hold() {
    let indices: Vec<i32> = (-95..=95).chain([i32::MIN, i32::MAX]).collect();
    let k = Tensor::new(&indices[..], &Device::cpu()).unwrap();
    type Scalar = fn(i32) -> selvedge::Result<i64>;
    let table = [
        (fibonacci_batch(&k).unwrap(), fibonacci as Scalar, 92),
        (lucas_batch(&k).unwrap(), lucas as Scalar, 90),
    ];
    for (batch, scalar, largest) in table {
        let (values, overflow) = (batch.values().to_vec::<i64>(), batch.overflow().to_vec::<bool>());
        for ((k, value), overflow) in indices.iter().zip(values.unwrap()).zip(overflow.unwrap()) {
            assert_eq!(overflow, k.unsigned_abs() > largest, "{k}");
            if !overflow {
                assert_eq!(value, scalar(*k).unwrap(), "{k}");
            }
        }
        assert!(matches!(batch.check(), Err(Error::Overflow { .. })));
    }
    let good = Tensor::new([10i64, 50, 92], &Device::cpu()).unwrap();
    let values = fibonacci_batch(&good).unwrap().check().unwrap().to_vec::<i64>().unwrap();
    assert_eq!(values, [55, 12586269025, 7540113804746346429]);
    let extreme = Tensor::new([i64::MIN, i64::MAX], &Device::cpu()).unwrap();
    assert_eq!(lucas_batch(&extreme).unwrap().overflow().to_vec::<bool>().unwrap(), [true, true]);
    let error = fibonacci_batch(&good.cast(DType::F32).unwrap()).err();
    assert!(matches!(error, Some(Error::DTypeMismatch { .. })), "{error:?}");
}

#[test]
fn numbers_in_f64_are_exact_up_to_2_53_and_close_beyond() {
    let indices: Vec<i32> = (-1480..=1480).chain([i32::MIN, i32::MAX]).collect();
    let k = Tensor::new(&indices[..], &Device::cpu()).unwrap();
    let f = fibonacci_batch_f64(&k).unwrap().to_vec::<f64>().unwrap();
    let l = lucas_batch_f64(&k).unwrap().to_vec::<f64>().unwrap();
    for ((&k, f), l) in indices.iter().zip(f).zip(l) {
        assert_eq!(f.to_bits(), fibonacci_f64(k).to_bits(), "F({k})");
        assert_eq!(l.to_bits(), lucas_f64(k).to_bits(), "L({k})");
        let (magnitude, odd) = (k.unsigned_abs(), k % 2 != 0);
        assert_eq!(f < 0.0, k < 0 && !odd, "F({k})");
        assert_eq!(l < 0.0, k < 0 && odd, "L({k})");
        assert_eq!(f.is_infinite(), magnitude > 1476, "F({k}) = {f}");
        assert_eq!(l.is_infinite(), magnitude > 1474, "L({k}) = {l}");
        if magnitude <= 182 {
            let (exact_f, exact_l) = (fibonacci::<i128>(k).unwrap(), lucas::<i128>(k).unwrap());
            let bound = |exact: u32| if magnitude <= exact { 0.0 } else { f64::from(magnitude) * 4e-16 };
            close(f, exact_f as f64, bound(78));
            close(l, exact_l as f64, bound(76));
        }
    }
}

#[test]
fn a_sequence_starts_at_zero() {
    let cpu = Device::cpu();
    let sequence = |n, dtype| fibonacci_sequence(n, dtype, &cpu);
    assert_eq!(sequence(7, DType::I64).unwrap().to_vec::<i64>().unwrap(), [0, 1, 1, 2, 3, 5, 8]);
    assert_eq!(sequence(4, DType::F64).unwrap().to_vec::<f64>().unwrap(), [0.0, 1.0, 1.0, 2.0]);
    assert_eq!(sequence(0, DType::I64).unwrap().count(), 0);
    let whole = sequence(93, DType::I64).unwrap().to_vec::<i64>().unwrap();
    assert_eq!(whole.last(), Some(&7540113804746346429));
    assert!(matches!(sequence(94, DType::I64), Err(Error::Overflow { .. })));
    assert!(matches!(sequence(4, DType::I32), Err(Error::DTypeMismatch { .. })));
}

#[test]
fn residues_agree_in_batches_for_every_size_of_modulus() {
    let indices = [0u64, 1, 2, 93, 94, 1000, 1 << 40, u64::MAX - 1, u64::MAX];
    let k = Tensor::new(&indices[..], &Device::cpu()).unwrap();
    for m in [1, 2, 3, 10, 1 << 32, (1 << 63) - 25, 1 << 63, u64::MAX - 58, u64::MAX] {
        let wanted: Vec<u64> = indices.iter().map(|k| fib_mod(*k, m).unwrap()).collect();
        assert_eq!(fib_mod_batch(&k, m).unwrap().to_vec::<u64>().unwrap(), wanted, "modulo {m}");
        assert_eq!(wanted[3], 12200160415121876738 % m);
    }
    // F(k) + F(k+1) = F(k+2)
    let sum = u128::from(fib_mod(999, u64::MAX).unwrap()) + u128::from(fib_mod(1000, u64::MAX).unwrap());
    assert_eq!(u128::from(fib_mod(1001, u64::MAX).unwrap()), sum % u128::from(u64::MAX));
    for error in [fib_mod(5, 0).err(), fib_mod_batch(&k, 0).err(), pisano(0).err()] {
        assert!(matches!(error, Some(Error::InvalidArgument { .. })), "{error:?}");
    }
    let signed = Tensor::new([1i64], &Device::cpu()).unwrap();
    assert!(matches!(fib_mod_batch(&signed, 7), Err(Error::DTypeMismatch { .. })));
}

#[test]
fn periods_are_the_least() {
    let periods: Vec<u64> = (1..=16).map(|m| pisano(m).unwrap()).collect();
    assert_eq!(periods, [1, 3, 8, 6, 20, 24, 16, 12, 24, 60, 10, 24, 28, 48, 40, 24]);
    for m in 2..=400u64 {
        let (mut pair, mut period) = ((1, 1), 1);
        while pair != (0, 1) {
            (pair, period) = ((pair.1, (pair.0 + pair.1) % m), period + 1);
        }
        assert_eq!(pisano(m).unwrap(), period, "{m}");
        assert!(period <= 6 * m);
    }
    assert_eq!(pisano(1_000_000).unwrap(), 1_500_000);
}
