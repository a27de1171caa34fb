//! The memory pool re-uses blocks, counts them rightly, gives them back when asked and when memory runs out, and can be
//! turned off. Each test is a process of its own, because the mode is read once and the counts are the device's.

use selvedge::Error;
use selvedge::driver::Device;

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, assert_error, device_tests};

const CACHED: &[(&str, &str)] = &[("SELVEDGE_POOL", "")];
const UNPOOLED: &[(&str, &str)] = &[("SELVEDGE_POOL", "none")];

device_tests! {
    blocks_are_reused => in_child(CACHED),
    counts_add_up => in_child(CACHED),
    trim_gives_memory_back => in_child(CACHED),
    cached_memory_is_given_up_when_it_is_needed => in_child(CACHED) => needs(Need::FreeRunning),
    a_closed_streams_blocks_serve_others => in_child(CACHED),
    without_a_pool_each_buffer_is_the_drivers => in_child(UNPOOLED),
    without_a_pool_memory_is_kept_until_it_is_idle => in_child(UNPOOLED),
    poisoned_buffers_show_what_was_not_written => in_child(&[("SELVEDGE_POOL", "poison")]),
    an_unknown_mode_is_an_error => in_child(&[("SELVEDGE_POOL", "nonsense")]),
}

fn blocks_are_reused() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let first = stream.uninitialized::<u8>(100_000)?;
    let address = first.address();
    drop(first);
    let second = stream.uninitialized::<u8>(100_000)?;
    assert_eq!(second.address(), address);
    let statistics = stream.device().pool_statistics();
    assert_eq!((statistics.requests, statistics.hits, statistics.driver_allocations), (2, 1, 1));
    Ok(())
}

fn counts_add_up() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let sizes = [1usize, 512, 513, 5000, 1 << 20, (3 << 20) + 1];
    let buffers =
        sizes.iter().map(|&size| stream.uninitialized::<u8>(size)).collect::<selvedge::Result<Vec<_>>>()?;
    let live = device.pool_statistics();
    let asked: usize = sizes.iter().sum();
    assert!(
        live.live_bytes as usize >= asked && live.live_bytes as usize <= asked * 9 / 8 + 512 * sizes.len()
    );
    assert_eq!((live.requested_bytes as usize, live.peak_live_bytes), (asked, live.live_bytes));
    // Memory comes in pages.
    assert_eq!(live.cached_bytes + live.live_bytes, live.reserved_bytes);
    drop(buffers);
    let dropped = device.pool_statistics();
    assert_eq!((dropped.live_bytes, dropped.cached_bytes), (0, live.reserved_bytes));
    assert_eq!((dropped.peak_live_bytes, dropped.requested_bytes), (live.live_bytes, 0));
    drop(stream);
    let closed = device.pool_statistics();
    assert_eq!((closed.live_bytes, closed.cached_bytes), (0, live.reserved_bytes));
    device.trim()?;
    let trimmed = device.pool_statistics();
    assert_eq!((trimmed.live_bytes, trimmed.cached_bytes, trimmed.reserved_bytes), (0, 0, 0));
    Ok(())
}

fn trim_gives_memory_back() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    drop(stream.uninitialized::<u8>(1 << 20)?);
    device.trim()?;
    let before = device.memory_info()?.free;
    drop(stream.uninitialized::<u8>(1 << 30)?);
    let cached = device.memory_info()?.free;
    assert!(before - cached >= 1 << 30, "{before} {cached}");
    device.trim()?;
    let after = device.memory_info()?.free;
    assert!(after >= cached + (1 << 30), "{cached} {after}");
    Ok(())
}

