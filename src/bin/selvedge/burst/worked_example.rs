//! The worked example of the burst specification: five neurons, twelve bursts, every number of each.

use std::sync::Arc;

use selvedge::burst::{Backend, Injection, Network, Neurons, SynapseArrays};

/// Injections, spikes, events, candidates; potentials, refractory countdowns and fire counts after the burst.
type Row = (&'static [(u32, f32)], &'static [(u32, f32)], u64, u64, [f32; 5], [u16; 5], [u16; 5]);

const DRIVE: &[(u32, f32)] = &[(0, 2.0)];

#[rustfmt::skip]
const ROWS: [Row; 12] = [
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

fn network() -> selvedge::Result<Network> {
    let mut neurons = Neurons::new(5);
    neurons.threshold = vec![1.0, 100.0, 50.0, 60.0, 70.0];
    neurons.threshold_max[4] = 150.0;
    neurons.leak = vec![0.0, 0.5, 0.0, 0.0, 0.25];
    neurons.rest[1] = 10.0;
    neurons.refractory[2] = 1;
    neurons.excitability[4] = 0.5;
    (neurons.fire_limit[2], neurons.snooze[2]) = (2, 2);
    (neurons.accumulates[3], neurons.accumulates[4]) = (false, false);
    let synapses = SynapseArrays {
        source: &[0, 0, 0, 1, 2, 3],
        target: &[1, 2, 3, 4, 3, 4],
        weight: &[6, 6, 6, 10, 6, 8],
        psp: &[10; 6],
        kind: &[0, 0, 0, 0, 1, 0],
    };
    Network::from_arrays(neurons, &synapses)
}

/// Runs the example and returns the first difference, if there is one.
pub fn check(backend: &mut dyn Backend) -> selvedge::Result<Option<String>> {
    backend.load(&Arc::new(network()?), 0)?;
    for (burst, (inputs, fired, events, candidates, potentials, left, counts)) in (1u64..).zip(&ROWS) {
        let injections: selvedge::Result<Vec<Injection>> =
            inputs.iter().map(|&(id, potential)| Injection::new(id, potential)).collect();
        backend.inject(&injections?)?;
        let result = backend.run_burst()?;
        let state = backend.state()?;
        let spikes: Vec<(u32, f32)> = result.fired.iter().map(|spike| (spike.id, spike.potential)).collect();
        let found = (
            result.burst,
            spikes,
            result.counts.events,
            result.counts.candidates,
            state.neurons.iter().map(|neuron| neuron.potential).collect::<Vec<_>>(),
            state.neurons.iter().map(|neuron| neuron.refractory_left).collect::<Vec<_>>(),
            state.neurons.iter().map(|neuron| neuron.fire_count).collect::<Vec<_>>(),
        );
        let wanted = (
            burst,
            fired.to_vec(),
            *events,
            *candidates,
            potentials.to_vec(),
            left.to_vec(),
            counts.to_vec(),
        );
        if found != wanted {
            return Ok(Some(format!(
                "burst {burst}: found {found:?}; wanted {wanted:?} (burst, spikes, events, candidates, potentials, \
                 countdowns, fire counts)"
            )));
        }
    }
    Ok(None)
}
