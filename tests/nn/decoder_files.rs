//! Folders of decoders: dtypes, names, round trips, and damaged folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use selvedge::nn::{Decoder, DecoderOptions, Module, Variable};
use selvedge::{DType, Device, Error, Result, Tensor};

use crate::decoder_cases::{NAMES, unpacked};

type Tensors = BTreeMap<String, Tensor>;

fn load(folder: &Path) -> Result<Decoder> {
    Decoder::load(folder, &Device::cpu(), &DecoderOptions::default())
}

fn read(folder: &Path) -> Result<Tensors> {
    let path = folder.join("model.safetensors");
    Ok(Tensor::read_safetensors(path, &Device::cpu())?.into_iter().collect())
}

fn write(folder: &Path, tensors: &Tensors) -> Result<()> {
    let listed: Vec<(&str, &Tensor)> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    Tensor::write_safetensors(folder.join("model.safetensors"), &listed, &[("format", "pt")])
}

fn logits(model: &Decoder) -> Result<Vec<f32>> {
    let ids = Tensor::new([[1i64, 5, 2, 7]], &Device::cpu())?;
    model.forward(&Variable::new(ids))?.tensor().to_vec::<f32>()
}

#[test]
fn a_saved_decoder_has_the_bytes_that_it_was_loaded_from() -> Result<()> {
    let (cases, out) = (unpacked(), unpacked());
    for name in NAMES {
        let (folder, copy) = (cases.path().join(name), out.path().join(format!("{name}-saved")));
        let stored = if name == "bf16" { DType::BF16 } else { DType::F32 };
        let options = DecoderOptions { dtype: Some(stored), ..DecoderOptions::default() };
        Decoder::load(&folder, &Device::cpu(), &options)?.save(&copy)?;
        let original: Tensors = match name {
            "llama3" => {
                let index = folder.join("model.safetensors.index.json");
                Tensor::read_safetensors(index, &Device::cpu())?.into_iter().collect()
            }
            _ => read(&folder)?,
        };
        let saved = read(&copy)?;
        assert_eq!(original.keys().collect::<Vec<_>>(), saved.keys().collect::<Vec<_>>(), "{name}");
        for (tensor, wanted) in &original {
            assert_eq!(saved[tensor].dtype(), wanted.dtype(), "{name}: {tensor}");
            assert_eq!(saved[tensor].to_bytes()?, wanted.to_bytes()?, "{name}: {tensor}");
        }
        for file in ["config.json", "generation_config.json"] {
            assert_eq!(fs::read(copy.join(file)).unwrap(), fs::read(folder.join(file)).unwrap(), "{name}");
        }
        let again = out.path().join(format!("{name}-again"));
        Decoder::load(&copy, &Device::cpu(), &options)?.save(&again)?;
        let bytes = |folder: &Path| fs::read(folder.join("model.safetensors")).unwrap();
        assert_eq!(bytes(&copy), bytes(&again), "{name}");
    }
    Ok(())
}

#[test]
fn a_decoder_saved_over_shards_is_what_loads() -> Result<()> {
    let folder = unpacked();
    let (folder, other) = (folder.path().join("llama3"), folder.path().join("mistral"));
    let before = logits(&load(&folder)?)?;
    // The same folder with the weights of another model, of its own configuration.
    load(&other)?.save(&folder)?;
    assert_eq!(logits(&load(&folder)?)?, logits(&load(&other)?)?);
    assert_ne!(logits(&load(&folder)?)?, before);
    assert!(!folder.join("model.safetensors.index.json").exists());
    Ok(())
}

#[test]
fn a_saved_decoder_of_another_dtype_names_it() -> Result<()> {
    let cases = unpacked();
    let (folder, copy) = (cases.path().join("bf16"), cases.path().join("saved"));
    let model = load(&folder)?;
    // The CPU widens 16 bits.
    assert_eq!(model.dtype(), DType::F32);
    model.save(&copy)?;
    let config: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(copy.join("config.json")).unwrap()).unwrap();
    let mut original: serde_json::Value = serde_json::from_str(model.config().json()).unwrap();
    assert_eq!((&config["dtype"], &original["dtype"]), (&"float32".into(), &"bfloat16".into()));
    original["dtype"] = "float32".into();
    assert_eq!(config, original);
    assert_eq!(logits(&load(&copy)?)?, logits(&model)?);
    Ok(())
}

#[test]
fn a_mapped_folder_has_the_values_of_a_read_one() -> Result<()> {
    let cases = unpacked();
    for name in ["gpt2", "llama3"] {
        let folder = cases.path().join(name);
        // SAFETY: no other thread or process knows the folder.
        let mapped = unsafe { Decoder::load_mapped(&folder, &Device::cpu(), &DecoderOptions::default()) }?;
        assert_eq!(logits(&mapped)?, logits(&load(&folder)?)?);
    }
    Ok(())
}

