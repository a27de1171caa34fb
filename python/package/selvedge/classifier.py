"""The active-inference classifier. docs/classifier.md has the model."""

from . import _native

globals().update({name: getattr(_native._classifier, name) for name in _native._classifier.__all__})

__all__ = list(_native._classifier.__all__)
