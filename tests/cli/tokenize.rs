//! `selvedge tokenize`: a tokenizer from texts, and files of ids from them.

use selvedge::nn::{SubwordTokenizer, TokenFiles, Tokenizer};

use super::{FAILED_FOR_INPUT, Folder, fails, json, succeeds};

/// Two texts, the second with bytes that are not UTF-8, and a tokenizer of theirs.
fn trained(folder: &Folder) -> (Vec<(String, Vec<u8>)>, String) {
    let texts = [
        ("a.txt", "it was the best of times, it was the worst of times\n".repeat(3000).into_bytes()),
        ("b.txt", [b"it was <|endoftext|>\xff\xfe ".repeat(9), "caf\u{e9} \u{1f642}".into()].concat()),
    ];
    let texts = texts.map(|(name, text)| {
        let path = folder.file(name);
        std::fs::write(&path, &text).unwrap();
        (path, text)
    });
    let tokenizer = folder.file("tokenizer");
    let report = json(&succeeds(&[
        "tokenize",
        "--train",
        "--vocab",
        "280",
        &texts[0].0,
        &texts[1].0,
        "--out",
        &tokenizer,
        "--json",
    ]));
    assert_eq!((&report["vocab_size"], &report["documents"]), (&280.into(), &2.into()));
    (texts.to_vec(), tokenizer)
}

