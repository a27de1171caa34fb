//! A kernel that faults takes its context with it and nothing else; a full device gives back what it caches first.

use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig};

use super::children;
use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Child: a fault names kernel and stream, later calls say why the context is lost, the other device goes on.
pub fn lost(fake: &Fake) -> Outcome {
    let (device, other) = (Device::new(0)?, Device::new(1)?);
    let (stream, second) = (device.stream()?, device.stream()?);
    let module = device.load(PTX.as_bytes())?;
    let fault = module.function("fault_now")?;
    let mut buffer = stream.zeros::<u8>(64)?;
    let unaffected = other.stream()?.upload(&[1u8, 2, 3])?;
    let transfer = second.download_async(&second.zeros::<u8>(64)?, device.pinned(64)?)?;
    // SAFETY: the fake driver's kernel touches nothing.
    unsafe { fault.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer,))? };
    match stream.synchronize() {
        Err(Error::KernelFault { kernel, stream: name, code: 700, .. })
            if kernel == "fault_now" && name == format!("stream {} of device 0", stream.id()) => {}
        other => return Err(format!("the fault was seen as {other:?}").into()),
    }
    if !device.is_lost() || other.is_lost() {
        return Err("the wrong devices are lost".into());
    }
    let calls = fake.calls();
    let text = match device.stream() {
        Err(error @ Error::ContextLost { device: 0, .. }) => error.to_string(),
        other => return Err(format!("a later call answers {other:?}").into()),
    };
    if !text.contains("fault_now") || !text.contains("CUDA_ERROR_ILLEGAL_ADDRESS") {
        return Err(format!("the later error does not say why: {text}").into());
    }
    for result in [
        device.synchronize(),
        stream.synchronize(),
        stream.download(&buffer).map(drop),
        module.function("mix").map(drop),
        device.load(PTX.as_bytes()).map(drop),
        transfer.wait().map(drop),
        device.trim(),
    ] {
        if !matches!(result, Err(Error::ContextLost { .. })) {
            return Err(format!("after the loss: {result:?}").into());
        }
    }
    drop((buffer, fault, module, stream, second));
    if fake.calls() != calls {
        return Err(format!("{} driver calls on a lost context", fake.calls() - calls).into());
    }
    let read = other.stream()?.download(&unaffected)?;
    if read != [1, 2, 3] {
        return Err("the other device lost data".into());
    }
    // Some drivers take every context of the process along; the first fault is to blame.
    fake.lose_context(1, 700);
    match other.synchronize() {
        Err(Error::ContextLost { device: 1, cause })
            if cause.contains("fault_now") && cause.contains("all contexts") =>
        {
            Ok(())
        }
        other => Err(format!("a context that was taken along answers {other:?}").into()),
    }
}

/// Child: a device that is full of cached blocks frees some; one that is really full says how full, and of what.
pub fn out_of_memory(fake: &Fake) -> Outcome {
    const PAGE: usize = 2 << 20;
    fake.set_memory(16 * PAGE as u64);
    let device = Device::new(0)?;
    let stream = device.stream()?;
    drop(stream.uninitialized::<u8>(10 * PAGE)?);
    if device.pool_statistics().cached_bytes < 10 * PAGE as u64 {
        return Err("the block was not cached".into());
    }
    // Does not fit beside the cached block.
    let large = stream.uninitialized::<u8>(14 * PAGE)?;
    match stream.uninitialized::<u8>(4 * PAGE) {
        Err(Error::OutOfMemory {
            device: Some(0),
            requested,
            free,
            total,
            cached: 0,
            live,
            limit: None,
            holders,
        }) if requested >= 4 * PAGE as u64
            && free < requested
            && total == 16 * PAGE as u64
            && live >= 14 * PAGE as u64
            && holders.contains(&format!("1 x {live} bytes of stream {}", stream.id())) => {}
        other => return Err(format!("a full device answers {other:?}").into()),
    }
    drop(large);
    stream.uninitialized::<u8>(4 * PAGE)?;
    if stream.uninitialized::<u64>(usize::MAX / 4).is_ok() {
        return Err("a size past the address space was given".into());
    }
    Ok(())
}

pub fn tests() -> Vec<Test> {
    let test = |name: &'static str, child: &'static str| {
        Test::new(name, move || children::must_succeed(&Variant::new(12040), child, &[], &[]).map(drop))
    };
    vec![
        test("losses::a_fault_ends_its_own_context_only", "lost"),
        test("losses::a_full_device_gives_back_what_it_caches", "memory"),
    ]
}
