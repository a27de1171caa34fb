//! Functions of the catalogue on a device: the golden numbers, the bits of the CPU up to 10^7 elements, and close numbers for
//! those with products of matrices.

#[path = "../cases/catalogue.rs"]
mod cases;

use num_complex::Complex;
use selvedge::catalogue::{
    GaussianModel, InferenceOptions, LinearGaussianModel, StdpParameters, cnot, conditional_entropy,
    discretize, entropy_production, expected_free_energy, free_energy, gaussian_accuracy,
    gaussian_kl_divergence, hadamard, histogram_2d, kl_divergence, kuramoto_step, leaky_integrate_fire,
    measurement_probabilities, mutual_information, order_parameter, pauli_x, phase_gate,
    policy_probabilities, reservoir_update, rope_encoding, sample_policy, shannon_entropy, stdp_update,
    time_delayed_embedding, top_k_sampling, transfer_entropy,
};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::support::compare::{Agreement, Case, check};
use crate::support::{Outcome, device_tests};

device_tests! {
    the_golden_numbers_are_those_of_the_cpu, elementwise_functions_have_the_bits_of_the_cpu, counts_do, gates_do,
    draws_do, products_are_close, ten_million_elements_have_the_bits_of_the_cpu,
}

const CPU: Device = Device::cpu();

fn the_golden_numbers_are_those_of_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    cases::the_divergence_from_the_prior_has_the_golden_numbers(&device);
    cases::a_kuramoto_step_and_the_order_parameter_have_the_golden_numbers(&device);
    cases::the_three_policies_have_the_golden_numbers(&device);
    cases::the_binary_series_has_the_golden_numbers(&device);
    cases::the_one_dimensional_model_has_the_golden_numbers(&device);
    Ok(())
}

/// Lengths around a block of 256 threads, and one of many blocks.
const LENGTHS: [usize; 5] = [1, 255, 256, 257, 20_000];

/// Of two vectors, two vectors of probabilities, and a vector of whole numbers.
const VECTORS: &[Case] = &[
    ("leaky_integrate_fire", |x| {
        let (state, spikes) = leaky_integrate_fire(&x[0], &x[1], 0.1, 0.3)?;
        Ok(vec![state, spikes])
    }),
    ("reservoir_update", |x| Ok(vec![reservoir_update(&x[0], &x[1], 0.3)?])),
    ("kuramoto_step", |x| Ok(vec![kuramoto_step(&x[0], &x[1], None, 1.5, 0.05)?])),
    ("order_parameter", |x| {
        let order = order_parameter(&x[0])?;
        Ok(vec![order.magnitude, order.phase])
    }),
    ("entropy_production", |x| Ok(vec![entropy_production(&x[1], 0.5)?])),
    ("shannon_entropy", |x| Ok(vec![shannon_entropy(&x[2])?])),
    ("kl_divergence", |x| Ok(vec![kl_divergence(&x[2], &x[3])?])),
    ("free_energy", |x| Ok(vec![free_energy(&x[2], &x[3], &x[0])?])),
    ("gaussian_accuracy", |x| Ok(vec![gaussian_accuracy(&x[0], &x[2])?])),
    ("gaussian_kl_divergence", |x| Ok(vec![gaussian_kl_divergence([&x[0], &x[2]], [&x[1], &x[3]])?])),
    ("policy_probabilities", |x| Ok(vec![policy_probabilities(&x[0], 0.7)?])),
];

