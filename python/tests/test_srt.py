"""States, as users write them: a list in, operators, a list out."""

import numpy as np
import pytest
import selvedge as sv
from selvedge import srt


@pytest.mark.parametrize("dtype", ["complex128", "complex64", "float64"])
def test_a_state_of_a_list_is_computed_with_and_comes_back_as_a_list(dtype):
    first, second = [[1, 2], [3, 4]], [[0.5, -1], [2, 8]]
    if dtype.startswith("complex"):
        first, second = (np.array(first) * (1 + 2j)).tolist(), (np.array(second) * (2 - 1j)).tolist()
    a, b = srt.State(first, dtype=dtype), srt.State(second, dtype=dtype)
    x, y = np.array(first, dtype), np.array(second, dtype)
    if sv.Device.best().type == "cuda":
        a, b = a.cuda(), b.cuda()
    for found, wanted in [(a + b, x + y), (a - b, x - y), (a * b, x * y), (a / b, x / y), (a @ b, x @ y)]:
        result = found.cpu().tolist()
        assert isinstance(result, list) and found.dtype == sv.DType(dtype)
        np.testing.assert_allclose(result, wanted.tolist(), rtol=1e-6)
