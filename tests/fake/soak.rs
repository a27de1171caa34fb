//! Eight threads on four streams that do everything at once, as the device suite's `soak` does: the clocks see no use
//! without order, every byte is a model's, nothing is alive afterwards.
//!
//! One round is some thousand operations, because the fake's records grow. `SELVEDGE_SOAK_SECONDS` asks for rounds until
//! that time is over.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use selvedge::driver::{
    Device, DeviceBuffer, ExecutableGraph, Function, LaunchConfig, PinnedBuffer, Stream, Transfer,
};

use super::kernels::PTX;
use super::model::{made, mixed};
use super::random::Random;
use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const THREADS: usize = 8;
const STREAMS: usize = 4;
/// Operations of a thread in one round.
const STEPS: usize = 150;
/// The most values of each kind that one thread holds.
const MAX_HELD: usize = 8;

struct World<'a> {
    fake: &'a Fake,
    device: Device,
    streams: Vec<Stream>,
    mix: Function,
    make: Function,
}

impl World<'_> {
    fn make(&self, stream: &Stream, target: &mut DeviceBuffer<u8>, salt: u32) -> selvedge::Result<()> {
        let length = target.len() as u64;
        // SAFETY: `make` writes `length` bytes.
        unsafe { self.make.launch(stream, LaunchConfig::new(1, 32), (target, length, salt)) }
    }

    fn mix(
        &self,
        stream: &Stream,
        source: &DeviceBuffer<u8>,
        target: &mut DeviceBuffer<u8>,
        salt: u32,
    ) -> selvedge::Result<()> {
        let length = target.len() as u64;
        // SAFETY: `mix` reads and updates `length` bytes.
        unsafe { self.mix.launch(stream, LaunchConfig::new(1, 32), (source, target, length, salt)) }
    }
}

/// A buffer and what it holds.
struct Item {
    buffer: DeviceBuffer<u8>,
    model: Vec<u8>,
}

/// A graph that mixes a buffer into another, and the salt.
struct Replayed {
    graph: ExecutableGraph,
    source: Item,
    target: Item,
    /// The graph's own memory, which holds what the target held before the last launch.
    output: DeviceBuffer<u8>,
    before: Option<Vec<u8>>,
    salt: u32,
}

struct Worker<'a> {
    world: &'a World<'a>,
    random: Random,
    /// Captures happen here: the shared ones are never still.
    own: Stream,
    items: Vec<Item>,
    graphs: Vec<Replayed>,
    moving: Vec<(Transfer<u8>, Vec<u8>)>,
    inbox: Receiver<Item>,
    outboxes: Vec<Sender<Item>>,
}

impl<'a> Worker<'a> {
    fn work(mut self) -> Outcome {
        for _ in 0..STEPS {
            self.step()?;
        }
        for item in std::mem::take(&mut self.items) {
            self.check(&item)?;
        }
        for replayed in std::mem::take(&mut self.graphs) {
            self.check_graph(&replayed)?;
        }
        for (transfer, expected) in std::mem::take(&mut self.moving) {
            self.arrive(transfer.wait()?, &expected)?;
        }
        Ok(())
    }

    fn step(&mut self) -> Outcome {
        while let Ok(item) = self.inbox.try_recv() {
            self.check(&item)?;
            self.items.push(item);
        }
        if self.items.len() > MAX_HELD {
            self.take();
        }
        match self.random.below(20) {
            0..4 => self.create()?,
            4..7 => self.mix()?,
            7 => {
                if let Some(item) = self.take() {
                    self.check(&item)?;
                    self.items.push(item);
                }
            }
            8 => drop(self.take()),
            9 => {
                let to = self.random.below(THREADS);
                if let Some(item) = self.take() {
                    // One that has ended drops what it is sent.
                    let _ = self.outboxes[to].send(item);
                }
            }
            10..13 => self.transfer()?,
            13 => {
                if self.moving.len() > 2 {
                    let (transfer, expected) = self.moving.remove(0);
                    let pinned = transfer.wait()?;
                    self.arrive(pinned, &expected)?;
                } else {
                    self.moving.pop();
                }
            }
            14 => self.capture()?,
            15..18 => self.replay()?,
            18 => {
                let mut event = self.world.device.event()?;
                event.record(self.any_stream())?;
                self.any_stream().wait(&event)?;
            }
            _ => match self.random.below(6) {
                0 => self.world.device.trim()?,
                1 => self.own = self.world.device.stream()?,
                2 => drop(self.graphs.pop()),
                _ => {}
            },
        }
        Ok(())
    }

