// Sorted order, search, counts and statistics of tensors.

#ifndef SELVEDGE_SORTING_HPP
#define SELVEDGE_SORTING_HPP

#include <limits>
#include <tuple>

#include "object.hpp"

SELVEDGE_BEGIN

namespace detail {

/// Methods of Tensor that order, search, count and summarise. Functions with two results return the elements and their positions.
template <class Derived>
class Sorting {
public:
    using Two = std::pair<Derived, Derived>;

    /// Sorts along an axis. Equal elements keep their order, and NaN is the largest number.
    Two sort(std::int64_t axis = -1, bool descending = false) const
    {
        return two(sv_tensor_sort, axis, std::int32_t{descending});
    }
    /// Sorts along an axis without the positions.
    Derived sorted(std::int64_t axis = -1, bool descending = false) const
    {
        return one(sv_tensor_sorted, axis, std::int32_t{descending});
    }
    Derived argsort(std::int64_t axis = -1, bool descending = false) const
    {
        return one(sv_tensor_argsort, axis, std::int32_t{descending});
    }
    /// Returns the `k` largest elements in descending order, or the smallest ones in ascending order.
    Two topk(std::size_t k, std::int64_t axis = -1, bool largest = true) const
    {
        return two(sv_tensor_topk, k, axis, std::int32_t{largest});
    }
    /// Returns the k-th smallest element, counted from 1.
    Two kthvalue(std::size_t k, std::int64_t axis = -1) const { return two(sv_tensor_kthvalue, k, axis); }
    Two max_with_indices(std::int64_t axis) const { return with_indices(SV_WITH_INDICES_MAX, axis); }
    Two min_with_indices(std::int64_t axis) const { return with_indices(SV_WITH_INDICES_MIN, axis); }
    Two median(std::int64_t axis = -1) const { return with_indices(SV_WITH_INDICES_MEDIAN, axis); }
    Two nanmedian(std::int64_t axis = -1) const { return with_indices(SV_WITH_INDICES_NANMEDIAN, axis); }
    Two mode(std::int64_t axis = -1) const { return with_indices(SV_WITH_INDICES_MODE, axis); }
    Derived quantile(double q, std::int64_t axis = -1) const
    {
        return one(sv_tensor_quantile, q, axis, std::int32_t{0});
    }
    Derived nanquantile(double q, std::int64_t axis = -1) const
    {
        return one(sv_tensor_quantile, q, axis, std::int32_t{1});
    }

    Derived unique() const { return one(sv_tensor_unique, std::int32_t{0}); }
    Derived unique_consecutive() const { return one(sv_tensor_unique, std::int32_t{1}); }
    /// Returns the distinct elements, the place among them of each element, and the number of times that each occurs.
    std::tuple<Derived, Derived, Derived> unique_with_counts(bool consecutive = false) const
    {
        sv_tensor values = nullptr, inverse = nullptr, counts = nullptr;
        call(sv_tensor_unique_with_counts, self(), std::int32_t{consecutive}, &values, &inverse, &counts);
        return {Derived::adopt(values), Derived::adopt(inverse), Derived::adopt(counts)};
    }
    Derived isin(const Derived &elements) const { return one(sv_tensor_isin, elements.handle()); }
    Derived searchsorted(const Derived &values, bool right = false) const
    {
        return one(sv_tensor_searchsorted, values.handle(), std::int32_t{right});
    }
    Derived bucketize(const Derived &boundaries, bool right = false) const
    {
        return one(sv_tensor_bucketize, boundaries.handle(), std::int32_t{right});
    }
    Derived histc(std::size_t bins, double min = 0, double max = 0) const
    {
        return one(sv_tensor_histc, bins, min, max);
    }
    Derived histogram(const Derived &edges) const { return one(sv_tensor_histogram, edges.handle()); }
    Derived bincount(std::size_t minlength = 0) const { return one(sv_tensor_bincount, minlength); }
    Derived nonzero() const { return one(sv_tensor_nonzero); }
    Derived masked_select(const Derived &mask) const { return one(sv_tensor_masked_select, mask.handle()); }

    /// Returns the smallest and the largest elements.
    Two aminmax(const Axes &axes = Axes::all()) const { return two(sv_tensor_aminmax, axes.pointer(), axes.size()); }
    Two std_mean(const Axes &axes = Axes::all(), std::size_t correction = 1) const
    {
        return two(sv_tensor_std_mean, axes.pointer(), axes.size(), correction);
    }
    Two var_mean(const Axes &axes = Axes::all(), std::size_t correction = 1) const
    {
        return two(sv_tensor_var_mean, axes.pointer(), axes.size(), correction);
    }
    Derived diff(std::size_t order = 1, std::int64_t axis = -1) const { return one(sv_tensor_diff, order, axis); }
    /// Computes the covariances of the rows, which are variables.
    Derived cov(std::size_t correction = 1) const { return one(sv_tensor_cov, correction); }
    Derived corrcoef() const { return one(sv_tensor_corrcoef); }
    Derived cdist(const Derived &other, double p = 2) const { return one(sv_tensor_cdist, other.handle(), p); }
    /// Replaces NaN and infinities. An infinity whose number is NaN becomes the dtype's largest or smallest number.
    Derived nan_to_num(double nan = 0, double positive_infinity = std::numeric_limits<double>::quiet_NaN(),
                       double negative_infinity = std::numeric_limits<double>::quiet_NaN()) const
    {
        return one(sv_tensor_nan_to_num, nan, positive_infinity, negative_infinity);
    }
    Derived isclose(const Derived &other, double rtol = 1e-5, double atol = 1e-8) const
    {
        return one(sv_tensor_isclose, other.handle(), rtol, atol);
    }
    /// Returns whether the shapes and all elements are equal.
    bool equal(const Derived &other) const { return get<std::int32_t>(sv_tensor_equal, self(), other.handle()) != 0; }
    Derived diag(std::int64_t offset = 0) const { return one(sv_tensor_diag, offset); }
    Derived trace() const { return one(sv_tensor_trace); }
    Derived kron(const Derived &other) const { return one(sv_tensor_kron, other.handle()); }

private:
    sv_tensor self() const { return static_cast<const Derived &>(*this).handle(); }

    template <class Function, class... Arguments>
    Derived one(Function function, Arguments... arguments) const
    {
        return make<Derived>(function, self(), arguments...);
    }

    template <class Function, class... Arguments>
    Two two(Function function, Arguments... arguments) const
    {
        sv_tensor first = nullptr, second = nullptr;
        call(function, self(), arguments..., &first, &second);
        return {Derived::adopt(first), Derived::adopt(second)};
    }

    Two with_indices(std::int32_t code, std::int64_t axis) const
    {
        return two(sv_tensor_reduce_with_indices, code, axis);
    }
};

} // namespace detail

SELVEDGE_END

#endif
