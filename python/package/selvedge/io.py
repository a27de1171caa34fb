"""Arrays in .npy, .npz and .safetensors files."""

from . import _native

globals().update({name: getattr(_native._io, name) for name in _native._io.__all__})

__all__ = list(_native._io.__all__)
