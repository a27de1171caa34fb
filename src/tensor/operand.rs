//! [`TensorOperand`], the other operand of an operation: a tensor or a number.

use half::{bf16, f16};
use num_complex::Complex;

use super::evaluate::OperandSource;
use super::tensor::Tensor;
use crate::fuse::Number;

/// A tensor, or a number that takes part by its kind, never by its width: `x * 2.0` has the dtype of an `x` of f16.
///
/// A `&Tensor` and every type of number convert to it.
#[derive(Clone, Copy)]
pub enum TensorOperand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number: a parameter of the kernel, so that another value needs no other kernel.
    Number(Number),
}

impl<'a> TensorOperand<'a> {
    #[inline]
    pub(super) fn tensor<'b>(&'b self) -> Option<&'a Tensor> {
        match self {
            TensorOperand::Tensor(tensor) => Some(tensor),
            TensorOperand::Number(_) => None,
        }
    }
}

impl<'a> From<&'a Tensor> for TensorOperand<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> TensorOperand<'a> {
        TensorOperand::Tensor(tensor)
    }
}

impl From<Number> for TensorOperand<'_> {
    #[inline]
    fn from(number: Number) -> Self {
        TensorOperand::Number(number)
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl From<$type> for TensorOperand<'_> {
            #[inline]
            fn from(number: $type) -> Self {
                TensorOperand::Number(number.into())
            }
        }
    )*};
}

numbers! {
    bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize f16 bf16 f32 f64 Complex<f32> Complex<f64>
}

/// Operands with tensors and scalars apart, as a run takes them; up to the capacity, without an allocation.
pub(super) struct Inputs<'a, const CAPACITY: usize> {
    sources: [OperandSource<'a>; CAPACITY],
    numbers: [Number; CAPACITY],
    counts: (usize, usize),
}

impl<const CAPACITY: usize> Default for Inputs<'_, CAPACITY> {
    fn default() -> Self {
        Inputs {
            sources: [OperandSource::Output(0); CAPACITY],
            numbers: [Number::Bool(false); CAPACITY],
            counts: (0, 0),
        }
    }
}

impl<'a, const CAPACITY: usize> Inputs<'a, CAPACITY> {
    /// Adds an operand. Operands past the capacity are left out; the owner counts them before.
    #[inline]
    pub(super) fn push(&mut self, operand: &TensorOperand<'a>) {
        match operand {
            TensorOperand::Tensor(tensor) => self.push_source(OperandSource::Tensor(tensor)),
            TensorOperand::Number(number) => {
                if let Some(slot) = self.numbers.get_mut(self.counts.1) {
                    *slot = *number;
                    self.counts.1 += 1;
                }
            }
        }
    }

    #[inline]
    pub(super) fn push_source(&mut self, source: OperandSource<'a>) {
        if let Some(slot) = self.sources.get_mut(self.counts.0) {
            *slot = source;
            self.counts.0 += 1;
        }
    }

    #[inline]
    pub(super) fn sources(&self) -> &[OperandSource<'a>] {
        &self.sources[..self.counts.0]
    }

    #[inline]
    pub(super) fn numbers(&self) -> &[Number] {
        &self.numbers[..self.counts.1]
    }
}
