//! Names and meanings of status codes.
//!
//! The crate has its own table, because an error must be shown on a machine without a driver, and because the driver's
//! function can itself be missing. A code newer than the table is shown as its number, with the name and text of a
//! loaded driver.

use super::driver::CUresult;

/// Returns the name and the meaning of a `CUresult`.
pub fn describe(code: CUresult) -> (String, String) {
    match DRIVER.binary_search_by_key(&code.0, |entry| entry.0) {
        Ok(index) => (DRIVER[index].1.to_owned(), DRIVER[index].2.to_owned()),
        Err(_) => {
            let driver = super::loaded_driver();
            let name = driver.and_then(|driver| driver.error_name(code));
            let text = driver.and_then(|driver| driver.error_text(code));
            (
                name.unwrap_or_else(|| format!("CUDA error {}", code.0)),
                text.unwrap_or_else(|| "a code that this version does not know".to_owned()),
            )
        }
    }
}

/// Returns the name of a `CUresult`, if the table has it.
pub fn name(code: CUresult) -> Option<&'static str> {
    DRIVER.binary_search_by_key(&code.0, |entry| entry.0).ok().map(|index| DRIVER[index].1)
}

/// Returns the code with this name, such as `CUDA_ERROR_OUT_OF_MEMORY`.
pub fn by_name(name: &str) -> Option<CUresult> {
    DRIVER.iter().find(|entry| entry.1 == name).map(|entry| CUresult(entry.0))
}

/// Returns every code of the table: number, name, meaning.
pub fn all() -> &'static [(u32, &'static str, &'static str)] {
    DRIVER
}

