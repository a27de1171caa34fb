//! Training on synthetic data.

use selvedge::classifier::{
    Classifier, ClassifierOptions, DEFAULT_PRIOR, SyntheticData, TrainingOptions, synthetic,
};
use selvedge::{Device, Tensor};

fn part_of_equal(a: &Tensor, b: &Tensor) -> f64 {
    let (a, b) = (a.to_vec::<i64>().unwrap(), b.to_vec::<i64>().unwrap());
    a.iter().zip(&b).filter(|(a, b)| a == b).count() as f64 / a.len() as f64
}

fn bayes_accuracy(data: &SyntheticData) -> f64 {
    part_of_equal(&data.model.bayes_classes(&data.features, &DEFAULT_PRIOR).unwrap(), &data.labels)
}

#[test]
fn the_bayes_rule_of_synthetic_data_is_right_for_86_percent() {
    let data = synthetic(6000, 7, &Device::cpu()).unwrap();
    let accuracy = bayes_accuracy(&data);
    assert!((accuracy - 0.859).abs() < 0.015, "{accuracy}");
    let labels = data.labels.to_vec::<i64>().unwrap();
    for (class, p) in (0..).zip(DEFAULT_PRIOR) {
        let part = labels.iter().filter(|label| **label == class).count() as f64 / 6000.0;
        assert!((part - p).abs() < 0.02, "class {class}: {part}");
    }
    // Rows follow from the seed and their position alone.
    let fewer = synthetic(10, 7, &Device::cpu()).unwrap();
    assert_eq!(fewer.labels.to_vec::<i64>().unwrap(), labels[..10]);
    let first = data.features.slice(0, ..10isize).unwrap().contiguous().unwrap();
    assert_eq!(fewer.features.to_vec::<f32>().unwrap(), first.to_vec::<f32>().unwrap());
}

/// The acceptance test, with a network and rates that take few steps.
#[test]
fn a_trained_classifier_is_within_two_points_of_the_bayes_rule() {
    let cpu = Device::cpu();
    let (data, test) = (synthetic(20_000, 1, &cpu).unwrap(), synthetic(3000, 2, &cpu).unwrap());
    let network = ClassifierOptions { hidden: vec![16], ..ClassifierOptions::default() };
    let mut classifier = Classifier::new(&network, &cpu).unwrap();
    let rates = TrainingOptions { epochs: 2, batch: 256, learning_rate: 1e-2, ..TrainingOptions::default() };
    let options = TrainingOptions { validation: 0.1, ..rates };
    let mut seen = Vec::new();
    let report = classifier.train(&data.features, &data.labels, &options, |epoch| seen.push(*epoch)).unwrap();
    assert_eq!((&report.epochs, report.training_rows, report.validation_rows), (&seen, 18_000, 2000));
    let accuracy = classifier.evaluate(&test.features, &test.labels).unwrap().accuracy();
    let best = bayes_accuracy(&test);
    assert!(accuracy > best - 0.02 && accuracy < best + 0.01, "{accuracy}, the Bayes rule has {best}");
}

fn bits(classifier: &Classifier) -> Vec<Vec<u8>> {
    classifier.state_dict().values().map(|tensor| tensor.to_bytes().unwrap()).collect()
}

#[test]
fn a_training_stops_early_restores_the_best_epoch_and_is_the_same_again() {
    let cpu = Device::cpu();
    // Few rows with a high rate: the validation loss soon rises.
    let data = synthetic(200, 1, &cpu).unwrap();
    let options = TrainingOptions { learning_rate: 0.02, patience: 3, ..TrainingOptions::default() };
    let mut classifier = Classifier::new(&ClassifierOptions::default(), &cpu).unwrap();
    let report = classifier.train(&data.features, &data.labels, &options, |_| ()).unwrap();
    assert!(report.is_stopped_early && report.epochs.len() == report.best_epoch + 3, "{report:?}");
    let losses: Vec<f64> = report.epochs.iter().map(|epoch| epoch.validation_loss).collect();
    assert!(losses.iter().all(|loss| *loss >= losses[report.best_epoch - 1]), "{losses:?}");
    // The same training once more, which ends with the best epoch, has the same weights.
    let shorter = TrainingOptions { epochs: report.best_epoch, ..options };
    let mut until_best = Classifier::new(&ClassifierOptions::default(), &cpu).unwrap();
    let short_report = until_best.train(&data.features, &data.labels, &shorter, |_| ()).unwrap();
    assert_eq!(bits(&classifier), bits(&until_best));
    assert_eq!(report.evaluation, short_report.evaluation);
    let accuracy = report.epochs[report.best_epoch - 1].validation_accuracy;
    assert_eq!(Some(report.evaluation.accuracy()), accuracy);

    // Without validation rows the training loss decides, and a diverging loss restores the first weights.
    let all = TrainingOptions { validation: 0.0, epochs: 2, ..options };
    let report = classifier.train(&data.features, &data.labels, &all, |_| ()).unwrap();
    let first = report.epochs[0];
    assert_eq!((report.validation_rows, report.evaluation.count()), (0, 200));
    assert_eq!((first.validation_loss, first.validation_accuracy), (first.training_loss, None));
    let before = bits(&classifier);
    let diverging = TrainingOptions { learning_rate: 1e30, ..options };
    let error = classifier.train(&data.features, &data.labels, &diverging, |_| ()).unwrap_err();
    assert!(error.to_string().contains("lower the learning rate"), "{error}");
    assert_eq!(bits(&classifier), before);
}
