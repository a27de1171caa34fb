//! Gradients on a device, compared with the CPU's: every operation of variables, functions with masks, dropout and checkpoints, and
//! second derivatives.

#[path = "../cases/gradients.rs"]
mod cases;
#[path = "../cases/custom_function.rs"]
mod custom_function;
#[path = "../cases/edge_gradients.rs"]
mod edge_cases;

use cases::{COMPLEX, each_elementwise, result_and_gradients, samples};
use selvedge::Complex;
use selvedge::nn::{
    AttentionOptions, BatchNorm2d, Dropout, Initializer, Module, Variable, checkpoint,
    scaled_dot_product_attention,
};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::support::compare::{Agreement, assert_agree};
use crate::support::{Need, Outcome, device_tests};

device_tests! {
    gradients_of_elementwise_operations_are_close_to_the_cpu, gradients_of_other_operations_are_close_to_the_cpu,
    gradients_of_complex_operations_are_close_to_the_cpu, gradients_of_masks_dropout_and_checkpoints_are_close_to_the_cpu,
    second_derivatives_of_elementwise_operations_are_close_to_the_cpu,
    second_derivatives_of_other_operations_are_close_to_the_cpu, gradients_at_edges_are_right,
    a_function_with_kernels_of_its_own_is_close_to_the_cpu => in_child(&[]) => needs(Need::Nvrtc),
}

const DTYPES: [(DType, f64); 4] =
    [(DType::F64, 1e-11), (DType::F32, 2e-5), (DType::F16, 2e-2), (DType::BF16, 1e-1)];

type Function<'a> = &'a dyn Fn(&[Variable]) -> selvedge::Result<Variable>;

/// Compares results of a run on operands here and on the device.
fn compare(
    name: &str,
    inputs: &[Tensor],
    tolerance: f64,
    run: impl Fn(&[Tensor]) -> selvedge::Result<Vec<Tensor>>,
) -> selvedge::Result<()> {
    let device = Device::cuda(0)?;
    let there = inputs.iter().map(|x| x.to(&device)).collect::<selvedge::Result<Vec<_>>>()?;
    let (found, wanted) = (run(&there)?, run(inputs)?);
    assert_eq!(found.len(), wanted.len(), "{name}");
    for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let what = format!("{name} of {}, tensor {place}", inputs[0].dtype());
        assert_agree(&what, found, wanted, Agreement::Within(tolerance));
    }
    Ok(())
}

/// Compares a function's result and gradients in each dtype.
fn compare_gradients(name: &str, inputs: &[Tensor], function: Function<'_>) {
    for (dtype, tolerance) in DTYPES {
        let inputs = inputs.iter().map(|x| x.cast(dtype)).collect::<selvedge::Result<Vec<_>>>();
        inputs
            .and_then(|inputs| compare(name, &inputs, tolerance, |x| result_and_gradients(x, function)))
            .unwrap_or_else(|error| panic!("{name} of {dtype}: {error}"));
    }
}

fn gradients_of_elementwise_operations_are_close_to_the_cpu() -> Outcome {
    each_elementwise([&[2, 3], &[3], &[2, 1]], compare_gradients);
    Ok(())
}

fn gradients_of_other_operations_are_close_to_the_cpu() -> Outcome {
    cases::all().iter().for_each(|(name, inputs, function)| compare_gradients(name, inputs, function));
    Ok(())
}

fn gradients_of_complex_operations_are_close_to_the_cpu() -> Outcome {
    for (dtype, tolerance) in [(DType::C128, 1e-11), (DType::C64, 2e-5)] {
        let [re, im] = [0, 1].map(|seed| samples(seed, &[2, 3]).cast(dtype));
        let z = (re? + (im? * Complex::new(0.0f64, 1.0))?)?;
        for (name, function) in COMPLEX {
            // The parts of numbers, because a comparison is of reals.
            let parts = |tensors: Vec<Tensor>| -> selvedge::Result<Vec<Tensor>> {
                let part = |x: Tensor| if x.dtype().is_complex() { x.view_as_real() } else { Ok(x) };
                tensors.into_iter().map(part).collect()
            };
            compare(name, std::slice::from_ref(&z), tolerance, |x| {
                parts(result_and_gradients(x, |x| function(&x[0]))?)
            })?;
        }
    }
    Ok(())
}

fn gradients_at_edges_are_right() -> Outcome {
    let device = Device::cuda(0)?;
    edge_cases::gradients_of_products_are_products_of_the_others(&device);
    edge_cases::gradients_of_cumulative_products_are_products_of_the_others(&device);
    edge_cases::elements_that_equal_an_infinite_logsumexp_share_its_gradient(&device);
    edge_cases::operands_of_which_only_the_sign_counts_have_gradients_of_zeros(&device);
    Ok(())
}

