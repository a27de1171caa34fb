//! Expected free energy, the choice of a policy, and roll-outs.

use selvedge::catalogue::*;
use selvedge::tensor::Generator;
use selvedge::types::DType;
use selvedge::{Device, Tensor};

use crate::cases;
use crate::common::*;

#[test]
fn the_three_policies_have_the_golden_numbers() {
    cases::the_three_policies_have_the_golden_numbers(&Device::cpu());
}

#[test]
fn sampled_policies_follow_the_probabilities_and_the_seed() {
    let energies = vector(&[-0.4831f32, -0.7094, 1.9946]);
    let draw = |seed| {
        let generator = Generator::new(seed);
        (0..300).map(|_| sample_policy(&energies, 1.0, &generator).unwrap()).collect::<Vec<_>>()
    };
    let draws = draw(7);
    assert_eq!(draws, draw(7));
    assert_ne!(draws, draw(8));
    for (policy, share) in [(0, 0.4277), (1, 0.5364), (2, 0.0359)] {
        let found = draws.iter().filter(|drawn| **drawn == policy).count() as f64 / 300.0;
        // Five standard deviations of 300 draws.
        let bound = 5.0 * (share * (1.0f64 - share) / 300.0).sqrt();
        assert!((found - share).abs() < bound, "policy {policy}: {found} instead of {share}");
    }
    let generator = Generator::new(1);
    assert!((0..50).all(|_| sample_policy(&energies, 1e6, &generator).unwrap() == 1));
    assert_close(&numbers(&policy_probabilities(&energies, 0.0).unwrap()), &[1.0 / 3.0; 3], 1e-6);
}

#[test]
fn energies_sum_over_the_horizon_and_all_cells() {
    // The sizes of the specification, and lengths around a block.
    for (steps, observations, states) in [
        (3, 100, 900),
        (1, 1, 255),
        (1, 256, 1),
        (1, 257, 257),
        (1, 1, 1),
        (1, 255, 256),
        (255, 1, 1),
        (257, 2, 1),
    ] {
        let policies = 5;
        let of = |cells: usize, seed| -> Vec<f64> {
            uniform(policies * steps * cells, seed).iter().map(|x| x + 0.1).collect()
        };
        let (o, variances) = (of(observations, 1), of(observations, 2));
        let (before, after) = (of(states, 3), of(states, 4));
        let preferred = uniform(observations, 5);
        let shaped = |list: &[f64], cells: usize| tensor(list, &[policies, steps, cells]);
        let predictions = PolicyPredictions {
            observations: shaped(&o, observations),
            variances: shaped(&variances, observations),
            prior_variances: shaped(&before, states),
            posterior_variances: shaped(&after, states),
        };
        let found = expected_free_energy(&predictions, &vector(&preferred)).unwrap();
        let wanted: Vec<f64> = (0..policies)
            .map(|policy| {
                let row = |cells: usize| policy * steps * cells..(policy + 1) * steps * cells;
                let risk: f64 = o[row(observations)]
                    .iter()
                    .zip(preferred.iter().cycle())
                    .map(|(x, y)| (x - y) * (x - y))
                    .sum();
                let ambiguity: f64 = variances[row(observations)].iter().sum();
                let logs = before[row(states)].iter().zip(&after[row(states)]);
                risk + ambiguity - 0.5 * logs.map(|(x, y)| x.ln() - y.ln()).sum::<f64>()
            })
            .collect();
        assert_close(&numbers(&found.total), &wanted, 1e-12);
    }
}

