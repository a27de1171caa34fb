//! Graphs: what is captured runs at each launch, in the order that its buffers ask for, and nothing else is disturbed.

use std::sync::mpsc;

use selvedge::Error;
use selvedge::driver::{Device, DeviceBuffer, Function, GraphNodeKind, LaunchConfig, Stream};

use super::kernels::PTX;
use super::model::{made, mixed};
use super::support::Fake;
use super::variant::Variant;
use super::{children, graph_updates, scenario};
use crate::common::suite::Test;

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

pub(crate) const LENGTH: usize = 64;

/// A device with its kernels.
pub(crate) struct Ground {
    device: Device,
    pub(crate) stream: Stream,
    pub(crate) mix: Function,
    pub(crate) make: Function,
}

impl Ground {
    pub(crate) fn new() -> Result<Ground, Error> {
        let device = Device::new(0)?;
        let stream = device.stream()?;
        let module = device.load(PTX.as_bytes())?;
        let (mix, make) = (module.function("mix")?, module.function("make")?);
        Ok(Ground { device, stream, mix, make })
    }

    pub(crate) fn make(
        &self,
        stream: &Stream,
        target: &mut DeviceBuffer<u8>,
        salt: u32,
    ) -> Result<(), Error> {
        let length = target.len() as u64;
        // SAFETY: `make` writes `length` bytes.
        unsafe { self.make.launch(stream, LaunchConfig::new(1, 32), (target, length, salt)) }
    }

    pub(crate) fn mix(
        &self,
        stream: &Stream,
        source: &DeviceBuffer<u8>,
        target: &mut DeviceBuffer<u8>,
        salt: u32,
    ) -> Result<(), Error> {
        let length = target.len() as u64;
        // SAFETY: `mix` reads and updates `length` bytes.
        unsafe { self.mix.launch(stream, LaunchConfig::new(1, 32), (source, target, length, salt)) }
    }
}

pub(crate) fn same(what: &str, found: &[u8], wanted: &[u8]) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("{what} is not what the model has").into()) }
}

fn not_capturable<R: std::fmt::Debug>(what: &str, result: Result<R, Error>) -> Outcome {
    match result {
        Err(Error::NotCapturable { .. }) => Ok(()),
        other => Err(format!("{what} in a capture answers {other:?}").into()),
    }
}

/// Nothing happens at the capture, everything at each launch; buffers, kernels and module may be gone by then.
fn replays(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let stream = ground.stream.clone();
    let (mut a, mut b, mut c) =
        (stream.upload(&[1u8; LENGTH])?, stream.upload(&[2u8; LENGTH])?, stream.upload(&[3u8; LENGTH])?);
    let (graph, ()) = stream.capture(|stream| {
        ground.mix(stream, &a, &mut b, 7)?;
        stream.fill(&mut a, 9)?;
        stream.copy(&b, &mut c)?;
        ground.mix(stream, &c, &mut b, 8)
    })?;
    same("a buffer after a capture", &stream.download(&b)?, &[2; LENGTH])?;
    let nodes = graph.nodes()?;
    let kinds: Vec<_> = nodes.iter().map(|node| node.kind()).collect();
    if kinds != [GraphNodeKind::Kernel, GraphNodeKind::Fill, GraphNodeKind::Copy, GraphNodeKind::Kernel] {
        return Err(format!("the nodes are {nodes:?}").into());
    }
    let dot = graph.to_dot()?;
    if !dot.starts_with("digraph") || dot.matches("->").count() != 3 {
        return Err(format!("the picture is\n{dot}").into());
    }
    let graph = graph.instantiate()?;
    graph.upload(&stream)?;
    let mut model = (vec![1u8; LENGTH], vec![2u8; LENGTH], vec![3u8; LENGTH]);
    for round in 0..3 {
        graph.launch(&stream)?;
        mixed(fake, &model.0, &mut model.1, 7);
        model.0.fill(9);
        model.2.copy_from_slice(&model.1);
        let source = model.2.clone();
        mixed(fake, &source, &mut model.1, 8);
        same(&format!("launch {round}"), &stream.download(&b)?, &model.1)?;
    }
    // The graph holds what its nodes name.
    drop((a, c, ground));
    graph.launch(&stream)?;
    mixed(fake, &model.0, &mut model.1, 7);
    model.2.copy_from_slice(&model.1);
    let source = model.2.clone();
    mixed(fake, &source, &mut model.1, 8);
    same("a launch without its buffers' owners", &stream.download(&b)?, &model.1)?;
    graph.launch(&stream)?;
    drop((graph, b));
    // The memory comes back only behind the last launch.
    let reused = stream.uninitialized::<u8>(LENGTH)?;
    drop(reused);
    let other = Device::new(0)?.stream()?;
    drop(stream);
    drop(other.zeros::<u8>(LENGTH)?);
    Ok(())
}

