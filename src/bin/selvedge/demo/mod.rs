//! `selvedge demo`: a vector sum and complex quotients, computed, checked and timed; or tensors of files (`tensors`).
//!
//! On a device the sum's kernel is compiled by NVRTC where there is one, the others are embedded, and all results must have the bits of the CPU's. The CPU's own results are
//! held against an independent computation first, so that the demonstration means something on a machine without a
//! device too.

use std::time::Instant;

use selvedge::Error;
use selvedge::types::Element;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::options::DemoOptions;
use crate::output::{self, Progress, Report, Style, Table};

mod device;
mod operation;
mod tensors;

use operation::{Add, Divide, Operation, values};

/// Elements on the CPU where none are asked for: larger than caches, some 20 ms an operation.
const ON_THE_CPU: usize = 1 << 22;
/// Rounds of a timing on the CPU, of which the median counts.
const ROUNDS: usize = 9;

/// One operation, done.
#[derive(Debug)]
struct Trial {
    name: &'static str,
    dtype: &'static str,
    /// Where the kernel came from; the CPU needs none.
    kernel: Option<String>,
    /// How the result was checked.
    verified: String,
    /// Median, in seconds.
    time: f64,
    /// Bytes read and written.
    bytes: u64,
    /// Median of a copy of one array of the same size, in seconds.
    copy_time: f64,
    copy_bytes: u64,
}

/// Runs the demonstration.
pub fn demo(options: &DemoOptions) -> Result<Report, Failure> {
    if !options.npy.is_empty() {
        return tensors::demo(&options.npy, options.device);
    }
    let elements = options.elements.map(usize::try_from).transpose().map_err(Failure::failed)?;
    match device::open(options.device.unwrap_or(0)) {
        Ok((device, module)) => {
            let elements = elements.unwrap_or(device::ON_A_DEVICE);
            let trials = device::run(device, &module, elements)?;
            let (major, minor) = device.compute_capability();
            let json = json!({ "kind": "cuda", "ordinal": device.ordinal(), "name": device.name(), "uuid": device.uuid() });
            let place = format!(
                "{} (device {}, compute capability {major}.{minor})",
                device.name(),
                device.ordinal()
            );
            Ok(report(&place, json, None, elements, &trials))
        }
        // A device that was asked for by number is not replaced.
        Err(error) if options.device.is_none() && device::reason_for_the_cpu(&error) => {
            let elements = elements.unwrap_or(ON_THE_CPU);
            let trials = all_on_the_cpu(elements)?;
            let json = json!({ "kind": "cpu" });
            Ok(report("the CPU, one thread", json, Some(&error), elements, &trials))
        }
        Err(error) => Err(error.into()),
    }
}

fn all_on_the_cpu(elements: usize) -> Result<Vec<Trial>, Failure> {
    let progress = Progress::of_steps("computing on the CPU", 3);
    let mut trials = vec![on_the_cpu::<Add>(elements)?];
    progress.set(1);
    trials.push(on_the_cpu::<Divide<f32>>(elements)?);
    progress.set(2);
    trials.push(on_the_cpu::<Divide<f64>>(elements)?);
    Ok(trials)
}

fn on_the_cpu<O: Operation>(elements: usize) -> Result<Trial, Failure> {
    let (left, right) = operands::<O>(elements)?;
    let mut out = left.clone();
    let time = median(ROUNDS, || {
        for ((out, left), right) in out.iter_mut().zip(&left).zip(&right) {
            *out = O::compute(*left, *right);
        }
        std::hint::black_box(&out);
    });
    let verified =
        O::prove(&left, &right, &out).map_err(|wrong| Failure::failed(format!("{}: {wrong}", O::NAME)))?;
    let copy_time = median(ROUNDS, || {
        out.copy_from_slice(&left);
        std::hint::black_box(&out);
    });
    Ok(trial::<O>(elements, verified, time, copy_time))
}

fn trial<O: Operation>(elements: usize, verified: String, time: f64, copy_time: f64) -> Trial {
    let size = (elements * size_of::<O::Element>()) as u64;
    Trial {
        name: O::NAME,
        dtype: O::Element::DTYPE.name(),
        kernel: None,
        verified,
        time,
        bytes: 3 * size,
        copy_time,
        copy_bytes: 2 * size,
    }
}

/// Two arrays of equal length.
type Pair<T> = (Vec<T>, Vec<T>);

/// The two operands of an operation. Both are random and the same on every machine.
fn operands<O: Operation>(elements: usize) -> Result<Pair<O::Element>, Failure> {
    let make = |seed| {
        values::<O::Element>(elements, seed).ok_or_else(|| {
            Failure::failed(format!("no memory for {elements} elements; choose fewer with --elements"))
        })
    };
    Ok((make(1)?, make(2)?))
}

fn median(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    middle(&mut times)
}

/// The median of some times.
fn middle(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn report(
    where_to: &str,
    device: Value,
    reason: Option<&Error>,
    elements: usize,
    trials: &[Trial],
) -> Report {
    let style = Style::of_stdout();
    let mut text = format!("{}\n", style.bold(&format!("selvedge demo on {where_to}")));
    if let Some(reason) = reason {
        text += &match reason {
            Error::LibraryUnavailable { library, .. } => {
                format!(
                    "No device is used: {library} could not be loaded (selvedge info says what was tried).\n"
                )
            }
            reason => format!("No device is used: {reason}.\n"),
        };
    }
    let mut table = Table::with_head("<<>>>>", ["operation", "dtype", "elements", "median", "rate", "copy"]);
    for trial in trials {
        table.row([
            trial.name.to_owned(),
            trial.dtype.to_owned(),
            elements.to_string(),
            output::seconds(trial.time),
            output::rate(trial.bytes, trial.time),
            output::rate(trial.copy_bytes, trial.copy_time),
        ]);
    }
    text += &format!("\n{}", table.render(style));
    if trials.iter().any(|trial| trial.kernel.is_some()) {
        text += &format!("\n{}\n", style.dim("kernels"));
        let mut table = Table::new("<<<");
        for trial in trials {
            let kernel = trial.kernel.clone().unwrap_or_default();
            table.row([trial.name.to_owned(), trial.dtype.to_owned(), kernel]);
        }
        text += &table.render(style);
    }
    text += &format!("\n{}\n", style.dim("verified"));
    let mut table = Table::new("<<<");
    for trial in trials {
        table.row([trial.name.to_owned(), trial.dtype.to_owned(), trial.verified.clone()]);
    }
    text += &table.render(style);
    let operations: Vec<Value> = trials
        .iter()
        .map(|trial| {
            json!({
                "name": trial.name,
                "dtype": trial.dtype,
                "elements": elements,
                "kernel": trial.kernel,
                "verified": trial.verified,
                "median_seconds": trial.time,
                "gigabytes_per_second": output::gigabytes_per_second(trial.bytes, trial.time),
                "copy_gigabytes_per_second": output::gigabytes_per_second(trial.copy_bytes, trial.copy_time),
            })
        })
        .collect();
    Report {
        text,
        json: json!({ "device": device, "reason": reason.map(Error::to_string), "operations": operations }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_right_on_the_cpu() {
        for elements in [1, 1000] {
            assert!(on_the_cpu::<Add>(elements).is_ok());
            assert!(on_the_cpu::<Divide<f32>>(elements).is_ok());
            assert!(on_the_cpu::<Divide<f64>>(elements).is_ok());
        }
    }

    #[test]
    fn the_median_is_of_the_middle() {
        assert_eq!(middle(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(middle(&mut []), 0.0);
    }
}
