//! [`Checkpoint`], the state of a run in a folder of four files.
//!
//! | file | contents |
//! |---|---|
//! | `model.safetensors` | the parameters by name |
//! | `optimizer.safetensors` | the optimizer's `state_dict` |
//! | `info.json` | [`CheckpointInfo`] and the version of the format |
//! | `SHA256SUMS` | the hashes of the others, which `sha256sum -c SHA256SUMS` verifies too |

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::io::new_file::NewFile;
use crate::io::npy::{file_error, open_regular, read_failure};
use crate::nn::limited_file::read_limited;
use crate::nn::{Module, Optimizer};
use crate::tensor::{Device, Tensor};

/// The version of the format that this crate writes.
const FORMAT_VERSION: u64 = 1;

const PARAMETERS: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
pub(super) const INFO: &str = "info.json";
const HASHES: &str = "SHA256SUMS";
const HASHED: [&str; 3] = [PARAMETERS, OPTIMIZER, INFO];

/// The most bytes of a file of text.
const MAX_TEXT: u64 = 64 << 20;

/// A checkpoint's step and its loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BestCheckpoint {
    /// The steps that the run had taken.
    pub step: u64,
    /// The loss of the validation text.
    pub loss: f64,
}

/// The part of a [`Checkpoint`] that is no tensor.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CheckpointInfo {
    /// The steps that the run has taken.
    pub step: u64,
    /// The loss of the validation text, if it was evaluated at this step. NaN and infinities are read back as none.
    pub loss: Option<f64>,
    /// The checkpoint of the lowest loss so far. [`Checkpoints::save`](super::Checkpoints::save) sets it.
    pub best: Option<BestCheckpoint>,
    /// The number of the next batch.
    pub data_position: u64,
    /// The seed of the batches.
    pub data_seed: u64,
    /// The seed of the generator of dropout and the like.
    pub generator_seed: u64,
    /// The block at which the generator continues.
    pub generator_offset: u64,
    /// The SHA-256 of the text in hexadecimal digits.
    pub text_hash: String,
    /// The tokenizer, of [`Tokenizer::to_json`](crate::nn::Tokenizer::to_json).
    pub tokenizer: Value,
    /// The configuration of the model.
    pub model: Value,
    /// The name of the optimizer, of [`Optimizer::name`]. Empty without one, and in the checkpoints of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub optimizer: String,
    /// The configuration of the training, such as the steps of a schedule.
    pub training: Value,
    /// The options of the program that trains, such as the path of its text. Null if it stores none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub program: Value,
}

/// The state of a run of training.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    /// Steps, losses, positions and configurations.
    pub info: CheckpointInfo,
    /// The model's `state_dict`.
    pub parameters: BTreeMap<String, Tensor>,
    /// The optimizer's `state_dict`.
    pub optimizer: BTreeMap<String, Tensor>,
}

#[derive(Serialize)]
struct VersionedInfo<'a> {
    format_version: u64,
    #[serde(flatten)]
    info: &'a CheckpointInfo,
}

