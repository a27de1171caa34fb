//! Tensors from Rust values and back, and conversions to other layouts, dtypes and devices.

use super::cached_operation::{CachedOperation, OperandKind};
use super::device::{Device, stream};
use super::kernel::{Output, OutputTarget};
use super::shape::copy_to;
use super::storage::{HostMemory, Memory, MemoryMut, Storage, part};
use super::tensor::Tensor;
use crate::driver::prefer_large_pages;
use crate::error::{Error, Result};
use crate::types::{Bool, DType, Element, Layout, Shape};

impl Tensor {
    /// Returns a tensor with these elements in row-major order.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4, 5, 6], &[2, 3], &Device::cpu())?;
    /// assert_eq!(x.transpose(0, 1)?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where the shape has another number of elements, and as [`zeros`](Self::zeros).
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize], device: &Device) -> Result<Tensor> {
        let shape = shape_of(elements.len(), shape)?;
        Tensor::from_bytes(bytemuck::cast_slice(elements), T::DTYPE, &shape, device)
    }

    /// As [`from_slice`](Self::from_slice); on the CPU the vector becomes the tensor's memory, without a copy.
    ///
    /// # Errors
    ///
    /// As [`from_slice`](Self::from_slice).
    pub fn from_vec<T: Element>(elements: Vec<T>, shape: &[usize], device: &Device) -> Result<Tensor> {
        if !device.is_cpu() {
            return Tensor::from_slice(&elements, shape, device);
        }
        let shape = shape_of(elements.len(), shape)?;
        let storage = Storage::Host(HostMemory::of_vec(elements));
        Ok(Tensor::of(storage.into(), T::DTYPE, Layout::from_shape(shape)))
    }

    /// As [`from_slice`](Self::from_slice), for elements whose dtype is known only at run time: their bytes in this machine's
    /// byte order.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if the shape has another number of bytes, and as [`zeros`](Self::zeros).
    pub fn from_bytes(bytes: &[u8], dtype: DType, shape: &[usize], device: &Device) -> Result<Tensor> {
        let mut output = Output::new(device, dtype, shape)?;
        let wanted = output.layout().count() * dtype.size();
        if bytes.len() != wanted {
            let operation = "a tensor's bytes";
            return Err(Error::LengthMismatch { operation, wanted, found: bytes.len() });
        }
        output.memory_mut().write(0, bytes)?;
        Ok(output.into_tensor())
    }

    /// Returns the elements in row-major order as bytes in this machine's byte order, after all work that writes them. Bools
    /// are 0 or 1.
    ///
    /// # Errors
    ///
    /// As [`to_vec`](Self::to_vec).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = self.zeroed(self.count().saturating_mul(self.dtype().size()))?;
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the elements in row-major order to `bytes`, otherwise as [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of bytes, and as [`to_bytes`](Self::to_bytes).
    pub fn copy_to_bytes(&self, bytes: &mut [u8]) -> Result<()> {
        let (operation, found) = ("copy_to_bytes", bytes.len());
        let wanted = self.count().saturating_mul(self.dtype().size());
        if found != wanted {
            return Err(Error::LengthMismatch { operation, wanted, found });
        }
        self.read(bytes)
    }

    /// Returns zeros on the host, to read elements into.
    fn zeroed<T: Element>(&self, length: usize) -> Result<Vec<T>> {
        let mut elements = self.reserved(length)?;
        elements.resize(length, T::zeroed());
        Ok(elements)
    }

    /// Returns an empty vector on the host with memory for so many elements, in large pages.
    fn reserved<T: Element>(&self, length: usize) -> Result<Vec<T>> {
        let mut elements: Vec<T> = Vec::new();
        elements.try_reserve_exact(length).map_err(|_| {
            let asked = format!("reading {} elements of {}", self.count(), self.dtype());
            Error::host_memory(length.saturating_mul(size_of::<T>()), asked)
        })?;
        prefer_large_pages(elements.as_mut_ptr().cast(), length * size_of::<T>());
        Ok(elements)
    }

    /// Returns the elements in row-major order, after all work that writes them. Bools are 0 or 1.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] where `T` is not the dtype's ([`cast`](Self::cast) first),
    /// [`Error::OutOfMemory`] where the host has no memory for them, or the error of earlier work on the device.
    pub fn to_vec<T: Item>(&self) -> Result<Vec<T>> {
        self.check_element::<T::Element>("to_vec")?;
        let mut elements: Vec<T::Element> = self.reserved(self.count())?;
        let range = self.layout().offset()..self.layout().offset() + self.count();
        let direct = match self.memory() {
            // Bools may be other bytes than 0 and 1.
            Memory::Host(memory) if self.is_contiguous() && self.dtype() != DType::Bool => {
                bytemuck::try_cast_slice(memory).ok().and_then(|memory: &[T::Element]| memory.get(range))
            }
            _ => None,
        };
        match direct {
            Some(memory) => fill_from_back(&mut elements, memory),
            None => {
                elements.resize(self.count(), bytemuck::Zeroable::zeroed());
                self.read(bytemuck::cast_slice_mut(&mut elements))?;
            }
        }
        Ok(T::from_elements(elements))
    }

    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] where `T` is not the dtype's.
    pub(super) fn check_element<T: Element>(&self, operation: &'static str) -> Result<()> {
        if T::DTYPE == self.dtype() {
            return Ok(());
        }
        let wanted = format!("a tensor of {0} (cast(DType::{0:?}) converts it)", T::DTYPE);
        Err(Error::DTypeMismatch { operation, wanted, found: format!("one of {}", self.dtype()) })
    }

    /// Returns the only element as a Rust number, or as a `bool` for a tensor of bools.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[2.5f64]], &Device::cpu())?;
    /// assert_eq!(x.item::<f64>()?, 2.5);
    /// assert!(x.gt(2.0)?.item::<bool>()?);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where there are more or none, and as [`to_vec`](Self::to_vec).
    pub fn item<T: Item>(&self) -> Result<T> {
        const OPERATION: &str = "item";
        self.check_element::<T::Element>(OPERATION)?;
        match self.count() {
            1 => self.to_vec::<T>()?.into_iter().next(),
            _ => None,
        }
        .ok_or(Error::LengthMismatch { operation: OPERATION, wanted: 1, found: self.count() })
    }

    /// Copies the elements to the host in row-major order, `bytes` being as many as they are.
    pub(crate) fn read(&self, bytes: &mut [u8]) -> Result<()> {
        let dense = self.contiguous()?;
        let start = dense.layout().offset() * dense.dtype().size();
        let range = start..start + bytes.len();
        dense.memory().read(range, bytes)?;
        if self.dtype() == DType::Bool {
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }

    /// Returns a contiguous tensor: this one if it is contiguous, otherwise a copy.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.copy() }
    }

    /// Returns a contiguous copy.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn copy(&self) -> Result<Tensor> {
        let mut fresh = Output::of_shape(&self.device(), self.dtype(), self.shape())?;
        copy_to(self, OutputTarget::all(&mut fresh))?;
        Ok(fresh.into_tensor())
    }

    /// The elements in another dtype; the tensor itself where they have it. Floats become integers by dropping the fraction
    /// and saturating (NaN is 0), integers keep their low bits, a complex number gives its real part, and a narrower
    /// float is rounded once.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    #[doc(alias = "astype")]
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        CachedOperation::cast(OperandKind::Tensor(self.dtype()), dtype).run(&[self.into()])
    }

    /// The elements on another device; the tensor itself where they are there. To and from the CPU the copy is done when
    /// this returns; between CUDA devices it takes its place in the order of this thread's stream of the other device.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros), and what happened on the device before.
    pub fn to(&self, device: &Device) -> Result<Tensor> {
        if *device == self.device() {
            return Ok(self.clone());
        }
        let dense = self.contiguous()?;
        let mut fresh = Output::of_shape(device, self.dtype(), self.shape())?;
        let start = dense.layout().offset() * dense.dtype().size();
        let range = start..start + dense.count() * dense.dtype().size();
        match (dense.memory(), fresh.memory_mut()) {
            (_, MemoryMut::Host(to)) => dense.read(to)?,
            (Memory::Host(from), to) => to.write(0, part(from, range)?)?,
            (Memory::Cuda(from), MemoryMut::Cuda(to)) => stream(device)?.copy(&from.slice(range)?, to)?,
            (Memory::Failed(error), _) => return Err(error.clone()),
        }
        Ok(fresh.into_tensor())
    }
}

