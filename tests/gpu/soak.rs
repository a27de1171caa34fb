//! Eight threads on four streams that do everything, for a given time: every result is the one of a model on the host,
//! and afterwards nothing is alive.
//!
//! `SELVEDGE_SOAK_SECONDS` is how long; three seconds without it. Two rounds of the same program run, a short one first, so
//! that what the driver keeps for good (code, stacks, its own caches) is there when memory is counted. Not in a process of
//! its own, because a checker may not look into those.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use selvedge::driver::{DeviceBuffer, ExecutableGraph, Stream, Transfer};

use crate::support::{Lab, Numbers, Outcome, assert_all, device_tests, serialised};

device_tests! { eight_threads_on_four_streams }

const THREADS: usize = 8;
const STREAMS: usize = 4;
const COUNTERS: usize = 3;
/// Elements of a shared counter.
const LENGTH: usize = 1000;
/// The most values of each kind that one thread holds.
const ITEMS: usize = 12;
const GRAPHS: usize = 3;
const TRANSFERS: usize = 3;
/// The growth of device and host memory allowed after the long round, in bytes.
const DEVICE_SLACK: u64 = 64 << 20;
const HOST_SLACK: u64 = 512 << 20;

/// Values that all threads use.
struct World {
    lab: Lab,
    streams: Vec<Stream>,
    counters: Vec<Mutex<DeviceBuffer<u32>>>,
    counted: Vec<AtomicU64>,
    stop: AtomicBool,
}

/// A buffer and what it holds.
struct Item {
    buffer: DeviceBuffer<u32>,
    model: Vec<u32>,
}

/// A graph that adds `step` to its own buffer and copies it to its output.
struct Replayed {
    graph: ExecutableGraph,
    item: Item,
    output: DeviceBuffer<u32>,
    step: u32,
    launched: bool,
}

/// A copy on its way and what its host side must hold then.
struct Moving {
    transfer: Transfer<u32>,
    expected: Vec<u32>,
}

fn eight_threads_on_four_streams() -> Outcome {
    let period = match std::env::var("SELVEDGE_SOAK_SECONDS") {
        Ok(seconds) => Duration::from_secs(seconds.parse()?),
        Err(_) => Duration::from_secs(3),
    };
    let lab = Lab::new()?;
    let device = lab.device;
    let streams = (0..STREAMS).map(|_| device.stream()).collect::<selvedge::Result<_>>()?;
    let mut world = World {
        lab,
        streams,
        counters: Vec::new(),
        counted: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
        stop: AtomicBool::new(false),
    };
    round(&mut world, period.min(Duration::from_secs(20)) / 4, 1)?;
    device.trim()?;
    let live = device.pool_statistics().live_bytes;
    let before = (device.memory_info()?.free, resident());
    let operations = round(&mut world, period, 100)?;
    device.trim()?;
    let after = (device.memory_info()?.free, resident());
    println!(
        "soak: {operations} operations of {THREADS} threads on {STREAMS} streams in {period:?}; free device memory \
         {} -> {}, resident {} -> {}",
        before.0, after.0, before.1, after.1
    );
    assert!(operations >= 100 * THREADS as u64, "{operations} operations");
    let statistics = device.pool_statistics();
    assert_eq!(statistics.live_bytes, live, "{statistics:?}");
    // A checker has records of its own in both memories.
    if !serialised() {
        assert!(after.0 + DEVICE_SLACK >= before.0, "device memory leaked: {before:?} -> {after:?}");
        assert!(after.1 <= before.1 + HOST_SLACK, "host memory leaked: {before:?} -> {after:?}");
    }
    Ok(())
}

/// Returns the resident memory of this process, in bytes; 0 if unknown.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

