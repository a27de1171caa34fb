//! Custom kernels on tensors: an operation with an implementation for the CPU and one for CUDA devices.
//!
//! [`run`] is where an operation meets memory: it finds the device that the tensors share, resolves inputs and outputs to
//! their memory and layout once, picks this thread's stream, and calls the implementation for the device. Results go to
//! an [`Output`], memory of any dtype and shape that nobody else has, or into a tensor that is there.
//!
//! ```
//! use selvedge::driver::{Function, LaunchConfig};
//! use selvedge::tensor::kernel::{self, Output};
//! use selvedge::tensor::{Device, Tensor};
//!
//! /// x / (1 + |x|), on CUDA devices by the kernel softsign(const float *x, float *y, unsigned n).
//! fn softsign(x: &Tensor, function: impl Fn() -> selvedge::Result<Function>) -> selvedge::Result<Tensor> {
//!     let (x, n) = (x.contiguous()?, x.count());
//!     let mut y = Output::new(&x.device(), x.dtype(), x.shape())?;
//!     kernel::run(
//!         "softsign",
//!         [&x],
//!         [&mut y],
//!         |[x], [mut y]| y.write(x.as_slice::<f32>()?.iter().map(|x| x / (1.0 + x.abs()))),
//!         |stream, [x], [mut y]| {
//!             let arguments = (x.as_slice::<f32>()?, y.as_slice_mut::<f32>()?, n as u32);
//!             // SAFETY: the kernel reads and writes n elements.
//!             unsafe { function()?.launch(stream, LaunchConfig::for_elements(n), arguments) }
//!         },
//!     )?;
//!     Ok(y.into_tensor())
//! }
//!
//! let x = Tensor::new([1.0f32, -3.0, 0.0], &Device::cpu())?;
//! assert_eq!(softsign(&x, || unreachable!())?.to_vec::<f32>()?, [0.5, -0.75, 0.0]);
//! # Ok::<(), selvedge::Error>(())
//! ```
//!
//! `examples/17-custom-operation.rs` is the same with its kernel. An error that only the kernel can find is a
//! [`KernelError`](crate::driver::KernelError). In a capture the launch becomes part of the graph, as those of tensors do.
//!
//! Invariants: an output's memory is held exclusively, so it is never an input's; it is written on the thread's stream.

use super::device::{CurrentStream, Device, stream};
use super::evaluate::{OperandSource, moved};
use super::in_place::TensorMut;
use super::storage::{HostMemory, MemoryMut, Shared, Storage, bytes_of};
use super::tensor::{Tensor, mismatch};
use super::traced;
use crate::driver::Stream;
use crate::error::{Error, Result};
pub use crate::fuse::{DeviceInput, DeviceOutput, HostInput, HostOutput};
use crate::types::{DType, Layout, Shape};

/// Memory for a contiguous tensor that nobody else has. Its contents are unspecified until they are written.
pub struct Output {
    storage: Storage,
    dtype: DType,
    layout: Layout,
}

impl Output {
    /// For elements of this dtype and shape.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more elements than there can be, [`Error::OutOfMemory`] where there is no memory for
    /// them, and the driver's.
    pub fn new(device: &Device, dtype: DType, shape: &[usize]) -> Result<Output> {
        Output::of_shape(device, dtype, &Shape::new(shape)?)
    }

    /// As [`new`](Self::new).
    pub(crate) fn of_shape(device: &Device, dtype: DType, shape: &Shape) -> Result<Output> {
        let storage = Storage::uninitialized(device, dtype, shape)?;
        Ok(Output { storage, dtype, layout: Layout::from_shape(*shape) })
    }

    /// As [`new`](Self::new), of zeros on the CPU.
    pub(crate) fn zeros_on_host(dtype: DType, shape: &[usize]) -> Result<Output> {
        let shape = Shape::new(shape)?;
        let storage = Storage::Host(HostMemory::zeros(bytes_of(dtype, &shape)?)?);
        Ok(Output { storage, dtype, layout: Layout::from_shape(shape) })
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> &Shape {
        self.layout.shape()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// All of its memory, in bytes.
    pub(crate) fn memory_mut(&mut self) -> MemoryMut<'_> {
        self.storage.memory_mut()
    }

    /// The tensor, once every element was written.
    pub fn into_tensor(self) -> Tensor {
        Tensor::of(Shared::from(self.storage), self.dtype, self.layout)
    }
}

/// Elements of memory that a run has alone. A layout is hundreds of bytes, so it is not copied.
pub struct OutputTarget<'a> {
    pub(super) memory: MemoryMut<'a>,
    pub(super) dtype: DType,
    pub(super) layout: &'a Layout,
}

