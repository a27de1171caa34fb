//! `selvedge classify`: training and runs on synthetic rows and files, pictures, and bad input.

use selvedge::io::npy;
use selvedge::{Device, Tensor};

use super::{FAILED_FOR_INPUT, Folder, fails, json, succeeds, xml};

#[test]
fn a_classifier_of_synthetic_rows_is_trained_drawn_saved_and_run() {
    let folder = Folder::new("classify");
    let [model, confusion, calibration, results] =
        ["model.safetensors", "confusion.svg", "calibration.svg", "results.csv"]
            .map(|name| folder.file(name));
    let train =
        ["classify", "train", "--synthetic", "600", "--epochs", "2", "--hidden", "8", "--device", "cpu"];
    let pictures = ["--confusion", &confusion, "--calibration", &calibration];
    let text = succeeds(&[&train[..], &pictures, &["-o", &model]].concat());
    for part in ["100-8-5, 853 parameters", "480 to train on, 120 for validation", "Bayes rule", "model.saf"]
    {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    for (picture, title) in [(&confusion, "Confusion matrix"), (&calibration, "Calibration")] {
        let texts = xml::texts(&std::fs::read_to_string(picture).unwrap()).unwrap();
        assert!(texts.iter().any(|text| text == title), "{texts:?}");
        assert!(texts.iter().any(|text| text.starts_with("120 rows, accuracy")), "{texts:?}");
    }
    // The classifier and the Bayes rule are compared on the rows of the validation.
    assert_eq!(text.matches(" of the validation rows").count(), 2, "{text}");
    let value = json(&succeeds(&[&train[..], &["--json"]].concat()));
    let of_120 = value["bayes_accuracy"].as_f64().unwrap() * 120.0;
    assert!((of_120 - of_120.round()).abs() < 1e-9, "{of_120}");
    assert_eq!((value["epochs"].as_array().unwrap().len(), &value["evaluation"]["rows"]), (2, &120.into()));

    let run = ["classify", "run", &model, "--synthetic", "50", "--seed", "1"];
    let text = succeeds(&[&run[..], &["-o", &results, "--confusion", &confusion]].concat());
    for part in ["accuracy", "free energy", "c0", "No GPU is used", "results.csv"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let value = json(&succeeds(&[&run[..], &["--json"]].concat()));
    let written = std::fs::read_to_string(&results).unwrap();
    let classes: Vec<i64> =
        written.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert_eq!(value["classes"], serde_json::json!(classes));
    assert_eq!((classes.len(), &value["evaluation"]["rows"]), (50, &50.into()));
    assert!(written.starts_with("class,confidence,free_energy,belief_0,"), "{written}");
}

#[test]
fn rows_come_from_csv_and_npy_files() {
    let folder = Folder::new("classify-files");
    let [csv, rows, labels, model] =
        ["rows.csv", "rows.npy", "labels.npy", "model.safetensors"].map(|name| folder.file(name));
    let (mut text, mut features, mut classes) = (String::from("x,y,class\n"), Vec::new(), Vec::new());
    for row in 0..40 {
        let class = row % 2;
        let [x, y] = [class * 4 - 2, row % 5 - 2];
        text += &format!("{x}, {y}, {class}\n");
        features.extend([f64::from(x), f64::from(y)]);
        classes.push(class as u8);
    }
    std::fs::write(&csv, text).unwrap();
    npy::write_slice(&rows, &features, &[40, 2]).unwrap();
    npy::write_slice(&labels, &classes, &[40]).unwrap();
    let options = ["--epochs", "40", "--learning-rate", "0.05", "--hidden", "8", "--json", "-o", &model];
    let of_csv = json(&succeeds(&[&["classify", "train", &csv], &options[..]].concat()));
    let of_npy =
        json(&succeeds(&[&["classify", "train", &rows, "--labels", &labels], &options[..]].concat()));
    assert_eq!(of_csv["epochs"], of_npy["epochs"]);
    assert_eq!(of_csv["prior"], serde_json::json!([0.5, 0.5]));
    assert_eq!(of_csv["evaluation"]["accuracy"], 1.0);
    let value = json(&succeeds(&["classify", "run", &model, &csv, "--json"]));
    assert_eq!((&value["rows"], &value["evaluation"]["accuracy"]), (&40.into(), &1.0.into()));
    let value = json(&succeeds(&["classify", "run", &model, &rows, "--json"]));
    assert_eq!((&value["classes"], value["evaluation"].is_null()), (&serde_json::json!(classes), true));
}

#[test]
fn classes_may_have_names_and_cells_quotes() {
    let folder = Folder::new("classify-names");
    let [csv, model, results, confusion] =
        ["rows.csv", "model.safetensors", "results.csv", "confusion.svg"].map(|name| folder.file(name));
    let mut text = String::from("\u{feff}\"x\",\"y, in cm\",\"class\"\n");
    for row in 0..40 {
        let (class, x) = if row % 2 == 0 { ("\"wide, red\"", 2) } else { ("narrow", -2) };
        text += &format!("\"{x}\",{},{class}\n", row % 5 - 2);
    }
    std::fs::write(&csv, &text).unwrap();
    let options = ["--epochs", "40", "--learning-rate", "0.05", "--hidden", "8", "-o", &model];
    let shown = ["--json", "--confusion", &confusion];
    let value = json(&succeeds(&[&["classify", "train", &csv], &options[..], &shown[..]].concat()));
    assert_eq!(value["class_names"], serde_json::json!(["narrow", "wide, red"]));
    assert_eq!(value["evaluation"]["accuracy"], 1.0);
    let texts = xml::texts(&std::fs::read_to_string(&confusion).unwrap()).unwrap();
    assert!(texts.iter().any(|text| text == "narrow"), "{texts:?}");
    let run = ["classify", "run", &model, &csv];
    let shown = succeeds(&[&run[..], &["-o", &results]].concat());
    assert!(shown.contains("narrow 20, wide, red 20") && shown.contains("100.0 %"), "{shown}");
    let written = std::fs::read_to_string(&results).unwrap();
    let mut lines = written.lines();
    let head = "class,confidence,free_energy,belief_narrow,\"belief_wide, red\"";
    assert_eq!(lines.next(), Some(head));
    assert!(lines.next().unwrap().starts_with("\"wide, red\","), "{written}");
    std::fs::write(&csv, text.replacen("narrow", "nearly", 1)).unwrap();
    fails(FAILED_FOR_INPUT, &run, &["rows.csv", "label 'nearly' in line 3", "narrow, wide, red"]);
    std::fs::write(&csv, "1,2,a\n1,2,3\n").unwrap();
    fails(FAILED_FOR_INPUT, &["classify", "train", &csv], &["'a' in line 1", "line 2 has a number"]);
    std::fs::write(&csv, "1,\"2,a\n").unwrap();
    fails(FAILED_FOR_INPUT, &["classify", "train", &csv], &["line 1", "a quote without its end"]);
}

#[test]
fn the_full_mode_and_prior_learning_have_options() {
    let folder = Folder::new("classify-full");
    let [rows, centres, model, learned] =
        ["rows.npy", "centres.npy", "model.safetensors", "learned.safetensors"].map(|name| folder.file(name));
    let train =
        ["classify", "train", "--synthetic", "200", "--epochs", "1", "--hidden", "4", "--json", "-o", &model];
    let prior = json(&succeeds(&train))["prior"].clone();
    let run = ["classify", "run", &model, "--synthetic", "40", "--json"];
    let kl = json(&succeeds(&run));
    assert_eq!((&kl["mode"], &kl["prior"]), (&"KL".into(), &prior));
    let full = json(&succeeds(&[&run[..], &["--generative", "--learn-prior", "--save", &learned]].concat()));
    assert_eq!((&full["mode"], &full["classes"]), (&"full".into(), &kl["classes"]));
    assert!(full["mean_free_energy"].as_f64() > kl["mean_free_energy"].as_f64(), "{full}");
    for class in 0..5i64 {
        let found = full["classes"].as_array().unwrap().iter().filter(|found| **found == class).count();
        let wanted = 0.9 * prior[class as usize].as_f64().unwrap() + 0.1 * found as f64 / 40.0;
        let learned = full["prior"][class as usize].as_f64().unwrap();
        assert!((learned - wanted).abs() < 1e-9, "class {class}: {learned} instead of {wanted}");
    }
    // The file has the new prior and the model.
    let again = json(&succeeds(&["classify", "run", &learned, "--synthetic", "40", "--json"]));
    assert_eq!((&again["mode"], &again["prior"]), (&"full".into(), &full["prior"]));

    npy::write_slice(&rows, &[0.5f32; 200], &[2, 100]).unwrap();
    npy::write_slice(&centres, &[0.5f32; 500], &[5, 100]).unwrap();
    let run = ["classify", "run", &model, &rows, "--centres", &centres];
    let of_centres = json(&succeeds(&[&run[..], &["--deviation", "2", "--json"]].concat()));
    let of_model = json(&succeeds(&[&run[..4], &["--json"]].concat()));
    let [kl, full] = [of_model, of_centres].map(|value| value["mean_free_energy"].as_f64());
    // All rows are at all centres, so -ln p(o) is 50 ln(2 pi s²).
    let wanted = kl.unwrap() + 50.0 * (8.0 * std::f64::consts::PI).ln();
    assert!((full.unwrap() - wanted).abs() < 1e-3, "{full:?} instead of {wanted}");
    fails(FAILED_FOR_INPUT, &run, &["--deviation"]);
    fails(FAILED_FOR_INPUT, &[&run[..4], &["--generative"]].concat(), &["--synthetic"]);
    fails(FAILED_FOR_INPUT, &[&run[..], &["--deviation", "-1"]].concat(), &["a deviation of -1"]);
    npy::write_slice(&centres, &[0.5f32; 400], &[4, 100]).unwrap();
    fails(FAILED_FOR_INPUT, &[&run[..], &["--deviation", "1"]].concat(), &["4 classes", "5 classes"]);
}

#[test]
fn a_policy_is_chosen_by_its_expected_free_energy() {
    let folder = Folder::new("classify-policy");
    let file = folder.file("predictions.safetensors");
    let of = |rows: [[f64; 2]; 3]| Tensor::new(rows, &Device::cpu()).unwrap();
    let [observations, variances, before, after] = [
        of([[1.0, 0.1], [0.5, 0.5], [0.0, 1.0]]),
        of([[0.1; 2], [0.2; 2], [0.05; 2]]),
        of([[1.0; 2]; 3]),
        of([[0.5; 2], [0.2; 2], [0.9; 2]]),
    ];
    let preferred = Tensor::new([1.0f64, 0.0], &Device::cpu()).unwrap();
    let mut entries = vec![
        ("observations", &observations),
        ("variances", &variances),
        ("prior_variances", &before),
        ("posterior_variances", &after),
        ("preferred", &preferred),
    ];
    Tensor::write_safetensors(&file, &entries, &[]).unwrap();
    let run = ["classify", "policy", &file];
    let value = json(&succeeds(&[&run[..], &["--json"]].concat()));
    assert_eq!((&value["policy"], &value["is_sampled"]), (&1.into(), &false.into()));
    let close = |name: &str, wanted: [f64; 3]| {
        for (policy, wanted) in wanted.iter().enumerate() {
            let found = value[name][policy].as_f64().unwrap();
            assert!((found - wanted).abs() < 1e-8, "{name} {policy}: {found} instead of {wanted}");
        }
    };
    close("expected_free_energy", [-0.483147181, -0.709437912, 1.994639484]);
    close("probabilities", [0.427739971, 0.536360334, 0.035899695]);
    let text = succeeds(&[&run[..], &["--sample", "--gamma", "100", "--seed", "3"]].concat());
    assert!(text.contains("policy 1: drawn by its probability"), "{text}");
    fails(FAILED_FOR_INPUT, &[&run[..], &["--gamma", "-1"]].concat(), &["gamma"]);
    fails(FAILED_FOR_INPUT, &[&run[..], &["--seed", "1"]].concat(), &["--sample"]);
    entries.pop();
    Tensor::write_safetensors(&file, &entries, &[]).unwrap();
    fails(FAILED_FOR_INPUT, &run, &["preferred"]);
}

#[test]
fn bad_rows_labels_and_models_are_refused() {
    let folder = Folder::new("classify-bad");
    let [csv, rows, labels, model] =
        ["rows.csv", "rows.npy", "labels.npy", "model.safetensors"].map(|name| folder.file(name));
    for (text, parts) in [
        ("", ["rows.csv", "no rows"]),
        ("a,b,class\n", ["rows.csv", "no rows"]),
        ("1,2,0\n1,x,0\n", ["'x' in line 2, column 2", "a finite number"]),
        ("a,b,class\n\n1,nan,0\n", ["'nan' in line 3, column 2", "a finite number"]),
        ("1,2,0\n1,2,0.5\n", ["'0.5' in line 2, column 3", "whole number"]),
        ("1,2,0\n1,2\n", ["2 cells in line 2", "3, as in line 1"]),
        ("1\n2\n", ["1 cell in line 1", "the class"]),
        ("1,2,0\n1,2,-1\n", ["rows.csv", "label -1 in line 2"]),
    ] {
        std::fs::write(&csv, text).unwrap();
        fails(FAILED_FOR_INPUT, &["classify", "train", &csv], &parts);
    }
    npy::write_slice(&rows, &[1.0f32, 2.0, f32::NAN, 4.0], &[2, 2]).unwrap();
    npy::write_slice(&labels, &[0u8, 1], &[2]).unwrap();
    let train = ["classify", "train", &rows];
    fails(FAILED_FOR_INPUT, &[&train[..], &["--labels", &labels]].concat(), &["NaN in row 1, feature 0"]);
    npy::write_slice(&rows, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    fails(FAILED_FOR_INPUT, &train, &["rows.npy", "--labels"]);
    fails(FAILED_FOR_INPUT, &[&train[..], &["--labels", &rows]].concat(), &["rows.npy", "integers"]);
    fails(FAILED_FOR_INPUT, &[&train[..], &["--synthetic", "9"]].concat(), &["--synthetic"]);
    fails(FAILED_FOR_INPUT, &["classify", "train"], &["--synthetic"]);
    let prior = ["classify", "train", "--synthetic", "9", "--prior", "0.5,0.6"];
    fails(FAILED_FOR_INPUT, &prior, &["sum 1.1"]);

    std::fs::write(&model, "no model").unwrap();
    fails(FAILED_FOR_INPUT, &["classify", "run", &model, &rows], &["model.safetensors"]);
    let good = ["classify", "train", "--synthetic", "50", "--epochs", "1", "--hidden", "4", "--json", "-o"];
    succeeds(&[&good[..], &[&model]].concat());
    fails(FAILED_FOR_INPUT, &["classify", "run", &model, &rows], &["[2, 2]", "100 features"]);
    std::fs::write(&csv, "1,2,3\n").unwrap();
    fails(FAILED_FOR_INPUT, &["classify", "run", &model, &csv], &["3 cells in line 1", "100 features"]);
    npy::write_slice(&rows, &[0.5f32; 100], &[1, 100]).unwrap();
    let picture = folder.file("confusion.svg");
    let run = ["classify", "run", &model, &rows, "--confusion", &picture];
    fails(FAILED_FOR_INPUT, &run, &["a picture without labels"]);
    fails(
        FAILED_FOR_INPUT,
        &[&run[..], &["--labels", &labels]].concat(),
        &["labels.npy", "2 labels", "1, one a row"],
    );
}

/// A model of two features and two classes, and files of rows.
#[test]
fn errors_of_a_run_name_the_row_of_the_file() {
    let folder = Folder::new("classify-rows");
    let [csv, rows, labels, model] =
        ["rows.csv", "rows.npy", "labels.npy", "model.safetensors"].map(|name| folder.file(name));
    std::fs::write(&csv, "1,2,0\n-1,2,1\n".repeat(20)).unwrap();
    let train = ["classify", "train", &csv, "--epochs", "1", "--hidden", "2", "--json", "-o", &model];
    succeeds(&train);
    let run = ["classify", "run", &model, &rows];
    let of_labels = [&run[..], &["--labels", &labels]].concat();

    // The last batch is of four rows.
    let count = 65_540;
    let write = |features: &[f64]| npy::write_slice(&rows, features, &[features.len() / 2, 2]).unwrap();
    let mut features = vec![0.5; 2 * count];
    write(&features);
    let mut classes = vec![0i64; count];
    for bad in [2, -1] {
        classes[count - 2] = bad;
        npy::write_slice(&labels, &classes, &[count]).unwrap();
        fails(
            FAILED_FOR_INPUT,
            &of_labels,
            &["labels.npy", &format!("label {bad} in row 65538"), "a class from 0 to 1"],
        );
    }
    // A number beyond f32 is infinite there.
    for (bad, text) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (-1e300, "-inf")] {
        features[2 * 65_537 + 1] = bad;
        write(&features);
        fails(FAILED_FOR_INPUT, &run, &["rows.npy", &format!("{text} in row 65537, feature 1"), "finite"]);
    }
    write(&[]);
    fails(FAILED_FOR_INPUT, &run, &["rows.npy", "[0, 2]", "at least one row"]);
    fails(FAILED_FOR_INPUT, &["classify", "train", &rows, "--labels", &labels], &["at least one row"]);
    std::fs::write(&rows, "").unwrap();
    fails(FAILED_FOR_INPUT, &run, &["rows.npy"]);
    write(&[0.5, 0.5]);
    npy::write_slice::<i64>(&labels, &[], &[0]).unwrap();
    fails(FAILED_FOR_INPUT, &of_labels, &["labels.npy", "0 labels", "1, one a row"]);
}
