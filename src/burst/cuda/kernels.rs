//! The kernels of `csrc/kernels/burst.cu` and `burst_generate.cu`.

use super::layout::{Injections, Network, Results, SEGMENT, THREADS};
use super::memory::Sizes;
use crate::Result;
use crate::driver::{ByValue, Device, DeviceBuffer, Function, LaunchConfig, Stream};
use crate::images::{self, DeviceProperties, Entry};

const FAMILY: &str = "burst";
const GENERATE_FAMILY: &str = "burst_generate";

/// By the kind of accumulator: packed, then wide.
const INJECT: [&str; 2] = ["burst_inject_packed", "burst_inject_wide"];
const PROPAGATE: [&str; 2] = ["burst_propagate_packed", "burst_propagate_wide"];
const DYNAMICS: [&str; 2] = ["burst_dynamics_packed", "burst_dynamics_wide"];
const ORDER: &str = "burst_order";
const QUEUE: [&str; 2] = ["burst_queue_measure", "burst_queue_place"];
const IN_DEGREES: &str = "burst_in_degrees";
const LARGEST: &str = "burst_largest";
const WRITE_WEIGHTS: &str = "burst_write_weights";
/// By the network: G, then S.
const GENERATE_NEURONS: [&str; 2] = ["burst_generate_neurons_g", "burst_generate_neurons_s"];
const GENERATE_ROWS: [&str; 2] = ["burst_generate_rows_g", "burst_generate_rows_s"];

/// Blocks of a multiprocessor that run at one time, by threads.
const BLOCKS_OF_A_MULTIPROCESSOR: u64 = 8;
/// Bytes of shared memory that every device has for a block.
const SHARED_BYTES: u32 = 48 << 10;
const WARPS: u64 = THREADS as u64 / 32;

/// The launches of one burst.
pub(super) struct Burst {
    pub network: Network,
    pub injections: Injections,
    pub results: Results,
    /// Packs each sum with its count of events.
    pub packed: bool,
    pub sizes: Sizes,
}

pub(super) struct Kernels {
    device: Device,
    inject: [Function; 2],
    propagate: [Function; 2],
    dynamics: [Function; 2],
    order: Function,
    queue: [Function; 2],
    /// Blocks that run at one time.
    most_blocks: u64,
}

impl Kernels {
    pub(super) fn new(device: Device) -> Result<Kernels> {
        let function = |name| images::kernel(&device, FAMILY, Entry::Name(name));
        let both = |names: [&'static str; 2]| -> Result<[Function; 2]> {
            Ok([function(names[0])?, function(names[1])?])
        };
        let multiprocessors = DeviceProperties::from_device(&device)?.multiprocessors;
        Ok(Kernels {
            inject: both(INJECT)?,
            propagate: both(PROPAGATE)?,
            dynamics: both(DYNAMICS)?,
            order: function(ORDER)?,
            queue: both(QUEUE)?,
            most_blocks: u64::from(multiprocessors) * BLOCKS_OF_A_MULTIPROCESSOR,
            device,
        })
    }

    /// A grid of as many blocks as there is work for, and at most as many as run at one time: every kernel loops.
    fn grid(&self, blocks: u64) -> LaunchConfig {
        LaunchConfig::new(blocks.clamp(1, self.most_blocks) as u32, THREADS)
    }

    fn grid_of_threads(&self, threads: u64) -> LaunchConfig {
        self.grid(threads.div_ceil(THREADS.into()))
    }

    /// Launches the kernels of a burst.
    pub(super) fn launch(&self, stream: &Stream, burst: &Burst) -> Result<()> {
        let kind = usize::from(!burst.packed);
        let (network, sizes) = (ByValue(burst.network), burst.sizes);
        let patterned = if burst.injections.modulus == 0 { 0 } else { sizes.owned as u64 };
        let injections = burst.injections.capacity.max(burst.injections.steady).max(patterned);
        let segments = sizes.owned.div_ceil(SEGMENT) as u64;
        // A warp takes four chunks where there are enough of them.
        let propagating = self.grid(sizes.most_chunks().div_ceil(4 * WARPS));
        // SAFETY: the kernels take these structs. `Memory` made the addresses and sizes, ids were checked to be below the
        // number of neurons, and all work on that memory is on this stream.
        unsafe {
            let inject = (network, ByValue(burst.injections));
            self.inject[kind].launch(stream, self.grid_of_threads(injections), inject)?;
            self.propagate[kind].launch(stream, propagating, (network,))?;
            self.dynamics[kind].launch(stream, self.grid(segments), (network,))?;
            let ordering = self.grid(segments.div_ceil(WARPS));
            self.order.launch(stream, ordering, (network, ByValue(burst.results)))
        }
    }

