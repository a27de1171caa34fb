// Tensors: arrays on the CPU and CUDA devices, with the operations and names of PyTorch.

#ifndef SELVEDGE_TENSOR_HPP
#define SELVEDGE_TENSOR_HPP

#include "device.hpp"
#include "elementwise.hpp"
#include "indexing.hpp"
#include "random_tensors.hpp"
#include "ranges.hpp"
#include "reduction.hpp"
#include "sorting.hpp"

SELVEDGE_BEGIN

template <class T>
class PinnedBuffer;

/// Positions along an axis, as `start:stop:step` in Python.
struct Slice {
    std::int64_t axis = 0;
    std::int64_t start = open_end;
    std::int64_t stop = open_end;
    std::int64_t step = 1;
};

enum class Padding : std::int32_t {
    Constant = SV_PADDING_CONSTANT,
    Reflect = SV_PADDING_REFLECT,
    Replicate = SV_PADDING_REPLICATE,
    Circular = SV_PADDING_CIRCULAR,
};

/// The additions to a matrix product.
struct MatmulOptions {
    /// A tensor that is added: one number for each column, or a column of one for each row.
    const Tensor *bias = nullptr;
    /// A tensor of the result's shape that is added after the activation.
    const Tensor *residual = nullptr;
    /// One of `SV_ACTIVATION_...`.
    std::int32_t activation = SV_ACTIVATION_NONE;
    /// The dtype of the result; None for that of the operands.
    DType result_dtype = DType::None;
    bool conjugate_left = false;
    bool conjugate_right = false;
    /// The factor of the product.
    Number alpha = 1;

    sv_matmul_options raw() const;
};

