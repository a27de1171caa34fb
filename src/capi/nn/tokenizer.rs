//! Tokenizers: texts as ids.

use std::ffi::c_char;
use std::sync::Arc;

use super::super::arguments::{out, slice, text, write_some, write_text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_tokenizer};
use crate::nn::{ByteTokenizer, CharTokenizer, Tokenizer, tokenizer_from_json};

/// A tokenizer behind a handle.
#[derive(Clone)]
pub(crate) struct TokenizerObject(pub(super) Arc<dyn Tokenizer>);
object!(TokenizerObject, Tokenizer);

impl TokenizerObject {
    pub(super) fn find(handle: u64) -> Result<TokenizerObject> {
        TokenizerObject::table().get(handle, "tokenizer")
    }
}

/// Returns the bytes of a text with a length.
///
/// # Safety
///
/// As [`slice`].
pub(super) unsafe fn bytes_of<'a>(text: *const c_char, bytes: usize) -> Result<&'a [u8]> {
    slice(text.cast::<u8>(), bytes, "text")
}

/// Runs the body of a function whose result is a tokenizer.
///
/// # Safety
///
/// `tokenizer` is NULL or points to a `u64` that this call alone uses.
unsafe fn give_tokenizer(
    function: &'static str,
    tokenizer: *mut u64,
    work: &dyn Fn() -> Result<Arc<dyn Tokenizer>>,
) -> i32 {
    guard::call(function, || {
        let result = out(tokenizer, "tokenizer")?;
        result.write(TokenizerObject::table().insert(TokenizerObject(work()?))?);
        Ok(())
    })
}

/// Creates a tokenizer whose ids are the 256 bytes, for any text in any encoding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tokenizer_bytes(tokenizer: *mut sv_tokenizer) -> i32 {
    give_tokenizer("sv_tokenizer_bytes", tokenizer, &|| Ok(Arc::new(ByteTokenizer)))
}

/// Creates a tokenizer whose ids are the distinct characters of a text in UTF-8, sorted by code point.
///
/// # Safety
///
/// `text` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tokenizer_characters(
    text: *const c_char,
    bytes: usize,
    tokenizer: *mut sv_tokenizer,
) -> i32 {
    give_tokenizer("sv_tokenizer_characters", tokenizer, &|| {
        Ok(Arc::new(CharTokenizer::from_text(bytes_of(text, bytes)?)?))
    })
}

/// Creates a tokenizer from the JSON of `sv_tokenizer_to_json`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tokenizer_from_json(json: *const c_char, tokenizer: *mut sv_tokenizer) -> i32 {
    give_tokenizer("sv_tokenizer_from_json", tokenizer, &|| {
        let json = serde_json::from_str(text(json, "json")?)
            .map_err(|error| Failure::argument("json", error, "the JSON of a tokenizer"))?;
        Ok(tokenizer_from_json(&json)?.into())
    })
}

/// Loads the tokenizer of a published model's folder: `tokenizer.json`, or `vocab.json` with `merges.txt`.
///
/// `SV_ERROR_UNSUPPORTED` in a library that was built without the feature `models`; `FEATURES=models scripts/install.sh` builds one
/// with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tokenizer_load(folder: *const c_char, tokenizer: *mut sv_tokenizer) -> i32 {
    give_tokenizer("sv_tokenizer_load", tokenizer, &|| load(text(folder, "folder")?))
}

#[cfg(feature = "models")]
fn load(folder: &str) -> Result<Arc<dyn Tokenizer>> {
    Ok(Arc::new(crate::nn::SubwordTokenizer::from_folder(folder)?))
}

#[cfg(not(feature = "models"))]
fn load(_: &str) -> Result<Arc<dyn Tokenizer>> {
    let message = "found a library without the feature models; wanted one that FEATURES=models scripts/install.sh built";
    Err(Failure { status: super::super::status::SV_ERROR_UNSUPPORTED, message: message.to_owned() })
}

/// Writes a tokenizer as JSON. The text is cut to fit `capacity`; `*length` gets the bytes of the whole text.
///
/// # Safety
///
/// `json` is NULL or points to `capacity` bytes, and `length` is NULL or points to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tokenizer_to_json(
    tokenizer: sv_tokenizer,
    json: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_tokenizer_to_json", || {
        let tokenizer = TokenizerObject::find(tokenizer)?;
        write_text(&tokenizer.0.to_json().to_string(), json, capacity, length)
    })
}

/// Writes the number of ids. Ids are 0 to that number less 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tokenizer_vocab_size(tokenizer: sv_tokenizer, size: *mut usize) -> i32 {
    guard::call("sv_tokenizer_vocab_size", || {
        let size = out(size, "size")?;
        size.write(TokenizerObject::find(tokenizer)?.0.vocab_size());
        Ok(())
    })
}

/// Writes the ids of a text. A character that the tokenizer lacks is an error that names its position.
///
/// `count` gets the number of ids; the array gets the first `capacity` of them. A capacity of 0 asks for the number alone.
///
/// # Safety
///
/// `text` points to `bytes` bytes, and `ids` to `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tokenizer_encode(
    tokenizer: sv_tokenizer,
    text: *const c_char,
    bytes: usize,
    ids: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_tokenizer_encode", || {
        let count = out(count, "count")?;
        let found = TokenizerObject::find(tokenizer)?.0.encode_bytes(bytes_of(text, bytes)?)?;
        write_some(&found, ids, capacity, "ids")?;
        count.write(found.len());
        Ok(())
    })
}

/// Writes the text of ids. Bytes that are not UTF-8 become U+FFFD. The text is cut to fit `capacity`; `*length` gets the bytes
/// of the whole text.
///
/// # Safety
///
/// `ids` points to `count` numbers, `text` is NULL or points to `capacity` bytes, and `length` is NULL or points to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tokenizer_decode(
    tokenizer: sv_tokenizer,
    ids: *const u32,
    count: usize,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_tokenizer_decode", || {
        let found = TokenizerObject::find(tokenizer)?.0.decode(slice(ids, count, "ids")?)?;
        write_text(&found, text, capacity, length)
    })
}
