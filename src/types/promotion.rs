//! Promotion: the common dtype of two operands.
//!
//! The rules are PyTorch's, which compare kinds first and widths second: bool, then integers, then real
//! floats, then complex. A dtype of a later kind is never widened for one of an earlier kind: i64 with f16 is
//! f16, while NumPy takes a type that holds both (f64). PyTorch has no rule for unsigned integers wider than
//! 8 bits beside signed ones. As NumPy does, selvedge takes the narrowest signed integer that holds both. For
//! u64 beside a signed integer there is none (NumPy takes f64, which loses integers), and selvedge returns an
//! error that names the cast.

use super::DType;
use crate::error::{Error, Result};

/// The kind of a number without a dtype, as in `x + 2`. Such a number takes part in promotion by kind, never
/// by width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberKind {
    /// A truth value.
    Bool,
    /// An integer.
    Integer,
    /// A real number.
    Real,
    /// A complex number.
    Complex,
}

impl DType {
    /// Returns the kind of number that the elements are.
    pub const fn kind(self) -> NumberKind {
        match self {
            DType::Bool => NumberKind::Bool,
            _ if self.is_integer() => NumberKind::Integer,
            _ if self.is_complex() => NumberKind::Complex,
            _ => NumberKind::Real,
        }
    }

    /// Returns the dtype of the parts of a complex dtype, and any other dtype itself.
    #[must_use]
    pub const fn part(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            _ => self,
        }
    }

    /// Returns the complex dtype whose parts hold numbers of a real dtype: c128 for f64, otherwise c64.
    #[must_use]
    pub const fn complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// Returns whether the dtype supports storage and casts only.
    pub const fn is_storage_only(self) -> bool {
        matches!(self, DType::F8E4M3 | DType::F8E5M2)
    }

    /// Returns the dtype that an operation on operands of both dtypes computes in.
    ///
    /// ```
    /// use selvedge::types::DType;
    /// assert_eq!(DType::I64.promote(DType::F16)?, DType::F16);
    /// assert_eq!(DType::U8.promote(DType::I8)?, DType::I16);
    /// assert_eq!(DType::F16.promote(DType::BF16)?, DType::F32);
    /// assert!(DType::U64.promote(DType::I64).is_err());
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for u64 beside a signed integer, and for an 8-bit float beside another dtype.
    pub fn promote(self, other: DType) -> Result<DType> {
        let (low, high) = if self.kind() as u8 <= other.kind() as u8 { (self, other) } else { (other, self) };
        if low == high {
            return Ok(low);
        }
        if low.is_storage_only() || high.is_storage_only() {
            return Err(no_common("f8e4m3 and f8e5m2 to be cast first, such as to f32", self, other));
        }
        match (low.kind(), high.kind()) {
            (NumberKind::Integer, NumberKind::Integer) => integers(low, high).ok_or_else(|| {
                no_common("u64 to be cast beside a signed integer, to i64 or f64", self, other)
            }),
            // Neither f16 nor bf16 holds all values of the other.
            (NumberKind::Real, NumberKind::Real) => match (low, high) {
                (DType::F64, _) | (_, DType::F64) => Ok(DType::F64),
                _ => Ok(DType::F32),
            },
            (NumberKind::Complex, NumberKind::Complex) => Ok(DType::C128),
            (NumberKind::Real, NumberKind::Complex) if low == DType::F64 => Ok(DType::C128),
            _ => Ok(high),
        }
    }

    /// Returns the dtype of an operation on an array of this dtype and a tensor without dimensions, which
    /// takes part by kind: the array's dtype, unless the other dtype is of a later kind. A complex number
    /// beside real floats takes the width of the floats.
    ///
    /// ```
    /// use selvedge::types::DType;
    /// assert_eq!(DType::F16.promote_zero_dim(DType::F64)?, DType::F16);
    /// assert_eq!(DType::I8.promote_zero_dim(DType::I64)?, DType::I8);
    /// assert_eq!(DType::I64.promote_zero_dim(DType::F64)?, DType::F64);
    /// assert_eq!(DType::F32.promote_zero_dim(DType::C128)?, DType::C64);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for an 8-bit float beside another dtype.
    pub fn promote_zero_dim(self, scalar: DType) -> Result<DType> {
        if self == scalar || self.is_storage_only() || scalar.is_storage_only() {
            return self.promote(scalar);
        }
        Ok(match (self.kind(), scalar.kind()) {
            (own, other) if own as u8 >= other as u8 => self,
            (NumberKind::Real, NumberKind::Complex) => self.complex(),
            _ => scalar,
        })
    }

    /// Returns the dtype of an operation on an array of this dtype and a number without one: the array's,
    /// unless the number is of a later kind. A number of a later kind has its usual width: i64, f32, or the
    /// complex dtype of the array's floats.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for an 8-bit float.
    pub fn promote_number(self, number: NumberKind) -> Result<DType> {
        if self.is_storage_only() {
            return Err(Error::DTypeMismatch {
                operation: "an operation with a number",
                wanted: "a cast first, such as to f32".to_owned(),
                found: self.name().to_owned(),
            });
        }
        Ok(match number {
            _ if number as u8 <= self.kind() as u8 => self,
            NumberKind::Bool => DType::Bool,
            NumberKind::Integer => DType::I64,
            NumberKind::Real => DType::F32,
            NumberKind::Complex => self.complex(),
        })
    }
}

