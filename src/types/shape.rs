//! [`Shape`], the sizes of an array's dimensions.
//!
//! The value holds the sizes itself, so copying a shape allocates nothing and small operations cost little
//! more than their launch.
//!
//! Invariant: the product of the sizes, with 1 for each 0, fits `isize`. Strides and element counts computed
//! from a shape never overflow.

use std::fmt;
use std::ops::Deref;

use crate::error::{Error, Result};

/// The largest number of dimensions of a shape.
pub const MAX_RANK: usize = 16;

/// The sizes of an array's dimensions, slowest-varying first. It dereferences to a slice of `usize`.
///
/// ```
/// use selvedge::types::Shape;
/// let shape = Shape::new(&[2, 3, 4])?;
/// assert_eq!((shape.rank(), shape.count(), shape[2]), (3, 24, 4));
/// assert_eq!(shape.to_string(), "[2, 3, 4]");
/// # Ok::<(), selvedge::Error>(())
/// ```
// The rank and the first few sizes share a cache line; most shapes have no more.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Shape {
    rank: usize,
    sizes: [usize; MAX_RANK],
}

impl Shape {
    /// The shape of a single element, without dimensions.
    pub const SCALAR: Shape = Shape { sizes: [0; MAX_RANK], rank: 0 };

    /// Creates a shape from its sizes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more than [`MAX_RANK`] dimensions, or more elements than `isize`
    /// counts.
    pub fn new(sizes: &[usize]) -> Result<Shape> {
        let mut shape = Shape::SCALAR;
        let slots = shape.sizes.get_mut(..sizes.len()).ok_or_else(|| too_many(sizes.len()))?;
        slots.copy_from_slice(sizes);
        shape.rank = sizes.len();
        let product = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size.max(1)));
        match product {
            Some(product) if isize::try_from(product).is_ok() => Ok(shape),
            _ => Err(Error::invalid(
                "a shape",
                format!("{sizes:?}"),
                format!("at most {} elements", isize::MAX),
            )),
        }
    }

    /// Creates a shape in which one size may be -1: the size that `count` elements imply.
    ///
    /// ```
    /// use selvedge::types::Shape;
    /// assert_eq!(*Shape::infer(&[4, -1], 12)?, [4, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another negative size, two of -1, or a count that the other sizes do
    /// not divide; and as [`new`](Self::new).
    pub fn infer(sizes: &[isize], count: usize) -> Result<Shape> {
        let wrong =
            |wanted: String| Error::invalid("a shape with one size left out", format!("{sizes:?}"), wanted);
        let mut known = [0usize; MAX_RANK];
        let known = known.get_mut(..sizes.len()).ok_or_else(|| too_many(sizes.len()))?;
        let mut open = None;
        for (axis, (&size, known)) in sizes.iter().zip(known.iter_mut()).enumerate() {
            match usize::try_from(size) {
                Ok(size) => *known = size,
                Err(_) if size == -1 && open.is_none() => open = Some(axis),
                Err(_) => return Err(wrong("sizes of at least 0, and at most one of -1".to_owned())),
            }
        }
        if let Some(axis) = open {
            known[axis] = 1;
            let rest = Shape::new(known)?.count();
            if rest == 0 || !count.is_multiple_of(rest) {
                return Err(wrong(format!("sizes whose product divides {count} elements")));
            }
            known[axis] = count / rest;
        }
        Shape::new(known)
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of elements, which is 1 without dimensions.
    #[inline]
    pub fn count(&self) -> usize {
        self.iter().product()
    }

    /// Returns the index of the dimension `axis`, which counts from the end if it is negative.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there is no such dimension.
    pub fn axis(&self, operation: &'static str, axis: isize) -> Result<usize> {
        resolve_axis(operation, axis, self.rank)
    }

    /// Returns the shape to which both shapes broadcast. Shapes are aligned at the last dimension; a size of
    /// 1 or a missing dimension takes the other shape's size.
    ///
    /// ```
    /// use selvedge::types::Shape;
    /// let rows = Shape::new(&[5, 1])?;
    /// assert_eq!(*rows.broadcast(&Shape::new(&[3])?)?, [5, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where two sizes differ and neither is 1.
    pub fn broadcast(&self, other: &Shape) -> Result<Shape> {
        self.broadcast_in("broadcasting", other)
    }

    /// Broadcasts for an operation whose name errors give; see [`broadcast`](Self::broadcast).
    pub(crate) fn broadcast_in(&self, operation: &'static str, other: &Shape) -> Result<Shape> {
        let (long, short) = if self.rank >= other.rank { (self, other) } else { (other, self) };
        let mut sizes = *long;
        for (size, &given) in sizes.sizes[long.rank - short.rank..long.rank].iter_mut().zip(short.iter()) {
            if *size == 1 {
                *size = given;
            } else if given != *size && given != 1 {
                let found = format!("shapes {self} and {other}, which do not broadcast");
                let wanted = "sizes that are equal or 1, counted from the last dimension";
                return Err(Error::invalid(operation, found, wanted));
            }
        }
        Shape::new(&sizes)
    }

    /// Writes the strides of a contiguous array, in elements.
    #[inline]
    pub(super) fn write_contiguous(&self, strides: &mut [isize; MAX_RANK]) {
        let mut next = 1isize;
        for (stride, &size) in strides[..self.rank].iter_mut().zip(self.iter()).rev() {
            *stride = next;
            // The multiplication cannot overflow: the product over all dimensions fits.
            next *= size.max(1) as isize;
        }
    }
}

