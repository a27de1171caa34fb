"""DLPack between NumPy and the C library, on the CPU: every dtype that NumPy has, strides, arrays without elements, read-only
arrays, lifetimes in either order, and exchanges without growth. `tests/capi_c.rs` runs it where NumPy is there.

    dlpack_numpy.py libselvedge.so selvedge.h
"""

import gc
import sys
import weakref

import numpy

from dlpack_ctypes import READ_ONLY, WRITABLE, Library

library = Library(sys.argv[1], sys.argv[2])

DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64", "complex64": "C64",
    "complex128": "C128",
}
# NumPy takes versioned structs from 2.1 on.
VERSIONED = tuple(int(part) for part in numpy.__version__.split(".")[:2]) >= (2, 1)


def address(array):
    return array.__array_interface__["data"][0]


def elements(dtype, shape):
    """Numbers that are exact in every dtype."""
    count = int(numpy.prod(shape))
    return (numpy.arange(count) % 2 if dtype == "bool" else numpy.arange(count) % 100).astype(dtype).reshape(shape)


def from_numpy(array, versioned):
    """Imports a NumPy array. Without a version, NumPy refuses to export a read-only one."""
    return library.take(array.__dlpack__(max_version=(1, 1)) if versioned else array.__dlpack__())


def every_dtype(versioned):
    for dtype, name in DTYPES.items():
        source = elements(dtype, (2, 3))
        tensor = from_numpy(source, versioned)
        assert tensor.dtype == library.constant("SV_DTYPE_" + name), dtype
        assert tensor.shape == (2, 3) and tensor.strides == (3, 1), dtype
        assert tensor.bytes(source.nbytes) == source.tobytes(), dtype
        # The export needs no copy either.
        back = numpy.from_dlpack(tensor.exporter(versioned=versioned))
        assert back.dtype == source.dtype and address(back) == address(source), dtype
        assert (back == source).all(), dtype
        tensor.release()
        assert (back == source).all(), dtype


def layouts(versioned):
    source = elements("int32", (4, 6, 2))
    views = {
        "transposed": source.transpose(2, 0, 1),
        "backwards": source[::-1, ::-2],
        "a part": source[1:3, 2:5, 1],
        "one row of many": numpy.ndarray((3, 5), "int32", source, 0, (0, 4)),
        "diagonal": source[:2, :2, 0].diagonal(),
        "Fortran": numpy.asfortranarray(source),
    }
    for name, view in views.items():
        # Read-only views of NumPy (a diagonal) go into versioned structs alone.
        if not view.flags.writeable and not versioned:
            continue
        tensor = from_numpy(view, versioned)
        assert tensor.shape == view.shape, name
        assert tensor.strides == tuple(stride // 4 for stride in view.strides), name
        assert tensor.bytes(view.size * 4) == view.tobytes(), name
        back = numpy.from_dlpack(tensor.exporter(versioned=versioned))
        assert back.strides == view.strides and address(back) == address(view) and (back == view).all(), name
        tensor.release()
    # Views that the library makes.
    tensor = from_numpy(source, versioned)
    made = {
        "transpose": (tensor.transpose(0, 2), source.transpose(2, 1, 0)),
        "flip": (tensor.flip(1), source[:, ::-1]),
    }
    for name, (view, wanted) in made.items():
        back = numpy.from_dlpack(view.exporter(versioned=versioned))
        assert (back == wanted).all() and back.shape == wanted.shape, name
        view.release()
    tensor.release()


def no_elements(versioned):
    for shape in [(0,), (3, 0), (0, 2, 5), ()]:
        source = elements("float64", shape)
        tensor = from_numpy(source, versioned)
        assert tensor.shape == shape
        back = numpy.from_dlpack(tensor.exporter(versioned=versioned))
        assert back.shape == shape and back.dtype == source.dtype and (back == source).all()
        tensor.release()


def writes():
    # The library copies the elements before it writes to them, also those that it could write to.
    for writeable in [False, True]:
        source = elements("float32", (8,))
        source.flags.writeable = writeable
        tensor = from_numpy(source, True)
        tensor.fill(5.0)
        assert tensor.bytes(32) == numpy.full(8, 5, "float32").tobytes()
        assert (source == elements("float32", (8,))).all(), "the producer shows a write"
        tensor.release()
    # NumPy sees what the consumer of an export may do.
    tensor = library.tensor(elements("float32", (8,)), library.constant("SV_DTYPE_F32"))
    back = numpy.from_dlpack(tensor.exporter(flags=READ_ONLY))
    assert not back.flags.writeable
    del back
    back = numpy.from_dlpack(tensor.exporter(flags=WRITABLE))
    back[:] = 9
    assert tensor.bytes(32) == numpy.full(8, 9, "float32").tobytes(), "the tensor does not show a write"
    tensor.release()
    assert (back == 9).all()


def lifetimes(versioned):
    # The producer goes first.
    source = elements("float32", (1000,))
    wanted, alive = source.tobytes(), weakref.ref(source)
    tensor = from_numpy(source, versioned)
    del source
    gc.collect()
    assert alive() is not None, "an array that is imported was freed"
    view = tensor.flip(0)
    tensor.release()
    assert alive() is not None, "an array that a view shows was freed"
    assert view.bytes(4000) == numpy.frombuffer(wanted, "float32")[::-1].tobytes()
    view.release()
    gc.collect()
    assert alive() is None, "an array outlives its last tensor"
    # The consumer goes first.
    source = elements("float32", (1000,))
    tensor = from_numpy(source, versioned)
    tensor.release()
    assert source.tobytes() == wanted
    # An export outlives its handle, and an export that nobody takes over is freed with its capsule.
    tensor = library.tensor(elements("float32", (1000,)), library.constant("SV_DTYPE_F32"))
    back = numpy.from_dlpack(tensor.exporter(versioned=versioned))
    unused = tensor.exporter(versioned=versioned).__dlpack__(**({"max_version": (1, 1)} if versioned else {}))
    tensor.release()
    assert back.tobytes() == wanted
    del back, unused
    gc.collect()
    # A capsule is taken over once.
    source = elements("float32", (4,))
    capsule = source.__dlpack__(max_version=(1, 1)) if versioned else source.__dlpack__()
    library.take(capsule).release()
    try:
        library.take(capsule)
    except ValueError:
        pass
    else:
        raise AssertionError("a capsule was taken over twice")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def exchanges(versioned):
    """Ten thousand exchanges of 64 KiB each: a leak of either side would be 640 MB, one of the structs alone over 1 MB."""
    source = elements("float32", (16384,))
    tensor = library.tensor(source, library.constant("SV_DTYPE_F32"))

    def exchange(count):
        for _ in range(count):
            from_numpy(source, versioned).release()
            numpy.from_dlpack(tensor.exporter(versioned=versioned))

    exchange(1000)
    gc.collect()
    before = resident()
    exchange(10_000)
    gc.collect()
    grown = resident() - before
    assert grown < 1 << 20, f"{grown} bytes more after 10,000 exchanges"
    tensor.release()


for versioned in [False, True] if VERSIONED else [False]:
    for test in [every_dtype, layouts, no_elements, lifetimes, exchanges]:
        test(versioned)
if VERSIONED:
    writes()
