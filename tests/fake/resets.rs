//! A device that is reset goes on as at the start of a process; what was made before is lost, whatever it is and however it
//! is dropped, and other devices go on.

use std::sync::{Arc, Mutex};

use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig, TensorElement, TensorMap, TensorMapLayout};

use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Held = Box<dyn std::any::Any>;

fn lost<T: std::fmt::Debug>(what: &str, result: Result<T, Error>) -> Outcome {
    match result {
        Err(Error::ContextLost { .. }) => Ok(()),
        other => Err(format!("{what} of a context that is gone: {other:?}").into()),
    }
}

/// Loses the device's context to a kernel.
fn fault(device: Device) -> Outcome {
    let stream = device.stream()?;
    let kernel = device.load(PTX.as_bytes())?.function("fault_now")?;
    let mut buffer = stream.zeros::<u8>(64)?;
    // SAFETY: the fake driver's kernel touches nothing.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer,))? };
    match stream.synchronize() {
        Err(Error::KernelFault { .. }) => Ok(()),
        other => Err(format!("the fault was seen as {other:?}").into()),
    }
}

/// # Safety
///
/// As [`Device::reset`].
unsafe fn reset(device: Device) -> Result<Device, Error> {
    // SAFETY: passed on to the caller.
    let new = unsafe { device.reset()? };
    assert!(device.is_lost() && !new.is_lost() && new != device, "the old device is the lost one");
    assert_eq!(new.ordinal(), device.ordinal());
    assert_eq!(Device::new(device.ordinal())?, new);
    Ok(new)
}

/// Runs an ordinary program on a device and checks its result.
fn works(fake: &Fake, device: Device) -> Outcome {
    let (stream, other) = (device.stream()?, device.stream()?);
    let module = device.load(PTX.as_bytes())?;
    let mut buffer = stream.zeros::<u8>(64)?;
    // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
    unsafe {
        module.function("make")?.launch(&stream, LaunchConfig::new(1, 32), (&mut buffer, 64u64, 1u32))?
    };
    let found = other.download_async(&buffer, device.pinned(64)?)?.wait()?;
    fake.host_read(&found);
    if found[..] != other.download(&buffer)?[..] || found.iter().all(|&byte| byte == 0) {
        return Err("the device computes something else".into());
    }
    Ok(())
}

fn end(fake: &Fake) -> Outcome {
    scenario::settle()?;
    scenario::check_end(fake)
}

/// Child: after a fault, and again after another one.
fn after_a_fault(fake: &Fake) -> Outcome {
    scenario::run(fake, &mut || {})?;
    for _ in 0..3 {
        let device = Device::new(0)?;
        let stream = device.stream()?;
        let buffer = stream.upload(&[1u8, 2, 3])?;
        fault(device)?;
        // SAFETY: nothing else uses CUDA, and no pinned memory is held.
        let new = unsafe { reset(device)? };
        lost("a stream", stream.synchronize())?;
        lost("a buffer", new.stream()?.download(&buffer))?;
        lost("the device", device.memory_info())?;
        // SAFETY: it is refused.
        lost("a second reset", unsafe { device.reset() })?;
        works(fake, new)?;
    }
    // The whole program again, on both devices.
    scenario::run(fake, &mut || {})?;
    end(fake)
}

