//! [`linear_layers`]: products with biases and activations one after another, as one operation on the tape.
//!
//! One operation can give its products epilogues that separate ones cannot. With X the bytes of a layer's input, H those of its
//! pre-activation and Y those of the next layer's result, and weights left out, a hidden layer moves on a CUDA device:
//!
//! | pass | separate operations | one operation |
//! |---|---|---|
//! | forward: product, bias, gelu or silu | X + H, 2 H, 2 H: X + 5 H | X + 2 H: the epilogue adds the bias, stores the pre-activation and applies the activation |
//! | forward: product, bias, relu | X + H, 2 H, 2 H: X + 5 H | X + H: the sign of the result is that of the pre-activation |
//! | backward: dh = (dy Wᵀ) f'(h), by the engine `wgmma` | Y + H, 3 H: Y + 4 H | Y + 2 H: the epilogue reads h |
//! | backward: the sum of dh's rows | H | the same |
//!
//! Without a gradient no pre-activation is stored: X + H. The CPU computes each step as separate operations do, with their bits.
//!
//! Tests: `tests/nn/linear_layers.rs`, `tests/fake/training.rs`, `tests/fake/emulated/linear_layers.rs`.

use std::sync::Arc;

use super::matmul::{Matrix, product};
use super::recordable::{RecordableRule, RecordedGradients};
use super::rule::ElementwiseRule;
use super::tape::{Gradients, Node};
use super::value::Saved;
use super::variable::Variable;
use crate::error::{Error, Result};
use crate::fuse::Operation;
use crate::nn::Activation;
use crate::tensor::{Matmul, OperandKind, Tensor, evaluate};
use crate::types::DType;

const OPERATION: &str = "linear";

/// A layer of [`linear_layers`]: activation(x W + b), with a weight of shape (inputs, outputs) and a bias of shape (outputs).
#[derive(Debug, Clone, Copy)]
pub struct LinearLayer<'a> {
    /// W.
    pub weight: &'a Variable,
    /// b.
    pub bias: Option<&'a Variable>,
    /// The function of each element of the sum.
    pub activation: Option<Activation>,
}

/// The values of a layer that the backward reads.
#[derive(Clone)]
struct SavedLayer {
    /// `None` if the weight requires no gradient.
    input: Option<Saved>,
    /// `None` if nothing before the weight requires a gradient.
    weight: Option<Saved>,
    /// The activation, and the operand of its derivative: the pre-activation, or for relu the result.
    derivative: Option<(Activation, Tensor)>,
    /// True if the bias requires a gradient; `None` without a bias.
    wants_bias: Option<bool>,
}

impl LinearLayer<'_> {
    /// Returns the result for an input, and what the activation's derivative reads if it is wanted.
    fn run(&self, x: &Tensor, wants_derivative: bool) -> Result<(Tensor, Option<Tensor>)> {
        let (weight, bias) = (self.weight.tensor(), self.bias.map(Variable::tensor));
        let (dtype, is_cpu) = (x.dtype(), x.device().is_cpu());
        let is_wide = matches!(dtype, DType::F32 | DType::F64);
        // On the CPU a fused bias has the bits of an addition only if sums are not rounded before it.
        let has_epilogue = is_wide || !is_cpu && matches!(dtype, DType::F16 | DType::BF16);
        let (fused, apart) = match &bias {
            Some(bias) if has_epilogue && bias.dtype() == dtype => (Some(bias), None),
            other => (None, other.as_ref()),
        };
        let mut matmul = Matmul::new();
        if let Some(bias) = fused {
            matmul = matmul.bias(bias);
        }
        let epilogue = self
            .activation
            .and_then(Activation::epilogue)
            .filter(|_| has_epilogue && !is_cpu && apart.is_none());
        if let Some(activation) = epilogue {
            matmul = matmul.activation(activation);
            if wants_derivative && !self.activation.is_some_and(Activation::is_derivative_of_result) {
                let (result, before) = matmul.of_with_aux(x, &weight)?;
                return Ok((result, Some(before)));
            }
            let result = matmul.of(x, &weight)?;
            let at = wants_derivative.then(|| result.clone());
            return Ok((result, at));
        }
        let mut before = matmul.of(x, &weight)?;
        if let Some(bias) = apart {
            before = before.add(bias)?;
        }
        let Some(activation) = self.activation else { return Ok((before, None)) };
        let result = crate::tensor::apply(activation.operation(), &[(&before).into()])?;
        let at = if activation.is_derivative_of_result() { &result } else { &before };
        let at = wants_derivative.then(|| at.clone());
        Ok((result, at))
    }
}

