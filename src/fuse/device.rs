//! Runs on device memory: kernels are written, assembled by the driver, kept, and launched.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::expression::{Expression, State};
use super::host::check_slice;
use super::number::Number;
use super::plan::{BLOCK, Plan};
use super::planned::Launch;
use super::ptx;
use crate::driver::{
    Device, DeviceRead, DeviceSlice, DeviceSliceMut, DeviceWrite, Function, LaunchConfig, Stream,
};
use crate::driver::{Operand, OperandAccess, View};
use crate::error::{Error, Result};
use crate::types::{DType, Element, Layout};

const OPERATION: &str = "an elementwise run";

/// As many operands as most runs have, and as many as a run keeps without an allocation.
const FEW_OPERANDS: usize = 4;
const MORE_OPERANDS: usize = 8;
/// And as many bytes of parameters, where a run has scalars to write among them.
pub(super) const FEW_BYTES: usize = 256;

/// A kernel that an expression has found before.
pub(crate) type Cached = Function;

/// By the device's ordinal and the text.
type Kernels = HashMap<(usize, Arc<str>), Function>;

/// Every kernel of the process: expressions that are written alike share it, whatever their numbers. Kernels stay: to
/// unload one waits for the device.
static KERNELS: Mutex<Option<Kernels>> = Mutex::new(None);

/// An array in device memory that a run reads. `L` is a [`Layout`], or a reference to one, which is less to copy.
pub struct DeviceInput<'a, L = Layout> {
    source: Source<'a>,
    dtype: DType,
    layout: L,
}

enum Source<'a> {
    /// In bytes.
    Memory(View<'a>),
    /// The memory of an output.
    Output(usize),
}

/// An array in device memory that a run writes. `L` is that of its inputs.
pub struct DeviceOutput<'a, L = Layout> {
    /// In bytes.
    memory: View<'a>,
    dtype: DType,
    layout: L,
}

/// An array as a run has it: inputs come before outputs. Whether it fits is held against the run's plan.
#[derive(Clone, Copy)]
pub(crate) struct RunOperand<'a> {
    pub(super) memory: Operand<'a>,
    pub(super) layout: &'a Layout,
    pub(super) dtype: DType,
}

impl<'a> RunOperand<'a> {
    #[inline(always)]
    fn new(dtype: DType, view: View<'a>, layout: &'a Layout, access: OperandAccess) -> RunOperand<'a> {
        RunOperand { memory: Operand { view, address: view.address, access }, layout, dtype }
    }

    /// What is read: elements of a dtype in bytes.
    #[inline(always)]
    pub(crate) fn read(dtype: DType, memory: &'a impl DeviceRead<u8>, layout: &'a Layout) -> RunOperand<'a> {
        RunOperand::new(dtype, memory.view(), layout, OperandAccess::Read)
    }

    /// What is written.
    #[inline(always)]
    pub(crate) fn write(
        dtype: DType,
        memory: &'a mut impl DeviceWrite<u8>,
        layout: &'a Layout,
    ) -> RunOperand<'a> {
        RunOperand::new(dtype, memory.view(), layout, OperandAccess::Write)
    }

    /// What an output has before the run; it is entered as the output that it is.
    #[inline(always)]
    pub(crate) fn in_place(self) -> RunOperand<'a> {
        RunOperand { memory: Operand { access: OperandAccess::Shared, ..self.memory }, ..self }
    }
}

