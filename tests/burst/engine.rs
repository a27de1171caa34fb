//! The shared cases on the CPU backend and in shards, and the rules that need more than one run.

use std::sync::Arc;

use selvedge::burst::{
    Accumulator, Auto, Backend, Cpu, GeneratedNetwork, InProcess, Injection, Network, Neurons, Shards, Spike,
    SpikeHash, WeightChange,
};

use super::cases::{
    Behaviour, Golden, behaviours, burst, golden_large, golden_small, golden_steady, network, pairs,
    worked_example,
};
use super::cases_of_edits::edits_apply_as_in_a_plain_model;
use super::changes::{
    auto_changes_no_result, changes_apply_alike, excitability_fires_within_binomial_bounds,
    saved_and_moved_runs_end_alike,
};

#[test]
fn edits_apply_on_every_backend() {
    for threads in [1, 3] {
        edits_apply_as_in_a_plain_model(&|| Ok(Box::new(Cpu::with_threads(threads)))).unwrap();
    }
    for count in [2, 5] {
        edits_apply_as_in_a_plain_model(&|| Ok(shards(count))).unwrap();
    }
    let auto = || Box::new(Auto::new(Box::new(Cpu::with_threads(2)), shards(3))) as Box<dyn Backend>;
    edits_apply_as_in_a_plain_model(&|| Ok(auto())).unwrap();
}

fn shards(count: usize) -> Box<dyn Backend> {
    let backends = (0..count).map(|_| Box::new(Cpu::with_threads(1)) as Box<dyn Backend>).collect();
    Box::new(Shards::new(backends, Box::new(InProcess)).expect("shards"))
}

/// One thread, several, and shards.
fn backends() -> Vec<Box<dyn Backend>> {
    let mut backends: Vec<Box<dyn Backend>> =
        [1, 2, 3].map(|threads| Box::new(Cpu::with_threads(threads)) as _).into();
    backends.extend([2, 3, 8].map(shards));
    backends
}

#[test]
fn the_worked_example_holds_on_every_backend() {
    for mut backend in backends() {
        worked_example(&mut *backend);
    }
}

fn check_golden(golden: &Golden, backends: Vec<Box<dyn Backend>>) {
    let network = Arc::new(golden.network.network().expect("a network"));
    for mut backend in backends {
        golden.check(&network, &mut *backend);
    }
}

#[test]
fn golden_hashes_of_the_small_network_hold_on_every_backend() {
    check_golden(&golden_small(), backends());
}

#[test]
fn golden_hashes_of_the_large_network_hold_with_any_number_of_threads() {
    check_golden(&golden_large(), [1, 2, 5].map(|threads| Box::new(Cpu::with_threads(threads)) as _).into());
}

#[test]
fn golden_hashes_of_the_steady_network_hold() {
    check_golden(&golden_steady(), vec![Box::new(Cpu::new()), shards(3)]);
}

#[test]
fn behaviours_hold_on_every_backend() {
    for mut backend in backends() {
        for behaviour in behaviours() {
            Behaviour::check(&behaviour, &mut *backend);
        }
    }
}

#[test]
fn fractional_excitability_fires_within_binomial_bounds() {
    for mut backend in backends() {
        excitability_fires_within_binomial_bounds(&mut *backend, 2000, 10).unwrap();
    }
}

#[test]
fn changes_between_bursts_apply_alike_on_every_backend() {
    let generated = GeneratedNetwork::g(400, 12);
    for mut backend in backends() {
        changes_apply_alike(&mut *backend, &generated, 4).unwrap();
    }
    auto_changes_no_result(shards(2), &generated).unwrap();
}

#[test]
fn saved_and_moved_runs_end_alike_in_shards() {
    saved_and_moved_runs_end_alike(&|| Ok(shards(3)), &GeneratedNetwork::g(300, 10), 10).unwrap();
}

