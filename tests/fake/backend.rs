//! `nn::Backend` on the fake driver: operands on another device are an error, or move, are counted, and are logged once for
//! each call site.

use std::sync::Mutex;

use selvedge::nn::{Backend, Cpu, Cuda, TransferCounts};
use selvedge::{DType, Error, Result, Tensor};

use super::support::{ChildOutcome, Fake, check};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps the lines about operands that move.
struct Lines;

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Info
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = record.args().to_string();
        if line.contains("moves an operand") {
            LINES.lock().unwrap().push(format!("{} {line}", record.level()));
        }
    }

    fn flush(&self) {}
}

/// Returns the lines since the last call.
fn lines() -> Vec<String> {
    std::mem::take(&mut LINES.lock().unwrap())
}

/// Child: operands on both devices.
pub fn child(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    log::set_logger(&Lines).map_err(|error| error.to_string())?;
    log::set_max_level(log::LevelFilter::Info);
    check(Cuda::is_available() && Cuda::device_count()? > 0, "no device")?;
    refused()?;
    moved()?;
    pinned()?;
    scenario::settle()?;
    let (live, violations) = (fake.live(), fake.violations());
    check(live.blocks == 0, &format!("alive at the end:\n{}", fake.describe_live()))?;
    check(violations.is_empty(), &violations.join("\n"))
}

fn refused() -> ChildOutcome {
    let (cpu, cuda) = (Cpu::new(), Cuda::new(0)?);
    let (near, far) = (cpu.ones(&[3], DType::F32)?, cuda.ones(&[3], DType::F32)?);
    let cases: [Result<Tensor>; 4] =
        [cuda.add(&far, &near), cuda.relu(&near), cpu.add(&near, &far), cpu.sum(&far)];
    for (number, case) in cases.into_iter().enumerate() {
        let error = match case {
            Err(error @ Error::DeviceMismatch { .. }) => error.to_string(),
            other => return Err(format!("case {number}: {other:?}").into()),
        };
        let both = error.contains("a tensor on") && error.contains("a backend on");
        check(both, &format!("case {number}: {error}"))?;
    }
    let counts = [cpu.transfers().counts(), cuda.transfers().counts()];
    check(counts == [TransferCounts::default(); 2] && lines().is_empty(), "an operand has moved")
}

fn moved() -> ChildOutcome {
    let cuda = Cuda::new(0)?.with_automatic_transfers(true);
    let cpu = Cpu::new().with_automatic_transfers(true);
    let near = cpu.from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    let far = cuda.from_slice(&[10.0f32, 20.0, 30.0], &[3])?;
    for round in 1..=3 {
        // One call site, of which one operand moves.
        let sum = cuda.add(&far, &near)?;
        check(sum.device() == cuda.device(), "a result elsewhere")?;
        let wanted = TransferCounts { transfers: round, bytes: 12 * round };
        check(cuda.transfers().counts() == wanted, &format!("{:?}", cuda.transfers().counts()))?;
    }
    let found = lines();
    let [line] = &found[..] else { return Err(format!("{found:?}").into()) };
    let parts = ["INFO add at", file!(), "f32", "12 bytes", "only counted"];
    check(parts.iter().all(|part| line.contains(part)), line)?;
    // Two operands of another call site, and a view, whose elements are those that have moved.
    cuda.matmul(&near, &near)?;
    let view = cuda.reshape(&near, &[3, 1])?;
    check(view.device() == cuda.device() && cuda.to_vec::<f32>(&view)? == [1.0, 2.0, 3.0], "a view")?;
    cuda.add(&far, &far)?;
    let wanted = TransferCounts { transfers: 6, bytes: 72 };
    check(cuda.transfers().counts() == wanted, &format!("{:?}", cuda.transfers().counts()))?;
    check(lines().len() == 2, "a line for each call site")?;
    // Other calls of operations that have several operands.
    let index = Tensor::new([0i64, 0], &cpu.device())?;
    let ones = cpu.ones(&[2, 3], DType::F32)?;
    cuda.layer_norm_backward(&ones, &ones, &near, 0.0)?;
    cuda.sparse_cross_entropy_with_gradient(&ones, &index)?;
    let wanted = TransferCounts { transfers: 11, bytes: 72 + 2 * 24 + 12 + 24 + 16 };
    check(cuda.transfers().counts() == wanted, &format!("{:?}", cuda.transfers().counts()))?;
    let found = lines();
    check(found.len() == 2 && found.iter().all(|line| line.contains(file!())), &format!("{found:?}"))?;

    // To the CPU, which computes.
    let sum = cpu.add(&near, &far)?;
    check(
        sum.device() == cpu.device() && cpu.to_vec::<f32>(&sum)? == [11.0, 22.0, 33.0],
        "a sum on the CPU",
    )?;
    check(cpu.transfers().counts() == TransferCounts { transfers: 1, bytes: 12 }, "the CPU's counts")
}

fn pinned() -> ChildOutcome {
    let cuda = Cuda::new(0)?;
    let device = cuda.device();
    let driver = device.as_cuda().ok_or("no CUDA device")?;
    let mut elements = driver.pinned::<f32>(4)?;
    elements.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    let (x, transfer) = cuda.upload_pinned(elements, &[2, 2])?;
    let elements = cuda.download_pinned(&x, transfer.wait()?)?.wait()?;
    check(elements[..] == [1.0, 2.0, 3.0, 4.0] && x.shape()[..] == [2, 2], "other elements")?;
    check(cuda.download_pinned(&x, driver.pinned::<f32>(3)?).is_err(), "a buffer that is too short")?;
    check(cuda.upload_pinned(elements, &[3]).is_err(), "a shape of 3 elements")
}

pub fn tests() -> Vec<Test> {
    vec![Test::new("backend::operands_move_are_counted_and_logged_once_a_call_site", || {
        children::must_succeed(&Variant::new(12040), "backend", &[], &[("SELVEDGE_POOL", "none")]).map(drop)
    })]
}
