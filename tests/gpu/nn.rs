//! Variables on a device: layers and trainings are close to the CPU. The GPT model has
//! the numbers of an independent implementation, and `Backend` its worked numbers.

#[path = "../cases/backend.rs"]
mod backend_cases;
#[path = "../cases/batch_invariance.rs"]
mod batch_invariance_cases;
#[path = "../cases/decoder.rs"]
mod decoder_cases;
#[path = "../cases/gpt2.rs"]
mod gpt2_cases;

use selvedge::Error;
use selvedge::nn::{
    Adafactor, Adam, AdamW, BatchNorm1d, Cuda, Decoder, DecoderCache, DecoderConfig, Embedding, FeedForward,
    FeedForwardOptions, FusedFunction, Gelu, GenerationOptions, Initializer, LayerNorm, Linear, Lion, Module,
    MultiHeadAttention, MultiHeadAttentionOptions, Muon, Optimizer, OptimizerPair, Parameters, Reduction,
    RmsNorm, Sequential, Sgd, Silu, Tanh, TrainerOptions, TransformerBlock, Variable, clip_grad_norm,
    mse_loss, no_grad,
};
use selvedge::tensor::{AttentionOptions, Device, Generator, SequenceLengths, Tensor};
use selvedge::types::DType;

use crate::support::compare::{Agreement, Case, assert_agree, check};
use crate::support::gpt::small_trainer;
use crate::support::{Outcome, device_tests};

device_tests! {
    fused_functions_have_the_bits_of_the_cpu, layers_are_close_to_the_cpu, trainings_are_close_to_the_cpu,
    the_operations_of_a_backend_have_their_values, a_gpt_is_that_of_an_independent_implementation,
    decoders_are_those_of_transformers, a_decoding_step_follows_its_model_and_its_cache,
    rows_of_products_and_sequences_have_the_same_bits_beside_any_others, a_generation_goes_on_past_the_reserved_positions,
    the_losses_of_a_gpt_are_close_to_the_cpu => alone(),
}

/// Products in every algorithm that few or many rows have, and decoders whose head dimension has attention that stores no scores.
fn rows_of_products_and_sequences_have_the_same_bits_beside_any_others() -> Outcome {
    let device = Device::cuda(0)?;
    let rows = [1, 2, 7, 16, 64, 65, 200, 700, 30_000];
    let sizes = [
        [768, 2304],
        [768, 768],
        [3072, 768],
        [2048, 2048],
        [2048, 5632],
        [5632, 2048],
        [100, 1001],
        [64, 33],
    ];
    for dtype in [DType::BF16, DType::F16] {
        batch_invariance_cases::products(dtype, &sizes, &rows, &device)?;
    }
    batch_invariance_cases::products(DType::F32, &sizes[..3], &rows, &device)?;
    batch_invariance_cases::layers(DType::BF16, [64, 400], &device)?;
    attention_of_a_sequence_beside_others(&device)?;
    let gpt2 = r#"{"model_type": "gpt2", "vocab_size": 1001, "n_positions": 512, "n_embd": 256, "n_layer": 2, "n_head": 4,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}"#;
    let mistral = r#"{"model_type": "mistral", "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 768, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "hidden_act": "silu", "sliding_window": 150,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-5}"#;
    for (config, dtype) in [(gpt2, DType::BF16), (gpt2, DType::F16), (mistral, DType::BF16)] {
        batch_invariance_cases::logits(config, dtype, 400, &device)?;
    }
    Ok(())
}

/// Compares the attention of a sequence in a batch with that of the sequence alone.
fn attention_of_a_sequence_beside_others(device: &Device) -> Outcome {
    let heads = Generator::new(5).randn(&[64, 4, 400, 64], DType::BF16, device)?;
    let attention = |x: &Tensor, counts: Vec<i64>| {
        let counts = Tensor::from_vec(counts.clone(), &[counts.len()], device)?;
        let lengths = SequenceLengths::Padded { queries: Some(counts.clone()), keys: Some(counts) };
        let options =
            AttentionOptions { is_causal: true, lengths: Some(lengths), ..AttentionOptions::default() };
        x.scaled_dot_product_attention(x, x, &options)
    };
    let all = attention(&heads, (192..256).collect())?;
    let all = all.narrow(0, 5, 1)?.narrow(2, 0, 197)?.contiguous()?;
    let alone = attention(&heads.narrow(0, 5, 1)?.narrow(2, 0, 197)?, vec![197])?;
    assert!(all.to_bytes()? == alone.contiguous()?.to_bytes()?, "attention has other bits alone");
    Ok(())
}

