//! Views: layouts that show the same memory in another shape, computed by arithmetic alone.
//!
//! No view moves an element. Negative axes count from the last dimension.
//!
//! Invariant: a view contains only elements of the original layout, so memory checked against the layout is
//! valid for the view.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use super::layout::Layout;
use super::shape::{MAX_RANK, Shape, resolve_axis};
use crate::error::{Error, Result};

/// Positions along a dimension, as Python's `start:stop:step`. Negative positions count from the end,
/// positions past either end are clamped, and a negative step goes backwards.
///
/// ```
/// use selvedge::types::{Layout, Slice};
/// let line = Layout::contiguous(&[10])?;
/// assert_eq!(line.slice(0, Slice::from(2..-2).step(3))?.count(), 2);
/// let backwards = line.slice(0, Slice::from(..).step(-1))?;
/// assert_eq!((backwards.offset(), backwards.strides()), (9, &[-1][..]));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    start: Option<isize>,
    stop: Option<isize>,
    step: isize,
}

impl Slice {
    /// Sets the step, which selects every `step`-th position from the start.
    #[must_use]
    pub fn step(self, step: isize) -> Slice {
        Slice { step, ..self }
    }

    /// Returns the first position and the number of positions in a dimension of `size`.
    fn resolve(self, size: usize) -> Result<(usize, usize)> {
        let size = size as isize;
        let Slice { start, stop, step } = self;
        if step == 0 {
            return Err(Error::invalid("slice", "a step of 0", "a positive or negative step"));
        }
        // Backwards, positions run from size - 1 down to one before the first.
        let (lowest, highest) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let clamp = |position: isize| {
            let position = if position < 0 { position.saturating_add(size) } else { position };
            position.clamp(lowest, highest)
        };
        let (first, last) = if step > 0 { (0, size) } else { (size - 1, -1) };
        let (start, stop) = (start.map_or(first, clamp), stop.map_or(last, clamp));
        let distance = if step > 0 { stop - start } else { start - stop };
        let count = if distance <= 0 { 0 } else { (distance as usize).div_ceil(step.unsigned_abs()) };
        Ok((if count == 0 { 0 } else { start as usize }, count))
    }
}

impl From<Range<isize>> for Slice {
    fn from(range: Range<isize>) -> Slice {
        Slice { start: Some(range.start), stop: Some(range.end), step: 1 }
    }
}

impl From<RangeFrom<isize>> for Slice {
    fn from(range: RangeFrom<isize>) -> Slice {
        Slice { start: Some(range.start), stop: None, step: 1 }
    }
}

impl From<RangeTo<isize>> for Slice {
    fn from(range: RangeTo<isize>) -> Slice {
        Slice { start: None, stop: Some(range.end), step: 1 }
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Slice {
        Slice { start: None, stop: None, step: 1 }
    }
}

/// The dimensions of a view under construction.
struct Dimensions {
    sizes: [usize; MAX_RANK],
    strides: [isize; MAX_RANK],
    rank: usize,
}

impl Dimensions {
    fn new() -> Dimensions {
        Dimensions { sizes: [0; MAX_RANK], strides: [0; MAX_RANK], rank: 0 }
    }

    /// Adds a dimension. Beyond the maximum rank it only counts, and [`view`](Self::view) returns the error.
    fn push(&mut self, (size, stride): (usize, isize)) {
        if self.rank < MAX_RANK {
            self.sizes[self.rank] = size;
            self.strides[self.rank] = stride;
        }
        self.rank += 1;
    }

    fn view(&self, operation: &'static str, offset: usize) -> Result<Layout> {
        if self.rank > MAX_RANK {
            let found = format!("{} dimensions", self.rank);
            return Err(Error::invalid(operation, found, format!("at most {MAX_RANK}")));
        }
        let shape = Shape::new(&self.sizes[..self.rank])?;
        Ok(Layout { shape, strides: self.strides, offset })
    }
}

impl Layout {
    fn axis(&self, operation: &'static str, axis: isize) -> Result<usize> {
        self.shape.axis(operation, axis)
    }

