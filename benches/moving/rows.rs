//! Rows and elements by index, in random order, beside the driver's copy of as many bytes, and beside PyTorch.

use selvedge::tensor::Tensor;
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::Random;
use crate::harness::report::Failure;
use crate::harness::tensor_bench::{self, TensorBench};

/// f32 in a row of 1 KiB.
const WIDTH: usize = 256;
/// The goal for rows; single elements have none, since a sector is read for each.
const OF_ROWS: f64 = 0.9;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let bytes = options.bytes()?;
    let recorder = Recorder::new(
        bare,
        "moving",
        "Moving data by index",
        "Device time of one operation on tensors, by events around four runs, on 1 GiB of random f32, and of as many of the \
         driver's own copies of as many bytes. Rows are of 1 KiB, in random order, each once. Speeds count the elements \
         that are read and written and the indices (i64). Every index is checked. Each result is compared with the rows \
         that it should have, at samples. PyTorch does the same to tensors of its own, of the same sizes and another \
         random order.",
    )?;
    let mut random = Random::new(19);
    let mut words = vec![0; bytes / 8];
    random.fill(&mut words);
    // Large enough for the indices, too.
    let memory = (bytes + bytes / 64, &*words.clone());
    tensor_bench::measure(bare, options, recorder, memory, |bench| figures(bench, &mut random, words))
}

/// 0 to `count` in random order.
fn shuffled(random: &mut Random, count: usize) -> Vec<i64> {
    let mut order: Vec<i64> = (0..count as i64).collect();
    for at in (1..count).rev() {
        order.swap(at, (random.bits() % (at as u64 + 1)) as usize);
    }
    order
}

fn figures(bench: &mut TensorBench, random: &mut Random, mut words: Vec<u64>) -> Result<(), Failure> {
    // Numbers, none of them a NaN, so that equal is equal.
    words.iter_mut().for_each(|word| *word = *word & 0x807f_ffff_807f_ffff | 0x3f00_0000_3f00_0000);
    let count = words.len() * 2;
    let rows = count / WIDTH;
    let x = Tensor::from_slice::<f32>(bytemuck::cast_slice(&words), &[rows, WIDTH], &bench.device)?;
    let order = shuffled(random, rows);
    let index = Tensor::from_slice(&order, &[rows], &bench.device)?;
    let bytes = count * 4;

    let selected = x.index_select(0, &index)?;
    check(&order, |at, from| same(&selected.select(0, at as isize)?, &x.select(0, from as isize)?))?;
    let moved = 2 * bytes + 8 * rows;
    let (numbers, order_of_rows) = (Operand::numbers(DType::F32, *x.layout()), Operand::permutation(rows)?);
    let subject = ("index_select of rows of 1 KiB", moved, Some(OF_ROWS));
    let operands = [numbers, order_of_rows];
    let theirs = work("index_select", &operands);
    bench.figure(subject, &theirs, || x.index_select(0, &index).map(drop))?;
    drop(selected);

    let mut written = Tensor::zeros(&[rows, WIDTH], DType::F32, &bench.device)?;
    written.in_place().index_copy(0, &index, &x)?;
    check(&order, |at, to| same(&written.select(0, to as isize)?, &x.select(0, at as isize)?))?;
    let subject = ("index_copy of rows of 1 KiB", moved, Some(OF_ROWS));
    let operands = [numbers, order_of_rows, numbers];
    let theirs = work("index_copy", &operands);
    bench.figure(subject, &theirs, || written.in_place().index_copy(0, &index, &x).map(drop))?;

    let flat = x.reshape(&[-1])?;
    let few = shuffled(random, count / 16);
    let index = Tensor::from_slice(&few, &[few.len()], &bench.device)?;
    let taken = flat.take(&index)?;
    check(&few, |at, from| same(&taken.select(0, at as isize)?, &flat.select(0, from as isize)?))?;
    let order_of_few = Operand::permutation(few.len())?;
    let operands = [Operand::numbers(DType::F32, *flat.layout()), order_of_few];
    let subject = ("take of f32", few.len() * 16, None);
    bench.figure(subject, &work("take", &operands), || flat.take(&index).map(drop))?;
    let elements = flat.narrow(0, 0, few.len())?;
    let mut places = Tensor::zeros(&[few.len()], DType::F32, &bench.device)?;
    places.in_place().put(&index, &elements)?;
    check(&few, |at, to| same(&places.select(0, to as isize)?, &elements.select(0, at as isize)?))?;
    let numbers = Operand::numbers(DType::F32, *places.layout());
    let operands = [numbers, order_of_few, numbers];
    let subject = ("put of f32", few.len() * 16, None);
    bench.figure(subject, &work("put", &operands), || places.in_place().put(&index, &elements).map(drop))?;
    Ok(())
}

/// PyTorch's operation on the first axis, if on an axis.
fn work<'a>(operation: &'a str, operands: &'a [Operand]) -> Work<'a> {
    Work { operation, operands, output: None, axes: &[0] }
}

/// Looks at some places and what belongs there.
fn check(order: &[i64], matches: impl Fn(usize, i64) -> Result<bool, Failure>) -> Result<(), Failure> {
    for at in (0..order.len()).step_by(order.len() / 61 + 1).chain([order.len() - 1]) {
        if !matches(at, order[at])? {
            return Err(format!("place {at} with index {} is wrong", order[at]).into());
        }
    }
    Ok(())
}

fn same(left: &Tensor, right: &Tensor) -> Result<bool, Failure> {
    Ok(left.to_vec::<f32>()? == right.to_vec::<f32>()?)
}
