//! `selvedge train --profile` on the CPU. The fake driver computes no losses, so bounds of kernels are tested on the events of a
//! trace, in `src/bin/selvedge/train/profile/work.rs`.

use super::{FAILED_FOR_INPUT, Folder, common, fails, json, succeeds, xml};

const CONFIG: &str = r#"{"vocab_size": 1, "n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 2}"#;

/// A small run of six steps on the CPU.
fn small(folder: &Folder) -> Vec<String> {
    let (text, config) = (folder.file("text.txt"), folder.file("config.json"));
    std::fs::write(&text, "it was the best of times, it was the worst of times ".repeat(8)).unwrap();
    std::fs::write(&config, CONFIG).unwrap();
    let run = folder.file("run");
    let words = ["train", "--device", "cpu", "--text", &text, "--model", &config, "--run", &run];
    let options = ["--batch", "2", "--sample", "0", "--steps", "6", "--warmup", "1"];
    words.into_iter().chain(options).map(str::to_owned).collect()
}

fn with<'a>(first: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    first.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

#[test]
fn a_profile_on_the_cpu_has_the_operations_of_the_steps() {
    let folder = Folder::new("profile");
    let (train, trace) = (small(&folder), folder.file("trace.json.gz"));
    let arguments = with(&train, &["--profile", &trace, "--steps", "2..4", "--json"]);
    let value = json(&succeeds(&arguments));
    let profile = &value["profile"];
    assert_eq!(
        (&profile["first_step"], &profile["steps"], &profile["on"]),
        (&2.into(), &3.into(), &"host".into())
    );
    let work = profile["work"].as_array().unwrap();
    let times: Vec<f64> = work.iter().map(|work| work["time_us"].as_f64().unwrap()).collect();
    assert!(times.is_sorted_by(|left, right| left >= right), "{times:?}");
    assert!(times.iter().sum::<f64>() <= profile["step_us"].as_f64().unwrap(), "{profile}");
    assert!(work.iter().any(|work| work["name"] == "matmul" && work["operands"] != ""), "{profile}");
    assert!(work.iter().all(|work| work["bound_us"].is_null()), "{profile}");
    let picture = std::fs::read_to_string(folder.file("run/loss-profile.svg")).unwrap();
    assert!(xml::texts(&picture).unwrap().iter().any(|text| text.contains("matmul")), "{picture}");

    // The trace has these steps and no others, and the losses are those of a run without it.
    let events = json(&succeeds(&["trace", &trace, "--json"]));
    let ranges = events["operations"].as_array().unwrap().iter();
    let mut steps: Vec<&str> = ranges
        .filter(|range| range["category"] == "range")
        .map(|range| range["name"].as_str().unwrap())
        .collect();
    steps.sort_unstable();
    assert_eq!(steps, ["step 2", "step 3", "step 4"]);
    let mut plain = train.clone();
    let at = plain.iter().position(|word| word == "--run").unwrap() + 1;
    plain[at] = folder.file("plain");
    let plain = json(&succeeds(&with(&plain, &["--json"])));
    assert_eq!(plain["losses"], value["losses"]);
    assert!(plain["profile"].is_null());

    let more = ["--resume", "--profile", &trace, "--steps", "8..8"];
    let mut resumed = train.clone();
    let at = resumed.iter().position(|word| word == "--steps").unwrap() + 1;
    resumed[at] = "9".to_owned();
    let text = succeeds(&with(&resumed, &more));
    for part in ["The operations of a step:", "matmul", "the mean of one step", "loss-profile.svg"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    // Step 9 is done.
    let again = with(&resumed, &["--resume", "--profile", &trace, "--steps", "9..9"]);
    fails(FAILED_FOR_INPUT, &again, &["--steps 9..9"]);
}

#[test]
fn steps_that_are_not_of_the_run_are_refused_before_it() {
    let folder = Folder::new("profile-refused");
    let (train, trace) = (small(&folder), folder.file("trace.json.gz"));
    for (more, part) in [
        (&["--profile", &trace, "--steps", "5..7"][..], "takes 1 to 6"),
        (&["--profile", &trace, "--steps", "5..2"], "found 5..2"),
        (&["--profile", &trace, "--steps", "0..2"], "found 0"),
        (&["--steps", "2..3"], "without --profile"),
        (&["--profile", &trace, "--steps", "7"], "--steps twice"),
    ] {
        fails(FAILED_FOR_INPUT, &with(&train, more), &[part]);
        assert!(!std::path::Path::new(&folder.file("run")).exists(), "{more:?}");
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_said_and_the_run_goes_on() {
    let folder = Folder::new("profile-unwritten");
    let train = small(&folder);
    let mut command = std::process::Command::new(common::program());
    let arguments = with(&train, &["--profile", "/no/such/folder/trace.json.gz", "--json"]);
    let output = common::hide_libraries(&mut command).args(arguments).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && errors.contains("no profile: ") && errors.contains("/no/such"),
        "{errors}"
    );
    let value = json(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(value["last_step"], 6);
    assert!(value["profile"]["error"].as_str().unwrap().contains("/no/such"), "{value}");
}
