//! The C ABI's functions for devices on the fake driver: values, order, and what a program around the library relies on.

use std::ffi::{CStr, c_char, c_void};
use std::mem::size_of;
use std::ptr::{null, null_mut};

use selvedge::capi::buffer::*;
use selvedge::capi::device::*;
use selvedge::capi::error::sv_last_error;
use selvedge::capi::graph::*;
use selvedge::capi::launch::*;
use selvedge::capi::library::*;
use selvedge::capi::module::*;
use selvedge::capi::pinned::*;
use selvedge::capi::pool::*;
use selvedge::capi::status::*;
use selvedge::capi::stream::*;

use super::children;
use super::kernels::PTX;
use super::support::{Fake, Parameter};
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Program = (&'static str, fn(&Fake) -> Outcome);

const PROGRAMS: &[Program] = &[
    ("buffers_carry_bytes", buffers),
    ("a_pinned_copy_has_its_memory_until_the_wait", pinned),
    ("pinned_memory_becomes_a_tensor_that_dlpack_exports", custom::pinned),
    ("launches_are_checked_and_ordered", launches),
    ("graphs_are_captured_launched_and_updated", graphs),
    ("pools_and_peers", pools),
    ("foreign_memory_and_streams_come_in", host::foreign),
    ("programs_are_compiled_where_nvrtc_is", host::programs),
    ("the_log_goes_to_the_callback", host::logs),
    ("memory_of_cpu_tensors_is_of_the_allocator", host::allocator),
    ("a_foreign_context_stays_current", host::contexts),
    ("a_shutdown_frees_all_and_ends_threads", host::shutdown),
    ("a_forked_child_gets_a_status", host::forked),
    ("cuda_callbacks_are_ordered_with_the_tensors", custom::callbacks),
    ("dlpack_streams_go_by_their_numbers", custom::streams),
    ("damaged_npy_files_are_refused", fuzz::npy),
    ("damaged_npz_files_are_refused", fuzz::npz),
    ("damaged_burst_files_are_refused", fuzz::burst),
    ("damaged_images_are_refused", fuzz::images),
    ("damaged_dlpack_structs_are_refused", fuzz::dlpack),
    ("damaged_saved_states_are_refused", saved::states),
];

fn message() -> String {
    // SAFETY: the text is valid until this thread's next error.
    unsafe { CStr::from_ptr(sv_last_error()) }.to_string_lossy().into_owned()
}

/// Fails unless the call returned this status.
macro_rules! answers {
    ($status:expr, $call:expr) => {{
        // SAFETY: every pointer is NULL or to a local of the right size, and the handles are this test's.
        #[allow(unused_unsafe)]
        let found = unsafe { $call };
        if found != $status {
            let call = stringify!($call);
            return Err(format!("{call}: {found}, not {}: {}", $status, message()).into());
        }
    }};
}

macro_rules! ok {
    ($call:expr) => {
        answers!(SV_OK, $call)
    };
}

/// Fails unless the last message has this text.
macro_rules! says {
    ($text:expr) => {
        if !message().contains($text) {
            return Err(format!("no '{}' in: {}", $text, message()).into());
        }
    };
}

mod custom;
mod fuzz;
mod host;
mod saved;

fn stream(device: i32) -> Result<u64, Box<dyn std::error::Error>> {
    let mut stream = 0;
    ok!(sv_stream_create(device, 0, &mut stream));
    Ok(stream)
}

fn zeros(stream: u64, bytes: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let mut buffer = 0;
    ok!(sv_buffer_zeros(stream, bytes, &mut buffer));
    Ok(buffer)
}

fn bytes_of(stream: u64, buffer: u64) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut size = 0;
    ok!(sv_buffer_size(buffer, &mut size));
    let mut bytes = vec![0xEE; size as usize];
    ok!(sv_buffer_download(stream, buffer, 0, bytes.as_mut_ptr().cast(), bytes.len()));
    Ok(bytes)
}

