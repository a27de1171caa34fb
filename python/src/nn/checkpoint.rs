//! `selvedge.nn.save_checkpoint` and `load_checkpoint`, the state of a loop of Python in a folder.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use selvedge::nn::{Checkpoint, LanguageModel, Module, Optimizer};
use selvedge::tensor::GeneratorState;

use super::language_model::SharedModel;
use super::module::{ObjectModule, PyNnModule, dict_of};
use super::optimizers::PyOptimizer;
use crate::arguments::{DeviceArgument, InRange};
use crate::device::device_or_default;
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::random::PyGenerator;

/// Returns the module of a model, and its configuration if it has one.
fn module_of(
    operation: &'static str,
    model: &Bound<'_, PyAny>,
) -> Result<(Box<dyn Module>, serde_json::Value)> {
    if let Ok(shared) = SharedModel::of(operation, model) {
        let json = shared.to_json();
        return Ok((Box::new(shared), json));
    }
    match model.cast::<PyNnModule>() {
        Ok(module) => Ok((Box::new(ObjectModule::new(module)?), serde_json::Value::Null)),
        Err(_) => {
            Err(wrong_type(operation, type_name(model), "a selvedge.nn.Module or a selvedge.Decoder").into())
        }
    }
}

/// Returns a value of JSON as an object of Python.
pub fn object_of_json<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (value.to_string(),))
}

fn json_of(operation: &'static str, value: &Bound<'_, PyAny>) -> Result<serde_json::Value> {
    let text: String = value.py().import("json")?.call_method1("dumps", (value,))?.extract()?;
    Ok(serde_json::from_str(&text)
        .map_err(|error| invalid(operation, error.to_string(), "numbers that JSON has"))?)
}

/// Writes a checkpoint into a folder, which appears when it is whole: `model.safetensors`, `optimizer.safetensors`, `info.json` and
/// their hashes. An older checkpoint of the path stays until then.
///
/// `extra` is what `json.dumps` takes, such as the `state_dict()` of a `DataLoader`. The state of `generator` is stored with it.
/// `Trainer` has checkpoints of its own.
///
/// >>> import tempfile
/// >>> model = sv.nn.Linear(2, 1)
/// >>> optimizer = sv.nn.AdamW(model, lr=0.1)
/// >>> with tempfile.TemporaryDirectory() as folder:
/// ...     sv.nn.save_checkpoint(folder + "/run", model=model, optimizer=optimizer, step=7, extra={"epoch": 2})
/// ...     found = sv.nn.load_checkpoint(folder + "/run", model=model, optimizer=optimizer)
/// >>> found["step"], found["extra"], found["optimizer"]
/// (7, {'epoch': 2}, 'AdamW')
#[pyfunction]
#[pyo3(
    signature = (path, *, model, optimizer=None, step=InRange(0), loss=None, generator=None, extra=None),
    text_signature = "(path, *, model, optimizer=None, step=0, loss=None, generator=None, extra=None)"
)]
#[allow(clippy::too_many_arguments, reason = "the parts of a checkpoint")]
pub fn save_checkpoint(
    py: Python<'_>,
    path: PathBuf,
    model: &Bound<'_, PyAny>,
    optimizer: Option<&Bound<'_, PyOptimizer>>,
    step: InRange<u64>,
    loss: Option<InRange<f64>>,
    generator: Option<&Bound<'_, PyGenerator>>,
    extra: Option<&Bound<'_, PyAny>>,
) -> Result<()> {
    let (module, json) = module_of("save_checkpoint", model)?;
    let extra = extra.map(|extra| json_of("save_checkpoint", extra)).transpose()?;
    let optimizer = optimizer.map(|optimizer| optimizer.get().handle());
    let generator = generator.map(|generator| generator.get().generator().state());
    Ok(py.detach(|| {
        let optimizer = optimizer.as_ref().map(|optimizer| optimizer as &dyn Optimizer);
        let mut checkpoint = Checkpoint::of(&*module, optimizer)?;
        let info = &mut checkpoint.info;
        (info.step, info.loss, info.model) = (step.0, loss.map(|loss| loss.0), json);
        info.program = extra.unwrap_or_default();
        if let Some(GeneratorState { seed, offset }) = generator {
            (info.generator_seed, info.generator_offset) = (seed, offset);
        }
        checkpoint.save(path)
    })?)
}

/// Reads a checkpoint of `save_checkpoint` or of a `Trainer`, and sets the states of a model, of an optimizer and of a generator.
///
/// Returns a dict: "step", "loss" and "extra" as they were given, "optimizer", the name of its class, and the tensors by name as
/// "parameters" and "optimizer_state". A state that does not fit changes nothing: the error has every entry that is missing, extra or of
/// another shape, or the names of both optimizers.
#[pyfunction]
#[pyo3(signature = (path, *, model=None, optimizer=None, generator=None, device=None))]
pub fn load_checkpoint<'py>(
    py: Python<'py>,
    path: PathBuf,
    model: Option<&Bound<'py, PyAny>>,
    optimizer: Option<&Bound<'py, PyOptimizer>>,
    generator: Option<&Bound<'py, PyGenerator>>,
    device: Option<DeviceArgument>,
) -> Result<Bound<'py, PyDict>> {
    if model.is_none() && optimizer.is_some() {
        let wanted = "the model whose parameters it changes, too";
        return Err(invalid("load_checkpoint", "an optimizer without a model", wanted).into());
    }
    let device = device_or_default(device);
    let checkpoint = py.detach(|| Checkpoint::load(path, &device))?;
    if let Some(model) = model {
        let (mut module, _) = module_of("load_checkpoint", model)?;
        let mut optimizer = optimizer.map(|optimizer| optimizer.get().handle());
        py.detach(|| {
            let optimizer = optimizer.as_mut().map(|optimizer| optimizer as &mut dyn Optimizer);
            checkpoint.load_into(&mut *module, optimizer)
        })?;
    }
    let info = checkpoint.info;
    if let Some(generator) = generator {
        let state = GeneratorState { seed: info.generator_seed, offset: info.generator_offset };
        generator.get().generator().set_state(state);
    }
    let found = PyDict::new(py);
    found.set_item("step", info.step)?;
    found.set_item("loss", info.loss)?;
    found.set_item("extra", object_of_json(py, &info.program)?)?;
    found.set_item("optimizer", Some(&info.optimizer).filter(|name| !name.is_empty()))?;
    found.set_item("parameters", dict_of(py, checkpoint.parameters)?)?;
    found.set_item("optimizer_state", dict_of(py, checkpoint.optimizer)?)?;
    Ok(found)
}
