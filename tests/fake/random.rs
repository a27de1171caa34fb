//! Random programs: buffers, streams, events, transfers, modules, threads and drops in any order the types allow.
//!
//! Each program is made from its seed alone and runs against a model: every buffer's bytes as a sequential machine
//! would have them. Three checks prove the layer: the fake driver's clocks see no use, free or host
//! access without a happens-before edge; every byte that comes back is the model's; and nothing is alive when all is
//! dropped. With `Kind::Unordered` one launch in some passes a raw address, so that the layer cannot order it: then
//! the clocks must object, which proves that they can.

use std::sync::mpsc;

use libtest_mimic::Failed;
use selvedge::driver::{Copy2d, Stream};

use super::model::{Cell, Mark, Moving, Operation, State, Tracked};
use super::support::Fake;
use super::variant::Variant;
use super::{children, random_graphs, scenario};
use crate::common::sampling;
use crate::common::suite::Test;

/// A small generator of random numbers (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// Operations that a program has besides the ordinary ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// Launches that the layer cannot order: wrong on purpose.
    Unordered,
    Graphs,
}

pub type Outcome = Result<(), String>;

/// Runs the program of a seed and returns what was wrong.
pub fn run(fake: &Fake, seed: u64, kind: Kind) -> Outcome {
    let mut random = Random::new(seed);
    fake.set_seed(seed | 1);
    fake.set_strict(random.below(3) == 0);
    let mut state = State::new().map_err(|error| error.to_string())?;
    let steps = 20 + random.below(40);
    // One program in eight runs its steps on several threads, handed from one to the next.
    let result = if random.below(8) == 0 {
        on_threads(fake, state, &mut random, steps, kind)
    } else {
        let result = (0..steps).try_for_each(|step| one_step(fake, &mut state, &mut random, step, kind));
        drop_all(&mut state, &mut random);
        result
    };
    fake.foreign_set(0);
    let result = match result {
        // So little memory that programs run into the end of it now and then.
        Err(error) if is_short() && error.contains("is out of memory") => Ok(()),
        result => result,
    };
    result.and_then(|()| end(fake, random.below(8) == 0))
}

/// Returns whether memory is scarce, so that blocks are reused as soon as possible.
fn is_short() -> bool {
    std::env::var_os("SELVEDGE_MEMORY_LIMIT").is_some()
}

/// Each step on a thread of its own choice; the state travels with the step.
fn on_threads(fake: &Fake, state: State, random: &mut Random, steps: usize, kind: Kind) -> Outcome {
    std::thread::scope(|scope| {
        let (back, finished) = mpsc::channel();
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let (sender, work) = mpsc::channel::<(State, Random, usize)>();
                let back = back.clone();
                scope.spawn(move || {
                    for (mut state, mut random, step) in work {
                        let result = one_step(fake, &mut state, &mut random, step, kind);
                        let _ = back.send((state, random, result));
                    }
                });
                sender
            })
            .collect();
        let mut state = state;
        for step in 0..steps {
            let worker = random.below(workers.len());
            let task = (state, Random(random.next()), step);
            workers[worker].send(task).map_err(|_| "a worker died")?;
            let (returned, _, result) = finished.recv().map_err(|_| "a worker died")?;
            state = returned;
            result?;
        }
        // A thread that made none of the rest drops it.
        let mut random = Random(random.next());
        scope
            .spawn(move || drop_all(&mut state, &mut random))
            .join()
            .map_err(|_| "a drop panicked".to_owned())
    })
}

fn end(fake: &Fake, trim: bool) -> Outcome {
    if trim {
        scenario::settle().map_err(|error| error.to_string())?;
    }
    let violations = fake.violations();
    if !violations.is_empty() {
        return Err(violations.join("\n"));
    }
    if trim {
        let live = fake.live();
        let alive = live.blocks
            + live.pinned
            + live.registered
            + live.streams
            + live.events
            + live.modules
            + live.links
            + live.captures
            + live.graphs
            + live.instances;
        if alive != 0 {
            return Err(format!("alive at the end: {}", fake.describe_live()));
        }
    }
    fake.reset();
    Ok(())
}

fn drop_all(state: &mut State, random: &mut Random) {
    loop {
        let left = [
            state.streams.len(),
            state.buffers.len(),
            state.pinned.len(),
            state.moving.len(),
            state.events.len(),
            state.kernels.iter().flatten().count(),
            state.graphs.len(),
        ];
        let total: usize = left.iter().sum();
        if total == 0 {
            return;
        }
        let mut chosen = random.below(total);
        let found = left.iter().position(|&count| {
            let here = chosen < count;
            if !here {
                chosen -= count;
            }
            here
        });
        match found {
            Some(0) => drop(state.streams.swap_remove(chosen)),
            Some(1) => drop(state.buffers.swap_remove(chosen)),
            Some(2) => drop(state.pinned.swap_remove(chosen)),
            Some(3) => drop(state.moving.swap_remove(chosen)),
            Some(4) => drop(state.events.swap_remove(chosen)),
            Some(5) => {
                if let Some(kernels) =
                    state.kernels.iter_mut().filter(|kernels| kernels.is_some()).nth(chosen)
                {
                    *kernels = None;
                }
            }
            _ => drop(state.graphs.swap_remove(chosen)),
        }
    }
}

