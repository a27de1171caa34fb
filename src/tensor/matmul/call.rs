//! One product in the memory of its operands, by the engines of a device or by the CPU's.

use super::OPERATION;
use super::epilogue::{Bias, MatmulEpilogue};
use super::plan::GemmStep;
use crate::driver::{DeviceSlice, DeviceSliceMut};
use crate::error::{Error, Result};
use crate::fuse::Number;
use crate::gemm::{
    DeviceEpilogue, GemmElement, GemmResult, HostEpilogue, Scalars, gemm_host_with, is_supported, multiply,
};
use crate::tensor::device::{Device, stream};
use crate::tensor::storage::MemoryMut;
use crate::tensor::tensor::Tensor;
use crate::types::{DType, Element, NumberKind};

pub(super) struct MatmulCall<'a, 'm, 'k> {
    /// The operands of the product. A swapped step multiplies the second by the first.
    pub operands: [&'a Tensor; 2],
    /// Alpha and beta.
    pub factors: (Number, Number),
    pub memory: &'a mut MemoryMut<'m>,
    /// The first element of the result.
    pub start: usize,
    pub fused: &'a MatmulEpilogue,
    /// The aux output, which starts at its memory's first element.
    pub aux: Option<&'a mut MemoryMut<'k>>,
}

/// Evaluates an expression with the element types `$operand` and `$result` of a product's dtypes.
macro_rules! of_types {
    ($types:expr, $operand:ident, $result:ident => $what:expr) => {{
        use half::{bf16, f16};
        use num_complex::Complex;
        of_types! {
            @ $types, $operand, $result => $what;
            U8 u8, u8; I8 i8, i8; U16 u16, u16; I16 i16, i16; U32 u32, u32; I32 i32, i32; U64 u64, u64; I64 i64, i64;
            F16 f16, f16; F16 f16, f32; BF16 bf16, bf16; BF16 bf16, f32; F32 f32, f32; F64 f64, f64;
            C64 Complex<f32>, Complex<f32>; C128 Complex<f64>, Complex<f64>;
        }
    }};
    (@ $types:expr, $a:ident, $c:ident => $what:expr; $($dtype:ident $operand:ty, $result:ty;)*) => {
        match $types {
            $((DType::$dtype, <$result as Element>::DTYPE) => {
                type $a = $operand;
                type $c = $result;
                $what
            })*
            (left, result) => {
                let (wanted, found) = ("a product that there is".to_owned(), format!("{left} into {result}"));
                Err(Error::DTypeMismatch { operation: OPERATION, wanted, found })
            }
        }
    };
}

impl<'a> MatmulCall<'a, '_, '_> {
    /// Runs a step, with element types that are known at run time.
    pub fn any(&mut self, step: &GemmStep, result: DType) -> Result<()> {
        let types = (self.operands[0].dtype(), result);
        match &self.memory {
            MemoryMut::Host(_) => of_types!(types, T, C => self.on_host::<T, C>(step)),
            MemoryMut::Cuda(_) => {
                let scalars = of_types!(types, T, _C => Ok(self.scalars::<T>()))?;
                self.on_device(step, result, scalars)
            }
        }
    }

    fn sides(&self, step: &GemmStep) -> [&'a Tensor; 2] {
        let [a, b] = self.operands;
        if step.swapped { [b, a] } else { [a, b] }
    }

    fn factors<T: GemmElement>(&self) -> (T::Scalar, T::Scalar) {
        (factor(self.factors.0), factor(self.factors.1))
    }

    fn scalars<T: GemmElement>(&self) -> Scalars {
        let (alpha, beta) = self.factors::<T>();
        Scalars::new(alpha, beta)
    }

    fn on_host<T: GemmElement, C: GemmResult<T>>(&mut self, step: &GemmStep) -> Result<()> {
        let (alpha, beta) = self.factors::<T>();
        let [of_a, of_b, of_c] = step.starts;
        let MatmulEpilogue { bias, activation, aux_in, .. } = self.fused;
        let [left, right] = self.sides(step);
        let (a, b) = (on_host::<T>(left, of_a)?, on_host::<T>(right, of_b)?);
        let mut epilogue = HostEpilogue::new().activation(*activation);
        if let Some(bias) = bias {
            let vector = on_host::<C>(&bias.vector, 0)?;
            epilogue = match by_row(bias, step) {
                true => epilogue.bias_of_rows(vector),
                false => epilogue.bias_of_columns(vector),
            };
        }
        if let Some(residual) = aux_in {
            epilogue = epilogue.residual(on_host::<C>(residual, of_c)?);
        }
        if let Some(aux) = &mut self.aux {
            epilogue = epilogue.aux(written_on_host::<C>(aux.host(OPERATION)?, of_c)?);
        }
        let c = written_on_host::<C>(self.memory.host(OPERATION)?, self.start + of_c)?;
        gemm_host_with::<T, C>(&step.product, alpha, a, b, beta, c, epilogue)
    }

