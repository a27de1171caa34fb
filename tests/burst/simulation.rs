//! Simulations: input, recordings, parameter changes, plasticity, files and the runner.

use std::sync::Arc;

use selvedge::burst::{
    Area, Backend, BurstResult, BurstRunner, Cpu, FireLedger, GeneratedNetwork, InProcess, Network,
    NeuronField, NeuronSelection, Neurons, PlasticityRule, Shards, Simulation, Spike, SpikeHash,
};
use sha2::Digest;

use super::cases::{Synapse, network, pairs};

fn simulation(neurons: Neurons, synapses: &[Synapse]) -> Simulation {
    Simulation::new(Arc::new(network(neurons, synapses)), Box::new(Cpu::with_threads(2)), 0).unwrap()
}

fn shards(count: usize) -> Box<dyn Backend> {
    let backends = (0..count).map(|_| Box::new(Cpu::with_threads(1)) as Box<dyn Backend>).collect();
    Box::new(Shards::new(backends, Box::new(InProcess)).unwrap())
}

#[test]
fn a_refused_injection_stages_nothing() {
    let mut simulation = simulation(Neurons::new(2), &[]);
    assert!(
        simulation.inject(&[(0, 1.0), (1, f32::NAN)]).unwrap_err().to_string().contains("NaN for neuron 1")
    );
    assert!(simulation.inject(&[(0, 1.0), (2, 1.0)]).unwrap_err().to_string().contains("id 2"));
    assert_eq!(simulation.run_burst().unwrap().counts.candidates, 0);
    let much = vec![(0, 1e9); 5_000_000];
    assert!(simulation.inject(&much).unwrap_err().to_string().contains("for one burst"));
}

#[test]
fn parameter_changes_apply_between_bursts_in_order_from_any_thread() {
    let mut neurons = Neurons::new(3);
    neurons.area[2] = 1;
    neurons.threshold.fill(10.0);
    let rows = selvedge::burst::Synapses::from_rows(vec![0; 4], vec![], vec![]).unwrap();
    let network = Network::with_areas(neurons, rows, vec![Area::new("a"), Area::new("b")]).unwrap();
    let mut simulation = Simulation::new(Arc::new(network), shards(2), 0).unwrap();
    simulation.set_power(0..3, 5.0).unwrap();
    assert_eq!(simulation.run_burst().unwrap().fired, []);
    let queue = simulation.parameter_queue();
    std::thread::spawn(move || {
        queue.push(NeuronSelection::Area(0), NeuronField::Threshold(5.0)).unwrap();
        queue.push(NeuronSelection::Ids(1..2), NeuronField::Threshold(100.0)).unwrap();
        let bad = queue.push(NeuronSelection::Ids(0..1), NeuronField::Leak(2.0)).unwrap_err().to_string();
        assert!(bad.contains("leak 2 of the change"), "{bad}");
        assert!(queue.push(NeuronSelection::Area(2), NeuronField::Snooze(1)).is_err());
        assert!(queue.push(NeuronSelection::Ids(2..4), NeuronField::Snooze(1)).is_err());
    })
    .join()
    .unwrap();
    // 5 leaked to 4.5, and 5 more.
    assert_eq!(pairs(&simulation.run_burst().unwrap()), [(0, 9.5)]);
    assert_eq!(simulation.neurons().threshold, [5.0, 100.0, 10.0]);
}

#[test]
fn every_parameter_can_change() {
    let fields = [
        NeuronField::Threshold(2.0),
        NeuronField::ThresholdMax(90.0),
        NeuronField::Leak(0.5),
        NeuronField::Rest(1.0),
        NeuronField::Refractory(4),
        NeuronField::Excitability(0.5),
        NeuronField::FireLimit(6),
        NeuronField::Snooze(7),
        NeuronField::Accumulates(false),
    ];
    let mut simulation = simulation(Neurons::new(1), &[]);
    for field in fields {
        simulation.parameter_queue().push(NeuronSelection::Ids(0..1), field).unwrap();
    }
    simulation.run(1).unwrap();
    let mut wanted = Neurons::new(1);
    wanted.threshold[0] = 2.0;
    wanted.threshold_max[0] = 90.0;
    wanted.leak[0] = 0.5;
    wanted.rest[0] = 1.0;
    wanted.refractory[0] = 4;
    wanted.excitability[0] = 0.5;
    wanted.fire_limit[0] = 6;
    wanted.snooze[0] = 7;
    wanted.accumulates[0] = false;
    assert_eq!(*simulation.neurons(), wanted);
}

