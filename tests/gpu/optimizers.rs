//! The cases of optimizers (tests/cases/optimizers.rs) on a device, and steps as a graph.

#[path = "../cases/optimizers.rs"]
mod cases;

use selvedge::nn::{
    Adafactor, Initializer, Linear, Lion, Module, Optimizer, Parameters, Reduction, Sequential, Tanh,
    TrainingStep, Variable, mse_loss,
};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::support::{Outcome, device_tests};

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        device_tests! { $($name,)* captured_steps_of_each_optimizer_have_the_bits_of_uncaptured_ones }

        $(
            fn $name() -> Outcome {
                cases::$name(&Device::cuda(0)?);
                Ok(())
            }
        )*
    };
}

cases::each!(tests);

/// Losses of steps with changing learning rates, and the model's and the optimizer's state after them.
fn run(create: Create, is_captured: bool, dtype: DType, device: &Device) -> selvedge::Result<Vec<Vec<u8>>> {
    let initializer = Initializer::new(device).with_seed(1).with_dtype(dtype);
    let model = Sequential::new().with(Linear::new(16, 24, &initializer)?).with(Tanh).with(Linear::new(
        24,
        4,
        &initializer,
    )?);
    let parameters = Parameters::new(&model)?;
    let mut optimizer = create(parameters.variables())?;
    let mut found = Vec::new();
    let rate = optimizer.learning_rate();
    let loss = |inputs: &[Variable]| mse_loss(&model.forward(&inputs[0])?, &inputs[1], Reduction::Mean);
    {
        let mut step = TrainingStep::new(&parameters, &mut *optimizer, loss)?.with_max_norm(0.5)?;
        if !is_captured {
            step = step.without_capture();
        }
        for number in 0..20 {
            let batches = Generator::new(1000 + number);
            let [x, y] = [16, 4].map(|width| batches.randn(&[8, width], DType::F32, &Device::cpu()));
            step.set_learning_rate(rate / (number + 1) as f64);
            found.push(step.run(&[&x?.cast(dtype)?, &y?.cast(dtype)?])?.to_bytes()?);
            assert_eq!(step.is_captured(), is_captured && number > 0, "{:?}", step.uncaptured_reason());
        }
    }
    let states = optimizer.state_dict()?;
    found.extend(states.values().map(Tensor::to_bytes).collect::<selvedge::Result<Vec<_>>>()?);
    found.extend(model.state_dict().values().map(Tensor::to_bytes).collect::<selvedge::Result<Vec<_>>>()?);
    Ok(found)
}

type Create = fn(Vec<Variable>) -> selvedge::Result<Box<dyn Optimizer>>;

fn captured_steps_of_each_optimizer_have_the_bits_of_uncaptured_ones() -> Outcome {
    let device = Device::cuda(0)?;
    let of_the_defaults: [Create; 2] =
        [|list| Ok(Box::new(Lion::new(list, 1e-3)?)), |list| Ok(Box::new(Adafactor::new(list, 1e-2)?))];
    for (at, create) in cases::OPTIMIZERS.into_iter().chain(of_the_defaults).enumerate() {
        for dtype in [DType::F32, DType::BF16] {
            let [captured, uncaptured] = [true, false].map(|is| run(create, is, dtype, &device));
            assert_eq!(captured?, uncaptured?, "optimizer {at} of {dtype}");
        }
    }
    Ok(())
}
