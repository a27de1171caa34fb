//! Attention that stores no scores, of tensors: operands and results as [`crate::attention`] takes them.

use super::device::stream;
use super::kernel::Output;
use super::storage::MemoryMut;
use super::tensor::Tensor;
use crate::attention::{self, Band, Gradients, Operands, Pass, Problem, Unsupported};
use crate::driver::{DeviceSlice, DeviceSliceMut};
use crate::error::{Error, Result};
use crate::images::{DeviceProperties, MAP_ALIGNMENT};
use crate::types::{DType, Layout, Shape};

const OPERATION: &str = "scaled_dot_product_attention";

/// The order of a result's axes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultOrder {
    /// (batch, heads, length, head dimension).
    ByHead,
    /// (batch, length, heads, head dimension).
    ByPosition,
}

/// Queries, keys and values that an engine of the device takes, of (batch, heads, length, head dimension).
pub(crate) struct Attention {
    inputs: [Tensor; 3],
    problem: Problem,
}

/// The result of an attention, and ln Σ exp(scale · score) of each batch, head and query in f32.
pub(crate) struct AttentionResult {
    pub result: Tensor,
    pub lse: Tensor,
}

impl Attention {
    /// Returns the attention, or the reason why no engine computes it. Operands that the engine does not take as they are stored are
    /// copied.
    ///
    /// # Errors
    ///
    /// The errors of copies and of the device.
    pub fn new(
        inputs: [Tensor; 3],
        band: Band,
        scale: f64,
        pass: Pass,
    ) -> Result<std::result::Result<Attention, Unsupported>> {
        let [queries, keys, values] = &inputs;
        let dtype = queries.dtype();
        let device = queries.device();
        let is_alike = |other: &Tensor| other.dtype() == dtype && other.device() == device;
        let Some(properties) = device.as_cuda().map(DeviceProperties::from_device).transpose()? else {
            return Ok(Err(Unsupported::NoDevice));
        };
        if !is_alike(keys) || !is_alike(values) {
            return Ok(Err(Unsupported::Different));
        }
        let problem = |inputs: &[Tensor; 3]| {
            let [queries, keys, values] = inputs.each_ref().map(|input| *input.layout());
            Problem { band, scale, ..Problem::new(dtype, queries, keys, values) }
        };
        let mut found = Attention { problem: problem(&inputs), inputs };
        for index in 0..found.inputs.len() {
            let reason = attention::unsupported(&found.problem, pass, properties);
            let is_copied = match reason {
                None => !is_aligned(&found.inputs[index])?,
                Some(Unsupported::Layout(_)) => true,
                Some(reason) => return Ok(Err(reason)),
            };
            if is_copied && (!found.inputs[index].is_contiguous() || !is_aligned(&found.inputs[index])?) {
                found.inputs[index] = found.inputs[index].copy()?;
                found.problem = problem(&found.inputs);
            }
        }
        Ok(match attention::unsupported(&found.problem, pass, properties) {
            Some(reason) => Err(reason),
            None => Ok(found),
        })
    }

    /// Returns the result, which is stored in this order, and the LSE.
    ///
    /// # Errors
    ///
    /// As [`attention::forward`].
    pub fn forward(&self, order: ResultOrder) -> Result<AttentionResult> {
        let [queries, keys, values] = &self.inputs;
        let device = queries.device();
        let &[batch, heads, length, dimension] = &queries.shape()[..] else { return Err(four_axes(queries)) };
        let (sizes, layout) = match order {
            ResultOrder::ByHead => {
                let sizes = [batch, heads, length, dimension];
                (sizes, Layout::contiguous(&sizes)?)
            }
            ResultOrder::ByPosition => {
                let sizes = [batch, length, heads, dimension];
                (sizes, Layout::contiguous(&sizes)?.transpose(1, 2)?)
            }
        };
        let mut result = Output::new(&device, queries.dtype(), &sizes)?;
        let mut lse = Output::new(&device, DType::F32, &[batch, heads, length])?;
        let operands = Operands::new(memory(queries)?, memory(keys)?, memory(values)?);
        let (mut of_result, mut of_lse) = (result.memory_mut(), lse.memory_mut());
        let to = (written(&mut of_result)?, &layout);
        let stream = stream(&device)?;
        attention::forward(&stream, &self.problem, operands, to, written(&mut of_lse)?.reinterpret()?)?;
        let result = result.into_tensor();
        let result = if order == ResultOrder::ByPosition { result.transpose(1, 2)? } else { result };
        Ok(AttentionResult { result, lse: lse.into_tensor() })
    }

