//! [`DecoderCache`], the keys and values of earlier positions.

use super::DECODER;
use super::step_state::DecodeStep;
use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor};
use crate::types::DType;

/// The multiple that the positions of a cache are rounded up to.
const POSITIONS: usize = 64;

/// The keys and values of the positions that a [`Decoder`](super::Decoder) has read, so that a new position costs one position's work. A cache
/// belongs to one batch and one model. Each sequence begins at position 0 and has a length of its own. The memory doubles where it does not
/// hold new positions; [`reserve`](Self::reserve) takes it at once.
#[derive(Debug, Default)]
pub struct DecoderCache {
    /// Keys and values of each layer, (batch, key heads, capacity, head dimension).
    layers: Vec<[Tensor; 2]>,
    /// The positions of each sequence.
    lengths: Vec<usize>,
    reserved: usize,
    is_batch_invariant: bool,
    /// The ids of each sequence, if their keys may have to be computed anew.
    ids: Vec<Vec<i64>>,
    /// The steps of one position on a CUDA device.
    pub(super) step: Option<Box<DecodeStep>>,
}

impl Clone for DecoderCache {
    /// Returns a cache of the same positions, whose memory is shared until one of them changes.
    fn clone(&self) -> DecoderCache {
        let DecoderCache { layers, lengths, reserved, is_batch_invariant, ids, step: _ } = self;
        DecoderCache {
            layers: layers.clone(),
            lengths: lengths.clone(),
            reserved: *reserved,
            is_batch_invariant: *is_batch_invariant,
            ids: ids.clone(),
            step: None,
        }
    }
}

/// The sizes of a model that its cache follows from.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheSizes {
    pub layers: usize,
    pub key_heads: usize,
    pub head_dim: usize,
}

/// New positions of the sequences of a cache.
pub(super) struct NewPositions<'a> {
    /// The positions of each sequence before the new ones.
    pub past: &'a [usize],
    /// The new positions of each sequence.
    pub counts: &'a [usize],
}

impl NewPositions<'_> {
    /// Returns whether all sequences have the same positions.
    pub fn are_uniform(&self) -> bool {
        let is_one = |lengths: &[usize]| lengths.windows(2).all(|pair| pair[0] == pair[1]);
        is_one(self.past) && is_one(self.counts)
    }

    /// Returns the length of each sequence with the new positions.
    pub fn totals(&self) -> impl Iterator<Item = usize> {
        self.past.iter().zip(self.counts).map(|(past, count)| past + count)
    }

    /// Returns the largest of [`totals`](Self::totals).
    pub fn longest(&self) -> usize {
        self.totals().max().unwrap_or(0)
    }
}

impl DecoderCache {
    /// Creates an empty cache.
    pub fn new() -> DecoderCache {
        DecoderCache::default()
    }

    /// Creates an empty cache with which the bits of a sequence's logits depend neither on the other sequences of the batch nor on the parts in
    /// which its prompt is read ([`Decoder::prefill`](super::Decoder::prefill)).
    ///
    /// Ids of prompts and generated ids have algorithms of their own, so a text has the same bits if each id has the same role. Passes record
    /// no gradients. On a device, products of many rows take longer than others. The first pass is an error where no such
    /// algorithms are: on the CPU for other dtypes than f32, on a device for others than f16 and bf16 and for head dimensions and compute
    /// capabilities without attention that stores no scores, and for rotary frequencies that depend on the total length
    /// (longrope).
    pub fn batch_invariant() -> DecoderCache {
        DecoderCache { is_batch_invariant: true, ..DecoderCache::default() }
    }

    /// Returns whether the bits of a sequence's logits depend on it alone.
    pub fn is_batch_invariant(&self) -> bool {
        self.is_batch_invariant
    }

