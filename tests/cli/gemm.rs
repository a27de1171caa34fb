//! `selvedge explain matmul`: its text, its JSON and its errors.

use super::{FAILED_FOR_INPUT, fails, json, succeeds};

#[test]
fn a_product_is_explained_without_a_device() {
    let text = succeeds(&["explain", "matmul", "4096", "4096", "4096", "bf16", "--arch", "sm_90a"]);
    assert!(
        text.starts_with("On a device that is not here:\n4096x4096x4096 (nn) of bf16 into bf16"),
        "{text}"
    );
    assert!(text.contains(": wgmma\n  kernel gemm_wgmma_bf16_nn_"), "{text}");
    let text = succeeds(&["explain", "matmul", "64", "64", "64", "f64", "--layout", "tn"]);
    assert!(
        text.contains(": mma\n  kernel gemm_mma_f64_tn_")
            && text.contains("not wgmma: it does not multiply f64"),
        "{text}"
    );
}

#[test]
fn a_product_is_explained_as_json() {
    let value = json(&succeeds(&[
        "explain", "matmul", "1000", "1001", "1002", "bfloat16", "--into", "float32", "--batch", "3",
        "--json",
    ]));
    assert_eq!(value["engine"], "wgmma");
    assert_eq!(value["device"]["compute_capability"], "9.0");
    assert_eq!(value["device"]["here"], false);
    assert_eq!((&value["operands"], &value["result"]), (&"bf16".into(), &"f32".into()));
    assert_eq!(value["copied"], serde_json::json!(["A", "B"]));
    assert!(value["tiles"].as_u64().unwrap() >= 3 * 16, "{value}");
    let value = json(&succeeds(&["explain", "matmul", "8", "8", "8", "bf16", "--arch", "sm_80", "--json"]));
    assert_eq!(value["engine"], "mma");
    assert_eq!(value["others"][0]["engine"], "wgmma");
    assert!(value["others"][0]["lacks"].as_str().unwrap().contains("8.0"), "{value}");
    // More multiprocessors take more blocks.
    let blocks = |count: &str| {
        let arguments =
            ["explain", "matmul", "8192", "8192", "8192", "bf16", "--multiprocessors", count, "--json"];
        json(&succeeds(&arguments))["blocks"].as_u64().unwrap()
    };
    assert_eq!((blocks("132"), blocks("16")), (132, 16));
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let explain = |rest: &[&'static str]| [&["explain", "matmul"][..], rest].concat();
    fails(FAILED_FOR_INPUT, &explain(&["8", "8", "8", "f33"]), &["f33"]);
    fails(FAILED_FOR_INPUT, &explain(&["8", "8", "8", "bool"]), &["does not multiply bool into bool"]);
    fails(FAILED_FOR_INPUT, &explain(&["4294967296", "8", "8", "f32"]), &["m = 4294967296"]);
    fails(FAILED_FOR_INPUT, &explain(&["8", "8", "8", "f32", "--by", "wgmma"]), &["does not multiply f32"]);
    for arch in ["sm_999", "sm_91", "sm_50", "compute_130"] {
        fails(
            FAILED_FOR_INPUT,
            &explain(&["8", "8", "8", "f32", "--arch", arch]),
            &["no device has", "sm_90"],
        );
    }
    fails(
        FAILED_FOR_INPUT,
        &explain(&["8", "8", "8", "f32", "--by", "best"]),
        &["'best'", "wgmma, mma, simt"],
    );
    fails(
        FAILED_FOR_INPUT,
        &explain(&["8", "8", "8", "f32", "--by", "cublas"]),
        &["cuBLAS could not be loaded"],
    );
    fails(FAILED_FOR_INPUT, &explain(&["8", "8", "8", "f32", "--layout", "nx"]), &["nx"]);
}

#[cfg(target_os = "linux")]
mod on_the_fake_driver {
    use super::super::on_the_fake_driver::succeeds;

    #[test]
    fn a_product_is_explained_for_the_device() {
        let text = succeeds(&["explain", "matmul", "64", "64", "64", "f32"]);
        assert!(text.starts_with("On device 0:\n"), "{text}");
    }
}
