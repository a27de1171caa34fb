//! Gradients of gradients: second derivatives against differences of the first, higher orders, penalties, and operations
//! without second derivatives.

use std::sync::Arc;

use selvedge::fuse::Expr;
use selvedge::nn::{
    Activation, FusedFunction, Initializer, LinearLayer, Module, Optimizer, Sgd, Tanh, Variable, checkpoint,
    linear_layers, no_grad,
};
use selvedge::types::Slice;
use selvedge::{Complex, DType, Device, Error, Result, Tensor};

use super::differences::check_second;
use super::fused::softmax;
use super::layers::numbers;
use super::tape::leaf;
use crate::cases::{each_elementwise, samples};

type Case = (&'static str, Vec<Tensor>, fn(&[Variable]) -> Result<Variable>);

#[test]
fn second_derivatives_of_broadcast_elementwise_operations_are_differences() {
    each_elementwise([&[2, 2], &[2], &[2, 1]], |name, inputs, function| match name {
        // The second derivatives of both are 0 without the square.
        "choose" | "copysign" => check_second(name, inputs, |x| function(x)?.square()),
        _ => check_second(name, inputs, function),
    });
}

#[test]
fn second_derivatives_of_other_operations_are_differences() {
    let x = || vec![samples(0, &[2, 3])];
    let products = || vec![samples(0, &[2, 3]), samples(1, &[3, 2])];
    let cases: Vec<Case> = vec![
        ("numbers", x(), |x| ((&x[0] * 3)?.pow(2)? - 1.5)?.pow(3)),
        ("a number on the left", x(), |x| 2.0f64 / (1.5f64 - &x[0])?),
        ("bounds beyond the dtype", x(), |x| x[0].clamp(0.3, 1e300)?.square()),
        ("a constant tensor", x(), |x| (&x[0] * &samples(5, &[4, 1, 1]))?.exp()),
        ("an operand twice", x(), |x| (&x[0] * &x[0])? * &x[0]),
        ("gelu of a product", products(), |x| x[0].matmul(&x[1])?.gelu()),
        ("tanh of products", products(), |x| x[0].matmul(&x[1])?.tanh()?.matmul(&x[0])),
        ("a batched product", vec![samples(0, &[2, 1, 2, 2]), samples(1, &[3, 2, 1])], |x| {
            x[0].matmul(&x[1])?.square()
        }),
        ("a row times a matrix", vec![samples(0, &[3]), samples(1, &[3, 2])], |x| x[0].matmul(&x[1])?.exp()),
        ("a matrix times a column", vec![samples(0, &[2, 3]), samples(1, &[3])], |x| {
            x[0].matmul(&x[1])?.exp()
        }),
        ("sums and means", x(), |x| (x[0].sum(0)? * x[0].mean_all()?)?.square()?.mean_keepdim(-1)),
        ("views", x(), |x| {
            let view = x[0].t()?.reshape(&[2, 3])?.flip(&[1])?.unsqueeze(0)?.permute(&[1, 0, 2])?;
            view.transpose(0, 2)?.squeeze(1)?.expand(&[2, 3, 2])?.exp()
        }),
        ("parts", x(), |x| {
            let part = x[0].narrow(1, 1, 2)?.square()?;
            (part * x[0].select(0, 1)?.slice(0, Slice::from(0..).step(2))?)? * x[0].exp()?.narrow(1, 0, 2)?
        }),
        ("joins", products(), |x| {
            let rows = Variable::stack(&[&x[0], &x[0].square()?, &x[1].t()?], 0)?;
            Variable::cat(&[&rows, &rows.exp()?], 1)?.square()
        }),
        ("casts", vec![samples(0, &[2])], |x| {
            let real = x[0].cast(DType::C128)?;
            (real * Complex::new(0.5f64, 2.0))?.exp()?.abs()?.cast(DType::F64)
        }),
    ];
    cases.into_iter().for_each(|(name, inputs, function)| check_second(name, &inputs, function));
    let block = Arc::new(samples(7, &[3, 3]));
    check_second("a checkpoint", &x(), |x| {
        let block = block.clone();
        checkpoint(move |x| x[0].matmul(&Variable::new((*block).clone()))?.tanh()?.exp(), &[&x[0]])?.square()
    });
}

#[test]
fn second_derivatives_of_linear_layers_are_differences() {
    let inputs: Vec<Tensor> = (0..3)
        .flat_map(|place| [samples(2 + place, &[2, 2]), samples(7 + place, &[2])])
        .map(|x| (x - 0.55).unwrap())
        .collect();
    for activations in [
        vec![None],
        vec![Some(Activation::Gelu), None],
        vec![Some(Activation::Silu), None],
        vec![Some(Activation::Relu), None, Some(Activation::GeluTanh)],
    ] {
        // All operands, and those from a layer on: the weights before it are constants.
        for first in 0..=activations.len() {
            let constants: Vec<Variable> = inputs.iter().cloned().map(Variable::new).collect();
            let mut operands = vec![samples(1, &[2, 2])];
            operands.extend_from_slice(&inputs[..2 * first]);
            check_second(&format!("{activations:?}, {first} layers"), &operands, |x| {
                let all: Vec<&Variable> = x[1..].iter().chain(&constants[2 * first..]).collect();
                let layers: Vec<LinearLayer<'_>> = activations
                    .iter()
                    .zip(all.chunks(2))
                    .map(|(&activation, own)| LinearLayer { weight: own[0], bias: Some(own[1]), activation })
                    .collect();
                linear_layers(&x[0], &layers)?.square()
            });
        }
    }
}

#[test]
fn second_derivatives_of_fused_functions_are_differences() {
    let x = || samples(5, &[2, 3]);
    let functions = [
        ("an elementwise function", FusedFunction::new(|[x, y]| (x * y).tanh() + y.exp() * 2.0)),
        ("softmax of rows", FusedFunction::new(|[x, y]| softmax(x * y))),
        ("softmax of columns", FusedFunction::new(|[x, y]| softmax(x * y)).over(0)),
        (
            "a layer norm",
            FusedFunction::new(|[x, y]| {
                let deviation = x - x.mean_group();
                deviation * (deviation.square().mean_group() + 1e-2).rsqrt() * y
            }),
        ),
        ("a value per group", FusedFunction::new(|[x, y]| (x * y).square().sum_group().sqrt())),
    ];
    for (name, function) in functions {
        for y in [samples(1, &[2, 3]), samples(2, &[3]), samples(3, &[2, 1]), samples(4, &[])] {
            let shape = *y.shape();
            check_second(&format!("{name}, {shape}"), &[x(), y], |x| function.run([&x[0], &x[1]]));
        }
    }
}

#[test]
fn gradients_have_every_order() {
    let (x, mut y) = (leaf(&[1.5, -2.0]), None);
    for order in 0..5 {
        let last = y.map_or_else(|| x.pow(4), Ok).unwrap();
        let expected: Vec<f64> = [1.5f64, -2.0]
            .iter()
            .map(|x| match order {
                0 => x.powi(4),
                1 => 4.0 * x.powi(3),
                2 => 12.0 * x * x,
                3 => 24.0 * x,
                _ => 24.0,
            })
            .collect();
        let found = numbers(&last);
        assert!(
            found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12 * b.abs()),
            "{order}: {found:?}"
        );
        y = last.sum_all().unwrap().gradients(&[&x]).unwrap().pop();
    }
    let exponential = FusedFunction::new(|[x]| (x * 2.0).exp());
    let mut y = exponential.run([&x]).unwrap();
    for _ in 0..3 {
        y = y.sum_all().unwrap().gradients(&[&x]).unwrap().pop().unwrap();
    }
    let expected = [1.5f64, -2.0].map(|x| 8.0 * (2.0 * x).exp());
    assert!(numbers(&y).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12 * b));
}

