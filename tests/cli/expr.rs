//! `selvedge explain expr`: its text, its JSON and its errors.

use serde_json::Value;

use super::{FAILED_FOR_INPUT, fails, json, succeeds};

const MATRIX: [&str; 4] = ["--shape", "64x128", "--arch", "sm_90"];

#[track_caller]
fn explained(text: &str, more: &[&str]) -> Value {
    json(&succeeds(&[&["explain", "expr", text, "--json"], &MATRIX[..], more].concat()))
}

#[test]
fn an_elementwise_expression_is_explained() {
    let text = succeeds(&[&["explain", "expr", "relu(a*b+c)"], &MATRIX[..]].concat());
    assert!(
        text.starts_with("On a device that is not here:\nrelu(a*b+c)\n  a: f32 [64, 128]\n  b: f32"),
        "{text}"
    );
    assert!(
        text.contains("1 kernel reads 98304 bytes and writes 32768") && text.contains("launch 0: "),
        "{text}"
    );
    assert!(!text.contains(".version"), "{text}");
    let text = succeeds(&[&["explain", "expr", "relu(a*b+c)", "--ptx"], &MATRIX[..]].concat());
    assert!(text.contains(".version") && text.contains(".entry"), "{text}");
    let value = explained("fma(a, 2, -b) / (1 - 0.5)", &["--ptx", "--input", "b:f16[128]"]);
    assert_eq!(value["inputs"][1], serde_json::json!({ "name": "b", "dtype": "f16", "shape": [128] }));
    assert_eq!((&value["bytes_read"], &value["bytes_written"]), (&33024.into(), &32768.into()));
    assert!(value["kernels"][0]["launches"][0]["ptx"].as_str().unwrap().contains(".entry"), "{value}");
}

#[test]
fn machine_code_is_listed_on_request() {
    let request = |more: &[&str]| {
        let arguments = [&["explain", "expr", "relu(a*b+c)", "--code"], &MATRIX[..], more].concat();
        succeeds(&arguments)
    };
    let (text, value) = (request(&[]), json(&request(&["--json"])));
    let code = &value["kernels"][0]["cpu_code"];
    match code.as_str() {
        Some(code) => {
            assert!(text.contains(code), "{text}");
            // One comment for each instruction of the expression, and each of its bytes is listed.
            for part in
                [" = input 0\n", " = MultiplyFloat32 v0, v1", "; output 0 = v", "; next iteration, return"]
            {
                assert!(code.contains(part), "{part}: {code}");
            }
            let wanted: usize =
                code.split(" bytes\n").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
            let lines = code.lines().filter(|line| line.starts_with("  "));
            let bytes = |line: &str| {
                line[6..].split(';').next().unwrap().split_whitespace().filter(|byte| byte.len() == 2).count()
            };
            assert_eq!(lines.map(bytes).sum::<usize>(), wanted, "{code}");
        }
        None => assert!(code.is_null() && text.contains("no machine code of the CPU"), "{text}"),
    }
    assert!(explained("relu(a)", &[])["kernels"][0].get("cpu_code").is_none());
    let of_groups = [&["explain", "expr", "softmax(a)", "--code"], &MATRIX[..]].concat();
    fails(FAILED_FOR_INPUT, &of_groups, &["--code for an expression with groups"]);
}

