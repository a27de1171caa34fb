//! The one error type of the crate.
//!
//! Every variant names both sides (what was found, what was wanted) and says what to do. Names and texts of driver
//! codes come from [`crate::sys`]'s own table, so an error can be shown on a machine that has no driver.

use std::sync::{Arc, RwLock};

/// The result of every fallible function of the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The driver's name in errors.
pub(crate) const DRIVER_NAME: &str = "the NVIDIA driver";

#[cfg(not(windows))]
const DRIVER_ADVICE: &str = "in a container, start it with the runtime's GPU option (docker run --gpus all, podman run \
                             --device nvidia.com/gpu=all); on the machine itself, install the driver's package that has \
                             libcuda.so.1 (Debian: libcuda1, Ubuntu: libnvidia-compute-VERSION, Fedora and RHEL: \
                             nvidia-driver-cuda-libs), or name the file by SELVEDGE_LIBCUDA";
#[cfg(windows)]
const DRIVER_ADVICE: &str =
    "install the NVIDIA driver, which has nvcuda.dll, or name the file by SELVEDGE_LIBCUDA";

/// What can go wrong, from a missing driver to a kernel that faulted.
///
/// `Debug` shows the text of `Display`, so that a `main` which returns [`Result`] prints lines that can be read.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A shared library could not be loaded.
    #[error("{library} could not be loaded; tried:\n{tried}{}", on_a_line(advice_for(.library)))]
    LibraryUnavailable {
        /// The library, such as `the NVIDIA driver` or `NVRTC`.
        library: &'static str,
        /// One line a path: where it was looked for, and why it was not taken.
        tried: String,
    },

    /// The library is there, but has no such function.
    #[error("{} has no {symbol}{}", versioned(.library, .version), needs_text(.needs, .version))]
    MissingSymbol {
        /// The library that was asked.
        library: &'static str,
        /// The function's public name.
        symbol: &'static str,
        /// The CUDA version that introduced it, such as `12.4`; empty where it is not known.
        needs: String,
        /// The version of the library that was found.
        version: String,
    },

    /// A driver call failed.
    #[error("{call} failed with {name} ({code}): {text}{}", bracketed(.detail))]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The `CUresult`.
        code: i32,
        /// The code's name, such as `CUDA_ERROR_INVALID_VALUE`.
        name: String,
        /// What the code means.
        text: String,
        /// What was being done, empty where the call says it all.
        detail: String,
    },

    /// A call of an optional library failed.
    #[error("{call} of {library} failed with status {code}{}", bracketed(.detail))]
    Library {
        /// The library, such as `NVRTC`.
        library: &'static str,
        /// The function.
        call: &'static str,
        /// The library's status code.
        code: i32,
        /// The library's own words, empty where it has none.
        detail: String,
    },

    /// The host has no memory, or a device has none after everything cached was given back.
    #[error("{}", memory_text(self))]
    OutOfMemory {
        /// The device's ordinal; none of the host, of which only the bytes asked for and `holders` are known.
        device: Option<i32>,
        /// Bytes asked for.
        requested: u64,
        /// Bytes that the driver reports as free.
        free: u64,
        /// Bytes that the device has.
        total: u64,
        /// Bytes that the pool keeps: in segments or pages that buffers use too, or in use by work that has not finished.
        cached: u64,
        /// Bytes of blocks in use by buffers.
        live: u64,
        /// The most bytes that buffers may take from the driver, where there is a limit.
        limit: Option<u64>,
        /// The sizes that hold the most, such as `3 x 1048576 bytes of stream 1`; empty where it is not known. Of the host,
        /// what asked.
        holders: String,
    },

    /// A kernel did something that ended its context, such as an access to an illegal address.
    #[error(
        "a kernel faulted on {stream}: {name} ({code}): {text}; launched there last: {kernel} (faults are reported \
         late: set CUDA_LAUNCH_BLOCKING=1, or run under compute-sanitizer, to find the exact launch)"
    )]
    KernelFault {
        /// The kernel launched last on that stream, or the ones that may be at fault.
        kernel: String,
        /// The stream on which the fault was seen.
        stream: String,
        /// The `CUresult`.
        code: i32,
        /// The code's name.
        name: String,
        /// What the code means.
        text: String,
    },

    /// The context was lost to an earlier fault or to a reset; nothing that was made in it works any more.
    #[error(
        "the context of device {device} is lost: {cause}; the CPU goes on; the device goes on with what Device::new gives \
         after Device::reset, or in a new process"
    )]
    ContextLost {
        /// The device's ordinal.
        device: i32,
        /// The error that ended it.
        cause: Arc<str>,
    },

    /// A wait gave up. The work goes on, and can be waited for again.
    #[error(
        "{operation} gave up after {waited_ms} ms; still running: {what}; the work goes on: wait again, or longer"
    )]
    TimedOut {
        /// The call that waited.
        operation: &'static str,
        /// How long it did, in milliseconds.
        waited_ms: u64,
        /// The stream, and the kernel launched there last.
        what: String,
    },

    /// The driver gave no new context after the old one was ended.
    #[error(
        "device {device} does not come back from a reset: {found}; its context had been lost: {cause}; the CPU goes on, \
         the device needs a new process"
    )]
    ResetFailed {
        /// The device's ordinal.
        device: i32,
        /// What the driver answered.
        found: String,
        /// What had ended the old context.
        cause: Arc<str>,
    },

    /// This process was made by `fork` from one that had used CUDA, and the driver does not work in such a child.
    #[error(
        "this process was forked from one that had used CUDA, and the driver does not work in such a child: use CUDA \
         in the child only, not before the fork, or start a new program in it (exec)"
    )]
    ForkedProcess,

    /// No such device.
    #[error("no device {wanted}; {found}")]
    NoDevice {
        /// The ordinal or UUID asked for.
        wanted: String,
        /// The devices that there are.
        found: String,
    },

    /// A module has no such kernel or global, or a launcher no kernel of this name.
    #[error("there is no {kind} '{wanted}'; there are: {}", list_text(.found))]
    UnknownName {
        /// `kernel` or `global`.
        kind: &'static str,
        /// The name asked for.
        wanted: String,
        /// The names that there are.
        found: Vec<String>,
    },

    /// A kernel that neither its image nor its source gives here.
    #[error("kernel '{kernel}' cannot be had here:\n{reasons}")]
    KernelUnavailable {
        /// The name.
        kernel: String,
        /// One line or more for each way that was tried, and why it was none.
        reasons: String,
    },

    /// A launch passed more or fewer arguments than the kernel has parameters.
    #[error("kernel '{kernel}' takes {wanted} arguments, {found} were given")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// Parameters of the kernel.
        wanted: usize,
        /// Arguments given.
        found: usize,
    },

    /// An argument does not fit its parameter.
    #[error("argument {index} of kernel '{kernel}' is {found}, but the parameter is {wanted}")]
    ArgumentMismatch {
        /// The kernel.
        kernel: String,
        /// The argument's position, from 0.
        index: usize,
        /// The parameter: kind and size.
        wanted: String,
        /// The argument: kind and size.
        found: String,
    },

    /// A launch asked for more than the device or the kernel allows.
    #[error("{what} is {found}, but {limit_of} allows at most {limit}")]
    LaunchLimit {
        /// What is too large, such as `threads a block`.
        what: &'static str,
        /// What was asked for.
        found: u64,
        /// The largest that works.
        limit: u64,
        /// The kernel or device that sets the limit.
        limit_of: String,
    },

    /// Bytes that are no PTX, cubin or fatbin.
    #[error("not a kernel image: found {found}; wanted PTX text, a cubin (CUDA ELF) or a fatbin")]
    NotAnImage {
        /// What the bytes look like.
        found: String,
    },

    /// An image that is damaged.
    #[error("the {kind} is damaged: {found}")]
    DamagedImage {
        /// `PTX`, `cubin` or `fatbin`.
        kind: &'static str,
        /// What is wrong.
        found: String,
    },

    /// A good image that this device or driver cannot run.
    #[error("{found}; {wanted}")]
    UnsupportedImage {
        /// What the image is, such as `the image is PTX 8.7 (CUDA 12.8)`.
        found: String,
        /// What would run here, such as `driver CUDA 12.4 takes PTX up to 8.4`.
        wanted: String,
    },

    /// The driver's assembler or linker refused an image.
    #[error("{call} refused the image with {name} ({code}); its log:\n{log}")]
    ImageRejected {
        /// The driver function.
        call: &'static str,
        /// The `CUresult`.
        code: i32,
        /// The code's name.
        name: String,
        /// What the assembler printed.
        log: String,
    },

    /// CUDA C++ that does not compile.
    #[error("{name} does not compile for {}:\n{log}", compiled_text(.details))]
    Compilation {
        /// The program's name.
        name: String,
        /// What NVRTC printed, the first error first, with the source line and a caret under each place.
        log: String,
        /// What it was compiled for and by, and where the first error is.
        details: Box<CompilationDetails>,
    },

    /// A graph is being captured, and this cannot be part of it. The capture goes on.
    #[error(
        "{operation} cannot be captured: {buffer}; do it before the capture begins, or after the graph was launched"
    )]
    NotCapturable {
        /// The operation.
        operation: &'static str,
        /// The memory, stream or event that it is about, and what is in the way.
        buffer: String,
    },

    /// A graph that differs too much from the one that it should take the place of.
    #[error("the instantiated graph cannot be updated: {found}; instantiate the new graph instead")]
    GraphNotUpdatable {
        /// What differs.
        found: String,
    },

    /// Two things of different devices met.
    #[error("{operation} needs one device, but was given {left} and {right}")]
    DeviceMismatch {
        /// The operation.
        operation: &'static str,
        /// One side.
        left: String,
        /// The other.
        right: String,
    },

    /// Two lengths differ that must be equal.
    #[error("{operation} needs {wanted} element{}, but was given {found}", if *.wanted == 1 { "" } else { "s" })]
    LengthMismatch {
        /// The operation.
        operation: &'static str,
        /// The length wanted.
        wanted: usize,
        /// The length given.
        found: usize,
    },

    /// A range that leaves its buffer.
    #[error("range {start}..{end} is outside a buffer of {length} elements")]
    OutOfRange {
        /// First element.
        start: usize,
        /// One past the last element.
        end: usize,
        /// Elements that there are.
        length: usize,
    },

    /// An index that leads out of the dimension that it counts along. On a CUDA device this is found while the work runs, and
    /// told by the next call that waits for it; what other indices of the operation lead to is as it should be.
    #[error("{operation}: found index {index}{}; wanted {}", along_text(.axis), positions_text(*.size))]
    IndexOutOfRange {
        /// The operation that reads the index.
        operation: &'static str,
        /// One of those that are out of range.
        index: i64,
        /// The axis; none where the index counts all elements.
        axis: Option<usize>,
        /// Positions that there are.
        size: usize,
    },

    /// An argument that cannot be used, in words.
    #[error("{operation}: found {found}; wanted {wanted}")]
    InvalidArgument {
        /// The operation.
        operation: &'static str,
        /// What was given.
        found: String,
        /// What works.
        wanted: String,
    },

    /// A dtype that does not fit.
    #[error("{operation} wants {wanted}, but found {found}")]
    DTypeMismatch {
        /// The operation.
        operation: &'static str,
        /// The dtype wanted.
        wanted: String,
        /// The dtype found.
        found: String,
    },

    /// A file that cannot be used.
    #[error("{path}: found {found}; wanted {wanted}")]
    File {
        /// The file.
        path: String,
        /// What is there.
        found: String,
        /// What would work.
        wanted: String,
    },
}

