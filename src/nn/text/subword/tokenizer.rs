//! [`SubwordTokenizer`].

use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tokenizers::{Encoding, Token, Tokenizer as HfTokenizer};

use super::byte_level::{ByteTable, CHARACTERS};
use super::coverage::{Coverage, encode_failed};
use super::encoder::ByteLevelEncoder;
use super::word_cache::WordCache;
use crate::error::{Error, Result};
use crate::nn::text::tokenizer::{Tokenizer, location, unknown_id};

const OPERATION: &str = "SubwordTokenizer";
/// The kind in the JSON of [`Tokenizer::to_json`].
pub(in crate::nn::text) const SUBWORDS: &str = "subwords";

/// A tokenizer in the format of Hugging Face, such as GPT-2's or Llama's.
///
/// [`encode`](Tokenizer::encode) finds special tokens in a text and adds none; [`encode_prompt`](Self::encode_prompt) adds those of the tokenizer's
/// template, such as the beginning of a text.
///
/// A byte-level tokenizer encodes any bytes: those that are not UTF-8 become the tokens of single bytes. Other tokenizers refuse
/// them.
///
/// ```
/// use selvedge::nn::{BpeOptions, SubwordTokenizer, Tokenizer};
/// let text = "it was the best of times, it was the worst of times";
/// let tokenizer = SubwordTokenizer::train([text.as_bytes()], &BpeOptions { vocab_size: 270, ..BpeOptions::default() })?;
/// let ids = tokenizer.encode(text)?;
/// assert!(ids.len() < text.len());
/// assert_eq!(tokenizer.decode(&ids)?, text);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct SubwordTokenizer {
    inner: HfTokenizer,
    vocab_size: usize,
    begin: Option<u32>,
    end: Option<u32>,
    special: Vec<u32>,
    /// Tokens `<0x00>` to `<0xFF>`, whose text depends on those beside them.
    byte_tokens: Vec<u32>,
    /// Of a byte-level tokenizer.
    bytes: Option<ByteTable>,
    encoder: Option<ByteLevelEncoder>,
    /// Of a model that may leave out characters.
    coverage: Option<Coverage>,
    /// The word caches that no thread uses.
    caches: Mutex<Vec<WordCache>>,
}

/// Names of the tokens at the beginning and the end of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Borders {
    pub begin: Option<String>,
    pub end: Option<String>,
}

impl SubwordTokenizer {
    /// Creates the tokenizer of the text of a `tokenizer.json`. [`with_end_token`](Self::with_end_token) names the end of a text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a text that is no tokenizer.
    pub fn from_json(text: &str) -> Result<SubwordTokenizer> {
        let wanted = "the text of a tokenizer.json";
        let inner =
            HfTokenizer::from_bytes(text).map_err(|error| Error::invalid(OPERATION, error, wanted))?;
        SubwordTokenizer::new(inner, text, &Borders::default())
    }

