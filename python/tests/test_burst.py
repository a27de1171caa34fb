"""Spiking networks of arrays and generated ones."""

import numpy as np
import pytest
import selvedge as sv
from selvedge.burst import Network


def chain(**fields):
    """Returns three neurons in a row, each of which fires the next."""
    return Network(3, [0, 1], [1, 2], [10, 10], [1, 1], threshold=5, leak=0.0, **fields)


def test_a_spike_runs_along_a_chain():
    network = chain()
    network.inject([0], [6.0])
    network.run(4)
    bursts, ids = network.spikes
    assert bursts.tolist() == [1, 2, 3] and ids.tolist() == [0, 1, 2]
    assert network.rates().tolist() == [0.25, 0.25, 0.25]
    assert network.burst == 4 and (network.neurons, network.synapses) == (3, 2)
    network.clear_spikes()
    network.inject(np.array([2]), 9)
    network.run(2)
    assert network.spikes[0].tolist() == [5] and network.rates().tolist() == [0, 0, 0.5]


def test_fields_are_numbers_or_arrays():
    network = chain(refractory=np.array([0, 0, 7]), rest=sv.Tensor([0.0, 0, 1]), accumulates=[True, False, True], neuron_kind=[0, 1, 0])
    assert network.potentials.tolist() == [0, 0, 1]
    inhibited = Network(2, [0], [1], 10, 1, kind=1, threshold=5.0, leak=0)
    inhibited.inject([0, 1], 5.5)
    inhibited.run(2)
    assert inhibited.spikes[1].tolist() == [0, 1]
    assert inhibited.potentials.tolist() == [0, -10]


def test_power_lasts_until_it_ends():
    network = chain()
    network.set_power(0, 1, 6.0)
    network.run(3)
    network.set_power(0, 1, 0.0)
    network.run(5)
    assert network.spikes[1].tolist().count(0) == 3


@pytest.mark.parametrize("kind", ["G", "S"])
def test_generated_networks_give_the_same_spikes_again_and_after_a_file(kind, tmp_path):
    first, second = (Network.generated(kind, 500, 20, seed=3) for _ in range(2))
    first.run(30, generated_input=True)
    second.run(12, generated_input=True)
    second.save(tmp_path / "half.burst")
    second.run(18, generated_input=True)
    assert first.state_hash == second.state_hash and first.spikes[1].equal(second.spikes[1])
    assert first.spikes[0].size > 100
    loaded = Network.load(tmp_path / "half.burst")
    assert loaded.burst == 12 and loaded.neurons == 500
    with pytest.raises(ValueError, match="a generated network"):
        loaded.run(1, generated_input=True)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: chain(refractory=[1, 2]), ValueError, "an array of 3"),
        (lambda: chain(refractory=-1), ValueError, "elements that u16 holds"),
        (lambda: chain(colour=1), ValueError, '"colour"'),
        (lambda: Network(3, [0, 7], [1, 2], 1, 1), ValueError, "7"),
        (lambda: Network(3, [0], [1, 2], 1, 1), ValueError, ""),
        (lambda: Network(3, [0], [1], 300, 1), ValueError, "elements that u8 holds"),
        (lambda: Network(3, [0.5], [1], 3, 1), ValueError, "elements that u32 holds"),
        (lambda: chain().inject([5], 1.0), (ValueError, IndexError), "5"),
        (lambda: Network.generated("X", 5, 5), ValueError, '"G" or "S"'),
        (lambda: Network.generated("G", 2**31, 2**32 - 1), MemoryError, "a generated network"),
        (lambda: Network(2**31 + 1, [], [], [], []), ValueError, "at most 2^31"),
        (lambda: Network.load("/nowhere.burst"), OSError, "nowhere"),
    ],
)
def test_bad_networks_are_exceptions(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value) and isinstance(raised.value, sv.Error)


def test_a_network_that_the_host_does_not_hold_is_an_exception():
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    # A number of neurons costs nothing to name, and an allocation that fails in the library would end the process.
    resource.setrlimit(resource.RLIMIT_AS, (64 << 30, limits[1]))
    try:
        with pytest.raises(sv.OutOfMemoryError, match="2147483648 neurons"):
            Network(2**31, [], [], [], [])
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
