//! The steps of the demonstration on one device.

use std::time::Instant;

use half::bf16;
use selvedge::Error;
use selvedge::tensor::{Device, Fused, Generator, Tensor};
use selvedge::types::DType;

use super::{ROUNDS, middle, reference};
use crate::failure::Failure;
use crate::output::{self, Progress};

/// Elements of each operand where none are asked for: 64 MiB on a GPU and 16 MiB on the CPU, larger than caches.
const ON_A_GPU: usize = 1 << 24;
const ON_THE_CPU: usize = 1 << 22;
/// The largest side of the matrices.
const SIDE_ON_A_GPU: usize = 4096;
const SIDE_ON_THE_CPU: usize = 1024;
/// Runs between two readings of the clock on a GPU, so that the host's part is not timed.
const RUNS_ON_A_GPU: usize = 10;
/// Rows of the product that are compared with the reference.
const COMPARED_ROWS: usize = 8;

/// The work that a speed is given of.
#[derive(Debug, Clone, Copy)]
pub enum Amount {
    /// Bytes read and written.
    Bytes(u64),
    /// Multiplications and additions.
    Operations(f64),
}

/// One operation, done.
#[derive(Debug)]
pub struct Step {
    pub name: &'static str,
    pub dtype: DType,
    /// The result's shape.
    pub shape: Vec<usize>,
    /// Median, in seconds.
    pub time: f64,
    pub amount: Amount,
    /// The distance from the reference; `-` where the result is exact.
    pub error: String,
    /// How the result was compared.
    pub verified: String,
}

impl Step {
    /// Such as `3.20 TB/s` or `650.0 TFLOP/s`.
    pub fn speed(&self) -> String {
        match self.amount {
            Amount::Bytes(bytes) => output::rate(bytes, self.time),
            Amount::Operations(count) if self.time > 0.0 => {
                let giga = count / self.time / 1e9;
                if giga < 1000.0 {
                    format!("{giga:.1} GFLOP/s")
                } else {
                    format!("{:.1} TFLOP/s", giga / 1e3)
                }
            }
            Amount::Operations(_) => "-".to_owned(),
        }
    }
}

/// Everything that the report shows.
#[derive(Debug)]
pub struct Demonstration {
    /// A small tensor as text.
    pub tensor: String,
    pub steps: Vec<Step>,
}

/// The library's error, which may be a reason to use the CPU, or a wrong result.
#[derive(Debug)]
pub enum Problem {
    Library(Error),
    Wrong(Failure),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::Library(error)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        match problem {
            Problem::Library(error) => error.into(),
            Problem::Wrong(failure) => failure,
        }
    }
}

/// Runs every step.
pub fn run(device: &Device, elements: Option<usize>) -> Result<Demonstration, Problem> {
    let (usual, largest) =
        if device.is_cpu() { (ON_THE_CPU, SIDE_ON_THE_CPU) } else { (ON_A_GPU, SIDE_ON_A_GPU) };
    let elements = elements.unwrap_or(usual);
    let progress = Progress::of_steps(&format!("computing on {device}"), 4);
    let generator = Generator::new(1);
    let x = generator.randn(&[elements], DType::F32, device)?;
    let y = generator.randn(&[elements], DType::F32, device)?;
    let mut steps = elementwise(device, &x, &y, &progress)?;
    let side = elements.isqrt().min(largest);
    steps.push(product(device, &generator, side)?);
    progress.set(4);
    let corner = x.slice(0, ..4)?;
    let tensor = format!(
        "x = Generator::new(1).randn(&[{elements}], DType::F32, &device)?\nx[..{}] = {corner}",
        elements.min(4)
    );
    Ok(Demonstration { tensor, steps })
}

