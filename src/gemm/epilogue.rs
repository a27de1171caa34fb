//! The epilogue of a product: bias, aux, activation and residual, fused so that C is written once.
//!
//! Invariants: an epilogue is computed in the type of the product's sums, so its result is rounded once. Separate operations would
//! round each time.

use std::marker::PhantomData;
use std::ops::Range;

use super::activation::Activation;
use super::engine::Unsupported;
use super::product::{OPERATION, Product};
use crate::driver::image::ArgumentKind;
use crate::driver::{DeviceRead, DeviceSlice, DeviceSliceMut, DeviceWrite, KernelArgument, LaunchTarget};
use crate::error::{Error, Result};
use crate::types::{DType, Element};

/// The parts of an epilogue. `R` is memory that is read and `W` memory that is written: slices of a device or of the host, or
/// addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpilogueParts<R, W> {
    pub bias: Option<R>,
    /// True where the bias has an element a row instead of a column.
    pub bias_by_row: bool,
    /// Receives the pre-activation.
    pub aux: Option<W>,
    pub activation: Activation,
    /// Memory that is read with the layout of C: the residual, or the pre-activation where `is_derivative` is true.
    pub aux_in: Option<R>,
    /// True where the sums are multiplied by the activation's derivative at `aux_in`.
    pub is_derivative: bool,
}

impl<R, W> EpilogueParts<R, W> {
    pub const NONE: EpilogueParts<R, W> = EpilogueParts {
        bias: None,
        bias_by_row: false,
        aux: None,
        activation: Activation::None,
        aux_in: None,
        is_derivative: false,
    };

    /// Returns true where there is nothing to do.
    pub fn is_none(&self) -> bool {
        self.bias.is_none()
            && self.aux.is_none()
            && self.aux_in.is_none()
            && self.activation == Activation::None
    }

    /// Returns the same parts with their memory converted.
    pub fn seen<Q, V>(&self, read: impl Fn(&R) -> Q, written: impl Fn(&W) -> V) -> EpilogueParts<Q, V> {
        EpilogueParts {
            bias: self.bias.as_ref().map(&read),
            bias_by_row: self.bias_by_row,
            aux: self.aux.as_ref().map(written),
            activation: self.activation,
            aux_in: self.aux_in.as_ref().map(&read),
            is_derivative: self.is_derivative,
        }
    }
}

impl EpilogueParts<Range<u64>, Range<u64>> {
    /// Fails if memory at these bytes is too short for elements of this size, or if aux overlaps memory that is read or C.
    pub fn check(&self, product: &Product, operands: &[Range<u64>; 3], element: usize) -> Result<()> {
        if self.is_none() {
            return Ok(());
        }
        let needed = product.stored_c().span().unwrap_or(usize::MAX);
        let bias = if self.bias_by_row { product.m() } else { product.n() };
        let aux_in = if self.is_derivative { "the pre-activation" } else { "the residual" };
        let parts =
            [("the bias", &self.bias, bias), (aux_in, &self.aux_in, needed), ("aux", &self.aux, needed)];
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
        for (name, range) in all.iter().filter(|(name, _)| matches!(*name, "C" | "aux")) {
            for (other, other_range) in all.iter().filter(|(other, _)| other != name) {
                if range.start < other_range.end && other_range.start < range.end {
                    let found = format!("{name} at {range:#x?} and {other} at {other_range:#x?}");
                    return Err(Error::invalid(OPERATION, found, "memory of its own for what is written"));
                }
            }
        }
        Ok(())
    }
}