/// Calls `use_them` with room for so many operands, filled with the first output: without an allocation where they are few.
#[inline]
pub(crate) fn with_retry<'a, R>(
    count: usize,
    output: RunOperand<'a>,
    use_them: impl FnOnce(&mut [RunOperand<'a>]) -> R,
) -> R {
    if count <= FEW_OPERANDS {
        use_them(&mut [output; FEW_OPERANDS][..count])
    } else if count <= MORE_OPERANDS {
        use_them(&mut [output; MORE_OPERANDS][..count])
    } else {
        use_them(&mut vec![output; count])
    }
}

fn good(function: &&Function) -> bool {
    !function.module().device().is_lost()
}

/// The kernel of a text, assembled where the process has not met it.
pub(super) fn assembled(device: &Device, text: Arc<str>) -> Result<Function> {
    let by_text = (device.ordinal(), text);
    let known = {
        let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.get_or_insert_default().get(&by_text).cloned()
    };
    if let Some(function) = known.as_ref().filter(good) {
        return Ok(function.clone());
    }
    // Outside of the lock: assembling takes milliseconds, and others need other kernels meanwhile.
    let function = device.load(by_text.1.as_bytes())?.function(ptx::ENTRY)?;
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    kernels.get_or_insert_default().insert(by_text, function.clone());
    Ok(function)
}

/// Checks that a layout stays within memory of `bytes` bytes whose elements may start at `address`.
#[inline]
pub(super) fn check_memory(dtype: DType, layout: &Layout, address: u64, bytes: usize) -> Result<()> {
    let fits = layout.end().checked_mul(dtype.size()).is_some_and(|end| end <= bytes);
    // Without a division; sizes are powers of two.
    if fits && address & (part_bytes(dtype) - 1) == 0 {
        return Ok(());
    }
    misplaced(dtype, layout, address, bytes)
}

#[inline]
fn part_bytes(dtype: DType) -> u64 {
    (dtype.size() / super::program::parts(dtype)) as u64
}

#[cold]
fn misplaced(dtype: DType, layout: &Layout, address: u64, bytes: usize) -> Result<()> {
    let part = part_bytes(dtype);
    if !address.is_multiple_of(part) {
        let found = format!("memory at {address:#x} for {dtype}");
        return Err(Error::invalid(OPERATION, found, format!("a multiple of {part} bytes")));
    }
    let length = bytes / dtype.size();
    Err(Error::OutOfRange { start: layout.start(), end: layout.end(), length })
}

/// The bytes of a contiguous layout, which was held against the memory.
fn elements_of<'a>(view: View<'a>, dtype: DType, layout: &Layout) -> View<'a> {
    let address = view.address + (layout.offset() * dtype.size()) as u64;
    View { address, length: layout.count() * dtype.size(), ..view }
}

impl<'a, L: Borrow<Layout>> DeviceInput<'a, L> {
    /// Elements of `memory` in this layout.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] where the layout leads out of the memory.
    #[inline]
    pub fn new<T: Element>(memory: &'a impl DeviceRead<T>, layout: L) -> Result<DeviceInput<'a, L>> {
        DeviceInput::of_view(T::DTYPE, memory.view(), memory.view().length * size_of::<T>(), layout)
    }

    /// As [`new`](Self::new), of bytes that hold elements of a dtype.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::InvalidArgument`] where the memory does not start at a multiple of the element's
    /// (a complex number's part's) size.
    #[inline]
    pub fn of_bytes(dtype: DType, memory: &'a impl DeviceRead<u8>, layout: L) -> Result<DeviceInput<'a, L>> {
        DeviceInput::of_view(dtype, memory.view(), memory.view().length, layout)
    }

    #[inline]
    fn of_view(dtype: DType, view: View<'a>, bytes: usize, layout: L) -> Result<DeviceInput<'a, L>> {
        check_memory(dtype, layout.borrow(), view.address, bytes)?;
        Ok(DeviceInput { source: Source::Memory(View { length: bytes, ..view }), dtype, layout })
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Where the elements lie in their memory.
    pub fn layout(&self) -> &Layout {
        self.layout.borrow()
    }

    /// The elements in row-major order, where they lie so: an argument for a kernel.
    ///
    /// # Errors
    ///
    /// As [`HostInput::as_slice`](super::HostInput::as_slice).
    pub fn as_slice<T: Element>(&self) -> Result<DeviceSlice<'a, T>> {
        let layout = self.layout.borrow();
        check_slice::<T>(self.dtype, layout)?;
        let Source::Memory(view) = self.source else {
            let found = "an input in place of an output";
            return Err(Error::invalid(OPERATION, found, "memory of its own"));
        };
        DeviceSlice::<u8>::new(elements_of(view, self.dtype, layout)).reinterpret()
    }

    pub(super) fn described(&self) -> (DType, Layout) {
        (self.dtype, *self.layout.borrow())
    }

    /// In bytes; none of an input in place.
    pub(super) fn memory(&self) -> Option<View<'a>> {
        match self.source {
            Source::Memory(view) => Some(view),
            Source::Output(_) => None,
        }
    }

    /// The elements that output `index` has before the run, in its layout: an operation in place.
    pub fn output(index: usize, output: &DeviceOutput<'_, L>) -> DeviceInput<'a, L>
    where
        L: Copy,
    {
        DeviceInput { source: Source::Output(index), dtype: output.dtype, layout: output.layout }
    }
}

impl<'a, L: Borrow<Layout>> DeviceOutput<'a, L> {
    /// Elements of `memory` in this layout.
    ///
    /// # Errors
    ///
    /// As [`DeviceInput::new`].
    #[inline]
    pub fn new<T: Element>(memory: &'a mut impl DeviceWrite<T>, layout: L) -> Result<DeviceOutput<'a, L>> {
        let view = memory.view();
        DeviceOutput::of_view(T::DTYPE, view, view.length * size_of::<T>(), layout)
    }

    /// As [`new`](Self::new), of bytes that hold elements of a dtype.
    ///
    /// # Errors
    ///
    /// As [`DeviceInput::of_bytes`].
    #[inline]
    pub fn of_bytes(
        dtype: DType,
        memory: &'a mut impl DeviceWrite<u8>,
        layout: L,
    ) -> Result<DeviceOutput<'a, L>> {
        let view = memory.view();
        DeviceOutput::of_view(dtype, view, view.length, layout)
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Where the elements lie in their memory.
    pub fn layout(&self) -> &Layout {
        self.layout.borrow()
    }

    /// The elements in row-major order, where they lie so: an argument for a kernel that writes them.
    ///
    /// # Errors
    ///
    /// As [`HostInput::as_slice`](super::HostInput::as_slice).
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<DeviceSliceMut<'_, T>> {
        let layout = self.layout.borrow();
        check_slice::<T>(self.dtype, layout)?;
        DeviceSliceMut::<u8>::new(elements_of(self.memory, self.dtype, layout)).reinterpret()
    }

    pub(super) fn described(&self) -> (DType, Layout) {
        (self.dtype, *self.layout.borrow())
    }

    /// In bytes.
    pub(super) fn memory(&self) -> View<'a> {
        self.memory
    }

    #[inline]
    fn of_view(dtype: DType, memory: View<'a>, bytes: usize, layout: L) -> Result<DeviceOutput<'a, L>> {
        check_memory(dtype, layout.borrow(), memory.address, bytes)?;
        Ok(DeviceOutput { memory: View { length: bytes, ..memory }, dtype, layout })
    }
}

impl<L: fmt::Debug> fmt::Debug for DeviceInput<'_, L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DeviceInput({} of {:?})", self.dtype, self.layout)
    }
}

impl<L: fmt::Debug> fmt::Debug for DeviceOutput<'_, L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DeviceOutput({} of {:?})", self.dtype, self.layout)
    }
}

