// The products of wgmma.cuh in the sizes that attention of more than 128 columns takes: scores of 80 and 112 keys, and output of 192 and
// 256 columns.
#pragma once
#include "wgmma.cuh"

#define REGISTERS_32_39 "%32, %33, %34, %35, %36, %37, %38, %39"
#define REGISTERS_40_55 "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55"
#define NUMBERS_32_39 \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define NUMBERS_40_55 \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
    "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])

template <>
__device__ inline void wgmma<80, false, false>(f32 (&d)[40], u64 a, u64 b, u32 add) {
    constexpr bool MnMajorA = false, MnMajorB = false;
    WGMMA("80", REGISTERS_0_31 ", " REGISTERS_32_39, NUMBERS_0_31 COMMA NUMBERS_32_39, "%40", "%41", "%42", "%43", "%44");
}

template <>
__device__ inline void wgmma<112, false, false>(f32 (&d)[56], u64 a, u64 b, u32 add) {
    constexpr bool MnMajorA = false, MnMajorB = false;
    WGMMA("112", REGISTERS_0_31 ", " REGISTERS_32_39 ", " REGISTERS_40_55,
          NUMBERS_0_31 COMMA NUMBERS_32_39 COMMA NUMBERS_40_55, "%56", "%57", "%58", "%59", "%60");
}

template <>
__device__ inline void wgmma_of_registers<192, true>(f32 (&d)[96], const u32* a, u64 b, u32 add) {
    constexpr bool MnMajorB = true;
    WGMMA_OF_REGISTERS("192", REGISTERS_0_31 ", " REGISTERS_32_63 ", " REGISTERS_64_95,
                       NUMBERS_0_31 COMMA NUMBERS_32_63 COMMA NUMBERS_64_95, "%96", "%97", "%98", "%99", "%100", "%101", "%102");
}

template <>
__device__ inline void wgmma_of_registers<256, true>(f32 (&d)[128], const u32* a, u64 b, u32 add) {
    constexpr bool MnMajorB = true;
    WGMMA_OF_REGISTERS("256", REGISTERS_0_31 ", " REGISTERS_32_63 ", " REGISTERS_64_95 ", " REGISTERS_96_127,
                       NUMBERS_0_31 COMMA NUMBERS_32_63 COMMA NUMBERS_64_95 COMMA NUMBERS_96_127, "%128", "%129", "%130", "%131",
                       "%132", "%133", "%134");
}
