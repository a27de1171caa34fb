//! The error type of the crate.
//!
//! Every variant names both sides (found and wanted) and says what to do. Names and texts of driver codes come from the
//! table of [`crate::sys`], so an error can be shown on a machine without a driver.

mod deferred;
mod operation;

use std::sync::Arc;

pub(crate) use deferred::report_deferred;
pub use deferred::{DeferredErrorHook, set_deferred_error_hook};

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

/// An error of the crate, from a missing driver to a kernel fault.
///
/// `Debug` shows the text of `Display`, so that a `main` that returns [`Result`] prints readable lines.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A shared library could not be loaded.
    #[error("{library} could not be loaded; tried:\n{tried}{}", on_a_line(advice_for(.library)))]
    LibraryUnavailable {
        /// The library, such as `the NVIDIA driver` or `NVRTC`.
        library: &'static str,
        /// One line per path that was tried, with the reason why it was not used.
        tried: String,
    },

    /// A loaded library does not have a function.
    #[error("{} has no {symbol}{}", versioned(.library, .version), needs_text(.needs, .version))]
    MissingSymbol {
        /// The library that was asked.
        library: &'static str,
        /// The function's public name.
        symbol: &'static str,
        /// The CUDA version that introduced it, such as `12.4`; empty if unknown.
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
        /// The meaning of the code.
        text: String,
        /// The operation in progress; empty if the call says it all.
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
        /// The library's own text; empty if it has none.
        detail: String,
    },

    /// The host is out of memory, or a device is after all cached memory was freed.
    #[error("{}", memory_text(self))]
    OutOfMemory {
        /// The device's ordinal; `None` for the host, which reports only `requested` and `holders`.
        device: Option<i32>,
        /// Bytes requested.
        requested: u64,
        /// Bytes that the driver reports as free.
        free: u64,
        /// Bytes that the device has.
        total: u64,
        /// Bytes cached by the pool: in segments or pages that buffers share, or in use by unfinished work.
        cached: u64,
        /// Bytes of blocks in use by buffers.
        live: u64,
        /// The limit on bytes that buffers may take from the driver, if there is one.
        limit: Option<u64>,
        /// The block sizes that hold the most, such as `3 x 1048576 bytes of stream 1`; empty if unknown. For the host,
        /// the operation that requested memory.
        holders: String,
    },

    /// A kernel fault that ended its context, such as an access to an illegal address.
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
        /// The meaning of the code.
        text: String,
    },

    /// The context was lost to an earlier fault or to a reset. Nothing created in it works any more.
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

    /// A wait timed out. The work goes on, and can be waited for again.
    #[error(
        "{operation} gave up after {waited_ms} ms; still running: {what}; the work goes on: wait again, or longer"
    )]
    TimedOut {
        /// The call that waited.
        operation: &'static str,
        /// The time waited, in milliseconds.
        waited_ms: u64,
        /// The stream, and the kernel launched there last.
        what: String,
    },

    /// The driver created no new context after a reset.
    #[error(
        "device {device} does not come back from a reset: {found}; its context had been lost: {cause}; the CPU goes on, \
         the device needs a new process"
    )]
    ResetFailed {
        /// The device's ordinal.
        device: i32,
        /// The driver's error.
        found: String,
        /// The error that ended the old context.
        cause: Arc<str>,
    },

    /// This process was forked from one that had used CUDA. The driver does not work in such a child.
    #[error(
        "this process was forked from one that had used CUDA, and the driver does not work in such a child: use CUDA \
         in the child only, not before the fork, or start a new program in it (exec)"
    )]
    ForkedProcess,

    /// There is no such device.
    #[error("no device {wanted}; {found}")]
    NoDevice {
        /// The ordinal or UUID asked for.
        wanted: String,
        /// The existing devices.
        found: String,
    },

    /// A module has no such kernel or global, or a launcher has no kernel of this name.
    #[error("there is no {kind} '{wanted}'; there are: {}", list_text(.found))]
    UnknownName {
        /// `kernel` or `global`.
        kind: &'static str,
        /// The name asked for.
        wanted: String,
        /// The existing names.
        found: Vec<String>,
    },

    /// Neither the image nor the source of a kernel is usable here.
    #[error("kernel '{kernel}' is unavailable here:\n{reasons}")]
    KernelUnavailable {
        /// The name.
        kernel: String,
        /// The reasons for the image and the source, one or more lines each.
        reasons: String,
    },

    /// A launch passed more or fewer arguments than the kernel has parameters.
    #[error("the arguments of kernel '{kernel}': found {found}; wanted {wanted}")]
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

    /// A launch exceeds a limit of the device or the kernel.
    #[error("{what} is {found}, but {limit_of} allows at most {limit}")]
    LaunchLimit {
        /// The quantity that is too large, such as `threads a block`.
        what: &'static str,
        /// The requested value.
        found: u64,
        /// The largest allowed value.
        limit: u64,
        /// The kernel or device that sets the limit.
        limit_of: String,
    },

    /// Bytes that are not PTX, a cubin or a fatbin.
    #[error("not a kernel image: found {found}; wanted PTX text, a cubin (CUDA ELF) or a fatbin")]
    NotAnImage {
        /// The apparent format of the bytes.
        found: String,
    },

    /// A damaged image.
    #[error("the {kind} is damaged: {found}")]
    DamagedImage {
        /// `PTX`, `cubin` or `fatbin`.
        kind: &'static str,
        /// The defect.
        found: String,
    },

    /// A valid image that this device or driver cannot run.
    #[error("{found}; {wanted}")]
    UnsupportedImage {
        /// A description of the image, such as `the image is PTX 8.7 (CUDA 12.8)`.
        found: String,
        /// The requirement, such as `driver CUDA 12.4 takes PTX up to 8.4`.
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
        /// The log of the assembler.
        log: String,
    },

    /// CUDA C++ that does not compile.
    #[error("{name} does not compile for {}:\n{log}", compiled_text(.details))]
    Compilation {
        /// The program's name.
        name: String,
        /// NVRTC's log, the first error first, with the source line and a caret for each position.
        log: String,
        /// The target, the NVRTC version, and the position of the first error.
        details: Box<CompilationDetails>,
    },

    /// An operation that cannot be part of a graph capture. The capture goes on.
    #[error(
        "{operation} cannot be captured: {buffer}; do it before the capture begins, or after the graph was launched"
    )]
    NotCapturable {
        /// The operation.
        operation: &'static str,
        /// The memory, stream or event concerned, and the reason.
        buffer: String,
    },

    /// A graph that differs too much from the one that it should replace.
    #[error("the instantiated graph cannot be updated: {found}; instantiate the new graph instead")]
    GraphNotUpdatable {
        /// The difference.
        found: String,
    },

    /// An operation on objects of different devices.
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

    /// A range outside its buffer.
    #[error("range {start}..{end} is outside a buffer of {length} elements")]
    OutOfRange {
        /// First element.
        start: usize,
        /// One past the last element.
        end: usize,
        /// Elements in the buffer.
        length: usize,
    },

    /// An index outside its dimension. On a CUDA device it is detected while the work runs, and the next call that
    /// waits returns the error; results for the other indices are correct.
    #[error("{operation}: found index {index}{}; wanted {}", along_text(.axis), positions_text(.operation, *.index, *.size))]
    IndexOutOfRange {
        /// The operation that reads the index.
        operation: &'static str,
        /// One of the indices out of range.
        index: i64,
        /// The axis; `None` if the index counts all elements.
        axis: Option<usize>,
        /// The size of the dimension.
        size: usize,
    },

    /// An invalid argument.
    #[error("{operation}: found {found}; wanted {wanted}")]
    InvalidArgument {
        /// The operation.
        operation: &'static str,
        /// The argument given.
        found: String,
        /// The accepted values.
        wanted: String,
    },

    /// An exact result that its type does not hold.
    #[error("{operation} overflows: found {found}; wanted {wanted}")]
    Overflow {
        /// The operation.
        operation: &'static str,
        /// The result, or its operands.
        found: String,
        /// The results that the type holds.
        wanted: String,
    },

    /// An exact division by zero.
    #[error("{operation}: found a division of {dividend} by zero; wanted a divisor that is not 0")]
    DivisionByZero {
        /// The operation.
        operation: &'static str,
        /// The number that was to be divided.
        dividend: String,
    },

    /// A dtype that an operation does not accept.
    #[error("{operation} wants {wanted}, but found {found}")]
    DTypeMismatch {
        /// The operation.
        operation: &'static str,
        /// The dtype wanted.
        wanted: String,
        /// The dtype found.
        found: String,
    },

    /// A backward pass, or a change of a variable, that automatic differentiation does not allow.
    #[error("the backward of {operation}: found {found}; wanted {wanted}")]
    Backward {
        /// The operation whose gradients were to be computed.
        operation: &'static str,
        /// The value or gradient found.
        found: String,
        /// The accepted ones.
        wanted: String,
    },

    /// A file that cannot be used.
    #[error("{path}: found {found}; wanted {wanted}")]
    File {
        /// The file.
        path: String,
        /// The file's contents or state.
        found: String,
        /// The accepted contents or state.
        wanted: String,
    },

    /// A file or folder that cannot be written: its path cannot be, or its disk is full.
    #[error("{path}: found {found}; wanted {wanted}")]
    FileNotWritten {
        /// The file.
        path: String,
        /// The error of the system.
        found: String,
        /// The state that writing needs.
        wanted: String,
    },

    /// A folder that another process writes.
    #[error(
        "{path}: found the lock of process {pid} on host {host}; wanted a folder that no other process writes: choose \
         another folder, or delete the lock if that process has ended"
    )]
    FolderLocked {
        /// The lock file.
        path: String,
        /// The process that holds the lock.
        pid: u32,
        /// The host of that process.
        host: String,
    },
}

