//! Softmax, layer norm and RMS norm of rows of many lengths, batch norm, and a norm with what surrounds it.

use selvedge::tensor::{Device, Fused, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::{Random, half_to_two};
use crate::harness::report::Failure;
use crate::harness::tensor_bench::{self, TensorBench, same_bits};

/// Lengths of rows that every access fits, and of such that begin anywhere.
const ALIGNED: [usize; 6] = [256, 1024, 4096, 16384, 32768, 131072];
const UNALIGNED: [usize; 2] = [1001, 50257];
/// Lengths that `torch.compile` takes turns at.
const COMPILED: [usize; 3] = [1024, 4096, 32768];

const OF_ALIGNED: f64 = 0.92;
const OF_UNALIGNED: f64 = 0.7;
const OF_BATCHES: f64 = 0.8;
const OF_ONE_KERNEL: f64 = 0.9;
const OF_COLUMNS: f64 = 0.8;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let bytes = options.bytes()?;
    let recorder = Recorder::new(
        bare,
        "rows",
        "Softmax and normalisation",
        "Device time of one operation on tensors, by events around four runs, on 2^28 random elements in rows of each length, \
         and of as many of the driver's own copies of as many bytes. Speeds count each input and output once. The first \
         rows of each result are compared with the CPU's, bit for bit. PyTorch does the same to a tensor of its own, of the \
         same size and distribution; `compiled` is `torch.compile` of PyTorch's function.",
    )?;
    let mut random = Random::new(29);
    let mut words = vec![0; bytes / 8];
    random.fill(&mut words);
    let copied = bytes + bytes / 2;
    tensor_bench::measure(bare, options, recorder, (copied, &words.clone()), |bench| figures(bench, words))
}

type Function = fn(&Tensor, &[Tensor; 2]) -> selvedge::Result<Tensor>;

fn figures(bench: &mut TensorBench, mut words: Vec<u64>) -> Result<(), Failure> {
    for dtype in [DType::F32, DType::BF16] {
        let (kept, set) = half_to_two(dtype);
        words.iter_mut().for_each(|word| *word = *word & kept | set);
        let count = words.len() * 2;
        let all = &bytemuck::cast_slice::<u64, u8>(&words)[..count * dtype.size()];
        let here = Tensor::from_bytes(all, dtype, &[count], &Device::cpu())?;
        rows(bench, &here)?;
        // A warp's shared memory holds the shorter rows, a block's registers the longer ones.
        for length in [1024, 4096] {
            one_kernel(bench, &here, length)?;
        }
        batches(bench, &here)?;
        columns(bench, &here)?;
    }
    Ok(())
}

/// The functions of rows of each length.
fn rows(bench: &mut TensorBench, here: &Tensor) -> Result<(), Failure> {
    let functions: [(&str, Function); 3] = [
        ("softmax", |x, _| x.softmax(-1)),
        ("layer_norm", |x, [w, b]| x.layer_norm(w.shape(), Some(w), Some(b), 1e-5)),
        ("rms_norm", |x, [w, _]| x.rms_norm(w.shape(), Some(w), Some(1e-5))),
    ];
    let there = here.to(&bench.device)?;
    let dtype = here.dtype();
    for length in ALIGNED.into_iter().chain(UNALIGNED) {
        let count = here.shape()[0] / length;
        if count < 8 {
            continue;
        }
        let of_shape =
            |x: &Tensor| x.narrow(0, 0, count * length)?.reshape(&[count as isize, length as isize]);
        let (here, x) = (of_shape(here)?, of_shape(&there)?);
        let parameters =
            |x: &Tensor| -> selvedge::Result<[Tensor; 2]> { Ok([x.select(0, 1)?, x.select(0, 2)?]) };
        let (ours, theirs) = (parameters(&here)?, parameters(&x)?);
        let few = 4.min(count);
        for (name, function) in functions {
            let figure = format!("{name} of rows of {length}, {dtype}");
            let goal = if length % 8 == 0 { OF_ALIGNED } else { OF_UNALIGNED };
            let result = function(&x, &theirs)?;
            same_bits(&figure, &function(&here.narrow(0, 0, few)?, &ours)?, &result.narrow(0, 0, few)?)?;
            drop(result);
            let operands = [
                Operand::numbers(dtype, *x.layout()),
                Operand::numbers(dtype, *theirs[0].layout()),
                Operand::numbers(dtype, *theirs[1].layout()),
            ];
            let moved = 2 * count * length * dtype.size();
            let mut names = vec![(figure.clone(), name.to_owned())];
            if COMPILED.contains(&length) {
                names.push((format!("{figure}, compiled"), format!("{name}, compiled")));
            }
            for (figure, operation) in &names {
                let work = Work { operation, operands: &operands, output: None, axes: &[1] };
                bench.figure((figure, moved, Some(goal)), &work, || function(&x, &theirs).map(drop))?;
            }
        }
    }
    Ok(())
}

