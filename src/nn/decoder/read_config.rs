//! `config.json` and `generation_config.json` to a [`DecoderConfig`]. No other file branches on a family.

use serde_json::{Map, Value};

use super::CONFIG;
use super::config::{Biases, DecoderConfig, LayerConfig, NormConfig, NormKind};
use super::families::{BiasRule, FAMILIES, Family, WindowRule};
use super::fields::Fields;
use super::names::{GPT2, LLAMA};
use super::rotary::{Rotary, RotaryScaling};
use crate::error::{Error, Result};
use crate::nn::{Activation, SamplerOptions};

/// The most layers: each has parameters, whose names take memory.
const MAX_LAYERS: usize = 4096;

impl DecoderConfig {
    /// Reads the texts of `config.json` and, if there is one, `generation_config.json`, whose end ids win. The latter has the choice
    /// of ids too.
    ///
    /// Dropout rates are not read: the model drops nothing. `auto_map`, which names Python code, is ignored with a warning.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] that names the key: for text that is no JSON object, an architecture or option that is not
    /// supported (with a list of those that are), a missing size, and values of another type, negative, 0 or not finite.
    pub fn from_json(text: &str, generation: Option<&str>) -> Result<DecoderConfig> {
        let map = object("config.json", text)?;
        let fields = Fields::new(&map, "");
        if fields.contains("auto_map") {
            log::warn!("{CONFIG}: auto_map in config.json is ignored: the code that it names is not run");
        }
        if fields.value("quantization_config").is_some() {
            return Err(fields.refuse("quantization_config", "weights of f32, f16, bf16 or f64 without it"));
        }
        let mut config = match fields.text("model_type")? {
            Some("gpt2") => gpt2(fields)?,
            Some(name) => match FAMILIES.iter().find(|family| family.model_type == name) {
                Some(family) => llama(fields, family)?,
                None => return Err(fields.refuse("model_type", supported())),
            },
            None => return Err(fields.refuse("model_type", supported())),
        };
        let ids = |fields: Fields<'_>| -> Result<_> {
            Ok((fields.ids("eos_token_id")?, fields.ids("pad_token_id")?.first().copied()))
        };
        (config.end_ids, config.pad_id) = ids(fields)?;
        if let Some(text) = generation {
            let map = object("generation_config.json", text)?;
            let (end_ids, pad_id) = ids(Fields::new(&map, "generation_config.json: "))?;
            if !end_ids.is_empty() {
                config.end_ids = end_ids;
            }
            config.pad_id = pad_id.or(config.pad_id);
            config.sampler = sampler(Fields::new(&map, "generation_config.json: "))?;
        }
        text.clone_into(&mut config.json);
        config.generation_json = generation.map(str::to_owned);
        Ok(config)
    }
}

/// Returns the choice of ids. A top_k of 0 takes all ids, as in transformers.
fn sampler(fields: Fields<'_>) -> Result<SamplerOptions> {
    let number = |key: &str, default: f64| match fields.value(key) {
        None => Ok(default),
        Some(value) => value.as_f64().ok_or_else(|| fields.refuse(key, "a number")),
    };
    let draws = fields.flag("do_sample", false)?;
    let mut options =
        SamplerOptions { repetition_penalty: number("repetition_penalty", 1.0)?, ..SamplerOptions::greedy() };
    if draws {
        options.temperature = number("temperature", 1.0)?;
        options.top_p = number("top_p", 1.0)?;
        options.min_p = number("min_p", 0.0)?;
        options.top_k = match fields.value("top_k").and_then(Value::as_u64) {
            Some(0) => None,
            _ => fields.optional_count("top_k")?,
        };
    }
    options.check().map_err(|error| match error {
        Error::InvalidArgument { found, wanted, .. } => {
            Error::invalid(CONFIG, format!("generation_config.json: {found}"), wanted)
        }
        other => other,
    })?;
    Ok(options)
}

/// Returns the object of a file.
fn object(file: &str, text: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(text)
        .map_err(|error| Error::invalid(CONFIG, format!("{file}: {error}"), "a JSON object"))
}

fn supported() -> String {
    let names: Vec<&str> = FAMILIES.iter().map(|family| family.model_type).collect();
    format!("one of gpt2, {}", names.join(", "))
}

