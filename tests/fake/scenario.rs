//! One program that makes every driver call of the crate, in a fixed order.
//!
//! Its record is the list that the fault tests walk. `between` is called before each entry into the crate, which is where
//! somebody else in the process may have switched contexts.

use std::collections::BTreeSet;

use libtest_mimic::Failed;
use selvedge::Error;
use selvedge::driver::{
    Argument, Attribute, Copy2d, Copy3d, Device, DeviceBuffer, LaunchConfig, LinkInput, ModuleOptions,
    RawAddress, Stream, TensorElement, TensorMap, TensorMapLayout,
};

use super::children;
use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use crate::common::suite::Test;

/// Runs the scenario; every value it makes is dropped when it returns, also on the way out of an error.
pub fn run(fake: &Fake, between: &mut dyn FnMut()) -> Result<(), Error> {
    macro_rules! enter {
        ($($call:tt)*) => {{
            between();
            $($call)*
        }};
    }
    let devices = enter!(Device::list())?;
    let (first, second) = (devices[0], devices[1]);
    enter!(Device::from_uuid(first.uuid()))?;
    enter!(first.attribute(Attribute::WARP_SIZE))?;
    enter!(first.memory_info())?;
    enter!(first.priority_range())?;
    let stream = enter!(first.stream())?;
    let urgent = enter!(first.stream_with_priority(-1))?;
    let far = enter!(second.stream())?;

    // Memory and copies.
    let host: Vec<u8> = (0..=255).collect();
    let mut a = enter!(stream.upload(&host))?;
    let mut b = enter!(stream.zeros::<u8>(256))?;
    let mut remote = enter!(far.uninitialized::<u8>(256))?;
    enter!(stream.fill(&mut b, 7))?;
    enter!(stream.fill(&mut b.reinterpret_mut::<u16>()?, 0x0102))?;
    enter!(stream.fill(&mut b.reinterpret_mut::<u32>()?, 0x0102_0304))?;
    enter!(stream.fill(&mut b.reinterpret_mut::<u64>()?, 0x0102_0304_0506_0708))?;
    enter!(stream.copy(&a, &mut b))?;
    enter!(urgent.copy(&b, &mut a))?;
    enter!(stream.copy(&a, &mut remote))?;
    let shape = Copy2d { width: 8, height: 4, source_pitch: 16, destination_pitch: 32 };
    enter!(stream.copy_2d(&a, &mut b, shape))?;
    enter!(stream.copy_2d_from_host(&host, &mut b, shape))?;
    let mut rows = vec![0; 256];
    enter!(stream.copy_2d_to_host(&a, &mut rows, shape))?;
    let block = Copy3d { source_pitch: 16, source_rows: 4, ..Copy3d::packed(8, 3, 4) };
    enter!(stream.copy_3d(&a, &mut b, block))?;
    enter!(stream.copy_3d_from_host(&host, &mut b, block))?;
    enter!(stream.copy_3d_to_host(&a, &mut rows, block))?;
    {
        let (first, second) = b.split_at_mut(128)?;
        enter!(stream.copy_batch(&mut [(a.slice(128..)?, first), (a.slice(..128)?, second)]))?;
    }
    let back = enter!(far.download(&remote))?;
    assert_eq!(back, host, "the bytes came back through two devices");

    // Pinned and registered memory.
    let mut pinned = enter!(first.pinned::<u8>(256))?;
    fake.host_write(&pinned);
    pinned.copy_from_slice(&host);
    let transfer = enter!(stream.upload_async(pinned, &mut a))?;
    enter!(transfer.is_complete())?;
    let pinned = enter!(transfer.wait())?;
    let registered = enter!(first.register(vec![0u8; 256]))?;
    let transfer = enter!(stream.download_async(&a, registered))?;
    let registered = enter!(transfer.wait())?;
    fake.host_read(&registered);
    assert_eq!(enter!(registered.into_vec())?, host);
    let dropped = enter!(urgent.download_async(&a, pinned))?;
    enter!(drop(dropped));
    let unlocked = enter!(first.register(vec![0u8; 256]))?;
    enter!(drop(unlocked));

    // Events.
    let (mut start, mut end) = (enter!(first.timing_event())?, enter!(first.timing_event())?);
    enter!(start.record(&stream))?;
    enter!(end.record(&stream))?;
    enter!(urgent.wait(&end))?;
    enter!(end.synchronize())?;
    enter!(end.is_complete())?;
    enter!(start.elapsed_ms(&end))?;

    // Modules and launches.
    let module = enter!(first.load(PTX.as_bytes()))?;
    let global = enter!(module.global::<u8>("state"))?;
    enter!(global.write(&stream, &[5; 64]))?;
    let (mix, make) = (enter!(module.function("mix"))?, enter!(module.function("make"))?);
    let config = LaunchConfig::new(2, 64);
    // SAFETY: the fake driver's kernels touch the bytes that their arguments name.
    unsafe {
        enter!(make.launch(&stream, config, (&mut a, 256u64, 1u32)))?;
        enter!(mix.launch(&urgent, config.shared(64 << 10), (&a, &mut b, 256u64, 2u32)))?;
        let arguments =
            [Argument::read(&a), Argument::write(&mut b), Argument::integer(256u64), Argument::integer(3u32)];
        enter!(mix.launch(&stream, config, &arguments))?;
        enter!(make.launch(&stream, config.cooperative(), (&mut a, 256u64, 4u32)))?;
        enter!(make.launch(&stream, LaunchConfig::new(0, 1), (RawAddress(0), 0u64, 0u32))).unwrap_err();
    }
    enter!(mix.attributes())?;
    enter!(mix.occupancy(128, 0))?;
    enter!(mix.suggested_block_size(0))?;
    assert_eq!(enter!(global.read(&urgent))?, [5; 64]);

    // Functions of newer drivers.
    let newer = |result: Result<(), Error>| match result {
        Err(Error::MissingSymbol { .. }) => Ok(()),
        other => other,
    };
    // SAFETY: as above.
    unsafe {
        let clustered = config.cluster(2).priority(-1).programmatic_dependent();
        newer(enter!(make.launch(&stream, clustered, (&mut a, 256u64, 5u32))))?;
    }
    newer(enter!(make.active_clusters(&config.cluster(2))).map(drop))?;
    let layout = TensorMapLayout::contiguous(TensorElement::U8, &[64, 4], &[64, 4]);
    newer(enter!(TensorMap::tiled(&a, &layout)).and_then(|map| {
        let boxes = module.function("boxes")?;
        // SAFETY: as above.
        unsafe { boxes.launch(&stream, config, (&map, &mut b, 256u64)) }
    }))?;
    // Machine code is for its architecture only; the fake's devices are sm_90.
    let cubin = fake.make_cubin(&PTX.replace("sm_60", "sm_90"));
    let plain = enter!(first.load(&cubin))?;
    let no_names = |result: Result<Vec<String>, Error>| match result {
        Err(Error::MissingSymbol { .. }) => Ok(Vec::new()),
        other => other,
    };
    let names = no_names(enter!(plain.function_names()))?;
    assert!(names.is_empty() || names.contains(&"mix".to_owned()), "{names:?}");
    enter!(plain.function("mix"))?;
    // A fatbin whose inside cannot be read: the driver is asked for names and parameters.
    let closed = enter!(first.load(&compressed_fatbin(fake)))?;
    let names = no_names(enter!(closed.function_names()))?;
    if let Some(name) = names.first() {
        enter!(closed.function(name))?;
    }
    let inputs = [LinkInput { name: "kernels", image: PTX.as_bytes() }];
    enter!(first.link(&inputs, &ModuleOptions::default()))?;

    // Graphs.
    let (mut graph, mut scratch) = {
        let (graph, scratch) = enter!(stream.capture(|stream| {
            let mut scratch = enter!(stream.zeros::<u8>(256))?;
            // SAFETY: as above.
            unsafe {
                enter!(make.launch(stream, config, (&mut scratch, 256u64, 7u32)))?;
                enter!(mix.launch(&urgent, config, (&scratch, &mut b, 256u64, 8u32)))?;
            }
            Ok(scratch)
        }))?;
        newer(enter!(graph.to_dot()).map(drop))?;
        (enter!(graph.instantiate())?, scratch)
    };
    enter!(graph.upload(&stream))?;
    enter!(graph.launch(&stream))?;
    enter!(graph.launch(&urgent))?;
    let (another, ()) = enter!(stream.capture(|stream| {
        let mut scratch = stream.zeros::<u8>(256)?;
        // SAFETY: as above.
        unsafe {
            make.launch(stream, config, (&mut scratch, 256u64, 9u32))?;
            mix.launch(&urgent, config, (&scratch, &mut b, 256u64, 8u32))
        }
    }))?;
    newer(enter!(graph.update(another)).map_err(Error::from))?;
    let kernels = match enter!(graph.graph().nodes()) {
        Err(Error::MissingSymbol { .. }) => Vec::new(),
        other => other?,
    };
    if let Some(node) = kernels.iter().position(|node| node.kernel() == Some("make")) {
        // SAFETY: as above.
        newer(unsafe { enter!(graph.set_kernel(node, config, (&mut scratch, 256u64, 10u32))) })?;
    }
    enter!(graph.launch(&stream))?;
    enter!(drop(graph));
    enter!(drop(scratch));
    let mut condition = enter!(stream.upload(&[1u32]))?;
    let conditional = enter!(stream.capture(|stream| {
        enter!(stream.run_while(&mut condition, |stream, condition| {
            stream.fill(&mut b, 3)?;
            stream.fill(condition, 0)
        }))?;
        enter!(stream.run_if(&condition, |stream| stream.fill(&mut b, 4)))
    }));
    newer(conditional.and_then(|(graph, ())| enter!(graph.instantiate()?.launch(&stream))))?;

    // Waiting, callbacks and peers.
    let (sender, receiver) = std::sync::mpsc::channel();
    // Not between the callback and the wait for it: the fake would run it at a time of its own.
    enter!(stream.is_idle())?;
    enter!(stream.on_complete(move || {
        let _ = sender.send(());
    }))?;
    enter!(stream.synchronize())?;
    assert!(receiver.try_recv().is_ok(), "the callback ran before the stream was idle");
    if enter!(first.can_access_peer(&second))? {
        enter!(first.enable_peer_access(&second))?;
        enter!(first.enable_peer_access(&second))?;
        enter!(first.disable_peer_access(&second))?;
        enter!(first.disable_peer_access(&second))?;
    }

    // Objects of other code.
    // SAFETY: stream, context and memory outlive their second handles, and nothing else uses the memory.
    unsafe {
        assert_eq!(enter!(Device::from_context(first.as_raw_context()))?, first);
        let borrowed = enter!(Stream::from_raw(&first, stream.as_raw()))?;
        let mut taken = enter!(DeviceBuffer::<u8>::from_raw(&borrowed, a.address(), 256, || ()))?;
        enter!(borrowed.fill(&mut taken, 8))?;
        enter!(drop(taken));
        enter!(drop(borrowed));
        enter!(stream.synchronize())?;
    }

    // Drops in use: a stream before its buffers, a module before its kernels have run.
    // SAFETY: as above.
    unsafe { enter!(mix.launch(&urgent, config, (&a, &mut b, 256u64, 6u32)))? };
    enter!(drop(urgent));
    enter!(drop((global, mix, make, module)));
    enter!(drop((a, b)));
    enter!(drop(stream));
    let late = enter!(first.stream())?;
    // Blocks of the closed streams, with their events.
    let reused = enter!(late.uninitialized::<u8>(256))?;
    enter!(drop(reused));
    enter!(late.synchronize())?;
    enter!(first.synchronize())?;
    enter!(drop(remote));
    between();
    Ok(())
}

