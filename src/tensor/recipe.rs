//! [`Recipe`], a single operation as an expression of one node, made once and kept.
//!
//! What must stay true: finding the expression of an operation takes no lock and no allocation, since every small
//! operation does it. Recipes are finite (operations and dtypes), so their expressions stay.

use std::sync::OnceLock;

use super::evaluate::{evaluate_named, evaluate_one};
use super::kernel::Target;
use super::operand::{Inputs, Operand};
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Expr, Expression, Graph, Operation, Rule, dtype_of_number};
use crate::types::{DType, NumberKind};

/// What an operand is, without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tensor(DType),
    Number(NumberKind),
}

impl Kind {
    #[inline]
    pub(super) fn of(operand: &Operand<'_>) -> Kind {
        match operand {
            Operand::Tensor(tensor) => Kind::Tensor(tensor.dtype()),
            Operand::Number(number) => Kind::Number(number.kind()),
        }
    }

    /// The dtype, of a tensor.
    pub(super) fn dtype(self) -> Option<DType> {
        match self {
            Kind::Tensor(dtype) => Some(dtype),
            Kind::Number(_) => None,
        }
    }

    /// From 1 to 31.
    #[inline]
    const fn code(self) -> u64 {
        match self {
            Kind::Tensor(dtype) => 1 + dtype as u64,
            Kind::Number(kind) => 28 + kind as u64,
        }
    }
}

/// An operation on operands of some kinds, or a cast.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipe {
    /// None is a cast.
    operation: Option<Operation>,
    operands: [Kind; 3],
    count: usize,
    /// What the result is cast to, where it is not kept as it comes.
    stored: Option<DType>,
}

impl Recipe {
    /// An operation on a first operand and others.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] where it has another number of operands.
    pub(super) fn of(
        operation: Operation,
        first: Kind,
        others: &[Operand<'_>],
        stored: Option<DType>,
    ) -> Result<Recipe> {
        check_arity(operation, others.len() + 1)?;
        Ok(Recipe::of_few(operation, first, others, stored))
    }

    /// As [`of`](Self::of), for at most three operands: their number is looked at when the expression is made.
    #[inline]
    pub(super) fn of_few(
        operation: Operation,
        first: Kind,
        others: &[Operand<'_>],
        stored: Option<DType>,
    ) -> Recipe {
        let mut operands = [first; 3];
        for (at, operand) in others.iter().take(2).enumerate() {
            operands[1 + at] = Kind::of(operand);
        }
        Recipe { operation: Some(operation), operands, count: 1 + others.len(), stored }
    }

    /// A tensor in another dtype or its own, or elements that are all one number.
    pub(super) fn cast(from: Kind, to: DType) -> Recipe {
        Recipe { operation: None, operands: [from; 3], count: 1, stored: Some(to) }
    }

    /// The operation's name in errors.
    fn name(&self) -> &'static str {
        self.operation.map_or("cast", Operation::name)
    }

    /// A number that is no other recipe's: five bits for each operand and for the dtype, 0 where there is none.
    #[inline]
    fn code(&self) -> u64 {
        let code = |operand: usize| match operand < self.count {
            true => self.operands[operand].code(),
            false => 0,
        };
        let operation = self.operation.map_or(0, |operation| 1 + operation as u64);
        let stored = self.stored.map_or(0, |dtype| 1 + dtype as u64);
        [code(0), code(1), code(2), stored].iter().fold(operation, |word, code| word << 5 | code)
    }

    #[inline]
    fn expression(&self) -> Result<&'static Expression> {
        static KEPT: [Chain<u64, Expression>; 1024] = [const { Chain::new() }; 1024];
        let code = self.code();
        let place = (code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % KEPT.len();
        KEPT[place].find_or_add(|known| *known == code, || Ok((code, self.make()?)))
    }

    fn make(&self) -> Result<Expression> {
        if let Some(operation) = self.operation {
            check_arity(operation, self.count)?;
        }
        let kinds = &self.operands[..self.count];
        // The condition of a choice says nothing about its values.
        let values =
            if self.operation.map(Operation::rule) == Some(Rule::Choice) { &kinds[1..] } else { kinds };
        let graph = Graph::new();
        let mut operands: Vec<Expr<'_>> = Vec::with_capacity(self.count);
        for kind in kinds {
            operands.push(match *kind {
                Kind::Tensor(dtype) => graph.input(dtype),
                Kind::Number(number) => graph.scalar(match (self.operation, self.stored) {
                    // All elements are the number itself; the 8-bit floats have no scalars.
                    (None, Some(dtype)) if dtype.is_storage_only() => DType::F32,
                    (None, Some(dtype)) => dtype,
                    _ => dtype_of_number(number, values.iter().filter_map(|kind| kind.dtype()))?,
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
    pub(super) fn run(&self, operands: &[Operand<'_>]) -> Result<Tensor> {
        let mut inputs = Inputs::<3>::default();
        operands.iter().for_each(|operand| inputs.push(operand));
        evaluate_one(self.name(), self.expression()?, inputs.sources(), inputs.numbers())
    }

    /// The result in memory that is there.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(super) fn run_into(&self, inputs: &Inputs<'_, 3>, target: Target<'_>) -> Result<()> {
        let targets = &mut [target];
        evaluate_named(self.name(), self.expression()?, inputs.sources(), inputs.numbers(), targets)
    }
}

fn check_arity(operation: Operation, found: usize) -> Result<()> {
    let wanted = operation.arity();
    match wanted == found {
        true => Ok(()),
        false => Err(Error::ArgumentCount { kernel: operation.name().to_owned(), wanted, found }),
    }
}

/// A list that only grows, and that all threads read without a lock.
pub(super) struct Chain<K, V>(OnceLock<Box<Link<K, V>>>);

struct Link<K, V> {
    key: K,
    value: V,
    next: Chain<K, V>,
}

impl<K, V> Chain<K, V> {
    pub(super) const fn new() -> Chain<K, V> {
        Chain(OnceLock::new())
    }

    /// The value whose key is the `same`, made where there is none; where two threads make it, the first one's.
    ///
    /// # Errors
    ///
    /// Those of `make`.
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

    /// Adds to the end.
    #[cold]
    fn add(&self, same: impl Fn(&K) -> bool, make: impl FnOnce() -> Result<(K, V)>) -> Result<&V> {
        let mut chain = self;
        let (key, value) = make()?;
        let mut made = Some(Box::new(Link { key, value, next: Chain::new() }));
        loop {
            match chain.0.get() {
                Some(link) if same(&link.key) => return Ok(&link.value),
                Some(link) => chain = &link.next,
                // It comes back where another thread was faster.
                None => made = made.and_then(|made| chain.0.set(made).err()),
            }
        }
    }
}
