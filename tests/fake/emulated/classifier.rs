//! The classifier's kernels on the emulated machine, held against the composed pass of the CPU.

use std::sync::Mutex;

use selvedge::classifier::{Classification, ClassificationBatch, Classifier, ClassifierOptions, synthetic};
use selvedge::driver::DeviceBuffer;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use super::build::Family;
use super::{Child, Outcome, children, emulate, family, with_seeds};
use crate::common::suite::Test;
use crate::support::{Fake, FakeLaunch};
use crate::variant::Variant;

/// Shared memory is each block's own.
const CLASSIFIER: Family = family("classifier.cu", &[], 1, 2);

pub static CHILDREN: &[(&str, Child)] = &[("classifier_rows", rows)];

/// A test in a process without images of PTX.
pub fn tests() -> Vec<Test> {
    vec![Test::new("emulated::classifier_without_an_image", || {
        let settings = [("SELVEDGE_IMAGE", "cubin")];
        let arguments = ["classifier_without_an_image".to_owned()];
        children::must_succeed(&Variant::new(12040), "emulated", &arguments, &settings).map(drop)
    })]
}

static LAUNCHED: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

extern "C" fn record(launch: *const FakeLaunch) -> i32 {
    // SAFETY: the fake gives a launch that lives as long as the call.
    LAUNCHED.lock().unwrap().push(unsafe { &*launch }.kernel());
    0
}

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LOGGED.lock().unwrap().push(format!("{}: {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

/// Child: a classifier whose kernels have no image runs by several kernels, and says so once.
pub fn without_an_image(fake: &Fake) -> Outcome {
    log::set_logger(&Lines).map_err(|error| error.to_string())?;
    log::set_max_level(log::LevelFilter::Warn);
    fake.set_runner(Some(record));
    let cuda = Device::cuda(0)?;
    let mut classifier = Classifier::new(&ClassifierOptions::default(), &cuda)?;
    LAUNCHED.lock().unwrap().clear();
    for _ in 0..2 {
        // The fake's kernels compute nothing, so the result is any, or an error.
        let _ = classifier.classify(&[0.5; 100]);
    }
    let (launched, logged) = (LAUNCHED.lock().unwrap(), LOGGED.lock().unwrap());
    assert!(launched.len() > 1, "{launched:?}");
    assert!(!launched.iter().any(|name| name.starts_with("classifier_row")), "{launched:?}");
    let count = logged.iter().filter(|line| line.starts_with("WARN: classifiers run by several")).count();
    assert_eq!(count, 1, "{logged:?}");
    Ok(())
}

/// Sizes around a block and around the length of the history.
const ROWS: [usize; 6] = [1, 99, 255, 256, 257, 700];

fn numbers(tensor: &Tensor) -> selvedge::Result<Vec<f64>> {
    tensor.to(&Device::cpu())?.cast(DType::F64)?.to_vec()
}

fn assert_close(name: &str, found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{name}");
    for (at, (x, y)) in found.iter().zip(wanted).enumerate() {
        assert!((x - y).abs() <= 1e-5 * y.abs().max(1.0), "{name} {at}: {x} instead of {y}");
    }
}

/// Writes the weights of a classifier on the CPU over those of one on the device. The kernel that copies into parameters is
/// generated, so it does not run here.
fn copy_weights(there: &Classifier, here: &Classifier) -> Outcome {
    let stream = there.device().stream()?;
    for (there, here) in there.state_dict().values().zip(here.state_dict().values()) {
        let address = there.device_slice::<f32>()?.address();
        // SAFETY: the snapshot shares the parameter's memory, which outlives the buffer and is used on this stream alone.
        let mut memory = unsafe { DeviceBuffer::from_raw(&stream, address, there.count(), || {}) }?;
        stream.copy_from_host(&here.to_vec::<f32>()?, &mut memory)?;
        stream.synchronize()?;
    }
    Ok(())
}

fn check_batch(found: &ClassificationBatch, wanted: &ClassificationBatch) -> Outcome {
    let of = |batch: &ClassificationBatch| {
        let ClassificationBatch { posterior, beliefs, free_energy, confidence, .. } = batch;
        [posterior, beliefs, free_energy, confidence].map(Clone::clone)
    };
    let names = ["posterior", "beliefs", "free energy", "confidence"];
    for ((name, found), wanted) in names.iter().zip(of(found)).zip(of(wanted)) {
        assert_eq!(found.shape(), wanted.shape(), "{name}");
        assert_close(name, &numbers(&found)?, &numbers(&wanted)?);
    }
    let classes = found.beliefs.to(&Device::cpu())?.argmax(1)?.to_vec::<i64>()?;
    assert_eq!(found.classes.to_vec::<i64>()?, classes, "a class is the one of the largest belief");
    Ok(())
}

/// A row alone has the bits that it has in a batch.
fn check_row(alone: &Classification, batch: &ClassificationBatch, row: usize) -> Outcome {
    let of_row = |tensor: &Tensor| numbers(&tensor.select(0, row as isize)?);
    assert_eq!(alone.posterior, of_row(&batch.posterior)?);
    assert_eq!(alone.beliefs, of_row(&batch.beliefs)?);
    assert_eq!([alone.free_energy, alone.confidence].to_vec(), {
        [of_row(&batch.free_energy)?, of_row(&batch.confidence)?].concat()
    });
    assert_eq!(alone.class as i64, batch.classes.to_vec::<i64>()?[row]);
    Ok(())
}

/// Child: both modes, beliefs of both kinds, batches of many sizes and rows alone, aligned to 16 bytes and not; priors of few
/// and many classes; features that are not finite; and networks that the kernels do not take.
fn rows(fake: &Fake) -> Outcome {
    emulate(fake, &[CLASSIFIER])?;
    let cpu = Device::cpu();
    with_seeds(1, |_| {
        let cuda = Device::cuda(0)?;
        for (fuse_prior, has_model) in [(false, false), (true, false), (false, true), (true, true)] {
            let options = ClassifierOptions { fuse_prior, ..ClassifierOptions::default() };
            let [mut there, mut here] = [Classifier::new(&options, &cuda)?, Classifier::new(&options, &cpu)?];
            copy_weights(&there, &here)?;
            for rows in ROWS {
                let data = synthetic(rows + 1, 5, &cpu)?;
                if has_model {
                    [&mut there, &mut here]
                        .into_iter()
                        .try_for_each(|classifier| classifier.set_generative_model(Some(&data.model)))?;
                }
                let features = data.features.narrow(0, 1, rows)?;
                let wanted = here.classify_batch(&features)?;
                let found = there.classify_batch(&features.copy()?.to(&cuda)?)?;
                check_batch(&found, &wanted)?;
                assert_close("history", &there.free_energies(), &here.free_energies());
                let row = rows / 2;
                let alone = there.classify(&features.select(0, row as isize)?.to_vec::<f32>()?)?;
                check_row(&alone, &found, row)?;
                here.classify(&features.select(0, row as isize)?.to_vec::<f32>()?)?;
            }
            // A matrix that begins at the second of its memory's elements.
            let data = synthetic(130, 6, &cpu)?.features.reshape(&[13_000])?;
            let padded = Tensor::cat(&[&data.narrow(0, 0, 1)?, &data], 0)?.to(&cuda)?;
            let view = padded.narrow(0, 1, 13_000)?.reshape(&[130, 100])?;
            check_batch(&there.classify_batch(&view)?, &here.classify_batch(&data.reshape(&[130, 100])?)?)?;
        }

        // (features, prior)
        for (features, prior) in [(4, vec![1.0]), (128, vec![0.125; 8]), (8, vec![1e-11, 1.0 - 1e-11])] {
            for fuse_prior in [false, true] {
                let prior = prior.clone();
                let options = ClassifierOptions { features, prior, fuse_prior, ..Default::default() };
                let [mut there, mut here] =
                    [Classifier::new(&options, &cuda)?, Classifier::new(&options, &cpu)?];
                copy_weights(&there, &here)?;
                let x = synthetic(features, 7, &cpu)?.features.reshape(&[100, features as isize])?;
                check_batch(&there.classify_batch(&x.to(&cuda)?)?, &here.classify_batch(&x)?)?;
            }
        }

        let mut classifier = Classifier::new(&ClassifierOptions::default(), &cuda)?;
        let mut features = vec![0.5f32; 300 * 100];
        for (at, value) in
            [(100 * 299 + 99, f32::NAN), (100 * 130 + 7, f32::NEG_INFINITY), (3, f32::INFINITY)]
        {
            features[at] = value;
            let named = format!("{value} in row {}, feature {}", at / 100, at % 100);
            let batch = Tensor::from_slice(&features, &[300, 100], &cuda)?;
            let error = classifier.classify_batch(&batch).err().ok_or("a bad feature passed")?.to_string();
            assert!(error.contains(&named), "{error}");
            let row = &features[at / 100 * 100..][..100];
            let error = classifier.classify(row).err().ok_or("a bad feature passed")?.to_string();
            assert!(error.contains(&format!("{value} in row 0")), "{error}");
        }
        let error = classifier.classify(&[0.5; 99]).err().ok_or("a short row passed")?.to_string();
        assert!(error.contains("99") && error.contains("100 features"), "{error}");
        assert!(classifier.free_energies().is_empty(), "failed rows have no history");
        Ok(())
    })
}
