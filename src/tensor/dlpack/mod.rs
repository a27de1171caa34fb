//! DLPack: tensors that are shared with other libraries without a copy.
//!
//! The structs are those of `dlpack.h` 1.3, as the crate dlpark 0.10.0 carries it; versions 1.x have one layout. The legacy
//! struct, [`DLManagedTensor`], is the one from before 1.0, which has neither a version nor flags.
//!
//! A tensor of the CPU whose memory is page-locked ([`Tensor::is_pinned`]) is exported as pinned memory.
//!
//! An export holds the elements until the consumer calls its deleter. An import holds the producer's struct, and calls its
//! deleter once, when no tensor shares the elements any more and all work on them is done.
//!
//! Invariants: an import that fails leaves the struct to the caller, who still calls the deleter. This library never writes to
//! imported elements, whatever their producer's flags say: a write copies them first. So no write depends on who else holds
//! the elements, and no producer, second import or view sees one.
//!
//! Tests: `tests/tensor/dlpack.rs`.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

pub use structs::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};

use super::device::{Device, stream};
use super::storage::{HostMemory, Memory, Shared, Storage};
use super::tensor::Tensor;
use crate::driver::{self, DeviceBuffer, Stream};
use crate::error::{Error, Result};
use crate::types::{DType, Layout, MAX_RANK, Shape};

mod structs;

/// The major version of DLPack. Another one has another layout.
pub const DLPACK_MAJOR_VERSION: u32 = 1;
/// The minor version of DLPack that exports state.
pub const DLPACK_MINOR_VERSION: u32 = 3;
/// The flag of elements that the consumer must not write to.
pub const DLPACK_FLAG_READ_ONLY: u64 = 1;
/// The flag of elements that the producer copied for the consumer.
pub const DLPACK_FLAG_IS_COPIED: u64 = 2;

const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;

/// The type of each dtype.
const TYPES: [(DType, u8, u8); 17] = [
    (DType::Bool, 6, 8),
    (DType::U8, 1, 8),
    (DType::I8, 0, 8),
    (DType::U16, 1, 16),
    (DType::I16, 0, 16),
    (DType::U32, 1, 32),
    (DType::I32, 0, 32),
    (DType::U64, 1, 64),
    (DType::I64, 0, 64),
    (DType::F16, 2, 16),
    (DType::BF16, 4, 16),
    (DType::F32, 2, 32),
    (DType::F64, 2, 64),
    (DType::C64, 5, 64),
    (DType::C128, 5, 128),
    (DType::F8E4M3, 10, 8),
    (DType::F8E5M2, 12, 8),
];

const EXPORT: &str = "a DLPack export";
const IMPORT: &str = "a DLPack import";

/// The two managed structs.
trait Managed: Sized {
    fn new(tensor: DLTensor, manager_ctx: *mut c_void, flags: u64) -> Self;
}

impl Managed for DLManagedTensorVersioned {
    fn new(dl_tensor: DLTensor, manager_ctx: *mut c_void, flags: u64) -> Self {
        let version = DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION };
        let deleter: unsafe extern "C" fn(*mut Self) = delete_versioned;
        DLManagedTensorVersioned { version, manager_ctx, deleter: Some(deleter), flags, dl_tensor }
    }
}

impl Managed for DLManagedTensor {
    fn new(dl_tensor: DLTensor, manager_ctx: *mut c_void, _: u64) -> Self {
        DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(delete_legacy) }
    }
}

/// An export: the struct, and what it points to.
struct Export<M> {
    managed: Option<M>,
    shape: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
    // Dropped in this order: the memory is freed behind the consumer's work.
    _tensor: Tensor,
    _consumer: Option<Stream>,
}

unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: the consumer calls it once, with the struct of an export.
    unsafe { delete::<DLManagedTensorVersioned>((*managed).manager_ctx) }
}

unsafe extern "C" fn delete_legacy(managed: *mut DLManagedTensor) {
    // SAFETY: as above.
    unsafe { delete::<DLManagedTensor>((*managed).manager_ctx) }
}

/// # Safety
///
/// `context` is that of an [`Export`] of this struct, and is not used again.
unsafe fn delete<M>(context: *mut c_void) {
    // A panic must not reach the consumer.
    let drop_export = || {
        // SAFETY: the caller vouches for it.
        drop(unsafe { Box::from_raw(context.cast::<Export<M>>()) });
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(drop_export)) {
        std::mem::forget(panic);
    }
}

