//! The roots of E8: the 240 lattice vectors of squared length 2.
//!
//! Order: the 112 vectors ±e_i ± e_j by i, then j > i, then the signs --, -+, +-, ++; then the 128 vectors of ±1/2 with an even
//! number of minus signs, by the number whose bit b is the sign of entry b.

use super::super::cone::GoldenCone;
use super::super::rows::{Row, WIDTH};
use crate::error::Result;
use crate::tensor::{Device, Tensor};
use crate::types::DType;

/// A set of roots of E8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum E8Roots {
    /// All 240.
    #[default]
    All,
    /// The 120 whose first nonzero entry is positive.
    Positive,
    /// Roots in a golden cone at its own tolerance: 40 in [`GoldenCone::Pair`], 36 in [`GoldenCone::Null`].
    Cone(GoldenCone),
    /// The 72 roots of E6: v5 = v6 = -v7.
    E6,
}

impl E8Roots {
    fn contains(self, v: &Row) -> bool {
        match self {
            E8Roots::All => true,
            E8Roots::Positive => v.iter().find(|entry| **entry != 0.0).is_some_and(|entry| *entry > 0.0),
            E8Roots::Cone(cone) => cone.contains(v, cone.tolerance()),
            E8Roots::E6 => v[5] == v[6] && v[6] == -v[7],
        }
    }
}

/// All roots in order.
fn roots() -> Vec<Row> {
    let mut roots = Vec::with_capacity(240);
    for i in 0..WIDTH {
        for j in i + 1..WIDTH {
            for (first, second) in [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)] {
                let mut root = [0.0; WIDTH];
                (root[i], root[j]) = (first, second);
                roots.push(root);
            }
        }
    }
    let even = (0u32..1 << WIDTH).filter(|signs| signs.count_ones() % 2 == 0);
    roots.extend(even.map(|signs| std::array::from_fn(|bit| if signs >> bit & 1 == 1 { -0.5 } else { 0.5 })));
    roots
}

/// Returns a set of roots as the rows of an f64 tensor.
///
/// ```
/// use selvedge::srt::{E8Roots, GoldenCone, e8_roots};
/// use selvedge::tensor::Device;
/// assert_eq!(e8_roots(E8Roots::All, &Device::cpu())?.shape()[..], [240, 8]);
/// assert_eq!(e8_roots(E8Roots::Cone(GoldenCone::Null), &Device::cpu())?.shape()[..], [36, 8]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// The errors of memory and of a copy to the device.
pub fn e8_roots(set: E8Roots, device: &Device) -> Result<Tensor> {
    let chosen: Vec<Row> = roots().into_iter().filter(|root| set.contains(root)).collect();
    Tensor::from_vec(chosen.concat(), &[chosen.len(), WIDTH], device)
}

/// Returns `n` weight vectors as the rows of an f64 tensor: row i is root i mod 240 times 1 + ⌊i / 240⌋.
///
/// # Errors
///
/// The errors of memory and of a copy to the device; [`InvalidArgument`](crate::Error::InvalidArgument) for more rows than a
/// tensor can have.
pub fn e8_weights(n: usize, device: &Device) -> Result<Tensor> {
    let roots = e8_roots(E8Roots::All, device)?;
    let shells = n.div_ceil(240);
    let factors = Tensor::arange(1.0, shells as f64 + 1.0, 1.0, DType::F64, device)?;
    let all = factors.reshape(&[shells as isize, 1, 1])?.mul(&roots)?;
    all.reshape(&[shells as isize * 240, WIDTH as isize])?.narrow(0, 0, n)
}
