//! Streams, contexts and memory of other code: borrowed in order, and never destroyed by this library.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge::driver::{Device, DeviceBuffer, Stream};

use super::children;
use super::support::Fake;
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Program = (&'static str, fn(&Fake) -> Outcome);

const PROGRAMS: &[Program] = &[
    ("a_borrowed_stream_is_ordered_and_outlived", borrowed),
    ("default_streams_of_other_code_are_ordered", defaults),
    ("streams_that_cannot_be_borrowed_are_refused", refused),
    ("a_context_gives_its_device", contexts),
    ("a_deleter_is_called_once_after_every_use", deleters),
    ("memory_that_the_driver_does_not_know_is_refused", unknown_memory),
];

/// A stream as other code creates it.
pub fn create_stream(fake: &Fake, context: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let current = fake.current_context();
    fake.foreign_set(context);
    let mut raw = 0u64;
    // SAFETY: the types are the driver's, and the pointer is to a local.
    let code = unsafe {
        let create =
            fake.driver::<unsafe extern "C" fn(*mut u64, u32, i32) -> i32>("cuStreamCreateWithPriority")?;
        create(&mut raw, 1, 0)
    };
    fake.foreign_set(current);
    if code == 0 { Ok(raw) } else { Err(format!("cuStreamCreateWithPriority: {code}").into()) }
}

/// Calls a function of the driver that takes one handle, with the primary context of device 0 current.
pub fn call(fake: &Fake, name: &str, handle: u64) -> Outcome {
    let current = fake.current_context();
    fake.foreign_set(fake.primary_context(0));
    // SAFETY: the function takes one handle.
    let code = unsafe { fake.driver::<unsafe extern "C" fn(u64) -> i32>(name)?(handle) };
    fake.foreign_set(current);
    if code == 0 { Ok(()) } else { Err(format!("{name}: {code}").into()) }
}

pub fn allocate(fake: &Fake, bytes: usize) -> Result<u64, Box<dyn std::error::Error>> {
    let current = fake.current_context();
    fake.foreign_set(fake.primary_context(0));
    let mut address = 0u64;
    // SAFETY: the types are the driver's, and the pointer is to a local.
    let code = unsafe {
        fake.driver::<unsafe extern "C" fn(*mut u64, usize) -> i32>("cuMemAlloc_v2")?(&mut address, bytes)
    };
    fake.foreign_set(current);
    if code == 0 { Ok(address) } else { Err(format!("cuMemAlloc: {code}").into()) }
}

pub fn pointer(raw: u64) -> *mut c_void {
    raw as *mut c_void
}

fn borrowed(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let other = device.stream()?;
    let raw = create_stream(fake, fake.primary_context(0))?;
    fake.set_strict(true);
    // SAFETY: the stream lives until the handle is dropped.
    let stream = unsafe { Stream::from_raw(&device, pointer(raw))? };
    if stream.as_raw() != pointer(raw) {
        return Err("another stream".into());
    }
    let mut x = stream.uninitialized::<u32>(100)?;
    stream.fill(&mut x, 5)?;
    let (mut y, mut late) = (other.zeros::<u32>(100)?, stream.zeros::<u32>(100)?);
    other.copy(&x, &mut y)?;
    // Work that this library does not see: the next wait for the stream still covers it.
    // SAFETY: the types are the driver's; the range is inside of `late`.
    let code = unsafe {
        fake.foreign_set(fake.primary_context(0));
        let fill = fake.driver::<unsafe extern "C" fn(u64, u32, usize, u64) -> i32>("cuMemsetD32Async")?;
        fill(late.address(), 9, 100, raw)
    };
    fake.foreign_set(0);
    drop(stream);
    call(fake, "cuStreamDestroy_v2", raw)?;
    let found = (code, other.download(&x)?, other.download(&y)?, other.download(&late)?);
    if found != (0, vec![5; 100], vec![5; 100], vec![9; 100]) {
        return Err(format!("{found:?}").into());
    }
    other.fill(&mut late, 1)?;
    drop((x, y, late));
    device.trim()?;
    drop(other.zeros::<u32>(100)?);
    other.synchronize()?;
    Ok(())
}

/// Work of the default stream of one thread, seen from streams of this library on another.
fn defaults(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    fake.set_default_streams(true);
    let device = Device::new(0)?;
    let other = device.stream()?;
    for raw in [0u64, 1, 2] {
        // SAFETY: default streams live as long as the context.
        let stream = unsafe { Stream::from_raw(&device, pointer(raw))? };
        let mut x = stream.uninitialized::<u32>(100)?;
        stream.fill(&mut x, 5)?;
        let late = stream.zeros::<u32>(100)?;
        // SAFETY: the types are the driver's; the range is inside of `late`.
        let code = unsafe {
            fake.foreign_set(fake.primary_context(0));
            let fill =
                fake.driver::<unsafe extern "C" fn(u64, u32, usize, u64) -> i32>("cuMemsetD32Async")?;
            fill(late.address(), 9, 100, raw)
        };
        fake.foreign_set(0);
        // The last handle goes on another thread, whose own default stream has no work.
        std::thread::scope(|scope| scope.spawn(move || drop(stream)).join()).map_err(|_| "a panic")?;
        let found = (code, other.download(&x)?, other.download(&late)?);
        if found != (0, vec![5; 100], vec![9; 100]) {
            return Err(format!("stream {raw}: {found:?}").into());
        }
    }
    Ok(())
}

fn refused(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let foreign = create_stream(fake, fake.primary_context(1))?;
    let own = create_stream(fake, fake.primary_context(0))?;
    // SAFETY: both streams are live.
    unsafe {
        match Stream::from_raw(&device, pointer(foreign)) {
            Err(error) if error.to_string().contains("primary context") => {}
            other => return Err(format!("{foreign:#x}: {other:?}").into()),
        }
        fake.foreign_set(fake.primary_context(0));
        let begin = fake.driver::<unsafe extern "C" fn(u64, i32) -> i32>("cuStreamBeginCapture_v2")?;
        let end = fake.driver::<unsafe extern "C" fn(u64, *mut u64) -> i32>("cuStreamEndCapture")?;
        let mut graph = 0;
        let began = begin(own, 2);
        let found = Stream::from_raw(&device, pointer(own));
        let ended = end(own, &mut graph);
        if (began, ended) != (0, 0) || !matches!(found, Err(selvedge::Error::NotCapturable { .. })) {
            return Err(format!("{began} {ended} {found:?}").into());
        }
        call(fake, "cuGraphDestroy", graph)?;
    }
    fake.foreign_set(fake.primary_context(1));
    // SAFETY: the stream is live.
    let code = unsafe { fake.driver::<unsafe extern "C" fn(u64) -> i32>("cuStreamDestroy_v2")?(foreign) };
    fake.foreign_set(0);
    if code != 0 {
        return Err(format!("cuStreamDestroy: {code}").into());
    }
    call(fake, "cuStreamDestroy_v2", own)
}

fn contexts(fake: &Fake) -> Outcome {
    let device = Device::new(1)?;
    let foreign = fake.foreign_context(1);
    fake.foreign_set(foreign);
    // SAFETY: the contexts are live.
    let (found, other, null) = unsafe {
        (
            Device::from_context(device.as_raw_context())?,
            Device::from_context(pointer(foreign)),
            Device::from_context(std::ptr::null_mut()),
        )
    };
    if found != device || fake.current_context() != foreign || null.is_ok() {
        return Err(format!("{found:?}, {:#x}, {null:?}", fake.current_context()).into());
    }
    fake.foreign_set(0);
    match other {
        Err(error) if error.to_string().contains("primary context") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn deleters(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    fake.set_strict(true);
    let calls = Arc::new(AtomicUsize::new(0));
    let address = allocate(fake, 4096)?;
    let take = |bytes: usize| {
        let calls = calls.clone();
        // SAFETY: the memory lives until the end of this function.
        unsafe {
            DeviceBuffer::<u8>::from_raw(&stream, address, bytes, move || {
                calls.fetch_add(1, Ordering::Relaxed);
            })
        }
    };
    let called = || calls.load(Ordering::Relaxed);
    // Unused memory, and no memory at all.
    drop(take(4096)?);
    drop(take(0)?);
    stream.synchronize()?;
    if called() != 2 {
        return Err(format!("{} calls for unused memory", called()).into());
    }
    // Memory that another stream still uses.
    let mut x = take(4096)?;
    stream.fill(&mut x, 3)?;
    let mut copy = other.zeros::<u8>(4096)?;
    other.copy(&x, &mut copy)?;
    drop(x);
    if called() != 2 {
        return Err("the deleter was called before the last use".into());
    }
    other.synchronize()?;
    device.synchronize()?;
    if called() != 3 || other.download(&copy)? != [3; 4096] {
        return Err(format!("{} calls after the last use", called()).into());
    }
    // A deleter that waits, frees and panics.
    let handle = fake.path().to_owned();
    // SAFETY: the deleter frees the memory, once.
    let x = unsafe {
        DeviceBuffer::<u32>::from_raw(&stream, address, 1024, move || {
            let outcome = Fake::open(&handle).and_then(|fake| call(&fake, "cuMemFree_v2", address));
            device.synchronize().unwrap();
            panic!("on purpose, after {outcome:?}");
        })?
    };
    std::panic::set_hook(Box::new(|_| {}));
    drop(x);
    device.trim()?;
    let _ = std::panic::take_hook();
    if fake.device_read(address, 1).is_some() {
        return Err("the memory was not freed".into());
    }
    // A context that is lost, and one that was reset.
    let address = allocate(fake, 64)?;
    let after_loss = |device: Device| -> Result<_, Box<dyn std::error::Error>> {
        let calls = calls.clone();
        // SAFETY: the memory goes with the context.
        Ok(unsafe {
            DeviceBuffer::<u8>::from_raw(&device.stream()?, address, 64, move || {
                calls.fetch_add(1, Ordering::Relaxed);
            })?
        })
    };
    let x = after_loss(device)?;
    drop((stream, other, copy));
    // SAFETY: nothing of the device is in use.
    unsafe { device.reset()? };
    drop(x);
    if called() != 4 { Err("the deleter was not called after a reset".into()) } else { Ok(()) }
}

fn unknown_memory(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let (stream, away) = (device.stream()?, Device::new(1)?.stream()?);
    let address = allocate(fake, 4096)?;
    let own = away.zeros::<u8>(64)?;
    let cases = [
        (0, 4, "address 0x0"),
        (address + 2, 4, "aligned to 4"),
        (address, 1 << 61, "address space"),
        (address, 4096, "does not know"),
        (0x10, 4, "does not know"),
        (own.address(), 16, "memory of device 1"),
    ];
    for (address, length, wanted) in cases {
        // SAFETY: refused before any use.
        let found =
            unsafe { DeviceBuffer::<u32>::from_raw(&stream, address, length, || std::process::abort()) };
        match found {
            Err(error) if error.to_string().contains(wanted) => {}
            other => return Err(format!("{address:#x}, {length}: {other:?}").into()),
        }
    }
    call(fake, "cuMemFree_v2", address)
}

/// Child: one program.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    fake.set_devices(2);
    let wanted = arguments.first().map(String::as_str);
    let program = PROGRAMS.iter().find(|(name, _)| Some(*name) == wanted);
    let (_, program) = program.ok_or("no such program")?;
    // Opened first, so that the contexts exist.
    Device::new(0)?;
    Device::new(1)?;
    fake.foreign_set(0);
    program(fake)?;
    let violations = fake.violations();
    if violations.is_empty() { Ok(()) } else { Err(violations.join("\n").into()) }
}

pub fn tests() -> Vec<Test> {
    let test = |&(name, _): &Program| {
        Test::new(format!("foreign::{name}"), move || {
            children::must_succeed(&Variant::new(12040), "foreign", &[name.to_owned()], &[]).map(drop)
        })
    };
    PROGRAMS.iter().map(test).collect()
}
