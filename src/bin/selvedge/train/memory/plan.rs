//! The report of `selvedge train --memory`.

use selvedge::Error;
use selvedge::nn::Recompute;
use serde_json::json;

use super::available::available;
use super::{Choice, Measured, Meter};
use crate::output::{Progress, Report, Style, Table, bytes, counted, grouped};

/// Measures steps with each choice of recomputation, and returns the plan. The choice and the batch of the run are marked.
pub fn report(meter: &Meter<'_>) -> Result<Report, Error> {
    let progress = Progress::spinner("measuring");
    let mut choices = Vec::new();
    for recompute in Recompute::ALL {
        progress.describe(format!("steps with --recompute {recompute}"));
        choices.push(meter.choice(recompute)?);
    }
    drop(progress);
    meter.device.trim()?;
    let available = available(&meter.device)?;
    Ok(Report { text: text(meter, &choices, available), json: json_of(meter, &choices, available) })
}

/// Returns the bytes of parameters, gradients and optimizer, which all choices and batches have.
fn of_the_run(choices: &[Choice]) -> Option<Measured> {
    choices.iter().find_map(|choice| choice.batches.first()).map(|(_, measured)| *measured)
}

/// Returns the bytes of a step that neither the run's tensors nor sequences have: 16-bit copies of the weights, and temporaries.
fn temporaries(choice: &Choice) -> Option<u64> {
    let (_, Measured { parameters, gradients, optimizer, .. }) = choice.batches.first()?;
    choice.line().map(|(fixed, _)| fixed.saturating_sub(parameters + gradients + optimizer))
}

fn text(meter: &Meter<'_>, choices: &[Choice], available: Option<u64>) -> String {
    let (style, batch) = (Style::of_stdout(), meter.numbers.batch as u64);
    let mut table = Table::new("<>");
    if let Some(Measured { parameters, gradients, optimizer, .. }) = of_the_run(choices) {
        table.row(["parameters".to_owned(), bytes(parameters)]);
        table.row(["gradients".to_owned(), bytes(gradients)]);
        table.row(["optimizer".to_owned(), bytes(optimizer)]);
    }
    table.row([format!("available on {}", meter.device), available.map_or("unknown".to_owned(), bytes)]);
    let mut text = table.render(style);
    let peak_head = format!("peak of {}", counted(batch, "sequence"));
    let mut table = Table::with_head(
        "<>>>>",
        ["recompute", "copies, temporaries", "a sequence", &peak_head, "largest batch"],
    );
    for choice in choices {
        let cell = |bytes_of: Option<u64>| bytes_of.map_or("-".to_owned(), bytes);
        let largest = available.map_or("-".to_owned(), |available| grouped(choice.largest_batch(available)));
        table.row([
            choice.recompute.to_string(),
            cell(temporaries(choice)),
            cell(choice.line().map(|(_, sequence)| sequence)),
            cell(choice.peak(batch)),
            largest,
        ]);
    }
    text += &format!("\n{}", table.render(style));
    text + "\nMeasured in steps of small batches, 1, 2, 4 and so on; larger ones are on the line through the last two.\n"
}

/// Returns the batches that took steps, with their peaks.
fn measured(choice: &Choice) -> Vec<serde_json::Value> {
    let one = |(batch, measured): &(u64, Measured)| json!({ "batch": batch, "peak_bytes": measured.peak });
    choice.batches.iter().map(one).collect()
}

fn json_of(meter: &Meter<'_>, choices: &[Choice], available: Option<u64>) -> serde_json::Value {
    let batch = meter.numbers.batch as u64;
    let of_run = of_the_run(choices);
    let lines = choices.iter().map(|choice| {
        let line = choice.line();
        json!({
            "recompute": choice.recompute,
            "fixed_bytes": line.map(|(fixed, _)| fixed),
            "temporary_bytes": temporaries(choice),
            "sequence_bytes": line.map(|(_, sequence)| sequence),
            "measured": measured(choice),
            "peak_bytes": choice.peak(batch),
            "largest_batch": available.map(|available| choice.largest_batch(available)),
        })
    });
    json!({
        "device": meter.device.to_string(),
        "batch": batch,
        "context": meter.numbers.context,
        "recompute": meter.numbers.recompute,
        "parameter_bytes": of_run.map(|measured| measured.parameters),
        "gradient_bytes": of_run.map(|measured| measured.gradients),
        "optimizer_bytes": of_run.map(|measured| measured.optimizer),
        "available_bytes": available,
        "choices": lines.collect::<Vec<_>>(),
    })
}
