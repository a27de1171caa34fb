//! Tokenizers of published models against ids and texts of `tokenizers` in Python (`tests/data/tokenizers`), and trained ones.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use selvedge::Error;
use selvedge::nn::{
    BpeOptions, SplitPattern, StreamDecoder, SubwordTokenizer, TextFile, Tokenizer, tokenizer_from_json,
};
use serde::Deserialize;

use crate::common::repository;

#[derive(Deserialize)]
struct Stored {
    files: BTreeMap<String, String>,
    cases: Cases,
}

#[derive(Deserialize)]
struct Cases {
    vocabulary: usize,
    encode: Vec<EncodeCase>,
    decode: Vec<DecodeCase>,
}

#[derive(Deserialize)]
struct EncodeCase {
    input: String,
    ids: Vec<u32>,
    ids_with_special: Vec<u32>,
    decoded: String,
    decoded_with_special: String,
    decoded_skip_special: String,
}

#[derive(Deserialize)]
struct DecodeCase {
    ids: Vec<u32>,
    bytes: Option<String>,
    text: String,
    text_skip_special: String,
}

/// The tokenizers of tests/data/tokenizers, unpacked once.
fn stored() -> &'static BTreeMap<String, Stored> {
    static STORED: OnceLock<BTreeMap<String, Stored>> = OnceLock::new();
    STORED.get_or_init(|| {
        let file = std::fs::File::open(repository().join("tests/data/tokenizers/cases.json.zst")).unwrap();
        let mut text = String::new();
        ruzstd::decoding::StreamingDecoder::new(file).unwrap().read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    })
}

/// Writes files of a stored tokenizer into a folder.
fn write(folder: &Path, name: &str, files: &[&str]) {
    for file in files {
        std::fs::write(folder.join(file), &stored()[name].files[*file]).unwrap();
    }
}

fn load(name: &str) -> SubwordTokenizer {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), name, &["tokenizer.json", "tokenizer_config.json"]);
    SubwordTokenizer::from_folder(folder.path()).unwrap()
}

/// Decodes ids in parts of one to three.
fn streamed(tokenizer: &dyn Tokenizer, ids: &[u32], part: usize) -> (String, Vec<String>) {
    let mut decoder = StreamDecoder::new(tokenizer);
    let mut parts: Vec<String> = ids.chunks(part).map(|ids| decoder.push(ids).unwrap()).collect();
    parts.push(decoder.finish().unwrap());
    (parts.concat(), parts)
}

fn message<T: std::fmt::Debug>(result: selvedge::Result<T>, words: &[&str]) -> Error {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text} lacks one of {words:?}");
    error
}

#[test]
fn ids_and_texts_are_those_of_tokenizers_in_python() {
    for (name, Stored { cases, .. }) in stored() {
        let tokenizer = load(name);
        assert_eq!(tokenizer.vocab_size(), cases.vocabulary, "{name}");
        assert!(cases.encode.len() > 100 && !cases.decode.is_empty());
        for case in &cases.encode {
            let input = &case.input;
            assert_eq!(tokenizer.encode(input).unwrap(), case.ids, "{name}: {input:?}");
            assert_eq!(tokenizer.encode_prompt(input).unwrap(), case.ids_with_special, "{name}: {input:?}");
            assert_eq!(tokenizer.decode(&case.ids).unwrap(), case.decoded, "{name}: {input:?}");
            let with_special = &case.ids_with_special;
            assert_eq!(
                tokenizer.decode(with_special).unwrap(),
                case.decoded_with_special,
                "{name}: {input:?}"
            );
            let skipped = tokenizer.decode_skipping_special(with_special).unwrap();
            assert_eq!(skipped, case.decoded_skip_special, "{name}: {input:?}");
            for part in 1..=3 {
                assert_eq!(streamed(&tokenizer, &case.ids, part).0, case.decoded, "{name}: {input:?}");
                let (text, _) = streamed(&tokenizer, with_special, part);
                assert_eq!(text, case.decoded_with_special, "{name}: {input:?}");
            }
        }
        for case in &cases.decode {
            let ids = &case.ids;
            assert_eq!(tokenizer.decode(ids).unwrap(), case.text, "{name}: {ids:?}");
            assert_eq!(
                tokenizer.decode_skipping_special(ids).unwrap(),
                case.text_skip_special,
                "{name}: {ids:?}"
            );
            if let Some(bytes) = &case.bytes {
                let found: String =
                    tokenizer.decode_bytes(ids).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(&found, bytes, "{name}: {ids:?}");
            }
            for part in 1..=3 {
                assert_eq!(streamed(&tokenizer, ids, part).0, case.text, "{name}: {ids:?}");
            }
        }
    }
}

