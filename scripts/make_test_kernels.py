#!/usr/bin/env python3
"""Compiles the device suite's own kernels, tests/data/gpu/*.cu, to PTX beside them.

    python3 scripts/make_test_kernels.py SITE

SITE is the site-packages folder of an environment with nvidia-cuda-nvrtc-cu12 12.0.76 and nvidia-cuda-nvcc-cu12 12.0.76
(for ptxas). NVRTC 12.0 writes ISA 8.0, which every driver from 525 on takes. ptxas checks each image on the real
architectures that it is for; an image for linking is only checked alone.
"""

import ctypes
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "gpu"
# Source, virtual architecture, real architectures that ptxas checks, further options.
IMAGES = [
    ("basic", "compute_60", ["sm_60", "sm_75", "sm_90"], []),
    ("globals", "compute_60", ["sm_60", "sm_90"], []),
    ("hopper", "compute_90", ["sm_90", "sm_90a"], []),
    ("link_main", "compute_60", ["sm_60", "sm_90"], ["--relocatable-device-code=true"]),
    ("link_transform", "compute_60", ["sm_60", "sm_90"], ["--relocatable-device-code=true"]),
]


def compile_to_ptx(nvrtc, source, name, options):
    """The PTX of CUDA C++ text."""
    program = ctypes.c_void_p()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    arguments = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), arguments)
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    log = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetProgramLog(program, log))
    if log.value.strip():
        print(log.value.decode(), file=sys.stderr)
    check(status)
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, ptx))
    check(nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    return ptx.value.decode()


def check(status):
    if status != 0:
        sys.exit(f"NVRTC failed with status {status}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    site = pathlib.Path(sys.argv[1]) / "nvidia"
    nvrtc = ctypes.CDLL(str(site / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"))
    ptxas = site / "cuda_nvcc" / "bin" / "ptxas"
    for name, architecture, targets, further in IMAGES:
        source = (FOLDER / f"{name}.cu").read_text()
        # No header search: the one header is pasted in, so that the text does not depend on the folder.
        source = source.replace('#include "common.cuh"', (FOLDER / "common.cuh").read_text())
        options = [f"--gpu-architecture={architecture}", "--std=c++17", *further]
        ptx = compile_to_ptx(nvrtc, source, f"{name}.cu", options)
        (FOLDER / f"{name}.ptx").write_text(ptx)
        for target in targets:
            with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
                only = ["-c"] if further else []
                subprocess.run(
                    [ptxas, f"-arch={target}", *only, "-o", cubin.name, FOLDER / f"{name}.ptx"], check=True
                )
        print(f"{name}.ptx: {len(ptx)} bytes, assembles for {', '.join(targets)}")


if __name__ == "__main__":
    main()
