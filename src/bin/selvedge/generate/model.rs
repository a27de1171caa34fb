//! The continuation of prompts by the model of a published folder.

use std::path::Path;

use selvedge::Error;
use selvedge::nn::DecoderGeneration;
use serde_json::{Value, json};

use super::screen::Screen;
use super::sequence::{self, Sequence};
use super::{Outcome, stop_filter};
use crate::device::reason_text;
use crate::failure::Failure;
use crate::model::LoadedModel;
use crate::options::GenerateOptions;
use crate::output::{Report, Style, grouped};
use crate::signals::Signals;

pub fn generate(options: &GenerateOptions, folder: &Path) -> Result<Outcome, Failure> {
    let filter = stop_filter(options)?;
    if options.prompt.is_empty() {
        let (found, wanted) = ("no prompt".to_owned(), "--prompt TEXT, or --chat".to_owned());
        return Err(Error::InvalidArgument { operation: "generate", found, wanted }.into());
    }
    let loaded = LoadedModel::new(folder, options.device, options.dtype, options.lora.as_deref())?;
    let (model, tokenizer) = (&loaded.model, &loaded.tokenizer);
    let prompts: Vec<Vec<u32>> =
        options.prompt.iter().map(|prompt| tokenizer.encode_prompt(prompt)).collect::<Result<_, _>>()?;
    let longest = prompts.iter().map(Vec::len).max().unwrap_or(0);
    let generation_options = sequence::generation_options(options, model.config(), longest)?;
    let mut generation = DecoderGeneration::new(model, &prompts, &generation_options)?;
    let mut sequences: Vec<Sequence<'_>> =
        prompts.iter().map(|prompt| Sequence::new(tokenizer, prompt, filter.clone())).collect();
    let signals = Signals::catch()?;
    // The texts of several sequences cannot be on one screen as they come.
    let is_single = prompts.len() == 1;
    let mut screen = Screen::new(!options.json && is_single);
    let end_ids = model.config().end_ids();
    screen.print(&options.prompt[0])?;
    let course = sequence::run(&mut generation, &mut sequences, end_ids, &signals, &mut screen)?;
    screen.end_line()?;
    let mut screen = Screen::new(!options.json && !is_single);
    let count = prompts.len();
    for (index, (prompt, sequence)) in options.prompt.iter().zip(&sequences).enumerate() {
        let head = Style::of_stdout().dim(&format!("== {} of {count}", index + 1));
        if !screen.print(&format!("{head}\n{prompt}{}", sequence.text))? {
            break;
        }
        screen.end_line()?;
    }
    let ids: usize = sequences.iter().map(|sequence| sequence.ids.len()).sum();
    let rate = ids as f64 / course.seconds.max(1e-9);
    let rows = options.prompt.iter().zip(&prompts).zip(&sequences).map(|((text, ids), sequence)| {
        let mut json = sequence.json();
        json["prompt"] = Value::from(text.as_str());
        json["prompt_ids"] = Value::from(ids.as_slice());
        json
    });
    let mut json = json!({
        "sequences": rows.collect::<Vec<_>>(),
        "load_seconds": loaded.seconds,
        "first_id_seconds": course.first_seconds,
        "seconds": course.seconds,
        "ids_per_second": rate,
    });
    loaded.describe(folder, &mut json);
    let mut text =
        format!("{} ids at {} ids/s on {}\n", grouped(ids as u64), grouped(rate as u64), loaded.device);
    if let Some(reason) = &loaded.reason {
        text += &reason_text(reason);
    }
    Ok(Outcome { report: Report { text, json }, signal: course.signal })
}
