// Reductions, scans, softmax and normalisation of tensors.

#ifndef SELVEDGE_REDUCTION_HPP
#define SELVEDGE_REDUCTION_HPP

#include "object.hpp"

SELVEDGE_BEGIN

namespace detail {

/// Methods of Tensor that fold axes, or compute along them. `axes` is one axis, a list `{0, 1}`, or all of them.
template <class Derived>
class Reductions {
public:
#define SELVEDGE_REDUCTION(name, code) \
    Derived name(const Axes &axes = Axes::all(), bool keepdim = false) const \
    { \
        return reduce(SV_REDUCE_##code, axes, keepdim, 0); \
    }
    SELVEDGE_REDUCTION(sum, SUM)
    SELVEDGE_REDUCTION(prod, PROD)
    SELVEDGE_REDUCTION(min, MIN)
    SELVEDGE_REDUCTION(max, MAX)
    SELVEDGE_REDUCTION(argmin, ARGMIN)
    SELVEDGE_REDUCTION(argmax, ARGMAX)
    SELVEDGE_REDUCTION(any, ANY)
    SELVEDGE_REDUCTION(all, ALL)
    SELVEDGE_REDUCTION(count_nonzero, COUNT_NONZERO)
    SELVEDGE_REDUCTION(mean, MEAN)
    SELVEDGE_REDUCTION(logsumexp, LOGSUMEXP)
    SELVEDGE_REDUCTION(nansum, NANSUM)
    SELVEDGE_REDUCTION(nanmean, NANMEAN)
#undef SELVEDGE_REDUCTION

    /// Computes the variance. The correction is 1 for a sample, and 0 for a population.
    Derived var(const Axes &axes = Axes::all(), double correction = 1, bool keepdim = false) const
    {
        return reduce(SV_REDUCE_VAR, axes, keepdim, correction);
    }
    /// Computes the standard deviation.
    Derived std(const Axes &axes = Axes::all(), double correction = 1, bool keepdim = false) const
    {
        return reduce(SV_REDUCE_STD, axes, keepdim, correction);
    }
    /// Computes the p-norm.
    Derived norm(double p = 2, const Axes &axes = Axes::all(), bool keepdim = false) const
    {
        return reduce(SV_REDUCE_NORM, axes, keepdim, p);
    }

    Derived cumsum(std::int64_t axis) const { return computed(sv_tensor_scan, std::int32_t{SV_SCAN_SUM}, axis); }
    Derived cumprod(std::int64_t axis) const { return computed(sv_tensor_scan, std::int32_t{SV_SCAN_PROD}, axis); }
    Derived cummax(std::int64_t axis) const { return computed(sv_tensor_scan, std::int32_t{SV_SCAN_MAX}, axis); }
    Derived cummin(std::int64_t axis) const { return computed(sv_tensor_scan, std::int32_t{SV_SCAN_MIN}, axis); }

    Derived softmax(std::int64_t axis = -1) const { return computed(sv_tensor_softmax, axis); }
    Derived log_softmax(std::int64_t axis = -1) const { return computed(sv_tensor_log_softmax, axis); }

    // Weights and biases may be empty tensors for none.

    Derived layer_norm(const Shape &normalized_shape, const Derived &weight = {}, const Derived &bias = {},
                       double eps = 1e-5) const
    {
        return computed(sv_tensor_layer_norm, normalized_shape.data(), normalized_shape.size(), weight.handle(),
                        bias.handle(), eps);
    }
    /// Computes x / sqrt(mean(x²) + eps) · weight. A negative `eps` is the machine epsilon of the dtype.
    Derived rms_norm(const Shape &normalized_shape, const Derived &weight = {}, double eps = -1) const
    {
        return computed(sv_tensor_rms_norm, normalized_shape.data(), normalized_shape.size(), weight.handle(), eps);
    }
    Derived group_norm(std::size_t num_groups, const Derived &weight = {}, const Derived &bias = {},
                       double eps = 1e-5) const
    {
        return computed(sv_tensor_group_norm, num_groups, weight.handle(), bias.handle(), eps);
    }
    Derived batch_norm(const Derived &running_mean, const Derived &running_var, const Derived &weight = {},
                       const Derived &bias = {}, double eps = 1e-5) const
    {
        return computed(sv_tensor_batch_norm, running_mean.handle(), running_var.handle(), weight.handle(),
                        bias.handle(), eps);
    }
    /// Normalises by the statistics of each channel, and moves the running ones, which may be empty, towards them.
    Derived batch_norm_training(Derived &running_mean, Derived &running_var, const Derived &weight = {},
                                const Derived &bias = {}, double momentum = 0.1, double eps = 1e-5) const
    {
        return computed(sv_tensor_batch_norm_training, running_mean.handle(), running_var.handle(), weight.handle(),
                        bias.handle(), momentum, eps);
    }
    /// Computes x / max(norm, eps).
    Derived normalize(double p, const Axes &axes, double eps = 1e-12) const
    {
        return computed(sv_tensor_normalize, p, axes.pointer(), axes.size(), eps);
    }
    /// Computes (x - mean) / standard deviation, with the biased variance.
    Derived standardize(const Axes &axes = Axes::all()) const
    {
        return computed(sv_tensor_standardize, axes.pointer(), axes.size());
    }

private:
    template <class Function, class... Arguments>
    Derived computed(Function function, Arguments... arguments) const
    {
        return make<Derived>(function, static_cast<const Derived &>(*this).handle(), arguments...);
    }

    Derived reduce(std::int32_t code, const Axes &axes, bool keepdim, double parameter) const
    {
        return computed(sv_tensor_reduce, code, axes.pointer(), axes.size(), std::int32_t{keepdim}, parameter);
    }
};

} // namespace detail

SELVEDGE_END

#endif