/// The memory of a cache is replaced while ids are on the device.
fn a_generation_goes_on_past_the_reserved_positions() -> Outcome {
    let device = Device::cuda(0)?;
    let config = r#"{"model_type": "llama", "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu",
        "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "eos_token_id": null}"#;
    let initializer = Initializer::new(&device).with_seed(1).with_dtype(DType::BF16);
    let model = Decoder::new(DecoderConfig::from_json(config, None)?, &initializer)?;
    let options = GenerationOptions { max_new_ids: 4300, ..GenerationOptions::default() };
    let found = model.generate(&[[1u32, 2, 3], [4, 5, 6]], &options)?;
    // The logits of each id, by the kernels of a cache that never grows.
    for (prompt, found) in [[1u32, 2, 3], [4, 5, 6]].iter().zip(&found) {
        let mut cache = DecoderCache::new();
        cache.reserve(4400);
        let ids: Vec<i64> = prompt.iter().chain(found).map(|&id| i64::from(id)).collect();
        let first = Tensor::from_vec(ids[..3].to_vec(), &[1, 3], &device)?;
        let mut logits = no_grad(|| model.forward_cached(&first, &mut cache))?.tensor();
        for (at, &id) in ids[3..].iter().enumerate() {
            let most = logits.max_with_indices(-1)?.1.to_vec::<i64>()?[0];
            if most != id {
                // A tie, or two sums that round to neighbours.
                let logits = logits.cast(DType::F32)?.to_vec::<f32>()?;
                let (most, own) = (logits[most as usize], logits[id as usize]);
                assert!(
                    (most - own).abs() <= 0.02 * most.abs(),
                    "id {at}: {id} of {own}, but {most} is larger"
                );
            }
            let next = Tensor::from_vec(vec![id], &[1, 1], &device)?;
            logits = no_grad(|| model.forward_cached(&next, &mut cache))?.tensor();
        }
    }
    Ok(())
}

/// Steps as a graph have the bits of those of a new cache: after the cache grows, is shared and is shortened, after a parameter changes,
/// and with another model.
fn a_decoding_step_follows_its_model_and_its_cache() -> Outcome {
    let device = Device::cuda(0)?;
    let config = r#"{"model_type": "llama", "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu",
        "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "eos_token_id": null}"#;
    let model = |seed| -> selvedge::Result<Decoder> {
        let initializer = Initializer::new(&device).with_seed(seed).with_dtype(DType::BF16);
        Decoder::new(DecoderConfig::from_json(config, None)?, &initializer)
    };
    let mut model_now = model(1)?;
    let ids = |at: usize| Tensor::new([[(at * 7 % 96) as i64], [(at * 11 % 96) as i64]], &device);
    let mut sequence = Tensor::cat(&[&ids(1)?, &ids(2)?, &ids(3)?], 1)?;
    let mut cache = DecoderCache::new();
    let mut shared = None;
    no_grad(|| {
        model_now.forward_cached(&sequence, &mut cache)?;
        for at in 4..100 {
            match at {
                20 => shared = Some(cache.clone()),
                30 => {
                    Parameters::new(&model_now)?;
                    let (_, parameter) = &model_now.named_parameters()[3];
                    let changed = (&parameter.tensor() * -2.0)?;
                    parameter.update(|parameter| parameter.assign(&changed).map(drop))?;
                }
                40 => {
                    cache.truncate(10);
                    sequence = sequence.narrow(1, 0, 10)?;
                }
                50 => model_now = model(2)?,
                _ => {}
            }
            if at == 30 || at == 50 {
                // The keys in the cache are those of the old parameters. Its memory stays.
                cache.clear();
                model_now.forward_cached(&sequence, &mut cache)?;
            }
            let next = ids(at)?;
            let found = model_now.forward_cached(&next, &mut cache)?.tensor();
            sequence = Tensor::cat(&[&sequence, &next], 1)?;
            let whole = model_now.forward(&Variable::new(sequence.clone()))?.tensor().select(1, -1)?;
            let [found, wanted] = [found, whole].map(|logits| logits.cast(DType::F32)?.to_vec::<f32>());
            let (found, wanted) = (found?, wanted?);
            let largest = wanted.iter().fold(0.0f32, |all, logit| all.max(logit.abs()));
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!((found - wanted).abs() <= 0.04 * largest, "step {at}: {found}, wanted {wanted}");
            }
        }
        Ok::<(), Error>(())
    })?;
    // Positions that one cache has read since a clone are not in the other one.
    assert_eq!((shared.map(|cache| cache.length()), cache.length()), (Some(19), 70));
    Ok(())
}

