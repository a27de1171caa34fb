//! `selvedge explain attention`: its text, its JSON and its errors.

use super::{FAILED_FOR_INPUT, fails, json, succeeds};

#[test]
fn an_attention_is_explained_without_a_device() {
    let all = ["explain", "attention", "64", "12", "1024", "64", "bf16", "--arch", "sm_90a"];
    let text = succeeds(&all);
    assert!(
        text.starts_with("On a device that is not here:\nforward of queries [64, 12, 1024, 64]"),
        "{text}"
    );
    assert!(
        text.contains(": wgmma\n  kernel attention_forward_bf16_64_full: tiles of 192 queries"),
        "{text}"
    );
    assert!(text.ends_with("no scores are stored\n"), "{text}");
    let text = succeeds(&[&all[..], &["--causal", "--backward"]].concat());
    assert!(text.contains("_forward_bf16_64_band") && text.contains("_backward_bf16_64_band"), "{text}");
    let text = succeeds(&[&all[..], &["--soft-cap", "30", "--dropout", "0.1"]].concat());
    assert!(text.contains("attention_forward_bf16_64_varied"), "{text}");
    let decode =
        ["explain", "attention", "64", "32", "1", "128", "bf16", "--key-heads", "8", "--keys", "8192"];
    let text = succeeds(&[&decode[..], &["--decode", "--arch", "sm_80"]].concat());
    assert!(text.contains("decoding of queries [64, 32, 1, 128]") && text.contains(": mma\n"), "{text}");
    assert!(text.contains("attention_decode_bf16_128: tiles of 4 queries by blocks of 2048 keys"), "{text}");
    let text = succeeds(&["explain", "attention", "1", "2", "100", "68", "bf16", "--arch", "sm_90a"]);
    assert!(text.contains("which store 20000 probabilities\n  not wgmma: a head dimension of 68"), "{text}");
}

#[test]
fn an_attention_is_explained_as_json() {
    let explain = |rest: &[&'static str]| {
        json(&succeeds(&[&["explain", "attention", "2", "8", "500"][..], rest, &["--json"]].concat()))
    };
    let value = explain(&["256", "f16", "--key-heads", "2", "--keys", "700", "--arch", "sm_90a"]);
    assert_eq!((&value["engine"], &value["keys"]), (&"wgmma".into(), &serde_json::json!([2, 2, 700, 256])));
    assert_eq!(value["kernels"][0]["tile"], serde_json::json!([128, 80]));
    assert_eq!((&value["stored_probabilities"], &value["lacks"]), (&0.into(), &().into()));
    // Gradients of wide heads have no engine.
    let value = explain(&["256", "f16", "--backward", "--arch", "sm_90a"]);
    assert_eq!((&value["engine"], &value["stored_probabilities"]), (&"composed".into(), &4_000_000.into()));
    assert!(value["lacks"].as_str().unwrap().contains("256"), "{value}");
    let value = explain(&["64", "bf16", "--arch", "sm_80"]);
    assert_eq!(value["engine"], "composed");
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let explain = |rest: &[&'static str]| [&["explain", "attention", "1"][..], rest].concat();
    fails(FAILED_FOR_INPUT, &explain(&["8", "8", "8", "f33"]), &["f33"]);
    let three = explain(&["8", "8", "8", "bf16", "--key-heads", "3"]);
    fails(FAILED_FOR_INPUT, &three, &["key heads", "[1, 3, 8, 8]"]);
    fails(FAILED_FOR_INPUT, &explain(&["8", "8", "8", "bf16", "--window", "3"]), &["--window BEFORE,AFTER"]);
    fails(FAILED_FOR_INPUT, &explain(&["8", "8", "8", "bf16", "--dropout", "1.5"]), &["1.5"]);
    fails(FAILED_FOR_INPUT, &explain(&["8", "-8", "8", "bf16"]), &["-8"]);
}
