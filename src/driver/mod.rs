//! The thin safe layer over the NVIDIA driver: devices, streams, events, memory, modules and launches.
//!
//! It knows nothing of tensors and can be used alone. What must stay true:
//!
//! - **Primary contexts only**, retained for the life of the process. Every entry asks the driver which context is
//!   current, never a cache of ours, because `cudart` in the same process switches contexts behind us; where another
//!   one is current it is put back when the call ends. See `context.rs`.
//! - **Stream order is the only proof.** A kernel runs on when the borrow of its argument has ended, so every
//!   operation that names a buffer first makes its stream wait for whatever is still using it, and then enters itself.
//!   See `memory/mod.rs`.
//! - **Nothing panics and nothing blocks in `Drop`.** What cannot be freed yet is retired and freed later; what cannot
//!   be returned as an error goes to [`set_deferred_error_hook`](crate::error::set_deferred_error_hook).
//!
//! ```no_run
//! use selvedge::driver::{Device, LaunchConfig};
//!
//! # fn main() -> selvedge::Result<()> {
//! let device = Device::new(0)?;
//! let stream = device.stream()?;
//! let module = device.load(&std::fs::read("saxpy.ptx").expect("the file is there"))?;
//! let saxpy = module.function("saxpy")?;
//! let x = stream.upload(&[1.0f32; 1000])?;
//! let mut y = stream.upload(&[2.0f32; 1000])?;
//! // SAFETY: saxpy(const float*, float*, unsigned, float) touches 1000 elements of each buffer.
//! unsafe { saxpy.launch(&stream, LaunchConfig::for_elements(1000), (&x, &mut y, 1000u32, 3.0f32))? };
//! let result = stream.download(&y)?;
//! # Ok(())
//! # }
//! ```

mod argument;
mod argument_view;
mod attribute;
mod context;
mod device;
mod event;
mod fork;
mod function;
mod graph;
mod grid;
pub mod image;
mod kernel_name;
mod kernel_report;
mod launch;
mod memory;
mod module;
mod operands;
mod peer;
mod reset;
mod stream;
mod tensor_map;
mod timeout;
mod transfer_marks;

pub use argument::{Argument, ByValue, KernelArgument, KernelArguments, LaunchTarget, RawAddress, Signature};
pub use argument_view::ArgumentView;
pub use attribute::Attribute;
pub use device::{Device, MemoryInfo, driver_isa, driver_version};
pub use event::Event;
pub(crate) use fork::check as check_not_forked;
pub use function::{Function, FunctionAttributes};
pub use graph::{
    Captured, CapturedBuffer, ExecutableGraph, Graph, GraphNode, GraphNodeKind, GraphUpdateError,
};
pub(crate) use kernel_report::NO_AXIS;
pub use kernel_report::{KernelError, KernelReport};
pub use launch::{Dim3, LaunchConfig};
pub use memory::{
    BlockSnapshot, BlockState, Copy2d, Copy3d, DeviceBuffer, DeviceRead, DeviceSlice, DeviceSliceMut,
    DeviceWrite, MemoryScope, MemorySnapshot, MemoryTrace, MemoryUse, PinnedBuffer, PoolStatistics,
    RegisterError, ReplayOptions, ReplayPool, ReplayReport, ReplaySample, SegmentSnapshot, TraceEvent,
    Transfer, TransferError,
};
pub(crate) use memory::{SharedBuffer, View, prefer_large_pages};
pub(crate) use module::ModuleState;
pub use module::{Global, LinkInput, Module, ModuleOptions};
pub(crate) use operands::{Operand, OperandAccess, Operands};
pub use stream::Stream;
pub use tensor_map::{
    TensorElement, TensorInterleave, TensorMap, TensorMapLayout, TensorPromotion, TensorSwizzle,
};
pub use timeout::WaitError;
