"""Tensors of lists, arrays and buffers, and back; bad data."""

import array
import copy
import pickle
import threading
import time

import numpy as np
import pytest
import selvedge as sv

LISTS = [
    (5, "i64"),
    (2.5, "f64"),
    (True, "bool"),
    (1 + 2j, "c128"),
    ([], "f64"),
    ([[], []], "f64"),
    ([[1, 2], [3, 4]], "i64"),
    ([[1, 2.5], [3, 4]], "f64"),
    (((1, 2), (3j, 4.5)), "c128"),
    ([[True, False]], "bool"),
    ([np.float32(1), np.int64(2)], "f64"),
]


@pytest.mark.parametrize("data, dtype", LISTS)
def test_nested_lists_have_numpys_shape_and_values(data, dtype):
    tensor, wanted = sv.Tensor(data), np.array(data)
    assert tensor.dtype == sv.DType(dtype)
    assert tensor.shape == wanted.shape and tensor.ndim == wanted.ndim and tensor.size == wanted.size
    assert tensor.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "data, error, message",
    [
        ([[1, 2], [3]], ValueError, "data: found a row of 1 at data[1]; wanted rows of 2"),
        ([1, [2]], ValueError, "found list at data[1]; wanted a number"),
        ([[1], 2], ValueError, "found int at data[1]; wanted a row of 1"),
        ([[1.0], [None]], ValueError, "found NoneType at data[1][0]"),
        ([1, "a"], ValueError, "found str at data[1]"),
        ([True, 1], ValueError, "found bools beside numbers at data[1]"),
        ([10**30], ValueError, "at data[0]; wanted integers that i64 holds"),
        ("abc", TypeError, "found str"),
        (object(), TypeError, "found object"),
        (np.array(["a"]), ValueError, "a buffer of the format"),
        (np.array([1, 2], dtype=">i4"), ValueError, "a buffer of the format"),
        (np.array(["2020-01-01"], "M8[D]"), ValueError, "data: found an array of datetime64[D]"),
        (np.array([1], "m8[s]"), ValueError, "data: found an array of timedelta64[s]"),
        (np.array([None]), ValueError, "a buffer of the format"),
    ],
)
def test_bad_data_is_an_exception_that_names_its_place(data, error, message):
    with pytest.raises(error) as raised:
        sv.Tensor(data)
    assert message in str(raised.value)
    assert isinstance(raised.value, sv.Error)


def test_lists_that_are_too_deep_are_refused():
    data = 1
    for _ in range(20):
        data = [data]
    with pytest.raises(ValueError, match="at most 16 dimensions"):
        sv.Tensor(data)


class Endless:
    """A number by its `item()`, which is never one."""

    def item(self):
        return EndlessToo()


class EndlessToo:
    def item(self):
        return Endless()


def test_an_item_that_is_no_number_is_refused():
    for data in [[Endless()], [1.0, EndlessToo()], [[2, Endless()]]]:
        with pytest.raises(ValueError, match="found Endless(Too)? at data"):
            sv.Tensor(data)


class Changes:
    """An element that runs a function while its list is read."""

    def __init__(self, change):
        self.change = change

    def item(self):
        self.change()
        return 1.0


def test_a_list_that_changes_while_it_is_read_is_an_error_or_its_first_elements():
    row = [1.0] * 1000
    row[1] = Changes(row.clear)
    with pytest.raises(ValueError, match="a row of 2; wanted rows of 1000"):
        sv.Tensor(row)
    assert row == []
    rows = [[1.0, 2.0] for _ in range(100)]
    rows[0][0] = Changes(lambda: rows.__delitem__(slice(50, None)))
    with pytest.raises(ValueError, match="a row of 50"):
        sv.Tensor(rows)
    rows = [[1.0, 2.0], [3.0, 4.0]]
    rows[0][0] = Changes(lambda: rows[1].clear())
    with pytest.raises(ValueError, match=r"a row of 0 at data\[1\]; wanted rows of 2"):
        sv.Tensor(rows)
    row = [1.0, 2.0]
    row[0] = Changes(lambda: row.extend([3.0] * 10_000))
    assert sv.Tensor(row).tolist() == [1.0, 2.0]