    /// Cuts the rows of a queue that the host wrote into chunks.
    pub(super) fn measure_queue(&self, stream: &Stream, network: Network, spikes: usize) -> Result<()> {
        let grid = self.grid((spikes.div_ceil(SEGMENT) as u64).div_ceil(WARPS));
        // SAFETY: as for `launch`; the queue holds that many spikes of neurons.
        unsafe {
            self.queue[0].launch(stream, grid, (ByValue(network),))?;
            self.queue[1].launch(stream, grid, (ByValue(network),))
        }
    }

    /// Returns the most synapses that end in one neuron. All sums are 0 before and after.
    pub(super) fn largest_in_degree(&self, stream: &Stream, network: Network, sizes: Sizes) -> Result<u64> {
        let mut largest = stream.zeros::<u64>(1)?;
        let count = images::kernel(&self.device, FAMILY, Entry::Name(IN_DEGREES))?;
        let reduce = images::kernel(&self.device, FAMILY, Entry::Name(LARGEST))?;
        // SAFETY: as for `launch`; the targets are that many.
        unsafe {
            count.launch(stream, self.grid_of_threads(sizes.synapses), (ByValue(network), sizes.synapses))?;
            reduce.launch(
                stream,
                self.grid_of_threads(sizes.owned as u64),
                (ByValue(network), &mut largest),
            )?;
        }
        Ok(stream.download(&largest)?[0])
    }

    /// Writes weights. No synapse comes twice, and all are in the network.
    pub(super) fn write_weights(
        &self,
        stream: &Stream,
        network: Network,
        synapses: &DeviceBuffer<u64>,
        weights: &DeviceBuffer<u8>,
    ) -> Result<()> {
        let count = synapses.len() as u64;
        let write = images::kernel(&self.device, FAMILY, Entry::Name(WRITE_WEIGHTS))?;
        // SAFETY: as for `launch`; the caller gives synapses of the network, and as many weights.
        unsafe {
            write.launch(stream, self.grid_of_threads(count), (ByValue(network), synapses, weights, count))
        }
    }

    /// Returns whether [`generate`](Self::generate) sorts rows of this length.
    pub(super) fn can_generate(degree: u32) -> bool {
        degree <= SHARED_BYTES / 8
    }

    /// Makes network G or S in the memory of a network of that size.
    pub(super) fn generate(
        &self,
        stream: &Stream,
        network: Network,
        degree: u32,
        is_steady: bool,
    ) -> Result<()> {
        let function = |names: [&'static str; 2]| {
            images::kernel(&self.device, GENERATE_FAMILY, Entry::Name(names[usize::from(is_steady)]))
        };
        let (neurons, rows) = (function(GENERATE_NEURONS)?, function(GENERATE_ROWS)?);
        let count = u64::from(network.count);
        let of_rows = self.grid(count).shared(8 * degree);
        // SAFETY: as for `launch`; the rows have `degree` synapses each, and shared memory holds one of them.
        unsafe {
            neurons.launch(stream, self.grid_of_threads(count), (ByValue(network),))?;
            rows.launch(stream, of_rows, (ByValue(network), degree))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        let assert_declared = |family: &str, mut looked_up: Vec<&str>| {
            looked_up.sort_unstable();
            assert_eq!(entries::declared(family, "sm_60"), looked_up, "{family}");
        };
        let single = [ORDER, IN_DEGREES, LARGEST, WRITE_WEIGHTS];
        assert_declared(FAMILY, [&INJECT[..], &PROPAGATE, &DYNAMICS, &QUEUE, &single].concat());
        assert_declared(GENERATE_FAMILY, [&GENERATE_NEURONS[..], &GENERATE_ROWS].concat());
    }
}
