//! Writes by index: `scatter`, `index_copy`, `put`, `one_hot`.

use super::kernels;
use super::{
    IndexCheck, IndexOperation, IndexSpace, IndexedAxis, IndexedOperand, along_axis, check_index_shape,
    check_on_host, check_same, flattened, host, indices, list, operand, resized,
};
use crate::error::Result;
use crate::tensor::device::stream;
use crate::tensor::in_place::TensorMut;
use crate::tensor::storage::MemoryMut;
use crate::tensor::tensor::Tensor;
use crate::tensor::traced;
use crate::types::{Layout, Shape};

/// The most positions along an axis that the marks of a scatter can tell apart.
const MAX_POSITIONS: usize = u32::MAX as usize - 1;
/// Targets for each position of an index up to which going through the targets in order is faster than through the index.
const MAX_PLACES: usize = 4;

/// Writes by index. If several indices name one target, the element with the highest position along the axis (for
/// [`put`](Tensor::put): in the index's row-major order) wins, on every device and in every run. Elements broadcast to the
/// index's shape, and have this tensor's dtype.
///
/// These methods return a new tensor; [`in_place`](Tensor::in_place) has the same methods, which write to the tensor itself.
/// An index that is out of range writes nothing and is an error as for [`gather`](Tensor::gather); on the CPU nothing at all
/// is written then.
impl Tensor {
    /// Returns this tensor with some elements replaced. For a 2-d tensor and axis 0:
    /// `result[index[i][j]][j] = elements[i][j]`. The index may be smaller than this tensor.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[0, 0, 0], [0, 0, 0]], &cpu)?;
    /// let index = Tensor::new([[2, 0, 2], [1, 1, -1]], &cpu)?;
    /// let elements = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu)?;
    /// // Both 1 and 3 go to the end of the first row: the last one stays.
    /// assert_eq!(x.scatter(1, &index, &elements)?.to_vec::<i32>()?, [2, 0, 3, 0, 5, 6]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather); [`InvalidArgument`](crate::Error::InvalidArgument) for elements that do not broadcast to the
    /// index's shape, [`DTypeMismatch`](crate::Error::DTypeMismatch) for those of another dtype.
    pub fn scatter(&self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<Tensor> {
        let mut result = self.clone();
        result.in_place().scatter(axis, index, elements)?;
        Ok(result)
    }

    /// As [`scatter`](Self::scatter). An index that is out of range is no error.
    ///
    /// # Errors
    ///
    /// As [`scatter`](Self::scatter), but for indices out of range.
    pub fn scatter_unchecked(&self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<Tensor> {
        let mut result = self.clone();
        result.in_place().scatter_unchecked(axis, index, elements)?;
        Ok(result)
    }

    /// This tensor with whole parts along `axis` replaced, at the positions of an index of one dimension:
    /// `result[index[i]] = elements[i]` for axis 0. The opposite of [`index_select`](Self::index_select).
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2], [3, 4], [5, 6]], &cpu)?;
    /// let result = x.index_copy(0, &Tensor::new([-1, 0], &cpu)?, &Tensor::new([[7, 8], [9, 10]], &cpu)?)?;
    /// assert_eq!(result.to_vec::<i32>()?, [9, 10, 3, 4, 7, 8]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`index_select`](Self::index_select) and [`scatter`](Self::scatter).
    pub fn index_copy(&self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<Tensor> {
        let mut result = self.clone();
        result.in_place().index_copy(axis, index, elements)?;
        Ok(result)
    }

    /// This tensor with the elements at positions in row-major order replaced. The opposite of [`take`](Self::take). Elements
    /// of another shape than the index's count in row-major order if they are as many, and broadcast otherwise.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu)?;
    /// let result = x.put(&Tensor::new([4, 0, 4], &cpu)?, &Tensor::new([7, 8, 9], &cpu)?)?;
    /// assert_eq!(result.to_vec::<i32>()?, [8, 2, 3, 4, 9, 6]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`scatter`](Self::scatter), where they concern the index and the elements.
    pub fn put(&self, index: &Tensor, elements: &Tensor) -> Result<Tensor> {
        let mut result = self.clone();
        result.in_place().put(index, elements)?;
        Ok(result)
    }

    /// A tensor of 0 and 1 with one more dimension, of `classes`: 1 where its coordinate is what this tensor, an index, says.
    /// It has this tensor's dtype.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([2i64, 0], &Device::cpu())?;
    /// assert_eq!(x.one_hot(3)?.to_vec::<i64>()?, [0, 0, 1, 1, 0, 0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DTypeMismatch`](crate::Error::DTypeMismatch) where this is not of integers, [`InvalidArgument`](crate::Error::InvalidArgument)
    /// if the rank is the largest, and a class that is out of range as for [`gather`](Self::gather).
    pub fn one_hot(&self, classes: usize) -> Result<Tensor> {
        let (device, dtype) = (self.device(), self.dtype());
        let index = indices(IndexOperation::OneHot, device, self)?;
        let index = index.view_as(index.layout().unsqueeze(-1)?);
        let axis = index.rank() - 1;
        let mut result = Tensor::zeros(&resized(index.shape(), axis, classes)?, dtype, &device)?;
        let one = Tensor::ones(&[], dtype, &device)?;
        let how = (IndexOperation::OneHot, IndexCheck::Report);
        result.in_place().write_along(how, Some(axis), &index, index.layout(), &one)?;
        Ok(result)
    }
}