fn buffers(_: &Fake) -> Outcome {
    let (first, second) = (stream(0)?, stream(0)?);
    let data: Vec<u8> = (0..64).collect();
    let (mut x, mut address, mut device) = (0, 0, -1);
    ok!(sv_buffer_create(first, 64, &mut x));
    ok!(sv_buffer_upload(first, x, 0, data.as_ptr().cast(), 64));
    ok!(sv_buffer_address(x, &mut address));
    ok!(sv_buffer_device(x, &mut device));
    let y = zeros(second, 64)?;
    ok!(sv_buffer_copy(second, x, 8, y, 32, 16));
    let mut wanted = vec![0; 64];
    wanted[32..48].copy_from_slice(&data[8..24]);
    let mut part = [0u8; 4];
    ok!(sv_buffer_download(first, y, 34, part.as_mut_ptr().cast(), 4));
    if address == 0 || device != 0 || bytes_of(second, y)? != wanted || part != wanted[34..38] {
        return Err(format!("{address:#x}, device {device}, {part:?}").into());
    }
    // Values of every size, in order with the copies.
    for size in [1usize, 2, 4, 8, 16] {
        let value = &data[1..1 + size];
        ok!(sv_buffer_fill(first, y, 16, value.as_ptr().cast(), size, 32 / size as u64));
        wanted[16..48].copy_from_slice(&value.repeat(32 / size));
        if bytes_of(second, y)? != wanted {
            return Err(format!("values of {size} bytes").into());
        }
    }
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_buffer_fill(first, y, 0, data.as_ptr().cast(), 3, 1));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_buffer_fill(first, y, 2, data.as_ptr().cast(), 4, 1));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_buffer_copy(first, y, 0, y, 8, 9));
    says!("do not overlap");
    ok!(sv_buffer_copy(first, y, 0, y, 8, 8));
    answers!(SV_ERROR_OUT_OF_RANGE, sv_buffer_copy(first, x, 60, y, 0, 5));
    says!("source: found 5 bytes at offset 60; wanted a range inside of its 64 bytes");
    answers!(SV_ERROR_OUT_OF_RANGE, sv_buffer_upload(first, x, u64::MAX, data.as_ptr().cast(), 1));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_buffer_upload(first, x, 0, null(), 1));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_buffer_create(first, u64::MAX, &mut x));
    answers!(SV_ERROR_INVALID_HANDLE, sv_buffer_address(first, &mut address));
    // Another device: a copy by a stream of either, no fill.
    let third = stream(1)?;
    let z = zeros(third, 64)?;
    ok!(sv_buffer_copy(third, x, 0, z, 0, 64));
    answers!(SV_ERROR_DEVICE_MISMATCH, sv_buffer_fill(first, z, 0, data.as_ptr().cast(), 1, 1));
    if bytes_of(third, z)? != data {
        return Err("a copy between devices".into());
    }
    for handle in [z, y, x, third, second, first] {
        ok!(sv_release(handle));
    }
    answers!(SV_ERROR_INVALID_HANDLE, sv_buffer_address(x, &mut address));
    Ok(())
}

