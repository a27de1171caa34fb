//! Low-rank adapters of decoders: the computation against a plain formula, training, files, and bad input.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use selvedge::nn::{Decoder, DecoderCache, LoraOptions, Module, Trainer, TrainerOptions, Variable, no_grad};
use selvedge::{DType, Device, Error, Result, Tensor};

use crate::decoder_cases::{NAMES, unpacked};
use crate::decoder_training::{Ascii, bits, load, options, text};

const IDS: [[i64; 5]; 1] = [[1, 5, 2, 7, 90]];

/// Logits of some ids.
fn logits(model: &Decoder) -> Result<Tensor> {
    let ids = Tensor::new(IDS, &Device::cpu())?;
    Ok(model.forward(&Variable::new(ids))?.tensor())
}

fn distance(a: &Tensor, b: &Tensor) -> Result<f64> {
    (a.cast(DType::F64)? - b.cast(DType::F64)?)?.abs()?.max_all()?.item::<f64>()
}

/// Gives all factors other values than their first ones, of which B is 0.
fn draw(model: &mut Decoder) -> Result<()> {
    let generator = selvedge::tensor::Generator::new(5);
    let cpu = Device::cpu();
    let drawn = model
        .state_dict()
        .into_iter()
        .map(|(name, x)| Ok((name, generator.normal(0.0, 0.1, x.shape(), x.dtype(), &cpu)?)));
    let drawn: BTreeMap<String, Tensor> = drawn.collect::<Result<_>>()?;
    model.load_state_dict(&drawn)
}

