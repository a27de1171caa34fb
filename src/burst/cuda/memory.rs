//! The device memory of a loaded network.
//!
//! Kernels get the addresses in one struct, so the driver layer does not see which buffers a launch uses. Two rules replace its
//! ordering: every buffer is written on the backend's stream before the first launch, and all later work on it goes to that stream.

use super::kernels::Kernels;
use super::layout::{self, Counters, SEGMENT, Segment};
use crate::burst::network::Network;
use crate::burst::neurons::NeuronParameters;
use crate::burst::state::{NeuronState, Spike};
use crate::driver::{DeviceBuffer, Stream};
use crate::{Error, Result};

/// Flags by which a source's spikes propagate.
const SOURCE_FLAGS: u16 = NeuronParameters::SHARES | NeuronParameters::POTENTIAL_DRIVEN;

/// Neurons between two that one copy still reads together: more bytes cost less than another copy.
const COPY_GAP: usize = 4096;

/// The sizes of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The first neuron that is updated here.
    pub first: u32,
    /// The neurons that are updated here.
    pub owned: usize,
    /// All neurons.
    pub sources: usize,
    pub synapses: u64,
}

impl Sizes {
    pub(super) fn of(network: &Network) -> Sizes {
        let owned = network.owned();
        let synapses = network.synapses().len() as u64;
        Sizes { first: owned.start, owned: owned.len(), sources: network.len(), synapses }
    }

    /// The most chunks that rows can be cut into: each row's length, begun up to 3 synapses early, rounded up.
    pub(super) fn most_chunks(&self) -> u64 {
        (self.synapses + self.sources as u64 * (layout::CHUNK + 2)) / layout::CHUNK
    }
}

pub(super) struct Memory {
    pub sizes: Sizes,
    pub parameters: DeviceBuffer<NeuronParameters>,
    pub states: DeviceBuffer<NeuronState>,
    pub rows: DeviceBuffer<u64>,
    pub targets: DeviceBuffer<u32>,
    pub weights: DeviceBuffer<u16>,
    pub out_degrees: Option<DeviceBuffer<u32>>,
    pub source_flags: Option<DeviceBuffer<u8>>,
    pub counters: DeviceBuffer<Counters>,
    pub queue: DeviceBuffer<Spike>,
    sums: DeviceBuffer<u64>,
    touched: DeviceBuffer<u32>,
    mask: DeviceBuffer<u32>,
    segments: DeviceBuffer<Segment>,
    queue_starts: DeviceBuffer<u32>,
}

impl Memory {
    /// Allocates the memory for a network of these sizes, all zeros, before burst 1.
    pub(super) fn new(stream: &Stream, sizes: Sizes) -> Result<Memory> {
        // Synapses are read by vectors of four, and their positions in a queue have 32 bits.
        let synapses =
            usize::try_from(sizes.synapses).ok().and_then(|count| count.checked_next_multiple_of(4));
        let synapses = synapses.filter(|_| u32::try_from(sizes.most_chunks()).is_ok()).ok_or_else(|| {
            Error::invalid("a network on a device", format!("{} synapses", sizes.synapses), "below 2^38")
        })?;
        let segments = sizes.owned.div_ceil(SEGMENT);
        let words = segments * SEGMENT / 32;
        let mut counters = stream.zeros(1)?;
        stream.copy_from_host(&[Counters { next: 1, ..Counters::default() }], &mut counters)?;
        Ok(Memory {
            sizes,
            parameters: stream.zeros(sizes.owned)?,
            states: stream.zeros(sizes.owned)?,
            rows: stream.zeros(sizes.sources + 1)?,
            targets: stream.zeros(synapses)?,
            weights: stream.zeros(synapses)?,
            out_degrees: None,
            source_flags: None,
            counters,
            queue: stream.zeros(sizes.sources)?,
            sums: stream.zeros(sizes.owned)?,
            touched: stream.zeros(words)?,
            mask: stream.zeros(words)?,
            // A queue of all shards has segments too.
            segments: stream.zeros(sizes.sources.div_ceil(SEGMENT))?,
            queue_starts: stream.zeros(sizes.sources)?,
        })
    }

    /// Uploads a network, at rest before burst 1.
    pub(super) fn upload(stream: &Stream, network: &Network, at_rest: &[NeuronState]) -> Result<Memory> {
        let mut memory = Memory::new(stream, Sizes::of(network))?;
        let owned = network.owned().start as usize..network.owned().end as usize;
        let synapses = network.synapses();
        stream.copy_from_host(&network.parameters()[owned.clone()], &mut memory.parameters)?;
        stream.copy_from_host(&at_rest[owned], &mut memory.states)?;
        stream.copy_from_host(synapses.row_pointers(), &mut memory.rows)?;
        stream.copy_from_host(synapses.targets(), &mut memory.targets.slice_mut(..synapses.len())?)?;
        stream.copy_from_host(synapses.weights(), &mut memory.weights.slice_mut(..synapses.len())?)?;
        if let Some(degrees) = network.out_degrees() {
            // No contribution is as large as u32::MAX, so a larger divisor gives 0 too.
            let degrees: Vec<u32> =
                degrees.iter().map(|&degree| u32::try_from(degree).unwrap_or(u32::MAX)).collect();
            memory.out_degrees = Some(stream.upload(&degrees)?);
        }
        let flags: Vec<u8> = network.parameters().iter().map(source_flags).collect();
        if flags.iter().any(|&flags| flags != 0) {
            memory.source_flags = Some(stream.upload(&flags)?);
        }
        Ok(memory)
    }

