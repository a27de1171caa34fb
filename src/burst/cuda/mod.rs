//! The CUDA backend: the network stays in device memory, and a burst is one graph of four kernels.
//!
//! Several bursts run back to back: their counters stay on the device, input and results go through slots of page-locked memory,
//! and the host waits for half of the slots while the device works on the other half.
//!
//! | file | subject |
//! |---|---|
//! | `layout` | the structs that kernels take |
//! | `kernels` | names and launches of the kernels |
//! | `memory` | the network in device memory |
//! | `exchange_memory` | injections and results in page-locked memory |
//! | `bounds` | the proof that packed sums do not overflow |
//!
//! Tests: `tests/fake/emulated/burst.rs` runs the kernels without a device, `tests/gpu/burst.rs` on one.

mod bounds;
mod exchange_memory;
mod kernels;
mod layout;
mod memory;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use self::bounds::Bounds;
use self::exchange_memory::ExchangeMemory;
use self::kernels::{Burst, Kernels};
use self::memory::{Memory, Sizes};
use super::backend::{Backend, BurstCounts, BurstResult, Injection, WeightChange};
use super::generate::GeneratedNetwork;
use super::network::Network;
use super::neurons::{NeuronParameters, check_ids};
use super::state::{NetworkState, Spike, check_spikes};
use super::synapses::MAX_NEURONS;
use crate::driver::{Device, DeviceBuffer, Event, ExecutableGraph, Stream};
use crate::{Error, Result};

/// Input that the device makes itself in every burst: `thousandths` to each neuron `i` for which
/// `pcg(i ^ pcg(base + burst)) % modulus` is 0, as in the generated networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InjectionPattern {
    /// Added to the number of the burst.
    pub base: u32,
    /// One neuron in so many gets input; 0: none does.
    pub modulus: u32,
    /// The input in thousandths.
    pub thousandths: i64,
}

/// The backend of a CUDA device.
///
/// After an error that lost the device's context, [`last_state`](Cuda::last_state) is the newest state that the host has.
///
/// ```no_run
/// use std::sync::Arc;
/// use selvedge::burst::{Backend, Cuda, GeneratedNetwork};
/// use selvedge::driver::Device;
///
/// # fn main() -> selvedge::Result<()> {
/// let generated = GeneratedNetwork::g(1000, 20);
/// let mut cuda = Cuda::new(Device::new(0)?)?;
/// cuda.load(&Arc::new(generated.network()?), 7)?;
/// cuda.inject(&generated.injections(1))?;
/// assert_eq!(cuda.run_burst()?.fired.len(), 12);
/// # Ok(())
/// # }
/// ```
pub struct Cuda {
    stream: Stream,
    kernels: Kernels,
    loaded: Option<Loaded>,
}

struct Loaded {
    /// By accumulator and by whether spikes are asked for. Before the memory, so that they are dropped first.
    graphs: [Option<ExecutableGraph>; 4],
    memory: Memory,
    exchange: ExchangeMemory,
    stream: Stream,
    /// None where the device made the network itself.
    network: Option<Arc<Network>>,
    seed: u32,
    dense: bool,
    /// Bursts done.
    burst: u64,
    staged: Vec<Injection>,
    steady: Option<Steady>,
    pattern: Option<InjectionPattern>,
    in_degree: u64,
    plastic: bool,
    /// As last loaded, set or read.
    last_state: NetworkState,
}

/// Injections of every burst, in device memory.
struct Steady {
    ids: DeviceBuffer<u32>,
    sums: DeviceBuffer<i64>,
    bounds: Bounds,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Kernels reach page-locked memory by its address alone. A lost context runs none.
        let _ = self.stream.synchronize();
    }
}

impl Cuda {
    /// Returns a backend of this device, with its kernels loaded.
    ///
    /// # Errors
    /// The errors of loading an image, and the driver's.
    pub fn new(device: Device) -> Result<Cuda> {
        Ok(Cuda { stream: device.stream()?, kernels: Kernels::new(device)?, loaded: None })
    }

