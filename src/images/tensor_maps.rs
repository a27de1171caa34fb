//! Tensor maps (TMA descriptors) of matrices.

use crate::driver::{DeviceSlice, TensorElement, TensorMap, TensorMapLayout, TensorPromotion, TensorSwizzle};
use crate::error::{Error, Result};
use crate::types::DType;

/// Bytes that the rows and matrices of a tensor map begin at multiples of.
pub(crate) const MAP_ALIGNMENT: usize = 16;
/// The largest distance in bytes from a row or matrix to the next that a tensor map holds.
const MAP_STRIDE: u64 = (1 << 40) - 1;

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
    /// The number of different matrices.
    fn matrices(&self) -> usize {
        if self.batch <= 1 || self.stride == 0 { 1 } else { self.batch }
    }

    /// Whether a tensor map can describe the matrices at this address.
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
fn tensor_element(dtype: DType) -> Result<TensorElement> {
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