/// Each row of text: expression, shape, dtype and architecture, with the memory of a row and the reason for it.
#[test]
fn the_reason_for_the_memory_of_a_row_is_named() {
    let shares = "a / sum_group(a) + b / sum_group(b) + c / sum_group(c)";
    let many = "sum_group(a + b + c + d + e + f + g + h)";
    for (text, shape, dtype, arch, memory, reason) in [
        ("softmax(x)", "64x4096", "f32", "sm_90", "in registers", None),
        (
            "softmax(x)",
            "64x5001",
            "f32",
            "sm_90",
            "in shared memory",
            Some("because an operand is not aligned to a vector and the row has 5 segments (most: 2)"),
        ),
        (
            "softmax(x)",
            "64x16384",
            "bf16",
            "sm_90",
            "in shared memory",
            Some("instructions and the row has 16 segments (most: 8)"),
        ),
        (
            "softmax(x)",
            "64x40000",
            "f32",
            "sm_90",
            "in shared memory",
            Some("because the row has 40 segments (most: 32)"),
        ),
        (
            shares,
            "64x1024",
            "f64",
            "sm_90",
            "in shared memory",
            Some("because a thread would need 220 registers (most: 176)"),
        ),
        (
            many,
            "64x1024",
            "f32",
            "sm_90",
            "that each stage reads",
            Some(
                "because a thread would load 1024 bytes (most: 640); shared memory does not, because no two stages",
            ),
        ),
        (
            "softmax(x)",
            "64x200000",
            "f32",
            "sm_75",
            "that each stage reads",
            Some(
                "because the row has 196 segments (most: 32); shared memory does not, because it exceeds the shared memory",
            ),
        ),
    ] {
        let found = succeeds(&["explain", "expr", text, "--shape", shape, "--dtype", dtype, "--arch", arch]);
        let found = found.lines().find(|line| line.starts_with("one kernel: ")).unwrap_or(&found);
        assert!(found.contains(memory), "{text} {shape}: {found}");
        match reason {
            Some(reason) => {
                assert!(
                    found.contains("; registers do not hold it, because ") && found.contains(reason),
                    "{text} {shape}: {found}"
                );
            }
            None => assert!(!found.contains("because"), "{text} {shape}: {found}"),
        }
    }
}

#[test]
fn every_function_of_groups_is_explained() {
    let value = explained("softmax(x)", &["--dtype", "bf16"]);
    assert_eq!(value["result"], serde_json::json!({ "name": "result", "dtype": "bf16", "shape": [64, 128] }));
    assert!(
        value["bytes_read"].as_u64().unwrap() >= 16384 && value["bytes_written"].as_u64().unwrap() >= 16384
    );
    let value = explained("layer_norm(x + r, w, b)", &["--input", "w:f32[128]", "--input", "b:f32[128]"]);
    assert_eq!(value["inputs"].as_array().unwrap().len(), 4);
    let names =
        ["log_softmax", "rms_norm", "sum_group", "mean_group", "prod_group", "max_group", "min_group"];
    for name in names.iter().chain(&["argmax_group", "argmin_group", "any_group", "all_group"]) {
        let value = explained(&format!("{name}(x)"), &["--axis", "-2"]);
        let rows = if name.ends_with("_group") { 1 } else { 64 };
        assert_eq!(value["result"]["shape"], serde_json::json!([rows, 128]), "{name}");
        assert!(!value["kernels"].as_array().unwrap().is_empty(), "{name}");
    }
    let channels = [1, 8, 1, 1].map(|size: i64| size.to_string()).join(",");
    let (weight, bias) = (format!("w:f32[{channels}]"), format!("b:f32[{channels}]"));
    let parameters = ["--input", weight.as_str(), "--input", bias.as_str()];
    for (text, more, axes) in [
        ("normalize(x)", &[][..], serde_json::json!([3])),
        ("standardize(x)", &[], serde_json::json!([3])),
        ("batch_norm(x)", &[], serde_json::json!([0, 2, 3])),
        ("batch_norm(x, w, b)", &parameters, serde_json::json!([0, 2, 3])),
        ("group_norm(x)", &[], serde_json::json!([2, 3])),
        ("group_norm(x)", &["--axis", "1", "--axis", "-1"], serde_json::json!([1, -1])),
        ("cross_entropy(x, l)", &["--input", "l:i64[4,8,16,1]"], serde_json::json!([3])),
    ] {
        let shape = ["--shape", "4x8x16x32", "--arch", "sm_90"];
        let value = json(&succeeds(&[&["explain", "expr", text, "--json"], &shape[..], more].concat()));
        assert_eq!(
            (&value["axes"], value["kernels"].as_array().unwrap().len()),
            (&axes, 1),
            "{text}: {value}"
        );
    }
    let value = explained("at_group(x, argmax_group(x))", &[]);
    assert_eq!(value["result"]["shape"], serde_json::json!([64, 1]));
    assert!(value["kernels"][0].to_string().contains("at_group"), "{value}");
}

