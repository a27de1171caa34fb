//! `selvedge srt`: the golden-ratio operations verified, as text and as JSON.

use super::{json, succeeds};

#[test]
fn worked_numbers_are_verified_on_the_cpu_where_there_is_no_device() {
    let text = succeeds(&["srt", "verify"]);
    for part in ["largest error", "golden_commutator, exact", "13.4", "No GPU is used", "passed.\n"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let value = json(&succeeds(&["srt", "verify", "--json"]));
    let results = value["results"].as_array().unwrap();
    assert!(value["passed"] == true && value["reason"].is_string() && results.len() > 100);
    for result in results {
        assert_eq!(result["passed"], true, "{result}");
        assert!(result["largest_error"].as_f64().unwrap() <= 1e-10, "{result}");
    }
}
