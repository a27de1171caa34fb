"""The words of NumPy and PyTorch: keywords, protocols and answers without an axis."""

import hashlib

import numpy as np
import pytest
import selvedge as sv

X = np.arange(24, dtype="f8").reshape(2, 3, 4) - 7


def same(found, wanted):
    if isinstance(found, (tuple, list)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            same(one, other)
    else:
        assert found.equal(wanted)


AXIS = {
    **{name: () for name in "sum prod min max argmin argmax any all count_nonzero mean logsumexp var std norm".split()},
    **{name: () for name in "nansum nanmean aminmax std_mean var_mean cumsum cumprod cummax cummin".split()},
    **{name: () for name in "max_with_indices min_with_indices mode median nanmedian diff softmax log_softmax".split()},
    **{name: () for name in "normalize standardize sort sorted argsort unsqueeze unbind".split()},
    "quantile": (0.5,), "nanquantile": (0.5,), "topk": (2,), "kthvalue": (2,), "split": ([1, 2],), "chunk": (3,), "repeat_interleave": (2,),
}


@pytest.mark.parametrize("name", AXIS)
def test_dim_is_another_name_of_axis(name):
    method = getattr(sv.Tensor(X), name)
    same(method(*AXIS[name], dim=1), method(*AXIS[name], axis=1))
    with pytest.raises(sv.ArgumentError, match=f"{name}: found both axis and dim; wanted one of them"):
        method(*AXIS[name], axis=1, dim=1)


def test_dim_is_the_axis_of_calls_that_need_one():
    x, index = sv.Tensor(X), sv.Tensor(np.zeros((2, 1, 4), "i8"))
    for name, arguments in {
        "gather": {"index": index}, "take_along_axis": {"index": index}, "index_select": {"index": sv.Tensor([1, 0])},
        "scatter": {"index": index, "elements": sv.Tensor(X)[:, :1]}, "scatter_add": {"index": index, "elements": sv.Tensor(X)[:, :1]},
        "scatter_reduce": {"index": index, "elements": sv.Tensor(X)[:, :1], "reduction": "amax"},
        "index_add": {"index": sv.Tensor([1]), "elements": sv.Tensor(X)[:, :1]},
        "index_copy": {"index": sv.Tensor([1]), "elements": sv.Tensor(X)[:, :1]},
        "index_fill": {"index": sv.Tensor([1]), "number": 5}, "narrow": {"start": 1, "length": 2}, "select": {"index": 1},
        "unfold": {"size": 2, "step": 1}, "unflatten": {"sizes": (3, 1)},
    }.items():
        method = getattr(x, name)
        same(method(dim=1, **arguments), method(1, *arguments.values()))
        with pytest.raises(sv.DTypeError, match=f"{name} wants axis=..., but found no axis"):
            method(**arguments)
        with pytest.raises(sv.DTypeError, match=f"{name} wants {list(arguments)[0]}=..., but found no"):
            method(1)
    same(x.flip(dims=(0, 1)), x.flip((0, 1)))
    same(x.roll(1, dims=2), x.roll(1, 2))
    same(x[:, :1].squeeze(dim=1), x[:, 0])
    same(sv.cat([x, x], dim=1), sv.cat([x, x], 1))
    same(sv.stack([x, x], dim=-1), sv.stack([x, x], -1))


def test_keepdims_ddof_and_unbiased_are_numpys_and_pytorchs():
    x = sv.Tensor(X)
    for name in "sum prod min max argmin argmax any all count_nonzero mean logsumexp var std norm".split():
        same(getattr(x, name)(axis=1, keepdims=True), getattr(x, name)(axis=1, keepdim=True))
    for name in ["var", "std"]:
        for ddof in [0, 1, 2]:
            np.testing.assert_allclose(getattr(x, name)(axis=1, ddof=ddof).numpy(), getattr(np, name)(X, axis=1, ddof=ddof))
        same(getattr(x, name)(unbiased=False), getattr(x, name)(correction=0))
        same(getattr(x, name)(unbiased=True), getattr(x, name)())
        with pytest.raises(sv.ArgumentError, match="both ddof and unbiased"):
            getattr(x, name)(ddof=1, unbiased=True)
        with pytest.raises(sv.ArgumentError, match="both correction and"):
            getattr(x, name)(correction=1, ddof=1)
    same(x.std_mean(ddof=0), x.std_mean(correction=0))
    np.testing.assert_allclose(x[0].cov(ddof=0).numpy(), np.cov(X[0], ddof=0))


def test_clamp_takes_one_bound_or_two():
    x = sv.Tensor([-2.0, 0.5, 3.0, float("nan")])
    for arguments, wanted in [
        ({"min": 0}, [0, 0.5, 3]), ({"max": 1}, [-2, 0.5, 1]), ({"min": 0, "max": 1}, [0, 0.5, 1]), ({"low": 0, "high": 1}, [0, 0.5, 1]),
    ]:
        found = x.clamp(**arguments).tolist()
        assert found[:3] == wanted and found[3] != found[3]
        assert sv.fuse(lambda x: x.clamp(**arguments))(x).tolist()[:3] == wanted
    same(x.clamp(0, 1)[:3], x.clamp(min=0, max=1)[:3])
    for bad in [{}, {"min": 0, "low": 0}, {"max": 0, "high": 0}]:
        with pytest.raises(sv.Error, match="clamp"):
            x.clamp(**bad)


def test_without_an_axis_an_order_statistic_is_that_of_all_elements():
    x = sv.Tensor(X)
    # Of an even number the median is the lower one, as of PyTorch.
    assert x.median().item() == x.nanmedian().item() == np.sort(X.ravel())[11] and x.median().shape == ()
    assert x[0, 0, :3].median().item() == np.median(X[0, 0, :3])
    assert x.quantile(0.5).item() == x.nanquantile(0.5).item() == np.median(X)
    for q in [0.0, 0.3, 1.0]:
        assert x.T.quantile(q).item() == pytest.approx(np.quantile(X, q))
    assert sv.Tensor(5.0).median().item() == sv.Tensor(5.0).quantile(0.5).item() == 5
    nan = sv.Tensor([[1.0, float("nan")], [3.0, 2.0]])
    assert np.isnan(nan.median().item()) and np.isnan(nan.quantile(0.5).item())
    assert nan.nanmedian().item() == nan.nanquantile(0.5).item() == 2
    for empty in [lambda: sv.zeros((0, 3)).median(), lambda: sv.zeros((0, 3)).quantile(0.5)]:
        with pytest.raises(sv.ArgumentError, match="at least one element"):
            empty()


def test_an_ellipsis_is_no_axis():
    x = sv.Tensor(X)
    for name in [*AXIS, "squeeze"]:
        if name not in ["split", "chunk"]:
            with pytest.raises(sv.DTypeError, match="found ellipsis"):
                getattr(x, name)(*AXIS.get(name, ()), axis=...)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_sizes_are_integers_or_one_tuple(name):
    function = getattr(sv, name)
    for call in [
        lambda **others: function(2, 3, **others), lambda **others: function((2, 3), **others), lambda **others: function([2, 3], **others),
        lambda **others: function(shape=(2, 3), **others), lambda **others: function(sv.Tensor(2), np.int64(3), **others),
    ]:
        made, cast = call(), call(dtype="f64", device="cpu")
        assert made.shape == cast.shape == (2, 3) and (made.dtype, cast.dtype) == (sv.f32, sv.f64)
    for dtype in ["f64", sv.f64, np.float64, float]:
        assert function(2, 3, dtype).dtype == function((2, 3), dtype, "cpu").dtype == function(2, 3, dtype, device="cpu").dtype == sv.f64
    assert function(3).shape == function((3,)).shape == function(3, None, None).shape == (3,) and function(()).shape == ()
    for call, error, message in [
        (lambda: function((2, 3), 4), sv.DTypeError, r"several sizes are one argument, such as \(2, 3\)"),
        (lambda: function(2, 3.5), sv.DTypeError, "found float"),
        (lambda: function(2, -3), sv.ArgumentError, "a size of -3"),
        (lambda: function(2, 2**70), sv.ArgumentError, "integers of at most 64 bits"),
        (lambda: function(2, "f32", dtype="f32"), sv.DTypeError, f"{name} wants one dtype, but found dtype twice"),
        (lambda: function(2, "f32", "cpu", None, 5), sv.DTypeError, f"{name} wants sizes first"),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_sizes_come_first_and_the_others_keep_their_positions():
    for function in [sv.zeros, sv.ones, sv.empty]:
        with pytest.raises(sv.DTypeError, match="wants shape=..., but found no shape"):
            function()
    assert sv.rand().shape == sv.randn(dtype="f64").shape == ()
    same(sv.rand(2, 3, "f64", "cpu", sv.Generator(7)), sv.rand((2, 3), "f64", generator=sv.Generator(7)))
    same(sv.randn((2, 3), "f64", "cpu", sv.Generator(7)), sv.randn(2, 3, dtype="f64", generator=sv.Generator(7)))


def test_numel_and_dim_are_pytorchs_names():
    for shape in [(), (0, 4), (2, 3, 4)]:
        x = sv.zeros(shape)
        assert (x.numel(), x.dim()) == (x.size, x.ndim) == (int(np.prod(shape)), len(shape))


def test_fill_returns_the_tensor():
    x = sv.zeros((2,))
    assert x.fill_(7) is x and x.tolist() == [7, 7]


def test_tensors_are_keys_by_identity():
    x, y = sv.Tensor([1]), sv.Tensor([1])
    table = {x: "x", y: "y"}
    assert table[x] == "x" and table[y] == "y" and hash(x) == hash(x) and len({x, y, x}) == 2


def test_formats_are_those_of_the_number():
    x = sv.Tensor([[1.25, -3.0]])
    assert f"{x[0, 0]:.1f} {x[0, 1]:+08.2f} {x.sum():e}" == f"{1.25:.1f} {-3.0:+08.2f} {-1.75:e}"
    assert f"{sv.Tensor(7):04d} {sv.Tensor(1 + 2j):.1f}" == "0007 1.0+2.0j"
    assert f"{x}" == str(x) and format(x[0, 0]) == str(x[0, 0])
    with pytest.raises(sv.DTypeError, match=r'the format ".2f" for a tensor of shape \[1, 2\]'):
        f"{x:.2f}"
    with pytest.raises(ValueError):
        f"{x[0, 0]:q}"


DTYPES = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "c64", "c128", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_show_the_elements(dtype):
    wanted = (np.arange(12) % 2).reshape(3, 4).astype(sv.DType(dtype).numpy_name)
    x = sv.Tensor(wanted)
    for tensor, array in [(x, wanted), (x.T, wanted.T), (x[::-1, ::2], wanted[::-1, ::2]), (x[:0], wanted[:0]), (x[1, 1], wanted[1, 1])]:
        view = memoryview(tensor)
        assert view.readonly and view.shape == array.shape == tensor.shape and view.itemsize == array.itemsize
        assert view.strides == tensor.strides
        if tensor.size:
            assert tensor.strides == array.strides
        assert view.tobytes() == np.ascontiguousarray(array).tobytes()
        np.testing.assert_array_equal(np.asarray(view), array)
    assert np.asarray(memoryview(x)).ctypes.data == x.data_ptr()
    assert bytes(x) == wanted.tobytes()


def test_a_buffer_keeps_its_elements():
    x = sv.Tensor([1.0, 2.0])
    view = memoryview(x)
    x[0] = 9
    assert view.tolist() == [1, 2] and x.tolist() == [9, 2]
    del x
    assert view.tolist() == [1, 2]
    view.release()


def test_buffers_that_cannot_be_are_refused():
    with pytest.raises(BufferError, match="bf16"):
        memoryview(sv.ones((2,), dtype="bf16"))
    with pytest.raises(TypeError, match="read-only"):
        memoryview(sv.Tensor([1]))[0] = 5
    with pytest.raises(BufferError, match="contiguous"):
        hashlib.sha256(sv.Tensor(X).T)


def test_addresses_are_of_the_first_element():
    x = sv.Tensor(X)
    assert x[1:].data_ptr() == x.data_ptr() + x.strides[0]
    assert x[:, ::-1].data_ptr() == x.data_ptr() + 2 * x.strides[1]
    assert sv.zeros((0,)).data_ptr() == 0