/// Every layer that the names of a family have.
fn everything(name: &str) -> Vec<String> {
    let names: &[&str] = match name {
        "gpt2" => &["c_attn", "attn.c_proj", "c_fc", "mlp.c_proj"],
        "phi3" => &["qkv_proj", "o_proj", "gate_up_proj", "down_proj"],
        _ => &["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn new_adapters_change_nothing_and_merged_ones_have_the_logits_of_the_formula() -> Result<()> {
    let cases = unpacked();
    for name in NAMES {
        let base = load(&cases.path().join(name), None)?;
        let weights = base.state_dict();
        let plain = logits(&base)?;
        let mut model = load(&cases.path().join(name), None)?;
        let options = LoraOptions { rank: 3, alpha: 12.0, layers: Some(everything(name)) };
        model.add_lora(&options, 1)?;
        assert_eq!(distance(&logits(&model)?, &plain)?, 0.0, "{name}");
        draw(&mut model)?;
        let factors = model.state_dict();
        let apart = logits(&model)?;
        assert!(distance(&apart, &plain)? > 1e-2, "{name}");
        // A step of one id in a cache computes the adapters too.
        let ids = Tensor::new(IDS, &Device::cpu())?;
        let mut cache = DecoderCache::new();
        let step = no_grad(|| {
            model.forward_cached(&ids.narrow(1, 0, 4)?, &mut cache)?;
            model.forward_cached(&ids.narrow(1, 4, 1)?, &mut cache)
        })?;
        let largest = apart.abs()?.max_all()?.cast(DType::F64)?.item::<f64>()?;
        let far = distance(&step.tensor(), &apart.select(1, -1)?)? / largest;
        assert!(far < if step.dtype() == DType::BF16 { 5e-2 } else { 1e-5 }, "{name}: {far}");
        // W + alpha / rank · B A, transposed for GPT-2.
        let mut wanted = weights.clone();
        for (layer, b) in
            factors.iter().filter_map(|(name, b)| Some((name.strip_suffix(".lora_B.weight")?, b)))
        {
            let product = (b.matmul(&factors[&format!("{layer}.lora_A.weight")])? * 4.0)?;
            let product = if name == "gpt2" { product.transpose(0, 1)? } else { product };
            let weight = wanted.get_mut(&format!("{layer}.weight")).expect("a weight");
            *weight = (&*weight + &product)?;
        }
        let mut formula = load(&cases.path().join(name), None)?;
        formula.load_state_dict(&wanted)?;
        let far = distance(&logits(&formula)?, &apart)? / largest;
        assert!(far < 1e-5, "{name}: {far}");
        model.merge_lora()?;
        assert!(model.lora().is_none());
        assert_eq!(
            model.state_dict().keys().collect::<Vec<_>>(),
            weights.keys().collect::<Vec<_>>(),
            "{name}"
        );
        let far = distance(&logits(&model)?, &apart)? / largest;
        assert!(far < 1e-5, "{name}: {far}");
        assert!(model.parameters().iter().all(Variable::requires_grad));
    }
    Ok(())
}

#[test]
fn default_layers_are_those_of_peft() -> Result<()> {
    let cases = unpacked();
    for (name, wanted) in [
        ("gpt2", vec!["transformer.h.0.attn.c_attn"]),
        ("phi3", vec!["model.layers.0.self_attn.qkv_proj"]),
        ("qwen3", vec!["model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.v_proj"]),
    ] {
        let mut model = load(&cases.path().join(name), None)?;
        model.add_lora(&LoraOptions::new(2), 1)?;
        let first = |name: &String| name.contains(".0.");
        let found: Vec<String> = model.state_dict().into_keys().filter(first).collect();
        let factors = |layer: &&str| ["A", "B"].map(|factor| format!("{layer}.lora_{factor}.weight"));
        assert_eq!(found, wanted.iter().flat_map(factors).collect::<Vec<_>>(), "{name}");
        let parameters = model.named_parameters();
        let shape = |end: &str| {
            let (_, x) = parameters.iter().find(|(name, _)| name.ends_with(end)).expect("a factor");
            x.shape()
        };
        assert_eq!((shape("lora_A.weight")[0], shape("lora_B.weight")[1]), (2, 2), "{name}");
    }
    Ok(())
}

fn trainer(folder: &Path, compute_dtype: Option<DType>, options: TrainerOptions) -> Result<Trainer<Decoder>> {
    let mut model = load(folder, compute_dtype)?;
    model.add_lora(&LoraOptions::new(4), options.seed)?;
    Trainer::with_model(model, text()?, Some(&Ascii), options)
}

#[test]
fn a_step_changes_adapters_alone_and_a_run_continues_to_the_same_bits() -> Result<()> {
    let cases = unpacked();
    for (name, compute_dtype) in
        [("llama2", None), ("gpt2", Some(DType::BF16)), ("phi3", None), ("gemma2", None)]
    {
        let folder = cases.path().join(name);
        let options = TrainerOptions { learning_rate: 2e-2, accumulation: 2, ..options() };
        let base = bits(&load(&folder, None)?)?;
        let (mut whole, mut first) =
            (trainer(&folder, compute_dtype, options)?, trainer(&folder, compute_dtype, options)?);
        let before = whole.evaluate()?;
        let losses: Vec<f64> =
            (0..12).map(|_| whole.step().map(|report| report.loss)).collect::<Result<_>>()?;
        let after = whole.evaluate()?;
        assert!(after < before - 0.05, "{name}: {before} to {after}");
        (0..5).try_for_each(|_| first.step().map(drop))?;
        let checkpoint = first.checkpoint()?;
        assert!(checkpoint.parameters.keys().all(|name| name.contains(".lora_")), "{name}");
        let elements: usize = checkpoint.parameters.values().map(Tensor::count).sum();
        let states = checkpoint.optimizer.values().map(Tensor::count).max().unwrap_or(0);
        assert!(states <= elements, "{name}: {states} of {elements}");
        let mut second = trainer(&folder, compute_dtype, options)?;
        second.resume(&checkpoint, false)?;
        for loss in &losses[5..] {
            assert_eq!(second.step()?.loss, *loss, "{name}");
        }
        assert_eq!(bits(whole.model())?, bits(second.model())?, "{name}");
        // Without the adapters the weights are those of the folder.
        let zeros = whole.model().state_dict().into_iter();
        let zeros = zeros.map(|(name, x)| Ok((name, Tensor::zeros(x.shape(), x.dtype(), &Device::cpu())?)));
        let zeros: BTreeMap<String, Tensor> = zeros.collect::<Result<_>>()?;
        let mut model = load(&folder, compute_dtype)?;
        model.add_lora(&LoraOptions::new(4), 1)?;
        std::mem::swap(whole.model_mut(), &mut model);
        model.load_state_dict(&zeros)?;
        model.merge_lora()?;
        assert_eq!(bits(&model)?, base, "{name}");
        let found = Decoder::from_checkpoint(&checkpoint.info.model, &checkpoint.parameters, &Device::cpu());
        assert!(found.map(drop).unwrap_err().to_string().contains("a checkpoint of adapters"));
    }
    Ok(())
}

#[test]
fn saved_adapters_have_the_files_of_peft_and_load_to_the_same_bits() -> Result<()> {
    let cases = unpacked();
    for name in ["gpt2", "phi3", "llama3"] {
        let folder = cases.path().join(name);
        let (out, again) = (cases.path().join("adapter"), cases.path().join("again"));
        let mut model = load(&folder, None)?;
        model.add_lora(&LoraOptions { rank: 2, alpha: 5.0, layers: None }, 1)?;
        draw(&mut model)?;
        model.save_lora(&out, "base/name")?;
        let config: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(out.join("adapter_config.json")).unwrap()).unwrap();
        assert_eq!((&config["peft_type"], &config["r"]), (&"LORA".into(), &2.into()));
        assert_eq!((&config["lora_alpha"], &config["fan_in_fan_out"]), (&5.into(), &(name == "gpt2").into()));
        assert_eq!(config["base_model_name_or_path"], "base/name");
        let stored = Tensor::read_safetensors(out.join("adapter_model.safetensors"), &Device::cpu())?;
        let first = model.state_dict().into_keys().next().unwrap();
        assert!(stored.iter().any(|(found, _)| *found == format!("base_model.model.{first}")), "{name}");
        let mut loaded = load(&folder, None)?;
        loaded.load_lora(&out)?;
        assert_eq!(loaded.lora().map(LoraOptions::scale), Some(2.5));
        assert_eq!(bits(&loaded)?, bits(&model)?, "{name}");
        assert_eq!(distance(&logits(&loaded)?, &logits(&model)?)?, 0.0, "{name}");
        loaded.save_lora(&again, "base/name")?;
        for file in ["adapter_config.json", "adapter_model.safetensors"] {
            assert_eq!(
                fs::read(out.join(file)).unwrap(),
                fs::read(again.join(file)).unwrap(),
                "{name}: {file}"
            );
        }
    }
    Ok(())
}

#[test]
fn bad_input_is_an_error_that_names_both_sides() -> Result<()> {
    let cases = unpacked();
    let folder = cases.path().join("llama2");
    let fails = |result: Result<()>, parts: &[&str]| {
        let message = result.expect_err("bad input").to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message} lacks one of {parts:?}");
    };
    let mut model = load(&folder, None)?;
    let plain = LoraOptions::new(2);
    let layers = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<String>>());
    let mut add = |options: LoraOptions, parts: &[&str]| fails(model.add_lora(&options, 1), parts);
    add(LoraOptions { rank: 0, ..plain.clone() }, &["a rank of 0", "at least 1"]);
    add(LoraOptions { alpha: f64::NAN, ..plain.clone() }, &["alpha = NaN"]);
    add(LoraOptions { layers: layers(&[]), ..plain.clone() }, &["layers []"]);
    let known = ["'c_attn'", "down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj"];
    add(LoraOptions { layers: layers(&["q_proj", "c_attn"]), ..plain.clone() }, &known);
    // An end of a name is no layer's.
    add(LoraOptions { layers: layers(&["proj"]), ..plain.clone() }, &["'proj'"]);
    fails(model.save_lora(cases.path().join("x"), ""), &["without adapters"]);
    model.add_lora(&plain, 1)?;
    fails(model.add_lora(&plain, 1), &["a model with adapters of rank 2", "merge_lora"]);
    fails(model.save(cases.path().join("x")), &["merge_lora", "save_lora"]);

    let out = cases.path().join("adapter");
    model.save_lora(&out, "")?;
    let load_lora = |parts: &[&str]| {
        let error = load(&folder, None).and_then(|mut model| model.load_lora(&out)).expect_err("bad input");
        assert!(matches!(error, Error::File { .. }), "{error}");
        fails(Err(error), parts);
    };
    let config = out.join("adapter_config.json");
    let text = fs::read_to_string(&config).unwrap();
    for (from, to, parts) in [
        ("\"use_dora\": false", "\"use_dora\": true", ["use_dora = true", "use_dora = false"]),
        ("\"LORA\"", "\"IA3\"", ["peft_type = \"IA3\"", "peft_type = \"LORA\""]),
        ("\"bias\": \"none\"", "\"bias\": \"all\"", ["bias = \"all\"", "bias = \"none\""]),
        ("\"r\": 2", "\"r\": 0", ["r = 0", "at least 1"]),
        ("\"r\": 2", "\"r\": 3", ["has shape", "in place of [3, 32]"]),
        (
            "\"rank_pattern\": {}",
            "\"rank_pattern\": {\"q_proj\": 4}",
            ["rank_pattern = {", "rank_pattern = null"],
        ),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&config, text.replace(from, to)).unwrap();
        load_lora(&parts);
    }
    // An expression in place of a list: the layers are those of the file.
    let start = text.find("\"target_modules\": [").unwrap();
    let end = start + text[start..].find(']').unwrap() + 1;
    let expression = format!("{}\"target_modules\": \".*(q|v)_proj\"{}", &text[..start], &text[end..]);
    fs::write(&config, expression).unwrap();
    let mut loaded = load(&folder, None)?;
    loaded.load_lora(&out)?;
    assert_eq!(bits(&loaded)?, bits(&model)?);
    fs::write(&config, &text).unwrap();
    let weights = out.join("adapter_model.safetensors");
    let stored = Tensor::read_safetensors(&weights, &Device::cpu())?;
    let renamed: Vec<(String, &Tensor)> =
        stored.iter().map(|(name, x)| (name.replace("0.self_attn.q_proj.lora_B", "9.q.lora_B"), x)).collect();
    let renamed: Vec<(&str, &Tensor)> = renamed.iter().map(|(name, x)| (name.as_str(), *x)).collect();
    Tensor::write_safetensors(&weights, &renamed, &[])?;
    load_lora(&["q_proj.lora_B.weight' is missing", "9.q.lora_B.weight' is of no layer"]);
    fs::remove_file(&weights).unwrap();
    load_lora(&["adapter_model.safetensors", "no such file"]);
    fs::remove_file(&config).unwrap();
    load_lora(&["adapter_config.json"]);

    // Adapters belong to weights.
    let hash = |name: &str| Decoder::hash_of_weights(cases.path().join(name));
    assert_eq!(hash("llama2")?, hash("llama2")?);
    assert_ne!(hash("llama2")?, hash("llama3")?);
    Ok(())
}
