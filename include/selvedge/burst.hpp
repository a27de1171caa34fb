// Spiking neural networks: networks from arrays, and simulations with the same bits on every device.

#ifndef SELVEDGE_BURST_HPP
#define SELVEDGE_BURST_HPP

#include <functional>
#include <memory>

#include "device.hpp"

SELVEDGE_BEGIN

namespace burst {

/// Chooses the faster one of the CPU and CUDA device 0, by the first bursts.
inline constexpr Device automatic = Device::from_ordinal(SV_AUTO);

/// Neurons, and a potential for each.
struct Spikes {
    std::vector<std::uint32_t> ids;
    std::vector<float> potentials;
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
};

/// The state of a simulation between two bursts.
struct State {
    std::vector<float> potentials;
    std::vector<std::uint16_t> refractory_left, fire_counts;
};

/// A network of spiking neurons.
class Network : public Object<Network> {
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

    static bool has_length(const char *name, std::size_t found, std::size_t wanted)
    {
        if (found != wanted)
            detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, std::string(name) + ": found " + std::to_string(found) +
                                                             " elements, wanted " + std::to_string(wanted)));
        return found == wanted;
    }

    static std::uint64_t create(const Arrays &arrays)
    {
        sv_network_arrays raw{};
        raw.size = sizeof raw;
        raw.neurons = arrays.neurons;
        raw.synapses = arrays.source.size();
        // The library trusts the lengths of arrays.
#define SELVEDGE_NEURONS(field, each) \
    if (!arrays.field.empty()) { \
        if (!has_length(#field, arrays.field.size(), each * arrays.neurons)) \
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
        if (!has_length("target", arrays.target.size(), raw.synapses) ||
            !has_length("weight", arrays.weight.size(), raw.synapses) ||
            !has_length("psp", arrays.psp.size(), raw.synapses) ||
            (!arrays.synapse_kind.empty() &&
             !has_length("synapse_kind", arrays.synapse_kind.size(), raw.synapses)))
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
        return detail::get<std::uint64_t>(sv_network_create, &static_cast<const sv_network_arrays &>(raw));
    }
};

/// The device of a simulation, and how it runs there.
struct Options {
    Device device = Device::cpu();
    /// CPU threads, 0 for as many as there are processors.
    std::uint32_t threads = 0;
    std::uint32_t seed = 0;
    /// The shards that the network is cut into.
    std::uint32_t shards = 0;

    sv_simulation_options raw() const noexcept
    {
        return {sizeof(sv_simulation_options), device.ordinal(), threads, seed, shards};
    }
};

class Simulation;

/// A thread that runs a simulation, until stop() or the destructor.
class Runner {
public:
    /// Gets the number of each burst, and the neurons that fired with their potentials.
    using Callback = std::function<void(std::uint64_t number, Elements<const std::uint32_t> ids,
                                        Elements<const float> potentials)>;

    Runner(Runner &&) noexcept = default;
    Runner &operator=(Runner &&other) noexcept
    {
        if (this != &other) {
            drop();
            simulation_ = std::move(other.simulation_);
            context_ = std::move(other.context_);
        }
        return *this;
    }
    ~Runner() { drop(); }

    void set_frequency(double frequency) const;
    void pause() const;
    void resume() const;
    sv_runner_statistics statistics() const;

    /// Stops behind the burst in progress. Raises the error that ended the run, or the first exception of the callback.
    void stop();

private:
    friend class Simulation;

    struct Context {
        Callback callback;
        std::exception_ptr exception;
    };

    Runner(const Simulation &simulation, double frequency, Callback callback);

    // Until the simulation has stopped, its thread uses the callback.
    void drop() noexcept;

    static void on_burst(void *user, std::uint64_t number, const std::uint32_t *ids, const float *potentials,
                         std::size_t count) noexcept
    {
        Context &context = *static_cast<Context *>(user);
#if SELVEDGE_HAS_EXCEPTIONS
        if (context.exception)
            return;
        try {
            context.callback(number, {ids, count}, {potentials, count});
        } catch (...) {
            context.exception = std::current_exception();
        }
#else
        context.callback(number, {ids, count}, {potentials, count});
#endif
    }

    std::unique_ptr<Simulation> simulation_;
    std::unique_ptr<Context> context_;
};

/// A run of a network. A copy is the same run.
class Simulation : public Object<Simulation> {
public:
    Simulation() noexcept = default;

    explicit Simulation(const Network &network, const Options &options = {}) : Object(create(network, options)) {}

    /// Continues the run of a `.burst` file.
    static Simulation restore(const std::string &path, const Options &options = {})
    {
        const sv_simulation_options raw = options.raw();
        return detail::make<Simulation>(sv_simulation_restore, path.c_str(), &raw);
    }
    void save(const std::string &path) const { detail::call(sv_simulation_save, handle(), path.c_str()); }

    std::string device_name() const { return detail::text(sv_simulation_device_name, handle()); }
    /// Moves the run to another device between two bursts.
    void move(const Options &options) { with(sv_simulation_move, options); }
    /// Continues on another device after the run's was lost.
    void recover(const Options &options) { with(sv_simulation_recover, options); }

    /// Stages input for the next burst.
    void inject(const std::vector<std::uint32_t> &ids, const std::vector<float> &potentials)
    {
        if (ids.size() != potentials.size()) {
            detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, "inject: found " + std::to_string(ids.size()) + " ids and " +
                                                             std::to_string(potentials.size()) + " potentials"));
            return;
        }
        detail::call(sv_simulation_inject, handle(), ids.data(), potentials.data(), ids.size());
    }
    void inject(const Spikes &input) { inject(input.ids, input.potentials); }
    /// Sets the input of a range of neurons in every burst.
    void set_power(std::uint32_t first, std::uint32_t end, float potential)
    {
        detail::call(sv_simulation_set_power, handle(), first, end, potential);
    }
    /// Lets time pass for every neuron in every burst.
    void set_dense(bool dense) { detail::call(sv_simulation_set_dense, handle(), std::int32_t{dense}); }

    void run(std::uint64_t bursts = 1) { detail::call(sv_simulation_run, handle(), bursts); }

    /// Starts a thread that runs so many bursts a second, or as many as it can for 0.
    [[nodiscard]] Runner start(double frequency, Runner::Callback callback = nullptr) const
    {
        return Runner(*this, frequency, std::move(callback));
    }

    /// Returns the neurons that fired in the last burst.
    Spikes fired() const
    {
        Spikes spikes;
        grown(spikes.ids, [&](std::size_t capacity, std::size_t *count) {
            spikes.potentials.resize(capacity);
            detail::call(sv_simulation_fired, handle(), spikes.ids.data(), spikes.potentials.data(), capacity, count);
        });
        spikes.potentials.resize(spikes.ids.size());
        return spikes;
    }
    sv_burst_counters counters() const { return counted(sv_simulation_counters); }
    sv_burst_counters totals() const { return counted(sv_simulation_totals); }

    /// Returns the state of every neuron. `neurons` is the number of the network's.
    State state(std::size_t neurons) const
    {
        State state;
        state.potentials.resize(neurons);
        state.refractory_left.resize(neurons);
        state.fire_counts.resize(neurons);
        detail::call(sv_simulation_state, handle(), state.potentials.data(), state.refractory_left.data(),
                     state.fire_counts.data(), neurons);
        return state;
    }
    /// Replaces the state of the simulation after `burst` bursts, the last of which fired `fired`.
    void set_state(std::uint64_t burst, std::uint32_t seed, const State &state, const Spikes &fired = {})
    {
        if (state.refractory_left.size() != state.potentials.size() ||
            state.fire_counts.size() != state.potentials.size() || fired.ids.size() != fired.potentials.size()) {
            detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, "set_state: the arrays have different lengths"));
            return;
        }
        sv_network_state raw{};
        raw.size = sizeof raw;
        raw.burst = burst;
        raw.seed = seed;
        raw.neurons = state.potentials.size();
        raw.potentials = state.potentials.data();
        raw.refractory_left = state.refractory_left.data();
        raw.fire_counts = state.fire_counts.data();
        raw.fired = fired.ids.size();
        raw.fired_ids = fired.ids.data();
        raw.fired_potentials = fired.potentials.data();
        detail::call(sv_simulation_set_state, handle(), &static_cast<const sv_network_state &>(raw));
    }
    std::uint64_t state_hash() const { return detail::get<std::uint64_t>(sv_simulation_state_hash, handle()); }

    /// Returns weight (the low 8 bits) and PSP (the high ones) of every synapse, in the order of Network::rows().
    std::vector<std::uint16_t> weights(std::size_t synapses) const
    {
        std::vector<std::uint16_t> weights(synapses);
        detail::call(sv_simulation_weights, handle(), weights.data(), weights.size());
        return weights;
    }

    /// Queues a change of a parameter, one of `SV_NEURON_...`.
    void set_parameter(std::int32_t field, std::uint32_t first, std::uint32_t end, double value)
    {
        detail::call(sv_simulation_set_parameter, handle(), field, first, end, value);
    }
    void set_area_parameter(std::int32_t field, std::uint32_t area, double value)
    {
        detail::call(sv_simulation_set_area_parameter, handle(), field, area, value);
    }

    /// Adds a plasticity rule. Its size is set here.
    void add_rule(sv_plasticity_rule rule)
    {
        rule.size = sizeof rule;
        detail::call(sv_simulation_add_rule, handle(), &static_cast<const sv_plasticity_rule &>(rule));
    }

    void record_spikes(bool record) { detail::call(sv_simulation_record_spikes, handle(), std::int32_t{record}); }
    /// Returns the numbers of the bursts and the neurons of the recorded spikes.
    std::pair<std::vector<std::uint64_t>, std::vector<std::uint32_t>> spikes() const
    {
        std::pair<std::vector<std::uint64_t>, std::vector<std::uint32_t>> spikes;
        grown(spikes.second, [&](std::size_t capacity, std::size_t *count) {
            spikes.first.resize(capacity);
            detail::call(sv_simulation_spikes, handle(), spikes.first.data(), spikes.second.data(), capacity, count);
        });
        spikes.first.resize(spikes.second.size());
        return spikes;
    }
    void write_spikes(const std::string &path) const
    {
        detail::call(sv_simulation_write_spikes, handle(), path.c_str());
    }

    void record_potentials(const std::vector<std::uint32_t> &ids)
    {
        detail::call(sv_simulation_record_potentials, handle(), ids.data(), ids.size());
    }
    /// Returns the recorded potentials: a row per burst, with a column per chosen neuron.
    std::vector<float> potentials() const
    {
        std::vector<float> potentials;
        grown(potentials, [&](std::size_t capacity, std::size_t *count) {
            detail::call(sv_simulation_potentials, handle(), potentials.data(), capacity, count);
        });
        return potentials;
    }

    /// Adds a sampler of a range of neurons with a snapshot per `every` bursts, and returns its number.
    std::size_t add_sampler(std::uint32_t first, std::uint32_t end, std::uint32_t every)
    {
        return detail::get<std::size_t>(sv_simulation_add_sampler, handle(), first, end, every);
    }
    /// Takes a snapshot of a sampler of `neurons` neurons: the number of its last burst, 0 if none is due, and the spikes.
    std::pair<std::uint64_t, Spikes> take_snapshot(std::size_t sampler, std::size_t neurons)
    {
        std::pair<std::uint64_t, Spikes> snapshot;
        std::size_t count = 0;
        snapshot.second.ids.resize(neurons);
        snapshot.second.potentials.resize(neurons);
        detail::call(sv_simulation_take_snapshot, handle(), sampler, &snapshot.first, snapshot.second.ids.data(),
                     snapshot.second.potentials.data(), neurons, &count);
        snapshot.second.ids.resize(count);
        snapshot.second.potentials.resize(count);
        return snapshot;
    }

    /// Keeps the spikes of the last `window` bursts.
    void keep_ledger(std::uint32_t window) { detail::call(sv_simulation_keep_ledger, handle(), window); }
    /// Returns the numbers of the first and the last burst in the ledger.
    std::pair<std::uint64_t, std::uint64_t> ledger_bursts() const
    {
        std::pair<std::uint64_t, std::uint64_t> bursts;
        detail::call(sv_simulation_ledger_bursts, handle(), &bursts.first, &bursts.second);
        return bursts;
    }
    std::vector<std::uint32_t> ledger_fired(std::uint64_t number) const
    {
        std::vector<std::uint32_t> ids;
        grown(ids, [&](std::size_t capacity, std::size_t *count) {
            detail::call(sv_simulation_ledger_fired, handle(), number, ids.data(), capacity, count);
        });
        return ids;
    }

