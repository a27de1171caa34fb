//! What is done with a product's numbers before they are rounded and stored: fused, so that C is written once.
//!
//! What must stay true: the numbers are those of the type that the product is summed in until the end, so what is fused is
//! rounded once, where separate operations would round each time.

use std::marker::PhantomData;
use std::ops::Range;

use super::engine::Unsupported;
use super::product::{OPERATION, Product};
use crate::driver::image::ArgumentKind;
use crate::driver::{DeviceRead, DeviceSlice, DeviceSliceMut, DeviceWrite, KernelArgument, LaunchTarget};
use crate::error::{Error, Result};
use crate::types::{DType, Element};

/// A function of each number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// x itself.
    #[default]
    None,
    /// The larger of x and 0; NaN stays, but that the engine `cublas` may make 0 of it.
    Relu,
    /// x / (1 + exp(-2 u)) with u = √(2/π) (x + 0.044715 x³), which is x (1 + tanh u) / 2. Into `f16` and `bf16` the engine
    /// `wgmma` may be off by 2⁻¹² of x beside the rounding.
    Gelu,
}

/// The parts of an epilogue, each where it is asked for, with the memory that is read as `R` and written as `W`: slices of a
/// device or of the host, or where they lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<R, W> {
    pub bias: Option<R>,
    /// Whether the bias has a number a row, instead of a column.
    pub by_row: bool,
    pub kept: Option<W>,
    pub activation: Activation,
    pub residual: Option<R>,
}

impl<R, W> Parts<R, W> {
    pub const NONE: Parts<R, W> =
        Parts { bias: None, by_row: false, kept: None, activation: Activation::None, residual: None };

    /// Whether there is anything to do.
    pub fn is_none(&self) -> bool {
        self.bias.is_none()
            && self.kept.is_none()
            && self.residual.is_none()
            && self.activation == Activation::None
    }

    /// The same parts with their memory seen in another way.
    pub fn seen<Q, V>(&self, read: impl Fn(&R) -> Q, written: impl Fn(&W) -> V) -> Parts<Q, V> {
        Parts {
            bias: self.bias.as_ref().map(&read),
            by_row: self.by_row,
            kept: self.kept.as_ref().map(written),
            activation: self.activation,
            residual: self.residual.as_ref().map(&read),
        }
    }
}

impl Parts<Range<u64>, Range<u64>> {
    /// Fails where memory that lies at these bytes is too short for elements of this size, or what is kept shares any with
    /// what is read or with C.
    pub fn check(&self, product: &Product, operands: &[Range<u64>; 3], element: usize) -> Result<()> {
        if self.is_none() {
            return Ok(());
        }
        let needed = product.stored_c().span().unwrap_or(usize::MAX);
        let bias = if self.by_row { product.m() } else { product.n() };
        let parts = [
            ("the bias", &self.bias, bias),
            ("the residual", &self.residual, needed),
            ("what is kept", &self.kept, needed),
        ];
        let there =
            || parts.iter().filter_map(|(name, range, needed)| Some((*name, (*range).clone()?, *needed)));
        for (name, range, needed) in there() {
            let found = (range.end - range.start) as usize / element;
            if found < needed {
                let wanted = format!("at least {needed}, for C of {}", product.stored_c());
                return Err(Error::invalid(OPERATION, format!("{name} of {found} elements"), wanted));
            }
        }
        let [a, b, c] = operands.clone();
        let all = there().map(|(name, range, _)| (name, range)).chain([("A", a), ("B", b), ("C", c)]);
        let all: Vec<(&str, Range<u64>)> = all.collect();
        for (name, range) in all.iter().filter(|(name, _)| matches!(*name, "C" | "what is kept")) {
            for (other, place) in all.iter().filter(|(other, _)| other != name) {
                if range.start < place.end && place.start < range.end {
                    let found = format!("{name} at {range:#x?} and {other} at {place:#x?}");
                    return Err(Error::invalid(OPERATION, found, "memory of its own for what is written"));
                }
            }
        }
        Ok(())
    }
}

/// C = activation(alpha · op(A) · op(B) + beta · C + bias) + residual, of which each part may be missing.
///
/// ```no_run
/// use selvedge::driver::Device;
/// use selvedge::gemm::{Activation, Epilogue, Product, gemm_with};
///
/// # fn main() -> selvedge::Result<()> {
/// let stream = Device::new(0)?.stream()?;
/// let (a, b) = (stream.upload(&[1.0f32, 2.0])?, stream.upload(&[3.0f32, -4.0])?);
/// let bias = stream.upload(&[0.5f32, 0.25])?;
/// let mut before = stream.zeros::<f32>(4)?;
/// let mut c = stream.zeros::<f32>(4)?;
/// let epilogue = Epilogue::new().bias_of_columns(&bias).activation(Activation::Relu).keep(&mut before);
/// gemm_with(&stream, &Product::new(2, 2, 1), 1.0, &a, &b, 0.0, &mut c, epilogue)?;
/// assert_eq!(stream.download(&c)?, [3.5, 0.0, 6.5, 0.0]);
/// assert_eq!(stream.download(&before)?, [3.5, -3.75, 6.5, -7.75]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Epilogue<'a, C: Element> {
    parts: DeviceParts<'a>,
    element: PhantomData<DeviceSliceMut<'a, C>>,
}

impl<C: Element> Default for Epilogue<'_, C> {
    fn default() -> Self {
        Epilogue::new()
    }
}