    /// Returns the number of positions of the longest sequence.
    pub fn length(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// Returns the number of positions of each sequence; empty before the first pass.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Takes memory for so many positions of each sequence in the next pass, if the cache has less.
    pub fn reserve(&mut self, positions: usize) {
        self.reserved = self.reserved.max(positions);
    }

    /// Removes all positions. The memory stays.
    pub fn clear(&mut self) {
        self.lengths.clear();
        self.ids.clear();
    }

    /// Removes the positions from `length` on. All are removed if the keys may depend on the total length (longrope), so a caller
    /// goes on at [`length`](Self::length).
    pub fn truncate(&mut self, length: usize) {
        if length >= self.length() {
            return;
        }
        match self.ids.is_empty() {
            true => self.lengths.iter_mut().for_each(|own| *own = length.min(*own)),
            false => self.clear(),
        }
    }

    /// Returns the positions of each of `batch` sequences.
    pub(super) fn past(&self, batch: usize) -> Vec<usize> {
        if self.lengths.is_empty() { vec![0; batch] } else { self.lengths.clone() }
    }

    /// Returns the positions that the memory holds.
    pub(super) fn capacity(&self) -> usize {
        self.layers.first().map_or(0, |[keys, _]| keys.shape()[2])
    }

    /// Checks that ids belong to the batch, and the cache to the model.
    pub(super) fn check(&self, sizes: CacheSizes, ids: &Tensor) -> Result<()> {
        let Some([keys, _]) = self.layers.first() else { return Ok(()) };
        let (batch, shape) = (ids.shape()[0], keys.shape());
        let is_same = shape[..2] == [batch, sizes.key_heads] && shape[3] == sizes.head_dim;
        if is_same && self.layers.len() == sizes.layers && keys.device() == ids.device() {
            return Ok(());
        }
        let found = format!(
            "a batch of {batch}, {} layers and key heads of {}x{}",
            sizes.layers, sizes.key_heads, sizes.head_dim
        );
        let wanted =
            format!("the cache's: {}, {} layers and {}x{}", shape[0], self.layers.len(), shape[1], shape[3]);
        Err(Error::invalid(DECODER, found, wanted))
    }

    /// Makes memory for `total` positions of a layer, with those that it has.
    fn grow(
        &mut self,
        layer: usize,
        [batch, heads, width]: [usize; 3],
        total: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<()> {
        let old = self.layers.get(layer);
        let capacity = old.map_or(0, |[keys, _]| keys.shape()[2]);
        if capacity >= total {
            return Ok(());
        }
        let positions = total.max(self.reserved).max(2 * capacity).next_multiple_of(POSITIONS);
        let count = self.length().min(capacity);
        let larger = |index: usize| -> Result<Tensor> {
            let mut memory = Tensor::zeros(&[batch, heads, positions, width], dtype, device)?;
            if let Some(old) = old.filter(|_| count > 0) {
                let old = old[index].narrow(2, 0, count)?;
                memory.slice_mut(2, 0..count as isize)?.assign(&old)?;
            }
            Ok(memory)
        };
        let memory = [larger(0)?, larger(1)?];
        match self.layers.get_mut(layer) {
            Some(old) => *old = memory,
            None => self.layers.push(memory),
        }
        Ok(())
    }

    /// Makes memory for `total` positions of all layers.
    pub(super) fn make_room(
        &mut self,
        sizes: CacheSizes,
        [batch, total]: [usize; 2],
        dtype: DType,
        device: &Device,
    ) -> Result<()> {
        let CacheSizes { layers, key_heads, head_dim } = sizes;
        let sizes = [batch, key_heads, head_dim];
        (0..layers).try_for_each(|layer| self.grow(layer, sizes, total, dtype, device))
    }

    /// Returns keys and values of a layer for an operation that writes new positions itself.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a layer without memory.
    pub(super) fn layer_mut(&mut self, layer: usize) -> Result<&mut [Tensor; 2]> {
        let missing = || {
            let found = format!("a cache without layer {layer}");
            Error::invalid(DECODER, found, "the cache of this model")
        };
        self.layers.get_mut(layer).ok_or_else(missing)
    }

    /// Returns whether no other cache shares the memory.
    pub(super) fn is_unique(&self) -> bool {
        self.layers.iter().flatten().all(Tensor::is_unique)
    }

    /// Writes the keys and values of new positions of a layer, (batch, key heads, new positions, head dimension), and returns those of
    /// all positions. Positions behind a sequence's last one have no meaning.
    pub(super) fn extend(
        &mut self,
        layer: usize,
        new: [&Tensor; 2],
        positions: &NewPositions<'_>,
    ) -> Result<[Tensor; 2]> {
        let &[batch, heads, _, width] = &new[0].shape()[..] else {
            return Err(Error::invalid(DECODER, format!("keys of shape {}", new[0].shape()), "four axes"));
        };
        let total = positions.longest();
        self.grow(layer, [batch, heads, width], total, new[0].dtype(), &new[0].device())?;
        let [keys, values] = &mut self.layers[layer];
        let write = |memory: &mut Tensor, new: &Tensor| -> Result<Tensor> {
            let NewPositions { past, counts } = *positions;
            // In an empty cache the positions behind a shorter sequence are written over later.
            let is_alike = positions.are_uniform() || past.iter().all(|&past| past == 0);
            match is_alike {
                true => {
                    let past = past.first().copied().unwrap_or(0);
                    let count = counts.iter().copied().max().unwrap_or(0);
                    let range = past as isize..(past + count) as isize;
                    memory.slice_mut(2, range)?.assign(&new.narrow(2, 0, count)?)?;
                }
                false => {
                    let new_counts = past.iter().zip(counts).enumerate();
                    for (index, (&past, &count)) in new_counts.filter(|(_, (_, count))| **count > 0) {
                        let own = new.narrow(0, index, 1)?.narrow(2, 0, count)?;
                        let sequence = memory.slice_mut(0, index as isize..index as isize + 1)?;
                        sequence.slice(2, past as isize..(past + count) as isize)?.assign(&own)?;
                    }
                }
            }
            memory.narrow(2, 0, total)
        };
        Ok([write(keys, new[0])?, write(values, new[1])?])
    }

    /// Removes the last `count` positions of each sequence.
    pub(super) fn rewind(&mut self, counts: &[usize]) {
        for (length, count) in self.lengths.iter_mut().zip(counts) {
            *length = length.saturating_sub(*count);
        }
        for (ids, length) in self.ids.iter_mut().zip(&self.lengths) {
            ids.truncate(*length);
        }
    }

    /// Returns the ids of all positions and the first `counts` of new ones, with ids of 0 behind those of shorter sequences.
    pub(super) fn all_ids(&self, new: &Tensor, counts: &[usize]) -> Result<(Tensor, Vec<usize>)> {
        let mut all = self.ids.clone();
        all.resize(counts.len(), Vec::new());
        append(&mut all, new, counts)?;
        let totals: Vec<usize> = all.iter().map(Vec::len).collect();
        let longest = totals.iter().copied().max().unwrap_or(0);
        let padded: Vec<i64> = all
            .iter()
            .flat_map(|ids| ids.iter().copied().chain(std::iter::repeat_n(0, longest - ids.len())))
            .collect();
        Ok((Tensor::from_vec(padded, &[counts.len(), longest], &new.device())?, totals))
    }

    /// Counts new positions, once all layers have them. `keeps_ids` is whether their keys may have to be computed anew.
    pub(super) fn advance(&mut self, ids: &Tensor, counts: &[usize], keeps_ids: bool) -> Result<()> {
        if keeps_ids {
            self.ids.resize(counts.len(), Vec::new());
            append(&mut self.ids, ids, counts)?;
        }
        self.count(counts);
        Ok(())
    }

    /// Counts new positions.
    pub(super) fn count(&mut self, counts: &[usize]) {
        self.lengths.resize(counts.len(), 0);
        for (length, count) in self.lengths.iter_mut().zip(counts) {
            *length += count;
        }
    }
}

/// Adds the first `counts` ids of (batch, length) to those of each sequence.
fn append(all: &mut [Vec<i64>], ids: &Tensor, counts: &[usize]) -> Result<()> {
    let length = ids.shape()[1];
    let ids = ids.cast(DType::I64)?.to_vec::<i64>()?;
    for ((own, row), &count) in all.iter_mut().zip(ids.chunks_exact(length)).zip(counts) {
        own.extend(row.iter().take(count));
    }
    Ok(())
}