impl State {
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of operands.
    pub(crate) fn check_counts(&self, inputs: usize, outputs: usize) -> Result<()> {
        if inputs == self.inputs.len() && outputs == self.outputs.len() {
            return Ok(());
        }
        for (operation, wanted, found) in [
            ("an expression's inputs", self.inputs.len(), inputs),
            ("an expression's outputs", self.outputs.len(), outputs),
        ] {
            if wanted != found {
                return Err(Error::LengthMismatch { operation, wanted, found });
            }
        }
        Ok(())
    }

    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] where the operands have others.
    pub(crate) fn check_dtypes(&self, found: impl Iterator<Item = DType>) -> Result<()> {
        for (index, (wanted, found)) in self.inputs.iter().chain(&self.outputs).zip(found).enumerate() {
            if *wanted != found {
                return Err(self.other_dtype(index, *wanted, found));
            }
        }
        Ok(())
    }

    #[cold]
    fn other_dtype(&self, index: usize, wanted: DType, found: DType) -> Error {
        let wanted = match index.checked_sub(self.inputs.len()) {
            None => format!("{wanted} for input {index}"),
            Some(output) => format!("{wanted} for output {output}"),
        };
        Error::DTypeMismatch { operation: OPERATION, wanted, found: found.to_string() }
    }

    fn launch(
        &self,
        launch: &Launch,
        stream: &Stream,
        operands: &mut [RunOperand<'_>],
        scalars: &[Number],
    ) -> Result<()> {
        for (at, offset) in launch.offsets.iter().enumerate() {
            let memory = &mut operands[at].memory;
            memory.address = memory.view.address + offset;
        }
        let known = &launch.parameters[..launch.bytes];
        let (mut few, mut many);
        let block: &[u8] = if scalars.is_empty() {
            known
        } else {
            let copy = match launch.parameters.first_chunk::<FEW_BYTES>() {
                Some(chunk) if known.len() <= FEW_BYTES => {
                    few = *chunk;
                    &mut few[..known.len()]
                }
                _ => {
                    many = known.to_vec();
                    &mut many[..]
                }
            };
            self.write_scalars(copy, scalars);
            copy
        };
        let config = LaunchConfig::new(launch.blocks, BLOCK);
        let memory = operands.iter().map(|operand| &operand.memory);
        // SAFETY: the kernel touches the elements that the layouts name, which the plan has held against the memory; the
        // arguments are made after its parameters, and were held against them when the run was planned.
        unsafe { launch.function.launch_operands(stream, config, memory, block) }
    }

    /// Inputs before outputs.
    pub(crate) fn operand_dtypes(&self) -> Vec<DType> {
        self.inputs.iter().chain(&self.outputs).copied().collect()
    }

    /// The kernel of a plan, assembled where no expression of the process has its text.
    pub(crate) fn kernel(&self, device: &Device, plan: &Plan) -> Result<Function> {
        let place = (device.ordinal(), plan.key.clone());
        let known = self.kernels.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        if let Some(function) = known.as_ref().filter(good) {
            return Ok(function.clone());
        }
        let text =
            ptx::write(&self.program, &self.operand_dtypes(), self.inputs.len(), &plan.key, plan.parameters);
        let function = assembled(device, text.into())?;
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).insert(place, function.clone());
        Ok(function)
    }
}

