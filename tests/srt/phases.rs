//! D and H phases, and gradients toward the lattice.

use selvedge::srt::*;
use selvedge::types::DType;
use selvedge::{Complex, Tensor};

use crate::common::*;

const V: [f64; 4] = [1.0, 0.5, -0.25, 0.125];
const N2: [f64; 4] = [0.0, 1.0, 4.0, 9.0];
const G: [f64; 4] = [0.5, -1.0, 2.0, 0.0];
const S: f64 = 0.8584177266443396;
const D: [f64; 4] = [1.007079113667783, 0.514908526238158, -0.26177715174913596, 0.14527985608151886];
const D_OF_ZERO: [f64; 4] = [1.05, 0.6052993844837284, -0.3331823890802436, 0.2682372542187894];
const H: [f64; 4] = [1.007079113667783, 0.38897564445722194, -0.13461833426121053, 0.06850030375458274];

#[test]
fn phases_have_the_worked_numbers_in_every_dtype() {
    for (dtype, tolerance) in NUMBERS {
        let cast = |list: &[f64], dtype| vector(list).cast(dtype).unwrap();
        let (v, g, n2) = (cast(&V, dtype), cast(&G, dtype), cast(&N2, dtype.part()));
        let wanted = |list: &[f64]| as_parts(list, dtype);
        let d = |s| resonant_d_phase(&v, &n2, &g, s, 0.1).unwrap();
        assert_eq!(d(S).dtype(), dtype);
        assert_close(&d(S), &wanted(&D), tolerance);
        assert_close(&d(0.0), &wanted(&D_OF_ZERO), tolerance);
        assert_eq!(numbers(&d(1.0)), wanted(&V));
        // An S outside of 0 to 1 is the nearer end.
        assert_eq!(numbers(&d(f64::INFINITY)), wanted(&V));
        assert_eq!(numbers(&d(-3.0)), numbers(&d(0.0)));
        let flux = cast(&D, dtype);
        assert_close(&h_phase(&flux, &n2, S).unwrap(), &wanted(&H), tolerance);
        assert_eq!(numbers(&h_phase(&v, &n2, 0.0).unwrap()), wanted(&V));
        assert_eq!(numbers(&h_phase(&v, &n2, -1.0).unwrap()), wanted(&V));
        // The cycle is D without noise, then H.
        let quiet = resonant_d_phase(&v, &n2, &g, S, 0.0).unwrap();
        let both = numbers(&h_phase(&quiet, &n2, S).unwrap());
        assert_close(&phase_cycle(&v, &n2, S).unwrap(), &both, tolerance);
    }
}

#[test]
fn both_parts_of_a_complex_number_have_the_factor() {
    let z = tensor(&[Complex::new(0.5, -2.0), Complex::new(f64::INFINITY, 1.0)], &[2]);
    let g = tensor(&[Complex::new(1.0, -1.0), Complex::new(0.0, 0.0)], &[2]);
    let n2 = vector(&[1.0, 4.0]);
    let real = |part: usize, z: &Tensor| z.view_as_real().unwrap().select(-1, part as isize).unwrap();
    for part in [0, 1] {
        let found = real(part, &resonant_d_phase(&z, &n2, &g, 0.3, 0.1).unwrap());
        let wanted = resonant_d_phase(&real(part, &z), &n2, &real(part, &g), 0.3, 0.1).unwrap();
        assert_eq!(numbers(&found), numbers(&wanted));
        let found = real(part, &h_phase(&z, &n2, 0.3).unwrap());
        assert_eq!(numbers(&found), numbers(&h_phase(&real(part, &z), &n2, 0.3).unwrap()));
    }
}