fn one_step(fake: &Fake, state: &mut State, random: &mut Random, step: usize, kind: Kind) -> Outcome {
    fake.step(step as u32);
    // Somebody else in the process switches this thread's context now and then.
    let foreign = random.below(4) == 0;
    if foreign {
        let device = random.below(state.devices.len());
        fake.foreign_set(fake.foreign_context(device as i32));
    }
    step_of(fake, state, random, kind).map_err(|error| format!("step {step}: {error}"))?;
    if foreign && !fake.foreign_is_current() {
        return Err(format!("step {step}: the foreign context is not current again"));
    }
    if foreign {
        fake.foreign_set(0);
    }
    match fake.pageable_pending() {
        0 => Ok(()),
        pending => Err(format!("step {step}: {pending} copies of plain host memory are still under way")),
    }
}

fn step_of(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    kind: Kind,
) -> Result<(), Box<dyn std::error::Error>> {
    if kind == Kind::Graphs && random.below(3) == 0 {
        return random_graphs::step(fake, state, random);
    }
    ordinary(fake, state, random, kind)
}

/// A step without graphs.
pub fn ordinary(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    kind: Kind,
) -> Result<(), Box<dyn std::error::Error>> {
    let choice = random.below(100);
    if state.streams.is_empty() || (choice < 6 && state.streams.len() < 6) {
        let device = random.below(state.devices.len());
        let priority = random.below(3) as i32 - 2;
        state.streams.push((device, state.devices[device].stream_with_priority(priority)?));
        return Ok(());
    }
    let at = random.below(state.streams.len());
    let (device, stream) = state.streams[at].clone();
    if state.buffers.is_empty() || (choice < 18 && state.buffers.len() < 10) {
        let length = LENGTHS[random.below(5)];
        let (buffer, cell) = match random.below(3) {
            0 => (stream.uninitialized(length)?, Cell::unspecified(length)),
            1 => (stream.zeros(length)?, Cell::new(vec![0; length])),
            _ => {
                let bytes = random.bytes(length);
                (stream.upload(&bytes)?, Cell::new(bytes))
            }
        };
        state.buffers.push(Tracked { buffer, cell, device });
        return Ok(());
    }
    match choice {
        18..26 => {
            let at = random.below(state.buffers.len());
            drop(state.buffers.swap_remove(at));
        }
        26..28 => drop(state.streams.swap_remove(at)),
        28..56 => launch(fake, state, random, device, &stream, kind)?,
        56..62 => copy(fake, state, random, device, &stream)?,
        62..66 => fill(fake, state, random, device, &stream)?,
        66..76 => {
            let Some(cell) = pick(state, random, |tracked| tracked.device == device) else { return Ok(()) };
            if let (Some(bytes), Some(buffer)) = (cell.get(), state.buffer(&cell)) {
                same(&stream.download(buffer)?, &bytes, "a download")?;
            }
        }
        76..80 => {
            let Some(cell) = pick(state, random, |tracked| tracked.device == device) else { return Ok(()) };
            let bytes = random.bytes(cell.len());
            if let Some(buffer) = state.buffer(&cell) {
                stream.copy_from_host(&bytes, buffer)?;
                cell.set(bytes);
            }
        }
        80..87 => transfer(fake, state, random, device, &stream)?,
        87..91 => {
            if state.moving.is_empty() {
                return Ok(());
            }
            let at = random.below(state.moving.len());
            let moving = state.moving.swap_remove(at);
            if random.below(4) == 0 {
                return Ok(());
            }
            let pinned = moving.transfer.wait()?;
            fake.host_read(&pinned);
            same(&pinned, &moving.host.get().unwrap_or_default(), "a transfer")?;
            state.pinned.push(pinned);
        }
        91..94 => events(state, random, device, &stream)?,
        94 => stream.synchronize()?,
        95 => {
            stream.is_idle()?;
        }
        96 => {
            if random.below(8) == 0 {
                state.devices[device].trim()?;
            }
        }
        97 => state.kernels[device] = None,
        98 => state.devices[device].synchronize()?,
        _ => {
            if !state.pinned.is_empty() {
                let at = random.below(state.pinned.len());
                drop(state.pinned.swap_remove(at));
            }
        }
    }
    Ok(())
}

/// Lengths of buffers, of which small ones are more frequent.
pub const LENGTHS: [usize; 5] = [16, 64, 64, 700, 64];

