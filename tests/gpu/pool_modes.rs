//! The pool in each of its modes on a real driver: memory that moves keeps its contents, a limit holds, and the pool's
//! statistics are right.

use selvedge::Error;
use selvedge::driver::{
    BlockState, Device, DeviceBuffer, MemorySnapshot, MemoryTrace, ReplayOptions, Stream,
};

use crate::support::{Outcome, assert_all, assert_error, device_tests};

const PAGED: &[(&str, &str)] = &[("SELVEDGE_POOL", "")];
const PLAIN: &[(&str, &str)] = &[("SELVEDGE_POOL", "plain")];
const DRIVER: &[(&str, &str)] = &[("SELVEDGE_POOL", "driver")];
const MIB: usize = 1 << 20;

device_tests! {
    moved_memory_keeps_the_rest => in_child(PAGED),
    plain_memory => in_child(PLAIN),
    the_drivers_pool => in_child(DRIVER),
    a_limit_is_kept => in_child(PAGED),
    a_limit_is_kept_in_plain_memory => in_child(PLAIN),
    what_the_pool_says => in_child(PAGED),
}

/// A buffer in which every byte is `value`.
fn filled(stream: &Stream, bytes: usize, value: u8) -> selvedge::Result<DeviceBuffer<u8>> {
    let mut buffer = stream.uninitialized::<u8>(bytes)?;
    stream.fill(&mut buffer, value)?;
    Ok(buffer)
}

fn checked(stream: &Stream, buffers: &[(DeviceBuffer<u8>, u8)]) -> Outcome {
    for (buffer, value) in buffers {
        assert_all(&stream.download(buffer)?, *value, "a buffer");
    }
    Ok(())
}

/// Pages are taken out of the holes between buffers that stay.
fn moved_memory_keeps_the_rest() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let mut held = Vec::new();
    for value in 0..32u8 {
        held.push((filled(&stream, 6 * MIB, value)?, value));
    }
    held.retain(|(_, value)| value % 2 == 0);
    device.synchronize()?;
    let reserved = device.pool_statistics().reserved_bytes;
    let large = filled(&stream, 88 * MIB, 77)?;
    let statistics = device.pool_statistics();
    if device.memory_snapshot()?.pool == "paged" {
        assert!(statistics.unmaps > 0, "no page was moved: {statistics:?}");
        assert!(statistics.reserved_bytes <= reserved + 16 * MIB as u64, "{reserved}, then {statistics:?}");
    }
    checked(&stream, &held)?;
    assert_all(&stream.download(&large)?, 77, "the large buffer");
    Ok(())
}

/// Makes and drops buffers of many sizes on two streams; whatever is alive keeps what it holds.
fn churn(device: Device) -> Outcome {
    let streams = [device.stream()?, device.stream()?];
    let mut held = Vec::new();
    for step in 0..120usize {
        let bytes = [700, 90_000, 3 * MIB, 20 * MIB][step * 7 % 4] + step * 13;
        let value = step as u8;
        held.push((filled(&streams[step % 2], bytes, value)?, value));
        if step % 3 > 0 {
            held.swap_remove(step * 5 % held.len());
        }
        if step % 50 == 49 {
            device.trim()?;
        }
    }
    checked(&streams[0], &held)?;
    let asked: usize = held.iter().map(|(buffer, _)| buffer.len()).sum();
    assert_eq!(device.pool_statistics().requested_bytes, asked as u64);
    Ok(())
}

fn plain_memory() -> Outcome {
    let device = Device::new(0)?;
    churn(device)?;
    let snapshot = device.memory_snapshot()?;
    assert_eq!((snapshot.pool.as_str(), snapshot.statistics.maps), ("plain", 0));
    device.trim()?;
    assert_eq!(device.pool_statistics().reserved_bytes, 0);
    Ok(())
}

fn the_drivers_pool() -> Outcome {
    let device = Device::new(0)?;
    churn(device)?;
    assert_eq!(device.memory_snapshot()?.pool, "driver");
    device.trim()?;
    let before = device.memory_info()?.free;
    let stream = device.stream()?;
    drop(filled(&stream, 1 << 30, 1)?);
    stream.synchronize()?;
    let held = device.memory_info()?.free;
    assert!(held + (1 << 29) < before, "the pool did not keep what was freed: {before}, then {held}");
    device.trim()?;
    let after = device.memory_info()?.free;
    assert!(after + (64 << 20) >= before, "a trim left memory in the pool: {before}, then {after}");
    Ok(())
}

fn a_limit_is_kept() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let limit = 256 * MIB as u64;
    device.set_memory_limit(Some(limit))?;
    let held = filled(&stream, 192 * MIB, 1)?;
    let refused = stream.uninitialized::<u8>(192 * MIB);
    assert_error!(refused, Error::OutOfMemory { limit: Some(found), holders, .. } if found == limit && holders.contains("1 x "));
    drop(held);
    let again = filled(&stream, 192 * MIB, 2)?;
    assert_all(&stream.download(&again)?, 2, "a buffer after the limit was met");
    assert!(device.pool_statistics().peak_reserved_bytes <= limit, "{:?}", device.pool_statistics());
    device.set_memory_limit(None)?;
    stream.uninitialized::<u8>(192 * MIB)?;
    Ok(())
}

fn a_limit_is_kept_in_plain_memory() -> Outcome {
    a_limit_is_kept()
}

/// Scope, snapshot and trace of the same few buffers.
fn what_the_pool_says() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    device.start_memory_trace()?;
    let scope = device.memory_scope("two buffers");
    let first = filled(&stream, 3 * MIB, 1)?;
    drop(filled(&stream, 40 * MIB, 2)?);
    let snapshot = device.memory_snapshot()?;
    assert_eq!(MemorySnapshot::from_json(&snapshot.to_json())?, snapshot);
    let blocks = || snapshot.segments.iter().flat_map(|segment| &segment.blocks);
    let sum = |state| -> u64 { blocks().filter(|block| block.state == state).map(|block| block.bytes).sum() };
    let statistics = snapshot.statistics;
    assert_eq!(
        (sum(BlockState::Live), sum(BlockState::Cached)),
        (statistics.live_bytes, statistics.cached_bytes)
    );
    assert!((0.0..=1.0).contains(&statistics.fragmentation()));
    let found = scope.finish();
    assert!(found.peak_bytes >= 43 * MIB as u64 && found.end_bytes == statistics.live_bytes, "{found:?}");
    drop(first);
    let trace = device.finish_memory_trace()?;
    assert_eq!(MemoryTrace::from_json(&trace.to_json())?, trace);
    assert_eq!(trace.requests(), 2);
    let report = trace.replay(&ReplayOptions::default())?;
    assert!(report.ratio() >= 1.0, "{report:?}");
    Ok(())
}
