//! The memory pool on the fake driver: the blocks that it reuses and caches, and that its accounting is the driver's.

use selvedge::Error;
use selvedge::driver::{
    Attribute, BlockState, Device, DeviceBuffer, Function, LaunchConfig, MemorySnapshot, MemoryTrace,
    ReplayOptions, Stream,
};

use super::children;
use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const MIB: usize = 1 << 20;

fn ensure(holds: bool, what: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(what.into().into()) }
}

fn write(make: &Function, stream: &Stream, buffer: &mut DeviceBuffer<u8>) -> Outcome {
    let length = buffer.len() as u64;
    // SAFETY: the fake driver's kernel writes as many bytes as its arguments say.
    unsafe { make.launch(stream, LaunchConfig::new(1, 32), (buffer, length, 1u32))? };
    Ok(())
}

/// At the limit, the pool reuses another stream's block, behind a wait in stream order.
fn hand_over(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let make = device.load(PTX.as_bytes())?.function("make")?;
    let (first, second) = (device.stream()?, device.stream()?);
    let mut block = first.uninitialized::<u8>(30 * MIB)?;
    write(&make, &first, &mut block)?;
    let address = block.address();
    drop(block);
    device.set_memory_limit(Some(device.pool_statistics().reserved_bytes))?;
    let mut taken = second.uninitialized::<u8>(30 * MIB)?;
    ensure(taken.address() == address, "the other stream's block was not taken")?;
    let statistics = device.pool_statistics();
    ensure(statistics.hand_overs == 1 && statistics.hits == 1, format!("{statistics:?}"))?;
    write(&make, &second, &mut taken)?;
    // Below the limit there is no need to wait.
    device.set_memory_limit(None)?;
    let large = second.uninitialized::<u8>(500 * MIB)?;
    let mut other = second.uninitialized::<u8>(30 * MIB)?;
    write(&make, &second, &mut other)?;
    drop(other);
    drop(first.uninitialized::<u8>(30 * MIB)?);
    ensure(device.pool_statistics().hand_overs == 1, "a wait below the limit")?;
    drop((taken, large));
    // Any stream may use a block whose work is done, without a wait.
    device.synchronize()?;
    device.set_memory_limit(Some(device.pool_statistics().reserved_bytes))?;
    let events = fake.call_count("cuStreamWaitEvent");
    let again = [first.uninitialized::<u8>(30 * MIB)?, first.uninitialized::<u8>(30 * MIB)?];
    ensure(again.iter().any(|block| block.address() == address), "a block that is done was not taken")?;
    ensure(fake.call_count("cuStreamWaitEvent") == events, "a wait for what is done")
}

/// Pages under work that has not finished stay where they are.
fn moving(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let make = device.load(PTX.as_bytes())?.function("make")?;
    let stream = device.stream()?;
    let mut buffers = Vec::new();
    for _ in 0..32 {
        let mut buffer = stream.uninitialized::<u8>(6 * MIB)?;
        write(&make, &stream, &mut buffer)?;
        buffers.push(buffer);
    }
    // Every other one, so that nothing can be joined.
    let mut at = 0;
    buffers.retain(|_| {
        at += 1;
        at % 2 == 0
    });
    let busy = stream.uninitialized::<u8>(40 * MIB)?;
    ensure(device.pool_statistics().unmaps == 0, "a page in use was moved")?;
    drop(busy);
    device.synchronize()?;
    let reserved = device.pool_statistics().reserved_bytes;
    let mut large = stream.uninitialized::<u8>(88 * MIB)?;
    write(&make, &stream, &mut large)?;
    let statistics = device.pool_statistics();
    ensure(statistics.unmaps > 0, "no page was moved")?;
    ensure(
        statistics.reserved_bytes <= reserved + 16 * MIB as u64,
        format!("{reserved}, then {statistics:?}"),
    )?;
    stream.synchronize()?;
    Ok(())
}

/// A limit holds in every mode, and an allocation that it refuses succeeds after a drop.
fn cap(_: &Fake) -> Outcome {
    let device = Device::new(0)?;
    // Of the environment first, then of the program.
    for limit in [None, Some(16 * MIB as u64)] {
        if limit.is_some() {
            device.set_memory_limit(limit)?;
        }
        let wanted = limit.unwrap_or(8 * MIB as u64);
        let size = wanted as usize / 4 * 3;
        let stream = device.stream()?;
        let buffer = stream.uninitialized::<u8>(size)?;
        match stream.uninitialized::<u8>(size) {
            Err(error @ Error::OutOfMemory { limit: Some(limit), live, .. })
                if limit == wanted && live >= size as u64 =>
            {
                let text = error.to_string();
                ensure(text.contains("SELVEDGE_MEMORY_LIMIT") && text.contains("1 x "), text)?;
            }
            other => return Err(format!("over the limit: {other:?}").into()),
        }
        drop(buffer);
        device.synchronize()?;
        let again = stream.uninitialized::<u8>(size)?;
        drop(again);
        // Another arena has to have it now.
        let small =
            (0..size / MIB).map(|_| stream.uninitialized::<u8>(MIB / 2)).collect::<Result<Vec<_>, _>>();
        ensure(small.is_ok(), format!("{:?}", small.as_ref().err()))?;
        let statistics = device.pool_statistics();
        ensure(statistics.peak_reserved_bytes <= wanted, format!("{wanted}: {statistics:?}"))?;
        drop(small);
        device.trim()?;
    }
    ensure(device.set_memory_limit(Some(0)).is_err(), "a limit of nothing")
}

