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
