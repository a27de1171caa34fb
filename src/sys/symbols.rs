//! The lookup of functions: the macro behind the tables of [`super::tables`].
//!
//! A line of a table describes one function: its public name, the binding whose name contains the ABI version, the
//! exported symbol, and a flag for required ones. Each line expands to a lazily filled slot and an accessor, an entry
//! of the report, and an entry of the list for the fault tests.
//!
//! Invariants: a slot only changes from empty to found or missing, and its function was looked up for exactly the type
//! that the accessor returns. The driver is asked for the ABI version of the binding, never for a newer one: the same
//! name can have another prototype there (`cuMemPrefetchAsync`, `cuCtxSynchronize`).

use std::ffi::{CString, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::driver::{
    CUdriverProcAddress_flags, CUdriverProcAddressQueryResult, CUresult, PFN_cuGetProcAddress_v11030,
    PFN_cuGetProcAddress_v12000,
};
use super::report::Attempt;
use crate::error::Error;

/// One line of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// The function's public name, such as `cuMemAlloc`.
    pub name: &'static str,
    /// The type in the bindings, such as `PFN_cuMemAlloc_v3020`.
    pub binding: &'static str,
    /// The CUDA version that introduced the ABI, such as 3020 for 3.2; 0 for libraries other than the driver.
    pub version: i32,
    /// The exported symbol, such as `cuMemAlloc_v2`.
    pub spelling: &'static str,
    /// True if the library is refused without it.
    pub required: bool,
}

/// Returns the ABI version at the end of a binding's name, or 0 without one.
///
/// A `_v2` belongs to the spelling of a cuBLAS function; the driver's versions begin at 2000.
pub const fn abi_version(binding: &str) -> i32 {
    let bytes = binding.as_bytes();
    let mut start = bytes.len();
    while start > 0 && bytes[start - 1].is_ascii_digit() {
        start -= 1;
    }
    if start < 2 || bytes[start - 1] != b'v' || bytes[start - 2] != b'_' {
        return 0;
    }
    let mut version = 0;
    while start < bytes.len() {
        version = version * 10 + (bytes[start] - b'0') as i32;
        start += 1;
    }
    if version >= 2000 { version } else { 0 }
}

/// A binding, which is an `Option` of a function pointer.
pub trait Binding {
    /// The function pointer.
    type Function: Copy;
}

impl<F: Copy> Binding for Option<F> {
    type Function = F;
}

/// The address of one function: null before the lookup, [`MISSING`] if the library lacks it.
pub(super) struct Slot(AtomicPtr<c_void>);

/// A value that is never a function's address.
const MISSING: usize = 1;

