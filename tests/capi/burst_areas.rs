//! Areas, the places of neurons in them, spikes by area, and parameters that are read back.

use selvedge::capi::burst::area::*;
use selvedge::capi::burst::runner::*;

use super::*;

/// Three neurons in two areas, each with a spike by its power input.
fn network() -> u64 {
    let areas = [
        sv_area { name: c"first".as_ptr(), shares: 0, potential_driven: 1 },
        sv_area { name: c"second".as_ptr(), shares: 1, potential_driven: 0 },
    ];
    let (area, kind) = ([1, 0, 1], [0, 1, 0]);
    let (position, leak, limit) = ([1, 2, 3, 4, 5, 6, 7, 8, 9], [0.5, 0.25, 0.0], [0, 3, 7]);
    create(&sv_network_arrays {
        neurons: 3,
        leak: leak.as_ptr(),
        fire_limit: limit.as_ptr(),
        neuron_kind: kind.as_ptr(),
        area: area.as_ptr(),
        position: position.as_ptr(),
        area_count: 2,
        areas: areas.as_ptr(),
        ..ARRAYS
    })
}

#[test]
fn spikes_come_by_area_with_the_places_of_their_neurons() {
    let network = network();
    let simulation = simulate(network, &OPTIONS);
    let (mut areas, mut ids, mut potentials, mut positions) = ([9; 4], [9; 4], [9.0; 4], [9; 12]);
    let mut queue = |capacity| {
        let mut count = 9;
        let (first, second) = (areas.as_mut_ptr(), ids.as_mut_ptr());
        let (third, fourth) = (potentials.as_mut_ptr(), positions.as_mut_ptr());
        // SAFETY: the arrays have 4 elements, and the positions 12.
        check(unsafe {
            sv_simulation_fire_queue(simulation, first, second, third, fourth, capacity, &mut count)
        });
        (count, areas, ids, potentials, positions)
    };
    // There is no burst yet.
    assert_eq!(queue(4), (0, [9; 4], [9; 4], [9.0; 4], [9; 12]));
    inject(simulation, &[(0, 2.0), (1, 3.0), (2, 4.0)]);
    check(sv_simulation_run(simulation, 1));
    let place = [4, 5, 6, 9, 9, 9, 9, 9, 9, 9, 9, 9];
    assert_eq!(queue(1), (3, [0, 9, 9, 9], [1, 9, 9, 9], [3.0, 9.0, 9.0, 9.0], place));
    let places = [4, 5, 6, 1, 2, 3, 7, 8, 9, 9, 9, 9];
    assert_eq!(queue(4), (3, [0, 1, 1, 9], [1, 0, 2, 9], [3.0, 2.0, 4.0, 9.0], places));
    // A runner that has the simulation answers between two bursts. Its pause has begun once a later call was served.
    // SAFETY: there is no callback.
    check(unsafe { sv_simulation_start(simulation, 0.001, None, null_mut()) });
    check(sv_simulation_pause(simulation));
    let bursts = totals(simulation).bursts;
    assert_eq!(queue(4).0, if bursts == 1 { 3 } else { 0 });
    check(sv_simulation_stop(simulation));
    check(sv_release(simulation));
    check(sv_release(network));
}

#[test]
fn a_network_tells_its_areas_also_from_a_file() {
    let written = network();
    let file = TemporaryFile::new("areas.burst");
    // SAFETY: the pointers are to locals.
    let read = unsafe {
        check(sv_network_write(written, file.as_ptr()));
        ok(|result| sv_network_read(file.as_ptr(), result))
    };
    let (mut count, mut shares, mut driven, mut name, mut length) = (0, 9, 9, [0u8; 8], 0);
    // SAFETY: the pointers are to locals; the arrays have the given lengths.
    unsafe {
        check(sv_network_area_count(read, &mut count));
        assert_eq!(count, 2);
        for (area, wanted) in [(0, (0, 1, b"first\0\0\0")), (1, (1, 0, b"second\0\0"))] {
            let text = name.as_mut_ptr().cast();
            check(sv_network_area(read, area, &mut shares, &mut driven, text, 8, &mut length));
            assert_eq!((shares, driven, &name), wanted);
        }
        let status = sv_network_area(read, 2, &mut shares, &mut driven, null_mut(), 0, &mut length);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "area: found 2; wanted an index below 2");
        let (mut areas, mut kinds, mut positions) = ([9; 3], [9; 3], [9; 9]);
        let (first, second, third) = (areas.as_mut_ptr(), kinds.as_mut_ptr(), positions.as_mut_ptr());
        check(sv_network_places(read, first, second, third, 3));
        fails(sv_network_places(read, first, second, third, 2), SV_ERROR_LENGTH_MISMATCH, "neurons: found 2");
        assert_eq!((areas, kinds, positions), ([1, 0, 1], [0, 1, 0], [1, 2, 3, 4, 5, 6, 7, 8, 9]));
    }
    check(sv_release(read));
    check(sv_release(written));
}

