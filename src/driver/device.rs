//! Devices: enumeration, properties, and the state that this process keeps for each device.

use std::ffi::CStr;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::attribute::Attribute;
use super::context::{Handle, call, driver_error};
use super::event::EventPool;
use super::foreign::call_deleters;
use super::fork;
use super::graph::ConditionKernel;
use super::graph::capture;
use super::graph::capture_gate::CaptureGate;
use super::image::isa_of_driver;
use super::kernel_report::{HostReport, ReportSlot};
use super::memory::{PinnedPool, Pool, Retired};
use super::peer::Peers;
use super::reset::Reset;
use super::stream::StreamState;
use crate::error::{Error, Result};
use crate::sys::driver::{CUcontext, CUctx_st, CUdevice, CUdevice_attribute, CUuuid};
use crate::sys::{DriverApi, call as api_call};
use crate::trace;

/// A CUDA device, through its primary context.
///
/// Cheap to copy. The first call that opens the device retains the context for the life of the process, or until
/// [`reset`](Device::reset). Everything made from the device shares the context.
#[derive(Clone, Copy)]
pub struct Device(pub(crate) &'static DeviceState);

/// The memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes free for any process, as the driver reports them.
    pub free: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Limits that every launch is checked against, read once.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) block: [u32; 3],
    pub(crate) grid: [u32; 3],
    /// Shared memory of a block after opting in, in bytes.
    pub(crate) shared_opt_in: u32,
}

/// The state that the process keeps for one device.
///
/// It is never freed. Contexts are retained for the life of the process, so handles need no reference count and no
/// order of destruction. The fields that every call reads come first, on one cache line.
#[repr(C, align(64))]
pub(crate) struct DeviceState {
    pub(crate) api: &'static DriverApi,
    pub(crate) context: Handle<CUctx_st>,
    pub(crate) lost_flag: AtomicBool,
    pub(crate) ordinal: i32,
    pub(crate) raw: CUdevice,
    pub(crate) name: String,
    pub(crate) uuid: String,
    pub(crate) pci_bus_id: String,
    pub(crate) capability: (i32, i32),
    pub(crate) total_memory: u64,
    pub(crate) limits: Limits,
    pub(crate) lost: OnceLock<Arc<str>>,
    pub(crate) reset: Reset,
    pub(crate) gate: CaptureGate,
    pub(crate) condition_kernel: ConditionKernel,
    pub(crate) events: EventPool,
    pub(crate) pool: Pool,
    pub(crate) pinned: PinnedPool,
    pub(crate) retired: Retired,
    pub(crate) peers: Peers,
    pub(super) report: ReportSlot,
    pub(super) host_report: HostReport,
    /// Live streams, for naming the kernels of a fault.
    pub(crate) streams: Mutex<Vec<Weak<StreamState>>>,
}

/// The next stream id. Ids are unique over all devices and never reused; 0 means no stream.
pub(crate) static NEXT_STREAM_ID: AtomicU64 = AtomicU64::new(1);

static DEVICES: Mutex<Vec<&'static DeviceState>> = Mutex::new(Vec::new());

/// Returns the CUDA version that the driver supports, such as `(13, 0)`.
///
/// # Errors
///
/// The driver cannot be loaded.
pub fn driver_version() -> Result<(i32, i32)> {
    let version = fork::driver()?.version();
    Ok((version / 1000, version % 1000 / 10))
}

/// Returns the newest PTX ISA that the driver assembles, such as `(9, 0)`.
///
/// # Errors
///
/// The driver cannot be loaded.
pub fn driver_isa() -> Result<(i32, i32)> {
    Ok(isa_of_driver(fork::driver()?.version()))
}

