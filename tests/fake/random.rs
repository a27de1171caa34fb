//! Random programs: buffers, streams, events, transfers, modules, threads and drops in any order the types allow.
//!
//! Each program is made from its seed alone and runs against a model: every buffer's bytes as a sequential machine
//! would have them. What proves the layer is three things at once: the fake driver's clocks see no use, free or host
//! access without a happens-before edge; every byte that comes back is the model's; and nothing is alive when all is
//! dropped. With `Bug::UnorderedLaunch` one launch in some passes a raw address, so that the layer cannot order it: then
//! the clocks must object, which proves that they can.

use std::sync::mpsc;

use libtest_mimic::{Failed, Trial};
use selvedge::driver::{
    Copy2d, Device, DeviceBuffer, Event, Function, LaunchConfig, Module, PinnedBuffer, RawAddress, Stream,
    Transfer,
};

use super::kernels::PTX;
use super::support::{Fake, Parameter};
use super::variant::Variant;
use super::{children, scenario};

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

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    None,
    UnorderedLaunch,
}

/// A buffer and what its bytes must be; `None` while they are unspecified.
struct Tracked {
    buffer: DeviceBuffer<u8>,
    bytes: Option<Vec<u8>>,
    device: usize,
}

/// A copy on its way, and what the host side must hold when it is done.
struct Moving {
    transfer: Transfer<u8>,
    bytes: Vec<u8>,
}

/// What a program has at a moment.
struct State {
    devices: Vec<Device>,
    streams: Vec<(usize, Stream)>,
    buffers: Vec<Tracked>,
    pinned: Vec<PinnedBuffer<u8>>,
    moving: Vec<Moving>,
    events: Vec<(usize, Event)>,
    modules: Vec<Option<(Module, Function, Function)>>,
}

type Outcome = Result<(), String>;

/// Runs the program of a seed and returns what was wrong.
pub fn run(fake: &Fake, seed: u64, bug: Bug) -> Outcome {
    let mut random = Random::new(seed);
    fake.set_seed(seed | 1);
    fake.set_strict(random.below(3) == 0);
    let devices: Vec<Device> = Device::list().map_err(|error| error.to_string())?;
    let modules = devices.iter().map(|_| None).collect();
    let (streams, buffers, pinned) = (Vec::new(), Vec::new(), Vec::new());
    let mut state =
        State { devices, streams, buffers, pinned, moving: Vec::new(), events: Vec::new(), modules };
    let steps = 20 + random.below(40);
    // One program in eight runs its steps on several threads, handed from one to the next.
    let result = if random.below(8) == 0 {
        on_threads(fake, state, &mut random, steps, bug)
    } else {
        let result = (0..steps).try_for_each(|step| one_step(fake, &mut state, &mut random, step, bug));
        drop_all(&mut state, &mut random);
        result
    };
    fake.foreign_set(0);
    result.and_then(|()| end(fake, random.below(8) == 0))
}

