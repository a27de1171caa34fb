// Trains a classifier of three groups of points with a loss of the program's own, on the CPU: a focal loss, which is made of
// operations of variables. With an exponent of 0 it is the cross-entropy of the library.
//
//   c++ -std=c++17 own_loss_in_cpp.cpp $(pkg-config --cflags --libs selvedge) -o own_loss_in_cpp && ./own_loss_in_cpp

#include <cmath>
#include <iostream>

#include <selvedge.hpp>

using selvedge::Tensor;
namespace nn = selvedge::nn;

/// Returns the mean of -(1 - p)^exponent ln p for the probability p of each label, where rare mistakes count more.
static nn::Variable focal_loss(const nn::Variable &logits, const Tensor &labels, double exponent)
{
    const nn::Variable logarithms = logits.log_softmax(1).gather(1, labels.unsqueeze(1)).squeeze(1);
    return -((1 - logarithms.exp()).pow(exponent) * logarithms).mean();
}

int main()
try {
    // Thirty points about each of three centres.
    const std::size_t count = 90;
    selvedge::manual_seed(7);
    const Tensor centres = selvedge::tensor({{2.0f, 0.0f}, {-1.0f, 1.7f}, {-1.0f, -1.7f}});
    const Tensor labels = Tensor::arange<std::int64_t>(0, static_cast<std::int64_t>(count)) % 3;
    const Tensor points = centres.index_select(0, labels) + Tensor::randn({count, 2}) * 0.4;

    nn::Sequential model(selvedge::Device::cpu(), 7);
    model.linear(2, 16).activation(nn::Activation::Tanh).linear(16, 3);
    const nn::Optimizer optimizer = nn::Optimizer::adam(model, 0.05);
    const nn::Variable input(points);

    const nn::Variable logits = model.forward(input);
    const float by_hand = focal_loss(logits, labels, 0).item<float>();
    const float of_library = logits.loss(nn::Loss::CrossEntropy, labels).item<float>();
    if (std::abs(by_hand - of_library) > 1e-5f * of_library) {
        std::cerr << "cross-entropy: " << by_hand << " by hand, " << of_library << " of the library\n";
        return 1;
    }
    std::cout << "the cross-entropy by hand is that of the library\n";

    const float first = focal_loss(logits, labels, 2).item<float>();
    float last = first;
    for (int step = 0; step < 100; step++) {
        const nn::Variable loss = focal_loss(model.forward(input), labels, 2);
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        last = loss.item<float>();
    }

    // No gradient is needed to count.
    const nn::NoGrad scope;
    const Tensor found = model.forward(input).tensor().argmax(1);
    const auto right = found.eq(labels).sum().item<std::int64_t>();
    std::cout << "the focal loss fell: " << std::boolalpha << (last < first / 10) << ", " << right << " of " << count
              << " points are right\n";
    return last < first / 10 && right >= 85 ? 0 : 1;
} catch (const selvedge::Error &error) {
    std::cerr << error << "\n";
    return 1;
}
