//! The fake driver as seen from Rust: its control API.
//!
//! `csrc/fake_driver/fake.h` says what the fake does; here its `fake_*` functions get safe, typed forms. The crate under
//! test and the test load the same file, so they share one instance; loading is by inode, so a variant with another
//! `label` is an instance of its own. An instance is never unloaded.
//!
//! Invariants: everything a process does with one instance is global to it, so a test holds [`exclusive`] from its reset
//! to its last check.

#![allow(dead_code, reason = "each test module uses its own part of the control API")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use libloading::Library;

use crate::variant::{self, Variant};

#[path = "../gpu/support/numbers.rs"]
mod numbers;
pub use numbers::Numbers;

/// The result of the checks that are shared with the device suite.
pub type Outcome = Result<(), libtest_mimic::Failed>;

/// Held by a test while it uses an instance.
pub fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The numbers of live handles; see `fake_counts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    pub blocks: u64,
    pub bytes: u64,
    pub pinned: u64,
    pub pinned_bytes: u64,
    pub registered: u64,
    pub streams: u64,
    pub events: u64,
    pub modules: u64,
    pub links: u64,
    pub peers: u64,
    pub retained: u64,
    pub pending: u64,
    pub reservations: u64,
    pub reserved_bytes: u64,
    pub physical: u64,
    pub physical_bytes: u64,
    pub mappings: u64,
    pub pools: u64,
    pub captures: u64,
    pub graphs: u64,
    pub instances: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct RawCall {
    function: *const c_char,
    number: u64,
    thread: u32,
    step: u32,
    result: i32,
    reserved: u32,
}

/// One driver call of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The exported name.
    pub function: String,
    /// Counted from 1 since the reset.
    pub number: u64,
    pub thread: u32,
    pub step: u32,
    pub result: i32,
}

/// A kernel's parameter, for [`Fake::kernel_effect`].
pub enum Parameter<'a> {
    Scalar(&'a [u8]),
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    Update(&'a mut [u8]),
}

#[repr(C)]
struct RawParameter {
    kind: u64,
    data: *mut c_void,
    bytes: u64,
}

/// A kernel's launch as a runner gets it; see `fake_launch`.
#[repr(C)]
pub struct FakeLaunch {
    kernel: *const c_char,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: u32,
    shared: u32,
    programmatic: u32,
    values: *const u8,
    memory: *const c_void,
    memories: usize,
}

impl FakeLaunch {
    /// Returns the kernel's name.
    pub fn kernel(&self) -> String {
        // SAFETY: the fake sets the name of a launch, which lives as long as the launch.
        unsafe { CStr::from_ptr(self.kernel) }.to_string_lossy().into_owned()
    }

    /// Returns whether the kernel may begin before the one ahead of it has ended.
    pub fn is_programmatic(&self) -> bool {
        self.programmatic != 0
    }
}

/// Runs a kernel; 0 where it does not know it.
pub type FakeRunner = extern "C" fn(*const FakeLaunch) -> c_int;

macro_rules! control {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The `fake_*` functions of one instance.
        struct Control { $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }
        impl Control {
            fn load(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the types are those of fake.h, and the library lives as long as the pointers.
                Ok(Self { $($name: unsafe { *library.get(concat!(stringify!($name), "\0").as_bytes())? },)* })
            }
        }
    };
}

control! {
    fake_reset() -> u64;
    fake_reset_all();
    fake_set_version(c_int);
    fake_set_devices(c_int);
    fake_set_init(c_int);
    fake_set_memory(u64);
    fake_set_granularity(u64);
    fake_set_capability(c_int);
    fake_set_multiprocessors(c_int);
    fake_hide_attribute(c_int);
    fake_set_peer_access(c_int);
    fake_set_strict(c_int);
    fake_set_default_streams(c_int);
    fake_set_reset_recovers(c_int);
    fake_set_faults_spread(c_int);
    fake_set_seed(u64);
    fake_set_runner(Option<FakeRunner>);
    fake_set_host_threads_ordered(c_int);
    fake_fail(*const c_char, u64, c_int) -> c_int;
    fake_fail_call(u64, c_int);
    fake_clear_failures();
    fake_failures_fired() -> u64;
    fake_lose_context(c_int, c_int);
    fake_calls() -> u64;
    fake_log(u64, *mut RawCall) -> c_int;
    fake_call_count(*const c_char) -> u64;
    fake_step(u32);
    fake_violations() -> u64;
    fake_violation(u64, *mut c_char, usize) -> usize;
    fake_live(c_int, *mut Counts);
    fake_describe_live(*mut c_char, usize) -> usize;
    fake_run(u64);
    fake_drain();
    fake_host_read(*const c_void, usize);
    fake_host_write(*const c_void, usize);
    fake_pageable_pending() -> u64;
    fake_device_read(u64, *mut c_void, usize) -> c_int;
    fake_thread_release(u64);
    fake_thread_acquire(u64);
    fake_primary_context(c_int) -> u64;
    fake_foreign_context(c_int) -> u64;
    fake_foreign_set(u64);
    fake_foreign_get() -> u64;
    fake_check_foreign() -> c_int;
    fake_kernel_effect(*const c_char, *const RawParameter, usize);
    fake_make_cubin(*const c_char, *mut c_void, usize) -> usize;
    fake_make_fatbin(*const c_char, *mut c_void, usize) -> usize;
}

/// One instance of the fake driver.
pub struct Fake {
    library: Library,
    control: Control,
    path: PathBuf,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $method:ident($type:ty) = $name:ident;)*) => {
        impl Fake {
            $($(#[$doc])*
            pub fn $method(&self, value: $type) {
                // SAFETY: see `Fake::open`; any value is allowed.
                unsafe { (self.control.$name)(value.into()) }
            })*
        }
    };
}

setters! {
    /// The reported version; exports stay as built.
    set_version(i32) = fake_set_version;
    /// 0 to 8.
    set_devices(i32) = fake_set_devices;
    /// Sets the status that `cuInit` returns.
    set_init(i32) = fake_set_init;
    /// Capacity of each device in bytes.
    set_memory(u64) = fake_set_memory;
    /// Of physical memory, in bytes: a power of two, at least 4096.
    set_granularity(u64) = fake_set_granularity;
    /// 90 for 9.0.
    set_capability(i32) = fake_set_capability;
    /// The multiprocessors of each device, before its properties are first read; 132 where not set.
    set_multiprocessors(i32) = fake_set_multiprocessors;
    /// A device attribute that answers 0 from now on.
    hide_attribute(i32) = fake_hide_attribute;
    /// Sets whether devices can reach each other.
    set_peer_access(bool) = fake_set_peer_access;
    /// Nothing runs before it is forced.
    set_strict(bool) = fake_set_strict;
    /// Other code may use the legacy default stream and the default streams of threads.
    set_default_streams(bool) = fake_set_default_streams;
    set_seed(u64) = fake_set_seed;
    /// Sets whether a reset recovers a lost context.
    set_reset_recovers(bool) = fake_set_reset_recovers;
    /// Sets whether a kernel that faults loses the contexts of all devices.
    set_faults_spread(bool) = fake_set_faults_spread;
    /// Who computes what kernels compute; see fake.h.
    set_runner(Option<FakeRunner>) = fake_set_runner;
    /// Sets whether all host threads are one component of the clocks. Call it right after a reset.
    set_host_threads_ordered(bool) = fake_set_host_threads_ordered;
    /// The call with this number after the ones so far is marked in violations with this step.
    step(u32) = fake_step;
    /// Runs up to this many queued operations.
    run(u64) = fake_run;
    thread_release(u64) = fake_thread_release;
    thread_acquire(u64) = fake_thread_acquire;
    /// A `cuCtxSetCurrent` of somebody else on this thread.
    foreign_set(u64) = fake_foreign_set;
}

/// A C string, or the empty one when the text holds a zero.
fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

impl Fake {
    /// Builds the variant and loads it.
    pub fn build(variant: &Variant) -> Result<Self, Box<dyn std::error::Error>> {
        Self::open(&variant::build(variant)?)
    }

    /// Loads an instance; the same file is the same instance everywhere in the process.
    pub fn open(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        // SAFETY: the file was built from csrc/fake_driver, whose constructor only sets up its own state. All control
        // functions take the instance's lock and check their arguments.
        let library = unsafe { Library::new(path)? };
        let control = Control::load(&library)?;
        Ok(Self { library, control, path: path.to_owned() })
    }

    /// The file, for `SELVEDGE_LIBCUDA`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An exported driver function, as `dlsym` finds it.
    ///
    /// # Safety
    ///
    /// `F` must be a function pointer of the right type.
    pub unsafe fn driver<F: Copy>(&self, name: &str) -> Result<F, libloading::Error> {
        // SAFETY: passed on to the caller.
        unsafe { self.library.get(c_string(name).as_bytes_with_nul()).map(|symbol| *symbol) }
    }

    /// Forgets everything but handles and settings; returns how many handles are alive.
    pub fn reset(&self) -> u64 {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_reset)() }
    }

    /// Forgets everything but settings. Not under a program that keeps handles.
    pub fn reset_all(&self) {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_reset_all)() }
    }

    /// The `nth` next call of `function` ("*": any) answers `code`; 0: every call. False when there is no such function.
    pub fn fail(&self, function: &str, nth: u64, code: i32) -> bool {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_fail)(c_string(function).as_ptr(), nth, code) != 0 }
    }

    /// The call of this number since the reset answers `code`.
    pub fn fail_call(&self, number: u64, code: i32) {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_fail_call)(number, code) }
    }

    pub fn clear_failures(&self) {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_clear_failures)() }
    }

    pub fn failures_fired(&self) -> u64 {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_failures_fired)() }
    }

    /// The primary context of the device answers `code` from now on; 0 repairs it.
    pub fn lose_context(&self, device: i32, code: i32) {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_lose_context)(device, code) }
    }

    /// The number of driver calls since the reset.
    pub fn calls(&self) -> u64 {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_calls)() }
    }

    /// Launches so far, with attributes and without.
    pub fn launches(&self) -> u64 {
        self.call_count("cuLaunchKernel") + self.call_count("cuLaunchKernelEx")
    }

    /// Every driver call since the reset, in order.
    pub fn log(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut raw =
            RawCall { function: std::ptr::null(), number: 0, thread: 0, step: 0, result: 0, reserved: 0 };
        // SAFETY: see `open`; `raw` is a fake_call.
        while unsafe { (self.control.fake_log)(calls.len() as u64, &raw mut raw) } != 0 {
            // SAFETY: a static string of the library.
            let function = unsafe { CStr::from_ptr(raw.function) }.to_string_lossy().into_owned();
            let RawCall { number, thread, step, result, .. } = raw;
            calls.push(Call { function, number, thread, step, result });
        }
        calls
    }

    /// Calls of this function since the reset, by exported or base name.
    pub fn call_count(&self, function: &str) -> u64 {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_call_count)(c_string(function).as_ptr()) }
    }

    /// Calls that take a buffer and return the whole length, until the buffer is large enough.
    fn text(fill: impl Fn(*mut c_char, usize) -> usize) -> String {
        let mut buffer = vec![0u8; 1024];
        loop {
            let length = fill(buffer.as_mut_ptr().cast(), buffer.len());
            if length < buffer.len() {
                buffer.truncate(length);
                return String::from_utf8_lossy(&buffer).into_owned();
            }
            buffer.resize(length + 1, 0);
        }
    }

    /// All violations since the reset.
    pub fn violations(&self) -> Vec<String> {
        // SAFETY: see `open`; the pointer and the length are those of one buffer.
        let one =
            |index| Self::text(|text, size| unsafe { (self.control.fake_violation)(index, text, size) });
        // SAFETY: see `open`.
        let count = unsafe { (self.control.fake_violations)() };
        (0..count).map(one).collect()
    }

    /// Returns the numbers of live handles on all devices.
    pub fn live(&self) -> Counts {
        self.live_on(-1)
    }

    /// Returns the numbers of live handles on one device.
    pub fn live_on(&self, device: i32) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: see `open`; `counts` is a fake_counts.
        unsafe { (self.control.fake_live)(device, &raw mut counts) };
        counts
    }

    /// One line for each live handle.
    pub fn describe_live(&self) -> String {
        // SAFETY: see `open`; the pointer and the length are those of one buffer.
        Self::text(|text, size| unsafe { (self.control.fake_describe_live)(text, size) })
    }

    /// Runs everything that is queued; the host's clock learns nothing.
    pub fn drain(&self) {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_drain)() }
    }

    /// The test is about to read this memory.
    pub fn host_read<T>(&self, memory: &[T]) {
        // SAFETY: see `open`; only the address is used.
        unsafe { (self.control.fake_host_read)(memory.as_ptr().cast(), size_of_val(memory)) }
    }

    /// The test is about to write this memory.
    pub fn host_write<T>(&self, memory: &[T]) {
        // SAFETY: see `open`; only the address is used.
        unsafe { (self.control.fake_host_write)(memory.as_ptr().cast(), size_of_val(memory)) }
    }

    /// Copies from and to pageable memory that the host has not waited for.
    pub fn pageable_pending(&self) -> u64 {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_pageable_pending)() }
    }

    /// Returns the bytes of device memory, unchecked; `None` if the range is not alive.
    pub fn device_read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut out = vec![0u8; bytes];
        // SAFETY: see `open`; `out` holds `bytes`.
        let found = unsafe { (self.control.fake_device_read)(address, out.as_mut_ptr().cast(), bytes) };
        (found != 0).then_some(out)
    }

    pub fn primary_context(&self, device: i32) -> u64 {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_primary_context)(device) }
    }

    /// A context of somebody else on this device.
    pub fn foreign_context(&self, device: i32) -> u64 {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_foreign_context)(device) }
    }

    /// The context that is current on this thread.
    pub fn current_context(&self) -> u64 {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_foreign_get)() }
    }

    /// Returns whether the context that `foreign_set` last set on this thread is current again.
    pub fn foreign_is_current(&self) -> bool {
        // SAFETY: see `open`.
        unsafe { (self.control.fake_check_foreign)() != 0 }
    }

    /// Does to these bytes what the kernel would do; the very function that the fake calls.
    pub fn kernel_effect(&self, kernel: &str, parameters: &mut [Parameter<'_>]) {
        let raw: Vec<RawParameter> = parameters
            .iter_mut()
            .map(|parameter| match parameter {
                Parameter::Scalar(data) => (0, data.as_ptr().cast_mut(), data.len()),
                Parameter::Read(data) => (1, data.as_ptr().cast_mut(), data.len()),
                Parameter::Write(data) => (2, data.as_mut_ptr(), data.len()),
                Parameter::Update(data) => (3, data.as_mut_ptr(), data.len()),
            })
            .map(|(kind, data, bytes)| RawParameter { kind, data: data.cast(), bytes: bytes as u64 })
            .collect();
        // SAFETY: see `open`; only what was lent mutably is written.
        unsafe { (self.control.fake_kernel_effect)(c_string(kernel).as_ptr(), raw.as_ptr(), raw.len()) }
    }

    fn image(fill: impl Fn(*mut c_void, usize) -> usize) -> Vec<u8> {
        let mut out = vec![0u8; fill(std::ptr::null_mut(), 0)];
        fill(out.as_mut_ptr().cast(), out.len());
        out
    }

    /// Machine code in form only, with the entries and parameters of the PTX; empty when that is not understood.
    pub fn make_cubin(&self, ptx: &str) -> Vec<u8> {
        let text = c_string(ptx);
        // SAFETY: see `open`; the pointer and the length are those of one buffer.
        Self::image(|out, size| unsafe { (self.control.fake_make_cubin)(text.as_ptr(), out, size) })
    }

    /// A fatbin that holds the PTX.
    pub fn make_fatbin(&self, ptx: &str) -> Vec<u8> {
        let text = c_string(ptx);
        // SAFETY: see `open`; the pointer and the length are those of one buffer.
        Self::image(|out, size| unsafe { (self.control.fake_make_fatbin)(text.as_ptr(), out, size) })
    }
}

/// The result of a child process of the suite.
pub type ChildOutcome = Result<(), Box<dyn std::error::Error>>;

pub fn check(holds: bool, what: &str) -> ChildOutcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Driver calls of a name that `work` makes, and what it gives.
pub fn calls<R>(
    fake: &Fake,
    name: &str,
    work: impl FnOnce() -> selvedge::Result<R>,
) -> selvedge::Result<(u64, R)> {
    let before = fake.call_count(name);
    let result = work()?;
    Ok((fake.call_count(name) - before, result))
}
