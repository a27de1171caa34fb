//! Writing by index.

use std::sync::Arc;

use super::kernels;
use super::{
    Along, Call, Check, Operand, Space, along_axis, axis_of, check_index_shape, check_on_host, flattened, host,
    indices, list, operand, resized,
};
use crate::error::{Error, Result};
use crate::tensor::device::stream;
use crate::tensor::storage::{Memory, MemoryMut};
use crate::tensor::tensor::{Tensor, one_device};
use crate::types::{DType, Layout, Shape};

/// The most positions along an axis that the marks of a scatter can tell apart.
const MOST_POSITIONS: usize = u32::MAX as usize - 1;

/// Writing by index. Where several indices name one place, the element with the highest position along the axis (for
/// [`put`](Tensor::put): in the index's row-major order) is the one that is there in the end, on every device and at
/// every run. Elements broadcast to the index's shape and have this tensor's dtype.
///
/// Each comes as a new tensor, and `in_place`, which copies first where the elements are shared with a clone or a view.
/// An index that is out of range writes nothing and is told as for [`gather`](Tensor::gather); on the CPU nothing at all
/// is written then.
impl Tensor {
    /// This tensor with some elements replaced: `result[index[i][j]][j] = elements[i][j]` for axis 0 of two. Coordinates but
    /// along the axis are those in the index, which may be smaller than this tensor.
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
    /// As [`gather`](Self::gather); [`InvalidArgument`](Error::InvalidArgument) for elements that do not broadcast to the
    /// index's shape, [`DTypeMismatch`](Error::DTypeMismatch) for those of another dtype.
    pub fn scatter(&self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<Tensor> {
        self.copy_with(|copy| copy.scattered(axis, index, elements, Check::Report))
    }

    /// As [`scatter`](Self::scatter); nobody is told of an index that is out of range.
    ///
    /// # Errors
    ///
    /// As [`scatter`](Self::scatter), but for indices out of range.
    pub fn scatter_unchecked(&self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<Tensor> {
        self.copy_with(|copy| copy.scattered(axis, index, elements, Check::Ignore))
    }

    /// As [`scatter`](Self::scatter), into this tensor.
    ///
    /// # Errors
    ///
    /// As [`scatter`](Self::scatter).
    pub fn scatter_in_place(&mut self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<()> {
        self.scattered(axis, index, elements, Check::Report)
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
        self.copy_with(|copy| copy.index_copy_in_place(axis, index, elements))
    }

    /// As [`index_copy`](Self::index_copy), into this tensor.
    ///
    /// # Errors
    ///
    /// As [`index_copy`](Self::index_copy).
    pub fn index_copy_in_place(&mut self, axis: isize, index: &Tensor, elements: &Tensor) -> Result<()> {
        const CALL: Call = Call::IndexCopy;
        let axis = axis_of(CALL, self, axis)?;
        let index = list(CALL, indices(CALL, self, index)?)?;
        let shape = resized(self.shape(), axis, index.count())?;
        let repeated = along_axis(index.layout(), axis, &shape)?;
        self.written(CALL, Some(axis), &index, &repeated, elements, Check::Report)
    }

    /// This tensor with the elements at positions in row-major order replaced. The opposite of [`take`](Self::take).
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
        self.copy_with(|copy| copy.put_in_place(index, elements))
    }

    /// As [`put`](Self::put), into this tensor.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn put_in_place(&mut self, index: &Tensor, elements: &Tensor) -> Result<()> {
        check_elements(Call::Put, self, elements)?;
        let index = indices(Call::Put, self, index)?;
        let elements = elements.view_as(elements.layout().expand(index.shape())?);
        // In row-major order, so that the position of an element is one number.
        let (index, elements) = (flattened(&index)?, flattened(&elements)?);
        self.written(Call::Put, None, &index, index.layout(), &elements, Check::Report)
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
    /// [`DTypeMismatch`](Error::DTypeMismatch) where this is not of integers, [`InvalidArgument`](Error::InvalidArgument)
    /// where there is no room for another dimension, and a class that is out of range as for [`gather`](Self::gather).
    pub fn one_hot(&self, classes: usize) -> Result<Tensor> {
        const CALL: Call = Call::OneHot;
        let index = indices(CALL, self, self)?;
        let index = index.view_as(index.layout().unsqueeze(-1)?);
        let axis = index.rank() - 1;
        let shape = resized(index.shape(), axis, classes)?;
        let (device, dtype) = (self.device(), self.dtype());
        let mut result = Tensor::zeros(&shape, dtype, &device)?;
        let one = Tensor::ones(&[], dtype, &device)?;
        result.written(CALL, Some(axis), &index, index.layout(), &one, Check::Report)?;
        Ok(result)
    }

    /// What `change` makes of a copy.
    fn copy_with(&self, change: impl FnOnce(&mut Tensor) -> Result<()>) -> Result<Tensor> {
        // The write makes the copy, since this tensor has the elements too.
        let mut copy = self.clone();
        change(&mut copy)?;
        Ok(copy)
    }

    fn scattered(&mut self, axis: isize, index: &Tensor, elements: &Tensor, check: Check) -> Result<()> {
        let axis = axis_of(Call::Scatter, self, axis)?;
        check_index_shape(Call::Scatter, self, axis, index)?;
        let index = indices(Call::Scatter, self, index)?;
        self.written(Call::Scatter, Some(axis), &index, index.layout(), elements, check)
    }

    /// Writes elements, repeated to the shape of `repeated`, along an axis, or along all elements for an index of one
    /// dimension.
    fn written(
        &mut self,
        call: Call,
        axis: Option<usize>,
        index: &Tensor,
        repeated: &Layout,
        elements: &Tensor,
        check: Check,
    ) -> Result<()> {
        check_elements(call, self, elements)?;
        let from = elements.layout().expand(repeated.shape())?;
        if let (Memory::Host(memory), Check::Report) = (index.memory(), check) {
            check_on_host(call, &self.seen(axis), index, memory)?;
        }
        self.make_own(axis.is_none())?;
        let along = self.seen(axis);
        let at = axis.unwrap_or(0);
        let positions = repeated.shape()[at];
        let mut start = 0;
        while start < positions {
            let length = MOST_POSITIONS.min(positions - start);
            let part = (repeated.narrow(at as isize, start, length)?, from.narrow(at as isize, start, length)?);
            self.write_part(call, (at, &along), index, part, elements, check)?;
            start += length;
        }
        Ok(())
    }

    /// As the index of a write sees it.
    fn seen(&self, axis: Option<usize>) -> Along {
        match axis {
            Some(axis) => Along::axis(self.layout(), axis),
            None => Along::flat(&Layout::of(*self.shape())),
        }
    }

    /// Memory that nobody else has, in which no two elements are one.
    fn make_own(&mut self, dense: bool) -> Result<()> {
        let laid = !self.layout().may_overlap() && (!dense || self.is_contiguous());
        if !laid || Arc::get_mut(&mut self.storage).is_none() {
            *self = self.copy()?;
        }
        Ok(())
    }

    /// Writes elements whose positions along the axis can be counted in marks.
    fn write_part(
        &mut self,
        call: Call,
        (axis, along): (usize, &Along),
        index: &Tensor,
        (repeated, from): (Layout, Layout),
        elements: &Tensor,
        check: Check,
    ) -> Result<()> {
        let (device, shape, bytes) = (self.device(), repeated.shape(), self.dtype().size());
        let named = along.named(call);
        let moved = [operand(&repeated), along.operand, operand(&from)];
        // Several elements can go to one place only along the axis.
        let marked = if shape[axis] > 1 { Some(Marks::new(&repeated, axis, along.size)?) } else { None };
        let storage = Arc::get_mut(&mut self.storage);
        let Some(storage) = storage else {
            return Err(Error::invalid(call.name(), "shared memory", "a tensor that was copied first"));
        };
        match (index.memory(), elements.memory(), storage.memory_mut()) {
            (Memory::Host(indices), Memory::Host(from), MemoryMut::Host(to)) => {
                let space = Space::new(shape, &moved, Some(bytes), named)?;
                host::scatter(&space, host::Indices::new(indices, index.dtype()), to, from);
            }
            (Memory::Cuda(memory), Memory::Cuda(from), MemoryMut::Cuda(to)) if shape.count() > 0 => {
                let indices = kernels::Indices { memory, dtype: index.dtype() };
                let (stream, checked) = (stream(&device)?, check == Check::Report);
                match marked {
                    None => {
                        let space = Space::new(shape, &moved, Some(bytes), named)?;
                        // SAFETY: layouts of the operands' own memory, this tensor's at the axis by positions that it has;
                        // its elements do not overlap, and there is one element for each other coordinate.
                        unsafe { kernels::scatter(&stream, &space, indices, to, from, checked)? };
                    }
                    Some(marks) => {
                        let operands = [moved[0], moved[1], moved[2], marks.marks, marks.position];
                        let space = Space::new(shape, &operands, Some(bytes), named)?;
                        let operands = [operand(&marks.once), marks.marks, marks.position];
                        let marking = Space::new(marks.once.shape(), &operands, None, named)?;
                        let spaces = (&space, &marking, marks.count);
                        // SAFETY: as above; the marks have a place for each position and coordinate of the index.
                        unsafe { kernels::scatter_last(&stream, spaces, indices, to, from, checked)? };
                    }
                }
            }
            // One device, as was checked, or nothing to do.
            _ => {}
        }
        Ok(())
    }
}

/// Where a scatter notes the last element for each place.
struct Marks {
    /// The index without its repetitions, over which the last element is the same.
    once: Layout,
    marks: Operand,
    position: Operand,
    count: usize,
}

impl Marks {
    /// For an index that leads along an axis of `size` positions.
    fn new(repeated: &Layout, axis: usize, size: usize) -> Result<Marks> {
        let mut once = *repeated;
        for (at, stride) in repeated.strides().iter().enumerate() {
            if *stride == 0 && at != axis {
                once = once.narrow(at as isize, 0, repeated.shape()[at].min(1))?;
            }
        }
        let places = resized(once.shape(), axis, size)?;
        // Repeated over what was left out.
        let full = resized(repeated.shape(), axis, size)?;
        let marks = operand(&Layout::of(places).expand(&full)?).along(axis);
        let mut strides = vec![0; repeated.rank()];
        if let Some(stride) = strides.get_mut(axis) {
            *stride = 1;
        }
        Ok(Marks { once, marks, position: Operand::new(&strides, 0), count: places.count() })
    }
}

/// # Errors
///
/// [`Error::DTypeMismatch`] and [`Error::DeviceMismatch`].
fn check_elements(call: Call, array: &Tensor, elements: &Tensor) -> Result<()> {
    one_device(call.name(), [array, elements])?;
    let name = |dtype: DType| format!("elements of {dtype}");
    if array.dtype() == elements.dtype() {
        return Ok(());
    }
    Err(Error::DTypeMismatch {
        operation: call.name(),
        wanted: format!("{}, the dtype of what they go to; cast them first", name(array.dtype())),
        found: name(elements.dtype()),
    })
}
