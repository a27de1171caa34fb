//! The files of a tokenizer's folder.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};
use tokenizers::Tokenizer as HfTokenizer;

use super::tokenizer::{Borders, SubwordTokenizer};
use crate::error::{Error, Result};
use crate::io::npy::{file_error, open_regular, read_failure};
use std::io::Read;

/// The longest file that is read, in bytes: vocabularies of 256 thousand entries have about 30 MB.
const MAX_BYTES: u64 = 512 << 20;

const WANTED: &str = "tokenizer.json, or vocab.json and merges.txt";

impl SubwordTokenizer {
    /// Loads the tokenizer of a model's folder: `tokenizer.json`, or `vocab.json` with `merges.txt`. The names of the tokens at the
    /// beginning and the end of a text come from `tokenizer_config.json` and `special_tokens_map.json`, where they exist.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a folder without these files, one with SentencePiece's `tokenizer.model` alone, and a damaged file.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<SubwordTokenizer> {
        load(folder.as_ref())
    }
}

fn load(folder: &Path) -> Result<SubwordTokenizer> {
    let name = folder.display().to_string();
    if !folder.is_dir() {
        let found = if folder.exists() { "a file" } else { "no such folder" };
        return Err(file_error(&name, found, format!("a folder with {WANTED}")));
    }
    let has = |file: &str| folder.join(file).exists();
    let config = optional_json(folder, "tokenizer_config.json")?;
    let map = optional_json(folder, "special_tokens_map.json")?;
    let named = |key: &str| token_name(&config[key]).or_else(|| token_name(&map[key]));
    let mut borders = Borders { begin: named("bos_token"), end: named("eos_token") };
    let (file, text) = match (has("tokenizer.json"), has("vocab.json"), has("merges.txt")) {
        (true, ..) => ("tokenizer.json", read_text(&folder.join("tokenizer.json"))?),
        (false, true, true) => {
            let (text, is_gpt2) = from_vocab_and_merges(folder, &config, &map)?;
            if is_gpt2 && borders.end.is_none() {
                borders = Borders { begin: Some(END_OF_GPT2.to_owned()), end: Some(END_OF_GPT2.to_owned()) };
            }
            ("vocab.json", text)
        }
        (false, true, false) => return Err(file_error(&name, "vocab.json without merges.txt", WANTED)),
        (false, false, true) => return Err(file_error(&name, "merges.txt without vocab.json", WANTED)),
        (false, false, false) if has("tokenizer.model") => {
            let wanted = format!(
                "tokenizer.json; Python's transformers.AutoTokenizer.from_pretrained({name:?}).save_pretrained({name:?}) writes it"
            );
            return Err(file_error(&name, "tokenizer.model alone", wanted));
        }
        (false, false, false) => return Err(file_error(&name, "no file of a tokenizer", WANTED)),
    };
    let path = folder.join(file).display().to_string();
    let refused = |error: &dyn std::fmt::Display| file_error(&path, error, "a tokenizer of Hugging Face");
    let inner = HfTokenizer::from_bytes(&text).map_err(|error| refused(&error))?;
    SubwordTokenizer::new(inner, &text, &borders).map_err(|error| match error {
        Error::InvalidArgument { found, wanted, .. } => file_error(&path, found, wanted),
        other => other,
    })
}

/// The special token of GPT-2, whose files name none.
const END_OF_GPT2: &str = "<|endoftext|>";

/// Returns the text of a tokenizer.json of the older files, which are those of GPT-2 and its like, and whether the vocabulary has GPT-2's
/// special token.
fn from_vocab_and_merges(folder: &Path, config: &Value, map: &Value) -> Result<(String, bool)> {
    check_kind(folder, config)?;
    let vocab = required_json(&folder.join("vocab.json"))?;
    let Some(entries) = vocab.as_object() else {
        let path = folder.join("vocab.json").display().to_string();
        return Err(file_error(&path, "no object", "an object of tokens and their ids"));
    };
    let path = folder.join("merges.txt");
    let text = read_text(&path)?;
    let mut merges = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_end().is_empty() || line.starts_with("#version") {
            continue;
        }
        match line.trim_end().split_once(' ') {
            Some((left, right)) if !right.contains(' ') => merges.push(json!([left, right])),
            _ => {
                let found = format!("line {}, which is not two tokens", number + 1);
                return Err(file_error(&path.display().to_string(), found, "two tokens on each line"));
            }
        }
    }
    let is_gpt2 = entries.contains_key(END_OF_GPT2);
    let added = added_tokens(entries, is_gpt2, config, map);
    let prefix = config["add_prefix_space"].as_bool().unwrap_or(false);
    let byte_level =
        json!({ "type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": true });
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": byte_level,
        "post_processor": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true },
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": merges,
        },
    });
    Ok((tokenizer.to_string(), is_gpt2))
}

