//! The golden-ratio operations of the C ABI: worked numbers of each group, several results, and refusals.

use selvedge::capi::srt::exact::*;
use selvedge::capi::srt::golden_exact::*;
use selvedge::capi::srt::lattice::*;
use selvedge::capi::srt::phases::*;
use selvedge::capi::srt::products::*;
use selvedge::capi::srt::ramp::*;
use selvedge::capi::srt::symbolic::*;
use selvedge::capi::srt::values::*;
use selvedge::capi::srt::{SV_SRT_ESTAR, SV_SRT_PHI, SV_SRT_Q_DEFICIT};
use selvedge::capi::status::*;
use selvedge::capi::tensor::{SV_DTYPE_F64, SV_DTYPE_I64, creation, sv_operand};

use selvedge::capi::library::sv_release;
use selvedge::capi::nn::gpt::{SV_CONTINUE, SV_STOP};
use selvedge::capi::srt::evolver::*;
use selvedge::capi::srt::norms::*;

use super::{CPU, check, fails, integers, ok, real, take};

fn doubles(elements: &[f64], shape: &[i64]) -> u64 {
    let (data, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
    // SAFETY: the pointers are to slices of these lengths.
    ok(|result| unsafe {
        creation::sv_tensor_from_host(data, bytes, SV_DTYPE_F64, shape.as_ptr(), shape.len(), CPU, result)
    })
}

fn vector(elements: &[f64]) -> u64 {
    doubles(elements, &[elements.len() as i64])
}

#[track_caller]
fn close(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= 1e-12 * wanted.abs(), "{found}, wanted {wanted}");
    }
}

#[test]
fn products_have_their_worked_numbers() {
    let (a, b) = (doubles(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), doubles(&[0.0, 1.0, 1.0, 0.0], &[2, 2]));
    let fast = SV_SRT_PRODUCT_FAST;
    // SAFETY: all pointers are to locals.
    unsafe {
        for mode in [fast, SV_SRT_PRODUCT_EXACT] {
            close(&take(ok(|result| sv_srt_mm_nt(a, b, mode, result))), &[2.0, 1.0, 4.0, 3.0]);
            let commutator = take(ok(|result| sv_srt_golden_commutator(a, b, mode, result)));
            close(
                &commutator,
                &[0.1458980337503153, -1.4721359549995796, 3.381966011250105, 1.7639320225002102],
            );
            let scaled = take(ok(|result| sv_srt_mm_phi(a, b, 2, mode, result)));
            close(&scaled, &[5.23606797749979, 2.618033988749895, 10.47213595499958, 7.854101966249685]);
        }
        let (alpha, beta) = (real(2.0), real(-1.0));
        let transpose = SV_SRT_OPERATION_TRANSPOSE;
        let sum = take(ok(|result| sv_srt_gemm(&alpha, 0, a, transpose, b, &beta, a, fast, result)));
        close(&sum, &[3.0, 0.0, 5.0, 2.0]);
        close(
            &take(ok(|result| sv_srt_weighted_sum([a, b].as_ptr(), [0.5, -2.0].as_ptr(), 2, result))),
            &[0.5, -1.0, -0.5, 2.0],
        );
        let mut result = 7;
        fails(sv_srt_mm(a, b, 9, &mut result), SV_ERROR_INVALID_ARGUMENT, "mode");
        assert_eq!(result, 7);
        fails(sv_srt_mm(a, a, fast, std::ptr::null_mut()), SV_ERROR_INVALID_ARGUMENT, "result");
    }
}

