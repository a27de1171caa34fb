//! Structural edits whose network cannot be loaded, and files with removed neurons and of the version before them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use selvedge::burst::{
    Accumulator, Backend, BurstResult, Cpu, Injection, Network, NetworkState, NeuronParameters, Neurons,
    PlasticityRule, Simulation, Spike, SynapseArrays, SynapseCreation, WeightChange,
};
use selvedge::{Error, Result};
use sha2::Digest;

use super::cases::{Synapse, network};

/// A CPU that refuses to load a network, or states after it loaded one.
struct Refusing {
    cpu: Cpu,
    loads: Arc<AtomicBool>,
    states: Arc<AtomicBool>,
}

fn refuse(when: &AtomicBool) -> Result<()> {
    match when.load(Ordering::Relaxed) {
        false => Ok(()),
        true => Err(Error::InvalidArgument {
            operation: "a load",
            found: "no memory".to_owned(),
            wanted: "memory".to_owned(),
        }),
    }
}

impl Backend for Refusing {
    fn name(&self) -> String {
        "refusing".to_owned()
    }
    fn load(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        refuse(&self.loads)?;
        self.cpu.load(network, seed)
    }
    fn inject(&mut self, injections: &[Injection]) -> Result<()> {
        self.cpu.inject(injections)
    }
    fn run_burst(&mut self) -> Result<BurstResult> {
        self.cpu.run_burst()
    }
    fn set_dense(&mut self, dense: bool) -> Result<()> {
        self.cpu.set_dense(dense)
    }
    fn set_fired(&mut self, fired: &[Spike]) -> Result<()> {
        self.cpu.set_fired(fired)
    }
    fn state(&mut self) -> Result<NetworkState> {
        self.cpu.state()
    }
    fn set_state(&mut self, state: &NetworkState) -> Result<()> {
        refuse(&self.states)?;
        self.cpu.set_state(state)
    }
    fn set_parameters(&mut self, changes: &[(u32, NeuronParameters)]) -> Result<()> {
        self.cpu.set_parameters(changes)
    }
    fn weights(&mut self) -> Result<Vec<u16>> {
        self.cpu.weights()
    }
    fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()> {
        self.cpu.set_weights(changes)
    }
}

fn simulation(synapses: &[Synapse], backend: Box<dyn Backend>) -> Simulation {
    let mut neurons = Neurons::new(4);
    neurons.threshold.fill(50.0);
    neurons.leak.fill(0.0);
    Simulation::new(Arc::new(network(neurons, synapses)), backend, 0).unwrap()
}

const ONE: SynapseArrays = SynapseArrays { source: &[1], target: &[2], weight: &[6], psp: &[10], kind: &[0] };

#[test]
fn edits_that_could_not_be_loaded_are_merged_after_a_recovery() {
    for of_states in [false, true] {
        let flags = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let [loads, states] = flags.clone();
        let backend = Refusing { cpu: Cpu::with_threads(1), loads, states };
        let mut found = simulation(&[(0, 1, 6, 10, 0)], Box::new(backend));
        let mut wanted = simulation(&[(0, 1, 6, 10, 0), (1, 2, 6, 10, 0)], Box::new(Cpu::new()));
        for simulation in [&mut found, &mut wanted] {
            simulation.inject(&[(0, 60.0)]).unwrap();
            simulation.run(2).unwrap();
            simulation.inject(&[(3, 70.0)]).unwrap();
        }
        found.create_synapses(&ONE).unwrap();
        flags[usize::from(of_states)].store(true, Ordering::Relaxed);
        assert!(found.run_burst().unwrap_err().to_string().contains("no memory"));
        // Nothing runs on a backend that may hold a network at rest.
        let error = |result: Result<()>| result.unwrap_err().to_string();
        for result in [
            found.run_burst().map(drop),
            found.state().map(drop),
            found.weights().map(drop),
            found.set_backend(Box::new(Cpu::new())),
        ] {
            assert!(error(result).contains("Simulation::recover with another backend"));
        }
        found.recover(Box::new(Cpu::with_threads(2))).unwrap();
        assert_eq!(found.network().synapses().len(), 1);
        assert_eq!(found.run_burst().unwrap(), wanted.run_burst().unwrap());
        assert_eq!(found.network().synapses().len(), 2);
        assert_eq!(found.state().unwrap(), wanted.state().unwrap());
        assert_eq!(found.totals(), wanted.totals());
    }
}

#[test]
fn created_synapses_widen_the_accumulators() {
    let mut simulation = simulation(&[], Box::new(Cpu::new()));
    assert!(matches!(simulation.network().accumulator(true), Accumulator::Bits32 { .. }));
    // 34 largest synapses end in neuron 0 of a network with more neurons.
    let mut neurons = Neurons::new(40);
    neurons.threshold.fill(1e9);
    neurons.threshold[1..35].fill(1.0);
    neurons.leak.fill(0.0);
    let many = Arc::new(network(neurons, &[]));
    simulation = Simulation::new(many, Box::new(Cpu::new()), 0).unwrap();
    let source: Vec<u32> = (1..35).collect();
    let (target, most, kind) = ([0; 34], [255; 34], [0; 34]);
    let arrays = SynapseArrays { source: &source, target: &target, weight: &most, psp: &most, kind: &kind };
    simulation.create_synapses(&arrays).unwrap();
    simulation.inject(&source.iter().map(|&id| (id, 1.0)).collect::<Vec<_>>()).unwrap();
    simulation.run(2).unwrap();
    assert_eq!(simulation.network().accumulator(false), Accumulator::Bits64);
    assert_eq!(simulation.state().unwrap().neurons[0].potential, 34.0 * 65_025.0);
}

