//! Which probabilities are dropped: the offset of an attention's random bits in a generator's stream, and their mask.

use std::sync::OnceLock;

use super::super::device::Device;
use super::super::element_generator::ElementGenerator;
use super::super::fused::Fused;
use super::super::random::{CapturedPhiloxState, Generator, memory_of_draw, seed_and_offset_of_draw};
use super::super::tensor::Tensor;
use super::OPERATION;
use crate::attention::Dropout;
use crate::error::Result;
use crate::types::{DType, Shape};

/// The Philox state of random bits: values, or memory that a captured step reads.
#[derive(Clone)]
pub(super) struct DropoutState {
    pub dropout: Dropout,
    pub memory: Option<CapturedPhiloxState>,
}

impl DropoutState {
    /// Takes so many blocks of a generator.
    ///
    /// # Errors
    ///
    /// [`Error::NotCapturable`](crate::Error::NotCapturable) for a capture that does not know the generator.
    pub fn take(
        generator: Option<&Generator>,
        threshold: u32,
        blocks: u64,
        device: &Device,
    ) -> Result<DropoutState> {
        let generator = generator.cloned().unwrap_or_else(|| device.generator());
        Ok(match memory_of_draw(OPERATION, &generator, blocks, device)? {
            Some(memory) => {
                let dropout = Dropout { seed: 0, offset: memory.before, threshold };
                DropoutState { dropout, memory: Some(memory) }
            }
            None => {
                let [seed, offset] = seed_and_offset_of_draw(OPERATION, &generator, blocks)?;
                DropoutState { dropout: Dropout { seed, offset, threshold }, memory: None }
            }
        })
    }
}

/// Returns bools of (sequence, head, query, key) that are true for probabilities that are kept, by the next random bits of a generator.
///
/// # Errors
///
/// As [`DropoutState::take`]; [`Error::OutOfMemory`](crate::Error::OutOfMemory).
pub(super) fn keep_mask(
    generator: Option<&Generator>,
    threshold: u32,
    [batch, heads, queries, keys]: [usize; 4],
    device: &Device,
) -> Result<Tensor> {
    static HALVES: OnceLock<[Fused<2>; 2]> = OnceLock::new();
    let generator = generator.cloned().unwrap_or_else(|| device.generator());
    let (rows, columns) = (queries.div_ceil(16), keys.div_ceil(16));
    let all_heads = batch * heads;
    let blocks = Dropout::blocks(batch, heads, queries, keys);
    let words =
        ElementGenerator { operation: OPERATION, dtype: DType::U32, compute: DType::U32, operands: [] };
    let words = words.draw(
        &Shape::new(&[all_heads, rows, columns, 8, 4, 2, 2, 1])?,
        device,
        (&generator, blocks),
        [],
        |graph, [], [seed, offset], []| {
            let [word] = graph.random(DType::U32, seed, offset);
            word
        },
    )?;
    // A word has the bits of two neighbouring keys. A captured step has no copies from the host.
    let halves = HALVES.get_or_init(|| {
        [
            Fused::new(|[word, least]| (word & 0xffff_i64).ge(least)),
            Fused::new(|[word, least]| (word >> 16_i64).ge(least)),
        ]
    });
    let [low, high] = halves.each_ref().map(|half| half.run((&words, f64::from(threshold))));
    let kept = Tensor::cat(&[&low?, &high?], -1)?;
    // (head, row block, column block, row, pair, column half, row half, column) to (head, query, key).
    let ordered = kept.permute(&[0, 1, 6, 3, 2, 5, 4, 7])?;
    let sizes = [all_heads, 16 * rows, 16 * columns].map(|size| size as isize);
    let all = ordered.reshape(&sizes)?.narrow(1, 0, queries)?.narrow(2, 0, keys)?;
    all.reshape(&[batch, heads, queries, keys].map(|size| size as isize))
}
