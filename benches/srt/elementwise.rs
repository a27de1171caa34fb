//! Operations that memory bounds, and snapping.

use selvedge::driver::{Attribute, Device as Cuda};
use selvedge::srt::{
    GoldenNorm, ResidualMode, SnapGradientMode, complex_divide, e8_quantize, golden_batch_norm_2d, h_phase,
    phi_residual_relu, resonant_d_phase, rotate_phases, snap, snap_gradient,
};
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::{Random, half_to_two};
use crate::harness::report::Failure;
use crate::harness::tensor_bench::{self, TensorBench, same_bits};

/// The length of rows that share n².
const LENGTH: usize = 4096;
const IMAGES: [isize; 4] = [64, 256, 56, 56];
const SNAPPED: usize = 10_000_000;
const SNAP_BOUND: i64 = 100;

const OF_RESIDUAL: f64 = 0.95;
const OF_NORM: f64 = 0.8;
const OF_NUMBERS: f64 = 0.9;
const OF_E8: f64 = 0.7;
const OF_SNAP: f64 = 0.5;

/// Instructions of the f64 unit in the SASS of `srt_snap` for compute capability 9.0 (ptxas 13.0): for b = 0, and for each b with -b.
const F64_OF_ZERO: usize = 8;
const F64_OF_BOTH_SIGNS: usize = 20;
/// Lanes of f64 instructions that a multiprocessor of compute capability 9.0 issues in a clock.
const F64_LANES: f64 = 64.0;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let bytes = options.bytes()?;
    let recorder = Recorder::new(
        bare,
        "srt",
        "Golden-ratio operations",
        "Device time of one operation on tensors, by events around four runs, on arrays of 1 GiB of random elements, and of as \
         many of the driver's own copies of as many bytes: each input and output once. Snapping is compared with the time in \
         which the multiprocessors issue its f64 instructions, counted in SASS, at 64 lanes a clock and the highest clock. The first elements of each result are \
         compared with the CPU's, bit for bit. PyTorch computes the same formula to tensors of its own, a call for each operator \
         of the formula.",
    )?;
    let mut random = Random::new(41);
    let mut words = vec![0; bytes / 8];
    random.fill(&mut words);
    tensor_bench::measure(bare, options, recorder, (2 * bytes, &words.clone()), |bench| {
        figures(bench, &words)
    })
}

/// Numbers of half to two with either sign, in rows that share n².
struct Arrays {
    x: Tensor,
    /// Another array.
    y: Tensor,
    n2: Tensor,
}

fn arrays(bench: &TensorBench, words: &[u64], dtype: DType) -> Result<Arrays, Failure> {
    let (kept, set) = half_to_two(dtype);
    let words: Vec<u64> = words.iter().map(|word| *word & kept | set).collect();
    let bytes = bytemuck::cast_slice::<u64, u8>(&words);
    let count = bytes.len() / dtype.size();
    let shape = [count / LENGTH, LENGTH];
    let x = Tensor::from_bytes(bytes, dtype, &shape, &bench.device)?;
    let y = x.flip(&[0, 1])?.contiguous()?;
    // The squares of 0 to 31, again and again.
    let n2: Vec<f64> = (0..LENGTH).map(|index| ((index % 32) as f64).powi(2)).collect();
    let n2 = Tensor::from_slice(&n2, &[LENGTH], &bench.device)?.cast(dtype.part())?;
    Ok(Arrays { x, y, n2 })
}

fn figures(bench: &mut TensorBench, words: &[u64]) -> Result<(), Failure> {
    let single = arrays(bench, words, DType::F32)?;
    let residual = |x: &Tensor, r: &Tensor, _: &Tensor| phi_residual_relu(x, r, ResidualMode::Phi);
    figure(bench, ("phi_residual_relu", 3, OF_RESIDUAL), &single, residual)?;
    batch_norm(bench, &single.x)?;
    drop(single);

    for dtype in [DType::F64, DType::C128] {
        let arrays = arrays(bench, words, dtype)?;
        if dtype == DType::F64 {
            let gradient = |v: &Tensor, lattice: &Tensor, n2: &Tensor| {
                snap_gradient(v, lattice, n2, SnapGradientMode::Weighted)
            };
            figure(bench, ("snap_gradient", 3, OF_NUMBERS), &arrays, gradient)?;
        } else {
            figure(bench, ("complex_divide", 3, OF_NUMBERS), &arrays, |a, b, _| complex_divide(a, b))?;
            rotation(bench, &arrays.x)?;
        }
        let d_phase = |v: &Tensor, g: &Tensor, n2: &Tensor| resonant_d_phase(v, n2, g, 0.3, 0.01);
        figure(bench, ("resonant_d_phase", 3, OF_NUMBERS), &arrays, d_phase)?;
        figure(bench, ("h_phase", 2, OF_NUMBERS), &arrays, |v, _, n2| h_phase(v, n2, 0.3))?;
    }
    lattices(bench, words)
}

type Operation = fn(&Tensor, &Tensor, &Tensor) -> selvedge::Result<Tensor>;

