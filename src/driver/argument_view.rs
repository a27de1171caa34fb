//! A view of a launch's argument for other users than the launch: its type, its bytes, and its memory.

use bytemuck::Pod;

use super::image::{ArgumentKind, ArgumentType, ValueType};
use super::memory::{DeviceSlice, DeviceSliceMut, View};

/// One argument of a launch: its type, and its value or memory.
#[derive(Clone, Copy)]
pub struct ArgumentView<'a> {
    argument: ArgumentType,
    bytes: &'a [u8],
    /// The memory as bytes, with a flag for writes by the kernel.
    memory: Option<(View<'a>, bool)>,
}

impl<'a> ArgumentView<'a> {
    /// A value of these bytes. Memory that it names is unknown.
    pub(crate) fn value(argument: ArgumentType, bytes: &'a [u8]) -> ArgumentView<'a> {
        ArgumentView { argument, bytes, memory: None }
    }

    /// Memory of elements of `T`.
    pub(crate) fn memory<T: Pod>(mut view: View<'a>, writes: bool) -> ArgumentView<'a> {
        view.length *= size_of::<T>();
        ArgumentView::memory_of(Some(ValueType::of::<T>()), view, writes)
    }

    /// Memory given by a view in bytes.
    pub(crate) fn memory_of(value: Option<ValueType>, mut view: View<'a>, writes: bool) -> ArgumentView<'a> {
        // Another part of the buffer may be in use at the same time.
        view.whole = false;
        let argument = ArgumentType::new(ArgumentKind::Address, 8, value);
        ArgumentView { argument, bytes: &[], memory: Some((view, writes)) }
    }

    /// The argument's kind, size and type.
    pub fn argument(&self) -> ArgumentType {
        self.argument
    }

    /// The bytes of a value; empty for memory.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The memory as bytes; `None` for a value, a raw address, or a tensor map.
    pub fn device_memory(&self) -> Option<DeviceSlice<'a, u8>> {
        self.memory.map(|(view, _)| DeviceSlice::new(view))
    }

    /// Returns whether it is memory that the kernel writes.
    pub fn is_written(&self) -> bool {
        self.memory.is_some_and(|(_, writes)| writes)
    }

    /// The memory that the kernel would write, for a fallback to write instead. The argument holds it exclusively, so
    /// its owner may use one such slice at a time.
    pub(crate) fn written_memory(&self) -> Option<DeviceSliceMut<'a, u8>> {
        self.memory.filter(|(_, writes)| *writes).map(|(view, _)| DeviceSliceMut::new(view))
    }
}
