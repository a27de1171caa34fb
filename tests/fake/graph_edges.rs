//! Graphs at their edges: what is dropped, lost or refused around a capture or a launch.

use std::sync::mpsc;
use std::time::Duration;

use selvedge::Error;
use selvedge::driver::{Device, Function, LaunchConfig, Stream};
use selvedge::launcher::{Definition, Fallback, Launcher};
use selvedge::nvrtc::Cache;

use super::kernels::PTX;
use super::support::{Fake, Parameter};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const LENGTH: usize = 64;

fn same(what: &str, found: &[u8], wanted: &[u8]) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("{what} is not what the model has: {found:?}").into()) }
}

fn make_on(device: Device) -> Result<(Stream, Function), Error> {
    Ok((device.stream()?, device.load(PTX.as_bytes())?.function("make")?))
}

/// A list of copies of which only the last has to do with the capture is captured as a whole, and all of it is held.
fn lists_of_copies(_: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let (stream, side) = (device.stream()?, device.stream()?);
    let (outside, mut captured) = (side.upload(&[1u8; LENGTH])?, stream.zeros::<u8>(LENGTH)?);
    let (mut first, mut second) = (side.zeros::<u8>(LENGTH)?, side.zeros::<u8>(LENGTH)?);
    let (graph, ()) = stream.capture(|stream| {
        stream.fill(&mut captured, 2)?;
        side.copy_batch(&mut [
            (outside.slice(..)?, first.slice_mut(..)?),
            (captured.slice(..)?, second.slice_mut(..)?),
        ])
    })?;
    drop(outside);
    // Gets the block of what was dropped, where nothing holds that.
    let mut next = side.zeros::<u8>(LENGTH)?;
    side.fill(&mut next, 9)?;
    let graph = graph.instantiate()?;
    graph.launch(&stream)?;
    same("the first copy", &side.download(&first)?, &[1; LENGTH])?;
    same("the second copy", &side.download(&second)?, &[2; LENGTH])
}

/// A buffer from before a capture that is dropped in it goes back outside of the graph.
fn drops_from_before(_: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let (stream, make) = make_on(device)?;
    let before = stream.upload(&[1u8; LENGTH])?;
    let mut target = stream.upload(&[2u8; LENGTH])?;
    let (graph, ()) = stream.capture(|stream| {
        stream.fill(&mut target, 3)?;
        drop(before);
        // SAFETY: `make` writes `LENGTH` bytes.
        unsafe { make.launch(stream, LaunchConfig::new(1, 32), (&mut target, LENGTH as u64, 5u32)) }
    })?;
    if graph.nodes()?.len() != 2 {
        return Err(format!("the nodes are {:?}", graph.nodes()?).into());
    }
    let graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    Ok(())
}

/// A launch that fails on its way loses nothing that a later one on another stream must wait for.
fn launches_that_fail(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    for nth in 1..8 {
        fake.set_seed(nth);
        let streams = [device.stream()?, device.stream()?, device.stream()?, device.stream()?];
        let mut target = streams[0].upload(&[2u8; LENGTH])?;
        let (graph, output) = streams[0].capture(|stream| {
            let mut output = stream.zeros::<u8>(LENGTH)?;
            stream.fill(&mut output, 4)?;
            stream.copy(&output, &mut target)?;
            Ok(output)
        })?;
        let graph = graph.instantiate()?;
        graph.launch(&streams[0])?;
        let transfer = streams[1].download_async(&output, device.pinned::<u8>(LENGTH)?)?;
        drop(output);
        fake.fail("cuStreamWaitEvent", nth, 1);
        let failed = graph.launch(&streams[2]).is_err();
        fake.clear_failures();
        if nth == 1 && !failed {
            return Err("nothing was waited for".into());
        }
        // Its writes come after the read above.
        graph.launch(&streams[3])?;
        let pinned = transfer.wait()?;
        fake.host_read(&pinned);
        same("what was read", &pinned, &[4; LENGTH])?;
        let violations = fake.violations();
        if !violations.is_empty() {
            return Err(format!("wait {nth}: {}", violations.join("\n")).into());
        }
    }
    Ok(())
}

/// A graph that names memory of a device that was reset is not launched any more.
fn memory_of_a_lost_device(fake: &Fake) -> Outcome {
    let (device, far) = (Device::new(0)?, Device::new(1)?);
    device.enable_peer_access(&far)?;
    let (stream, make) = make_on(device)?;
    let mut buffer = far.stream()?.upload(&[1u8; LENGTH])?;
    let config = LaunchConfig::new(1, 32);
    let (graph, ()) = stream.capture(|stream| {
        // SAFETY: `make` writes `LENGTH` bytes.
        unsafe { make.launch(stream, config, (&mut buffer, LENGTH as u64, 5u32)) }
    })?;
    let graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    // SAFETY: nothing of it runs, and no pinned memory is held.
    let far = unsafe { far.reset()? };
    let launches = fake.call_count("cuGraphLaunch");
    match graph.launch(&stream) {
        Err(Error::ContextLost { .. }) => {}
        other => return Err(format!("a launch into memory that is gone answers {other:?}").into()),
    }
    if fake.call_count("cuGraphLaunch") != launches || far.is_lost() || device.is_lost() {
        return Err("the driver was asked".into());
    }
    Ok(())
}