/// # Errors
///
/// [`Error::LengthMismatch`] where a shape has not so many elements, and as [`Shape::new`].
pub(super) fn shape_of(count: usize, sizes: &[usize]) -> Result<Shape> {
    let shape = Shape::new(sizes)?;
    if shape.count() != count {
        let operation = "making a tensor of this shape";
        return Err(Error::LengthMismatch { operation, wanted: shape.count(), found: count });
    }
    Ok(shape)
}

/// The elements of a step of [`fill_from_back`].
const STEP: usize = 1 << 18;

/// Fills an empty vector, whose memory is reserved, with elements. The system clears each large page when it is first
/// written, and copies took 9.1 ms for 64 MiB from the front, 6.5 from the back (AMD EPYC, Linux).
fn fill_from_back<T: Element>(elements: &mut Vec<T>, from: &[T]) {
    let to = &mut elements.spare_capacity_mut()[..from.len()];
    for (to, from) in to.rchunks_mut(STEP).zip(from.rchunks(STEP)) {
        // SAFETY: as many elements as `from` has, which are not initialized and have no destructor.
        unsafe { to.as_mut_ptr().cast::<T>().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    }
    // SAFETY: all of them are written, and there is memory for them.
    unsafe { elements.set_len(from.len()) };
}

/// A Rust type that a tensor's elements are read as: an [`Element`], or `bool` for the dtype bool.
pub trait Item: Sized + sealed::Sealed {
    /// The type of the elements in memory.
    type Element: Element;

    /// Converts elements.
    #[doc(hidden)]
    fn from_elements(elements: Vec<Self::Element>) -> Vec<Self>;
}

mod sealed {
    pub trait Sealed {}
    impl<T: crate::types::Element> Sealed for T {}
    impl Sealed for bool {}
}

impl<T: Element> Item for T {
    type Element = T;

    // Even a map that changes nothing would pass over the memory once more.
    fn from_elements(elements: Vec<T>) -> Vec<T> {
        elements
    }
}

impl Item for bool {
    type Element = Bool;

    fn from_elements(elements: Vec<Bool>) -> Vec<bool> {
        elements.into_iter().map(Bool::get).collect()
    }
}

/// A number, or nested arrays, slices or vectors of numbers: elements in row-major order, and a shape.
///
/// It is implemented for elements, `bool`, and for arrays, slices and vectors of what it is implemented for.
pub trait Nested {
    /// The innermost elements.
    type Element: Element;
    /// The number of dimensions.
    const RANK: usize;

    /// Adds the sizes of the dimensions, outermost first.
    fn sizes(&self, sizes: &mut Vec<usize>);

    /// Adds the elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where they are not as many as the sizes say: rows of several lengths.
    fn elements(&self, sizes: &[usize], elements: &mut Vec<Self::Element>) -> Result<()>;
}

macro_rules! elements {
    ($($type:ty => $element:ty;)*) => {$(
        impl Nested for $type {
            type Element = $element;
            const RANK: usize = 0;

            fn sizes(&self, _: &mut Vec<usize>) {}

            fn elements(&self, _: &[usize], elements: &mut Vec<$element>) -> Result<()> {
                elements.push((*self).into());
                Ok(())
            }
        }
    )*};
}

elements! {
    bool => Bool;
    Bool => Bool;
    u8 => u8;
    i8 => i8;
    u16 => u16;
    i16 => i16;
    u32 => u32;
    i32 => i32;
    u64 => u64;
    i64 => i64;
    half::f16 => half::f16;
    half::bf16 => half::bf16;
    f32 => f32;
    f64 => f64;
    num_complex::Complex<f32> => num_complex::Complex<f32>;
    num_complex::Complex<f64> => num_complex::Complex<f64>;
}

macro_rules! sequences {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> Nested for $type {
            type Element = T::Element;
            const RANK: usize = T::RANK + 1;

            fn sizes(&self, sizes: &mut Vec<usize>) {
                sizes.push(self.len());
                match self.first() {
                    Some(first) => first.sizes(sizes),
                    // Nothing says how long rows would be.
                    None => sizes.resize(sizes.len() + T::RANK, 0),
                }
            }

            fn elements(&self, sizes: &[usize], elements: &mut Vec<T::Element>) -> Result<()> {
                let (wanted, inner) = sizes.split_first().map_or((0, sizes), |(size, inner)| (*size, inner));
                if self.len() != wanted {
                    let found = format!("rows of {wanted} and of {}", self.len());
                    return Err(Error::invalid("a tensor of nested arrays", found, "rows of one length"));
                }
                self.iter().try_for_each(|item| item.elements(inner, elements))
            }
        }
    )*};
}

