//! Operations of elements, of vectors and of integers.

use selvedge::Result;
use selvedge::srt::*;
use selvedge::tensor::{Generator, Tensor};
use selvedge::types::DType;

use super::{CPU, normal};
use crate::support::Outcome;
use crate::support::compare::{Agreement, Case, check};

/// Rows and columns of the operands: some thousand elements, in rows that end within a block of threads.
const SHAPE: [usize; 2] = [37, 130];

/// Two matrices, the squared mode norm of each column, and a number from 0 to 1 for each row.
fn operands(dtype: DType) -> Result<Vec<Tensor>> {
    let generator = Generator::new(11);
    let n2: Vec<f64> = (0..SHAPE[1]).map(|i| ((i % 12) * (i % 12)) as f64).collect();
    let n2 = Tensor::from_slice(&n2, &[SHAPE[1]], &CPU)?.cast(dtype.part())?;
    let s = generator.rand(&[SHAPE[0]], dtype.part(), &CPU)?;
    Ok(vec![normal(&generator, &SHAPE, dtype)?, normal(&generator, &SHAPE, dtype)?, n2, s])
}

macro_rules! one {
    ($($name:literal |$x:ident| $run:expr;)*) => { &[$(($name, |$x| Ok(vec![$run?]))),*] };
}

/// The coefficients of points of Z[φ].
fn coefficients(points: &GoldenTensor) -> Vec<Tensor> {
    vec![points.a().clone(), points.b().clone()]
}

/// A number from 0 to 1 for each element, 0 among them.
fn uniform(x: &Tensor) -> Result<Tensor> {
    x.sin()?.square()
}

const REAL: &[Case] = one! {
    "phi_residual" |x| phi_residual(&x[0], &x[1], ResidualMode::Phi);
    "phi_residual, symmetric" |x| phi_residual(&x[0], &x[1], ResidualMode::PhiSymmetric);
    "phi_residual, standard" |x| phi_residual(&x[0], &x[1], ResidualMode::Standard);
    "phi_residual_relu" |x| phi_residual_relu(&x[0], &x[1], ResidualMode::Phi);
    "phi_residual_relu, symmetric" |x| phi_residual_relu(&x[0], &x[1], ResidualMode::PhiSymmetric);
    "phi_residual_relu, standard" |x| phi_residual_relu(&x[0], &x[1], ResidualMode::Standard);
    "phi_residual_relu_keeping_nan" |x| phi_residual_relu_keeping_nan(&x[0], &x[1], ResidualMode::Phi);
    "phi_residual_relu_keeping_nan, symmetric" |x| {
        phi_residual_relu_keeping_nan(&x[0], &x[1], ResidualMode::PhiSymmetric)
    };
    "phi_residual_relu_keeping_nan, standard" |x| {
        phi_residual_relu_keeping_nan(&x[0], &x[1], ResidualMode::Standard)
    };
    "phi_residual_gelu" |x| phi_residual_gelu(&x[0], &x[1]);
    "golden_weight" |x| golden_weight(&x[0]);
    "golden_inner" |x| golden_inner(&x[0], &x[1]);
    "golden_normalize" |x| golden_normalize(&x[0]);
    "golden_recursion" |x| golden_recursion(&x[0]);
    "golden_recursion_inverse" |x| golden_recursion_inverse(&x[0]);
    "snap_gradient, weighted" |x| snap_gradient(&x[0], &x[1], &x[2], SnapGradientMode::Weighted);
    "snap_gradient, magnitude" |x| snap_gradient(&x[0], &x[1], &x[2], SnapGradientMode::Magnitude);
    "snap_gradient, plain" |x| snap_gradient(&x[0], &x[1], &x[2], SnapGradientMode::Plain);
    "box_muller" |x| box_muller(&uniform(&x[0].reshape(&[-1])?)?);
    "residual_modulated_noise" |x| residual_modulated_noise(&x[0], &x[1], 0.1, 1.0);
    "correct" |x| correct(&x[0], &corrections(x[0].count())?);
    "correct_chain" |x| {
        let ranges: Vec<_> = (0..x[0].count()).map(|i| i % 5..i % 5 + i % 7).collect();
        correct_chain(&x[0], &corrections(12)?, &ranges)
    };
    "compound_correction" |x| compound_correction(&x[0], 240.0, 36.0);
    "aggregate_syntony, mean" |x| aggregate_syntony(&x[3], SyntonyAggregate::Mean);
    "aggregate_syntony, minimum" |x| aggregate_syntony(&x[3], SyntonyAggregate::Minimum);
    "aggregate_syntony, geometric" |x| aggregate_syntony(&x[3], SyntonyAggregate::Geometric);
};

