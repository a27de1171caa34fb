//! The kernels of these tests. The fake driver reads their parameters and gives each a defined effect.

/// `mix` reads `a`, updates `b` (both `bytes` long) and takes a scalar; `make` writes; `fault_now` ends its context.
pub const PTX: &str = "\
.version 7.0
.target sm_60
.address_size 64
.global .align 4 .b8 state[64];
.visible .entry mix(
    .param .u64 mix_read_a, .param .u64 mix_update_b, .param .u64 mix_bytes_n, .param .u32 mix_salt
) { ret; }
.visible .entry make(.param .u64 make_write_a, .param .u64 make_bytes_n, .param .u32 make_salt) { ret; }
.visible .entry fault_now(.param .u64 fault_now_update_a) { ret; }
.visible .entry boxes(.param .align 64 .b8 boxes_read_map[128], .param .u64 boxes_write_a, .param .u64 boxes_bytes_n) { ret; }
";

/// The same kernels for devices that know nothing older.
pub const NEWER_ISA: &str =
    ".version 8.7\n.target sm_60\n.address_size 64\n.visible .entry newer() { ret; }\n";