#[test]
fn names_without_prefix_masks_and_copies_of_a_tied_head_load() -> Result<()> {
    let cases = unpacked();
    for (name, prefix, computed) in [
        (
            "gpt2",
            "transformer.",
            &["h.0.attn.bias", "transformer.h.1.attn.masked_bias", "lm_head.weight"][..],
        ),
        ("qwen3", "model.", &["layers.0.self_attn.rotary_emb.inv_freq"][..]),
    ] {
        let folder = cases.path().join(name);
        let wanted = logits(&load(&folder)?)?;
        let mut tensors: Tensors = read(&folder)?
            .into_iter()
            .map(|(name, tensor)| (name.strip_prefix(prefix).unwrap_or(&name).to_owned(), tensor))
            .collect();
        for name in computed {
            tensors.insert((*name).to_owned(), Tensor::zeros(&[3], DType::U8, &Device::cpu())?);
        }
        write(&folder, &tensors)?;
        assert_eq!(logits(&load(&folder)?)?, wanted, "{name}");
    }
    Ok(())
}

#[test]
fn one_error_names_all_tensors_that_do_not_fit() -> Result<()> {
    let cases = unpacked();
    let folder = cases.path().join("llama2");
    let mut tensors = read(&folder)?;
    tensors.remove("model.norm.weight");
    tensors.remove("lm_head.weight");
    let cpu = Device::cpu();
    tensors.insert("model.layers.9.extra.weight".to_owned(), Tensor::zeros(&[2], DType::F32, &cpu)?);
    tensors.insert("model.embed_tokens.weight".to_owned(), Tensor::zeros(&[5, 32], DType::F32, &cpu)?);
    let name = "model.layers.0.input_layernorm.weight";
    tensors.insert(name.to_owned(), Tensor::zeros(&[32], DType::I32, &cpu)?);
    let gate = tensors["model.layers.1.mlp.up_proj.weight"].clone();
    tensors.insert("layers.1.mlp.up_proj.weight".to_owned(), gate);
    write(&folder, &tensors)?;
    let error = load(&folder).map(drop).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
    let message = error.to_string();
    for part in [
        "'model.norm.weight' is missing",
        "'lm_head.weight' is missing",
        "'model.layers.9.extra.weight' is extra",
        "'model.embed_tokens.weight' has shape [5, 32] in place of [128, 32]",
        "'model.layers.0.input_layernorm.weight' has dtype I32",
        "again",
    ] {
        assert!(message.contains(part), "{message} lacks {part}");
    }
    Ok(())
}

#[test]
fn damaged_folders_are_errors() -> Result<()> {
    let cases = unpacked();
    let refused = |folder: &Path, parts: &[&str]| {
        let message = load(folder).map(drop).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message} lacks one of {parts:?}");
    };
    refused(&cases.path().join("nowhere"), &["config.json"]);

    let folder = cases.path().join("mistral");
    let weights = folder.join("model.safetensors");
    let bytes = fs::read(&weights).unwrap();
    fs::write(&weights, &bytes[..bytes.len() / 2]).unwrap();
    refused(&folder, &["model.safetensors", "truncated"]);
    fs::remove_file(&weights).unwrap();
    refused(&folder, &["no weights", "model.safetensors"]);
    fs::write(folder.join("pytorch_model.bin"), b"\x80\x02").unwrap();
    refused(&folder, &["pytorch_model.bin", "never read", "save_pretrained"]);

    let folder = cases.path().join("llama3");
    let index = folder.join("model.safetensors.index.json");
    let text = fs::read_to_string(&index).unwrap();
    let shard = "model-00002-of-00002.safetensors";
    for outside in ["../llama2/model.safetensors", "/etc/hostname"] {
        fs::write(&index, text.replacen(shard, outside, 1)).unwrap();
        refused(&folder, &[outside, "in the index's folder"]);
    }
    fs::write(&index, text.replace(shard, "other.safetensors")).unwrap();
    refused(&folder, &["other.safetensors"]);
    fs::write(&index, &text).unwrap();
    load(&folder)?;

    let folder = cases.path().join("qwen2");
    for dtype in [DType::I64, DType::C64] {
        let options = DecoderOptions { dtype: Some(dtype), ..DecoderOptions::default() };
        let message = Decoder::load(&folder, &Device::cpu(), &options).map(drop).unwrap_err().to_string();
        assert!(message.contains("dtype") && message.contains("bf16"), "{message}");
    }
    Ok(())
}

/// The cache of Hugging Face's programs has links to files that are named by their hashes.
#[cfg(unix)]
#[test]
fn links_of_a_hugging_face_cache_are_followed() -> Result<()> {
    let cases = unpacked();
    let (snapshot, blobs) = (cases.path().join("snapshot"), cases.path().join("blobs"));
    for folder in [&snapshot, &blobs] {
        fs::create_dir(folder).unwrap();
    }
    let folder = cases.path().join("llama3");
    for (hash, entry) in fs::read_dir(&folder).unwrap().enumerate() {
        let path = entry.unwrap().path();
        let blob = blobs.join(hash.to_string());
        fs::copy(&path, &blob).unwrap();
        std::os::unix::fs::symlink(&blob, snapshot.join(path.file_name().unwrap())).unwrap();
    }
    assert_eq!(logits(&load(&snapshot)?)?, logits(&load(&folder)?)?);
    Ok(())
}
