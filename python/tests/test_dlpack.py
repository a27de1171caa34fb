"""DLPack in and out, and threads."""

import ctypes
import functools
import gc
import os
import subprocess
import sys

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


def test_imports_move_and_copy_as_the_caller_says():
    array = np.arange(4.0)
    for arguments in [{}, {"copy": False}, {"device": "cpu"}, {"device": sv.Device("cpu"), "copy": False}]:
        assert np.shares_memory(np.from_dlpack(sv.from_dlpack(array, **arguments)), array)
    for arguments in [{"copy": True}, {"device": "cpu", "copy": True}]:
        copied = sv.from_dlpack(array, **arguments)
        assert copied.tolist() == array.tolist() and not np.shares_memory(np.from_dlpack(copied), array)
    namespace = copied.__array_namespace__()
    assert namespace.from_dlpack(array, device=copied.device, copy=None).tolist() == array.tolist()
    with pytest.raises(TypeError, match="device"):
        sv.from_dlpack(array, device=5)


class BeforeVersion1:
    """A producer that knows no versions and cannot say that its elements are read-only, such as JAX."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


WRITES = {
    "an index": lambda x: x.__setitem__(0, 7),
    "an operator": lambda x: x.__iadd__(1),
    "fill_": lambda x: x.fill_(7),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("holder", [lambda x: None, lambda x: x[1:], lambda x: x.reshape(2, 2), np.from_dlpack], ids=str)
@pytest.mark.parametrize("producer", [lambda array: array, BeforeVersion1], ids=["NumPy", "BeforeVersion1"])
def test_no_write_reaches_a_producer_or_a_second_import(producer, holder, write):
    array = np.arange(4.0)
    x, other = sv.from_dlpack(producer(array)), sv.from_dlpack(producer(array))
    assert np.shares_memory(np.from_dlpack(x), array)
    held = holder(x)
    before = None if held is None else held.tolist()
    write(x)
    assert x.tolist() != [0, 1, 2, 3]
    assert array.tolist() == other.tolist() == [0, 1, 2, 3]
    assert held is None or held.tolist() == before
    # The producer's writes show in an import until its first write.
    array[0] = 5
    assert other.tolist() == [5, 1, 2, 3] and x[0].item() != 5


def test_no_write_reaches_jax():
    jax = pytest.importorskip("jax")
    array = jax.numpy.arange(4.0)
    tensor = sv.from_dlpack(array)
    tensor[0] = 100
    assert float(array.sum()) == 6 and tensor.tolist() == [100, 1, 2, 3]


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
    for stream in [-2, -(2**40)]:
        with pytest.raises(sv.ArgumentError, match=f"stream={stream}; wanted None, -1"):
            tensor.__dlpack__(stream=stream)
    assert tensor.__dlpack__(stream=-1, max_version=(1, 0)) is not None
    assert sv.from_dlpack(tensor).equal(tensor)
    with pytest.raises(TypeError, match="found int"):
        sv.from_dlpack(5)


class Pinned:
    """An array of NumPy that says that its memory is pinned."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (3, 0)

    def __dlpack__(self, **arguments):
        capsule = self.array.__dlpack__(**arguments)
        name, device = (b"dltensor_versioned", 40) if "versioned" in repr(capsule) else (b"dltensor", 8)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
        ctypes.c_int32.from_address(get(capsule, name) + device).value = 3
        return capsule


def test_pinned_memory_stays_pinned():
    array = np.arange(6.0)
    tensor = sv.from_dlpack(Pinned(array))
    assert tensor.__dlpack_device__() == tensor[1:].__dlpack_device__() == (3, 0) and tensor.device == sv.Device("cpu")
    shared = np.from_dlpack(tensor)
    assert np.shares_memory(shared, array) and shared.tolist() == array.tolist()
    assert sv.from_dlpack(tensor).__dlpack_device__() == (3, 0)
    assert (tensor + 1).__dlpack_device__() == (1, 0)
    # The CPU without pinned memory is another device, which gets a copy.
    with pytest.raises(BufferError):
        tensor.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)
    capsule = tensor.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
    moved = sv.from_dlpack(Legacy(capsule))
    assert moved.__dlpack_device__() == (1, 0) and moved.tolist() == array.tolist()


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


def test_threads_write_and_read_one_tensor(in_threads):
    tensor = sv.zeros(1000)

    def work():
        for _ in range(50):
            tensor.__iadd__(1.0)
            row = tensor.numpy()
            assert (row == row[0]).all()

    in_threads(work)
    assert tensor[0].item() == 200


# NumPy comes first: `numpy()` would import it, and Python before 3.14 aborts for a thread that runs Python within native code.
END_AT_WORK = """
import sys, threading, time
import numpy
import selvedge as sv

x = sv.ones((300, 300))
begun = threading.Barrier(4)

def work():
    (x @ x).tolist()
    begun.wait()
    while True:
        (x @ x).sum().item()
        sv.from_dlpack((x + 1).numpy())

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(float(sys.argv[1]))
"""


def test_an_interpreter_ends_while_threads_work():
    for delay in [0.0, 0.02, 0.05]:
        command = [sys.executable, "-c", END_AT_WORK, str(delay)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), delay


