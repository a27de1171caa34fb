// Random tensors.

#ifndef SELVEDGE_RANDOM_HPP
#define SELVEDGE_RANDOM_HPP

#include "tensor.hpp"

SELVEDGE_BEGIN

/// Starts the stream of a seed for draws on a device by a default-constructed Generator.
inline void manual_seed(std::uint64_t seed, Device device = Device::cpu())
{
    detail::call(sv_manual_seed, device.ordinal(), seed);
}

/// A stream of random numbers, the same on every device. A default-constructed one is that of the device of each draw.
class Generator : public Object<Generator, sv_generator> {
public:
    Generator() noexcept = default;
    explicit Generator(std::uint64_t seed) : Object(detail::get<sv_generator>(sv_generator_create, seed)) {}

    /// Returns the seed and the place in its stream.
    std::pair<std::uint64_t, std::uint64_t> state() const
    {
        std::pair<std::uint64_t, std::uint64_t> state;
        detail::call(sv_generator_state, handle(), &state.first, &state.second);
        return state;
    }
    void set_state(std::uint64_t seed, std::uint64_t offset)
    {
        detail::call(sv_generator_set_state, handle(), seed, offset);
    }

    /// Draws numbers from 0 to below 1.
    Tensor rand(const Shape &shape, DType dtype = DType::F32, Device device = Device::cpu())
    {
        return drawn(sv_rand, shape, dtype, device);
    }
    /// Draws normally distributed numbers of mean 0 and variance 1.
    Tensor randn(const Shape &shape, DType dtype = DType::F32, Device device = Device::cpu())
    {
        return drawn(sv_randn, shape, dtype, device);
    }
    /// Draws numbers in the shape and dtype of a tensor, on its device.
    Tensor rand_like(const Tensor &tensor)
    {
        return detail::make<Tensor>(sv_rand_like, handle(), tensor.handle());
    }
    Tensor randn_like(const Tensor &tensor)
    {
        return detail::make<Tensor>(sv_randn_like, handle(), tensor.handle());
    }
    /// Draws numbers from `low` to below `high`.
    Tensor uniform(const Operand &low, const Operand &high, const Shape &shape, DType dtype = DType::F32,
                   Device device = Device::cpu())
    {
        return drawn(sv_uniform, shape, dtype, device, &low.raw(), &high.raw());
    }
    Tensor normal(const Operand &mean, const Operand &deviation, const Shape &shape, DType dtype = DType::F32,
                  Device device = Device::cpu())
    {
        return drawn(sv_normal, shape, dtype, device, &mean.raw(), &deviation.raw());
    }
    /// Draws ones with a probability, and zeros.
    Tensor bernoulli(const Operand &probability, const Shape &shape, DType dtype = DType::F32,
                     Device device = Device::cpu())
    {
        return drawn(sv_bernoulli, shape, dtype, device, &probability.raw());
    }
    /// Draws integers from `low` to below `high`.
    Tensor randint(std::int64_t low, std::int64_t high, const Shape &shape, DType dtype = DType::I64,
                   Device device = Device::cpu())
    {
        return drawn(sv_randint, shape, dtype, device, low, high);
    }
    /// Draws the integers from 0 to below `count` in a random order.
    Tensor permutation(std::size_t count, Device device = Device::cpu())
    {
        return detail::make<Tensor>(sv_permutation, handle(), count, device.ordinal());
    }
    /// Draws `count` positions by the weights of the last axis.
    Tensor multinomial(const Tensor &weights, std::size_t count, bool replacement = false)
    {
        return detail::make<Tensor>(sv_multinomial, handle(), weights.handle(), count, std::int32_t{replacement});
    }

private:
    template <class Function, class... Arguments>
    Tensor drawn(Function function, const Shape &shape, DType dtype, Device device, Arguments... arguments)
    {
        return detail::make<Tensor>(function, handle(), arguments..., static_cast<std::int32_t>(dtype), shape.data(),
                                    shape.size(), device.ordinal());
    }
};

SELVEDGE_END

#endif
