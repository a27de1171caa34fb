//! A kernel that faults ends its context: the error names kernel and stream, every later call says what happened, drops
//! are quiet, and the process lives on with its CPU and its other devices. Each test is a process of its own.

use std::sync::{Arc, Mutex};

use selvedge::Error;
use selvedge::driver::{Attribute, Device, LaunchConfig, Stream};

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, assert_error, basic_ptx, device_tests};

device_tests! {
    the_error_names_kernel_and_stream => in_child(&[]),
    later_calls_say_that_the_context_is_lost => in_child(&[]),
    drops_are_quiet => in_child(&[]),
    the_cpu_goes_on => in_child(&[]),
    every_kind_of_fault => in_child(&[]),
    a_trap => in_child(&[]),
    a_misaligned_write => in_child(&[]),
    another_stream_sees_it => in_child(&[]),
    a_download_sees_it => in_child(&[]),
    a_transfer_sees_it => in_child(&[]),
    threads_see_it => in_child(&[]),
    callbacks_of_a_lost_context => in_child(&[]),
    a_fault_without_a_pool => in_child(&[("SELVEDGE_POOL", "none")]),
    another_device_goes_on_or_says_why => in_child(&[]) => needs(Need::TwoDevices),
}

fn fault(lab: &Lab, stream: &Stream) -> selvedge::Result<()> {
    let kernel = lab.kernel("write_to_nowhere")?;
    // SAFETY: not safe: it writes to an address that nothing maps, which ends the context. That is the test.
    unsafe { kernel.launch(stream, LaunchConfig::new(1, 1), (1u32,)) }
}

/// Everything that the deferred-error hook was given.
fn reports() -> Arc<Mutex<Vec<String>>> {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    selvedge::error::set_deferred_error_hook(Some(Box::new(move |error| {
        seen.lock().expect("no panic holds it").push(error.to_string());
    })));
    reports
}

fn the_error_names_kernel_and_stream() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(100)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 1, 0)?;
    fault(&lab, &lab.stream)?;
    match lab.stream.synchronize() {
        Err(error @ Error::KernelFault { .. }) => {
            let text = error.to_string();
            let Error::KernelFault { kernel, stream, code, name, .. } = error else { unreachable!() };
            assert_eq!(kernel, "write_to_nowhere");
            assert!(stream.contains(&format!("stream {}", lab.stream.id())), "{stream}");
            assert_eq!((code, name.as_str()), (700, "CUDA_ERROR_ILLEGAL_ADDRESS"));
            assert!(text.contains("write_to_nowhere") && text.contains("compute-sanitizer"), "{text}");
        }
        other => return Err(format!("{other:?}").into()),
    }
    assert!(lab.device.is_lost());
    Ok(())
}

fn later_calls_say_that_the_context_is_lost() -> Outcome {
    let lab = Lab::new()?;
    let (device, stream) = (lab.device, &lab.stream);
    let add = lab.kernel("add")?;
    let mut buffer = stream.zeros::<f32>(100)?;
    let other = stream.zeros::<f32>(100)?;
    let mut event = device.event()?;
    event.record(stream)?;
    let pinned = device.pinned::<f32>(100)?;
    fault(&lab, stream)?;
    assert_error!(stream.synchronize(), Error::KernelFault { .. });
    macro_rules! lost {
        ($($call:expr),* $(,)?) => {$(
            match $call {
                Err(Error::ContextLost { device: 0, cause }) => {
                    assert!(cause.contains("write_to_nowhere") && cause.contains("ILLEGAL_ADDRESS"), "{cause}");
                }
                Err(error) => return Err(format!("{}: {error:?}", stringify!($call)).into()),
                Ok(_) => return Err(format!("{} went well", stringify!($call)).into()),
            }
        )*};
    }
    lost!(
        stream.synchronize(),
        stream.is_idle(),
        device.synchronize(),
        device.stream(),
        device.event(),
        device.memory_info(),
        device.trim(),
        device.load(basic_ptx()),
        device.pinned::<u8>(1 << 20),
        device.priority_range(),
        lab.kernel("add"),
        add.attributes(),
        add.occupancy(32, 0),
        stream.zeros::<f32>(10),
        stream.upload(&[1.0f32]),
        stream.download(&buffer),
        stream.fill(&mut buffer, 1.0),
        stream.copy(&other, &mut buffer),
        stream.copy_from_host(&[1.0; 100], &mut buffer),
        stream.on_complete(|| ()),
        event.record(stream),
        event.synchronize(),
        stream.wait(&event),
    );
    // SAFETY: it is refused.
    lost!(unsafe {
        add.launch(stream, LaunchConfig::for_elements(100), (&other, &other, &mut buffer, 100u32))
    });
    let failed = stream.download_async(&other, pinned).err().ok_or("a transfer was started")?;
    assert!(matches!(*failed.error, Error::ContextLost { .. }), "{failed}");
    // Functions that need no context still work.
    assert_eq!(Device::new(0)?, device);
    assert!(Device::new(0)?.is_lost() && device.attribute(Attribute::WARP_SIZE)? == 32);
    assert!(!device.name().is_empty() && Device::count()? >= 1);
    Ok(())
}

