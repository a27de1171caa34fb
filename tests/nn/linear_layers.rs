//! Linear layers with activations as one operation: gradients against differences, and the bits of separate operations.

use selvedge::gemm::{self, HostEpilogue, Product, gemm_host_with};
use selvedge::nn::{
    Activation, FeedForward, FeedForwardOptions, Gelu, GeluTanh, Initializer, Linear, LinearLayer, Module,
    Relu, Sequential, Silu, Tanh, Variable, linear_layers,
};
use selvedge::{DType, Device, Tensor};

use super::differences::check;
use crate::cases::samples;

fn centred(seed: usize, shape: &[usize]) -> Tensor {
    (&samples(seed, shape) - 0.55).unwrap()
}

#[test]
fn gradients_of_linear_layers_are_differences() {
    for (name, activations) in [
        ("none", vec![]),
        ("one", vec![None]),
        ("relu", vec![Some(Activation::Relu)]),
        ("gelu between", vec![Some(Activation::GeluTanh), None]),
        ("silu", vec![Some(Activation::Silu), Some(Activation::Silu)]),
        ("three", vec![Some(Activation::Relu), None, Some(Activation::Gelu)]),
    ] {
        for has_bias in [false, true] {
            let mut inputs = vec![centred(1, &[2, 2, 3])];
            for place in 0..activations.len() {
                inputs.push(centred(2 + place, &[3, 3]));
                if has_bias {
                    inputs.push(centred(7 + place, &[3]));
                }
            }
            check(&format!("{name}, bias {has_bias}"), &inputs, |operands| {
                let step = if has_bias { 2 } else { 1 };
                let layers: Vec<LinearLayer<'_>> = activations
                    .iter()
                    .zip(operands[1..].chunks(step))
                    .map(|(&activation, own)| LinearLayer { weight: &own[0], bias: own.get(1), activation })
                    .collect();
                linear_layers(&operands[0], &layers)
            });
        }
    }
}

/// The bytes of the result and of the gradients of all leaves.
fn bytes(leaves: &[Variable], result: &Variable) -> Vec<Option<Vec<u8>>> {
    result.backward_with(&result.tensor().square().unwrap()).unwrap();
    let gradients = leaves.iter().map(|leaf| leaf.take_grad().map(|gradient| gradient.to_bytes().unwrap()));
    gradients.chain([Some(result.tensor().to_bytes().unwrap())]).collect()
}

#[test]
fn linear_layers_have_the_bits_of_separate_operations_on_the_cpu() {
    let cpu = Device::cpu();
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for activation in [Activation::Relu, Activation::GeluTanh, Activation::Gelu, Activation::Silu] {
            let initializer = Initializer::new(&cpu).with_seed(3).with_dtype(dtype);
            let (first, second) =
                (Linear::new(5, 7, &initializer).unwrap(), Linear::new(7, 4, &initializer).unwrap());
            let x = Variable::with_grad(centred(1, &[6, 5]).cast(dtype).unwrap()).unwrap();
            let leaves: Vec<Variable> =
                [x.clone()].into_iter().chain(first.parameters()).chain(second.parameters()).collect();
            let inner = (x.matmul(first.weight()).unwrap() + first.bias().unwrap()).unwrap();
            let inner = match activation {
                Activation::Relu => inner.relu(),
                Activation::GeluTanh => inner.gelu_tanh(),
                Activation::Gelu => inner.gelu(),
                Activation::Silu => inner.silu(),
            };
            let inner = inner.unwrap();
            let apart = (inner.matmul(second.weight()).unwrap() + second.bias().unwrap()).unwrap();
            let wanted = bytes(&leaves, &apart);
            let model = Sequential::new().with(first);
            let model = match activation {
                Activation::Relu => model.with(Relu),
                Activation::GeluTanh => model.with(GeluTanh),
                Activation::Gelu => model.with(Gelu),
                Activation::Silu => model.with(Silu),
            };
            let model = model.with(second);
            assert_eq!(bytes(&leaves, &model.forward(&x).unwrap()), wanted, "{dtype}, {activation:?}");
        }
    }
}

