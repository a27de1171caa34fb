//! Leaky integration, reservoirs, and spike-timing-dependent plasticity.

use selvedge::catalogue::{StdpParameters, leaky_integrate_fire, reservoir_update, stdp_update};
use selvedge::types::DType;

use crate::common::*;

#[test]
fn states_and_spikes_are_those_of_the_definition_at_any_length() {
    for n in [1, 255, 256, 257] {
        let (state, input) = (uniform(n, 1), uniform(n, 2));
        let wanted: Vec<f64> = state.iter().zip(&input).map(|(s, u)| (0.7 * s + u).tanh()).collect();
        for (dtype, tolerance) in FLOATS {
            let [s, u] = [&state, &input].map(|list| vector(list).cast(dtype).unwrap());
            let next = reservoir_update(&s, &u, 0.3).unwrap();
            assert_eq!(next.dtype(), dtype);
            assert_close(&numbers(&next), &wanted, tolerance);
            let (after, spikes) = leaky_integrate_fire(&s, &u, 0.3, 0.6).unwrap();
            let (after, before, spikes) = (numbers(&after), numbers(&next), spikes.to_vec::<bool>().unwrap());
            for i in 0..n {
                assert_eq!(after[i], if spikes[i] { 0.0 } else { before[i] });
                let is_near = (wanted[i] - 0.6).abs() <= tolerance;
                assert!(
                    is_near || spikes[i] == (wanted[i] > 0.6),
                    "{dtype}: {} spikes: {}",
                    wanted[i],
                    spikes[i]
                );
            }
        }
    }
}

#[test]
fn a_state_at_the_threshold_does_not_spike() {
    let (state, spikes) = leaky_integrate_fire(&vector(&[0.0f32]), &vector(&[0.0f32]), 0.5, 0.0).unwrap();
    assert_eq!((numbers(&state), spikes.to_vec::<bool>().unwrap()), (vec![0.0], vec![false]));
}

#[test]
fn plasticity_changes_the_weights_between_neurons_that_both_spiked() {
    let parameters = StdpParameters { learning_rate: 0.5, tau: 2.0 };
    let weights = tensor(&[0.1, 0.9, 0.3, 0.4, -0.9, 0.6], &[2, 3]);
    let bools = |list: &[u8]| vector(list).cast(DType::Bool).unwrap();
    let (pre, post) = (bools(&[1, 1, 0]), bools(&[1, 1]));
    // The third presynaptic neuron did not spike and has no time.
    let (pre_times, post_times) = (vector(&[1.0, 3.0, f64::NAN]), vector(&[3.0, 1.0]));
    let next = stdp_update(&weights, [&pre, &post], [&pre_times, &post_times], parameters).unwrap();
    let change = 0.5 * (-1.0f64).exp();
    assert_close(&numbers(&next), &[0.1 + change, 0.9, 0.3, 0.4, -1.0, 0.6], 1e-15);

    let silent = bools(&[0, 0]);
    let same = stdp_update(&weights, [&pre, &silent], [&pre_times, &post_times], parameters).unwrap();
    assert_eq!(numbers(&same), numbers(&weights));
}

#[test]
fn plasticity_is_that_of_the_definition_at_any_number_of_neurons() {
    for n in [1, 255, 256, 257] {
        // More neurons after the synapses than before them, and one of either.
        for (rows, columns) in [(n, n.min(3)), (n.min(3), n)] {
            let weights: Vec<f64> = uniform(rows * columns, 1).iter().map(|x| 2.0 * x - 1.0).collect();
            let [pre, post] = [(columns, 2), (rows, 3)].map(|(count, seed)| uniform(count, seed));
            let [pre_times, post_times] = [(columns, 4), (rows, 5)].map(|(count, seed)| uniform(count, seed));
            let change = |i: usize, j: usize| -> f64 {
                let apart = post_times[i] - pre_times[j];
                match pre[j] < 0.7 && post[i] < 0.7 {
                    true if apart > 0.0 => 0.3 * (-apart / 0.5).exp(),
                    true if apart < 0.0 => -0.3 * (apart / 0.5).exp(),
                    _ => 0.0,
                }
            };
            let wanted: Vec<f64> = (0..rows * columns)
                .map(|at| (weights[at] + change(at / columns, at % columns)).clamp(-1.0, 1.0))
                .collect();
            let spikes = |numbers: &[f64]| {
                let list: Vec<u8> = numbers.iter().map(|x| u8::from(*x < 0.7)).collect();
                vector(&list).cast(DType::Bool).unwrap()
            };
            let parameters = StdpParameters { learning_rate: 0.3, tau: 0.5 };
            let next = stdp_update(
                &tensor(&weights, &[rows, columns]),
                [&spikes(&pre), &spikes(&post)],
                [&vector(&pre_times), &vector(&post_times)],
                parameters,
            );
            assert_close(&numbers(&next.unwrap()), &wanted, 1e-13);
        }
    }
}

#[test]
fn wrong_neurons_are_errors() {
    let (long, short) = (vector(&[0.0, 1.0, 2.0]), vector(&[0.0, 1.0]));
    assert_invalid(reservoir_update(&long, &short, 0.1), &["input of shape [2]", "[3]"]);
    assert_invalid(leaky_integrate_fire(&long, &long, f64::NAN, 0.5), &["leak"]);
    assert_invalid(leaky_integrate_fire(&long, &long, 0.1, f64::NAN), &["threshold"]);
    assert_dtype_error(reservoir_update(&long, &long.cast(DType::F32).unwrap(), 0.1));
    let spikes = [3, 2].map(|count| vector(&vec![1u8; count]).cast(DType::Bool).unwrap());
    let update = |weights: &selvedge::Tensor, spikes: [&selvedge::Tensor; 2], tau| {
        stdp_update(weights, spikes, [&long, &short], StdpParameters { learning_rate: 0.1, tau })
    };
    let weights = tensor(&[0.0; 6], &[2, 3]);
    let [pre, post] = &spikes;
    assert!(update(&weights, [pre, post], 1.0).is_ok());
    assert_invalid(update(&weights, [post, post], 1.0), &["presynaptic spikes of shape [2]", "[3]"]);
    assert_invalid(update(&weights, [pre, post], 0.0), &["tau = 0"]);
    assert_invalid(update(&long, [pre, post], 1.0), &["a matrix"]);
    assert_dtype_error(update(&weights, [&long, post], 1.0));
}
