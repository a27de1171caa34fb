//! `selvedge burst run`: a network runs, and its spikes are drawn and saved.

use std::path::Path;
use std::time::Instant;

use selvedge::Error;
use selvedge::burst::{Population, Simulation};
use serde_json::{Value, json};

use super::advance::{LostDevice, run_bursts};
use super::input::{self, Input};
use super::{backend, raster, rates};
use crate::device::reason_text;
use crate::failure::Failure;
use crate::files;
use crate::options::{BurstRunOptions, DeviceChoice};
use crate::output::{self, Report, Style, Table, counted, grouped};

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
    let goes_on = options.device == DeviceChoice::Auto;
    let lost = run_bursts(&mut simulation, first, last, &input, goes_on)?;
    let seconds = start.elapsed().as_secs_f64();
    // A run on a device that was named ends where it was lost, with the outputs of its finished bursts.
    let end = if goes_on { None } else { lost.as_ref() };
    if let Some(lost) = end.filter(|lost| lost.after < first) {
        return Err(Failure::failed(format!("{}; no burst is finished, so no file is written", lost.error)));
    }
    let last = end.map_or(last, |lost| lost.after);

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
        files::write(path, raster::draw(&recording))?;
        written.push(("raster", path));
    }
    if let Some(path) = &options.rates {
        files::write(path, rates::draw(&recording))?;
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
    if let Some(lost) = end {
        return Err(ended(lost, first, &written));
    }
    let hash = simulation.state()?.hash();
    let device = simulation.backend().name();
    report(
        &simulation,
        &options.network,
        &device,
        reason.as_ref(),
        lost.as_ref(),
        (first, last),
        seconds,
        hash,
        &input,
        &written,
    )
}

/// The failure of a run that ended where its device was lost.
fn ended(lost: &LostDevice, first: u64, written: &[(&str, &Path)]) -> Failure {
    let files: Vec<String> = written.iter().map(|(_, path)| path.display().to_string()).collect();
    let files = match files.is_empty() {
        true => "no file was asked for".to_owned(),
        false => format!("{} {} them", files.join(", "), if files.len() == 1 { "holds" } else { "hold" }),
    };
    Failure::failed(format!(
        "the run ended after bursts {} to {}, and {files}; --device auto goes on on the CPU: {}",
        grouped(first),
        grouped(lost.after),
        lost.error
    ))
}

#[allow(clippy::too_many_arguments, reason = "each is a line of the report")]
fn report(
    simulation: &Simulation,
    path: &Path,
    device: &str,
    reason: Option<&Error>,
    lost: Option<&LostDevice>,
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
    if let Some(lost) = lost {
        let after = grouped(lost.after);
        text += &format!("The device failed after burst {after}, and the CPU went on: {}.\n", lost.error);
    }
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
        "reason": reason.or(lost.map(|lost| &lost.error)).map(Error::to_string),
        "lost_after_burst": lost.map(|lost| lost.after),
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