#[test]
fn the_first_of_equal_policies_is_chosen() {
    assert_eq!(choose_policy(&vector(&[2.0f32, 1.0, 1.0])).unwrap(), 1);
    assert_invalid(choose_policy(&vector(&[2.0f32, f32::NAN])), &["not finite"]);
    assert_invalid(choose_policy(&vector(&[f64::NEG_INFINITY])), &["not finite"]);
    assert_invalid(choose_policy(&vector::<f32>(&[])), &["[0]"]);
    assert_invalid(choose_policy(&tensor(&[1.0], &[1, 1])), &["[1, 1]"]);
    assert_invalid(sample_policy(&vector(&[1.0]), -1.0, &Generator::new(1)), &["gamma = -1"]);
    assert_dtype_error(choose_policy(&vector(&[1i32])));
    let golden = cases::three_policies(&Device::cpu());
    let wrong = PolicyPredictions { variances: vector(&[1.0, 1.0, 1.0]), ..golden.clone() };
    assert_invalid(expected_free_energy(&wrong, &vector(&[1.0, 0.0])), &["variances of [3]"]);
    let wrong = PolicyPredictions { prior_variances: tensor(&[1.0; 4], &[2, 2]), ..golden.clone() };
    assert_invalid(expected_free_energy(&wrong, &vector(&[1.0, 0.0])), &["prior variances of shape [2, 2]"]);
    assert!(expected_free_energy(&golden, &vector(&[1.0, 0.0, 0.0])).is_err());
    assert_dtype_error(expected_free_energy(&golden, &vector(&[1.0f32, 0.0])));
}

#[test]
fn roll_outs_of_any_size_follow_the_definition() {
    for n in [1, 255, 256, 257] {
        for (states, observations, policies, steps) in
            [(n, 2, 2, 2), (2, n, 2, 2), (2, 2, n, 2), (2, 2, 2, n)]
        {
            let scaled = |count: usize, seed| -> Vec<f64> {
                uniform(count, seed).iter().map(|x| (2.0 * x - 1.0) / states as f64).collect()
            };
            let (transition, map) = (scaled(states * states, 1), scaled(observations * states, 2));
            let model = LinearGaussianModel::new(
                &tensor(&transition, &[states, states]),
                &tensor(&map, &[observations, states]),
                0.1,
            );
            let model = model.unwrap();
            let (mut mean, mut variance) = (vec![uniform(states, 3); policies], uniform(states, 4));
            let controls = uniform(policies * steps * states, 5);
            let rollout = model.roll_out(
                &vector(&mean[0]),
                &vector(&variance),
                &tensor(&controls, &[policies, steps, states]),
            );
            let rollout = rollout.unwrap();
            let noise = 0.25;
            let predictions = model.predict(&rollout, &vector(&vec![noise; observations])).unwrap();
            let product = |matrix: &[f64], rows: usize, x: &[f64], power: i32| -> Vec<f64> {
                let row = |i: usize| (0..states).map(|j| matrix[i * states + j].powi(power) * x[j]).sum();
                (0..rows).map(row).collect()
            };
            let (mut means, mut seen) = (vec![Vec::new(); policies], vec![Vec::new(); policies]);
            let (mut variances, mut seen_variances) = (Vec::new(), Vec::new());
            for step in 0..steps {
                variance = product(&transition, states, &variance, 2).iter().map(|x| x + 0.1).collect();
                variances.extend_from_slice(&variance);
                let of_row = product(&map, observations, &variance, 2);
                seen_variances.extend(of_row.iter().map(|x| x + noise));
                for policy in 0..policies {
                    let control = &controls[(policy * steps + step) * states..][..states];
                    let next = product(&transition, states, &mean[policy], 1);
                    mean[policy] = next.iter().zip(control).map(|(x, u)| x + u).collect();
                    seen[policy].extend(product(&map, observations, &mean[policy], 1));
                    means[policy].extend_from_slice(&mean[policy]);
                }
            }
            assert_close(&numbers(&rollout.means), &means.concat(), 1e-12);
            assert_close(&numbers(&rollout.variances), &variances, 1e-12);
            assert_close(&numbers(&predictions.observations), &seen.concat(), 1e-12);
            let found = numbers(&predictions.variances);
            assert_close(&found, &seen_variances.repeat(found.len() / seen_variances.len()), 1e-12);
        }
    }
}

/// Two states with a rotation, and one observation.
fn model(process_noise: f64) -> LinearGaussianModel {
    let transition = tensor(&[0.0, -1.0, 0.5, 0.0], &[2, 2]);
    LinearGaussianModel::new(&transition, &tensor(&[1.0, 2.0], &[1, 2]), process_noise).unwrap()
}