/// Exports a tensor. The consumer's stream waits for what wrote the elements.
fn export<M: Managed>(tensor: Tensor, consumer: Option<&Stream>, flags: u64) -> Result<NonNull<M>> {
    let (code, bits) = TYPES
        .iter()
        .find(|(dtype, ..)| *dtype == tensor.dtype())
        .map(|(_, code, bits)| (*code, *bits))
        .ok_or_else(|| Error::invalid(EXPORT, tensor.dtype(), "a dtype that DLPack has"))?;
    let start = tensor.layout().offset() * tensor.dtype().size();
    let (memory, device) = match tensor.memory() {
        Memory::Host(memory) => {
            // The ordinal of pinned memory is 0 for every device that locked it.
            let device_type = if tensor.is_pinned() { CUDA_HOST } else { CPU };
            (memory.as_ptr().cast_mut(), DLDevice { device_type, device_id: 0 })
        }
        Memory::Cuda(buffer) => {
            let device_id = i32::try_from(buffer.device().ordinal()).unwrap_or(i32::MAX);
            if let Some(consumer) = consumer {
                consumer.enter_external(buffer, flags & DLPACK_FLAG_READ_ONLY == 0)?;
            }
            let address = std::ptr::with_exposed_provenance_mut::<u8>(buffer.address() as usize);
            (address, DLDevice { device_type: CUDA, device_id })
        }
        Memory::Failed(error) => return Err(error.clone()),
    };
    let data = match tensor.count() {
        0 => std::ptr::null_mut(),
        _ => memory.wrapping_add(start).cast::<c_void>(),
    };
    let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
    for (at, (size, stride)) in tensor.shape().iter().zip(tensor.layout().strides()).enumerate() {
        (shape[at], strides[at]) = (*size as i64, *stride as i64);
    }
    let ndim = tensor.rank() as i32;
    let dtype = DLDataType { code, bits, lanes: 1 };
    let made =
        Box::new(Export { managed: None, shape, strides, _tensor: tensor, _consumer: consumer.cloned() });
    let made: *mut Export<M> = Box::into_raw(made);
    // SAFETY: the box was just made, and nobody else has its address.
    unsafe {
        let dl_tensor = DLTensor {
            data,
            device,
            ndim,
            dtype,
            shape: (&raw mut (*made).shape).cast(),
            strides: (&raw mut (*made).strides).cast(),
            byte_offset: 0,
        };
        let managed = (*made).managed.insert(M::new(dl_tensor, made.cast(), flags));
        Ok(NonNull::from(managed))
    }
}

/// The producer's struct, whose deleter is called when it is dropped.
struct Producer<M>(NonNull<M>);

// SAFETY: DLPack lets any thread call the deleter.
unsafe impl<M> Send for Producer<M> {}
// SAFETY: nothing is done through a shared reference.
unsafe impl<M> Sync for Producer<M> {}

/// The function that frees a producer's struct.
trait HasDeleter {
    /// # Safety
    ///
    /// The struct is live, and is not used again.
    unsafe fn delete(this: NonNull<Self>);
}

impl HasDeleter for DLManagedTensorVersioned {
    unsafe fn delete(this: NonNull<Self>) {
        // SAFETY: the caller vouches for it.
        unsafe {
            if let Some(deleter) = (*this.as_ptr()).deleter {
                deleter(this.as_ptr());
            }
        }
    }
}

impl HasDeleter for DLManagedTensor {
    unsafe fn delete(this: NonNull<Self>) {
        // SAFETY: the caller vouches for it.
        unsafe {
            if let Some(deleter) = (*this.as_ptr()).deleter {
                deleter(this.as_ptr());
            }
        }
    }
}

/// An array that was checked: where its memory is, and the layout of the elements in it.
struct Checked {
    address: *mut u8,
    bytes: usize,
    dtype: DType,
    layout: Layout,
    /// None is the CPU.
    device: Option<driver::Device>,
    /// True for page-locked memory of the CPU.
    pinned: bool,
}

fn refuse<T>(found: impl std::fmt::Display, wanted: &str) -> Result<T> {
    Err(Error::invalid(IMPORT, found, wanted))
}

