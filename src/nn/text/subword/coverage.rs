//! [`Coverage`], the check that a vocabulary has every character of a text.
//!
//! A BPE model without a token for the unknown leaves out characters that its vocabulary lacks, in `tokenizers` and in
//! `transformers` without a word. A text whose ids are those of another text is an error here.

use tokenizers::models::bpe::BPE;
use tokenizers::{
    Model, ModelWrapper, OffsetReferential, OffsetType, PreTokenizer, Tokenizer as HfTokenizer,
};

use super::byte_level::{CHARACTERS, bytes_of};
use crate::error::{Error, Result};

/// A model that leaves out characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coverage {
    /// The characters of a pre-token stand for bytes.
    is_byte_level: bool,
}

pub(super) fn encode_failed(error: tokenizers::Error) -> Error {
    Error::invalid("encode", error, "a text that the tokenizer encodes")
}

impl Coverage {
    /// Returns the check of a tokenizer that may leave out characters, or none for one that has a token for all.
    pub(super) fn new(tokenizer: &HfTokenizer) -> Option<Coverage> {
        let ModelWrapper::BPE(model) = tokenizer.get_model() else { return None };
        let has_fallback = model.byte_fallback && (0..=255).all(|byte| has_byte(model, byte));
        if model.unk_token.is_some() || has_fallback {
            return None;
        }
        let steps = [
            serde_json::to_string(&tokenizer.get_pre_tokenizer()),
            serde_json::to_string(&tokenizer.get_normalizer()),
        ];
        let is_byte_level = steps.into_iter().flatten().any(|step| step.contains("\"ByteLevel\""));
        let is_known = |character: char| is_known(model, character, true, true);
        let has_all = is_byte_level && !has_affix(model) && CHARACTERS.into_iter().all(is_known);
        (!has_all).then_some(Coverage { is_byte_level })
    }

    /// Checks the pre-tokens of a text.
    ///
    /// # Errors
    ///
    /// As [`check_word`](Self::check_word).
    pub(super) fn check(self, tokenizer: &HfTokenizer, text: &str) -> Result<()> {
        let normalizer = tokenizer.get_normalizer();
        let mut pieces = tokenizer.get_added_vocabulary().extract_and_normalize(normalizer, text);
        if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(encode_failed)?;
        }
        let pieces = pieces.get_splits(OffsetReferential::Normalized, OffsetType::None);
        let words = pieces.into_iter().filter(|(_, _, tokens)| tokens.is_none());
        words.map(|(word, ..)| word).try_for_each(|word| self.check_word(tokenizer, word))
    }

    /// Checks a pre-token.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a character that the vocabulary lacks.
    pub(super) fn check_word(self, tokenizer: &HfTokenizer, word: &str) -> Result<()> {
        let ModelWrapper::BPE(model) = tokenizer.get_model() else { return Ok(()) };
        if model.ignore_merges && model.token_to_id(word).is_some() {
            return Ok(());
        }
        let count = word.chars().count();
        let is_known =
            |&(at, character): &(usize, char)| is_known(model, character, at == 0, at + 1 == count);
        let Some((at, character)) = word.chars().enumerate().find(|found| !is_known(found)) else {
            return Ok(());
        };
        let found = if self.is_byte_level {
            let bytes = bytes_of(word);
            let byte = bytes.get(at).copied().unwrap_or_default();
            match character_at(&bytes, at) {
                Some(whole) if whole.is_ascii() => format!("the character {whole:?}"),
                Some(whole) => format!("the byte 0x{byte:02x} of the character {whole:?}"),
                None => format!("the byte 0x{byte:02x}"),
            }
        } else {
            format!("the character {character:?}")
        };
        let wanted = "characters of the vocabulary, which has no token for unknown ones; model.unk_token of \
                      tokenizer.json names one";
        Err(Error::invalid("encode", format!("{found}, which the vocabulary lacks"), wanted))
    }
}

fn has_affix(model: &BPE) -> bool {
    let affixes = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
    affixes.into_iter().flatten().any(|affix| !affix.is_empty())
}

/// Returns whether the vocabulary has a character in its place of a word.
fn is_known(model: &BPE, character: char, is_first: bool, is_last: bool) -> bool {
    let mut token = String::new();
    let affix = |affix: &Option<String>| affix.clone().unwrap_or_default();
    if !is_first {
        token.push_str(&affix(&model.continuing_subword_prefix));
    }
    token.push(character);
    if is_last {
        token.push_str(&affix(&model.end_of_word_suffix));
    }
    model.token_to_id(&token).is_some()
        || (model.byte_fallback && token.bytes().all(|byte| has_byte(model, byte)))
}

fn has_byte(model: &BPE, byte: u8) -> bool {
    model.token_to_id(&format!("<0x{byte:02X}>")).is_some()
}

/// Returns the character whose UTF-8 has the byte at an index.
fn character_at(bytes: &[u8], at: usize) -> Option<char> {
    let start = (0..=at).rev().find(|&start| bytes.get(start).is_some_and(|byte| byte & 0xc0 != 0x80))?;
    bytes.get(start..)?.utf8_chunks().next()?.valid().chars().next()
}
