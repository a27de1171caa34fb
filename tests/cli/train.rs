//! `selvedge train`, `generate` and `eval`: a small model from a text to its own text, and runs that stop and continue.

use super::{FAILED_FOR_INPUT, Folder, fails, json, succeeds, warns, xml};

const TEXT: &str = "it was the best of times, it was the worst of times, it was the age of wisdom,\nit was the age of \
     foolishness, it was the epoch of belief, it was the epoch of incredulity,\n";
const CONFIG: &str = r#"{"vocab_size": 1, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}"#;

/// A text, a configuration, and the arguments that train on them.
fn small(folder: &Folder) -> Vec<String> {
    let (text, config) = (folder.file("text.txt"), folder.file("config.json"));
    std::fs::write(&text, TEXT.repeat(4)).unwrap();
    std::fs::write(&config, CONFIG).unwrap();
    let options =
        ["--batch", "4", "--warmup", "2", "--learning-rate", "0.01", "--every", "4", "--sample", "20"];
    let first = ["train", "--device", "cpu", "--text", &text, "--model", &config];
    first.iter().chain(&options).map(|&word| word.to_owned()).collect()
}

fn with(first: &[String], more: &[&str]) -> Vec<String> {
    first.iter().cloned().chain(more.iter().map(|&word| word.to_owned())).collect()
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn a_model_trains_stops_continues_and_writes() {
    let folder = Folder::new("train");
    let train = small(&folder);
    let (whole, run) = (folder.file("whole"), folder.file("run"));
    let of = |more: &[&str]| json(&succeeds(&strs(&with(&train, more))));
    let at_once = of(&["--run", &whole, "--steps", "12", "--json"]);
    let losses: Vec<f64> =
        at_once["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap()).collect();
    assert!(losses.len() == 12 && losses[11] < losses[0], "{losses:?}");
    let evaluations = at_once["evaluations"].as_array().unwrap();
    assert_eq!(evaluations.iter().map(|e| e["step"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 4, 8, 12]);
    let loss = |at: usize| evaluations[at]["validation_loss"].as_f64().unwrap();
    assert!(loss(3) < loss(0), "{evaluations:?}");

    // The last evaluation's is the sample after the training.
    let steps: Vec<_> = at_once["samples"].as_array().unwrap().iter().map(|sample| &sample["step"]).collect();
    assert_eq!(steps, [4, 8]);

    // The schedule is that of the steps of the whole run in both parts.
    let text = succeeds(&strs(&with(&train, &["--run", &run, "--steps", "12"])));
    for part in [
        "entropy of single ids",
        "step",
        "validation",
        "A sample after step 4:",
        "A sample after the training",
        "loss.svg",
    ] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let more = of(&["--run", &run, "--steps", "14", "--resume", "--json"]);
    assert_eq!((&more["first_step"], &more["last_step"]), (&12.into(), &14.into()));
    let picture = std::fs::read_to_string(folder.file("run/loss.svg")).unwrap();
    assert!(xml::texts(&picture).unwrap().iter().any(|text| text.contains("validation loss")));

    let generate = ["generate", "--run", &whole, "--device", "cpu", "--length", "30"];
    let greedy = |more: &[&str]| succeeds(&[&generate[..], more].concat());
    let first = greedy(&["--prompt", "it was", "--temperature", "0"]);
    assert!(first.starts_with("it was") && first.trim_end_matches('\n').chars().count() >= 30, "{first}");
    assert_eq!(first, greedy(&["--prompt", "it was", "--temperature", "0", "--seed", "7"]));
    let drawn = json(&greedy(&["--seed", "3", "--json"]));
    assert_eq!((&drawn["ids"], &drawn["step"]), (&30.into(), &12.into()));

    let narrow = folder.file("bf16");
    let of_bf16 = |more: &[&str]| of(&[&["--run", &narrow, "--dtype", "bf16", "--json"], more].concat());
    let begun = of_bf16(&["--steps", "4"]);
    assert_eq!(begun["model"]["compute_dtype"], "bf16");
    let (first, same) = (begun["losses"][3].as_f64().unwrap(), losses[3]);
    assert!(first != same && (first - same).abs() < 0.05, "{first} in bf16, {same} in f32");
    assert_eq!(of_bf16(&["--steps", "5", "--resume"])["last_step"], 5);
    let plain = with(&train, &["--run", &narrow, "--steps", "6", "--resume", "--dtype", "f32"]);
    fails(FAILED_FOR_INPUT, &strs(&plain), &["--dtype f32 in place of bf16"]);
    assert!(!succeeds(&["generate", "--run", &narrow, "--device", "cpu", "--length", "3"]).is_empty());

    let file = folder.file("text.txt");
    let evaluated = json(&succeeds(&["eval", "--run", &whole, "--text", &file, "--device", "cpu", "--json"]));
    assert!((evaluated["loss"].as_f64().unwrap() - loss(3)).abs() < 0.5, "{evaluated} {evaluations:?}");
}

#[test]
fn the_dropout_is_that_of_the_option_then_of_the_models_file() {
    let folder = Folder::new("train-dropout");
    let train = with(&small(&folder), &["--steps", "1", "--json"]);
    let file = folder.file("config.json");
    for (at, (in_file, option, wanted)) in
        [(None, None, 0.0), (Some(0.25), None, 0.25), (Some(0.25), Some("0"), 0.0), (None, Some("0.5"), 0.5)]
            .into_iter()
            .enumerate()
    {
        let dropout = in_file.map_or(String::new(), |p: f64| format!(r#", "resid_pdrop": {p}}}"#));
        std::fs::write(
            &file,
            if dropout.is_empty() { CONFIG.to_owned() } else { CONFIG.replace('}', &dropout) },
        )
        .unwrap();
        let option = option.map_or(vec![], |p| vec!["--dropout", p]);
        let run = folder.file(&format!("run-{at}"));
        let report = json(&succeeds(&strs(&with(&train, &[&["--run", &run], &option[..]].concat()))));
        assert_eq!(report["model"]["resid_pdrop"], wanted, "case {at}");
    }
}

/// The value of a line of the table at the end of a run.
fn row<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in: {text}")).trim()
}

/// Runs a line in a shell, in a folder.
#[cfg(unix)]
fn in_shell(folder: &Folder, line: &str) -> String {
    let mut command = std::process::Command::new("sh");
    let program = super::common::program();
    let path = [program.parent().unwrap().to_str().unwrap(), &std::env::var("PATH").unwrap()].join(":");
    super::common::hide_libraries(&mut command).args(["-c", line]).env("PATH", path).current_dir(&folder.0);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(unix)]
#[test]
fn the_commands_that_a_run_prints_run() {
    let folder = Folder::new("train-hints");
    std::fs::write(folder.file("my.txt"), "12 3454 6789 ".repeat(40)).unwrap();
    std::fs::write(folder.file("config.json"), CONFIG).unwrap();
    let options =
        "--model config.json --batch 2 --context 8 --learning-rate 0.0005 --every 2 --sample 5 --device cpu";
    let line = format!("selvedge train --text my.txt {options} --steps 4 --run 'it'\\''s a run'");
    let first = in_shell(&folder, &line);
    let generate = row(&first, "continue a text");
    assert_eq!(generate, r"selvedge generate --run 'it'\''s a run' --prompt 12");
    assert!(in_shell(&folder, generate).starts_with("12"));
    in_shell(&folder, "selvedge generate --run \"it's a run\" --length 3");
    let train_on = row(&first, "train on");
    let second = in_shell(&folder, train_on);
    assert_eq!(row(&second, "resumed"), "after step 4 of 8");
    assert_eq!(row(&second, "changed"), "--steps 8 in place of 4");
    in_shell(&folder, row(&second, "continue a text"));
    in_shell(&folder, row(&second, "train on"));
    // The text and the model are found from any folder, and evaluated by default.
    let evaluated = in_shell(&folder, "cd / && selvedge eval --json --run \"$OLDPWD/it's a run\"");
    assert_eq!(json(&evaluated)["is_text_of_run"], true);
}

#[cfg(unix)]
#[test]
fn a_run_that_a_signal_ended_is_continued_to_its_last_step() {
    let folder = Folder::new("train-hint-signal");
    let run = folder.file("run");
    let mut command = std::process::Command::new(super::common::program());
    let train = with(&small(&folder), &["--run", &run, "--steps", "100000"]);
    let child = command.args(&train).stdout(std::process::Stdio::piped()).spawn().unwrap();
    while latest(&run) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(row(&text, "train on").ends_with("--resume --steps 100000"), "{text}");
}

#[test]
fn a_resume_takes_the_options_of_the_run() {
    let folder = Folder::new("train-options");
    let train = small(&folder);
    let chosen = [
        "--batch",
        "2",
        "--context",
        "8",
        "--accumulation",
        "2",
        "--weight-decay",
        "0.2",
        "--max-norm",
        "0.5",
        "--dropout",
        "0.1",
        "--seed",
        "7",
        "--warmup",
        "3",
        "--dtype",
        "bf16",
        "--json",
    ];
    let all = with(&train[..7], &chosen);
    let all = with(&all, &["--learning-rate", "0.01", "--every", "3", "--sample", "6"]);
    let [repeated, stored] = ["repeated", "stored"].map(|name| folder.file(name));
    for run in [&repeated, &stored] {
        succeeds(&strs(&with(&all, &["--run", run, "--steps", "4"])));
    }
    let of_all = json(&succeeds(&strs(&with(&all, &["--run", &repeated, "--resume", "--steps", "9"]))));
    let of_stored = json(&succeeds(&["train", "--run", &stored, "--resume", "--steps", "9", "--json"]));
    for name in ["losses", "evaluations", "samples", "sample_after", "model", "last_step", "changed"] {
        assert_eq!(of_all[name], of_stored[name], "{name}");
    }
    assert_eq!(of_stored["changed"], serde_json::json!(["--steps 9 in place of 4"]));
    let evaluated = of_stored["evaluations"].as_array().unwrap().iter().map(|one| one["step"].clone());
    assert_eq!(evaluated.collect::<Vec<_>>(), [6, 9]);

    // Each option that changes the course is named, and --force allows it.
    let resume = ["train", "--run", &stored, "--resume"];
    for (option, value, before) in [
        ("--batch", "3", "2"),
        ("--context", "9", "8"),
        ("--accumulation", "1", "2"),
        ("--learning-rate", "0.02", "0.01"),
        ("--final-learning-rate", "0", "0.001"),
        ("--schedule", "linear", "cosine"),
        ("--warmup", "2", "3"),
        ("--weight-decay", "0.1", "0.2"),
        ("--max-norm", "0", "0.5"),
        ("--dropout", "0", "0.1"),
        ("--seed", "8", "7"),
        ("--dtype", "f16", "bf16"),
    ] {
        let named = format!("{option} {value} in place of {before}");
        let words = [&resume[..], &["--step", "9", "--steps", "10", option, value]].concat();
        fails(FAILED_FOR_INPUT, &words, &[&named, "after step 9", "--force"]);
        let forced = json(&succeeds(&[&words[..], &["--force", "--json"]].concat()));
        assert_eq!((&forced["changed"][0], &forced["last_step"]), (&named.into(), &10.into()));
    }
    fails(
        FAILED_FOR_INPUT,
        &[&resume[..], &["--tokenizer", "byte"]].concat(),
        &["--tokenizer byte", "characters"],
    );
    fails(FAILED_FOR_INPUT, &[&resume[..], &["--model", "tiny"]].concat(), &["n_layer 4 in place of 1"]);
    let text = succeeds(&[&resume[..], &["--steps", "10", "--every", "5", "--step", "9"]].concat());
    assert!(text.contains("--every 5 in place of 3"), "{text}");
}

/// Changes the information of a checkpoint, and its hash.
fn change_info(checkpoint: &str, change: impl FnOnce(&mut serde_json::Value)) {
    use sha2::{Digest, Sha256};
    let [info, sums] = ["info.json", "SHA256SUMS"].map(|file| format!("{checkpoint}/{file}"));
    let text = std::fs::read_to_string(&info).unwrap();
    let mut value = json(&text);
    change(&mut value);
    let changed = value.to_string();
    let [before, after] = [&text, &changed].map(|text| format!("{:x}", Sha256::digest(text)));
    std::fs::write(&info, changed).unwrap();
    let list = std::fs::read_to_string(&sums).unwrap();
    assert!(list.contains(&before), "{list}");
    std::fs::write(&sums, list.replace(&before, &after)).unwrap();
}

#[test]
fn a_checkpoint_without_options_resumes_with_a_word() {
    let folder = Folder::new("train-old");
    let run = folder.file("run");
    succeeds(&strs(&with(&small(&folder), &["--run", &run, "--steps", "4"])));
    change_info(&folder.file("run/checkpoint_step_000004"), |info| {
        assert!(info.as_object_mut().unwrap().remove("program").is_some());
    });
    let resume = ["train", "--run", &run, "--resume", "--device", "cpu", "--steps", "5"];
    fails(FAILED_FOR_INPUT, &resume, &["does not name its text", "--text"]);
    let eval = ["eval", "--run", &run, "--device", "cpu", "--json"];
    fails_with_json(&eval, &["does not name its text", "--text"]);
    let file = folder.file("text.txt");
    assert_eq!(json(&succeeds(&[&eval[..], &["--text", &file]].concat()))["is_text_of_run"], true);
    assert!(!succeeds(&["generate", "--run", &run, "--device", "cpu", "--length", "3"]).is_empty());
    let text = succeeds(&[&resume[..], &["--text", &file]].concat());
    assert!(text.contains("the checkpoint is of an older version"), "{text}");
    // The batch is in every checkpoint, and from now on the text is.
    let value = json(&succeeds(&["train", "--run", &run, "--resume", "--steps", "6", "--json"]));
    assert_eq!((&value["last_step"], value["changed"].as_array().unwrap().len()), (&6.into(), 1));
}

/// Runs what must fail for its input, and checks the message of its JSON.
fn fails_with_json(arguments: &[&str], parts: &[&str]) {
    let output = super::selvedge(arguments);
    let value = json(&String::from_utf8(output.stdout).unwrap());
    let message = value["error"]["message"].as_str().unwrap();
    assert_eq!(output.status.code(), Some(FAILED_FOR_INPUT), "{message}");
    for part in parts {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
}

#[test]
fn a_text_that_changed_is_not_evaluated_as_the_runs() {
    let folder = Folder::new("train-text");
    let run = folder.file("run");
    succeeds(&strs(&with(&small(&folder), &["--run", &run, "--steps", "2"])));
    let eval = ["eval", "--run", &run, "--device", "cpu"];
    assert!(!succeeds(&eval).contains("not the text of the run"));
    let (file, other) = (folder.file("text.txt"), folder.file("other.txt"));
    std::fs::rename(&file, &other).unwrap();
    fails(FAILED_FOR_INPUT, &eval, &["text.txt", "--text"]);
    // A text elsewhere is the same text.
    assert!(!succeeds(&[&eval[..], &["--text", &other]].concat()).contains("not the text of the run"));
    std::fs::write(&file, TEXT.repeat(5)).unwrap();
    fails(FAILED_FOR_INPUT, &eval, &["text.txt", "has changed", "--text"]);
    fails(
        FAILED_FOR_INPUT,
        &["train", "--run", &run, "--resume", "--steps", "3"],
        &["has changed", "--force"],
    );
    assert!(succeeds(&[&eval[..], &["--text", &file]].concat()).contains("not the text of the run"));
}

#[test]
fn a_damaged_checkpoint_has_whole_ones_beside_it() {
    let folder = Folder::new("train-damaged");
    let run = folder.file("run");
    succeeds(&strs(&with(&small(&folder), &["--run", &run, "--steps", "12"])));
    let resume = ["train", "--run", &run, "--resume", "--steps", "13", "--json"];
    for file in ["model.safetensors", "optimizer.safetensors", "info.json", "SHA256SUMS"] {
        let path = folder.file(&format!("run/checkpoint_step_000012/{file}"));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        for words in [&resume[..6], &["generate", "--run", &run, "--device", "cpu"], &["eval", "--run", &run]]
        {
            fails(FAILED_FOR_INPUT, words, &[file, "step 8", "--step 8"]);
        }
        std::fs::write(&path, &whole).unwrap();
    }
    std::fs::write(folder.file("run/checkpoint_step_000012/info.json"), "{").unwrap();
    let value = json(&warns(&[&resume[..], &["--step", "8"]].concat(), "a checkpoint is damaged"));
    assert_eq!((&value["first_step"], &value["last_step"]), (&8.into(), &13.into()));
    assert!(value["set_aside"][0].as_str().unwrap().ends_with("checkpoint_step_000012.set-aside"), "{value}");
    assert_eq!(json(&succeeds(&resume))["first_step"], 13);
    fails(FAILED_FOR_INPUT, &[&resume[..6], &["--step", "9"]].concat(), &["no checkpoint of step 9"]);
}

#[test]
fn pictures_have_the_losses_before_a_resume_and_before_a_divergence() {
    let folder = Folder::new("train-picture");
    let mut train = small(&folder);
    let at = train.iter().position(|word| word == "--sample").unwrap();
    train[at + 1] = "0".to_owned();
    let run = folder.file("run");
    let text = succeeds(&strs(&with(&train, &["--run", &run, "--steps", "4"])));
    assert!(!text.contains("A sample"), "{text}");
    let marks = || {
        let picture = std::fs::read_to_string(folder.file("run/loss.svg")).unwrap();
        xml::texts(&picture).unwrap().iter().filter(|text| text.starts_with("step ")).count()
    };
    assert_eq!(marks(), 2);
    let resume = ["train", "--run", &run, "--resume", "--steps"];
    succeeds(&[&resume[..], &["8"]].concat());
    assert_eq!(marks(), 3);
    let text = succeeds(&[&resume[..], &["8"]].concat());
    assert!(text.contains("The run has its 8 steps") && !text.contains("validation "), "{text}");
    assert_eq!(marks(), 3);

    let run = folder.file("diverged");
    let mut words = with(&train, &["--run", &run, "--steps", "50", "--max-norm", "0"]);
    let at = words.iter().position(|word| word == "0.01").unwrap();
    words[at] = "1e30".to_owned();
    let output = super::selvedge(&strs(&words));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("at step") && errors.contains("loss.svg"), "{errors}");
    xml::texts(&std::fs::read_to_string(folder.file("diverged/loss.svg")).unwrap()).unwrap();
}

#[test]
fn numbers_below_zero_are_values_not_options() {
    let folder = Folder::new("train-negative");
    let train = small(&folder);
    let run = folder.file("run");
    let at = |more: &[&str], part: &str| {
        fails(FAILED_FOR_INPUT, &strs(&with(&train[..7], &[&["--run", &run], more].concat())), &[part]);
    };
    at(&["--max-norm", "nan"], "a number from 0 on");
    at(&["--max-norm", "-1"], "a number from 0 on");
    at(&["--learning-rate", "-1"], "learning_rate = -1");
    at(&["--final-learning-rate", "-1"], "min_learning_rate = -1");
    at(&["--dropout", "-1"], "dropout = -1");
    at(&["--steps", "-1"], "invalid value '-1' for '--steps");
    succeeds(&strs(&with(&train, &["--run", &run, "--steps", "1"])));
    let generate = ["generate", "--run", &run, "--device", "cpu", "--temperature", "-1"];
    fails(FAILED_FOR_INPUT, &generate, &["temperature"]);
}

#[test]
fn bad_input_fails_with_its_reason() {
    let folder = Folder::new("train-bad");
    let train = small(&folder);
    let run = folder.file("run");
    let refused = |more: &[&str], parts: &[&str]| fails(FAILED_FOR_INPUT, &strs(&with(&train, more)), parts);
    let short = folder.file("short.txt");
    std::fs::write(&short, "too short").unwrap();
    let not_text = folder.file("bytes.txt");
    std::fs::write(&not_text, [b'a', b'b', 0xff, b'c']).unwrap();
    let at_text = |path: &str| {
        let mut words = with(&train, &["--run", &run]);
        words[4] = path.to_owned();
        words
    };
    fails(FAILED_FOR_INPUT, &strs(&at_text(&short)), &["17", "context of 16"]);
    fails(FAILED_FOR_INPUT, &strs(&at_text(&not_text)), &["byte 2"]);
    fails(FAILED_FOR_INPUT, &strs(&at_text(&folder.file("none.txt"))), &["none.txt"]);
    refused(&["--run", &folder.file("text.txt")], &["text.txt"]);
    refused(&["--run", &run, "--resume"], &["no checkpoint"]);
    refused(&["--run", &run, "--force"], &["--resume"]);
    succeeds(&strs(&with(&train, &["--run", &run, "--steps", "1"])));
    refused(&["--run", &run], &["a run at step 1", "--resume"]);
    refused(&["--run", &run, "--resume", "--seed", "5"], &["seed"]);
    std::fs::write(folder.file("other.txt"), TEXT.repeat(5)).unwrap();
    let mut other = at_text(&folder.file("other.txt"));
    other.extend(["--resume".to_owned(), "--steps".to_owned(), "2".to_owned()]);
    fails(FAILED_FOR_INPUT, &strs(&other), &["hash", "--force"]);
    succeeds(&strs(&with(&other, &["--force"])));

    let generate = |more: &[&str], parts: &[&str]| {
        let first = ["generate", "--run", &run, "--device", "cpu"];
        fails(FAILED_FOR_INPUT, &[&first[..], more].concat(), parts);
    };
    generate(&["--prompt", ""], &["empty prompt"]);
    generate(&["--prompt", "Ω"], &["Ω"]);
    generate(&["--temperature=-1"], &["temperature"]);
    generate(&["--step", "77"], &["step 77"]);
    fails(FAILED_FOR_INPUT, &["eval", "--run", &folder.file("nothing")], &["nothing"]);
}

/// The step of the last checkpoint in a folder, or 0.
#[cfg(unix)]
fn latest(run: &str) -> u64 {
    let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("checkpoint_step_")?.parse().ok()).max().unwrap_or(0)
}

/// Starts a run, and waits until it has saved a checkpoint after `before`.
#[cfg(unix)]
fn start(train: &[String], run: &str, before: u64) -> std::process::Child {
    let mut command = std::process::Command::new(super::common::program());
    let child = command.args(train).stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = std::time::Instant::now();
    while latest(run) <= before && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_a_checkpoint_to_continue_from() {
    let folder = Folder::new("train-signal");
    let run = folder.file("run");
    let train = with(&small(&folder), &["--run", &run, "--steps", "100000", "--json"]);
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-USR1", 143)] {
        let resume = if signal == "-INT" { vec![] } else { vec!["--resume"] };
        // A new checkpoint shows that signals are caught.
        let mut child = start(&with(&train, &resume), &run, latest(&run));
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
    let resumed = with(&small(&folder), &["--run", &run, "--resume", "--steps", "1", "--json"]);
    let value = json(&succeeds(&strs(&resumed)));
    assert!(value["first_step"].as_u64().unwrap() >= 4, "{value}");
}

#[cfg(unix)]
#[test]
fn a_folder_has_one_run_until_its_process_ends() {
    let folder = Folder::new("train-lock");
    let run = folder.file("run");
    let train = with(&small(&folder), &["--run", &run]);
    let mut child = start(&with(&train, &["--steps", "100000"]), &run, 0);
    let process = format!("process {} ", child.id());
    let resume = with(&train, &["--resume", "--steps", "1"]);
    fails(FAILED_FOR_INPUT, &strs(&resume), &[&process, "lock"]);
    // Reading needs no lock.
    succeeds(&["generate", "--run", &run, "--device", "cpu", "--length", "2"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = succeeds(&strs(&resume));
    assert!(text.contains(&format!("The lock of {process}")), "{text}");
    let value = json(&succeeds(&strs(&with(&resume, &["--json"]))));
    assert_eq!(value["lock_taken_over_from"], serde_json::Value::Null);
}

/// Runs the program in a shell that sets a limit first.
#[cfg(target_os = "linux")]
fn limited(limit: &str, arguments: &[String]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{limit} && exec \"$0\" \"$@\"")]).arg(super::common::program());
    let output = super::common::hide_libraries(&mut command).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_last_checkpoint() {
    let folder = Folder::new("train-disk");
    let run = folder.file("run");
    let train = with(&small(&folder), &["--run", &run, "--json"]);
    succeeds(&strs(&with(&train, &["--steps", "4"])));
    let before = std::fs::read(folder.file("run/checkpoint_step_000004/model.safetensors")).unwrap();
    let resume = with(&train, &["--resume", "--steps", "8"]);
    // The limit of a file's size, in blocks of 512 bytes: the model's file fits, the optimizer's, which is larger, does not. A write
    // past it fails like one to a full disk, once its signal is ignored.
    let blocks = before.len() / 512 + 2;
    let (code, errors) = limited(&format!("trap '' XFSZ && ulimit -f {blocks}"), &resume);
    assert_eq!(code, Some(super::FAILED), "{errors}");
    for part in ["optimizer.safetensors", "enough free space"] {
        assert!(errors.contains(part), "{errors}");
    }
    assert_eq!(latest(&run), 4);
    let value = json(&succeeds(&strs(&resume)));
    assert_eq!((&value["first_step"], &value["last_step"]), (&4.into(), &8.into()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_too_large_for_memory_is_refused_with_advice() {
    let folder = Folder::new("train-memory");
    let train = small(&folder);
    std::fs::write(folder.file("config.json"), CONFIG.replace("\"n_embd\": 16", "\"n_embd\": 20000"))
        .unwrap();
    // Its largest matrix takes 4.8 GB.
    let (code, errors) = limited("ulimit -v 1000000", &with(&train, &["--run", &folder.file("run")]));
    assert_eq!(code, Some(super::FAILED), "{errors}");
    for part in ["out of memory", "a batch of 1 does not fit either", "--model"] {
        assert!(errors.contains(part), "{errors}");
    }
}