/// The result and the gradients of all operands.
fn with_gradients<const INPUTS: usize>(
    function: &FusedFunction<INPUTS>,
    x: &[Tensor],
) -> selvedge::Result<Vec<Tensor>> {
    let leaves = x.iter().map(|x| Variable::with_grad(x.clone())).collect::<selvedge::Result<Vec<_>>>()?;
    let result = function.run(std::array::from_fn::<_, INPUTS, _>(|at| &leaves[at]))?;
    result.backward_with(&result.tensor())?;
    Ok([result.tensor()].into_iter().chain(leaves.iter().filter_map(Variable::grad)).collect())
}

/// Of elements, a row, and a column.
const FUSED_FUNCTIONS: &[Case] = &[
    ("elementwise", |x| {
        with_gradients(&FusedFunction::new(|[x, row, column]| (x * row).tanh() * column + row.exp()), x)
    }),
    ("softmax of rows", |x| {
        let softmax = FusedFunction::new(|[x, row, column]| {
            let e = (x * column - (x * column).max_group()).exp();
            e / e.sum_group() * row
        });
        with_gradients(&softmax, x)
    }),
    ("layer norm of columns", |x| {
        let norm = FusedFunction::new(|[x, row, column]| {
            let deviation = x - x.mean_group();
            deviation * (deviation.square().mean_group() + 1e-5).rsqrt() * column + row
        });
        with_gradients(&norm.over(0), x)
    }),
    ("values of groups", |x| {
        let spread = FusedFunction::new(|[x, row, column]| {
            (x.max_group() - x.min_group()) * column + (x * row).sum_group()
        });
        with_gradients(&spread, x)
    }),
];

fn fused_functions_have_the_bits_of_the_cpu() -> Outcome {
    let (generator, cpu) = (Generator::new(3), Device::cpu());
    for (rows, columns) in [(7, 5), (200, 1000), (3, 20_000)] {
        for dtype in [DType::F32, DType::BF16, DType::F64] {
            let random = |shape: &[usize]| generator.randn(shape, dtype, &cpu);
            check(
                FUSED_FUNCTIONS,
                &[random(&[rows, columns])?, random(&[columns])?, random(&[rows, 1])?],
                Agreement::Bits,
            )?;
        }
    }
    Ok(())
}

type Layer = fn(&Initializer) -> selvedge::Result<Box<dyn Module>>;

/// Layers of width 32, for an input of shape (4, 17, 32).
const LAYERS: &[(&str, Layer)] = &[
    ("Linear", |of| Ok(Box::new(Linear::new(32, 48, of)?))),
    ("LayerNorm", |of| Ok(Box::new(LayerNorm::new(&[32], of)?))),
    ("RmsNorm", |of| Ok(Box::new(RmsNorm::new(&[32], of)?))),
    ("activations", |_| Ok(Box::new(Sequential::new().with(Gelu).with(Tanh).with(Silu)))),
    ("FeedForward", |of| Ok(Box::new(FeedForward::new(32, FeedForwardOptions::default(), of)?))),
    ("MultiHeadAttention", |of| {
        let options = MultiHeadAttentionOptions { is_causal: true, ..MultiHeadAttentionOptions::new(4) };
        Ok(Box::new(MultiHeadAttention::new(32, options, of)?))
    }),
    ("TransformerBlock", |of| {
        let options = MultiHeadAttentionOptions { key_value_heads: 2, ..MultiHeadAttentionOptions::new(4) };
        let attention = MultiHeadAttention::new(32, options, of)?;
        Ok(Box::new(TransformerBlock::new(
            attention,
            FeedForward::new(32, FeedForwardOptions::default(), of)?,
            of,
        )?))
    }),
    ("BatchNorm1d", |of| Ok(Box::new(BatchNorm1d::new(17, of)?))),
];