/// An operation of both arrays and n² that moves so many arrays.
fn figure(
    bench: &mut TensorBench,
    (name, streams, goal): (&str, usize, f64),
    Arrays { x, y, n2 }: &Arrays,
    run: Operation,
) -> Result<(), Failure> {
    let figure = format!("{name}, {}", x.dtype());
    let few = |x: &Tensor| x.narrow(0, 0, 4);
    let here = |x: &Tensor| x.to(&Device::cpu());
    let wanted = run(&here(&few(x)?)?, &here(&few(y)?)?, &here(n2)?)?;
    same_bits(&figure, &wanted, &few(&run(x, y, n2)?)?)?;
    let operands = [x, y, n2].map(|x| Operand::numbers(x.dtype(), *x.layout()));
    let work = Work { operation: name, operands: &operands, output: None, axes: &[] };
    let moved = streams * x.count() * x.dtype().size();
    bench.figure((&figure, moved, Some(goal)), &work, || run(x, y, n2).map(drop))
}

fn batch_norm(bench: &mut TensorBench, x: &Tensor) -> Result<(), Failure> {
    let count = IMAGES.iter().product::<isize>() as usize;
    if x.count() < count {
        return Ok(());
    }
    let x = x.reshape(&[-1])?.narrow(0, 0, count)?.reshape(&IMAGES)?;
    let operands = [Operand::numbers(x.dtype(), *x.layout())];
    let work = Work { operation: "golden_batch_norm", operands: &operands, output: None, axes: &[] };
    let name = "golden_batch_norm_2d in training of (64, 256, 56, 56), f32";
    bench.figure((name, 2 * count * x.dtype().size(), Some(OF_NORM)), &work, || {
        golden_batch_norm_2d(&x, &GoldenNorm::default(), None).map(drop)
    })
}

/// Each number times a phase of its own.
fn rotation(bench: &mut TensorBench, z: &Tensor) -> Result<(), Failure> {
    let theta = z.view_as_real()?.select(-1, 0)?.contiguous()?;
    let figure = format!("rotate_phases, {}", z.dtype());
    let few = |x: &Tensor| x.narrow(0, 0, 4);
    let wanted = rotate_phases(&few(z)?.to(&Device::cpu())?, &few(&theta)?.to(&Device::cpu())?)?;
    same_bits(&figure, &wanted, &few(&rotate_phases(z, &theta)?)?)?;
    let operands = [z, &theta].map(|x| Operand::numbers(x.dtype(), *x.layout()));
    let work = Work { operation: "rotate_phases", operands: &operands, output: None, axes: &[] };
    let moved = z.count() * (2 * z.dtype().size() + theta.dtype().size());
    bench.figure((&figure, moved, Some(OF_NUMBERS)), &work, || rotate_phases(z, &theta).map(drop))
}

/// The nearest points of E8 and of Z\[φ\].
fn lattices(bench: &mut TensorBench, words: &[u64]) -> Result<(), Failure> {
    let Arrays { x, .. } = arrays(bench, words, DType::F64)?;
    let none = Work { operation: "none", operands: &[], output: None, axes: &[] };
    // Twice the array: 2^25 rows.
    let v = Tensor::cat(&[&x, &x], 0)?.reshape(&[-1, 8])?;
    let few = |x: &Tensor| x.narrow(0, 0, 4096);
    same_bits("e8_quantize", &e8_quantize(&few(&v)?.to(&Device::cpu())?)?, &few(&e8_quantize(&v)?)?)?;
    let name = format!("e8_quantize of {} rows, f64", v.shape()[0]);
    bench.figure((&name, 16 * v.count(), Some(OF_E8)), &none, || e8_quantize(&v).map(drop))?;
    drop(v);
    let count = SNAPPED.min(x.count());
    let x = x.reshape(&[-1])?.narrow(0, 0, count)?;
    let (ours, theirs) = (snap(&few(&x)?.to(&Device::cpu())?, SNAP_BOUND)?, snap(&x, SNAP_BOUND)?);
    same_bits("snap", ours.a(), &few(theirs.a())?)?;
    let name = format!("snap of {count} numbers to bound {SNAP_BOUND}, f64");
    let Some(bound) = snap_bound(count)? else {
        bench
            .recorder
            .skip(format!("{name}: its instructions are counted for compute capability 9.0 alone."));
        return Ok(());
    };
    bench.bounded((&name, OF_SNAP), ("the issue of its f64 instructions", bound), || {
        snap(&x, SNAP_BOUND).map(drop)
    })
}

/// Microseconds in which the device issues the f64 instructions of so many snapped numbers.
fn snap_bound(count: usize) -> Result<Option<f64>, Failure> {
    let device = Cuda::new(0)?;
    if device.compute_capability() != (9, 0) {
        return Ok(None);
    }
    let instructions = count * (F64_OF_ZERO + F64_OF_BOTH_SIGNS * SNAP_BOUND as usize);
    let multiprocessors = f64::from(device.attribute(Attribute::MULTIPROCESSOR_COUNT)?);
    // In kHz.
    let clock = f64::from(device.attribute(Attribute::CLOCK_RATE)?) * 1e3;
    Ok(Some(instructions as f64 / (F64_LANES * multiprocessors * clock) * 1e6))
}
