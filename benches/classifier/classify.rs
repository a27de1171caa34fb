//! Microseconds of one row and of a batch, from the call to its result, beside the pass that several kernels compute.

use std::time::Instant;

use selvedge::classifier::{Classifier, ClassifierOptions, synthetic};
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const DEFAULT_ROWS: usize = 65_536;
/// Calls that are timed together.
const SINGLE_CALLS: usize = 200;
const BATCH_CALLS: usize = 10;
/// The goals: microseconds of one row, and rows of a batch in a second.
const OF_ONE_ROW: f64 = 15.0;
const ROWS_PER_SECOND: f64 = 600e6;
/// One class more than the kernel takes, so that several kernels compute a pass of nearly the same work.
const CLASSES_OF_THE_REFERENCE: usize = 9;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let rows: usize = match &options.file {
        None => DEFAULT_ROWS,
        Some(text) => text.to_string_lossy().parse()?,
    };
    if rows == 0 {
        return Err("--rows 0: at least one row is needed".into());
    }
    let mut recorder = Recorder::new(
        bare,
        "classifier",
        "Active-inference classifier",
        "Wall time of a call with a 100-64-32-16-5 network: the check of the features, the pass, and the wait. One row comes \
         from the host, and its result goes there; a batch stays on the device but for the free energies of its last rows. \
         The reference is a network of nine classes, whose pass is a product for each layer and two row programs. The batch's \
         results are compared with the CPU's at its first rows.",
    )?;
    let (device, cpu) = (Device::cuda(0)?, Device::cpu());
    let network = ClassifierOptions::default();
    let of_reference = 1.0 / CLASSES_OF_THE_REFERENCE as f64;
    let reference =
        ClassifierOptions { prior: vec![of_reference; CLASSES_OF_THE_REFERENCE], ..network.clone() };
    let [mut own, mut other] = [Classifier::new(&network, &device)?, Classifier::new(&reference, &device)?];

    let data = synthetic(rows, 1, &device)?.features;
    check(&mut own, &mut Classifier::new(&network, &cpu)?, &data)?;
    let row = data.narrow(0, 0, 1)?.to_vec::<f32>()?;
    let subject = Subject {
        name: "one row, its result on the host",
        against: "several kernels",
        unit: Unit::Microseconds,
        bytes: None,
        rule: Rule::Own,
        goal: Some(OF_ONE_ROW),
    };
    let single = |classifier: &mut Classifier| {
        microseconds(SINGLE_CALLS, || classifier.classify(&row).map(drop).map_err(Failure::from))
    };
    recorder.add(turns(options.turns(3, 30), &subject, || single(&mut own), || single(&mut other))?);

    let name = format!("a batch of {rows} rows");
    let goal = Some(rows as f64 / ROWS_PER_SECOND * 1e6).filter(|_| rows >= DEFAULT_ROWS);
    let subject = Subject { name: &name, goal, ..subject };
    let batch = |classifier: &mut Classifier| {
        microseconds(BATCH_CALLS, || classifier.classify_batch(&data).map(drop).map_err(Failure::from))
    };
    recorder.add(turns(options.turns(3, 30), &subject, || batch(&mut own), || batch(&mut other))?);
    recorder.finish(&options.out)
}

/// Microseconds of one of so many calls.
fn microseconds(calls: usize, mut call: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let start = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / calls as f64)
}

/// An error unless the first rows have the free energies that the CPU gives them.
fn check(there: &mut Classifier, here: &mut Classifier, data: &Tensor) -> Result<(), Failure> {
    let few = data.shape()[0].min(1000);
    let found = there.classify_batch(data)?.free_energy.narrow(0, 0, few)?;
    let wanted = here.classify_batch(&data.narrow(0, 0, few)?.to(&Device::cpu())?)?.free_energy;
    let numbers = |tensor: &Tensor| tensor.cast(DType::F64)?.to_vec::<f64>();
    let (found, wanted) = (numbers(&found)?, numbers(&wanted)?);
    match found.iter().zip(&wanted).position(|(x, y)| (x - y).abs() > 1e-3 * y.abs().max(1.0)) {
        None => Ok(()),
        Some(row) => {
            Err(format!("row {row}: a free energy of {}, the CPU has {}", found[row], wanted[row]).into())
        }
    }
}
