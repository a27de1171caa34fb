//! Backward of softmax, layer norm and RMS norm of rows of many lengths, and cross-entropy with its gradient.

use selvedge::tensor::{CrossEntropyOptions, Device, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::{Random, half_to_two};
use crate::harness::report::Failure;
use crate::harness::tensor_bench::{self, TensorBench, same_bits};

const LENGTHS: [usize; 5] = [256, 1024, 4096, 16384, 32768];
/// Lengths that `torch.compile` takes turns at.
const COMPILED: [usize; 2] = [1024, 4096];
/// GPT-2's vocabulary, padded to a multiple of 128.
const CLASSES: usize = 50304;

const OF_BACKWARD: f64 = 0.85;
const OF_CROSS_ENTROPY: f64 = 0.88;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let bytes = options.bytes()?;
    let recorder = Recorder::new(
        bare,
        "rows_backward",
        "Gradients of softmax, normalisation and cross-entropy",
        "Device time of one operation on tensors, by events around four runs, on two arrays of 2^28 random elements in rows of \
         each length, and of as many of the driver's own copies of as many bytes. Speeds count each input and output once; \
         those of norms hold the gradients of weight and bias. The first rows of each result are compared with the CPU's, \
         bit for bit. PyTorch does the same to tensors of its own; `compiled` is the backward of `torch.compile`.",
    )?;
    let mut random = Random::new(37);
    let mut words = vec![0; bytes / 8];
    random.fill(&mut words);
    let copied = bytes + bytes / 2;
    tensor_bench::measure(bare, options, recorder, (copied, &words.clone()), |bench| figures(bench, words))
}

type Function = fn(&Tensor, &Tensor, &Tensor) -> selvedge::Result<Tensor>;

fn figures(bench: &mut TensorBench, mut words: Vec<u64>) -> Result<(), Failure> {
    for dtype in [DType::F32, DType::BF16] {
        let (kept, set) = half_to_two(dtype);
        words.iter_mut().for_each(|word| *word = *word & kept | set);
        let count = words.len() * 2;
        let all = &bytemuck::cast_slice::<u64, u8>(&words)[..count * dtype.size()];
        let here = Tensor::from_bytes(all, dtype, &[count], &Device::cpu())?;
        rows(bench, &here)?;
        cross_entropy(bench, &here)?;
    }
    Ok(())
}

/// The gradients of rows of each length. The gradient of the result is the same array from its other end.
fn rows(bench: &mut TensorBench, here: &Tensor) -> Result<(), Failure> {
    let functions: [(&str, Function); 3] = [
        ("softmax_backward", |x, gradient, _| x.softmax_backward(gradient, -1, None)),
        ("layer_norm_backward", |x, gradient, w| {
            Ok(x.layer_norm_backward(gradient, w.shape(), Some(w), 1e-5, None, true)?.input)
        }),
        ("rms_norm_backward", |x, gradient, w| {
            Ok(x.rms_norm_backward(gradient, w.shape(), Some(w), Some(1e-5), None, true)?.input)
        }),
    ];
    let there = here.to(&bench.device)?;
    let other = there.flip(&[0])?.contiguous()?;
    let (dtype, few) = (here.dtype(), 4);
    for length in LENGTHS {
        let count = here.shape()[0] / length;
        if count < 8 {
            continue;
        }
        let of_shape = |x: &Tensor| x.reshape(&[count as isize, length as isize]);
        let (x, gradient) = (of_shape(&there)?, of_shape(&other)?);
        let w = x.select(0, 1)?;
        for (name, function) in functions {
            let figure = format!("{name} of rows of {length}, {dtype}");
            let cpu = |x: &Tensor| x.narrow(0, 0, few)?.to(&Device::cpu());
            let ours = function(&cpu(&x)?, &cpu(&gradient)?, &w.to(&Device::cpu())?)?;
            same_bits(&figure, &ours, &function(&x, &gradient, &w)?.narrow(0, 0, few)?)?;
            let operands = [
                Operand::numbers(dtype, *x.layout()),
                Operand::numbers(dtype, *gradient.layout()),
                Operand::numbers(dtype, *w.layout()),
            ];
            let moved = 3 * count * length * dtype.size();
            let mut names = vec![(figure.clone(), name.to_owned())];
            if COMPILED.contains(&length) {
                names.push((format!("{figure}, compiled"), format!("{name}, compiled")));
            }
            for (figure, operation) in &names {
                let work = Work { operation, operands: &operands, output: None, axes: &[1] };
                bench.figure((figure, moved, Some(OF_BACKWARD)), &work, || {
                    function(&x, &gradient, &w).map(drop)
                })?;
            }
        }
    }
    Ok(())
}

/// The loss of logits and its gradient.
fn cross_entropy(bench: &mut TensorBench, here: &Tensor) -> Result<(), Failure> {
    let (dtype, few) = (here.dtype(), 4);
    let count = here.shape()[0] / CLASSES;
    let logits =
        |x: &Tensor, rows: usize| x.narrow(0, 0, rows * CLASSES)?.reshape(&[rows as isize, CLASSES as isize]);
    let labels: Vec<i64> = (0..count as i64).map(|row| row * 7919 % CLASSES as i64).collect();
    let labels = Tensor::from_slice(&labels, &[count], &bench.device)?;
    let x = logits(&here.to(&bench.device)?, count)?;
    let run =
        |x: &Tensor, labels: &Tensor| x.cross_entropy_with_gradient(labels, CrossEntropyOptions::default());
    let figure = format!("cross_entropy of {CLASSES} classes with its gradient, {dtype}");
    let of_few = (logits(here, few)?, labels.narrow(0, 0, few)?);
    let ours = run(&of_few.0, &of_few.1.to(&Device::cpu())?)?.1;
    same_bits(&figure, &ours, &run(&x.narrow(0, 0, few)?, &of_few.1)?.1)?;
    let operands = [Operand::numbers(dtype, *x.layout())];
    let moved = 2 * count * CLASSES * dtype.size();
    for (figure, operation) in
        [(figure.clone(), "cross_entropy"), (format!("{figure}, compiled"), "cross_entropy, compiled")]
    {
        let work = Work { operation, operands: &operands, output: None, axes: &[] };
        bench.figure((&figure, moved, None), &work, || run(&x, &labels).map(drop))?;
    }
    // After the first run the logits are gradients, which take the same time.
    let mut own = x.copy()?;
    drop(x);
    for (figure, operation) in [
        (format!("{figure}, in place"), "cross_entropy"),
        (format!("{figure}, in place, compiled"), "cross_entropy, compiled"),
    ] {
        let work = Work { operation, operands: &operands, output: None, axes: &[] };
        bench.figure((&figure, moved, Some(OF_CROSS_ENTROPY)), &work, || {
            own.in_place().cross_entropy_with_gradient(&labels, CrossEntropyOptions::default()).map(drop)
        })?;
    }
    Ok(())
}