#[test]
fn exact_numbers_report_their_overflow() {
    let (mut number, mut power) = (0, 0.0);
    // SAFETY: all pointers are to locals.
    unsafe {
        check(sv_srt_fibonacci(92, &mut number));
        assert_eq!(number, 7_540_113_804_746_346_429);
        fails(sv_srt_fibonacci(93, &mut number), SV_ERROR_OVERFLOW, "fibonacci");
        let mut double = 0.0;
        check(sv_srt_fibonacci_f64(93, &mut double));
        assert_eq!(double, 12_200_160_415_121_876_738.0);
        check(sv_srt_lucas_f64(-3, &mut double));
        assert_eq!(double, -4.0);
        let mut generation = 0;
        check(sv_srt_generation_of_row([0, -12, 1, 0].as_ptr(), &mut generation));
        assert_eq!(generation, 6);
        check(sv_srt_phi_pow(10, &mut power));
        close(&[power], &[122.99186938124421]);
        let mut period = 0;
        check(sv_srt_pisano(7, &mut period));
        assert_eq!(period, 16);
        let (mut values, mut overflow) = (0, 0);
        let k = integers(&[10, 93], &[2]);
        check(sv_srt_fibonacci_batch(k, &mut values, &mut overflow));
        assert_eq!((take::<i64>(values)[0], take::<u8>(overflow)), (55, vec![0, 1]));
        // (2 + 3φ)(1 - φ) = -1 - 2φ
        let [x_a, x_b, y_a, y_b] = [2, 3, 1, -1].map(|number| integers(&[number], &[1]));
        let (mut a, mut b) = (0, 0);
        check(sv_srt_golden_operation(SV_SRT_GOLDEN_MUL, x_a, x_b, y_a, y_b, &mut a, &mut b, &mut overflow));
        assert_eq!((take::<i64>(a), take::<i64>(b), take::<u8>(overflow)), (vec![-1], vec![-2], vec![0]));
        check(sv_srt_golden_operation(SV_SRT_GOLDEN_NEG, x_a, x_b, 0, 0, &mut a, &mut b, &mut overflow));
        assert_eq!((take::<i64>(a), take::<i64>(b)), (vec![-2], vec![-3]));
        let (mut bounds, mut count) = ([0i64; 3], 0);
        check(sv_srt_precision_ramp(100, 5, bounds.as_mut_ptr(), 3, &mut count));
        assert_eq!((bounds, count), ([100, 162, 263], 6));
        let sequence = ok(|result| sv_srt_fibonacci_sequence(5, SV_DTYPE_I64, CPU, result));
        assert_eq!(take::<i64>(sequence), [0, 1, 1, 2, 3]);
    }
}

#[test]
fn constants_are_those_of_the_library() {
    use selvedge::{capi, srt};
    for (found, wanted) in [
        (capi::srt::SV_SRT_PHI, srt::PHI),
        (capi::srt::SV_SRT_INVERSE_PHI, srt::INVERSE_PHI),
        (capi::srt::SV_SRT_INVERSE_PHI_SQUARED, srt::INVERSE_PHI_SQUARED),
        (capi::srt::SV_SRT_SQRT5, srt::SQRT5),
        (capi::srt::SV_SRT_LN_PHI, srt::LN_PHI),
        (capi::srt::SV_SRT_ESTAR, srt::ESTAR),
        (capi::srt::SV_SRT_Q_DEFICIT, srt::Q_DEFICIT),
        (capi::srt::SV_SRT_PROJECTION_NORM, srt::PROJECTION_NORM),
        (capi::srt::SV_SRT_LARGEST_SNAP_BOUND as f64, srt::LARGEST_SNAP_BOUND as f64),
    ] {
        assert_eq!(found.to_bits(), wanted.to_bits());
    }
}

#[test]
fn symbolic_expressions_have_a_largest_size() {
    // SAFETY: all pointers are to locals.
    unsafe {
        let release = |x| check(sv_release(x));
        let (mut x, mut nodes, mut handle) = (ok(|result| sv_srt_symbolic_input(0, result)), 0, 7);
        // Each product has twice the nodes and one: 2^20 - 1 of them after 19 products.
        for _ in 0..19 {
            let product = symbolic(SV_SRT_SYMBOLIC_MUL, x, x);
            release(x);
            x = product;
        }
        let power = ok(|result| sv_srt_symbolic_pow(x, 1, 3, result));
        check(sv_srt_symbolic_node_count(power, &mut nodes));
        assert_eq!(nodes, 1 << 20);
        let found = sv_srt_symbolic_operation(SV_SRT_SYMBOLIC_MUL, x, x, &mut handle);
        fails(found, SV_ERROR_INVALID_ARGUMENT, "x and y: found 2097151 leaves and functions");
        for function in [SV_SRT_SYMBOLIC_NEG, SV_SRT_SYMBOLIC_SIN] {
            let found = sv_srt_symbolic_operation(function, power, 0, &mut handle);
            fails(found, SV_ERROR_INVALID_ARGUMENT, "x: found 1048577 leaves and functions");
        }
        let found = sv_srt_symbolic_pow(power, 2, 1, &mut handle);
        fails(found, SV_ERROR_INVALID_ARGUMENT, "at most 1048576");
        assert_eq!(handle, 7);
        release(x);
        release(power);
    }
}

