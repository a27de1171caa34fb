"""The C library's DLPack functions by ctypes, for tests: tensors with their handles, exports as capsules and imports of them."""

import ctypes
import re

READ_ONLY, COPY, WRITABLE = 0, 1, 2
NO_STREAM, LEGACY_STREAM = -1, 1

# A capsule points to its name, so the names live as long as the process.
NAMES = {
    versioned: [ctypes.create_string_buffer(prefix + name) for prefix in (b"", b"used_")]
    for versioned, name in [(True, b"dltensor_versioned"), (False, b"dltensor")]
}
# Offsets of the deleter in DLManagedTensorVersioned and in DLManagedTensor.
DELETER = {True: 16, False: 56}

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
# By address, because a capsule that is being freed must get no reference.
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]


def _address(name):
    return ctypes.addressof(name)


def device_of(capsule):
    """Returns the device type and the ordinal in a capsule's struct."""
    for versioned, (name, _) in NAMES.items():
        if _is_valid(id(capsule), _address(name)):
            at = _pointer(id(capsule), _address(name)) + (40 if versioned else 8)
            return tuple((ctypes.c_int32 * 2).from_address(at))
    raise ValueError("the capsule holds no array")


def _delete(managed, versioned):
    address = ctypes.c_void_p.from_address(managed + DELETER[versioned]).value
    if address:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(managed)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _free_unused(capsule):
    """The destructor of a capsule: frees an export that no consumer took over."""
    for versioned, (name, _) in NAMES.items():
        if _is_valid(capsule, _address(name)):
            _delete(_pointer(capsule, _address(name)), versioned)


class Number(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("integer", ctypes.c_int64),
                ("real", ctypes.c_double), ("imaginary", ctypes.c_double)]


class Operand(ctypes.Structure):
    _fields_ = [("tensor", ctypes.c_uint64), ("number", Number)]


class Library:
    def __init__(self, path, header):
        self.functions = ctypes.CDLL(path)
        self.functions.sv_last_error.restype = ctypes.c_char_p
        with open(header, encoding="utf-8") as file:
            self.constants = dict(re.findall(r"^#define (SV_\w+) \(?(-?\d+)\)?$", file.read(), re.MULTILINE))

    def constant(self, name):
        return int(self.constants[name])

    def call(self, name, *arguments):
        status = getattr(self.functions, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: status {status}: {self.functions.sv_last_error().decode()}")

    def make(self, name, *arguments):
        """Calls a function that writes a handle through its last parameter."""
        handle = ctypes.c_uint64()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle.value

    def tensor(self, array, dtype, device=-1):
        """Copies the elements of a contiguous NumPy array."""
        data, rank = array.tobytes(), len(array.shape)
        return self.from_bytes(data, dtype, array.shape, device) if rank else self.from_bytes(data, dtype, (), device)

    def from_bytes(self, data, dtype, shape, device):
        shape = (ctypes.c_int64 * max(len(shape), 1))(*shape), len(shape)
        handle = self.make("sv_tensor_from_host", ctypes.c_char_p(data), ctypes.c_size_t(len(data)), dtype, shape[0],
                           ctypes.c_size_t(shape[1]), device)
        return Tensor(self, handle)

    def pinned(self, data, dtype, shape):
        """Returns a tensor in pinned memory, and the memory's address."""
        memory = ctypes.c_uint64(self.make("sv_pinned_create", 0, ctypes.c_size_t(len(data))))
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.call("sv_pinned_data", memory, ctypes.byref(address), ctypes.byref(size))
        ctypes.memmove(address, data, len(data))
        shape = (ctypes.c_int64 * len(shape))(*shape), ctypes.c_size_t(len(shape))
        tensor = Tensor(self, self.make("sv_tensor_from_pinned", memory, dtype, *shape))
        self.call("sv_release", memory)
        return tensor, address.value

    def take(self, capsule):
        """Takes over the array of a capsule. The struct stays the producer's if the library refuses it."""
        for versioned, (name, used) in NAMES.items():
            if _is_valid(id(capsule), _address(name)):
                managed = ctypes.c_void_p(_pointer(id(capsule), _address(name)))
                handle = self.make("sv_tensor_from_dlpack" + ("" if versioned else "_legacy"), managed)
                if _rename(id(capsule), _address(used)) != 0:
                    raise RuntimeError("a capsule without a name")
                return Tensor(self, handle)
        raise ValueError("the capsule holds no array, or was taken over already")


class Exporter:
    """The argument of another library's `from_dlpack`: an array with `__dlpack__` and `__dlpack_device__`."""

    def __init__(self, tensor, flags, versioned, device_type):
        self.tensor, self.flags, self.versioned, self.device_type = tensor, flags, versioned, device_type

    def __dlpack_device__(self):
        return (self.device_type, max(self.tensor.device, 0))

    def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("another device")
        versioned = self.versioned and max_version is not None and max_version[0] >= 1
        flags = COPY if copy else self.flags
        if stream is None:
            stream = LEGACY_STREAM if self.device_type == 2 else NO_STREAM
        managed = ctypes.c_void_p()
        self.tensor.library.call("sv_tensor_to_dlpack" + ("" if versioned else "_legacy"),
                                 ctypes.c_uint64(self.tensor.handle), ctypes.c_uint32(flags), ctypes.c_int64(stream),
                                 ctypes.byref(managed))
        return _new(managed, _address(NAMES[versioned][0]), ctypes.cast(_free_unused, ctypes.c_void_p))


class Tensor:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def _number(self, name, kind):
        number = kind()
        self.library.call(name, ctypes.c_uint64(self.handle), ctypes.byref(number))
        return number.value

    def _numbers(self, name):
        rank = self._number("sv_tensor_rank", ctypes.c_size_t)
        numbers = (ctypes.c_int64 * max(rank, 1))()
        self.library.call(name, ctypes.c_uint64(self.handle), numbers, ctypes.c_size_t(rank))
        return tuple(numbers[:rank])

    dtype = property(lambda self: self._number("sv_tensor_dtype", ctypes.c_int32))
    device = property(lambda self: self._number("sv_tensor_device", ctypes.c_int32))
    shape = property(lambda self: self._numbers("sv_tensor_shape"))
    strides = property(lambda self: self._numbers("sv_tensor_strides"))

    def _view(self, name, *arguments):
        return Tensor(self.library, self.library.make(name, ctypes.c_uint64(self.handle), *arguments))

    def transpose(self, first, second):
        return self._view("sv_tensor_transpose", ctypes.c_int64(first), ctypes.c_int64(second))

    def flip(self, axis):
        return self._view("sv_tensor_flip", (ctypes.c_int64 * 1)(axis), ctypes.c_size_t(1))

    def fill(self, number):
        operand = Operand(0, Number(self.library.constant("SV_NUMBER_REAL"), 0, 0, number, 0.0))
        self.library.call("sv_tensor_assign", ctypes.c_uint64(self.handle), ctypes.byref(operand))

    def bytes(self, count):
        """Returns the elements in row-major order, `count` bytes of them."""
        data = ctypes.create_string_buffer(max(count, 1))
        self.library.call("sv_tensor_to_host", ctypes.c_uint64(self.handle), data, ctypes.c_size_t(count))
        return data.raw[:count]

    def exporter(self, flags=READ_ONLY, versioned=True, pinned=False):
        return Exporter(self, flags, versioned, 2 if self.device >= 0 else 3 if pinned else 1)

    def release(self):
        """Drops the handle's reference. Tensors are released by hand, so that tests know when."""
        self.library.call("sv_release", ctypes.c_uint64(self.handle))
        self.handle = 0
