//! The thin safe layer over the NVIDIA driver: devices, streams, events, memory, modules and launches.
//!
//! The layer does not depend on tensors and can be used alone. Invariants:
//!
//! - **Primary contexts only**, retained for the life of the process. Every entry asks the driver for the current context
//!   and never caches it, because `cudart` in the same process may switch contexts. If another context is current, it is
//!   restored when the call ends. See `context.rs`.
//! - **Stream order is the only synchronization.** A kernel may outlive the borrow of its argument. Every operation that
//!   names a buffer therefore makes its stream wait for the buffer's conflicting uses, then registers as a user. See
//!   `memory/mod.rs`.
//! - **`Drop` never panics and never blocks.** Resources that cannot be freed yet are retired and freed later. Errors that
//!   cannot be returned go to [`set_deferred_error_hook`](crate::error::set_deferred_error_hook).
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
mod cupti;
mod cupti_times;
mod device;
mod device_cache;
mod device_times;
mod event;
mod foreign;
mod fork;
mod function;
mod graph;
mod grid;
mod host_function;
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
mod stream_work;
mod tensor_map;
mod timeout;
mod transfer_marks;
mod with_memory;

pub use argument::{Argument, ByValue, KernelArgument, KernelArguments, LaunchTarget, RawAddress, Signature};
pub use argument_view::ArgumentView;
pub use attribute::Attribute;
pub use device::{Device, MemoryInfo, driver_isa, driver_version};
pub(crate) use device_cache::DeviceCache;
pub use event::Event;
pub(crate) use foreign::call_deleters;
pub(crate) use fork::check as check_not_forked;
pub use function::{Function, FunctionAttributes};
pub(crate) use graph::OpenCapture;
pub(crate) use graph::capture::on_this_thread as captures_on_this_thread;
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
pub(crate) use with_memory::WithMemory;