/// The output, and the gradients of the input and the parameters.
fn run(layer: Layer, dtype: DType, device: &Device) -> selvedge::Result<Vec<(String, Tensor)>> {
    let layer = layer(&Initializer::new(device).with_dtype(dtype).with_seed(2))?;
    let generator = Generator::new(3);
    let input = Variable::with_grad(generator.randn(&[4, 17, 32], dtype, device)?)?;
    let output = layer.forward(&input)?;
    output.backward_with(&generator.randn(&output.shape(), dtype, device)?)?;
    let mut found = vec![("output".to_owned(), output.tensor())];
    let parameters = layer.named_parameters();
    for (name, variable) in [("input".to_owned(), input)].into_iter().chain(parameters) {
        found.extend(variable.grad().map(|gradient| (name, gradient)));
    }
    Ok(found)
}

fn layers_are_close_to_the_cpu() -> Outcome {
    let (device, cpu) = (Device::cuda(0)?, Device::cpu());
    for (name, layer) in LAYERS {
        for (dtype, tolerance) in [(DType::F32, 1e-3), (DType::F64, 1e-10), (DType::BF16, 5e-2)] {
            let (there, here) = (run(*layer, dtype, &device)?, run(*layer, dtype, &cpu)?);
            assert_eq!(there.len(), here.len(), "{name}");
            for ((part, found), (_, wanted)) in there.iter().zip(&here) {
                let what = format!("{name} of {dtype}, {part}");
                // Roundings to bf16 within a layer concern small elements as well as large ones.
                let largest = wanted.abs()?.max_all()?.cast(DType::F64)?.item::<f64>()?;
                let scale = if dtype == DType::BF16 { largest.max(1.0) } else { 1.0 };
                assert_agree(&what, found, wanted, Agreement::Within(tolerance * scale));
            }
        }
    }
    // A table whose rows are taken several times.
    let table = |device: &Device| -> selvedge::Result<Vec<Tensor>> {
        let layer = Embedding::new(50, 16, &Initializer::new(device).with_seed(4))?;
        let index = Generator::new(5).randint(0, 50, &[8, 100], DType::I64, device)?;
        let output = layer.weight().embedding(&index)?;
        output.square()?.sum_all()?.backward()?;
        Ok([output.tensor()].into_iter().chain(layer.weight().grad()).collect())
    };
    for (found, wanted) in table(&device)?.iter().zip(&table(&cpu)?) {
        assert_agree("Embedding", found, wanted, Agreement::Within(1e-4));
    }
    Ok(())
}

type MakeOptimizer = fn(Vec<Variable>) -> selvedge::Result<Box<dyn Optimizer>>;

/// The steps of `Muon` are in bf16, whose last bits depend on the order of sums.
const OPTIMIZERS: &[(&str, f64, MakeOptimizer)] = &[
    ("Sgd", 1e-8, |of| Ok(Box::new(Sgd::new(of, 0.05)?.with_momentum(0.9)?))),
    ("Adam", 1e-8, |of| Ok(Box::new(Adam::new(of, 1e-2)?))),
    ("AdamW", 1e-8, |of| Ok(Box::new(AdamW::new(of, 1e-2)?.with_weight_decay(0.1)?))),
    ("Lion", 1e-8, |of| Ok(Box::new(Lion::new(of, 1e-3)?.with_weight_decay(0.1)?))),
    ("Adafactor", 1e-8, |of| Ok(Box::new(Adafactor::new(of, 1e-2)?))),
    ("Muon and AdamW", 1e-3, |of| {
        let (matrices, others) = of.into_iter().partition(|parameter| parameter.shape().rank() == 2);
        Ok(Box::new(OptimizerPair::new(Muon::new(matrices, 1e-3)?, AdamW::new(others, 1e-3)?)?))
    }),
];