#[test]
fn a_row_of_a_batch_has_the_bits_of_a_single_vector() {
    for dtype in [DType::F64, DType::F32, DType::C128, DType::C64] {
        let cast = |list: &[f64], shape: &[usize], dtype| tensor(list, shape).cast(dtype).unwrap();
        let v = cast(&sequence(12, 5), &[3, 4], dtype);
        let g = cast(&sequence(12, 6), &[3, 4], dtype);
        let n2 = cast(&N2, &[4], dtype.part());
        let syntonies = [0.25f32, 1.5, 0.7];
        let s = tensor(&syntonies, &[3]).cast(dtype.part()).unwrap();
        let d = resonant_d_phase_batch(&v, &n2, &g, &s, 0.01).unwrap();
        let h = h_phase_batch(&v, &n2, &s).unwrap();
        for (row, s) in syntonies.into_iter().enumerate() {
            let row = |x: &Tensor| x.select(0, row as isize).unwrap();
            let wanted = resonant_d_phase(&row(&v), &n2, &row(&g), s.into(), 0.01).unwrap();
            assert_eq!(numbers(&row(&d)), numbers(&wanted), "{dtype}");
            assert_eq!(numbers(&row(&h)), numbers(&h_phase(&row(&v), &n2, s.into()).unwrap()), "{dtype}");
        }
    }
    // NaN stays in its row.
    let (v, n2) = (tensor(&[1.0; 4], &[2, 2]), vector(&[0.0, 1.0]));
    let s = vector(&[f64::NAN, 0.0]);
    let found = numbers(&h_phase_batch(&v, &n2, &s).unwrap());
    assert!(found[..2].iter().all(|x| x.is_nan()) && found[2..] == [1.0; 2], "{found:?}");
}

#[test]
fn d_with_full_syntony_and_h_without_any_are_identities() {
    for (dtype, _) in NUMBERS {
        let of = |seed, scale: f64| {
            let count = if dtype.is_complex() { 240 } else { 120 };
            let list: Vec<f64> = sequence(count, seed).iter().map(|x| x * scale).collect();
            let parts = tensor(&list, &[3, 40, count / 120]).cast(dtype.part()).unwrap();
            if dtype.is_complex() { parts.view_as_complex().unwrap() } else { parts.squeeze(-1).unwrap() }
        };
        let n2: Vec<f64> = (0..40).map(|i| f64::from(i * i)).collect();
        let n2 = vector(&n2).cast(dtype.part()).unwrap();
        let [full, none] = [1.0, 0.0].map(|s| vector(&[s; 3]).cast(dtype.part()).unwrap());
        for scale in [1e-30, 1.0, 1e30] {
            let (v, g) = (of(1, scale), of(2, 1.0));
            let wanted = v.to_bytes().unwrap();
            for found in [
                resonant_d_phase(&v, &n2, &g, 1.0, 0.1),
                resonant_d_phase_batch(&v, &n2, &g, &full, 0.1),
                h_phase(&v, &n2, 0.0),
                h_phase_batch(&v, &n2, &none),
            ] {
                assert_eq!(found.unwrap().to_bytes().unwrap(), wanted, "{dtype}, {scale}");
            }
        }
    }
}

#[test]
fn h_never_raises_a_magnitude_nor_lowers_syntony() {
    let (v, n2) = (sequence(400, 11), sequence(40, 12).iter().map(|x| 20.0 * x.abs()).collect::<Vec<_>>());
    let (rows, n2) = (tensor(&v, &[10, 40]), vector(&n2));
    for s in [0.1, 0.5, 1.0] {
        let h = h_phase(&rows, &n2, s).unwrap();
        assert!(numbers(&h).iter().zip(&v).all(|(h, v)| {
            h.abs() <= v.abs() && h.abs() >= v.abs() * INVERSE_PHI_SQUARED * (1.0 - 1e-15)
        }));
        let before = numbers(&syntony(&rows, &n2).unwrap());
        let after = numbers(&syntony(&h, &n2).unwrap());
        assert!(after.iter().zip(&before).all(|(after, before)| after >= before));
    }
}

