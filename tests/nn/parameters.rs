//! Parameters in one buffer: values, addresses, versions, ties and optimizers, against the same model without a buffer.

use selvedge::nn::{
    Adafactor, Adam, AdamW, Embedding, Initializer, LayerNorm, Linear, Lion, Module, Optimizer, Parameters,
    Reduction, Sequential, Sgd, Variable, cross_entropy, mse_loss,
};
use selvedge::{DType, Device, Result, Tensor};

fn cpu() -> Device {
    Device::cpu()
}

fn model(dtype: DType) -> Sequential {
    let initializer = Initializer::new(&cpu()).with_seed(3).with_dtype(dtype);
    Sequential::new()
        .with(Linear::new(3, 5, &initializer).unwrap())
        .with(LayerNorm::new(&[5], &initializer).unwrap())
        .with(Linear::new(5, 2, &initializer).unwrap())
}

fn batch(step: usize, dtype: DType) -> (Variable, Variable) {
    let numbers = |count: usize| (0..count).map(|at| ((at * 7 + step * 5) % 11) as f64 / 4.0 - 1.0).collect();
    let tensor = |count: usize, shape: &[usize]| {
        Variable::new(Tensor::from_vec(numbers(count), shape, &cpu()).unwrap().cast(dtype).unwrap())
    };
    (tensor(12, &[4, 3]), tensor(8, &[4, 2]))
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    tensor.to_bytes().unwrap()
}

fn state(model: &dyn Module) -> Vec<Vec<u8>> {
    model.state_dict().values().map(bytes).collect()
}

type Create = fn(Vec<Variable>) -> Result<Box<dyn Optimizer>>;

const OPTIMIZERS: [Create; 8] = [
    |list| Ok(Box::new(Sgd::new(list, 0.1)?.with_weight_decay(0.1)?)),
    |list| Ok(Box::new(Sgd::new(list, 0.1)?.with_momentum(0.9)?)),
    |list| Ok(Box::new(Adam::new(list, 0.1)?.with_weight_decay(0.1)?)),
    |list| Ok(Box::new(AdamW::new(list, 0.1)?)),
    |list| Ok(Box::new(AdamW::new(list, 0.1)?.with_weight_decay(0.5)?.with_min_decay_rank(2))),
    |list| Ok(Box::new(Sgd::new(list, 0.1)?.with_momentum(0.9)?.with_nesterov(true)?)),
    |list| Ok(Box::new(Lion::new(list, 0.1)?.with_min_decay_rank(2))),
    |list| Ok(Box::new(Adafactor::new(list, 0.1)?.with_weight_decay(0.1)?)),
];

fn backward(model: &dyn Module, step: usize, dtype: DType) {
    let (x, y) = batch(step, dtype);
    mse_loss(&model.forward(&x).unwrap(), &y, Reduction::Mean).unwrap().backward().unwrap();
}

#[test]
fn steps_on_a_buffer_have_the_bits_of_steps_on_each_parameter_and_stay_at_their_addresses() {
    for (create, dtype) in
        OPTIMIZERS.into_iter().flat_map(|create| [DType::F32, DType::BF16].map(|to| (create, to)))
    {
        let (apart, together) = (model(dtype), model(dtype));
        let parameters = Parameters::new(&together).unwrap();
        assert_eq!(state(&apart), state(&together), "the move changes no value");
        let mut optimizers = [create(apart.parameters()).unwrap(), create(parameters.variables()).unwrap()];
        let addresses = || -> Vec<usize> {
            let address = |tensor: &Tensor| match tensor.dtype() {
                DType::F32 => tensor.as_slice::<f32>().unwrap().as_ptr() as usize,
                _ => tensor.as_slice::<half::bf16>().unwrap().as_ptr() as usize,
            };
            let views = together.parameters();
            views
                .iter()
                .map(|parameter| address(&parameter.tensor()))
                .chain(parameters.gradient_buffers().iter().map(address))
                .collect()
        };
        let before = addresses();
        for step in 0..4 {
            for (model, optimizer) in [&apart, &together].into_iter().zip(&mut optimizers) {
                optimizer.zero_grad();
                // Gradients of two batches add up.
                backward(model, step, dtype);
                backward(model, step + 9, dtype);
                optimizer.step().unwrap();
            }
            assert_eq!(state(&apart), state(&together), "step {step}");
        }
        assert_eq!(addresses(), before);
        let saved = optimizers.each_ref().map(|optimizer| optimizer.state_dict().unwrap());
        let saved = saved.map(|entries| {
            entries.into_iter().map(|(name, entry)| (name, bytes(&entry))).collect::<Vec<_>>()
        });
        assert_eq!(saved[0], saved[1], "the state has one format");
    }
}

