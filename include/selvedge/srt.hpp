// Golden-ratio tensor operations. docs/srt.md describes each, and selvedge.h its function in C.

#ifndef SELVEDGE_SRT_HPP
#define SELVEDGE_SRT_HPP

#include <array>
#include <tuple>

#include "tensor.hpp"

SELVEDGE_BEGIN

namespace srt {

enum class Product : std::int32_t { Fast = SV_SRT_PRODUCT_FAST, Exact = SV_SRT_PRODUCT_EXACT };
enum class E8Layout : std::int32_t { Offset4 = SV_SRT_E8_OFFSET4, Adjacent = SV_SRT_E8_ADJACENT };
enum class Cone : std::int32_t { Pair = SV_SRT_CONE_PAIR, Null = SV_SRT_CONE_NULL };
enum class Roots : std::int32_t {
    All = SV_SRT_ROOTS_ALL,
    Positive = SV_SRT_ROOTS_POSITIVE,
    PairCone = SV_SRT_ROOTS_PAIR_CONE,
    NullCone = SV_SRT_ROOTS_NULL_CONE,
    E6 = SV_SRT_ROOTS_E6,
};
enum class Interval : std::int32_t { HalfOpen = SV_SRT_UNIFORM_HALF_OPEN, OpenAtZero = SV_SRT_UNIFORM_OPEN_AT_ZERO };
enum class Aggregate : std::int32_t {
    Mean = SV_SRT_AGGREGATE_MEAN,
    Minimum = SV_SRT_AGGREGATE_MINIMUM,
    Geometric = SV_SRT_AGGREGATE_GEOMETRIC,
};
enum class Gradient : std::int32_t {
    Weighted = SV_SRT_GRADIENT_WEIGHTED,
    Magnitude = SV_SRT_GRADIENT_MAGNITUDE,
    Plain = SV_SRT_GRADIENT_PLAIN,
};
enum class MatrixOperation : std::int32_t {
    None = SV_SRT_OPERATION_NONE,
    Transpose = SV_SRT_OPERATION_TRANSPOSE,
    Adjoint = SV_SRT_OPERATION_ADJOINT,
};
enum class Residual : std::int32_t {
    Phi = SV_SRT_RESIDUAL_PHI,
    Symmetric = SV_SRT_RESIDUAL_SYMMETRIC,
    Standard = SV_SRT_RESIDUAL_STANDARD,
};
enum class GoldenOperation : std::int32_t {
    Add = SV_SRT_GOLDEN_ADD,
    Sub = SV_SRT_GOLDEN_SUB,
    Mul = SV_SRT_GOLDEN_MUL,
    Neg = SV_SRT_GOLDEN_NEG,
    Conjugate = SV_SRT_GOLDEN_CONJUGATE,
    Recursion = SV_SRT_GOLDEN_RECURSION,
    RecursionInverse = SV_SRT_GOLDEN_RECURSION_INVERSE,
};

/// Exact integers, and where 64 bits do not hold the result.
struct Checked {
    Tensor values;
    Tensor overflow;
};

/// Numbers a + b phi.
struct Golden {
    Tensor a;
    Tensor b;
};

/// A correction 1 + sign q/divisor.
struct Correction {
    double divisor;
    std::int32_t sign;
};

namespace detail {

using selvedge::detail::call;
using selvedge::detail::get;
using selvedge::detail::have_equal_lengths;
using selvedge::detail::make;

inline sv_tensor raw(const Tensor &tensor) noexcept { return tensor.handle(); }
template <class T>
auto raw(T value) noexcept
{
    if constexpr (std::is_enum_v<T>)
        return static_cast<std::underlying_type_t<T>>(value);
    else if constexpr (std::is_same_v<T, bool>)
        return std::int32_t{value};
    else
        return value;
}

template <class Function, class... Arguments>
Tensor tensor(Function function, const Arguments &...arguments)
{
    return make<Tensor>(function, raw(arguments)...);
}

template <class Function, class... Arguments>
std::pair<Tensor, Tensor> two(Function function, const Arguments &...arguments)
{
    sv_tensor first = nullptr, second = nullptr;
    call(function, raw(arguments)..., &first, &second);
    return {Tensor::adopt(first), Tensor::adopt(second)};
}

template <class Function, class... Arguments>
Checked checked(Function function, const Arguments &...arguments)
{
    auto [values, overflow] = two(function, arguments...);
    return {std::move(values), std::move(overflow)};
}

template <class Function>
Tensor shaped(Function function, std::uint64_t seed, std::uint64_t offset, const Shape &shape, Device device)
{
    return make<Tensor>(function, seed, offset, shape.data(), shape.size(), device.ordinal());
}

inline void divide(const std::vector<Correction> &corrections, std::vector<double> &divisors,
                   std::vector<std::int32_t> &signs)
{
    for (const Correction &correction : corrections) {
        divisors.push_back(correction.divisor);
        signs.push_back(correction.sign);
    }
}

} // namespace detail

// Exact numbers.

inline double phi_pow(std::int32_t n) { return detail::get<double>(sv_srt_phi_pow, n); }
inline float phi_pow_f32(std::int32_t n) { return detail::get<float>(sv_srt_phi_pow_f32, n); }
inline std::int64_t fibonacci(std::int32_t k) { return detail::get<std::int64_t>(sv_srt_fibonacci, k); }
inline std::int64_t lucas(std::int32_t k) { return detail::get<std::int64_t>(sv_srt_lucas, k); }
inline double fibonacci_f64(std::int32_t k) { return detail::get<double>(sv_srt_fibonacci_f64, k); }
inline double lucas_f64(std::int32_t k) { return detail::get<double>(sv_srt_lucas_f64, k); }
inline std::uint64_t fib_mod(std::uint64_t k, std::uint64_t modulus)
{
    return detail::get<std::uint64_t>(sv_srt_fib_mod, k, modulus);
}
inline std::uint64_t pisano(std::uint64_t modulus) { return detail::get<std::uint64_t>(sv_srt_pisano, modulus); }
inline std::int64_t winding_recursion(std::int64_t n)
{
    return detail::get<std::int64_t>(sv_srt_winding_recursion, n);
}
inline std::int64_t winding_recursion_inverse(std::int64_t n)
{
    return detail::get<std::int64_t>(sv_srt_winding_recursion_inverse, n);
}
inline std::int32_t generation_of_row(const std::array<std::int64_t, 4> &row)
{
    return detail::get<std::int32_t>(sv_srt_generation_of_row, row.data());
}
inline double q_deficit() { return detail::get<double>(sv_srt_q_deficit); }
inline double correction(double divisor, std::int32_t sign)
{
    return detail::get<double>(sv_srt_correction, divisor, sign);
}
inline double special_correction(std::int32_t sign, double coefficient, std::int32_t q_power, std::int32_t phi_power)
{
    return detail::get<double>(sv_srt_special_correction, sign, coefficient, q_power, phi_power);
}
inline double suppression(std::int32_t k) { return detail::get<double>(sv_srt_suppression, k); }
inline std::uint32_t structure_dimension(std::size_t index)
{
    return detail::get<std::uint32_t>(sv_srt_structure_dimension, index);
}
/// Returns the dwell times of the D and the H phase.
inline std::pair<double, double> dwell(double base, double syntony)
{
    std::pair<double, double> phases;
    detail::call(sv_srt_dwell, base, syntony, &phases.first, &phases.second);
    return phases;
}
inline std::uint64_t noise_word(std::uint64_t seed, std::uint64_t offset)
{
    return detail::get<std::uint64_t>(sv_srt_noise_word, seed, offset);
}
inline std::uint64_t noise_stream(std::uint64_t seed, std::uint64_t generation, std::uint64_t purpose)
{
    return detail::get<std::uint64_t>(sv_srt_noise_stream, seed, generation, purpose);
}
/// Returns the bounds of a ramp of at most `steps` steps from `first` on, each the one before times phi, rounded up.
inline std::vector<std::int64_t> precision_ramp(std::int64_t first, std::size_t steps)
{
    std::uint64_t count = 0;
    detail::call(sv_srt_precision_ramp, first, steps, nullptr, std::size_t{0}, &count);
    std::vector<std::int64_t> bounds(static_cast<std::size_t>(count));
    detail::call(sv_srt_precision_ramp, first, steps, bounds.data(), bounds.size(), &count);
    return bounds;
}

// Functions of tensors whose only result is a tensor.

#define SELVEDGE_SRT_ONE(name) \
    inline Tensor name(const Tensor &x) { return detail::tensor(sv_srt_##name, x); }
#define SELVEDGE_SRT_TWO(name) \
    inline Tensor name(const Tensor &x, const Tensor &y) { return detail::tensor(sv_srt_##name, x, y); }
#define SELVEDGE_SRT_THREE(name) \
    inline Tensor name(const Tensor &x, const Tensor &y, const Tensor &z) \
    { \
        return detail::tensor(sv_srt_##name, x, y, z); \
    }
#define SELVEDGE_SRT_PRODUCT(name) \
    inline Tensor name(const Tensor &a, const Tensor &b, Product mode = Product::Fast) \
    { \
        return detail::tensor(sv_srt_##name, a, b, mode); \
    }
#define SELVEDGE_SRT_CHECKED(name) \
    inline Checked name(const Tensor &x) { return detail::checked(sv_srt_##name, x); }

SELVEDGE_SRT_CHECKED(winding_recursion_batch)
SELVEDGE_SRT_CHECKED(winding_recursion_inverse_batch)
SELVEDGE_SRT_CHECKED(fibonacci_batch)
SELVEDGE_SRT_CHECKED(lucas_batch)
SELVEDGE_SRT_ONE(fibonacci_batch_f64)
SELVEDGE_SRT_ONE(lucas_batch_f64)
SELVEDGE_SRT_ONE(golden_recursion)
SELVEDGE_SRT_ONE(golden_recursion_inverse)
SELVEDGE_SRT_ONE(generation_batch)
SELVEDGE_SRT_ONE(weight_8d)
SELVEDGE_SRT_ONE(box_muller)
SELVEDGE_SRT_ONE(complex_reciprocal)
SELVEDGE_SRT_ONE(golden_rotate)
SELVEDGE_SRT_ONE(normalize_phase)
SELVEDGE_SRT_ONE(phi_weighted_sum)
SELVEDGE_SRT_ONE(golden_weight)
SELVEDGE_SRT_ONE(golden_weight_of_rows)
SELVEDGE_SRT_ONE(golden_normalize)
SELVEDGE_SRT_TWO(syntony)
SELVEDGE_SRT_TWO(complex_divide)
SELVEDGE_SRT_TWO(rotate_phases)
SELVEDGE_SRT_TWO(golden_inner)
SELVEDGE_SRT_TWO(phi_residual_gelu)
SELVEDGE_SRT_THREE(operator_syntony)
SELVEDGE_SRT_THREE(h_phase_batch)
SELVEDGE_SRT_PRODUCT(mm)
SELVEDGE_SRT_PRODUCT(mm_tn)
SELVEDGE_SRT_PRODUCT(mm_nt)
SELVEDGE_SRT_PRODUCT(mm_tt)
SELVEDGE_SRT_PRODUCT(mm_hn)
SELVEDGE_SRT_PRODUCT(mm_nh)
SELVEDGE_SRT_PRODUCT(bmm)
SELVEDGE_SRT_PRODUCT(golden_commutator)
SELVEDGE_SRT_PRODUCT(golden_anticommutator)
SELVEDGE_SRT_PRODUCT(mm_golden_weighted)

#undef SELVEDGE_SRT_ONE
#undef SELVEDGE_SRT_TWO
#undef SELVEDGE_SRT_THREE
#undef SELVEDGE_SRT_PRODUCT
#undef SELVEDGE_SRT_CHECKED

inline Tensor fib_mod_batch(const Tensor &k, std::uint64_t modulus)
{
    return detail::tensor(sv_srt_fib_mod_batch, k, modulus);
}
inline Tensor fibonacci_sequence(std::size_t count, DType dtype, Device device = Device::cpu())
{
    return detail::tensor(sv_srt_fibonacci_sequence, count, dtype, device.ordinal());
}

// Numbers a + b phi.

/// Computes an operation. Operations of one operand do not use `y`.
inline std::pair<Golden, Tensor> golden_operation(GoldenOperation operation, const Golden &x, const Golden &y = {})
{
    sv_tensor a = nullptr, b = nullptr, overflow = nullptr;
    detail::call(sv_srt_golden_operation, detail::raw(operation), x.a.handle(), x.b.handle(), y.a.handle(),
                 y.b.handle(), &a, &b, &overflow);
    return {{Tensor::adopt(a), Tensor::adopt(b)}, Tensor::adopt(overflow)};
}
inline Checked golden_norm(const Golden &x) { return detail::checked(sv_srt_golden_norm, x.a, x.b); }
inline Checked golden_trace(const Golden &x) { return detail::checked(sv_srt_golden_trace, x.a, x.b); }
inline Tensor golden_values(const Golden &x) { return detail::tensor(sv_srt_golden_values, x.a, x.b); }

/// Finds the a + b phi with |a|, |b| <= bound that is nearest to each double.
inline Golden snap(const Tensor &values, std::int64_t bound)
{
    auto [a, b] = detail::two(sv_srt_snap, values, bound);
    return {std::move(a), std::move(b)};
}
/// Snaps values at each bound of a ramp of at most `steps` steps from `first` on, and returns the bounds with their points.
inline std::vector<std::pair<std::int64_t, Golden>> snap_ramp(const Tensor &values, std::int64_t first,
                                                              std::size_t steps)
{
    std::uint64_t count = 0;
    detail::call(sv_srt_snap_ramp, values.handle(), first, steps, nullptr, nullptr, nullptr, std::size_t{0}, &count);
    const std::size_t size = static_cast<std::size_t>(count);
    std::vector<std::int64_t> bounds(size);
    std::vector<sv_tensor> a(size), b(size);
    detail::call(sv_srt_snap_ramp, values.handle(), first, steps, bounds.data(), a.data(), b.data(), size, &count);
    std::vector<std::pair<std::int64_t, Golden>> ramp;
    for (std::size_t at = 0; at < size; at++)
        ramp.push_back({bounds[at], {Tensor::adopt(a[at]), Tensor::adopt(b[at])}});
    return ramp;
}
inline Tensor snap_residual(const Tensor &values, const Golden &x)
{
    return detail::tensor(sv_srt_snap_residual, values, x.a, x.b);
}
inline Tensor snap_distance(const Tensor &values, const Golden &x)
{
    return detail::tensor(sv_srt_snap_distance, values, x.a, x.b);
}
inline Tensor snap_gradient(const Tensor &flux, const Tensor &lattice, const Tensor &n2, Gradient mode)
{
    return detail::tensor(sv_srt_snap_gradient, flux, lattice, n2, mode);
}
/// Computes the H phase, the nearest a + b phi to it, and their syntony.
inline std::pair<Golden, Tensor> harmonize_and_crystallize(const Tensor &flux, const Tensor &n2, double s,
                                                           std::int64_t bound)
{
    sv_tensor a = nullptr, b = nullptr, syntony = nullptr;
    detail::call(sv_srt_harmonize_and_crystallize, flux.handle(), n2.handle(), s, bound, &a, &b, &syntony);
    return {{Tensor::adopt(a), Tensor::adopt(b)}, Tensor::adopt(syntony)};
}

// E8 and golden cones.

inline Tensor e8_roots(Roots set = Roots::All, Device device = Device::cpu())
{
    return detail::tensor(sv_srt_e8_roots, set, device.ordinal());
}
inline Tensor e8_weights(std::size_t count, Device device = Device::cpu())
{
    return detail::tensor(sv_srt_e8_weights, count, device.ordinal());
}
/// Returns the parallel and the perpendicular part of rows of 8.
inline std::pair<Tensor, Tensor> project_e8(const Tensor &v, E8Layout layout = E8Layout::Offset4)
{
    return detail::two(sv_srt_project_e8, v, layout);
}
inline Tensor quadratic_form(const Tensor &v, E8Layout layout = E8Layout::Offset4)
{
    return detail::tensor(sv_srt_quadratic_form, v, layout);
}
inline Tensor e8_quantize(const Tensor &v, double scale) { return detail::tensor(sv_srt_e8_quantize, v, scale); }
inline Tensor theta_sum(const Tensor &v, const Operand &weights, double t, E8Layout layout = E8Layout::Offset4)
{
    return detail::tensor(sv_srt_theta_sum, v, &weights.raw(), t, layout);
}
inline Tensor golden_cone_test(const Tensor &v, Cone cone, double tolerance)
{
    return detail::tensor(sv_srt_golden_cone_test, v, cone, tolerance);
}
inline Tensor golden_cone_project(const Tensor &v, Cone cone)
{
    return detail::tensor(sv_srt_golden_cone_project, v, cone);
}

// Noise: functions of seed and position.

inline Tensor noise_words(std::uint64_t seed, std::uint64_t offset, const Shape &shape, Device device = Device::cpu())
{
    return detail::shaped(sv_srt_noise_words, seed, offset, shape, device);
}
inline Tensor gauss(std::uint64_t seed, std::uint64_t offset, const Shape &shape, Device device = Device::cpu())
{
    return detail::shaped(sv_srt_gauss, seed, offset, shape, device);
}
inline Tensor uniform_noise(std::uint64_t seed, std::uint64_t offset, Interval interval, const Shape &shape,
                            Device device = Device::cpu())
{
    return detail::make<Tensor>(sv_srt_uniform_noise, seed, offset, detail::raw(interval), shape.data(), shape.size(),
                                device.ordinal());
}
inline Tensor residual_modulated_noise(const Tensor &g, const Tensor &rho, double low, double high)
{
    return detail::tensor(sv_srt_residual_modulated_noise, g, rho, low, high);
}

// Phases and syntony.

inline Tensor resonant_d_phase(const Tensor &v, const Tensor &n2, const Tensor &g, double s, double sigma)
{
    return detail::tensor(sv_srt_resonant_d_phase, v, n2, g, s, sigma);
}
inline Tensor resonant_d_phase_batch(const Tensor &v, const Tensor &n2, const Tensor &g, const Tensor &s, double sigma)
{
    return detail::tensor(sv_srt_resonant_d_phase_batch, v, n2, g, s, sigma);
}
inline Tensor h_phase(const Tensor &v, const Tensor &n2, double s) { return detail::tensor(sv_srt_h_phase, v, n2, s); }
inline Tensor phase_cycle(const Tensor &v, const Tensor &n2, double s)
{
    return detail::tensor(sv_srt_phase_cycle, v, n2, s);
}
inline Tensor aggregate_syntony(const Tensor &s, Aggregate aggregate)
{
    return detail::tensor(sv_srt_aggregate_syntony, s, aggregate);
}
/// Returns the index and the value of the largest syntony.
inline std::pair<Tensor, Tensor> argmax_syntony(const Tensor &s) { return detail::two(sv_srt_argmax_syntony, s); }
inline Tensor rotate_phase(const Tensor &z, double theta) { return detail::tensor(sv_srt_rotate_phase, z, theta); }
inline Tensor quantize_phase_pi(const Tensor &z, std::int64_t k)
{
    return detail::tensor(sv_srt_quantize_phase_pi, z, k);
}

// Products.

inline Tensor mm_phi(const Tensor &a, const Tensor &b, std::int32_t n, Product mode = Product::Fast)
{
    return detail::tensor(sv_srt_mm_phi, a, b, n, mode);
}
inline Tensor mm_corrected(const Tensor &a, const Tensor &b, double divisor, std::int32_t sign,
                           Product mode = Product::Fast)
{
    return detail::tensor(sv_srt_mm_corrected, a, b, divisor, sign, mode);
}
inline Tensor mm_golden_phase(const Tensor &a, const Tensor &b, std::int32_t n, Product mode = Product::Fast)
{
    return detail::tensor(sv_srt_mm_golden_phase, a, b, n, mode);
}
/// Computes alpha op(A) op(B) + beta C. C is not read if beta is 0.
inline Tensor gemm(Number alpha, const Tensor &a, const Tensor &b, Number beta, const Tensor &c,
                   MatrixOperation operation_a = MatrixOperation::None,
                   MatrixOperation operation_b = MatrixOperation::None, Product mode = Product::Fast)
{
    return detail::tensor(sv_srt_gemm, &alpha.raw(), operation_a, a, operation_b, b, &beta.raw(), c, mode);
}
inline Tensor projection_sum(const Tensor &psi, const std::vector<Tensor> &projections,
                             const std::vector<double> &factors, Product mode = Product::Fast)
{
    if (!detail::have_equal_lengths("projection_sum", projections.size(), factors.size()))
        return {};
    const std::vector<sv_tensor> handles = selvedge::detail::handles(projections);
    return detail::tensor(sv_srt_projection_sum, psi, handles.data(), factors.data(), handles.size(), mode);
}
inline Tensor weighted_sum(const std::vector<Tensor> &tensors, const std::vector<double> &weights)
{
    if (!detail::have_equal_lengths("weighted_sum", tensors.size(), weights.size()))
        return {};
    const std::vector<sv_tensor> handles = selvedge::detail::handles(tensors);
    return detail::tensor(sv_srt_weighted_sum, handles.data(), weights.data(), handles.size());
}

// Residuals and corrections.

inline Tensor phi_residual(const Tensor &x, const Tensor &r, Residual mode = Residual::Phi)
{
    return detail::tensor(sv_srt_phi_residual, x, r, mode);
}
inline Tensor phi_residual_relu(const Tensor &x, const Tensor &r, Residual mode = Residual::Phi, bool keep_nan = false)
{
    return detail::tensor(sv_srt_phi_residual_relu, x, r, mode, keep_nan);
}
inline Tensor phi_residual_layer_norm(const Tensor &x, const Tensor &r, const Tensor &gamma, const Tensor &beta,
                                      double eps = 1e-5)
{
    return detail::tensor(sv_srt_phi_residual_layer_norm, x, r, gamma, beta, eps);
}
/// Multiplies each element by its own correction; a divisor of 0 gives 1.
inline Tensor correct(const Tensor &values, const std::vector<Correction> &corrections)
{
    std::vector<double> divisors;
    std::vector<std::int32_t> signs;
    detail::divide(corrections, divisors, signs);
    return detail::tensor(sv_srt_correct, values, divisors.data(), signs.data(), divisors.size());
}
/// Multiplies element i by `lengths[i]` of the corrections, from `starts[i]` on and from left to right.
inline Tensor correct_chain(const Tensor &values, const std::vector<Correction> &corrections,
                            const std::vector<std::size_t> &starts, const std::vector<std::size_t> &lengths)
{
    if (!detail::have_equal_lengths("correct_chain", starts.size(), lengths.size()))
        return {};
    std::vector<double> divisors;
    std::vector<std::int32_t> signs;
    detail::divide(corrections, divisors, signs);
    return detail::tensor(sv_srt_correct_chain, values, divisors.data(), signs.data(), divisors.size(), starts.data(),
                          lengths.data(), starts.size());
}
// Golden normalisation. The variance of the result is `target`, or 1/phi for 0.

inline Tensor golden_layer_norm(const Tensor &v, const Tensor &gamma = {}, const Tensor &beta = {}, double target = 0,
                                double eps = 1e-5)
{
    return detail::tensor(sv_srt_golden_layer_norm, v, gamma, beta, target, eps);
}
inline Tensor golden_batch_norm_1d(const Tensor &v, const Tensor &gamma = {}, const Tensor &beta = {},
                                   double target = 0, double eps = 1e-5)
{
    return detail::tensor(sv_srt_golden_batch_norm_1d, v, gamma, beta, target, eps);
}
inline Tensor golden_batch_norm_2d(const Tensor &v, const Tensor &gamma = {}, const Tensor &beta = {},
                                   double target = 0, double eps = 1e-5)
{
    return detail::tensor(sv_srt_golden_batch_norm_2d, v, gamma, beta, target, eps);
}

/// The mean and the variance of each channel over batches, f64.
struct RunningStatistics {
    Tensor mean;
    Tensor variance;
};

/// Normalises a batch as in training, and updates the statistics.
inline Tensor golden_batch_norm_train(const Tensor &v, RunningStatistics &running, double momentum = 0.1,
                                      const Tensor &gamma = {}, const Tensor &beta = {}, double target = 0,
                                      double eps = 1e-5)
{
    sv_tensor result = nullptr, mean = nullptr, variance = nullptr;
    detail::call(sv_srt_golden_batch_norm_train, v.handle(), running.mean.handle(), running.variance.handle(), momentum,
                 gamma.handle(), beta.handle(), target, eps, &result, &mean, &variance);
    running = {Tensor::adopt(mean), Tensor::adopt(variance)};
    return Tensor::adopt(result);
}
/// Normalises a batch with the statistics, as in inference.
inline Tensor golden_batch_norm_infer(const Tensor &v, const RunningStatistics &running, const Tensor &gamma = {},
                                      const Tensor &beta = {}, double target = 0, double eps = 1e-5)
{
    return detail::tensor(sv_srt_golden_batch_norm_infer, v, running.mean, running.variance, gamma, beta, target, eps);
}

inline Tensor compound_correction(const Tensor &values, double first, double second)
{
    return detail::tensor(sv_srt_compound_correction, values, first, second);
}

} // namespace srt

SELVEDGE_END

#endif
