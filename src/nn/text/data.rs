//! [`TokenizedText`], the ids of a text.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::text_file::TextFile;
use super::token_files::TokenFiles;
use super::tokenizer::Tokenizer;
use crate::error::{Error, Result};

/// The part of a text that batches come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// The beginning, for steps of the optimizer.
    Training,
    /// The rest, for evaluations.
    Validation,
}

/// The token ids of a text, and their division into training and validation. A clone shares the ids.
///
/// ```
/// use selvedge::nn::{ByteTokenizer, Split, TextFile, TokenizedText};
/// let text = TokenizedText::new(TextFile::from_bytes("0123456789"), &ByteTokenizer)?;
/// assert_eq!((text.range(Split::Training), text.range(Split::Validation)), (0..9, 9..10));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone)]
pub struct TokenizedText {
    ids: Ids,
    hash: Arc<str>,
    training: usize,
}

#[derive(Clone)]
enum Ids {
    /// The ids are the bytes of the text.
    Bytes(Arc<TextFile>),
    Words(Arc<[u32]>),
    Files(Arc<TokenFiles>),
}

const TRAINING_FRACTION: f64 = 0.9;

impl TokenizedText {
    /// Encodes a text. The first 0.9 of its ids are the training part.
    ///
    /// A [mapped](TextFile::map) text of [`ByteTokenizer`](super::ByteTokenizer) stays where it is.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode_bytes`].
    pub fn new(text: TextFile, tokenizer: &dyn Tokenizer) -> Result<TokenizedText> {
        let hash = text.hash().into();
        let ids = if tokenizer.has_byte_ids() {
            Ids::Bytes(Arc::new(text))
        } else {
            Ids::Words(tokenizer.encode_bytes(&text)?.into())
        };
        TokenizedText { ids, hash, training: 0 }.with_training_fraction(TRAINING_FRACTION)
    }

    /// Takes ids. The first 0.9 of them are the training part. The hash is that of the ids in little-endian `u32`.
    ///
    /// ```
    /// use selvedge::nn::{Split, TokenizedText};
    /// let text = TokenizedText::from_ids([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])?;
    /// assert_eq!((text.largest_id(), text.ids(text.range(Split::Validation))?), (9, vec![3]));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`with_training_fraction`](Self::with_training_fraction).
    pub fn from_ids(ids: impl Into<Arc<[u32]>>) -> Result<TokenizedText> {
        let ids: Arc<[u32]> = ids.into();
        let mut hash = Sha256::new();
        ids.iter().for_each(|id| hash.update(id.to_le_bytes()));
        let hash = format!("{:x}", hash.finalize()).into();
        TokenizedText { ids: Ids::Words(ids), hash, training: 0 }.with_training_fraction(TRAINING_FRACTION)
    }

    /// Takes the ids of token files. The first 0.9 of them are the training part.
    ///
    /// # Errors
    ///
    /// As [`with_training_fraction`](Self::with_training_fraction).
    pub fn from_files(files: TokenFiles) -> Result<TokenizedText> {
        let hash = files.hash().into();
        let ids = Ids::Files(Arc::new(files));
        TokenizedText { ids, hash, training: 0 }.with_training_fraction(TRAINING_FRACTION)
    }

    /// Takes the ids of token files for training, and those of others for validation.
    pub fn from_parts(training: TokenFiles, validation: TokenFiles) -> TokenizedText {
        let count = training.len();
        let files = training.chain(validation);
        TokenizedText { hash: files.hash().into(), ids: Ids::Files(Arc::new(files)), training: count }
    }

    /// Sets the fraction of the ids that are the training part, rounded down to whole ids.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number outside 0 to 1.
    pub fn with_training_fraction(self, fraction: f64) -> Result<TokenizedText> {
        if !(0.0..=1.0).contains(&fraction) {
            let found = format!("a training fraction of {fraction}");
            return Err(Error::invalid("TokenizedText", found, "a number from 0 to 1"));
        }
        let training = (self.len() as f64 * fraction) as usize;
        Ok(TokenizedText { training: training.min(self.len()), ..self })
    }

    /// Returns the number of ids.
    pub fn len(&self) -> usize {
        match &self.ids {
            Ids::Bytes(bytes) => bytes.len(),
            Ids::Words(words) => words.len(),
            Ids::Files(files) => files.len(),
        }
    }

    /// Returns whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the largest id, which is 0 for no ids. A model whose vocabulary has no more ids than that does not fit.
    pub fn largest_id(&self) -> u32 {
        match &self.ids {
            Ids::Bytes(bytes) => bytes.iter().max().copied().map_or(0, u32::from),
            Ids::Words(words) => words.iter().max().copied().unwrap_or_default(),
            Ids::Files(files) => files.largest_id(),
        }
    }

    /// Returns the positions of a part.
    pub fn range(&self, split: Split) -> Range<usize> {
        match split {
            Split::Training => 0..self.training,
            Split::Validation => self.training..self.len(),
        }
    }

    /// Returns the entropy of single ids in nats: the loss of a model that knows nothing but how often each id occurs.
    pub fn unigram_entropy(&self) -> f64 {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let mut count = |id: u32| *counts.entry(id).or_default() += 1;
        match &self.ids {
            Ids::Bytes(bytes) => bytes.iter().for_each(|&id| count(u32::from(id))),
            Ids::Words(words) => words.iter().for_each(|&id| count(id)),
            // All positions are inside.
            Ids::Files(files) => files.each_id(0..files.len(), count).unwrap_or_default(),
        }
        let total = self.len() as f64;
        let probabilities = counts.values().map(|&count| count as f64 / total);
        -probabilities.map(|p| p * p.ln()).sum::<f64>()
    }

    /// Returns the ids at positions.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for positions outside the text.
    pub fn ids(&self, range: Range<usize>) -> Result<Vec<u32>> {
        let (start, end, length) = (range.start, range.end, self.len());
        let outside = || Error::OutOfRange { start, end, length };
        match &self.ids {
            Ids::Bytes(bytes) => {
                Ok(bytes.get(range).ok_or_else(outside)?.iter().map(|&id| u32::from(id)).collect())
            }
            Ids::Words(words) => Ok(words.get(range).ok_or_else(outside)?.to_vec()),
            Ids::Files(files) => files.ids(range),
        }
    }

    /// Returns the SHA-256 of the text, or of the ids and the parts of token files, in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Appends the ids at positions.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for positions outside the text.
    pub(super) fn extend_with(&self, range: Range<usize>, ids: &mut Vec<i64>) -> Result<()> {
        let (start, end, length) = (range.start, range.end, self.len());
        let outside = || Error::OutOfRange { start, end, length };
        match &self.ids {
            Ids::Bytes(bytes) => {
                ids.extend(bytes.get(range).ok_or_else(outside)?.iter().map(|&id| i64::from(id)))
            }
            Ids::Words(words) => {
                ids.extend(words.get(range).ok_or_else(outside)?.iter().map(|&id| i64::from(id)))
            }
            Ids::Files(files) => files.each_id(range, |id| ids.push(i64::from(id)))?,
        }
        Ok(())
    }
}

impl fmt::Debug for TokenizedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TokenizedText({} ids, {} of them for training)", self.len(), self.training)
    }
}
