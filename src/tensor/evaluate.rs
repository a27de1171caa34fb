//! Runs expressions on tensors. All elementwise work goes through here, on either device.
//!
//! Invariants: an input is never memory that an output writes, except as [`OperandSource::Output`]. Outputs are held
//! exclusively, so the borrow says it.

use std::borrow::Cow;

use super::device::stream;
use super::kernel::{Output, OutputTarget};
use super::storage::{MemoryMut, Shared, Storage, bytes_of, not_on_a_device};
use super::tensor::{Tensor, mismatch, one_device};
use super::traced;
use crate::driver::Stream;
use crate::error::{Error, Result};
use crate::fuse::{Expression, HostInput, HostOutput, Number, RunOperand, with_operand_list};
use crate::types::{DType, Layout, Shape};

const OPERATION: &str = "an elementwise run";
/// The most elements of a run whose preparation takes longer than its elements.
const FEW_ELEMENTS: usize = 2048;
/// The most inputs of a cached operation.
const FEW_INPUTS: usize = 3;

/// An operand that a run reads.
#[derive(Clone, Copy)]
pub(crate) enum OperandSource<'a> {
    Tensor(&'a Tensor),
    /// The elements of an output before the run.
    Output(usize),
}

impl<'a> OperandSource<'a> {
    #[inline]
    pub(super) fn tensor(&self) -> Option<&'a Tensor> {
        match self {
            OperandSource::Tensor(tensor) => Some(tensor),
            OperandSource::Output(_) => None,
        }
    }
}

/// The elements that a run reads and writes.
pub(super) fn moved<'s: 't, 't>(
    sources: impl Iterator<Item = OperandSource<'s>>,
    targets: &'t [OutputTarget<'_>],
) -> impl Iterator<Item = (DType, &'t Layout)> {
    let read = sources.filter_map(|source| match source {
        OperandSource::Tensor(tensor) => Some((tensor.dtype(), tensor.layout())),
        OperandSource::Output(index) => targets.get(index).map(OutputTarget::elements),
    });
    targets.iter().map(OutputTarget::elements).chain(read)
}

/// The shape that tensors have together: the first one's own, where it is that.
///
/// # Errors
///
/// As [`Shape::broadcast`].
#[inline]
pub(crate) fn broadcast<'a>(
    operation: &'static str,
    tensors: impl IntoIterator<Item = &'a Tensor>,
) -> Result<Cow<'a, Shape>> {
    let mut tensors = tensors.into_iter();
    let mut shape = Cow::Borrowed(tensors.next().map_or(&Shape::SCALAR, Tensor::shape));
    for tensor in tensors {
        if *shape != *tensor.shape() {
            shape = Cow::Owned(shape.broadcast_in(operation, tensor.shape())?);
        }
    }
    Ok(shape)
}

/// Tensors with what the expression computes from the inputs, which are broadcast to one shape.
///
/// # Errors
///
/// [`Error::DeviceMismatch`], [`Error::InvalidArgument`] for shapes that do not broadcast or where there is no input, and
/// those of [`Expression::run`].
pub(crate) fn evaluate(
    expression: &Expression,
    inputs: &[&Tensor],
    scalars: &[Number],
) -> Result<Vec<Tensor>> {
    let device = one_device(OPERATION, inputs.iter().copied())?;
    let shape = broadcast(OPERATION, inputs.iter().copied())?;
    let fresh = expression.outputs().iter().map(|&dtype| Output::of_shape(&device, dtype, &shape));
    let mut fresh = fresh.collect::<Result<Vec<Output>>>()?;
    let sources: Vec<OperandSource<'_>> = inputs.iter().map(|&input| OperandSource::Tensor(input)).collect();
    let mut targets: Vec<OutputTarget<'_>> = fresh.iter_mut().map(OutputTarget::all).collect();
    evaluate_into(expression, &sources, scalars, &mut targets)?;
    Ok(fresh.into_iter().map(Output::into_tensor).collect())
}

