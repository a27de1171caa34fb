//! Noise, phases and syntony.

use super::super::arguments::out;
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::sv_tensor;
use super::super::tensor::{device, give, sizes, tensor};
use super::{give_all, number};
use crate::srt::{self, SnapGradientMode, SyntonyAggregate, Uniform};

/// Numbers in [0, 1).
pub const SV_SRT_UNIFORM_HALF_OPEN: i32 = 0;
/// Numbers in (0, 1].
pub const SV_SRT_UNIFORM_OPEN_AT_ZERO: i32 = 1;

fn interval_of(code: i32) -> Result<Uniform> {
    match code {
        SV_SRT_UNIFORM_HALF_OPEN => Ok(Uniform::HalfOpen),
        SV_SRT_UNIFORM_OPEN_AT_ZERO => Ok(Uniform::OpenAtZero),
        other => Err(Failure::argument("interval", other, "one of SV_SRT_UNIFORM_...")),
    }
}

/// The arithmetic mean.
pub const SV_SRT_AGGREGATE_MEAN: i32 = 0;
/// The smallest.
pub const SV_SRT_AGGREGATE_MINIMUM: i32 = 1;
/// The geometric mean.
pub const SV_SRT_AGGREGATE_GEOMETRIC: i32 = 2;

fn aggregate_of(code: i32) -> Result<SyntonyAggregate> {
    match code {
        SV_SRT_AGGREGATE_MEAN => Ok(SyntonyAggregate::Mean),
        SV_SRT_AGGREGATE_MINIMUM => Ok(SyntonyAggregate::Minimum),
        SV_SRT_AGGREGATE_GEOMETRIC => Ok(SyntonyAggregate::Geometric),
        other => Err(Failure::argument("aggregate", other, "one of SV_SRT_AGGREGATE_...")),
    }
}

/// (lattice - flux) exp(-n2/phi).
pub const SV_SRT_GRADIENT_WEIGHTED: i32 = 0;
/// |flux - lattice| / (exp(-n2/phi) + 1e-10).
pub const SV_SRT_GRADIENT_MAGNITUDE: i32 = 1;
/// lattice - flux.
pub const SV_SRT_GRADIENT_PLAIN: i32 = 2;

fn gradient_mode(code: i32) -> Result<SnapGradientMode> {
    match code {
        SV_SRT_GRADIENT_WEIGHTED => Ok(SnapGradientMode::Weighted),
        SV_SRT_GRADIENT_MAGNITUDE => Ok(SnapGradientMode::Magnitude),
        SV_SRT_GRADIENT_PLAIN => Ok(SnapGradientMode::Plain),
        other => Err(Failure::argument("mode", other, "one of SV_SRT_GRADIENT_...")),
    }
}

/// Returns a random word, which depends on the seed and the position alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_noise_word(seed: u64, offset: u64, result: *mut u64) -> i32 {
    number("sv_srt_noise_word", result, || Ok(srt::noise_word(seed, offset)))
}

/// Returns the seed of a stream of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_noise_stream(
    seed: u64,
    generation: u64,
    purpose: u64,
    result: *mut u64,
) -> i32 {
    number("sv_srt_noise_stream", result, || Ok(srt::noise_stream(seed, generation, purpose)))
}

/// Computes a tensor of random words from position `offset` on.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_noise_words(
    seed: u64,
    offset: u64,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_noise_words", result, || {
        Ok(srt::noise_words(seed, offset, &sizes(shape, rank)?, &self::device(device)?)?)
    })
}

/// Computes a tensor of standard normal doubles from position `offset` on.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_gauss(
    seed: u64,
    offset: u64,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_gauss", result, || {
        Ok(srt::gauss(seed, offset, &sizes(shape, rank)?, &self::device(device)?)?)
    })
}

/// Computes a tensor of uniform doubles from position `offset` on. `interval` is one of `SV_SRT_UNIFORM_...`.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_uniform_noise(
    seed: u64,
    offset: u64,
    interval: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_uniform_noise", result, || {
        let (interval, shape) = (interval_of(interval)?, sizes(shape, rank)?);
        Ok(srt::uniform_noise(seed, offset, interval, &shape, &self::device(device)?)?)
    })
}

/// Computes normal numbers from pairs of uniform ones along the last axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_box_muller(u: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_box_muller", result, || Ok(srt::box_muller(&tensor(u, "u")?)?))
}

/// Computes (lo + (hi - lo) tanh |rho|) g.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_residual_modulated_noise(
    g: sv_tensor,
    rho: sv_tensor,
    lo: f64,
    hi: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_residual_modulated_noise", result, || {
        Ok(srt::residual_modulated_noise(&tensor(g, "g")?, &tensor(rho, "rho")?, lo, hi)?)
    })
}

