//! A conversation with the model of a published folder, one line of stdin a turn.
//!
//! The template renders the whole conversation at each turn. The cache keeps the positions that the new text has in common with the
//! last one, so a turn reads its own ids alone unless the template changes earlier text.

use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use selvedge::Error;
use selvedge::nn::{ChatMessage, ChatTemplate, DecoderCache, DecoderGeneration, Tokenizer};
use serde_json::{Value, json};

use super::screen::{Screen, print_note};
use super::sequence::{self, Sequence};
use super::{Outcome, stop_filter};
use crate::device::reason_text;
use crate::failure::Failure;
use crate::model::LoadedModel;
use crate::options::GenerateOptions;
use crate::output::Report;
use crate::signals::{Signal, Signals};

/// The time between two looks at the signals while a line is awaited.
const INTERVAL: Duration = Duration::from_millis(50);

pub fn chat(options: &GenerateOptions, folder: &Path) -> Result<Outcome, Failure> {
    let filter = stop_filter(options)?;
    let template = ChatTemplate::from_folder(folder)?;
    let loaded = LoadedModel::new(folder, options.device, options.dtype, options.lora.as_deref())?;
    let (model, tokenizer) = (&loaded.model, &loaded.tokenizer);
    let end_ids = model.config().end_ids();
    let signals = Signals::catch()?;
    if let Some(reason) = &loaded.reason {
        print_note(&reason_text(reason));
    }
    let mut screen = Screen::new(!options.json);
    let (mut messages, mut turns) = (Vec::new(), Vec::new());
    // The ids whose positions the cache has are the first of `known`.
    let (mut cache, mut known) = match options.batch_invariant {
        true => (DecoderCache::batch_invariant(), Vec::new()),
        false => (DecoderCache::new(), Vec::new()),
    };
    let lines = lines();
    let mut signal = None;
    while signal.is_none() {
        let line = match next_line(&lines, &signals)? {
            Line::Text(line) if line.trim().is_empty() => continue,
            Line::Text(line) => line,
            Line::End => break,
            Line::Signal(received) => {
                signal = Some(received);
                break;
            }
        };
        messages.push(ChatMessage::new("user", line));
        let ids = tokenizer.encode(&template.render(&messages, true)?)?;
        // At least one id is read, for its logits.
        let read = &known[..cache.length()];
        let common = read.iter().zip(&ids).take_while(|(a, b)| a == b).count();
        cache.truncate(common.min(ids.len().saturating_sub(1)));
        let cached = cache.length();
        let generation_options = sequence::generation_options(options, model.config(), ids.len())?;
        let mut generation =
            DecoderGeneration::with_cache(model, std::mem::take(&mut cache), &ids, &generation_options)?;
        let mut sequence = [Sequence::new(tokenizer, &ids, filter.clone())];
        let course = sequence::run(&mut generation, &mut sequence, end_ids, &signals, &mut screen)?;
        let [sequence] = sequence;
        // An answer of no text is a line too.
        if sequence.text.is_empty() {
            screen.print("\n")?;
        }
        screen.end_line()?;
        cache = generation.into_cache();
        let mut turn = sequence.json();
        turn["prompt"] = messages.last().map_or(Value::Null, |message| message.content.as_str().into());
        turn["prompt_ids"] = Value::from(ids.as_slice());
        turn["cached_ids"] = Value::from(cached);
        turn["first_id_seconds"] = Value::from(course.first_seconds);
        turn["seconds"] = Value::from(course.seconds);
        turns.push(turn);
        known = ids;
        known.extend_from_slice(&sequence.ids);
        // Bytes that are no character are shown as one that a vocabulary may lack, and no text gives them back.
        let answer = sequence.text.replace(char::REPLACEMENT_CHARACTER, "");
        messages.push(ChatMessage::new("assistant", answer));
        signal = course.signal;
        if !course.is_read {
            break;
        }
    }
    let mut json = json!({
        "turns": turns,
        "load_seconds": loaded.seconds,
    });
    loaded.describe(folder, &mut json);
    Ok(Outcome { report: Report { text: String::new(), json }, signal })
}

/// The next event of stdin.
enum Line {
    Text(String),
    End,
    Signal(Signal),
}

/// Reads lines of stdin in a thread, so that a signal is seen while none comes.
fn lines() -> Receiver<std::io::Result<String>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn next_line(lines: &Receiver<std::io::Result<String>>, signals: &Signals) -> Result<Line, Failure> {
    if std::io::stdin().is_terminal() {
        print_note("> ");
    }
    loop {
        if let Some(signal) = signals.received() {
            return Ok(Line::Signal(signal));
        }
        match lines.recv_timeout(INTERVAL) {
            Ok(Ok(line)) => return Ok(Line::Text(line)),
            Ok(Err(error)) => {
                let wanted = "lines of UTF-8 text".to_owned();
                return Err(Error::File { path: "stdin".to_owned(), found: error.to_string(), wanted }.into());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Line::End),
        }
    }
}
