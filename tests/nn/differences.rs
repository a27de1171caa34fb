//! Gradients of a function of variables, compared with central differences.

use selvedge::nn::{Variable, no_grad};
use selvedge::{DType, Device, Result, Tensor};

use crate::cases::samples;

const H: f64 = 1e-5;

const TOLERANCE: f64 = 1e-7;

/// Compares every element of `found`, a gradient of `function` with respect to operand `place`, with a difference.
fn assert_differences(
    name: &str,
    found: &[f64],
    operands: &[Tensor],
    place: usize,
    function: impl Fn(&[Tensor]) -> f64,
) {
    let numbers = operands[place].to_vec::<f64>().unwrap();
    for at in 0..numbers.len() {
        let moved = |by: f64| {
            let mut numbers = numbers.clone();
            numbers[at] += by;
            let mut operands = operands.to_vec();
            operands[place] = Tensor::from_slice(&numbers, operands[place].shape(), &Device::cpu()).unwrap();
            function(&operands)
        };
        let difference = (moved(H) - moved(-H)) / (2.0 * H);
        assert!(
            (found[at] - difference).abs() <= TOLERANCE * (1.0 + difference.abs()),
            "{name}: element {at} of operand {place}: the gradient is {}, the difference {difference}",
            found[at]
        );
    }
}

/// Compares the gradients of Σ w f(inputs), for fixed weights w, with differences. All inputs are f64.
pub fn check(name: &str, inputs: &[Tensor], function: impl Fn(&[Variable]) -> Result<Variable>) {
    let run = |inputs: &[Tensor]| function(&inputs.iter().cloned().map(Variable::new).collect::<Vec<_>>());
    let result = run(inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
    let weights = samples(9, &result.shape()).cast(result.dtype()).unwrap();
    let leaves: Vec<Variable> = inputs.iter().map(|x| Variable::with_grad(x.clone()).unwrap()).collect();
    let output = function(&leaves).unwrap();
    assert!(output.requires_grad(), "{name} is recorded");
    output.backward_with(&weights).unwrap_or_else(|error| panic!("{name}: {error}"));
    let loss = |inputs: &[Tensor]| {
        let output = no_grad(|| run(inputs)).unwrap().tensor().cast(DType::F64).unwrap();
        let product = (&output * &weights.cast(DType::F64).unwrap()).unwrap();
        product.sum_all().unwrap().item::<f64>().unwrap()
    };
    for (place, leaf) in leaves.iter().enumerate() {
        let gradient = leaf.grad().unwrap_or_else(|| panic!("{name} has a gradient of operand {place}"));
        assert_eq!(gradient.shape(), inputs[place].shape(), "{name}: operand {place}");
        assert_eq!(gradient.dtype(), DType::F64, "{name}: operand {place}");
        assert_differences(name, &gradient.to_vec::<f64>().unwrap(), inputs, place, loss);
    }
}

/// Compares the gradients of Σ v · ∂(Σ w f)/∂inputs, for fixed v, with differences of first gradients; and those with respect to
/// w. All inputs are f64.
pub fn check_second(name: &str, inputs: &[Tensor], function: impl Fn(&[Variable]) -> Result<Variable>) {
    let fail = |error: selvedge::Error| -> ! { panic!("{name}: {error}") };
    let leaves = |inputs: &[Tensor]| -> Vec<Variable> {
        inputs.iter().map(|x| Variable::with_grad(x.clone()).unwrap()).collect()
    };
    let own = leaves(inputs);
    let output = function(&own).unwrap_or_else(|error| fail(error));
    let weights = samples(9, &output.shape());
    let directions: Vec<Tensor> =
        inputs.iter().enumerate().map(|(place, x)| samples(20 + place, x.shape())).collect();
    // The first gradients' component along the directions, by a backward without second rules.
    let first = |inputs: &[Tensor], weights: &Tensor| -> f64 {
        let leaves = leaves(inputs);
        function(&leaves).unwrap().backward_with(weights).unwrap();
        let parts = leaves.iter().zip(&directions).filter_map(|(leaf, direction)| {
            let product = (&leaf.grad()? * direction).unwrap();
            Some(product.sum_all().unwrap().item::<f64>().unwrap())
        });
        parts.sum()
    };

    let weight_leaf = Variable::with_grad(weights.clone()).unwrap();
    let gradients = output.gradients_with(&weight_leaf, &own.iter().collect::<Vec<_>>());
    let gradients = gradients.unwrap_or_else(|error| fail(error));
    assert!(own.iter().all(|leaf| leaf.grad().is_none()), "{name}: leaves have no gradients");
    let mut component = Variable::new(Tensor::zeros(&[], DType::F64, &Device::cpu()).unwrap());
    for ((gradient, direction), input) in gradients.iter().zip(&directions).zip(inputs) {
        assert_eq!(gradient.shape(), *input.shape(), "{name}");
        component = (component + (gradient * direction).unwrap().sum_all().unwrap()).unwrap();
    }
    let value = component.tensor().item::<f64>().unwrap();
    let expected = first(inputs, &weights);
    assert!((value - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{name}: {value}, not {expected}");
    component.backward().unwrap_or_else(|error| fail(error));

    let of_first = format!("the first gradients of {name}");
    let mut operands = inputs.to_vec();
    operands.push(weights);
    for (place, leaf) in own.iter().chain([&weight_leaf]).enumerate() {
        let count = operands[place].count();
        let second = leaf.grad().map_or_else(|| vec![0.0; count], |x| x.to_vec::<f64>().unwrap());
        assert_differences(&of_first, &second, &operands, place, |operands| {
            first(&operands[..inputs.len()], &operands[inputs.len()])
        });
    }
}
