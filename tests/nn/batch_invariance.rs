//! Batch invariance on the CPU: products, decoders, generations, and what has no such algorithm.

use selvedge::nn::{Decoder, DecoderCache, DecoderConfig, DecoderGeneration, GenerationOptions, Initializer};
use selvedge::types::DType;
use selvedge::{Device, Result};

use crate::batch_invariance_cases as cases;

const GPT2: &str = r#"{"model_type": "gpt2", "vocab_size": 70, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}"#;
const LLAMA: &str = r#"{"model_type": "llama", "vocab_size": 70, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-5}"#;

#[test]
fn rows_of_products_have_the_same_bits_beside_any_others() -> Result<()> {
    let rows = [1, 2, 7, 8, 9, 40];
    let sizes = [[70, 40], [33, 1030], [5, 9], [300, 17], [600, 2500]];
    for dtype in [DType::F32, DType::F64] {
        cases::products(dtype, &sizes, &rows, &Device::cpu())?;
    }
    cases::layers(DType::F32, [7, 9], &Device::cpu())?;
    cases::products(DType::BF16, &sizes[..4], &rows, &Device::cpu())
}

#[test]
fn logits_depend_neither_on_the_batch_nor_on_parts_of_prompts() -> Result<()> {
    for config in [GPT2, LLAMA] {
        cases::logits(config, DType::F32, 24, &Device::cpu())?;
    }
    Ok(())
}

fn model(config: &str, dtype: DType) -> Result<Decoder> {
    let initializer = Initializer::new(&Device::cpu()).with_seed(3).with_dtype(dtype);
    Decoder::new(DecoderConfig::from_json(config, None)?, &initializer)
}

#[test]
fn a_generation_in_parts_continues_prompts_as_one_at_once() -> Result<()> {
    let model = model(LLAMA, DType::F32)?;
    let prompts = [(1..20).collect::<Vec<u32>>(), vec![5], (3..11).collect()];
    for is_batch_invariant in [false, true] {
        let options =
            GenerationOptions { max_new_ids: 6, is_batch_invariant, ..GenerationOptions::default() };
        let whole = model.generate(&prompts, &options)?;
        for part in [1, 3, 8, 19, 40] {
            let parts = GenerationOptions { prefill_chunk: Some(part), ..options.clone() };
            assert_eq!(model.generate(&prompts, &parts)?, whole, "parts of {part}");
        }
        assert_eq!(model.generate(&prompts[2..], &options)?[0], whole[2]);
    }
    let none = GenerationOptions { prefill_chunk: Some(0), ..GenerationOptions::default() };
    let error = model.generate(&prompts, &none).unwrap_err().to_string();
    assert!(error.contains("parts of prompts of 0 ids") && error.contains("at least 1 id"), "{error}");
    Ok(())
}

#[test]
fn batch_invariance_that_no_algorithm_has_is_an_error() -> Result<()> {
    let options = GenerationOptions { is_batch_invariant: true, ..GenerationOptions::default() };
    let error = model(LLAMA, DType::BF16)?.generate(&[[1u32]], &options).unwrap_err().to_string();
    assert!(error.contains("computes in bf16 on the CPU") && error.contains("f32 on the CPU"), "{error}");
    // A cache and a generation differ.
    let model = model(LLAMA, DType::F32)?;
    let other = GenerationOptions::default();
    let error = DecoderGeneration::with_cache(&model, DecoderCache::batch_invariant(), &[1], &other);
    let error = error.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("a cache that is batch-invariant; wanted one that is not"), "{error}");
    Ok(())
}