private:
    static std::uint64_t create(const Network &network, const Options &options)
    {
        const sv_simulation_options raw = options.raw();
        return detail::get<std::uint64_t>(sv_simulation_create, network.handle(), &raw);
    }

    template <class Function>
    void with(Function function, const Options &options)
    {
        const sv_simulation_options raw = options.raw();
        detail::call(function, handle(), &raw);
    }

    template <class Function>
    sv_burst_counters counted(Function function) const
    {
        sv_burst_counters counters{};
        counters.size = sizeof counters;
        detail::call(function, handle(), &counters);
        return counters;
    }

    // A runner may add elements between two calls.
    template <class T, class Read>
    static void grown(std::vector<T> &elements, Read read)
    {
        std::size_t count = 0;
        read(0, &count);
        while (count > elements.size()) {
            elements.resize(count);
            read(elements.size(), &count);
        }
        elements.resize(count);
    }
};

inline Runner::Runner(const Simulation &simulation, double frequency, Callback callback)
    : context_(new Context{std::move(callback), nullptr})
{
    auto own = std::make_unique<Simulation>(simulation);
    detail::call(sv_simulation_start, own->handle(), frequency, context_->callback ? &on_burst : nullptr,
                 static_cast<void *>(context_.get()));
    if (!detail::has_failed())
        simulation_ = std::move(own);
}

