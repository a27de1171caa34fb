//! The C ABI inside of a program that owns streams, memory, contexts and processes.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use selvedge::capi::buffer::*;
use selvedge::capi::device::*;
use selvedge::capi::graph::*;
use selvedge::capi::hooks::*;
use selvedge::capi::library::*;
use selvedge::capi::nvrtc::*;
use selvedge::capi::pinned::*;
use selvedge::capi::pool::*;
use selvedge::capi::status::*;
use selvedge::capi::stream::*;

use super::{Outcome, bytes_of, load, message, stream, zeros};
use crate::forks;
use crate::support::Fake;

static DELETED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn deleted(user: *mut c_void) {
    // A deleter may use the library.
    DELETED.fetch_add(user.addr() + sv_device_synchronize(0) as usize, Ordering::Relaxed);
}

pub fn foreign(fake: &Fake) -> Outcome {
    let own = stream(0)?;
    let (mut raw, mut borrowed, mut device): (*mut c_void, _, _) = (null_mut(), 0, 9);
    ok!(sv_stream_raw(own, &mut raw));
    ok!(sv_stream_from_raw(0, raw, &mut borrowed));
    ok!(sv_stream_device(borrowed, &mut device));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_stream_from_raw(1, raw, &mut borrowed));
    let (mut address, mut buffer, source) = (0, 0, zeros(own, 64)?);
    ok!(sv_buffer_address(source, &mut address));
    fake.set_strict(true);
    ok!(sv_buffer_from_raw(borrowed, address, 64, Some(deleted), 100 as *mut c_void, &mut buffer));
    ok!(sv_buffer_fill(borrowed, buffer, 0, [6u8].as_ptr().cast(), 1, 64));
    ok!(sv_release(buffer));
    let before = DELETED.load(Ordering::Relaxed);
    ok!(sv_stream_synchronize(borrowed));
    let after = DELETED.load(Ordering::Relaxed);
    if (device, before, after) != (0, 0, 100) || bytes_of(own, source)? != [6; 64] {
        return Err(format!("device {device}, {before} and {after} calls").into());
    }
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_buffer_from_raw(own, 3, 64, None, null_mut(), &mut buffer));
    let mut context: *mut c_void = null_mut();
    ok!(sv_device_context(1, &mut context));
    ok!(sv_device_of_context(context, &mut device));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_device_of_context(null_mut(), &mut device));
    // The borrowed stream goes first: the driver's one is still there.
    ok!(sv_release(borrowed));
    ok!(sv_stream_synchronize(own));
    ok!(sv_release(source));
    ok!(sv_release(own));
    if device == 1 { Ok(()) } else { Err(format!("device {device}").into()) }
}

pub fn programs(_: &Fake) -> Outcome {
    let (mut program, mut length, mut module) = (0, 0, 0);
    let source =
        c"#include \"factor.h\"\ntemplate <typename T> __global__ void scale(T *x) { x[0] *= FACTOR; }";
    ok!(sv_program_create(c"scale.cu".as_ptr(), source.as_ptr(), &mut program));
    ok!(sv_program_add_header(program, c"factor.h".as_ptr(), c"#define FACTOR 3".as_ptr()));
    ok!(sv_program_add_option(program, c"--use_fast_math".as_ptr()));
    ok!(sv_program_add_expression(program, c"scale<float>".as_ptr()));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_program_image(program, null_mut(), 0, &mut length));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_program_load(program, 0, &mut module));
    says!("without a result");
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_program_compile(program, c"sm90".as_ptr()));
    // SAFETY: the text is a literal.
    match unsafe { sv_program_compile(program, c"compute_80".as_ptr()) } {
        SV_OK => {
            ok!(sv_program_image(program, null_mut(), 0, &mut length));
            let mut image = vec![0u8; length];
            ok!(sv_program_image(program, image.as_mut_ptr().cast(), length, null_mut()));
            let mut name = [0 as c_char; 256];
            let expression = c"scale<float>".as_ptr();
            ok!(sv_program_lowered_name(program, expression, name.as_mut_ptr(), 256, null_mut()));
            let short = image.as_mut_ptr().cast();
            answers!(SV_ERROR_INVALID_ARGUMENT, sv_program_image(program, short, length - 1, null_mut()));
            ok!(sv_program_add_header(program, c"factor.h".as_ptr(), c"#define FACTOR )".as_ptr()));
            answers!(SV_ERROR_COMPILATION, sv_program_compile(program, c"compute_80".as_ptr()));
            let image = String::from_utf8(image)?;
            // SAFETY: the function wrote a text with its zero byte.
            let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_str()?;
            if !image.contains(".version") || !image.contains(name) {
                return Err(format!("{name} in {image}").into());
            }
        }
        SV_ERROR_LIBRARY_UNAVAILABLE => {
            answers!(SV_ERROR_LIBRARY_UNAVAILABLE, sv_program_compile_for_device(program, 0));
        }
        other => return Err(format!("{other}: {}", message()).into()),
    }
    ok!(sv_program_log(program, null_mut(), 0, &mut length));
    ok!(sv_release(program));
    if length > 0 { Ok(()) } else { Err("an error without a log".into()) }
}

