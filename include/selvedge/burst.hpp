// Spiking neural networks: simulations with the same bits on every device.

#ifndef SELVEDGE_BURST_HPP
#define SELVEDGE_BURST_HPP

#include <functional>
#include <memory>

#include "burst_network.hpp"
#include "device.hpp"

SELVEDGE_BEGIN

namespace burst {

/// Chooses the faster one of the CPU and CUDA device 0, by the first bursts.
inline constexpr Device automatic = Device::from_ordinal(SV_AUTO);

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
class Simulation : public Object<Simulation, sv_simulation> {
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
        if (detail::have_equal_lengths("inject", ids.size(), potentials.size()))
            detail::call(sv_simulation_inject, handle(), ids.data(), potentials.data(), ids.size());
    }
    void inject(const Spikes &input) { inject(input.ids, input.potentials); }
    /// Sets the input of a range of neurons in every burst.
    void set_power(std::uint32_t first, std::uint32_t end, float potential)
    {
        detail::call(sv_simulation_set_power, handle(), first, end, potential);
    }
    /// Sets the input of the neurons of an area in every burst.
    void set_area_power(std::uint32_t area, float potential)
    {
        detail::call(sv_simulation_set_area_power, handle(), area, potential);
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
        detail::grown(spikes.ids, [&](std::size_t capacity, std::size_t *count) {
            spikes.potentials.resize(capacity);
            detail::call(sv_simulation_fired, handle(), spikes.ids.data(), spikes.potentials.data(), capacity, count);
        });
        spikes.potentials.resize(spikes.ids.size());
        return spikes;
    }
    /// Returns the spikes of the last burst by area.
    FireQueue fire_queue() const
    {
        FireQueue queue;
        detail::grown(queue.ids, [&](std::size_t capacity, std::size_t *count) {
            queue.areas.resize(capacity);
            queue.potentials.resize(capacity);
            queue.positions.resize(3 * capacity);
            detail::call(sv_simulation_fire_queue, handle(), queue.areas.data(), queue.ids.data(),
                         queue.potentials.data(), queue.positions.data(), capacity, count);
        });
        queue.areas.resize(queue.ids.size());
        queue.potentials.resize(queue.ids.size());
        queue.positions.resize(3 * queue.ids.size());
        return queue;
    }
    sv_burst_counters counters() const { return counted(sv_simulation_counters); }
    sv_burst_counters totals() const { return counted(sv_simulation_totals); }

    /// Returns the state of every neuron. `neurons` is the number of the network's.
    State state(std::size_t neurons) const
    {
        State state(neurons);
        detail::call(sv_simulation_state, handle(), state.potentials.data(), state.refractory_left.data(),
                     state.fire_counts.data(), neurons);
        return state;
    }
    /// Replaces the state of the simulation after `burst` bursts, the last of which fired `fired`.
    void set_state(std::uint64_t burst, std::uint32_t seed, const State &state, const Spikes &fired = {})
    {
        const sv_network_state raw = state.raw(burst, seed, fired);
        if (raw.size != 0)
            detail::call(sv_simulation_set_state, handle(), &raw);
    }
    std::uint64_t state_hash() const { return detail::get<std::uint64_t>(sv_simulation_state_hash, handle()); }

    /// Returns weight (the low 8 bits) and PSP (the high ones) of every synapse, in the order of Network::rows().
    std::vector<std::uint16_t> weights(std::size_t synapses) const
    {
        std::vector<std::uint16_t> weights(synapses);
        detail::call(sv_simulation_weights, handle(), weights.data(), weights.size());
        return weights;
    }

    /// Changes the weights of synapses by their places in the order of Network::rows().
    void set_weights(const std::vector<std::uint64_t> &synapses, const std::vector<std::uint8_t> &weights)
    {
        if (detail::have_equal_lengths("set_weights", synapses.size(), weights.size()))
            detail::call(sv_simulation_set_weights, handle(), synapses.data(), weights.data(), synapses.size());
    }

    /// Returns a parameter of every neuron, one of `SV_NEURON_...`, without the changes that are still queued.
    std::vector<double> parameter(std::int32_t field, std::size_t neurons) const
    {
        std::vector<double> values(neurons);
        detail::call(sv_simulation_parameter, handle(), field, values.data(), neurons);
        return values;
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

    /// Adds a rule of kind SV_RULE_AREA_WINDOW that also removes or creates synapses. The sizes are set here.
    void add_rule(sv_plasticity_rule rule, sv_rule_edits edits)
    {
        rule.size = sizeof rule;
        edits.size = sizeof edits;
        detail::call(sv_simulation_add_rule_with_edits, handle(), &static_cast<const sv_plasticity_rule &>(rule),
                     &static_cast<const sv_rule_edits &>(edits));
    }

    /// Creates the synapses of `arrays`, whose other fields are not read, before the next burst.
    void create_synapses(const Arrays &arrays)
    {
        if (arrays.synapses_have_equal_lengths())
            detail::call(sv_simulation_create_synapses, handle(), arrays.source.data(), arrays.target.data(),
                         arrays.weight.data(), arrays.psp.data(),
                         arrays.synapse_kind.empty() ? nullptr : arrays.synapse_kind.data(), arrays.source.size());
    }
    /// Removes all synapses from each source to its target before the next burst.
    void remove_synapses(const std::vector<std::uint32_t> &source, const std::vector<std::uint32_t> &target)
    {
        if (detail::have_equal_lengths("remove_synapses", source.size(), target.size()))
            detail::call(sv_simulation_remove_synapses, handle(), source.data(), target.data(), source.size());
    }
    /// Removes neurons with their synapses before the next burst; no other id changes.
    void remove_neurons(const std::vector<std::uint32_t> &ids)
    {
        detail::call(sv_simulation_remove_neurons, handle(), ids.data(), ids.size());
    }
    /// Returns the network as the last merge of edits made it, or as it was loaded.
    Network network() const { return detail::make<Network>(sv_simulation_network, handle()); }

    void record_spikes(bool record) { detail::call(sv_simulation_record_spikes, handle(), std::int32_t{record}); }
    /// Returns the numbers of the bursts and the neurons of the recorded spikes.
    std::pair<std::vector<std::uint64_t>, std::vector<std::uint32_t>> spikes() const
    {
        std::pair<std::vector<std::uint64_t>, std::vector<std::uint32_t>> spikes;
        detail::grown(spikes.second, [&](std::size_t capacity, std::size_t *count) {
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
        detail::grown(potentials, [&](std::size_t capacity, std::size_t *count) {
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
        detail::grown(ids, [&](std::size_t capacity, std::size_t *count) {
            detail::call(sv_simulation_ledger_fired, handle(), number, ids.data(), capacity, count);
        });
        return ids;
    }

    /// Returns the neurons of an area that fired in a burst of the ledger.
    std::vector<std::uint32_t> area_fired(std::uint32_t area, std::uint64_t number) const
    {
        std::vector<std::uint32_t> ids;
        detail::grown(ids, [&](std::size_t capacity, std::size_t *count) {
            detail::call(sv_simulation_area_fired, handle(), area, number, ids.data(), capacity, count);
        });
        return ids;
    }

private:
    static sv_simulation create(const Network &network, const Options &options)
    {
        const sv_simulation_options raw = options.raw();
        return detail::get<sv_simulation>(sv_simulation_create, network.handle(), &raw);
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