/// Returns the exact number that a function writes.
#[track_caller]
fn exact(function: impl FnOnce(*mut sv_srt_exact) -> i32) -> sv_srt_exact {
    let zero = sv_srt_rational { numerator: 0.into(), denominator: 1.into() };
    let mut number = sv_srt_exact { a: zero, b: zero };
    check(function(&mut number));
    number
}

#[test]
fn exact_numbers_have_their_worked_values() {
    // SAFETY: all pointers are to locals.
    unsafe {
        let fraction = |parts: [i64; 4]| {
            exact(|result| sv_srt_exact_create(parts[0], parts[1], parts[2], parts[3], result))
        };
        let golden = |a, b| fraction([a, 1, b, 1]);
        let apply =
            |code, x: &sv_srt_exact, y: *const _| exact(|result| sv_srt_exact_operation(code, x, y, result));
        let (x, y, null) = (golden(2, 3), golden(1, -1), std::ptr::null());
        for (code, other, wanted) in [
            (SV_SRT_GOLDEN_ADD, &raw const y, golden(3, 2)),
            (SV_SRT_GOLDEN_SUB, &y, golden(1, 4)),
            (SV_SRT_GOLDEN_MUL, &y, golden(-1, -2)),
            (SV_SRT_GOLDEN_DIV, &y, golden(-3, -5)),
            (SV_SRT_GOLDEN_NEG, null, golden(-2, -3)),
            (SV_SRT_GOLDEN_CONJUGATE, null, golden(5, -3)),
            (SV_SRT_GOLDEN_INVERSE, null, golden(5, -3)),
            (SV_SRT_GOLDEN_RECURSION, null, golden(3, 5)),
            (SV_SRT_GOLDEN_RECURSION_INVERSE, null, golden(1, 2)),
        ] {
            assert_eq!(apply(code, &x, other), wanted, "{code}");
        }
        let inverse = apply(SV_SRT_GOLDEN_INVERSE, &golden(2, 1), null);
        assert_eq!(inverse, fraction([6, 10, 1, -5]));
        let (mut text, mut length) = ([0u8; 32], 0);
        check(sv_srt_exact_text(&inverse, text.as_mut_ptr().cast(), 32, &mut length));
        assert_eq!(std::str::from_utf8(&text[..length]), Ok("3/5 - 1/5 φ"));
        let mut value = 0.0;
        check(sv_srt_exact_value(&inverse, &mut value));
        close(&[value], &[0.276393202250021]);
        // An operand need not be in lowest terms.
        let coarse = sv_srt_rational { numerator: (-6).into(), denominator: (-10).into() };
        assert_eq!(apply(SV_SRT_GOLDEN_ADD, &sv_srt_exact { a: coarse, ..inverse }, &golden(0, 0)), inverse);

        let (mut norm, mut trace, mut order) = (x.a, x.a, 7);
        check(sv_srt_exact_norm(&x, &mut norm));
        check(sv_srt_exact_trace(&x, &mut trace));
        assert_eq!((norm.numerator, trace.numerator), (1.into(), 7.into()));
        let phi = golden(0, 1);
        let power = exact(|result| sv_srt_exact_phi_pow(90, result));
        assert_eq!(exact(|result| sv_srt_exact_pow(&phi, 90, result)), power);
        for (left, right, wanted) in [(&x, &y, 1), (&y, &x, -1), (&x, &x, 0)] {
            check(sv_srt_exact_compare(left, right, &mut order));
            assert_eq!(order, wanted);
        }
        let (mut a, mut b) = (0, 0);
        check(sv_srt_exact_integers(&power, &mut a, &mut b));
        assert_eq!((a, b), (1_779_979_416_004_714_189, 2_880_067_194_370_816_120));

        let mut result = x;
        let refused = sv_srt_exact_integers(&inverse, &mut a, &mut b);
        fails(refused, SV_ERROR_INVALID_ARGUMENT, "integer coefficients");
        let huge = exact(|result| sv_srt_exact_phi_pow(183, result));
        let overflow = sv_srt_exact_operation(SV_SRT_GOLDEN_MUL, &huge, &huge, &mut result);
        fails(overflow, SV_ERROR_OVERFLOW, "i128");
        let divided = sv_srt_exact_operation(SV_SRT_GOLDEN_DIV, &x, &golden(0, 0), &mut result);
        fails(divided, SV_ERROR_DIVISION_BY_ZERO, "2 + 3 φ");
        fails(sv_srt_exact_create(1, 0, 0, 1, &mut result), SV_ERROR_DIVISION_BY_ZERO, "1");
        fails(sv_srt_exact_operation(0, &x, &y, &mut result), SV_ERROR_INVALID_ARGUMENT, "operation");
        let missing = sv_srt_exact_operation(SV_SRT_GOLDEN_ADD, &x, null, &mut result);
        fails(missing, SV_ERROR_INVALID_ARGUMENT, "y");
        assert_eq!(result, x);
        let one = integers(&[1], &[1]);
        let fraction = sv_srt_golden_operation(SV_SRT_GOLDEN_DIV, one, one, one, one, &mut 0, &mut 0, &mut 0);
        fails(fraction, SV_ERROR_INVALID_ARGUMENT, "integer results");
    }
}

