//! `selvedge classify`: a classifier trained and run on rows of a file, or on synthetic rows, and the choice of a policy.

use std::path::Path;
use std::process::ExitCode;

use selvedge::Tensor;
use selvedge::classifier::Evaluation;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;
use crate::options::{ClassifyCommand, ClassifyOptions, ClassifyPictures};
use crate::output;

mod data;
mod plot;
mod policy;
mod run;
mod train;

/// Runs the command and prints its result.
pub fn classify(options: &ClassifyOptions) -> ExitCode {
    let result = match &options.command {
        ClassifyCommand::Train(options) => train::train(options),
        ClassifyCommand::Run(options) => run::run(options),
        ClassifyCommand::Policy(options) => policy::choose(options),
    };
    match result {
        Ok(report) => output::print(&report, options.json()),
        Err(failure) => failure.print(options.json()),
    }
}

impl ClassifyPictures {
    fn check_writable(&self) -> Result<(), Failure> {
        [&self.confusion, &self.calibration]
            .into_iter()
            .flatten()
            .try_for_each(|path| files::check_writable(path))
    }

    fn is_empty(&self) -> bool {
        self.confusion.is_none() && self.calibration.is_none()
    }

    /// Draws the pictures, and returns their names and files.
    fn draw(&self, evaluation: &Evaluation, names: &[String]) -> Result<Vec<(&'static str, &Path)>, Failure> {
        let mut written: Vec<(&'static str, &Path)> = Vec::new();
        if let Some(path) = &self.confusion {
            files::write(path, plot::confusion(evaluation, names))?;
            written.push(("confusion", path));
        }
        if let Some(path) = &self.calibration {
            files::write(path, plot::calibration(evaluation))?;
            written.push(("calibration", path));
        }
        Ok(written)
    }
}

/// Returns the JSON of an evaluation.
fn evaluation_json(evaluation: &Evaluation) -> Value {
    let bins = evaluation
        .calibration()
        .iter()
        .map(|bin| json!({ "count": bin.count, "confidence": bin.confidence, "accuracy": bin.accuracy }));
    json!({
        "rows": evaluation.count(),
        "accuracy": evaluation.accuracy(),
        "confusion": evaluation.confusion(),
        "calibration": bins.collect::<Vec<_>>(),
        "calibration_error": evaluation.calibration_error(),
    })
}

/// Returns the name of a class, `c` and its number if the classes have none.
fn class_name(names: &[String], class: usize) -> String {
    names.get(class).cloned().unwrap_or_else(|| format!("c{class}"))
}

/// Returns a percentage with one digit.
fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// Returns the part of rows for which two tensors have the same class.
fn part_of_equal(a: &Tensor, b: &Tensor) -> Result<f64, Failure> {
    Ok(a.eq(b)?.cast(selvedge::DType::F64)?.mean_all()?.item::<f64>()?)
}

/// Adds the files that were written to the JSON of a report.
fn add_files(json: &mut Value, written: &[(&str, &Path)]) {
    if let Some(object) = json.as_object_mut() {
        for (name, path) in written {
            object.insert(format!("{name}_file"), Value::from(path.display().to_string()));
        }
    }
}
