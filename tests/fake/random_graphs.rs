//! Random programs with graphs: random captures among ordinary steps, and graphs that are launched, updated and dropped.
//!
//! They are the programs of [`random`](super::random) with these steps besides. A capture is made of the same operations
//! on several streams; the model says of each whether it belongs to the capture, is done at once, or must be refused
//! without a driver call. A launch does the operations of its graph to the model's bytes, in the order of the capture.
//! The fake's clocks see whether the driver has them in an order too, and whether they are in order with all the rest.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use selvedge::Error;
use selvedge::driver::{CapturedBuffer, ExecutableGraph, Stream};

use super::model::{Capturing, Cell, Host, Mark, Operation, State, Step, Tracked};
use super::random::{self, Kind, LENGTHS, Random, same};
use super::support::Fake;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A graph that can be launched, and what a launch does.
pub struct Instance {
    graph: ExecutableGraph,
    device: usize,
    /// Id of the stream that the capture began on.
    origin: u64,
    captured: Capturing,
}

/// A captured copy's page-locked memory went to the graph.
pub fn hold(state: &mut State, name: CapturedBuffer<u8>, cell: Cell, is_read: bool) {
    if let Some(capture) = &mut state.capture {
        capture.hosts.push(Host { name, cell, is_read });
        capture.steps = None;
    }
}

pub fn refused<R>(what: &str, result: Result<R, Error>) -> Outcome {
    match result {
        Err(Error::NotCapturable { .. }) => Ok(()),
        Err(error) => Err(format!("{what} is refused with {error}").into()),
        Ok(_) => Err(format!("{what} is not refused").into()),
    }
}

/// Driver calls besides the question for another context, which is always asked.
fn calls(fake: &Fake) -> u64 {
    fake.calls() - fake.call_count("cuCtxGetCurrent")
}

/// One step with graphs.
pub fn step(fake: &Fake, state: &mut State, random: &mut Random) -> Outcome {
    if state.streams.is_empty() {
        return Ok(());
    }
    let choice = random.below(100);
    if state.graphs.is_empty() || (choice < 25 && state.graphs.len() < 4) {
        return capture(fake, state, random);
    }
    let at = random.below(state.graphs.len());
    match choice {
        25..75 => launch(fake, state, random, at),
        75..83 => host(fake, state, random, at),
        83..93 => update(fake, state, random, at),
        93..97 => {
            drop(state.graphs.swap_remove(at));
            Ok(())
        }
        _ => {
            let dot = state.graphs[at].graph.graph().to_dot()?;
            let wanted = state.graphs[at].captured.operations.len();
            match dot.matches("[label=").count() {
                found if found == wanted => Ok(()),
                found => Err(format!("a graph has {found} nodes, not {wanted}").into()),
            }
        }
    }
}

fn capture(fake: &Fake, state: &mut State, random: &mut Random) -> Outcome {
    /// How a closure ends.
    #[derive(Clone, Copy, PartialEq)]
    enum End {
        Well,
        Error,
        Panic,
    }
    let (device, origin) = state.streams[random.below(state.streams.len())].clone();
    let end = [End::Error, End::Panic, End::Well, End::Well, End::Well, End::Well, End::Well, End::Well]
        [random.below(8)];
    let (steps, number) = (1 + random.below(16), state.number());
    state.capture = Some(Capturing::new(number, &origin));
    let mut failure = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        origin.capture(|origin| {
            for step in 0..steps {
                if let Err(error) = inside(fake, state, random, (device, origin)) {
                    failure = Some(format!("step {step} of a capture: {error}"));
                    return Ok(());
                }
            }
            match end {
                End::Well => Ok(()),
                End::Error => origin.synchronize(),
                End::Panic => resume_unwind(Box::new("on purpose")),
            }
        })
    }));
    let captured = state.capture.take().unwrap_or_default();
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    match (end, outcome) {
        (End::Panic, Err(_)) | (End::Error, Ok(Err(Error::NotCapturable { .. }))) => Ok(()),
        (End::Well, Ok(Ok((graph, ())))) => {
            let graph = graph.instantiate()?;
            state.graphs.push(Instance { graph, device, origin: origin.id(), captured });
            Ok(())
        }
        (_, Ok(Err(error))) => Err(format!("a capture fails: {error}").into()),
        _ => Err("a capture does not end as its closure".into()),
    }
}