impl<'a, C: Element> Epilogue<'a, C> {
    /// Nothing.
    pub const fn new() -> Epilogue<'a, C> {
        Epilogue { parts: Parts::NONE, element: PhantomData }
    }

    /// Adds a number to each column: `bias[j]` to C's (i, j), in all matrices of a batch. Replaces another bias.
    #[must_use]
    pub fn bias_of_columns(mut self, bias: &'a impl DeviceRead<C>) -> Epilogue<'a, C> {
        self.parts.bias = Some(DeviceSlice::new(bias.view().bytes::<C>()));
        self.parts.by_row = false;
        self
    }

    /// Adds a number to each row: `bias[i]` to C's (i, j), in all matrices of a batch. Replaces another bias.
    #[must_use]
    pub fn bias_of_rows(mut self, bias: &'a impl DeviceRead<C>) -> Epilogue<'a, C> {
        self.parts.bias = Some(DeviceSlice::new(bias.view().bytes::<C>()));
        self.parts.by_row = true;
        self
    }

    /// Applies this, after the bias.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Epilogue<'a, C> {
        self.parts.activation = activation;
        self
    }

    /// Keeps what the activation is applied to, laid out like C: gradients need it.
    #[must_use]
    pub fn keep(mut self, before: &'a mut impl DeviceWrite<C>) -> Epilogue<'a, C> {
        self.parts.kept = Some(DeviceSliceMut::new(before.view().bytes::<C>()));
        self
    }

    /// Adds this, laid out like C, after the activation.
    #[must_use]
    pub fn residual(mut self, residual: &'a impl DeviceRead<C>) -> Epilogue<'a, C> {
        self.parts.residual = Some(DeviceSlice::new(residual.view().bytes::<C>()));
        self
    }

    /// Its parts, whose elements are known at run time.
    pub(crate) fn into_parts(self) -> DeviceParts<'a> {
        self.parts
    }
}

/// The parts of an epilogue in a device's memory, of elements that are known at run time.
pub(crate) type DeviceParts<'a> = Parts<DeviceSlice<'a, u8>, DeviceSliceMut<'a, u8>>;

impl DeviceParts<'_> {
    /// Fails where a buffer is too short for elements of this size, or what is kept shares memory with what is read or with C.
    pub fn check_buffers(&self, product: &Product, operands: &[Range<u64>; 3], element: usize) -> Result<()> {
        let bytes = |address: u64, length: usize| address..address + length as u64;
        let read = |slice: &DeviceSlice<'_, u8>| bytes(slice.address(), slice.len());
        let written = |slice: &DeviceSliceMut<'_, u8>| bytes(slice.address(), slice.len());
        self.seen(read, written).check(product, operands, element)
    }

    /// The parts with the addresses of their memory.
    pub fn addresses(&self) -> Parts<u64, u64> {
        self.seen(DeviceSlice::address, DeviceSliceMut::address)
    }

    /// The kernels' parameter.
    pub(super) fn raw(&self) -> Raw {
        let parts = self.addresses();
        Raw {
            bias: parts.bias.unwrap_or(0),
            before: parts.kept.unwrap_or(0),
            residual: parts.residual.unwrap_or(0),
            by_row: parts.by_row.into(),
            activation: match parts.activation {
                Activation::None => 0,
                Activation::Relu => 1,
                Activation::Gelu => 2,
            },
        }
    }
}

/// Why products into this type cannot have an epilogue.
pub(super) fn lacks(result: DType) -> Option<Unsupported> {
    let real = matches!(result, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    (!real).then_some(Unsupported::Epilogue(result))
}

/// Exactly the `Epilogue` of epilogue.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Raw {
    bias: u64,
    before: u64,
    residual: u64,
    by_row: i32,
    activation: i32,
}

/// A kernel's parameter that holds an epilogue's addresses, with the memory that they name.
pub(super) struct WithEpilogue<'a, S> {
    pub shape: S,
    pub epilogue: &'a DeviceParts<'a>,
}

// SAFETY: the pointer is to the shape, which is plain data of that size, and all memory that its addresses name is entered.
unsafe impl<S: bytemuck::Pod> KernelArgument for WithEpilogue<'_, S> {
    const KIND: ArgumentKind = ArgumentKind::Bytes;
    const SIZE: usize = size_of::<S>();

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        for read in [&self.epilogue.bias, &self.epilogue.residual].into_iter().flatten() {
            <DeviceSlice<'_, u8> as KernelArgument>::enter(read, target)?;
        }
        match &self.epilogue.kept {
            Some(kept) => <DeviceSliceMut<'_, u8> as KernelArgument>::enter(kept, target),
            None => Ok(()),
        }
    }

    fn pointer(&self) -> *mut std::ffi::c_void {
        std::ptr::from_ref(&self.shape).cast_mut().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epilogue_is_the_kernels() {
        assert_eq!(size_of::<Raw>(), 32);
        assert_eq!(std::mem::offset_of!(Raw, by_row), 24);
        assert!(Epilogue::<f32>::new().into_parts().is_none());
        assert!(!Epilogue::<f32>::new().activation(Activation::Relu).into_parts().is_none());
    }

    #[test]
    fn numbers_without_an_order_have_no_epilogue() {
        assert!(lacks(DType::BF16).is_none() && lacks(DType::F64).is_none());
        for dtype in [DType::C64, DType::I32, DType::U8] {
            assert!(lacks(dtype).is_some_and(|lack| lack.to_string().contains(dtype.name())), "{dtype}");
        }
    }
}