impl TryFrom<DLDataType> for DType {
    type Error = Error;

    /// Returns the dtype of a type of elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a type that is none.
    fn try_from(DLDataType { code, bits, lanes }: DLDataType) -> Result<DType> {
        if lanes != 1 {
            return refuse(format!("elements of {lanes} lanes"), "elements of 1 lane");
        }
        match TYPES.iter().find(|known| (known.1, known.2) == (code, bits)) {
            Some(&(dtype, ..)) => Ok(dtype),
            None => refuse(format!("the type code {code} with {bits} bits"), "a type that is a dtype"),
        }
    }
}

/// Checks an array of a producer.
///
/// # Safety
///
/// `shape` and `strides` are null or point to `ndim` numbers.
unsafe fn check(tensor: &DLTensor) -> Result<Checked> {
    let dtype = DType::try_from(tensor.dtype)?;
    let device = match tensor.device.device_type {
        CPU | CUDA_HOST => None,
        CUDA => match usize::try_from(tensor.device.device_id) {
            Ok(ordinal) => Some(driver::Device::new(ordinal)?),
            Err(_) => return refuse(format!("device {}", tensor.device.device_id), "an ordinal from 0 on"),
        },
        other => {
            return refuse(
                format!("memory of the device type {other}"),
                "1 (CPU), 2 (CUDA) or 3 (CUDA pinned)",
            );
        }
    };
    let pinned = tensor.device.device_type == CUDA_HOST;
    let rank = usize::try_from(tensor.ndim).ok().filter(|rank| *rank <= MAX_RANK);
    let Some(rank) = rank else {
        return refuse(format!("{} dimensions", tensor.ndim), "0 to 16 dimensions");
    };
    if rank > 0 && tensor.shape.is_null() {
        return refuse("a null shape", "the sizes of the dimensions");
    }
    if !tensor.shape.is_aligned() || !tensor.strides.is_aligned() {
        return refuse("a misaligned shape or strides", "addresses aligned to 8 bytes");
    }
    let values = |pointer: *mut i64| match rank {
        0 => &[][..],
        // SAFETY: the pointer is not null and aligned, and the caller vouches for `ndim` numbers.
        _ => unsafe { std::slice::from_raw_parts(pointer.cast_const(), rank) },
    };
    let sizes = values(tensor.shape).iter().map(|size| usize::try_from(*size));
    let Ok(sizes) = sizes.collect::<std::result::Result<Vec<usize>, _>>() else {
        return refuse(format!("shape {:?}", values(tensor.shape)), "sizes from 0 on");
    };
    let shape = Shape::new(&sizes)?;
    if shape.count() == 0 {
        let (address, layout) = (std::ptr::null_mut(), Layout::from_shape(shape));
        return Ok(Checked { address, bytes: 0, dtype, layout, device, pinned });
    }
    // The offsets of the first and the last element, from that of the element at index 0.
    let contiguous = Layout::from_shape(shape);
    let strides: Vec<isize> = match tensor.strides.is_null() {
        true => contiguous.strides().to_vec(),
        false => values(tensor.strides).iter().map(|stride| *stride as isize).collect(),
    };
    let (mut first, mut last) = (0i128, 0i128);
    for (size, stride) in sizes.iter().zip(&strides) {
        let span = (*size as i128 - 1) * *stride as i128;
        if span < 0 { first += span } else { last += span }
    }
    let size = dtype.size() as i128;
    let Ok(bytes) = isize::try_from((last - first + 1).saturating_mul(size)) else {
        return refuse(format!("strides {strides:?} for shape {shape}"), "elements within 2^63 bytes");
    };
    if tensor.data.is_null() {
        return refuse(format!("null data for shape {shape}"), "the address of the elements");
    }
    let begin = tensor.data.addr() as i128 + i128::from(tensor.byte_offset) + first * size;
    let end = begin + bytes as i128;
    if i64::try_from(tensor.byte_offset).is_err() || begin <= 0 || end > i128::from(u64::MAX) {
        let found = format!("a byte offset of {} and strides {strides:?}", tensor.byte_offset);
        return refuse(found, "elements within the address space");
    }
    let alignment = (dtype.size() / if dtype.is_complex() { 2 } else { 1 }) as i128;
    if begin % alignment != 0 {
        return refuse(
            format!("elements of {dtype} at {begin:#x}"),
            &format!("a multiple of {alignment} bytes"),
        );
    }
    let layout = Layout::strided(&sizes, &strides, -first as usize)?;
    let distance = i128::from(tensor.byte_offset) + first * size;
    let address = tensor.data.cast::<u8>().wrapping_offset(distance as isize);
    Ok(Checked { address, bytes: bytes as usize, dtype, layout, device, pinned })
}

