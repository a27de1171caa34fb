// csrc/kernels/wgmma.cuh, emulated: a product of a warpgroup reads its operands, and writes its numbers, at any time between
// where it is begun and where it is waited for.
#pragma once
#include "hopper.cuh"
#include "instructions.cuh"
#include "mma.cuh"

inline void wgmma_begin() {
    emulated::meet_warpgroup("wgmma.fence", nullptr, [](auto) {});
}
inline void wgmma_commit() {
    emulated::meet_warpgroup("wgmma.commit_group", nullptr, [](emulated::Fiber** threads) {
        threads[0]->block->products[threads[0]->number / 128].commit();
    });
}
template <int Groups>
inline void wgmma_wait() {
    emulated::meet_warpgroup("wgmma.wait_group", nullptr, [](emulated::Fiber** threads) {
        threads[0]->block->products[threads[0]->number / 128].wait(Groups);
    });
}

template <bool SpanContiguous, u32 PanelBytes = 8192>
inline u64 wgmma_operand(u32 address) {
    constexpr u64 swizzle_128 = 1ull << 62;
    constexpr u64 eight_rows = (u64)(1024 / 16) << 32;
    constexpr u64 next_panel = (u64)(SpanContiguous ? PanelBytes / 16 : 1) << 16;
    return swizzle_128 | eight_rows | next_panel | (address & 0x3ffff) / 16;
}
template <bool SpanContiguous>
constexpr u64 wgmma_step() {
    return SpanContiguous ? 2048 / 16 : 32 / 16;
}

namespace emulated {

// A number of an operand in shared memory, by its descriptor. A number that is not published is NaN, because a kernel may multiply
// numbers whose product it does not use.
inline f64 described(const Block* block, u64 operand, bool span_contiguous, u32 at, u32 k) {
    if (operand >> 62 != 1) fail("only operands with a swizzle of 128 bytes");
    const u32 start = (u32)(operand & 0x3fff) * 16, stride = (u32)(operand >> 32 & 0x3fff) * 16;
    const u32 leading = (u32)(operand >> 16 & 0x3fff) * 16;
    const u32 place = span_contiguous ? start + at / 64 * leading + k / 8 * stride + k % 8 * 128 + at % 64 * 2
                                      : start + at / 8 * stride + at % 8 * 128 + k * 2;
    const u32 offset = offset_in(block, place ^ (place >> 3 & 0x70), 2, "a product");
    if (block->marks[offset] != clean && block->marks[offset] != barriers_place) return NAN;
    u16 bits;
    memcpy(&bits, beside_reads(block, offset, 2, "a product"), 2);
    return value_of(bits);
}

// A thread's part of a product.
struct ProductThread {
    f32* d;
    const u32* registers;  // Four of A; null if A is in shared memory.
    u64 a, b;
    u32 add;
};

// Four registers of each thread of a warpgroup.
typedef std::array<std::array<u32, 4>, 128> Registers;

inline Registers registers_of(const std::vector<const u32*>& from) {
    Registers all;
    for (u32 i = 0; i < 128; i++) memcpy(all[i].data(), from[i], sizeof all[i]);
    return all;
}

template <int Columns, bool SpanContiguousA, bool SpanContiguousB>
inline void begin_product(Fiber** threads) {
    auto of = [&](u32 i) -> const ProductThread& { return *(const ProductThread*)threads[i]->given; };
    const ProductThread first = of(0);
    const bool by_registers = first.registers != nullptr;
    std::vector<f32*> numbers(128);
    std::vector<const u32*> registers(128);
    for (u32 i = 0; i < 128; i++) {
        const ProductThread& thread = of(i);
        if (thread.a != first.a || thread.b != first.b || !thread.add != !first.add) {
            fail("threads of a warpgroup ask for different products");
        }
        numbers[i] = thread.d;
        registers[i] = thread.registers;
    }
    const Registers begun = by_registers ? registers_of(registers) : Registers{};
    Block* const block = threads[0]->block;
    auto work = [=] {
        std::vector<f64> of_a(64 * 16), of_b(Columns * 16);
        for (u32 k = 0; k < 16; k++) {
            for (u32 row = 0; row < 64; row++) {
                const u32 thread = row / 16 * 32 + row % 8 * 4 + k % 8 / 2;
                of_a[row * 16 + k] = by_registers ? value_of(half_of(begun[thread][k / 8 * 2 + row % 16 / 8], k % 2))
                                                  : described(block, first.a, SpanContiguousA, row, k);
            }
            for (u32 column = 0; column < Columns; column++) {
                of_b[k * Columns + column] = described(block, first.b, SpanContiguousB, column, k);
            }
        }
        for (u32 row = 0; row < 64; row++) {
            auto sum = [&](u32 column) -> f32& {
                const u32 thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
                return numbers[thread][column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
            };
            f64 exact[Columns];
            for (u32 column = 0; column < Columns; column++) exact[column] = first.add ? sum(column) : 0.0;
            for (u32 k = 0; k < 16; k++) {
                for (u32 column = 0; column < Columns; column++) {
                    exact[column] += of_a[row * 16 + k] * of_b[k * Columns + column];
                }
            }
            for (u32 column = 0; column < Columns; column++) sum(column) = (f32)exact[column];
        }
    };
    // In the order in which they were begun.
    Groups& products = block->products[threads[0]->number / 128];
    DeedPointer earlier = products.last;
    products.last = begin([=] {
        if (earlier) earlier->finish();
        work();
    });
    if (by_registers) {
        products.last->awaited = [=] {
            if (registers_of(registers) != begun) fail("a register of an operand changes before its product is waited for");
        };
    }
    products.add(products.last);
}

}  // namespace emulated

template <int Columns, bool SpanContiguousA, bool SpanContiguousB>
inline void wgmma(f32 (&d)[Columns / 2], u64 a, u64 b, u32 add) {
    emulated::ProductThread own = {d, nullptr, a, b, add};
    emulated::meet_warpgroup("wgmma", &own, emulated::begin_product<Columns, SpanContiguousA, SpanContiguousB>);
}

template <int Columns, bool SpanContiguousB>
inline void wgmma_of_registers(f32 (&d)[Columns / 2], const u32* a, u64 b, u32 add) {
    emulated::ProductThread own = {d, a, 0, b, add};
    emulated::meet_warpgroup("wgmma", &own, emulated::begin_product<Columns, false, SpanContiguousB>);
}

template <int Count>
inline void pin(f32 (&)[Count]) {}

inline u32 rounded(f32 low, f32 high) {
    auto bits = [](f32 x) -> u32 {
        if (NAME_OF(ELEMENT)[0] != 'b') return to_half(x);
        const u32 wide = __float_as_uint(x);
        return std::isnan(x) ? 0x7fff : (wide + 0x7fff + (wide >> 16 & 1)) >> 16;
    };
    return bits(low) | bits(high) << 16;
}
