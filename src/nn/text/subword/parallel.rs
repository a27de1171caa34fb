//! The encoding of documents on several threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tokenizer::SubwordTokenizer;
use crate::error::Result;
use crate::threads;

/// The bytes that one thread encodes or counts at a time.
pub(super) const PART: usize = 1 << 18;

/// A part of a document.
struct Part<T> {
    document: Arc<T>,
    start: usize,
    end: usize,
    is_last: bool,
}

/// The parts that no thread has taken.
struct Source<T, I> {
    documents: I,
    /// The document that is divided, and the start of its next part.
    open: Option<(Arc<T>, usize)>,
    /// The parts that were taken.
    count: usize,
}

/// The parts whose ids wait for those before them.
struct Delivery<'a> {
    sink: &'a mut (dyn FnMut(&[u32], usize) -> Result<()> + Send),
    /// The number of the part that the sink gets next.
    next: usize,
    waiting: BTreeMap<usize, (Result<Vec<u32>>, usize)>,
    result: Result<()>,
}

impl<T: AsRef<[u8]>, I: Iterator<Item = Result<T>>> Source<T, I> {
    /// Takes the next part, whose number comes with it.
    fn next(&mut self, tokenizer: &SubwordTokenizer) -> Option<(usize, Result<Part<T>>)> {
        let (document, start) = match self.open.take() {
            Some(open) => open,
            None => match self.documents.next()? {
                Ok(document) => (Arc::new(document), 0),
                Err(error) => {
                    self.count += 1;
                    return Some((self.count - 1, Err(error)));
                }
            },
        };
        let rest = (*document).as_ref().get(start..).unwrap_or_default();
        let end = start + tokenizer.part_len(rest, PART);
        let is_last = end - start == rest.len();
        if !is_last {
            self.open = Some((Arc::clone(&document), end));
        }
        self.count += 1;
        Some((self.count - 1, Ok(Part { document, start, end, is_last })))
    }
}

impl Delivery<'_> {
    /// Hands the sink a part and those that waited for it. Returns false once a part or the sink has failed.
    fn deliver(&mut self, index: usize, ids: Result<Vec<u32>>, length: usize) -> bool {
        self.waiting.insert(index, (ids, length));
        while self.result.is_ok()
            && let Some((ids, length)) = self.waiting.remove(&self.next)
        {
            self.next += 1;
            self.result = ids.and_then(|ids| (self.sink)(&ids, length));
        }
        self.result.is_ok()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SubwordTokenizer {
    /// Encodes documents on several threads, and calls `sink` with the ids of one part after the other and the bytes of the part.
    /// The ids of a document's parts together are those of [`encode_bytes`](crate::nn::Tokenizer::encode_bytes); `end` follows
    /// those of each document.
    ///
    /// A document of a tokenizer that is not byte-level, and one without spaces before words, is one part. The threads call `sink`,
    /// one at a time, while others encode.
    ///
    /// ```
    /// use selvedge::nn::{BpeOptions, SubwordTokenizer, Tokenizer};
    /// let tokenizer = SubwordTokenizer::train(["a text".as_bytes()], &BpeOptions { vocab_size: 257, ..BpeOptions::default() })?;
    /// let mut ids = Vec::new();
    /// tokenizer.encode_documents(["one", "two"].map(Ok).into_iter(), tokenizer.end_id(), &mut |part, _bytes| {
    ///     ids.extend_from_slice(part);
    ///     Ok(())
    /// })?;
    /// assert_eq!(tokenizer.decode(&ids)?, "one<|endoftext|>two<|endoftext|>");
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As `encode_bytes`, and the errors of `documents` and `sink`. The sink has got the parts before the error.
    pub fn encode_documents<T: AsRef<[u8]> + Send + Sync>(
        &self,
        documents: impl Iterator<Item = Result<T>> + Send,
        end: Option<u32>,
        sink: &mut (dyn FnMut(&[u32], usize) -> Result<()> + Send),
    ) -> Result<()> {
        let source = Mutex::new(Source { documents, open: None, count: 0 });
        let delivery = Delivery { sink, next: 0, waiting: BTreeMap::new(), result: Ok(()) };
        let delivery = Mutex::new(delivery);
        threads::run_on_threads(threads::thread_count(), &|| {
            self.with_cache(|cache| {
                loop {
                    // Not in the condition of a `while let`, which would hold the lock.
                    let next = lock(&source).next(self);
                    let Some((index, part)) = next else { break };
                    let mut length = 0;
                    let ids = part.and_then(|part| {
                        let text = (*part.document).as_ref().get(part.start..part.end).unwrap_or_default();
                        length = text.len();
                        let mut ids = self.encode_with(text, cache)?;
                        ids.extend(end.filter(|_| part.is_last));
                        Ok(ids)
                    });
                    if !lock(&delivery).deliver(index, ids, length) {
                        break;
                    }
                }
            });
        });
        delivery.into_inner().unwrap_or_else(PoisonError::into_inner).result
    }
}