fn pinned(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let (stream, mut memory) = (stream(0)?, 0);
    ok!(sv_pinned_create(0, 32, &mut memory));
    let (mut data, mut bytes, mut done): (*mut c_void, _, _) = (null_mut(), 0, 7);
    ok!(sv_pinned_data(memory, &mut data, &mut bytes));
    // SAFETY: the memory has 32 bytes, and no copy has it.
    let place = unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes) };
    place.copy_from_slice(&[5; 32]);
    let buffer = zeros(stream, 48)?;
    ok!(sv_pinned_upload(stream, memory, buffer, 8));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_pinned_data(memory, &mut data, &mut bytes));
    says!("memory of a copy in progress");
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_pinned_upload(stream, memory, buffer, 0));
    ok!(sv_pinned_is_complete(memory, &mut done));
    ok!(sv_pinned_wait(memory));
    ok!(sv_pinned_wait(memory));
    if done != 0 || bytes_of(stream, buffer)?[7..41] != [&[0][..], &[5; 32], &[0]].concat()[..] {
        return Err(format!("{done}, or other bytes").into());
    }
    answers!(SV_ERROR_OUT_OF_RANGE, sv_pinned_download(stream, buffer, 17, memory));
    ok!(sv_pinned_download(stream, buffer, 0, memory));
    ok!(sv_pinned_wait(memory));
    let mut again = null_mut();
    ok!(sv_pinned_data(memory, &mut again, &mut bytes));
    if again != data || place[..] != [&[0; 8][..], &[5; 24]].concat()[..] {
        return Err(format!("{again:p}, {place:?}").into());
    }
    // Released during a copy: the memory stays until the copy is done.
    ok!(sv_pinned_upload(stream, memory, buffer, 0));
    ok!(sv_release(memory));
    ok!(sv_stream_synchronize(stream));
    ok!(sv_release(buffer));
    ok!(sv_release(stream));
    Ok(())
}

fn value<T>(kind: u32, value: &T) -> sv_argument {
    let pointer = std::ptr::from_ref(value).cast();
    sv_argument { kind, reserved: 0, buffer: 0, offset: 0, value: pointer, bytes: size_of::<T>() }
}

fn memory(kind: u32, buffer: u64, offset: u64) -> sv_argument {
    sv_argument { kind, reserved: 0, buffer, offset, value: null(), bytes: 0 }
}

fn config() -> sv_launch_config {
    sv_launch_config {
        size: size_of::<sv_launch_config>(),
        grid: [1, 0, 0],
        block: [32, 0, 0],
        cluster: [0; 3],
        shared: 0,
        flags: 0,
        priority: 0,
    }
}

fn load(name: &CStr) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let (mut module, mut function) = (0, 0);
    ok!(sv_module_load(0, PTX.as_ptr().cast(), PTX.len(), &mut module));
    ok!(sv_module_function(module, name.as_ptr(), &mut function));
    Ok((module, function))
}