/// A value of each kind, with work under way that uses it.
fn one_of_each(fake: &Fake, device: Device) -> Result<Vec<Held>, Box<dyn std::error::Error>> {
    let (stream, second) = (device.stream()?, device.stream()?);
    let module = device.load(PTX.as_bytes())?;
    let make = module.function("make")?;
    let global = module.global::<u8>("state")?;
    let mut a = stream.zeros::<u8>(256)?;
    let mut b = second.zeros::<u8>(256)?;
    let map = TensorMap::tiled(&a, &TensorMapLayout::contiguous(TensorElement::U8, &[64, 4], &[64, 4]))?;
    let (mut event, unrecorded) = (device.timing_event()?, device.event()?);
    let mut pinned = device.pinned::<u8>(256)?;
    fake.host_write(&pinned);
    pinned.fill(3);
    let registered = device.register(vec![1u8; 256])?;
    let idle = device.register(vec![2u8; 256])?;
    let up = stream.upload_async(pinned, &mut a)?;
    let config = LaunchConfig::new(1, 32);
    // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
    unsafe { make.launch(&second, config, (&mut b, 256u64, 1u32))? };
    let down = second.download_async(&b, registered)?;
    event.record(&second)?;
    stream.on_complete(|| ())?;
    let (graph, inside) = stream.capture(|stream| {
        let mut inside = stream.zeros::<u8>(256)?;
        // SAFETY: as above.
        unsafe { make.launch(stream, config, (&mut inside, 256u64, 2u32))? };
        Ok(inside)
    })?;
    let graph = graph.instantiate()?;
    graph.launch(&stream)?;
    // Retired while in use, and cached.
    drop(second.download_async(&b, device.pinned(256)?)?);
    drop((stream.zeros::<u8>(256)?, device.register(vec![9u8; 64])?, device.pinned::<u8>(64)?));
    drop(device.load(PTX.as_bytes())?);
    Ok(vec![
        Box::new(stream),
        Box::new(second),
        Box::new((module, global)),
        Box::new(make),
        Box::new(a),
        Box::new(b),
        Box::new(map),
        Box::new((event, unrecorded)),
        Box::new(graph),
        Box::new(inside),
        Box::new(device.memory_scope("everything")),
        Box::new(idle),
        Box::new(up),
        Box::new(down),
        Box::new(device.pinned::<u8>(256)?),
    ])
}

/// Child: a healthy device, with everything alive, dropped in many orders: none of it reaches the driver.
fn of_a_healthy_device(fake: &Fake) -> Outcome {
    let other = Device::new(1)?.stream()?;
    let buffer = other.upload(&[4u8, 5, 6])?;
    let mut state = 1u64;
    for round in 0..100 {
        let device = Device::new(0)?;
        fake.set_seed(round + 1);
        let mut held: Vec<Option<Held>> = one_of_each(fake, device)?.into_iter().map(Some).collect();
        // SAFETY: nothing else uses CUDA, and the pinned memory is only dropped.
        let new = unsafe { reset(device)? };
        let calls = fake.calls();
        for left in (1..=held.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let nth = (state >> 33) as usize % left;
            if let Some(one) = held.iter_mut().filter(|one| one.is_some()).nth(nth) {
                *one = None;
            }
        }
        if fake.calls() != calls {
            return Err(format!("round {round}: {} driver calls by drops", fake.calls() - calls).into());
        }
        works(fake, new)?;
    }
    if other.download(&buffer)? != [4, 5, 6] {
        return Err("the other device lost data".into());
    }
    drop((buffer, other));
    end(fake)
}

