//! [`ByteLevelEncoder`], the encoding of a byte-level tokenizer without the alignment of ids with the text.
//!
//! `tokenizers` keeps the offset of every byte in the original text through each step, which is most of its time. Ids alone do not
//! need offsets: pre-tokens of the scanner are looked up in the thread's cache, and only new ones are merged. Added tokens, and the
//! normalizer where a text is not ASCII, run through `tokenizers`, in the chunk that has them.

use aho_corasick::AhoCorasick;
use serde_json::Value;
use tokenizers::{Model, ModelWrapper, OffsetReferential, OffsetType, Tokenizer as HfTokenizer};

use super::byte_level::CHARACTERS;
use super::coverage::{Coverage, encode_failed};
use super::merges::MergeTable;
use super::splitter::SplitPattern;
use super::word_cache::WordCache;
use crate::error::Result;

/// The bytes of a chunk, about.
const CHUNK: usize = 1 << 15;

/// The options of a byte-level tokenizer whose encoding needs no general path.
pub(super) struct ByteLevelEncoder {
    pattern: SplitPattern,
    /// Finds the added tokens; none if there are none.
    added: Option<AhoCorasick>,
    /// True if a text may be cut before a word. An added token that holds or takes white space forbids it.
    can_cut: bool,
    has_normalizer: bool,
    merges: MergeTable,
    /// True if a word of the vocabulary becomes its id without merges.
    ignores_merges: bool,
    coverage: Option<Coverage>,
}

impl ByteLevelEncoder {
    /// Returns the encoder of a tokenizer and the text of its tokenizer.json, or none for one that needs the general path.
    pub(super) fn new(
        tokenizer: &HfTokenizer,
        json: &str,
        coverage: Option<Coverage>,
    ) -> Option<ByteLevelEncoder> {
        let ModelWrapper::BPE(model) = tokenizer.get_model() else { return None };
        let pattern = pattern_of(&serde_json::to_value(tokenizer.get_pre_tokenizer()).ok()?)?;
        let normalizer = serde_json::to_value(tokenizer.get_normalizer()).ok()?;
        // NFC leaves ASCII as it is, so most text needs no normalizer.
        if !(normalizer.is_null() || normalizer["type"] == "NFC") {
            return None;
        }
        let added: Vec<_> = tokenizer.get_added_tokens_decoder().into_values().collect();
        let can_cut = !added.iter().any(|token| token.rstrip || token.content.contains(char::is_whitespace));
        let contents = added.iter().map(|token| token.content.as_str()).filter(|content| !content.is_empty());
        let added = if added.is_empty() { None } else { Some(AhoCorasick::new(contents).ok()?) };
        Some(ByteLevelEncoder {
            pattern,
            added,
            can_cut,
            has_normalizer: !normalizer.is_null(),
            merges: MergeTable::new(model, json)?,
            ignores_merges: model.ignore_merges,
            coverage,
        })
    }

    /// Appends the ids of a text.
    pub(super) fn encode(
        &self,
        tokenizer: &HfTokenizer,
        text: &str,
        cache: &mut WordCache,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let (chunk, others) = rest.split_at(self.cut(rest.as_bytes(), CHUNK));
            rest = others;
            let is_plain = !self.has_normalizer || chunk.is_ascii();
            if is_plain && self.added.as_ref().is_none_or(|added| !added.is_match(chunk)) {
                self.encode_words(tokenizer, chunk, cache, ids)?;
                continue;
            }
            let normalizer = tokenizer.get_normalizer();
            let pieces = tokenizer.get_added_vocabulary().extract_and_normalize(normalizer, chunk);
            for (piece, _, tokens) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::None) {
                match tokens {
                    Some(tokens) => ids.extend(tokens.iter().map(|token| token.id)),
                    None => self.encode_words(tokenizer, piece, cache, ids)?,
                }
            }
        }
        Ok(())
    }

    /// Returns the end of a part of about `wanted` bytes whose ids do not depend on the rest of the text.
    pub(super) fn cut(&self, text: &[u8], wanted: usize) -> usize {
        if self.can_cut { self.pattern.cut(text, wanted) } else { text.len() }
    }

    fn encode_words(
        &self,
        tokenizer: &HfTokenizer,
        text: &str,
        cache: &mut WordCache,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let mut end = 0;
        for word in self.pattern.split(text) {
            let start = end;
            end += word.len();
            if cache.get(text.as_bytes(), start, end, ids) {
                continue;
            }
            let first = ids.len();
            self.encode_word(tokenizer, word, ids)?;
            cache.insert(text.as_bytes(), start, end, &ids[first..]);
        }
        Ok(())
    }

    fn encode_word(&self, tokenizer: &HfTokenizer, word: &str, ids: &mut Vec<u32>) -> Result<()> {
        let characters = || word.bytes().map(|byte| CHARACTERS[usize::from(byte)]).collect::<String>();
        if self.ignores_merges
            && let Some(id) = tokenizer.get_model().token_to_id(&characters())
        {
            ids.push(id);
        } else if !self.merges.encode(word.as_bytes(), ids) {
            let characters = characters();
            self.coverage.map_or(Ok(()), |coverage| coverage.check_word(tokenizer, &characters))?;
            let tokens = tokenizer.get_model().tokenize(&characters).map_err(encode_failed)?;
            ids.extend(tokens.iter().map(|token| token.id));
        }
        Ok(())
    }
}

/// Returns the pattern of a pre-tokenizer, or none for one that the scanner does not replace.
fn pattern_of(pre_tokenizer: &Value) -> Option<SplitPattern> {
    let is_byte_level = |value: &Value, uses_regex: bool| {
        value["type"] == "ByteLevel"
            && value["add_prefix_space"] == false
            && value["use_regex"].as_bool().unwrap_or(true) == uses_regex
    };
    if is_byte_level(pre_tokenizer, true) {
        return Some(SplitPattern::Gpt2);
    }
    if is_byte_level(pre_tokenizer, false) {
        return Some(SplitPattern::Whole);
    }
    let parts = pre_tokenizer["pretokenizers"].as_array()?;
    match parts.as_slice() {
        [split, bytes] if split["type"] == "Split" && is_byte_level(bytes, false) => {
            let is_isolated = split["behavior"] == "Isolated" && split["invert"] == false;
            SplitPattern::of_regex(split["pattern"]["Regex"].as_str()?).filter(|_| is_isolated)
        }
        _ => None,
    }
}
