//! The pool's memory and who gets which piece of it: the order in which ways to serve a request are tried.
//!
//! What is free and needs no wait comes first, then new memory, as long as what is reserved stays within a tenth of the
//! most that was ever live. Beyond that, pages are taken out of free holes and given the addresses that are wanted, so
//! that holes cost no memory; then memory that another stream's work still uses, behind a wait in stream order; only then
//! is more reserved than the bound says. The host never waits here.
//!
//! Moving a page costs some 40 us whatever its size, so pages grow with what is reserved: few, but never so large that
//! one more breaks the bound. A page is moved only when every use of all of it is known to be done.
//!
//! What must stay true: [`Heap::reserved`] is what the backing has given and not got back; every address in a block that
//! is not [`State::Unmapped`] has memory; a call that fails leaves all books right.

mod pages;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use pages::Place;

use super::arena::{After, Arena, COMPLETE, Index, Node, State};
use super::backing::{Backing, Returned};
use super::statistics::PoolStatistics;
use crate::error::Result;

/// Requests up to so many bytes share an arena; smaller ones do not break up the holes of larger ones.
const ARENAS: [u64; 3] = [1 << 20, 16 << 20, u64::MAX];

/// Segments of plain memory are at least this long, by arena.
const SEGMENTS: [u64; 3] = [2 << 20, 32 << 20, 32 << 20];

/// How much may be reserved in any case.
const SLACK: u64 = 8 << 20;

/// How much more where memory comes as segments, which are large.
const SEGMENT_SLACK: u64 = 64 << 20;

/// A page: memory that can have an address.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    handle: u64,
    bytes: u64,
}

/// A block handed out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) index: Index,
    pub(crate) address: u64,
    /// What must be waited for before it is used.
    pub(crate) after: After,
    /// Whether it needed memory that was not there before.
    pub(crate) grown: bool,
}

/// The blocks of a device.
#[derive(Default)]
pub(crate) struct Heap {
    arenas: [Arena; ARENAS.len()],
    /// By address.
    pages: BTreeMap<u64, Page>,
    /// Pages without an address.
    spare: Vec<Page>,
    /// How far each owner's order is known to be done.
    done: HashMap<u64, u64>,
    /// The most that may be reserved.
    pub(crate) limit: Option<u64>,
    /// How many bytes an address range has.
    pub(crate) range_bytes: u64,
    pub(crate) reserved: u64,
    pub(crate) peak_reserved: u64,
    pub(crate) created: u64,
    pub(crate) released: u64,
    pub(crate) maps: u64,
    pub(crate) unmaps: u64,
    pub(crate) hand_overs: u64,
    returned: Vec<Returned>,
}

fn arena_of(bytes: u64) -> usize {
    ARENAS.iter().position(|&most| bytes <= most).unwrap_or(0)
}

impl Heap {
    /// A heap whose address ranges have so many bytes.
    pub(crate) fn new(range_bytes: u64, limit: Option<u64>) -> Heap {
        Heap { limit, range_bytes, ..Heap::default() }
    }

