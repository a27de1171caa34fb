//! The golden-ratio functions of several tensors of one precision, for tests of operands that do not match.

use selvedge::Result;
use selvedge::srt::*;
use selvedge::tensor::Tensor;

/// A function of operands, each given as a matrix. In functions of vectors the first row takes its place.
pub struct OfOperands {
    pub name: &'static str,
    pub count: usize,
    pub run: fn(&[Tensor]) -> Result<()>,
}

macro_rules! functions {
    ($($name:literal $count:literal |$x:ident| $call:expr;)*) => {
        &[$(OfOperands { name: $name, count: $count, run: |$x| $call.map(drop) }),*]
    };
}

/// The first row.
fn row(x: &Tensor) -> Result<Tensor> {
    x.select(0, 0)
}

/// A matrix as images of one pixel.
fn images(x: &Tensor) -> Result<Tensor> {
    x.unsqueeze(-1)?.unsqueeze(-1)
}

fn norm<'a>(gamma: &'a Tensor, beta: &'a Tensor) -> GoldenNorm<'a> {
    GoldenNorm { gamma: Some(gamma), beta: Some(beta), ..GoldenNorm::default() }
}

const FAST: ProductMode = ProductMode::Fast;
const EXACT: ProductMode = ProductMode::Exact;

/// Of f32 or f64.
pub const REAL: &[OfOperands] = functions! {
    "mm" 2 |x| mm(&x[0], &x[1], FAST);
    "mm, exact" 2 |x| mm(&x[0], &x[1], EXACT);
    "mm_tn" 2 |x| mm_tn(&x[0], &x[1], FAST);
    "mm_nt" 2 |x| mm_nt(&x[0], &x[1], FAST);
    "mm_tt" 2 |x| mm_tt(&x[0], &x[1], EXACT);
    "mm_hn" 2 |x| mm_hn(&x[0], &x[1], FAST);
    "mm_nh" 2 |x| mm_nh(&x[0], &x[1], FAST);
    "bmm" 2 |x| bmm(&x[0].unsqueeze(0)?, &x[1].unsqueeze(0)?, FAST);
    "gemm" 3 |x| {
        let none = selvedge::gemm::Operation::None;
        gemm(1.0, (none, &x[0]), (none, &x[1]), 1.0, &mut x[2].clone(), FAST)
    };
    "mm_phi" 2 |x| mm_phi(&x[0], &x[1], 2, FAST);
    "mm_corrected" 2 |x| mm_corrected(&x[0], &x[1], 248.0, 1, FAST);
    "golden_commutator" 2 |x| golden_commutator(&x[0], &x[1], FAST);
    "golden_anticommutator" 2 |x| golden_anticommutator(&x[0], &x[1], EXACT);
    "mm_golden_weighted" 2 |x| mm_golden_weighted(&x[0], &x[1], FAST);
    "mm_golden_phase" 2 |x| mm_golden_phase(&x[0], &x[1], 1, FAST);
    "projection_sum" 3 |x| projection_sum(&x[0], &[&x[1], &x[2]], &[0.5, 1.0], FAST);
    "weighted_sum" 3 |x| weighted_sum(&[&x[0], &x[1], &x[2]], &[1.0, 2.0, 3.0]);
    "phi_residual" 2 |x| phi_residual(&x[0], &x[1], ResidualMode::Phi);
    "phi_residual, symmetric" 2 |x| phi_residual(&x[0], &x[1], ResidualMode::PhiSymmetric);
    "phi_residual, standard" 2 |x| phi_residual(&x[0], &x[1], ResidualMode::Standard);
    "phi_residual_relu" 2 |x| phi_residual_relu(&x[0], &x[1], ResidualMode::Phi);
    "phi_residual_relu_keeping_nan" 2 |x| phi_residual_relu_keeping_nan(&x[0], &x[1], ResidualMode::Phi);
    "phi_residual_gelu" 2 |x| phi_residual_gelu(&x[0], &x[1]);
    "phi_residual_layer_norm" 4 |x| {
        phi_residual_layer_norm(&x[0], &x[1], Some(&row(&x[2])?), Some(&row(&x[3])?), 1e-5)
    };
    "golden_layer_norm" 3 |x| golden_layer_norm(&x[0], &norm(&row(&x[1])?, &row(&x[2])?));
    "golden_batch_norm_1d" 3 |x| golden_batch_norm_1d(&x[0], &norm(&row(&x[1])?, &row(&x[2])?), None);
    "golden_batch_norm_2d" 3 |x| golden_batch_norm_2d(&images(&x[0])?, &norm(&row(&x[1])?, &row(&x[2])?), None);
    "golden_inner" 2 |x| golden_inner(&row(&x[0])?, &row(&x[1])?);
    "residual_modulated_noise" 2 |x| residual_modulated_noise(&x[0], &x[1], 0.0, 1.0);
    "snap_gradient" 3 |x| {
        snap_gradient(&row(&x[0])?, &row(&x[1])?, &row(&x[2])?, SnapGradientMode::Weighted)
    };
    "resonant_d_phase" 3 |x| resonant_d_phase(&x[0], &row(&x[1])?, &x[2], 0.5, 0.01);
    "resonant_d_phase_batch" 4 |x| {
        resonant_d_phase_batch(&x[0], &row(&x[1])?, &x[2], &row(&x[3])?, 0.01)
    };
    "h_phase" 2 |x| h_phase(&x[0], &row(&x[1])?, 0.5);
    "h_phase_batch" 3 |x| h_phase_batch(&x[0], &row(&x[1])?, &row(&x[2])?);
    "phase_cycle" 2 |x| phase_cycle(&x[0], &row(&x[1])?, 0.5);
    "syntony" 2 |x| syntony(&x[0], &row(&x[1])?);
    "operator_syntony" 3 |x| operator_syntony(&row(&x[0])?, &row(&x[1])?, &row(&x[2])?);
    "harmonize_and_crystallize" 2 |x| harmonize_and_crystallize(&row(&x[0])?, &row(&x[1])?, 0.5, 10);
    "theta_sum" 2 |x| theta_sum(&x[0], &row(&x[1])?, 2.0, E8Layout::Offset4);
};

