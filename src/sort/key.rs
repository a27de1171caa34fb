//! [`SortKey`], the map from elements to unsigned integers in the same order.

use crate::error::{Error, Result};
use crate::types::DType;

/// The map from the elements of a dtype to unsigned integers whose order is the elements' order.
///
/// Bits of an element are an unsigned integer b of the element's width. An unsigned integer is its own key. A signed integer
/// has its sign bit flipped. A float of magnitude m has the key b with the sign bit set if it is positive, and the complement
/// of b if it is negative; both zeros have the key of +0, and NaN (m above infinity) has the largest key. Source: Terdiman,
/// Radix Sort Revisited. A descending order takes the complement of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    dtype: DType,
    is_descending: bool,
    /// The significant bits of a key, from the lowest on.
    bits: u32,
}

/// The kinds of the map, as `sort.cu` numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Unsigned = 0,
    Signed = 1,
    /// A float; the magnitude's bits of infinity are [`SortKey::infinity`].
    Float = 2,
    /// A byte whose value is whether it is not 0.
    Bool = 3,
}

impl KeyKind {
    /// Returns the kind of a dtype, if it has an order.
    #[inline(always)]
    fn new(dtype: DType) -> Option<KeyKind> {
        match dtype {
            DType::Bool => Some(KeyKind::Bool),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some(KeyKind::Unsigned),
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Some(KeyKind::Signed),
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Some(KeyKind::Float),
            DType::C64 | DType::C128 | DType::F8E4M3 | DType::F8E5M2 => None,
        }
    }
}

/// Returns the bits of an element: 8, 16, 32 or 64.
#[inline(always)]
fn width_of(dtype: DType) -> u32 {
    dtype.size() as u32 * 8
}

impl SortKey {
    /// Returns the map of a dtype; `operation` names the caller in errors.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for complex numbers, which have no order, and for 8-bit floats, which have no kernel; a cast
    /// to f16 keeps their order.
    pub fn new(operation: &'static str, dtype: DType, descending: bool) -> Result<SortKey> {
        if KeyKind::new(dtype).is_none() {
            return Err(Error::DTypeMismatch {
                operation,
                wanted: "integers, bools, or floats of at least 16 bits; cast 8-bit floats first".to_owned(),
                found: dtype.to_string(),
            });
        }
        Ok(SortKey { dtype, is_descending: descending, bits: width_of(dtype) })
    }

    /// Returns the map for integers from 0 on and below `bound`, whose sort takes fewer passes. Elements outside of these
    /// bounds come in no defined order. The map of other dtypes stays as it is.
    ///
    /// ```
    /// use selvedge::DType;
    /// use selvedge::sort::{SortKey, argsort_host};
    /// let elements: Vec<u8> = [70i64, 0, 99].iter().flat_map(|x| x.to_ne_bytes()).collect();
    /// let mut positions = [0; 3];
    /// argsort_host(SortKey::new("argsort", DType::I64, false)?.with_bound(100), &elements, 1, &mut positions)?;
    /// assert_eq!(positions, [1, 0, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub fn with_bound(self, bound: u64) -> SortKey {
        if !self.dtype.is_integer() {
            return self;
        }
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        SortKey { bits: bits.clamp(1, width_of(self.dtype)), ..self }
    }

    /// Returns the map in the same direction of a dtype that has an order.
    #[inline(always)]
    pub(super) fn of_dtype(&self, dtype: DType) -> SortKey {
        SortKey { dtype, is_descending: self.is_descending, bits: width_of(dtype) }
    }

    #[inline(always)]
    fn kind(&self) -> KeyKind {
        KeyKind::new(self.dtype).unwrap_or(KeyKind::Unsigned)
    }

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the significant bits of a key: those of an element, unless it has a bound. All keys agree in the others.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of the kind in `sort.cu`.
    pub(super) fn code(&self) -> u32 {
        self.kind() as u32
    }

    pub(super) fn is_descending(&self) -> bool {
        self.is_descending
    }

    /// Returns the bits of infinity; 0 of integers.
    pub(super) fn infinity(&self) -> u64 {
        match self.dtype {
            DType::F16 => 0x7c00,
            DType::BF16 => 0x7f80,
            DType::F32 => 0x7f80_0000,
            DType::F64 => 0x7ff0_0000_0000_0000,
            _ => 0,
        }
    }

    /// Returns the key of an element, given by its bits.
    #[inline(always)]
    pub(super) fn of_bits(&self, bits: u64) -> u64 {
        let width = width_of(self.dtype);
        let (sign, mask) = (1 << (width - 1), u64::MAX >> (64 - width));
        let key = match self.kind() {
            KeyKind::Unsigned => bits,
            KeyKind::Signed => bits ^ sign,
            KeyKind::Bool => u64::from(bits != 0),
            KeyKind::Float => {
                let magnitude = bits & !sign & mask;
                if magnitude > self.infinity() {
                    mask
                } else if bits & sign != 0 && magnitude != 0 {
                    !bits & mask
                } else {
                    magnitude | sign
                }
            }
        };
        if self.is_descending { !key & mask } else { key }
    }

    /// Returns the map from keys back to the bits of elements.
    pub(super) fn inverse(&self) -> InverseKey {
        let width = width_of(self.dtype);
        let (sign, mask) = (1 << (width - 1), u64::MAX >> (64 - width));
        let (of_low, of_high) = match self.kind() {
            KeyKind::Unsigned | KeyKind::Bool => (0, 0),
            KeyKind::Signed => (sign, sign),
            KeyKind::Float => (mask, sign),
        };
        InverseKey { flip: if self.is_descending { mask } else { 0 }, sign, of_low, of_high }
    }

    /// Returns the keys that elements of different bits share: of both zeros and of all NaNs, or of every byte that is true.
    pub(super) fn shared_keys(&self) -> impl Iterator<Item = u64> + use<> {
        let width = width_of(self.dtype);
        let (sign, mask) = (1u64 << (width - 1), u64::MAX >> (64 - width));
        let shared = match self.kind() {
            KeyKind::Unsigned | KeyKind::Signed => [None, None],
            KeyKind::Bool => [Some(1), None],
            KeyKind::Float => [Some(sign), Some(mask)],
        };
        let flip = if self.is_descending { mask } else { 0 };
        shared.into_iter().flatten().map(move |key| key ^ flip)
    }
}

