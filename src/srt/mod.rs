//! Golden-ratio tensor operations on the CPU and CUDA devices: φ-scaled products, residuals and norms, exact arithmetic in
//! Q(φ), snapping to Z\[φ\], phases and syntony, E8 lattice operations.
//!
//! | file | contents |
//! |---|---|
//! | `constants` | φ and the numbers derived from it |
//! | `phi_pow` | integer powers of φ |
//! | `fibonacci`, `pisano` | Fibonacci and Lucas numbers; modulo m, and their period |
//! | `recursion` | v → φv on floats and integer windings, generations |
//! | `exact` | Q(φ) and Z\[φ\] |
//! | `symbolic` | expressions of exact numbers and inputs, evaluated in batches |
//! | `snap`, `ramp` | the nearest point of Z\[φ\]; bounds that grow by φ |
//! | `corrections` | factors 1 ± q/N, chains, special and suppression factors |
//! | `checked` | integer results of a batch with their overflow |
//! | `e8` | E8: roots, projection, quadratic form, nearest point, theta sum |
//! | `cone` | the golden cones: tests, projections, weights |
//! | `rows` | operations on rows of eight numbers |
//! | `products` | matrix products, scaled and weighted by φ |
//! | `exact_product` | products with the same bits on every device |
//! | `complex` | complex division, rotation and quantization of phases, sums weighted by φ⁻ⁱ |
//! | `residual` | x + r/φ with relu, gelu and layer norm |
//! | `norms` | golden batch norm and layer norm, running statistics |
//! | `weights` | exp(-n²/φ) and the sums and norms weighted by it |
//! | `noise` | uniform and normal numbers as functions of a seed and a position |
//! | `phases` | the D and H phases, of one state and of batches |
//! | `syntony` | syntony and its aggregates |
//! | `crystallize` | the H phase followed by snapping |
//! | `gradient` | the pull from flux values toward lattice points |
//! | `evolver` | the resonant evolution strategy |
//! | `operands` | checks of operands; complex numbers as real parts |
//!
//! Operations on tensors are fused expressions, products and row operations of [`tensor`](crate::tensor), so they accept
//! every device and layout that tensors have.

mod brackets;
mod checked;
mod complex;
mod cone;
mod constants;
mod corrections;
mod crystallize;
mod e8;
mod evolver;
mod exact;
mod exact_product;
mod fibonacci;
mod gradient;
mod noise;
mod norms;
mod operands;
mod phases;
mod phi_pow;
mod pisano;
mod products;
mod ramp;
mod recursion;
mod residual;
mod rows;
mod snap;
mod symbolic;
mod syntony;
mod weights;

pub use checked::Checked;
pub use complex::{
    complex_divide, complex_reciprocal, golden_rotate, normalize_phase, phi_weighted_sum, quantize_phase_pi,
    rotate_phase, rotate_phases,
};
pub use cone::{GoldenCone, golden_cone_project, golden_cone_test, weight_8d};
pub use constants::{
    ESTAR, INVERSE_PHI, INVERSE_PHI_SQUARED, LN_PHI, PHI, PROJECTION_NORM, Q_DEFICIT, SQRT5,
};
pub use corrections::{
    Correction, compound_correction, correct, correct_chain, correction, q_deficit, special_correction,
    structure_dimension, suppression,
};
pub use crystallize::harmonize_and_crystallize;
pub use e8::{
    E8Layout, E8Roots, e8_quantize, e8_quantize_scaled, e8_roots, e8_weights, project_e8, quadratic_form,
    theta_sum,
};
pub use evolver::{Evolver, EvolverEnd, EvolverOptions, GenerationReport};
pub use exact::{GoldenExact, GoldenInteger, GoldenTensor, Rational};
pub use fibonacci::{
    fibonacci, fibonacci_batch, fibonacci_batch_f64, fibonacci_f64, fibonacci_sequence, lucas, lucas_batch,
    lucas_batch_f64, lucas_f64,
};
pub use gradient::{SnapGradientMode, snap_gradient};
pub use noise::{
    Uniform, box_muller, gauss, noise_stream, noise_word, noise_words, residual_modulated_noise,
    uniform_noise,
};
pub use norms::{
    GoldenNorm, GoldenTarget, RunningStatistics, golden_batch_norm_1d, golden_batch_norm_2d,
    golden_layer_norm,
};
pub use phases::{h_phase, h_phase_batch, phase_cycle, resonant_d_phase, resonant_d_phase_batch};
pub use phi_pow::{phi_pow, phi_pow_f32};
pub use pisano::{fib_mod, fib_mod_batch, pisano};
pub use products::{
    ProductMode, bmm, gemm, golden_anticommutator, golden_commutator, mm, mm_corrected, mm_golden_phase,
    mm_golden_weighted, mm_hn, mm_nh, mm_nt, mm_phi, mm_tn, mm_tt, projection_sum, weighted_sum,
};
pub use ramp::{DwellTimes, dwell, precision_ramp, snap_ramp};
pub use recursion::{
    generation, generation_batch, golden_recursion, golden_recursion_inverse, winding_recursion,
    winding_recursion_batch, winding_recursion_inverse, winding_recursion_inverse_batch,
};
pub use residual::{
    ResidualMode, phi_residual, phi_residual_gelu, phi_residual_layer_norm, phi_residual_relu,
    phi_residual_relu_keeping_nan,
};
pub use snap::{LARGEST_SNAP_BOUND, snap, snap_distance, snap_residual};
pub use symbolic::{CompiledExpr, Constant, SymExpr};
pub use syntony::{SyntonyAggregate, aggregate_syntony, argmax_syntony, operator_syntony, syntony};
pub use weights::{golden_inner, golden_normalize, golden_weight, golden_weight_of_rows};
