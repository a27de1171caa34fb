//! Address ranges divided into blocks: best fit, splitting and merging, without a driver.
//!
//! The blocks of a range form a chain in a slab. The index of a block in use never changes, so a handle finds its block
//! without a search. Free blocks are in sets ordered by size and address, one set for each owner: the stream whose
//! order includes the last use of the memory, or [`COMPLETE`] if that use is known to be done. A stream may take its
//! own free blocks and complete ones at once. Blocks of other owners need a wait.
//!
//! Invariants: the blocks of a range are adjacent without gaps; no two neighbours are free with the same owner, nor
//! both unmapped; the sets contain exactly the blocks of their kind.

use std::collections::{BTreeMap, BTreeSet};

/// The index of a block.
pub(crate) type BlockIndex = u32;

const NONE: BlockIndex = BlockIndex::MAX;

/// The owner of free memory whose last use is done.
pub(crate) const COMPLETE: u64 = 0;

/// The position in an owner's order behind which memory is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeAfter {
    pub(crate) owner: u64,
    pub(crate) position: u64,
}

impl FreeAfter {
    /// No wait is needed.
    pub(crate) const NOTHING: FreeAfter = FreeAfter { owner: COMPLETE, position: 0 };
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeState {
    /// Unused.
    Free(FreeAfter),
    /// Allocated to this stream: live, or in the stream's own lists.
    Out(u64),
    /// Addresses without memory.
    Unmapped,
}

/// A copy of a block's data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) state: NodeState,
    previous: BlockIndex,
    next: BlockIndex,
}

impl Node {
    pub(crate) fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

type Set = BTreeSet<(u64, u64, BlockIndex)>;

/// The blocks of one size range of requests.
#[derive(Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    unused: Vec<BlockIndex>,
    /// The first block of each range.
    ranges: Vec<BlockIndex>,
    free: BTreeMap<u64, Set>,
    unmapped: Set,
    pub(crate) splits: u64,
    pub(crate) merges: u64,
}

impl Arena {
    pub(crate) fn node(&self, index: BlockIndex) -> &Node {
        &self.nodes[index as usize]
    }

