"""Traces: the file of a `with` block, ranges in it, and bad input."""

import gzip
import json
import threading

import pytest

import selvedge as sv


def events(path):
    """The events of a whole trace."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def test_a_block_is_recorded_with_its_ranges(tmp_path):
    path = tmp_path / "trace.json.gz"
    with sv.trace.range("before the trace"):
        pass
    with sv.trace(path) as trace:
        assert isinstance(trace, sv.trace)
        with sv.trace.range("outer"), sv.trace.range("inner"):
            sv.ones(8) + sv.ones(8)
    found = [event for event in events(path) if event.get("cat") == "range"]
    assert sorted(event["name"] for event in found) == ["inner", "outer"]
    outer, inner = (next(event for event in found if event["name"] == name) for name in ("outer", "inner"))
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1e-3
    assert any(event.get("cat") == "operation" and event["name"] == "add" for event in events(path))


def test_an_exception_ends_the_trace_and_its_ranges(tmp_path):
    path = tmp_path / "trace.json.gz"
    with pytest.raises(KeyError), sv.trace(path), sv.trace.range("fails"):
        raise KeyError("on purpose")
    assert any(event["name"] == "fails" for event in events(path) if event.get("cat") == "range")
    # The next trace can begin.
    with sv.trace(path):
        pass


def test_a_second_trace_and_paths_that_cannot_be_written_are_errors(tmp_path):
    with sv.trace(tmp_path / "trace.json.gz"):
        with pytest.raises(sv.Error):
            with sv.trace(tmp_path / "other.json.gz"):
                pass
    with pytest.raises(sv.FileError):
        with sv.trace(tmp_path / "no" / "such" / "folder.json.gz"):
            pass


def test_a_range_of_a_name_serves_threads_at_once(tmp_path):
    path = tmp_path / "trace.json.gz"
    shared = sv.trace.range("shared")

    def work():
        with shared:
            sv.ones(8)

    with sv.trace(path):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(event["name"] == "shared" for event in events(path) if event.get("cat") == "range") == 4
