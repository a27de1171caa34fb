//! `selvedge train --model FOLDER`: runs that begin from the weights of a published folder, stop and continue, and become a folder.

use std::path::Path;

use selvedge::nn::{Decoder, DecoderOptions, Module};
use selvedge::{Device, Tensor};
use serde_json::Value;

use super::models::model;
use super::{FAILED_FOR_INPUT, Folder, fails, json, succeeds};

const TEXT: &str = "it was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness\n";

/// Writes a text, and returns the arguments that train a model on it.
pub fn arguments(folder: &Folder, model: &str, more: &[&str]) -> Vec<String> {
    let text = folder.file("text.txt");
    std::fs::write(&text, TEXT.repeat(8)).unwrap();
    let first = [
        "train",
        "--device",
        "cpu",
        "--model",
        model,
        "--text",
        &text,
        "--batch",
        "2",
        "--context",
        "16",
        "--warmup",
        "1",
        "--learning-rate",
        "0.003",
        "--every",
        "2",
        "--sample",
        "8",
    ];
    first.iter().chain(more).map(|&word| word.to_owned()).collect()
}

pub fn train(folder: &Folder, model: &str, more: &[&str]) -> Value {
    let arguments = arguments(folder, model, &[more, &["--json"]].concat());
    json(&succeeds(&arguments.iter().map(String::as_str).collect::<Vec<_>>()))
}

fn refused(folder: &Folder, model: &str, more: &[&str], parts: &[&str]) {
    let arguments = arguments(folder, model, more);
    fails(FAILED_FOR_INPUT, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), parts);
}

/// Returns the bytes of the parameters of a run's last checkpoint.
pub fn parameters(run: &str, step: u64) -> Vec<u8> {
    std::fs::read(Path::new(run).join(format!("checkpoint_step_{step:06}/model.safetensors"))).unwrap()
}

