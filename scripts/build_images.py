#!/usr/bin/env python3
"""Compiles csrc/kernels into ptx/. The one command that makes the embedded images:

    python3 scripts/build_images.py                 # writes ptx/, compiling the families that changed
    python3 scripts/build_images.py --all           # compiles every family
    python3 scripts/build_images.py --check         # compiles every family, and compares with ptx/
    python3 scripts/build_images.py --check --since COMMIT   # those that differ from that commit's manifest

It needs cargo, and Python 3.9 on Linux x86-64 or aarch64, and the package index once: the compilers come as wheels and are kept in
.venv. No GPU, driver or toolkit.

The work is that of `selvedge build-images`, whose --help says what the columns of ptx/manifest are, with csrc/images.txt
as its list: NVRTC 12.0 compiles each family, since PTX of 12.0 (ISA 8.0) loads from driver 525 on, and ptxas of a newer
toolkit assembles it for every architecture that it is meant for. It is done in target/images, where the images lie as
they are; ptx/ has each compressed, NAME.zst (`zstd -dc` shows the text). The kernels of a family repeat each other at
distances that only a large window sees: a quarter of what gzip makes of them, and embedded as they lie there. An image like
another one is compressed with that one as its dictionary (`zstd -dc --patch-from`); ptx/references has these pairs.

tests/images.rs holds the manifest against the images, and checks that a kernel waits for the kernel ahead before it accesses
memory. build/images.rs embeds what the manifest lists. Since the program embeds ptx/ itself, ptx/ must be whole to make it again:
where it is not, get it back from git first.
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


def references():
    """The images that are compressed with another one as their dictionary, with that one. Chains have two links at most,
    because a process that loads an image decompresses all of its chain."""
    pairs = {}
    for kernel, layouts in [("wgmma", ["nn", "nt", "tn", "tt"]), ("split", ["kk", "ks", "sk", "ss"])]:
        name = lambda element, layout: f"gemm_{kernel}_{element}_{layout}.sm_90a.cubin"
        for element in ["bf16", "f16"]:
            for layout in layouts[1:]:
                pairs[name(element, layout)] = name(element, layouts[0])
        pairs[name("f16", layouts[0])] = name("bf16", layouts[0])
    pairs["gemm_mma_bf16.sm_80.ptx"] = "gemm_mma_f16.sm_80.ptx"
    for kernel, dimensions in [("forward", [64, 128, 192, 256]), ("backward", [64, 128])]:
        for dimension in dimensions:
            name = lambda element: f"attention_{kernel}_{element}_{dimension}.sm_90a.cubin"
            pairs[name("f16")] = name("bf16")
    for element in ["c128", "f64"]:
        pairs[f"gemm_mma_{element}.sm_90.ptx"] = f"gemm_mma_{element}.sm_80.ptx"
    return pairs


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
    """The files of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def unpack(zstandard):
    """Makes PLAIN what PACKED is, and returns what is there."""
    shutil.rmtree(PLAIN, ignore_errors=True)
    PLAIN.mkdir(parents=True)
    packed = files_of(PACKED)
    lines = packed.pop("references", b"").decode().splitlines()
    used = dict(line.split() for line in lines if not line.startswith("#"))

    def plain(name):
        dictionary = dictionary_of(zstandard, plain(used[name])) if name in used else None
        return zstandard.ZstdDecompressor(dict_data=dictionary).decompress(packed[f"{name}.zst"])

    for name, data in packed.items():
        if name.endswith(".zst"):
            name = name[: -len(".zst")]
            data = plain(name)
        (PLAIN / name).write_bytes(data)
    return files_of(PLAIN)


def dictionary_of(zstandard, data):
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def packed_image(zstandard, data, reference):
    """An image as it is embedded; the window is the whole image, with its reference if it has one."""
    size = len(data) + len(reference or b"")
    level = zstandard.ZstdCompressionParameters.from_level(22, source_size=size)
    dictionary = dictionary_of(zstandard, reference) if reference else None
    packed = zstandard.ZstdCompressor(compression_params=level, dict_data=dictionary).compress(data)
    # src/images/frame.rs reads this header: one segment, and its size in four bytes.
    if reference and packed[4] != 0xA0:
        fail(f"the header of an image with a reference is {packed[4]:#x} and not 0xa0")
    return packed


def pack(zstandard, before):
    """Makes PACKED what PLAIN is, where that is not what was there before. The manifest comes last."""
    after = files_of(PLAIN)
    place = lambda name: PACKED / (name if name == "manifest" else f"{name}.zst")
    pairs = {name: reference for name, reference in references().items() if {name, reference} <= after.keys()}
    changed = {name for name in after if after[name] != before.get(name)}
    changed |= {name for name, reference in pairs.items() if reference in changed}
    for name in sorted(changed, key=lambda name: (name == "manifest", name)):
        data = after[name]
        if name != "manifest":
            data = packed_image(zstandard, data, after.get(pairs.get(name)))
        place(name).write_bytes(data)
    lines = ["# Written by scripts/build_images.py: an image, and the image that is its dictionary."]
    lines += [f"{name} {reference}" for name, reference in sorted(pairs.items())]
    (PACKED / "references").write_text("\n".join(lines) + "\n")
    for name in before.keys() - after.keys():
        place(name).unlink()


def keep(arguments):
    """The option that names the manifest whose images are not compiled again."""
    if arguments.since:
        manifest = PLAIN.with_name("manifest_since")
        shown = subprocess.run(["git", "show", f"{arguments.since}:ptx/manifest"], cwd=ROOT, capture_output=True)
        if shown.returncode != 0:
            print(f"every family is compiled: {shown.stderr.decode().strip()}", flush=True)
            return []
        manifest.write_bytes(shown.stdout)
    elif arguments.check or arguments.all or not (PLAIN / "manifest").exists():
        return []
    else:
        manifest = PLAIN / "manifest"
    return ["--keep", str(manifest)]


def main():
    parser = argparse.ArgumentParser(description="compiles csrc/kernels into ptx/")
    parser.add_argument("--check", action="store_true", help="compile, and compare with ptx/")
    parser.add_argument("--all", action="store_true", help="compile what did not change, too")
    parser.add_argument("--since", metavar="COMMIT", help="trust the images that this commit's ptx/manifest lists")
    arguments = parser.parse_args()
    if arguments.since and not arguments.check:
        parser.error("--since needs --check")
    nvrtc = wheel("nvidia-cuda-nvrtc-cu12", NVRTC) / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
    ptxas = wheel("nvidia-cuda-nvcc-cu12", PTXAS) / "cuda_nvcc" / "bin" / "ptxas"
    ptxas.chmod(0o755)
    zstandard = load_zstandard()
    before = unpack(zstandard)
    # The configuration of the tests of all features, which is compiled already where they run.
    command = ["cargo", "run", "--quiet", "--all-features", "--bin", "selvedge", "--", "build-images"]
    command += ["--list", "csrc/images.txt", "--out", str(PLAIN.relative_to(ROOT))]
    command += [f"--option={option}" for option in OPTIONS]
    # Local memory is an error here: registers that did not fit, or an array indexed by a variable.
    command += ["--ptxas", str(ptxas), "--assemble-for", ASSEMBLED_FOR, "--forbid-local-memory"]
    command += ["--comment", "Written by scripts/build_images.py, which says what the columns are."]
    command += ["--check"] if arguments.check else []
    command += keep(arguments)
    environment = dict(os.environ, SELVEDGE_LIBNVRTC=str(nvrtc))
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if code == 0 and not arguments.check:
        pack(zstandard, before)
    sys.exit(code)


if __name__ == "__main__":
    main()
