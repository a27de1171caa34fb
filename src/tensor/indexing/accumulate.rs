//! Writing by index with accumulation: several elements can go to one position, and all of them count.
//!
//! Each operation finds the position of every element with one checked gather, sorts the positions, and combines each run of equal
//! positions as [`Runs`] does; then the result meets the element of the tensor. f16 and bf16 are combined in f32 and rounded
//! once.
//!
//! Tests: `tests/tensor/accumulation.rs`.

use super::runs::Runs;
use super::{
    IndexCheck, IndexOperation, IndexedAxis, check_index_shape, check_same, flattened, indices, list, read,
    resized,
};
use crate::error::{Error, Result};
use crate::tensor::in_place::TensorMut;
use crate::tensor::tensor::one_device;
use crate::tensor::{Tensor, fuse, traced};
use crate::types::{DType, Layout, Shape};

/// The bits of a half of a 64-bit integer.
const HALF: i64 = 32;

/// The combination of elements that go to one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScatterReduction {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The least element; NaN if one is NaN.
    Amin,
    /// The greatest element; NaN if one is NaN.
    Amax,
    /// The sum divided by the number of elements, rounded down for integers.
    Mean,
}

impl ScatterReduction {
    fn merge(self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        match self {
            ScatterReduction::Sum | ScatterReduction::Mean => x.add(y),
            ScatterReduction::Prod => x.mul(y),
            ScatterReduction::Amin => x.minimum(y),
            ScatterReduction::Amax => x.maximum(y),
        }
    }
}

