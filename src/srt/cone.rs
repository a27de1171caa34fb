//! The golden cones: tests of membership, the projection to them, and the weight of a vector in eight dimensions.
//!
//! ```text
//! Pair      perp_a(v) = c (v_{2a} - φ v_{2a+1}) >= 0 for a = 0..3 (the projector of `E8Layout::Adjacent`)
//! Null      <c_a, v> > 0 for four vectors c_a of unit length
//! ```
//!
//! 40 roots of E8 are in the pair cone, 8 of them inside of it, and 36 in the null cone. A scalar product is one fma an entry, in
//! the order of the entries, from 0.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use super::constants::{INVERSE_PHI, PHI, PROJECTION_NORM};
use super::e8::{E8Layout, quadratic};
use super::rows::{Row, RowKernel, WIDTH, columns, map};
use crate::driver::ByValue;
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor, TensorOperand};
use crate::types::DType;

const TEST: &str = "golden_cone_test";
const WEIGHT: &str = "weight_8d";
const PROJECT_PAIR: RowKernel =
    RowKernel { operation: "golden_cone_project", entries: ["e8_project_pair_f32", "e8_project_pair_f64"] };
const PROJECT_NULL: RowKernel =
    RowKernel { operation: "golden_cone_project", entries: ["e8_project_null_f32", "e8_project_null_f64"] };

/// The weight outside of the null cone.
const OUTSIDE: f64 = 1e-9;

/// The normals of the null cone.
const NORMALS: [Row; 4] = [
    [-0.152753, -0.312330, 0.192683, -0.692448, 0.013308, 0.531069, 0.153449, 0.238219],
    [0.270941, 0.201058, 0.532514, -0.128468, 0.404635, -0.475518, -0.294881, 0.330591],
    [0.157560, 0.189639, 0.480036, 0.021016, 0.274831, -0.782436, 0.060319, 0.130225],
    [0.476719, 0.111410, 0.464671, -0.543379, -0.142049, -0.150498, -0.314296, 0.327929],
];

/// A golden cone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GoldenCone {
    /// perp_a(v) >= tolerance, of [`E8Layout::Adjacent`]: v_{2a} >= φ v_{2a+1} at the tolerance 0.
    Pair,
    /// <c_a, v> > tolerance, of four vectors.
    Null,
}

impl GoldenCone {
    /// Returns the tolerance of its definition: 0 for the pair cone, 1e-10 for the null cone.
    pub const fn tolerance(self) -> f64 {
        match self {
            GoldenCone::Pair => 0.0,
            GoldenCone::Null => 1e-10,
        }
    }

    /// Returns whether a vector is in the cone, as [`golden_cone_test`] does for the rows of a tensor.
    ///
    /// ```
    /// use selvedge::srt::GoldenCone;
    /// let v = [2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0];
    /// assert!(GoldenCone::Pair.contains(&v, 0.0));
    /// ```
    pub fn contains(self, v: &[f64; WIDTH], tolerance: f64) -> bool {
        match self {
            GoldenCone::Pair => {
                v.chunks(2).all(|pair| pair[1].mul_add(-PHI, pair[0]) * PROJECTION_NORM >= tolerance)
            }
            GoldenCone::Null => NORMALS.iter().all(|normal| {
                let product = normal.iter().zip(v).fold(0.0, |sum: f64, (c, v)| v.mul_add(*c, sum));
                product > tolerance
            }),
        }
    }
}

/// The test of membership as an expression.
fn is_in<'g>(cone: GoldenCone, v: [Expr<'g>; WIDTH], tolerance: Expr<'g>) -> Expr<'g> {
    let tests = match cone {
        GoldenCone::Pair => {
            let [a, b, c, d, e, f, g, h] = v;
            [[a, b], [c, d], [e, f], [g, h]].map(|[x, y]| (y.fma(-PHI, x) * PROJECTION_NORM).ge(tolerance))
        }
        GoldenCone::Null => NORMALS.map(|normal| {
            let [first, rest @ ..] = v;
            let mut product = first * normal[0];
            for (v, c) in rest.into_iter().zip(&normal[1..]) {
                product = v.fma(*c, product);
            }
            product.gt(tolerance)
        }),
    };
    let [a, b, c, d] = tests;
    a.logical_and(b).logical_and(c).logical_and(d)
}

