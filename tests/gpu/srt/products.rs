//! The product family on matrices of 33 to 70 rows, and brackets on both sides of their batched form.

use selvedge::Result;
use selvedge::gemm::Operation;
use selvedge::srt::*;
use selvedge::tensor::{Device, Fused, Generator, Tensor};
use selvedge::types::DType;

use super::{CPU, normal};
use crate::support::Outcome;
use crate::support::compare::{Agreement, assert_agree};

const NUMBERS: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

/// The largest depth of the operands.
const DEPTH: usize = 70;

type Run = fn(&[Tensor], ProductMode) -> Result<Tensor>;

/// A product, and the sum of the magnitudes of its terms, from magnitudes of the operands.
struct Case {
    name: &'static str,
    run: Run,
    terms: Run,
}

macro_rules! cases {
    ($($name:literal |$x:ident, $mode:ident| $run:expr $(; terms $terms:expr)?;)*) => {
        &[$(Case {
            name: $name,
            run: |$x, $mode| $run,
            terms: cases!(@ |$x, $mode| $run $(; $terms)?),
        }),*]
    };
    (@ |$x:ident, $mode:ident| $run:expr) => { |$x, $mode| $run };
    (@ |$x:ident, $mode:ident| $run:expr; $terms:expr) => { |$x, $mode| $terms };
}

/// Of 33 x 70, 70 x 45, 70 x 33, 45 x 70 and 33 x 45, two square matrices, and two batches.
const CASES: &[Case] = cases! {
    "mm" |x, mode| mm(&x[0], &x[1], mode);
    "mm_tn" |x, mode| mm_tn(&x[2], &x[1], mode);
    "mm_nt" |x, mode| mm_nt(&x[0], &x[3], mode);
    "mm_tt" |x, mode| mm_tt(&x[2], &x[3], mode);
    "mm_hn" |x, mode| mm_hn(&x[2], &x[1], mode);
    "mm_nh" |x, mode| mm_nh(&x[0], &x[3], mode);
    "bmm" |x, mode| bmm(&x[7], &x[8], mode);
    "gemm" |x, mode| scaled_gemm(x, -1.5, -0.5, mode); terms scaled_gemm(x, 1.5, 0.5, mode);
    "mm_phi, 3" |x, mode| mm_phi(&x[0], &x[1], 3, mode);
    "mm_phi, -7" |x, mode| mm_phi(&x[0], &x[1], -7, mode);
    "mm_corrected" |x, mode| mm_corrected(&x[0], &x[1], 24.0, -1, mode);
    "golden_commutator" |x, mode| golden_commutator(&x[5], &x[6], mode);
        terms golden_anticommutator(&x[5], &x[6], mode);
    "golden_anticommutator" |x, mode| golden_anticommutator(&x[5], &x[6], mode);
    "golden_commutator of a transpose" |x, mode| golden_commutator(&x[5].t()?, &x[6], mode);
        terms golden_anticommutator(&x[5].t()?, &x[6], mode);
    "mm_golden_weighted" |x, mode| mm_golden_weighted(&x[0], &x[1], mode);
    "mm_golden_weighted, fewer columns" |x, mode| mm_golden_weighted(&x[3], &x[2], mode);
    "mm_golden_phase" |x, mode| mm_golden_phase(&x[0], &x[1], 5, mode); terms mm(&x[0], &x[1], mode);
    "projection_sum" |x, mode| projection_sum(&x[6], &[&x[5], &x[6]], &[0.5, -0.25], mode);
        terms projection_sum(&x[6], &[&x[5], &x[6]], &[0.5, 0.25], mode);
    "weighted_sum" |x, _mode| weighted_sum(&[&x[5], &x[6], &x[5]], &[0.5, -1.25, 3.0]);
        terms weighted_sum(&[&x[5], &x[6], &x[5]], &[0.5, 1.25, 3.0]);
};

fn scaled_gemm(x: &[Tensor], alpha: f64, beta: f64, mode: ProductMode) -> Result<Tensor> {
    let mut c = x[4].clone();
    gemm(alpha, (Operation::Transpose, &x[2]), (Operation::None, &x[1]), beta, &mut c, mode)?;
    Ok(c)
}

fn operands(dtype: DType, square: usize) -> Result<Vec<Tensor>> {
    let generator = Generator::new(7);
    let shapes: [&[usize]; 9] = [
        &[33, DEPTH],
        &[DEPTH, 45],
        &[DEPTH, 33],
        &[45, DEPTH],
        &[33, 45],
        &[square, square],
        &[square, square],
        &[3, 33, 40],
        &[3, 40, 21],
    ];
    shapes.into_iter().map(|shape| normal(&generator, shape, dtype)).collect()
}

