// Models, losses and optimizers of the C++ layer.

#ifndef SELVEDGE_TESTS_CLASSES_NN_HPP
#define SELVEDGE_TESTS_CLASSES_NN_HPP

#include "classes_check.hpp"

namespace {

inline nn::Sequential xor_model()
{
    nn::Sequential model(Device::cpu(), 3);
    model.linear(2, 8).activation(nn::Activation::Tanh).linear(8, 1);
    return model;
}

void models_are_trained_and_stored(const std::string &folder)
{
    const Tensor x = tensor({{0.0f, 0.0f}, {0.0f, 1.0f}, {1.0f, 0.0f}, {1.0f, 1.0f}});
    const Tensor y = tensor({{0.0f}, {1.0f}, {1.0f}, {0.0f}});
    nn::Sequential model = xor_model();
    CHECK(model.parameter_names() == List<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"});
    const nn::Optimizer optimizer = nn::Optimizer::adam(model, 0.1);
    const auto loss = nn::Loss::BinaryCrossEntropyWithLogits;
    for (int step = 0; step < 100; step++)
        model.train_step(optimizer, loss, x, y);
    CHECK(model(x).gt(0).equal(y.gt(0.5)));

    // The same step by its parts.
    nn::Sequential one = xor_model(), other = xor_model();
    const nn::Optimizer first = nn::Optimizer::sgd(one, 0.5, 0.9), second = nn::Optimizer::sgd(other, 0.5, 0.9);
    const Tensor found = one.train_step(first, loss, x, y);
    second.zero_grad();
    const nn::Variable variable = other.forward(nn::Variable(x)).loss(loss, y);
    variable.backward();
    const nn::Variable weight = other.parameter("0.weight");
    CHECK(weight.grad().shape() == Shape(2, 8));
    second.step();
    CHECK(found.equal(variable.tensor()) && one(x).equal(other(x)));
    FAILS(SV_ERROR_BACKWARD, (variable.backward(), 0));
    weight.zero_grad();
    CHECK(!weight.grad().defined());
    second.set_learning_rate(0);
    FAILS(SV_ERROR_INVALID_ARGUMENT, (second.set_learning_rate(-1), 0));
    CHECK(nn::Optimizer::adamw(one, 0.1).defined());

    const std::string path = folder + "/model.safetensors";
    model.save(path);
    one.load(path);
    CHECK(one(x).equal(model(x)));
    std::remove(path.c_str());
    FAILS(SV_ERROR_FILE, (one.load(path), 0));
    FAILS(SV_ERROR_INVALID_ARGUMENT, one.parameter("3.weight"));
    FAILS(SV_ERROR_INVALID_ARGUMENT, one(tensor({{1.0f}})));

    nn::Sequential text(Device::cpu());
    text.embedding(5, 4).layer_norm({4}).dropout(0.5).linear(4, 3, false);
    const Tensor tokens = tensor({std::int64_t{4}, std::int64_t{0}}), labels = tensor({std::int64_t{2}, std::int64_t{1}});
    CHECK(!text(tokens).equal(text(tokens)));
    text.eval();
    CHECK(text(tokens).equal(text(tokens)));
    text.train();
    CHECK(text.forward(nn::Variable(tokens)).loss(nn::Loss::CrossEntropy, labels).tensor().item<float>() > 0);
    FAILS(SV_ERROR_INDEX_OUT_OF_RANGE, text.forward(nn::Variable(tokens)).loss(nn::Loss::CrossEntropy, labels + 1));
    // A step continues from the states of a file, and gradients are clipped.
    const nn::Sequential left = xor_model(), right = xor_model();
    const nn::Optimizer of_left = nn::Optimizer::adam(left, 0.1), of_right = nn::Optimizer::adam(right, 0.5);
    const std::string states = folder + "/optimizer.safetensors";
    left.train_step(of_left, loss, x, y);
    right.train_step(of_right, loss, x, y);
    of_left.save(states);
    of_right.load(states);
    left.save(path);
    right.load(path);
    left.train_step(of_left, loss, x, y);
    right.train_step(of_right, loss, x, y);
    CHECK(left(x).equal(right(x)));
    FAILS(SV_ERROR_INVALID_ARGUMENT, (nn::Optimizer::sgd(left, 0.1).load(states), 0));
    const float norm = of_left.clip_grad_norm(1e-3).item<float>();
    CHECK(norm > 1e-3f && of_left.clip_grad_norm(1).item<float>() < 1.1e-3f);
    FAILS(SV_ERROR_INVALID_ARGUMENT, of_left.clip_grad_norm(-1));
    std::remove(states.c_str());
    std::remove(path.c_str());

    const nn::Variable leaf(tensor({1.0, 2.0}), true);
    leaf.loss(nn::Loss::Mse, tensor({0.0, 0.0})).backward();
    CHECK(leaf.grad().to_vector<double>() == List<double>{1, 2});
}

void classifiers_are_trained_and_stored(const std::string &folder)
{
    const SyntheticData data = Classifier::synthetic(200, 1);
    const Classifier classifier{ClassifierOptions()};
    CHECK(classifier.features() == 100 && classifier.classes() == 5 && classifier.parameter_count() == 9157);
    ClassifierTraining options;
    options.epochs = 2;
    std::size_t epochs = 0;
    const sv_classifier_report report =
        classifier.train(data.features, data.labels, options, [&](const sv_classifier_epoch &epoch) {
            CHECK(epoch.epoch == ++epochs && epoch.validation_accuracy >= 0);
        });
    CHECK(epochs == 2 && report.epochs == 2 && report.training_rows == 160 && report.validation_rows == 40);
    const Classification found = classifier(data.features);
    CHECK(found.classes.dtype() == DType::I64 && found.posterior.shape() == Shape(200, 5));
    CHECK(found.posterior.equal(found.beliefs) && found.confidence.equal(found.beliefs.max(-1)));
    CHECK(classifier.logits(data.features).argmax(-1).equal(found.classes));
    CHECK(classifier.free_energies().size() == 100);
    List<std::uint64_t> confusion;
    const sv_classifier_evaluation evaluation = classifier.evaluate(data.features, data.labels, &confusion);
    CHECK(evaluation.rows == 200 && confusion.size() == 25 && evaluation.accuracy >= 0.5);
    FAILS(SV_ERROR_INVALID_ARGUMENT, classifier(data.features.slice(1, 0, 99)));

    const std::string path = folder + "/classifier.safetensors";
    classifier.set_fuse_prior(true);
    classifier.set_prior({0.2, 0.2, 0.2, 0.2, 0.2});
    classifier.learn_prior({1, 0, 0, 0, 0});
    CHECK(std::abs(classifier.prior()[0] - 0.28) < 1e-12);
    classifier.set_generative_model(data.centres, 3);
    classifier.save(path);
    const Classifier again = Classifier::load(path);
    std::remove(path.c_str());
    const Classification full = again(data.features);
    CHECK(full.free_energy.equal(classifier(data.features).free_energy) && !full.free_energy.equal(found.free_energy));
    again.set_generative_model({});
    const Tensor prior = Tensor::from(again.prior()).cast(DType::F32);
    CHECK(again(data.features).free_energy.equal(free_energy(full.posterior, prior)));
#if SELVEDGE_HAS_EXCEPTIONS
    bool caught = false;
    try {
        again.train(data.features, data.labels, options, [](const sv_classifier_epoch &) { throw 7; });
    } catch (int number) {
        caught = number == 7;
    }
    CHECK(caught);
#endif
}

} // namespace

#endif
