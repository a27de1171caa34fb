//! [`ElementwiseRule`], the gradients of an elementwise operation as one expression.
//!
//! The expression is built once for each operation, kinds of operands and set of operands that require a gradient. It also
//! says which operands and whether the result are read, so nothing else is saved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::Result;
use crate::fuse::{Expr, Expression, Graph, Number, Operation, Rule, dtype_of_numbers, operand_gradients};
use crate::tensor::OperandKind;
use crate::types::DType;

/// The source of an operand's gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GradientSource {
    Zero,
    /// The result's gradient itself.
    Incoming,
    /// An output of the expression.
    Output(usize),
}

/// The gradients of an operation's operands.
pub(super) struct ElementwiseRule {
    /// Inputs: the operands and the result that are read, then the result's gradient. Scalars: all numbers.
    pub(super) expression: Option<Expression>,
    /// The operands that the expression reads, and whether it reads the result.
    pub(super) reads: [bool; 4],
    pub(super) sources: Vec<GradientSource>,
    /// The dtype of the numbers.
    numbers: DType,
}

/// An operation, its operands' kinds, and the operands that require a gradient.
type Key = (Operation, Vec<OperandKind>, Vec<bool>);

impl ElementwiseRule {
    /// Returns the rule of an operation.
    pub(super) fn get(
        operation: Operation,
        kinds: Vec<OperandKind>,
        wanted: Vec<bool>,
    ) -> Result<Arc<ElementwiseRule>> {
        static RULES: OnceLock<Mutex<HashMap<Key, Arc<ElementwiseRule>>>> = OnceLock::new();
        let mut rules = RULES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let key = (operation, kinds, wanted);
        if let Some(rule) = rules.get(&key) {
            return Ok(rule.clone());
        }
        let rule = Arc::new(ElementwiseRule::build(operation, &key.1, &key.2)?);
        rules.insert(key, rule.clone());
        Ok(rule)
    }

    fn build(operation: Operation, kinds: &[OperandKind], wanted: &[bool]) -> Result<ElementwiseRule> {
        // The first pass has every input, the second those that the first reads.
        let all = ElementwiseRule::with_inputs(operation, kinds, wanted, [true; 4])?;
        let Some(expression) = &all.expression else { return Ok(all) };
        let mut reads = [false; 4];
        let mut input = 0;
        for (place, reads) in reads.iter_mut().enumerate() {
            let is_tensor = place == 3 || kinds.get(place).is_some_and(|kind| kind.dtype().is_some());
            if is_tensor {
                *reads = expression.reads(input);
                input += 1;
            }
        }
        ElementwiseRule::with_inputs(operation, kinds, wanted, reads)
    }

    fn with_inputs(
        operation: Operation,
        kinds: &[OperandKind],
        wanted: &[bool],
        reads: [bool; 4],
    ) -> Result<ElementwiseRule> {
        let conditions = usize::from(operation.rule() == Rule::Choice);
        let arrays: Vec<(DType, bool)> =
            kinds.iter().skip(conditions).filter_map(|kind| kind.dtype()).collect();
        let common = if arrays.is_empty() { None } else { Some(operation.common(&arrays)?) };
        let number_kinds = kinds.iter().skip(conditions).filter_map(|kind| match kind {
            OperandKind::Number(kind) => Some(*kind),
            _ => None,
        });
        let numbers = dtype_of_numbers(operation, number_kinds, common)?;
        let dtypes: Vec<(DType, bool)> =
            kinds.iter().map(|kind| kind.dtype().unwrap_or((numbers, true))).collect();
        let signature = operation.signature_of(&dtypes)?;

        let graph = Graph::new();
        let mut operands = Vec::with_capacity(3);
        for (place, (kind, &(dtype, _))) in kinds.iter().zip(&dtypes).enumerate() {
            operands.push(match kind.dtype() {
                None => graph.scalar(dtype),
                Some(_) if reads[place] => graph.input(dtype),
                // Nothing reads this literal.
                Some(_) => graph.number(0, dtype),
            });
        }
        let result = if reads[3] { graph.input(signature.result) } else { graph.number(0, signature.result) };
        let incoming = graph.input(signature.result);
        let mut nodes = [operands[0].cast(signature.operands[0]); 3];
        for (place, operand) in operands.iter().enumerate() {
            nodes[place] = operand.cast(signature.operands[place]);
        }
        let gradients = operand_gradients(operation, nodes, result, incoming);
        let mut outputs: Vec<Expr<'_>> = Vec::new();
        let mut sources = Vec::with_capacity(kinds.len());
        for ((gradient, &wanted), &(dtype, _)) in gradients.iter().zip(wanted).zip(&dtypes) {
            sources.push(match gradient {
                Some(gradient) if wanted => {
                    let gradient = gradient.cast(dtype);
                    if gradient.is_node_of(incoming) {
                        GradientSource::Incoming
                    } else {
                        outputs.push(gradient);
                        GradientSource::Output(outputs.len() - 1)
                    }
                }
                _ => GradientSource::Zero,
            });
        }
        let expression = if outputs.is_empty() { None } else { Some(graph.expression(&outputs)?) };
        let reads = if expression.is_some() { reads } else { [false; 4] };
        Ok(ElementwiseRule { expression, reads, sources, numbers })
    }

    /// Returns the number as the numbers' dtype holds it: an infinite bound in place of one past its range.
    pub(super) fn number(&self, number: Number) -> Number {
        if number.fits(self.numbers) {
            return number;
        }
        match number {
            Number::Real(x) => Number::Real(x * f64::INFINITY),
            Number::Integer(x) => Number::Real(if x < 0 { f64::NEG_INFINITY } else { f64::INFINITY }),
            other => other,
        }
    }
}
