//! The epilogue of a product in the form that its engines take: a bias as a vector, a residual with the result's layout.

use super::{Matmul, OPERATION, as_matrices};
use crate::error::{Error, Result};
use crate::gemm::Activation;
use crate::tensor::Tensor;
use crate::types::{Layout, Shape};

/// The bias, the activation and the residual of a product.
pub(super) struct MatmulEpilogue {
    pub bias: Option<Bias>,
    pub activation: Activation,
    /// Contiguous, of the result's shape.
    /// The residual, or the pre-activation where `is_derivative` is true.
    pub aux_in: Option<Tensor>,
    /// True where the product is multiplied by the activation's derivative at `aux_in`.
    pub is_derivative: bool,
}

/// A bias, as a contiguous vector.
pub(super) struct Bias {
    pub vector: Tensor,
    /// True if the bias has an element for each row instead of each column.
    pub by_row: bool,
}

impl MatmulEpilogue {
    /// Returns the epilogue of a result of this shape, for operands of these ranks. Copies a bias or residual that is not
    /// contiguous.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with both shapes, and those of copies.
    pub fn new(matmul: &Matmul<'_>, shape: &Shape, ranks: (usize, usize)) -> Result<MatmulEpilogue> {
        let bias = match matmul.bias {
            Some(bias) => Bias::new(bias, shape, ranks)?,
            None => None,
        };
        let aux_in = matmul.residual.map(|residual| spread("a residual", residual, shape)?.contiguous());
        let (activation, aux_in) = (matmul.activation, aux_in.transpose()?);
        Ok(MatmulEpilogue { bias, activation, aux_in, is_derivative: false })
    }

    pub fn has_bias_of_rows(&self) -> bool {
        self.bias.as_ref().is_some_and(|bias| bias.by_row)
    }
}

impl Bias {
    /// Returns `None` if the result has no elements.
    fn new(bias: &Tensor, shape: &Shape, ranks: (usize, usize)) -> Result<Option<Bias>> {
        let wide = spread("a bias", bias, shape)?;
        if wide.count() == 0 {
            return Ok(None);
        }
        let mut matrices = wide.view_as(as_matrices(wide.layout(), ranks)?);
        let varies = |layout: &Layout, axis: usize| layout.shape()[axis] > 1 && layout.strides()[axis] != 0;
        let (layout, rank) = (*matrices.layout(), matrices.rank());
        let (by_row, by_column) = (varies(&layout, rank - 2), varies(&layout, rank - 1));
        if (by_row && by_column) || (0..rank - 2).any(|axis| varies(&layout, axis)) {
            let found = format!("a bias of shape {} for a result of {shape}", bias.shape());
            let wanted = "one number for each column or for each row; other shapes as a residual";
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        for _ in 0..rank - 2 {
            matrices = matrices.select(0, 0)?;
        }
        let vector = matrices.select(if by_row { 1 } else { 0 }, 0)?.contiguous()?;
        Ok(Some(Bias { vector, by_row }))
    }
}

/// A tensor that is broadcast to the result's shape.
fn spread(name: &str, tensor: &Tensor, shape: &Shape) -> Result<Tensor> {
    let layout = tensor.layout().expand(shape).map_err(|_| {
        let found = format!("{name} of shape {} for a result of {shape}", tensor.shape());
        Error::invalid(OPERATION, found, "a shape that broadcasts to the result's")
    })?;
    Ok(tensor.view_as(layout))
}
