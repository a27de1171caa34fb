//! Multi-head attention, feed-forward and transformer blocks: values, names, causality, caches, modes and bad input.

use selvedge::nn::{
    AttentionOptions, FeedForward, FeedForwardOptions, Initializer, LayerNorm, Module, MultiHeadAttention,
    MultiHeadAttentionOptions, Relu, TransformerBlock, Variable, WeightDistribution,
    scaled_dot_product_attention,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Result, Tensor};

use crate::cases::samples;
use crate::differences::check;

const WIDTH: usize = 8;

fn initializer() -> Initializer {
    // Large enough that each part of a block matters.
    let weights = WeightDistribution::Normal { deviation: 0.5 };
    Initializer::new(&Device::cpu()).with_dtype(DType::F64).with_seed(5).with_weights(weights)
}

fn options(heads: usize, key_value_heads: usize) -> MultiHeadAttentionOptions {
    MultiHeadAttentionOptions { key_value_heads, is_causal: true, ..MultiHeadAttentionOptions::new(heads) }
}

fn attention(heads: usize, key_value_heads: usize) -> MultiHeadAttention {
    MultiHeadAttention::new(WIDTH, options(heads, key_value_heads), &initializer()).unwrap()
}

fn feed_forward() -> FeedForward {
    FeedForward::new(WIDTH, FeedForwardOptions::default(), &initializer()).unwrap()
}

fn block() -> TransformerBlock {
    TransformerBlock::new(attention(4, 2), feed_forward(), &initializer()).unwrap()
}

fn numbers(variable: &Variable) -> Vec<f64> {
    variable.tensor().to_vec().unwrap()
}

fn input(length: usize) -> Variable {
    Variable::new(samples(1, &[2, length, WIDTH]))
}

fn close(found: &Variable, wanted: &Variable) {
    assert_eq!(found.shape(), wanted.shape());
    for (found, wanted) in numbers(found).iter().zip(numbers(wanted)) {
        assert!((found - wanted).abs() < 1e-12, "{found}, not {wanted}");
    }
}

/// Gives a module other parameters than zeros and ones.
fn shaken(mut module: impl Module) -> impl Module {
    let entries = module.state_dict().into_iter().enumerate();
    let entries = entries.map(|(at, (name, entry))| (name, (samples(at, entry.shape()) - 0.5).unwrap()));
    module.load_state_dict(&entries.collect()).unwrap();
    module
}

/// Checks the gradients of an input and of all parameters.
fn check_module(name: &str, module: impl Module) {
    let mut module = shaken(module);
    let state = module.state_dict();
    let mut inputs = vec![samples(3, &[1, 3, WIDTH])];
    inputs.extend(state.values().cloned());
    let leaf = Variable::with_grad(inputs[0].clone()).unwrap();
    let weights = samples(9, &[1, 3, WIDTH]);
    module.forward(&leaf).unwrap().backward_with(&weights).unwrap();
    let mut gradients = vec![leaf.grad().unwrap()];
    let parameters = module.named_parameters();
    for entry in state.keys() {
        let (_, parameter) = parameters.iter().find(|(name, _)| name == entry).unwrap();
        gradients.push(parameter.grad().unwrap());
    }
    for (place, gradient) in gradients.iter().enumerate() {
        let gradient = gradient.to_vec::<f64>().unwrap();
        // A few elements of each: the operations have complete checks of their own.
        for at in (0..gradient.len()).step_by(gradient.len() / 3 + 1) {
            let mut loss = |by: f64| {
                let mut inputs = inputs.clone();
                let mut numbers = inputs[place].to_vec::<f64>().unwrap();
                numbers[at] += by;
                inputs[place] = Tensor::from_slice(&numbers, inputs[place].shape(), &Device::cpu()).unwrap();
                let entries = state.keys().cloned().zip(inputs[1..].iter().cloned()).collect();
                module.load_state_dict(&entries).unwrap();
                let result = module.forward(&Variable::new(inputs[0].clone())).unwrap().tensor();
                (&result * &weights).unwrap().sum_all().unwrap().item::<f64>().unwrap()
            };
            let difference = (loss(1e-5) - loss(-1e-5)) / 2e-5;
            assert!(
                (gradient[at] - difference).abs() < 1e-7 * (1.0 + difference.abs()),
                "{name}: element {at} of operand {place}: {} instead of {difference}",
                gradient[at]
            );
        }
    }
}