impl Device {
    /// Returns the number of devices.
    ///
    /// # Errors
    ///
    /// The driver cannot be loaded or finds no device. The error lists the paths that were tried.
    pub fn count() -> Result<usize> {
        let api = fork::driver()?;
        let mut count = 0;
        // SAFETY: the pointer is to a local.
        unsafe { api_call!(api, cuDeviceGetCount(&mut count)) }?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Opens the device with this ordinal, counted from 0.
    ///
    /// # Errors
    ///
    /// There is no driver, no such device, or the driver cannot create its context.
    pub fn new(ordinal: usize) -> Result<Device> {
        // The first call may start the trace of the environment.
        let _open = trace::span("device", || ("open a device".into(), vec![("device", ordinal.into())]));
        let count = Device::count()?;
        if ordinal >= count {
            return Err(Error::NoDevice { wanted: ordinal.to_string(), found: found_devices(count) });
        }
        let ordinal = ordinal as i32;
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = devices.iter().find(|state| state.ordinal == ordinal) {
            return Ok(Device(state));
        }
        let state: &'static DeviceState = Box::leak(Box::new(DeviceState::open(ordinal)?));
        state.watch(&mut devices);
        drop(devices);
        DeviceState::register_clock();
        Ok(Device(state))
    }

    /// Opens the device with this UUID, in the form that `nvidia-smi -L` and [`uuid`](Self::uuid) print, with or
    /// without `GPU-`.
    ///
    /// # Errors
    ///
    /// As [`Device::new`].
    pub fn from_uuid(uuid: &str) -> Result<Device> {
        let wanted = uuid.trim().trim_start_matches("GPU-").to_ascii_lowercase();
        let api = fork::driver()?;
        let count = Device::count()?;
        for ordinal in 0..count {
            let raw = device_handle(api, ordinal as i32)?;
            if read_uuid(api, raw)?.trim_start_matches("GPU-") == wanted {
                return Device::new(ordinal);
            }
        }
        Err(Error::NoDevice { wanted: uuid.to_owned(), found: found_devices(count) })
    }

    /// Opens every device, in the driver's order.
    ///
    /// # Errors
    ///
    /// As [`Device::new`].
    pub fn list() -> Result<Vec<Device>> {
        (0..Device::count()?).map(Device::new).collect()
    }

    /// Returns the devices that this process has opened.
    pub(crate) fn opened() -> Vec<Device> {
        DeviceState::opened().into_iter().map(Device).collect()
    }

    /// The ordinal, counted from 0.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal as usize
    }

    /// The name, such as `NVIDIA H200`.
    pub fn name(&self) -> &'static str {
        &self.0.name
    }

    /// The UUID in the form `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
    pub fn uuid(&self) -> &'static str {
        &self.0.uuid
    }

    /// The PCI id in the form `0000:1b:00.0`.
    pub fn pci_bus_id(&self) -> &'static str {
        &self.0.pci_bus_id
    }

    /// The compute capability, such as `(9, 0)`.
    pub fn compute_capability(&self) -> (i32, i32) {
        self.0.capability
    }

    /// The total memory of the device, in bytes.
    pub fn total_memory(&self) -> u64 {
        self.0.total_memory
    }

    /// Returns the free and total memory at this moment.
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        let _bound = self.0.bind()?;
        self.0.memory_info()
    }

    /// Returns the value of an attribute.
    ///
    /// # Errors
    ///
    /// The driver does not know the attribute.
    pub fn attribute(&self, attribute: Attribute) -> Result<i32> {
        read_attribute(self.0.api, self.0.raw, attribute)
    }

    /// Waits for all work of this device.
    ///
    /// The driver ends a capture when it waits for the whole device. While another thread captures a graph on this
    /// device, the call therefore waits only for work issued through this library.
    ///
    /// # Errors
    ///
    /// A fault of that work or a [device-side error](super::KernelError), [`Error::NotCapturable`] if this thread is
    /// capturing, or [`Error::ContextLost`].
    pub fn synchronize(&self) -> Result<()> {
        if capture::on_this_thread() {
            let found = format!("this thread captures a graph while it would wait for {self}");
            return Err(capture::not_capturable("Device::synchronize", found));
        }
        self.0.wait_until_idle()?;
        self.0.free_retired();
        call_deleters();
        self.0.take_report()
    }

    /// Calls `work` with the device's context current, so that another library can create objects in it. To issue work
    /// on a stream, use [`Stream::with_raw`](super::Stream::with_raw).
    ///
    /// # Errors
    ///
    /// The error of `work`, the driver's errors, or [`Error::ContextLost`].
    pub fn with_context<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let _bound = self.0.bind()?;
        work()
    }

    /// Returns whether the device's context was lost to a fault, or this process was forked from one that had used it.
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Device {}

