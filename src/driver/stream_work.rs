//! The description of an operation of a stream for a trace.

use std::borrow::Cow;

use crate::trace::Arguments;

/// The kind of an operation of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkKind {
    Kernel,
    Copy,
    Fill,
    Graph,
}

impl WorkKind {
    /// The category of the host's call.
    pub(super) fn host(self) -> &'static str {
        match self {
            WorkKind::Kernel => "launch",
            WorkKind::Copy => "copy",
            WorkKind::Fill => "fill",
            WorkKind::Graph => "graph launch",
        }
    }

    /// The category of the device's work.
    pub(super) fn device(self) -> &'static str {
        match self {
            WorkKind::Kernel => "kernel",
            WorkKind::Copy => "device copy",
            WorkKind::Fill => "device fill",
            WorkKind::Graph => "graph",
        }
    }
}

/// The description of an operation.
pub(crate) struct StreamWork {
    pub(crate) kind: WorkKind,
    pub(crate) name: Cow<'static, str>,
    pub(crate) arguments: Arguments,
}

impl StreamWork {
    /// A copy of so many bytes.
    pub(crate) fn copy(name: &'static str, bytes: usize) -> StreamWork {
        StreamWork { kind: WorkKind::Copy, name: name.into(), arguments: vec![("bytes", bytes.into())] }
    }

    /// A fill of so many bytes.
    pub(crate) fn fill(bytes: usize) -> StreamWork {
        StreamWork { kind: WorkKind::Fill, name: "fill".into(), arguments: vec![("bytes", bytes.into())] }
    }
}