/// Returns 1 for each row in the cone and 0 for the others, as u8: for the pair cone perp_a(v) >= `tolerance`, for the null cone
/// <c_a, v> > `tolerance`. A row with a NaN gives 0. [`GoldenCone::tolerance`] is the tolerance of the definition; results
/// of [`golden_cone_project`] are on the boundary, so test them with a negative one.
///
/// ```
/// use selvedge::srt::{E8Roots, GoldenCone, e8_roots, golden_cone_test};
/// use selvedge::tensor::Device;
/// let roots = e8_roots(E8Roots::All, &Device::cpu())?;
/// let inside = golden_cone_test(&roots, GoldenCone::Null, 1e-10)?.to_vec::<u8>()?;
/// assert_eq!(inside.iter().filter(|inside| **inside == 1).count(), 36);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] unless the last dimension is 8, and for a tolerance of NaN; [`Error::DTypeMismatch`] for a `v`
/// other than f32 and f64.
pub fn golden_cone_test(v: &Tensor, cone: GoldenCone, tolerance: f64) -> Result<Tensor> {
    static TESTS: LazyLock<[Fused<9>; 2]> = LazyLock::new(|| {
        [GoldenCone::Pair, GoldenCone::Null].map(|cone| {
            Fused::new(move |[a, b, c, d, e, f, g, h, tolerance]| {
                is_in(cone, [a, b, c, d, e, f, g, h], tolerance).cast(DType::U8)
            })
        })
    });
    let columns = columns(TEST, v)?;
    if tolerance.is_nan() {
        return Err(Error::invalid(TEST, "a tolerance of NaN", "a number"));
    }
    let [a, b, c, d, e, f, g, h] = columns.each_ref().map(TensorOperand::from);
    TESTS[cone as usize].run([a, b, c, d, e, f, g, h, tolerance.into()])
}

/// Returns the nearest point of the closed cone to each row. A row in the cone is unchanged, and so is, for the pair cone, each
/// pair in it; a row with a NaN gives a row of NaN.
///
/// - Pair: perp becomes max(perp, 0), pair by pair.
/// - Null: p = v + Σ μ_a c_a with μ >= 0, <c_a, p> >= 0 and μ_a <c_a, p> = 0. The 16 sets of nonzero μ are tried in the order of their
///   size, then lexicographically, and the first that meets all signs is taken, with a slack of 1e-12 for μ and 1e-9 for the products,
///   times the largest magnitude in the row if that exceeds 1. An infinite row outside of the cone gives a row of NaN.
///
/// # Errors
///
/// [`Error::InvalidArgument`] unless the last dimension is 8, [`Error::DTypeMismatch`] for a `v` other than f32 and f64.
pub fn golden_cone_project(v: &Tensor, cone: GoldenCone) -> Result<Tensor> {
    match cone {
        GoldenCone::Pair => map(&PROJECT_PAIR, v, ByValue([PHI, PROJECTION_NORM]), project_pair),
        GoldenCone::Null => {
            let cone = &*NULL_CONE;
            map(&PROJECT_NULL, v, ByValue(*cone), |row| project_null(row, cone))
        }
    }
}

fn project_pair(v: &Row) -> Row {
    let mut point = *v;
    if v.iter().any(|entry| entry.is_nan()) {
        return [f64::NAN; WIDTH];
    }
    for pair in point.chunks_exact_mut(2) {
        if let [x, y] = pair
            && *x < PHI * *y
        {
            let par = PROJECTION_NORM * (PHI * *x + *y);
            (*x, *y) = (PROJECTION_NORM * (PHI * par), PROJECTION_NORM * par);
        }
    }
    point
}

/// The constants of the projection to the null cone, as the kernel takes them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct NullCone {
    normals: [Row; 4],
    /// For each set of nonzero μ, in the order in which they are tried, the matrix M of μ_a = Σ M_ab <c_b, v>: minus the inverse of
    /// the set's Gram matrix, and 0 for the others.
    solutions: [[[f64; 4]; 4]; 16],
}

