//! The parameter of the strided copy kernels (`csrc/kernels/copy.cu`).

use crate::error::{Error, Result};

/// Dimensions that a [`StridedLayout`] has room for.
const DIMENSIONS: usize = 8;

/// Two layouts of one shape, made small: what `copy_strided_*` takes as its third parameter.
///
/// Dimensions of size 1 are left out, and neighbours that lie behind one another on both sides are one dimension. The
/// innermost dimension comes first. Its memory is exactly the kernel's `Layout`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct StridedLayout {
    shape: [u64; DIMENSIONS],
    source_strides: [i64; DIMENSIONS],
    destination_strides: [i64; DIMENSIONS],
    source_offset: i64,
    destination_offset: i64,
    rank: u64,
}

impl StridedLayout {
    /// Of a row-major shape (the last dimension varies fastest) with the strides of both sides and the offsets of their
    /// first elements, all in elements.
    ///
    /// ```
    /// // The transpose of a 2 x 3 array that is contiguous, into a contiguous 3 x 2 array.
    /// let layout = selvedge::images::StridedLayout::new(&[3, 2], &[1, 3], &[2, 1], 0, 0)?;
    /// assert_eq!(layout.len(), 6);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where the strides are not as many as the dimensions, [`Error::InvalidArgument`] where more
    /// than 8 dimensions are left, or elements or offsets go beyond what 63 bits hold.
    pub fn new(
        shape: &[usize],
        source_strides: &[isize],
        destination_strides: &[isize],
        source_offset: usize,
        destination_offset: usize,
    ) -> Result<StridedLayout> {
        const OPERATION: &str = "a strided copy";
        for strides in [source_strides, destination_strides] {
            if strides.len() != shape.len() {
                let (wanted, found) = (shape.len(), strides.len());
                return Err(Error::LengthMismatch { operation: OPERATION, wanted, found });
            }
        }
        let too_large =
            || Error::invalid(OPERATION, format!("shape {shape:?}"), "elements that 63 bits can count");
        // An empty array counts as nothing, however large its other dimensions are.
        let empty = shape.contains(&0);
        let elements = shape
            .iter()
            .filter(|_| !empty)
            .try_fold(1_i64, |product, &size| product.checked_mul(i64::try_from(size).ok()?));
        elements.ok_or_else(too_large)?;
        let offset = |offset: usize| i64::try_from(offset).map_err(|_| too_large());
        let mut layout = StridedLayout {
            source_offset: offset(source_offset)?,
            destination_offset: offset(destination_offset)?,
            ..bytemuck::Zeroable::zeroed()
        };
        if empty {
            layout.rank = 1;
            return Ok(layout);
        }

        let mut rank = 0;
        for dimension in (0..shape.len()).rev() {
            let size = shape[dimension] as u64;
            let (source, destination) =
                (source_strides[dimension] as i64, destination_strides[dimension] as i64);
            if size == 1 {
                continue;
            }
            if rank > 0 {
                let inner = rank - 1;
                let follows = |stride: i64, inner_stride: i64| {
                    inner_stride.checked_mul(layout.shape[inner] as i64) == Some(stride)
                };
                if follows(source, layout.source_strides[inner])
                    && follows(destination, layout.destination_strides[inner])
                {
                    layout.shape[inner] *= size;
                    continue;
                }
            }
            if rank == DIMENSIONS {
                let found = format!("shape {shape:?} that cannot be merged into fewer dimensions");
                return Err(Error::invalid(OPERATION, found, format!("at most {DIMENSIONS} dimensions")));
            }
            layout.shape[rank] = size;
            layout.source_strides[rank] = source;
            layout.destination_strides[rank] = destination;
            rank += 1;
        }
        layout.rank = rank as u64;
        Ok(layout)
    }

    /// The same copy in the widest elements that it allows, and their size in bytes (at most 16): where the innermost runs
    /// are contiguous on both sides and everything else is a multiple, several elements are one wider one. Copies of
    /// small elements run at a fraction of the speed of large ones.
    ///
    /// `element_bytes` is the size of an element now (1, 2, 4, 8 or 16), the addresses are those that the kernel will get.
    /// Its entry is `copy_strided_` and the new size in bits.
    #[must_use]
    pub fn widened(
        self,
        element_bytes: usize,
        source_address: u64,
        destination_address: u64,
    ) -> (StridedLayout, usize) {
        let mut layout = self;
        let mut bytes = element_bytes;
        while bytes < 16
            && layout.pairs_up()
            && (source_address | destination_address).is_multiple_of(2 * bytes as u64)
        {
            layout.shape[0] /= 2;
            for dimension in 1..layout.rank() {
                layout.source_strides[dimension] /= 2;
                layout.destination_strides[dimension] /= 2;
            }
            layout.source_offset /= 2;
            layout.destination_offset /= 2;
            bytes *= 2;
        }
        (layout, bytes)
    }