def test_a_bytearray_is_not_resized_during_its_copy():
    data = bytearray(b"\x01\x02\x03\x04" * 2_000_000)
    refused, done = [], threading.Event()

    def resize():
        while not done.is_set():
            try:
                data.append(5)
            except BufferError:
                refused.append(True)
            time.sleep(1e-4)

    thread = threading.Thread(target=resize)
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while not refused and time.monotonic() < deadline:
            before, tensor = len(data), sv.Tensor(data)
            assert before <= tensor.size <= len(data) and tensor[:4].tolist() == [1, 2, 3, 4]
            assert (tensor[8_000_000:] == 5).all().item()
    finally:
        done.set()
        thread.join()
    # Once at least the thread ran during a copy, which holds the buffer.
    assert refused
    assert sv.Tensor(data).size == len(data) >= 8_000_000


@pytest.mark.parametrize("dtype", ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "c64", "c128", "bool"])
def test_every_dtype_goes_to_numpy_and_back(dtype):
    name = sv.DType(dtype).numpy_name
    wanted = (np.arange(12) % 5).reshape(3, 4).astype(name)
    for view in [wanted, wanted.T, wanted[:, ::2], wanted[::-1], wanted[:0], wanted[1, 1]]:
        tensor = sv.Tensor(view)
        assert tensor.dtype == sv.DType(name)
        for back in [tensor.numpy(), np.asarray(tensor)]:
            assert back.dtype == view.dtype and back.shape == view.shape
            np.testing.assert_array_equal(back, view)
    assert sv.Tensor(wanted.tolist(), dtype=dtype).tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype, width", [("bf16", 2), ("f8e4m3", 1), ("f8e5m2", 1)])