fn launches(fake: &Fake) -> Outcome {
    let (module, function) = load(c"make")?;
    let (first, second) = (stream(0)?, stream(0)?);
    let buffer = zeros(second, 64)?;
    let (bytes, salt) = (48u64, 7u32);
    let arguments = [
        memory(SV_ARGUMENT_WRITE, buffer, 16),
        value(SV_ARGUMENT_INTEGER, &bytes),
        value(SV_ARGUMENT_INTEGER, &salt),
    ];
    let shape = config();
    ok!(sv_launch(function, first, &shape, arguments.as_ptr(), 3));
    let mut wanted = vec![0u8; 64];
    fake.kernel_effect(
        "make",
        &mut [
            Parameter::Write(&mut wanted[16..]),
            Parameter::Scalar(&bytes.to_ne_bytes()),
            Parameter::Scalar(&salt.to_ne_bytes()),
        ],
    );
    if bytes_of(second, buffer)? != wanted {
        return Err("the kernel wrote other bytes".into());
    }
    let launched = fake.launches();
    answers!(SV_ERROR_ARGUMENT_COUNT, sv_launch(function, first, &shape, arguments.as_ptr(), 2));
    let mut changed = arguments;
    changed[2] = value(SV_ARGUMENT_INTEGER, &bytes);
    answers!(SV_ERROR_ARGUMENT_MISMATCH, sv_launch(function, first, &shape, changed.as_ptr(), 3));
    changed[2] = value(SV_ARGUMENT_FLOAT, &1.0f32);
    answers!(SV_ERROR_ARGUMENT_MISMATCH, sv_launch(function, first, &shape, changed.as_ptr(), 3));
    changed[2] = sv_argument { value: null(), ..arguments[2] };
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_launch(function, first, &shape, changed.as_ptr(), 3));
    says!("arguments[2].value: found NULL");
    changed[2] = sv_argument { kind: 99, ..arguments[2] };
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_launch(function, first, &shape, changed.as_ptr(), 3));
    changed[2] = sv_argument { reserved: 1, ..arguments[2] };
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_launch(function, first, &shape, changed.as_ptr(), 3));
    changed = arguments;
    changed[0] = memory(SV_ARGUMENT_WRITE, buffer, 65);
    answers!(SV_ERROR_OUT_OF_RANGE, sv_launch(function, first, &shape, changed.as_ptr(), 3));
    changed[0] = memory(SV_ARGUMENT_READ, first, 0);
    answers!(SV_ERROR_INVALID_HANDLE, sv_launch(function, first, &shape, changed.as_ptr(), 3));
    says!("arguments[0].buffer");
    let large = sv_launch_config { block: [4096, 1, 1], ..shape };
    answers!(SV_ERROR_LAUNCH_LIMIT, sv_launch(function, first, &large, arguments.as_ptr(), 3));
    let flags = sv_launch_config { flags: 8, ..shape };
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_launch(function, first, &flags, arguments.as_ptr(), 3));
    let old = sv_launch_config { size: size_of::<sv_launch_config>() - 8, ..shape };
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_launch(function, first, &old, arguments.as_ptr(), 3));
    says!("config->size");
    // A later version's struct: refused unless what is new is zero.
    #[repr(C)]
    struct Later(sv_launch_config, u64);
    let mut later = Later(sv_launch_config { size: size_of::<Later>(), ..shape }, 1);
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_launch(function, first, &later.0, arguments.as_ptr(), 3));
    if fake.launches() != launched {
        return Err("a refused launch reached the driver".into());
    }
    later.1 = 0;
    let pointer = (&raw const later).cast();
    ok!(sv_launch(function, first, pointer, arguments.as_ptr(), 3));
    let flags = SV_LAUNCH_COOPERATIVE | SV_LAUNCH_PRIORITY;
    let full = sv_launch_config { flags, priority: -1, ..shape };
    ok!(sv_launch(function, first, &full, arguments.as_ptr(), 3));
    attributes(function)?;
    globals(module, first)?;
    // The kernel keeps its module.
    ok!(sv_release(module));
    ok!(sv_launch(function, first, &shape, arguments.as_ptr(), 3));
    for handle in [function, buffer, first, second] {
        ok!(sv_release(handle));
    }
    Ok(())
}

fn attributes(function: u64) -> Outcome {
    let mut found =
        sv_function_attributes { size: size_of::<sv_function_attributes>(), ..Default::default() };
    ok!(sv_function_attributes_get(function, &mut found));
    let (mut kind, mut bytes, mut offset, mut blocks, mut grid, mut block) = (0, 0, 0, 0, 0, 0);
    ok!(sv_function_parameter(function, 2, &mut kind, &mut bytes, &mut offset));
    answers!(
        SV_ERROR_INVALID_ARGUMENT,
        sv_function_parameter(function, 3, &mut kind, &mut bytes, &mut offset)
    );
    ok!(sv_function_occupancy(function, 128, 0, &mut blocks));
    ok!(sv_function_suggested_block_size(function, 0, &mut grid, &mut block));
    let size_stays = found.size == size_of::<sv_function_attributes>();
    if !size_stays || found.parameters != 3 || found.max_threads_per_block == 0 || blocks == 0 || block == 0 {
        return Err("attributes of the kernel".into());
    }
    if (kind, bytes, offset) != (SV_PARAMETER_INTEGER, 4, 16) {
        return Err(format!("parameter 2: {kind}, {bytes} at {offset}").into());
    }
    found.size = 8;
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_function_attributes_get(function, &mut found));
    Ok(())
}

