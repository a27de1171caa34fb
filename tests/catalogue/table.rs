//! The expressions of docs/catalogue.md: each row is run here, and each expression here is a row.

use std::collections::BTreeSet;
use std::f64::consts::TAU;

use selvedge::catalogue::*;
use selvedge::gemm::Activation;
use selvedge::tensor::{Generator, Matmul, fuse};
use selvedge::types::DType;
use selvedge::{Complex, Device, Result, Tensor};

use crate::common::*;

/// The kernels of one operation, each of which has a row.
const KERNELS: [&str; 41] = [
    "vector_add",
    "elementwise_multiply",
    "elementwise_exp",
    "broadcast_add",
    "matmul",
    "dot_product",
    "reduce_sum",
    "normalize",
    "relu",
    "sigmoid",
    "tanh_activation",
    "gelu_activation",
    "softmax",
    "batch_norm",
    "kl_divergence",
    "free_energy_kernel",
    "shannon_entropy",
    "leaky_integrate_fire",
    "reservoir_update",
    "stdp_update",
    "kuramoto_evolution",
    "order_parameter",
    "entropy_production",
    "histogram_2d",
    "mutual_information",
    "conditional_entropy",
    "time_delayed_embedding",
    "hadamard_gate",
    "pauli_x_gate",
    "phase_gate",
    "cnot_gate",
    "quantum_measurement",
    "multi_head_attention",
    "rope_encoding",
    "layer_norm",
    "top_k_sampling",
    "embedding_lookup",
    "fused_matmul_relu",
    "fused_linear_relu",
    "fused_linear_gelu",
    "fused_exp_normalize",
];

/// The files of kernels, with their kernels, each of which is named by a row of the file.
const FILES: &[(&str, &str)] = &[
    (
        "active_inference",
        "gemv, prediction error, belief update, precision weighting, diagonal Gaussian KL, accuracy, sum, a x + b y, \
         velocity update, hierarchical projection",
    ),
    (
        "policy_evaluation",
        "state roll-out, observation prediction, expected free energy, choice of a policy, random states, trajectories, \
         gemv, sum",
    ),
    ("matrix_ops", "tiled product, bias, relu, softmax, cross-entropy gradient, sigmoid, tanh, saxpy"),
    (
        "transfer_entropy",
        "min/max, 1-D histogram, 2-D histogram, 3-D histogram, transfer entropy of series, transfer entropy from counts",
    ),
    ("thermodynamic", "oscillator start, coupling forces, evolution, energy, entropy, order parameter"),
    ("neuromorphic_gemv", "input product, reservoir product, leaky integration"),
    (
        "quantum_evolution",
        "split-operator evolution, tight-binding Hamiltonian, Ising Hamiltonian, phase estimation, \
         variational expectation, QAOA layer, double-double evolution, probabilities, entropy, normalisation",
    ),
    ("quantum_mlir", "gates, Fourier transform, ansatz, measurement"),
    ("double_double", "add, matrix-vector, deterministic reduction, pairs of doubles"),
    ("parallel_coloring", COLOURING),
    ("adaptive_coloring", COLOURING),
    ("ksg", "distances, k-th neighbour, counts"),
    ("path-integral", "bead updates, energies, spectral gap"),
];

const COLOURING: &str = "greedy colouring, annealed colouring, validation, dense to CSR";

/// An expression without the spaces and the last comma of a list, which formatting changes.
fn bare(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    text.replace(",)", ")").replace(",]", "]").replace(",}", "}")
}

/// The rows of the tables as cells, without their heads.
fn rows() -> Vec<Vec<String>> {
    let page = include_str!("../../docs/catalogue.md");
    let is_row =
        |line: &&str| line.starts_with("| ") && !line.starts_with("| kernel") && !line.starts_with("| file");
    let cells = |line: &str| {
        let line = line.replace("\\|", "\u{1}");
        line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
    };
    page.lines().filter(is_row).map(cells).collect()
}

