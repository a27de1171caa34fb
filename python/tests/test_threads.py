"""Native calls run without the interpreter's lock: another thread of Python goes on meanwhile."""

import sys
import threading
import time

import numpy as np
import pytest
import selvedge as sv

MILLIONS = sv.arange(3_000_000, dtype="i64")
# Refused for its last element, after the conversion of all, which is thus the only work of the call.
BEYOND_U32 = sv.cat([MILLIONS, sv.Tensor([-1])])
SQUARE = sv.ones((700, 700))
ARRAY = np.ones(40_000_000)


def refused_network():
    with pytest.raises(ValueError, match="source: found elements of i64 beyond u32"):
        sv.burst.Network(2, BEYOND_U32, [0], [1], [1])


CALLS = {
    "matmul": lambda: SQUARE @ SQUARE,
    "sort": lambda: MILLIONS.sort(),
    "copy of an array": lambda: sv.Tensor(ARRAY),
    "arrays of a network": refused_network,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_thread_counts_during_one_native_call(name):
    ticks, done = [0], threading.Event()

    def count():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(1e-4)

    CALLS[name]()
    interval = sys.getswitchinterval()
    # The interpreter itself takes the lock from this thread for no other one, so only a call that gives it up lets one run.
    sys.setswitchinterval(600)
    thread = threading.Thread(target=count, daemon=True)
    try:
        thread.start()
        while not ticks[0]:
            time.sleep(1e-3)
        # A loaded machine may keep the thread from a core for the length of one call.
        for _ in range(20):
            before = ticks[0]
            CALLS[name]()
            if ticks[0] - before >= 3:
                return
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()
    pytest.fail(f"the counter stood still during 20 calls of {name}")