#[test]
fn a_stream_never_cuts_a_character() {
    for name in ["gpt2", "llama2"] {
        let tokenizer = load(name);
        let text = "a \u{1f642}\u{1f469}\u{200d}\u{1f680} 漢字 é";
        let (whole, parts) = streamed(&tokenizer, &tokenizer.encode(text).unwrap(), 1);
        assert_eq!(whole, text);
        assert!(parts.len() > 6 && parts.iter().all(|part| !part.contains('\u{fffd}')), "{parts:?}");
    }
}

#[test]
fn encoding_equals_the_general_path_on_random_text() {
    let words = [
        "the",
        "The",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "don't",
        "I'LL",
        "'S",
        "12345",
        "½",
        "é",
        "e\u{301}",
        "漢字",
        "\u{1f642}",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|begin_of_text|>",
        "<x>",
        "...",
        "?!\n",
        "\u{a0}",
        "\u{3000}",
        "x_y",
        "#",
    ];
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut texts: Vec<String> =
        (0..200).map(|case| (0..case % 40).map(|_| words[random(words.len())]).collect()).collect();
    // Several chunks, with and without added tokens and white space.
    texts.push((0..20_000).map(|_| words[random(words.len())]).collect());
    texts.push((0..14_000).map(|_| [words[random(2)], " "].concat()).collect());
    texts.push("ab".repeat(20_000));
    for name in ["gpt2", "llama3"] {
        let json: serde_json::Value = serde_json::from_str(&stored()[name].files["tokenizer.json"]).unwrap();
        let mut variants = vec![json.clone()];
        let mut of_qwen = json.clone();
        of_qwen["normalizer"] = serde_json::json!({ "type": "NFC" });
        if let Some(parts) = of_qwen["pre_tokenizer"]["pretokenizers"].as_array_mut() {
            parts[0]["pattern"]["Regex"] = SplitPattern::Qwen2.regex().unwrap().into();
        }
        variants.push(of_qwen);
        for (key, value) in [("rstrip", true), ("lstrip", true), ("normalized", true)] {
            let mut stripping = json.clone();
            stripping["added_tokens"][0][key] = value.into();
            variants.push(stripping);
        }
        for variant in variants {
            let text = variant.to_string();
            let (found, wanted) = (
                SubwordTokenizer::from_json(&text).unwrap(),
                tokenizers::Tokenizer::from_bytes(&text).unwrap(),
            );
            for text in &texts {
                let wanted = wanted.encode_fast(text.as_str(), false).unwrap();
                assert!(found.encode(text).unwrap() == wanted.get_ids(), "{name}: {:.200?}", text);
            }
        }
        // Parts of a text have the ids of the whole.
        let tokenizer = load(name);
        let text = format!("{} <|endoftext|> the", texts[texts.len() - 2]).repeat(20);
        let (mut ids, mut bytes, mut parts) = (Vec::new(), 0, 0);
        let mut sink = |part: &[u32], length: usize| {
            ids.extend_from_slice(part);
            (bytes, parts) = (bytes + length, parts + 1);
            Ok(())
        };
        tokenizer.encode_documents([Ok(&text)].into_iter(), None, &mut sink).unwrap();
        assert!(parts > 4 && bytes == text.len(), "{parts} parts");
        assert!(ids == tokenizer.encode(&text).unwrap());
    }
}