impl<'a> OutputTarget<'a> {
    /// A part of memory, in elements of this dtype.
    #[inline]
    pub(crate) fn new(memory: MemoryMut<'a>, dtype: DType, layout: &'a Layout) -> OutputTarget<'a> {
        OutputTarget { memory, dtype, layout }
    }

    /// Returns the dtype and the layout of the elements.
    pub(super) fn elements(&self) -> (DType, &Layout) {
        (self.dtype, self.layout)
    }

    /// Returns the layout of the elements.
    pub(super) fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The same memory in another layout, which was made from this one's.
    pub(super) fn with_layout(self, layout: &'a Layout) -> OutputTarget<'a> {
        OutputTarget { layout, ..self }
    }

    /// The memory, for what is not an expression.
    pub(super) fn into_parts(self) -> (MemoryMut<'a>, DType, &'a Layout) {
        (self.memory, self.dtype, self.layout)
    }

    /// All of an output.
    pub(crate) fn all(output: &'a mut Output) -> OutputTarget<'a> {
        OutputTarget::new(output.storage.memory_mut(), output.dtype, &output.layout)
    }

    /// A part of an output whose other parts are written by other runs.
    pub(crate) fn part(output: &'a mut Output, layout: &'a Layout) -> OutputTarget<'a> {
        OutputTarget::new(output.storage.memory_mut(), output.dtype, layout)
    }
}

/// The destination of a kernel: an [`Output`], whose contents are unspecified before, or a [`Tensor`] or [`TensorMut`], whose
/// elements are there. Elements that are shared with others, or that share addresses, are copied first.
pub trait KernelOutput: sealed::HasTarget {}

impl KernelOutput for Output {}
impl KernelOutput for Tensor {}
impl KernelOutput for TensorMut<'_> {}

mod sealed {
    use super::{Output, OutputTarget, Result, Tensor, TensorMut};

    /// Only the types of this crate are outputs.
    pub trait HasTarget {
        /// The memory to write.
        #[doc(hidden)]
        fn target(&mut self) -> Result<OutputTarget<'_>>;
    }

    impl HasTarget for Output {
        fn target(&mut self) -> Result<OutputTarget<'_>> {
            Ok(OutputTarget::all(self))
        }
    }

    impl HasTarget for Tensor {
        fn target(&mut self) -> Result<OutputTarget<'_>> {
            self.make_unique()?;
            self.part_target(None)
        }
    }

    impl HasTarget for TensorMut<'_> {
        fn target(&mut self) -> Result<OutputTarget<'_>> {
            self.unique_target()
        }
    }
}

/// Runs an operation: `host` with slices of host memory where the tensors are on the CPU, `cuda` with this thread's stream
/// and device memory where they are on a CUDA device. `operation` names it in errors.
///
/// Operands are resolved in their layouts; an implementation that wants elements in row-major order asks for
/// [`HostInput::as_slice`] and its kin, or makes the inputs [`contiguous`](Tensor::contiguous) before.
///
/// # Errors
///
/// [`Error::DeviceMismatch`] for operands on several devices, [`Error::InvalidArgument`] where there are none; those of the
/// implementation, and of copies of outputs that are shared.
pub fn run<const INPUTS: usize, const OUTPUTS: usize>(
    operation: &'static str,
    inputs: [&Tensor; INPUTS],
    mut outputs: [&mut dyn KernelOutput; OUTPUTS],
    host: impl FnOnce([HostInput<'_>; INPUTS], [HostOutput<'_>; OUTPUTS]) -> Result<()>,
    cuda: impl FnOnce(&Stream, [DeviceInput<'_>; INPUTS], [DeviceOutput<'_>; OUTPUTS]) -> Result<()>,
) -> Result<()> {
    let mut targets = Vec::with_capacity(OUTPUTS);
    for output in &mut outputs {
        targets.push(output.target()?);
    }
    run_targets(
        operation,
        inputs.into_iter().map(OperandSource::Tensor),
        &mut targets,
        |inputs, outputs| host(array(operation, inputs)?, array(operation, outputs)?),
        |stream, inputs, outputs| cuda(stream, array(operation, inputs)?, array(operation, outputs)?),
    )
}

/// As many as there are, by their type.
fn array<T, const COUNT: usize>(operation: &'static str, list: Vec<T>) -> Result<[T; COUNT]> {
    let found = list.len();
    list.try_into().map_err(|_| Error::LengthMismatch { operation, wanted: COUNT, found })
}

/// As [`run`], with as many operands as there are at run time, of which some are the elements of a target before the run.
pub(super) fn run_targets<'a>(
    operation: &'static str,
    inputs: impl Iterator<Item = OperandSource<'a>> + Clone,
    targets: &mut [OutputTarget<'_>],
    host: impl FnOnce(Vec<HostInput<'_>>, Vec<HostOutput<'_>>) -> Result<()>,
    cuda: impl FnOnce(&Stream, Vec<DeviceInput<'_>>, Vec<DeviceOutput<'_>>) -> Result<()>,
) -> Result<()> {
    let tensors = inputs.clone().filter_map(|input| input.tensor());
    let result = targets.first().map(OutputTarget::elements);
    let _traced = traced::run(operation, tensors, result, moved(inputs.clone(), targets));
    match KernelOperands::of(operation, inputs, targets)? {
        KernelOperands::Host(inputs, outputs) => host(inputs, outputs),
        KernelOperands::Cuda(stream, inputs, outputs) => cuda(&stream, inputs, outputs),
    }
}