fn cached_memory_is_given_up_when_it_is_needed() -> Outcome {
    let device = Device::new(0)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let free = device.memory_info()?.free as usize;
    // Another stream and another size: nothing of what is cached fits.
    drop(first.uninitialized::<u8>(free / 10 * 6)?);
    assert!(device.pool_statistics().cached_bytes as usize >= free / 10 * 6);
    let large = second.uninitialized::<u8>(free / 10 * 7)?;
    // No more than pages in which other things are.
    assert!(device.pool_statistics().cached_bytes < 256 << 20);
    match second.uninitialized::<u8>(free / 10 * 5) {
        Err(Error::OutOfMemory { requested, free: left, total, .. }) => {
            assert!(requested as usize >= free / 10 * 5 && left < requested && left < total);
        }
        other => return Err(format!("{other:?}").into()),
    }
    drop(large);
    let again = second.uninitialized::<u8>(free / 10 * 5)?;
    assert!(!again.is_empty());
    Ok(())
}

fn a_closed_streams_blocks_serve_others() -> Outcome {
    let lab = Lab::new()?;
    let closing = lab.device.stream()?;
    let mut buffer = closing.zeros::<u32>(777_777)?;
    let address = buffer.address();
    lab.set(&closing, buffer.slice_mut(..)?, 1, SLOW)?;
    drop((buffer, closing));
    // Else there would be new memory, rather than a wait.
    lab.device.set_memory_limit(Some(lab.device.pool_statistics().reserved_bytes))?;
    // Other free blocks go first.
    let mut others = Vec::new();
    let mut next = loop {
        let next = lab.stream.uninitialized::<u32>(777_777)?;
        if next.address() == address {
            break next;
        }
        others.push(next);
    };
    lab.set(&lab.stream, next.slice_mut(..)?, 2, 0)?;
    lab.device.synchronize()?;
    assert_all(&lab.stream.download(&next)?, 2, "the slow kernel of the closed stream came first");
    Ok(())
}

fn without_a_pool_each_buffer_is_the_drivers() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    for _ in 0..5 {
        let buffer = stream.upload(&[1u8; 1000])?;
        assert_eq!(device.pool_statistics().live_bytes, 1000, "not rounded up");
        drop(buffer);
        stream.synchronize()?;
    }
    let statistics = device.pool_statistics();
    assert_eq!((statistics.hits, statistics.cached_bytes, statistics.live_bytes), (0, 0, 0));
    assert_eq!(statistics.driver_allocations, 5);
    Ok(())
}

fn without_a_pool_memory_is_kept_until_it_is_idle() -> Outcome {
    let lab = Lab::new()?;
    let reader = lab.device.stream()?;
    for _ in 0..3 {
        let source = lab.stream.upload(&vec![5u32; 1 << 16])?;
        let mut out = reader.zeros::<u32>(1 << 16)?;
        lab.copy(&reader, source.slice(..)?, out.slice_mut(..)?, SLOW / 2)?;
        drop(source);
        let other = lab.stream.upload(&vec![6u32; 1 << 16])?;
        assert_all(&reader.download(&out)?, 5, "what the kernel read");
        drop(other);
    }
    let before = lab.device.memory_info()?.free;
    drop(lab.stream.uninitialized::<u8>(1 << 30)?);
    // Freed by the next call that waits for the device, not by the drop.
    lab.device.synchronize()?;
    let after = lab.device.memory_info()?.free;
    assert!(after + (64 << 20) >= before, "1 GiB is still taken: {before} {after}");
    Ok(())
}

fn poisoned_buffers_show_what_was_not_written() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for _ in 0..2 {
        let buffer = stream.uninitialized::<u8>(5000)?;
        assert_all(&stream.download(&buffer)?, 0xFF, "a new buffer");
        let zeros = stream.zeros::<u8>(5000)?;
        assert_all(&stream.download(&zeros)?, 0, "zeros");
    }
    Ok(())
}

fn an_unknown_mode_is_an_error() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let made = stream.zeros::<u8>(1);
    assert_error!(made, Error::InvalidArgument { operation: "SELVEDGE_POOL", found, wanted } if found == "nonsense" && wanted.contains("none"));
    Ok(())
}