/// Streams join by what they use and by events, and are joined back; what does not belong stays outside.
fn forks_and_joins(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let (stream, side, third) = (ground.stream.clone(), ground.device.stream()?, ground.device.stream()?);
    let (mut a, mut b, mut c) =
        (side.upload(&[1u8; LENGTH])?, stream.upload(&[2u8; LENGTH])?, third.upload(&[3u8; LENGTH])?);
    let mut outside = third.upload(&[4u8; LENGTH])?;
    let mut event = ground.device.event()?;
    let (graph, ()) = stream.capture(|stream| {
        ground.make(stream, &mut a, 1)?;
        // Joins, because it reads what the capture writes.
        ground.mix(&side, &a, &mut b, 2)?;
        // Has nothing to do with it.
        ground.make(&third, &mut outside, 3)?;
        event.record(stream)?;
        third.wait(&event)?;
        ground.mix(&third, &a, &mut c, 4)?;
        not_captured(event.is_complete())?;
        ground.mix(stream, &c, &mut a, 5)
    })?;
    let nodes = graph.nodes()?;
    let kernels: Vec<_> = nodes.iter().filter(|node| node.kind() == GraphNodeKind::Kernel).collect();
    if kernels.len() != 4 {
        return Err(format!("the nodes are {nodes:?}").into());
    }
    same("work outside", &third.download(&outside)?, &made(fake, LENGTH, 3))?;
    let graph = graph.instantiate()?;
    let mut model = (vec![1u8; LENGTH], vec![2u8; LENGTH], vec![3u8; LENGTH]);
    let streams = [&stream, &side, &third];
    for round in 0..6 {
        // Uses on other streams before and after, and launches on any stream.
        ground.make(streams[(round + 1) % 3], &mut c, 20 + round as u32)?;
        model.2 = made(fake, LENGTH, 20 + round as u32);
        graph.launch(streams[round % 3])?;
        model.0 = made(fake, LENGTH, 1);
        mixed(fake, &model.0, &mut model.1, 2);
        mixed(fake, &model.0, &mut model.2, 4);
        mixed(fake, &model.2, &mut model.0, 5);
        ground.mix(streams[(round + 2) % 3], &a, &mut b, 6)?;
        mixed(fake, &model.0, &mut model.1, 6);
    }
    same("the first buffer", &third.download(&a)?, &model.0)?;
    same("the second", &stream.download(&b)?, &model.1)?;
    same("the third", &side.download(&c)?, &model.2)
}

fn not_captured<R: std::fmt::Debug>(result: Result<R, Error>) -> Result<(), Error> {
    match result {
        Err(Error::NotCapturable { .. }) => Ok(()),
        other => panic!("what cannot be captured answers {other:?}"),
    }
}

