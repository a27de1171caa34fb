//! A device that is reset goes on as at the start of a process, if the driver allows it. A process that was forked after
//! the use of CUDA gets an error. Each test is a process of its own.

use std::ffi::c_int;

use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig};

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, assert_error, device_tests};

device_tests! {
    a_healthy_device => in_child(&[]),
    a_healthy_device_again_and_again => in_child(&[]),
    after_a_fault_the_device_works_or_the_error_says_why => in_child(&[]),
    another_device_goes_on => in_child(&[]) => needs(Need::TwoDevices),
    a_forked_child_gets_an_error => in_child(&[]),
    a_child_forked_before_use_may_use_it => in_child(&[]),
}

fn works(device: Device) -> Outcome {
    let lab = Lab::on(device)?;
    let mut values = lab.stream.zeros::<u32>(100_000)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 6, SLOW / 10)?;
    let other = device.stream()?;
    let copy = other.download_async(&values, device.pinned(100_000)?)?.wait()?;
    assert_all(&copy, 6, "a kernel on the new context");
    let registered = device.register(vec![0u32; 100_000])?;
    assert_all(&other.download_async(&values, registered)?.wait()?.into_vec()?, 6, "to a registered vector");
    device.trim()?;
    Ok(())
}

fn a_healthy_device() -> Outcome {
    let lab = Lab::new()?;
    let device = lab.device;
    let second = device.stream()?;
    let mut values = lab.stream.zeros::<u32>(1 << 20)?;
    let mut copy = second.zeros::<u32>(1 << 20)?;
    let (mut event, pinned) = (device.timing_event()?, device.pinned::<u32>(1 << 20)?);
    let registered = device.register(vec![1u32; 1000])?;
    let idle = device.register(vec![2u32; 1000])?;
    lab.set(&lab.stream, values.slice_mut(..)?, 1, SLOW)?;
    lab.copy(&second, values.slice(..)?, copy.slice_mut(..)?, 0)?;
    let transfer = second.download_async(&copy, pinned)?;
    event.record(&second)?;
    drop(second.download_async(&copy.slice(..10)?, device.pinned(10)?)?);
    // SAFETY: nothing else in this process uses CUDA, and the pinned memory is only dropped.
    let new = unsafe { device.reset()? };
    assert!(new != device && device.is_lost() && !new.is_lost());
    assert_eq!(Device::new(0)?, new);
    assert_error!(lab.stream.synchronize(), Error::ContextLost { .. });
    assert_error!(new.stream()?.download(&copy), Error::ContextLost { .. });
    assert_error!(event.synchronize(), Error::ContextLost { .. });
    // SAFETY: it is refused.
    assert_error!(unsafe { device.reset() }, Error::ContextLost { .. });
    works(new)?;
    assert_eq!(registered.into_vec()?, vec![1u32; 1000]);
    drop((values, transfer, event, idle, lab, copy, second));
    works(new)
}

fn a_healthy_device_again_and_again() -> Outcome {
    for _ in 0..5 {
        let device = Device::new(0)?;
        works(device)?;
        let held = device.stream()?.upload(&[1u32; 1000])?;
        // SAFETY: nothing else in this process uses CUDA, and no pinned memory is held.
        unsafe { device.reset()? };
        drop(held);
    }
    works(Device::new(0)?)
}

fn after_a_fault_the_device_works_or_the_error_says_why() -> Outcome {
    let lab = Lab::new()?;
    let device = lab.device;
    let buffer = lab.stream.upload(&[1u32; 1000])?;
    let kernel = lab.kernel("write_to_nowhere")?;
    // SAFETY: not safe: it writes to an address that nothing maps, which ends the context. That is the test.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 1), (1u32,))? };
    assert_error!(lab.stream.synchronize(), Error::KernelFault { .. });
    // SAFETY: nothing else in this process uses CUDA, and no pinned memory is held.
    match unsafe { device.reset() } {
        Ok(new) => works(new)?,
        Err(error @ Error::ResetFailed { device: 0, .. }) => {
            let text = error.to_string();
            assert!(text.contains("new process") && text.contains("write_to_nowhere"), "{text}");
            println!("this driver does not recover: {text}");
        }
        Err(error) => return Err(format!("{error:?}").into()),
    }
    assert_error!(lab.stream.download(&buffer), Error::ContextLost { .. });
    drop((buffer, kernel, lab));
    // The CPU goes on.
    assert_eq!((0..1000u64).sum::<u64>(), 499_500);
    Ok(())
}