#[test]
fn only_operands_that_require_a_gradient_get_one() {
    let numbers = |seed| centred(seed, &[3, 3]);
    for wanted in 0..32u32 {
        let operands: Vec<Variable> = (0..5)
            .map(|place| {
                let shape: &[usize] = if place == 2 || place == 4 { &[3] } else { &[3, 3] };
                let tensor = if shape.len() == 1 { centred(place, shape) } else { numbers(place) };
                match wanted >> place & 1 {
                    1 => Variable::with_grad(tensor).unwrap(),
                    _ => Variable::new(tensor),
                }
            })
            .collect();
        let layers = [
            LinearLayer {
                weight: &operands[1],
                bias: Some(&operands[2]),
                activation: Some(Activation::GeluTanh),
            },
            LinearLayer { weight: &operands[3], bias: Some(&operands[4]), activation: None },
        ];
        let result = linear_layers(&operands[0], &layers).unwrap();
        assert_eq!(result.requires_grad(), wanted != 0);
        let apart = operands[0].matmul(&operands[1]).unwrap() + &operands[2];
        let apart = apart.unwrap().gelu_tanh().unwrap().matmul(&operands[3]).unwrap() + &operands[4];
        if wanted != 0 {
            let found = bytes(&operands, &result);
            assert_eq!(found, bytes(&operands, &apart.unwrap()), "{wanted:05b}");
            for (place, gradient) in found[..5].iter().enumerate() {
                assert_eq!(gradient.is_some(), wanted >> place & 1 == 1, "{wanted:05b}: {place}");
            }
        }
    }
}

#[test]
fn a_changed_weight_is_an_error_of_the_backward() {
    let weight = Variable::with_grad(centred(1, &[3, 3])).unwrap();
    let layers = [LinearLayer { weight: &weight, bias: None, activation: Some(Activation::GeluTanh) }; 2];
    let result = linear_layers(&Variable::new(centred(2, &[3, 3])), &layers).unwrap();
    selvedge::nn::no_grad(|| weight.update(|elements| elements.fill(1.0).map(|_| ()))).unwrap();
    let error = result.sum_all().unwrap().backward().unwrap_err().to_string();
    assert!(error.contains("linear") && error.contains("changed in place"), "{error}");
}

#[test]
fn containers_join_linear_layers_with_activations_that_products_have() {
    let initializer = Initializer::new(&Device::cpu()).with_seed(1);
    let linear = |inputs, outputs| Linear::new(inputs, outputs, &initializer).unwrap();
    let x = Variable::new(samples(1, &[2, 3]).cast(DType::F32).unwrap());
    let name = |module: &dyn Module| format!("{:?}", module.forward(&x).unwrap());
    // The operation that made the result.
    let joined = Sequential::new().with(linear(3, 4)).with(Relu).with(linear(4, 2)).with(GeluTanh);
    assert!(name(&joined).ends_with("linear)"), "{}", name(&joined));
    let joined = Sequential::new().with(linear(3, 4)).with(Silu);
    assert!(name(&joined).ends_with("linear)"), "{}", name(&joined));
    let apart = Sequential::new().with(linear(3, 4)).with(Tanh);
    assert!(name(&apart).ends_with("tanh)"), "{}", name(&apart));
    let unfit = Sequential::new().with(linear(3, 4)).with(Relu).with(linear(5, 2));
    let error = unfit.forward(&x).unwrap_err().to_string();
    assert!(error.contains("[2, 4] for a weight of shape [5, 2] in layer 2"), "{error}");
    let forward = FeedForward::new(3, FeedForwardOptions::default(), &initializer).unwrap();
    assert!(name(&forward).ends_with("linear)"), "{}", name(&forward));
}

#[test]
fn activations_of_epilogues_on_the_cpu_are_those_of_operations() {
    let grid: Vec<f64> = (-4000..=4000).map(|step| f64::from(step) / 250.0).collect();
    let x = Tensor::from_vec(grid.clone(), &[grid.len()], &Device::cpu()).unwrap();
    for &activation in gemm::Activation::ALL {
        let wanted = match activation {
            gemm::Activation::Relu => x.relu(),
            gemm::Activation::GeluTanh => x.gelu_tanh(),
            gemm::Activation::Silu => x.silu(),
            other => panic!("no operation for {other:?}"),
        };
        let wanted = wanted.unwrap().to_vec::<f64>().unwrap();
        let product = Product::new(1, grid.len(), 1);
        let single: Vec<f32> = grid.iter().map(|&x| x as f32).collect();
        let (mut doubles, mut singles) = (vec![0.0; grid.len()], vec![0.0f32; grid.len()]);
        let epilogue = HostEpilogue::new().activation(activation);
        gemm_host_with(&product, 1.0, &[1.0], &grid, 0.0, &mut doubles, epilogue).unwrap();
        let epilogue = HostEpilogue::new().activation(activation);
        gemm_host_with(&product, 1.0, &[1.0], &single, 0.0, &mut singles, epilogue).unwrap();
        for (place, &wanted) in wanted.iter().enumerate() {
            let x = grid[place];
            let (double, single) = (doubles[place], f64::from(singles[place]));
            assert!((double - wanted).abs() <= 1e-15 * x.abs(), "{activation:?} of {x}: {double}, {wanted}");
            assert!((single - wanted).abs() <= 5e-7 * x.abs(), "{activation:?} of {x}: {single}, {wanted}");
        }
    }
}
