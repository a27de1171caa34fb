//! Growing the heap by pages: the placement of a block, the choice of its pages, and the holes that they come from.

use super::{Arena, Backing, BlockIndex, COMPLETE, Heap, NodeState, ObtainedBlock, Page, arena_of};
use crate::driver::memory::pool::arena::FreeAfter;
use crate::error::Result;

/// The largest page.
const MAX_PAGE: u64 = 64 << 20;

/// A placement of a block: at the start of `first`, with memory missing from `gap` on.
pub(super) struct Placement {
    first: BlockIndex,
    gap: BlockIndex,
    missing: u64,
}

impl Placement {
    /// No placement.
    pub(super) const NONE: Placement = Placement { first: BlockIndex::MAX, gap: BlockIndex::MAX, missing: 0 };
}

/// A part of a free block that consists of whole pages.
pub(super) struct Hole {
    arena: usize,
    index: BlockIndex,
    from: u64,
    to: u64,
}

/// Returns the largest power of two that does not exceed `bytes`.
fn power_below(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { 1 << (63 - bytes.leading_zeros()) }
}

impl Heap {
    pub(super) fn grow_pages(
        &mut self,
        backing: &mut dyn Backing,
        (stream, bytes): (u64, u64),
        (allowed, holes): (u64, bool),
        granularity: u64,
    ) -> Result<Option<ObtainedBlock>> {
        let arena = arena_of(bytes);
        let Some(placement) = self.placement(backing, arena, stream, bytes, granularity)? else {
            return Ok(None);
        };
        let gap = *self.arenas[arena].node(placement.gap);
        let affordable = self.affordable(allowed);
        let spare: u64 = self.spare.iter().map(|page| page.bytes).sum();
        let missing = placement.missing;
        if holes {
            let wanted = missing - spare.min(missing);
            let (found, budget) = self.holes(arena, &placement, wanted, gap.bytes);
            if spare + budget + affordable.min(missing) < missing {
                return Ok(None);
            }
            self.empty(backing, found)?;
        } else if spare + affordable.min(missing) < missing {
            return Ok(None);
        }
        let Some(mut pages) = self.pages_for(backing, missing, gap.bytes, allowed, granularity)? else {
            return Ok(None);
        };
        let mapped = self.map(backing, gap.address, &mut pages);
        self.spare.append(&mut pages);
        let length = mapped?;
        let part = self.arenas[arena].isolate(placement.gap, gap.address, gap.address + length);
        let first = if placement.first == placement.gap { part } else { placement.first };
        let after = match self.arenas[arena].node(first).state {
            NodeState::Free(after) => after,
            _ => FreeAfter::NOTHING,
        };
        // Not merged yet: the block before it may be the stream's own.
        self.arenas[arena].become_free(part, after);
        self.gather(arena, first, bytes, stream);
        Ok(Some(ObtainedBlock { grown: true, ..self.take(arena, first, bytes, stream) }))
    }

    /// Returns the placement of a block of this size that misses the fewest pages.
    fn placement(
        &mut self,
        backing: &mut dyn Backing,
        arena: usize,
        stream: u64,
        bytes: u64,
        granularity: u64,
    ) -> Result<Option<Placement>> {
        let find = |arena: &Arena| {
            let mut best: Option<(u64, u64, Placement)> = None;
            for gap in arena.unmapped() {
                let node = arena.node(gap);
                let before = arena.previous(gap).filter(|&before| match arena.node(before).state {
                    NodeState::Free(after) => after.owner == COMPLETE || after.owner == stream,
                    _ => false,
                });
                let have = before.map_or(0, |before| arena.node(before).bytes);
                let missing = bytes.saturating_sub(have).next_multiple_of(granularity);
                let better =
                    best.as_ref().is_none_or(|(least, budget, _)| (missing, node.bytes) < (*least, *budget));
                if missing <= node.bytes && better {
                    best =
                        Some((missing, node.bytes, Placement { first: before.unwrap_or(gap), gap, missing }));
                }
            }
            best.map(|(_, _, placement)| placement)
        };
        if let Some(placement) = find(&self.arenas[arena]) {
            return Ok(Some(placement));
        }
        let length = self.range_bytes.max(bytes).next_multiple_of(granularity);
        let Some(address) = backing.reserve(length)? else {
            return Ok(None);
        };
        self.arenas[arena].add_range(address, length, NodeState::Unmapped);
        Ok(find(&self.arenas[arena]))
    }

