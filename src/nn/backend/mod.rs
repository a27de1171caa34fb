//! [`Backend`]: the operations of a network on one device, as a thin face of [`Tensor`].
//!
//! | file | contents |
//! |---|---|
//! | `devices` | [`Cpu`] and [`Cuda`] |
//! | `transfers` | [`AutomaticTransfers`]: operands of other devices move, are counted and logged |
//!
//! Invariant: a method checks or moves its operands and calls the tensor's operation of that name; nothing is computed here.
//!
//! Tests: `tests/nn/backend.rs`, `tests/fake/backend.rs`.

mod devices;
mod transfers;

use super::{Variable, no_grad};
use crate::error::{Error, Result};
use crate::tensor::{CrossEntropyOptions, Device, Item, NormGradients, Tensor};
use crate::types::{DType, Element, Shape};
pub use devices::{Cpu, Cuda};
pub use transfers::{AutomaticTransfers, TransferCounts};

macro_rules! operations {
    ($($name:ident ($($operand:ident),+) $(with ($($argument:ident: $type:ty),+))? $doc:literal => $call:expr;)*) => {
        $(
            #[doc = concat!("Returns ", $doc)]
            ///
            /// # Errors
            ///
            /// [`Error::DeviceMismatch`] for an operand on another device, without automatic transfers; those of the tensor's
            /// operation.
            #[track_caller]
            fn $name(&self, $($operand: &Tensor),+ $(, $($argument: $type),+)?) -> Result<Tensor> {
                $(let $operand = &self.transfers().operand(&self.device(), stringify!($name), $operand)?;)+
                $call
            }
        )*
    };
}

