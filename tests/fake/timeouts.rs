//! Waits that give up: what they name, that nothing is lost by them, and that none of them waits in the driver.

use std::time::{Duration, Instant};

use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig};

use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

/// The error's operation and words, where it is a time-out of about the right length.
fn timed_out<T: std::fmt::Debug>(result: Result<T, Error>, start: Instant) -> Result<String, String> {
    let passed = start.elapsed();
    match result {
        Err(error @ Error::TimedOut { waited_ms, .. })
            if waited_ms >= 20 && u128::from(waited_ms) <= passed.as_millis() =>
        {
            Ok(error.to_string())
        }
        other => Err(format!("after {passed:?}: {other:?}")),
    }
}

fn says(text: &str, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| !text.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("the error does not say '{word}': {text}")),
    }
}

/// Child: nothing runs before it is forced, so every wait that only asks gives up.
pub fn child(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = device.load(PTX.as_bytes())?;
    let make = module.function("make")?;
    let mut buffer = stream.zeros::<u8>(256)?;
    let mut event = device.event()?;
    stream.synchronize_timeout(LONG)?;
    event.synchronize_timeout(Duration::ZERO)?;
    device.synchronize_timeout(LONG)?;

    fake.set_strict(true);
    // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
    unsafe { make.launch(&stream, LaunchConfig::new(1, 32), (&mut buffer, 256u64, 9u32))? };
    event.record(&stream)?;
    let transfer = stream.download_async(&buffer, device.pinned(256)?)?;
    let name = format!("stream {} of device 0", stream.id());

    let blocking = || {
        ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"].map(|name| fake.call_count(name))
    };
    let before = blocking();
    let start = Instant::now();
    says(&timed_out(stream.synchronize_timeout(SHORT), start)?, &["Stream::", &name, "make", "again"])?;
    let start = Instant::now();
    says(&timed_out(event.synchronize_timeout(SHORT), start)?, &["Event::", "an event on", &name, "make"])?;
    let start = Instant::now();
    says(&timed_out(device.synchronize_timeout(SHORT), start)?, &["Device::", "device 0", "make on stream"])?;
    let start = Instant::now();
    let transfer = match transfer.wait_timeout(SHORT) {
        Ok(_) => return Err("the copy is done before anything ran".into()),
        Err(failed) => {
            says(&timed_out(Err::<(), _>(*failed.error), start)?, &["Transfer::", "a copy on", &name])?;
            failed.transfer.ok_or("the transfer did not come back")?
        }
    };
    if blocking() != before {
        return Err("a wait with a limit waited in the driver".into());
    }

    // Nothing was lost: asked again with progress, each of them comes to its end.
    fake.set_strict(false);
    event.synchronize_timeout(LONG)?;
    let bytes = transfer.wait_timeout(LONG)?;
    fake.host_read(&bytes);
    stream.synchronize_timeout(LONG)?;
    device.synchronize_timeout(LONG)?;
    if bytes[..] != stream.download(&buffer)?[..] || bytes.iter().all(|&byte| byte == 0) {
        return Err("the copy brought something else".into());
    }

    // A fault is a fault, not a time-out, and the copy behind it does not come back.
    let (fault, pinned) = (module.function("fault_now")?, device.pinned(256)?);
    fake.set_strict(true);
    let transfer = stream.download_async(&buffer, bytes)?;
    // SAFETY: the fake driver's kernel touches nothing.
    unsafe { fault.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer,))? };
    let behind = stream.download_async(&buffer, pinned)?;
    fake.set_strict(false);
    match behind.wait_timeout(LONG) {
        Err(failed) if failed.transfer.is_none() && matches!(*failed.error, Error::KernelFault { .. }) => {}
        other => return Err(format!("a copy behind a fault: {other:?}").into()),
    }
    for result in [
        stream.synchronize_timeout(LONG),
        event.synchronize_timeout(LONG),
        device.synchronize_timeout(LONG),
        transfer.wait_timeout(LONG).map(drop).map_err(Error::from),
    ] {
        if !matches!(result, Err(Error::ContextLost { .. })) {
            return Err(format!("on a lost context: {result:?}").into());
        }
    }
    Ok(())
}

/// Child: work on a stream that is gone is waited for too, or named.
pub fn dropped(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = device.load(PTX.as_bytes())?;
    let make = module.function("make")?;
    let mut buffer = stream.zeros::<u8>(64)?;
    // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
    unsafe { make.launch(&stream, LaunchConfig::new(1, 32), (&mut buffer, 64u64, 9u32))? };
    drop((buffer, make, module, stream));
    let before = fake.call_count("cuCtxSynchronize");
    device.synchronize_timeout(LONG)?;
    if fake.call_count("cuCtxSynchronize") != before + 1 || fake.live().pending != 0 {
        return Err("what no stream of ours holds was not waited for".into());
    }
    scenario::settle()?;
    scenario::check_end(fake)
}

pub fn tests() -> Vec<Test> {
    let test = |name: &'static str, child: &'static str| {
        Test::new(name, move || children::must_succeed(&Variant::new(12040), child, &[], &[]).map(drop))
    };
    vec![
        test("timeouts::a_wait_gives_up_and_loses_nothing", "timeouts"),
        test("timeouts::a_device_is_waited_for_past_its_streams", "timeouts_dropped"),
    ]
}
