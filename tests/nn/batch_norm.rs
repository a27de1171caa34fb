//! Batch norm: values against formulas, running statistics, gradients against differences, state and bad input.

use selvedge::nn::{BatchNorm1d, BatchNorm2d, Initializer, Module, Sequential, Variable};
use selvedge::{DType, Device, Result, Tensor};

use crate::cases::samples;
use crate::differences::check;

fn initializer() -> Initializer {
    Initializer::new(&Device::cpu()).with_dtype(DType::F64)
}

fn entry(module: &dyn Module, name: &str) -> Vec<f64> {
    module.state_dict()[name].to_vec().unwrap()
}

fn close(found: &[f64], wanted: &[f64]) {
    let is_close = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + b.abs()));
    assert!(found.len() == wanted.len() && is_close, "{found:?}, not {wanted:?}");
}

/// Normalises x of shape (N, C, rest) by channel with these statistics.
fn normalised(x: &[f64], channels: usize, rest: usize, mean: &[f64], variance: &[f64]) -> Vec<f64> {
    let of = |(at, x): (usize, &f64)| {
        let channel = at / rest % channels;
        (x - mean[channel]) / (variance[channel] + 1e-5).sqrt()
    };
    x.iter().enumerate().map(of).collect()
}

#[test]
fn training_uses_the_statistics_of_the_batch_and_evaluation_the_running_ones() {
    let cases: [(Box<dyn Module>, &[usize]); 3] = [
        (Box::new(BatchNorm1d::new(3, &initializer()).unwrap()), &[4, 3]),
        (Box::new(BatchNorm1d::new(3, &initializer()).unwrap()), &[2, 3, 5]),
        (Box::new(BatchNorm2d::new(3, &initializer()).unwrap()), &[2, 3, 2, 2]),
    ];
    for (mut layer, shape) in cases {
        let rest: usize = shape[2..].iter().product();
        let count = (shape[0] * rest) as f64;
        let (mut running_mean, mut running_var) = (vec![0.0; 3], vec![1.0; 3]);
        for step in 1..=2 {
            let x = samples(step, shape);
            let numbers = x.to_vec::<f64>().unwrap();
            let of_channel = |channel: usize| {
                let of = move |(at, x): (usize, &f64)| (at / rest % 3 == channel).then_some(*x);
                numbers.iter().enumerate().filter_map(of)
            };
            let mean: Vec<f64> = (0..3).map(|channel| of_channel(channel).sum::<f64>() / count).collect();
            let variance: Vec<f64> = (0..3)
                .map(|channel| of_channel(channel).map(|x| (x - mean[channel]).powi(2)).sum::<f64>() / count)
                .collect();
            let result = layer.forward(&Variable::new(x)).unwrap().tensor().to_vec::<f64>().unwrap();
            close(&result, &normalised(&numbers, 3, rest, &mean, &variance));
            for channel in 0..3 {
                running_mean[channel] += 0.1 * (mean[channel] - running_mean[channel]);
                let unbiased = variance[channel] * count / (count - 1.0);
                running_var[channel] += 0.1 * (unbiased - running_var[channel]);
            }
            close(&entry(&*layer, "running_mean"), &running_mean);
            close(&entry(&*layer, "running_var"), &running_var);
            assert_eq!(layer.state_dict()["num_batches_tracked"].item::<i64>().unwrap(), step as i64);
        }
        layer.eval();
        let x = samples(5, shape);
        let result = layer.forward(&Variable::new(x.clone())).unwrap().tensor().to_vec::<f64>().unwrap();
        close(&result, &normalised(&x.to_vec::<f64>().unwrap(), 3, rest, &running_mean, &running_var));
        assert_eq!(
            layer.state_dict()["num_batches_tracked"].item::<i64>().unwrap(),
            2,
            "evaluation counts none"
        );
        close(&entry(&*layer, "running_mean"), &running_mean);
    }
}

#[test]
fn an_infinite_running_mean_stays_infinite_as_in_pytorch() {
    for (momentum, wanted) in
        [(0.1, f64::INFINITY), (0.5, f64::INFINITY), (0.9, f64::INFINITY), (1.0, f64::NAN)]
    {
        let mut layer = BatchNorm1d::new(1, &initializer()).unwrap().with_momentum(momentum).unwrap();
        let mut state = layer.state_dict();
        let infinite = Tensor::new([f64::INFINITY], &Device::cpu()).unwrap();
        state.insert("running_mean".to_owned(), infinite);
        layer.load_state_dict(&state).unwrap();
        layer.forward(&Variable::new(samples(1, &[4, 1]))).unwrap();
        let found = entry(&layer, "running_mean")[0];
        assert!(found == wanted || found.is_nan() && wanted.is_nan(), "{found} by a momentum of {momentum}");
        assert!(entry(&layer, "running_var")[0].is_finite());
    }
}

