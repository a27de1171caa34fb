//! Text for language models: tokenizers and batches.
//!
//! | file | contents |
//! |---|---|
//! | `tokenizer` | [`Tokenizer`], [`CharTokenizer`], [`ByteTokenizer`] |
//! | `from_json` | [`tokenizer_from_json`], the tokenizers of checkpoints |
//! | `subword` | `SubwordTokenizer`, the tokenizers of published models (feature `models`) |
//! | `chat_template` | `ChatTemplate`, the text of a conversation (feature `models`) |
//! | `stream` | [`StreamDecoder`], the text of ids as they come |
//! | `stop` | [`StopFilter`], the text before a stop string |
//! | `text_file` | [`TextFile`], a text in memory or mapped from its file, with its hash |
//! | `data` | [`TokenizedText`], ids split into training and validation |
//! | `token_files` | [`TokenFiles`], ids in the files of llm.c, nanoGPT and NumPy, and [`TokenWriter`] |
//! | `batches` | [`Batches`], windows of a text at random positions or in a shuffled order |
//!
//! Invariant: a batch is a function of the text, its split, the sizes, the seed and the batch's number. A run that resumes
//! needs the number alone.
//!
//! Tests: `tests/nn/text.rs`, `tests/nn/subword.rs`, `tests/nn/token_files.rs`, `tests/nn/chat_template.rs`.

mod batches;
#[cfg(feature = "models")]
mod chat_template;
mod data;
mod from_json;
mod stop;
mod stream;
#[cfg(feature = "models")]
mod subword;
mod text_file;
mod token_files;
mod tokenizer;

pub use batches::{Batch, Batches};
#[cfg(feature = "models")]
pub use chat_template::{ChatMessage, ChatTemplate};
pub use data::{Split, TokenizedText};
pub use from_json::tokenizer_from_json;
pub use stop::StopFilter;
pub use stream::StreamDecoder;
#[cfg(feature = "models")]
pub use subword::{BpeOptions, SplitPattern, SubwordTokenizer};
pub use text_file::TextFile;
pub use token_files::{TokenFiles, TokenFormat, TokenWriter};
pub use tokenizer::{ByteTokenizer, CharTokenizer, Tokenizer};