/// Returns an operation on symbolic expressions, or a function of the first one.
fn symbolic(operation: i32, x: u64, y: u64) -> u64 {
    // SAFETY: the pointer is to a local.
    ok(|result| unsafe { sv_srt_symbolic_operation(operation, x, y, result) })
}

fn symbolic_text(x: u64) -> String {
    let (mut text, mut length) = ([0u8; 64], 0);
    // SAFETY: the pointers are to locals.
    check(unsafe { sv_srt_symbolic_text(x, text.as_mut_ptr().cast(), 64, &mut length) });
    String::from_utf8(text[..length].to_vec()).unwrap()
}

#[test]
fn symbolic_expressions_have_their_worked_values() {
    // SAFETY: all pointers are to locals.
    unsafe {
        let integer = |value| ok(|result| sv_srt_symbolic_integer(value, result));
        let rational = |top, bottom| ok(|result| sv_srt_symbolic_rational(top, bottom, result));
        let constant = |code| ok(|result| sv_srt_symbolic_constant(code, result));
        let pow = |x, top, bottom| ok(|result| sv_srt_symbolic_pow(x, top, bottom, result));
        let evaluate = |x, inputs: &[f64]| {
            let mut value = 0.0;
            check(sv_srt_symbolic_evaluate(x, inputs.as_ptr(), inputs.len(), &mut value));
            value
        };
        let [pi, e, phi, estar, q] = [
            (SV_SRT_CONSTANT_PI, std::f64::consts::PI),
            (SV_SRT_CONSTANT_E, std::f64::consts::E),
            (SV_SRT_CONSTANT_PHI, SV_SRT_PHI),
            (SV_SRT_CONSTANT_ESTAR, SV_SRT_ESTAR),
            (SV_SRT_CONSTANT_Q, SV_SRT_Q_DEFICIT),
        ]
        .map(|(code, value)| {
            assert_eq!(evaluate(constant(code), &[]), value, "{code}");
            constant(code)
        });
        // q = (2 phi + e/(2 phi^2)) / (phi^4 (e^pi - pi)).
        let two = integer(2);
        let last = symbolic(SV_SRT_SYMBOLIC_DIV, e, symbolic(SV_SRT_SYMBOLIC_MUL, two, pow(phi, 2, 1)));
        let top = symbolic(SV_SRT_SYMBOLIC_ADD, symbolic(SV_SRT_SYMBOLIC_MUL, two, phi), last);
        let bottom = symbolic(SV_SRT_SYMBOLIC_MUL, pow(phi, 4, 1), estar);
        let formula = symbolic(SV_SRT_SYMBOLIC_DIV, top, bottom);
        close(&[evaluate(formula, &[])], &[evaluate(q, &[])]);
        let difference = symbolic(SV_SRT_SYMBOLIC_SUB, symbolic(SV_SRT_SYMBOLIC_EXP, pi, 0), pi);
        close(&[evaluate(difference, &[])], &[SV_SRT_ESTAR]);

        // Exact leaves of one kind fold, also beyond 64 bits.
        let golden = exact(|result| sv_srt_exact_phi_pow(1, result));
        let golden = ok(|result| sv_srt_symbolic_exact(&golden, result));
        let large = integer(i64::MAX);
        for (found, wanted) in [
            (symbolic(SV_SRT_SYMBOLIC_DIV, integer(6), integer(4)), "3/2"),
            (symbolic(SV_SRT_SYMBOLIC_ADD, rational(1, 2), rational(-1, -3)), "5/6"),
            (symbolic(SV_SRT_SYMBOLIC_MUL, golden, golden), "(1 + φ)"),
            (symbolic(SV_SRT_SYMBOLIC_MUL, large, large), "85070591730234615847396907784232501249"),
            (symbolic(SV_SRT_SYMBOLIC_ADD, two, rational(1, 2)), "(2 + 1/2)"),
        ] {
            assert_eq!(symbolic_text(found), wanted);
        }

        let [x, y] = [0, 1].map(|slot| ok(|result| sv_srt_symbolic_input(slot, result)));
        let root = pow(x, -1, 3);
        let logarithm = symbolic(SV_SRT_SYMBOLIC_NEG, symbolic(SV_SRT_SYMBOLIC_LN, y, 0), 0);
        let sum = symbolic(SV_SRT_SYMBOLIC_ADD, root, logarithm);
        assert_eq!(symbolic_text(sum), "(x0^(-1/3) + -(ln(x1)))");
        let (mut nodes, mut slots, mut same) = (0, 0, 7);
        check(sv_srt_symbolic_node_count(sum, &mut nodes));
        check(sv_srt_symbolic_slots(sum, &mut slots));
        assert_eq!((nodes, slots), (6, 2));
        for (other, wanted) in [(symbolic(SV_SRT_SYMBOLIC_ADD, pow(x, 2, -6), logarithm), 1), (root, 0)] {
            check(sv_srt_symbolic_is_same(sum, other, &mut same));
            assert_eq!(same, wanted);
        }
        // An expression needs no handle of its operands.
        for part in [root, logarithm] {
            check(sv_release(part));
        }
        let rows = doubles(&[-8.0, 1.0, 1.0, 0.0, 2.0, -1.0], &[3, 2]);
        for _ in 0..2 {
            let values = take::<f64>(ok(|result| sv_srt_symbolic_run_rows(sum, rows, result)));
            close(&values[..1], &[-0.5]);
            assert!(values[1] == f64::INFINITY && values[2].is_nan(), "{values:?}");
        }
        for (function, input, wanted) in [
            (SV_SRT_SYMBOLIC_GAMMA, 5.0, 24.0),
            (SV_SRT_SYMBOLIC_SIN, 1.0, 1f64.sin()),
            (SV_SRT_SYMBOLIC_COS, 1.0, 1f64.cos()),
        ] {
            close(&[evaluate(symbolic(function, x, 0), &[input])], &[wanted]);
        }

        let mut handle = 7;
        let refused = sv_srt_symbolic_run_rows(sum, doubles(&[1.0], &[1, 1]), &mut handle);
        fails(refused, SV_ERROR_INVALID_ARGUMENT, "2 columns");
        let far = ok(|result| sv_srt_symbolic_input(63, result));
        let refused = sv_srt_symbolic_run_rows(far, rows, &mut handle);
        fails(refused, SV_ERROR_INVALID_ARGUMENT, "input slot 63");
        let refused = sv_srt_symbolic_run_rows(rows, rows, &mut handle);
        fails(refused, SV_ERROR_INVALID_HANDLE, "symbolic expression");
        fails(sv_srt_symbolic_rational(1, 0, &mut handle), SV_ERROR_DIVISION_BY_ZERO, "1");
        fails(sv_srt_symbolic_pow(x, 1, 0, &mut handle), SV_ERROR_DIVISION_BY_ZERO, "1");
        fails(sv_srt_symbolic_constant(0, &mut handle), SV_ERROR_INVALID_ARGUMENT, "constant");
        fails(sv_srt_symbolic_operation(0, x, y, &mut handle), SV_ERROR_INVALID_ARGUMENT, "operation");
        let missing = sv_srt_symbolic_operation(SV_SRT_SYMBOLIC_ADD, x, 0, &mut handle);
        fails(missing, SV_ERROR_INVALID_HANDLE, "y");
        assert_eq!(handle, 7);
    }
}