#[test]
fn gradients_of_batch_norm_are_their_differences() {
    for shape in [&[4, 3][..], &[2, 3, 2], &[2, 3, 2, 2]] {
        let parameters = [samples(0, shape), samples(1, &[3]), samples(2, &[3])];
        check(&format!("training of {shape:?}"), &parameters, |x| {
            x[0].batch_norm_training(None, Some(&x[1]), Some(&x[2]), 0.1, 1e-5)
        });
        check("training of the input alone", &parameters[..1], |x| {
            x[0].batch_norm_training(None, None, None, 0.1, 1e-3)
        });
        let (mean, variance) = (samples(3, &[3]), samples(4, &[3]));
        check(&format!("evaluation of {shape:?}"), &parameters, |x| {
            x[0].batch_norm(&mean, &variance, Some(&x[1]), Some(&x[2]), 1e-5)
        });
        check("evaluation of the input alone", &parameters[..1], |x| {
            x[0].batch_norm(&mean, &variance, None, None, 1e-5)
        });
        // The bias alone requires a gradient.
        check("evaluation of the bias", &parameters[2..], |x| {
            Variable::new(samples(0, shape)).batch_norm(&mean, &variance, None, Some(&x[0]), 1e-5)
        });
    }
}

#[test]
fn the_state_of_batch_norm_loads_into_another_layer() {
    let model = || Sequential::new().with(BatchNorm1d::new(2, &initializer()).unwrap());
    let (first, mut second) = (model(), model());
    assert_eq!(first.parameters().len(), 2, "an optimizer gets no buffers");
    let x = Variable::new(samples(1, &[3, 2]));
    first.forward(&x).unwrap();
    let state = first.state_dict();
    let names: Vec<&str> = state.keys().map(String::as_str).collect();
    assert_eq!(names, ["0.bias", "0.num_batches_tracked", "0.running_mean", "0.running_var", "0.weight"]);
    second.load_state_dict(&state).unwrap();
    assert_eq!(second.state_dict()["0.num_batches_tracked"].item::<i64>().unwrap(), 1);
    second.eval();
    let before = second.forward(&x).unwrap().tensor().to_vec::<f64>().unwrap();
    first.forward(&x).unwrap();
    assert_eq!(state["0.num_batches_tracked"].item::<i64>().unwrap(), 1, "a snapshot");
    assert_eq!(second.forward(&x).unwrap().tensor().to_vec::<f64>().unwrap(), before);
    let mut missing = state.clone();
    missing.remove("0.running_var");
    let text = second.load_state_dict(&missing).unwrap_err().to_string();
    assert!(text.contains("'0.running_var' is missing"), "{text}");
}

#[test]
fn batch_norm_of_bad_shapes_names_the_layer_and_both_shapes() {
    let one = BatchNorm1d::new(3, &initializer()).unwrap();
    let two = BatchNorm2d::new(3, &initializer()).unwrap();
    let of = |layer: &dyn Module, shape: &[usize]| -> Result<Variable> {
        layer.forward(&Variable::new(Tensor::zeros(shape, DType::F64, &Device::cpu())?))
    };
    let cases: [(&dyn Module, &[usize], &str); 4] = [
        (
            &one,
            &[2, 4],
            "BatchNorm1d: found an input of shape [2, 4] for a weight of shape [3]; wanted (N, C) or (N, C, L) with the \
             weight's size as C",
        ),
        (
            &one,
            &[2, 3, 4, 4],
            "BatchNorm1d: found an input of shape [2, 3, 4, 4] for a weight of shape [3]; wanted (N, C) or (N, C, L) \
             with the weight's size as C",
        ),
        (
            &two,
            &[2, 3],
            "BatchNorm2d: found an input of shape [2, 3] for a weight of shape [3]; wanted (N, C, H, W) with the \
             weight's size as C",
        ),
        (&one, &[1, 3], "batch_norm: found 1 elements of each channel in shape [1, 3]; wanted at least two"),
    ];
    for (layer, shape, text) in cases {
        assert_eq!(of(layer, shape).unwrap_err().to_string(), text);
    }
    assert_eq!(entry(&one, "running_mean"), [0.0; 3], "a failed forward changes nothing");
}
