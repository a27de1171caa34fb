//! `selvedge srt evolve`: a state evolves toward syntony; its course is drawn, and the state is saved.

use std::path::Path;
use std::time::Instant;

use selvedge::srt::{Evolver, EvolverOptions, gauss, noise_stream, snap};
use selvedge::{Device, Error};
use serde_json::{Value, json};

use super::plot;
use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::files;
use crate::options::SrtEvolveOptions;
use crate::output::{self, Progress, Report, Style, Table, grouped};

/// The purpose of the stream that gives the first state; a generation uses purposes 1 and 2.
const FIRST_STATE: u64 = 0;
/// A state whose syntony rises from about 0.2 to 1 in some tens of generations.
const DEFAULT_POINTS: u64 = 8;
const DEFAULT_SCALE: f64 = 3.0;

pub fn evolve(options: &SrtEvolveOptions) -> Result<Report, Failure> {
    for path in [&options.plot, &options.save].into_iter().flatten() {
        files::check_writable(path)?;
    }
    let (device, reason) = device::choose(options.device)?;
    let mut evolver = match &options.resume {
        Some(path) => Evolver::restore(path, &device)?,
        None => first(options, &device)?,
    };
    let before = evolver.generation();
    let start = Instant::now();
    run(&mut evolver, options.generations)?;
    let seconds = start.elapsed().as_secs_f64();

    let mut written: Vec<(&str, &Path)> = Vec::new();
    if let Some(path) = &options.plot {
        files::write(path, plot::draw(evolver.history(), evolver.is_converged()))?;
        written.push(("plot", path));
    }
    if let Some(path) = &options.save {
        evolver.save(path)?;
        written.push(("saved", path));
    }
    Ok(report(&evolver, before, seconds, &device, reason.as_ref(), &written))
}

/// Returns an evolver of a random first state.
fn first(options: &SrtEvolveOptions, device: &Device) -> Result<Evolver, Failure> {
    let default = EvolverOptions::default();
    let chosen = EvolverOptions {
        seed: options.seed.unwrap_or(default.seed),
        population: options.population.map_or(default.population, |count| count as usize),
        survivors: options.survivors.map_or(default.survivors, |count| count as usize),
        mutation_scale: options.scale.unwrap_or(DEFAULT_SCALE),
        bound: options.bound.unwrap_or(default.bound),
        threshold: options.threshold.unwrap_or(default.threshold),
        max_generations: u64::MAX,
        ..default
    };
    let points = options.n.unwrap_or(DEFAULT_POINTS) as usize;
    let values = gauss(noise_stream(chosen.seed, 0, FIRST_STATE), 0, &[points], device)?;
    Ok(Evolver::new(&snap(&values, chosen.bound)?, None, chosen)?)
}

/// Runs generations until convergence or the last one.
fn run(evolver: &mut Evolver, generations: u64) -> Result<(), Failure> {
    let progress = Progress::of_steps("generations", generations);
    for done in 1..=generations {
        if evolver.is_converged() {
            break;
        }
        evolver.step()?;
        progress.set(done);
    }
    Ok(())
}

fn report(
    evolver: &Evolver,
    before: u64,
    seconds: f64,
    device: &Device,
    reason: Option<&Error>,
    written: &[(&str, &Path)],
) -> Report {
    let (history, options) = (evolver.history(), evolver.options());
    let ran = evolver.generation() - before;
    let at_start = history.get(before as usize).copied().unwrap_or(0.0);
    let of_one = if ran > 0 { seconds / ran as f64 } else { 0.0 };
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row("state", format!("{} points, bound {}", grouped(evolver.n2().count() as u64), options.bound));
    row(
        "population",
        format!(
            "{}, of which {} survive",
            grouped(options.population as u64),
            grouped(options.survivors as u64)
        ),
    );
    row("device", device.to_string());
    row("generations", format!("{} to {}", grouped(before), grouped(evolver.generation())));
    row("best syntony", format!("{at_start:.6} to {:.6}", evolver.best_syntony()));
    row("converged", if evolver.is_converged() { "yes" } else { "no" }.to_owned());
    row("time", format!("{}, {} a generation", output::seconds(seconds), output::seconds(of_one)));
    for (name, path) in written {
        row(name, path.display().to_string());
    }
    let mut text = table.render(Style::of_stdout());
    if let Some(reason) = reason {
        text += &format!("\n{}", reason_text(reason));
    }
    let mut json = json!({
        "points": evolver.n2().count(),
        "seed": options.seed,
        "population": options.population,
        "survivors": options.survivors,
        "bound": options.bound,
        "device": device.to_string(),
        "first_generation": before,
        "generation": evolver.generation(),
        "history": history,
        "best_syntony": evolver.best_syntony(),
        "converged": evolver.is_converged(),
        "seconds": seconds,
        "reason": reason.map(Error::to_string),
    });
    if let Some(object) = json.as_object_mut() {
        for (name, path) in written {
            object.insert((*name).to_owned(), Value::from(path.display().to_string()));
        }
    }
    Report { text, json }
}