/// One step of a closure that is captured.
fn inside(fake: &Fake, state: &mut State, random: &mut Random, origin: (usize, &Stream)) -> Outcome {
    let (device, stream) = match random.below(2) {
        1 if !state.streams.is_empty() => state.streams[random.below(state.streams.len())].clone(),
        _ => (origin.0, origin.1.clone()),
    };
    match random.below(100) {
        0..12 => allocate(fake, state, random, device, &stream)?,
        12..20 => {
            if state.buffers.is_empty() {
                return Ok(());
            }
            let dropped = state.buffers.swap_remove(random.below(state.buffers.len()));
            if let Some(capture) = &mut state.capture
                && capture.owns(&dropped.cell)
            {
                capture.step(Step::Drop { cell: dropped.cell.clone() });
            }
        }
        20..50 => random::launch(fake, state, random, device, &stream, Kind::Graphs)?,
        50..57 => random::copy(fake, state, random, device, &stream)?,
        57..63 => random::fill(fake, state, random, device, &stream)?,
        63..67 => random::transfer(fake, state, random, device, &stream)?,
        67..75 => event(state, random, device, &stream, origin.1)?,
        75..80 => wait_for(state, random, &stream, origin.1)?,
        80..82 => {
            if !state.streams.is_empty() {
                drop(state.streams.swap_remove(random.below(state.streams.len())));
            }
        }
        82..84 => state.streams.push((origin.0, origin.1.device().stream()?)),
        84..91 => refusal(fake, state, random, device, &stream)?,
        91..93 => state.kernels[device] = None,
        93..95 => {
            if !state.graphs.is_empty() {
                let at = random.below(state.graphs.len());
                match random.below(3) {
                    0 => drop(state.graphs.swap_remove(at)),
                    _ => launch(fake, state, random, at)?,
                }
            }
        }
        95..97 => other_thread(fake, state, random)?,
        97 => {
            if !state.moving.is_empty() {
                let moving = state.moving.swap_remove(random.below(state.moving.len()));
                let pinned = moving.transfer.wait()?;
                fake.host_read(&pinned);
                same(&pinned, &moving.host.get().unwrap_or_default(), "a transfer from outside")?;
            }
        }
        98 => state.devices[device].trim()?,
        _ => drop(state.pinned.pop()),
    }
    Ok(())
}

fn allocate(fake: &Fake, state: &mut State, random: &mut Random, device: usize, stream: &Stream) -> Outcome {
    let length = LENGTHS[random.below(5)];
    let cell = Cell::unspecified(length);
    let zeroed = random.below(2) == 0;
    let buffer = if zeroed { stream.zeros(length)? } else { stream.uninitialized(length)? };
    let captured = state.has_captured(stream);
    if let Some(capture) = state.capture.as_mut().filter(|_| captured) {
        capture.own.push(cell.clone());
        capture.step(Step::Allocate { stream: stream.id(), cell: cell.clone() });
    }
    if zeroed {
        state.done(fake, stream, Operation::Fill { target: cell.clone(), value: 0 }, captured);
    }
    state.buffers.push(Tracked { buffer, cell, device });
    Ok(())
}

