//! `selvedge srt`: the golden-ratio operations verified, and states evolved, as text and as JSON.

use super::{FAILED_FOR_INPUT, Folder, fails, json, succeeds, xml};

#[test]
fn worked_numbers_are_verified_on_the_cpu_where_there_is_no_device() {
    let text = succeeds(&["srt", "verify"]);
    for part in ["largest error", "in f32", "golden_commutator, exact", "13.4", "No GPU is used", "passed.\n"]
    {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let value = json(&succeeds(&["srt", "verify", "--json"]));
    let results = value["results"].as_array().unwrap();
    assert!(value["passed"] == true && value["reason"].is_string() && results.len() > 100);
    for result in results {
        assert_eq!(result["passed"], true, "{result}");
        // The definition of these numbers has three to five digits.
        let operation = result["operation"].as_str().unwrap();
        let is_rounded = operation.contains("worst residual") || operation == "gauss, mean and variance";
        let bound = if is_rounded { 1e-3 } else { 1e-10 };
        assert!(result["largest_error"].as_f64().unwrap() <= bound, "{result}");
    }
    let in_f32: Vec<f64> =
        results.iter().filter_map(|result| result["largest_error_in_f32"].as_f64()).collect();
    assert!(in_f32.len() > 80 && in_f32.iter().all(|error| *error <= 2e-6), "{in_f32:?}");
}

#[test]
fn an_evolution_resumes_where_it_was_saved_and_is_drawn() {
    let folder = Folder::new("srt-evolve");
    let (saved, plot) = (folder.file("state.evolver"), folder.file("syntony.svg"));
    let first = ["srt", "evolve", "--n", "12", "--population", "20", "--survivors", "4", "--seed", "5"];
    let of = |more: &[&str]| json(&succeeds(&[&first[..], &["--device", "cpu", "--json"], more].concat()));
    let whole = of(&["--generations", "6", "--scale", "1.5"]);
    of(&["--generations", "2", "--scale", "1.5", "--save", &saved]);
    let resumed = ["srt", "evolve", "--resume", &saved, "--device", "cpu", "--generations", "4", "--json"];
    let resumed = json(&succeeds(&resumed));
    assert_eq!(whole["history"], resumed["history"]);
    assert_eq!((&resumed["first_generation"], &resumed["generation"]), (&2.into(), &6.into()));
    let history: Vec<f64> = whole["history"].as_array().unwrap().iter().filter_map(|s| s.as_f64()).collect();
    assert!(history.len() == 7 && history.is_sorted() && history[6] > history[0], "{history:?}");

    let text = succeeds(&["srt", "evolve", "--resume", &saved, "--generations", "1", "--plot", &plot]);
    for part in ["12 points, bound 100", "20, of which 4 survive", "2 to 3", "No GPU is used", "syntony.svg"]
    {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    assert_eq!(text.matches("No GPU is used").count(), 1, "{text}");
    let texts = xml::texts(&std::fs::read_to_string(&plot).unwrap()).unwrap();
    assert!(texts.iter().any(|text| text.contains("after 3 generations")), "{texts:?}");
}

#[test]
fn the_defaults_of_an_evolution_raise_the_syntony() {
    for seed in ["0", "1", "2"] {
        let value = json(&succeeds(&["srt", "evolve", "--device", "cpu", "--json", "--seed", seed]));
        let history = value["history"].as_array().unwrap();
        let [first, last] = [&history[0], &history[history.len() - 1]].map(|one| one.as_f64().unwrap());
        assert!(first < 0.5 && last > 0.9 && history.len() > 10, "{history:?}");
    }
}

#[test]
fn an_evolution_refuses_bad_options_and_files() {
    let folder = Folder::new("srt-evolve-bad");
    let damaged = folder.file("damaged.evolver");
    std::fs::write(&damaged, "no state").unwrap();
    fails(FAILED_FOR_INPUT, &["srt", "evolve", "--n", "0"], &["0", "--n"]);
    fails(FAILED_FOR_INPUT, &["srt", "evolve", "--resume", &damaged, "--n", "4"], &["--resume", "--n"]);
    fails(FAILED_FOR_INPUT, &["srt", "evolve", "--resume", &damaged], &["damaged.evolver"]);
    fails(FAILED_FOR_INPUT, &["srt", "evolve", "--n", "4", "--scale", "nan"], &["mutation_scale", "NaN"]);
}