/// C = activation(alpha · op(A) · op(B) + beta · C + bias) + residual, each part of which may be missing; or
/// C = alpha · op(A) · op(B) · activation'(pre-activation), for gradients.
///
/// ```no_run
/// use selvedge::driver::Device;
/// use selvedge::gemm::{Activation, Epilogue, Product, gemm_with};
///
/// # fn main() -> selvedge::Result<()> {
/// let stream = Device::new(0)?.stream()?;
/// let (a, b) = (stream.upload(&[1.0f32, 2.0])?, stream.upload(&[3.0f32, -4.0])?);
/// let bias = stream.upload(&[0.5f32, 0.25])?;
/// let mut aux = stream.zeros::<f32>(4)?;
/// let mut c = stream.zeros::<f32>(4)?;
/// let epilogue = Epilogue::new().bias_of_columns(&bias).activation(Activation::Relu).aux(&mut aux);
/// gemm_with(&stream, &Product::new(2, 2, 1), 1.0, &a, &b, 0.0, &mut c, epilogue)?;
/// assert_eq!(stream.download(&c)?, [3.5, 0.0, 6.5, 0.0]);
/// assert_eq!(stream.download(&aux)?, [3.5, -3.75, 6.5, -7.75]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Epilogue<'a, C: Element> {
    parts: DeviceEpilogue<'a>,
    element: PhantomData<DeviceSliceMut<'a, C>>,
}

impl<C: Element> Default for Epilogue<'_, C> {
    fn default() -> Self {
        Epilogue::new()
    }
}

impl<'a, C: Element> Epilogue<'a, C> {
    /// Returns an empty epilogue.
    pub const fn new() -> Epilogue<'a, C> {
        Epilogue { parts: EpilogueParts::NONE, element: PhantomData }
    }

    /// Adds a bias by column: `bias[j]` to C's (i, j), in all matrices of a batch. Replaces another bias.
    #[must_use]
    pub fn bias_of_columns(mut self, bias: &'a impl DeviceRead<C>) -> Epilogue<'a, C> {
        self.parts.bias = Some(DeviceSlice::new(bias.view().bytes::<C>()));
        self.parts.bias_by_row = false;
        self
    }

    /// Adds a bias by row: `bias[i]` to C's (i, j), in all matrices of a batch. Replaces another bias.
    #[must_use]
    pub fn bias_of_rows(mut self, bias: &'a impl DeviceRead<C>) -> Epilogue<'a, C> {
        self.parts.bias = Some(DeviceSlice::new(bias.view().bytes::<C>()));
        self.parts.bias_by_row = true;
        self
    }

    /// Applies the activation, after the bias. Replaces a [`derivative`](Self::derivative).
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Epilogue<'a, C> {
        if std::mem::take(&mut self.parts.is_derivative) {
            self.parts.aux_in = None;
        }
        self.parts.activation = activation;
        self
    }

    /// Multiplies by the activation's derivative at a pre-activation, laid out like C (cuBLASLt's `DGELU`). The derivative of
    /// relu is 0 at 0. Replaces an activation and a residual.
    ///
    /// Only the engine `wgmma` has derivatives: for operands and results of one type, a number of columns that 64 divides, and a C
    /// and a pre-activation that TMA can describe, unless split-K and a pass over the result are faster (few tiles of much depth).
    /// Another product, or a bias, aux or `beta` beside it, is an error with the reason.
    #[must_use]
    pub fn derivative(
        mut self,
        activation: Activation,
        pre_activation: &'a impl DeviceRead<C>,
    ) -> Epilogue<'a, C> {
        // The derivative of no activation is 1.
        self.parts.is_derivative = activation != Activation::None;
        let pre_activation = || DeviceSlice::new(pre_activation.view().bytes::<C>());
        self.parts.aux_in = self.parts.is_derivative.then(pre_activation);
        self.parts.activation = activation;
        self
    }

    /// Stores the pre-activation, laid out like C: gradients need it (cuBLASLt's `GELU_AUX`).
    #[must_use]
    pub fn aux(mut self, aux: &'a mut impl DeviceWrite<C>) -> Epilogue<'a, C> {
        self.parts.aux = Some(DeviceSliceMut::new(aux.view().bytes::<C>()));
        self
    }

    /// Adds the residual, laid out like C, after the activation. Replaces a [`derivative`](Self::derivative).
    #[must_use]
    pub fn residual(mut self, residual: &'a impl DeviceRead<C>) -> Epilogue<'a, C> {
        if std::mem::take(&mut self.parts.is_derivative) {
            self.parts.activation = Activation::None;
        }
        self.parts.aux_in = Some(DeviceSlice::new(residual.view().bytes::<C>()));
        self
    }

    /// Returns its parts, without the element type.
    pub(crate) fn into_parts(self) -> DeviceEpilogue<'a> {
        self.parts
    }
}

