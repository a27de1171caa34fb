// Spiking networks in the memory of a CUDA device that run without a simulation.

#ifndef SELVEDGE_DEVICE_NETWORK_HPP
#define SELVEDGE_DEVICE_NETWORK_HPP

#include "burst_network.hpp"
#include "device.hpp"

SELVEDGE_BEGIN

namespace burst {

/// A network in the memory of a CUDA device, whose spikes stay there while it runs. A copy is the same network.
class DeviceNetwork : public Object<DeviceNetwork, sv_device_network> {
public:
    DeviceNetwork() noexcept = default;

    explicit DeviceNetwork(const Network &network, Device device = Device::cuda(), std::uint32_t seed = 0)
        : Object(detail::get<sv_device_network>(sv_device_network_create, network.handle(), device.ordinal(), seed))
    {
    }

    /// Generates network G on a device, with its pattern.
    static DeviceNetwork g(std::uint32_t neurons, std::uint32_t degree, Device device = Device::cuda(),
                           std::uint32_t seed = 0)
    {
        return detail::make<DeviceNetwork>(sv_device_network_g, neurons, degree, device.ordinal(), seed);
    }
    /// Generates network S on a device, with its pattern.
    static DeviceNetwork s(std::uint32_t neurons, std::uint32_t degree, std::uint32_t every,
                           Device device = Device::cuda(), std::uint32_t seed = 0)
    {
        return detail::make<DeviceNetwork>(sv_device_network_s, neurons, degree, every, device.ordinal(), seed);
    }

    /// Stages input for the next burst.
    void inject(const Spikes &input) { with(sv_device_network_inject, input); }
    /// Sets the input of every burst, which stays on the device.
    void set_steady_input(const Spikes &input) { with(sv_device_network_set_steady_input, input); }
    /// Sets the input that the device makes itself in every burst. A modulus of 0 ends it.
    void set_pattern(const Pattern &pattern)
    {
        detail::call(sv_device_network_set_pattern, handle(), pattern.base, pattern.modulus, pattern.potential);
    }
    /// Lets time pass for every neuron in every burst.
    void set_dense(bool dense) { detail::call(sv_device_network_set_dense, handle(), std::int32_t{dense}); }

    /// Runs bursts back to back, and returns the number of spikes of each and the sums of their counters.
    std::pair<std::vector<std::uint64_t>, sv_burst_counters> run(std::size_t bursts = 1)
    {
        std::pair<std::vector<std::uint64_t>, sv_burst_counters> counted(bursts, sv_burst_counters{});
        counted.second.size = sizeof counted.second;
        detail::call(sv_device_network_run, handle(), counted.first.data(), bursts, &counted.second);
        return counted;
    }

    /// Returns the number of bursts done, and the neurons that fired in the last one.
    std::pair<std::uint64_t, Spikes> fired() const
    {
        std::pair<std::uint64_t, Spikes> fired;
        Spikes &spikes = fired.second;
        detail::grown(spikes.ids, [&](std::size_t capacity, std::size_t *count) {
            spikes.potentials.resize(capacity);
            detail::call(sv_device_network_fired, handle(), &fired.first, spikes.ids.data(), spikes.potentials.data(),
                         capacity, count);
        });
        spikes.potentials.resize(spikes.ids.size());
        return fired;
    }

    State state(std::size_t neurons) const
    {
        State state(neurons);
        detail::call(sv_device_network_state, handle(), state.potentials.data(), state.refractory_left.data(),
                     state.fire_counts.data(), neurons);
        return state;
    }
    /// Returns the newest state that the host has, also after the device was lost, and the number of bursts before it.
    std::pair<std::uint64_t, State> last_state(std::size_t neurons) const
    {
        std::pair<std::uint64_t, State> last(0, State(neurons));
        detail::call(sv_device_network_last_state, handle(), &last.first, last.second.potentials.data(),
                     last.second.refractory_left.data(), last.second.fire_counts.data(), neurons);
        return last;
    }
    /// Replaces the state, as Simulation::set_state() does.
    void set_state(std::uint64_t burst, std::uint32_t seed, const State &state, const Spikes &fired = {})
    {
        const sv_network_state raw = state.raw(burst, seed, fired);
        if (raw.size != 0)
            detail::call(sv_device_network_set_state, handle(), &raw);
    }
    std::uint64_t state_hash() const { return detail::get<std::uint64_t>(sv_device_network_state_hash, handle()); }

    /// Returns weight and PSP of every synapse, as Simulation::weights() does.
    std::vector<std::uint16_t> weights(std::size_t synapses) const
    {
        std::vector<std::uint16_t> weights(synapses);
        detail::call(sv_device_network_weights, handle(), weights.data(), weights.size());
        return weights;
    }
    /// Changes the weights of synapses, by their places in Network::rows().
    void set_weights(const std::vector<std::uint64_t> &synapses, const std::vector<std::uint8_t> &weights)
    {
        if (detail::have_equal_lengths("set_weights", synapses.size(), weights.size()))
            detail::call(sv_device_network_set_weights, handle(), synapses.data(), weights.data(), synapses.size());
    }

    /// Returns the bytes of device memory that the network takes.
    std::uint64_t bytes() const { return detail::get<std::uint64_t>(sv_device_network_bytes, handle()); }

private:
    template <class Function>
    void with(Function function, const Spikes &input)
    {
        if (detail::have_equal_lengths("input", input.ids.size(), input.potentials.size()))
            detail::call(function, handle(), input.ids.data(), input.potentials.data(), input.ids.size());
    }
};

} // namespace burst

SELVEDGE_END

#endif
