//! The classifier on a device: it has the golden numbers, its results are close to the CPU's, its synthetic data the same, and its training reaches the
//! Bayes rule.

#[path = "../cases/classifier.rs"]
mod cases;

use selvedge::classifier::{
    Classifier, ClassifierOptions, DEFAULT_PRIOR, SyntheticData, TrainingOptions, free_energy, fuse_prior,
    synthetic,
};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::support::compare::{Agreement, Case, assert_agree, check};
use crate::support::{Outcome, device_tests};

device_tests! {
    the_golden_numbers_are_those_of_the_cpu, ten_million_rows_are_close_to_the_cpu => alone(),
    synthetic_data_are_the_same, batches_are_close_to_the_cpu, posteriors_and_priors_have_the_bits_of_the_cpu,
    one_launch_gives_a_row_the_bits_that_it_has_in_a_batch, networks_that_one_launch_does_not_take_are_close,
    bad_features_are_named, a_training_reaches_the_bayes_rule_and_is_the_same_again,
    the_default_network_and_training_reach_the_bayes_rule => alone(),
}

fn the_golden_numbers_are_those_of_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    cases::free_energies_and_beliefs_of_known_posteriors(&device);
    cases::the_network_with_hashed_weights_has_the_golden_results(&device);
    cases::the_full_mode_has_the_golden_numbers(&device);
    Ok(())
}

fn ten_million_rows_are_close_to_the_cpu() -> Outcome {
    const ROWS: usize = 10_000_000;
    /// Rows that the CPU computes, at the beginning, in the middle and at the end.
    const FEW: usize = 1000;
    let device = Device::cuda(0)?;
    let options = ClassifierOptions::default();
    let (mut there, mut here) =
        (Classifier::new(&options, &device)?, Classifier::new(&options, &Device::cpu())?);
    let features = Generator::new(12).randn(&[ROWS, 100], DType::F32, &device)?;
    let found = there.classify_batch(&features)?;
    for start in [0, ROWS / 2, ROWS - FEW] {
        let of_rows = |x: &Tensor| x.narrow(0, start, FEW);
        let wanted = here.classify_batch(&of_rows(&features)?.to(&Device::cpu())?)?;
        let close = Agreement::Within(1e-4);
        assert_agree("posterior", &of_rows(&found.posterior)?, &wanted.posterior, close);
        assert_agree("beliefs", &of_rows(&found.beliefs)?, &wanted.beliefs, close);
        assert_agree("free energy", &of_rows(&found.free_energy)?, &wanted.free_energy, close);
        assert_agree("confidence", &of_rows(&found.confidence)?, &wanted.confidence, close);
    }
    let beliefs = found.beliefs.argmax(1)?.eq(&found.classes)?.all_all()?;
    assert!(beliefs.item::<bool>()?, "a class is the one of the largest belief");
    Ok(())
}

fn synthetic_data_are_the_same() -> Outcome {
    let (there, here) = (synthetic(5000, 3, &Device::cuda(0)?)?, synthetic(5000, 3, &Device::cpu())?);
    assert_agree("labels", &there.labels, &here.labels, Agreement::Bits);
    assert_agree("features", &there.features, &here.features, Agreement::Bits);
    assert_agree("centres", there.model.centres(), here.model.centres(), Agreement::Bits);
    let [there_densities, here_densities] =
        [&there, &here].map(|data| data.model.log_likelihood(&data.features));
    assert_agree("densities", &there_densities?, &here_densities?, Agreement::Within(1e-4));
    let [there_posterior, here_posterior] =
        [&there, &here].map(|data| data.model.posterior(&data.features, &DEFAULT_PRIOR));
    assert_agree("posterior", &there_posterior?, &here_posterior?, Agreement::Within(1e-3));
    Ok(())
}

