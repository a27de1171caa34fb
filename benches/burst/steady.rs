//! Networks S, whose firing rate stays: microseconds a burst, with spikes left on the device and with spikes on the host.

use std::sync::Arc;
use std::time::Instant;

use selvedge::burst::{Backend, Cpu, Cuda, GeneratedNetwork, NeuronParameters};
use selvedge::driver::Device;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};
use crate::probe::Probe;

/// Bursts that are timed together.
const BURSTS: usize = 32;
/// Bursts until as many neurons are touched as later on.
const FIRST_BURSTS: usize = 8;
const DEFAULT_NEURONS: u32 = 1_000_000;

/// A row of the table: neurons in thousandths of the largest network, synapses of each, one neuron in so many fires, threshold.
/// With S's own threshold of 1000 the last would fire by its synapses alone, which hold it at 1250.
const NETWORKS: [(u32, u32, u32, f32); 5] = [
    (100, 100, 100, 1000.0),
    (500, 100, 100, 1000.0),
    (1000, 100, 100, 1000.0),
    (1000, 1000, 100, 1000.0),
    (1000, 1000, 20, 2000.0),
];

/// The most microseconds of a burst of S(N, 100), by N: resident, and with spikes on the host.
const LIMITS: [(u32, f64, f64); 3] =
    [(100_000, 100.0, 200.0), (500_000, 150.0, 300.0), (1_000_000, 200.0, 400.0)];

/// The most microseconds of a burst that nothing enters.
const EMPTY_LIMIT: f64 = 15.0;

/// Returns the rule and the goal of a row: a time for S(N, 100), a share of the least work for the others.
fn goal(count: u32, degree: u32, with_spikes: bool) -> (Rule, Option<f64>) {
    let of_time = |(_, resident, downloaded): &(u32, f64, f64)| match with_spikes {
        true => *downloaded,
        false => *resident,
    };
    match degree {
        100 => (Rule::Own, LIMITS.iter().find(|(neurons, ..)| *neurons == count).map(of_time)),
        _ => (Rule::Speed, (!with_spikes).then_some(0.5)),
    }
}

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let neurons: u32 = match &options.file {
        None => DEFAULT_NEURONS,
        Some(text) => text.to_string_lossy().parse()?,
    };
    if neurons < 1000 {
        return Err(format!("--neurons {neurons}: at least 1000 are needed").into());
    }
    let mut recorder = Recorder::new(
        bare,
        "burst",
        "Bursts of spiking networks",
        "Wall time of a burst, of 32 back to back, on networks S of the burst specification, with device-made input. The \
         reference is device time by events: the slower of as many random 64-bit reductions to 8 MB as the burst has events, \
         and a copy that moves as many bytes as the synapses of these events have. Against the CPU backend the results of \
         every burst are compared.",
    )?;
    let device = Device::new(0)?;
    let mut cuda = Cuda::new(device)?;
    let most_events = u64::from(neurons) * 1000 / 20 * 2;
    let mut probe = Probe::new(device, most_events)?;

    for (thousandths, degree, every, threshold) in NETWORKS {
        let count = (u64::from(neurons) * u64::from(thousandths) / 1000) as u32;
        cuda.generate(&GeneratedNetwork::s(count, degree, every), 1)?;
        set_threshold(&mut cuda, count, threshold)?;
        let events = steady_events(&mut cuda, u64::from(count) * u64::from(degree) / u64::from(every))?;
        for with_spikes in [false, true] {
            let place = if with_spikes { "with spikes on the host" } else { "resident" };
            let name = format!("S({count}, {degree}), threshold {threshold}, 1 in {every} fires, {place}");
            let (rule, goal) = goal(count, degree, with_spikes);
            let subject = Subject {
                name: &name,
                against: "the slower of its reductions and its bytes",
                unit: Unit::Microseconds,
                bytes: None,
                rule,
                goal,
            };
            let own = || burst_microseconds(&mut cuda, with_spikes);
            let least = || Ok(probe.least(events)? * 1e3);
            recorder.add(turns(options.turns(3, 20), &subject, own, least)?);
        }
    }

    cuda.set_pattern(None)?;
    // The last spikes propagate, and then nothing does.
    steady_events(&mut cuda, 0)?;
    let subject = Subject {
        name: "an empty burst",
        against: "one reduction",
        unit: Unit::Microseconds,
        bytes: None,
        rule: Rule::Own,
        goal: Some(EMPTY_LIMIT),
    };
    let own = || burst_microseconds(&mut cuda, false);
    let one = || Ok(probe.reductions(1)? * 1e3);
    recorder.add(turns(options.turns(3, 20), &subject, own, one)?);

    beside_cpu(&mut cuda, neurons, options, &mut recorder)?;
    recorder.finish(&options.out)
}

