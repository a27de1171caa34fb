//! Tokenizers, text files, and batches as functions of their number.

use selvedge::nn::{
    Batches, ByteTokenizer, CharTokenizer, Split, TextFile, TokenizedText, Tokenizer, tokenizer_from_json,
};
use selvedge::{Device, Error};
use serde_json::json;

fn fails<T: std::fmt::Debug>(result: selvedge::Result<T>, words: &[&str]) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    let message = error.to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message} lacks one of {words:?}");
}

#[test]
fn tokenizers_decode_what_they_encode_and_survive_json() {
    let text = "Zoë reads\nå 'b', \u{1f642}.";
    let characters = CharTokenizer::from_text(text).unwrap();
    assert!(characters.vocabulary().is_sorted(), "ids follow code points");
    assert_eq!(characters.vocab_size(), 16);
    let tokenizers: [Box<dyn Tokenizer>; 2] = [Box::new(characters), Box::new(ByteTokenizer)];
    for tokenizer in tokenizers {
        let ids = tokenizer.encode(text).unwrap();
        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
        assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        let read = tokenizer_from_json(&tokenizer.to_json()).unwrap();
        assert_eq!(read.encode(text).unwrap(), ids, "{tokenizer:?}");
        assert_eq!(read.decode(&[]).unwrap(), "");
        fails(tokenizer.decode(&[0, 999]), &["999", "position 1", &tokenizer.vocab_size().to_string()]);
    }
    let every_byte: Vec<u8> = (0..=255).collect();
    let ids = ByteTokenizer.encode_bytes(&every_byte).unwrap();
    assert_eq!(ByteTokenizer.decode_bytes(&ids).unwrap(), every_byte);
    assert_eq!(ByteTokenizer.decode(&[0xff, 0x41]).unwrap(), "\u{fffd}A");
    // A saved vocabulary keeps its order, sorted or not.
    let unsorted = CharTokenizer::from_vocabulary("ba".chars()).unwrap();
    let read = tokenizer_from_json(&unsorted.to_json()).unwrap();
    assert_eq!(read.encode("ab").unwrap(), [1, 0]);
}

#[test]
fn tokenizers_name_the_place_of_bad_input() {
    let tokenizer = CharTokenizer::from_text("ab\n").unwrap();
    fails(tokenizer.encode("ab\naéb"), &["'é'", "U+00E9", "byte 4", "line 2", "3 characters"]);
    fails(tokenizer.encode_bytes(b"a\n\xffb"), &["0xff", "byte 2", "line 2", "UTF-8", "ByteTokenizer"]);
    fails(CharTokenizer::from_text(b"ab\xc3"), &["0xc3", "byte 2", "UTF-8"]);
    fails(CharTokenizer::from_text(""), &["no characters", "at least one"]);
    fails(CharTokenizer::from_vocabulary("aba".chars()), &["'a'", "id 0", "id 2"]);
    for json in [json!({}), json!({"kind": "words"}), json!({"kind": "characters"}), json!([1])] {
        fails(tokenizer_from_json(&json), &["bytes", "characters"]);
    }
}

#[test]
fn texts_are_read_or_mapped_with_their_hash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    std::fs::write(&path, b"one\xff two").unwrap();
    // SAFETY: nobody else writes the file.
    let texts = [TextFile::read(&path).unwrap(), unsafe { TextFile::map(&path) }.unwrap()];
    for text in texts {
        assert_eq!(&text[..], b"one\xff two");
        assert_eq!(text.hash(), TextFile::from_bytes(*b"one\xff two").hash());
    }
    let empty = folder.path().join("empty");
    std::fs::write(&empty, b"").unwrap();
    // SAFETY: as above.
    assert!(unsafe { TextFile::map(&empty) }.unwrap().is_empty());
    for path in [folder.path().join("missing"), folder.path().to_owned()] {
        // SAFETY: as above.
        for result in [TextFile::read(&path), unsafe { TextFile::map(&path) }] {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, Error::File { path: named, .. } if *named == path.display().to_string()),
                "{error}"
            );
        }
    }
}

