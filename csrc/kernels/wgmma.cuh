// wgmma: D += A B for A of 64 x 16 and B of 16 x N in shared memory, as TMA with the 128-byte swizzle stores them, and D of 64 x N in
// f32 registers of a warpgroup (128 threads). A and B are ELEMENT: bf16 or f16.
//
// Thread t of the warpgroup holds of D, with warp w = t / 32, g = t % 32 / 4 and q = t % 4:
//   d[4 j + 2 h + e] = D[16 w + g + 8 h][8 j + 2 q + e]     for j < N / 8 and h, e in {0, 1}
//
// An operand has one of two layouts of rows of 128 bytes (64 elements):
// - *K-major*: a row is 64 k of one m or n. 8 rows are 1024 bytes. The next 16 k begin 32 bytes later.
// - *MN-major*: a row is 64 m or n of one k, and 64 rows are a panel of 8192 bytes. 8 rows are 1024 bytes.
//   The next 16 k begin 2048 bytes later, the next 64 m or n a panel later. Operands of more k have panels of 128 bytes for each k.
// A can be in registers too: a[4] holds A[16 w + g + 8 h][8 j + 2 q] and the next k in a[2 j + h], as D of 16 columns rounded in pairs.
//
// Between `wgmma_begin` and `wgmma_wait` nothing may access the registers of D. The PTX manual's "Asynchronous warpgroup level matrix
// multiply-accumulate" defines the instruction and the descriptors.
#pragma once
#include "types.cuh"

#define TEXT_OF(x) #x
#define NAME_OF(x) TEXT_OF(x)

// Orders earlier accesses to the registers of D before the products that follow (wgmma.fence).
__device__ inline void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Makes the products issued since the last call a group.
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most the `Groups` latest groups are unfinished.
template <int Groups>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}

// Returns the matrix descriptor of an operand that begins at a multiple of 1024 bytes. Its fields are in units of 16 bytes: the stride
// byte offset (`eight_rows`), and the leading byte offset (`next_panel`), which K-major operands ignore.
template <bool MnMajor, u32 PanelBytes = 8192>
__device__ inline u64 wgmma_operand(u32 address) {
    constexpr u64 swizzle_128 = 1ull << 62;
    constexpr u64 eight_rows = (u64)(1024 / 16) << 32;
    constexpr u64 next_panel = (u64)(MnMajor ? PanelBytes / 16 : 1) << 16;
    return swizzle_128 | eight_rows | next_panel | (address & 0x3ffff) / 16;
}

// Returns the increment of a descriptor's address to the next 16 k, in units of 16 bytes.
template <bool MnMajor>
__device__ constexpr u64 wgmma_step() {
    return MnMajor ? 2048 / 16 : 32 / 16;
}

// The asm operands of D: their names in the instruction (REGISTERS) and their constraints (NUMBERS).
#define COMMA ,
#define REGISTERS_0_7 "%0, %1, %2, %3, %4, %5, %6, %7"
#define REGISTERS_8_15 "%8, %9, %10, %11, %12, %13, %14, %15"
#define REGISTERS_16_31 \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"

#define REGISTERS_0_15 REGISTERS_0_7 ", " REGISTERS_8_15
#define REGISTERS_0_31 REGISTERS_0_15 ", " REGISTERS_16_31

#define REGISTERS_32_63 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" ", " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

#define REGISTERS_64_95 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" ", " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

#define REGISTERS_96_127 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" ", " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define NUMBERS_0_7 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])

#define NUMBERS_8_15 \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])

#define NUMBERS_16_31 \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])

#define NUMBERS_0_15 NUMBERS_0_7 COMMA NUMBERS_8_15
#define NUMBERS_0_31 NUMBERS_0_15 COMMA NUMBERS_16_31

#define NUMBERS_32_63 \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
    "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
    "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])

#define NUMBERS_64_95 \
    "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
    "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), \
    "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), \
    "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])

#define NUMBERS_96_127 \
    "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), \
    "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), \
    "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
    "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])


