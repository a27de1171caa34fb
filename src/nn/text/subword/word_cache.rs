//! [`WordCache`], the ids of the pre-tokens that a thread has met.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The bytes of a word whose entry is in the table, at most.
const MAX_SHORT: usize = 15;
/// The ids of a word whose entry is in the table, at most.
const SHORT_IDS: usize = 4;
/// The entries of the table, a power of two: 2 MiB, which the second-level cache of a server's core holds.
const ENTRIES: usize = 1 << 16;
/// The bytes of a word that the cache has, at most.
const MAX_LONG: usize = 128;
/// The long words that the cache has, at most.
const MAX_LONG_WORDS: usize = 1 << 15;

/// No id of a vocabulary.
const NONE: u32 = u32::MAX;

/// The ids of words: a table of short ones with two entries a set, of which a new word replaces the one that was used before the other, and a map of others.
pub(super) struct WordCache {
    entries: Vec<Entry>,
    long: HashMap<Box<[u8]>, Box<[u32]>, BuildHasherDefault<WordHasher>>,
}

/// An entry of 32 bytes: half of a cache line.
#[derive(Clone, Copy)]
struct Entry {
    /// The bytes of the word and, in the highest byte, their count; 0 if the entry is free.
    key: u128,
    /// The ids, and [`NONE`] after them.
    ids: [u32; SHORT_IDS],
}

/// A multiplicative hash: words of a text are short, and their cache is no target.
#[derive(Default)]
pub(super) struct WordHasher(u64);

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

impl Default for WordCache {
    fn default() -> WordCache {
        let free = Entry { key: 0, ids: [NONE; SHORT_IDS] };
        WordCache { entries: vec![free; ENTRIES], long: HashMap::default() }
    }
}

impl WordCache {
    /// Appends the ids of the word `text[start..end]`, or returns false for a word that the cache lacks.
    pub(super) fn get(&mut self, text: &[u8], start: usize, end: usize, ids: &mut Vec<u32>) -> bool {
        let Some(key) = key_of(text, start, end) else {
            let Some(found) = self.long.get(&text[start..end]) else { return false };
            ids.extend_from_slice(found);
            return true;
        };
        let slot = self.slot(key);
        if self.entries[slot].key != key {
            if self.entries[slot + 1].key != key {
                return false;
            }
            self.entries.swap(slot, slot + 1);
        }
        let entry = &self.entries[slot];
        if entry.ids[1] == NONE {
            ids.push(entry.ids[0]);
        } else {
            ids.extend(entry.ids.into_iter().take_while(|&id| id != NONE));
        }
        true
    }

    /// Remembers the ids of the word `text[start..end]`.
    pub(super) fn insert(&mut self, text: &[u8], start: usize, end: usize, ids: &[u32]) {
        match key_of(text, start, end) {
            Some(key) if (1..=SHORT_IDS).contains(&ids.len()) => {
                let slot = self.slot(key);
                self.entries[slot + 1] = self.entries[slot];
                let mut entry = Entry { key, ids: [NONE; SHORT_IDS] };
                entry.ids[..ids.len()].copy_from_slice(ids);
                self.entries[slot] = entry;
            }
            // A short word of many ids is rare, and its merges are few.
            Some(_) => {}
            None if end - start <= MAX_LONG => {
                if self.long.len() >= MAX_LONG_WORDS {
                    self.long.clear();
                }
                self.long.insert(text[start..end].into(), ids.into());
            }
            None => {}
        }
    }

    /// Returns the index of the first of the two entries that a word may have.
    fn slot(&self, key: u128) -> usize {
        let (low, high) = (key as u64, (key >> 64) as u64);
        let mixed = (low ^ high.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize & (self.entries.len() - 2)
    }
}

/// Returns the key of a short word, or none for a long one.
fn key_of(text: &[u8], start: usize, end: usize) -> Option<u128> {
    let length = end - start;
    if length > MAX_SHORT {
        return None;
    }
    let bytes = match text.get(start..start + 16).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()) {
        Some(bytes) => bytes,
        None => {
            let mut bytes = [0; 16];
            bytes[..length].copy_from_slice(&text[start..end]);
            bytes
        }
    };
    let word = u128::from_le_bytes(bytes) & ((1 << (8 * length)) - 1);
    Some(word | (length as u128) << 120)
}
