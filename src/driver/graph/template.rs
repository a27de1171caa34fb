//! Captured graphs: their nodes, their picture, and their instantiation.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use super::capture::{Capture, report_end};
use super::executable::ExecutableGraph;
use super::work::Work;
use crate::driver::context::{Handle, call};
use crate::driver::device::{Device, DeviceState};
use crate::driver::function::FunctionState;
use crate::driver::launch::Dim3;
use crate::driver::memory::Resource;
use crate::driver::stream::Stream;
use crate::error::{Error, Result};
use crate::sys::driver::{
    CUDA_KERNEL_NODE_PARAMS_v2, CUgraph_st, CUgraphEdgeData, CUgraphExec, CUgraphNode, CUgraphNode_st,
    CUgraphNodeType,
};

/// Captured work. It does nothing by itself: [`instantiate`](Graph::instantiate) it and launch the result.
pub struct Graph {
    pub(super) device: &'static DeviceState,
    pub(super) raw: DriverGraph,
    /// The resources that the nodes name.
    pub(super) work: Box<Work>,
}

/// The driver's graph.
pub(super) struct DriverGraph {
    device: &'static DeviceState,
    pub(super) handle: Handle<CUgraph_st>,
    /// Held while the graph is read, because the driver requires one thread at a time even for that.
    looking: Mutex<()>,
}

impl Drop for DriverGraph {
    fn drop(&mut self) {
        self.device.destroy_graph(self.handle);
    }
}

impl DriverGraph {
    /// The driver's handles of the nodes.
    pub(super) fn nodes(&self) -> Result<Vec<Handle<CUgraphNode_st>>> {
        let device = self.device;
        let _bound = device.bind()?;
        let mut count = 0usize;
        // SAFETY: the graph is live; without an array the driver gives the count.
        unsafe { call!(device, cuGraphGetNodes(self.handle.0, std::ptr::null_mut(), &mut count))? };
        let mut nodes: Vec<CUgraphNode> = vec![std::ptr::null_mut(); count];
        // SAFETY: there is room for `count` nodes.
        unsafe { call!(device, cuGraphGetNodes(self.handle.0, nodes.as_mut_ptr(), &mut count))? };
        nodes.truncate(count);
        Ok(nodes.into_iter().map(Handle).collect())
    }
}

impl DeviceState {
    /// Destroys a graph of the driver. Does nothing for a null one.
    pub(super) fn destroy_graph(&'static self, graph: Handle<CUgraph_st>) {
        if !graph.0.is_null() && !self.is_lost() {
            self.release_or_report(Resource::Graph(graph));
        }
    }
}

/// A capture that was begun and not ended. Dropping it ends and discards the capture. It stays on the thread that began it.
pub(crate) struct OpenCapture {
    capture: Option<Arc<Capture>>,
    origin: Stream,
}

impl OpenCapture {
    /// Begins a capture; see [`Stream::capture`].
    pub(crate) fn begin(origin: &Stream) -> Result<OpenCapture> {
        Ok(OpenCapture { capture: Some(Capture::begin(origin.state())?), origin: origin.clone() })
    }

    /// The stream that the capture began on.
    pub(crate) fn stream(&self) -> &Stream {
        &self.origin
    }

    /// Ends the capture and returns its graph. An error discards the capture.
    pub(crate) fn end(mut self) -> Result<Graph> {
        let Some(capture) = self.capture.take() else {
            return Err(Error::invalid("ending a capture", "one that has ended", "one that was begun"));
        };
        let ended = capture.end(self.origin.state());
        let device = capture.device;
        let work = Box::new(capture.into_work());
        let raw = DriverGraph { device, handle: ended?, looking: Mutex::default() };
        Ok(Graph { device, raw, work })
    }
}

impl Drop for OpenCapture {
    fn drop(&mut self) {
        if let Some(capture) = self.capture.take() {
            let ended = capture.end(self.origin.state());
            report_end(ended.map(|graph| capture.device.destroy_graph(graph)));
            drop(capture.into_work());
        }
    }
}

