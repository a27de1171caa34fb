//! The text of a run, and the model of a checkpoint.

use std::path::Path;

use selvedge::nn::{
    Checkpoint, CheckpointEntry, CheckpointInfo, CheckpointList, Gpt, GptConfig, Module, TextFile, Tokenizer,
    TrainerOptions, tokenizer_from_json,
};
use selvedge::{Device, Error};
use serde::Deserialize;

use super::settings::Stored;
use crate::failure::Failure;

/// The book that comes with this program (data/alice).
const BOOK: &str = include_str!("../../../../data/alice/alice.txt");
pub const BOOK_NAME: &str = "Alice's Adventures in Wonderland";

/// Returns the text of a file, or the book, and its name.
pub fn text(path: Option<&Path>) -> Result<(TextFile, String), Error> {
    match path {
        Some(path) => Ok((TextFile::read(path)?, path.display().to_string())),
        None => Ok((TextFile::from_bytes(BOOK), BOOK_NAME.to_owned())),
    }
}

/// Returns the text of the path that a checkpoint stores, and its name.
pub fn stored_text(path: Option<&Path>) -> Result<(TextFile, String), Failure> {
    text(path).map_err(|error| advised(error, "--text names where the run's text is now"))
}

/// Returns the text that a run was trained on, and its name.
///
/// # Errors
///
/// A text that has changed since, and a checkpoint that does not name one and was not trained on the book.
pub fn text_of_run(info: &CheckpointInfo) -> Result<(TextFile, String), Failure> {
    let stored = Stored::of(info)?;
    let (text, name) = stored_text(stored.as_ref().and_then(|stored| stored.text.as_deref()))?;
    if text.hash() == info.text_hash {
        return Ok((text, name));
    }
    let (found, wanted) = match stored {
        Some(_) => (
            format!("a text with the hash {}, which has changed since the checkpoint", text.hash()),
            format!("the run's, {}; --text names a text", info.text_hash),
        ),
        None => (
            "a checkpoint of an older version, which does not name its text".to_owned(),
            "--text with the text of the run".to_owned(),
        ),
    };
    Err(Error::File { path: name, found, wanted }.into())
}

fn advised(error: Error, advice: &str) -> Failure {
    let mut failure = Failure::from(error);
    failure.message += &format!("; {advice}");
    failure
}

/// A model of a checkpoint, for evaluation.
pub struct Trained {
    pub model: Gpt,
    pub tokenizer: Box<dyn Tokenizer>,
    pub checkpoint: Checkpoint,
    /// The ids of a sequence of the training.
    pub context: usize,
}

impl Trained {
    /// Returns the prompt of the checkpoint, which is empty if it stores none.
    pub fn stored_prompt(&self) -> String {
        Stored::of(&self.checkpoint.info).ok().flatten().map(|stored| stored.prompt).unwrap_or_default()
    }
}

/// Returns the checkpoint of a step, or the last one.
pub fn entry<'a>(
    list: &'a CheckpointList,
    run: &Path,
    step: Option<u64>,
) -> Result<&'a CheckpointEntry, Failure> {
    let found = match step {
        Some(step) => list.at(step),
        None => list.latest(),
    };
    found.ok_or_else(|| {
        let steps: Vec<String> = list.entries().iter().map(|entry| entry.step().to_string()).collect();
        let (found, wanted) = match (step, steps.is_empty()) {
            (_, true) => ("no checkpoint".to_owned(), "the folder of a run of `selvedge train`".to_owned()),
            (step, false) => (
                format!("no checkpoint of step {}", step.unwrap_or(0)),
                format!("one of {}", steps.join(", ")),
            ),
        };
        Error::File { path: run.display().to_string(), found, wanted }.into()
    })
}

/// Returns the failure of reading a checkpoint. For a damaged one it names the last whole checkpoint of the run.
pub fn unreadable(error: Error, list: &CheckpointList) -> Failure {
    if !matches!(error, Error::File { .. }) {
        return error.into();
    }
    match list.latest_whole() {
        Ok(Some(whole)) => advised(
            error,
            &format!("the last whole checkpoint is that of step {0}: --step {0} takes it", whole.step()),
        ),
        Ok(None) => advised(error, "no checkpoint of the run is whole"),
        Err(_) => error.into(),
    }
}

/// Reads the model of a step, or of the last one.
pub fn trained(run: &Path, step: Option<u64>, device: &Device) -> Result<Trained, Failure> {
    let list = CheckpointList::read(run)?;
    let checkpoint = entry(&list, run, step)?.load(device).map_err(|error| unreadable(error, &list))?;
    let config = GptConfig::from_json(&checkpoint.info.model.to_string())?;
    let tokenizer = tokenizer_from_json(&checkpoint.info.tokenizer)?;
    let mut model = Gpt::from_state_dict(config, &checkpoint.parameters, device)?;
    model.eval();
    // A checkpoint of another program may have other options.
    let context =
        TrainerOptions::deserialize(&checkpoint.info.training).ok().and_then(|numbers| numbers.context);
    let context = context.unwrap_or(config.context).clamp(1, config.context);
    Ok(Trained { model, tokenizer, checkpoint, context })
}

/// Returns the ids of the prompt of a text that names none: a line's end, the prompt of the checkpoint, or the first id.
pub fn default_prompt(tokenizer: &dyn Tokenizer, stored: &str) -> Vec<u32> {
    let ids = tokenizer.encode("\n").or_else(|_| tokenizer.encode(stored)).unwrap_or_default();
    if ids.is_empty() { vec![0] } else { ids }
}
