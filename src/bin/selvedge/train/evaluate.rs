//! `selvedge eval`: the loss of a checkpoint on the validation part of a text.

use std::time::Instant;

use selvedge::Error;
use selvedge::nn::{Batches, LanguageModel, Split, no_grad};
use serde_json::json;

use super::source::{self, Corpus};
use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::options::EvaluateOptions;
use crate::output::{Progress, Report, Style, Table, grouped};

pub fn evaluate(options: &EvaluateOptions) -> Result<Report, Failure> {
    let (device, reason) = device::choose(options.device)?;
    let trained = source::trained(&options.run, options.step, &device)?;
    let info = &trained.checkpoint.info;
    let corpus = match &options.text {
        Some(path) => Corpus::text(Some(path))?,
        None if !options.data.is_empty() => Corpus::for_evaluation(&options.data)?,
        None => source::text_of_run(info)?,
    };
    let is_text_of_run = corpus.hash() == info.text_hash;
    let name = corpus.name.clone();
    let text = corpus.tokenized(trained.tokenizer.as_deref())?;
    let (largest, vocab_size) = (text.largest_id(), trained.model.vocab_size());
    if largest as usize >= vocab_size {
        let found = format!("the id {largest}");
        let wanted = format!("ids below {vocab_size}, the model's");
        return Err(Error::File { path: name, found, wanted }.into());
    }
    let batches = Batches::new(&text, Split::Validation, options.batch as usize, trained.context, 0)?;
    let ids = text.range(Split::Validation).len();
    let windows = ids.saturating_sub(1) / trained.context;
    let progress = Progress::of_steps("evaluates", windows as u64);
    let start = Instant::now();
    let (mut sum, mut rows) = (0.0, 0);
    for batch in batches.in_order(&device) {
        let batch = batch?;
        let count = batch.inputs.shape()[0];
        let loss = no_grad(|| trained.model.loss(&batch))?;
        sum += f64::from(loss.tensor().item::<f32>()?) * count as f64;
        rows += count;
        progress.set(rows as u64);
    }
    drop(progress);
    let seconds = start.elapsed().as_secs_f64();
    let loss = sum / rows.max(1) as f64;
    let evaluated = rows * trained.context;
    let rate = evaluated as f64 / seconds.max(1e-9);
    let entropy = text.unigram_entropy();
    let step = info.step;
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    let other = if is_text_of_run { "" } else { ", not the text of the run" };
    row("text", format!("{name}, {} ids of its validation part{other}", grouped(evaluated as u64)));
    row("step", grouped(step));
    row("loss", format!("{loss:.4} nats an id, {:.3} bits", loss / std::f64::consts::LN_2));
    row("perplexity", format!("{:.3}", loss.exp()));
    row("entropy of single ids", format!("{entropy:.4} nats"));
    row("speed", format!("{} ids/s on {device}", grouped(rate as u64)));
    let mut text = table.render(Style::of_stdout());
    if let Some(reason) = &reason {
        text += &format!("\n{}", reason_text(reason));
    }
    let json = json!({
        "text": name,
        "is_text_of_run": is_text_of_run,
        "step": step,
        "ids": evaluated,
        "loss": loss,
        "unigram_entropy": entropy,
        "ids_per_second": rate,
        "device": device.to_string(),
        "cpu_because": reason.map(|reason| reason.to_string()),
    });
    Ok(Report { text, json })
}
