//! `selvedge generate --model` on a folder as Hugging Face publishes it: options, batches, conversations, signals and bad input.

use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{FAILED_FOR_INPUT, Folder, common, fails, json as parsed, succeeds};

const TEMPLATE: &str = "{% for message in messages %}{{ message.role[0] }}:{{ message.content }}\n{% endfor %}\
                        {% if add_generation_prompt %}a:{% endif %}";

/// Unpacks a model of tests/data/models and gives it a tokenizer of single bytes: one token for each of its 128 ids.
pub fn model(folder: &Folder, name: &str) -> String {
    let archive = common::repository().join("tests/data/models/cases.zip");
    let bytes = std::fs::read(archive).unwrap();
    zip::ZipArchive::new(Cursor::new(bytes)).unwrap().extract(&folder.0).unwrap();
    let path = folder.file(name);
    // The characters that stand for bytes: a line's end, a space, ASCII, and bytes that are not UTF-8 alone.
    let letters = ['Ċ', 'Ġ'].into_iter().chain('!'..='~').chain('¡'..='¬').chain('®'..='¾');
    let mut vocab = serde_json::Map::new();
    for token in ["<pad>", "<s>", "</s>"].map(str::to_owned).into_iter().chain(letters.map(String::from)) {
        vocab.insert(token, vocab.len().into());
    }
    assert_eq!(vocab.len(), 128);
    let special = |id: u32, content: &str| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true })
    };
    let bytes =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": [special(0, "<pad>"), special(1, "<s>"), special(2, "</s>")],
        "pre_tokenizer": bytes, "post_processor": null, "decoder": bytes,
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": [] },
    });
    write(&path, "tokenizer.json", &tokenizer);
    let config = json!({ "bos_token": "<s>", "eos_token": "</s>", "chat_template": TEMPLATE });
    write(&path, "tokenizer_config.json", &config);
    // No id ends a text.
    write(&path, "generation_config.json", &json!({ "eos_token_id": 1_000_000 }));
    path
}

fn write(folder: &str, name: &str, value: &Value) {
    std::fs::write(Path::new(folder).join(name), value.to_string()).unwrap();
}

fn generate<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["generate", "--model", model, "--device", "cpu"], more].concat()
}

fn report(model: &str, more: &[&str]) -> Value {
    parsed(&succeeds(&[&generate(model, more)[..], &["--json"]].concat()))
}

