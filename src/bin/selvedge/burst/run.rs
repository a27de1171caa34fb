//! `selvedge burst run`: a network runs, and its spikes are drawn and saved.

use std::path::Path;
use std::time::Instant;

use selvedge::Error;
use selvedge::burst::{Population, Simulation};
use serde_json::{Value, json};

use super::input::{self, Input};
use super::{backend, raster, rates};
use crate::device::reason_text;
use crate::failure::Failure;
use crate::files;
use crate::options::BurstRunOptions;
use crate::output::{self, Progress, Report, Style, Table, counted, grouped};

/// Bursts between two updates of the progress bar.
const BURSTS_OF_A_STEP: u64 = 64;

/// The spikes of a run, as the pictures show them.
pub struct Recording<'a> {
    pub name: &'a str,
    pub neurons: u32,
    /// The first and the last burst.
    pub first: u64,
    pub last: u64,
    /// Bursts and ids of the spikes, ascending.
    pub bursts: &'a [u64],
    pub ids: &'a [u32],
    pub populations: &'a [Population],
}

impl Recording<'_> {
    pub fn burst_count(&self) -> u64 {
        self.last - self.first + 1
    }
}

pub fn run(options: &BurstRunOptions) -> Result<Report, Failure> {
    for path in [&options.raster, &options.rates, &options.spikes, &options.save].into_iter().flatten() {
        files::check_writable(path)?;
    }
    let (backend, reason) = backend(options.device)?;
    let mut simulation = Simulation::restore(&options.network, backend)?;
    let network = simulation.network().clone();
    let before = simulation.state()?.burst;
    let last = before.checked_add(options.bursts).filter(|last| *last < u64::MAX);
    let Some(last) = last else { return Err(Failure::failed("the run has no numbers for more bursts")) };
    let first = before + 1;
    let input = match &options.inject {
        Some(path) => input::read(path, network.len(), first..=last)?,
        None => Input::default(),
    };
    let recorded = options.raster.is_some() || options.rates.is_some() || options.spikes.is_some();
    simulation.record_spikes(recorded);

    let start = Instant::now();
    run_bursts(&mut simulation, first, last, &input)?;
    let seconds = start.elapsed().as_secs_f64();

    let name = options.network.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (bursts, ids) = simulation.spikes();
    let recording = Recording {
        name: &name,
        neurons: network.len() as u32,
        first,
        last,
        bursts,
        ids,
        populations: network.populations(),
    };
    let mut written: Vec<(&str, &Path)> = Vec::new();
    if let Some(path) = &options.raster {
        files::write(path, &raster::draw(&recording))?;
        written.push(("raster", path));
    }
    if let Some(path) = &options.rates {
        files::write(path, &rates::draw(&recording))?;
        written.push(("rates", path));
    }
    if let Some(path) = &options.spikes {
        simulation.write_spikes_npz(path)?;
        written.push(("spike_file", path));
    }
    if let Some(path) = &options.save {
        simulation.save(path)?;
        written.push(("saved", path));
    }
    let hash = simulation.state()?.hash();
    let device = simulation.backend().name();
    report(
        &simulation,
        &options.network,
        &device,
        reason.as_ref(),
        (first, last),
        seconds,
        hash,
        &input,
        &written,
    )
}

/// Runs bursts in groups, each of which begins where there is input.
fn run_bursts(simulation: &mut Simulation, first: u64, last: u64, input: &Input) -> Result<(), Failure> {
    let progress = Progress::of_steps("bursts", last - first + 1);
    let mut next = first;
    while next <= last {
        if let Some(injections) = input.bursts.get(&next) {
            simulation.inject(injections)?;
        }
        let following = input.bursts.range(next + 1..).next().map_or(last + 1, |(burst, _)| *burst);
        let end = following.min(next + BURSTS_OF_A_STEP).min(last + 1);
        simulation.run(end - next)?;
        next = end;
        progress.set(next - first);
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "each is a line of the report")]
fn report(
    simulation: &Simulation,
    path: &Path,
    device: &str,
    reason: Option<&Error>,
    (first, last): (u64, u64),
    seconds: f64,
    hash: u64,
    input: &Input,
    written: &[(&str, &Path)],
) -> Result<Report, Failure> {
    let network = simulation.network();
    let (neurons, synapses) = (network.len() as u64, network.synapses().len() as u64);
    let totals = simulation.totals();
    let counts = totals.counts;
    let bursts = totals.bursts.max(1) as f64;
    let rate = totals.spikes as f64 / bursts / neurons.max(1) as f64;
    let style = Style::of_stdout();
    let title =
        format!("{}: {}, {}", path.display(), counted(neurons, "neuron"), counted(synapses, "synapse"));
    let mut text = format!("{}\n", style.bold(&title));
    text += &reason.map(reason_text).unwrap_or_default();
    let mut table = Table::new("<<");
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("device", device.to_owned());
    row("bursts", format!("{} to {}", grouped(first), grouped(last)));
    row("time", format!("{}, {} a burst", output::seconds(seconds), output::seconds(seconds / bursts)));
    row(
        "spikes",
        format!(
            "{}, {:.1} a burst: {:.2} % of the neurons",
            grouped(totals.spikes),
            totals.spikes as f64 / bursts,
            rate * 100.0
        ),
    );
    let events_per_second = if seconds > 0.0 { counts.events as f64 / seconds } else { 0.0 };
    row("events", format!("{}, {:.3e} a second", grouped(counts.events), events_per_second));
    row("candidates", format!("{}, {} refractory", grouped(counts.candidates), grouped(counts.blocked)));
    if input.rows > 0 {
        row("input", format!("{} of {} rows are of these bursts", grouped(input.used), grouped(input.rows)));
    }
    row("state hash", format!("{hash:016x}"));
    for (name, path) in written {
        row(&name.replace('_', " "), path.display().to_string());
    }
    text += &table.render(style);
    let mut json = json!({
        "network": path.display().to_string(),
        "neurons": neurons,
        "synapses": synapses,
        "device": device,
        "reason": reason.map(Error::to_string),
        "first_burst": first,
        "last_burst": last,
        "seconds": seconds,
        "spikes": totals.spikes,
        "rate": rate,
        "events": counts.events,
        "injections": counts.injections,
        "candidates": counts.candidates,
        "blocked": counts.blocked,
        "input_rows": input.rows,
        "input_rows_used": input.used,
        "state_hash": format!("{hash:016x}"),
    });
    for (name, path) in written {
        json[*name] = Value::from(path.display().to_string());
    }
    Ok(Report { text, json })
}
