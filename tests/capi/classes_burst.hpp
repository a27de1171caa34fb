// Spiking networks of the C++ layer.

#ifndef SELVEDGE_TESTS_CLASSES_BURST_HPP
#define SELVEDGE_TESTS_CLASSES_BURST_HPP

#include "classes_check.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace {

void networks(const std::string &folder)
{
    burst::Arrays arrays;
    arrays.neurons = 3;
    arrays.threshold = {1, 10, 10};
    arrays.leak = {0, 0, 0};
    arrays.source = {0, 1};
    arrays.target = {1, 2};
    arrays.weight = {10, 10};
    arrays.psp = {10, 10};
    arrays.areas = {{"first"}, {"second", true}};
    arrays.area = {0, 1, 1};
    arrays.position = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    arrays.neuron_kind = {0, 0, 1};
    burst::Network network(arrays);
    CHECK(network.neurons() == 3 && network.synapses() == 2);
    CHECK(network.rows().first == List<std::uint64_t>{0, 1, 2, 2} && network.rows().second[1] == 2);
    CHECK(network.areas().size() == 2 && network.areas()[1].name == "second" && network.areas()[1].shares);
    CHECK(network.places().areas == arrays.area && network.places().positions == arrays.position);
    CHECK(network.places().kinds == arrays.neuron_kind);
    network.add_population("last", 2, 3);
    CHECK(network.population("last").first == 2 && network.population_names() == List<std::string>{"last"});
    arrays.leak.pop_back();
    FAILS(SV_ERROR_LENGTH_MISMATCH, burst::Network(arrays));
    arrays.leak.clear();
    arrays.weight.pop_back();
    FAILS(SV_ERROR_LENGTH_MISMATCH, burst::Network(arrays));

    burst::Options options;
    options.threads = 1;
    burst::Simulation simulation(network, options);
    CHECK(simulation.device_name().find("CPU") == 0);
    simulation.record_spikes(true);
    simulation.record_potentials({0, 2});
    simulation.keep_ledger(4);
    const std::size_t sampler = simulation.add_sampler(0, 3, 1);
    simulation.inject({0}, {2});
    FAILS(SV_ERROR_LENGTH_MISMATCH, (simulation.inject({0}, {}), 0));
    simulation.run();
    CHECK(simulation.fired().ids == List<std::uint32_t>{0} && simulation.fired().potentials == List<float>{2});
    std::uint64_t hash = burst::spike_hash_add(SV_SPIKE_HASH_START, 1, simulation.fired());
    CHECK(hash != SV_SPIKE_HASH_START);
    CHECK(simulation.take_snapshot(sampler, 3).second.ids == List<std::uint32_t>{0});
    simulation.run(2);
    CHECK(simulation.fire_queue().areas == List<std::uint32_t>{1} && simulation.fire_queue().ids[0] == 2);
    CHECK(simulation.fire_queue().potentials.size() == 1);
    CHECK(simulation.fire_queue().positions == List<std::uint32_t>{7, 8, 9});
    CHECK(simulation.parameter(SV_NEURON_THRESHOLD, 3) == List<double>{1, 10, 10});
    CHECK(simulation.spikes().first == List<std::uint64_t>{1, 2, 3});
    CHECK(simulation.spikes().second == List<std::uint32_t>{0, 1, 2});
    CHECK(simulation.potentials().size() == 6 && simulation.totals().spikes == 3 && simulation.counters().bursts == 3);
    CHECK(simulation.ledger_bursts() == std::make_pair(std::uint64_t{1}, std::uint64_t{3}));
    CHECK(simulation.ledger_fired(2) == List<std::uint32_t>{1});
    CHECK(simulation.area_fired(network.find_area("second"), 2) == List<std::uint32_t>{1});
    CHECK(simulation.area_fired(0, 2).empty());
    CHECK(simulation.weights(2)[0] == (10 | 10 << 8));
    simulation.set_weights({1}, {9});
    CHECK(simulation.weights(2)[1] % 256 == 9);
    FAILS(SV_ERROR_LENGTH_MISMATCH, (simulation.set_weights({1}, {}), 0));
    simulation.set_parameter(SV_NEURON_THRESHOLD, 0, 1, 100);
    simulation.set_area_parameter(SV_NEURON_LEAK, 1, 0.5);
    simulation.set_power(0, 1, 1);
    simulation.set_area_power(0, 3);
    simulation.set_dense(true);
    sv_plasticity_rule rule{};
    rule.kind = SV_RULE_AREA_WINDOW;
    rule.target_area = 1;
    FAILS(SV_ERROR_INVALID_ARGUMENT, (simulation.add_rule(rule), 0));
    rule.increase = 1;
    rule.window = 2;
    simulation.add_rule(rule);
    simulation.run();
    CHECK(simulation.fired().ids.empty() && simulation.state(3).potentials[0] == 3);

    burst::Simulation edited(network, options);
    burst::Arrays synapses;
    synapses.source = {0};
    synapses.target = {2};
    synapses.weight = synapses.psp = {10};
    edited.create_synapses(synapses);
    edited.remove_synapses({0}, {1});
    FAILS(SV_ERROR_LENGTH_MISMATCH, (edited.remove_synapses({0}, {}), 0));
    edited.remove_neurons({1});
    sv_rule_edits edits{};
    edits.prune = 1;
    edited.add_rule(rule, edits);
    edited.inject({0}, {2});
    edited.run(2);
    CHECK(edited.fired().ids == List<std::uint32_t>{2} && edited.network().removed() == List<std::uint32_t>{1});
    CHECK(edited.network().synapses() == 1);
    synapses.psp.clear();
    FAILS(SV_ERROR_LENGTH_MISMATCH, (edited.create_synapses(synapses), 0));

    const std::string path = folder + "/run.burst";
    simulation.save(path);
    burst::Simulation again = burst::Simulation::restore(path, options);
    CHECK(again.state_hash() == simulation.state_hash() && burst::Network::read(path).neurons() == 3);
    network.write(path);
    simulation.write_spikes(folder + "/spikes.npz");
    CHECK(Tensor::read_npz(folder + "/spikes.npz", "id").count() == 3);
    std::remove(path.c_str());
    std::remove((folder + "/spikes.npz").c_str());
    burst::State state = simulation.state(3);
    simulation.set_state(9, 0, state);
    CHECK(simulation.state(3).potentials == state.potentials);
    state.fire_counts.clear();
    FAILS(SV_ERROR_LENGTH_MISMATCH, (simulation.set_state(9, 0, state), 0));
    simulation.move(options);

    std::atomic<std::uint64_t> bursts{0};
    burst::Runner runner = simulation.start(0, [&](std::uint64_t, auto ids, auto potentials) {
        CHECK(ids.size() == potentials.size());
        bursts++;
    });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (bursts < 3 && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    runner.pause();
    runner.resume();
    runner.set_frequency(1000);
    CHECK(runner.statistics().bursts >= 3);
    burst::Runner moved = std::move(runner);
    runner.stop();
    moved.stop();
    moved.stop();
    CHECK(bursts >= 3);
    simulation.run();
    burst::Runner thrower = simulation.start(0, [](auto...) { throw std::logic_error("mine"); });
    while (thrower.statistics().bursts == 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    bool caught = false;
    try {
        thrower.stop();
    } catch (const std::logic_error &) {
        caught = true;
    }
    CHECK(caught);
    // The destructor stops a runner too.
    const burst::Runner dropped = simulation.start(0);

    const burst::Network generated = burst::Network::g(100, 4);
    burst::Simulation run(generated, options);
    run.inject(generated.input(1));
    run.run();
    CHECK(burst::Network::s(100, 4, 10).synapses() == 400);
    CHECK(generated.pattern().base == 100 && generated.pattern().modulus == 50 && generated.pattern().potential == 150.5f);
    FAILS(SV_ERROR_INVALID_ARGUMENT, network.input(1));
    FAILS(SV_ERROR_INVALID_ARGUMENT, network.pattern());
}

/// The runs are those of `tests/fake/emulated/burst_capi.rs`: the fake driver has no kernels.
void networks_on_devices()
{
    FAILS(SV_ERROR_INVALID_ARGUMENT, burst::DeviceNetwork::g(100, 4, Device::cpu()));
    FAILS(SV_ERROR_NO_DEVICE, burst::DeviceNetwork::s(100, 4, 10, Device::cuda(99)));
    FAILS(SV_ERROR_NO_DEVICE, burst::DeviceNetwork(burst::Network::g(100, 4), Device::cuda(99)));
    burst::DeviceNetwork none;
    const burst::Spikes spikes{{0}, {1}};
    FAILS(SV_ERROR_INVALID_HANDLE, (none.inject(spikes), 0));
    FAILS(SV_ERROR_LENGTH_MISMATCH, (none.set_steady_input({{0}, {}}), 0));
    FAILS(SV_ERROR_INVALID_HANDLE, (none.set_steady_input(spikes), 0));
    FAILS(SV_ERROR_INVALID_HANDLE, (none.set_pattern({100, 50, 1}), 0));
    FAILS(SV_ERROR_INVALID_HANDLE, (none.set_dense(true), 0));
    FAILS(SV_ERROR_INVALID_HANDLE, none.run(2));
    FAILS(SV_ERROR_INVALID_HANDLE, none.fired());
    FAILS(SV_ERROR_INVALID_HANDLE, none.state(1));
    FAILS(SV_ERROR_INVALID_HANDLE, none.last_state(1));
    FAILS(SV_ERROR_INVALID_HANDLE, (none.set_state(1, 0, burst::State(1), spikes), 0));
    FAILS(SV_ERROR_INVALID_HANDLE, none.state_hash());
    FAILS(SV_ERROR_INVALID_HANDLE, none.weights(1));
    FAILS(SV_ERROR_LENGTH_MISMATCH, (none.set_weights({0, 1}, {1}), 0));
    FAILS(SV_ERROR_INVALID_HANDLE, (none.set_weights({0}, {1}), 0));
    FAILS(SV_ERROR_INVALID_HANDLE, none.bytes());
}

} // namespace

#endif
