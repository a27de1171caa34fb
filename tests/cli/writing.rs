//! Every command with an output that cannot be written: stdout and each file that an option names, on a full disk, in a
//! closed pipe, in a folder that may not be written, through links, and in place of a folder.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Output, Stdio};

use super::{FAILED, FAILED_FOR_INPUT, Folder, common, succeeds};

/// Commands that have no output before a device is there.
const NEED_A_DEVICE: [&str; 3] = ["run", "build-images", "demo"];

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Files that commands read.
struct Inputs {
    folder: Folder,
    network: String,
    model: String,
    run: String,
}

impl Inputs {
    fn new(name: &str) -> Inputs {
        let folder = Folder::new(name);
        let (network, model, run) =
            (folder.file("g.burst"), folder.file("model.safetensors"), folder.file("run"));
        succeeds(&["burst", "make", "G", "--neurons", "100", "--degree", "5", "-o", &network]);
        let inputs = Inputs { folder, network, model, run };
        succeeds(&strs(&inputs.classify_train(&["-o", &inputs.model])));
        succeeds(&strs(&inputs.train(&["--run", &inputs.run])));
        let tokenizer = inputs.tokenizer();
        succeeds(&[
            "tokenize",
            "--train",
            "--vocab",
            "260",
            &inputs.folder.file("text.txt"),
            "--out",
            &tokenizer,
        ]);
        inputs
    }

    fn tokenizer(&self) -> String {
        self.folder.file("tokenizer")
    }

    /// The arguments that write ids into the file that follows.
    fn tokenize(&self) -> Vec<String> {
        words(&["tokenize", &self.folder.file("text.txt"), "--tokenizer", &self.tokenizer(), "--out"])
    }

