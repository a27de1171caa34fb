//! The encoding of a long text on several threads.

use std::sync::{Mutex, PoisonError};

use super::encoder::WordCache;
use super::tokenizer::SubwordTokenizer;
use crate::error::Result;
use crate::threads;

/// The bytes that one thread encodes at a time.
const PART: usize = 1 << 18;
/// The parts of a round for each thread, so that none waits long for another.
const PARTS_PER_THREAD: usize = 4;

impl SubwordTokenizer {
    /// Encodes a text on several threads, and calls `sink` with the ids of one part after the other and the bytes of the part. The
    /// ids of all parts together are those of [`encode_bytes`](crate::nn::Tokenizer::encode_bytes).
    ///
    /// A tokenizer that is not byte-level, and a text without spaces before words, are one part.
    ///
    /// # Errors
    ///
    /// As `encode_bytes`, and the errors of `sink`.
    pub fn encode_parts(&self, text: &[u8], sink: &mut dyn FnMut(&[u32], usize) -> Result<()>) -> Result<()> {
        let threads = threads::thread_count();
        let caches: Mutex<Vec<WordCache>> = Mutex::new(Vec::new());
        let caches = || caches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = text;
        while !rest.is_empty() {
            let mut parts: Vec<(&[u8], Result<Vec<u32>>)> = Vec::new();
            while !rest.is_empty() && parts.len() < threads * PARTS_PER_THREAD {
                let (part, others) = rest.split_at(self.part_len(rest, PART));
                parts.push((part, Ok(Vec::new())));
                rest = others;
            }
            threads::in_units(threads, 1, &mut parts, |_, parts| {
                let mut cache = caches().pop().unwrap_or_default();
                for (part, ids) in parts {
                    *ids = self.encode_with(part, &mut cache);
                }
                caches().push(cache);
            });
            for (part, ids) in parts {
                sink(&ids?, part.len())?;
            }
        }
        Ok(())
    }
}
