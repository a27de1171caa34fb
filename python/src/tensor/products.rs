//! Matrix products with an epilogue.

use pyo3::prelude::*;
use selvedge::gemm::Activation;
use selvedge::tensor::Matmul;

use super::PyTensor;
use crate::arguments::{DTypeArgument, TensorArgument};
use crate::error::{Result, invalid};

/// Returns the activation of PyTorch's name.
fn activation_of(name: Option<&str>) -> selvedge::Result<Activation> {
    Ok(match name {
        None => Activation::None,
        Some("relu") => Activation::Relu,
        Some("gelu_tanh") => Activation::GeluTanh,
        Some("silu") => Activation::Silu,
        Some(name) => {
            let wanted = "\"relu\", \"gelu_tanh\" or \"silu\"; others are methods of the result";
            return Err(invalid("matmul", format!("the activation {name:?}"), wanted));
        }
    })
}

#[pymethods]
impl PyTensor {
    #[doc = doc!(matmul)]
    ///
    /// The keywords are parts of the same pass: activation(self @ other + bias) + residual, rounded once to `dtype`, which is that of the
    /// operands, or f32 for f16 and bf16. A bias of shape (columns,) or (rows, 1) and the residual have the result's dtype; activations
    /// are "relu", "gelu_tanh" and "silu".
    ///
    /// >>> a, bias = sv.Tensor([[1.0, 2.0], [3.0, 4.0]]), sv.Tensor([-8.0, 0.0])
    /// >>> a.matmul(a, bias=bias, activation="relu").tolist()
    /// [[0.0, 10.0], [7.0, 22.0]]
    #[pyo3(signature = (other, *, bias=None, activation=None, residual=None, dtype=None))]
    fn matmul(
        &self,
        py: Python<'_>,
        other: TensorArgument,
        bias: Option<TensorArgument>,
        activation: Option<&str>,
        residual: Option<TensorArgument>,
        dtype: Option<DTypeArgument>,
    ) -> Result<PyTensor> {
        let mut product = Matmul::new().activation(activation_of(activation)?);
        if let Some(bias) = &bias {
            product = product.bias(&bias.0);
        }
        if let Some(residual) = &residual {
            product = product.residual(&residual.0);
        }
        if let Some(dtype) = dtype {
            product = product.result(dtype.0);
        }
        self.map(py, |tensor| product.of(tensor, &other.0))
    }
}
