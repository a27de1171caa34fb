//! [`Decoder::load`]: a Hugging Face folder to a model.
//!
//! Names, shapes and dtypes are checked by the headers before an element is read. Files are read, not mapped, unless the caller
//! guarantees that nobody changes them; to a CUDA device elements go through page-locked memory in chunks.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::config::DecoderConfig;
use super::model::Decoder;
use super::names::COMPUTED;
use super::parameters::specifications;
use super::{CONFIG, DECODER};
use crate::error::{Error, Result};
use crate::io::safetensors::SafetensorsFile;
use crate::nn::Variable;
use crate::tensor::{Device, Tensor, Uploads};
use crate::types::DType;

/// The weights of a folder, in the order in which they, and transformers, look for them.
const WEIGHTS: [&str; 2] = ["model.safetensors", INDEX];
/// The list of the shards of a folder.
pub(super) const INDEX: &str = "model.safetensors.index.json";
const PICKLES: [&str; 2] = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
/// Faults that an error lists.
const MAX_FAULTS: usize = 40;

/// The options of [`Decoder::load`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecoderOptions {
    /// The dtype of the parameters: f64, f32, f16 or bf16. By default it is that of the stored embedding, but f32 on the CPU for
    /// 16 bits, which the CPU computes more slowly.
    pub dtype: Option<DType>,
    /// The dtype of activations and products, by default that of the parameters.
    pub compute_dtype: Option<DType>,
}

impl Decoder {
    /// Loads the model of a folder as Hugging Face publishes it: `config.json`, `generation_config.json` if there is one, and
    /// `model.safetensors` or the files of `model.safetensors.index.json`.
    ///
    /// Names may lack the family's prefix (`transformer.`, `model.`). A tied head and tables that the model computes itself are
    /// left out. Tensors of other dtypes than the parameters' are cast.
    ///
    /// # Errors
    ///
    /// As [`DecoderConfig::from_json`] and [`SafetensorsFile::open`]; [`Error::File`] for a folder without weights, one with
    /// pickles alone, and one error that names every missing, extra, doubled and wrongly shaped tensor;
    /// [`Error::InvalidArgument`] for an option that is no float of 16 to 64 bits; [`Error::OutOfMemory`].
    pub fn load(folder: impl AsRef<Path>, device: &Device, options: &DecoderOptions) -> Result<Decoder> {
        load_read(folder.as_ref(), device, options)
    }

    /// As [`load`](Self::load), through the files' own pages.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); [`Error::File`] where the system cannot map a file.
    ///
    /// # Safety
    ///
    /// Nobody writes the files or makes them shorter meanwhile.
    pub unsafe fn load_mapped(
        folder: impl AsRef<Path>,
        device: &Device,
        options: &DecoderOptions,
    ) -> Result<Decoder> {
        if !device.is_cpu() {
            // Threads read pages into page-locked memory faster than they take page faults.
            return load_read(folder.as_ref(), device, options);
        }
        load(folder.as_ref(), device, options, &mut |file, name| {
            // SAFETY: the caller's word.
            unsafe { Tensor::map_safetensors_tensor(file, name, device) }
        })
    }
}

impl DecoderConfig {
    /// Reads the configuration of a folder.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a folder without a readable `config.json`; as [`from_json`](Self::from_json).
    pub fn load(folder: impl AsRef<Path>) -> Result<DecoderConfig> {
        let folder = folder.as_ref();
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|error| Error::File {
                path: path.display().to_string(),
                found: error.to_string(),
                wanted: "a readable file of a Hugging Face folder".to_owned(),
            })
        };
        let generation = match folder.join("generation_config.json").exists() {
            true => Some(read("generation_config.json")?),
            false => None,
        };
        DecoderConfig::from_json(&read("config.json")?, generation.as_deref())
    }
}

/// Reads one tensor of a file.
type Read<'a> = &'a mut dyn FnMut(&mut SafetensorsFile, &str) -> Result<Tensor>;

/// Loads a model whose tensors are read while those before them are copied to the device.
fn load_read(folder: &Path, device: &Device, options: &DecoderOptions) -> Result<Decoder> {
    let mut uploads = Uploads::default();
    let model = load(folder, device, options, &mut |file, name| {
        Tensor::read_safetensors_tensor_through(&mut uploads, file, name, device, &mut |_, _| {})
    })?;
    uploads.finish()?;
    Ok(model)
}

