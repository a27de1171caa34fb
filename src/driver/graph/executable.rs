//! Executable graphs, and updates to them.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytemuck::Pod;

use super::capture;
use super::template::{DriverGraph, Graph, no_such_node};
use super::work::{HeldMemory, LastLaunch};
use crate::driver::argument::{KernelArguments, LaunchTarget};
use crate::driver::context::{Handle, call, stream_call};
use crate::driver::function::Function;
use crate::driver::graph::capture::HeldBlock;
use crate::driver::launch::LaunchConfig;
use crate::driver::memory::{PinnedBuffer, Resource};
use crate::driver::stream::Stream;
use crate::driver::stream_work::{StreamWork, WorkKind};
use crate::error::{Error, Result};
use crate::sys::driver::{
    CUDA_KERNEL_NODE_PARAMS_v2, CUgraphExec_st, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
};

/// An instantiated graph, which can be launched any number of times. It holds everything that its operations name.
pub struct ExecutableGraph {
    raw: Handle<CUgraphExec_st>,
    graph: Graph,
    /// The driver's graph that this was instantiated from, if `graph` is a later one. Its nodes identify the nodes to
    /// change.
    first: Option<DriverGraph>,
    /// Held by one launch at a time, while it registers its memory uses and calls the driver.
    launching: Mutex<LastLaunch>,
    /// The number of nodes, counted by the first launch in a trace.
    nodes: OnceLock<usize>,
}

impl Drop for ExecutableGraph {
    fn drop(&mut self) {
        if !self.graph.device.is_lost() {
            // The driver frees a running graph when it is done.
            self.graph.device.release_or_report(Resource::ExecutableGraph(self.raw));
        }
    }
}

/// The error of an update. It returns the graph that could not be used.
#[derive(Debug)]
pub struct GraphUpdateError {
    /// The cause.
    pub error: Box<Error>,
    /// The graph, unchanged.
    pub graph: Graph,
}

impl std::fmt::Display for GraphUpdateError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(formatter)
    }
}

impl std::error::Error for GraphUpdateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

impl From<GraphUpdateError> for Error {
    fn from(failed: GraphUpdateError) -> Error {
        *failed.error
    }
}

/// Page-locked memory that a captured copy reads or writes and that the graph now owns. See
/// [`Transfer::captured`](crate::driver::Transfer::captured) and [`ExecutableGraph::host`].
pub struct CapturedBuffer<T> {
    /// The capture's id.
    capture: u64,
    index: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> CapturedBuffer<T> {
    pub(crate) fn new(capture: u64, index: usize) -> CapturedBuffer<T> {
        CapturedBuffer { capture, index, element: PhantomData }
    }
}

impl<T> Clone for CapturedBuffer<T> {
    fn clone(&self) -> CapturedBuffer<T> {
        *self
    }
}

impl<T> Copy for CapturedBuffer<T> {}

impl<T> std::fmt::Debug for CapturedBuffer<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "CapturedBuffer<{}>({})", std::any::type_name::<T>(), self.index)
    }
}

impl ExecutableGraph {
    pub(super) fn new(raw: Handle<CUgraphExec_st>, graph: Graph) -> ExecutableGraph {
        ExecutableGraph { raw, graph, first: None, launching: Mutex::default(), nodes: OnceLock::new() }
    }

