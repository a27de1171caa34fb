//! [`StreamDecoder`], the text of ids as they come.

use super::tokenizer::Tokenizer;
use crate::error::Result;

/// Decodes ids as they come, into whole characters.
///
/// The texts of all calls together are the text of all ids together. A character whose bytes have not all come waits for them.
///
/// ```
/// use selvedge::nn::{ByteTokenizer, StreamDecoder};
/// let mut decoder = StreamDecoder::new(&ByteTokenizer);
/// assert_eq!(decoder.push(&[b'a'.into(), 0xc3])?, "a");
/// assert_eq!(decoder.push(&[0xa9])?, "é");
/// assert_eq!(decoder.finish()?, "");
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct StreamDecoder<'t> {
    tokenizer: &'t dyn Tokenizer,
    /// Decoded ids before the waiting ones: the text of an id depends on whether it is the first.
    context: Vec<u32>,
    waiting: Vec<u32>,
    /// The bytes of a character that has not ended.
    bytes: Vec<u8>,
}

impl<'t> StreamDecoder<'t> {
    /// Creates a decoder of the ids of a tokenizer.
    pub fn new(tokenizer: &'t dyn Tokenizer) -> StreamDecoder<'t> {
        StreamDecoder { tokenizer, context: Vec::new(), waiting: Vec::new(), bytes: Vec::new() }
    }

    /// Creates a decoder of ids that follow others, whose text was decoded before.
    pub fn after(tokenizer: &'t dyn Tokenizer, ids: &[u32]) -> StreamDecoder<'t> {
        StreamDecoder { context: ids.to_vec(), ..StreamDecoder::new(tokenizer) }
    }

    /// Returns the text that is certain after these ids.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::decode_bytes`]. The ids of the call are not taken then.
    pub fn push(&mut self, ids: &[u32]) -> Result<String> {
        let before = self.waiting.len();
        self.waiting.extend_from_slice(ids);
        let depends = |&id: &u32| self.tokenizer.depends_on_next(id);
        if self.waiting.last().is_none_or(depends) {
            return Ok(String::new());
        }
        if let Err(error) = self.take_waiting() {
            self.waiting.truncate(before);
            return Err(error);
        }
        Ok(self.whole_characters())
    }

    /// Returns the rest of the text. A character that has not ended becomes U+FFFD.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn finish(mut self) -> Result<String> {
        self.take_waiting()?;
        Ok(String::from_utf8_lossy(&self.bytes).into_owned())
    }

    /// Moves the waiting ids to the context, and their bytes to `bytes`.
    fn take_waiting(&mut self) -> Result<()> {
        let known = self.tokenizer.decode_bytes(&self.context)?.len();
        let all = [self.context.as_slice(), &self.waiting].concat();
        let bytes = self.tokenizer.decode_bytes(&all)?;
        let alone_is_text = !self.tokenizer.decode_bytes(&self.waiting)?.is_empty();
        self.bytes.extend_from_slice(bytes.get(known..).unwrap_or_default());
        if alone_is_text {
            self.context.clear();
        }
        self.context.append(&mut self.waiting);
        Ok(())
    }

    /// Takes the whole characters of `bytes`. Bytes that are not UTF-8 become U+FFFD.
    fn whole_characters(&mut self) -> String {
        let mut text = String::new();
        let mut rest = Vec::new();
        let mut chunks = self.bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text += chunk.valid();
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none())
            {
                rest = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.bytes = rest;
        text
    }
}
