"""`selvedge.nn.DataLoader`: orders, threads, positions and errors."""

import threading

import numpy as np
import pytest
import selvedge as sv

from selvedge.nn import DataLoader

X = np.arange(40, dtype="f4").reshape(20, 2)
Y = np.arange(20)


def ids(loader):
    return [y.tolist() for _, y in loader]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_every_row_comes_once_an_epoch(workers):
    loader = DataLoader((X, Y), batch_size=6, shuffle=True, seed=2, num_workers=workers)
    first, second = ids(loader), ids(loader)
    assert first != second and sorted(sum(first, [])) == sorted(sum(second, [])) == Y.tolist()
    assert [len(batch) for batch in first] == [6, 6, 6, 2] and len(loader) == 4 and loader.epoch == 2
    assert first == ids(DataLoader((X, Y), 6, True, seed=2))
    for x, y in loader:
        assert x.numpy().tolist() == X[y.numpy()].tolist()


def test_the_order_of_a_seed_is_the_same_on_every_machine():
    assert [batch.item() for batch in DataLoader(sv.arange(10), shuffle=True, seed=3)] == [5, 6, 8, 0, 3, 9, 2, 1, 4, 7]


def test_without_shuffling_rows_are_in_order():
    assert [batch.tolist() for batch in DataLoader(Y, 8)] == [list(range(8)), list(range(8, 16)), list(range(16, 20))]
    assert [batch.tolist() for batch in DataLoader(Y, 8, drop_last=True)] == [list(range(8)), list(range(8, 16))]
    assert list(DataLoader(np.zeros((0, 3)), 8)) == []
    assert all(isinstance(batch, tuple) and len(batch) == 1 for batch in DataLoader([Y], 8))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_position_continues_within_an_epoch(workers):
    def new(seed=0):
        return DataLoader((X, Y), 3, True, seed=seed, num_workers=workers)

    whole = new(7)
    wanted = [ids(whole), ids(whole), ids(whole)]
    for batches in range(8):
        part, found = new(7), []
        ids(part)
        for number, (_, y) in enumerate(part, 1):
            if number > batches:
                break
            found.append(y.tolist())
            state = part.state_dict()
        if not found:
            continue
        resumed = new(1)
        resumed.load_state_dict(state)
        assert found + ids(resumed) == wanted[1], batches
        assert ids(resumed) == wanted[2]


def test_an_iteration_that_was_left_is_an_epoch():
    loader = DataLoader((X, Y), 3, True)
    wanted = DataLoader((X, Y), 3, True)
    ids(wanted)
    old = iter(loader)
    next(old)
    assert ids(loader) == ids(wanted)
    with pytest.raises(sv.ArgumentError, match="began anew"):
        next(old)


def test_threads_share_an_iterator():
    iterator, found = iter(DataLoader((X, Y), 1, True, num_workers=2)), []

    def work():
        for _, y in iterator:
            found.append(y.item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == Y.tolist()


def test_errors_name_both_sides():
    with pytest.raises(sv.ArgumentError, match="tensor 1 of 3 rows beside tensor 0 of 20 rows"):
        DataLoader((X, np.zeros(3)))
    with pytest.raises(sv.ArgumentError, match="no tensors"):
        DataLoader(())
    with pytest.raises(sv.ArgumentError, match="a batch of 0 rows"):
        DataLoader(X, 0)
    with pytest.raises(sv.DTypeError, match="a tensor wants a selvedge.Tensor or an array, but found int"):
        DataLoader([1, 2])
    with pytest.raises(sv.ArgumentError, match="tensor 0 without dimensions"):
        DataLoader(sv.Tensor(1.0))
    loader, state = DataLoader(X, 2), DataLoader(X, 4).state_dict()
    with pytest.raises(sv.ArgumentError, match="a state of 20 rows, a batch of 4.*wanted 20 rows, a batch of 2"):
        loader.load_state_dict(state)
    with pytest.raises(sv.ArgumentError, match='without "seed"'):
        loader.load_state_dict({})
