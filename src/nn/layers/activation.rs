//! Activations as layers.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::fuse::Operation;
use crate::gemm;
use crate::nn::{Module, Variable};

/// An activation that linear layers join ([`linear_layers`](crate::nn::linear_layers)), with its name in a Hugging Face
/// `config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Activation {
    /// [`GeluTanh`](struct@GeluTanh), GPT-2's.
    #[default]
    #[serde(rename = "gelu_new", alias = "gelu_pytorch_tanh")]
    GeluTanh,
    /// [`Gelu`](struct@Gelu).
    #[serde(rename = "gelu")]
    Gelu,
    /// [`Relu`](struct@Relu).
    #[serde(rename = "relu")]
    Relu,
    /// [`Silu`](struct@Silu).
    #[serde(rename = "silu", alias = "swish")]
    Silu,
}

impl Activation {
    /// Returns the elementwise operation, and the same function as part of a product's epilogue if epilogues have it.
    const fn functions(self) -> (Operation, Option<gemm::Activation>) {
        match self {
            Activation::GeluTanh => (Operation::GeluTanh, Some(gemm::Activation::GeluTanh)),
            Activation::Gelu => (Operation::Gelu, None),
            Activation::Relu => (Operation::Relu, Some(gemm::Activation::Relu)),
            Activation::Silu => (Operation::Silu, Some(gemm::Activation::Silu)),
        }
    }

    /// Returns the function of each element.
    pub(in crate::nn) fn forward(self, x: &Variable) -> Result<Variable> {
        match self {
            Activation::GeluTanh => GeluTanh.forward(x),
            Activation::Gelu => Gelu.forward(x),
            Activation::Relu => Relu.forward(x),
            Activation::Silu => Silu.forward(x),
        }
    }

    /// Returns the elementwise operation, which has the expressions of the function and its derivative.
    pub(in crate::nn) const fn operation(self) -> Operation {
        self.functions().0
    }

    /// Returns the activation as the part of a product's epilogue, if epilogues have it.
    pub(in crate::nn) const fn epilogue(self) -> Option<gemm::Activation> {
        self.functions().1
    }

    /// Returns whether the derivative is the same at the result as at the pre-activation, so that only the result is saved.
    pub(in crate::nn) const fn is_derivative_of_result(self) -> bool {
        matches!(self, Activation::Relu)
    }
}

macro_rules! activations {
    ($($(#[doc = $doc:literal])* $name:ident $operation:ident $activation:expr;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $name;

        impl Module for $name {
            fn forward(&self, input: &Variable) -> Result<Variable> {
                input.$operation()
            }

            fn as_activation(&self) -> Option<Activation> {
                $activation
            }
        }
    )*};
}

activations! {
    /// max(x, 0).
    Relu relu Some(Activation::Relu);
    /// x Φ(x) with the normal distribution function Φ, PyTorch's default form.
    Gelu gelu Some(Activation::Gelu);
    /// x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2, the form of GPT-2.
    GeluTanh gelu_tanh Some(Activation::GeluTanh);
    /// x / (1 + e^-x).
    Silu silu Some(Activation::Silu);
    /// The hyperbolic tangent.
    Tanh tanh None;
    /// 1 / (1 + e^-x).
    Sigmoid sigmoid None;
}