    /// Hands out a block of exactly `bytes` bytes (a size of `class.rs`) for a stream, or for none: 0. `None` where there
    /// is no memory for it while work that is under way goes on.
    pub(crate) fn obtain(
        &mut self,
        backing: &mut dyn Backing,
        stream: u64,
        bytes: u64,
    ) -> Result<Option<Found>> {
        if let Some(found) = self.cached(stream, bytes) {
            return Ok(Some(found));
        }
        if self.poll(backing, stream)? {
            if let Some(found) = self.cached(stream, bytes) {
                return Ok(Some(found));
            }
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

    /// Takes a block back, to be used again behind `after`.
    pub(crate) fn give_back(&mut self, index: Index, bytes: u64, after: After) {
        let known = self.done.get(&after.owner).is_some_and(|&done| after.place <= done);
        let after = if known { After::NOTHING } else { after };
        self.arenas[arena_of(bytes)].change(index, State::Free(after));
    }

    /// Takes back what is cached in front of the heap.
    pub(crate) fn drain(&mut self, backing: &mut dyn Backing) {
        let mut returned = std::mem::take(&mut self.returned);
        backing.drain(&mut returned);
        for Returned { index, bytes, after } in returned.drain(..) {
            self.give_back(index, bytes, after);
        }
        self.returned = returned;
    }

    fn take(&mut self, arena: usize, index: Index, bytes: u64, stream: u64) -> Found {
        let arena = &mut self.arenas[arena];
        let after = match arena.node(index).state {
            State::Free(after) if after.owner != stream => after,
            _ => After::NOTHING,
        };
        let index = arena.take(index, bytes, stream);
        Found { index, address: arena.node(index).address, after, grown: false }
    }

    /// The smallest free block with room that needs no wait.
    pub(crate) fn cached(&mut self, stream: u64, bytes: u64) -> Option<Found> {
        let arena = arena_of(bytes);
        let index = self.arenas[arena].fit(stream, bytes)?;
        Some(self.take(arena, index, bytes, stream))
    }

    /// Neighbours of the stream's own and complete ones, which have room together.
    fn side_by_side(&mut self, stream: u64, bytes: u64) -> Option<Found> {
        let arena = arena_of(bytes);
        let first = self.arenas[arena].run(stream, bytes)?;
        self.gather(arena, first, bytes, stream);
        Some(self.take(arena, first, bytes, stream))
    }

    /// Makes one block of neighbours that the stream may take, behind the latest of its own.
    fn gather(&mut self, arena: usize, first: Index, bytes: u64, stream: u64) {
        let arena = &mut self.arenas[arena];
        let (mut after, mut total, mut at) = (After::NOTHING, 0, Some(first));
        while let Some(index) = at.filter(|_| total < bytes) {
            let node = arena.node(index);
            if let State::Free(of) = node.state {
                if of.owner != COMPLETE {
                    after = After { owner: stream, place: after.place.max(of.place) };
                }
            }
            total += node.bytes;
            at = arena.next(index);
        }
        arena.gather(first, bytes, after);
    }

    /// A block that another stream's work may still use.
    fn hand_over(&mut self, backing: &dyn Backing, stream: u64, bytes: u64) -> Option<Found> {
        let arena = arena_of(bytes);
        let index = self.arenas[arena].fit_of_others(stream, bytes, |owner| backing.can_wait(owner))?;
        self.hand_overs += 1;
        Some(self.take(arena, index, bytes, stream))
    }

    /// Asks how far the owners of free blocks are, all but one; whether any is further than was known.
    fn poll(&mut self, backing: &mut dyn Backing, except: u64) -> Result<bool> {
        let mut owners: Vec<u64> = self.arenas.iter().flat_map(Arena::owners).collect();
        owners.sort_unstable();
        owners.dedup();
        let mut progress = false;
        for owner in owners.into_iter().filter(|&owner| owner != COMPLETE && owner != except) {
            let done = backing.done(owner)?;
            // What is free behind place 0 is done as soon as anything is known.
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

    /// The owners of free blocks that may be in use, each with the place behind which all of them are free.
    pub(crate) fn places(&self) -> Vec<After> {
        let mut places: BTreeMap<u64, u64> = BTreeMap::new();
        for arena in &self.arenas {
            for owner in arena.owners().filter(|&owner| owner != COMPLETE) {
                for index in arena.free_of(owner) {
                    if let State::Free(after) = arena.node(index).state {
                        let place = places.entry(owner).or_default();
                        *place = after.place.max(*place);
                    }
                }
            }
        }
        places.into_iter().map(|(owner, place)| After { owner, place }).collect()
    }

    /// Forgets what is known of an owner that has no blocks any more.
    pub(crate) fn forget_owner(&mut self, owner: u64) -> bool {
        let unused = self.arenas.iter().all(|arena| arena.free_of(owner).next().is_none());
        if unused {
            self.done.remove(&owner);
        }
        unused
    }

    /// How many bytes may still be reserved where `allowed` may be in all.
    fn affordable(&self, allowed: u64) -> u64 {
        allowed.min(self.limit.unwrap_or(u64::MAX)).saturating_sub(self.reserved)
    }

    /// A block in memory that was not there before, or, where holes may be used, was somewhere else.
    fn grow(
        &mut self,
        backing: &mut dyn Backing,
        stream: u64,
        bytes: u64,
        allowed: u64,
        holes: bool,
    ) -> Result<Option<Found>> {
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
    ) -> Result<Option<Found>> {
        let arena = arena_of(bytes);
        let whole = bytes.next_multiple_of(2 << 20).max(SEGMENTS[arena]);
        let affordable = self.affordable(allowed.saturating_add(SEGMENT_SLACK));
        // Under a cap, or on a small device, a segment of the request's own size may have room where a long one has not.
        for size in [whole, bytes] {
            if size > affordable || (size != whole && allowed != u64::MAX) {
                continue;
            }
            if let Some(address) = backing.allocate(size)? {
                self.reserve_more(size);
                let index = self.arenas[arena].add_range(address, size, State::Free(After::NOTHING));
                return Ok(Some(Found { grown: true, ..self.take(arena, index, bytes, stream) }));
            }
        }
        Ok(None)
    }

    fn reserve_more(&mut self, bytes: u64) {
        self.created += 1;
        self.reserved += bytes;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }

    /// Gives back all memory that no block uses and whose last use is done. Where one piece fails the others still go.
    pub(crate) fn trim(&mut self, backing: &mut dyn Backing) -> Result<()> {
        self.drain(backing);
        let mut result = self.poll(backing, COMPLETE).map(drop);
        if backing.granularity().is_some() {
            let place = Place::NONE;
            loop {
                let (holes, found) = self.holes(usize::MAX, &place, u64::MAX, u64::MAX);
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
            let whole: Vec<Index> =
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

    /// Gives back the address ranges that have no memory at all.
    fn unreserve(&mut self, backing: &mut dyn Backing) -> Result<()> {
        let mut result = Ok(());
        for arena in &mut self.arenas {
            let empty: Vec<Index> = arena.unmapped().filter(|&index| arena.is_whole_range(index)).collect();
            for index in empty {
                let Node { address, bytes, .. } = *arena.node(index);
                arena.remove_range(index);
                result = result.and(backing.unreserve(address, bytes));
            }
        }
        result
    }

    /// Gives back all pages and addresses, whoever had them: their device is being started over. Segments go with its
    /// context.
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

    /// Gives pages back; where one fails the others still go.
    fn release(&mut self, backing: &mut dyn Backing, pages: Vec<Page>) -> Result<()> {
        let mut result = Ok(());
        for page in pages {
            self.reserved -= page.bytes;
            self.released += 1;
            result = result.and(backing.release(page.handle));
        }
        result
    }

    /// Takes every page out, unused or not, with its address if it has one. The heap is of no use after that.
    pub(crate) fn take_pages(&mut self) -> Vec<(Option<(u64, u64)>, u64)> {
        let mapped = std::mem::take(&mut self.pages);
        let mapped = mapped.into_iter().map(|(address, page)| (Some((address, page.bytes)), page.handle));
        mapped.chain(self.spare.drain(..).map(|page| (None, page.handle))).collect()
    }

    /// The largest free block.
    pub(crate) fn largest_free(&self) -> u64 {
        self.arenas.iter().map(Arena::largest_free).max().unwrap_or(0)
    }

    /// The heap's numbers, added to those of somebody else.
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

    /// Every mapped page: its address and length.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pages.iter().map(|(&address, page)| (address, page.bytes))
    }
}
