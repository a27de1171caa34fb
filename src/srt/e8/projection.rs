//! The projector from eight dimensions to two orthogonal spaces of four, and its quadratic form.
//!
//! ```text
//!               par_i                    perp_i                   (x_i, y_i)
//! Offset4       c (x_i + φ y_i)          c (φ x_i - y_i)          (v_i, v_{i+4})
//! Adjacent      c (φ x_i + y_i)          c (x_i - φ y_i)          (v_{2i}, v_{2i+1})       c = 1/√(1 + φ²)
//! ```
//!
//! The projector is orthogonal: |par|² + |perp|² = |v|². The bracket is one fma, so the error is at most 2 units in the last
//! place of the terms, and the CPU and CUDA devices give the same bits.

use std::sync::LazyLock;

use super::super::constants::{PHI, PROJECTION_NORM, SQRT5};
use super::super::rows::{WIDTH, check, columns};
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::Slice;

const PROJECT: &str = "project_e8";
const FORM: &str = "quadratic_form";

/// The entries of a row that the projector pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum E8Layout {
    /// v_i with v_{i+4}.
    #[default]
    Offset4,
    /// v_{2i} with v_{2i+1}.
    Adjacent,
}

impl E8Layout {
    /// The first and the second entries of the pairs, as views of `v`.
    fn pairs(self, v: &Tensor) -> Result<[Tensor; 2]> {
        Ok(match self {
            E8Layout::Offset4 => [v.narrow(-1, 0, 4)?, v.narrow(-1, 4, 4)?],
            E8Layout::Adjacent => {
                [v.slice(-1, Slice::from(..).step(2))?, v.slice(-1, Slice::from(1..).step(2))?]
            }
        })
    }
}

/// Returns the projections (par, perp) of each row, four numbers a row each.
///
/// ```
/// use selvedge::srt::{E8Layout, project_e8};
/// use selvedge::tensor::{Device, Tensor};
/// let v = Tensor::new([[1.0f64, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], &Device::cpu())?;
/// let (par, perp) = project_e8(&v, E8Layout::Offset4)?;
/// assert_eq!(par.to_vec::<f64>()?, [0.5257311121191336, 0.5257311121191336, 0.0, 0.0]);
/// assert_eq!(perp.shape()[..], [1, 4]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`InvalidArgument`](crate::Error::InvalidArgument) unless the last dimension is 8,
/// [`DTypeMismatch`](crate::Error::DTypeMismatch) for a `v` other than f32 and f64.
pub fn project_e8(v: &Tensor, layout: E8Layout) -> Result<(Tensor, Tensor)> {
    static OFFSET4: LazyLock<Fused<2, 2>> = LazyLock::new(|| {
        Fused::with_outputs(|[x, y]| [y.fma(PHI, x) * PROJECTION_NORM, x.fma(PHI, -y) * PROJECTION_NORM])
    });
    static ADJACENT: LazyLock<Fused<2, 2>> = LazyLock::new(|| {
        Fused::with_outputs(|[x, y]| [x.fma(PHI, y) * PROJECTION_NORM, y.fma(-PHI, x) * PROJECTION_NORM])
    });
    check(PROJECT, v)?;
    let [x, y] = layout.pairs(v)?;
    let project = match layout {
        E8Layout::Offset4 => &OFFSET4,
        E8Layout::Adjacent => &ADJACENT,
    };
    let [par, perp] = project.run_all([&x, &y])?;
    Ok((par, perp))
}

/// The quadratic form of a row's entries: the sum of four pairs' numerators, then one division.
pub(in super::super) fn quadratic<'g>(v: [Expr<'g>; WIDTH], layout: E8Layout) -> Expr<'g> {
    let [a, b, c, d, e, f, g, h] = v;
    let numerator = |[x, y]: [Expr<'g>; 2]| match layout {
        // 4xy - x² + y²
        E8Layout::Offset4 => x.fma(y * 4.0 - x, y * y),
        // 4xy + x² - y²
        E8Layout::Adjacent => x.fma(y * 4.0 + x, -(y * y)),
    };
    let [first, second, third, fourth] = match layout {
        E8Layout::Offset4 => [[a, e], [b, f], [c, g], [d, h]],
        E8Layout::Adjacent => [[a, b], [c, d], [e, f], [g, h]],
    }
    .map(numerator);
    ((first + second) + (third + fourth)) / SQRT5
}

/// Returns Q(v) = |par|² - |perp|² of each row, by its closed form: the sum over the pairs of (4xy - x² + y²) / √5, with
/// `Offset4`, or (4xy + x² - y²) / √5, with `Adjacent`.
///
/// # Errors
///
/// As [`project_e8`].
pub fn quadratic_form(v: &Tensor, layout: E8Layout) -> Result<Tensor> {
    static FORMS: LazyLock<[Fused<WIDTH>; 2]> = LazyLock::new(|| {
        [E8Layout::Offset4, E8Layout::Adjacent].map(|layout| Fused::new(move |v| quadratic(v, layout)))
    });
    FORMS[layout as usize].run(columns(FORM, v)?.each_ref())
}