    fn add_node(&mut self, node: Node) -> BlockIndex {
        if let Some(index) = self.unused.pop() {
            self.nodes[index as usize] = node;
            return index;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as BlockIndex
    }

    fn enter(&mut self, index: BlockIndex) {
        let Node { address, bytes, state, .. } = self.nodes[index as usize];
        match state {
            NodeState::Free(after) => {
                self.free.entry(after.owner).or_default().insert((bytes, address, index));
            }
            NodeState::Unmapped => {
                self.unmapped.insert((bytes, address, index));
            }
            NodeState::Out(_) => {}
        }
    }

    fn leave(&mut self, index: BlockIndex) {
        let Node { address, bytes, state, .. } = self.nodes[index as usize];
        match state {
            NodeState::Free(after) => {
                if let Some(set) = self.free.get_mut(&after.owner) {
                    set.remove(&(bytes, address, index));
                    if set.is_empty() {
                        self.free.remove(&after.owner);
                    }
                }
            }
            NodeState::Unmapped => {
                self.unmapped.remove(&(bytes, address, index));
            }
            NodeState::Out(_) => {}
        }
    }

    /// Adds a new range of addresses, as one block.
    pub(crate) fn add_range(&mut self, address: u64, bytes: u64, state: NodeState) -> BlockIndex {
        let index = self.add_node(Node { address, bytes, state, previous: NONE, next: NONE });
        self.ranges.push(index);
        self.enter(index);
        index
    }

    /// Removes a range that is a single block, and returns whether it was.
    pub(crate) fn remove_range(&mut self, index: BlockIndex) -> bool {
        let node = self.nodes[index as usize];
        if node.previous != NONE || node.next != NONE {
            return false;
        }
        self.leave(index);
        self.ranges.retain(|&first| first != index);
        self.unused.push(index);
        true
    }

    /// Returns whether the block spans its whole range.
    pub(crate) fn is_whole_range(&self, index: BlockIndex) -> bool {
        let node = self.node(index);
        node.previous == NONE && node.next == NONE
    }

    pub(crate) fn previous(&self, index: BlockIndex) -> Option<BlockIndex> {
        Some(self.node(index).previous).filter(|&index| index != NONE)
    }

    pub(crate) fn next(&self, index: BlockIndex) -> Option<BlockIndex> {
        Some(self.node(index).next).filter(|&index| index != NONE)
    }

    /// Splits a block after `bytes` bytes. Both parts keep its state. Returns the second.
    fn cut(&mut self, index: BlockIndex, bytes: u64) -> BlockIndex {
        let whole = self.nodes[index as usize];
        self.leave(index);
        let second = self.add_node(Node {
            address: whole.address + bytes,
            bytes: whole.bytes - bytes,
            state: whole.state,
            previous: index,
            next: whole.next,
        });
        if whole.next != NONE {
            self.nodes[whole.next as usize].previous = second;
        }
        let first = &mut self.nodes[index as usize];
        (first.bytes, first.next) = (bytes, second);
        self.enter(index);
        self.enter(second);
        second
    }

    /// Merges a block with its successor, whatever their states. The result has the state of the first.
    fn swallow_next(&mut self, index: BlockIndex) {
        let second = self.nodes[index as usize].next;
        let gone = self.nodes[second as usize];
        self.leave(index);
        self.leave(second);
        let node = &mut self.nodes[index as usize];
        (node.bytes, node.next) = (node.bytes + gone.bytes, gone.next);
        if gone.next != NONE {
            self.nodes[gone.next as usize].previous = index;
        }
        self.enter(index);
        self.unused.push(second);
    }

    /// Returns the state of the merged block, if the two may be merged.
    fn joined(first: NodeState, second: NodeState) -> Option<NodeState> {
        match (first, second) {
            (NodeState::Unmapped, NodeState::Unmapped) => Some(NodeState::Unmapped),
            (NodeState::Free(a), NodeState::Free(b)) if a.owner == b.owner => {
                Some(NodeState::Free(FreeAfter { owner: a.owner, position: a.position.max(b.position) }))
            }
            _ => None,
        }
    }

    fn set(&mut self, index: BlockIndex, state: NodeState) {
        self.leave(index);
        self.nodes[index as usize].state = state;
        self.enter(index);
    }

    /// Sets a block's state, and merges the block with matching neighbours. Returns its index after that.
    pub(crate) fn change(&mut self, index: BlockIndex, state: NodeState) -> BlockIndex {
        self.set(index, state);
        if let Some(next) = self.next(index) {
            self.try_join(index, next);
        }
        match self.previous(index) {
            Some(previous) if self.try_join(previous, index) => previous,
            _ => index,
        }
    }

    /// Merges two neighbours if possible.
    fn try_join(&mut self, first: BlockIndex, second: BlockIndex) -> bool {
        let Some(state) = Arena::joined(self.node(first).state, self.node(second).state) else {
            return false;
        };
        self.swallow_next(first);
        self.set(first, state);
        self.merges += u64::from(state != NodeState::Unmapped);
        true
    }

    /// Returns the smallest free block of this owner with at least `bytes` bytes.
    pub(crate) fn best(&self, owner: u64, bytes: u64) -> Option<BlockIndex> {
        let (_, _, index) = self.free.get(&owner)?.range((bytes, 0, 0)..).next()?;
        Some(*index)
    }

    /// Returns the smallest block of at least `bytes` bytes that the stream may take without waiting.
    pub(crate) fn fit(&self, stream: u64, bytes: u64) -> Option<BlockIndex> {
        let (own, complete) = (self.best(stream, bytes), self.best(COMPLETE, bytes));
        match (own, complete) {
            (Some(own), Some(complete)) => {
                Some(if self.node(own).bytes <= self.node(complete).bytes { own } else { complete })
            }
            (own, complete) => own.or(complete),
        }
    }

    /// Returns the smallest free block of at least `bytes` bytes of any other owner, except complete ones, that `may`
    /// accepts.
    pub(crate) fn fit_of_others(
        &self,
        stream: u64,
        bytes: u64,
        may: impl Fn(u64) -> bool,
    ) -> Option<BlockIndex> {
        let others = self.free.keys().filter(|&&owner| owner != stream && owner != COMPLETE && may(owner));
        others.filter_map(|&owner| self.best(owner, bytes)).min_by_key(|&index| self.node(index).bytes)
    }

    /// Allocates the first `bytes` bytes of a free block.
    pub(crate) fn take(&mut self, index: BlockIndex, bytes: u64, stream: u64) -> BlockIndex {
        let rest = (self.node(index).bytes > bytes).then(|| self.cut(index, bytes));
        self.set(index, NodeState::Out(stream));
        if let Some(rest) = rest {
            self.splits += 1;
            // The rest may merge with its successor.
            self.change(rest, self.node(rest).state);
        }
        index
    }

    /// Marks a block as mapped and free, without merging it.
    pub(crate) fn become_free(&mut self, index: BlockIndex, after: FreeAfter) {
        self.set(index, NodeState::Free(after));
    }

    /// Merges a part of a chain into one free block, from the start of `first` for at least `bytes` bytes.
    pub(crate) fn gather(&mut self, first: BlockIndex, bytes: u64, after: FreeAfter) {
        self.set(first, NodeState::Free(after));
        while self.node(first).bytes < bytes && self.node(first).next != NONE {
            self.swallow_next(first);
            self.merges += 1;
        }
    }

    /// Returns the first of neighbouring blocks that the stream may take without waiting and that suffice together.
    pub(crate) fn run(&self, stream: u64, bytes: u64) -> Option<BlockIndex> {
        let usable = |index: BlockIndex| match self.node(index).state {
            NodeState::Free(after) => after.owner == stream || after.owner == COMPLETE,
            _ => false,
        };
        // Of two free neighbours with different owners, one is complete.
        let complete = self.free.get(&COMPLETE)?;
        self.free.get(&stream)?;
        let mut best: Option<(u64, BlockIndex)> = None;
        for &(_, _, index) in complete.iter().rev() {
            let mut first = index;
            while let Some(previous) = self.previous(first).filter(|&previous| usable(previous)) {
                first = previous;
            }
            let mut total = 0;
            let mut at = Some(first);
            while let Some(here) = at.filter(|&here| usable(here)) {
                total += self.node(here).bytes;
                at = self.next(here);
            }
            if total >= bytes && best.is_none_or(|(found, _)| total < found) {
                best = Some((total, first));
            }
        }
        best.map(|(_, first)| first)
    }

    /// Splits a block so that `from..to`, which lies inside it, is a block of its own.
    pub(crate) fn isolate(&mut self, mut index: BlockIndex, from: u64, to: u64) -> BlockIndex {
        let node = *self.node(index);
        if from > node.address {
            index = self.cut(index, from - node.address);
        }
        if to < self.node(index).end() {
            self.cut(index, to - from);
        }
        index
    }

    /// The owners of free blocks.
    pub(crate) fn owners(&self) -> impl Iterator<Item = u64> {
        self.free.keys().copied()
    }

    /// The free blocks of an owner, the smallest first.
    pub(crate) fn free_of(&self, owner: u64) -> impl DoubleEndedIterator<Item = BlockIndex> {
        self.free.get(&owner).into_iter().flatten().map(|&(_, _, index)| index)
    }

    /// Marks every free block of an owner up to the position `done` as complete.
    pub(crate) fn complete(&mut self, owner: u64, done: u64) {
        let is_ready = |index: &BlockIndex| matches!(self.node(*index).state, NodeState::Free(after) if after.position <= done);
        // None of these is merged with another before its own turn: each only merges with complete blocks.
        let ready: Vec<BlockIndex> = self.free_of(owner).filter(is_ready).collect();
        for index in ready {
            self.change(index, NodeState::Free(FreeAfter::NOTHING));
        }
    }

    /// The unmapped blocks, the smallest first.
    pub(crate) fn unmapped(&self) -> impl DoubleEndedIterator<Item = BlockIndex> {
        self.unmapped.iter().map(|&(_, _, index)| index)
    }

    /// The size of the largest free block.
    pub(crate) fn largest_free(&self) -> u64 {
        self.free.values().filter_map(|set| set.last()).map(|&(bytes, _, _)| bytes).max().unwrap_or(0)
    }

    /// Every range, with its blocks in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = impl Iterator<Item = (BlockIndex, Node)>> {
        self.ranges.iter().map(|&first| {
            std::iter::successors(Some(first), |&index| self.next(index))
                .map(|index| (index, *self.node(index)))
        })
    }
}
