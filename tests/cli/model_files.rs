//! `selvedge eval --model` and `selvedge convert`: perplexities against a plain formula, and folders in other dtypes.

use std::path::Path;

use selvedge::nn::{Decoder, DecoderOptions, LogProbabilities, Module, SubwordTokenizer, Variable};
use selvedge::{DType, Device, Tensor};
use serde_json::Value;

use super::models::model;
use super::{FAILED, FAILED_FOR_INPUT, Folder, fails, json, succeeds};

const TEXT: &str = "it was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness";

/// The mean loss of ids, each in the first window that has it, one softmax after the other.
fn loss(model: &Decoder, ids: &[u32], context: usize, stride: usize) -> (f64, usize) {
    let (mut sum, mut count, mut next) = (0.0, 0, 0);
    for start in (0..ids.len()).step_by(stride) {
        let end = ids.len().min(start + context);
        let read: Vec<i64> = ids[start..end].iter().map(|&id| i64::from(id)).collect();
        let input = Tensor::from_slice(&read, &[1, read.len()], &Device::cpu()).unwrap();
        let logits = model.forward(&Variable::new(input)).unwrap().tensor().to_vec::<f32>().unwrap();
        for (row, position) in logits.chunks_exact(128).zip(start + 1..end) {
            if position >= next {
                sum -= LogProbabilities::new(row, ids[position], 0).unwrap().drawn;
                count += 1;
            }
        }
        next = end;
        if end == ids.len() {
            break;
        }
    }
    (sum / count as f64, count)
}

#[test]
fn a_perplexity_is_that_of_windows_with_a_stride() {
    let folder = Folder::new("models-eval");
    let path = model(&folder, "llama2");
    let (text, tokens) = (folder.file("text.txt"), folder.file("ids.npy"));
    std::fs::write(&text, TEXT).unwrap();
    succeeds(&["tokenize", &text, "--tokenizer", &path, "--out", &tokens]);
    let loaded = Decoder::load(&path, &Device::cpu(), &DecoderOptions::default()).unwrap();
    let ids = SubwordTokenizer::from_folder(&path).unwrap().encode_prompt(TEXT).unwrap();
    let evaluate = |data: &str, more: &[&str]| {
        let first = ["eval", "--model", &path, "--device", "cpu", "--data", data];
        json(&succeeds(&[&first[..], more, &["--json"]].concat()))
    };
    for (context, stride) in [(64, 64), (64, 16), (20, 7), (2, 1)] {
        let [context_text, stride_text] = [context, stride].map(|count: usize| count.to_string());
        let found = evaluate(&text, &["--context", &context_text, "--stride", &stride_text]);
        let (wanted, count) = loss(&loaded, &ids, context, stride);
        let value = found["loss"].as_f64().unwrap();
        assert!((value - wanted).abs() < 1e-5 * wanted, "{context}, {stride}: {value}, wanted {wanted}");
        assert_eq!(found["ids"], count, "{context}, {stride}");
        assert_eq!(found["perplexity"].as_f64().unwrap(), value.exp());
    }
    // The defaults, and the ids with their end token.
    assert_eq!(evaluate(&text, &[])["loss"], evaluate(&text, &["--context", "64", "--stride", "64"])["loss"]);
    let wanted = loss(&loaded, &[&ids[..], &[2]].concat(), 64, 64).0;
    let found = evaluate(&tokens, &[])["loss"].as_f64().unwrap();
    assert!((found - wanted).abs() < 1e-5 * wanted, "{found}, wanted {wanted}");
    // Two texts are two sequences.
    let both = evaluate(&text, &[&text]);
    assert_eq!(both["ids"].as_u64(), evaluate(&text, &[])["ids"].as_u64().map(|count| 2 * count));

    let refused = |more: &[&str], parts: &[&str]| {
        fails(FAILED_FOR_INPUT, &[&["eval", "--model", &path, "--device", "cpu"], more].concat(), parts);
    };
    let short = folder.file("short.txt");
    std::fs::write(&short, "a").unwrap();
    refused(&[], &["no data", "--data"]);
    refused(&["--data", &short], &["short.txt", "1 id", "at least two"]);
    refused(&["--data", &text, "--context", "65"], &["a context of 65", "2 to 64"]);
    refused(&["--data", &text, "--context", "9", "--stride", "10"], &["a stride of 10", "the context, 9"]);
    refused(&["--data", &text, "--stride", "0"], &["--stride"]);
    refused(&["--data", &text, "--run", "x"], &["cannot be used with"]);
    // Without a model it is a run of `train` that reads the file.
    fails(FAILED_FOR_INPUT, &["eval", "--data", &text], &["a folder of checkpoints"]);
}

