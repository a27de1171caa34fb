//! Golden numbers of the classifier, which tests/classifier runs on the CPU and tests/gpu/classifier.rs on a device: free energies and
//! beliefs of known posteriors, the network with hashed weights, and the full mode.

#![allow(dead_code, reason = "no suite uses every case")]

use std::collections::BTreeMap;

use selvedge::burst::pcg;
use selvedge::classifier::{
    Classifier, ClassifierOptions, DEFAULT_PRIOR, GenerativeModel, free_energy, fuse_prior,
};
use selvedge::{DType, Device, Tensor};

/// The hash of the golden numbers in [-1, 1].
fn hashed(i: u32, j: u32) -> f64 {
    2.0 * f64::from(pcg(i ^ pcg(j))) / 2f64.powi(32) - 1.0
}

/// The default network with hashed weights and biases of 0.
pub fn hashed_classifier(device: &Device) -> Classifier {
    let mut classifier = Classifier::new(&ClassifierOptions::default(), device).unwrap();
    let mut entries = BTreeMap::new();
    let widths = classifier.widths();
    for (layer, pair) in widths.windows(2).enumerate() {
        let [inputs, outputs] = [pair[0], pair[1]];
        let bound = (2.0 / inputs as f64).sqrt();
        let weight: Vec<f32> = (0..(inputs * outputs) as u32)
            .map(|at| (bound * hashed(at, 200 + layer as u32)) as f32)
            .collect();
        let weight = Tensor::from_vec(weight, &[inputs, outputs], device).unwrap();
        entries.insert(format!("layers.{layer}.weight"), weight);
        let bias = Tensor::from_vec(vec![0.0f32; outputs], &[outputs], device).unwrap();
        entries.insert(format!("layers.{layer}.bias"), bias);
    }
    classifier.load_state_dict(&entries).unwrap();
    classifier
}

/// The features of a sample of the golden numbers.
pub fn sample(number: u32) -> Vec<f32> {
    (0..100).map(|feature| hashed(feature, 300 + number) as f32).collect()
}

#[track_caller]
pub fn assert_close(found: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len());
    let is_close = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= tolerance);
    assert!(is_close, "found {found:?}; wanted {wanted:?}");
}

pub fn row(device: &Device, values: &[f64]) -> Tensor {
    Tensor::from_slice(values, &[1, values.len()], device).unwrap()
}

pub fn default_prior(device: &Device) -> Tensor {
    Tensor::new(DEFAULT_PRIOR, device).unwrap()
}

pub fn free_energies_and_beliefs_of_known_posteriors(device: &Device) {
    let softmax = row(device, &[1.0, 2.0, 3.0, 4.0, 5.0]).softmax(-1).unwrap().to_vec::<f64>().unwrap();
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
        let posterior = row(device, posterior);
        let found = free_energy(&posterior, &default_prior(device), None).unwrap();
        assert_close(&found.to_vec::<f64>().unwrap(), &[energy], 1e-12);
        let found = fuse_prior(&posterior, &default_prior(device)).unwrap();
        assert_close(&found.to_vec::<f64>().unwrap(), &beliefs, 5e-10);
        assert_eq!(found.argmax(-1).unwrap().item::<i64>().unwrap(), class);
    }
    // An excluded class may have a likelihood of 0.
    let likelihoods = row(device, &[f64::NEG_INFINITY, -1.0, f64::NEG_INFINITY, -2.0, -1.0]);
    let found = free_energy(&row(device, &one_hot), &default_prior(device), Some(&likelihoods)).unwrap();
    assert_close(&found.to_vec::<f64>().unwrap(), &[4.995732273554], 1e-12);
    // In f32, equal distributions have no negative divergence either.
    let [q, p] = [row(device, &DEFAULT_PRIOR), default_prior(device)].map(|x| x.cast(DType::F32).unwrap());
    assert!((0.0..1e-7).contains(&free_energy(&q, &p, None).unwrap().item::<f32>().unwrap()));
}

pub fn the_network_with_hashed_weights_has_the_golden_results(device: &Device) {
    let mut classifier = hashed_classifier(device);
    assert_eq!(classifier.parameter_count(), 9157);
    let cases = [
        ([-0.005281723, 0.001218003, 0.097244265, -0.035701493, -0.013035612], 0.578864476048, 0.693368336),
        ([-0.025861538, -0.054825695, 0.018330074, -0.007235590, -0.027078306], 0.584699268349, 0.698224685),
        ([-0.060237555, -0.086627116, 0.116462126, 0.017785137, 0.035707710], 0.614732537961, 0.682384165),
    ];
    for is_fused in [true, false] {
        classifier.set_fuse_prior(is_fused);
        for (number, (logits, energy, confidence)) in (0..).zip(cases) {
            let features = Tensor::from_vec(sample(number), &[1, 100], device).unwrap();
            let found = classifier.logits(&features).unwrap().cast(DType::F64).unwrap();
            assert_close(&found.to_vec::<f64>().unwrap(), &logits, 1e-6);
            let found = classifier.classify(&sample(number)).unwrap();
            assert_close(&[found.free_energy], &[energy], 1e-6);
            assert_close(&[found.posterior.iter().sum(), found.beliefs.iter().sum()], &[1.0, 1.0], 1e-6);
            let posterior = row(device, &logits).softmax(-1).unwrap().to_vec::<f64>().unwrap();
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

pub fn golden_model(device: &Device) -> GenerativeModel {
    let centres = Tensor::new([[0.0f64, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], device);
    GenerativeModel::new(centres.unwrap(), 0.5).unwrap()
}

pub fn the_full_mode_has_the_golden_numbers(device: &Device) {
    let (model, input) = (golden_model(device), row(device, &[0.9, 0.2]));
    let posterior = model.posterior(&input, &DEFAULT_PRIOR).unwrap();
    let wanted = [0.535667553, 0.379025537, 0.023048567, 0.057080149, 0.005178194];
    assert_close(&posterior.to_vec::<f64>().unwrap(), &wanted, 5e-10);
    let surprise = model.surprise(&input, &DEFAULT_PRIOR).unwrap().item::<f64>().unwrap();
    assert_close(&[surprise], &[1.884016102118], 1e-12);
    let likelihood = model.log_likelihood(&input).unwrap();
    let uniform = row(device, &[0.2; 5]);
    let cases = [
        (&posterior, 1.884016102118),
        (&row(device, &DEFAULT_PRIOR), 2.191582705289),
        (&uniform, 2.972806728262),
    ];
    for (q, energy) in cases {
        let found = free_energy(q, &default_prior(device), Some(&likelihood)).unwrap().item::<f64>().unwrap();
        assert_close(&[found], &[energy], 1e-12);
    }
    assert_eq!(model.bayes_classes(&input, &DEFAULT_PRIOR).unwrap().to_vec::<i64>().unwrap(), [0]);
}