fn batches_are_close_to_the_cpu() -> Outcome {
    let (device, cpu) = (Device::cuda(0)?, Device::cpu());
    for fuse_prior in [false, true] {
        for has_model in [false, true] {
            let options = ClassifierOptions { fuse_prior, ..ClassifierOptions::default() };
            let [mut there, mut here] =
                [Classifier::new(&options, &device)?, Classifier::new(&options, &cpu)?];
            for ((name, there), here) in there.state_dict().iter().zip(here.state_dict().values()) {
                assert_agree(name, there, here, Agreement::Bits);
            }
            for rows in [1, 255, 256, 257, 3000, 65_536] {
                let data = synthetic(rows, 5, &cpu)?;
                let features = data.features.to(&device)?;
                if has_model {
                    here.set_generative_model(Some(&data.model))?;
                    there.set_generative_model(Some(&synthetic(1, 5, &device)?.model))?;
                }
                let (found, wanted) =
                    (there.classify_batch(&features)?, here.classify_batch(&data.features)?);
                let close = Agreement::Within(1e-4);
                assert_agree("posterior", &found.posterior, &wanted.posterior, close);
                assert_agree("beliefs", &found.beliefs, &wanted.beliefs, close);
                assert_agree("free energy", &found.free_energy, &wanted.free_energy, close);
                assert_agree("confidence", &found.confidence, &wanted.confidence, close);
                let beliefs = found.beliefs.argmax(1)?.eq(&found.classes)?.all_all()?;
                assert!(beliefs.item::<bool>()?, "a class is the one of the largest belief");
            }
            let row = synthetic(1, 6, &cpu)?.features.to_vec::<f32>()?;
            let (found, wanted) = (there.classify(&row)?, here.classify(&row)?);
            assert!((found.free_energy - wanted.free_energy).abs() < 1e-3, "{found:?}, the CPU {wanted:?}");
        }
    }
    Ok(())
}

fn one_launch_gives_a_row_the_bits_that_it_has_in_a_batch() -> Outcome {
    let device = Device::cuda(0)?;
    let data = synthetic(3000, 9, &device)?;
    for (fuse_prior, model) in [(false, None), (true, Some(&data.model))] {
        let options = ClassifierOptions { fuse_prior, ..ClassifierOptions::default() };
        let mut classifier = Classifier::new(&options, &device)?;
        classifier.set_generative_model(model)?;
        let all = classifier.classify_batch(&data.features)?;
        for row in [0, 127, 128, 2999] {
            let found = classifier.classify(&data.features.select(0, row)?.to_vec::<f32>()?)?;
            let of_row = |tensor: &Tensor| tensor.select(0, row)?.cast(DType::F64)?.to_vec::<f64>();
            assert_eq!(found.posterior, of_row(&all.posterior)?, "row {row}");
            assert_eq!(found.beliefs, of_row(&all.beliefs)?, "row {row}");
            assert_eq!(vec![found.free_energy], of_row(&all.free_energy)?, "row {row}");
            assert_eq!(found.class as i64, all.classes.select(0, row)?.item::<i64>()?, "row {row}");
            assert_eq!(classifier.free_energies().last(), Some(&found.free_energy), "row {row}");
        }
    }
    Ok(())
}

fn networks_that_one_launch_does_not_take_are_close() -> Outcome {
    let (device, cpu) = (Device::cuda(0)?, Device::cpu());
    let data = synthetic(300, 10, &cpu)?;
    for (hidden, classes) in [(vec![64, 32, 16], 9), (vec![16], 5), (vec![], 2)] {
        let prior = vec![1.0 / f64::from(classes); classes as usize];
        let options = ClassifierOptions { hidden, prior, ..ClassifierOptions::default() };
        let found = Classifier::new(&options, &device)?.classify_batch(&data.features.to(&device)?)?;
        let wanted = Classifier::new(&options, &cpu)?.classify_batch(&data.features)?;
        assert_agree("posterior", &found.posterior, &wanted.posterior, Agreement::Within(1e-4));
        assert_agree("free energy", &found.free_energy, &wanted.free_energy, Agreement::Within(1e-4));
    }
    Ok(())
}

