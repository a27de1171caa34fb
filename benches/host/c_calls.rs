//! Calls of the C ABI: a small operation above the same one in Rust, measured in turns, a property of a tensor, and a DLPack
//! exchange in each direction.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

use criterion::Criterion;
use selvedge::capi::dlpack::{SV_DLPACK_NO_STREAM, sv_tensor_from_dlpack, sv_tensor_to_dlpack};
use selvedge::capi::library::{sv_release, sv_retain};
use selvedge::capi::status::SV_OK;
use selvedge::capi::tensor::SV_DTYPE_F32;
use selvedge::capi::tensor::creation::sv_tensor_from_host;
use selvedge::capi::tensor::elementwise::sv_binary;
use selvedge::capi::tensor::operations::SV_OP_ADD;
use selvedge::capi::tensor::properties::sv_tensor_dtype;
use selvedge::tensor::dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor};
use selvedge::tensor::{Device, Tensor};

/// Operations between two looks at the clock.
const BURST: u64 = 64;
const BURSTS: u32 = 4000;
const COUNT: usize = 1024;

type Failure = Box<dyn std::error::Error>;

fn check(status: i32) -> Result<(), Failure> {
    if status == SV_OK { Ok(()) } else { Err(format!("status {status} of the C ABI").into()) }
}

/// A tensor's handle on a device; -1 is the CPU.
fn upload(data: &[f32], device: i32) -> Result<u64, Failure> {
    let (shape, mut handle) = ([data.len() as i64], 0);
    let (elements, bytes) = (data.as_ptr().cast(), size_of_val(data));
    // SAFETY: the pointers are to slices of these lengths and a local.
    check(unsafe {
        sv_tensor_from_host(elements, bytes, SV_DTYPE_F32, shape.as_ptr(), 1, device, &mut handle)
    })?;
    Ok(handle)
}

/// The nanoseconds of a call of each, in turns: those of the fastest of many bursts, because a difference of means would be
/// that of whatever else the machine does.
fn fastest(own: &dyn Fn(), bare: &dyn Fn()) -> [f64; 2] {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..BURSTS {
        for (best, work) in best.iter_mut().zip([own, bare]) {
            let start = Instant::now();
            (0..BURST).for_each(|_| work());
            *best = best.min(start.elapsed().as_secs_f64() * 1e9 / BURST as f64);
        }
    }
    best
}

/// Frees an export, as its consumer does.
fn delete(managed: *mut c_void) {
    let managed = managed.cast::<DLManagedTensorVersioned>();
    // SAFETY: the export is live, and this is the only call of its deleter.
    unsafe {
        if let Some(deleter) = (*managed).deleter {
            deleter(managed);
        }
    }
}

unsafe extern "C" fn no_deleter(_: *mut DLManagedTensorVersioned) {}

pub fn measure(criterion: &mut Criterion) -> Result<(), Failure> {
    let data = vec![1.0f32; COUNT];
    let mut group = criterion.benchmark_group("C calls");
    let cuda = Device::cuda(0);
    if let Err(error) = &cuda {
        println!("C calls on the CPU alone: {error}");
    }
    for (device, index) in cuda.ok().map(|device| (device, 0)).into_iter().chain([(Device::cpu(), -1)]) {
        let [a, b] =
            [Tensor::from_slice(&data, &[COUNT], &device)?, Tensor::from_slice(&data, &[COUNT], &device)?];
        let (x, y) = (upload(&data, index)?, upload(&data, index)?);
        let name = if index < 0 { "the CPU" } else { "a device" };
        let in_rust = || drop(black_box(&a + &b));
        let in_c = || {
            let mut result = 0;
            // SAFETY: the pointer is to a local.
            black_box(unsafe { sv_binary(SV_OP_ADD, x, y, &mut result) });
            black_box(sv_release(result));
        };
        let [own, bare] = fastest(&in_c, &in_rust);
        println!(
            "a + b and its release on {name}: {own:.0} ns in C, {bare:.0} ns in Rust, {:.0} ns above",
            own - bare
        );
        let dtype = || {
            let mut dtype = 0;
            // SAFETY: the pointer is to a local.
            black_box(unsafe { sv_tensor_dtype(x, &mut dtype) });
            black_box(dtype);
        };
        let reference = || {
            black_box(sv_retain(x));
            black_box(sv_release(x));
        };
        let [of_dtype, of_reference] = fastest(&dtype, &reference);
        println!(
            "a tensor's dtype on {name}: {of_dtype:.0} ns in C; a reference and its release: {of_reference:.0} ns"
        );
        // An export and its deleter.
        group.bench_function(format!("a DLPack export on {name}"), |bencher| {
            bencher.iter(|| {
                let mut managed = null_mut();
                // SAFETY: the pointer is to a local.
                if unsafe { sv_tensor_to_dlpack(x, 0, SV_DLPACK_NO_STREAM, &mut managed) } == SV_OK {
                    delete(managed);
                }
            });
        });
        check(sv_release(x))?;
        check(sv_release(y))?;
    }
    // An import and its release. The idle driver knows no memory of other code, so this is of the CPU.
    let mut elements = data.clone();
    let (mut shape, mut strides) = ([COUNT as i64], [1i64]);
    let dl_tensor = DLTensor {
        data: elements.as_mut_ptr().cast(),
        device: DLDevice { device_type: 1, device_id: 0 },
        ndim: 1,
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let deleter: unsafe extern "C" fn(*mut DLManagedTensorVersioned) = no_deleter;
    let mut managed = DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 0 },
        manager_ctx: null_mut(),
        deleter: Some(deleter),
        flags: 0,
        dl_tensor,
    };
    let import = |managed: *mut DLManagedTensorVersioned| {
        let mut result = 0;
        // SAFETY: the struct and its memory live until the end of the function.
        let status = unsafe { sv_tensor_from_dlpack(managed.cast(), &mut result) };
        if status == SV_OK { sv_release(result) } else { status }
    };
    check(import(&raw mut managed))?;
    group.bench_function("a DLPack import on the CPU", |bencher| {
        bencher.iter(|| black_box(import(&raw mut managed)));
    });
    group.finish();
    Ok(())
}