fn config(folder: &str) -> Value {
    json(&std::fs::read_to_string(Path::new(folder).join("config.json")).unwrap())
}

#[test]
fn a_converted_folder_has_the_model_in_another_dtype() {
    let folder = Folder::new("models-convert");
    let path = model(&folder, "llama2");
    let (narrow, wide) = (folder.file("narrow"), folder.file("wide"));
    let report = json(&succeeds(&["convert", &path, &narrow, "--dtype", "bf16", "--json"]));
    assert_eq!((&report["dtype"], &report["parameters"]), (&"bf16".into(), &27296.into()));
    assert_eq!(report["bytes"], 2 * 27296);
    assert_eq!(config(&narrow)["torch_dtype"], "bfloat16");
    let read = |folder: &str| {
        let file = Path::new(folder).join("model.safetensors");
        Tensor::read_safetensors(file, &Device::cpu()).unwrap()
    };
    for (name, tensor) in read(&path) {
        let found = read(&narrow).into_iter().find(|(found, _)| *found == name).unwrap().1;
        let wanted = tensor.cast(DType::BF16).unwrap();
        assert_eq!(
            (found.dtype(), found.to_bytes().unwrap()),
            (DType::BF16, wanted.to_bytes().unwrap()),
            "{name}"
        );
    }
    for name in ["tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
        let bytes = |folder: &str| std::fs::read(Path::new(folder).join(name)).unwrap();
        assert_eq!(bytes(&path), bytes(&narrow), "{name}");
    }
    let generate = ["--device", "cpu", "--length", "3", "--prompt", "a"];
    succeeds(&[&["generate", "--model", &narrow], &generate[..]].concat());

    // 16 bits to 32 and back give the same bytes.
    succeeds(&["convert", &narrow, &wide, "--dtype", "f32"]);
    assert_eq!(config(&wide)["torch_dtype"], "float32");
    let again = folder.file("again");
    succeeds(&["convert", &wide, &again, "--dtype", "bf16"]);
    let bytes = |folder: &str| std::fs::read(Path::new(folder).join("model.safetensors")).unwrap();
    assert_eq!(bytes(&again), bytes(&narrow));

    let refused = |from: &str, to: &str, more: &[&str], parts: &[&str]| {
        fails(FAILED_FOR_INPUT, &[&["convert", from, to, "--dtype", "f16"], more].concat(), parts);
    };
    refused(&path, &narrow, &[], &["narrow", "a folder that exists", "--force"]);
    refused(&path, &path, &["--force"], &["own folder"]);
    refused(&path, &Path::new(&path).join("config.json").display().to_string(), &["--force"], &["a file"]);
    refused(&folder.file("nowhere"), &folder.file("new"), &[], &["nowhere", "config.json"]);
    assert!(!Path::new(&folder.file("new")).exists());
    fails(FAILED_FOR_INPUT, &["convert", &path, &folder.file("new")], &["--dtype"]);
    fails(FAILED, &["convert", &path, "/sys/selvedge", "--dtype", "f16"], &["/sys/selvedge"]);
    // Shards that were there before do not win over the new file.
    let sharded = model(&folder, "llama3");
    succeeds(&["convert", &path, &sharded, "--dtype", "f16", "--force"]);
    assert_eq!(config(&sharded)["torch_dtype"], "float16");
    Decoder::load(&sharded, &Device::cpu(), &DecoderOptions::default()).unwrap();
    let left = std::fs::read_dir(&sharded).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("000")), "shards are left");
}
