//! Syntony and its aggregates.

use selvedge::srt::*;
use selvedge::types::DType;
use selvedge::{Device, Tensor};

use crate::common::*;

const N2: [f64; 4] = [0.0, 1.0, 4.0, 9.0];
const SYNTONIES: [f64; 2] = [0.8584177266443396, 0.08440438236269689];

fn batch() -> Tensor {
    tensor(&[1.0, 0.5, -0.25, 0.125, 0.0, 0.0, 1.0, 0.0], &[2, 4])
}

#[test]
fn syntony_has_the_worked_numbers_in_every_dtype() {
    for (dtype, tolerance) in NUMBERS {
        let (v, n2) = (batch().cast(dtype).unwrap(), vector(&N2).cast(dtype.part()).unwrap());
        let s = syntony(&v, &n2).unwrap();
        assert_eq!((s.dtype(), &s.shape()[..]), (dtype.part(), &[2][..]));
        assert_close(&s, &SYNTONIES, tolerance);
        let single = syntony(&v.select(0, 0).unwrap(), &n2).unwrap();
        assert_eq!(single.rank(), 0);
        assert_eq!(numbers(&single)[0], numbers(&s)[0]);
    }
    let harmonized = [1.007079113667783, 0.38897564445722194, -0.13461833426121053, 0.06850030375458274];
    assert_worked(&syntony(&vector(&harmonized), &vector(&N2)).unwrap(), &[0.9234076691373932]);
    // Both parts of a complex number count.
    let z = batch().select(0, 0).unwrap().mul(selvedge::Complex::new(0.6, -0.8)).unwrap();
    assert_worked(&syntony(&z, &vector(&N2)).unwrap(), &SYNTONIES[..1]);
}

#[test]
fn syntony_of_edge_cases() {
    let n2 = vector(&N2);
    let of = |v: &[f64; 4]| numbers(&syntony(&vector(v), &n2).unwrap())[0];
    assert_eq!(of(&[0.0; 4]), 0.0);
    assert_eq!(of(&[1e-8, 0.0, 0.0, 0.0]), 0.0);
    assert!(of(&[1.0, f64::NAN, 0.0, 0.0]).is_nan());
    // Squares that would overflow are scaled.
    for scale in [1e160, -1e300, 1e-6] {
        let v = [scale, 0.5 * scale, -0.25 * scale, 0.125 * scale];
        assert!((of(&v) - SYNTONIES[0]).abs() < 1e-12, "{scale}");
    }
    let large = tensor(&[3e38f32, 1.5e38, -7.5e37, 3.75e37], &[4]);
    assert_close(&syntony(&large, &n2.cast(DType::F32).unwrap()).unwrap(), &SYNTONIES[..1], 1e-6);
    let mixed = tensor(&[1e300, 0.0, 1e300, 0.0, 0.0, 0.0, 1.0, 0.0], &[2, 4]);
    assert_worked(&syntony(&mixed, &n2).unwrap(), &[(1.0 + SYNTONIES[1]) / 2.0, SYNTONIES[1]]);
    // Negative norms would give more than 1.
    let negative = syntony(&vector(&[1.0]), &vector(&[-1.0])).unwrap();
    assert_eq!(numbers(&negative), [1.0]);
    let empty = vector(&[]);
    assert_eq!(numbers(&syntony(&empty, &empty).unwrap()), [0.0]);
    assert_eq!(numbers(&syntony(&tensor::<f64>(&[], &[2, 0]), &empty).unwrap()), [0.0; 2]);
    assert_eq!(syntony(&tensor::<f64>(&[], &[0, 4]), &n2).unwrap().count(), 0);
    assert_invalid(syntony(&batch(), &vector(&[1.0])), &["n2", "[1]", "[4]"]);
    assert_dtype_error(syntony(&batch(), &n2.cast(DType::F32).unwrap()));
    assert_dtype_error(syntony(&batch().cast(DType::I32).unwrap(), &n2));
}

#[test]
fn aggregates_are_means_and_the_minimum() {
    let s = vector(&[0.25, 1.0, 0.0]);
    for (aggregate, wanted) in [
        (SyntonyAggregate::Mean, 1.25 / 3.0),
        (SyntonyAggregate::Minimum, 0.0),
        (SyntonyAggregate::Geometric, (0.25f64 * 1e-10).cbrt()),
    ] {
        assert_worked(&aggregate_syntony(&s, aggregate).unwrap(), &[wanted]);
        let single = aggregate_syntony(&s.cast(DType::F32).unwrap(), aggregate).unwrap();
        assert_eq!(single.dtype(), DType::F32);
        assert_close(&single, &[wanted], 1e-7);
        assert_worked(&aggregate_syntony(&vector(&[]), aggregate).unwrap(), &[0.5]);
        assert!(numbers(&aggregate_syntony(&vector(&[f64::NAN, 0.5]), aggregate).unwrap())[0].is_nan());
    }
    assert_dtype_error(aggregate_syntony(&s.cast(DType::I64).unwrap(), SyntonyAggregate::Mean));
}

#[test]
fn operator_syntony_has_the_worked_number() {
    for (dtype, tolerance) in NUMBERS {
        let of = |list: &[f64]| vector(list).cast(dtype).unwrap();
        let (psi, d, h) = (of(&[1.0, 0.0]), of(&[1.1, 0.2]), of(&[1.05, 0.1]));
        assert_close(&operator_syntony(&psi, &d, &h).unwrap(), &[0.5000000002236068], tolerance);
        assert_eq!(numbers(&operator_syntony(&psi, &psi, &psi).unwrap()), [1.0]);
        // Less than 0 is 0.
        assert_eq!(numbers(&operator_syntony(&psi, &d, &of(&[9.0, 9.0])).unwrap()), [0.0]);
    }
    let psi = vector(&[1.0, 0.0]);
    assert_invalid(operator_syntony(&psi, &vector(&[1.0]), &psi), &["[2]", "[1]"]);
    assert_invalid(operator_syntony(&psi, &psi, &vector(&[1.0])), &["[2]", "[1]"]);
    assert_dtype_error(operator_syntony(&psi, &psi, &psi.cast(DType::F32).unwrap()));
}

#[test]
fn the_largest_syntony_is_the_first_of_equal_ones_and_no_nan() {
    let of = |list: &[f64]| {
        let (index, value) = argmax_syntony(&vector(list)).unwrap();
        (index.item::<i64>().unwrap(), value.item::<f64>().unwrap())
    };
    assert_eq!(of(&[0.1, 0.9, 0.9, 0.3]), (1, 0.9));
    assert_eq!(of(&[f64::NAN, 0.2, f64::NAN, 0.1]), (1, 0.2));
    assert!(of(&[f64::NAN, f64::NAN]).1.is_nan());
    let mut many = sequence(5000, 4).iter().map(|x| x.abs() / 2.0).collect::<Vec<_>>();
    many[3777] = 0.75;
    assert_eq!(of(&many), (3777, 0.75));
    let single = argmax_syntony(&tensor(&[0.5f32, 0.75], &[2])).unwrap();
    assert_eq!((single.0.item::<i64>().unwrap(), single.1.item::<f32>().unwrap()), (1, 0.75));
    assert_invalid(argmax_syntony(&vector(&[])), &["[0]"]);
    assert_invalid(argmax_syntony(&Tensor::zeros(&[2, 2], DType::F64, &Device::cpu()).unwrap()), &["[2, 2]"]);
    assert_dtype_error(argmax_syntony(&tensor(&[1i64], &[1])));
}
