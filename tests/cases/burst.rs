//! Cases of the spiking engine that every backend must pass: the worked example row by row, the golden hashes of the generated
//! networks, and tables of behaviour. tests/burst runs them on the CPU and in shards, tests/fake/emulated/burst.rs on the emulated
//! kernels, tests/gpu/burst.rs on a device.

#![allow(dead_code, reason = "each suite uses its own part")]

use std::sync::Arc;

use selvedge::burst::{
    Area, Backend, BurstResult, Cpu, GeneratedNetwork, Injection, Network, Neurons, SpikeHash, SynapseArrays,
    Synapses,
};

/// A synapse: source, target, weight, PSP, kind.
pub type Synapse = (u32, u32, u8, u8, u8);

pub fn network(neurons: Neurons, synapses: &[Synapse]) -> Network {
    network_of_area(neurons, synapses, Area::new("all"))
}

pub fn network_of_area(neurons: Neurons, synapses: &[Synapse], area: Area) -> Network {
    let column = |field: fn(&Synapse) -> u32| synapses.iter().map(field).collect::<Vec<u32>>();
    let byte = |field: fn(&Synapse) -> u8| synapses.iter().map(field).collect::<Vec<u8>>();
    let (source, target) = (column(|synapse| synapse.0), column(|synapse| synapse.1));
    let (weight, psp, kind) =
        (byte(|synapse| synapse.2), byte(|synapse| synapse.3), byte(|synapse| synapse.4));
    let arrays = SynapseArrays { source: &source, target: &target, weight: &weight, psp: &psp, kind: &kind };
    let rows = Synapses::from_arrays(neurons.len(), &arrays).expect("good synapses");
    Network::with_areas(neurons, rows, vec![area]).expect("a good network")
}

pub fn inject(backend: &mut dyn Backend, inputs: &[(u32, f32)]) {
    let staged: Vec<Injection> =
        inputs.iter().map(|&(id, x)| Injection::new(id, x).expect("a good input")).collect();
    backend.inject(&staged).expect("ids of the network");
}

pub fn burst(backend: &mut dyn Backend, inputs: &[(u32, f32)]) -> BurstResult {
    inject(backend, inputs);
    backend.run_burst().expect("a burst")
}

pub fn pairs(result: &BurstResult) -> Vec<(u32, f32)> {
    result.fired.iter().map(|spike| (spike.id, spike.potential)).collect()
}

/// One row of the worked example: injections, spikes, events, candidates, potentials, countdowns, fire counts.
type Row = (&'static [(u32, f32)], &'static [(u32, f32)], u64, u64, [f32; 5], [u16; 5], [u16; 5]);

const DRIVE: &[(u32, f32)] = &[(0, 2.0)];

#[rustfmt::skip]
const WORKED_EXAMPLE: [Row; 12] = [
    (DRIVE, &[(0, 2.0)], 0, 1, [0.0, 10.0, 0.0, 0.0, 0.0], [0; 5], [0; 5]),
    (DRIVE, &[(0, 2.0), (2, 60.0), (3, 60.0)], 3, 4, [0.0, 40.0, 0.0, 0.0, 0.0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]),
    (DRIVE, &[(0, 2.0), (1, 100.0)], 5, 5, [0.0, 10.0, 0.0, 0.0, 60.0], [0; 5], [0, 0, 1, 0, 0]),
    (DRIVE, &[(0, 2.0), (2, 60.0), (3, 60.0), (4, 100.0)], 4, 5, [0.0, 40.0, 0.0, 0.0, 0.0], [0, 0, 3, 0, 0], [0, 0, 2, 0, 0]),
    (DRIVE, &[(0, 2.0), (1, 100.0), (4, 80.0)], 5, 5, [0.0, 10.0, 0.0, 0.0, 0.0], [0, 0, 2, 0, 0], [0, 0, 2, 0, 0]),
    (DRIVE, &[(0, 2.0), (3, 60.0), (4, 100.0)], 4, 5, [0.0, 40.0, 0.0, 0.0, 0.0], [0, 0, 1, 0, 0], [0, 0, 2, 0, 0]),
    (DRIVE, &[(0, 2.0), (1, 100.0), (3, 60.0)], 4, 5, [0.0, 10.0, 0.0, 0.0, 60.0], [0; 5], [0; 5]),
    (DRIVE, &[(0, 2.0), (2, 60.0), (3, 60.0)], 5, 5, [0.0, 40.0, 0.0, 0.0, 135.0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]),
    (DRIVE, &[(0, 2.0), (1, 100.0), (4, 80.0)], 5, 5, [0.0, 10.0, 0.0, 0.0, 0.0], [0; 5], [0, 0, 1, 0, 0]),
    (&[], &[(2, 60.0), (3, 60.0), (4, 100.0)], 4, 4, [0.0, 40.0, 0.0, 0.0, 0.0], [0, 0, 3, 0, 0], [0, 0, 2, 0, 0]),
    (&[(4, 0.0625)], &[], 2, 2, [0.0, 40.0, 0.0, -60.0, 60.046_497], [0, 0, 3, 0, 0], [0, 0, 2, 0, 0]),
    (&[], &[], 0, 0, [0.0, 40.0, 0.0, -60.0, 60.046_497], [0, 0, 3, 0, 0], [0, 0, 2, 0, 0]),
];

