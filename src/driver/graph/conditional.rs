//! Conditional graph nodes: parts of a graph that run once, repeatedly or not at all, depending on a value in device
//! memory.
//!
//! A conditional node (CUDA 12.3) has a handle and a body, which is a graph of its own. A kernel of one thread copies
//! the value into the handle ahead of the node, and in a loop again at the end of each iteration. The body is captured
//! on a stream of its own, as a capture inside the capture. The node counts as a user of everything that the body uses:
//! all earlier captured work precedes the node, and the stream's next operation follows it.

use std::sync::{Arc, Mutex, PoisonError};

use super::capture::{self, Capture, report_end};
use crate::driver::context::{Handle, call, stream_call};
use crate::driver::device::Device;
use crate::driver::function::Function;
use crate::driver::launch::LaunchConfig;
use crate::driver::memory::{DeviceRead, DeviceSlice, DeviceWrite};
use crate::driver::stream::{Stream, StreamState};
use crate::error::{Error, Result};

use crate::sys::driver::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUgraph, CUgraph_st, CUgraphConditionalHandle, CUgraphConditionalNodeType,
    CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, CUgraphNodeParams_st__bindgen_ty_1, CUgraphNodeType,
    CUstreamCaptureMode, CUstreamCaptureStatus,
};

/// PTX that the driver assembles, because only the driver knows the function that it calls.
const SET_CONDITION: &[u8] = concat!(include_str!("set_condition.ptx"), "\0").as_bytes();

/// A device's kernel that sets a condition, once it is loaded.
#[derive(Default)]
pub(crate) struct ConditionKernel(Mutex<Option<Function>>);

impl ConditionKernel {
    /// Drops the kernel. Graphs that use it hold it.
    pub(crate) fn forget(&self) {
        let loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(loaded);
    }

    fn get(&self, device: Device) -> Result<Function> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = &*loaded {
            return Ok(function.clone());
        }
        let function = device.load(SET_CONDITION)?.function("set_condition")?;
        *loaded = Some(function.clone());
        Ok(function)
    }
}

/// A stream's position in its capture.
struct CapturePosition {
    graph: CUgraph,
    dependencies: Vec<CUgraphNode>,
    edges: Vec<CUgraphEdgeData>,
}