/// The map from a key to the bits of an element that has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct InverseKey {
    flip: u64,
    sign: u64,
    /// The bits to invert in ascending keys without the sign bit, and in keys with it.
    of_low: u64,
    of_high: u64,
}

impl InverseKey {
    #[inline(always)]
    pub(super) fn bits_of(self, key: u64) -> u64 {
        let key = key ^ self.flip;
        key ^ if key & self.sign == 0 { self.of_low } else { self.of_high }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn keys_are_in_the_order_of_the_elements() {
        let key = |dtype, bits| SortKey::new("sort", dtype, false).map(|key| key.of_bits(bits)).unwrap();
        let increases = |keys: Vec<u64>| assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
        let nan = f64::NAN;
        let floats = [f64::NEG_INFINITY, -1.5, -5e-324, 0.0, 5e-324, 1.0, f64::INFINITY, nan];
        increases(floats.iter().map(|x| key(DType::F64, x.to_bits())).collect());
        let floats = [f32::NEG_INFINITY, -1.5, -1e-45, -0.0, 1e-45, 1.0, f32::INFINITY, f32::NAN];
        increases(floats.iter().map(|x| key(DType::F32, u64::from(x.to_bits()))).collect());
        let floats = [f16::NEG_INFINITY, f16::MIN, f16::NEG_ZERO, f16::MAX, f16::INFINITY, f16::NAN];
        increases(floats.iter().map(|x| key(DType::F16, u64::from(x.to_bits()))).collect());
        increases([i16::MIN, -1, 0, 1, i16::MAX].map(|x| key(DType::I16, u64::from(x as u16))).to_vec());
        increases([0, 1, u64::MAX].map(|x| key(DType::U64, x)).to_vec());
        assert_eq!(key(DType::F64, (-nan).to_bits()), key(DType::F64, nan.to_bits()));
        assert_eq!(key(DType::F32, 1 << 31), key(DType::F32, 0));
        assert_eq!(key(DType::Bool, 7), key(DType::Bool, 1));
        let descending = SortKey::new("sort", DType::I8, true).unwrap();
        assert_eq!(([127u8, 0, 128].map(|x| descending.of_bits(x.into()))), [0, 127, 255]);
        assert!(SortKey::new("sort", DType::C64, false).is_err());
    }

    #[test]
    fn the_inverse_of_a_key_has_the_elements_bits_unless_others_share_the_key() {
        for dtype in [DType::Bool, DType::U8, DType::I8, DType::U16, DType::I16, DType::F16, DType::BF16] {
            for descending in [false, true] {
                let key = SortKey::new("sort", dtype, descending).unwrap();
                let shared: Vec<u64> = key.shared_keys().collect();
                for bits in 0..1u64 << width_of(dtype) {
                    let of_bits = key.of_bits(bits);
                    let back = key.inverse().bits_of(of_bits);
                    assert_eq!(key.of_bits(back), of_bits, "{dtype} {bits:x}");
                    assert!(back == bits || shared.contains(&of_bits), "{dtype} {bits:x}");
                }
            }
        }
    }

    #[test]
    fn a_bound_leaves_the_bits_that_integers_below_it_can_have() {
        for (dtype, bound, wanted) in [
            (DType::I64, 100_001, 17),
            (DType::I64, 1 << 16, 16),
            (DType::I64, (1 << 16) + 1, 17),
            (DType::I64, 0, 1),
            (DType::I64, 1, 1),
            (DType::U8, 300, 8),
            (DType::F32, 2, 32),
        ] {
            let key = SortKey::new("sort", dtype, false).unwrap().with_bound(bound);
            assert_eq!(key.bits(), wanted, "{dtype} below {bound}");
        }
    }
}