#[test]
fn potentials_of_chosen_neurons_are_recorded() {
    let mut neurons = Neurons::new(3);
    neurons.threshold.fill(100.0);
    neurons.leak.fill(0.5);
    for backend in [Box::new(Cpu::new()) as Box<dyn Backend>, shards(3)] {
        let mut simulation = Simulation::new(Arc::new(network(neurons.clone(), &[])), backend, 0).unwrap();
        simulation.record_potentials(&[2, 0]).unwrap();
        simulation.set_power(0..1, 8.0).unwrap();
        simulation.run(3).unwrap();
        assert_eq!(simulation.potentials(), [0.0, 4.0, 0.0, 6.0, 0.0, 7.0]);
        assert!(simulation.record_potentials(&[3]).is_err());
    }
}

#[test]
fn the_fire_queue_groups_spikes_by_area() {
    let mut neurons = Neurons::new(3);
    neurons.area = vec![1, 0, 1];
    neurons.position[2] = [4, 5, 6];
    let rows = selvedge::burst::Synapses::from_rows(vec![0; 4], vec![], vec![]).unwrap();
    let network = Network::with_areas(neurons, rows, vec![Area::new("a"), Area::new("b")]).unwrap();
    let mut simulation = Simulation::new(Arc::new(network), Box::new(Cpu::new()), 0).unwrap();
    simulation.inject(&[(0, 1.0), (2, 3.0)]).unwrap();
    let result = simulation.run_burst().unwrap();
    let queue = simulation.fire_queue(&result);
    assert_eq!(queue.keys().copied().collect::<Vec<_>>(), [1]);
    let last = queue[&1][1];
    assert_eq!((last.id, last.potential, last.position), (2, 3.0, [4, 5, 6]));
}

#[test]
fn the_ledger_holds_a_window_and_refuses_older_bursts() {
    let mut ledger = FireLedger::new(70, 3);
    let spike = |id| Spike { id, potential: 1.0 };
    assert!(ledger.fired(0).is_err());
    ledger.record(1, &[spike(0), spike(69)]);
    ledger.record(4, &[spike(64)]);
    assert_eq!(ledger.bursts(), 2..=4);
    assert_eq!(ledger.fired(4).unwrap(), [64]);
    assert_eq!((ledger.fired(2).unwrap(), ledger.fired(3).unwrap()), (vec![], vec![]));
    let error = ledger.fired(1).unwrap_err().to_string();
    assert!(error.contains("burst 1; wanted a burst from 2 to 4"), "{error}");
    // A gap longer than the window counts as empty bursts.
    ledger.record(100, &[spike(1)]);
    assert_eq!((ledger.bursts(), ledger.fired(99).unwrap()), (98..=100, vec![]));
    // Id 70 has a bit in the last word, but is no neuron.
    ledger.record(101, &[spike(69), spike(70), spike(128)]);
    assert_eq!(ledger.fired(101).unwrap(), [69]);
}

#[test]
fn a_ledger_has_at_most_1024_bursts() {
    let mut simulation = simulation(Neurons::new(2), &[]);
    for window in [1025, usize::MAX] {
        let wanted = format!("a window of {window} bursts; wanted at most 1024");
        for refused in [simulation.keep_ledger(window), simulation.set_ledger(FireLedger::new(2, window))] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(&wanted), "{error}");
        }
    }
    simulation.set_ledger(FireLedger::new(2, 8)).unwrap();
    assert!(simulation.keep_ledger(1025).is_err());
    simulation.keep_ledger(1024).unwrap();
    assert_eq!(simulation.ledger().unwrap().window(), 1024);
}

