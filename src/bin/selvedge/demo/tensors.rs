//! `selvedge demo --npy x.npy y.npy`: arrays of files as tensors, an expression of them as one kernel, and its mean.
//!
//! The result is compared with one that plain code computes in a wider type; so the demonstration fails where it is wrong.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use num_complex::Complex;
use selvedge::Error;
use selvedge::io::npy::NpyFile;
use selvedge::tensor::{Device, Fused, Tensor};
use selvedge::types::{Bool, DType};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{self, Progress, Report, Style, Table};

use super::reference::{self, Limits, Wide};
use super::{ROUNDS, middle};
use crate::device::reason_text;

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
    let wide = |tensor: &Tensor| -> Result<Wide, Failure> {
        let tensor = tensor.to(&cpu)?.cast(result.dtype())?.expand(result.shape())?;
        Ok(widened(&tensor)?)
    };
    reference::product_and_sum(&wide(x)?, &wide(y)?, &wide(&result)?)
        .map_err(|wrong| Failure::failed(format!("x * y + x: {wrong}")))?;
    let mean = Mean::of(&result)?;

    let bytes: usize = [x, y, &result].iter().map(|tensor| tensor.count() * tensor.dtype().size()).sum();
    Ok(report(&device, reason.as_ref(), paths, &tensors, &result, mean, time, bytes as u64))
}

/// The mean of all elements as NumPy has it: a float, or a complex number of complex ones.
#[derive(Debug, Clone, Copy)]
enum Mean {
    Real(f64),
    Complex(Complex<f64>),
}

impl Mean {
    fn of(tensor: &Tensor) -> selvedge::Result<Mean> {
        let count = tensor.count() as f64;
        if tensor.dtype().is_complex() {
            let values = tensor.cast(DType::C128)?.to_vec::<Complex<f64>>()?;
            return Ok(Mean::Complex(values.iter().sum::<Complex<f64>>() / count));
        }
        let values = tensor.cast(DType::F64)?.to_vec::<f64>()?;
        Ok(Mean::Real(values.iter().sum::<f64>() / count))
    }

    /// A number, or the two parts of a complex one; `null` where it is not finite.
    fn json(self) -> Value {
        match self {
            Mean::Real(mean) => json!(Some(mean).filter(|mean| mean.is_finite())),
            Mean::Complex(mean) => json!(Some([mean.re, mean.im]).filter(|_| mean.is_finite())),
        }
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mean::Real(mean) => write!(formatter, "{mean}"),
            Mean::Complex(mean) => write!(formatter, "{}{:+}j", mean.re, mean.im),
        }
    }
}

/// The elements in the type that they are compared in, without loss.
fn widened(tensor: &Tensor) -> selvedge::Result<Wide> {
    let dtype = tensor.dtype();
    let limits = |max: f64, epsilon: i32, least: i32| Limits {
        max,
        epsilon: 2f64.powi(epsilon),
        least: 2f64.powi(least),
    };
    let limits = match dtype {
        DType::F8E4M3 => limits(448.0, -3, -9),
        DType::F8E5M2 => limits(57_344.0, -2, -16),
        DType::F16 => limits(65_504.0, -10, -24),
        DType::BF16 => limits(f64::from(half::bf16::MAX), -7, -133),
        DType::F32 | DType::C64 => limits(f64::from(f32::MAX), -23, -149),
        _ => limits(f64::MAX, -52, -1074),
    };
    let integers = |values: Vec<i128>| Wide::Integers {
        values,
        bits: 8 * dtype.size() as u32,
        signed: dtype.is_signed_integer(),
    };
    Ok(match dtype {
        DType::Bool => {
            let values = tensor.to_vec::<Bool>()?;
            Wide::Bools(values.into_iter().map(|value| value == Bool::from(true)).collect())
        }
        DType::U64 => integers(tensor.to_vec::<u64>()?.into_iter().map(i128::from).collect()),
        dtype if dtype.is_integer() => {
            integers(tensor.cast(DType::I64)?.to_vec::<i64>()?.into_iter().map(i128::from).collect())
        }
        dtype if dtype.is_complex() => Wide::Complex(tensor.cast(DType::C128)?.to_vec()?, limits),
        _ => Wide::Reals(tensor.cast(DType::F64)?.to_vec()?, limits),
    })
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
    mean: Mean,
    time: f64,
    bytes: u64,
) -> Report {
    let style = Style::of_stdout();
    let mut text = format!("{}\n", style.bold(&format!("selvedge demo of tensors on {device}")));
    if let Some(reason) = reason {
        text += &reason_text(reason);
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
    text += &format!(
        "\n{}\nmean {mean}\nverified: every element is that of plain code in a wider type, within rounding\n",
        table.render(style)
    );
    let json = json!({
        "device": device.to_string(),
        "reason": reason.map(Error::to_string),
        "dtype": result.dtype().name(),
        "shape": result.shape().to_vec(),
        "mean": mean.json(),
        "median_seconds": time,
        "gigabytes_per_second": output::gigabytes_per_second(bytes, time),
    });
    Report { text, json }
}
