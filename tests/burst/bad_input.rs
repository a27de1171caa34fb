//! Bad input is refused with an error that names the value.

use std::process::Command;
use std::sync::Arc;

use selvedge::burst::{
    Area, Backend, Cpu, InProcess, Injection, Network, NetworkState, Neurons, PlasticityRule, Shards,
    Simulation, Spike, SynapseArrays, SynapseCreation, Synapses, WeightChange,
};

use super::cases::network;

const NONE: SynapseArrays = SynapseArrays { source: &[], target: &[], weight: &[], psp: &[], kind: &[] };

type Change = fn(&mut Neurons);

#[test]
fn bad_parameters_name_the_neuron_and_the_value() {
    let rows: [(Change, &str); 13] = [
        (|neurons| neurons.threshold[1] = f32::NAN, "threshold NaN of neuron 1"),
        (|neurons| neurons.threshold_max[2] = f32::NAN, "threshold_max NaN of neuron 2"),
        (|neurons| neurons.leak[0] = 1.5, "leak 1.5 of neuron 0"),
        (|neurons| neurons.leak[0] = -0.1, "leak -0.1 of neuron 0"),
        (|neurons| neurons.leak[0] = f32::NAN, "leak NaN of neuron 0"),
        (|neurons| neurons.rest[2] = f32::INFINITY, "rest inf of neuron 2"),
        (|neurons| neurons.rest[2] = f32::NAN, "rest NaN of neuron 2"),
        (|neurons| neurons.excitability[1] = 1.1, "excitability 1.1 of neuron 1"),
        (|neurons| neurons.excitability[1] = f32::NAN, "excitability NaN of neuron 1"),
        (|neurons| neurons.kind[1] = 2, "kind 2 of neuron 1"),
        (|neurons| neurons.area[2] = 1, "area 1 of neuron 2"),
        (|neurons| neurons.snooze.truncate(2), "needs 3 elements, but was given 2"),
        (|neurons| neurons.position.push([0; 3]), "needs 3 elements, but was given 4"),
    ];
    for (change, wanted) in rows {
        let mut neurons = Neurons::new(3);
        change(&mut neurons);
        let error = Network::from_arrays(neurons, &NONE).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// A process reads the variable once, so a child has it.
#[test]
fn a_wrong_number_of_threads_is_an_error() {
    if std::env::var_os("SELVEDGE_THREADS").is_none_or(|value| value != "many") {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args(["bad_input::a_wrong_number_of_threads_is_an_error", "--exact"]);
        let output = child.env("SELVEDGE_THREADS", "many").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    selvedge::set_threads(1);
    let synapses = Synapses::from_arrays(3, &NONE).unwrap();
    selvedge::set_threads(0);
    let errors = [
        Synapses::from_arrays(3, &NONE).map(drop),
        Synapses::from_rows(vec![0; 4], vec![], vec![]).map(drop),
        Network::with_areas(Neurons::new(3), synapses, vec![Area::new("all")]).map(drop),
    ];
    for result in errors {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("SELVEDGE_THREADS: found 'many'"), "{error}");
    }
}

/// A child has 4 GB of memory, whatever the machine has.
#[cfg(target_os = "linux")]
#[test]
fn networks_beyond_the_memory_are_errors() {
    use selvedge::burst::GeneratedNetwork;
    use selvedge::io::npz::NpzWriter;
    use selvedge::types::DType;

    const LIMITED: &str = "SELVEDGE_TEST_LIMITED";
    if std::env::var_os(LIMITED).is_none() {
        let mut child = Command::new("sh");
        child.args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
        child.args(["bad_input::networks_beyond_the_memory_are_errors", "--exact"]);
        let output = child.env(LIMITED, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.npz");
    let mut writer = NpzWriter::create(&path).unwrap();
    for (name, dtype) in
        [("source", DType::U32), ("target", DType::U32), ("weight", DType::U8), ("psp", DType::U8)]
    {
        writer.begin(name, dtype, &[0]).unwrap();
    }
    writer.begin("neurons", DType::U32, &[1]).unwrap();
    writer.write(&(1u32 << 31).to_le_bytes()).unwrap();
    writer.finish().unwrap();
    for (made, what) in [
        (GeneratedNetwork::g(1 << 31, 0).network().map(drop), "a generated network"),
        (GeneratedNetwork::s(1000, u32::MAX, 1).network().map(drop), "a generated network"),
        (Network::read_npz(&path).map(drop), "a network"),
        (Synapses::from_arrays(1 << 31, &NONE).map(drop), "the synapses of a network"),
    ] {
        let error = made.unwrap_err();
        assert!(matches!(error, selvedge::Error::OutOfMemory { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{what} of ")), "{error}");
    }
}

#[test]
fn bad_injections_are_refused() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2e9, f32::MAX] {
        let error = Injection::new(3, bad).unwrap_err().to_string();
        assert!(error.contains("for neuron 3"), "{error}");
    }
    assert_eq!(Injection::new(0, -1e9).unwrap().thousandths, -1_000_000_000_000);
    let mut cpu = Cpu::new();
    cpu.load(&Arc::new(network(Neurons::new(2), &[])), 0).unwrap();
    let error = cpu.inject(&[Injection { id: 2, thousandths: 1 }]).unwrap_err().to_string();
    assert!(error.contains("id 2; wanted an id below 2"), "{error}");
}

#[test]
fn a_backend_without_a_network_says_so() {
    let mut cpu = Cpu::new();
    let error = cpu.run_burst().unwrap_err().to_string();
    assert!(error.contains("no network"), "{error}");
}

#[test]
fn bad_states_and_weights_are_refused() {
    let two = Arc::new(network(Neurons::new(2), &[(0, 1, 1, 1, 0)]));
    let mut cpu = Cpu::new();
    cpu.load(&two, 0).unwrap();
    let cpus: Vec<Box<dyn Backend>> =
        (0..2).map(|_| Box::new(Cpu::with_threads(1)) as Box<dyn Backend>).collect();
    let mut shards = Shards::new(cpus, Box::new(InProcess)).unwrap();
    shards.load(&two, 0).unwrap();
    let good = NetworkState::at_rest(&two, 0);
    let spikes = |ids: &[u32]| -> Vec<Spike> { ids.iter().map(|&id| Spike { id, potential: 1.0 }).collect() };
    let fired = |ids: &[u32]| NetworkState { fired: spikes(ids), ..good.clone() };
    for (state, wanted) in [
        (
            NetworkState { neurons: good.neurons[..1].to_vec(), ..good.clone() },
            "needs 2 elements, but was given 1",
        ),
        (fired(&[2]), "id 2; wanted an id below 2"),
        (fired(&[1, 1]), "two spikes of neuron 1; wanted one spike of each neuron"),
        (fired(&[0, 1, 0]), "two spikes of neuron 0; wanted one spike of each neuron"),
        (
            NetworkState { burst: u64::MAX, ..good.clone() },
            "burst 18446744073709551615; wanted at most 9223372036854775808 bursts done",
        ),
        (NetworkState { burst: (1 << 63) + 1, ..good.clone() }, "burst 9223372036854775809"),
    ] {
        for backend in [&mut cpu as &mut dyn Backend, &mut shards] {
            let error = backend.set_state(&state).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
            if state.fired.len() > 1 {
                let error = backend.set_fired(&state.fired).unwrap_err().to_string();
                assert!(error.contains(wanted), "{error}");
            }
            assert_eq!(backend.state().unwrap(), good, "a refused state changes nothing");
        }
    }
    for backend in [&mut cpu as &mut dyn Backend, &mut shards] {
        backend.set_state(&NetworkState { burst: 1 << 63, ..fired(&[1, 0]) }).unwrap();
        assert_eq!(backend.run_burst().unwrap().burst, (1 << 63) + 1);
        backend.set_fired(&spikes(&[1, 0])).unwrap();
    }
    let change = WeightChange { synapse: 1, weight: 1 };
    assert!(
        cpu.set_weights(&[change]).unwrap_err().to_string().contains("synapse 1; wanted an index below 1")
    );
    assert!(cpu.set_fired(&[Spike { id: 9, potential: 0.0 }]).is_err());
}

#[test]
fn populations_must_fit_and_have_unique_names() {
    let mut three = network(Neurons::new(3), &[]);
    three.add_population("input", 0..2).unwrap();
    assert_eq!(three.population("input"), Some(0..2));
    assert_eq!(three.population("output"), None);
    assert!(
        three.add_population("input", 2..3).unwrap_err().to_string().contains("a second population 'input'")
    );
    assert!(three.add_population("output", 2..4).unwrap_err().to_string().contains("ids 2..4"));
}

#[test]
fn bad_edits_change_nothing() {
    let three = Arc::new(network(Neurons::new(4), &[(0, 1, 1, 1, 0), (0, 1, 2, 2, 1)]));
    let mut simulation = Simulation::new(three, Box::new(Cpu::new()), 0).unwrap();
    simulation.remove_neurons(&[3]).unwrap();
    let good =
        SynapseArrays { source: &[0, 1], target: &[2, 2], weight: &[1; 2], psp: &[1; 2], kind: &[0; 2] };
    for (arrays, wanted) in [
        (SynapseArrays { source: &[0, 4], ..good }, "source 4; wanted an id below 4"),
        (SynapseArrays { target: &[2, 9], ..good }, "target 9; wanted an id below 4"),
        (SynapseArrays { target: &[2, 3], ..good }, "target 3, which was removed"),
        (SynapseArrays { kind: &[0, 2], ..good }, "kind 2 of synapse 1"),
        (SynapseArrays { source: &[1, 0], target: &[2, 1], ..good }, "a second synapse from 0 to 1"),
        (SynapseArrays { source: &[1, 1], ..good }, "two synapses from 1 to 2 in one call"),
        (SynapseArrays { psp: &[1], ..good }, "needs 2 elements, but was given 1"),
        (SynapseArrays { target: &[1], ..good }, "needs 2 elements, but was given 1"),
    ] {
        let error = simulation.create_synapses(&arrays).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    for (source, target, wanted) in [
        (&[0, 1][..], &[1, 0][..], "no synapse from 1 to 0"),
        (&[0, 0], &[1, 1], "two synapses from 0 to 1 in one call"),
        (&[0], &[4], "target 4; wanted an id below 4"),
        (&[3], &[1], "source 3, which was removed"),
        (&[0], &[], "needs 1 element, but was given 0"),
    ] {
        let error = simulation.remove_synapses(source, target).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    for (ids, wanted) in [
        (&[1, 4][..], "neuron 4; wanted"),
        (&[1, 1], "neuron 1 twice"),
        (&[3], "neuron 3, which was removed"),
    ] {
        let error = simulation.remove_neurons(ids).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    // Before and after the merge.
    for _ in 0..2 {
        let error = simulation.inject(&[(0, 1.0), (3, 1.0)]).unwrap_err().to_string();
        assert!(error.contains("id 3, which was removed"), "{error}");
        assert!(
            simulation.inject(&[(4, 1.0)]).unwrap_err().to_string().contains("id 4; wanted an id below 4")
        );
        assert_eq!(simulation.run_burst().unwrap().counts.injections, 0);
    }
    assert_eq!(simulation.network().synapses().len(), 2);
    // Both synapses of the pair go.
    simulation.remove_synapses(&[0], &[1]).unwrap();
    assert!(
        simulation.remove_synapses(&[0], &[1]).unwrap_err().to_string().contains("no synapse from 0 to 1")
    );
    simulation.create_synapses(&good).unwrap();
    simulation.run(1).unwrap();
    assert_eq!(simulation.network().synapses().row_pointers(), [0, 1, 2, 2, 2]);
}

#[test]
fn rules_that_create_nothing_are_refused() {
    let mut simulation =
        Simulation::new(Arc::new(network(Neurons::new(2), &[])), Box::new(Cpu::new()), 0).unwrap();
    for (increase, kind, most, wanted) in
        [(1, 2, 1, "synapse kind 2"), (0, 0, 5, "5 new synapses of weight 0"), (1, 0, 0, "at most 0 new")]
    {
        let create = Some(SynapseCreation { psp: 1, kind, most });
        let rule = PlasticityRule::AreaWindow {
            source_area: 0,
            target_area: 0,
            window: 1,
            increase,
            decrease: 1,
            prune: true,
            create,
        };
        let error = simulation.add_rule(rule).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}
