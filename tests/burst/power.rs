//! Power input by ranges and areas, and the spikes of an area in the ledger.

use std::sync::Arc;

use selvedge::burst::{Area, Cpu, Network, Neurons, Simulation, Synapses};

use super::cases::network;

fn simulation(neurons: Neurons) -> Simulation {
    Simulation::new(Arc::new(network(neurons, &[])), Box::new(Cpu::with_threads(2)), 0).unwrap()
}

#[test]
fn power_drives_a_range_in_every_burst_until_it_is_set_to_zero() {
    let mut simulation = simulation(Neurons::new(4));
    simulation.record_spikes(true);
    simulation.set_power(1..3, 1.0).unwrap();
    simulation.run(2).unwrap();
    simulation.set_power(1..3, 0.0).unwrap();
    simulation.run(2).unwrap();
    assert_eq!(simulation.spikes(), (&[1, 1, 2, 2][..], &[1, 2, 1, 2][..]));
    let totals = simulation.totals();
    assert_eq!((totals.bursts, totals.spikes, totals.counts.injections), (4, 4, 4));
    assert!(simulation.set_power(3..5, 1.0).is_err());
    assert!(simulation.set_power(0..1, f32::NAN).is_err());
}

/// Six neurons without leak that never fire: areas 0, 1, 1, 0, 1, 2.
fn areas() -> Simulation {
    let mut neurons = Neurons::new(6);
    neurons.area = vec![0, 1, 1, 0, 1, 2];
    neurons.leak.fill(0.0);
    neurons.threshold.fill(1000.0);
    let rows = Synapses::from_rows(vec![0; 7], vec![], vec![]).unwrap();
    let network = Network::with_areas(neurons, rows, ["a", "b", "c"].map(Area::new).to_vec()).unwrap();
    Simulation::new(Arc::new(network), Box::new(Cpu::with_threads(1)), 0).unwrap()
}

fn potentials(simulation: &mut Simulation) -> Vec<f32> {
    simulation.state().unwrap().neurons.iter().map(|neuron| neuron.potential).collect()
}

#[test]
fn an_area_has_power_and_overlapping_ranges_add_up() {
    let mut simulation = areas();
    let area = simulation.network().area("b").unwrap();
    simulation.set_area_power(area, 100.0).unwrap();
    simulation.set_area_power(area, 2.0).unwrap();
    simulation.set_power(2..4, 10.0).unwrap();
    simulation.run(1).unwrap();
    assert_eq!(potentials(&mut simulation), [0.0, 2.0, 12.0, 10.0, 2.0, 0.0]);
    // A file holds the ranges as they are.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("power.burst");
    simulation.save(&path).unwrap();
    let mut restored = Simulation::restore(&path, Box::new(Cpu::with_threads(1))).unwrap();
    for simulation in [&mut simulation, &mut restored] {
        simulation.run(1).unwrap();
        assert_eq!(potentials(simulation), [0.0, 4.0, 24.0, 20.0, 4.0, 0.0]);
        simulation.set_area_power(area, 0.0).unwrap();
        simulation.run(1).unwrap();
        assert_eq!(potentials(simulation), [0.0, 4.0, 34.0, 30.0, 4.0, 0.0]);
    }
    let error = simulation.set_area_power(3, 1.0).unwrap_err().to_string();
    assert!(error.contains("area 3; wanted an area below 3"), "{error}");
    assert!(simulation.set_area_power(0, f32::NAN).is_err());
}

#[test]
fn the_ledger_answers_for_an_area() {
    let mut simulation = areas();
    let error = simulation.fired_in_area(1, 1).unwrap_err().to_string();
    assert!(error.contains("no ledger"), "{error}");
    simulation.keep_ledger(2).unwrap();
    for ids in [&[0, 1, 4][..], &[], &[2, 5]] {
        let input: Vec<(u32, f32)> = ids.iter().map(|&id| (id, 1000.0)).collect();
        simulation.inject(&input).unwrap();
        simulation.run(1).unwrap();
        if ids.len() == 3 {
            assert_eq!(simulation.fired_in_area(1, 1).unwrap(), [1, 4]);
        }
    }
    assert!(simulation.fired_in_area(0, 3).unwrap().is_empty());
    assert_eq!(simulation.fired_in_area(1, 3).unwrap(), [2]);
    assert_eq!(simulation.fired_in_area(2, 3).unwrap(), [5]);
    assert!(simulation.fired_in_area(1, 2).unwrap().is_empty());
    for (area, burst, wanted) in [(3, 3, "area 3"), (0, 1, "burst 1"), (0, 4, "burst 4")] {
        let error = simulation.fired_in_area(area, burst).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}
