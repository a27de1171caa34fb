//! The golden numbers of free energies, beliefs, the network and the full mode.

use selvedge::classifier::{DEFAULT_PRIOR, free_energy, learned_prior};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Tensor};

use super::{assert_close, cases, hashed_classifier, sample};

#[test]
fn free_energies_and_beliefs_of_known_posteriors() {
    cases::free_energies_and_beliefs_of_known_posteriors(&Device::cpu());
}

#[test]
fn the_network_with_hashed_weights_has_the_golden_results() {
    cases::the_network_with_hashed_weights_has_the_golden_results(&Device::cpu());
}

#[test]
fn the_full_mode_has_the_golden_numbers() {
    cases::the_full_mode_has_the_golden_numbers(&Device::cpu());
}

#[test]
fn priors_move_toward_observations() {
    let found = learned_prior(&DEFAULT_PRIOR, &[0.0, 0.0, 1.0, 0.0, 0.0]).unwrap();
    assert_close(&found, &[0.63, 0.09, 0.19, 0.045, 0.045], 1e-15);
    let mut classifier = hashed_classifier();
    for _ in 0..2000 {
        classifier.learn_prior(&[0.0, 0.0, 1.0, 0.0, 0.0]).unwrap();
    }
    assert_close(classifier.prior(), &[0.0, 0.0, 1.0, 0.0, 0.0], 1e-12);
    assert!(classifier.prior().iter().all(|&p| p >= 1e-30));
    classifier.set_fuse_prior(true);
    let found = classifier.classify(&sample(0)).unwrap();
    assert!(found.class == 2 && found.free_energy.is_finite() && found.beliefs.iter().all(|b| b.is_finite()));
}

/// F(Q) >= -ln p(o), with equality for the exact posterior alone.
#[test]
fn the_free_energy_is_at_least_the_surprise() {
    const ROWS: usize = 500;
    let (cpu, generator) = (Device::cpu(), Generator::new(5));
    let model = cases::golden_model(&Device::cpu());
    let inputs = generator.normal(0.5, 1.5, &[ROWS, 2], DType::F64, &cpu).unwrap();
    let surprise = model.surprise(&inputs, &DEFAULT_PRIOR).unwrap().to_vec::<f64>().unwrap();
    let likelihood = model.log_likelihood(&inputs).unwrap();
    let energies = |q: &Tensor| {
        free_energy(q, &cases::default_prior(&Device::cpu()), Some(&likelihood))
            .unwrap()
            .to_vec::<f64>()
            .unwrap()
    };
    for spread in [0.1, 1.0, 5.0] {
        let logits = generator.normal(0.0, spread, &[ROWS, 5], DType::F64, &cpu).unwrap();
        for (energy, surprise) in energies(&logits.softmax(-1).unwrap()).iter().zip(&surprise) {
            assert!(*energy > surprise - 1e-9, "{energy} is less than {surprise}");
        }
    }
    // Terms up to 1e-10 count as 0, so equality has that tolerance.
    let exact = energies(&model.posterior(&inputs, &DEFAULT_PRIOR).unwrap());
    assert_close(&exact, &surprise, 1e-8);
}

#[test]
fn a_classifier_with_a_generative_model_has_the_free_energy_of_the_full_mode() {
    let mut classifier = hashed_classifier();
    let data = selvedge::classifier::synthetic(20, 3, &Device::cpu()).unwrap();
    classifier.set_generative_model(Some(&data.model)).unwrap();
    let found = classifier.classify_batch(&data.features).unwrap();
    let likelihood = data.model.log_likelihood(&data.features).unwrap();
    let prior = cases::default_prior(&Device::cpu()).cast(DType::F32).unwrap();
    let wanted = free_energy(&found.posterior, &prior, Some(&likelihood)).unwrap();
    let numbers = |x: &Tensor| x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    assert_close(&numbers(&found.free_energy), &numbers(&wanted), 1e-3);
    let surprise = data.model.surprise(&data.features, &DEFAULT_PRIOR).unwrap();
    for (energy, surprise) in numbers(&found.free_energy).iter().zip(numbers(&surprise)) {
        assert!(*energy > surprise - 1e-3, "{energy} is less than {surprise}");
    }
}