fn losses(report: &Value) -> Vec<f64> {
    report["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap()).collect()
}

#[test]
fn a_run_from_a_folder_continues_to_the_same_bits_and_becomes_a_folder() {
    let folder = Folder::new("fine-tuning");
    let path = model(&folder, "llama2");
    let [whole, out, text] = ["whole", "out", "text.txt"].map(|name| folder.file(name));
    let report = train(&folder, &path, &["--run", &whole, "--steps", "8"]);
    let found = losses(&report);
    assert!(found.len() == 8 && found[7] < found[0] - 0.1, "{found:?}");
    assert_eq!(report["model"]["config"]["model_type"], "llama");
    assert_eq!(report["base"], path.as_str());
    assert_eq!(report["has_tokenizer"], true);
    assert!(!report["samples"].as_array().unwrap().is_empty());

    let whole_again = folder.file("again");
    let constant = ["--schedule", "constant", "--steps"];
    let at_once = train(&folder, &path, &[&["--run", &whole_again][..], &constant, &["8"]].concat());
    let parted = folder.file("parted");
    let first = train(&folder, &path, &[&["--run", &parted][..], &constant, &["4"]].concat());
    // The second part needs the base no more.
    std::fs::rename(&path, folder.file("moved")).unwrap();
    let resumed = ["train", "--run", &parted, "--resume", "--steps", "8", "--json"];
    let second = json(&succeeds(&resumed));
    assert_eq!([losses(&first), losses(&second)].concat(), losses(&at_once));
    assert_eq!(parameters(&parted, 8), parameters(&whole_again, 8));

    // The run has all that its use needs.
    let generate = ["--device", "cpu", "--prompt", "it was", "--length", "6", "--temperature", "0", "--json"];
    let of_run = json(&succeeds(&[&["generate", "--run", &whole][..], &generate].concat()));
    let evaluated = json(&succeeds(&["eval", "--run", &whole, "--text", &text, "--device", "cpu", "--json"]));
    let last = report["evaluations"].as_array().unwrap().last().unwrap()["validation_loss"].as_f64().unwrap();
    assert!((evaluated["loss"].as_f64().unwrap() - last).abs() < 0.5, "{evaluated}, {last}");
    let converted = json(&succeeds(&["convert", &whole, &out, "--json"]));
    assert_eq!((&converted["step"], &converted["dtype"]), (&8.into(), &"f32".into()));
    assert_eq!(converted["copied"], serde_json::json!(["tokenizer.json", "tokenizer_config.json"]));
    let of_folder = json(&succeeds(&[&["generate", "--model", &out][..], &generate].concat()));
    let sequence = &of_folder["sequences"][0];
    assert_eq!(of_run["text"], format!("it was{}", sequence["text"].as_str().unwrap()));
    let loaded = Decoder::load(&out, &Device::cpu(), &DecoderOptions::default()).unwrap().state_dict();
    let checkpoint = Path::new(&whole).join("checkpoint_step_000008/model.safetensors");
    for (name, tensor) in Tensor::read_safetensors(checkpoint, &Device::cpu()).unwrap() {
        assert_eq!(tensor.to_bytes().unwrap(), loaded[&name].to_bytes().unwrap(), "{name}");
    }
    let narrow = folder.file("narrow");
    let converted =
        json(&succeeds(&["convert", &whole, &narrow, "--step", "4", "--dtype", "bf16", "--json"]));
    assert_eq!((&converted["step"], &converted["dtype"]), (&4.into(), &"bf16".into()));
    let config = std::fs::read_to_string(Path::new(&narrow).join("config.json")).unwrap();
    assert_eq!(json(&config)["torch_dtype"], "bfloat16");
}

#[test]
fn the_options_of_a_run_hold_for_a_published_model() {
    let folder = Folder::new("fine-tuning-options");
    let path = model(&folder, "gpt2");
    let [run, text, ids] = ["run", "text.txt", "ids.bin"].map(|name| folder.file(name));
    let report = train(
        &folder,
        &path,
        &["--run", &run, "--steps", "2", "--dtype", "bf16", "--accumulation", "2", "--weight-decay", "0"],
    );
    assert_eq!(report["model"]["compute_dtype"], "bf16");
    succeeds(&["train", "--run", &run, "--resume", "--steps", "3", "--sample", "0", "--json"]);
    // Files of ids without a text, and the defaults.
    succeeds(&["tokenize", &text, "--tokenizer", &path, "--out", &ids]);
    let first =
        ["train", "--device", "cpu", "--model", &path, "--data", &ids, "--steps", "1", "--batch", "1"];
    let of_ids = folder.file("of-ids");
    let printed = succeeds(&[&first[..], &["--run", &of_ids, "--sample", "4"]].concat());
    for part in ["begins from", "context 48", "selvedge convert", "A sample after the training"] {
        assert!(printed.contains(part), "'{part}' is not in: {printed}");
    }
    let info = Path::new(&of_ids).join("checkpoint_step_000001/info.json");
    let info = json(&std::fs::read_to_string(info).unwrap());
    assert_eq!(info["training"]["context"], 48);
    std::fs::remove_file(Path::new(&path).join("tokenizer.json")).unwrap();
    let bare = json(&succeeds(&[&first[..], &["--run", &folder.file("bare"), "--json"]].concat()));
    assert_eq!(bare["has_tokenizer"], false);
}

#[test]
fn bad_input_of_a_fine_tuning_names_both_sides() {
    let folder = Folder::new("fine-tuning-bad");
    let other = model(&folder, "qwen3");
    let path = model(&folder, "llama2");
    let run = folder.file("run");
    let to = ["--run", run.as_str(), "--steps", "2"];
    let with = |more: &[&'static str]| [&to[..], more].concat();
    refused(&folder, &path, &with(&["--tokenizer", "char"]), &["--tokenizer char", "the folder's tokenizer"]);
    refused(&folder, &path, &with(&["--dropout", "0.1"]), &["--dropout with a published model"]);
    refused(&folder, &path, &with(&["--pad-vocab", "8"]), &["--pad-vocab with a published model"]);
    refused(&folder, &folder.file("nowhere"), &to, &["nowhere", "the folder of a published model"]);
    // A tokenizer of more ids than the embedding.
    let tokenizer = folder.file("tokenizer");
    std::fs::write(folder.file("text.txt"), TEXT.repeat(8)).unwrap();
    let bytes = ["tokenize", "--train", "--vocab", "260", &folder.file("text.txt"), "--out", &tokenizer];
    succeeds(&bytes);
    let wide = ["--tokenizer", tokenizer.as_str()];
    refused(
        &folder,
        &path,
        &[&to[..], &wide].concat(),
        &["a tokenizer of 260 ids", "at most the model's, 128"],
    );
    // Another model for a run.
    train(&folder, &path, &to);
    let resumed = |more: &[&str], parts: &[&str]| {
        let first = ["train", "--run", &run, "--resume", "--steps", "4"];
        fails(FAILED_FOR_INPUT, &[&first[..], more].concat(), parts);
    };
    resumed(&["--model", &other], &["with config", "the checkpoint's model"]);
    resumed(&["--model", "tiny"], &["n_embd", "the checkpoint's model"]);
    resumed(&["--dropout", "0.1"], &["--dropout with a published model"]);
    succeeds(&["train", "--run", &run, "--resume", "--steps", "3", "--model", &path, "--json"]);
    // Conversions.
    let out = folder.file("out");
    fails(
        FAILED_FOR_INPUT,
        &["convert", &path, &out, "--dtype", "f16", "--step", "2"],
        &["--step for", "a run"],
    );
    fails(
        FAILED_FOR_INPUT,
        &["convert", &run, &out, "--step", "7"],
        &["no checkpoint of step 7", "one of 2, 3"],
    );
    let of_scratch = folder.file("scratch");
    let text = folder.file("text.txt");
    let config = folder.file("config.json");
    let small = r#"{"vocab_size": 1, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 1}"#;
    std::fs::write(&config, small).unwrap();
    succeeds(&[
        "train",
        "--device",
        "cpu",
        "--text",
        &text,
        "--model",
        &config,
        "--batch",
        "2",
        "--steps",
        "1",
        "--sample",
        "0",
        "--run",
        &of_scratch,
    ]);
    fails(FAILED_FOR_INPUT, &["convert", &of_scratch, &out], &["new weights", "--model FOLDER"]);
    // Damaged folders.
    std::fs::remove_file(Path::new(&path).join("model.safetensors")).unwrap();
    let fresh = ["--run", &folder.file("fresh"), "--steps", "2"];
    refused(&folder, &path, &fresh, &["no weights", "model.safetensors"]);
    std::fs::remove_file(Path::new(&path).join("tokenizer.json")).unwrap();
    refused(&folder, &path, &fresh, &["no file of a tokenizer"]);
}

#[test]
fn adapters_of_a_run_are_written_apart_and_merged() {
    let folder = Folder::new("lora");
    let path = model(&folder, "llama2");
    let [whole, parted, adapter, merged, again] =
        ["whole", "parted", "adapter", "merged", "again"].map(|name| folder.file(name));
    let lora = ["--lora", "4", "--lora-layers", "q_proj,down_proj", "--learning-rate", "0.02"];
    let lora: Vec<&str> = [&lora[..], &["--schedule", "constant", "--warmup", "0"]].concat();
    let of = |run: &str, steps: &str| {
        let first = arguments(&folder, &path, &["--run", run, "--steps", steps, "--json"]);
        // The options of adapters replace those of the other runs.
        let kept = first.iter().map(String::as_str).take_while(|word| *word != "--warmup");
        let rest = ["--every", "2", "--sample", "4", "--run", run, "--steps", steps, "--json"];
        json(&succeeds(&kept.chain(rest).chain(lora.iter().copied()).collect::<Vec<_>>()))
    };
    let report = of(&whole, "8");
    let found = losses(&report);
    assert!(found.len() == 8 && found[7] < found[0], "{found:?}");
    assert_eq!(report["model"]["lora"]["rank"], 4);
    // Two layers: (32 + 32 + 96 + 32) · 4 or so, far fewer than the weights.
    let trained = report["trained_parameters"].as_u64().unwrap();
    assert!(trained * 5 < report["parameters"].as_u64().unwrap(), "{report}");
    of(&parted, "4");
    let resumed = ["train", "--run", &parted, "--resume", "--steps", "8", "--json"];
    succeeds(&resumed);
    assert_eq!(parameters(&parted, 8), parameters(&whole, 8));
    // The optimizer has no state of the weights.
    let size = |file: &str| std::fs::metadata(Path::new(&whole).join(file)).unwrap().len();
    let weights = std::fs::metadata(Path::new(&path).join("model.safetensors")).unwrap().len();
    assert!(size("checkpoint_step_000008/optimizer.safetensors") < weights);

    let report = json(&succeeds(&["convert", &whole, &adapter, "--json"]));
    assert_eq!((&report["is_adapter"], &report["parameters"]), (&true.into(), &trained.into()));
    let config = std::fs::read_to_string(Path::new(&adapter).join("adapter_config.json")).unwrap();
    assert_eq!(json(&config)["target_modules"], serde_json::json!(["q_proj", "down_proj"]));
    let report = json(&succeeds(&["convert", &whole, &merged, "--merge", "--json"]));
    assert_eq!((&report["is_adapter"], &report["dtype"]), (&false.into(), &"f32".into()));
    // Merged of the run and of the adapter's folder are the same bytes.
    succeeds(&["convert", &path, &again, "--lora", &adapter, "--dtype", "f32"]);
    let bytes = |folder: &str| std::fs::read(Path::new(folder).join("model.safetensors")).unwrap();
    assert_eq!(bytes(&merged), bytes(&again));
    assert_ne!(bytes(&merged), bytes(&path));

    let generate = ["--device", "cpu", "--prompt", "it was", "--length", "8", "--temperature", "0", "--json"];
    let text = |more: &[&str]| json(&succeeds(&[&["generate"], more, &generate[..]].concat()));
    let of_folder = text(&["--model", &merged])["sequences"][0]["text"].clone();
    assert_eq!(text(&["--model", &path, "--lora", &adapter])["sequences"][0]["text"], of_folder);
    assert_eq!(text(&["--run", &whole])["text"], format!("it was{}", of_folder.as_str().unwrap()));
    let data = folder.file("text.txt");
    let loss = |more: &[&str]| {
        let found =
            json(&succeeds(&[&["eval", "--device", "cpu", "--data", &data, "--json"], more].concat()));
        found["loss"].as_f64().unwrap()
    };
    let [base, with_adapter] = [loss(&["--model", &path]), loss(&["--model", &path, "--lora", &adapter])];
    assert!(with_adapter < base && with_adapter == loss(&["--model", &merged]), "{with_adapter}, {base}");

    // bf16 narrows the base, and adapters stay f32.
    let narrow = folder.file("narrow");
    train(&folder, &path, &["--run", &narrow, "--steps", "2", "--lora", "2", "--dtype", "bf16"]);
    let report = json(&succeeds(&["convert", &narrow, &folder.file("narrow-adapter"), "--json"]));
    assert_eq!(report["dtype"], "f32");
    succeeds(&["convert", &narrow, &folder.file("narrow-merged"), "--merge", "--dtype", "bf16"]);

    // Another base under the adapters.
    let refused = |arguments: &[&str], parts: &[&str]| fails(FAILED_FOR_INPUT, arguments, parts);
    let out = folder.file("out");
    refused(&["convert", &whole, &out, "--dtype", "bf16"], &["--dtype for adapters", "--merge"]);
    refused(&["convert", &path, &out, "--dtype", "bf16", "--merge"], &["--merge for", "a run"]);
    refused(&["convert", &whole, &out, "--lora", &adapter], &["--lora", "for a run", "--merge"]);
    let moved = folder.file("moved");
    std::fs::rename(&path, &moved).unwrap();
    refused(&["generate", "--run", &whole, "--device", "cpu"], &["llama2", "no weights"]);
    refused(&["train", "--run", &whole, "--resume", "--steps", "9"], &["llama2", "no weights"]);
    succeeds(&["train", "--run", &whole, "--resume", "--steps", "9", "--model", &moved, "--json"]);
    succeeds(&["generate", "--run", &whole, "--device", "cpu", "--length", "2"]);
    std::fs::copy(Path::new(&merged).join("model.safetensors"), Path::new(&moved).join("model.safetensors"))
        .unwrap();
    refused(
        &["generate", "--run", &whole, "--device", "cpu"],
        &["weights with the hash", "the base of the run's adapters"],
    );
}

#[test]
fn bad_adapters_name_both_sides() {
    let folder = Folder::new("lora-bad");
    let path = model(&folder, "gpt2");
    let run = folder.file("run");
    let to = ["--run", run.as_str(), "--steps", "2"];
    let with = |more: &[&'static str]| [&to[..], more].concat();
    refused(&folder, &path, &with(&["--lora", "0"]), &["a rank of 0", "at least 1"]);
    refused(&folder, &path, &with(&["--lora", "2", "--lora-alpha", "nan"]), &["alpha = NaN"]);
    refused(&folder, &path, &with(&["--lora-alpha", "3"]), &["--lora <RANK>"]);
    let known = ["'q_proj'", "c_attn, c_fc, c_proj"];
    refused(&folder, &path, &with(&["--lora", "2", "--lora-layers", "c_fc,q_proj"]), &known);
    refused(&folder, "tiny", &with(&["--lora", "2"]), &["--lora 2 for a model with new weights", "--model"]);
    train(&folder, &path, &with(&["--lora", "2"]));
    let resume = ["train", "--run", &run, "--resume", "--steps", "3"];
    let other = [&resume[..], &["--lora", "3"]].concat();
    fails(FAILED_FOR_INPUT, &other, &[r#""rank":3"#, r#""rank":2"#, "leave --lora out"]);
    succeeds(&[&resume[..], &["--lora", "2", "--json"]].concat());
    let adapter = folder.file("adapter");
    let generate = ["generate", "--model", &path, "--device", "cpu", "--prompt", "a", "--lora", &adapter];
    fails(FAILED_FOR_INPUT, &generate, &["adapter_config.json"]);
    fails(FAILED_FOR_INPUT, &["generate", "--lora", &adapter], &["--model"]);
    let plain = folder.file("plain");
    train(&folder, &path, &["--run", &plain, "--steps", "2"]);
    let merge = ["convert", &plain, &folder.file("out"), "--merge"];
    fails(FAILED_FOR_INPUT, &merge, &["--merge for a run without adapters", "--lora"]);
}
