//! Checkpoints: bits that come back, processes that are killed, locks, and damaged files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use selvedge::nn::{
    Adam, AdamW, Batches, ByteTokenizer, Checkpoint, CheckpointInfo, CheckpointList, Checkpoints,
    CrossEntropyOptions, Embedding, Initializer, Module, Optimizer, Sgd, Split, TextFile, TokenizedText,
    Variable, cross_entropy,
};
use selvedge::{DType, Device, Error, Tensor};
use serde_json::{Value, json};

fn cpu() -> Device {
    Device::cpu()
}

/// A checkpoint whose tensors hold the step.
fn checkpoint(step: u64, loss: Option<f64>) -> Checkpoint {
    let tensor = Tensor::full(&[1000], step as f64, DType::F64, &cpu()).unwrap();
    let entries = |name: &str| BTreeMap::from([(name.to_owned(), tensor.clone())]);
    let info = CheckpointInfo { step, loss, ..Default::default() };
    Checkpoint { info, parameters: entries("weight"), optimizer: entries("0.exp_avg") }
}

/// Checks that a checkpoint's tensors hold its step.
fn check_whole(checkpoint: &Checkpoint) {
    for tensor in checkpoint.parameters.values().chain(checkpoint.optimizer.values()) {
        assert_eq!(tensor.to_vec::<f64>().unwrap(), [checkpoint.info.step as f64; 1000]);
    }
}

fn steps(list: &CheckpointList) -> Vec<u64> {
    list.entries().iter().map(|entry| entry.step()).collect()
}

/// The bits of all tensors.
fn bits(entries: &BTreeMap<String, Tensor>) -> BTreeMap<String, (DType, Vec<u64>)> {
    let bits = |tensor: &Tensor| {
        let numbers = tensor.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
        (tensor.dtype(), numbers.iter().map(|number| number.to_bits()).collect())
    };
    entries.iter().map(|(name, tensor)| (name.clone(), bits(tensor))).collect()
}

#[test]
fn a_run_that_resumes_has_the_bits_of_one_that_goes_on() {
    type Create = fn(Vec<Variable>) -> Box<dyn Optimizer>;
    let optimizers: [(Create, DType); 4] = [
        (|parameters| Box::new(AdamW::new(parameters, 0.1).unwrap()), DType::F32),
        (|parameters| Box::new(Adam::new(parameters, 0.1).unwrap()), DType::BF16),
        (|parameters| Box::new(Sgd::new(parameters, 0.1).unwrap().with_momentum(0.9).unwrap()), DType::F64),
        (|parameters| Box::new(Sgd::new(parameters, 0.1).unwrap()), DType::F32),
    ];
    let text =
        TokenizedText::new(TextFile::from_bytes("to be or not to be. ".repeat(9)), &ByteTokenizer).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (at, (create, dtype)) in optimizers.into_iter().enumerate() {
        let begin = |seed: u64| {
            let initializer = Initializer::new(&cpu()).with_dtype(dtype).with_seed(seed);
            let model = Embedding::new(256, 256, &initializer).unwrap();
            let optimizer = create(model.parameters());
            (model, optimizer, Batches::new(&text, Split::Training, 2, 8, 3).unwrap())
        };
        let train = |model: &Embedding,
                     optimizer: &mut dyn Optimizer,
                     batches: &mut Batches,
                     steps: usize| {
            for _ in 0..steps {
                let rate = optimizer.learning_rate() * 0.9;
                optimizer.set_learning_rate(rate);
                let batch = batches.next_batch(&cpu()).unwrap();
                let logits = model.forward(&Variable::new(batch.inputs.reshape(&[16]).unwrap())).unwrap();
                optimizer.zero_grad();
                let labels = batch.targets.reshape(&[16]).unwrap();
                cross_entropy(&logits, &labels, CrossEntropyOptions::default()).unwrap().backward().unwrap();
                optimizer.step().unwrap();
            }
        };
        let (model, mut optimizer, mut batches) = begin(1);
        train(&model, &mut *optimizer, &mut batches, 2);
        let info = CheckpointInfo {
            step: 2,
            data_position: batches.position(),
            data_seed: batches.seed(),
            generator_seed: u64::MAX,
            text_hash: text.hash().to_owned(),
            model: json!({ "width": 256, "dropout": 0.1, "odd": 0.1 + 0.2 }),
            ..Default::default()
        };
        let mut checkpoints = Checkpoints::open(folder.path().join(at.to_string())).unwrap();
        let parameters = model.state_dict();
        let optimizer_state = optimizer.state_dict().unwrap();
        let saved = Checkpoint { info, parameters, optimizer: optimizer_state };
        let path = checkpoints.save(&saved).unwrap();
        train(&model, &mut *optimizer, &mut batches, 2);

        let read = Checkpoint::load(&path, &cpu()).unwrap();
        assert_eq!(read.info, saved.info);
        let (mut resumed, mut resumed_optimizer, mut batches) = begin(2);
        resumed.load_state_dict(&read.parameters).unwrap();
        resumed_optimizer.load_state_dict(&read.optimizer).unwrap();
        batches.set_position(read.info.data_position);
        train(&resumed, &mut *resumed_optimizer, &mut batches, 2);
        assert_eq!(bits(&resumed.state_dict()), bits(&model.state_dict()), "optimizer {at}");
        let states = [&resumed_optimizer, &optimizer].map(|optimizer| bits(&optimizer.state_dict().unwrap()));
        assert_eq!(states[0], states[1], "optimizer {at}");
    }
}

