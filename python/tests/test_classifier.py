"""`selvedge.classifier`: training, classes, files and callbacks."""

import numpy as np
import pytest
import selvedge as sv

from selvedge.classifier import Classifier, GenerativeModel, synthetic


@pytest.fixture(scope="module")
def data():
    return synthetic(600, seed=1, device="cpu")


@pytest.fixture(scope="module")
def trained(data):
    classifier = Classifier(device="cpu")
    return classifier, classifier.train(data.features, data.labels, epochs=8)


def test_a_classifier_learns_and_repeats(data, trained):
    classifier, report = trained
    assert report.epochs[-1].validation_loss < report.epochs[0].validation_loss
    assert report.epochs[report.best_epoch - 1].is_best and report.training_rows == 480
    assert report.evaluation.count == report.evaluated_rows.numel() == 120
    again = Classifier(device="cpu")
    # Arrays of NumPy are rows too.
    again.train(data.features.numpy(), data.labels.numpy(), epochs=8)
    for name, weight in classifier.state_dict().items():
        assert weight.equal(again.state_dict()[name]), name


def test_rows_have_beliefs_and_free_energies(data, trained):
    classifier, _ = trained
    batch = classifier.classify_batch(data.features)
    assert batch.posterior.shape == (600, 5) and batch.classes.equal(batch.beliefs.argmax(-1))
    row = classifier.classify(data.features[3].tolist())
    assert row.class_index == batch.classes[3].item()
    np.testing.assert_allclose(row.posterior, batch.posterior[3].numpy(), rtol=1e-5, atol=1e-7)
    assert classifier.free_energies[-1] == row.free_energy and len(classifier.free_energies) == sv.classifier.HISTORY_LENGTH
    evaluation = classifier.evaluate(data.features, data.labels)
    assert sum(map(sum, evaluation.confusion)) == 600 == sum(count for count, _, _ in evaluation.calibration)
    assert evaluation.accuracy == (batch.classes.numpy() == data.labels.numpy()).mean()


def test_a_file_has_all_of_it(data, trained, tmp_path):
    classifier, _ = trained
    classifier.generative_model = data.model
    classifier.class_names = list("abcde")
    classifier.save(tmp_path / "model")
    loaded = Classifier.load(tmp_path / "model", device="cpu")
    assert loaded.logits(data.features).equal(classifier.logits(data.features))
    assert loaded.class_names == list("abcde") and loaded.prior == classifier.prior and loaded.widths == [100, 64, 32, 16, 5]
    assert loaded.generative_model.centres.equal(data.model.centres)
    classifier.generative_model = None
    assert classifier.generative_model is None
    with pytest.raises(sv.FileError):
        Classifier.load(tmp_path / "absent")


def test_an_exception_of_a_callback_ends_the_training(data):
    classifier = Classifier(device="cpu")
    first = classifier.state_dict()
    epochs = []

    def stop(report):
        epochs.append(report.epoch)
        if report.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        classifier.train(data.features, data.labels, callback=stop)
    assert epochs == [1, 2]
    assert all(weight.equal(first[name]) for name, weight in classifier.state_dict().items())
    with pytest.raises(sv.ArgumentError, match="within its callback"):
        classifier.train(data.features, data.labels, callback=lambda report: classifier.prior)
    assert classifier.train(data.features, data.labels, epochs=1).best_epoch == 1


def test_priors_and_models(data):
    classifier = Classifier(2, (4,), [0.5, 0.5], device="cpu")
    classifier.learn_prior([1.0, 0.0])
    np.testing.assert_allclose(classifier.prior, [0.55, 0.45])
    classifier.fuse_prior = True
    assert classifier.fuse_prior and repr(classifier) == "Classifier(widths=[2, 4, 2], device=cpu)"
    with pytest.raises(sv.ArgumentError, match="sum"):
        classifier.prior = [0.5, 0.6]
    with pytest.raises(sv.ArgumentError, match="3 classes"):
        classifier.prior = [0.2, 0.2, 0.6]
    model = GenerativeModel([[0.0, 0.0], [1.0, 0.0]] @ np.eye(2), 0.5)
    inputs = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert model.bayes_classes(inputs, [0.5, 0.5]).tolist() == [0, 1]
    joint = np.exp(model.log_likelihood(inputs).numpy()) * 0.5
    np.testing.assert_allclose(model.surprise(inputs, [0.5, 0.5]).numpy(), -np.log(joint.sum(1)), rtol=1e-12)
    with pytest.raises(sv.ArgumentError):
        classifier.classify([0.0, float("nan")])
