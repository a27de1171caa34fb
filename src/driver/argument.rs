//! Kernel arguments: buffers, scalars, structs and addresses, as a typed tuple or as a list made at run time.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;

use super::argument_view::ArgumentView;
use super::device::DeviceState;
use super::image::{ArgumentKind, ArgumentType, ValueType};
use super::memory::{
    Access, Allocation, DeviceBuffer, DeviceRead, DeviceSlice, DeviceSliceMut, DeviceWrite, HasView, View,
};
use super::operands::Pointers;
use super::stream::StreamState;
use super::tensor_map::TensorMap;
use crate::error::{Error, Result};

/// The destination of a launch, as its arguments see it.
#[derive(Clone, Copy)]
pub struct LaunchTarget<'a>(LaunchDestination<'a>);

#[derive(Clone, Copy)]
enum LaunchDestination<'a> {
    Stream(&'a Arc<StreamState>),
    /// A captured graph on the device. It collects the memory that the arguments name.
    Graph(&'static DeviceState, &'a Mutex<Vec<(Arc<Allocation>, Access)>>),
}

impl<'a> LaunchTarget<'a> {
    #[inline]
    pub(crate) fn stream(stream: &'a Arc<StreamState>) -> LaunchTarget<'a> {
        LaunchTarget(LaunchDestination::Stream(stream))
    }

    pub(crate) fn graph(
        device: &'static DeviceState,
        named: &'a Mutex<Vec<(Arc<Allocation>, Access)>>,
    ) -> LaunchTarget<'a> {
        LaunchTarget(LaunchDestination::Graph(device, named))
    }

    /// Makes the stream wait for the memory's other users and registers the stream as one.
    #[inline]
    pub(crate) fn enter(self, allocation: &Arc<Allocation>, access: Access) -> Result<()> {
        let device = match self.0 {
            LaunchDestination::Stream(stream) => stream.device,
            LaunchDestination::Graph(device, _) => device,
        };
        if !std::ptr::eq(device, allocation.device) && !device.can_use_memory_of(allocation.device) {
            allocation.device.check_alive()?;
            return Err(Error::DeviceMismatch {
                operation: "a launch without peer access (see Device::enable_peer_access)",
                left: format!("a stream of device {}", device.ordinal),
                right: format!("memory of device {}", allocation.device.ordinal),
            });
        }
        match self.0 {
            LaunchDestination::Stream(stream) => stream.enter(allocation, access),
            LaunchDestination::Graph(_, named) => {
                named.lock().unwrap_or_else(PoisonError::into_inner).push((allocation.clone(), access));
                Ok(())
            }
        }
    }
}

/// A value that a kernel takes as one parameter.
///
/// # Safety
///
/// `pointer` returns `SIZE` bytes that are readable while `self` is borrowed. `enter` orders the stream behind every
/// other user of the memory that those bytes name.
pub unsafe trait KernelArgument {
    /// The kind of the parameter that the value fits.
    const KIND: ArgumentKind;
    /// The size in bytes.
    const SIZE: usize;
    /// The type of the value, or of the memory's elements. `None` skips the check.
    const TYPE: Option<ValueType> = None;

    /// Orders the stream behind the other users of the argument's memory.
    ///
    /// # Errors
    ///
    /// The device cannot reach the memory, or the driver's errors.
    #[inline]
    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        let _ = target;
        Ok(())
    }

    /// Returns a pointer to the value.
    fn pointer(&self) -> *mut c_void;

    /// Returns a view of the value and, if it can be copied, of the memory that it names.
    fn describe(&self) -> ArgumentView<'_> {
        // SAFETY: the implementation returns that many readable bytes while `self` is borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(self.pointer().cast::<u8>(), Self::SIZE) };
        ArgumentView::value(ArgumentType::new(Self::KIND, Self::SIZE, Self::TYPE), bytes)
    }
}

macro_rules! scalars {
    ($($kind:ident: $($type:ty)*;)*) => {$($(
        // SAFETY: the value itself, which names no memory.
        unsafe impl KernelArgument for $type {
            const KIND: ArgumentKind = ArgumentKind::$kind;
            const SIZE: usize = size_of::<$type>();
            const TYPE: Option<ValueType> = Some(ValueType::of::<$type>());

            #[inline]
            fn pointer(&self) -> *mut c_void {
                std::ptr::from_ref(self).cast_mut().cast()
            }
        }
    )*)*};
}

