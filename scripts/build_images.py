#!/usr/bin/env python3
"""Compiles csrc/kernels into ptx/. The one command that makes the embedded images:

    python3 scripts/build_images.py                 # writes ptx/
    python3 scripts/build_images.py --check         # compiles, and compares with ptx/
    python3 scripts/build_images.py --if-changed    # does nothing where ptx/manifest fits the sources

It needs cargo, and Python 3.9 on Linux x86-64 or aarch64, and the package index once: the compilers come as wheels and are kept in
.venv. No GPU, driver or toolkit.

The work is that of `selvedge build-images`, whose --help says what the columns of ptx/manifest are, with csrc/images.txt
as its list: NVRTC 12.0 compiles each family, since PTX of 12.0 (ISA 8.0) loads from driver 525 on, and ptxas of a newer
toolkit assembles it for every architecture that it is meant for. It is done in target/images, where the images lie as
they are; ptx/ has each compressed, NAME.zst (`zstd -dc` shows the text). The kernels of a family repeat each other at
distances that only a large window sees: a quarter of what gzip makes of them, and embedded as they lie there.

tests/images.rs holds the manifest against the images, build/images.rs embeds what it lists. Since the program embeds
ptx/ itself, ptx/ must be whole to make it again: where it is not, get it back from git first.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PACKED = ROOT / "ptx"
PLAIN = ROOT / "target" / "images"

NVRTC = "12.0.76"
PTXAS = "12.9.86"
ZSTANDARD = "0.25.0"
# Bit-equality with the CPU rests on --fmad=false and on the defaults --ftz=false --prec-div=true --prec-sqrt=true.
# 177 is an unused function: a family of several is made of what one source file has for all.
OPTIONS = ["--std=c++17", "--fmad=false", "--diag-suppress=177"]
# The architectures that PTX for the least of these runs on: all from there on that the assembler knows.
ASSEMBLED_FOR = "sm_60,sm_61,sm_70,sm_75,sm_80,sm_86,sm_89,sm_90,sm_90a,sm_100,sm_120"


def fail(text):
    sys.exit(f"build_images: {text}")


def wheel(package, version):
    """A package of the index, unpacked in its own folder of .venv, so that several versions can stand side by side."""
    folder = ENVIRONMENT / f"{package}-{version}"
    if not folder.exists():
        python = ENVIRONMENT / "bin" / "python"
        if not python.exists():
            print(f"making {ENVIRONMENT.name}", flush=True)
            venv.create(ENVIRONMENT, with_pip=True)
        print(f"fetching {package} {version}", flush=True)
        # Installed beside its place and moved there whole, so that an interrupted fetch is not taken for a good one.
        with tempfile.TemporaryDirectory(dir=ENVIRONMENT) as unfinished:
            command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            command += ["--target", f"{unfinished}/wheel", f"{package}=={version}"]
            if subprocess.run(command).returncode != 0:
                fail(f"{package} {version} could not be fetched from the package index")
            os.rename(f"{unfinished}/wheel", folder)
    return folder / "nvidia"


def load_zstandard():
    sys.path.insert(0, str(wheel("zstandard", ZSTANDARD).parent))
    import zstandard

    return zstandard


def files_of(folder):
    """What lies in a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def unpack(zstandard):
    """Makes PLAIN what PACKED is, and returns what is there."""
    shutil.rmtree(PLAIN, ignore_errors=True)
    PLAIN.mkdir(parents=True)
    for name, data in files_of(PACKED).items():
        if name.endswith(".zst"):
            name, data = name[: -len(".zst")], zstandard.ZstdDecompressor().decompress(data)
        (PLAIN / name).write_bytes(data)
    return files_of(PLAIN)


def pack(zstandard, before):
    """Makes PACKED what PLAIN is, where that is not what was there before. The manifest comes last."""
    after = files_of(PLAIN)
    place = lambda name: PACKED / (name if name == "manifest" else f"{name}.zst")
    changed = [name for name in after if after[name] != before.get(name)]
    for name in sorted(changed, key=lambda name: (name == "manifest", name)):
        data = after[name]
        if name != "manifest":
            # The window is the whole image.
            level = zstandard.ZstdCompressionParameters.from_level(22, source_size=len(data))
            data = zstandard.ZstdCompressor(compression_params=level).compress(data)
        place(name).write_bytes(data)
    for name in before.keys() - after.keys():
        place(name).unlink()


def main():
    parser = argparse.ArgumentParser(description="compiles csrc/kernels into ptx/")
    parser.add_argument("--check", action="store_true", help="compile, and compare with ptx/")
    parser.add_argument("--if-changed", action="store_true", help="do nothing where ptx/manifest fits the sources")
    arguments = parser.parse_args()
    nvrtc = wheel("nvidia-cuda-nvrtc-cu12", NVRTC) / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
    ptxas = wheel("nvidia-cuda-nvcc-cu12", PTXAS) / "cuda_nvcc" / "bin" / "ptxas"
    ptxas.chmod(0o755)
    zstandard = load_zstandard()
    before = unpack(zstandard)
    command = ["cargo", "run", "--quiet", "--features", "cli", "--bin", "selvedge", "--", "build-images"]
    command += ["--list", "csrc/images.txt", "--out", str(PLAIN.relative_to(ROOT))]
    command += [f"--option={option}" for option in OPTIONS]
    # Local memory is an error here: registers that did not fit, or an array indexed by a variable.
    command += ["--ptxas", str(ptxas), "--assemble-for", ASSEMBLED_FOR, "--forbid-local-memory"]
    # A kernel that may start before the one ahead of it has ended reads what that one writes.
    command += ["--forbid-early-access"]
    command += ["--comment", "Written by scripts/build_images.py, which says what the columns are."]
    command += ["--check"] if arguments.check else []
    command += ["--if-changed"] if arguments.if_changed else []
    environment = dict(os.environ, SELVEDGE_LIBNVRTC=str(nvrtc))
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if code == 0 and not arguments.check:
        pack(zstandard, before)
    sys.exit(code)


if __name__ == "__main__":
    main()
