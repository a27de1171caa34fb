//! Golden-ratio tensor operations on the CPU and CUDA devices: φ-scaled products, residuals and norms, exact arithmetic in
//! Q(φ), snapping to Z\[φ\], phases and syntony, E8 lattice operations.
//!
//! | file | contents |
//! |---|---|
//! | `constants` | φ and the numbers derived from it |
//!
//! Operations on tensors are fused expressions, products and row operations of [`tensor`](crate::tensor), so they accept
//! every device and layout that tensors have.

mod constants;

pub use constants::{
    ESTAR, INVERSE_PHI, INVERSE_PHI_SQUARED, LN_PHI, PHI, PROJECTION_NORM, Q_DEFICIT, SQRT5,
};
