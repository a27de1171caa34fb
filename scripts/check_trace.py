#!/usr/bin/env python3
"""Checks a trace of selvedge as Perfetto reads it, and prints one line, or the first fault.

    python3 scripts/check_trace.py trace.json.gz

Each event has the keys of its phase; times are no less than zero and in order on each track of a device; events of one
track are beside each other or one inside the other; each arrow has one beginning and one end, in this order in time. A file that
breaks off is read up to its break and said to do so.
"""

import collections
import gzip
import json
import sys
import zlib

# The first process number of devices.
DEVICES = 1 << 30
# Half of the last decimal.
TINY = 0.0005


def fail(text):
    sys.exit(f"check_trace: {text}")


def unpacked(path):
    """The text up to the file's break, and whether it is whole."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(b"\x1f\x8b"):
        return data.decode(), True
    try:
        return gzip.decompress(data).decode(), True
    except (EOFError, zlib.error):
        return zlib.decompressobj(31).decompress(data).decode(errors="ignore"), False


def events_of(path):
    text, is_whole = unpacked(path)
    if is_whole:
        return json.loads(text), True
    events = []
    for line in text.split("\n")[1:]:
        if not line.endswith(","):
            break
        events.append(json.loads(line[:-1]))
    return events, False


def check_keys(event):
    for key in ["ph", "pid", "tid", "name", "cat"]:
        if key not in event:
            fail(f"no {key} in {event}")
    phase = event["ph"]
    needed = {"X": ["ts", "dur"], "i": ["ts", "s"], "C": ["ts", "args"], "s": ["ts", "id"], "f": ["ts", "id", "bp"], "M": ["args"]}
    if phase not in needed:
        fail(f"phase {phase} in {event}")
    for key in needed[phase]:
        if key not in event:
            fail(f"no {key} in {event}")
    for key in ["ts", "dur"]:
        if event.get(key, 0) < 0:
            fail(f"{key} below zero in {event}")


def check_track(track, events):
    is_device = track[0] >= DEVICES
    if is_device and any(after["ts"] + TINY < before["ts"] for before, after in zip(events, events[1:])):
        fail(f"the events of track {track} are not in order")
    ends = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        end = event["ts"] + event["dur"]
        while ends and ends[-1] <= event["ts"] + TINY:
            ends.pop()
        if ends and end > ends[-1] + TINY:
            fail(f"{event} overlaps a part of another event of its track")
        ends.append(end)


def main():
    if len(sys.argv) != 2:
        fail("one argument, a trace")
    try:
        events, is_whole = events_of(sys.argv[1])
    except (OSError, ValueError) as error:
        fail(f"{sys.argv[1]}: {error}")
    tracks = collections.defaultdict(list)
    arrows = collections.defaultdict(list)
    for event in events:
        check_keys(event)
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
        elif event["ph"] in "sf":
            arrows[event["id"]].append(event)
    for track, of_track in tracks.items():
        check_track(track, of_track)
    for number, ends in arrows.items():
        if [end["ph"] for end in ends] != ["s", "f"] or ends[0]["ts"] > ends[1]["ts"] + TINY:
            fail(f"arrow {number} has the ends {ends}")
    count = sum(map(len, tracks.values()))
    end = "" if is_whole else "; the file breaks off"
    print(f"{len(events)} events, {count} with a duration on {len(tracks)} tracks, {len(arrows)} arrows{end}")


if __name__ == "__main__":
    main()