fn load(folder: &Path, device: &Device, options: &DecoderOptions, read: Read<'_>) -> Result<Decoder> {
    for (option, dtype) in [("dtype", options.dtype), ("compute_dtype", options.compute_dtype)] {
        if let Some(dtype) = dtype.filter(|&dtype| !is_supported(dtype)) {
            return Err(Error::invalid(DECODER, format!("{option} = {dtype}"), SUPPORTED));
        }
    }
    let config = DecoderConfig::load(folder)?;
    let path = weights_path(folder)?;
    let mut file = SafetensorsFile::open(&path)?;
    let stored = stored_names(&config, &mut file, &path)?;
    let dtype = match options.dtype {
        Some(dtype) => dtype,
        None => {
            let embedding = format!("{}{}.weight", config.names.prefix, config.names.embedding);
            let name = stored.get(&embedding).unwrap_or(&embedding);
            let found = file.array(name)?.dtype()?;
            if device.is_cpu() && found.size() == 2 {
                log::info!(
                    "{DECODER}: weights of {found} become f32 on the CPU; the option dtype changes that"
                );
                DType::F32
            } else {
                found
            }
        }
    };
    Decoder::from_source(config, options.compute_dtype, &mut |parameter| {
        let name = stored.get(&parameter.name).unwrap_or(&parameter.name);
        Variable::with_grad(read(&mut file, name)?.cast(dtype)?)
    })
}

const SUPPORTED: &str = "f64, f32, f16 or bf16";

fn is_supported(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
}

/// Returns the file of the weights.
pub(super) fn weights_path(folder: &Path) -> Result<PathBuf> {
    if let Some(name) = WEIGHTS.iter().find(|name| folder.join(name).exists()) {
        return Ok(folder.join(name));
    }
    let refuse = |found: String, wanted: &str| {
        Err(Error::File { path: folder.display().to_string(), found, wanted: wanted.to_owned() })
    };
    match PICKLES.iter().find(|name| folder.join(name).exists()) {
        Some(name) => refuse(
            format!("{name}, a pickle, which may run code and is never read"),
            "model.safetensors; convert it where you trust the file: python -c \"from transformers import \
             AutoModelForCausalLM as M; M.from_pretrained('DIR').save_pretrained('OUT', safe_serialization=True)\"",
        ),
        None => refuse("no weights".to_owned(), "model.safetensors or model.safetensors.index.json"),
    }
}

/// Returns the name in the files of each parameter.
///
/// # Errors
///
/// [`Error::File`] with all faults of the names, shapes and dtypes.
fn stored_names(
    config: &DecoderConfig,
    file: &mut SafetensorsFile,
    path: &Path,
) -> Result<HashMap<String, String>> {
    let names = config.names;
    let mut wanted: BTreeMap<String, Vec<usize>> =
        specifications(config).into_iter().map(|parameter| (parameter.name, parameter.shape)).collect();
    let head = format!("{}.weight", names.head);
    let (mut stored, mut faults) = (HashMap::new(), Vec::new());
    for found in file.names().to_vec() {
        let is_computed = COMPUTED.iter().any(|end| found.ends_with(end));
        if is_computed || (config.has_tied_head && found == head) {
            continue;
        }
        let full = format!("{}{found}", names.prefix);
        let is_known = |name: &String| wanted.contains_key(name) || stored.contains_key(name);
        let name = if !is_known(&found) && is_known(&full) { full } else { found.clone() };
        if let Some(other) = stored.get(&name) {
            faults.push(format!("'{found}' is '{other}' again"));
            continue;
        }
        let Some(shape) = wanted.remove(&name) else {
            faults.push(format!("'{found}' is extra"));
            continue;
        };
        let array = file.array(&found)?;
        if array.shape() != shape {
            faults.push(format!("'{found}' has shape {:?} in place of {shape:?}", array.shape()));
        } else if !array.dtype().is_ok_and(is_supported) {
            faults.push(format!("'{found}' has dtype {} in place of {SUPPORTED}", array.dtype_name()));
        }
        stored.insert(name, found);
    }
    faults.extend(wanted.into_keys().map(|name| format!("'{name}' is missing")));
    if faults.is_empty() {
        return Ok(stored);
    }
    let count = faults.len();
    let mut found = faults.into_iter().take(MAX_FAULTS).collect::<Vec<_>>().join(", ");
    if count > MAX_FAULTS {
        found.push_str(&format!(", and {} more faults", count - MAX_FAULTS));
    }
    let wanted = format!("the tensors that config.json describes ({CONFIG})");
    Err(Error::File { path: path.display().to_string(), found, wanted })
}
