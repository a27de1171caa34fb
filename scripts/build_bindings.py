#!/usr/bin/env python3
"""Generates src/sys/{driver,nvrtc,cublas,cublaslt,nccl,cupti,cupti13}.rs from the CUDA headers. The one command that makes the bindings:

    python3 scripts/build_bindings.py                 # writes src/sys
    python3 scripts/build_bindings.py --check         # generates and compares
    python3 scripts/build_bindings.py --if-changed    # does nothing where src/sys/generated.sums fits (with either)

It needs Python 3.8, gcc and cargo on Linux x86-64, and the package index: the headers and libclang come as wheels, of
which only what is needed is kept, in .venv. No GPU, driver or toolkit. The headers are not part of this repository,
because their licence forbids it.

src/sys/generated.sums has the SHA-256 of what the bindings are made from and of the bindings. Only this script writes
it, so bindings that were changed by hand never fit.
"""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
SUMS = ROOT / "src/sys/generated.sums"

# Package, version, the folder of its wheel that is extracted.
HEADERS = [
    ("nvidia-cuda-runtime-cu12", "12.9.79", "nvidia/cuda_runtime/include"),
    ("nvidia-cuda-nvcc-cu12", "12.9.86", "nvidia/cuda_nvcc/include"),
    ("nvidia-cuda-cccl-cu12", "12.9.27", "nvidia/cuda_cccl/include"),
    ("nvidia-cuda-nvrtc-cu12", "12.9.86", "nvidia/cuda_nvrtc/include"),
    ("nvidia-cublas-cu12", "12.9.1.4", "nvidia/cublas/include"),
    ("nvidia-nccl-cu12", "2.32.3", "nvidia/nccl/include"),
    ("nvidia-cuda-cupti-cu12", "12.9.79", "nvidia/cuda_cupti/include"),
    ("nvidia-cuda-cupti", "13.0.85", "nvidia/cu13/include"),
]
LIBCLANG = ("libclang", "18.1.1", "libclang-18.1.1.data/platlib/clang/native")

INPUTS = ["wrapper.h", "build/bindings.rs", "src/sys/allowlist.txt", "scripts/build_bindings.py"]
OUTPUTS = [f"src/sys/{name}.rs" for name in ["driver", "nvrtc", "cublas", "cublaslt", "nccl", "cupti", "cupti13"]]


def fail(text):
    sys.exit(f"build_bindings: {text}")


def sums():
    """In the form of sha256sum."""
    hashes = ((hashlib.sha256((ROOT / name).read_bytes()).hexdigest(), name) for name in INPUTS + OUTPUTS)
    return "".join(f"{value}  {name}\n" for value, name in hashes)


def part(package, version, folder):
    """A folder of a wheel, without the rest of it: the libraries beside the headers have hundreds of megabytes."""
    place = ENVIRONMENT / f"{package}-{version}-{folder.rsplit('/', 1)[-1]}"
    if not place.exists():
        python = ENVIRONMENT / "bin" / "python"
        if not python.exists():
            print(f"making {ENVIRONMENT.name}", flush=True)
            venv.create(ENVIRONMENT, with_pip=True)
        print(f"fetching {package} {version}", flush=True)
        # Unpacked beside its place and moved there whole, so that an interrupted fetch is not taken for a good one.
        with tempfile.TemporaryDirectory(dir=ENVIRONMENT) as unfinished:
            command = [str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            command += ["--no-cache-dir", "--only-binary=:all:", "--dest", unfinished, f"{package}=={version}"]
            if subprocess.run(command).returncode != 0:
                fail(f"{package} {version} could not be fetched from the package index")
            (wheel,) = pathlib.Path(unfinished).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if name.startswith(folder + "/")]
                archive.extractall(unfinished, names)
            os.rename(f"{unfinished}/{folder}", place)
    return place


def generate(update):
    include = os.pathsep.join(str(part(*entry)) for entry in HEADERS)
    compiler = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True)
    if compiler.returncode != 0:
        fail("gcc is needed for its own headers, such as stddef.h")
    environment = dict(os.environ)
    environment["SELVEDGE_CUDA_INCLUDE"] = include
    environment["SELVEDGE_UPDATE_BINDINGS"] = "1" if update else "0"
    environment["LIBCLANG_PATH"] = str(part(*LIBCLANG))
    # The wheel of libclang has no headers of its own.
    environment["BINDGEN_EXTRA_CLANG_ARGS"] = f"-I{compiler.stdout.strip()}"
    command = ["cargo", "check", "--quiet", "--lib", "--features", "bindgen"]
    if subprocess.run(command, cwd=ROOT, env=environment).returncode != 0:
        fail("see above")


def main():
    parser = argparse.ArgumentParser(description="generates the bindings of src/sys")
    parser.add_argument("--check", action="store_true", help="compare with src/sys instead of writing it")
    parser.add_argument("--if-changed", action="store_true", help="do nothing where src/sys/generated.sums fits")
    arguments = parser.parse_args()
    exist = all((ROOT / name).is_file() for name in INPUTS + OUTPUTS)
    fits = exist and SUMS.is_file() and SUMS.read_text() == sums()
    if arguments.if_changed and fits:
        print("src/sys fits what it is generated from")
        return
    generate(update=not arguments.check)
    if not arguments.check:
        SUMS.write_text(sums())
        print(f"wrote the bindings and {SUMS.relative_to(ROOT)}")
    elif fits:
        print("src/sys is what the headers give")
    else:
        fail("src/sys is what the headers give, but its sums are old; run scripts/build_bindings.py")


if __name__ == "__main__":
    main()
