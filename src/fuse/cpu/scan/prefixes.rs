//! The prefixes of a row's tiles, from the totals of the tiles before.

use crate::fuse::plan::reduction::{BLOCK, WARP};
use crate::fuse::plan::scan::GROUP;

/// Folds the tiles of a row in order, by the tree of groups.
pub(super) struct TilePrefixes<V> {
    identity: V,
    /// Levels of the group, leaves first.
    tree: Vec<Vec<V>>,
    /// Tiles of the group so far.
    tiles: usize,
    before_group: V,
    /// The prefix of the latest tile.
    latest: V,
}

impl<V: Copy> TilePrefixes<V> {
    /// Creates the prefixes of a row without tiles.
    pub(super) fn new(identity: V) -> TilePrefixes<V> {
        let sizes = std::iter::successors(Some(GROUP), |&size| (size > 1).then_some(size / 2));
        let tree = sizes.map(|size| vec![identity; size]).collect();
        TilePrefixes { identity, tree, tiles: 0, before_group: identity, latest: identity }
    }

    /// Returns the prefix of the next tile.
    pub(super) fn next(&mut self, merge: &mut impl FnMut(V, V) -> V) -> V {
        self.latest = merge(self.before_group, self.tree[self.tree.len() - 1][0]);
        self.latest
    }

    /// Adds the total of the tile whose prefix was returned: halves down to the threads of a block, halves of the
    /// 32 lanes of a warp, then neighbours.
    pub(super) fn push(&mut self, total: V, merge: &mut impl FnMut(V, V) -> V) {
        if self.tiles + 1 == GROUP {
            self.before_group = merge(self.latest, total);
            self.tree.iter_mut().for_each(|level| level.fill(self.identity));
            self.tiles = 0;
            return;
        }
        self.tree[0][self.tiles] = total;
        let mut node = self.tiles;
        for level in 1..self.tree.len() {
            let size = self.tree[level].len();
            // The size that is halved, down to one for each warp.
            let segment = if size >= BLOCK { size } else { (size * WARP / BLOCK).max(1) };
            let start = node / (2 * segment);
            let left = 2 * segment * start + node % segment;
            let both = merge(self.tree[level - 1][left], self.tree[level - 1][left + segment]);
            node = segment * start + node % segment;
            self.tree[level][node] = both;
        }
        self.tiles += 1;
    }
}