    /// The program, or a shell with a limit that becomes the program, in the folder.
    fn command(&self, limit: Option<&str>) -> Command {
        let mut command = match limit {
            None => Command::new(common::program()),
            Some(limit) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{limit} && exec \"$0\" \"$@\"")]).arg(common::program());
                shell
            }
        };
        common::hide_libraries(&mut command).current_dir(&self.folder.0);
        command
    }

    fn classify_train(&self, more: &[&str]) -> Vec<String> {
        let first =
            ["classify", "train", "--synthetic", "60", "--epochs", "1", "--hidden", "4", "--device", "cpu"];
        words(&[&first[..], more].concat())
    }

    fn train(&self, more: &[&str]) -> Vec<String> {
        let (text, config) = (self.folder.file("text.txt"), self.folder.file("config.json"));
        std::fs::write(&text, "it was the best of times, it was the worst of times\n".repeat(8)).unwrap();
        let model = r#"{"vocab_size": 1, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 1}"#;
        std::fs::write(&config, model).unwrap();
        let first = [
            "train", "--device", "cpu", "--text", &text, "--model", &config, "--batch", "2", "--steps", "1",
            "--sample", "0",
        ];
        words(&[&first[..], more].concat())
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn stdout_that_cannot_be_written_fails_and_a_reader_that_has_gone_does_not() {
    let inputs = Inputs::new("writing-stdout");
    let ptx = inputs.folder.file("k.ptx");
    std::fs::write(&ptx, super::PTX).unwrap();
    let text = inputs.folder.file("text.txt");
    let (run, model, network) = (inputs.run.as_str(), inputs.model.as_str(), inputs.network.as_str());
    let made = inputs.folder.file("made.burst");
    let trace = super::trace::demonstration(&inputs.folder);
    let published = super::models::model(&inputs.folder, "llama2");
    let converted = inputs.folder.file("converted");
    let mut table: Vec<Vec<String>> = [
        &["--version"][..],
        &["--help"],
        &["train", "--help"],
        &["info"],
        &["info", "--json"],
        &["ptx", &ptx],
        &["cache"],
        &["memory", "replay", "--generate", "training", "--requests", "9"],
        &["generate", "--run", run, "--device", "cpu", "--length", "20", "--prompt", "it"],
        &["generate", "--run", run, "--device", "cpu", "--length", "2", "--prompt", "it", "--json"],
        &["generate", "--model", &published, "--device", "cpu", "--length", "20", "--prompt", "it"],
        &[
            "generate", "--model", &published, "--device", "cpu", "--length", "2", "--prompt", "it",
            "--prompt", "a",
        ],
        &["generate", "--model", &published, "--device", "cpu", "--length", "2", "--prompt", "it", "--json"],
        &["eval", "--model", &published, "--data", &text, "--device", "cpu"],
        &["convert", &published, &converted, "--dtype", "bf16", "--force"],
        &["eval", "--run", run, "--text", &text, "--device", "cpu"],
        &["burst", "make", "G", "--neurons", "100", "--degree", "5", "-o", &made],
        &["burst", "run", network, "--bursts", "1", "--device", "cpu"],
        &["srt", "evolve", "--n", "4", "--population", "8", "--survivors", "2", "--generations", "1"],
        &["classify", "run", model, "--synthetic", "5", "--device", "cpu"],
        &["explain", "expr", "x + y", "--shape", "4"],
        &["launch", "--ranks", "2", "--", env!("CARGO_BIN_EXE_selvedge"), "--version"],
        &["trace", &trace],
        &["trace", &trace, "--json"],
        &["trace", "--compare", &trace, &trace],
    ]
    .map(words)
    .to_vec();
    table.push(inputs.classify_train(&[]));
    table.push(inputs.train(&[]));
    table.push(with(&inputs.tokenize(), &[&inputs.folder.file("ids.bin")]));

    let listed = succeeds(&["--help"]);
    let commands = listed.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: BTreeSet<&str> =
        commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let tested = table.iter().map(|arguments| arguments[0].as_str()).chain(NEED_A_DEVICE).chain(["help"]);
    let tested: BTreeSet<&str> = tested.filter(|word| !word.starts_with('-')).collect();
    let untested: Vec<_> =
        commands.iter().filter(|name| !name.is_empty() && !tested.contains(*name)).collect();
    assert!(untested.is_empty() && commands.contains("train"), "{untested:?} of {commands:?}");

    for arguments in &table {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = inputs.command(None).args(arguments).stdout(full).output().unwrap();
        let found = errors(&output);
        assert_eq!(output.status.code(), Some(FAILED), "{arguments:?}: {found}");
        assert!(found.contains("No space left"), "{arguments:?}: {found}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = inputs.command(None).args(arguments).stdout(Stdio::from(writer)).output().unwrap();
        assert_eq!((output.status.code(), errors(&output).as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_file_that_cannot_be_written_fails_and_another_keeps_its_kind() {
    let inputs = Inputs::new("writing-files");
    let (model, network) = (inputs.model.clone(), inputs.network.clone());
    let unused = inputs.folder.file("unused.burst");
    let run = |more: &[&str]| words(&[&["burst", "run", &network, "--bursts", "1"][..], more].concat());
    let evolve =
        words(&["srt", "evolve", "--n", "4", "--population", "8", "--survivors", "2", "--generations", "1"]);
    let made = words(&["memory", "replay", "--generate", "training", "--requests", "9"]);
    let make = words(&["burst", "make", "G", "--neurons", "100", "--degree", "5"]);
    let classify = words(&["classify", "run", &model, "--synthetic", "20", "--device", "cpu"]);
    // Each in the first folder that is free.
    let text = inputs.train(&[]);
    // The arguments before the file's name.
    let table: Vec<Vec<String>> = vec![
        with(&make, &["-o"]),
        with(&make, &["-o", &unused, "--input"]),
        run(&["--raster"]),
        run(&["--rates"]),
        run(&["--spikes"]),
        run(&["--save"]),
        with(&evolve, &["--save"]),
        with(&evolve, &["--plot"]),
        with(&made, &["--save"]),
        with(&made, &["-o"]),
        inputs.classify_train(&["-o"]),
        inputs.classify_train(&["--confusion"]),
        inputs.classify_train(&["--calibration"]),
        with(&classify, &["-o"]),
        with(&text, &["--plot"]),
        inputs.tokenize(),
        with(&inputs.tokenize()[..4], &["--format", "raw", "--out"]),
    ];
    let [inside, one, other, link] = ["folder", "a", "b", "link"].map(|name| inputs.folder.file(name));
    std::fs::create_dir_all(&inside).unwrap();
    symlink(&one, &other).unwrap();
    symlink(&other, &one).unwrap();
    // Shared memory is another file system than a folder of temporary files, in most systems.
    let elsewhere = format!("/dev/shm/selvedge-writing-{}", std::process::id());
    for arguments in &table {
        let subject = arguments.join(" ");
        let fails = |code: i32, file: &str, limit: Option<&str>| {
            let output = inputs.command(limit).args(arguments).arg(file).output().unwrap();
            let found = errors(&output);
            assert_eq!(output.status.code(), Some(code), "{subject} {file}: {found}");
            // One error and nothing of a dependency.
            assert!(found.starts_with("error: ") && found.contains(file), "{subject} {file}: {found}");
            assert_eq!(found.lines().count(), 1, "{subject} {file}: {found}");
        };
        fails(FAILED, "/dev/full", None);
        assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
        fails(FAILED, "/sys/selvedge", None);
        fails(FAILED, &one, None);
        fails(FAILED_FOR_INPUT, &inside, None);

        std::fs::write(&elsewhere, "old").unwrap();
        std::fs::set_permissions(&elsewhere, PermissionsExt::from_mode(0o600)).unwrap();
        let _ = std::fs::remove_file(&link);
        symlink(&elsewhere, &link).unwrap();
        // A limit of a file's size is met like the end of a disk. Commands that write other files first meet it there.
        if !subject.contains("unused") && !subject.starts_with("train") {
            fails(FAILED, &link, Some("trap '' XFSZ && ulimit -f 0"));
            assert_eq!(std::fs::read(&elsewhere).unwrap(), b"old", "{subject}");
        }
        let output = inputs.command(None).args(arguments).arg(&link).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{subject}: {}", errors(&output));
        let found = std::fs::symlink_metadata(&elsewhere).unwrap();
        assert!(link_is_kept(&link) && found.is_file() && found.len() > 3, "{subject}");
        assert_eq!(found.mode() & 0o7777, 0o600, "{subject}");
    }
    std::fs::remove_file(&elsewhere).unwrap();
    let left: Vec<_> =
        std::fs::read_dir(&inputs.folder.0).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{left:?}");
}

fn with(first: &[String], more: &[&str]) -> Vec<String> {
    [first, &words(more)].concat()
}

fn link_is_kept(path: &str) -> bool {
    std::path::Path::new(path).is_symlink()
}

#[test]
fn a_run_in_a_folder_that_cannot_be_written_fails() {
    let inputs = Inputs::new("writing-run");
    for run in ["/sys/selvedge", "/dev/null/run"] {
        let output = inputs.command(None).args(inputs.train(&["--run", run])).output().unwrap();
        assert_eq!(output.status.code(), Some(FAILED), "{run}: {}", errors(&output));
        assert!(errors(&output).contains(run), "{}", errors(&output));
    }
}
