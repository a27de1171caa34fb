//! The driver's own memory pool, which keeps everything that is freed: the reference of allocations.

use std::ffi::c_void;
use std::ptr;

use super::bare::{Address, Bare, Handle, check, functions};
use super::report::Failure;

functions! {
    pool_create = "cuMemPoolCreate"(*mut Handle, *const Properties);
    pool_destroy = "cuMemPoolDestroy"(Handle);
    pool_set = "cuMemPoolSetAttribute"(Handle, i32, *mut c_void);
    allocate = "cuMemAllocFromPoolAsync"(*mut Address, usize, Handle, Handle);
    free = "cuMemFreeAsync"(Address, Handle);
}

/// `CUmemPoolProps`: pinned memory of a device, without handles for other processes.
#[repr(C)]
struct Properties {
    allocation: u32,
    handles: u32,
    location: u32,
    device: i32,
    security: *mut c_void,
    most: usize,
    rest: [u8; 56],
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED` and `CU_MEM_LOCATION_TYPE_DEVICE`.
const PINNED: u32 = 1;
const DEVICE: u32 = 1;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: i32 = 4;

/// A `CUmemoryPool` with the release threshold at its maximum.
pub struct BarePool {
    functions: Functions,
    pool: Handle,
}

// SAFETY: the driver takes a pool from any thread.
unsafe impl Send for BarePool {}
// SAFETY: as above, and nothing in it changes.
unsafe impl Sync for BarePool {}

impl BarePool {
    /// A pool of the first device.
    pub fn new() -> Result<BarePool, Failure> {
        let functions = Functions::open()?;
        let properties = Properties {
            allocation: PINNED,
            handles: 0,
            location: DEVICE,
            device: 0,
            security: ptr::null_mut(),
            most: 0,
            rest: [0; 56],
        };
        let (mut pool, mut threshold) = (ptr::null_mut(), u64::MAX);
        // SAFETY: the structure is the driver's, of 88 bytes; the attribute is 64 bits wide.
        unsafe {
            check((functions.pool_create)(&mut pool, &properties), "cuMemPoolCreate")?;
            let code = (functions.pool_set)(pool, RELEASE_THRESHOLD, (&raw mut threshold).cast());
            check(code, "cuMemPoolSetAttribute")?;
        }
        Ok(BarePool { functions, pool })
    }

    /// Memory, in the order of the stream.
    #[inline]
    pub fn allocate(&self, stream: &Bare, bytes: usize) -> Result<Address, Failure> {
        let mut address = 0;
        // SAFETY: writes one address; pool and stream live as long as `self` and the process.
        let code = unsafe { (self.functions.allocate)(&mut address, bytes, self.pool, stream.stream) };
        check(code, "cuMemAllocFromPoolAsync")?;
        Ok(address)
    }

    /// Gives memory back, in the order of the stream.
    #[inline]
    pub fn free(&self, stream: &Bare, address: Address) -> Result<(), Failure> {
        // SAFETY: the address came from `allocate`, and nothing but the stream's earlier work uses it.
        check(unsafe { (self.functions.free)(address, stream.stream) }, "cuMemFreeAsync")
    }

    /// Gives the pool back; everything in it was freed.
    pub fn close(self) -> Result<(), Failure> {
        // SAFETY: the pool is ours and not used again.
        check(unsafe { (self.functions.pool_destroy)(self.pool) }, "cuMemPoolDestroy")
    }
}
