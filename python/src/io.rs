//! `selvedge.io`: arrays in `.npy`, `.npz` and `.safetensors` files, and files of token ids.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use selvedge::nn::{TokenFiles, TokenFormat, TokenWriter};
use selvedge::{DType, Tensor};

use crate::arguments::{DTypeArgument, DeviceArgument, InRange};
use crate::decoder::ids_of;
use crate::device::device_or_default;
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::nn::value_of;
use crate::tensor::{PyTensor, new_tensor};

/// The formats by the ending of a name.
enum Format {
    Npy,
    Npz,
    Safetensors,
}

fn format_of(operation: &'static str, path: &Path) -> Result<Format> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("npy") => Ok(Format::Npy),
        Some("npz") => Ok(Format::Npz),
        Some("safetensors") => Ok(Format::Safetensors),
        _ => {
            let wanted = "a name that ends in .npy, .npz or .safetensors";
            Err(invalid(operation, format!("the path {}", path.display()), wanted).into())
        }
    }
}

/// Writes a tensor into a `.npy` file, or a dict of tensors by name into a `.npz` or `.safetensors` file, by the path's ending. The file
/// appears when it is whole.
#[pyfunction]
#[pyo3(signature = (path, tensors, *, compressed=false, metadata=None))]
fn save(
    py: Python<'_>,
    path: PathBuf,
    tensors: &Bound<'_, PyAny>,
    compressed: bool,
    metadata: Option<BTreeMap<String, String>>,
) -> Result<()> {
    let format = format_of("save", &path)?;
    let refused =
        |found: &str, wanted: &str| invalid("save", format!("{found} for {}", path.display()), wanted);
    if compressed && !matches!(format, Format::Npz) {
        return Err(refused("compressed=True", "a .npz file").into());
    }
    if metadata.is_some() && !matches!(format, Format::Safetensors) {
        return Err(refused("metadata", "a .safetensors file").into());
    }
    if let Format::Npy = format {
        let tensor = value_of(tensors)?;
        return Ok(py.detach(|| tensor.write_npy(&path))?);
    }
    let items = tensors
        .call_method0("items")
        .map_err(|_| wrong_type("save", type_name(tensors), "a dict of tensors by name"))?;
    let mut named: Vec<(String, Tensor)> = Vec::new();
    for item in items.try_iter()? {
        let (name, value): (Bound<'_, PyString>, Bound<'_, PyAny>) = item?.extract()?;
        named.push((name.to_string(), value_of(&value)?));
    }
    let named: Vec<(&str, &Tensor)> = named.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let metadata = metadata.unwrap_or_default();
    let metadata: Vec<(&str, &str)> =
        metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    Ok(py.detach(|| match format {
        Format::Safetensors => Tensor::write_safetensors(&path, &named, &metadata),
        _ if compressed => Tensor::write_npz_compressed(&path, &named),
        _ => Tensor::write_npz(&path, &named),
    })?)
}

/// Reads what `save` writes, or NumPy, PyTorch's users or Hugging Face wrote: a tensor of a `.npy` file, or a dict of tensors.
#[pyfunction]
#[pyo3(signature = (path, *, device=None))]
fn load(py: Python<'_>, path: PathBuf, device: Option<DeviceArgument>) -> Result<Bound<'_, PyAny>> {
    let device = device_or_default(device);
    let named = match format_of("load", &path)? {
        Format::Npy => {
            let tensor = py.detach(|| Tensor::read_npy(&path, &device))?;
            return Ok(Bound::new(py, PyTensor::from(tensor))?.into_any());
        }
        Format::Npz => py.detach(|| Tensor::read_npz(&path, &device))?,
        Format::Safetensors => py.detach(|| Tensor::read_safetensors(&path, &device))?,
    };
    let dict = PyDict::new(py);
    for (name, tensor) in named {
        dict.set_item(name, PyTensor::from(tensor).into_pyobject(py)?)?;
    }
    Ok(dict.into_any())
}

/// Writes token ids into a file that a `Trainer` and `selvedge train --data` read: llm.c's format for `.bin`, an array of one axis for `.npy`.
///
/// `dtype` is "u16" or "u32"; by default u16 if all ids fit. With `shard_ids`, `train.bin` stands for `train_000000.bin`, `train_000001.bin` and so
/// on, of so many ids each. Returns the paths of the files.
///
///     sv.io.save_ids("train.bin", tokenizer.encode(text))
#[pyfunction]
#[pyo3(signature = (path, ids, *, dtype=None, shard_ids=None))]
fn save_ids(
    py: Python<'_>,
    path: PathBuf,
    ids: &Bound<'_, PyAny>,
    dtype: Option<DTypeArgument>,
    shard_ids: Option<InRange<u64>>,
) -> Result<Vec<PathBuf>> {
    let refused =
        || invalid("save_ids", format!("the path {}", path.display()), "a name that ends in .bin or .npy");
    let format = TokenFormat::of_path(&path).ok_or_else(refused)?;
    let ids = ids_of(&new_tensor(ids, None, None)?)?;
    let narrow = ids.iter().all(|&id| id <= u16::MAX.into());
    let dtype = dtype.map_or(if narrow { DType::U16 } else { DType::U32 }, |dtype| dtype.0);
    Ok(py.detach(|| {
        let mut writer = TokenWriter::create(&path, format, dtype, shard_ids.map(|count| count.0))?;
        writer.write(&ids)?;
        writer.finish()
    })?)
}

/// Reads the token ids of one file or of several, one after the other, as a tensor of i64.
#[pyfunction]
#[pyo3(signature = (paths, *, device=None))]
fn load_ids(py: Python<'_>, paths: &Bound<'_, PyAny>, device: Option<DeviceArgument>) -> Result<PyTensor> {
    let device = device_or_default(device);
    let paths: Vec<PathBuf> = match paths.extract::<PathBuf>() {
        Ok(path) => vec![path],
        Err(_) => paths.extract()?,
    };
    Ok(py
        .detach(|| {
            let files = TokenFiles::read(&paths)?;
            let ids: Vec<i64> = files.ids(0..files.len())?.into_iter().map(i64::from).collect();
            Tensor::from_slice(&ids, &[ids.len()], &device)
        })?
        .into())
}

/// Adds the functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(save, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(save_ids, module)?)?;
    module.add_function(wrap_pyfunction!(load_ids, module)?)
}
