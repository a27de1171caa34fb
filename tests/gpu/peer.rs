//! Two devices: copies between them are ordered like any other, kernels reach across where access was given, and what
//! cannot be is an error.

use selvedge::Error;
use selvedge::driver::{Copy2d, Device};

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, assert_error, assert_open, device_tests};

device_tests! {
    copies_go_both_ways => needs(Need::TwoDevices),
    a_copy_waits_for_the_other_device => needs(Need::TwoDevices),
    the_other_device_waits_for_a_copy => needs(Need::TwoDevices),
    memory_dropped_on_one_device_is_kept_for_the_other => needs(Need::TwoDevices),
    access_is_given_and_taken => needs(Need::TwoDevices),
    mixed_devices_are_refused => needs(Need::TwoDevices),
    a_device_is_no_peer_of_itself,
}

const LENGTH: usize = 1 << 18;

fn pair() -> selvedge::Result<(Lab, Lab)> {
    Ok((Lab::on(Device::new(0)?)?, Lab::on(Device::new(1)?)?))
}

fn copies_go_both_ways() -> Outcome {
    let (here, there) = pair()?;
    let values: Vec<u32> = (0..LENGTH as u32).collect();
    let source = here.stream.upload(&values)?;
    let mut far = there.stream.zeros::<u32>(LENGTH)?;
    let mut back = here.stream.zeros::<u32>(LENGTH)?;
    // Pushed by one side's stream and pulled by the other's.
    here.stream.copy(&source, &mut far)?;
    assert_eq!(there.stream.download(&far)?, values);
    here.stream.copy(&far, &mut back)?;
    assert_eq!(here.stream.download(&back)?, values);
    there.stream.fill(&mut far, 0)?;
    there.stream.copy(&source.slice(10..20)?, &mut far.slice_mut(100..110)?)?;
    let result = there.stream.download(&far)?;
    assert_eq!(result[100..110], values[10..20]);
    assert_all(&result[..100], 0, "before");
    assert_all(&result[110..], 0, "behind");
    Ok(())
}

fn a_copy_waits_for_the_other_device() -> Outcome {
    let (here, there) = pair()?;
    let mut source = here.stream.zeros::<u32>(LENGTH)?;
    let mut far = there.stream.zeros::<u32>(LENGTH)?;
    there.stream.copy(&source, &mut far)?;
    there.stream.synchronize()?;
    here.set(&here.stream, source.slice_mut(..)?, 3, SLOW)?;
    there.stream.copy(&source, &mut far)?;
    assert_open(!here.stream.is_idle()?, "the copy's issue");
    assert_all(&there.stream.download(&far)?, 3, "the copy");
    Ok(())
}

fn the_other_device_waits_for_a_copy() -> Outcome {
    let (here, there) = pair()?;
    let mut source = here.stream.upload(&vec![4u32; LENGTH])?;
    let mut far = there.stream.zeros::<u32>(LENGTH)?;
    let mut seen = there.stream.zeros::<u32>(LENGTH)?;
    there.delay(&there.stream, SLOW)?;
    there.stream.copy(&source, &mut far)?;
    // Written over by its own device only after the other has read it.
    here.set(&here.stream, source.slice_mut(..)?, 5, 0)?;
    assert_open(!there.stream.is_idle()?, "the write's issue");
    there.copy(&there.stream, far.slice(..)?, seen.slice_mut(..)?, 0)?;
    assert_all(&there.stream.download(&seen)?, 4, "what the copy read");
    assert_all(&here.stream.download(&source)?, 5, "the write");
    Ok(())
}

fn memory_dropped_on_one_device_is_kept_for_the_other() -> Outcome {
    let (here, there) = pair()?;
    let source = here.stream.upload(&vec![6u32; LENGTH])?;
    let mut far = there.stream.zeros::<u32>(LENGTH)?;
    there.delay(&there.stream, SLOW)?;
    there.stream.copy(&source, &mut far)?;
    drop(source);
    let mut next = here.stream.uninitialized::<u32>(LENGTH)?;
    here.set(&here.stream, next.slice_mut(..)?, 7, 0)?;
    assert_open(!there.stream.is_idle()?, "the drop");
    assert_all(&there.stream.download(&far)?, 6, "the copy");
    assert_all(&here.stream.download(&next)?, 7, "the next buffer");
    Ok(())
}

fn access_is_given_and_taken() -> Outcome {
    let (here, there) = pair()?;
    let far = there.stream.upload(&vec![8u32; LENGTH])?;
    let mut near = here.stream.zeros::<u32>(LENGTH)?;
    let refused = here.copy(&here.stream, far.slice(..)?, near.slice_mut(..)?, 0);
    assert_error!(refused, Error::DeviceMismatch { .. });
    if !here.device.can_access_peer(&there.device)? {
        assert!(here.device.enable_peer_access(&there.device).is_err());
        return Ok(());
    }
    here.device.enable_peer_access(&there.device)?;
    here.device.enable_peer_access(&there.device)?;
    here.copy(&here.stream, far.slice(..)?, near.slice_mut(..)?, 0)?;
    assert_all(&here.stream.download(&near)?, 8, "a kernel's read of the other device");
    // The other direction was not given.
    let near_of_there =
        there.copy(&there.stream, near.slice(..)?, there.stream.zeros::<u32>(LENGTH)?.slice_mut(..)?, 0);
    assert_error!(near_of_there, Error::DeviceMismatch { .. });
    here.device.disable_peer_access(&there.device)?;
    here.device.disable_peer_access(&there.device)?;
    let refused = here.copy(&here.stream, far.slice(..)?, near.slice_mut(..)?, 0);
    assert_error!(refused, Error::DeviceMismatch { .. });
    Ok(())
}

fn mixed_devices_are_refused() -> Outcome {
    let (here, there) = pair()?;
    let mut far = there.stream.upload(&[1u32; 100])?;
    assert_error!(here.stream.fill(&mut far, 2), Error::DeviceMismatch { .. });
    assert_error!(here.stream.download(&far), Error::DeviceMismatch { .. });
    assert_error!(here.stream.copy_from_host(&[2; 100], &mut far), Error::DeviceMismatch { .. });
    let shape = Copy2d { width: 10, height: 10, source_pitch: 10, destination_pitch: 10 };
    assert_error!(here.stream.copy_2d_from_host(&[2; 100], &mut far, shape), Error::DeviceMismatch { .. });
    let launched = here.set(&there.stream, far.slice_mut(..)?, 2, 0);
    assert_error!(launched, Error::DeviceMismatch { .. });
    assert_all(&there.stream.download(&far)?, 1, "nothing was launched");
    Ok(())
}

fn a_device_is_no_peer_of_itself() -> Outcome {
    let device = Device::new(0)?;
    assert!(device.enable_peer_access(&device).is_err());
    assert!(!device.is_lost());
    Ok(())
}
