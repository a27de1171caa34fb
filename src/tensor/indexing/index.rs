//! [`Tensor::index`], the indexing expression of NumPy and PyTorch in one call, and its assignment.
//!
//! Integers, slices, new axes and an ellipsis are views. Masks and index arrays read with [`Coordinates`]: integers beside
//! them count as arrays of one element, all arrays broadcast, and their shape takes the place of the indexed dimensions. It
//! comes first if a slice, a new axis or an ellipsis stands between two of them, as in NumPy.
//!
//! Tests: `tests/tensor/index_expressions.rs`.

use std::borrow::Cow;
use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use super::accumulate::{Coordinates, as_rows, reshaped};
use super::{IndexCheck, IndexOperation, flattened, list};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::in_place::TensorMut;
use crate::tensor::operand::TensorOperand;
use crate::tensor::tensor::one_device;
use crate::types::{DType, Shape, Slice};

const CALL: IndexOperation = IndexOperation::Index;

/// One entry of an index expression, for [`Tensor::index`].
///
/// | Python | entry |
/// |---|---|
/// | `x[2, -1]` | `x.index((2, -1))` |
/// | `x[1:3]`, `x[::2]` | `x.index(1..3)`, `x.index(Slice::from(..).step(2))` |
/// | `x[..., 0]` | `x.index((Index::Ellipsis, 0))` |
/// | `x[:, None]` | `x.index((.., Index::NewAxis))` |
/// | `x[mask]`, `x[rows, columns]` | `x.index(&mask)`, `x.index((&rows, &columns))` |
#[derive(Clone)]
pub enum Index<'a> {
    /// One position, which removes the dimension. A negative one counts from the end.
    At(isize),
    /// Some positions in order.
    Slice(Slice),
    /// A new dimension of size 1.
    NewAxis,
    /// All dimensions that no other entry takes; at most once, and at the end if it is left out.
    Ellipsis,
    /// An index of integers for one dimension, or a mask of bools for as many dimensions as it has.
    Tensor(&'a Tensor),
}

impl From<isize> for Index<'_> {
    fn from(position: isize) -> Self {
        Index::At(position)
    }
}

impl From<Slice> for Index<'_> {
    fn from(slice: Slice) -> Self {
        Index::Slice(slice)
    }
}

impl<'a> From<&'a Tensor> for Index<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Index::Tensor(tensor)
    }
}

macro_rules! ranges {
    ($($range:ty)*) => {$(
        impl From<$range> for Index<'_> {
            fn from(range: $range) -> Self {
                Index::Slice(range.into())
            }
        }
    )*};
}

ranges! { Range<isize> RangeFrom<isize> RangeTo<isize> RangeFull }

/// The entries of an index expression: one entry, a tuple of up to six, or an array or slice of [`Index`].
pub trait IndexExpression<'a> {
    /// Returns the entries in order.
    fn entries(self) -> Vec<Index<'a>>;
}

macro_rules! single_entries {
    ($($type:ty)*) => {$(
        impl<'a> IndexExpression<'a> for $type {
            fn entries(self) -> Vec<Index<'a>> {
                vec![self.into()]
            }
        }
    )*};
}

single_entries! {
    isize Slice Range<isize> RangeFrom<isize> RangeTo<isize> RangeFull &'a Tensor Index<'a>
}

impl<'a> IndexExpression<'a> for &[Index<'a>] {
    fn entries(self) -> Vec<Index<'a>> {
        self.to_vec()
    }
}

impl<'a, const COUNT: usize> IndexExpression<'a> for [Index<'a>; COUNT] {
    fn entries(self) -> Vec<Index<'a>> {
        self.into()
    }
}