pub fn worked_example_network() -> Network {
    let mut neurons = Neurons::new(5);
    neurons.threshold = vec![1.0, 100.0, 50.0, 60.0, 70.0];
    neurons.threshold_max[4] = 150.0;
    neurons.leak = vec![0.0, 0.5, 0.0, 0.0, 0.25];
    neurons.rest[1] = 10.0;
    neurons.refractory[2] = 1;
    neurons.excitability[4] = 0.5;
    neurons.fire_limit[2] = 2;
    neurons.snooze[2] = 2;
    neurons.accumulates[3] = false;
    neurons.accumulates[4] = false;
    let synapses = [
        (3, 4, 8, 10, 0),
        (0, 3, 6, 10, 0),
        (2, 3, 6, 10, 1),
        (0, 1, 6, 10, 0),
        (1, 4, 10, 10, 0),
        (0, 2, 6, 10, 0),
    ];
    network(neurons, &synapses)
}

/// Five neurons, twelve bursts, every number of each.
pub fn worked_example(backend: &mut dyn Backend) {
    backend.load(&Arc::new(worked_example_network()), 0).expect("a load");
    for (at, (inputs, fired, events, candidates, potentials, left, counts)) in
        WORKED_EXAMPLE.iter().enumerate()
    {
        let result = burst(backend, inputs);
        let row = at + 1;
        assert_eq!(result.burst, row as u64);
        assert_eq!(pairs(&result), *fired, "burst {row}: spikes");
        assert_eq!(result.counts.events, *events, "burst {row}: events");
        assert_eq!(result.counts.candidates, *candidates, "burst {row}: candidates");
        assert_eq!(result.counts.injections, inputs.len() as u64, "burst {row}: injections");
        let state = backend.state().expect("a state");
        assert_eq!(
            state.neurons.iter().map(|neuron| neuron.potential).collect::<Vec<_>>(),
            potentials,
            "burst {row}"
        );
        assert_eq!(
            state.neurons.iter().map(|neuron| neuron.refractory_left).collect::<Vec<_>>(),
            left,
            "burst {row}"
        );
        assert_eq!(
            state.neurons.iter().map(|neuron| neuron.fire_count).collect::<Vec<_>>(),
            counts,
            "burst {row}"
        );
        assert_eq!((state.burst, &state.fired), (row as u64, &result.fired));
    }
}

/// The golden values of a generated network.
pub struct Golden {
    pub network: GeneratedNetwork,
    pub bursts: u64,
    pub seed: u32,
    /// Spikes, events and blocked candidates over all bursts.
    pub totals: (u64, u64, Option<u64>),
    pub first_spikes: &'static [usize],
    pub first_candidates: &'static [u64],
    pub spike_hash: u64,
    pub state_hash: u64,
}

pub fn golden_small() -> Golden {
    Golden {
        network: GeneratedNetwork::g(1000, 20),
        bursts: 200,
        seed: 7,
        totals: (68_669, 1_366_600, Some(79_995)),
        first_spikes: &[12, 36, 113, 280, 416, 389, 332, 359, 377, 359, 336, 364],
        first_candidates: &[],
        spike_hash: 0x7ab2_78ea_f9e8_14ea,
        state_hash: 0x5284_7a73_f592_73c2,
    }
}

pub fn golden_large() -> Golden {
    Golden {
        network: GeneratedNetwork::g(5000, 50),
        bursts: 60,
        seed: 99,
        totals: (116_202, 5_700_100, Some(128_125)),
        first_spikes: &[60, 449, 2435, 2370, 1713, 1984, 2247, 1948, 1884, 1858, 2018, 2223],
        first_candidates: &[],
        spike_hash: 0x5539_724a_2ef9_bff9,
        state_hash: 0xbc75_10d3_2daf_c972,
    }
}