/// Refuses folders whose vocabulary belongs to another kind of tokenizer than GPT-2's, which splits texts in another way.
fn check_kind(folder: &Path, config: &Value) -> Result<()> {
    let wanted = "tokenizer.json, which transformers' save_pretrained writes; vocab.json and merges.txt are read as GPT-2's";
    let refuse =
        |file: &str, found: String| Err(file_error(&folder.join(file).display().to_string(), found, wanted));
    match config["tokenizer_class"].as_str() {
        None | Some("GPT2Tokenizer" | "GPT2TokenizerFast" | "PreTrainedTokenizerFast") => {}
        Some(other) => {
            return refuse(
                "tokenizer_config.json",
                format!("tokenizer_class {other} without tokenizer.json"),
            );
        }
    }
    if folder.join("added_tokens.json").exists() && config["added_tokens_decoder"].is_null() {
        return refuse("added_tokens.json", "tokens that no tokenizer_config.json describes".to_owned());
    }
    Ok(())
}

/// Returns the special tokens that the configurations name, with the ids of the vocabulary, and those of `added_tokens_decoder`.
fn added_tokens(vocab: &Map<String, Value>, is_gpt2: bool, config: &Value, map: &Value) -> Vec<Value> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for key in ["bos_token", "eos_token", "unk_token", "pad_token"] {
        names.extend([&config[key], &map[key]].into_iter().filter_map(token_name));
    }
    if is_gpt2 {
        names.insert(END_OF_GPT2.to_owned());
    }
    let mut added: Vec<Value> = Vec::new();
    for (id, token) in config["added_tokens_decoder"].as_object().into_iter().flatten() {
        let (Ok(id), Some(content)) = (id.parse::<u32>(), token["content"].as_str()) else { continue };
        names.remove(content);
        let flag = |key: &str, default: bool| token[key].as_bool().unwrap_or(default);
        added.push(json!({
            "id": id, "content": content, "single_word": flag("single_word", false), "lstrip": flag("lstrip", false),
            "rstrip": flag("rstrip", false), "normalized": flag("normalized", false), "special": flag("special", true),
        }));
    }
    for name in names {
        if let Some(id) = vocab.get(&name) {
            added.push(json!({
                "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true,
            }));
        }
    }
    added.sort_by_key(|token| token["id"].as_u64());
    added
}

/// Returns the text of a token in a configuration: a string, or an object with its content.
pub(in crate::nn::text) fn token_name(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value["content"].as_str()).map(str::to_owned)
}

/// Reads a file of text.
pub(in crate::nn::text) fn read_text(path: &Path) -> Result<String> {
    const KIND: &str = "tokenizer";
    let name = path.display().to_string();
    let (file, length) = open_regular(path, KIND)?;
    if length > MAX_BYTES {
        let found = format!("a file of {length} bytes");
        return Err(file_error(&name, found, format!("at most {MAX_BYTES} bytes")));
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).map_err(|error| read_failure(&name, KIND, &error))?;
    String::from_utf8(text).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        file_error(&name, format!("a byte at {position} that is not UTF-8"), "a file of UTF-8 text")
    })
}

fn required_json(path: &Path) -> Result<Value> {
    let damaged = |error: serde_json::Error| file_error(&path.display().to_string(), error, "a file of JSON");
    serde_json::from_str(&read_text(path)?).map_err(damaged)
}

/// Reads a file of JSON, or returns null if it does not exist.
pub(in crate::nn::text) fn optional_json(folder: &Path, file: &str) -> Result<Value> {
    let path = folder.join(file);
    if path.exists() { required_json(&path) } else { Ok(Value::Null) }
}
