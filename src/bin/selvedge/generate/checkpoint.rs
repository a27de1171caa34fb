//! The continuation by a model of `selvedge train`.

use std::time::Instant;

use selvedge::Error;
use selvedge::nn::{Sampler, SamplerOptions, StreamDecoder};
use serde_json::json;

use super::screen::Screen;
use super::{LENGTH, Outcome, stop_filter};
use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::options::GenerateOptions;
use crate::output::{Report, grouped};
use crate::signals::Signals;
use crate::train::source;

const TEMPERATURE: f64 = 0.8;

pub fn generate(options: &GenerateOptions) -> Result<Outcome, Failure> {
    let mut filter = stop_filter(options)?;
    let defaults = SamplerOptions { temperature: TEMPERATURE, ..SamplerOptions::default() };
    let sampler = options.sampling.over(defaults);
    // A bad option is known before the model is loaded.
    Sampler::new(sampler, options.seed)?;
    let (device, reason) = device::choose(options.device)?;
    let trained = source::trained(&options.run, options.step, &device)?;
    let Some(tokenizer) = &trained.tokenizer else {
        let found = "a run on files of ids without a tokenizer".to_owned();
        let wanted = "a run of `selvedge train --data` with --tokenizer".to_owned();
        return Err(Error::InvalidArgument { operation: "generate", found, wanted }.into());
    };
    let prompt = match &options.prompt[..] {
        [] => source::default_prompt(&**tokenizer, &trained.stored.prompt),
        [prompt] => tokenizer.encode(prompt)?,
        several => {
            let found = format!("{} prompts for a run", several.len());
            let wanted = "one prompt, or --model with the folder of a published model".to_owned();
            return Err(Error::InvalidArgument { operation: "generate", found, wanted }.into());
        }
    };
    let length = options.length.unwrap_or(LENGTH);
    let choice = (sampler, options.seed);
    let mut generation = trained.model.continued(&prompt, choice, trained.context, length)?;
    let signals = Signals::catch()?;
    let mut screen = Screen::new(!options.json);
    let mut decoder = StreamDecoder::new(&**tokenizer);
    // Stop strings are those of new text.
    let mut text = decoder.push(&prompt)?;
    let mut is_read = screen.print(&text)?;
    let start = Instant::now();
    let mut count = 0u64;
    while is_read && !filter.is_stopped() && count < length && signals.received().is_none() {
        let Some(id) = generation.next() else { break };
        count += 1;
        let new = filter.push(&decoder.push(&[id?])?);
        text += &new;
        is_read = screen.print(&new)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut rest = filter.push(&decoder.finish()?);
    if !filter.is_stopped() {
        rest += &filter.finish();
    }
    text += &rest;
    if is_read {
        screen.print(&rest)?;
        screen.end_line()?;
    }
    let rate = count as f64 / seconds.max(1e-9);
    let mut note = format!("{} ids at {} ids/s on {device}\n", grouped(count), grouped(rate as u64));
    if let Some(reason) = &reason {
        note += &reason_text(reason);
    }
    let json = json!({
        "text": text,
        "ids": count,
        "ids_per_second": rate,
        "step": trained.checkpoint.info.step,
        "device": device.to_string(),
        "cpu_because": reason.map(|reason| reason.to_string()),
    });
    Ok(Outcome { report: Report { text: note, json }, signal: signals.received() })
}