    /// Whether two neighbours can be one element of twice the size.
    fn pairs_up(&self) -> bool {
        let outer = 1..self.rank().max(1);
        let strides = self.source_strides[outer.clone()].iter().chain(&self.destination_strides[outer]);
        self.rank > 0
            && self.shape[0].is_multiple_of(2)
            && (self.source_strides[0], self.destination_strides[0]) == (1, 1)
            && strides.chain([&self.source_offset, &self.destination_offset]).all(|number| number % 2 == 0)
    }

    /// Elements to copy: the kernel's fourth parameter.
    pub fn len(&self) -> u64 {
        self.shape.iter().take(self.rank as usize).product()
    }

    /// Whether there is nothing to copy.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Dimensions that are left.
    pub fn rank(&self) -> usize {
        self.rank as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(size_of::<StridedLayout>(), 216);
        assert_eq!(align_of::<StridedLayout>(), 8);
    }

    #[test]
    fn contiguous_dimensions_merge() {
        let layout = StridedLayout::new(&[2, 1, 3, 4], &[12, 99, 4, 1], &[12, 12, 4, 1], 0, 0).unwrap();
        assert_eq!((layout.rank(), layout.shape[0], layout.source_strides[0]), (1, 24, 1));
        let scalar = StridedLayout::new(&[], &[], &[], 3, 0).unwrap();
        assert_eq!((scalar.rank(), scalar.len(), scalar.source_offset), (0, 1, 3));
    }

    #[test]
    fn broadcasts_and_transposes_stay_apart() {
        let layout = StridedLayout::new(&[5, 3], &[0, 1], &[3, 1], 0, 0).unwrap();
        assert_eq!((layout.rank(), layout.shape[..2].to_vec()), (2, vec![3, 5]));
        assert_eq!(layout.source_strides[..2], [1, 0]);
        // Backwards in both dimensions is one run backwards; in one of them it is not.
        let reversed = StridedLayout::new(&[4, 6], &[-6, -1], &[6, 1], 23, 0).unwrap();
        assert_eq!((reversed.rank(), reversed.source_strides[0]), (1, -1));
        let flipped = StridedLayout::new(&[4, 6], &[6, -1], &[6, 1], 5, 0).unwrap();
        assert_eq!((flipped.rank(), flipped.len()), (2, 24));
        // A source of one element, repeated, is one run of stride 0.
        let repeated = StridedLayout::new(&[4, 6], &[0, 0], &[6, 1], 0, 0).unwrap();
        assert_eq!((repeated.rank(), repeated.len()), (1, 24));
    }

    #[test]
    fn contiguous_runs_are_copied_in_wider_elements() {
        // 3 rows of 8 bytes out of rows of 24, from the 16th byte on.
        let layout = StridedLayout::new(&[3, 8], &[24, 1], &[8, 1], 16, 0).unwrap();
        let (wide, bytes) = layout.widened(1, 0x1000, 0x2000);
        assert_eq!((wide.len(), bytes), (3, 8));
        assert_eq!((wide.rank(), wide.shape[0], wide.source_strides[1], wide.source_offset), (2, 1, 3, 2));
        assert_eq!(layout.widened(1, 0x1002, 0x2000).1, 2);
        assert_eq!(layout.widened(4, 0x1000, 0x2000), (StridedLayout { ..layout.widened(4, 0, 0).0 }, 16));
        let odd = StridedLayout::new(&[3, 7], &[24, 1], &[7, 1], 0, 0).unwrap();
        assert_eq!(odd.widened(4, 0, 0), (odd, 4));
        let transposed = StridedLayout::new(&[4, 4], &[1, 4], &[4, 1], 0, 0).unwrap();
        assert_eq!(transposed.widened(4, 0, 0), (transposed, 4));
        let scalar = StridedLayout::new(&[], &[], &[], 0, 0).unwrap();
        assert_eq!(scalar.widened(4, 0, 0), (scalar, 4));
        let contiguous = StridedLayout::new(&[64], &[1], &[1], 0, 0).unwrap();
        assert_eq!((contiguous.widened(1, 0, 0).0.len(), contiguous.widened(1, 0, 0).1), (4, 16));
    }

    #[test]
    fn bad_shapes_are_errors() {
        let error = StridedLayout::new(&[2, 3], &[1], &[3, 1], 0, 0).unwrap_err();
        assert!(matches!(error, Error::LengthMismatch { wanted: 2, found: 1, .. }), "{error}");
        let huge = StridedLayout::new(&[usize::MAX, 2], &[1, 1], &[1, 1], 0, 0).unwrap_err();
        assert!(matches!(huge, Error::InvalidArgument { .. }), "{huge}");
        let many = StridedLayout::new(&[2; 9], &[1; 9], &[1; 9], 0, 0).unwrap_err();
        assert!(many.to_string().contains("at most 8"), "{many}");
        assert!(StridedLayout::new(&[usize::MAX, 0], &[1, 1], &[1, 1], 0, 0).unwrap().is_empty());
    }
}
