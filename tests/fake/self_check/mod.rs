//! Checks of the fake driver itself, through its C functions: what it is said to catch it catches, and what is in order
//! passes. The crate is not involved.

use std::{
    ffi::{CString, c_char, c_int, c_uint, c_void},
    ptr::{null, null_mut},
    sync::{
        MutexGuard,
        atomic::{AtomicI32, Ordering},
    },
    time::Instant,
};

use libtest_mimic::Failed;

use crate::{
    support::{self, Counts, Fake, Parameter},
    variant::{self, Variant},
};

use crate::common::suite::Test;

type Outcome = Result<(), Failed>;

/// The granularity of physical memory in these tests.
const PAGE: usize = 4096;

const SUCCESS: i32 = 0;
const INVALID_VALUE: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const NOT_INITIALIZED: i32 = 3;
const INVALID_CONTEXT: i32 = 201;
const INVALID_HANDLE: i32 = 400;
const NOT_READY: i32 = 600;
const LOST: i32 = 700;
const NOT_PERMITTED: i32 = 800;

/// Reads two buffers, writes a third, updates a fourth.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .f32 table[8];
// a comment with { braces
.visible .entry combine(
    .param .u64 combine_read_a,
    .param .u64 .ptr .global .align 4 combine_update_b,
    .param .u32 combine_scale,
    .param .u64 combine_bytes_n
)
.maxntid 256, 1, 1
{
    .shared .align 16 .b8 tile[64];
    { ret; }
}
.visible .entry produce(.param .u64 produce_write_out) { ret; }
.visible .entry part(.param .u64 part_update_a, .param .u64 part_bytes_n) { ret; }
.visible .entry fault_now() { ret; }
.visible .entry set_condition_to(.param .u64 set_condition_to_handle, .param .u64 set_condition_to_read_flag) { ret; }
";

/// `CUmemAllocationProp`: pinned memory of a device.
#[repr(C)]
struct AllocationProperties {
    kind: c_int,
    handle_types: c_int,
    location: [c_int; 2],
    rest: [u64; 2],
}

/// `CUmemPoolProps`: a pool of a device, not limited.
#[repr(C)]
struct PoolProperties {
    kind: c_int,
    handle_types: c_int,
    location: [c_int; 2],
    rest: [u64; 9],
}

/// `CUDA_KERNEL_NODE_PARAMS` in its second version.
#[repr(C)]
struct KernelNode {
    function: u64,
    shape: [c_uint; 7],
    parameters: *mut *mut c_void,
    rest: [u64; 3],
}

/// `CUgraphNodeParams`, of a conditional node or one with a graph.
#[repr(C)]
struct NodeParameters {
    kind: c_int,
    reserved: [c_int; 3],
    /// The condition, or the child graph.
    handle: u64,
    condition_kind: c_int,
    size: c_uint,
    bodies: *const u64,
    context: u64,
    rest: [u64; 26],
}

impl NodeParameters {
    fn new(kind: c_int, handle: u64) -> Self {
        let (reserved, condition_kind, size) = ([0; 3], 0, 0);
        Self { kind, reserved, handle, condition_kind, size, bodies: null(), context: 0, rest: [0; 26] }
    }
}

/// `CUgraphExecUpdateResultInfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct UpdateInfo {
    result: c_int,
    node: u64,
    from: u64,
}

/// `CUmemcpyAttributes`: when the source is read.
#[repr(C)]
struct BatchAttributes {
    order: c_int,
    rest: [c_int; 5],
}