/// The user's hook may call whatever it likes.
fn hooks_that_call(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let (done, ended) = mpsc::channel();
    selvedge::error::set_deferred_error_hook(Some(Box::new(move |_| {
        let _ = done.send(device.trim().is_ok());
    })));
    drop(device.register(vec![1u8; LENGTH])?);
    // It is done all the same: such an error is mostly of something earlier.
    fake.fail("cuMemHostUnregister", 1, 1);
    let waiter = std::thread::spawn(move || device.synchronize());
    let answer = ended.recv_timeout(Duration::from_secs(20));
    selvedge::error::set_deferred_error_hook(None);
    if answer != Ok(true) {
        return Err(format!("the hook's call answers {answer:?}").into());
    }
    waiter.join().map_err(|_| "a thread panicked")??;
    stream.synchronize()?;
    Ok(())
}

/// Child: one of the programs above.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    let program = match arguments {
        [name] => PROGRAMS.iter().find(|(known, _)| known == name),
        _ => None,
    };
    let (name, program) = program.ok_or("usage: PROGRAM")?;
    program(fake)?;
    let violations = fake.violations();
    if !violations.is_empty() {
        return Err(violations.join("\n").into());
    }
    // A handle that could not be released stays.
    if *name == "hooks_that_call" {
        return Ok(());
    }
    scenario::settle()?;
    scenario::check_end(fake)
}

/// A kernel may be entered within a capture, which then holds its module; a fallback cannot be captured, and is not called.
fn kernels_by_name(fake: &Fake) -> Outcome {
    let launcher = Launcher::with_cache(&Device::new(0)?, Cache::none())?;
    let stream = launcher.stream();
    let mut buffer = stream.zeros::<u8>(LENGTH)?;
    let (graph, ()) = stream.capture(|stream| {
        let kernel = launcher.load("make", PTX)?;
        let arguments = (&mut buffer, LENGTH as u64, 5u32);
        // SAFETY: `make` writes `LENGTH` bytes.
        unsafe { kernel.run(stream, LaunchConfig::new(1, 32), arguments).map(drop) }
    })?;
    let graph = graph.instantiate()?;
    // Another image takes the name, so nothing but the graph holds the first.
    launcher.load("make", PTX.replace("state[64]", "state[128]"))?;
    graph.launch(stream)?;
    let mut wanted = vec![0u8; LENGTH];
    let length = (LENGTH as u64).to_ne_bytes();
    let salt = 5u32.to_ne_bytes();
    let parameters =
        &mut [Parameter::Write(&mut wanted), Parameter::Scalar(&length), Parameter::Scalar(&salt)];
    fake.kernel_effect("make", parameters);
    same("what the graph wrote", &stream.download(&buffer)?, &wanted)?;

    let called = Fallback::cpu(|_| Err(Error::ForkedProcess));
    launcher.define(Definition::new("cpu").image(*b"no image").fallback(called))?;
    // SAFETY: nothing is launched.
    let captured = stream.capture(|_| unsafe { launcher.run("cpu", 1, 32, (&mut buffer,)) });
    match captured {
        Err(Error::NotCapturable { .. }) => same("the buffer", &stream.download(&buffer)?, &wanted),
        other => Err(format!("a fallback in a capture: {:?}", other.map(drop)).into()),
    }
}

type Program = fn(&Fake) -> Outcome;

const PROGRAMS: &[(&str, Program)] = &[
    ("lists_of_copies", lists_of_copies),
    ("drops_from_before", drops_from_before),
    ("launches_that_fail", launches_that_fail),
    ("memory_of_a_lost_device", memory_of_a_lost_device),
    ("hooks_that_call", hooks_that_call),
    ("kernels_by_name", kernels_by_name),
];

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for (name, _) in PROGRAMS {
        for (pool, setting) in
            [("", ""), ("_without_a_pool", "none"), ("_plain", "plain"), ("_with_the_drivers_pool", "driver")]
        {
            tests.push(Test::new(format!("graph_edges::{name}{pool}"), move || {
                let arguments = [(*name).to_owned()];
                let settings = [("SELVEDGE_POOL", setting)];
                children::must_succeed(&Variant::new(12040), "graph_edges", &arguments, &settings).map(drop)
            }));
        }
    }
    tests
}