fn event(state: &mut State, random: &mut Random, device: usize, stream: &Stream, origin: &Stream) -> Outcome {
    if state.events.len() < 4 && random.below(2) == 0 {
        state.events.push((device, state.devices[device].event()?, Mark::Nothing));
    }
    let has = state.has_captured(stream);
    let (count, Some(capture)) = (state.events.len(), &mut state.capture) else { return Ok(()) };
    if count == 0 {
        return Ok(());
    }
    let (of, event, mark) = &mut state.events[random.below(count)];
    match random.below(5) {
        0 | 1 if *of == device => {
            event.record(stream)?;
            *mark = if has { Mark::Captured(capture.number) } else { Mark::Real };
        }
        0..4 => match mark {
            Mark::Captured(number) if *number == capture.number && stream.device() == origin.device() => {
                stream.wait(event)?;
                capture.join(stream);
                // How the streams are joined cannot be done again without the event.
                capture.steps = None;
            }
            Mark::Captured(_) => refused("a wait for the mark of another capture", stream.wait(event))?,
            Mark::Real if has => refused("a wait for a mark from outside", stream.wait(event))?,
            _ => stream.wait(event)?,
        },
        _ => match mark {
            Mark::Captured(_) => refused("a question about a captured mark", event.is_complete())?,
            _ => event.synchronize()?,
        },
    }
    Ok(())
}

fn wait_for(state: &mut State, random: &mut Random, stream: &Stream, origin: &Stream) -> Outcome {
    if state.streams.is_empty() {
        return Ok(());
    }
    let other = state.streams[random.below(state.streams.len())].1.clone();
    let both = (state.has_captured(stream), state.has_captured(&other));
    let result = stream.wait_for(&other);
    match both {
        (true, false) => refused("a wait for a stream outside", result),
        (false, true) if stream.device() != origin.device() => {
            refused("a join by another device's stream", result)
        }
        (false, false) => Ok(result?),
        (_, true) => {
            result?;
            if let Some(capture) = &mut state.capture {
                capture.join(stream);
                capture.step(Step::WaitFor { stream: stream.id(), other: other.id() });
            }
            Ok(())
        }
    }
}

/// An operation that cannot be captured. It is done if it is no part of the capture.
fn refusal(fake: &Fake, state: &mut State, random: &mut Random, device: usize, stream: &Stream) -> Outcome {
    let has = state.has_captured(stream);
    let before = calls(fake);
    let quiet = |what: &str, result: Result<(), Error>| match calls(fake) - before {
        0 => refused(what, result),
        more => Err(format!("{what} was refused after {more} driver calls").into()),
    };
    match random.below(7) {
        0 if has => quiet("a synchronize", stream.synchronize()),
        0 => Ok(stream.synchronize()?),
        1 if has => quiet("a question", stream.is_idle().map(drop)),
        1 => Ok(stream.is_idle().map(drop)?),
        2 => quiet("a device's synchronize", state.devices[device].synchronize()),
        3 if has => quiet("a callback", stream.on_complete(|| {})),
        4 => match stream.capture(|_| Ok(())) {
            Err(Error::InvalidArgument { .. }) if calls(fake) == before => Ok(()),
            other => Err(format!("a capture in a capture answers {other:?}").into()),
        },
        choice => {
            let Some(cell) = random::pick(state, random, |tracked| tracked.device == device) else {
                return Ok(());
            };
            let writes = choice == 6;
            let concerned = has || state.concerns(&cell, writes);
            let mut bytes = vec![random.next() as u8; cell.len()];
            let known = cell.get();
            let Some(buffer) = state.buffer(&cell) else { return Ok(()) };
            match (writes, known) {
                (true, _) if concerned => {
                    quiet("an upload from plain memory", stream.copy_from_host(&bytes, buffer))
                }
                (true, _) => {
                    stream.copy_from_host(&bytes, buffer)?;
                    cell.set(bytes);
                    Ok(())
                }
                (false, _) if concerned => {
                    quiet("a download to plain memory", stream.copy_to_host(buffer, &mut bytes))
                }
                (false, Some(known)) => {
                    stream.copy_to_host(buffer, &mut bytes)?;
                    Ok(same(&bytes, &known, "a download besides a capture")?)
                }
                _ => Ok(()),
            }
        }
    }
}

