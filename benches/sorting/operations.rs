//! Sorts, the largest elements, elements that are not 0, sums by index and counts.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::{Random, half_to_two};
use crate::harness::report::Failure;
use crate::harness::tensor_bench::{self, TensorBench, same_bits};

/// Elements of the comparison with the CPU.
const FEW: usize = 1 << 16;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let bytes = options.bytes()?;
    let recorder = Recorder::new(
        bare,
        "sorting",
        "Sorting, selecting and counting",
        "Device time of one operation on tensors, by events around four runs, on 2^28 random f32 or integers (a quarter as \
         many for the largest elements), and of as many of the driver's own copies of as many bytes: each input and output \
         once. A short array's results are compared with the CPU's, bit for bit. PyTorch does the same to tensors of its own, \
         of the same sizes and distributions, with deterministic algorithms for sums by index; CuPy sorts without positions.",
    )?;
    let mut random = Random::new(31);
    let mut words = vec![0; bytes / 8];
    random.fill(&mut words);
    // The most that a figure moves: a sort of 64-bit elements reads and writes them, and writes positions.
    let copied = bytes * 3;
    tensor_bench::measure(bare, options, recorder, (copied, &words.clone()), |bench| figures(bench, words))
}

type Operation = fn(&Tensor) -> selvedge::Result<Tensor>;
/// Of elements and a mask.
type Selection = fn(&Tensor, &Tensor) -> selvedge::Result<Tensor>;

fn figures(bench: &mut TensorBench, mut words: Vec<u64>) -> Result<(), Failure> {
    let count = words.len() * 2;
    let integers = Tensor::from_slice::<i32>(bytemuck::cast_slice(&words), &[count], &Device::cpu())?;
    // Numbers of half to two, with either sign.
    let (kept, set) = half_to_two(DType::F32);
    words.iter_mut().for_each(|word| *word = *word & kept | set);
    let here = Tensor::from_slice::<f32>(bytemuck::cast_slice(&words), &[count], &Device::cpu())?;
    let sort: Operation = |x| Ok(x.sort(-1, false)?.1);
    for (name, here) in [("sort with indices, f32", &here), ("sort with indices, i32", &integers)] {
        figure(bench, (name, 16 * count, Some(0.8)), ("sort", &[0]), here, sort)?;
    }
    let unsigned = integers.view_dtype(DType::U32)?;
    drop(integers);
    let sorted: Operation = |x| x.sorted(-1, false);
    let rows = [("sorted alone, f32", "sorted, f32", &here), ("sorted alone, u32", "sorted, u32", &unsigned)];
    for (name, operation, here) in rows {
        figure(bench, (name, 8 * count, Some(0.8)), (operation, &[0]), here, sorted)?;
    }
    drop(unsigned);
    let mut long = vec![0; count];
    Random::new(37).fill(&mut long);
    let long = Tensor::from_slice::<i64>(bytemuck::cast_slice(&long), &[count], &Device::cpu())?;
    figure(bench, ("sort with indices, i64", 24 * count, Some(0.8)), ("sort", &[0]), &long, sort)?;
    drop(long);
    let quarter = here.narrow(0, 0, count / 4)?;
    figure(bench, ("the 64 largest, f32", count, Some(0.8)), ("topk", &[64]), &quarter, |x| {
        Ok(x.topk(64.min(x.shape()[x.rank() - 1]), -1, true)?.0)
    })?;
    let rows = 4096.min(count / 50257);
    let wide = here.narrow(0, 0, rows * 50257)?.reshape(&[rows as isize, 50257])?;
    let name = format!("the 64 largest of rows of 50257, {rows} rows, f32");
    figure(bench, (&name, rows * 50257 * 4, Some(0.8)), ("topk", &[64]), &wide, |x| {
        Ok(x.topk(64.min(x.shape()[x.rank() - 1]), -1, true)?.0)
    })?;
    selections(bench, &here)?;
    figure(bench, ("histc of 256 bins, f32", 4 * count, Some(0.8)), ("histc", &[256]), &here, |x| {
        x.histc(256, -2.0, 2.0)
    })?;

    let (many, places) = (10_000_000.min(count / 4), 100_000.min(count / 64));
    let elements = here.narrow(0, 0, many)?.to(&bench.device)?;
    let index: Vec<i64> = words[..many].iter().map(|word| ((word >> 3) % places as u64) as i64).collect();
    let index = Tensor::from_slice(&index, &[many], &bench.device)?;
    let zeros = Tensor::zeros(&[places], DType::F32, &bench.device)?;
    let sums = || zeros.scatter_add(0, &index, &elements);
    let on_host = zeros.to(&Device::cpu())?.scatter_add(
        0,
        &index.to(&Device::cpu())?,
        &elements.to(&Device::cpu())?,
    )?;
    same_bits("scatter_add", &on_host, &sums()?)?;
    let operands =
        [Operand::numbers(DType::F32, *zeros.layout()), Operand::numbers(DType::F32, *elements.layout())];
    let work = Work { operation: "scatter_add", operands: &operands, output: None, axes: &[] };
    bench.figure(("scatter_add of 10^7 into 10^5, f32", many * 12, None), &work, || sums().map(drop))
}

/// Elements and places where a mask is true, at half of all elements: those above 0.
fn selections(bench: &mut TensorBench, here: &Tensor) -> Result<(), Failure> {
    let count = here.shape()[0];
    let figures: [(&str, usize, &str, Selection); 2] = [
        ("masked_select of half, f32", 7 * count, "masked_select", |x, mask| x.masked_select(mask)),
        ("nonzero of a mask, half true", 5 * count, "nonzero", |_, mask| mask.nonzero()),
    ];
    let x = here.to(&bench.device)?;
    let mask = x.gt(0.0)?;
    let few = here.narrow(0, 0, FEW.min(count))?;
    let few_there = few.to(&bench.device)?;
    for (name, moved, operation, run) in figures {
        same_bits(name, &run(&few, &few.gt(0.0)?)?, &run(&few_there, &few_there.gt(0.0)?)?)?;
        let operands = [Operand::numbers(x.dtype(), *x.layout())];
        let work = Work { operation, operands: &operands, output: None, axes: &[] };
        bench.figure((name, moved, Some(0.8)), &work, || run(&x, &mask).map(drop))?;
    }
    Ok(())
}

/// One operation, in turns with the copy and with PyTorch's.
fn figure(
    bench: &mut TensorBench,
    subject: (&str, usize, Option<f64>),
    (operation, axes): (&str, &[usize]),
    here: &Tensor,
    run: Operation,
) -> Result<(), Failure> {
    let last = here.rank() as isize - 1;
    let few = here.narrow(last, 0, FEW.min(here.shape()[last as usize]))?;
    let few = if last == 0 { few } else { few.narrow(0, 0, 2)? };
    same_bits(subject.0, &run(&few)?, &run(&few.to(&bench.device)?)?)?;
    let x = here.to(&bench.device)?;
    // CuPy reads u32 in a tensor of i32.
    let dtype = if x.dtype() == DType::U32 { DType::I32 } else { x.dtype() };
    let operands = [Operand::numbers(dtype, *x.layout())];
    bench.figure(subject, &Work { operation, operands: &operands, output: None, axes }, || run(&x).map(drop))
}
