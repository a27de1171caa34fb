//! [`CachedOperation`], an operation as an expression of one node, which is built once.
//!
//! Invariants: finding the expression of an operation takes no lock and no allocation, since every small
//! operation does it. Keys are finite (operations and dtypes), so their expressions stay.

use std::sync::OnceLock;

use super::evaluate::{evaluate_named, evaluate_one};
use super::kernel::OutputTarget;
use super::operand::{Inputs, TensorOperand};
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Expr, Expression, Graph, Number, Operation, Rule, by_value, dtype_of_numbers};
use crate::types::{DType, NumberKind, common_dtype};

/// The kind of an operand, without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OperandKind {
    Tensor(DType),
    /// A tensor without dimensions, which takes part by kind.
    ZeroDim(DType),
    Number(NumberKind),
}

impl OperandKind {
    #[inline]
    pub(super) fn of(operand: &TensorOperand<'_>) -> OperandKind {
        match operand {
            TensorOperand::Tensor(tensor) => OperandKind::of_tensor(tensor),
            TensorOperand::Number(number) => OperandKind::Number(number.kind()),
        }
    }

    #[inline]
    pub(crate) fn of_tensor(tensor: &Tensor) -> OperandKind {
        OperandKind::of_rank(tensor.dtype(), tensor.rank())
    }

    /// A tensor of so many dimensions.
    #[inline]
    pub(super) fn of_rank(dtype: DType, rank: usize) -> OperandKind {
        if rank == 0 { OperandKind::ZeroDim(dtype) } else { OperandKind::Tensor(dtype) }
    }

    /// The dtype of a tensor, with whether it has no dimensions.
    pub(crate) fn dtype(self) -> Option<(DType, bool)> {
        match self {
            OperandKind::Tensor(dtype) => Some((dtype, false)),
            OperandKind::ZeroDim(dtype) => Some((dtype, true)),
            OperandKind::Number(_) => None,
        }
    }

    /// From 1 to 63.
    #[inline]
    const fn code(self) -> u64 {
        match self {
            OperandKind::Tensor(dtype) => 1 + dtype as u64,
            OperandKind::ZeroDim(dtype) => 32 + dtype as u64,
            OperandKind::Number(kind) => 28 + kind as u64,
        }
    }
}

/// An operation on operands of some kinds, or a cast.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedOperation {
    /// None is a cast.
    operation: Option<Operation>,
    operands: [OperandKind; 3],
    count: usize,
    /// The dtype to cast the result to, if any.
    stored: Option<DType>,
}

