//! The driver's own graphs, captured from a stream: the reference of ours.

use std::ptr;

use super::bare::{Bare, Handle, check, functions};
use super::report::Failure;

functions! {
    begin = "cuStreamBeginCapture_v2"(Handle, i32);
    end = "cuStreamEndCapture"(Handle, *mut Handle);
    instantiate = "cuGraphInstantiateWithFlags"(*mut Handle, Handle, u64);
    launch = "cuGraphLaunch"(Handle, Handle);
    destroy_executable = "cuGraphExecDestroy"(Handle);
    destroy = "cuGraphDestroy"(Handle);
}

/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`.
const THREAD_LOCAL: i32 = 1;

/// The driver's functions for graphs.
pub struct BareGraphs(Functions);

/// A captured graph.
pub struct Captured(Handle);

/// A graph that can be launched.
pub struct Executable(Handle);

impl BareGraphs {
    /// Opens them.
    pub fn open() -> Result<BareGraphs, Failure> {
        Functions::open().map(BareGraphs)
    }

    /// Captures what `work` gives to the stream.
    pub fn capture(
        &self,
        bare: &Bare,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Captured, Failure> {
        let mut graph = ptr::null_mut();
        // SAFETY: the stream lives as long as the process.
        check(unsafe { (self.0.begin)(bare.stream, THREAD_LOCAL) }, "cuStreamBeginCapture")?;
        work()?;
        // SAFETY: as above; writes one handle.
        check(unsafe { (self.0.end)(bare.stream, &mut graph) }, "cuStreamEndCapture")?;
        Ok(Captured(graph))
    }

    /// Makes it launchable.
    pub fn instantiate(&self, graph: &Captured) -> Result<Executable, Failure> {
        let mut executable = ptr::null_mut();
        // SAFETY: the graph is live; writes one handle.
        let code = unsafe { (self.0.instantiate)(&mut executable, graph.0, 0) };
        check(code, "cuGraphInstantiateWithFlags")?;
        Ok(Executable(executable))
    }

    /// Launches it on the stream.
    #[inline]
    pub fn launch(&self, bare: &Bare, executable: &Executable) -> Result<(), Failure> {
        // SAFETY: both are live; the caller keeps the kernels' memory alive until the stream is idle.
        check(unsafe { (self.0.launch)(executable.0, bare.stream) }, "cuGraphLaunch")
    }

    /// Throws a captured graph away.
    pub fn discard(&self, graph: Captured) -> Result<(), Failure> {
        // SAFETY: it is not used again.
        check(unsafe { (self.0.destroy)(graph.0) }, "cuGraphDestroy")
    }

    /// Throws a graph away whose launches are done.
    pub fn discard_executable(&self, executable: Executable) -> Result<(), Failure> {
        // SAFETY: it is not used again.
        check(unsafe { (self.0.destroy_executable)(executable.0) }, "cuGraphExecDestroy")
    }
}
