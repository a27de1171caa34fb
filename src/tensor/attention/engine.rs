//! Attention that stores no scores, of tensors: operands and results as [`crate::attention`] takes them, on the CPU or a device.

use half::{bf16, f16};

use super::super::device::stream;
use super::super::kernel::Output;
use super::super::storage::MemoryMut;
use super::super::tensor::Tensor;
use super::super::traced;
use super::OPERATION;
use super::dropout::DropoutState;
use super::options::AttentionOptions;
use super::sequences::SequenceOffsets;
use crate::attention::{
    self, Band, Dropout, Gradients, HostElement, HostGradients, HostOperands, Operands, Pass, Problem,
    Unsupported,
};
use crate::driver::{DeviceSlice, DeviceSliceMut};
use crate::error::{Error, Result};
use crate::images::{DeviceProperties, MAP_ALIGNMENT};
use crate::types::{DType, Layout, Shape};

/// The name of the gradients in a trace.
const BACKWARD: &str = "scaled_dot_product_attention backward";

/// The order of a result's axes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultOrder {
    /// (batch, heads, length, head dimension).
    ByHead,
    /// (batch, length, heads, head dimension).
    ByPosition,
}

/// How scores become probabilities, with what the memory of the operands' device holds for it.
#[derive(Clone)]
pub(crate) struct AttentionSettings {
    band: Band,
    scale: f64,
    soft_cap: Option<f64>,
    dropout: Option<DropoutState>,
    offsets: Option<SequenceOffsets>,
}

impl AttentionSettings {
    fn problem(&self, inputs: &[Tensor; 3]) -> Problem {
        let [queries, keys, values] = inputs.each_ref().map(|input| *input.layout());
        Problem {
            band: self.band,
            scale: self.scale,
            soft_cap: self.soft_cap,
            dropout: self.dropout.as_ref().map(|state| state.dropout),
            sequences: self.offsets.as_ref().map(|offsets| offsets.sequences),
            ..Problem::new(inputs[0].dtype(), queries, keys, values)
        }
    }

    fn is_packed(&self) -> bool {
        self.offsets.as_ref().is_some_and(|offsets| offsets.sequences.is_packed)
    }
}

/// Queries, keys and values that an engine takes, of (batch, heads, length, head dimension).
pub(crate) struct Attention {
    inputs: [Tensor; 3],
    problem: Problem,
    settings: AttentionSettings,
}

/// The result of an attention, and ln Σ exp(scale · score) of each batch, head and query: f64 for f64, else f32.
pub(crate) struct AttentionResult {
    pub result: Tensor,
    pub lse: Tensor,
}

impl Attention {
    /// Returns the attention, or `None` if no engine computes it, with the reason in the log. Random bits are taken for it from the generator.
    /// Operands that a device's engine does not take as they are stored are copied.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for options that no form of attention takes; the errors of copies and of the device.
    pub fn new(inputs: &[Tensor; 3], options: &AttentionOptions, pass: Pass) -> Result<Option<Attention>> {
        options.check()?;
        let composed = |reason: &dyn std::fmt::Display| {
            log::debug!("{OPERATION} stores its scores: {reason}");
            traced::unplanned(OPERATION, reason);
            Ok(None)
        };
        if options.mask.is_some() {
            return composed(&"a mask");
        }
        let [queries, keys, _] = inputs;
        let (&[batch, heads, length, dimension], &[_, _, key_length, _]) =
            (&queries.shape()[..], &keys.shape()[..])
        else {
            return composed(&"not four axes");
        };
        let device = queries.device();
        let offsets = match &options.lengths {
            Some(lengths) => Some(SequenceOffsets::new(lengths, [batch, length, key_length], &device)?),
            None => None,
        };
        let threshold = options.threshold();
        let unknown = DropoutState { dropout: Dropout { seed: 0, offset: 0, threshold }, memory: None };
        let mut settings = AttentionSettings {
            band: options.band(),
            scale: options.scale_of(dimension),
            soft_cap: options.soft_cap,
            dropout: (threshold > 0).then_some(unknown),
            offsets,
        };
        let inputs = match taken(inputs.clone(), &settings, pass)? {
            Ok(inputs) => inputs,
            Err(reason) => return composed(&reason),
        };
        if threshold > 0 {
            let (count, most) = match &settings.offsets {
                Some(offsets) => {
                    (offsets.sequences.count, [offsets.sequences.max_queries, offsets.sequences.max_keys])
                }
                None => (batch, [length, key_length]),
            };
            let blocks = Dropout::blocks(count, heads, most[0], most[1]);
            let state = DropoutState::take(options.generator.as_ref(), threshold, blocks, &device)?;
            settings.dropout = Some(state);
        }
        Ok(Some(Attention { problem: settings.problem(&inputs), inputs, settings }))
    }