fn elementwise_functions_have_the_bits_of_the_cpu() -> Outcome {
    let generator = Generator::new(1);
    for length in LENGTHS {
        for dtype in [DType::BF16, DType::F32, DType::F64] {
            let randn = || generator.randn(&[length], dtype, &CPU);
            let operands = [randn()?, randn()?, randn()?.softmax(0)?, randn()?.softmax(0)?];
            check(VECTORS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

/// Of two vectors.
const COUNTS: &[Case] = &[
    ("discretize", |x| Ok(vec![discretize(&x[0], 7, None)?, discretize(&x[0], 7, Some((-1.0, 1.0)))?])),
    ("histogram_2d", |x| Ok(vec![histogram_2d(&x[0], &x[1], 16, None)?])),
    ("mutual_information", |x| Ok(vec![mutual_information(&histogram_2d(&x[0], &x[1], 16, None)?)?])),
    ("conditional_entropy", |x| Ok(vec![conditional_entropy(&histogram_2d(&x[0], &x[1], 16, None)?)?])),
    ("time_delayed_embedding", |x| Ok(vec![time_delayed_embedding(&x[0], 3, 5)?])),
    ("transfer_entropy", |x| {
        let states = [discretize(&x[0], 3, None)?, discretize(&x[1], 3, None)?];
        Ok(vec![transfer_entropy(&states[0], &states[1], 3, 2)?])
    }),
];

fn counts_do() -> Outcome {
    let generator = Generator::new(2);
    for length in LENGTHS.into_iter().filter(|length| *length > 10) {
        for dtype in [DType::F32, DType::F64] {
            let operands =
                [generator.randn(&[length], dtype, &CPU)?, generator.randn(&[length], dtype, &CPU)?];
            check(COUNTS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

/// Of a state of ten qubits.
const GATES: &[Case] = &[
    ("hadamard", |x| Ok(vec![hadamard(&x[0], 0)?, hadamard(&x[0], 9)?])),
    ("pauli_x", |x| Ok(vec![pauli_x(&x[0], 4)?])),
    ("phase_gate", |x| Ok(vec![phase_gate(&x[0], 3, 0.7)?])),
    ("cnot", |x| Ok(vec![cnot(&x[0], 2, 7)?, cnot(&x[0], 9, 0)?])),
    ("measurement_probabilities", |x| Ok(vec![measurement_probabilities(&x[0])?])),
];

fn gates_do() -> Outcome {
    for dtype in [DType::C64, DType::C128] {
        let state = Generator::new(3).randn(&[1024], dtype, &CPU)?;
        check(GATES, &[state.mul(Complex::new(1.0 / 32.0, 0.0))?], Agreement::Bits)?;
    }
    Ok(())
}

/// Of logits, energies, and heads.
const DRAWS: &[Case] = &[
    ("top_k_sampling", |x| Ok(vec![top_k_sampling(&x[0], 40, 0.8, &Generator::new(5))?])),
    ("sample_policy", |x| {
        let policy = sample_policy(&x[1], 1.0, &Generator::new(6))?;
        Ok(vec![Tensor::full(&[], policy as i64, DType::I64, &x[1].device())?])
    }),
    ("rope_encoding", |x| Ok(vec![rope_encoding(&x[2], 3, 10_000.0)?])),
];

fn draws_do() -> Outcome {
    let generator = Generator::new(4);
    for dtype in [DType::F16, DType::F32, DType::F64] {
        let operands = [
            generator.randn(&[9, 5003], dtype, &CPU)?,
            generator.randn(&[12], dtype, &CPU)?,
            generator.randn(&[2, 3, 65, 32], dtype, &CPU)?,
        ];
        check(DRAWS, &operands, Agreement::Bits)?;
    }
    Ok(())
}

fn ten_million_elements_have_the_bits_of_the_cpu() -> Outcome {
    const MANY: usize = 10_000_000;
    let generator = Generator::new(8);
    let randn = |shape: &[usize]| generator.randn(shape, DType::F32, &CPU);
    let operands = [randn(&[MANY])?, randn(&[MANY])?];
    let probabilities = [operands[0].softmax(0)?, operands[1].softmax(0)?];
    check(COUNTS, &operands, Agreement::Bits)?;
    check(VECTORS, &[&operands[..], &probabilities[..]].concat(), Agreement::Bits)?;
    let rows = |x: &Tensor| x.reshape(&[2500, 4000]);
    let matrices = [rows(&operands[0])?, randn(&[4000])?, randn(&[2500])?];
    check(&[("stdp_update", |x| Ok(vec![plastic(&x[0], &x[1], &x[2])?]))], &matrices, Agreement::Bits)?;
    let heads = operands[0].narrow(0, 0, 64 * 78_125)?.reshape(&[125, 625, 64])?;
    check(DRAWS, &[operands[1].reshape(&[200, 50_000])?, randn(&[12])?, heads], Agreement::Bits)?;
    // The least power of two from there on.
    let state = generator.randn(&[1 << 24], DType::C64, &CPU)?;
    check(GATES, &[state], Agreement::Bits)?;
    Ok(())
}

/// Weights after spikes at the times above 0.
fn plastic(weights: &Tensor, pre: &Tensor, post: &Tensor) -> selvedge::Result<Tensor> {
    let spikes = [pre.gt(0)?, post.gt(0)?];
    let parameters = StdpParameters { learning_rate: 0.1, tau: 20.0 };
    stdp_update(weights, [&spikes[0], &spikes[1]], [pre, post], parameters)
}

/// Of a square matrix of 24, three vectors of 24, one of 24 positive numbers, and controls of 3 policies and 4 steps.
const PRODUCTS: &[Case] = &[
    ("kuramoto_step", |x| Ok(vec![kuramoto_step(&x[1], &x[2], Some(&x[0]), 1.5, 0.05)?])),
    ("GaussianModel", |x| {
        let model = GaussianModel::new(&x[0], &x[4], &x[1], &x[4])?;
        let found = model.infer(&x[3], &x[2], InferenceOptions { iterations: 5, ..Default::default() })?;
        Ok(vec![model.free_energy(&found.mean, &x[2])?, found.mean, model.fixed_point(&x[2])?])
    }),
    ("LinearGaussianModel", |x| {
        let model = LinearGaussianModel::new(&x[0], &x[0], 0.1)?;
        let rollout = model.roll_out(&x[1], &x[4], &x[5])?;
        let predictions = model.predict(&rollout, &x[4])?;
        let energy = expected_free_energy(&predictions, &x[2])?;
        Ok(vec![rollout.means, rollout.variances, energy.total])
    }),
    ("stdp_update", |x| Ok(vec![plastic(&x[0], &x[1], &x[2])?])),
];

fn products_are_close() -> Outcome {
    let generator = Generator::new(7);
    for (dtype, tolerance) in [(DType::F32, 1e-3), (DType::F64, 1e-10)] {
        let randn = |shape: &[usize]| generator.randn(shape, dtype, &CPU);
        let operands = [
            randn(&[24, 24])?.mul(0.1)?,
            randn(&[24])?,
            randn(&[24])?,
            randn(&[24])?,
            randn(&[24])?.abs()?.add(0.5)?,
            randn(&[3, 4, 24])?,
        ];
        check(PRODUCTS, &operands, Agreement::Within(tolerance))?;
    }
    Ok(())
}