#[test]
fn the_state_of_another_optimizer_is_refused_whole() {
    let parameter = || Variable::with_grad(Tensor::new([1.0f32, 2.0], &cpu()).unwrap()).unwrap();
    let create = || Adam::new(vec![parameter(), parameter()], 0.5).unwrap();
    let mut optimizer = create();
    for parameter in optimizer.parameters() {
        parameter.backward_with(&Tensor::new([0.5f32, 0.25], &cpu()).unwrap()).unwrap();
    }
    optimizer.step().unwrap();
    let good = optimizer.state_dict().unwrap();
    let names =
        ["0.exp_avg", "0.exp_avg_sq", "0.step", "1.exp_avg", "1.exp_avg_sq", "1.step", "learning_rate"];
    assert!(good.keys().eq(names.iter()), "{:?}", good.keys());
    let tensor =
        |number: f64, dtype: DType, shape: &[usize]| Tensor::full(shape, number, dtype, &cpu()).unwrap();
    // The entry, its new value, and words of the error.
    let cases = [
        ("0.step", None, "'0.step' is missing"),
        ("learning_rate", None, "'learning_rate' is missing"),
        ("learning_rate", Some(tensor(-1.0, DType::F64, &[])), "'learning_rate' is -1"),
        ("learning_rate", Some(tensor(1.0, DType::F32, &[])), "'learning_rate' is f32"),
        ("0.step", Some(tensor(-1.0, DType::I64, &[])), "-1 steps"),
        ("0.step", Some(tensor(1.0, DType::F32, &[])), "'0.step' is f32 of shape [] in place of i64"),
        ("1.exp_avg", Some(tensor(1.0, DType::F32, &[3])), "[3] in place of f32 of shape [2]"),
        ("1.exp_avg_sq", Some(tensor(1.0, DType::F64, &[2])), "f64 of shape [2] in place of f32"),
        ("2.step", Some(tensor(1.0, DType::I64, &[])), "'2.step' is extra"),
        ("0.momentum_buffer", Some(tensor(1.0, DType::F32, &[2])), "'0.momentum_buffer' is extra"),
    ];
    for (name, value, words) in cases {
        let mut entries = good.clone();
        match value {
            Some(value) => drop(entries.insert(name.to_owned(), value)),
            None => drop(entries.remove(name)),
        }
        let error = optimizer.load_state_dict(&entries).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error} lacks {words}");
        assert_eq!(bits(&optimizer.state_dict().unwrap()), bits(&good), "{words}");
    }
    // A parameter that has taken no step has no entries.
    let fresh = create().state_dict().unwrap();
    assert_eq!(fresh.len(), 1);
    optimizer.load_state_dict(&fresh).unwrap();
    assert_eq!(bits(&optimizer.state_dict().unwrap()), bits(&fresh));
}