    /// Returns the attention of a forward with these settings for its backward.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for other operands than the forward's; as [`new`](Self::new).
    pub fn again(inputs: [Tensor; 3], settings: AttentionSettings) -> Result<Attention> {
        let inputs = taken(inputs, &settings, Pass::Backward)?
            .map_err(|reason| Error::invalid(OPERATION, reason.to_string(), "the operands of the forward"))?;
        Ok(Attention { problem: settings.problem(&inputs), inputs, settings })
    }

    /// Returns the settings alone.
    pub fn into_settings(self) -> AttentionSettings {
        self.settings
    }

    /// Returns the result, which is stored in this order, and the LSE.
    ///
    /// # Errors
    ///
    /// As [`attention::forward`].
    pub fn forward(&self, order: ResultOrder) -> Result<AttentionResult> {
        let _traced = traced::operation(OPERATION, self.inputs.iter(), None);
        let [queries, _, values] = &self.inputs;
        let device = queries.device();
        let &[batch, heads, length, _] = &queries.shape()[..] else { return Err(four_axes(queries)) };
        let dimension = values.shape().last().copied().unwrap_or(0);
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
        let dtype = queries.dtype();
        let of_lse = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let mut result = Output::new(&device, dtype, &sizes)?;
        let mut lse = Output::new(&device, of_lse, &[batch, heads, length])?;
        let (mut to, mut to_lse) = (result.memory_mut(), lse.memory_mut());
        self.clear_unless_all_is_written(&mut to)?;
        if device.as_cuda().is_some() {
            let operands = self.operands()?;
            let to = (written(&mut to)?, &layout);
            let stream = stream(&device)?;
            attention::forward(&stream, &self.problem, operands, to, written(&mut to_lse)?.reinterpret()?)?;
        } else {
            let (to, to_lse) = (to.host(OPERATION)?, to_lse.host(OPERATION)?);
            match dtype {
                DType::F16 => self.forward_on_host::<f16>((to, &layout), to_lse)?,
                DType::BF16 => self.forward_on_host::<bf16>((to, &layout), to_lse)?,
                DType::F32 => self.forward_on_host::<f32>((to, &layout), to_lse)?,
                _ => self.forward_on_host::<f64>((to, &layout), to_lse)?,
            }
        }
        let result = result.into_tensor();
        let result = if order == ResultOrder::ByPosition { result.transpose(1, 2)? } else { result };
        Ok(AttentionResult { result, lse: lse.into_tensor() })
    }

    fn forward_on_host<T: HostElement>(
        &self,
        (to, layout): (&mut [u8], &Layout),
        lse: &mut [u8],
    ) -> Result<()> {
        let [queries, keys, values] = self.inputs.each_ref().map(|input| elements::<T>(input));
        let sequences = self.host_sequences()?;
        let operands = HostOperands { queries: queries?, keys: keys?, values: values?, sequences };
        attention::forward_host(&self.problem, operands, (cast_mut(to)?, layout), cast_mut(lse)?)
    }

    /// Returns the table of sequences on the CPU.
    fn host_sequences(&self) -> Result<Option<&[i32]>> {
        self.settings.offsets.as_ref().map(|offsets| offsets.table.as_slice()).transpose()
    }

