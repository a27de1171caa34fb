//! Training of a byte-level vocabulary.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::{Mutex, PoisonError};

use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern as HfPattern};
use tokenizers::{AddedToken, PreTokenizerWrapper, SplitDelimiterBehavior, Tokenizer as HfTokenizer};

use super::byte_level::CHARACTERS;
use super::parallel::{PART, lock};
use super::splitter::SplitPattern;
use super::tokenizer::{Borders, SubwordTokenizer};
use super::word_cache::WordHasher;
use crate::error::{Error, Result};
use crate::nn::text::tokenizer::Tokenizer;
use crate::threads;

/// The options of [`SubwordTokenizer::train`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpeOptions {
    /// The ids, of which 256 are the bytes and one ends a text. A short text gives fewer.
    pub vocab_size: usize,
    /// The occurrences that a pair of tokens needs to become one.
    pub min_count: u64,
    /// The split into pre-tokens, across which no token reaches.
    pub pattern: SplitPattern,
    /// The token that ends a text, which is no part of any.
    pub end_token: String,
}

impl Default for BpeOptions {
    fn default() -> BpeOptions {
        BpeOptions {
            vocab_size: 32_768,
            min_count: 2,
            pattern: SplitPattern::Gpt2,
            end_token: "<|endoftext|>".to_owned(),
        }
    }
}

type WordCounts<'a> = HashMap<&'a str, u64, BuildHasherDefault<WordHasher>>;

/// Counts the pre-tokens of texts on several threads. Bytes that are not UTF-8 are in none.
fn count_words<'a>(texts: &[&'a [u8]], pattern: SplitPattern) -> WordCounts<'a> {
    let parts = texts.iter().flat_map(|&text| {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (part, others) = rest.split_at_checked(pattern.cut(rest, PART))?;
            rest = others;
            (!part.is_empty()).then_some(part)
        })
    });
    let (parts, totals) = (Mutex::new(parts), Mutex::new(WordCounts::default()));
    threads::run_on_threads(threads::thread_count(), &|| {
        let mut counts = WordCounts::default();
        loop {
            // Not in the condition of a `while let`, which would hold the lock.
            let next = lock(&parts).next();
            let Some(part) = next else { break };
            for chunk in part.utf8_chunks() {
                pattern.split(chunk.valid()).for_each(|word| *counts.entry(word).or_default() += 1);
            }
        }
        let mut totals = lock(&totals);
        if totals.is_empty() {
            *totals = counts;
        } else {
            counts.into_iter().for_each(|(word, count)| *totals.entry(word).or_default() += count);
        }
    });
    totals.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The most ids: the trainer reserves memory for all.
const MAX_VOCABULARY: usize = 1 << 20;

impl SubwordTokenizer {
    /// Trains a byte-level BPE tokenizer on texts. It encodes every sequence of bytes without loss.
    ///
    /// The vocabulary is a function of the texts and the options alone. Bytes that are not UTF-8 are part of no merge.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for texts without a byte, for fewer than 257 or more than 2²⁰ ids, and for an empty end token.
    pub fn train<'a>(
        texts: impl IntoIterator<Item = &'a [u8]>,
        options: &BpeOptions,
    ) -> Result<SubwordTokenizer> {
        const OPERATION: &str = "SubwordTokenizer::train";
        let BpeOptions { vocab_size, min_count, pattern, end_token } = options;
        if !(257..=MAX_VOCABULARY).contains(vocab_size) {
            let found = format!("a vocabulary of {vocab_size} ids");
            return Err(Error::invalid(
                OPERATION,
                found,
                format!("257 (the bytes and the end token) to {MAX_VOCABULARY}"),
            ));
        }
        if end_token.is_empty() {
            return Err(Error::invalid(OPERATION, "an empty end token", "a token such as <|endoftext|>"));
        }
        let texts: Vec<&[u8]> = texts.into_iter().collect();
        let is_empty = texts.iter().all(|text| text.is_empty());
        let counts = count_words(&texts, *pattern);
        if is_empty {
            return Err(Error::invalid(OPERATION, "texts without a byte", "at least one text with a byte"));
        }
        let failed = |error| Error::invalid(OPERATION, error, "texts that a vocabulary can be trained on");
        let end = AddedToken::from(end_token.as_str(), true);
        let trainer = BpeTrainer::builder()
            .vocab_size(*vocab_size)
            .min_frequency(*min_count)
            .show_progress(false)
            .initial_alphabet(HashSet::from_iter(CHARACTERS.iter().copied()))
            .special_tokens(vec![end.clone()])
            .build();
        let characters =
            |word: &str| word.bytes().map(|byte| CHARACTERS[usize::from(byte)]).collect::<String>();
        let counts = counts.iter().map(|(word, &count)| (characters(word).into(), count)).collect();
        let mut model = BPE::default();
        trainer.do_train(&counts, &mut model).map_err(failed)?;
        let mut tokenizer = HfTokenizer::new(model);
        let bytes = |uses_regex| ByteLevel::new(false, true, uses_regex);
        let pre_tokenizer = match (pattern, pattern.regex()) {
            (SplitPattern::Gpt2, _) => PreTokenizerWrapper::ByteLevel(bytes(true)),
            (_, Some(regex)) => {
                let regex = HfPattern::Regex(regex.to_owned());
                let split = Split::new(regex, SplitDelimiterBehavior::Isolated, false).map_err(failed)?;
                let parts =
                    vec![PreTokenizerWrapper::Split(split), PreTokenizerWrapper::ByteLevel(bytes(false))];
                PreTokenizerWrapper::Sequence(Sequence::new(parts))
            }
            (_, None) => PreTokenizerWrapper::ByteLevel(bytes(false)),
        };
        tokenizer.with_pre_tokenizer(Some(pre_tokenizer)).with_decoder(Some(bytes(true)));
        tokenizer.add_special_tokens([end]).map_err(failed)?;
        let name = Some(end_token.clone());
        let json = tokenizer.to_string(false).map_err(failed)?;
        SubwordTokenizer::new(tokenizer, &json, &Borders { begin: name.clone(), end: name })
    }

    /// Writes `tokenizer.json` and `tokenizer_config.json` into a folder, which is created if it does not exist. Hugging Face's
    /// `tokenizers` and `transformers` read them.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`] for a folder that cannot be created or written.
    pub fn save(&self, folder: impl AsRef<std::path::Path>) -> Result<()> {
        let folder = folder.as_ref();
        std::fs::create_dir_all(folder).map_err(|error| {
            crate::io::new_file::write_error(folder, &error, "a folder that can be created")
        })?;
        let name = |id: Option<u32>| id.and_then(|id| self.token(id));
        let (begin, end) = (name(self.begin_id()), name(self.end_id()));
        let config = serde_json::json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": false,
            "bos_token": begin,
            "eos_token": end,
        });
        crate::io::write_file(folder.join("tokenizer.json"), self.to_tokenizer_json()?.as_bytes())?;
        crate::io::write_file(folder.join("tokenizer_config.json"), format!("{config:#}\n").as_bytes())
    }
}