    /// The captured graph that this was instantiated from.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Launches the graph on a stream, as one operation. It follows all earlier uses of its buffers on any stream, and
    /// its own earlier launches.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device or is capturing, the driver's errors, or [`Error::ContextLost`], also if a
    /// buffer was lost with the context of another device.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let (state, graph) = (stream.state(), &self.graph);
        if !std::ptr::eq(state.device, graph.device) {
            return Err(self.wrong_device(stream));
        }
        if capture::any() {
            self.refuse_capture(stream)?;
        }
        let mut last = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
        graph.work.enter(state, &mut last)?;
        // SAFETY: graph and stream are live and of one context, and the nodes' memory is held and registered.
        let call = || state.alone(|| unsafe { stream_call!(state, cuGraphLaunch(self.raw.0, state.raw.0)) });
        state.submit_work(|| self.traced(), call).map(drop)
    }

    /// A launch of this graph in a trace.
    #[cold]
    fn traced(&self) -> StreamWork {
        // An update keeps the number of nodes.
        let nodes = *self.nodes.get_or_init(|| self.graph.raw.nodes().map_or(0, |nodes| nodes.len()));
        let arguments = vec![("nodes", nodes.into()), ("graph", self.graph.work.id.into())];
        StreamWork { kind: WorkKind::Graph, name: self.graph.work.label.as_str().into(), arguments }
    }

    #[cold]
    fn wrong_device(&self, stream: &Stream) -> Error {
        // One of the two may be from before a reset.
        if let Err(error) = self.graph.device.check_alive().and(stream.state().device.check_alive()) {
            return error;
        }
        Error::DeviceMismatch {
            operation: "launching a graph",
            left: format!("a graph of device {}", self.graph.device.ordinal),
            right: format!("a stream of device {}", stream.device().ordinal()),
        }
    }

    #[cold]
    fn refuse_capture(&self, stream: &Stream) -> Result<()> {
        let operation = "launching a graph";
        capture::refuse(operation, stream.state(), None)?;
        for memory in &self.graph.work.memory {
            if let Some(allocation) = memory.allocation() {
                let access = crate::driver::memory::Access::of(memory.writes);
                capture::refuse(operation, stream.state(), Some((&allocation, access)))?;
            }
        }
        Ok(())
    }

    /// Uploads the graph's resources to the device ahead of the first launch.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        let state = stream.state();
        if !std::ptr::eq(state.device, self.graph.device) {
            return Err(self.wrong_device(stream));
        }
        capture::refuse("uploading a graph", state, None)?;
        // The driver does not synchronize calls on one graph.
        let _one_at_a_time = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: graph and stream are live and of one context.
        state.submit_alone(|| unsafe { stream_call!(state, cuGraphUpload(self.raw.0, state.raw.0)) })
    }

    /// Updates this graph from another capture of the same operations in the same order, with other arguments, shapes
    /// or buffers. This is much cheaper than instantiation. Launches in progress are not changed.
    ///
    /// # Errors
    ///
    /// [`Error::GraphNotUpdatable`] if the two differ in more than that, the driver is older than CUDA 12.0, or the
    /// driver's errors. The error returns `graph`; this graph is unchanged.
    pub fn update(&mut self, graph: Graph) -> Result<(), GraphUpdateError> {
        match self.try_update(&graph) {
            Ok(()) => {
                self.launching = Mutex::default();
                let earlier = std::mem::replace(&mut self.graph, graph);
                self.first.get_or_insert(earlier.raw);
                Ok(())
            }
            Err(error) => Err(GraphUpdateError { error: Box::new(error), graph }),
        }
    }

    fn try_update(&mut self, graph: &Graph) -> Result<()> {
        /// CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE.
        const UPDATE_FAILURE: u32 = 910;
        let device = self.graph.device;
        if !std::ptr::eq(device, graph.device) {
            device.check_alive().and(graph.device.check_alive())?;
            return Err(Error::DeviceMismatch {
                operation: "updating a graph",
                left: format!("a graph of device {}", device.ordinal),
                right: format!("one of device {}", graph.device.ordinal),
            });
        }
        let _bound = device.bind()?;
        let mut info = CUgraphExecUpdateResultInfo::default();
        // SAFETY: both graphs are live; the pointer is to a local.
        let status = unsafe { (device.api.cuGraphExecUpdate()?)(self.raw.0, graph.raw.handle.0, &mut info) };
        if status.0 == UPDATE_FAILURE {
            return Err(Error::GraphNotUpdatable { found: refusal(info.result) });
        }
        device.check("cuGraphExecUpdate", status)
    }

    /// Changes the shape and arguments of one kernel for later launches. `node` is its index in [`Graph::nodes`]. The
    /// graph holds the memory that the arguments name. Other attributes of the captured launch stay, such as
    /// programmatic dependence.
    ///
    /// # Errors
    ///
    /// There is no such node, or it is not a kernel of this library; the errors of a launch; the driver is older than
    /// CUDA 12.0; or the driver's errors. Nothing is then changed.
    ///
    /// # Safety
    ///
    /// As [`Function::launch`](crate::driver::Function::launch). Besides, the order among the graph's nodes does not
    /// change, so unordered nodes must not use the new buffers in conflict.
    pub unsafe fn set_kernel<A: KernelArguments>(
        &mut self,
        node: usize,
        config: LaunchConfig,
        arguments: A,
    ) -> Result<()> {
        const OPERATION: &str = "ExecutableGraph::set_kernel";
        self.graph.device.api.cuGraphKernelNodeGetParams()?;
        let nodes = self.graph.nodes_of(&self.graph.raw.nodes()?)?;
        let names = self.first.as_ref().unwrap_or(&self.graph.raw).nodes()?;
        let found = nodes
            .get(node)
            .ok_or_else(|| no_such_node(OPERATION, node, format!("past the end of {} nodes", nodes.len())))?;
        let function = found
            .function
            .clone()
            .ok_or_else(|| no_such_node(OPERATION, node, format!("{:?}", found.kind())))?;
        let function = Function(function);
        function.0.check(&arguments)?;
        function.check_config(&config)?;
        if !config.is_plain() {
            return Err(Error::invalid(
                OPERATION,
                "attributes of a launch",
                "a grid, a block and shared memory alone",
            ));
        }
        let name = names
            .get(node)
            .copied()
            .ok_or_else(|| no_such_node(OPERATION, node, "not in the first graph"))?;
        let device = self.graph.device;
        let named = Mutex::new(Vec::new());
        arguments.enter(LaunchTarget::graph(device, &named))?;
        let mut pointers = arguments.pointers();
        let (grid, block) = (config.grid, config.block);
        let parameters = CUDA_KERNEL_NODE_PARAMS_v2 {
            func: function.0.raw.0,
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: config.shared,
            kernelParams: pointers.as_mut().as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        let bound = device.bind()?;
        // SAFETY: graph and node are live; the arguments fit the parameters and are copied by the call.
        unsafe { call!(device, cuGraphExecKernelNodeSetParams(self.raw.0, name.0, &parameters))? };
        drop(bound);
        self.launching = Mutex::default();
        let work = &mut self.graph.work;
        for (allocation, access) in named.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let known = work.memory.iter_mut().find(|memory| memory.is(&allocation));
            match known {
                Some(memory) => memory.writes |= access.writes(),
                None => {
                    let writes = access.writes();
                    work.hold(HeldMemory { held: HeldBlock::Shared(allocation), writes });
                }
            }
        }
        Ok(())
    }

    /// Returns the page-locked memory of a captured copy, after waiting for all launches so far. The next launch
    /// uploads values written here; values downloaded by the last launch are read here.
    ///
    /// # Errors
    ///
    /// The buffer belongs to another graph, an earlier kernel faulted, or the driver's errors.
    pub fn host<T: Pod + Send>(&mut self, buffer: &CapturedBuffer<T>) -> Result<&mut [T]> {
        let work = &mut self.graph.work;
        for stream in work.usage.streams() {
            stream.mark()?.synchronize()?;
        }
        let held = if work.id == buffer.capture { work.pinned.get_mut(buffer.index) } else { None };
        let pinned = held.and_then(|held| held.buffer.downcast_mut::<PinnedBuffer<T>>());
        pinned.map(|pinned| &mut **pinned).ok_or_else(|| {
            Error::invalid("ExecutableGraph::host", "a buffer of another capture", "one of this graph's")
        })
    }
}

/// Describes the driver's reason for refusing an update.
fn refusal(result: CUgraphExecUpdateResult) -> String {
    let text = match result {
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED => {
            "other nodes or another order"
        }
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED => "a node of another kind",
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED
        | CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE => "another kernel",
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED => {
            "arguments that cannot be changed, such as memory of another device"
        }
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED => "a node that cannot be updated",
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED => {
            "other attributes of a launch"
        }
        other => return format!("the driver's reason {}", other.0),
    };
    format!("it has {text}")
}

impl std::fmt::Debug for ExecutableGraph {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Executable{:?}", self.graph)
    }
}

impl HeldMemory {
    fn is(&self, allocation: &Arc<crate::driver::memory::Allocation>) -> bool {
        match &self.held {
            HeldBlock::Shared(known) => Arc::ptr_eq(known, allocation),
            HeldBlock::Own(known) => std::ptr::eq(known.as_ptr(), Arc::as_ptr(allocation)),
        }
    }

    fn allocation(&self) -> Option<Arc<crate::driver::memory::Allocation>> {
        match &self.held {
            HeldBlock::Shared(allocation) => Some(allocation.clone()),
            HeldBlock::Own(allocation) => allocation.upgrade(),
        }
    }
}