#[test]
fn the_last_checkpoints_and_the_best_one_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::open(folder.path()).unwrap().with_kept(2).unwrap();
    assert!(
        checkpoints.list().unwrap().latest().is_none()
            && checkpoints.list().unwrap().best().unwrap().is_none()
    );
    // The step, its loss, the steps that stay, and the best one.
    type Case = (u64, Option<f64>, &'static [u64], Option<u64>);
    let cases: [Case; 8] = [
        (10, None, &[10], None),
        (20, Some(2.0), &[10, 20], Some(20)),
        (30, Some(1.0), &[20, 30], Some(30)),
        (40, Some(f64::NAN), &[30, 40], Some(30)),
        (50, Some(f64::NEG_INFINITY), &[30, 40, 50], Some(30)),
        (60, None, &[30, 50, 60], Some(30)),
        (1_000_000, Some(0.5), &[60, 1_000_000], Some(1_000_000)),
        (5, Some(0.75), &[5, 60, 1_000_000], Some(1_000_000)),
    ];
    for (step, loss, kept, best) in cases {
        let path = checkpoints.save(&checkpoint(step, loss)).unwrap();
        assert!(path.ends_with(format!("checkpoint_step_{step:06}")));
        let list = checkpoints.list().unwrap();
        assert_eq!(steps(&list), kept, "step {step}");
        assert_eq!(list.best().unwrap().map(|entry| entry.step()), best, "step {step}");
        check_whole(&Checkpoint::load(path, &cpu()).unwrap());
    }
    // A checkpoint of the same step is replaced, also the best one.
    checkpoints.save(&checkpoint(1_000_000, None)).unwrap();
    assert!(checkpoints.list().unwrap().best().unwrap().is_none());
    drop(checkpoints);
    // Another run goes on with the best loss of the last one.
    let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
    checkpoints.save(&checkpoint(1_000_001, Some(0.125))).unwrap();
    drop(checkpoints);
    let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
    checkpoints.save(&checkpoint(1_000_002, Some(0.25))).unwrap();
    assert_eq!(checkpoints.list().unwrap().best().unwrap().map(|entry| entry.step()), Some(1_000_001));
    let names =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let hidden: Vec<String> = names.filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    let error = checkpoints.with_kept(0).unwrap_err().to_string();
    assert!(error.contains("at least 1"), "{error}");
}

const FOLDER: &str = "SELVEDGE_TEST_CHECKPOINTS";

/// Saves each step twice, so that renames of both kinds happen, and says so after the first.
fn save_until_killed(folder: &Path) {
    let mut checkpoints = Checkpoints::open(folder).unwrap().with_kept(1).unwrap();
    let first = checkpoints.list().unwrap().latest().map_or(0, |entry| entry.step() + 1);
    for step in first.. {
        checkpoints.save(&checkpoint(step, Some(1.0 / (step + 1) as f64))).unwrap();
        println!("\nsaved {step}");
        std::io::stdout().flush().unwrap();
        checkpoints.save(&checkpoint(step, None)).unwrap();
    }
}

#[test]
fn a_killed_process_leaves_its_last_checkpoint() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return save_until_killed(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut last = None;
    for round in 0..10u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["checkpoints::a_killed_process_leaves_its_last_checkpoint", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let step_of =
            |line: &str| line.trim().strip_prefix("saved ").map(|step| step.parse::<u64>().unwrap());
        let mut line = String::new();
        while step_of(&line).is_none() {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the child ended by itself");
        }
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos() % 9_000_000;
        std::thread::sleep(Duration::from_nanos(u64::from(moment) + round * 1_000_000));
        // SIGKILL on unix.
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = line.clone();
        output.read_to_string(&mut rest).unwrap();
        let saved = rest.lines().filter_map(step_of).next_back().unwrap();
        assert!(last.is_none_or(|last| saved > last), "the child went on after {last:?}");
        last = Some(saved);

        let checkpoints = Checkpoints::open(folder.path()).unwrap();
        let list = checkpoints.list().unwrap();
        let latest = list.latest().unwrap();
        assert!(latest.step() == saved || latest.step() == saved + 1, "{} after {saved}", latest.step());
        for entry in list.entries() {
            check_whole(&entry.load(&cpu()).unwrap());
        }
    }
}

#[test]
fn what_a_killed_process_left_is_finished_or_undone() {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
    for step in [1, 2, 3] {
        checkpoints.save(&checkpoint(step, None)).unwrap();
    }
    drop(checkpoints);
    let path = |name: &str| folder.path().join(name);
    // The only copy of step 3; a copy beside its replacement; a half-written one; a half-deleted one.
    fs::rename(path("checkpoint_step_000003"), path(".checkpoint_step_000003.replaced")).unwrap();
    for name in
        [".checkpoint_step_000002.replaced", ".checkpoint_step_000004.tmp", ".checkpoint_step_000001.removed"]
    {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("model.safetensors"), b"half").unwrap();
    }
    // Nobody's business.
    fs::create_dir(path(".checkpoint_step_x.tmp")).unwrap();
    fs::write(path("checkpoint_step_000009"), b"a file").unwrap();
    let checkpoints = Checkpoints::open(folder.path()).unwrap();
    let list = checkpoints.list().unwrap();
    assert_eq!(steps(&list), [1, 2, 3]);
    list.entries().iter().for_each(|entry| check_whole(&entry.load(&cpu()).unwrap()));
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name.starts_with('.'));
    assert_eq!(names, [".checkpoint_step_x.tmp"]);
}

