//! `selvedge train --recompute` and `--memory`, and the error of a batch that does not fit.

use super::{FAILED, FAILED_FOR_INPUT, Folder, fails, json, succeeds};

const TEXT: &str = "it was the best of times, it was the worst of times, it was the age of wisdom, ";
const CONFIG: &str =
    r#"{"vocab_size": 1, "n_positions": 32, "n_embd": 32, "n_layer": 6, "n_head": 2, "resid_pdrop": 0.1}"#;

/// A text, a configuration, and the arguments that train on them.
fn small(folder: &Folder) -> Vec<String> {
    let (text, config) = (folder.file("text.txt"), folder.file("config.json"));
    std::fs::write(&text, TEXT.repeat(20)).unwrap();
    std::fs::write(&config, CONFIG).unwrap();
    let words =
        ["train", "--text", &text, "--model", &config, "--tokenizer", "byte", "--sample", "0", "--json"];
    words.map(str::to_owned).to_vec()
}

fn with<'a>(first: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    first.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

#[test]
fn a_resumed_run_may_change_what_is_recomputed() {
    let folder = Folder::new("train-recompute");
    let train = small(&folder);
    let (whole, run) = (folder.file("whole"), folder.file("run"));
    let of = |run: &str, more: &[&str]| {
        let options = ["--device", "cpu", "--batch", "2", "--every", "2", "--run", run];
        json(&succeeds(&[with(&train, &options), more.to_vec()].concat()))
    };
    let wanted = of(&whole, &["--steps", "4"]);
    let first = of(&run, &["--steps", "2", "--warmup", "0", "--recompute", "blocks"]);
    assert_eq!(first["last_step"], 2);
    // The choice is stored, and no bit depends on it.
    let second = of(&run, &["--steps", "3", "--resume"]);
    assert!(!second["changed"].to_string().contains("recompute"), "{second}");
    let third = of(&run, &["--steps", "4", "--resume", "--recompute", "feed-forward"]);
    assert!(third["changed"].to_string().contains("--recompute feed-forward in place of blocks"), "{third}");
    let fresh = folder.file("fresh");
    let same = of(&fresh, &["--steps", "4", "--recompute", "blocks"]);
    assert_eq!(same["losses"], wanted["losses"]);
    let other = with(&train[..train.len() - 1], &["--recompute", "block"]);
    fails(FAILED_FOR_INPUT, &other, &["block", "feed-forward", "blocks"]);
}

#[test]
fn the_memory_of_a_step_is_measured_with_each_recomputation() {
    let folder = Folder::new("train-memory-plan");
    let train = small(&folder);
    let run = folder.file("run");
    let options = ["--device", "cpu", "--batch", "8", "--run", &run, "--context", "16", "--memory"];
    let plan = json(&succeeds(&with(&train, &options)));
    assert!(!std::path::Path::new(&run).exists(), "a run was begun");
    let number = |name: &str| plan[name].as_u64().unwrap_or_else(|| panic!("no {name}: {plan}"));
    let parameters = number("parameter_bytes");
    // The blocks have 12 width² parameters and some more.
    assert!(parameters > 6 * 4 * 12 * 32 * 32 && parameters < 400_000, "{plan}");
    // The buffers of gradients and states align each parameter.
    assert!((parameters..parameters * 5 / 4).contains(&number("gradient_bytes")), "{plan}");
    assert!((2 * parameters..parameters * 5 / 2).contains(&number("optimizer_bytes")), "{plan}");
    let choices = plan["choices"].as_array().unwrap();
    let names: Vec<_> = choices.iter().map(|choice| choice["recompute"].as_str().unwrap()).collect();
    assert_eq!(names, ["nothing", "feed-forward", "blocks"]);
    let of =
        |at: usize, name: &str| choices[at][name].as_u64().unwrap_or_else(|| panic!("no {name}: {plan}"));
    let sequence: Vec<u64> = (0..3).map(|at| of(at, "sequence_bytes")).collect();
    assert!(sequence[1] < sequence[0] * 4 / 5 && sequence[2] < sequence[1], "{plan}");
    for (at, sequence) in sequence.iter().enumerate() {
        let least = choices[at]["measured"][0]["peak_bytes"].as_u64().unwrap();
        assert_eq!(of(at, "peak_bytes"), (of(at, "fixed_bytes") + 8 * sequence).max(least));
        assert!(least > 4 * parameters, "{plan}");
        if cfg!(target_os = "linux") {
            let rest = number("available_bytes") - of(at, "fixed_bytes");
            assert_eq!(of(at, "largest_batch"), (rest / sequence).min(1 << 20));
        }
    }
    let words = with(&train[..train.len() - 1], &["--device", "cpu", "--memory"]);
    let text = succeeds(&words);
    for part in [
        "parameters",
        "gradients",
        "optimizer",
        "available on",
        "peak of 16 sequences",
        "feed-forward",
        "largest batch",
    ] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    fails(FAILED_FOR_INPUT, &[words, vec!["--profile", "t.json.gz"]].concat(), &["--profile", "--memory"]);
}