    /// Creates the tokenizer of `inner`, which was read from or would be written as the text `json`.
    pub(super) fn new(mut inner: HfTokenizer, json: &str, borders: &Borders) -> Result<SubwordTokenizer> {
        let failed = |error| Error::invalid(OPERATION, error, "a tokenizer");
        // Lengths are the caller's, and change no text here.
        inner.with_padding(None).with_truncation(None).map_err(failed)?;
        let vocabulary = inner.get_vocab(true);
        let vocab_size = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
        if vocab_size == 0 || vocab_size > MAX_VOCABULARY {
            let found = format!("a vocabulary of {vocab_size} ids");
            return Err(Error::invalid(OPERATION, found, format!("1 to {MAX_VOCABULARY} ids")));
        }
        let added = inner.get_added_tokens_decoder();
        let mut special: Vec<u32> =
            added.iter().filter(|(_, token)| token.special).map(|(&id, _)| id).collect();
        special.sort_unstable();
        let decoder = serde_json::to_value(inner.get_decoder()).unwrap_or_default();
        let is_byte_level = decoder["type"] == "ByteLevel";
        let has_fallback = decoder["decoders"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["type"] == "ByteFallback"));
        let mut byte_tokens = Vec::new();
        if has_fallback {
            byte_tokens.extend((0..=255u8).filter_map(|byte| inner.token_to_id(&format!("<0x{byte:02X}>"))));
            byte_tokens.sort_unstable();
        }
        let bytes =
            is_byte_level.then(|| ByteTable::new((0..vocab_size as u32).map(|id| inner.id_to_token(id))));
        let coverage = Coverage::new(&inner);
        let encoder = if is_byte_level { ByteLevelEncoder::new(&inner, json, coverage) } else { None };
        let id = |name: &Option<String>| name.as_ref().and_then(|name| inner.token_to_id(name));
        let (begin, end) = (id(&borders.begin), id(&borders.end));
        let caches = Mutex::default();
        Ok(SubwordTokenizer {
            inner,
            vocab_size,
            begin,
            end,
            special,
            byte_tokens,
            bytes,
            encoder,
            coverage,
            caches,
        })
    }

    /// Sets the token that ends a text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a token that the vocabulary lacks.
    pub fn with_end_token(mut self, token: &str) -> Result<SubwordTokenizer> {
        self.end = Some(self.token_id(token)?);
        Ok(self)
    }

    /// Returns the id of a token as the vocabulary spells it, such as `<|endoftext|>`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a token that the vocabulary lacks.
    pub fn token_id(&self, token: &str) -> Result<u32> {
        let missing = || {
            let special: Vec<String> =
                self.special.iter().take(8).filter_map(|&id| self.inner.id_to_token(id)).collect();
            let wanted = format!("a token of the vocabulary; its special tokens are {}", special.join(" "));
            Error::invalid(OPERATION, format!("the token {token}"), wanted)
        };
        self.inner.token_to_id(token).ok_or_else(missing)
    }

    /// Returns the text of an id as the vocabulary spells it, or none for an id without a token.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Returns the id of the beginning of a text, if the tokenizer names one.
    pub fn begin_id(&self) -> Option<u32> {
        self.begin
    }

    /// Returns the ids of a text with the special tokens of the tokenizer's template around them.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>> {
        let tokens = self.encode(text)?.into_iter().map(|id| Token::new(id, String::new(), (0, 0)));
        let encoding = Encoding::from_tokens(tokens.collect(), 0);
        let encoding = self.inner.post_process(encoding, None, true);
        Ok(encoding
            .map_err(|error| Error::invalid("encode_prompt", error, "a template that applies"))?
            .get_ids()
            .to_vec())
    }

    /// Returns the text of ids without the special tokens among them.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::decode`].
    pub fn decode_skipping_special(&self, ids: &[u32]) -> Result<String> {
        self.check(ids)?;
        let ids: Vec<u32> = ids.iter().copied().filter(|&id| !self.is_special(id)).collect();
        self.decode(&ids)
    }

    /// Returns the text of a `tokenizer.json` of this tokenizer, which `tokenizers` reads.
    pub fn to_tokenizer_json(&self) -> Result<String> {
        let text = self.inner.to_string(true);
        text.map_err(|error| Error::invalid(OPERATION, error, "a tokenizer that can be written"))
    }

    /// Returns the length in bytes of a part of about `wanted` bytes at the start of a text whose ids do not depend on the rest, so
    /// that parts can be encoded at the same time. It is the whole length for a tokenizer that cannot tell, and in a text without words.
    pub(super) fn part_len(&self, text: &[u8], wanted: usize) -> usize {
        let Some(encoder) = self.encoder.as_ref() else { return text.len() };
        // Bytes that are not UTF-8 are borders of parts anyway, and ASCII is found without decoding.
        encoder.cut(text, wanted)
    }

    fn check(&self, ids: &[u32]) -> Result<()> {
        let known = |id: u32| match &self.bytes {
            Some(table) => table.get(id).is_some(),
            None => self.inner.id_to_token(id).is_some(),
        };
        match ids.iter().position(|&id| !known(id)) {
            Some(position) => Err(unknown_id(OPERATION, ids[position], position, self.vocab_size)),
            None => Ok(()),
        }
    }

    /// Runs `work` with a word cache that no other thread uses meanwhile.
    pub(super) fn with_cache<R>(&self, work: impl FnOnce(&mut WordCache) -> R) -> R {
        let caches = || self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cache = caches().pop().unwrap_or_default();
        let result = work(&mut cache);
        caches().push(cache);
        result
    }

    pub(super) fn encode_with(&self, text: &[u8], cache: &mut WordCache) -> Result<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        // Checks whole words of ASCII, which the search for borders of UTF-8 does not.
        if let Ok(text) = std::str::from_utf8(text) {
            self.encode_text(text, cache, &mut ids)?;
            return Ok(ids);
        }
        let mut position = 0;
        for chunk in text.utf8_chunks() {
            self.encode_text(chunk.valid(), cache, &mut ids)?;
            position += chunk.valid().len();
            for &byte in chunk.invalid() {
                ids.push(self.byte_id(byte, text, position)?);
                position += 1;
            }
        }
        Ok(ids)
    }

    /// Appends the ids of a text of UTF-8.
    fn encode_text(&self, text: &str, cache: &mut WordCache, ids: &mut Vec<u32>) -> Result<()> {
        match &self.encoder {
            Some(encoder) => encoder.encode(&self.inner, text, cache, ids),
            None => {
                self.coverage.map_or(Ok(()), |coverage| coverage.check(&self.inner, text))?;
                ids.extend(self.inner.encode_fast(text, false).map_err(encode_failed)?.get_ids());
                Ok(())
            }
        }
    }

    /// Returns the id of a byte in a byte-level tokenizer.
    fn byte_id(&self, byte: u8, text: &[u8], position: usize) -> Result<u32> {
        let id = match &self.bytes {
            Some(_) => self.inner.token_to_id(CHARACTERS[usize::from(byte)].encode_utf8(&mut [0; 4])),
            None => None,
        };
        id.ok_or_else(|| {
            let found = format!("the byte 0x{byte:02x} at {}, which is not UTF-8", location(text, position));
            Error::invalid("encode", found, "a UTF-8 text, or a byte-level tokenizer with all 256 bytes")
        })
    }
}