def test_conversions_leave_nothing_behind():
    """SELVEDGE_CONVERSIONS is their number, 12,000 without it. The device bundle makes a million."""
    resource = pytest.importorskip("resource")
    data = [[1.0] * 100] * 10
    count = int(os.environ.get("SELVEDGE_CONVERSIONS", 12_000))

    def convert(count):
        # A tensor of 8 kB and three conversions each.
        for _ in range(count // 4):
            tensor = sv.Tensor(data)
            np.from_dlpack(sv.from_dlpack(tensor.numpy()))
            tensor.__dlpack__(max_version=(1, 3))
            tensor.tolist()

    convert(1200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    convert(count)
    # One tensor in five that stayed would be 5 MB of 12,000 conversions.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4000


@pytest.mark.parametrize("name", ["torch", "cupy", "jax"])
def test_arrays_of_other_libraries_make_the_round_trip(name):
    library = pytest.importorskip(name)
    arrays = {"torch": "arange", "cupy": "arange", "jax": "numpy.arange"}
    arange = functools.reduce(getattr, arrays[name].split("."), library)
    if name == "cupy":
        try:
            library.cuda.runtime.getDeviceCount()
        except library.cuda.runtime.CUDARuntimeError as error:
            pytest.skip(f"CuPy has no device: {error}")
    from_dlpack = library.dlpack.from_dlpack if name == "jax" else library.from_dlpack
    # JAX's integers have 32 bits unless its configuration asks for 64.
    array = arange(24).reshape(2, 3, 4)
    tensor = sv.from_dlpack(array)
    assert tensor.shape == (2, 3, 4) and tensor.tolist() == array.tolist()
    back = from_dlpack(tensor + 1)
    assert type(back) is type(array) and back.dtype == array.dtype and back.device == array.device
    assert back.tolist() == (array + 1).tolist()
    del tensor
    gc.collect()
    assert back.tolist() == (array + 1).tolist()


class Table(ctypes.Structure):
    """`DLPackExchangeAPI` of dlpack.h 1.3."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))),
        ("borrow_object", ctypes.c_void_p),
        ("current_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))),
    ]


class Prototype(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def exchange_table():
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return Table.from_address(get(sv.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def test_c_functions_exchange_tensors_without_a_copy():
    table = exchange_table()
    assert list(table.version) == [1, 3]
    array = np.arange(6.0)
    tensor = sv.from_dlpack(array)
    managed, back = ctypes.c_void_p(), ctypes.py_object()
    assert table.from_object(tensor, ctypes.byref(managed)) == 0
    assert table.to_object(managed, ctypes.byref(back)) == 0
    shared = back.value
    assert isinstance(shared, sv.Tensor) and np.shares_memory(np.from_dlpack(shared), array)
    assert np.shares_memory(np.from_dlpack(sv.from_dlpack(tensor)), array)
    stream = ctypes.c_void_p(1)
    assert table.current_stream(1, 0, ctypes.byref(stream)) == 0 and stream.value is None
    with pytest.raises(TypeError, match="Tensor"):
        table.from_object([1.0], ctypes.byref(managed))
    with pytest.raises(ValueError, match="null"):
        table.to_object(None, ctypes.byref(back))


def test_c_functions_allocate_by_a_prototype():
    table = exchange_table()
    texts = []
    report = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    set_error = report(lambda context, kind, message: texts.append(message.decode()))
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Prototype), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, report)
    allocate = function(table.allocate)
    shape = (ctypes.c_int64 * 2)(3, 4)
    prototype = Prototype(device=(1, 0), ndim=2, code=2, bits=32, lanes=1, shape=shape)
    managed, made = ctypes.c_void_p(), ctypes.py_object()
    assert allocate(prototype, ctypes.byref(managed), None, set_error) == 0
    assert table.to_object(managed, ctypes.byref(made)) == 0
    assert made.value.shape == (3, 4) and made.value.dtype == sv.f32
    longer = (ctypes.c_int64 * 17)(*[1] * 17)
    misaligned = ctypes.cast(ctypes.addressof(shape) + 4, ctypes.POINTER(ctypes.c_int64))
    for ndim, sizes, text in [
        (-1, shape, "-1 dimensions; wanted 0 to 16 dimensions"),
        (-(2**31), shape, "-2147483648 dimensions"),
        (17, longer, "17 dimensions"),
        (2**31 - 1, shape, "2147483647 dimensions"),
        (1, None, "the shape at 0x0; wanted the address of the sizes"),
        (2, misaligned, "aligned to 8 bytes"),
        (2, (ctypes.c_int64 * 2)(3, -4), r"shape [3, -4]"),
    ]:
        bad = Prototype(device=(1, 0), ndim=ndim, code=2, bits=32, lanes=1, shape=ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)))
        managed.value = None
        assert allocate(bad, ctypes.byref(managed), None, set_error) == -1 and managed.value is None
        assert text in texts.pop()
    for arguments, text in [((None, ctypes.byref(managed)), "a null prototype"), ((prototype, None), "a null place")]:
        assert allocate(*arguments, None, set_error) == -1
        assert text in texts.pop()
    scalar = Prototype(device=(1, 0), ndim=0, code=2, bits=32, lanes=1)
    assert allocate(scalar, ctypes.byref(managed), None, set_error) == 0
    assert table.to_object(managed, ctypes.byref(made)) == 0 and made.value.shape == ()
    prototype.bits = 33
    assert allocate(prototype, ctypes.byref(managed), None, set_error) == -1
    assert "33 bits" in texts[0]
