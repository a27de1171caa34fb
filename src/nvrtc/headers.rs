//! The headers that every program can include, whatever is installed.
//!
//! They are handed to NVRTC with each program, as text. A header of the program's own with the same name takes the place of one
//! of these. They count as part of the program: a change of one changes what the cache looks for.

/// A name for `#include`, and the text behind it.
pub(super) type Header = (&'static str, &'static str);

/// Answers `<cstdint>`: the names in `std` too.
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
