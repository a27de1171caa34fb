//! The options of `selvedge tokenize`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use selvedge::nn::SplitPattern;

use super::EXIT_CODES;

const TOKENIZE_HELP: &str = "\
Each text is a document that ends with the tokenizer's end token. Special tokens in a text, such as <|endoftext|>, become their ids.
A byte-level tokenizer takes any bytes.

Files: llm.c's .bin with a header (the default), --format raw for nanoGPT's .bin of u16 without one, and .npy by its name. Ids have
two bytes if the vocabulary allows it. --shard N writes train_000000.bin, train_000001.bin, ... of N ids each.

--train makes a tokenizer instead: a byte-level BPE vocabulary of N ids, which encodes any text without loss.

Examples:
  selvedge tokenize book.txt --tokenizer gpt2/ --out train.bin
  selvedge tokenize --train --vocab 8192 *.txt --out tokenizer/
  selvedge tokenize *.txt --tokenizer tokenizer/ --out train.bin --shard 100000000";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{TOKENIZE_HELP}\n\n{EXIT_CODES}"))]
pub struct TokenizeOptions {
    /// The texts
    #[arg(value_name = "TEXT", required = true)]
    pub texts: Vec<PathBuf>,
    /// The folder of the tokenizer: tokenizer.json, or vocab.json and merges.txt
    #[arg(long, value_name = "FOLDER", required_unless_present = "train", conflicts_with = "train")]
    pub tokenizer: Option<PathBuf>,
    /// The file of ids, or with --train the folder of the new tokenizer
    #[arg(long, short, value_name = "PATH")]
    pub out: PathBuf,
    /// The format of the file [default: npy for a name that ends in .npy, else llmc]
    #[arg(long, value_enum, conflicts_with = "train")]
    pub format: Option<TokenFileFormat>,
    /// The dtype of an id [default: u16 if every id of the tokenizer fits, else u32]
    #[arg(long, value_enum, conflicts_with = "train")]
    pub dtype: Option<IdDType>,
    /// Ids of a file, of several [default: one file]
    #[arg(long, value_name = "N", conflicts_with = "train", value_parser = clap::value_parser!(u64).range(1..))]
    pub shard: Option<u64>,
    /// The token that ends a document [default: the tokenizer's, or <|endoftext|> with --train]
    #[arg(long, value_name = "TOKEN")]
    pub end: Option<String>,
    /// Train a tokenizer on the texts
    #[arg(long, requires = "vocab")]
    pub train: bool,
    /// Ids of the new tokenizer, 257 or more
    #[arg(long, value_name = "N", requires = "train")]
    pub vocab: Option<u64>,
    /// The pattern by which the new tokenizer splits a text into words [default: gpt2]
    #[arg(long, value_enum, requires = "train")]
    pub pattern: Option<WordPattern>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The format of a file of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TokenFileFormat {
    /// llm.c's, with a header
    Llmc,
    /// nanoGPT's, u16 without a header
    Raw,
    /// NumPy's
    Npy,
}

/// The dtype of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IdDType {
    /// Ids to 65535
    U16,
    /// All ids
    U32,
}

/// The pattern of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WordPattern {
    /// Words and numbers with the space before them
    Gpt2,
    /// Numbers of up to three digits
    Llama3,
    /// Numbers of one digit
    Qwen2,
}

impl From<WordPattern> for SplitPattern {
    fn from(pattern: WordPattern) -> SplitPattern {
        match pattern {
            WordPattern::Gpt2 => SplitPattern::Gpt2,
            WordPattern::Llama3 => SplitPattern::Llama3,
            WordPattern::Qwen2 => SplitPattern::Qwen2,
        }
    }
}