fn drops_are_quiet() -> Outcome {
    let reports = reports();
    {
        let lab = Lab::new()?;
        let (other, third) = (lab.device.stream()?, lab.device.stream()?);
        let mut values = lab.stream.zeros::<u32>(1 << 16)?;
        let mut copy = other.zeros::<u32>(1 << 16)?;
        let pinned = lab.device.pinned::<u32>(1 << 16)?;
        let registered = lab.device.register(vec![1u32; 1000]).map_err(|failed| failed.error)?;
        let unused = lab.device.pinned::<u32>(1000)?;
        let mut event = lab.device.timing_event()?;
        let module = lab.device.load(basic_ptx())?;
        lab.set(&lab.stream, values.slice_mut(..)?, 1, SLOW / 4)?;
        lab.copy(&other, values.slice(..)?, copy.slice_mut(..)?, 0)?;
        let transfer = other.download_async(&copy, pinned).map_err(|failed| failed.error)?;
        let (waits, on_its_way) = (lab.device.pinned::<u32>(1 << 16)?, transfer);
        let second = third.download_async(&values, waits).map_err(|failed| failed.error)?;
        event.record(&other)?;
        fault(&lab, &lab.stream)?;
        assert_error!(lab.stream.synchronize(), Error::KernelFault { .. });
        assert!(second.wait().is_err());
        drop(on_its_way);
        std::thread::spawn(move || drop((values, event))).join().map_err(|_| "a drop panicked")?;
        drop((other, registered, unused, module, copy));
    }
    let reports = reports.lock().expect("no panic holds it");
    assert!(reports.is_empty(), "{reports:?}");
    Ok(())
}

fn the_cpu_goes_on() -> Outcome {
    let lab = Lab::new()?;
    fault(&lab, &lab.stream)?;
    assert_error!(lab.device.synchronize(), Error::KernelFault { kernel, .. } if kernel.contains("write_to_nowhere"));
    let sums: Vec<u64> = (0..4u64)
        .map(|part| std::thread::spawn(move || (0..1_000_000u64).map(|value| value * part).sum()))
        .map(|worker| worker.join().expect("no thread panics"))
        .collect();
    assert_eq!(sums[1], 499_999_500_000);
    assert_eq!(sums[3], 3 * sums[1]);
    Ok(())
}

/// The first call that waits is the one that sees the fault, whichever it is.
fn every_kind_of_fault() -> Outcome {
    let lab = Lab::new()?;
    let mut event = lab.device.event()?;
    fault(&lab, &lab.stream)?;
    // Recording may still succeed; waiting cannot.
    let seen = event.record(&lab.stream).and_then(|()| event.synchronize());
    match seen {
        Err(Error::KernelFault { kernel, .. }) => assert!(kernel.contains("write_to_nowhere"), "{kernel}"),
        other => return Err(format!("{other:?}").into()),
    }
    assert_error!(lab.stream.synchronize(), Error::ContextLost { .. });
    Ok(())
}

fn a_trap() -> Outcome {
    let lab = Lab::new()?;
    // SAFETY: not safe: it traps.
    unsafe { lab.kernel("stop")?.launch(&lab.stream, LaunchConfig::new(2, 32), ())? };
    assert_error!(lab.stream.synchronize(), Error::KernelFault { kernel, .. } if kernel == "stop");
    assert_error!(lab.stream.synchronize(), Error::ContextLost { cause, .. } if cause.contains("stop"));
    Ok(())
}