macro_rules! tuples {
    ($(($($name:ident $type:ident),*))*) => {$(
        impl<'a, $($type: Into<Index<'a>>),*> IndexExpression<'a> for ($($type,)*) {
            fn entries(self) -> Vec<Index<'a>> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    )*};
}

tuples! {
    (a A)
    (a A, b B)
    (a A, b B, c C)
    (a A, b B, c C, d D)
    (a A, b B, c C, d D, e E)
    (a A, b B, c C, d D, e E, f F)
}

impl Tensor {
    /// Returns the elements that an index expression names, as NumPy's and PyTorch's `x[…]`.
    ///
    /// Without masks and index arrays the result is a view. A mask waits for the device. An index out of range is reported as
    /// [`gather`](Self::gather) reports it.
    ///
    /// ```
    /// use selvedge::tensor::Index;
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu)?;
    /// assert_eq!(x.index((-1, 1..))?.to_vec::<i32>()?, [5, 6]);
    /// assert_eq!(x.index((Index::Ellipsis, 0))?.to_vec::<i32>()?, [1, 4]);
    /// assert_eq!(x.index(&x.gt(4)?)?.to_vec::<i32>()?, [5, 6]);
    /// let columns = Tensor::new([2, 0], &cpu)?;
    /// assert_eq!(x.index((.., &columns))?.to_vec::<i32>()?, [3, 1, 6, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`IndexOutOfRange`](Error::IndexOutOfRange) for an integer outside its dimension;
    /// [`InvalidArgument`](Error::InvalidArgument) for more entries than dimensions, a second ellipsis, a slice with a step
    /// of 0, a mask of another shape than the dimensions it is for, and index arrays that do not broadcast;
    /// [`DTypeMismatch`](Error::DTypeMismatch) for an index that is neither of integers nor of bools;
    /// [`DeviceMismatch`](Error::DeviceMismatch), [`OutOfMemory`](Error::OutOfMemory).
    pub fn index<'a>(&self, index: impl IndexExpression<'a>) -> Result<Tensor> {
        let plan = IndexPlan::new(self, index.entries())?;
        let view = plan.views.iter().try_fold(self.clone(), |tensor, view| view.of(&tensor))?;
        let Some(arrays) = &plan.arrays else { return Ok(view) };
        if let [IndexArray { axis, dimension, positions: array }] = arrays.indices.as_slice() {
            // No dimension has to move.
            let read =
                view.index_select_by(CALL, (*axis, *dimension), &flattened(array)?, IndexCheck::Report)?;
            let sizes = view.shape();
            let shape = [&sizes[..*axis], &array.shape()[..], &sizes[axis + 1..]].concat();
            return reshaped(&read, &Shape::new(&shape)?);
        }
        let (from, to) = arrays.to_front();
        let moved = view.movedim(&from, &to)?;
        let coordinates = arrays.coordinates(&moved)?;
        let rows = as_rows(&moved, coordinates.size)?.index_select_unchecked(0, &coordinates.targets)?;
        let read =
            reshaped(&rows, &Shape::new(&[&coordinates.shape[..], coordinates.rest(&moved)].concat())?)?;
        let front: Vec<isize> = (0..coordinates.shape.rank() as isize).collect();
        let axes: Vec<isize> = front.iter().map(|axis| axis + arrays.axis as isize).collect();
        read.movedim(&front, &axes)
    }

    /// Returns this tensor with other elements where an index expression names them; see
    /// [`TensorMut::index_assign`].
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &Device::cpu())?;
    /// assert_eq!(x.index_assign((.., 1), 0)?.to_vec::<i32>()?, [1, 0, 3, 4, 0, 6]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TensorMut::index_assign`].
    pub fn index_assign<'a, 'b>(
        &self,
        index: impl IndexExpression<'a>,
        values: impl Into<TensorOperand<'b>>,
    ) -> Result<Tensor> {
        let mut result = self.clone();
        result.in_place().index_assign(index, values)?;
        Ok(result)
    }
}

