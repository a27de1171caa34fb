//! Epilogues on the CPU, applied to a row of a tile's sums before it is rounded and stored.

use super::super::GemmResult;
use super::super::activation::Activation;
use super::super::element::GemmElement;
use super::super::epilogue::EpilogueParts;
use super::sum::Sum;
use crate::types::Element;

/// An [`Epilogue`](crate::gemm::Epilogue) of slices, for [`gemm_host_with`](crate::gemm::gemm_host_with).
///
/// ```
/// use selvedge::gemm::{Activation, HostEpilogue, Product, gemm_host_with};
/// let (a, b, bias) = ([1.0f32, 2.0], [3.0f32, -4.0], [0.5f32, 0.25]);
/// let (mut aux, mut c) = ([0.0f32; 4], [0.0f32; 4]);
/// let epilogue = HostEpilogue::new().bias_of_columns(&bias).activation(Activation::Relu).aux(&mut aux);
/// gemm_host_with(&Product::new(2, 2, 1), 1.0, &a, &b, 0.0, &mut c, epilogue)?;
/// assert_eq!(c, [3.5, 0.0, 6.5, 0.0]);
/// assert_eq!(aux, [3.5, -3.75, 6.5, -7.75]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct HostEpilogue<'a, C: Element> {
    pub(super) parts: EpilogueParts<&'a [C], &'a mut [C]>,
}

impl<C: Element> Default for HostEpilogue<'_, C> {
    fn default() -> Self {
        HostEpilogue::new()
    }
}

impl<'a, C: Element> HostEpilogue<'a, C> {
    /// Returns an empty epilogue.
    pub const fn new() -> HostEpilogue<'a, C> {
        HostEpilogue { parts: EpilogueParts::NONE }
    }

    /// Adds a bias by column: `bias[j]` to C's (i, j), in all matrices of a batch. Replaces another bias.
    #[must_use]
    pub fn bias_of_columns(mut self, bias: &'a [C]) -> HostEpilogue<'a, C> {
        self.parts.bias = Some(bias);
        self.parts.bias_by_row = false;
        self
    }

    /// Adds a bias by row: `bias[i]` to C's (i, j), in all matrices of a batch. Replaces another bias.
    #[must_use]
    pub fn bias_of_rows(mut self, bias: &'a [C]) -> HostEpilogue<'a, C> {
        self.parts.bias = Some(bias);
        self.parts.bias_by_row = true;
        self
    }

    /// Applies the activation, after the bias.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> HostEpilogue<'a, C> {
        self.parts.activation = activation;
        self
    }

    /// Stores the pre-activation, laid out like C: gradients need it.
    #[must_use]
    pub fn aux(mut self, aux: &'a mut [C]) -> HostEpilogue<'a, C> {
        self.parts.aux = Some(aux);
        self
    }

    /// Adds the residual, laid out like C, after the activation.
    #[must_use]
    pub fn residual(mut self, residual: &'a [C]) -> HostEpilogue<'a, C> {
        self.parts.aux_in = Some(residual);
        self
    }
}

impl<C: Element> HostEpilogue<'_, C> {
    /// Returns the parts as pointers, which threads share.
    pub(super) fn raw(&mut self) -> EpilogueParts<*const C, *mut C> {
        let aux = self.parts.aux.as_mut().map(|aux| aux.as_mut_ptr());
        EpilogueParts { aux, ..self.parts.seen(|slice| slice.as_ptr(), |_| std::ptr::null_mut()) }
    }
}

/// The position of a row of a tile: its row and first column in its matrix, and the index of its first element in C.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub row: usize,
    pub column: usize,
    pub offset: usize,
}

/// Applies the epilogue to a row of sums, after alpha and beta.
///
/// # Safety
///
/// The parts are those of a checked product and its epilogue, the row is inside C, and no other thread uses the row's part of aux.
pub(super) unsafe fn fuse<T: GemmElement, C: GemmResult<T>>(
    parts: &EpilogueParts<*const C, *mut C>,
    at: Row,
    sums: &mut [T::Sum],
) {
    // SAFETY: the caller vouches for the row, which has as many elements in what is laid out like C.
    unsafe {
        if let Some(bias) = parts.bias {
            for (column, sum) in sums.iter_mut().enumerate() {
                let index = if parts.bias_by_row { at.row } else { at.column + column };
                *sum = sum.plus((*bias.add(index)).summand());
            }
        }
        if let Some(aux) = parts.aux {
            for (column, sum) in sums.iter().enumerate() {
                *aux.add(at.offset + column) = C::rounded(*sum);
            }
        }
        if let Some(activate) = T::Sum::ACTIVATE {
            activate(parts.activation, sums);
        }
        if let Some(residual) = parts.aux_in {
            for (column, sum) in sums.iter_mut().enumerate() {
                *sum = sum.plus((*residual.add(at.offset + column)).summand());
            }
        }
    }
}