/// Writing by index into what is there; see the operations of [`Tensor`] of the same names.
impl<'a> TensorMut<'a> {
    /// Replaces some elements; see [`Tensor::scatter`].
    ///
    /// # Errors
    ///
    /// As [`Tensor::scatter`].
    pub fn scatter(&mut self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<&mut TensorMut<'a>> {
        self.scattered(axis, index, elements, IndexCheck::Report)
    }

    /// As [`scatter`](Self::scatter). An index that is out of range is no error.
    ///
    /// # Errors
    ///
    /// As [`scatter`](Self::scatter), but for indices out of range.
    pub fn scatter_unchecked(
        &mut self,
        axis: isize,
        index: &Tensor,
        elements: &Tensor,
    ) -> Result<&mut TensorMut<'a>> {
        self.scattered(axis, index, elements, IndexCheck::Ignore)
    }

    /// Replaces whole parts along an axis; see [`Tensor::index_copy`].
    ///
    /// # Errors
    ///
    /// As [`Tensor::index_copy`].
    pub fn index_copy(
        &mut self,
        axis: isize,
        index: &Tensor,
        elements: &Tensor,
    ) -> Result<&mut TensorMut<'a>> {
        self.copied(axis, index, elements, IndexCheck::Report)
    }

    /// As [`index_copy`](Self::index_copy). An index that is out of range is no error.
    pub(super) fn index_copy_unchecked(
        &mut self,
        axis: isize,
        index: &Tensor,
        elements: &Tensor,
    ) -> Result<&mut TensorMut<'a>> {
        self.copied(axis, index, elements, IndexCheck::Ignore)
    }

    fn copied(
        &mut self,
        axis: isize,
        index: &Tensor,
        elements: &Tensor,
        check: IndexCheck,
    ) -> Result<&mut TensorMut<'a>> {
        const OPERATION: IndexOperation = IndexOperation::IndexCopy;
        let axis = self.shape().axis(OPERATION.name(), axis)?;
        let index = list(OPERATION, indices(OPERATION, self.device(), index)?)?;
        let shape = resized(self.shape(), axis, index.count())?;
        let repeated = along_axis(index.layout(), axis, &shape)?;
        self.write_along((OPERATION, check), Some(axis), &index, &repeated, elements)?;
        Ok(self)
    }

    /// Replaces the elements at positions in row-major order; see [`Tensor::put`].
    ///
    /// # Errors
    ///
    /// As [`Tensor::put`].
    pub fn put(&mut self, index: &Tensor, elements: &Tensor) -> Result<&mut TensorMut<'a>> {
        let index = indices(IndexOperation::Put, self.device(), index)?;
        // In row-major order, so that the position of an element is one number.
        let elements = match elements.count() == index.count() {
            true => flattened(elements)?,
            false => flattened(&elements.view_as(elements.layout().expand(index.shape())?))?,
        };
        let index = flattened(&index)?;
        let how = (IndexOperation::Put, IndexCheck::Report);
        if flat(self.layout())?.is_some() {
            self.write_along(how, None, &index, index.layout(), &elements)?;
        } else {
            // No stride counts through these elements.
            let mut dense = self.current().copy()?;
            dense.in_place().write_along(how, None, &index, index.layout(), &elements)?;
            self.assign(&dense)?;
        }
        Ok(self)
    }

    fn scattered(
        &mut self,
        axis: isize,
        index: &Tensor,
        elements: &Tensor,
        check: IndexCheck,
    ) -> Result<&mut TensorMut<'a>> {
        let axis = self.shape().axis(IndexOperation::Scatter.name(), axis)?;
        check_index_shape(IndexOperation::Scatter, self.shape(), axis, index)?;
        let index = indices(IndexOperation::Scatter, self.device(), index)?;
        self.write_along((IndexOperation::Scatter, check), Some(axis), &index, index.layout(), elements)?;
        Ok(self)
    }

    /// Writes elements, repeated to the shape of `repeated`, along an axis, or along all elements for an index of one
    /// dimension.
    pub(super) fn write_along(
        &mut self,
        (call, check): (IndexOperation, IndexCheck),
        axis: Option<usize>,
        index: &Tensor,
        repeated: &Layout,
        elements: &Tensor,
    ) -> Result<()> {
        check_same(call, (self.device(), self.dtype()), elements)?;
        let from = elements.layout().expand(repeated.shape())?;
        if self.device().is_cpu() && check == IndexCheck::Report {
            check_on_host(call, &seen(self.layout(), axis)?, index, index.memory().host(call.name())?)?;
        }
        if repeated.count() == 0 {
            return Ok(());
        }
        // Shared elements are copied first, since only some elements are written.
        let mut own = self.reborrow().view(|layout| Ok(*layout))?;
        own.write(|target| {
            let (mut memory, dtype, layout) = target.into_parts();
            let (along, at) = (seen(layout, axis)?, axis.unwrap_or(0));
            let positions = repeated.shape().get(at).copied().unwrap_or(0);
            let mut start = 0;
            while start < positions {
                let length = MAX_POSITIONS.min(positions - start);
                let part = |layout: &Layout| layout.narrow(at as isize, start, length);
                let write = Write { call, check, bytes: dtype.size(), along, axis: at };
                write.run(&mut memory, index, &part(repeated)?, elements, &part(&from)?)?;
                start += length;
            }
            Ok(())
        })
    }
}