/// Computes v (1 + (1 - s) sqrt(n2)/phi^2) + sigma (1 - s) exp(-n2/(4 phi)) g.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_resonant_d_phase(
    v: sv_tensor,
    n2: sv_tensor,
    g: sv_tensor,
    s: f64,
    sigma: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_resonant_d_phase", result, || {
        Ok(srt::resonant_d_phase(&tensor(v, "v")?, &tensor(n2, "n2")?, &tensor(g, "g")?, s, sigma)?)
    })
}

/// Computes `sv_srt_resonant_d_phase` of rows, with a syntony for each row in the tensor `s`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_resonant_d_phase_batch(
    v: sv_tensor,
    n2: sv_tensor,
    g: sv_tensor,
    s: sv_tensor,
    sigma: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_resonant_d_phase_batch", result, || {
        Ok(srt::resonant_d_phase_batch(
            &tensor(v, "v")?,
            &tensor(n2, "n2")?,
            &tensor(g, "g")?,
            &tensor(s, "s")?,
            sigma,
        )?)
    })
}

/// Computes v (1 - s/phi (1 - exp(-n2/phi))).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_h_phase(v: sv_tensor, n2: sv_tensor, s: f64, result: *mut sv_tensor) -> i32 {
    give("sv_srt_h_phase", result, || Ok(srt::h_phase(&tensor(v, "v")?, &tensor(n2, "n2")?, s)?))
}

/// Computes `sv_srt_h_phase` of rows, with a syntony for each row in the tensor `s`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_h_phase_batch(
    v: sv_tensor,
    n2: sv_tensor,
    s: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_h_phase_batch", result, || {
        Ok(srt::h_phase_batch(&tensor(v, "v")?, &tensor(n2, "n2")?, &tensor(s, "s")?)?)
    })
}

/// Computes the D phase without noise, then the H phase.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_phase_cycle(
    v: sv_tensor,
    n2: sv_tensor,
    s: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_phase_cycle", result, || Ok(srt::phase_cycle(&tensor(v, "v")?, &tensor(n2, "n2")?, s)?))
}

/// Computes the sum of |v|^2 exp(-n2/phi) divided by the sum of |v|^2, of each row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_syntony(v: sv_tensor, n2: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_syntony", result, || Ok(srt::syntony(&tensor(v, "v")?, &tensor(n2, "n2")?)?))
}

/// Computes one number of all syntonies. `aggregate` is one of `SV_SRT_AGGREGATE_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_aggregate_syntony(
    s: sv_tensor,
    aggregate: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_aggregate_syntony", result, || {
        Ok(srt::aggregate_syntony(&tensor(s, "s")?, aggregate_of(aggregate)?)?)
    })
}

/// Computes 1 - |d - h| / (|d - psi| + 1e-10), from 0 to 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_operator_syntony(
    psi: sv_tensor,
    d: sv_tensor,
    h: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_operator_syntony", result, || {
        Ok(srt::operator_syntony(&tensor(psi, "psi")?, &tensor(d, "d")?, &tensor(h, "h")?)?)
    })
}

/// Finds the largest syntony of a vector: its index and its value. NaN is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_argmax_syntony(
    s: sv_tensor,
    index: *mut sv_tensor,
    value: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_argmax_syntony", [(index, "index"), (value, "value")], || {
        Ok(srt::argmax_syntony(&tensor(s, "s")?)?.into())
    })
}

/// Computes the pull of flux values toward their lattice values. `mode` is one of `SV_SRT_GRADIENT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_snap_gradient(
    flux: sv_tensor,
    lattice: sv_tensor,
    n2: sv_tensor,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_snap_gradient", result, || {
        Ok(srt::snap_gradient(
            &tensor(flux, "flux")?,
            &tensor(lattice, "lattice")?,
            &tensor(n2, "n2")?,
            gradient_mode(mode)?,
        )?)
    })
}

/// Computes the H phase, finds the a + b phi with |a|, |b| <= bound nearest to it, and computes their syntony.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_harmonize_and_crystallize(
    flux: sv_tensor,
    n2: sv_tensor,
    s: f64,
    bound: i64,
    result_a: *mut sv_tensor,
    result_b: *mut sv_tensor,
    syntony: *mut sv_tensor,
) -> i32 {
    give_all(
        "sv_srt_harmonize_and_crystallize",
        [(result_a, "result_a"), (result_b, "result_b"), (syntony, "syntony")],
        || {
            let (points, syntony) =
                srt::harmonize_and_crystallize(&tensor(flux, "flux")?, &tensor(n2, "n2")?, s, bound)?;
            Ok([points.a().clone(), points.b().clone(), syntony])
        },
    )
}

/// Computes the times of the D phase and of the H phase: base, and base phi^syntony.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_dwell(base: f64, syntony: f64, d_phase: *mut f64, h_phase: *mut f64) -> i32 {
    guard::call("sv_srt_dwell", || {
        let (d_phase, h_phase) = (out(d_phase, "d_phase")?, out(h_phase, "h_phase")?);
        let times = srt::dwell(base, syntony);
        d_phase.write(times.d_phase);
        h_phase.write(times.h_phase);
        Ok(())
    })
}
