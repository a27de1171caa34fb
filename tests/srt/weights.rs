//! Golden weights, inner products and norms.

use selvedge::srt::*;
use selvedge::types::DType;
use selvedge::{Complex, Tensor};

use crate::common::*;

const WEIGHTS: [f64; 4] = [0.5390030827240446, 0.2905243231860233, 0.08440438236269689, 0.003839911733366907];

#[test]
fn weights_have_the_worked_numbers() {
    let s = vector(&[1.0, 2.0, 4.0, 9.0]);
    assert_worked(&golden_weight(&s).unwrap(), &WEIGHTS);
    let single = golden_weight(&s.cast(DType::F32).unwrap()).unwrap();
    assert_eq!(single.dtype(), DType::F32);
    assert_close(&single, &WEIGHTS, 1e-7);
    let z =
        [Complex::new(0.6f64, 0.8), Complex::new(1.0, -1.0), Complex::new(0.0, 2.0), Complex::new(-3.0, 0.0)];
    let weights = golden_weight(&tensor(&z, &[4])).unwrap();
    assert_eq!(weights.dtype(), DType::F64);
    assert_worked(&weights, &WEIGHTS);
}

#[test]
fn weights_underflow_to_zero_and_overflow_to_infinity() {
    let s = [1206.0, 1205.0, -1148.0, -1149.0, f64::INFINITY, f64::NAN];
    let weights = golden_weight(&vector(&s)).unwrap().to_vec::<f64>().unwrap();
    assert!(weights[0] == 0.0 && weights[1] > 0.0 && weights[2].is_finite(), "{weights:?}");
    assert!(weights[3] == f64::INFINITY && weights[4] == 0.0 && weights[5].is_nan(), "{weights:?}");
    let single = golden_weight(&tensor(&[168.0f32, 169.0, 100.0], &[3])).unwrap();
    let single = single.to_vec::<f32>().unwrap();
    assert!(single[0] > 0.0 && single[1] == 0.0, "{single:?}");
    assert_eq!(single[2], (-100.0 * INVERSE_PHI).exp() as f32);
}

#[test]
fn rows_of_windings_and_roots_are_weighted_by_their_squared_norm() {
    let rows = tensor(&[1i32, 0, 0, 0, 1, 1, 1, 1, 0, 2, -2, 1], &[3, 4]);
    let wanted = [WEIGHTS[0], WEIGHTS[2], WEIGHTS[3]];
    let weights = golden_weight_of_rows(&rows).unwrap();
    assert_eq!(weights.dtype(), DType::F64);
    assert_worked(&weights, &wanted);
    assert_worked(&golden_weight_of_rows(&rows.cast(DType::F64).unwrap()).unwrap(), &wanted);
    assert_close(&golden_weight_of_rows(&rows.cast(DType::F32).unwrap()).unwrap(), &wanted, 1e-7);
    let root = vector(&[0.5; 8]);
    assert_worked(&golden_weight_of_rows(&root).unwrap(), &[WEIGHTS[1]]);
    // Squares of i32 are taken in 64 bits: in 32 bits this row would have norm 0.
    let large = tensor(&[1i32 << 16, 0, 0, 0], &[4]);
    assert_worked(&golden_weight_of_rows(&large).unwrap(), &[0.0]);
    assert_invalid(golden_weight_of_rows(&vector(&[1.0; 5])), &["[5]", "4 or 8"]);
    assert_dtype_error(golden_weight_of_rows(&rows.cast(DType::U8).unwrap()));
}

#[test]
fn inner_products_and_norms_have_the_worked_numbers() {
    let (a, b) = (vector(&[1.0, 2.0, 3.0]), vector(&[4.0, 5.0, 6.0]));
    assert_worked(&golden_inner(&a, &b).unwrap(), &[10.90930970976899]);
    let normalized = [0.585031781594391, 0.6306678675418335, 0.5098978871700715];
    assert_worked(&golden_normalize(&a).unwrap(), &normalized);
    let single = |x: &Tensor| x.cast(DType::F32).unwrap();
    let inner = golden_inner(&single(&a), &single(&b)).unwrap();
    assert_eq!(inner.dtype(), DType::F32);
    assert_close(&inner, &[10.90930970976899], 1e-7);
    assert_close(&golden_normalize(&single(&a)).unwrap(), &normalized, 1e-7);

    // Rows are independent.
    let rows = tensor(&[1.0, 2.0, 3.0, 0.0, 0.0, 0.0], &[2, 3]);
    assert_worked(&golden_normalize(&rows).unwrap(), &[&normalized[..], &[0.0; 3]].concat());
    assert_worked(&golden_inner(&rows, &rows).unwrap(), &[1.0 + 4.0 * WEIGHTS[0] + 9.0 * WEIGHTS[2], 0.0]);
    let empty = vector(&[]);
    assert_worked(&golden_inner(&empty, &empty).unwrap(), &[0.0]);
    assert_eq!(golden_normalize(&empty).unwrap().count(), 0);
}

#[test]
fn sums_refuse_operands_that_do_not_match() {
    let a = vector(&[1.0, 2.0]);
    assert_invalid(golden_inner(&a, &vector(&[1.0])), &["[2]", "[1]"]);
    assert_dtype_error(golden_inner(&a, &a.cast(DType::F32).unwrap()));
    assert_dtype_error(golden_normalize(&a.cast(DType::I64).unwrap()));
    assert_dtype_error(golden_weight(&a.cast(DType::F16).unwrap()));
    assert_invalid(golden_normalize(&a.select(0, 0).unwrap()), &["without dimensions"]);
}
