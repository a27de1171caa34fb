//! The table of golden-ratio functions. A line has the documentation of Python, the arguments by kind, the kind of the result and,
//! unless it is the function of the same name, the Rust function.

use pyo3::prelude::*;
use selvedge::srt::{self, Checked, ProductMode};

use super::arguments::{
    AggregateArgument, ConeArgument, GoldenArgument, GradientModeArgument, IntervalArgument, LayoutArgument,
    ProductModeArgument, ResidualModeArgument, RootsArgument, argument_type, converted, corrections, given,
    passed, references, result_type,
};
use super::classes::PyGoldenTensor;
use crate::arguments::{DTypeArgument, DeviceArgument, Operand, Sizes, TensorArgument};
use crate::device::device_or_default;
use crate::error::Result;
use crate::tensor::PyTensor;

const FAST: ProductModeArgument = ProductModeArgument(ProductMode::Fast);
const PHI_MODE: ResidualModeArgument = ResidualModeArgument(srt::ResidualMode::Phi);
const OFFSET4: LayoutArgument = LayoutArgument(srt::E8Layout::Offset4);

macro_rules! function {
    ($name:ident) => {
        srt::$name
    };
    ($name:ident $other:expr) => {
        $other
    };
}

macro_rules! functions {
    ($($document:literal $name:ident($($argument:ident: $kind:ident $(= $default:expr)?),*) -> $result:ident $(= $function:expr)?;)*) => {
        $(
            #[doc = $document]
            #[pyfunction]
            #[pyo3(signature = ($($argument $(= $default)?),*))]
            fn $name(py: Python<'_>, $($argument: argument_type!($kind)),*) -> Result<result_type!($result)> {
                let work = || -> selvedge::Result<result_type!($result)> {
                    converted!($result function!($name $($function)?)($(passed!($kind $argument)),*))
                };
                Ok(py.detach(work)?)
            }
        )*

        /// Adds the functions to the module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

functions! {
    // Numbers.
    "phi^n, for |n| up to 1474." phi_pow(n: i32) -> f64;
    "The Fibonacci number F(k); an ExactArithmeticError beyond |k| = 184." fibonacci(k: i32) -> i128 = srt::fibonacci::<i128>;
    "The Lucas number L(k); an ExactArithmeticError beyond |k| = 182." lucas(k: i32) -> i128 = srt::lucas::<i128>;
    "F(k) of each index as i64; an ExactArithmeticError beyond 92." fibonacci_batch(k: tensor) -> checked;
    "L(k) of each index as i64; an ExactArithmeticError beyond 90." lucas_batch(k: tensor) -> checked;
    "F(k) of each index rounded to f64." fibonacci_batch_f64(k: tensor) -> tensor;
    "L(k) of each index rounded to f64." lucas_batch_f64(k: tensor) -> tensor;
    "F(k) rounded to f64, infinite beyond its range." fibonacci_f64(k: i32) -> f64 = |k| Ok(srt::fibonacci_f64(k));
    "L(k) rounded to f64, infinite beyond its range." lucas_f64(k: i32) -> f64 = |k| Ok(srt::lucas_f64(k));
    "F(0) to F(count - 1) as i64 or f64." fibonacci_sequence(count: usize, dtype: dtype = DTypeArgument(selvedge::DType::I64), device: device = None) -> tensor;
    "F(k) modulo m." fib_mod(k: u64, m: u64) -> u64;
    "F(k) modulo m of each index of u64." fib_mod_batch(k: tensor, m: u64) -> tensor;
    "The period of the Fibonacci numbers modulo m." pisano(m: u64) -> u64;
    "floor(phi n), exactly." winding_recursion(n: i64) -> i64;
    "floor(n / phi), exactly." winding_recursion_inverse(n: i64) -> i64;
    "floor(phi n) of each element of i64, exactly." winding_recursion_batch(n: tensor) -> checked;
    "floor(n / phi) of each element of i64, exactly." winding_recursion_inverse_batch(n: tensor) -> checked;
    "phi v of each element." golden_recursion(v: tensor) -> tensor;
    "v / phi of each element." golden_recursion_inverse(v: tensor) -> tensor;
    "The generation of each row of 4 windings, as i32: 0 of zeros, otherwise 1 + the largest k with phi^k <= max |n|." generation_batch(rows: tensor) -> tensor;
    "The generation of 4 windings: 0 of zeros, otherwise 1 + the largest k with phi^k <= max |n|." generation(row: windings) -> i32 = |row| Ok(srt::generation(row));
    // Corrections.
    "The factor 1 + sign q/N." correction(divisor: f64, sign: sign = 1) -> f64;
    "Each element times the factor of its own pair (divisor, sign), in row-major order." correct(values: tensor, corrections: pairs) -> tensor;
    "Each element times the factors of its own range (start, end) of the corrections, from left to right." correct_chain(values: tensor, corrections: pairs, ranges: ranges) -> tensor;
    "v (1 + q/first) (1 - q/second) of each element." compound_correction(values: tensor, first: f64, second: f64) -> tensor;
    "The dimension of a structure of the table, for an index from 0 to 7." structure_dimension(index: usize) -> u32;
    "The factor 1 + sign coefficient q^q_power phi^phi_power." special_correction(sign: i32, coefficient: f64, q_power: i32, phi_power: i32) -> f64;
    "The suppression factor 1 / (1 + q phi^k)." suppression(k: i32) -> f64;
    // Products.
    "A B. The mode is \"fast\", or \"exact\" for the same bits on every device." mm(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "A^T B of A stored as K x M." mm_tn(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "A B^T of B stored as N x K." mm_nt(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "A^T B^T." mm_tt(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "A^H B with the conjugate transpose of A." mm_hn(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "A B^H with the conjugate transpose of B." mm_nh(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "A B of each pair of matrices of two batches." bmm(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "phi^n A B." mm_phi(a: tensor, b: tensor, n: i32, mode: mode = FAST) -> tensor;
    "(1 + sign q/N) A B." mm_corrected(a: tensor, b: tensor, divisor: f64, sign: sign = 1, mode: mode = FAST) -> tensor;
    "A B - B A/phi of square matrices." golden_commutator(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "A B + B A/phi of square matrices." golden_anticommutator(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "The sum over k of a_ik b_kj exp(-k^2/phi)." mm_golden_weighted(a: tensor, b: tensor, mode: mode = FAST) -> tensor;
    "exp(i pi n/phi) A B, which is complex." mm_golden_phase(a: tensor, b: tensor, n: i32, mode: mode = FAST) -> tensor;
    "psi + the sum of factors[k] projections[k] psi." projection_sum(psi: tensor, projections: tensors, factors: numbers, mode: mode = FAST) -> tensor;
    "The sum of weights[k] tensors[k]." weighted_sum(tensors: tensors, weights: numbers) -> tensor;
    // Complex numbers.
    "a / b of complex numbers." complex_divide(a: tensor, b: tensor) -> tensor;
    "1 / z of complex numbers." complex_reciprocal(z: tensor) -> tensor;
    "z exp(i theta) with an angle for each element." rotate_phases(z: tensor, theta: tensor) -> tensor;
    "z exp(i theta) with one angle." rotate_phase(z: tensor, theta: f64) -> tensor;
    "z exp(i pi/phi)." golden_rotate(z: tensor) -> tensor;
    "z / |z|, and 0 where z is 0." normalize_phase(z: tensor) -> tensor;
    "z with its phase rounded to a multiple of pi/k." quantize_phase_pi(z: tensor, k: i64) -> tensor;
    "The sum of z_i phi^-i over the last dimension." phi_weighted_sum(z: tensor) -> tensor;
    // Residuals and weights.
    "x + r/phi; the modes are \"phi\", \"phi_symmetric\" and \"standard\"." phi_residual(x: tensor, r: tensor, mode: residual = PHI_MODE) -> tensor;
    "relu of the residual connection; NaN becomes 0." phi_residual_relu(x: tensor, r: tensor, mode: residual = PHI_MODE) -> tensor;
    "relu of the residual connection; NaN stays NaN." phi_residual_relu_keeping_nan(x: tensor, r: tensor, mode: residual = PHI_MODE) -> tensor;
    "gelu, by tanh, of x + r/phi." phi_residual_gelu(x: tensor, r: tensor) -> tensor;
    "The layer norm of x + r/phi over the last dimension." phi_residual_layer_norm(x: tensor, r: tensor, gamma: optional = None, beta: optional = None, eps: f64 = 1e-5) -> tensor;
    "exp(-s/phi); of complex numbers exp(-|z|^2/phi)." golden_weight(s: tensor) -> tensor;
    "exp(-|n|^2/phi) of each row of 4 or 8." golden_weight_of_rows(n: tensor) -> tensor;
    "The sum of a_i b_i exp(-i^2/phi) over the last dimension." golden_inner(a: tensor, b: tensor) -> tensor;
    "a weighted by exp(-i/phi) and divided by its golden norm, along the last dimension." golden_normalize(a: tensor) -> tensor;
    // Snapping.
    "The nearest a + b phi with |a|, |b| <= bound of each element of f64." snap(values: tensor, bound: i64) -> golden;
    "The values minus their points." snap_residual(values: tensor, points: golden) -> tensor;
    "The square root of the sum of squared residuals." snap_distance(values: tensor, points: golden) -> tensor;
    "The pull of each flux value toward its lattice value; the modes are \"weighted\", \"magnitude\" and \"plain\"." snap_gradient(flux: tensor, lattice: tensor, n2: tensor, mode: gradient) -> tensor;
    // Phases and syntony.
    "The differentiation phase of v with standard normal noise g." resonant_d_phase(v: tensor, n2: tensor, g: tensor, s: f64, sigma: f64) -> tensor;
    "The differentiation phase of rows with a syntony for each." resonant_d_phase_batch(v: tensor, n2: tensor, g: tensor, s: tensor, sigma: f64) -> tensor;
    "The harmonization phase of v." h_phase(v: tensor, n2: tensor, s: f64) -> tensor;
    "The harmonization phase of rows with a syntony for each." h_phase_batch(v: tensor, n2: tensor, s: tensor) -> tensor;
    "v times the factors of the D phase without noise and of the H phase." phase_cycle(v: tensor, n2: tensor, s: f64) -> tensor;
    "The syntony of a vector, or of each row." syntony(v: tensor, n2: tensor) -> tensor;
    "One number of all syntonies: \"mean\", \"minimum\" or \"geometric\"." aggregate_syntony(s: tensor, aggregate: aggregate) -> tensor;
    "1 - |d - h| / (|d - psi| + 1e-10), from 0 to 1, for d = D[psi] and h = H[d]." operator_syntony(psi: tensor, d: tensor, h: tensor) -> tensor;
    "The index of the largest syntony, and its value." argmax_syntony(s: tensor) -> two;
    // E8 and cones.
    "Roots of E8 as rows of f64; the sets are \"all\", \"positive\", \"pair_cone\", \"null_cone\" and \"e6\"." e8_roots(set: roots, device: device = None) -> tensor;
    "Rows of f64: row i is root i modulo 240 times 1 + i/240, rounded down." e8_weights(count: usize, device: device = None) -> tensor;
    "The parallel and the perpendicular part of each row of 8; pairs of a layout are \"offset4\" or \"adjacent\"." project_e8(v: tensor, layout: layout = OFFSET4) -> two;
    "|parallel|^2 - |perpendicular|^2 of each row of 8." quadratic_form(v: tensor, layout: layout = OFFSET4) -> tensor;
    "The point of scale E8 that is nearest to each row of 8." e8_quantize(v: tensor, scale: f64 = 1.0) -> tensor = srt::e8_quantize_scaled;
    "The sum over rows of 8 of w exp(-pi Q(v)/t)." theta_sum(v: tensor, weights: operand, t: f64, layout: layout = OFFSET4) -> tensor;
    "1 for each row of 8 in the cone and 0 for the others; the cones are \"pair\" and \"null\"." golden_cone_test(v: tensor, cone: cone, tolerance: f64 = 0.0) -> tensor;
    "The point of the closed cone that is nearest to each row of 8." golden_cone_project(v: tensor, cone: cone) -> tensor;
    "exp(-Q(v)/phi) of each row of 8 in the null cone, and 1e-9 of the others." weight_8d(v: tensor) -> tensor;
    // Noise.
    "The word of a seed's stream at an index." noise_word(seed: u64, index: u64) -> u64 = |seed, index| Ok(srt::noise_word(seed, index));
    "The seed of the stream for a generation and a purpose." noise_stream(seed: u64, generation: u64, purpose: u64) -> u64 = |seed, generation, purpose| Ok(srt::noise_stream(seed, generation, purpose));
    "Words of a seed's stream as u64." noise_words(seed: u64, first: u64, shape: shape, device: device = None) -> tensor;
    "Uniform numbers of a seed's stream in f64; the intervals are \"half_open\" and \"open_at_zero\"." uniform_noise(seed: u64, first: u64, interval: interval, shape: shape, device: device = None) -> tensor;
    "Standard normal numbers of a seed's stream in f64." gauss(seed: u64, first: u64, shape: shape, device: device = None) -> tensor;
    "The Box-Muller transform of pairs of uniform numbers along the last dimension." box_muller(u: tensor) -> tensor;
    "(lo + (hi - lo) tanh |rho|) g: noise scaled by a residual." residual_modulated_noise(g: tensor, rho: tensor, lo: f64, hi: f64) -> tensor;
}