#[test]
fn roll_outs_propagate_means_and_variances() {
    let controls = tensor(&[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0], &[2, 2, 2]);
    let rollout = model(0.1).roll_out(&vector(&[1.0, 2.0]), &vector(&[1.0, 4.0]), &controls).unwrap();
    assert_close(&numbers(&rollout.means), &[-2.0, 0.5, -0.5, -1.0, -1.0, 0.5, -0.5, 0.5], 1e-15);
    assert_close(&numbers(&rollout.variances), &[4.1, 0.35, 0.45, 1.125], 1e-15);
    let shared = model(0.1).predict(&rollout, &vector(&[0.5])).unwrap();
    assert_close(&numbers(&shared.observations), &[-1.0, -2.5, 0.0, 0.5], 1e-15);
    assert_close(&numbers(&shared.variances), &[6.0, 5.45, 6.0, 5.45], 1e-14);
    let after = |variance: f64, square: f64, noise: f64| 1.0 / (1.0 / variance + square / noise);
    let row = [after(4.1, 1.0, 0.5), after(0.35, 4.0, 0.5), after(0.45, 1.0, 0.5), after(1.125, 4.0, 0.5)];
    assert_close(&numbers(&shared.posterior_variances), &[row, row].concat(), 1e-14);
    // A policy that looks more closely is less ambiguous and learns more.
    let own = tensor(&[0.5, 0.5, 0.1, 0.1], &[2, 2, 1]);
    let predictions = model(0.1).predict(&rollout, &own).unwrap();
    let energy = expected_free_energy(&predictions, &vector(&[0.0])).unwrap();
    let (ambiguity, novelty) = (numbers(&energy.ambiguity), numbers(&energy.novelty));
    assert!(ambiguity[1] < ambiguity[0] && novelty[1] > novelty[0] && novelty[0] > 0.0);
}

#[test]
fn random_roll_outs_have_the_predicted_moments() {
    let policies = 8000;
    let controls = Tensor::zeros(&[policies, 2, 2], DType::F64, &selvedge::Device::cpu()).unwrap();
    let start = vector(&[1.0, 2.0]);
    let sample = |seed| model(0.1).sample(&start, &controls, &Generator::new(seed)).unwrap();
    let states = sample(3);
    assert!(states.equal(&sample(3)).unwrap() && !states.equal(&sample(4)).unwrap());
    let (variance, mean) = states.var_mean(0, 0).unwrap();
    assert_close(&numbers(&mean), &[-2.0, 0.5, -0.5, -1.0], 0.03);
    assert_close(&numbers(&variance), &[0.1, 0.1, 0.2, 0.125], 0.02);
    let exact = model(0.0).sample(&start, &controls, &Generator::new(1)).unwrap();
    assert_eq!(numbers(&exact)[..4], [-2.0, 0.5, -0.5, -1.0]);
}

#[test]
fn wrong_roll_outs_are_errors() {
    let (square, wide) = (tensor(&[1.0; 4], &[2, 2]), tensor(&[1.0; 6], &[2, 3]));
    assert_invalid(LinearGaussianModel::new(&wide, &square, 0.0), &["[2, 3]"]);
    assert_invalid(LinearGaussianModel::new(&square, &wide, 0.0), &["[2, 3]"]);
    assert_invalid(LinearGaussianModel::new(&square, &square, -1.0), &["process_noise = -1"]);
    let (mean, controls) = (vector(&[0.0, 0.0]), tensor(&[0.0; 4], &[1, 2, 2]));
    assert_invalid(model(0.0).roll_out(&vector(&[0.0]), &mean, &controls), &["mean of shape [1]"]);
    assert_invalid(model(0.0).roll_out(&mean, &vector(&[0.0]), &controls), &["variance of shape [1]"]);
    assert_invalid(model(0.0).roll_out(&mean, &mean, &square), &["controls of shape [2, 2]"]);
    let rollout = model(0.0).roll_out(&mean, &mean, &controls).unwrap();
    assert_invalid(model(0.0).predict(&rollout, &mean), &["observation_noise", "[1, 2, 1]"]);
    assert_dtype_error(model(0.0).predict(&rollout, &vector(&[1.0f32])));
}
