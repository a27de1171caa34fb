//! [`Batches`], windows of a text.

use std::ops::Range;

use super::data::{Split, TokenizedText};
use crate::error::{Error, Result};
use crate::nn::permutation::Permutation;
use crate::tensor::{Device, Generator, GeneratorState, Tensor};
use crate::types::DType;

const OPERATION: &str = "Batches";

/// Ids and the ids that follow them, both i64 of shape [batch, context].
#[derive(Debug, Clone)]
pub struct Batch {
    /// The ids.
    pub inputs: Tensor,
    /// The id after each of them.
    pub targets: Tensor,
}

/// Batches of windows of a part of a text, at random positions or in a [shuffled](Self::shuffled) order.
///
/// A window is `context` + 1 ids. Its position is a function of the seed, the number of the batch and the row: batch n draws from
/// the blocks of a [`Generator`]'s stream that belong to n. The number of the next batch is all that a checkpoint holds of the data.
///
/// Of several [ranks](Self::for_rank) each takes some rows of every batch, so the windows of a step do not depend on their count.
///
/// ```
/// use selvedge::Device;
/// use selvedge::nn::{Batches, ByteTokenizer, Split, TextFile, TokenizedText};
/// let text = TokenizedText::new(TextFile::from_bytes("0123456789".repeat(4)), &ByteTokenizer)?;
/// let mut batches = Batches::new(&text, Split::Training, 2, 4, 7)?;
/// batches.set_position(5);
/// let batch = batches.next_batch(&Device::cpu())?;
/// assert_eq!((batch.inputs.shape().to_string(), batches.position()), ("[2, 4]".to_owned(), 6));
/// assert_eq!(batch.targets.to_vec::<i64>()?, batches.batch(5, &Device::cpu())?.targets.to_vec::<i64>()?);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batches {
    text: TokenizedText,
    split: Split,
    batch: usize,
    context: usize,
    seed: u64,
    position: u64,
    order: Order,
    /// The rows of a batch that this rank takes.
    rows: Range<usize>,
}

/// The choice of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Random positions, which may overlap.
    Random,
    /// Windows side by side, each once an epoch.
    Shuffled,
}

impl Batches {
    /// Creates batches of `batch` rows of `context` ids, at random positions.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a batch or a context of 0, and with both numbers for a part of a text with fewer than
    /// `context` + 1 ids.
    pub fn new(
        text: &TokenizedText,
        split: Split,
        batch: usize,
        context: usize,
        seed: u64,
    ) -> Result<Batches> {
        if batch == 0 || context == 0 {
            let found = format!("a batch of {batch} rows and a context of {context} ids");
            return Err(Error::invalid(OPERATION, found, "at least 1 of each"));
        }
        let ids = text.range(split).len();
        if ids <= context {
            let part = if split == Split::Training { "training" } else { "validation" };
            let found = format!("{ids} ids in the {part} part of a text of {} ids", text.len());
            let wanted =
                format!("at least {}, the context of {context} and one more", context.saturating_add(1));
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        Ok(Batches {
            text: text.clone(),
            split,
            batch,
            context,
            seed,
            position: 0,
            order: Order::Random,
            rows: 0..batch,
        })
    }

    /// Takes windows side by side, each once an epoch, in an order that the seed and the epoch shuffle. Ids after the last whole
    /// window are left out. The order is computed and not stored, so a text of any length takes no memory for it, and a run resumes
    /// at any batch.
    pub fn shuffled(self) -> Batches {
        Batches { order: Order::Shuffled, ..self }
    }

    /// Takes the rows of one rank of several: of `batch` rows the same share of each, in order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a rank that is not below their number, and for a batch that they cannot share evenly.
    pub fn for_rank(self, rank: usize, ranks: usize) -> Result<Batches> {
        if rank >= ranks {
            let found = format!("rank {rank} of {ranks}");
            return Err(Error::invalid(OPERATION, found, "a rank below the number of ranks"));
        }
        if !self.batch.is_multiple_of(ranks) {
            let found = format!("a batch of {} rows for {ranks} ranks", self.batch);
            return Err(Error::invalid(
                OPERATION,
                found,
                "a batch that is a multiple of the number of ranks",
            ));
        }
        let share = self.batch / ranks;
        Ok(Batches { rows: rank * share..(rank + 1) * share, ..self })
    }

    /// Returns the number of the next batch.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Sets the number of the next batch, such as to a checkpoint's.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the next batch and advances the position.
    ///
    /// # Errors
    ///
    /// As [`batch`](Self::batch). The position stays then.
    pub fn next_batch(&mut self, device: &Device) -> Result<Batch> {
        let batch = self.batch(self.position, device)?;
        self.position = self.position.wrapping_add(1);
        Ok(batch)
    }

    /// Returns a batch by its number.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] and driver errors.
    pub fn batch(&self, index: u64, device: &Device) -> Result<Batch> {
        let starts = match self.order {
            Order::Random => self.random_starts(index)?,
            Order::Shuffled => self.shuffled_starts(index),
        };
        self.windows(&starts, device)
    }

    /// Returns the batches that cover the part once: windows side by side, in order, the last batch with fewer rows. Ids
    /// after the last whole window are left out.
    pub fn in_order<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = Result<Batch>> + 'a {
        let range = self.text.range(self.split);
        let count = range.len().saturating_sub(1) / self.context;
        (0..count).step_by(self.batch).map(move |first| {
            let last = first.saturating_add(self.batch).min(count);
            let starts: Vec<usize> =
                (first..last).map(|window| range.start + window * self.context).collect();
            self.windows(&starts, device)
        })
    }