fn activation(fields: Fields<'_>, key: &str) -> Result<Activation> {
    let wanted = || fields.refuse(key, "gelu, gelu_new, gelu_pytorch_tanh, relu, silu or swish");
    let value = fields.value(key).ok_or_else(wanted)?;
    serde_json::from_value(value.clone()).map_err(|_| wanted())
}

fn layer_count(fields: Fields<'_>, key: &str) -> Result<usize> {
    let count = fields.count(key)?;
    if count > MAX_LAYERS {
        return Err(fields.refuse(key, format!("1 to {MAX_LAYERS}")));
    }
    Ok(count)
}

/// Returns the width divided by the heads.
fn divided(fields: Fields<'_>, width: usize, key: &str, heads: usize) -> Result<usize> {
    if !width.is_multiple_of(heads) {
        return Err(fields.refuse(key, format!("a divisor of the width, {width}")));
    }
    Ok(width / heads)
}

fn gpt2(fields: Fields<'_>) -> Result<DecoderConfig> {
    if fields.flag("add_cross_attention", false)? {
        return Err(fields.refuse("add_cross_attention", "false: a decoder alone"));
    }
    let (width, heads) = (fields.count("n_embd")?, fields.count("n_head")?);
    let head_dim = divided(fields, width, "n_head", heads)?;
    let is_scaled = fields.flag("scale_attn_weights", true)?;
    let by_layer = fields.flag("scale_attn_by_inverse_layer_idx", false)?;
    let scale = if is_scaled { 1.0 / (head_dim as f64).sqrt() } else { 1.0 };
    let layer = |index: usize| LayerConfig {
        window: None,
        rotary: None,
        score_scale: if by_layer { scale / (index + 1) as f64 } else { scale },
    };
    Ok(DecoderConfig {
        vocab_size: fields.count("vocab_size")?,
        context: fields.count("n_positions")?,
        width,
        hidden: fields.optional_count("n_inner")?.unwrap_or(4 * width),
        heads,
        key_heads: heads,
        head_dim,
        layers: (0..layer_count(fields, "n_layer")?).map(layer).collect(),
        norm: NormConfig {
            kind: NormKind::Layer,
            eps: fields.optional_number("layer_norm_epsilon")?.unwrap_or(1e-5),
            has_offset: false,
        },
        has_four_norms: false,
        has_head_norms: false,
        has_learned_positions: true,
        rotary: Vec::new(),
        activation: match fields.value("activation_function") {
            Some(_) => activation(fields, "activation_function")?,
            None => Activation::GeluTanh,
        },
        is_gated: false,
        biases: Biases { projections: true, output: true, feed_forward: true },
        score_cap: None,
        logit_cap: None,
        embedding_scale: None,
        has_tied_head: fields.flag("tie_word_embeddings", true)?,
        names: &GPT2,
        is_packed: true,
        is_input_major: true,
        end_ids: Vec::new(),
        pad_id: None,
        json: String::new(),
        sampler: SamplerOptions::greedy(),
        generation_json: None,
    })
}