#[test]
fn documents_come_in_order_until_the_first_error() {
    let tokenizer = load("gpt2");
    let texts: Vec<String> =
        (0..50).map(|number| format!("text {number} ").repeat(1 + number * 500)).collect();
    for stop in [None, Some(30)] {
        let documents = texts.iter().enumerate().map(|(at, text)| match Some(at) == stop {
            true => TextFile::read("/none/text.txt").map(|_| text),
            false => Ok(text),
        });
        let mut ids = Vec::new();
        let result = tokenizer.encode_documents(documents, Some(7), &mut |part, _| {
            ids.extend_from_slice(part);
            Ok(())
        });
        assert_eq!(result.is_err(), stop.is_some());
        let whole = texts.iter().take(stop.unwrap_or(texts.len()));
        let wanted: Vec<u32> =
            whole.flat_map(|text| [tokenizer.encode(text).unwrap(), vec![7]].concat()).collect();
        assert!(ids == wanted);
    }
    // The sink's error ends the encoding, and no part follows it.
    let mut calls = 0;
    let result = tokenizer.encode_documents(texts.iter().map(Ok), None, &mut |_, _| {
        calls += 1;
        if calls == 3 { tokenizer.decode(&[u32::MAX]).map(drop) } else { Ok(()) }
    });
    message(result, &["4294967295"]);
    assert_eq!(calls, 3);
}

/// A tokenizer.json of a BPE model.
fn bpe(vocab: &[&str], merges: &[[&str; 2]], more: serde_json::Value) -> String {
    let ids: BTreeMap<&str, usize> = vocab.iter().copied().zip(0..).collect();
    let byte_level = serde_json::json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let mut json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": ids, "merges": merges,
        },
    });
    for (key, value) in more.as_object().unwrap() {
        let part = if key == "pre_tokenizer" || key == "normalizer" { &mut json } else { &mut json["model"] };
        part[key] = value.clone();
    }
    json.to_string()
}

#[test]
fn characters_that_a_vocabulary_lacks_are_errors_unless_a_token_stands_for_them() {
    let vocab = ["a", "b", "\u{120}", "\u{c3}", "ab", "?", "<0xC3>", "<0xA9>", "aB"];
    let merges = [["a", "b"]];
    let load = |more| SubwordTokenizer::from_json(&bpe(&vocab, &merges, more)).unwrap();
    let split = serde_json::json!({ "type": "Whitespace" });
    let lower = serde_json::json!({ "type": "Lowercase" });
    let plain = load(serde_json::json!({}));
    let through_crate = load(serde_json::json!({ "normalizer": lower }));
    for tokenizer in [&plain, &through_crate] {
        assert_eq!(tokenizer.encode("abba ab").unwrap(), [4, 1, 0, 2, 4]);
        message(tokenizer.encode("abc"), &["'c'", "vocabulary lacks", "unk_token"]);
        message(tokenizer.encode("ab \u{e9}"), &["byte 0xa9", "'\u{e9}'", "vocabulary lacks"]);
        let documents = ["ab", "abc"].map(Ok).into_iter();
        message(tokenizer.encode_documents(documents, None, &mut |_, _| Ok(())), &["'c'"]);
    }
    // The text that the model gets counts, and not the one before the normalizer.
    assert_eq!(through_crate.encode("AB").unwrap(), [4]);
    message(plain.encode("AB"), &["'A'"]);
    let unknown = load(serde_json::json!({ "unk_token": "?" }));
    assert_eq!(unknown.encode("abc").unwrap(), [4, 5]);
    let whole = load(serde_json::json!({ "ignore_merges": true }));
    assert_eq!(whole.encode("aB").unwrap(), [8], "a word of the vocabulary needs no byte's token");
    message(whole.encode("aBa"), &["'B'"]);
    // Models of characters.
    let of_characters = load(serde_json::json!({ "pre_tokenizer": split }));
    assert_eq!(of_characters.encode("ab b").unwrap(), [4, 1], "a pre-tokenizer may take white space");
    message(of_characters.encode("ab \u{e9}"), &["the character '\u{e9}'"]);
    let fallback = load(serde_json::json!({ "pre_tokenizer": split, "byte_fallback": true }));
    assert_eq!(fallback.encode("\u{e9}").unwrap(), [6, 7]);
    message(fallback.encode("\u{ea}"), &["the character '\u{ea}'"]);
}

