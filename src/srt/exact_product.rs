//! Matrix products whose bits do not depend on device, tile or processor.
//!
//! Each element of C has one accumulator, which starts at +0 and adds the products with k ascending, by fused multiply-adds:
//!
//! - real: c ← fma(aₖ, bₖ, c)
//! - complex: re ← fma(-im aₖ, im bₖ, fma(re aₖ, re bₖ, re)), im ← fma(im aₖ, re bₖ, fma(re aₖ, im bₖ, im))
//!
//! No engine of products guarantees this order in every case: the CPU's blocks and small f32 tiles of CUDA devices add partial
//! sums, and a complex product may be computed as its transpose, which swaps the terms of the imaginary part. So products
//! are chains of fused expressions that each add [`STEPS`] columns of A times rows of B to C. f64 on a CUDA device is the
//! exception: every kernel of the engine `simt` adds in this order, and is used.
//!
//! Tests: `tests/srt/products.rs`.

use std::sync::LazyLock;

use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::gemm::{Choice, Engine};
use crate::tensor::{Fused, Matmul, Tensor};
use crate::types::DType;

/// Products that a real expression adds.
const STEPS: usize = 8;
/// Products that a complex expression adds.
const COMPLEX_STEPS: usize = 4;
const REAL_OPERANDS: usize = 1 + 2 * STEPS;
const COMPLEX_OPERANDS: usize = 2 + 2 * COMPLEX_STEPS;

/// Of C, then columns of A, then rows of B.
static REAL_STEPS: LazyLock<Fused<REAL_OPERANDS>> = LazyLock::new(|| {
    Fused::new(|inputs| (1..=STEPS).fold(inputs[0], |sum, k| inputs[k].fma(inputs[STEPS + k], sum)))
});
static REAL_STEP: LazyLock<Fused<3>> = LazyLock::new(|| Fused::new(|[sum, a, b]| a.fma(b, sum)));

fn add_complex<'g>([re, im]: [Expr<'g>; 2], a: Expr<'g>, b: Expr<'g>) -> [Expr<'g>; 2] {
    let re = a.real().fma(b.real(), re);
    let im = a.real().fma(b.imag(), im);
    [(-a.imag()).fma(b.imag(), re), a.imag().fma(b.real(), im)]
}

/// Of the real and the imaginary part of C, then columns of A, then rows of B.
static COMPLEX_STEPS_AT_ONCE: LazyLock<Fused<COMPLEX_OPERANDS, 2>> = LazyLock::new(|| {
    Fused::with_outputs(|inputs| {
        let add = |sums, k: usize| add_complex(sums, inputs[k], inputs[COMPLEX_STEPS + k]);
        (2..2 + COMPLEX_STEPS).fold([inputs[0], inputs[1]], add)
    })
});
static COMPLEX_STEP: LazyLock<Fused<4, 2>> =
    LazyLock::new(|| Fused::with_outputs(|[re, im, a, b]| add_complex([re, im], a, b)));

/// Returns A B of matrices with equal batch dimensions and one dtype of f32, f64, c64 and c128. The caller has checked them.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for inner dimensions that differ, and those of memory and the device.
pub(super) fn exact_product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = a.dtype();
    if dtype == DType::F64 && !a.device().is_cpu() {
        return Matmul::new().by(Choice::Only(Engine::Simt)).of(a, b);
    }
    let sizes = (a.shape().split_last(), b.shape().split_last());
    let (Some((&depth, rows)), Some((&columns, _))) = sizes else {
        let found = format!("shapes {} and {}", a.shape(), b.shape());
        return Err(Error::invalid("a bit-exact product", found, "matrices"));
    };
    let mut shape = rows.to_vec();
    shape.push(columns);
    let zeros = Tensor::zeros(&shape, dtype.part(), &a.device())?;
    let column = |k: usize| a.narrow(-1, k, 1);
    let row = |k: usize| b.narrow(-2, k, 1);
    let factors = |first: usize, steps: usize| -> Result<Vec<Tensor>> {
        (first..first + steps).map(column).chain((first..first + steps).map(row)).collect()
    };
    if dtype.is_complex() {
        let mut sums = [zeros.clone(), zeros];
        let whole = depth - depth % COMPLEX_STEPS;
        for first in (0..whole).step_by(COMPLEX_STEPS) {
            let factors = factors(first, COMPLEX_STEPS)?;
            let inputs = operands(&sums, &factors)?;
            sums = COMPLEX_STEPS_AT_ONCE.run_all(inputs)?;
        }
        for k in whole..depth {
            sums = COMPLEX_STEP.run_all([&sums[0], &sums[1], &column(k)?, &row(k)?])?;
        }
        let [re, im] = sums;
        return Tensor::stack(&[&re, &im], -1)?.view_as_complex();
    }
    let mut sum = zeros;
    let whole = depth - depth % STEPS;
    for first in (0..whole).step_by(STEPS) {
        let factors = factors(first, STEPS)?;
        sum = REAL_STEPS.run(operands(std::slice::from_ref(&sum), &factors)?)?;
    }
    for k in whole..depth {
        sum = REAL_STEP.run([&sum, &column(k)?, &row(k)?])?;
    }
    Ok(sum)
}

/// Returns the sums and the factors as the operands of a fused function.
fn operands<'a, const COUNT: usize>(
    sums: &'a [Tensor],
    factors: &'a [Tensor],
) -> Result<[&'a Tensor; COUNT]> {
    let all: Vec<&Tensor> = sums.iter().chain(factors).collect();
    let found = all.len();
    all.try_into().map_err(|_| Error::LengthMismatch {
        operation: "a bit-exact product",
        wanted: COUNT,
        found,
    })
}
