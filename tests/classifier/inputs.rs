//! Batches, ties, the history, and input that is refused.

use selvedge::classifier::{
    Classifier, ClassifierOptions, Evaluation, GenerativeModel, TrainingOptions, free_energy, learned_prior,
};
use selvedge::{DType, Device, Error, Tensor};

use super::{assert_close, hashed_classifier, sample};

fn batch(rows: u32) -> Tensor {
    let values: Vec<f32> = (0..rows).flat_map(sample).collect();
    Tensor::from_vec(values, &[rows as usize, 100], &Device::cpu()).unwrap()
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, parts: &[&str]) {
    let Err(error) = result else { panic!("an error with {parts:?} is missing") };
    for part in parts {
        assert!(error.to_string().contains(part), "'{part}' is not in: {error}");
    }
}

#[test]
fn rows_of_a_batch_have_the_results_of_single_rows() {
    for rows in [1, 3, 255, 256, 257] {
        let mut classifier = hashed_classifier();
        let found = classifier.classify_batch(&batch(rows)).unwrap();
        assert_eq!(found.classes.shape()[..], [rows as usize]);
        for row in [0, rows - 1] {
            let alone = classifier.classify(&sample(row)).unwrap();
            let of = |tensor: &Tensor| {
                let tensor = tensor.select(0, row as isize).unwrap().cast(DType::F64).unwrap();
                tensor.to_vec::<f64>().unwrap()
            };
            assert_eq!(of(&found.classes), [alone.class as f64]);
            assert_close(&of(&found.posterior), &alone.posterior, 1e-6);
            assert_close(&of(&found.free_energy), &[alone.free_energy], 1e-6);
            assert_close(&of(&found.confidence), &[alone.confidence], 1e-6);
        }
    }
    let mut classifier = hashed_classifier();
    let nothing = classifier.classify_batch(&batch(0)).unwrap();
    assert_eq!((nothing.classes.count(), &nothing.beliefs.shape()[..]), (0, &[0, 5][..]));
}

#[test]
fn the_history_has_the_last_hundred_free_energies() {
    let mut classifier = hashed_classifier();
    let found = classifier.classify_batch(&batch(130)).unwrap();
    let energies = found.free_energy.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(classifier.free_energies(), energies[30..]);
    let next = classifier.classify(&sample(0)).unwrap();
    let history = classifier.free_energies();
    assert_eq!((history.len(), history[0], history[99]), (100, energies[31], next.free_energy));
}

#[test]
fn ties_have_the_lowest_class() {
    let options = ClassifierOptions { features: 2, prior: vec![0.25; 4], ..ClassifierOptions::default() };
    let mut classifier = Classifier::new(&options, &Device::cpu()).unwrap();
    // Without an input, and with biases of 0, all logits are 0.
    let found = classifier.classify(&[0.0, 0.0]).unwrap();
    assert_eq!((found.class, found.confidence, found.free_energy), (0, 0.25, 0.0));
}

#[test]
fn bad_features_and_labels_are_refused_by_row() {
    let mut classifier = hashed_classifier();
    for (value, text) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut values: Vec<f32> = (0..5).flat_map(sample).collect();
        values[3 * 100 + 7] = value;
        let bad = Tensor::from_vec(values, &[5, 100], &Device::cpu()).unwrap();
        refused(classifier.classify_batch(&bad), &[text, "row 3", "feature 7", "finite"]);
        let labels = Tensor::new([0i64; 5], &Device::cpu()).unwrap();
        refused(classifier.train(&bad, &labels, &TrainingOptions::default(), |_| ()), &[text, "row 3"]);
    }
    assert!(classifier.free_energies().is_empty());
    refused(classifier.classify(&[0.0; 99]), &["[1, 99]", "rows of 100 features"]);
    refused(classifier.classify_batch(&batch(2).cast(DType::F64).unwrap()), &["features of f32", "f64"]);

    let labels = |values: &[i64]| Tensor::from_slice(values, &[values.len()], &Device::cpu()).unwrap();
    for bad in [5, -1] {
        let labels = labels(&[0, 1, bad, 4]);
        let parts = [&format!("label {bad} in row 2"), "0 to 4"];
        refused(classifier.evaluate(&batch(4), &labels), &parts);
        refused(classifier.train(&batch(4), &labels, &TrainingOptions::default(), |_| ()), &parts);
    }
    refused(classifier.evaluate(&batch(3), &labels(&[0, 1])), &["[2]", "3 rows"]);
    refused(classifier.evaluate(&batch(2), &batch(2)), &["integers", "f32"]);
}

