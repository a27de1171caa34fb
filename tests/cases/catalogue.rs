//! Golden numbers of the catalogue, which tests/catalogue runs on the CPU and tests/gpu/catalogue.rs on a device.

use selvedge::catalogue::*;
use selvedge::types::{DType, Element};
use selvedge::{Device, Tensor};

fn tensor<T: Element>(elements: &[T], shape: &[usize], device: &Device) -> Tensor {
    Tensor::from_slice(elements, shape, device).unwrap()
}

fn vector<T: Element>(elements: &[T], device: &Device) -> Tensor {
    tensor(elements, &[elements.len()], device)
}

#[track_caller]
fn assert_close(found: &Tensor, wanted: &[f64], tolerance: f64) {
    let found: Vec<f64> = found.cast(DType::F64).unwrap().to_vec().unwrap();
    assert_eq!(found.len(), wanted.len());
    for (at, (x, y)) in found.iter().zip(wanted).enumerate() {
        assert!((x - y).abs() <= tolerance * y.abs().max(1.0), "element {at}: {x} instead of {y}");
    }
}

/// The default prior of the classifier.
pub const PRIOR: [f64; 5] = [0.7, 0.1, 0.1, 0.05, 0.05];

pub fn the_divergence_from_the_prior_has_the_golden_numbers(device: &Device) {
    let mut rows = PRIOR.to_vec();
    rows.extend([0.2; 5]);
    rows.extend([0.0, 0.0, 0.0, 1.0, 0.0]);
    let powers = [1.0f64, 2.0, 3.0, 4.0, 5.0].map(f64::exp);
    rows.extend(powers.map(|power| power / powers.iter().sum::<f64>()));
    let wanted = [0.0, 0.581224022973, 2.995732273554, 1.883335912281];
    let (q, p) = (tensor(&rows, &[4, 5], device), vector(&PRIOR, device));
    assert_close(&kl_divergence(&q, &p).unwrap(), &wanted, 1e-12);
    assert_close(&free_energy(&q, &p, &p.zeros_like().unwrap()).unwrap(), &wanted, 1e-12);
}

pub fn a_kuramoto_step_and_the_order_parameter_have_the_golden_numbers(device: &Device) {
    let (theta, omega) = (vector(&[0.0, 1.0, 2.5], device), vector(&[0.1, 0.2, 0.3], device));
    let wanted = [0.005799810430, 1.002520080006, 2.497680109564];
    let ones = tensor(&[1.0; 9], &[3, 3], device);
    for adjacency in [None, Some(&ones)] {
        assert_close(&kuramoto_step(&theta, &omega, adjacency, 1.0, 0.01).unwrap(), &wanted, 1e-12);
    }
    assert_close(&order_parameter(&theta).unwrap().magnitude, &[0.539525695401], 1e-12);
}

/// The three policies of the golden numbers.
pub fn three_policies(device: &Device) -> PolicyPredictions {
    let of = |rows: [f64; 6]| tensor(&rows, &[3, 2], device);
    PolicyPredictions {
        observations: of([1.0, 0.1, 0.5, 0.5, 0.0, 1.0]),
        variances: of([0.1, 0.1, 0.2, 0.2, 0.05, 0.05]),
        prior_variances: of([1.0; 6]),
        posterior_variances: of([0.5, 0.5, 0.2, 0.2, 0.9, 0.9]),
    }
}

pub fn the_three_policies_have_the_golden_numbers(device: &Device) {
    let energy = expected_free_energy(&three_policies(device), &vector(&[1.0, 0.0], device)).unwrap();
    assert_close(&energy.total, &[-0.483147181, -0.709437912, 1.994639484], 1e-9);
    assert_close(&energy.risk, &[0.01, 0.5, 2.0], 1e-12);
    assert_close(&energy.ambiguity, &[0.2, 0.4, 0.1], 1e-12);
    let shares = policy_probabilities(&energy.total, 1.0).unwrap();
    assert_close(&shares, &[0.427739971, 0.536360334, 0.035899695], 1e-9);
    assert_eq!(choose_policy(&energy.total).unwrap(), 1);
}

/// A series of states.
pub const X: [i64; 12] = [0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1];
/// The series delayed by one.
pub const Y: [i64; 12] = [0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0];

pub fn the_binary_series_has_the_golden_numbers(device: &Device) {
    let [x, y] = [X, Y].map(|series| vector(&series, device));
    assert_close(&transfer_entropy(&x, &y, 2, 1).unwrap(), &[0.683994674401], 1e-12);
    let [x_floats, y_floats] = [&x, &y].map(|series| series.cast(DType::F32).unwrap());
    let joint = histogram_2d(&x_floats, &y_floats, 2, None).unwrap();
    assert_eq!(joint.sum(1).unwrap().to_vec::<i64>().unwrap(), [5, 7]);
    assert_close(&mutual_information(&joint).unwrap(), &[0.014362591564], 1e-12);
    let shares = x.bincount(0).unwrap().cast(DType::F64).unwrap().div(12.0).unwrap();
    assert_close(&shannon_entropy(&shares).unwrap(), &[0.679193265992], 1e-12);
}

/// J = 2, precision 4 of the observation, prior N(1, 1), and the observation 5.
pub fn one_dimension(dtype: DType, device: &Device) -> (GaussianModel, Tensor) {
    let cast = |x: f64, shape: &[usize]| tensor(&[x], shape, device).cast(dtype).unwrap();
    let model = GaussianModel::new(&cast(2.0, &[1, 1]), &cast(4.0, &[1]), &cast(1.0, &[1]), &cast(1.0, &[1]));
    (model.unwrap(), cast(5.0, &[1]))
}

pub fn the_one_dimensional_model_has_the_golden_numbers(device: &Device) {
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-6)] {
        let (model, o) = one_dimension(dtype, device);
        let fixed = model.fixed_point(&o).unwrap();
        assert_eq!(fixed.dtype(), dtype);
        assert_close(&fixed, &[2.411764705882], tolerance);
        assert_close(&model.posterior_precision().unwrap(), &[17.0], tolerance);
    }
    let (model, o) = one_dimension(DType::F64, device);
    let options = InferenceOptions { rate: 0.05, tolerance: 1e-9, iterations: 1000 };
    let inference = model.infer(&o, &vector(&[0.0], device), options).unwrap();
    assert!(inference.converged && inference.iterations < 1000);
    assert_close(&inference.mean, &[2.411764706], 1e-8);
    let [one, quarter, zero] = [1.0, 0.25, 0.0].map(|x| vector(&[x], device));
    let kl = gaussian_kl_divergence([&one, &quarter], [&zero, &one]).unwrap();
    assert_close(&kl, &[0.818147180560], 1e-12);
    assert_close(&gaussian_kl_divergence([&one, &quarter], [&one, &quarter]).unwrap(), &[0.0], 0.0);
}