/// As [`evaluate`], of an expression with one output; errors have the operation's name.
pub(super) fn evaluate_one(
    operation: &'static str,
    expression: &Expression,
    sources: &[OperandSource<'_>],
    scalars: &[Number],
) -> Result<Tensor> {
    let tensors = || sources.iter().filter_map(OperandSource::tensor);
    let device = one_device(operation, tensors())?;
    let &[dtype] = expression.outputs() else {
        let (wanted, found) = (1, expression.outputs().len());
        return Err(Error::LengthMismatch { operation, wanted, found });
    };
    let made;
    let layout = match common_layout(tensors()) {
        Some(layout) => layout,
        None => {
            made = Layout::from_shape(*broadcast(operation, tensors())?);
            &made
        }
    };
    let moved = tensors().map(|tensor| (tensor.dtype(), tensor.layout())).chain([(dtype, layout)]);
    let _traced = traced::run(operation, tensors(), Some((dtype, layout)), moved);
    // As in `Output`, and the layout is copied once.
    let storage = if device.is_cpu() {
        let mut storage = Storage::uninitialized(&device, dtype, layout.shape())?;
        if scalars.is_empty() && run_few(operation, expression, sources, (&mut storage, layout))? {
            return Ok(Tensor::of(storage.into(), dtype, *layout));
        }
        let target = OutputTarget::new(storage.memory_mut(), dtype, layout);
        run_on_host(expression, sources, scalars, &mut [target])?;
        storage.into()
    } else {
        let stream = stream(&device)?;
        let mut memory = stream.uninitialized(bytes_of(dtype, layout.shape())?)?;
        let target = OutputTarget::new(MemoryMut::Cuda(&mut memory), dtype, layout);
        run_on_device(&stream, expression, sources, scalars, &mut [target])?;
        Shared::of_buffer(memory.into())
    };
    Ok(Tensor::of(storage, dtype, *layout))
}

/// The layout of a fresh tensor of the shape that tensors have together, where the first one's is that.
#[inline]
fn common_layout<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Option<&'a Layout> {
    let mut tensors = tensors.into_iter();
    let first = tensors.next()?.layout();
    let is_common = first.is_from_shape() && tensors.all(|tensor| tensor.shape() == first.shape());
    is_common.then_some(first)
}

