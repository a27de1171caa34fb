#!/usr/bin/env python3
"""Compiles csrc/kernels into ptx/. The one command that makes the embedded images:

    python3 scripts/build_images.py                 # writes ptx/
    python3 scripts/build_images.py --check         # compiles into a temporary folder and compares
    python3 scripts/build_images.py --if-changed    # does nothing where ptx/manifest fits the sources

It needs Python 3.8 on Linux x86-64 or aarch64, and the package index once: the compilers come as wheels and are kept in
.venv. No GPU, driver or toolkit.

Each family is compiled twice by NVRTC 12.0: as the real architecture, because only that assembles (and so checks)
inline PTX, and as the virtual one, whose PTX is kept. PTX of 12.0 (ISA 8.0) loads from driver 525 on. Then ptxas of a
newer toolkit assembles the PTX for every architecture that it is meant for. What is written has no comments, so that it
depends on the sources and options alone.

A family whose PTX takes the driver long to assemble has `machine_code`: what that ptxas makes of its PTX is kept beside
it (a cubin, which drivers load from the same version on). The old NVRTC's own assembling is left out there: it serialises
wgmma instructions, and ptxas checks the PTX anyway.

ptx/manifest has one line an image: the family, the target, the lowest PTX ISA that the driver must take, the kind, the
hashes of sources and of the image (FNV-1a, 64 bits), the compiler, its options and the sources. tests/images.rs holds it
against the files, build/images.rs embeds what it lists.
"""

import argparse
import concurrent.futures
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "csrc" / "kernels"
IMAGES = ROOT / "ptx"
ENVIRONMENT = ROOT / ".venv"

NVRTC = "12.0.76"
PTXAS = "12.9.86"
# Bit-equality with the CPU rests on --fmad=false and on the defaults --ftz=false --prec-div=true --prec-sqrt=true.
# 177 is an unused function: a family of several is made of what one source file has for all.
OPTIONS = ["--std=c++17", "--fmad=false", "--diag-suppress=177"]
# Where PTX for the least of these is used: every architecture that the assembler knows from there on.
ASSEMBLED_FOR = ["sm_60", "sm_61", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]

ELEMENT_TYPES = "bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 c64 c128".split()


class Family:
    """Kernels that are loaded together: a source file, its options, and the targets that it is compiled for."""

    def __init__(self, name, source, targets, options=(), machine_code=False):
        self.name, self.source, self.targets, self.options = name, source, targets, list(options)
        self.machine_code = machine_code


def simt_product(element):
    wide = ["-DWIDE"] if element in ("f16", "bf16") else []
    return Family(f"gemm_simt_{element}", "gemm_simt.cu", ["sm_60"], [f"-DELEMENT={element}"] + wide)


def wgmma_product(element):
    return Family(f"gemm_wgmma_{element}", "gemm_wgmma.cu", ["sm_90a"], [f"-DELEMENT={element}"], machine_code=True)


FAMILIES = (
    [
        Family("arithmetic", "arithmetic.cu", ["sm_60"]),
        Family("copy", "copy.cu", ["sm_60"]),
        Family("fill", "fill.cu", ["sm_60"]),
    ]
    + [Family(f"cast_{source}", "cast.cu", ["sm_60"], [f"-DSOURCE={source}"]) for source in ELEMENT_TYPES]
    + [simt_product(element) for element in "u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128".split()]
    + [wgmma_product(element) for element in "f16 bf16".split()]
)


def fail(text):
    sys.exit(f"build_images: {text}")


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def sources_of(name, seen=None):
    """The file and all that it includes, sorted: a change of any of them changes the image."""
    seen = set() if seen is None else seen
    if name not in seen:
        seen.add(name)
        for included in re.findall(r'^#include "([^"]+)"', (KERNELS / name).read_text(), re.M):
            sources_of(included, seen)
    return sorted(seen)


def source_hash(sources, options):
    parts = [" ".join(options).encode()]
    for name in sources:
        parts += [name.encode(), (KERNELS / name).read_bytes()]
    return fnv1a(b"\0".join(parts))


class Image:
    """One file of ptx/: a family for a target, as PTX or as machine code (cubin)."""

    def __init__(self, family, target, kind="ptx"):
        self.family, self.target, self.kind = family, target, kind
        self.options = OPTIONS + family.options
        self.sources = sources_of(family.source)
        self.hash = source_hash(self.sources, self.options)
        self.name = f"{family.name}.{target}.{kind}"
        self.isa = "8.0"
        self.compiler = f"nvrtc-{NVRTC}" if kind == "ptx" else f"nvrtc-{NVRTC}+ptxas-{PTXAS}"

    def manifest_line(self, image_hash):
        return " ".join(
            [self.family.name, self.target, self.isa, self.kind, self.hash, image_hash, self.compiler]
            + [",".join(self.options), ",".join(self.sources)]
        )


def all_images():
    images = [Image(family, target) for family in FAMILIES for target in family.targets]
    images += [Image(image.family, image.target, "cubin") for image in images if image.family.machine_code]
    return sorted(images, key=lambda image: image.name)


def is_current(images):
    """Whether the manifest was written from these sources, options and families, and the images are as written."""
    try:
        lines = [line for line in (IMAGES / "manifest").read_text().splitlines() if not line.startswith("#")]
        written = [image.manifest_line(fnv1a((IMAGES / image.name).read_bytes())) for image in images]
    except FileNotFoundError:
        return False
    names = {image.name for image in images} | {"manifest"}
    return lines == written and {path.name for path in IMAGES.iterdir()} == names


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


