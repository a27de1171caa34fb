//! The rows of the runtime: devices, streams, memory, graphs, kernels and their images.

use super::Face::{Has, HasSome, Lacks};
use super::Topic;

/// Of systems that only programs of a language have.
pub const SHELL: &str = "The program has commands for whole tasks; programs of a language take this system.";
const PYTHON_CONDITIONAL: &str = "Not there yet: a graph of Python has no conditional nodes.";
const PYTHON_MEMORY: &str = "The memory of Python is that of tensors. `SELVEDGE_MEMORY_LIMIT` and `SELVEDGE_POOL` configure the pool.";
const PYTHON_IMAGES: &str = "A kernel of Python gets its data from tensors and numbers: globals and tensor maps would need objects of memory, which Python has none of.";
const PYTHON_FOREIGN: &str = "Python meets memory of other code through DLPack.";
const C_DRIVER: &str = "Not there yet: the C ABI has copies of a buffer's parts in one dimension.";
const C_MEMORY_TRACES: &str = "Not there yet: the C ABI has statistics and snapshots.";
const C_CONDITIONAL: &str = "The bodies of conditional nodes are closures of Rust.";
const C_TENSOR_MAPS: &str = "Not there yet: the C ABI encodes no tensor maps.";
const C_NAMES: &str = "The C ABI has no registry of kernels: a module gives functions by name.";
const C_LINKING: &str = "Not there yet: the C ABI loads one image at a time.";
const C_CACHE: &str =
    "The cache works in every language; `SELVEDGE_CACHE` and the command `cache` configure it.";
const C_REPORTS: &str =
    "Not there yet for kernels of a program; the library's own kernels report errors, which become statuses.";
const EMBEDDED: &str =
    "The choice of an embedded kernel is internal; `SELVEDGE_ARCH` and `SELVEDGE_IMAGE` influence it.";

const RANKS: &str = "Not there yet: ranks compute together in Rust alone.";