/// What an [`Error::Compilation`] knows beside the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompilationDetails {
    /// What was compiled for, such as `sm_90a`.
    pub target: String,
    /// The version of NVRTC, such as `12.9`.
    pub version: String,
    /// The file of the first error: the program, or one of its headers; empty where the error has no place.
    pub file: String,
    /// The line of the first error, from 1; 0 where it has no place.
    pub line: u32,
    /// The column of the first error in characters, from 1; 0 where it is not known.
    pub column: u32,
}

impl std::fmt::Debug for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

impl Error {
    /// Advice with which the text of some errors ends: how a library comes to a machine or into a container.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Error::LibraryUnavailable { library, .. } => advice_for(library),
            _ => None,
        }
    }

    /// An [`Error::OutOfMemory`] of the host, for what asked.
    pub(crate) fn host_memory(requested: usize, asked: impl Into<String>) -> Error {
        Error::OutOfMemory {
            device: None,
            requested: requested as u64,
            free: 0,
            total: 0,
            cached: 0,
            live: 0,
            limit: None,
            holders: asked.into(),
        }
    }

    /// An [`Error::InvalidArgument`].
    pub(crate) fn invalid(
        operation: &'static str,
        found: impl std::fmt::Display,
        wanted: impl Into<String>,
    ) -> Error {
        Error::InvalidArgument { operation, found: found.to_string(), wanted: wanted.into() }
    }
}