scalars! {
    Integer: bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize;
    Float: f16 bf16 f32 f64;
    Bytes: Complex<f32> Complex<f64>;
}

/// A struct or array passed by value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByValue<T: Pod>(pub T);

// SAFETY: the value itself; plain data names no memory that this library orders.
unsafe impl<T: Pod> KernelArgument for ByValue<T> {
    const KIND: ArgumentKind = ArgumentKind::Bytes;
    const SIZE: usize = size_of::<T>();
    const TYPE: Option<ValueType> = Some(ValueType::of::<T>());

    #[inline]
    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(&self.0).cast_mut().cast()
    }
}

/// A device address that this library does not track. The caller orders the kernel's uses of it with other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawAddress(pub u64);

// SAFETY: the value itself; the ordering of what it points to is the caller's, as the type says.
unsafe impl KernelArgument for RawAddress {
    const KIND: ArgumentKind = ArgumentKind::Address;
    const SIZE: usize = 8;

    #[inline]
    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(&self.0).cast_mut().cast()
    }
}

macro_rules! memory {
    ($(($self:ident) $access:expr, $writes:literal $type:ty;)*) => {$(
        // SAFETY: the pointer is to the address, and the allocation is registered.
        unsafe impl<T: Pod> KernelArgument for $type {
            const KIND: ArgumentKind = ArgumentKind::Address;
            const SIZE: usize = 8;
            const TYPE: Option<ValueType> = Some(ValueType::of::<T>());

            #[inline]
            fn enter(&$self, target: LaunchTarget<'_>) -> Result<()> {
                target.enter(&$self.allocation, $access)
            }

            #[inline]
            fn pointer(&self) -> *mut c_void {
                std::ptr::from_ref(&self.address).cast_mut().cast()
            }

            fn describe(&self) -> ArgumentView<'_> {
                ArgumentView::memory::<T>(self.view(), $writes)
            }
        }
    )*};
}

memory! {
    (self) self.allocation.read_access(true), false &DeviceBuffer<T>;
    (self) self.allocation.write_access(true), true &mut DeviceBuffer<T>;
    (self) self.allocation.read_access(self.whole), false DeviceSlice<'_, T>;
    (self) self.allocation.read_access(self.whole), false &DeviceSlice<'_, T>;
    (self) self.allocation.read_access(self.whole), false &DeviceSliceMut<'_, T>;
    (self) self.allocation.write_access(self.whole), true DeviceSliceMut<'_, T>;
    (self) self.allocation.write_access(self.whole), true &mut DeviceSliceMut<'_, T>;
}

macro_rules! tensor_maps {
    ($($access:ident $type:ty;)*) => {$(
        // SAFETY: the pointer is to the 128 bytes of the map, and the allocation that it names is registered.
        unsafe impl KernelArgument for $type {
            const KIND: ArgumentKind = ArgumentKind::Bytes;
            const SIZE: usize = 128;

            #[inline]
            fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
                target.enter(&self.allocation, Access::$access)
            }

            #[inline]
            fn pointer(&self) -> *mut c_void {
                std::ptr::from_ref(&*self.raw).cast_mut().cast()
            }
        }
    )*};
}

// The buffer itself can be used at the same time: the map only shares it.
tensor_maps! {
    ReadPart &TensorMap;
    WritePart &mut TensorMap;
}

/// The types of a tuple's arguments. Two types with equal signatures may share one.
pub type Signature = &'static [ArgumentType];

/// All arguments of a launch: a tuple of up to 24 [`KernelArgument`]s, or a list of [`Argument`]s made at run time
/// (`&list`, of a vector, an array or a slice).
///
/// # Safety
///
/// As [`KernelArgument`], for each element in order. For a type with a signature, `types` returns the signature.
/// Signatures at one address are equal.
pub unsafe trait KernelArguments {
    /// The arguments' types, if the Rust type determines them. Such a type is checked against a kernel once.
    const SIGNATURE: Option<Signature>;
    /// An array of pointers.
    type Pointers: AsMut<[*mut c_void]>;

    /// Returns the types of the arguments.
    fn types(&self) -> impl ExactSizeIterator<Item = ArgumentType>;