#[test]
fn memory_stays_constant_over_many_bursts() {
    let mut simulation = simulation(Neurons::new(2), &[(0, 1, 1, 1, 0), (1, 0, 1, 1, 0)]);
    simulation.keep_ledger(8).unwrap();
    simulation.inject(&[(0, 1.0)]).unwrap();
    simulation.run(1000).unwrap();
    assert_eq!(simulation.ledger().unwrap().bursts(), 993..=1000);
    assert_eq!(simulation.totals().spikes, 1000);
}

#[test]
fn area_windows_strengthen_steady_pairs_and_weaken_others() {
    // 0 and 1 fire in every burst; 2 in every second; 3 never.
    let mut neurons = Neurons::new(4);
    neurons.threshold.fill(1000.0);
    neurons.leak.fill(0.0);
    let synapses = [(0, 1, 254, 0, 0), (0, 2, 5, 0, 0), (0, 3, 9, 0, 0)];
    let mut simulation = simulation(neurons, &synapses);
    let rule = PlasticityRule::AreaWindow {
        source_area: 0,
        target_area: 0,
        window: 2,
        increase: 1,
        decrease: 3,
        prune: false,
        create: None,
    };
    simulation.add_rule(rule).unwrap();
    let mut seen = Vec::new();
    for number in 1..=5 {
        simulation.inject(&[(0, 2000.0), (1, 2000.0)]).unwrap();
        if number % 2 == 0 {
            simulation.inject(&[(2, 2000.0)]).unwrap();
        }
        simulation.run_burst().unwrap();
        seen.push(simulation.weights().unwrap());
    }
    assert_eq!(seen, [[254, 5, 9], [255, 2, 9], [255, 0, 9], [255, 0, 9], [255, 0, 9]]);
}

/// The classic rule with changes 3, 2, 1, 1 and 5, 3, 2, 1, 1 by distance.
fn spike_timing() -> PlasticityRule {
    PlasticityRule::SpikeTiming {
        source_area: 0,
        target_area: 0,
        a_plus: 0.02,
        a_minus: 0.035,
        tau_plus_ms: 20.0,
        tau_minus_ms: 20.0,
        burst_ms: 10.0,
    }
}

#[test]
fn spike_timing_grows_when_the_source_leads_and_falls_when_it_follows() {
    // The synapse has no PSP, so the neurons fire only when they are injected.
    let weights = |spikes: &[&[u32]]| {
        let mut simulation = simulation(Neurons::new(2), &[(0, 1, 100, 0, 0)]);
        simulation.add_rule(spike_timing()).unwrap();
        let mut weights = Vec::new();
        for ids in spikes {
            simulation.inject(&ids.iter().map(|&id| (id, 1.0)).collect::<Vec<_>>()).unwrap();
            simulation.run_burst().unwrap();
            weights.push(simulation.weights().unwrap()[0]);
        }
        weights
    };
    assert_eq!(weights(&[&[0], &[1]]), [100, 103]);
    assert_eq!(weights(&[&[0], &[], &[1]]), [100, 100, 102]);
    assert_eq!(weights(&[&[1], &[0]]), [100, 95]);
    assert_eq!(weights(&[&[0, 1]]), [100]);
    // Both fire again: each pairs with the other's spike of the burst before.
    assert_eq!(weights(&[&[0, 1], &[0, 1]]), [100, 98]);
    assert_eq!(weights(&[&[0], &[], &[], &[], &[], &[], &[1]]), [100; 7]);
}