impl TensorMut<'_> {
    /// Replaces the elements that an index expression names by those of a tensor, which is broadcast and cast, or by a
    /// number. Of several elements for one position the last one stays. NumPy's and PyTorch's `x[…] = values`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let mut x = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu)?;
    /// let mask = x.gt(4)?;
    /// x.in_place().index_assign(&mask, 0)?;
    /// x.in_place().index_assign((0, 1..), &Tensor::new([8, 9], &cpu)?)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 8, 9, 4, 0, 0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Tensor::index`] and [`assign`](Self::assign).
    pub fn index_assign<'b, 'c>(
        &mut self,
        index: impl IndexExpression<'b>,
        values: impl Into<TensorOperand<'c>>,
    ) -> Result<()> {
        let plan = IndexPlan::new(&self.current(), index.entries())?;
        let mut part = self.reborrow();
        for view in &plan.views {
            part = view.of_mut(part)?;
        }
        let Some(arrays) = &plan.arrays else {
            part.assign(values)?;
            return Ok(());
        };
        let (from, to) = arrays.to_front();
        let mut part = part.movedim(&from, &to)?;
        let values = match values.into() {
            TensorOperand::Tensor(tensor) => tensor.cast(part.dtype())?,
            TensorOperand::Number(number) => Tensor::full(&[], number, part.dtype(), &part.device())?,
        };
        let current = part.current();
        one_device(CALL.name(), [&current, &values])?;
        let coordinates = arrays.coordinates(&current)?;
        // The values have the shape that the index expression reads.
        let (rank, rest) = (coordinates.shape.rank(), coordinates.rest(&current));
        let (before, after) = rest.split_at(arrays.axis);
        let shape = Shape::new(&[before, &coordinates.shape[..], after].concat())?;
        let front: Vec<isize> = (0..rank as isize).collect();
        let axes: Vec<isize> = front.iter().map(|axis| axis + arrays.axis as isize).collect();
        let values = values.expand(&shape)?.movedim(&axes, &front)?;
        if coordinates.targets.count() == 0 {
            return Ok(());
        }
        let mut rows = as_rows(&current, coordinates.size)?;
        rows.in_place().index_copy_unchecked(
            0,
            &coordinates.targets,
            &as_rows(&values, coordinates.targets.count())?,
        )?;
        let result = reshaped(&rows, current.shape())?;
        drop(current);
        part.assign(&result)?;
        Ok(())
    }
}

/// A view of one dimension.
#[derive(Clone, Copy)]
enum View {
    Select(usize, isize),
    Slice(usize, Slice),
    Unsqueeze(usize),
}

impl View {
    fn of(self, tensor: &Tensor) -> Result<Tensor> {
        match self {
            View::Select(axis, position) => tensor.select(axis as isize, position),
            View::Slice(axis, slice) => tensor.slice(axis as isize, slice),
            View::Unsqueeze(axis) => tensor.unsqueeze(axis as isize),
        }
    }

    fn of_mut(self, tensor: TensorMut<'_>) -> Result<TensorMut<'_>> {
        match self {
            View::Select(axis, position) => tensor.select(axis as isize, position),
            View::Slice(axis, slice) => tensor.slice(axis as isize, slice),
            View::Unsqueeze(axis) => tensor.unsqueeze(axis as isize),
        }
    }
}

/// An index array.
struct IndexArray<'a> {
    /// The axis of the view that it indexes.
    axis: usize,
    /// The dimension of the tensor, for errors.
    dimension: usize,
    positions: Cow<'a, Tensor>,
}

/// The index arrays of an expression.
struct IndexArrays<'a> {
    indices: Vec<IndexArray<'a>>,
    /// The position of the arrays' shape among the other dimensions of the result.
    axis: usize,
}

impl IndexArrays<'_> {
    /// Returns the axes of the arrays, and as many first ones.
    fn to_front(&self) -> (Vec<isize>, Vec<isize>) {
        let axes = self.indices.iter().map(|index| index.axis as isize).collect();
        (axes, (0..self.indices.len() as isize).collect())
    }

    fn coordinates(&self, moved: &Tensor) -> Result<Coordinates> {
        let indices: Vec<(usize, &Tensor)> =
            self.indices.iter().map(|index| (index.dimension, &*index.positions)).collect();
        Coordinates::new(CALL, moved, &indices)
    }
}

/// An index expression in two steps: views, then arrays.
struct IndexPlan<'a> {
    views: Vec<View>,
    arrays: Option<IndexArrays<'a>>,
}

