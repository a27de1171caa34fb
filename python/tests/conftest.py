"""Shared by all tests: the repository's folder."""

import pathlib

import pytest


@pytest.fixture(scope="session")
def repository():
    return pathlib.Path(__file__).parents[2]
