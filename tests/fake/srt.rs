//! Golden-ratio operations on the fake driver: what they launch, how often the host waits, and which operands they refuse.
//! (The fake computes nothing.)

use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;
use selvedge::{Error, Result};

use super::support::{ChildOutcome, Fake, check};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

/// Calls by which the host waits for the device, and copies that it makes.
const WAITS: [&str; 8] = [
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuCtxSynchronize",
    "cuMemcpyDtoH_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuStreamQuery",
];

/// Child: one part by name.
pub fn child(fake: &Fake, arguments: &[String]) -> ChildOutcome {
    fake.set_strict(true);
    match arguments {
        [name] if name == "brackets" => brackets(fake)?,
        [name] if name == "generations" => generations(fake)?,
        [name] if name == "operands" => operands()?,
        other => return Err(format!("no child {other:?}").into()),
    }
    scenario::settle()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: up to 256 rows both products of a bracket are one launch between that of the copies and that of the sum; of more
/// rows they are two launches and no other.
fn brackets(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    for dtype in [DType::F64, DType::C128, DType::F32, DType::C64] {
        for (n, wanted) in [(1, 3), (64, 3), (256, 3), (257, 2)] {
            let matrix = || Tensor::zeros(&[n, n], dtype, &device);
            let (a, b) = (matrix()?, matrix()?);
            for bracket in [golden_commutator, golden_anticommutator] {
                let before = fake.launches();
                bracket(&a, &b, ProductMode::Fast)?;
                let launches = fake.launches() - before;
                check(launches == wanted, &format!("{dtype}, {n} rows: {launches} launches, not {wanted}"))?;
            }
        }
    }
    // Exact f64 products are one launch too.
    let matrix = || Tensor::zeros(&[48, 48], DType::F64, &device);
    let (a, b, before) = (matrix()?, matrix()?, fake.launches());
    golden_commutator(&a, &b, ProductMode::Exact)?;
    check(fake.launches() - before == 3, "an exact bracket of f64 is three launches")?;
    let before = fake.launches();
    let empty = Tensor::zeros(&[0, 0], DType::F64, &device)?;
    golden_commutator(&empty, &empty, ProductMode::Fast)?;
    check(fake.launches() == before, "a bracket without elements launches nothing")
}

fn waits(fake: &Fake) -> [u64; WAITS.len()] {
    WAITS.map(|name| fake.call_count(name))
}

/// Child: from its mutations to its winner a generation does not wait. The host reads three numbers at its end.
fn generations(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let start = snap(&Tensor::new([0.5f64; 64], &device)?, 100)?;
    // The constructor reads the norms, and the fake writes none.
    let n2 = Tensor::new([4.0f64; 64], &device)?;
    let options = EvolverOptions { population: 64, ..EvolverOptions::default() };
    let mut evolver = Evolver::new(&start, Some(&n2), options)?;
    // The first one loads kernels.
    evolver.step()?;
    let three = Tensor::zeros(&[3], DType::F64, &device)?;
    let counted = |work: &mut dyn FnMut() -> Result<()>| -> Result<Vec<u64>> {
        let before = waits(fake);
        work()?;
        Ok(waits(fake).iter().zip(before).map(|(after, before)| after - before).collect())
    };
    let of_reading = counted(&mut || three.to_vec::<f64>().map(drop))?;
    check(of_reading.iter().any(|count| *count > 0), "reading three numbers waits")?;
    for _ in 0..3 {
        let found = counted(&mut || evolver.step().map(drop))?;
        let message = format!("{WAITS:?}: a generation {found:?}, reading three numbers {of_reading:?}");
        check(found == of_reading, &message)?;
    }
    Ok(())
}

/// A function of two operands of 8 x 8 numbers.
type OfTwo = fn(&Tensor, &Tensor) -> Result<()>;

macro_rules! of_two {
    ($($name:literal |$x:ident, $y:ident| $call:expr;)*) => {
        &[$(($name, |$x, $y| $call.map(drop))),*]
    };
}

/// A row of an operand.
fn row(x: &Tensor) -> Result<Tensor> {
    x.select(0, 0)
}

const REAL: &[(&str, OfTwo)] = of_two! {
    "mm" |x, y| mm(x, y, ProductMode::Fast);
    "mm, exact" |x, y| mm(x, y, ProductMode::Exact);
    "mm_tn" |x, y| mm_tn(x, y, ProductMode::Fast);
    "mm_nt" |x, y| mm_nt(x, y, ProductMode::Fast);
    "mm_tt" |x, y| mm_tt(x, y, ProductMode::Fast);
    "mm_hn" |x, y| mm_hn(x, y, ProductMode::Fast);
    "mm_nh" |x, y| mm_nh(x, y, ProductMode::Fast);
    "bmm" |x, y| bmm(&x.unsqueeze(0)?, &y.unsqueeze(0)?, ProductMode::Fast);
    "gemm" |x, y| {
        let none = selvedge::gemm::Operation::None;
        gemm(1.0, (none, x), (none, x), 1.0, &mut y.clone(), ProductMode::Fast)
    };
    "mm_phi" |x, y| mm_phi(x, y, 2, ProductMode::Fast);
    "mm_corrected" |x, y| mm_corrected(x, y, 248.0, 1, ProductMode::Fast);
    "golden_commutator" |x, y| golden_commutator(x, y, ProductMode::Fast);
    "golden_anticommutator" |x, y| golden_anticommutator(x, y, ProductMode::Exact);
    "mm_golden_weighted" |x, y| mm_golden_weighted(x, y, ProductMode::Fast);
    "mm_golden_phase" |x, y| mm_golden_phase(x, y, 1, ProductMode::Fast);
    "projection_sum" |x, y| projection_sum(x, &[y], &[0.5], ProductMode::Fast);
    "weighted_sum" |x, y| weighted_sum(&[x, y], &[1.0, 2.0]);
    "phi_residual" |x, y| phi_residual(x, y, ResidualMode::Phi);
    "phi_residual_relu" |x, y| phi_residual_relu(x, y, ResidualMode::Phi);
    "phi_residual_relu_keeping_nan" |x, y| phi_residual_relu_keeping_nan(x, y, ResidualMode::Phi);
    "phi_residual_gelu" |x, y| phi_residual_gelu(x, y);
    "phi_residual_layer_norm" |x, y| phi_residual_layer_norm(x, y, None, None, 1e-5);
    "golden_inner" |x, y| golden_inner(&row(x)?, &row(y)?);
    "snap_gradient" |x, y| snap_gradient(&row(x)?, &row(x)?, &row(y)?, SnapGradientMode::Weighted);
    "residual_modulated_noise" |x, y| residual_modulated_noise(x, y, 0.0, 1.0);
    "resonant_d_phase" |x, y| resonant_d_phase(x, &row(y)?, x, 0.5, 0.01);
    "resonant_d_phase_batch" |x, y| resonant_d_phase_batch(x, &row(x)?, x, &row(y)?, 0.01);
    "h_phase" |x, y| h_phase(x, &row(y)?, 0.5);
    "h_phase_batch" |x, y| h_phase_batch(x, &row(x)?, &row(y)?);
    "phase_cycle" |x, y| phase_cycle(x, &row(y)?, 0.5);
    "syntony" |x, y| syntony(x, &row(y)?);
    "operator_syntony" |x, y| operator_syntony(&row(x)?, &row(x)?, &row(y)?);
    "harmonize_and_crystallize" |x, y| harmonize_and_crystallize(&row(x)?, &row(y)?, 0.5, 10);
    "golden_layer_norm" |x, y| golden_layer_norm(x, &GoldenNorm { gamma: Some(&row(y)?), ..GoldenNorm::default() });
    "golden_batch_norm_1d" |x, y| {
        golden_batch_norm_1d(x, &GoldenNorm { beta: Some(&row(y)?), ..GoldenNorm::default() }, None)
    };
};

const COMPLEX: &[(&str, OfTwo)] = of_two! {
    "complex_divide" |x, y| complex_divide(x, y);
    "mm" |x, y| mm(x, y, ProductMode::Fast);
    "golden_commutator" |x, y| golden_commutator(x, y, ProductMode::Exact);
};

/// Child: no function takes operands on two devices, or of two precisions, or integers for numbers.
fn operands() -> ChildOutcome {
    let (host, device) = (Device::cpu(), Device::cuda(0)?);
    let of = |device: &Device, dtype| Tensor::full(&[8, 8], 1, dtype, device);
    for (cases, wide, narrow) in [(REAL, DType::F64, DType::F32), (COMPLEX, DType::C128, DType::C64)] {
        for (name, function) in cases {
            let (here, there) = (of(&host, wide)?, of(&device, wide)?);
            for (x, y) in [(&here, &there), (&there, &here)] {
                let found = function(x, y);
                let refused = matches!(found, Err(Error::DeviceMismatch { .. }));
                check(refused, &format!("{name} of {} and {}: {found:?}", x.device(), y.device()))?;
            }
            for device in [&host, &device] {
                let (wide, narrow) = (of(device, wide)?, of(device, narrow)?);
                let whole = of(device, DType::I32)?;
                for (x, y) in [(&wide, &narrow), (&narrow, &wide), (&wide, &whole), (&whole, &whole)] {
                    let found = function(x, y);
                    let refused = matches!(found, Err(Error::DTypeMismatch { .. }));
                    check(refused, &format!("{name} of {} and {}: {found:?}", x.dtype(), y.dtype()))?;
                }
            }
        }
    }
    Ok(())
}

pub fn tests() -> Vec<Test> {
    ["brackets", "generations", "operands"]
        .map(|name| {
            Test::new(format!("srt::{name}"), move || {
                children::must_succeed(&Variant::new(12040), "srt", &[name.to_owned()], &[]).map(drop)
            })
        })
        .into()
}
