//! Entropy, divergence and free energy of probabilities.

use selvedge::catalogue::{free_energy, kl_divergence, shannon_entropy};
use selvedge::types::DType;
use selvedge::{Device, Tensor};

use crate::cases;
use crate::common::*;

fn softmax(logits: &[f64]) -> Vec<f64> {
    let powers: Vec<f64> = logits.iter().map(|z| z.exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

#[test]
fn the_divergence_from_the_prior_has_the_golden_numbers() {
    cases::the_divergence_from_the_prior_has_the_golden_numbers(&Device::cpu());
}

#[test]
fn the_free_energy_is_least_at_the_exact_posterior() {
    // Five centres, standard deviation 0.5, and an observation.
    let (centres, o) = ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], [0.9, 0.2]);
    let likelihood = centres.map(|m| {
        let square: f64 = (0..2).map(|k| (o[k] - m[k]) * (o[k] - m[k])).sum();
        -square / 0.5 - (std::f64::consts::TAU * 0.25).ln()
    });
    let joint: Vec<f64> = likelihood.iter().zip(PRIOR).map(|(l, p)| l + p.ln()).collect();
    let posterior = softmax(&joint);
    assert_close(&posterior, &[0.535667553, 0.379025537, 0.023048567, 0.057080149, 0.005178194], 1e-9);
    let energy = |q: &[f64]| number(&free_energy(&vector(q), &vector(&PRIOR), &vector(&likelihood)).unwrap());
    let least = 1.884016102118;
    for (q, wanted) in [(&posterior[..], least), (&PRIOR, 2.191582705289), (&[0.2; 5], 2.972806728262)] {
        assert_close(&[energy(q)], &[wanted], 1e-11);
    }
    for seed in 0..20 {
        let q = softmax(&uniform(5, seed).iter().map(|x| 8.0 * x - 4.0).collect::<Vec<_>>());
        assert!(energy(&q) >= least - 1e-11, "{q:?}");
    }
}

#[test]
fn sums_take_every_term_at_any_length_in_every_dtype() {
    for n in LENGTHS {
        // Weights of f16 probabilities: none is subnormal, and none negligible.
        let (q, p) = (uniform(n, 1), uniform(n, 2));
        let [q, p] = [q, p].map(|list| list.iter().map(|x| (x + 0.5) / n as f64).collect::<Vec<f64>>());
        for (dtype, tolerance) in FLOATS {
            let [q, p] = [&q, &p].map(|list| vector(list).cast(dtype).unwrap());
            let (q_numbers, p_numbers) = (numbers(&q), numbers(&p));
            let entropy: f64 = q_numbers.iter().map(|x| -x * x.ln()).sum();
            let kl: f64 = q_numbers.iter().zip(&p_numbers).map(|(x, y)| x * (x / y).ln()).sum();
            let expected: f64 = q_numbers.iter().zip(&p_numbers).map(|(x, y)| x * y).sum();
            assert_close(&[number(&shannon_entropy(&q).unwrap())], &[entropy], tolerance);
            assert_close(&[number(&kl_divergence(&q, &p).unwrap())], &[kl], tolerance);
            let energy = free_energy(&q, &p, &p).unwrap();
            assert_eq!(energy.dtype(), dtype);
            assert_close(&[number(&energy)], &[kl - expected], tolerance);
        }
    }
    let p = vector(&vec![1.0 / LARGE as f32; LARGE]);
    assert_close(&[number(&shannon_entropy(&p).unwrap())], &[(LARGE as f64).ln()], 1e-6);
}

#[test]
fn zeros_give_no_nan_and_nan_stays() {
    let q = vector(&[0.5, 0.5, 0.0, 1e-11]);
    let p = vector(&[0.5, 0.0, 0.5, 0.5]);
    assert_eq!(number(&kl_divergence(&q, &p).unwrap()), 0.0);
    assert_close(&[number(&shannon_entropy(&q).unwrap())], &[2f64.ln()], 1e-15);
    let likelihood = vector(&[-1.0, -2.0, f64::NEG_INFINITY, f64::NEG_INFINITY]);
    assert_close(&[number(&free_energy(&q, &p, &likelihood).unwrap())], &[1.5], 1e-15);
    let nan = vector(&[0.5, f64::NAN, 0.5, 0.0]);
    assert!(number(&kl_divergence(&nan, &p).unwrap()).is_nan());
    assert!(number(&kl_divergence(&q, &nan).unwrap()).is_nan());
    assert!(number(&shannon_entropy(&nan).unwrap()).is_nan());
}

#[test]
fn rows_may_be_views_and_have_several_dimensions() {
    let q = tensor(&probabilities(24, 1), &[2, 3, 4]).permute(&[2, 0, 1]).unwrap();
    let entropies = shannon_entropy(&q).unwrap();
    assert_eq!(entropies.shape()[..], [4, 2]);
    let first = shannon_entropy(&q.get(&[3, 1]).unwrap()).unwrap();
    assert_close(&numbers(&entropies)[7..], &numbers(&first), 1e-15);
    let none = tensor::<f32>(&[], &[0, 3]);
    assert_eq!(shannon_entropy(&none).unwrap().shape()[..], [0]);
}

#[test]
fn wrong_probabilities_are_errors() {
    let (q, p) = (tensor(&[0.5; 6], &[2, 3]), vector(&[0.5; 2]));
    assert_invalid(kl_divergence(&q, &p), &["p of shape [2]", "[2, 3] or [3]"]);
    assert_invalid(free_energy(&q, &q, &p), &["log_likelihood"]);
    assert_invalid(shannon_entropy(&vector::<f64>(&[])), &["at least one"]);
    assert_invalid(shannon_entropy(&Tensor::new(1.0f64, &selvedge::Device::cpu()).unwrap()), &["shape []"]);
    assert_dtype_error(kl_divergence(&q, &q.cast(DType::F32).unwrap()));
    assert_dtype_error(shannon_entropy(&vector(&[1i64])));
}
