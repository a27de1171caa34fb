//! Runs that continue after their device was lost, and runs of several bursts at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge::burst::{
    Backend, Cpu, GeneratedNetwork, InProcess, Network, NetworkState, NeuronField, NeuronSelection,
    PlasticityRule, Shards, Simulation, SynapseArrays, SynapseCreation, WeightChange,
};
use selvedge::{Error, Result};

use super::losable::{BackendCall, Losable};

/// Returns a device that is lost after some bursts, and the number of its calls of `run_bursts`.
pub fn losable(bursts: i64) -> (Box<dyn Backend>, Arc<AtomicUsize>) {
    let (mut left, groups) = (bursts, Arc::new(AtomicUsize::new(0)));
    let counted = groups.clone();
    let before = move |call: BackendCall| {
        match call {
            BackendCall::Bursts => {
                counted.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            BackendCall::Burst => left -= 1,
            BackendCall::Load | BackendCall::Other => {}
        }
        match left < 0 {
            true => Err(Error::InvalidArgument {
                operation: "a burst",
                found: "a lost device".to_owned(),
                wanted: "another".to_owned(),
            }),
            false => Ok(()),
        }
    };
    (Box::new(Losable { cpu: Cpu::with_threads(1), before }), groups)
}

const RULE: PlasticityRule = PlasticityRule::AreaWindow {
    source_area: 0,
    target_area: 0,
    window: 2,
    increase: 3,
    decrease: 1,
    prune: true,
    create: Some(SynapseCreation { psp: 4, kind: 0, most: 3 }),
};

/// Everything that a run leaves.
type Outcome = (NetworkState, Vec<u16>, Vec<u64>, Vec<u32>, Vec<u32>, selvedge::burst::Totals);

/// Runs a network with everything that the host changes between bursts; a failed burst is recovered on a CPU.
fn run(
    network: &Arc<Network>,
    generated: &GeneratedNetwork,
    backend: Box<dyn Backend>,
) -> Result<(Outcome, usize)> {
    let mut simulation = Simulation::new(network.clone(), backend, 7)?;
    simulation.record_spikes(true);
    simulation.record_potentials(&[3, 299, 3])?;
    simulation.set_power(5..9, 2.5)?;
    simulation.add_rule(RULE)?;
    let queue = simulation.parameter_queue();
    let mut recovered = 0;
    for burst in 1..=40u64 {
        let input = generated.injections(burst);
        let input = input.iter().filter(|one| simulation.is_in_use(one.id)).map(|one| (one.id, 150.5));
        simulation.inject(&input.collect::<Vec<(u32, f32)>>())?;
        if burst % 10 == 0 {
            queue.push(NeuronSelection::Ids(0..50), NeuronField::Threshold(burst as f32))?;
        }
        match burst {
            4 | 21 => {
                let change = |weight| WeightChange { synapse: burst, weight };
                simulation.set_weights(&[change(1), change(burst as u8)])?;
                assert_eq!(simulation.weights()?[burst as usize] & 0xff, burst as u16);
            }
            15 => simulation.set_dense(true)?,
            18 => simulation.set_dense(false)?,
            // Edits of two logs, behind staged input.
            10 | 31 => {
                let id = 40 + burst as u32;
                simulation.remove_neurons(&[id])?;
                simulation.create_synapses(&SynapseArrays {
                    source: &[7, 8],
                    target: &[id + 1, id + 1],
                    weight: &[90, 80],
                    psp: &[3, 3],
                    kind: &[0, 1],
                })?;
            }
            _ => {}
        }
        if simulation.run_burst().is_err() {
            recovered += 1;
            // A retry on the lost device changes nothing.
            assert!(simulation.run_burst().is_err());
            simulation.recover(Box::new(Cpu::with_threads(2)))?;
            assert_eq!(simulation.state()?.burst, burst - 1);
            simulation.run_burst()?;
        }
    }
    let (bursts, ids) = simulation.spikes();
    let (bursts, ids) = (bursts.to_vec(), ids.to_vec());
    let potentials = simulation.potentials().iter().map(|potential| potential.to_bits()).collect();
    let totals = simulation.totals();
    Ok(((simulation.state()?, simulation.weights()?, bursts, ids, potentials, totals), recovered))
}

#[test]
fn a_run_recovers_from_a_device_that_is_lost_in_any_burst() {
    let generated = GeneratedNetwork::g(300, 10);
    let network = Arc::new(generated.network().unwrap());
    let (wanted, _) = run(&network, &generated, Box::new(Cpu::with_threads(1))).unwrap();
    for lost_after in [0, 1, 9, 10, 14, 17, 30, 39] {
        let (backend, _) = losable(lost_after);
        let (found, recovered) = run(&network, &generated, backend).unwrap();
        assert_eq!(recovered, 1, "{lost_after}");
        assert!(found == wanted, "lost after {lost_after} bursts");
    }
}

#[test]
fn a_long_run_recovers_from_a_checkpoint_and_continues_from_states_that_were_set() {
    let generated = GeneratedNetwork::g(100, 5);
    let network = Arc::new(generated.network().unwrap());
    let mut wanted = Simulation::new(network.clone(), Box::new(Cpu::with_threads(1)), 3).unwrap();
    // 2500 bursts are two checkpoints and a part.
    let (backend, groups) = losable(2500);
    let mut found = Simulation::new(network.clone(), backend, 3).unwrap();
    for simulation in [&mut wanted, &mut found] {
        for _ in 0..25 {
            simulation.inject(&[(1, 500.0), (50, 500.0)]).unwrap();
            simulation.run(100).unwrap();
        }
    }
    // Nothing needs the host between bursts: groups of 32.
    assert_eq!(groups.load(Ordering::Relaxed), 25 * 4);
    assert!(found.run(1).is_err());
    let (second, replayed) = losable(2000);
    found.recover(second).unwrap();
    assert!(replayed.load(Ordering::Relaxed) <= 45, "replayed {replayed:?} groups");
    assert_eq!(found.state().unwrap(), wanted.state().unwrap());
    assert_eq!(found.totals(), wanted.totals());

    // A state that was set is a checkpoint too.
    let earlier = NetworkState { burst: 7, ..NetworkState::at_rest(&network, 9) };
    for simulation in [&mut wanted, &mut found] {
        simulation.set_state(&earlier).unwrap();
        simulation.inject(&[(2, 900.0)]).unwrap();
        simulation.run(50).unwrap();
    }
    found.recover(Box::new(Cpu::new())).unwrap();
    assert_eq!(found.state().unwrap(), wanted.state().unwrap());
    assert_eq!(found.state().unwrap().burst, 57);
    // A CPU cannot be lost.
    let error = found.recover(Box::new(Cpu::new())).unwrap_err().to_string();
    assert!(error.contains("Simulation::set_backend"), "{error}");
}

#[test]
fn groups_of_bursts_record_as_single_bursts_do() {
    let generated = GeneratedNetwork::g(200, 10);
    let network = Arc::new(generated.network().unwrap());
    let outcome = |single: bool| {
        let (backend, groups) = losable(1000);
        let mut simulation = Simulation::new(network.clone(), backend, 3).unwrap();
        // The holder of a queue may change parameters between any two bursts.
        let queue = single.then(|| simulation.parameter_queue());
        simulation.record_spikes(true);
        simulation.keep_ledger(5).unwrap();
        let sampler = simulation.add_sampler(0..100, 10).unwrap();
        simulation
            .inject(&generated.injections(1).iter().map(|one| (one.id, 150.5)).collect::<Vec<_>>())
            .unwrap();
        simulation.run(70).unwrap();
        drop(queue);
        let (bursts, ids) = simulation.spikes();
        let spikes = (bursts.to_vec(), ids.to_vec());
        let ledger = simulation.ledger().cloned();
        let snapshot = simulation.take_snapshot(sampler);
        assert_eq!(groups.load(Ordering::Relaxed), if single { 70 } else { 3 });
        (spikes, ledger, snapshot, simulation.totals(), simulation.state().unwrap())
    };
    let (left, right) = (outcome(true), outcome(false));
    assert!(!left.0.0.is_empty());
    assert_eq!(left, right);
}

#[test]
fn bursts_that_ran_behind_the_simulation_are_an_error() {
    let generated = GeneratedNetwork::g(100, 5);
    let network = Arc::new(generated.network().unwrap());
    let mut simulation = Simulation::new(network, Box::new(Cpu::with_threads(1)), 3).unwrap();
    simulation.run(2).unwrap();
    // The caller may run the backend: the simulation follows.
    simulation.backend().run_burst().unwrap();
    assert_eq!(simulation.run_burst().unwrap().burst, 4);
    assert_eq!(simulation.run_burst().unwrap().burst, 5);
}

#[test]
fn potentials_of_shards_are_those_of_the_owners() {
    let generated = GeneratedNetwork::g(300, 10);
    let network = Arc::new(generated.network().unwrap());
    let backends = (0..3).map(|_| Box::new(Cpu::with_threads(1)) as Box<dyn Backend>).collect();
    let mut shards = Shards::new(backends, Box::new(InProcess)).unwrap();
    let mut cpu = Cpu::with_threads(1);
    for backend in [&mut shards as &mut dyn Backend, &mut cpu] {
        backend.load(&network, 7).unwrap();
        for burst in 1..=20 {
            backend.inject(&generated.injections(burst)).unwrap();
            backend.run_burst().unwrap();
        }
    }
    let ids: Vec<u32> = [299, 0, 150, 0].into_iter().chain(0..300).collect();
    assert_eq!(shards.potentials(&ids).unwrap(), cpu.potentials(&ids).unwrap());
    assert!(shards.potentials(&[300]).unwrap_err().to_string().contains("id 300"));
}
