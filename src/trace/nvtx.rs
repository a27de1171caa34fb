//! Ranges for profilers that inject themselves, by the protocol of NVTX, which needs no library.
//!
//! A profiler such as Nsight Systems sets `NVTX_INJECTION64_PATH`. Its library is opened once and asked to attach
//! (`InitializeInjectionNvtx2`). It calls back for a table of function slots and fills those that it implements, of which
//! `nvtxRangePushA` and `nvtxRangePop` are used here. The numbers and structures are those of NVTX 3 (nvtxTypes.h).

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The variable that names the profiler's library.
const VARIABLE: &str = "NVTX_INJECTION64_PATH";
const INITIALIZE: &[u8] = b"InitializeInjectionNvtx2\0";
/// NVTX_ETID_CALLBACKS and NVTX_ETID_VERSIONINFO.
const CALLBACKS: u32 = 1;
const VERSION_INFO: u32 = 3;
/// The functions of each module, from NVTX_CB_MODULE_CORE on, with the unused slot 0.
const SIZES: [u32; 6] = [16, 9, 15, 7, 16, 6];
const SLOTS: usize = 16;
/// NVTX_CBID_CORE_RangePushA and NVTX_CBID_CORE_RangePop.
const PUSH: usize = 9;
const POP: usize = 11;

/// The functions of all modules. A profiler writes those that it implements while it attaches.
static FUNCTION_SLOTS: [[AtomicPtr<c_void>; SLOTS]; SIZES.len()] =
    [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS] }; SIZES.len()];

/// Addresses of the slots, in which a profiler looks them up. The unused slot and the end are null.
static TABLES: [[AtomicPtr<*mut c_void>; SLOTS + 1]; SIZES.len()] =
    [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS + 1] }; SIZES.len()];

#[repr(C)]
struct ExportedCallbacks {
    size: usize,
    module_functions: unsafe extern "C" fn(c_int, *mut *mut *mut *mut c_void, *mut u32) -> c_int,
}

#[repr(C)]
struct ExportedVersion {
    size: usize,
    version: u32,
    reserved: u32,
    set_version: extern "C" fn(u32),
}

static EXPORTED_CALLBACKS: ExportedCallbacks =
    ExportedCallbacks { size: size_of::<ExportedCallbacks>(), module_functions };
static EXPORTED_VERSION: ExportedVersion =
    ExportedVersion { size: size_of::<ExportedVersion>(), version: 3, reserved: 0, set_version };

/// Gives a profiler the table of a module.
unsafe extern "C" fn module_functions(
    module: c_int,
    table: *mut *mut *mut *mut c_void,
    size: *mut u32,
) -> c_int {
    let index = usize::try_from(module).ok().and_then(|module| module.checked_sub(1));
    let Some(index) = index.filter(|&index| index < SIZES.len()) else { return 0 };
    let (count, slots, addresses) = (SIZES[index], &FUNCTION_SLOTS[index], &TABLES[index]);
    for slot in 1..count as usize {
        addresses[slot].store(slots[slot].as_ptr(), Ordering::Relaxed);
    }
    // SAFETY: the profiler's pointers are NULL or to variables of its own. An atomic pointer has the layout of a pointer.
    unsafe {
        if !table.is_null() {
            table.write(addresses.as_ptr().cast_mut().cast());
        }
        if !size.is_null() {
            size.write(count);
        }
    }
    1
}

extern "C" fn set_version(_version: u32) {}

unsafe extern "C" fn export_table(id: u32) -> *const c_void {
    match id {
        CALLBACKS => (&raw const EXPORTED_CALLBACKS).cast(),
        VERSION_INFO => (&raw const EXPORTED_VERSION).cast(),
        _ => std::ptr::null(),
    }
}

type ExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// The functions of the attached profiler.
#[derive(Clone, Copy)]
struct Functions {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();

/// Attaches the profiler that the environment names, once. Returns whether there is one that shows ranges.
pub(super) fn attach() -> bool {
    let attached = FUNCTIONS.get_or_init(|| {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        // SAFETY: the caller of the program names a profiler's library, whose initialisers run.
        let library = match unsafe { libloading::Library::new(&path) } {
            Ok(library) => library,
            Err(error) => {
                log::warn!("{VARIABLE}: ranges are not shown: {} cannot be loaded: {error}", path.display());
                return None;
            }
        };
        // SAFETY: the protocol gives the function this type.
        let initialize = unsafe { library.get::<unsafe extern "C" fn(ExportTable) -> c_int>(INITIALIZE) };
        let Ok(initialize) = initialize.map(|symbol| *symbol) else {
            log::warn!(
                "{VARIABLE}: ranges are not shown: {} has no InitializeInjectionNvtx2",
                path.display()
            );
            return None;
        };
        // Its functions are called until the process ends.
        std::mem::forget(library);
        // SAFETY: as the protocol says.
        if unsafe { initialize(export_table) } == 0 {
            log::warn!("{VARIABLE}: ranges are not shown: {} does not attach", path.display());
            return None;
        }
        let [push, pop] = [PUSH, POP].map(|slot| FUNCTION_SLOTS[0][slot].load(Ordering::Relaxed));
        if push.is_null() || pop.is_null() {
            return None;
        }
        // SAFETY: the profiler stored functions of these types in these slots.
        Some(unsafe {
            Functions {
                push: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> c_int>(push),
                pop: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(pop),
            }
        })
    });
    attached.is_some()
}

/// Returns whether a profiler shows ranges.
pub(super) fn is_attached() -> bool {
    matches!(FUNCTIONS.get(), Some(Some(_)))
}

/// Begins a range of this thread in the profiler. Returns whether [`pop`] must end it.
pub(super) fn push(name: &str) -> bool {
    let Some(Some(functions)) = FUNCTIONS.get() else { return false };
    let name = CString::new(name.replace('\0', "\u{fffd}")).unwrap_or_default();
    // SAFETY: the text ends with a zero byte and lives during the call.
    unsafe { (functions.push)(name.as_ptr()) };
    true
}

/// Ends the range of this thread that began last.
pub(super) fn pop() {
    if let Some(Some(functions)) = FUNCTIONS.get() {
        // SAFETY: the function takes nothing.
        unsafe { (functions.pop)() };
    }
}