/// Details of an [`Error::Compilation`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompilationDetails {
    /// The compilation target, such as `sm_90a`.
    pub target: String,
    /// The version of NVRTC, such as `12.9`.
    pub version: String,
    /// The file of the first error: the program, or one of its headers; empty if the error has no position.
    pub file: String,
    /// The line of the first error, from 1; 0 if it has no position.
    pub line: u32,
    /// The column of the first error in characters, from 1; 0 if unknown.
    pub column: u32,
}

impl std::fmt::Debug for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

impl Error {
    /// Returns the advice at the end of some errors: how to install a library, on a machine or in a container.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Error::LibraryUnavailable { library, .. } => advice_for(library),
            _ => None,
        }
    }

    /// Returns an [`Error::OutOfMemory`] of the host; `asked` is the operation.
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

    /// Returns an [`Error::InvalidArgument`].
    pub(crate) fn invalid(
        operation: &'static str,
        found: impl std::fmt::Display,
        wanted: impl Into<String>,
    ) -> Error {
        Error::InvalidArgument { operation, found: found.to_string(), wanted: wanted.into() }
    }
}

impl Error {
    /// Returns an [`Error::Overflow`].
    pub(crate) fn overflow(
        operation: &'static str,
        found: impl std::fmt::Display,
        wanted: impl Into<String>,
    ) -> Error {
        Error::Overflow { operation, found: found.to_string(), wanted: wanted.into() }
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
        // An old function is missing, so the driver is incomplete, and a newer one of its kind may lack it too.
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
    let location = match (line, column) {
        (0, _) => String::new(),
        (_, 0) => format!(", {file} line {line}"),
        _ => format!(", {file} line {line} column {column}"),
    };
    format!("{target} (NVRTC {version}){location}")
}

fn along_text(axis: &Option<usize>) -> String {
    axis.map_or_else(|| " of all elements".to_owned(), |axis| format!(" along axis {axis}"))
}

/// Operations whose indices are classes, ids or positions in a group: a negative one does not count from the end.
const FROM_ZERO: [&str; 4] = ["at_group", "cross_entropy", "embedding", "nll_loss"];

fn positions_text(operation: &str, index: i64, size: usize) -> String {
    // An operation that counts from the end would have taken such an index.
    let is_refused = index < 0 && index.unsigned_abs() <= size as u64;
    match size {
        0 => "no index, since there are no positions".to_owned(),
        _ if is_refused || FROM_ZERO.contains(&operation) => format!("one of 0 to {}", size - 1),
        _ => format!("one of 0 to {}, or of -{size} to -1 from the end", size - 1),
    }
}

fn list_text(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