#[test]
fn ramps_snap_at_their_first_bounds() {
    let values = vector(&[0.2, -0.5]);
    let (mut bounds, mut a, mut b, mut count) = ([0; 4], [0; 4], [0; 4], 0);
    let null = std::ptr::null_mut();
    // SAFETY: all pointers are to locals.
    unsafe {
        check(sv_srt_snap_ramp(values, 10, 2, null, null.cast(), null.cast(), 0, &mut count));
        assert_eq!(count, 3);
        // One place stays as it is.
        let (first, second, third) = (bounds.as_mut_ptr(), a.as_mut_ptr(), b.as_mut_ptr());
        check(sv_srt_snap_ramp(values, 10, 2, first, second, third, 4, &mut count));
        assert_eq!((bounds, count, a[3], b[3]), ([10, 17, 28, 0], 3, 0, 0));
        for at in 0..3 {
            let (mut wanted_a, mut wanted_b) = (0, 0);
            check(sv_srt_snap(values, bounds[at], &mut wanted_a, &mut wanted_b));
            assert_eq!(take::<i64>(a[at]), take::<i64>(wanted_a));
            assert_eq!(take::<i64>(b[at]), take::<i64>(wanted_b));
        }
        check(sv_srt_snap_ramp(values, 10, 2, first, second, third, 1, &mut count));
        assert_eq!(count, 3);
        for handle in [a[0], b[0]] {
            check(sv_release(handle));
        }
        let missing = sv_srt_snap_ramp(values, 10, 2, null, second, third, 4, &mut count);
        fails(missing, SV_ERROR_INVALID_ARGUMENT, "bounds");
        let large = sv_srt_snap_ramp(values, 1 << 20, 1, first, second, third, 4, &mut count);
        fails(large, SV_ERROR_INVALID_ARGUMENT, "snap");
    }
}

