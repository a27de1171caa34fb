//! Snapshots: the layout of a device's memory at one moment, and its JSON form.
//!
//! The reader accepts only a complete file: every member once and no other, and every segment covered by its blocks
//! without a gap.

use std::fmt::Write;

use super::json::{JsonError, JsonReader, Read, needed, once, write_string};
use super::statistics::PoolStatistics;
use crate::error::{Error, Result};

const FORMAT: &str = "selvedge-memory-snapshot";
const VERSION: u64 = 1;

/// The state of a block in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// In use by a buffer.
    Live,
    /// Cached for reuse.
    Cached,
    /// Addresses without memory.
    Unmapped,
}

impl BlockState {
    /// The name in the file: `live`, `cached` or `unmapped`.
    pub fn name(self) -> &'static str {
        match self {
            BlockState::Live => "live",
            BlockState::Cached => "cached",
            BlockState::Unmapped => "unmapped",
        }
    }
}

/// A block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSnapshot {
    /// The offset from the segment's start, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The block's state.
    pub state: BlockState,
    /// The stream that uses it, or used it last and may not be done; `None` if no wait is needed.
    pub stream: Option<u64>,
}

/// A contiguous range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSnapshot {
    /// The device address of the first byte.
    pub address: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The blocks, in order and without gaps.
    pub blocks: Vec<BlockSnapshot>,
}

/// The layout of a device's memory pool.
///
/// ```
/// use selvedge::driver::MemorySnapshot;
///
/// let empty = MemorySnapshot::default();
/// assert_eq!(MemorySnapshot::from_json(&empty.to_json())?, empty);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemorySnapshot {
    /// The device's name.
    pub device: String,
    /// The device's ordinal.
    pub ordinal: u64,
    /// The pool's memory source: `paged`, `plain`, `none`, `poison` or `driver`.
    pub pool: String,
    /// The total memory of the device, in bytes.
    pub total_bytes: u64,
    /// The limit on memory taken from the driver, in bytes.
    pub limit_bytes: Option<u64>,
    /// The page size in bytes; 0 if the pool has no pages.
    pub page_bytes: u64,
    /// The pool's statistics.
    pub statistics: PoolStatistics,
    /// Every segment.
    pub segments: Vec<SegmentSnapshot>,
}

impl MemorySnapshot {
    /// Returns the snapshot as JSON.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(1024);
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\n\"device\":");
        write_string(&mut out, &self.device);
        let _ = write!(out, ",\"ordinal\":{},\"pool\":", self.ordinal);
        write_string(&mut out, &self.pool);
        let _ = write!(out, ",\"total_bytes\":{},\"limit_bytes\":", self.total_bytes);
        let _ = match self.limit_bytes {
            Some(limit) => write!(out, "{limit}"),
            None => write!(out, "null"),
        };
        let _ = write!(out, ",\"page_bytes\":{},\n\"statistics\":", self.page_bytes);
        self.statistics.write(&mut out);
        out.push_str(",\n\"segments\":[");
        for (at, segment) in self.segments.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(
                out,
                "{comma}\n{{\"address\":{},\"bytes\":{},\"blocks\":[",
                segment.address, segment.bytes
            );
            for (at, block) in segment.blocks.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                let BlockSnapshot { offset, bytes, state, stream } = block;
                let _ = write!(
                    out,
                    "{comma}\n {{\"offset\":{offset},\"bytes\":{bytes},\"state\":\"{}\"",
                    state.name()
                );
                if let Some(stream) = stream {
                    let _ = write!(out, ",\"stream\":{stream}");
                }
                out.push('}');
            }
            out.push_str("]}");
        }
        out.push_str("\n]}\n");
        out
    }

    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the position of the first error.
    pub fn from_json(text: &str) -> Result<MemorySnapshot> {
        read(&mut JsonReader::new(text))
            .map_err(|JsonError { found, wanted }| Error::invalid("reading a memory snapshot", found, wanted))
    }
}

