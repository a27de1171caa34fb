//! Layers and modules: results against formulas, names, modes and bad input.

use std::collections::BTreeMap;

use selvedge::nn::{
    BatchNorm1d, BatchNorm2d, Dropout, Embedding, FeedForward, FeedForwardOptions, Gelu, GeluTanh,
    Initializer, LayerNorm, Linear, Module, MultiHeadAttention, MultiHeadAttentionOptions, Relu, RmsNorm,
    Sequential, Sigmoid, Silu, Tanh, TransformerBlock, Variable, WeightDistribution, no_grad,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Tensor};

fn initializer() -> Initializer {
    Initializer::new(&Device::cpu()).with_dtype(DType::F64).with_seed(5)
}

fn constant(numbers: &[f64], shape: &[usize]) -> Variable {
    Variable::new(Tensor::from_slice(numbers, shape, &Device::cpu()).unwrap())
}

/// Returns the elements of a variable of f64.
pub fn numbers(variable: &Variable) -> Vec<f64> {
    variable.tensor().to_vec().unwrap()
}

fn entries(list: &[(&str, Tensor)]) -> BTreeMap<String, Tensor> {
    list.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect()
}

#[test]
fn linear_multiplies_the_last_axis_and_adds_the_bias() {
    let mut layer = Linear::new(2, 3, &initializer()).unwrap();
    let drawn = numbers(layer.weight());
    assert!(drawn.iter().all(|w| w.abs() <= 1.0) && drawn.iter().any(|w| w.abs() > 0.1), "{drawn:?}");
    assert_eq!(layer.bias().map(numbers), Some(vec![0.0; 3]));
    let weight = Tensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::cpu()).unwrap();
    let bias = Tensor::new([0.5, 0.0, -0.5], &Device::cpu()).unwrap();
    layer.load_state_dict(&entries(&[("weight", weight), ("bias", bias)])).unwrap();
    let wanted = [9.5, 12.0, 14.5];
    for shape in [&[2][..], &[1, 2], &[1, 1, 2]] {
        let result = layer.forward(&constant(&[1.0, 2.0], shape)).unwrap();
        assert_eq!(numbers(&result), wanted);
        assert_eq!(result.shape()[..], [&shape[..shape.len() - 1], &[3]].concat());
    }
    assert_eq!(layer.forward(&constant(&[], &[0, 4, 2])).unwrap().shape()[..], [0, 4, 3]);
    let x = constant(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[2, 2, 2]);
    layer.forward(&x).unwrap().sum_all().unwrap().backward().unwrap();
    let gradients: Vec<Vec<f64>> =
        layer.parameters().iter().map(|p| p.grad().unwrap().to_vec().unwrap()).collect();
    assert_eq!(gradients, [vec![16.0, 16.0, 16.0, 20.0, 20.0, 20.0], vec![4.0; 3]]);
    let plain = Linear::without_bias(2, 3, &initializer()).unwrap();
    assert_eq!(plain.named_parameters().len(), 1);
}

#[test]
fn linear_has_the_bits_of_a_product_and_an_addition_after_it() {
    let generator = Generator::new(3);
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let initializer = initializer().with_dtype(dtype);
        for (rows, inputs, outputs) in [(1, 128, 384), (5, 33, 7), (9, 4, 1), (130, 70, 150)] {
            let layer = Linear::new(inputs, outputs, &initializer).unwrap();
            let draw = |shape: &[usize]| generator.normal(0.0, 1.0, shape, dtype, &Device::cpu()).unwrap();
            let bias = layer.bias().unwrap();
            let drawn = draw(&[outputs]);
            no_grad(|| bias.update(|elements| elements.assign(&drawn).map(drop))).unwrap();
            let x = Variable::with_grad(draw(&[rows, inputs])).unwrap();
            let weights = draw(&[rows, outputs]);
            let composed = (x.matmul(layer.weight()).unwrap() + bias).unwrap();
            let mut found = Vec::new();
            for result in [layer.forward(&x).unwrap(), composed] {
                result.backward_with(&weights).unwrap();
                let gradients = [&x, layer.weight(), bias].map(|of| of.take_grad().unwrap());
                let all = [result.tensor()].into_iter().chain(gradients);
                found.push(
                    all.map(|x| x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()).collect::<Vec<_>>(),
                );
            }
            assert!(found[0] == found[1], "{dtype}, ({rows}, {inputs}) by {outputs}");
        }
    }
}