/// One of the buffers that fit.
pub fn pick(state: &State, random: &mut Random, fits: impl Fn(&Tracked) -> bool) -> Option<Cell> {
    let fitting: Vec<_> = state.buffers.iter().filter(|tracked| fits(tracked)).collect();
    if fitting.is_empty() { None } else { Some(fitting[random.below(fitting.len())].cell.clone()) }
}

pub fn same(found: &[u8], wanted: &[u8], what: &str) -> Result<(), String> {
    match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
        None if found.len() == wanted.len() => Ok(()),
        at => Err(format!("{what} of {} bytes differs from the model at {at:?}", wanted.len())),
    }
}

pub fn launch(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
    kind: Kind,
) -> Result<(), Box<dyn std::error::Error>> {
    let here = |tracked: &Tracked| tracked.device == device;
    let (Some(target), Some(source)) = (pick(state, random, here), pick(state, random, here)) else {
        return Ok(());
    };
    let salt = random.next() as u32;
    let operation = if target.is(&source) || !state.is_known(&target) || !state.is_known(&source) {
        Operation::Make { target, salt }
    } else {
        let ordered = kind != Kind::Unordered || random.below(3) != 0;
        Operation::Mix { source, target, salt, ordered }
    };
    Ok(state.perform(fake, device, stream, operation)?)
}

pub fn fill(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
) -> Result<(), Box<dyn std::error::Error>> {
    let Some(target) = pick(state, random, |tracked| tracked.device == device) else { return Ok(()) };
    let value = random.next() as u8;
    let other = state.streams.iter().find(|(of, other)| *of == device && other != stream).cloned();
    if let (Some((_, other)), true, 0) = (other, state.capture.is_none(), random.below(3)) {
        // The halves, each on another stream.
        let middle = target.len() / 2;
        let Some(buffer) = state.buffer(&target) else { return Ok(()) };
        let (mut left, mut right) = buffer.split_at_mut(middle)?;
        stream.fill(&mut left, value)?;
        other.fill(&mut right, !value)?;
        target.set([vec![value; middle], vec![!value; target.len() - middle]].concat());
        return Ok(());
    }
    Ok(state.perform(fake, device, stream, Operation::Fill { target, value })?)
}

pub fn copy(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
) -> Result<(), Box<dyn std::error::Error>> {
    let count = state.buffers.len();
    if count == 0 {
        return Ok(());
    }
    let (from, to) = (&state.buffers[random.below(count)], &state.buffers[random.below(count)]);
    let (source, target) = (from.cell.clone(), to.cell.clone());
    // A stream copies within its device, and to or from it; a graph only within.
    let here = [from.device == device, to.device == device];
    let reaches = if state.capture.is_some() { here == [true; 2] } else { here != [false; 2] };
    if source.is(&target) || !reaches || !state.is_known(&source) || !state.is_known(&target) {
        return Ok(());
    }
    let operation = if here == [true; 2] && random.below(3) == 0 {
        let length = source.len().min(target.len());
        let width = length / 4;
        if width * 3 + 2 > length {
            return Ok(());
        }
        let shape = Copy2d { width, height: 3, source_pitch: width, destination_pitch: width + 1 };
        Operation::CopyRows { source, target, shape }
    } else {
        Operation::Copy { source, target }
    };
    Ok(state.perform(fake, device, stream, operation)?)
}

pub fn transfer(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
) -> Result<(), Box<dyn std::error::Error>> {
    let Some(cell) = pick(state, random, |tracked| tracked.device == device) else {
        return Ok(());
    };
    let length = cell.len();
    let found = state.pinned.iter().position(|pinned| pinned.len() == length);
    let mut pinned = match found {
        Some(at) => state.pinned.swap_remove(at),
        None if random.below(4) == 0 => state.devices[device].register(vec![0u8; length])?,
        None => state.devices[device].pinned(length)?,
    };
    let (host, operation) = if state.is_known(&cell) && random.below(2) == 0 {
        let host = Cell::unspecified(length);
        (host.clone(), Operation::Download { source: cell.clone(), host })
    } else {
        let bytes = random.bytes(length);
        fake.host_write(&pinned);
        pinned.copy_from_slice(&bytes);
        let host = Cell::new(bytes);
        (host.clone(), Operation::Upload { host, target: cell.clone() })
    };
    let captured = state.captures(stream, &operation);
    let is_read = matches!(operation, Operation::Download { .. });
    let Some(buffer) = state.buffer(&cell) else { return Ok(()) };
    let transfer = match is_read {
        true => stream.download_async(buffer, pinned)?,
        false => stream.upload_async(pinned, buffer)?,
    };
    if transfer.captured().is_some() != captured {
        return Err(format!("a copy is captured ({:?}) against the model", transfer.captured()).into());
    }
    state.done(fake, stream, operation, captured);
    match transfer.captured() {
        Some(name) => random_graphs::hold(state, name, host, is_read),
        None => state.moving.push(Moving { transfer, host }),
    }
    Ok(())
}

