//! `selvedge classify run`.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use selvedge::classifier::{Classifier, Evaluation, GenerativeModel, synthetic};
use selvedge::{DType, Device, Error, Tensor};
use serde_json::{Value, json};

use super::data::{self, Columns, LabelSource};
use super::{add_files, class_name, evaluation_json, percent};
use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::files;
use crate::options::ClassifyRunOptions;
use crate::output::{self, Progress, Report, Style, Table, grouped};

/// The rows of a batch.
const BATCH: usize = 65_536;
/// The rows that are shown.
const SHOWN: usize = 8;

/// The results of all rows.
#[derive(Default)]
struct Results {
    classes: Vec<i64>,
    confidences: Vec<f64>,
    free_energies: Vec<f64>,
    beliefs: Vec<f64>,
}

pub fn run(options: &ClassifyRunOptions) -> Result<Report, Failure> {
    options.pictures.check_writable()?;
    for path in [&options.output, &options.save].into_iter().flatten() {
        files::check_writable(path)?;
    }
    let (device, reason) = device::choose(options.device)?;
    let mut classifier = Classifier::load(&options.model, &device)?;
    if options.fuse_prior {
        classifier.set_fuse_prior(true);
    }
    let Source { features, labels, model } = rows(options, &classifier)?;
    if let Some(model) = model {
        classifier.set_generative_model(Some(&model))?;
    }
    if labels.is_none() && !options.pictures.is_empty() {
        let (found, wanted) = ("a picture without labels".to_owned(), "the class of each row".to_owned());
        return Err(Error::InvalidArgument { operation: "classify run", found, wanted }.into());
    }
    let start = Instant::now();
    let results = classify(&mut classifier, &features, &device, options.learn_prior)?;
    let seconds = start.elapsed().as_secs_f64();
    let evaluation = match &labels {
        Some(labels) => Some(evaluation(&results, labels, classifier.classes())?),
        None => None,
    };
    let mut written: Vec<(&str, &Path)> = match &evaluation {
        Some(evaluation) => options.pictures.draw(evaluation, classifier.class_names())?,
        None => Vec::new(),
    };
    if let Some(path) = &options.output {
        files::write(path, table(&results, &classifier))?;
        written.push(("results", path));
    }
    if let Some(path) = &options.save {
        classifier.save(path)?;
        written.push(("model", path));
    }
    Ok(report(&classifier, &results, evaluation.as_ref(), seconds, reason.as_ref(), &written))
}

/// Rows on the CPU, their classes if they are known, and the generative model that the options name.
struct Source {
    features: Tensor,
    labels: Option<Tensor>,
    model: Option<GenerativeModel>,
}

fn rows(options: &ClassifyRunOptions, classifier: &Classifier) -> Result<Source, Failure> {
    // clap takes a file of rows for the group of --synthetic.
    if options.generative && options.rows.synthetic.is_none() {
        let (found, wanted) = ("--generative with rows of a file".to_owned(), "--synthetic".to_owned());
        return Err(Error::InvalidArgument { operation: "classify run", found, wanted }.into());
    }
    let model = match (&options.centres, options.deviation) {
        (Some(path), Some(deviation)) => Some(GenerativeModel::new(data::read_features(path)?, deviation)?),
        _ => None,
    };
    if let Some(count) = options.rows.synthetic {
        let drawn = synthetic(count as usize, options.seed, &Device::cpu())?;
        let model = if options.generative { Some(drawn.model) } else { model };
        return Ok(Source { features: drawn.features, labels: Some(drawn.labels), model });
    }
    let path = options.rows.data.as_deref().unwrap_or(Path::new(""));
    let rows = data::read(path, Columns::Known(classifier.features()))?;
    let labels = match &options.labels {
        Some(path) => Some(data::read_labels(path)?),
        None => rows.labels,
    };
    let count = rows.features.shape().first().copied().unwrap_or(0);
    let resolve = |labels: LabelSource| labels.resolve(count, classifier.classes(), classifier.class_names());
    Ok(Source { features: rows.features, labels: labels.map(resolve).transpose()?, model })
}

fn classify(
    classifier: &mut Classifier,
    features: &Tensor,
    device: &Device,
    learns_prior: bool,
) -> Result<Results, Failure> {
    let count = features.shape().first().copied().unwrap_or(0);
    let progress = Progress::of_steps("rows", count as u64);
    let mut results = Results::default();
    for start in (0..count).step_by(BATCH) {
        let end = count.min(start + BATCH);
        let batch = features.slice(0, start as isize..end as isize)?.to(device)?;
        let found = classifier.classify_batch(&batch)?;
        let numbers = |tensor: &Tensor| tensor.cast(DType::F64)?.to_vec::<f64>();
        let classes = found.classes.to_vec::<i64>()?;
        if learns_prior {
            classifier.learn_prior(&parts(&classes, classifier.classes()))?;
        }
        results.classes.extend(classes);
        results.confidences.extend(numbers(&found.confidence)?);
        results.free_energies.extend(numbers(&found.free_energy)?);
        results.beliefs.extend(numbers(&found.beliefs)?);
        progress.set(end as u64);
    }
    Ok(results)
}

