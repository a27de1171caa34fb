// A tour of selvedge in C++: tensors, views, reductions, a product, a fused function and errors, on the first CUDA device or
// on the CPU.
//
//   c++ -std=c++17 tensors.cpp $(pkg-config --cflags --libs selvedge) -o tensors && ./tensors

#include <iostream>

#include <selvedge.hpp>

using selvedge::Device;
using selvedge::Tensor;

int main()
try {
    // The numbers of a list decide on the dtype, and its braces on the shape. Operators and methods broadcast and promote as in
    // PyTorch.
    const Device device = Device::best();
    const Tensor x = selvedge::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}, device);
    const Tensor weights = selvedge::tensor({{0.5f, -1.0f}, {0.25f, 2.0f}}, device);
    const Tensor y = (x.matmul(weights) * 2 - 3).relu();
    std::cout << y << "\n";

    std::cout << "on " << device << ", x has shape " << x.shape() << " and dtype " << x.dtype() << "\n";
    std::cout << "sums of columns: " << x.sum(0) << ", softmax of the first row: " << x[0].softmax() << "\n";

    // Random tensors, and slices.
    selvedge::manual_seed(7, device);
    const Tensor noise = Tensor::randn({3, 4}, device);
    std::cout << "the middle columns of noise: " << noise.slice(1, 1, 3) << "\n";

    // Views copy nothing. A write to a tensor leaves its copies and views as they are.
    Tensor z = x;
    const Tensor column = z.transpose()[0];
    z += 10;
    z.assign({selvedge::Slice{0, -1}}, 0);
    std::cout << "the first column of x is " << column << ", that of z " << z.transpose()[0] << "\n";

    // A fused function is one kernel, compiled at its first run.
    const auto distance = selvedge::fuse<2>([](auto a, auto b) { return (a.square() + b.square()).sqrt(); });
    std::cout << "hypotenuses: " << distance(x, z) << "\n";

    // Elements go to vectors and spans of the type of the dtype.
    const std::vector<float> numbers = y.flatten().to_vector<float>();
    std::cout << "the last one of y is " << numbers.back() << "\n";
    using complex = std::complex<double>;
    const Tensor roots = selvedge::tensor({complex(0, 1), complex(-4, 0)}).sqrt();
    std::cout << "complex roots: " << roots << "\n";

    // An error is an exception, or the result of an attempt.
    const auto product = selvedge::attempt([&] { return weights.matmul(x); });
    if (!product)
        std::cout << "no product: " << product.error().what() << "\n";
    return 0;
} catch (const selvedge::Error &error) {
    std::cerr << error << "\n";
    return 1;
}