    /// Orders the stream behind the other users of the arguments' memory.
    ///
    /// # Errors
    ///
    /// As [`KernelArgument::enter`].
    fn enter(&self, target: LaunchTarget<'_>) -> Result<()>;

    /// Returns pointers to the values.
    fn pointers(&self) -> Self::Pointers;

    /// Returns a view of each argument.
    fn describe(&self) -> Vec<ArgumentView<'_>>;
}

macro_rules! tuples {
    ($($name:ident $index:tt)*) => {
        tuples!(@step [] $($name $index)*);
    };
    (@step [$($done:ident $at:tt)*]) => {
        tuples!(@one $($done $at)*);
    };
    (@step [$($done:ident $at:tt)*] $next:ident $index:tt $($rest:tt)*) => {
        tuples!(@one $($done $at)*);
        tuples!(@step [$($done $at)* $next $index] $($rest)*);
    };
    (@one $($name:ident $index:tt)*) => {
        // SAFETY: each element vouches for itself.
        unsafe impl<$($name: KernelArgument),*> KernelArguments for ($($name,)*) {
            const SIGNATURE: Option<Signature> =
                Some(&[$(ArgumentType::new($name::KIND, $name::SIZE, $name::TYPE)),*]);
            type Pointers = [*mut c_void; <[()]>::len(&[$(tuples!(@unit $name)),*])];

            fn types(&self) -> impl ExactSizeIterator<Item = ArgumentType> {
                Self::SIGNATURE.unwrap_or_default().iter().copied()
            }

            #[inline]
            fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
                let _ = target;
                $(self.$index.enter(target)?;)*
                Ok(())
            }

            #[inline]
            fn pointers(&self) -> Self::Pointers {
                [$(self.$index.pointer()),*]
            }

            fn describe(&self) -> Vec<ArgumentView<'_>> {
                vec![$(self.$index.describe()),*]
            }
        }
    };
    (@unit $name:ident) => { () };
}

tuples! {
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15 Q 16 R 17 S 18 T 19 U 20 V 21 W 22 X 23
}

/// An argument whose type is known only at run time.
pub struct Argument<'a> {
    argument: ArgumentType,
    /// The value's bytes, in aligned words.
    words: Words,
    memory: Option<ArgumentMemory>,
    borrow: PhantomData<&'a mut ()>,
}

/// Aligned words, without an allocation for those of a scalar or an address.
enum Words {
    Few([u64; 2]),
    Many(Box<[u64]>),
}

impl Words {
    fn of(bytes: &[u8]) -> Words {
        let mut few = [0; 2];
        if let Some(start) = bytemuck::bytes_of_mut(&mut few).get_mut(..bytes.len()) {
            start.copy_from_slice(bytes);
            return Words::Few(few);
        }
        let mut many = vec![0; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut many)[..bytes.len()].copy_from_slice(bytes);
        Words::Many(many.into())
    }

    #[inline]
    fn as_slice(&self) -> &[u64] {
        match self {
            Words::Few(words) => words,
            Words::Many(words) => words,
        }
    }
}

struct ArgumentMemory {
    allocation: Arc<Allocation>,
    address: u64,
    bytes: usize,
    access: Access,
    writes: bool,
}

