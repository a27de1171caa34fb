//! Decoders of Hugging Face folders: logits, losses, gradients and continuations against transformers, caches, and bad input.

use selvedge::nn::{
    Decoder, DecoderCache, DecoderConfig, DecoderGeneration, DecoderOptions, GenerationOptions, Initializer,
    Module, SamplerOptions, Variable, no_grad,
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
    // Single ids in f32 are loops over slices, others operations on tensors.
    for (name, dtype) in NAMES.iter().flat_map(|name| [(name, DType::F64), (name, DType::F32)]) {
        cases::cached_logits(folder.path(), name, dtype, &Device::cpu())?;
    }
    Ok(())
}

/// Operations on tensors do not have this property: their products choose an algorithm by the batch.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_step_on_the_cpu_has_the_same_bits_in_each_batch_of_up_to_eight() -> Result<()> {
    if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
        return Ok(());
    }
    let gpt2 = r#"{"model_type": "gpt2", "vocab_size": 70, "n_positions": 40, "n_embd": 512, "n_layer": 2, "n_head": 8}"#;
    let llama = r#"{"model_type": "llama", "vocab_size": 70, "hidden_size": 64, "intermediate_size": 90, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 40, "rms_norm_eps": 1e-5}"#;
    for text in [gpt2, llama] {
        let initializer = Initializer::new(&Device::cpu()).with_seed(1);
        let model = Decoder::new(DecoderConfig::from_json(text, None)?, &initializer)?;
        let bits = |rows: std::ops::Range<i64>| -> Result<Vec<Vec<u32>>> {
            let mut cache = DecoderCache::new();
            let mut found = vec![Vec::new(); rows.clone().count()];
            for step in 0..20 {
                let ids: Vec<i64> = rows.clone().map(|row| (row * 31 + step * 17) % 70).collect();
                let ids = Tensor::from_vec(ids, &[found.len(), 1], &Device::cpu())?;
                let logits = no_grad(|| model.forward_cached(&ids, &mut cache))?.tensor().to_vec::<f32>()?;
                for (found, logits) in found.iter_mut().zip(logits.chunks_exact(70)) {
                    found.extend(logits.iter().map(|logit| logit.to_bits()));
                }
            }
            Ok(found)
        };
        let all = bits(0..8)?;
        assert_eq!(bits(0..3)?, all[..3]);
        for row in 0..8 {
            assert!(bits(row..row + 1)?[0] == all[row as usize], "sequence {row} alone");
        }
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

#[test]
fn log_probabilities_are_those_of_transformers() -> Result<()> {
    let folder = unpacked();
    let folder = folder.path().join("llama2");
    let text = std::fs::read_to_string(folder.join("reference.json")).expect("a reference");
    let reference: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let options = DecoderOptions { dtype: Some(DType::F64), ..DecoderOptions::default() };
    let model = Decoder::load(&folder, &Device::cpu(), &options)?;
    let numbers = |value: &serde_json::Value| -> Vec<u32> {
        value.as_array().expect("a list").iter().map(|id| id.as_u64().expect("an id") as u32).collect()
    };
    let prompts = [numbers(&reference["prompt"]), vec![1]];
    let options = GenerationOptions { log_probabilities: Some(5), ..GenerationOptions::default() };
    let mut generation = DecoderGeneration::new(&model, &prompts, &options)?;
    assert_eq!(generation.log_probabilities(), [None, None]);
    generation.next().expect("a step")?;
    let found = generation.log_probabilities()[0].clone().expect("log-probabilities");
    for (index, wanted) in reference["first_top5"].as_array().expect("a list").iter().enumerate() {
        let (id, value) = found.top[index];
        assert_eq!(u64::from(id), wanted[0].as_u64().expect("an id"));
        assert!((value - wanted[1].as_f64().expect("a number")).abs() < 1e-5, "{value}, wanted {wanted}");
    }
    assert_eq!(found.drawn, found.top[0].1);
    // A sequence that a caller ends has no more ids.
    generation.end(1);
    let step = generation.next().expect("a step")?;
    assert!(step[0].is_some() && step[1].is_none());
    assert!(generation.log_probabilities()[1].is_none());
    Ok(())
}

#[test]
fn a_generation_goes_on_with_the_cache_of_another() -> Result<()> {
    let cases = unpacked();
    // The frequencies of phi3 change with the total length.
    for name in ["llama2", "gemma3", "phi3"] {
        let options = DecoderOptions { dtype: Some(DType::F64), ..DecoderOptions::default() };
        let model = Decoder::load(cases.path().join(name), &Device::cpu(), &options)?;
        let options = GenerationOptions { max_new_ids: 4, end_ids: Some(vec![]), ..Default::default() };
        let prompt = [30u32, 9, 62];
        let mut first = DecoderGeneration::new(&model, &[prompt], &options)?;
        let mut ids = prompt.to_vec();
        for step in first.by_ref() {
            ids.extend(step?.into_iter().flatten());
        }
        let cache = first.into_cache();
        assert_eq!((cache.length(), ids.len()), (6, 7), "{name}");
        for (kept, changed) in [(6, 7), (4, 4)] {
            let mut ids = ids.clone();
            ids.truncate(changed);
            ids.extend([5, 11, 8]);
            let wanted = &model.generate(&[&ids[..]], &options)?[0];
            let mut cache = cache.clone();
            cache.truncate(kept);
            assert!(cache.length() == kept || (name == "phi3" && cache.length() == 0), "{name}");
            let steps = DecoderGeneration::with_cache(&model, cache, &ids, &options)?;
            let found: Vec<u32> =
                steps.collect::<Result<Vec<_>>>()?.into_iter().flatten().flatten().collect();
            assert_eq!(&found, wanted, "{name}, {kept}");
        }
        let with_cache = |cache, ids: &[u32]| DecoderGeneration::with_cache(&model, cache, ids, &options);
        refused(with_cache(cache.clone(), &ids[..6]).map(drop), &["6 ids and a cache of 6", "truncate"]);
        let mut several = DecoderCache::new();
        no_grad(|| model.forward_cached(&Tensor::new([[1i64], [2]], &Device::cpu())?, &mut several))?;
        refused(with_cache(several, &ids).map(drop), &["2 sequences", "one sequence"]);
        refused(with_cache(DecoderCache::new(), &[]).map(drop), &["0 ids"]);
        refused(with_cache(DecoderCache::new(), &[4000]).map(drop), &["id 4000"]);
    }
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
    for counts in [vec![1], vec![1, 0], vec![3, 1]] {
        refused(
            model.forward_ragged(&ids, &counts, &mut cache),
            &[&format!("{counts:?}"), "2 sequences of 2 ids"],
        );
    }
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