/// Memory that is allocated in a capture is the graph's: it serves again inside, and nobody else gets it.
fn owns_its_memory(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let (stream, side) = (ground.stream.clone(), ground.device.stream()?);
    let input = stream.upload(&[5u8; LENGTH])?;
    let mut addresses = Vec::new();
    let (graph, output) = stream.capture(|stream| {
        let mut output = stream.zeros::<u8>(LENGTH)?;
        for salt in 0..4 {
            let mut scratch = stream.uninitialized::<u8>(LENGTH)?;
            addresses.push(scratch.address());
            ground.make(stream, &mut scratch, salt)?;
            ground.mix(stream, &scratch, &mut output, salt)?;
        }
        // Used on another stream, so its next user there and here comes after.
        let mut scratch = stream.uninitialized::<u8>(LENGTH)?;
        ground.make(&side, &mut scratch, 9)?;
        ground.mix(&side, &scratch, &mut output, 9)?;
        drop(scratch);
        let mut scratch = stream.zeros::<u8>(LENGTH)?;
        ground.mix(stream, &input, &mut scratch, 10)?;
        ground.mix(stream, &scratch, &mut output, 10)?;
        Ok(output)
    })?;
    if addresses.iter().any(|&address| address != addresses[0]) {
        return Err("blocks that were dropped in the capture did not serve again".into());
    }
    let mut wanted = vec![0u8; LENGTH];
    for salt in 0..4 {
        mixed(fake, &made(fake, LENGTH, salt), &mut wanted, salt);
    }
    mixed(fake, &made(fake, LENGTH, 9), &mut wanted, 9);
    let mut scratch = vec![0u8; LENGTH];
    mixed(fake, &[5; LENGTH], &mut scratch, 10);
    mixed(fake, &scratch, &mut wanted, 10);
    let graph = graph.instantiate()?;
    // Others allocate and drop meanwhile; the graph's blocks are not among theirs.
    for round in 0..4 {
        let mut other = side.zeros::<u8>(LENGTH)?;
        if addresses.contains(&other.address()) {
            return Err("a block of the graph was given to somebody else".into());
        }
        ground.make(&side, &mut other, 77)?;
        graph.launch(if round % 2 == 0 { &stream } else { &side })?;
        same("the output", &side.download(&output)?, &wanted)?;
        same("a bystander", &side.download(&other)?, &made(fake, LENGTH, 77))?;
    }
    // A read that still runs when the output is dropped comes before the next launch.
    let pinned = ground.device.pinned::<u8>(LENGTH)?;
    let transfer = side.download_async(&output, pinned)?;
    drop(output);
    graph.launch(&stream)?;
    let pinned = transfer.wait()?;
    fake.host_read(&pinned);
    same("a read before a launch", &pinned, &wanted)?;
    drop(graph);
    // And a buffer outlives its graph.
    let (graph, output) = stream.capture(|stream| {
        let mut output = stream.uninitialized::<u8>(LENGTH)?;
        ground.make(stream, &mut output, 4)?;
        Ok(output)
    })?;
    let graph = graph.instantiate()?;
    graph.launch(&stream)?;
    drop(graph);
    same("an output without its graph", &side.download(&output)?, &made(fake, LENGTH, 4))
}

