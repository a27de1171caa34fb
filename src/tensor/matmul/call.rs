//! One product in the memory of its operands, by the engines of a device or by the CPU's.

use super::OPERATION;
use super::fused::Fused;
use super::plan::Step;
use crate::driver::{DeviceBuffer, DeviceSlice, DeviceSliceMut};
use crate::error::{Error, Result};
use crate::fuse::Number;
use crate::gemm::{Epilogue, GemmElement, GemmResult, HostEpilogue, gemm_host_with, gemm_with};
use crate::tensor::device::{Device, stream};
use crate::tensor::storage::{Memory, MemoryMut};
use crate::tensor::tensor::{Tensor, mismatch};
use crate::types::{DType, Element, NumberKind};

pub(super) struct Call<'a, 'm, 'k> {
    pub left: &'a Tensor,
    pub right: &'a Tensor,
    /// Alpha and beta.
    pub factors: (Number, Number),
    pub memory: &'a mut MemoryMut<'m>,
    /// The first element of the result.
    pub start: usize,
    pub fused: &'a Fused,
    /// What is kept, whose first element is its memory's.
    pub kept: Option<&'a mut MemoryMut<'k>>,
}

impl Call<'_, '_, '_> {
    /// A step of it, of elements that are known at run time.
    pub fn any(&mut self, step: &Step, result: DType) -> Result<()> {
        use half::{bf16, f16};
        use num_complex::Complex;
        macro_rules! of {
            ($($dtype:ident $element:ty, $result:ty;)*) => {
                match (self.left.dtype(), result) {
                    $((DType::$dtype, <$result as Element>::DTYPE) => self.typed::<$element, $result>(step),)*
                    (left, result) => {
                        let (wanted, found) = ("a product that there is".to_owned(), format!("{left} into {result}"));
                        Err(Error::DTypeMismatch { operation: OPERATION, wanted, found })
                    }
                }
            };
        }
        of! {
            U8 u8, u8; I8 i8, i8; U16 u16, u16; I16 i16, i16; U32 u32, u32; I32 i32, i32; U64 u64, u64; I64 i64, i64;
            F16 f16, f16; F16 f16, f32; BF16 bf16, bf16; BF16 bf16, f32; F32 f32, f32; F64 f64, f64;
            C64 Complex<f32>, Complex<f32>; C128 Complex<f64>, Complex<f64>;
        }
    }

    fn typed<T: GemmElement, C: GemmResult<T>>(&mut self, step: &Step) -> Result<()> {
        let (alpha, beta) = (factor::<T::Scalar>(self.factors.0), factor::<T::Scalar>(self.factors.1));
        let (product, [of_a, of_b, of_c]) = (&step.product, step.starts);
        let Fused { bias, activation, residual } = self.fused;
        let device = self.left.device();
        // What is a row of the tensors' product is a column of its transpose.
        let by_row = |by_row: bool| by_row != step.turned;
        match &mut *self.memory {
            MemoryMut::Host(c) => {
                let (a, b) = (on_host::<T>(self.left, of_a)?, on_host::<T>(self.right, of_b)?);
                let mut epilogue = HostEpilogue::new().activation(*activation);
                if let Some(bias) = bias {
                    let vector = on_host::<C>(&bias.vector, 0)?;
                    epilogue = match by_row(bias.by_row) {
                        true => epilogue.bias_of_rows(vector),
                        false => epilogue.bias_of_columns(vector),
                    };
                }
                if let Some(residual) = residual {
                    epilogue = epilogue.residual(on_host::<C>(residual, of_c)?);
                }
                if let Some(kept) = &mut self.kept {
                    let MemoryMut::Host(kept) = &mut **kept else {
                        return Err(mismatch(OPERATION, device, kept.device()));
                    };
                    epilogue = epilogue.keep(written_on_host::<C>(kept, of_c)?);
                }
                let c = written_on_host::<C>(c, self.start + of_c)?;
                gemm_host_with::<T, C>(product, alpha, a, b, beta, c, epilogue)
            }
            MemoryMut::Cuda(c) => {
                let stream = stream(&Device::from(c.device()))?;
                let (a, b) = (on_device::<T>(self.left, of_a)?, on_device::<T>(self.right, of_b)?);
                let vector = bias.as_ref().map(|bias| on_device::<C>(&bias.vector, 0)).transpose()?;
                let residual =
                    residual.as_ref().map(|residual| on_device::<C>(residual, of_c)).transpose()?;
                let mut kept = match &mut self.kept {
                    Some(MemoryMut::Cuda(kept)) => Some(written_on_device::<C>(kept, of_c)?),
                    Some(kept) => return Err(mismatch(OPERATION, device, kept.device())),
                    None => None,
                };
                let mut epilogue = Epilogue::new().activation(*activation);
                if let (Some(vector), Some(bias)) = (&vector, bias) {
                    epilogue = match by_row(bias.by_row) {
                        true => epilogue.bias_of_rows(vector),
                        false => epilogue.bias_of_columns(vector),
                    };
                }
                if let Some(residual) = &residual {
                    epilogue = epilogue.residual(residual);
                }
                if let Some(kept) = &mut kept {
                    epilogue = epilogue.keep(kept);
                }
                let mut c = written_on_device::<C>(c, self.start + of_c)?;
                gemm_with::<T, C>(&stream, product, alpha, &a, &b, beta, &mut c, epilogue)
            }
        }
    }
}