/// Accumulating writes by index. Bad indices are reported as [`gather`](Tensor::gather) reports them; on a CUDA device their
/// elements are left out.
///
/// The elements that go to one position are combined in their order, pairwise: the first two, the next two, then these results.
/// The tensor's own element is the left operand of the last combination. So the result has the same bits on the CPU and on a
/// CUDA device, in every run.
impl Tensor {
    /// Adds elements at the positions of an index along `axis`. For a 2-d tensor and axis 0:
    /// `result[index[i][j]][j] += elements[i][j]`. The elements broadcast to the index's shape.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([10, 20, 30], &cpu)?;
    /// let result = x.scatter_add(0, &Tensor::new([2, 0, 2], &cpu)?, &Tensor::new([1, 2, 3], &cpu)?)?;
    /// assert_eq!(result.to_vec::<i32>()?, [12, 20, 34]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`scatter`](Self::scatter); [`DTypeMismatch`](Error::DTypeMismatch) for bools and 8-bit floats.
    pub fn scatter_add(&self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<Tensor> {
        self.scatter_by(IndexOperation::ScatterAdd, axis, index, elements, ScatterReduction::Sum, true)
    }

    /// Combines elements at the positions of an index along `axis`, as [`scatter_add`](Self::scatter_add) adds them. The tensor's
    /// own element takes part if `include_self`. A position that no index names keeps its element.
    ///
    /// ```
    /// use selvedge::tensor::ScatterReduction;
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([10.0f32, 20.0], &cpu)?;
    /// let (index, elements) = (Tensor::new([1, 1], &cpu)?, Tensor::new([1.0f32, 3.0], &cpu)?);
    /// let result = x.scatter_reduce(0, &index, &elements, ScatterReduction::Mean, false)?;
    /// assert_eq!(result.to_vec::<f32>()?, [10.0, 2.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`scatter_add`](Self::scatter_add); [`DTypeMismatch`](Error::DTypeMismatch) for the extremes of complex numbers.
    pub fn scatter_reduce(
        &self,
        axis: isize,
        index: &Tensor,
        elements: &Tensor,
        reduction: ScatterReduction,
        include_self: bool,
    ) -> Result<Tensor> {
        self.scatter_by(IndexOperation::ScatterReduce, axis, index, elements, reduction, include_self)
    }

    /// Adds whole parts along `axis` at the positions of an index of one dimension: `result[index[i]] += elements[i]` for
    /// axis 0. The elements broadcast to the shape of the parts.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2], [3, 4]], &cpu)?;
    /// let elements = Tensor::new([[10, 20], [30, 40], [50, 60]], &cpu)?;
    /// let result = x.index_add(0, &Tensor::new([1, 0, 1], &cpu)?, &elements)?;
    /// assert_eq!(result.to_vec::<i32>()?, [31, 42, 63, 84]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`index_copy`](Self::index_copy); [`DTypeMismatch`](Error::DTypeMismatch) for bools and 8-bit floats.
    pub fn index_add(&self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<Tensor> {
        const CALL: IndexOperation = IndexOperation::IndexAdd;
        let axis = self.shape().axis(CALL.name(), axis)?;
        let index = list(CALL, indices(CALL, self.device(), index)?)?;
        check_elements(CALL, self, elements)?;
        let elements = elements.expand(&resized(self.shape(), axis, index.count())?)?;
        let size = self.shape()[axis];
        let targets = targets_of(CALL, axis, size, &index)?;
        let (axes, front) = ([axis as isize], [0]);
        let rows = |x: &Tensor, count: usize| as_rows(&x.movedim(&axes, &front)?, count);
        let (own, moved) = (self.movedim(&axes, &front)?, rows(&elements, index.count())?);
        let result = accumulate(&rows(self, size)?, &targets, &moved, ScatterReduction::Sum, true)?;
        reshaped(&result, own.shape())?.movedim(&front, &axes)
    }

    /// Replaces whole parts along `axis` by a number, at the positions of an index of one dimension.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2], [3, 4], [5, 6]], &cpu)?;
    /// assert_eq!(x.index_fill(0, &Tensor::new([-1, 0], &cpu)?, 7)?.to_vec::<i32>()?, [7, 7, 3, 4, 7, 7]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`index_copy`](Self::index_copy); [`InvalidArgument`](Error::InvalidArgument) for a number that the dtype does not
    /// hold.
    pub fn index_fill(
        &self,
        axis: isize,
        index: &Tensor,
        number: impl Into<crate::fuse::Number>,
    ) -> Result<Tensor> {
        let number = Tensor::full(&[], number, self.dtype(), &self.device());
        let filled = number.and_then(|number| self.index_copy(axis, index, &number));
        filled.map_err(|error| error.in_operation("index_fill"))
    }

    /// Replaces elements by coordinates: `indices` has an index for each of the first dimensions, and these broadcast. With
    /// two indices, `result[indices[0][i]][indices[1][i]] = elements[i]`. The elements broadcast to the indices' shape and
    /// the other dimensions. Of several elements for one position the last one stays; with `accumulate` all are added.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2], [3, 4]], &cpu)?;
    /// let (rows, columns) = (Tensor::new([0, 1, 0], &cpu)?, Tensor::new([1, 1, 1], &cpu)?);
    /// let elements = Tensor::new([10, 20, 30], &cpu)?;
    /// assert_eq!(x.index_put(&[&rows, &columns], &elements, true)?.to_vec::<i32>()?, [1, 42, 3, 24]);
    /// assert_eq!(x.index_put(&[&rows, &columns], &elements, false)?.to_vec::<i32>()?, [1, 30, 3, 20]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for no index, more indices than dimensions, or shapes that do not
    /// broadcast; otherwise as [`scatter`](Self::scatter).
    pub fn index_put(&self, indices: &[&Tensor], elements: &Tensor, accumulate: bool) -> Result<Tensor> {
        const CALL: IndexOperation = IndexOperation::IndexPut;
        let coordinates =
            Coordinates::new(CALL, self, &indices.iter().copied().enumerate().collect::<Vec<_>>())?;
        if accumulate {
            check_elements(CALL, self, elements)?;
        } else {
            check_same(CALL, (self.device(), self.dtype()), elements)?;
        }
        let shape: Vec<usize> = coordinates.shape.iter().chain(coordinates.rest(self)).copied().collect();
        let elements = as_rows(&elements.expand(&shape)?, coordinates.targets.count())?;
        let rows = as_rows(self, coordinates.size)?;
        let result = if coordinates.targets.count() == 0 {
            rows
        } else if accumulate {
            self::accumulate(&rows, &coordinates.targets, &elements, ScatterReduction::Sum, true)?
        } else {
            let mut result = rows;
            result.in_place().index_copy_unchecked(0, &coordinates.targets, &elements)?;
            result
        };
        reshaped(&result, self.shape())
    }

    /// Returns the gradients of an [`index_put`](Self::index_put) for that of its result, which this is: of the tensor, and of the
    /// elements in the shape that they broadcast to. Without `accumulate`, an element that a later one replaced has none.
    ///
    /// # Errors
    ///
    /// As [`index_put`](Self::index_put).
    pub(crate) fn index_put_gradients(&self, indices: &[&Tensor], accumulate: bool) -> Result<[Tensor; 2]> {
        const CALL: IndexOperation = IndexOperation::IndexPut;
        let coordinates =
            Coordinates::new(CALL, self, &indices.iter().copied().enumerate().collect::<Vec<_>>())?;
        let (targets, device) = (&coordinates.targets, self.device());
        let shape = Shape::new(&[&coordinates.shape, coordinates.rest(self)].concat())?;
        if shape.count() == 0 {
            return Ok([self.clone(), Tensor::zeros(&shape, self.dtype(), &device)?]);
        }
        let rows = as_rows(self, coordinates.size)?;
        let at_targets = rows.index_select_unchecked(0, targets)?;
        if accumulate {
            return Ok([self.clone(), reshaped(&at_targets, &shape)?]);
        }
        // The index of the element that stays at each position, and -1 for positions that none is for.
        let positions = Tensor::arange(0i64, targets.count() as i64, 1i64, DType::I64, &device)?;
        let mut last = Tensor::full(&[coordinates.size], -1, DType::I64, &device)?;
        last.in_place().index_copy_unchecked(0, targets, &positions)?;
        let (of_targets, positions) =
            (last.take_unchecked(targets)?.unsqueeze(-1)?, positions.unsqueeze(-1)?);
        let of_elements = fuse([&of_targets, &positions, &at_targets], |[last, position, gradient]| {
            last.eq(position).choose(gradient, 0)
        })?;
        let of_rows = fuse([&last.unsqueeze(-1)?, &rows], |[last, gradient]| last.lt(0).choose(gradient, 0))?;
        Ok([reshaped(&of_rows, self.shape())?, reshaped(&of_elements, &shape)?])
    }

    /// Replaces the elements for which the mask is true by the first elements of `elements`, in row-major order. The mask and
    /// this tensor broadcast. The opposite of [`masked_select`](Self::masked_select); the call waits for the device.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2], [3, 4]], &cpu)?;
    /// let result = x.masked_scatter(&x.gt(2)?, &Tensor::new([7, 8], &cpu)?)?;
    /// assert_eq!(result.to_vec::<i32>()?, [1, 2, 7, 8]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for fewer elements than the mask is true, or a mask that does not
    /// broadcast; [`DTypeMismatch`](Error::DTypeMismatch) for a mask that is not of bools or elements of another dtype;
    /// [`DeviceMismatch`](Error::DeviceMismatch), [`OutOfMemory`](Error::OutOfMemory).
    pub fn masked_scatter(&self, mask: &Tensor, elements: &Tensor) -> Result<Tensor> {
        const CALL: IndexOperation = IndexOperation::Put;
        const OPERATION: &str = "masked_scatter";
        one_device(OPERATION, [self, mask, elements])?;
        if mask.dtype() != DType::Bool {
            let (wanted, found) = ("a mask of bool".to_owned(), format!("one of {}", mask.dtype()));
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        if elements.dtype() != self.dtype() {
            let (wanted, found) = (format!("elements of {}", self.dtype()), elements.dtype().to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        let shape = self.shape().broadcast_in(OPERATION, mask.shape())?;
        let positions = crate::tensor::sorting::true_positions(&flattened(&mask.expand(&shape)?)?)?;
        if positions.count() > elements.count() {
            let found =
                format!("{} elements for a mask that is true {} times", elements.count(), positions.count());
            return Err(Error::invalid(OPERATION, found, "an element for each"));
        }
        let source = flattened(elements)?.narrow(0, 0, positions.count())?;
        let mut result = flattened(&self.expand(&shape)?)?;
        let how = (CALL, IndexCheck::Ignore);
        result.in_place().write_along(how, None, &positions, positions.layout(), &source)?;
        reshaped(&result, &shape)
    }

    /// Combines neighbouring rows: the first `lengths[0]` along axis 0, the next `lengths[1]`, and so on. The result has a row
    /// for each length. A length of 0 gives `initial`. The call waits for the device.
    ///
    /// ```
    /// use selvedge::tensor::ScatterReduction;
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([1.0f32, 2.0, 3.0, 4.0], &cpu)?;
    /// let sums = x.segment_reduce(&Tensor::new([3i64, 0, 1], &cpu)?, ScatterReduction::Sum, 0)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [6.0, 0.0, 4.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for lengths that are negative, of more than one dimension, or do not add up
    /// to the rows, for a tensor without dimensions, and for an `initial` that the dtype does not hold; otherwise as
    /// [`scatter_reduce`](Self::scatter_reduce).
    pub fn segment_reduce(
        &self,
        lengths: &Tensor,
        reduction: ScatterReduction,
        initial: impl Into<crate::fuse::Number>,
    ) -> Result<Tensor> {
        const CALL: IndexOperation = IndexOperation::SegmentReduce;
        check_elements(CALL, self, self)?;
        let lengths = indices(CALL, self.device(), lengths)?.cast(DType::I64)?;
        let Some((&rows, rest)) = self.shape().split_first() else {
            return Err(Error::invalid(CALL.name(), "a tensor without dimensions", "at least one dimension"));
        };
        if lengths.rank() != 1 {
            let found = format!("lengths of shape {}", lengths.shape());
            return Err(Error::invalid(CALL.name(), found, "one dimension"));
        }
        let mut total = 0i64;
        for &length in &lengths.to_vec::<i64>()? {
            total = if length < 0 { -1 } else { total.saturating_add(length) };
            if length < 0 {
                return Err(Error::invalid(CALL.name(), format!("length {length}"), "lengths from 0 on"));
            }
        }
        if total != rows as i64 {
            let found = format!("lengths of {total} rows in total");
            return Err(Error::invalid(
                CALL.name(),
                found,
                format!("the {rows} rows of shape {}", self.shape()),
            ));
        }
        let shape: Vec<usize> = std::iter::once(lengths.count()).chain(rest.iter().copied()).collect();
        let result = Tensor::full(&shape, initial, self.dtype(), &self.device())?;
        let positions = Tensor::arange(0i64, rows as i64, 1i64, DType::I64, &self.device())?;
        // A row belongs to the first segment that ends behind it.
        let segments = lengths.cumsum(0)?.searchsorted_unchecked(&positions, true)?;
        let combined =
            accumulate(&as_rows(&result, shape[0])?, &segments, &as_rows(self, rows)?, reduction, false)?;
        reshaped(&combined, result.shape())
    }

    fn scatter_by(
        &self,
        call: IndexOperation,
        axis: isize,
        index: &Tensor,
        elements: &Tensor,
        reduction: ScatterReduction,
        include_self: bool,
    ) -> Result<Tensor> {
        let _traced = traced::operation(call.name(), [self, index, elements].into_iter(), None);
        let axis = self.shape().axis(call.name(), axis)?;
        check_index_shape(call, self.shape(), axis, index)?;
        let index = indices(call, self.device(), index)?;
        check_elements(call, self, elements)?;
        let elements = flattened(&elements.expand(index.shape())?)?;
        // The element at a position is its number, from 1 on: 0 stands for an index out of range.
        let numbers = reshaped(&from_one(self.count(), self)?, self.shape())?;
        let along = IndexedAxis::axis(numbers.layout(), axis);
        let found = read(call, &numbers, &along, &index, index.layout(), IndexCheck::Report)?;
        let targets = flattened(&from_zero(&found, self.count())?)?;
        let rows = as_rows(self, self.count())?;
        let elements = elements.unsqueeze(-1)?;
        let result = accumulate(&rows, &targets, &elements, reduction, include_self)?;
        reshaped(&result, self.shape())
    }
}

macro_rules! in_place {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// Accumulating writes into what is there; see the operations of [`Tensor`] of the same names.
        impl<'a> TensorMut<'a> {$(
            #[doc = concat!("Writes what [`Tensor::", stringify!($name), "`] returns.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [`Tensor::", stringify!($name), "`].")]
            pub fn $name(&mut self, $($argument: $type),*) -> Result<&mut TensorMut<'a>> {
                let result = self.current().$name($($argument),*)?;
                self.assign(&result)
            }
        )*}
    };
}

in_place! {
    scatter_add(axis: isize, index: &Tensor, elements: &Tensor);
    scatter_reduce(
        axis: isize, index: &Tensor, elements: &Tensor, reduction: ScatterReduction, include_self: bool
    );
    index_add(axis: isize, index: &Tensor, elements: &Tensor);
    index_fill(axis: isize, index: &Tensor, number: impl Into<crate::fuse::Number>);
    index_put(indices: &[&Tensor], elements: &Tensor, accumulate: bool);
    masked_scatter(mask: &Tensor, elements: &Tensor);
}

/// Places in the first dimensions of an array, by coordinates.
pub(super) struct Coordinates {
    /// The shape of the indices together.
    pub(super) shape: Shape,
    /// The row-major offset of each position in the first dimensions, as one dimension of i64; `size` for a bad index.
    pub(super) targets: Tensor,
    /// The number of positions of the first dimensions.
    pub(super) size: usize,
    dimensions: usize,
}

impl Coordinates {
    /// Each index has the number of its dimension for errors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for no index, too many, or shapes that do not broadcast; those of [`indices`]; and a bad index.
    pub(super) fn new(
        call: IndexOperation,
        array: &Tensor,
        coordinates: &[(usize, &Tensor)],
    ) -> Result<Coordinates> {
        let dimensions = coordinates.len();
        if dimensions == 0 || dimensions > array.rank() {
            let found = format!("{dimensions} indices for shape {}", array.shape());
            return Err(Error::invalid(
                call.name(),
                found,
                "an index for at least one and at most all dimensions",
            ));
        }
        let mut shape = Shape::SCALAR;
        for (_, index) in coordinates {
            shape = shape.broadcast_in(call.name(), index.shape())?;
        }
        let sizes = &array.shape()[..dimensions];
        let size = sizes.iter().product::<usize>();
        let mut total: Option<Tensor> = None;
        for (axis, (dimension, index)) in coordinates.iter().enumerate() {
            let index = indices(call, array.device(), index)?;
            let target = targets_of(call, *dimension, sizes[axis], &index)?.expand(&shape)?;
            total = Some(match total {
                None => target,
                // A bad index in any dimension leads to no position.
                Some(total) => {
                    let before: usize = sizes[..axis].iter().product();
                    fuse(
                        (&total, &target, before as i64, sizes[axis] as i64, size as i64),
                        |[total, target, before, size, none]| {
                            (total.lt(before) & target.lt(size)).choose(total * size + target, none)
                        },
                    )?
                }
            });
        }
        let targets = total.map_or_else(|| Tensor::zeros(&[0], DType::I64, &array.device()), Ok)?;
        let targets = flattened(&targets)?;
        Ok(Coordinates { shape, targets, size, dimensions })
    }

    /// Returns the sizes of the array's other dimensions.
    pub(super) fn rest<'a>(&self, array: &'a Tensor) -> &'a [usize] {
        &array.shape()[self.dimensions..]
    }
}

/// Returns the position along an axis of `size` of each index, from 0 on and as i64, in the index's shape; `size` for one out
/// of range, which is reported.
fn targets_of(call: IndexOperation, axis: usize, size: usize, index: &Tensor) -> Result<Tensor> {
    let numbers = from_one(size, index)?;
    let along = IndexedAxis { axis: Some(axis), ..IndexedAxis::flat(numbers.layout()) };
    let found = read(call, &numbers, &along, index, index.layout(), IndexCheck::Report)?;
    from_zero(&found, size)
}

fn from_one(count: usize, like: &Tensor) -> Result<Tensor> {
    Tensor::arange(1i64, count as i64 + 1, 1i64, DType::I64, &like.device())
}

/// Returns positions of numbers from 1 on, and `none` of 0.
fn from_zero(numbers: &Tensor, none: usize) -> Result<Tensor> {
    fuse((numbers, none as i64), |[number, none]| number.eq(0).choose(none, number - 1))
}

/// Combines rows with the rows of `original` at their targets; those past the end are left out.
fn accumulate(
    original: &Tensor,
    targets: &Tensor,
    elements: &Tensor,
    reduction: ScatterReduction,
    include_self: bool,
) -> Result<Tensor> {
    if targets.count() == 0 || original.count() == 0 {
        return Ok(original.clone());
    }
    let dtype = original.dtype();
    let work = match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        // A mean is within the dtype, but the sum need not be.
        _ if dtype.is_integer() && reduction == ScatterReduction::Mean && dtype != DType::U64 => DType::I64,
        _ => dtype,
    };
    let runs = Runs::new(targets, original.shape().first().copied().unwrap_or(0))?;
    let at_runs = match include_self {
        true => Some(original.index_select_unchecked(0, &runs.targets)?.cast(work)?),
        false => None,
    };
    let combine = |elements: &Tensor, at_runs: Option<&Tensor>| {
        let combined = runs.combine(elements, |x, y| reduction.merge(x, y))?;
        at_runs.map_or_else(|| Ok(combined.clone()), |original| reduction.merge(original, &combined))
    };
    let elements = elements.cast(work)?;
    let combined = if reduction != ScatterReduction::Mean {
        combine(&elements, at_runs.as_ref())?
    } else {
        let lengths = runs.lengths()?.unsqueeze(-1)?.add(i64::from(include_self))?.cast(work)?;
        if !dtype.is_integer() {
            combine(&elements, at_runs.as_ref())?.div(&lengths)?
        } else if dtype.size() < 8 {
            combine(&elements, at_runs.as_ref())?.floor_divide(&lengths)?
        } else {
            let of_halves = |half: fn(&Tensor) -> Result<Tensor>| {
                combine(&half(&elements)?, at_runs.as_ref().map(half).transpose()?.as_ref())
            };
            mean_of_halves(&of_halves(upper_half)?, &of_halves(lower_half)?, &lengths)?
        }
    };
    let mut result = original.clone();
    result.in_place().index_copy_unchecked(0, &runs.targets, &combined.cast(dtype)?)?;
    Ok(result)
}

