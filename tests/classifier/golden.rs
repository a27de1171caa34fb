//! The golden numbers of free energies, beliefs, the network and the full mode.

use selvedge::classifier::{DEFAULT_PRIOR, GenerativeModel, free_energy, fuse_prior, learned_prior};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Tensor};

use super::{assert_close, hashed_classifier, sample};

fn row(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, &[1, values.len()], &Device::cpu()).unwrap()
}

fn default_prior() -> Tensor {
    Tensor::new(DEFAULT_PRIOR, &Device::cpu()).unwrap()
}

#[test]
fn free_energies_and_beliefs_of_known_posteriors() {
    let softmax = row(&[1.0, 2.0, 3.0, 4.0, 5.0]).softmax(-1).unwrap().to_vec::<f64>().unwrap();
    let one_hot = [0.0, 0.0, 0.0, 1.0, 0.0];
    let of_prior = [0.951456311, 0.019417476, 0.019417476, 0.004854369, 0.004854369];
    let of_softmax = [0.128560243, 0.049923282, 0.135705550, 0.184442965, 0.501367960];
    let cases: [(&[f64], f64, [f64; 5], i64); 4] = [
        (&DEFAULT_PRIOR, 0.0, of_prior, 0),
        (&[0.2; 5], 0.581224022973, DEFAULT_PRIOR, 0),
        (&one_hot, 2.995732273554, one_hot, 3),
        (&softmax, 1.883335912281, of_softmax, 4),
    ];
    for (posterior, energy, beliefs, class) in cases {
        let posterior = row(posterior);
        let found = free_energy(&posterior, &default_prior(), None).unwrap();
        assert_close(&found.to_vec::<f64>().unwrap(), &[energy], 1e-12);
        let found = fuse_prior(&posterior, &default_prior()).unwrap();
        assert_close(&found.to_vec::<f64>().unwrap(), &beliefs, 5e-10);
        assert_eq!(found.argmax(-1).unwrap().item::<i64>().unwrap(), class);
    }
    // An excluded class may have a likelihood of 0.
    let likelihoods = row(&[f64::NEG_INFINITY, -1.0, f64::NEG_INFINITY, -2.0, -1.0]);
    let found = free_energy(&row(&one_hot), &default_prior(), Some(&likelihoods)).unwrap();
    assert_close(&found.to_vec::<f64>().unwrap(), &[4.995732273554], 1e-12);
    // In f32, equal distributions have no negative divergence either.
    let [q, p] = [row(&DEFAULT_PRIOR), default_prior()].map(|x| x.cast(DType::F32).unwrap());
    assert!((0.0..1e-7).contains(&free_energy(&q, &p, None).unwrap().item::<f32>().unwrap()));
}

#[test]
fn the_network_with_hashed_weights_has_the_golden_results() {
    let mut classifier = hashed_classifier();
    assert_eq!(classifier.parameter_count(), 9157);
    let cases = [
        ([-0.005281723, 0.001218003, 0.097244265, -0.035701493, -0.013035612], 0.578864476048, 0.693368336),
        ([-0.025861538, -0.054825695, 0.018330074, -0.007235590, -0.027078306], 0.584699268349, 0.698224685),
        ([-0.060237555, -0.086627116, 0.116462126, 0.017785137, 0.035707710], 0.614732537961, 0.682384165),
    ];
    for is_fused in [true, false] {
        classifier.set_fuse_prior(is_fused);
        for (number, (logits, energy, confidence)) in (0..).zip(cases) {
            let features = Tensor::from_vec(sample(number), &[1, 100], &Device::cpu()).unwrap();
            let found = classifier.logits(&features).unwrap().cast(DType::F64).unwrap();
            assert_close(&found.to_vec::<f64>().unwrap(), &logits, 1e-6);
            let found = classifier.classify(&sample(number)).unwrap();
            assert_close(&[found.free_energy], &[energy], 1e-6);
            assert_close(&[found.posterior.iter().sum(), found.beliefs.iter().sum()], &[1.0, 1.0], 1e-6);
            let posterior = row(&logits).softmax(-1).unwrap().to_vec::<f64>().unwrap();
            assert_close(&found.posterior, &posterior, 1e-6);
            if is_fused {
                assert_eq!(found.class, 0);
                assert_close(&[found.confidence], &[confidence], 1e-6);
            } else {
                assert_eq!((found.class, &found.beliefs), (2, &found.posterior));
                assert_eq!(found.confidence, found.beliefs[2]);
            }
        }
    }
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

fn golden_model() -> GenerativeModel {
    let centres =
        Tensor::new([[0.0f64, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], &Device::cpu());
    GenerativeModel::new(centres.unwrap(), 0.5).unwrap()
}

#[test]
fn the_full_mode_has_the_golden_numbers() {
    let (model, input) = (golden_model(), row(&[0.9, 0.2]));
    let posterior = model.posterior(&input, &DEFAULT_PRIOR).unwrap();
    let wanted = [0.535667553, 0.379025537, 0.023048567, 0.057080149, 0.005178194];
    assert_close(&posterior.to_vec::<f64>().unwrap(), &wanted, 5e-10);
    let surprise = model.surprise(&input, &DEFAULT_PRIOR).unwrap().item::<f64>().unwrap();
    assert_close(&[surprise], &[1.884016102118], 1e-12);
    let likelihood = model.log_likelihood(&input).unwrap();
    let uniform = row(&[0.2; 5]);
    let cases =
        [(&posterior, 1.884016102118), (&row(&DEFAULT_PRIOR), 2.191582705289), (&uniform, 2.972806728262)];
    for (q, energy) in cases {
        let found = free_energy(q, &default_prior(), Some(&likelihood)).unwrap().item::<f64>().unwrap();
        assert_close(&[found], &[energy], 1e-12);
    }
    assert_eq!(model.bayes_classes(&input, &DEFAULT_PRIOR).unwrap().to_vec::<i64>().unwrap(), [0]);
}

/// F(Q) >= -ln p(o), with equality for the exact posterior alone.
#[test]
fn the_free_energy_is_at_least_the_surprise() {
    const ROWS: usize = 500;
    let (cpu, generator) = (Device::cpu(), Generator::new(5));
    let model = golden_model();
    let inputs = generator.normal(0.5, 1.5, &[ROWS, 2], DType::F64, &cpu).unwrap();
    let surprise = model.surprise(&inputs, &DEFAULT_PRIOR).unwrap().to_vec::<f64>().unwrap();
    let likelihood = model.log_likelihood(&inputs).unwrap();
    let energies =
        |q: &Tensor| free_energy(q, &default_prior(), Some(&likelihood)).unwrap().to_vec::<f64>().unwrap();
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
    let prior = default_prior().cast(DType::F32).unwrap();
    let wanted = free_energy(&found.posterior, &prior, Some(&likelihood)).unwrap();
    let numbers = |x: &Tensor| x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    assert_close(&numbers(&found.free_energy), &numbers(&wanted), 1e-3);
    let surprise = data.model.surprise(&data.features, &DEFAULT_PRIOR).unwrap();
    for (energy, surprise) in numbers(&found.free_energy).iter().zip(numbers(&surprise)) {
        assert!(*energy > surprise - 1e-3, "{energy} is less than {surprise}");
    }
}