impl CachedOperation {
    /// An operation on a first operand and others.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] where it has another number of operands.
    pub(super) fn of(
        operation: Operation,
        first: OperandKind,
        others: &[TensorOperand<'_>],
        stored: Option<DType>,
    ) -> Result<CachedOperation> {
        check_arity(operation, others.len() + 1)?;
        Ok(CachedOperation::of_few(operation, first, others, stored))
    }

    /// As [`of`](Self::of), for at most three operands: their number is looked at when the expression is made.
    #[inline]
    pub(super) fn of_few(
        operation: Operation,
        first: OperandKind,
        others: &[TensorOperand<'_>],
        stored: Option<DType>,
    ) -> CachedOperation {
        let mut operands = [first; 3];
        for (at, operand) in others.iter().take(2).enumerate() {
            operands[1 + at] = OperandKind::of(operand);
        }
        let mut cached =
            CachedOperation { operation: Some(operation), operands, count: 1 + others.len(), stored };
        cached.normalize();
        cached
    }

    /// Tensors without dimensions are tensors like others where no other dtype is beside them, so that there is one
    /// expression for both.
    #[inline]
    fn normalize(&mut self) {
        let operands = &mut self.operands;
        if !operands.iter().any(|kind| matches!(kind, OperandKind::ZeroDim(_))) {
            return;
        }
        let mut dtypes = operands.iter().filter_map(|kind| kind.dtype());
        let first = dtypes.next();
        let is_alike = dtypes.all(|(dtype, _)| first.is_some_and(|(first, _)| first == dtype));
        if is_alike || operands.iter().all(|kind| !matches!(kind, OperandKind::Tensor(_))) {
            for kind in operands {
                if let OperandKind::ZeroDim(dtype) = *kind {
                    *kind = OperandKind::Tensor(dtype);
                }
            }
        }
    }

    /// The operation that gives on numbers which the tensors' dtype holds what this one gives on the numbers as they are,
    /// and its operands, in `space` where they are others. The caller gives the first operand's kind, and its number if it is
    /// one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number on which the result depends, and which the dtype does not hold.
    #[inline]
    pub(super) fn by_value<'a, 'b>(
        operation: Operation,
        (first, number): (OperandKind, Option<Number>),
        others: &'b [TensorOperand<'a>],
        space: &'b mut [TensorOperand<'a>; 2],
    ) -> Result<(Operation, &'b [TensorOperand<'a>])> {
        // Most operations: tensors of one dtype, and numbers of its kind that it holds.
        let dtype = others.iter().find_map(TensorOperand::tensor).map(Tensor::dtype);
        let dtype = first.dtype().map(|(dtype, _)| dtype).or(dtype);
        let is_plain =
            |number: Number, dtype: DType| number.kind() as u8 <= dtype.kind() as u8 && number.fits(dtype);
        let plain = |operand: &TensorOperand<'_>| match (operand, dtype) {
            (TensorOperand::Tensor(tensor), Some(dtype)) => tensor.dtype() == dtype,
            (TensorOperand::Number(number), Some(dtype)) => is_plain(*number, dtype),
            _ => false,
        };
        let first_is_plain = match (number, dtype) {
            (Some(number), Some(dtype)) => is_plain(number, dtype),
            (Some(_), None) => false,
            (None, _) => true,
        };
        let has_numbers = number.is_some() || others.iter().any(|operand| operand.tensor().is_none());
        if !has_numbers || first_is_plain && others.iter().all(plain) {
            return Ok((operation, others));
        }
        by_value_of_any(operation, (first, number), others, space)
    }

    /// A tensor in another dtype or its own, or elements that are all one number.
    pub(super) fn cast(from: OperandKind, to: DType) -> CachedOperation {
        CachedOperation { operation: None, operands: [from; 3], count: 1, stored: Some(to) }
    }

    /// The operation's name in errors.
    fn name(&self) -> &'static str {
        self.operation.map_or("cast", Operation::name)
    }

    /// A number that is no other cached's: six bits for each operand and for the dtype, 0 where there is none.
    #[inline]
    fn code(&self) -> u64 {
        let code = |operand: usize| match operand < self.count {
            true => self.operands[operand].code(),
            false => 0,
        };
        let operation = self.operation.map_or(0, |operation| 1 + operation as u64);
        let stored = self.stored.map_or(0, |dtype| 1 + dtype as u64);
        [code(0), code(1), code(2), stored].iter().fold(operation, |word, code| word << 6 | code)
    }

    #[inline]
    fn expression(&self) -> Result<&'static Expression> {
        static CACHE: [AppendOnlyMap<u64, Expression>; 1024] = [const { AppendOnlyMap::new() }; 1024];
        let code = self.code();
        let slot = (code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % CACHE.len();
        CACHE[slot].find_or_add(|known| *known == code, || Ok((code, self.make()?)))
    }

    fn make(&self) -> Result<Expression> {
        if let Some(operation) = self.operation {
            check_arity(operation, self.count)?;
        }
        let kinds = &self.operands[..self.count];
        // The condition of a choice says nothing about its values.
        let skipped = usize::from(self.operation.map(Operation::rule) == Some(Rule::Choice));
        let graph = Graph::new();
        let mut operands: Vec<Expr<'_>> = Vec::with_capacity(self.count);
        for (at, kind) in kinds.iter().enumerate() {
            operands.push(match *kind {
                OperandKind::Tensor(dtype) => graph.input(dtype),
                OperandKind::ZeroDim(dtype) => graph.zero_dim_input(dtype),
                OperandKind::Number(_) => graph.scalar(match (self.operation, self.stored) {
                    // All elements are the number itself; the 8-bit floats have no scalars.
                    (None, Some(dtype)) if dtype.is_storage_only() => DType::F32,
                    (None, Some(dtype)) => dtype,
                    (Some(operation), _) if at < skipped || operation.rule() == Rule::Logic => DType::Bool,
                    (Some(operation), _) => dtype_among(operation, &kinds[skipped..])?,
                    (None, None) => return Err(Error::invalid(self.name(), "no dtype", "one")),
                }),
            });
        }
        let (first, others) = match operands.split_first() {
            Some((first, others)) => (*first, others),
            None => return Err(Error::invalid(self.name(), "no operands", "at least one")),
        };
        let result = match self.operation {
            Some(operation) => first.operation(operation, others),
            None => first,
        };
        let Some(stored) = self.stored else { return graph.expression(&[result]) };
        if self.operation.is_some() && result.dtype().kind() as u8 > stored.kind() as u8 {
            // The operation's own error, where it has one, comes first.
            graph.expression(&[result])?;
            return Err(Error::DTypeMismatch {
                operation: self.name(),
                wanted: format!("an output that can hold {}", result.dtype()),
                found: format!("one of {stored}; cast it first, or make a new tensor"),
            });
        }
        graph.expression(&[result.cast(stored)])
    }

    /// The result in memory of its own.
    ///
    /// # Errors
    ///
    /// As [`evaluate`](super::evaluate::evaluate), with the operation's name.
    pub(super) fn run(&self, operands: &[TensorOperand<'_>]) -> Result<Tensor> {
        match operands {
            [first, others @ ..] => self.run_with(first, others),
            [] => Err(Error::invalid(self.name(), "no operands", "at least one")),
        }
    }

    /// As [`run`](Self::run), with the first operand apart.
    #[inline]
    pub(super) fn run_with(&self, first: &TensorOperand<'_>, others: &[TensorOperand<'_>]) -> Result<Tensor> {
        let mut inputs = Inputs::<3>::default();
        inputs.push(first);
        others.iter().for_each(|operand| inputs.push(operand));
        evaluate_one(self.name(), self.expression()?, inputs.sources(), inputs.numbers())
    }

    /// The result in memory that is there.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(super) fn run_into(&self, inputs: &Inputs<'_, 3>, target: OutputTarget<'_>) -> Result<()> {
        let targets = &mut [target];
        evaluate_named(self.name(), self.expression()?, inputs.sources(), inputs.numbers(), targets)
    }
}

