//! Bytes that nobody vouches for: valid files, images and structs with a few changes, for a fixed time. A call may refuse them
//! or not; it never panics, and a process that crashes fails the test.
//!
//! No case may allocate more than a few megabytes, whatever lengths its bytes claim.
//!
//! A case depends on its number alone. A failure names the case, and `SELVEDGE_FUZZ_CASE=<number>` runs that one.

use std::ffi::{CStr, CString, c_char, c_void};
use std::fs;
use std::path::PathBuf;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use selvedge::capi::burst::network::*;
use selvedge::capi::burst::simulation::*;
use selvedge::capi::burst::sv_simulation_options;
use selvedge::capi::dlpack::*;
use selvedge::capi::library::*;
use selvedge::capi::module::*;
use selvedge::capi::status::*;
use selvedge::capi::tensor::copies::*;
use selvedge::capi::tensor::creation::*;
use selvedge::capi::tensor::io::*;
use selvedge::capi::tensor::properties::*;
use selvedge::capi::tensor::{SV_DTYPE_C64, SV_DTYPE_F32, SV_DTYPE_I64, SV_DTYPE_U8};
use selvedge::tensor::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
use sha2::{Digest, Sha256};

use super::{Outcome, message};
use crate::allocations;
use crate::common::sampling;
use crate::foreign;
use crate::kernels::PTX;
use crate::random::Random;
use crate::support::Fake;
use crate::variant;

/// The time of each test, and of the whole set.
const TIME: Duration = Duration::from_millis(1000);
const WHOLE_TIME: Duration = Duration::from_secs(5);
/// The cases that run even on a slow machine.
const MIN_CASES: u64 = 100;
/// The bytes of the largest allocation of a case. The valid files have some kilobytes.
const MAX_ALLOCATED: usize = 8 << 20;
const SEED: u64 = 0x5E1_7ED6E;
/// The bytes of the largest tensor that is read back.
const MAX_BYTES: u64 = 1 << 20;

/// A simulation on the CPU.
const OPTIONS: sv_simulation_options = sv_simulation_options {
    size: size_of::<sv_simulation_options>(),
    device: -1,
    threads: 1,
    seed: 0,
    shards: 0,
};

