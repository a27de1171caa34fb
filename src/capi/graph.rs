//! Graphs: captured work that is launched as one operation.

use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::arguments::{out, write_text};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object, sv_executable_graph, sv_graph, sv_pinned, sv_stream};
use super::pinned::{PinnedState, pinned};
use super::stream::stream;
use crate::driver::{ExecutableGraph, Graph, GraphUpdateError, OpenCapture};

/// A captured graph behind a handle; none after an executable graph has taken it.
#[derive(Clone)]
pub(super) struct GraphObject(Arc<Mutex<Option<Graph>>>);
object!(GraphObject, Graph);

/// An executable graph behind a handle. Launches share it.
#[derive(Clone)]
pub(super) struct ExecutableGraphObject(Arc<RwLock<ExecutableGraph>>);
object!(ExecutableGraphObject, ExecutableGraph);

thread_local! {
    /// The capture that this thread has begun.
    static OPEN: RefCell<Option<OpenCapture>> = const { RefCell::new(None) };
}

impl GraphObject {
    fn with<R>(&self, work: impl FnOnce(&mut Option<Graph>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn look<R>(&self, work: impl FnOnce(&Graph) -> crate::Result<R>) -> Result<R> {
        self.with(|graph| Ok(work(graph.as_ref().ok_or_else(taken)?)?))
    }
}

impl ExecutableGraphObject {
    fn read(&self) -> RwLockReadGuard<'_, ExecutableGraph> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ExecutableGraph> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn taken() -> Failure {
    Failure::argument("graph", "one that an executable graph has taken", "a graph of sv_stream_end_capture")
}

fn graph(handle: u64) -> Result<GraphObject> {
    GraphObject::table().get(handle, "graph")
}

fn executable(handle: u64) -> Result<ExecutableGraphObject> {
    ExecutableGraphObject::table().get(handle, "executable")
}

/// Discards the capture that this thread has begun, if any.
pub(super) fn discard_capture() {
    let open = OPEN.try_with(|open| open.try_borrow_mut().ok().and_then(|mut open| open.take()));
    drop(open);
}

/// Begins to capture the operations that this thread issues on a stream, and on streams that come to depend on it, in place
/// of running them. A thread captures one graph at a time.
///
/// Launches, fills, copies on the device and from and to pinned memory, events, and waits among the captured streams can be
/// captured; a call that waits answers `SV_ERROR_NOT_CAPTURABLE`, and the capture goes on. Memory allocated on captured
/// streams belongs to the graph. The same thread ends the capture; one that a thread leaves open ends with the thread.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_begin_capture(stream: sv_stream) -> i32 {
    guard::call("sv_stream_begin_capture", || {
        let stream = self::stream(stream, "stream")?;
        let open = OpenCapture::begin(&stream)?;
        let before = OPEN.with_borrow_mut(|slot| slot.replace(open));
        drop(before);
        Ok(())
    })
}

/// Ends the capture that this thread has begun on a stream, and gives its graph. The graph does nothing by itself: instantiate
/// it, and launch the result. A failing call discards the capture, unless the capture belongs to another stream.
///
/// Only the thread that began the capture may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stream_end_capture(stream: sv_stream, graph: *mut sv_graph) -> i32 {
    guard::call("sv_stream_end_capture", || {
        let result = out(graph, "graph")?;
        let stream = self::stream(stream, "stream")?;
        let open = OPEN.with_borrow_mut(|slot| slot.take_if(|open| *open.stream() == *stream));
        let open = open.ok_or_else(|| {
            let found = "a stream without a capture of this thread";
            Failure::argument("stream", found, "the stream of sv_stream_begin_capture, on the same thread")
        })?;
        let graph = GraphObject(Arc::new(Mutex::new(Some(open.end()?))));
        result.write(GraphObject::table().insert(graph)?);
        Ok(())
    })
}

