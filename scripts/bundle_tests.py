#!/usr/bin/env python3
"""Bundles every test executable, the examples and the program, for a machine with a GPU and no cargo.

    PARTS=all scripts/bundle.sh [FOLDER]        (which calls this; .carry without FOLDER)

The bundles are FOLDER/1, FOLDER/2 and so on. Each holds `files.tar.xz` (executables, the tracked source files that tests
read, and the libraries that tests would compile), `list` (the executables in cargo's order) and `run.sh`
(scripts/run_tests.sh). A bundle depends on no other.

Environment:
  CARGO         cargo
  LIMIT_MIB     the size of a bundle at most (42: a call to a lent machine carries the tracked files too)
  PROFILE       the profile of cargo that the executables are built with (test, as `cargo test` does); the device suite
                is always a release build
  SKIP_BUILDS   set: take the libraries that tests compile from earlier runs, and build none
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FEATURES = "gpu,cli"
# Executables that measure time or free memory, or that need the device for themselves. The others run side by side.
ALONE = {"fake", "gpu"}
# Cargo's order of kinds: `cargo test` runs the library's tests, then programs, then tests by name.
KINDS = ["lib", "bin", "test", "example", "program"]


def executables_of(cargo: str, arguments: list[str]) -> dict[tuple[str, str], Path]:
    """Builds what these arguments of `cargo test` name. Returns the paths of executables by kind and name."""
    command = [cargo, "test", "--features", FEATURES, "--no-run", *arguments]
    print("building", " ".join(command[1:]), flush=True)
    process = subprocess.run([*command, "--message-format=json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE)
    if process.returncode:
        sys.exit(process.returncode)
    found = {}
    for line in process.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message.get("executable"):
            continue
        kind = message["target"]["kind"][0]
        if not message["profile"]["test"]:
            kind = {"bin": "program", "example": "example"}.get(kind)
        if kind in KINDS:
            found[kind, message["target"]["name"]] = Path(message["executable"])
    return found


def built(cargo: str) -> list[tuple[str, str, Path]]:
    """Builds everything. Returns kind, name and path of each executable, in cargo's order."""
    found = executables_of(cargo, ["--profile", os.environ.get("PROFILE", "test")])
    # The device suite computes references on the host, for which it takes minutes more without optimization.
    suite = "test", "gpu"
    found[suite] = executables_of(cargo, ["--release", "--test", "gpu"])[suite]
    missing = [kind for kind in KINDS if not any(kind == known for known, _ in found)]
    if missing:
        sys.exit(f"cargo named no executable of these kinds: {', '.join(missing)}")
    order = sorted(found, key=lambda key: (KINDS.index(key[0]), key[1]))
    return [(kind, name, found[kind, name]) for kind, name in order]


def file_name(kind: str, name: str) -> str:
    """The executable's name in a bundle and in its table."""
    return {"lib": f"{name}-lib", "bin": f"{name}-bin"}.get(kind, name)