#[test]
fn embedding_and_norms_have_the_values_of_their_formulas() {
    let table = Embedding::new(3, 2, &initializer()).unwrap();
    let rows = numbers(table.weight());
    assert!(rows.iter().all(|x| x.abs() < 0.2));
    let tokens = Variable::new(Tensor::new([2i64, 0], &Device::cpu()).unwrap());
    assert_eq!(numbers(&table.forward(&tokens).unwrap()), [rows[4], rows[5], rows[0], rows[1]]);

    let norm = LayerNorm::new(&[2], &initializer()).unwrap().with_eps(0.75).unwrap();
    // The mean is 2 and the variance 1/4.
    assert_eq!(numbers(&norm.forward(&constant(&[1.5, 2.5], &[1, 2])).unwrap()), [-0.5, 0.5]);

    let norm = RmsNorm::new(&[2], &initializer()).unwrap();
    // The mean square is 25, and the eps of f64 does not change it.
    let found = numbers(&norm.forward(&constant(&[1.0, 7.0], &[1, 2])).unwrap());
    assert!((found[0] - 0.2).abs() < 1e-15 && (found[1] - 1.4).abs() < 1e-15, "{found:?}");
    let norm = norm.with_eps(11.0).unwrap();
    assert_eq!(numbers(&norm.forward(&constant(&[1.0, 7.0], &[2])).unwrap())[0], 1.0 / 6.0);
}

#[test]
fn norms_refuse_numbers_that_make_every_result_nan() {
    let initializer = initializer();
    let block = || {
        let attention = MultiHeadAttention::new(2, MultiHeadAttentionOptions::new(1), &initializer).unwrap();
        let mlp = FeedForward::new(2, FeedForwardOptions::default(), &initializer).unwrap();
        TransformerBlock::new(attention, mlp, &initializer).unwrap()
    };
    for eps in [f64::NAN, -1e-5, f64::INFINITY, f64::NEG_INFINITY] {
        let cases = [
            ("LayerNorm", LayerNorm::new(&[2], &initializer).unwrap().with_eps(eps).map(drop)),
            ("RmsNorm", RmsNorm::new(&[2], &initializer).unwrap().with_eps(eps).map(drop)),
            ("BatchNorm1d", BatchNorm1d::new(2, &initializer).unwrap().with_eps(eps).map(drop)),
            ("BatchNorm2d", BatchNorm2d::new(2, &initializer).unwrap().with_eps(eps).map(drop)),
            ("LayerNorm", block().with_eps(eps).map(drop)),
        ];
        for (layer, result) in cases {
            let text = format!("{layer}: found an eps of {eps}; wanted a finite number that is at least 0");
            assert_eq!(result.unwrap_err().to_string(), text);
        }
    }
    for momentum in [f64::NAN, -0.1, 1.5, f64::INFINITY] {
        let cases = [
            ("BatchNorm1d", BatchNorm1d::new(2, &initializer).unwrap().with_momentum(momentum).map(drop)),
            ("BatchNorm2d", BatchNorm2d::new(2, &initializer).unwrap().with_momentum(momentum).map(drop)),
        ];
        for (layer, result) in cases {
            let text = format!("{layer}: found a momentum of {momentum}; wanted one from 0 to 1");
            assert_eq!(result.unwrap_err().to_string(), text);
        }
    }
    // The ends of the ranges are numbers of both.
    LayerNorm::new(&[2], &initializer).unwrap().with_eps(0.0).unwrap();
    BatchNorm1d::new(2, &initializer).unwrap().with_momentum(0.0).unwrap().with_momentum(1.0).unwrap();
}

#[test]
fn activations_are_those_of_tensors() {
    let x = constant(&[-1.5, 0.0, 2.0], &[3]);
    let tensor = x.tensor();
    let cases: [(&dyn Module, Tensor); 6] = [
        (&Relu, tensor.relu().unwrap()),
        (&Gelu, tensor.gelu().unwrap()),
        (&GeluTanh, tensor.gelu_tanh().unwrap()),
        (&Silu, tensor.silu().unwrap()),
        (&Tanh, tensor.tanh().unwrap()),
        (&Sigmoid, tensor.sigmoid().unwrap()),
    ];
    for (layer, wanted) in cases {
        assert_eq!(numbers(&layer.forward(&x).unwrap()), wanted.to_vec::<f64>().unwrap());
    }
}

