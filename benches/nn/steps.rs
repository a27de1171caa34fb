//! A step of training of small layers, as one graph and call by call.

use std::time::{Duration, Instant};

use selvedge::nn::{
    Initializer, Linear, Module, Parameters, Reduction, Relu, Sequential, Sgd, TrainingStep, Variable,
    mse_loss,
};
use selvedge::tensor::{Device, Fused, Generator, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const LAYERS: usize = 10;
const WIDTH: usize = 256;
const BATCH: usize = 128;
/// Steps that are timed together.
const STEPS: usize = 4;
/// The time in which the launches of [`STEPS`] steps are queued.
const QUEUEING: Duration = Duration::from_millis(20);

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "nn_steps",
        "Steps of training of small layers",
        "Ten layers of 256 with a bias and a relu each, on a batch of 128, f32: the host's time, but for \
         rows of the device. A whole step has forward, backward and SGD, and is timed until the device has finished four of them; the \
         reference makes its calls one by one. On the device, a step is timed by events behind a function of the host that lasts 20 ms, \
         so that all launches are queued before the first one runs: the calls' kernels then run back to back, and their time is the \
         sum of the kernels with the gaps between them. The cost of gradients is the time of \
         the calls of forward and backward above that of the same operations on tensors, for each operation, without waiting.",
    )?;
    let device = Device::cuda(0)?;
    whole_step(&device, options, &mut recorder)?;
    on_the_device(&device, options, &mut recorder)?;
    above_tensors(&device, options, &mut recorder)?;
    recorder.finish(&options.out)
}

fn layers(device: &Device) -> selvedge::Result<Sequential> {
    let initializer = Initializer::new(device).with_seed(1);
    (0..LAYERS).try_fold(Sequential::new(), |layers, _| {
        Ok(layers.with(Linear::new(WIDTH, WIDTH, &initializer)?).with(Relu))
    })
}

/// Microseconds of the host's calls of one of [`STEPS`] steps. The device may go on.
fn microseconds(mut step: impl FnMut() -> selvedge::Result<()>) -> Result<f64, Failure> {
    let start = Instant::now();
    for _ in 0..STEPS {
        step()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / STEPS as f64)
}

/// Microseconds of one of [`STEPS`] steps, until the device has finished them.
fn microseconds_to_the_end(
    device: &Device,
    mut step: impl FnMut() -> selvedge::Result<()>,
) -> Result<f64, Failure> {
    device.synchronize()?;
    let start = Instant::now();
    for _ in 0..STEPS {
        step()?;
    }
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / STEPS as f64)
}

/// Microseconds of the device for one of [`STEPS`] steps, whose launches are all queued before the first one runs.
fn microseconds_of_the_device(
    device: &Device,
    mut step: impl FnMut() -> selvedge::Result<()>,
) -> Result<f64, Failure> {
    let stream = device.stream()?;
    let (mut start, mut end) = (stream.device().timing_event()?, stream.device().timing_event()?);
    // A delay rather than a signal: a call that waits for the device would wait for the signal for ever.
    stream.on_complete(|| std::thread::sleep(QUEUEING))?;
    let calls = Instant::now();
    start.record(&stream)?;
    for _ in 0..STEPS {
        step()?;
    }
    end.record(&stream)?;
    if calls.elapsed() >= QUEUEING {
        return Err(format!("the calls of {STEPS} steps took longer than {QUEUEING:?}").into());
    }
    end.synchronize()?;
    Ok(f64::from(start.elapsed_ms(&end)?) * 1e3 / STEPS as f64)
}

/// The two steps of equal layers, as one graph and call by call.
struct Steps<L> {
    captured: TrainingStep<Sgd, L>,
    plain: TrainingStep<Sgd, L>,
    inputs: [Tensor; 2],
}

fn steps(device: &Device) -> selvedge::Result<Steps<impl FnMut(&[Variable]) -> selvedge::Result<Variable>>> {
    let batches = Generator::new(5);
    let inputs = [
        batches.randn(&[BATCH, WIDTH], DType::F32, device)?,
        batches.randn(&[BATCH, WIDTH], DType::F32, device)?,
    ];
    let step = || {
        let model = layers(device)?;
        let parameters = Parameters::new(&model)?;
        let optimizer = Sgd::new(parameters.variables(), 1e-3)?;
        let loss =
            move |inputs: &[Variable]| mse_loss(&model.forward(&inputs[0])?, &inputs[1], Reduction::Mean);
        TrainingStep::new(&parameters, optimizer, loss)
    };
    let (captured, plain) = (step()?, step()?.without_capture());
    Ok(Steps { captured, plain, inputs })
}