pub fn golden_steady() -> Golden {
    Golden {
        network: GeneratedNetwork::s(10_000, 100, 100),
        bursts: 10,
        seed: 1,
        totals: (981, 86_800, None),
        first_spikes: &[88, 100, 87, 105, 102, 88, 105, 97, 96, 113],
        first_candidates: &[88, 5891, 6369, 5864, 6554, 6427, 5842, 6509, 6269, 6203],
        spike_hash: 0xfbf7_fc1b_44e5_0ce7,
        state_hash: 0xf9a0_dafb_fe83_fed8,
    }
}

impl Golden {
    /// Runs the network on a backend and compares every golden value.
    pub fn check(&self, network: &Arc<Network>, backend: &mut dyn Backend) {
        let name = backend.name();
        backend.load(network, self.seed).expect("a load");
        let mut hash = SpikeHash::new();
        let (mut spikes, mut events, mut blocked) = (0, 0, 0);
        for number in 1..=self.bursts {
            let mut injections = self.network.injections(number);
            // The order of injections must not matter.
            injections.reverse();
            backend.inject(&injections).expect("ids of the network");
            let result = backend.run_burst().expect("a burst");
            let at = number as usize - 1;
            if let Some(wanted) = self.first_spikes.get(at) {
                assert_eq!(result.fired.len(), *wanted, "{name}: spikes of burst {number}");
            }
            if let Some(wanted) = self.first_candidates.get(at) {
                assert_eq!(result.counts.candidates, *wanted, "{name}: candidates of burst {number}");
            }
            hash.add(number, &result.fired);
            spikes += result.fired.len() as u64;
            events += result.counts.events;
            blocked += result.counts.blocked;
        }
        let (wanted_spikes, wanted_events, wanted_blocked) = self.totals;
        assert_eq!((spikes, events), (wanted_spikes, wanted_events), "{name}");
        if let Some(wanted) = wanted_blocked {
            assert_eq!(blocked, wanted, "{name}: blocked");
        }
        let state = backend.state().expect("a state").hash();
        assert_eq!((hash.value(), state), (self.spike_hash, self.state_hash), "{name}");
    }
}

/// A behaviour: a small network, the input of each burst, and the spikes of each burst.
pub struct Behaviour {
    pub name: &'static str,
    pub neurons: Neurons,
    pub synapses: Vec<Synapse>,
    pub area: Area,
    pub inputs: Vec<Vec<(u32, f32)>>,
    pub fired: Vec<Vec<(u32, f32)>>,
    /// The potentials after the last burst.
    pub potentials: Vec<f32>,
}

/// Neurons of one threshold without leak.
fn plain(count: usize, threshold: f32) -> Neurons {
    let mut neurons = Neurons::new(count);
    neurons.threshold.fill(threshold);
    neurons.leak.fill(0.0);
    neurons
}

/// `count` neurons of which the first fires on any input and the others at 100.
fn driven(count: usize) -> Neurons {
    let mut neurons = plain(count, 100.0);
    neurons.threshold[0] = 1.0;
    neurons
}

fn with(mut neurons: Neurons, change: impl FnOnce(&mut Neurons)) -> Neurons {
    change(&mut neurons);
    neurons
}