fn another_device_goes_on() -> Outcome {
    let (here, there) = (Lab::on(Device::new(0)?)?, Lab::on(Device::new(1)?)?);
    let source = here.stream.upload(&[5u32; 1000])?;
    let mut written = there.stream.zeros::<u32>(1000)?;
    here.stream.copy(&source, &mut written)?;
    let dropped = there.stream.upload(&[4u32; 1000])?;
    let mut far = here.stream.zeros::<u32>(1000)?;
    here.stream.copy(&dropped, &mut far)?;
    drop(dropped);
    let mut own = there.stream.zeros::<u32>(1000)?;
    there.set(&there.stream, own.slice_mut(..)?, 2, 2 * SLOW)?;
    // SAFETY: nothing else in this process uses CUDA, and the other device uses no memory of this one.
    let new = unsafe { here.device.reset()? };
    assert_all(&there.stream.download(&own)?, 2, "a kernel that ran meanwhile");
    assert_all(&there.stream.download(&written)?, 5, "what the device had written before");
    there.device.trim()?;
    drop((source, far, here));
    works(new)?;
    works(there.device)
}

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
    fn alarm(seconds: u32) -> u32;
}

/// Runs the closure in a forked child, which must end well.
fn in_fork(work: impl FnOnce() -> Outcome) -> Outcome {
    // SAFETY: the child ends without running the parent's exit handlers.
    let process = unsafe { fork() };
    if process == 0 {
        // SAFETY: a child that hangs is ended.
        unsafe { alarm(60) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let code = match outcome {
            Ok(Ok(())) => 0,
            Ok(Err(failed)) => {
                eprintln!("in the child: {}", failed.message().unwrap_or("failed"));
                1
            }
            Err(_) => 2,
        };
        // SAFETY: ends this process.
        unsafe { _exit(code) }
    }
    let mut status = 0;
    // SAFETY: the pointer is to a local.
    let waited = unsafe { waitpid(process, &mut status, 0) };
    assert!(process > 0 && waited == process, "fork or waitpid failed");
    if status == 0 { Ok(()) } else { Err(format!("the child ended with status {status:#x}").into()) }
}

fn a_forked_child_gets_an_error() -> Outcome {
    let lab = Lab::new()?;
    let device = lab.device;
    let mut values = lab.stream.zeros::<u32>(1000)?;
    let transfer = lab.stream.download_async(&values, device.pinned(1000)?)?;
    let registered = device.register(vec![1u32; 1000])?;
    lab.set(&lab.stream, values.slice_mut(..)?, 3, SLOW)?;
    let held = (device.stream()?, device.event()?, lab.kernel("add")?, lab.stream.zeros::<u32>(10)?);
    in_fork(|| {
        assert!(device.is_lost());
        assert_error!(Device::count(), Error::ForkedProcess);
        assert_error!(Device::new(0), Error::ForkedProcess);
        assert_error!(device.stream(), Error::ForkedProcess);
        assert_error!(lab.stream.synchronize(), Error::ForkedProcess);
        assert_error!(lab.stream.download(&values), Error::ForkedProcess);
        assert_error!(device.pinned::<u32>(1000), Error::ForkedProcess);
        drop((held, transfer, registered));
        Ok(())
    })?;
    assert_all(&lab.stream.download(&values)?, 3, "the parent's kernel");
    works(device)
}

fn a_child_forked_before_use_may_use_it() -> Outcome {
    in_fork(|| works(Device::new(0)?))?;
    works(Device::new(0)?)
}