#[test]
fn gradients_are_of_leaves_and_results_and_zero_if_nothing_depends_on_an_input() {
    let (x, other) = (leaf(&[2.0]), leaf(&[5.0]));
    let square = x.square().unwrap();
    let y = (&square * &x).unwrap();
    let found = y.gradients(&[&square, &x, &other, &y, &x]).unwrap();
    assert_eq!(found.iter().map(|x| numbers(x)[0]).collect::<Vec<_>>(), [2.0, 12.0, 0.0, 1.0, 12.0]);
    // A softmax of which no input is an operand needs no second derivative.
    let y = (other.softmax(0).unwrap() * &x).unwrap().square().unwrap();
    assert_eq!(numbers(&y.gradients(&[&x]).unwrap()[0]), [4.0]);
    // Within no_grad gradients are constants, and every operation has them.
    let y = x.softmax(0).unwrap().log().unwrap();
    let constants = no_grad(|| y.gradients(&[&x])).unwrap();
    assert!(!constants[0].requires_grad());
    assert_eq!(numbers(&constants[0]), [0.0]);
    y.backward().unwrap();
}

#[test]
fn operations_without_second_derivatives_and_bad_arguments_are_errors() {
    let x = leaf(&[1.0, 2.0]);
    x.sum_all().unwrap().backward().unwrap();
    let refused = |result: Result<Vec<Variable>>, text: &str| match result {
        Err(error @ Error::Backward { .. }) => {
            assert!(error.to_string().contains(text), "{error}, not {text}")
        }
        other => panic!("{other:?}, not {text}"),
    };
    let y = x.exp().unwrap().softmax(0).unwrap().square().unwrap().sum_all().unwrap();
    refused(y.gradients(&[&x]), "the backward of softmax: found no rule for second derivatives; wanted");
    refused(x.gradients(&[&x]), "a result of shape [2] without a gradient");
    refused(y.gradients(&[&Variable::new(x.tensor())]), "input 0, which requires no gradient");
    refused(y.gradients_with(&x, &[&x]), "a gradient of f64 of shape [2]");
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [1.0, 1.0]);
    // A value that changed since, and values that a backward has freed.
    let squared = (&x * &x).unwrap().exp().unwrap().sum_all().unwrap();
    no_grad(|| x.update(|x| x.add(1.0).map(|_| ()))).unwrap();
    refused(squared.gradients(&[&x]), "which was changed in place since the operation ran");
    let gradients = x.exp().unwrap().sum_all().unwrap().gradients(&[&x]).unwrap();
    gradients[0].sum_all().unwrap().backward_retain_graph(None).unwrap();
    assert!(x.take_grad().is_some());
    let cubes = x.pow(3).unwrap().sum_all().unwrap();
    cubes.backward().unwrap();
    refused(cubes.gradients(&[&x]), "an earlier backward has freed");
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [12.0, 27.0]);
}