    /// Returns the gradients of queries, keys and values, by the gradient of the result.
    ///
    /// # Errors
    ///
    /// As [`attention::backward`].
    pub fn backward(&self, forward: &AttentionResult, gradient: &Tensor) -> Result<[Tensor; 3]> {
        let shapes: [Shape; 3] = self.inputs.each_ref().map(|input| *input.shape());
        let [queries, keys, values] = shapes.map(|shape| shape.iter().product::<usize>());
        let mut memory = Output::new(&gradient.device(), gradient.dtype(), &[queries + keys + values])?;
        let starts = [0, queries, queries + keys];
        let mut layouts = [Layout::contiguous(&[0])?; 3];
        for ((layout, shape), start) in layouts.iter_mut().zip(&shapes).zip(starts) {
            *layout = Layout::strided(shape, Layout::from_shape(*shape).strides(), start)?;
        }
        self.backward_to(forward, gradient, &mut memory, layouts)?;
        let memory = memory.into_tensor();
        let part = |index: usize| {
            let shape = shapes[index];
            let sizes: Vec<isize> = shape.iter().map(|size| *size as isize).collect();
            memory.narrow(0, starts[index], shape.iter().product())?.reshape(&sizes)
        };
        Ok([part(0)?, part(1)?, part(2)?])
    }

    /// Writes the gradients of queries, keys and values in these layouts of an output's memory.
    ///
    /// # Errors
    ///
    /// As [`attention::backward`].
    pub fn backward_to(
        &self,
        forward: &AttentionResult,
        gradient: &Tensor,
        to: &mut Output,
        layouts: [Layout; 3],
    ) -> Result<()> {
        let [queries, keys, values] = &self.inputs;
        let mut to = to.memory_mut();
        let is_taken = attention::is_mapped(gradient.layout()) && is_aligned(gradient)?;
        let copy = if is_taken { None } else { Some(gradient.copy()?) };
        let gradient = copy.as_ref().unwrap_or(gradient);
        let operands = Operands::new(memory(queries)?, memory(keys)?, memory(values)?);
        let stream = stream(&queries.device())?;
        attention::backward(
            &stream,
            &self.problem,
            operands,
            (memory(&forward.result)?, forward.result.layout()),
            memory(&forward.lse)?.reinterpret()?,
            (memory(gradient)?, gradient.layout()),
            Gradients { memory: written(&mut to)?, layouts },
        )
    }
}

/// Returns whether a tensor's memory begins at a multiple of 16 bytes.
fn is_aligned(tensor: &Tensor) -> Result<bool> {
    Ok(memory(tensor)?.address().is_multiple_of(MAP_ALIGNMENT as u64))
}

fn memory(tensor: &Tensor) -> Result<DeviceSlice<'_, u8>> {
    tensor.memory().cuda(OPERATION).map(DeviceSlice::from)
}

fn written<'a>(memory: &'a mut MemoryMut<'_>) -> Result<DeviceSliceMut<'a, u8>> {
    memory.cuda(OPERATION)?.slice_mut(..)
}

fn four_axes(queries: &Tensor) -> Error {
    Error::invalid(OPERATION, format!("queries of shape {}", queries.shape()), "four axes")
}