#[test]
fn phases_and_values_have_their_worked_numbers() {
    let (v, n2) = (vector(&[1.0, 0.5, -0.25, 0.125]), vector(&[0.0, 1.0, 4.0, 9.0]));
    let g = vector(&[0.5, -1.0, 2.0, 0.0]);
    let s = 0.8584177266443396;
    // SAFETY: all pointers are to locals.
    unsafe {
        close(&take(ok(|result| sv_srt_syntony(v, n2, result))), &[s]);
        let flux = ok(|result| sv_srt_resonant_d_phase(v, n2, g, s, 0.1, result));
        let (mut a, mut b, mut syntony) = (0, 0, 0);
        check(sv_srt_harmonize_and_crystallize(flux, n2, s, 10, &mut a, &mut b, &mut syntony));
        assert_eq!((take::<i64>(a), take::<i64>(b)), (vec![1, 2, -5, -8], vec![0, -1, 3, 5]));
        close(&take(syntony), &[0.9193003277430948]);
        let (mut index, mut value) = (0, 0);
        check(sv_srt_argmax_syntony(g, &mut index, &mut value));
        assert_eq!((take::<i64>(index), take::<f64>(value)), (vec![2], vec![2.0]));
        let normal = take(ok(|result| sv_srt_gauss(42, 0, [2].as_ptr(), 1, CPU, result)));
        close(&normal, &[0.4147197504315305, -0.8918862136277562]);
        let (mut d_phase, mut h_phase) = (0.0, 0.0);
        check(sv_srt_dwell(100.0, s, &mut d_phase, &mut h_phase));
        close(&[d_phase, h_phase], &[100.0, 151.14670884504525]);

        let (x, r) = (vector(&[1.0, -1.0, 0.5, -2.0]), vector(&[1.0, 2.0, -3.0, 1.0]));
        let relu = take(ok(|result| sv_srt_phi_residual_relu(x, r, SV_SRT_RESIDUAL_PHI, 0, result)));
        close(&relu, &[1.618033988749895, 0.2360679774997898, 0.0, 0.0]);
        let (divisors, signs, start, length) = ([248.0, 36.0, 8.0], [1, -1, 1], [0], [3]);
        let hundred = vector(&[100.0]);
        let (divisors, signs) = (divisors.as_ptr(), signs.as_ptr());
        let chain = |length: &[usize; 1], result| {
            sv_srt_correct_chain(hundred, divisors, signs, 3, start.as_ptr(), length.as_ptr(), 1, result)
        };
        close(&take(ok(|result| chain(&length, result))), &[100.27715694061784]);
        let mut result = 0;
        fails(chain(&[usize::MAX], &mut result), SV_ERROR_INVALID_ARGUMENT, "range");
        let mut factor = 0.0;
        check(sv_srt_correction(24.0, -1, &mut factor));
        close(&[factor], &[0.9988585355450127]);
    }
}