/// Reads the value of `format` or `version`.
pub(crate) fn read_head(
    reader: &mut JsonReader<'_>,
    key: &str,
    format: (&str, &mut Option<()>),
    version: (u64, &mut Option<()>),
) -> Read<()> {
    let (slot, value) = if key == "format" {
        let is = reader.string()? == format.0;
        (
            format.1,
            if is { Ok(()) } else { Err(reader.wrong(format!("the format '{}' before this", format.0))) },
        )
    } else {
        let is = reader.number()? == version.0;
        (version.1, if is { Ok(()) } else { Err(reader.wrong(format!("version {} before this", version.0))) })
    };
    once(reader, key, slot, value)
}

fn read(reader: &mut JsonReader<'_>) -> Read<MemorySnapshot> {
    let (mut format, mut version, mut device, mut ordinal, mut pool) = (None, None, None, None, None);
    let (mut total, mut limit, mut page, mut statistics, mut segments) = (None, None, None, None, None);
    reader.object(|reader, key| match key {
        "format" | "version" => read_head(reader, key, (FORMAT, &mut format), (VERSION, &mut version)),
        "device" => {
            let value = reader.string();
            once(reader, key, &mut device, value)
        }
        "ordinal" => {
            let value = reader.number();
            once(reader, key, &mut ordinal, value)
        }
        "pool" => {
            let value = reader.string();
            once(reader, key, &mut pool, value)
        }
        "total_bytes" => {
            let value = reader.number();
            once(reader, key, &mut total, value)
        }
        "limit_bytes" => {
            let value = reader.number_or_null();
            once(reader, key, &mut limit, value)
        }
        "page_bytes" => {
            let value = reader.number();
            once(reader, key, &mut page, value)
        }
        "statistics" => {
            let value = PoolStatistics::read(reader);
            once(reader, key, &mut statistics, value)
        }
        "segments" => {
            let mut list = Vec::new();
            let value = reader.array(|reader| {
                list.push(read_segment(reader)?);
                Ok(())
            });
            once(reader, key, &mut segments, value.map(|()| list))
        }
        _ => Err(reader.wrong(format!("a member of a snapshot, not '{key}'"))),
    })?;
    needed(reader, "format", format)?;
    needed(reader, "version", version)?;
    let snapshot = MemorySnapshot {
        device: needed(reader, "device", device)?,
        ordinal: needed(reader, "ordinal", ordinal)?,
        pool: needed(reader, "pool", pool)?,
        total_bytes: needed(reader, "total_bytes", total)?,
        limit_bytes: needed(reader, "limit_bytes", limit)?,
        page_bytes: needed(reader, "page_bytes", page)?,
        statistics: needed(reader, "statistics", statistics)?,
        segments: needed(reader, "segments", segments)?,
    };
    reader.end()?;
    Ok(snapshot)
}

fn read_segment(reader: &mut JsonReader<'_>) -> Read<SegmentSnapshot> {
    let (mut address, mut bytes, mut blocks) = (None, None, None);
    reader.object(|reader, key| match key {
        "address" => {
            let value = reader.number();
            once(reader, key, &mut address, value)
        }
        "bytes" => {
            let value = reader.number();
            once(reader, key, &mut bytes, value)
        }
        "blocks" => {
            let mut list: Vec<BlockSnapshot> = Vec::new();
            let mut end = 0u64;
            let value = reader.array(|reader| {
                let block = read_block(reader)?;
                if block.offset != end || block.bytes == 0 {
                    return Err(reader
                        .wrong(format!("a block of at least one byte from offset {end} on before this")));
                }
                end = end
                    .checked_add(block.bytes)
                    .ok_or_else(|| reader.wrong("blocks that fit the address space before this"))?;
                list.push(block);
                Ok(())
            });
            once(reader, key, &mut blocks, value.map(|()| (list, end)))
        }
        _ => Err(reader.wrong(format!("a member of a segment, not '{key}'"))),
    })?;
    let address: u64 = needed(reader, "address", address)?;
    let bytes = needed(reader, "bytes", bytes)?;
    let (blocks, end) = needed(reader, "blocks", blocks)?;
    if end != bytes || address.checked_add(bytes).is_none() {
        return Err(reader.wrong(format!("blocks of {bytes} bytes together before this, not {end}")));
    }
    Ok(SegmentSnapshot { address, bytes, blocks })
}