#[test]
fn a_rule_of_spike_times_finds_created_synapses() {
    let rule = PlasticityRule::SpikeTiming {
        source_area: 0,
        target_area: 0,
        a_plus: 0.1,
        a_minus: 0.0,
        tau_plus_ms: 1.0,
        tau_minus_ms: 1.0,
        burst_ms: 1.0,
    };
    let mut simulation = simulation(&[(0, 3, 5, 0, 0), (2, 1, 7, 0, 0)], Box::new(Cpu::new()));
    simulation.add_rule(rule).unwrap();
    simulation.create_synapses(&ONE).unwrap();
    simulation.remove_synapses(&[0], &[3]).unwrap();
    simulation.inject(&[(1, 60.0)]).unwrap();
    simulation.run(2).unwrap();
    // 255 * 0.1 / e, rounded.
    assert_eq!(simulation.weights().unwrap(), [(6 + 9) | 10 << 8, 7]);
}

#[test]
fn a_rule_creates_as_many_synapses_as_it_may_in_ascending_order() {
    let mut simulation = simulation(&[(0, 2, 5, 0, 1)], Box::new(Cpu::new()));
    let create = Some(SynapseCreation { psp: 0, kind: 1, most: 2 });
    let rule = PlasticityRule::AreaWindow {
        source_area: 0,
        target_area: 0,
        window: 1,
        increase: 4,
        decrease: 0,
        prune: false,
        create,
    };
    simulation.add_rule(rule).unwrap();
    // The second rule finds the pairs of the first.
    simulation.add_rule(rule).unwrap();
    simulation.inject(&[(0, 60.0), (1, 60.0), (2, 60.0)]).unwrap();
    simulation.run(2).unwrap();
    let synapses = simulation.network().synapses();
    let targets: Vec<u32> = synapses.targets().iter().map(|word| word & !(1 << 31)).collect();
    assert_eq!((synapses.row_pointers(), &targets[..]), (&[0, 2, 4, 5, 5][..], &[1, 2, 0, 2, 0][..]));
    assert_eq!(synapses.weights(), [4, 5 + 8, 4, 4, 4]);
}

#[test]
fn power_and_parameters_leave_out_removed_neurons() {
    use selvedge::burst::{NeuronField, NeuronSelection};
    let mut simulation = simulation(&[], Box::new(Cpu::new()));
    simulation.set_power(0..4, 60.0).unwrap();
    simulation.record_spikes(true);
    simulation.remove_neurons(&[1]).unwrap();
    simulation.parameter_queue().push(NeuronSelection::Area(0), NeuronField::Threshold(1.0)).unwrap();
    simulation.run(1).unwrap();
    simulation.parameter_queue().push(NeuronSelection::Area(0), NeuronField::Rest(7.0)).unwrap();
    simulation.set_dense(true).unwrap();
    simulation.run(1).unwrap();
    assert_eq!(simulation.spikes().1, [0, 2, 3, 0, 2, 3]);
    let mut state = simulation.state().unwrap();
    state.neurons[1].potential = 1e9;
    state.fired.push(Spike { id: 1, potential: 1.0 });
    simulation.set_state(&state).unwrap();
    simulation.run(1).unwrap();
    assert_eq!(simulation.spikes().1[6..], [0, 2, 3]);
    assert_eq!(simulation.state().unwrap().neurons[1].potential, 0.0);
    assert_eq!(simulation.totals().counts.candidates, 9);
}

#[test]
fn files_keep_removed_neurons_and_older_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.burst");
    let mut first = simulation(&[(0, 1, 6, 10, 0), (2, 1, 6, 10, 0)], Box::new(Cpu::new()));
    first.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    first.remove_neurons(&[3, 2]).unwrap();
    first.save(&path).unwrap();
    let cut = std::fs::read(&path).unwrap();
    // Behind the header, four counts and the neurons.
    let at = 16 + 4 * 8 + 4 * 44;
    let restore = |bytes: &[u8]| {
        let mut file = bytes[..bytes.len() - 32].to_vec();
        let checksum = sha2::Sha256::digest(&file);
        file.extend_from_slice(&checksum);
        std::fs::write(&path, file).unwrap();
        Simulation::restore(&path, Box::new(Cpu::new())).map_err(|error| error.to_string())
    };
    let again = restore(&cut).ok().unwrap();
    assert_eq!((again.network().removed(), again.network().synapses().len()), (&[2, 3][..], 1));
    assert!(again.is_in_use(1) && !again.is_in_use(2) && !again.is_in_use(4));

    let mut old = [&whole[..at], &whole[at + 8..]].concat();
    old[8] = 2;
    let mut again = restore(&old).ok().unwrap();
    assert_eq!(again.network().removed(), [0; 0]);
    again.inject(&[(2, 60.0)]).unwrap();
    again.run(2).unwrap();
    assert_eq!(again.totals().spikes, 2);
    old[8] = 1;
    assert!(restore(&old).err().unwrap().contains("version 1 of the format; wanted versions 2 to 3"));

    // Removed neurons in a file whose synapses use them, out of order and beyond the network.
    let with = |ids: &[u32]| {
        let count = (ids.len() as u64).to_le_bytes();
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        [&whole[..at], &count, &ids, &whole[at + 8..]].concat()
    };
    for (ids, wanted) in [
        (&[1][..], "a synapse of neuron 1, which was removed"),
        (&[2], "a synapse of neuron 2, which was removed"),
        (&[3, 3], "ascending ids"),
        (&[4], "id 4; wanted an id below 4"),
    ] {
        let error = restore(&with(ids)).err().unwrap();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(restore(&with(&[3])).is_ok());
}
