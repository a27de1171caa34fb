//! The elementwise operations of variables, by the list of operations.

use std::sync::Arc;

use super::operand::{HeldOperand, RecordedOperand, VariableOperand};
use super::recordable::{RecordableRule, RecordedGradients};
use super::rule::{ElementwiseRule, GradientSource};
use super::tape::{Gradients, Node};
use super::value::Saved;
use super::variable::{Variable, is_differentiable};
use crate::error::Result;
use crate::fuse::{Number, Operation, with_derivatives};
use crate::tensor::{OperandKind, Tensor, TensorOperand, evaluate};

/// Runs an elementwise operation given as a value, and records it if an operand requires a gradient. The operands are variables,
/// tensors and numbers in any order.
///
/// ```
/// use selvedge::fuse::Operation;
/// use selvedge::nn::{Variable, apply};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([1.0f64, 3.0], &Device::cpu())?)?;
/// let power = apply(Operation::Pow, &[2.0.into(), (&x).into()])?;
/// assert_eq!(power.tensor().to_vec::<f64>()?, [2.0, 8.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::ArgumentCount`](crate::Error::ArgumentCount) for another number of operands, and as the operation's method.
pub fn apply(operation: Operation, operands: &[VariableOperand<'_>]) -> Result<Variable> {
    let held: Vec<HeldOperand> = operands.iter().map(HeldOperand::of).collect();
    let views: Vec<TensorOperand<'_>> = held.iter().map(HeldOperand::operand).collect();
    let result = crate::tensor::apply(operation, &views)?;
    record(operation, operands, held, result)
}

/// Records the result of an operation that was computed from these operands, by [`apply`] or beside another result.
///
/// # Errors
///
/// Errors of the rule.
pub(super) fn record(
    operation: Operation,
    operands: &[VariableOperand<'_>],
    held: Vec<HeldOperand>,
    result: Tensor,
) -> Result<Variable> {
    let parents: Vec<_> = operands.iter().map(VariableOperand::tracked).collect();
    let is_recorded = operation.is_differentiable() && is_differentiable(result.dtype());
    if !parents.iter().any(Option::is_some) {
        return Ok(Variable::new(result).constant_by(operands.iter().find_map(VariableOperand::stopped_by)));
    }
    if !is_recorded {
        return Ok(Variable::new(result).constant_by(Some(operation.name())));
    }

    let kinds = held.iter().map(|operand| match operand {
        HeldOperand::Tensor(tensor) => OperandKind::of_tensor(tensor),
        HeldOperand::Number(number) => OperandKind::Number(number.kind()),
    });
    let wanted = parents.iter().map(Option::is_some).collect();
    let rule = ElementwiseRule::get(operation, kinds.collect(), wanted)?;
    let numbers: Vec<Number> = held
        .iter()
        .filter_map(|operand| match operand {
            HeldOperand::Number(number) => Some(rule.number(*number)),
            HeldOperand::Tensor(_) => None,
        })
        .collect();
    let mut saved: Vec<Saved> = Vec::with_capacity(4);
    for (at, (operand, held)) in operands.iter().zip(held).enumerate() {
        match (operand, held) {
            (VariableOperand::Variable(variable), _) if rule.reads[at] => saved.push(variable.save()),
            (_, HeldOperand::Tensor(tensor)) if rule.reads[at] => saved.push(Variable::new(tensor).save()),
            _ => {}
        }
    }
    Ok(Variable::new(result).recorded_with_second_derivatives(operation.name(), parents, |result| {
        if rule.reads[3] {
            saved.push(result.save());
        }
        Box::new(SavedOperation { operation: operation.name(), rule, saved, numbers })
    }))
}

/// The rule of an operation, with the values that it reads.
struct SavedOperation {
    operation: &'static str,
    rule: Arc<ElementwiseRule>,
    /// The operands that are read, and the result if it is.
    saved: Vec<Saved>,
    numbers: Vec<Number>,
}

impl SavedOperation {
    /// Returns the gradient of each operand, given the result's and the outputs of the rule's expression.
    fn of_operands<T: Clone>(&self, gradient: &T, found: &[T]) -> Vec<Option<T>> {
        let gradient_of = |source: &GradientSource| match *source {
            GradientSource::Zero => None,
            GradientSource::Incoming => Some(gradient.clone()),
            GradientSource::Output(output) => found.get(output).cloned(),
        };
        self.rule.sources.iter().map(gradient_of).collect()
    }
}

impl RecordableRule for SavedOperation {
    fn gradients(&self, gradient: &Tensor) -> Result<Gradients> {
        let mut found = Vec::new();
        if let Some(expression) = &self.rule.expression {
            let values = self.saved.iter().map(|saved| saved.tensor(self.operation));
            let values = values.collect::<Result<Vec<Tensor>>>()?;
            let inputs: Vec<&Tensor> = values.iter().chain([gradient]).collect();
            found = evaluate(expression, &inputs, &self.numbers)?;
        }
        Ok(self.of_operands(gradient, &found))
    }

    fn recorded_gradients(&self, node: &Arc<Node>, gradient: &Variable) -> Result<RecordedGradients> {
        if self.rule.expression.is_none() {
            return Ok(self.of_operands(gradient, &[]));
        }
        let (mut saved, mut numbers) = (self.saved.iter(), self.numbers.iter());
        let mut operands: Vec<RecordedOperand> = Vec::with_capacity(5);
        for (index, of_operand) in node.operands().iter().enumerate() {
            if self.rule.is_number(index) {
                operands.extend(numbers.next().map(|number| RecordedOperand::Number(*number)));
            } else if self.rule.reads[index] {
                let operand = saved.next().map(|saved| saved.variable(self.operation, of_operand.clone()));
                operands.extend(operand.transpose()?.map(RecordedOperand::Variable));
            }
        }
        if let Some(result) = saved.next() {
            let result = result.variable(self.operation, Some(node.clone()))?;
            operands.push(RecordedOperand::Variable(result));
        }
        let operands: Vec<VariableOperand<'_>> =
            operands.iter().map(RecordedOperand::operand).chain([gradient.into()]).collect();
        Ok(self.of_operands(gradient, &self.rule.function.run(&operands)?))
    }
}

/// The end of the documentation of an operation, by the name of its derivative.
macro_rules! note {
    (none) => {
        " No gradient passes through it: the result is a constant."
    };
    ($derivative:ident) => {
        ""
    };
}

macro_rules! methods {
    ($($variant:ident $name:ident $arity:tt $derivative:ident $doc:literal;)*) => {
        /// The elementwise operations, with the operands and results of [`Tensor`]'s. Operands are variables, tensors or
        /// numbers. Gradients have PyTorch's values at kinks, and broadcast operands get sums.
        ///
        /// # Errors
        ///
        /// As the same operation of [`Tensor`].
        impl Variable {
            $(methods!(@one $variant $name $arity $derivative $doc);)*
        }
    };
    (@one $variant:ident $name:ident 1 $derivative:ident $doc:literal) => {
        #[doc = concat!($doc, note!($derivative))]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name(&self) -> Result<Variable> {
            apply(Operation::$variant, &[self.into()])
        }
    };
    (@one $variant:ident $name:ident 2 $derivative:ident $doc:literal) => {
        #[doc = concat!($doc, note!($derivative))]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name<'a>(&self, y: impl Into<VariableOperand<'a>>) -> Result<Variable> {
            apply(Operation::$variant, &[self.into(), y.into()])
        }
    };
    (@one $variant:ident $name:ident 3 $derivative:ident $doc:literal) => {
        #[doc = concat!($doc, note!($derivative))]
        #[allow(clippy::missing_errors_doc)]
        pub fn $name<'a, 'b>(
            &self,
            y: impl Into<VariableOperand<'a>>,
            z: impl Into<VariableOperand<'b>>,
        ) -> Result<Variable> {
            apply(Operation::$variant, &[self.into(), y.into(), z.into()])
        }
    };
}

with_derivatives!(methods);

impl Variable {
    /// Runs an operation given as a value.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`](crate::Error::ArgumentCount) for another number of operands, and as the operation's own
    /// method.
    pub fn operation(&self, operation: Operation, others: &[VariableOperand<'_>]) -> Result<Variable> {
        let mut operands: Vec<VariableOperand<'_>> = vec![self.into()];
        operands.extend_from_slice(others);
        apply(operation, &operands)
    }
}