    /// The addresses, for kernels.
    pub(super) fn arguments(&self, seed: u32, dense: bool) -> layout::Network {
        layout::Network {
            parameters: self.parameters.address(),
            states: self.states.address(),
            rows: self.rows.address(),
            targets: self.targets.address(),
            weights: self.weights.address(),
            out_degrees: self.out_degrees.as_ref().map_or(0, DeviceBuffer::address),
            source_flags: self.source_flags.as_ref().map_or(0, DeviceBuffer::address),
            sums: self.sums.address(),
            touched: self.touched.address(),
            mask: self.mask.address(),
            segments: self.segments.address(),
            counters: self.counters.address(),
            queue: self.queue.address(),
            queue_starts: self.queue_starts.address(),
            first: self.sizes.first,
            count: self.sizes.owned as u32,
            seed,
            dense: dense.into(),
        }
    }

    /// Replaces the constants of some neurons. Returns whether an address changed.
    pub(super) fn set_parameters(
        &mut self,
        stream: &Stream,
        changes: &[(u32, NeuronParameters)],
        network: Option<&Network>,
    ) -> Result<bool> {
        let range = self.sizes.first..self.sizes.first + self.sizes.owned as u32;
        // Of two changes of one neuron the later one counts.
        let mut last = std::collections::BTreeMap::new();
        last.extend(changes.iter().copied());
        let is_new = self.source_flags.is_none() && last.values().any(|change| source_flags(change) != 0);
        if is_new {
            let flags: Vec<u8> = match network {
                Some(network) => network.parameters().iter().map(source_flags).collect(),
                None => vec![0; self.sizes.sources],
            };
            self.source_flags = Some(stream.upload(&flags)?);
        }
        let mut changes = last.into_iter().peekable();
        while let Some((id, first)) = changes.next() {
            let mut run = vec![first];
            while let Some((_, next)) = changes.next_if(|(next, _)| *next == id + run.len() as u32) {
                run.push(next);
            }
            if let Some(flags) = &mut self.source_flags {
                let new: Vec<u8> = run.iter().map(source_flags).collect();
                stream.copy_from_host(&new, &mut flags.slice_mut(id as usize..id as usize + new.len())?)?;
            }
            // The part of the run that is updated here.
            let start = id.max(range.start);
            let end = (id + run.len() as u32).min(range.end);
            if start < end {
                let own = &run[(start - id) as usize..(end - id) as usize];
                let (start, end) = ((start - range.start) as usize, (end - range.start) as usize);
                stream.copy_from_host(own, &mut self.parameters.slice_mut(start..end)?)?;
            }
        }
        Ok(is_new)
    }

    /// Replaces the queue of spikes and the number of bursts done.
    pub(super) fn set_queue(
        &mut self,
        stream: &Stream,
        kernels: &Kernels,
        burst: u64,
        fired: &[Spike],
    ) -> Result<()> {
        if !fired.is_empty() {
            stream.copy_from_host(fired, &mut self.queue.slice_mut(..fired.len())?)?;
        }
        let counters = Counters { next: burst + 1, burst, queue: fired.len() as u32, ..Counters::default() };
        stream.copy_from_host(&[counters], &mut self.counters)?;
        if fired.is_empty() {
            Ok(())
        } else {
            kernels.measure_queue(stream, self.arguments(0, false), fired.len())
        }
    }

    /// Reads the queue of spikes.
    pub(super) fn queue(&self, stream: &Stream) -> Result<Vec<Spike>> {
        let count = stream.download(&self.counters)?[0].queue as usize;
        if count == 0 { Ok(Vec::new()) } else { stream.download(&self.queue.slice(..count)?) }
    }

    /// Reads the potentials of some neurons, none of those that are updated elsewhere. Neighbours are read by one copy.
    pub(super) fn potentials(&self, stream: &Stream, ids: &[u32]) -> Result<Vec<Option<f32>>> {
        let index = |id: u32| {
            id.checked_sub(self.sizes.first).map(|at| at as usize).filter(|&at| at < self.sizes.owned)
        };
        let mut indices: Vec<usize> = ids.iter().filter_map(|&id| index(id)).collect();
        indices.sort_unstable();
        let mut blocks: Vec<(usize, Vec<NeuronState>)> = Vec::new();
        for near in indices.chunk_by(|one, next| next - one <= COPY_GAP) {
            let (first, last) = (near[0], near[near.len() - 1]);
            blocks.push((first, stream.download(&self.states.slice(first..last + 1)?)?));
        }
        let potential = |at: usize| {
            let block = blocks.partition_point(|(first, _)| *first <= at).checked_sub(1)?;
            let (first, states) = blocks.get(block)?;
            states.get(at - first).map(|state| state.potential)
        };
        Ok(ids.iter().map(|&id| index(id).and_then(potential)).collect())
    }

    /// The bytes of device memory.
    pub(super) fn bytes(&self) -> u64 {
        fn bytes<T: bytemuck::Pod>(buffer: &DeviceBuffer<T>) -> u64 {
            (buffer.len() * size_of::<T>()) as u64
        }
        let optional =
            self.out_degrees.as_ref().map_or(0, bytes) + self.source_flags.as_ref().map_or(0, bytes);
        let neurons = bytes(&self.parameters) + bytes(&self.states) + bytes(&self.sums);
        let masks = bytes(&self.touched) + bytes(&self.mask) + bytes(&self.segments) + bytes(&self.counters);
        let queue = bytes(&self.queue) + bytes(&self.queue_starts);
        let synapses = bytes(&self.rows) + bytes(&self.targets) + bytes(&self.weights);
        neurons + masks + queue + synapses + optional
    }
}

fn source_flags(parameters: &NeuronParameters) -> u8 {
    (parameters.flags & SOURCE_FLAGS) as u8
}