/// The operations of a network on one device. All are those of [`Tensor`], with its shapes, dtypes and errors, and none waits
/// for the device but [`to_vec`](Self::to_vec) and [`synchronize`](Self::synchronize).
///
/// An operand on another device is an error, or moves there with
/// [`Cuda::with_automatic_transfers`] ([`Cpu`] has it too). Code for any backend takes `&impl Backend` or `&dyn Backend`:
///
/// ```
/// use selvedge::nn::{Backend, Cpu, Cuda};
/// use selvedge::{DType, Result, Tensor};
/// fn layer(backend: &dyn Backend, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
///     backend.relu(&backend.matmul(x, weight)?)
/// }
/// let (cpu, cuda) = (Cpu::new(), Cuda::new(0));
/// let backend: &dyn Backend = match &cuda {
///     Ok(cuda) => cuda,
///     Err(_) => &cpu,
/// };
/// let x = backend.ones(&[2, 3], DType::F32)?;
/// let result = layer(backend, &x, &backend.ones(&[3, 1], DType::F32)?)?;
/// assert_eq!(result.to_vec::<f32>()?, [3.0, 3.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub trait Backend: Send + Sync {
    /// Returns the device.
    fn device(&self) -> Device;

    /// Returns the treatment of operands on other devices.
    fn transfers(&self) -> &AutomaticTransfers;

    /// Waits for the device's queued work.
    ///
    /// # Errors
    ///
    /// As [`Device::synchronize`].
    fn synchronize(&self) -> Result<()> {
        self.device().synchronize()
    }

    /// Returns zeros.
    ///
    /// # Errors
    ///
    /// As [`Tensor::zeros`].
    fn zeros(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        Tensor::zeros(shape, dtype, &self.device())
    }

    /// Returns ones.
    ///
    /// # Errors
    ///
    /// As [`Tensor::ones`].
    fn ones(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        Tensor::ones(shape, dtype, &self.device())
    }

    /// Copies elements to the device. [`Cuda::upload_pinned`] does not wait for the copy.
    ///
    /// # Errors
    ///
    /// As [`Tensor::from_slice`].
    #[allow(clippy::wrong_self_convention, reason = "the tensor's name")]
    fn from_slice<T: Element>(&self, elements: &[T], shape: &[usize]) -> Result<Tensor>
    where
        Self: Sized,
    {
        Tensor::from_slice(elements, shape, &self.device())
    }

    /// Copies a tensor's elements to the host. [`Cuda::download_pinned`] does not wait for the copy.
    ///
    /// # Errors
    ///
    /// As [`Tensor::to_vec`].
    fn to_vec<T: Item>(&self, x: &Tensor) -> Result<Vec<T>>
    where
        Self: Sized,
    {
        x.to_vec()
    }

    /// Returns the sizes of the dimensions.
    fn shape(&self, x: &Tensor) -> Shape {
        *x.shape()
    }

    /// Returns the distances of neighbours along each dimension, in elements.
    fn strides(&self, x: &Tensor) -> Vec<isize> {
        x.layout().strides().to_vec()
    }

    /// Returns the dtype of the elements.
    fn dtype(&self, x: &Tensor) -> DType {
        x.dtype()
    }

    operations! {
        add(a, b) "a + b, broadcast." => a.add(b);
        sub(a, b) "a - b, broadcast." => a.sub(b);
        mul(a, b) "a b, broadcast." => a.mul(b);
        div(a, b) "a / b, broadcast." => a.div(b);
        matmul(a, b) "the products of matrices in the last two axes, with batch axes in front that broadcast, in any strides." => a.matmul(b);
        neg(x) "-x." => x.neg();
        abs(x) "|x|." => x.abs();
        sqrt(x) "the square root." => x.sqrt();
        exp(x) "e^x." => x.exp();
        log(x) "ln x; nothing is added to x." => x.log();
        powf(x) with (exponent: f64) "x to a power." => x.pow(exponent);
        relu(x) "max(x, 0)." => x.relu();
        sigmoid(x) "1 / (1 + e^-x)." => x.sigmoid();
        tanh(x) "the hyperbolic tangent." => x.tanh();
        gelu(x) "GELU by the error function." => x.gelu();
        gelu_tanh(x) "GELU by its tanh form." => x.gelu_tanh();
        softmax(x) with (axis: isize) "e^x / Σ e^x along an axis of any length." => x.softmax(axis);
        sum(x) "the sum of all elements." => x.sum_all();
        sum_axis(x) with (axis: isize) "sums along an axis, which is removed." => x.sum(axis);
        mean(x) "the mean of all elements." => x.mean_all();
        mean_axis(x) with (axis: isize) "means along an axis, which is removed." => x.mean(axis);
        max(x) "the largest element." => x.max_all();
        max_axis(x) with (axis: isize) "the largest elements along an axis, which is removed." => x.max(axis);
        argmax(x) "the row-major index of the largest element." => x.argmax_all();
        argmax_axis(x) with (axis: isize) "the indices of the largest elements along an axis, which is removed." => x.argmax(axis);
        reshape(x) with (sizes: &[isize]) "the elements in another shape, a view if the memory allows it." => x.reshape(sizes);
        transpose(x) with (first: isize, second: isize) "a view with two axes swapped." => x.transpose(first, second);
        contiguous(x) "the elements in row-major order, a copy unless they are." => x.contiguous();
        embedding(table, index) "the row of a table at each index, as a new last dimension." => {
            no_grad(|| Variable::new(table.clone()).embedding(index)).map(|rows| rows.tensor())
        };
        layer_norm(x, weight, bias) with (eps: f64) "(x - mean) / sqrt(variance + eps) · weight + bias over the weight's axes, the last ones." => {
            x.layer_norm(weight.shape(), Some(weight), Some(bias), eps)
        };
        sparse_cross_entropy(logits, labels) "the mean over rows of ln Σ e^z less the label's z." => {
            logits.cross_entropy(labels, CrossEntropyOptions::default())
        };
    }

    /// Returns the gradient of the table of [`embedding`](Self::embedding), which has `rows` rows. Rows that are read several
    /// times have the same bits every time.
    ///
    /// # Errors
    ///
    /// As the operations.
    #[track_caller]
    fn embedding_backward(&self, gradient: &Tensor, index: &Tensor, rows: usize) -> Result<Tensor> {
        const OPERATION: &str = "embedding_backward";
        let device = self.device();
        let gradient = self.transfers().operand(&device, OPERATION, gradient)?;
        let index = self.transfers().operand(&device, OPERATION, index)?;
        let Some(&width) = gradient.shape().last() else {
            let found = format!("a gradient of shape {}", gradient.shape());
            return Err(Error::invalid(OPERATION, found, "the index's sizes and the table's width"));
        };
        let gradient = gradient.reshape(&[index.count() as isize, width as isize])?;
        let zeros = Tensor::zeros(&[rows, width], gradient.dtype(), &device)?;
        zeros.index_add(0, &index.reshape(&[-1])?, &gradient)
    }

    /// Returns the gradients of [`layer_norm`](Self::layer_norm).
    ///
    /// # Errors
    ///
    /// As [`Tensor::layer_norm_backward`].
    #[track_caller]
    fn layer_norm_backward(
        &self,
        x: &Tensor,
        gradient: &Tensor,
        weight: &Tensor,
        eps: f64,
    ) -> Result<NormGradients> {
        const OPERATION: &str = "layer_norm_backward";
        let device = self.device();
        let x = self.transfers().operand(&device, OPERATION, x)?;
        let gradient = self.transfers().operand(&device, OPERATION, gradient)?;
        let weight = self.transfers().operand(&device, OPERATION, weight)?;
        x.layer_norm_backward(&gradient, weight.shape(), Some(&weight), eps, None, true)
    }

    /// Returns [`sparse_cross_entropy`](Self::sparse_cross_entropy) and its gradient, (softmax(z) - onehot(label)) / rows,
    /// in one pass.
    ///
    /// # Errors
    ///
    /// As [`Tensor::cross_entropy_with_gradient`].
    #[track_caller]
    fn sparse_cross_entropy_with_gradient(
        &self,
        logits: &Tensor,
        labels: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        const OPERATION: &str = "sparse_cross_entropy_with_gradient";
        let device = self.device();
        let logits = self.transfers().operand(&device, OPERATION, logits)?;
        let labels = self.transfers().operand(&device, OPERATION, labels)?;
        logits.cross_entropy_with_gradient(&labels, CrossEntropyOptions::default())
    }
}
