//! The tiles of a scan, which fix its order, and their scratch memory.

use super::reduction::{BLOCK, WARP};
use crate::fuse::language::fold::FoldRules;

/// The adjacent elements of a thread.
pub(in crate::fuse) const QUAD: usize = 4;
/// Warps of a tile.
pub(in crate::fuse) const WARPS: usize = BLOCK / WARP;
/// Tiles of a group, a power of two of at least a block's threads. It is large enough that the latency
/// between groups does not exceed the time for a group's elements, because groups wait for each other, and
/// small enough that a thread waits for few tiles.
pub(in crate::fuse) const GROUP: usize = 512;
/// Tiles of a block that are published and wait for their prefix.
pub(in crate::fuse) const PARKED: usize = 2;
/// Bytes of a word with its flag.
pub(in crate::fuse) const SLOT: usize = 8;

/// Returns the largest number of accesses of a thread: 64 bytes of values, which fit its registers.
pub(in crate::fuse) fn accesses(rules: &FoldRules) -> usize {
    64 / (QUAD * rules.bytes().max(4))
}

/// Returns the elements of a tile.
pub(in crate::fuse) fn tile(rules: &FoldRules) -> usize {
    QUAD * WARP * accesses(rules) * WARPS
}

/// Returns the 32-bit words of a value.
pub(in crate::fuse) fn words(rules: &FoldRules) -> usize {
    rules.bytes() / 4
}

/// Returns the offsets in scratch memory of a chained scan's counter and, word by word, of the totals of
/// tiles and the prefixes of groups, and the size of all.
pub(in crate::fuse) fn scratch(rules: &FoldRules, tiles: usize) -> (Vec<usize>, usize) {
    let (mut places, mut end) = (vec![0], 256);
    for values in [tiles, tiles / GROUP + 1] {
        for _ in 0..words(rules) {
            places.push(end);
            end += (values * SLOT).next_multiple_of(256);
        }
    }
    (places, end)
}