/// Returns the number of rows of each class.
fn counts(found: &[i64], classes: usize) -> Vec<u64> {
    let mut counts = vec![0; classes];
    for &class in found {
        if let Some(count) = counts.get_mut(class as usize) {
            *count += 1;
        }
    }
    counts
}

/// Returns the part of each class among at least one row.
fn parts(found: &[i64], classes: usize) -> Vec<f64> {
    counts(found, classes).iter().map(|&count| count as f64 / found.len() as f64).collect()
}

fn evaluation(results: &Results, labels: &Tensor, classes: usize) -> Result<Evaluation, Failure> {
    let labels = labels.cast(DType::I64)?.to_vec::<i64>()?;
    Ok(Evaluation::new(&results.classes, &results.confidences, &labels, classes)?)
}

/// Returns the results as CSV.
fn table(results: &Results, classifier: &Classifier) -> String {
    let (classes, names) = (classifier.classes(), classifier.class_names());
    // A number stays one, so that the column can be read as it was written.
    let name = |class: usize| match names.get(class) {
        Some(name) if name.contains(['"', ',']) => format!("\"{}\"", name.replace('"', "\"\"")),
        Some(name) => name.clone(),
        None => class.to_string(),
    };
    let mut text = String::from("class,confidence,free_energy");
    // Writing to a `String` cannot fail.
    for class in 0..classes {
        let _ = match names.get(class).filter(|name| name.contains(['"', ','])) {
            Some(name) => write!(text, ",\"belief_{}\"", name.replace('"', "\"\"")),
            None => write!(text, ",belief_{}", name(class)),
        };
    }
    text.push('\n');
    let columns = results.classes.iter().zip(&results.confidences).zip(&results.free_energies);
    for (((class, confidence), energy), beliefs) in columns.zip(results.beliefs.chunks(classes.max(1))) {
        let _ = write!(text, "{},{confidence},{energy}", name(*class as usize));
        for belief in beliefs {
            let _ = write!(text, ",{belief}");
        }
        text.push('\n');
    }
    text
}

fn report(
    classifier: &Classifier,
    results: &Results,
    evaluation: Option<&Evaluation>,
    seconds: f64,
    reason: Option<&Error>,
    written: &[(&str, &Path)],
) -> Report {
    let count = results.classes.len();
    let counts = counts(&results.classes, classifier.classes());
    let mean = results.free_energies.iter().sum::<f64>() / count.max(1) as f64;
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row("rows", grouped(count as u64));
    row("device", classifier.device().to_string());
    let names = classifier.class_names();
    let shown = counts.iter().enumerate();
    let shown = shown.map(|(class, &count)| format!("{} {}", class_name(names, class), grouped(count)));
    row("classes", shown.collect::<Vec<_>>().join(", "));
    let mode = if classifier.generative_model().is_some() { "full" } else { "KL" };
    row("free energy", format!("{mean:.4} on average, {mode} mode"));
    let prior = classifier.prior().iter().map(|p| format!("{p:.4}"));
    row("prior", prior.collect::<Vec<_>>().join(" "));
    if let Some(evaluation) = evaluation {
        row("accuracy", percent(evaluation.accuracy()));
        row("calibration error", format!("{:.3}", evaluation.calibration_error()));
    }
    row("time", output::seconds(seconds));
    for (name, path) in written {
        row(name, path.display().to_string());
    }
    let mut text = table.render(Style::of_stdout());
    let mut first = Table::with_head(">>>>", ["row", "class", "confidence", "free energy"]);
    for at in 0..count.min(SHOWN) {
        let (confidence, energy) = (results.confidences[at], results.free_energies[at]);
        let class = class_name(names, results.classes[at] as usize);
        first.row([at.to_string(), class, format!("{confidence:.4}"), format!("{energy:.4}")]);
    }
    text += &format!("\n{}", first.render(Style::of_stdout()));
    if let Some(reason) = reason {
        text += &format!("\n{}", reason_text(reason));
    }
    let mut json = json!({
        "rows": count,
        "device": classifier.device().to_string(),
        "classes": results.classes,
        "class_names": names,
        "confidences": results.confidences,
        "free_energies": results.free_energies,
        "mean_free_energy": mean,
        "mode": mode,
        "prior": classifier.prior(),
        "evaluation": evaluation.map_or(Value::Null, evaluation_json),
        "seconds": seconds,
        "reason": reason.map(Error::to_string),
    });
    add_files(&mut json, written);
    Report { text, json }
}