fn a_misaligned_write() -> Outcome {
    let lab = Lab::new()?;
    let mut bytes = lab.stream.zeros::<u8>(100)?;
    let kernel = lab.kernel("write_misaligned")?;
    // SAFETY: not safe: it writes a word to an odd address.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 1), (&mut bytes,))? };
    assert_error!(lab.stream.download(&bytes), Error::KernelFault { code: 716, kernel, .. } if kernel == "write_misaligned");
    Ok(())
}

fn another_stream_sees_it() -> Outcome {
    let lab = Lab::new()?;
    let other = lab.device.stream()?;
    fault(&lab, &lab.stream)?;
    // It launched nothing, so it can only name who may have been at fault.
    let mut seen = other.synchronize();
    for _ in 0..1000 {
        if seen.is_err() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        seen = other.synchronize();
    }
    assert_error!(seen, Error::KernelFault { kernel, .. } if kernel.contains("write_to_nowhere"));
    assert_error!(lab.stream.synchronize(), Error::ContextLost { .. });
    Ok(())
}

fn a_download_sees_it() -> Outcome {
    let lab = Lab::new()?;
    let values = lab.stream.zeros::<u32>(1000)?;
    fault(&lab, &lab.stream)?;
    let mut host = vec![7u32; 1000];
    assert_error!(lab.stream.copy_to_host(&values, &mut host), Error::KernelFault { .. });
    drop(host);
    assert_error!(lab.stream.download(&values), Error::ContextLost { .. });
    Ok(())
}

fn a_transfer_sees_it() -> Outcome {
    let lab = Lab::new()?;
    let values = lab.stream.zeros::<u32>(1000)?;
    let pinned = lab.device.pinned(1000)?;
    lab.delay(&lab.stream, SLOW)?;
    fault(&lab, &lab.stream)?;
    let transfer = lab.stream.download_async(&values, pinned).map_err(|failed| failed.error)?;
    assert_error!(transfer.wait(), Error::KernelFault { kernel, .. } if kernel == "write_to_nowhere");
    Ok(())
}

fn threads_see_it() -> Outcome {
    let lab = Lab::new()?;
    lab.delay(&lab.stream, SLOW)?;
    fault(&lab, &lab.stream)?;
    let seen: Vec<Error> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(|| lab.stream.synchronize().err())).collect();
        workers.into_iter().filter_map(|worker| worker.join().expect("no thread panics")).collect()
    });
    assert_eq!(seen.len(), 8, "every thread gets the error");
    for error in seen {
        assert!(matches!(error, Error::KernelFault { .. } | Error::ContextLost { .. }), "{error:?}");
    }
    Ok(())
}

fn callbacks_of_a_lost_context() -> Outcome {
    let lab = Lab::new()?;
    fault(&lab, &lab.stream)?;
    assert!(lab.stream.synchronize().is_err());
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let refused = lab.stream.on_complete(move || {
        let _ = sender.send(());
    });
    assert_error!(refused, Error::ContextLost { .. });
    // The closure was dropped and not called: its end of the channel is gone.
    assert_eq!(receiver.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
    Ok(())
}

fn a_fault_without_a_pool() -> Outcome {
    drops_are_quiet()
}

/// The driver decides what a fault takes along: some end every context of the process.
fn another_device_goes_on_or_says_why() -> Outcome {
    let (lost, good) = (Lab::on(Device::new(0)?)?, Lab::on(Device::new(1)?)?);
    let mut values = good.stream.zeros::<u32>(1000)?;
    let mut far = lost.stream.zeros::<u32>(1000)?;
    good.stream.copy(&far, &mut values)?;
    good.stream.synchronize()?;
    fault(&lost, &lost.stream)?;
    assert_error!(lost.stream.synchronize(), Error::KernelFault { .. });
    assert_error!(lost.stream.fill(&mut far, 1), Error::ContextLost { .. });
    match good.stream.synchronize() {
        Ok(()) => {
            good.set(&good.stream, values.slice_mut(..)?, 4, 0)?;
            assert_all(&good.stream.download(&values)?, 4, "the other device");
            assert!(!good.device.is_lost());
        }
        Err(error @ Error::ContextLost { device: 1, .. }) => {
            let text = error.to_string();
            assert!(text.contains("write_to_nowhere") && text.contains("all contexts"), "{text}");
            assert!(good.device.is_lost());
        }
        other => return Err(format!("the other device answers {other:?}").into()),
    }
    Ok(())
}