unsafe extern "C" fn log(level: i32, target: *const c_char, message: *const c_char, user: *mut c_void) {
    // SAFETY: both texts are valid during the call, and `user` is the counter.
    let (target, message, count) =
        unsafe { (CStr::from_ptr(target), CStr::from_ptr(message), &*user.cast::<AtomicUsize>()) };
    if level == SV_LOG_ERROR && target.to_bytes().starts_with(b"selvedge") && !message.is_empty() {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The bytes that the program's allocator has given and not got back.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn allocate(bytes: usize, alignment: usize, user: *mut c_void) -> *mut c_void {
    let Ok(layout) = std::alloc::Layout::from_size_align(bytes, alignment) else { return null_mut() };
    if user.is_null() || bytes > 1 << 20 {
        return null_mut();
    }
    ALLOCATED.fetch_add(bytes, Ordering::Relaxed);
    // SAFETY: no tensor asks for 0 bytes.
    unsafe { std::alloc::alloc(layout).cast() }
}

unsafe extern "C" fn free(memory: *mut c_void, bytes: usize, alignment: usize, _: *mut c_void) {
    let Ok(layout) = std::alloc::Layout::from_size_align(bytes, alignment) else { return };
    ALLOCATED.fetch_sub(bytes, Ordering::Relaxed);
    // SAFETY: allocated above with these numbers.
    unsafe { std::alloc::dealloc(memory.cast(), layout) }
}

pub fn allocator(_: &Fake) -> Outcome {
    let user = (&raw const ALLOCATED).cast_mut().cast();
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_set_host_allocator(None, Some(free), user));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_set_host_allocator(Some(allocate), None, user));
    ok!(sv_set_host_allocator(Some(allocate), Some(free), user));
    let cpu = selvedge::Device::cpu();
    let x = selvedge::Tensor::ones(&[50_000], selvedge::DType::F32, &cpu)?;
    let sum = (&x + &x)?;
    if ALLOCATED.load(Ordering::Relaxed) != 400_000 || sum.to_vec::<f32>()? != [2.0; 50_000] {
        return Err(format!("{} bytes", ALLOCATED.load(Ordering::Relaxed)).into());
    }
    let mut statistics = sv_pool_statistics { size: size_of::<sv_pool_statistics>(), ..Default::default() };
    ok!(sv_device_pool_statistics(SV_CPU, &mut statistics));
    if (statistics.live_bytes, statistics.cached_bytes) != (400_000, 0) {
        return Err(format!("{} and {}", statistics.live_bytes, statistics.cached_bytes).into());
    }
    let large = selvedge::Tensor::ones(&[1 << 20], selvedge::DType::F32, &cpu);
    if !matches!(large, Err(selvedge::Error::OutOfMemory { .. })) {
        return Err(format!("without memory: {large:?}").into());
    }
    drop((x, sum));
    if ALLOCATED.load(Ordering::Relaxed) != 0 {
        return Err(format!("{} bytes are left", ALLOCATED.load(Ordering::Relaxed)).into());
    }
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_set_host_allocator(Some(allocate), Some(free), user));
    ok!(sv_device_trim(SV_CPU));
    Ok(())
}

pub fn logs(fake: &Fake) -> Outcome {
    let count = AtomicUsize::new(0);
    let user = (&raw const count).cast_mut().cast();
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_set_log_callback(6, Some(log), user));
    ok!(sv_set_log_callback(SV_LOG_WARN, Some(log), user));
    // A release cannot return the driver's error.
    let release = || -> Outcome {
        let stream = stream(0)?;
        fake.fail("cuStreamDestroy_v2", 1, 999);
        ok!(sv_release(stream));
        Ok(())
    };
    release()?;
    let first = count.load(Ordering::Relaxed);
    ok!(sv_set_log_callback(SV_LOG_OFF, None, null_mut()));
    release()?;
    let (second, mut threads) = (count.load(Ordering::Relaxed), 0);
    ok!(sv_set_threads(3));
    ok!(sv_thread_count(&mut threads));
    if (first, second, threads) == (1, 1, 3) {
        Ok(())
    } else {
        Err(format!("{first}, {second}, {threads}").into())
    }
}