/// Returns the folder of a test's files.
pub fn folder(name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let folder = variant::scratch("fuzz")?.join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Runs a case, which must allocate little.
pub fn bounded<T>(
    case: impl FnOnce() -> Result<T, Box<dyn std::error::Error>>,
) -> Result<T, Box<dyn std::error::Error>> {
    allocations::forget();
    let result = case()?;
    match allocations::largest() {
        bytes if bytes > MAX_ALLOCATED => {
            Err(format!("{bytes} bytes were allocated, more than {MAX_ALLOCATED}").into())
        }
        _ => Ok(result),
    }
}

/// Returns the number of the only case that is asked for.
pub fn chosen_case() -> Option<u64> {
    std::env::var("SELVEDGE_FUZZ_CASE").ok().and_then(|number| number.parse().ok())
}

/// Runs cases for the fixed time. A case returns whether the bytes were accepted; some are, and others are not.
pub fn run(
    name: &str,
    mut case: impl FnMut(&mut Random) -> Result<bool, Box<dyn std::error::Error>>,
) -> Outcome {
    // A crash leaves the number of its case there.
    let last = folder(name)?.join("case");
    let chosen = chosen_case();
    let time = if sampling::is_whole("damaged") { WHOLE_TIME } else { TIME };
    let (end, mut number, mut accepted) = (Instant::now() + time, chosen.unwrap_or(0), 0);
    loop {
        fs::write(&last, number.to_string())?;
        let mut random = Random::new(SEED ^ number);
        let ended = bounded(|| case(&mut random));
        accepted += u64::from(ended.map_err(|error| format!("case {number}: {error}"))?);
        number += 1;
        if chosen.is_some() {
            return Ok(());
        }
        if number >= MIN_CASES && Instant::now() >= end {
            break;
        }
    }
    match accepted == 0 || accepted == number {
        true => Err(format!("{accepted} of {number} cases were accepted").into()),
        false => Ok(()),
    }
}

/// Names the last case of a test, for one that ended by a crash; nothing for tests without cases.
pub fn last_case(test: &str) -> String {
    let Some(name) = test.strip_prefix("damaged_").and_then(|rest| rest.split('_').next()) else {
        return String::new();
    };
    let number = folder(name).and_then(|folder| Ok(fs::read_to_string(folder.join("case"))?));
    number.map_or_else(|_| String::new(), |number| format!("\nthe last case was {number}"))
}

/// Returns whether a call succeeded. A failure has a message, and is no panic.
pub fn accepts(status: i32) -> Result<bool, Box<dyn std::error::Error>> {
    match status {
        SV_OK => Ok(true),
        SV_ERROR_PANIC => Err(message().into()),
        _ if message().is_empty() => Err(format!("status {status} without a message").into()),
        _ => Ok(false),
    }
}

/// Numbers that find wrong limits.
const EXTREMES: [i64; 14] = [
    0,
    1,
    -1,
    2,
    7,
    255,
    65536,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    1 << 32,
    i64::MAX,
    i64::MIN,
    i64::MAX / 4,
];

fn extreme(random: &mut Random) -> i64 {
    match random.below(4) {
        0 => random.next() as i64,
        1 => random.below(64) as i64,
        _ => EXTREMES[random.below(EXTREMES.len())],
    }
}

/// Changes a few places of a valid input. One in eight inputs stays valid.
pub fn mutate(random: &mut Random, valid: &[u8]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    if random.below(8) == 0 {
        return bytes;
    }
    for _ in 0..=random.below(4) {
        // Most formats have their lengths in front.
        let limit = if random.below(2) == 0 { bytes.len().min(128) } else { bytes.len() };
        let at = random.below(limit);
        match random.below(10) {
            _ if bytes.is_empty() => bytes = random.bytes(16),
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at),
            3 => {
                let part = bytes[at..(at + 1 + random.below(32)).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            4 => {
                let length = random.below(16);
                bytes.splice(at..at, random.bytes(length));
            }
            5 => {
                let end = (at + 1 + random.below(32)).min(bytes.len());
                bytes.drain(at..end);
            }
            8 => {
                // A section twice.
                let part = bytes[at..at + random.below(bytes.len() - at + 1)].to_vec();
                bytes.splice(at..at, part);
            }
            6 | 7 => {
                let number = extreme(random).to_le_bytes();
                let end = (at + [2, 4, 8][random.below(3)]).min(bytes.len());
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
            _ => {
                // A number in a text becomes another one.
                let digit = |byte: &u8| byte.is_ascii_digit();
                let Some(start) = bytes[at..].iter().position(digit).map(|found| found + at) else {
                    continue;
                };
                let length = bytes[start..].iter().take_while(|byte| digit(byte)).count();
                let text = extreme(random).to_string().into_bytes();
                bytes.splice(start..start + length, text);
            }
        }
    }
    bytes
}

/// Ends bytes with the hash that files of saved state have, so that not every change is refused for its hash alone.
pub fn seal(random: &mut Random, bytes: &mut [u8]) {
    if let Some((content, hash)) = bytes.split_last_chunk_mut::<32>().filter(|_| random.below(4) != 0) {
        hash.copy_from_slice(&Sha256::digest(content));
    }
}

pub fn text(path: &std::path::Path) -> Result<CString, Box<dyn std::error::Error>> {
    Ok(CString::new(path.to_str().ok_or("a path that is no UTF-8")?)?)
}

/// Arrays of several dtypes and ranks.
pub fn arrays() -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let data = [0u8; 192];
    let cases: [(i32, usize, &[i64]); 5] = [
        (SV_DTYPE_F32, 4, &[2, 3]),
        (SV_DTYPE_I64, 8, &[]),
        (SV_DTYPE_U8, 1, &[5, 0, 2]),
        (SV_DTYPE_C64, 8, &[3, 2, 4]),
        (SV_DTYPE_F32, 4, &[40]),
    ];
    let mut tensors = Vec::new();
    for (dtype, size, shape) in cases {
        let bytes = size * shape.iter().product::<i64>() as usize;
        let mut tensor = 0;
        let pointer = data.as_ptr().cast();
        ok!(sv_tensor_from_host(pointer, bytes, dtype, shape.as_ptr(), shape.len(), -1, &mut tensor));
        tensors.push(tensor);
    }
    Ok(tensors)
}

/// Describes an accepted tensor, reads it unless it is large, and releases it.
pub fn read_back(tensor: u64) -> Outcome {
    let (mut count, mut rank, mut bytes) = (0, 0, Vec::new());
    ok!(sv_tensor_count(tensor, &mut count));
    ok!(sv_tensor_rank(tensor, &mut rank));
    let mut shape = vec![0; rank];
    ok!(sv_tensor_shape(tensor, shape.as_mut_ptr(), rank));
    if shape.iter().any(|size| *size < 0) {
        return Err(format!("shape {shape:?}").into());
    }
    if count <= MAX_BYTES / 16 {
        // The size that is wanted is that of the dtype, one of these.
        let mut read = false;
        for size in [1, 2, 4, 8, 16] {
            bytes.resize((count * size) as usize, 0u8);
            // SAFETY: the vector has so many bytes.
            read |= accepts(unsafe { sv_tensor_to_host(tensor, bytes.as_mut_ptr().cast(), bytes.len()) })?;
        }
        if !read {
            return Err(format!("an accepted tensor of shape {shape:?} was not read: {}", message()).into());
        }
    }
    ok!(sv_release(tensor));
    Ok(())
}

/// Reads the tensor of a file that was accepted, and returns whether it was.
pub fn tensor_of(accepted: bool, tensor: u64) -> Result<bool, Box<dyn std::error::Error>> {
    match (accepted, tensor) {
        (true, tensor) => read_back(tensor).map(|()| true),
        (false, 0) => Ok(false),
        (false, _) => Err("a refused file left a handle".into()),
    }
}

pub fn npy(_: &Fake) -> Outcome {
    let path = folder("npy")?.join("array.npy");
    let name = text(&path)?;
    let mut files = Vec::new();
    for tensor in arrays()? {
        ok!(sv_tensor_write_npy(tensor, name.as_ptr()));
        ok!(sv_release(tensor));
        files.push(fs::read(&path)?);
    }
    run("npy", |random| {
        let file = random.below(files.len());
        fs::write(&path, mutate(random, &files[file]))?;
        let mut tensor = 0;
        // SAFETY: the pointers are to a text and a local.
        let read = accepts(unsafe { sv_tensor_read_npy(name.as_ptr(), -1, &mut tensor) })?;
        tensor_of(read, tensor)
    })
}

pub fn npz(_: &Fake) -> Outcome {
    let path = folder("npz")?.join("arrays.npz");
    let name = text(&path)?;
    let names = [c"a", c"b", c"c", c"d", c"e"].map(CStr::as_ptr);
    let (tensors, mut files) = (arrays()?, Vec::new());
    for compress in [0, 1] {
        ok!(sv_tensor_write_npz(name.as_ptr(), names.as_ptr(), tensors.as_ptr(), 5, compress));
        files.push(fs::read(&path)?);
    }
    for tensor in tensors {
        ok!(sv_release(tensor));
    }
    run("npz", |random| {
        let file = random.below(files.len());
        fs::write(&path, mutate(random, &files[file]))?;
        let mut tensor = 0;
        let wanted = names[random.below(names.len())];
        // SAFETY: the pointers are to texts and a local.
        let read = accepts(unsafe { sv_tensor_read_npz(name.as_ptr(), wanted, -1, &mut tensor) })?;
        tensor_of(read, tensor)
    })
}

pub fn burst(_: &Fake) -> Outcome {
    let path = folder("burst")?.join("network.burst");
    let name = text(&path)?;
    let (mut network, mut simulation, mut files) = (0, 0, Vec::new());
    ok!(sv_network_g(64, 4, &mut network));
    ok!(sv_network_write(network, name.as_ptr()));
    files.push(fs::read(&path)?);
    ok!(sv_simulation_create(network, &OPTIONS, &mut simulation));
    ok!(sv_simulation_run(simulation, 3));
    ok!(sv_simulation_save(simulation, name.as_ptr()));
    files.push(fs::read(&path)?);
    ok!(sv_release(simulation));
    ok!(sv_release(network));
    run("burst", |random| {
        let file = random.below(files.len());
        let mut bytes = mutate(random, &files[file]);
        seal(random, &mut bytes);
        fs::write(&path, bytes)?;
        let (mut network, mut simulation) = (0, 0);
        // SAFETY: the pointers are to a text, a struct and locals.
        let (read, restored) = unsafe {
            let read = accepts(sv_network_read(name.as_ptr(), &mut network))?;
            (read, accepts(sv_simulation_restore(name.as_ptr(), &OPTIONS, &mut simulation))?)
        };
        if read {
            let (mut neurons, mut synapses) = (0, 0);
            ok!(sv_network_size(network, &mut neurons, &mut synapses));
            ok!(sv_release(network));
        }
        if restored {
            ok!(sv_simulation_run(simulation, 1));
            ok!(sv_release(simulation));
        }
        match (read, network != 0, restored, simulation != 0) {
            (_, true, _, _) if !read => Err("a refused file left a network".into()),
            (_, _, _, true) if !restored => Err("a refused file left a simulation".into()),
            _ => Ok(read),
        }
    })
}

pub fn images(fake: &Fake) -> Outcome {
    let images = [PTX.as_bytes().to_vec(), fake.make_cubin(PTX), fake.make_fatbin(PTX)];
    run("images", |random| {
        let kind = random.below(images.len());
        let image = mutate(random, &images[kind]);
        let mut module = 0;
        // SAFETY: the pointers are to a slice of that length and a local.
        if !accepts(unsafe { sv_module_load(0, image.as_ptr().cast(), image.len(), &mut module) })? {
            return Ok(false);
        }
        let (mut names, mut length, mut function) = (vec![0 as c_char; 4096], 0, 0);
        // SAFETY: the pointers are to a buffer of that size and locals.
        unsafe {
            if accepts(sv_module_function_names(module, names.as_mut_ptr(), names.len(), &mut length))? {
                let lines = CStr::from_ptr(names.as_ptr()).to_string_lossy().into_owned();
                for line in lines.lines() {
                    let Ok(name) = CString::new(line) else { continue };
                    if accepts(sv_module_function(module, name.as_ptr(), &mut function))? {
                        let (mut kind, mut bytes, mut offset) = (0, 0, 0);
                        for index in 0..4 {
                            accepts(sv_function_parameter(
                                function,
                                index,
                                &mut kind,
                                &mut bytes,
                                &mut offset,
                            ))?;
                        }
                        ok!(sv_release(function));
                    }
                }
            }
        }
        ok!(sv_release(module));
        Ok(true)
    })
}

static DELETED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn delete_versioned(_: *mut DLManagedTensorVersioned) {
    DELETED.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn delete_legacy(_: *mut DLManagedTensor) {
    DELETED.fetch_add(1, Ordering::Relaxed);
}

/// Returns whether the elements of a descriptor are inside of the memory, without any overflow.
fn is_inside(tensor: &DLTensor, shape: &[i64], strides: &[i64], start: usize, bytes: usize) -> bool {
    let rank = tensor.ndim as usize;
    let size = i128::from(tensor.dtype.bits / 8);
    let (mut first, mut last) = (0i128, 0i128);
    let mut dense = 1i128;
    for axis in (0..rank).rev() {
        let stride = if tensor.strides.is_null() { dense } else { i128::from(strides[axis]) };
        let span = (i128::from(shape[axis]) - 1) * stride;
        if span < 0 {
            first += span
        } else {
            last += span
        }
        dense *= i128::from(shape[axis]);
    }
    let begin = tensor.data.addr() as i128 + i128::from(tensor.byte_offset);
    begin + first * size >= start as i128 && begin + (last + 1) * size <= (start + bytes) as i128
}

pub fn dlpack(fake: &Fake) -> Outcome {
    const BYTES: usize = 4096;
    let mut module = 0;
    // The device is opened, so that its context exists.
    ok!(sv_module_load(0, PTX.as_ptr().cast(), PTX.len(), &mut module));
    ok!(sv_release(module));
    let mut memory = vec![1u64; BYTES / 8];
    let (host, device) = (memory.as_mut_ptr().expose_provenance(), foreign::allocate(fake, BYTES)? as usize);
    run("dlpack", |random| {
        let (mut shape, mut strides) =
            ([2, 3, 4, 1, 1, 1, 1, 1].repeat(4), [12, 4, 1, 1, 1, 1, 1, 1].repeat(4));
        let on_device = random.below(4) == 0;
        let start = if on_device { device } else { host };
        let mut tensor = DLTensor {
            data: with_exposed_provenance_mut::<c_void>(start),
            device: DLDevice { device_type: if on_device { 2 } else { 1 }, device_id: 0 },
            ndim: 3,
            dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            byte_offset: 0,
        };
        let mut version = DLPackVersion { major: 1, minor: 0 };
        let (mut flags, changes) = (0, random.below(4));
        for _ in 0..changes {
            let axis = random.below(5);
            match random.below(12) {
                0 => shape[axis] = extreme(random),
                1 => strides[axis] = extreme(random),
                2 => tensor.strides = null_mut(),
                3 => tensor.shape = null_mut(),
                4 => tensor.ndim = extreme(random) as i32,
                5 => tensor.byte_offset = extreme(random) as u64,
                6 => tensor.data = with_exposed_provenance_mut(start.wrapping_add(random.below(16))),
                7 => tensor.data = with_exposed_provenance_mut(extreme(random) as usize),
                8 => tensor.dtype = DLDataType { code: random.below(16) as u8, ..tensor.dtype },
                9 => tensor.dtype.bits = [0, 1, 4, 8, 16, 32, 64, 128, 255][random.below(9)],
                10 => tensor.dtype.lanes = random.below(3) as u16,
                _ => match random.below(4) {
                    0 => version.major = extreme(random) as u32,
                    1 => flags = random.next(),
                    2 => tensor.device.device_type = extreme(random) as i32,
                    _ => tensor.device.device_id = extreme(random) as i32,
                },
            }
        }
        let (mut result, before) = (0, DELETED.load(Ordering::Relaxed));
        let manager_ctx = null_mut();
        let deleter: unsafe extern "C" fn(*mut DLManagedTensorVersioned) = delete_versioned;
        let mut versioned = DLManagedTensorVersioned {
            version,
            manager_ctx,
            deleter: Some(deleter),
            flags,
            dl_tensor: tensor,
        };
        let deleter: unsafe extern "C" fn(*mut DLManagedTensor) = delete_legacy;
        let mut legacy = DLManagedTensor { dl_tensor: tensor, manager_ctx, deleter: Some(deleter) };
        // SAFETY: the structs are live, and their arrays have as many numbers as the largest rank; elements outside of the
        // memory are not read below.
        let status = unsafe {
            match random.below(2) {
                0 => sv_tensor_from_dlpack((&raw mut versioned).cast(), &mut result),
                _ => sv_tensor_from_dlpack_legacy((&raw mut legacy).cast(), &mut result),
            }
        };
        let deleted = || DELETED.load(Ordering::Relaxed) - before;
        if !accepts(status)? {
            return match (result, deleted()) {
                (0, 0) => Ok(false),
                other => Err(format!("a refused struct: handle and deleted are {other:?}").into()),
            };
        }
        if !on_device && is_inside(&tensor, &shape, &strides, host, BYTES) {
            read_back(result)?;
        } else {
            let mut rank = 0;
            ok!(sv_tensor_rank(result, &mut rank));
            ok!(sv_release(result));
        }
        match deleted() {
            1 => Ok(true),
            other => Err(format!("{other} calls of the deleter").into()),
        }
    })
}