fn to_device(operands: &[Tensor]) -> Result<Vec<Tensor>> {
    let device = Device::cuda(0)?;
    operands.iter().map(|operand| operand.to(&device)).collect()
}

pub fn exact_products_have_the_bits_of_the_cpu() -> Outcome {
    for dtype in NUMBERS {
        for square in [33, 64, 70] {
            let here = operands(dtype, square)?;
            let there = to_device(&here)?;
            for Case { name, run, .. } in CASES {
                let wanted = run(&here, ProductMode::Exact)?;
                let found = run(&there, ProductMode::Exact)?;
                assert_agree(&format!("{name} of {dtype}, {square}"), &found, &wanted, Agreement::Bits);
            }
        }
    }
    // On the CPU a bracket is two products of any size, on a device one batch up to 256 rows.
    let generator = Generator::new(8);
    for n in [1, 255, 256, 257] {
        let here = [(); 2].map(|()| normal(&generator, &[n, n], DType::F64));
        let [a, b] = here;
        let here = [a?, b?];
        let there = to_device(&here)?;
        for bracket in [golden_commutator, golden_anticommutator] {
            let wanted = bracket(&here[0], &here[1], ProductMode::Exact)?;
            let found = bracket(&there[0], &there[1], ProductMode::Exact)?;
            assert_agree(&format!("a bracket of {n} rows"), &found, &wanted, Agreement::Bits);
        }
    }
    Ok(())
}

/// The elements as f64, of complex tensors both parts.
fn parts(x: &Tensor) -> Result<Vec<f64>> {
    let real = if x.dtype().is_complex() { x.view_as_real()? } else { x.clone() };
    real.cast(DType::F64)?.to_vec()
}

/// |x| of real elements, |re| + |im| of complex ones, in f64.
fn magnitudes(x: &Tensor) -> Result<Tensor> {
    let real = if x.dtype().is_complex() { x.view_as_real()?.abs()?.sum(-1)? } else { x.abs()? };
    real.cast(DType::F64)
}

pub fn fast_products_are_within_their_class() -> Outcome {
    for dtype in NUMBERS {
        for square in [33, 64, 70] {
            let here = operands(dtype, square)?;
            let there = to_device(&here)?;
            let sizes: Vec<Tensor> = here.iter().map(magnitudes).collect::<Result<_>>()?;
            for Case { name, run, terms } in CASES {
                let what = format!("{name} of {dtype}, {square}");
                let (wanted, found) =
                    (run(&here, ProductMode::Fast)?, run(&there, ProductMode::Fast)?.to(&CPU)?);
                assert_eq!((found.dtype(), found.shape()), (wanted.dtype(), wanted.shape()), "{what}");
                let terms = terms(&sizes, ProductMode::Fast)?.to_vec::<f64>()?;
                let (wanted, found) = (parts(&wanted)?, parts(&found)?);
                // Two products of real parts are added for each complex one, and the scale rounds once more.
                let is_complex = dtype.is_complex();
                let count = if is_complex { 2 * DEPTH + 2 } else { DEPTH + 2 } as f64;
                let epsilon =
                    if dtype.part() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON } / 2.0;
                let of_element = wanted.len() / terms.len();
                for (at, (x, y)) in found.iter().zip(&wanted).enumerate() {
                    let bound = 2.0 * count * epsilon * terms[at / of_element];
                    assert!((x - y).abs() <= bound, "{what}: {at} is {x}, on the CPU {y}, bound {bound:e}");
                }
            }
        }
    }
    Ok(())
}

/// A fast bracket is fma(±1/φ, BA, AB) of the device's fast products, as one batch and as two products.
pub fn fast_brackets_round_once() -> Outcome {
    let (device, generator) = (Device::cuda(0)?, Generator::new(9));
    let fma = Fused::new(|[ba, scale, ab]| ba.fma(scale, ab));
    for dtype in [DType::F64, DType::C128] {
        for n in [1, 64, 255, 256, 257, 512] {
            let matrix = || normal(&generator, &[n, n], dtype)?.to(&device);
            let (a, b) = (matrix()?, matrix()?);
            let real = |x: Tensor| if dtype.is_complex() { x.view_as_real() } else { Ok(x) };
            let (ab, ba) = (real(mm(&a, &b, ProductMode::Fast)?)?, real(mm(&b, &a, ProductMode::Fast)?)?);
            for (scale, found) in [
                (-INVERSE_PHI, golden_commutator(&a, &b, ProductMode::Fast)?),
                (INVERSE_PHI, golden_anticommutator(&a, &b, ProductMode::Fast)?),
            ] {
                let wanted = fma.run((&ba, scale, &ab))?.to(&CPU)?;
                // Zeros may differ in their signs.
                assert_agree(&format!("{dtype}, {n} rows"), &real(found)?, &wanted, Agreement::Within(0.0));
            }
        }
    }
    Ok(())
}