/// The same kernels in a fatbin entry that claims to be compressed, which only a driver can open.
fn compressed_fatbin(fake: &Fake) -> Vec<u8> {
    let mut fatbin = fake.make_fatbin(PTX);
    // The entry's header follows the 16 bytes of the file's: the architecture at 28, the flags at 40 (0x2000 is LZ4).
    if let [architecture, .., flags] = &mut fatbin[16 + 28..16 + 42] {
        (*architecture, *flags) = (60, *flags | 0x20);
    }
    fatbin
}

/// Frees cached memory. A block that is alive afterwards was leaked.
pub fn settle() -> Result<(), Error> {
    // Twice: what one device has retired can hold events of the other.
    for device in [Device::list()?, Device::list()?].concat() {
        device.trim()?;
    }
    Ok(())
}

/// Everything that must hold when all is dropped and trimmed.
pub fn check_end(fake: &Fake) -> Result<(), Box<dyn std::error::Error>> {
    let violations = fake.violations();
    if !violations.is_empty() {
        return Err(violations.join("\n").into());
    }
    let live = fake.live();
    let alive =
        live.blocks + live.pinned + live.registered + live.streams + live.events + live.modules + live.links;
    let alive = alive + live.physical + live.mappings + live.reservations;
    let alive = alive + live.captures + live.graphs + live.instances;
    if alive != 0 {
        return Err(format!("alive at the end:\n{}", fake.describe_live()).into());
    }
    Ok(())
}

