// Variables with operators and gradients, and tensors as ranges, of the C++ layer.

#ifndef SELVEDGE_TESTS_CLASSES_VARIABLES_HPP
#define SELVEDGE_TESTS_CLASSES_VARIABLES_HPP

#include <cmath>
#include <list>
#include <numeric>

#include "classes_check.hpp"

namespace {

using Doubles = List<double>;

inline Doubles doubles(const nn::Variable &variable) { return variable.tensor().to_vector<double>(); }

void operators_of_variables_have_gradients()
{
    const nn::Variable x(tensor({1.0, -2.0, 3.0}), true), weights(tensor({2.0, 0.5, 1.0}), true);
    const Tensor constant = tensor({1.0, 1.0, 2.0});
    nn::Variable y = 2 * x * weights - constant / weights + x % 4;
    CHECK(doubles(-x) == Doubles{-1, 2, -3} && doubles(1 - x) == Doubles{0, 3, -2} && doubles(constant + x)[2] == 5);
    CHECK(doubles(y) == Doubles{4 - 0.5 + 1, -2 - 2 + 2, 6 - 2 + 3});
    y.sum().backward();
    CHECK(x.grad().to_vector<double>() == Doubles{5, 2, 3});
    CHECK(weights.grad().to_vector<double>() == Doubles{2.25, 0, 8});
    // Another result takes the name; the variable before is the same.
    const nn::Variable before = y;
    y += 1;
    CHECK(doubles(y)[0] == doubles(before)[0] + 1);
    CHECK(doubles(x.pow(2).clamp(0, 5)) == Doubles{1, 4, 5} && doubles(nn::Variable::operation(SV_OP_POW, 2.0, x))[2] == 8);
    CHECK(x.gt(0).tensor().to_vector<bool>() == List<bool>{true, false, true} && !x.gt(0).requires_grad());
    CHECK(doubles(nn::choose(x.gt(0), x, constant)) == Doubles{1, 1, 3});
    CHECK(x.shape() == Shape(3) && x.rank() == 1 && x.dtype() == DType::F64 && x.device() == Device::cpu());
    CHECK(x.is_leaf() && !y.is_leaf() && !y.detach().requires_grad() && y.to(Device::cpu()).cast(DType::F32).dtype() == DType::F32);

    // Reductions, products and shapes.
    const nn::Variable m(Tensor::arange<double>(0, 6).reshape({2, 3}), true);
    CHECK(m.matmul(m.transpose()).sum().item<double>() == 83 && doubles(m.max(1)) == Doubles{2, 5} && doubles(m.min(0))[1] == 1);
    CHECK(doubles(m.mean(0, true)) == Doubles{1.5, 2.5, 3.5} && m.var().item<double>() == 3.5 && m.prod().item<double>() == 0);
    CHECK(std::abs(m.std({0, 1}, 0).square().item<double>() - 35.0 / 12) < 1e-12 && m.norm(1).item<double>() == 15);
    CHECK(std::abs(m.softmax().sum().item<double>() - 2) < 1e-12);
    CHECK(allclose(m.log_softmax().tensor(), (m - m.logsumexp(1, true)).tensor()));
    CHECK(doubles(m.cumsum(1))[5] == 12 && doubles(m.cumprod(0))[5] == 10);
    CHECK(allclose(m.layer_norm({3}).tensor(), m.tensor().layer_norm({3})) && m.rms_norm({3}, nn::Variable(constant)).rank() == 2);
    CHECK(doubles(m[1]) == Doubles{3, 4, 5} && doubles(m.slice(1, 0, open_end, 2)) == Doubles{0, 2, 3, 5});
    CHECK(doubles(m.index({Index::ellipsis(), -1})) == Doubles{2, 5} && doubles(m.flip({0, 1}))[0] == 5);
    CHECK(m.reshape({3, -1}).permute({1, 0}).shape() == Shape(2, 3) && m.flatten().unflatten(0, {3, 2}).shape() == Shape(3, 2));
    CHECK(m.unsqueeze(0).squeeze(0).unsqueeze(-1).squeeze().shape() == Shape(2, 3) && m.movedim(0, 1).shape() == Shape(3, 2));
    CHECK(m.expand({4, 2, 3}).sum().item<double>() == 60 && m.narrow(1, 1, 1).shape() == Shape(2, 1));
    CHECK(doubles(m.diagonal(1)) == Doubles{1, 5} && m.split({1, 2}, 1)[1].shape() == Shape(2, 2));
    CHECK(doubles(m.roll({1}, {1}))[0] == 2 && m.repeat({2, 1}).shape() == Shape(4, 3) && m.pad({1, 0}).shape() == Shape(3, 3));
    CHECK(nn::cat({m, m}, 1).shape() == Shape(2, 6) && nn::stack({m, m}).shape() == Shape(2, 2, 3));
    CHECK(m.tril().sum().item<double>() == 7 + 0 && m.triu().sum().item<double>() == 12);
    const Tensor columns = tensor({std::int64_t{2}, std::int64_t{0}}), rows = columns.eq(0).cast<std::int64_t>();
    CHECK(doubles(m.index_select(1, columns)) == Doubles{2, 0, 5, 3} && doubles(m.take(columns)) == Doubles{2, 0});
    CHECK(doubles(m.gather(1, columns.reshape({2, 1}))) == Doubles{2, 3} && m.take_along_axis(1, columns.reshape({1, 2})).shape() == Shape(2, 2));
    CHECK(doubles(m.embedding(rows)) == doubles(m) && m.index_add(1, columns, m.narrow(1, 0, 2)).shape() == Shape(2, 3));
    CHECK(m.scatter_add(1, columns.reshape({1, 2}).expand({2, 2}), m.narrow(1, 0, 2)).shape() == Shape(2, 3) && doubles(m.index_put({rows}, m * 2))[5] == 10);
    CHECK(doubles(m.masked_fill(m.tensor().gt(4), 9))[5] == 9 && doubles(m.masked_select(m.tensor().gt(3))) == Doubles{4, 5});
    CHECK(m.sort(1, true).second.to_vector<std::int64_t>()[0] == 2 && doubles(m.topk(1).first) == Doubles{2, 5});
    double total = 0;
    for (const nn::Variable row : m)
        total += row.sum().item<double>();
    CHECK(total == 15);
}

void losses_of_a_program_have_gradients_of_every_order()
{
    // The cross-entropy by hand.
    const Tensor data = tensor({{1.0, -1.0, 0.5}, {0.0, 2.0, -0.5}}), labels = tensor({std::int64_t{2}, std::int64_t{1}});
    const nn::Variable logits(data, true), same(data, true);
    const nn::Variable loss = (logits.logsumexp(1) - logits.gather(1, labels.unsqueeze(1)).squeeze(1)).mean();
    const nn::Variable wanted = same.loss(nn::Loss::CrossEntropy, labels);
    loss.backward_retain_graph();
    wanted.backward();
    CHECK(std::abs(loss.item<double>() - wanted.item<double>()) < 1e-12 && allclose(logits.grad(), same.grad()));
    loss.backward();
    CHECK(allclose(logits.grad(), same.grad() * 2));
    logits.zero_grad();
    CHECK(!logits.grad().defined());
    nn::LossOptions options;
    options.reduction = nn::LossReduction::None;
    options.ignore_index = 1;
    CHECK(same.loss(nn::Loss::CrossEntropy, labels, options).tensor().to_vector<double>()[1] == 0);
    options.label_smoothing = 0.1;
    FAILS(SV_ERROR_INVALID_ARGUMENT, same.loss(nn::Loss::Nll, labels, options));

    // A penalty on the gradient, which the backward goes through.
    const nn::Variable x(tensor({1.0, 2.0}), true);
    const List<nn::Variable> first = x.pow(3).sum().gradients({x}, true);
    CHECK(doubles(first[0]) == Doubles{3, 12} && first[0].requires_grad() && !x.grad().defined());
    first[0].square().sum().backward();
    CHECK(x.grad().to_vector<double>() == Doubles{2 * 3 * 6, 2 * 12 * 12});
    const nn::Variable direction(tensor({1.0, -1.0}));
    CHECK(doubles(x.square().gradients({x}, false, direction)[0]) == Doubles{2, -4});
    FAILS(SV_ERROR_BACKWARD, x.square().gradients({x}));
    FAILS(SV_ERROR_BACKWARD, x.prod().gradients({x}, true));

    // Scopes without gradients end with their block, and by an exception.
    {
        const nn::NoGrad outer;
        const nn::NoGrad inner;
        CHECK(!nn::is_grad_enabled() && !x.exp().requires_grad());
        x.assign((x - 0.5 * nn::Variable(x.grad())).tensor());
    }
    CHECK(nn::is_grad_enabled() && doubles(x) == Doubles{1 - 18, 2 - 144});
    FAILS(SV_ERROR_INVALID_ARGUMENT, (x.assign(0), 0));
    CHECK(status_of([&] { return nn::NoGrad(), x + tensor({1.0, 2.0, 3.0}); }) == SV_ERROR_INVALID_ARGUMENT);
    CHECK(nn::is_grad_enabled());

    // Wrong operands are named.
    const nn::Variable empty;
    CHECK(message_of([&] { return x + empty; }).find("sv_variable_operation: add: operands: found SV_NO_VARIABLE") == 0);
    CHECK(message_of([&] { return x * Tensor(); }).find("sv_variable_operation: mul: operands: found SV_NO_TENSOR") == 0);
    FAILS(SV_ERROR_INVALID_HANDLE, empty.sum());
    FAILS(SV_ERROR_INVALID_ARGUMENT, x + tensor({1.0, 2.0, 3.0}));
    FAILS(SV_ERROR_DTYPE_MISMATCH, nn::Variable(tensor({1, 2}), true));
    FAILS(SV_ERROR_LENGTH_MISMATCH, x.roll({1, 2}, {0}));
    FAILS(SV_ERROR_INVALID_ARGUMENT, x.pad({1}));
    const nn::Variable there(tensor({1.0, 2.0}).cuda(), true);
    FAILS(SV_ERROR_DEVICE_MISMATCH, x + there);
    FAILS(SV_ERROR_DEVICE_MISMATCH, x.matmul(there));
}

void tensors_are_ranges()
{
    const Tensor x = Tensor::arange(0, 6).reshape({3, 2});
    int number = 0;
    for (const Tensor row : x)
        CHECK(row.to_vector<int>() == List<int>{2 * number, 2 * number + 1} && ++number > 0);
    CHECK(number == 3 && x.end() - x.begin() == 3 && (*--x.end()).equal(x[2]) && x.begin()[1].equal(x[1]));
    CHECK(std::next(x.begin()) == x.begin() + 1 && x.begin() < x.end() && Tensor::zeros<int>({0, 2}).begin() == Tensor::zeros<int>({0, 2}).end());
    FAILS(SV_ERROR_INDEX_OUT_OF_RANGE, Tensor::scalar(1).end());
    // A view is written without its base.
    Tensor last = x[-1];
    last += 10;
    CHECK(last.to_vector<int>() == List<int>{14, 15} && x[2].to_vector<int>() == List<int>{4, 5});
    CHECK(x[x.gt(3)].to_vector<int>() == List<int>{4, 5} && x[Index::slice(1, 3)].shape() == Shape(2, 2));
    CHECK(x[{Index::slice(), 1}].to_vector<int>() == List<int>{1, 3, 5} && x[{1, 0}].item<int>() == 2);

    // Ranges whose elements are not adjacent.
    const std::list<double> list = {1, 2, 3};
    CHECK(Tensor::from(list).to_vector<double>() == List<double>{1, 2, 3} && Tensor::from(list, {3, 1}).rank() == 2);
    const float array[2] = {1, 2};
    CHECK(Tensor::from(array).dtype() == DType::F32 && Tensor::from(List<bool>{true, false}).dtype() == DType::Bool);
    std::list<int> copied(6);
    x.copy_to(copied);
    CHECK(std::accumulate(copied.begin(), copied.end(), 0) == 15);
    List<bool> bits(6);
    x.gt(3).copy_to(bits);
    CHECK(bits == List<bool>{false, false, false, false, true, true});
    copied.pop_back();
    FAILS(SV_ERROR_LENGTH_MISMATCH, (x.copy_to(copied), 0));
    std::list<float> floats(6);
    FAILS(SV_ERROR_DTYPE_MISMATCH, (x.copy_to(floats), 0));
#if __cplusplus >= 202002L && defined(__cpp_lib_ranges)
    static_assert(std::ranges::random_access_range<Tensor> && std::ranges::sized_range<Tensor>);
    const auto squares = std::views::iota(0, 4) | std::views::transform([](int i) { return i * i; });
    CHECK(Tensor::from(squares).to_vector<int>() == List<int>{0, 1, 4, 9});
    for (const Tensor row : x | std::views::reverse | std::views::take(1))
        CHECK(row.equal(x[2]));
    std::array<int, 6> elements;
    x.copy_to(std::span(elements));
    CHECK(elements[5] == 5 && Tensor::from(std::span<const int>(elements).first(2)).count() == 2);
#endif
}

} // namespace

#endif