#[test]
fn a_gradient_penalty_trains() {
    // The critic of a WGAN-GP: the norm of its gradient at the points comes to 1.
    let cpu = Device::cpu();
    let initializer = Initializer::new(&cpu).with_seed(1).with_dtype(DType::F64);
    let critic = selvedge::nn::Sequential::new()
        .with(selvedge::nn::Linear::new(2, 8, &initializer).unwrap())
        .with(Tanh)
        .with(selvedge::nn::Linear::new(8, 1, &initializer).unwrap());
    let mut optimizer = Sgd::new(critic.parameters(), 0.1).unwrap();
    let points = Variable::with_grad(samples(3, &[6, 2])).unwrap();
    let mut losses = Vec::new();
    for _ in 0..40 {
        let gradient = critic.forward(&points).unwrap().sum_all().unwrap().gradients(&[&points]).unwrap();
        let norm = gradient[0].square().unwrap().sum(1).unwrap().sqrt().unwrap();
        let penalty = (norm - 1.0).unwrap().square().unwrap().mean_all().unwrap();
        losses.push(penalty.tensor().item::<f64>().unwrap());
        penalty.backward().unwrap();
        optimizer.step().unwrap();
        optimizer.zero_grad();
    }
    assert!(losses[39] < 0.1 * losses[0], "{losses:?}");
}

#[test]
fn second_derivatives_of_functions_of_groups_are_differences() {
    type Pair = for<'g> fn([Expr<'g>; 2]) -> Expr<'g>;
    let pairs: [(&str, Pair); 4] = [
        ("an operand that is only summed", |[x, y]| x * y.sum_group()),
        ("sums of both", |[x, y]| x.sum_group() * y.square().sum_group()),
        ("a mean of a sum", |[x, y]| (x * y).square().sum_group().mean_group().exp()),
        ("a softmax", |[x, y]| {
            let e = (x * y).exp();
            e / e.sum_group()
        }),
    ];
    for (name, function) in pairs {
        for shape in [&[2, 3][..], &[3], &[2, 1], &[]] {
            let function = FusedFunction::new(function);
            let inputs = [samples(0, &[2, 3]), samples(1, shape)];
            check_second(name, &inputs, |x| function.run([&x[0], &x[1]]));
        }
    }
}

#[test]
fn a_second_derivative_of_a_product_of_a_group_is_refused() {
    let x = leaf(&[0.0, 2.0, 3.0]);
    let y = FusedFunction::new(|[x]| x.prod_group()).run([&x]).unwrap();
    let first = y.gradients(&[&x]).unwrap().remove(0);
    assert_eq!(numbers(&first), [6.0, 0.0, 0.0]);
    let error = first.sum_all().unwrap().backward().unwrap_err().to_string();
    assert!(error.contains("a second derivative of prod_group"), "{error}");
}