/// An operation that cannot be captured is refused before any driver call, and the capture goes on.
fn refuses(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let (device, stream) = (ground.device, ground.stream.clone());
    let side = device.stream()?;
    let far = Device::new(1)?.stream()?;
    let mut a = stream.upload(&[1u8; LENGTH])?;
    let mut b = stream.upload(&[2u8; LENGTH])?;
    let mut elsewhere = far.upload(&[2u8; LENGTH])?;
    let host = [3u8; LENGTH];
    let mut bytes = [0u8; LENGTH];
    let mut before = device.timing_event()?;
    before.record(&side)?;
    let unrecorded = device.event()?;
    let global = device.load(PTX.as_bytes())?.global::<u8>("state")?;
    let earlier = side.upload_async(device.pinned::<u8>(LENGTH)?, &mut b)?;
    let (graph, ()) = stream.capture(|stream| {
        ground.make(stream, &mut a, 1)?;
        let calls = fake.calls();
        let address = format!("{:#x}", b.address());
        match stream.copy_from_host(&host, &mut b) {
            Err(Error::NotCapturable { buffer, .. }) if buffer.contains(&address) => {}
            other => panic!("an upload in a capture answers {other:?}"),
        }
        not_captured(stream.copy_to_host(&b, &mut bytes))?;
        not_captured(stream.download(&a))?;
        // On a stream outside, but what it would read is written by the capture.
        not_captured(side.download(&a))?;
        not_captured(side.copy_from_host(&host, &mut a))?;
        not_captured(stream.synchronize())?;
        not_captured(stream.is_idle())?;
        not_captured(device.synchronize())?;
        not_captured(stream.on_complete(|| {}))?;
        not_captured(stream.wait(&before))?;
        not_captured(stream.wait_for(&side))?;
        not_captured(global.read(stream))?;
        not_captured(global.write(stream, &[0; 64]))?;
        // Another device cannot join.
        not_captured(far.copy(&a, &mut elsewhere))?;
        let shape = selvedge::driver::Copy2d { width: 4, height: 2, source_pitch: 8, destination_pitch: 8 };
        not_captured(stream.copy_2d_from_host(&host, &mut b, shape))?;
        not_captured(stream.copy_2d_to_host(&b, &mut bytes, shape))?;
        match stream.capture(|_| Ok(())) {
            Err(Error::InvalidArgument { .. }) => {}
            other => panic!("a capture in a capture answers {other:?}"),
        }
        match side.capture(|_| Ok(())) {
            Err(Error::InvalidArgument { .. }) => {}
            other => panic!("a second capture on the thread answers {other:?}"),
        }
        // The library always asks which context is current.
        let asked: Vec<_> = fake.log().into_iter().filter(|call| call.number > calls).collect();
        if let Some(call) = asked.iter().find(|call| !call.function.starts_with("cuCtxGetCurrent")) {
            panic!("a refused operation called {}", call.function);
        }
        stream.wait(&unrecorded)?;
        // Outside of the capture everything goes on.
        before.synchronize()?;
        side.synchronize()?;
        far.download(&elsewhere)?;
        ground.make(stream, &mut b, 2)
    })?;
    drop(earlier.wait()?);
    if graph.nodes()?.len() != 2 {
        return Err(format!("the nodes are {:?}", graph.nodes()?).into());
    }
    graph.instantiate()?.launch(&stream)?;
    same("a buffer", &stream.download(&b)?, &made(fake, LENGTH, 2))
}

/// A capture that is left by an error or a panic is thrown away, and the stream is an ordinary one again.
fn discards(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let stream = ground.stream.clone();
    let mut a = stream.upload(&[1u8; LENGTH])?;
    let failed = stream.capture(|stream| {
        let scratch = stream.zeros::<u8>(LENGTH)?;
        ground.mix(stream, &scratch, &mut a, 1)?;
        stream.synchronize()
    });
    not_capturable("a closure that failed", failed)?;
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.capture::<()>(|stream| {
            ground.make(stream, &mut a, 1)?;
            std::panic::resume_unwind(Box::new("on purpose"))
        })
    }));
    if outcome.is_ok() {
        return Err("the panic was lost".into());
    }
    let live = fake.live();
    if (live.captures, live.graphs) != (0, 0) {
        return Err(format!("left behind: {}", fake.describe_live()).into());
    }
    same("a buffer", &stream.download(&a)?, &[1; LENGTH])?;
    ground.make(&stream, &mut a, 3)?;
    same("a buffer used again", &stream.download(&a)?, &made(fake, LENGTH, 3))?;
    let (graph, ()) = stream.capture(|_| Ok(()))?;
    graph.instantiate()?.launch(&stream).map_err(Into::into)
}

