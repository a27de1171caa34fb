// Tensors of ranges, elements to ranges, and tensors as ranges over their first axis.

#ifndef SELVEDGE_RANGES_HPP
#define SELVEDGE_RANGES_HPP

#include <algorithm>
#include <iterator>

#include "device.hpp"
#include "indexing.hpp"

SELVEDGE_BEGIN

namespace detail {

/// The type of the elements of a range; bool for the bits of a std::vector<bool>.
template <class Range>
using range_element = std::decay_t<decltype(*std::begin(std::declval<Range &>()))>;
template <class Range>
using value_of = std::conditional_t<std::is_same_v<range_element<Range>, std::vector<bool>::reference>, bool, range_element<Range>>;

/// True if `Range` has elements of a dtype that are not adjacent: a std::list, a view of std::ranges, or a std::vector<bool>.
template <class Range, class = void>
struct is_scattered : std::false_type {};
template <class Range>
struct is_scattered<Range, std::void_t<value_of<Range>>>
    : std::bool_constant<!is_contiguous<Range>::value && is_element<value_of<Range>>> {};

/// A position along the first axis of an object, which lives as long as the iterator. Its value is made when it is read.
template <class Object>
class RowIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using iterator_concept = std::random_access_iterator_tag;
    using value_type = Object;
    using difference_type = std::ptrdiff_t;
    using reference = Object;
    using pointer = void;

    RowIterator() noexcept = default;
    RowIterator(const Object *object, difference_type index) noexcept : object_(object), index_(index) {}

    Object operator*() const { return object_->select(0, index_); }
    Object operator[](difference_type offset) const { return object_->select(0, index_ + offset); }
    RowIterator &operator+=(difference_type offset) noexcept { return index_ += offset, *this; }
    RowIterator &operator-=(difference_type offset) noexcept { return index_ -= offset, *this; }
    RowIterator &operator++() noexcept { return *this += 1; }
    RowIterator &operator--() noexcept { return *this -= 1; }
    RowIterator operator++(int) noexcept { return ++*this - 1; }
    RowIterator operator--(int) noexcept { return --*this + 1; }

    friend RowIterator operator+(RowIterator x, difference_type offset) noexcept { return x += offset; }
    friend RowIterator operator+(difference_type offset, RowIterator x) noexcept { return x += offset; }
    friend RowIterator operator-(RowIterator x, difference_type offset) noexcept { return x -= offset; }
    friend difference_type operator-(RowIterator x, RowIterator y) noexcept { return x.index_ - y.index_; }
    friend bool operator==(RowIterator x, RowIterator y) noexcept { return x.index_ == y.index_; }
    friend bool operator!=(RowIterator x, RowIterator y) noexcept { return x.index_ != y.index_; }
    friend bool operator<(RowIterator x, RowIterator y) noexcept { return x.index_ < y.index_; }
    friend bool operator>(RowIterator x, RowIterator y) noexcept { return x.index_ > y.index_; }
    friend bool operator<=(RowIterator x, RowIterator y) noexcept { return x.index_ <= y.index_; }
    friend bool operator>=(RowIterator x, RowIterator y) noexcept { return x.index_ >= y.index_; }

private:
    const Object *object_ = nullptr;
    difference_type index_ = 0;
};

/// Methods of Tensor that take ranges of the host, and give parts of the tensor.
template <class Derived>
class Ranges {
public:
    /// Copies a vector, an array or a span to a tensor of one dimension.
    template <class Range, class = std::enable_if_t<is_contiguous<const Range>::value>>
    static Derived from(const Range &elements, Device device = Device::cpu())
    {
        return from(elements, Shape(elements.size()), device);
    }

    /// Copies a vector, an array or a span, which is in row-major order, to a tensor of a shape.
    template <class Range, class = std::enable_if_t<is_contiguous<const Range>::value>>
    static Derived from(const Range &elements, const Shape &shape, Device device = Device::cpu())
    {
        using T = element_of<const Range>;
        return Derived::from_bytes(elements.data(), elements.size() * sizeof(T), dtype_of<T>, shape, device);
    }

    /// Copies a range whose elements are not adjacent, such as a view of std::ranges or a std::vector<bool>.
    template <class Range, std::enable_if_t<is_scattered<Range>::value, int> = 0>
    static Derived from(Range &&elements, Device device = Device::cpu())
    {
        const auto list = listed(elements);
        return of_list<value_of<Range>>(list, Shape(list.size()), device);
    }
    template <class Range, std::enable_if_t<is_scattered<Range>::value, int> = 0>
    static Derived from(Range &&elements, const Shape &shape, Device device = Device::cpu())
    {
        return of_list<value_of<Range>>(listed(elements), shape, device);
    }

    /// Waits for the tensor, and copies its elements to a vector, an array or a span of their number.
    template <class Range, std::enable_if_t<is_contiguous<Range>::value, int> = 0>
    void copy_to(Range &&elements) const
    {
        using T = element_of<Range>;
        if (self().check_dtype("copy_to", dtype_of<T>))
            call(sv_tensor_to_host, self().handle(), static_cast<void *>(elements.data()), elements.size() * sizeof(T));
    }

    /// Waits for the tensor, and copies its elements to a range of their number that are not adjacent.
    template <class Range, std::enable_if_t<is_scattered<Range>::value, int> = 0>
    void copy_to(Range &&elements) const
    {
        const auto found = self().template to_vector<value_of<Range>>();
        const auto wanted = static_cast<std::size_t>(std::distance(std::begin(elements), std::end(elements)));
        if (have_equal_lengths("copy_to", found.size(), wanted))
            std::copy(found.begin(), found.end(), std::begin(elements));
    }

    /// Returns one position along the first axis.
    Derived operator[](std::int64_t index) const { return self().select(0, index); }
    /// Returns the elements that an entry of an index expression names, such as `x[mask]` or `x[Index::slice(1, 3)]`.
    Derived operator[](const Index &item) const { return self().index({item}); }
    /// Returns the elements that an index expression names: `x[{0, Index::slice(1, 3)}]`.
    Derived operator[](const std::vector<Index> &items) const { return self().index(items); }

    /// The positions along the first axis, each as a tensor that is a view: `for (const Tensor row : x)`. An iterator is valid while
    /// the tensor that it came from lives.
    RowIterator<Derived> begin() const { return {&self(), 0}; }
    RowIterator<Derived> end() const { return {&self(), static_cast<std::ptrdiff_t>(self().size(0))}; }

private:
    const Derived &self() const noexcept { return static_cast<const Derived &>(*this); }

    /// Returns the elements of a range as they are stored.
    template <class Range>
    static auto listed(Range &elements)
    {
        using T = value_of<Range>;
        std::vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>> list;
        for (auto &&element : elements)
            list.push_back(static_cast<T>(element));
        return list;
    }

    template <class T, class Stored>
    static Derived of_list(const std::vector<Stored> &list, const Shape &shape, Device device)
    {
        return Derived::from_bytes(list.data(), list.size() * sizeof(Stored), dtype_of<T>, shape, device);
    }
};

} // namespace detail

SELVEDGE_END

#endif