fn llama(fields: Fields<'_>, family: &Family) -> Result<DecoderConfig> {
    if fields.flag("use_bidirectional_attention", false)? {
        return Err(fields.refuse("use_bidirectional_attention", "false: causal attention"));
    }
    let (width, heads) = (fields.count("hidden_size")?, fields.count("num_attention_heads")?);
    let key_heads = fields.optional_count("num_key_value_heads")?.unwrap_or(heads);
    if !heads.is_multiple_of(key_heads) {
        return Err(fields.refuse("num_key_value_heads", format!("a divisor of the {heads} heads")));
    }
    let head_dim = match (fields.optional_count("head_dim")?, family.head_dim) {
        (Some(size), _) | (None, Some(size)) => size,
        (None, None) => divided(fields, width, "num_attention_heads", heads)?,
    };
    let scalar = match family.score_scalar {
        Some((key, default)) => fields.optional_number(key)?.unwrap_or(default),
        None => head_dim as f64,
    };
    let context = fields.count("max_position_embeddings")?;
    let windows = windows(fields, family, layer_count(fields, "num_hidden_layers")?)?;
    let rotary = rotary(fields, family, context, head_dim)?;
    // The last settings are those of layers with a window.
    let layer = |window: Option<usize>| LayerConfig {
        window,
        rotary: Some(if window.is_some() { rotary.len() - 1 } else { 0 }),
        score_scale: 1.0 / scalar.sqrt(),
    };
    let cap = |key, default: Option<f64>| match fields.contains(key) {
        true => fields.optional_number(key),
        false => Ok(default),
    };
    let [attention_bias, mlp_bias] = ["attention_bias", "mlp_bias"].map(|key| fields.flag(key, false));
    let biases = match family.biases {
        BiasRule::None => Biases { projections: false, output: false, feed_forward: false },
        BiasRule::Projections => Biases { projections: true, output: false, feed_forward: false },
        BiasRule::Keys => {
            let attention = attention_bias?;
            Biases { projections: attention, output: attention, feed_forward: mlp_bias? }
        }
    };
    let has_other = fields.value("hidden_activation").is_some() && family.scales_embeddings;
    let activation = match (family.activation, has_other) {
        (_, true) => activation(fields, "hidden_activation")?,
        (Some(default), false) => default,
        (None, false) => activation(fields, "hidden_act")?,
    };
    Ok(DecoderConfig {
        vocab_size: fields.count("vocab_size")?,
        context,
        width,
        hidden: fields.count("intermediate_size")?,
        heads,
        key_heads,
        head_dim,
        layers: windows.into_iter().map(layer).collect(),
        norm: NormConfig {
            kind: NormKind::Rms,
            eps: fields.number("rms_norm_eps")?,
            has_offset: family.has_norm_offset,
        },
        has_four_norms: family.has_four_norms,
        has_head_norms: family.has_head_norms,
        has_learned_positions: false,
        rotary,
        activation,
        is_gated: true,
        biases,
        score_cap: match family.score_cap {
            Some(default) => cap("attn_logit_softcapping", Some(default))?,
            None => None,
        },
        logit_cap: match family.logit_cap {
            Some(default) => cap("final_logit_softcapping", default)?,
            None => None,
        },
        embedding_scale: family.scales_embeddings.then(|| (width as f64).sqrt()),
        has_tied_head: fields.flag("tie_word_embeddings", family.is_tied)?,
        names: &LLAMA,
        is_packed: family.is_packed,
        is_input_major: false,
        end_ids: Vec::new(),
        pad_id: None,
        json: String::new(),
        sampler: SamplerOptions::greedy(),
        generation_json: None,
    })
}

/// Returns the window of each layer.
fn windows(fields: Fields<'_>, family: &Family, layers: usize) -> Result<Vec<Option<usize>>> {
    const KEY: &str = "sliding_window";
    let has_window: Vec<bool> = if let Some(types) = fields.value("layer_types") {
        let wanted = || {
            let wanted = format!("a list of {layers} times full_attention or sliding_attention");
            fields.refuse("layer_types", wanted)
        };
        let has_window = |kind: &Value| match kind.as_str() {
            Some("full_attention") => Some(false),
            Some("sliding_attention") => Some(true),
            _ => None,
        };
        let found: Option<Vec<bool>> = types.as_array().ok_or_else(wanted)?.iter().map(has_window).collect();
        found.filter(|found| found.len() == layers).ok_or_else(wanted)?
    } else {
        match family.windows {
            WindowRule::None => vec![false; layers],
            WindowRule::All { default } => match (fields.contains(KEY), default) {
                (false, Some(window)) => return Ok(vec![Some(window); layers]),
                _ => vec![fields.value(KEY).is_some(); layers],
            },
            WindowRule::Qwen if fields.flag("use_sliding_window", false)? => {
                let first = match fields.value("max_window_layers").and_then(Value::as_u64) {
                    Some(first) => first as usize,
                    None => return Err(fields.refuse("max_window_layers", "a number of layers")),
                };
                (0..layers).map(|layer| layer >= first).collect()
            }
            WindowRule::Qwen => vec![false; layers],
            WindowRule::Pattern(default) => {
                let each = fields.optional_count("sliding_window_pattern")?.unwrap_or(default);
                (1..=layers).map(|layer| !layer.is_multiple_of(each)).collect()
            }
        }
    };
    let window = if has_window.contains(&true) { Some(fields.count(KEY)?) } else { None };
    Ok(has_window.into_iter().map(|has_window| window.filter(|_| has_window)).collect())
}