/// Snapshot, statistics and the driver's own accounting agree at every step.
fn accounting(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let streams = [device.stream()?, device.stream()?, device.stream()?];
    let mut random = super::random::Random::new(1);
    let mut held: Vec<DeviceBuffer<u8>> = Vec::new();
    for step in 0..600 {
        if held.len() < 40 && random.below(3) > 0 {
            let most = [1000, 200_000, 3 * MIB, 40 * MIB][random.below(4)];
            held.push(streams[random.below(3)].uninitialized(1 + random.below(most))?);
        } else if !held.is_empty() {
            drop(held.swap_remove(random.below(held.len())));
        }
        if step % 97 == 96 {
            device.trim()?;
        }
        let snapshot = device.memory_snapshot()?;
        ensure(MemorySnapshot::from_json(&snapshot.to_json())? == snapshot, "the text is another snapshot")?;
        let sum = |state| -> u64 {
            let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
            blocks.filter(|block| block.state == state).map(|block| block.bytes).sum()
        };
        let statistics = snapshot.statistics;
        let live = fake.live_on(0);
        let asked: u64 = held.iter().map(|buffer| buffer.len() as u64).sum();
        ensure(statistics.requested_bytes == asked, format!("step {step}: {asked} live, {statistics:?}"))?;
        ensure(statistics == device.pool_statistics(), format!("step {step}: other numbers"))?;
        ensure(sum(BlockState::Live) == statistics.live_bytes, format!("step {step}: live {statistics:?}"))?;
        if matches!(snapshot.pool.as_str(), "paged" | "plain") {
            let cached = sum(BlockState::Cached);
            ensure(
                cached == statistics.cached_bytes,
                format!("step {step}: {cached} cached, {statistics:?}"),
            )?;
            let driver = live.physical_bytes + live.bytes;
            ensure(driver == statistics.reserved_bytes, format!("step {step}: {driver}, {statistics:?}"))?;
        } else {
            ensure(live.blocks >= held.len() as u64, format!("step {step}: {live:?}"))?;
        }
        for buffer in &held {
            let inside = snapshot.segments.iter().any(|segment| {
                segment.blocks.iter().any(|block| {
                    block.state == BlockState::Live
                        && segment.address + block.offset == buffer.address()
                        && block.bytes >= buffer.len() as u64
                })
            });
            ensure(inside, format!("step {step}: {buffer:?} is in no live block"))?;
        }
    }
    drop(held);
    device.trim()?;
    let statistics = device.pool_statistics();
    ensure(
        (statistics.live_bytes, statistics.cached_bytes, statistics.requested_bytes) == (0, 0, 0),
        format!("{statistics:?}"),
    )?;
    ensure(device.memory_snapshot()?.segments.is_empty(), "segments after a trim")
}

/// Scopes see the peak of their own time.
fn scopes(_: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let buffer = stream.uninitialized::<u8>(MIB)?;
    drop(stream.uninitialized::<u8>(16 * MIB)?);
    let outer = device.memory_scope("outer");
    drop(stream.uninitialized::<u8>(4 * MIB)?);
    let inner = device.memory_scope("inner");
    let more = stream.uninitialized::<u8>(2 * MIB)?;
    let inner = inner.finish();
    drop(buffer);
    let outer = outer.finish();
    drop(more);
    let mib = |count: usize| (count * MIB) as u64;
    let found = (inner.start_bytes, inner.peak_bytes, inner.end_bytes);
    ensure(found == (mib(1), mib(3), mib(3)), inner.to_string())?;
    let found = (outer.start_bytes, outer.peak_bytes, outer.end_bytes);
    ensure(found == (mib(1), mib(5), mib(2)) && outer.to_string().starts_with("outer:"), outer.to_string())?;
    ensure(device.pool_statistics().peak_live_bytes == mib(17), "the device's own peak")
}

/// A recorded trace is what was asked, and can be replayed.
fn traces(_: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let (first, second) = (device.stream()?, device.stream()?);
    ensure(device.finish_memory_trace().is_err(), "a trace that nobody started")?;
    let before = first.uninitialized::<u8>(100)?;
    device.start_memory_trace()?;
    ensure(device.start_memory_trace().is_err(), "two traces")?;
    let a = second.uninitialized::<u8>(1000)?;
    let b = first.uninitialized::<u32>(1000)?;
    drop((before, a));
    drop(first.uninitialized::<u8>(7)?);
    let trace = device.finish_memory_trace()?;
    drop(b);
    let text = trace.to_json();
    ensure(text.contains("[1,1000],[2,4000],[0],[2,7],[2]\n"), text.clone())?;
    ensure(MemoryTrace::from_json(&text)? == trace, "the text is another trace")?;
    let report = trace.replay(&ReplayOptions::default())?;
    ensure(
        report.statistics.requests == 3 && report.statistics.peak_requested_bytes == 5000,
        format!("{report:?}"),
    )
}