impl Checkpoint {
    /// Takes the states of a model and of its optimizer, for a loop other than that of a [`Trainer`](super::Trainer). The caller sets
    /// the rest of the information.
    ///
    /// ```
    /// use selvedge::nn::{AdamW, Checkpoint, Initializer, Linear, Optimizer, Module, Sgd};
    /// use selvedge::Device;
    /// # let folder = std::env::temp_dir().join(format!("selvedge-doc-checkpoint-{}", std::process::id()));
    /// let device = Device::cpu();
    /// let mut model = Linear::new(2, 2, &Initializer::new(&device))?;
    /// let mut optimizer = AdamW::new(model.parameters(), 1e-3)?;
    /// let mut checkpoint = Checkpoint::of(&model, Some(&optimizer))?;
    /// checkpoint.info.step = 100;
    /// checkpoint.save(&folder)?;
    ///
    /// let checkpoint = Checkpoint::load(&folder, &device)?;
    /// checkpoint.load_into(&mut model, Some(&mut optimizer))?;
    /// let mut other = Sgd::new(model.parameters(), 1e-3)?;
    /// let message = checkpoint.load_into(&mut model, Some(&mut other)).unwrap_err().to_string();
    /// assert!(message.contains("the state of the optimizer AdamW") && message.contains("Sgd"), "{message}");
    /// # let _ = std::fs::remove_dir_all(&folder);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn of(model: &dyn Module, optimizer: Option<&dyn Optimizer>) -> Result<Checkpoint> {
        let mut checkpoint = Checkpoint { parameters: model.state_dict(), ..Checkpoint::default() };
        if let Some(optimizer) = optimizer {
            checkpoint.info.optimizer = optimizer.name().to_owned();
            checkpoint.optimizer = optimizer.state_dict()?;
        }
        Ok(checkpoint)
    }

    /// Sets the states of a model and of its optimizer.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with both names for an optimizer of another kind, and for a checkpoint without the state of one; as
    /// [`Module::load_state_dict`] and [`Optimizer::load_state_dict`]. Nothing changes then.
    pub fn load_into(&self, model: &mut dyn Module, optimizer: Option<&mut dyn Optimizer>) -> Result<()> {
        let Some(optimizer) = optimizer else { return model.load_state_dict(&self.parameters) };
        self.check_optimizer("Checkpoint::load_into", optimizer.name())?;
        if self.optimizer.is_empty() {
            let wanted = format!("the state of the optimizer {}", optimizer.name());
            let found = "a checkpoint without the state of an optimizer";
            return Err(Error::invalid("Checkpoint::load_into", found, wanted));
        }
        let before = optimizer.state_dict()?;
        optimizer.load_state_dict(&self.optimizer)?;
        model.load_state_dict(&self.parameters).inspect_err(|_| {
            // The first error is the one to report.
            let _ = optimizer.load_state_dict(&before);
        })
    }

    /// Checks that the state of the optimizer is one of an optimizer of this name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with both names.
    pub(super) fn check_optimizer(&self, operation: &'static str, name: &str) -> Result<()> {
        match &self.info.optimizer {
            found if found.is_empty() || found == name => Ok(()),
            found => {
                let found = format!("the state of the optimizer {found}");
                Err(Error::invalid(operation, found, format!("that of {name}, the optimizer of the run")))
            }
        }
    }

    /// Reads a checkpoint of any process. Its tensors go to `device`.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the file's name for a file that is missing, truncated or damaged, and for a checkpoint of a newer
    /// version of the format; [`Error::OutOfMemory`].
    pub fn load(folder: impl AsRef<Path>, device: &Device) -> Result<Checkpoint> {
        let folder = &super::checkpoints::whole(folder.as_ref());
        let info = CheckpointInfo::load(folder)?;
        let hashes = read_hashes(folder)?;
        let tensors = |file: &str| -> Result<BTreeMap<String, Tensor>> {
            let path = folder.join(file);
            check_hash(&path, hashes.get(file), &hash_of(&path)?)?;
            Ok(Tensor::read_safetensors(path, device)?.into_iter().collect())
        };
        Ok(Checkpoint { info, parameters: tensors(PARAMETERS)?, optimizer: tensors(OPTIMIZER)? })
    }

    /// Writes the files into a folder, with `best` in the information. The files are on the disk when it returns.
    pub(super) fn write(&self, folder: &Path, best: Option<BestCheckpoint>) -> Result<()> {
        let list = |entries: &BTreeMap<String, Tensor>, file: &str| {
            let entries: Vec<(&str, &Tensor)> =
                entries.iter().map(|(name, tensor)| (&name[..], tensor)).collect();
            Tensor::write_safetensors(folder.join(file), &entries, &[("format", "pt")])
        };
        list(&self.parameters, PARAMETERS)?;
        list(&self.optimizer, OPTIMIZER)?;
        let info = CheckpointInfo { best, ..self.info.clone() };
        let info = VersionedInfo { format_version: FORMAT_VERSION, info: &info };
        let text = serde_json::to_string_pretty(&info)
            .map_err(|error| Error::invalid("Checkpoints::save", error, "information that JSON can hold"))?;
        write_text(&folder.join(INFO), &text)?;
        let hashes = HASHED.iter().map(|file| Ok(format!("{}  {file}\n", hash_of(&folder.join(file))?)));
        write_text(&folder.join(HASHES), &hashes.collect::<Result<String>>()?)
    }
}

