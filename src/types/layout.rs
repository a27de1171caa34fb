//! [`Layout`], the mapping from an array's indices to offsets in its memory.
//!
//! A layout is a shape, a stride for each dimension and an offset, all in elements. It knows neither memory
//! nor element type. Views (`views.rs`) are other layouts of the same memory.
//!
//! Invariant: every element's offset is at least 0 and fits `isize`. Code that has checked [`Layout::end`]
//! against the length of the memory may use every offset unchecked.

use std::fmt;

use super::shape::{MAX_RANK, Shape};
use crate::error::{Error, Result};

/// The mapping from an array's indices to offsets in its memory: element `[i, j, …]` is at `offset + i ·
/// strides[0] + j · strides[1] + …`.
///
/// ```
/// use selvedge::types::Layout;
/// let matrix = Layout::contiguous(&[2, 3])?;
/// assert_eq!(matrix.strides(), [3, 1]);
/// let transposed = matrix.transpose(0, 1)?;
/// assert_eq!((transposed.shape().to_string(), transposed.strides()), ("[3, 2]".to_owned(), &[1, 3][..]));
/// # Ok::<(), selvedge::Error>(())
/// ```
// The fields that every operation reads are on two cache lines: the offset with the first sizes, and the
// first strides.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Layout {
    pub(super) offset: usize,
    pub(super) shape: Shape,
    pub(super) strides: [isize; MAX_RANK],
}

impl Layout {
    /// Creates a row-major layout without gaps: the last dimension varies fastest.
    ///
    /// # Errors
    ///
    /// As [`Shape::new`].
    pub fn contiguous(sizes: &[usize]) -> Result<Layout> {
        Ok(Layout::from_shape(Shape::new(sizes)?))
    }

    /// Creates the row-major layout of a valid shape, as [`contiguous`](Self::contiguous) does.
    #[inline]
    pub fn from_shape(shape: Shape) -> Layout {
        let mut layout = Layout { shape, strides: [0; MAX_RANK], offset: 0 };
        layout.shape.write_contiguous(&mut layout.strides);
        layout
    }

    /// Returns whether the layout equals [`from_shape`](Self::from_shape) of its shape.
    #[inline]
    pub(crate) fn is_from_shape(&self) -> bool {
        let mut next = 1isize;
        self.offset == 0
            && self.dimensions().rev().all(|(size, stride)| {
                let fits = stride == next;
                // The multiplication cannot overflow: the product over all dimensions fits.
                next *= size.max(1) as isize;
                fits
            })
    }

    /// Creates a layout from sizes, strides and an offset in elements. An empty array's strides are not kept.
    ///
    /// # Errors
    ///
    /// As [`Shape::new`]; [`Error::LengthMismatch`] if `strides` and `sizes` differ in length;
    /// [`Error::InvalidArgument`] if an element is before the start of memory or its offset exceeds
    /// `isize`.
    pub fn strided(sizes: &[usize], strides: &[isize], offset: usize) -> Result<Layout> {
        let shape = Shape::new(sizes)?;
        if strides.len() != sizes.len() {
            let (wanted, found) = (sizes.len(), strides.len());
            return Err(Error::LengthMismatch { operation: "a layout's strides", wanted, found });
        }
        let mut layout = Layout { shape, strides: [0; MAX_RANK], offset };
        layout.strides[..strides.len()].copy_from_slice(strides);
        let wrong = || {
            let found = format!("shape {shape}, strides {strides:?}, offset {offset}");
            Error::invalid("a layout", found, format!("elements at 0 to {}", isize::MAX))
        };
        let (mut low, mut high) = (offset as i128, offset as i128);
        if shape.count() > 0 {
            for (&size, &stride) in sizes.iter().zip(strides) {
                // The sum stays below 2^127: each factor is below 2^63, and there are 16 products.
                let reach = (size as i128 - 1) * stride as i128;
                low += reach.min(0);
                high += reach.max(0);
            }
        }
        if low < 0 || high >= isize::MAX as i128 {
            return Err(wrong());
        }
        if shape.count() == 0 {
            // Nothing uses these strides, and contiguous ones stay small in every view.
            layout.shape.write_contiguous(&mut layout.strides);
        }
        Ok(layout)
    }

