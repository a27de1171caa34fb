//! A network cut into shards, each on a backend of its own.
//!
//! A shard owns a range of neurons and all synapses that end in it. Each burst the shards exchange their fired ids and
//! potentials; sums never cross shards. Integer sums and draws by global id make the results those of one backend, bit for
//! bit.

use std::ops::Range;
use std::sync::Arc;

use super::backend::{Backend, BurstResult, Injection, WeightChange};
use super::cut::balanced_ranges;
use super::network::Network;
use super::neurons::{NeuronParameters, check_ids};
use super::state::{NetworkState, Spike};
use super::synapses::INHIBITORY;
use crate::{Error, Result};

/// The exchange of fired ids and potentials between shards after each burst.
pub trait Exchange: Send {
    /// Joins the spikes of all shards, ascending by id. `fired` has one list per shard, in order of their ranges.
    fn all_gather(&mut self, fired: &[&[Spike]], gathered: &mut Vec<Spike>) -> Result<()>;
}

/// The exchange of shards that one process drives: a concatenation.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Exchange for InProcess {
    fn all_gather(&mut self, fired: &[&[Spike]], gathered: &mut Vec<Spike>) -> Result<()> {
        gathered.clear();
        for part in fired {
            gathered.extend_from_slice(part);
        }
        Ok(())
    }
}

/// A backend made of shards.
///
/// After a burst that failed in one shard, the shards no longer stand at the same burst: every later call but
/// [`set_state`](Backend::set_state) and [`load`](Backend::load) returns an error.
///
/// ```
/// use std::sync::Arc;
/// use selvedge::burst::{Backend, Cpu, GeneratedNetwork, InProcess, Shards};
///
/// # fn main() -> selvedge::Result<()> {
/// let generated = GeneratedNetwork::g(1000, 20);
/// let backends = (0..3).map(|_| Box::new(Cpu::with_threads(1)) as Box<dyn Backend>).collect();
/// let mut shards = Shards::new(backends, Box::new(InProcess))?;
/// shards.load(&Arc::new(generated.network()?), 7)?;
/// shards.inject(&generated.injections(1))?;
/// assert_eq!(shards.run_burst()?.fired.len(), 12);
/// # Ok(())
/// # }
/// ```
pub struct Shards {
    backends: Vec<Box<dyn Backend>>,
    exchange: Box<dyn Exchange>,
    network: Option<Arc<Network>>,
    ranges: Vec<Range<u32>>,
    parts: Vec<Arc<Network>>,
    failed: bool,
}

impl Shards {
    /// Returns a backend with one shard per backend.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] without a backend.
    pub fn new(backends: Vec<Box<dyn Backend>>, exchange: Box<dyn Exchange>) -> Result<Shards> {
        if backends.is_empty() {
            return Err(Error::invalid("a network in shards", "no backends", "one or more"));
        }
        Ok(Shards { backends, exchange, network: None, ranges: Vec::new(), parts: Vec::new(), failed: false })
    }

    /// Returns the range of neurons of each shard.
    pub fn ranges(&self) -> &[Range<u32>] {
        &self.ranges
    }

    fn network(&self) -> Result<Arc<Network>> {
        let wanted = "a network loaded before the call";
        self.network.clone().ok_or_else(|| Error::invalid("a network in shards", "no network", wanted))
    }

    fn usable(&self) -> Result<Arc<Network>> {
        if self.failed {
            let wanted = "Backend::set_state with an earlier state, or Backend::load";
            return Err(Error::invalid(
                "a network in shards",
                "shards at different bursts after an error",
                wanted,
            ));
        }
        self.network()
    }

    /// The part of a row that ends in a range, as indices of the whole network's synapses.
    fn segment(network: &Network, source: u32, range: &Range<u32>) -> Range<usize> {
        let row = network.synapses().row(source);
        let targets = &network.synapses().targets()[row.clone()];
        let below = |bound: u32| row.start + targets.partition_point(|target| target & !INHIBITORY < bound);
        below(range.start)..below(range.end)
    }

    fn load_parts(
        &mut self,
        network: &Arc<Network>,
        load: impl Fn(&mut dyn Backend, &Arc<Network>) -> Result<()>,
    ) -> Result<()> {
        self.ranges = balanced_ranges(network, self.backends.len());
        self.failed = true;
        self.parts.clear();
        for (backend, range) in self.backends.iter_mut().zip(&self.ranges) {
            let part = Arc::new(network.shard(range.clone()));
            load(&mut **backend, &part)?;
            self.parts.push(part);
        }
        self.network = Some(network.clone());
        self.failed = false;
        Ok(())
    }

    fn run_all(&mut self) -> Result<BurstResult> {
        let mut results = Vec::with_capacity(self.backends.len());
        for backend in &mut self.backends {
            results.push(backend.run_burst()?);
        }
        let mut whole = BurstResult { burst: results[0].burst, ..BurstResult::default() };
        let fired: Vec<&[Spike]> = results.iter().map(|result| result.fired.as_slice()).collect();
        self.exchange.all_gather(&fired, &mut whole.fired)?;
        for (backend, result) in self.backends.iter_mut().zip(&results) {
            backend.set_fired(&whole.fired)?;
            whole.counts += result.counts;
        }
        Ok(whole)
    }
}

