//! The text of a run, and the model of a checkpoint.

use std::path::{Path, PathBuf};

use selvedge::nn::{
    Checkpoint, CheckpointEntry, CheckpointInfo, CheckpointList, Module, TextFile, TokenFiles, TokenizedText,
    Tokenizer, TrainerOptions, tokenizer_from_json,
};
use selvedge::{Device, Error};
use serde::Deserialize;

use super::language_model::{ModelConfig, RunModel, check_base};
use super::settings::Stored;
use crate::failure::Failure;
use crate::output::counted;

/// The book that comes with this program (data/alice).
const BOOK: &str = include_str!("../../../../data/alice/alice.txt");
pub const BOOK_NAME: &str = "Alice's Adventures in Wonderland";

/// The text of a run, or its files of ids, and its name.
pub struct Corpus {
    pub contents: Contents,
    pub name: String,
}

pub enum Contents {
    Text(TextFile),
    Ids(TokenizedText),
}

impl Corpus {
    /// Reads the text of a file, or the book.
    pub fn text(path: Option<&Path>) -> Result<Corpus, Error> {
        let (text, name) = match path {
            Some(path) => (TextFile::read(path)?, path.display().to_string()),
            None => (TextFile::from_bytes(BOOK), BOOK_NAME.to_owned()),
        };
        Ok(Corpus { contents: Contents::Text(text), name })
    }

    /// Reads or maps files of ids. Without files for validation the last part of the ids is for that.
    pub fn files(data: &[PathBuf], validation: &[PathBuf], is_mapped: bool) -> Result<Corpus, Error> {
        let open = |paths: &[PathBuf]| match is_mapped {
            // SAFETY: the user of --map guarantees that the files do not change.
            true => unsafe { TokenFiles::map(paths) },
            false => TokenFiles::read(paths),
        };
        let ids = match validation {
            [] => TokenizedText::from_files(open(data)?)?,
            files => TokenizedText::from_parts(open(data)?, open(files)?),
        };
        Ok(Corpus { contents: Contents::Ids(ids), name: name_of(data) })
    }

    /// Reads files of ids, all of them for an evaluation.
    pub fn for_evaluation(data: &[PathBuf]) -> Result<Corpus, Error> {
        let ids = TokenizedText::from_files(TokenFiles::read(data)?)?.with_training_fraction(0.0)?;
        Ok(Corpus { contents: Contents::Ids(ids), name: name_of(data) })
    }

    /// Reads the files that a checkpoint stores.
    pub fn stored(stored: &Stored) -> Result<Corpus, Failure> {
        let (found, advice) = match stored.data.is_empty() {
            true => (Corpus::text(stored.text.as_deref()), "--text names where the run's text is now"),
            false => (
                Corpus::files(&stored.data, &stored.validation, stored.is_mapped),
                "--data and --validation name where the run's files are now",
            ),
        };
        found.map_err(|error| advised(error, advice))
    }

    pub fn hash(&self) -> &str {
        match &self.contents {
            Contents::Text(text) => text.hash(),
            Contents::Ids(ids) => ids.hash(),
        }
    }

    /// Returns the ids, those of a text by the tokenizer.
    pub fn tokenized(self, tokenizer: Option<&dyn Tokenizer>) -> Result<TokenizedText, Error> {
        match (self.contents, tokenizer) {
            (Contents::Ids(ids), _) => Ok(ids),
            (Contents::Text(text), Some(tokenizer)) => TokenizedText::new(text, tokenizer),
            (Contents::Text(_), None) => Err(Error::InvalidArgument {
                operation: "eval",
                found: format!("the text {} for a run on files of ids without a tokenizer", self.name),
                wanted: "the run's files of ids, or a run of --data with --tokenizer".to_owned(),
            }),
        }
    }
}

/// Returns files as words.
fn name_of(files: &[PathBuf]) -> String {
    let first = files.first().map(|path| path.display().to_string()).unwrap_or_default();
    match files.len() {
        0 | 1 => first,
        count => format!("{first} and {}", counted(count as u64 - 1, "more file")),
    }
}

/// Returns the text that a run was trained on.
///
/// # Errors
///
/// A text that has changed since, and a checkpoint that does not name one and was not trained on the book.
pub fn text_of_run(info: &CheckpointInfo) -> Result<Corpus, Failure> {
    let stored = Stored::of(info)?;
    let corpus = Corpus::stored(&stored.clone().unwrap_or_default())?;
    if corpus.hash() == info.text_hash {
        return Ok(corpus);
    }
    let (found, wanted) = match stored {
        Some(stored) => {
            let option =
                if stored.data.is_empty() { "--text names a text" } else { "--data names files of ids" };
            (
                format!("a text with the hash {}, which has changed since the checkpoint", corpus.hash()),
                format!("the run's, {}; {option}", info.text_hash),
            )
        }
        None => (
            "a checkpoint of an older version, which does not name its text".to_owned(),
            "--text with the text of the run".to_owned(),
        ),
    };
    Err(Error::File { path: corpus.name, found, wanted }.into())
}

fn advised(error: Error, advice: &str) -> Failure {
    let mut failure = Failure::from(error);
    failure.message += &format!("; {advice}");
    failure
}

/// A model of a checkpoint, for evaluation.
pub struct Trained {
    pub model: RunModel,
    pub config: ModelConfig,
    /// The options of the checkpoint, or the defaults if it stores none.
    pub stored: Stored,
    /// None of a run on files of ids that has none.
    pub tokenizer: Option<Box<dyn Tokenizer>>,
    pub checkpoint: Checkpoint,
    /// The ids of a sequence of the training.
    pub context: usize,
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

/// Returns the tokenizer of a run, or none of a run on files of ids that has none.
pub fn tokenizer_of(info: &CheckpointInfo) -> Result<Option<Box<dyn Tokenizer>>, Error> {
    match info.tokenizer.is_null() {
        true => Ok(None),
        false => tokenizer_from_json(&info.tokenizer).map(Some),
    }
}

/// Reads the model of a step, or of the last one.
pub fn trained(run: &Path, step: Option<u64>, device: &Device) -> Result<Trained, Failure> {
    let list = CheckpointList::read(run)?;
    let checkpoint = entry(&list, run, step)?.load(device).map_err(|error| unreadable(error, &list))?;
    let config = ModelConfig::of_checkpoint(&checkpoint.info.model)?;
    let tokenizer = tokenizer_of(&checkpoint.info)?;
    let stored = Stored::of(&checkpoint.info)?.unwrap_or_default();
    check_base(&config, &stored)?;
    let mut model = config.trained_model(&checkpoint.parameters, stored.model.as_deref(), device)?;
    model.eval();
    // A checkpoint of another program may have other options.
    let context =
        TrainerOptions::deserialize(&checkpoint.info.training).ok().and_then(|numbers| numbers.context);
    let context = context.unwrap_or(config.context()).clamp(1, config.context());
    Ok(Trained { model, config, stored, tokenizer, checkpoint, context })
}

/// Returns the ids of the prompt of a text that names none: a line's end, the prompt of the checkpoint, or the first id.
pub fn default_prompt(tokenizer: &dyn Tokenizer, stored: &str) -> Vec<u32> {
    let ids = tokenizer.encode("\n").or_else(|_| tokenizer.encode(stored)).unwrap_or_default();
    if ids.is_empty() { vec![0] } else { ids }
}