impl Stream {
    /// Captures the operations that `work` issues on this stream, and on streams that come to depend on it, instead of
    /// running them. Returns the graph and the result of `work`.
    ///
    /// Any operation of this library that does not block can be captured: launches, fills, copies on the device and
    /// from and to [`PinnedBuffer`](crate::driver::PinnedBuffer)s, events, and waits among the captured streams.
    /// Another stream joins when it waits for a captured one or uses a buffer after it. All are joined back at the end.
    /// Operations on unrelated streams run as always.
    ///
    /// Allocations on captured streams belong to the graph. A buffer that `work` returns holds the values of the last
    /// launch. Its contents are unspecified when a launch begins, so values written to it in between are lost.
    ///
    /// ```no_run
    /// # use selvedge::driver::{Device, Function, LaunchConfig};
    /// # fn main() -> selvedge::Result<()> {
    /// # let device = Device::new(0)?;
    /// # let stream = device.stream()?;
    /// # let scale: Function = device.load(b"")?.function("scale")?;
    /// let mut x = stream.upload(&[1.0f32; 1024])?;
    /// let (graph, ()) = stream.capture(|stream| {
    ///     for _ in 0..100 {
    ///         // SAFETY: scale(float*, float) touches 1024 elements.
    ///         unsafe { scale.launch(stream, LaunchConfig::for_elements(1024), (&mut x, 1.01f32))? };
    ///     }
    ///     Ok(())
    /// })?;
    /// let graph = graph.instantiate()?;
    /// graph.launch(&stream)?; // 100 launches
    /// let result = stream.download(&x)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `work`; a capture in progress on this thread or stream; [`Error::NotCapturable`] if other code
    /// invalidated the capture; the driver's errors; or [`Error::ContextLost`]. An error or a panic of `work` ends and
    /// discards the capture.
    pub fn capture<R>(&self, work: impl FnOnce(&Stream) -> Result<R>) -> Result<(Graph, R)> {
        let open = OpenCapture::begin(self)?;
        let result = work(self)?;
        Ok((open.end()?, result))
    }
}

/// The kind of a graph node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GraphNodeKind {
    /// Launches a kernel.
    Kernel,
    /// Copies memory.
    Copy,
    /// Fills memory.
    Fill,
    /// Calls a function on the host.
    Host,
    /// Launches another graph.
    Graph,
    /// Orders other nodes and does nothing else.
    Empty,
    /// Waits for an event or records one.
    Event,
    /// Runs a part of the graph once, repeatedly, or not at all.
    Conditional,
    /// A kind that this library does not know, with the driver's number.
    Other(u32),
}

impl GraphNodeKind {
    fn new(kind: CUgraphNodeType) -> GraphNodeKind {
        match kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => GraphNodeKind::Kernel,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => GraphNodeKind::Copy,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => GraphNodeKind::Fill,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => GraphNodeKind::Host,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => GraphNodeKind::Graph,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => GraphNodeKind::Empty,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT
            | CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => GraphNodeKind::Event,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => GraphNodeKind::Conditional,
            other => GraphNodeKind::Other(other.0),
        }
    }

    fn name(self) -> String {
        match self {
            GraphNodeKind::Other(number) => format!("type {number}"),
            known => format!("{known:?}").to_lowercase(),
        }
    }
}

/// A node of a graph.
#[derive(Clone)]
pub struct GraphNode {
    pub(super) function: Option<Arc<FunctionState>>,
    kind: GraphNodeKind,
    grid: Option<(Dim3, Dim3)>,
    after: Vec<usize>,
}

impl GraphNode {
    /// The node's kind.
    pub fn kind(&self) -> GraphNodeKind {
        self.kind
    }

    /// The kernel's name, for a kernel node.
    pub fn kernel(&self) -> Option<&'static str> {
        self.function.as_ref().map(|function| function.name.as_str())
    }

    /// The kernel's grid and block, if the driver reports them (CUDA 12.0 and up).
    pub fn shape(&self) -> Option<(Dim3, Dim3)> {
        self.grid
    }

    /// The indices in [`Graph::nodes`] of the nodes that this one depends on.
    pub fn after(&self) -> &[usize] {
        &self.after
    }
}

impl std::fmt::Debug for GraphNode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.kernel().unwrap_or("");
        write!(formatter, "GraphNode({} {name} after {:?})", self.kind.name(), self.after)
    }
}

impl Graph {
    /// The graph's device.
    pub fn device(&self) -> Device {
        Device(self.device)
    }

    /// Instantiates the graph, which the result holds.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] and the driver's other errors, or [`Error::ContextLost`].
    pub fn instantiate(self) -> Result<ExecutableGraph> {
        let mut raw: CUgraphExec = std::ptr::null_mut();
        let bound = self.device.bind()?;
        // SAFETY: the graph is live; the pointer is to a local.
        unsafe { call!(self.device, cuGraphInstantiateWithFlags(&mut raw, self.raw.handle.0, 0))? };
        drop(bound);
        Ok(ExecutableGraph::new(Handle(raw), self))
    }

    /// Returns the nodes with their dependencies, in the driver's order, which is that of the capture.
    ///
    /// # Errors
    ///
    /// [`Error::MissingSymbol`] with a driver before CUDA 12.3, the driver's errors, or [`Error::ContextLost`].
    pub fn nodes(&self) -> Result<Vec<GraphNode>> {
        let _one_at_a_time = self.raw.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.raw.nodes()?;
        let mut nodes = self.nodes_of(&names)?;
        let (from, to) = self.edges()?;
        let position_of: HashMap<_, _> = names.iter().map(|node| &node.0).zip(0usize..).collect();
        for (from, to) in from.iter().zip(&to) {
            if let (Some(&from), Some(&to)) = (position_of.get(from), position_of.get(to))
                && let Some(node) = nodes.get_mut(to)
            {
                node.after.push(from);
            }
        }
        Ok(nodes)
    }