/// Child: every call on what is left of a healthy device answers that it is lost.
fn older_handles(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = device.load(PTX.as_bytes())?;
    let make = module.function("make")?;
    let global = module.global::<u8>("state")?;
    let mut buffer = stream.zeros::<u8>(64)?;
    drop((stream.zeros::<u8>(64)?, device.pinned::<u8>(64)?));
    let mut event = device.event()?;
    event.record(&stream)?;
    let transfer = stream.download_async(&buffer, device.pinned(64)?)?;
    let registered = device.register(vec![7u8; 64])?;
    let idle = device.register(vec![8u8; 64])?;
    // SAFETY: nothing else uses CUDA, and no pinned memory is touched below.
    let new = unsafe { reset(device)? };
    let fresh = new.stream()?;
    let mut young = fresh.zeros::<u8>(64)?;
    let calls = fake.calls();
    let config = LaunchConfig::new(1, 32);
    lost("synchronize", stream.synchronize())?;
    lost("is_idle", stream.is_idle())?;
    lost("device", device.synchronize())?;
    lost("stream", device.stream())?;
    lost("pinned", device.pinned::<u8>(64))?;
    lost("register", device.register(vec![1u8]).map_err(Error::from))?;
    lost("zeros", stream.zeros::<u8>(64))?;
    lost("download", stream.download(&buffer))?;
    lost("copy to a new buffer", fresh.copy(&buffer, &mut young))?;
    lost("copy by an old stream", stream.copy(&young, &mut buffer))?;
    lost("a list", fresh.copy_batch(&mut [(buffer.slice(..)?, young.slice_mut(..)?)]))?;
    lost("function", module.function("mix"))?;
    lost("global", global.read(&fresh))?;
    // SAFETY: they are refused.
    unsafe {
        lost("a launch", make.launch(&stream, config, (&mut buffer, 64u64, 1u32)))?;
        lost("an old kernel on a new stream", make.launch(&fresh, config, (&mut young, 64u64, 1u32)))?;
    }
    lost("record", event.record(&fresh))?;
    lost("wait", fresh.wait(&event))?;
    lost("wait for a stream", fresh.wait_for(&stream))?;
    lost("event", event.synchronize())?;
    lost("transfer", transfer.wait())?;
    // Registered memory is the caller's own: it comes back, unlocked by the reset.
    if registered.into_vec()? != vec![7u8; 64] {
        return Err("the vector came back changed".into());
    }
    drop((idle, buffer, module, make, global, event, stream));
    if fake.calls() != calls {
        let made: Vec<_> =
            fake.log().split_off(calls as usize).into_iter().map(|call| call.function).collect();
        return Err(format!("driver calls by handles of a gone context: {made:?}").into());
    }
    // Its memory is not taken for locked any more: a copy of it is staged or waited for.
    let vector = vec![5u8; 64];
    fresh.copy_from_host(&vector, &mut young)?;
    if fake.pageable_pending() != 0 || fresh.download(&young)? != vector {
        return Err("a copy after the reset".into());
    }
    drop((young, fresh));
    end(fake)
}

/// Child: what another device shares with one that is reset.
fn beside_another_device(fake: &Fake) -> Outcome {
    let (device, other) = (Device::new(0)?, Device::new(1)?);
    let (stream, away) = (device.stream()?, other.stream()?);
    other.enable_peer_access(&device)?;
    let make = other.load(PTX.as_bytes())?.function("make")?;
    let source = stream.upload(&[1u8, 2, 3, 4])?;
    // Written, read and shared by the device that will go.
    let mut written = away.zeros::<u8>(4)?;
    stream.copy(&source, &mut written)?;
    let mut halves = away.zeros::<u8>(8)?;
    let (mut left, mut right) = halves.split_at_mut(4)?;
    stream.copy(&source, &mut left)?;
    away.fill(&mut right, 9)?;
    let read = away.upload(&[5u8, 6, 7, 8])?;
    let mut far = stream.zeros::<u8>(4)?;
    stream.copy(&read, &mut far)?;
    let dropped = away.upload(&[5u8, 6, 7, 8])?;
    stream.copy(&dropped, &mut far)?;
    drop(dropped);
    // Pinned memory of the one on a stream of the other, given up while it is under way.
    let pinned = other.pinned::<u8>(4)?;
    drop(stream.download_async(&source, pinned)?);
    // SAFETY: nothing else uses CUDA, and the other device uses no memory of this one.
    let new = unsafe { reset(device)? };
    if away.download(&written)? != [1, 2, 3, 4] || away.download(&halves)? != [1, 2, 3, 4, 9, 9, 9, 9] {
        return Err("what the device had written before its reset is not there".into());
    }
    if away.download(&read)? != [5, 6, 7, 8] {
        return Err("what the device had read is not there".into());
    }
    away.fill(&mut written, 1)?;
    // Access went with the context, and comes back only when it is asked for.
    let fresh = new.stream()?;
    let mut young = fresh.zeros::<u8>(64)?;
    let config = LaunchConfig::new(1, 32);
    // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
    match unsafe { make.launch(&away, config, (&mut young, 64u64, 1u32)) } {
        Err(Error::DeviceMismatch { .. }) => {}
        other => return Err(format!("a launch without peer access: {other:?}").into()),
    }
    other.enable_peer_access(&new)?;
    // SAFETY: as above.
    unsafe { make.launch(&away, config, (&mut young, 64u64, 1u32))? };
    // SAFETY: it is refused: the memory is of the old context.
    lost("old memory by peer access", unsafe { make.launch(&away, config, (&mut far, 4u64, 1u32)) })?;
    away.synchronize()?;
    other.disable_peer_access(&new)?;
    drop((young, fresh, far, source, stream, written, halves, read, away, make));
    end(fake)
}

