//! The sums of a snapshot, as text for a terminal and as JSON.

use std::cmp::Reverse;

use selvedge::driver::{BlockSnapshot, BlockState, MemorySnapshot, SegmentSnapshot};
use serde_json::{Value, json};

use crate::output::{self, Style, Table, counted, grouped};

/// Largest blocks that are listed.
pub const LISTED: usize = 10;
/// Segments that the text lists.
const SEGMENTS: usize = 16;
/// Letters of a segment's bar.
const BAR: u64 = 32;

/// Bytes and blocks of each state. Sums saturate: a file may say anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub live: u64,
    pub cached: u64,
    pub unmapped: u64,
    pub live_blocks: u64,
    pub cached_blocks: u64,
    pub blocks: u64,
}

impl Totals {
    pub fn of<'a>(blocks: impl IntoIterator<Item = &'a BlockSnapshot>) -> Totals {
        let mut totals = Totals::default();
        for block in blocks {
            let sum = match block.state {
                BlockState::Live => {
                    totals.live_blocks += 1;
                    &mut totals.live
                }
                BlockState::Cached => {
                    totals.cached_blocks += 1;
                    &mut totals.cached
                }
                BlockState::Unmapped => &mut totals.unmapped,
            };
            *sum = sum.saturating_add(block.bytes);
            totals.blocks += 1;
        }
        totals
    }

    pub fn of_all(snapshot: &MemorySnapshot) -> Totals {
        Totals::of(snapshot.segments.iter().flat_map(|segment| &segment.blocks))
    }
}

/// A block and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Located<'a> {
    /// The numbers of its segment and in it.
    pub at: (usize, usize),
    pub address: u64,
    pub block: &'a BlockSnapshot,
}

/// The largest blocks of one state, largest first.
pub fn largest(snapshot: &MemorySnapshot, state: BlockState, count: usize) -> Vec<Located<'_>> {
    let mut found: Vec<Located> = Vec::new();
    for (number, segment) in snapshot.segments.iter().enumerate() {
        for (within, block) in segment.blocks.iter().enumerate() {
            if block.state == state {
                // A snapshot's addresses end below 2^64.
                let address = segment.address.saturating_add(block.offset);
                found.push(Located { at: (number, within), address, block });
            }
        }
    }
    found.sort_by_key(|located| (Reverse(located.block.bytes), located.address));
    found.truncate(count);
    found
}

/// Such as `stream 3`.
pub fn stream(stream: Option<u64>) -> String {
    stream.map_or_else(|| "no stream".to_owned(), |stream| format!("stream {stream}"))
}

pub fn optional(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "none".to_owned(), output::bytes)
}

/// Such as `pool paged, pages of 2.0 MiB`.
pub fn kind_of_pool(snapshot: &MemorySnapshot) -> String {
    match snapshot.page_bytes {
        0 => format!("pool {}", snapshot.pool),
        page => format!("pool {}, pages of {}", snapshot.pool, output::bytes(page)),
    }
}

/// The text of a snapshot.
pub fn text(snapshot: &MemorySnapshot) -> String {
    let style = Style::of_stdout();
    let (statistics, totals) = (&snapshot.statistics, Totals::of_all(snapshot));
    let title = format!("memory of {} (device {})", snapshot.device, snapshot.ordinal);
    let mut text = format!("{}\n  {}\n\n", style.bold(&title), kind_of_pool(snapshot));

    let mut table = Table::new("<><");
    let mut row = |name: &str, bytes: String, details: String| table.row([name.to_owned(), bytes, details]);
    let asked = format!(
        "in {}; {} were asked for",
        counted(totals.live_blocks, "block"),
        output::bytes(statistics.requested_bytes)
    );
    row("live", output::bytes(statistics.live_bytes), asked);
    let cached = format!(
        "in {}; the largest free block {}, fragmentation {:.3}",
        counted(totals.cached_blocks, "block"),
        output::bytes(statistics.largest_cached_bytes),
        statistics.fragmentation()
    );
    row("cached", output::bytes(statistics.cached_bytes), cached);
    let reserved = format!("in {}", counted(snapshot.segments.len() as u64, "segment"));
    row("reserved", output::bytes(statistics.reserved_bytes), reserved);
    row("peak live", output::bytes(statistics.peak_live_bytes), String::new());
    row("peak reserved", output::bytes(statistics.peak_reserved_bytes), ratio_details(snapshot));
    row("cap", optional(snapshot.limit_bytes), String::new());
    row("device", output::bytes(snapshot.total_bytes), String::new());
    text += &table.render(style);

    text += &heading(style, "segments");
    let head = ["address", "bytes", "live", "cached", "no memory", "blocks", "live █▓▒░ cached"];
    let mut table = Table::with_head("<>>>>><", head);
    for segment in snapshot.segments.iter().take(SEGMENTS) {
        let totals = Totals::of(&segment.blocks);
        let [bytes, live, cached, unmapped] =
            [segment.bytes, totals.live, totals.cached, totals.unmapped].map(output::bytes);
        let address = format!("{:#x}", segment.address);
        table.row([address, bytes, live, cached, unmapped, grouped(totals.blocks), bar(segment)]);
    }
    text += &table.render(style);
    if let Some(more) = snapshot.segments.len().checked_sub(SEGMENTS).filter(|more| *more > 0) {
        text += &format!("  and {} more\n", counted(more as u64, "segment"));
    }

    text += &heading(style, "largest live blocks");
    let mut table = Table::with_head("<><", ["address", "bytes", "stream"]);
    for Located { address, block, .. } in largest(snapshot, BlockState::Live, LISTED) {
        let stream = block.stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string());
        table.row([format!("{address:#x}"), output::bytes(block.bytes), stream]);
    }
    text += &table.render(style);

    text += &heading(style, "since the pool was made");
    let mut table = Table::new("<>");
    for (name, value) in statistics.named() {
        if !name.ends_with("_bytes") {
            table.row([name.replace("hand_overs", "hand-overs").replace('_', " "), grouped(value)]);
        }
    }
    text + &table.render(style)
}