#[test]
fn bad_rules_are_refused() {
    let mut simulation = simulation(Neurons::new(1), &[]);
    let window = |window| PlasticityRule::AreaWindow {
        source_area: 0,
        target_area: 0,
        window,
        increase: 1,
        decrease: 1,
        prune: false,
        create: None,
    };
    assert!(simulation.add_rule(window(0)).is_err());
    assert!(simulation.add_rule(window(5000)).is_err());
    let area = PlasticityRule::AreaWindow {
        source_area: 0,
        target_area: 1,
        window: 1,
        increase: 1,
        decrease: 1,
        prune: false,
        create: None,
    };
    assert!(simulation.add_rule(area).unwrap_err().to_string().contains("area 1"));
    let PlasticityRule::SpikeTiming {
        source_area, target_area, a_plus, a_minus, tau_plus_ms, burst_ms, ..
    } = spike_timing()
    else {
        panic!("not this rule");
    };
    let tau = PlasticityRule::SpikeTiming {
        source_area,
        target_area,
        a_plus,
        a_minus,
        tau_plus_ms,
        tau_minus_ms: f64::NAN,
        burst_ms,
    };
    assert!(simulation.add_rule(tau).unwrap_err().to_string().contains("tau_minus_ms NaN"));
}

/// Runs bursts of a generated network; returns the hashes of spikes and state, and the weights.
fn plastic_run(simulation: &mut Simulation, bursts: std::ops::RangeInclusive<u64>) -> (u64, Vec<u16>, u64) {
    let generated = GeneratedNetwork::g(300, 10);
    let mut hash = SpikeHash::new();
    for number in bursts {
        let staged: Vec<(u32, f32)> =
            generated.injections(number).iter().map(|injection| (injection.id, 150.5)).collect();
        simulation.inject(&staged).unwrap();
        let result = simulation.run_burst().unwrap();
        hash.add(number, &result.fired);
    }
    (hash.value(), simulation.weights().unwrap(), simulation.state().unwrap().hash())
}

fn with_rules(simulation: &mut Simulation) {
    simulation.add_rule(spike_timing()).unwrap();
    let rule = PlasticityRule::AreaWindow {
        source_area: 0,
        target_area: 0,
        window: 3,
        increase: 2,
        decrease: 1,
        prune: false,
        create: None,
    };
    simulation.add_rule(rule).unwrap();
}

#[test]
fn plastic_runs_are_equal_in_every_cut_and_continue_from_files() {
    let network = Arc::new(GeneratedNetwork::g(300, 10).network().unwrap());
    let run = |backend: Box<dyn Backend>| {
        let mut simulation = Simulation::new(network.clone(), backend, 7).unwrap();
        with_rules(&mut simulation);
        simulation
    };
    let mut whole = run(Box::new(Cpu::with_threads(1)));
    plastic_run(&mut whole, 1..=20);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.burst");
    whole.set_power(5..9, 2.5).unwrap();
    whole.parameter_queue().push(NeuronSelection::Ids(3..9), NeuronField::Leak(0.75)).unwrap();
    plastic_run(&mut whole, 21..=21);
    whole.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    let rest = plastic_run(&mut whole, 22..=40);
    assert_ne!(whole.weights().unwrap(), network.synapses().weights());

    for backend in [Box::new(Cpu::with_threads(3)) as Box<dyn Backend>, shards(3)] {
        let mut again = Simulation::restore(&path, backend).unwrap();
        with_rules(&mut again);
        assert_eq!(plastic_run(&mut again, 22..=40), rest);
    }
    // From the start in shards, and moved to another backend on the way.
    let mut moved = run(shards(2));
    plastic_run(&mut moved, 1..=20);
    moved.set_power(5..9, 2.5).unwrap();
    moved.parameter_queue().push(NeuronSelection::Ids(3..9), NeuronField::Leak(0.75)).unwrap();
    plastic_run(&mut moved, 21..=21);
    moved.set_backend(Box::new(Cpu::with_threads(2))).unwrap();
    assert_eq!(plastic_run(&mut moved, 22..=40), rest);
}

