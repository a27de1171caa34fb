//! `selvedge demo`: a tensor, a fused expression and a matrix product, computed, checked and timed (`steps`); or an
//! expression of the arrays in files (`tensors`).
//!
//! Every result is compared with one that scalar code in this program computes in a wider type (`reference`), which uses
//! neither the library's kernels nor its CPU code.

use selvedge::Error;
use selvedge::tensor::Device;
use serde_json::{Value, json};

use crate::device::{is_reason_for_the_cpu, reason_text};
use crate::failure::Failure;
use crate::options::DemoOptions;
use crate::output::{self, Report, Style, Table};

mod reference;
mod steps;
mod tensors;

use steps::{Amount, Demonstration, Problem, Step};

/// Timed rounds, of which the median counts.
const ROUNDS: usize = 9;

/// Runs the demonstration.
pub fn demo(options: &DemoOptions) -> Result<Report, Failure> {
    if !options.npy.is_empty() {
        return tensors::demo(&options.npy, options.device);
    }
    let elements = options.elements.map(usize::try_from).transpose().map_err(Failure::failed)?;
    let device = Device::cuda(options.device.unwrap_or(0)).map_err(Problem::from);
    match device.and_then(|device| Ok((device, steps::run(&device, elements)?))) {
        Ok((device, done)) => Ok(report(&device, None, &done)),
        // A device that was asked for by number is not replaced.
        Err(Problem::Library(reason)) if options.device.is_none() && is_reason_for_the_cpu(&reason) => {
            let device = Device::cpu();
            let done = steps::run(&device, elements)?;
            Ok(report(&device, Some(&reason), &done))
        }
        Err(problem) => Err(problem.into()),
    }
}

/// The median of some times.
fn middle(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

const COLUMNS: &str = "\
time   the median of 9 rounds
speed  of elementwise operations: bytes read and written in that time; a copy shows the memory's speed
       of a product: multiplications and additions in that time
error  the largest distance from the same values computed in f64, one by one, by plain Rust code; the fused
       expression in units of the last place of each value, the product as a part of the error bound
";

const NEXT: &str = "\
selvedge demo --npy x.npy y.npy                an expression of your own arrays
selvedge explain matmul 4096 4096 4096 bf16    the kernel of a product, and the reason for it
selvedge info                                  the devices, the driver and the libraries
selvedge --help                                the other commands
";

/// The device as JSON.
fn device_json(device: &Device) -> Value {
    match device.as_cuda() {
        None => json!({ "kind": "cpu" }),
        Some(device) => json!({
            "kind": "cuda", "ordinal": device.ordinal(), "name": device.name(), "uuid": device.uuid()
        }),
    }
}

fn report(device: &Device, reason: Option<&Error>, done: &Demonstration) -> Report {
    let style = Style::of_stdout();
    let device_text = match device.as_cuda() {
        None => {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            format!("the CPU ({})", output::counted(threads as u64, "processor"))
        }
        Some(device) => {
            let (major, minor) = device.compute_capability();
            format!("{} (device {}, compute capability {major}.{minor})", device.name(), device.ordinal())
        }
    };
    let mut text = format!("{}\n", style.bold(&format!("selvedge demo on {device_text}")));
    text += &reason.map(reason_text).unwrap_or_default();
    text += &format!("\n{}\n{}\n", style.dim("a tensor"), done.tensor);
    let mut table = Table::with_head("<<<>>>", ["operation", "dtype", "shape", "time", "speed", "error"]);
    for step in &done.steps {
        table.row([
            step.name.to_owned(),
            step.dtype.name().to_owned(),
            format!("{:?}", step.shape),
            output::seconds(step.time),
            step.speed(),
            step.error.clone(),
        ]);
    }
    text += &format!("\n{}", table.render(style));
    text += &format!("\n{}\n", style.dim("verified"));
    let mut table = Table::new("<<");
    for step in &done.steps {
        table.row([step.name.to_owned(), step.verified.clone()]);
    }
    text += &table.render(style);
    text += &format!("\n{}\n{}", style.dim("columns"), output::indented(COLUMNS, 2));
    text += &format!("\n{}\n{}", style.dim("next"), output::indented(NEXT, 2));
    let operations: Vec<Value> = done.steps.iter().map(operation_json).collect();
    let json = json!({
        "device": device_json(device),
        "reason": reason.map(Error::to_string),
        "operations": operations,
    });
    Report { text, json }
}

fn operation_json(step: &Step) -> Value {
    let (bytes, operations) = match step.amount {
        Amount::Bytes(bytes) => (output::gigabytes_per_second(bytes, step.time), None),
        Amount::Operations(count) => (None, (step.time > 0.0).then(|| count / step.time / 1e9)),
    };
    json!({
        "name": step.name,
        "dtype": step.dtype.name(),
        "shape": step.shape,
        "verified": step.verified,
        "median_seconds": step.time,
        "gigabytes_per_second": bytes,
        "gigaflops": operations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_the_middle() {
        assert_eq!(middle(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(middle(&mut []), 0.0);
    }

    #[test]
    fn only_a_missing_device_is_replaced_by_the_cpu() {
        let unsupported = Error::UnsupportedImage { found: "PTX 8.0".into(), wanted: "PTX 7.4".into() };
        assert!(is_reason_for_the_cpu(&unsupported));
        let invalid = Error::InvalidArgument { operation: "demo", found: "1".into(), wanted: "2".into() };
        assert!(!is_reason_for_the_cpu(&invalid));
    }
}