fn corrections(count: usize) -> Result<Vec<Correction>> {
    (0..count).map(|i| Correction::new((i % 9) as f64 * 12.0, if i % 2 == 0 { 1 } else { -1 })).collect()
}

/// Of f64 alone.
const DOUBLES: &[Case] = &[
    ("argmax_syntony", |x| {
        let (index, value) = argmax_syntony(&x[3])?;
        Ok(vec![index, value])
    }),
    ("snap, 10", |x| Ok(coefficients(&snap(&x[0], 10)?))),
    ("snap, 100", |x| Ok(coefficients(&snap(&x[0], 100)?))),
    ("snap_residual", |x| Ok(vec![snap_residual(&x[0], &snap(&x[1], 30)?)?])),
    ("snap_distance", |x| Ok(vec![snap_distance(&x[0], &snap(&x[0], 30)?)?])),
    ("snap_ramp", |x| {
        let steps = snap_ramp(&x[0], 10, 3)?;
        Ok(steps.iter().flat_map(|(_, points)| coefficients(points)).collect())
    }),
    ("harmonize_and_crystallize", |x| {
        let row = x[0].select(0, 1)?;
        let (points, syntony) = harmonize_and_crystallize(&row, &x[2], 0.7, 50)?;
        Ok([coefficients(&points), vec![syntony]].concat())
    }),
    ("symbolic", |x| {
        let [a, b] = [0, 1].map(SymExpr::input);
        let phi = SymExpr::from(Constant::Phi);
        let expression = (a.clone() * phi.clone()).sin() + (b.clone() * 2).exp() / phi.pow(3) - (a * b).cos();
        Ok(vec![expression.compile()?.run_rows(&x[0].narrow(1, 0, 2)?)?])
    }),
    ("symbolic, functions", |x| {
        let x = &x[0].mul(40.0)?;
        let (of, mut results) = (SymExpr::input(0), Vec::new());
        for function in [SymExpr::gamma, SymExpr::ln, SymExpr::exp, SymExpr::sin, SymExpr::cos] {
            results.push(function(&of).compile()?.run_rows(&x.narrow(1, 0, 1)?)?);
            results.push(function(&-of.clone()).compile()?.run_rows(&x.narrow(1, 1, 1)?)?);
        }
        Ok(results)
    }),
    ("symbolic, powers", |x| {
        let (of, column) = (SymExpr::input(0), x[0].reshape(&[-1, 1])?);
        let exponents = [(2, 1), (-3, 1), (300, 1), (1, 2), (-1, 2), (3, 4), (1, 3), (2, 3), (-5, 3)];
        let power = |(numerator, denominator)| {
            of.pow(Rational::new(numerator, denominator)?).compile()?.run_rows(&column)
        };
        exponents.into_iter().map(power).collect()
    }),
    ("streams of noise", |x| {
        let (shape, device) = (SHAPE, x[0].device());
        Ok(vec![
            noise_words(42, 5, &shape, &device)?,
            uniform_noise(42, 5, Uniform::HalfOpen, &shape, &device)?,
            uniform_noise(42, 5, Uniform::OpenAtZero, &shape, &device)?,
            gauss(42, 5, &shape, &device)?,
        ])
    }),
];

pub fn elementwise_operations_have_the_bits_of_the_cpu() -> Outcome {
    for dtype in [DType::F32, DType::F64] {
        check(REAL, &operands(dtype)?, Agreement::Bits)?;
    }
    check(DOUBLES, &operands(DType::F64)?, Agreement::Bits)?;
    Ok(())
}

const NUMBERS: &[Case] = one! {
    "golden_weight" |x| golden_weight(&x[0]);
    "resonant_d_phase" |x| resonant_d_phase(&x[0], &x[2], &x[1], 0.3, 0.1);
    "resonant_d_phase_batch" |x| resonant_d_phase_batch(&x[0], &x[2], &x[1], &x[3], 0.1);
    "h_phase" |x| h_phase(&x[0], &x[2], 0.3);
    "h_phase_batch" |x| h_phase_batch(&x[0], &x[2], &x[3]);
    "phase_cycle" |x| phase_cycle(&x[0], &x[2], 0.3);
    "syntony" |x| syntony(&x[0], &x[2]);
    "syntony of large numbers" |x| syntony(&x[0].mul(1e30)?, &x[2]);
    "operator_syntony" |x| operator_syntony(&x[0], &x[1], &x[1].mul(0.99)?);
};

pub fn phases_and_syntony_have_the_bits_of_the_cpu() -> Outcome {
    for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
        check(NUMBERS, &operands(dtype)?, Agreement::Bits)?;
    }
    Ok(())
}

