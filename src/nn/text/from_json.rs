//! [`tokenizer_from_json`], the tokenizers of checkpoints.

use serde_json::Value;

#[cfg(feature = "models")]
use super::subword;
use super::tokenizer::{BYTES, ByteTokenizer, CHARACTERS, CharTokenizer, Tokenizer};
use crate::error::{Error, Result};

/// Creates a tokenizer from the JSON of [`Tokenizer::to_json`], such as a checkpoint's.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for JSON of no tokenizer of this crate, and as [`CharTokenizer::from_vocabulary`].
pub fn tokenizer_from_json(json: &Value) -> Result<Box<dyn Tokenizer>> {
    match (json["kind"].as_str(), json["vocabulary"].as_str()) {
        (Some(BYTES), _) => Ok(Box::new(ByteTokenizer)),
        (Some(CHARACTERS), Some(vocabulary)) => {
            Ok(Box::new(CharTokenizer::from_vocabulary(vocabulary.chars())?))
        }
        #[cfg(feature = "models")]
        (Some(subword::SUBWORDS), _) => Ok(Box::new(subword::from_checkpoint(json)?)),
        #[cfg(not(feature = "models"))]
        (Some("subwords"), _) => {
            let wanted = "a build with the feature `models`, which has tokenizers of this kind";
            Err(Error::invalid("tokenizer_from_json", "a tokenizer of the kind subwords", wanted))
        }
        _ if json.is_null() => {
            let wanted = "the tokenizer of a run, such as one of `selvedge train --tokenizer`";
            Err(Error::invalid(
                "tokenizer_from_json",
                "no tokenizer, as of a run on token files alone",
                wanted,
            ))
        }
        _ => {
            let found: String = json.to_string().chars().take(80).collect();
            let wanted =
                format!("a kind, {BYTES}, {CHARACTERS} or subwords, and a vocabulary for {CHARACTERS}");
            Err(Error::invalid("tokenizer_from_json", found, wanted))
        }
    }
}
