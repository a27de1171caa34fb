//! Runs of expressions on device memory, and the cache of assembled kernels.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use super::expression::{Expression, ExpressionState};
use super::plan_cache::Launch;
use crate::driver::{
    Device, DeviceCache, DeviceRead, DeviceSlice, DeviceSliceMut, DeviceWrite, Function, LaunchConfig, Stream,
};
use crate::driver::{Operand, OperandAccess, View};
use crate::error::{Error, Result};
use crate::fuse::cpu::check_slice;
use crate::fuse::ir::number::Number;
use crate::fuse::plan::elementwise::{BLOCK, ElementwisePlan, OPERATION, check_memory, in_place_error};
use crate::fuse::ptx;
use crate::types::{DType, Element, Layout, Shape};

/// The operand count of most runs, and the largest that a run stores without an allocation.
const FEW_OPERANDS: usize = 4;
const MORE_OPERANDS: usize = 8;
/// The size up to which a run with scalars copies its parameter block without an allocation.
pub(super) const FEW_BYTES: usize = 256;

/// The kernels of the process by text: expressions with equal text share a kernel, whatever their numbers.
static KERNELS: DeviceCache<Arc<str>, Function> = DeviceCache::new();

/// An array in device memory that a run reads. `L` is a [`Layout`] or a reference to one, which is cheaper to
/// copy.
pub struct DeviceInput<'a, L = Layout> {
    source: Source<'a>,
    dtype: DType,
    layout: L,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    /// A view in bytes.
    Memory(View<'a>),
    /// The memory of an output.
    Output(usize),
}

/// An array in device memory that a run writes. `L` is a [`Layout`] or a reference to one, as for the inputs.
pub struct DeviceOutput<'a, L = Layout> {
    /// A view in bytes.
    memory: View<'a>,
    dtype: DType,
    layout: L,
}

/// An operand of a run; inputs precede outputs. The run's plan checks that the layout fits the memory.
#[derive(Clone, Copy)]
pub(crate) struct RunOperand<'a> {
    pub(in crate::fuse) memory: Operand<'a>,
    pub(in crate::fuse) layout: &'a Layout,
    pub(in crate::fuse) dtype: DType,
}

impl<'a> RunOperand<'a> {
    #[inline(always)]
    fn new(dtype: DType, view: View<'a>, layout: &'a Layout, access: OperandAccess) -> RunOperand<'a> {
        RunOperand { memory: Operand { view, address: view.address, access }, layout, dtype }
    }

    /// Creates an input from bytes that hold elements of a dtype.
    #[inline(always)]
    pub(crate) fn read(dtype: DType, memory: &'a impl DeviceRead<u8>, layout: &'a Layout) -> RunOperand<'a> {
        RunOperand::new(dtype, memory.view(), layout, OperandAccess::Read)
    }

    /// Creates an output from bytes that hold elements of a dtype.
    #[inline(always)]
    pub(crate) fn write(
        dtype: DType,
        memory: &'a mut impl DeviceWrite<u8>,
        layout: &'a Layout,
    ) -> RunOperand<'a> {
        RunOperand::new(dtype, memory.view(), layout, OperandAccess::Write)
    }

    /// Converts an output to an input that reads its previous elements. Only the output is registered with
    /// the memory's accesses.
    #[inline(always)]
    pub(crate) fn in_place(self) -> RunOperand<'a> {
        RunOperand { memory: Operand { access: OperandAccess::Shared, ..self.memory }, ..self }
    }
}

/// Calls `run` with a list of `count` operands, all initialized to the first output. Short lists need no
/// allocation.
#[inline]
pub(crate) fn with_operand_list<'a, R>(
    count: usize,
    output: RunOperand<'a>,
    run: impl FnOnce(&mut [RunOperand<'a>]) -> R,
) -> R {
    if count <= FEW_OPERANDS {
        run(&mut [output; FEW_OPERANDS][..count])
    } else if count <= MORE_OPERANDS {
        run(&mut [output; MORE_OPERANDS][..count])
    } else {
        run(&mut vec![output; count])
    }
}

/// Returns the kernel of a text, and assembles it if the process has not loaded it.
pub(in crate::fuse) fn assembled(device: &Device, text: Arc<str>) -> Result<Function> {
    KERNELS.get_or_try_add(device, &text, || device.load(text.as_bytes())?.function(ptx::ENTRY))
}

/// Returns the bytes of a contiguous layout, which has been checked against the memory.
fn elements_of<'a>(view: View<'a>, dtype: DType, layout: &Layout) -> View<'a> {
    let address = view.address + (layout.offset() * dtype.size()) as u64;
    View { address, length: layout.count() * dtype.size(), ..view }
}

