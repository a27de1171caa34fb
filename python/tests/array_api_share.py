"""A plugin of pytest for the array API's suite: `--share 3` runs the tests 3, 13, 23, …, counted from 0, and no other."""

import pytest

SHARES = 10


def pytest_addoption(parser):
    parser.addoption("--share", type=int, choices=range(SHARES), help="the tenth of the tests that runs; all without it")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    share = config.getoption("--share")
    if share is not None:
        left_out = [item for position, item in enumerate(items) if position % SHARES != share]
        items[:] = items[share::SHARES]
        config.hook.pytest_deselected(items=left_out)
