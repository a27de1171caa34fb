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
    const nn::Variable leaf(tensor({1.0, 2.0}), true);
    leaf.loss(nn::Loss::Mse, tensor({0.0, 0.0})).backward();
    CHECK(leaf.grad().to_vector<double>() == List<double>{1, 2});
}

} // namespace

#endif