/// Other threads go on while one captures; what they do is not captured, and they do not end it.
fn other_threads(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let (device, stream) = (ground.device, ground.stream.clone());
    let mut a = stream.upload(&[1u8; LENGTH])?;
    let buffer = stream.upload(&[2u8; LENGTH])?;
    let waiting = stream.download_async(&buffer, device.pinned::<u8>(LENGTH)?)?;
    let (to_other, orders) = mpsc::channel::<()>();
    let (done, from_other) = mpsc::channel::<Result<(), String>>();
    let captured = std::thread::scope(|scope| {
        let captured = stream.clone();
        scope.spawn(move || {
            if orders.recv().is_err() {
                return;
            }
            let work = || -> Outcome {
                let side = device.stream()?;
                let mut own = side.upload(&[7u8; LENGTH])?;
                not_capturable("another thread's work", captured.fill(&mut own, 1))?;
                not_capturable("another thread's capture", captured.capture(|_| Ok(())).map(drop))?;
                not_capturable("another thread's allocation", captured.zeros::<u8>(8).map(drop))?;
                not_capturable("another thread's question", captured.is_idle())?;
                let pinned = waiting.wait()?;
                fake.host_read(&pinned);
                same("a transfer from before", &pinned, &[2; LENGTH])?;
                // Its home is being captured.
                side.fill(&mut own, 3)?;
                drop(side.download(&buffer)?);
                drop(buffer);
                device.trim()?;
                device.synchronize()?;
                let module = device.load(PTX.as_bytes())?;
                drop(module);
                let (graph, ()) = side.capture(|side| side.fill(&mut own, 4))?;
                graph.instantiate()?.launch(&side)?;
                same("a graph of another thread", &side.download(&own)?, &[4; LENGTH])
            };
            let _ = done.send(work().map_err(|error| error.to_string()));
        });
        stream.capture(|stream| {
            ground.make(stream, &mut a, 1)?;
            let _ = to_other.send(());
            let answer = from_other.recv().unwrap_or(Err("the other thread died".to_owned()));
            ground.mix(stream, &stream.zeros::<u8>(LENGTH)?, &mut a, 2)?;
            Ok(answer)
        })
    });
    let (graph, answer) = captured?;
    answer?;
    graph.instantiate()?.launch(&stream)?;
    let mut wanted = made(fake, LENGTH, 1);
    mixed(fake, &[0; LENGTH], &mut wanted, 2);
    same("the captured buffer", &stream.download(&a)?, &wanted)
}

/// Page-locked memory of captured copies goes to the graph, and is reached between launches.
fn pinned_memory(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let (device, stream, side) = (ground.device, ground.stream.clone(), ground.device.stream()?);
    let mut a = stream.upload(&[1u8; LENGTH])?;
    let (from, to) = (device.pinned::<u8>(LENGTH)?, device.register(vec![0u8; LENGTH])?);
    let (graph, (input, output)) = stream.capture(|stream| {
        let input = stream.upload_async(from, &mut a)?;
        ground.mix(stream, &stream.zeros::<u8>(LENGTH)?, &mut a, 5)?;
        let output = stream.download_async(&a, to)?;
        not_captured(input.is_complete())?;
        let names = (input.captured(), output.captured());
        not_captured(input.wait())?;
        Ok(names)
    })?;
    let (Some(input), Some(output)) = (input, output) else {
        return Err("captured copies have no names".into());
    };
    let mut graph = graph.instantiate()?;
    for round in 1..4u8 {
        let host = graph.host(&input)?;
        fake.host_write(host);
        host.fill(round);
        graph.launch(if round % 2 == 0 { &stream } else { &side })?;
        let mut wanted = vec![round; LENGTH];
        mixed(fake, &[0; LENGTH], &mut wanted, 5);
        let host = graph.host(&output)?;
        fake.host_read(host);
        same("what came back", host, &wanted)?;
    }
    let (other, ()) = stream.capture(|_| Ok(()))?;
    if other.instantiate()?.host(&input).is_ok() {
        return Err("another graph gave the buffer".into());
    }
    graph.launch(&stream)?;
    drop(graph);
    Ok(())
}