    /// Returns the sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the distance between neighbours along each dimension, in elements. A stride is negative for a
    /// reversed dimension and 0 for a broadcast one.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.shape.rank()]
    }

    /// Returns the offset of the first element.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// Returns the number of elements.
    #[inline]
    pub fn count(&self) -> usize {
        self.shape.count()
    }

    /// Iterates over the size and stride of each dimension.
    #[inline]
    pub(crate) fn dimensions(&self) -> impl DoubleEndedIterator<Item = (usize, isize)> + '_ {
        let (sizes, strides) = (&*self.shape, self.strides());
        (0..sizes.len()).map(|axis| (sizes[axis], strides[axis]))
    }

    /// Returns the lowest offset of an element, or [`offset`](Self::offset) for an empty array.
    pub fn start(&self) -> usize {
        self.bounds().0
    }

    /// Returns one past the highest offset of an element: the length that the memory needs. It is 0 for an
    /// empty array.
    #[inline]
    pub fn end(&self) -> usize {
        // A single pass, because every run asks this of every operand.
        let mut high = self.offset;
        for (size, stride) in self.dimensions() {
            if size == 0 {
                return 0;
            }
            if stride > 0 {
                high += (size - 1) * stride as usize;
            }
        }
        high + 1
    }

    fn bounds(&self) -> (usize, usize) {
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        if self.count() > 0 {
            for (size, stride) in self.dimensions() {
                let reach = (size as isize - 1) * stride;
                low += reach.min(0);
                high += reach.max(0);
            }
        }
        (low as usize, high as usize)
    }

    /// Returns whether the elements are adjacent in row-major order. Strides of dimensions of size 1 are
    /// ignored, and an empty array is contiguous.
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1;
        self.count() == 0
            || self.dimensions().rev().all(|(size, stride)| {
                let fits = size == 1 || stride == next;
                next *= size as isize;
                fits
            })
    }

    /// Returns whether two elements may share an offset. The answer is always true if two do. It is a false
    /// positive only for interleaving strides, which no view of a contiguous array has except
    /// [`unfold`](Self::unfold).
    pub fn may_overlap(&self) -> bool {
        let mut order = [(0usize, 1usize); MAX_RANK];
        let rank = self.rank();
        if self.count() == 0 {
            return false;
        }
        for (entry, (size, stride)) in order.iter_mut().zip(self.dimensions()) {
            *entry = (stride.unsigned_abs(), size);
        }
        order[..rank].sort_unstable();
        // The largest offset within the dimensions so far; the next stride must exceed it.
        let mut reach = 0usize;
        order[..rank].iter().filter(|(_, size)| *size > 1).any(|(stride, size)| {
            let overlaps = *stride <= reach;
            reach += (size - 1) * stride;
            overlaps
        })
    }
}

/// Layouts are equal if shape, strides and offset are. Strides of dimensions of size 1 count too.
impl PartialEq for Layout {
    // Word by word: there are few, and comparing slices calls a function of another library.
    #[inline]
    fn eq(&self, other: &Layout) -> bool {
        self.offset == other.offset
            && self.rank() == other.rank()
            && self.dimensions().zip(other.dimensions()).all(|(own, others)| own == others)
    }
}

impl Eq for Layout {}

impl fmt::Debug for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout { shape, offset, .. } = self;
        write!(formatter, "shape {shape}, strides {:?}, offset {offset}", self.strides())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_outside_of_memory_are_errors() {
        assert_eq!(Layout::strided(&[4], &[-2], 6).unwrap().start(), 0);
        for (sizes, strides, offset) in [
            (&[4][..], &[-2][..], 5),
            (&[2], &[isize::MAX], 1),
            (&[3], &[isize::MAX], 0),
            (&[3], &[isize::MIN], 0),
            (&[1], &[0], usize::MAX),
        ] {
            let error = Layout::strided(sizes, strides, offset).unwrap_err().to_string();
            assert!(error.contains(&format!("{strides:?}")), "{error}");
        }
        assert!(matches!(
            Layout::strided(&[2], &[], 0),
            Err(Error::LengthMismatch { wanted: 1, found: 0, .. })
        ));
        // An empty array has no bounds.
        assert_eq!(Layout::strided(&[0, 5], &[isize::MIN, 9], 3).unwrap().end(), 0);
    }

    #[test]
    fn bounds_are_those_of_all_elements() {
        let layout = Layout::strided(&[3, 2], &[-4, 3], 10).unwrap();
        assert_eq!((layout.start(), layout.end()), (2, 14));
        assert_eq!(
            (Layout::from_shape(Shape::SCALAR).start(), Layout::from_shape(Shape::SCALAR).end()),
            (0, 1)
        );
    }

    #[test]
    fn contiguity_looks_past_sizes_of_one() {
        let is =
            |sizes: &[usize], strides: &[isize]| Layout::strided(sizes, strides, 7).unwrap().is_contiguous();
        assert!(is(&[2, 3], &[3, 1]) && is(&[2, 1, 3], &[3, 99, 1]) && is(&[1], &[5]) && is(&[], &[]));
        assert!(is(&[0, 4], &[9, 9]));
        assert!(!is(&[2, 3], &[1, 2]) && !is(&[2, 3], &[4, 1]) && !is(&[2], &[0]) && !is(&[3], &[2]));
    }

    #[test]
    fn overlap_is_seen() {
        let overlaps =
            |sizes: &[usize], strides: &[isize]| Layout::strided(sizes, strides, 50).unwrap().may_overlap();
        assert!(overlaps(&[2], &[0]) && overlaps(&[3, 3], &[1, 1]) && overlaps(&[2, 3], &[2, -1]));
        assert!(!overlaps(&[2, 3], &[3, -1]) && !overlaps(&[3, 2], &[1, 3]) && !overlaps(&[1], &[0]));
        assert!(!overlaps(&[0, 2], &[0, 0]) && !overlaps(&[4, 3], &[8, 2]));
    }
}