/// Returns the rotary settings: one for all layers, or that of layers without a window and that of layers with one.
fn rotary(fields: Fields<'_>, family: &Family, context: usize, head_dim: usize) -> Result<Vec<Rotary>> {
    let reader = RotaryReader { fields, context, head_dim };
    let base = fields.optional_number("rope_theta")?.unwrap_or(family.rotary_base);
    let local_base = match family.local_base {
        Some((key, default)) => Some(fields.optional_number(key)?.unwrap_or(default)),
        None => None,
    };
    if fields.value("rope_parameters").is_some() && fields.value("rope_scaling").is_some() {
        return Err(
            fields.refuse("rope_scaling", "no rope_scaling beside rope_parameters, or the other way round")
        );
    }
    if let Some(all) = fields.object("rope_parameters", "rope_parameters: ")? {
        let own = |kind, prefix| all.object(kind, prefix);
        let full = own("full_attention", "rope_parameters: full_attention: ")?;
        let local = own("sliding_attention", "rope_parameters: sliding_attention: ")?;
        return match (full, local) {
            (None, None) if local_base.is_some() => {
                let wanted =
                    "an object each for full_attention and sliding_attention, which have bases of their own";
                Err(fields.refuse("rope_parameters", wanted))
            }
            (None, None) => Ok(vec![reader.read(Some(all), base)?]),
            (full, local) => {
                Ok(vec![reader.read(full, base)?, reader.read(local, local_base.unwrap_or(base))?])
            }
        };
    }
    let scaling = fields.object("rope_scaling", "rope_scaling: ")?;
    let mut found = vec![reader.read(scaling, base)?];
    if let Some(base) = local_base {
        found.push(reader.read(None, base)?);
    }
    Ok(found)
}

struct RotaryReader<'a> {
    fields: Fields<'a>,
    context: usize,
    head_dim: usize,
}