impl SavedLayer {
    /// Returns the gradient of the sum, given that of the result.
    fn times_derivative(&self, gradient: &Tensor) -> Result<Tensor> {
        let Some((activation, at)) = &self.derivative else { return Ok(gradient.clone()) };
        let operation = activation.operation();
        let rule = ElementwiseRule::get(operation, vec![OperandKind::of_tensor(at)], vec![true])?;
        let missing = || no_expression(operation);
        let expression = rule.expression.as_ref().ok_or_else(missing)?;
        evaluate(expression, &[at, gradient], &[])?.pop().ok_or_else(missing)
    }

    /// Returns the gradient of the sum, given that of the next layer's sum and that layer's weight, transposed: one product where
    /// an engine has the derivative as an epilogue.
    fn product_times_derivative(&self, of_next_sum: &Tensor, weight: &Tensor) -> Result<Tensor> {
        if let Some((activation, at)) = &self.derivative
            && let Some(activation) = activation.epilogue()
            && let Some(of_sum) = Matmul::times_derivative(of_next_sum, weight, activation, at)?
        {
            return Ok(of_sum);
        }
        self.times_derivative(&product(of_next_sum, weight, [false, true])?)
    }
}

/// Applies layers to the last axis of an input, one after another, as one operation on the tape.
///
/// On a CUDA device bias and activation are part of the products, which also store the pre-activations that gradients need, so
/// a result is rounded once. On the CPU the bits are those of separate operations.
///
/// ```
/// use selvedge::nn::{Activation, LinearLayer, Variable, linear_layers};
/// use selvedge::{Device, Tensor};
/// let device = Device::cpu();
/// let x = Variable::new(Tensor::new([[1.0f32, -2.0]], &device)?);
/// let weight = Variable::with_grad(Tensor::new([[1.0f32, 2.0], [0.5, 3.0]], &device)?)?;
/// let layers = [
///     LinearLayer { weight: &weight, bias: None, activation: Some(Activation::Relu) },
///     LinearLayer { weight: &weight, bias: None, activation: None },
/// ];
/// assert_eq!(linear_layers(&x, &layers)?.tensor().to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// As [`Variable::matmul`] and additions of the biases.
pub fn linear_layers(input: &Variable, layers: &[LinearLayer<'_>]) -> Result<Variable> {
    let shape = input.shape();
    if shape.rank() == 2 {
        return apply(input, layers);
    }
    let Some((&inputs, leading)) = shape.split_last() else {
        return Err(Error::invalid(OPERATION, format!("an input of shape {shape}"), "at least one axis"));
    };
    // One matrix instead of a batch: the weight's gradient is one product, not the sum of a batch of them.
    let rows = leading.iter().product::<usize>() as isize;
    let result = apply(&input.reshape(&[rows, inputs as isize])?, layers)?;
    let mut sizes: Vec<isize> = leading.iter().map(|&size| size as isize).collect();
    sizes.extend(result.shape().last().map(|&size| size as isize));
    result.reshape(&sizes)
}

/// [`linear_layers`] of a matrix.
fn apply(input: &Variable, layers: &[LinearLayer<'_>]) -> Result<Variable> {
    let mut parents = vec![input.tracked()];
    let mut saved: Vec<SavedLayer> = Vec::with_capacity(layers.len());
    let mut x = input.tensor();
    for (index, layer) in layers.iter().enumerate() {
        let wants_input = parents.iter().any(Option::is_some);
        let (weight, bias) = (layer.weight.tracked(), layer.bias.map(Variable::tracked));
        let wants_bias = bias.as_ref().map(Option::is_some);
        let wants_result = wants_input || weight.is_some() || wants_bias == Some(true);
        let (result, at) = layer.run(&x, wants_result)?;
        // Later inputs are results before them, which are in no variable.
        let of_input = || if index == 0 { input.save() } else { Variable::new(x.clone()).save() };
        saved.push(SavedLayer {
            input: weight.is_some().then(of_input),
            weight: wants_input.then(|| layer.weight.save()),
            derivative: layer.activation.zip(at),
            wants_bias,
        });
        parents.push(weight);
        parents.extend(bias);
        x = result;
    }
    Ok(Variable::new(x).recorded_with_second_derivatives(OPERATION, parents, |_| Box::new(LinearRule(saved))))
}

/// The rule of layers.
struct LinearRule(Vec<SavedLayer>);

impl RecordableRule for LinearRule {
    fn gradients(&self, gradient: &Tensor) -> Result<Gradients> {
        gradients(&self.0, gradient)
    }

    fn recorded_gradients(&self, node: &Arc<Node>, gradient: &Variable) -> Result<RecordedGradients> {
        recorded_gradients(&self.0, node, gradient)
    }
}

/// Returns the gradients of the input and of each layer's weight and bias, given the result's.
fn gradients(layers: &[SavedLayer], gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
    let Some(last) = layers.last() else { return Ok(vec![Some(gradient.clone())]) };
    let mut of_sum = last.times_derivative(gradient)?;
    // From the last layer to the first, and in a layer the bias before the weight.
    let mut found: Vec<Option<Tensor>> = Vec::with_capacity(1 + 2 * layers.len());
    for (index, layer) in layers.iter().enumerate().rev() {
        // The tape sums the rows.
        found.extend(layer.wants_bias.map(|is_wanted| is_wanted.then(|| of_sum.clone())));
        let of_weight = layer.input.as_ref().map(|input| {
            let input = input.tensor(OPERATION)?;
            product(&input.transpose(-2, -1)?, &of_sum, [true, false])
        });
        found.push(of_weight.transpose()?);
        let earlier = &layers[..index];
        let Some(weight) = &layer.weight else {
            // The input and the earlier layers require none.
            let operands = earlier.iter().map(|layer| 1 + usize::from(layer.wants_bias.is_some()));
            found.resize(found.len() + operands.sum::<usize>() + 1, None);
            break;
        };
        let weight = weight.tensor(OPERATION)?.transpose(-2, -1)?;
        match earlier.last() {
            Some(layer) => of_sum = layer.product_times_derivative(&of_sum, &weight)?,
            None => found.push(Some(product(&of_sum, &weight, [false, true])?)),
        }
    }
    found.reverse();
    Ok(found)
}

/// A saved layer as variables.
struct RecordedLayer {
    input: Option<Variable>,
    weight: Option<Variable>,
    /// The activation, with the pre-activation (for `relu` the result, of which `relu` has the same derivatives).
    derivative: Option<(Activation, Variable)>,
    wants_bias: Option<bool>,
}

/// As [`gradients`], by recorded operations. The sums of the layers are recorded as results of layers without activations.
fn recorded_gradients(
    layers: &[SavedLayer],
    node: &Arc<Node>,
    gradient: &Variable,
) -> Result<RecordedGradients> {
    let mut operands = node.operands().iter().cloned();
    let mut of_input = operands.next().flatten();
    let mut recorded = Vec::with_capacity(layers.len());
    for (index, layer) in layers.iter().enumerate() {
        let of_weight = operands.next().flatten();
        let mut parents = vec![of_input.clone(), of_weight.clone()];
        parents.extend(layer.wants_bias.map(|_| operands.next().flatten()));
        let variable = |saved: &Option<Saved>, node: &Option<Arc<Node>>| {
            saved.as_ref().map(|saved| saved.variable(OPERATION, node.clone())).transpose()
        };
        let (input, weight) = (variable(&layer.input, &of_input)?, variable(&layer.weight, &of_weight)?);
        let sum = |value: Tensor| {
            let saved = SavedLayer { derivative: None, ..layer.clone() };
            Variable::new(value)
                .recorded_with_second_derivatives(OPERATION, parents, |_| Box::new(LinearRule(vec![saved])))
        };
        let next = layers.get(index + 1);
        let derivative = match (&layer.derivative, next) {
            (Some((activation, at)), _) => Some((*activation, sum(at.clone()))),
            (None, None) => None,
            (None, Some(next)) => {
                let value = match &next.input {
                    Some(input) => input.tensor(OPERATION)?,
                    // The next weight requires no gradient, so nothing reads the elements of its input.
                    None => stand_in(gradient, next)?,
                };
                of_input = sum(value).into_node();
                None
            }
        };
        if let (Some((activation, at)), Some(_)) = (&derivative, next) {
            of_input = at.operation(activation.operation(), &[])?.into_node();
        }
        recorded.push(RecordedLayer { input, weight, derivative, wants_bias: layer.wants_bias });
    }

    let mut found: RecordedGradients = Vec::with_capacity(node.operands().len());
    let mut of_result = Some(gradient.clone());
    for layer in recorded.iter().rev() {
        // The operands before a layer whose input requires no gradient require none.
        let Some(of_sum) = of_result.take() else { break };
        let of_sum = match &layer.derivative {
            Some((activation, at)) => times_derivative(*activation, at, &of_sum)?,
            None => of_sum,
        };
        found.extend(layer.wants_bias.map(|is_wanted| is_wanted.then(|| of_sum.clone())));
        let of_weight = layer
            .input
            .as_ref()
            .map(|input| Matrix::transpose(input, -2, -1)?.product(&of_sum, [true, false]));
        found.push(of_weight.transpose()?);
        let of_input = layer
            .weight
            .as_ref()
            .map(|weight| of_sum.product(&Matrix::transpose(weight, -2, -1)?, [false, true]));
        of_result = of_input.transpose()?;
    }
    found.extend(of_result.map(Some));
    found.resize(node.operands().len(), None);
    found.reverse();
    Ok(found)
}

/// Returns the gradient of an activation's operand by a recorded operation.
fn times_derivative(activation: Activation, at: &Variable, gradient: &Variable) -> Result<Variable> {
    let operation = activation.operation();
    let rule = ElementwiseRule::get(operation, vec![OperandKind::of_tensor(&at.tensor())], vec![true])?;
    let found = rule.function.run(&[at.into(), gradient.into()])?.pop();
    found.ok_or_else(|| no_expression(operation))
}

/// Returns a tensor with the shape of a layer's input.
fn stand_in(gradient: &Variable, layer: &SavedLayer) -> Result<Tensor> {
    let weight = layer.weight.as_ref().map(|weight| weight.tensor(OPERATION)).transpose()?;
    let features = weight.as_ref().and_then(|weight| weight.shape().first().copied()).unwrap_or(1);
    let rows = gradient.shape().first().copied().unwrap_or(1);
    Tensor::zeros(&[1, 1], gradient.dtype(), &gradient.device())?.expand(&[rows, features])
}

#[cold]
fn no_expression(operation: Operation) -> Error {
    Error::Backward {
        operation: operation.name(),
        found: "no expression of the gradient".to_owned(),
        wanted: "one".to_owned(),
    }
}
