// Networks of spiking neurons, from arrays and generated, and their states.

#ifndef SELVEDGE_BURST_NETWORK_HPP
#define SELVEDGE_BURST_NETWORK_HPP

#include "object.hpp"

SELVEDGE_BEGIN

namespace detail {

/// Reads a list whose length the function gives. Another thread may lengthen it between two calls.
template <class T, class Read>
void grown(std::vector<T> &elements, Read read)
{
    std::size_t count = 0;
    read(0, &count);
    while (count > elements.size()) {
        elements.resize(count);
        read(elements.size(), &count);
    }
    elements.resize(count);
}

} // namespace detail

namespace burst {

/// Neurons, and a potential for each.
struct Spikes {
    std::vector<std::uint32_t> ids;
    std::vector<float> potentials;
};

/// The spikes of a burst by area, with x, y and z of each neuron.
struct FireQueue {
    std::vector<std::uint32_t> areas, ids;
    std::vector<float> potentials;
    std::vector<std::uint32_t> positions;
};

/// Input of every burst that a device makes itself, as `sv_device_network_set_pattern` describes it.
struct Pattern {
    std::uint32_t base = 0, modulus = 0;
    float potential = 0;
};

/// Area, kind and x, y and z of every neuron.
struct Places {
    std::vector<std::uint32_t> areas;
    std::vector<std::uint8_t> kinds;
    std::vector<std::uint32_t> positions;
};

/// An area of a network.
struct Area {
    std::string name;
    /// Divides each contribution of a neuron by its number of outgoing synapses.
    bool shares = false;
    /// Replaces the PSP of each synapse by the potential at which its source fired.
    bool potential_driven = false;
};

/// The arrays of a network, as `sv_network_arrays` describes them. An empty array of neurons means defaults.
struct Arrays {
    std::size_t neurons = 0;
    std::vector<float> threshold, threshold_max, leak, rest;
    std::vector<std::uint16_t> refractory;
    std::vector<float> excitability;
    std::vector<std::uint16_t> fire_limit, snooze;
    std::vector<std::uint8_t> accumulates, neuron_kind;
    std::vector<std::uint32_t> area;
    /// x, y and z of each neuron.
    std::vector<std::uint32_t> position;
    std::vector<Area> areas;
    /// The synapses, in any order.
    std::vector<std::uint32_t> source, target;
    std::vector<std::uint8_t> weight, psp, synapse_kind;

    /// Fails unless an array has this many elements.
    static bool has_length(const char *name, std::size_t found, std::size_t wanted)
    {
        if (found != wanted)
            detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, std::string(name) + ": found " + std::to_string(found) +
                                                             " elements, wanted " + std::to_string(wanted)));
        return found == wanted;
    }

    /// Fails unless the arrays of the synapses have equal lengths; no kind is allowed.
    bool synapses_have_equal_lengths() const
    {
        return has_length("target", target.size(), source.size()) && has_length("weight", weight.size(), source.size()) &&
               has_length("psp", psp.size(), source.size()) &&
               (synapse_kind.empty() || has_length("synapse_kind", synapse_kind.size(), source.size()));
    }
};

/// The state of a simulation between two bursts.
struct State {
    std::vector<float> potentials;
    std::vector<std::uint16_t> refractory_left, fire_counts;

    State() = default;
    explicit State(std::size_t neurons) : potentials(neurons), refractory_left(neurons), fire_counts(neurons) {}

    /// Returns the struct of C after `burst` bursts, the last of which fired `fired`. It points to both arguments' arrays.
    sv_network_state raw(std::uint64_t burst, std::uint32_t seed, const Spikes &fired) const
    {
        sv_network_state raw{};
        if (refractory_left.size() != potentials.size() || fire_counts.size() != potentials.size() ||
            fired.ids.size() != fired.potentials.size()) {
            // A size of 0 is an error's where errors are not exceptions.
            detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, "set_state: the arrays have different lengths"));
            return raw;
        }
        raw.size = sizeof raw;
        raw.burst = burst;
        raw.seed = seed;
        raw.neurons = potentials.size();
        raw.potentials = potentials.data();
        raw.refractory_left = refractory_left.data();
        raw.fire_counts = fire_counts.data();
        raw.fired = fired.ids.size();
        raw.fired_ids = fired.ids.data();
        raw.fired_potentials = fired.potentials.data();
        return raw;
    }
};

/// A network of spiking neurons.
class Network : public Object<Network, sv_network> {
public:
    Network() noexcept = default;

    explicit Network(const Arrays &arrays) : Object(create(arrays)) {}

    static Network read(const std::string &path) { return detail::make<Network>(sv_network_read, path.c_str()); }
    void write(const std::string &path) const { detail::call(sv_network_write, handle(), path.c_str()); }

    /// Generates network G, for tests of equality.
    static Network g(std::uint32_t neurons, std::uint32_t degree)
    {
        return detail::make<Network>(sv_network_g, neurons, degree);
    }
    /// Generates network S, in which one neuron in `every` fires in each burst.
    static Network s(std::uint32_t neurons, std::uint32_t degree, std::uint32_t every)
    {
        return detail::make<Network>(sv_network_s, neurons, degree, every);
    }

    std::size_t neurons() const { return size().first; }
    std::size_t synapses() const { return size().second; }