/// An array as the index of a write sees it.
fn seen(layout: &Layout, axis: Option<usize>) -> Result<IndexedAxis> {
    match axis {
        Some(axis) => Ok(IndexedAxis::axis(layout, axis)),
        None => Ok(IndexedAxis::flat(&flat(layout)?.unwrap_or(*layout))),
    }
}

/// The elements in one dimension, where strides can say it.
fn flat(layout: &Layout) -> Result<Option<Layout>> {
    layout.reshape(&Shape::new(&[layout.count()])?)
}

/// A write of elements whose positions along the axis can be counted in marks.
struct Write {
    call: IndexOperation,
    check: IndexCheck,
    bytes: usize,
    along: IndexedAxis,
    axis: usize,
}

impl Write {
    fn run(
        &self,
        memory: &mut MemoryMut<'_>,
        index: &Tensor,
        repeated: &Layout,
        elements: &Tensor,
        from: &Layout,
    ) -> Result<()> {
        let _traced = traced::operation(self.call.name(), [index, elements].into_iter(), None);
        let (shape, named) = (repeated.shape(), self.along.named(self.call));
        let moved = [operand(repeated), self.along.operand, operand(from)];
        let space = |operands: &[IndexedOperand]| IndexSpace::new(shape, operands, Some(self.bytes), named);
        let name = self.call.name();
        if memory.device().is_cpu() {
            let indices = host::Indices::new(index.memory().host(name)?, index.dtype());
            host::scatter(&space(&moved)?, indices, memory.host(name)?, elements.memory().host(name)?);
            return Ok(());
        }
        if shape.count() == 0 {
            return Ok(());
        }
        let indices = kernels::Indices { memory: index.memory().cuda(name)?, dtype: index.dtype() };
        let (from, to) = (elements.memory().cuda(name)?, memory.cuda(name)?);
        let (stream, checked) = (stream(&index.device())?, self.check == IndexCheck::Report);
        // Several elements can go to one target only along the axis.
        if shape[self.axis] == 1 {
            // SAFETY: layouts of the operands' own memory, the array's at the axis by positions that it has; its elements
            // do not overlap, and there is one element for each coordinate but the axis's.
            return unsafe { kernels::scatter(&stream, &space(&moved)?, indices, to, from, checked) };
        }
        let marks = Marks::new(repeated, self.axis, self.along.size)?;
        let once = [operand(&marks.once), marks.marks, marks.position];
        let marking = IndexSpace::new(marks.once.shape(), &once, None, named)?;
        // SAFETY: as above; the marks have a target for each position and coordinate of the index.
        let found = unsafe { kernels::mark(&stream, &marking, marks.count, indices, checked)? };
        if self.along.size <= MAX_PLACES.saturating_mul(shape[self.axis]) {
            let space = marks.by_targets(&moved, self.axis, self.bytes, named)?;
            // SAFETY: as above; marks name positions of the elements, of which there are as many as of the index.
            unsafe { kernels::scatter_marked(&stream, &space, to, from, &found) }
        } else {
            let space = space(&[moved[0], moved[1], moved[2], marks.marks, marks.position])?;
            // SAFETY: as above.
            unsafe { kernels::scatter_last(&stream, &space, indices, to, from, &found) }
        }
    }
}

