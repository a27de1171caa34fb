// The resonant evolution strategy of golden-ratio tensors.

#ifndef SELVEDGE_EVOLVER_HPP
#define SELVEDGE_EVOLVER_HPP

#include <memory>

#include "callback.hpp"
#include "srt.hpp"

SELVEDGE_BEGIN

namespace srt {

enum class EvolverEnd : std::int32_t {
    Converged = SV_SRT_EVOLVER_CONVERGED,
    Limit = SV_SRT_EVOLVER_LIMIT,
    Stopped = SV_SRT_EVOLVER_STOPPED,
};

/// An evolution of one state toward syntony. A copy is the same evolver.
class Evolver : public Object<Evolver, sv_srt_evolver> {
public:
    /// Gets the results of each generation. Returns false to stop.
    using GenerationCallback = std::function<bool(const sv_srt_generation &generation)>;

    Evolver() noexcept = default;
    /// Makes an evolver of a vector of points. With an empty `n2` the squared mode norms are 0, 1, 4, 9 and so on.
    explicit Evolver(const Golden &state, const Tensor &n2 = {}, const sv_srt_evolver_options &options = defaults())
        : Object(selvedge::detail::get<sv_srt_evolver>(sv_srt_evolver_create, state.a.handle(), state.b.handle(),
                                                      n2.handle(), &options, nullptr, nullptr))
    {
    }

    static sv_srt_evolver_options defaults()
    {
        sv_srt_evolver_options options{};
        options.size = sizeof options;
        selvedge::detail::call(sv_srt_evolver_defaults, &options);
        return options;
    }

    /// Runs one generation.
    sv_srt_generation step() const
    {
        sv_srt_generation generation{};
        generation.size = sizeof generation;
        selvedge::detail::call(sv_srt_evolver_step, handle(), &generation);
        return generation;
    }
    /// Runs generations until convergence, the largest number of them, or false of the callback.
    EvolverEnd run(GenerationCallback callback = nullptr) const
    {
        selvedge::detail::Callback<GenerationCallback> context(std::move(callback));
        std::int32_t end = 0;
        selvedge::detail::call(sv_srt_evolver_run, handle(), context.defined() ? &on_generation : nullptr,
                               context.user(), &end);
        context.rethrow();
        return static_cast<EvolverEnd>(end);
    }

    /// Returns the best state.
    Golden best() const
    {
        auto [a, b] = detail::two(sv_srt_evolver_best, handle());
        return {std::move(a), std::move(b)};
    }
    bool is_converged() const
    {
        return selvedge::detail::get<std::int32_t>(sv_srt_evolver_is_converged, handle()) != 0;
    }
    sv_srt_evolver_options options() const
    {
        sv_srt_evolver_options options{};
        options.size = sizeof options;
        selvedge::detail::call(sv_srt_evolver_get_options, handle(), &options);
        return options;
    }
    /// Returns the squared mode norms.
    Tensor n2() const { return selvedge::detail::make<Tensor>(sv_srt_evolver_n2, handle()); }

    /// Returns the best syntony at the start and after each generation.
    std::vector<double> history() const
    {
        std::vector<double> syntonies;
        std::size_t count = 0;
        selvedge::detail::call(sv_srt_evolver_history, handle(), nullptr, std::size_t{0}, &count);
        // Another thread may run generations between two calls.
        while (count > syntonies.size()) {
            syntonies.resize(count);
            selvedge::detail::call(sv_srt_evolver_history, handle(), syntonies.data(), syntonies.size(), &count);
        }
        return syntonies;
    }

    void save(const std::string &path) const
    {
        selvedge::detail::call(sv_srt_evolver_save, handle(), path.c_str());
    }
    static Evolver restore(const std::string &path, Device device = Device::cpu())
    {
        return selvedge::detail::make<Evolver>(sv_srt_evolver_restore, path.c_str(), device.ordinal(), nullptr, nullptr);
    }

private:
    static std::int32_t on_generation(void *user, const sv_srt_generation *generation)
    {
        return selvedge::detail::Callback<GenerationCallback>::run(user, *generation) ? SV_CONTINUE : SV_STOP;
    }
};

} // namespace srt

SELVEDGE_END

#endif