    fn any_stream(&mut self) -> &'a Stream {
        &self.world.streams[self.random.below(STREAMS)]
    }

    fn take(&mut self) -> Option<Item> {
        let count = self.items.len();
        (count > 0).then(|| self.items.swap_remove(self.random.below(count)))
    }

    fn salt(&mut self) -> u32 {
        self.random.next() as u32
    }

    fn new_item(&mut self, length: usize) -> Outcome<Item> {
        let stream = self.any_stream();
        Ok(match self.random.below(3) {
            0 => Item { buffer: stream.zeros(length)?, model: vec![0; length] },
            1 => {
                let model = self.random.bytes(length);
                Item { buffer: stream.upload(&model)?, model }
            }
            _ => {
                let (mut buffer, salt) = (stream.uninitialized(length)?, self.salt());
                self.world.make(self.any_stream(), &mut buffer, salt)?;
                Item { buffer, model: made(self.world.fake, length, salt) }
            }
        })
    }

    fn create(&mut self) -> Outcome {
        let length = [1, 64, 600, 5000, 70_000][self.random.below(5)];
        let item = self.new_item(length)?;
        self.items.push(item);
        Ok(())
    }

    fn check(&mut self, item: &Item) -> Outcome {
        let held = self.any_stream().download(&item.buffer)?;
        if held == item.model {
            Ok(())
        } else {
            Err(format!("{:?} holds something else", item.buffer).into())
        }
    }

    fn mix(&mut self) -> Outcome {
        let Some(mut item) = self.take() else { return Ok(()) };
        let (source, salt) = (self.new_item(item.model.len())?, self.salt());
        self.world.mix(self.any_stream(), &source.buffer, &mut item.buffer, salt)?;
        mixed(self.world.fake, &source.model, &mut item.model, salt);
        let mut copy =
            Item { buffer: self.any_stream().uninitialized(item.model.len())?, model: item.model.clone() };
        self.any_stream().copy(&item.buffer, &mut copy.buffer)?;
        self.items.extend([item, copy]);
        Ok(())
    }

    fn transfer(&mut self) -> Outcome {
        let Some(mut item) = self.take() else { return Ok(()) };
        let mut pinned = self.world.device.pinned::<u8>(item.model.len())?;
        let transfer = if self.random.below(2) == 0 {
            item.model = self.random.bytes(item.model.len());
            self.world.fake.host_write(&pinned);
            pinned.copy_from_slice(&item.model);
            self.any_stream().upload_async(pinned, &mut item.buffer)?
        } else {
            self.any_stream().download_async(&item.buffer, pinned)?
        };
        self.moving.push((transfer, item.model.clone()));
        self.items.push(item);
        Ok(())
    }

    fn arrive(&self, pinned: PinnedBuffer<u8>, expected: &[u8]) -> Outcome {
        self.world.fake.host_read(&pinned);
        if pinned[..] == *expected { Ok(()) } else { Err("a transfer brought other bytes".into()) }
    }

    fn capture(&mut self) -> Outcome {
        if self.graphs.len() > 2 {
            self.graphs.remove(0);
        }
        let Some(mut target) = self.take() else { return Ok(()) };
        let length = target.model.len();
        let (source, salt, world) = (self.new_item(length)?, self.salt(), self.world);
        let (graph, output) = self.own.capture(|stream| {
            // Memory of the graph: one that is dropped in it and one that outlives the capture.
            let mut between = stream.uninitialized::<u8>(length)?;
            stream.copy(&source.buffer, &mut between)?;
            let mut output = stream.uninitialized::<u8>(length)?;
            stream.copy(&target.buffer, &mut output)?;
            world.mix(stream, &between, &mut target.buffer, salt)?;
            Ok(output)
        })?;
        let graph = graph.instantiate()?;
        self.graphs.push(Replayed { graph, source, target, output, before: None, salt });
        self.replay()
    }

    fn replay(&mut self) -> Outcome {
        let Some(mut replayed) = self.graphs.pop() else { return Ok(()) };
        for _ in 0..1 + self.random.below(3) {
            replayed.graph.launch(self.any_stream())?;
            let model = &mut replayed.target.model;
            replayed.before = Some(model.clone());
            mixed(self.world.fake, &replayed.source.model, model, replayed.salt);
        }
        if self.random.below(3) == 0 {
            self.check_graph(&replayed)?;
        }
        self.graphs.insert(0, replayed);
        Ok(())
    }

    fn check_graph(&mut self, replayed: &Replayed) -> Outcome {
        self.check(&replayed.target)?;
        match &replayed.before {
            Some(before) if self.any_stream().download(&replayed.output)? != *before => {
                Err("a graph's own memory holds something else".into())
            }
            _ => Ok(()),
        }
    }
}

