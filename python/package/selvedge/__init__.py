"""Tensors on the CPU and NVIDIA GPUs that need only the driver at run time."""

from . import _native
from ._native import *
from ._native import __version__

float16, bfloat16, float32, float64 = _native.f16, _native.bf16, _native.f32, _native.f64
complex64, complex128 = _native.c64, _native.c128
int8, int16, int32, int64 = _native.i8, _native.i16, _native.i32, _native.i64
uint8, uint16, uint32, uint64 = _native.u8, _native.u16, _native.u32, _native.u64

device = _native.Device
kernel, output = _native.Kernel, _native.KernelOutput

from . import burst, catalogue, classifier, io, nn, srt
