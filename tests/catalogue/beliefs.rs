//! Continuous inference.

use selvedge::catalogue::{GaussianModel, InferenceOptions, gaussian_accuracy, gaussian_kl_divergence};
use selvedge::types::DType;
use selvedge::{Device, Tensor};

use crate::cases;
use crate::common::*;

#[test]
fn the_one_dimensional_model_has_the_golden_numbers() {
    cases::the_one_dimensional_model_has_the_golden_numbers(&Device::cpu());
}

#[test]
fn the_free_energy_of_a_belief_is_that_of_the_definition() {
    let (model, o) = cases::one_dimension(DType::F64, &Device::cpu());
    // The defaults stop at 1e-4.
    let inference = model.infer(&o, &vector(&[0.0]), InferenceOptions::default()).unwrap();
    assert!(inference.converged && inference.iterations <= 100, "{inference:?}");
    assert_close(&numbers(&inference.mean), &[2.411764706], 1e-3);
    let energy = |mean: f64| number(&model.free_energy(&vector(&[mean]), &o).unwrap());
    let at = |u: f64| {
        let error = 5.0 - 2.0 * u;
        0.5 * (4.0 * error * error - 4f64.ln() + std::f64::consts::TAU.ln()) + 0.5 * (u - 1.0) * (u - 1.0)
    };
    assert_close(&[energy(0.0), energy(2.4)], &[at(0.0), at(2.4)], 1e-13);
}

#[test]
fn divergence_and_accuracy_are_those_of_the_definition() {
    for n in LENGTHS {
        let errors = uniform(n, 1);
        let precision: Vec<f64> = uniform(n, 2).iter().map(|x| x + 0.5).collect();
        let terms = errors.iter().zip(&precision);
        let wanted: f64 = terms.map(|(e, p)| -0.5 * (p * e * e + (std::f64::consts::TAU / p).ln())).sum();
        let found = gaussian_accuracy(&vector(&errors), &vector(&precision)).unwrap();
        assert_close(&[number(&found)], &[wanted], 1e-12);
        let rows = [&errors, &precision].map(|list| tensor(&[&list[..], &list[..]].concat(), &[2, n]));
        let means = vector(&uniform(n, 3));
        let kl = gaussian_kl_divergence([&rows[0], &rows[1]], [&means, &vector(&precision)]).unwrap();
        let means = numbers(&means);
        let wanted: f64 =
            (0..n).map(|i| 0.5 * (errors[i] - means[i]) * (errors[i] - means[i]) / precision[i]).sum();
        assert_close(&numbers(&kl), &[wanted; 2], 1e-12);
    }
}

#[test]
fn descent_lowers_the_free_energy_to_the_fixed_point() {
    let (observations, states) = (7, 5);
    let positive = |count, seed| vector(&uniform(count, seed).iter().map(|x| x + 0.5).collect::<Vec<_>>());
    let jacobian: Vec<f64> = uniform(observations * states, 1).iter().map(|x| 2.0 * x - 1.0).collect();
    let jacobian = tensor(&jacobian, &[observations, states]);
    let (prior, o) = (vector(&uniform(states, 2)), vector(&uniform(observations, 3)));
    let model =
        GaussianModel::new(&jacobian, &positive(observations, 4), &prior, &positive(states, 5)).unwrap();
    let fixed = model.fixed_point(&o).unwrap();
    assert!(numbers(&model.gradient(&fixed, &o).unwrap()).iter().all(|g| g.abs() < 1e-13));
    let options = InferenceOptions { rate: 0.05, tolerance: 1e-12, iterations: 10_000 };
    let found = model.infer(&o, &prior, options).unwrap();
    assert!(found.converged);
    assert_close(&numbers(&found.mean), &numbers(&fixed), 1e-10);
    let mut mean = vector(&[3.0; 5]);
    let mut before = f64::INFINITY;
    for _ in 0..50 {
        let energy = number(&model.free_energy(&mean, &o).unwrap());
        assert!(energy <= before, "{energy} after {before}");
        before = energy;
        mean = mean.add(&model.gradient(&mean, &o).unwrap().mul(0.05).unwrap()).unwrap();
    }
    assert!(before >= number(&model.free_energy(&fixed, &o).unwrap()));
    // The gradient is that of the free energy, by central differences.
    let gradient = numbers(&model.gradient(&prior, &o).unwrap());
    for (at, gradient) in gradient.into_iter().enumerate() {
        let shifted = |by: f64| {
            let mut mean = numbers(&prior);
            mean[at] += by;
            number(&model.free_energy(&vector(&mean), &o).unwrap())
        };
        assert_close(&[(shifted(-1e-5) - shifted(1e-5)) / 2e-5], &[gradient], 1e-8);
    }
}

