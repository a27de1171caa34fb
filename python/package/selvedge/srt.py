"""Golden-ratio operations: constants, products, residuals, norms, snapping, phases and syntony, E8. docs/srt.md has the formulas."""

from . import Tensor, _native

globals().update({name: getattr(_native._srt, name) for name in _native._srt.__all__})

# A state is a tensor: a list in, operators, a list out.
State = Tensor

__all__ = ["State", *_native._srt.__all__]
