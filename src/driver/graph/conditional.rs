//! Parts of a graph that run once, again and again, or not at all, as a value in device memory says when the graph runs.
//!
//! A conditional node (CUDA 12.3) has a handle and a body, which is a graph of its own. A kernel of one thread copies the
//! value into the handle ahead of the node, and in a loop once more at the end of each turn. The body is captured on a
//! stream of its own, as a capture inside the capture. What it uses counts as used by the node: everything captured so
//! far comes before the node, and the stream's next operation after it.

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

/// Assembled by the driver, which knows the function that it calls.
const SET_CONDITION: &[u8] = concat!(include_str!("set_condition.ptx"), "\0").as_bytes();

/// A device's kernel that sets a condition, once it is loaded.
#[derive(Default)]
pub(crate) struct ConditionKernel(Mutex<Option<Function>>);

impl ConditionKernel {
    /// Lets the kernel go; graphs that use it hold it.
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

/// Where a stream's capture stands.
struct Position {
    graph: CUgraph,
    dependencies: Vec<CUgraphNode>,
    edges: Vec<CUgraphEdgeData>,
}

impl Position {
    fn of(stream: &StreamState) -> Result<Position> {
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
        Ok(Position { graph, dependencies: copy(dependencies), edges })
    }

    fn edge_data(&self) -> *const CUgraphEdgeData {
        if self.edges.is_empty() { std::ptr::null() } else { self.edges.as_ptr() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    If,
    While,
}

impl Stream {
    /// Captures work that a launch does only where the first element of `condition` is not 0 by then. Only inside
    /// [`capture`](Stream::capture), on a stream of it; `body` gives its operations to the stream that it is called with.
    ///
    /// A body can have launches, fills, copies on the device, allocations and conditional work.
    ///
    /// # Errors
    ///
    /// That of `body`, which ends the capture too; an empty condition, a stream that is not captured,
    /// [`Error::MissingSymbol`] for a driver before CUDA 12.3, or the driver's errors.
    pub fn run_if<R>(
        &self,
        condition: &impl DeviceRead<u32>,
        body: impl FnOnce(&Stream) -> Result<R>,
    ) -> Result<R> {
        let mut part = self.begin_part("Stream::run_if", Kind::If, first(condition)?)?;
        let result = body(&part.inner)?;
        part.end()?;
        Ok(result)
    }

    /// Captures work that a launch repeats as long as the first element of `condition` is not 0; it is looked at before
    /// each turn, so the work, which gets it back, should change it. Otherwise as [`run_if`](Stream::run_if).
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
        let mut part = self.begin_part("Stream::run_while", Kind::While, first(condition)?)?;
        let result = body(&part.inner, condition)?;
        set_condition(&part.kernel, &part.inner, part.handle, first(condition)?)?;
        part.end()?;
        Ok(result)
    }

    fn begin_part(
        &self,
        operation: &'static str,
        kind: Kind,
        condition: DeviceSlice<'_, u32>,
    ) -> Result<Part<'_>> {
        let state = self.state();
        let Some(outer) = capture::current().filter(|capture| capture.has(state)) else {
            let found = format!("{state}, which this thread does not capture");
            return Err(Error::invalid(operation, found, "a stream of a capture, see Stream::capture"));
        };
        let device = state.device;
        // All that a body needs, before anything is added to the graph.
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
        // A node without a body would run for ever.
        let capture = capture.inspect_err(|_| outer.spoil())?;
        Ok(Part { capture: Some(capture), inner, kernel, handle, outer, stream: state })
    }
}

/// The condition itself.
fn first(condition: &impl DeviceRead<u32>) -> Result<DeviceSlice<'_, u32>> {
    DeviceSlice::new(condition.view()).slice(..1)
}

/// A body under capture. Left by an error or a panic, what it has so far is part of the graph all the same, and held.
struct Part<'a> {
    capture: Option<Arc<Capture>>,
    inner: Stream,
    kernel: Function,
    handle: CUgraphConditionalHandle,
    outer: Arc<Capture>,
    /// The stream that the body counts as work of.
    stream: &'a Arc<StreamState>,
}

impl Part<'_> {
    fn end(&mut self) -> Result<()> {
        let Some(capture) = self.capture.take() else {
            return Ok(());
        };
        // The graph that comes back is the body, which belongs to the node.
        let ended = capture.end(self.inner.state()).map(drop);
        ended.and(self.outer.absorb(capture, self.stream)).inspect_err(|_| self.outer.spoil())
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if self.capture.is_some() {
            // The error that is on its way says why. Should it be lost, the graph must not run: a loop would never end.
            self.outer.spoil();
            report_end(self.end());
        }
    }
}

fn condition_handle(stream: &StreamState) -> Result<CUgraphConditionalHandle> {
    let position = Position::of(stream)?;
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

/// Adds the node behind all that the stream has, and puts the stream behind it. Returns the body.
fn add_node(
    stream: &StreamState,
    handle: CUgraphConditionalHandle,
    kind: Kind,
) -> Result<Handle<CUgraph_st>> {
    let position = Position::of(stream)?;
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
            Kind::If => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
            Kind::While => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
        },
        size: 1,
        phGraph_out: std::ptr::null_mut(),
        ctx: device.context.0,
    };
    let mut node: CUgraphNode = std::ptr::null_mut();
    let _bound = device.bind()?;
    // SAFETY: graph and dependencies are those of a capture under way; the pointers are to locals.
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
    /// The new dependencies take the place of the old.
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
