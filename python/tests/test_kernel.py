"""Kernels from source."""

import pytest
import selvedge as sv

SOURCE = """
extern "C" __global__ void scale(const float *x, float *y, double factor, long long n, bool negate) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = (float)((negate ? -factor : factor) * x[i]);
}
"""


def test_wrong_arguments_are_refused_before_a_device_is_asked_for():
    scale = sv.kernel(SOURCE, "scale")
    assert scale.name == "scale" and repr(scale) == 'kernel("scale")'
    x = sv.ones((4,))
    with pytest.raises(sv.ArgumentError, match="no output"):
        scale(x, 2.0, 4, False, grid=1)
    with pytest.raises(sv.DTypeError, match="argument 1 of type str"):
        scale(x, "y", 2.0, 4, False, grid=1)
    with pytest.raises(sv.ArgumentError, match="CPU"):
        scale(x, sv.output((4,), "f32"), 2.0, 4, False, grid=1)
    with pytest.raises(sv.DTypeError, match="tuple of two or three"):
        scale(x, sv.output((4,), "f32"), 2.0, 4, False, grid="1")


@pytest.mark.usefixtures("computing_cuda")
def test_kernels_read_tensors_and_return_their_outputs():
    scale = sv.kernel(SOURCE, "scale")
    x = sv.arange(1000, dtype="f32", device="cuda")
    y = scale(x, sv.output((10, 100), "f32"), 2.0, 1000, True, grid=4)
    assert y.shape == (10, 100) and y.cpu().tolist()[9][99] == -1998.0
    # A view that is not contiguous is copied first; later work waits for the kernel.
    y = scale(x[::2], sv.output((500,), "f32"), 0.5, 500, False, grid=(2, 1), block=(256, 1, 1))
    assert (y + 1).cpu().tolist()[:3] == [1.0, 2.0, 3.0]
    with pytest.raises(sv.Error):
        scale(x, sv.output((4,), "f32"), 2.0, grid=1)
    with pytest.raises(sv.ArgumentError, match="integer of 8 bits"):
        scale(x, sv.output((4,), "f32"), 2.0, 4, 256, grid=1)


PTX = """
.version 7.0
.target sm_50
.address_size 64
.visible .entry negate(.param .u64 px, .param .u64 py, .param .u32 pn) {
    .reg .pred p; .reg .f32 f; .reg .b32 i, b, t, n; .reg .b64 x, y, o;
    ld.param.u64 x, [px]; ld.param.u64 y, [py]; ld.param.u32 n, [pn];
    mov.u32 i, %ctaid.x; mov.u32 b, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, b, t;
    setp.ge.u32 p, i, n; @p ret;
    mul.wide.u32 o, i, 4; add.u64 x, x, o; add.u64 y, y, o;
    ld.global.f32 f, [x]; neg.f32 f, f; st.global.f32 [y], f; ret;
}
"""


class Negate(sv.nn.Function):
    """-x by a kernel on a device, and by operations on the CPU."""

    kernel = sv.kernel.from_image(PTX, "negate")

    @staticmethod
    def run(x):
        x = x.contiguous()
        if x.device.type == "cpu":
            return -x
        return Negate.kernel(x, sv.output(x.shape, x.dtype), x.size, grid=(x.size + 127) // 128, block=128)

    @staticmethod
    def forward(context, x):
        return Negate.run(x)

    @staticmethod
    def backward(context, gradient):
        return Negate.run(gradient)


def test_a_kernel_of_an_image_has_a_name_and_wants_text_or_bytes():
    assert repr(sv.kernel.from_image(PTX.encode(), "negate")) == 'kernel("negate")'
    with pytest.raises(sv.DTypeError, match="PTX as str, or an image as bytes"):
        sv.kernel.from_image(3, "negate")


def test_launch_settings_are_checked_before_a_device_is_asked_for():
    scale = sv.kernel(SOURCE, "scale", options=["--use_fast_math"])
    x = sv.ones((4,))
    for wrong in [{"cluster": "2"}, {"block": ()}, {"grid": (1, 2, 3, 4)}]:
        with pytest.raises(sv.DTypeError, match="tuple of two or three"):
            scale(x, sv.output((4,), "f32"), 2.0, 4, False, **{"grid": 1, **wrong})


def test_a_function_with_a_kernel_has_a_gradient_on_the_cpu():
    x = sv.nn.Variable([1.0, -2.0], requires_grad=True)
    Negate.apply(x).sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]


