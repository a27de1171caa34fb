//! `selvedge generate`: a trained language model continues a prompt.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use selvedge::nn::{Generation, Sampler, SamplerOptions, StreamDecoder, Tokenizer};
use serde_json::json;

use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::options::GenerateOptions;
use crate::output::{self, Report, grouped};
use crate::train::source;

/// Runs the command. The text goes to stdout as it is generated, or with `--json` in one object at the end.
pub fn generate(options: &GenerateOptions) -> ExitCode {
    match run(options) {
        Ok(report) if options.json => output::print(&report, true),
        Ok(report) => {
            if std::io::stderr().is_terminal() {
                eprint!("{}", report.text);
            }
            ExitCode::SUCCESS
        }
        Err(failure) => failure.print(options.json),
    }
}

fn run(options: &GenerateOptions) -> Result<Report, Failure> {
    let (device, reason) = device::choose(options.device)?;
    let trained = source::trained(&options.run, options.step, &device)?;
    let sampler = SamplerOptions {
        temperature: options.temperature,
        top_k: options.top_k.map(|count| count as usize),
        top_p: options.top_p,
    };
    let sampler = Sampler::new(sampler, options.seed)?;
    let prompt = match &options.prompt {
        Some(prompt) => trained.tokenizer.encode(prompt)?,
        None => source::default_prompt(&*trained.tokenizer, &trained.stored_prompt()),
    };
    let generation = Generation::new(&trained.model, &prompt, sampler)?.with_context(trained.context)?;
    let mut writer = Writer::new(&*trained.tokenizer, !options.json);
    writer.write(&prompt)?;
    let start = Instant::now();
    let mut count = 0u64;
    for id in generation.take(options.length as usize) {
        count += 1;
        if !writer.write(&[id?])? {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let text = writer.finish()?;
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
    Ok(Report { text: note, json })
}

/// Collects the text of ids, and writes whole characters as they come.
struct Writer<'t> {
    decoder: StreamDecoder<'t>,
    text: String,
    prints: bool,
}

impl Writer<'_> {
    fn new(tokenizer: &dyn Tokenizer, prints: bool) -> Writer<'_> {
        Writer { decoder: StreamDecoder::new(tokenizer), text: String::new(), prints }
    }

    /// Returns `false` if the reader of stdout went away.
    fn write(&mut self, ids: &[u32]) -> Result<bool, Failure> {
        let text = self.decoder.push(ids)?;
        self.text += &text;
        if self.prints { output::write_to_reader(&text) } else { Ok(true) }
    }

    fn finish(self) -> Result<String, Failure> {
        let rest = self.decoder.finish()?;
        let text = self.text + &rest;
        if self.prints {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            output::write_to_reader(&(rest + end))?;
        }
        Ok(text)
    }
}