fn round(fake: &Fake, seed: u64) -> Outcome {
    fake.set_seed(seed | 1);
    let device = Device::new(0)?;
    let module = device.load(PTX.as_bytes())?;
    let streams = (0..STREAMS).map(|_| device.stream()).collect::<selvedge::Result<_>>()?;
    let (mix, make) = (module.function("mix")?, module.function("make")?);
    let world = World { fake, device, streams, mix, make };
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel::<Item>()).unzip();
    std::thread::scope(|scope| -> Outcome {
        let threads: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(index, inbox)| {
                let (outboxes, world) = (senders.clone(), &world);
                scope.spawn(move || -> Result<(), String> {
                    let random = Random::new(seed * THREADS as u64 + index as u64);
                    let own = world.device.stream().map_err(|error| error.to_string())?;
                    let (items, graphs, moving) = (Vec::new(), Vec::new(), Vec::new());
                    let worker = Worker { world, random, own, items, graphs, moving, inbox, outboxes };
                    worker.work().map_err(|error| format!("thread {index}: {error}"))
                })
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        for result in results {
            result.map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    drop((world, module, senders));
    device.synchronize()?;
    scenario::settle()?;
    scenario::check_end(fake)?;
    fake.reset();
    Ok(())
}

/// Child: rounds until the time is over, at least ten.
pub fn child(fake: &Fake) -> Outcome {
    let period = match std::env::var("SELVEDGE_SOAK_SECONDS") {
        Ok(seconds) => Duration::from_secs(seconds.parse()?),
        Err(_) => Duration::ZERO,
    };
    let (started, mut seed) = (Instant::now(), 0);
    while seed < 10 || started.elapsed() < period {
        seed += 1;
        round(fake, seed).map_err(|error| format!("round {seed}: {error}"))?;
    }
    println!("{seed} rounds in {:?}", started.elapsed());
    Ok(())
}

pub fn tests() -> Vec<Test> {
    let test = |name: &str, setting: (&'static str, &'static str)| {
        Test::new(format!("soak::{name}"), move || {
            children::must_succeed(&Variant::new(12040), "soak", &[], &[setting]).map(drop)
        })
    };
    vec![
        test("eight_threads_on_four_streams", ("SELVEDGE_POOL", "")),
        test("eight_threads_without_a_pool", ("SELVEDGE_POOL", "none")),
    ]
}