/// Another thread does ordinary work while this one captures. It has the streams that are not in the capture, and all
/// buffers.
fn other_thread(fake: &Fake, state: &mut State, random: &mut Random) -> Outcome {
    let Some(mut capture) = state.capture.take() else { return Ok(()) };
    // A launch does not repeat the thread's drops.
    capture.steps = None;
    let streams = std::mem::take(&mut state.streams);
    let (joined, free): (Vec<_>, Vec<_>) = streams.into_iter().partition(|(_, stream)| capture.has(stream));
    state.streams = free;
    let (steps, mut random) = (1 + random.below(5), Random::new(random.next()));
    let outcome = std::thread::scope(|scope| {
        let work = || {
            let mut work = || -> Outcome {
                for _ in 0..steps {
                    match random.below(6) {
                        0 if !state.graphs.is_empty() => {
                            let at = random.below(state.graphs.len());
                            launch(fake, state, &mut random, at)?;
                        }
                        1 => {
                            if let Some((_, stream)) = joined.first() {
                                refused("another thread's allocation", stream.zeros::<u8>(16))?;
                            }
                        }
                        _ => random::ordinary(fake, state, &mut random, Kind::Plain)?,
                    }
                }
                Ok(())
            };
            work().map_err(|error| format!("another thread: {error}"))
        };
        scope.spawn(work).join()
    });
    state.streams.extend(joined);
    state.capture = Some(capture);
    Ok(outcome.map_err(|_| "another thread panicked")??)
}

fn launch(fake: &Fake, state: &mut State, random: &mut Random, at: usize) -> Outcome {
    let instance = &state.graphs[at];
    let here: Vec<_> = state.streams.iter().filter(|(device, _)| *device == instance.device).collect();
    if here.is_empty() {
        return Ok(());
    }
    let stream = &here[random.below(here.len())].1;
    let concerned = |capture: &Capturing| {
        let Capturing { named, own, .. } = &instance.captured;
        let named = named.values().any(|(cell, writes)| capture.concerns(cell, *writes));
        // The graph may write to all of its own memory.
        capture.has(stream) || named || own.iter().any(|cell| capture.concerns(cell, true))
    };
    let result = instance.graph.launch(stream);
    if state.capture.as_ref().is_some_and(concerned) {
        return refused("a launch on what a capture uses", result);
    }
    result?;
    // A block of the graph may serve several of its buffers, so they start with nothing.
    instance.captured.own.iter().for_each(Cell::forget);
    instance.captured.operations.iter().for_each(|operation| operation.apply(fake));
    Ok(())
}

/// Looks at page-locked memory of a graph, or writes there what the next launch uploads.
fn host(fake: &Fake, state: &mut State, random: &mut Random, at: usize) -> Outcome {
    let Instance { graph, captured, .. } = &mut state.graphs[at];
    if captured.hosts.is_empty() {
        return Ok(());
    }
    let Host { name, cell, is_read } = &captured.hosts[random.below(captured.hosts.len())];
    let memory = graph.host(name)?;
    if *is_read {
        if let Some(wanted) = cell.get() {
            fake.host_read(memory);
            same(memory, &wanted, "what a graph downloaded")?;
        }
    } else {
        let bytes = random.bytes(memory.len());
        fake.host_write(memory);
        memory.copy_from_slice(&bytes);
        cell.set(bytes);
    }
    Ok(())
}

/// Captures a graph's operations once more, with other scalars, and puts them in its place.
fn update(fake: &Fake, state: &mut State, random: &mut Random, at: usize) -> Outcome {
    let Instance { device, origin, captured, .. } = &state.graphs[at];
    let (device, Some(steps)) = (*device, captured.steps.clone()) else { return Ok(()) };
    let streams: HashMap<u64, Stream> =
        state.streams.iter().map(|(_, stream)| (stream.id(), stream.clone())).collect();
    let Some(stream) = streams.get(origin).cloned() else { return Ok(()) };
    if !steps.iter().all(|step| is_possible(state, &streams, captured, step)) {
        return Ok(());
    }
    let number = state.number();
    state.capture = Some(Capturing::new(number, &stream));
    let result = stream.capture(|_| {
        let mut cells = Vec::new();
        steps.iter().try_for_each(|step| again(fake, state, random, device, &streams, &mut cells, step))
    });
    let captured = state.capture.take().unwrap_or_default();
    let (graph, ()) = result?;
    let instance = &mut state.graphs[at];
    let others = instance.captured.generations != captured.generations;
    match instance.graph.update(graph) {
        Ok(()) => instance.captured = captured,
        // A kernel of another module is another kernel.
        Err(failed) if others && matches!(*failed.error, Error::GraphNotUpdatable { .. }) => {
            let graph = failed.graph.instantiate()?;
            state.graphs.push(Instance { graph, device, origin: stream.id(), captured });
        }
        Err(failed) => return Err(format!("the same operations are no update: {}", failed.error).into()),
    }
    Ok(())
}