inline void Runner::set_frequency(double frequency) const
{
    detail::call(sv_simulation_set_frequency, simulation_ ? simulation_->handle() : 0, frequency);
}
inline void Runner::pause() const { detail::call(sv_simulation_pause, simulation_ ? simulation_->handle() : 0); }
inline void Runner::resume() const { detail::call(sv_simulation_resume, simulation_ ? simulation_->handle() : 0); }
inline sv_runner_statistics Runner::statistics() const
{
    sv_runner_statistics statistics{};
    statistics.size = sizeof statistics;
    detail::call(sv_simulation_statistics, simulation_ ? simulation_->handle() : 0, &statistics);
    return statistics;
}

inline void Runner::stop()
{
    if (!simulation_)
        return;
    const std::int32_t status = sv_simulation_stop(simulation_->handle());
    simulation_.reset();
#if SELVEDGE_HAS_EXCEPTIONS
    if (context_->exception)
        std::rethrow_exception(std::exchange(context_->exception, nullptr));
#endif
    detail::check(status);
}

inline void Runner::drop() noexcept
{
    if (simulation_)
        sv_simulation_stop(simulation_->handle());
    simulation_.reset();
}

/// Adds the spikes of a burst to a spike hash, which is `SV_SPIKE_HASH_START` before the first one.
inline std::uint64_t spike_hash_add(std::uint64_t hash, std::uint32_t number, const Spikes &spikes)
{
    detail::call(sv_spike_hash_add, number, spikes.ids.data(), spikes.potentials.data(), spikes.ids.size(), &hash);
    return hash;
}

} // namespace burst

SELVEDGE_END

#endif