/// Runs expressions, and returns their texts.
macro_rules! run {
    ($($expression:expr;)*) => {
        [$({ let _ = $expression; bare(stringify!($expression)) }),*]
    };
}

#[test]
fn every_expression_of_the_page_runs() -> Result<()> {
    let device = Device::cpu();
    let generator = Generator::new(1);
    let f32s = |count: usize, seed| vector(&uniform(count, seed)).cast(DType::F32);
    let [a, b, mean, variance] = [f32s(4, 1)?, f32s(4, 2)?, f32s(4, 3)?, f32s(4, 4)?.add(1.0)?];
    let [q, p] =
        [5, 6].map(|seed| vector(&probabilities(4, seed)).add(0.01).unwrap().cast(DType::F32).unwrap());
    let log_likelihood = p.log()?;
    let [x, y] = [f32s(8, 7)?.reshape(&[2, 4])?, f32s(8, 8)?.reshape(&[2, 4])?];
    let w = f32s(16, 9)?.reshape(&[4, 4])?;
    let spikes = vector(&[1u8, 0, 1, 1]).cast(DType::Bool)?;
    let state = vector(&[Complex::new(0.5f32, 0.0); 4]);
    let heads = f32s(48, 10)?.reshape(&[2, 6, 4])?;
    let scale = 0.5;
    let tokens = vector(&[1i64, 0, 3, 2]);
    let counts = tensor(&[1i64, 2, 3, 4, 5, 6, 7, 8], &[2, 2, 2]);
    let bins = Tensor::stack(
        &[&discretize(&a, 16, None)?, &discretize(&b, 16, None)?, &discretize(&p, 16, None)?],
        0,
    )?;
    let model = GaussianModel::new(&w, &p, &b, &q)?;
    let linear = LinearGaussianModel::new(&w, &w, 0.1)?;
    let controls = f32s(24, 11)?.reshape(&[2, 3, 4])?;
    let rollout = linear.roll_out(&a, &p, &controls)?;
    let predictions = linear.predict(&rollout, &p)?;
    let run = run! {
        a.add(&b)?;
        a.mul(&b)?;
        a.exp()?;
        x.add(&a)?;
        x.matmul(&w)?;
        a.dot(&b)?;
        a.sum_all()?;
        a.div(&a.sum_all()?)?;
        x.relu()?;
        x.sigmoid()?;
        x.tanh()?;
        x.gelu_tanh()?;
        x.softmax(-1)?;
        x.batch_norm(&mean, &variance, Some(&a), Some(&b), 1e-5)?;
        kl_divergence(&q, &p)?;
        free_energy(&q, &p, &log_likelihood)?;
        shannon_entropy(&q)?;
        leaky_integrate_fire(&a, &b, 0.1, 0.9)?;
        reservoir_update(&a, &b, 0.1)?;
        stdp_update(&w, [&spikes, &spikes], [&a, &b], StdpParameters { learning_rate: 0.1, tau: 20.0 })?;
        kuramoto_step(&a, &b, Some(&w), 1.0, 0.01)?;
        order_parameter(&a)?;
        entropy_production(&a, 1.0)?;
        histogram_2d(&a, &b, 16, None)?;
        mutual_information(&histogram_2d(&a, &b, 16, None)?)?;
        conditional_entropy(&histogram_2d(&a, &b, 16, None)?)?;
        time_delayed_embedding(&a, 2, 1)?;
        hadamard(&state, 0)?;
        pauli_x(&state, 0)?;
        phase_gate(&state, 0, 0.5)?;
        cnot(&state, 0, 1)?;
        generator.multinomial(&measurement_probabilities(&state)?, 1, true)?;
        heads.matmul(&heads.transpose(-2, -1)?)?.mul(scale)?.softmax(-1)?.matmul(&heads)?;
        rope_encoding(&heads, 0, 10_000.0)?;
        x.layer_norm(&[4], Some(&a), Some(&b), 1e-5)?;
        top_k_sampling(&x, 2, 1.0, &generator)?;
        w.index_select(0, &tokens)?;
        Matmul::new().activation(Activation::Relu).of(&x, &w)?;
        Matmul::new().bias(&a).activation(Activation::Relu).of(&x, &w)?;
        Matmul::new().bias(&a).activation(Activation::GeluTanh).of(&x, &w)?;
        fuse([&x], |[x]| x.exp() / x.exp().sum_group())?;
        w.gemv(&a)?;
        model.prediction_error(&a, &b)?;
        a.add(&model.gradient(&a, &b)?.mul(0.01)?)?;
        gaussian_kl_divergence([&a, &q], [&b, &p])?;
        gaussian_accuracy(&a, &p)?;
        fuse((&a, &b, 2.0, 3.0), |[x, y, a, b]| a * x + b * y)?;
        fuse((&a, &b, 0.9, 0.01), |[v, g, keep, rate]| keep * v + rate * g)?;
        linear.roll_out(&a, &p, &controls)?;
        linear.predict(&rollout, &p)?;
        expected_free_energy(&predictions, &b)?;
        sample_policy(&a, 1.0, &generator)?;
        linear.sample(&a, &controls, &generator)?;
        x.softmax(-1)?.sub(&y)?;
        fuse((&a, &b, 2.0), |[x, y, a]| a * x + y)?;
        a.aminmax(..)?;
        discretize(&a, 16, None)?.bincount(16)?;
        bins.select(0, 0)?.mul(256)?.add(&bins.select(0, 1)?.mul(16)?)?.add(&bins.select(0, 2)?)?.bincount(4096)?.reshape(&[16, 16, 16])?;
        transfer_entropy(&tokens, &tokens, 4, 1)?;
        transfer_entropy_of_counts(&counts)?;
        generator.uniform(0.0, TAU, &[64], DType::F32, &device)?;
        kuramoto_step(&a, &b, None, 1.0, 0.01)?;
        fuse([&a], |[v]| v.square().sum_group() * 0.5)?;
        reservoir_update(&a, &w.gemv(&a)?.add(&w.gemv(&b)?)?, 0.1)?;
        shannon_entropy(&measurement_probabilities(&state)?)?;
        state.div(&measurement_probabilities(&state)?.sum_all()?.sqrt()?)?;
        a.cast(DType::F64)?.sum_all()?;
        w.cast(DType::F64)?.gemv(&a.cast(DType::F64)?)?;
        a.cast(DType::F64)?.add(&b)?;
    };
    let run: BTreeSet<String> = run.into_iter().collect();
    // Text between backquotes is every second part.
    let last = |row: &Vec<String>| row.last().and_then(|cell| cell.split('`').nth(1).map(bare));
    let page: BTreeSet<String> = rows().iter().filter_map(last).collect();
    assert_eq!(page, run);
    Ok(())
}

#[test]
fn every_kernel_has_a_row_with_a_replacement() {
    let rows = rows();
    let (one, files): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.len() == 2);
    assert_eq!(one.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), KERNELS);
    let named: BTreeSet<(&str, &str)> = files
        .iter()
        .flat_map(|row| row[0].split(", ").map(|file| (file, row[1].as_str())))
        .flat_map(|(file, kernels)| kernels.split(", ").map(move |kernel| (file, kernel)))
        .collect();
    let wanted = FILES.iter().flat_map(|(file, kernels)| kernels.split(", ").map(|kernel| (*file, kernel)));
    assert_eq!(named, wanted.collect());
    for row in &rows {
        let replacement = &row[row.len() - 1];
        let others = ["out of scope", "the table above", "the rows of active_inference"];
        let is_known = replacement.contains('`') || others.contains(&replacement.as_str());
        assert!(is_known, "{row:?}");
    }
}