@pytest.mark.usefixtures("cuda")
def test_kernels_of_images_are_launched_on_streams_and_in_graphs():
    x, stream = sv.ones((300,), device="cuda"), sv.Stream("cuda")
    y = Negate.kernel(x, sv.output((300,), "f32"), 300, grid=3, block=128, stream=stream)
    stream.synchronize()
    assert y.shape == (300,) and y.device == x.device
    graph, y = sv.Graph.capture(Negate.run, x, stream=stream)
    assert "negate" in graph.to_dot()
    graph.instantiate().launch()
    assert len(y.tolist()) == 300
    variable = sv.nn.Variable(x, requires_grad=True)
    Negate.apply(variable).sum().backward()
    assert variable.grad.shape == (300,)
    with pytest.raises(sv.ArgumentError, match="tensors on cpu and a stream of cuda:0"):
        Negate.kernel(sv.ones(3), sv.output((3,), "f32"), 3, grid=1, stream=stream)


@pytest.mark.usefixtures("computing_cuda")
def test_a_function_with_a_kernel_computes_its_gradient():
    x = sv.nn.Variable(sv.Tensor([[1.0, -2.0], [3.0, 4.0]], "f32", "cuda"), requires_grad=True)
    y = Negate.apply(x.transpose(0, 1))
    assert y.tolist() == [[-1.0, -3.0], [2.0, -4.0]]
    (y * y).sum().backward()
    assert x.grad.tolist() == [[2.0, -4.0], [6.0, 8.0]]


@pytest.mark.usefixtures("computing_cuda")
def test_instances_of_templates_and_options_are_compiled():
    source = "template <typename T> __global__ void fill(T *y, int n) { if (threadIdx.x < n) y[threadIdx.x] = VALUE; }"
    filled = sv.kernel(source, "fill<double>", options=["-DVALUE=7"])
    assert filled(sv.output((3,), "f64"), 3, grid=1, block=32).tolist() == [7.0] * 3


LINKED = [
    """
.version 7.0
.target sm_50
.address_size 64
.extern .func (.param .b32 r) negated (.param .b32 a);
.visible .entry negate(.param .u64 px, .param .u64 py) {
    .reg .f32 f; .reg .b64 x, y, o; .reg .b32 t;
    ld.param.u64 x, [px]; ld.param.u64 y, [py]; mov.u32 t, %tid.x;
    mul.wide.u32 o, t, 4; add.u64 x, x, o; add.u64 y, y, o; ld.global.f32 f, [x];
    { .param .b32 a0; .param .b32 r0; st.param.f32 [a0], f; call (r0), negated, (a0); ld.param.f32 f, [r0]; }
    st.global.f32 [y], f; ret;
}
""",
    """
.version 7.0
.target sm_50
.address_size 64
.visible .func (.param .b32 r) negated (.param .b32 a) {
    .reg .f32 f; ld.param.f32 f, [a]; neg.f32 f, f; st.param.f32 [r], f; ret;
}
""",
]


def test_images_to_link_are_texts_or_bytes():
    assert sv.kernel.from_image([LINKED[0], LINKED[1].encode()], "negate").name == "negate"
    with pytest.raises(sv.ArgumentError, match="no images; wanted at least one image"):
        sv.kernel.from_image([], "negate")
    with pytest.raises(sv.DTypeError, match="PTX as str, or an image as bytes, but found int"):
        sv.kernel.from_image([LINKED[0], 3], "negate")


@pytest.mark.usefixtures("computing_cuda")
def test_kernels_of_linked_images_call_functions_of_each_other():
    negate = sv.kernel.from_image([LINKED[0], LINKED[1].encode()], "negate")
    x = sv.arange(8, dtype="f32", device="cuda")
    assert negate(x, sv.output((8,), "f32"), grid=1, block=8).tolist() == [-float(i) for i in range(8)]
    with pytest.raises(sv.Error, match="negated"):
        sv.kernel.from_image([LINKED[0]], "negate")(x, sv.output((8,), "f32"), grid=1, block=8)


@pytest.mark.usefixtures("cuda")
def test_a_linked_kernel_is_launched():
    negate = sv.kernel.from_image(LINKED, "negate")
    x = sv.zeros((8,), "f32", device="cuda")
    assert negate(x, sv.output((8,), "f32"), grid=1, block=8).shape == (8,)
