"""Neural networks: variables with gradients, modules, layers, losses, optimizers, data loaders and training steps. docs/python.md has examples."""

from . import _native

globals().update({name: getattr(_native._nn, name) for name in _native._nn.__all__})

__all__ = list(_native._nn.__all__)
