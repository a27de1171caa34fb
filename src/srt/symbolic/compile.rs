//! Fused expressions of symbolic trees.
//!
//! A tree becomes the nodes of a [`Graph`] in f64, so a batch is one kernel without an interpreter, any depth is allowed, and
//! the CPU gives the bits of every device. Exact leaves are rounded once; equal numbers are one kernel parameter.

use std::collections::HashMap;

use super::gamma::gamma;
use super::power::power;
use super::{Binary, Node, SymExpr, Unary};
use crate::error::{Error, Result};
use crate::fuse::{Expr, Graph};
use crate::tensor::{Device, DynamicFused, Tensor, TensorOperand};
use crate::types::DType;

const OPERATION: &str = "a symbolic expression";

/// The most inputs of a fused expression, whose numbers count too.
const MAX_SLOTS: usize = 63;

/// A [`SymExpr`] that is compiled for batches.
#[derive(Debug)]
pub struct CompiledExpr {
    slots: usize,
    fused: DynamicFused,
}

impl SymExpr {
    /// Compiles the tree.
    ///
    /// ```
    /// use selvedge::srt::SymExpr;
    /// use selvedge::tensor::{Device, Tensor};
    /// let [x, y] = [0, 1].map(SymExpr::input);
    /// let f = (x / y).ln().compile()?;
    /// let rows = Tensor::new([[1.0f64, 1.0], [-1.0, 1.0], [0.0, 2.0]], &Device::best())?;
    /// let logarithms = f.run_rows(&rows)?.to_vec::<f64>()?;
    /// assert!(logarithms[0] == 0.0 && logarithms[1].is_nan() && logarithms[2] == f64::NEG_INFINITY);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an input slot above 62. A tree of more than 64 inputs and different numbers together, or
    /// of more than 20000 instructions, runs as several kernels.
    pub fn compile(&self) -> Result<CompiledExpr> {
        let slots = self.slots();
        if slots > MAX_SLOTS {
            let wanted = format!("slots from 0 to {}", MAX_SLOTS - 1);
            return Err(Error::invalid(OPERATION, format!("input slot {}", slots - 1), wanted));
        }
        let nodes = self.nodes.clone();
        // A run without inputs still needs a tensor, which gives it a shape.
        let fused = DynamicFused::new(slots.max(1), 1, move |graph, inputs| lowered(&nodes, graph, inputs));
        Ok(CompiledExpr { slots, fused })
    }
}

impl CompiledExpr {
    /// Returns the number of inputs.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Evaluates the expression for each row of a matrix of f64, whose columns are the input slots.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for another dtype, and [`Error::InvalidArgument`] for a tensor that is no matrix with as many
    /// columns as [`slots`](Self::slots).
    pub fn run_rows(&self, rows: &Tensor) -> Result<Tensor> {
        if rows.dtype() != DType::F64 {
            let (wanted, found) = ("rows of f64".to_owned(), rows.dtype().to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        let count = match **rows.shape() {
            [count, columns] if columns == self.slots => count,
            _ => {
                let wanted = format!("a matrix with {} columns", self.slots);
                return Err(Error::invalid(OPERATION, format!("shape {}", rows.shape()), wanted));
            }
        };
        let columns = if self.slots == 0 {
            vec![Tensor::zeros(&[count], DType::F64, &rows.device())?]
        } else {
            (0..self.slots as isize).map(|at| rows.select(1, at)).collect::<Result<_>>()?
        };
        let operands: Vec<TensorOperand<'_>> = columns.iter().map(TensorOperand::from).collect();
        let results = self.fused.run(&operands)?;
        let found = results.len();
        let one = |results: Vec<Tensor>| <[Tensor; 1]>::try_from(results);
        one(results).map(|[result]| result).map_err(|_| Error::LengthMismatch {
            operation: OPERATION,
            wanted: 1,
            found,
        })
    }

    /// Evaluates the expression for one row on the CPU, with the bits of a batch.
    ///
    /// # Errors
    ///
    /// As [`run_rows`](Self::run_rows).
    pub fn evaluate(&self, inputs: &[f64]) -> Result<f64> {
        self.run_rows(&Tensor::from_slice(inputs, &[1, inputs.len()], &Device::cpu())?)?.item()
    }
}

fn lowered<'g>(nodes: &[Node], graph: &'g Graph, inputs: &[Expr<'g>]) -> Result<Vec<Expr<'g>>> {
    let mut numbers: HashMap<u64, Expr<'g>> = HashMap::new();
    let mut number =
        |value: f64| *numbers.entry(value.to_bits()).or_insert_with(|| graph.number(value, DType::F64));
    let mut stack: Vec<Expr<'g>> = Vec::new();
    let missing = || Error::invalid(OPERATION, "a function without its operands", "a tree");
    for node in nodes {
        let value = match *node {
            Node::Integer(value) => number(value as f64),
            Node::Rational(value) => number(value.to_f64()),
            Node::Golden(value) => number(value.to_f64()),
            Node::Constant(constant) => number(constant.value()),
            Node::Input(slot) => inputs.get(slot).copied().ok_or_else(missing)?,
            Node::Unary(unary) => {
                let x = stack.pop().ok_or_else(missing)?;
                match unary {
                    Unary::Neg => -x,
                    Unary::Pow(exponent) => power(x, exponent),
                    Unary::Exp => x.exp(),
                    Unary::Ln => x.log(),
                    Unary::Gamma => gamma(x),
                    Unary::Sin => x.sin(),
                    Unary::Cos => x.cos(),
                }
            }
            Node::Binary(binary) => {
                let (y, x) = (stack.pop().ok_or_else(missing)?, stack.pop().ok_or_else(missing)?);
                match binary {
                    Binary::Add => x + y,
                    Binary::Sub => x - y,
                    Binary::Mul => x * y,
                    Binary::Div => x / y,
                }
            }
        };
        stack.push(value);
    }
    Ok(vec![stack.pop().ok_or_else(missing)?])
}
