//! Page-locked memory through which the host gives input to bursts and gets their results, a slot for each burst that is under way.

use super::layout::{self, Record};
use crate::burst::backend::{BurstCounts, BurstResult, Injection};
use crate::burst::state::Spike;
use crate::driver::{Device, PinnedBuffer};
use crate::{Error, Result};

/// Bytes of results that may be on their way.
const RESULT_BYTES: usize = 32 << 20;
/// Slots at least, so that the device works while the host reads, and at most.
const SLOTS: (usize, usize) = (2, 64);
/// Injections that fit a slot at first.
const CAPACITY: usize = 1024;

pub(super) struct ExchangeMemory {
    device: Device,
    slots: usize,
    neurons: usize,
    records: PinnedBuffer<Record>,
    /// `neurons` for each slot; made when results are first asked for.
    spikes: Option<PinnedBuffer<Spike>>,
    capacity: usize,
    counts: PinnedBuffer<u32>,
    ids: PinnedBuffer<u32>,
    sums: PinnedBuffer<i64>,
}

impl ExchangeMemory {
    /// For a network of that many neurons.
    pub(super) fn new(device: Device, neurons: usize) -> Result<ExchangeMemory> {
        let slots = RESULT_BYTES / (neurons.max(1) * size_of::<Spike>());
        let slots = slots.clamp(SLOTS.0, SLOTS.1);
        let mut counts = device.pinned(slots)?;
        counts.fill(0);
        let mut records = device.pinned(slots)?;
        records.fill(Record::default());
        Ok(ExchangeMemory {
            device,
            slots,
            neurons,
            records,
            spikes: None,
            capacity: CAPACITY,
            counts,
            ids: device.pinned(slots * CAPACITY)?,
            sums: device.pinned(slots * CAPACITY)?,
        })
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    fn slot(&self, burst: u64) -> usize {
        ((burst - 1) % self.slots as u64) as usize
    }

    /// Makes memory for the spikes themselves, unless it is there. Returns whether an address changed.
    pub(super) fn prepare_spikes(&mut self) -> Result<bool> {
        if self.spikes.is_some() {
            return Ok(false);
        }
        self.spikes = Some(self.device.pinned(self.neurons * self.slots)?);
        Ok(true)
    }

    /// Makes memory for lists of that many injections while no burst is under way. Returns whether an address changed.
    pub(super) fn prepare_injections(&mut self, count: usize) -> Result<bool> {
        if count <= self.capacity {
            return Ok(false);
        }
        let capacity = count.checked_next_power_of_two().filter(|&count| u32::try_from(count).is_ok());
        let capacity = capacity.ok_or_else(|| {
            Error::invalid("the injections of a burst", format!("{count} of them"), "at most 2^31")
        })?;
        // All or nothing: a failure leaves what was there.
        let (ids, sums) =
            (self.device.pinned(self.slots * capacity)?, self.device.pinned(self.slots * capacity)?);
        (self.ids, self.sums, self.capacity) = (ids, sums, capacity);
        Ok(true)
    }

    /// Writes the input of a burst. Its slot is free, and the list fits.
    pub(super) fn write_injections(&mut self, burst: u64, injections: &[Injection]) {
        let slot = self.slot(burst);
        let start = slot * self.capacity;
        for (at, injection) in (start..).zip(injections) {
            self.ids[at] = injection.id;
            self.sums[at] = injection.thousandths;
        }
        self.counts[slot] = injections.len() as u32;
    }

    /// Reads the result of a burst that has ended, with spikes where they were asked for, and their number.
    pub(super) fn read_result(&self, burst: u64, with_spikes: bool) -> Result<(BurstResult, u64)> {
        let slot = self.slot(burst);
        let record = self.records[slot];
        let fired = record.fired as usize;
        if record.burst != burst || fired > self.neurons {
            let found = format!("the record of burst {} with {fired} spikes", record.burst);
            return Err(Error::invalid("reading the result of a burst", found, format!("burst {burst}")));
        }
        let fired = match (with_spikes, &self.spikes) {
            (false, _) => Vec::new(),
            (true, Some(spikes)) => spikes[slot * self.neurons..][..fired].to_vec(),
            (true, None) => {
                return Err(Error::invalid("reading the result of a burst", "no memory for spikes", "some"));
            }
        };
        let counts = BurstCounts {
            events: record.events,
            injections: record.injections,
            candidates: record.candidates,
            blocked: record.blocked,
        };
        Ok((BurstResult { burst, fired, counts }, record.fired))
    }

    /// The addresses of the lists, for kernels.
    pub(super) fn injections(&self) -> layout::Injections {
        layout::Injections {
            ids: address(&self.ids),
            sums: address(&self.sums),
            counts: address(&self.counts),
            capacity: self.capacity as u64,
            slots: self.slots as u32,
            ..layout::Injections::default()
        }
    }

    /// The addresses of the results, for kernels.
    pub(super) fn results(&self, with_spikes: bool) -> layout::Results {
        layout::Results {
            records: address(&self.records),
            spikes: self.spikes.as_ref().filter(|_| with_spikes).map_or(0, address),
            capacity: self.neurons as u64,
            slots: self.slots as u64,
        }
    }
}

/// Page-locked memory has one address on the host and on every device.
fn address<T: bytemuck::Pod>(buffer: &PinnedBuffer<T>) -> u64 {
    buffer.as_ptr().addr() as u64
}