#[test]
fn a_folder_has_one_writer_and_a_stale_lock_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    let mut first = Checkpoints::open(folder.path()).unwrap();
    let own: Value = serde_json::from_slice(&fs::read(&lock).unwrap()).unwrap();
    let locked = |error: Error, pid: u64, host: &str| {
        assert!(matches!(error, Error::FolderLocked { .. }), "{error}");
        let message = error.to_string();
        let words = [format!("process {pid} "), host.to_owned(), lock.display().to_string()];
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    let (pid, host) = (u64::from(std::process::id()), own["host"].as_str().unwrap().to_owned());
    assert!(!host.is_empty());
    locked(Checkpoints::open(folder.path()).unwrap_err(), pid, &host);
    first.save(&checkpoint(1, None)).unwrap();
    // Readers need no lock.
    assert_eq!(steps(&CheckpointList::read(folder.path()).unwrap()), [1]);

    // Another process took the lock over: the first one must not write, nor delete the lock.
    let with = |pid: Value, host: &str, start: &Value| {
        json!({ "pid": pid, "host": host, "start": start }).to_string()
    };
    fs::write(&lock, with(json!(1), "elsewhere", &json!(5))).unwrap();
    locked(first.save(&checkpoint(2, None)).unwrap_err(), 1, "elsewhere");
    drop(first);
    assert!(lock.exists());
    locked(Checkpoints::open(folder.path()).unwrap_err(), 1, "elsewhere");

    let mut ended =
        Command::new(std::env::current_exe().unwrap()).arg("--list").stdout(Stdio::null()).spawn().unwrap();
    let ended_pid = ended.id();
    ended.wait().unwrap();
    let mut stale = vec![with(json!(ended_pid), &host, &own["start"])];
    if cfg!(target_os = "linux") {
        // The number belongs to another process since: this one, which began later.
        stale.push(with(json!(pid), &host, &json!(own["start"].as_u64().unwrap() - 1)));
    }
    for text in stale {
        fs::write(&lock, &text).unwrap();
        let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
        let ended: Value = serde_json::from_str(&text).unwrap();
        let (ended_pid, ended_host) = checkpoints.ended_writer().expect("a stale lock");
        assert_eq!((json!(ended_pid), json!(ended_host)), (ended["pid"].clone(), ended["host"].clone()));
        let found: Value = serde_json::from_slice(&fs::read(&lock).unwrap()).unwrap();
        assert_eq!(found, own, "the lock of this process in place of {text}");
        checkpoints.save(&checkpoint(3, None)).unwrap();
        fs::remove_file(&lock).unwrap();
        let error = checkpoints.save(&checkpoint(4, None)).unwrap_err().to_string();
        assert!(error.contains("no lock"), "{error}");
    }
    for damaged in
        ["", "{}", "lock", &with(json!(0), &host, &Value::Null), &with(json!(u32::MAX), &host, &Value::Null)]
    {
        fs::write(&lock, damaged).unwrap();
        let error = Checkpoints::open(folder.path()).unwrap_err();
        assert!(matches!(error, Error::File { .. }) && error.to_string().contains("delete it"), "{error}");
    }
    fs::remove_file(&lock).unwrap();
    assert_eq!(Checkpoints::open(folder.path()).unwrap().ended_writer(), None);
    assert!(!lock.exists(), "a lock ends with its holder");
}