/// The device's time of the graph, against that of the same kernels as launches of their own.
fn on_the_device(device: &Device, options: &Options, recorder: &mut Recorder) -> Result<(), Failure> {
    let Steps { mut captured, mut plain, inputs: [x, y] } = steps(device)?;
    let subject = Subject {
        name: "a step of ten layers of 256 as one graph, on the device",
        against: "the sum of its kernels, launched one by one",
        unit: Unit::Microseconds,
        bytes: None,
        rule: Rule::Speed,
        goal: Some(1.0),
    };
    // The first step of the graph is uncaptured, and the second is captured.
    for _ in 0..2 {
        captured.run(&[&x, &y])?;
        plain.run(&[&x, &y])?;
    }
    let own = || microseconds_of_the_device(device, || captured.run(&[&x, &y]).map(drop));
    let reference = || microseconds_of_the_device(device, || plain.run(&[&x, &y]).map(drop));
    recorder.add(turns(options.turns(3, 30), &subject, own, reference)?);
    Ok(())
}

fn whole_step(device: &Device, options: &Options, recorder: &mut Recorder) -> Result<(), Failure> {
    let Steps { mut captured, mut plain, inputs: [x, y] } = steps(device)?;
    let subject = Subject {
        name: "a step of ten layers of 256 as one graph",
        against: "its calls one by one",
        unit: Unit::Microseconds,
        bytes: None,
        rule: Rule::Speed,
        goal: Some(1.0),
    };
    let own = || microseconds_to_the_end(device, || captured.run(&[&x, &y]).map(drop));
    let reference = || microseconds_to_the_end(device, || plain.run(&[&x, &y]).map(drop));
    recorder.add(turns(options.turns(3, 30), &subject, own, reference)?);
    if !captured.is_captured() {
        return Err(format!("the step was not captured: {:?}", captured.uncaptured_reason()).into());
    }
    Ok(())
}

/// The operations of forward and backward.
const OPERATIONS: usize = 7 * LAYERS;

/// Forward and backward by tensors alone.
fn by_tensors(
    (x, gradient): (&Tensor, &Tensor),
    weights: &[(Tensor, Tensor)],
    masked: &Fused<2>,
) -> selvedge::Result<()> {
    let (mut inputs, mut results) = (Vec::new(), Vec::new());
    let mut x = x.clone();
    for (weight, bias) in weights {
        let sum = x.matmul(weight)?.add(bias)?;
        inputs.push(x);
        x = sum.relu()?;
        results.push(x.clone());
    }
    let mut gradient = gradient.clone();
    for (((weight, _), input), result) in weights.iter().zip(&inputs).zip(&results).rev() {
        let masked = masked.run([result, &gradient])?;
        drop(masked.sum(0)?);
        drop(input.transpose(0, 1)?.matmul(&masked)?);
        gradient = masked.matmul(&weight.transpose(0, 1)?)?;
    }
    Ok(())
}

fn above_tensors(device: &Device, options: &Options, recorder: &mut Recorder) -> Result<(), Failure> {
    let generator = Generator::new(6);
    let random = |shape: &[usize]| generator.randn(shape, DType::F32, device);
    let (x, gradient) = (random(&[BATCH, WIDTH])?, random(&[BATCH, WIDTH])?);
    let model = layers(device)?;
    let parameters = Parameters::new(&model)?;
    let weights: Vec<(Tensor, Tensor)> = (0..LAYERS)
        .map(|_| Ok((random(&[WIDTH, WIDTH])?, random(&[WIDTH])?)))
        .collect::<selvedge::Result<_>>()?;
    let masked = Fused::new(|[result, gradient]| result.gt(0.0).choose(gradient, 0.0));
    let input = Variable::new(x.clone());
    let subject = Subject {
        name: "gradients of ten layers of 256: the host's time of an operation above that on tensors",
        against: "an operation on tensors",
        unit: Unit::Nanoseconds,
        bytes: None,
        rule: Rule::Own,
        goal: Some(300.0),
    };
    let of_tensors = || {
        let taken = microseconds(|| by_tensors((&x, &gradient), &weights, &masked))?;
        device.synchronize()?;
        Ok::<f64, Failure>(taken * 1e3 / OPERATIONS as f64)
    };
    let of_variables = || {
        let taken = microseconds(|| {
            parameters.zero_grad();
            model.forward(&input)?.backward_with(&gradient)
        })?;
        device.synchronize()?;
        Ok::<f64, Failure>(taken * 1e3 / OPERATIONS as f64)
    };
    let above = || Ok(of_variables()? - of_tensors()?);
    recorder.add(turns(options.turns(3, 30), &subject, above, of_tensors)?);
    Ok(())
}
