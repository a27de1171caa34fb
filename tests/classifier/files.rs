//! Model files.

use std::path::PathBuf;

use selvedge::classifier::{Classifier, ClassifierOptions, synthetic};
use selvedge::{Device, Error, Tensor};

use super::{hashed_classifier, sample};

/// A file that is removed at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let name = format!("selvedge-classifier-{}-{name}.safetensors", std::process::id());
        Temporary(std::env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_loaded_classifier_has_the_results_of_the_saved_one() {
    let file = Temporary::new("model");
    for has_model in [false, true] {
        let mut saved = hashed_classifier();
        saved.learn_prior(&[0.0, 0.0, 1.0, 0.0, 0.0]).unwrap();
        saved.set_fuse_prior(true);
        if has_model {
            let model = synthetic(1, 0, &Device::cpu()).unwrap().model;
            saved.set_generative_model(Some(&model)).unwrap();
        }
        saved.save(&file.0).unwrap();
        let mut loaded = Classifier::load(&file.0, &Device::cpu()).unwrap();
        assert_eq!((loaded.widths(), loaded.prior()), (saved.widths(), saved.prior()));
        assert_eq!((loaded.dropout(), loaded.generative_model().is_some()), (0.2, has_model));
        assert_eq!(loaded.classify(&sample(1)).unwrap(), saved.classify(&sample(1)).unwrap());
    }
}

#[test]
fn files_that_are_no_models_are_refused() {
    let file = Temporary::new("bad");
    let options = ClassifierOptions { features: 3, hidden: vec![2], ..ClassifierOptions::default() };
    let classifier = Classifier::new(&options, &Device::cpu()).unwrap();
    let mut state = classifier.state_dict();
    let cpu = Device::cpu();
    let prior = Tensor::from_slice(classifier.prior(), &[5], &cpu).unwrap();
    state.insert("prior".to_owned(), prior);
    let good =
        [("format", "selvedge-classifier"), ("version", "1"), ("fuse_prior", "false"), ("dropout", "0.2")];
    // Writes a file with one value of the metadata and one tensor replaced, and returns the error.
    let with = |value: (&str, &str), tensor: Option<(&str, Option<Tensor>)>| {
        let mut state = state.clone();
        match tensor {
            Some((name, Some(tensor))) => drop(state.insert(name.to_owned(), tensor)),
            Some((name, None)) => drop(state.remove(name)),
            None => (),
        }
        let metadata = good.map(|(name, old)| (name, if name == value.0 { value.1 } else { old }));
        let entries: Vec<(&str, &Tensor)> =
            state.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        Tensor::write_safetensors(&file.0, &entries, &metadata).unwrap();
        Classifier::load(&file.0, &cpu)
    };
    let none = ("", "");
    assert!(with(none, None).is_ok());
    let ones = |shape: &[usize]| Some(Tensor::ones(shape, selvedge::DType::F32, &cpu).unwrap());
    let f64s = |values: &[f64]| Some(Tensor::from_slice(values, &[values.len()], &cpu).unwrap());
    let cases = [
        (("version", "2"), None, "version 2"),
        (("version", "one"), None, "version 'one'"),
        (("format", "pt"), None, "format 'pt'"),
        (("fuse_prior", "perhaps"), None, "fuse_prior 'perhaps'"),
        (("dropout", "2"), None, "2"),
        (none, Some(("layers.0.weight", None)), "layers"),
        (none, Some(("layers.0.bias", None)), "layers.0.bias"),
        (none, Some(("layers.0.bias", ones(&[3]))), "layers.0.bias"),
        (none, Some(("layers.1.weight", ones(&[4, 5]))), "layers.1.weight"),
        (none, Some(("layers.1.weight", ones(&[2, 6]))), "widths"),
        (none, Some(("prior", ones(&[5]))), "prior of f32"),
        (none, Some(("prior", f64s(&[0.5; 5]))), "sum 2.5"),
        (none, Some(("centres", ones(&[5, 3]))), "deviation"),
    ];
    for (value, tensor, part) in cases {
        match with(value, tensor) {
            Err(error @ Error::File { .. }) => assert!(error.to_string().contains(part), "{part}: {error}"),
            other => panic!("{part}: {other:?}"),
        }
    }
}

#[test]
fn truncated_files_are_refused_at_every_length() {
    let file = Temporary::new("truncated");
    let options = ClassifierOptions { features: 3, hidden: vec![2], ..ClassifierOptions::default() };
    Classifier::new(&options, &Device::cpu()).unwrap().save(&file.0).unwrap();
    let whole = std::fs::read(&file.0).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&file.0, &whole[..length]).unwrap();
        let result = Classifier::load(&file.0, &Device::cpu());
        assert!(matches!(result, Err(Error::File { .. })), "{length} of {} bytes", whole.len());
    }
}