/// The dtype of numbers among operands.
fn dtype_among(operation: Operation, values: &[OperandKind]) -> Result<DType> {
    let tensors: Vec<(DType, bool)> = values.iter().filter_map(|kind| kind.dtype()).collect();
    let common = if tensors.is_empty() { None } else { Some(operation.common(&tensors)?) };
    let kinds = values.iter().filter_map(|kind| match kind {
        OperandKind::Number(number) => Some(*number),
        _ => None,
    });
    dtype_of_numbers(operation, kinds, common)
}

#[cold]
fn by_value_of_any<'a, 'b>(
    operation: Operation,
    (first, number): (OperandKind, Option<Number>),
    others: &'b [TensorOperand<'a>],
    space: &'b mut [TensorOperand<'a>; 2],
) -> Result<(Operation, &'b [TensorOperand<'a>])> {
    check_arity(operation, others.len() + 1)?;
    let skipped = usize::from(operation.rule() == Rule::Choice);
    let kinds = std::iter::once(first).chain(others.iter().map(OperandKind::of));
    let tensors = kinds.skip(skipped).filter_map(OperandKind::dtype);
    let common = match operation.rule() {
        // An operation that has no common dtype says so when it is made.
        Rule::Comparison => operation.common(&tensors.collect::<Vec<_>>()).ok(),
        _ => common_dtype(tensors)?,
    };
    let number_of = |operand: &TensorOperand<'a>| match *operand {
        TensorOperand::Number(number) => Some(number),
        TensorOperand::Tensor(_) => None,
    };
    let mut numbers: Vec<Option<Number>> =
        std::iter::once(number).chain(others.iter().map(number_of)).collect();
    let operation = by_value(operation, &mut numbers, common)?;
    for ((slot, operand), number) in space.iter_mut().zip(others).zip(&numbers[1..]) {
        *slot = number.map_or(*operand, TensorOperand::Number);
    }
    Ok((operation, &space[..others.len()]))
}

fn check_arity(operation: Operation, found: usize) -> Result<()> {
    let wanted = operation.arity();
    match wanted == found {
        true => Ok(()),
        false => Err(Error::ArgumentCount { kernel: operation.name().to_owned(), wanted, found }),
    }
}

/// A list that only grows, and that all threads read without a lock.
pub(super) struct AppendOnlyMap<K, V>(OnceLock<Box<MapEntry<K, V>>>);

struct MapEntry<K, V> {
    key: K,
    value: V,
    next: AppendOnlyMap<K, V>,
}

impl<K, V> AppendOnlyMap<K, V> {
    pub(super) const fn new() -> AppendOnlyMap<K, V> {
        AppendOnlyMap(OnceLock::new())
    }

    /// The value whose key is the `same`, made where there is none; where two threads make it, the first one's.
    ///
    /// # Errors
    ///
    /// The errors of `make`.
    #[inline]
    pub(super) fn find_or_add(
        &self,
        same: impl Fn(&K) -> bool,
        make: impl FnOnce() -> Result<(K, V)>,
    ) -> Result<&V> {
        let mut chain = self;
        while let Some(link) = chain.0.get() {
            if same(&link.key) {
                return Ok(&link.value);
            }
            chain = &link.next;
        }
        chain.add(same, make)
    }

    /// Makes an entry and adds it to the end.
    #[cold]
    fn add(&self, same: impl Fn(&K) -> bool, make: impl FnOnce() -> Result<(K, V)>) -> Result<&V> {
        let (key, value) = make()?;
        Ok(self.add_entry(&same, Box::new(MapEntry { key, value, next: AppendOnlyMap::new() })))
    }

    /// Adds an entry to the end, unless there is one by now. Not generic over the functions, so that it compiles once for a map.
    #[inline(never)]
    fn add_entry(&self, same: &dyn Fn(&K) -> bool, made: Box<MapEntry<K, V>>) -> &V {
        let mut chain = self;
        let mut made = Some(made);
        loop {
            match chain.0.get() {
                Some(link) if same(&link.key) => return &link.value,
                Some(link) => chain = &link.next,
                // It comes back where another thread was faster.
                None => made = made.and_then(|made| chain.0.set(made).err()),
            }
        }
    }
}
