//! [`Tokenizer`], [`CharTokenizer`] and [`ByteTokenizer`].

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// A two-way map between texts and token ids.
pub trait Tokenizer: fmt::Debug + Send + Sync {
    /// Returns the number of ids. Ids are 0 to that number less 1.
    fn vocab_size(&self) -> usize;

    /// Returns the ids of a text's bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the position for bytes that the tokenizer does not encode.
    fn encode_bytes(&self, text: &[u8]) -> Result<Vec<u32>>;

    /// Returns the bytes of ids.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the position for an id that is not below the vocabulary's size.
    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>>;

    /// Returns the tokenizer as JSON, which [`tokenizer_from_json`](super::tokenizer_from_json) reads.
    fn to_json(&self) -> Value;

    /// Returns the ids of a text.
    ///
    /// # Errors
    ///
    /// As [`encode_bytes`](Self::encode_bytes).
    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_bytes(text.as_bytes())
    }

    /// Returns the text of ids. Bytes that are not UTF-8 become U+FFFD; [`decode_bytes`](Self::decode_bytes) keeps them.
    ///
    /// # Errors
    ///
    /// As [`decode_bytes`](Self::decode_bytes).
    fn decode(&self, ids: &[u32]) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.decode_bytes(ids)?).into_owned())
    }

    /// Returns whether the ids of a text are its bytes, so that a mapped text is read in place.
    fn has_byte_ids(&self) -> bool {
        false
    }

    /// Returns the id that ends a text, or none for a tokenizer without one.
    fn end_id(&self) -> Option<u32> {
        None
    }

    /// Returns whether an id is a special token: a mark of the text's structure that is no part of the text.
    fn is_special(&self, _id: u32) -> bool {
        false
    }

    /// Returns whether the text of an id may change with the next id. [`StreamDecoder`](super::StreamDecoder) waits for it.
    fn depends_on_next(&self, _id: u32) -> bool {
        false
    }
}

/// Bytes as ids: 256 of them, for any text in any encoding.
///
/// ```
/// use selvedge::nn::{ByteTokenizer, Tokenizer};
/// assert_eq!(ByteTokenizer.encode("aé")?, [97, 195, 169]);
/// assert_eq!(ByteTokenizer.decode(&[97, 195])?, "a\u{fffd}");
/// assert_eq!(ByteTokenizer.decode_bytes(&[97, 195])?, [97, 195]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteTokenizer;

impl Tokenizer for ByteTokenizer {
    fn vocab_size(&self) -> usize {
        256
    }

    fn encode_bytes(&self, text: &[u8]) -> Result<Vec<u32>> {
        Ok(text.iter().map(|&byte| u32::from(byte)).collect())
    }

    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let decode =
            |(position, &id)| u8::try_from(id).map_err(|_| unknown_id("ByteTokenizer", id, position, 256));
        ids.iter().enumerate().map(decode).collect()
    }

    fn to_json(&self) -> Value {
        json!({ "kind": BYTES })
    }

    fn has_byte_ids(&self) -> bool {
        true
    }
}

/// Characters as ids: those of a text, sorted by code point.
///
/// ```
/// use selvedge::nn::{CharTokenizer, Tokenizer};
/// let tokenizer = CharTokenizer::from_text("banana")?;
/// assert_eq!(tokenizer.encode("ban")?, [1, 0, 2]);
/// assert_eq!(tokenizer.decode(&[2, 0])?, "na");
/// let message = tokenizer.encode("bad").unwrap_err().to_string();
/// assert!(message.contains("'d' (U+0064) at byte 2"), "{message}");
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CharTokenizer {
    characters: Vec<char>,
    ids: HashMap<char, u32>,
}

pub(super) const CHARACTERS: &str = "characters";
pub(super) const BYTES: &str = "bytes";

impl CharTokenizer {
    /// Creates a tokenizer of the distinct characters of a UTF-8 text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the byte's position for a text that is not UTF-8, and for an empty text.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<CharTokenizer> {
        let text = utf8("CharTokenizer::from_text", text.as_ref())?;
        CharTokenizer::from_vocabulary(text.chars().collect::<BTreeSet<char>>())
    }

    /// Creates a tokenizer of characters whose positions are their ids.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a character given twice, and for no characters.
    pub fn from_vocabulary(characters: impl IntoIterator<Item = char>) -> Result<CharTokenizer> {
        const OPERATION: &str = "CharTokenizer::from_vocabulary";
        let characters: Vec<char> = characters.into_iter().collect();
        if characters.is_empty() {
            return Err(Error::invalid(OPERATION, "no characters", "at least one character"));
        }
        let mut ids = HashMap::with_capacity(characters.len());
        // There are fewer code points than ids of u32.
        for (id, &character) in (0u32..).zip(&characters) {
            if let Some(first) = ids.insert(character, id) {
                let found = format!("{} as id {first} and as id {id}", described(character));
                return Err(Error::invalid(OPERATION, found, "each character once"));
            }
        }
        Ok(CharTokenizer { characters, ids })
    }

    /// Returns the characters in the order of their ids.
    pub fn vocabulary(&self) -> &[char] {
        &self.characters
    }
}

impl Tokenizer for CharTokenizer {
    fn vocab_size(&self) -> usize {
        self.characters.len()
    }

    fn encode_bytes(&self, text: &[u8]) -> Result<Vec<u32>> {
        const OPERATION: &str = "CharTokenizer::encode";
        let text = utf8(OPERATION, text)?;
        let encode = |(position, character)| {
            self.ids.get(&character).copied().ok_or_else(|| {
                let location = location(text.as_bytes(), position);
                let found = format!("the character {} at {location}", described(character));
                let wanted = format!("one of the {} characters of the vocabulary", self.characters.len());
                Error::invalid(OPERATION, found, wanted)
            })
        };
        text.char_indices().map(encode).collect()
    }

    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let mut text = String::with_capacity(ids.len());
        for (position, &id) in ids.iter().enumerate() {
            let character = self.characters.get(id as usize);
            let unknown = || unknown_id("CharTokenizer", id, position, self.characters.len());
            text.push(*character.ok_or_else(unknown)?);
        }
        Ok(text.into_bytes())
    }

    fn to_json(&self) -> Value {
        json!({ "kind": CHARACTERS, "vocabulary": self.characters.iter().collect::<String>() })
    }
}

/// Returns the text of bytes.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with the position of the first byte that is not UTF-8.
fn utf8<'a>(operation: &'static str, text: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(text).map_err(|error| {
        let position = error.valid_up_to();
        let byte = text.get(position).copied().unwrap_or_default();
        let found = format!("the byte 0x{byte:02x} at {}, which is not UTF-8", location(text, position));
        Error::invalid(operation, found, "a UTF-8 text; ByteTokenizer encodes any bytes")
    })
}

/// Returns a byte's position and line for a message.
pub(super) fn location(text: &[u8], position: usize) -> String {
    let line = 1 + text.iter().take(position).filter(|&&byte| byte == b'\n').count();
    format!("byte {position} (line {line})")
}

/// Returns a character for a message.
fn described(character: char) -> String {
    format!("{character:?} (U+{:04X})", u32::from(character))
}

pub(super) fn unknown_id(tokenizer: &str, id: u32, position: usize, size: usize) -> Error {
    let found = format!("the id {id} at position {position}");
    Error::invalid("decode", found, format!("an id below {size}, the size of the {tokenizer}'s vocabulary"))
}
