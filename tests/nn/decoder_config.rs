//! Configurations of decoders: the forms of each family, and bad input.

use selvedge::nn::{DecoderConfig, SamplerOptions};
use selvedge::{Error, Result};
use serde_json::{Value, json};

/// A configuration of the Llama form with a context of 32.
pub fn llama() -> String {
    object("llama").to_string()
}

fn object(model_type: &str) -> Value {
    json!({
        "model_type": model_type, "vocab_size": 11, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 3,
        "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_act": "silu", "max_position_embeddings": 32,
        "rms_norm_eps": 1e-5, "eos_token_id": 2
    })
}

fn with(model_type: &str, changes: &[(&str, Value)]) -> String {
    let mut object = object(model_type);
    for (key, value) in changes {
        match value {
            Value::String(text) if text == "missing" => {
                object.as_object_mut().expect("an object").remove(*key);
            }
            value => object[*key] = value.clone(),
        }
    }
    object.to_string()
}

fn windows(model_type: &str, changes: &[(&str, Value)]) -> Result<Vec<Option<usize>>> {
    let config = DecoderConfig::from_json(&with(model_type, changes), None)?;
    Ok((0..config.layers()).map(|layer| config.window(layer)).collect())
}

#[test]
fn the_windows_of_a_decoder_follow_the_keys_of_its_family() -> Result<()> {
    let window = ("sliding_window", json!(5));
    let (some, none) = (Some(5), None);
    assert_eq!(windows("llama", std::slice::from_ref(&window))?, [none; 3]);
    assert_eq!(windows("mistral", std::slice::from_ref(&window))?, [some; 3]);
    assert_eq!(windows("mistral", &[("sliding_window", Value::Null)])?, [none; 3]);
    assert_eq!(windows("mistral", &[])?, [Some(4096); 3]);
    assert_eq!(windows("phi3", &[])?, [none; 3]);
    assert_eq!(windows("qwen2", std::slice::from_ref(&window))?, [none; 3]);
    let used = [window.clone(), ("use_sliding_window", json!(true)), ("max_window_layers", json!(2))];
    assert_eq!(windows("qwen2", &used)?, [none, none, some]);
    assert_eq!(windows("gemma2", std::slice::from_ref(&window))?, [some, none, some]);
    let pattern = [window.clone(), ("sliding_window_pattern", json!(3))];
    assert_eq!(windows("gemma3_text", &pattern)?, [some, some, none]);
    let types = json!(["full_attention", "sliding_attention", "full_attention"]);
    assert_eq!(windows("gemma2", &[window.clone(), ("layer_types", types)])?, [none, some, none]);
    Ok(())
}