    /// Returns a view with every dimension replaced by `change`, which drops a dimension by `None`.
    fn map_dimensions(
        &self,
        operation: &'static str,
        offset: usize,
        mut change: impl FnMut(usize, (usize, isize)) -> Option<(usize, isize)>,
    ) -> Result<Layout> {
        let mut dimensions = Dimensions::new();
        for (axis, dimension) in self.dimensions().enumerate() {
            if let Some(dimension) = change(axis, dimension) {
                dimensions.push(dimension);
            }
        }
        dimensions.view(operation, offset)
    }

    /// Returns the offset of position `index` along a dimension that has it.
    fn offset_at(&self, axis: usize, index: usize) -> usize {
        if self.count() == 0 {
            return self.offset;
        }
        (self.offset as isize + self.strides[axis] * index as isize) as usize
    }

    /// Reorders the dimensions: dimension `i` of the view is `axes[i]` of this layout.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] unless `axes` names each dimension once.
    pub fn permute(&self, axes: &[isize]) -> Result<Layout> {
        const OPERATION: &str = "permute";
        let mut named = [false; MAX_RANK];
        let mut dimensions = Dimensions::new();
        for &axis in axes {
            let axis = self.axis(OPERATION, axis)?;
            if std::mem::replace(&mut named[axis], true) {
                let wanted = format!("each of {} dimensions once", self.rank());
                return Err(Error::invalid(OPERATION, format!("axes {axes:?}"), wanted));
            }
            dimensions.push((self.shape[axis], self.strides[axis]));
        }
        if axes.len() != self.rank() {
            let wanted = format!("each of {} dimensions once", self.rank());
            return Err(Error::invalid(OPERATION, format!("axes {axes:?}"), wanted));
        }
        dimensions.view(OPERATION, self.offset)
    }

    /// Exchanges two dimensions.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if an axis does not exist.
    pub fn transpose(&self, first: isize, second: isize) -> Result<Layout> {
        let (first, second) = (self.axis("transpose", first)?, self.axis("transpose", second)?);
        self.map_dimensions("transpose", self.offset, |axis, dimension| {
            let other = match axis {
                _ if axis == first => second,
                _ if axis == second => first,
                _ => return Some(dimension),
            };
            Some((self.shape[other], self.strides[other]))
        })
    }

    /// Selects positions along a dimension.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a step of 0 or an axis that does not exist.
    pub fn slice(&self, axis: isize, slice: impl Into<Slice>) -> Result<Layout> {
        let (axis, slice) = (self.axis("slice", axis)?, slice.into());
        let (start, count) = slice.resolve(self.shape[axis])?;
        self.map_dimensions("slice", self.offset_at(axis, start), |at, (size, stride)| {
            // With fewer than two positions the step may exceed the memory.
            let stepped = if count > 1 { stride * slice.step } else { stride };
            Some(if at == axis { (count, stepped) } else { (size, stride) })
        })
    }

    /// Selects `length` positions along a dimension, starting at `start`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if the dimension has too few positions, [`Error::InvalidArgument`] if the axis
    /// does not exist.
    pub fn narrow(&self, axis: isize, start: usize, length: usize) -> Result<Layout> {
        let axis = self.axis("narrow", axis)?;
        let size = self.shape[axis];
        match start.checked_add(length) {
            Some(end) if end <= size => {}
            end => return Err(Error::OutOfRange { start, end: end.unwrap_or(usize::MAX), length: size }),
        }
        let first = if length == 0 { 0 } else { start };
        self.map_dimensions("narrow", self.offset_at(axis, first), |at, (size, stride)| {
            Some(if at == axis { (length, stride) } else { (size, stride) })
        })
    }

