//! The pull from flux values toward the lattice points that they snap to.
//!
//! | mode | value |
//! |---|---|
//! | [`SnapGradientMode::Weighted`] | (lattice - flux) exp(-n²/φ) |
//! | [`SnapGradientMode::Magnitude`] | \|flux - lattice\| / (exp(-n²/φ) + 1e-10) |
//! | [`SnapGradientMode::Plain`] | lattice - flux |
//!
//! Each is one fused expression, computed in f64 and rounded once.
//!
//! Tests: `tests/srt/phases.rs`.

use std::sync::LazyLock;

use super::operands::{REALS, check_dtypes, check_row, check_shapes};
use super::weights::weight;
use crate::error::Result;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// The form of [`snap_gradient`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SnapGradientMode {
    /// The signed pull toward the lattice, weighted by mode.
    #[default]
    Weighted,
    /// The distance divided by the weight, at most 1e10 times the distance.
    Magnitude,
    /// The difference.
    Plain,
}

impl SnapGradientMode {
    const ALL: [SnapGradientMode; 3] =
        [SnapGradientMode::Weighted, SnapGradientMode::Magnitude, SnapGradientMode::Plain];
}

static GRADIENTS: LazyLock<[Fused<3>; 3]> = LazyLock::new(|| {
    SnapGradientMode::ALL.map(|mode| {
        Fused::new(move |[flux, lattice, n2]| {
            let difference = lattice.cast(DType::F64) - flux.cast(DType::F64);
            let gradient = match mode {
                SnapGradientMode::Weighted => difference * weight(n2),
                SnapGradientMode::Magnitude => difference.abs() / (weight(n2) + 1e-10),
                SnapGradientMode::Plain => difference,
            };
            gradient.cast(flux.dtype())
        })
    })
});

/// Returns the pull of each flux value toward its lattice value. `n2` has the squared mode norm for each position of the last
/// dimension.
///
/// ```
/// use selvedge::srt::{SnapGradientMode, snap_gradient};
/// use selvedge::tensor::{Device, Tensor};
/// let [flux, lattice, n2] = [[1.5f64, 3.5], [2.0, 4.0], [0.0, 4.0]].map(|row| Tensor::new(row, &Device::cpu()));
/// let pull = snap_gradient(&flux?, &lattice?, &n2?, SnapGradientMode::Weighted)?;
/// assert_eq!(pull.to_vec::<f64>()?[0], 0.5);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`DTypeMismatch`](crate::Error::DTypeMismatch) for dtypes other than f32 and f64, or two of them;
/// [`InvalidArgument`](crate::Error::InvalidArgument) for two shapes, or an `n2` of another length than the last dimension;
/// [`DeviceMismatch`](crate::Error::DeviceMismatch).
pub fn snap_gradient(flux: &Tensor, lattice: &Tensor, n2: &Tensor, mode: SnapGradientMode) -> Result<Tensor> {
    const OPERATION: &str = "snap_gradient";
    check_dtypes(OPERATION, REALS, &[flux, lattice, n2])?;
    check_shapes(OPERATION, flux, lattice)?;
    check_row(OPERATION, "n2", n2, flux)?;
    GRADIENTS[mode as usize].run([flux, lattice, n2])
}