pub fn contexts(fake: &Fake) -> Outcome {
    let foreign = fake.foreign_context(0);
    fake.foreign_set(foreign);
    let (module, function) = load(c"make")?;
    let stream = stream(1)?;
    let buffer = zeros(stream, 64)?;
    bytes_of(stream, buffer)?;
    ok!(sv_device_synchronize(0));
    answers!(SV_ERROR_NO_DEVICE, sv_device_synchronize(7));
    for handle in [function, module, buffer, stream] {
        ok!(sv_release(handle));
        if fake.current_context() != foreign {
            return Err("another context is current".into());
        }
    }
    ok!(sv_device_trim(0));
    fake.foreign_set(0);
    Ok(())
}

/// The names of this process's threads.
fn threads() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir("/proc/self/task")? {
        // A thread that ends meanwhile has no name any more.
        names.extend(std::fs::read_to_string(entry?.path().join("comm")));
    }
    Ok(names.into_iter().filter(|name| name.starts_with("selvedge-")).collect())
}

/// Waits until the process has threads of the library, or has none, and returns whether it came to that. A thread names
/// itself when it first runs, and the system lists one for a moment after it was joined.
fn comes_to(some: bool) -> Result<bool, Box<dyn std::error::Error>> {
    let end = Instant::now() + Duration::from_secs(10);
    while threads()?.is_empty() == some {
        if Instant::now() > end {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

pub fn shutdown(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let (module, function) = load(c"make")?;
    let stream = stream(0)?;
    let (buffer, mut memory, mut foreign, mut address) = (zeros(stream, 64)?, 0, 0, 0);
    ok!(sv_pinned_create(0, 64, &mut memory));
    ok!(sv_pinned_upload(stream, memory, buffer, 0));
    ok!(sv_buffer_address(buffer, &mut address));
    ok!(sv_buffer_from_raw(stream, address, 64, Some(deleted_at_shutdown), null_mut(), &mut foreign));
    ok!(sv_buffer_fill(stream, foreign, 0, [1u8].as_ptr().cast(), 1, 64));
    ok!(sv_stream_begin_capture(stream));
    if !threads()?.is_empty() {
        return Err(format!("{:?} before an operation asked for threads", threads()?).into());
    }
    ok!(sv_set_threads(4));
    let large = selvedge::Tensor::ones(&[1 << 22], selvedge::DType::F32, &selvedge::Device::cpu())?;
    drop((&large * &large)?);
    if !comes_to(true)? {
        return Err("the operation started no thread".into());
    }
    ok!(sv_shutdown());
    ok!(sv_shutdown());
    answers!(SV_ERROR_SHUT_DOWN, sv_release(module));
    answers!(SV_ERROR_SHUT_DOWN, sv_stream_synchronize(stream));
    answers!(SV_ERROR_SHUT_DOWN, sv_release(function));
    says!("shut down");
    let live = fake.live();
    let left =
        (live.blocks, live.pinned, live.streams, live.events, live.modules, live.captures, live.pending);
    if left != (0, 0, 0, 0, 0, 0, 0) || !comes_to(false)? || DELETED.load(Ordering::Relaxed) != 1 {
        return Err(format!("{:?}\n{}", threads()?, fake.describe_live()).into());
    }
    // Rust code in the process goes on, with threads of its own.
    drop((&large * &large)?);
    if !comes_to(true)? {
        return Err("no thread was started anew".into());
    }
    Ok(())
}

unsafe extern "C" fn deleted_at_shutdown(_: *mut c_void) {
    DELETED.fetch_add(1, Ordering::Relaxed);
}

pub fn forked(_: &Fake) -> Outcome {
    let (module, function) = load(c"make")?;
    let stream = stream(0)?;
    let (buffer, mut other) = (zeros(stream, 64)?, 0);
    forks::in_fork(|| {
        let mut byte = 0u8;
        answers!(SV_ERROR_FORKED_PROCESS, sv_stream_create(0, 0, &mut other));
        answers!(SV_ERROR_FORKED_PROCESS, sv_buffer_create(stream, 64, &mut other));
        answers!(SV_ERROR_FORKED_PROCESS, sv_buffer_download(stream, buffer, 0, (&raw mut byte).cast(), 1));
        answers!(SV_ERROR_FORKED_PROCESS, sv_stream_synchronize(stream));
        ok!(sv_release(buffer));
        ok!(sv_shutdown());
        Ok(())
    })?;
    if bytes_of(stream, buffer)? != [0; 64] {
        return Err("the child disturbed its parent".into());
    }
    for handle in [function, module, buffer, stream] {
        ok!(sv_release(handle));
    }
    Ok(())
}