impl<'a> IndexPlan<'a> {
    fn new(tensor: &Tensor, entries: Vec<Index<'a>>) -> Result<IndexPlan<'a>> {
        let entries = with_ellipsis(tensor.shape(), entries)?;
        let has_arrays = entries.iter().any(|entry| matches!(entry, Index::Tensor(_)));
        let (mut views, mut indices) = (Vec::new(), Vec::new());
        // The dimensions of the tensor and of the view that are behind; and the entries, to find those between arrays.
        let (mut dimension, mut axis) = (0, 0);
        let mut entry_indices = Vec::new();
        let mut first = None;
        for (entry_index, entry) in entries.iter().enumerate() {
            match entry {
                Index::At(position) if !has_arrays => {
                    checked(*position, dimension, tensor.shape()[dimension])?;
                    views.push(View::Select(axis, *position));
                    dimension += 1;
                }
                Index::At(position) => {
                    let size = tensor.shape()[dimension];
                    let index = Tensor::full(
                        &[],
                        checked(*position, dimension, size)?,
                        DType::I64,
                        &tensor.device(),
                    )?;
                    first = first.or(Some(axis));
                    entry_indices.push(entry_index);
                    indices.push(IndexArray { axis, dimension, positions: Cow::Owned(index) });
                    (dimension, axis) = (dimension + 1, axis + 1);
                }
                Index::Slice(slice) => {
                    views.push(View::Slice(axis, *slice));
                    (dimension, axis) = (dimension + 1, axis + 1);
                }
                Index::NewAxis => {
                    views.push(View::Unsqueeze(axis));
                    axis += 1;
                }
                Index::Ellipsis => {}
                Index::Tensor(array) => {
                    one_device(CALL.name(), [tensor, *array])?;
                    first = first.or(Some(axis));
                    entry_indices.push(entry_index);
                    if array.dtype() == DType::Bool {
                        let found = mask_indices(tensor, dimension, array)?;
                        for index in found {
                            indices.push(IndexArray { axis, dimension, positions: Cow::Owned(index) });
                            (dimension, axis) = (dimension + 1, axis + 1);
                        }
                    } else {
                        indices.push(IndexArray { axis, dimension, positions: Cow::Borrowed(*array) });
                        (dimension, axis) = (dimension + 1, axis + 1);
                    }
                }
            }
        }
        let Some(first) = first else { return Ok(IndexPlan { views, arrays: None }) };
        let are_neighbours =
            entry_indices.windows(2).all(|pair| matches!(pair, [one, next] if one + 1 == *next));
        let axis = if are_neighbours { first } else { 0 };
        Ok(IndexPlan { views, arrays: Some(IndexArrays { indices, axis }) })
    }
}

/// Replaces the ellipsis, or the missing end, by a full slice for each dimension that no entry takes. The slices of an ellipsis
/// follow its entry, so that one for no dimension still stands between its neighbours.
fn with_ellipsis<'a>(shape: &Shape, entries: Vec<Index<'a>>) -> Result<Vec<Index<'a>>> {
    let taken: usize = entries
        .iter()
        .map(|entry| match entry {
            Index::NewAxis | Index::Ellipsis => 0,
            Index::Tensor(mask) if mask.dtype() == DType::Bool => mask.rank(),
            Index::At(_) | Index::Slice(_) | Index::Tensor(_) => 1,
        })
        .sum();
    let ellipses = entries.iter().filter(|entry| matches!(entry, Index::Ellipsis)).count();
    if ellipses > 1 {
        return Err(Error::invalid(CALL.name(), format!("{ellipses} ellipses"), "at most one"));
    }
    let Some(left) = shape.rank().checked_sub(taken) else {
        let found = format!("entries for {taken} dimensions of shape {shape}");
        return Err(Error::invalid(CALL.name(), found, format!("at most {}", shape.rank())));
    };
    let full = || std::iter::repeat_n(Index::Slice((..).into()), left);
    let mut all = Vec::with_capacity(entries.len() + left);
    for entry in entries {
        let is_ellipsis = matches!(entry, Index::Ellipsis);
        all.push(entry);
        if is_ellipsis {
            all.extend(full());
        }
    }
    if ellipses == 0 {
        all.extend(full());
    }
    Ok(all)
}

/// The coordinates of the true elements of a mask for the dimensions from `dimension` on.
fn mask_indices(tensor: &Tensor, dimension: usize, mask: &Tensor) -> Result<Vec<Tensor>> {
    let rank = mask.rank();
    let sizes = &tensor.shape()[dimension..dimension + rank];
    if rank == 0 || sizes != &mask.shape()[..] {
        let found = format!(
            "a mask of shape {} for dimensions from {dimension} of shape {}",
            mask.shape(),
            tensor.shape()
        );
        return Err(Error::invalid(CALL.name(), found, "a mask with the sizes of its dimensions"));
    }
    let coordinates = mask.nonzero()?;
    (0..rank).map(|axis| list(CALL, coordinates.select(1, axis as isize)?)).collect()
}

/// # Errors
///
/// [`Error::IndexOutOfRange`].
fn checked(position: isize, axis: usize, size: usize) -> Result<i64> {
    let is_inside = if position < 0 { position.unsigned_abs() <= size } else { (position as usize) < size };
    if is_inside { Ok(position as i64) } else { Err(CALL.outside(Some(axis), position as i64, size)) }
}