#[test]
fn parameters_are_read_back_once_their_changes_apply() {
    let network = network();
    let simulation = simulate(network, &OPTIONS);
    let values = |field| {
        let mut values = [9.0; 3];
        // SAFETY: the array has three elements.
        check(unsafe { sv_simulation_parameter(simulation, field, values.as_mut_ptr(), 3) });
        values
    };
    for (field, before, value, after) in [
        (SV_NEURON_THRESHOLD, [1.0; 3], 2.5, [1.0, 2.5, 2.5]),
        (SV_NEURON_THRESHOLD_MAX, [f64::INFINITY; 3], 8.0, [f64::INFINITY, 8.0, 8.0]),
        (SV_NEURON_LEAK, [0.5, 0.25, 0.0], 0.125, [0.5, 0.125, 0.125]),
        (SV_NEURON_REST, [0.0; 3], -1.0, [0.0, -1.0, -1.0]),
        (SV_NEURON_REFRACTORY, [0.0; 3], 2.0, [0.0, 2.0, 2.0]),
        (SV_NEURON_EXCITABILITY, [1.0; 3], 0.5, [1.0, 0.5, 0.5]),
        (SV_NEURON_FIRE_LIMIT, [0.0, 3.0, 7.0], 5.0, [0.0, 5.0, 5.0]),
        (SV_NEURON_SNOOZE, [0.0; 3], 4.0, [0.0, 4.0, 4.0]),
        (SV_NEURON_ACCUMULATES, [1.0; 3], 0.0, [1.0, 0.0, 0.0]),
    ] {
        assert_eq!(values(field), before, "field {field}");
        check(sv_simulation_set_parameter(simulation, field, 1, 3, value));
        assert_eq!(values(field), before, "field {field} is queued");
        check(sv_simulation_run(simulation, 1));
        assert_eq!(values(field), after, "field {field}");
    }
    let mut values = [0.0; 3];
    // SAFETY: the array has three elements.
    unsafe {
        let status = sv_simulation_parameter(simulation, 99, values.as_mut_ptr(), 3);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "field: found 99");
        let status = sv_simulation_parameter(simulation, SV_NEURON_LEAK, values.as_mut_ptr(), 2);
        fails(status, SV_ERROR_LENGTH_MISMATCH, "neurons: found 2; wanted 3");
    }
    check(sv_release(simulation));
    check(sv_release(network));
}

#[test]
fn an_area_has_a_name_power_and_spikes_in_the_ledger() {
    let network = network();
    let simulation = simulate(network, &OPTIONS);
    let (mut ids, mut count) = ([9; 3], 9);
    // SAFETY: the pointers are to locals; the arrays have the given lengths.
    unsafe {
        let mut area = 9;
        check(sv_network_find_area(network, c"second".as_ptr(), &mut area));
        assert_eq!(area, 1);
        let mut other = 9;
        let status = sv_network_find_area(network, c"third".as_ptr(), &mut other);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "name: found third; wanted the name of an area");
        check(sv_simulation_keep_ledger(simulation, 4));
        check(sv_simulation_set_area_power(simulation, area, 2.0));
        inject(simulation, &[(1, 2.0)]);
        check(sv_simulation_run(simulation, 1));
        check(sv_simulation_area_fired(simulation, area, 1, ids.as_mut_ptr(), 3, &mut count));
        assert_eq!((count, ids), (2, [0, 2, 9]));
        check(sv_simulation_area_fired(simulation, 0, 1, ids.as_mut_ptr(), 3, &mut count));
        assert_eq!((count, ids[0]), (1, 1));
        let status = sv_simulation_area_fired(simulation, 2, 1, ids.as_mut_ptr(), 3, &mut count);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "area 2");
        fails(sv_simulation_set_area_power(simulation, 2, 1.0), SV_ERROR_INVALID_ARGUMENT, "area 2");
    }
    check(sv_release(simulation));
    check(sv_release(network));
}

#[test]
fn weights_of_a_simulation_can_be_set() {
    let (source, target, weight, psp) = ([0, 1, 1], [1, 0, 2], [10, 20, 30], [1, 2, 3]);
    let network = create(&sv_network_arrays {
        neurons: 3,
        synapses: 3,
        source: source.as_ptr(),
        target: target.as_ptr(),
        weight: weight.as_ptr(),
        psp: psp.as_ptr(),
        ..ARRAYS
    });
    let simulation = simulate(network, &OPTIONS);
    let mut found = [0; 3];
    // SAFETY: the arrays have the given lengths.
    unsafe {
        check(sv_simulation_set_weights(simulation, [2, 0, 2].as_ptr(), [7, 255, 8].as_ptr(), 3));
        let status = sv_simulation_set_weights(simulation, [1, 3].as_ptr(), [0, 0].as_ptr(), 2);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "synapse 3; wanted a synapse below 3");
        check(sv_simulation_weights(simulation, found.as_mut_ptr(), 3));
    }
    assert_eq!(found, [255 | 1 << 8, 20 | 2 << 8, 8 | 3 << 8]);
    check(sv_release(simulation));
    check(sv_release(network));
}