fn ratio_details(snapshot: &MemorySnapshot) -> String {
    let statistics = &snapshot.statistics;
    if statistics.peak_live_bytes == 0 {
        return String::new();
    }
    format!("{:.3} of peak live", statistics.peak_reserved_bytes as f64 / statistics.peak_live_bytes as f64)
}

pub fn heading(style: Style, name: &str) -> String {
    format!("\n{}\n", style.dim(name))
}

/// A segment's memory from its first to its last byte in a few letters, darker where more is live. Addresses without memory
/// are left out: a range has far more of them.
fn bar(segment: &SegmentSnapshot) -> String {
    let totals = Totals::of(&segment.blocks);
    // Blocks follow each other within 64 bits.
    let memory = totals.live + totals.cached;
    let byte_of = |part: u64| (u128::from(memory) * u128::from(part) / u128::from(BAR)) as u64;
    let mut blocks = segment.blocks.iter().filter(|block| block.state != BlockState::Unmapped);
    let (mut end_of_block, mut state) = (0, BlockState::Cached);
    let mut bar = String::new();
    for part in 0..BAR {
        let (mut at, end) = (byte_of(part), byte_of(part + 1));
        let (mut live, mut cached) = (0, 0);
        while at < end {
            if at >= end_of_block {
                let Some(block) = blocks.next() else { break };
                (end_of_block, state) = (end_of_block + block.bytes, block.state);
            }
            let next = end_of_block.min(end);
            *(if state == BlockState::Live { &mut live } else { &mut cached }) += next - at;
            at = next;
        }
        let eighths = u128::from(live) * 8 / u128::from((live + cached).max(1));
        // All live, mostly, about half, and less.
        bar.push(match (live + cached, eighths) {
            (0, _) => ' ',
            (_, 8) => '█',
            (_, 5..) => '▓',
            (_, 2..) => '▒',
            _ => '░',
        });
    }
    bar.trim_end().to_owned()
}

/// The JSON of a snapshot.
pub fn json(snapshot: &MemorySnapshot) -> Value {
    let totals = Totals::of_all(snapshot);
    let located = |state| {
        let blocks = largest(snapshot, state, LISTED).into_iter();
        let values = blocks.map(|Located { address, block, .. }| {
            json!({ "address": address, "bytes": block.bytes, "stream": block.stream })
        });
        values.collect::<Vec<_>>()
    };
    let segments = snapshot.segments.iter().map(|segment| {
        let totals = Totals::of(&segment.blocks);
        json!({
            "address": segment.address,
            "bytes": segment.bytes,
            "live_bytes": totals.live,
            "cached_bytes": totals.cached,
            "unmapped_bytes": totals.unmapped,
            "blocks": totals.blocks,
        })
    });
    json!({
        "device": snapshot.device,
        "ordinal": snapshot.ordinal,
        "pool": snapshot.pool,
        "total_bytes": snapshot.total_bytes,
        "limit_bytes": snapshot.limit_bytes,
        "page_bytes": snapshot.page_bytes,
        "statistics": statistics(&snapshot.statistics),
        "fragmentation": snapshot.statistics.fragmentation(),
        "live_blocks": totals.live_blocks,
        "cached_blocks": totals.cached_blocks,
        "segments": segments.collect::<Vec<_>>(),
        "largest_live": located(BlockState::Live),
        "largest_cached": located(BlockState::Cached),
    })
}

/// A pool's numbers by name.
pub fn statistics(statistics: &selvedge::driver::PoolStatistics) -> Value {
    statistics.named().into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: u64, bytes: u64, state: BlockState) -> BlockSnapshot {
        BlockSnapshot { offset, bytes, state, stream: None }
    }

    #[test]
    fn a_bar_shows_what_is_where() {
        let blocks = vec![
            block(0, 256, BlockState::Live),
            block(256, 512, BlockState::Cached),
            block(768, 256, BlockState::Unmapped),
        ];
        let segment = SegmentSnapshot { address: 0, bytes: 1024, blocks };
        assert_eq!(bar(&segment), "██████████▓░░░░░░░░░░░░░░░░░░░░░");
        let blocks =
            vec![block(0, u64::MAX - 1, BlockState::Cached), block(u64::MAX - 1, 1, BlockState::Live)];
        let huge = SegmentSnapshot { address: 0, bytes: u64::MAX, blocks };
        assert_eq!(bar(&huge), "░".repeat(32));
        let tiny = SegmentSnapshot { address: 0, bytes: 1, blocks: vec![block(0, 1, BlockState::Live)] };
        assert_eq!(bar(&tiny).trim(), "█");
        assert_eq!(bar(&SegmentSnapshot { blocks: Vec::new(), ..tiny }), "");
    }

    #[test]
    fn sums_of_impossible_files_saturate() {
        let blocks = [block(0, u64::MAX, BlockState::Live), block(0, u64::MAX, BlockState::Live)];
        assert_eq!((Totals::of(&blocks).live, Totals::of(&blocks).blocks), (u64::MAX, 2));
    }
}
