//! Matrix products.

use selvedge::gemm::Operation;
use selvedge::srt::*;
use selvedge::types::DType;
use selvedge::{Complex, Device, Error, Tensor};

use crate::common::*;

const MODES: [ProductMode; 2] = [ProductMode::Fast, ProductMode::Exact];

fn square_matrices() -> (Tensor, Tensor) {
    (tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), tensor(&[0.0, 1.0, 1.0, 0.0], &[2, 2]))
}

#[test]
fn transposed_products_have_the_worked_numbers_in_every_dtype() {
    let a = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]);
    let b = tensor(&[1.0, 0.0, 2.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0], &[3, 3]);
    for (dtype, _) in NUMBERS {
        let (a, b) = (a.cast(dtype).unwrap(), b.cast(dtype).unwrap());
        let check = |found: selvedge::Result<Tensor>, shape: [usize; 2], wanted: &[f64]| {
            let found = found.unwrap();
            assert_eq!((found.dtype(), &found.shape()[..]), (dtype, &shape[..]));
            assert_eq!(numbers(&found), as_parts(wanted, dtype));
        };
        for mode in MODES {
            check(mm_tn(&a, &b, mode), [2, 3], &[6.0, 8.0, 5.0, 8.0, 10.0, 8.0]);
            check(mm_hn(&a, &b, mode), [2, 3], &[6.0, 8.0, 5.0, 8.0, 10.0, 8.0]);
            check(mm_tt(&a, &b, mode), [2, 3], &[11.0, 8.0, 4.0, 14.0, 10.0, 6.0]);
            let square = [5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0];
            check(mm_nt(&a, &a, mode), [3, 3], &square);
            check(mm_nh(&a, &a, mode), [3, 3], &square);
            check(mm(&b, &a, mode), [3, 2], &[11.0, 14.0, 8.0, 10.0, 4.0, 6.0]);
        }
    }
}

