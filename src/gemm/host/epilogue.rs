//! Epilogues on the CPU: what is done with a row of a tile's sums before it is rounded and stored.

use super::super::GemmResult;
use super::super::element::GemmElement;
use super::super::epilogue::{Activation, Parts};
use super::sum::Sum;
use crate::types::Element;

/// An [`Epilogue`](crate::gemm::Epilogue) of slices, for [`gemm_host_with`](crate::gemm::gemm_host_with).
///
/// ```
/// use selvedge::gemm::{Activation, HostEpilogue, Product, gemm_host_with};
/// let (a, b, bias) = ([1.0f32, 2.0], [3.0f32, -4.0], [0.5f32, 0.25]);
/// let (mut before, mut c) = ([0.0f32; 4], [0.0f32; 4]);
/// let epilogue = HostEpilogue::new().bias_of_columns(&bias).activation(Activation::Relu).keep(&mut before);
/// gemm_host_with(&Product::new(2, 2, 1), 1.0, &a, &b, 0.0, &mut c, epilogue)?;
/// assert_eq!(c, [3.5, 0.0, 6.5, 0.0]);
/// assert_eq!(before, [3.5, -3.75, 6.5, -7.75]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct HostEpilogue<'a, C: Element> {
    pub(super) parts: Parts<&'a [C], &'a mut [C]>,
}

impl<C: Element> Default for HostEpilogue<'_, C> {
    fn default() -> Self {
        HostEpilogue::new()
    }
}

impl<'a, C: Element> HostEpilogue<'a, C> {
    /// Nothing.
    pub const fn new() -> HostEpilogue<'a, C> {
        HostEpilogue { parts: Parts::NONE }
    }

    /// Adds a number to each column: `bias[j]` to C's (i, j), in all matrices of a batch. Replaces another bias.
    #[must_use]
    pub fn bias_of_columns(mut self, bias: &'a [C]) -> HostEpilogue<'a, C> {
        self.parts.bias = Some(bias);
        self.parts.by_row = false;
        self
    }

    /// Adds a number to each row: `bias[i]` to C's (i, j), in all matrices of a batch. Replaces another bias.
    #[must_use]
    pub fn bias_of_rows(mut self, bias: &'a [C]) -> HostEpilogue<'a, C> {
        self.parts.bias = Some(bias);
        self.parts.by_row = true;
        self
    }

    /// Applies this, after the bias.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> HostEpilogue<'a, C> {
        self.parts.activation = activation;
        self
    }

    /// Keeps what the activation is applied to, laid out like C: gradients need it.
    #[must_use]
    pub fn keep(mut self, before: &'a mut [C]) -> HostEpilogue<'a, C> {
        self.parts.kept = Some(before);
        self
    }

    /// Adds this, laid out like C, after the activation.
    #[must_use]
    pub fn residual(mut self, residual: &'a [C]) -> HostEpilogue<'a, C> {
        self.parts.residual = Some(residual);
        self
    }
}

impl<C: Element> HostEpilogue<'_, C> {
    /// The parts where they lie, as threads share them.
    pub(super) fn raw(&mut self) -> Parts<*const C, *mut C> {
        let kept = self.parts.kept.as_mut().map(|kept| kept.as_mut_ptr());
        Parts { kept, ..self.parts.seen(|slice| slice.as_ptr(), |_| std::ptr::null_mut()) }
    }
}

/// Where a row of a tile lies: its row and first column in its matrix, and its first element's place in C's memory.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub row: usize,
    pub column: usize,
    pub place: usize,
}

/// Does what the epilogue says with a row of sums, to which alpha and beta were applied.
///
/// # Safety
///
/// The parts are where a checked product and its epilogue have them, the row is inside of C, and nobody else uses the
/// part of what is kept that belongs to it.
pub(super) unsafe fn fuse<T: GemmElement, C: GemmResult<T>>(
    parts: &Parts<*const C, *mut C>,
    at: Row,
    sums: &mut [T::Sum],
) {
    // SAFETY: the caller vouches for the row, which has as many elements in what is laid out like C.
    unsafe {
        if let Some(bias) = parts.bias {
            for (column, sum) in sums.iter_mut().enumerate() {
                let index = if parts.by_row { at.row } else { at.column + column };
                *sum = sum.plus((*bias.add(index)).summand());
            }
        }
        if let Some(kept) = parts.kept {
            for (column, sum) in sums.iter().enumerate() {
                *kept.add(at.place + column) = C::rounded(*sum);
            }
        }
        match (parts.activation, T::Sum::ACTIVATIONS) {
            (Activation::Relu, Some([relu, _])) => relu(sums),
            (Activation::Gelu, Some([_, gelu])) => gelu(sums),
            _ => {}
        }
        if let Some(residual) = parts.residual {
            for (column, sum) in sums.iter_mut().enumerate() {
                *sum = sum.plus((*residual.add(at.place + column)).summand());
            }
        }
    }
}
