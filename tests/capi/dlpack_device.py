"""DLPack between the C library and PyTorch, CuPy and JAX on a GPU, for those that are installed: every dtype that both sides
have, strides, pinned memory, streams, lifetimes in either order, also after a reset, and 10,000 exchanges without growth.

    dlpack_device.py libselvedge.so selvedge.h [torch|cupy|jax ...]

Each library runs in a process of its own. The last line says which ran. The exit code is 1 if one of them failed, or if none ran
and none was named.
"""

import ctypes
import gc
import os
import struct
import subprocess
import sys

from dlpack_ctypes import COPY, READ_ONLY, WRITABLE, Library, device_of

# The dtype's name in each library, the constant's in the header, the bytes of an element and the code for `struct`.
DTYPES = [
    ("bool", "BOOL", 1, "?"), ("uint8", "U8", 1, "B"), ("int8", "I8", 1, "b"), ("uint16", "U16", 2, "H"),
    ("int16", "I16", 2, "h"), ("uint32", "U32", 4, "I"), ("int32", "I32", 4, "i"), ("uint64", "U64", 8, "Q"),
    ("int64", "I64", 8, "q"), ("float16", "F16", 2, "e"), ("bfloat16", "BF16", 2, None), ("float32", "F32", 4, "f"),
    ("float64", "F64", 8, "d"), ("complex64", "C64", 8, "2f"), ("complex128", "C128", 16, "2d"),
    ("float8_e4m3fn", "F8E4M3", 1, None), ("float8_e5m2", "F8E5M2", 1, None),
]


def pattern(size, code, count):
    """The bytes of small numbers; small bit patterns for dtypes that `struct` does not know."""
    if code is None:
        return b"".join((index % 100).to_bytes(size, "little") for index in range(count))
    numbers = [index % 2 if code == "?" else index % 100 for index in range(count)]
    return b"".join(struct.pack("<" + code, *([number] * (2 if len(code) == 2 else 1))) for number in numbers)


class Torch:
    name = "torch"

    def __init__(self):
        import torch
        self.torch = torch
        if not torch.cuda.is_available():
            raise ImportError("no device for PyTorch")
        torch.zeros(1, device="cuda")

    def dtype(self, name):
        return getattr(self.torch, name, None)

    def take(self, exporter):
        return self.torch.from_dlpack(exporter)

    def capsule(self, array, stream):
        return array.__dlpack__(stream=stream)

    def make(self, data, dtype, shape):
        if not data:
            return self.torch.empty(shape, dtype=dtype, device="cuda")
        # A view as another dtype needs no support for it on the device.
        flat = self.torch.frombuffer(bytearray(data), dtype=self.torch.uint8).cuda()
        return flat.view(self.torch.uint8).view(dtype).reshape(shape)

    def bytes(self, array):
        flat = array.contiguous().reshape(-1).view(self.torch.uint8)
        return bytes(flat.cpu().numpy().tobytes())

    def strides(self, array):
        return tuple(array.stride())

    def address(self, array):
        return array.data_ptr()

    def views(self, array):
        return {"transposed": array.transpose(0, 1), "a part": array[1:, ::2], "expanded": array[:1].expand(4, -1)}

    def busy(self, count):
        """An array whose last write is at the end of long work on a stream of its own, and that stream."""
        stream = self.torch.cuda.Stream()
        with self.torch.cuda.stream(stream):
            array = self.torch.zeros(count, device="cuda")
            self.torch.cuda._sleep(200_000_000)
            array.fill_(7)
        return array, stream.cuda_stream, lambda: stream.query()

    def on(self, raw):
        return self.torch.cuda.stream(self.torch.cuda.ExternalStream(raw))

    def used(self):
        return self.torch.cuda.memory_allocated()

    def synchronize(self):
        self.torch.cuda.synchronize()


