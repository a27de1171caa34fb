//! The GPT model: logits, loss and gradients against an independent implementation, the key/value cache, and sampling.

use std::fs;

use selvedge::nn::{
    Activation, Batch, Generation, Gpt, GptConfig, Initializer, KeyValueCache, Module, Sampler,
    SamplerOptions, Variable, no_grad,
};
use selvedge::{DType, Device, Error, Result, Tensor};

use crate::common::repository;

#[path = "../cases/gpt2.rs"]
mod cases;

use cases::distance;

fn small() -> GptConfig {
    GptConfig { layers: 2, width: 16, heads: 2, context: 8, ..GptConfig::tiny(11) }
}

fn model(config: GptConfig) -> Result<Gpt> {
    let mut model = Gpt::new(config, &Initializer::new(&Device::cpu()).with_seed(3))?;
    model.eval();
    Ok(model)
}

/// Each `NAME.json` of tests/data/gpt2 with its weights and results; make_reference.py there wrote them.
#[test]
fn logits_loss_and_gradients_are_those_of_an_independent_implementation() -> Result<()> {
    let folder = repository().join("tests/data/gpt2");
    let mut sets = 0;
    for entry in fs::read_dir(&folder).expect("the folder is in the repository") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            sets += 1;
            cases::logits_loss_and_gradients_are_those_of_the_reference(&path, &Device::cpu())?;
        }
    }
    assert!(sets > 0, "no sets in {}", folder.display());
    Ok(())
}

#[test]
fn the_sizes_of_gpt2_have_their_parameters() {
    let sizes = [
        (GptConfig::gpt2(), 124_439_808),
        (GptConfig::gpt2_medium(), 354_823_168),
        (GptConfig::gpt2_large(), 774_030_080),
        (GptConfig::gpt2_xl(), 1_557_611_200),
    ];
    for (config, wanted) in sizes {
        config.check().unwrap();
        assert_eq!(config.parameter_count(), wanted);
        // Heads of 64 elements, GPT-2's vocabulary and context.
        assert_eq!((config.width / config.heads, config.vocab_size, config.context), (64, 50257, 1024));
    }
}

#[test]
fn a_padded_vocabulary_has_the_loss_bits_and_parameters_of_the_true_one() -> Result<()> {
    let device = Device::cpu();
    for config in [
        GptConfig { vocab_size: 83, ..small() },
        GptConfig { vocab_size: 83, has_tied_head: false, compute_dtype: Some(DType::BF16), ..small() },
    ] {
        let (plain, padded) = (model(config)?, model(GptConfig { vocab_multiple: 32, ..config })?);
        assert_eq!(config.parameter_count(), padded.config().parameter_count());
        let ids = Tensor::new([[1i64, 82, 3, 4, 50], [6, 7, 8, 9, 10]], &device)?;
        let batch = Batch { inputs: ids.narrow(1, 0, 4)?, targets: ids.narrow(1, 1, 4)? };
        let [logits, others] = [&plain, &padded].map(|model| model.forward(&Variable::new(ids.clone())));
        let (logits, others) = (logits?.tensor(), others?.tensor());
        assert_eq!(others.shape()[..], [2, 5, 83]);
        assert_eq!(others.contiguous()?.to_bytes()?, logits.to_bytes()?);
        let [loss, other] = [plain.loss(&batch)?, padded.loss(&batch)?];
        assert_eq!(loss.tensor().to_bytes()?, other.tensor().to_bytes()?);
        loss.backward()?;
        other.backward()?;
        for ((name, parameter), (_, other)) in plain.named_parameters().iter().zip(padded.named_parameters())
        {
            assert_eq!(parameter.shape(), other.shape(), "{name}");
            let [gradient, other] = [parameter.grad(), other.grad()].map(|gradient| gradient.unwrap());
            let far = distance(&gradient, &other)?;
            let most = if config.compute_dtype.is_some() { 1e-2 } else { 1e-5 };
            assert!(far < most, "{name}: {far}");
        }
        // Ids of the padding have no probability.
        let sampler = Sampler::new(SamplerOptions { temperature: 1e6, ..SamplerOptions::default() }, 1)?;
        for id in Generation::new(&padded, &[4, 5], sampler)?.take(60) {
            assert!(id? < 83);
        }
    }
    Ok(())
}

#[test]
fn a_later_id_changes_no_earlier_logits() -> Result<()> {
    let model = model(small())?;
    let logits = |ids: [i64; 6]| -> Result<Vec<f32>> {
        let ids = Variable::new(Tensor::new([ids], &Device::cpu())?);
        model.forward(&ids)?.tensor().narrow(1, 0, 4)?.to_vec::<f32>()
    };
    assert_eq!(logits([1, 2, 3, 4, 5, 6])?, logits([1, 2, 3, 4, 10, 0])?);
    Ok(())
}

