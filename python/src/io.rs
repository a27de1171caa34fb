//! `selvedge.io`: arrays in `.npy`, `.npz` and `.safetensors` files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use selvedge::Tensor;

use crate::arguments::DeviceArgument;
use crate::device::device_or_default;
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::nn::value_of;
use crate::tensor::PyTensor;

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

/// Adds the functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(save, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)
}