#[test]
fn end_ids_of_the_generation_file_win() -> Result<()> {
    let text = llama();
    let ids = |generation: Option<&str>| -> Result<(Vec<u32>, Option<u32>)> {
        let config = DecoderConfig::from_json(&text, generation)?;
        Ok((config.end_ids().to_vec(), config.pad_id()))
    };
    assert_eq!(ids(None)?, (vec![2], None));
    assert_eq!(ids(Some(r#"{"eos_token_id": [3, 4], "pad_token_id": 1}"#))?, (vec![3, 4], Some(1)));
    assert_eq!(ids(Some(r#"{"eos_token_id": null}"#))?, (vec![2], None));
    // Older files have -1 for none.
    assert_eq!(ids(Some(r#"{"eos_token_id": -1, "pad_token_id": -1}"#))?, (vec![2], None));
    assert!(ids(Some(r#"{"eos_token_id": -2}"#)).unwrap_err().to_string().contains("eos_token_id = -2"));
    assert!(ids(Some("[]")).unwrap_err().to_string().contains("generation_config.json"));
    Ok(())
}

#[test]
fn sizes_of_a_decoder_are_those_of_its_file() -> Result<()> {
    let config = DecoderConfig::from_json(
        &with("qwen3", &[("head_dim", json!(6)), ("tie_word_embeddings", json!(true))]),
        None,
    )?;
    assert_eq!((config.vocab_size(), config.context(), config.width()), (11, 32, 8));
    assert_eq!((config.layers(), config.heads(), config.key_heads(), config.head_dim()), (3, 2, 1, 6));
    assert!(config.has_tied_head());
    // Embedding; per layer two norms, two head norms, q, k, v, o, gate, up and down; the last norm.
    let layer = 2 * 8 + 2 * 6 + 8 * 6 * (2 + 1 + 1 + 2) + 3 * 8 * 12;
    assert_eq!(config.parameter_count(), 11 * 8 + 3 * layer + 8);
    for (family, is_tied) in [("llama", false), ("mistral", false), ("gemma", true), ("phi3", false)] {
        assert_eq!(DecoderConfig::from_json(&with(family, &[]), None)?.has_tied_head(), is_tied, "{family}");
    }
    Ok(())
}

#[test]
fn auto_map_is_no_error() -> Result<()> {
    DecoderConfig::from_json(&with("llama", &[("auto_map", json!({"AutoModel": "code.Model"}))]), None)
        .map(drop)
}

/// Keys and their new values.
type Changes = Vec<(&'static str, Value)>;

/// Changes of a configuration, and the parts of the error's text.
#[test]
fn bad_configurations_are_errors_that_name_the_key() {
    let missing = || json!("missing");
    let scaling = |value: Value| -> Changes { vec![("rope_scaling", value)] };
    let cases: Vec<(&str, Changes, &[&str])> = vec![
        (
            "bert",
            vec![],
            &[
                "model_type = \"bert\"",
                "gpt2, llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text, phi3",
            ],
        ),
        ("llama", vec![("model_type", missing())], &["no model_type", "gpt2"]),
        ("llama", vec![("model_type", json!(3))], &["model_type = 3", "a text"]),
        ("llama", vec![("vocab_size", missing())], &["no vocab_size"]),
        ("llama", vec![("vocab_size", json!(-5))], &["vocab_size = -5"]),
        ("llama", vec![("hidden_size", json!(0))], &["hidden_size = 0"]),
        ("llama", vec![("hidden_size", json!(8.5))], &["hidden_size = 8.5"]),
        ("llama", vec![("intermediate_size", Value::Null)], &["intermediate_size = null"]),
        ("llama", vec![("num_hidden_layers", json!(1_000_000))], &["num_hidden_layers = 1000000", "4096"]),
        ("llama", vec![("num_attention_heads", json!(3))], &["num_attention_heads = 3", "width, 8"]),
        ("llama", vec![("num_key_value_heads", json!(3))], &["num_key_value_heads = 3", "2 heads"]),
        ("llama", vec![("head_dim", json!("8"))], &["head_dim = \"8\""]),
        ("llama", vec![("head_dim", json!(3))], &["head dimension of 3", "even"]),
        ("llama", vec![("partial_rotary_factor", json!(1.5))], &["partial_rotary_factor = 1.5"]),
        ("llama", vec![("max_position_embeddings", json!(1e30))], &["max_position_embeddings = 1e"]),
        ("llama", vec![("rms_norm_eps", json!(-1e-5))], &["rms_norm_eps = -"]),
        ("llama", vec![("rope_theta", json!(0))], &["rope_theta = 0"]),
        ("llama", vec![("hidden_act", json!("gelu_fast"))], &["hidden_act = \"gelu_fast\"", "silu"]),
        ("llama", vec![("attention_bias", json!("no"))], &["attention_bias = \"no\""]),
        ("llama", vec![("tie_word_embeddings", json!(1))], &["tie_word_embeddings = 1"]),
        ("llama", vec![("quantization_config", json!({"bits": 4}))], &["quantization_config"]),
        ("llama", vec![("eos_token_id", json!([1, -2]))], &["eos_token_id = [1,-2]"]),
        ("mistral", vec![("sliding_window", json!(0))], &["sliding_window = 0"]),
        ("gemma2", vec![], &["no sliding_window"]),
        ("qwen2", vec![("use_sliding_window", json!(true))], &["no max_window_layers"]),
        ("qwen2", vec![("layer_types", json!(["full_attention"]))], &["layer_types", "3 times"]),
        (
            "qwen2",
            vec![("layer_types", json!(vec!["chunked_attention"; 3]))],
            &["chunked_attention", "sliding_attention"],
        ),
        (
            "gemma",
            vec![("use_bidirectional_attention", json!(true))],
            &["use_bidirectional_attention = true"],
        ),
        (
            "llama",
            scaling(json!({"type": "dynamic", "factor": 2})),
            &["rope_scaling: type = \"dynamic\"", "yarn"],
        ),
        ("llama", scaling(json!({"type": "linear"})), &["no rope_scaling: factor"]),
        ("llama", scaling(json!("linear")), &["rope_scaling = \"linear\""]),
        ("llama", scaling(json!({"factor": 2})), &["rope_scaling: rope_type", "factor"]),
        (
            "llama",
            vec![
                ("rope_scaling", json!({"type": "default"})),
                ("rope_parameters", json!({"rope_type": "default"})),
            ],
            &["rope_scaling", "rope_parameters"],
        ),
        (
            "gemma3_text",
            vec![("sliding_window", json!(5)), ("rope_parameters", json!({"rope_type": "default"}))],
            &["rope_parameters", "sliding_attention"],
        ),
        (
            "phi3",
            scaling(json!({"type": "su", "short_factor": [1, 1], "long_factor": [1, 2]})),
            &["original_max_position_embeddings"],
        ),
        (
            "llama",
            scaling(json!({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}))
                .to_vec(),
            &["high_freq_factor = 4", "above low_freq_factor"],
        ),
        (
            "phi3",
            scaling(json!({
                "type": "su", "short_factor": [1], "long_factor": [1, 2], "original_max_position_embeddings": 16
            })),
            &["short_factor = [1]", "2 positive"],
        ),
    ];
    for (model_type, changes, parts) in cases {
        let error = DecoderConfig::from_json(&with(model_type, &changes), None).map(drop).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        let message = error.to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message} lacks one of {parts:?}");
    }
    for text in ["", "[]", "{\"model_type\": "] {
        let message = DecoderConfig::from_json(text, None).map(drop).unwrap_err().to_string();
        assert!(message.contains("config.json") && message.contains("a JSON object"), "{message}");
    }
}

#[test]
fn the_choice_of_ids_is_that_of_generation_config() -> Result<()> {
    let sampler = |text: &str| DecoderConfig::from_json(&llama(), Some(text)).map(|config| config.sampler());
    let all = SamplerOptions::default();
    assert_eq!(DecoderConfig::from_json(&llama(), None)?.sampler(), SamplerOptions::greedy());
    for (text, wanted) in [
        ("{}", SamplerOptions::greedy()),
        (r#"{"do_sample": false, "temperature": 0.5, "top_p": 0.5}"#, SamplerOptions::greedy()),
        (r#"{"do_sample": true}"#, all),
        (
            r#"{"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.1}"#,
            SamplerOptions { temperature: 0.6, top_k: Some(20), top_p: 0.95, min_p: 0.1, ..all },
        ),
        (r#"{"do_sample": true, "top_k": 0, "top_p": null, "temperature": 1}"#, all),
        (
            r#"{"repetition_penalty": 1.5}"#,
            SamplerOptions { repetition_penalty: 1.5, ..SamplerOptions::greedy() },
        ),
    ] {
        assert_eq!(sampler(text)?, wanted, "{text}");
    }
    for (text, part) in [
        (r#"{"do_sample": true, "top_p": 0}"#, "generation_config.json: top_p = 0"),
        (r#"{"do_sample": true, "top_p": "all"}"#, "top_p = \"all\""),
        (r#"{"do_sample": true, "top_k": -1}"#, "top_k = -1"),
        (r#"{"do_sample": 1}"#, "do_sample = 1"),
        (r#"{"repetition_penalty": 0}"#, "repetition_penalty = 0"),
    ] {
        let error = sampler(text).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error} lacks {part}");
    }
    Ok(())
}
