//! Activations as layers.

use crate::error::Result;
use crate::nn::{Module, Variable};

macro_rules! activations {
    ($($(#[doc = $doc:literal])* $name:ident $operation:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $name;

        impl Module for $name {
            fn forward(&self, input: &Variable) -> Result<Variable> {
                input.$operation()
            }
        }
    )*};
}

activations! {
    /// max(x, 0).
    Relu relu;
    /// x Φ(x) with the normal distribution function Φ, PyTorch's default form.
    Gelu gelu;
    /// x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2, the form of GPT-2.
    GeluTanh gelu_tanh;
    /// x / (1 + e^-x).
    Silu silu;
    /// The hyperbolic tangent.
    Tanh tanh;
    /// 1 / (1 + e^-x).
    Sigmoid sigmoid;
}