    /// Returns whether one of the device's engines computes a step with the epilogue.
    pub fn is_supported(&mut self, step: &GemmStep, result: DType) -> Result<bool> {
        let [of_a, of_b, of_c] = step.starts;
        let [left, right] = self.sides(step);
        let c = self.memory.cuda(OPERATION)?;
        let at_c = c.address() + ((self.start + of_c) * result.size()) as u64;
        let addresses = [on_device(left, of_a)?.address(), on_device(right, of_b)?.address(), at_c];
        let epilogue = device_epilogue(self.fused, self.aux.as_deref_mut(), step, result)?;
        let epilogue = epilogue.seen(DeviceSlice::address, DeviceSliceMut::address);
        is_supported(&c.device(), &step.product, (left.dtype(), result), addresses, epilogue)
    }

    fn on_device(&mut self, step: &GemmStep, result: DType, scalars: Scalars) -> Result<()> {
        let [of_a, of_b, of_c] = step.starts;
        let [left, right] = self.sides(step);
        let c = self.memory.cuda(OPERATION)?;
        let stream = stream(&Device::from(c.device()))?;
        let (a, b) = (on_device(left, of_a)?, on_device(right, of_b)?);
        let epilogue = device_epilogue(self.fused, self.aux.as_deref_mut(), step, result)?;
        let range = from(self.start + of_c, result, c.len());
        let types = (left.dtype(), result);
        multiply(&stream, &step.product, types, scalars, (a, b, c.slice_mut(range)?), &epilogue)
    }
}

/// The epilogue of a step, in device memory.
fn device_epilogue<'e>(
    fused: &'e MatmulEpilogue,
    aux: Option<&'e mut MemoryMut<'_>>,
    step: &GemmStep,
    result: DType,
) -> Result<DeviceEpilogue<'e>> {
    let MatmulEpilogue { bias, activation, aux_in, is_derivative } = fused;
    let [_, _, of_c] = step.starts;
    Ok(DeviceEpilogue {
        bias: bias.as_ref().map(|bias| on_device(&bias.vector, 0)).transpose()?,
        bias_by_row: bias.as_ref().is_some_and(|bias| by_row(bias, step)),
        aux: match aux {
            Some(aux) => {
                let aux = aux.cuda(OPERATION)?;
                Some(aux.slice_mut(from(of_c, result, aux.len()))?)
            }
            None => None,
        },
        activation: *activation,
        aux_in: aux_in.as_ref().map(|aux_in| on_device(aux_in, of_c)).transpose()?,
        is_derivative: *is_derivative,
    })
}

/// Returns whether the bias is per row. A row of the tensors' product is a column of its transpose.
fn by_row(bias: &Bias, step: &GemmStep) -> bool {
    bias.by_row != step.swapped
}

/// Returns the bytes from element `start` on, of memory of `bytes` bytes; an empty range if the start is past the end.
fn from(start: usize, dtype: DType, bytes: usize) -> std::ops::Range<usize> {
    (start * dtype.size()).min(bytes)..bytes
}

/// Returns a tensor's memory on the host from `start` elements after its first element on.
fn on_host<T: Element>(tensor: &Tensor, start: usize) -> Result<&[T]> {
    let memory = tensor.memory().host(OPERATION)?;
    let range = from(tensor.layout().offset() + start, T::DTYPE, memory.len());
    bytemuck::try_cast_slice(memory.get(range).unwrap_or_default()).map_err(misplaced)
}

/// As [`on_host`], on a device.
fn on_device(tensor: &Tensor, start: usize) -> Result<DeviceSlice<'_, u8>> {
    let memory = tensor.memory().cuda(OPERATION)?;
    memory.slice(from(tensor.layout().offset() + start, tensor.dtype(), memory.len()))
}

fn written_on_host<T: Element>(memory: &mut [u8], start: usize) -> Result<&mut [T]> {
    let range = from(start, T::DTYPE, memory.len());
    bytemuck::try_cast_slice_mut(memory.get_mut(range).unwrap_or_default()).map_err(misplaced)
}

#[cold]
fn misplaced(error: bytemuck::PodCastError) -> Error {
    Error::invalid(OPERATION, format!("memory of a tensor: {error}"), "memory that elements can lie in")
}

/// Returns a number as a factor, by the rules of a cast.
fn factor<S: Element>(number: Number) -> S {
    let [re, im] = number.parts(S::DTYPE);
    let part = size_of::<S>() / if S::DTYPE.kind() == NumberKind::Complex { 2 } else { 1 };
    let mut factor = S::zeroed();
    let bytes = bytemuck::bytes_of_mut(&mut factor);
    for (slot, word) in bytes.chunks_exact_mut(part).zip([re, im]) {
        slot.copy_from_slice(&word.to_le_bytes()[..part]);
    }
    factor
}
