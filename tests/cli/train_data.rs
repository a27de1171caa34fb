//! `selvedge train --data`: runs on files of ids, the sizes of GPT-2, and schedules of the learning rate.

use selvedge::DType;
use selvedge::nn::{TokenFormat, TokenWriter};

use super::{FAILED_FOR_INPUT, Folder, fails, json, succeeds};

const CONFIG: &str = r#"{"vocab_size": 300, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}"#;

/// Writes a file of ids below `vocab_size`.
fn ids(folder: &Folder, name: &str, count: u32, vocab_size: u32) -> String {
    let path = folder.file(name);
    let mut writer = TokenWriter::create(&path, TokenFormat::Llmc, DType::U16, None).unwrap();
    writer.write(&(0..count).map(|at| at * 13 % vocab_size).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    path
}

/// The arguments of a small run, without its data.
fn small(folder: &Folder) -> Vec<String> {
    let config = folder.file("config.json");
    std::fs::write(&config, CONFIG).unwrap();
    let first =
        ["train", "--device", "cpu", "--model", &config, "--batch", "4", "--warmup", "2", "--every", "4"];
    first.map(str::to_owned).to_vec()
}

fn words<'a>(first: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    first.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

fn model(folder: &Folder, run: &str, step: u64) -> Vec<u8> {
    std::fs::read(folder.file(&format!("{run}/checkpoint_step_{step:06}/model.safetensors"))).unwrap()
}

#[test]
fn a_run_on_token_files_continues_to_the_same_bits_and_writes_samples() {
    let folder = Folder::new("train-data");
    let text = folder.file("text.txt");
    std::fs::write(&text, "it was the best of times, it was the worst of times\n".repeat(60)).unwrap();
    let (tokenizer, data) = (folder.file("tokenizer"), folder.file("train.bin"));
    succeeds(&["tokenize", "--train", "--vocab", "270", &text, "--out", &tokenizer]);
    let tokenize = ["tokenize", &text, "--tokenizer", &tokenizer, "--shard", "300", "--out", &data, "--json"];
    let report = json(&succeeds(&tokenize));
    let files: Vec<&str> =
        report["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    let (validation, data) = files.split_last().unwrap();
    assert!(data.len() > 1, "{files:?}");

    let first = small(&folder);
    let [whole, run] = ["whole", "run"].map(|name| folder.file(name));
    let options = [&["--data"], data, &["--validation", validation, "--tokenizer", &tokenizer]].concat();
    let options = [&options[..], &["--sample", "8", "--schedule", "constant", "--json", "--run"]].concat();
    let of = |run: &str, steps: &str| {
        json(&succeeds(&words(&first, &[&options[..], &[run, "--steps", steps]].concat())))
    };
    let at_once = of(&whole, "12");
    assert_eq!((&at_once["ids"], &at_once["vocab_size"]), (&report["ids"], &report["vocab_size"]));
    assert_eq!(at_once["model"]["vocab_size"], report["vocab_size"]);
    let held = report["ids"].as_u64().unwrap() - 300 * data.len() as u64;
    assert_eq!((&at_once["validation_ids"], &at_once["has_tokenizer"]), (&held.into(), &true.into()));
    assert!(!at_once["sample_after"].as_str().unwrap().is_empty());

    let mapped = folder.file("mapped");
    let map = |more: &[&str]| json(&succeeds(&words(&first, &[&["--map"], &options[..], more].concat())));
    assert_eq!(map(&[&mapped, "--steps", "2"])["losses"][1], at_once["losses"][1]);
    let more = json(&succeeds(&["train", "--run", &mapped, "--resume", "--steps", "3", "--json"]));
    assert_eq!(more["losses"][0], at_once["losses"][2]);
    let begun = of(&run, "6");
    let resumed = json(&succeeds(&["train", "--run", &run, "--resume", "--steps", "12", "--json"]));
    let losses = |report: &serde_json::Value| report["losses"].as_array().unwrap().clone();
    assert_eq!([losses(&begun), losses(&resumed)].concat(), losses(&at_once));
    assert_eq!(model(&folder, "run", 12), model(&folder, "whole", 12));
    assert_eq!(resumed["sample_after"], at_once["sample_after"]);

    // The prompt of the printed command is in the vocabulary.
    let text = succeeds(&["train", "--run", &run, "--resume", "--steps", "12"]);
    assert!(text.contains("--prompt it") && text.contains("of them for evaluations"), "{text}");
    let generated =
        succeeds(&["generate", "--run", &run, "--device", "cpu", "--prompt", "it", "--length", "3"]);
    assert!(generated.starts_with("it"), "{generated}");
    let evaluated = json(&succeeds(&["eval", "--run", &run, "--device", "cpu", "--json"]));
    assert_eq!(evaluated["is_text_of_run"], true);
    assert!(evaluated["ids"].as_u64().unwrap() <= held);

    // Another division, other files and another tokenizer are other runs.
    let resume = ["train", "--run", &run, "--resume", "--steps", "14"];
    let refused =
        |more: &[&str], parts: &[&str]| fails(FAILED_FOR_INPUT, &[&resume[..], more].concat(), parts);
    refused(&["--data", data[0]], &["hash", "--force"]);
    refused(&["--text", &text_path(&folder)], &["--text for a run on files of ids", "--data"]);
    refused(&["--tokenizer", "byte"], &["--tokenizer byte", "subwords"]);
    succeeds(&[&resume[..], &["--tokenizer", &tokenizer]].concat());
    std::fs::remove_file(validation).unwrap();
    refused(&[], &["train_", "--data and --validation name where"]);
}

fn text_path(folder: &Folder) -> String {
    folder.file("text.txt")
}

#[test]
fn a_run_without_a_tokenizer_trains_and_evaluates_but_writes_no_text() {
    let folder = Folder::new("train-data-ids");
    let (data, run) = (ids(&folder, "a.bin", 900, 297), folder.file("run"));
    let first = small(&folder);
    let text = succeeds(&words(&first, &["--data", &data, "--run", &run, "--steps", "8"]));
    assert_eq!(text.matches("samples").count(), 1, "{text}");
    assert!(text.contains("--tokenizer") && text.contains("90 of them for evaluations"), "{text}");
    for absent in ["A sample", "selvedge generate", "distinct"] {
        assert!(!text.contains(absent), "'{absent}' is in: {text}");
    }
    let resumed = json(&succeeds(&["train", "--run", &run, "--resume", "--steps", "9", "--json"]));
    assert_eq!((&resumed["has_tokenizer"], &resumed["sample_after"]), (&false.into(), &"".into()));
    assert_eq!(resumed["model"]["vocab_size"], 300);
    let generate = ["generate", "--run", &run, "--device", "cpu"];
    fails(FAILED_FOR_INPUT, &generate, &["without a tokenizer", "--tokenizer"]);
    let eval = ["eval", "--run", &run, "--device", "cpu", "--json"];
    assert_eq!(json(&succeeds(&eval))["ids"], 80);
    // Other files of ids count as a whole.
    let other = ids(&folder, "b.bin", 321, 200);
    let evaluated = json(&succeeds(&[&eval[..], &["--data", &other]].concat()));
    assert_eq!((&evaluated["ids"], &evaluated["is_text_of_run"]), (&320.into(), &false.into()));
    let large = ids(&folder, "c.bin", 900, 400);
    fails(FAILED_FOR_INPUT, &[&eval[..5], &["--data", &large]].concat(), &["the id 3", "ids below 300"]);
    std::fs::write(folder.file("text.txt"), "some text").unwrap();
    let text = folder.file("text.txt");
    fails(FAILED_FOR_INPUT, &[&eval[..5], &["--text", &text]].concat(), &["text.txt", "without a tokenizer"]);

    // The smallest model has the ids of the files.
    let few = ids(&folder, "few.bin", 600, 5);
    let tiny =
        ["train", "--device", "cpu", "--context", "4", "--batch", "1", "--steps", "1", "--json", "--run"];
    let tiny = json(&succeeds(&[&tiny[..], &[&folder.file("tiny"), "--data", &few]].concat()));
    assert_eq!(tiny["model"]["vocab_size"], 5);
}

#[test]
fn bad_data_is_an_error_of_both_sides() {
    let folder = Folder::new("train-data-bad");
    let first = small(&folder);
    let run = folder.file("run");
    let refused = |more: &[&str], parts: &[&str]| {
        fails(FAILED_FOR_INPUT, &words(&first, &[&["--run", &run], more].concat()), parts);
    };
    let data = ids(&folder, "a.bin", 900, 301);
    refused(&["--data", &data], &["the id 300", "ids below 300"]);
    let data = ids(&folder, "a.bin", 900, 300);
    refused(&["--data", &data, "--tokenizer", "byte"], &["the id 29", "ids below 256"]);
    refused(&["--data", &data, "--tokenizer", "char"], &["--tokenizer char with --data", "the folder"]);
    refused(&["--data", &data, "--tokenizer", &folder.file("none")], &["none", "no such folder"]);
    refused(&["--data", &data, "--text", &data], &["--text", "cannot be used with"]);
    refused(&["--validation", &data], &["--data"]);
    refused(&["--data", &folder.file("missing.bin")], &["missing.bin"]);
    let short = ids(&folder, "short.bin", 16, 300);
    refused(&["--data", &data, "--validation", &short], &["16 ids in the validation part", "at least 17"]);
    std::fs::write(folder.file("odd.bin"), [1, 2, 3]).unwrap();
    refused(&["--data", &folder.file("odd.bin")], &["odd.bin", "3 bytes"]);
}

#[test]
fn the_sizes_of_gpt2_have_names() {
    let folder = Folder::new("train-data-sizes");
    let (data, run) = (ids(&folder, "a.bin", 600, 300), folder.file("run"));
    succeeds(&words(&small(&folder), &["--data", &data, "--run", &run, "--steps", "1"]));
    let resume = ["train", "--run", &run, "--resume", "--model"];
    for (name, width, layers, heads) in [
        ("124M", 768, 12, 12),
        ("gpt2", 768, 12, 12),
        ("350M", 1024, 24, 16),
        ("774M", 1280, 36, 20),
        ("1558M", 1600, 48, 25),
    ] {
        let parts = [("n_embd", width, 16), ("n_layer", layers, 1), ("n_head", heads, 2)]
            .map(|(size, given, stored)| format!("{size} {given} in place of {stored}"));
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        fails(FAILED_FOR_INPUT, &[&resume[..], &[name]].concat(), &parts);
    }
    let unknown = [&resume[..], &["125M"]].concat();
    fails(FAILED_FOR_INPUT, &unknown, &["125M", "124M, 350M, 774M, 1558M"]);
}

#[test]
fn a_run_has_the_schedule_of_its_options() {
    let folder = Folder::new("train-data-schedule");
    let data = ids(&folder, "a.bin", 600, 300);
    let first = small(&folder);
    for (shape, given, last) in [
        ("cosine", &[][..], 1e-3),
        ("linear", &["--final-learning-rate", "0.002"], 2e-3),
        ("wsd", &["--final-learning-rate", "0"], 0.0),
        ("constant", &[], 1e-3),
    ] {
        let run = folder.file(shape);
        let more =
            ["--data", &data, "--run", &run, "--steps", "1", "--learning-rate", "0.01", "--schedule", shape];
        succeeds(&words(&first, &[&more, given].concat()));
        let info = std::fs::read_to_string(folder.file(&format!("{shape}/checkpoint_step_000001/info.json")));
        let training = &json(&info.unwrap())["training"];
        assert_eq!(
            (&training["schedule_shape"], &training["min_learning_rate"]),
            (&shape.into(), &last.into())
        );
    }
    let run = folder.file("constant");
    let resume =
        ["train", "--run", &run, "--resume", "--steps", "2", "--final-learning-rate", "0.002", "--force"];
    fails(FAILED_FOR_INPUT, &resume, &["--final-learning-rate 0.002", "the schedule constant"]);
    fails(
        FAILED_FOR_INPUT,
        &words(&first, &["--data", &data, "--schedule", "sine"]),
        &["sine", "cosine, constant, linear, wsd"],
    );
}

#[test]
fn a_padded_vocabulary_changes_no_loss_and_no_file() {
    let folder = Folder::new("train-data-padded");
    let data = ids(&folder, "a.bin", 600, 300);
    let first = small(&folder);
    let of = |name: &str, steps: &str, more: &[&str]| {
        let run = folder.file(name);
        let options = ["--data", &data, "--run", &run, "--steps", steps, "--json"];
        json(&succeeds(&words(&first, &[&options, more].concat())))
    };
    let (plain, padded) = (of("plain", "1", &[]), of("padded", "1", &["--pad-vocab", "128"]));
    assert_eq!((&padded["losses"], &padded["parameters"]), (&plain["losses"], &plain["parameters"]));
    assert_eq!(
        (&padded["model"]["vocab_multiple"], &padded["model"]["vocab_size"]),
        (&128.into(), &300.into())
    );
    assert_eq!(padded["evaluations"][0], plain["evaluations"][0]);
    assert_eq!(model(&folder, "padded", 1).len(), model(&folder, "plain", 1).len());
    let resume = ["train", "--run", &folder.file("padded"), "--resume", "--steps", "2"];
    let changed = [&resume[..], &["--pad-vocab", "64"]].concat();
    fails(FAILED_FOR_INPUT, &changed, &["--pad-vocab 64 in place of 128"]);
    succeeds(&resume);
    let zero = words(&first, &["--data", &data, "--pad-vocab", "0"]);
    fails(FAILED_FOR_INPUT, &zero, &["--pad-vocab"]);
}
