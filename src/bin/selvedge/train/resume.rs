//! The beginning of a run: its text, options and folder, new or from a checkpoint.

use std::path::{Path, PathBuf};

use selvedge::nn::{
    ByteTokenizer, CharTokenizer, CheckpointInfo, CheckpointList, Checkpoints, SubwordTokenizer,
    TokenizedText, Tokenizer, Trainer,
};
use selvedge::{Device, Error};

use super::language_model::{RunModel, check_base};
use super::settings::{
    Changes, Settings, Stored, absolute, all_absolute, check_model, check_options_of_decoder, check_schedule,
    model_folder,
};
use super::source::{self, Contents, Corpus};
use crate::failure::Failure;
use crate::model;
use crate::options::{TokenizerChoice, TrainOptions};

/// The folder of a run that names none.
const FOLDER: &str = "selvedge-run";
/// The entries of a checkpoint's optimizer that belong to the loss scale.
const LOSS_SCALE: &str = "loss_scale.";

/// All that a trainer needs, and the text's name.
pub struct Prepared {
    pub text: TokenizedText,
    pub name: String,
    /// None of a run on files of ids that has none.
    pub tokenizer: Option<Box<dyn Tokenizer>>,
    pub settings: Settings,
    /// The options of a resumed run that differ from those of its checkpoint.
    pub changes: Vec<String>,
}

impl Prepared {
    /// Prepares a new run.
    pub fn new(options: &TrainOptions) -> Result<Prepared, Failure> {
        let corpus = match &options.data[..] {
            [] => Corpus::text(options.text.as_deref())?,
            data => Corpus::files(data, &options.validation, options.map)?,
        };
        let tokenizer = new_tokenizer(options, &corpus)?;
        let mut settings = Settings::new(options, &corpus, tokenizer.as_deref())?;
        check_options_of_decoder(options, &settings.config)?;
        settings.apply(options);
        check_schedule(options, &settings)?;
        let name = corpus.name.clone();
        let text = corpus.tokenized(tokenizer.as_deref())?;
        Ok(Prepared { text, name, tokenizer, settings, changes: Vec::new() })
    }
}

/// Returns the tokenizer of a new run, or none for files of ids without one.
fn new_tokenizer(options: &TrainOptions, corpus: &Corpus) -> Result<Option<Box<dyn Tokenizer>>, Failure> {
    if let Some(folder) = model_folder(options) {
        return match (&options.tokenizer, &corpus.contents) {
            (Some(TokenizerChoice::Folder(folder)), _) => {
                Ok(Some(Box::new(SubwordTokenizer::from_folder(folder)?)))
            }
            (Some(choice), _) => {
                let found = format!("--tokenizer {choice} with --model {}", folder.display());
                let wanted = "the folder's tokenizer, which is the default".to_owned();
                Err(Error::InvalidArgument { operation: "train", found, wanted }.into())
            }
            // Files of ids need no tokenizer.
            (None, Contents::Ids(_)) if !model::has_tokenizer(folder) => Ok(None),
            (None, _) => Ok(Some(Box::new(SubwordTokenizer::from_folder(folder)?))),
        };
    }
    Ok(match (&options.tokenizer, &corpus.contents) {
        (Some(TokenizerChoice::Folder(folder)), _) => Some(Box::new(SubwordTokenizer::from_folder(folder)?)),
        (Some(TokenizerChoice::Byte), _) => Some(Box::new(ByteTokenizer)),
        (None, Contents::Ids(_)) => None,
        (Some(TokenizerChoice::Char), Contents::Ids(_)) => {
            let found = "--tokenizer char with --data, whose files have no characters".to_owned();
            let wanted = "the folder of the tokenizer that wrote the files, or none".to_owned();
            return Err(Error::InvalidArgument { operation: "train", found, wanted }.into());
        }
        (None | Some(TokenizerChoice::Char), Contents::Text(text)) => {
            Some(Box::new(CharTokenizer::from_text(text)?))
        }
    })
}

/// A run to resume, whose folder this process has locked.
pub struct Resumed {
    checkpoints: Checkpoints,
    folder: PathBuf,
    list: CheckpointList,
    step: u64,
    info: CheckpointInfo,
}

impl Resumed {
    /// Opens the folder of the run, and reads the information of the checkpoint.
    pub fn open(options: &TrainOptions) -> Result<Resumed, Failure> {
        let folder = options.run.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
        if !folder.exists() {
            return Err(no_checkpoint(&folder));
        }
        let checkpoints = Checkpoints::open(&folder)?;
        let list = checkpoints.list()?;
        if list.latest().is_none() {
            return Err(no_checkpoint(&folder));
        }
        let entry = source::entry(&list, &folder, options.step)?;
        let info = entry.info().map_err(|error| source::unreadable(error, &list))?;
        let step = entry.step();
        Ok(Resumed { checkpoints, folder, list, step, info })
    }