class Compiler:
    """NVRTC, called in this process."""

    def __init__(self):
        path = wheel("nvidia-cuda-nvrtc-cu12", NVRTC) / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
        self.library = ctypes.CDLL(str(path))
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def text(self, program, kind):
        size = ctypes.c_size_t()
        if self.call(f"nvrtcGet{kind}Size", program, ctypes.byref(size)) != 0:
            return ""
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{kind}", program, buffer)
        return buffer.value.decode()

    def compile(self, source, architecture, options):
        program = ctypes.c_void_p()
        text = (KERNELS / source).read_bytes()
        self.call("nvrtcCreateProgram", ctypes.byref(program), text, source.encode(), 0, None, None)
        options = options + [f"--gpu-architecture={architecture}", f"--include-path={KERNELS}"]
        array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        status = self.call("nvrtcCompileProgram", program, len(options), array)
        log = self.text(program, "ProgramLog").strip()
        if status != 0:
            fail(f"{source} for {architecture}: {self.library.nvrtcGetErrorString(status).decode()}\n{log}")
        if log:
            print(log, file=sys.stderr)
        ptx = self.text(program, "PTX")
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return ptx


def plain(ptx):
    """PTX that depends on its source alone: without comments, which name the compiler's build, and without the constants of
    a header that NVRTC always reads and no kernel uses; names that the compiler made up, some of them from the number
    of its process, are numbered."""
    ptx = re.sub(r"/\*.*?\*/", "", ptx, flags=re.S)
    ptx = re.sub(r"^\.global \.align 8 \S+ \w+2nv6target\d\S+E\W.*;$", "", ptx, flags=re.M)
    names = {}
    ptx = re.sub(r"\b_Z\w+", lambda name: names.setdefault(name[0], f"internal_{len(names)}"), ptx)
    lines = (re.sub(r"//.*", "", line).rstrip() for line in ptx.splitlines())
    return "".join(line + "\n" for line in lines if line)


def number(architecture):
    return int(re.sub(r"\D", "", architecture))


def assemble(ptxas, path, architecture, output=os.devnull):
    """None, or what is wrong."""
    command = [str(ptxas), "-v", f"-arch={architecture}", "-o", str(output), str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        return f"ptxas for {architecture} refused {path.name}:\n{result.stderr}"
    # What it says of wgmma instructions that it cannot run beside each other.
    for line in re.findall(r"^.*Potential Performance Loss.*$", result.stderr, re.M):
        return f"ptxas for {architecture}, {path.name}: {line}"
    # Local memory is a mistake here: registers that did not fit, or an array indexed by a variable.
    for name, frame in re.findall(r"Function properties for (\w+)\s+(\d+) bytes stack frame", result.stderr):
        if int(frame) != 0:
            return f"ptxas for {architecture}: {name} of {path.name} uses {frame} bytes of local memory"
    return None


def build(images, folder):
    compiler = Compiler()
    ptxas = wheel("nvidia-cuda-nvcc-cu12", PTXAS) / "cuda_nvcc" / "bin" / "ptxas"
    ptxas.chmod(0o755)
    text = [image for image in images if image.kind == "ptx"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = []
        for index, image in enumerate(text):
            start = time.monotonic()
            source = image.family.source
            if not image.family.machine_code:
                compiler.compile(source, image.target, image.options)
            ptx = plain(compiler.compile(source, image.target.replace("sm_", "compute_"), image.options))
            head = f".version {image.isa}\n.target {image.target}\n"
            if not ptx.startswith(head):
                fail(f"{image.name} starts with {ptx[:40]!r}, not with {head!r}")
            path = folder / image.name
            path.write_text(ptx)
            if image.family.machine_code:
                running.append(pool.submit(assemble, ptxas, path, image.target, path.with_suffix(".cubin")))
            for architecture in ASSEMBLED_FOR:
                # An `a` target runs on its own architecture alone, and is machine code here.
                if not image.target.endswith("a") and number(architecture) >= number(image.target):
                    running.append(pool.submit(assemble, ptxas, path, architecture))
            seconds = time.monotonic() - start
            print(f"[{index + 1}/{len(text)}] {image.name}: {len(ptx)} bytes, {seconds:.1f} s", flush=True)
        print(f"assembling {len(running)} times", flush=True)
        errors = [error for error in (task.result() for task in running) if error]
    if errors:
        fail("\n".join(errors))
    lines = [image.manifest_line(fnv1a((folder / image.name).read_bytes())) for image in images]
    head = "# Written by scripts/build_images.py, which says what the columns are.\n"
    (folder / "manifest").write_text(head + "".join(line + "\n" for line in lines))


def main():
    parser = argparse.ArgumentParser(description="compiles csrc/kernels into ptx/")
    parser.add_argument("--check", action="store_true", help="compile into a temporary folder and compare with ptx/")
    parser.add_argument("--if-changed", action="store_true", help="do nothing where ptx/manifest fits the sources")
    arguments = parser.parse_args()
    images = all_images()
    if arguments.if_changed and is_current(images):
        print("ptx/ fits its sources")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        build(images, folder)
        made = {path.name: path.read_bytes() for path in folder.iterdir()}
    IMAGES.mkdir(exist_ok=True)
    present = {path.name: path.read_bytes() for path in IMAGES.iterdir()}
    if arguments.check:
        differing = sorted(name for name in made.keys() | present.keys() if made.get(name) != present.get(name))
        if differing:
            fail(f"ptx/ differs from what its sources give: {', '.join(differing)}; run scripts/build_images.py")
        print(f"ptx/ is what its sources give ({len(images)} images)")
        return
    for name in present.keys() - made.keys():
        (IMAGES / name).unlink()
    for name, data in made.items():
        (IMAGES / name).write_bytes(data)
    print(f"ptx/: {len(images)} images, {sum(map(len, made.values()))} bytes")


if __name__ == "__main__":
    main()
