//! [`MergeTable`], the merges of a byte-level BPE model by the ids of their tokens.
//!
//! `tokenizers` keeps a heap and the offsets of each word. The words of a text are short, so a scan for the lowest rank over an
//! array on the stack takes less time than the heap, and ids alone need no offsets.

use std::borrow::Cow;

use serde::Deserialize;
use tokenizers::Model;
use tokenizers::models::bpe::BPE;

use super::byte_level::CHARACTERS;

/// The most bytes of a word that [`MergeTable::encode`] takes: the time of the scan grows with their square.
const MAX_WORD: usize = 64;

/// No rank, and no id of a vocabulary.
const NONE: u32 = u32::MAX;

/// The merges of a model, by the ids of their two tokens.
pub(super) struct MergeTable {
    /// The id of each byte, or [`NONE`].
    bytes: [u32; 256],
    /// An open-addressing table of a power of two of entries, at most half of which are taken.
    entries: Vec<Merge>,
}

#[derive(Clone, Copy)]
struct Merge {
    left: u32,
    right: u32,
    /// [`NONE`] in an entry that is not taken.
    rank: u32,
    id: u32,
}

/// The part of a tokenizer.json that the model of `tokenizers` does not give away.
#[derive(Deserialize)]
struct TokenizerFile<'a> {
    #[serde(borrow)]
    model: ModelOfFile<'a>,
}

#[derive(Deserialize)]
struct ModelOfFile<'a> {
    #[serde(borrow)]
    merges: Vec<MergeOfFile<'a>>,
}

/// A merge in the newer form, and in the older one with a space between the tokens.
#[derive(Deserialize)]
#[serde(untagged)]
enum MergeOfFile<'a> {
    #[serde(borrow)]
    Pair((Cow<'a, str>, Cow<'a, str>)),
    #[serde(borrow)]
    Line(Cow<'a, str>),
}

impl MergeOfFile<'_> {
    /// Returns the two tokens, or none for a line that is no merge.
    fn tokens(&self) -> Option<(&str, &str)> {
        match self {
            MergeOfFile::Pair((left, right)) => Some((left, right)),
            MergeOfFile::Line(line) => line.split_once(' '),
        }
    }
}

impl MergeTable {
    /// Returns the table of a model from the text of its tokenizer.json, or none for a model that alters the tokens of a word's first
    /// or last byte, or drops merges.
    pub(super) fn new(model: &BPE, json: &str) -> Option<MergeTable> {
        let is_empty = |affix: &Option<String>| affix.as_ref().is_none_or(String::is_empty);
        let is_plain = is_empty(&model.continuing_subword_prefix) && is_empty(&model.end_of_word_suffix);
        if !is_plain || model.dropout.is_some() {
            return None;
        }
        let TokenizerFile { model: ModelOfFile { merges } } = serde_json::from_str(json).ok()?;
        let lines =
            |merge: &&MergeOfFile| !matches!(merge, MergeOfFile::Line(line) if line.starts_with("#version"));
        let id = |token: &str| model.token_to_id(token);
        let bytes = CHARACTERS.map(|character| id(character.encode_utf8(&mut [0; 4])).unwrap_or(NONE));
        let size = (2 * merges.len()).next_power_of_two().max(2);
        let free = Merge { left: NONE, right: NONE, rank: NONE, id: NONE };
        let mut table = MergeTable { bytes, entries: vec![free; size] };
        let mut merged = String::new();
        for (rank, merge) in merges.iter().filter(lines).enumerate() {
            let (left, right) = merge.tokens()?;
            merged.clear();
            merged.extend([left, right]);
            let (left, right, id) = (id(left)?, id(right)?, id(&merged)?);
            let slot = table.slot(left, right);
            // The last of equal pairs counts, as in `tokenizers`.
            table.entries[slot] = Merge { left, right, rank: u32::try_from(rank).ok()?, id };
        }
        Some(table)
    }

    /// Returns the index of a pair's entry, or of the free one that a search for it ends at.
    fn slot(&self, left: u32, right: u32) -> usize {
        let mask = self.entries.len() - 1;
        let pair = u64::from(left) << 32 | u64::from(right);
        let mixed = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (mixed >> 32) as usize & mask;
        loop {
            let entry = &self.entries[slot];
            if entry.rank == NONE || (entry.left == left && entry.right == right) {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Returns the rank and the id of the merge of two tokens; the rank is [`NONE`] if there is none.
    fn merge(&self, left: u32, right: u32) -> (u32, u32) {
        let entry = &self.entries[self.slot(left, right)];
        (entry.rank, entry.id)
    }

    /// Appends the ids of a word. Returns false, and appends none, for a word of more than 64 bytes and one with a byte
    /// that the vocabulary lacks.
    pub(super) fn encode(&self, word: &[u8], ids: &mut Vec<u32>) -> bool {
        if word.len() > MAX_WORD {
            return false;
        }
        let mut tokens = [NONE; MAX_WORD];
        // The merge of each token with the next.
        let mut merges = [(NONE, NONE); MAX_WORD];
        let mut count = word.len();
        for (token, &byte) in tokens.iter_mut().zip(word) {
            *token = self.bytes[usize::from(byte)];
            if *token == NONE {
                return false;
            }
        }
        for at in 1..count {
            merges[at - 1] = self.merge(tokens[at - 1], tokens[at]);
        }
        while count > 1 {
            let mut best = (NONE, 0);
            for (at, &(rank, _)) in merges[..count - 1].iter().enumerate() {
                if rank < best.0 {
                    best = (rank, at);
                }
            }
            let (rank, at) = best;
            if rank == NONE {
                break;
            }
            tokens[at] = merges[at].1;
            tokens.copy_within(at + 2..count, at + 1);
            merges.copy_within(at + 1..count, at);
            count -= 1;
            merges[count - 1] = (NONE, NONE);
            if at > 0 {
                merges[at - 1] = self.merge(tokens[at - 1], tokens[at]);
            }
            if at + 1 < count {
                merges[at] = self.merge(tokens[at], tokens[at + 1]);
            }
        }
        ids.extend_from_slice(&tokens[..count]);
        true
    }
}
