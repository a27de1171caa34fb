//! What a pool holds and has done, in numbers.

use std::fmt::Write;

use super::json::{Read, Reader, needed, once};

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a device's pool holds and has done. Sizes are in bytes.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct PoolStatistics {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl PoolStatistics {
            /// Every number with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            pub(crate) fn read(reader: &mut Reader<'_>) -> Read<PoolStatistics> {
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
    /// Of blocks in use by buffers.
    live_bytes,
    /// The most that `live_bytes` ever was.
    peak_live_bytes,
    /// Asked for by the buffers that are alive; the rest of `live_bytes` is rounding.
    requested_bytes,
    /// The most that `requested_bytes` ever was.
    peak_requested_bytes,
    /// Of blocks kept for re-use.
    cached_bytes,
    /// Of memory that the driver has given and not got back.
    reserved_bytes,
    /// The most that `reserved_bytes` ever was.
    peak_reserved_bytes,
    /// Of the largest cached block, or of several side by side.
    largest_cached_bytes,
    /// Buffers asked for.
    requests,
    /// Those that a cached block served.
    hits,
    /// Allocations asked of the driver: segments or pages of memory.
    driver_allocations,
    /// Those given back to the driver.
    driver_frees,
    /// Pages given an address.
    maps,
    /// Pages whose address was taken away.
    unmaps,
    /// Blocks cut in two.
    splits,
    /// Blocks joined with a neighbour.
    merges,
    /// Blocks of one stream given to another, which was made to wait.
    hand_overs,
}

impl PoolStatistics {
    /// How much of what is cached is not in the largest piece: 0 where all is one piece.
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
