//! `selvedge convert`: a published model in another dtype, and the result of a fine-tuning as a published folder.

use std::path::Path;

use selvedge::nn::{CheckpointList, Decoder, DecoderOptions, Module, Variable};
use selvedge::{DType, Device, Error, Tensor};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::model::{self, TOKENIZER_OF_RUN};
use crate::options::ConvertOptions;
use crate::output::{Progress, Report, Style, Table, bytes, grouped};
use crate::train::language_model::{ModelConfig, RunModel};
use crate::train::source;

pub fn convert(options: &ConvertOptions) -> Result<Report, Failure> {
    let (folder, out) = (options.folder.as_path(), options.out.as_path());
    check(folder, out, options.force)?;
    let progress = Progress::spinner("convert the model");
    let is_run = is_run(folder);
    if !is_run && (options.step.is_some() || options.merge) {
        let option = if options.merge { "--merge" } else { "--step" };
        let found = format!("{option} for {}", folder.display());
        return Err(refused(&found, "the folder of a run of `selvedge train`").into());
    }
    let Source { model, base, step } = match is_run {
        true => of_run(options)?,
        false => Source { model: of_folder(options)?, base: String::new(), step: Value::Null },
    };
    let parameters = model.parameters();
    let elements: u64 = parameters.iter().map(|x| x.shape().count() as u64).sum();
    let dtype = parameters.first().map_or(model.dtype(), Variable::dtype);
    let is_adapter = model.lora().is_some();
    match is_adapter {
        true => model.save_lora(out, &base)?,
        false => model.save(out)?,
    }
    let tokenizer = if is_run { folder.join(TOKENIZER_OF_RUN) } else { folder.into() };
    let copied = model::copy_tokenizer(&tokenizer, out)?;
    remove_shards(out)?;
    drop(progress);
    let size = elements.saturating_mul(dtype.size() as u64);
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row("folder", out.display().to_string());
    if let Some(step) = step.as_u64() {
        row("step", grouped(step));
    }
    let what = if is_adapter { "adapters" } else { "weights" };
    row(what, format!("{} of {dtype}, {}", grouped(elements), bytes(size)));
    row("copied", if copied.is_empty() { "no tokenizer".to_owned() } else { copied.join(", ") });
    let json = json!({
        "folder": out.display().to_string(),
        "step": step,
        "is_adapter": is_adapter,
        "dtype": dtype.to_string(),
        "parameters": elements,
        "bytes": size,
        "copied": copied,
    });
    Ok(Report { text: table.render(Style::of_stdout()), json })
}

/// A model to write.
struct Source {
    model: Decoder,
    /// The folder of the weights under adapters.
    base: String,
    /// The step of a run.
    step: Value,
}

fn refused(found: &str, wanted: &str) -> Error {
    Error::InvalidArgument { operation: "convert", found: found.to_owned(), wanted: wanted.to_owned() }
}

/// Returns whether a folder is that of a run.
fn is_run(folder: &Path) -> bool {
    !folder.join("config.json").exists()
        && CheckpointList::read(folder).is_ok_and(|list| list.latest().is_some())
}

/// Loads a published model, with adapters if they are given, in the dtype to write.
fn of_folder(options: &ConvertOptions) -> Result<Decoder, Failure> {
    let Some(dtype) = options.dtype.map(DType::from) else {
        let wanted = "--dtype f64, f32, f16 or bf16; a run of `selvedge train` has a default";
        return Err(refused("no --dtype", wanted).into());
    };
    let load = |dtype| {
        let decoder = DecoderOptions { dtype: Some(dtype), ..DecoderOptions::default() };
        Decoder::load(&options.folder, &Device::cpu(), &decoder)
    };
    let Some(lora) = &options.lora else { return Ok(load(dtype)?) };
    // The sums are rounded once.
    let mut model = load(if dtype == DType::F64 { dtype } else { DType::F32 })?;
    model.load_lora(lora)?;
    model.merge_lora()?;
    Ok(in_dtype(model, Some(dtype))?)
}

/// Loads the model of a run in the dtype to write.
fn of_run(options: &ConvertOptions) -> Result<Source, Failure> {
    let trained = source::trained(&options.folder, options.step, &Device::cpu())?;
    let (RunModel::Decoder(model), ModelConfig::Decoder(form)) = (trained.model, &trained.config) else {
        let found = format!("the run {}, whose model has new weights", options.folder.display());
        let wanted = "a run of `selvedge train --model FOLDER`; the model.safetensors of a checkpoint has GPT-2's names";
        return Err(refused(&found, wanted).into());
    };
    let step = trained.checkpoint.info.step.into();
    let base = trained.stored.model.unwrap_or_default();
    if let Some(lora) = &options.lora {
        let wanted = "a published model, or --merge for the run's own adapters";
        return Err(refused(&format!("--lora {} for a run", lora.display()), wanted).into());
    }
    let dtype = options.dtype.map(DType::from);
    let model = match (form.lora.is_some(), options.merge) {
        (false, true) => {
            return Err(
                refused("--merge for a run without adapters", "a run of `selvedge train --lora`").into()
            );
        }
        (true, false) if dtype.is_some() => {
            return Err(refused("--dtype for adapters, which stay f32", "--merge with it").into());
        }
        (true, true) => {
            // The run may compute with narrower weights.
            drop(model);
            let mut model = form.load(&base, DType::F32, 0, &Device::cpu())?;
            model.load_state_dict(&trained.checkpoint.parameters)?;
            model.merge_lora()?;
            in_dtype(model, dtype)?
        }
        (false, false) => in_dtype(*model, dtype)?,
        (true, false) => *model,
    };
    Ok(Source { model, base: base.display().to_string(), step })
}

/// Returns a model with its weights in another dtype.
fn in_dtype(model: Decoder, dtype: Option<DType>) -> Result<Decoder, Error> {
    let Some(dtype) = dtype.filter(|&dtype| dtype != model.dtype()) else { return Ok(model) };
    let cast = |(name, tensor): (String, Tensor)| Ok((name, tensor.cast(dtype)?));
    let state = model.state_dict().into_iter().map(cast).collect::<Result<_, Error>>()?;
    Decoder::from_checkpoint(&model.config().to_checkpoint(None), &state, &Device::cpu())
}

fn check(folder: &Path, out: &Path, force: bool) -> Result<(), Failure> {
    let refused = |found: &str, wanted: &str| {
        let (path, found, wanted) = (out.display().to_string(), found.to_owned(), wanted.to_owned());
        Err(Error::File { path, found, wanted }.into())
    };
    if !out.exists() {
        return Ok(());
    }
    if !out.is_dir() {
        return refused("a file", "the name of a new folder");
    }
    match (folder.canonicalize(), out.canonicalize()) {
        (Ok(folder), Ok(out)) if folder == out => refused("the model's own folder", "another folder"),
        _ if !force => refused("a folder that exists", "a new folder, or --force to write into it"),
        _ => Ok(()),
    }
}

/// Removes the shards of a model that was in the folder before, whose list the new weights took the place of.
fn remove_shards(out: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::failed(format!("old shards in {} stay: {error}", out.display()));
    for entry in std::fs::read_dir(out).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("model-") && name.ends_with(".safetensors") {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}