/// An array of elements on the CPU or a CUDA device.
///
/// A tensor is a value: copies and views share elements until one of them is written to, which copies them. Methods that end in
/// `_in_place`, `assign` and the operators `+=` and its kind write. A default-constructed tensor is empty: defined() is false.
class Tensor : public Object<Tensor, sv_tensor>,
               public detail::Elementwise<Tensor>,
               public detail::Indexing<Tensor>,
               public detail::RandomTensors<Tensor>,
               public detail::Ranges<Tensor>,
               public detail::Reductions<Tensor>,
               public detail::Sorting<Tensor> {
public:
    Tensor() noexcept = default;
    Tensor(const Tensor &other) : Object(other.defined() ? share(other.handle()) : 0) {}
    Tensor(Tensor &&) noexcept = default;
    Tensor &operator=(Tensor other) noexcept
    {
        Object::operator=(std::move(other));
        return *this;
    }
    ~Tensor() = default;

    // Creation.

    /// Copies elements of any dtype from the host.
    static Tensor from_bytes(const void *data, std::size_t bytes, DType dtype, const Shape &shape,
                             Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_from_host, data, bytes, static_cast<std::int32_t>(dtype), shape.data(),
                                    shape.size(), device.ordinal());
    }

    /// Makes a tensor of the CPU of a pinned buffer's elements, without a copy. The buffer has no memory afterwards.
    template <class T>
    static Tensor from_pinned(const PinnedBuffer<T> &pinned, const Shape &shape)
    {
        return detail::make<Tensor>(sv_tensor_from_pinned, pinned.handle(), static_cast<std::int32_t>(dtype_of<T>),
                                    shape.data(), shape.size());
    }

    /// Makes a tensor without dimensions.
    template <class T>
    static Tensor scalar(T value, Device device = Device::cpu())
    {
        return from_bytes(&value, sizeof value, dtype_of<T>, Shape(), device);
    }

    static Tensor zeros(const Shape &shape, DType dtype, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_zeros, static_cast<std::int32_t>(dtype), shape.data(), shape.size(),
                                    device.ordinal());
    }
    static Tensor ones(const Shape &shape, DType dtype, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_ones, static_cast<std::int32_t>(dtype), shape.data(), shape.size(),
                                    device.ordinal());
    }
    static Tensor full(const Shape &shape, Number number, DType dtype, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_full, &number.raw(), static_cast<std::int32_t>(dtype), shape.data(),
                                    shape.size(), device.ordinal());
    }
    /// Makes a tensor whose elements have any values until they are written.
    static Tensor empty(const Shape &shape, DType dtype, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_empty, static_cast<std::int32_t>(dtype), shape.data(), shape.size(),
                                    device.ordinal());
    }
    Tensor full_like(Number number) const { return made(sv_tensor_full_like, &number.raw()); }
    Tensor zeros_like() const { return full_like(0); }
    Tensor ones_like() const { return full_like(1); }
    /// Makes the numbers `start`, `start + step` and so on before `end`.
    static Tensor arange(Number start, Number end, Number step, DType dtype, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_arange, &start.raw(), &end.raw(), &step.raw(),
                                    static_cast<std::int32_t>(dtype), device.ordinal());
    }
    /// Makes `count` evenly spaced numbers from `start` to `end`, both included.
    static Tensor linspace(double start, double end, std::size_t count, DType dtype, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_linspace, start, end, count, static_cast<std::int32_t>(dtype),
                                    device.ordinal());
    }
    /// Makes `count` powers of `base` with evenly spaced exponents.
    static Tensor logspace(double start, double end, std::size_t count, double base, DType dtype,
                           Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_logspace, start, end, count, base, static_cast<std::int32_t>(dtype),
                                    device.ordinal());
    }
    static Tensor eye(std::size_t rows, std::size_t columns, DType dtype, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_eye, rows, columns, static_cast<std::int32_t>(dtype), device.ordinal());
    }

    template <class T>
    static Tensor zeros(const Shape &shape, Device device = Device::cpu())
    {
        return zeros(shape, dtype_of<T>, device);
    }
    template <class T>
    static Tensor ones(const Shape &shape, Device device = Device::cpu())
    {
        return ones(shape, dtype_of<T>, device);
    }
    template <class T, class = std::enable_if_t<detail::is_element<T>>>
    static Tensor full(const Shape &shape, T value, Device device = Device::cpu())
    {
        return full(shape, Number(value), dtype_of<T>, device);
    }
    template <class T, class = std::enable_if_t<detail::is_element<T>>>
    static Tensor arange(T start, T end, T step = T(1), Device device = Device::cpu())
    {
        return arange(Number(start), Number(end), Number(step), dtype_of<T>, device);
    }
    template <class T>
    static Tensor linspace(double start, double end, std::size_t count, Device device = Device::cpu())
    {
        return linspace(start, end, count, dtype_of<T>, device);
    }
    template <class T>
    static Tensor eye(std::size_t size, Device device = Device::cpu())
    {
        return eye(size, size, dtype_of<T>, device);
    }

    static Tensor read_npy(const std::string &path, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_read_npy, path.c_str(), device.ordinal());
    }
    static Tensor read_npz(const std::string &path, const std::string &name, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_read_npz, path.c_str(), name.c_str(), device.ordinal());
    }
    static Tensor read_safetensors(const std::string &path, const std::string &name, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_tensor_read_safetensors, path.c_str(), name.c_str(), device.ordinal());
    }
    void write_npy(const std::string &path) const { detail::call(sv_tensor_write_npy, handle(), path.c_str()); }

    /// Takes over the array of a `DLManagedTensorVersioned *` without a copy. If this fails, the struct stays the caller's.
    static Tensor from_dlpack(void *managed) { return detail::make<Tensor>(sv_tensor_from_dlpack, managed); }

    /// Exports the elements as a `DLManagedTensorVersioned *`, whose deleter the consumer calls once.
    void *to_dlpack(std::uint32_t flags = 0, std::int64_t stream = SV_DLPACK_NO_STREAM) const
    {
        return detail::get<void *>(sv_tensor_to_dlpack, handle(), flags, stream);
    }

    // Properties.

    DType dtype() const { return static_cast<DType>(detail::get<std::int32_t>(sv_tensor_dtype, handle())); }
    Device device() const { return Device::from_ordinal(detail::get<std::int32_t>(sv_tensor_device, handle())); }
    std::size_t rank() const { return detail::get<std::size_t>(sv_tensor_rank, handle()); }
    /// Returns the number of elements.
    std::size_t count() const
    {
        return static_cast<std::size_t>(detail::get<std::uint64_t>(sv_tensor_count, handle()));
    }
    Shape shape() const { return dimensions(sv_tensor_shape); }
    /// Returns the distances of neighbours along each axis, in elements.
    Shape strides() const { return dimensions(sv_tensor_strides); }
    /// Returns the size of an axis; a negative one counts from the last.
    std::int64_t size(std::int64_t axis) const
    {
        const Shape sizes = shape();
        const auto rank = static_cast<std::int64_t>(sizes.size());
        if (axis < -rank || axis >= rank) {
            detail::fail(Error(SV_ERROR_INDEX_OUT_OF_RANGE, "size: found axis " + std::to_string(axis) +
                                                                " of a tensor with " + std::to_string(rank)));
            return 0;
        }
        return sizes[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
    }
    bool is_contiguous() const { return detail::get<std::int32_t>(sv_tensor_is_contiguous, handle()) != 0; }

    // Elements on the host.

    /// Waits for the tensor, and returns its elements in row-major order. `T` is the type of the dtype; cast() gives others.
    template <class T>
    std::vector<T> to_vector() const
    {
        using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
        if (!check_dtype("to_vector", dtype_of<T>))
            return {};
        std::vector<Stored> elements(count());
        detail::call(sv_tensor_to_host, handle(), static_cast<void *>(elements.data()),
                     elements.size() * sizeof(Stored));
        if constexpr (std::is_same_v<T, bool>)
            return std::vector<bool>(elements.begin(), elements.end());
        else
            return elements;
    }

    /// Returns the elements of any dtype as bytes.
    std::vector<std::uint8_t> to_bytes() const
    {
        std::vector<std::uint8_t> bytes(count() * size_of(dtype()));
        detail::call(sv_tensor_to_host, handle(), static_cast<void *>(bytes.data()), bytes.size());
        return bytes;
    }

    /// Returns the only element.
    template <class T>
    T item() const
    {
        if (const std::size_t elements = count(); elements != 1 && !detail::has_failed())
            detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, "item: found a tensor of " + std::to_string(elements) +
                                                             " elements, wanted 1"));
        if (!check_dtype("item", dtype_of<T>))
            return T();
        T element{};
        detail::call(sv_tensor_to_host, handle(), static_cast<void *>(&element), sizeof element);
        return element;
    }

    /// Returns the only element of any dtype as the number of selvedge.h, whose `real` is set for every kind.
    sv_number item() const { return detail::get<sv_number>(sv_tensor_item, handle()); }

    /// Returns the elements as text, as NumPy writes them.
    std::string text() const { return detail::text(sv_tensor_text, handle()); }
    friend std::ostream &operator<<(std::ostream &stream, const Tensor &tensor)
    {
        return tensor.defined() ? stream << tensor.text() : stream << "(empty)";
    }

    // Conversions and copies.

    Tensor cast(DType dtype) const { return made(sv_tensor_cast, static_cast<std::int32_t>(dtype)); }
    template <class T>
    Tensor cast() const
    {
        return cast(dtype_of<T>);
    }
    Tensor to(Device device) const { return made(sv_tensor_to_device, device.ordinal()); }
    Tensor cpu() const { return to(Device::cpu()); }
    Tensor cuda(std::int32_t ordinal = 0) const { return to(Device::cuda(ordinal)); }
    /// Copies the elements to memory of their own.
    Tensor clone() const { return made(sv_tensor_copy); }
    Tensor contiguous() const { return made(sv_tensor_contiguous); }

    /// Replaces the elements by those of a tensor, which is broadcast and cast, or by a number.
    Tensor &assign(const Operand &value)
    {
        detail::call(sv_tensor_assign, handle(), &value.raw());
        return *this;
    }
    /// Replaces the elements at some positions.
    Tensor &assign(const std::vector<Slice> &slices, const Operand &value)
    {
        const std::vector<sv_slice> raw = raw_slices(slices);
        detail::call(sv_tensor_assign_slice, handle(), raw.data(), raw.size(), &value.raw());
        return *this;
    }

    // Views.

    Tensor reshape(const Shape &shape) const { return made(sv_tensor_reshape, shape.data(), shape.size()); }
    Tensor flatten(std::int64_t first = 0, std::int64_t last = -1) const
    {
        return made(sv_tensor_flatten, first, last);
    }
    Tensor ravel() const { return made(sv_tensor_ravel); }
    Tensor unflatten(std::int64_t axis, const Shape &sizes) const
    {
        return made(sv_tensor_unflatten, axis, sizes.data(), sizes.size());
    }
    /// Returns the same bytes as elements of another dtype.
    Tensor view_dtype(DType dtype) const { return made(sv_tensor_view_dtype, static_cast<std::int32_t>(dtype)); }
    Tensor view_as_real() const { return made(sv_tensor_view_as_real); }
    Tensor view_as_complex() const { return made(sv_tensor_view_as_complex); }
    Tensor transpose(std::int64_t first = -2, std::int64_t second = -1) const
    {
        return made(sv_tensor_transpose, first, second);
    }
    Tensor permute(const Shape &axes) const { return made(sv_tensor_permute, axes.data(), axes.size()); }
    Tensor movedim(std::int64_t from, std::int64_t to) const
    {
        return made(sv_tensor_movedim, &from, &to, std::size_t{1});
    }
    Tensor expand(const Shape &shape) const { return made(sv_tensor_expand, shape.data(), shape.size()); }
    Tensor squeeze() const { return made(sv_tensor_squeeze_all); }
    Tensor squeeze(std::int64_t axis) const { return made(sv_tensor_squeeze, axis); }
    Tensor unsqueeze(std::int64_t axis) const { return made(sv_tensor_unsqueeze, axis); }
    Tensor flip(const Shape &axes) const { return made(sv_tensor_flip, axes.data(), axes.size()); }
    Tensor diagonal(std::int64_t offset = 0, std::int64_t first = 0, std::int64_t second = 1) const
    {
        return made(sv_tensor_diagonal, offset, first, second);
    }
    Tensor unfold(std::int64_t axis, std::size_t size, std::size_t step) const
    {
        return made(sv_tensor_unfold, axis, size, step);
    }
    Tensor slice(std::int64_t axis, std::int64_t start, std::int64_t stop = open_end, std::int64_t step = 1) const
    {
        const sv_slice slice{axis, start, stop, step};
        return made(sv_tensor_slice, &slice, std::size_t{1});
    }
    Tensor slice(const std::vector<Slice> &slices) const
    {
        const std::vector<sv_slice> raw = raw_slices(slices);
        return made(sv_tensor_slice, raw.data(), raw.size());
    }
    Tensor select(std::int64_t axis, std::int64_t index) const { return made(sv_tensor_select, axis, index); }
    Tensor narrow(std::int64_t axis, std::size_t start, std::size_t length) const
    {
        return made(sv_tensor_narrow, axis, start, length);
    }
    /// Returns views of parts along an axis, of these sizes.
    std::vector<Tensor> split(const Shape &sizes, std::int64_t axis = 0) const
    {
        std::vector<sv_tensor> handles(sizes.size());
        detail::call(sv_tensor_split, handle(), sizes.data(), sizes.size(), axis, handles.data());
        std::vector<Tensor> parts;
        for (sv_tensor part : handles)
            parts.push_back(adopt(part));
        return parts;
    }

    // Shapes with new elements.

    Tensor roll(const Shape &shifts, const Shape &axes) const
    {
        if (shifts.size() != axes.size()) {
            detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, "roll: found " + std::to_string(shifts.size()) +
                                                             " shifts and " + std::to_string(axes.size()) + " axes"));
            return {};
        }
        return made(sv_tensor_roll, shifts.data(), axes.data(), axes.size());
    }
    Tensor repeat(const Shape &times) const { return made(sv_tensor_repeat, times.data(), times.size()); }
    Tensor repeat_interleave(std::size_t times, std::int64_t axis) const
    {
        return made(sv_tensor_repeat_interleave, times, axis);
    }
    /// Pads the first axes by the elements of `{before, behind, before, behind, ...}`.
    Tensor pad(const Shape &widths, Number number = 0, Padding mode = Padding::Constant) const
    {
        if (widths.size() % 2 != 0) {
            detail::fail(Error(SV_ERROR_INVALID_ARGUMENT, "pad: found " + std::to_string(widths.size()) +
                                                              " widths, wanted two for each axis"));
            return {};
        }
        return made(sv_tensor_pad, widths.data(), widths.size() / 2, static_cast<std::int32_t>(mode), &number.raw());
    }
    Tensor tril(std::int64_t diagonal = 0) const { return made(sv_tensor_tril, diagonal); }
    Tensor triu(std::int64_t diagonal = 0) const { return made(sv_tensor_triu, diagonal); }

    // Reads and writes by index.

    Tensor masked_fill(const Tensor &mask, const Operand &value) const
    {
        return made(sv_tensor_masked_fill, mask.handle(), &value.raw());
    }
    Tensor &masked_fill_in_place(const Tensor &mask, const Operand &value)
    {
        return changed(sv_tensor_masked_fill_in_place, mask.handle(), &value.raw());
    }
    Tensor index_select(std::int64_t axis, const Tensor &index) const
    {
        return made(sv_tensor_index_select, axis, index.handle());
    }
    Tensor gather(std::int64_t axis, const Tensor &index) const
    {
        return made(sv_tensor_gather, axis, index.handle());
    }
    Tensor take_along_axis(std::int64_t axis, const Tensor &index) const
    {
        return made(sv_tensor_take_along_axis, axis, index.handle());
    }
    Tensor take(const Tensor &index) const { return made(sv_tensor_take, index.handle()); }
    Tensor put(const Tensor &index, const Tensor &elements) const
    {
        return made(sv_tensor_put, index.handle(), elements.handle());
    }
    Tensor &put_in_place(const Tensor &index, const Tensor &elements)
    {
        return changed(sv_tensor_put_in_place, index.handle(), elements.handle());
    }
    Tensor scatter(std::int64_t axis, const Tensor &index, const Tensor &elements) const
    {
        return made(sv_tensor_scatter, axis, index.handle(), elements.handle());
    }
    Tensor &scatter_in_place(std::int64_t axis, const Tensor &index, const Tensor &elements)
    {
        return changed(sv_tensor_scatter_in_place, axis, index.handle(), elements.handle());
    }
    Tensor index_copy(std::int64_t axis, const Tensor &index, const Tensor &elements) const
    {
        return made(sv_tensor_index_copy, axis, index.handle(), elements.handle());
    }
    Tensor &index_copy_in_place(std::int64_t axis, const Tensor &index, const Tensor &elements)
    {
        return changed(sv_tensor_index_copy_in_place, axis, index.handle(), elements.handle());
    }
    Tensor one_hot(std::size_t classes) const { return made(sv_tensor_one_hot, classes); }

    // Matrix products.

    /// Computes the product of matrices, vectors, and batches of them, which are broadcast.
    Tensor matmul(const Tensor &right, const MatmulOptions &options = {}) const
    {
        const sv_matmul_options raw = options.raw();
        return made(sv_matmul, right.handle(), &raw);
    }

    /// Computes a product, and also the values that its activation was applied to.
    std::pair<Tensor, Tensor> matmul_with_aux(const Tensor &right, const MatmulOptions &options) const
    {
        const sv_matmul_options raw = options.raw();
        sv_tensor result = nullptr, aux = nullptr;
        detail::call(sv_matmul_with_aux, handle(), right.handle(), &raw, &result, &aux);
        return {adopt(result), adopt(aux)};
    }

    /// Replaces the elements by `left` times `right` plus `beta` times themselves.
    Tensor &add_matmul_in_place(const Tensor &left, const Tensor &right, Number beta = 1,
                                const MatmulOptions &options = {})
    {
        const sv_matmul_options raw = options.raw();
        return changed(sv_matmul_add_to, &beta.raw(), left.handle(), right.handle(), &raw);
    }

