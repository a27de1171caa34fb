//! [`Expression`], a checked and lowered graph with its compiled kernels.

use std::fmt;
use std::sync::Arc;

use super::plan_cache::PlanCache;
use crate::driver::{DeviceCache, Function};
use crate::error::Result;
use crate::fuse::cpu::backend::CpuCode;
use crate::fuse::language::graph::{Expr, Graph};
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::elementwise::KernelKey;
use crate::types::DType;

/// A compiled elementwise computation of any number of inputs and outputs: one kernel on a device, one pass
/// on the CPU.
///
/// Cloning is cheap, and clones share the compiled kernels. [`Graph::expression`](crate::fuse::Graph::expression)
/// creates it.
#[derive(Clone)]
pub struct Expression(pub(in crate::fuse) Arc<ExpressionState>);

/// A compiled expression and the caches of its runs. The fields that every run reads come first.
#[repr(C)]
pub(in crate::fuse) struct ExpressionState {
    pub(in crate::fuse) compiled: Arc<CompiledExpression>,
    pub(super) plans: PlanCache,
    pub(in crate::fuse) cpu_code: CpuCode,
    /// Kernels of all plans.
    pub(super) kernels: DeviceCache<KernelKey, Function>,
}

impl Graph {
    /// Compiles the expression that computes these outputs. The graph may grow afterwards and compile further
    /// expressions.
    ///
    /// # Errors
    ///
    /// The first error of an operation in the graph, as [`Operation::signature`](crate::fuse::Operation::signature);
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) without outputs, for an output of another graph, for more than
    /// 64 inputs, scalars, coordinates and outputs together, and for more than 20,000 instructions. `tensor::Fused` divides such a function into several kernels.
    pub fn expression(&self, outputs: &[Expr<'_>]) -> Result<Expression> {
        Ok(Expression::new(Arc::new(CompiledExpression::of(self, outputs)?), CpuCode::default()))
    }
}

impl Expression {
    /// Creates an expression without plans from its compiled form and the machine code of that.
    pub(in crate::fuse) fn new(compiled: Arc<CompiledExpression>, cpu_code: CpuCode) -> Expression {
        Expression(Arc::new(ExpressionState {
            compiled,
            plans: PlanCache::new(),
            cpu_code,
            kernels: DeviceCache::new(),
        }))
    }

    /// Returns the dtypes of the inputs.
    pub fn inputs(&self) -> &[DType] {
        &self.0.compiled.inputs
    }

    /// Returns the dtypes of the scalars that a run passes.
    pub fn scalars(&self) -> Vec<DType> {
        self.0.compiled.run_scalars.iter().map(|(_, dtype)| *dtype).collect()
    }

    /// Returns whether an integer is compared with a real scalar that each run passes. Such a comparison is
    /// by value only for a literal.
    #[inline]
    pub(crate) fn compares_by_value(&self) -> bool {
        self.0.compiled.compares_by_value
    }

    /// Returns whether an output depends on an input.
    pub(crate) fn reads(&self, input: usize) -> bool {
        self.0.compiled.reads(input)
    }

    /// Returns the dtypes of the outputs.
    #[inline]
    pub fn outputs(&self) -> &[DType] {
        &self.0.compiled.outputs
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |dtypes: &[DType]| dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
        write!(formatter, "Expression({} -> {})", names(self.inputs()), names(self.outputs()))
    }
}