    fn random_starts(&self, index: u64) -> Result<Vec<usize>> {
        let range = self.text.range(self.split);
        let count = range.len() - self.context;
        // `randint` takes two words an element, or four for more than 2³² positions; a block has four words.
        let words = if count as u64 > 1 << 32 { 4 } else { 2 };
        let blocks = (self.batch as u64).saturating_mul(words).div_ceil(4);
        let state = GeneratorState { seed: self.seed, offset: index.wrapping_mul(blocks) };
        let (cpu, count) = (Device::cpu(), count as u64);
        let starts =
            Generator::at(state).randint(0u64, count, &[self.batch], DType::I64, &cpu)?.to_vec::<i64>()?;
        let rows = starts.get(self.rows.clone()).unwrap_or_default();
        Ok(rows.iter().map(|&start| range.start + start as usize).collect())
    }

    fn shuffled_starts(&self, index: u64) -> Vec<usize> {
        let range = self.text.range(self.split);
        // At least one: a part has more ids than the context.
        let count = (range.len().saturating_sub(1) / self.context).max(1) as u64;
        let first = u128::from(index) * self.batch as u128;
        let start = |row: usize| {
            let sample = first + row as u128;
            let (epoch, index) = (sample / u128::from(count), sample % u128::from(count));
            let window = Permutation::new(count, self.seed, epoch as u64).at(index as u64);
            range.start + window as usize * self.context
        };
        self.rows.clone().map(start).collect()
    }

    /// Returns the batch of windows at positions of the text.
    fn windows(&self, starts: &[usize], device: &Device) -> Result<Batch> {
        let shape = [starts.len(), self.context];
        let tensor = |shift: usize| {
            let (mut ids, count) = (Vec::new(), starts.len().saturating_mul(self.context));
            if ids.try_reserve_exact(count).is_err() {
                let bytes = count.saturating_mul(size_of::<i64>());
                return Err(Error::host_memory(bytes, "the ids of a batch"));
            }
            for start in starts {
                let start = start + shift;
                self.text.extend_with(start..start + self.context, &mut ids)?;
            }
            Tensor::from_slice(&ids, &shape, device)
        };
        Ok(Batch { inputs: tensor(0)?, targets: tensor(1)? })
    }
}