/// Memory of so many bytes from this element on; of what has no elements the start is any.
fn from<T>(start: usize, bytes: usize) -> std::ops::Range<usize> {
    (start * size_of::<T>()).min(bytes)..bytes
}

/// A tensor's elements, and what lies behind them, from so many after the first one on.
fn on_host<T: Element>(tensor: &Tensor, start: usize) -> Result<&[T]> {
    match tensor.memory() {
        Memory::Host(memory) => {
            let range = from::<T>(tensor.layout().offset() + start, memory.len());
            bytemuck::try_cast_slice(memory.get(range).unwrap_or_default()).map_err(misplaced)
        }
        Memory::Cuda(memory) => Err(mismatch(OPERATION, Device::from(memory.device()), Device::cpu())),
    }
}

/// As [`on_host`], on a device.
fn on_device<T: Element>(tensor: &Tensor, start: usize) -> Result<DeviceSlice<'_, T>> {
    match tensor.memory() {
        Memory::Cuda(memory) => {
            memory.slice(from::<T>(tensor.layout().offset() + start, memory.len()))?.reinterpret()
        }
        Memory::Host(_) => Err(mismatch(OPERATION, Device::cpu(), tensor.device())),
    }
}

fn written_on_host<T: Element>(memory: &mut [u8], start: usize) -> Result<&mut [T]> {
    let range = from::<T>(start, memory.len());
    bytemuck::try_cast_slice_mut(memory.get_mut(range).unwrap_or_default()).map_err(misplaced)
}

fn written_on_device<T: Element>(
    memory: &mut DeviceBuffer<u8>,
    start: usize,
) -> Result<DeviceSliceMut<'_, T>> {
    let range = from::<T>(start, memory.len());
    memory.slice_mut(range)?.reinterpret()
}

#[cold]
fn misplaced(error: bytemuck::PodCastError) -> Error {
    Error::invalid(OPERATION, format!("memory of a tensor: {error}"), "memory that elements can lie in")
}

/// A number as a factor, by the rules of a cast.
fn factor<S: Element>(number: Number) -> S {
    let [re, im] = number.parts(S::DTYPE);
    let part = size_of::<S>() / if S::DTYPE.kind() == NumberKind::Complex { 2 } else { 1 };
    let mut factor = S::zeroed();
    let bytes = bytemuck::bytes_of_mut(&mut factor);
    for (place, word) in bytes.chunks_exact_mut(part).zip([re, im]) {
        place.copy_from_slice(&word.to_le_bytes()[..part]);
    }
    factor
}
