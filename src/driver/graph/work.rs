//! The resources that a graph holds, and the order of its launches among other uses of the same memory.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use super::arena::GraphArena;
use super::capture::{CapturedMemory, HeldBlock};
use crate::driver::context::gone;
use crate::driver::device::DeviceState;
use crate::driver::event::EventCell;
use crate::driver::function::FunctionState;
use crate::driver::kernel_name::KernelName;
use crate::driver::memory::{Access, Usage, changes};
use crate::driver::module::ModuleState;
use crate::driver::stream::StreamState;
use crate::error::{Result, report_deferred};

/// Page-locked memory that a captured copy uses.
pub(crate) struct HeldPinned {
    /// The [`PinnedBuffer`](crate::driver::PinnedBuffer).
    pub(crate) buffer: Box<dyn Any>,
    /// Frees the memory once the event is complete.
    pub(crate) retire: fn(Box<dyn Any>, Option<Arc<EventCell>>),
}

// SAFETY: the buffer owns its memory; only `ExecutableGraph::host`, which requires `Send`, reaches its elements.
unsafe impl Send for HeldPinned {}
// SAFETY: as above: nothing is reachable through `&HeldPinned`, and `ExecutableGraph::host` takes `&mut`.
unsafe impl Sync for HeldPinned {}

/// A block, with a flag for writes by the graph.
pub(super) struct HeldMemory {
    pub(super) held: HeldBlock,
    pub(super) writes: bool,
}

/// The stream of the last launch, and the count of usage changes on all blocks before it registered its own. If both
/// are unchanged, the next launch has nothing to register.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LastLaunch {
    stream: u64,
    changes: u64,
}

/// Everything that a graph's operations name.
pub(crate) struct Work {
    pub(super) device: &'static DeviceState,
    /// The capture's id.
    pub(super) id: u64,
    /// The graph's launches, each of which follows the one before.
    pub(super) usage: Usage,
    pub(super) arena: Arc<GraphArena>,
    /// True if the graph has memory of its own.
    has_own_memory: bool,
    pub(super) memory: Vec<HeldMemory>,
    /// True if the graph uses memory of another device, which can be lost on its own.
    has_foreign_memory: bool,
    pub(super) functions: Vec<Arc<FunctionState>>,
    pub(super) modules: Vec<Arc<ModuleState>>,
    pub(super) pinned: Vec<HeldPinned>,
    /// The name of the graph in the error of a fault.
    pub(super) label: &'static KernelName,
}

impl Work {
    pub(super) fn new(
        device: &'static DeviceState,
        id: u64,
        arena: Arc<GraphArena>,
        memory: HashMap<usize, CapturedMemory>,
        functions: HashMap<usize, Arc<FunctionState>>,
        pinned: Vec<HeldPinned>,
    ) -> Work {
        let functions: Vec<_> = functions.into_values().collect();
        let has_own_memory = arena.has_blocks();
        let mut work = Work {
            device,
            id,
            usage: Usage::idle(),
            arena,
            has_own_memory,
            memory: Vec::with_capacity(memory.len()),
            has_foreign_memory: false,
            functions: Vec::new(),
            modules: Vec::new(),
            pinned,
            label: KernelName::intern("a graph without kernels"),
        };
        for memory in memory.into_values() {
            work.hold(HeldMemory { held: memory.held, writes: memory.writes });
        }
        work.hold_functions(functions);
        work
    }

    /// Holds another block.
    pub(super) fn hold(&mut self, memory: HeldMemory) {
        if let HeldBlock::Shared(allocation) = &memory.held {
            self.has_foreign_memory |= !std::ptr::eq(allocation.device, self.device);
        }
        self.memory.push(memory);
    }

    /// Fails if memory was lost with another device's context: a kernel that touched it would end this context too.
    #[cold]
    fn check_foreign_memory(&self) -> Result<()> {
        self.memory.iter().try_for_each(|memory| match &memory.held {
            HeldBlock::Shared(allocation) => allocation.device.check_alive(),
            HeldBlock::Own(_) => Ok(()),
        })
    }

    /// Holds more kernels and their modules.
    pub(super) fn hold_functions(&mut self, functions: impl IntoIterator<Item = Arc<FunctionState>>) {
        for function in functions {
            if self.functions.iter().any(|known| Arc::ptr_eq(known, &function)) {
                continue;
            }
            if !self.modules.iter().any(|known| Arc::ptr_eq(known, &function.module)) {
                self.modules.push(function.module.clone());
            }
            self.functions.push(function);
        }
        let mut names: Vec<&str> = self.functions.iter().map(|function| function.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        // Interned text is never freed, so its length is bounded.
        const NAMED: usize = 4;
        let more = if names.len() > NAMED { " and others" } else { "" };
        names.truncate(NAMED);
        if !names.is_empty() {
            self.label = KernelName::intern(&format!("a graph with {}{more}", names.join(", ")));
        }
    }

    /// Makes a stream that is about to launch the graph wait for all earlier uses, and registers the launch. One launch
    /// at a time; `last` is the state that the launch before left.
    #[inline]
    pub(super) fn enter(&self, stream: &Arc<StreamState>, last: &mut LastLaunch) -> Result<()> {
        if self.has_foreign_memory {
            self.check_foreign_memory()?;
        }
        stream.set_last_kernel(self.label);
        let now = LastLaunch { stream: stream.id, changes: changes() };
        let is_known = *last == now;
        if !is_known {
            *last = LastLaunch::default();
            // Registered first: if the rest fails, launches on other streams still follow the waits of this one.
            self.usage.enter(stream, Access::Write)?;
        }
        if self.has_own_memory {
            self.arena.enter(stream)?;
        }
        if !is_known {
            self.enter_all(stream)?;
            // If any check found a change, the count has moved, and the next launch registers again.
            *last = now;
        }
        Ok(())
    }

    fn enter_all(&self, stream: &Arc<StreamState>) -> Result<()> {
        for module in &self.modules {
            module.usage.enter(stream, Access::Read)?;
        }
        for memory in &self.memory {
            // Other owners may be registering a use of the buffer on another thread.
            let access = if memory.writes { Access::WritePart } else { Access::ReadPart };
            match &memory.held {
                HeldBlock::Shared(allocation) => allocation.enter(stream, access)?,
                HeldBlock::Own(allocation) => {
                    if let Some(allocation) = allocation.upgrade() {
                        allocation.enter(stream, access)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns an event behind all launches, if there were any.
    fn end(&self) -> Result<Option<Arc<EventCell>>> {
        let streams = self.usage.streams();
        let Some((last, others)) = streams.split_last() else {
            return Ok(None);
        };
        // Each launch follows the ones before, so one stream suffices; if there are more, one waits for the others.
        others.iter().try_for_each(|other| last.wait_for_living(other))?;
        last.mark().map(Some)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if self.device.is_lost() {
            for pinned in self.pinned.drain(..) {
                (pinned.retire)(pinned.buffer, None);
            }
            return;
        }
        match self.end() {
            Ok(None) => {
                // Never launched: the block is dropped like any other buffer.
            }
            Ok(Some(end)) => {
                for pinned in self.pinned.drain(..) {
                    (pinned.retire)(pinned.buffer, Some(end.clone()));
                }
                self.arena.wait_for(vec![end]);
            }
            Err(error) => {
                for pinned in self.pinned.drain(..) {
                    (pinned.retire)(pinned.buffer, None);
                }
                self.arena.abandon();
                if !gone(&error) {
                    report_deferred(&error);
                }
            }
        }
    }
}
