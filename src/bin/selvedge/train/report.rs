//! The text and the JSON of a run.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::language_model::ModelConfig;
use super::run::Course;
use crate::output::{Report, Style, Table, counted, grouped, indented, seconds};
use crate::signals::Signal;

/// The facts that are known before the first step.
pub struct Start {
    pub text: String,
    pub ids: usize,
    /// The entropy of single ids, in nats: the loss of a model that knows their frequencies alone.
    pub entropy: f64,
    /// The ids of `ids` for evaluations.
    pub held_out: usize,
    /// True for a text, false for files of ids.
    pub is_text: bool,
    pub has_tokenizer: bool,
    pub vocab_size: usize,
    pub config: ModelConfig,
    /// The published folder that the run began from.
    pub base: Option<PathBuf>,
    /// The elements that the run changes.
    pub trained: usize,
    pub device: String,
    pub cpu_because: Option<String>,
    pub folder: PathBuf,
    /// The process whose lock of the folder was stale.
    pub ended_writer: Option<String>,
    pub first_step: u64,
    /// The last step of the run.
    pub steps: u64,
    /// The options of a resumed run that differ from those of its checkpoint.
    pub changes: Vec<String>,
    /// The new paths of checkpoints after the one that the run continues from.
    pub set_aside: Vec<PathBuf>,
    /// A text for the model to continue.
    pub prompt: String,
    pub sample: String,
}

impl Start {
    /// Returns `true` for a run that has no step to take.
    pub fn is_finished(&self) -> bool {
        self.first_step >= self.steps
    }

    pub fn render(&self, style: Style) -> String {
        let mut table = Table::new("<<");
        let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
        let ((layers, heads), width) = (self.config.layers_and_heads(), self.config.width());
        let context = self.config.context();
        let ids = grouped(self.ids as u64);
        match self.is_text {
            true => row("text", format!("{}: {ids} ids, {} distinct", self.text, self.vocab_size)),
            false => {
                let held_out = grouped(self.held_out as u64);
                row("data", format!("{}: {ids} ids, {held_out} of them for evaluations", self.text));
            }
        }
        row(
            "model",
            format!(
                "{}, {width} wide, {}, context {context}: {} parameters",
                counted(layers as u64, "layer"),
                counted(heads as u64, "head"),
                grouped(self.config.parameter_count() as u64)
            ),
        );
        if let Some(dtype) = self.config.compute_dtype() {
            row("dtype", format!("{dtype}, parameters f32"));
        }
        if let Some(folder) = &self.base {
            row("begins from", folder.display().to_string());
        }
        if let Some(lora) = self.config.lora() {
            let trained = grouped(self.trained as u64);
            row("adapters", format!("rank {}, alpha {}: {trained} parameters", lora.rank, lora.alpha));
        }
        row("device", self.device.clone());
        row("run", self.folder.display().to_string());
        row(
            "entropy of single ids",
            format!("{:.4} nats, the loss of their frequencies alone", self.entropy),
        );
        if !self.has_tokenizer {
            row("samples", "none; --tokenizer FOLDER in a new run writes them".to_owned());
        }
        if self.first_step > 0 {
            row("resumed", format!("after step {} of {}", grouped(self.first_step), grouped(self.steps)));
        }
        for change in &self.changes {
            row("changed", change.clone());
        }
        for path in &self.set_aside {
            row("set aside", path.display().to_string());
        }
        let mut text = table.render(style);
        if self.is_finished() {
            let steps = grouped(self.steps);
            return text + &format!("\nThe run has its {steps} steps; a larger --steps goes on.\n");
        }
        text += &sample("before the training", &self.sample, style);
        text + "\n"
    }
}

/// Returns a sample with its heading, or nothing for none.
fn sample(when: &str, text: &str, style: Style) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", style.bold(&format!("A sample {when}:")), indented(text, 4))
}

pub fn sample_after_step(step: u64, text: &str, style: Style) -> String {
    sample(&format!("after step {}", grouped(step)), text, style)
}

/// The figures of an evaluation.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation {
    pub step: u64,
    /// The mean loss of the steps since the last evaluation.
    pub training: Option<f64>,
    pub validation: f64,
    pub ids_per_second: f64,
    /// Seconds of steps so far.
    pub seconds: f64,
}

impl Evaluation {
    /// Returns the evaluation of a step of which only the validation loss is known.
    pub fn of_validation(step: u64, validation: f64) -> Evaluation {
        Evaluation { step, training: None, validation, ids_per_second: 0.0, seconds: 0.0 }
    }

