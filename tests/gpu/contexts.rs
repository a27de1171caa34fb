//! Whatever context another library has made current is still current after every call of ours, on every thread, drops
//! included; and our calls work none the less.

use selvedge::driver::{Copy2d, Device, LaunchConfig, ModuleOptions};

use crate::support::foreign_driver::{Context, ForeignDriver};
use crate::support::{Lab, Outcome, basic_ptx, device_tests};

device_tests! {
    a_foreign_context_stays_current, our_context_serves_a_thread_that_had_none, another_device_stays_current => needs(crate::support::Need::TwoDevices),
    drops_keep_the_foreign_context,
}

/// Calls what the crate offers, and `between` before and after each.
fn every_call(device: Device, mut between: impl FnMut(&str)) -> Outcome {
    macro_rules! step {
        ($name:literal, $call:expr) => {{
            between($name);
            let value = $call;
            between($name);
            value
        }};
    }
    let stream = step!("stream", device.stream()?);
    let other = step!("stream_with_priority", device.stream_with_priority(-1)?);
    let module = step!("load", device.load_with(basic_ptx(), &ModuleOptions::default())?);
    let add = step!("function", module.function("add")?);
    step!("attributes", add.attributes()?);
    step!("occupancy", add.occupancy(128, 0)?);
    step!("suggested_block_size", add.suggested_block_size(0)?);
    let left = step!("upload", stream.upload(&[1.0f32; 64])?);
    let right = step!("upload", other.upload(&[2.0f32; 64])?);
    let mut out = step!("zeros", stream.zeros::<f32>(64)?);
    // SAFETY: add(const float*, const float*, float*, unsigned) touches 64 elements of each.
    step!("launch", unsafe {
        add.launch(&stream, LaunchConfig::for_elements(64), (&left, &right, &mut out, 64u32))?
    });
    assert_eq!(step!("download", other.download(&out)?), [3.0f32; 64]);
    step!("fill", stream.fill(&mut out, 4.0)?);
    step!("copy", other.copy(&left, &mut out)?);
    let shape = Copy2d { width: 4, height: 4, source_pitch: 8, destination_pitch: 8 };
    step!("copy_2d", stream.copy_2d(&right, &mut out, shape)?);
    step!("copy_from_host", stream.copy_from_host(&[5.0; 64], &mut out)?);
    let mut event = step!("event", device.timing_event()?);
    let mut end = step!("event", device.timing_event()?);
    step!("record", event.record(&stream)?);
    step!("record", end.record(&stream)?);
    step!("wait", other.wait(&event)?);
    step!("wait_for", other.wait_for(&stream)?);
    step!("synchronize", end.synchronize()?);
    step!("is_complete", event.is_complete()?);
    step!("elapsed_ms", event.elapsed_ms(&end)?);
    let pinned = step!("pinned", device.pinned::<f32>(64)?);
    let transfer =
        step!("download_async", stream.download_async(&out, pinned).map_err(|failed| failed.error)?);
    assert_eq!(step!("wait", transfer.wait()?)[..], [5.0f32; 64]);
    let vector = step!("register", device.register(vec![6.0f32; 64]).map_err(|failed| failed.error)?);
    step!("into_vec", vector.into_vec()?);
    step!("on_complete", stream.on_complete(|| ())?);
    step!("is_idle", stream.is_idle()?);
    step!("stream synchronize", stream.synchronize()?);
    step!("device synchronize", device.synchronize()?);
    step!("memory_info", device.memory_info()?);
    step!("priority_range", device.priority_range()?);
    step!("drop buffers", drop((left, right, out)));
    step!("drop module", drop((module, add)));
    step!("drop events", drop((event, end)));
    step!("drop streams", drop((stream, other)));
    step!("trim", device.trim()?);
    Ok(())
}

fn a_foreign_context_stays_current() -> Outcome {
    let driver = ForeignDriver::load()?;
    let device = Device::new(0)?;
    let foreign = driver.create(0);
    every_call(device, |call| assert_eq!(driver.current(), foreign.context, "around {call}"))?;
    // And again with the context switched between any two calls.
    let mut foreign_next = false;
    let mut wanted: Context = std::ptr::null_mut();
    let mut inside = false;
    every_call(device, |call| {
        if inside {
            // After a call: what was current before it still is, or ours where there was none.
            assert!(wanted.is_null() || driver.current() == wanted, "after {call}");
        } else {
            foreign_next = !foreign_next;
            wanted = if foreign_next { foreign.context } else { std::ptr::null_mut() };
            driver.set_current(wanted);
        }
        inside = !inside;
    })
}

fn our_context_serves_a_thread_that_had_none() -> Outcome {
    let device = Device::new(0)?;
    let worker = std::thread::spawn(move || -> Result<(), String> {
        let driver = ForeignDriver::load()?;
        every_call(device, |_| driver.set_current(std::ptr::null_mut()))
            .map_err(|failed| failed.message().unwrap_or("failed").to_owned())
    });
    worker.join().map_err(|_| "the thread panicked")??;
    Ok(())
}

fn another_device_stays_current() -> Outcome {
    let driver = ForeignDriver::load()?;
    let (first, second) = (Device::new(0)?, Device::new(1)?);
    // The second device's primary context, which the crate has made.
    driver.set_current(std::ptr::null_mut());
    second.stream()?.synchronize()?;
    let theirs = driver.current();
    assert!(!theirs.is_null());
    every_call(first, |call| assert_eq!(driver.current(), theirs, "around {call}"))
}

fn drops_keep_the_foreign_context() -> Outcome {
    let lab = Lab::new()?;
    let driver = ForeignDriver::load()?;
    let other = lab.device.stream()?;
    let mut values = lab.stream.zeros::<u32>(1 << 12)?;
    let mut copy = other.zeros::<u32>(1 << 12)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 3, crate::support::SLOW)?;
    lab.copy(&other, values.slice(..)?, copy.slice_mut(..)?, 0)?;
    let Lab { stream, module, .. } = lab;
    let foreign = driver.create(0);
    drop(values);
    assert_eq!(driver.current(), foreign.context, "after a buffer that two streams use");
    drop(module);
    assert_eq!(driver.current(), foreign.context, "after a module that runs");
    drop(stream);
    assert_eq!(driver.current(), foreign.context, "after a stream that runs");
    let result = other.download(&copy)?;
    assert_eq!(driver.current(), foreign.context);
    crate::support::assert_all(&result, 3, "the copy");
    Ok(())
}