#[test]
fn gradients_of_attention_layers_are_their_differences() {
    check_module("attention", attention(2, 2));
    check_module("grouped queries", attention(4, 2));
    check_module("one key head", attention(4, 1));
    check_module("feed-forward", feed_forward());
    check_module("a block", block());
    // Every element, through the packed projection.
    let layer = shaken(attention(2, 1));
    check("an input", &[samples(3, &[1, 2, WIDTH])], |x| layer.forward(&x[0]));
}

#[test]
fn multi_head_attention_is_its_two_products_around_the_attention_of_each_head() {
    for (heads, key_heads, is_causal) in [(2, 2, false), (4, 2, true), (8, 1, true)] {
        let options = MultiHeadAttentionOptions { is_causal, ..options(heads, key_heads) };
        let mut layer = MultiHeadAttention::new(WIDTH, options, &initializer()).unwrap();
        let packed = WIDTH + 2 * key_heads * (WIDTH / heads);
        let state = layer.state_dict();
        let shapes: Vec<(&str, Vec<usize>)> =
            state.iter().map(|(name, entry)| (name.as_str(), entry.shape().to_vec())).collect();
        let wanted = [
            ("c_attn.bias", vec![packed]),
            ("c_attn.weight", vec![WIDTH, packed]),
            ("c_proj.bias", vec![WIDTH]),
            ("c_proj.weight", vec![WIDTH, WIDTH]),
        ];
        assert_eq!(shapes, wanted);
        let entries = state.into_iter().enumerate();
        let entries = entries.map(|(at, (name, entry))| (name, samples(at, entry.shape())));
        layer.load_state_dict(&entries.collect()).unwrap();

        let x = input(3);
        let state = layer.state_dict();
        let affine = |x: &Tensor, name: &str| {
            let product = x.matmul(&state[&format!("{name}.weight")])?;
            product + &state[&format!("{name}.bias")]
        };
        let projected = affine(&x.tensor(), "c_attn").unwrap();
        let mut start = 0;
        let [q, k, v] = [heads, key_heads, key_heads].map(|heads: usize| {
            let size = heads * (WIDTH / options.heads);
            let part = projected.narrow(2, start, size).unwrap();
            start += size;
            Variable::new(part.unflatten(2, &[heads as isize, -1]).unwrap().transpose(1, 2).unwrap())
        });
        let of_heads = AttentionOptions { is_causal, ..AttentionOptions::default() };
        let result = scaled_dot_product_attention(&q, &k, &v, &of_heads).unwrap().tensor();
        let joined = result.transpose(1, 2).unwrap().flatten(2, 3).unwrap();
        close(&layer.forward(&x).unwrap(), &Variable::new(affine(&joined, "c_proj").unwrap()));
        // The two halves of a forward are the forward.
        let [q, k, v] = layer.project(&x).unwrap();
        close(&layer.attend(&q, &k, &v).unwrap(), &layer.forward(&x).unwrap());
    }
}

#[test]
fn feed_forward_is_two_products_with_the_tanh_form_of_gelu_between_them() {
    let layer = shaken(feed_forward());
    let state = layer.state_dict();
    assert_eq!(state["c_fc.weight"].shape()[..], [WIDTH, 4 * WIDTH]);
    let affine = |x: &Tensor, name: &str| {
        (x.matmul(&state[&format!("{name}.weight")]).unwrap() + &state[&format!("{name}.bias")]).unwrap()
    };
    let x = samples(1, &[2, 3, WIDTH]);
    let wanted = affine(&affine(&x, "c_fc").gelu_tanh().unwrap(), "c_proj");
    close(&layer.forward(&Variable::new(x.clone())).unwrap(), &Variable::new(wanted));

    let options = FeedForwardOptions { hidden: Some(3), has_bias: false };
    let layer = FeedForward::new(WIDTH, options, &initializer()).unwrap().with_activation(Relu);
    let state = layer.state_dict();
    assert_eq!(state.keys().collect::<Vec<_>>(), ["c_fc.weight", "c_proj.weight"]);
    let hidden = x.matmul(&state["c_fc.weight"]).unwrap().relu().unwrap();
    let wanted = hidden.matmul(&state["c_proj.weight"]).unwrap();
    close(&layer.forward(&Variable::new(x)).unwrap(), &Variable::new(wanted));
}

