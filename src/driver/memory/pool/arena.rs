//! Ranges of addresses cut into blocks: best fit, splitting and joining, without a driver.
//!
//! Blocks of a range are a chain in a slab; the number of a block in use never changes, so a handle finds its block
//! without a search. Free blocks are sets ordered by size and address, one set for each owner: the stream in whose order
//! the memory was last used, or [`COMPLETE`] where that use is known to be done. A stream may take its own free
//! blocks and complete ones at once; what another owns needs a wait.
//!
//! What must stay true: the blocks of a range lie side by side without gaps; no two neighbours are free with the same
//! owner, nor both without memory; the sets hold exactly the blocks of their kind.

use std::collections::{BTreeMap, BTreeSet};

/// The number of a block.
pub(crate) type Index = u32;

const NONE: Index = Index::MAX;

/// The owner of free memory whose last use is done.
pub(crate) const COMPLETE: u64 = 0;

/// The place in an owner's order behind which memory is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct After {
    pub(crate) owner: u64,
    pub(crate) place: u64,
}

impl After {
    /// Nothing has to be waited for.
    pub(crate) const NOTHING: After = After { owner: COMPLETE, place: 0 };
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody uses it.
    Free(After),
    /// Handed out for this stream: live, or in the stream's own lists.
    Out(u64),
    /// Addresses without memory.
    Unmapped,
}

/// A block as others see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) state: State,
    previous: Index,
    next: Index,
}

impl Node {
    pub(crate) fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

type Set = BTreeSet<(u64, u64, Index)>;

/// Blocks of one kind of request.
#[derive(Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    unused: Vec<Index>,
    /// The first block of each range.
    ranges: Vec<Index>,
    free: BTreeMap<u64, Set>,
    unmapped: Set,
    pub(crate) splits: u64,
    pub(crate) merges: u64,
}

impl Arena {
    pub(crate) fn node(&self, index: Index) -> &Node {
        &self.nodes[index as usize]
    }