    /// Selects one position along a dimension and removes the dimension. A negative index counts from the
    /// end.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the position or the axis does not exist.
    pub fn select(&self, axis: isize, index: isize) -> Result<Layout> {
        let axis = self.axis("select", axis)?;
        let size = self.shape[axis];
        let position = if index < 0 { index.saturating_add(size as isize) } else { index };
        let position =
            usize::try_from(position).ok().filter(|position| *position < size).ok_or_else(|| {
                Error::invalid(
                    "select",
                    format!("index {index}"),
                    format!("one of {size} positions of axis {axis}"),
                )
            })?;
        self.map_dimensions("select", self.offset_at(axis, position), |at, dimension| {
            (at != axis).then_some(dimension)
        })
    }

    /// Removes a dimension of size 1.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if its size is not 1 or the axis does not exist.
    pub fn squeeze(&self, axis: isize) -> Result<Layout> {
        let axis = self.axis("squeeze", axis)?;
        if self.shape[axis] != 1 {
            let found = format!("size {} at axis {axis} of {}", self.shape[axis], self.shape);
            return Err(Error::invalid("squeeze", found, "size 1"));
        }
        self.map_dimensions("squeeze", self.offset, |at, dimension| (at != axis).then_some(dimension))
    }

    /// Removes all dimensions of size 1.
    #[must_use]
    pub fn squeeze_all(&self) -> Layout {
        self.map_dimensions("squeeze", self.offset, |_, (size, stride)| (size != 1).then_some((size, stride)))
            .unwrap_or(*self)
    }

    /// Inserts a dimension of size 1 before `axis`; `-1` appends it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the axis is out of range or the layout already has [`MAX_RANK`]
    /// dimensions.
    pub fn unsqueeze(&self, axis: isize) -> Result<Layout> {
        const OPERATION: &str = "unsqueeze";
        let inserted = resolve_axis(OPERATION, axis, self.rank() + 1)?;
        let mut dimensions = Dimensions::new();
        for (at, dimension) in self.dimensions().enumerate() {
            if at == inserted {
                dimensions.push((1, 0));
            }
            dimensions.push(dimension);
        }
        if inserted == self.rank() {
            dimensions.push((1, 0));
        }
        dimensions.view(OPERATION, self.offset)
    }

    /// Broadcasts to a larger shape: dimensions of size 1 and new leading dimensions take the shape's sizes
    /// with stride 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if another size would change.
    pub fn expand(&self, shape: &Shape) -> Result<Layout> {
        let new = shape.rank().checked_sub(self.rank());
        let wrong = || {
            Error::invalid(
                "expand",
                format!("shape {}", self.shape),
                format!("one that broadcasts to {shape}"),
            )
        };
        let new = new.ok_or_else(wrong)?;
        let mut view = Layout { shape: *shape, strides: [0; MAX_RANK], offset: self.offset };
        for (axis, (size, stride)) in self.dimensions().enumerate() {
            if size == shape[new + axis] {
                view.strides[new + axis] = stride;
            } else if size != 1 {
                return Err(wrong());
            }
        }
        Ok(view)
    }

    /// Reverses dimensions.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if an axis does not exist or is named twice.
    pub fn flip(&self, axes: &[isize]) -> Result<Layout> {
        let mut view = *self;
        let mut named = [false; MAX_RANK];
        for &axis in axes {
            let axis = self.axis("flip", axis)?;
            if std::mem::replace(&mut named[axis], true) {
                return Err(Error::invalid("flip", format!("axes {axes:?}"), "each axis once"));
            }
            view.offset = view.offset_at(axis, self.shape[axis].saturating_sub(1));
            view.strides[axis] = match self.shape[axis] {
                0 | 1 => self.strides[axis],
                _ if self.count() == 0 => self.strides[axis],
                _ => -self.strides[axis],
            };
        }
        Ok(view)
    }

