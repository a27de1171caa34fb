//! Operations on the E8 lattice: all vectors of eight integers, or of eight halves of odd integers, whose sum is even.
//!
//! | file | contents |
//! |---|---|
//! | `roots` | the 240 vectors of squared length 2, and sets of them |
//! | `projection` | the orthogonal projector to two spaces of four dimensions, and the quadratic form of it |
//! | `quantize` | the nearest lattice point |
//! | `theta` | the theta sum over a set of vectors |
//!
//! The operations take tensors of f32 or f64 whose last dimension is 8, on any device; the leading dimensions are those of
//! the result.

mod projection;
mod quantize;
mod roots;
mod theta;

pub(super) use projection::quadratic;
pub use projection::{E8Layout, project_e8, quadratic_form};
pub use quantize::{e8_quantize, e8_quantize_scaled};
pub use roots::{E8Roots, e8_roots, e8_weights};
pub use theta::theta_sum;