#[test]
fn a_loaded_state_continues_in_place_with_the_same_bits() {
    let run = |is_loaded: bool| {
        let mut model = model(DType::F32);
        let parameters = Parameters::new(&model).unwrap();
        let mut optimizer = AdamW::new(parameters.variables(), 0.1).unwrap();
        for step in 0..4 {
            if is_loaded && step == 2 {
                let (values, states) = (model.state_dict(), optimizer.state_dict().unwrap());
                backward(&model, 7, DType::F32);
                optimizer.step().unwrap();
                model.load_state_dict(&values).unwrap();
                optimizer.load_state_dict(&states).unwrap();
            }
            parameters.zero_grad();
            backward(&model, step, DType::F32);
            optimizer.step().unwrap();
        }
        state(&model)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn parameters_without_a_gradient_keep_their_value_and_their_steps() {
    for create in OPTIMIZERS {
        let (apart, together) = (model(DType::F32), model(DType::F32));
        let parameters = Parameters::new(&together).unwrap();
        let mut optimizers = [create(apart.parameters()).unwrap(), create(parameters.variables()).unwrap()];
        for step in 0..3 {
            for (model, optimizer) in [&apart, &together].into_iter().zip(&mut optimizers) {
                optimizer.zero_grad();
                backward(model, step, DType::F32);
                if let (1, Some(parameter)) = (step, model.parameters().get(2)) {
                    parameter.zero_grad();
                }
                optimizer.step().unwrap();
            }
            assert_eq!(state(&apart), state(&together), "step {step}");
        }
    }
}

#[test]
fn a_minimal_rank_of_two_leaves_biases_and_norms_without_decay() {
    let model = model(DType::F32);
    let parameters = Parameters::new(&model).unwrap();
    let mut optimizer =
        Sgd::new(parameters.variables(), 0.5).unwrap().with_weight_decay(1.0).unwrap().with_min_decay_rank(2);
    let before = model.state_dict();
    for parameter in model.parameters() {
        parameter.backward_with(&parameter.tensor().zeros_like().unwrap()).unwrap();
    }
    optimizer.step().unwrap();
    for (name, after) in model.state_dict() {
        let factor = if after.rank() == 2 { 0.5 } else { 1.0 };
        assert_eq!(bytes(&(&before[&name] * factor).unwrap()), bytes(&after), "{name}");
    }
}

#[test]
fn clipping_a_buffer_scales_by_the_norm_of_all_its_gradients() {
    let model = model(DType::F32);
    let parameters = Parameters::new(&model).unwrap();
    assert_eq!(parameters.clip_grad_norm(1.0).unwrap().item::<f32>().unwrap(), 0.0);
    for parameter in model.parameters() {
        parameter.backward_with(&parameter.tensor().ones_like().unwrap()).unwrap();
    }
    let count: usize = model.parameters().iter().map(|parameter| parameter.tensor().count()).sum();
    let norm = parameters.clip_grad_norm(0.5).unwrap().item::<f32>().unwrap();
    assert_eq!(norm, (count as f32).sqrt());
    for parameter in model.parameters() {
        let gradient = parameter.grad().unwrap().to_vec::<f32>().unwrap();
        assert!(gradient.iter().all(|number| (number - 0.5 / norm).abs() < 1e-6), "{gradient:?}");
    }
}

/// A table that is also the matrix of the output.
struct Tied(Embedding);

impl Module for Tied {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        self.0.forward(input)?.matmul(&self.0.weight().t()?)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        ["wte.weight", "lm_head.weight"].map(|name| (name.to_owned(), self.0.weight().clone())).to_vec()
    }
}

#[test]
fn a_tied_weight_counts_once() {
    let models =
        [(); 2].map(|()| Tied(Embedding::new(6, 4, &Initializer::new(&cpu()).with_seed(5)).unwrap()));
    let parameters = Parameters::new(&models[1]).unwrap();
    assert_eq!(parameters.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["wte.weight"]);
    assert_eq!(parameters.buffers()[0].count(), 32, "24 elements and padding");
    let targets = Tensor::new([1i64, 2, 3], &cpu()).unwrap();
    let tokens = Variable::new(Tensor::new([0i64, 1, 0], &cpu()).unwrap());
    for model in &models {
        let mut optimizer = AdamW::new(model.parameters(), 0.1).unwrap();
        for _ in 0..3 {
            optimizer.zero_grad();
            let loss = cross_entropy(&model.forward(&tokens).unwrap(), &targets, Default::default());
            loss.unwrap().backward().unwrap();
            optimizer.step().unwrap();
        }
    }
    assert_eq!(state(&models[0]), state(&models[1]));
}

#[test]
fn a_backward_through_an_older_version_names_the_parameter() {
    let initializer = Initializer::new(&cpu());
    let model = Sequential::new().with(Linear::new(3, 2, &initializer).unwrap());
    let parameters = Parameters::new(&model).unwrap();
    let mut optimizer = Sgd::new(parameters.variables(), 0.1).unwrap();
    let x = Variable::with_grad(batch(0, DType::F32).0.tensor()).unwrap();
    let mut losses = [(); 2].map(|()| model.forward(&x).unwrap().sum_all().unwrap()).into_iter();
    losses.next().unwrap().backward().unwrap();
    optimizer.step().unwrap();
    let text = losses.next().unwrap().backward().unwrap_err().to_string();
    assert!(text.contains("the parameter '0.weight' at version 1, which was changed in place"), "{text}");
}

#[test]
fn a_write_of_shared_parameters_and_a_second_move_are_refused() {
    let mut model = model(DType::F32);
    let parameters = Parameters::new(&model).unwrap();
    let text = Parameters::new(&model).unwrap_err().to_string();
    assert!(
        text.starts_with("Parameters: found parameter '0.weight', which is in a buffer already"),
        "{text}"
    );
    let mut optimizer = AdamW::new(parameters.variables(), 0.1).unwrap();
    backward(&model, 0, DType::F32);
    let values = model.state_dict();
    let held = model.parameters()[0].tensor();
    let text = optimizer.step().unwrap_err().to_string();
    let wanted = "update: found parameters '0.weight' to '2.bias', whose storage another tensor shares";
    assert!(text.starts_with(wanted), "{text}");
    let text = model.load_state_dict(&values).unwrap_err().to_string();
    assert!(
        text.starts_with("update: found parameter '0.weight', whose storage another tensor shares"),
        "{text}"
    );
    assert_eq!(bytes(&held), bytes(&values["0.weight"]), "nothing has changed");
    drop(held);
    optimizer.step().unwrap();
    assert_eq!(
        optimizer.state_dict().unwrap()["0.step"].item::<i64>().unwrap(),
        1,
        "the failed step does not count"
    );
    assert_ne!(
        bytes(&model.parameters()[0].tensor()),
        bytes(&values["0.weight"]),
        "the saved values are a copy"
    );
    let constant = Sequential::new().with(Frozen(Variable::new(values["0.bias"].clone())));
    let text = Parameters::new(&constant).unwrap_err().to_string();
    let wanted = "Parameters: found Variable(f32 of [5], constant) as parameter '0.scale'; wanted a leaf";
    assert!(text.starts_with(wanted), "{text}");
}

struct Frozen(Variable);

impl Module for Frozen {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        input * &self.0
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        vec![("scale".to_owned(), self.0.clone())]
    }
}