#[test]
fn phases_refuse_bad_arguments_and_negative_norms_give_nan() {
    let (v, n2, g) = (vector(&V), vector(&N2), vector(&G));
    let single = |x: &Tensor| x.cast(DType::F32).unwrap();
    let d = |v: &Tensor, n2: &Tensor, g: &Tensor, s, sigma| resonant_d_phase(v, n2, g, s, sigma);
    assert_invalid(d(&v, &n2, &g, f64::NAN, 0.1), &["S = NaN"]);
    assert_invalid(h_phase(&v, &n2, f64::NAN), &["S = NaN"]);
    assert_invalid(phase_cycle(&v, &n2, f64::NAN), &["S = NaN"]);
    assert_invalid(d(&v, &n2, &g, 0.5, f64::INFINITY), &["sigma = inf"]);
    assert_invalid(d(&v, &vector(&[1.0]), &g, 0.5, 0.1), &["n2", "[1]", "[4]"]);
    assert_invalid(d(&v, &n2, &vector(&[1.0]), 0.5, 0.1), &["[4]", "[1]"]);
    assert_dtype_error(d(&v, &single(&n2), &g, 0.5, 0.1));
    assert_dtype_error(d(&v, &n2, &single(&g), 0.5, 0.1));
    assert_dtype_error(h_phase(&v.cast(DType::I64).unwrap(), &n2, 0.5));
    assert_invalid(h_phase(&v.select(0, 0).unwrap(), &n2, 0.5), &["without dimensions"]);
    let rows = tensor(&V, &[2, 2]);
    let n2_of_two = vector(&[0.0, 1.0]);
    assert_invalid(h_phase_batch(&rows, &n2_of_two, &vector(&[1.0; 3])), &["S of shape [3]", "[2]"]);
    assert_dtype_error(h_phase_batch(&rows, &n2_of_two, &single(&vector(&[1.0; 2]))));
    let negative =
        numbers(&d(&vector(&[1.0, 1.0]), &vector(&[-1.0, 0.0]), &vector(&[0.0; 2]), 0.5, 0.1).unwrap());
    assert!(negative[0].is_nan() && negative[1] == 1.0, "{negative:?}");
    let empty = vector(&[]);
    assert_eq!(d(&empty, &empty, &empty, 0.5, 0.1).unwrap().count(), 0);
}

#[test]
fn snap_gradients_have_the_worked_numbers() {
    let (flux, lattice, n2) =
        (vector(&[1.5, 2.5, 3.5, 0.5]), vector(&[2.0, 2.0, 4.0, 1.0]), vector(&[0.0, 1.0, 4.0, 9.0]));
    let weighted = [0.5, -0.2695015413620223, 0.04220219118134844, 0.0019199558666834534];
    let magnitude = [0.49999999995, 0.9276384791350497, 5.923863020039019, 130.21132299321326];
    let single = |x: &Tensor| x.cast(DType::F32).unwrap();
    for (mode, wanted) in [
        (SnapGradientMode::Weighted, weighted),
        (SnapGradientMode::Magnitude, magnitude),
        (SnapGradientMode::Plain, [0.5, -0.5, 0.5, 0.5]),
    ] {
        assert_worked(&snap_gradient(&flux, &lattice, &n2, mode).unwrap(), &wanted);
        let found = snap_gradient(&single(&flux), &single(&lattice), &single(&n2), mode).unwrap();
        assert_eq!(found.dtype(), DType::F32);
        assert_close(&found, &wanted, 1e-7);
    }
    // An underflowing weight bounds the magnitude by 1e10.
    let far = snap_gradient(&vector(&[1.0]), &vector(&[3.0]), &vector(&[1e4]), SnapGradientMode::Magnitude);
    assert_worked(&far.unwrap(), &[2e10]);
    let empty = vector(&[]);
    assert_eq!(snap_gradient(&empty, &empty, &empty, SnapGradientMode::Weighted).unwrap().count(), 0);
    let mode = SnapGradientMode::default();
    assert_invalid(snap_gradient(&flux, &vector(&[1.0]), &n2, mode), &["[4]", "[1]"]);
    assert_invalid(snap_gradient(&flux, &lattice, &vector(&[1.0]), mode), &["n2"]);
    assert_dtype_error(snap_gradient(&flux, &single(&lattice), &n2, mode));
}

#[test]
fn crystallized_flux_has_the_worked_points_and_syntony() {
    let (flux, n2) = (vector(&D), vector(&N2));
    let (points, s) = harmonize_and_crystallize(&flux, &n2, S, 10).unwrap();
    assert_eq!(points.a().to_vec::<i64>().unwrap(), [1, 2, -5, -8]);
    assert_eq!(points.b().to_vec::<i64>().unwrap(), [0, -1, 3, 5]);
    assert_worked(&s, &[0.9193003277430948]);
    let single = |x: &Tensor| x.cast(DType::F32).unwrap();
    let (points, s) = harmonize_and_crystallize(&single(&flux), &single(&n2), S, 10).unwrap();
    assert_eq!(points.a().to_vec::<i64>().unwrap(), [1, 2, -5, -8]);
    assert_eq!(s.dtype(), DType::F64);
    assert_invalid(harmonize_and_crystallize(&flux, &n2, f64::NAN, 10), &["S = NaN"]);
    assert_invalid(harmonize_and_crystallize(&flux, &n2, S, -1), &["-1"]);
    let complex = |x: &Tensor| x.cast(DType::C128).unwrap();
    assert_dtype_error(harmonize_and_crystallize(&complex(&flux), &n2, S, 10));
}
