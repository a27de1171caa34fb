//! [`checkpoint`], a function whose saved values are computed again in the backward.
//!
//! The forward runs without a tape and records its random draws and the variables with a gradient that it reads. The backward
//! runs the function again, with the tape and the same draws, and goes on with the nodes of that run. They are newer than all
//! others, so they run next and in the order of the first run: sums of gradients have the bits of a run without a checkpoint,
//! those of parameters that the function shares with other operations too.
//!
//! Tests: `tests/nn/checkpointing.rs`.

use std::sync::Arc;

use super::mode::{is_grad_enabled, observed, with_grad_enabled};
use super::tape::Node;
use super::value::Saved;
use super::variable::{Variable, is_differentiable};
use crate::error::{Error, Result};
use crate::tensor::RecordedDraws;

const OPERATION: &str = "checkpoint";

/// Returns `function(inputs)` and saves only the inputs for the backward, which computes the function again: less memory for
/// one more forward. As `torch.utils.checkpoint.checkpoint`, with the gradients' bits of `function(inputs)` itself.
///
/// Both computations have the same random numbers, such as those of dropout, if this thread draws them; the generators move on
/// once. The function may read other variables, such as a layer's parameters, which get their gradients too. A function with
/// other effects has them twice, such as the running statistics of [`BatchNorm1d`](crate::nn::BatchNorm1d) in training.
/// Checkpoints nest.
///
/// ```
/// use std::sync::Arc;
/// use selvedge::nn::{GeluTanh, Initializer, Linear, Module, Sequential, Variable, checkpoint};
/// use selvedge::{DType, Device, Tensor};
/// let device = Device::cpu();
/// let initializer = Initializer::new(&device);
/// let block = Sequential::new().with(Linear::new(4, 16, &initializer)?).with(GeluTanh).with(Linear::new(16, 4, &initializer)?);
/// let parameters = block.parameters();
/// let block = Arc::new(block);
/// let mut x = Variable::new(Tensor::ones(&[2, 4], DType::F32, &device)?);
/// for _ in 0..3 {
///     let block = block.clone();
///     x = checkpoint(move |inputs| block.forward(&inputs[0]), &[&x])?;
/// }
/// x.sum_all()?.backward()?;
/// assert!(parameters.iter().all(|parameter| parameter.grad().is_some()));
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// Errors of the function. The backward returns those of the second computation; [`Error::Backward`] if an input, or another
/// variable with a gradient that the function reads, was changed in place since, and for a second result of another shape or
/// dtype; [`Error::InvalidArgument`] for other random draws.
pub fn checkpoint(
    function: impl Fn(&[Variable]) -> Result<Variable> + Send + Sync + 'static,
    inputs: &[&Variable],
) -> Result<Variable> {
    let inputs: Vec<Variable> = inputs.iter().map(|&input| input.clone()).collect();
    if !is_grad_enabled() {
        return function(&inputs);
    }
    let (draws, (read, result)) = RecordedDraws::of(|| observed(|| function(&inputs)));
    let result = result?.tensor();
    let parents: Vec<Option<Arc<Node>>> = inputs.iter().map(Variable::tracked).collect();
    let is_recorded = !read.is_empty() || parents.iter().any(Option::is_some);
    if !is_recorded || !is_differentiable(result.dtype()) {
        return Ok(Variable::new(result));
    }
    let saved: Vec<Saved> = inputs.iter().map(Variable::save).collect();
    let (shape, dtype) = (*result.shape(), result.dtype());
    let recompute = move |parents: &[Option<Arc<Node>>]| {
        for value in &read {
            value.tensor(OPERATION)?;
        }
        let inputs = saved.iter().zip(parents).map(|(saved, node)| saved.variable(OPERATION, node.clone()));
        let inputs = inputs.collect::<Result<Vec<Variable>>>()?;
        let result = draws.replay(|| with_grad_enabled(|| function(&inputs)))?;
        let found = result.tensor();
        if *found.shape() != shape || found.dtype() != dtype {
            let found = format!("a second result of {} of shape {}", found.dtype(), found.shape());
            let wanted = format!("the first one's: {dtype} of shape {shape}");
            return Err(Error::Backward { operation: OPERATION, found, wanted });
        }
        Ok(result.into_node())
    };
    Ok(Variable::of_recomputation(result, OPERATION, parents, Box::new(recompute)))
}