#[test]
fn lattice_operations_have_their_worked_numbers() {
    let v = doubles(&[1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], &[1, 8]);
    // SAFETY: all pointers are to locals.
    unsafe {
        let (mut parallel, mut perpendicular) = (0, 0);
        check(sv_srt_project_e8(v, SV_SRT_E8_ADJACENT, &mut parallel, &mut perpendicular));
        close(&take(parallel), &[1.3763819204711736, 0.0, 0.0, 0.0]);
        close(&take(perpendicular), &[-0.32491969623290634, 0.0, 0.0, 0.0]);
        close(
            &take(ok(|result| sv_srt_quadratic_form(v, SV_SRT_E8_OFFSET4, result))),
            &[-0.8944271909999161],
        );
        let roots = ok(|result| sv_srt_e8_roots(SV_SRT_ROOTS_NULL_CONE, CPU, result));
        let weights = sv_operand { tensor: 0, number: real(1.0) };
        let theta = ok(|result| sv_srt_theta_sum(roots, &weights, 2.0, SV_SRT_E8_OFFSET4, result));
        close(&take(theta), &[93.11969749001811]);
        let inside = ok(|result| sv_srt_golden_cone_test(roots, SV_SRT_CONE_NULL, 1e-10, result));
        assert_eq!(take::<u8>(inside), [1; 36]);
        let mut result = 0;
        fails(sv_srt_project_e8(v, 2, &mut result, &mut 0), SV_ERROR_INVALID_ARGUMENT, "layout");
        let four = doubles(&[0.0; 4], &[1, 4]);
        fails(sv_srt_weight_8d(four, &mut result), SV_ERROR_INVALID_ARGUMENT, "8");
    }
}

#[test]
fn golden_norms_have_their_worked_numbers() {
    let batch = doubles(&[1.0, 10.0, 2.0, 10.0, 3.0, 10.0], &[3, 2]);
    let root = 0.9628276468655639;
    // SAFETY: all pointers are to locals.
    unsafe {
        let rows = vector(&[1.0, 2.0, 3.0, 4.0]);
        let wanted = [-1.0547285338567312, -0.3515761779522437, 0.3515761779522437, 1.0547285338567312];
        close(&take(ok(|result| sv_srt_golden_layer_norm(rows, 0, 0, 0.0, 1e-5, result))), &wanted);
        let wanted = [-root, 0.0, 0.0, 0.0, root, 0.0];
        close(&take(ok(|result| sv_srt_golden_batch_norm_1d(batch, 0, 0, 0.0, 1e-5, result))), &wanted);
        let (images, gamma, beta) =
            (doubles(&[1.0, 3.0, 5.0, 7.0], &[2, 1, 1, 2]), vector(&[2.0]), vector(&[1.0]));
        close(
            &take(ok(|result| sv_srt_golden_batch_norm_2d(images, gamma, beta, 0.0, 1e-5, result))),
            &[-1.1094633960625164, 0.29684553464582786, 1.7031544653541721, 3.1094633960625164],
        );
        let (mean, variance) = (vector(&[0.0, 0.0]), vector(&[1.0, 1.0]));
        let (mut y, mut new_mean, mut new_variance) = (0, 0, 0);
        let [y_out, mean_out, variance_out] = [&mut y, &mut new_mean, &mut new_variance];
        check(sv_srt_golden_batch_norm_train(
            batch,
            mean,
            variance,
            0.1,
            0,
            0,
            0.0,
            1e-5,
            y_out,
            mean_out,
            variance_out,
        ));
        close(&take(y), &[-root, 0.0, 0.0, 0.0, root, 0.0]);
        let infer =
            |result| sv_srt_golden_batch_norm_infer(batch, new_mean, new_variance, 0, 0, 1.0, 0.0, result);
        let spread = (0.9f64 + 0.2 / 3.0).sqrt();
        let inferred = take::<f64>(ok(infer));
        close(&[inferred[0], inferred[2]], &[0.8 / spread, 1.8 / spread]);
        close(&take(new_mean), &[0.2, 1.0]);
        close(&take(new_variance), &[0.9 + 0.2 / 3.0, 0.9]);
        let mut result = 0;
        let negative = sv_srt_golden_layer_norm(rows, 0, 0, -1.0, 1e-5, &mut result);
        fails(negative, SV_ERROR_INVALID_ARGUMENT, "target variance");
        fails(
            sv_srt_golden_layer_norm(rows, rows, 7, 0.0, 1e-5, &mut result),
            SV_ERROR_INVALID_HANDLE,
            "beta",
        );
    }
}

unsafe extern "C" fn stop(user: *mut std::ffi::c_void, generation: *const sv_srt_generation) -> i32 {
    // SAFETY: the test passes a counter, and the library a struct.
    let (count, generation) = unsafe { (&mut *user.cast::<u64>(), &*generation) };
    *count += 1;
    assert_eq!(generation.generation, *count);
    if *count < 2 { SV_CONTINUE } else { SV_STOP }
}

