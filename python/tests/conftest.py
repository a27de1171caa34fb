"""Shared by all tests: the repository's folder, threads, and the CUDA device."""

import os
import pathlib
import threading

import pytest
import selvedge as sv


@pytest.fixture(scope="session")
def repository():
    return pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session")
def in_threads():
    """A function that runs another on four threads, none of which may raise."""

    def run(work):
        errors = []

        def guarded():
            try:
                work()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=guarded) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors

    return run


@pytest.fixture(scope="session")
def cuda():
    """A CUDA device, which computes nothing on the fake driver. A driver that SELVEDGE_LIBCUDA names must have one."""
    try:
        sv.empty((1,), device="cuda")
    except sv.Error as error:
        if os.environ.get("SELVEDGE_LIBCUDA", "none") != "none":
            raise
        pytest.skip(f"there is no CUDA device: {str(error).splitlines()[0]}")


@pytest.fixture(scope="session")
def computing_cuda(cuda):
    """A CUDA device whose kernels compute."""
    if (sv.ones((2,), device="cuda") + 1).tolist() != [2.0, 2.0]:
        pytest.skip("the driver is the fake one, whose kernels compute nothing")
