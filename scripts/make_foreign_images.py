#!/usr/bin/env python3
"""Writes kernel images made by other tools, each with a description that the device suite runs it by.

    python3 scripts/make_foreign_images.py nvcc   FOLDER [SITE]   # nvcc of the wheels, with nvcc's own CUDA in SITE
    python3 scripts/make_foreign_images.py triton FOLDER          # in an environment with triton and numpy
    python3 scripts/make_foreign_images.py numba  FOLDER          # in an environment with numba-cuda
    python3 scripts/make_foreign_images.py cupy   FOLDER          # in an environment with cupy, its NVRTC and CUDA's headers

None of them needs a GPU. What is committed in tests/data/gpu/foreign was made by nvcc 13.0.88, Triton 3.6.0,
numba-cuda 0.30.4 with NVVM 13.0.88, and CuPy 13.6.0 with NVRTC 12.9.86. `SELVEDGE_TEST_FOREIGN=FOLDER gpu foreign_images` runs what a folder holds.

A description, NAME.txt, has one word and its values a line:

    image FILE any|sm_75 later|sm_80 minors|sm_90 alone isa 8.7
                                                where it runs: on all, on this and later ones, on later minors of this,
                                                on this alone; with drivers of this ISA. Several lines: the same by each
    kernel NAME
    grid X Y Z / block X Y Z / shared BYTES
    write_global NAME TYPE DATA                 before the launch
    read TYPE DATA / write TYPE DATA            the next argument: a buffer to read, or one with what it must hold after
    view read|write TYPE DATA                   the same inside a struct {address, size, shape, stride in bytes}
    integer TYPE VALUE / float TYPE VALUE       the next argument: a scalar
    null                                        the next argument: an address that is not used
    read_global NAME TYPE DATA                  what it must hold after the launch

TYPE is u8, i16, i32, u32, i64, u64, f16, f32 or f64; DATA is `ramp FIRST STEP COUNT` or `values V V …`.
"""

import os
import pathlib
import subprocess
import sys


def describe(folder, name, lines):
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


def values(numbers):
    return "values " + " ".join(repr(number) for number in numbers)


def make_nvcc(folder, site):
    source = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "gpu" / "foreign" / "nvcc.cu"
    root = pathlib.Path(site) / "nvidia" / "cu13" if site else None
    nvcc = str(root / "bin" / "nvcc") if root else "nvcc"

    def build(output, *options):
        # Without the path of the source: the image would contain it.
        command = [nvcc, *options, "-o", str((folder / output).resolve()), source.name]
        subprocess.run(command, check=True, cwd=source.parent)

    several = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in ("75", "80", "90", "120")]
    several.append("-gencode=arch=compute_75,code=compute_75")
    build("nvcc.ptx", "-ptx", "-arch=compute_75")
    build("nvcc_sm80.cubin", "-cubin", "-arch=sm_80")
    build("nvcc_sm90.cubin", "-cubin", "-arch=sm_90")
    build("nvcc_plain.fatbin", "-fatbin", "-no-compress", *several)
    build("nvcc_compressed.fatbin", "-fatbin", *several)
    build("nvcc_fast.fatbin", "-fatbin", "--compress-mode=speed", *several)
    images = [
        "image nvcc.ptx sm_75 later isa 9.0",
        "image nvcc_sm80.cubin sm_80 minors isa 9.0",
        "image nvcc_sm90.cubin sm_90 minors isa 9.0",
        "image nvcc_plain.fatbin any isa 9.0",
        "image nvcc_compressed.fatbin any isa 9.0",
        "image nvcc_fast.fatbin any isa 9.0",
    ]
    weights = [1.0, 2.0, 0.5, -1.0]
    for letter, kind in (("f", "f32"), ("d", "f64")):
        weighed = [i * 0.25 * weights[i % 4] for i in range(300)]
        describe(folder, f"nvcc_weigh_{kind}", [
            *images,
            f"kernel _ZN6shapes5weighI{letter}EEvPKT_PS1_i",
            "grid 3 1 1",
            "block 128 1 1",
            f"write_global weights f32 {values(weights)}",
            f"read {kind} ramp 0 0.25 300",
            f"write {kind} {values(weighed)}",
            "integer i32 300",
            f"read_global weights f32 {values(weights)}",
            "read_global calls u32 values 11",
        ])
    describe(folder, "nvcc_add_arrays", [
        *images,
        "kernel _Z10add_arrays5ArrayIKiES1_S_IiE",
        "grid 4 1 1",
        "block 96 1 1",
        "view read i32 ramp 0 3 333",
        "view read i32 ramp 1000 -1 333",
        "view write i32 ramp 1000 2 333",
    ])
    describe(folder, "nvcc_halve", [
        *images,
        "kernel halve",
        "grid 3 1 1",
        "block 64 1 1",
        "shared 256",
        "read f16 ramp 0 1 150",
        "float f16 0.5",
        "write f32 ramp -0 -0.5 150",
        "integer u8 1",
        "integer i16 150",
    ])


