//! How the heap grows by pages: where a block is to be, which pages it gets, and out of which holes.

use super::{Arena, Backing, COMPLETE, Found, Heap, Index, Page, State, arena_of};
use crate::driver::memory::pool::arena::After;
use crate::error::Result;

/// Pages are no longer than this.
const LARGEST_PAGE: u64 = 64 << 20;

/// Where a block can be: at the start of `first`, with memory still missing from `gap` on.
pub(super) struct Place {
    first: Index,
    gap: Index,
    missing: u64,
}

impl Place {
    /// No place at all.
    pub(super) const NONE: Place = Place { first: Index::MAX, gap: Index::MAX, missing: 0 };
}

/// A part of a free block that is whole pages.
pub(super) struct Hole {
    arena: usize,
    index: Index,
    from: u64,
    to: u64,
}

/// The largest power of two that is no larger.
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
    ) -> Result<Option<Found>> {
        let arena = arena_of(bytes);
        let Some(place) = self.place(backing, arena, stream, bytes, granularity)? else {
            return Ok(None);
        };
        let gap = *self.arenas[arena].node(place.gap);
        let affordable = self.affordable(allowed);
        let spare: u64 = self.spare.iter().map(|page| page.bytes).sum();
        let missing = place.missing;
        if holes {
            let wanted = missing - spare.min(missing);
            let (found, room) = self.holes(arena, &place, wanted, gap.bytes);
            if spare + room + affordable.min(missing) < missing {
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
        let part = self.arenas[arena].isolate(place.gap, gap.address, gap.address + length);
        let first = if place.first == place.gap { part } else { place.first };
        let after = match self.arenas[arena].node(first).state {
            State::Free(after) => after,
            _ => After::NOTHING,
        };
        // Not joined yet: what is before it may be the stream's own.
        self.arenas[arena].become_free(part, after);
        self.gather(arena, first, bytes, stream);
        Ok(Some(Found { grown: true, ..self.take(arena, first, bytes, stream) }))
    }

    /// Where a block of so many bytes misses the fewest pages.
    fn place(
        &mut self,
        backing: &mut dyn Backing,
        arena: usize,
        stream: u64,
        bytes: u64,
        granularity: u64,
    ) -> Result<Option<Place>> {
        let find = |arena: &Arena| {
            let mut best: Option<(u64, u64, Place)> = None;
            for gap in arena.unmapped() {
                let node = arena.node(gap);
                let before = arena.previous(gap).filter(|&before| match arena.node(before).state {
                    State::Free(after) => after.owner == COMPLETE || after.owner == stream,
                    _ => false,
                });
                let have = before.map_or(0, |before| arena.node(before).bytes);
                let missing = bytes.saturating_sub(have).next_multiple_of(granularity);
                let better =
                    best.as_ref().is_none_or(|(least, room, _)| (missing, node.bytes) < (*least, *room));
                if missing <= node.bytes && better {
                    best = Some((missing, node.bytes, Place { first: before.unwrap_or(gap), gap, missing }));
                }
            }
            best.map(|(_, _, place)| place)
        };
        if let Some(place) = find(&self.arenas[arena]) {
            return Ok(Some(place));
        }
        let length = self.range_bytes.max(bytes).next_multiple_of(granularity);
        let Some(address) = backing.reserve(length)? else {
            return Ok(None);
        };
        self.arenas[arena].add_range(address, length, State::Unmapped);
        Ok(find(&self.arenas[arena]))
    }

    /// Whole pages in free and complete blocks, from the smallest blocks on, until they are `wanted` bytes; at most
    /// `room`. Not from the block at the place itself.
    pub(super) fn holes(&self, at: usize, place: &Place, wanted: u64, room: u64) -> (Vec<Hole>, u64) {
        let (mut holes, mut total) = (Vec::new(), 0);
        for (number, arena) in self.arenas.iter().enumerate() {
            for index in arena.free_of(COMPLETE) {
                if total >= wanted {
                    return (holes, total);
                }
                if number == at && index == place.first {
                    continue;
                }
                let node = arena.node(index);
                let mut span: Option<(u64, u64)> = None;
                for (&address, page) in self.pages.range(node.address..node.end()) {
                    let end = address + page.bytes;
                    if end > node.end() || total + page.bytes > room || total >= wanted {
                        break;
                    }
                    total += page.bytes;
                    span = Some((span.map_or(address, |(from, _)| from), end));
                }
                if let Some((from, to)) = span {
                    holes.push(Hole { arena: number, index, from, to });
                }
            }
        }
        (holes, total)
    }

    /// Takes the pages of holes away from their addresses.
    pub(super) fn empty(&mut self, backing: &mut dyn Backing, holes: Vec<Hole>) -> Result<()> {
        let mut result = Ok(());
        for Hole { arena, index, from, to } in holes {
            let unmapped = backing.unmap(from, to - from);
            let addresses: Vec<u64> = self.pages.range(from..to).map(|(&address, _)| address).collect();
            self.unmaps += addresses.len() as u64;
            self.spare.extend(addresses.iter().filter_map(|address| self.pages.remove(address)));
            let part = self.arenas[arena].isolate(index, from, to);
            self.arenas[arena].change(part, State::Unmapped);
            result = result.and(unmapped);
            if result.is_err() {
                // The other holes stay what they are.
                break;
            }
        }
        result
    }

    /// Pages of `missing` bytes together, or up to `room`: spare ones first, then new ones.
    fn pages_for(
        &mut self,
        backing: &mut dyn Backing,
        missing: u64,
        room: u64,
        allowed: u64,
        granularity: u64,
    ) -> Result<Option<Vec<Page>>> {
        let (mut pages, mut total, mut fresh) = (Vec::new(), 0, 0);
        self.spare.sort_unstable_by_key(|page| page.bytes);
        while total < missing {
            // The largest that does not reach past the end; else the smallest that there is room for.
            let fits = self.spare.iter().rposition(|page| total + page.bytes <= missing);
            let over = self.spare.iter().position(|page| total + page.bytes <= room);
            let Some(at) = fits.or(over) else { break };
            total += self.spare[at].bytes;
            pages.push(self.spare.remove(at));
        }
        let mut unit = power_below((self.reserved / 256).max(missing / 32))
            .clamp(granularity, LARGEST_PAGE.max(granularity));
        while total < missing {
            let left = missing - total;
            let affordable = self.affordable(allowed);
            let whole = unit <= left || (total + unit <= room && unit <= affordable);
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
                    // For others to have.
                    let released = self.release(backing, useless);
                    return other.and_then(|_| released.map(|()| None));
                }
            }
        }
        Ok(Some(pages))
    }

    /// Gives pages addresses one behind the other and takes them out of the list; all or none. Returns their length.
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
        let result = result.and_then(|()| backing.grant(start, end - start));
        if let Err(error) = result {
            if end > start {
                // What went wrong first is what is reported.
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
