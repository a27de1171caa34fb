// The C++ layer: tensors, fused functions, files, models, networks, the catalogue and golden-ratio operations on the CPU, and
// the objects of CUDA on the fake driver. Each check that fails prints its line.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "../../csrc/examples/vector_add_ptx.h"
#include "classes_burst.hpp"
#include "classes_catalogue.hpp"
#include "classes_check.hpp"
#include "classes_indexing.hpp"
#include "classes_nn.hpp"
#include "classes_variables.hpp"

namespace {

void errors_have_status_name_and_message()
{
    const Tensor x = tensor({1.0f, 2.0f});
    bool caught = false;
    try {
        x + tensor({1.0f, 2.0f, 3.0f});
    } catch (const Error &error) {
        caught = true;
        CHECK(error.status() == SV_ERROR_INVALID_ARGUMENT);
        CHECK(std::string(error.name()) == "SV_ERROR_INVALID_ARGUMENT");
        CHECK(std::string(error.what()).find("[2] and [3]") != std::string::npos);
        CHECK(text(error).find("SV_ERROR_INVALID_ARGUMENT: sv_operation: add") == 0);
    }
    CHECK(caught);

    Result<Tensor> sum = attempt([&] { return x + 1; });
    CHECK(sum && sum.has_value() && sum->count() == 2 && (*sum).count() == 2);
    CHECK(std::move(sum).value().to_vector<float>() == List<float>{2, 3});
    const Result<Tensor> missing = attempt([&] { return Tensor::read_npy("/nowhere/none.npy"); });
    CHECK(!missing && missing.error().status() == SV_ERROR_FILE);
    CHECK(missing.value_or(x).count() == 2);
    FAILS(SV_ERROR_FILE, missing.value());
    const Result<void> nothing = attempt([] {});
    CHECK(nothing.has_value());
    nothing.value();
    const Result<void> failed = attempt([] { throw Error(SV_ERROR_OVERFLOW, "text"); });
    FAILS(SV_ERROR_OVERFLOW, (failed.value(), 0));
    FAILS(SV_ERROR_OUT_OF_MEMORY, throw std::bad_alloc());
    // An attempt inside of another one ends there.
    CHECK(attempt([&] { return attempt([&] { return x.squeeze(7); }).has_value(); }).value() == false);
    const auto one = [] { return 1; };
    static_assert(noexcept(attempt(one)), "a result takes the place of exceptions");
}

void tensors_come_from_lists_and_go_to_vectors()
{
    CHECK(tensor({1, 2, 3}).dtype() == DType::I32);
    CHECK(tensor({1.5, 2.5}).to_vector<double>() == List<double>{1.5, 2.5});
    CHECK(tensor({true, false}).to_vector<bool>() == List<bool>{true, false});
    const Tensor matrix = tensor({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
    CHECK(matrix.shape() == Shape(2, 3) && matrix.rank() == 2 && matrix.count() == 6 && matrix.size(-1) == 3);
    CHECK(matrix.strides() == Shape(3, 1) && matrix.is_contiguous() && matrix.device() == Device::cpu());
    CHECK(tensor({{{1, 2}}, {{3, 4}}, {{5, 6}}}).shape() == Shape(3, 1, 2));
    CHECK(tensor({{true, false}}).dtype() == DType::Bool);
    FAILS(SV_ERROR_LENGTH_MISMATCH, tensor({{1, 2}, {3}}));

    using c64 = std::complex<float>;
    using c128 = std::complex<double>;
    CHECK((tensor({c64(1, 2)}) * c64(0, 1)).to_vector<c64>() == List<c64>{c64(-2, 1)});
    CHECK(Tensor::from(List<c128>{{1, 2}, {3, -4}}).abs().to_vector<double>()[1] == 5);
    const std::size_t rows = 2;
    CHECK(Tensor::from(std::array<std::int64_t, 4>{1, 2, 3, 4}, {rows, 2}).select(1, 0).to_vector<std::int64_t>() ==
          List<std::int64_t>{1, 3});
    CHECK(Tensor::from(List<int>{1, 2}, {2}).rank() == 1 && Tensor::from(List<bool>{true}, {1, 1}).rank() == 2);
    CHECK(Tensor::from(List<bool>{true, true}).sum().item<std::int64_t>() == 2);
    CHECK(Tensor::scalar(2.5).item<double>() == 2.5 && Tensor::scalar(std::uint8_t{3}).rank() == 0);
    CHECK(Tensor::zeros<float>({2, 2}).sum().item<float>() == 0);
    CHECK(Tensor::ones({3}, DType::BF16).to_bytes() == List<std::uint8_t>{0x80, 0x3f, 0x80, 0x3f, 0x80, 0x3f});
    CHECK(Tensor::full({2}, 7).to_vector<int>() == List<int>{7, 7});
    CHECK(Tensor::full({1}, 7, DType::F64).item<double>() == 7);
    CHECK(Tensor::arange(0, 6, 2).to_vector<int>() == List<int>{0, 2, 4});
    CHECK(Tensor::linspace<double>(0, 1, 3).to_vector<double>() == List<double>{0, 0.5, 1});
    CHECK(Tensor::eye<int>(2).to_vector<int>() == List<int>{1, 0, 0, 1});
    CHECK(Tensor::from(List<float>{}).count() == 0 && Tensor::from(List<float>{}).to_vector<float>().empty());
    float array[6];
    matrix.copy_to(Elements<float>(array, 6));
    CHECK(std::equal(std::begin(array), std::end(array), std::begin({1.f, 2.f, 3.f, 4.f, 5.f, 6.f})));
    FAILS(SV_ERROR_INVALID_ARGUMENT, (matrix.copy_to(Elements<float>(array, 5)), 0));
    FAILS(SV_ERROR_DTYPE_MISMATCH, matrix.to_vector<double>());
    FAILS(SV_ERROR_DTYPE_MISMATCH, matrix.sum().item<int>());
    FAILS(SV_ERROR_LENGTH_MISMATCH, matrix.item<float>());
    FAILS(SV_ERROR_INDEX_OUT_OF_RANGE, matrix.size(2));
    CHECK(text(matrix) == "[[1. 2. 3.]\n [4. 5. 6.]]");
    CHECK(text(matrix.shape()) == "[2, 3]" && text(Shape()) == "[]" && text(Tensor()) == "(empty)");
    CHECK(text(DType::C128) == "c128" && text(Device::cpu()) == "cpu" && text(Device::cuda(1)) == "cuda:1");
    for (std::int32_t code = SV_DTYPE_BOOL; code <= SV_DTYPE_F8E5M2; code++) {
        const auto dtype = static_cast<DType>(code);
        CHECK(Tensor::zeros({2}, dtype).to_bytes().size() == 2 * size_of(dtype));
    }
#if __cplusplus >= 202002L
    const List<double> numbers = {1, 2, 3};
    CHECK(Tensor::from(std::span(numbers).subspan(1)).to_vector<double>() == List<double>{2, 3});
    List<float> copied(6);
    matrix.copy_to(std::span(copied));
    CHECK(copied[5] == 6);
    const std::span<const double> elements = Elements<const double>(numbers.data(), 2);
    CHECK(elements.size() == 2);
#endif
}

void traces_have_the_ranges_of_the_program(const std::string &folder)
{
    const std::string path = folder + "/trace_of_cpp.json.gz";
    {
        selvedge::Trace trace(path);
        selvedge::TraceRange range("range of C++");
        const sv_number sum = Tensor::ones<float>({8}).sum().item();
        CHECK(sum.kind == SV_NUMBER_REAL && sum.real == 8);
        for (int repeat = 0; repeat < 2; repeat++)
            CHECK(attempt([&] { selvedge::Trace second(path); }).error().status() == SV_ERROR_INVALID_ARGUMENT);
        trace.stop();
    }
    CHECK(sv_trace_pop() == SV_ERROR_INVALID_ARGUMENT);
    CHECK(std::ifstream(path).good());
}

void tensors_are_values()
{
    Tensor a = tensor({1.0f, 2.0f});
    Tensor b = a;
    b += 1;
    CHECK(a.to_vector<float>() == List<float>{1, 2} && b.to_vector<float>() == List<float>{2, 3});
    const Tensor view = a.slice(0, 1);
    a *= 10;
    CHECK(view.item<float>() == 2 && a.to_vector<float>() == List<float>{10, 20});
    Tensor moved = std::move(a);
    CHECK(!a.defined() && moved.defined());
    a = moved;
    a = *&a;
    a.assign(5).assign({Slice{0, 1}}, 6.5);
    CHECK(a.to_vector<float>() == List<float>{5, 6.5f} && moved.to_vector<float>() == List<float>{10, 20});
    Tensor empty, other = empty;
    CHECK(!empty.defined() && !other.defined());
    FAILS(SV_ERROR_INVALID_HANDLE, empty.count());
    FAILS(SV_ERROR_INVALID_HANDLE, moved + empty);
    FAILS(SV_ERROR_INVALID_HANDLE, empty * 2);
    // The message names the call.
    CHECK(message_of([&] { return empty * 2; }).find("sv_operation: mul: operands: found SV_NO_TENSOR") == 0);
    CHECK(message_of([&] { return moved + empty; }).find("sv_operation: add: ") == 0);
    CHECK(message_of([&] { return empty.relu(); }).find("sv_operation: relu: ") == 0);
    CHECK(message_of([&] { return empty += 1; }).find("sv_operation_in_place: add: tensor: found 0, which is no") == 0);
    CHECK(message_of([&] { return moved.assign(empty); }).find("sv_tensor_assign: ") == 0);
    CHECK(message_of([&] { return empty.to_vector<float>(); }).find("sv_tensor_dtype: ") == 0);
    CHECK(message_of([&] { return moved.matmul(empty); }).find("sv_matmul: b: found 0, which is no object") == 0);
    CHECK(message_of([&] { return tensor({1.0f}).to_vector<double>(); }).find("to_vector: found a tensor of f32") == 0);
    CHECK(message_of([&] { return tensor({1.0f}).item<int>(); }).find("item: found a tensor of f32") == 0);
    MatmulOptions options;
    options.bias = &empty;
    const Tensor one = tensor({{1.0f}});
    CHECK(message_of([&] { return one.matmul(one, options); }).find("sv_matmul: options.bias: found SV_NO_TENSOR") == 0);
    const sv_tensor handle = moved.release();
    CHECK(handle != 0 && !moved.defined() && Tensor::adopt(handle).count() == 2);
}

void operators_and_methods_compute_elements()
{
    const Tensor x = tensor({1.0, -2.0, 3.0}), y = tensor({4.0, 5.0, 6.0});
    CHECK((x + y).to_vector<double>() == List<double>{5, 3, 9});
    CHECK((2 * x - y / 2).to_vector<double>() == List<double>{0, -6.5, 3});
    CHECK((-x % 2).to_vector<double>() == List<double>{1, 0, 1});
    CHECK((1u - x).to_vector<double>() == List<double>{0, 3, -2});
    CHECK(((tensor({6, 5}) & 3) | 8).to_vector<int>() == List<int>{10, 9});
    CHECK((~tensor({6, 5}) ^ 1).to_vector<int>() == List<int>{-8, -5});
    CHECK(tensor({1, 2}).shift_left(3).to_vector<int>() == List<int>{8, 16});
    CHECK(x.lt(y).all().item<bool>() && !x.ge(0).all().item<bool>() && x.eq(x).all().item<bool>());
    CHECK(choose(x.gt(0), x, 0).to_vector<double>() == List<double>{1, 0, 3});
    CHECK(x.clamp(-1, 2).to_vector<double>() == List<double>{1, -1, 2});
    CHECK(allclose(x.maximum(y).sqrt().square(), y));
    CHECK(tensor({std::numeric_limits<std::uint64_t>::max()}).eq(std::numeric_limits<std::uint64_t>::max())
              .item<bool>());
    Tensor z = x;
    z.relu_in_place().add_in_place(1).fma_in_place(2, y);
    CHECK(z.to_vector<double>() == List<double>{8, 7, 14});
    z -= 1;
    z /= 2;
    CHECK(z.to_vector<double>() == List<double>{3.5, 3, 6.5});
    z.set_to(SV_OP_MUL, x, y);
    CHECK(z.to_vector<double>() == List<double>{4, -10, 18});
    CHECK(x.cast<float>().dtype() == DType::F32 && x.cast(DType::F16).dtype() == DType::F16);
    CHECK(x.clone().to(Device::cpu()).cpu().contiguous().to_vector<double>() == x.to_vector<double>());
}
void views_reductions_and_indices()
{
    const Tensor x = Tensor::arange(0, 6).reshape({2, -1});
    const auto vector = [](const Tensor &tensor) { return tensor.to_vector<int>(); };
    CHECK(vector(x.transpose()) == List<int>{0, 3, 1, 4, 2, 5});
    CHECK(vector(x.permute({1, 0})) == vector(x.movedim(0, 1)));
    CHECK(vector(x[1]) == List<int>{3, 4, 5} && vector(x[-1].slice(0, 0, open_end, 2)) == List<int>{3, 5});
    CHECK(vector(x.slice({{0, 1}, {1, open_end, open_end, -1}})) == List<int>{5, 4, 3});
    CHECK(vector(x.narrow(1, 1, 1)) == List<int>{1, 4} && vector(x.flatten().flip({0}))[0] == 5);
    CHECK(x.unsqueeze(0).shape() == Shape(1, 2, 3) && x.unsqueeze(0).squeeze().shape() == x.shape());
    CHECK(x.unsqueeze(0).squeeze(0).expand({2, 2, 3}).count() == 12);
    CHECK(vector(x.diagonal()) == List<int>{0, 4} && x.unfold(1, 2, 1).shape() == Shape(2, 2, 2));
    const List<Tensor> parts = x.split({1, 2}, 1);
    CHECK(parts.size() == 2 && vector(cat(parts, 1)) == vector(x));
    CHECK(stack({x, x}).shape() == Shape(2, 2, 3));
    CHECK(vector(x.roll({1}, {1})) == List<int>{2, 0, 1, 5, 3, 4});
    CHECK(vector(x[0].repeat({2})).size() == 6 && vector(x[0].repeat_interleave(2, 0))[1] == 0);
    CHECK(vector(x[0].pad({1, 1}, 9)) == List<int>{9, 0, 1, 2, 9});
    CHECK(vector(x[0].pad({1, 1}, 0, Padding::Reflect)) == List<int>{1, 0, 1, 2, 1});
    CHECK(vector(x.tril()) == List<int>{0, 0, 0, 3, 4, 0} && vector(x.triu(1)) == List<int>{0, 1, 2, 0, 0, 5});
    FAILS(SV_ERROR_INVALID_ARGUMENT, x.pad({1}));
    FAILS(SV_ERROR_LENGTH_MISMATCH, x.roll({1, 2}, {0}));
    FAILS(SV_ERROR_INVALID_ARGUMENT, x.reshape({4}));

    CHECK(x.sum().item<std::int64_t>() == 15 && x.sum(0).to_vector<std::int64_t>()[2] == 7);
    CHECK(x.sum({0, 1}, true).shape() == Shape(1, 1) && x.sum({}).shape() == x.shape());
    CHECK(x.prod(1).to_vector<std::int64_t>() == List<std::int64_t>{0, 60});
    CHECK(x.min().item<int>() == 0 && x.max(-1).to_vector<int>() == List<int>{2, 5});
    CHECK(x.argmax(1).to_vector<std::int64_t>() == List<std::int64_t>{2, 2} && x.argmin().item<std::int64_t>() == 0);
    CHECK(x.any().item<bool>() && !x.all().item<bool>() && x.count_nonzero().item<std::int64_t>() == 5);
    const Tensor d = x.cast<double>();
    CHECK(d.mean().item<double>() == 2.5 && d.var(1).to_vector<double>()[0] == 1);
    CHECK(std::abs(d.std(1, 0).to_vector<double>()[0] * d.std(1, 0).to_vector<double>()[0] - 2.0 / 3) < 1e-15);
    CHECK(d[1].norm().item<double>() == std::sqrt(50.0) && d[1].norm(1).item<double>() == 12);
    CHECK(d.cumsum(1).to_vector<double>()[5] == 12 && d.cumprod(1).to_vector<double>()[5] == 60);
    CHECK(allclose(d.cummax(0), d) && d.cummin(0).to_vector<double>()[3] == 0);
    CHECK(allclose(d.logsumexp(1).exp(), d.exp().sum(1)));

    const Tensor f = x.cast<float>();
    CHECK(allclose(f.softmax().sum(1), Tensor::ones<float>({2})));
    CHECK(allclose(f.log_softmax(1).exp(), f.softmax(-1)));
    CHECK(allclose(f.layer_norm({3}), f.standardize(1), 1e-4));
    CHECK(f.layer_norm({3}, Tensor::ones<float>({3}), Tensor::ones<float>({3})).shape() == f.shape());
    CHECK(f.rms_norm({3}).shape() == f.shape() && f.group_norm(1).shape() == f.shape());
    CHECK(allclose(f.normalize(2, 1).norm(2, 1), Tensor::ones<float>({2}), 1e-5));
    Tensor mean = Tensor::zeros<float>({3}), variance = Tensor::ones<float>({3});
    CHECK(allclose(f.batch_norm(mean, variance, {}, {}, 0), f));
    f.batch_norm_training(mean, variance);
    CHECK(allclose(mean, tensor({0.15f, 0.25f, 0.35f})));

    const Tensor index = tensor({std::int64_t{2}, std::int64_t{0}});
    CHECK(vector(x.index_select(1, index)) == List<int>{2, 0, 5, 3} && vector(x.take(index)) == List<int>{2, 0});
    CHECK(vector(x.gather(1, index.reshape({2, 1}))) == List<int>{2, 3});
    CHECK(vector(x.take_along_axis(1, index.reshape({2, 1}))) == List<int>{2, 3});
    CHECK(vector(x.put(index, tensor({8, 9}))) == List<int>{9, 1, 8, 3, 4, 5});
    CHECK(vector(x.scatter(1, index.reshape({2, 1}), tensor({{8}, {9}}))) == List<int>{0, 1, 8, 9, 4, 5});
    CHECK(vector(x.index_copy(1, index, tensor({{8, 9}, {8, 9}}))) == List<int>{9, 1, 8, 9, 4, 8});
    Tensor y = x;
    y.put_in_place(index, tensor({8, 9})).masked_fill_in_place(y.eq(8), -1);
    y.scatter_in_place(1, index.reshape({2, 1}), tensor({{7}, {7}})).index_copy_in_place(0, index.narrow(0, 1, 1), x[1]
                                                                                           .unsqueeze(0));
    CHECK(vector(y) == List<int>{3, 4, 5, 7, 4, 5} && vector(x.masked_fill(x.gt(2), 0))[5] == 0);
    CHECK(index.one_hot(3).shape() == Shape(2, 3));
    FAILS(SV_ERROR_INDEX_OUT_OF_RANGE, x.take(tensor({std::int64_t{6}})));
}

void random_tensors_and_the_cpu_as_a_device()
{
    manual_seed(5);
    const Tensor normal = Tensor::randn({2, 3});
    CHECK(normal.shape() == Shape(2, 3) && normal.dtype() == DType::F32);
    const Tensor uniform = Tensor::rand({4}, DType::F64), like = normal.randn_like();
    manual_seed(5);
    Generator of_device;
    CHECK(of_device.randn({2, 3}).equal(normal) && of_device.rand({4}, DType::F64).equal(uniform));
    CHECK(Tensor::randn({2, 3}).equal(like) && like.rand_like().lt(1).all().item<bool>());
    CHECK(Tensor::rand({2}, Device::cpu()).dtype() == DType::F32 && Tensor::randn({2}, Device::cpu()).count() == 2);
    CHECK(Tensor::randint(3, 4, {2}).to_vector<std::int64_t>() == List<std::int64_t>{3, 3});
    CHECK(Tensor::randint(3, 4, {2}, Device::cpu()).dtype() == DType::I64);
    CHECK(Tensor::permutation(4).sum().item<std::int64_t>() == 6);

    const Device cpu = Device::cpu();
    CHECK(cpu.name() == "CPU" && !Device::best().name().empty());
    cpu.synchronize();
    cpu.trim();
    CHECK(cpu.pool_statistics().live_bytes > 0);
    const char *const wanted = "sv_module_load: device: a module needs a CUDA device, but this is the CPU";
    CHECK(message_of([&] { return Module(cpu, ".version 7.0"); }) == wanted);
    CHECK(message_of([&] { return Stream(cpu); }).find("a stream needs a CUDA device") != std::string::npos);
    CHECK(message_of([&] { return cpu.compute_capability(); }).find("but this is the CPU") != std::string::npos);
}

void products_fused_functions_and_random_numbers()
{
    const Tensor a = tensor({{1.0f, 2.0f}, {3.0f, 4.0f}}), bias = tensor({1.0f, -100.0f});
    CHECK(a.matmul(a).to_vector<float>() == List<float>{7, 10, 15, 22});
    CHECK(matmul(a, a[0]).to_vector<float>() == List<float>{5, 11});
    MatmulOptions options;
    options.bias = &bias;
    options.activation = SV_ACTIVATION_RELU;
    options.alpha = 2;
    CHECK(a.matmul(a, options).to_vector<float>() == List<float>{15, 0, 31, 0});
    const auto [result, aux] = a.matmul_with_aux(a, options);
    CHECK(result.to_vector<float>()[1] == 0 && aux.to_vector<float>()[1] == -80);
    Tensor sum = a;
    CHECK(sum.add_matmul_in_place(a, a, 10).to_vector<float>() == List<float>{17, 30, 45, 62});
    FAILS(SV_ERROR_INVALID_ARGUMENT, a.matmul(tensor({1.0f, 2.0f, 3.0f})));

    const Fused function = fuse<2>([](auto x, auto y) { return (2 * x + y).relu(); });
    CHECK(function(a, -5).to_vector<float>() == List<float>{0, 0, 1, 3});
    CHECK(function(a, bias).to_vector<float>() == List<float>{3, 0, 7, 0});
    const Fused both = fuse<1>([](Expression x) {
        return List<Expression>{-x % 3 - x / 2, Expression::index(0), x.cast(DType::I32) & 1, x.clamp(0, 2)};
    });
    const List<Tensor> results = both.run({a[0]});
    CHECK(results.size() == 4 && results[0].to_vector<float>() == List<float>{1.5f, 0});
    CHECK(results[1].to_vector<std::int64_t>() == List<std::int64_t>{0, 1});
    CHECK(results[2].to_vector<int>() == List<int>{1, 0} && results[3].to_vector<float>()[1] == 2);
    FAILS(SV_ERROR_LENGTH_MISMATCH, function(a));
    FAILS(SV_ERROR_INVALID_ARGUMENT, both(a));

    Generator first(7), second(7);
    CHECK(first.randn({4}).to_vector<float>() == second.randn({4}).to_vector<float>());
    CHECK(first.state() == second.state() && first.state().first == 7);
    second.set_state(7, 0);
    CHECK(second.randn_like(a).to_vector<float>() == Generator(7).randn(a.shape(), a.dtype()).to_vector<float>());
    CHECK(second.rand_like(a).shape() == a.shape() && second.rand_like(a).lt(1).all().item<bool>());
    second.set_state(7, 0);
    CHECK(second.rand({2, 3}, DType::F64).shape() == Shape(2, 3));
    CHECK(first.uniform(2, 3, {100}).ge(2).all().item<bool>() && first.normal(a, 0, {2, 2}).eq(a).all().item<bool>());
    CHECK(first.bernoulli(1, {5}).sum().item<float>() == 5 && first.permutation(4).sum().item<std::int64_t>() == 6);
    CHECK(first.randint(3, 4, {2}).to_vector<std::int64_t>() == List<std::int64_t>{3, 3});
    manual_seed(1);
    const List<float> drawn = Generator().rand({3}).to_vector<float>();
    manual_seed(1);
    CHECK(Generator().rand({3}).to_vector<float>() == drawn);
}

void custom_operations_and_dlpack()
{
    const CustomOperation reverse([](const List<Array> &inputs, const List<Array> &outputs) {
        const auto x = inputs[0].elements<const int>();
        std::reverse_copy(x.begin(), x.end(), outputs[0].elements<int>().begin());
    });
    CHECK(reverse({tensor({1, 2, 3})}, {{DType::I32, {3}}})[0].to_vector<int>() == List<int>{3, 2, 1});
    FAILS(SV_ERROR_DTYPE_MISMATCH, reverse({tensor({1.0f})}, {{DType::I32, {1}}}));
    const CustomOperation throws([](const List<Array> &, const List<Array> &) { throw std::logic_error("mine"); });
    bool caught = false;
    try {
        throws({tensor({1})}, {{DType::I32, {1}}});
    } catch (const std::logic_error &error) {
        caught = std::string(error.what()) == "mine";
    }
    CHECK(caught);
    const Tensor x = tensor({1, 2, 3});
    CHECK(Tensor::from_dlpack(x.to_dlpack()).to_vector<int>() == x.to_vector<int>());
}

void files(const std::string &folder)
{
    const Tensor x = tensor({1.0, 2.0});
    x.write_npy(folder + "/x.npy");
    CHECK(Tensor::read_npy(folder + "/x.npy").to_vector<double>() == List<double>{1, 2});
    write_npz(folder + "/both.npz", {{"x", x}, {"y", x * 2}});
    CHECK(Tensor::read_npz(folder + "/both.npz", "y").to_vector<double>() == List<double>{2, 4});
    std::remove((folder + "/x.npy").c_str());
    std::remove((folder + "/both.npz").c_str());
}

void golden_ratio_operations()
{
    CHECK(srt::fibonacci(10) == 55 && srt::lucas(3) == 4 && srt::fib_mod(10, 7) == 6 && srt::pisano(10) == 60);
    CHECK(srt::fibonacci_f64(10) == 55 && srt::lucas_f64(3) == 4 && srt::generation_of_row({0, -5, 1, 0}) == 4);
    const srt::GoldenExact x(2, 3), y(1, -1);
    CHECK(x * y == srt::GoldenExact(-1, -2) && x / y == srt::GoldenExact(-3, -5) && x > y && x != y);
    CHECK(x - y + y == x && -x < y && x <= x && x >= y && x.conjugate() == srt::GoldenExact(5, -3));
    CHECK((x.norm().numerator.low == 1 && x.trace().numerator.low == 7 && x.integers() == std::pair<std::int64_t, std::int64_t>(2, 3)));
    const srt::GoldenExact fifth = srt::GoldenExact(2, 1).inverse();
    CHECK(fifth == srt::GoldenExact::fraction(6, 10, 1, -5) && fifth.text() == "3/5 - 1/5 \u03c6");
    CHECK(fifth.a().denominator.low == 5 && fifth.b().numerator.high == -1 && std::abs(fifth.value() - 0.2763932) < 1e-7);
    CHECK(srt::GoldenExact::phi_pow(5) == srt::GoldenExact(0, 1).pow(5) && x.recursion().recursion_inverse() == x);
    FAILS(SV_ERROR_DIVISION_BY_ZERO, x / 0);
    FAILS(SV_ERROR_INVALID_ARGUMENT, fifth.integers());
    const srt::SymExpr input = srt::SymExpr::input(0), half = srt::SymExpr::rational(1, 2);
    CHECK((srt::SymExpr(6) / 4 == srt::SymExpr::rational(3, 2) && srt::SymExpr(x) * y == srt::GoldenExact(-1, -2)));
    const srt::SymExpr f = (input.pow(2) + 1) * srt::Constant::Pi - -half.cos();
    CHECK(f.text() == "(((x0^2 + 1) \u00b7 \u03c0) - -(cos(1/2)))" && f.node_count() == 10 && f.slots() == 1 && f != input);
    const Tensor rows = tensor({0.0, -2.0});
    CHECK(allclose(f.run_rows(rows.reshape({2, 1})), (rows * rows + 1) * std::acos(-1.0) + std::cos(0.5), 1e-14));
    CHECK(std::abs((input.exp() + 2 * input.ln()).evaluate({1}) - std::exp(1.0)) < 1e-14);
    CHECK(srt::SymExpr(5).gamma().evaluate() == 24 && input.sin().evaluate({0}) == 0 && input.pow(-2, 3).evaluate({-8}) == 0.25);
    FAILS(SV_ERROR_INVALID_ARGUMENT, f.evaluate());
    FAILS(SV_ERROR_INVALID_ARGUMENT, srt::SymExpr::input(63).evaluate());
    CHECK(srt::phi_pow_f32(2) == 2.618034f);
    CHECK(srt::winding_recursion(5) == 8 && srt::winding_recursion_inverse(8) == 4 && std::abs(srt::phi_pow(1) - 1.618) < 1e-3);
    CHECK(srt::q_deficit() > 0 && srt::correction(2, 1) > 1 && srt::suppression(0) > 0);
    CHECK(srt::precision_ramp(3, 4) == List<std::int64_t>{3, 5, 9, 15, 25});
    CHECK(srt::structure_dimension(0) > 0 && srt::special_correction(1, 1, 1, 0) > 1);
    CHECK(srt::noise_word(1, 2) == srt::noise_word(1, 2) && srt::noise_stream(1, 2, 3) != srt::noise_stream(1, 2, 4));
    CHECK(srt::dwell(1, 0.5).first > 0);
    const srt::Checked fibonacci = srt::fibonacci_batch(tensor({std::int64_t{10}, std::int64_t{200}}));
    CHECK(fibonacci.values.to_vector<std::int64_t>()[0] == 55);
    CHECK(fibonacci.overflow.to_vector<bool>() == List<bool>{false, true});
    const Tensor values = tensor({1.5, 2.25});
    const srt::Golden snapped = srt::snap(values, 10);
    CHECK(snapped.a.dtype() == DType::I64);
    const auto ramp = srt::snap_ramp(values, 10, 1);
    CHECK(ramp.size() == 2 && ramp[0].first == 10 && ramp[1].first == 17 && ramp[0].second.a.equal(snapped.a));
    CHECK(allclose(srt::golden_values(snapped), values - srt::snap_residual(values, snapped), 1e-9));
    CHECK(srt::snap_distance(values, snapped).item<double>() < 0.1);
    const auto [sum, overflow] = srt::golden_operation(srt::GoldenOperation::Add, snapped, snapped);
    CHECK(sum.a.eq(snapped.a * 2).all().item<bool>() && !overflow.any().item<bool>());
    CHECK(srt::golden_operation(srt::GoldenOperation::Neg, snapped).first.a.eq(-snapped.a).all().item<bool>());
    CHECK(srt::golden_norm(snapped).values.count() == 2 && srt::golden_trace(snapped).values.count() == 2);
    CHECK(srt::e8_roots().shape() == Shape(240, 8) && srt::e8_roots(srt::Roots::E6).size(0) == 72);
    const auto [parallel, perpendicular] = srt::project_e8(srt::e8_weights(3));
    CHECK(parallel.size(0) == 3 && perpendicular.size(0) == 3);
    const Tensor m = tensor({{1.0, 2.0}, {3.0, 4.0}});
    CHECK(srt::mm(m, m, srt::Product::Exact).to_vector<double>() == List<double>{7, 10, 15, 22});
    CHECK(allclose(srt::mm_phi(m, m, 1), m.matmul(m) * srt::phi_pow(1)));
    CHECK(allclose(srt::gemm(2, m, m, 1, m, srt::MatrixOperation::Transpose), 2 * m.transpose().matmul(m) + m));
    CHECK(allclose(srt::gemm(2, m, m, 0, m), 2 * m.matmul(m)));
    CHECK(allclose(srt::weighted_sum({m, m}, {1, 2}), 3 * m));
    FAILS(SV_ERROR_LENGTH_MISMATCH, srt::weighted_sum({m}, {1, 2}));
    CHECK(allclose(srt::phi_residual(m, m, srt::Residual::Standard), 2 * m));
    CHECK(srt::phi_residual_relu(m, m).shape() == m.shape());
    CHECK(allclose(srt::correct(values, {{2, 1}, {0, 1}})[0], values[0] * srt::correction(2, 1)));
    CHECK(srt::correct_chain(values, {{2, 1}, {3, -1}}, {0, 1}, {2, 1}).count() == 2);
    CHECK(srt::gauss(1, 0, {4}).count() == 4 && srt::noise_words(1, 0, {4}).count() == 4);
    CHECK(srt::uniform_noise(1, 0, srt::Interval::OpenAtZero, {4}).gt(0).all().item<bool>());
}

void objects_of_cuda()
{
    CHECK(Device::count() > 0 && Device::best() == Device::cuda(0));
    const Device device = Device::cuda();
    CHECK(!device.name().empty() && device.compute_capability().first > 0 && device.memory().second > 0);
    CHECK(device.context() != nullptr && device.attribute(1) > 0);
    const Stream stream(device), other(device, -1);
    CHECK(stream.device() == device && stream.raw() != nullptr);
    const List<float> numbers = {1, 2, 3, 4};
    Buffer<float> x = Buffer<float>::from(stream, numbers);
    CHECK(x.size() == 4 && x.bytes() == 16 && x.device() == device && x.address() != 0);
    CHECK(x.download(stream) == numbers);
    Buffer<float> y = Buffer<float>::zeros(stream, 4);
    y.copy(stream, x, 1, 0, 2);
    CHECK(y.download(stream) == List<float>{2, 3, 0, 0});
    y.fill(other, 5);
    y.upload(other, std::array<float, 1>{6}, 3);
    CHECK(y.download(other) == List<float>{5, 5, 5, 6});
    std::array<float, 2> last{};
    y.download(stream, last, 2);
    CHECK(last[1] == 6);
    FAILS(SV_ERROR_OUT_OF_RANGE, (y.upload(stream, numbers, 1), 0));
    FAILS(SV_ERROR_INVALID_ARGUMENT, Buffer<double>(stream, SIZE_MAX));
    Buffer<float> same = y;
    same.fill(stream, 1);
    CHECK(y.download(stream)[0] == 1);

    int deleted = 0;
    {
        const auto raw = Buffer<float>::from_raw(stream, x.address(), 4, [&] { deleted++; });
        CHECK(raw.download(stream) == numbers && deleted == 0);
    }
    device.synchronize();
    CHECK(deleted == 1 && Device::of_context(device.context()) == device && !device.memory_snapshot().empty());

    PinnedBuffer<float> pinned(device, 4);
    CHECK(pinned.elements().size() == 4);
    std::copy(numbers.begin(), numbers.end(), pinned.elements().begin());
    pinned.upload(stream, y);
    pinned.wait();
    CHECK(pinned.is_complete() && y.download(stream) == numbers);
    pinned.download(stream, x);
    pinned.wait();
    CHECK(pinned.elements()[3] == 4);
    const Tensor host = Tensor::from_pinned(pinned, {2, 2});
    CHECK(host.to_vector<float>() == numbers && host.device() == Device::cpu());
    FAILS(SV_ERROR_INVALID_ARGUMENT, pinned.elements());

    const Event start(device, true), end(device, true);
    start.record(stream);
    other.wait(start);
    other.wait(stream);
    end.record(other);
    end.synchronize();
    CHECK(end.is_complete() && end.milliseconds_since(start) >= 0);
    stream.synchronize();
    stream.synchronize(1000);
    CHECK(stream.is_idle());

    const Module module(device, vector_add_ptx);
    CHECK(module.function_names() == List<std::string>{"vector_add"} && !module.log().empty());
    const Function function = module.function("vector_add");
    CHECK(function.parameter(3).bytes == 4 && function.parameter(1).offset == 8);
    CHECK(function.attributes().parameters == 4 && function.occupancy(128) > 0);
    CHECK(function.suggested_config().block.x > 0);
    Buffer<float> sum(stream, 4);
    const std::uint32_t count = 4;
    const LaunchConfig config = LaunchConfig::for_elements(count);
    CHECK(config.grid.x == 1 && LaunchConfig::for_elements(257).grid.x == 2 && LaunchConfig::for_elements(0).grid.x == 0);
    function.launch(stream, config, read(x), read(y), write(sum), count);
    module.kernel<Read<float>, Read<float>, Write<float>, std::uint32_t>("vector_add")(stream, config, x, y, sum, 4);
    FAILS(SV_ERROR_ARGUMENT_COUNT, (function.launch(stream, config, read(x)), 0));
    FAILS(SV_ERROR_ARGUMENT_MISMATCH, (function.launch(stream, config, read(x), read(y), write(sum), 4.0), 0));
    FAILS(SV_ERROR_UNKNOWN_NAME, module.function("none"));
    FAILS(SV_ERROR_LIBRARY_UNAVAILABLE, (Program("x.cu", "").add_option("-lineinfo").compile(device), 0));

    Graph graph = capture(stream, [&] { y.fill(stream, 9); });
    CHECK(graph.node_count() == 1);
    const ExecutableGraph executable(std::move(graph));
    y.fill(stream, 0);
    executable.launch(stream);
    CHECK(y.download(stream)[3] == 9);
    executable.update(capture(stream, [&] { y.fill(stream, 8); }));
    executable.launch(stream);
    CHECK(y.download(stream)[3] == 8);
    FAILS(SV_ERROR_OVERFLOW, capture(stream, [] { throw Error(SV_ERROR_OVERFLOW, ""); }));
    // The capture that failed has ended.
    stream.synchronize();

    {
        const StreamScope scope(stream);
        CHECK(Stream::current(device).raw() == stream.raw());
        const Tensor moved = tensor({1.0f, 2.0f}).cuda();
        CHECK(moved.device() == device && moved.cpu().to_vector<float>() == List<float>{1, 2});
    }
    CHECK(Stream::current(device).raw() != stream.raw());
    const CustomOperation copy(nullptr, [](const Stream &work, const List<Array> &inputs, const List<Array> &outputs) {
        CHECK(work.raw() != nullptr && inputs[0].bytes() == outputs[0].bytes() && inputs[0].shape().size() == 1);
    });
    CHECK(copy({tensor({1}).cuda()}, {{DType::I32, {1}}}, device)[0].device() == device);
    FAILS(SV_ERROR_UNSUPPORTED, copy({tensor({1})}, {{DType::I32, {1}}}));
    CHECK(device.pool_statistics().live_bytes > 0);
    device.synchronize();
    device.trim();
    FAILS(SV_ERROR_NO_DEVICE, Stream(Device::cuda(99)));
}

/// Runs the jobs from the last one on, and counts them.
extern "C" void run_jobs(std::size_t count, sv_job job, void *context, void *user)
{
    for (std::size_t index = count; index > 0; index--) {
        job(index - 1, context);
        ++*static_cast<std::size_t *>(user);
    }
}

void an_executor_runs_the_jobs_with_equal_results()
{
    const Tensor x = Generator(3).randn({1 << 21}, DType::F32);
    const float wanted = (x * x).sum().item<float>();
    std::size_t jobs = 0;
    set_threads(4);
    set_executor(run_jobs, &jobs);
    CHECK((x * x).sum().item<float>() == wanted && jobs >= 4);
    set_executor(nullptr);
    set_threads(1);
}

} // namespace

int main(int count, char **arguments)
{
    const std::string folder = count > 1 ? arguments[1] : ".", models = count > 2 ? arguments[2] : ".";
    CHECK(!library_report().empty() && thread_count() > 0);
    set_threads(1);
    set_log_callback(SV_LOG_OFF, nullptr);
    errors_have_status_name_and_message();
    an_executor_runs_the_jobs_with_equal_results();
    tensors_come_from_lists_and_go_to_vectors();
    tensors_are_values();
    traces_have_the_ranges_of_the_program(folder);
    operators_and_methods_compute_elements();
    views_reductions_and_indices();
    sorting_indexing_and_statistics(folder);
    attention();
    random_tensors_and_the_cpu_as_a_device();
    products_fused_functions_and_random_numbers();
    custom_operations_and_dlpack();
    files(folder);
    tensors_are_ranges();
    operators_of_variables_have_gradients();
    losses_of_a_program_have_gradients_of_every_order();
    models_are_trained_and_stored(folder);
    classifiers_are_trained_and_stored(folder);
    classifiers_describe_themselves_and_their_rows();
    golden_norms_and_evolvers(folder);
    transformers_are_trained_stored_and_write(folder);
    decoders_of_published_models_generate_and_are_stored(models);
    catalogue_functions_have_their_worked_numbers();
    catalogue_neurons_and_gates_follow_their_definitions();
    catalogue_measures_agree_with_each_other();
    gaussian_models_have_their_worked_numbers();
    networks(folder);
    networks_on_devices();
    golden_ratio_operations();
    objects_of_cuda();
    // Tensors have been allocated.
    FAILS(SV_ERROR_INVALID_ARGUMENT, set_host_allocator(nullptr, nullptr));
    CHECK(Device().pool_statistics().peak_live_bytes > 0);
    Device().trim();
    shutdown();
    FAILS(SV_ERROR_SHUT_DOWN, tensor({1}));
    return failures == 0 ? 0 : 1;
}