impl Expression {
    /// Computes the outputs, of one shape, from the inputs, which are broadcast to it, on the stream. The first run of
    /// operands that lie in a new way assembles a kernel (some 10 ms, under 0.1 ms where the driver has seen it before) and
    /// waits for what is running; see [`preload`](Self::preload).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DTypeMismatch`] for operands or scalars that are not the expression's,
    /// [`Error::InvalidArgument`] for shapes that do not fit, an output whose elements share places, or an input in place
    /// whose output lies in another layout; errors of [`Device::load`] and of a launch.
    pub fn run<L: Borrow<Layout>>(
        &self,
        stream: &Stream,
        inputs: &[DeviceInput<'_, L>],
        scalars: &[Number],
        outputs: &mut [DeviceOutput<'_, L>],
    ) -> Result<()> {
        self.0.check_counts(inputs.len(), outputs.len())?;
        with_operands(inputs, outputs, |operands| self.run_operands(stream, operands, inputs.len(), scalars))
    }

    /// As [`run`](Self::run), on a list of which so many are inputs.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(crate) fn run_operands(
        &self,
        stream: &Stream,
        operands: &mut [RunOperand<'_>],
        inputs: usize,
        scalars: &[Number],
    ) -> Result<()> {
        let state = &*self.0;
        state.check_scalars(scalars)?;
        state.with_plan(&stream.device(), operands, inputs, scalars, |plan, operands| {
            plan.launches.iter().try_for_each(|launch| state.launch(launch, stream, operands, scalars))
        })
    }

    /// Assembles the kernels that [`run`](Self::run) would launch, and launches nothing: for what must not wait later.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn preload<L: Borrow<Layout>>(
        &self,
        device: &Device,
        inputs: &[DeviceInput<'_, L>],
        outputs: &[DeviceOutput<'_, L>],
    ) -> Result<()> {
        self.0.check_counts(inputs.len(), outputs.len())?;
        let scalars = vec![Number::Integer(0); self.scalars().len()];
        with_operands(inputs, outputs, |operands| {
            self.0.with_plan(device, operands, inputs.len(), &scalars, |_, _| Ok(()))
        })
    }
}

/// Calls `use_them` with the operands of a run, which are as many as they must be.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an input in place whose output lies in another layout; those of `use_them`.
fn with_operands<'a, L: Borrow<Layout>>(
    inputs: &'a [DeviceInput<'_, L>],
    outputs: &'a [DeviceOutput<'_, L>],
    use_them: impl FnOnce(&mut [RunOperand<'a>]) -> Result<()>,
) -> Result<()> {
    let written = |output: &'a DeviceOutput<'_, L>| {
        RunOperand::new(output.dtype, output.memory, output.layout.borrow(), OperandAccess::Write)
    };
    // An expression has outputs.
    let Some(first) = outputs.first() else {
        return Err(Error::LengthMismatch { operation: "an expression's outputs", wanted: 1, found: 0 });
    };
    with_retry(inputs.len() + outputs.len(), written(first), |operands| {
        let (of_inputs, of_outputs) = operands.split_at_mut(inputs.len());
        for (at, output) in outputs.iter().enumerate() {
            of_outputs[at] = written(output);
        }
        for (at, input) in inputs.iter().enumerate() {
            let layout = input.layout.borrow();
            of_inputs[at] = match input.source {
                Source::Memory(view) => RunOperand::new(input.dtype, view, layout, OperandAccess::Read),
                Source::Output(index) => match of_outputs.get(index) {
                    Some(output) if output.layout == layout && output.dtype == input.dtype => {
                        output.in_place()
                    }
                    _ => return Err(other_output(index)),
                },
            };
        }
        use_them(operands)
    })
}

#[cold]
pub(super) fn other_output(index: usize) -> Error {
    let found = format!("an input in place of output {index}, which is missing or lies in another layout");
    Error::invalid(OPERATION, found, "an output of the run, in its own layout and dtype")
}
