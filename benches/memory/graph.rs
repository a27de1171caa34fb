//! A graph of a thousand small kernels: the device's time for a node, the capture, the instantiation.

use std::time::Instant;

use selvedge::driver::{Device, DeviceBuffer, ExecutableGraph, Function, LaunchConfig, Stream};

use crate::Options;
use crate::harness::bare::{Address, Bare, Handle, Pinned};
use crate::harness::bare_graph::BareGraphs;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const ACCUMULATE: &str = include_str!("../../csrc/bench/accumulate.ptx");
/// Elements of each buffer, and threads of the one block.
const COUNT: u32 = 32;
const NODES: usize = 1000;
/// Graph launches that one pair of events spans.
const LAUNCHES: usize = 4;

/// Totals that kernels of ours add a step to, one kernel a total and round.
pub struct Own {
    pub stream: Stream,
    function: Function,
    step: Vec<u32>,
    own_step: DeviceBuffer<u32>,
    totals: Vec<DeviceBuffer<u32>>,
}

impl Own {
    /// So many totals, which are zero.
    pub fn new(totals: usize) -> Result<Own, Failure> {
        let device = Device::new(0)?;
        let stream = device.stream()?;
        let function = device.load(ACCUMULATE.as_bytes())?.function("accumulate")?;
        let mut random = Random::new(1);
        let step: Vec<u32> = (0..COUNT).map(|_| random.bits() as u32).collect();
        let own_step = stream.upload(&step)?;
        let totals = (0..totals).map(|_| stream.zeros(COUNT as usize)).collect::<Result<Vec<_>, _>>()?;
        Ok(Own { stream, function, step, own_step, totals })
    }

    /// Gives kernels to the stream, whether it captures or not.
    pub fn launch(&mut self, kernels: usize) -> selvedge::Result<()> {
        let config = LaunchConfig::new(1, COUNT);
        let totals = self.totals.len();
        for index in 0..kernels {
            let total = &mut self.totals[index % totals];
            // SAFETY: both buffers have COUNT elements, which is what the kernel reads and writes.
            unsafe { self.function.launch(&self.stream, config, (total, &self.own_step, COUNT)) }?;
        }
        Ok(())
    }

    /// Captures so many kernels.
    pub fn capture(&mut self, kernels: usize) -> Result<selvedge::driver::Graph, Failure> {
        let stream = self.stream.clone();
        let (graph, ()) = stream.capture(|_| self.launch(kernels))?;
        Ok(graph)
    }

    /// Fails unless every total is so many times its step.
    pub fn check(&self, times: usize) -> Result<(), Failure> {
        for total in &self.totals {
            let wanted = self.step.iter().map(|step| step.wrapping_mul(times as u32));
            if !self.stream.download(total)?.into_iter().eq(wanted) {
                return Err("own kernels: a total is not what they add up to".into());
            }
        }
        Ok(())
    }
}

/// The same of the bare driver.
pub struct Reference<'a> {
    bare: &'a Bare,
    kernel: Handle,
    words: Pinned,
    step: Address,
    totals: Vec<Address>,
}