/// All threads for this long; returns how much they did. Nothing is alive afterwards.
fn round(world: &mut World, period: Duration, seed: u64) -> Result<u64, String> {
    let text = |error: selvedge::Error| error.to_string();
    for counted in &world.counted {
        counted.store(0, Ordering::Relaxed);
    }
    for _ in 0..COUNTERS {
        world.counters.push(Mutex::new(world.lab.stream.zeros(LENGTH).map_err(text)?));
    }
    world.stop.store(false, Ordering::Relaxed);
    let shared = &*world;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel::<Item>()).unzip();
    let operations = std::thread::scope(|scope| -> Result<u64, String> {
        let workers: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(index, inbox)| {
                let outboxes = senders.clone();
                scope.spawn(move || {
                    let worked =
                        Worker::new(shared, seed + index as u64, inbox, outboxes).and_then(Worker::work);
                    worked.map_err(|error| format!("thread {index}: {error}"))
                })
            })
            .collect();
        drop(senders);
        let started = Instant::now();
        while started.elapsed() < period && workers.iter().all(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        shared.stop.store(true, Ordering::Relaxed);
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        results.into_iter().try_fold(0, |sum, result| Ok(sum + result.map_err(|_| "a thread panicked")??))
    })?;
    let counters = std::mem::take(&mut world.counters);
    for (counter, counted) in counters.into_iter().zip(&world.counted) {
        let counter = counter.into_inner().map_err(|_| "a thread panicked")?;
        let counted = counted.load(Ordering::Relaxed) as u32;
        assert_all(&world.lab.stream.download(&counter).map_err(text)?, counted, "a shared counter");
    }
    world.lab.device.synchronize().map_err(text)?;
    Ok(operations)
}

struct Worker<'a> {
    world: &'a World,
    numbers: Numbers,
    /// Captures happen here: the shared ones are never still.
    own: Stream,
    items: Vec<Item>,
    graphs: Vec<Replayed>,
    moving: Vec<Moving>,
    inbox: Receiver<Item>,
    outboxes: Vec<Sender<Item>>,
}

