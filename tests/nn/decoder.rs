//! Decoders of Hugging Face folders: logits, losses, gradients and continuations against transformers, caches, and bad input.

use selvedge::nn::{
    Decoder, DecoderCache, DecoderConfig, GenerationOptions, Initializer, Module, SamplerOptions, Variable,
    no_grad,
};
use selvedge::{DType, Device, Error, Result, Tensor};

use crate::decoder_cases::{self as cases, NAMES, unpacked};

/// A small model of the Llama form.
pub fn small() -> Result<Decoder> {
    Decoder::new(
        DecoderConfig::from_json(&super::decoder_config::llama(), None)?,
        &Initializer::new(&Device::cpu()).with_seed(1),
    )
}

#[test]
fn decoder_logits_losses_and_gradients_are_those_of_transformers() -> Result<()> {
    let folder = unpacked();
    let dtypes = [DType::F64, DType::F32, DType::F16, DType::BF16];
    for (name, dtype) in NAMES.iter().flat_map(|name| dtypes.map(|dtype| (name, dtype))) {
        cases::logits_losses_and_gradients(folder.path(), name, dtype, &Device::cpu())?;
    }
    Ok(())
}

#[test]
fn decoder_continuations_are_those_of_transformers() -> Result<()> {
    let folder = unpacked();
    for (name, dtype) in NAMES.iter().flat_map(|name| [(name, DType::F64), (name, DType::F32)]) {
        cases::continuations(folder.path(), name, dtype, &Device::cpu())?;
    }
    Ok(())
}

#[test]
fn a_decoder_cache_gives_the_logits_of_a_whole_pass() -> Result<()> {
    let folder = unpacked();
    for name in NAMES {
        cases::cached_logits(folder.path(), name, DType::F64, &Device::cpu())?;
    }
    Ok(())
}

#[test]
fn a_decoder_in_16_bits_is_near_the_one_in_f32() -> Result<()> {
    let text = super::decoder_config::llama();
    for compute in [DType::BF16, DType::F16] {
        let initializer = || Initializer::new(&Device::cpu()).with_seed(1);
        let model = |initializer| Decoder::new(DecoderConfig::from_json(&text, None)?, &initializer);
        let (wide, narrow) = (model(initializer())?, model(initializer().with_compute_dtype(compute))?);
        let ids = Variable::new(Tensor::new([[1i64, 2, 3, 4, 5]], &Device::cpu())?);
        let (wide, narrow) = (wide.forward(&ids)?, narrow.forward(&ids)?);
        assert_eq!(narrow.dtype(), compute);
        let far = (wide.tensor() - narrow.tensor().cast(DType::F32)?)?.abs()?.max_all()?.item::<f32>()?;
        assert!(far < 5e-2 * wide.tensor().abs()?.max_all()?.item::<f32>()?, "{compute}: {far}");
        narrow.cast(DType::F32)?.square()?.sum_all()?.backward()?;
    }
    Ok(())
}

#[test]
fn a_decoder_samples_each_sequence_alike_in_any_batch() -> Result<()> {
    let model = small()?;
    let options = GenerationOptions {
        max_new_ids: 9,
        sampler: SamplerOptions::default(),
        seed: 7,
        ..GenerationOptions::default()
    };
    let both = model.generate(&[vec![1u32, 2, 3, 4], vec![5]], &options)?;
    assert_eq!(both.iter().map(Vec::len).collect::<Vec<_>>(), [9, 9]);
    assert_eq!(model.generate(&[[1u32, 2, 3, 4]], &options)?[0], both[0]);
    let second = GenerationOptions { seed: 8, ..options.clone() };
    assert_eq!(model.generate(&[[5u32]], &second)?[0], both[1]);
    let none = GenerationOptions { max_new_ids: 0, ..options };
    assert_eq!(model.generate(&[[5u32]], &none)?, [Vec::<u32>::new()]);
    Ok(())
}