private:
    friend class detail::Ranges<Tensor>;

    explicit Tensor(sv_tensor handle) noexcept : Object(handle) {}

    // A view of all elements is a tensor of its own, which a write to the other one does not change.
    static sv_tensor share(sv_tensor tensor)
    {
        return detail::get<sv_tensor>(sv_tensor_slice, tensor, nullptr, std::size_t{0});
    }

    template <class Function, class... Arguments>
    Tensor made(Function function, Arguments... arguments) const
    {
        return detail::make<Tensor>(function, handle(), arguments...);
    }

    template <class Function, class... Arguments>
    Tensor &changed(Function function, Arguments... arguments)
    {
        detail::call(function, handle(), arguments...);
        return *this;
    }

    template <class Function>
    Shape dimensions(Function function) const
    {
        std::vector<std::int64_t> sizes(rank());
        detail::call(function, handle(), sizes.data(), sizes.size());
        return sizes;
    }

    bool check_dtype(const char *call, DType wanted) const
    {
        const DType found = dtype();
        if (found != wanted && !detail::has_failed())
            detail::fail(Error(SV_ERROR_DTYPE_MISMATCH, std::string(call) + ": found a tensor of " + name(found) +
                                                            ", wanted " + name(wanted) + ": cast it first"));
        return !detail::has_failed();
    }

    static std::vector<sv_slice> raw_slices(const std::vector<Slice> &slices)
    {
        std::vector<sv_slice> raw;
        for (const Slice &slice : slices)
            raw.push_back({slice.axis, slice.start, slice.stop, slice.step});
        return raw;
    }
};