sequences! {
    [T: Nested, const SIZE: usize] [T; SIZE];
    [T: Nested] [T];
    [T: Nested] Vec<T>;
}

impl<T: Nested + ?Sized> Nested for &T {
    type Element = T::Element;
    const RANK: usize = T::RANK;

    fn sizes(&self, sizes: &mut Vec<usize>) {
        T::sizes(self, sizes);
    }

    fn elements(&self, sizes: &[usize], elements: &mut Vec<T::Element>) -> Result<()> {
        T::elements(self, sizes, elements)
    }
}

impl Tensor {
    /// Creates a tensor of a number, or of arrays, slices or vectors of numbers, nested to any depth. The dtype is the Rust type's:
    /// `1.0` is f64 and `1` is i32.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::cpu())?;
    /// assert_eq!(**x.shape(), [2, 3]);
    /// let truth = Tensor::new(vec![true, false], &Device::cpu())?;
    /// assert_eq!(truth.to_string(), "[ true false]");
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for rows of several lengths, and as [`zeros`](Self::zeros).
    pub fn new(values: impl Nested, device: &Device) -> Result<Tensor> {
        fn make<N: Nested>(values: N, device: &Device) -> Result<Tensor> {
            let mut sizes = Vec::new();
            values.sizes(&mut sizes);
            let mut elements = Vec::with_capacity(Shape::new(&sizes)?.count());
            values.elements(&sizes, &mut elements)?;
            Tensor::from_vec(elements, &sizes, device)
        }
        make(values, device)
    }
}