/// Every behaviour of the checklist as a row.
pub fn behaviours() -> Vec<Behaviour> {
    let mut rows = Vec::new();
    let mut row = |name,
                   neurons: Neurons,
                   synapses: &[Synapse],
                   inputs: &[&[(u32, f32)]],
                   fired: &[&[(u32, f32)]],
                   potentials: &[f32]| {
        rows.push(Behaviour {
            name,
            neurons,
            synapses: synapses.to_vec(),
            area: Area::new("all"),
            inputs: inputs.iter().map(|input| input.to_vec()).collect(),
            fired: fired.iter().map(|fired| fired.to_vec()).collect(),
            potentials: potentials.to_vec(),
        });
    };
    let one: &[(u32, f32)] = &[(0, 1.0)];
    row("below the threshold", driven(2), &[(0, 1, 9, 11, 0)], &[one, &[]], &[one, &[]], &[0.0, 99.0]);
    row(
        "equal to the threshold",
        driven(2),
        &[(0, 1, 10, 10, 0)],
        &[one, &[]],
        &[one, &[(1, 100.0)]],
        &[0.0, 0.0],
    );
    row(
        "above the threshold",
        driven(2),
        &[(0, 1, 10, 11, 0)],
        &[one, &[]],
        &[one, &[(1, 110.0)]],
        &[0.0, 0.0],
    );
    row(
        "charge accumulates",
        plain(1, 100.0),
        &[],
        &[&[(0, 60.0)], &[(0, 60.0)]],
        &[&[], &[(0, 120.0)]],
        &[0.0],
    );
    row(
        "charge does not accumulate",
        with(plain(1, 100.0), |neurons| neurons.accumulates[0] = false),
        &[],
        &[&[(0, 60.0)], &[(0, 60.0)]],
        &[&[], &[]],
        &[60.0],
    );
    row(
        "a part leaks",
        with(plain(1, 100.0), |neurons| neurons.leak[0] = 0.25),
        &[],
        &[&[(0, 80.0)], &[(0, 20.0)]],
        &[&[], &[]],
        &[60.0],
    );
    row(
        "everything leaks to rest",
        with(plain(1, 100.0), |neurons| (neurons.leak[0], neurons.rest[0]) = (1.0, 5.0)),
        &[],
        &[&[(0, 80.0)]],
        &[&[]],
        &[5.0],
    );
    row(
        "untouched neurons do not leak",
        with(plain(2, 100.0), |neurons| neurons.leak.fill(0.5)),
        &[],
        &[&[(0, 80.0)], &[(1, 2.0)]],
        &[&[], &[]],
        &[40.0, 1.0],
    );
    row(
        "several synapses of one pair add up",
        driven(2),
        &[(0, 1, 5, 10, 0), (0, 1, 5, 10, 0)],
        &[one, &[]],
        &[one, &[(1, 100.0)]],
        &[0.0, 0.0],
    );
    row("inhibition", driven(2), &[(0, 1, 5, 10, 1)], &[one, &[]], &[one, &[]], &[0.0, -50.0]);
    row(
        "mixed synapses",
        driven(2),
        &[(0, 1, 15, 10, 0), (0, 1, 5, 10, 1)],
        &[one, &[]],
        &[one, &[(1, 100.0)]],
        &[0.0, 0.0],
    );
    row(
        "refractory bursts lose their input",
        with(plain(1, 10.0), |neurons| neurons.refractory[0] = 2),
        &[],
        &[&[(0, 10.0)], &[(0, 10.0)], &[(0, 10.0)], &[(0, 10.0)]],
        &[&[(0, 10.0)], &[], &[], &[(0, 10.0)]],
        &[0.0],
    );
    row(
        "refractory counts touched bursts only",
        with(plain(1, 10.0), |neurons| neurons.refractory[0] = 1),
        &[],
        &[&[(0, 10.0)], &[], &[], &[(0, 10.0)], &[(0, 10.0)]],
        &[&[(0, 10.0)], &[], &[], &[], &[(0, 10.0)]],
        &[0.0],
    );
    row(
        "a chain delays by one burst per hop",
        plain(4, 1.0),
        &[(0, 1, 1, 1, 0), (1, 2, 1, 1, 0), (2, 3, 1, 1, 0)],
        &[one, &[], &[], &[], &[]],
        &[one, &[(1, 1.0)], &[(2, 1.0)], &[(3, 1.0)], &[]],
        &[0.0; 4],
    );
    row(
        "a zero weight still touches",
        with(driven(2), |neurons| neurons.leak[1] = 0.5),
        &[(0, 1, 0, 255, 0)],
        &[&[(0, 1.0), (1, 80.0)], &[]],
        &[one, &[]],
        &[0.0, 20.0],
    );
    row(
        "the largest contribution",
        driven(2),
        &[(0, 1, 255, 255, 0)],
        &[one, &[]],
        &[one, &[(1, 65_025.0)]],
        &[0.0, 0.0],
    );
    row(
        "no excitability, no spike",
        with(plain(1, 1.0), |neurons| neurons.excitability[0] = 0.0),
        &[],
        &[one, one],
        &[&[], &[]],
        &[2.0],
    );
    row(
        "convergence",
        with(plain(4, 1.0), |neurons| neurons.threshold[3] = 30.0),
        &[(0, 3, 1, 10, 0), (1, 3, 1, 10, 0), (2, 3, 1, 10, 0)],
        &[&[(2, 1.0), (0, 1.0), (1, 1.0)], &[]],
        &[&[(0, 1.0), (1, 1.0), (2, 1.0)], &[(3, 30.0)]],
        &[0.0; 4],
    );
    row(
        "divergence",
        plain(4, 1.0),
        &[(0, 3, 3, 1, 0), (0, 1, 1, 1, 0), (0, 2, 2, 1, 0)],
        &[one, &[]],
        &[one, &[(1, 1.0), (2, 2.0), (3, 3.0)]],
        &[0.0; 4],
    );
    row(
        "a feedback loop",
        plain(2, 1.0),
        &[(0, 1, 1, 1, 0), (1, 0, 1, 1, 0)],
        &[one, &[], &[], &[]],
        &[one, &[(1, 1.0)], one, &[(1, 1.0)]],
        &[0.0; 2],
    );
    row(
        "an autapse",
        plain(1, 1.0),
        &[(0, 0, 2, 1, 0)],
        &[one, &[], &[]],
        &[one, &[(0, 2.0)], &[(0, 2.0)]],
        &[0.0],
    );
    row(
        "the consecutive-fire limit caps one burst",
        with(plain(1, 1.0), |neurons| neurons.fire_limit[0] = 2),
        &[],
        &[one, one, one, one],
        &[one, one, &[], &[(0, 2.0)]],
        &[0.0],
    );
    row(
        "snooze blocks once the limit is reached",
        with(plain(1, 1.0), |neurons| (neurons.fire_limit[0], neurons.snooze[0]) = (2, 2)),
        &[],
        &[one, one, one, one, one],
        &[one, one, &[], &[], one],
        &[0.0],
    );
    row(
        "above the upper bound",
        with(plain(1, 1.0), |neurons| neurons.threshold_max[0] = 5.0),
        &[],
        &[&[(0, 5.5)], &[(0, -0.5)]],
        &[&[], &[(0, 5.0)]],
        &[0.0],
    );
    row(
        "injections round to even on their own",
        plain(1, 1.0),
        &[],
        &[&[(0, 0.0625), (0, 0.0625)]],
        &[&[]],
        &[0.124],
    );
    row(
        "34 of the largest contributions",
        driven(2),
        &vec![(0, 1, 255, 255, 0); 34],
        &[one, &[]],
        &[one, &[(1, 2_210_850.0)]],
        &[0.0; 2],
    );
    row(
        "injections above 32 bits",
        plain(1, 1.0),
        &[],
        &[&[(0, 3_000_000.0)]],
        &[&[(0, 3_000_000.0)]],
        &[0.0],
    );
    row("opposite injections above 32 bits", plain(1, 1.0), &[], &[&[(0, 3e6), (0, -3e6)]], &[&[]], &[0.0]);

    let mut shared = |name, area: Area, fired: &[&[(u32, f32)]], potentials: &[f32]| {
        rows.push(Behaviour {
            name,
            neurons: driven(4),
            synapses: vec![(0, 1, 10, 10, 0), (0, 2, 5, 10, 1), (0, 3, 1, 1, 0)],
            area,
            inputs: vec![vec![(0, 7.5)], vec![]],
            fired: fired.iter().map(|fired| fired.to_vec()).collect(),
            potentials: potentials.to_vec(),
        });
    };
    let source: &[(u32, f32)] = &[(0, 7.5)];
    shared("full contribution", Area::new("full"), &[source, &[(1, 100.0)]], &[0.0, 0.0, -50.0, 1.0]);
    let area = Area { shares: true, ..Area::new("shares") };
    shared("shared contribution truncates toward zero", area, &[source, &[]], &[0.0, 33.333, -16.666, 0.333]);
    let area = Area { potential_driven: true, ..Area::new("driven") };
    shared("PSP from the potential, ties to even", area, &[source, &[]], &[0.0, 80.0, -40.0, 8.0]);
    let area = Area { potential_driven: true, shares: true, ..Area::new("both") };
    shared("PSP from the potential, shared", area, &[source, &[]], &[0.0, 26.666, -13.333, 2.666]);
    rows
}

impl Behaviour {
    /// Compares spikes and potentials with the row, and the counters and the rest of the state with the CPU's.
    pub fn check(&self, backend: &mut dyn Backend) {
        let name = format!("{} on {}", self.name, backend.name());
        let network = network_of_area(self.neurons.clone(), &self.synapses, self.area.clone());
        let (network, mut cpu) = (Arc::new(network), Cpu::with_threads(1));
        backend.load(&network, 3).expect("a load");
        cpu.load(&network, 3).expect("a load");
        for (at, (input, fired)) in self.inputs.iter().zip(&self.fired).enumerate() {
            let result = burst(backend, input);
            assert_eq!(pairs(&result), *fired, "{name}: burst {}", at + 1);
            assert_eq!(result, burst(&mut cpu, input), "{name}: burst {}", at + 1);
        }
        let state = backend.state().expect("a state");
        assert_eq!(state, cpu.state().expect("a state"), "{name}: state");
        let potentials: Vec<f32> = state.neurons.iter().map(|neuron| neuron.potential).collect();
        assert_eq!(potentials, self.potentials, "{name}: potentials");
    }
}