#[test]
fn damaged_files_are_refused_before_they_take_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.burst");
    let mut simulation = simulation(Neurons::new(3), &[(0, 1, 1, 1, 0), (1, 2, 1, 1, 0)]);
    simulation.inject(&[(0, 1.0)]).unwrap();
    simulation.run(1).unwrap();
    simulation.save(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    let error = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        match Simulation::restore(&path, Box::new(Cpu::with_threads(1))) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(error(&good), "");
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    assert!(error(&changed(0, b"x")).contains("another kind of file"));
    assert!(error(&changed(8, &[9])).contains("version 9"));
    // Bitmaps of no neurons: 2^20 of them take no byte, so their number is refused before the checksum is read.
    let none = folder.path().join("none.burst");
    self::simulation(Neurons::new(0), &[]).save(&none).unwrap();
    let mut file = std::fs::read(&none).unwrap();
    // Behind the header, four counts, no removed neurons, the area `all`, a row pointer and the seed; the burst is followed by no spikes.
    let burst = 16 + 4 * 8 + 8 + (8 + 8 + 3) + 8 + 8;
    for at in [burst, burst + 16, burst + 24] {
        file[at..at + 8].copy_from_slice(&(1u64 << 20).to_le_bytes());
    }
    assert!(error(&file).contains("a window of 1048576 bursts; wanted at most 1024"), "{}", error(&file));
    // The counts of neurons and synapses.
    for count in [u64::MAX, 1 << 40, 1 << 20] {
        assert!(error(&changed(16, &count.to_le_bytes())).contains("bytes left"));
        assert!(error(&changed(24, &count.to_le_bytes())).contains("bytes left"));
    }
    // Every byte counts, every cut shows.
    for (at, byte) in good.iter().enumerate().skip(16) {
        assert_ne!(error(&changed(at, &[byte ^ 0x40])), "", "byte {at}");
    }
    for length in 0..good.len() {
        assert_ne!(error(&good[..length]), "", "{length} bytes");
    }
    assert_ne!(error(&[&good[..], &[0]].concat()), "");
    assert!(Simulation::restore(folder.path().join("none"), Box::new(Cpu::new())).is_err());
    assert!(simulation.save(folder.path().join("no/folder.burst")).is_err());
}

