//! Page-locked memory: asynchronous copies own it until they are done, and a dropped one keeps it until then.

use selvedge::Error;
use selvedge::driver::{Device, PinnedBuffer};

use crate::support::{Lab, Outcome, SLOW, assert_all, assert_open, device_tests};

device_tests! {
    a_pinned_buffer_is_a_slice, an_upload_gives_its_buffer_back, a_download_gives_its_buffer_back,
    a_dropped_upload_still_arrives, memory_of_a_dropped_download_is_not_reused, a_registered_vector_comes_back,
    a_registered_vector_outlives_its_dropped_copy, blocks_are_reused, a_wrong_length_gives_the_buffer_back, empty_transfers,
    a_transfer_does_not_wait_for_later_work,
    pinned_memory_outlives_the_stream, both_directions_at_once,
}

fn filled(device: Device, length: usize, value: u32) -> selvedge::Result<PinnedBuffer<u32>> {
    let mut buffer = device.pinned(length)?;
    buffer.fill(value);
    Ok(buffer)
}

fn a_pinned_buffer_is_a_slice() -> Outcome {
    let device = Device::new(0)?;
    let mut buffer = device.pinned::<u64>(1000)?;
    for (index, element) in buffer.iter_mut().enumerate() {
        *element = index as u64;
    }
    assert_eq!((buffer.len(), buffer[999], buffer.device()), (1000, 999, device));
    let stream = device.stream()?;
    // A plain slice to the synchronous copies too.
    assert_eq!(stream.download(&stream.upload(&buffer)?)?, buffer[..]);
    assert_eq!(buffer.into_vec()?.len(), 1000);
    Ok(())
}

fn an_upload_gives_its_buffer_back() -> Outcome {
    let lab = Lab::new()?;
    let source = filled(lab.device, 1 << 16, 3)?;
    let place = source.as_ptr();
    let mut to = lab.stream.zeros::<u32>(1 << 16)?;
    lab.delay(&lab.stream, SLOW)?;
    let transfer = lab.stream.upload_async(source, &mut to).map_err(|failed| failed.error)?;
    assert_open(!transfer.is_complete()?, "an upload behind a slow kernel");
    let mut source = transfer.wait()?;
    assert_eq!(source.as_ptr(), place);
    source.fill(4);
    assert_all(&lab.stream.download(&to)?, 3, "the device");
    Ok(())
}

fn a_download_gives_its_buffer_back() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(1 << 16)?;
    let destination = filled(lab.device, 1 << 16, 0)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 8, SLOW)?;
    let other = lab.device.stream()?;
    let transfer = other.download_async(&values, destination).map_err(|failed| failed.error)?;
    assert_open(!transfer.is_complete()?, "a download behind a slow kernel");
    // Overwritten only after it was read.
    lab.set(&lab.stream, values.slice_mut(..)?, 9, 0)?;
    assert_all(&transfer.wait()?, 8, "the download");
    assert_all(&lab.stream.download(&values)?, 9, "the later write");
    Ok(())
}

fn a_dropped_upload_still_arrives() -> Outcome {
    let lab = Lab::new()?;
    let mut to = lab.stream.zeros::<u32>(1 << 16)?;
    let source = filled(lab.device, 1 << 16, 6)?;
    lab.delay(&lab.stream, SLOW)?;
    drop(lab.stream.upload_async(source, &mut to).map_err(|failed| failed.error)?);
    assert_open(!lab.stream.is_idle()?, "the drop");
    // Were the memory free, this would write over it.
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(filled(lab.device, 1 << 16, 7)?);
    }
    assert_all(&lab.stream.download(&to)?, 6, "the device");
    Ok(())
}

fn memory_of_a_dropped_download_is_not_reused() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(1 << 16)?;
    let destination = filled(lab.device, 1 << 16, 0)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 1, SLOW)?;
    drop(lab.stream.download_async(&values, destination).map_err(|failed| failed.error)?);
    assert_open(!lab.stream.is_idle()?, "the drop");
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(filled(lab.device, 1 << 16, 7)?);
    }
    lab.stream.synchronize()?;
    for other in &others {
        assert_all(other, 7, "memory taken during the copy");
    }
    Ok(())
}

fn a_registered_vector_comes_back() -> Outcome {
    let lab = Lab::new()?;
    let vector: Vec<u32> = (0..100_000).collect();
    let (place, wanted) = (vector.as_ptr(), vector.clone());
    let registered = lab.device.register(vector).map_err(|failed| failed.error)?;
    let mut to = lab.stream.zeros::<u32>(100_000)?;
    lab.delay(&lab.stream, SLOW / 2)?;
    let transfer = lab.stream.upload_async(registered, &mut to).map_err(|failed| failed.error)?;
    let vector = transfer.wait()?.into_vec()?;
    assert_eq!(vector.as_ptr(), place, "no copy");
    assert_eq!(vector, wanted);
    assert_eq!(lab.stream.download(&to)?, wanted);
    // Unlocked, so it can be locked again.
    let again = lab.device.register(vector).map_err(|failed| failed.error)?;
    drop(again);
    assert_eq!(lab.device.register(Vec::<u8>::new()).map_err(|failed| failed.error)?.into_vec()?, [0u8; 0]);
    Ok(())
}

