// Index expressions, and writes by index that combine elements.

#ifndef SELVEDGE_INDEXING_HPP
#define SELVEDGE_INDEXING_HPP

#include "elementwise.hpp"

SELVEDGE_BEGIN

/// The first or the last position of a slice that has no bound there.
inline constexpr std::int64_t open_end = SV_OPEN;

/// An entry of an index expression, as in `x[...]` of Python: a position, a tensor of integers, a mask of bools, or one of the
/// functions below.
class Index {
public:
    template <class I, class = std::enable_if_t<std::is_integral_v<I> && !std::is_same_v<I, bool>>>
    Index(I position) noexcept : index_{SV_INDEX_AT, 0, 0, static_cast<std::int64_t>(position), 0, 1}
    {
    }
    Index(const Tensor &tensor);

    /// Takes the positions `start:stop:step`.
    static Index slice(std::int64_t start = open_end, std::int64_t stop = open_end, std::int64_t step = 1) noexcept
    {
        return Index({SV_INDEX_SLICE, 0, 0, start, stop, step});
    }
    /// Adds an axis of size 1.
    static Index new_axis() noexcept { return Index({SV_INDEX_NEW_AXIS, 0, 0, 0, 0, 1}); }
    /// Takes all axes that no other entry takes.
    static Index ellipsis() noexcept { return Index({SV_INDEX_ELLIPSIS, 0, 0, 0, 0, 1}); }

    const sv_index &raw() const noexcept { return index_; }

private:
    explicit Index(sv_index index) noexcept : index_(index) {}

    sv_index index_;
};

/// The combination of elements that go to one place.
enum class ScatterReduction : std::int32_t {
    Sum = SV_REDUCE_SUM,
    Prod = SV_REDUCE_PROD,
    Min = SV_REDUCE_MIN,
    Max = SV_REDUCE_MAX,
    Mean = SV_REDUCE_MEAN,
};

namespace detail {

/// Methods of Tensor that read by index expressions, and write by index. A method that ends in `_in_place` writes to the tensor.
template <class Derived>
class Indexing {
public:
    /// Returns the elements that an index expression names: `x.index({0, Index::slice(1, 3), mask})`.
    Derived index(const std::vector<Index> &items) const
    {
        const std::vector<sv_index> raw = raw_items(items);
        return made(sv_tensor_index, raw.data(), raw.size());
    }
    Derived index_assign(const std::vector<Index> &items, const Operand &value) const
    {
        const std::vector<sv_index> raw = raw_items(items);
        return made(sv_tensor_index_assign, raw.data(), raw.size(), &value.raw());
    }
    Derived &index_assign_in_place(const std::vector<Index> &items, const Operand &value)
    {
        const std::vector<sv_index> raw = raw_items(items);
        return changed(sv_tensor_index_assign_in_place, raw.data(), raw.size(), &value.raw());
    }

    Derived scatter_add(std::int64_t axis, const Derived &index, const Derived &elements) const
    {
        return made(sv_tensor_scatter_add, axis, index.handle(), elements.handle());
    }
    Derived &scatter_add_in_place(std::int64_t axis, const Derived &index, const Derived &elements)
    {
        return changed(sv_tensor_scatter_add_in_place, axis, index.handle(), elements.handle());
    }
    Derived scatter_reduce(std::int64_t axis, const Derived &index, const Derived &elements, ScatterReduction reduction,
                           bool include_self = true) const
    {
        return made(sv_tensor_scatter_reduce, axis, index.handle(), elements.handle(),
                    static_cast<std::int32_t>(reduction), std::int32_t{include_self});
    }
    Derived &scatter_reduce_in_place(std::int64_t axis, const Derived &index, const Derived &elements,
                                     ScatterReduction reduction, bool include_self = true)
    {
        return changed(sv_tensor_scatter_reduce_in_place, axis, index.handle(), elements.handle(),
                       static_cast<std::int32_t>(reduction), std::int32_t{include_self});
    }
    Derived index_add(std::int64_t axis, const Derived &index, const Derived &elements) const
    {
        return made(sv_tensor_index_add, axis, index.handle(), elements.handle());
    }
    Derived &index_add_in_place(std::int64_t axis, const Derived &index, const Derived &elements)
    {
        return changed(sv_tensor_index_add_in_place, axis, index.handle(), elements.handle());
    }
    Derived index_fill(std::int64_t axis, const Derived &index, Number number) const
    {
        return made(sv_tensor_index_fill, axis, index.handle(), &number.raw());
    }
    Derived &index_fill_in_place(std::int64_t axis, const Derived &index, Number number)
    {
        return changed(sv_tensor_index_fill_in_place, axis, index.handle(), &number.raw());
    }
    /// Writes elements by coordinates, with an index for each of the first axes.
    Derived index_put(const std::vector<Derived> &indices, const Derived &elements, bool accumulate = false) const
    {
        const std::vector<sv_tensor> raw = handles(indices);
        return made(sv_tensor_index_put, raw.data(), raw.size(), elements.handle(), std::int32_t{accumulate});
    }
    Derived &index_put_in_place(const std::vector<Derived> &indices, const Derived &elements, bool accumulate = false)
    {
        const std::vector<sv_tensor> raw = handles(indices);
        return changed(sv_tensor_index_put_in_place, raw.data(), raw.size(), elements.handle(),
                       std::int32_t{accumulate});
    }
    Derived masked_scatter(const Derived &mask, const Derived &elements) const
    {
        return made(sv_tensor_masked_scatter, mask.handle(), elements.handle());
    }
    Derived &masked_scatter_in_place(const Derived &mask, const Derived &elements)
    {
        return changed(sv_tensor_masked_scatter_in_place, mask.handle(), elements.handle());
    }
    /// Combines as many neighbouring rows as each length says.
    Derived segment_reduce(const Derived &lengths, ScatterReduction reduction, Number initial = 0) const
    {
        return made(sv_tensor_segment_reduce, lengths.handle(), static_cast<std::int32_t>(reduction), &initial.raw());
    }

private:
    template <class Function, class... Arguments>
    Derived made(Function function, Arguments... arguments) const
    {
        return make<Derived>(function, static_cast<const Derived &>(*this).handle(), arguments...);
    }

    template <class Function, class... Arguments>
    Derived &changed(Function function, Arguments... arguments)
    {
        auto &self = static_cast<Derived &>(*this);
        call(function, self.handle(), arguments...);
        return self;
    }

    static std::vector<sv_index> raw_items(const std::vector<Index> &items)
    {
        std::vector<sv_index> raw;
        for (const Index &item : items)
            raw.push_back(item.raw());
        return raw;
    }
};

} // namespace detail

SELVEDGE_END

#endif
