//! A step of AdamW, and a feed-forward layer of GPT-2 with its gradients.

use selvedge::nn::{
    AdamW, FeedForward, FeedForwardOptions, Initializer, Linear, Module, Optimizer, Parameters, Variable,
};
use selvedge::tensor::Generator;
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::Random;
use crate::harness::report::Failure;
use crate::harness::tensor_bench::{self, TensorBench};

const WIDTH: usize = 768;
const DEFAULT_PARAMETERS: usize = 124_416_000;
/// The ids of a batch of GPT-2.
const IDS: usize = 65_536;

const OF_OPTIMIZER: f64 = 0.9;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let parameters: usize = match &options.file {
        None => DEFAULT_PARAMETERS,
        Some(text) => text.to_string_lossy().parse()?,
    };
    let rows = (parameters / WIDTH).max(1);
    let recorder = Recorder::new(
        bare,
        "nn",
        "Optimizers and layers",
        "Device time by events around four runs. A step of AdamW reads parameters, gradients and both moments, and writes \
         all but the gradients, in f32; it is compared with as many of the driver's own copies of as many bytes. The layer is \
         two products of bf16 with a bias each and gelu between them, forward and backward, beside a copy of its input and \
         its inner elements, which says nothing of it: its comparison is PyTorch's.",
    )?;
    let mut words = vec![0; 1 << 17];
    Random::new(47).fill(&mut words);
    let streams = 7 * rows * WIDTH * 4;
    tensor_bench::measure(bare, options, recorder, (streams / 2, &words), |bench| {
        adamw(bench, rows)?;
        feed_forward(bench, if parameters < DEFAULT_PARAMETERS { 512 } else { IDS })
    })
}

fn adamw(bench: &mut TensorBench, rows: usize) -> Result<(), Failure> {
    let layer = Linear::without_bias(WIDTH, rows, &Initializer::new(&bench.device).with_seed(1))?;
    let parameters = Parameters::new(&layer)?;
    let mut optimizer = AdamW::new(parameters.variables(), 1e-4)?;
    (layer.weight() * layer.weight())?.sum_all()?.backward()?;
    let count = rows * WIDTH;
    let figure = format!("AdamW of {count} parameters, f32");
    let operands = [Operand::numbers(DType::F32, *layer.weight().tensor().layout())];
    let work = Work { operation: "adamw", operands: &operands, output: None, axes: &[] };
    bench.figure((&figure, 7 * count * 4, Some(OF_OPTIMIZER)), &work, || optimizer.step())
}

fn feed_forward(bench: &mut TensorBench, ids: usize) -> Result<(), Failure> {
    let initializer = Initializer::new(&bench.device).with_dtype(DType::BF16).with_seed(2);
    let layer = FeedForward::new(WIDTH, FeedForwardOptions::default(), &initializer)?;
    let parameters = Parameters::new(&layer)?;
    let generator = Generator::new(3);
    let x = generator.randn(&[ids, WIDTH], DType::BF16, &bench.device)?;
    let gradient = generator.randn(&[ids, WIDTH], DType::BF16, &bench.device)?;
    let input = Variable::with_grad(x)?;
    let run = || {
        parameters.zero_grad();
        input.zero_grad();
        layer.forward(&input)?.backward_with(&gradient)
    };
    let operands = [Operand::numbers(DType::BF16, *gradient.layout())];
    let moved = ids * WIDTH * 2 * 5;
    for (suffix, operation) in [("", "feed_forward"), (", compiled", "feed_forward, compiled")] {
        let figure = format!("feed-forward {ids} x {WIDTH} x {} and its gradients, bf16{suffix}", 4 * WIDTH);
        let work = Work { operation, operands: &operands, output: None, axes: &[] };
        bench.figure((&figure, moved, None), &work, run)?;
    }
    Ok(())
}
