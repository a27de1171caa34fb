"""Types of `selvedge.io`; `tests/test_stubs.py` compares them with the native module."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

from . import Data, DeviceLike

def load(path: str | PathLike[str], *, device: DeviceLike | None = None) -> Any: ...
def save(path: str | PathLike[str], tensors: Data | Mapping[str, Any], *, compressed: bool = False, metadata: Mapping[str, str] | None = None) -> None: ...