#[test]
fn merges_are_those_of_the_general_path_on_random_words() {
    let mut state = 11u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    // Few letters and many merges, so that merges overlap and compete.
    let letters = ["a", "b", "c", "d"];
    for round in 0..40 {
        let mut vocab: Vec<String> = letters.map(str::to_owned).into();
        let mut merges: Vec<[String; 2]> = Vec::new();
        while vocab.len() < 60 {
            let pair = [vocab[random(vocab.len())].clone(), vocab[random(vocab.len())].clone()];
            let merged = pair.concat();
            if merged.len() <= 12 && !merges.contains(&pair) {
                if !vocab.contains(&merged) {
                    vocab.push(merged);
                }
                merges.push(pair);
            }
        }
        let (vocab, merges): (Vec<&str>, Vec<[&str; 2]>) = (
            vocab.iter().map(String::as_str).collect(),
            merges.iter().map(|[left, right]| [left.as_str(), right.as_str()]).collect(),
        );
        let lines: Vec<String> = merges.iter().map(|merge| merge.join(" ")).collect();
        let json = bpe(
            &vocab,
            &merges,
            match round % 3 {
                0 => serde_json::json!({}),
                1 => serde_json::json!({ "ignore_merges": true }),
                _ => serde_json::json!({ "merges": lines }),
            },
        );
        let (found, wanted) =
            (SubwordTokenizer::from_json(&json).unwrap(), tokenizers::Tokenizer::from_bytes(&json).unwrap());
        for case in 0..300 {
            // Words of one byte to more than the scan and the cache take; the second time from the cache.
            let length = 1 + random([4, 16, 20, 70, 150][case % 5]);
            let word: String = (0..length).map(|_| letters[random(4)]).collect();
            let wanted = wanted.encode_fast(word.as_str(), false).unwrap();
            for turn in 0..2 {
                assert_eq!(found.encode(&word).unwrap(), wanted.get_ids(), "{word}, turn {turn}");
            }
        }
    }
}

#[test]
fn any_bytes_survive_a_byte_level_tokenizer() {
    let bytes: Vec<u8> = (0..=255u8).chain(*b"ok \xf0\x9f ok \xed\xa0\x80\xff\xc3").collect();
    for name in ["gpt2", "llama3"] {
        let tokenizer = load(name);
        let ids = tokenizer.encode_bytes(&bytes).unwrap();
        assert_eq!(tokenizer.decode_bytes(&ids).unwrap(), bytes, "{name}");
        assert_eq!(streamed(&tokenizer, &ids, 1).0, String::from_utf8_lossy(&bytes), "{name}");
    }
    message(load("llama2").encode_bytes(b"ab\n\xff"), &["0xff", "byte 3", "line 2", "byte-level"]);
}

#[test]
fn ids_outside_the_vocabulary_are_errors() {
    for name in stored().keys() {
        let tokenizer = load(name);
        let size = tokenizer.vocab_size();
        for ids in [[0, size as u32], [0, u32::MAX]] {
            let words = [&*ids[1].to_string(), "position 1", &*size.to_string()];
            message(tokenizer.decode(&ids), &words);
            message(tokenizer.decode_skipping_special(&ids), &words);
            message(StreamDecoder::new(&tokenizer).push(&ids), &words);
        }
    }
}

#[test]
fn folders_of_either_form_load_and_others_say_what_they_lack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let file = |result, words: &[&str]| {
        assert!(matches!(message(result, words), Error::File { .. }));
    };
    let of = |path: &Path| SubwordTokenizer::from_folder(path);
    file(of(&path.join("none")), &["none", "no such folder", "tokenizer.json"]);
    file(of(path), &["no file of a tokenizer", "tokenizer.json", "merges.txt"]);
    std::fs::write(path.join("tokenizer.model"), b"sentencepiece").unwrap();
    file(of(path), &["tokenizer.model alone", "tokenizer.json", "save_pretrained"]);
    write(path, "gpt2", &["vocab.json"]);
    file(of(path), &["vocab.json without merges.txt"]);
    write(path, "gpt2", &["merges.txt"]);
    let tokenizer = of(path).unwrap();
    let cases = &stored()["gpt2"].cases;
    for case in &cases.encode {
        assert_eq!(tokenizer.encode(&case.input).unwrap(), case.ids, "{:?}", case.input);
        assert_eq!(tokenizer.decode(&case.ids).unwrap(), case.decoded, "{:?}", case.input);
    }
    assert_eq!(tokenizer.end_id(), Some(tokenizer.token_id("<|endoftext|>").unwrap()));
    assert!(tokenizer.is_special(tokenizer.end_id().unwrap()) && !tokenizer.is_special(40));
    let config = path.join("tokenizer_config.json");
    std::fs::write(&config, r#"{"tokenizer_class": "Qwen2Tokenizer"}"#).unwrap();
    file(of(path), &["tokenizer_class Qwen2Tokenizer", "tokenizer.json"]);
    std::fs::remove_file(&config).unwrap();
    std::fs::write(path.join("added_tokens.json"), "{}").unwrap();
    file(of(path), &["added_tokens.json", "tokenizer.json"]);
    std::fs::remove_file(path.join("added_tokens.json")).unwrap();
    std::fs::write(path.join("merges.txt"), "#version: 0.2\na b c\n").unwrap();
    file(of(path), &["merges.txt", "line 2", "two tokens"]);
    for damaged in [
        "",
        "{",
        "{\"version\": \"1.0\"}",
        "[]",
        "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}}",
    ] {
        std::fs::write(path.join("tokenizer.json"), damaged).unwrap();
        file(of(path), &["tokenizer.json"]);
        message(SubwordTokenizer::from_json(damaged), &["SubwordTokenizer"]);
    }
    std::fs::write(path.join("tokenizer.json"), b"\xff").unwrap();
    file(of(path), &["byte at 0", "UTF-8"]);
    file(of(&path.join("tokenizer.json")), &["a file", "folder"]);
    std::fs::write(path.join("tokenizer_config.json"), b"{").unwrap();
    file(of(path), &["tokenizer_config.json", "JSON"]);
}