    /// Returns the stream on which everything runs.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Generates a network in device memory, at rest before burst 1, with its input as the pattern of every burst.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more than 2^31 neurons, or rows of more than 6144 synapses, which are generated on the
    /// host only; those of the driver.
    pub fn generate(&mut self, generated: &GeneratedNetwork, seed: u32) -> Result<()> {
        let (neurons, degree) = (generated.neurons(), generated.degree());
        if neurons as usize > MAX_NEURONS {
            let found = format!("{neurons} neurons");
            return Err(Error::invalid("generating a network on a device", found, "at most 2^31"));
        }
        if !Kernels::can_generate(degree) {
            let found = format!("{degree} synapses a neuron");
            return Err(Error::invalid("generating a network on a device", found, "at most 6144"));
        }
        self.loaded = None;
        let synapses = u64::from(neurons) * u64::from(degree);
        let sizes = Sizes { first: 0, owned: neurons as usize, sources: neurons as usize, synapses };
        let memory = Memory::new(&self.stream, sizes)?;
        self.kernels.generate(&self.stream, memory.arguments(seed, false), degree, generated.is_steady())?;
        let neurons = self.stream.download(&memory.states)?;
        let last_state = NetworkState { seed, burst: 0, neurons, fired: Vec::new() };
        let mut loaded = Loaded::new(&self.stream, &self.kernels, memory, None, last_state)?;
        loaded.pattern = Some(generated.pattern());
        self.loaded = Some(loaded);
        Ok(())
    }

    /// Injects these in every burst from the next one on, beside staged input. An empty list ends it.
    ///
    /// # Errors
    /// As [`Backend::inject`].
    pub fn set_steady_injections(&mut self, injections: &[Injection]) -> Result<()> {
        let loaded = loaded(&mut self.loaded)?;
        loaded.check_injections(injections)?;
        let mut list = injections.to_vec();
        let bounds = Bounds::of_injections(&mut list, loaded.synapse_bounds());
        let ids: Vec<u32> = list.iter().map(|injection| injection.id).collect();
        let sums: Vec<i64> = list.iter().map(|injection| injection.thousandths).collect();
        loaded.steady = match list.is_empty() {
            true => None,
            false => {
                Some(Steady { ids: self.stream.upload(&ids)?, sums: self.stream.upload(&sums)?, bounds })
            }
        };
        loaded.forget_graphs();
        Ok(())
    }

    /// Injects a pattern in every burst from the next one on, beside all other input.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] without a network.
    pub fn set_pattern(&mut self, pattern: Option<InjectionPattern>) -> Result<()> {
        let loaded = loaded(&mut self.loaded)?;
        loaded.pattern = pattern.filter(|pattern| pattern.modulus != 0);
        loaded.forget_graphs();
        Ok(())
    }

    /// Runs bursts back to back as [`run_bursts`](Backend::run_bursts), but leaves the spikes on the device. Returns each
    /// burst's number of spikes and counters.
    ///
    /// # Errors
    /// As [`Backend::run_bursts`].
    pub fn run_counted(&mut self, count: usize) -> Result<Vec<(u64, BurstCounts)>> {
        let results = loaded(&mut self.loaded)?.run(&self.kernels, count, false)?;
        Ok(results.into_iter().map(|(result, spikes)| (spikes, result.counts)).collect())
    }

    /// Returns the bytes of device memory of the loaded network.
    pub fn device_bytes(&self) -> u64 {
        self.loaded.as_ref().map_or(0, |loaded| loaded.memory.bytes())
    }

    /// Returns the state that was last loaded, set or read, which needs no device. None without a network.
    pub fn last_state(&self) -> Option<&NetworkState> {
        self.loaded.as_ref().map(|loaded| &loaded.last_state)
    }
}

