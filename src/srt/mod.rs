//! Golden-ratio tensor operations on the CPU and CUDA devices: φ-scaled products, residuals and norms, exact arithmetic in
//! Q(φ), snapping to Z\[φ\], phases and syntony, E8 lattice operations.
//!
//! | file | contents |
//! |---|---|
//! | `constants` | φ and the numbers derived from it |
//! | `e8` | E8: roots, projection, quadratic form, nearest point, theta sum |
//! | `cone` | the golden cones: tests, projections, weights |
//! | `rows` | operations on rows of eight numbers |
//!
//! Operations on tensors are fused expressions, products and row operations of [`tensor`](crate::tensor), so they accept
//! every device and layout that tensors have.

mod cone;
mod constants;
mod e8;
mod rows;

pub use cone::{GoldenCone, golden_cone_project, golden_cone_test, weight_8d};
pub use constants::{
    ESTAR, INVERSE_PHI, INVERSE_PHI_SQUARED, LN_PHI, PHI, PROJECTION_NORM, Q_DEFICIT, SQRT5,
};
pub use e8::{
    E8Layout, E8Roots, e8_quantize, e8_quantize_scaled, e8_roots, e8_weights, project_e8, quadratic_form,
    theta_sum,
};