inline Operand::Operand(const Tensor &tensor) : operand_{tensor.handle(), {}}
{
    // 0 is no tensor in selvedge.h, but the mark of a number. The call that reads the operand refuses an empty tensor.
    if (!tensor.defined())
        operand_.tensor = SV_NO_TENSOR;
}

inline Index::Index(const Tensor &tensor) : index_{SV_INDEX_TENSOR, 0, tensor.handle(), 0, 0, 1} {}

namespace detail {

/// The handle of an optional tensor: 0 for a null pointer, and one that is refused for an empty tensor.
inline sv_tensor handle_of(const Tensor *tensor)
{
    return tensor == nullptr ? nullptr : tensor->defined() ? tensor->handle() : SV_NO_TENSOR;
}

} // namespace detail

inline sv_matmul_options MatmulOptions::raw() const
{
    sv_matmul_options raw{};
    raw.size = sizeof raw;
    raw.bias = detail::handle_of(bias);
    raw.residual = detail::handle_of(residual);
    raw.activation = activation;
    raw.result_dtype = static_cast<std::int32_t>(result_dtype);
    raw.conjugate_left = conjugate_left;
    raw.conjugate_right = conjugate_right;
    raw.has_alpha = alpha.raw().kind != SV_NUMBER_INTEGER || alpha.raw().integer != 1;
    raw.alpha = alpha.raw();
    return raw;
}

SELVEDGE_END

#endif
