//! The structs that the kernels of `csrc/kernels/burst.cuh` take, under the same names.

use bytemuck::{Pod, Zeroable};

/// Neurons of a segment: `SEGMENT` of burst.cuh.
pub(super) const SEGMENT: usize = 1024;
/// Synapses of a chunk: `CHUNK` of burst.cuh.
pub(super) const CHUNK: u64 = 128;
/// Threads of a block: `THREADS` of burst.cuh.
pub(super) const THREADS: u32 = 256;
/// Bits of a packed sum that count events: `COUNT_BITS` of burst.cuh.
pub(super) const COUNT_BITS: u32 = 20;

/// The addresses of a network's memory, and its constants.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Network {
    pub parameters: u64,
    pub states: u64,
    pub rows: u64,
    pub targets: u64,
    pub weights: u64,
    pub out_degrees: u64,
    pub source_flags: u64,
    pub sums: u64,
    pub touched: u64,
    pub mask: u64,
    pub segments: u64,
    pub counters: u64,
    pub queue: u64,
    pub queue_starts: u64,
    pub first: u32,
    pub count: u32,
    pub seed: u32,
    pub dense: u32,
}

/// The counters that stay on the device between bursts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(super) struct Counters {
    pub next: u64,
    pub burst: u64,
    pub events: u64,
    pub injections: u64,
    pub candidates: u64,
    pub blocked: u64,
    pub queue: u32,
    pub chunks: u32,
}

/// The spikes of a segment and the rows that they have.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Segment {
    pub fired: u32,
    pub chunks: u32,
    pub events: u64,
}

/// The input of each burst.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Injections {
    pub ids: u64,
    pub sums: u64,
    pub counts: u64,
    pub steady_ids: u64,
    pub steady_sums: u64,
    pub steady: u64,
    pub capacity: u64,
    pub amplitude: i64,
    pub base: u32,
    pub modulus: u32,
    pub slots: u32,
    pub unused: u32,
}

/// The counts of a finished burst.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(super) struct Record {
    pub burst: u64,
    pub fired: u64,
    pub events: u64,
    pub injections: u64,
    pub candidates: u64,
    pub blocked: u64,
}

/// Page-locked memory for results.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Results {
    pub records: u64,
    pub spikes: u64,
    pub capacity: u64,
    pub slots: u64,
}

macro_rules! plain {
    ($($name:ident: $bytes:literal;)*) => {$(
        const _: () = assert!(size_of::<$name>() == $bytes);
        // SAFETY: plain numbers; all zeros is a value.
        unsafe impl Zeroable for $name {}
        // SAFETY: repr(C) of numbers of this size in all, so there is no padding.
        unsafe impl Pod for $name {}
    )*};
}

plain! {
    Network: 128;
    Counters: 56;
    Segment: 16;
    Injections: 80;
    Record: 48;
    Results: 32;
}
