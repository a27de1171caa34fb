//! [`DecoderCache`], the keys and values of earlier positions.

use super::DECODER;
use super::model::Decoder;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The fewest positions that a cache has memory for.
const MIN_POSITIONS: usize = 64;

/// The keys and values of the positions that a [`Decoder`] has read, so that a new position costs one position's work. A cache
/// belongs to one batch and one model. Its memory grows with the positions, in powers of two.
#[derive(Debug, Clone, Default)]
pub struct DecoderCache {
    /// Keys and values of each layer, (batch, key heads, capacity, head dimension).
    layers: Vec<[Tensor; 2]>,
    length: usize,
    padding: Vec<usize>,
    /// The ids, if their keys may have to be computed anew.
    ids: Vec<Tensor>,
}

impl DecoderCache {
    /// Creates an empty cache for sequences of one length.
    pub fn new() -> DecoderCache {
        DecoderCache::default()
    }

    /// Creates an empty cache for sequences whose first `padding[i]` ids are padding, as in
    /// [`Decoder::forward_padded`].
    pub fn with_padding(padding: Vec<usize>) -> DecoderCache {
        DecoderCache { padding, ..DecoderCache::default() }
    }

    /// Returns the number of positions, with those of padding.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the padding of each sequence; empty if no sequence has any.
    pub fn padding(&self) -> &[usize] {
        &self.padding
    }

    /// Removes all positions. The memory stays.
    pub fn clear(&mut self) {
        self.length = 0;
        self.ids.clear();
    }

    /// Removes the positions from `length` on. All are removed if the keys may depend on the total length (longrope), so a caller
    /// goes on at [`length`](Self::length).
    pub fn truncate(&mut self, length: usize) {
        if length < self.length {
            self.length = if self.ids.is_empty() { length } else { 0 };
            self.ids.clear();
        }
    }

    /// Checks that ids belong to the batch, and the cache to the model.
    pub(super) fn check(&self, model: &Decoder, ids: &Tensor) -> Result<()> {
        let config = model.config();
        let Some([keys, _]) = self.layers.first() else { return Ok(()) };
        let (batch, shape) = (ids.shape()[0], keys.shape());
        let is_same = shape[..2] == [batch, config.key_heads] && shape[3] == config.head_dim;
        if is_same && self.layers.len() == config.layers() && keys.device() == model.device() {
            return Ok(());
        }
        let found = format!(
            "a batch of {batch}, {} layers and key heads of {}x{}",
            config.layers(),
            config.key_heads,
            config.head_dim
        );
        let wanted =
            format!("the cache's: {}, {} layers and {}x{}", shape[0], self.layers.len(), shape[1], shape[3]);
        Err(Error::invalid(DECODER, found, wanted))
    }

    /// Writes the keys and values of new positions of a layer behind `past` positions, and returns those of all.
    pub(super) fn extend(&mut self, layer: usize, new: [&Tensor; 2], past: usize) -> Result<[Tensor; 2]> {
        let &[batch, heads, count, width] = &new[0].shape()[..] else {
            return Err(Error::invalid(DECODER, format!("keys of shape {}", new[0].shape()), "four axes"));
        };
        let total = past + count;
        let capacity = self.layers.get(layer).map_or(0, |[keys, _]| keys.shape()[2]);
        if capacity < total {
            let sizes = [batch, heads, total.next_power_of_two().max(MIN_POSITIONS), width];
            let larger = |index: usize| -> Result<Tensor> {
                let mut memory = Tensor::zeros(&sizes, new[index].dtype(), &new[index].device())?;
                if let Some(old) = self.layers.get(layer) {
                    let old = old[index].narrow(2, 0, past)?;
                    memory.slice_mut(2, 0..past as isize)?.assign(&old)?;
                }
                Ok(memory)
            };
            let memory = [larger(0)?, larger(1)?];
            match self.layers.get_mut(layer) {
                Some(old) => *old = memory,
                None => self.layers.push(memory),
            }
        }
        let [keys, values] = &mut self.layers[layer];
        let write = |memory: &mut Tensor, new: &Tensor| -> Result<Tensor> {
            memory.slice_mut(2, past as isize..total as isize)?.assign(new)?;
            memory.narrow(2, 0, total)
        };
        Ok([write(keys, new[0])?, write(values, new[1])?])
    }

    /// Removes the positions of the last pass, which began behind `past`.
    pub(super) fn rewind(&mut self, past: usize) {
        self.ids.pop();
        self.length = past;
    }

    /// Returns the ids of all positions and new ones.
    pub(super) fn all_ids(&self, new: &Tensor) -> Result<Tensor> {
        let all: Vec<&Tensor> = self.ids.iter().chain([new]).collect();
        Tensor::cat(&all, 1)
    }

    /// Counts new positions, once all layers have them.
    pub(super) fn advance(&mut self, ids: &Tensor, length: usize, keeps_ids: bool) {
        if keeps_ids {
            self.ids.push(ids.clone());
        }
        self.length = length;
    }
}