#[test]
fn bad_options_are_refused() {
    let cpu = Device::cpu();
    let new = |change: &dyn Fn(&mut ClassifierOptions)| {
        let mut options = ClassifierOptions::default();
        change(&mut options);
        Classifier::new(&options, &cpu)
    };
    refused(new(&|options| options.prior = vec![0.5, 0.6]), &["prior", "1.1", "sum 1"]);
    refused(new(&|options| options.prior = vec![1.0, 0.0]), &["prior of 0 for class 1"]);
    refused(new(&|options| options.prior = vec![f64::NAN, 1.0]), &["NaN", "class 0"]);
    refused(new(&|options| options.prior = Vec::new()), &["no class"]);
    refused(new(&|options| options.features = 0), &["0 features"]);
    refused(new(&|options| options.hidden = vec![4, 0]), &["behind layer 2", "[100, 4, 0, 5]"]);
    refused(new(&|options| options.dropout = 1.5), &["1.5"]);

    let mut classifier = hashed_classifier();
    refused(classifier.set_prior(&[1.0]), &["1 classes", "5 classes"]);
    refused(classifier.learn_prior(&[1.0]), &["1 classes", "5"]);
    refused(learned_prior(&[0.5, 0.5], &[0.5, -0.5]), &["-0.5", "class 1"]);
    let labels = Tensor::new([0i64, 1], &cpu).unwrap();
    for (options, parts) in [
        (TrainingOptions { epochs: 0, ..Default::default() }, ["0 epochs", "at least 1"]),
        (TrainingOptions { validation: 1.0, ..Default::default() }, ["part of 1", "below 1"]),
        (TrainingOptions { learning_rate: f64::NAN, ..Default::default() }, ["NaN", "learning rate"]),
    ] {
        refused(classifier.train(&batch(2), &labels, &options, |_| ()), &parts);
    }
    let none = Tensor::from_slice::<i64>(&[], &[0], &cpu).unwrap();
    refused(classifier.train(&batch(0), &none, &TrainingOptions::default(), |_| ()), &["0 rows"]);

    let centres = Tensor::zeros(&[5, 3], DType::F32, &cpu).unwrap();
    let model = GenerativeModel::new(centres.clone(), 1.0).unwrap();
    refused(classifier.set_generative_model(Some(&model)), &["3 features", "100 features"]);
    refused(GenerativeModel::new(centres.clone(), 0.0), &["deviation of 0"]);
    refused(GenerativeModel::new((centres.clone() + f32::NAN).unwrap(), 1.0), &["not finite"]);
    refused(model.log_likelihood(&batch(1)), &["[1, 100]", "3 features"]);
    refused(free_energy(&batch(1), &centres, None), &["[1, 100]", "[5, 3]"]);
}

#[test]
fn an_evaluation_counts_classes_and_confidences() {
    let found = Evaluation::new(&[0, 1, 1, 2], &[0.95, 0.55, 1.0, 0.52], &[0, 1, 0, 1], 3).unwrap();
    assert_eq!(found.confusion(), [[1, 1, 0], [0, 1, 1], [0, 0, 0]]);
    assert_eq!((found.count(), found.accuracy()), (4, 0.5));
    let bins: Vec<(u64, f64)> = found.calibration().iter().map(|bin| (bin.count, bin.accuracy)).collect();
    assert_eq!((bins.len(), bins[5], bins[9], bins[0]), (10, (2, 0.5), (2, 0.5), (0, 0.0)));
    assert_close(&[found.calibration_error()], &[0.5 * (0.535 - 0.5) + 0.5 * (0.975 - 0.5)], 1e-12);
    refused(Evaluation::new(&[0], &[0.5], &[3], 3), &["label 3 in row 0"]);
    refused(Evaluation::new(&[0], &[f64::NAN], &[0], 3), &["NaN in row 0"]);
    refused(Evaluation::new(&[0], &[0.5], &[0, 1], 3), &["1 classes", "2 labels"]);
}