#[test]
fn a_block_adds_attention_and_feed_forward_of_normed_inputs() {
    let block = block();
    let x = input(4);
    let norm = LayerNorm::new(&[WIDTH], &initializer()).unwrap();
    let y = (&x + &attention(4, 2).forward(&norm.forward(&x).unwrap()).unwrap()).unwrap();
    let wanted = (&y + &feed_forward().forward(&norm.forward(&y).unwrap()).unwrap()).unwrap();
    close(&block.forward(&x).unwrap(), &wanted);
    let names: Vec<String> = block.named_parameters().into_iter().map(|(name, _)| name).collect();
    let wanted = [
        "ln_1.weight",
        "ln_1.bias",
        "attn.c_attn.weight",
        "attn.c_attn.bias",
        "attn.c_proj.weight",
        "attn.c_proj.bias",
        "ln_2.weight",
        "ln_2.bias",
        "mlp.c_fc.weight",
        "mlp.c_fc.bias",
        "mlp.c_proj.weight",
        "mlp.c_proj.bias",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn a_future_token_changes_no_earlier_result_of_a_causal_block() {
    let block = shaken(block());
    let x = input(5);
    let before = block.forward(&x).unwrap().tensor();
    let token = samples(6, &[2, 1, WIDTH]);
    for place in 0..5usize {
        let mut changed = x.tensor();
        changed.slice_mut(1, place as isize..place as isize + 1).unwrap().assign(&token).unwrap();
        let after = block.forward(&Variable::new(changed)).unwrap().tensor();
        let part = |x: &Tensor, from: usize, to: usize| {
            x.narrow(1, from, to - from).unwrap().to_vec::<f64>().unwrap()
        };
        assert_eq!(part(&before, 0, place), part(&after, 0, place), "position {place}");
        for later in place..5 {
            assert_ne!(part(&before, later, later + 1), part(&after, later, later + 1), "{place} to {later}");
        }
    }
}

#[test]
fn a_cache_of_keys_and_values_gives_the_results_of_the_whole_sequence() {
    let block = block();
    let x = input(6);
    let wanted = block.forward(&x).unwrap();
    let mut cache: Option<(Variable, Variable)> = None;
    let mut results = Vec::new();
    for (start, length) in [(0, 3), (3, 2), (5, 1)] {
        let part = x.narrow(1, start, length).unwrap();
        let [queries, keys, values] = block.attn().project(&block.ln_1().forward(&part).unwrap()).unwrap();
        let (keys, values) = match &cache {
            None => (keys, values),
            Some((old_keys, old_values)) => (
                Variable::cat(&[old_keys, &keys], 2).unwrap(),
                Variable::cat(&[old_values, &values], 2).unwrap(),
            ),
        };
        let attention = block.attn().attend(&queries, &keys, &values).unwrap();
        results.push(block.after_attention(&part, &attention).unwrap());
        cache = Some((keys, values));
    }
    close(&Variable::cat(&results.iter().collect::<Vec<_>>(), 1).unwrap(), &wanted);
}

#[test]
fn dropout_acts_in_training_alone_and_follows_its_generator() {
    let generator = Generator::new(3);
    let dropped = attention(2, 2).with_dropout(0.5, &generator).unwrap();
    let mut block = TransformerBlock::new(dropped, feed_forward(), &initializer()).unwrap();
    let plain = TransformerBlock::new(attention(2, 2), feed_forward(), &initializer()).unwrap();
    let x = input(4);
    let wanted = numbers(&plain.forward(&x).unwrap());
    let state = generator.state();
    let first = numbers(&block.forward(&x).unwrap());
    assert_ne!(first, wanted);
    assert_ne!(numbers(&block.forward(&x).unwrap()), first);
    generator.set_state(state);
    assert_eq!(numbers(&block.forward(&x).unwrap()), first);
    block.eval();
    assert_eq!(numbers(&block.forward(&x).unwrap()), wanted);
    block.train();
    // All elements of both results are dropped.
    let block = plain.with_dropout(1.0, &generator).unwrap();
    assert_eq!(numbers(&block.forward(&x).unwrap()), numbers(&x));
}

#[test]
fn residual_projections_have_a_distribution_of_their_own() {
    let residual = WeightDistribution::Uniform { bound: 0.0 };
    let initializer = initializer().with_residual_weights(residual);
    let attention = MultiHeadAttention::new(WIDTH, options(2, 2), &initializer).unwrap();
    let mlp = FeedForward::new(WIDTH, FeedForwardOptions::default(), &initializer).unwrap();
    let block = TransformerBlock::new(attention, mlp, &initializer).unwrap();
    for (name, parameter) in block.named_parameters() {
        let is_zero = numbers(&parameter).iter().all(|&x| x == 0.0);
        let wanted = name.ends_with("bias") || name.ends_with("c_proj.weight");
        assert_eq!(is_zero, wanted, "{name}");
    }
    let x = input(2);
    assert_eq!(numbers(&block.forward(&x).unwrap()), numbers(&x), "an identity");
}

#[test]
fn the_state_of_a_block_loads_into_another_block() {
    let (first, mut second) = (shaken(block()), block());
    let x = input(3);
    let wanted = numbers(&first.forward(&x).unwrap());
    assert_ne!(numbers(&second.forward(&x).unwrap()), wanted);
    second.load_state_dict(&first.state_dict()).unwrap();
    assert_eq!(numbers(&second.forward(&x).unwrap()), wanted);
}

#[test]
fn bad_shapes_and_options_name_the_layer_and_both_sides() {
    let (attention, mlp, block) = (attention(4, 2), feed_forward(), block());
    let x = Variable::new(samples(1, &[2, 3, 5]));
    let layers: [(&dyn Module, &str); 3] = [
        (
            &attention,
            "MultiHeadAttention: found an input of shape [2, 3, 5] for a weight of shape [8, 16]; wanted (batch, \
             length, width) with a width of 8",
        ),
        (
            &mlp,
            "FeedForward: found an input of shape [2, 3, 5] for a weight of shape [8, 32]; wanted 8 as the last size",
        ),
        (
            &block,
            "TransformerBlock: found an input of shape [2, 3, 5] for a weight of shape [8, 16]; wanted (batch, length, \
             width) with a width of 8",
        ),
    ];
    for (layer, text) in layers {
        assert_eq!(layer.forward(&x).unwrap_err().to_string(), text);
    }
    let matrix = Variable::new(samples(1, &[3, WIDTH]));
    assert!(attention.forward(&matrix).is_err() && block.forward(&matrix).is_err());
    let of = |heads, key_value_heads| -> Result<()> {
        MultiHeadAttention::new(WIDTH, options(heads, key_value_heads), &initializer()).map(|_| ())
    };
    let narrow = FeedForward::new(4, FeedForwardOptions::default(), &initializer()).unwrap();
    let generator = Generator::new(1);
    let cases = [
        (of(3, 3), "MultiHeadAttention: found 3 heads of a width of 8; wanted heads that divide the width"),
        (of(0, 0), "MultiHeadAttention: found 0 heads of a width of 8; wanted heads that divide the width"),
        (
            of(4, 3),
            "MultiHeadAttention: found 3 key/value heads for 4 heads; wanted key/value heads that divide the heads",
        ),
        (
            attention.with_dropout(2.0, &generator).map(|_| ()),
            "MultiHeadAttention: found a dropout of 2; wanted one from 0 to 1",
        ),
        (
            TransformerBlock::new(self::attention(2, 2), narrow, &initializer()).map(|_| ()),
            "TransformerBlock: found an attention of width 8 and a feed-forward of width 4; wanted equal widths",
        ),
    ];
    for (result, text) in cases {
        assert_eq!(result.unwrap_err().to_string(), text);
    }
}