    /// Returns whole pages in free and complete blocks, smallest blocks first, until they total `wanted` bytes, and at
    /// most `budget`. Excludes the block at the placement itself.
    pub(super) fn holes(
        &self,
        at: usize,
        placement: &Placement,
        wanted: u64,
        budget: u64,
    ) -> (Vec<Hole>, u64) {
        let (mut holes, mut total) = (Vec::new(), 0);
        for (arena_index, arena) in self.arenas.iter().enumerate() {
            for index in arena.free_of(COMPLETE) {
                if total >= wanted {
                    return (holes, total);
                }
                if arena_index == at && index == placement.first {
                    continue;
                }
                let node = arena.node(index);
                let mut span: Option<(u64, u64)> = None;
                for (&address, page) in self.pages.range(node.address..node.end()) {
                    let end = address + page.bytes;
                    if end > node.end() || total + page.bytes > budget || total >= wanted {
                        break;
                    }
                    total += page.bytes;
                    span = Some((span.map_or(address, |(from, _)| from), end));
                }
                if let Some((from, to)) = span {
                    holes.push(Hole { arena: arena_index, index, from, to });
                }
            }
        }
        (holes, total)
    }

    /// Unmaps the pages of holes.
    pub(super) fn empty(&mut self, backing: &mut dyn Backing, holes: Vec<Hole>) -> Result<()> {
        let mut result = Ok(());
        for Hole { arena, index, from, to } in holes {
            let unmapped = backing.unmap(from, to - from);
            let addresses: Vec<u64> = self.pages.range(from..to).map(|(&address, _)| address).collect();
            self.unmaps += addresses.len() as u64;
            self.spare.extend(addresses.iter().filter_map(|address| self.pages.remove(address)));
            let part = self.arenas[arena].isolate(index, from, to);
            self.arenas[arena].change(part, NodeState::Unmapped);
            result = result.and(unmapped);
            if result.is_err() {
                // The other holes stay mapped.
                break;
            }
        }
        result
    }

    /// Returns pages of `missing` bytes together, at most `budget`: spare ones first, then new ones.
    fn pages_for(
        &mut self,
        backing: &mut dyn Backing,
        missing: u64,
        budget: u64,
        allowed: u64,
        granularity: u64,
    ) -> Result<Option<Vec<Page>>> {
        let (mut pages, mut total, mut fresh) = (Vec::new(), 0, 0);
        self.spare.sort_unstable_by_key(|page| page.bytes);
        while total < missing {
            // The largest that does not reach past the end; else the smallest within the budget.
            let fits = self.spare.iter().rposition(|page| total + page.bytes <= missing);
            let over = self.spare.iter().position(|page| total + page.bytes <= budget);
            let Some(at) = fits.or(over) else { break };
            total += self.spare[at].bytes;
            pages.push(self.spare.remove(at));
        }
        let mut unit = power_below((self.reserved / 256).max(missing / 32))
            .clamp(granularity, MAX_PAGE.max(granularity));
        while total < missing {
            let left = missing - total;
            let affordable = self.affordable(allowed);
            let whole = unit <= left || (total + unit <= budget && unit <= affordable);
            let size = if whole { unit } else { power_below(left).max(granularity) };
            let created = if size > affordable { Ok(None) } else { backing.create(size) };
            match created {
                Ok(Some(handle)) => {
                    self.reserve_more(size);
                    pages.push(Page { handle, bytes: size });
                    total += size;
                    fresh += 1;
                }
                Ok(None) if size > granularity => unit = size / 2,
                other => {
                    let useless = pages.split_off(pages.len() - fresh);
                    self.spare.append(&mut pages);
                    // For other requests.
                    let released = self.release(backing, useless);
                    return other.and_then(|_| released.map(|()| None));
                }
            }
        }
        Ok(Some(pages))
    }

    /// Maps pages one behind the other and removes them from the list; all or none. Returns their total length.
    fn map(&mut self, backing: &mut dyn Backing, start: u64, pages: &mut Vec<Page>) -> Result<u64> {
        let mut end = start;
        let mut result = Ok(());
        for page in pages.iter() {
            result = backing.map(end, page.bytes, page.handle);
            if result.is_err() {
                break;
            }
            end += page.bytes;
        }
        let result = result.and_then(|()| backing.set_access(start, end - start));
        if let Err(error) = result {
            if end > start {
                // The first error is returned.
                let _ = backing.unmap(start, end - start);
            }
            return Err(error);
        }
        self.maps += pages.len() as u64;
        let mut at = start;
        for page in pages.drain(..) {
            self.pages.insert(at, page);
            at += page.bytes;
        }
        Ok(end - start)
    }
}
