// Functions of tensors: tensors of lists, joins, grids, comparison, `.npz` and safetensors files.

#ifndef SELVEDGE_FUNCTIONS_HPP
#define SELVEDGE_FUNCTIONS_HPP

#include <algorithm>

#include "tensor.hpp"

SELVEDGE_BEGIN

namespace detail {

template <class T>
Tensor from_rows(std::initializer_list<T> elements, const Shape &shape, Device device)
{
    if constexpr (std::is_same_v<T, bool>)
        return Tensor::from(std::vector<bool>(elements), shape, device);
    else
        return Tensor::from(Elements<const T>(elements.begin(), elements.size()), shape, device);
}

} // namespace detail

/// Makes a tensor of a list, such as `tensor({1.0f, 2.0f})`. The type of the numbers decides on the dtype.
template <class T>
Tensor tensor(std::initializer_list<T> elements, Device device = Device::cpu())
{
    return detail::from_rows(elements, Shape(elements.size()), device);
}

/// Makes a matrix of a list of rows, or a tensor of three dimensions of a list of such lists.
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, Device device = Device::cpu())
{
    std::vector<T> elements;
    const std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
    for (const std::initializer_list<T> &row : rows) {
        if (row.size() != columns) {
            detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, "tensor: found a row of " + std::to_string(row.size()) +
                                                             " elements, the first one has " +
                                                             std::to_string(columns)));
            return {};
        }
        elements.insert(elements.end(), row.begin(), row.end());
    }
    return Tensor::from(elements, Shape(rows.size(), columns), device);
}

template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks,
              Device device = Device::cpu());

/// Joins tensors along an axis.
inline Tensor cat(const std::vector<Tensor> &tensors, std::int64_t axis = 0)
{
    const std::vector<sv_tensor> handles = detail::handles(tensors);
    return detail::make<Tensor>(sv_tensor_cat, handles.data(), handles.size(), axis);
}

/// Joins tensors of one shape along a new axis.
inline Tensor stack(const std::vector<Tensor> &tensors, std::int64_t axis = 0)
{
    const std::vector<sv_tensor> handles = detail::handles(tensors);
    return detail::make<Tensor>(sv_tensor_stack, handles.data(), handles.size(), axis);
}

template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks, Device device)
{
    std::vector<Tensor> matrices;
    for (const auto &block : blocks)
        matrices.push_back(tensor(block));
    return stack(matrices).to(device);
}

/// Returns elements of `x` for true elements of the mask, and of `y` for the others.
inline Tensor choose(const Tensor &mask, const Operand &x, const Operand &y) { return mask.choose(x, y); }

inline Tensor matmul(const Tensor &left, const Tensor &right, const MatmulOptions &options = {})
{
    return left.matmul(right, options);
}

/// Returns whether two tensors are equal up to `rtol` times the second one plus `atol`.
inline bool allclose(const Tensor &left, const Tensor &right, double rtol = 1e-5, double atol = 1e-8)
{
    return detail::get<std::int32_t>(sv_tensor_allclose, left.handle(), right.handle(), rtol, atol) != 0;
}

/// Returns the coordinates of a grid: a view for each vector, in the shape of all their sizes.
inline std::vector<Tensor> meshgrid(const std::vector<Tensor> &vectors)
{
    const std::vector<sv_tensor> handles = detail::handles(vectors);
    std::vector<sv_tensor> results(handles.size());
    detail::call(sv_tensor_meshgrid, handles.data(), handles.size(), results.data());
    std::vector<Tensor> grid;
    for (sv_tensor result : results)
        grid.push_back(Tensor::adopt(result));
    return grid;
}

/// Tensors with their names, in the order of a file.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

namespace detail {

template <class Function, class... Arguments>
void write_named(Function function, const std::string &path, const NamedTensors &tensors, Arguments... arguments)
{
    std::vector<const char *> names;
    std::vector<sv_tensor> handles;
    for (const auto &[name, tensor] : tensors) {
        names.push_back(name.c_str());
        handles.push_back(tensor.handle());
    }
    call(function, path.c_str(), names.data(), handles.data(), names.size(), arguments...);
}

} // namespace detail

/// Writes tensors with their names to an `.npz` file.
inline void write_npz(const std::string &path, const NamedTensors &arrays, bool compress = false)
{
    detail::write_named(sv_tensor_write_npz, path, arrays, std::int32_t{compress});
}

/// Writes tensors with their names to a safetensors file.
inline void write_safetensors(const std::string &path, const NamedTensors &tensors)
{
    detail::write_named(sv_tensor_write_safetensors, path, tensors);
}

/// Reads all tensors of a safetensors file.
inline NamedTensors read_safetensors(const std::string &path, Device device = Device::cpu())
{
    const std::string names = detail::text(sv_safetensors_names, path.c_str());
    NamedTensors tensors;
    for (std::size_t start = 0; start < names.size();) {
        const std::size_t end = std::min(names.find('\n', start), names.size());
        const std::string name = names.substr(start, end - start);
        tensors.emplace_back(name, Tensor::read_safetensors(path, name, device));
        start = end + 1;
    }
    return tensors;
}

SELVEDGE_END

#endif
