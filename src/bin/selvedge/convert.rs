//! `selvedge convert`: a published model in another dtype, and the result of a fine-tuning as a published folder.

use std::path::Path;

use selvedge::nn::{CheckpointList, Decoder, DecoderOptions};
use selvedge::{DType, Device, Error};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::model::{self, TOKENIZER_OF_RUN};
use crate::options::ConvertOptions;
use crate::output::{Progress, Report, Style, Table, bytes, grouped};
use crate::train::language_model::RunModel;
use crate::train::source;

pub fn convert(options: &ConvertOptions) -> Result<Report, Failure> {
    let (folder, out) = (options.folder.as_path(), options.out.as_path());
    check(folder, out, options.force)?;
    let progress = Progress::spinner("convert the model");
    let is_run = is_run(folder);
    if options.step.is_some() && !is_run {
        let found = format!("--step for {}", folder.display());
        return Err(refused(&found, "the folder of a run of `selvedge train`").into());
    }
    let (model, step) = match is_run {
        true => of_run(options)?,
        false => (of_folder(options)?, Value::Null),
    };
    let dtype = model.dtype();
    model.save(out)?;
    let copied =
        model::copy_tokenizer(&if is_run { folder.join(TOKENIZER_OF_RUN) } else { folder.into() }, out)?;
    remove_shards(out)?;
    drop(progress);
    let elements = model.config().parameter_count() as u64;
    let size = elements.saturating_mul(dtype.size() as u64);
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row("folder", out.display().to_string());
    if let Some(step) = step.as_u64() {
        row("step", grouped(step));
    }
    row("weights", format!("{} of {dtype}, {}", grouped(elements), bytes(size)));
    row("copied", if copied.is_empty() { "no tokenizer".to_owned() } else { copied.join(", ") });
    let json = json!({
        "folder": out.display().to_string(),
        "step": step,
        "dtype": dtype.to_string(),
        "parameters": elements,
        "bytes": size,
        "copied": copied,
    });
    Ok(Report { text: table.render(Style::of_stdout()), json })
}

fn refused(found: &str, wanted: &str) -> Error {
    Error::InvalidArgument { operation: "convert", found: found.to_owned(), wanted: wanted.to_owned() }
}

/// Returns whether a folder is that of a run.
fn is_run(folder: &Path) -> bool {
    !folder.join("config.json").exists()
        && CheckpointList::read(folder).is_ok_and(|list| list.latest().is_some())
}

/// Loads a published model in the dtype to write.
fn of_folder(options: &ConvertOptions) -> Result<Decoder, Failure> {
    let Some(dtype) = options.dtype else {
        let wanted = "--dtype f64, f32, f16 or bf16; a run of `selvedge train` has a default";
        return Err(refused("no --dtype", wanted).into());
    };
    let decoder = DecoderOptions { dtype: Some(dtype.into()), ..DecoderOptions::default() };
    Ok(Decoder::load(&options.folder, &Device::cpu(), &decoder)?)
}

/// Loads the model of a run in the dtype to write, and its step.
fn of_run(options: &ConvertOptions) -> Result<(Decoder, Value), Failure> {
    let device = Device::cpu();
    let trained = source::trained(&options.folder, options.step, &device)?;
    let RunModel::Decoder(model) = trained.model else {
        let found = format!("the run {}, whose model has new weights", options.folder.display());
        let wanted = "a run of `selvedge train --model FOLDER`; the model.safetensors of a checkpoint has GPT-2's names";
        return Err(refused(&found, wanted).into());
    };
    let step = trained.checkpoint.info.step.into();
    let Some(dtype) = options.dtype.map(DType::from).filter(|&dtype| dtype != model.dtype()) else {
        return Ok((model, step));
    };
    let parameters = trained.checkpoint.parameters.into_iter();
    let narrowed = parameters.map(|(name, tensor)| Ok((name, tensor.cast(dtype)?)));
    let narrowed = narrowed.collect::<Result<_, Error>>()?;
    Ok((Decoder::from_checkpoint(&trained.checkpoint.info.model, &narrowed, &device)?, step))
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
