"""Counts that no memory holds are errors of the library: no call aborts the process, whatever the operand or the argument.

The calls run in a child whose memory is limited. It names each call before it makes it, so that a child that dies tells which
call killed it. Reductions of so many elements are left out, because they need no memory but years.
"""

import subprocess
import sys

import pytest
import selvedge as sv

COUNTS = [2**44, 2**62]

# The arguments of methods beside the tensor `x` of a vector of `count` elements.
ARGUMENTS = {
    "add sub mul div floor_divide trunc_divide remainder fmod minimum maximum fmin fmax eq ne lt le gt ge logical_and logical_or "
    "logical_xor copysign hypot atan2 pow log_add_exp xlogy xlog1py heaviside next_after": "(y,)",
    "bit_and bit_or bit_xor shift_left shift_right": "(y,)",
    "mul_high": "(y,)",
    "choose fma lerp": "(y, y)",
    "clamp": "(0, y)",
    "cumsum cumprod cummax cummin": "(0,)",
    "kthvalue topk": "(count,)",
    "quantile nanquantile": "(0.5,)",
    "searchsorted bucketize": "(y,)",
    "isin": "(y,)",
    "isclose": "(y,)",
    "outer kron cdist": "(y,)",
    "cast astype": "('c128',)",
    "repeat": "(2,)",
    "repeat_interleave": "(2, 0)",
    "pad": "([(1, 1)],)",
    "roll": "(1, 0)",
    "one_hot": "(4,)",
    "masked_fill": "(y.cast('bool'), 1)",
    "masked_select": "(m,)",
    "masked_scatter": "(m, y)",
    "gather take_along_axis index_select": "(0, i)",
    "take": "(i,)",
    "scatter scatter_add index_copy index_add": "(0, i, y)",
    "index_fill": "(0, i, 1)",
    "index_put": "([i], y)",
    "put": "(i, y)",
    "nan_to_num": "()",
    "layer_norm rms_norm": "(count,)",
    "multinomial": "(count,)",
    "diff": "()",
    "bincount": "()",
    "histc": "(4,)",
}
DTYPES = {"bit_and": "i64", "bit_or": "i64", "bit_xor": "i64", "bit_not": "i64", "shift_left": "i64", "shift_right": "i64", "mul_high": "u64"}
DTYPES |= {"one_hot": "i64", "choose": "bool", "bincount": "i64"}

WITHOUT = (
    "neg abs sign sqrt rsqrt reciprocal square floor ceil trunc round frac relu is_nan is_infinite is_finite logical_not bit_not "
    "exp exp2 expm1 log log2 log10 log1p sinh cosh tanh asinh acosh atanh sigmoid silu softplus sin cos tan asin acos atan sinc "
    "angle cbrt erf erfc gelu gelu_tanh lgamma logit signbit radians degrees copy contiguous tolist numpy sort sorted argsort msort "
    "median nanmedian mode unique unique_with_counts unique_consecutive unique_consecutive_with_counts softmax log_softmax "
    "standardize diag"
).split()