fn is_possible(state: &State, streams: &HashMap<u64, Stream>, captured: &Capturing, step: &Step) -> bool {
    let has = |cell: &Cell| captured.owns(cell) || state.buffers.iter().any(|tracked| tracked.cell.is(cell));
    match step {
        Step::Allocate { stream, .. } => streams.contains_key(stream),
        Step::Drop { .. } => true,
        Step::WaitFor { stream, other } => streams.contains_key(stream) && streams.contains_key(other),
        Step::Do { stream, operation } => {
            streams.contains_key(stream) && operation.uses().all(|(cell, _)| has(cell))
        }
    }
}

/// Does a step of an earlier capture in this one; `cells` are those that were allocated then and now.
fn again(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    device: usize,
    streams: &HashMap<u64, Stream>,
    cells: &mut Vec<(Cell, Cell)>,
    step: &Step,
) -> selvedge::Result<()> {
    let now = |cells: &[(Cell, Cell)], cell: &Cell| {
        cells.iter().find(|(then, _)| then.is(cell)).map_or(cell, |(_, now)| now).clone()
    };
    match step {
        Step::Allocate { stream, cell } => {
            let stream = &streams[stream];
            let buffer = stream.uninitialized(cell.len())?;
            let new = Cell::unspecified(cell.len());
            cells.push((cell.clone(), new.clone()));
            if let Some(capture) = &mut state.capture {
                capture.own.push(new.clone());
                capture.step(Step::Allocate { stream: stream.id(), cell: new.clone() });
            }
            state.buffers.push(Tracked { buffer, cell: new, device });
        }
        Step::Drop { cell } => {
            let cell = now(cells, cell);
            state.buffers.retain(|tracked| !tracked.cell.is(&cell));
            if let Some(capture) = &mut state.capture {
                capture.step(Step::Drop { cell });
            }
        }
        Step::WaitFor { stream, other } => {
            let (stream, other) = (&streams[stream], &streams[other]);
            stream.wait_for(other)?;
            if let Some(capture) = &mut state.capture {
                capture.join(stream);
                capture.step(Step::WaitFor { stream: stream.id(), other: other.id() });
            }
        }
        Step::Do { stream, operation } => {
            let mut operation = operation.clone();
            operation.map(|cell| now(cells, cell));
            if let Operation::Make { salt, .. } | Operation::Mix { salt, .. } = &mut operation {
                *salt = random.next() as u32;
            }
            state.perform(fake, device, &streams[stream], operation)?;
        }
    }
    Ok(())
}

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("random_graphs::programs", || random::many("graphs", ("SELVEDGE_POOL", ""), 5, 0)),
        // Blocks that others still use have to serve again.
        Test::new("random_graphs::programs_short_of_memory", || {
            random::many("graphs", ("SELVEDGE_MEMORY_LIMIT", "8K"), 20, 30_000_000)
        }),
        Test::new("random_graphs::programs_without_a_pool", || {
            random::many("graphs", ("SELVEDGE_POOL", "none"), 100, 10_000_000)
        }),
        Test::new("random_graphs::programs_in_poisoned_memory", || {
            random::many("graphs", ("SELVEDGE_POOL", "poison"), 100, 20_000_000)
        }),
    ]
}
