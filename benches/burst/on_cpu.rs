//! Bursts on the CPU backend beside a plain C loop of the same bursts on one core (csrc/bench/burst_loop.c).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use selvedge::burst::{Backend, BurstResult, Cpu, GeneratedNetwork, Network};
use selvedge::{set_threads, thread_count};

use crate::Options;
use crate::harness::c_source;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const NEURONS: u32 = 100_000;
/// Bursts until as many neurons are touched as later on.
const FIRST_BURSTS: u64 = 8;

/// The network as csrc/bench/burst_loop.c declares it.
#[repr(C)]
struct LoopNetwork {
    neurons: u32,
    rows: *const u64,
    targets: *const u32,
    weights: *const u16,
    threshold: *const f32,
    decay: *const f32,
    rest: *const f32,
    refractory: *const u16,
}

/// Its state.
#[repr(C)]
struct LoopState {
    potential: *mut f32,
    blocked: *mut u16,
    sum: *mut i32,
    touched: *mut u8,
    fired: *mut u32,
    fired_count: u32,
}

type Burst = unsafe extern "C" fn(*const LoopNetwork, *mut LoopState, *const u32, *const i32, u32) -> u64;

/// The loop and the memory that it works on.
struct CLoop {
    burst: Burst,
    potential: Vec<f32>,
    blocked: Vec<u16>,
    sum: Vec<i32>,
    touched: Vec<u8>,
    fired: Vec<u32>,
    fired_count: u32,
    parameters: [Vec<f32>; 3],
    refractory: Vec<u16>,
    _library: libloading::Library,
}

impl CLoop {
    fn new(network: &Network) -> Result<CLoop, Failure> {
        let path = c_source::compile("burst_loop")?;
        let count = network.len();
        let of_neurons = |value: fn(&selvedge::burst::NeuronParameters) -> f32| {
            network.parameters().iter().map(value).collect::<Vec<f32>>()
        };
        // SAFETY: the library is the source beside, which runs nothing when it is loaded, and has this function.
        let (library, burst) = unsafe {
            let library = libloading::Library::new(path)?;
            let burst = *library.get::<Burst>(b"burst_loop\0")?;
            (library, burst)
        };
        Ok(CLoop {
            burst,
            potential: network.neurons().rest.clone(),
            blocked: vec![0; count],
            sum: vec![0; count],
            touched: vec![0; count],
            fired: vec![0; count],
            fired_count: 0,
            parameters: [of_neurons(|of| of.threshold), of_neurons(|of| of.decay), of_neurons(|of| of.rest)],
            refractory: network.parameters().iter().map(|of| of.refractory).collect(),
            _library: library,
        })
    }

    /// Runs a burst and returns its events.
    fn run(&mut self, network: &Network, ids: &[u32], thousandths: &[i32]) -> u64 {
        let synapses = network.synapses();
        let [threshold, decay, rest] = &self.parameters;
        let loop_network = LoopNetwork {
            neurons: network.len() as u32,
            rows: synapses.row_pointers().as_ptr(),
            targets: synapses.targets().as_ptr(),
            weights: synapses.weights().as_ptr(),
            threshold: threshold.as_ptr(),
            decay: decay.as_ptr(),
            rest: rest.as_ptr(),
            refractory: self.refractory.as_ptr(),
        };
        let mut state = LoopState {
            potential: self.potential.as_mut_ptr(),
            blocked: self.blocked.as_mut_ptr(),
            sum: self.sum.as_mut_ptr(),
            touched: self.touched.as_mut_ptr(),
            fired: self.fired.as_mut_ptr(),
            fired_count: self.fired_count,
        };
        // SAFETY: every array has an element a neuron, the rows are those of a checked network, and the ids are of its neurons.
        let events = unsafe {
            (self.burst)(&loop_network, &mut state, ids.as_ptr(), thousandths.as_ptr(), ids.len() as u32)
        };
        self.fired_count = state.fired_count;
        events
    }

    fn fired(&self) -> &[u32] {
        &self.fired[..self.fired_count as usize]
    }
}

/// One burst on one core and on all.
pub fn measure(options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::on_host(
        "burst_cpu",
        "Bursts on the CPU",
        "Wall time of a burst of network S(100000, 100), of which one neuron in 100 fires, on the CPU backend, beside a plain C \
         loop of the same bursts on one core, compiled with -O2. The spikes and events of every burst are compared.",
    );
    let generated = GeneratedNetwork::s(NEURONS, 100, 100);
    let network = Arc::new(generated.network()?);
    let cores = thread_count();
    for threads in [1, cores] {
        set_threads(threads);
        let mut cpu = Cpu::new();
        cpu.load(&network, 1)?;
        let name = format!("S({NEURONS}, 100), {threads} of {cores} cores");
        let subject = Subject {
            name: &name,
            against: "a C loop on one core",
            unit: Unit::Milliseconds,
            bytes: None,
            rule: Rule::Speed,
            goal: (threads == 2).then_some(1.5),
        };
        recorder.add(beside_c(&mut cpu, &generated, &network, &subject, options)?);
    }
    set_threads(0);
    recorder.finish(&options.out)
}

type SpikesAndEvents = (Vec<u32>, u64);

fn beside_c(
    cpu: &mut Cpu,
    generated: &GeneratedNetwork,
    network: &Network,
    subject: &Subject<'_>,
    options: &Options,
) -> Result<crate::harness::report::Figure, Failure> {
    let c_loop = RefCell::new(CLoop::new(network)?);
    // The last burst of each side: they run one each in turn.
    let last: RefCell<[Option<SpikesAndEvents>; 2]> = RefCell::new([None, None]);
    let note = |side: usize, fired: Vec<u32>, events: u64| -> Result<(), Failure> {
        let mut last = last.borrow_mut();
        last[side] = Some((fired, events));
        match &mut *last {
            [Some(one), Some(other)] if one != other => Err("the CPU backend and the C loop differ".into()),
            [Some(_), Some(_)] => {
                *last = [None, None];
                Ok(())
            }
            _ => Ok(()),
        }
    };
    let mut own_number = 0;
    let mut own_burst = || -> Result<f64, Failure> {
        own_number += 1;
        let injections = generated.injections(own_number);
        cpu.inject(&injections)?;
        let start = Instant::now();
        let result: BurstResult = cpu.run_burst()?;
        let time = start.elapsed().as_secs_f64() * 1e3;
        note(0, result.fired.iter().map(|spike| spike.id).collect(), result.counts.events)?;
        Ok(time)
    };
    let mut number = 0;
    let mut bare_burst = || -> Result<f64, Failure> {
        number += 1;
        let injections = generated.injections(number);
        let ids: Vec<u32> = injections.iter().map(|injection| injection.id).collect();
        let thousandths: Vec<i32> = injections.iter().map(|injection| injection.thousandths as i32).collect();
        let mut c_loop = c_loop.borrow_mut();
        let start = Instant::now();
        let events = c_loop.run(network, &ids, &thousandths);
        let time = start.elapsed().as_secs_f64() * 1e3;
        note(1, c_loop.fired().to_vec(), events)?;
        Ok(time)
    };
    for _ in 0..FIRST_BURSTS {
        own_burst()?;
        bare_burst()?;
    }
    turns(options.turns(3, 200), subject, own_burst, bare_burst)
}