fn advice_for(library: &str) -> Option<&'static str> {
    (library == DRIVER_NAME).then_some(DRIVER_ADVICE)
}

fn on_a_line(advice: Option<&str>) -> String {
    advice.map_or_else(String::new, |advice| format!("\n{advice}"))
}

fn versioned(library: &str, version: &str) -> String {
    if version.is_empty() { library.to_owned() } else { format!("{library} {version}") }
}

fn needs_text(needs: &str, version: &str) -> String {
    let numbers = |text: &str| {
        let text = text.trim_start_matches("CUDA ");
        text.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>()
    };
    match needs {
        "" => String::new(),
        // An old function that is not there: this is no complete driver, and a newer one of its kind may lack it too.
        _ if numbers(needs) <= numbers(version) => {
            format!(": it needs CUDA {needs}, which this one says it is past; the library is incomplete")
        }
        _ => format!(": it needs CUDA {needs}; install a newer one"),
    }
}

fn bracketed(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

fn memory_text(error: &Error) -> String {
    let Error::OutOfMemory { device, requested, free, total, cached, live, limit, holders } = error else {
        return String::new();
    };
    let holders = bracketed(holders);
    match device {
        None => format!(
            "the host is out of memory: {requested} bytes were requested{holders}; use fewer elements or a narrower dtype"
        ),
        Some(device) => format!(
            "device {device} is out of memory: {requested} bytes were requested; {free} of {total} are free, {live} are \
             live{holders}, {cached} are cached and cannot be given back yet{}; drop buffers or use smaller ones",
            limit_text(limit)
        ),
    }
}

fn limit_text(limit: &Option<u64>) -> String {
    limit.map_or_else(String::new, |limit| {
        format!(", and buffers may take {limit} in all (Device::set_memory_limit, SELVEDGE_MEMORY_LIMIT)")
    })
}

fn compiled_text(details: &CompilationDetails) -> String {
    let CompilationDetails { target, version, file, line, column } = details;
    let place = match (line, column) {
        (0, _) => String::new(),
        (_, 0) => format!(", {file} line {line}"),
        _ => format!(", {file} line {line} column {column}"),
    };
    format!("{target} (NVRTC {version}){place}")
}

fn along_text(axis: &Option<usize>) -> String {
    axis.map_or_else(|| " of all elements".to_owned(), |axis| format!(" along axis {axis}"))
}

fn positions_text(size: usize) -> String {
    match size {
        0 => "no index, since there are no positions".to_owned(),
        _ => format!("one of 0 to {}, or of -{size} to -1 from the end", size - 1),
    }
}

fn list_text(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What is called with errors that have nowhere to be returned.
pub type DeferredErrorHook = dyn Fn(&Error) + Send + Sync;

static HOOK: RwLock<Option<Arc<DeferredErrorHook>>> = RwLock::new(None);

/// Sets what is called with errors that have nowhere to be returned: those of `Drop`.
///
/// They are also written to [`log`] at error level. `None` takes the hook away. A hook that panics is ignored. It may be
/// called on any thread, one of the driver's too, so it must not use this library.
pub fn set_deferred_error_hook(hook: Option<Box<DeferredErrorHook>>) {
    *HOOK.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = hook.map(Arc::from);
}

/// Reports an error that has nowhere to be returned.
pub(crate) fn report_deferred(error: &Error) {
    let hook = HOOK.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    // A panic of a logger or hook would cross a `Drop`; so would one of the payload's own destructor.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        log::error!("not returned to a caller: {error}");
        if let Some(hook) = hook {
            hook(error);
        }
    }));
    if let Err(payload) = outcome {
        std::mem::forget(payload);
    }
}