/// The bits of i64 or u64 from the 32nd on, as a number.
fn upper_half(x: &Tensor) -> Result<Tensor> {
    x.shift_right(HALF)
}

/// The first 32 bits of i64 or u64, as a number from 0 on.
fn lower_half(x: &Tensor) -> Result<Tensor> {
    x.sub(&x.shift_right(HALF)?.shift_left(HALF)?)
}

/// Returns (upper · 2³² + lower) / lengths, rounded down, of sums whose combination 64 bits need not hold. The lengths are below
/// 2³¹: a run of more elements would take more than 32 GiB with its index.
fn mean_of_halves(upper: &Tensor, lower: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    fuse([upper, lower, lengths], |[upper, lower, length]| {
        let carry = lower.shift_right(HALF);
        let (upper, lower) = (upper + carry, lower - carry.shift_left(HALF));
        let quotient = upper.floor_divide(length);
        let rest = (upper - quotient * length).shift_left(HALF) + lower;
        quotient.shift_left(HALF) + rest.floor_divide(length)
    })
}

/// The elements as so many rows.
pub(super) fn as_rows(tensor: &Tensor, rows: usize) -> Result<Tensor> {
    let length = tensor.count().checked_div(rows).unwrap_or(0);
    reshaped(tensor, &Shape::new(&[rows, length])?)
}

pub(super) fn reshaped(tensor: &Tensor, shape: &Shape) -> Result<Tensor> {
    match tensor.layout().reshape(shape)? {
        Some(layout) => Ok(tensor.view_as(layout)),
        None => Ok(tensor.copy()?.view_as(Layout::from_shape(*shape))),
    }
}

/// # Errors
///
/// As [`check_same`], and [`Error::DTypeMismatch`] for a dtype without arithmetic.
fn check_elements(call: IndexOperation, array: &Tensor, elements: &Tensor) -> Result<()> {
    check_same(call, (array.device(), array.dtype()), elements)?;
    let dtype = array.dtype();
    if matches!(dtype, DType::Bool | DType::F8E4M3 | DType::F8E5M2) {
        let wanted = "numbers that can be added; cast the tensor first".to_owned();
        return Err(Error::DTypeMismatch { operation: call.name(), wanted, found: dtype.to_string() });
    }
    Ok(())
}
