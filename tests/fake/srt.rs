//! Golden-ratio operations on the fake driver: what they launch, how often the host waits, and which operands they refuse.
//! (The fake computes nothing.)

use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;
use selvedge::{Error, Result};

use self::cases::OfOperands;
use super::support::{ChildOutcome, Fake, check};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

#[path = "../cases/srt.rs"]
mod cases;

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

/// Child: no function takes an operand on another device than the others, or one of another precision, or integers.
fn operands() -> ChildOutcome {
    let (host, device) = (Device::cpu(), Device::cuda(0)?);
    let of = |device: &Device, dtype| Tensor::full(&[8, 8], 1, dtype, device);
    for (functions, wide, narrow) in [
        (cases::REAL, DType::F64, Some(DType::F32)),
        (cases::COMPLEX, DType::C128, Some(DType::C64)),
        (cases::DOUBLE, DType::F64, None),
    ] {
        for OfOperands { name, count, run } in functions {
            for (common, other) in [(&host, &device), (&device, &host)] {
                for at in 0..*count {
                    let mut operands = vec![of(common, wide)?; *count];
                    operands[at] = of(other, wide)?;
                    let found = run(&operands);
                    let is_refused = matches!(&found, Err(error @ Error::DeviceMismatch { .. })
                        if ["cpu", "cuda:0"].iter().all(|device| error.to_string().contains(device)));
                    check(is_refused, &format!("{name} on {common}, operand {at} on {other}: {found:?}"))?;
                    let Some(narrow) = narrow else { continue };
                    for dtype in [narrow, DType::I32] {
                        operands[at] = of(common, dtype)?;
                        let found = run(&operands);
                        let is_refused = matches!(found, Err(Error::DTypeMismatch { .. }));
                        let is_view = *name == "rotate_phases" && dtype == DType::I32 && found.is_err();
                        check(is_refused || is_view, &format!("{name}, operand {at} of {dtype}: {found:?}"))?;
                    }
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
