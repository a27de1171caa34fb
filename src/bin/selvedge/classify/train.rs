//! `selvedge classify train`.

use std::path::Path;
use std::time::Instant;

use selvedge::classifier::{
    Classifier, ClassifierOptions, DEFAULT_PRIOR, GenerativeModel, TrainingOptions, synthetic,
};
use selvedge::{Device, Error, Tensor};
use serde_json::json;

use super::data::{self, Columns};
use super::{add_files, evaluation_json, part_of_equal, percent};
use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::files;
use crate::options::ClassifyTrainOptions;
use crate::output::{self, Progress, Report, Style, Table, grouped};

/// Rows on the device, and the model that synthetic ones were drawn from.
struct Source {
    features: Tensor,
    labels: Tensor,
    model: Option<GenerativeModel>,
    prior: Vec<f64>,
    class_names: Vec<String>,
}

pub fn train(options: &ClassifyTrainOptions) -> Result<Report, Failure> {
    options.pictures.check_writable()?;
    if let Some(path) = &options.output {
        files::check_writable(path)?;
    }
    let (device, reason) = device::choose(options.device)?;
    let source = source(options, &device)?;
    let features = source.features.shape().last().copied().unwrap_or(0);
    let mut classifier = Classifier::new(
        &ClassifierOptions {
            features,
            hidden: options.hidden.clone(),
            prior: source.prior.clone(),
            fuse_prior: options.fuse_prior,
            dropout: options.dropout,
            seed: options.seed,
        },
        &device,
    )?;
    classifier.set_class_names(source.class_names.clone())?;
    let training = TrainingOptions {
        epochs: options.epochs as usize,
        batch: options.batch as usize,
        learning_rate: options.learning_rate,
        patience: options.patience as usize,
        validation: options.validation,
        seed: options.seed,
    };
    let start = Instant::now();
    let progress = Progress::of_steps("epochs", u64::from(options.epochs));
    let trained = classifier.train(&source.features, &source.labels, &training, |epoch| {
        progress.set(epoch.epoch as u64);
    })?;
    drop(progress);
    let seconds = start.elapsed().as_secs_f64();
    // Of synthetic data, the Bayes rule shows the best possible accuracy, of the rows of the evaluation.
    let bayes = match &source.model {
        Some(model) => {
            let rows = &trained.evaluated_rows;
            let classes = model.bayes_classes(&source.features.index_select(0, rows)?, &DEFAULT_PRIOR)?;
            Some(part_of_equal(&classes, &source.labels.index_select(0, rows)?)?)
        }
        None => None,
    };
    let evaluation = &trained.evaluation;
    let mut written: Vec<(&str, &Path)> = options.pictures.draw(evaluation, &source.class_names)?;
    if let Some(path) = &options.output {
        classifier.save(path)?;
        written.push(("model", path));
    }

    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    let widths: Vec<String> = classifier.widths().iter().map(usize::to_string).collect();
    row(
        "network",
        format!("{}, {} parameters", widths.join("-"), grouped(classifier.parameter_count() as u64)),
    );
    let kept = grouped(trained.validation_rows as u64);
    row("rows", format!("{} to train on, {kept} for validation", grouped(trained.training_rows as u64)));
    row("device", device.to_string());
    let end = if trained.is_stopped_early { ", stopped early" } else { "" };
    row("epochs", format!("{}, the best was {}{end}", trained.epochs.len(), trained.best_epoch));
    let best = trained.epochs.iter().find(|epoch| epoch.epoch == trained.best_epoch);
    if let Some(best) = best {
        row(
            "loss",
            format!("{:.4} in training, {:.4} in validation", best.training_loss, best.validation_loss),
        );
    }
    let of = match trained.validation_rows {
        0 => "of the training rows",
        _ => "of the validation rows",
    };
    row("accuracy", format!("{} {of}", percent(evaluation.accuracy())));
    if let Some(bayes) = bayes {
        row("Bayes rule", format!("{} {of}", percent(bayes)));
    }
    row("calibration error", format!("{:.3}", evaluation.calibration_error()));
    row("time", output::seconds(seconds));
    for (name, path) in &written {
        row(name, path.display().to_string());
    }
    let mut text = table.render(Style::of_stdout());
    if let Some(reason) = &reason {
        text += &format!("\n{}", reason_text(reason));
    }
    let epochs = trained.epochs.iter().map(|epoch| {
        json!({
            "epoch": epoch.epoch,
            "training_loss": epoch.training_loss,
            "validation_loss": epoch.validation_loss,
            "validation_accuracy": epoch.validation_accuracy,
        })
    });
    let mut json = json!({
        "widths": classifier.widths(),
        "parameters": classifier.parameter_count(),
        "prior": classifier.prior(),
        "class_names": classifier.class_names(),
        "training_rows": trained.training_rows,
        "validation_rows": trained.validation_rows,
        "device": device.to_string(),
        "epochs": epochs.collect::<Vec<_>>(),
        "best_epoch": trained.best_epoch,
        "stopped_early": trained.is_stopped_early,
        "evaluation": evaluation_json(evaluation),
        "bayes_accuracy": bayes,
        "seconds": seconds,
        "reason": reason.as_ref().map(Error::to_string),
    });
    add_files(&mut json, &written);
    Ok(Report { text, json })
}

fn source(options: &ClassifyTrainOptions, device: &Device) -> Result<Source, Failure> {
    if let Some(count) = options.rows.synthetic {
        let drawn = synthetic(count as usize, options.seed, device)?;
        let prior = if options.prior.is_empty() { DEFAULT_PRIOR.to_vec() } else { options.prior.clone() };
        return Ok(Source {
            features: drawn.features,
            labels: drawn.labels,
            model: Some(drawn.model),
            prior,
            class_names: Vec::new(),
        });
    }
    let path = options.rows.data.as_deref().unwrap_or(Path::new(""));
    let columns = if options.labels.is_some() { Columns::Features } else { Columns::Labelled };
    let rows = data::read(path, columns)?;
    let labels = match &options.labels {
        Some(path) => Some(data::read_labels(path)?),
        None => rows.labels,
    };
    let Some(labels) = labels else {
        let wanted = "--labels with the class of each row of an .npy file".to_owned();
        return Err(
            Error::File { path: path.display().to_string(), found: "no labels".to_owned(), wanted }.into()
        );
    };
    const MAX_CLASSES: usize = 65_536;
    let class_names = labels.names();
    let classes = match (options.prior.len(), class_names.len()) {
        (0, 0) => MAX_CLASSES,
        (0, names) => names,
        (prior, _) => prior,
    };
    let count = rows.features.shape().first().copied().unwrap_or(0);
    let labels = labels.resolve(count, classes, &class_names)?;
    let prior = match options.prior.is_empty() {
        true => parts(&labels.to_vec::<i64>()?),
        false => options.prior.clone(),
    };
    let (features, labels) = (rows.features.to(device)?, labels.to(device)?);
    Ok(Source { features, labels, model: None, prior, class_names })
}

/// Returns the parts of the classes among labels, with one row more for each class.
fn parts(labels: &[i64]) -> Vec<f64> {
    let classes = labels.iter().max().map_or(1, |&most| most as usize + 1);
    let mut counts = vec![1u64; classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    let total = (labels.len() + classes) as f64;
    counts.iter().map(|&count| count as f64 / total).collect()
}