/// Takes over a producer's array. Its deleter is called when the elements are used no more; not if this fails.
///
/// # Safety
///
/// As [`Tensor::from_dlpack`].
unsafe fn import<M: HasDeleter + 'static>(managed: NonNull<M>, tensor: &DLTensor) -> Result<Tensor> {
    // SAFETY: the caller vouches for the struct.
    let Checked { address, bytes, dtype, layout, device, pinned } = unsafe { check(tensor)? };
    let storage = match device {
        None => {
            let owner = Box::new(OnDrop::new(managed));
            // SAFETY: the bytes are there until the owner is dropped, as the caller vouches.
            let memory = unsafe { HostMemory::foreign(address, bytes, true, pinned, owner) };
            Storage::Host(memory).into()
        }
        Some(device) => {
            let stream = stream(&Device::from(device))?;
            let owner = Producer(managed);
            let deleter = move || {
                let Producer(managed) = { owner };
                // SAFETY: the buffer calls it once, when no use is left.
                unsafe { M::delete(managed) };
            };
            // SAFETY: the memory is there until the deleter is called, as the caller vouches.
            let mut buffer =
                unsafe { DeviceBuffer::<u8>::from_raw(&stream, address.addr() as u64, bytes, deleter)? };
            buffer.set_read_only();
            Shared::of_buffer(buffer.into())
        }
    };
    Ok(Tensor::of(storage, dtype, layout))
}

/// Calls a producer's deleter when it is dropped.
struct OnDrop<M: HasDeleter>(Producer<M>);

impl<M: HasDeleter> OnDrop<M> {
    fn new(managed: NonNull<M>) -> OnDrop<M> {
        OnDrop(Producer(managed))
    }
}

impl<M: HasDeleter> Drop for OnDrop<M> {
    fn drop(&mut self) {
        // SAFETY: the import took the struct over, and this is dropped once.
        unsafe { M::delete(self.0.0) };
    }
}

impl Tensor {
    /// Exports the elements without a copy, for a consumer that reads them: the read-only flag is set, as this library's
    /// tensors never see their elements change.
    ///
    /// The consumer calls the struct's deleter once; until then the elements live. On a CUDA device, `consumer` is the stream
    /// that the consumer works on ([`Stream::from_raw`] borrows one): it waits for what writes the elements, and the memory
    /// is reused only after its work up to the deleter's call. The host waits for nothing. Without a stream the consumer
    /// orders its work itself.
    ///
    /// A tensor whose memory [is pinned](Self::is_pinned) is exported as pinned memory, device type 3.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1.0f32, 2.0], &Device::cpu())?;
    /// let exported = x.to_dlpack(None)?;
    /// // SAFETY: the struct is taken over once.
    /// let y = unsafe { Tensor::from_dlpack(exported)? };
    /// assert_eq!(y.as_slice::<f32>()?.as_ptr(), x.as_slice::<f32>()?.as_ptr());
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of the wait, and the error that a failed compound assignment left in the tensor.
    pub fn to_dlpack(&self, consumer: Option<&Stream>) -> Result<NonNull<DLManagedTensorVersioned>> {
        export(self.clone(), consumer, DLPACK_FLAG_READ_ONLY)
    }

    /// Exports the elements for a consumer that may write to them. Elements that other tensors share are copied first, and the
    /// flag of a copy is set then. Otherwise as [`to_dlpack`](Self::to_dlpack).
    ///
    /// # Errors
    ///
    /// As [`to_dlpack`](Self::to_dlpack), and those of the copy.
    pub fn into_dlpack(mut self, consumer: Option<&Stream>) -> Result<NonNull<DLManagedTensorVersioned>> {
        let flags = if self.make_unique()? { DLPACK_FLAG_IS_COPIED } else { 0 };
        export(self, consumer, flags)
    }