#[test]
fn files_with_a_valid_checksum_and_bad_rows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.burst");
    let mut simulation = simulation(Neurons::new(3), &[(0, 1, 1, 1, 0), (1, 2, 1, 1, 0)]);
    simulation.inject(&[(0, 1.0), (1, 1.0)]).unwrap();
    simulation.run(1).unwrap();
    simulation.save(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    // Behind the header, four counts, the neurons, none of them removed, and the area `all`.
    let rows = 16 + 4 * 8 + 3 * 44 + 8 + (8 + 8 + 3);
    let targets = rows + 4 * 8;
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(good[rows..targets], words(&[0, 1, 2, 2]));
    assert_eq!(good[targets..targets + 8], [1, 0, 0, 0, 2, 0, 0, 0]);
    // The weights; the seed, the burst and the number of spikes; the states; two spikes.
    let burst = targets + 8 + 4 + 8;
    let spikes = burst + 2 * 8 + 3 * 8;
    let ledger = spikes + 2 * 8;
    assert_eq!(good[burst..burst + 16], words(&[1, 2]));
    assert_eq!((good[spikes], good[spikes + 8]), (0, 1));
    let error = |at: usize, bytes: &[u8]| {
        let mut file = good[..good.len() - 32].to_vec();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        let checksum = sha2::Sha256::digest(&file);
        file.extend_from_slice(&checksum);
        std::fs::write(&path, file).unwrap();
        match Simulation::restore(&path, Box::new(Cpu::with_threads(1))) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(error(rows, &words(&[0, 1, 2, 2])), "", "the checksum is the writer's");
    for (at, bytes, wanted) in [
        (rows, words(&[0, 2, 1, 2]), "row 1 from 2 to 1"),
        (rows, words(&[0, 1, u64::MAX, 2]), "row 2 from 18446744073709551615 to 2"),
        (rows, words(&[1, 1, 2, 2]), "row pointers from Some(1)"),
        (rows, words(&[0, 1, 2, 3]), "to Some(3)"),
        (targets, vec![3, 0, 0, 0], "target 3 of source 0; wanted an id below 3"),
        (targets + 4, vec![0xff; 4], "target 2147483647 of source 1; wanted an id below 3"),
        (burst, words(&[u64::MAX]), "burst 18446744073709551615; wanted at most 9223372036854775808"),
        (spikes + 8, vec![0], "two spikes of neuron 0; wanted one spike of each neuron"),
        (spikes + 8, vec![3], "id 3; wanted an id below 3"),
        (ledger, words(&[1025, 0]), "a window of 1025 bursts; wanted at most 1024"),
        (ledger, words(&[1 << 40, 1 << 40]), "a window of 1099511627776 bursts; wanted at most 1024"),
        (ledger, words(&[1024, 2]), "a ledger of 2 bursts; wanted at most 1"),
        (16, words(&[1 << 40]), "bytes left"),
        (24, words(&[1 << 40]), "bytes left"),
    ] {
        let found = error(at, &bytes);
        assert!(found.contains(wanted), "'{found}' does not contain '{wanted}'");
    }
}

#[test]
fn a_runner_keeps_its_frequency_pauses_and_returns_the_simulation() {
    let (sender, received) = std::sync::mpsc::channel();
    let count = move |result: &BurstResult| sender.send(result.burst).unwrap();
    let mut simulation = simulation(Neurons::new(2), &[]);
    simulation.set_power(0..1, 1.0).unwrap();
    let begun = std::time::Instant::now();
    let runner = BurstRunner::start(simulation, Some(200.0), count).unwrap();
    for burst in 1..=5 {
        assert_eq!(received.recv().unwrap(), burst);
    }
    // Four periods of 5 ms lie between the first and the fifth burst.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(20));
    runner.pause().unwrap();
    let paused = runner.call(|simulation| simulation.totals().bursts).unwrap();
    assert_eq!(runner.call(|simulation| simulation.totals().bursts).unwrap(), paused);
    assert!(runner.set_frequency(Some(0.0)).is_err());
    assert!(runner.set_frequency(Some(f64::NAN)).is_err());
    runner.set_frequency(None).unwrap();
    runner.resume().unwrap();
    while received.recv().unwrap() < paused + 100 {}
    assert!(runner.statistics().bursts > paused);
    let mut stopped = runner.stop().unwrap();
    assert!(stopped.error.is_none());
    let burst = stopped.simulation.state().unwrap().burst;
    assert_eq!(stopped.simulation.run_burst().unwrap().burst, burst + 1);
}

#[test]
fn a_sampler_starts_anew_with_another_state() {
    let mut simulation = simulation(Neurons::new(2), &[]);
    let rest = simulation.state().unwrap();
    let sampler = simulation.add_sampler(0..2, 2).unwrap();
    simulation.set_power(0..1, 1.0).unwrap();
    simulation.run(9).unwrap();
    simulation.set_state(&rest).unwrap();
    assert_eq!(simulation.take_snapshot(sampler), None);
    simulation.set_power(0..1, 0.0).unwrap();
    simulation.set_power(1..2, 1.0).unwrap();
    simulation.run(2).unwrap();
    let snapshot = simulation.take_snapshot(sampler).unwrap();
    let ids: Vec<u32> = snapshot.fired.iter().map(|spike| spike.id).collect();
    assert_eq!((snapshot.burst, ids), (2, vec![1]));
}

#[test]
fn a_dropped_runner_stops() {
    let (sender, received) = std::sync::mpsc::channel();
    let report = move |_: &BurstResult| {
        let _ = sender.send(());
    };
    let runner = BurstRunner::start(simulation(Neurons::new(1), &[]), None, report).unwrap();
    received.recv().unwrap();
    drop(runner);
    while received.recv().is_ok() {}
}