    fn add_node(&mut self, node: Node) -> Index {
        if let Some(index) = self.unused.pop() {
            self.nodes[index as usize] = node;
            return index;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as Index
    }

    fn enter(&mut self, index: Index) {
        let Node { address, bytes, state, .. } = self.nodes[index as usize];
        match state {
            State::Free(after) => {
                self.free.entry(after.owner).or_default().insert((bytes, address, index));
            }
            State::Unmapped => {
                self.unmapped.insert((bytes, address, index));
            }
            State::Out(_) => {}
        }
    }

    fn leave(&mut self, index: Index) {
        let Node { address, bytes, state, .. } = self.nodes[index as usize];
        match state {
            State::Free(after) => {
                if let Some(set) = self.free.get_mut(&after.owner) {
                    set.remove(&(bytes, address, index));
                    if set.is_empty() {
                        self.free.remove(&after.owner);
                    }
                }
            }
            State::Unmapped => {
                self.unmapped.remove(&(bytes, address, index));
            }
            State::Out(_) => {}
        }
    }

    /// A new range of addresses, as one block.
    pub(crate) fn add_range(&mut self, address: u64, bytes: u64, state: State) -> Index {
        let index = self.add_node(Node { address, bytes, state, previous: NONE, next: NONE });
        self.ranges.push(index);
        self.enter(index);
        index
    }

    /// Takes out a range that is one block; nothing happens where it is several.
    pub(crate) fn remove_range(&mut self, index: Index) -> bool {
        let node = self.nodes[index as usize];
        if node.previous != NONE || node.next != NONE {
            return false;
        }
        self.leave(index);
        self.ranges.retain(|&first| first != index);
        self.unused.push(index);
        true
    }

    /// Whether the block is all of its range.
    pub(crate) fn is_whole_range(&self, index: Index) -> bool {
        let node = self.node(index);
        node.previous == NONE && node.next == NONE
    }

    pub(crate) fn previous(&self, index: Index) -> Option<Index> {
        Some(self.node(index).previous).filter(|&index| index != NONE)
    }

    pub(crate) fn next(&self, index: Index) -> Option<Index> {
        Some(self.node(index).next).filter(|&index| index != NONE)
    }

    /// Cuts a block after `bytes` bytes; both parts are what it was. Returns the second.
    fn cut(&mut self, index: Index, bytes: u64) -> Index {
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

    /// Joins a block with the one behind it, whatever they are; the result is what the first one is.
    fn swallow_next(&mut self, index: Index) {
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

    /// What the two are together, where they may be one block.
    fn joined(first: State, second: State) -> Option<State> {
        match (first, second) {
            (State::Unmapped, State::Unmapped) => Some(State::Unmapped),
            (State::Free(a), State::Free(b)) if a.owner == b.owner => {
                Some(State::Free(After { owner: a.owner, place: a.place.max(b.place) }))
            }
            _ => None,
        }
    }

    fn set(&mut self, index: Index, state: State) {
        self.leave(index);
        self.nodes[index as usize].state = state;
        self.enter(index);
    }

    /// Says what a block is from now on, and joins it with neighbours of its kind. Returns the block it is now.
    pub(crate) fn change(&mut self, index: Index, state: State) -> Index {
        self.set(index, state);
        if let Some(next) = self.next(index) {
            self.try_join(index, next);
        }
        match self.previous(index) {
            Some(previous) if self.try_join(previous, index) => previous,
            _ => index,
        }
    }

    /// Makes one block of two neighbours where they may be.
    fn try_join(&mut self, first: Index, second: Index) -> bool {
        let Some(state) = Arena::joined(self.node(first).state, self.node(second).state) else {
            return false;
        };
        self.swallow_next(first);
        self.set(first, state);
        self.merges += u64::from(state != State::Unmapped);
        true
    }

    /// The smallest free block of this owner that has room.
    pub(crate) fn best(&self, owner: u64, bytes: u64) -> Option<Index> {
        let (_, _, index) = self.free.get(&owner)?.range((bytes, 0, 0)..).next()?;
        Some(*index)
    }

    /// The smallest block with room that the stream may take without waiting.
    pub(crate) fn fit(&self, stream: u64, bytes: u64) -> Option<Index> {
        let (own, complete) = (self.best(stream, bytes), self.best(COMPLETE, bytes));
        match (own, complete) {
            (Some(own), Some(complete)) => {
                Some(if self.node(own).bytes <= self.node(complete).bytes { own } else { complete })
            }
            (own, complete) => own.or(complete),
        }
    }

    /// The smallest free block with room of any owner that is neither the stream nor complete and that `may` be taken
    /// from.
    pub(crate) fn fit_of_others(&self, stream: u64, bytes: u64, may: impl Fn(u64) -> bool) -> Option<Index> {
        let others = self.free.keys().filter(|&&owner| owner != stream && owner != COMPLETE && may(owner));
        others.filter_map(|&owner| self.best(owner, bytes)).min_by_key(|&index| self.node(index).bytes)
    }

    /// Hands out the first `bytes` bytes of a free block.
    pub(crate) fn take(&mut self, index: Index, bytes: u64, stream: u64) -> Index {
        let rest = (self.node(index).bytes > bytes).then(|| self.cut(index, bytes));
        self.set(index, State::Out(stream));
        if let Some(rest) = rest {
            self.splits += 1;
            // What was gathered for this may fit to what is behind it.
            self.change(rest, self.node(rest).state);
        }
        index
    }

    /// Says that a block has memory now and is free, and leaves it apart from its neighbours.
    pub(crate) fn become_free(&mut self, index: Index, after: After) {
        self.set(index, State::Free(after));
    }

    /// Makes one free block of a part of a chain, from the start of `first` for `bytes` bytes and more.
    pub(crate) fn gather(&mut self, first: Index, bytes: u64, after: After) {
        self.set(first, State::Free(after));
        while self.node(first).bytes < bytes && self.node(first).next != NONE {
            self.swallow_next(first);
            self.merges += 1;
        }
    }

    /// Neighbouring blocks that the stream may take without waiting and that have room together: the first of them.
    pub(crate) fn run(&self, stream: u64, bytes: u64) -> Option<Index> {
        let usable = |index: Index| match self.node(index).state {
            State::Free(after) => after.owner == stream || after.owner == COMPLETE,
            _ => false,
        };
        // Of neighbours with different owners one is complete.
        let complete = self.free.get(&COMPLETE)?;
        self.free.get(&stream)?;
        let mut best: Option<(u64, Index)> = None;
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

    /// Cuts a block so that `from..to` is a block of its own; both lie in it.
    pub(crate) fn isolate(&mut self, mut index: Index, from: u64, to: u64) -> Index {
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

    /// Free blocks of an owner, the smallest first.
    pub(crate) fn free_of(&self, owner: u64) -> impl DoubleEndedIterator<Item = Index> {
        self.free.get(&owner).into_iter().flatten().map(|&(_, _, index)| index)
    }

    /// Every free block of an owner whose place is at most `done` is complete.
    pub(crate) fn complete(&mut self, owner: u64, done: u64) {
        let is_ready =
            |index: &Index| matches!(self.node(*index).state, State::Free(after) if after.place <= done);
        // One of these is never joined to another before its own turn: what they are joined to is complete.
        let ready: Vec<Index> = self.free_of(owner).filter(is_ready).collect();
        for index in ready {
            self.change(index, State::Free(After::NOTHING));
        }
    }

    /// Blocks of addresses without memory, the smallest first.
    pub(crate) fn unmapped(&self) -> impl DoubleEndedIterator<Item = Index> {
        self.unmapped.iter().map(|&(_, _, index)| index)
    }

    /// The largest free block.
    pub(crate) fn largest_free(&self) -> u64 {
        self.free.values().filter_map(|set| set.last()).map(|&(bytes, _, _)| bytes).max().unwrap_or(0)
    }

    /// Every range: its blocks in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = impl Iterator<Item = (Index, Node)>> {
        self.ranges.iter().map(|&first| {
            std::iter::successors(Some(first), |&index| self.next(index))
                .map(|index| (index, *self.node(index)))
        })
    }
}