/// Each step on a thread of its own choice; the state travels with the step.
fn on_threads(fake: &Fake, state: State, random: &mut Random, steps: usize, bug: Bug) -> Outcome {
    std::thread::scope(|scope| {
        let (back, finished) = mpsc::channel();
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let (sender, work) = mpsc::channel::<(State, Random, usize)>();
                let back = back.clone();
                scope.spawn(move || {
                    for (mut state, mut random, step) in work {
                        let result = one_step(fake, &mut state, &mut random, step, bug);
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
        // What is left is dropped by a thread that made none of it.
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
            + live.links;
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
            state.modules.iter().flatten().count(),
        ];
        let total: usize = left.iter().sum();
        if total == 0 {
            return;
        }
        let mut chosen = random.below(total);
        let kind = left.iter().position(|&count| {
            let here = chosen < count;
            if !here {
                chosen -= count;
            }
            here
        });
        match kind {
            Some(0) => drop(state.streams.swap_remove(chosen)),
            Some(1) => drop(state.buffers.swap_remove(chosen)),
            Some(2) => drop(state.pinned.swap_remove(chosen)),
            Some(3) => drop(state.moving.swap_remove(chosen)),
            Some(4) => drop(state.events.swap_remove(chosen)),
            _ => {
                if let Some(module) = state.modules.iter_mut().filter(|module| module.is_some()).nth(chosen) {
                    *module = None;
                }
            }
        }
    }
}

fn one_step(fake: &Fake, state: &mut State, random: &mut Random, step: usize, bug: Bug) -> Outcome {
    fake.step(step as u32);
    // Somebody else in the process switches this thread's context now and then.
    let foreign = random.below(4) == 0;
    if foreign {
        let device = random.below(state.devices.len());
        fake.foreign_set(fake.foreign_context(device as i32));
    }
    step_of(fake, state, random, bug).map_err(|error| format!("step {step}: {error}"))?;
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
    bug: Bug,
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
        let length = [16, 64, 64, 700, 64][random.below(5)];
        let (buffer, bytes) = match random.below(3) {
            0 => (stream.uninitialized(length)?, None),
            1 => (stream.zeros(length)?, Some(vec![0; length])),
            _ => {
                let bytes = random.bytes(length);
                (stream.upload(&bytes)?, Some(bytes))
            }
        };
        state.buffers.push(Tracked { buffer, bytes, device });
        return Ok(());
    }
    match choice {
        18..26 => {
            let at = random.below(state.buffers.len());
            drop(state.buffers.swap_remove(at));
        }
        26..28 => drop(state.streams.swap_remove(at)),
        28..56 => launch(fake, state, random, device, &stream, bug)?,
        56..62 => copy(state, random, device, &stream)?,
        62..66 => {
            let Some(target) = pick(&mut state.buffers, random, |tracked| tracked.device == device) else {
                return Ok(());
            };
            let value = random.next() as u8;
            stream.fill(&mut target.buffer, value)?;
            target.bytes = Some(vec![value; target.buffer.len()]);
        }
        66..76 => {
            let known = |tracked: &Tracked| tracked.device == device && tracked.bytes.is_some();
            let Some(source) = pick(&mut state.buffers, random, known) else { return Ok(()) };
            let found = stream.download(&source.buffer)?;
            same(&found, source.bytes.as_deref().unwrap_or(&[]), "a download")?;
        }
        76..80 => {
            let Some(target) = pick(&mut state.buffers, random, |tracked| tracked.device == device) else {
                return Ok(());
            };
            let bytes = random.bytes(target.buffer.len());
            stream.copy_from_host(&bytes, &mut target.buffer)?;
            target.bytes = Some(bytes);
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
            same(&pinned, &moving.bytes, "a transfer")?;
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
        97 => state.modules[device] = None,
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

fn pick<'a>(
    buffers: &'a mut [Tracked],
    random: &mut Random,
    fits: impl Fn(&Tracked) -> bool,
) -> Option<&'a mut Tracked> {
    let count = buffers.iter().filter(|tracked| fits(tracked)).count();
    if count == 0 {
        return None;
    }
    let chosen = random.below(count);
    buffers.iter_mut().filter(|tracked| fits(tracked)).nth(chosen)
}

fn same(found: &[u8], wanted: &[u8], what: &str) -> Result<(), String> {
    match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
        None if found.len() == wanted.len() => Ok(()),
        at => Err(format!("{what} of {} bytes differs from the model at {at:?}", wanted.len())),
    }
}

fn launch(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
    bug: Bug,
) -> Result<(), Box<dyn std::error::Error>> {
    if state.modules[device].is_none() {
        let module = state.devices[device].load(PTX.as_bytes())?;
        let functions = (module.function("mix")?, module.function("make")?);
        state.modules[device] = Some((module, functions.0, functions.1));
    }
    let Some((_, mix, make)) = &state.modules[device] else { return Ok(()) };
    let here: Vec<usize> =
        (0..state.buffers.len()).filter(|&at| state.buffers[at].device == device).collect();
    if here.is_empty() {
        return Ok(());
    }
    let target = here[random.below(here.len())];
    let source = here[random.below(here.len())];
    let (config, salt) = (LaunchConfig::new(1, 32), random.next() as u32);
    let known = state.buffers[target].bytes.is_some() && state.buffers[source].bytes.is_some();
    if target == source || !known {
        let tracked = &mut state.buffers[target];
        let length = tracked.buffer.len() as u64;
        // SAFETY: `make` writes `length` bytes.
        unsafe { make.launch(stream, config, (&mut tracked.buffer, length, salt))? };
        let mut bytes = vec![0; tracked.buffer.len()];
        fake.kernel_effect(
            "make",
            &mut [
                Parameter::Write(&mut bytes),
                Parameter::Scalar(&length.to_ne_bytes()),
                Parameter::Scalar(&salt.to_ne_bytes()),
            ],
        );
        tracked.bytes = Some(bytes);
        return Ok(());
    }
    let length = state.buffers[target].buffer.len().min(state.buffers[source].buffer.len());
    let (first, second) = (target.min(source), target.max(source));
    let (low, high) = state.buffers.split_at_mut(second);
    let (target, source) =
        if target == first { (&mut low[first], &high[0]) } else { (&mut high[0], &low[first]) };
    let scalar = length as u64;
    if bug == Bug::UnorderedLaunch && random.below(3) == 0 {
        let address = RawAddress(target.buffer.address());
        // SAFETY: the fake driver's kernels touch live memory only; that the use is not ordered is the point.
        unsafe { mix.launch(stream, config, (&source.buffer, address, scalar, salt))? };
    } else {
        let part = target.buffer.slice_mut(..length)?;
        // SAFETY: `mix` reads and updates `length` bytes.
        unsafe { mix.launch(stream, config, (&source.buffer, part, scalar, salt))? };
    }
    if let (Some(target), Some(source)) = (&mut target.bytes, &source.bytes) {
        fake.kernel_effect(
            "mix",
            &mut [
                Parameter::Read(&source[..length]),
                Parameter::Update(&mut target[..length]),
                Parameter::Scalar(&scalar.to_ne_bytes()),
                Parameter::Scalar(&salt.to_ne_bytes()),
            ],
        );
    }
    Ok(())
}

fn copy(
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
) -> Result<(), Box<dyn std::error::Error>> {
    let count = state.buffers.len();
    let (from, to) = (random.below(count), random.below(count));
    // A stream copies within its device, and to or from it.
    let reaches = state.buffers[from].device == device || state.buffers[to].device == device;
    if from == to || !reaches {
        return Ok(());
    }
    let (low, high) = state.buffers.split_at_mut(from.max(to));
    let (from, to) = if from < to { (&low[from], &mut high[0]) } else { (&high[0], &mut low[to]) };
    let length = from.buffer.len().min(to.buffer.len());
    let (Some(source), Some(target)) = (&from.bytes, &mut to.bytes) else { return Ok(()) };
    if from.device == to.device && random.below(3) == 0 {
        let width = length / 4;
        let shape = Copy2d { width, height: 3, source_pitch: width, destination_pitch: width + 1 };
        if width * 3 + 2 > length {
            return Ok(());
        }
        stream.copy_2d(&from.buffer, &mut to.buffer, shape)?;
        for row in 0..3 {
            target[row * (width + 1)..][..width].copy_from_slice(&source[row * width..][..width]);
        }
        return Ok(());
    }
    stream.copy(&from.buffer.slice(..length)?, &mut to.buffer.slice_mut(..length)?)?;
    target[..length].copy_from_slice(&source[..length]);
    Ok(())
}

fn transfer(
    fake: &Fake,
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
) -> Result<(), Box<dyn std::error::Error>> {
    let Some(tracked) = pick(&mut state.buffers, random, |tracked| tracked.device == device) else {
        return Ok(());
    };
    let length = tracked.buffer.len();
    let kept = state.pinned.iter().position(|pinned| pinned.len() == length);
    let mut pinned = match kept {
        Some(at) => state.pinned.swap_remove(at),
        None if random.below(4) == 0 => state.devices[device].register(vec![0u8; length])?,
        None => state.devices[device].pinned(length)?,
    };
    let moving = match (&tracked.bytes, random.below(2)) {
        (Some(bytes), 0) => {
            let bytes = bytes.clone();
            Moving { transfer: stream.download_async(&tracked.buffer, pinned)?, bytes }
        }
        _ => {
            let bytes = random.bytes(length);
            fake.host_write(&pinned);
            pinned.copy_from_slice(&bytes);
            tracked.bytes = Some(bytes.clone());
            Moving { transfer: stream.upload_async(pinned, &mut tracked.buffer)?, bytes }
        }
    };
    state.moving.push(moving);
    Ok(())
}

fn events(
    state: &mut State,
    random: &mut Random,
    device: usize,
    stream: &Stream,
) -> Result<(), Box<dyn std::error::Error>> {
    if state.events.len() < 4 && random.below(2) == 0 {
        state.events.push((device, state.devices[device].event()?));
    }
    if state.events.is_empty() {
        return Ok(());
    }
    let at = random.below(state.events.len());
    let (of, event) = &mut state.events[at];
    match random.below(4) {
        0 if *of == device => event.record(stream)?,
        1 => stream.wait(event)?,
        2 => event.synchronize()?,
        _ => {
            event.is_complete()?;
        }
    }
    Ok(())
}

/// Child: the programs of a range of seeds, with or without a bug.
pub fn child(fake: &Fake, arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [first, count, bug] = arguments else { return Err("usage: FIRST COUNT BUG".into()) };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let bug = if bug == "bug" { Bug::UnorderedLaunch } else { Bug::None };
    let mut caught = 0;
    for seed in first..first + count {
        match run(fake, seed, bug) {
            Ok(()) => {}
            Err(_) if bug == Bug::UnorderedLaunch => {
                caught += 1;
                fake.reset();
            }
            Err(error) => return Err(format!("program {seed}: {error}").into()),
        }
    }
    println!("{caught}");
    Ok(())
}

/// Programs that CI runs; `SELVEDGE_RANDOM_PROGRAMS` asks for another number.
fn programs() -> u64 {
    std::env::var("SELVEDGE_RANDOM_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

fn many(setting: (&'static str, &'static str), share: u64, from: u64) -> Result<(), Failed> {
    let count = (programs() / share).max(1);
    let half = count.div_ceil(2);
    let run = |first: u64| {
        let arguments = [first.to_string(), half.to_string(), "sound".to_owned()];
        children::must_succeed(&Variant::new(12040), "random", &arguments, &[setting]).map(drop)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(from + half));
        run(from)?;
        other.join().map_err(|_| "a thread died")?
    })
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("random::programs", || many(("SELVEDGE_POOL", ""), 1, 0)),
        Trial::test("random::programs_without_a_pool", || many(("SELVEDGE_POOL", "none"), 10, 10_000_000)),
        Trial::test("random::programs_with_plain_memory", || {
            many(("SELVEDGE_POOL", "plain"), 10, 30_000_000)
        }),
        Trial::test("random::programs_with_poisoned_memory", || {
            many(("SELVEDGE_POOL", "poison"), 20, 40_000_000)
        }),
        Trial::test("random::programs_with_the_drivers_pool", || {
            many(("SELVEDGE_POOL", "driver"), 10, 50_000_000)
        }),
        // All but the smallest buffers, in several chunks each.
        Trial::test("random::programs_of_staged_copies", || {
            many(("SELVEDGE_STAGING_BYTES", "64"), 10, 20_000_000)
        }),
        Trial::test("random::a_seeded_ordering_bug_is_caught", || {
            let arguments = ["0".to_owned(), "1000".to_owned(), "bug".to_owned()];
            let text = children::must_succeed(&Variant::new(12040), "random", &arguments, &[])?;
            let caught: u64 = text.trim().parse().unwrap_or(0);
            // Not every program has a use that the raw launch races with.
            if caught > 20 { Ok(()) } else { Err(format!("caught in {caught} of 1000 programs").into()) }
        }),
    ]
}