impl std::hash::Hash for Device {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        std::ptr::from_ref(self.0).hash(hasher);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.0.capability;
        write!(formatter, "Device({}: {}, sm_{major}{minor})", self.0.ordinal, self.0.name)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "device {} ({})", self.0.ordinal, self.0.name)
    }
}

impl DeviceState {
    /// Reads the device's properties. Retains the primary context last, so that a failure leaves nothing behind.
    pub(super) fn open(ordinal: i32) -> Result<DeviceState> {
        let api = fork::driver()?;
        let raw = device_handle(api, ordinal)?;
        let attribute = |attribute| read_attribute(api, raw, attribute);
        let dimension = |attribute| read_attribute(api, raw, attribute).map(|value| value.max(0) as u32);
        let capability = (
            attribute(Attribute::COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::COMPUTE_CAPABILITY_MINOR)?,
        );
        let limits = Limits {
            block: [
                dimension(Attribute::MAX_BLOCK_DIM_X)?,
                dimension(Attribute::MAX_BLOCK_DIM_Y)?,
                dimension(Attribute::MAX_BLOCK_DIM_Z)?,
            ],
            grid: [
                dimension(Attribute::MAX_GRID_DIM_X)?,
                dimension(Attribute::MAX_GRID_DIM_Y)?,
                dimension(Attribute::MAX_GRID_DIM_Z)?,
            ],
            shared_opt_in: dimension(Attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        };
        let name = read_text(|text, length| {
            // SAFETY: `text` has room for `length` bytes.
            unsafe { api_call!(api, cuDeviceGetName(text, length, raw)) }
        })?;
        let pci_bus_id = read_text(|text, length| {
            // SAFETY: `text` has room for `length` bytes.
            unsafe { api_call!(api, cuDeviceGetPCIBusId(text, length, raw)) }
        })?;
        let mut total_memory = 0usize;
        // SAFETY: the pointer is to a local.
        unsafe { api_call!(api, cuDeviceTotalMem(&mut total_memory, raw)) }?;
        let uuid = read_uuid(api, raw)?;
        let mut context: CUcontext = std::ptr::null_mut();
        // SAFETY: the pointer is to a local.
        unsafe { api_call!(api, cuDevicePrimaryCtxRetain(&mut context, raw)) }?;
        Ok(DeviceState {
            api,
            ordinal,
            raw,
            context: Handle(context),
            name,
            uuid,
            pci_bus_id,
            capability,
            total_memory: total_memory as u64,
            limits,
            lost_flag: AtomicBool::new(false),
            lost: OnceLock::new(),
            reset: Reset::default(),
            gate: CaptureGate::default(),
            condition_kernel: ConditionKernel::default(),
            events: EventPool::default(),
            pool: Pool::default(),
            pinned: PinnedPool::default(),
            retired: Retired::default(),
            peers: Peers::default(),
            report: ReportSlot::default(),
            host_report: HostReport::default(),
            streams: Mutex::new(Vec::new()),
        })
    }

    /// Makes this the device of its ordinal.
    fn watch(&'static self, devices: &mut Vec<&'static DeviceState>) {
        fork::raise_in_child(&self.lost_flag);
        devices.retain(|device| device.ordinal != self.ordinal);
        devices.push(self);
        self.pool.begin_trace(self.ordinal);
    }

    /// As [`watch`](Self::watch), for a device that was reset.
    pub(super) fn replace_old(&'static self) {
        self.watch(&mut DEVICES.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns whether this is the current device of its ordinal, not one from before a reset.
    pub(super) fn is_current(&self) -> bool {
        DeviceState::opened().iter().any(|device| std::ptr::eq(*device, self))
    }

    /// Every device that this process has opened.
    pub(crate) fn opened() -> Vec<&'static DeviceState> {
        DEVICES.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Blocks until all work of the device is done, and returns true. During a capture it waits only for the live
    /// streams, and returns false.
    pub(crate) fn wait_until_idle(&'static self) -> Result<bool> {
        let _wait =
            trace::span("wait", || ("wait for a device".into(), vec![("device", self.ordinal.into())]));
        let waited = self.gate.while_none(|| {
            let _bound = self.bind()?;
            // SAFETY: the device's context is current.
            unsafe { call!(self, cuCtxSynchronize()) }
        });
        match waited {
            Some(waited) => waited.map(|()| true),
            // The context-wide wait would end the capture, as would a wait for a stream that joins it: wait for events
            // instead.
            None => {
                let streams = self.live_streams();
                streams.iter().try_for_each(|stream| stream.mark()?.synchronize()).map(|()| false)
            }
        }
    }

    /// The streams that have a live handle. The lock is released first, because dropping the last reference destroys a
    /// stream.
    pub(crate) fn live_streams(&self) -> Vec<Arc<StreamState>> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the free and total memory. The context must be current.
    pub(crate) fn memory_info(&self) -> Result<MemoryInfo> {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: the pointers are to locals.
        unsafe { call!(self, cuMemGetInfo(&mut free, &mut total))? };
        Ok(MemoryInfo { free: free as u64, total: total as u64 })
    }

    /// The kernels launched last on each live stream, for an error that cannot name one stream.
    pub(crate) fn recent_kernels(&self) -> String {
        let names: Vec<String> = self
            .live_streams()
            .iter()
            .filter_map(|stream| stream.last_kernel().map(|name| format!("{name} on stream {}", stream.id)))
            .collect();
        if names.is_empty() { "none by this library".to_owned() } else { names.join(", ") }
    }
}

fn device_handle(api: &DriverApi, ordinal: i32) -> Result<CUdevice> {
    let mut raw: CUdevice = 0;
    // SAFETY: the pointer is to a local.
    unsafe { api_call!(api, cuDeviceGet(&mut raw, ordinal)) }?;
    Ok(raw)
}

fn read_attribute(api: &DriverApi, raw: CUdevice, attribute: Attribute) -> Result<i32> {
    fork::check()?;
    let mut value = 0;
    let code = CUdevice_attribute(attribute.0 as _);
    // SAFETY: the pointer is to a local; the driver answers an unknown attribute with an error status.
    let status = unsafe { (api.cuDeviceGetAttribute()?)(&mut value, code, raw) };
    if status.0 != 0 {
        return Err(driver_error("cuDeviceGetAttribute", status.0, format!("attribute {attribute}")));
    }
    Ok(value)
}

fn read_uuid(api: &DriverApi, raw: CUdevice) -> Result<String> {
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: the pointer is to a local of the right type.
    unsafe { api_call!(api, cuDeviceGetUuid(&mut uuid, raw)) }?;
    let hex: String = uuid.bytes.iter().map(|&byte| format!("{:02x}", byte as u8)).collect();
    Ok(format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

fn read_text(read: impl FnOnce(*mut std::ffi::c_char, i32) -> Result<()>) -> Result<String> {
    let mut text = [0u8; 256];
    read(text.as_mut_ptr().cast(), text.len() as i32 - 1)?;
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}

fn found_devices(count: usize) -> String {
    match count {
        0 => "there is none".to_owned(),
        1 => "there is one, device 0".to_owned(),
        _ => format!("there are {count}, from 0 to {}", count - 1),
    }
}