fn loaded(loaded: &mut Option<Loaded>) -> Result<&mut Loaded> {
    let wanted = "a network loaded before the call";
    loaded.as_mut().ok_or_else(|| Error::invalid("the CUDA backend", "no network", wanted))
}

impl Backend for Cuda {
    fn name(&self) -> String {
        format!("CUDA, {}", self.stream.device().name())
    }

    fn can_be_lost(&self) -> bool {
        true
    }

    fn load(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        // The old network's memory is free for the new one.
        self.loaded = None;
        let at_rest = NetworkState::at_rest(network, seed);
        let memory = Memory::upload(&self.stream, network, &at_rest.neurons)?;
        self.loaded = Some(Loaded::new(&self.stream, &self.kernels, memory, Some(network.clone()), at_rest)?);
        Ok(())
    }

    fn inject(&mut self, injections: &[Injection]) -> Result<()> {
        let loaded = loaded(&mut self.loaded)?;
        loaded.check_injections(injections)?;
        loaded.staged.extend_from_slice(injections);
        Ok(())
    }

    fn run_burst(&mut self) -> Result<BurstResult> {
        let result = self.run_bursts(1)?.pop();
        result.ok_or_else(|| Error::invalid("a burst", "no result", "one result"))
    }

    fn run_bursts(&mut self, count: usize) -> Result<Vec<BurstResult>> {
        let results = loaded(&mut self.loaded)?.run(&self.kernels, count, true)?;
        Ok(results.into_iter().map(|(result, _)| result).collect())
    }

    fn set_dense(&mut self, dense: bool) -> Result<()> {
        let loaded = loaded(&mut self.loaded)?;
        loaded.dense = dense;
        loaded.forget_graphs();
        Ok(())
    }

    fn set_fired(&mut self, fired: &[Spike]) -> Result<()> {
        let loaded = loaded(&mut self.loaded)?;
        check_spikes(fired, loaded.memory.sizes.sources)?;
        loaded.memory.set_queue(&self.stream, &self.kernels, loaded.burst, fired)
    }

    fn state(&mut self) -> Result<NetworkState> {
        let loaded = loaded(&mut self.loaded)?;
        let (burst, fired) = (loaded.burst, loaded.memory.queue(&self.stream)?);
        let own = loaded.own_states();
        self.stream.copy_to_host(&loaded.memory.states, &mut loaded.last_state.neurons[own])?;
        (loaded.last_state.burst, loaded.last_state.fired) = (burst, fired);
        Ok(loaded.last_state.clone())
    }

    fn potentials(&mut self, ids: &[u32]) -> Result<Vec<f32>> {
        let loaded = loaded(&mut self.loaded)?;
        check_ids(ids.iter().copied(), loaded.memory.sizes.sources)?;
        let read = loaded.memory.potentials(&self.stream, ids)?;
        let potential = |(&id, read): (&u32, Option<f32>)| {
            // Of a neuron that is updated elsewhere, as `state` does.
            read.unwrap_or(loaded.last_state.neurons[id as usize].potential)
        };
        Ok(ids.iter().zip(read).map(potential).collect())
    }

    fn set_state(&mut self, state: &NetworkState) -> Result<()> {
        let loaded = loaded(&mut self.loaded)?;
        state.check(loaded.memory.sizes.sources)?;
        let own = loaded.own_states();
        self.stream.copy_from_host(&state.neurons[own], &mut loaded.memory.states)?;
        loaded.memory.set_queue(&self.stream, &self.kernels, state.burst, &state.fired)?;
        if loaded.seed != state.seed {
            loaded.forget_graphs();
        }
        (loaded.seed, loaded.burst) = (state.seed, state.burst);
        loaded.last_state.clone_from(state);
        Ok(())
    }