/// Child: as above, where the device that is reset has lost what it was to write.
fn beside_another_after_a_fault(fake: &Fake) -> Outcome {
    let (device, other) = (Device::new(0)?, Device::new(1)?);
    let (stream, away) = (device.stream()?, other.stream()?);
    let source = stream.upload(&[1u8, 2, 3, 4])?;
    fake.set_strict(true);
    let mut written = away.zeros::<u8>(4)?;
    stream.copy(&source, &mut written)?;
    let dropped = away.upload(&[5u8, 6, 7, 8])?;
    let mut far = stream.zeros::<u8>(4)?;
    stream.copy(&dropped, &mut far)?;
    drop(dropped);
    let pinned = other.pinned::<u8>(4)?;
    drop(stream.download_async(&source, pinned)?);
    fault(device)?;
    lost("a read of what may not be written", away.download(&written))?;
    other.trim()?;
    // SAFETY: nothing else uses CUDA, and the other device uses no memory of this one.
    let new = unsafe { reset(device)? };
    lost("a read of what may not be written", away.download(&written))?;
    if other.is_lost() {
        return Err("the other device was taken along".into());
    }
    away.fill(&mut written, 3)?;
    if away.download(&written)? != [3; 4] {
        return Err("what was written over is not there".into());
    }
    fake.set_strict(false);
    works(fake, new)?;
    works(fake, other)?;
    drop((far, source, stream, written, away));
    // The reset freed the blocks that waited for the lost device: nothing is alive.
    end(fake)
}

/// Child: drivers that do not recover, and calls of the reset that fail, once.
fn refused(fake: &Fake) -> Outcome {
    for (call, code) in
        [("cuDevicePrimaryCtxReset", 800), ("cuDevicePrimaryCtxRetain", 2), ("cuCtxSynchronize", 800)]
    {
        let device = Device::new(0)?;
        let stream = device.stream()?;
        fault(device)?;
        fake.fail(call, 1, code);
        // SAFETY: nothing else uses CUDA, and no pinned memory is held.
        match unsafe { device.reset() } {
            Err(Error::ResetFailed { device: 0, found, cause })
                if found.contains(call) && cause.contains("fault_now") => {}
            other => return Err(format!("{call} fails: {other:?}").into()),
        }
        lost("a stream", stream.synchronize())?;
        lost("a new stream", Device::new(0)?.stream())?;
        // SAFETY: as above.
        works(fake, unsafe { reset(device)? })?;
    }
    // A wait that fails without a fault leaves all as it was.
    let device = Device::new(0)?;
    fake.fail("cuCtxSynchronize", 1, 800);
    // SAFETY: as above.
    match unsafe { device.reset() } {
        Err(Error::Driver { call: "cuCtxSynchronize", code: 800, .. }) if !device.is_lost() => {}
        other => return Err(format!("the wait before a reset fails: {other:?}").into()),
    }
    works(fake, device)?;

    fake.set_reset_recovers(false);
    let stream = device.stream()?;
    fault(device)?;
    for _ in 0..2 {
        // SAFETY: as above.
        match unsafe { device.reset() } {
            Err(error @ Error::ResetFailed { device: 0, .. }) => {
                let text = error.to_string();
                for word in ["cuDevicePrimaryCtxRetain", "700", "fault_now", "new process"] {
                    if !text.contains(word) {
                        return Err(format!("'{word}' is not in: {text}").into());
                    }
                }
            }
            other => return Err(format!("a driver that does not recover: {other:?}").into()),
        }
    }
    lost("a stream", stream.synchronize())?;
    works(fake, Device::new(1)?)
}

