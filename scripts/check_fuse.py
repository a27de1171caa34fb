#!/usr/bin/env python3
"""Assembles every kernel that the tests of the elementwise compiler make it write:

    python3 scripts/check_fuse.py                                  # every kernel, for every architecture
    python3 scripts/check_fuse.py --texts FOLDER --sample SEED     # kernels that a run of the tests wrote to FOLDER

`cargo test --test parity` writes the texts (SELVEDGE_PTX_OUT, and SELVEDGE_PTX_ALL for every class of layouts of every
operation); ptxas of several releases assembles them for every
architecture that they are meant for. A sample is every kernel for one old and one new architecture, and one in three of
the others. Kernels are assembled many in one file, which costs a fraction of one by one. It
needs what scripts/build_images.py needs, and no GPU.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import build_images

# The oldest and the newest assembler that a driver from 525 on may have inside, and the oldest for clusters, with the versions of
# texts that they assemble.
ASSEMBLERS = [
    ("nvidia-cuda-nvcc-cu12", "12.0.76", "cuda_nvcc", ["8.0"], ["sm_60", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"]),
    ("nvidia-cuda-nvcc-cu12", "12.1.105", "cuda_nvcc", ["8.1"], ["sm_90"]),
    ("nvidia-cuda-nvcc", "13.0.88", "cu13", ["8.0", "8.1"], ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]),
]
KERNELS_A_FILE = 250
# Bytes of registers that do not fit.
MAX_SPILLED = 48
# The beginning of the names of random programs' files. They may need any number of registers.
RANDOM = "random-"


def write_texts(folder):
    environment = dict(os.environ, SELVEDGE_PTX_OUT=str(folder), SELVEDGE_TESTS="all")
    command = ["cargo", "test", "--quiet", "--test", "parity", "--", "--quiet"]
    result = subprocess.run(command, cwd=build_images.ROOT, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"check_fuse: the tests failed\n{result.stdout[-4000:]}{result.stderr[-4000:]}")


def texts(folder, are_random):
    """The texts of random programs, or the others."""
    return [path.read_text() for path in sorted(folder.iterdir()) if path.name.startswith(RANDOM) == are_random]


def files(texts, folder, prefix):
    """The kernels of each version and target, many to a file, each with a name of its own."""
    made = []
    heads = {re.match(r"\.version (\S+)\n\.target (\S+)\n", text).groups() for text in texts}
    for version, target in sorted(heads):
        head = f".version {version}\n.target {target}\n.address_size 64\n"
        kernels = [text[len(head) :] for text in texts if text.startswith(head)]
        for first in range(0, len(kernels), KERNELS_A_FILE):
            some = kernels[first : first + KERNELS_A_FILE]
            named = (re.sub(r"\b(fused|fused_row)\b", rf"\g<1>{index}", kernel) for index, kernel in enumerate(some))
            path = folder / f"{prefix}{target}_{version}_{first}.ptx"
            path.write_text(head + "".join(named))
            made.append((version, target, path))
        print(f"{prefix}{target}, version {version}: {len(kernels)} kernels", flush=True)
    return made


# A sample has every kernel assembled for these, by the oldest and the newest assembler.
ALWAYS = [("12.0.76", "sm_80"), ("12.1.105", "sm_90"), ("13.0.88", "sm_90")]


def is_sampled(seed, version, architecture, path):
    chosen = zlib.crc32(f"{seed} {version} {architecture} {path.name}".encode()) % 3 == 0
    return chosen or (version, architecture) in ALWAYS


def number(architecture):
    return int(architecture.removeprefix("sm_"))


def assemble(ptxas, path, architecture):
    """None, or what is wrong."""
    command = [str(ptxas), "-v", f"-arch={architecture}", "-o", os.devnull, str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        return f"ptxas for {architecture} refused {path.name}:\n{result.stderr}"
    # Local memory is an error here: no kernel has an array, and few need more registers than there are. An assembler that
    # lowers the registers for one more resident block may spill a few words, though. Predicates that it spills are in the
    # frame, but not among the spilled bytes.
    if ".local" in path.read_text():
        return f"{path.name} declares local memory"
    if path.name.startswith(RANDOM):
        return None
    for name, frame in re.findall(r"properties for (\w+)\s+(\d+) bytes stack frame", result.stderr):
        if int(frame) > MAX_SPILLED:
            return f"ptxas for {architecture}: {name} of {path.name} uses {frame} bytes of local memory"
    return None


def main():
    parser = argparse.ArgumentParser(description="assembles the kernels of expressions")
    parser.add_argument("--texts", type=pathlib.Path, help="what a run of the tests with SELVEDGE_PTX_OUT wrote")
    parser.add_argument("--sample", metavar="SEED", help="assemble for a sample of the architectures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        written = arguments.texts
        if written is None:
            written = folder / "texts"
            written.mkdir()
            write_texts(written)
        made = files(texts(written, False), folder, "") + files(texts(written, True), folder, RANDOM)
        if not made:
            sys.exit(f"check_fuse: {written} has no kernels")
        tasks = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for package, version, place, versions, architectures in ASSEMBLERS:
                ptxas = build_images.wheel(package, version) / place / "bin" / "ptxas"
                ptxas.chmod(0o755)
                for architecture in architectures:
                    for written_for, target, path in made:
                        if written_for not in versions:
                            continue
                        if arguments.sample and not is_sampled(arguments.sample, version, architecture, path):
                            continue
                        if number(architecture) >= number(target):
                            tasks.append(pool.submit(assemble, ptxas, path, architecture))
            errors = [error for error in (task.result() for task in tasks) if error]
        if errors:
            sys.exit("check_fuse: " + "\n".join(errors))
        print(f"assembled {len(made)} files {len(tasks)} times")


if __name__ == "__main__":
    main()
