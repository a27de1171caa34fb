//! [`KeyValueCache`], the keys and values of earlier positions.

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::types::DType;

const OPERATION: &str = "KeyValueCache";

/// The keys and values of the positions that a [`Gpt`](super::Gpt) has read, so that a new position costs one position's
/// work. A cache belongs to one batch and one model.
#[derive(Debug, Clone, Default)]
pub struct KeyValueCache {
    /// Keys and values of each block, (batch, heads, context, head dimension).
    blocks: Vec<[Tensor; 2]>,
    length: usize,
}

impl KeyValueCache {
    /// Creates an empty cache, which takes memory at its first use.
    pub fn new() -> KeyValueCache {
        KeyValueCache::default()
    }

    /// Returns the number of positions.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Removes all positions. The memory stays.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    pub(super) fn check_batch(&self, batch: usize, blocks: usize) -> Result<()> {
        let Some([keys, _]) = self.blocks.first() else { return Ok(()) };
        if keys.shape()[0] == batch && self.blocks.len() == blocks {
            return Ok(());
        }
        let found = format!("a batch of {batch} and {blocks} blocks");
        let wanted = format!("the cache's: {} and {}", keys.shape()[0], self.blocks.len());
        Err(Error::invalid(OPERATION, found, wanted))
    }

    /// Writes the keys and values of new positions of a block, and returns those of all positions.
    pub(super) fn extend(
        &mut self,
        block: usize,
        keys: &Tensor,
        values: &Tensor,
        context: usize,
    ) -> Result<(Tensor, Tensor)> {
        let new = [keys, values];
        if self.blocks.len() == block {
            let empty = new.map(|part| {
                let shape = part.shape();
                Tensor::zeros(&[shape[0], shape[1], context, shape[3]], part.dtype(), &part.device())
            });
            let [keys, values] = empty;
            self.blocks.push([keys?, values?]);
        }
        let Some(block) = self.blocks.get_mut(block) else {
            return Err(Error::invalid(
                OPERATION,
                format!("block {block}"),
                "the blocks of the model in order",
            ));
        };
        let (start, count) = (self.length, keys.shape()[2]);
        let mut all = Vec::with_capacity(2);
        for (cached, part) in block.iter_mut().zip(new) {
            cached.slice_mut(2, start as isize..(start + count) as isize)?.assign(part)?;
            all.push(cached.narrow(2, 0, start + count)?);
        }
        match <[Tensor; 2]>::try_from(all) {
            Ok([keys, values]) => Ok((keys, values)),
            Err(_) => Err(Error::invalid(OPERATION, "keys or values alone", "both")),
        }
    }

    /// Returns the memory of the keys and values of a block that has some.
    pub(super) fn slices_mut(&mut self, block: usize) -> Result<[&mut [f32]; 2]> {
        let Some([keys, values]) = self.blocks.get_mut(block) else {
            return Err(Error::invalid(OPERATION, format!("block {block}"), "a block of the cache"));
        };
        Ok([keys.as_slice_mut()?, values.as_slice_mut()?])
    }

    /// Returns whether it has the keys and values of so many blocks, in f32 on the CPU, of (heads, context, head dimension).
    pub(super) fn is_on_host(&self, blocks: usize, sizes: [usize; 3]) -> bool {
        let is_on_host = |part: &Tensor| {
            part.device().is_cpu() && part.dtype() == DType::F32 && part.shape().ends_with(&sizes)
        };
        self.blocks.len() == blocks && self.blocks.iter().flatten().all(is_on_host)
    }

    /// Counts new positions, once all blocks have them.
    pub(super) fn advance(&mut self, count: usize) {
        self.length += count;
    }
}