    /// Returns the checkpoint's step.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the text and the options of the checkpoint, with the options that are given.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for options and a text that change the course of the run, unless `--force` is given.
    pub fn prepare(&self, options: &TrainOptions) -> Result<Prepared, Failure> {
        let mut settings = Settings::of_checkpoint(&self.info)?;
        check_model(options, &self.info, &settings.config)?;
        check_options_of_decoder(options, &settings.config)?;
        if let Some(folder) = model_folder(options) {
            // Adapters need their base, which may have moved.
            settings.stored.model = absolute(Some(folder));
        }
        check_base(&settings.config, &settings.stored)?;
        let stored = &mut settings.stored;
        let refused = |found: &str, wanted: &str| -> Failure {
            let (found, wanted) = (found.to_owned(), wanted.to_owned());
            Error::InvalidArgument { operation: "train --resume", found, wanted }.into()
        };
        let corpus = if options.text.is_some() {
            if !stored.data.is_empty() {
                return Err(refused("--text for a run on files of ids", "--data, or a new run"));
            }
            stored.text = absolute(options.text.as_deref());
            Corpus::text(options.text.as_deref())?
        } else if !options.data.is_empty() {
            if stored.data.is_empty() {
                return Err(refused("--data for a run on a text", "--text, or a new run"));
            }
            stored.data = all_absolute(&options.data);
            if !options.validation.is_empty() {
                stored.validation = all_absolute(&options.validation);
            }
            stored.is_mapped |= options.map;
            Corpus::files(&stored.data, &stored.validation, stored.is_mapped)?
        } else if options.force {
            // --force continues with a text that has changed.
            Corpus::stored(stored)?
        } else {
            source::text_of_run(&self.info).map_err(|failure| Failure {
                message: format!("{}; --force continues with another text", failure.message),
                ..failure
            })?
        };
        let Changes { mut of_course, others } = settings.apply(options);
        check_schedule(options, &settings)?;
        if corpus.hash() != self.info.text_hash {
            let found = format!("the text {} with the hash {}", corpus.name, corpus.hash());
            of_course.insert(0, format!("{found} in place of one with the hash {}", self.info.text_hash));
        }
        if !of_course.is_empty() && !options.force {
            let found = format!("{}, after step {}", of_course.join(", "), self.step);
            let wanted =
                "the options of the checkpoint, which need not be given; --force continues with others";
            return Err(Error::InvalidArgument {
                operation: "train --resume",
                found,
                wanted: wanted.to_owned(),
            }
            .into());
        }
        let mut changes = [of_course, others].concat();
        if Stored::of(&self.info)?.is_none() {
            changes.push(
                "the checkpoint is of an older version: --every, --sample, --plot and --device are those of a new run"
                    .to_owned(),
            );
        }
        let tokenizer = source::tokenizer_of(&self.info)?;
        let name = corpus.name.clone();
        let text = corpus.tokenized(tokenizer.as_deref())?;
        Ok(Prepared { text, name, tokenizer, settings, changes })
    }

    /// Loads the checkpoint into a trainer, and sets later checkpoints aside. Returns these too.
    pub fn load(
        self,
        trainer: &mut Trainer<RunModel>,
        settings: &Settings,
        is_forced: bool,
        device: &Device,
    ) -> Result<(Checkpoints, PathBuf, Vec<PathBuf>), Failure> {
        let Resumed { mut checkpoints, folder, list, step, .. } = self;
        let entry = source::entry(&list, &folder, Some(step))?;
        let mut checkpoint = entry.load(device).map_err(|error| source::unreadable(error, &list))?;
        if is_forced {
            // --force lets these differ. The parameters must have the shapes of the checkpoint.
            checkpoint.info.model = settings.config.to_json();
            checkpoint.info.data_seed = settings.numbers.seed;
            let fresh = trainer.checkpoint()?.optimizer;
            let has_scale = |name: &str| name.starts_with(LOSS_SCALE);
            checkpoint.optimizer.retain(|name, _| !has_scale(name) || fresh.contains_key(name));
            for (name, tensor) in fresh.into_iter().filter(|(name, _)| has_scale(name)) {
                checkpoint.optimizer.entry(name).or_insert(tensor);
            }
        }
        trainer.resume(&checkpoint, is_forced)?;
        let set_aside = checkpoints.rewind(step)?;
        Ok((checkpoints, folder, set_aside))
    }
}

fn no_checkpoint(folder: &Path) -> Failure {
    let (path, found) = (folder.display().to_string(), "no checkpoint".to_owned());
    Error::File { path, found, wanted: "the folder of a run to resume".to_owned() }.into()
}

/// Copies the files of the tokenizer of a published folder into the folder of a new run, for [`convert`](crate::convert).
pub fn copy_tokenizer(options: &TrainOptions, stored: &Stored, run: &Path) -> Result<(), Failure> {
    let from = match (&stored.model, &options.tokenizer) {
        (None, _) => return Ok(()),
        (Some(_), Some(TokenizerChoice::Folder(folder))) => folder,
        (Some(folder), _) => folder,
    };
    let to = run.join(model::TOKENIZER_OF_RUN);
    std::fs::create_dir_all(&to)
        .map_err(|error| Failure::failed(format!("{} is not created: {error}", to.display())))?;
    model::copy_tokenizer(from, &to).map(drop)
}

/// Opens the folder of a new run.
pub fn new_folder(options: &TrainOptions) -> Result<(Checkpoints, PathBuf), Failure> {
    let Some(folder) = &options.run else {
        let free = (1..).map(|number| match number {
            1 => PathBuf::from(FOLDER),
            number => PathBuf::from(format!("{FOLDER}-{number}")),
        });
        for folder in free {
            if !folder.exists() {
                return Ok((Checkpoints::open(&folder)?, folder));
            }
        }
        return Err(Failure::failed(format!("no name like {FOLDER} is free")));
    };
    let checkpoints = Checkpoints::open(folder)?;
    if let Some(latest) = checkpoints.list()?.latest() {
        let path = folder.display().to_string();
        let found = format!("a run at step {}", latest.step());
        let wanted = "a new folder, or --resume to continue the run".to_owned();
        return Err(Error::File { path, found, wanted }.into());
    }
    Ok((checkpoints, folder.clone()))
}
