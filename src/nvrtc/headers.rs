//! The crate's own headers, which every program can include.
//!
//! They are passed to NVRTC with each program, as text. A header of the program with the same name replaces one of
//! these. They count as part of the program: a change of one changes the cache key.

/// A name for `#include`, and the text of the header.
pub(super) type Header = (&'static str, &'static str);

/// The text for `<cstdint>`: declares the names in `std` too.
const CSTDINT: &str = "#pragma once\n#include <selvedge/integers.cuh>\n\
    namespace std {\n\
    using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;\n\
    using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;\n\
    using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;\n\
    }\n";

/// The crate's headers.
pub(super) const HEADERS: &[Header] = &[
    ("selvedge/bfloat16.cuh", include_str!("../../csrc/include/selvedge/bfloat16.cuh")),
    ("selvedge/complex.cuh", include_str!("../../csrc/include/selvedge/complex.cuh")),
    ("selvedge/half.cuh", include_str!("../../csrc/include/selvedge/half.cuh")),
    ("selvedge/integers.cuh", include_str!("../../csrc/include/selvedge/integers.cuh")),
    ("selvedge/report.cuh", include_str!("../../csrc/include/selvedge/report.cuh")),
    ("stdint.h", "#pragma once\n#include <selvedge/integers.cuh>\n"),
    ("cstdint", CSTDINT),
];
