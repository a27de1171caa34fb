//! Runs that change on the way (weights, parameters, states, files, backends), with the CPU backend as the reference.
//! tests/burst runs them in shards, tests/fake/emulated/burst.rs on the emulated kernels, tests/gpu/burst.rs on a device.

use std::ops::RangeInclusive;
use std::sync::Arc;

use selvedge::Result;
use selvedge::burst::{
    Auto, Backend, Cpu, GeneratedNetwork, Injection, Network, NetworkState, NeuronField, NeuronParameters,
    NeuronSelection, Neurons, PlasticityRule, Simulation, Spike, SynapseArrays, WeightChange,
};

type Change = fn(&mut dyn Backend, &Network) -> Result<()>;

/// Changes between two bursts, in the order in which a run takes them.
const CHANGES: [(&str, Change); 9] = [
    ("no change", |_, _| Ok(())),
    ("weights", |backend, network| {
        let change = |synapse| WeightChange { synapse, weight: (synapse * 31 % 24) as u8 };
        let count = network.synapses().len() as u64;
        backend.set_weights(&(0..count).step_by(3).map(change).collect::<Vec<_>>())
    }),
    ("one weight twice", |backend, _| {
        backend.set_weights(&[1, 200].map(|weight| WeightChange { synapse: 13, weight }))
    }),
    ("parameters", |backend, network| {
        let count = network.len() as u32;
        let change = |id: u32| {
            let old = network.parameters()[id as usize];
            let flags = old.flags & !NeuronParameters::ALWAYS_FIRES;
            (id, NeuronParameters { threshold: 15.0, rest: 1.0, chance: 1 << 31, flags, ..old })
        };
        backend.set_parameters(&(0..count / 3).chain([count - 1]).map(change).collect::<Vec<_>>())
    }),
    ("a state of another seed with more bursts than 32 bits count", |backend, _| {
        let mut state = backend.state()?;
        state.neurons.reverse();
        backend.set_state(&NetworkState { seed: 6, burst: 1 << 33, ..state })
    }),
    ("other spikes", |backend, network| {
        let spike = |id| Spike { id, potential: 90.0 };
        backend.set_fired(&(0..network.len() as u32).step_by(7).map(spike).collect::<Vec<_>>())
    }),
    ("dense mode", |backend, _| backend.set_dense(true)),
    ("sparse mode", |backend, _| backend.set_dense(false)),
    ("a state at rest", |backend, network| backend.set_state(&NetworkState::at_rest(network, 5))),
];

/// Applies each change to a backend and to the CPU, and runs some bursts after each.
pub fn changes_apply_alike(
    backend: &mut dyn Backend,
    generated: &GeneratedNetwork,
    bursts: u64,
) -> Result<()> {
    let network = Arc::new(generated.network()?);
    let mut cpu = Cpu::with_threads(1);
    backend.load(&network, 5)?;
    cpu.load(&network, 5)?;
    let watched = [generated.neurons() - 1, 0, generated.neurons() / 2, 0];
    for (change, apply) in CHANGES {
        apply(backend, &network)?;
        apply(&mut cpu, &network)?;
        let first = cpu.state()?.burst + 1;
        let mut fired = 0;
        for number in first..first + bursts {
            let injections = generated.injections(number);
            backend.inject(&injections)?;
            cpu.inject(&injections)?;
            let (found, wanted) = (backend.run_burst()?, cpu.run_burst()?);
            assert_eq!(found, wanted, "{change}: burst {number} on {}", backend.name());
            fired += found.fired.len();
        }
        assert!(fired > 0, "{change}: nobody fires");
        assert_eq!(backend.state()?, cpu.state()?, "{change} on {}", backend.name());
        assert_eq!(backend.weights()?, cpu.weights()?, "{change} on {}", backend.name());
        assert_eq!(
            backend.potentials(&watched)?,
            cpu.potentials(&watched)?,
            "{change} on {}",
            backend.name()
        );
    }
    Ok(())
}

/// `Auto` between a backend and the CPU takes the same changes, before and after its choice.
pub fn auto_changes_no_result(backend: Box<dyn Backend>, generated: &GeneratedNetwork) -> Result<()> {
    let mut auto = Auto::new(backend, Box::new(Cpu::with_threads(1)));
    for _ in 0..2 {
        changes_apply_alike(&mut auto, generated, 2)?;
        assert!(auto.chosen().is_some(), "{} is still measured", auto.name());
    }
    Ok(())
}

/// Runs bursts, with the input that a generated network has.
fn run(
    simulation: &mut Simulation,
    generated: &GeneratedNetwork,
    numbers: RangeInclusive<u64>,
) -> Result<()> {
    for number in numbers {
        let injections = generated.injections(number);
        let inputs: Vec<(u32, f32)> =
            injections.iter().map(|one| (one.id, one.thousandths as f32 / 1000.0)).collect();
        simulation.inject(&inputs)?;
        simulation.run_burst()?;
    }
    Ok(())
}