#[cold]
fn too_many(found: usize) -> Error {
    Error::invalid("a shape", format!("{found} dimensions"), format!("at most {MAX_RANK}"))
}

/// Returns the index of `axis` among `rank` dimensions.
pub(super) fn resolve_axis(operation: &'static str, axis: isize, rank: usize) -> Result<usize> {
    let index = if axis < 0 { axis.checked_add(rank as isize) } else { Some(axis) };
    match index.and_then(|index| usize::try_from(index).ok()) {
        Some(index) if index < rank => Ok(index),
        _ => {
            let wanted = match rank {
                0 => "none: there are no dimensions".to_owned(),
                _ => format!("-{rank} to {} for {rank} dimensions", rank - 1),
            };
            Err(Error::invalid(operation, format!("axis {axis}"), wanted))
        }
    }
}

impl Deref for Shape {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        &self.sizes[..self.rank]
    }
}

impl PartialEq for Shape {
    // Word by word: there are few, and comparing slices calls a function of another library.
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        let (own, others) = (&**self, &**other);
        own.len() == others.len() && (0..own.len()).all(|axis| own[axis] == others[axis])
    }
}

impl Eq for Shape {}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", &**self)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Returns (d, m, s) with t / d = (umulhi(t, m) + t) >> s for all t below 2^31 (T. Granlund, P. L.
/// Montgomery, "Division by invariant integers using multiplication", PLDI 1994).
pub(crate) fn divisor(size: u32) -> [u32; 3] {
    let shift = size.next_power_of_two().trailing_zeros();
    let factor = ((1u64 << 32) * ((1u64 << shift) - u64::from(size))) / u64::from(size) + 1;
    [size, factor as u32, shift]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sizes: &[usize]) -> Shape {
        Shape::new(sizes).unwrap()
    }

    #[test]
    fn counts_that_overflow_are_errors() {
        for sizes in [&[usize::MAX, 2][..], &[isize::MAX as usize, 2], &[1 << 40, 1 << 40, 0], &[usize::MAX]]
        {
            let error = Shape::new(sizes).unwrap_err().to_string();
            assert!(error.contains(&format!("{sizes:?}")), "{error}");
        }
        assert_eq!(shape(&[1 << 40, 0, 5]).count(), 0);
        assert!(Shape::new(&[1; 17]).unwrap_err().to_string().contains("17 dimensions"));
        assert_eq!(shape(&[1; 16]).count(), 1);
    }

    #[test]
    fn one_size_is_inferred() {
        assert_eq!(*Shape::infer(&[2, -1, 3], 24).unwrap(), [2, 4, 3]);
        assert_eq!(*Shape::infer(&[-1], 0).unwrap(), [0]);
        assert_eq!(*Shape::infer(&[], 1).unwrap(), [0usize; 0]);
        for (sizes, count) in [(&[-1, -1][..], 4), (&[-2, 2], 4), (&[3, -1], 4), (&[0, -1], 0)] {
            assert!(Shape::infer(sizes, count).is_err(), "{sizes:?}");
        }
    }

    #[test]
    fn shapes_broadcast_as_in_numpy() {
        for (left, right, both) in [
            (&[][..], &[][..], &[][..]),
            (&[3], &[], &[3]),
            (&[5, 1], &[3], &[5, 3]),
            (&[8, 1, 6, 1], &[7, 1, 5], &[8, 7, 6, 5]),
            (&[0], &[1], &[0]),
            (&[2, 1], &[1, 0], &[2, 0]),
        ] {
            assert_eq!(*shape(left).broadcast(&shape(right)).unwrap(), *both);
            assert_eq!(*shape(right).broadcast(&shape(left)).unwrap(), *both);
        }
        for (left, right) in [(&[3][..], &[4][..]), (&[2, 3], &[2, 1, 2]), (&[0], &[2])] {
            let error = shape(left).broadcast(&shape(right)).unwrap_err().to_string();
            assert!(error.contains(&format!("{left:?} and {right:?}")), "{error}");
        }
        let large = shape(&[1 << 40, 1]);
        assert!(large.broadcast(&shape(&[1, 1 << 40])).is_err());
    }

    #[test]
    fn axes_count_from_both_ends() {
        let shape = shape(&[2, 3]);
        assert_eq!((shape.axis("t", 0).unwrap(), shape.axis("t", -1).unwrap()), (0, 1));
        for axis in [2, -3, isize::MIN, isize::MAX] {
            let error = shape.axis("t", axis).unwrap_err().to_string();
            assert!(error.contains("-2 to 1"), "{error}");
        }
        assert!(Shape::SCALAR.axis("t", 0).is_err());
    }
}