/// The most ids of a vocabulary: a damaged file must not ask for all memory.
const MAX_VOCABULARY: usize = 1 << 24;

impl Tokenizer for SubwordTokenizer {
    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn encode_bytes(&self, text: &[u8]) -> Result<Vec<u32>> {
        self.with_cache(|cache| self.encode_with(text, cache))
    }

    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let Some(table) = &self.bytes else {
            self.check(ids)?;
            let text = self.inner.decode(ids, false);
            return Ok(text.map_err(|error| Error::invalid("decode", error, "ids of a text"))?.into_bytes());
        };
        let mut bytes = Vec::with_capacity(ids.len().saturating_mul(4));
        for (position, &id) in ids.iter().enumerate() {
            let unknown = || unknown_id(OPERATION, id, position, self.vocab_size);
            bytes.extend_from_slice(table.get(id).ok_or_else(unknown)?);
        }
        Ok(bytes)
    }

    fn to_json(&self) -> Value {
        let name = |id: Option<u32>| id.and_then(|id| self.token(id));
        let tokenizer = serde_json::to_value(&self.inner).unwrap_or_default();
        json!({ "kind": SUBWORDS, "tokenizer": tokenizer, "begin": name(self.begin), "end": name(self.end) })
    }

    fn end_id(&self) -> Option<u32> {
        self.end
    }

    fn is_special(&self, id: u32) -> bool {
        self.special.binary_search(&id).is_ok()
    }

    fn depends_on_next(&self, id: u32) -> bool {
        self.byte_tokens.binary_search(&id).is_ok()
    }
}

/// Reads the JSON of [`Tokenizer::to_json`].
pub(in crate::nn::text) fn from_checkpoint(json: &Value) -> Result<SubwordTokenizer> {
    let wanted = "the JSON of SubwordTokenizer::to_json";
    let text = json["tokenizer"].to_string();
    let inner = HfTokenizer::from_bytes(&text).map_err(|error| Error::invalid(OPERATION, error, wanted))?;
    let name = |key: &str| json[key].as_str().map(str::to_owned);
    SubwordTokenizer::new(inner, &text, &Borders { begin: name("begin"), end: name("end") })
}

impl fmt::Debug for SubwordTokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SubwordTokenizer({} ids)", self.vocab_size)
    }
}
