//! A launch's argument as something else than a launch sees it: its type, its bytes, the memory behind it.

use bytemuck::Pod;

use super::image::{ArgumentKind, ArgumentType, ValueType};
use super::memory::{DeviceSlice, DeviceSliceMut, View};

/// One argument of a launch: what it is, and where the memory that it names lies.
#[derive(Clone, Copy)]
pub struct ArgumentView<'a> {
    argument: ArgumentType,
    bytes: &'a [u8],
    /// As bytes, and whether the kernel writes there.
    memory: Option<(View<'a>, bool)>,
}

impl<'a> ArgumentView<'a> {
    /// A value of these bytes; memory that it names is not known.
    pub(crate) fn value(argument: ArgumentType, bytes: &'a [u8]) -> ArgumentView<'a> {
        ArgumentView { argument, bytes, memory: None }
    }

    /// Memory of elements of `T`.
    pub(crate) fn memory<T: Pod>(mut view: View<'a>, writes: bool) -> ArgumentView<'a> {
        view.length *= size_of::<T>();
        ArgumentView::memory_of(Some(ValueType::of::<T>()), view, writes)
    }

    /// Memory whose view is of bytes.
    pub(crate) fn memory_of(value: Option<ValueType>, mut view: View<'a>, writes: bool) -> ArgumentView<'a> {
        // Another part may be in use beside this one.
        view.whole = false;
        let argument = ArgumentType::new(ArgumentKind::Address, 8, value);
        ArgumentView { argument, bytes: &[], memory: Some((view, writes)) }
    }

    /// Its kind, size and type.
    pub fn argument(&self) -> ArgumentType {
        self.argument
    }

    /// The bytes of a value; nothing for memory.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The memory, as bytes; `None` for a value, an address of the caller's own, or a tensor map.
    pub fn device_memory(&self) -> Option<DeviceSlice<'a, u8>> {
        self.memory.map(|(view, _)| DeviceSlice::new(view))
    }

    /// Whether it is memory that the kernel writes.
    pub fn is_written(&self) -> bool {
        self.memory.is_some_and(|(_, writes)| writes)
    }

    /// The memory that the kernel would write, to be written in its stead. The argument holds it exclusively, so whoever
    /// has the argument may, with one such slice at a time.
    pub(crate) fn written_memory(&self) -> Option<DeviceSliceMut<'a, u8>> {
        self.memory.filter(|(_, writes)| *writes).map(|(view, _)| DeviceSliceMut::new(view))
    }
}
