//! [`HostArray`], an array whose dtype is known only at run time.
//!
//! A `Vec<u64>` holds the elements, not a `Vec<u8>`: its alignment suits every [`Element`], so a typed view
//! never fails for its address and never copies. Up to seven bytes at the end are unused.

use crate::error::{Error, Result};
use crate::types::{DType, Element};

/// An array in host memory: dtype, shape, and the elements in row-major order.
#[derive(Clone)]
pub struct HostArray {
    dtype: DType,
    shape: Vec<usize>,
    words: Vec<u64>,
    bytes: usize,
}

// The strictest element alignment must not exceed that of the storage.
const _: () = assert!(align_of::<num_complex::Complex<f64>>() <= align_of::<u64>());

impl HostArray {
    /// Creates an array of zeros. An empty shape has one element; a size of 0 makes the array empty.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the bytes exceed the address space, [`Error::OutOfMemory`] if the host
    /// cannot allocate them.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<HostArray> {
        let bytes = byte_count(dtype, shape)
            .ok_or_else(|| Error::invalid("creating an array", describe(dtype, shape), too_large()))?;
        let mut words: Vec<u64> = Vec::new();
        let needed = bytes.div_ceil(size_of::<u64>());
        words.try_reserve_exact(needed).map_err(|_| {
            let asked = format!("an array of {}", describe(dtype, shape));
            Error::host_memory(bytes, asked)
        })?;
        words.resize(needed, 0);
        Ok(HostArray { dtype, shape: shape.to_vec(), words, bytes })
    }

    /// Creates an array from a copy of `elements` in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if the shape has another number of elements; the errors of
    /// [`HostArray::zeros`].
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize]) -> Result<HostArray> {
        match byte_count(T::DTYPE, shape) {
            Some(bytes) if bytes != size_of_val(elements) => Err(Error::LengthMismatch {
                operation: "creating an array of this shape",
                wanted: bytes / T::DTYPE.size(),
                found: elements.len(),
            }),
            _ => {
                let mut array = HostArray::zeros(T::DTYPE, shape)?;
                array.as_bytes_mut().copy_from_slice(bytemuck::cast_slice(elements));
                Ok(array)
            }
        }
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the dimensions, outermost first; the slice is empty for a single element.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.bytes / self.dtype.size()
    }

    /// Returns whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the bytes of the elements, in native byte order.
    pub fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    /// Returns the bytes of the elements for writing. Any bytes are valid elements.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }

    /// Returns the elements.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] if `T` is not the element type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check::<T>()?;
        Ok(bytemuck::cast_slice(self.as_bytes()))
    }

    /// Returns the elements for writing.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] if `T` is not the element type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check::<T>()?;
        Ok(bytemuck::cast_slice_mut(self.as_bytes_mut()))
    }

    fn check<T: Element>(&self) -> Result<()> {
        if T::DTYPE == self.dtype {
            return Ok(());
        }
        Err(Error::DTypeMismatch {
            operation: "reading the elements of an array",
            wanted: T::DTYPE.to_string(),
            found: self.dtype.to_string(),
        })
    }
}

impl std::fmt::Debug for HostArray {
    /// Formats dtype and shape only: the elements can be gigabytes.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "HostArray({})", describe(self.dtype, &self.shape))
    }
}

/// Returns the bytes of an array, or `None` if a `Vec` cannot hold them. A size of 0 makes the array empty,
/// but the other sizes must still fit, as NumPy demands, because strides are computed from them.
pub(super) fn byte_count(dtype: DType, shape: &[usize]) -> Option<usize> {
    let bytes =
        shape.iter().try_fold(dtype.size(), |bytes, dimension| bytes.checked_mul((*dimension).max(1)))?;
    if bytes > isize::MAX as usize - size_of::<u64>() {
        return None;
    }
    Some(if shape.contains(&0) { 0 } else { bytes })
}

/// Returns a description such as `f32[2, 3]`.
pub(super) fn describe(dtype: DType, shape: &[usize]) -> String {
    format!("{dtype}{shape:?}")
}

pub(super) fn too_large() -> String {
    format!("at most {} bytes", isize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_view_needs_the_right_type() {
        let array = HostArray::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
        assert_eq!(array.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!((array.len(), array.as_bytes().len()), (3, 12));
        let message = array.as_slice::<i32>().unwrap_err().to_string();
        assert!(message.contains("i32") && message.contains("f32"), "{message}");
        assert_eq!(format!("{array:?}"), "HostArray(f32[3])");
    }

    #[test]
    fn shapes_and_sizes_are_checked() {
        assert!(matches!(
            HostArray::from_slice(&[1u8; 5], &[2, 3]),
            Err(Error::LengthMismatch { wanted: 6, found: 5, .. })
        ));
        assert!(HostArray::zeros(DType::F64, &[usize::MAX, 2]).is_err());
        assert!(HostArray::zeros(DType::U8, &[isize::MAX as usize]).is_err());
        let refused = HostArray::zeros(DType::U8, &[1 << 60]);
        assert!(matches!(
            refused,
            Err(Error::OutOfMemory { device: None, requested, .. }) if requested == 1 << 60
        ));
        assert!(HostArray::zeros(DType::F64, &[usize::MAX, 2, 0]).is_err());
        assert_eq!(HostArray::zeros(DType::F64, &[3, 2, 0]).unwrap().len(), 0);
        assert_eq!(HostArray::zeros(DType::F64, &[]).unwrap().len(), 1);
    }
}