#[test]
fn thousands_of_bursts_do_not_drift() {
    let generated = GeneratedNetwork::g(200, 12);
    let network = Arc::new(generated.network().unwrap());
    let (mut cut, mut whole) = (shards(3), Cpu::with_threads(1));
    cut.load(&network, 11).unwrap();
    whole.load(&network, 11).unwrap();
    let mut spikes = 0;
    for number in 1..=2000 {
        let injections = generated.injections(number);
        cut.inject(&injections).unwrap();
        whole.inject(&injections).unwrap();
        let result = whole.run_burst().unwrap();
        assert_eq!(cut.run_burst().unwrap(), result);
        spikes += result.fired.len();
    }
    assert!(spikes > 2000 * 10, "{spikes} spikes");
    assert_eq!(cut.state().unwrap(), whole.state().unwrap());
}

#[test]
fn dense_mode_equals_an_injection_of_zero_everywhere() {
    let golden = GeneratedNetwork::g(300, 10);
    let network = Arc::new(golden.network().unwrap());
    let zeros: Vec<Injection> = (0..300).map(|id| Injection { id, thousandths: 0 }).collect();
    for mut dense in backends() {
        let mut sparse = Cpu::with_threads(1);
        dense.load(&network, 5).unwrap();
        dense.set_dense(true).unwrap();
        sparse.load(&network, 5).unwrap();
        for number in 1..=30 {
            let injections = golden.injections(number);
            dense.inject(&injections).unwrap();
            sparse.inject(&injections).unwrap();
            sparse.inject(&zeros).unwrap();
            let (left, right) = (dense.run_burst().unwrap(), sparse.run_burst().unwrap());
            assert_eq!(left.fired, right.fired);
            assert_eq!((left.counts.candidates, left.counts.blocked), (300, right.counts.blocked));
        }
        assert_eq!(dense.state().unwrap().hash(), sparse.state().unwrap().hash());
    }
}

#[test]
fn a_hub_reaches_every_neuron_and_all_may_fire() {
    let count = 5000;
    let synapses: Vec<_> = (0..count).rev().map(|target| (0, target, 1, 1, 0)).collect();
    let network = Arc::new(network(Neurons::new(count as usize), &synapses));
    for mut backend in backends() {
        backend.load(&network, 0).unwrap();
        burst(&mut *backend, &[(0, 1.0)]);
        let all = burst(&mut *backend, &[]);
        assert_eq!(all.counts.events, u64::from(count));
        assert!(all.fired.iter().map(|spike| spike.id).eq(0..count));
    }
}

#[test]
fn a_network_without_neurons_runs() {
    for mut backend in backends() {
        backend.load(&Arc::new(network(Neurons::new(0), &[])), 0).unwrap();
        backend.set_dense(true).unwrap();
        assert_eq!(backend.run_burst().unwrap().counts, Default::default());
    }
}

#[test]
fn a_run_continues_from_a_saved_state() {
    let golden = GeneratedNetwork::g(400, 12);
    let network = Arc::new(golden.network().unwrap());
    let run = |backend: &mut dyn Backend, bursts: std::ops::RangeInclusive<u64>| {
        let one = |number| {
            backend.inject(&golden.injections(number)).unwrap();
            backend.run_burst().unwrap()
        };
        bursts.map(one).collect::<Vec<_>>()
    };
    for mut second in backends() {
        let mut first = Cpu::with_threads(2);
        first.load(&network, 9).unwrap();
        run(&mut first, 1..=20);
        let state = first.state().unwrap();
        second.load(&network, 0).unwrap();
        second.set_state(&state).unwrap();
        assert_eq!(run(&mut first, 21..=40), run(&mut *second, 21..=40));
        assert_eq!(first.state().unwrap(), second.state().unwrap());
    }
}