class CuPy:
    name = "cupy"

    def __init__(self):
        import cupy
        self.cupy = cupy
        cupy.zeros(1)

    def dtype(self, name):
        if name.startswith("float8"):
            # CuPy exports them as IEEE floats of 8 bits, which DLPack does not have.
            return None
        try:
            return self.cupy.dtype(name)
        except TypeError:
            return None

    def take(self, exporter):
        return self.cupy.from_dlpack(exporter)

    def capsule(self, array, stream):
        return array.__dlpack__(stream=stream)

    def make(self, data, dtype, shape):
        flat = self.cupy.asarray(bytearray(data), dtype="uint8")
        return flat.view(dtype).reshape(shape)

    def bytes(self, array):
        return self.cupy.ascontiguousarray(array).get().tobytes()

    def strides(self, array):
        return tuple(stride // array.itemsize for stride in array.strides)

    def address(self, array):
        return array.data.ptr

    def views(self, array):
        # CuPy divides a negative stride as an unsigned number, so its capsule of a reversed array is wrong.
        return {"transposed": array.T, "a part": array[1:, ::2]}

    def busy(self, count):
        stream = self.cupy.cuda.Stream(non_blocking=True)
        sleep = self.cupy.RawKernel(
            r'extern "C" __global__ void sleep(float *x, int n) {'
            r"  long long end = clock64() + 200000000; while (clock64() < end);"
            r"  for (int i = 0; i < n; i++) x[i] = 7; }", "sleep")
        array = self.cupy.zeros(count, "float32")
        self.cupy.cuda.Device().synchronize()
        with stream:
            sleep((1,), (1,), (array, count))
        # The stream of `array` for its `__dlpack__` is the current one.
        return array, stream.ptr, lambda: stream.done

    def on(self, raw):
        return self.cupy.cuda.ExternalStream(raw)

    def used(self):
        return self.cupy.get_default_memory_pool().used_bytes()

    def synchronize(self):
        self.cupy.cuda.Device().synchronize()


class Jax:
    name = "jax"

    def __init__(self):
        import jax
        self.jax = jax
        jax.config.update("jax_enable_x64", True)
        if jax.devices()[0].platform != "gpu":
            raise ImportError("no device for JAX")

    def dtype(self, name):
        return getattr(self.jax.numpy, "bool_" if name == "bool" else name, None)

    def take(self, exporter):
        return self.jax.dlpack.from_dlpack(exporter)

    def capsule(self, array, stream):
        return array.__dlpack__(stream=stream)

    def make(self, data, dtype, shape):
        import numpy
        return self.jax.numpy.asarray(numpy.frombuffer(data, numpy.dtype(dtype)).reshape(shape))

    def bytes(self, array):
        import numpy
        return numpy.asarray(array).tobytes()

    def strides(self, array):
        strides, last = [], 1
        for size in reversed(array.shape):
            strides.insert(0, last)
            last *= size
        return tuple(strides)

    def address(self, array):
        return array.unsafe_buffer_pointer()

    def views(self, array):
        # JAX has no views: its arrays are row-major.
        return {}

    busy = on = None

    def used(self):
        return self.jax.devices()[0].memory_stats()["bytes_in_use"]

    def synchronize(self):
        (self.jax.numpy.zeros(1) + 1).block_until_ready()


FRAMEWORKS = {framework.name: framework for framework in (Torch, CuPy, Jax)}


class Run:
    def __init__(self, library, framework):
        self.library, self.framework, self.left_out = library, framework, []
        self.stream = ctypes.c_uint64(library.make("sv_stream_current", 0))
        raw = ctypes.c_void_p()
        library.call("sv_stream_raw", self.stream, ctypes.byref(raw))
        self.raw = raw.value

    def take(self, array):
        """Imports an array, which is ordered before the stream of this thread's operations."""
        return self.library.take(self.framework.capsule(array, self.raw))

    def every_dtype(self):
        count = 0
        for name, constant, size, code in DTYPES:
            dtype = self.framework.dtype(name)
            if dtype is None:
                self.left_out.append(name)
                continue
            data = pattern(size, code, 12)
            try:
                source = self.framework.make(data, dtype, (3, 4))
                capsule = self.framework.capsule(source, self.raw)
            except (TypeError, BufferError, RuntimeError, ValueError, NotImplementedError) as error:
                # The other library does not have the dtype on a device, or not in DLPack.
                self.left_out.append(f"{name} ({type(error).__name__})")
                continue
            tensor = self.library.take(capsule)
            assert tensor.dtype == self.library.constant("SV_DTYPE_" + constant), name
            assert (tensor.device, tensor.shape, tensor.strides) == (0, (3, 4), (4, 1)), name
            assert tensor.bytes(len(data)) == data, name
            tensor.release()
            tensor = self.library.from_bytes(data, self.library.constant("SV_DTYPE_" + constant), (3, 4), 0)
            back = self.framework.take(tensor.exporter(flags=WRITABLE))
            tensor.release()
            assert self.framework.bytes(back) == data, name
            count += 1
        assert count >= 9, f"{count} dtypes were exchanged; left out: {self.left_out}"

    def layouts(self):
        source = self.framework.make(pattern(4, "f", 24), self.framework.dtype("float32"), (4, 6))
        for name, view in self.framework.views(source).items():
            tensor = self.take(view)
            assert tensor.shape == tuple(view.shape), name
            assert tensor.strides == self.framework.strides(view), name
            wanted = self.framework.bytes(view)
            assert tensor.bytes(len(wanted)) == wanted, name
            back = self.framework.take(tensor.exporter(flags=WRITABLE))
            assert self.framework.bytes(back) == wanted, name
            tensor.release()

    def no_elements(self):
        source = self.framework.make(b"", self.framework.dtype("float32"), (0, 3))
        tensor = self.take(source)
        assert tensor.shape == (0, 3) and tensor.bytes(0) == b""
        back = self.framework.take(tensor.exporter(flags=WRITABLE))
        assert tuple(back.shape) == (0, 3)
        tensor.release()

    def without_copies(self):
        source = self.framework.make(pattern(4, "f", 24), self.framework.dtype("float32"), (4, 6))
        self.framework.synchronize()
        tensor = self.take(source)
        back = self.framework.take(tensor.exporter(flags=WRITABLE))
        # Elements that only this tensor holds are written where they are.
        assert self.framework.address(back) == self.framework.address(source), "an exchange copied the elements"
        tensor.release()
        tensor = self.take(source)
        back = self.framework.take(tensor.exporter(flags=COPY))
        assert self.framework.address(back) != self.framework.address(source), "a copy shares the elements"
        tensor.release()

    def read_only(self):
        """A library either takes elements that it must not write to, or refuses them."""
        data = pattern(4, "f", 24)
        tensor = self.library.from_bytes(data, self.library.constant("SV_DTYPE_F32"), (4, 6), 0)
        try:
            back = self.framework.take(tensor.exporter(flags=READ_ONLY))
            assert self.framework.bytes(back) == data
        except (BufferError, RuntimeError, ValueError) as error:
            self.left_out.append(f"read-only ({type(error).__name__})")
        tensor.release()

    def pinned(self):
        """Pinned memory goes out as device type 3, and comes back without a copy. Not every library takes it."""
        data = pattern(4, "f", 24)
        for versioned in (True, False):
            tensor, place = self.library.pinned(data, self.library.constant("SV_DTYPE_F32"), (4, 6))
            exporter = tensor.exporter(versioned=versioned, pinned=True)
            capsule = exporter.__dlpack__(max_version=(1, 0))
            assert device_of(capsule) == (3, 0), device_of(capsule)
            back = self.library.take(capsule)
            again = back.exporter(pinned=True).__dlpack__(max_version=(1, 0))
            assert back.device == -1 and back.bytes(96) == data and device_of(again) == (3, 0)
            back.release()
            try:
                taken = self.framework.take(exporter)
                assert self.framework.bytes(taken) == data, "the other library read other elements"
            except (BufferError, RuntimeError, TypeError, ValueError) as error:
                self.left_out.append(f"pinned ({type(error).__name__})")
            try:
                import numpy
            except ImportError:
                self.left_out.append("pinned (no NumPy)")
            else:
                taken = numpy.from_dlpack(exporter)
                assert taken.ctypes.data == place and taken.tobytes() == data, "NumPy did not share pinned memory"
                tensor.release()
                assert taken.tobytes() == data, "pinned memory was freed under an export"
                continue
            tensor.release()

    def streams(self):
        if self.framework.busy is None:
            self.left_out.append("streams")
            return
        # A producer that still runs is not overtaken, and the host does not wait for it.
        array, raw, done = self.framework.busy(1 << 20)
        with self.framework.on(raw):
            tensor = self.take(array)
        waited = done()
        wanted = struct.pack("<f", 7.0) * (1 << 20)
        assert tensor.bytes(len(wanted)) == wanted, "the import overtook its producer"
        assert not waited, "the host waited for the producer"
        tensor.release()
        # A consumer waits for the library's work, which still runs.
        tensor = self.library.from_bytes(b"\0" * (64 << 20), self.library.constant("SV_DTYPE_F32"), (16 << 20,), 0)
        tensor.fill(3.0)
        for _ in range(50):
            tensor.fill(4.0)
        tensor.fill(5.0)
        back = self.framework.take(tensor.exporter(flags=WRITABLE))
        tensor.release()
        assert self.framework.bytes(back) == struct.pack("<f", 5.0) * (16 << 20), "a consumer overtook the export"

    def lifetimes(self):
        data = pattern(4, "f", 24)
        dtype = self.framework.dtype("float32")
        # The producer goes first.
        source = self.framework.make(data, dtype, (4, 6))
        tensor = self.take(source)
        del source
        gc.collect()
        others = [self.framework.make(b"\xff" * 96, dtype, (4, 6)) for _ in range(8)]
        assert tensor.bytes(96) == data, "the memory of an import was reused"
        tensor.release()
        del others
        # The tensor goes first.
        tensor = self.library.from_bytes(data, self.library.constant("SV_DTYPE_F32"), (4, 6), 0)
        back = self.framework.take(tensor.exporter(flags=WRITABLE))
        tensor.release()
        other = self.library.from_bytes(b"\xff" * 96, self.library.constant("SV_DTYPE_F32"), (4, 6), 0)
        assert self.framework.bytes(back) == data, "the memory of an export was reused"
        other.release()
        # An export that nobody takes over is freed with its capsule.
        tensor = self.library.from_bytes(data, self.library.constant("SV_DTYPE_F32"), (4, 6), 0)
        capsule = tensor.exporter().__dlpack__(max_version=(1, 0))
        tensor.release()
        del capsule, back
        gc.collect()

    def exchanges(self):
        source = self.framework.make(pattern(4, "f", 16384), self.framework.dtype("float32"), (16384,))
        tensor = self.library.from_bytes(pattern(4, "f", 16384), self.library.constant("SV_DTYPE_F32"), (16384,), 0)

        def exchange(count):
            for _ in range(count):
                self.take(source).release()
                self.framework.take(tensor.exporter(flags=WRITABLE))

        def sizes():
            gc.collect()
            self.framework.synchronize()
            self.library.call("sv_device_synchronize", 0)
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            driver = ctypes.CDLL("libcuda.so.1")
            assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
            with open("/proc/self/statm", encoding="ascii") as file:
                return self.framework.used(), -free.value, int(file.read().split()[1]) * 4096

        exchange(1000)
        before = sizes()
        exchange(10_000)
        after = sizes()
        limits = (0, 64 << 20, 4 << 20)
        grown = [new - old for new, old in zip(after, before)]
        assert all(size <= limit for size, limit in zip(grown, limits)), f"grew by {grown} bytes (used, device, host)"
        tensor.release()

    def after_a_reset(self):
        """Last: the reset takes the memory of the whole process along. Objects that are freed afterwards must not crash."""
        source = self.framework.make(pattern(4, "f", 24), self.framework.dtype("float32"), (4, 6))
        tensor = self.take(source)
        made = self.library.from_bytes(pattern(4, "f", 24), self.library.constant("SV_DTYPE_F32"), (4, 6), 0)
        capsule = made.exporter().__dlpack__(max_version=(1, 0))
        self.framework.synchronize()
        self.library.call("sv_device_synchronize", 0)
        self.library.call("sv_device_reset", 0)
        tensor.release()
        made.release()
        del capsule
        gc.collect()


def child(path, header, name):
    try:
        framework = FRAMEWORKS[name]()
    except ImportError as error:
        print(f"{name}: not run: {error}")
        return 0
    run = Run(Library(path, header), framework)
    for test in [run.every_dtype, run.layouts, run.no_elements, run.without_copies, run.read_only, run.pinned, run.streams,
                 run.lifetimes, run.exchanges]:
        test()
        print(f"{name}: {test.__name__} ok", flush=True)
    print(f"{name}: left out: {', '.join(run.left_out) or 'nothing'}", flush=True)
    run.after_a_reset()
    print(f"{name}: passed", flush=True)
    # The other library's own objects are of a context that is gone: its exit is not this test's.
    os._exit(0)


def main():
    path, header, *names = sys.argv[1:]
    if names[:1] == ["--child"]:
        return child(path, header, names[1])
    passed, failed = [], []
    for name in names or FRAMEWORKS:
        command = [sys.executable, "-B", __file__, path, header, "--child", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        print(done.stdout + done.stderr, end="")
        if done.returncode != 0:
            failed.append(name)
        elif f"{name}: passed" in done.stdout:
            passed.append(name)
    print(f"dlpack: passed with {', '.join(passed) or 'none'}; failed with {', '.join(failed) or 'none'}")
    return 1 if failed or not (passed or names) else 0


if __name__ == "__main__":
    sys.exit(main())