impl CapturePosition {
    fn of(stream: &StreamState) -> Result<CapturePosition> {
        let _bound = stream.device.bind_strictly()?;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut graph, mut id): (CUgraph, u64) = (std::ptr::null_mut(), 0);
        let (mut dependencies, mut edges) = (std::ptr::null(), std::ptr::null());
        let mut count = 0usize;
        // SAFETY: the stream is live; the pointers are to locals.
        unsafe {
            stream_call!(
                stream,
                cuStreamGetCaptureInfo(
                    stream.raw.0,
                    &mut status,
                    &mut id,
                    &mut graph,
                    &mut dependencies,
                    &mut edges,
                    &mut count,
                )
            )?;
        }
        let copy = |list: *const CUgraphNode| match list.is_null() {
            true => Vec::new(),
            // SAFETY: the driver's list has `count` entries until the next call on the stream.
            false => unsafe { std::slice::from_raw_parts(list, count) }.to_vec(),
        };
        let edges = match edges.is_null() {
            true => Vec::new(),
            // SAFETY: as above.
            false => unsafe { std::slice::from_raw_parts(edges, count) }.to_vec(),
        };
        Ok(CapturePosition { graph, dependencies: copy(dependencies), edges })
    }

    fn edge_data(&self) -> *const CUgraphEdgeData {
        if self.edges.is_empty() { std::ptr::null() } else { self.edges.as_ptr() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConditionalKind {
    If,
    While,
}

impl Stream {
    /// Captures work that a launch runs only if the first element of `condition` is not 0 at that time. Call it inside
    /// [`capture`](Stream::capture), on one of its streams. `body` issues its operations on the stream that it gets.
    ///
    /// A body may contain launches, fills, copies on the device, allocations and conditional work.
    ///
    /// # Errors
    ///
    /// The error of `body`, which ends the capture too; an empty condition; a stream that is not captured;
    /// [`Error::MissingSymbol`] with a driver before CUDA 12.3; or the driver's errors.
    pub fn run_if<R>(
        &self,
        condition: &impl DeviceRead<u32>,
        body: impl FnOnce(&Stream) -> Result<R>,
    ) -> Result<R> {
        let mut part = self.begin_part("Stream::run_if", ConditionalKind::If, first(condition)?)?;
        let result = body(&part.inner)?;
        part.end()?;
        Ok(result)
    }

    /// Captures work that a launch repeats while the first element of `condition` is not 0. The graph checks the value
    /// before each iteration, so the body, which gets `condition` back, should change it. Otherwise as
    /// [`run_if`](Stream::run_if).
    ///
    /// ```no_run
    /// # use selvedge::driver::{Device, LaunchConfig};
    /// # fn main() -> selvedge::Result<()> {
    /// # let stream = Device::new(0)?.stream()?;
    /// # let halve = stream.device().load(b"")?.function("halve")?;
    /// let mut left = stream.upload(&[10u32])?;
    /// let (graph, ()) = stream.capture(|stream| {
    ///     stream.run_while(&mut left, |stream, left| {
    ///         // SAFETY: halve(unsigned*) divides one number by two.
    ///         unsafe { halve.launch(stream, LaunchConfig::new(1, 1), (left,)) }
    ///     })
    /// })?;
    /// graph.instantiate()?.launch(&stream)?; // 10, 5, 2, 1, 0
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run_if`](Stream::run_if).
    pub fn run_while<C: DeviceWrite<u32>, R>(
        &self,
        condition: &mut C,
        body: impl FnOnce(&Stream, &mut C) -> Result<R>,
    ) -> Result<R> {
        let mut part = self.begin_part("Stream::run_while", ConditionalKind::While, first(condition)?)?;
        let result = body(&part.inner, condition)?;
        set_condition(&part.kernel, &part.inner, part.handle, first(condition)?)?;
        part.end()?;
        Ok(result)
    }

    fn begin_part(
        &self,
        operation: &'static str,
        kind: ConditionalKind,
        condition: DeviceSlice<'_, u32>,
    ) -> Result<ConditionalBody<'_>> {
        let state = self.state();
        let Some(outer) = capture::current().filter(|capture| capture.has(state)) else {
            let found = format!("{state}, which this thread does not capture");
            return Err(Error::invalid(operation, found, "a stream of a capture, see Stream::capture"));
        };
        let device = state.device;
        // Check all requirements of a body before adding to the graph.
        device.api.cuStreamBeginCaptureToGraph()?;
        device.api.cuStreamUpdateCaptureDependencies()?;
        device.api.cuGraphAddNode()?;
        let kernel = device.condition_kernel.get(self.device())?;
        let inner = self.device().stream()?;

        outer.gather(state)?;
        let handle = condition_handle(state)?;
        set_condition(&kernel, self, handle, condition)?;
        let graph = add_node(state, handle, kind)?;
        let inner_state = inner.state();
        let capture = Capture::begin_with(inner_state, outer.arena.clone(), || {
            let none = std::ptr::null();
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            // SAFETY: the stream is live; the graph is the node's body, which lives as long as the graph around it.
            unsafe {
                let raw = inner_state.raw.0;
                stream_call!(
                    inner_state,
                    cuStreamBeginCaptureToGraph(raw, graph.0, none, std::ptr::null(), 0, mode)
                )
            }
        });
        // A loop without a body would never end.
        let capture = capture.inspect_err(|_| outer.spoil())?;
        Ok(ConditionalBody { capture: Some(capture), inner, kernel, handle, outer, stream: state })
    }
}

/// Returns the first element of the condition.
fn first(condition: &impl DeviceRead<u32>) -> Result<DeviceSlice<'_, u32>> {
    DeviceSlice::new(condition.view()).slice(..1)
}

/// A body being captured. If an error or a panic ends it early, its operations so far stay in the graph, which holds
/// them.
struct ConditionalBody<'a> {
    capture: Option<Arc<Capture>>,
    inner: Stream,
    kernel: Function,
    handle: CUgraphConditionalHandle,
    outer: Arc<Capture>,
    /// The stream whose work the body counts as.
    stream: &'a Arc<StreamState>,
}

impl ConditionalBody<'_> {
    fn end(&mut self) -> Result<()> {
        let Some(capture) = self.capture.take() else {
            return Ok(());
        };
        // The returned graph is the body, which the node owns.
        let ended = capture.end(self.inner.state()).map(drop);
        ended.and(self.outer.absorb(capture, self.stream)).inspect_err(|_| self.outer.spoil())
    }
}

impl Drop for ConditionalBody<'_> {
    fn drop(&mut self) {
        if self.capture.is_some() {
            // The caller returns an error. Spoil the capture in case it is ignored: an incomplete loop would never end.
            self.outer.spoil();
            report_end(self.end());
        }
    }
}

fn condition_handle(stream: &StreamState) -> Result<CUgraphConditionalHandle> {
    let position = CapturePosition::of(stream)?;
    let mut handle: CUgraphConditionalHandle = 0;
    let device = stream.device;
    let _bound = device.bind()?;
    // SAFETY: the graph is being captured; the pointer is to a local.
    unsafe {
        call!(device, cuGraphConditionalHandleCreate(&mut handle, position.graph, device.context.0, 0, 0))?
    };
    Ok(handle)
}

fn set_condition(
    kernel: &Function,
    stream: &Stream,
    handle: CUgraphConditionalHandle,
    condition: DeviceSlice<'_, u32>,
) -> Result<()> {
    // SAFETY: the kernel reads one element; the handle is of the graph that is being captured.
    unsafe { kernel.launch(stream, LaunchConfig::new(1, 1), (handle, condition)) }
}

/// Adds the node behind all work of the stream, and orders the stream behind the node. Returns the body.
fn add_node(
    stream: &StreamState,
    handle: CUgraphConditionalHandle,
    kind: ConditionalKind,
) -> Result<Handle<CUgraph_st>> {
    let position = CapturePosition::of(stream)?;
    let device = stream.device;
    let mut parameters = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        reserved0: [0; 3],
        __bindgen_anon_1: CUgraphNodeParams_st__bindgen_ty_1 { reserved1: [0; 29] },
        reserved2: 0,
    };
    parameters.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
        handle,
        type_: match kind {
            ConditionalKind::If => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
            ConditionalKind::While => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
        },
        size: 1,
        phGraph_out: std::ptr::null_mut(),
        ctx: device.context.0,
    };
    let mut node: CUgraphNode = std::ptr::null_mut();
    let _bound = device.bind()?;
    // SAFETY: graph and dependencies belong to a capture in progress; the pointers are to locals.
    unsafe {
        call!(
            device,
            cuGraphAddNode(
                &mut node,
                position.graph,
                position.dependencies.as_ptr(),
                position.edge_data(),
                position.dependencies.len(),
                &mut parameters,
            )
        )?;
    }
    /// Replaces the old dependencies by the new ones.
    const SET: u32 = 1;
    stream.submit(|| {
        // SAFETY: the stream is live and captures, the node is of its graph.
        unsafe {
            stream_call!(
                stream,
                cuStreamUpdateCaptureDependencies(stream.raw.0, &mut node, std::ptr::null(), 1, SET)
            )
        }
    })?;
    // SAFETY: the driver wrote this member, whose array holds one graph.
    let body = unsafe {
        let bodies = parameters.__bindgen_anon_1.conditional.phGraph_out;
        if bodies.is_null() { std::ptr::null_mut() } else { *bodies }
    };
    if body.is_null() {
        return Err(Error::invalid(
            "cuGraphAddNode",
            "a conditional node without a body",
            "one with a graph",
        ));
    }
    Ok(Handle(body))
}