impl<'a> Argument<'a> {
    fn from_value<T: Pod>(kind: ArgumentKind, value: T) -> Argument<'a> {
        let argument = ArgumentType::new(kind, size_of::<T>(), Some(ValueType::of::<T>()));
        Argument::from_bytes(argument, bytemuck::bytes_of(&value))
    }

    fn from_bytes(argument: ArgumentType, bytes: &[u8]) -> Argument<'a> {
        Argument { argument, words: Words::of(bytes), memory: None, borrow: PhantomData }
    }

    fn from_memory<T: Pod>(view: super::memory::View<'_>, access: Access, writes: bool) -> Argument<'a> {
        let argument = ArgumentType::new(ArgumentKind::Address, 8, Some(ValueType::of::<T>()));
        let (allocation, address) = (view.allocation.clone(), view.address);
        let bytes = view.length * size_of::<T>();
        let memory = Some(ArgumentMemory { allocation, address, bytes, access, writes });
        Argument { memory, ..Argument::from_bytes(argument, &address.to_ne_bytes()) }
    }

    /// Memory that the kernel reads.
    pub fn read<T: Pod>(memory: &'a impl DeviceRead<T>) -> Argument<'a> {
        let view = memory.view();
        Argument::from_memory::<T>(view, view.allocation.read_access(view.whole), false)
    }

    /// Memory that the kernel writes, or reads and writes.
    pub fn write<T: Pod>(memory: &'a mut impl DeviceWrite<T>) -> Argument<'a> {
        let view = memory.view();
        // The list holds the block as well as the buffer does, so the buffer is never the only holder.
        Argument::from_memory::<T>(view, Access::WritePart, true)
    }

    /// A buffer that the launch consumes. The kernel may read and write it; its memory is reused after the launch.
    pub fn consumed<T: Pod>(buffer: DeviceBuffer<T>) -> Argument<'static> {
        Argument::from_memory::<T>(buffer.view(), Access::WritePart, true)
    }

    /// An integer scalar of its type's size, or `bool` as `u8`.
    pub fn integer<T: Pod>(value: T) -> Argument<'a> {
        Argument::from_value(ArgumentKind::Integer, value)
    }

    /// A floating-point scalar of its type's size.
    pub fn float<T: Pod>(value: T) -> Argument<'a> {
        Argument::from_value(ArgumentKind::Float, value)
    }

    /// A struct, array or complex number by value.
    pub fn by_value<T: Pod>(value: T) -> Argument<'a> {
        Argument::from_value(ArgumentKind::Bytes, value)
    }

    /// A device address that this library does not track.
    pub fn raw_address(address: u64) -> Argument<'a> {
        Argument::from_bytes(ArgumentType::new(ArgumentKind::Address, 8, None), &address.to_ne_bytes())
    }

    /// A value of these bytes.
    pub(crate) fn value(kind: ArgumentKind, bytes: &[u8]) -> Argument<'a> {
        Argument::from_bytes(ArgumentType::new(kind, bytes.len(), None), bytes)
    }

    /// Memory of unknown elements, which other threads may use at the same time.
    pub(crate) fn memory(view: View<'a>, writes: bool) -> Argument<'a> {
        let access = if writes { Access::WritePart } else { Access::ReadPart };
        let argument = Argument::from_memory::<u8>(view, access, writes);
        Argument { argument: ArgumentType::new(ArgumentKind::Address, 8, None), ..argument }
    }

    fn describe(&self) -> ArgumentView<'_> {
        let Some(memory) = &self.memory else {
            let bytes: &[u8] = bytemuck::cast_slice(self.words.as_slice());
            return ArgumentView::value(self.argument, bytes.get(..self.argument.size).unwrap_or_default());
        };
        let ArgumentMemory { ref allocation, address, bytes: length, writes, .. } = *memory;
        ArgumentView::memory_of(
            self.argument.value,
            View { allocation, address, length, whole: false },
            writes,
        )
    }
}

/// The pointers of a list of arguments; up to 16 need no allocation.
type ListPointers = Pointers<16>;

// SAFETY: the values are in the list's own words, which stay where they are while the list is borrowed, and the memory that
// they name is registered.
unsafe impl KernelArguments for &[Argument<'_>] {
    const SIGNATURE: Option<Signature> = None;
    type Pointers = ListPointers;

    fn types(&self) -> impl ExactSizeIterator<Item = ArgumentType> {
        self.iter().map(|argument| argument.argument)
    }

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        self.iter()
            .filter_map(|argument| argument.memory.as_ref())
            .try_for_each(|memory| target.enter(&memory.allocation, memory.access))
    }

    fn pointers(&self) -> ListPointers {
        Pointers::of(self.iter().map(|argument| argument.words.as_slice().as_ptr().cast_mut().cast()))
    }

    fn describe(&self) -> Vec<ArgumentView<'_>> {
        self.iter().map(Argument::describe).collect()
    }
}

macro_rules! lists {
    ($([$($generic:tt)*] $type:ty;)*) => {$(
        // SAFETY: as for the slice, to which this converts.
        unsafe impl<$($generic)*> KernelArguments for $type {
            const SIGNATURE: Option<Signature> = None;
            type Pointers = ListPointers;

            fn types(&self) -> impl ExactSizeIterator<Item = ArgumentType> {
                self.iter().map(|argument| argument.argument)
            }

            fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
                self.as_slice().enter(target)
            }

            fn pointers(&self) -> ListPointers {
                self.as_slice().pointers()
            }

            fn describe(&self) -> Vec<ArgumentView<'_>> {
                self.iter().map(Argument::describe).collect()
            }
        }
    )*};
}

lists! {
    [] &Vec<Argument<'_>>;
    [const N: usize] &[Argument<'_>; N];
}

impl std::fmt::Debug for Argument<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Argument({:?} of {} bytes)", self.argument.kind, self.argument.size)
    }
}
