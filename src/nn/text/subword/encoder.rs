//! [`ByteLevelEncoder`], the encoding of a byte-level tokenizer without the alignment of ids with the text.
//!
//! `tokenizers` keeps the place of every byte in the original text through each step, which is most of its time. Ids alone do not
//! need places: pre-tokens of the scanner are looked up in a cache of the call, and only new ones go to the model. Added tokens, and
//! the normalizer where a text is not ASCII, run through `tokenizers`, in the chunk that has them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use aho_corasick::AhoCorasick;
use serde_json::Value;
use tokenizers::{Model, ModelWrapper, OffsetReferential, OffsetType, Tokenizer as HfTokenizer};

use super::byte_level::CHARACTERS;
use super::splitter::SplitPattern;

/// The bytes of a chunk, about.
const CHUNK: usize = 1 << 15;
/// The longest pre-token that the cache has, in bytes.
const MAX_CACHED: usize = 48;
/// The pre-tokens that the cache has at most.
const MAX_WORDS: usize = 1 << 17;

/// The options of a byte-level tokenizer whose encoding needs no general path.
pub(super) struct ByteLevelEncoder {
    pattern: SplitPattern,
    /// Finds the added tokens; none if there are none.
    added: Option<AhoCorasick>,
    /// True if a text may be cut before a word. An added token that holds or takes white space forbids it.
    can_cut: bool,
    has_normalizer: bool,
}

/// The ids of pre-tokens that were met.
#[derive(Default)]
pub(super) struct WordCache {
    words: HashMap<Box<str>, (u32, u32), BuildHasherDefault<WordHasher>>,
    ids: Vec<u32>,
    /// The characters of a pre-token.
    characters: String,
}

/// A multiplicative hash: words of a text are short, and their cache is no target.
#[derive(Default)]
struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let mixed =
                (self.0.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
            self.0 = mixed ^ (mixed >> 32);
        }
    }
}

impl ByteLevelEncoder {
    /// Returns the encoder of a tokenizer, or none for one that needs the general path.
    pub(super) fn new(tokenizer: &HfTokenizer) -> Option<ByteLevelEncoder> {
        let ModelWrapper::BPE(model) = tokenizer.get_model() else { return None };
        let pattern = pattern_of(&serde_json::to_value(tokenizer.get_pre_tokenizer()).ok()?)?;
        let normalizer = serde_json::to_value(tokenizer.get_normalizer()).ok()?;
        // NFC leaves ASCII as it is, so most text needs no normalizer.
        if model.dropout.is_some() || !(normalizer.is_null() || normalizer["type"] == "NFC") {
            return None;
        }
        let added: Vec<_> = tokenizer.get_added_tokens_decoder().into_values().collect();
        let can_cut = !added.iter().any(|token| token.rstrip || token.content.contains(char::is_whitespace));
        let contents = added.iter().map(|token| token.content.as_str()).filter(|content| !content.is_empty());
        let added = if added.is_empty() { None } else { Some(AhoCorasick::new(contents).ok()?) };
        Some(ByteLevelEncoder { pattern, added, can_cut, has_normalizer: !normalizer.is_null() })
    }

    /// Appends the ids of a text.
    pub(super) fn encode(
        &self,
        tokenizer: &HfTokenizer,
        text: &str,
        cache: &mut WordCache,
        ids: &mut Vec<u32>,
    ) -> tokenizers::Result<()> {
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

    /// Returns the end of a part of about `wanted` bytes whose ids do not depend on the rest of the text: before a space between
    /// a visible ASCII character and an ASCII letter, where every pattern begins a pre-token.
    pub(super) fn cut(&self, text: &[u8], wanted: usize) -> usize {
        if !self.can_cut || self.pattern == SplitPattern::Whole || text.len() <= wanted {
            return text.len();
        }
        let start = wanted.saturating_sub(1);
        let bytes = text.get(start..).unwrap_or_default();
        let is_cut = |window: &[u8]| matches!(window, [before, b' ', after] if before.is_ascii_graphic() && after.is_ascii_alphabetic());
        bytes.windows(3).position(is_cut).map_or(text.len(), |at| start + at + 1)
    }

    fn encode_words(
        &self,
        tokenizer: &HfTokenizer,
        text: &str,
        cache: &mut WordCache,
        ids: &mut Vec<u32>,
    ) -> tokenizers::Result<()> {
        for word in self.pattern.split(text) {
            if let Some(&(start, end)) = cache.words.get(word) {
                ids.extend_from_slice(&cache.ids[start as usize..end as usize]);
                continue;
            }
            cache.characters.clear();
            cache.characters.extend(word.bytes().map(|byte| CHARACTERS[usize::from(byte)]));
            let first = ids.len();
            ids.extend(tokenizer.get_model().tokenize(&cache.characters)?.iter().map(|token| token.id));
            if word.len() <= MAX_CACHED {
                if cache.words.len() >= MAX_WORDS {
                    cache.words.clear();
                    cache.ids.clear();
                }
                // At most MAX_WORDS words of MAX_CACHED ids.
                let start = cache.ids.len() as u32;
                cache.ids.extend_from_slice(&ids[first..]);
                cache.words.insert(word.into(), (start, cache.ids.len() as u32));
            }
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
