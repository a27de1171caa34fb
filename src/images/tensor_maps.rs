//! Matrices in memory, and tensor maps (TMA descriptors) of them.

use std::fmt;

use crate::driver::{DeviceSlice, TensorElement, TensorMap, TensorMapLayout, TensorPromotion, TensorSwizzle};
use crate::error::{Error, Result};
use crate::types::DType;

/// Bytes that the rows and matrices of a tensor map begin at multiples of.
pub(crate) const MAP_ALIGNMENT: usize = 16;
/// The largest distance in bytes from a row or matrix to the next that a tensor map holds.
pub(crate) const MAP_STRIDE: u64 = (1 << 40) - 1;

/// A batch of row-major matrices in memory, with its distances in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixLayout {
    pub rows: usize,
    pub columns: usize,
    /// From a row to the next.
    pub leading: usize,
    pub batch: usize,
    /// From a matrix to the next; 0 where the batch shares one.
    pub stride: usize,
}

impl MatrixLayout {
    /// From the first element to the end of the last one, in elements.
    pub fn span(&self) -> Option<usize> {
        if self.rows == 0 || self.columns == 0 || self.batch == 0 {
            return Some(0);
        }
        let matrix = (self.rows - 1).checked_mul(self.leading)?.checked_add(self.columns)?;
        (self.batch - 1).checked_mul(self.stride)?.checked_add(matrix)
    }

    /// Matrices that there are: a batch may share one.
    pub fn matrices(&self) -> usize {
        if self.batch <= 1 || self.stride == 0 { 1 } else { self.batch }
    }

    /// Elements of all of them, or the most there can be.
    pub fn elements(&self) -> usize {
        self.rows.saturating_mul(self.columns).saturating_mul(self.matrices())
    }

    /// Returns whether no element belongs to two matrices: they lie behind one another, or rows of one between rows of another.
    pub fn apart(&self) -> bool {
        let one = MatrixLayout { batch: 1, ..*self }.span();
        let Some(one) = one else { return false };
        let beside = (self.batch.max(1) - 1)
            .checked_mul(self.stride)
            .and_then(|last| last.checked_add(self.columns))
            .is_some_and(|width| self.stride >= self.columns && width <= self.leading);
        self.batch <= 1 || one == 0 || self.stride >= one || beside
    }

    /// Returns whether rows and matrices begin at multiples of `bytes`, if the first does. Of what there is one, the distance to
    /// the next does not matter.
    pub fn keeps_alignment(&self, bytes: usize, element: usize) -> bool {
        (self.rows <= 1 || (self.leading * element).is_multiple_of(bytes))
            && (self.batch <= 1 || (self.stride * element).is_multiple_of(bytes))
    }

    /// Returns whether rows and matrices consist of blocks of `bytes` that are aligned, if the first is.
    pub fn is_whole(&self, bytes: usize, element: usize) -> bool {
        self.keeps_alignment(bytes, element) && (self.columns * element).is_multiple_of(bytes)
    }

    /// The most bytes of these that rows and matrices consist of blocks of.
    pub fn whole_blocks(&self, sizes: &[usize], element: usize) -> usize {
        sizes.iter().copied().find(|bytes| self.is_whole(*bytes, element)).unwrap_or(element)
    }
}

impl fmt::Display for MatrixLayout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} x {} in rows of {}", self.rows, self.columns, self.leading)?;
        if self.batch != 1 {
            write!(formatter, ", {} of them {} apart", self.batch, self.stride)?;
        }
        Ok(())
    }
}

impl MatrixLayout {
    /// Returns whether a tensor map can describe the matrices at this address.
    pub fn fits_tensor_map(&self, address: u64, element: usize) -> bool {
        let fits = |distance: usize| {
            let bytes = (distance as u64).saturating_mul(element as u64);
            bytes <= MAP_STRIDE && bytes.is_multiple_of(MAP_ALIGNMENT as u64)
        };
        address.is_multiple_of(MAP_ALIGNMENT as u64)
            && (self.rows <= 1 || fits(self.leading))
            && (self.batch <= 1 || fits(self.stride))
    }

    /// Returns the tensor map of all matrices (columns, rows, matrices), with boxes of so many columns and rows. It
    /// promotes reads of the L2 cache to 128 bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a dtype that tensor maps do not describe; as [`TensorMap::tiled`].
    pub fn tensor_map(
        &self,
        memory: DeviceSlice<'_, u8>,
        dtype: DType,
        (width, height): (u32, u32),
        swizzle: TensorSwizzle,
    ) -> Result<TensorMap> {
        let element = tensor_element(dtype)?;
        let size = element.size() as u64;
        let (rows, columns) = (self.rows as u64, self.columns as u64);
        let aligned = |bytes: u64| bytes.next_multiple_of(MAP_ALIGNMENT as u64);
        // The distance to the next of a single row or matrix is any that a map takes.
        let row = if rows > 1 { self.leading as u64 * size } else { aligned(columns * size) };
        let matrix = if self.matrices() > 1 { self.stride as u64 * size } else { aligned(row) };
        TensorMap::tiled(
            &memory,
            &TensorMapLayout {
                shape: vec![columns, rows, self.matrices() as u64],
                strides: vec![row, matrix],
                swizzle,
                promotion: TensorPromotion::Bytes128,
                ..TensorMapLayout::contiguous(element, &[], &[width, height, 1])
            },
        )
    }
}

/// The element type of a tensor map. TMA has no complex numbers, and copies c64 as 64-bit words.
pub(crate) fn tensor_element(dtype: DType) -> Result<TensorElement> {
    Ok(match dtype {
        DType::F16 => TensorElement::F16,
        DType::BF16 => TensorElement::BF16,
        DType::F32 => TensorElement::F32,
        DType::C64 => TensorElement::U64,
        _ => return Err(Error::invalid("a tensor map", dtype, "f16, bf16, f32 or c64")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_take_multiples_of_16_bytes_and_distances_below_2_to_the_40() {
        let layout = MatrixLayout { rows: 8, columns: 8, leading: 8, batch: 1, stride: 0 };
        let fits = |layout: MatrixLayout, address, element| layout.fits_tensor_map(address, element);
        assert!(fits(layout, 0x100, 2));
        assert!(!fits(layout, 0x108, 2));
        assert!(!fits(MatrixLayout { leading: 12, ..layout }, 0x100, 2));
        assert!(fits(MatrixLayout { leading: 12, ..layout }, 0x100, 4));
        assert!(fits(MatrixLayout { leading: 13, rows: 1, ..layout }, 0x100, 2));
        assert!(!fits(MatrixLayout { leading: 1 << 39, ..layout }, 0x100, 2));
        assert!(!fits(MatrixLayout { batch: 2, stride: 1 << 39, ..layout }, 0x100, 2));
        assert!(fits(MatrixLayout { batch: 2, stride: 64, ..layout }, 0x100, 2));
        assert!(!fits(MatrixLayout { batch: 2, stride: 68, ..layout }, 0x100, 2));
        // A batch that shares its matrix.
        assert!(fits(MatrixLayout { batch: 2, ..layout }, 0x100, 2));
    }

    #[test]
    fn dtypes_without_a_tensor_element_are_refused() {
        assert!(tensor_element(DType::BF16).is_ok());
        assert!(tensor_element(DType::F64).unwrap_err().to_string().contains("f64"));
    }
}
