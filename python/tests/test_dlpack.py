"""DLPack in and out, and threads."""

import gc
import threading

import numpy as np
import pytest
import selvedge as sv


def test_arrays_of_numpy_are_shared_both_ways():
    for array in [np.arange(6.0).reshape(2, 3), np.arange(6, dtype="i2")[::-2], np.zeros((0, 3)), np.array(1 + 2j)]:
        tensor = sv.from_dlpack(array)
        np.testing.assert_array_equal(tensor.numpy(), array)
        back = np.from_dlpack(tensor)
        np.testing.assert_array_equal(back, array)
        if array.size:
            assert not back.flags.writeable
            assert np.shares_memory(back, array)
            assert not np.shares_memory(np.from_dlpack(tensor, copy=True), array)


def test_exports_outlive_the_tensor_and_imports_the_array():
    tensor = sv.Tensor([1.0, 2.0])
    exported = np.from_dlpack(tensor)
    tensor[0] = 5
    del tensor
    gc.collect()
    assert exported.tolist() == [1, 2]
    imported = sv.from_dlpack(np.full(1000, 7.0))
    gc.collect()
    assert imported.sum().item() == 7000


def test_protocol_names_devices_versions_and_copies():
    tensor = sv.Tensor([1, 2])
    assert tensor.__dlpack_device__() == (1, 0)
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(tensor.__dlpack__()) and '"dltensor"' in repr(tensor.__dlpack__(max_version=(0, 8)))
    for arguments in [{"copy": False}, {"dl_device": (2, 0), "max_version": (1, 0)}]:
        with pytest.raises(BufferError):
            tensor.__dlpack__(**arguments)
    assert sv.from_dlpack(tensor).equal(tensor)
    with pytest.raises(TypeError, match="found int"):
        sv.from_dlpack(5)


class Legacy:
    """A producer of DLPack before 1.0."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self):
        return self.capsule


def test_capsules_are_taken_once():
    capsule = sv.Tensor([1, 2]).__dlpack__()
    assert sv.from_dlpack(Legacy(capsule)).tolist() == [1, 2]
    with pytest.raises(ValueError, match="a capsule of another name"):
        sv.from_dlpack(Legacy(capsule))
    with pytest.raises(TypeError):
        sv.from_dlpack(Legacy(5))


def test_threads_write_and_read_one_tensor():
    tensor = sv.zeros(1000)
    errors = []

    def work():
        try:
            for _ in range(50):
                tensor.__iadd__(1.0)
                row = tensor.numpy()
                assert (row == row[0]).all()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and tensor[0].item() == 200


def test_conversions_leave_nothing_behind():
    resource = pytest.importorskip("resource")
    data = [[1.0] * 100] * 10

    def convert():
        for _ in range(300):
            tensor = sv.Tensor(data)
            np.from_dlpack(sv.from_dlpack(tensor.numpy()))
            tensor.__dlpack__(max_version=(1, 3))
            tensor.tolist()

    convert()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5):
        convert()
    # 1500 tensors of 8 kB would be 12 MB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4000
