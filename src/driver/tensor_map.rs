//! Tensor maps: descriptors for the Tensor Memory Accelerator (TMA) of compute capability 9.0 and up.

use std::sync::Arc;

use bytemuck::Pod;

use super::memory::{Allocation, DeviceRead};
use crate::driver::context::call;
use crate::error::{Error, Result};
use crate::sys::driver::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};

/// The element type of a tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The names are the element types.
pub enum TensorElement {
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
    F16,
    BF16,
    F32,
    F64,
    /// `f32` whose low mantissa bits the tensor cores ignore.
    TF32,
}

impl TensorElement {
    /// The size in bytes.
    pub fn size(self) -> usize {
        match self {
            TensorElement::U8 => 1,
            TensorElement::U16 | TensorElement::F16 | TensorElement::BF16 => 2,
            TensorElement::U32 | TensorElement::I32 | TensorElement::F32 | TensorElement::TF32 => 4,
            TensorElement::U64 | TensorElement::I64 | TensorElement::F64 => 8,
        }
    }

    fn raw(self) -> CUtensorMapDataType {
        match self {
            TensorElement::U8 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            TensorElement::U16 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            TensorElement::U32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            TensorElement::I32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
            TensorElement::U64 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
            TensorElement::I64 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
            TensorElement::F16 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            TensorElement::BF16 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            TensorElement::F32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            TensorElement::F64 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
            TensorElement::TF32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        }
    }
}

/// The swizzle of a box in shared memory, which avoids bank conflicts in reads of its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorSwizzle {
    /// No swizzle.
    #[default]
    None,
    /// A span of 32 bytes.
    Bytes32,
    /// A span of 64 bytes.
    Bytes64,
    /// A span of 128 bytes.
    Bytes128,
}

/// The interleaved layout of the tensor in device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorInterleave {
    /// Not interleaved.
    #[default]
    None,
    /// Slices of 16 bytes.
    Bytes16,
    /// Slices of 32 bytes.
    Bytes32,
}

/// The granularity at which a copy promotes its L2 fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorPromotion {
    /// No promotion.
    #[default]
    None,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes.
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

/// The tensor and the box that one copy moves. The first dimension varies fastest and is contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMapLayout {
    /// The element type.
    pub element: TensorElement,
    /// Elements in each of 1 to 5 dimensions.
    pub shape: Vec<u64>,
    /// The stride of every dimension but the first, in bytes; multiples of 16.
    pub strides: Vec<u64>,
    /// Elements of the box in each dimension, at most 256.
    pub block: Vec<u32>,
    /// The element stride in each dimension; empty for 1.
    pub element_strides: Vec<u32>,
    /// The layout in device memory.
    pub interleave: TensorInterleave,
    /// The layout in shared memory.
    pub swizzle: TensorSwizzle,
    /// The promotion of L2 fetches.
    pub promotion: TensorPromotion,
    /// Fills elements outside the tensor with NaN instead of zero; for floating-point types only.
    pub fill_nan: bool,
}

impl TensorMapLayout {
    /// A contiguous tensor, without swizzle.
    pub fn contiguous(element: TensorElement, shape: &[u64], block: &[u32]) -> TensorMapLayout {
        let mut stride = element.size() as u64;
        let mut strides = Vec::new();
        for &extent in shape.iter().take(shape.len().saturating_sub(1)) {
            stride = stride.saturating_mul(extent);
            strides.push(stride);
        }
        TensorMapLayout {
            element,
            shape: shape.to_vec(),
            strides,
            block: block.to_vec(),
            element_strides: Vec::new(),
            interleave: TensorInterleave::None,
            swizzle: TensorSwizzle::None,
            promotion: TensorPromotion::None,
            fill_nan: false,
        }
    }

    /// The number of bytes from the first element to the end of the last, or `None` if it overflows.
    fn bytes(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let size = self.element.size() as u64;
        let first = self.shape.first()?.checked_mul(size)?;
        self.shape
            .iter()
            .skip(1)
            .zip(&self.strides)
            .try_fold(first, |bytes, (&extent, &stride)| bytes.checked_add((extent - 1).checked_mul(stride)?))
    }

    fn check(&self, available: u64) -> Result<()> {
        let wrong = |found: String, wanted: &str| Err(Error::invalid("TensorMap::tiled", found, wanted));
        let rank = self.shape.len();
        if !(1..=5).contains(&rank) {
            return wrong(format!("{rank} dimensions"), "1 to 5");
        }
        if self.strides.len() + 1 != rank {
            return wrong(
                format!("{} strides for {rank} dimensions", self.strides.len()),
                "one less than dimensions",
            );
        }
        if self.block.len() != rank {
            return wrong(format!("a box of {} dimensions", self.block.len()), "as many as the tensor has");
        }
        if !self.element_strides.is_empty() && self.element_strides.len() != rank {
            return wrong(
                format!("{} element strides", self.element_strides.len()),
                "none, or one a dimension",
            );
        }
        match self.bytes() {
            Some(bytes) if bytes <= available => Ok(()),
            bytes => wrong(
                format!(
                    "a tensor of {} bytes",
                    bytes.map_or("too many".to_owned(), |bytes| bytes.to_string())
                ),
                &format!("one inside the buffer's {available} bytes"),
            ),
        }
    }
}