/// Attention of two heads with a mask that leaves each query a key, causal or not, with dropout or without.
fn attention(x: &[Variable], is_causal: bool, dropout: f64) -> selvedge::Result<Variable> {
    let device = x[0].device();
    let mask = Tensor::new([[true, false, true], [true, true, false], [true, true, true]], &device)?;
    let options = AttentionOptions {
        mask: Some(Variable::new(mask)),
        is_causal,
        dropout,
        generator: Some(Generator::new(5)),
        ..AttentionOptions::default()
    };
    scaled_dot_product_attention(&x[0], &x[1], &x[2], &options)
}

fn gradients_of_masks_dropout_and_checkpoints_are_close_to_the_cpu() -> Outcome {
    let heads = [0, 1, 2].map(|seed| samples(seed, &[2, 2, 3, 4]));
    for (is_causal, dropout) in [(false, 0.0), (true, 0.0), (false, 0.4), (true, 0.4)] {
        let name = format!("attention, is_causal {is_causal}, dropout {dropout}");
        compare_gradients(&name, &heads, &|x| attention(x, is_causal, dropout));
    }
    // A mask of scores has a gradient too.
    let scores = [&heads[..], &[samples(3, &[3, 3])]].concat();
    compare_gradients("attention with scores as a mask", &scores, &|x| {
        let options = AttentionOptions { mask: Some(x[3].clone()), ..AttentionOptions::default() };
        scaled_dot_product_attention(&x[0], &x[1], &x[2], &options)
    });
    compare_gradients("Dropout", &[samples(0, &[40, 30])], &|x| {
        Dropout::new(0.3, &Generator::new(9))?.forward(&x[0])?.square()
    });
    compare_gradients("BatchNorm2d", &[samples(0, &[3, 2, 4, 5])], &|x| {
        let initializer = Initializer::new(&x[0].device()).with_dtype(x[0].dtype()).with_seed(2);
        BatchNorm2d::new(2, &initializer)?.forward(&x[0])
    });
    compare_gradients("a checkpoint with dropout", &[samples(0, &[6, 5]), samples(1, &[5, 4])], &|x| {
        let dropout = Dropout::new(0.3, &Generator::new(9))?;
        checkpoint(move |x| dropout.forward(&x[0].matmul(&x[1])?.tanh()?), &[&x[0], &x[1]])
    });
    Ok(())
}

fn a_function_with_kernels_of_its_own_is_close_to_the_cpu() -> Outcome {
    let x = (samples(0, &[30, 40]) - 0.5)?.cast(DType::F32)?;
    compare("softsign", &[x], 1e-6, |x| {
        result_and_gradients(x, |x| Variable::apply(custom_function::Softsign, &[&x[0].t()?])?.square())
    })?;
    Ok(())
}

/// Compares the gradients of the squared norm of a function's first gradients.
fn compare_second(name: &str, inputs: &[Tensor], function: Function<'_>) {
    fn second(inputs: &[Tensor], function: Function<'_>) -> selvedge::Result<Vec<Tensor>> {
        let leaves =
            inputs.iter().map(|x| Variable::with_grad(x.clone())).collect::<selvedge::Result<Vec<_>>>()?;
        let output = function(&leaves)?.square()?.sum_all()?;
        let first = output.gradients(&leaves.iter().collect::<Vec<_>>())?;
        let mut norm = first[0].square()?.sum_all()?;
        for gradient in &first[1..] {
            norm = (norm + gradient.square()?.sum_all()?)?;
        }
        norm.backward()?;
        Ok([norm.tensor()].into_iter().chain(leaves.iter().filter_map(Variable::grad)).collect())
    }
    for (dtype, tolerance) in &DTYPES[..2] {
        let inputs = inputs.iter().map(|x| x.cast(*dtype)).collect::<selvedge::Result<Vec<_>>>();
        inputs
            .and_then(|inputs| compare(name, &inputs, 10.0 * tolerance, |x| second(x, function)))
            .unwrap_or_else(|error| panic!("{name} of {dtype}: {error}"));
    }
}

fn second_derivatives_of_elementwise_operations_are_close_to_the_cpu() -> Outcome {
    each_elementwise([&[2, 3], &[3], &[2, 1]], compare_second);
    Ok(())
}

fn second_derivatives_of_other_operations_are_close_to_the_cpu() -> Outcome {
    let linear = [cases::products(), cases::views_and_joins(), cases::rearrangements()].concat();
    linear.iter().for_each(|(name, inputs, function)| compare_second(name, inputs, function));
    let reads = cases::reads_and_writes().into_iter().filter(|(name, ..)| !name.starts_with("index_put"));
    reads.for_each(|(name, inputs, function)| compare_second(&name, &inputs, &function));
    Ok(())
}
