//! φ and the numbers derived from it, as the nearest f64. The nearest f32 of each is its f64 rounded once.

/// The golden ratio φ = (1 + √5) / 2.
///
/// ```
/// use selvedge::srt::{INVERSE_PHI, PHI};
/// assert_eq!(PHI.to_bits(), 0x3ff9_e377_9b97_f4a8);
/// // `1.0 / PHI` is one bit lower than the nearest f64 of 1/φ.
/// assert_eq!((1.0 / PHI).to_bits() + 1, INVERSE_PHI.to_bits());
/// ```
pub const PHI: f64 = 1.618033988749895;

/// 1/φ = φ - 1.
pub const INVERSE_PHI: f64 = 0.6180339887498949;

/// 1/φ² = 1 - 1/φ.
pub const INVERSE_PHI_SQUARED: f64 = 0.38196601125010515;

/// √5 = 2φ - 1.
pub const SQRT5: f64 = 2.23606797749979;

/// The natural logarithm of φ.
pub const LN_PHI: f64 = 0.48121182505960347;

/// e^π - π.
pub const ESTAR: f64 = 19.999099979189477;

/// The deficit q = (2φ + e / (2φ²)) / (φ⁴ · [`ESTAR`]).
pub const Q_DEFICIT: f64 = 0.027395146919696148;

/// 1/√(1 + φ²), which makes the projector from eight to four dimensions orthogonal.
pub const PROJECTION_NORM: f64 = 0.5257311121191336;
