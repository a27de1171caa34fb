"""States of the golden-ratio theory. A state is a tensor."""

from . import Tensor

State = Tensor

__all__ = ["State"]
