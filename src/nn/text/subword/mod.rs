//! [`SubwordTokenizer`], the tokenizers of published models.
//!
//! | file | contents |
//! |---|---|
//! | `tokenizer` | [`SubwordTokenizer`], by the crate `tokenizers` |
//! | `load` | the files of a folder |
//! | `splitter` | [`SplitPattern`], hand-written scanners in place of regular expressions |
//! | `coverage` | the check for characters that a vocabulary lacks |
//! | `encoder` | the encoding of byte-level tokenizers |
//! | `merges` | the merges of a word |
//! | `word_cache` | the ids of words that a thread has met |
//! | `byte_level` | bytes and their characters in byte-level vocabularies |
//! | `parallel` | the encoding of documents on several threads |
//! | `train` | [`BpeOptions`], training of a vocabulary on a text |
//!
//! Tests: `tests/nn/subword.rs`, against ids and texts of `tokenizers` 0.23.2 in Python.

mod byte_level;
mod coverage;
mod encoder;
mod load;
mod merges;
mod parallel;
mod splitter;
mod tokenizer;
mod train;
mod word_cache;

pub(super) use load::{optional_json, read_text, token_name};
pub use splitter::SplitPattern;
pub use tokenizer::SubwordTokenizer;
pub(super) use tokenizer::{SUBWORDS, from_checkpoint};
pub use train::BpeOptions;