fn events(
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
) -> Result<(), Box<dyn std::error::Error>> {
    if state.events.len() < 4 && random.below(2) == 0 {
        state.events.push((device, state.devices[device].event()?, Mark::Nothing));
    }
    if state.events.is_empty() {
        return Ok(());
    }
    let at = random.below(state.events.len());
    let (of, event, mark) = &mut state.events[at];
    match random.below(4) {
        0 if *of == device => {
            event.record(stream)?;
            *mark = Mark::Real;
        }
        choice => {
            let result = match choice {
                1 => stream.wait(event),
                2 => event.synchronize(),
                _ => event.is_complete().map(drop),
            };
            match mark {
                Mark::Captured(_) => random_graphs::refused("the mark of a capture that is over", result)?,
                _ => result?,
            }
        }
    }
    Ok(())
}

/// Child: the programs of a range of seeds, with or without a bug.
pub fn child(fake: &Fake, arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [first, count, kind] = arguments else { return Err("usage: FIRST COUNT KIND".into()) };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let kind = match kind.as_str() {
        "plain" => Kind::Plain,
        "unordered" => Kind::Unordered,
        "graphs" => Kind::Graphs,
        other => return Err(format!("no programs of kind '{other}'").into()),
    };
    if is_short() {
        fake.set_granularity(4096);
    }
    let mut caught = 0;
    for seed in first..first + count {
        match run(fake, seed, kind) {
            Ok(()) => {}
            Err(_) if kind == Kind::Unordered => {
                caught += 1;
                fake.reset();
            }
            Err(error) => return Err(format!("program {seed}: {error}").into()),
        }
    }
    println!("{caught}");
    Ok(())
}

/// Programs of the whole set.
const ALL_PROGRAMS: u64 = 100_000;
/// Programs of a sample.
const SAMPLED_PROGRAMS: u64 = 5_000;
/// Ranges of seeds from which the commit chooses one; the ranges of two tests are further apart.
const RANGES: u64 = 64;

/// The number of programs, and how far behind a test's first seed they begin. `SELVEDGE_RANDOM_PROGRAMS` asks for another number.
fn programs() -> (u64, u64) {
    let asked = std::env::var("SELVEDGE_RANDOM_PROGRAMS").ok().and_then(|text| text.parse().ok());
    match asked {
        Some(count) => (count, 0),
        None if sampling::is_whole("random") => (ALL_PROGRAMS, 0),
        None => (SAMPLED_PROGRAMS, sampling::number("random programs") % RANGES * ALL_PROGRAMS),
    }
}

pub fn many(kind: &str, setting: (&'static str, &'static str), share: u64, from: u64) -> Result<(), Failed> {
    let (programs, offset) = programs();
    let (count, from) = ((programs / share).max(1), from + offset);
    let half = count.div_ceil(2);
    let run = |first: u64| {
        let arguments = [first.to_string(), half.to_string(), kind.to_owned()];
        children::must_succeed(&Variant::new(12040), "random", &arguments, &[setting]).map(drop)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(from + half));
        run(from)?;
        other.join().map_err(|_| "a thread died")?
    })
}

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("random::programs", || many("plain", ("SELVEDGE_POOL", ""), 1, 0)),
        Test::new("random::programs_without_a_pool", || {
            many("plain", ("SELVEDGE_POOL", "none"), 10, 10_000_000)
        }),
        Test::new("random::programs_with_plain_memory", || {
            many("plain", ("SELVEDGE_POOL", "plain"), 10, 30_000_000)
        }),
        Test::new("random::programs_with_poisoned_memory", || {
            many("plain", ("SELVEDGE_POOL", "poison"), 20, 40_000_000)
        }),
        Test::new("random::programs_with_the_drivers_pool", || {
            many("plain", ("SELVEDGE_POOL", "driver"), 10, 50_000_000)
        }),
        // All but the smallest buffers, in several chunks each.
        Test::new("random::programs_of_staged_copies", || {
            many("plain", ("SELVEDGE_STAGING_BYTES", "64"), 10, 20_000_000)
        }),
        Test::new("random::a_seeded_ordering_bug_is_caught", || {
            let arguments = ["0".to_owned(), "1000".to_owned(), "unordered".to_owned()];
            let text = children::must_succeed(&Variant::new(12040), "random", &arguments, &[])?;
            let caught: u64 = text.trim().parse().unwrap_or(0);
            // Not every program has a use that the raw launch races with.
            if caught > 20 { Ok(()) } else { Err(format!("caught in {caught} of 1000 programs").into()) }
        }),
    ]
}
