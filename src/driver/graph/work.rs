//! What a graph holds, and how a launch of it takes its place among everything else that uses the same memory.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use super::arena::GraphArena;
use super::capture::{CapturedMemory, Held};
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
    /// Gives the memory back once the event is complete.
    pub(crate) retire: fn(Box<dyn Any>, Option<Arc<EventCell>>),
}

// SAFETY: the buffer owns its memory; its elements are reached only by `ExecutableGraph::host`, which wants them `Send`.
unsafe impl Send for HeldPinned {}
// SAFETY: as above: through `&HeldPinned` nothing is reached, and `ExecutableGraph::host` takes `&mut`.
unsafe impl Sync for HeldPinned {}

/// A block and whether the graph writes to it.
pub(super) struct HeldMemory {
    pub(super) held: Held,
    pub(super) writes: bool,
}

/// The stream that a graph was launched on last, and the count of changes among all blocks' users before that launch
/// entered its own: where both are the same again, there is nothing to enter.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LastLaunch {
    stream: u64,
    changes: u64,
}

/// Everything that a graph's operations name.
pub(crate) struct Work {
    pub(super) device: &'static DeviceState,
    /// The capture's.
    pub(super) id: u64,
    /// The graph's launches: each comes after the one before.
    pub(super) usage: Usage,
    pub(super) arena: Arc<GraphArena>,
    /// Whether there is anything in it.
    has_own_memory: bool,
    pub(super) memory: Vec<HeldMemory>,
    /// Whether some of it is another device's, which can be lost while this one goes on.
    has_foreign_memory: bool,
    pub(super) functions: Vec<Arc<FunctionState>>,
    pub(super) modules: Vec<Arc<ModuleState>>,
    pub(super) pinned: Vec<HeldPinned>,
    /// What a fault calls it.
    label: &'static KernelName,
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

    /// Holds one more block.
    pub(super) fn hold(&mut self, memory: HeldMemory) {
        if let Held::Shared(allocation) = &memory.held {
            self.has_foreign_memory |= !std::ptr::eq(allocation.device, self.device);
        }
        self.memory.push(memory);
    }

    /// Fails where memory went with another device's context: a kernel that touched it would end this one too.
    #[cold]
    fn check_foreign_memory(&self) -> Result<()> {
        self.memory.iter().try_for_each(|memory| match &memory.held {
            Held::Shared(allocation) => allocation.device.check_alive(),
            Held::Own(_) => Ok(()),
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
        // The text is kept for good, so it must not grow with the program.
        const NAMED: usize = 4;
        let more = if names.len() > NAMED { " and others" } else { "" };
        names.truncate(NAMED);
        if !names.is_empty() {
            self.label = KernelName::intern(&format!("a graph with {}{more}", names.join(", ")));
        }
    }

    /// Makes a stream that is about to launch the graph wait for everything that it must come after, and enters it.
    /// One launch at a time; `last` is what the one before left.
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
            // First: should the rest fail, launches on other streams come after what this one waits for by then.
            self.usage.enter(stream, Access::Write)?;
        }
        if self.has_own_memory {
            self.arena.enter(stream)?;
        }
        if !is_known {
            self.enter_all(stream)?;
            // Where any of that was more than a compare, the count went on, and the next launch looks again.
            *last = now;
        }
        Ok(())
    }

    fn enter_all(&self, stream: &Arc<StreamState>) -> Result<()> {
        for module in &self.modules {
            module.usage.enter(stream, Access::Read)?;
        }
        for memory in &self.memory {
            // Buffers are held by others too, who may be in the middle of a use on another thread.
            let access = if memory.writes { Access::WritePart } else { Access::ReadPart };
            match &memory.held {
                Held::Shared(allocation) => allocation.enter(stream, access)?,
                Held::Own(allocation) => {
                    if let Some(allocation) = allocation.upgrade() {
                        allocation.enter(stream, access)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// An event behind all launches, where there were any.
    fn end(&self) -> Result<Option<Arc<EventCell>>> {
        let streams = self.usage.streams();
        let Some((last, others)) = streams.split_last() else {
            return Ok(None);
        };
        // Each launch came after the ones before, so one stream is all there is; should there be more, one waits.
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
                // Never launched: dropped like any other buffer.
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