/// A code that no table knows: the driver is asked for its name.
const UNHEARD_OF: i32 = 12345;

/// Child: prints every call of the scenario by number and name.
pub fn print_calls(fake: &Fake) -> Result<(), Box<dyn std::error::Error>> {
    run(fake, &mut || {})?;
    settle()?;
    check_end(fake)?;
    for call in fake.log() {
        println!("{} {}", call.number, call.function);
    }
    fake.fail("cuMemGetInfo", 1, UNHEARD_OF);
    let error = Device::new(0)?.memory_info().expect_err("a failure is armed");
    assert!(error.to_string().contains(&UNHEARD_OF.to_string()), "{error}");
    // SAFETY: nothing is alive.
    unsafe { Device::new(0)?.reset()? };
    // Not for the fault tests: what an error's text asks, and what takes everything down.
    let apart = ["cuGetError", "cuDevicePrimaryCtxReset"];
    for call in fake.log().iter().filter(|call| apart.iter().any(|name| call.function.starts_with(name))) {
        println!("0 {}", call.function);
    }
    Ok(())
}

/// The calls of the scenario on a driver: number and exported name.
pub fn calls(variant: &Variant, settings: &[(&str, &str)]) -> Result<Vec<(u64, String)>, Failed> {
    let text = children::must_succeed(variant, "calls", &[], settings)?;
    let line = |line: &str| {
        let (number, name) = line.split_once(' ')?;
        Some((number.parse().ok()?, name.to_owned()))
    };
    Ok(text.lines().filter_map(line).collect())
}

pub fn tests() -> Vec<Test> {
    vec![Test::new("scenario::calls_every_symbol_of_the_table", || {
        let mut called = BTreeSet::new();
        for (version, pool) in [(11040, ""), (12040, "plain"), (12040, "driver"), (13000, "")] {
            let settings = [("SELVEDGE_POOL", pool)];
            called.extend(calls(&Variant::new(version), &settings)?.into_iter().map(|(_, name)| name));
        }
        let table = selvedge::sys::DriverApi::SYMBOLS.iter();
        let missing: Vec<_> =
            table.map(|symbol| symbol.spelling).filter(|name| !called.contains(*name)).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("no scenario calls {}", missing.join(", ")).into())
        }
    })]
}