/// Runs with power, plasticity and recorded potentials that are saved after half of the bursts, go on from the file, or move to
/// another backend. All end as one run on the CPU.
pub fn saved_and_moved_runs_end_alike(
    make: &dyn Fn() -> Result<Box<dyn Backend>>,
    generated: &GeneratedNetwork,
    half: u64,
) -> Result<()> {
    let network = Arc::new(generated.network()?);
    let count = generated.neurons();
    let backend = |is_tested: bool| match is_tested {
        true => make(),
        false => Ok(Box::new(Cpu::with_threads(1)) as Box<dyn Backend>),
    };
    let prepare = |mut simulation: Simulation| -> Result<Simulation> {
        simulation.record_potentials(&[count - 1, 0, count / 2, 0])?;
        simulation.add_rule(PlasticityRule::AreaWindow {
            source_area: 0,
            target_area: 0,
            window: 2,
            increase: 5,
            decrease: 1,
            prune: false,
            create: None,
        })?;
        Ok(simulation)
    };
    let first_half = |is_tested: bool| -> Result<Simulation> {
        let mut simulation = prepare(Simulation::new(network.clone(), backend(is_tested)?, 5)?)?;
        simulation.set_power(1..count / 10, 2.5)?;
        simulation.set_dense(true)?;
        run(&mut simulation, generated, 1..=half)?;
        // In the queue until a save or the next burst.
        simulation.parameter_queue().push(NeuronSelection::Ids(2..count / 3), NeuronField::Leak(0.25))?;
        Ok(simulation)
    };
    let second_half = |simulation: &mut Simulation| run(simulation, generated, half + 1..=2 * half);
    let mut whole = first_half(false)?;
    second_half(&mut whole)?;
    let (state, weights) = (whole.state()?, whole.weights()?);
    assert_ne!(weights, network.synapses().weights());

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.burst");
    for (first, second) in [(false, true), (true, false), (true, true)] {
        let case = format!("tested first: {first}, then: {second}");
        let mut moved = first_half(first)?;
        moved.save(&path)?;
        let before = moved.potentials().to_vec();
        let mut restored = prepare(Simulation::restore(&path, backend(second)?)?)?;
        second_half(&mut restored)?;
        assert_eq!([&before[..], restored.potentials()].concat(), whole.potentials(), "{case}");
        moved.set_backend(backend(second)?)?;
        second_half(&mut moved)?;
        assert_eq!(moved.potentials(), whole.potentials(), "{case}");
        assert_eq!(moved.totals(), whole.totals(), "{case}");
        for simulation in [&mut moved, &mut restored] {
            assert_eq!(
                (simulation.state()?, simulation.weights()?),
                (state.clone(), weights.clone()),
                "{case}"
            );
        }
    }
    Ok(())
}

/// Neurons with an excitability between 0 and 1 fire as often as it says, within six standard deviations, and where they do on
/// the CPU.
pub fn excitability_fires_within_binomial_bounds(
    backend: &mut dyn Backend,
    neurons: usize,
    bursts: usize,
) -> Result<()> {
    const CHANCES: [f32; 4] = [0.05, 0.3, 0.5, 0.9];
    let mut fields = Neurons::new(neurons);
    (0..neurons).for_each(|id| fields.excitability[id] = CHANCES[id % 4]);
    let none = SynapseArrays { source: &[], target: &[], weight: &[], psp: &[], kind: &[] };
    let network = Arc::new(Network::from_arrays(fields, &none)?);
    let mut cpu = Cpu::with_threads(1);
    backend.load(&network, 11)?;
    cpu.load(&network, 11)?;
    let inputs: Vec<Injection> =
        (0..neurons as u32).map(|id| Injection::new(id, 1.0)).collect::<Result<_>>()?;
    let mut fired = [0u32; 4];
    for _ in 0..bursts {
        backend.inject(&inputs)?;
        cpu.inject(&inputs)?;
        let found = backend.run_burst()?;
        assert_eq!(found, cpu.run_burst()?, "{}", backend.name());
        found.fired.iter().for_each(|spike| fired[spike.id as usize % 4] += 1);
    }
    let tried = (neurons / 4 * bursts) as f64;
    for (chance, fired) in CHANCES.map(f64::from).into_iter().zip(fired) {
        let bound = 6.0 * (tried * chance * (1.0 - chance)).sqrt();
        assert!((f64::from(fired) - tried * chance).abs() < bound, "{fired} of {tried} at {chance}");
    }
    Ok(())
}