/// Returns the common dtype of operands, each given with whether it has no dimensions, or `None` for no
/// operands.
///
/// # Errors
///
/// As [`DType::promote`].
pub(crate) fn common_dtype(operands: impl IntoIterator<Item = (DType, bool)>) -> Result<Option<DType>> {
    let mut groups: [Option<DType>; 2] = [None; 2];
    for (dtype, is_zero_dim) in operands {
        let group = &mut groups[usize::from(is_zero_dim)];
        *group = Some(group.map_or(Ok(dtype), |common| common.promote(dtype))?);
    }
    match groups {
        [Some(arrays), Some(scalars)] => arrays.promote_zero_dim(scalars).map(Some),
        [arrays, scalars] => Ok(arrays.or(scalars)),
    }
}

/// Returns the narrowest integer dtype that holds both.
fn integers(one: DType, two: DType) -> Option<DType> {
    if one.is_signed_integer() == two.is_signed_integer() {
        return Some(if one.size() >= two.size() { one } else { two });
    }
    let (signed, unsigned) = if one.is_signed_integer() { (one, two) } else { (two, one) };
    match signed.size().max(2 * unsigned.size()) {
        2 => Some(DType::I16),
        4 => Some(DType::I32),
        8 => Some(DType::I64),
        _ => None,
    }
}

#[cold]
fn no_common(wanted: &str, one: DType, two: DType) -> Error {
    Error::DTypeMismatch {
        operation: "an operation on two dtypes",
        wanted: wanted.to_owned(),
        found: format!("{one} and {two}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row beside column; `!` marks pairs without a common dtype. The entries of u8, signed integers, floats
    /// and bool are the table of `torch.promote_types` in PyTorch's documentation of dtypes.
    const TABLE: &str = "
             bool u8   i8   u16  i16  u32  i32  u64  i64  f16  bf16 f32  f64  c64  c128
        bool bool u8   i8   u16  i16  u32  i32  u64  i64  f16  bf16 f32  f64  c64  c128
        u8   u8   u8   i16  u16  i16  u32  i32  u64  i64  f16  bf16 f32  f64  c64  c128
        i8   i8   i16  i8   i32  i16  i64  i32  !    i64  f16  bf16 f32  f64  c64  c128
        u16  u16  u16  i32  u16  i32  u32  i32  u64  i64  f16  bf16 f32  f64  c64  c128
        i16  i16  i16  i16  i32  i16  i64  i32  !    i64  f16  bf16 f32  f64  c64  c128
        u32  u32  u32  i64  u32  i64  u32  i64  u64  i64  f16  bf16 f32  f64  c64  c128
        i32  i32  i32  i32  i32  i32  i64  i32  !    i64  f16  bf16 f32  f64  c64  c128
        u64  u64  u64  !    u64  !    u64  !    u64  !    f16  bf16 f32  f64  c64  c128
        i64  i64  i64  i64  i64  i64  i64  i64  !    i64  f16  bf16 f32  f64  c64  c128
        f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64  c64  c128
        bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64  c64  c128
        f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  c64  c128
        f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128
        c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c128 c64  c128
        c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128";

    #[test]
    fn the_table() {
        let mut rows = TABLE.lines().filter(|line| !line.trim().is_empty()).map(str::split_whitespace);
        let columns: Vec<DType> = rows.next().unwrap().map(|name| name.parse().unwrap()).collect();
        assert_eq!(columns.len(), 15);
        let mut count = 0;
        for mut row in rows {
            let left: DType = row.next().unwrap().parse().unwrap();
            for (&right, wanted) in columns.iter().zip(row) {
                let found = left.promote(right).map_or("!", DType::name);
                assert_eq!(found, wanted, "{left} with {right}");
                count += 1;
            }
        }
        assert_eq!(count, 225);
    }

    #[test]
    fn eight_bit_floats_stay_among_themselves() {
        assert_eq!(DType::F8E4M3.promote(DType::F8E4M3).unwrap(), DType::F8E4M3);
        for other in [DType::F8E5M2, DType::F32, DType::Bool] {
            let error = DType::F8E4M3.promote(other).unwrap_err().to_string();
            assert!(
                error.contains("f8e4m3") && error.contains(other.name()) && error.contains("cast"),
                "{error}"
            );
        }
        assert!(DType::F8E5M2.promote_number(NumberKind::Real).is_err());
    }

    #[test]
    fn numbers_take_part_by_kind() {
        use NumberKind::*;
        for (dtype, number, wanted) in [
            (DType::I8, Integer, DType::I8),
            (DType::I8, Bool, DType::I8),
            (DType::I64, Real, DType::F32),
            (DType::Bool, Integer, DType::I64),
            (DType::Bool, Bool, DType::Bool),
            (DType::F16, Real, DType::F16),
            (DType::BF16, Complex, DType::C64),
            (DType::F64, Complex, DType::C128),
            (DType::U8, Complex, DType::C64),
            (DType::C64, Real, DType::C64),
        ] {
            assert_eq!(dtype.promote_number(number).unwrap(), wanted, "{dtype} with {number:?}");
        }
    }
}
