//! Barriers whose phase ends after so many bytes have come to a block, and the stores that they count (`mbarrier`, `st.async`).
//!
//! Stores arrive one at a time while a thread waits for their barrier, the last one first, as a device may have it: stores have no order.
//! Their bytes appear when the phase of the barrier ends, the latest that a device allows. A thread may read them after it has
//! waited for that phase. It may overwrite bytes that others have read if it knows of a later store of each
//! reader's warp: a phase of a barrier that it has waited for tells of all stores that ended it.

use std::collections::HashMap;

use super::memory::Shared;
use super::pure::LANES;

/// A barrier.
#[derive(Default)]
struct Barrier {
    /// Phases that have ended.
    phase: u64,
    /// The bytes of the phase, if a thread has said how many.
    expected: Option<u64>,
    found: u64,
    /// Stores that have not arrived.
    flying: Vec<Store>,
    /// Stores of the phase: addresses and bytes.
    stores: Vec<(u64, Vec<u8>)>,
    /// By warp, its last store of the phase.
    senders: HashMap<u32, u64>,
    /// By warp, its last store of the phase before.
    known: HashMap<u32, u64>,
}

/// A store, with its warp and its number among those of the warp.
struct Store {
    address: u64,
    bytes: Vec<u8>,
    warp: u32,
    number: u64,
}

/// Bytes of shared memory that an asynchronous store wrote.
struct Sent {
    barrier: u64,
    phase: u64,
    /// By warp that has read them, its stores before.
    readers: HashMap<u32, u64>,
}

/// The barriers of a cluster.
#[derive(Default)]
pub struct Transactions {
    barriers: HashMap<u64, Barrier>,
    /// By address and width.
    sent: HashMap<(u64, usize), Sent>,
    /// By warp, the number of its stores.
    stores: HashMap<u32, u64>,
    /// By warp and barrier, the phases that it has waited for.
    seen: HashMap<(u32, u64), u64>,
    /// By warp and other warp, the stores of the other that it knows of.
    known: HashMap<(u32, u32), u64>,
    /// By block, its threads that have ended.
    ended: HashMap<u64, u32>,
}

fn warp_of(thread: u32) -> u32 {
    thread / LANES as u32
}

impl Transactions {
    /// Initializes a barrier at which one thread arrives.
    pub fn init(&mut self, address: u64) {
        assert_eq!(address % 8, 0, "a barrier at {address}");
        assert!(self.barriers.insert(address, Barrier::default()).is_none(), "a barrier at {address} twice");
    }

    fn barrier(&mut self, address: u64) -> &mut Barrier {
        self.barriers.get_mut(&address).unwrap_or_else(|| panic!("no barrier at {address}"))
    }

    /// Arrives at a barrier whose phase has so many bytes.
    pub fn arrive_expect(&mut self, address: u64, bytes: u64, shared: &mut Shared) {
        let barrier = self.barrier(address);
        assert!(barrier.expected.replace(bytes).is_none(), "a second arrival at a barrier");
        self.end_phase(address, shared);
    }

    /// Stores bytes that a barrier of their block counts.
    pub fn store(
        &mut self,
        thread: u32,
        (address, bytes): (u64, &[u8]),
        barrier: u64,
        (block, threads): (u64, u32),
    ) {
        let warp = warp_of(thread);
        assert!(self.ended.get(&block).is_none_or(|&ended| ended < threads), "a store to a block that ended");
        if let Some(sent) = self.sent.get(&(address, bytes.len())) {
            for (&reader, &stores) in &sent.readers {
                let known = self.known.get(&(warp, reader)).copied().unwrap_or(0);
                assert!(reader == warp || known > stores, "a race at {address}");
            }
        }
        let number = self.stores.entry(warp).or_default();
        *number += 1;
        let number = *number;
        self.barrier(barrier).flying.push(Store { address, bytes: bytes.to_vec(), warp, number });
    }

    /// Ends the phase of a barrier if all of its bytes have come.
    fn end_phase(&mut self, address: u64, shared: &mut Shared) {
        let barrier = self.barrier(address);
        let Some(expected) = barrier.expected else { return };
        assert!(barrier.found <= expected, "{} bytes at a barrier of {expected}", barrier.found);
        if barrier.found < expected {
            return;
        }
        let (phase, stores) = (barrier.phase, std::mem::take(&mut barrier.stores));
        let known = std::mem::take(&mut barrier.senders);
        let flying = std::mem::take(&mut barrier.flying);
        *barrier = Barrier { phase: phase + 1, known, flying, ..Barrier::default() };
        for (place, bytes) in stores {
            shared.arrive(place, &bytes);
            let sent = Sent { barrier: address, phase, readers: HashMap::new() };
            self.sent.insert((place, bytes.len()), sent);
        }
    }

    /// Returns whether the phase of this parity has ended.
    pub fn try_wait(&mut self, thread: u32, address: u64, parity: u64, shared: &mut Shared) -> bool {
        let warp = warp_of(thread);
        let barrier = self.barrier(address);
        let last = if barrier.phase % 2 == parity % 2 { barrier.flying.pop() } else { None };
        if let Some(Store { address: place, bytes, warp, number }) = last {
            barrier.found += bytes.len() as u64;
            barrier.stores.push((place, bytes));
            let last = barrier.senders.entry(warp).or_default();
            *last = number.max(*last);
            self.end_phase(address, shared);
        }
        let barrier = self.barrier(address);
        let (phase, known) = (barrier.phase, barrier.known.clone());
        let has_ended = phase % 2 != parity % 2;
        if has_ended && self.seen.insert((warp, address), phase) != Some(phase) {
            for (other, number) in known {
                self.known.insert((warp, other), number);
            }
        }
        has_ended
    }

    /// Checks that a thread may read bytes, if an asynchronous store wrote them.
    pub fn read(&mut self, thread: u32, address: u64, width: usize) {
        if self.sent.is_empty() {
            return;
        }
        let warp = warp_of(thread);
        let Some(sent) = self.sent.get_mut(&(address, width)) else { return };
        let seen = self.seen.get(&(warp, sent.barrier)).copied().unwrap_or(0);
        assert!(seen > sent.phase, "a race at {address}: it is read before the phase of its barrier ends");
        sent.readers.insert(warp, self.stores.get(&warp).copied().unwrap_or(0));
    }

    /// All threads of the cluster meet, so each knows what the others have read.
    pub fn meet(&mut self) {
        self.sent.values_mut().for_each(|sent| sent.readers.clear());
    }

    /// Records the end of a thread of a block.
    pub fn end(&mut self, block: u64) {
        *self.ended.entry(block).or_default() += 1;
    }
}
