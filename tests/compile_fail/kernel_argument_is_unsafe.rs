//! A kernel argument guarantees that its pointers are valid, so a user's type implements the trait in `unsafe`. Only the
//! crate says which types are device memory.

use std::ffi::c_void;

use selvedge::driver::{DeviceRead, KernelArgument, image::ArgumentKind};

struct Mine(u64);

impl KernelArgument for Mine {
    const KIND: ArgumentKind = ArgumentKind::Integer;
    const SIZE: usize = 8;

    fn pointer(&self) -> *mut c_void {
        std::ptr::null_mut()
    }
}

impl DeviceRead<f32> for Mine {}

fn main() {}