/// Writes the number of nodes of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_graph_node_count(graph: sv_graph, nodes: *mut usize) -> i32 {
    guard::call("sv_graph_node_count", || {
        let result = out(nodes, "nodes")?;
        result.write(self::graph(graph)?.look(|graph| Ok(graph.nodes()?.len()))?);
        Ok(())
    })
}

/// Writes a picture of a graph in the language of Graphviz. `text`, `capacity` and `length` are as for `sv_library_report`.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_graph_dot(
    graph: sv_graph,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_graph_dot", || {
        let dot = self::graph(graph)?.look(Graph::to_dot)?;
        write_text(&dot, text, capacity, length)
    })
}

/// Instantiates a graph. The executable graph takes the captured one, whose handle can only be released afterwards, also where
/// the driver fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_graph_instantiate(graph: sv_graph, executable: *mut sv_executable_graph) -> i32 {
    guard::call("sv_graph_instantiate", || {
        let result = out(executable, "executable")?;
        let graph = self::graph(graph)?.with(Option::take).ok_or_else(taken)?;
        let object = ExecutableGraphObject(Arc::new(RwLock::new(graph.instantiate()?)));
        result.write(ExecutableGraphObject::table().insert(object)?);
        Ok(())
    })
}

/// Launches an executable graph on a stream, as one operation, behind all earlier uses of its buffers and its own earlier
/// launches. The host does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn sv_executable_graph_launch(executable: sv_executable_graph, stream: sv_stream) -> i32 {
    guard::call("sv_executable_graph_launch", || {
        let stream = self::stream(stream, "stream")?;
        Ok(self::executable(executable)?.read().launch(&stream)?)
    })
}

/// Uploads what an executable graph needs to the device, ahead of its first launch.
#[unsafe(no_mangle)]
pub extern "C" fn sv_executable_graph_upload(executable: sv_executable_graph, stream: sv_stream) -> i32 {
    guard::call("sv_executable_graph_upload", || {
        let stream = self::stream(stream, "stream")?;
        Ok(self::executable(executable)?.read().upload(&stream)?)
    })
}

/// Updates an executable graph from another capture of the same operations in the same order, with other arguments, shapes or
/// buffers. The executable graph takes the captured one. Launches in progress are not changed.
///
/// `SV_ERROR_GRAPH_NOT_UPDATABLE` says that the two differ in more than that; `graph` can then be instantiated.
#[unsafe(no_mangle)]
pub extern "C" fn sv_executable_graph_update(executable: sv_executable_graph, graph: sv_graph) -> i32 {
    guard::call("sv_executable_graph_update", || {
        let object = self::executable(executable)?;
        self::graph(graph)?.with(|slot| {
            let given = slot.take().ok_or_else(taken)?;
            object.write().update(given).map_err(|GraphUpdateError { error, graph }| {
                *slot = Some(graph);
                Failure::from(*error)
            })
        })
    })
}

/// Writes the address and the size of pinned memory that a captured copy uses and the graph has, after a wait for all launches
/// so far. The next launch uploads what is written there; what the last launch downloaded is read there.
///
/// The memory may be used until the next launch. Any thread may call it, one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_executable_graph_host(
    executable: sv_executable_graph,
    pinned: sv_pinned,
    data: *mut *mut c_void,
    bytes: *mut usize,
) -> i32 {
    guard::call("sv_executable_graph_host", || {
        let (data, bytes) = (out(data, "data")?, out(bytes, "bytes")?);
        let object = self::executable(executable)?;
        let captured = match &*self::pinned(pinned, "pinned")?.lock() {
            PinnedState::Captured(captured) => *captured,
            _ => {
                let found = "memory that no graph has";
                return Err(Failure::argument("pinned", found, "memory of a captured copy"));
            }
        };
        let mut graph = object.write();
        let memory = graph.host(&captured)?;
        bytes.write(memory.len());
        data.write(memory.as_mut_ptr().cast());
        Ok(())
    })
}