    /// Returns the operands on a device.
    fn operands(&self) -> Result<Operands<'_>> {
        let [queries, keys, values] = &self.inputs;
        let sequences =
            self.settings.offsets.as_ref().map(|offsets| offsets.table.device_slice()).transpose()?;
        let state = self.settings.dropout.as_ref().and_then(|state| state.memory.as_ref());
        // The seed is the first number of the generator's state, and its block the second one.
        let generator = state.map(|state| memory(&state.seed)?.reinterpret()).transpose()?;
        Ok(Operands {
            sequences,
            generator,
            ..Operands::new(memory(queries)?, memory(keys)?, memory(values)?)
        })
    }

    /// Writes zeros where positions are in no sequence.
    fn clear_unless_all_is_written(&self, to: &mut MemoryMut<'_>) -> Result<()> {
        if !self.settings.is_packed() {
            return Ok(());
        }
        match self.inputs[0].device().as_cuda().is_some() {
            true => {
                let stream = stream(&self.inputs[0].device())?;
                stream.fill(to.cuda(OPERATION)?, 0)
            }
            false => {
                to.host(OPERATION)?.fill(0);
                Ok(())
            }
        }
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
        let _traced = traced::operation(BACKWARD, self.inputs.iter().chain([gradient]), None);
        let dtype = gradient.dtype();
        let device = self.inputs[0].device();
        let mut to = to.memory_mut();
        self.clear_unless_all_is_written(&mut to)?;
        if device.as_cuda().is_none() {
            let to = to.host(OPERATION)?;
            return match dtype {
                DType::F16 => self.backward_on_host::<f16>(forward, gradient, to, layouts),
                DType::BF16 => self.backward_on_host::<bf16>(forward, gradient, to, layouts),
                DType::F32 => self.backward_on_host::<f32>(forward, gradient, to, layouts),
                _ => self.backward_on_host::<f64>(forward, gradient, to, layouts),
            };
        }
        let is_taken = attention::is_mapped(gradient.layout()) && is_aligned(gradient)?;
        let copy = if is_taken { None } else { Some(gradient.copy()?) };
        let gradient = copy.as_ref().unwrap_or(gradient);
        let stream = stream(&device)?;
        attention::backward(
            &stream,
            &self.problem,
            self.operands()?,
            (memory(&forward.result)?, forward.result.layout()),
            memory(&forward.lse)?.reinterpret()?,
            (memory(gradient)?, gradient.layout()),
            Gradients { memory: written(&mut to)?, layouts },
        )
    }

    fn backward_on_host<T: HostElement>(
        &self,
        forward: &AttentionResult,
        gradient: &Tensor,
        to: &mut [u8],
        layouts: [Layout; 3],
    ) -> Result<()> {
        let [queries, keys, values] = self.inputs.each_ref().map(|input| elements::<T>(input));
        let sequences = self.host_sequences()?;
        attention::backward_host(
            &self.problem,
            HostOperands { queries: queries?, keys: keys?, values: values?, sequences },
            (elements(&forward.result)?, forward.result.layout()),
            elements(&forward.lse)?,
            (elements(gradient)?, gradient.layout()),
            HostGradients { memory: cast_mut(to)?, layouts },
        )
    }
}

/// Returns the operands as an engine takes them, or the reason why none does.
fn taken(
    mut inputs: [Tensor; 3],
    settings: &AttentionSettings,
    pass: Pass,
) -> Result<std::result::Result<[Tensor; 3], Unsupported>> {
    let [queries, keys, values] = &inputs;
    let (dtype, device) = (queries.dtype(), queries.device());
    let is_alike = |other: &Tensor| other.dtype() == dtype && other.device() == device;
    if !is_alike(keys) || !is_alike(values) {
        return Ok(Err(Unsupported::Different));
    }
    let Some(properties) = device.as_cuda().map(DeviceProperties::from_device).transpose()? else {
        return Ok(match attention::unsupported_on_host(&settings.problem(&inputs)) {
            Some(reason) => Err(reason),
            None => Ok(inputs),
        });
    };
    for index in 0..inputs.len() {
        let is_copied = match attention::unsupported(&settings.problem(&inputs), pass, properties) {
            None => !is_aligned(&inputs[index])?,
            Some(Unsupported::Layout(_)) => true,
            Some(reason) => return Ok(Err(reason)),
        };
        if is_copied && (!inputs[index].is_contiguous() || !is_aligned(&inputs[index])?) {
            inputs[index] = inputs[index].copy()?;
        }
    }
    Ok(match attention::unsupported(&settings.problem(&inputs), pass, properties) {
        Some(reason) => Err(reason),
        None => Ok(inputs),
    })
}

/// Returns the memory of a tensor on the CPU, from its layout's offset 0 on.
fn elements<T: bytemuck::Pod>(tensor: &Tensor) -> Result<&[T]> {
    bytemuck::try_cast_slice(tensor.memory().host(OPERATION)?).map_err(misaligned)
}

fn cast_mut<T: bytemuck::Pod>(bytes: &mut [u8]) -> Result<&mut [T]> {
    bytemuck::try_cast_slice_mut(bytes).map_err(misaligned)
}

fn misaligned(error: bytemuck::PodCastError) -> Error {
    Error::invalid(OPERATION, format!("memory of elements: {error}"), "memory at a multiple of their size")
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
