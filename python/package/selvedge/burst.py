"""Spiking networks. docs/burst.md has the model."""

from . import _native

Network = _native._burst.Network

__all__ = ["Network"]
