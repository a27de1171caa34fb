//! `selvedge convert`: the folder of a published model in another dtype.

use std::path::Path;

use selvedge::nn::{Decoder, DecoderOptions};
use selvedge::{Device, Error};
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::options::ConvertOptions;
use crate::output::{Progress, Report, Style, Table, bytes, grouped};

/// The files beside the weights and their configuration.
const COPIED: [&str; 8] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
];

pub fn convert(options: &ConvertOptions) -> Result<Report, Failure> {
    let (folder, out) = (options.folder.as_path(), options.out.as_path());
    check(folder, out, options.force)?;
    let progress = Progress::spinner("convert the model");
    let dtype = options.dtype.into();
    let decoder = DecoderOptions { dtype: Some(dtype), ..DecoderOptions::default() };
    let model = Decoder::load(folder, &Device::cpu(), &decoder)?;
    model.save(out)?;
    let mut copied = Vec::new();
    for name in COPIED {
        let path = folder.join(name);
        if path.is_file() {
            files::write(&out.join(name), files::read(&path, "a file of a tokenizer")?)?;
            copied.push(name);
        }
    }
    remove_shards(out)?;
    drop(progress);
    let elements = model.config().parameter_count() as u64;
    let size = elements.saturating_mul(dtype.size() as u64);
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row("folder", out.display().to_string());
    row("weights", format!("{} of {dtype}, {}", grouped(elements), bytes(size)));
    row("copied", if copied.is_empty() { "no tokenizer".to_owned() } else { copied.join(", ") });
    let json = json!({
        "folder": out.display().to_string(),
        "dtype": dtype.to_string(),
        "parameters": elements,
        "bytes": size,
        "copied": copied,
    });
    Ok(Report { text: table.render(Style::of_stdout()), json })
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