/// Sorted by code, for the binary search.
const DRIVER: &[(u32, &str, &str)] = &[
    (0, "CUDA_SUCCESS", "no error"),
    (1, "CUDA_ERROR_INVALID_VALUE", "an argument is outside what the call accepts"),
    (2, "CUDA_ERROR_OUT_OF_MEMORY", "not enough device or host memory"),
    (
        3,
        "CUDA_ERROR_NOT_INITIALIZED",
        "the driver was not initialised, or the process was forked after it was",
    ),
    (4, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down with the process"),
    (5, "CUDA_ERROR_PROFILER_DISABLED", "profiling is disabled for this run"),
    (6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "the profiler was not initialised"),
    (7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "the profiler is already running"),
    (8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "the profiler is already stopped"),
    (34, "CUDA_ERROR_STUB_LIBRARY", "the library is the toolkit's stub for linking, not a driver"),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is busy or in exclusive use by another process"),
    (100, "CUDA_ERROR_NO_DEVICE", "no CUDA device was found, or CUDA_VISIBLE_DEVICES hides all of them"),
    (101, "CUDA_ERROR_INVALID_DEVICE", "the ordinal names no device, or the action does not suit this one"),
    (102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "the device has no licence for this (vGPU)"),
    (200, "CUDA_ERROR_INVALID_IMAGE", "the kernel image is damaged or of no known kind"),
    (201, "CUDA_ERROR_INVALID_CONTEXT", "no context is current, or the one given was destroyed"),
    (202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "the context is already current"),
    (205, "CUDA_ERROR_MAP_FAILED", "memory could not be mapped"),
    (206, "CUDA_ERROR_UNMAP_FAILED", "memory could not be unmapped"),
    (207, "CUDA_ERROR_ARRAY_IS_MAPPED", "a mapped array cannot be destroyed"),
    (208, "CUDA_ERROR_ALREADY_MAPPED", "the resource is already mapped"),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the image has no code that this device can run"),
    (210, "CUDA_ERROR_ALREADY_ACQUIRED", "the resource is already acquired"),
    (211, "CUDA_ERROR_NOT_MAPPED", "the resource is not mapped"),
    (212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "the resource is not mapped as an array"),
    (213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "the resource is not mapped as a pointer"),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE", "device memory had an error that ECC could not correct"),
    (215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "the device does not have this limit"),
    (216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "the context is in use by another thread"),
    (217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "these devices cannot reach each other's memory"),
    (218, "CUDA_ERROR_INVALID_PTX", "the driver's assembler refused the PTX"),
    (219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "the graphics context cannot be used"),
    (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "NVLink had an error that could not be corrected"),
    (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the driver's PTX assembler library is not installed"),
    (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is newer than the driver's assembler"),
    (223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "assembling PTX is disabled (CUDA_DISABLE_PTX_JIT)"),
    (224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "the device does not support this execution affinity"),
    (
        225,
        "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC",
        "the code synchronises from the device in a way that is no longer supported",
    ),
    (
        226,
        "CUDA_ERROR_CONTAINED",
        "a memory error ended the kernel; it was contained, but the process must restart",
    ),
    (300, "CUDA_ERROR_INVALID_SOURCE", "the kernel source is invalid"),
    (301, "CUDA_ERROR_FILE_NOT_FOUND", "the file was not found"),
    (302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "a library that the driver needs lacks a symbol"),
    (303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a library that the driver needs failed to load"),
    (304, "CUDA_ERROR_OPERATING_SYSTEM", "an operating system call failed inside the driver"),
    (400, "CUDA_ERROR_INVALID_HANDLE", "the handle is not, or no longer, valid"),
    (401, "CUDA_ERROR_ILLEGAL_STATE", "a resource is not in a state that allows this"),
    (402, "CUDA_ERROR_LOSSY_QUERY", "the answer would lose information"),
    (500, "CUDA_ERROR_NOT_FOUND", "nothing has this name"),
    (600, "CUDA_ERROR_NOT_READY", "work that was asked about has not finished"),
    (
        700,
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "a kernel read or wrote an address that is not its own; the context is lost",
    ),
    (
        701,
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "the launch needs more registers, threads or shared memory than there are",
    ),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel ran longer than the system allows; the context is lost"),
    (703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "the kernel uses an incompatible texturing mode"),
    (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "access to this peer is already enabled"),
    (705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "access to this peer is not enabled"),
    (708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the primary context is already active"),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the current context was destroyed"),
    (710, "CUDA_ERROR_ASSERT", "a device-side assert failed; the context is lost"),
    (711, "CUDA_ERROR_TOO_MANY_PEERS", "the hardware has no room for another peer"),
    (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the host memory is already registered"),
    (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered"),
    (
        714,
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "a kernel's call stack was damaged or overflowed; the context is lost",
    ),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel met an illegal instruction; the context is lost"),
    (
        716,
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "a kernel used an address that is not aligned to the access; the context is lost",
    ),
    (
        717,
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "a kernel used an address of the wrong memory space; the context is lost",
    ),
    (718, "CUDA_ERROR_INVALID_PC", "a kernel jumped to an invalid address; the context is lost"),
    (719, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed while it ran; the context is lost"),
    (
        720,
        "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
        "a cooperative grid has more blocks than can be resident at once",
    ),
    (
        721,
        "CUDA_ERROR_TENSOR_MEMORY_LEAK",
        "a kernel ended without freeing its tensor memory; the context is lost",
    ),
    (800, "CUDA_ERROR_NOT_PERMITTED", "the call is not permitted here"),
    (801, "CUDA_ERROR_NOT_SUPPORTED", "this system or device does not support the call"),
    (
        802,
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the system is not ready: a service such as the fabric manager is not running",
    ),
    (
        803,
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "the driver library and the kernel module have different versions",
    ),
    (
        804,
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "the forward-compatibility libraries do not support this device",
    ),
    (805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "the MPS control daemon or server could not be reached"),
    (806, "CUDA_ERROR_MPS_RPC_FAILURE", "the call to the MPS server failed"),
    (807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "the MPS server takes no clients yet"),
    (808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "the MPS server has no room for another client"),
    (809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "the MPS server has no device connection left"),
    (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS server ended this client"),
    (811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "the device does not support launches from the device"),
    (
        812,
        "CUDA_ERROR_CDP_VERSION_MISMATCH",
        "the module's launches from the device use another version than the context",
    ),
    (
        900,
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        "the operation is not permitted while the stream is captured",
    ),
    (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error made the capture invalid"),
    (902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "the operation would join two separate captures"),
    (903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture was not begun on this stream"),
    (904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a forked stream was not joined before the capture ended"),
    (
        905,
        "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
        "the captured work would depend on work outside the capture",
    ),
    (
        906,
        "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
        "the operation depends on the legacy stream, which is not captured",
    ),
    (907, "CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a capture and can be used only there"),
    (908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture must be ended by the thread that began it"),
    (909, "CUDA_ERROR_TIMEOUT", "the wait took longer than was allowed"),
    (
        910,
        "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
        "the change to the graph is too large to update it in place",
    ),
    (911, "CUDA_ERROR_EXTERNAL_DEVICE", "a device outside CUDA's control reported an error"),
    (912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "the kernel cannot be launched with this cluster size"),
    (913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "the function is not loaded yet"),
    (914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "a resource of the wrong kind was given"),
    (915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "the resource is too small or wrongly configured"),
    (916, "CUDA_ERROR_KEY_ROTATION", "confidential computing is changing its keys"),
    (999, "CUDA_ERROR_UNKNOWN", "the driver does not know what failed"),
];
