// The handles behind the classes, and the lists that their functions take.

#ifndef SELVEDGE_OBJECT_HPP
#define SELVEDGE_OBJECT_HPP

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "error.hpp"

#if __cplusplus >= 202002L && __has_include(<span>)
#include <ranges>
#include <span>
#endif

SELVEDGE_BEGIN

/// An owned reference to an object of the library. A copy refers to the same object; a default-constructed one to none.
template <class Derived, class RawHandle>
class Object {
public:
    /// The type of the handle in selvedge.h.
    using Handle = RawHandle;

    Object() noexcept = default;
    Object(const Object &other) : handle_(other.handle_)
    {
        if (handle_ != nullptr && sv_retain(handle_) != SV_OK) {
            handle_ = nullptr;
            detail::fail(Error(SV_ERROR_INVALID_HANDLE, sv_last_error()));
        }
    }
    Object(Object &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Object &operator=(Object other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Object() { sv_release(handle_); }

    /// Takes over a reference that the caller owns.
    static Derived adopt(Handle handle) noexcept
    {
        Derived object;
        object.handle_ = handle;
        return object;
    }

    /// Returns whether this refers to an object.
    bool defined() const noexcept { return handle_ != nullptr; }

    /// Returns the handle for functions of selvedge.h. The object keeps its reference.
    Handle handle() const noexcept { return handle_; }

    /// Returns the handle with the reference, which is then the caller's.
    Handle release() noexcept { return std::exchange(handle_, nullptr); }

protected:
    explicit Object(Handle handle) noexcept : handle_(handle) {}

private:
    Handle handle_ = nullptr;
};

/// A view of adjacent elements that something else owns, as std::span of C++20, which it converts to.
template <class T>
class Elements {
public:
    using value_type = std::remove_cv_t<T>;

    constexpr Elements() noexcept = default;
    constexpr Elements(T *data, std::size_t size) noexcept : data_(data), size_(size) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t position) const noexcept { return data_[position]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/// A list of sizes, axes or indices: `{2, n}` of any integers, or a vector.
class Shape {
public:
    template <class... I, class = std::enable_if_t<(std::is_integral_v<I> && ...)>>
    Shape(I... sizes) : sizes_{static_cast<std::int64_t>(sizes)...} {}
    template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
    Shape(const std::vector<I> &sizes) : sizes_(sizes.begin(), sizes.end()) {}
    Shape(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}

    const std::int64_t *data() const noexcept { return sizes_.data(); }
    std::size_t size() const noexcept { return sizes_.size(); }
    std::int64_t operator[](std::size_t axis) const noexcept { return sizes_[axis]; }
    std::vector<std::int64_t>::const_iterator begin() const noexcept { return sizes_.begin(); }
    std::vector<std::int64_t>::const_iterator end() const noexcept { return sizes_.end(); }

    friend bool operator==(const Shape &left, const Shape &right) noexcept { return left.sizes_ == right.sizes_; }
    friend bool operator!=(const Shape &left, const Shape &right) noexcept { return left.sizes_ != right.sizes_; }
    friend std::ostream &operator<<(std::ostream &stream, const Shape &shape)
    {
        const char *separator = "[";
        if (shape.size() == 0)
            stream << separator;
        for (std::int64_t size : shape) {
            stream << separator << size;
            separator = ", ";
        }
        return stream << "]";
    }

private:
    std::vector<std::int64_t> sizes_;
};

/// The axes of a reduction: `{0, 1}`, one axis, none of `{}`, or all().
class Axes : public Shape {
public:
    using Shape::Shape;

    static Axes all()
    {
        Axes axes;
        axes.all_ = true;
        return axes;
    }

    /// Returns the pointer that selvedge.h takes: NULL for all axes, and another one for none.
    const std::int64_t *pointer() const noexcept
    {
        static constexpr std::int64_t none = 0;
        return all_ ? nullptr : size() == 0 ? &none : data();
    }

private:
    bool all_ = false;
};

namespace detail {

/// Fails unless two lists of a call have equal lengths.
inline bool have_equal_lengths(const char *name, std::size_t first, std::size_t second)
{
    if (first != second)
        fail(Error(SV_ERROR_LENGTH_MISMATCH, std::string(name) + ": found lists of " + std::to_string(first) + " and " +
                                                 std::to_string(second) + " elements"));
    return first == second;
}

/// Reads a text by a function with the parameters (..., char *text, size_t capacity, size_t *length).
template <class Function, class... Arguments>
std::string text(Function function, Arguments... arguments)
{
    std::string text;
    std::size_t length = 0;
    call(function, arguments..., nullptr, std::size_t{0}, &length);
    // Another thread may lengthen a text between two calls.
    while (length > text.size()) {
        text.resize(length);
        call(function, arguments..., text.data(), text.size() + 1, &length);
    }
    text.resize(length);
    return text;
}

/// True if `Range` has adjacent elements: a vector, an array, Elements or std::span.
template <class Range, class = void>
struct is_contiguous : std::false_type {};
template <class Range>
struct is_contiguous<Range, std::void_t<decltype(*std::declval<Range &>().data()),
                                        decltype(std::declval<Range &>().size())>> : std::true_type {};

template <class Range>
using element_of = std::remove_cv_t<std::remove_reference_t<decltype(*std::declval<Range &>().data())>>;

/// Returns the handles of a range of objects.
template <class Range>
auto handles(const Range &objects)
{
    std::vector<typename Range::value_type::Handle> handles;
    handles.reserve(objects.size());
    for (const auto &object : objects)
        handles.push_back(object.handle());
    return handles;
}

} // namespace detail

SELVEDGE_END

#if __cplusplus >= 202002L && __has_include(<span>)
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<selvedge::Elements<T>> = true;
#endif

#endif