    fn set_parameters(&mut self, changes: &[(u32, NeuronParameters)]) -> Result<()> {
        let loaded = loaded(&mut self.loaded)?;
        check_ids(changes.iter().map(|change| change.0), loaded.memory.sizes.sources)?;
        if loaded.memory.set_parameters(&self.stream, changes, loaded.network.as_deref())? {
            loaded.forget_graphs();
        }
        Ok(())
    }

    fn weights(&mut self) -> Result<Vec<u16>> {
        let loaded = loaded(&mut self.loaded)?;
        let count = loaded.memory.sizes.synapses as usize;
        if count == 0 { Ok(Vec::new()) } else { self.stream.download(&loaded.memory.weights.slice(..count)?) }
    }

    fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()> {
        let loaded = loaded(&mut self.loaded)?;
        let count = loaded.memory.sizes.synapses;
        if let Some(bad) = changes.iter().find(|change| change.synapse >= count) {
            let found = format!("synapse {}", bad.synapse);
            return Err(Error::invalid("a change of weights", found, format!("an index below {count}")));
        }
        if changes.is_empty() {
            return Ok(());
        }
        // Of two changes of one synapse the later one counts.
        let last: BTreeMap<u64, u8> = changes.iter().map(|change| (change.synapse, change.weight)).collect();
        let synapses = self.stream.upload(&last.keys().copied().collect::<Vec<_>>())?;
        let weights = self.stream.upload(&last.values().copied().collect::<Vec<_>>())?;
        loaded.plastic = true;
        self.kernels.write_weights(&self.stream, loaded.arguments(), &synapses, &weights)
    }
}

impl Loaded {
    fn new(
        stream: &Stream,
        kernels: &Kernels,
        memory: Memory,
        network: Option<Arc<Network>>,
        last_state: NetworkState,
    ) -> Result<Loaded> {
        let seed = last_state.seed;
        let in_degree = kernels.largest_in_degree(stream, memory.arguments(seed, false), memory.sizes)?;
        let loaded = Loaded {
            graphs: [const { None }; 4],
            exchange: ExchangeMemory::new(stream.device(), memory.sizes.owned)?,
            memory,
            stream: stream.clone(),
            network,
            seed,
            dense: false,
            burst: 0,
            staged: Vec::new(),
            steady: None,
            pattern: None,
            in_degree,
            plastic: false,
            last_state,
        };
        let bounds = loaded.synapse_bounds();
        let kind = if bounds.fit() { "packed with the number of events" } else { "beside a bitmap" };
        log::info!(
            "burst: 64-bit accumulators on the device, {kind}: at most {in_degree} synapses end in one neuron, with an input \
             of at most {} thousandths",
            bounds.magnitude
        );
        Ok(loaded)
    }

    fn check_injections(&self, injections: &[Injection]) -> Result<()> {
        let ids = || injections.iter().map(|injection| injection.id);
        check_ids(ids(), self.memory.sizes.sources)?;
        self.network.as_ref().map_or(Ok(()), |network| network.check_in_use(ids()))
    }

    fn arguments(&self) -> layout::Network {
        self.memory.arguments(self.seed, self.dense)
    }

    fn own_states(&self) -> std::ops::Range<usize> {
        let sizes = self.memory.sizes;
        sizes.first as usize..sizes.first as usize + sizes.owned
    }

    fn forget_graphs(&mut self) {
        self.graphs = [const { None }; 4];
    }

    fn synapse_bounds(&self) -> Bounds {
        let largest = self.network.as_ref().map(|network| network.largest_input(self.plastic));
        Bounds::of_synapses(self.in_degree, largest)
    }

    /// Returns true if sums can be packed: in a burst with the staged injections, and in one without them.
    fn packs(&mut self) -> [bool; 2] {
        let mut bounds = self.synapse_bounds();
        bounds = bounds + self.steady.as_ref().map_or(Bounds::default(), |steady| steady.bounds);
        bounds = bounds
            + self.pattern.map_or(Bounds::default(), |pattern| Bounds::of_pattern(pattern.thousandths));
        [(bounds + Bounds::of_injections(&mut self.staged, bounds)).fit(), bounds.fit()]
    }

