//! A spiking neural engine whose results are the same bit for bit on every device.
//!
//! Neurons and synapses are arrays. Time advances in bursts; a spike reaches its targets in the next burst. A burst
//! sums the input of each touched neuron in fixed point, so the order of additions does not matter, and then updates each
//! touched neuron by a pure function of its state, its input, its id and the burst's number. An untouched neuron keeps its
//! state: it neither leaks nor counts down, so a burst costs as much as there is activity.
//!
//! | file | subject |
//! |---|---|
//! | `draw` | the counter-based random draw |
//! | `neurons`, `synapses`, `network` | the data model, built from arrays in any order and validated once |
//! | `state` | the state between bursts, and the checksums of states and spikes |
//! | `backend` | the interface of a device that runs bursts |
//! | `cpu` | the threaded CPU backend |
//! | `cuda` | the backend of a CUDA device |
//! | `auto` | the backend that is faster on the loaded network |
//! | `cut`, `shards` | a network cut into ranges of neurons, each on a backend of its own |
//! | `simulation` | a running network: input, recordings, counters |
//! | `parameters`, `power`, `ledger`, `sampler`, `plasticity` | the parts of a simulation |
//! | `edits` | the log of synapses and neurons that are created or removed in mid-run |
//! | `recovery` | the journal from which a run continues after its device was lost |
//! | `runner` | a thread that runs a simulation at a set frequency |
//! | `file`, `arrays` | `.burst` and `.npz` files |
//! | `host_memory` | the memory that building a network needs |
//! | `generate` | the networks G and S, and their input |
//!
//! Invariants:
//!
//! - Results do not depend on the order of work: input is summed in integers (thousandths of a potential), and a random draw is
//!   a hash of seed, burst and neuron. So threads, shards and devices agree bit for bit, and tests compare hashes.
//! - A backend gets valid data. `Network` checks arrays once and derives the constants of each neuron; a backend checks ids of
//!   what callers pass later, and no values.
//! - A range does its whole burst alone. Rows are sorted by target, so a thread or a shard reads its own part of each fired row
//!   by a binary search. Only fired ids and potentials cross shards (`Exchange`).
//! - Accumulators have 32 bits where a proof holds: the largest sum over a neuron's synapses, with weights of 255 once
//!   plasticity changes any, plus the injections of the burst. Otherwise they have 64 bits; the log says which and why.
//! - A backend has no code for removed synapses, and a journal never spans two networks: `edits` builds the network anew.
//!
//! Memory neurons, fatigue input, a sleep manager and spatial gradients of thresholds come later. Readers of shared memory,
//! a `no_std` build and 8-bit potentials are not planned.

mod arrays;
mod auto;
mod backend;
mod cpu;
mod cuda;
mod cut;
mod draw;
mod edits;
mod file;
mod generate;
mod host_memory;
mod ledger;
mod network;
mod neurons;
mod parameters;
mod plasticity;
mod power;
mod recovery;
mod runner;
mod sampler;
mod shards;
mod simulation;
mod state;
mod synapses;

pub use auto::Auto;
pub use backend::{Backend, BurstCounts, BurstResult, Injection, MAX_INJECTION, WeightChange};
pub use cpu::Cpu;
pub use cuda::{Cuda, InjectionPattern};
pub use draw::{burst_key, draw, pcg};
pub use generate::GeneratedNetwork;
pub use host_memory::check_host_memory;
pub use ledger::{FireLedger, MAX_PLASTICITY_WINDOW};
pub use network::{Accumulator, Area, Network, Population, SCALE};
pub use neurons::{NeuronParameters, Neurons};
pub use parameters::{NeuronField, NeuronSelection, ParameterQueue};
pub use plasticity::{PlasticityRule, SynapseCreation};
pub use runner::{BurstRunner, RunnerStatistics, StoppedRun};
pub use sampler::{Sampler, Snapshot};
pub use shards::{Exchange, InProcess, Shards};
#[cfg(feature = "capi")]
pub(crate) use simulation::staged_with;
pub use simulation::{FiredNeuron, Simulation, Totals};
pub use state::{NetworkState, NeuronState, Spike, SpikeHash};
pub use synapses::{INHIBITORY, MAX_NEURONS, SynapseArrays, Synapses};