    /// Returns the input of a generated network for a burst, from 1.
    Spikes input(std::uint32_t number) const
    {
        Spikes input;
        std::size_t count = neurons();
        input.ids.resize(count);
        input.potentials.resize(count);
        detail::call(sv_network_input, handle(), number, input.ids.data(), input.potentials.data(), count, &count);
        input.ids.resize(count);
        input.potentials.resize(count);
        return input;
    }

    /// Returns the input of a generated network as a pattern.
    Pattern pattern() const
    {
        Pattern pattern;
        detail::call(sv_network_pattern, handle(), &pattern.base, &pattern.modulus, &pattern.potential);
        return pattern;
    }

    std::vector<Area> areas() const
    {
        std::vector<Area> areas(detail::get<std::size_t>(sv_network_area_count, handle()));
        for (std::uint32_t index = 0; index < areas.size(); index++) {
            std::int32_t shares = 0, potential_driven = 0;
            areas[index].name = detail::text(sv_network_area, handle(), index, &shares, &potential_driven);
            areas[index].shares = shares != 0;
            areas[index].potential_driven = potential_driven != 0;
        }
        return areas;
    }
    Places places() const
    {
        const std::size_t count = neurons();
        Places places;
        places.areas.resize(count);
        places.kinds.resize(count);
        places.positions.resize(3 * count);
        detail::call(sv_network_places, handle(), places.areas.data(), places.kinds.data(), places.positions.data(),
                     count);
        return places;
    }

    /// Returns the index of an area by its name.
    std::uint32_t find_area(const std::string &name) const
    {
        return detail::get<std::uint32_t>(sv_network_find_area, handle(), name.c_str());
    }
    /// Returns the neurons that a simulation removed, ascending.
    std::vector<std::uint32_t> removed() const
    {
        std::vector<std::uint32_t> removed;
        detail::grown(removed, [&](std::size_t capacity, std::size_t *count) {
            detail::call(sv_network_removed, handle(), removed.data(), capacity, count);
        });
        return removed;
    }

    /// Returns the row pointers and the targets of the synapses as compressed sparse rows.
    std::pair<std::vector<std::uint64_t>, std::vector<std::uint32_t>> rows() const
    {
        const auto [neurons, synapses] = size();
        std::pair<std::vector<std::uint64_t>, std::vector<std::uint32_t>> rows;
        rows.first.resize(neurons + 1);
        rows.second.resize(synapses);
        detail::call(sv_network_rows, handle(), rows.first.data(), rows.first.size(), rows.second.data(),
                     rows.second.size());
        return rows;
    }

    /// Names the neurons from `first` to the one before `end`.
    void add_population(const std::string &name, std::uint32_t first, std::uint32_t end)
    {
        detail::call(sv_network_add_population, handle(), name.c_str(), first, end);
    }
    /// Returns the first neuron of a population, and the one behind the last.
    std::pair<std::uint32_t, std::uint32_t> population(const std::string &name) const
    {
        std::pair<std::uint32_t, std::uint32_t> range;
        detail::call(sv_network_population, handle(), name.c_str(), &range.first, &range.second);
        return range;
    }
    std::vector<std::string> population_names() const
    {
        std::vector<std::string> names(detail::get<std::size_t>(sv_network_population_count, handle()));
        for (std::size_t position = 0; position < names.size(); position++)
            names[position] = detail::text(sv_network_population_name, handle(), position);
        return names;
    }

private:
    std::pair<std::size_t, std::size_t> size() const
    {
        std::pair<std::size_t, std::size_t> size;
        detail::call(sv_network_size, handle(), &size.first, &size.second);
        return size;
    }

    static sv_network create(const Arrays &arrays)
    {
        sv_network_arrays raw{};
        raw.size = sizeof raw;
        raw.neurons = arrays.neurons;
        raw.synapses = arrays.source.size();
        // The library trusts the lengths of arrays.
#define SELVEDGE_NEURONS(field, each) \
    if (!arrays.field.empty()) { \
        if (!Arrays::has_length(#field, arrays.field.size(), each * arrays.neurons)) \
            return 0; \
        raw.field = arrays.field.data(); \
    }
        SELVEDGE_NEURONS(threshold, 1)
        SELVEDGE_NEURONS(threshold_max, 1)
        SELVEDGE_NEURONS(leak, 1)
        SELVEDGE_NEURONS(rest, 1)
        SELVEDGE_NEURONS(refractory, 1)
        SELVEDGE_NEURONS(excitability, 1)
        SELVEDGE_NEURONS(fire_limit, 1)
        SELVEDGE_NEURONS(snooze, 1)
        SELVEDGE_NEURONS(accumulates, 1)
        SELVEDGE_NEURONS(neuron_kind, 1)
        SELVEDGE_NEURONS(area, 1)
        SELVEDGE_NEURONS(position, 3)
#undef SELVEDGE_NEURONS
        if (!arrays.synapses_have_equal_lengths())
            return 0;
        raw.source = arrays.source.data();
        raw.target = arrays.target.data();
        raw.weight = arrays.weight.data();
        raw.psp = arrays.psp.data();
        raw.synapse_kind = arrays.synapse_kind.empty() ? nullptr : arrays.synapse_kind.data();
        std::vector<sv_area> areas;
        for (const Area &area : arrays.areas)
            areas.push_back({area.name.c_str(), area.shares, area.potential_driven});
        raw.area_count = areas.size();
        raw.areas = areas.data();
        return detail::get<sv_network>(sv_network_create, &static_cast<const sv_network_arrays &>(raw));
    }
};

} // namespace burst

SELVEDGE_END

#endif
