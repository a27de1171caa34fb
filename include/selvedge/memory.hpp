// Memory of CUDA devices, and page-locked memory of the host.

#ifndef SELVEDGE_MEMORY_HPP
#define SELVEDGE_MEMORY_HPP

#include <functional>
#include <memory>

#include "device.hpp"

SELVEDGE_BEGIN

/// Elements of type `T` in the memory of a CUDA device. Offsets and sizes count elements. Each operation waits on the device
/// for the earlier ones that conflict with it, on any stream.
template <class T>
class Buffer : public Object<Buffer<T>, sv_buffer> {
    static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");

public:
    Buffer() noexcept = default;

    /// Allocates `size` elements with unspecified contents.
    Buffer(const Stream &stream, std::size_t size) : Buffer(sv_buffer_create, stream, size) {}

    static Buffer zeros(const Stream &stream, std::size_t size) { return Buffer(sv_buffer_zeros, stream, size); }

    /// Allocates the elements of a vector, an array or a span, and copies them.
    template <class Range>
    static Buffer from(const Stream &stream, const Range &elements)
    {
        Buffer buffer(stream, elements.size());
        buffer.upload(stream, elements);
        return buffer;
    }
    static Buffer from(const Stream &stream, std::initializer_list<T> elements)
    {
        return from(stream, Elements<const T>(elements.begin(), elements.size()));
    }

    /// Takes over device memory of other code, which is valid until `deleter` is called once, from any thread. It is not
    /// called if this fails.
    static Buffer from_raw(const Stream &stream, std::uint64_t address, std::size_t size, std::function<void()> deleter)
    {
        auto user = std::make_unique<std::function<void()>>(std::move(deleter));
        Buffer buffer = detail::make<Buffer>(sv_buffer_from_raw, stream.handle(), address, bytes_of(size), &on_delete,
                                             static_cast<void *>(user.get()));
        if (buffer.defined())
            user.release();
        return buffer;
    }

    std::uint64_t bytes() const { return detail::get<std::uint64_t>(sv_buffer_size, this->handle()); }
    std::size_t size() const { return static_cast<std::size_t>(bytes() / sizeof(T)); }
    Device device() const
    {
        return Device::from_ordinal(detail::get<std::int32_t>(sv_buffer_device, this->handle()));
    }

    /// Returns the device address, whose uses by other code the library does not see.
    std::uint64_t address() const { return detail::get<std::uint64_t>(sv_buffer_address, this->handle()); }

    /// Copies elements of the host to the buffer, from `offset` on.
    template <class Range>
    void upload(const Stream &stream, const Range &elements, std::size_t offset = 0)
    {
        static_assert(std::is_same_v<detail::element_of<const Range>, T>, "the buffer has elements of another type");
        detail::call(sv_buffer_upload, stream.handle(), this->handle(), std::uint64_t{offset} * sizeof(T),
                     static_cast<const void *>(elements.data()), elements.size() * sizeof(T));
    }

    /// Waits for the buffer's work, and copies elements from `offset` on to a vector, an array or a span.
    template <class Range>
    void download(const Stream &stream, Range &&elements, std::size_t offset = 0) const
    {
        static_assert(std::is_same_v<detail::element_of<Range>, T>, "the buffer has elements of another type");
        detail::call(sv_buffer_download, stream.handle(), this->handle(), std::uint64_t{offset} * sizeof(T),
                     static_cast<void *>(elements.data()), elements.size() * sizeof(T));
    }

    /// Waits for the buffer's work, and returns its elements.
    std::vector<T> download(const Stream &stream) const
    {
        std::vector<T> elements(size());
        download(stream, elements);
        return elements;
    }

    /// Sets every element.
    void fill(const Stream &stream, const T &value)
    {
        detail::call(sv_buffer_fill, stream.handle(), this->handle(), std::uint64_t{0},
                     static_cast<const void *>(&value), sizeof value, std::uint64_t{size()});
    }

    /// Copies `count` elements of another buffer.
    void copy(const Stream &stream, const Buffer &source, std::size_t source_offset, std::size_t offset,
              std::size_t count)
    {
        detail::call(sv_buffer_copy, stream.handle(), source.handle(), std::uint64_t{source_offset} * sizeof(T),
                     this->handle(), std::uint64_t{offset} * sizeof(T), std::uint64_t{count} * sizeof(T));
    }

private:
    template <class Function>
    Buffer(Function create, const Stream &stream, std::size_t size)
        : Object<Buffer<T>, sv_buffer>(detail::get<sv_buffer>(create, stream.handle(), bytes_of(size)))
    {
    }

    static void on_delete(void *user) noexcept
    {
        const std::unique_ptr<std::function<void()>> deleter(static_cast<std::function<void()> *>(user));
        if (*deleter)
            (*deleter)();
    }

    // Sizes that do not fit stay too large for any device.
    static std::uint64_t bytes_of(std::size_t size) noexcept
    {
        return size > UINT64_MAX / sizeof(T) ? UINT64_MAX : std::uint64_t{size} * sizeof(T);
    }
};

/// Page-locked elements of the host, for copies that the host does not wait for.
template <class T>
class PinnedBuffer : public Object<PinnedBuffer<T>, sv_pinned> {
    static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");

public:
    PinnedBuffer() noexcept = default;

    PinnedBuffer(Device device, std::size_t size)
        : Object<PinnedBuffer<T>, sv_pinned>(detail::get<sv_pinned>(
              sv_pinned_create, device.ordinal(), size > SIZE_MAX / sizeof(T) ? SIZE_MAX : size * sizeof(T)))
    {
    }

    /// Returns the elements, valid while the object lives. During a copy this fails.
    Elements<T> elements() const
    {
        void *data = nullptr;
        std::size_t bytes = 0;
        detail::call(sv_pinned_data, this->handle(), &data, &bytes);
        return {static_cast<T *>(data), bytes / sizeof(T)};
    }

    /// Starts a copy of all elements to a buffer, which has them until wait().
    void upload(const Stream &stream, Buffer<T> &buffer, std::size_t offset = 0)
    {
        detail::call(sv_pinned_upload, stream.handle(), this->handle(), buffer.handle(),
                     std::uint64_t{offset} * sizeof(T));
    }

    /// Starts a copy of a buffer to all elements, which has them until wait().
    void download(const Stream &stream, const Buffer<T> &buffer, std::size_t offset = 0)
    {
        detail::call(sv_pinned_download, stream.handle(), buffer.handle(), std::uint64_t{offset} * sizeof(T),
                     this->handle());
    }

    bool is_complete() const { return detail::get<std::int32_t>(sv_pinned_is_complete, this->handle()) != 0; }

    /// Waits for the copy.
    void wait() const { detail::call(sv_pinned_wait, this->handle()); }
};

SELVEDGE_END

#endif