/// A copy, an expression as one kernel, and the same expression as one kernel for each operation.
fn elementwise(device: &Device, x: &Tensor, y: &Tensor, progress: &Progress) -> Result<Vec<Step>, Problem> {
    const NAMES: [&str; 3] = ["copy of x", "x / (1 + exp(-x)) * y, fused", "the same, five kernels"];
    let size = (x.count() * x.dtype().size()) as u64;
    let shape = x.shape().to_vec();
    let step = |index: usize, time: f64, operands: u64, error: String, verified: String| Step {
        name: NAMES[index],
        dtype: DType::F32,
        shape: shape.clone(),
        time,
        amount: Amount::Bytes(operands * size),
        error,
        verified,
    };

    let formula = Fused::new(|[x, y]| x / ((-x).exp() + 1.0) * y);
    let apart = || -> selvedge::Result<Tensor> {
        let divisor = ((-x)?.exp()? + 1.0)?;
        &(x / &divisor)? * y
    };
    let (copy, copy_time) = timed(device, || x.copy())?;
    progress.set(1);
    let (fused, fused_time) = timed(device, || formula.run([x, y]))?;
    progress.set(2);
    let (several, several_time) = timed(device, apart)?;
    progress.set(3);

    let wrong = |name: &str, wrong: String| Problem::Wrong(Failure::failed(format!("{name}: {wrong}")));
    let (left, right) = (x.to_vec::<f32>()?, y.to_vec::<f32>()?);
    let found = fused.to_vec::<f32>()?;
    let ulps = reference::gate(&left, &right, &found).map_err(|text| wrong(NAMES[1], text))?;
    reference::equal_bits(&copy.to_vec::<f32>()?, &left).map_err(|text| wrong(NAMES[0], text))?;
    reference::equal_bits(&several.to_vec::<f32>()?, &found).map_err(|text| wrong(NAMES[2], text))?;
    let count = output::grouped(x.count() as u64);
    let all = format!("all {count} elements within {} ulp of f64", reference::GATE_ULPS);
    Ok(vec![
        step(0, copy_time, 2, "-".into(), format!("all {count} elements have the bits of x")),
        step(1, fused_time, 3, format!("{ulps:.1} ulp"), all),
        step(
            2,
            several_time,
            3,
            format!("{ulps:.1} ulp"),
            format!("all {count} elements have the bits of the fused ones"),
        ),
    ])
}

/// A product of two square matrices: bf16 on a GPU, for its tensor cores, and f32 on the CPU.
fn product(device: &Device, generator: &Generator, side: usize) -> Result<Step, Problem> {
    const NAME: &str = "a @ b";
    let dtype = if device.is_cpu() { DType::F32 } else { DType::BF16 };
    let a = generator.randn(&[side, side], dtype, device)?;
    let b = generator.randn(&[side, side], dtype, device)?;
    let (c, time) = timed(device, || a.matmul(&b))?;
    // Exact, so the reference sees the operands as they are.
    let wide = |tensor: &Tensor| tensor.cast(DType::F32)?.to_vec::<f32>();
    let epsilon = if device.is_cpu() { f32::EPSILON } else { bf16::EPSILON.to_f32() };
    let part =
        reference::product(&wide(&a)?, &wide(&b)?, &wide(&c)?, side, COMPARED_ROWS, f64::from(epsilon))
            .map_err(|wrong| Problem::Wrong(Failure::failed(format!("{NAME} of {dtype}: {wrong}"))))?;
    let rows = COMPARED_ROWS.min(side);
    Ok(Step {
        name: NAME,
        dtype,
        shape: vec![side, side],
        time,
        amount: Amount::Operations(2.0 * (side as f64).powi(3)),
        error: format!("{:.0} %", 100.0 * part),
        verified: format!(
            "{} within the error bound of sums of {side} products, by f64",
            output::counted(rows as u64, "row")
        ),
    })
}

/// The result of the last run, and the median time of one.
fn timed(
    device: &Device,
    mut work: impl FnMut() -> selvedge::Result<Tensor>,
) -> selvedge::Result<(Tensor, f64)> {
    let runs = if device.is_cpu() { 1 } else { RUNS_ON_A_GPU };
    let mut result = work()?;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..runs {
            result = work()?;
        }
        device.synchronize()?;
        times.push(start.elapsed().as_secs_f64() / runs as f64);
    }
    Ok((result, middle(&mut times)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_right_on_the_cpu() {
        for elements in [1, 1000] {
            let done = run(&Device::cpu(), Some(elements)).unwrap();
            assert_eq!(done.steps.len(), 4);
            assert_eq!(done.steps[3].shape, [elements.isqrt(); 2]);
        }
    }
}