impl<'a, L: Borrow<Layout>> DeviceInput<'a, L> {
    /// Creates an input of the elements of `memory` in this layout.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if the layout exceeds the memory.
    #[inline]
    pub fn new<T: Element>(memory: &'a impl DeviceRead<T>, layout: L) -> Result<DeviceInput<'a, L>> {
        DeviceInput::of_view(T::DTYPE, memory.view(), memory.view().length * size_of::<T>(), layout)
    }

    /// Creates an input of bytes that hold elements of a dtype; see [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::InvalidArgument`] if the address is not a multiple of the element's
    /// size (for a complex number, of its part's size).
    #[inline]
    pub fn of_bytes(dtype: DType, memory: &'a impl DeviceRead<u8>, layout: L) -> Result<DeviceInput<'a, L>> {
        DeviceInput::of_view(dtype, memory.view(), memory.view().length, layout)
    }

    #[inline]
    fn of_view(dtype: DType, view: View<'a>, bytes: usize, layout: L) -> Result<DeviceInput<'a, L>> {
        check_memory(dtype, layout.borrow(), view.address, bytes)?;
        Ok(DeviceInput { source: Source::Memory(View { length: bytes, ..view }), dtype, layout })
    }

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the layout of the elements.
    pub fn layout(&self) -> &Layout {
        self.layout.borrow()
    }

    /// Returns the elements as a kernel argument, if they are contiguous.
    ///
    /// # Errors
    ///
    /// As [`HostInput::as_slice`](crate::fuse::HostInput::as_slice).
    pub fn as_slice<T: Element>(&self) -> Result<DeviceSlice<'a, T>> {
        let layout = self.layout.borrow();
        check_slice::<T>(self.dtype, layout)?;
        let Source::Memory(view) = self.source else {
            let found = "an in-place input";
            return Err(Error::invalid(OPERATION, found, "an input with its own memory"));
        };
        DeviceSlice::<u8>::new(elements_of(view, self.dtype, layout)).reinterpret()
    }

    pub(in crate::fuse) fn described(&self) -> (DType, Layout) {
        (self.dtype, *self.layout.borrow())
    }

    /// Returns the view in bytes, or `None` for an in-place input.
    pub(in crate::fuse) fn memory(&self) -> Option<View<'a>> {
        match self.source {
            Source::Memory(view) => Some(view),
            Source::Output(_) => None,
        }
    }

    /// Returns the same elements broadcast to a shape.
    ///
    /// # Errors
    ///
    /// As [`Layout::expand`].
    pub(in crate::fuse) fn expand(&self, shape: &Shape) -> Result<DeviceInput<'a>> {
        Ok(DeviceInput {
            source: self.source,
            dtype: self.dtype,
            layout: self.layout.borrow().expand(shape)?,
        })
    }

    /// Returns the number of the output whose elements an in-place input reads.
    pub(super) fn in_place_of(&self) -> Option<usize> {
        match self.source {
            Source::Memory(_) => None,
            Source::Output(index) => Some(index),
        }
    }

