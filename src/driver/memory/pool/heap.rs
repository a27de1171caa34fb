//! The pool's memory, and the order of strategies to serve a request.
//!
//! Free memory that needs no wait comes first, then new memory, while the reserved memory stays within a tenth of the
//! highest live total. Beyond that, pages are moved out of free holes to the wanted addresses, so that holes cost no
//! memory. Next comes memory that another stream's work still uses, behind a wait in stream order. Only then does the
//! heap reserve more than the bound. The host never waits here.
//!
//! Moving a page costs about 40 us whatever its size, so pages grow with the reserved memory: few, but never so large
//! that one more breaks the bound. A page is moved only when every use of all of it is known to be done.
//!
//! Invariants: [`Heap::reserved`] is the memory obtained from the backing and not returned; every address in a block
//! that is not [`NodeState::Unmapped`] has memory; a failed call leaves all counts correct.

mod pages;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use pages::Placement;

use super::arena::{Arena, BlockIndex, COMPLETE, FreeAfter, Node, NodeState};
use super::backing::{Backing, ReturnedBlock};
use super::statistics::PoolStatistics;
use crate::error::Result;

/// Requests up to these sizes share an arena, so that small ones do not fragment the holes of larger ones.
const ARENAS: [u64; 3] = [1 << 20, 16 << 20, u64::MAX];

/// The least length of segments, by arena.
const SEGMENTS: [u64; 3] = [2 << 20, 32 << 20, 32 << 20];

/// Memory that may be reserved in any case.
const SLACK: u64 = 8 << 20;

/// The additional slack for segments, which are large.
const SEGMENT_SLACK: u64 = 64 << 20;

/// A page of memory, which can be mapped at an address.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    handle: u64,
    bytes: u64,
}

/// An allocated block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObtainedBlock {
    pub(crate) index: BlockIndex,
    pub(crate) address: u64,
    /// The position to wait for before the block is used.
    pub(crate) after: FreeAfter,
    /// True if it needed memory that was not there before.
    pub(crate) grown: bool,
}

/// The blocks of a device.
#[derive(Default)]
pub(crate) struct Heap {
    arenas: [Arena; ARENAS.len()],
    /// Mapped pages by address.
    pages: BTreeMap<u64, Page>,
    /// Pages without an address.
    spare: Vec<Page>,
    /// The known progress of each owner's order.
    done: HashMap<u64, u64>,
    /// The limit on reserved memory.
    pub(crate) limit: Option<u64>,
    /// The length of an address range in bytes.
    pub(crate) range_bytes: u64,
    pub(crate) reserved: u64,
    pub(crate) peak_reserved: u64,
    pub(crate) created: u64,
    pub(crate) released: u64,
    pub(crate) maps: u64,
    pub(crate) unmaps: u64,
    pub(crate) hand_overs: u64,
    returned: Vec<ReturnedBlock>,
}

fn arena_of(bytes: u64) -> usize {
    ARENAS.iter().position(|&most| bytes <= most).unwrap_or(0)
}

impl Heap {
    /// A heap with address ranges of this length.
    pub(crate) fn new(range_bytes: u64, limit: Option<u64>) -> Heap {
        Heap { limit, range_bytes, ..Heap::default() }
    }

    /// Allocates a block of exactly `bytes` bytes (a size of `class.rs`) for a stream, or for none: 0. Returns `None`
    /// if there is no memory for it while work in progress goes on.
    pub(crate) fn obtain(
        &mut self,
        backing: &mut dyn Backing,
        stream: u64,
        bytes: u64,
    ) -> Result<Option<ObtainedBlock>> {
        if let Some(found) = self.cached(stream, bytes) {
            return Ok(Some(found));
        }
        if self.poll(backing, stream)?
            && let Some(found) = self.cached(stream, bytes)
        {
            return Ok(Some(found));
        }
        if let Some(found) = self.side_by_side(stream, bytes) {
            return Ok(Some(found));
        }
        let bound = |peak: u64| peak + peak / 10 + SLACK;
        let allowed = bound(backing.peak_live(bytes));
        if let Some(found) = self.grow(backing, stream, bytes, allowed, false)? {
            return Ok(Some(found));
        }
        self.drain(backing);
        self.poll(backing, COMPLETE)?;
        if let Some(found) = self.cached(stream, bytes).or_else(|| self.side_by_side(stream, bytes)) {
            return Ok(Some(found));
        }
        if let Some(found) = self.grow(backing, stream, bytes, allowed, true)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.hand_over(backing, stream, bytes) {
            return Ok(Some(found));
        }
        self.grow(backing, stream, bytes, u64::MAX, true)
    }

