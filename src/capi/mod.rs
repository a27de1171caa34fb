//! The C ABI: `extern "C"` functions over the public Rust API, one file a subject.
//!
//! `include/selvedge.h` is generated from this module and committed. Every function has the prefix `sv_`, returns a
//! [status], and writes its results through pointers. Objects are 64-bit [handles](handle) with a reference count;
//! structs are passed by pointer and begin with their size, which later versions check; a struct gets no more fields at its
//! end (docs/c-abi.md, Stability).
//!
//! # Invariants
//!
//! - No panic crosses the ABI: `guard::call` turns one into [`status::SV_ERROR_PANIC`], and prints nothing.
//! - A pointer is checked for NULL and alignment before it is used, and a handle for its kind and generation.
//! - A function that fails writes nothing through its result pointers, and leaves a message for [`error::sv_last_error`].
//! - A pointer points to a value of its type, a text ends with a zero byte, and arrays are as long as the function says: the caller
//!   vouches for these, for every function. `# Safety` says what else a function needs, such as the lengths.
//! - Any thread may call a function, which waits while another thread changes an object that it uses, and the caller owns one reference to each object that a function gives, unless it says otherwise.
//! - A function takes references to the objects that it uses, or pins them for a short time, so another thread may release a
//!   handle meanwhile.
//!
//! # How to add a function
//!
//! 1. Write it in the file of its subject: `#[unsafe(no_mangle)] pub unsafe extern "C" fn sv_…`, with a body of
//!    `guard::call("sv_…", || { … Ok(()) })`. Read pointers by [`arguments`], and objects by their `handle::Table`.
//! 2. State in its docs what it does, and what of ownership and threads differs from the invariants.
//! 3. Write the header and the list of exported symbols by `scripts/generate.sh header`, and commit
//!    both.
//! 4. Add a method to the C++ classes in `include/selvedge`; `tests/capi_c.rs` fails without one.
//! 5. Add a case to the tests in `tests/capi`. `tests/capi/hostile.rs` reads the header and calls every function with NULL,
//!    released and foreign handles.

#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "a body does what its caller vouches for; a block for each line would say nothing more"
)]
#![allow(clippy::missing_safety_doc, reason = "what all functions need is said once, above")]

pub mod arguments;
pub mod buffer;
pub mod burst;
pub mod catalogue;
pub mod classifier;
pub mod custom;
pub mod device;
pub mod dlpack;
pub mod error;
pub mod fused;
pub mod graph;
pub mod guard;
pub mod handle;
pub mod hooks;
pub mod launch;
pub mod library;
pub mod matmul;
pub mod module;
pub mod nn;
pub mod nvrtc;
pub mod pinned;
pub mod pool;
pub mod srt;
pub mod status;
pub mod stream;
pub mod tensor;
pub mod trace;
