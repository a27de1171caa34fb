//! [`ElementwiseRule`], the gradients of an elementwise operation as one expression.
//!
//! The expression is built once for each operation, kinds of operands and set of operands that require a gradient. It also
//! says which operands and whether the result are read, so nothing else is saved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::dynamic_fused::DynamicFusedFunction;
use crate::error::{Error, Result};
use crate::fuse::{
    Expr, Expression, Graph, Number, Operation, Rule, Signature, dtype_of_numbers, operand_gradients,
};
use crate::tensor::{GroupAxes, OperandKind};
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
    /// The expression as a function of variables. Operands: those of the operation that are read or are numbers, the result if it
    /// is read, and the result's gradient.
    pub(super) function: DynamicFusedFunction,
    typed: Arc<TypedOperation>,
}

/// An operation, its operands' kinds, and the operands that require a gradient.
type RuleKey = (Operation, Vec<OperandKind>, Vec<bool>);

impl ElementwiseRule {
    /// Returns the rule of an operation.
    pub(super) fn get(
        operation: Operation,
        kinds: Vec<OperandKind>,
        wanted: Vec<bool>,
    ) -> Result<Arc<ElementwiseRule>> {
        static RULES: OnceLock<Mutex<HashMap<RuleKey, Arc<ElementwiseRule>>>> = OnceLock::new();
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
        let typed = Arc::new(TypedOperation::new(operation, kinds, wanted)?);
        // The first pass has every input, the second those that the first reads.
        let all = typed.rule([true; 4])?;
        let Some(expression) = &all.expression else { return Ok(all) };
        let mut reads = [false; 4];
        let mut input = 0;
        for (index, reads) in reads.iter_mut().enumerate() {
            let is_tensor = index == 3 || kinds.get(index).is_some_and(|kind| kind.dtype().is_some());
            if is_tensor {
                *reads = expression.reads(input);
                input += 1;
            }
        }
        typed.rule(reads)
    }

    /// Returns whether an operand is a number.
    pub(super) fn is_number(&self, index: usize) -> bool {
        matches!(self.typed.kinds.get(index), Some(OperandKind::Number(_)))
    }

    /// Returns the number as the numbers' dtype holds it: an infinite bound in place of one past its range.
    pub(super) fn number(&self, number: Number) -> Number {
        if number.fits(self.typed.numbers) {
            return number;
        }
        match number {
            Number::Real(x) => Number::Real(x * f64::INFINITY),
            Number::Integer(x) => Number::Real(if x < 0 { f64::NEG_INFINITY } else { f64::INFINITY }),
            other => other,
        }
    }
}

/// An operation on operands of some kinds.
struct TypedOperation {
    operation: Operation,
    kinds: Vec<OperandKind>,
    /// The operands that require a gradient.
    wanted: Vec<bool>,
    signature: Signature,
    /// The dtype of the numbers.
    numbers: DType,
}

impl TypedOperation {
    fn new(operation: Operation, kinds: &[OperandKind], wanted: &[bool]) -> Result<TypedOperation> {
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
        let (kinds, wanted) = (kinds.to_vec(), wanted.to_vec());
        Ok(TypedOperation { operation, kinds, wanted, signature, numbers })
    }

    /// Returns the rule with the operands and the result that are read as inputs.
    fn rule(self: &Arc<Self>, reads: [bool; 4]) -> Result<ElementwiseRule> {
        let graph = Graph::new();
        let input = |dtype, is_number| Ok(if is_number { graph.scalar(dtype) } else { graph.input(dtype) });
        let (outputs, sources) = self.gradients(&graph, reads, input)?;
        let expression = if outputs.is_empty() { None } else { Some(graph.expression(&outputs)?) };
        let reads = if expression.is_some() { reads } else { [false; 4] };
        let is_input = |(kind, is_read): (&OperandKind, &bool)| *is_read || kind.dtype().is_none();
        let operands = self.kinds.iter().zip(&reads).filter(|pair| is_input(*pair)).count();
        let inputs = operands + usize::from(reads[3]) + 1;
        let (typed, name) = (self.clone(), self.operation.name());
        let function =
            DynamicFusedFunction::new(name, inputs, outputs.len(), GroupAxes::Last, move |graph, given| {
                let mut rest = given.iter();
                let missing =
                    || Error::LengthMismatch { operation: name, wanted: inputs, found: given.len() };
                let input =
                    |dtype, _| rest.next().map(|expr: &Expr<'_>| expr.cast(dtype)).ok_or_else(missing);
                typed.gradients(graph, reads, input).map(|(outputs, _)| outputs)
            });
        Ok(ElementwiseRule { expression, reads, sources, function, typed: self.clone() })
    }

    /// Returns the gradients that are neither 0 nor the result's, and the source of each operand's. `input` creates the next
    /// input, given its dtype and whether it is a number.
    fn gradients<'g>(
        &self,
        graph: &'g Graph,
        reads: [bool; 4],
        mut input: impl FnMut(DType, bool) -> Result<Expr<'g>>,
    ) -> Result<(Vec<Expr<'g>>, Vec<GradientSource>)> {
        let dtype_of = |kind: &OperandKind| kind.dtype().map_or(self.numbers, |(dtype, _)| dtype);
        let mut operands = Vec::with_capacity(3);
        for (index, kind) in self.kinds.iter().enumerate() {
            let (dtype, is_number) = (dtype_of(kind), kind.dtype().is_none());
            operands.push(match reads[index] || is_number {
                true => input(dtype, is_number)?,
                // Nothing reads this literal.
                false => graph.number(0, dtype),
            });
        }
        let signature = &self.signature;
        let result =
            if reads[3] { input(signature.result, false)? } else { graph.number(0, signature.result) };
        let incoming = input(signature.result, false)?;
        let mut nodes = [operands[0].cast(signature.operands[0]); 3];
        for (index, operand) in operands.iter().enumerate() {
            nodes[index] = operand.cast(signature.operands[index]);
        }
        let mut outputs: Vec<Expr<'g>> = Vec::new();
        let mut sources = Vec::with_capacity(self.kinds.len());
        let gradients = operand_gradients(self.operation, nodes, result, incoming);
        for ((gradient, &wanted), kind) in gradients.iter().zip(&self.wanted).zip(&self.kinds) {
            sources.push(match gradient {
                // An operand on which the result depends by jumps alone has a gradient of zeros.
                None if wanted => {
                    outputs.push(graph.number(0, dtype_of(kind)));
                    GradientSource::Output(outputs.len() - 1)
                }
                Some(gradient) if wanted => {
                    let gradient = gradient.cast(dtype_of(kind));
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
        Ok((outputs, sources))
    }
}