    /// Frees a block, for reuse behind `after`.
    pub(crate) fn give_back(&mut self, index: BlockIndex, bytes: u64, after: FreeAfter) {
        let known = self.done.get(&after.owner).is_some_and(|&done| after.position <= done);
        let after = if known { FreeAfter::NOTHING } else { after };
        self.arenas[arena_of(bytes)].change(index, NodeState::Free(after));
    }

    /// Takes back the blocks cached by the streams.
    pub(crate) fn drain(&mut self, backing: &mut dyn Backing) {
        let mut returned = std::mem::take(&mut self.returned);
        backing.drain(&mut returned);
        for ReturnedBlock { index, bytes, after } in returned.drain(..) {
            self.give_back(index, bytes, after);
        }
        self.returned = returned;
    }

    fn take(&mut self, arena: usize, index: BlockIndex, bytes: u64, stream: u64) -> ObtainedBlock {
        let arena = &mut self.arenas[arena];
        let after = match arena.node(index).state {
            NodeState::Free(after) if after.owner != stream => after,
            _ => FreeAfter::NOTHING,
        };
        let index = arena.take(index, bytes, stream);
        ObtainedBlock { index, address: arena.node(index).address, after, grown: false }
    }

    /// The smallest free block that suffices and needs no wait.
    pub(crate) fn cached(&mut self, stream: u64, bytes: u64) -> Option<ObtainedBlock> {
        let arena = arena_of(bytes);
        let index = self.arenas[arena].fit(stream, bytes)?;
        Some(self.take(arena, index, bytes, stream))
    }

    /// Adjacent blocks, the stream's own or complete, that suffice together.
    fn side_by_side(&mut self, stream: u64, bytes: u64) -> Option<ObtainedBlock> {
        let arena = arena_of(bytes);
        let first = self.arenas[arena].run(stream, bytes)?;
        self.gather(arena, first, bytes, stream);
        Some(self.take(arena, first, bytes, stream))
    }

    /// Merges neighbours that the stream may take, behind the latest of its own.
    fn gather(&mut self, arena: usize, first: BlockIndex, bytes: u64, stream: u64) {
        let arena = &mut self.arenas[arena];
        let (mut after, mut total, mut at) = (FreeAfter::NOTHING, 0, Some(first));
        while let Some(index) = at.filter(|_| total < bytes) {
            let node = arena.node(index);
            if let NodeState::Free(of) = node.state
                && of.owner != COMPLETE
            {
                after = FreeAfter { owner: stream, position: after.position.max(of.position) };
            }
            total += node.bytes;
            at = arena.next(index);
        }
        arena.gather(first, bytes, after);
    }

    /// A block that another stream's work may still use.
    fn hand_over(&mut self, backing: &dyn Backing, stream: u64, bytes: u64) -> Option<ObtainedBlock> {
        let arena = arena_of(bytes);
        let index = self.arenas[arena].fit_of_others(stream, bytes, |owner| backing.can_wait(owner))?;
        self.hand_overs += 1;
        Some(self.take(arena, index, bytes, stream))
    }

