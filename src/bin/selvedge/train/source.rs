//! The text of a run, and the model of a checkpoint.

use std::path::Path;

use selvedge::nn::{
    Checkpoint, CheckpointList, Gpt, GptConfig, Module, TextFile, Tokenizer, tokenizer_from_json,
};
use selvedge::{Device, Error};

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

/// A model of a checkpoint, for evaluation.
pub struct Trained {
    pub model: Gpt,
    pub tokenizer: Box<dyn Tokenizer>,
    pub checkpoint: Checkpoint,
}

/// Reads the model of a step, or of the last one.
pub fn trained(run: &Path, step: Option<u64>, device: &Device) -> Result<Trained, Failure> {
    let list = CheckpointList::read(run)?;
    let found = match step {
        Some(step) => list.entries().iter().find(|entry| entry.step() == step),
        None => list.latest(),
    };
    let Some(entry) = found else {
        let steps: Vec<String> = list.entries().iter().map(|entry| entry.step().to_string()).collect();
        let (found, wanted) = match (step, steps.is_empty()) {
            (_, true) => ("no checkpoint".to_owned(), "the folder of a run of `selvedge train`".to_owned()),
            (step, false) => (
                format!("no checkpoint of step {}", step.unwrap_or(0)),
                format!("one of {}", steps.join(", ")),
            ),
        };
        return Err(Error::File { path: run.display().to_string(), found, wanted }.into());
    };
    let checkpoint = entry.load(device)?;
    let config = GptConfig::from_json(&checkpoint.info.model.to_string())?;
    let tokenizer = tokenizer_from_json(&checkpoint.info.tokenizer)?;
    let mut model = Gpt::from_state_dict(config, &checkpoint.parameters, device)?;
    model.eval();
    Ok(Trained { model, tokenizer, checkpoint })
}
