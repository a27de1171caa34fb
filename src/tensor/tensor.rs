//! [`Tensor`], an array of any dtype and layout on any device.

use super::device::Device;
use super::storage::{Memory, Shared};
use crate::error::{Error, Result};
use crate::fuse::HostInput;
use crate::types::{DType, Layout, Shape};

/// An array: a dtype known at run time, a shape, strides, and elements on the CPU or a CUDA device.
///
/// A clone is cheap: clones and views share the elements. A write takes `&mut` and copies shared elements first, so no other
/// tensor sees it. The [module](super) describes promotion and broadcasting.
#[derive(Clone)]
pub struct Tensor {
    pub(super) storage: Shared,
    pub(super) dtype: DType,
    pub(super) layout: Layout,
}

impl Tensor {
    /// All of the layout's elements are in the storage.
    #[inline]
    pub(crate) fn of(storage: Shared, dtype: DType, layout: Layout) -> Tensor {
        Tensor { storage, dtype, layout }
    }

    /// Returns the dtype of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        self.layout.shape()
    }

    /// Returns the number of dimensions.
    #[doc(alias = "dim")]
    #[doc(alias = "ndim")]
    #[inline]
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Returns the number of elements.
    #[doc(alias = "numel")]
    #[inline]
    pub fn count(&self) -> usize {
        self.layout.count()
    }

    /// Returns the layout of the elements in memory.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the device of the elements.
    #[inline]
    pub fn device(&self) -> Device {
        self.storage.device()
    }

    /// Returns whether the elements are adjacent in memory, in row-major order.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Returns whether no clone and no view shares the elements, so a write needs no copy.
    pub fn is_unique(&self) -> bool {
        self.storage.is_unique()
    }

    /// Returns whether the elements are in page-locked memory of the host: those of a
    /// [pinned buffer](Self::from_pinned), or of another library that said so by DLPack. Results of operations are not.
    pub fn is_pinned(&self) -> bool {
        self.storage.is_pinned()
    }

    /// Makes the tensor hold an error instead of elements. Clones and views keep their elements.
    pub(crate) fn hold_error(&mut self, error: Error) {
        self.storage = Shared::of_error(self.device(), error);
    }

    /// Returns all of the memory, of which the layout describes a part.
    #[inline]
    pub(crate) fn memory(&self) -> Memory<'_> {
        self.storage.memory()
    }

    /// The elements as a run on the CPU reads them.
    #[inline]
    pub(super) fn host_input(&self, operation: &'static str) -> Result<HostInput<'_>> {
        HostInput::of_layout(self.dtype, self.memory().host(operation)?, &self.layout)
    }

    /// The same memory in another layout, which was made from this one's.
    pub(crate) fn view_as(&self, layout: Layout) -> Tensor {
        Tensor { storage: self.storage.clone(), dtype: self.dtype, layout }
    }
}

/// The one device of all tensors.
///
/// # Errors
///
/// [`Error::DeviceMismatch`] where they are on several, [`Error::InvalidArgument`] where there is no tensor.
#[inline]
pub(crate) fn one_device<'a>(
    operation: &'static str,
    tensors: impl IntoIterator<Item = &'a Tensor>,
) -> Result<Device> {
    let mut tensors = tensors.into_iter();
    let Some(first) = tensors.next() else {
        return Err(Error::invalid(operation, "no tensors", "at least one"));
    };
    let device = first.device();
    match tensors.find(|tensor| tensor.device() != device) {
        None => Ok(device),
        Some(other) => Err(mismatch(operation, device, other.device())),
    }
}

#[cold]
pub(super) fn mismatch(operation: &'static str, left: Device, right: Device) -> Error {
    let name = |device: Device| format!("a tensor on {device}");
    Error::DeviceMismatch { operation, left: name(left), right: name(right) }
}