    /// Runs bursts, and returns each one's result and number of spikes.
    fn run(&mut self, kernels: &Kernels, count: usize, with_spikes: bool) -> Result<Vec<(BurstResult, u64)>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let grown = self.exchange.prepare_injections(self.staged.len())?;
        let made = with_spikes && self.exchange.prepare_spikes()?;
        if grown || made {
            self.forget_graphs();
        }
        let packs = self.packs();
        for packed in [packs[0], packs[usize::from(count > 1)]] {
            self.prepare_graph(kernels, packed, with_spikes)?;
        }
        let first = self.burst + 1;
        let mut results = Vec::new();
        let run = self.launch_and_collect(first, count, packs, with_spikes, &mut results);
        if run.is_err() {
            // Bursts that were launched run all the same, unless the context is lost.
            let _ = self.stream.synchronize();
        }
        run.map(|()| results)
    }

    fn launch_and_collect(
        &mut self,
        first: u64,
        count: usize,
        packs: [bool; 2],
        with_spikes: bool,
        results: &mut Vec<(BurstResult, u64)>,
    ) -> Result<()> {
        let group = (self.exchange.slots() / 2).max(1);
        let mut launched = 0;
        let mut under_way: VecDeque<(Event, usize)> = VecDeque::new();
        loop {
            while launched < count && under_way.len() < 2 {
                let end = (launched + group).min(count);
                for at in launched..end {
                    let burst = first + at as u64;
                    let staged: &[Injection] = if at == 0 { &self.staged } else { &[] };
                    self.exchange.write_injections(burst, staged);
                    let graph = self.graphs[graph_index(packs[usize::from(at > 0)], with_spikes)].as_ref();
                    let graph =
                        graph.ok_or_else(|| Error::invalid("a burst", "no graph", "a captured one"))?;
                    graph.launch(&self.stream)?;
                    self.burst = burst;
                    self.staged.clear();
                }
                launched = end;
                let mut event = self.stream.device().event()?;
                event.record(&self.stream)?;
                under_way.push_back((event, launched));
            }
            let Some((event, end)) = under_way.pop_front() else { return Ok(()) };
            event.synchronize()?;
            for at in results.len()..end {
                let (mut result, spikes) = self.exchange.read_result(first + at as u64, with_spikes)?;
                if self.dense {
                    // Slots that are not in use are updated too, which changes nothing, but are no candidates.
                    let removed = self.network.as_ref().map_or(0, |network| network.removed_of_owned());
                    result.counts.candidates -= removed;
                }
                results.push((result, spikes));
            }
        }
    }

    /// Captures the launches of a burst, unless they are there.
    fn prepare_graph(&mut self, kernels: &Kernels, packed: bool, with_spikes: bool) -> Result<()> {
        let index = graph_index(packed, with_spikes);
        if self.graphs[index].is_some() {
            return Ok(());
        }
        let mut injections = self.exchange.injections();
        if let Some(steady) = &self.steady {
            (injections.steady_ids, injections.steady_sums) = (steady.ids.address(), steady.sums.address());
            injections.steady = steady.ids.len() as u64;
        }
        if let Some(pattern) = self.pattern {
            (injections.base, injections.modulus) = (pattern.base, pattern.modulus);
            injections.amplitude = pattern.thousandths;
        }
        let burst = Burst {
            network: self.arguments(),
            injections,
            results: self.exchange.results(with_spikes),
            packed,
            sizes: self.memory.sizes,
        };
        let (graph, ()) = self.stream.capture(|stream| kernels.launch(stream, &burst))?;
        self.graphs[index] = Some(graph.instantiate()?);
        Ok(())
    }
}

fn graph_index(packed: bool, with_spikes: bool) -> usize {
    usize::from(packed) * 2 + usize::from(with_spikes)
}