pub const TOPICS: &[Topic] = &[
    Topic {
        name: "Library and process",
        rows: &[
            (
                "versions and libraries",
                [
                    Has(
                        "driver::driver_version nvrtc::version cublas::version nccl::version | driver::driver_isa nvrtc::isa nvrtc::architectures",
                    ),
                    Has("sv_version sv_library_report | sv_abi_version"),
                    Has("library_report"),
                    HasSome(
                        "sv.__version__",
                        "The report of the libraries is that of `python -m selvedge info`.",
                    ),
                    Has("info"),
                ],
            ),
            (
                "errors",
                [
                    Has(
                        "Error Result | error::set_deferred_error_hook error::DeferredErrorHook error::CompilationDetails",
                    ),
                    Has("sv_last_error sv_status_name"),
                    Has("Error Result attempt"),
                    Has(
                        "sv.Error | sv.ArgumentError sv.IndexOutOfRangeError sv.DTypeError sv.OutOfMemoryError \
                         sv.ExactArithmeticError sv.FileError sv.DeviceError",
                    ),
                    Lacks("The program has exit codes, and `--json` makes an error one JSON object."),
                ],
            ),
            (
                "lifetime of objects and of the library",
                [
                    Lacks("Rust's `Drop` releases objects."),
                    Has("sv_retain sv_release sv_shutdown"),
                    Has("Object shutdown"),
                    Lacks("Python's reference counts release objects."),
                    Lacks(SHELL),
                ],
            ),
            (
                "CPU threads",
                [
                    Has("set_threads thread_count set_executor | Executor"),
                    Has("sv_set_threads sv_thread_count sv_set_executor"),
                    Has("set_threads thread_count set_executor"),
                    HasSome(
                        "sv.set_threads sv.thread_count",
                        "An executor would need the interpreter's lock for each task.",
                    ),
                    Lacks("The environment variable `SELVEDGE_THREADS` sets the number for the program."),
                ],
            ),
            (
                "log",
                [
                    Lacks("Rust's functions write to the logger of the crate `log`."),
                    Has("sv_set_log_callback"),
                    Has("set_log_callback"),
                    Lacks("Python's `logging` gets the messages, by loggers below `selvedge`."),
                    Lacks(SHELL),
                ],
            ),
            (
                "allocator of host memory",
                [
                    Has(
                        "tensor::set_host_allocator tensor::host_memory_statistics | tensor::HostMemoryStatistics \
                         tensor::reset_peak_host_memory",
                    ),
                    HasSome("sv_set_host_allocator", "The statistics of host memory are for Rust alone."),
                    HasSome("set_host_allocator", "The statistics of host memory are for Rust alone."),
                    Lacks(
                        "An allocator is a pair of functions that may not wait for the interpreter's lock.",
                    ),
                    Lacks(SHELL),
                ],
            ),
            (
                "traces of time",
                [
                    Has("trace::start trace::stop trace::range | trace::Range trace::is_on"),
                    Has("sv_trace_start sv_trace_stop sv_trace_push sv_trace_pop"),
                    Has("Trace TraceRange"),
                    Has("sv.trace sv.trace.range | sv.trace_range"),
                    Has("trace, train --profile"),
                ],
            ),
        ],
    },
    Topic {
        name: "Devices, streams and events",
        rows: &[
            (
                "devices",
                [
                    Has("Device driver::Device | driver::Attribute driver::MemoryInfo"),
                    Has("sv_device_count sv_device_name sv_device_attribute | sv_device_compute_capability \
                         sv_device_memory sv_device_synchronize"),
                    Has("Device"),
                    Has("sv.Device | sv.Device.attribute"),
                    Has("info"),
                ],
            ),
            (
                "peer access and resets",
                [
                    Has("driver::Device::enable_peer_access driver::Device::reset"),
                    Has("sv_device_enable_peer_access sv_device_reset | sv_device_can_access_peer \
                         sv_device_disable_peer_access"),
                    Has("Device::enable_peer_access Device::reset"),
                    Has("sv.Device.enable_peer_access sv.Device.reset"),
                    Lacks(SHELL),
                ],
            ),
            (
                "streams",
                [
                    Has("driver::Stream Device::with_stream tensor::StreamGuard | driver::WaitError"),
                    Has(
                        "sv_stream_create sv_stream_synchronize sv_stream_push | sv_stream_pop sv_stream_current \
                         sv_stream_device sv_stream_is_idle sv_stream_synchronize_timeout sv_stream_wait_event \
                         sv_stream_wait_stream",
                    ),
                    Has("Stream StreamScope"),
                    Has("sv.Stream | sv.Device.current_stream"),
                    Lacks(SHELL),
                ],
            ),
            (
                "events",
                [
                    Has("driver::Event"),
                    Has(
                        "sv_event_create sv_event_record sv_event_elapsed | sv_event_is_complete sv_event_synchronize",
                    ),
                    Has("Event"),
                    Has("sv.Event | sv.Event.record sv.Event.elapsed_time sv.Event.synchronize"),
                    Lacks(SHELL),
                ],
            ),
            (
                "functions of the host in a stream",
                [
                    Has("driver::Stream::on_complete"),
                    Lacks("Not there yet: a C program waits for an event on a thread of its own."),
                    Lacks("Not there yet: a C program waits for an event on a thread of its own."),
                    Has("sv.Stream.on_complete"),
                    Lacks(SHELL),
                ],
            ),
            (
                "streams, contexts and memory of other code",
                [
                    Has(
                        "driver::Stream::from_raw driver::Device::from_context driver::DeviceBuffer::from_raw",
                    ),
                    Has(
                        "sv_stream_from_raw sv_device_of_context sv_buffer_from_raw | sv_stream_raw sv_device_context",
                    ),
                    Has("Stream::from_raw Device::of_context Buffer::from_raw"),
                    HasSome("sv.Stream.from_handle", PYTHON_FOREIGN),
                    Lacks(SHELL),
                ],
            ),
        ],
    },
    Topic {
        name: "Memory",
        rows: &[
            (
                "device memory",
                [
                    Has(
                        "driver::DeviceBuffer driver::DeviceSlice driver::DeviceSliceMut | driver::DeviceRead \
                         driver::DeviceWrite",
                    ),
                    Has(
                        "sv_buffer_create sv_buffer_upload sv_buffer_download | sv_buffer_zeros sv_buffer_fill \
                         sv_buffer_copy sv_buffer_size sv_buffer_device sv_buffer_address",
                    ),
                    Has("Buffer"),
                    Lacks(PYTHON_MEMORY),
                    Lacks(SHELL),
                ],
            ),
            (
                "copies in two and three dimensions, and in batches",
                [
                    Has(
                        "driver::Stream::copy_2d driver::Stream::copy_3d driver::Stream::copy_batch | driver::Copy2d driver::Copy3d",
                    ),
                    Lacks(C_DRIVER),
                    Lacks(C_DRIVER),
                    Lacks(PYTHON_MEMORY),
                    Lacks(SHELL),
                ],
            ),
            (
                "pinned memory and asynchronous copies",
                [
                    Has(
                        "driver::PinnedBuffer driver::Transfer | driver::TransferError driver::RegisterError",
                    ),
                    Has(
                        "sv_pinned_create sv_pinned_upload sv_pinned_download | sv_pinned_data sv_pinned_is_complete \
                         sv_pinned_wait",
                    ),
                    Has("PinnedBuffer"),
                    Lacks(PYTHON_MEMORY),
                    Lacks(SHELL),
                ],
            ),
            (
                "the memory pool: statistics and a limit",
                [
                    Has(
                        "driver::Device::pool_statistics driver::Device::set_memory_limit driver::Device::trim | \
                         driver::PoolStatistics driver::MemoryUse",
                    ),
                    Has("sv_device_pool_statistics sv_device_set_memory_limit sv_device_trim"),
                    Has("Device::pool_statistics Device::set_memory_limit Device::trim"),
                    Lacks(PYTHON_MEMORY),
                    Has("memory replay --cap"),
                ],
            ),
            (
                "snapshots of memory",
                [
                    Has("driver::Device::memory_snapshot driver::MemorySnapshot | driver::SegmentSnapshot \
                         driver::BlockSnapshot driver::BlockState"),
                    Has("sv_device_memory_snapshot"),
                    Has("Device::memory_snapshot"),
                    Lacks(PYTHON_MEMORY),
                    Has("memory"),
                ],
            ),
            (
                "scopes and traces of memory",
                [
                    Has(
                        "driver::Device::memory_scope driver::Device::start_memory_trace | driver::MemoryScope \
                         driver::MemoryTrace driver::TraceEvent driver::ReplayOptions driver::ReplayPool \
                         driver::ReplayReport driver::ReplaySample",
                    ),
                    Lacks(C_MEMORY_TRACES),
                    Lacks(C_MEMORY_TRACES),
                    Lacks(PYTHON_MEMORY),
                    Has("memory replay"),
                ],
            ),
        ],
    },
    Topic {
        name: "Graphs",
        rows: &[
            (
                "capture and launch",
                [
                    Has("driver::Stream::capture driver::ExecutableGraph | driver::Graph driver::Captured \
                         driver::CapturedBuffer driver::GraphNode driver::GraphNodeKind"),
                    Has("sv_stream_begin_capture sv_stream_end_capture sv_executable_graph_launch | \
                         sv_graph_instantiate sv_graph_node_count sv_executable_graph_upload sv_executable_graph_host"),
                    Has("capture Graph ExecutableGraph"),
                    Has("sv.Graph sv.ExecutableGraph | sv.Graph.capture"),
                    Lacks(SHELL),
                ],
            ),
            (
                "updates and DOT",
                [
                    Has(
                        "driver::ExecutableGraph::update driver::Graph::to_dot | driver::ExecutableGraph::set_kernel driver::GraphUpdateError",
                    ),
                    Has("sv_executable_graph_update sv_graph_dot"),
                    Has("ExecutableGraph::update Graph::dot"),
                    Has("sv.ExecutableGraph.update sv.Graph.to_dot"),
                    Lacks(SHELL),
                ],
            ),
            (
                "conditional nodes",
                [
                    Has("driver::Stream::run_if driver::Stream::run_while"),
                    Lacks(C_CONDITIONAL),
                    Lacks(C_CONDITIONAL),
                    Lacks(PYTHON_CONDITIONAL),
                    Lacks(SHELL),
                ],
            ),
        ],
    },
    Topic {
        name: "Kernels and images",
        rows: &[
            (
                "modules",
                [
                    Has("driver::Device::load driver::Module | driver::ModuleOptions driver::image"),
                    Has("sv_module_load sv_module_function | sv_module_function_names sv_module_log"),
                    Has("Module"),
                    Has("sv.Kernel.from_image"),
                    Has("ptx, run"),
                ],
            ),
            (
                "linking of several images",
                [
                    Has("driver::Device::link | driver::LinkInput"),
                    Lacks(C_LINKING),
                    Lacks(C_LINKING),
                    Has("sv.Kernel.from_image"),
                    Lacks(SHELL),
                ],
            ),
            (
                "globals of a module",
                [
                    Has("driver::Module::global driver::Global"),
                    Has("sv_module_global sv_module_global_read sv_module_global_write"),
                    Has("Module::read_global Module::write_global"),
                    Lacks(PYTHON_IMAGES),
                    Lacks(SHELL),
                ],
            ),
            (
                "launches",
                [
                    Has(
                        "driver::Function::launch driver::LaunchConfig | driver::Function driver::FunctionAttributes \
                         driver::Dim3 driver::Argument driver::ArgumentView driver::ByValue driver::KernelArgument \
                         driver::KernelArguments driver::LaunchTarget driver::RawAddress driver::Signature",
                    ),
                    Has(
                        "sv_launch | sv_function_attributes_get sv_function_occupancy sv_function_parameter \
                         sv_function_suggested_block_size",
                    ),
                    Has("Function::launch LaunchConfig Kernel | Function Dimensions Read Write Address"),
                    Has("sv.kernel | sv.Kernel sv.output sv.KernelOutput"),
                    Has("run"),
                ],
            ),
            (
                "errors that a kernel reports",
                [
                    Has("driver::KernelReport driver::KernelError"),
                    HasSome("SV_ERROR_INDEX_OUT_OF_RANGE", C_REPORTS),
                    HasSome("Error", C_REPORTS),
                    Lacks("Not there yet: `sv.kernel` gives no report to a kernel."),
                    Lacks(SHELL),
                ],
            ),
            (
                "tensor maps",
                [
                    Has(
                        "driver::TensorMap driver::TensorMapLayout | driver::TensorElement driver::TensorInterleave \
                         driver::TensorPromotion driver::TensorSwizzle",
                    ),
                    Lacks(C_TENSOR_MAPS),
                    Lacks(C_TENSOR_MAPS),
                    Lacks(PYTHON_IMAGES),
                    Lacks(SHELL),
                ],
            ),
            (
                "CUDA C++ at run time (NVRTC)",
                [
                    Has("nvrtc::Program nvrtc::Compiled | nvrtc::Target"),
                    Has("sv_program_create sv_program_compile sv_program_load | sv_program_add_header \
                         sv_program_add_option sv_program_add_expression sv_program_compile_for_device sv_program_log \
                         sv_program_lowered_name sv_program_image"),
                    Has("Program"),
                    Has("sv.kernel"),
                    Has("build-images, run"),
                ],
            ),
            (
                "the cache of compiled images",
                [
                    Has("nvrtc::Cache | nvrtc::CacheStatistics"),
                    Lacks(C_CACHE),
                    Lacks(C_CACHE),
                    Lacks(C_CACHE),
                    Has("cache, cache clear"),
                ],
            ),
            (
                "kernels by name, with fallbacks on the CPU",
                [
                    Has(
                        "launcher::Launcher kernel! | launcher::Definition launcher::Prefer launcher::Kernel \
                         launcher::LaunchOutcome launcher::Origin launcher::Fallback launcher::HostArgument \
                         launcher::HostFunction launcher::HostLaunch launcher::GpuArg launcher::GpuCompute",
                    ),
                    Lacks(C_NAMES),
                    Lacks(C_NAMES),
                    Lacks("Python has no registry of kernels: `sv.kernel` makes an object of each."),
                    Lacks(SHELL),
                ],
            ),
            (
                "operations of your own on tensors",
                [
                    Has("tensor::kernel::run | tensor::kernel::run_addresses tensor::kernel::Output"),
                    Has("sv_custom_run"),
                    Has("CustomOperation | Array"),
                    HasSome("sv.kernel", "A kernel of Python has no function for the CPU."),
                    Lacks(SHELL),
                ],
            ),
            (
                "embedded kernels",
                [
                    Has("images::select images::load | images::*"),
                    Lacks(EMBEDDED),
                    Lacks(EMBEDDED),
                    Lacks(EMBEDDED),
                    Has("info"),
                ],
            ),
        ],
    },
    Topic {
        name: "Several processes",
        rows: &[(
            "ranks of several processes, and their collective operations",
            [
                Has(
                    "collective::Communicator collective::DeviceCommunicator | collective::WorldOptions collective::ReduceOp",
                ),
                Lacks(RANKS),
                Lacks(RANKS),
                Lacks(RANKS),
                Has("launch"),
            ],
        )],
    },
];