#[test]
fn every_operation_is_an_expression() {
    // One process for each number of operands; casts give each operation a dtype that it computes in.
    for arity in 1..=3 {
        let mut terms = Vec::new();
        for operation in selvedge::fuse::Operation::ALL.iter().filter(|operation| operation.arity() == arity)
        {
            let dtypes = operation.dtypes();
            let dtype =
                dtypes.iter().find(|dtype| dtype.is_float()).or_else(|| dtypes.iter().last()).unwrap();
            let operands = vec![format!("{dtype}(x)"); arity].join(", ");
            terms.push(format!("f32({}({operands}))", operation.name()));
        }
        assert!(!explained(&terms.join(" + "), &[])["kernels"][0]["launches"].as_array().unwrap().is_empty());
    }
}

#[test]
fn an_error_points_at_its_column() {
    let deep = "(".repeat(100_000);
    for (text, column, part) in [
        ("relu(a*b+c", 11, "found the end; wanted an operator, ',' or ')'"),
        ("a + sofmax(b)", 5, "found the function 'sofmax'; wanted"),
        ("a * + b", 5, "found '+'; wanted an input, a number, '(' or '-'"),
        ("a $ b", 3, "found '$'"),
        ("a b", 3, "found 'b'; wanted an operator or the end"),
        ("1 + 1", 1, "found a number alone"),
        ("a + 1.5.2", 5, "found '1.5.2'"),
        ("a + fma(a, b)", 5, "found 2 operands of fma; wanted 3"),
        ("a + exp(2)", 5, "numbers alone"),
        ("sum_group(a, b)", 1, "found 2 operands of sum_group; wanted 1"),
        ("at_group(a)", 1, "found 1 operands of at_group; wanted at_group(x, index)"),
        ("rms_norm(a, b, a)", 1, "found 3 operands; wanted rms_norm(x, weight)"),
        ("cross_entropy(a)", 1, "found no label; wanted cross_entropy(x, label)"),
        ("cross_entropy(a, b)", 1, "found labels of f32 in cross_entropy; wanted integers"),
        ("exp + a", 1, "found the function 'exp' as an input"),
        ("a + bit_and(a, b)", 5, "bit_and"),
        ("é", 1, "found 'é'"),
        ("", 1, "found the end"),
        (&deep, 201, "at most 200"),
    ] {
        let line = format!("\n  {text}\n  {}^", " ".repeat(column - 1));
        let place = format!("column {column}: ");
        fails(FAILED_FOR_INPUT, &[&["explain", "expr", text], &MATRIX[..]].concat(), &[&place, part, &line]);
    }
    let refused = |rest: &[&str], part: &str| {
        fails(FAILED_FOR_INPUT, &[&["explain", "expr"], rest].concat(), &[part]);
    };
    refused(&["a+b", "--shape", "4y4"], "4096x4096");
    refused(&["a+b", "--shape", "4", "--input", "c:f32[4]"], "--input c");
    refused(&["a+b", "--shape", "4", "--input", "b:f32[3]"], "[3]");
    refused(&["a+b", "--shape", "4", "--axis", "0"], "without groups");
    refused(&["softmax(a)", "--shape", "4", "--axis", "1"], "axis 1");
    for (text, part) in [
        ("softmax(a) + batch_norm(a)", "softmax beside batch_norm"),
        ("sum_group(a) + batch_norm(a)", "sum_group beside batch_norm"),
        ("group_norm(a) * mean_group(a)", "group_norm beside mean_group"),
    ] {
        refused(&[text, "--shape", "4x4x4"], part);
        explained(text, &["--axis", "-1"]);
    }
    let of_index = ["at_group(a, i) + batch_norm(a)", "--shape", "4x4x4", "--input", "i:i64[4,4,1]"];
    refused(&of_index, "at_group beside batch_norm");
    refused(&["softmax(a)", "--shape", "4", "--dtype", "i32"], "i32");
}