def test_dtypes_that_numpy_lacks_make_the_round_trip(dtype, width):
    # Each of them holds these numbers.
    numbers = [0.0, -0.0, 1.0, -1.5, 0.25, 448.0, 2.0**-9]
    tensor = sv.Tensor(numbers, dtype=dtype)
    assert tensor.dtype == sv.DType(dtype) and tensor.dtype.itemsize == width
    assert tensor.tolist() == tensor.to("f32").tolist() == numbers
    assert tensor.to("f32").to(dtype).tolist() == sv.Tensor(np.float32(numbers), dtype=dtype).tolist() == numbers
    for other in [copy.copy(tensor), copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), sv.from_dlpack(tensor)]:
        assert other.dtype == tensor.dtype and other.tolist() == numbers
    assert str(tensor[1].item()) == "-0.0"
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(TypeError, match=f"{dtype}, which needs the package ml_dtypes"):
            tensor.numpy()
        return
    back = tensor.numpy()
    assert back.dtype == getattr(ml_dtypes, sv.DType(dtype).numpy_name) and back.astype("f4").tolist() == numbers


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3", "f8e5m2"])
def test_arrays_of_ml_dtypes_come_back(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tensor = sv.Tensor([[0.0, -0.0, 1.0], [-1.5, 0.25, 2.0]], dtype=dtype)
    array = tensor.numpy()
    for view, wanted in [(array, tensor), (array.T, tensor.T), (array[:, ::-1], tensor[:, ::-1]), (array[:0], tensor[:0])]:
        for back in [sv.Tensor(view), sv.asarray(view)]:
            assert back.dtype == tensor.dtype and back.shape == wanted.shape and str(back.tolist()) == str(wanted.tolist())
    assert sv.Tensor(array, dtype="f32").dtype == sv.f32
    kind = getattr(ml_dtypes, sv.DType(dtype).numpy_name)
    assert sv.DType(kind) == sv.DType(np.dtype(kind)) == tensor.dtype and sv.Tensor([1], dtype=kind).dtype == tensor.dtype
    # Arrays are arguments of every call, as those of other dtypes are.
    assert str(sv.cat([array, tensor]).tolist()) == str(tensor.tolist() * 2)


def test_arrays_of_jax_come_in():
    jax = pytest.importorskip("jax")
    for dtype in ["float32", "bfloat16", "int8"]:
        array = jax.numpy.arange(4, dtype=dtype)
        for tensor in [sv.Tensor(array), sv.from_dlpack(array)]:
            assert tensor.dtype == sv.DType(dtype) and tensor.tolist() == [0, 1, 2, 3]


def test_dtypes_are_named_by_rust_numpy_and_python():
    for dtype, wanted in [("float32", sv.f32), (np.float32, sv.f32), (np.dtype("i2"), sv.i16), (float, sv.f64), (bool, sv.bool)]:
        assert sv.DType(dtype) == wanted
        assert sv.Tensor([1, 0], dtype=dtype).dtype == wanted
    assert repr(sv.f32) == "selvedge.f32" and str(sv.f32) == "f32" and sv.float32 is not None
    assert sv.f32 != sv.f64 and len({sv.f32, sv.float32}) == 1
    with pytest.raises(ValueError, match="found 'foo'"):
        sv.DType("foo")
    with pytest.raises(TypeError, match="dtype"):
        sv.DType(5)


def test_narrow_integers_are_checked_and_u64_is_whole():
    assert sv.Tensor([2**64 - 1], dtype="u64").item() == 2**64 - 1
    for data, dtype in [([300], "u8"), ([-1], "u64"), ([1.5], "u64")]:
        with pytest.raises(ValueError):
            sv.Tensor(data, dtype=dtype)


def test_buffers_of_the_standard_library_are_arrays():
    assert sv.Tensor(array.array("d", [1, 2])).tolist() == [1.0, 2.0]
    assert sv.Tensor(b"abc").tolist() == [97, 98, 99]
    assert sv.Tensor(memoryview(b"abc")[::-1]).tolist() == [99, 98, 97]


def test_a_tensor_owns_its_elements():
    array_of_numpy = np.zeros(3)
    tensor = sv.Tensor(array_of_numpy)
    array_of_numpy[0] = 1
    tensor.numpy()[1] = 1
    assert tensor.tolist() == [0, 0, 0]


def test_copies_and_pickles_are_equal_and_apart():
    for data in [[[1 + 2j, 3]], [[True]], [], 7]:
        tensor = sv.Tensor(data)
        for other in [copy.copy(tensor), copy.deepcopy(tensor), tensor.copy(), pickle.loads(pickle.dumps(tensor))]:
            assert other.dtype == tensor.dtype and other.equal(tensor)
    other = copy.copy(sv.Tensor([1, 2]))
    tensor = copy.copy(other)
    tensor[0] = 9
    assert other.tolist() == [1, 2]
    for value in [sv.bf16, sv.Device("cpu")]:
        assert pickle.loads(pickle.dumps(value)) == value


def test_one_element_is_a_number():
    tensor = sv.Tensor([[2.5]])
    assert tensor.item() == 2.5 and float(tensor) == 2.5 and int(tensor) == 2 and complex(tensor) == 2.5
    assert bool(tensor) and not sv.Tensor([0.0])
    assert [10, 20, 30][sv.Tensor(1)] == 20
    for bad in [sv.Tensor([1, 2]), sv.Tensor([])]:
        with pytest.raises(ValueError):
            bad.item()
        with pytest.raises(ValueError, match="any\\(\\) and all\\(\\)"):
            bool(bad)
    with pytest.raises(TypeError):
        [1, 2][sv.Tensor(1.0)]


def test_length_iteration_and_text_are_numpys():
    tensor = sv.Tensor([[1, 2], [3, 4]])
    assert len(tensor) == 2 and [row.tolist() for row in tensor] == [[1, 2], [3, 4]]
    assert 3 in tensor and 5 not in tensor
    assert str(tensor) == "[[1 2]\n [3 4]]"
    assert repr(sv.Tensor([1.5])) == "Tensor([1.5], dtype=f64, device=cpu)"
    for function in [len, iter]:
        with pytest.raises(TypeError):
            function(sv.Tensor(1))


def test_tensors_move_to_dtypes_and_devices():
    tensor = sv.Tensor([1.7, 2])
    assert tensor.to("i32").tolist() == [1, 2] and tensor.to("cpu").dtype == sv.f64
    assert tensor.to("cpu", "f32").dtype == sv.f32 and tensor.to(dtype=sv.f16, device=sv.Device("cpu")).dtype == sv.f16
    assert sv.Tensor(tensor, dtype="f32").dtype == sv.f32 and sv.asarray(tensor).equal(tensor)
    assert tensor.cpu().device == sv.Device("cpu") and str(tensor.device) == "cpu" and tensor.device.index is None
    for bad in ["foo", "cuda:x", 5]:
        with pytest.raises((ValueError, TypeError)):
            tensor.to(bad)


def test_a_device_is_a_scope():
    with sv.device("cpu") as device:
        assert sv.zeros(2).device == device
    with pytest.raises(ValueError, match='the name "gpu"'):
        sv.Device("gpu")


def test_a_missing_driver_is_an_exception_that_says_so():
    if sv.Device.best().type == "cuda":
        pytest.skip("there is a device")
    for call in [lambda: sv.zeros(2).cuda(), lambda: sv.zeros(2, device="cuda:0"), lambda: sv.zeros(2).to("cuda")]:
        with pytest.raises(RuntimeError, match="could not be loaded|no device") as raised:
            call()
        assert isinstance(raised.value, sv.DeviceError)


HUGE = 2**70


@pytest.mark.parametrize(
    "call",
    [
        lambda x: sv.permutation(-1),
        lambda x: sv.permutation(HUGE),
        lambda x: sv.randint(0, 2**200, (3,)),
        lambda x: sv.manual_seed(-1),
        lambda x: sv.Generator(2**64),
        lambda x: sv.Generator(1).set_state((-1, 0)),
        lambda x: sv.Device("cpu").manual_seed(HUGE),
        lambda x: sv.zeros(HUGE),
        lambda x: sv.eye(-1),
        lambda x: sv.linspace(0, 1, -1),
        lambda x: sv.linspace(0, 10**400, 3),
        lambda x: sv.set_threads(-1),
        lambda x: x.sum(HUGE),
        lambda x: x.sum(dim=HUGE),
        lambda x: x.softmax(-HUGE),
        lambda x: x.cumsum(HUGE),
        lambda x: x.var(ddof=-1),
        lambda x: x.norm(10**400),
        lambda x: x.topk(-1),
        lambda x: x.narrow(0, -1, 1),
        lambda x: x.select(0, HUGE),
        lambda x: x.chunk(-1),
        lambda x: x.pad([(-1, 0)]),
        lambda x: x.reshape(HUGE),
        lambda x: x.transpose(HUGE, 0),
        lambda x: x.tril(HUGE),
        lambda x: x.bincount(-1),
        lambda x: x.one_hot(HUGE),
        lambda x: x.multinomial(-1),
        lambda x: x.quantile(10**400),
        lambda x: x.add(10**5000),
        lambda x: x.cuda(-1),
        lambda x: sv.srt.fib_mod(-1, 5),
        lambda x: sv.srt.fibonacci(HUGE),
        lambda x: sv.srt.precision_ramp(HUGE, 1),
        lambda x: sv.srt.SymExpr.input(-1),
        lambda x: sv.burst.Network(-1, [], [], [], []),
        lambda x: sv.burst.Network(1, [], [], [], []).run(-1),
        lambda x: sv.burst.Network.generated("S", HUGE, 1),
        lambda x: sv.output((-1,), "f32"),
        lambda x: x.__dlpack__(stream=HUGE),
        lambda x: x.__dlpack__(stream=-HUGE),
        lambda x: x.__dlpack__(max_version=(HUGE, 0)),
        lambda x: x.__dlpack__(dl_device=(1, HUGE)),
    ],
    ids=range(44),
)
def test_an_integer_that_an_argument_cannot_hold_is_an_error_of_the_library(call):
    with pytest.raises(sv.ArgumentError, match="wanted"):
        call(sv.Tensor([1.0, 2.0]))


def test_integers_are_drawn_up_to_the_greatest_of_the_dtype():
    generator = sv.Generator(3)
    for low, high, dtype in [(0, 2**63, "i64"), (2**63 - 1, 2**63, "i64"), (-(2**63), 2**63, "i64"), (0, 2**64, "u64"), (2**64 - 1, 2**64, "u64")]:
        drawn = sv.randint(low, high, (100,), dtype, generator=generator).tolist()
        assert all(low <= number < high for number in drawn)
        # Half of the numbers are in the upper half.
        assert high - low == 1 or 20 < sum(number >= (low + high) // 2 for number in drawn) < 80
    with pytest.raises(sv.ArgumentError, match="wanted at least one, and all from 0 to 18446744073709551615"):
        sv.randint(0, 2**64 + 1, (3,), "u64")