fn bad_features_are_named() -> Outcome {
    let device = Device::cuda(0)?;
    let mut classifier = Classifier::new(&ClassifierOptions::default(), &device)?;
    let mut features = vec![0.5f32; 300 * 100];
    features[100 * 130 + 7] = f32::NEG_INFINITY;
    let batch = Tensor::from_slice(&features, &[300, 100], &device)?;
    for (result, named) in [
        (classifier.classify_batch(&batch).err(), "-inf in row 130, feature 7"),
        (classifier.classify(&features[13_000..13_100]).err(), "-inf in row 0, feature 7"),
    ] {
        let error = result.ok_or("a bad feature passed")?.to_string();
        assert!(error.contains(named), "{error}");
    }
    assert!(classifier.free_energies().is_empty(), "failed rows have no history");
    Ok(())
}

fn posteriors_and_priors_have_the_bits_of_the_cpu() -> Outcome {
    const CASES: &[Case] = &[
        ("free_energy", |x| {
            Ok(vec![free_energy(&x[0], &x[1], None)?, free_energy(&x[0], &x[1], Some(&x[2]))?])
        }),
        ("fuse_prior", |x| Ok(vec![fuse_prior(&x[0], &x[1])?])),
    ];
    let cpu = Device::cpu();
    let prior = Tensor::from_slice(&DEFAULT_PRIOR.map(|p| p as f32), &[5], &cpu)?;
    let data = synthetic(10_000, 8, &cpu)?;
    let posterior = data.model.posterior(&data.features, &DEFAULT_PRIOR)?;
    let operands = [posterior, prior, data.model.log_likelihood(&data.features)?];
    check(CASES, &operands, Agreement::Bits)?;
    Ok(())
}

/// The part of rows for which the Bayes rule is right.
fn bayes_accuracy(data: &SyntheticData) -> selvedge::Result<f64> {
    let is_right = data.model.bayes_classes(&data.features, &DEFAULT_PRIOR)?.eq(&data.labels)?;
    Ok(is_right.count_nonzero_all()?.item::<i64>()? as f64 / data.labels.count() as f64)
}

/// The network 100-64-32-16-5 with a learning rate of 1e-3, batches of 64, at most 100 epochs, a patience of 10, and a fifth of the
/// rows for validation.
fn the_default_network_and_training_reach_the_bayes_rule() -> Outcome {
    let device = Device::cuda(0)?;
    let (data, test) = (synthetic(20_000, 1, &device)?, synthetic(6000, 2, &device)?);
    let options = TrainingOptions::default();
    assert_eq!((options.epochs, options.batch, options.patience), (100, 64, 10));
    assert_eq!((options.learning_rate, options.validation), (1e-3, 0.2));
    let mut classifier = Classifier::new(&ClassifierOptions::default(), &device)?;
    assert_eq!(classifier.widths(), [100, 64, 32, 16, 5]);
    let report = classifier.train(&data.features, &data.labels, &options, |_| {})?;
    assert_eq!((report.training_rows, report.validation_rows), (16_000, 4000));
    let accuracy = classifier.evaluate(&test.features, &test.labels)?.accuracy();
    let best = bayes_accuracy(&test)?;
    assert!((accuracy - best).abs() < 0.02, "{accuracy}, the Bayes rule has {best}: {report:?}");
    Ok(())
}

fn a_training_reaches_the_bayes_rule_and_is_the_same_again() -> Outcome {
    let device = Device::cuda(0)?;
    let (data, test) = (synthetic(20_000, 1, &device)?, synthetic(3000, 2, &device)?);
    let best = bayes_accuracy(&test)?;
    let rates = TrainingOptions { epochs: 2, batch: 256, learning_rate: 1e-2, ..TrainingOptions::default() };
    let options = TrainingOptions { validation: 0.1, ..rates };
    let mut weights = Vec::new();
    for _ in 0..2 {
        let network = ClassifierOptions { hidden: vec![16], ..ClassifierOptions::default() };
        let mut classifier = Classifier::new(&network, &device)?;
        classifier.train(&data.features, &data.labels, &options, |_| {})?;
        let accuracy = classifier.evaluate(&test.features, &test.labels)?.accuracy();
        assert!((accuracy - best).abs() < 0.02, "{accuracy}, the Bayes rule has {best}");
        let bytes: Result<Vec<_>, _> = classifier.state_dict().values().map(Tensor::to_bytes).collect();
        weights.push(bytes?);
    }
    assert!(weights[0] == weights[1], "a training from one seed gives other weights");
    Ok(())
}