fn refused<T>(result: Result<T>, parts: &[&str]) {
    let error = result.map(drop).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    let message = error.to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{message} lacks one of {parts:?}");
}

#[test]
fn a_decoder_refuses_ids_padding_and_caches_that_do_not_fit() -> Result<()> {
    let model = small()?;
    let cpu = Device::cpu();
    let ids = Tensor::new([[1i64, 2], [3, 4]], &cpu)?;
    let forward = |ids: &Tensor| model.forward(&Variable::new(ids.clone()));
    refused(forward(&Tensor::new([1i64], &cpu)?), &["ids of shape [1]", "(batch, length)"]);
    refused(forward(&Tensor::new([[1.0f32]], &cpu)?), &["f32", "i64"]);
    refused(forward(&Tensor::zeros(&[1, 0], DType::I64, &cpu)?), &["length of 0"]);
    assert!(forward(&Tensor::new([[11i64]], &cpu)?).is_err());
    refused(model.forward_padded(&ids, &[1]), &["[1]", "2 sequences"]);
    refused(model.forward_padded(&ids, &[0, 2]), &["[0, 2]", "length 2"]);
    let mut cache = DecoderCache::new();
    no_grad(|| model.forward_cached(&ids, &mut cache))?;
    refused(model.forward_cached(&ids.narrow(0, 0, 1)?, &mut cache), &["a batch of 1", "the cache's: 2"]);
    assert_eq!(cache.length(), 2);
    let generate = |prompts: &[Vec<u32>]| model.generate(prompts, &GenerationOptions::default());
    refused(generate(&[]), &["no prompts"]);
    refused(generate(&[vec![1], vec![]]), &["prompt 1 without ids"]);
    refused(generate(&[vec![11]]), &["id 11", "below 11"]);
    Ok(())
}

#[test]
fn learned_positions_end_at_the_context_and_rotary_positions_go_on() -> Result<()> {
    let text = r#"{"model_type": "gpt2", "vocab_size": 11, "n_positions": 4, "n_embd": 8, "n_layer": 1, "n_head": 2}"#;
    let initializer = Initializer::new(&Device::cpu()).with_seed(1);
    let model = Decoder::new(DecoderConfig::from_json(text, None)?, &initializer)?;
    let ids = Tensor::new([[1i64, 2, 3, 4, 5]], &Device::cpu())?;
    refused(model.forward(&Variable::new(ids.clone())), &["5 ids", "1 to 4 positions"]);
    let options = GenerationOptions { max_new_ids: 3, end_ids: Some(vec![]), ..GenerationOptions::default() };
    assert_eq!(model.generate(&[[1u32, 2]], &options)?[0].len(), 3);
    refused(model.generate(&[[1u32, 2, 3]], &options), &["3 ids and 3 new ids", "4 positions"]);
    let long = Tensor::zeros(&[1, 40], DType::I64, &Device::cpu())?;
    assert_eq!(small()?.forward(&Variable::new(long))?.shape()[..], [1, 40, 11]);
    Ok(())
}

#[test]
fn logits_that_are_nan_name_the_step_and_the_first_part() -> Result<()> {
    let options = GenerationOptions { max_new_ids: 4, end_ids: Some(vec![]), ..GenerationOptions::default() };
    for (parameter, part) in [
        ("model.embed_tokens.weight", "in embed_tokens"),
        ("model.layers.1.mlp.down_proj.weight", "in layers.1"),
        ("lm_head.weight", "in norm or lm_head"),
    ] {
        let model = small()?;
        let named = model.named_parameters();
        let (_, variable) = named.iter().find(|(name, _)| name == parameter).expect("the parameter");
        let nan = variable.tensor().full_like(f64::NAN)?;
        no_grad(|| variable.update(|elements| elements.assign(&nan).map(|_| ())))?;
        refused(model.generate(&[[1u32, 2]], &options), &["NaN in step 0", part]);
    }
    Ok(())
}