impl<'a> Reference<'a> {
    /// So many totals, which are zero, with the step of `own`.
    pub fn new(bare: &'a Bare, own: &Own) -> Result<Reference<'a>, Failure> {
        let (kernel, bytes) = (bare.kernel(ACCUMULATE, "accumulate")?, COUNT as usize * 4);
        let mut words = bare.pinned(bytes)?;
        let mut totals = Vec::new();
        for _ in 0..own.totals.len() {
            let total = bare.allocate(bytes)?;
            bare.upload(total, &words)?;
            totals.push(total);
        }
        bare.synchronize()?;
        bytemuck::cast_slice_mut(words.words()).copy_from_slice(&own.step);
        let step = bare.allocate(bytes)?;
        bare.upload(step, &words)?;
        bare.synchronize()?;
        Ok(Reference { bare, kernel, words, step, totals })
    }

    /// Gives kernels to the stream, whether it captures or not.
    pub fn launch(&mut self, kernels: usize) -> Result<(), Failure> {
        let totals = self.totals.len();
        for index in 0..kernels {
            let mut count = COUNT;
            let mut arguments: [Handle; 3] = [
                (&raw mut self.totals[index % totals]).cast(),
                (&raw mut self.step).cast(),
                (&raw mut count).cast(),
            ];
            // SAFETY: the arguments are the kernel's two addresses and its count.
            unsafe { self.bare.launch(self.kernel, 1, COUNT, &mut arguments) }?;
        }
        Ok(())
    }

    /// Fails unless every total is so many times its step; gives all memory back.
    pub fn check(mut self, own: &Own, times: usize) -> Result<(), Failure> {
        for total in self.totals {
            self.bare.download(&mut self.words, total)?;
            self.bare.synchronize()?;
            let wanted = own.step.iter().map(|step| step.wrapping_mul(times as u32));
            if !bytemuck::cast_slice::<u64, u32>(self.words.words()).iter().copied().eq(wanted) {
                return Err("bare kernels: a total is not what they add up to".into());
            }
            self.bare.free(total)?;
        }
        self.bare.free(self.step)?;
        self.bare.free_pinned(self.words)
    }
}

/// All figures of the graph of a thousand kernels.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "graph",
        "A graph of 1000 kernels",
        "Kernels of one block with three arguments, captured from one stream, so each waits for the one before. The \
         device's time for a node lies between two events around 4 launches of the graph; captures and launches of the \
         same kernels are the host's time, with an empty stream before. Every kernel adds a random step to a total that \
         is checked at the end.",
    )?;
    let graphs = BareGraphs::open()?;
    let mut own = Own::new(1)?;
    let mut reference = Reference::new(bare, &own)?;
    let (mut own_kernels, mut bare_kernels) = (0, 0);

    let executable: ExecutableGraph = own.capture(NODES)?.instantiate()?;
    let captured = graphs.capture(bare, || reference.launch(NODES))?;
    let bare_executable = graphs.instantiate(&captured)?;
    let per_node = |milliseconds: f64| milliseconds * 1e3 / (LAUNCHES * NODES) as f64;
    recorder.add(turns(
        options.turns(5, 100),
        &Subject { rule: Rule::Time, goal: Some(1.02), ..subject("a node, device time", "a bare graph") },
        || {
            // SAFETY: the stream lives, and is of the primary context.
            let taken = unsafe {
                bare.device_time(own.stream.as_raw(), || {
                    (0..LAUNCHES).try_for_each(|_| Ok(executable.launch(&own.stream)?))
                })
            }?;
            own_kernels += LAUNCHES * NODES;
            Ok(per_node(taken))
        },
        || {
            // SAFETY: the stream lives as long as the process.
            let taken = unsafe {
                bare.device_time(bare.stream, || {
                    (0..LAUNCHES).try_for_each(|_| graphs.launch(bare, &bare_executable))
                })
            }?;
            bare_kernels += LAUNCHES * NODES;
            Ok(per_node(taken))
        },
    )?);
    graphs.discard_executable(bare_executable)?;
    graphs.discard(captured)?;
    drop(executable);

    // The same launches as a capture writes down; one thing of ours against another.
    let mut launching = Own::new(1)?;
    let mut launched = 0;
    recorder.add(turns(
        options.turns(5, 100),
        &Subject { rule: Rule::Time, goal: Some(1.3), ..subject("capture", "own launches") },
        || timed(|| own.capture(NODES)),
        || {
            let taken = timed(|| Ok(launching.launch(NODES)?));
            launching.stream.synchronize()?;
            launched += NODES;
            taken
        },
    )?);
    launching.check(launched)?;

    recorder.add(turns(
        options.turns(5, 60),
        &Subject {
            rule: Rule::Time,
            goal: None,
            ..subject("capture, beside the driver's", "a bare capture")
        },
        || timed(|| own.capture(NODES)),
        || {
            let start = Instant::now();
            let graph = graphs.capture(bare, || reference.launch(NODES))?;
            let taken = start.elapsed().as_secs_f64() * 1e6;
            graphs.discard(graph)?;
            Ok(taken)
        },
    )?);
    recorder.add(turns(
        options.turns(3, 40),
        &Subject { rule: Rule::Time, goal: None, ..subject("instantiation", "cuGraphInstantiate") },
        || {
            let graph = own.capture(NODES)?;
            timed(|| Ok(graph.instantiate()?))
        },
        || {
            let graph = graphs.capture(bare, || reference.launch(NODES))?;
            let start = Instant::now();
            let executable = graphs.instantiate(&graph)?;
            let taken = start.elapsed().as_secs_f64() * 1e6;
            graphs.discard_executable(executable)?;
            graphs.discard(graph)?;
            Ok(taken)
        },
    )?);

    own.check(own_kernels)?;
    reference.check(&own, bare_kernels)?;
    recorder.finish(&options.out)
}

fn subject<'a>(name: &'a str, against: &'a str) -> Subject<'a> {
    Subject { name, against, unit: Unit::Microseconds, bytes: None, rule: Rule::Time, goal: None }
}

/// Microseconds that something takes; what it makes is dropped after the clock.
fn timed<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<f64, Failure> {
    let start = Instant::now();
    let made = work()?;
    let taken = start.elapsed().as_secs_f64() * 1e6;
    drop(made);
    Ok(taken)
}