unsafe extern "C" fn zeros(user: *mut std::ffi::c_void, values: u64, fitness: *mut u64) -> i32 {
    assert_eq!(super::shape_of(values), [2, 4]);
    let elements: &[f64] = if user.is_null() { &[0.0; 2] } else { &[0.0; 3] };
    // SAFETY: the library passes a pointer to a handle.
    unsafe { *fitness = vector(elements) };
    SV_CONTINUE
}

#[test]
fn evolvers_have_their_worked_numbers_and_continue_from_files() {
    // SAFETY: all pointers are to locals.
    unsafe {
        let mut options: sv_srt_evolver_options = std::mem::zeroed();
        options.size = size_of::<sv_srt_evolver_options>();
        check(sv_srt_evolver_defaults(&mut options));
        assert_eq!((options.population, options.survivors, options.bound), (64, 16, 100));
        (options.seed, options.population, options.survivors) = (2024, 4, 2);
        (options.mutation_scale, options.bound) = (0.5, 10);
        let (mut a, mut b) = (0, 0);
        check(sv_srt_snap(vector(&[1.0, 0.5, -0.25, 0.125]), 10, &mut a, &mut b));
        let null = std::ptr::null_mut();
        let evolver = ok(|result| sv_srt_evolver_create(a, b, 0, &options, Some(zeros), null, result));
        let mut generation: sv_srt_generation = std::mem::zeroed();
        generation.size = size_of::<sv_srt_generation>();
        check(sv_srt_evolver_step(evolver, &mut generation));
        let found = (generation.winner, generation.is_accepted, generation.is_converged);
        assert_eq!(found, (2, 1, 0));
        close(&[generation.best_syntony, generation.winner_syntony], &[0.9498561748020578; 2]);
        let (mut best_a, mut best_b) = (0, 0);
        check(sv_srt_evolver_best(evolver, &mut best_a, &mut best_b));
        assert_eq!((take::<i64>(best_a), take::<i64>(best_b)), (vec![-5, 10, -10, 0], vec![4, -6, 6, 0]));

        let path = std::env::temp_dir().join(format!("selvedge-capi-{}.evolver", std::process::id()));
        let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        check(sv_srt_evolver_save(evolver, path.as_ptr()));
        let again = ok(|result| sv_srt_evolver_restore(path.as_ptr(), CPU, None, null, result));
        std::fs::remove_file(path.to_str().unwrap()).unwrap();
        let (mut restored, mut is_converged) = (options, 7);
        check(sv_srt_evolver_get_options(again, &mut restored));
        assert_eq!((restored.seed, restored.bound, restored.mutation_scale), (2024, 10, 0.5));
        check(sv_srt_evolver_is_converged(again, &mut is_converged));
        assert_eq!(is_converged, 0);
        close(&take(ok(|result| sv_srt_evolver_n2(again, result))), &[0.0, 1.0, 4.0, 9.0]);
        let mut other = generation;
        check(sv_srt_evolver_step(evolver, &mut generation));
        check(sv_srt_evolver_step(again, &mut other));
        assert_eq!((generation.generation, generation.best_syntony), (2, other.best_syntony));
        let (mut count, mut end, mut steps, mut history) = (0u64, 0, 0, [0.0; 2]);
        let fresh = ok(|result| sv_srt_evolver_create(a, b, 0, &options, None, null, result));
        check(sv_srt_evolver_run(fresh, Some(stop), (&raw mut count).cast(), &mut end));
        check(sv_srt_evolver_history(fresh, history.as_mut_ptr(), 2, &mut steps));
        assert_eq!((count, end, steps), (2, SV_SRT_EVOLVER_STOPPED, 3));
        close(&history, &[0.8653840969630858, 0.9498561748020578]);
        options.max_generations = 2;
        let limited = ok(|result| sv_srt_evolver_create(a, b, 0, &options, None, null, result));
        check(sv_srt_evolver_run(limited, None, null, &mut end));
        assert_eq!(end, SV_SRT_EVOLVER_LIMIT);
        // A fitness of another shape ends the run.
        let user = (&raw mut count).cast();
        let wrong = ok(|result| sv_srt_evolver_create(a, b, 0, &options, Some(zeros), user, result));
        fails(sv_srt_evolver_run(wrong, None, null, &mut end), SV_ERROR_INVALID_ARGUMENT, "fitness");
        options.population = 0;
        let mut result = 0;
        let none = sv_srt_evolver_create(a, b, 0, &options, None, null, &mut result);
        fails(none, SV_ERROR_INVALID_ARGUMENT, "population");
        for handle in [evolver, again, fresh, limited, wrong] {
            check(sv_release(handle));
        }
    }
}