/// A descriptor of a tensor in device memory, passed to kernels as `const __grid_constant__ CUtensorMap`: by `&map` to
/// one that reads, by `&mut map` to one that writes.
///
/// The kernel chooses the coordinates of each box. The first coordinate may be negative or past the end, but its byte
/// offset must be a multiple of 16; otherwise the copy is an illegal instruction that ends the context.
///
/// The map keeps the memory alive. The kernel's use is ordered with other users of the buffer, but the borrow checker
/// does not see it: using the buffer on one thread while another launches a map of it leaves their order unspecified.
/// The memory is not reused before both are done.
pub struct TensorMap {
    pub(crate) raw: Box<CUtensorMap>,
    pub(crate) allocation: Arc<Allocation>,
}

// SAFETY: the descriptor is plain bytes.
unsafe impl Send for TensorMap {}
// SAFETY: as above; it is never written after its creation.
unsafe impl Sync for TensorMap {}

impl TensorMap {
    /// Describes `memory` as a tensor that is copied box by box.
    ///
    /// # Errors
    ///
    /// The layout exceeds the memory, or the hardware does not support it (alignment of 16 bytes, boxes over 256, a
    /// swizzle narrower than the box's row); the driver is older than CUDA 12.0; or the driver's errors.
    pub fn tiled<T: Pod>(memory: &impl DeviceRead<T>, layout: &TensorMapLayout) -> Result<TensorMap> {
        let view = memory.view();
        layout.check((view.length * size_of::<T>()) as u64)?;
        let device = view.device();
        let rank = layout.shape.len();
        let ones = [1u32; 5];
        let steps = if layout.element_strides.is_empty() { &ones[..rank] } else { &layout.element_strides };
        let interleave = match layout.interleave {
            TensorInterleave::None => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            TensorInterleave::Bytes16 => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_16B,
            TensorInterleave::Bytes32 => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B,
        };
        let swizzle = match layout.swizzle {
            TensorSwizzle::None => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            TensorSwizzle::Bytes32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            TensorSwizzle::Bytes64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            TensorSwizzle::Bytes128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        };
        let promotion = match layout.promotion {
            TensorPromotion::None => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            TensorPromotion::Bytes64 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
            TensorPromotion::Bytes128 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            TensorPromotion::Bytes256 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        };
        let fill = if layout.fill_nan {
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
        } else {
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
        };
        let mut raw = Box::new(CUtensorMap::default());
        let address = std::ptr::without_provenance_mut(view.address as usize);
        let _bound = device.bind()?;
        // SAFETY: the arrays have `rank` elements (strides one less), as checked; the address is not read here.
        unsafe {
            call!(
                device,
                cuTensorMapEncodeTiled(
                    &mut *raw,
                    layout.element.raw(),
                    rank as u32,
                    address,
                    layout.shape.as_ptr(),
                    layout.strides.as_ptr(),
                    layout.block.as_ptr(),
                    steps.as_ptr(),
                    interleave,
                    swizzle,
                    promotion,
                    fill,
                )
            )?
        };
        Ok(TensorMap { raw, allocation: view.allocation.clone() })
    }
}

impl std::fmt::Debug for TensorMap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TensorMap(device {})", self.allocation.device.ordinal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_strides_are_bytes_of_every_dimension_but_the_first() {
        let layout = TensorMapLayout::contiguous(TensorElement::BF16, &[64, 32, 4], &[64, 8, 1]);
        assert_eq!(layout.strides, [128, 4096]);
        assert_eq!(layout.bytes(), Some(64 * 32 * 4 * 2));
        assert!(layout.check(64 * 32 * 4 * 2).is_ok());
        assert!(layout.check(64 * 32 * 4 * 2 - 1).is_err());
    }

    #[test]
    fn shapes_that_do_not_agree_are_refused() {
        let mut layout = TensorMapLayout::contiguous(TensorElement::F32, &[8, 8], &[8]);
        assert!(layout.check(1 << 20).is_err(), "the box has one dimension");
        layout.block = vec![8, 8];
        layout.shape = vec![u64::MAX, 8];
        assert!(layout.check(1 << 20).is_err(), "past the address space");
        layout.shape = vec![];
        assert!(layout.check(1 << 20).is_err());
    }
}
