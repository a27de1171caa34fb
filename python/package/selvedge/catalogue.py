"""Functions of oscillators, spiking neurons, information measures, beliefs, policies and quantum gates. docs/catalogue.md lists them."""

from . import _native

globals().update({name: getattr(_native._catalogue, name) for name in _native._catalogue.__all__})

__all__ = list(_native._catalogue.__all__)
