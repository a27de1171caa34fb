//! [`Axes`], the axes of a reduction.

use std::ops::RangeFull;

/// The axes that a reduction folds: one axis, a list such as `&[0, -1]`, or `..` for all of them.
///
/// A negative axis counts from the last. An empty list folds no axis, so each element is reduced by itself.
///
/// ```
/// use selvedge::{Device, Tensor};
/// let x = Tensor::new([[1.0f32, 2.0], [4.0, 8.0]], &Device::cpu())?;
/// assert_eq!(x.sum(0)?.to_vec::<f32>()?, [5.0, 10.0]);
/// assert_eq!(x.sum(&[0, 1])?.item::<f32>()?, 15.0);
/// assert_eq!(x.sum(..)?.item::<f32>()?, 15.0);
/// assert_eq!(x.sum(&[])?.to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axes<'a> {
    /// Every axis.
    All,
    /// One axis.
    One(isize),
    /// A list of axes.
    Of(&'a [isize]),
}

impl From<RangeFull> for Axes<'_> {
    fn from(_: RangeFull) -> Self {
        Axes::All
    }
}

impl From<isize> for Axes<'_> {
    fn from(axis: isize) -> Self {
        Axes::One(axis)
    }
}

impl<'a> From<&'a [isize]> for Axes<'a> {
    fn from(axes: &'a [isize]) -> Axes<'a> {
        Axes::Of(axes)
    }
}

impl<'a, const COUNT: usize> From<&'a [isize; COUNT]> for Axes<'a> {
    fn from(axes: &'a [isize; COUNT]) -> Axes<'a> {
        Axes::Of(axes)
    }
}

impl<'a> From<&'a Vec<isize>> for Axes<'a> {
    fn from(axes: &'a Vec<isize>) -> Axes<'a> {
        Axes::Of(axes)
    }
}