    /// Returns the elements of an output as an input with memory, for a launch before the one that writes them.
    pub(super) fn before(output: &DeviceOutput<'a, L>) -> DeviceInput<'a> {
        let (dtype, layout) = output.described();
        DeviceInput { source: Source::Memory(output.memory), dtype, layout }
    }

    /// Creates an in-place input: the elements that output `index` has before the run, in its layout.
    pub fn output(index: usize, output: &DeviceOutput<'_, L>) -> DeviceInput<'a, L>
    where
        L: Copy,
    {
        DeviceInput { source: Source::Output(index), dtype: output.dtype, layout: output.layout }
    }
}

impl<'a, L: Borrow<Layout>> DeviceOutput<'a, L> {
    /// Creates an output of the elements of `memory` in this layout.
    ///
    /// # Errors
    ///
    /// As [`DeviceInput::new`].
    #[inline]
    pub fn new<T: Element>(memory: &'a mut impl DeviceWrite<T>, layout: L) -> Result<DeviceOutput<'a, L>> {
        let view = memory.view();
        DeviceOutput::of_view(T::DTYPE, view, view.length * size_of::<T>(), layout)
    }

    /// Creates an output of bytes that hold elements of a dtype; see [`new`](Self::new).
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

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the layout of the elements.
    pub fn layout(&self) -> &Layout {
        self.layout.borrow()
    }

    /// Returns the elements as an argument for a kernel that writes them, if they are contiguous.
    ///
    /// # Errors
    ///
    /// As [`HostInput::as_slice`](crate::fuse::HostInput::as_slice).
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<DeviceSliceMut<'_, T>> {
        let layout = self.layout.borrow();
        check_slice::<T>(self.dtype, layout)?;
        DeviceSliceMut::<u8>::new(elements_of(self.memory, self.dtype, layout)).reinterpret()
    }

    pub(in crate::fuse) fn described(&self) -> (DType, Layout) {
        (self.dtype, *self.layout.borrow())
    }

    /// Returns the view in bytes.
    pub(in crate::fuse) fn memory(&self) -> View<'a> {
        self.memory
    }

    /// Returns the same output for a shorter time.
    pub(in crate::fuse) fn reborrow(&mut self) -> DeviceOutput<'_> {
        DeviceOutput { memory: self.memory, dtype: self.dtype, layout: *self.layout.borrow() }
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

impl ExpressionState {
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
        // SAFETY: the kernel accesses the elements that the layouts name, which the plan has checked against
        // the memory. Planning has also checked the arguments against the kernel's parameters.
        unsafe { launch.function.launch_operands(stream, config, memory, block) }
    }

    /// Returns the kernel of a plan, and assembles it if no expression of the process has the same text.
    pub(crate) fn kernel(&self, device: &Device, plan: &ElementwisePlan) -> Result<Function> {
        self.kernels
            .get_or_try_add(device, &plan.key, || assembled(device, ptx::write(&self.compiled, plan).into()))
    }
}

impl Expression {
    /// Computes the outputs on a stream. The outputs share one shape, to which the inputs are broadcast.
    ///
    /// The first run with a new combination of layouts assembles a kernel (about 10 ms, or under 0.1 ms if
    /// the driver has cached it) and waits for work in progress; see [`preload`](Self::preload).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DTypeMismatch`] for operands or scalars that differ from the
    /// expression's; [`Error::InvalidArgument`] for shapes that do not broadcast, an output with overlapping
    /// elements, or an in-place input whose output has another layout; errors of [`Device::load`] and of a
    /// launch.
    pub fn run<L: Borrow<Layout>>(
        &self,
        stream: &Stream,
        inputs: &[DeviceInput<'_, L>],
        scalars: &[Number],
        outputs: &mut [DeviceOutput<'_, L>],
    ) -> Result<()> {
        self.0.compiled.check_counts(inputs.len(), outputs.len())?;
        with_operands(inputs, outputs, |operands| self.run_operands(stream, operands, inputs.len(), scalars))
    }

    /// Runs on a list of operands that begins with `inputs` inputs; see [`run`](Self::run).
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
        state.compiled.check_scalars(scalars)?;
        state.with_plan(&stream.device(), operands, inputs, scalars, |plan, operands| {
            plan.launches.iter().try_for_each(|launch| state.launch(launch, stream, operands, scalars))
        })
    }

    /// Assembles the kernels that [`run`](Self::run) would launch, without a launch, so that a later run does
    /// not wait.
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
        self.0.compiled.check_counts(inputs.len(), outputs.len())?;
        let scalars = vec![Number::Integer(0); self.scalars().len()];
        with_operands(inputs, outputs, |operands| {
            self.0.with_plan(device, operands, inputs.len(), &scalars, |_, _| Ok(()))
        })
    }
}

/// Calls `run` with the operands of a run, whose numbers have been checked.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an in-place input whose output has another layout; the errors of `run`.
fn with_operands<'a, L: Borrow<Layout>>(
    inputs: &'a [DeviceInput<'_, L>],
    outputs: &'a [DeviceOutput<'_, L>],
    run: impl FnOnce(&mut [RunOperand<'a>]) -> Result<()>,
) -> Result<()> {
    let written = |output: &'a DeviceOutput<'_, L>| {
        RunOperand::new(output.dtype, output.memory, output.layout.borrow(), OperandAccess::Write)
    };
    // Every expression has an output.
    let Some(first) = outputs.first() else {
        return Err(Error::LengthMismatch { operation: "an expression's outputs", wanted: 1, found: 0 });
    };
    with_operand_list(inputs.len() + outputs.len(), written(first), |operands| {
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
                    _ => return Err(in_place_error(index)),
                },
            };
        }
        run(operands)
    })
}
