//! A wait with a time limit gives up in time, names what still runs, and loses nothing.

use std::time::{Duration, Instant};

use selvedge::Error;

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, assert_error, device_tests};

device_tests! {
    waits_give_up_in_time => needs(Need::FreeRunning), a_transfer_comes_back => needs(Need::FreeRunning),
    waits_end_with_the_work, a_device_is_waited_for_past_its_streams, a_fault_is_no_time_out => in_child(&[]),
}

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(60);

/// The error's text, where it is a time-out, and neither early nor much too late.
fn timed_out<T>(result: Result<T, Error>, start: Instant) -> Result<String, String> {
    let passed = start.elapsed();
    match result {
        Err(error @ Error::TimedOut { .. }) if passed >= SHORT && passed < 8 * SHORT => Ok(error.to_string()),
        Err(error) => Err(format!("after {passed:?}: {error}")),
        Ok(_) => Err(format!("after {passed:?} all was done")),
    }
}

fn waits_give_up_in_time() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(1000)?;
    let mut event = lab.device.event()?;
    lab.set(&lab.stream, values.slice_mut(..)?, 7, 10 * SLOW)?;
    event.record(&lab.stream)?;
    let start = Instant::now();
    let text = timed_out(lab.stream.synchronize_timeout(SHORT), start)?;
    assert!(text.contains("slow_set") && text.contains(&format!("stream {}", lab.stream.id())), "{text}");
    let start = Instant::now();
    let text = timed_out(event.synchronize_timeout(SHORT), start)?;
    assert!(text.contains("slow_set"), "{text}");
    let start = Instant::now();
    let text = timed_out(lab.device.synchronize_timeout(SHORT), start)?;
    assert!(text.contains("slow_set"), "{text}");
    assert!(!lab.stream.is_idle()?, "the kernel was to run on");
    assert_all(&lab.stream.download(&values)?, 7, "the kernel that was given up on");
    Ok(())
}

fn a_transfer_comes_back() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(1000)?;
    let pinned = lab.device.pinned::<u32>(1000)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 7, 10 * SLOW)?;
    let mut transfer = lab.stream.download_async(&values, pinned)?;
    for _ in 0..3 {
        let start = Instant::now();
        let failed = transfer.wait_timeout(SHORT).err().ok_or("the copy was done too early")?;
        timed_out(Err::<(), _>(*failed.error), start)?;
        transfer = failed.transfer.ok_or("the transfer did not come back")?;
    }
    assert_all(&transfer.wait_timeout(LONG)?, 7, "the copy");
    Ok(())
}

fn waits_end_with_the_work() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(1000)?;
    let mut event = lab.device.event()?;
    event.synchronize_timeout(Duration::ZERO)?;
    for value in 1..20 {
        lab.set(&lab.stream, values.slice_mut(..)?, value, SLOW / 20)?;
        event.record(&lab.stream)?;
        match value % 3 {
            0 => lab.stream.synchronize_timeout(LONG)?,
            1 => event.synchronize_timeout(LONG)?,
            _ => lab.device.synchronize_timeout(LONG)?,
        }
        assert!(event.is_complete()? && lab.stream.is_idle()?);
        let transfer = lab.stream.download_async(&values, lab.device.pinned(1000)?)?;
        assert_all(&transfer.wait_timeout(LONG)?, value, "the copy");
    }
    Ok(())
}

fn a_device_is_waited_for_past_its_streams() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(1000)?;
    let other = lab.device.stream()?;
    let mut event = lab.device.event()?;
    lab.set(&other, values.slice_mut(..)?, 3, SLOW)?;
    event.record(&other)?;
    drop((values, other));
    lab.device.synchronize_timeout(LONG)?;
    assert!(event.is_complete()?, "the dropped stream's work is not done");
    Ok(())
}

fn a_fault_is_no_time_out() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("write_to_nowhere")?;
    let pinned = lab.device.pinned::<u32>(1000)?;
    let values = lab.stream.zeros::<u32>(1000)?;
    // SAFETY: not safe: it writes to an address that nothing maps, which ends the context. That is the test.
    unsafe { kernel.launch(&lab.stream, selvedge::driver::LaunchConfig::new(1, 1), (1u32,))? };
    let transfer = lab.stream.download_async(&values, pinned);
    assert_error!(lab.stream.synchronize_timeout(LONG), Error::KernelFault { .. });
    assert_error!(lab.device.synchronize_timeout(LONG), Error::ContextLost { .. });
    if let Ok(transfer) = transfer {
        let failed = transfer.wait_timeout(LONG).err().ok_or("a copy behind a fault went well")?;
        assert!(failed.transfer.is_none() && matches!(*failed.error, Error::ContextLost { .. }), "{failed}");
    }
    Ok(())
}
