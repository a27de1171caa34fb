//! The heap against a naive model: random requests, frees, polls and trims on a driver that checks every call.

use std::collections::{BTreeMap, HashMap};

use super::{Heap, ObtainedBlock};
use crate::driver::memory::pool::arena::{COMPLETE, FreeAfter, NodeState};
use crate::driver::memory::pool::backing::{Backing, ReturnedBlock};
use crate::driver::memory::pool::class::class_of;
use crate::error::{Error, Result};

const PAGE: u64 = 2 << 20;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A driver that tracks every mapping, and panics on an invalid request.
#[derive(Default)]
struct Checked {
    paged: bool,
    next: u64,
    ranges: BTreeMap<u64, u64>,
    /// Bytes and address by handle.
    pages: HashMap<u64, (u64, Option<u64>)>,
    /// Bytes and handle by address.
    mapped: BTreeMap<u64, (u64, u64)>,
    accessible: BTreeMap<u64, u64>,
    segments: BTreeMap<u64, u64>,
    capacity: u64,
    taken: u64,
    /// The progress of each stream on the device.
    done: HashMap<u64, u64>,
    /// Memory that may be in use, by address: bytes, and the stream and position that end the use.
    busy: BTreeMap<u64, (u64, FreeAfter)>,
    live: u64,
    peak: u64,
    fails: u64,
}

impl Checked {
    fn may_fail(&mut self) -> Result<()> {
        if self.fails == 0 {
            return Ok(());
        }
        self.fails -= 1;
        if self.fails == 0 { Err(Error::invalid("a call", "a failure", "none")) } else { Ok(()) }
    }

    fn is_idle(&self, address: u64, bytes: u64) -> bool {
        let before = self.busy.range(..address + bytes).rev();
        // Blocks do not overlap, so the nearest ones decide.
        before
            .take_while(|(at, (length, _))| **at + length > address)
            .all(|(_, (_, after))| after.position <= self.done.get(&after.owner).copied().unwrap_or(0))
    }
}

impl Backing for Checked {
    fn granularity(&self) -> Option<u64> {
        self.paged.then_some(PAGE)
    }

    fn reserve(&mut self, bytes: u64) -> Result<Option<u64>> {
        self.may_fail()?;
        self.next += bytes + PAGE;
        let address = self.next - bytes;
        self.ranges.insert(address, bytes);
        Ok(Some(address))
    }

    fn unreserve(&mut self, address: u64, bytes: u64) -> Result<()> {
        assert_eq!(self.ranges.remove(&address), Some(bytes));
        assert!(self.mapped.range(address..address + bytes).next().is_none());
        self.may_fail()
    }

    fn create(&mut self, bytes: u64) -> Result<Option<u64>> {
        self.may_fail()?;
        assert!(bytes > 0 && bytes.is_multiple_of(PAGE));
        if self.taken + bytes > self.capacity {
            return Ok(None);
        }
        self.taken += bytes;
        self.next += PAGE;
        self.pages.insert(self.next, (bytes, None));
        Ok(Some(self.next))
    }

    fn release(&mut self, page: u64) -> Result<()> {
        let (bytes, address) = self.pages.remove(&page).unwrap();
        assert_eq!(address, None, "a mapped page is released");
        self.taken -= bytes;
        self.may_fail()
    }

    fn map(&mut self, address: u64, bytes: u64, page: u64) -> Result<()> {
        self.may_fail()?;
        let entry = self.pages.get_mut(&page).unwrap();
        assert_eq!(*entry, (bytes, None), "mapped twice, or in part");
        entry.1 = Some(address);
        let (range, length) = self.ranges.range(..=address).next_back().unwrap();
        assert!(address + bytes <= range + length && address % PAGE == range % PAGE);
        let before = self.mapped.range(..address + bytes).next_back();
        assert!(before.is_none_or(|(at, (length, _))| at + length <= address), "mapped over another");
        self.mapped.insert(address, (bytes, page));
        Ok(())
    }

