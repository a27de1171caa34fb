//! The structs of `dlpack.h` 1.3 and of the version before 1.0.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};

/// The version of a [`DLManagedTensorVersioned`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLPackVersion {
    /// Another number is another layout.
    pub major: u32,
    /// A larger number has more codes.
    pub minor: u32,
}

/// A device: 1 is the CPU, 2 CUDA, 3 pinned host memory of CUDA.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLDevice {
    /// The kind of device.
    pub device_type: i32,
    /// The ordinal of the device.
    pub device_id: i32,
}

/// The type of elements.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DLDataType {
    /// 0 is a signed integer, 1 an unsigned one, 2 a float, 4 a bfloat, 5 a complex number, 6 a bool, 10 and 12 floats of 8 bits.
    pub code: u8,
    /// The bits of one element.
    pub bits: u8,
    /// The elements of a vector; 1 for a plain type.
    pub lanes: u16,
}

/// An array that somebody else owns.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLTensor {
    /// The memory; null for an array without elements.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// The sizes of the dimensions.
    pub shape: *mut i64,
    /// The strides of the dimensions in elements; null for row-major order.
    pub strides: *mut i64,
    /// The offset in bytes of the first element from `data`.
    pub byte_offset: u64,
}

/// An array with its owner, of DLPack 1.x.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLManagedTensorVersioned {
    /// The version of the struct.
    pub version: DLPackVersion,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees the struct and what it holds; the consumer calls it once.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`DLPACK_FLAG_READ_ONLY`](super::DLPACK_FLAG_READ_ONLY) and [`DLPACK_FLAG_IS_COPIED`](super::DLPACK_FLAG_IS_COPIED).
    pub flags: u64,
    /// The array.
    pub dl_tensor: DLTensor,
}

/// An array with its owner, of DLPack before 1.0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLManagedTensor {
    /// The array.
    pub dl_tensor: DLTensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees the struct and what it holds; the consumer calls it once.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

const _: () = {
    assert!(size_of::<DLDataType>() == 4 && offset_of!(DLDataType, bits) == 1);
    assert!(offset_of!(DLDataType, lanes) == 2);
    assert!(size_of::<DLDevice>() == 8 && offset_of!(DLDevice, device_id) == 4);
    assert!(size_of::<DLPackVersion>() == 8 && offset_of!(DLPackVersion, minor) == 4);
    assert!(size_of::<DLTensor>() == 48 && offset_of!(DLTensor, device) == 8);
    assert!(offset_of!(DLTensor, ndim) == 16 && offset_of!(DLTensor, dtype) == 20);
    assert!(offset_of!(DLTensor, shape) == 24 && offset_of!(DLTensor, strides) == 32);
    assert!(offset_of!(DLTensor, byte_offset) == 40);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
    assert!(offset_of!(DLManagedTensorVersioned, manager_ctx) == 8);
    assert!(offset_of!(DLManagedTensorVersioned, deleter) == 16);
    assert!(offset_of!(DLManagedTensorVersioned, flags) == 24);
    assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
    assert!(size_of::<DLManagedTensor>() == 64 && offset_of!(DLManagedTensor, manager_ctx) == 48);
    assert!(offset_of!(DLManagedTensor, deleter) == 56);
};