/// One side of a three-dimensional copy.
#[repr(C)]
struct Side {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_uint,
    host: *mut u8,
    device: u64,
    array: u64,
    /// Of a copy between contexts; otherwise reserved.
    context: u64,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
struct Copy3d {
    source: Side,
    target: Side,
    extent: [usize; 3],
}

macro_rules! driver {
    ($($field:ident = $name:literal ($($argument:ty),*);)*) => {
        struct Driver { $($field: unsafe extern "C" fn($($argument),*) -> c_int,)* }
        impl Driver {
            fn load(fake: &Fake) -> Result<Self, libloading::Error> {
                // SAFETY: the types are those of the driver's functions, with handles as integers.
                unsafe { Ok(Self { $($field: fake.driver($name)?,)* }) }
            }
        }
    };
}

driver! {
    init = "cuInit"(c_uint);
    retain = "cuDevicePrimaryCtxRetain"(*mut u64, c_int);
    release_context = "cuDevicePrimaryCtxRelease_v2"(c_int);
    reset_context = "cuDevicePrimaryCtxReset_v2"(c_int);
    set_current = "cuCtxSetCurrent"(u64);
    context_synchronize = "cuCtxSynchronize"();
    allocate = "cuMemAlloc_v2"(*mut u64, usize);
    free = "cuMemFree_v2"(u64);
    host_allocate = "cuMemHostAlloc"(*mut *mut u8, usize, c_uint);
    host_free = "cuMemFreeHost"(*mut u8);
    host_register = "cuMemHostRegister_v2"(*mut u8, usize, c_uint);
    host_unregister = "cuMemHostUnregister"(*mut u8);
    stream_create = "cuStreamCreateWithPriority"(*mut u64, c_uint, c_int);
    stream_destroy = "cuStreamDestroy_v2"(u64);
    stream_synchronize = "cuStreamSynchronize"(u64);
    stream_query = "cuStreamQuery"(u64);
    stream_wait = "cuStreamWaitEvent"(u64, u64, c_uint);
    host_function = "cuLaunchHostFunc"(u64, extern "C" fn(*mut c_void), *mut c_void);
    event_create = "cuEventCreate"(*mut u64, c_uint);
    event_destroy = "cuEventDestroy_v2"(u64);
    event_record = "cuEventRecord"(u64, u64);
    event_synchronize = "cuEventSynchronize"(u64);
    event_query = "cuEventQuery"(u64);
    event_elapsed = "cuEventElapsedTime"(*mut f32, u64, u64);
    fill = "cuMemsetD8Async"(u64, u8, usize, u64);
    fill_32 = "cuMemsetD32Async"(u64, u32, usize, u64);
    upload = "cuMemcpyHtoDAsync_v2"(u64, *const u8, usize, u64);
    download = "cuMemcpyDtoHAsync_v2"(*mut u8, u64, usize, u64);
    copy = "cuMemcpyDtoDAsync_v2"(u64, u64, usize, u64);
    copy_peer = "cuMemcpyPeerAsync"(u64, u64, u64, u64, usize, u64);
    enable_peer = "cuCtxEnablePeerAccess"(u64, c_uint);
    load = "cuModuleLoadDataEx"(*mut u64, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    unload = "cuModuleUnload"(u64);
    function = "cuModuleGetFunction"(*mut u64, u64, *const c_char);
    global = "cuModuleGetGlobal_v2"(*mut u64, *mut usize, u64, *const c_char);
    parameter_info = "cuFuncGetParamInfo"(u64, usize, *mut usize, *mut usize);
    set_attribute = "cuFuncSetAttribute"(u64, c_int, c_int);
    link_create = "cuLinkCreate_v2"(c_uint, *mut c_int, *mut *mut c_void, *mut u64);
    link_add = "cuLinkAddData_v2"(u64, c_int, *const c_void, usize, *const c_char, c_uint, *mut c_int, *mut *mut c_void);
    link_complete = "cuLinkComplete"(u64, *mut *mut c_void, *mut usize);
    link_destroy = "cuLinkDestroy"(u64);
    reserve = "cuMemAddressReserve"(*mut u64, usize, usize, u64, u64);
    unreserve = "cuMemAddressFree"(u64, usize);
    create = "cuMemCreate"(*mut u64, usize, *const AllocationProperties, u64);
    release = "cuMemRelease"(u64);
    map = "cuMemMap"(u64, usize, usize, u64, u64);
    unmap = "cuMemUnmap"(u64, usize);
    set_access = "cuMemSetAccess"(u64, usize, *const [c_int; 3], usize);
    granularity = "cuMemGetAllocationGranularity"(*mut usize, *const AllocationProperties, c_int);
    allocate_async = "cuMemAllocAsync"(*mut u64, usize, u64);
    allocate_from = "cuMemAllocFromPoolAsync"(*mut u64, usize, u64, u64);
    free_async = "cuMemFreeAsync"(u64, u64);
    default_pool = "cuDeviceGetDefaultMemPool"(*mut u64, c_int);
    pool_create = "cuMemPoolCreate"(*mut u64, *const PoolProperties);
    pool_destroy = "cuMemPoolDestroy"(u64);
    pool_set = "cuMemPoolSetAttribute"(u64, c_int, *const u64);
    pool_get = "cuMemPoolGetAttribute"(u64, c_int, *mut u64);
    pool_access = "cuMemPoolSetAccess"(u64, *const [c_int; 3], usize);
    pool_trim = "cuMemPoolTrimTo"(u64, usize);
    memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
    copy_3d = "cuMemcpy3DAsync_v2"(*const Copy3d, u64);
    copy_3d_peer = "cuMemcpy3DPeerAsync"(*const Copy3d, u64);
    batch = "cuMemcpyBatchAsync"(*const u64, *const u64, *const usize, usize, *const BatchAttributes, *const usize, usize, *mut usize, u64);
    batch_2 = "cuMemcpyBatchAsync_v2"(*const u64, *const u64, *const usize, usize, *const BatchAttributes, *const usize, usize, u64);
    capture_begin = "cuStreamBeginCapture_v2"(u64, c_int);
    capture_into = "cuStreamBeginCaptureToGraph"(u64, u64, *const u64, *const u64, usize, c_int);
    dependencies = "cuStreamUpdateCaptureDependencies"(u64, *const u64, usize, c_uint);
    dependencies_2 = "cuStreamUpdateCaptureDependencies_v2"(u64, *const u64, *const u64, usize, c_uint);
    capture_end = "cuStreamEndCapture"(u64, *mut u64);
    is_capturing = "cuStreamIsCapturing"(u64, *mut c_int);
    capture_info = "cuStreamGetCaptureInfo_v2"(u64, *mut c_int, *mut u64, *mut u64, *mut *const u64, *mut usize);
    capture_info_3 = "cuStreamGetCaptureInfo_v3"(u64, *mut c_int, *mut u64, *mut u64, *mut *const u64, *mut *const u64, *mut usize);
    exchange_mode = "cuThreadExchangeStreamCaptureMode"(*mut c_int);
    instantiate = "cuGraphInstantiateWithFlags"(*mut u64, u64, u64);
    graph_create = "cuGraphCreate"(*mut u64, c_uint);
    graph_clone = "cuGraphClone"(*mut u64, u64);
    condition = "cuGraphConditionalHandleCreate"(*mut u64, u64, u64, c_uint, c_uint);
    add_node = "cuGraphAddNode"(*mut u64, u64, *const u64, usize, *mut NodeParameters);
    add_node_2 = "cuGraphAddNode_v2"(*mut u64, u64, *const u64, *const u64, usize, *mut NodeParameters);
    graph_update = "cuGraphExecUpdate_v2"(u64, u64, *mut UpdateInfo);
    set_enabled = "cuGraphNodeSetEnabled"(u64, u64, c_uint);
    get_enabled = "cuGraphNodeGetEnabled"(u64, u64, *mut c_uint);
    node_dependencies = "cuGraphNodeGetDependencies"(u64, *mut u64, *mut usize);
    node_dependencies_2 = "cuGraphNodeGetDependencies_v2"(u64, *mut u64, *mut u64, *mut usize);
    child_graph = "cuGraphChildGraphNodeGetGraph"(u64, *mut u64);
    kernel_parameters = "cuGraphKernelNodeGetParams_v2"(u64, *mut KernelNode);
    graph_launch = "cuGraphLaunch"(u64, u64);
    graph_upload = "cuGraphUpload"(u64, u64);
    instance_destroy = "cuGraphExecDestroy"(u64);
    graph_destroy = "cuGraphDestroy"(u64);
    graph_nodes = "cuGraphGetNodes"(u64, *mut u64, *mut usize);
    node_type = "cuGraphNodeGetType"(u64, *mut c_int);
    graph_edges = "cuGraphGetEdges"(u64, *mut u64, *mut u64, *mut usize);
    graph_edges_2 = "cuGraphGetEdges_v2"(u64, *mut u64, *mut u64, *mut u64, *mut usize);
    set_kernel = "cuGraphExecKernelNodeSetParams_v2"(u64, u64, *const KernelNode);
    dot = "cuGraphDebugDotPrint"(u64, *const c_char, c_uint);
    launch = "cuLaunchKernel"(u64, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, u64, *mut *mut c_void, *mut *mut c_void);
    launch_ex = "cuLaunchKernelEx"(*const overlaps::Config, u64, *mut *mut c_void, *mut *mut c_void);
    process_address = "cuGetProcAddress_v2"(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int);
}

/// A fresh fake with the primary context of device 0 current, strict, and held for this test alone.
struct Bench {
    fake: Fake,
    driver: Driver,
    context: u64,
    _alone: MutexGuard<'static, ()>,
}

/// Calls and expects success, naming the call otherwise.
macro_rules! call {
    ($bench:expr, $field:ident($($argument:expr),*)) => {{
        // SAFETY: the fake checks handles and device addresses; host pointers here outlive the calls that use them.
        let code = unsafe { ($bench.driver.$field)($($argument),*) };
        if code != SUCCESS {
            return Err(format!("{}: {} answered {code}", line!(), stringify!($field)).into());
        }
    }};
}

/// Calls and expects this answer.
macro_rules! answers {
    ($code:expr, $bench:expr, $field:ident($($argument:expr),*)) => {{
        // SAFETY: as in `call`.
        let code = unsafe { ($bench.driver.$field)($($argument),*) };
        if code != $code {
            return Err(format!("{}: {} answered {code}, not {}", line!(), stringify!($field), $code).into());
        }
    }};
}

macro_rules! check {
    ($condition:expr) => {
        if $condition {
        } else {
            return Err(format!("line {}: {}", line!(), stringify!($condition)).into());
        }
    };
}

macro_rules! check_equal {
    ($left:expr, $right:expr) => {
        match (&$left, &$right) {
            (left, right) if left == right => {}
            (left, right) => {
                return Err(
                    format!("line {}: {left:?} is not {right:?}: {}", line!(), stringify!($left)).into()
                );
            }
        }
    };
}

impl Bench {
    fn new() -> Result<Self, Failed> {
        let alone = support::exclusive();
        let fake = Fake::build(&Variant::new(13000).label("self check")).map_err(|e| e.to_string())?;
        fake.reset_all();
        fake.set_devices(2);
        fake.set_memory(1 << 30);
        fake.set_capability(90);
        fake.set_granularity(PAGE as u64);
        fake.set_version(12040);
        fake.set_strict(true);
        fake.set_reset_recovers(true);
        fake.set_faults_spread(false);
        fake.set_seed(7);
        fake.set_host_threads_ordered(true);
        fake.foreign_set(0);
        let driver = Driver::load(&fake)?;
        let mut bench = Self { fake, driver, context: 0, _alone: alone };
        call!(bench, init(0));
        bench.context = bench.bind(0)?;
        Ok(bench)
    }

    fn bind(&self, device: i32) -> Result<u64, Failed> {
        let mut context = 0;
        call!(self, retain(&raw mut context, device));
        call!(self, set_current(context));
        Ok(context)
    }

    fn block(&self, bytes: usize) -> Result<u64, Failed> {
        let mut address = 0;
        call!(self, allocate(&raw mut address, bytes));
        Ok(address)
    }

    fn pinned(&self, bytes: usize) -> Result<&'static mut [u8], Failed> {
        let mut pointer = null_mut();
        call!(self, host_allocate(&raw mut pointer, bytes, 0));
        // SAFETY: the fake has just allocated it; no test uses it after freeing it.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, bytes) })
    }

    fn stream(&self) -> Result<u64, Failed> {
        let mut stream = 0;
        call!(self, stream_create(&raw mut stream, 1, 0));
        Ok(stream)
    }

    fn event(&self) -> Result<u64, Failed> {
        let mut event = 0;
        call!(self, event_create(&raw mut event, 2));
        Ok(event)
    }

    fn module(&self, image: &[u8]) -> Result<u64, Failed> {
        let mut module = 0;
        let image = [image, &[0]].concat();
        call!(self, load(&raw mut module, image.as_ptr().cast(), 0, null_mut(), null_mut()));
        Ok(module)
    }

    fn function(&self, module: u64, name: &str) -> Result<u64, Failed> {
        let mut function = 0;
        let name = CString::new(name)?;
        call!(self, function(&raw mut function, module, name.as_ptr()));
        Ok(function)
    }

    fn launch(&self, function: u64, stream: u64, arguments: &[&[u8]]) -> i32 {
        let mut pointers: Vec<*mut c_void> = arguments.iter().map(|a| a.as_ptr().cast_mut().cast()).collect();
        // SAFETY: each pointer leads to as many bytes as the kernel's parameter has.
        unsafe {
            (self.driver.launch)(function, 1, 1, 1, 32, 1, 1, 0, stream, pointers.as_mut_ptr(), null_mut())
        }
    }

    /// The one violation there is, and that it names all of these.
    fn one_violation(&self, parts: &[&str]) -> Outcome {
        let found = self.fake.violations();
        match &found[..] {
            [text] if parts.iter().all(|part| text.contains(part)) => Ok(()),
            _ => Err(format!("one violation with {parts:?} was wanted: {found:#?}").into()),
        }
    }

    fn no_violation(&self) -> Outcome {
        check_equal!(self.fake.violations(), Vec::<String>::new());
        Ok(())
    }
}

/// The bytes of an argument.
fn word(value: u64) -> [u8; 8] {
    value.to_ne_bytes()
}

mod batches;
mod captures;
mod children;
mod conditions;
mod environment;
mod graphs;
mod instances;
mod memory;
mod modules;
mod ordering;
mod overlaps;
mod pools;
mod ranges;
mod resets;
mod virtual_memory;

/// A named check. A panic inside is its failure, not that of the ones after it.
fn test(name: &str, run: fn() -> Outcome) -> Test {
    Test::new(format!("self_check::{name}"), move || {
        std::panic::catch_unwind(run).unwrap_or_else(|_| Err("panicked".into()))
    })
}

pub fn tests() -> Vec<Test> {
    [
        ordering::tests(),
        memory::tests(),
        modules::tests(),
        ranges::tests(),
        virtual_memory::tests(),
        pools::tests(),
        captures::tests(),
        graphs::tests(),
        instances::tests(),
        overlaps::tests(),
        children::tests(),
        conditions::tests(),
        batches::tests(),
        resets::tests(),
        environment::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
