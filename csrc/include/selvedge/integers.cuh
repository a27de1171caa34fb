// The fixed-width integers of <stdint.h>, which NVRTC does not have.
//
// Invariants: the types are those of the toolkit's libcu++ under NVRTC (64 bits are long long, also
// where long has as many), so that a program may include both.
#pragma once

typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef int64_t intmax_t;
typedef uint64_t uintmax_t;
