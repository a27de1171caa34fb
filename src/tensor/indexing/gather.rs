//! Reads by index: `gather`, `take_along_axis`, `index_select`, `take`.

use super::{
    IndexCheck, IndexOperation, IndexedAxis, along_axis, check_index_shape, flattened, indices, list, read,
    resized,
};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Elements by index. An index is a tensor of any integers on the same device, and a negative one counts from the end.
///
/// An index that is out of range is an [`Error::IndexOutOfRange`](Error::IndexOutOfRange) with the operation's name.
/// On the CPU the operation returns it. On a CUDA device the operation returns before the kernel finds the index. The next call
/// that waits for the device (`to_vec`, `item`, `to`, `Device::synchronize`), on any thread, returns the error once, and the
/// result has zeros at bad indices. The forms called `unchecked` have zeros there on both and return no error. No form reads
/// outside of the tensor.
impl Tensor {
    /// Gathers elements along `axis`. For a 2-d tensor and axis 0: `result[i][j] = self[index[i][j]][j]`. The result has the
    /// index's shape. This is PyTorch's `gather` with negative indices and any integer dtype for the index.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &cpu)?;
    /// let index = Tensor::new([[2, 0], [-1, 1]], &cpu)?;
    /// assert_eq!(x.gather(1, &index)?.to_vec::<f32>()?, [3.0, 1.0, 6.0, 5.0]);
    ///
    /// let error = x.gather(0, &Tensor::new([[0, 2, 1]], &cpu)?).unwrap_err();
    /// let wanted = "gather: found index 2 along axis 0; wanted one of 0 to 1, or of -2 to -1 from the end";
    /// assert_eq!(error.to_string(), wanted);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for an axis that is not there, or an index with another number of
    /// dimensions or, along another axis, a larger size; [`DTypeMismatch`](Error::DTypeMismatch) for an index that is not
    /// of integers; [`DeviceMismatch`](Error::DeviceMismatch); those of memory; and an index that is out of range,
    /// as said above.
    pub fn gather(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.gathered(IndexOperation::Gather, axis, index, IndexCheck::Report)
    }

    /// As [`gather`](Self::gather), with zeros where an index is out of range.
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather), but for indices out of range.
    pub fn gather_unchecked(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.gathered(IndexOperation::Gather, axis, index, IndexCheck::Ignore)
    }

    pub(super) fn gathered(
        &self,
        call: IndexOperation,
        axis: isize,
        index: &Tensor,
        check: IndexCheck,
    ) -> Result<Tensor> {
        let axis = self.shape().axis(call.name(), axis)?;
        check_index_shape(call, self.shape(), axis, index)?;
        let index = indices(call, self.device(), index)?;
        read(call, self, &IndexedAxis::axis(self.layout(), axis), &index, index.layout(), check)
    }

    /// As [`gather`](Self::gather), with an index that broadcasts: in each dimension but the axis, a size of 1 of the index or of
    /// this tensor takes the other's size. As NumPy's `take_along_axis`.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu)?;
    /// assert_eq!(x.take_along_axis(1, &Tensor::new([[2, 0]], &cpu)?)?.to_vec::<i32>()?, [3, 1, 6, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather), where the shapes do not broadcast.
    pub fn take_along_axis(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        const OPERATION: IndexOperation = IndexOperation::TakeAlongAxis;
        let axis = self.shape().axis(OPERATION.name(), axis)?;
        let index = indices(OPERATION, self.device(), index)?;
        if index.rank() != self.rank() {
            let found = format!("an index of shape {} for an array of shape {}", index.shape(), self.shape());
            return Err(Error::invalid(OPERATION.name(), found, "as many dimensions"));
        }
        let of_index = resized(self.shape(), axis, index.shape()[axis])?
            .broadcast_in(OPERATION.name(), index.shape())?;
        let of_array = resized(&of_index, axis, self.shape()[axis])?;
        let array = self.view_as(self.layout().expand(&of_array)?);
        let repeated = index.layout().expand(&of_index)?;
        read(
            OPERATION,
            &array,
            &IndexedAxis::axis(array.layout(), axis),
            &index,
            &repeated,
            IndexCheck::Report,
        )
    }

    /// Returns whole slices of this tensor along `axis`, in the order of a 1-d index: rows of a matrix for axis 0. An
    /// index without dimensions counts as one of one element.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2], [3, 4], [5, 6]], &cpu)?;
    /// let index = Tensor::new([-1, 0, 0], &cpu)?;
    /// assert_eq!(x.index_select(0, &index)?.to_vec::<i32>()?, [5, 6, 1, 2, 1, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for an index of two and more dimensions; otherwise as
    /// [`gather`](Self::gather).
    pub fn index_select(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.selected(axis, index, IndexCheck::Report)
    }

    /// As [`index_select`](Self::index_select), with zeros where an index is out of range.
    ///
    /// # Errors
    ///
    /// As [`index_select`](Self::index_select), but for indices out of range.
    pub fn index_select_unchecked(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.selected(axis, index, IndexCheck::Ignore)
    }

    fn selected(&self, axis: isize, index: &Tensor, check: IndexCheck) -> Result<Tensor> {
        const OPERATION: IndexOperation = IndexOperation::IndexSelect;
        let axis = self.shape().axis(OPERATION.name(), axis)?;
        self.index_select_by(OPERATION, (axis, axis), index, check)
    }

    /// Selects as [`index_select`](Self::index_select) along an axis, for an operation that calls it by another number.
    pub(super) fn index_select_by(
        &self,
        call: IndexOperation,
        (axis, named): (usize, usize),
        index: &Tensor,
        check: IndexCheck,
    ) -> Result<Tensor> {
        let index = list(call, indices(call, self.device(), index)?)?;
        let shape = resized(self.shape(), axis, index.count())?;
        let repeated = along_axis(index.layout(), axis, &shape)?;
        let along = IndexedAxis { axis: Some(named), ..IndexedAxis::axis(self.layout(), axis) };
        read(call, self, &along, &index, &repeated, check)
    }

    /// Returns the elements at positions in row-major order over all dimensions, in the index's shape. A tensor whose elements
    /// are not evenly spaced is made contiguous first.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu)?;
    /// assert_eq!(x.take(&Tensor::new([[0, 4], [-1, 2]], &cpu)?)?.to_vec::<i32>()?, [1, 5, 6, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather), where they concern the index.
    pub fn take(&self, index: &Tensor) -> Result<Tensor> {
        self.taken(IndexOperation::Take, index, IndexCheck::Report)
    }

    /// As [`take`](Self::take), with zeros where an index is out of range.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take), but for indices out of range.
    pub fn take_unchecked(&self, index: &Tensor) -> Result<Tensor> {
        self.taken(IndexOperation::Take, index, IndexCheck::Ignore)
    }

    pub(super) fn taken(&self, call: IndexOperation, index: &Tensor, check: IndexCheck) -> Result<Tensor> {
        let index = indices(call, self.device(), index)?;
        let array = flattened(self)?;
        read(call, &array, &IndexedAxis::flat(array.layout()), &index, index.layout(), check)
    }
}