#[test]
fn batches_are_a_function_of_seed_and_number() {
    let text: Vec<u8> = (0..=255).collect();
    let cpu = Device::cpu();
    let characters: String = text.iter().map(|&byte| char::from(byte)).collect();
    let tokenizer = CharTokenizer::from_text(&characters).unwrap();
    // Ids are positions in both.
    let texts = [
        TokenizedText::new(TextFile::from_bytes(text), &ByteTokenizer).unwrap(),
        TokenizedText::new(TextFile::from_bytes(characters), &tokenizer).unwrap(),
    ];
    let mut seen = Vec::new();
    for text in &texts {
        assert_eq!(text.range(Split::Training), 0..230);
        for (split, range) in [(Split::Training, 0..230), (Split::Validation, 230..256)] {
            let mut batches = Batches::new(text, split, 3, 5, 11).unwrap();
            let ids = |batches: &Batches, number: u64| {
                let batch = batches.batch(number, &cpu).unwrap();
                assert_eq!(batch.inputs.shape().to_string(), "[3, 5]");
                let inputs = batch.inputs.to_vec::<i64>().unwrap();
                let targets = batch.targets.to_vec::<i64>().unwrap();
                for (at, (&input, &target)) in inputs.iter().zip(&targets).enumerate() {
                    assert_eq!(target, input + 1);
                    assert!(range.contains(&(input as usize)) && range.contains(&(target as usize)));
                    assert!(at % 5 == 0 || input == inputs[at - 1] + 1, "{inputs:?}");
                }
                inputs
            };
            let first: Vec<Vec<i64>> = (0..40).map(|number| ids(&batches, number)).collect();
            let backwards: Vec<Vec<i64>> = (0..40).rev().map(|number| ids(&batches, number)).collect();
            assert!(first.iter().eq(backwards.iter().rev()), "a batch does not depend on others");
            assert!(first.windows(2).all(|pair| pair[0] != pair[1]));
            let starts: Vec<i64> = first.iter().flatten().step_by(5).copied().collect();
            if split == Split::Validation {
                assert_eq!(starts.iter().min(), Some(&230));
                assert_eq!(starts.iter().max(), Some(&250), "the last window ends with the text");
            }
            batches.set_position(u64::MAX - 1);
            for number in [u64::MAX - 1, u64::MAX, 0] {
                let next = batches.next_batch(&cpu).unwrap().inputs.to_vec::<i64>().unwrap();
                assert_eq!(next, ids(&batches, number));
            }
            assert_eq!(batches.position(), 1);
            let other = Batches::new(text, split, 3, 5, 12).unwrap();
            assert_ne!(ids(&other, 0), first[0], "seeds differ");
            seen.push(first);
        }
    }
    assert!(seen[0] == seen[2] && seen[1] == seen[3], "mapped bytes and encoded ids give the same windows");
}

#[test]
fn batches_in_order_cover_a_part_once() {
    let text =
        TokenizedText::new(TextFile::from_bytes((0..24).collect::<Vec<u8>>()), &ByteTokenizer).unwrap();
    let text = text.with_training_fraction(0.5).unwrap();
    let cpu = Device::cpu();
    let batches = Batches::new(&text, Split::Validation, 2, 3, 0).unwrap();
    let found: Vec<Vec<i64>> =
        batches.in_order(&cpu).map(|batch| batch.unwrap().inputs.to_vec::<i64>().unwrap()).collect();
    assert_eq!(found, [vec![12, 13, 14, 15, 16, 17], vec![18, 19, 20]]);
}

#[test]
fn a_text_too_short_for_a_window_is_an_error_of_both_numbers() {
    let text = TokenizedText::new(TextFile::from_bytes("0123456789"), &ByteTokenizer).unwrap();
    assert!(Batches::new(&text, Split::Training, 2, 8, 0).is_ok());
    fails(Batches::new(&text, Split::Training, 2, 9, 0), &["9 ids", "training", "10 ids", "at least 10"]);
    fails(Batches::new(&text, Split::Validation, 2, 4, 0), &["1 ids", "validation", "at least 5"]);
    fails(Batches::new(&text, Split::Training, 2, usize::MAX, 0), &["9 ids"]);
    for (batch, context) in [(0, 4), (4, 0)] {
        fails(Batches::new(&text, Split::Training, batch, context, 0), &["at least 1"]);
    }
    for fraction in [-0.1, 1.1, f64::NAN] {
        fails(text.clone().with_training_fraction(fraction), &["fraction", "0 to 1"]);
    }
    let empty = TokenizedText::new(TextFile::from_bytes(""), &ByteTokenizer).unwrap();
    assert!(empty.is_empty());
    fails(Batches::new(&empty, Split::Training, 1, 1, 0), &["0 ids", "at least 2"]);
}