impl RotaryReader<'_> {
    /// Returns the settings of an object, whose `rope_theta` wins over a base.
    fn read(&self, settings: Option<Fields<'_>>, base: f64) -> Result<Rotary> {
        let (fields, context) = (self.fields, self.context);
        let of_settings = |key| settings.map_or(Ok(None), |settings| settings.optional_number(key));
        let base = of_settings("rope_theta")?.unwrap_or(base);
        let fraction = match of_settings("partial_rotary_factor")? {
            Some(fraction) => fraction,
            None => fields.optional_number("partial_rotary_factor")?.unwrap_or(1.0),
        };
        let dimensions = (self.head_dim as f64 * fraction) as usize;
        if fraction > 1.0 || dimensions == 0 || !dimensions.is_multiple_of(2) {
            let found =
                format!("partial_rotary_factor = {fraction} of a head dimension of {}", self.head_dim);
            return Err(Error::invalid(CONFIG, found, "an even number of elements from 2 to the dimension"));
        }
        let plain = Rotary { base, dimensions, scaling: RotaryScaling::None, magnitude: 1.0 };
        let Some(settings) = settings else { return Ok(plain) };
        // The file's own key wins over that of the object.
        const ORIGINAL: &str = "original_max_position_embeddings";
        let named = match fields.optional_count(ORIGINAL)? {
            Some(original) => Some(original),
            None => settings.optional_count(ORIGINAL)?,
        };
        let original = named.unwrap_or(context);
        let ratio = context as f64 / original as f64;
        let factor = || Ok::<f64, Error>(settings.optional_number("factor")?.unwrap_or(ratio));
        let magnitude =
            |default: f64| Ok::<f64, Error>(settings.optional_number("attention_factor")?.unwrap_or(default));
        let key = if settings.value("rope_type").is_some() { "rope_type" } else { "type" };
        let kind = match settings.text(key)? {
            None if settings.value("factor").is_some() => {
                return Err(settings.refuse("rope_type", "the type of scaling of this factor"));
            }
            // Older files of Phi 3 call longrope so.
            Some("yarn") if settings.value("short_factor").is_some() => Some("longrope"),
            kind => kind,
        };
        let (scaling, magnitude) = match kind {
            None | Some("default") => (RotaryScaling::None, 1.0),
            Some("linear") => (RotaryScaling::Linear { factor: settings.number("factor")? }, 1.0),
            Some("llama3") => {
                let (low, high) = (settings.number("low_freq_factor")?, settings.number("high_freq_factor")?);
                if low >= high {
                    return Err(settings.refuse("high_freq_factor", format!("above low_freq_factor, {low}")));
                }
                let factor = settings.number("factor")?;
                (RotaryScaling::Llama3 { factor, low, high, original: original as f64 }, 1.0)
            }
            Some("yarn") => {
                let factor = factor()?;
                let scale = |m: f64| if factor > 1.0 { 0.1 * m * factor.ln() + 1.0 } else { 1.0 };
                let default = match (
                    settings.optional_number("mscale")?,
                    settings.optional_number("mscale_all_dim")?,
                ) {
                    (Some(one), Some(all)) => scale(one) / scale(all),
                    _ => scale(1.0),
                };
                let scaling = RotaryScaling::Yarn {
                    factor,
                    fast: settings.optional_number("beta_fast")?.unwrap_or(32.0),
                    slow: settings.optional_number("beta_slow")?.unwrap_or(1.0),
                    is_truncated: settings.flag("truncate", true)?,
                    original: original as f64,
                };
                (scaling, magnitude(default)?)
            }
            Some("longrope" | "su") => {
                if named.is_none() {
                    return Err(settings.refuse(ORIGINAL, "the positions before the scaling"));
                }
                let factor = factor()?;
                let default = match factor > 1.0 {
                    true => (1.0 + factor.ln() / (original as f64).ln()).sqrt(),
                    false => 1.0,
                };
                let scaling = RotaryScaling::LongRope {
                    short: settings.numbers("short_factor", dimensions / 2)?,
                    long: settings.numbers("long_factor", dimensions / 2)?,
                    original,
                };
                (scaling, magnitude(default)?)
            }
            Some(_) => return Err(settings.refuse(key, "default, linear, llama3, yarn, longrope or su")),
        };
        Ok(Rotary { scaling, magnitude, ..plain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(model_type: &str, more: &str) -> DecoderConfig {
        let text = format!(
            r#"{{"model_type": "{model_type}", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 12,
            "num_hidden_layers": 3, "num_attention_heads": 2, "head_dim": 4, "hidden_act": "gelu", "rms_norm_eps": 1e-5,
            "max_position_embeddings": 32, "sliding_window": 5{more}}}"#
        );
        DecoderConfig::from_json(&text, None).expect("a configuration")
    }

    fn bases(config: &DecoderConfig) -> Vec<f64> {
        config.rotary.iter().map(|rotary| rotary.base).collect()
    }

    #[test]
    fn bases_beside_the_new_form_count_where_it_has_none() {
        let beside = r#", "rope_theta": 500000, "rope_parameters": {"rope_type": "default"}"#;
        assert_eq!(bases(&config("llama", beside)), [5e5]);
        let inside = r#", "rope_theta": 3, "rope_parameters": {"rope_type": "default", "rope_theta": 70}"#;
        assert_eq!(bases(&config("llama", inside)), [70.0]);
        let by_layer = r#", "rope_local_base_freq": 9, "rope_parameters": {"full_attention": {"rope_theta": 8},
            "sliding_attention": {"rope_type": "default"}}"#;
        assert_eq!(bases(&config("gemma3_text", by_layer)), [8.0, 9.0]);
        assert_eq!(bases(&config("gemma3_text", "")), [1e6, 1e4]);
    }

    #[test]
    fn older_names_of_scalings_are_read() {
        let yarn = r#", "original_max_position_embeddings": 16, "rope_scaling": {"rope_type": null, "type": "yarn",
            "short_factor": [1, 1], "long_factor": [1, 2], "original_max_position_embeddings": 4}"#;
        let found = config("phi3", yarn);
        let RotaryScaling::LongRope { original, .. } = &found.rotary[0].scaling else {
            panic!("no longrope")
        };
        // The file's own key wins.
        assert_eq!(*original, 16);
    }

    #[test]
    fn gemma_2_and_3_read_hidden_activation_alone() {
        for model_type in ["gemma2", "gemma3_text"] {
            assert_eq!(config(model_type, "").activation, Activation::GeluTanh);
            assert_eq!(config(model_type, r#", "hidden_activation": "silu""#).activation, Activation::Silu);
        }
        assert_eq!(config("llama", "").activation, Activation::Gelu);
    }
}