impl Slot {
    pub(super) const fn new() -> Slot {
        Slot(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns the address, which the first call looks up.
    #[inline]
    pub(super) fn get(&self, library: &Loaded, symbol: &'static Symbol) -> Result<*mut c_void, Error> {
        // The library is published before any slot of it can be read, so the address needs no ordering of its own.
        let address = self.0.load(Ordering::Relaxed);
        if address.addr() > MISSING { Ok(address) } else { self.fill(library, symbol) }
    }

    #[cold]
    fn fill(&self, library: &Loaded, symbol: &'static Symbol) -> Result<*mut c_void, Error> {
        if self.0.load(Ordering::Relaxed).is_null() {
            // Two threads that race here find the same address.
            let address = library.find(symbol).unwrap_or(ptr::without_provenance_mut(MISSING));
            self.0.store(address, Ordering::Relaxed);
        }
        let address = self.0.load(Ordering::Relaxed);
        if address.addr() > MISSING { Ok(address) } else { Err(library.missing(symbol)) }
    }
}

/// A library that is loaded for the rest of the process.
///
/// It is never unloaded, even if it is unusable, because drivers start threads and register exit handlers.
pub struct Loaded {
    library: ManuallyDrop<libloading::Library>,
    lookup: Lookup,
    /// The name in errors, such as `the NVIDIA driver`.
    pub name: &'static str,
    /// The path that it was loaded from.
    pub path: String,
    /// The version in words, such as `CUDA 12.4`; empty before the query.
    pub version: String,
    /// The version in the library's notation, such as 12040; 0 before the query.
    pub number: i32,
    /// Every attempt, including the successful one.
    pub attempts: Vec<Attempt>,
}

/// The driver's own lookup functions; none for other libraries.
#[derive(Default)]
struct Lookup {
    with_status: PFN_cuGetProcAddress_v12000,
    plain: PFN_cuGetProcAddress_v11030,
}

impl Loaded {
    /// Wraps an opened library.
    pub(super) fn new(library: libloading::Library, name: &'static str, path: String) -> Loaded {
        let library = ManuallyDrop::new(library);
        Loaded {
            library,
            lookup: Lookup::default(),
            name,
            path,
            version: String::new(),
            number: 0,
            attempts: Vec::new(),
        }
    }

    /// Finds `cuGetProcAddress`, so that lookups are by ABI version.
    pub(super) fn use_driver_lookup(&mut self) {
        // SAFETY: both are exported under exactly these names with exactly these prototypes, for ever.
        unsafe {
            self.lookup.with_status = self.exported("cuGetProcAddress_v2").map(|address| {
                std::mem::transmute::<*mut c_void, <PFN_cuGetProcAddress_v12000 as Binding>::Function>(
                    address,
                )
            });
            self.lookup.plain = self.exported("cuGetProcAddress").map(|address| {
                std::mem::transmute::<*mut c_void, <PFN_cuGetProcAddress_v11030 as Binding>::Function>(
                    address,
                )
            });
        }
    }

    /// Returns the address of an exported symbol.
    pub(super) fn exported(&self, spelling: &str) -> Option<*mut c_void> {
        // SAFETY: only the address is taken; the caller gives it its type.
        let symbol = unsafe { self.library.get::<*mut c_void>(spelling.as_bytes()) }.ok()?;
        let address = *symbol;
        (address.addr() > MISSING).then_some(address)
    }

    /// Looks up a function: by ABI version if the driver can, else by its exported symbol.
    pub(super) fn find(&self, symbol: &Symbol) -> Option<*mut c_void> {
        self.find_by_version(symbol).or_else(|| self.exported(symbol.spelling))
    }

    fn find_by_version(&self, symbol: &Symbol) -> Option<*mut c_void> {
        if symbol.version == 0 {
            return None;
        }
        let name = CString::new(symbol.name).ok()?;
        let flags = CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_LEGACY_STREAM.0.into();
        let mut address = ptr::null_mut();
        if let Some(lookup) = self.lookup.with_status {
            let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
            // SAFETY: the name is terminated and the two pointers outlive the call.
            let code = unsafe { lookup(name.as_ptr(), &mut address, symbol.version, flags, &mut status) };
            if code == CUresult::CUDA_SUCCESS
                && status == CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS
                && address.addr() > MISSING
            {
                return Some(address);
            }
        }
        let lookup = self.lookup.plain?;
        // SAFETY: as above.
        let code = unsafe { lookup(name.as_ptr(), &mut address, symbol.version, flags) };
        (code == CUresult::CUDA_SUCCESS && address.addr() > MISSING).then_some(address)
    }

    /// Returns the error for a missing function.
    pub(super) fn missing(&self, symbol: &Symbol) -> Error {
        Error::MissingSymbol {
            library: self.name,
            symbol: symbol.name,
            needs: cuda_version(symbol.version),
            version: self.version.clone(),
        }
    }
}

/// Formats `12.4` for 12040, and nothing for 0.
pub fn cuda_version(version: i32) -> String {
    if version == 0 { String::new() } else { format!("{}.{}", version / 1000, version % 1000 / 10) }
}

/// Declares the functions of a library. A line is `cuMemAlloc: PFN_cuMemAlloc_v3020 "cuMemAlloc_v2" required;`, and its
/// last word is `required` or `optional`.
macro_rules! symbols {
    (
        $(#[$meta:meta])*
        $api:ident from $bindings:ident;
        $($name:ident: $binding:ident $spelling:literal $need:ident;)+
    ) => {
        $(#[$meta])*
        #[allow(non_snake_case)]
        pub struct $api {
            /// The library of the functions.
            pub loaded: Loaded,
            $($name: Slot,)+
        }

        #[allow(non_snake_case)]
        impl $api {
            /// The table.
            pub const SYMBOLS: &'static [Symbol] = &[$(Symbol {
                name: stringify!($name),
                binding: stringify!($binding),
                version: abi_version(stringify!($binding)),
                spelling: $spelling,
                required: symbols!(@required $need),
            },)+];

            /// Wraps a library before any lookup.
            pub(super) fn new(loaded: Loaded) -> Self {
                $api { loaded, $($name: Slot::new(),)+ }
            }

            $(
                #[doc = concat!("`", $spelling, "`, looked up on the first call.\n\n# Errors\n\nThe library has no such function.")]
                #[inline]
                pub fn $name(&self) -> Result<<super::$bindings::$binding as Binding>::Function, Error> {
                    const SYMBOL: Symbol = Symbol {
                        name: stringify!($name),
                        binding: stringify!($binding),
                        version: abi_version(stringify!($binding)),
                        spelling: $spelling,
                        required: symbols!(@required $need),
                    };
                    let address = self.$name.get(&self.loaded, &SYMBOL)?;
                    // SAFETY: the address was looked up under the name and ABI version of this very type.
                    Ok(unsafe {
                        std::mem::transmute::<*mut c_void, <super::$bindings::$binding as Binding>::Function>(address)
                    })
                }
            )+
        }
    };
    (@required required) => { true };
    (@required optional) => { false };
}

/// Calls a function of a table: `call!(api, cuMemAlloc(&mut address, bytes))` is a `Result<(), Error>`, an `Err` if the
/// function is missing or its status is not success. Used inside the caller's `unsafe` block.
macro_rules! call {
    ($api:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match $api.$name() {
            Ok(function) => $crate::sys::Status::check(function($($argument),*), stringify!($name)),
            Err(missing) => Err(missing),
        }
    };
}

/// As [`call!`], but returns the status: a `Result<CUresult, Error>` that is an `Err` only if the function is missing.
macro_rules! call_raw {
    ($api:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match $api.$name() {
            Ok(function) => Ok(function($($argument),*)),
            Err(missing) => Err::<_, $crate::error::Error>(missing),
        }
    };
}

pub(super) use symbols;
pub(crate) use {call, call_raw};
