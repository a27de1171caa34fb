//! Tokenizers of published models, of a C program.

use std::ptr::null;

use selvedge::capi::library::sv_release;
use selvedge::capi::nn::tokenizer::*;
use selvedge::capi::status::*;
use selvedge::nn::{BpeOptions, SubwordTokenizer, Tokenizer};

use super::decoder::text;
use super::{check, fails, ok};

#[test]
fn tokenizers_of_folders_are_tokenizers_of_c() {
    let sample = "the cat sat on the mat, and the hat sat on the cat";
    let options = BpeOptions { vocab_size: 270, ..BpeOptions::default() };
    let trained = SubwordTokenizer::train([sample.as_bytes()], &options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), trained.to_tokenizer_json().unwrap()).unwrap();
    let (path, missing) = (text(folder.path()), text(&folder.path().join("none")));
    // SAFETY: the pointers are to texts, numbers and slices of their lengths.
    unsafe {
        let tokenizer = ok(|result| sv_tokenizer_load(path.as_ptr(), result));
        let (mut size, mut count, mut ids) = (0, 0, vec![0; sample.len()]);
        check(sv_tokenizer_vocab_size(tokenizer, &mut size));
        assert_eq!(size, trained.vocab_size());
        let (bytes, capacity) = (sample.as_ptr().cast(), ids.len());
        check(sv_tokenizer_encode(tokenizer, bytes, sample.len(), ids.as_mut_ptr(), capacity, &mut count));
        assert_eq!(ids[..count], trained.encode(sample).unwrap());
        assert!(count < sample.len());
        let (mut decoded, mut length) = (vec![0u8; sample.len() + 1], 0);
        let buffer = decoded.as_mut_ptr().cast();
        check(sv_tokenizer_decode(tokenizer, ids.as_ptr(), count, buffer, sample.len() + 1, &mut length));
        assert_eq!(&decoded[..length], sample.as_bytes());
        let mut none = 0;
        fails(sv_tokenizer_load(missing.as_ptr(), &mut none), SV_ERROR_FILE, "no such folder");
        fails(sv_tokenizer_load(null(), &mut none), SV_ERROR_INVALID_ARGUMENT, "folder: found NULL");
        check(sv_release(tokenizer));
    }
}