/// Runs the program with a limit of its address space. Returns the exit code, the output and the errors.
#[cfg(target_os = "linux")]
fn limited(kibibytes: u64, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new("sh");
    let line = format!("ulimit -v {kibibytes} && exec \"$0\" \"$@\"");
    command.args(["-c", &line]).arg(super::common::program()).env("SELVEDGE_THREADS", "1");
    let output = super::common::hide_libraries(&mut command).args(words).output().unwrap();
    let [out, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, errors)
}

#[cfg(target_os = "linux")]
#[test]
fn a_batch_that_does_not_fit_names_those_that_do() {
    let folder = Folder::new("train-does-not-fit");
    let train = small(&folder);
    let config = CONFIG.replace(
        "\"n_positions\": 32, \"n_embd\": 32, \"n_layer\": 6",
        "\"n_positions\": 16, \"n_embd\": 16, \"n_layer\": 2",
    );
    std::fs::write(folder.file("config.json"), config).unwrap();
    let run = folder.file("run");
    // A limit with 24 MiB beyond the address space that the program has before it makes a model. The first tensor of the batch is
    // larger, so that there is memory for all but tensors.
    const WIDE: u64 = 8 << 20;
    let (code, plan, errors) = limited(WIDE, &with(&train, &["--device", "cpu", "--memory"]));
    assert_eq!(code, Some(0), "{errors}");
    let available = json(&plan)["available_bytes"].as_u64().unwrap() / 3 * 4;
    let limit = WIDE.checked_sub(available >> 10).map_or(0, |used| used + (24 << 10));
    if limit > WIDE / 4 {
        // The machine has less memory than the wide limit.
        return;
    }
    let options = ["--device", "cpu", "--steps", "3", "--every", "10", "--run", &run];
    let train = with(&train, &options);
    let (code, _, errors) = limited(limit, &[&train[..], &["--batch", "32768"]].concat());
    assert_eq!(code, Some(FAILED), "{errors}");
    for part in ["the host is out of memory", "a batch of 32768 does not fit, one of "] {
        assert!(errors.contains(part), "'{part}' is not in: {errors}");
    }
    let number = |before: &str| -> u64 {
        let rest = errors.split(before).nth(1).unwrap_or_else(|| panic!("no '{before}' in: {errors}"));
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let fitting = number("does not fit, one of ");
    assert!(fitting > 10 && number("--recompute blocks allows a batch of ") > fitting, "{errors}");
    let run = folder.file("fits");
    let batch = fitting.to_string();
    let words = [&train[..train.len() - 1], &[&run, "--batch", &batch]].concat();
    let (code, _, errors) = limited(limit + (24 << 10), &words);
    assert_eq!(code, Some(0), "{errors}");
}
