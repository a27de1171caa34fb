//! A closure that is captured on first use, and again when its key changes.

use super::executable::ExecutableGraph;
use crate::driver::stream::Stream;
use crate::error::{Error, Result};

/// A closure that runs as a graph.
///
/// The first launch captures the closure. A later launch captures it again if the key, such as a shape, differs from
/// the last one. Other launches only launch the graph.
///
/// The closure's return value (its outputs) is stored with the graph, and each launch returns a reference to it.
///
/// ```no_run
/// # use selvedge::driver::{Captured, Device, DeviceBuffer, Stream};
/// # fn main() -> selvedge::Result<()> {
/// # let stream = Device::new(0)?.stream()?;
/// let mut ones = Captured::new(|stream: &Stream, length: &usize| {
///     let mut output = stream.uninitialized::<f32>(*length)?;
///     stream.fill(&mut output, 1.0)?;
///     Ok(output)
/// });
/// for length in [1000, 1000, 1000, 500] {
///     let output: &mut DeviceBuffer<f32> = ones.launch(&stream, length)?;
///     assert_eq!(stream.download(output)?.len(), length);
/// }
/// assert_eq!(ones.captures(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Captured<K, R, F> {
    work: F,
    current: Option<Current<K, R>>,
    captures: u64,
}

struct Current<K, R> {
    key: K,
    graph: ExecutableGraph,
    result: R,
}

impl<K, R, F> Captured<K, R, F>
where
    K: PartialEq,
    F: FnMut(&Stream, &K) -> Result<R>,
{
    /// Creates a closure that is not captured yet. `work` issues its operations on the stream that it gets.
    pub fn new(work: F) -> Captured<K, R, F> {
        Captured { work, current: None, captures: 0 }
    }

    /// Launches the work for the key on the stream, and returns the closure's result from its capture.
    ///
    /// # Errors
    ///
    /// The errors of the closure, of [`Stream::capture`] and of [`ExecutableGraph::launch`]. An earlier capture stays
    /// valid.
    pub fn launch(&mut self, stream: &Stream, key: K) -> Result<&mut R> {
        if !self.current.as_ref().is_some_and(|current| current.key == key) {
            let work = &mut self.work;
            let (graph, result) = stream.capture(|stream| work(stream, &key))?;
            let graph = match self.current.take() {
                None => graph.instantiate()?,
                Some(mut current) => match current.graph.update(graph) {
                    Ok(()) => current.graph,
                    Err(failed) => {
                        let differs = matches!(
                            *failed.error,
                            Error::GraphNotUpdatable { .. } | Error::MissingSymbol { .. }
                        );
                        let graph = if differs { failed.graph.instantiate() } else { Err(*failed.error) };
                        match graph {
                            Ok(graph) => graph,
                            Err(error) => {
                                self.current = Some(current);
                                return Err(error);
                            }
                        }
                    }
                },
            };
            self.captures += 1;
            self.current = Some(Current { key, graph, result });
        }
        let Some(current) = &mut self.current else {
            return Err(Error::invalid("Captured::launch", "nothing captured", "a graph"));
        };
        current.graph.launch(stream)?;
        Ok(&mut current.result)
    }

    /// How often the closure was captured.
    pub fn captures(&self) -> u64 {
        self.captures
    }

    /// The graph that launches use, once there is one.
    pub fn graph(&self) -> Option<&ExecutableGraph> {
        self.current.as_ref().map(|current| &current.graph)
    }
}

impl<K: std::fmt::Debug, R, F> std::fmt::Debug for Captured<K, R, F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.current.as_ref().map(|current| &current.key);
        write!(formatter, "Captured({} captures, key {key:?})", self.captures)
    }
}