/// Twenty steps of a small regression: the weights after them.
fn train(optimizer: MakeOptimizer, device: &Device) -> selvedge::Result<Vec<Tensor>> {
    let initializer = Initializer::new(device).with_dtype(DType::F64).with_seed(6);
    let model = Sequential::new().with(Linear::new(8, 16, &initializer)?).with(Tanh).with(Linear::new(
        16,
        3,
        &initializer,
    )?);
    let generator = Generator::new(7);
    let [x, y] = [8, 3].map(|width| generator.randn(&[64, width], DType::F64, device));
    let (x, y) = (Variable::new(x?), Variable::new(y?));
    let mut optimizer = optimizer(model.parameters())?;
    for _ in 0..20 {
        optimizer.zero_grad();
        mse_loss(&model.forward(&x)?, &y, Reduction::Mean)?.backward()?;
        clip_grad_norm(optimizer.parameters(), 0.5)?;
        optimizer.step()?;
    }
    Ok(model.parameters().iter().map(Variable::tensor).collect())
}

fn trainings_are_close_to_the_cpu() -> Outcome {
    let (device, cpu) = (Device::cuda(0)?, Device::cpu());
    for (name, tolerance, optimizer) in OPTIMIZERS {
        for (found, wanted) in train(*optimizer, &device)?.iter().zip(&train(*optimizer, &cpu)?) {
            assert_agree(name, found, wanted, Agreement::Within(*tolerance));
        }
    }
    Ok(())
}

fn the_operations_of_a_backend_have_their_values() -> Outcome {
    // The functions of f64 are within two units in the last place of the CPU's.
    Ok(backend_cases::every_operation_has_its_value(&Cuda::new(0)?, 1e-12)?)
}

/// The set of tests/data/gpt2, which the executable holds.
fn a_gpt_is_that_of_an_independent_implementation() -> Outcome {
    const FILES: [(&str, &[u8]); 3] = [
        ("json", include_bytes!("../data/gpt2/tiny.json")),
        ("safetensors", include_bytes!("../data/gpt2/tiny.safetensors")),
        ("reference.safetensors", include_bytes!("../data/gpt2/tiny.reference.safetensors")),
    ];
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("tiny.json");
    for (extension, bytes) in FILES {
        std::fs::write(path.with_extension(extension), bytes)?;
    }
    Ok(gpt2_cases::logits_loss_and_gradients_are_those_of_the_reference(&path, &Device::cuda(0)?)?)
}

/// The models of tests/data/models, which the executable holds.
fn decoders_are_those_of_transformers() -> Outcome {
    let (folder, device) = (decoder_cases::unpacked(), Device::cuda(0)?);
    for name in decoder_cases::NAMES {
        for dtype in [DType::F64, DType::F32] {
            decoder_cases::logits_losses_and_gradients(folder.path(), name, dtype, &device)?;
            decoder_cases::continuations(folder.path(), name, dtype, &device)?;
        }
        decoder_cases::cached_logits(folder.path(), name, DType::F64, &device)?;
    }
    Ok(())
}

/// Losses of twenty steps of a trainer. Batches and dropout's masks are the same on both; sums have another order, so f32 losses agree
/// to 1e-5 and those of bf16 to two of its roundings.
fn the_losses_of_a_gpt_are_close_to_the_cpu() -> Outcome {
    for (compute_dtype, tolerance) in [(None, 1e-5), (Some(DType::BF16), 2e-2)] {
        let run = |device: &Device| -> selvedge::Result<Vec<f64>> {
            let options = TrainerOptions { steps: 20, batch: 4, ..TrainerOptions::default() };
            let mut trainer = small_trainer(compute_dtype, options, device)?;
            (0..20).map(|_| trainer.step().map(|report| report.loss)).collect()
        };
        let (there, here) = (run(&Device::cuda(0)?)?, run(&Device::cpu())?);
        assert!(here.last() < here.first(), "{here:?}");
        for (step, (found, wanted)) in there.iter().zip(&here).enumerate() {
            let is_close = (found - wanted).abs() <= tolerance * wanted.abs();
            assert!(is_close, "step {step} of {compute_dtype:?}: {found}, on the CPU {wanted}");
        }
    }
    Ok(())
}
