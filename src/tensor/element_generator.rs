//! [`ElementGenerator`], which computes a tensor from the positions of its elements, numbers and tensors.
//!
//! It is built once, as a [`CachedOperation`](super::cached_operation::CachedOperation) is. Numbers are no part of it.

use super::cached_operation::{AppendOnlyMap, OperandKind};
use super::device::Device;
use super::evaluate::{OperandSource, evaluate_named};
use super::kernel::{Output, OutputTarget};
use super::operand::{Inputs, TensorOperand};
use super::random::{Generator, memory_of_draw, seed_and_offset_of_draw};
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
struct GeneratorKey {
    operation: &'static str,
    compute: DType,
    /// True if random words read their offset in the stream from memory.
    reads_state: bool,
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
        let expression = self.expression(SCALARS, false, |graph, operands, scalars, _| {
            build(graph, operands, std::array::from_fn(|index| scalars[index]))
        })?;
        self.run(expression, shape, device, &[], || scalars().map(|scalars| scalars.to_vec()))
    }

    /// Makes it of so many blocks of a generator: `build` gets the seed and the offset of the draw before the scalars. A
    /// captured draw reads them from memory; see [`CapturedGenerators`](super::random::CapturedGenerators).
    ///
    /// # Errors
    ///
    /// As [`make`](Self::make), and [`Error::NotCapturable`](crate::Error::NotCapturable) for a capture that does not know
    /// the generator. A draw that is refused takes no blocks.
    pub(super) fn draw<const SCALARS: usize>(
        &self,
        shape: &Shape,
        device: &Device,
        (generator, blocks): (&Generator, u64),
        scalars: [u64; SCALARS],
        build: impl for<'g> FnOnce(
            &'g Graph,
            [Expr<'g>; OPERANDS],
            [Expr<'g>; 2],
            [Expr<'g>; SCALARS],
        ) -> Expr<'g>,
    ) -> Result<Tensor> {
        let Some(state) = memory_of_draw(self.operation, generator, blocks, device)? else {
            let expression = self.expression(2 + SCALARS, false, |graph, operands, numbers, _| {
                let scalars = std::array::from_fn(|index| numbers[2 + index]);
                build(graph, operands, [numbers[0], numbers[1]], scalars)
            })?;
            let numbers =
                || Ok([&seed_and_offset_of_draw(self.operation, generator, blocks)?[..], &scalars].concat());
            return self.run(expression, shape, device, &[], numbers);
        };
        let expression = self.expression(1 + SCALARS, true, |graph, operands, numbers, state| {
            let scalars = std::array::from_fn(|index| numbers[1 + index]);
            build(graph, operands, [state[0], state[1] + numbers[0]], scalars)
        })?;
        let numbers = || Ok([&[state.before][..], &scalars].concat());
        self.run(expression, shape, device, &[&state.seed, &state.base], numbers)
    }

    fn run(
        &self,
        expression: &Expression,
        shape: &Shape,
        device: &Device,
        state: &[&Tensor],
        scalars: impl FnOnce() -> Result<Vec<u64>>,
    ) -> Result<Tensor> {
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
        state.iter().for_each(|tensor| inputs.push_source(OperandSource::Tensor(tensor)));
        for scalar in scalars()? {
            inputs.push(&Number::Integer(scalar.into()).into());
        }
        let targets = &mut [OutputTarget::all(&mut fresh)];
        evaluate_named(self.operation, expression, inputs.sources(), inputs.numbers(), targets)?;
        Ok(fresh.into_tensor())
    }

    /// Returns the expression of the operands, of `scalars` numbers, and of a seed and an offset in memory.
    fn expression(
        &self,
        scalars: usize,
        reads_state: bool,
        build: impl for<'g> FnOnce(&'g Graph, [Expr<'g>; OPERANDS], &[Expr<'g>], &[Expr<'g>]) -> Expr<'g>,
    ) -> Result<&'static Expression> {
        static CACHE: [AppendOnlyMap<GeneratorKey, Expression>; DType::ALL.len()] =
            [const { AppendOnlyMap::new() }; DType::ALL.len()];
        let kinds = || self.operands.iter().map(OperandKind::of);
        let same = |key: &GeneratorKey| {
            key.operation == self.operation
                && key.compute == self.compute
                && key.reads_state == reads_state
                && key.operands.iter().copied().eq(kinds())
        };
        CACHE[self.dtype as usize % CACHE.len()].find_or_add(same, || {
            let graph = Graph::new();
            let operands = self.operands.each_ref().map(|operand| match operand {
                TensorOperand::Tensor(tensor) => graph.input(tensor.dtype()),
                TensorOperand::Number(_) => graph.scalar(self.compute),
            });
            let inputs = if reads_state { 2 } else { 0 };
            let state: Vec<Expr<'_>> = (0..inputs).map(|_| graph.zero_dim_input(DType::U64)).collect();
            let numbers: Vec<Expr<'_>> = (0..scalars).map(|_| graph.scalar(DType::U64)).collect();
            let element = build(&graph, operands, &numbers, &state).cast(self.dtype);
            let expression = graph.expression(&[element])?;
            let (operation, compute, operands) = (self.operation, self.compute, kinds().collect());
            Ok((GeneratorKey { operation, compute, reads_state, operands }, expression))
        })
    }
}