/// Of c64 or c128.
pub const COMPLEX: &[OfOperands] = functions! {
    "complex_divide" 2 |x| complex_divide(&x[0], &x[1]);
    "rotate_phases" 2 |x| rotate_phases(&x[0], &x[1].view_as_real()?.select(-1, 0)?);
    "mm" 2 |x| mm(&x[0], &x[1], FAST);
    "mm_hn" 2 |x| mm_hn(&x[0], &x[1], EXACT);
    "golden_commutator" 2 |x| golden_commutator(&x[0], &x[1], EXACT);
    "weighted_sum" 2 |x| weighted_sum(&[&x[0], &x[1]], &[1.0, 2.0]);
};

/// Of f64 alone.
pub const DOUBLE: &[OfOperands] = functions! {
    "RunningStatistics" 2 |x| RunningStatistics::from_tensors(row(&x[0])?, row(&x[1])?, 0.1);
    "golden_batch_norm_1d, statistics" 2 |x| {
        let one = row(&x[1])?;
        let mut running = RunningStatistics::from_tensors(one.clone(), one, 0.1)?;
        golden_batch_norm_1d(&x[0], &GoldenNorm::default(), Some(&mut running))
    };
    "golden_batch_norm_2d, statistics" 2 |x| {
        let one = row(&x[1])?;
        let mut running = RunningStatistics::from_tensors(one.clone(), one, 0.1)?;
        golden_batch_norm_2d(&images(&x[0])?, &GoldenNorm::default(), Some(&mut running))
    };
    "RunningStatistics::normalize" 2 |x| {
        let one = row(&x[1])?;
        RunningStatistics::from_tensors(one.clone(), one, 0.1)?.normalize(&x[0], &GoldenNorm::default())
    };
    "snap_residual" 2 |x| snap_residual(&x[0], &snap(&x[1], 3)?);
    "snap_distance" 2 |x| snap_distance(&x[0], &snap(&x[1], 3)?);
    "GoldenTensor" 2 |x| GoldenTensor::new(snap(&x[0], 3)?.a().clone(), snap(&x[1], 3)?.b().clone());
    "GoldenTensor::add" 2 |x| snap(&x[0], 3)?.add(&snap(&x[1], 3)?);
    "GoldenTensor::sub" 2 |x| snap(&x[0], 3)?.sub(&snap(&x[1], 3)?);
    "GoldenTensor::mul" 2 |x| snap(&x[0], 3)?.mul(&snap(&x[1], 3)?);
    "Evolver" 2 |x| {
        Evolver::new(&snap(&row(&x[0])?, 3)?, Some(&row(&x[1])?), EvolverOptions::default())
    };
};