/// `layer_norm(x + residual + bias)` cast to bf16, of f32 or bf16.
fn one_kernel(bench: &mut TensorBench, here: &Tensor, length: usize) -> Result<(), Failure> {
    let dtype = here.dtype();
    let half = here.shape()[0] / 2;
    let count = half / length;
    let (shape, figure) = (
        [count as isize, length as isize],
        format!("residual + bias + layer_norm + cast of rows of {length}, {dtype}"),
    );
    let there = here.to(&bench.device)?;
    let parts = |all: &Tensor| -> selvedge::Result<[Tensor; 3]> {
        let x = all.narrow(0, 0, half)?.reshape(&shape)?;
        Ok([x.clone(), all.narrow(0, half, half)?.reshape(&shape)?, x.select(0, 3)?])
    };
    let fused = Fused::new(|[x, residual, bias]| {
        let sum = (x + residual + bias).cast(DType::F32);
        let centred = sum - sum.mean_group();
        (centred * (centred.square().mean_group() + 1e-5).rsqrt()).cast(DType::BF16)
    })
    .over(-1);
    let function = |[x, residual, bias]: &[Tensor; 3]| fused.run([x, residual, bias]);
    let (ours, theirs) = (parts(here)?, parts(&there)?);
    let few = |[x, residual, bias]: &[Tensor; 3]| -> selvedge::Result<[Tensor; 3]> {
        Ok([x.narrow(0, 0, 4)?, residual.narrow(0, 0, 4)?, bias.clone()])
    };
    same_bits(&figure, &function(&few(&ours)?)?, &function(&theirs)?.narrow(0, 0, 4)?)?;
    let moved = half * (2 * dtype.size() + 2);
    let operands = theirs.each_ref().map(|x| Operand::numbers(dtype, *x.layout()));
    let work =
        Work { operation: "residual_layer_norm, compiled", operands: &operands, output: None, axes: &[] };
    bench.figure((&figure, moved, Some(OF_ONE_KERNEL)), &work, || function(&theirs).map(drop))
}

/// Batch norm of images in training.
fn batches(bench: &mut TensorBench, here: &Tensor) -> Result<(), Failure> {
    const SHAPE: [isize; 4] = [64, 256, 56, 56];
    let count = SHAPE.iter().product::<isize>() as usize;
    if here.shape()[0] < count {
        return Ok(());
    }
    let dtype = here.dtype();
    let x = here.narrow(0, 0, count)?.to(&bench.device)?.reshape(&SHAPE)?;
    let (w, b) = (here.narrow(0, 0, 256)?.to(&bench.device)?, here.narrow(0, 256, 256)?.to(&bench.device)?);
    let figure = format!("batch_norm in training of (64, 256, 56, 56), {dtype}");
    let operands = [&x, &w, &b].map(|x| Operand::numbers(dtype, *x.layout()));
    let work = Work { operation: "batch_norm", operands: &operands, output: None, axes: &[] };
    bench.figure((&figure, 2 * count * dtype.size(), Some(OF_BATCHES)), &work, || {
        x.batch_norm_training(None, Some(&w), Some(&b), 0.1, 1e-5).map(drop)
    })
}

/// Softmax over the first axis of a matrix, and over the channels of images.
fn columns(bench: &mut TensorBench, here: &Tensor) -> Result<(), Failure> {
    const SHAPES: [(&[isize], isize); 2] = [(&[4096, 65536], 0), (&[64, 256, 56, 56], 1)];
    let (there, dtype) = (here.to(&bench.device)?, here.dtype());
    for (shape, axis) in SHAPES {
        let count = shape.iter().product::<isize>() as usize;
        if here.shape()[0] < count {
            continue;
        }
        let sizes = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let figure = format!("softmax over axis {axis} of ({sizes}), {dtype}");
        let x = there.narrow(0, 0, count)?.reshape(shape)?;
        // The groups of a few neighbours along the last axis are those of the whole.
        let few =
            |x: &Tensor| x.narrow(-1, 0, 4)?.narrow(0, 0, if axis == 0 { shape[0] as usize } else { 2 });
        let ours = few(&here.narrow(0, 0, count)?.reshape(shape)?)?.softmax(axis)?;
        same_bits(&figure, &ours, &few(&x.softmax(axis)?)?)?;
        let operands = [Operand::numbers(dtype, *x.layout())];
        let work = Work {
            operation: "softmax over an axis",
            operands: &operands,
            output: None,
            axes: &[axis as usize],
        };
        bench.figure((&figure, 2 * count * dtype.size(), Some(OF_COLUMNS)), &work, || {
            x.softmax(axis).map(drop)
        })?;
    }
    Ok(())
}