    /// Exports as [`to_dlpack`](Self::to_dlpack) to the struct of DLPack before 1.0, which has no flag that says so: the
    /// consumer must not write to the elements.
    ///
    /// # Errors
    ///
    /// As [`to_dlpack`](Self::to_dlpack).
    pub fn to_dlpack_legacy(&self, consumer: Option<&Stream>) -> Result<NonNull<DLManagedTensor>> {
        export(self.clone(), consumer, DLPACK_FLAG_READ_ONLY)
    }

    /// Exports as [`into_dlpack`](Self::into_dlpack) to the struct of DLPack before 1.0.
    ///
    /// # Errors
    ///
    /// As [`into_dlpack`](Self::into_dlpack).
    pub fn into_dlpack_legacy(mut self, consumer: Option<&Stream>) -> Result<NonNull<DLManagedTensor>> {
        self.make_unique()?;
        export(self, consumer, 0)
    }

    /// Exports elements that the consumer may write to and that this tensor goes on to show. Views and clones that shared
    /// them before do not see the writes.
    ///
    /// # Safety
    ///
    /// The consumer's writes are ordered with all uses of this tensor and of views and clones that are made of it later.
    pub(crate) unsafe fn share_dlpack<M: ManagedStruct>(
        &mut self,
        consumer: Option<&Stream>,
    ) -> Result<NonNull<M>> {
        self.make_unique()?;
        M::export(self.clone(), consumer, 0)
    }

    /// Takes over an array of another library without a copy. Its deleter is called once, when no tensor shares the elements
    /// any more and all work on them is done. If the import fails, the struct stays the caller's, who calls the deleter.
    ///
    /// The first write to the tensor copies the elements, whatever the producer's flags say: the producer, other imports of
    /// its array and views of this tensor never see a write of this library.
    ///
    /// The array is on the CPU, in pinned memory (a tensor of the CPU that [is pinned](Self::is_pinned)) or on a CUDA device.
    /// There, the producer has ordered its
    /// work before the stream of this thread's operations ([`Device::stream`]), as `__dlpack__(stream)` does.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another major version, a dtype that is none of [`DType`] or has lanes, another device
    /// type, negative or overflowing sizes, or misaligned elements; those of [`DeviceBuffer::from_raw`].
    ///
    /// # Safety
    ///
    /// The struct is as DLPack describes it, and nobody else takes it over. Until the deleter is called, other code writes to
    /// the elements only if they are not read-only, and ordered with this library's uses, which see its writes.
    pub unsafe fn from_dlpack(managed: NonNull<DLManagedTensorVersioned>) -> Result<Tensor> {
        // SAFETY: the version comes first in every version.
        let version = unsafe { (*managed.as_ptr()).version };
        if version.major != DLPACK_MAJOR_VERSION {
            return refuse(format!("version {}.{}", version.major, version.minor), "version 1.x");
        }
        // SAFETY: as the caller vouches.
        unsafe {
            let dl_tensor = (*managed.as_ptr()).dl_tensor;
            import(managed, &dl_tensor)
        }
    }

    /// Takes over an array as [`from_dlpack`](Self::from_dlpack), from the struct of DLPack before 1.0.
    ///
    /// # Errors
    ///
    /// As [`from_dlpack`](Self::from_dlpack).
    ///
    /// # Safety
    ///
    /// As [`from_dlpack`](Self::from_dlpack).
    pub unsafe fn from_dlpack_legacy(managed: NonNull<DLManagedTensor>) -> Result<Tensor> {
        // SAFETY: as the caller vouches.
        unsafe {
            let dl_tensor = (*managed.as_ptr()).dl_tensor;
            import(managed, &dl_tensor)
        }
    }
}

/// The two structs, for exports of the C ABI.
pub(crate) trait ManagedStruct: Sized {
    /// Exports a tensor with these flags.
    fn export(tensor: Tensor, consumer: Option<&Stream>, flags: u64) -> Result<NonNull<Self>>;
}

impl<M: Managed> ManagedStruct for M {
    fn export(tensor: Tensor, consumer: Option<&Stream>, flags: u64) -> Result<NonNull<M>> {
        export(tensor, consumer, flags)
    }
}