/// Parts of a graph run as often as a value on the device says.
fn conditional_parts(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let (stream, side) = (ground.stream.clone(), ground.device.stream()?);
    let mut left = stream.upload(&[1u32])?;
    let (mut a, mut b) = (stream.upload(&[1u8; LENGTH])?, stream.upload(&[2u8; LENGTH])?);
    let (graph, ()) = stream.capture(|stream| {
        ground.make(&side_of(stream, &side)?, &mut a, 1)?;
        stream.run_while(&mut left, |stream, left| {
            // Once for each launch that finds a 1: the second turn is the last.
            let mut scratch = stream.zeros::<u8>(LENGTH)?;
            ground.mix(stream, &a, &mut scratch, 2)?;
            ground.mix(stream, &scratch, &mut b, 3)?;
            drop(scratch);
            stream.fill(left, 0)
        })?;
        stream.run_if(&left, |stream| ground.make(stream, &mut b, 99))?;
        // After the parts, also on another stream.
        ground.mix(&side, &b, &mut a, 4)
    })?;
    if graph.nodes()?.iter().filter(|node| node.kind() == GraphNodeKind::Conditional).count() != 2 {
        return Err(format!("the nodes are {:?}", graph.nodes()?).into());
    }
    let graph = graph.instantiate()?;
    let (mut first, mut second) = (vec![1u8; LENGTH], vec![2u8; LENGTH]);
    for run in [1u32, 0, 1] {
        stream.copy_from_host(&[run], &mut left)?;
        graph.launch(if run == 0 { &side } else { &stream })?;
        first.copy_from_slice(&made(fake, LENGTH, 1));
        if run == 1 {
            let mut scratch = vec![0u8; LENGTH];
            mixed(fake, &first, &mut scratch, 2);
            mixed(fake, &scratch, &mut second, 3);
        }
        mixed(fake, &second, &mut first, 4);
        same("what the loop wrote", &side.download(&b)?, &second)?;
        same("what came after", &stream.download(&a)?, &first)?;
    }
    drop(graph);
    // Outside of a capture there is nothing to be a part of.
    match stream.run_if(&left, |_| Ok(())) {
        Err(Error::InvalidArgument { .. }) => {}
        other => return Err(format!("a part of nothing answers {other:?}").into()),
    }
    // A body that fails spoils the whole, even where its error is ignored.
    let swallowed = stream.capture(|stream| {
        let part = stream.run_while(&mut left, |stream, _| {
            ground.make(stream, &mut b, 5)?;
            stream.synchronize()
        });
        not_captured(part)
    });
    not_capturable("a graph with half a loop", swallowed)?;
    ground.make(&stream, &mut b, 6)?;
    same("a buffer afterwards", &stream.download(&b)?, &made(fake, LENGTH, 6))
}

/// The other stream, taken into the capture of the first.
fn side_of(stream: &Stream, side: &Stream) -> Result<Stream, Error> {
    side.wait_for(stream)?;
    Ok(side.clone())
}

/// Child: one of the programs above.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    let program = match arguments {
        [name] => PROGRAMS.iter().find(|(known, _)| known == name),
        _ => None,
    };
    let (_, program) = program.ok_or("usage: PROGRAM")?;
    for strict in [true, false] {
        fake.set_strict(strict);
        program(fake).map_err(|error| format!("strict {strict}: {error}"))?;
        scenario::settle()?;
        scenario::check_end(fake)?;
        let live = fake.live();
        if live.captures + live.graphs + live.instances != 0 {
            return Err(format!("alive at the end: {}", fake.describe_live()).into());
        }
    }
    Ok(())
}

type Program = fn(&Fake) -> Outcome;

const PROGRAMS: &[(&str, Program)] = &[
    ("replays", replays),
    ("forks_and_joins", forks_and_joins),
    ("owns_its_memory", owns_its_memory),
    ("refuses", refuses),
    ("discards", discards),
    ("other_threads", other_threads),
    ("pinned_memory", pinned_memory),
    ("captured_closures", graph_updates::captured_closures),
    ("conditional_parts", conditional_parts),
    ("changed_kernels", graph_updates::changed_kernels),
];

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for (name, _) in PROGRAMS {
        for (pool, setting) in [("", ""), ("_without_a_pool", "none"), ("_poisoned", "poison")] {
            tests.push(Test::new(format!("graphs::{name}{pool}"), move || {
                let arguments = [(*name).to_owned()];
                let settings = [("SELVEDGE_POOL", setting)];
                children::must_succeed(&Variant::new(12040), "graphs", &arguments, &settings).map(drop)
            }));
        }
    }
    tests
}