fn globals(module: u64, stream: u64) -> Outcome {
    let (mut address, mut bytes, mut function) = (0, 0, 0);
    ok!(sv_module_global(module, c"state".as_ptr(), &mut address, &mut bytes));
    let (data, mut back) = ([9u8; 64], [0u8; 64]);
    ok!(sv_module_global_write(module, c"state".as_ptr(), stream, data.as_ptr().cast(), 64));
    ok!(sv_module_global_read(module, c"state".as_ptr(), stream, back.as_mut_ptr().cast(), 64));
    if address == 0 || bytes != 64 || back != data {
        return Err(format!("{address:#x}, {bytes}, {back:?}").into());
    }
    let data = back.as_mut_ptr().cast();
    answers!(SV_ERROR_LENGTH_MISMATCH, sv_module_global_read(module, c"state".as_ptr(), stream, data, 63));
    let data = back;
    answers!(SV_ERROR_UNKNOWN_NAME, sv_module_global(module, c"none".as_ptr(), &mut address, &mut bytes));
    answers!(SV_ERROR_UNKNOWN_NAME, sv_module_function(module, c"none".as_ptr(), &mut function));
    answers!(SV_ERROR_NOT_AN_IMAGE, sv_module_load(0, data.as_ptr().cast(), 64, &mut function));
    let (mut names, mut length) = ([0 as c_char; 64], 0);
    ok!(sv_module_function_names(module, names.as_mut_ptr(), 64, &mut length));
    ok!(sv_module_log(module, null_mut(), 0, &mut length));
    // SAFETY: the function wrote a text with its zero byte.
    let names = unsafe { CStr::from_ptr(names.as_ptr()) }.to_str()?;
    if names.lines().collect::<Vec<_>>() != ["mix", "make", "fault_now", "boxes"] || length != 27 {
        return Err(format!("{names}, a log of {length} bytes").into());
    }
    Ok(())
}

fn graphs(fake: &Fake) -> Outcome {
    let (first, second) = (stream(0)?, stream(0)?);
    let (x, y) = (zeros(first, 64)?, zeros(first, 64)?);
    let (mut graph, mut executable, mut memory, mut nodes) = (0, 0, 0, 0);
    ok!(sv_pinned_create(0, 64, &mut memory));
    let (mut data, mut bytes): (*mut c_void, _) = (null_mut(), 0);
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_stream_end_capture(first, &mut graph));
    ok!(sv_stream_begin_capture(first));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_stream_begin_capture(second));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_stream_end_capture(second, &mut graph));
    ok!(sv_buffer_fill(first, x, 0, [3u8].as_ptr().cast(), 1, 64));
    ok!(sv_buffer_copy(first, x, 0, y, 32, 32));
    ok!(sv_pinned_download(first, y, 0, memory));
    answers!(SV_ERROR_NOT_CAPTURABLE, sv_stream_synchronize(first));
    ok!(sv_stream_end_capture(first, &mut graph));
    ok!(sv_graph_node_count(graph, &mut nodes));
    ok!(sv_graph_dot(graph, null_mut(), 0, &mut bytes));
    if nodes != 3 || bytes < 20 || bytes_of(second, x)? != [0; 64] {
        return Err(format!("{nodes} nodes, {bytes} bytes, or the capture ran").into());
    }
    ok!(sv_graph_instantiate(graph, &mut executable));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_graph_instantiate(graph, &mut executable));
    says!("has taken");
    ok!(sv_executable_graph_upload(executable, first));
    ok!(sv_executable_graph_launch(executable, second));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_pinned_wait(memory));
    ok!(sv_executable_graph_host(executable, memory, &mut data, &mut bytes));
    // SAFETY: the graph has 64 bytes there, and no launch runs.
    let host = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
    let wanted = [[0; 32], [3; 32]].concat();
    if bytes_of(first, y)? != wanted || host != wanted {
        return Err("a launch brought other bytes".into());
    }
    // Another value of the same operations; then other operations.
    let other = |value: u8, copies: bool| -> Result<u64, Box<dyn std::error::Error>> {
        let mut graph = 0;
        ok!(sv_stream_begin_capture(first));
        ok!(sv_buffer_fill(first, x, 0, [value].as_ptr().cast(), 1, 64));
        if copies {
            let mut memory = 0;
            ok!(sv_pinned_create(0, 64, &mut memory));
            ok!(sv_buffer_copy(first, x, 0, y, 32, 32));
            ok!(sv_pinned_download(first, y, 0, memory));
            ok!(sv_release(memory));
        }
        ok!(sv_stream_end_capture(first, &mut graph));
        Ok(graph)
    };
    let (same, less) = (other(4, true)?, other(5, false)?);
    ok!(sv_executable_graph_update(executable, same));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_executable_graph_update(executable, same));
    answers!(SV_ERROR_GRAPH_NOT_UPDATABLE, sv_executable_graph_update(executable, less));
    ok!(sv_graph_node_count(less, &mut nodes));
    ok!(sv_executable_graph_launch(executable, first));
    if nodes != 1 || bytes_of(second, y)? != [[0; 32], [4; 32]].concat() {
        return Err("an updated graph brought other bytes".into());
    }
    // A capture that its thread leaves open ends with the thread.
    let left = std::thread::spawn(move || sv_stream_begin_capture(second)).join();
    if left.ok() != Some(SV_OK) || fake.live().captures != 0 {
        return Err("a capture outlived its thread".into());
    }
    for handle in [same, less, graph, executable, memory, x, y, first, second] {
        ok!(sv_release(handle));
    }
    Ok(())
}