#[cold]
fn missing(operation: &'static str, index: usize) -> Error {
    Error::invalid(operation, format!("an input in place of output {index}"), "an output of the run")
}

/// The operands of an implementation, on the device that they share.
enum KernelOperands<'a> {
    Host(Vec<HostInput<'a>>, Vec<HostOutput<'a>>),
    Cuda(CurrentStream, Vec<DeviceInput<'a>>, Vec<DeviceOutput<'a>>),
}

impl<'a> KernelOperands<'a> {
    fn of<'i: 'a>(
        operation: &'static str,
        inputs: impl Iterator<Item = OperandSource<'i>> + Clone,
        targets: &'a mut [OutputTarget<'_>],
    ) -> Result<KernelOperands<'a>> {
        let mut devices = targets
            .iter()
            .map(|target| target.memory.device())
            .chain(inputs.clone().filter_map(|input| input.tensor()).map(Tensor::device));
        let Some(device) = devices.next() else {
            return Err(Error::invalid(operation, "no tensors", "at least one"));
        };
        if let Some(other) = devices.find(|other| *other != device) {
            return Err(mismatch(operation, device, other));
        }
        drop(devices);
        if device.is_cpu() {
            let mut of_outputs = Vec::with_capacity(targets.len());
            for target in targets {
                let memory = target.memory.host(operation)?;
                of_outputs.push(HostOutput::of_bytes(target.dtype, memory, *target.layout)?);
            }
            let mut of_inputs = Vec::with_capacity(inputs.size_hint().0);
            for input in inputs {
                of_inputs.push(match input {
                    OperandSource::Tensor(tensor) => tensor.host_input(operation)?,
                    OperandSource::Output(index) => {
                        let output = of_outputs.get(index).ok_or_else(|| missing(operation, index))?;
                        HostInput::output(index, output)
                    }
                });
            }
            return Ok(KernelOperands::Host(of_inputs, of_outputs));
        }
        let mut of_outputs = Vec::with_capacity(targets.len());
        for target in targets {
            let memory = target.memory.cuda(operation)?;
            of_outputs.push(DeviceOutput::of_bytes(target.dtype, memory, *target.layout)?);
        }
        let mut of_inputs = Vec::with_capacity(inputs.size_hint().0);
        for input in inputs {
            of_inputs.push(match input {
                OperandSource::Tensor(tensor) => {
                    let memory = tensor.memory().cuda(operation)?;
                    DeviceInput::of_bytes(tensor.dtype(), memory, *tensor.layout())?
                }
                OperandSource::Output(index) => {
                    let output = of_outputs.get(index).ok_or_else(|| missing(operation, index))?;
                    DeviceInput::output(index, output)
                }
            });
        }
        Ok(KernelOperands::Cuda(stream(&device)?, of_inputs, of_outputs))
    }
}

/// As [`run`], for any number of operands and code that takes addresses: those of contiguous inputs' first elements, and of all
/// outputs' memory.
///
/// # Errors
///
/// As [`run`]; [`Error::InvalidArgument`] too for no tensors and for an input that is not contiguous.
pub fn run_addresses(
    operation: &'static str,
    inputs: &[Tensor],
    outputs: &mut [Output],
    host: impl FnOnce(&[*const u8], &[*mut u8]) -> Result<()>,
    cuda: impl FnOnce(&Stream, &[*const u8], &[*mut u8]) -> Result<()>,
) -> Result<()> {
    let devices = inputs.iter().map(Tensor::device);
    let mut devices = devices.chain(outputs.iter_mut().map(|output| output.memory_mut().device()));
    let Some(device) = devices.next() else {
        return Err(Error::invalid(operation, "no tensors", "at least one"));
    };
    if let Some(other) = devices.find(|other| *other != device) {
        return Err(mismatch(operation, device, other));
    }
    drop(devices);
    if let Some(input) = inputs.iter().find(|input| !input.is_contiguous()) {
        return Err(Error::invalid(
            operation,
            format!("an input of {:?}", input.layout()),
            "contiguous inputs",
        ));
    }
    let start = |input: &Tensor| input.layout().offset() * input.dtype().size();
    if device.is_cpu() {
        let mut sources = Vec::with_capacity(inputs.len());
        for input in inputs {
            let memory = input.memory().host(operation)?;
            sources.push(memory.get(start(input)..).map_or(std::ptr::null(), <[u8]>::as_ptr));
        }
        let mut targets = Vec::with_capacity(outputs.len());
        for output in outputs {
            targets.push(output.storage.memory_mut().into_host(operation)?.as_mut_ptr());
        }
        return host(&sources, &targets);
    }
    let (mut uses, mut sources, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    let address = |address: u64| std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
    for input in inputs {
        let buffer = input.memory().cuda(operation)?;
        sources.push(address(buffer.address()).wrapping_add(start(input)).cast_const());
        uses.push((buffer, false));
    }
    for output in outputs {
        let buffer: &_ = output.storage.memory_mut().into_cuda(operation)?;
        targets.push(address(buffer.address()));
        uses.push((buffer, true));
    }
    let stream = stream(&device)?;
    stream.submit_external(&uses, || cuda(&stream, &sources, &targets))
}
