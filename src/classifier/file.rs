//! Model files: safetensors with the format's name and version in the metadata.
//!
//! | tensor | dtype | shape |
//! |---|---|---|
//! | `layers.{i}.weight`, `layers.{i}.bias` | f32 | (inputs, outputs), (outputs) |
//! | `prior` | f64 | (classes) |
//! | `centres`, `deviation` | f32, f64 | (classes, features), (); of the full mode alone |

use std::collections::BTreeMap;
use std::path::Path;

use super::generative::GenerativeModel;
use super::model::Classifier;
use super::options::ClassifierOptions;
use crate::error::{Error, Result};
use crate::io::safetensors::SafetensorsFile;
use crate::tensor::{Device, Tensor};
use crate::types::DType;

const FORMAT: &str = "selvedge-classifier";
const VERSION: u64 = 1;
/// The metadata with the names of the classes, as a JSON array.
const CLASS_NAMES: &str = "class_names";

impl Classifier {
    /// Writes the weights, the prior, the options and the generative model into a file. The path keeps its old contents until
    /// the file is whole.
    ///
    /// # Errors
    ///
    /// As [`Tensor::write_safetensors`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let cpu = Device::cpu();
        let mut entries: Vec<(String, Tensor)> = self.state_dict().into_iter().collect();
        entries.push(("prior".to_owned(), Tensor::from_slice(self.prior(), &[self.classes()], &cpu)?));
        if let Some(model) = self.generative_model() {
            entries.push(("centres".to_owned(), model.centres().clone()));
            entries.push(("deviation".to_owned(), Tensor::from_slice(&[model.deviation()], &[], &cpu)?));
        }
        let entries: Vec<(&str, &Tensor)> =
            entries.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let (version, fuses) = (VERSION.to_string(), self.fuses_prior().to_string());
        let dropout = self.dropout().to_string();
        let mut metadata =
            vec![("format", FORMAT), ("version", &version), ("fuse_prior", &fuses), ("dropout", &dropout)];
        let names = serde_json::json!(self.class_names()).to_string();
        if !self.class_names().is_empty() {
            metadata.push((CLASS_NAMES, &names));
        }
        Tensor::write_safetensors(path, &entries, &metadata)
    }

    /// Reads a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a file that is no model or is damaged, truncated or of a newer version; errors of memory.
    pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<Classifier> {
        let path = path.as_ref();
        let mut model_file = ModelFile { path, file: SafetensorsFile::open(path)? };
        model_file.check_format()?;
        model_file.read(device)
    }
}

/// An open model file.
struct ModelFile<'a> {
    path: &'a Path,
    file: SafetensorsFile,
}

impl ModelFile<'_> {
    fn refusal(&self, found: impl ToString, wanted: impl Into<String>) -> Error {
        let path = self.path.display().to_string();
        Error::File { path, found: found.to_string(), wanted: wanted.into() }
    }

    fn check_format(&self) -> Result<()> {
        let metadata = self.file.metadata();
        let format = metadata.get("format").map_or("", String::as_str);
        if format != FORMAT {
            let found = format!("a safetensors file of format '{format}'");
            return Err(self.refusal(found, format!("format '{FORMAT}'")));
        }
        let version = metadata.get("version").map_or("", String::as_str);
        match version.parse::<u64>() {
            Ok(VERSION) => Ok(()),
            Ok(newer) if newer > VERSION => {
                let wanted = format!("version {VERSION}, or a newer selvedge");
                Err(self.refusal(format!("version {newer} of '{FORMAT}'"), wanted))
            }
            _ => {
                Err(self.refusal(format!("version '{version}' of '{FORMAT}'"), format!("version {VERSION}")))
            }
        }
    }

    /// Returns a value of the metadata.
    fn value<T: std::str::FromStr>(&self, name: &str, wanted: &str) -> Result<T> {
        let text = self.file.metadata().get(name).map_or("", String::as_str);
        text.parse().map_err(|_| self.refusal(format!("{name} '{text}'"), wanted))
    }

    /// Returns a tensor of a dtype and a rank on the CPU.
    fn tensor(&mut self, name: &str, dtype: DType, rank: usize) -> Result<Tensor> {
        let tensor = Tensor::read_safetensors_tensor(&mut self.file, name, &Device::cpu())?;
        if tensor.dtype() == dtype && tensor.rank() == rank {
            return Ok(tensor);
        }
        let found = format!("{name} of {} and of shape {}", tensor.dtype(), tensor.shape());
        Err(self.refusal(found, format!("{dtype} with {rank} dimensions")))
    }

    fn read(&mut self, device: &Device) -> Result<Classifier> {
        let mut entries = BTreeMap::new();
        let mut widths: Vec<usize> = Vec::new();
        let names = self.file.names().to_vec();
        for layer in 0.. {
            let name = format!("layers.{layer}.weight");
            if !names.contains(&name) {
                break;
            }
            let weight = self.tensor(&name, DType::F32, 2)?;
            let [inputs, outputs] = [0, 1].map(|axis| weight.shape().get(axis).copied().unwrap_or(0));
            let before = *widths.last().unwrap_or(&inputs);
            if inputs != before {
                let found = format!("{name} of shape {}", weight.shape());
                return Err(self.refusal(found, format!("{before} inputs, as many as the layer before has")));
            }
            if layer == 0 {
                widths.push(inputs);
            }
            widths.push(outputs);
            entries.insert(name, weight);
            let name = format!("layers.{layer}.bias");
            entries.insert(name.clone(), self.tensor(&name, DType::F32, 1)?);
        }
        let prior = self.tensor("prior", DType::F64, 1)?.to_vec::<f64>()?;
        let Some((&features, hidden)) = widths.split_first() else {
            return Err(self.refusal("no layers", "at least layers.0.weight"));
        };
        let hidden = match hidden.split_last() {
            Some((&classes, hidden)) if classes == prior.len() => hidden.to_vec(),
            _ => {
                let found = format!("layers of widths {widths:?} and a prior of {} classes", prior.len());
                return Err(self.refusal(found, "equal numbers of classes"));
            }
        };
        let fuse_prior = self.value("fuse_prior", "true or false")?;
        let dropout = self.value("dropout", "a probability")?;
        let options = ClassifierOptions { features, hidden, prior, fuse_prior, dropout, seed: 0 };
        let read = Classifier::new(&options, device).and_then(|mut classifier| {
            classifier.load_state_dict(&entries)?;
            Ok(classifier)
        });
        // Wrong contents are a defect of the file, not of an argument.
        let mut classifier = read.map_err(|error| self.as_defect(error))?;
        if let Some(text) = self.file.metadata().get(CLASS_NAMES) {
            let class_names = serde_json::from_str(text).map_err(|error| {
                self.refusal(format!("{CLASS_NAMES} '{text}': {error}"), "a JSON array of names")
            })?;
            classifier.set_class_names(class_names).map_err(|error| self.as_defect(error))?;
        }
        if names.iter().any(|name| name == "centres") {
            let centres = self.tensor("centres", DType::F32, 2)?;
            let deviation = self.tensor("deviation", DType::F64, 0)?.item::<f64>()?;
            let model = GenerativeModel::new(centres, deviation);
            let set = model.and_then(|model| classifier.set_generative_model(Some(&model)));
            set.map_err(|error| self.as_defect(error))?;
        }
        Ok(classifier)
    }

    fn as_defect(&self, error: Error) -> Error {
        match error {
            Error::InvalidArgument { found, wanted, .. } => self.refusal(found, wanted),
            other => other,
        }
    }
}