/// The parts of an epilogue in device memory, of elements whose type is known at run time.
pub(crate) type DeviceEpilogue<'a> = EpilogueParts<DeviceSlice<'a, u8>, DeviceSliceMut<'a, u8>>;

impl DeviceEpilogue<'_> {
    /// Fails if a buffer is too short for elements of this size, or if aux overlaps memory that is read or C.
    pub fn check_buffers(&self, product: &Product, operands: &[Range<u64>; 3], element: usize) -> Result<()> {
        let bytes = |address: u64, length: usize| address..address + length as u64;
        let read = |slice: &DeviceSlice<'_, u8>| bytes(slice.address(), slice.len());
        let written = |slice: &DeviceSliceMut<'_, u8>| bytes(slice.address(), slice.len());
        self.seen(read, written).check(product, operands, element)
    }

    /// Returns the parts with the addresses of their memory.
    pub fn addresses(&self) -> EpilogueParts<u64, u64> {
        self.seen(DeviceSlice::address, DeviceSliceMut::address)
    }

    /// Returns the kernels' parameter.
    pub(super) fn raw(&self) -> EpilogueParameters {
        let parts = self.addresses();
        EpilogueParameters {
            bias: parts.bias.unwrap_or(0),
            aux: parts.aux.unwrap_or(0),
            residual: parts.aux_in.unwrap_or(0),
            bias_by_row: parts.bias_by_row.into(),
            activation: parts.activation.code(parts.is_derivative),
        }
    }
}

/// Returns the reason why products into this type cannot have an epilogue.
pub(super) fn unsupported(result: DType) -> Option<Unsupported> {
    let real = matches!(result, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    (!real).then_some(Unsupported::Epilogue(result))
}

/// Exactly the `Epilogue` of epilogue.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct EpilogueParameters {
    bias: u64,
    aux: u64,
    residual: u64,
    bias_by_row: i32,
    activation: i32,
}

/// A kernel's parameter that holds the addresses of an epilogue, with the memory at them.
pub(super) struct WithEpilogue<'a, S> {
    pub parameters: S,
    pub epilogue: &'a DeviceEpilogue<'a>,
}

// SAFETY: the pointer is to the parameters, which are plain data of that size, and all memory at their addresses is entered.
unsafe impl<S: bytemuck::Pod> KernelArgument for WithEpilogue<'_, S> {
    const KIND: ArgumentKind = ArgumentKind::Bytes;
    const SIZE: usize = size_of::<S>();

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        for read in [&self.epilogue.bias, &self.epilogue.aux_in].into_iter().flatten() {
            <DeviceSlice<'_, u8> as KernelArgument>::enter(read, target)?;
        }
        match &self.epilogue.aux {
            Some(aux) => <DeviceSliceMut<'_, u8> as KernelArgument>::enter(aux, target),
            None => Ok(()),
        }
    }

    fn pointer(&self) -> *mut std::ffi::c_void {
        std::ptr::from_ref(&self.parameters).cast_mut().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epilogue_is_the_kernels() {
        assert_eq!(size_of::<EpilogueParameters>(), 32);
        assert_eq!(std::mem::offset_of!(EpilogueParameters, bias_by_row), 24);
        assert!(Epilogue::<f32>::new().into_parts().is_none());
        assert!(!Epilogue::<f32>::new().activation(Activation::Relu).into_parts().is_none());
    }

    #[test]
    fn numbers_without_an_order_have_no_epilogue() {
        assert!(unsupported(DType::BF16).is_none() && unsupported(DType::F64).is_none());
        for dtype in [DType::C64, DType::I32, DType::U8] {
            assert!(
                unsupported(dtype).is_some_and(|lack| lack.to_string().contains(dtype.name())),
                "{dtype}"
            );
        }
    }
}