#[test]
fn texts_become_files_of_ids_and_back() {
    let folder = Folder::new("tokenize");
    let (texts, tokenizer) = trained(&folder);
    let loaded = SubwordTokenizer::from_folder(&tokenizer).unwrap();
    let end = loaded.end_id().unwrap();
    let wanted: Vec<u32> = texts
        .iter()
        .flat_map(|(_, text)| loaded.encode_bytes(text).unwrap().into_iter().chain([end]))
        .collect();
    let decoded = [&*texts[0].1, b"<|endoftext|>", &*texts[1].1, b"<|endoftext|>"].concat();
    assert_eq!(loaded.decode_bytes(&wanted).unwrap(), decoded);
    let first = ["tokenize", &texts[0].0, &texts[1].0, "--tokenizer", &tokenizer, "--json"];
    for (name, more) in [
        ("a.bin", &[][..]),
        ("b.bin", &["--format", "raw"]),
        ("c.npy", &[]),
        ("d.npy", &["--dtype", "u32"]),
        ("e.bin", &["--shard", "5000"]),
    ] {
        let out = folder.file(name);
        let report = json(&succeeds(&[&first[..], &["--out", &out], more].concat()));
        let paths: Vec<&str> =
            report["files"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
        assert_eq!(paths.len() > 1, more.contains(&"--shard"), "{paths:?}");
        assert_eq!((&report["ids"], &report["end_id"]), (&wanted.len().into(), &end.into()));
        let files = TokenFiles::read(&paths).unwrap();
        assert!(files.ids(0..files.len()).unwrap() == wanted, "{name}");
    }
    let text = succeeds(&[&first[..5], &["--out", &folder.file("a.bin")]].concat());
    for word in ["2 documents", "ids", "of u16", "bytes an id", "a.bin"] {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

#[test]
fn many_documents_keep_their_order_and_small_texts_have_a_rate() {
    let folder = Folder::new("tokenize-many");
    let (_, tokenizer) = trained(&folder);
    let loaded = SubwordTokenizer::from_folder(&tokenizer).unwrap();
    let mut wanted = Vec::new();
    let mut arguments: Vec<String> = ["tokenize", "--tokenizer", &tokenizer].map(str::to_owned).into();
    for number in 0..60 {
        // Every tenth has several parts.
        let text =
            format!("document {number} of the times ").repeat(if number % 10 == 0 { 40_000 } else { 1 });
        let path = folder.file(&format!("{number}.txt"));
        std::fs::write(&path, &text).unwrap();
        wanted.extend(loaded.encode(&text).unwrap());
        wanted.push(loaded.end_id().unwrap());
        arguments.push(path);
    }
    let out = folder.file("many.BIN");
    arguments.extend(["--out".to_owned(), out.clone()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    succeeds(&arguments);
    let files = TokenFiles::read([&out]).unwrap();
    assert!(files.ids(0..files.len()).unwrap() == wanted);
    let small = folder.file("1.txt");
    let text = succeeds(&["tokenize", &small, "--tokenizer", &tokenizer, "--out", &out]);
    assert!(text.contains("B/s") && !text.contains(" 0.0 ") && !text.contains("GB/s"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_file() {
    use std::process::Stdio;
    let folder = Folder::new("tokenize-signal");
    let (texts, tokenizer) = trained(&folder);
    let files = folder.file("files");
    std::fs::create_dir(&files).unwrap();
    let names =
        || std::fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let out = format!("{files}/ids.bin");
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        // 3 GB of text, far more than the program reads before the signal.
        let mut command = std::process::Command::new(super::common::program());
        let arguments = ["tokenize", &texts[0].0, "--tokenizer", &tokenizer, "--out", &out, "--json"];
        let many = vec![texts[0].0.as_str(); 20_000];
        super::common::hide_libraries(&mut command).args(arguments).args(many);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while names().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "the program ended early");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(names().is_empty(), "{signal} left {:?}", names());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["error"]["exit_code"], code);
        let message = report["error"]["message"].as_str().unwrap();
        assert!(message.contains("ids.bin") && message.contains("no file"), "{message}");
    }
}

#[test]
fn bad_input_names_what_it_lacks() {
    let folder = Folder::new("tokenize-bad");
    let (texts, tokenizer) = trained(&folder);
    let (text, out, empty) = (texts[0].0.as_str(), folder.file("o.bin"), folder.file("empty.txt"));
    std::fs::write(&empty, "").unwrap();
    let none = folder.file("none");
    let refused = |arguments: &[&str], words: &[&str]| {
        fails(FAILED_FOR_INPUT, &[&["tokenize"], arguments].concat(), words);
        assert!(!std::path::Path::new(&out).exists(), "{arguments:?}");
    };
    refused(&[&empty, "--tokenizer", &tokenizer, "-o", &out], &["empty.txt", "an empty file"]);
    refused(&[text, "--tokenizer", &none, "-o", &out], &["no such folder", "tokenizer.json"]);
    refused(&[&none, "--tokenizer", &tokenizer, "-o", &out], &["no such file"]);
    refused(&[text, "-o", &out], &["--tokenizer"]);
    refused(&[text, "--tokenizer", &tokenizer, "-o", &out, "--end", "<none>"], &["<none>", "<|endoftext|>"]);
    refused(
        &[text, "--tokenizer", &tokenizer, "-o", &out, "--format", "raw", "--dtype", "u32"],
        &["u32", "header"],
    );
    refused(&[text, "--tokenizer", &tokenizer, "-o", &out, "--format", "npy"], &["o.bin", ".npy"]);
    refused(&[text, "--train", "-o", &out], &["--vocab"]);
    refused(&[text, "--train", "--vocab", "256", "-o", &out], &["256 ids", "257"]);
    refused(&[&empty, "--train", "--vocab", "300", "-o", &out], &["an empty file"]);

    // A vocabulary that u16 cannot hold: an added token far above the others.
    let path = folder.file("tokenizer/tokenizer.json");
    let mut file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    file["model"]["vocab"]["far"] = 70_000.into();
    std::fs::write(&path, file.to_string()).unwrap();
    refused(
        &[text, "--tokenizer", &tokenizer, "-o", &out, "--dtype", "u16"],
        &["70001 ids", "u16", "--dtype u32"],
    );
    let report = json(&succeeds(&["tokenize", text, "--tokenizer", &tokenizer, "-o", &out, "--json"]));
    assert_eq!(report["dtype"], "u32");
    std::fs::remove_file(folder.file("tokenizer/tokenizer_config.json")).unwrap();
    fails(
        FAILED_FOR_INPUT,
        &["tokenize", text, "--tokenizer", &tokenizer, "-o", &out],
        &["no end token", "--end"],
    );
}