    fn set_access(&mut self, address: u64, bytes: u64) -> Result<()> {
        self.may_fail()?;
        let mapped: u64 = self.mapped.range(address..address + bytes).map(|(_, (bytes, _))| bytes).sum();
        assert_eq!(mapped, bytes, "access to memory that is not mapped");
        self.accessible
            .extend(self.mapped.range(address..address + bytes).map(|(&at, &(bytes, _))| (at, bytes)));
        Ok(())
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<()> {
        assert!(self.is_idle(address, bytes), "memory in use is unmapped");
        let addresses: Vec<u64> = self.mapped.range(address..address + bytes).map(|(&at, _)| at).collect();
        let mut total = 0;
        for at in addresses {
            let (bytes, page) = self.mapped.remove(&at).unwrap();
            self.accessible.remove(&at);
            self.pages.get_mut(&page).unwrap().1 = None;
            total += bytes;
        }
        assert_eq!(total, bytes, "unmapped in part");
        self.may_fail()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Option<u64>> {
        self.may_fail()?;
        if self.taken + bytes > self.capacity {
            return Ok(None);
        }
        self.taken += bytes;
        self.next += bytes + 512;
        self.segments.insert(self.next - bytes, bytes);
        Ok(Some(self.next - bytes))
    }

    fn free(&mut self, address: u64) -> Result<()> {
        let bytes = self.segments.remove(&address).unwrap();
        assert!(self.is_idle(address, bytes), "memory in use is freed");
        self.taken -= bytes;
        self.may_fail()
    }

    fn done(&mut self, owner: u64) -> Result<u64> {
        self.may_fail()?;
        Ok(self.done.get(&owner).copied().unwrap_or(0))
    }

    fn can_wait(&self, _owner: u64) -> bool {
        true
    }

    fn drain(&mut self, _returned: &mut Vec<ReturnedBlock>) {}

    fn peak_live(&mut self, more: u64) -> u64 {
        self.peak.max(self.live + more)
    }
}

/// Checks that counts match the blocks, that mergeable neighbours are merged, and that all memory is accounted for.
fn check(heap: &Heap, driver: &Checked, live: &BTreeMap<u64, (u64, ObtainedBlock)>) {
    let (mut out, mut memory) = (0, 0);
    for range in heap.ranges() {
        let mut end = range[0].address;
        for (at, node) in range.iter().enumerate() {
            assert_eq!(node.address, end, "a gap");
            end = node.end();
            let before = at.checked_sub(1).map(|before| range[before].state);
            match (before, node.state) {
                (Some(NodeState::Unmapped), NodeState::Unmapped) => {
                    panic!("two blocks without memory side by side")
                }
                (Some(NodeState::Free(a)), NodeState::Free(b)) => assert_ne!(a.owner, b.owner, "not joined"),
                _ => {}
            }
            if let NodeState::Out(_) = node.state {
                out += 1;
                assert_eq!(live[&node.address].0, node.bytes);
            }
            if node.state != NodeState::Unmapped {
                memory += node.bytes;
                let accessible: u64 = driver
                    .accessible
                    .range(..node.end())
                    .rev()
                    .take_while(|(at, bytes)| **at + **bytes > node.address)
                    .map(|(&at, bytes)| (at + bytes).min(node.end()) - at.max(node.address))
                    .sum();
                assert!(!driver.paged || accessible == node.bytes, "a block without memory or access");
            }
        }
    }
    let spare: u64 = heap.spare.iter().map(|page| page.bytes).sum();
    assert_eq!((out, memory + spare), (live.len(), heap.reserved));
    assert_eq!(driver.taken, heap.reserved);
}

/// `prompt`: the device never lags.
fn run(seed: u64, paged: bool, failing: bool, prompt: bool) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut driver = Checked { paged, next: 1 << 30, capacity: 1 << 32, ..Checked::default() };
    let mut heap = Heap::new(1 << 31, None);
    let mut live: BTreeMap<u64, (u64, ObtainedBlock)> = BTreeMap::new();
    let mut streams: HashMap<u64, u64> = HashMap::new();
    let (mut position, mut within, mut grown) = (0, 0u64, 0u64);
    for step in 0..4000 {
        position += 1;
        if prompt {
            (1..=3).for_each(|stream| _ = driver.done.insert(stream, position));
        }
        if failing {
            driver.fails = random.below(8);
        }
        let stream = 1 + random.below(3);
        match random.below(100) {
            0..55 => {
                let most = [2000, 100_000, 4 << 20, 64 << 20][random.below(4) as usize];
                let bytes = class_of(1 + random.below(most)).unwrap().bytes;
                if driver.live + bytes > 1 << 29 {
                    continue;
                }
                let before = heap.reserved;
                let Ok(Some(found)) = heap.obtain(&mut driver, stream, bytes) else {
                    assert!(failing, "no memory at step {step}");
                    continue;
                };
                driver.live += bytes;
                driver.peak = driver.peak.max(driver.live);
                if heap.reserved > before {
                    grown += 1;
                    within += u64::from(heap.reserved <= driver.peak + driver.peak / 10 + super::SLACK);
                    // The guaranteed bound. It exceeds a tenth about once in 25 000 growths, when every sufficient hole
                    // lies in pages that are partly used.
                    let promised = driver.peak + driver.peak / 20 * 3 + super::SLACK;
                    assert!(!paged || !prompt || heap.reserved <= promised, "{} reserved", heap.reserved);
                }
                // The last user of these bytes is this stream, is done, or is waited for.
                let end = found.address + bytes;
                let old: Vec<u64> = driver
                    .busy
                    .range(..end)
                    .rev()
                    .take_while(|(at, (length, _))| **at + length > found.address)
                    .map(|(&at, _)| at)
                    .collect();
                for at in old {
                    let (length, after) = driver.busy[&at];
                    let done = after.position <= driver.done.get(&after.owner).copied().unwrap_or(0);
                    let waits = after.owner == found.after.owner && after.position <= found.after.position;
                    assert!(after.owner == stream || done || waits, "given away in use: {after:?} {found:?}");
                    driver.busy.remove(&at);
                    // The parts outside the block still belong to the earlier use.
                    if at < found.address {
                        driver.busy.insert(at, (found.address - at, after));
                    }
                    if at + length > end {
                        driver.busy.insert(end, (at + length - end, after));
                    }
                }
                driver.busy.insert(found.address, (bytes, FreeAfter { owner: stream, position: u64::MAX }));
                assert!(live.insert(found.address, (bytes, found)).is_none(), "given twice");
                streams.insert(found.address, stream);
            }
            55..94 => {
                let Some((&address, &(bytes, found))) =
                    live.iter().nth(random.below(live.len().max(1) as u64) as usize)
                else {
                    continue;
                };
                live.remove(&address);
                driver.live -= bytes;
                let after = FreeAfter { owner: streams[&address], position };
                driver.busy.insert(address, (bytes, after));
                heap.give_back(found.index, bytes, after);
            }
            94..99 => {
                let done = driver.done.entry(stream).or_default();
                *done = (*done).max(position.saturating_sub(random.below(200)));
            }
            _ => {
                let trimmed = heap.trim(&mut driver);
                assert!(failing || trimmed.is_ok());
            }
        }
        if step % 16 == 0 {
            check(&heap, &driver, &live);
        }
    }
    println!(
        "{within} of {grown} growths within the bound; {} reserved, {} live",
        heap.peak_reserved, driver.peak
    );
    assert!(!paged || !prompt || within + 1 >= grown, "{within} of {grown} growths within the bound");
    driver.fails = 0;
    for (_, (bytes, found)) in live {
        heap.give_back(found.index, bytes, FreeAfter { owner: COMPLETE, position: 0 });
    }
    driver.busy.clear();
    (1..=3).for_each(|stream| _ = driver.done.insert(stream, u64::MAX));
    heap.trim(&mut driver).unwrap();
    assert_eq!((heap.reserved, driver.taken, driver.pages.len(), driver.segments.len()), (0, 0, 0, 0));
    assert!(driver.mapped.is_empty() && (failing || driver.ranges.is_empty()));
}

#[test]
fn random_programs_agree_with_the_model() {
    for seed in 1..30 {
        run(seed, seed % 3 != 0, false, seed % 2 == 0);
    }
}

#[test]
fn failing_calls_leave_the_accounting_right() {
    for seed in 100..130 {
        run(seed, seed % 3 != 0, true, false);
    }
}

#[test]
fn holes_serve_what_is_larger_than_any_of_them() {
    let mut driver = Checked { paged: true, next: 1 << 30, capacity: 1 << 32, ..Checked::default() };
    let mut heap = Heap::new(1 << 31, None);
    let mut blocks = Vec::new();
    for _ in 0..32 {
        let found = heap.obtain(&mut driver, 1, 32 << 20).unwrap().unwrap();
        driver.live += 32 << 20;
        driver.peak = driver.live;
        blocks.push(found);
    }
    let reserved = heap.reserved;
    // Every other block, so that no two are neighbours.
    for found in blocks.iter().step_by(2) {
        heap.give_back(found.index, 32 << 20, FreeAfter { owner: 1, position: 1 });
        driver.live -= 32 << 20;
    }
    driver.done.insert(1, 1);
    let large = heap.obtain(&mut driver, 1, 512 << 20).unwrap().unwrap();
    assert!(large.grown && heap.unmaps > 0);
    assert!(heap.reserved <= reserved + reserved / 10 + super::SLACK, "{reserved} -> {}", heap.reserved);
}