/// Child: a fault that ends the contexts of all devices; each is reset.
fn all_contexts(fake: &Fake) -> Outcome {
    let (device, other) = (Device::new(0)?, Device::new(1)?);
    let held = one_of_each(fake, other)?;
    fake.set_faults_spread(true);
    fault(device)?;
    match other.synchronize() {
        Err(Error::ContextLost { device: 1, cause })
            if cause.contains("fault_now") && cause.contains("all contexts") => {}
        answer => return Err(format!("a context that was taken along: {answer:?}").into()),
    }
    let calls = fake.calls();
    lost("a stream", other.stream())?;
    drop(held);
    if fake.calls() != calls {
        return Err("drops called the driver on a lost context".into());
    }
    for lost in [device, other] {
        // SAFETY: nothing else uses CUDA, and no pinned memory is held.
        works(fake, unsafe { reset(lost)? })?;
    }
    fake.set_faults_spread(false);
    end(fake)
}

/// Child: threads that had the old context current, and a module that is cached by ordinal.
fn what_was_current(fake: &Fake) -> Outcome {
    let deferred = Arc::new(Mutex::new(Vec::new()));
    let hook = deferred.clone();
    selvedge::error::set_deferred_error_hook(Some(Box::new(move |error| {
        if let Ok(mut errors) = hook.lock() {
            errors.push(error.to_string());
        }
    })));
    let (device, other) = (Device::new(0)?, Device::new(1)?);
    let family = selvedge::images::load(&device, "gather_32")?;
    device.synchronize()?;
    fake.foreign_set(fake.primary_context(0));
    let (ask, asked) = std::sync::mpsc::channel::<Device>();
    let (sender, results) = std::sync::mpsc::channel();
    std::thread::scope(|scope| -> Outcome {
        scope.spawn(move || {
            let mut result = device.stream().map(drop);
            while let Ok(device) = asked.recv() {
                result = result.and(device.stream().and_then(|stream| stream.synchronize()));
                let _ = sender.send(result.clone());
            }
        });
        ask.send(device)?;
        results.recv()??;
        // SAFETY: nothing else uses CUDA, and no pinned memory is held.
        let new = unsafe { reset(device)? };
        for device in [other, new, other] {
            device.synchronize()?;
            ask.send(device)?;
            results.recv()??;
        }
        let again = selvedge::images::load(&new, "gather_32")?;
        if again.device() != new || family.device() != device {
            return Err("the module that was cached is the old one".into());
        }
        lost("an old device's family", selvedge::images::load(&device, "gather_32"))?;
        drop(ask);
        Ok(())
    })?;
    let deferred = deferred.lock().map_err(|error| error.to_string())?;
    if deferred.is_empty() { Ok(()) } else { Err(format!("reported: {deferred:?}").into()) }
}

/// One child of this module by name.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    let (_, run) = CHILDREN
        .iter()
        .find(|(name, _)| arguments.iter().any(|argument| argument == name))
        .ok_or("no child of that name")?;
    run(fake)
}

type Child = fn(&Fake) -> Outcome;

const CHILDREN: &[(&str, Child)] = &[
    ("after_a_fault", after_a_fault),
    ("of_a_healthy_device", of_a_healthy_device),
    ("older_handles", older_handles),
    ("beside_another_device", beside_another_device),
    ("beside_another_after_a_fault", beside_another_after_a_fault),
    ("refused", refused),
    ("all_contexts", all_contexts),
    ("what_was_current", what_was_current),
];

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for (pool, suffix) in [("", ""), ("none", "_without_a_pool"), ("driver", "_with_the_drivers_pool")] {
        for (name, _) in CHILDREN {
            let settings = [("SELVEDGE_POOL", pool)];
            tests.push(Test::new(format!("resets::{name}{suffix}"), move || {
                let arguments = [(*name).to_owned()];
                children::must_succeed(&Variant::new(12040), "resets", &arguments, &settings).map(drop)
            }));
        }
    }
    tests
}
