// Tensors of random numbers, drawn from the generator of a device.

#ifndef SELVEDGE_RANDOM_TENSORS_HPP
#define SELVEDGE_RANDOM_TENSORS_HPP

#include "device.hpp"
#include "elementwise.hpp"

SELVEDGE_BEGIN

namespace detail {

/// Functions of Tensor that draw from a device's own generator, whose stream manual_seed() starts. A Generator draws from a stream
/// of its own.
template <class Derived>
class RandomTensors {
public:
    /// Draws numbers from 0 to below 1.
    static Derived rand(const Shape &shape, DType dtype = DType::F32, Device device = Device::cpu())
    {
        return drawn(sv_rand, shape, dtype, device);
    }
    /// Draws normally distributed numbers of mean 0 and variance 1.
    static Derived randn(const Shape &shape, DType dtype = DType::F32, Device device = Device::cpu())
    {
        return drawn(sv_randn, shape, dtype, device);
    }
    static Derived rand(const Shape &shape, Device device) { return rand(shape, DType::F32, device); }
    static Derived randn(const Shape &shape, Device device) { return randn(shape, DType::F32, device); }

    /// Draws integers from `low` to below `high`.
    static Derived randint(std::int64_t low, std::int64_t high, const Shape &shape, DType dtype = DType::I64,
                           Device device = Device::cpu())
    {
        return drawn(sv_randint, shape, dtype, device, low, high);
    }
    static Derived randint(std::int64_t low, std::int64_t high, const Shape &shape, Device device)
    {
        return randint(low, high, shape, DType::I64, device);
    }
    /// Draws the integers from 0 to below `count` in a random order.
    static Derived permutation(std::size_t count, Device device = Device::cpu())
    {
        return make<Derived>(sv_permutation, sv_generator{}, count, device.ordinal());
    }
    /// Draws numbers from 0 to below 1 in the shape and dtype of this tensor, on its device.
    Derived rand_like() const
    {
        return make<Derived>(sv_rand_like, sv_generator{}, static_cast<const Derived &>(*this).handle());
    }
    /// Draws normally distributed numbers in the shape and dtype of this tensor, on its device.
    Derived randn_like() const
    {
        return make<Derived>(sv_randn_like, sv_generator{}, static_cast<const Derived &>(*this).handle());
    }

private:
    template <class Function, class... Arguments>
    static Derived drawn(Function function, const Shape &shape, DType dtype, Device device, Arguments... arguments)
    {
        return make<Derived>(function, sv_generator{}, arguments..., static_cast<std::int32_t>(dtype), shape.data(),
                             shape.size(), device.ordinal());
    }
};

} // namespace detail

SELVEDGE_END

#endif
