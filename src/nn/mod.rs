//! Neural networks on tensors: automatic differentiation.
//!
//! | file | contents |
//! |---|---|
//! | `autograd` | [`Variable`], the tape, gradients of operations, custom functions |
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

pub use autograd::{Function, FunctionContext, Variable, VariableOperand, is_grad_enabled, no_grad};
