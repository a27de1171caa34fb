//! [`TensorRows`], a product of a few rows of 16 bits with its norm, gate and residual, of tensors on a device.

use super::super::device::stream;
use super::super::kernel::Output;
use super::super::tensor::Tensor;
use super::super::traced;
use crate::driver::DeviceSlice;
use crate::error::Result;
use crate::gemm::{self, Activation, MAX_ROWS, RowsMatrix, RowsNorm, RowsProduct, is_batch_invariant};
use crate::images::DeviceProperties;
use crate::types::DType;

const OPERATION: &str = "a product of a few rows";

/// The norm of the rows before the product.
pub(crate) struct TensorRowsNorm {
    pub is_layer_norm: bool,
    pub weight: Tensor,
    pub offset: f64,
    pub bias: Option<Tensor>,
    pub eps: f64,
}

/// The product epilogue(norm(x) Wᵀ + bias): see [`RowsProduct`].
pub(crate) struct TensorRows<'a> {
    /// Rows (…, inputs).
    pub x: &'a Tensor,
    pub norm: Option<TensorRowsNorm>,
    /// Weights, with a bias each.
    pub matrices: &'a [(Tensor, Option<Tensor>)],
    pub is_input_major: bool,
    pub activation: Activation,
    pub is_gated: bool,
    /// Rows that are added to the result.
    pub residual: Option<&'a Tensor>,
}

impl TensorRows<'_> {
    /// Returns the result (…, outputs), or `None` if no kernel computes it.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn run(&self) -> Result<Option<Tensor>> {
        let TensorRows { x, norm, matrices, residual, .. } = self;
        let (device, dtype, shape) = (x.device(), x.dtype(), *x.shape());
        let Some((&inputs, outer)) = shape.split_last() else { return Ok(None) };
        let rows: usize = outer.iter().product();
        let Some(cuda) = device.as_cuda() else { return Ok(None) };
        // More rows have other kernels, whose bits differ.
        if is_batch_invariant() || rows > MAX_ROWS || !matches!(dtype, DType::F16 | DType::BF16) {
            return Ok(None);
        }
        let of_norm = norm.iter().flat_map(|norm| [Some(&norm.weight), norm.bias.as_ref()]).flatten();
        let parts = matrices.iter().flat_map(|(weight, bias)| [Some(weight), bias.as_ref()]).flatten();
        let mut operands = of_norm.chain(parts).chain(*residual).chain([*x]);
        // A kernel reads the elements where they are.
        let is_read = |operand: &Tensor| -> Result<bool> {
            let is_alike = operand.dtype() == dtype && operand.device() == device && operand.is_contiguous();
            Ok(is_alike && bytes(operand)?.address().is_multiple_of(16))
        };
        if !operands.try_fold(true, |all, operand| Ok::<_, crate::Error>(all && is_read(operand)?))? {
            return Ok(None);
        }
        let mut descriptors = Vec::with_capacity(matrices.len());
        for (weight, bias) in *matrices {
            let sizes = weight.shape();
            let &[first, second] = &sizes[..] else { return Ok(None) };
            let (of_inputs, outputs) = if self.is_input_major { (first, second) } else { (second, first) };
            if of_inputs != inputs {
                return Ok(None);
            }
            let bias = bias.as_ref().map(bytes).transpose()?;
            descriptors.push(RowsMatrix { weight: bytes(weight)?, bias, outputs });
        }
        let norm = match norm {
            Some(TensorRowsNorm { is_layer_norm, weight, offset, bias, eps }) => Some(RowsNorm {
                is_layer_norm: *is_layer_norm,
                weight: Some(bytes(weight)?),
                offset: *offset,
                bias: bias.as_ref().map(bytes).transpose()?,
                eps: *eps,
            }),
            None => None,
        };
        let product = RowsProduct {
            dtype,
            x: bytes(x)?,
            rows,
            inputs,
            norm,
            matrices: &descriptors,
            is_input_major: self.is_input_major,
            activation: self.activation,
            is_gated: self.is_gated,
            residual: residual.map(bytes).transpose()?,
        };
        if let Some(reason) = product.unsupported(DeviceProperties::from_device(cuda)?) {
            log::debug!("{OPERATION} is a product and operations around it: {reason}");
            return Ok(None);
        }
        let _traced = traced::operation(OPERATION, [*x].into_iter(), None);
        let sizes: Vec<usize> = outer.iter().copied().chain([product.outputs()]).collect();
        let mut result = Output::new(&device, dtype, &sizes)?;
        let mut to = result.memory_mut();
        let stream = stream(&device)?;
        gemm::multiply_rows(&stream, &product, to.cuda(OPERATION)?.slice_mut(..)?)?;
        Ok(Some(result.into_tensor()))
    }
}

/// Returns the elements of a contiguous tensor, in bytes.
fn bytes(tensor: &Tensor) -> Result<DeviceSlice<'_, u8>> {
    let size = tensor.dtype().size();
    let start = tensor.layout().offset() * size;
    let count: usize = tensor.shape().iter().product();
    tensor.memory().cuda(OPERATION)?.slice(start..start + count * size)
}
