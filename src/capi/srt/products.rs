//! Matrix products of the golden-ratio operations.

use super::super::arguments::slice;
use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::super::tensor::{give, number, sv_number, tensor, tensors};
use crate::gemm::Operation;
use crate::srt::{self, ProductMode};

/// The fastest product of the device.
pub const SV_SRT_PRODUCT_FAST: i32 = 0;
/// Sums with k ascending by fused multiply-adds: the same bits on every device.
pub const SV_SRT_PRODUCT_EXACT: i32 = 1;

/// The matrix itself.
pub const SV_SRT_OPERATION_NONE: i32 = 0;
/// The transpose.
pub const SV_SRT_OPERATION_TRANSPOSE: i32 = 1;
/// The conjugate transpose.
pub const SV_SRT_OPERATION_ADJOINT: i32 = 2;

fn product_mode(code: i32) -> Result<ProductMode> {
    match code {
        SV_SRT_PRODUCT_FAST => Ok(ProductMode::Fast),
        SV_SRT_PRODUCT_EXACT => Ok(ProductMode::Exact),
        other => Err(Failure::argument("mode", other, "one of SV_SRT_PRODUCT_...")),
    }
}

fn operation(code: i32, name: &str) -> Result<Operation> {
    match code {
        SV_SRT_OPERATION_NONE => Ok(Operation::None),
        SV_SRT_OPERATION_TRANSPOSE => Ok(Operation::Transpose),
        SV_SRT_OPERATION_ADJOINT => Ok(Operation::Adjoint),
        other => Err(Failure::argument(name, other, "one of SV_SRT_OPERATION_...")),
    }
}

/// Computes A B. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm(a: sv_tensor, b: sv_tensor, mode: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_mm", result, || Ok(srt::mm(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?))
}

/// Computes A^T B, of A stored as K x M. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_tn(a: sv_tensor, b: sv_tensor, mode: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_mm_tn", result, || Ok(srt::mm_tn(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?))
}

/// Computes A B^T, of B stored as N x K. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_nt(a: sv_tensor, b: sv_tensor, mode: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_mm_nt", result, || Ok(srt::mm_nt(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?))
}

/// Computes A^T B^T. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_tt(a: sv_tensor, b: sv_tensor, mode: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_mm_tt", result, || Ok(srt::mm_tt(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?))
}

/// Computes A^H B. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_hn(a: sv_tensor, b: sv_tensor, mode: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_mm_hn", result, || Ok(srt::mm_hn(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?))
}

/// Computes A B^H. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_nh(a: sv_tensor, b: sv_tensor, mode: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_mm_nh", result, || Ok(srt::mm_nh(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?))
}

/// Computes the products of two batches of matrices. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_bmm(a: sv_tensor, b: sv_tensor, mode: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_bmm", result, || Ok(srt::bmm(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?))
}

/// Computes A B - B A/phi. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_commutator(
    a: sv_tensor,
    b: sv_tensor,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_golden_commutator", result, || {
        Ok(srt::golden_commutator(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?)
    })
}

/// Computes A B + B A/phi. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_anticommutator(
    a: sv_tensor,
    b: sv_tensor,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_golden_anticommutator", result, || {
        Ok(srt::golden_anticommutator(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?)
    })
}

/// Computes the sum over k of a_ik b_kj exp(-k^2/phi). `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_golden_weighted(
    a: sv_tensor,
    b: sv_tensor,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_mm_golden_weighted", result, || {
        Ok(srt::mm_golden_weighted(&tensor(a, "a")?, &tensor(b, "b")?, product_mode(mode)?)?)
    })
}

/// Computes phi^n A B. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_phi(
    a: sv_tensor,
    b: sv_tensor,
    n: i32,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_mm_phi", result, || {
        Ok(srt::mm_phi(&tensor(a, "a")?, &tensor(b, "b")?, n, product_mode(mode)?)?)
    })
}

/// Computes (1 + sign q/divisor) A B. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_corrected(
    a: sv_tensor,
    b: sv_tensor,
    divisor: f64,
    sign: i32,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_mm_corrected", result, || {
        Ok(srt::mm_corrected(&tensor(a, "a")?, &tensor(b, "b")?, divisor, sign, product_mode(mode)?)?)
    })
}

/// Computes e^(i pi n/phi) A B, which is complex. `mode` is one of `SV_SRT_PRODUCT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_mm_golden_phase(
    a: sv_tensor,
    b: sv_tensor,
    n: i32,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_mm_golden_phase", result, || {
        Ok(srt::mm_golden_phase(&tensor(a, "a")?, &tensor(b, "b")?, n, product_mode(mode)?)?)
    })
}

/// Computes alpha op(A) op(B) + beta C as a new tensor. `operation_a` and `operation_b` are of `SV_SRT_OPERATION_...`,
/// and `mode` is one of `SV_SRT_PRODUCT_...`. C is not read if beta is 0.
///
/// # Safety
///
/// `alpha` and `beta` point to numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_gemm(
    alpha: *const sv_number,
    operation_a: i32,
    a: sv_tensor,
    operation_b: i32,
    b: sv_tensor,
    beta: *const sv_number,
    c: sv_tensor,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_gemm", result, || {
        let (alpha, beta) = (number(alpha, "alpha")?, number(beta, "beta")?);
        let (a, b, mut c) = (tensor(a, "a")?, tensor(b, "b")?, tensor(c, "c")?);
        let of_a = (operation(operation_a, "operation_a")?, &a);
        srt::gemm(
            alpha,
            of_a,
            (operation(operation_b, "operation_b")?, &b),
            beta,
            &mut c,
            product_mode(mode)?,
        )?;
        Ok(c)
    })
}

/// Computes psi + the sum over k of factor k times P_k psi of `count` square matrices P_k. `mode` is one of
/// `SV_SRT_PRODUCT_...`.
///
/// # Safety
///
/// `projections` and `factors` point to `count` elements each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_projection_sum(
    psi: sv_tensor,
    projections: *const sv_tensor,
    factors: *const f64,
    count: usize,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_projection_sum", result, || {
        let (psi, projections) = (tensor(psi, "psi")?, tensors(projections, count, "projections")?);
        let projections: Vec<_> = projections.iter().collect();
        Ok(srt::projection_sum(&psi, &projections, slice(factors, count, "factors")?, product_mode(mode)?)?)
    })
}

/// Computes the sum over k of weight k times T_k of `count` tensors of one shape.
///
/// # Safety
///
/// `tensors` and `weights` point to `count` elements each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_weighted_sum(
    tensors: *const sv_tensor,
    weights: *const f64,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_weighted_sum", result, || {
        let tensors = self::tensors(tensors, count, "tensors")?;
        let tensors: Vec<_> = tensors.iter().collect();
        Ok(srt::weighted_sum(&tensors, slice(weights, count, "weights")?)?)
    })
}