def make_triton(folder):
    # Source lines would put this machine's paths into the images.
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    import numpy
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    @triton.jit
    def add_kernel(left, right, out, length, BLOCK: tl.constexpr):
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = index < length
        tl.store(out + index, tl.load(left + index, mask=inside) + tl.load(right + index, mask=inside), mask=inside)

    @triton.jit
    def row_sums(matrix, factor, out, stride, columns, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        column = tl.arange(0, BLOCK)
        values = tl.load(matrix + row * stride + column, mask=column < columns, other=0.0).to(tl.float32)
        tl.store(out + row, tl.sum(values, axis=0) * factor)

    @triton.jit
    def product(left, right, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
        m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
        a = tl.load(left + m[:, None] * K + k[None, :])
        b = tl.load(right + k[:, None] * N + n[None, :])
        tl.store(out + m[:, None] * N + n[None, :], tl.dot(a, b))

    def compile_one(name, function, signature, constants, grid, arguments, options):
        source = ASTSource(fn=function, signature=signature, constexprs=constants)
        kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        ptx, metadata = kernel.asm["ptx"], kernel.metadata
        (folder / f"triton_{name}.ptx").write_text(ptx)
        (folder / f"triton_{name}.cubin").write_bytes(kernel.asm["cubin"])
        version = next(line.split()[1] for line in ptx.splitlines() if line.startswith(".version"))
        target = next(line.split()[1] for line in ptx.splitlines() if line.startswith(".target")).rstrip(",")
        alone = target.endswith("a")
        # Triton adds parameters of its own: scratch memory, which may be null where none is asked for.
        assert metadata.global_scratch_size == 0 and metadata.profile_scratch_size == 0
        entry = ptx[ptx.index(".entry"):]
        hidden = entry[:entry.index(")")].count(".param") - len(arguments)
        describe(folder, f"triton_{name}", [
            f"image triton_{name}.ptx {target.rstrip('a')} {'alone' if alone else 'later'} isa {version}",
            f"image triton_{name}.cubin {target.rstrip('a')} {'alone' if alone else 'minors'} isa {version}",
            f"kernel {metadata.name}",
            "grid " + " ".join(str(extent) for extent in grid),
            f"block {32 * metadata.num_warps} 1 1",
            f"shared {metadata.shared}",
            *arguments,
            *["null"] * hidden,
        ])

    compile_one(
        "add", add_kernel,
        {"left": "*fp32", "right": "*fp32", "out": "*fp32", "length": "i32", "BLOCK": "constexpr"}, {(4,): 256},
        (4, 1, 1),
        ["read f32 ramp 0 0.5 1000", "read f32 ramp 100 -0.25 1000", "write f32 ramp 100 0.25 1000", "integer i32 1000"],
        {"num_warps": 4},
    )
    rows, columns = 5, 100
    sums = [0.5 * sum(range(row * columns, row * columns + columns)) for row in range(rows)]
    compile_one(
        "row_sums", row_sums,
        {"matrix": "*fp16", "factor": "fp32", "out": "*fp32", "stride": "i64", "columns": "i32", "BLOCK": "constexpr"},
        {(5,): 128},
        (rows, 1, 1),
        [f"read f16 ramp 0 1 {rows * columns}", "float f32 0.5", f"write f32 {values(sums)}",
         f"integer i64 {columns}", f"integer i32 {columns}"],
        {"num_warps": 2},
    )
    m, n, k = 64, 32, 64
    left = (numpy.arange(m * k) % 7 - 3).astype(numpy.float32)
    right = (numpy.arange(k * n) % 5 - 2).astype(numpy.float32)
    result = left.reshape(m, k) @ right.reshape(k, n)
    whole = lambda array: values([int(value) for value in array.reshape(-1)])
    compile_one(
        "product", product,
        {"left": "*fp16", "right": "*fp16", "out": "*fp32", "M": "constexpr", "N": "constexpr", "K": "constexpr"},
        {(3,): m, (4,): n, (5,): k},
        (1, 1, 1),
        [f"read f16 {whole(left)}", f"read f16 {whole(right)}", f"write f32 {whole(result)}"],
        {"num_warps": 4},
    )


def make_numba(folder):
    from numba import cuda, types

    def axpy(factor, x, y, out):
        index = cuda.grid(1)
        if index < out.size:
            out[index] = factor * x[index] + y[index]

    # The name is mangled from the function's, its module's and all types; a short module keeps it readable.
    axpy.__module__ = "foreign"
    array = types.Array(types.float32, 1, "C")
    ptx, _ = cuda.compile_ptx(axpy, (types.float64, array, array, array), cc=(9, 0))
    (folder / "numba_axpy.ptx").write_text(ptx)
    version = next(line.split()[1] for line in ptx.splitlines() if line.startswith(".version"))
    name = ptx.split(".visible .entry ")[1].split("(")[0]

    def flattened(data):
        # An array is its owner, its parent, its size, its item size, its address, its shape and its strides.
        return ["null", "null", "integer i64 500", "integer i64 4", data, "integer i64 500", "integer i64 4"]

    describe(folder, "numba_axpy", [
        f"image numba_axpy.ptx sm_90 later isa {version}",
        f"kernel {name}",
        "grid 4 1 1",
        "block 128 1 1",
        "float f64 2.0",
        *flattened("read f32 ramp 0 1 500"),
        *flattened("read f32 ramp 5 -1 500"),
        *flattened("write f32 ramp 5 1 500"),
    ])


def make_cupy(folder):
    import cupy
    from cupy.cuda import compiler

    # A raw kernel with CuPy's own complex numbers, compiled as cupy.RawKernel does it; only the device is not asked.
    source = """
#include <cupy/complex.cuh>
extern "C" __global__ void multiply(const complex<float> *a, const complex<float> *b, complex<float> *out, float by,
                                    unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * b[i] * by;
}
"""
    compiler._get_arch_for_options_for_nvrtc = lambda arch=None: (f"-arch=compute_{arch}", "ptx")
    include = pathlib.Path(cupy.__file__).parent / "_core" / "include"
    options = ("-std=c++17", f"-I{include}")
    ptx = compiler.compile_using_nvrtc(source, options=options, arch="75", filename="multiply.cu")[0]
    (folder / "cupy_multiply.ptx").write_bytes(ptx.rstrip(b"\0"))
    version = next(line.split()[1] for line in ptx.decode().splitlines() if line.startswith(".version"))
    describe(folder, "cupy_multiply", [
        f"image cupy_multiply.ptx sm_75 later isa {version}",
        "kernel multiply",
        "grid 1 1 1",
        "block 32 1 1",
        # 1 + 2i, 3 + 4i, 5 + 6i and 7 + 8i, times 1, i, 2 and 1 + i, times two.
        "read f32 ramp 1 1 8",
        "read f32 " + values([1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 1.0]),
        "write f32 " + values([2.0, 4.0, -8.0, 6.0, 20.0, 24.0, -2.0, 30.0]),
        "float f32 2.0",
        "integer u32 4",
    ])


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("nvcc", "triton", "numba", "cupy"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "nvcc":
        make_nvcc(folder, sys.argv[3] if len(sys.argv) > 3 else None)
    elif sys.argv[1] == "cupy":
        make_cupy(folder)
    elif sys.argv[1] == "triton":
        make_triton(folder)
    else:
        make_numba(folder)


if __name__ == "__main__":
    main()