    pub fn head(style: Style) -> String {
        let line =
            format!("{:>8}{:>14}{:>14}{:>14}{:>12}", "step", "training", "validation", "ids/s", "time");
        format!("{}\n", style.dim(&line))
    }

    pub fn line(&self) -> String {
        let training = self.training.map_or("-".to_owned(), |loss| format!("{loss:.4}"));
        let rate = if self.step == 0 { "-".to_owned() } else { grouped(self.ids_per_second as u64) };
        let time = if self.step == 0 { "-".to_owned() } else { seconds(self.seconds) };
        let step = grouped(self.step);
        format!("{step:>8}{training:>14}{:>14.4}{rate:>14}{time:>12}\n", self.validation)
    }
}

/// The facts of a run that has ended.
pub struct Finished {
    pub last_step: u64,
    pub seconds: f64,
    pub steps_per_second: f64,
    pub ids_of_a_step: usize,
    pub sample: String,
    pub plot: PathBuf,
    pub signal: Option<Signal>,
    pub course: Course,
    /// The text and the JSON of a profile.
    pub profile: Option<(String, Value)>,
}

/// Returns the end of the text, and the JSON of the whole run.
pub fn report(start: &Start, finished: &Finished) -> Report {
    let style = Style::of_stdout();
    let mut text = match start.is_finished() {
        true => String::new(),
        false => sample("after the training", &finished.sample, style),
    };
    let folder = quoted(&start.folder.display().to_string());
    if let Some(signal) = finished.signal {
        let name = signal.name();
        let step = grouped(finished.last_step);
        text += &format!("\nEnded by {name} after step {step} of {}.\n", grouped(start.steps));
    }
    if let Some((profile, _)) = &finished.profile {
        text += profile;
    }
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row("picture", finished.plot.display().to_string());
    let prompt = match start.prompt.as_str() {
        "" => String::new(),
        prompt => format!(" --prompt {}", quoted(prompt)),
    };
    if start.has_tokenizer {
        row("continue a text", format!("selvedge generate --run {folder}{prompt}"));
    }
    if start.base.is_some() {
        let options = if start.config.lora().is_some() { " --merge" } else { "" };
        row("publish", format!("selvedge convert {folder} OUT --dtype bf16{options}"));
    }
    // A run that a signal ended has steps left.
    let steps = if finished.last_step < start.steps { start.steps } else { 2 * finished.last_step.max(1) };
    row("train on", format!("selvedge train --run {folder} --resume --steps {steps}"));
    text += &format!("\n{}", table.render(style));
    // The losses before a resume are in the file of losses.
    let is_new = |step: u64| start.first_step == 0 || step > start.first_step;
    let evaluations: Vec<_> = finished
        .course
        .evaluations
        .iter()
        .filter(|evaluation| is_new(evaluation.step))
        .map(|evaluation| {
            json!({
                "step": evaluation.step,
                "training_loss": evaluation.training,
                "validation_loss": evaluation.validation,
            })
        })
        .collect();
    let losses = finished.course.losses.iter().filter(|(step, _)| is_new(*step)).map(|(_, loss)| loss);
    let samples = &finished.course.samples;
    let samples: Vec<_> = samples.iter().map(|(step, text)| json!({ "step": step, "text": text })).collect();
    let json = json!({
        "text": start.text,
        "ids": start.ids,
        "unigram_entropy": start.entropy,
        "validation_ids": start.held_out,
        "has_tokenizer": start.has_tokenizer,
        "vocab_size": start.vocab_size,
        "model": start.config.to_json(),
        "base": start.base,
        "trained_parameters": start.trained,
        "parameters": start.config.parameter_count(),
        "device": start.device,
        "cpu_because": start.cpu_because,
        "run": start.folder,
        "lock_taken_over_from": start.ended_writer,
        "first_step": start.first_step,
        "last_step": finished.last_step,
        "changed": start.changes,
        "set_aside": start.set_aside,
        "losses": losses.collect::<Vec<_>>(),
        "evaluations": evaluations,
        "seconds": finished.seconds,
        "ids_per_second": finished.steps_per_second * finished.ids_of_a_step as f64,
        "sample_before": start.sample,
        "samples": samples,
        "sample_after": finished.sample,
        "plot": finished.plot,
        "profile": finished.profile.as_ref().map(|(_, json)| json),
        "ended_by_signal": finished.signal.is_some(),
    });
    Report { text, json }
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./+=,@".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (word, text) in
            [("a/b-1.x", "a/b-1.x"), ("my run", "'my run'"), ("it's", "'it'\\''s'"), ("", "''")]
        {
            assert_eq!(quoted(word), text);
        }
    }
}