fn read_block(reader: &mut JsonReader<'_>) -> Read<BlockSnapshot> {
    let (mut offset, mut bytes, mut state, mut stream) = (None, None, None, None);
    reader.object(|reader, key| match key {
        "offset" => {
            let value = reader.number();
            once(reader, key, &mut offset, value)
        }
        "bytes" => {
            let value = reader.number();
            once(reader, key, &mut bytes, value)
        }
        "stream" => {
            let value = reader.number();
            once(reader, key, &mut stream, value)
        }
        "state" => {
            let name = reader.string()?;
            let states = [BlockState::Live, BlockState::Cached, BlockState::Unmapped];
            let found = states.into_iter().find(|state| state.name() == name);
            let value = found.ok_or_else(|| reader.wrong("'live', 'cached' or 'unmapped' before this"));
            once(reader, key, &mut state, value)
        }
        _ => Err(reader.wrong(format!("a member of a block, not '{key}'"))),
    })?;
    Ok(BlockSnapshot {
        offset: needed(reader, "offset", offset)?,
        bytes: needed(reader, "bytes", bytes)?,
        state: needed(reader, "state", state)?,
        stream,
    })
}

#[cfg(test)]
mod tests {
    use super::{BlockSnapshot, BlockState, MemorySnapshot, SegmentSnapshot};

    fn sample() -> MemorySnapshot {
        let block = |offset, bytes, state, stream| BlockSnapshot { offset, bytes, state, stream };
        let blocks = vec![
            block(0, 512, BlockState::Live, Some(3)),
            block(512, 1024, BlockState::Cached, None),
            block(1536, 512, BlockState::Unmapped, None),
        ];
        let mut snapshot = MemorySnapshot {
            device: "NVIDIA \"H\" 200".to_owned(),
            ordinal: 1,
            pool: "paged".to_owned(),
            total_bytes: 1 << 37,
            limit_bytes: Some(7),
            page_bytes: 2 << 20,
            segments: vec![SegmentSnapshot { address: 0x7000_0000_0000, bytes: 2048, blocks }],
            ..MemorySnapshot::default()
        };
        snapshot.statistics.live_bytes = 512;
        snapshot.statistics.cached_bytes = 1024;
        snapshot
    }

    #[test]
    fn a_snapshot_comes_back_from_its_text() {
        for snapshot in [MemorySnapshot::default(), sample()] {
            assert_eq!(MemorySnapshot::from_json(&snapshot.to_json()).unwrap(), snapshot);
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_error_or_a_snapshot() {
        let text = sample().to_json();
        let end = text.trim_end().len();
        for at in 0..end {
            assert!(MemorySnapshot::from_json(&text[..at]).is_err(), "cut at {at}");
        }
        for at in 0..end {
            for with in ["\"", "}", "9", "x", "é", ""] {
                let changed = format!("{}{with}{}", &text[..at], &text[at + 1..]);
                // Any text that parses is a complete snapshot, and survives a round trip.
                if let Ok(snapshot) = MemorySnapshot::from_json(&changed) {
                    assert_eq!(MemorySnapshot::from_json(&snapshot.to_json()).unwrap(), snapshot);
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = sample().to_json();
        for (from, to, names) in [
            ("selvedge-memory-snapshot", "something", "selvedge-memory-snapshot"),
            ("\"version\":1", "\"version\":2", "version 1"),
            ("\"offset\":512", "\"offset\":513", "offset 512"),
            ("\"bytes\":2048", "\"bytes\":2047", "2047"),
            ("\"cached\"", "\"lost\"", "'cached'"),
            ("\"ordinal\":1,", "", "'ordinal'"),
            ("\"ordinal\":1,", "\"ordinal\":1,\"ordinal\":1,", "only once"),
            ("\"ordinal\":1,", "\"ordinal\":-1,", "whole number"),
            ("\"ordinal\":1,", "\"ordinal\":1,\"other\":1,", "'other'"),
            ("\n]}\n", "\n]} more", "nothing more"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            let error = MemorySnapshot::from_json(&changed).unwrap_err().to_string();
            assert!(error.contains(names) && error.contains("at byte"), "{from} -> {to}: {error}");
        }
    }
}