const _: () = assert!(size_of::<NullCone>() == (4 * 8 + 16 * 16) * 8);
// SAFETY: plain numbers; all zeros is a value.
unsafe impl Zeroable for NullCone {}
// SAFETY: repr(C) of numbers of this size in all, so there is no padding.
unsafe impl Pod for NullCone {}

/// The sets of nonzero μ, as bits, by size and then lexicographically.
const ACTIVE_SETS: [u8; 16] = [
    0b0000, 0b0001, 0b0010, 0b0100, 0b1000, 0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100, 0b0111, 0b1011,
    0b1101, 0b1110, 0b1111,
];

static NULL_CONE: LazyLock<NullCone> =
    LazyLock::new(|| NullCone { normals: NORMALS, solutions: ACTIVE_SETS.map(solution) });

fn dot(one: &Row, other: &Row) -> f64 {
    one.iter().zip(other).fold(0.0, |sum, (one, other)| sum + one * other)
}

/// Minus the inverse of the Gram matrix of a set of normals, by Gauss and Jordan: rows and columns of other normals are 0.
/// The normals are independent, so no pivot is 0.
fn solution(set: u8) -> [[f64; 4]; 4] {
    let is_active = |a: usize| set >> a & 1 == 1;
    let mut gram = [[0.0; 4]; 4];
    let mut inverse = [[0.0; 4]; 4];
    for a in 0..4 {
        for b in 0..4 {
            let both = is_active(a) && is_active(b);
            gram[a][b] = if both { dot(&NORMALS[a], &NORMALS[b]) } else { f64::from(u8::from(a == b)) };
        }
        inverse[a][a] = if is_active(a) { -1.0 } else { 0.0 };
    }
    for a in 0..4 {
        let pivot = gram[a][a];
        gram[a] = gram[a].map(|entry| entry / pivot);
        inverse[a] = inverse[a].map(|entry| entry / pivot);
        for b in (0..4).filter(|b| *b != a) {
            let factor = gram[b][a];
            for k in 0..4 {
                gram[b][k] -= factor * gram[a][k];
                inverse[b][k] -= factor * inverse[a][k];
            }
        }
    }
    inverse
}

fn project_null(v: &Row, cone: &NullCone) -> Row {
    let products = cone.normals.each_ref().map(|normal| dot(normal, v));
    let largest =
        v.iter().fold(1.0, |largest, entry| if entry.abs() > largest { entry.abs() } else { largest });
    for (at, solution) in cone.solutions.iter().enumerate() {
        let mut point = *v;
        let mut mu = [0.0; 4];
        if at > 0 {
            for (mu, row) in mu.iter_mut().zip(solution) {
                *mu = row.iter().zip(&products).fold(0.0, |sum, (entry, product)| sum + entry * product);
            }
            for (mu, normal) in mu.iter().zip(&cone.normals) {
                point.iter_mut().zip(normal).for_each(|(entry, c)| *entry += mu * c);
            }
        }
        let holds = mu.iter().all(|mu| *mu >= -1e-12 * largest)
            && cone.normals.iter().all(|normal| dot(normal, &point) >= -1e-9 * largest);
        if holds {
            return point;
        }
    }
    [f64::NAN; WIDTH]
}

/// Returns exp(-Q(v) / φ), with Q of [`E8Layout::Offset4`], for each row in the null cone, and 1e-9 for the others.
///
/// # Errors
///
/// [`Error::InvalidArgument`] unless the last dimension is 8, [`Error::DTypeMismatch`] for a `v` other than f32 and f64.
pub fn weight_8d(v: &Tensor) -> Result<Tensor> {
    static WEIGHTS: LazyLock<Fused<9>> = LazyLock::new(|| {
        Fused::new(|[a, b, c, d, e, f, g, h, tolerance]| {
            let v = [a, b, c, d, e, f, g, h];
            let weight = (quadratic(v, E8Layout::Offset4) * -INVERSE_PHI).exp();
            is_in(GoldenCone::Null, v, tolerance).choose(weight, OUTSIDE)
        })
    });
    let columns = columns(WEIGHT, v)?;
    let [a, b, c, d, e, f, g, h] = columns.each_ref().map(TensorOperand::from);
    WEIGHTS.run([a, b, c, d, e, f, g, h, GoldenCone::Null.tolerance().into()])
}