#[test]
fn dropout_scales_what_it_keeps_and_its_gradient_alike() {
    let generator = Generator::new(11);
    let mut layer = Dropout::new(0.25, &generator).unwrap();
    let x = Variable::with_grad(Tensor::ones(&[4000], DType::F64, &Device::cpu()).unwrap()).unwrap();
    let state = generator.state();
    let result = layer.forward(&x).unwrap();
    let first = numbers(&result);
    let kept = first.iter().filter(|&&y| y == 1.0 / 0.75).count();
    assert_eq!(kept + first.iter().filter(|&&y| y == 0.0).count(), 4000);
    assert!((2890..3110).contains(&kept), "{kept} of 4000 are kept");
    result.sum_all().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), first);
    assert_ne!(numbers(&layer.forward(&x).unwrap()), first, "each call draws anew");
    generator.set_state(state);
    assert_eq!(numbers(&layer.forward(&x).unwrap()), first, "a state gives the same zeros again");
    layer.eval();
    assert_eq!(numbers(&layer.forward(&x).unwrap()), [1.0; 4000]);
    let all = Dropout::new(1.0, &generator).unwrap();
    assert_eq!(numbers(&all.forward(&x).unwrap()), [0.0; 4000]);
    let error = Dropout::new(1.5, &generator).unwrap_err();
    assert_eq!(error.to_string(), "Dropout: found a probability of 1.5; wanted one from 0 to 1");
}

#[test]
fn sequential_passes_modes_on_and_names_parameters_by_position() {
    let (initializer, generator) = (initializer(), Generator::new(1));
    let mut model = Sequential::new()
        .with(Sequential::new().with(Dropout::new(1.0, &generator).unwrap()))
        .with(LayerNorm::new(&[2], &initializer).unwrap())
        .with(Linear::new(2, 1, &initializer).unwrap());
    let names: Vec<String> = model.named_parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["1.weight", "1.bias", "2.weight", "2.bias"]);
    let x = constant(&[-3.0, 3.0], &[1, 2]);
    assert_eq!(numbers(&model.forward(&x).unwrap()), [0.0], "everything is dropped");
    model.eval();
    assert_ne!(numbers(&model.forward(&x).unwrap()), [0.0]);
    model.train();
    assert_eq!(numbers(&model.forward(&x).unwrap()), [0.0]);
    assert_eq!(numbers(&Sequential::new().forward(&x).unwrap()), [-3.0, 3.0]);
}

#[test]
fn shapes_that_do_not_meet_are_reported_with_the_layer_and_both_shapes() {
    let initializer = initializer();
    let model = Sequential::new().with(Tanh).with(Linear::new(3, 4, &initializer).unwrap());
    let norm = LayerNorm::new(&[4], &initializer).unwrap();
    let root = RmsNorm::new(&[3], &initializer).unwrap();
    let x = constant(&[0.0; 4], &[2, 2]);
    let cases: [(&dyn Module, &str); 3] = [
        (
            &root,
            "RmsNorm: found an input of shape [2, 2] for a weight of shape [3]; wanted an input that ends with the \
             weight's sizes",
        ),
        (
            &model,
            "Linear: found an input of shape [2, 2] for a weight of shape [3, 4] in layer 1; wanted 3 as the input's \
             last size",
        ),
        (
            &norm,
            "LayerNorm: found an input of shape [2, 2] for a weight of shape [4]; wanted an input that ends with the \
             weight's sizes",
        ),
    ];
    for (layer, text) in cases {
        assert_eq!(layer.forward(&x).unwrap_err().to_string(), text);
    }
    let linear = Linear::new(3, 4, &initializer).unwrap();
    assert!(linear.forward(&constant(&[1.0], &[])).is_err(), "an input without axes");
    assert!(Linear::new(0, 4, &initializer).is_err());
}

