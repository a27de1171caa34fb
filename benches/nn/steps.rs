//! A step of training of small layers, as one graph and call by call.

use std::time::Instant;

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

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "nn_steps",
        "Steps of training of small layers",
        "Ten layers of 256 with a bias and a relu each, on a batch of 128, f32: the host's time. A whole step has forward, \
         backward and SGD, and is timed to its end; the reference makes its calls one by one. The cost of gradients is the time of \
         the calls of forward and backward above that of the same operations on tensors, for each operation, without waiting.",
    )?;
    let device = Device::cuda(0)?;
    whole_step(&device, options, &mut recorder)?;
    above_tensors(&device, options, &mut recorder)?;
    recorder.finish(&options.out)
}

fn layers(device: &Device) -> selvedge::Result<Sequential> {
    let initializer = Initializer::new(device).with_seed(1);
    (0..LAYERS).try_fold(Sequential::new(), |layers, _| {
        Ok(layers.with(Linear::new(WIDTH, WIDTH, &initializer)?).with(Relu))
    })
}

/// Microseconds of one of [`STEPS`] steps.
fn microseconds(mut step: impl FnMut() -> selvedge::Result<()>) -> Result<f64, Failure> {
    let start = Instant::now();
    for _ in 0..STEPS {
        step()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / STEPS as f64)
}

fn whole_step(device: &Device, options: &Options, recorder: &mut Recorder) -> Result<(), Failure> {
    let batches = Generator::new(5);
    let [x, y] = [
        batches.randn(&[BATCH, WIDTH], DType::F32, device)?,
        batches.randn(&[BATCH, WIDTH], DType::F32, device)?,
    ];
    let models = [layers(device)?, layers(device)?];
    let parameters = [Parameters::new(&models[0])?, Parameters::new(&models[1])?];
    let step = |index: usize| {
        let model = &models[index];
        let loss =
            move |inputs: &[Variable]| mse_loss(&model.forward(&inputs[0])?, &inputs[1], Reduction::Mean);
        TrainingStep::new(&parameters[index], Sgd::new(parameters[index].variables(), 1e-3)?, loss)
    };
    let (mut captured, mut plain) = (step(0)?, step(1)?.without_capture());
    let subject = Subject {
        name: "a step of ten layers of 256 as one graph",
        against: "its calls one by one",
        unit: Unit::Microseconds,
        bytes: None,
        rule: Rule::Speed,
        goal: Some(1.0),
    };
    let own = || {
        let taken = microseconds(|| captured.run(&[&x, &y]).map(drop))?;
        device.synchronize()?;
        Ok(taken)
    };
    let reference = || {
        let taken = microseconds(|| plain.run(&[&x, &y]).map(drop))?;
        device.synchronize()?;
        Ok(taken)
    };
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