impl<'a> Worker<'a> {
    fn new(
        world: &'a World,
        seed: u64,
        inbox: Receiver<Item>,
        outboxes: Vec<Sender<Item>>,
    ) -> selvedge::Result<Worker<'a>> {
        let own = world.lab.device.stream()?;
        let (items, graphs, moving) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Worker { world, numbers: Numbers(seed), own, items, graphs, moving, inbox, outboxes })
    }

    fn work(mut self) -> selvedge::Result<u64> {
        let mut operations = 0;
        while !self.world.stop.load(Ordering::Relaxed) {
            self.step()?;
            operations += 1;
        }
        while let Some(item) = self.items.pop() {
            self.check(&item)?;
        }
        while let Some(moving) = self.moving.pop() {
            arrive(moving)?;
        }
        for replayed in std::mem::take(&mut self.graphs) {
            self.check_graph(&replayed)?;
        }
        Ok(operations)
    }

    fn step(&mut self) -> selvedge::Result<()> {
        while let Ok(item) = self.inbox.try_recv() {
            self.check(&item)?;
            self.items.push(item);
        }
        while self.items.len() > ITEMS {
            self.take_item();
        }
        match self.numbers.below(100) {
            0..20 => {
                let item = self.make()?;
                self.items.push(item);
            }
            20..38 => self.increment()?,
            38..48 => self.copy()?,
            48..60 => {
                if let Some(item) = self.take_item() {
                    self.check(&item)?;
                    self.items.push(item);
                }
            }
            60..68 => drop(self.take_item()),
            68..73 => {
                let to = self.numbers.below(THREADS);
                if let Some(item) = self.take_item() {
                    // One that has ended drops what it is sent.
                    let _ = self.outboxes[to].send(item);
                }
            }
            73..78 => self.upload()?,
            78..82 => self.download()?,
            82..85 => self.capture()?,
            85..93 => self.replay()?,
            93..95 => {
                if let Some(replayed) = self.take_graph() {
                    self.check_graph(&replayed)?;
                    self.graphs.push(replayed);
                }
            }
            95 => drop(self.take_graph()),
            96 => {
                let mut event = self.world.lab.device.event()?;
                event.record(self.any_stream())?;
                self.any_stream().wait(&event)?;
            }
            97..99 => self.count()?,
            _ => self.rarely()?,
        }
        Ok(())
    }

    fn any_stream(&mut self) -> &'a Stream {
        &self.world.streams[self.numbers.below(STREAMS)]
    }

    fn any_length(&mut self) -> usize {
        let most = match self.numbers.below(16) {
            0 => 1 << 19,
            1..4 => 1 << 16,
            _ => 1 << 12,
        };
        1 + self.numbers.below(most)
    }

    fn take_item(&mut self) -> Option<Item> {
        let count = self.items.len();
        (count > 0).then(|| self.items.swap_remove(self.numbers.below(count)))
    }

    fn take_graph(&mut self) -> Option<Replayed> {
        let count = self.graphs.len();
        (count > 0).then(|| self.graphs.swap_remove(self.numbers.below(count)))
    }

    /// How long a kernel waits before it acts, mostly not at all.
    fn delay(&mut self) -> u64 {
        if self.numbers.below(8) == 0 { u64::from(self.numbers.next() % 50_000) } else { 0 }
    }

    fn random(&mut self, length: usize) -> Vec<u32> {
        (0..length).map(|_| self.numbers.next() >> 8).collect()
    }

    fn make(&mut self) -> selvedge::Result<Item> {
        let (length, stream) = (self.any_length(), self.any_stream());
        Ok(match self.numbers.below(3) {
            0 => Item { buffer: stream.zeros(length)?, model: vec![0; length] },
            1 => {
                let model = self.random(length);
                Item { buffer: stream.upload(&model)?, model }
            }
            _ => {
                let (mut buffer, value, delay) =
                    (stream.uninitialized(length)?, self.numbers.next() >> 8, self.delay());
                self.world.lab.set(self.any_stream(), buffer.slice_mut(..)?, value, delay)?;
                Item { buffer, model: vec![value; length] }
            }
        })
    }

    fn check(&mut self, item: &Item) -> selvedge::Result<()> {
        let held = self.any_stream().download(&item.buffer)?;
        assert!(held == item.model, "{:?} holds something else", item.buffer);
        Ok(())
    }

    fn increment(&mut self) -> selvedge::Result<()> {
        if let Some(mut item) = self.take_item() {
            let (delay, stream) = (self.delay(), self.any_stream());
            self.world.lab.increment(stream, item.buffer.slice_mut(..)?, delay)?;
            item.model.iter_mut().for_each(|value| *value += 1);
            self.items.push(item);
        }
        Ok(())
    }

    fn copy(&mut self) -> selvedge::Result<()> {
        let Some(item) = self.take_item() else { return Ok(()) };
        let mut buffer = self.any_stream().uninitialized(item.model.len())?;
        let (delay, stream) = (self.delay(), self.any_stream());
        if self.numbers.below(2) == 0 {
            stream.copy(&item.buffer, &mut buffer)?;
        } else {
            self.world.lab.copy(stream, item.buffer.slice(..)?, buffer.slice_mut(..)?, delay)?;
        }
        let copied = Item { buffer, model: item.model.clone() };
        self.items.extend([item, copied]);
        Ok(())
    }

    fn upload(&mut self) -> selvedge::Result<()> {
        let Some(mut item) = self.take_item() else { return Ok(()) };
        let mut pinned = self.world.lab.device.pinned::<u32>(item.model.len())?;
        item.model = self.random(item.model.len());
        pinned.copy_from_slice(&item.model);
        let transfer = self.any_stream().upload_async(pinned, &mut item.buffer)?;
        self.moves(transfer, &item)?;
        self.items.push(item);
        Ok(())
    }

    fn download(&mut self) -> selvedge::Result<()> {
        let Some(item) = self.take_item() else { return Ok(()) };
        let pinned = self.world.lab.device.pinned::<u32>(item.model.len())?;
        let transfer = self.any_stream().download_async(&item.buffer, pinned)?;
        self.moves(transfer, &item)?;
        self.items.push(item);
        Ok(())
    }

    /// Keeps a transfer, or lets it go on alone.
    fn moves(&mut self, transfer: Transfer<u32>, item: &Item) -> selvedge::Result<()> {
        if self.numbers.below(4) == 0 {
            return Ok(());
        }
        self.moving.push(Moving { transfer, expected: item.model.clone() });
        if self.moving.len() > TRANSFERS { arrive(self.moving.remove(0)) } else { Ok(()) }
    }

    fn capture(&mut self) -> selvedge::Result<()> {
        if self.graphs.len() >= GRAPHS {
            drop(self.take_graph());
        }
        let mut item = match self.take_item() {
            Some(item) => item,
            None => self.make()?,
        };
        let step = 1 + self.numbers.below(5) as u32;
        let (lab, length, delay) = (&self.world.lab, item.model.len(), self.delay());
        let (graph, output) = self.own.capture(|stream| {
            // Memory of the graph: one that is dropped in it and one that outlives the capture.
            let mut between = stream.uninitialized::<u32>(length)?;
            stream.copy(&item.buffer, &mut between)?;
            for _ in 0..step {
                lab.increment(stream, between.slice_mut(..)?, delay)?;
            }
            stream.copy(&between, &mut item.buffer)?;
            drop(between);
            let mut output = stream.uninitialized::<u32>(length)?;
            lab.copy(stream, item.buffer.slice(..)?, output.slice_mut(..)?, 0)?;
            Ok(output)
        })?;
        let graph = graph.instantiate()?;
        self.graphs.push(Replayed { graph, item, output, step, launched: false });
        self.replay()
    }

    fn replay(&mut self) -> selvedge::Result<()> {
        if let Some(mut replayed) = self.take_graph() {
            for _ in 0..1 + self.numbers.below(3) {
                replayed.graph.launch(self.any_stream())?;
                replayed.item.model.iter_mut().for_each(|value| *value += replayed.step);
                replayed.launched = true;
            }
            self.graphs.push(replayed);
        }
        Ok(())
    }

    fn check_graph(&mut self, replayed: &Replayed) -> selvedge::Result<()> {
        self.check(&replayed.item)?;
        if replayed.launched {
            let held = self.any_stream().download(&replayed.output)?;
            assert!(held == replayed.item.model, "a graph's output holds something else");
        }
        Ok(())
    }

    fn count(&mut self) -> selvedge::Result<()> {
        let (which, stream, delay) = (self.numbers.below(COUNTERS), self.any_stream(), self.delay());
        let mut counter = self.world.counters[which].lock().unwrap_or_else(PoisonError::into_inner);
        self.world.lab.increment(stream, counter.slice_mut(..)?, delay)?;
        self.world.counted[which].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn rarely(&mut self) -> selvedge::Result<()> {
        match self.numbers.below(24) {
            0 => self.world.lab.device.trim()?,
            1 => {
                // Past the size from which plain copies are staged.
                let model = self.random(5 << 20);
                let buffer = self.any_stream().upload(&model)?;
                self.check(&Item { buffer, model })?;
            }
            2..8 => self.own = self.world.lab.device.stream()?,
            8 => {
                let large = self.any_stream().uninitialized::<u32>(128 << 20)?;
                drop(large);
            }
            _ => {}
        }
        Ok(())
    }
}

fn arrive(moving: Moving) -> selvedge::Result<()> {
    let pinned = moving.transfer.wait()?;
    assert!(pinned[..] == moving.expected[..], "a transfer of {} elements brought others", pinned.len());
    Ok(())
}