    /// Selects the elements whose positions along two dimensions differ by `offset` (second minus first). A
    /// new last dimension replaces both.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if an axis does not exist, or both are the same.
    pub fn diagonal(&self, offset: isize, first: isize, second: isize) -> Result<Layout> {
        const OPERATION: &str = "diagonal";
        let (row, column) = (self.axis(OPERATION, first)?, self.axis(OPERATION, second)?);
        if row == column {
            return Err(Error::invalid(
                OPERATION,
                format!("axes {first} and {second}"),
                "two different axes",
            ));
        }
        let (down, right) = if offset < 0 { (offset.unsigned_abs(), 0) } else { (0, offset.unsigned_abs()) };
        let (rows, columns) = (self.shape[row], self.shape[column]);
        let count = rows.saturating_sub(down).min(columns.saturating_sub(right));
        let mut dimensions = Dimensions::new();
        for (axis, dimension) in self.dimensions().enumerate() {
            if axis != row && axis != column {
                dimensions.push(dimension);
            }
        }
        // With fewer than two elements the sum may exceed the memory, and nothing uses it.
        let stride = if count > 1 && self.count() > 0 { self.strides[row] + self.strides[column] } else { 0 };
        dimensions.push((count, stride));
        let mut start = *self;
        if count > 0 {
            start.offset = self.offset_at(row, down);
            start.offset = start.offset_at(column, right);
        }
        dimensions.view(OPERATION, start.offset)
    }

    /// Returns windows of `size` positions along a dimension, `step` apart. The dimension counts the windows,
    /// and a new last dimension the positions in each. Windows overlap if `step` is less than `size`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a window larger than the dimension, a step of 0, or a layout that
    /// already has [`MAX_RANK`] dimensions.
    pub fn unfold(&self, axis: isize, size: usize, step: usize) -> Result<Layout> {
        const OPERATION: &str = "unfold";
        let axis = self.axis(OPERATION, axis)?;
        let length = self.shape[axis];
        if step == 0 || size > length {
            let found = format!("windows of {size}, {step} apart, of {length} positions");
            return Err(Error::invalid(
                OPERATION,
                found,
                "a step of at least 1, windows no larger than the dimension",
            ));
        }
        let windows = (length - size) / step + 1;
        let mut dimensions = Dimensions::new();
        for (at, (size, stride)) in self.dimensions().enumerate() {
            let apart = if windows > 1 && self.count() > 0 { stride * step as isize } else { 0 };
            dimensions.push(if at == axis { (windows, apart) } else { (size, stride) });
        }
        dimensions.push((size, self.strides[axis]));
        dimensions.view(OPERATION, self.offset)
    }

    /// Returns the same elements in row-major order as another shape, or `None` if no strides express it and
    /// the elements must be copied.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the shape has another number of elements.
    pub fn reshape(&self, shape: &Shape) -> Result<Option<Layout>> {
        if shape.count() != self.count() {
            let found = format!("{} elements of shape {}", self.count(), self.shape);
            return Err(Error::invalid("reshape", found, format!("{} for shape {shape}", shape.count())));
        }
        if self.count() == 0 || self.is_contiguous() {
            return Ok(Some(Layout { offset: self.offset, ..Layout::from_shape(*shape) }));
        }
        let mut view = Layout { shape: *shape, strides: [0; MAX_RANK], offset: self.offset };
        let old = self.squeeze_all();
        let (mut from, mut to) = (0, 0);
        // The smallest groups of old and new dimensions with equal products correspond.
        while from < old.rank() {
            let first = from;
            let (mut old_product, mut new_product) = (old.shape[from], 1);
            from += 1;
            let group = to;
            while old_product != new_product {
                if new_product < old_product {
                    new_product *= shape[to];
                    to += 1;
                } else {
                    old_product *= old.shape[from];
                    from += 1;
                }
            }
            // The old dimensions of a group must be contiguous with each other.
            let joined = (first..from - 1).all(|axis| {
                let run = old.strides[axis + 1].checked_mul(old.shape[axis + 1] as isize);
                run == Some(old.strides[axis])
            });
            if !joined {
                return Ok(None);
            }
            let mut stride = old.strides[from - 1];
            for axis in (group..to).rev() {
                view.strides[axis] = stride;
                // The last product of a group is unused, and may overflow.
                stride = stride.wrapping_mul(shape[axis] as isize);
            }
        }
        Ok(Some(view))
    }
}

#[cfg(test)]
mod tests;
