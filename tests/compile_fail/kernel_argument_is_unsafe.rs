//! Being a kernel argument is a promise about pointers, so a type of one's own makes it in `unsafe`; what counts as device
//! memory is not for others to say.

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