    /// Queries the progress of the owners of free blocks, except one. Returns whether any has advanced.
    fn poll(&mut self, backing: &mut dyn Backing, except: u64) -> Result<bool> {
        let mut owners: Vec<u64> = self.arenas.iter().flat_map(Arena::owners).collect();
        owners.sort_unstable();
        owners.dedup();
        let mut progress = false;
        for owner in owners.into_iter().filter(|&owner| owner != COMPLETE && owner != except) {
            let done = backing.done(owner)?;
            // The first result for an owner completes blocks that are free behind position 0.
            if self.done.get(&owner).is_none_or(|&known| done > known) {
                self.done.insert(owner, done);
                progress = true;
                for arena in &mut self.arenas {
                    arena.complete(owner, done);
                }
            }
        }
        Ok(progress)
    }

    /// The owners of free blocks that may be in use, each with the position behind which all of them are free.
    pub(crate) fn positions(&self) -> Vec<FreeAfter> {
        let mut positions: BTreeMap<u64, u64> = BTreeMap::new();
        for arena in &self.arenas {
            for owner in arena.owners().filter(|&owner| owner != COMPLETE) {
                for index in arena.free_of(owner) {
                    if let NodeState::Free(after) = arena.node(index).state {
                        let position = positions.entry(owner).or_default();
                        *position = after.position.max(*position);
                    }
                }
            }
        }
        positions.into_iter().map(|(owner, position)| FreeAfter { owner, position }).collect()
    }

    /// Forgets the progress of an owner that has no blocks any more.
    pub(crate) fn forget_owner(&mut self, owner: u64) -> bool {
        let unused = self.arenas.iter().all(|arena| arena.free_of(owner).next().is_none());
        if unused {
            self.done.remove(&owner);
        }
        unused
    }

    /// The number of bytes that may still be reserved, if the total may be `allowed`.
    fn affordable(&self, allowed: u64) -> u64 {
        allowed.min(self.limit.unwrap_or(u64::MAX)).saturating_sub(self.reserved)
    }

    /// A block in new memory, or, if holes may be used, in moved memory.
    fn grow(
        &mut self,
        backing: &mut dyn Backing,
        stream: u64,
        bytes: u64,
        allowed: u64,
        holes: bool,
    ) -> Result<Option<ObtainedBlock>> {
        match backing.granularity() {
            Some(granularity) => self.grow_pages(backing, (stream, bytes), (allowed, holes), granularity),
            None => self.grow_segment(backing, stream, bytes, allowed),
        }
    }

    fn grow_segment(
        &mut self,
        backing: &mut dyn Backing,
        stream: u64,
        bytes: u64,
        allowed: u64,
    ) -> Result<Option<ObtainedBlock>> {
        let arena = arena_of(bytes);
        let whole = bytes.next_multiple_of(2 << 20).max(SEGMENTS[arena]);
        let affordable = self.affordable(allowed.saturating_add(SEGMENT_SLACK));
        // Under a limit, or on a small device, a segment of the request's own size may fit when a long one does not.
        for size in [whole, bytes] {
            if size > affordable || (size != whole && allowed != u64::MAX) {
                continue;
            }
            if let Some(address) = backing.allocate(size)? {
                self.reserve_more(size);
                let index = self.arenas[arena].add_range(address, size, NodeState::Free(FreeAfter::NOTHING));
                return Ok(Some(ObtainedBlock { grown: true, ..self.take(arena, index, bytes, stream) }));
            }
        }
        Ok(None)
    }

    fn reserve_more(&mut self, bytes: u64) {
        self.created += 1;
        self.reserved += bytes;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }

    /// Releases all memory that no block uses and whose last use is done. A failure does not stop the others.
    pub(crate) fn trim(&mut self, backing: &mut dyn Backing) -> Result<()> {
        self.drain(backing);
        let mut result = self.poll(backing, COMPLETE).map(drop);
        if backing.granularity().is_some() {
            let position = Placement::NONE;
            loop {
                let (holes, found) = self.holes(usize::MAX, &position, u64::MAX, u64::MAX);
                if found == 0 {
                    break;
                }
                result = result.and(self.empty(backing, holes));
            }
            let spare = std::mem::take(&mut self.spare);
            let released = self.release(backing, spare);
            let unreserved = self.unreserve(backing);
            return result.and(released).and(unreserved);
        }
        for arena in &mut self.arenas {
            let whole: Vec<BlockIndex> =
                arena.free_of(COMPLETE).filter(|&index| arena.is_whole_range(index)).collect();
            for index in whole {
                let Node { address, bytes, .. } = *arena.node(index);
                arena.remove_range(index);
                self.reserved -= bytes;
                self.released += 1;
                result = result.and(backing.free(address));
            }
        }
        result
    }