impl Backend for Shards {
    fn name(&self) -> String {
        let names: Vec<String> = self.backends.iter().map(|backend| backend.name()).collect();
        format!("{} shards: {}", names.len(), names.join("; "))
    }

    fn can_be_lost(&self) -> bool {
        // Shards at different bursts have no state either.
        self.backends.iter().any(|backend| backend.can_be_lost())
    }

    fn load(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        self.load_parts(network, |backend, part| backend.load(part, seed))
    }

    fn reload(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        self.load_parts(network, |backend, part| backend.reload(part, seed))
    }

    fn inject(&mut self, injections: &[Injection]) -> Result<()> {
        let network = self.usable()?;
        check_ids(injections.iter().map(|injection| injection.id), network.len())?;
        network.check_in_use(injections.iter().map(|injection| injection.id))?;
        for (backend, range) in self.backends.iter_mut().zip(&self.ranges) {
            let own: Vec<Injection> =
                injections.iter().filter(|injection| range.contains(&injection.id)).copied().collect();
            backend.inject(&own)?;
        }
        Ok(())
    }

    fn run_burst(&mut self) -> Result<BurstResult> {
        self.usable()?;
        let result = self.run_all();
        self.failed = result.is_err();
        result
    }

    fn set_dense(&mut self, dense: bool) -> Result<()> {
        self.backends.iter_mut().try_for_each(|backend| backend.set_dense(dense))
    }

    fn set_fired(&mut self, fired: &[Spike]) -> Result<()> {
        self.backends.iter_mut().try_for_each(|backend| backend.set_fired(fired))
    }

    fn state(&mut self) -> Result<NetworkState> {
        self.usable()?;
        let mut whole: Option<NetworkState> = None;
        for (backend, range) in self.backends.iter_mut().zip(&self.ranges) {
            let part = backend.state()?;
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => {
                    let own = range.start as usize..range.end as usize;
                    whole.neurons[own.clone()].copy_from_slice(&part.neurons[own]);
                }
            }
        }
        whole.ok_or_else(|| Error::invalid("a network in shards", "no shards", "one or more"))
    }

    fn potentials(&mut self, ids: &[u32]) -> Result<Vec<f32>> {
        let network = self.usable()?;
        check_ids(ids.iter().copied(), network.len())?;
        let mut potentials = vec![0.0; ids.len()];
        for (backend, range) in self.backends.iter_mut().zip(&self.ranges) {
            let own = |at: &usize| range.contains(&ids[*at]);
            let indices: Vec<usize> = (0..ids.len()).filter(own).collect();
            if indices.is_empty() {
                continue;
            }
            let own: Vec<u32> = indices.iter().map(|&at| ids[at]).collect();
            for (at, potential) in indices.into_iter().zip(backend.potentials(&own)?) {
                potentials[at] = potential;
            }
        }
        Ok(potentials)
    }

    fn set_state(&mut self, state: &NetworkState) -> Result<()> {
        // A state that every shard refuses changes none of them.
        state.check(self.network()?.len())?;
        self.failed = true;
        self.backends.iter_mut().try_for_each(|backend| backend.set_state(state))?;
        self.failed = false;
        Ok(())
    }

    fn set_parameters(&mut self, changes: &[(u32, NeuronParameters)]) -> Result<()> {
        // Every shard holds all constants: those of its own neurons, and the area flags of all sources.
        self.backends.iter_mut().try_for_each(|backend| backend.set_parameters(changes))
    }

    fn weights(&mut self) -> Result<Vec<u16>> {
        let network = self.usable()?;
        let mut weights = network.synapses().weights().to_vec();
        for (backend, range) in self.backends.iter_mut().zip(&self.ranges) {
            let part = backend.weights()?;
            let mut at = 0;
            for source in 0..network.len() as u32 {
                let segment = Shards::segment(&network, source, range);
                let length = segment.len();
                weights[segment].copy_from_slice(&part[at..at + length]);
                at += length;
            }
        }
        Ok(weights)
    }

    fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()> {
        let network = self.usable()?;
        let synapses = network.synapses();
        let mut of_shard = vec![Vec::new(); self.backends.len()];
        for change in changes {
            let Some(target) = synapses.targets().get(change.synapse as usize) else {
                let found = format!("synapse {}", change.synapse);
                return Err(Error::invalid(
                    "a change of weights",
                    found,
                    format!("an index below {}", synapses.len()),
                ));
            };
            let target = target & !INHIBITORY;
            let source = synapses.row_pointers().partition_point(|&start| start <= change.synapse) as u32 - 1;
            for (shard, range) in self.ranges.iter().enumerate().filter(|(_, range)| range.contains(&target))
            {
                let segment = Shards::segment(&network, source, range);
                let start = self.parts[shard].synapses().row(source).start as u64;
                let synapse = start + change.synapse - segment.start as u64;
                of_shard[shard].push(WeightChange { synapse, weight: change.weight });
            }
        }
        for (backend, changes) in self.backends.iter_mut().zip(&of_shard) {
            backend.set_weights(changes)?;
        }
        Ok(())
    }
}