// D = A B if `add` is 0, else D += A B. a_at to b_transposed_at are the names of the asm operands after those of D.
#define WGMMA(n, registers, numbers, a_at, b_at, add_at, a_transposed_at, b_transposed_at)                        \
    asm volatile(                                                                                                 \
        "{\n"                                                                                                     \
        ".reg .pred adds;\n"                                                                                      \
        "setp.ne.b32 adds, " add_at ", 0;\n"                                                                      \
        "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." NAME_OF(ELEMENT) "." NAME_OF(ELEMENT) " {" registers "}, " \
        a_at ", " b_at ", adds, 1, 1, " a_transposed_at ", " b_transposed_at ";\n"                                \
        "}"                                                                                                       \
        : numbers                                                                                                 \
        : "l"(a), "l"(b), "r"(add), "n"((int)MnMajorA), "n"((int)MnMajorB))

// Issues one product: 64 rows, `Columns` columns, 16 k. a and b are matrix descriptors.
template <int Columns, bool MnMajorA, bool MnMajorB>
__device__ inline void wgmma(f32 (&d)[Columns / 2], u64 a, u64 b, u32 add) {
    static_assert(Columns == 16 || Columns == 32 || Columns == 64 || Columns == 128 || Columns == 192 || Columns == 256,
                  "no such product is written down here");
    if constexpr (Columns == 16) {
        WGMMA("16", REGISTERS_0_7, NUMBERS_0_7, "%8", "%9", "%10", "%11", "%12");
    } else if constexpr (Columns == 32) {
        WGMMA("32", REGISTERS_0_15, NUMBERS_0_15, "%16", "%17", "%18", "%19", "%20");
    } else if constexpr (Columns == 64) {
        WGMMA("64", REGISTERS_0_31, NUMBERS_0_31, "%32", "%33", "%34", "%35", "%36");
    } else if constexpr (Columns == 128) {
        WGMMA("128", REGISTERS_0_31 ", " REGISTERS_32_63, NUMBERS_0_31 COMMA NUMBERS_32_63, "%64", "%65", "%66", "%67",
              "%68");
    } else if constexpr (Columns == 192) {
        WGMMA("192", REGISTERS_0_31 ", " REGISTERS_32_63 ", " REGISTERS_64_95,
              NUMBERS_0_31 COMMA NUMBERS_32_63 COMMA NUMBERS_64_95, "%96", "%97", "%98", "%99", "%100");
    } else {
        WGMMA("256", REGISTERS_0_31 ", " REGISTERS_32_63 ", " REGISTERS_64_95 ", " REGISTERS_96_127,
              NUMBERS_0_31 COMMA NUMBERS_32_63 COMMA NUMBERS_64_95 COMMA NUMBERS_96_127, "%128", "%129", "%130", "%131",
              "%132");
    }
}

#define WGMMA_OF_REGISTERS(n, registers, numbers, a0, a1, a2, a3, b_at, add_at, b_transposed_at)                  \
    asm volatile(                                                                                                 \
        "{\n"                                                                                                     \
        ".reg .pred adds;\n"                                                                                      \
        "setp.ne.b32 adds, " add_at ", 0;\n"                                                                      \
        "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." NAME_OF(ELEMENT) "." NAME_OF(ELEMENT) " {" registers "}, {" \
        a0 ", " a1 ", " a2 ", " a3 "}, " b_at ", adds, 1, 1, " b_transposed_at ";\n"                              \
        "}"                                                                                                       \
        : numbers                                                                                                 \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"((int)MnMajorB))

// Issues one product whose A is in registers, which nothing may write before the product has ended.
template <int Columns, bool MnMajorB>
__device__ inline void wgmma_of_registers(f32 (&d)[Columns / 2], const u32* a, u64 b, u32 add) {
    static_assert(Columns == 64 || Columns == 128, "no such product is written down here");
    if constexpr (Columns == 64) {
        WGMMA_OF_REGISTERS("64", REGISTERS_0_31, NUMBERS_0_31, "%32", "%33", "%34", "%35", "%36", "%37", "%38");
    } else {
        WGMMA_OF_REGISTERS("128", REGISTERS_0_31 ", " REGISTERS_32_63, NUMBERS_0_31 COMMA NUMBERS_32_63, "%64", "%65", "%66",
                           "%67", "%68", "%69", "%70");
    }
}

// Keeps the compiler from moving reads of accumulators up across a wait for their products.
template <int Count>
__device__ inline void pin(f32 (&d)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Returns two numbers rounded to ELEMENT in one register, the first in the lower half.
__device__ inline u32 rounded(f32 low, f32 high) {
    u32 both;
    asm("cvt.rn." NAME_OF(ELEMENT) "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