    /// Frees the address ranges that have no memory at all.
    fn unreserve(&mut self, backing: &mut dyn Backing) -> Result<()> {
        let mut result = Ok(());
        for arena in &mut self.arenas {
            let empty: Vec<BlockIndex> =
                arena.unmapped().filter(|&index| arena.is_whole_range(index)).collect();
            for index in empty {
                let Node { address, bytes, .. } = *arena.node(index);
                arena.remove_range(index);
                result = result.and(backing.unreserve(address, bytes));
            }
        }
        result
    }

    /// Frees all pages and addresses, even those in use, for the reset of their device. Segments go with its context.
    pub(crate) fn discard(&mut self, backing: &mut dyn Backing) -> Result<()> {
        let old = std::mem::take(self);
        let mut result = Ok(());
        for (address, page) in old.pages {
            let unmapped = backing.unmap(address, page.bytes);
            let released = backing.release(page.handle);
            result = result.and(unmapped).and(released);
        }
        for page in old.spare {
            result = result.and(backing.release(page.handle));
        }
        if backing.granularity().is_some() {
            for range in old.arenas.iter().flat_map(Arena::ranges) {
                let (mut address, mut bytes) = (None, 0);
                for (_, node) in range {
                    address = address.or(Some(node.address));
                    bytes += node.bytes;
                }
                if let Some(address) = address {
                    result = result.and(backing.unreserve(address, bytes));
                }
            }
        }
        result
    }

    /// Frees pages. A failure does not stop the others.
    fn release(&mut self, backing: &mut dyn Backing, pages: Vec<Page>) -> Result<()> {
        let mut result = Ok(());
        for page in pages {
            self.reserved -= page.bytes;
            self.released += 1;
            result = result.and(backing.release(page.handle));
        }
        result
    }

    /// Removes every page, in use or not, with its address if it has one. The heap is unusable after that.
    pub(crate) fn take_pages(&mut self) -> Vec<(Option<(u64, u64)>, u64)> {
        let mapped = std::mem::take(&mut self.pages);
        let mapped = mapped.into_iter().map(|(address, page)| (Some((address, page.bytes)), page.handle));
        mapped.chain(self.spare.drain(..).map(|page| (None, page.handle))).collect()
    }

    /// The size of the largest free block.
    pub(crate) fn largest_free(&self) -> u64 {
        self.arenas.iter().map(Arena::largest_free).max().unwrap_or(0)
    }

    /// The heap's statistics, added to `others`.
    pub(crate) fn statistics(&self, others: PoolStatistics) -> PoolStatistics {
        PoolStatistics {
            reserved_bytes: self.reserved,
            peak_reserved_bytes: self.peak_reserved,
            largest_cached_bytes: self.largest_free(),
            driver_allocations: self.created,
            driver_frees: self.released,
            maps: self.maps,
            unmaps: self.unmaps,
            splits: self.arenas.iter().map(|arena| arena.splits).sum(),
            merges: self.arenas.iter().map(|arena| arena.merges).sum(),
            hand_overs: self.hand_overs,
            ..others
        }
    }

    /// Every range with its blocks.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Vec<Node>> {
        self.arenas
            .iter()
            .flat_map(|arena| arena.ranges().map(|blocks| blocks.map(|(_, node)| node).collect()))
    }

    /// The address and length of every mapped page.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pages.iter().map(|(&address, page)| (address, page.bytes))
    }
}