/// As [`evaluate`], into memory that is there; inputs are broadcast to the targets' shape.
///
/// # Errors
///
/// As [`evaluate`].
pub(crate) fn evaluate_into(
    expression: &Expression,
    sources: &[OperandSource<'_>],
    scalars: &[Number],
    targets: &mut [OutputTarget<'_>],
) -> Result<()> {
    evaluate_named(OPERATION, expression, sources, scalars, targets)
}

/// As [`evaluate_into`], with the operation's name in errors.
pub(super) fn evaluate_named(
    operation: &'static str,
    expression: &Expression,
    sources: &[OperandSource<'_>],
    scalars: &[Number],
    targets: &mut [OutputTarget<'_>],
) -> Result<()> {
    let tensors = sources.iter().filter_map(OperandSource::tensor);
    let result = targets.first().map(OutputTarget::elements);
    let _traced = traced::run(operation, tensors, result, moved(sources.iter().copied(), targets));
    let Some(first) = targets.first() else {
        return Err(Error::invalid(operation, "no outputs", "at least one"));
    };
    let device = first.memory.device();
    for tensor in sources.iter().filter_map(OperandSource::tensor) {
        check_broadcast(operation, tensor, first.layout.shape())?;
    }
    let tensors = sources.iter().filter_map(OperandSource::tensor).map(Tensor::device);
    let mut others = tensors.chain(targets.iter().map(|target| target.memory.device()));
    if let Some(other) = others.find(|other| *other != device) {
        return Err(mismatch(operation, device, other));
    }
    if device.is_cpu() {
        return run_on_host(expression, sources, scalars, targets);
    }
    run_on_device(&*stream(&device)?, expression, sources, scalars, targets)
}

/// Checks that a tensor broadcasts to an output's shape.
#[inline]
fn check_broadcast(operation: &'static str, tensor: &Tensor, shape: &Shape) -> Result<()> {
    if tensor.shape() == shape || tensor.layout().expand(shape).is_ok() {
        return Ok(());
    }
    let found = format!("shape {} for an output of shape {shape}", tensor.shape());
    Err(Error::invalid(operation, found, "a shape that broadcasts to the output's"))
}

/// Runs on few elements of the CPU, all in the order of a fresh tensor of the output's layout, without the preparation of
/// [`run_on_host`]. Returns false if they are not, or if the expression has no machine code yet.
///
/// # Errors
///
/// As [`Memory::host`](super::storage::Memory::host).
fn run_few(
    operation: &'static str,
    expression: &Expression,
    sources: &[OperandSource<'_>],
    (storage, layout): (&mut Storage, &Layout),
) -> Result<bool> {
    let count = layout.count();
    let dtypes = expression.inputs();
    if !(1..=FEW_ELEMENTS).contains(&count) || sources.len() > FEW_INPUTS || sources.len() != dtypes.len() {
        return Ok(false);
    }
    let mut operands = [std::ptr::null_mut(); FEW_INPUTS + 1];
    for ((operand, source), &dtype) in operands.iter_mut().zip(sources).zip(dtypes) {
        let OperandSource::Tensor(tensor) = source else { return Ok(false) };
        let memory = tensor.memory().host(operation)?;
        let is_plain = tensor.layout().is_from_shape() && tensor.shape() == layout.shape();
        if !is_plain || tensor.dtype() != dtype || memory.len() < count * dtype.size() {
            return Ok(false);
        }
        *operand = memory.as_ptr().cast_mut();
    }
    operands[sources.len()] = storage.memory_mut().into_host(operation)?.as_mut_ptr();
    // SAFETY: the memory has all elements, and the output's is fresh. Machine code reads and writes at any address.
    Ok(unsafe { expression.run_few_on_host(&operands[..=sources.len()], count) })
}

/// Runs on memory of the CPU.
fn run_on_host(
    expression: &Expression,
    sources: &[OperandSource<'_>],
    scalars: &[Number],
    targets: &mut [OutputTarget<'_>],
) -> Result<()> {
    // Operands are large, and collecting results would move each twice more.
    let mut outputs = Vec::with_capacity(targets.len());
    for target in targets {
        outputs.push(host_output(target)?);
    }
    let mut inputs = Vec::with_capacity(sources.len());
    for source in sources {
        inputs.push(host_input(source, &outputs)?);
    }
    expression.run_host(&inputs, scalars, &mut outputs)
}

fn host_output<'a>(target: &'a mut OutputTarget<'_>) -> Result<HostOutput<'a>> {
    HostOutput::of_bytes(target.dtype, target.memory.host(OPERATION)?, *target.layout)
}

fn host_input<'a>(source: &OperandSource<'a>, outputs: &[HostOutput<'a>]) -> Result<HostInput<'a>> {
    match *source {
        OperandSource::Tensor(tensor) => tensor.host_input(OPERATION),
        OperandSource::Output(index) => match outputs.get(index) {
            Some(output) => Ok(HostInput::output(index, output)),
            None => Err(missing(index)),
        },
    }
}

/// Runs on memory of a CUDA device. Each operand is written where the run reads it: small operations are as cheap as their
/// launch, and to hand operands on as results costs more than the rest of its preparation.
fn run_on_device(
    stream: &Stream,
    expression: &Expression,
    sources: &[OperandSource<'_>],
    scalars: &[Number],
    targets: &mut [OutputTarget<'_>],
) -> Result<()> {
    let count = sources.len() + targets.len();
    let mut outputs = targets.iter_mut().map(|target| {
        let memory = target.memory.cuda_buffer()?;
        Some(RunOperand::write(target.dtype, memory, target.layout))
    });
    let Some(first) = outputs.next().flatten() else { return Err(not_on_a_device(OPERATION)) };
    with_operand_list(count, first, |operands| {
        let (of_sources, of_targets) = operands.split_at_mut(sources.len());
        for (at, output) in outputs.enumerate() {
            let Some(output) = output else { return Err(not_on_a_device(OPERATION)) };
            of_targets[1 + at] = output;
        }
        for (at, source) in sources.iter().enumerate() {
            of_sources[at] = match *source {
                OperandSource::Tensor(tensor) => match tensor.memory().cuda_buffer() {
                    Some(memory) => RunOperand::read(tensor.dtype(), memory, tensor.layout()),
                    None => return tensor.memory().cuda(OPERATION).map(|_| ()),
                },
                OperandSource::Output(index) => match of_targets.get(index) {
                    Some(output) => output.in_place(),
                    None => return Err(missing(index)),
                },
            };
        }
        expression.run_operands(stream, operands, sources.len(), scalars)
    })
}

#[cold]
fn missing(index: usize) -> Error {
    Error::invalid(OPERATION, format!("an input in place of output {index}"), "an output of the run")
}