    /// Returns the nodes without their dependencies.
    pub(super) fn nodes_of(&self, names: &[Handle<CUgraphNode_st>]) -> Result<Vec<GraphNode>> {
        let _bound = self.device.bind()?;
        names.iter().map(|node| self.node(node.0)).collect()
    }

    /// Returns both ends of every edge.
    fn edges(&self) -> Result<(Vec<CUgraphNode>, Vec<CUgraphNode>)> {
        let (device, graph) = (self.device, self.raw.handle.0);
        let _bound = device.bind()?;
        let (mut count, none) = (0usize, std::ptr::null_mut());
        // SAFETY: the graph is live; without arrays the driver gives the count.
        unsafe { call!(device, cuGraphGetEdges(graph, none, none, std::ptr::null_mut(), &mut count))? };
        let mut from: Vec<CUgraphNode> = vec![std::ptr::null_mut(); count];
        let mut to = from.clone();
        let mut kinds = vec![CUgraphEdgeData::default(); count];
        if count > 0 {
            let (from, to, kinds) = (from.as_mut_ptr(), to.as_mut_ptr(), kinds.as_mut_ptr());
            // SAFETY: there is room for `count` edges in each array.
            unsafe { call!(device, cuGraphGetEdges(graph, from, to, kinds, &mut count))? };
        }
        from.truncate(count);
        to.truncate(count);
        Ok((from, to))
    }

    /// The context must be current.
    fn node(&self, raw: CUgraphNode) -> Result<GraphNode> {
        let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
        // SAFETY: the node is of a live graph; the pointer is to a local.
        unsafe { call!(self.device, cuGraphNodeGetType(raw, &mut kind))? };
        let mut node =
            GraphNode { function: None, kind: GraphNodeKind::new(kind), grid: None, after: Vec::new() };
        if node.kind == GraphNodeKind::Kernel && self.device.api.cuGraphKernelNodeGetParams().is_ok() {
            let mut parameters = CUDA_KERNEL_NODE_PARAMS_v2::default();
            // SAFETY: the node is a kernel's; the pointer is to a local.
            unsafe { call!(self.device, cuGraphKernelNodeGetParams(raw, &mut parameters))? };
            let known = self.work.functions.iter().find(|function| function.raw.0 == parameters.func);
            node.function = known.cloned();
            node.grid = Some((
                Dim3 { x: parameters.gridDimX, y: parameters.gridDimY, z: parameters.gridDimZ },
                Dim3 { x: parameters.blockDimX, y: parameters.blockDimY, z: parameters.blockDimZ },
            ));
        }
        Ok(node)
    }

    /// Returns the graph in the DOT language for Graphviz: a box for each node, and an arrow to each dependent node.
    ///
    /// # Errors
    ///
    /// As [`nodes`](Self::nodes).
    pub fn to_dot(&self) -> Result<String> {
        let mut text = String::from("digraph selvedge {\n  node [shape=box, fontname=\"Helvetica\"];\n");
        for (index, node) in self.nodes()?.iter().enumerate() {
            let mut label = node.kind.name();
            if let Some(kernel) = node.kernel() {
                label = kernel.replace('\\', "\\\\").replace('"', "\\\"");
            }
            if let Some((grid, block)) = node.grid {
                let _ = write!(label, "\\n{grid} blocks of {block}");
            }
            let colour = match node.kind {
                GraphNodeKind::Kernel => "#cfe3ff",
                GraphNodeKind::Copy | GraphNodeKind::Fill => "#d9f2d9",
                GraphNodeKind::Conditional | GraphNodeKind::Graph => "#ffe3c2",
                _ => "#eeeeee",
            };
            let _ = writeln!(text, "  n{index} [label=\"{label}\", style=filled, fillcolor=\"{colour}\"];");
            for before in &node.after {
                let _ = writeln!(text, "  n{before} -> n{index};");
            }
        }
        text.push_str("}\n");
        Ok(text)
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kernels, buffers) = (self.work.functions.len(), self.work.memory.len());
        write!(formatter, "Graph({kernels} kernels, {buffers} buffers, device {})", self.device.ordinal)
    }
}

/// Returns the error for an index that names no kernel node.
pub(super) fn no_such_node(operation: &'static str, index: usize, found: impl std::fmt::Display) -> Error {
    Error::invalid(
        operation,
        format!("node {index}, which is {found}"),
        "a node that launches a kernel, see Graph::nodes",
    )
}
