//! `selvedge demo --npy x.npy y.npy`: arrays of files as tensors, an expression of them as one kernel, and its mean.
//!
//! The result is computed on the CPU too, and must be the same; so the demonstration fails where a device is wrong.

use std::path::{Path, PathBuf};
use std::time::Instant;

use selvedge::Error;
use selvedge::io::npy::NpyFile;
use selvedge::tensor::{Device, Fused, Tensor};
use selvedge::types::{Bool, DType};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{self, Progress, Report, Style, Table};

use super::{ROUNDS, middle};

/// x · y + x of the arrays in two files, or of one with itself.
pub fn demo(paths: &[PathBuf], ordinal: Option<usize>) -> Result<Report, Failure> {
    let (device, reason) = match ordinal {
        Some(ordinal) => (Device::cuda(ordinal)?, None),
        None => Device::choose(),
    };
    let tensors = paths.iter().map(|path| read(path, &device)).collect::<Result<Vec<Tensor>, Failure>>()?;
    let (Some(x), Some(y)) = (tensors.first(), tensors.last()) else {
        return Err(Failure::failed("no .npy file"));
    };

    let formula = Fused::new(|[x, y]| x * y + x);
    let mut result = formula.run([x, y])?;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        device.synchronize()?;
        let start = Instant::now();
        result = formula.run([x, y])?;
        device.synchronize()?;
        times.push(start.elapsed().as_secs_f64());
    }
    let time = middle(&mut times);

    let cpu = Device::cpu();
    let wanted = formula.run([&x.to(&cpu)?, &y.to(&cpu)?])?;
    let differ = Fused::new(|[found, wanted]| {
        let number = found.eq(found).logical_or(wanted.eq(wanted));
        found.ne(wanted).logical_and(number)
    });
    let wrong = differ.run([&result.to(&cpu)?, &wanted])?.to_vec::<Bool>()?;
    let wrong = wrong.into_iter().filter(|wrong| *wrong == Bool::from(true)).count();
    if wrong > 0 {
        return Err(Failure::failed(format!("x · y + x: {wrong} elements are not what the CPU has")));
    }
    let numbers = result.cast(DType::F64)?.to_vec::<f64>()?;
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;

    let bytes: usize = [x, y, &result].iter().map(|tensor| tensor.count() * tensor.dtype().size()).sum();
    Ok(report(&device, reason.as_ref(), paths, &tensors, &result, mean, time, bytes as u64))
}

fn read(path: &Path, device: &Device) -> Result<Tensor, Failure> {
    let mut file = NpyFile::open(path)?;
    let progress = Progress::of_bytes(&format!("reading {}", path.display()), file.byte_count() as u64);
    Ok(Tensor::read_npy_file(&mut file, device, &mut |done, _| progress.set(done))?)
}

#[allow(clippy::too_many_arguments, reason = "what is reported, each once")]
fn report(
    device: &Device,
    reason: Option<&Error>,
    paths: &[PathBuf],
    tensors: &[Tensor],
    result: &Tensor,
    mean: f64,
    time: f64,
    bytes: u64,
) -> Report {
    let style = Style::of_stdout();
    let mut text = format!("{}\n", style.bold(&format!("selvedge demo of tensors on {device}")));
    if let Some(reason) = reason {
        text += &format!("No device is used: {reason}.\n");
    }
    let mut table = Table::with_head("<<<", ["file", "dtype", "shape"]);
    for (path, tensor) in paths.iter().zip(tensors) {
        let shape = tensor.shape().to_string();
        table.row([path.display().to_string(), tensor.dtype().to_string(), shape]);
    }
    text += &format!("\n{}", table.render(style));
    let mut table = Table::with_head("<<<>>", ["expression", "dtype", "shape", "median", "rate"]);
    table.row([
        "x * y + x".to_owned(),
        result.dtype().to_string(),
        result.shape().to_string(),
        output::seconds(time),
        output::rate(bytes, time),
    ]);
    text += &format!("\n{}\nmean {mean}\nverified: every element is the CPU's\n", table.render(style));
    let json = json!({
        "device": device.to_string(),
        "reason": reason.map(Error::to_string),
        "dtype": result.dtype().name(),
        "shape": result.shape().to_vec(),
        "mean": if mean.is_finite() { Some(mean) } else { None },
        "median_seconds": time,
        "gigabytes_per_second": output::gigabytes_per_second(bytes, time),
    });
    Report { text, json }
}
