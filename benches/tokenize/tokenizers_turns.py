"""`selvedge tokenize` beside Hugging Face's `tokenizers` on the same text and tokenizer, in turns.

    tokenizers_turns.py TOKENIZER TEXT [--program selvedge] [--turns 5] [--threads N]

TOKENIZER is a folder with a byte-level tokenizer.json of at most 65536 ids and an end token in tokenizer_config.json, such as
`selvedge tokenize --train --vocab 50000 TEXT --out TOKENIZER` writes; TEXT is UTF-8. `pip install tokenizers==0.23.*`.

Each side's time is from the text in memory or the page cache to its ids: of selvedge the time that `--json` reports, which has the
reading of the text and the writing of the ids, of `tokenizers` that of `encode_batch_fast` on parts of 2 KiB, which it encodes faster than
longer ones, cut where GPT-2's pattern begins a pre-token. User time is that of the whole process of selvedge, with its start, and that of the call of `tokenizers`.
The ids of both must be equal. Prints one line of JSON: medians, lowest and highest.
"""

import argparse
import array
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

PART = 1 << 11
BORDER = re.compile(r"[!-~](?= [A-Za-z])")
HEADER_BYTES = 1024


def parts_of(text):
    """Returns parts of the text whose ids do not depend on each other."""
    parts, start = [], 0
    while start < len(text):
        border = BORDER.search(text, start + PART)
        end = border.end() if border else len(text)
        parts.append(text[start:end])
        start = end
    return parts


def user_seconds(who):
    return resource.getrusage(who).ru_utime


def ours(arguments, out):
    """Returns the seconds, the user seconds and the ids without the end token."""
    before = user_seconds(resource.RUSAGE_CHILDREN)
    command = [arguments.program, "tokenize", arguments.text, "--tokenizer", arguments.tokenizer, "--out", out]
    run = subprocess.run([*command, "--format", "llmc", "--dtype", "u16", "--json"], stdout=subprocess.PIPE, check=True)
    user = user_seconds(resource.RUSAGE_CHILDREN) - before
    ids = array.array("H")
    with open(out, "rb") as file:
        ids.frombytes(file.read()[HEADER_BYTES:])
    if sys.byteorder == "big":
        ids.byteswap()
    return json.loads(run.stdout)["seconds"], user, ids[:-1]


def theirs(tokenizer, parts):
    """Returns the seconds, the user seconds and the ids."""
    before, start = user_seconds(resource.RUSAGE_SELF), time.perf_counter()
    encodings = tokenizer.encode_batch_fast(parts, add_special_tokens=False)
    seconds, user = time.perf_counter() - start, user_seconds(resource.RUSAGE_SELF) - before
    ids = array.array("H")
    for encoding in encodings:
        ids.extend(encoding.ids)
    return seconds, user, ids


def summary(turns, megabytes):
    times, users = [seconds for seconds, _ in turns], [user for _, user in turns]
    return {
        "seconds": round(statistics.median(times), 3),
        "lowest": round(min(times), 3),
        "highest": round(max(times), 3),
        "user_seconds": round(statistics.median(users), 3),
        "megabytes_per_second": round(megabytes / statistics.median(times), 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("text")
    parser.add_argument("--program", default="selvedge")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    if arguments.turns < 1:
        parser.error("--turns: at least 1 turn")
    # Both read these when they start their threads.
    os.environ.update(RAYON_NUM_THREADS=str(arguments.threads), SELVEDGE_THREADS=str(arguments.threads))
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(os.path.join(arguments.tokenizer, "tokenizer.json"))
    with open(arguments.text, encoding="utf-8", newline="") as file:
        text = file.read()
    parts, megabytes = parts_of(text), len(text.encode()) / 1e6
    our_turns, their_turns = [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.turns):
            *our_times, our_ids = ours(arguments, os.path.join(folder, "ids.bin"))
            *their_times, their_ids = theirs(tokenizer, parts)
            if our_ids != their_ids:
                sys.exit("the ids of selvedge and of tokenizers differ")
            our_turns.append(our_times)
            their_turns.append(their_times)
            print(f"turn {turn + 1}: selvedge {our_times[0]:.3f} s, tokenizers {their_times[0]:.3f} s", file=sys.stderr)
    our_summary, their_summary = summary(our_turns, megabytes), summary(their_turns, megabytes)
    print(json.dumps({
        "megabytes": round(megabytes, 1),
        "ids": len(our_ids),
        "threads": arguments.threads,
        "turns": arguments.turns,
        "selvedge": our_summary,
        f"tokenizers {tokenizers.__version__}": their_summary,
        "speed": round(their_summary["seconds"] / our_summary["seconds"], 2),
        "speed_by_user_time": round(their_summary["user_seconds"] / our_summary["user_seconds"], 2),
    }))


if __name__ == "__main__":
    main()