# Calls with a count, and views, which succeed at any count that a shape holds.
CALLS = [
    "sv.zeros((count,))", "sv.ones((count,))", "sv.empty((count,))", "sv.full((count,), 1)", "sv.arange(count)", "sv.linspace(0, 1, count)",
    "sv.logspace(0, 1, count)", "sv.eye(count)", "sv.eye(1, count)", "sv.rand((count,))", "sv.randn((count,))", "sv.uniform(0, 1, (count,))",
    "sv.normal(0, 1, (count,))", "sv.bernoulli(0.5, (count,))", "sv.randint(0, 9, (count,))", "sv.permutation(count)",
    "sv.zeros_like(one.expand(count))", "sv.ones_like(one.expand(count))", "sv.empty_like(one.expand(count))",
    "sv.rand_like(one.expand(count))", "sv.randn_like(one.expand(count))", "sv.full_like(one.expand(count), 1)",
    "sv.cat([one.expand(count), one])", "sv.stack([one.expand(count)] * 2)", "sv.meshgrid([one.expand(count), one])",
    "sv.where(one.expand(count) > 0, one, one)", "one.repeat(count)", "one.repeat_interleave(count, 0)", "one.pad([(count, 0)])",
    "one.pad([(0, count)], mode='replicate')", "one.pad([(count, count)], mode='reflect')", "one.pad([(count, count)], mode='circular')",
    "sv.Tensor([0]).one_hot(count)", "sv.Tensor([0]).bincount(count)", "one.histc(count)", "one.topk(count)", "one.kthvalue(count)",
    "one.multinomial(count)", "one.multinomial(count, True)", "one.chunk(count)", "one.split([count])", "one.split(count)", "one.unfold(0, count, 1)",
    "one.unfold(0, 1, count)", "one.narrow(0, 0, count)", "one.narrow(0, count, 1)", "one.select(0, count)", "one.reshape(count, -1)",
    "one.unflatten(0, (count, 1))", "one.expand(count)", "one.expand(count, count)", "one.diag(count)", "one.tril(count)", "one.triu(count)",
    "one.diff(count)", "one.cov(correction=count)", "one.var(correction=count)", "one.group_norm(count)", "one.layer_norm(count)", "one.rms_norm(count)",
    "one.roll(count, 0)", "one.cuda(count)", "one[count]", "one[:count]", "one[::count]", "one.__setitem__(count, 1)",
    "one.segment_reduce(sv.Tensor([count]), 'sum')", "one.gather(0, sv.Tensor([count]))", "one.take(sv.Tensor([count]))",
    "one.scatter(0, sv.Tensor([count]), one)", "one.index_add(0, sv.Tensor([count]), one)", "sv.Tensor([count]).one_hot(4)",
    "one.expand(count).T.shape", "one.expand(count).flip(0).shape", "one.expand(count)[::2].shape", "one.expand(count).nbytes",
    "one.expand(count)[-1].item()", "one.expand(count).reshape(2, -1).shape", "one.expand(count).data_ptr()", "memoryview(one.expand(count)).nbytes",
    "hash(one.expand(count))", "one.expand(count).__reduce__()", "one.expand(count).__dlpack__()", "one.expand(count) + 1", "-one.expand(count)",
    "one.expand(count) @ one.expand(count, 1)", "one.expand(count, 1) @ one.expand(1, count)", "sv.fuse(lambda x: x + 1)(one.expand(count))",
    "sv.output((count,), 'f32')", "sv.srt.fibonacci_sequence(count)", "sv.srt.e8_weights(count)", "sv.srt.noise_words(1, 0, (count,))",
    "sv.srt.gauss(1, 0, (count,))", "sv.srt.RunningStatistics(count)", "sv.burst.Network(count, [], [], [], [])",
    "sv.burst.Network(1, i, i, i, i)", "sv.burst.Network(1, [], [], [], [], threshold=x)", "sv.burst.Network(1, [], [], [], []).inject(i, 1)",
    "sv.burst.Network(1, [], [], [], []).inject([0], x)", "sv.burst.Network(1, [], [], [], []).inject([count], 1)",
    "sv.burst.Network(1, [], [], [], []).set_power(0, count, 1)", "sv.burst.Network.generated('G', count, 1)",
    "sv.burst.Network.generated('G', 1, count)", "sv.burst.Network.generated('S', 1, 1, count)",
    "sv.Tensor([count]).bincount()", "one.histc(count, 0, 2)",
    "x.expand(1, 1, 1, count).transpose(2, 3).scaled_dot_product_attention(one.reshape(1, 1, 1, 1), one.reshape(1, 1, 1, 1))",
    "one.reshape(1, 1, 1, 1).scaled_dot_product_attention(*[one.reshape(1, 1, 1, 1)] * 2, window=(count, count))",
    "one.reshape(1, 1, 1, 1).scaled_dot_product_attention(*[one.reshape(1, 1, 1, 1)] * 2, query_offsets=(0, count), key_offsets=(0, 1))",
    "sv.srt.SymExpr.input(count)", "repr(sv.Tensor(1).expand(count))[:5]",
]

CHILD = """
import resource, sys
import numpy
import selvedge as sv

sv.set_threads(1)
limit = 6 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
count, calls = int(sys.argv[1]), sys.stdin.read().splitlines()
one = sv.ones((1,))
for line in calls:
    dtype, call = line.split(" ", 1)
    print(line, flush=True)
    try:
        # The place of the operands is the error's, too: a shape of 2^62 elements may be none.
        value = sv.ones((1,), dtype=dtype)
        x, y = value.expand(count), value.expand(count)
        i, m = sv.zeros((1,), dtype="i64").expand(count), sv.ones((1,), dtype="bool").expand(count)
        eval(call)
    except sv.Error as error:
        assert str(error)
    except BufferError as error:
        assert str(error)
print("done", flush=True)
"""


def calls():
    found = [f"f32 {call}" for call in CALLS]
    for names, arguments in ARGUMENTS.items():
        found += [f"{DTYPES.get(name, 'f32')} x.{name}{arguments}" for name in names.split()]
    return found + [f"{DTYPES.get(name, 'f32')} x.{name}()" for name in WITHOUT]


@pytest.mark.parametrize("count", COUNTS, ids=["2^44", "2^62"])
def test_counts_that_memory_lacks_are_errors(count):
    pytest.importorskip("resource")
    pytest.importorskip("numpy")
    command = [sys.executable, "-c", CHILD, str(count)]
    made = calls()
    assert len(made) > 200
    try:
        done = subprocess.run(command, input="\n".join(made), capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired as error:
        last = (error.stdout or b"").decode().splitlines()[-1:]
        pytest.fail(f"{last} takes longer than two minutes")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1] == "done", f"code {done.returncode} in {lines[-1:]}\n{done.stderr}"


def test_every_method_that_returns_as_many_elements_is_called():
    named = {name for names in ARGUMENTS for name in names.split()} | set(WITHOUT)
    called = named | {name for name in dir(sv.Tensor) if any(f".{name}(" in call for call in CALLS)}
    # Reductions, views and properties need no memory for their elements.
    small = set(
        "all allclose aminmax any argmax argmin argwhere batch_norm conj corrcoef count_nonzero cpu cuda diagonal dim dot equal fill_ "
        "flatten gemv histogram imag item logsumexp matmul max max_with_indices mean min min_with_indices movedim nanmean nansum "
        "nonzero norm normalize numel permute prod ravel real scatter_reduce squeeze std std_mean sum swapaxes t to to_device trace "
        "transpose unbind unsqueeze var_mean view_as_complex view_as_real view_dtype".split()
    )
    methods = {name for name in dir(sv.Tensor) if not name.startswith("_") and callable(getattr(sv.Tensor, name))}
    assert methods <= called | small, methods - called - small