fn a_registered_vector_outlives_its_dropped_copy() -> Outcome {
    let lab = Lab::new()?;
    let mut to = lab.stream.zeros::<u32>(100_000)?;
    let registered = lab.device.register(vec![5u32; 100_000]).map_err(|failed| failed.error)?;
    lab.delay(&lab.stream, SLOW)?;
    drop(lab.stream.upload_async(registered, &mut to).map_err(|failed| failed.error)?);
    let noise: Vec<Vec<u32>> = (0..16).map(|_| vec![6u32; 100_000]).collect();
    assert_all(&lab.stream.download(&to)?, 5, "the device");
    assert_eq!(noise.len(), 16);
    Ok(())
}

fn blocks_are_reused() -> Outcome {
    let device = Device::new(0)?;
    let first = device.pinned::<u8>(1 << 20)?;
    let place = first.as_ptr();
    drop(first);
    let second = device.pinned::<u8>((1 << 20) - 100)?;
    assert_eq!(second.as_ptr(), place);
    Ok(())
}

fn a_wrong_length_gives_the_buffer_back() -> Outcome {
    let lab = Lab::new()?;
    let mut to = lab.stream.upload(&[1u32; 10])?;
    let failed = match lab.stream.upload_async(filled(lab.device, 11, 2)?, &mut to) {
        Err(failed) => failed,
        Ok(_) => return Err("lengths differ".into()),
    };
    assert!(matches!(*failed.error, Error::LengthMismatch { wanted: 10, found: 11, .. }), "{failed}");
    assert_eq!(failed.buffer.ok_or("the buffer is gone")?[..], [2; 11]);
    assert_all(&lab.stream.download(&to)?, 1, "the device");
    let failed = lab.stream.download_async(&to, filled(lab.device, 9, 2)?).err().ok_or("lengths differ")?;
    assert_eq!(failed.buffer.ok_or("the buffer is gone")?.len(), 9);
    Ok(())
}

fn empty_transfers() -> Outcome {
    let lab = Lab::new()?;
    let mut empty = lab.stream.zeros::<f32>(0)?;
    lab.delay(&lab.stream, SLOW)?;
    let transfer =
        lab.stream.upload_async(lab.device.pinned(0)?, &mut empty).map_err(|failed| failed.error)?;
    assert!(transfer.is_complete()?);
    assert!(transfer.wait()?.is_empty());
    assert_open(!lab.stream.is_idle()?, "nothing to copy, nothing to wait for");
    lab.stream.synchronize()?;
    Ok(())
}

fn pinned_memory_outlives_the_stream() -> Outcome {
    let lab = Lab::new()?;
    let other = lab.device.stream()?;
    let mut to = lab.stream.zeros::<u32>(1 << 16)?;
    let source = filled(lab.device, 1 << 16, 6)?;
    lab.delay(&other, SLOW)?;
    let transfer = other.upload_async(source, &mut to).map_err(|failed| failed.error)?;
    drop(other);
    assert_all(&transfer.wait()?, 6, "the host side");
    assert_all(&lab.stream.download(&to)?, 6, "the device");
    Ok(())
}

fn both_directions_at_once() -> Outcome {
    let lab = Lab::new()?;
    let (up, down) = (lab.device.stream()?, lab.device.stream()?);
    let mut sources: Vec<PinnedBuffer<u32>> = Vec::new();
    let mut sinks = Vec::new();
    for index in 0..8u32 {
        sources.push(filled(lab.device, 1 << 18, index)?);
        sinks.push(filled(lab.device, 1 << 18, 1000)?);
    }
    let mut uploads = Vec::new();
    let mut downloads = Vec::new();
    for (source, sink) in sources.into_iter().zip(sinks) {
        let mut on_device = up.uninitialized::<u32>(1 << 18)?;
        uploads.push(up.upload_async(source, &mut on_device).map_err(|failed| failed.error)?);
        lab.increment(&lab.stream, on_device.slice_mut(..)?, 0)?;
        downloads.push(down.download_async(&on_device, sink).map_err(|failed| failed.error)?);
    }
    for (index, (upload, download)) in (0u32..).zip(uploads.into_iter().zip(downloads)) {
        assert_all(&upload.wait()?, index, "the source");
        assert_all(&download.wait()?, index + 1, "the result");
    }
    Ok(())
}

fn a_transfer_does_not_wait_for_later_work() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(1 << 16)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 1, 0)?;
    let sinks = [filled(lab.device, 1 << 16, 0)?, filled(lab.device, 1 << 16, 0)?];
    lab.device.synchronize()?;
    // Two transfers, of which only the first has other work behind it when it is asked for.
    let mut transfers = Vec::new();
    for sink in sinks {
        transfers.push(lab.stream.download_async(&values, sink).map_err(|failed| failed.error)?);
        lab.set(&lab.stream, values.slice_mut(..)?, 2, SLOW)?;
    }
    let second = transfers.pop().ok_or("two transfers")?;
    let first = transfers.pop().ok_or("two transfers")?;
    assert_all(&first.wait()?, 1, "the first");
    assert_open(!second.is_complete()?, "the second transfer behind a slow kernel");
    assert_all(&second.wait()?, 2, "the second");
    assert_open(!lab.stream.is_idle()?, "work behind the second");
    lab.stream.synchronize()?;
    let third =
        lab.stream.download_async(&values, filled(lab.device, 1 << 16, 0)?).map_err(|failed| failed.error)?;
    while !third.is_complete()? {}
    assert_all(&third.wait()?, 2, "the third, with nothing behind it");
    Ok(())
}