#[test]
fn models_of_any_size_follow_the_definition() {
    for n in [1, 255, 256, 257] {
        for (observations, states) in [(n, 2), (2, n)] {
            let jacobian: Vec<f64> =
                uniform(observations * states, 1).iter().map(|x| 2.0 * x - 1.0).collect();
            let positive = |count, seed| uniform(count, seed).iter().map(|x| x + 0.5).collect::<Vec<_>>();
            let (noise, precision) = (positive(observations, 2), positive(states, 3));
            let (prior, o, mean) = (uniform(states, 4), uniform(observations, 5), uniform(states, 6));
            let model = GaussianModel::new(
                &tensor(&jacobian, &[observations, states]),
                &vector(&noise),
                &vector(&prior),
                &vector(&precision),
            );
            let model = model.unwrap();
            let errors: Vec<f64> = (0..observations)
                .map(|i| o[i] - (0..states).map(|j| jacobian[i * states + j] * mean[j]).sum::<f64>())
                .collect();
            let (mean_tensor, o_tensor) = (vector(&mean), vector(&o));
            let weighted: Vec<f64> =
                errors.iter().zip(&noise).map(|(error, weight)| error * weight).collect();
            let found = model.prediction_error(&mean_tensor, &o_tensor).unwrap();
            assert_close(&numbers(&found), &weighted, 1e-12);
            let gradient: Vec<f64> = (0..states)
                .map(|j| {
                    let pull: f64 = (0..observations).map(|i| jacobian[i * states + j] * weighted[i]).sum();
                    pull - precision[j] * (mean[j] - prior[j])
                })
                .collect();
            assert_close(&numbers(&model.gradient(&mean_tensor, &o_tensor).unwrap()), &gradient, 1e-11);
            let fixed = model.fixed_point(&o_tensor).unwrap();
            let rest = numbers(&model.gradient(&fixed, &o_tensor).unwrap());
            assert_close(&rest, &vec![0.0; states], 1e-9);
        }
    }
}

#[test]
fn wrong_models_are_errors() {
    let (one, two) = (vector(&[1.0]), vector(&[1.0, 1.0]));
    let jacobian = tensor(&[1.0, 2.0], &[1, 2]);
    let new = |precision: &Tensor, mean: &Tensor| GaussianModel::new(&jacobian, precision, mean, &two);
    assert_invalid(new(&two, &two), &["observation_precision of shape [2]", "[1]"]);
    assert_invalid(new(&one, &one), &["prior_mean of shape [1]", "[2]"]);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_invalid(new(&vector(&[bad]), &two), &["observation_precision", "above 0"]);
    }
    assert_invalid(GaussianModel::new(&two, &one, &two, &two), &["a matrix"]);
    assert_dtype_error(new(&one.cast(DType::F32).unwrap(), &two));
    let model = new(&one, &two).unwrap();
    assert_invalid(model.gradient(&two, &two), &["observation of shape [2]"]);
    assert_invalid(model.free_energy(&one, &one), &["mean of shape [1]"]);
    let options = InferenceOptions { rate: 0.0, ..InferenceOptions::default() };
    assert_invalid(model.infer(&one, &two, options), &["rate = 0"]);
    // Too large a rate diverges, and does not return a belief.
    let options = InferenceOptions { rate: 100.0, tolerance: 1e-9, iterations: 10_000 };
    assert_invalid(model.infer(&one, &two, options), &["finite"]);
    let (mean, none) = (two.clone(), InferenceOptions { iterations: 0, ..InferenceOptions::default() });
    let inference = model.infer(&one, &mean, none).unwrap();
    assert!(!inference.converged && inference.iterations == 0);
}