#[test]
fn a_published_model_continues_a_prompt() {
    let folder = Folder::new("models-generate");
    let model = model(&folder, "llama2");
    let found = report(&model, &["--prompt", "it was", "--length", "12", "--logprobs", "3"]);
    let sequence = &found["sequences"][0];
    assert_eq!(sequence["ids"].as_array().unwrap().len(), 12);
    assert_eq!((&sequence["prompt"], &sequence["end"]), (&"it was".into(), &"length".into()));
    assert_eq!(sequence["prompt_ids"].as_array().unwrap().len(), 6);
    let rows = sequence["logprobs"].as_array().unwrap();
    for (row, id) in rows.iter().zip(sequence["ids"].as_array().unwrap()) {
        let top = row["top"].as_array().unwrap();
        // The choice is greedy.
        assert_eq!((&row["id"], &top[0]["id"], &top[0]["logprob"]), (id, id, &row["logprob"]));
        assert!(top.len() == 3 && row["logprob"].as_f64().unwrap() < 0.0, "{row}");
    }
    assert_eq!(rows.len(), 12);
    for key in ["load_seconds", "first_id_seconds", "seconds", "ids_per_second"] {
        assert!(found[key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert_eq!((&found["dtype"], &found["device"]), (&"f32".into(), &"cpu".into()));
    let text = succeeds(&generate(&model, &["--prompt", "it was", "--length", "12"]));
    assert_eq!(
        text.trim_end_matches('\n'),
        format!("it was{}", sequence["text"].as_str().unwrap()).trim_end_matches('\n')
    );
    assert!(text.ends_with('\n'));
    let narrow = report(&model, &["--prompt", "it was", "--length", "2", "--dtype", "bf16"]);
    assert_eq!(narrow["dtype"], "bf16");
    // By default a text ends with the context, of 64 ids: the last one is not read.
    let whole = report(&model, &["--prompt", "it was"]);
    assert_eq!(whole["sequences"][0]["ids"].as_array().unwrap().len(), 64 - 6 + 1);
}

#[test]
fn options_choose_the_ids() {
    let folder = Folder::new("models-options");
    let model = model(&folder, "llama2");
    let ids = |more: &[&str]| {
        let first = ["--prompt", "it was", "--length", "20"];
        report(&model, &[&first[..], more].concat())["sequences"][0]["ids"].clone()
    };
    let greedy = ids(&[]);
    for same in [
        &["--temperature", "0"][..],
        &["--top-k", "1"],
        &["--top-p", "0.000001"],
        &["--min-p", "1"],
        &["--repetition-penalty", "1", "--presence-penalty", "0", "--frequency-penalty", "0"],
    ] {
        assert_eq!(ids(same), greedy, "{same:?}");
    }
    let distinct = |ids: &Value| {
        let ids: std::collections::BTreeSet<u64> =
            ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        ids.len()
    };
    assert!(distinct(&greedy) < 20, "{greedy}");
    for penalty in ["--presence-penalty", "--frequency-penalty", "--repetition-penalty"] {
        assert_eq!(distinct(&ids(&[penalty, "1000000"])), 20, "{penalty}");
    }
    let drawn = ids(&["--temperature", "1"]);
    assert_eq!(drawn, ids(&["--temperature", "1", "--seed", "1"]));
    assert_ne!(drawn, ids(&["--temperature", "1", "--seed", "2"]));
    // generation_config.json has the defaults: draws, and the end of a text.
    write(&model, "generation_config.json", &json!({ "do_sample": true, "eos_token_id": 1_000_000 }));
    assert_eq!(ids(&[]), drawn);
    let third = &greedy[2];
    let first = greedy.as_array().unwrap().iter().position(|id| id == third).unwrap();
    write(&model, "generation_config.json", &json!({ "eos_token_id": [127_000, third] }));
    let found = report(&model, &["--prompt", "it was", "--length", "20"]);
    assert_eq!(found["sequences"][0]["ids"].as_array().unwrap().len(), first + 1);
    assert_eq!(found["sequences"][0]["end"], "end_id");
}

#[test]
fn a_stop_string_ends_a_text_across_ids() {
    let folder = Folder::new("models-stop");
    let model = model(&folder, "llama2");
    let more = ["--prompt", "it was", "--length", "40"];
    let whole = report(&model, &more)["sequences"][0]["text"].as_str().unwrap().to_owned();
    let letters: Vec<char> = whole.chars().collect();
    // Each id is a byte, so a string of three letters has three ids. A character that is not UTF-8 cannot be typed.
    let stop = letters[5..].windows(3).map(|window| window.iter().collect::<String>());
    let stop = stop.into_iter().find(|stop| stop.is_ascii() && !stop.contains('\n')).unwrap();
    let wanted = &whole[..whole.find(&stop).unwrap()];
    let found = report(&model, &[&more[..], &["--stop", "never", &format!("--stop={stop}")]].concat());
    let sequence = &found["sequences"][0];
    assert_eq!((&sequence["text"], &sequence["end"]), (&wanted.into(), &"stop".into()));
    let text = succeeds(&generate(&model, &[&more[..], &[&format!("--stop={stop}")]].concat()));
    assert_eq!(text.trim_end_matches('\n'), format!("it was{wanted}").trim_end_matches('\n'));
    fails(FAILED_FOR_INPUT, &generate(&model, &[&more[..], &["--stop", ""]].concat()), &["no characters"]);
}

#[test]
fn prompts_of_a_batch_have_the_texts_of_each_alone() {
    let folder = Folder::new("models-batch");
    let model = model(&folder, "llama2");
    let length = ["--length", "10"];
    let found = report(&model, &[&length[..], &["--prompt", "it was", "--prompt", "a"]].concat());
    for (index, prompt) in ["it was", "a"].into_iter().enumerate() {
        let alone = report(&model, &[&length[..], &["--prompt", prompt]].concat());
        let text = &alone["sequences"][0]["text"];
        assert_eq!(&found["sequences"][index]["text"], text, "{prompt}");
        let printed = succeeds(&generate(&model, &["--length", "10", "--prompt", "it was", "--prompt", "a"]));
        assert!(
            printed.contains(&format!("== {} of 2\n{prompt}{}", index + 1, text.as_str().unwrap())),
            "{printed}"
        );
    }
}

/// Runs a conversation of lines.
fn chat(model: &str, lines: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let arguments = generate(model, &[&["--chat", "--length", "6"], more].concat());
    let mut command = Command::new(common::program());
    common::hide_libraries(&mut command).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_conversation_keeps_the_cache_between_turns() {
    let folder = Folder::new("models-chat");
    let model = model(&folder, "llama2");
    // Answers whose text has the same ids again.
    write(&model, "generation_config.json", &json!({ "eos_token_id": 1_000_000 }));
    let (code, text, errors) = chat(&model, "hello\n\nand you\n", &["--json"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let found = parsed(&text);
    let turns = found["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2);
    assert_eq!((&turns[0]["prompt"], &turns[0]["cached_ids"]), (&"hello".into(), &0.into()));
    let ids = |value: &Value| value.as_array().unwrap().len() as u64;
    // "u:hello\na:" is in the cache at least, and the answers are those without it.
    let cached = turns[1]["cached_ids"].as_u64().unwrap();
    assert!(cached >= ids(&turns[0]["prompt_ids"]) && cached < ids(&turns[1]["prompt_ids"]), "{found}");
    // The conversation has no bytes that are no character.
    let answer = turns[0]["text"].as_str().unwrap().replace(char::REPLACEMENT_CHARACTER, "");
    for (turn, prompt) in [(0, "u:hello\na:".to_owned()), (1, format!("u:hello\na:{answer}\nu:and you\na:"))]
    {
        let alone = report(&model, &["--length", "6", "--prompt", &prompt]);
        assert_eq!(turns[turn]["ids"], alone["sequences"][0]["ids"], "turn {turn}");
    }
    let (code, text, _) = chat(&model, "hello\n\nand you\n", &[]);
    assert_eq!(code, Some(0));
    let answers = turns.iter().map(|turn| turn["text"].as_str().unwrap());
    let line = |answer: &str| if answer.ends_with('\n') { answer.to_owned() } else { format!("{answer}\n") };
    assert_eq!(text, answers.map(line).collect::<String>());
    assert_eq!(chat(&model, "", &[]), (Some(0), String::new(), String::new()));
    let (code, _, errors) = chat(&model, &"long ".repeat(30), &[]);
    assert!(code == Some(FAILED_FOR_INPUT) && errors.contains("at most 64"), "{errors}");
    write(&model, "tokenizer_config.json", &json!({}));
    fails(FAILED_FOR_INPUT, &generate(&model, &["--chat"]), &["no chat template"]);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_text_with_a_whole_line() {
    let folder = Folder::new("models-signal");
    let model = model(&folder, "llama2");
    let endless = ["--length", "1000000", "--temperature", "1"];
    for (more, input) in [
        (&[&endless[..], &["--prompt", "it was"]].concat(), ""),
        (&[&endless[..], &["--chat"]].concat(), "hello\n"),
        // The answer ends, and the program waits for a line.
        (&["--length", "6", "--chat"].to_vec(), "hello\n"),
    ] {
        let mut command = Command::new(common::program());
        common::hide_libraries(&mut command).args(generate(&model, more));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        stdin.write_all(input.as_bytes()).unwrap();
        let mut text = Vec::new();
        while text.len() < 40 && (more.contains(&"1000000") || !text.ends_with(b"\n")) {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap();
            text.extend(byte);
        }
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        stdout.read_to_end(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{more:?}");
        assert!(text.ends_with(b"\n"), "{more:?}: {}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn bad_input_of_a_generation_names_both_sides() {
    let folder = Folder::new("models-bad");
    let model = model(&folder, "llama2");
    let refused = |more: &[&str], parts: &[&str]| fails(FAILED_FOR_INPUT, &generate(&model, more), parts);
    refused(&[], &["no prompt", "--chat"]);
    refused(&["--prompt", ""], &["prompt 0 without ids", "at least one id"]);
    refused(&["--prompt", "a", "--prompt", ""], &["prompt 1 without ids"]);
    refused(&["--prompt", &"long ".repeat(13)], &["a prompt of 65 ids", "at most 64"]);
    for (option, value, part) in [
        ("--temperature", "-1", "temperature = -1"),
        ("--top-p", "0", "top_p = 0"),
        ("--top-p", "1.5", "top_p = 1.5"),
        ("--top-k", "0", "--top-k"),
        ("--min-p", "2", "min_p = 2"),
        ("--repetition-penalty", "0", "repetition_penalty = 0"),
        ("--presence-penalty", "nan", "presence_penalty = NaN"),
        ("--dtype", "i8", "bf16"),
        ("--logprobs", "3", "--json"),
        ("--run", "x", "cannot be used with"),
        ("--step", "1", "cannot be used with"),
    ] {
        refused(&["--prompt", "a", option, value], &[part]);
    }
    refused(&["--chat", "--prompt", "a"], &["cannot be used with"]);
    fails(FAILED_FOR_INPUT, &["generate", "--chat"], &["--model"]);
    let nowhere = folder.file("nowhere");
    fails(FAILED_FOR_INPUT, &generate(&nowhere, &["--prompt", "a"]), &["nowhere", "no such folder"]);
    // Learned positions have an end.
    let learned = super::models::model(&folder, "gpt2");
    let arguments = generate(&learned, &["--prompt", "it was", "--length", "44"]);
    fails(FAILED_FOR_INPUT, &arguments, &["6 ids and 44 new ids", "48 positions"]);
    // A tokenizer of more ids than the embedding.
    let path = Path::new(&model).join("tokenizer.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"a\":69", "\"a\":300")).unwrap();
    refused(&["--prompt", "a"], &["id 300", "below 128"]);
}