/// Settings that cannot be are errors of the first allocation that name them.
fn settings(_: &Fake) -> Outcome {
    let made = Device::new(0)?.stream()?.zeros::<u8>(1);
    let wrong =
        if std::env::var("SELVEDGE_POOL").is_ok() { "SELVEDGE_POOL" } else { "SELVEDGE_MEMORY_LIMIT" };
    match made {
        Err(Error::InvalidArgument { operation, found, .. }) if operation == wrong && found == "nonsense" => {
            Ok(())
        }
        other => Err(format!("{other:?}").into()),
    }
}

/// A peer reaches what there was before it was let in, and what came later.
fn peers(fake: &Fake) -> Outcome {
    let (here, there) = (Device::new(0)?, Device::new(1)?);
    let (near, far) = (here.stream()?, there.stream()?);
    let mix = here.load(PTX.as_bytes())?.function("mix")?;
    let old = far.upload(&[1u8; 64])?;
    here.enable_peer_access(&there)?;
    let new = far.upload(&vec![2u8; 3 * MIB])?;
    let mut out = near.zeros::<u8>(64)?;
    for source in [&old, &new] {
        // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
        unsafe { mix.launch(&near, LaunchConfig::new(1, 32), (source, &mut out, 64u64, 1u32))? };
    }
    near.synchronize()?;
    let violations = fake.violations();
    ensure(violations.is_empty(), violations.join("\n"))?;
    here.disable_peer_access(&there)?;
    Ok(())
}

/// A device without virtual memory management has a pool of segments; one without pools of the driver says so.
fn plain_devices(fake: &Fake) -> Outcome {
    fake.hide_attribute(Attribute::VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED.0);
    accounting(fake)?;
    ensure(Device::new(0)?.memory_snapshot()?.pool == "plain", "the pool is another one")?;
    ensure(fake.call_count("cuMemCreate") == 0, "pages were made all the same")
}

fn without_pools(fake: &Fake) -> Outcome {
    fake.hide_attribute(Attribute::MEMORY_POOLS_SUPPORTED.0);
    match Device::new(0)?.stream()?.zeros::<u8>(1) {
        Err(Error::InvalidArgument { operation: "SELVEDGE_POOL", found, .. })
            if found.contains("no pools") =>
        {
            Ok(())
        }
        other => Err(format!("{other:?}").into()),
    }
}

/// Child: one of the above, then everything is given back.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    match arguments.first().map(String::as_str) {
        Some("hand_over") => hand_over(fake)?,
        Some("moving") => moving(fake)?,
        Some("cap") => cap(fake)?,
        Some("accounting") => accounting(fake)?,
        Some("scopes") => scopes(fake)?,
        Some("traces") => traces(fake)?,
        Some("peers") => peers(fake)?,
        Some("plain_devices") => plain_devices(fake)?,
        Some("without_pools") => without_pools(fake)?,
        Some("settings") => return settings(fake),
        other => return Err(format!("no test {other:?}").into()),
    }
    super::scenario::settle()?;
    super::scenario::check_end(fake)
}

pub fn tests() -> Vec<Test> {
    let modes: &[&'static str] = &["", "plain", "none", "poison", "driver"];
    let heaps = &modes[..2];
    let table: &[(&'static str, &[&'static str])] = &[
        ("hand_over", heaps),
        ("moving", &modes[..1]),
        ("cap", modes),
        ("accounting", modes),
        ("scopes", heaps),
        ("traces", modes),
        ("peers", modes),
        ("plain_devices", &modes[..1]),
        ("without_pools", &modes[4..]),
    ];
    let mut tests = Vec::new();
    for &(name, modes) in table {
        for &mode in modes {
            let label = if mode.is_empty() { "paged" } else { mode };
            tests.push(Test::new(format!("pool::{name}_{label}"), move || {
                let mut settings = vec![("SELVEDGE_POOL", mode)];
                if name == "cap" {
                    settings.push(("SELVEDGE_MEMORY_LIMIT", "8M"));
                }
                children::must_succeed(&Variant::new(12040), "pool", &[name.to_owned()], &settings).map(drop)
            }));
        }
    }
    for variable in ["SELVEDGE_POOL", "SELVEDGE_MEMORY_LIMIT"] {
        tests.push(Test::new(format!("pool::a_wrong_{variable}_is_named"), move || {
            let settings = [(variable, "nonsense")];
            children::must_succeed(&Variant::new(12040), "pool", &["settings".to_owned()], &settings)
                .map(drop)
        }));
    }
    tests
}