def build_libraries(executables: list[tuple[str, str, Path]], scratch: Path) -> None:
    """Has the tests compile the libraries that they load, such as the fake driver, into `scratch`."""
    paths = {name: path for kind, name, path in executables if kind == "test"}
    program = next(path for kind, _, path in executables if kind == "program")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SELVEDGE_")}
    environment |= {
        "CARGO_MANIFEST_DIR": str(ROOT),
        "CARGO_TARGET_TMPDIR": str(scratch),
        "CARGO_BIN_EXE_selvedge": str(program),
        "SELVEDGE_TEST_BUILD_ONLY": "1",
    }
    # Tests may fail in this mode, because nothing runs on what they build; the fake's variants are also the program's.
    for name, arguments in [("fake", []), ("sys", ["loader::"]), ("cli", ["the_example_fits_its_kernel"])]:
        print(f"building the libraries of {name}", flush=True)
        subprocess.run(
            [paths[name], *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def stripped(executables: list[tuple[str, str, Path]], folder: Path) -> dict[str, int]:
    """Copies the executables into `folder` without symbols. Returns their sizes."""
    sizes = {}
    for kind, name, path in executables:
        target = folder / file_name(kind, name)
        if subprocess.run(["strip", "-o", target, path], stderr=subprocess.DEVNULL).returncode:
            shutil.copy2(path, target)
        sizes[target.name] = target.stat().st_size
    return sizes


def tracked() -> list[str]:
    """The source files of the working tree."""
    output = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return [name for name in output.decode().split("\0") if name and (ROOT / name).is_file()]


def write(bundle: Path, names: list[str], binaries: Path, scratch: Path) -> int:
    """Writes `files.tar.xz` of a bundle with these executables. Returns its size."""
    bundle.mkdir(parents=True)
    target = bundle / "files.tar.xz"
    with target.open("wb") as file:
        # Executables share code and embedded kernels, so the dictionary spans them all.
        xz = subprocess.Popen(["xz", "--lzma2=preset=1,dict=256MiB", "-c"], stdin=subprocess.PIPE, stdout=file)
        with tarfile.open(fileobj=xz.stdin, mode="w|") as archive:
            for name in names:
                archive.add(binaries / name, f"bin/{name}")
            for name in tracked():
                archive.add(ROOT / name, f"tree/{name}")
            for library in sorted([*scratch.rglob("*.so"), *scratch.rglob("*.so.*"), *scratch.rglob("*.o")]):
                archive.add(library, f"tmp/{library.relative_to(scratch)}")
        xz.stdin.close()
        if xz.wait():
            sys.exit("xz failed")
    return target.stat().st_size


def groups(names: list[str], sizes: dict[str, int], count: int) -> list[list[str]]:
    """Divides the names, in their order, into `count` groups of about the same size."""
    total, so_far = sum(sizes[name] for name in names), 0
    result: list[list[str]] = [[] for _ in range(count)]
    for name in names:
        result[min(so_far * count // total, count - 1)].append(name)
        so_far += sizes[name]
    return [group for group in result if group]


def main() -> None:
    out = Path(sys.argv[1]).resolve()
    limit = int(os.environ.get("LIMIT_MIB", "42")) << 20
    executables = built(os.environ.get("CARGO", "cargo"))
    kinds = {file_name(kind, name): kind for kind, name, _ in executables}
    for old in out.glob("[0-9]*"):
        shutil.rmtree(old)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        binaries = Path(folder)
        target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
        # A folder of its own: that of cargo also holds what other tests and earlier commits built.
        scratch = target / "bundle"
        if not os.environ.get("SKIP_BUILDS"):
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            build_libraries(executables, scratch)
        elif not scratch.is_dir():
            sys.exit(f"SKIP_BUILDS is set, but no earlier run left libraries in {scratch}")
        sizes = stripped(executables, binaries)
        program = "selvedge"
        for count in range(1, len(sizes) + 1):
            divided = groups([name for name in kinds if name != program], sizes, count)
            fits = True
            for number, names in enumerate(divided, 1):
                bundle = out / str(number)
                shutil.rmtree(bundle, ignore_errors=True)
                # The program is in each bundle, because tests start it; it is itself run by the first.
                size = write(bundle, [*names, program], binaries, scratch)
                print(f"bundle {number} of {len(divided)}: {size / 2**20:.1f} MiB", flush=True)
                rows = [*names, program] if number == 1 else names
                text = "".join(f"{name} {kinds[name]} {'alone' if name in ALONE else 'beside'}\n" for name in rows)
                (bundle / "list").write_text(text)
                shutil.copy2(ROOT / "scripts/run_tests.sh", bundle / "run.sh")
                shutil.copy2(ROOT / "scripts/device_suite.sh", bundle)
                fits = fits and size <= limit
                if not fits:
                    break
            if fits:
                break
            for old in out.glob("[0-9]*"):
                shutil.rmtree(old)
        else:
            sys.exit(f"one executable alone is larger than {limit >> 20} MiB")
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=10"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    for bundle in out.glob("[0-9]*"):
        (bundle / "commit").write_text(commit.stdout or "unknown\n")


main()
