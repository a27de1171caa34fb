//! [`Sequence`], the text of one sequence and its end, and the steps of a generation.

use std::time::Instant;

use selvedge::Error;
use selvedge::nn::{
    DecoderConfig, DecoderGeneration, GenerationOptions, LogProbabilities, StopFilter, StreamDecoder,
    SubwordTokenizer, Tokenizer,
};
use serde_json::{Value, json};

use super::LENGTH;
use super::screen::Screen;
use crate::failure::Failure;
use crate::options::GenerateOptions;
use crate::signals::{Signal, Signals};

/// The new ids of a sequence and their text.
pub struct Sequence<'t> {
    tokenizer: &'t SubwordTokenizer,
    decoder: StreamDecoder<'t>,
    filter: StopFilter,
    pub ids: Vec<u32>,
    /// Without special tokens, and up to a stop string.
    pub text: String,
    log_probabilities: Vec<LogProbabilities>,
    /// The reason of the end, as JSON names it.
    end: &'static str,
}

impl<'t> Sequence<'t> {
    /// Creates the text of ids that follow a prompt.
    pub fn new(tokenizer: &'t SubwordTokenizer, prompt: &[u32], filter: StopFilter) -> Sequence<'t> {
        Sequence {
            tokenizer,
            decoder: StreamDecoder::after(tokenizer, prompt),
            filter,
            ids: Vec::new(),
            text: String::new(),
            log_probabilities: Vec::new(),
            end: "length",
        }
    }

    /// Takes a new id. Returns the text that is certain now.
    fn push(&mut self, id: u32, end_ids: &[u32]) -> Result<String, Failure> {
        self.ids.push(id);
        if end_ids.contains(&id) {
            self.end = "end_id";
            return Ok(String::new());
        }
        // An embedding may have more rows than the tokenizer has tokens.
        let Some(token) = self.tokenizer.token(id) else { return Ok(String::new()) };
        if self.tokenizer.is_special(id) {
            if self.filter.push_special(&token) {
                self.end = "stop";
            }
            return Ok(String::new());
        }
        let text = self.filter.push(&self.decoder.push(&[id])?);
        if self.filter.is_stopped() {
            self.end = "stop";
        }
        self.text += &text;
        Ok(text)
    }

    /// Returns the text that waited for more ids.
    fn finish(&mut self) -> Result<String, Failure> {
        let decoder = std::mem::replace(&mut self.decoder, StreamDecoder::new(self.tokenizer));
        let mut text = self.filter.push(&decoder.finish()?);
        if !self.filter.is_stopped() {
            text += &std::mem::take(&mut self.filter).finish();
        }
        self.text += &text;
        Ok(text)
    }

    /// Returns the JSON, with log-probabilities if there are some.
    pub fn json(&self) -> Value {
        let mut json = json!({ "ids": self.ids, "text": self.text, "end": self.end });
        if !self.log_probabilities.is_empty() {
            let of_id = |id: u32, value: f64| {
                let text = self.tokenizer.decode(&[id]).ok();
                json!({ "id": id, "text": text, "logprob": value })
            };
            let rows = self.ids.iter().zip(&self.log_probabilities).map(|(&id, found)| {
                let mut row = of_id(id, found.drawn);
                row["top"] = found.top.iter().map(|&(id, value)| of_id(id, value)).collect();
                row
            });
            json["logprobs"] = rows.collect();
        }
        json
    }
}

/// The options of a generation behind prompts, of which the longest has `prompt` ids.
///
/// # Errors
///
/// A prompt that is longer than the context.
pub fn generation_options(
    options: &GenerateOptions,
    config: &DecoderConfig,
    prompt: usize,
) -> Result<GenerationOptions, Failure> {
    let context = config.context();
    if prompt > context {
        let found = format!("a prompt of {prompt} ids");
        let wanted = format!("at most {context}, the context of the model");
        return Err(Error::InvalidArgument { operation: "generate", found, wanted }.into());
    }
    // The last new id is not read.
    let most = (context - prompt) as u64 + 1;
    let length = options.length.unwrap_or(LENGTH.min(most));
    Ok(GenerationOptions {
        max_new_ids: usize::try_from(length).unwrap_or(usize::MAX),
        sampler: options.sampling.over(config.sampler()),
        seed: options.seed,
        log_probabilities: options.logprobs.map(|count| count as usize),
        prefill_chunk: options.prefill_chunk.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        is_batch_invariant: options.batch_invariant,
        ..GenerationOptions::default()
    })
}

/// The course of a generation.
pub struct Course {
    pub signal: Option<Signal>,
    /// False if the reader of stdout has gone.
    pub is_read: bool,
    pub seconds: f64,
    /// The time to the first new ids, in which the prompts are read.
    pub first_seconds: Option<f64>,
}

/// Takes the steps of a generation. The screen gets the text of the first sequence.
pub fn run(
    generation: &mut DecoderGeneration<'_>,
    sequences: &mut [Sequence<'_>],
    end_ids: &[u32],
    signals: &Signals,
    screen: &mut Screen,
) -> Result<Course, Failure> {
    let start = Instant::now();
    let mut course = Course { signal: None, is_read: true, seconds: 0.0, first_seconds: None };
    let mut is_running = vec![true; sequences.len()];
    while course.is_read {
        course.signal = signals.received();
        if course.signal.is_some() {
            break;
        }
        let Some(step) = generation.next() else { break };
        for (index, id) in step?.into_iter().enumerate() {
            let Some(id) = id else { continue };
            let sequence = &mut sequences[index];
            sequence.log_probabilities.extend(generation.log_probabilities()[index].clone());
            let text = sequence.push(id, end_ids)?;
            if sequence.end != "length" {
                is_running[index] = false;
                generation.end(index);
            }
            if index == 0 {
                course.is_read = screen.print(&text)?;
            }
        }
        course.first_seconds.get_or_insert(start.elapsed().as_secs_f64());
    }
    course.seconds = start.elapsed().as_secs_f64();
    for (index, sequence) in sequences.iter_mut().enumerate() {
        let text = sequence.finish()?;
        if is_running[index] && (course.signal.is_some() || !course.is_read) {
            sequence.end = "interrupted";
        }
        if index == 0 && course.is_read {
            course.is_read = screen.print(&text)?;
        }
    }
    Ok(course)
}
