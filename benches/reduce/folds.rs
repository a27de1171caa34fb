//! Sums over everything, rows and columns, and cumulative sums, beside the driver's copy of as many bytes, and beside
//! PyTorch.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::{Random, half_to_two};
use crate::harness::report::Failure;
use crate::harness::tensor_bench::{self, TensorBench, same_bits};

/// The goals, by bytes that are read (and written): of all, of rows, of columns, of scans.
const OF_ALL: f64 = 1.03;
const OF_ROWS: f64 = 1.0;
const OF_COLUMNS: f64 = 0.97;
const OF_SCANS: f64 = 0.9;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let bytes = options.bytes()?;
    if bytes.trailing_zeros() % 2 != 0 {
        return Err(format!("--bytes {bytes}: a power of four from {} on is wanted", 1 << 22).into());
    }
    let recorder = Recorder::new(
        bare,
        "reduce",
        "Reductions and scans at the memory's speed",
        "Device time of one operation on tensors, by events around four runs, on 1 GiB of random numbers, and of as many \
         of the driver's own copies of as many bytes. Speeds count the elements that are read, and of scans those that are \
         written. Each result is compared with the CPU's, bit for bit. PyTorch does the same to a tensor of its own, of the \
         same size and distribution.",
    )?;
    let mut random = Random::new(23);
    let mut words = vec![0; bytes / 8];
    random.fill(&mut words);
    tensor_bench::measure(bare, options, recorder, (bytes, &words.clone()), |bench| figures(bench, words))
}

fn figures(bench: &mut TensorBench, mut words: Vec<u64>) -> Result<(), Failure> {
    // Numbers of half to two, with either sign.
    let (kept, set) = half_to_two(DType::F32);
    words.iter_mut().for_each(|word| *word = *word & kept | set);
    let count = words.len() * 2;
    let side = 1usize << (count.trailing_zeros() / 2);
    let bytes = count * 4;
    let here = Tensor::from_slice::<f32>(bytemuck::cast_slice(&words), &[count], &Device::cpu())?;
    let x = here.to(&bench.device)?;

    type Fold = fn(&Tensor) -> selvedge::Result<Tensor>;
    let all = [count as isize];
    let square = [side as isize; 2];
    let (wide, short) = ([-1, 4096], [-1, 4]);
    let (rows, columns) = (&[1usize][..], &[0usize][..]);
    // Beside each PyTorch's name and axes.
    type Case<'a> = (&'a str, &'a [isize], Option<f64>, (&'a str, &'a [usize]), Fold);
    let folds: [Case<'_>; 10] = [
        ("sum of all, f32", &all, Some(OF_ALL), ("sum", &[]), |x| x.sum(..)),
        ("sum of rows, f32, square", &square, Some(OF_ROWS), ("sum", rows), |x| x.sum(&[1])),
        ("sum of rows of 4096, f32", &wide, Some(OF_ROWS), ("sum", rows), |x| x.sum(&[1])),
        ("sum of rows of 4, f32", &short, None, ("sum", rows), |x| x.sum(&[1])),
        ("sum of columns, f32, square", &square, Some(OF_COLUMNS), ("sum", columns), |x| x.sum(&[0])),
        ("max of rows, f32, square", &square, None, ("max", rows), |x| x.max(&[1])),
        ("argmax of rows, f32, square", &square, None, ("argmax", rows), |x| x.argmax(&[1])),
        ("argmax of columns, f32, square", &square, None, ("argmax", columns), |x| x.argmax(&[0])),
        ("norm of all, f32", &all, None, ("norm", &[]), |x| x.norm(2.0, ..)),
        ("any of all, f32", &all, None, ("any", &[]), |x| x.any(..)),
    ];
    for (name, shape, goal, theirs, fold) in folds {
        let (here, x) = (here.reshape(shape)?, x.reshape(shape)?);
        same_bits(name, &fold(&here)?, &fold(&x)?)?;
        figure(bench, (name, bytes, goal), theirs, &x, &|| fold(&x).map(drop))?;
    }
    for (name, shape, goal) in
        [("cumsum, f32", [1, -1], Some(OF_SCANS)), ("cumsum of rows of 1024, f32", [-1, 1024], None)]
    {
        let (here, x) = (here.reshape(&shape)?, x.reshape(&shape)?);
        same_bits(name, &here.cumsum(1)?, &x.cumsum(1)?)?;
        figure(bench, (name, 2 * bytes, goal), ("cumsum", &[1]), &x, &|| x.cumsum(1).map(drop))?;
    }
    drop(x);
    // As many bytes of a narrower dtype: its numbers are the upper halves.
    words.iter_mut().for_each(|word| *word = *word & 0x80ff_80ff_80ff_80ff | 0x3f00_3f00_3f00_3f00);
    let here = Tensor::from_bytes(bytemuck::cast_slice(&words), DType::BF16, &[count * 2], &Device::cpu())?;
    let x = here.to(&bench.device)?;
    for (name, shape) in [("sum of all, bf16", &[-1][..]), ("sum of columns, bf16", &[side as isize, -1])] {
        let (here, x) = (here.reshape(shape)?, x.reshape(shape)?);
        same_bits(name, &here.sum(&[0])?, &x.sum(&[0])?)?;
        figure(bench, (name, bytes, None), ("sum", &[0]), &x, &|| x.sum(&[0]).map(drop))?;
    }
    Ok(())
}

/// One operation in turns with the copy, and with PyTorch's.
fn figure(
    bench: &mut TensorBench,
    subject: (&str, usize, Option<f64>),
    (operation, axes): (&str, &[usize]),
    x: &Tensor,
    fold: &dyn Fn() -> selvedge::Result<()>,
) -> Result<(), Failure> {
    let operands = [Operand::numbers(x.dtype(), *x.layout())];
    bench.figure(subject, &Work { operation, operands: &operands, output: None, axes }, fold)
}