fn pools(fake: &Fake) -> Outcome {
    fake.set_peer_access(true);
    let stream = stream(0)?;
    let mut found = sv_pool_statistics { size: size_of::<sv_pool_statistics>(), ..Default::default() };
    let (buffer, mut other) = (zeros(stream, 1 << 20)?, 0);
    ok!(sv_device_pool_statistics(0, &mut found));
    if found.live_bytes < 1 << 20 || found.requested_bytes != 1 << 20 || found.requests != 1 {
        return Err("statistics of one buffer".into());
    }
    ok!(sv_device_set_memory_limit(0, found.reserved_bytes));
    answers!(SV_ERROR_OUT_OF_MEMORY, sv_buffer_create(stream, 1 << 30, &mut other));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_device_set_memory_limit(0, 0));
    ok!(sv_device_set_memory_limit(0, SV_NO_LIMIT));
    let mut length = 0;
    ok!(sv_device_memory_snapshot(0, null_mut(), 0, &mut length));
    ok!(sv_release(buffer));
    ok!(sv_device_trim(0));
    ok!(sv_device_pool_statistics(0, &mut found));
    if length < 50 || found.live_bytes != 0 || found.reserved_bytes != 0 {
        return Err(format!("{} bytes after a trim", found.reserved_bytes).into());
    }
    let mut can = 0;
    ok!(sv_device_can_access_peer(0, 1, &mut can));
    ok!(sv_device_enable_peer_access(0, 1));
    let peers = fake.live().peers;
    ok!(sv_device_disable_peer_access(0, 1));
    answers!(SV_ERROR_NO_DEVICE, sv_device_enable_peer_access(0, 9));
    ok!(sv_release(stream));
    if (can, peers, fake.live().peers) != (1, 1, 0) { Err("peer access".into()) } else { Ok(()) }
}

/// Child: one program.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    fake.set_devices(2);
    let wanted = arguments.first().map(String::as_str);
    let program = PROGRAMS.iter().find(|(name, _)| Some(*name) == wanted);
    let (_, program) = program.ok_or("no such program")?;
    program(fake)?;
    let violations = fake.violations();
    if violations.is_empty() { Ok(()) } else { Err(violations.join("\n").into()) }
}

pub fn tests() -> Vec<Test> {
    let test = |&(name, _): &Program| {
        Test::new(format!("capi::{name}"), move || {
            // Nothing that the library does is written anywhere.
            let ended = children::spawn(&Variant::new(12040), "capi", &[name.to_owned()], &[])?;
            if !ended.success {
                return Err(format!("{}{}", ended.text, fuzz::last_case(name)).into());
            }
            let text = ended.text;
            if text.is_empty() { Ok(()) } else { Err(text.into()) }
        })
    };
    PROGRAMS.iter().map(test).collect()
}