impl CheckpointInfo {
    /// Reads the information of a checkpoint without its tensors.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the file's name for a file that is missing, truncated or damaged, and for a checkpoint of a newer
    /// version of the format.
    pub fn load(folder: impl AsRef<Path>) -> Result<CheckpointInfo> {
        let folder = &super::checkpoints::whole(folder.as_ref());
        let path = folder.join(INFO);
        let name = path.display().to_string();
        let text = read_limited(&path, KIND, MAX_TEXT)?;
        let damaged = |error: serde_json::Error| {
            file_error(&name, format!("damaged JSON: {error}"), "the information of a checkpoint")
        };
        // A newer version may have other files and other hashes, so the version comes first.
        let json: Value = serde_json::from_slice(&text).map_err(damaged)?;
        match json["format_version"].as_u64() {
            Some(version) if version > FORMAT_VERSION => {
                let wanted = format!("at most version {FORMAT_VERSION}: {NEWER}");
                return Err(file_error(&name, format!("version {version} of the checkpoint format"), wanted));
            }
            Some(1..) => {}
            _ => return Err(file_error(&name, "no format_version", "the information of a checkpoint")),
        }
        let hash = format!("{:x}", Sha256::digest(&text));
        check_hash(&path, read_hashes(folder)?.get(INFO), &hash)?;
        serde_json::from_value(json).map_err(damaged)
    }
}

/// Writes a file and waits until it is on the disk.
fn write_text(path: &Path, text: &str) -> Result<()> {
    let written = || -> std::io::Result<()> {
        let mut file = NewFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    };
    written().map_err(|error| super::checkpoints::write_error(path, &error))
}

const KIND: &str = "checkpoint";

/// The advice in the error of a checkpoint that a newer version wrote.
const NEWER: &str = "use a newer selvedge";

/// Returns `true` for the error of a checkpoint that a newer version wrote.
pub(super) fn is_newer(error: &Error) -> bool {
    matches!(error, Error::File { wanted, .. } if wanted.ends_with(NEWER))
}

/// Reads the hashes of a checkpoint's files by name.
fn read_hashes(folder: &Path) -> Result<BTreeMap<String, String>> {
    let text = read_limited(&folder.join(HASHES), KIND, MAX_TEXT)?;
    let text = String::from_utf8_lossy(&text);
    let lines = text.split_terminator('\n').map(|line| line.split_once("  ")).collect::<Option<Vec<_>>>();
    match lines.filter(|_| text.ends_with('\n')) {
        Some(lines) => Ok(lines.into_iter().map(|(hash, file)| (file.to_owned(), hash.to_owned())).collect()),
        None => {
            let path = folder.join(HASHES).display().to_string();
            Err(file_error(&path, "a damaged list", "lines of a hash, two spaces and a file's name"))
        }
    }
}

/// Compares a file's hash with the one of the list.
fn check_hash(path: &Path, listed: Option<&String>, found: &str) -> Result<()> {
    match listed {
        Some(listed) if listed == found => Ok(()),
        Some(listed) => {
            let found = format!("a damaged file of SHA-256 {found}");
            Err(file_error(&path.display().to_string(), found, format!("SHA-256 {listed}, of {HASHES}")))
        }
        None => {
            let list = path.with_file_name(HASHES).display().to_string();
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            Err(file_error(&list, format!("no hash of {file}"), "the hash of every file of the checkpoint"))
        }
    }
}

/// Returns a file's SHA-256 in hexadecimal digits.
pub(in crate::nn) fn hash_of(path: &Path) -> Result<String> {
    let (mut file, _): (File, u64) = open_regular(path, KIND)?;
    let (mut hash, mut bytes) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let count =
            file.read(&mut bytes).map_err(|error| read_failure(&path.display().to_string(), KIND, &error))?;
        match bytes.get(..count) {
            None | Some([]) => return Ok(format!("{:x}", hash.finalize())),
            Some(bytes) => hash.update(bytes),
        }
    }
}