/// The marks of a scatter: the last element for each target.
pub(super) struct Marks {
    /// The index without its repetitions, over which the last element is the same.
    pub(super) once: Layout,
    pub(super) marks: IndexedOperand,
    pub(super) position: IndexedOperand,
    pub(super) count: usize,
    /// That of the index, with the targets along the axis.
    targets: Shape,
    positions: usize,
}

impl Marks {
    /// For an index that leads along an axis of `size` positions.
    pub(super) fn new(repeated: &Layout, axis: usize, size: usize) -> Result<Marks> {
        let mut once = *repeated;
        for (at, stride) in repeated.strides().iter().enumerate() {
            if *stride == 0 && at != axis {
                once = once.narrow(at as isize, 0, repeated.shape()[at].min(1))?;
            }
        }
        let targets = resized(once.shape(), axis, size)?;
        // Repeated over what was left out.
        let full = resized(repeated.shape(), axis, size)?;
        let marks = operand(&Layout::from_shape(targets).expand(&full)?).along(axis);
        let mut strides = vec![0; repeated.rank()];
        if let Some(stride) = strides.get_mut(axis) {
            *stride = 1;
        }
        let (position, positions) = (IndexedOperand::new(&strides, 0), repeated.shape()[axis]);
        Ok(Marks { once, marks, position, count: targets.count(), targets: full, positions })
    }

    /// The same scatter as a walk over the targets: each is led by its mark to the element that it takes. `moved` are the
    /// operands of the walk over the index, `named` its name in errors.
    ///
    /// # Errors
    ///
    /// As [`IndexSpace::new`].
    pub(super) fn by_targets(
        &self,
        moved: &[IndexedOperand; 3],
        axis: usize,
        bytes: usize,
        (operation, told, _): (u32, usize, usize),
    ) -> Result<IndexSpace> {
        let operands = [self.marks.across(axis), moved[2].along(axis), moved[1].across(axis)];
        IndexSpace::new(&self.targets, &operands, Some(bytes), (operation, told, self.positions))
    }
}
