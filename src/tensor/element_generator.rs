//! [`ElementGenerator`], which computes a tensor from the positions of its elements, numbers and tensors.
//!
//! It is built once, as a [`CachedOperation`](super::cached_operation::CachedOperation) is. Numbers are no part of it.

use super::cached_operation::{AppendOnlyMap, OperandKind};
use super::device::Device;
use super::evaluate::evaluate_named;
use super::kernel::{Output, OutputTarget};
use super::operand::{Inputs, TensorOperand};
use super::tensor::{Tensor, mismatch};
use crate::error::Result;
use crate::fuse::{Expr, Expression, Graph, Number};
use crate::types::{DType, Shape};

/// Numbers, tensors and scalars of one.
const ROOM: usize = 6;

/// A generator of elements. Generators of the same name, dtypes and operand kinds share one expression.
pub(super) struct ElementGenerator<'a, const OPERANDS: usize> {
    /// As errors name it.
    pub(super) operation: &'static str,
    /// Of the elements.
    pub(super) dtype: DType,
    /// As which numbers among the operands take part.
    pub(super) compute: DType,
    pub(super) operands: [TensorOperand<'a>; OPERANDS],
}

#[derive(PartialEq)]
struct Key {
    operation: &'static str,
    compute: DType,
    operands: Vec<OperandKind>,
}

impl<const OPERANDS: usize> ElementGenerator<'_, OPERANDS> {
    /// Makes it: `build` says what an element is, of the operands and of the scalars, whose dtype is u64.
    ///
    /// `scalars` is called when there is memory and nothing more that can be refused, so that what it takes is used.
    ///
    /// # Errors
    ///
    /// As [`Output::new`] and of a run.
    pub(super) fn make<const SCALARS: usize>(
        &self,
        shape: &Shape,
        device: &Device,
        scalars: impl FnOnce() -> Result<[u64; SCALARS]>,
        build: impl for<'g> FnOnce(&'g Graph, [Expr<'g>; OPERANDS], [Expr<'g>; SCALARS]) -> Expr<'g>,
    ) -> Result<Tensor> {
        let expression = self.expression(build)?;
        let mut fresh = Output::of_shape(device, self.dtype, shape)?;
        let mut inputs = Inputs::<ROOM>::default();
        for operand in &self.operands {
            if let TensorOperand::Tensor(tensor) = operand {
                if tensor.device() != *device {
                    return Err(mismatch(self.operation, tensor.device(), *device));
                }
                tensor.layout().expand(shape)?;
            }
            inputs.push(operand);
        }
        for scalar in scalars()? {
            inputs.push(&Number::Integer(scalar.into()).into());
        }
        let targets = &mut [OutputTarget::all(&mut fresh)];
        evaluate_named(self.operation, expression, inputs.sources(), inputs.numbers(), targets)?;
        Ok(fresh.into_tensor())
    }

    fn expression<const SCALARS: usize>(
        &self,
        build: impl for<'g> FnOnce(&'g Graph, [Expr<'g>; OPERANDS], [Expr<'g>; SCALARS]) -> Expr<'g>,
    ) -> Result<&'static Expression> {
        static CACHE: [AppendOnlyMap<Key, Expression>; DType::ALL.len()] =
            [const { AppendOnlyMap::new() }; DType::ALL.len()];
        let kinds = || self.operands.iter().map(OperandKind::of);
        let same = |key: &Key| {
            key.operation == self.operation
                && key.compute == self.compute
                && key.operands.iter().copied().eq(kinds())
        };
        CACHE[self.dtype as usize % CACHE.len()].find_or_add(same, || {
            let graph = Graph::new();
            let operands = self.operands.each_ref().map(|operand| match operand {
                TensorOperand::Tensor(tensor) => graph.input(tensor.dtype()),
                TensorOperand::Number(_) => graph.scalar(self.compute),
            });
            let scalars = [(); SCALARS].map(|()| graph.scalar(DType::U64));
            let element = build(&graph, operands, scalars).cast(self.dtype);
            let expression = graph.expression(&[element])?;
            let operands = kinds().collect();
            Ok((Key { operation: self.operation, compute: self.compute, operands }, expression))
        })
    }
}