#[test]
fn changed_weights_apply_in_every_cut() {
    let golden = GeneratedNetwork::g(400, 12);
    let network = Arc::new(golden.network().unwrap());
    let changes: Vec<WeightChange> =
        (0..4800).step_by(7).map(|synapse| WeightChange { synapse, weight: 255 - synapse as u8 }).collect();
    let mut results = Vec::new();
    for mut backend in backends() {
        backend.load(&network, 9).unwrap();
        let mut fired: Vec<Vec<Spike>> = Vec::new();
        for number in 1..=30 {
            if number == 10 {
                backend.set_weights(&changes).unwrap();
            }
            backend.inject(&golden.injections(number)).unwrap();
            fired.push(backend.run_burst().unwrap().fired);
        }
        let weights = backend.weights().unwrap();
        assert_eq!(weights[7] & 255, 248);
        assert_eq!(weights[7] >> 8, network.synapses().weights()[7] >> 8);
        results.push((fired, weights, backend.state().unwrap()));
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn accumulators_are_wide_only_where_32_bits_could_overflow() {
    let width = |synapses: usize, plastic: bool| -> Accumulator {
        let network: Network = network(Neurons::new(2), &vec![(0, 1, 255, 255, 0); synapses]);
        network.accumulator(plastic)
    };
    assert_eq!(width(33, false), Accumulator::Bits32 { reserve: 1_658_647 });
    assert_eq!(width(34, false), Accumulator::Bits64);
    let weak = network(Neurons::new(2), &[(0, 1, 1, 255, 0); 40]);
    assert!(matches!(weak.accumulator(false), Accumulator::Bits32 { .. }));
    assert_eq!(weak.accumulator(true), Accumulator::Bits64);
}

#[test]
fn wide_accumulators_give_the_golden_hashes() {
    let golden = golden_small();
    let network = Arc::new(golden.network.network().unwrap());
    assert!(matches!(network.accumulator(false), Accumulator::Bits32 { .. }));
    for mut backend in backends() {
        backend.load(&network, golden.seed).unwrap();
        let mut hash = SpikeHash::new();
        for number in 1..=golden.bursts {
            let injections = golden.network.injections(number);
            // Two injections that cancel each other, and that 32 bits do not hold.
            let cancelling =
                [1 << 42, -(1 << 42)].map(|thousandths| Injection { thousandths, ..injections[0] });
            backend.inject(&injections).unwrap();
            backend.inject(&cancelling).unwrap();
            hash.add(number, &backend.run_burst().unwrap().fired);
        }
        let state = backend.state().unwrap().hash();
        assert_eq!((hash.value(), state), (golden.spike_hash, golden.state_hash), "{}", backend.name());
    }
}

#[test]
fn a_network_of_100_000_neurons_runs_alike_in_every_cut() {
    let generated = GeneratedNetwork::s(100_000, 10, 100);
    let network = Arc::new(generated.network().unwrap());
    let mut results = Vec::new();
    for mut backend in backends() {
        backend.load(&network, 1).unwrap();
        let run = |number| {
            backend.inject(&generated.injections(number)).unwrap();
            backend.run_burst().unwrap()
        };
        results.push((1..=4).map(run).collect::<Vec<_>>());
    }
    assert!(results[0][3].fired.len() > 800 && results[0][3].counts.events > 8000);
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_generated_network_beyond_the_memory_is_an_error() {
    let error = GeneratedNetwork::g(1 << 31, u32::MAX).network().unwrap_err();
    assert!(matches!(error, selvedge::Error::OutOfMemory { .. }), "{error}");
}

#[test]
fn weights_that_outgrow_32_bits_widen_the_accumulators() {
    let mut neurons = Neurons::new(2);
    neurons.threshold[1] = 1e6;
    let weak = Arc::new(network(neurons, &[(0, 1, 1, 255, 0); 40]));
    let changes: Vec<WeightChange> = (0..40).map(|synapse| WeightChange { synapse, weight: 255 }).collect();
    for mut backend in backends() {
        backend.load(&weak, 0).unwrap();
        backend.set_weights(&changes).unwrap();
        burst(&mut *backend, &[(0, 1.0)]);
        assert_eq!(pairs(&burst(&mut *backend, &[])), [(1, 2_601_000.0)]);
    }
}