#[cfg(target_os = "linux")]
#[test]
fn threads_that_find_a_stale_lock_have_one_winner() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    drop(Checkpoints::open(folder.path()).unwrap());
    let first = Checkpoints::open(folder.path()).unwrap();
    let mut own: Value = serde_json::from_slice(&fs::read(&lock).unwrap()).unwrap();
    drop(first);
    own["start"] = json!(1);
    for _ in 0..20 {
        fs::write(&lock, own.to_string()).unwrap();
        let opened: Vec<Checkpoints> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Checkpoints::open(folder.path()))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap().ok()).collect()
        });
        assert_eq!(opened.len(), 1);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_found_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    // A path that is a file, and one below a file.
    let mut paths = vec![file.clone(), file.join("checkpoints")];
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let read_only = folder.path().join("read-only");
        fs::create_dir(&read_only).unwrap();
        fs::set_permissions(&read_only, fs::Permissions::from_mode(0o555)).unwrap();
        if fs::write(read_only.join("probe"), b"").is_ok() {
            eprintln!("skipped the read-only folder: this user may write it (root)");
        } else {
            paths.push(read_only);
        }
    }
    for path in paths {
        let error = Checkpoints::open(&path).unwrap_err();
        assert!(matches!(error, Error::File { .. } | Error::FileNotWritten { .. }), "{error}");
        let message = error.to_string();
        assert!(
            message.contains(&path.display().to_string()) && message.contains("can be written"),
            "{message}"
        );
    }
}

#[test]
fn damaged_files_and_newer_versions_are_errors_that_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
    let path = checkpoints.save(&checkpoint(7, Some(0.5))).unwrap();
    drop(checkpoints);
    let files = ["model.safetensors", "optimizer.safetensors", "info.json", "SHA256SUMS"];
    for file in files {
        let path = path.join(file);
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        let truncated = [whole.len() - 1, whole.len() / 2, 1, 0].map(|length| whole[..length].to_vec());
        let mut longer = whole.clone();
        longer.push(b'1');
        let damages = truncated.into_iter().map(Some).chain([Some(flipped), Some(longer), None]);
        for damage in damages {
            match &damage {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let Err(error) = Checkpoint::load(path.parent().unwrap(), &cpu()) else {
                panic!("{file} of {:?} bytes was read", damage.map(|bytes| bytes.len()));
            };
            assert!(matches!(error, Error::File { .. }), "{error}");
            assert!(error.to_string().contains(file), "{error} does not name {file}");
        }
        fs::write(&path, &whole).unwrap();
    }
    check_whole(&Checkpoint::load(&path, &cpu()).unwrap());

    let info = path.join("info.json");
    let text = fs::read_to_string(&info).unwrap();
    assert!(text.contains("\"format_version\": 1,"), "{text}");
    fs::write(&info, text.replace("\"format_version\": 1,", "\"format_version\": 12,")).unwrap();
    let errors = [
        Checkpoint::load(&path, &cpu()).unwrap_err(),
        CheckpointInfo::load(&path).unwrap_err(),
        Checkpoints::open(folder.path()).unwrap_err(),
    ];
    for error in errors {
        let message = error.to_string();
        assert!(message.contains("version 12") && message.contains("at most version 1"), "{message}");
    }
}

#[test]
fn a_run_continues_from_a_checkpoint_before_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::open(folder.path()).unwrap().with_kept(9).unwrap();
    let saved = [(4, 0.5), (8, 0.6), (12, 0.4)]
        .map(|(step, loss)| checkpoints.save(&checkpoint(step, Some(loss))).unwrap());
    drop(checkpoints);
    let latest_whole = || {
        let list = CheckpointList::read(folder.path()).unwrap();
        list.latest_whole().unwrap().map(|entry| entry.step())
    };
    assert_eq!(latest_whole(), Some(12));
    fs::write(saved[2].join("info.json"), "{").unwrap();
    assert_eq!(latest_whole(), Some(8));
    fs::write(saved[1].join("model.safetensors"), "no tensors").unwrap();
    assert_eq!(latest_whole(), Some(4));

    let mut checkpoints = Checkpoints::open(folder.path()).unwrap().with_kept(9).unwrap();
    let message = checkpoints.rewind(5).unwrap_err().to_string();
    assert!(message.contains("no checkpoint of step 5"), "{message}");
    let moved = checkpoints.rewind(4).unwrap();
    let names: Vec<_> = moved.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["checkpoint_step_000008.set-aside", "checkpoint_step_000012.set-aside"]);
    assert_eq!(steps(&checkpoints.list().unwrap()), [4]);
    // The best loss is that of the course of step 4, not that of step 12.
    checkpoints.save(&checkpoint(8, Some(0.45))).unwrap();
    let list = checkpoints.list().unwrap();
    assert_eq!(list.best().unwrap().map(|entry| entry.step()), Some(8));
    // A step that is set aside twice has two names.
    checkpoints.rewind(4).unwrap();
    assert!(folder.path().join("checkpoint_step_000008.set-aside-2").is_dir());
    assert!(checkpoints.rewind(4).unwrap().is_empty());
}
