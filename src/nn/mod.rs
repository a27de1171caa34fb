//! Neural networks on tensors: automatic differentiation, layers and losses.
//!
//! | file | contents |
//! |---|---|
//! | `autograd` | [`Variable`], the tape, gradients of operations, custom functions |
//! | `module` | [`Module`]: a forward, named parameters, train and eval modes, `state_dict` |
//! | `initializer` | [`Initializer`]: the device, dtype and first values of parameters |
//! | `layers` | [`Linear`], [`Embedding`], [`LayerNorm`], [`Dropout`], [`Sequential`], activations |
//! | `losses` | [`mse_loss`], [`cross_entropy`] and others, with PyTorch's defaults |
//!
//! ```
//! use selvedge::nn::Variable;
//! use selvedge::{Device, Tensor};
//!
//! let device = Device::best();
//! let x = Variable::new(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &device)?);
//! let weight = Variable::with_grad(Tensor::new([0.5f32, -1.0], &device)?)?;
//! let loss = x.matmul(&weight)?.square()?.mean_all()?;
//! loss.backward()?;
//! let gradient = weight.grad().map(|gradient| gradient.to_vec::<f32>()).transpose()?;
//! assert_eq!(gradient, Some(vec![-9.0, -13.0]));
//! # Ok::<(), selvedge::Error>(())
//! ```

mod autograd;
mod initializer;
mod layers;
mod losses;
mod module;

pub use autograd::{Function, FunctionContext, Variable, VariableOperand, is_grad_enabled, no_grad};
pub use initializer::Initializer;
pub use layers::{Dropout, Embedding, Gelu, LayerNorm, Linear, Relu, Sequential, Sigmoid, Tanh};
pub use losses::{
    CrossEntropyOptions, Reduction, binary_cross_entropy_with_logits, cross_entropy, kl_div, mse_loss,
    nll_loss,
};
pub use module::Module;