/// The product by its definition, in complex numbers.
fn by_definition(a: &[Complex<f64>], b: &[Complex<f64>], [m, n, k]: [usize; 3]) -> Vec<Complex<f64>> {
    let element = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

#[test]
fn adjoint_and_batched_products_agree_with_their_definition() {
    let (m, n, k) = (5, 7, 19);
    let (a, b) = (complex_sequence(m * k, 1), complex_sequence(k * n, 2));
    let wanted = by_definition(&a, &b, [m, n, k]);
    let (a, b) = (tensor(&a, &[m, k]), tensor(&b, &[k, n]));
    let close = |found: &Tensor| {
        let found = found.to_vec::<Complex<f64>>().unwrap();
        assert!(found.iter().zip(&wanted).all(|(x, y)| (x - y).norm() < 1e-13));
    };
    let adjoint = |x: &Tensor| x.t().unwrap().conj().unwrap();
    for mode in MODES {
        close(&mm(&a, &b, mode).unwrap());
        close(&mm_hn(&adjoint(&a), &b, mode).unwrap());
        close(&mm_nh(&a, &adjoint(&b), mode).unwrap());
        close(&mm_tt(&a.t().unwrap(), &b.t().unwrap(), mode).unwrap());
        let batch = |x: &Tensor, y: &Tensor| Tensor::stack(&[x, y], 0).unwrap();
        let twice = a.mul(2.0).unwrap();
        let found = bmm(&batch(&a, &twice), &batch(&b, &b), mode).unwrap();
        close(&found.select(0, 0).unwrap());
        close(&found.select(0, 1).unwrap().mul(0.5).unwrap());
    }
}

#[test]
fn exact_products_add_with_ascending_k_by_fused_multiply_adds() {
    let (m, n, k) = (3, 5, 37);
    let (a, b) = (sequence(m * k, 3), sequence(k * n, 4));
    let sum = |i: usize, j: usize| (0..k).fold(0.0f64, |sum, p| a[i * k + p].mul_add(b[p * n + j], sum));
    let wanted: Vec<f64> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
    let found = mm(&tensor(&a, &[m, k]), &tensor(&b, &[k, n]), ProductMode::Exact).unwrap();
    assert_eq!(found.to_vec::<f64>().unwrap(), wanted);

    let single = |list: &[f64]| list.iter().map(|x| *x as f32).collect::<Vec<f32>>();
    let (a, b) = (single(&a), single(&b));
    let sum = |i: usize, j: usize| (0..k).fold(0.0f32, |sum, p| a[i * k + p].mul_add(b[p * n + j], sum));
    let wanted: Vec<f32> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
    let found = mm(&tensor(&a, &[m, k]), &tensor(&b, &[k, n]), ProductMode::Exact).unwrap();
    assert_eq!(found.to_vec::<f32>().unwrap(), wanted);

    let (a, b) = (complex_sequence(m * k, 5), complex_sequence(k * n, 6));
    let add = |sum: Complex<f64>, a: Complex<f64>, b: Complex<f64>| {
        let re = (-a.im).mul_add(b.im, a.re.mul_add(b.re, sum.re));
        Complex::new(re, a.im.mul_add(b.re, a.re.mul_add(b.im, sum.im)))
    };
    let sum = |i: usize, j: usize| {
        (0..k).fold(Complex::new(0.0, 0.0), |sum, p| add(sum, a[i * k + p], b[p * n + j]))
    };
    let wanted: Vec<Complex<f64>> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
    let found = mm(&tensor(&a, &[m, k]), &tensor(&b, &[k, n]), ProductMode::Exact).unwrap();
    assert_eq!(found.to_vec::<Complex<f64>>().unwrap(), wanted);
}

#[test]
fn products_without_depth_are_zero_and_without_rows_empty() {
    for (dtype, _) in NUMBERS {
        let empty = |rows, columns| Tensor::zeros(&[rows, columns], dtype, &Device::cpu()).unwrap();
        for mode in MODES {
            let zeros = mm(&empty(2, 0), &empty(0, 3), mode).unwrap();
            assert_eq!(numbers(&zeros), as_parts(&[0.0; 6], dtype));
            assert_eq!(mm(&empty(0, 2), &empty(2, 3), mode).unwrap().shape()[..], [0, 3]);
            let mut c = Tensor::full(&[2, 3], 2.0, dtype, &Device::cpu()).unwrap();
            let (a, b) = (empty(2, 0), empty(0, 3));
            gemm(1, (Operation::None, &a), (Operation::None, &b), 1.5, &mut c, mode).unwrap();
            assert_eq!(numbers(&c), as_parts(&[3.0; 6], dtype));
        }
    }
}

#[test]
fn gemm_scales_both_terms_and_does_not_read_c_with_a_beta_of_zero() {
    let (a, b) = square_matrices();
    for mode in MODES {
        let mut c = tensor(&[1.0, -1.0, 0.5, 2.0], &[2, 2]);
        gemm(2.0, (Operation::Transpose, &a), (Operation::None, &b), -4.0, &mut c, mode).unwrap();
        assert_eq!(numbers(&c), [2.0, 6.0, 6.0, -4.0]);
        let mut c = tensor(&[f64::NAN; 4], &[2, 2]);
        gemm(1.0, (Operation::None, &a), (Operation::Adjoint, &b), 0, &mut c, mode).unwrap();
        assert_eq!(numbers(&c), [2.0, 1.0, 4.0, 3.0]);
        let (za, zb) = (a.cast(DType::C128).unwrap(), b.cast(DType::C128).unwrap());
        let mut z = Tensor::full(&[2, 2], Complex::new(0.0, 1.0), DType::C128, &Device::cpu()).unwrap();
        let i = Complex::new(0.0, 1.0);
        gemm(i, (Operation::None, &za), (Operation::None, &zb), i, &mut z, mode).unwrap();
        assert_eq!(numbers(&z), [-1.0, 2.0, -1.0, 1.0, -1.0, 4.0, -1.0, 3.0]);
        let none = Operation::None;
        assert_dtype_error(gemm(i, (none, &a), (none, &b), 0, &mut c, mode));
        assert_dtype_error(gemm(1, (none, &a), (none, &b), i, &mut c, mode));
        assert_dtype_error(gemm(1, (none, &a), (none, &b), 0, &mut z, mode));
        let mut small = tensor(&[0.0; 2], &[1, 2]);
        assert_invalid(gemm(1, (none, &a), (none, &b), 0, &mut small, mode), &["[1, 2]", "[2, 2]"]);
    }
}

#[test]
fn golden_brackets_have_the_worked_numbers() {
    let commutator = [0.1458980337503153, -1.4721359549995796, 3.381966011250105, 1.7639320225002102];
    let anticommutator = [3.8541019662496847, 3.4721359549995796, 4.618033988749895, 4.23606797749979];
    for (dtype, tolerance) in NUMBERS {
        let (a, b) = square_matrices();
        let (a, b) = (a.cast(dtype).unwrap(), b.cast(dtype).unwrap());
        for mode in MODES {
            assert_close(&golden_commutator(&a, &b, mode).unwrap(), &as_parts(&commutator, dtype), tolerance);
            let found = golden_anticommutator(&a, &b, mode).unwrap();
            assert_close(&found, &as_parts(&anticommutator, dtype), tolerance);
        }
    }
    // Their sum is 2 A B, their difference 2 B A/φ; of A and A the commutator is A²/φ².
    let (a, b) = (tensor(&sequence(36, 7), &[6, 6]), tensor(&sequence(36, 8), &[6, 6]));
    let complex = [9, 10].map(|seed| tensor(&complex_sequence(36, seed), &[6, 6]));
    for ((a, b), mode) in
        [(&a, &b), (&complex[0], &complex[1])].into_iter().flat_map(|x| MODES.map(|mode| (x, mode)))
    {
        let plus = numbers(&golden_anticommutator(a, b, mode).unwrap());
        let minus = numbers(&golden_commutator(a, b, mode).unwrap());
        let (ab, ba) = (numbers(&mm(a, b, mode).unwrap()), numbers(&mm(b, a, mode).unwrap()));
        let own = numbers(&golden_commutator(a, a, mode).unwrap());
        let squared = numbers(&mm(a, a, mode).unwrap());
        for at in 0..plus.len() {
            assert!((plus[at] + minus[at] - 2.0 * ab[at]).abs() < 1e-14);
            assert!((plus[at] - minus[at] - 2.0 * INVERSE_PHI * ba[at]).abs() < 1e-14);
            assert!((own[at] - INVERSE_PHI_SQUARED * squared[at]).abs() < 1e-14);
        }
    }
    // In the exact mode the second product is added by one fused multiply-add.
    let ab = mm(&a, &b, ProductMode::Exact).unwrap().to_vec::<f64>().unwrap();
    let ba = mm(&b, &a, ProductMode::Exact).unwrap().to_vec::<f64>().unwrap();
    let wanted: Vec<f64> = ab.iter().zip(&ba).map(|(ab, ba)| ba.mul_add(-INVERSE_PHI, *ab)).collect();
    assert_eq!(golden_commutator(&a, &b, ProductMode::Exact).unwrap().to_vec::<f64>().unwrap(), wanted);
    let (wide, tall) = (tensor(&[0.0; 6], &[2, 3]), tensor(&[0.0; 6], &[3, 2]));
    for mode in MODES {
        assert_invalid(golden_commutator(&wide, &tall, mode), &["[2, 3]", "square"]);
        assert_invalid(golden_anticommutator(&wide, &wide, mode), &["[2, 3]"]);
    }
}

#[test]
fn weighted_products_have_the_worked_number_and_propagate_nan() {
    for (dtype, tolerance) in NUMBERS {
        let of = |shape: &[usize]| Tensor::ones(shape, dtype, &Device::cpu()).unwrap();
        for mode in MODES {
            let found = mm_golden_weighted(&of(&[1, 3]), &of(&[3, 1]), mode).unwrap();
            assert_close(&found, &as_parts(&[1.6234074650867416], dtype), tolerance);
            // The smaller operand is scaled, whichever it is.
            let wide = mm_golden_weighted(&of(&[1, 3]), &of(&[3, 2]), mode).unwrap();
            assert_close(&wide, &as_parts(&[1.6234074650867416; 2], dtype), tolerance);
        }
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let mut a = vec![1.0; 40];
        a[39] = bad;
        let (a, b) = (tensor(&a, &[1, 40]), tensor(&[1.0; 80], &[40, 2]));
        for mode in MODES {
            assert!(numbers(&mm_golden_weighted(&a, &b, mode).unwrap()).iter().all(|x| x.is_nan()));
        }
    }
}

#[test]
fn phased_products_are_complex() {
    let (a, b) = square_matrices();
    let (cos, sin) = (-0.3623748900804799, 0.9320324238132277);
    let ab = [2.0, 1.0, 4.0, 3.0];
    let turned: Vec<f64> = ab.iter().flat_map(|x| [x * cos, x * sin]).collect();
    assert!((turned[0] + 0.7247497801609598).abs() < 1e-15 && (turned[1] - 1.8640648476264554).abs() < 1e-15);
    for (dtype, tolerance) in NUMBERS {
        let (a, b) = (a.cast(dtype).unwrap(), b.cast(dtype).unwrap());
        for mode in MODES {
            let found = mm_golden_phase(&a, &b, 1, mode).unwrap();
            assert_eq!(found.dtype(), dtype.complex());
            assert_close(&found, &turned, tolerance);
            let back: Vec<f64> = ab.iter().flat_map(|x| [x * cos, -x * sin]).collect();
            assert_close(&mm_golden_phase(&a, &b, -1, mode).unwrap(), &back, tolerance);
            let same = mm_golden_phase(&a.neg().unwrap(), &b, 0, mode).unwrap();
            assert_eq!(numbers(&same), as_parts(&ab.map(|x| -x), DType::C128));
        }
        let imaginary = numbers(&mm_golden_phase(&a.neg().unwrap(), &b, 0, MODES[1]).unwrap())[1];
        assert_eq!(imaginary.to_bits(), 0);
    }
    // Angles of all quarters.
    let one = tensor(&[1.0], &[1, 1]);
    for n in [2, 3, 4, 5, 1000, -77, i32::MAX, i32::MIN] {
        let found = numbers(&mm_golden_phase(&one, &one, n, ProductMode::Fast).unwrap());
        let turns = f64::from(n) / PHI;
        let angle = std::f64::consts::PI * (turns - 2.0 * (turns / 2.0).round());
        assert!((found[0] - angle.cos()).abs() < 1e-15 && (found[1] - angle.sin()).abs() < 1e-15, "{n}");
    }
    let infinite = numbers(&mm_golden_phase(&tensor(&[f64::INFINITY], &[1, 1]), &one, 1, MODES[1]).unwrap());
    assert_eq!(infinite, [f64::NEG_INFINITY, f64::INFINITY]);
}

#[test]
fn projection_sums_have_the_worked_numbers() {
    for (dtype, tolerance) in NUMBERS {
        let of = |list: &[f64], shape: &[usize]| tensor(list, shape).cast(dtype).unwrap();
        let psi = of(&[1.0, 2.0], &[2, 1]);
        let (swap, identity) = (of(&[0.0, 1.0, 1.0, 0.0], &[2, 2]), of(&[1.0, 0.0, 0.0, 1.0], &[2, 2]));
        for mode in MODES {
            let found = projection_sum(&psi, &[&swap, &identity], &[0.5, -0.25], mode).unwrap();
            assert_close(&found, &as_parts(&[1.75, 2.0], dtype), tolerance);
            assert_eq!(numbers(&projection_sum(&psi, &[], &[], mode).unwrap()), numbers(&psi));
            let short = projection_sum(&psi, &[&swap], &[], mode);
            assert!(matches!(short, Err(Error::LengthMismatch { wanted: 1, found: 0, .. })), "{short:?}");
            let wide = of(&[0.0; 6], &[3, 2]);
            assert_invalid(projection_sum(&psi, &[&wide], &[1.0], mode), &["[3, 2]", "square"]);
        }
        let found = weighted_sum(&[&swap, &identity, &swap], &[2.0, -1.0, 0.5]).unwrap();
        assert_close(&found, &as_parts(&[-1.0, 2.5, 2.5, -1.0], dtype), tolerance);
    }
    let one = vector(&[1.0]);
    assert_invalid(weighted_sum(&[], &[]), &["no tensors"]);
    assert_invalid(weighted_sum(&[&one, &vector(&[1.0, 2.0])], &[1.0, 1.0]), &["[1]", "[2]"]);
    assert!(matches!(weighted_sum(&[&one], &[]), Err(Error::LengthMismatch { .. })));
    assert_dtype_error(weighted_sum(&[&one, &one.cast(DType::F32).unwrap()], &[1.0, 1.0]));
}

#[test]
fn products_refuse_operands_that_do_not_match() {
    let (a, b) = (tensor(&[0.0; 6], &[2, 3]), tensor(&[0.0; 8], &[2, 4]));
    let single = a.cast(DType::F32).unwrap();
    for mode in MODES {
        assert_invalid(mm(&a, &b, mode), &["[2, 3]", "[2, 4]"]);
        assert_invalid(mm_nt(&a, &b, mode), &["[2, 3]", "[2, 4]"]);
        assert_invalid(mm_tt(&a, &b, mode), &["[2, 3]", "[2, 4]"]);
        assert_eq!(mm_tn(&a, &b, mode).unwrap().shape()[..], [3, 4]);
        assert_invalid(mm(&a.select(0, 0).unwrap(), &b, mode), &["[3]", "two matrices"]);
        assert_invalid(bmm(&a, &b, mode), &["two batches"]);
        let (two, three) = (tensor(&[0.0; 8], &[2, 2, 2]), tensor(&[0.0; 12], &[3, 2, 2]));
        assert_invalid(bmm(&two, &three, mode), &["[2, 2, 2]", "[3, 2, 2]", "equal batch counts"]);
        assert_dtype_error(mm(&a, &single, mode));
        assert_dtype_error(mm(&a.cast(DType::I64).unwrap(), &b.cast(DType::I64).unwrap(), mode));
    }
}

#[test]
fn products_scaled_by_phi_and_corrections_have_the_worked_numbers() {
    let squared = [5.23606797749979, 2.618033988749895, 10.47213595499958, 7.854101966249685];
    let inverse = [1.2360679774997896, 0.6180339887498948, 2.472135954999579, 1.8541019662496843];
    let corrected = [2.000220928604191, 1.0001104643020955, 4.000441857208382, 3.0003313929062863];
    for (dtype, tolerance) in NUMBERS {
        let (a, b) = square_matrices();
        let (a, b) = (a.cast(dtype).unwrap(), b.cast(dtype).unwrap());
        let largest = if dtype.part() == DType::F32 { 184 } else { 1474 };
        for mode in MODES {
            let close = |found: selvedge::Result<Tensor>, wanted: &[f64]| {
                assert_close(&found.unwrap(), &as_parts(wanted, dtype), tolerance);
            };
            close(mm_phi(&a, &b, 2, mode), &squared);
            close(mm_phi(&a, &b, -1, mode), &inverse);
            close(mm_corrected(&a, &b, 248.0, 1, mode), &corrected);
            // A scale and its inverse restore the product.
            let bound = if dtype.part() == DType::F32 { 5e-7 } else { 1e-14 };
            for n in [1, -1, 7, 40, -77, 78, 79, -largest / 2, largest / 2] {
                let back = mm_phi(&a, &b, n, mode).unwrap().mul(phi_pow(-n).unwrap()).unwrap();
                assert_close(&back, &as_parts(&[2.0, 1.0, 4.0, 3.0], dtype), bound);
            }
            assert!(mm_phi(&a, &b, largest, mode).is_ok() && mm_phi(&a, &b, -largest, mode).is_ok());
            assert_invalid(mm_phi(&a, &b, largest + 1, mode), &["n = "]);
            assert_invalid(mm_phi(&a, &b, -largest - 1, mode), &["n = "]);
            assert_invalid(mm_corrected(&a, &b, 0.0, 1, mode), &["0"]);
            assert_invalid(mm_corrected(&a, &b, 248.0, 2, mode), &["2"]);
        }
    }
}