#[test]
fn tokenizers_survive_a_checkpoint() {
    for name in stored().keys() {
        let tokenizer = load(name);
        let read = tokenizer_from_json(&tokenizer.to_json()).unwrap();
        assert_eq!((read.vocab_size(), read.end_id()), (tokenizer.vocab_size(), tokenizer.end_id()));
        assert!(read.end_id().is_some(), "{name}");
        for case in stored()[name].cases.encode.iter().step_by(7) {
            assert_eq!(read.encode(&case.input).unwrap(), case.ids, "{name}: {:?}", case.input);
        }
    }
    message(tokenizer_from_json(&serde_json::json!({ "kind": "subwords" })), &["SubwordTokenizer"]);
    message(load("gpt2").with_end_token("<none>"), &["<none>", "<|endoftext|>"]);
}

#[test]
fn a_trained_vocabulary_is_lossless_and_that_of_its_file() {
    let text = std::fs::read(repository().join("docs/design.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for pattern in [SplitPattern::Gpt2, SplitPattern::Llama3, SplitPattern::Qwen2] {
        let options = BpeOptions { vocab_size: 600, pattern, ..BpeOptions::default() };
        let tokenizer = SubwordTokenizer::train([&*text, b"\xff"], &options).unwrap();
        assert_eq!(tokenizer.vocab_size(), 600);
        let ids = tokenizer.encode_bytes(&text).unwrap();
        assert!(ids.len() * 2 < text.len(), "{} ids of {} bytes", ids.len(), text.len());
        assert_eq!(tokenizer.decode_bytes(&ids).unwrap(), text);
        tokenizer.save(folder.path().join("new")).unwrap();
        let peer = tokenizers::Tokenizer::from_file(folder.path().join("new/tokenizer.json")).unwrap();
        let text = String::from_utf8(text.clone()).unwrap();
        assert_eq!(peer.encode_fast(text.as_str(), true).unwrap().get_ids(), ids);
        assert_eq!(peer.decode(&ids, false).unwrap(), text);
        let read = SubwordTokenizer::from_folder(folder.path().join("new")).unwrap();
        assert_eq!((read.encode(&text).unwrap(), read.end_id()), (ids, tokenizer.end_id()));
        let again = SubwordTokenizer::train([text.as_bytes(), b"\xff"], &options).unwrap();
        assert_eq!(again.to_json(), tokenizer.to_json(), "training is deterministic");
    }
    let of = |text: &str, vocab_size, end: &str| {
        let options = BpeOptions { vocab_size, end_token: end.to_owned(), ..BpeOptions::default() };
        SubwordTokenizer::train([text.as_bytes()], &options)
    };
    message(of("", 300, "<end>"), &["without a byte"]);
    message(of("abc", 256, "<end>"), &["256 ids", "257"]);
    message(of("abc", usize::MAX, "<end>"), &["257"]);
    message(of("abc", 300, ""), &["empty end token"]);
    assert_eq!(of("abc", 300, "<end>").unwrap().vocab_size(), 257, "no pair occurs twice");
}