const COMPLEX: &[Case] = one! {
    "complex_divide" |x| complex_divide(&x[0], &x[1]);
    "complex_reciprocal" |x| complex_reciprocal(&x[0]);
    "rotate_phase" |x| rotate_phase(&x[0], 0.7);
    "rotate_phases" |x| rotate_phases(&x[0], &x[1].view_as_real()?.select(-1, 0)?);
    "golden_rotate" |x| golden_rotate(&x[0]);
    "normalize_phase" |x| normalize_phase(&x[0]);
    "quantize_phase_pi, 1" |x| quantize_phase_pi(&x[0], 1);
    "quantize_phase_pi, 7" |x| quantize_phase_pi(&x[0], 7);
    "phi_weighted_sum" |x| phi_weighted_sum(&x[0]);
};

pub fn complex_operations_have_the_bits_of_the_cpu() -> Outcome {
    for dtype in [DType::C64, DType::C128] {
        check(COMPLEX, &operands(dtype)?, Agreement::Bits)?;
    }
    Ok(())
}

/// Results and the flags of overflow.
fn checked(found: Checked) -> Vec<Tensor> {
    vec![found.values().clone(), found.overflow().clone()]
}

fn checked_points(found: Checked<GoldenTensor>) -> Vec<Tensor> {
    [coefficients(found.values()), vec![found.overflow().clone()]].concat()
}

/// Points of Z[φ] of two operands.
fn points(x: &[Tensor]) -> Result<GoldenTensor> {
    GoldenTensor::new(x[0].clone(), x[1].clone())
}

/// Of two tensors of any i64, and one of small numbers.
const INTEGERS: &[Case] = &[
    ("fibonacci_batch", |x| Ok(checked(fibonacci_batch(&x[2])?))),
    ("lucas_batch", |x| Ok(checked(lucas_batch(&x[2])?))),
    ("fibonacci_batch_f64", |x| Ok(vec![fibonacci_batch_f64(&x[2])?])),
    ("lucas_batch_f64", |x| Ok(vec![lucas_batch_f64(&x[2])?])),
    ("fibonacci_sequence", |x| Ok(vec![fibonacci_sequence(90, DType::I64, &x[0].device())?])),
    ("fib_mod_batch", |x| {
        let k = x[0].bit_and(i64::MAX)?.cast(DType::U64)?;
        Ok(vec![fib_mod_batch(&k, 10)?, fib_mod_batch(&k, 1_000_000_007)?])
    }),
    ("winding_recursion_batch", |x| Ok(checked(winding_recursion_batch(&x[0])?))),
    ("winding_recursion_inverse_batch", |x| Ok(checked(winding_recursion_inverse_batch(&x[0])?))),
    ("generation_batch", |x| Ok(vec![generation_batch(&x[0].reshape(&[-1, 4])?)?])),
    ("golden_weight_of_rows", |x| Ok(vec![golden_weight_of_rows(&x[2].reshape(&[-1, 4])?)?])),
    ("sums", |x| Ok(checked_points(points(x)?.add(&points(&x[1..])?)?))),
    ("differences", |x| Ok(checked_points(points(x)?.sub(&points(&x[1..])?)?))),
    ("products", |x| Ok(checked_points(points(x)?.mul(&points(&x[1..])?)?))),
    ("products of small numbers", |x| {
        let small = GoldenTensor::new(x[2].clone(), x[2].flip(&[0])?)?;
        Ok(checked_points(small.mul(&small)?))
    }),
    ("negations", |x| Ok(checked_points(points(x)?.neg()?))),
    ("conjugates", |x| Ok(checked_points(points(x)?.conjugate()?))),
    ("recursions", |x| Ok(checked_points(points(x)?.recursion()?))),
    ("inverse recursions", |x| Ok(checked_points(points(x)?.recursion_inverse()?))),
    ("norms", |x| Ok(checked(points(x)?.norm()?))),
    ("traces", |x| Ok(checked(points(x)?.trace()?))),
    ("values", |x| Ok(vec![points(x)?.values()?])),
];

pub fn integers_have_the_bits_of_the_cpu() -> Outcome {
    let count = 4800;
    let words = |seed, shift: u32| {
        let word = |i| noise_word(seed, i) as i64 >> (shift + (i % 60) as u32 * u32::from(shift == 0));
        Tensor::from_vec((0..count as u64).map(word).collect::<Vec<i64>>(), &[count], &CPU)
    };
    // Of 4 to 64 bits, and of 7.
    check(INTEGERS, &[words(1, 0)?, words(2, 0)?, words(3, 57)?], Agreement::Bits)?;
    Ok(())
}