#[test]
fn a_cache_gives_the_logits_of_a_whole_pass() -> Result<()> {
    let plain = GptConfig { activation: Activation::Relu, has_bias: false, has_tied_head: false, ..small() };
    let by_the_error_function = GptConfig { activation: Activation::Gelu, ..small() };
    let silu = GptConfig { activation: Activation::Silu, ..small() };
    for config in [small(), plain, by_the_error_function, silu] {
        let model = model(config)?;
        let ids = Tensor::new([[1i64, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1]], &Device::cpu())?;
        no_grad(|| {
            let mut cache = KeyValueCache::new();
            let mut read = 0;
            for count in [3, 1, 2, 1] {
                let logits = model.forward_cached(&ids.narrow(1, read, count)?, &mut cache)?;
                read += count;
                assert_eq!(cache.length(), read);
                let whole = model.forward(&Variable::new(ids.narrow(1, 0, read)?))?;
                let far = distance(&logits.tensor(), &whole.tensor().select(1, -1)?)?;
                assert!(far < 1e-5, "{config:?} after {read} positions: {far}");
            }
            // The embedding's error, as of several ids.
            let outside = Tensor::new([[1i64], [11]], &Device::cpu())?;
            assert!(model.forward_cached(&outside, &mut cache).is_err());
            Ok::<(), Error>(())
        })?;
    }
    Ok(())
}

#[test]
fn generation_follows_from_the_seed_and_goes_past_the_context() -> Result<()> {
    let model = model(small())?;
    let ids = |seed| -> Result<Vec<u32>> {
        Generation::new(&model, &[1, 2], Sampler::new(SamplerOptions::default(), seed)?)?.take(40).collect()
    };
    assert_eq!(ids(1)?, ids(1)?);
    assert_ne!(ids(1)?, ids(2)?);
    assert!(ids(1)?.iter().all(|&id| id < 11));
    // Greedy ids are the largest logits of whole passes while the context lasts.
    let greedy = Sampler::new(SamplerOptions::greedy(), 1)?;
    let mut text = vec![4i64];
    for id in Generation::new(&model, &[4], greedy)?.take(7) {
        let logits =
            model.forward(&Variable::new(Tensor::from_slice(&text, &[1, text.len()], &Device::cpu())?))?;
        let wanted = logits.tensor().select(1, -1)?.argmax(&[1])?.to_vec::<i64>()?;
        assert_eq!(i64::from(id?), wanted[0]);
        text.push(wanted[0]);
    }
    Ok(())
}

#[test]
fn a_generation_of_a_shorter_context_reads_no_more_ids() -> Result<()> {
    let model = model(small())?;
    let most = model.config().context;
    let greedy = |prompt: &[u32], context: usize, count: usize| -> Result<Vec<u32>> {
        let sampler = Sampler::new(SamplerOptions::greedy(), 1)?;
        Generation::new(&model, prompt, sampler)?.with_context(context)?.take(count).collect()
    };
    let sampler = Sampler::new(SamplerOptions::greedy(), 1)?;
    let whole: Vec<u32> =
        Generation::new(&model, &[4, 2], sampler.clone())?.take(20).collect::<Result<_>>()?;
    assert_eq!(greedy(&[4, 2], most, 20)?, whole);
    // Of a prompt that is longer than the context, the last half of the context is read.
    let prompt = [1u32, 9, 3, 7, 2, 8];
    let mut text = prompt.to_vec();
    for count in 1..=3 {
        let found = greedy(&prompt, 4, count)?;
        let read: Vec<i64> = text[4..].iter().map(|&id| i64::from(id)).collect();
        let ids = Tensor::from_slice(&read, &[1, read.len()], &Device::cpu())?;
        let logits = model.forward(&Variable::new(ids))?;
        let wanted = logits.tensor().select(1, -1)?.argmax(&[1])?.to_vec::<i64>()?;
        assert_eq!(i64::from(found[count - 1]), wanted[0], "id {count}");
        text.push(found[count - 1]);
    }
    for context in [0, most + 1] {
        let generation = Generation::new(&model, &[1], sampler.clone())?;
        let message = generation.with_context(context).map(drop).unwrap_err().to_string();
        assert!(message.contains(&format!("a context of {context}")), "{message}");
    }
    Ok(())
}