/// Gives every neuron of a network S this threshold.
fn set_threshold(cuda: &mut Cuda, count: u32, threshold: f32) -> Result<(), Failure> {
    let alike = GeneratedNetwork::s(1, 1, 1).network()?;
    let parameters = alike.parameters().first().ok_or("a network of one neuron has none")?;
    let changed = NeuronParameters { threshold, ..*parameters };
    let changes: Vec<_> = (0..count).map(|id| (id, changed)).collect();
    Ok(cuda.set_parameters(&changes)?)
}

/// Runs the first bursts and returns the events of the last. A network that fires otherwise than its row says is refused: its
/// time would stand under a wrong name.
fn steady_events(cuda: &mut Cuda, wanted: u64) -> Result<u64, Failure> {
    let events = cuda.run_counted(FIRST_BURSTS)?.last().map_or(0, |(_, counts)| counts.events);
    if events.abs_diff(wanted) > wanted / 4 {
        return Err(format!("{events} events in burst {FIRST_BURSTS} of a network made for {wanted}").into());
    }
    Ok(events)
}

/// Microseconds of one burst.
fn burst_microseconds(cuda: &mut Cuda, with_spikes: bool) -> Result<f64, Failure> {
    let start = Instant::now();
    if with_spikes {
        cuda.run_bursts(BURSTS)?;
    } else {
        cuda.run_counted(BURSTS)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / BURSTS as f64)
}

/// The same bursts on both backends.
fn beside_cpu(
    cuda: &mut Cuda,
    neurons: u32,
    options: &Options,
    recorder: &mut Recorder,
) -> Result<(), Failure> {
    let generated = GeneratedNetwork::s(neurons, 100, 100);
    let mut cpu = Cpu::new();
    cpu.load(&Arc::new(generated.network()?), 1)?;
    cuda.generate(&generated, 1)?;
    let name = format!("S({neurons}, 100), 1 in 100 fires, one burst");
    let subject = Subject {
        name: &name,
        against: "the CPU backend on all cores",
        unit: Unit::Milliseconds,
        bytes: None,
        rule: Rule::Speed,
        goal: Some(20.0),
    };
    // Each side's last result: both do one burst a round.
    let (of_cuda, of_cpu) = (std::cell::RefCell::new(None), std::cell::RefCell::new(None));
    let compare = || match (&*of_cuda.borrow(), &*of_cpu.borrow()) {
        (Some(one), Some(other)) if bursts_differ(one, other) => Err("the backends differ"),
        _ => Ok(()),
    };
    let mut burst = 0;
    let figure = turns(
        options.turns(3, 20),
        &subject,
        || {
            let start = Instant::now();
            let result = cuda.run_burst()?;
            let time = start.elapsed().as_secs_f64() * 1e3;
            *of_cuda.borrow_mut() = Some(result);
            compare()?;
            Ok(time)
        },
        || {
            burst += 1;
            cpu.inject(&generated.injections(burst))?;
            let start = Instant::now();
            let result = cpu.run_burst()?;
            let time = start.elapsed().as_secs_f64() * 1e3;
            *of_cpu.borrow_mut() = Some(result);
            compare()?;
            Ok(time)
        },
    )?;
    recorder.add(figure);
    Ok(())
}

fn bursts_differ(one: &selvedge::burst::BurstResult, other: &selvedge::burst::BurstResult) -> bool {
    one.burst == other.burst && one != other
}
