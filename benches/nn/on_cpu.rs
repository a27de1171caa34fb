//! Steps of training and a softmax on the CPU, in turns with PyTorch on the same cores.

use std::time::Instant;

use selvedge::Result as SelvedgeResult;
use selvedge::nn::{
    CrossEntropyOptions, Initializer, Linear, Module, Optimizer, Relu, Sequential, Sgd, Variable,
    cross_entropy,
};
use selvedge::tensor::{Device, Generator};
use selvedge::types::DType;

use crate::Options;
use crate::harness::machine::Recorder;
use crate::harness::pytorch_on_cpu::PyTorchOnCpu;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const BATCH: usize = 128;
/// Steps that are timed together.
const STEPS: usize = 20;
/// Softmaxes that are timed together.
const RUNS: usize = 4;

/// Every figure.
pub fn measure(options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::on_host(
        "nn_cpu",
        "Training and softmax on the CPU",
        "A step of training of layers 784-512-512-10 with relu, f32, on a batch of 128: forward, cross-entropy, backward and SGD, \
         as the mean of 20 steps; and the softmax of each row of 4096 x 4096, f32, as the mean of 4. PyTorch computes the same, eager, \
         in a process of its own (its softmax into an output that exists); both run on the processors that the benchmark may use.",
    );
    let mut pytorch = PyTorchOnCpu::start()?;
    let library = pytorch.library.clone();
    let mut step = step()?;
    let mut softmax = softmax()?;
    let works: [(_, _, &mut dyn FnMut() -> SelvedgeResult<()>, _, _, _); 2] = [
        ("a step of 784-512-512-10, batch 128", "step", &mut step, STEPS, 1.0, None),
        ("softmax of 4096 x 4096", "softmax", &mut softmax, RUNS, 1.2, Some(0.8)),
    ];
    for (name, work, run, count, goal, resolve_at) in works {
        let own = || {
            let start = Instant::now();
            for _ in 0..count {
                run()?;
            }
            Ok::<f64, Failure>(start.elapsed().as_secs_f64() * 1e6 / count as f64)
        };
        let reference = || Ok(pytorch.microseconds(work, &[], count)?);
        let subject = Subject {
            name,
            against: &library,
            unit: Unit::Microseconds,
            bytes: None,
            rule: Rule::Speed,
            goal: Some(goal),
        };
        let mut figure = turns(options.turns(3, 30), &subject, own, reference)?;
        figure.resolve_at = resolve_at;
        recorder.add(figure);
    }
    recorder.finish(&options.out)
}

fn softmax() -> SelvedgeResult<impl FnMut() -> SelvedgeResult<()>> {
    let x = Generator::new(3).randn(&[4096, 4096], DType::F32, &Device::cpu())?;
    Ok(move || x.softmax(1).map(drop))
}

fn step() -> SelvedgeResult<impl FnMut() -> SelvedgeResult<()>> {
    let device = Device::cpu();
    let initializer = Initializer::new(&device).with_seed(1);
    let model = Sequential::new()
        .with(Linear::new(784, 512, &initializer)?)
        .with(Relu)
        .with(Linear::new(512, 512, &initializer)?)
        .with(Relu)
        .with(Linear::new(512, 10, &initializer)?);
    let mut optimizer = Sgd::new(model.parameters(), 0.01)?;
    let generator = Generator::new(2);
    let images = Variable::new(generator.randn(&[BATCH, 784], DType::F32, &device)?);
    let labels = generator.randint(0, 10, &[BATCH], DType::I64, &device)?;
    Ok(move || {
        let loss = cross_entropy(&model.forward(&images)?, &labels, CrossEntropyOptions::default())?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()
    })
}
