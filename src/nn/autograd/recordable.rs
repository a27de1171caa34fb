//! [`RecordableRule`], a rule whose gradients can be variables, and the rules of operations that are linear in an operand.

use std::sync::Arc;

use super::tape::{Gradients, Node};
use super::variable::Variable;
use crate::error::Result;
use crate::tensor::Tensor;

/// The gradients of an operation's operands as variables; `None` is 0.
pub(super) type RecordedGradients = Vec<Option<Variable>>;

/// A rule that computes gradients from tensors, and from variables by recorded operations, so that they have gradients too.
pub(super) trait RecordableRule: Send + Sync {
    /// Returns the gradients of the operands, given the result's.
    ///
    /// # Errors
    ///
    /// Errors of the computation.
    fn gradients(&self, gradient: &Tensor) -> Result<Gradients>;

    /// Returns the same as recorded variables. `node` is the node of the result, and has those of the operands.
    ///
    /// # Errors
    ///
    /// Errors of the computation.
    fn recorded_gradients(&self, node: &Arc<Node>, gradient: &Variable) -> Result<RecordedGradients>;
}

/// A rule of saved values and two functions of them.
pub(super) struct RuleOfClosures<S, F, R> {
    pub(super) saved: S,
    pub(super) gradients: F,
    pub(super) recorded: R,
}

impl<S, F, R> RecordableRule for RuleOfClosures<S, F, R>
where
    S: Send + Sync,
    F: Fn(&S, &Tensor) -> Result<Gradients> + Send + Sync,
    R: Fn(&S, &Arc<Node>, &Variable) -> Result<RecordedGradients> + Send + Sync,
{
    fn gradients(&self, gradient: &Tensor) -> Result<Gradients> {
        (self.gradients)(&self.saved, gradient)
    }

    fn recorded_gradients(&self, node: &Arc<Node>, gradient: &Variable) -> Result<RecordedGradients> {
        (self.recorded)(&self.saved, node, gradient)
    }
}

impl Variable {
    /// Records an operation that is linear in its only operand. See [`recorded_linear!`].
    pub(super) fn recorded_linear<S: Send + Sync + 'static>(
        &self,
        operation: &'static str,
        result: Tensor,
        saved: S,
        gradient: fn(&S, &Tensor) -> Result<Tensor>,
        recorded: fn(&S, &Variable) -> Result<Variable>,
    ) -> Variable {
        Variable::new(result).constant_by(self.stopped_by()).recorded_with_second_derivatives(
            operation,
            vec![self.tracked()],
            |_| {
                Box::new(RuleOfClosures {
                    saved,
                    gradients: move |saved: &S, of_result: &Tensor| {
                        Ok(vec![Some(gradient(saved, of_result)?)])
                    },
                    recorded: move |saved: &S, _: &Arc<Node>, of_result: &Variable| {
                        Ok(vec![Some(recorded(saved, of_result)?)])
                    },
                })
            },
        )
    }
}

/// Records an operation that is linear in its only operand: `recorded_linear!(operand, name, result, saved, |saved, gradient| rule)`.
/// The rule is compiled for tensors and for variables, whose methods have the same names.
macro_rules! recorded_linear {
    ($operand:expr, $operation:expr, $result:expr, $saved:expr, |$state:pat_param, $gradient:ident| $rule:expr) => {
        $operand.recorded_linear(
            $operation,
            $result,
            $saved,
            |$state, $gradient: &$crate::tensor::Tensor| $rule,
            |$state, $gradient: &$crate::nn::Variable| $rule,
        )
    };
}

pub(super) use recorded_linear;
