//! An active-inference classifier beside the Bayes rule, on synthetic rows of five classes.
//!
//! ```text
//! cargo run --release --features classifier --example 21-classifier
//! ```

use std::process::ExitCode;

use selvedge::classifier::{Classifier, ClassifierOptions, DEFAULT_PRIOR, TrainingOptions, synthetic};
use selvedge::{DType, Device, Result};

fn run() -> Result<()> {
    let device = Device::best();
    let data = synthetic(2_000, 1, &device)?;
    let mut classifier = Classifier::new(&ClassifierOptions::default(), &device)?;
    let options = TrainingOptions { epochs: 3, ..TrainingOptions::default() };
    classifier.train(&data.features, &data.labels, &options, |epoch| {
        println!("epoch {}: validation loss {:.3}", epoch.epoch, epoch.validation_loss);
    })?;

    // New rows of the same classes, and the best possible decisions.
    let test = synthetic(1_000, 2, &device)?;
    let bayes = test.model.bayes_classes(&test.features, &DEFAULT_PRIOR)?;
    let bayes = bayes.eq(&test.labels)?.cast(DType::F64)?.mean_all()?.item::<f64>()?;
    let accuracy = classifier.evaluate(&test.features, &test.labels)?.accuracy();
    println!("accuracy {accuracy:.3}, Bayes rule {bayes:.3}");

    // With the generative model, the free energy is at least the surprise -ln p(o) of a row.
    classifier.set_generative_model(Some(&test.model))?;
    let row = test.features.slice(0, ..1isize)?;
    let found = classifier.classify(&row.to_vec::<f32>()?)?;
    let surprise = test.model.surprise(&row, &DEFAULT_PRIOR)?.item::<f32>()?;
    println!("class c{}, free energy {:.3}, surprise {surprise:.3}", found.class, found.free_energy);
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