#[test]
fn a_state_dict_is_a_snapshot_that_loads_into_another_module() {
    let mut first = Linear::new(2, 2, &initializer()).unwrap();
    let second = Linear::new(2, 2, &initializer().with_seed(6)).unwrap();
    let before = first.state_dict();
    let old = before["weight"].to_vec::<f64>().unwrap();
    first.load_state_dict(&second.state_dict()).unwrap();
    assert_eq!(numbers(first.weight()), numbers(second.weight()));
    assert_eq!(before["weight"].to_vec::<f64>().unwrap(), old, "a snapshot keeps its elements");
    // Entries of another float dtype are cast.
    let halves = before.iter().map(|(name, entry)| (name.clone(), entry.cast(DType::F32).unwrap())).collect();
    first.load_state_dict(&halves).unwrap();
    let rounded: Vec<f64> = old.iter().map(|&x| f64::from(x as f32)).collect();
    assert_eq!((numbers(first.weight()), first.weight().dtype()), (rounded, DType::F64));
}

#[test]
fn a_state_dict_that_does_not_fit_names_every_entry_and_changes_nothing() {
    let initializer = initializer();
    let mut model = Sequential::new()
        .with(Linear::new(2, 2, &initializer).unwrap())
        .with(LayerNorm::new(&[2], &initializer).unwrap());
    let zeros = |shape: &[usize], dtype| Tensor::zeros(shape, dtype, &Device::cpu()).unwrap();
    let before: Vec<Vec<f64>> = model.parameters().iter().map(numbers).collect();
    let bad = entries(&[
        ("0.weight", zeros(&[2, 3], DType::F64)),
        ("0.bias", zeros(&[2], DType::F64)),
        ("1.bias", zeros(&[2], DType::I32)),
        ("1.gamma", zeros(&[2], DType::F64)),
        ("2.weight", zeros(&[], DType::F64)),
    ]);
    let text = model.load_state_dict(&bad).unwrap_err().to_string();
    let wanted = "load_state_dict: found '0.weight' has shape [2, 3] in place of [2, 2], '1.weight' is missing, \
                  '1.bias' has dtype i32 in place of f64, '1.gamma' is extra, '2.weight' is extra; wanted the \
                  names and shapes of the module's own state_dict";
    assert_eq!(text, wanted);
    assert_eq!(model.parameters().iter().map(numbers).collect::<Vec<_>>(), before);
}

#[test]
fn weights_have_the_deviation_and_the_bound_of_their_distribution() {
    let (inputs, outputs) = (200, 100);
    let root = 3f64.sqrt();
    // The deviation, and the bound of a uniform distribution.
    let cases = [
        (WeightDistribution::FanIn, 0.1 / root, Some(0.1)),
        (WeightDistribution::Uniform { bound: 0.3 }, 0.3 / root, Some(0.3)),
        (WeightDistribution::Normal { deviation: 0.02 }, 0.02, None),
        (WeightDistribution::XavierUniform { gain: 1.0 }, (2.0f64 / 300.0).sqrt(), Some(0.02f64.sqrt())),
        (WeightDistribution::XavierNormal { gain: 2.0 }, 2.0 * (2.0f64 / 300.0).sqrt(), None),
        (WeightDistribution::KaimingUniform { gain: 2f64.sqrt() }, 0.1, Some(0.1 * root)),
        (WeightDistribution::KaimingNormal { gain: 2f64.sqrt() }, 0.1, None),
    ];
    for (distribution, deviation, bound) in cases {
        let initializer = initializer().with_weights(distribution);
        let drawn = numbers(Linear::new(inputs, outputs, &initializer).unwrap().weight());
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let found = (drawn.iter().map(|x| x * x).sum::<f64>() / drawn.len() as f64).sqrt();
        assert!(mean.abs() < 0.03 * deviation, "{distribution:?}: a mean of {mean}");
        assert!((found / deviation - 1.0).abs() < 0.03, "{distribution:?}: a deviation of {found}");
        let largest = drawn.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        match bound {
            Some(bound) => assert!(largest <= bound && largest > 0.99 * bound, "{distribution:?}: {largest}"),
            None => assert!(largest > 3.0 * deviation, "{distribution:?}: {largest}"),
        }
        // A residual's weights have the same distribution unless they are given another.
        let residual = initializer.with_seed(5).for_residual();
        assert_eq!(numbers(&residual.weight(inputs, outputs).unwrap()), drawn);
    }
}