#[test]
fn a_sampler_draws_among_the_ids_that_its_options_leave() -> Result<()> {
    let logits = [1.0f32, 3.0, 2.0, 3.0, f32::NEG_INFINITY];
    // Zeros of both signs are equal logits, so the lower id is first.
    for logits in [[-0.0, 0.0], [0.0, -0.0]] {
        assert_eq!(Sampler::new(SamplerOptions::greedy(), 1)?.draw(&logits)?, 0);
        let one = SamplerOptions { top_k: Some(1), ..SamplerOptions::default() };
        assert_eq!(Sampler::new(one, 1)?.draw(&logits)?, 0);
    }
    let drawn = |options: SamplerOptions, seed: u64| -> Result<Vec<usize>> {
        let mut sampler = Sampler::new(options, seed)?;
        let mut counts = vec![0; logits.len()];
        for _ in 0..300 {
            counts[sampler.draw(&logits)?] += 1;
        }
        Ok(counts)
    };
    let some = |counts: Vec<usize>| counts.into_iter().map(|count| count > 0).collect::<Vec<_>>();
    let table = [
        (SamplerOptions::default(), [true, true, true, true, false]),
        (
            SamplerOptions { temperature: 0.0, ..SamplerOptions::default() },
            [false, true, false, false, false],
        ),
        (SamplerOptions { top_k: Some(1), ..SamplerOptions::default() }, [false, true, false, false, false]),
        (SamplerOptions { top_k: Some(3), ..SamplerOptions::default() }, [false, true, true, true, false]),
        (SamplerOptions { top_p: 0.5, ..SamplerOptions::default() }, [false, true, false, true, false]),
        (SamplerOptions { top_p: 1e-9, ..SamplerOptions::default() }, [false, true, false, false, false]),
        (
            SamplerOptions { temperature: 1e-3, ..SamplerOptions::default() },
            [false, true, false, true, false],
        ),
    ];
    for (row, (options, wanted)) in table.into_iter().enumerate() {
        assert_eq!(some(drawn(options, 1)?), wanted, "row {row}");
    }
    // Probabilities at temperature 1: 0.054, 0.397, 0.146, 0.397.
    let counts = drawn(SamplerOptions::default(), 7)?;
    assert!(
        (95..145).contains(&counts[1]) && (95..145).contains(&counts[3]) && (25..65).contains(&counts[2]),
        "{counts:?}"
    );
    Ok(())
}

#[test]
fn bad_input_is_an_error() -> Result<()> {
    let device = Device::cpu();
    let invalid = |result: Result<()>, part: &str| match result {
        Err(Error::InvalidArgument { .. }) => {
            let text = result.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(text.contains(part), "{text}: wanted {part}");
        }
        other => panic!("{other:?} in place of an invalid argument about {part}"),
    };
    let mut sampler = Sampler::new(SamplerOptions::default(), 1)?;
    let config = small();
    for (config, part) in [
        (GptConfig { heads: 3, ..config }, "3 heads of a width of 16"),
        (GptConfig { layers: 0, ..config }, "layers = 0"),
        (GptConfig { vocab_multiple: 0, ..config }, "vocab_multiple = 0"),
        (
            GptConfig { vocab_multiple: usize::MAX / 2 + 2, vocab_size: usize::MAX, ..config },
            "padded to a multiple",
        ),
        (GptConfig { dropout: 1.5, ..config }, "dropout = 1.5"),
        (GptConfig { norm_eps: f64::NAN, ..config }, "norm_eps = NaN"),
    ] {
        invalid(Gpt::new(config, &Initializer::new(&device)).map(drop), part);
    }
    invalid(GptConfig::from_json("{\"n_embd\": 3}").map(drop), "missing field");
    let model = model(config)?;
    let forward = |ids: Tensor| model.forward(&Variable::new(ids)).map(drop);
    invalid(forward(Tensor::zeros(&[1, 9], DType::I64, &device)?), "9 ids at position 0");
    invalid(forward(Tensor::zeros(&[1, 0], DType::I64, &device)?), "0 ids");
    invalid(forward(Tensor::zeros(&[4], DType::I64, &device)?), "[4]");
    invalid(forward(Tensor::zeros(&[1, 4], DType::F32, &device)?), "ids of f32");
    let ids = Tensor::new([[1i64, 11]], &device)?;
    assert!(matches!(forward(ids), Err(Error::IndexOutOfRange { .. })));
    invalid(Generation::new(&model, &[], sampler.clone()).map(drop), "an empty prompt");
    invalid(Generation::new(&model, &[11], sampler.clone()).map(drop), "id 11 in the prompt");
    let mut cache = KeyValueCache::new();
    let ids = |batch: usize, length: usize| Tensor::zeros(&[batch, length], DType::I64, &device);
    model.forward_cached(&ids(2, 5)?, &mut cache)?;
    invalid(model.forward_cached(&ids(1, 1)?, &mut cache).map(drop), "a batch of 1");
    invalid(model.forward_cached(&ids(2, 4)?, &mut cache).map(drop), "4 ids at position 5");
    for options in [
        SamplerOptions { temperature: -1.0, ..SamplerOptions::default() },
        SamplerOptions { top_k: Some(0), ..SamplerOptions::default() },
        SamplerOptions { top_p: 0.0, ..SamplerOptions::default() },
    ] {
        invalid(Sampler::new(options, 1).map(drop), "Sampler");
    }
    invalid(sampler.draw(&[1.0, f32::NAN]).map(drop), "NaN as the logit of id 1");
    invalid(sampler.draw(&[]).map(drop), "no logits");
    Ok(())
}
