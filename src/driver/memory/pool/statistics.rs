//! The statistics of a memory pool.
//!
//! Accounting is by stream under quotas, so peaks are exact and the common path shares nothing. A `MemoryScope` is one more peak.

use std::fmt::Write;

use super::json::{JsonReader, Read, needed, once};

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The statistics of a device's memory pool. Sizes are in bytes.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct PoolStatistics {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl PoolStatistics {
            /// Returns every number with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            pub(crate) fn read(reader: &mut JsonReader<'_>) -> Read<PoolStatistics> {
                $(let mut $name = None;)*
                reader.object(|reader, key| match key {
                    $(stringify!($name) => {
                        let value = reader.number();
                        once(reader, key, &mut $name, value)
                    })*
                    _ => Err(reader.wrong(format!("a number of the statistics, not '{key}'"))),
                })?;
                Ok(PoolStatistics { $($name: needed(reader, stringify!($name), $name)?,)* })
            }
        }
    };
}

statistics! {
    /// Bytes of blocks in use by buffers.
    live_bytes,
    /// The peak of `live_bytes`.
    peak_live_bytes,
    /// Bytes requested by live buffers; the rest of `live_bytes` is rounding.
    requested_bytes,
    /// The peak of `requested_bytes`.
    peak_requested_bytes,
    /// Bytes of blocks cached for reuse.
    cached_bytes,
    /// Bytes obtained from the driver and not returned.
    reserved_bytes,
    /// The peak of `reserved_bytes`.
    peak_reserved_bytes,
    /// Bytes of the largest cached block, or of the largest run of adjacent ones.
    largest_cached_bytes,
    /// Buffers requested.
    requests,
    /// Requests served by a cached block.
    hits,
    /// Allocations from the driver: segments or pages of memory.
    driver_allocations,
    /// Allocations returned to the driver.
    driver_frees,
    /// Pages mapped at an address.
    maps,
    /// Pages unmapped from an address.
    unmaps,
    /// Blocks split in two.
    splits,
    /// Blocks merged with a neighbour.
    merges,
    /// Blocks of one stream given to another, which had to wait.
    hand_overs,
}

impl PoolStatistics {
    /// Returns the fraction of cached bytes outside the largest block: 0 if all are in one block.
    pub fn fragmentation(&self) -> f64 {
        if self.cached_bytes == 0 {
            return 0.0;
        }
        (1.0 - self.largest_cached_bytes as f64 / self.cached_bytes as f64).max(0.0)
    }

    pub(crate) fn write(&self, out: &mut String) {
        out.push('{');
        for (at, (name, value)) in self.named().into_iter().enumerate() {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "{}\"{name}\":{value}", if at == 0 { "" } else { "," });
        }
        out.push('}');
    }
}
