//! Derivatives of activations by the emulated kernels of products: as epilogues, and in linear layers, whose results and
//! gradient of the input are held against those of the CPU.

use selvedge::nn::{Activation, LinearLayer, Variable, linear_layers};
use selvedge::{DType, Device, Tensor};

use super::{
    Child, Outcome, PERSISTENT_BF16, PERSISTENT_F16, SPLIT_K_BF16, SPLIT_K_F16, emulate, epilogues, passes,
    with_seeds,
};
use crate::support::Fake;

const WIDTH: usize = 64;
const HIDDEN: usize = 256;
const ROWS: usize = 136;

/// Numbers from -1 to 1 times a factor, without a pattern.
fn numbers(seed: usize, shape: &[usize], factor: f64) -> selvedge::Result<Tensor> {
    let golden = 0.618_033_988_749_894_9;
    let number = |index: usize| factor * (2.0 * ((index + 1000 * seed + 1) as f64 * golden).fract() - 1.0);
    let numbers: Vec<f64> = (0..shape.iter().product()).map(number).collect();
    Tensor::from_slice(&numbers, shape, &Device::cpu())
}

/// The result and the gradient of the input, as doubles.
fn run(
    device: &Device,
    dtype: DType,
    activation: Activation,
) -> Result<[Vec<f64>; 2], Box<dyn std::error::Error>> {
    let operand = |seed, shape: &[usize], factor| {
        numbers(seed, shape, factor)?.cast(DType::BF16)?.cast(dtype)?.to(device)
    };
    let x = Variable::with_grad(operand(1, &[ROWS, WIDTH], 1.0)?)?;
    let weights = [(2, WIDTH, HIDDEN), (3, HIDDEN, WIDTH)];
    let [first, second] =
        weights.map(|(seed, rows, columns)| operand(seed, &[rows, columns], 0.25).map(Variable::new));
    let [of_first, of_second] =
        [(4, HIDDEN), (5, WIDTH)].map(|(seed, size)| operand(seed, &[size], 0.5).map(Variable::new));
    let (first, second, of_first, of_second) = (first?, second?, of_first?, of_second?);
    let layers = [
        LinearLayer { weight: &first, bias: Some(&of_first), activation: Some(activation) },
        LinearLayer { weight: &second, bias: Some(&of_second), activation: None },
    ];
    let result = linear_layers(&x, &layers)?;
    result.backward_with(&operand(6, &[ROWS, WIDTH], 1.0)?)?;
    let gradient = x.grad().ok_or("no gradient")?;
    let on_cpu = |tensor: &Tensor| tensor.to(&Device::cpu())?.cast(DType::F64)?.to_vec::<f64>();
    Ok([on_cpu(&result.tensor())?, on_cpu(&gradient)?])
}

/// Child: sums times the derivatives of activations.
fn derivatives(fake: &Fake) -> Outcome {
    emulate(fake, &[PERSISTENT_BF16, PERSISTENT_F16])?;
    with_seeds(2, |stream| passes(epilogues::derivatives(stream)))
}

/// Child: a feed-forward with each activation that epilogues have.
fn feed_forward(fake: &Fake) -> Outcome {
    emulate(fake, &[PERSISTENT_BF16, PERSISTENT_F16, SPLIT_K_BF16, SPLIT_K_F16])?;
    with_seeds(1, |_| {
        for (dtype, unit) in [(DType::BF16, 1.0 / 256.0), (DType::F16, 1.0 / 2048.0)] {
            for activation in [Activation::Relu, Activation::GeluTanh, Activation::Silu] {
                let before = fake.launches();
                let found = run(&Device::cuda(0)?, dtype, activation)?;
                // Two products forward, two backward.
                let launches = fake.launches() - before;
                if launches != 4 {
                    return Err(format!("{dtype} {activation:?}: {launches} launches").into());
                }
                let wanted = run(&Device::cpu(), DType::F64, activation)?;
                for (name, found, wanted) in
                    [("the result", &found[0], &wanted[0]), ("the gradient", &found[1], &wanted[1])]
                {
                    let scale = wanted.iter().fold(0.0f64, |most, x| most.max(x.abs()));
                    let error = found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    // A rounding of the hidden layer and one of the result; a sign of relu may differ at 0.
                    if error.is_nan() || error > 4.0 * unit * scale {
                        return Err(
                            format!("{dtype} {activation:?}: {name} is off by {error} of {scale}").into()
                        );
                    }
                }
            }
        }
        Ok(())
    })
}

pub static CHILDREN: &[(&str, Child)] = &[("derivatives", derivatives), ("feed_forward", feed_forward)];
