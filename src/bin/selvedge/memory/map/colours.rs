//! The colours of blocks: a hue for each stream, paler for what is cached, darker for what is larger.

use std::collections::HashMap;

use selvedge::driver::{BlockSnapshot, BlockState, MemorySnapshot};

use crate::svg::INK;

/// Hues that colour-blind readers can tell apart as far as seven can be.
const HUES: [[u8; 3]; 7] = [
    [0x2f, 0x6f, 0xb3],
    [0xdb, 0x84, 0x2a],
    [0x2a, 0x96, 0x6c],
    [0x8a, 0x5c, 0xc2],
    [0xc6, 0x48, 0x4f],
    [0x1c, 0x98, 0xac],
    [0x8c, 0x93, 0x2a],
];
/// All streams that have no hue of their own.
const OTHERS: [u8; 3] = [0x5f, 0x6c, 0x7b];
/// Cached, with nothing to wait for.
pub const CACHED: &str = "#dfe4e9";
/// The name of the pattern for addresses without memory.
pub const UNMAPPED: &str = "unmapped";

/// A stream's part of what is live.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// None for blocks of no stream.
    pub stream: Option<u64>,
    pub bytes: u64,
    pub blocks: u64,
}

/// The colours of one snapshot.
pub struct Colours {
    /// The largest share first.
    pub shares: Vec<Share>,
    hues: HashMap<Option<u64>, [u8; 3]>,
    /// The smallest and the largest live block, as powers of two.
    sizes: (f64, f64),
}

impl Colours {
    pub fn of(snapshot: &MemorySnapshot) -> Colours {
        let mut shares: HashMap<Option<u64>, Share> = HashMap::new();
        let (mut least, mut most) = (u64::MAX, 0);
        for block in snapshot.segments.iter().flat_map(|segment| &segment.blocks) {
            if block.state == BlockState::Live {
                let none = Share { stream: block.stream, bytes: 0, blocks: 0 };
                let share = shares.entry(block.stream).or_insert(none);
                share.bytes = share.bytes.saturating_add(block.bytes);
                share.blocks += 1;
                (least, most) = (least.min(block.bytes), most.max(block.bytes));
            }
        }
        let mut shares: Vec<Share> = shares.into_values().collect();
        shares.sort_by_key(|share| (std::cmp::Reverse(share.bytes), share.stream));
        let hues = shares.iter().zip(HUES).map(|(share, hue)| (share.stream, hue)).collect();
        Colours { shares, hues, sizes: ((least.max(1) as f64).log2(), (most.max(1) as f64).log2()) }
    }

    /// Streams that share the last colour.
    pub fn without_hue(&self) -> &[Share] {
        self.shares.get(HUES.len()..).unwrap_or_default()
    }

    pub fn with_hue(&self) -> &[Share] {
        &self.shares[..self.shares.len().min(HUES.len())]
    }

    fn hue(&self, stream: Option<u64>) -> [u8; 3] {
        self.hues.get(&stream).copied().unwrap_or(OTHERS)
    }

    /// A live block of this stream, from 0 for the smallest to 1 for the largest.
    pub fn live(&self, stream: Option<u64>, size: f64) -> String {
        hex(shade(self.hue(stream), size))
    }

    /// A block that is cached, but may still be in use by this stream.
    pub fn pending(&self, stream: Option<u64>) -> String {
        hex(mix(self.hue(stream), [255; 3], 0.76))
    }

    /// How large a block is among the live ones, from 0 to 1.
    pub fn size(&self, bytes: u64) -> f64 {
        let (least, most) = self.sizes;
        if most <= least {
            return 0.6;
        }
        (((bytes.max(1) as f64).log2() - least) / (most - least)).clamp(0.0, 1.0)
    }

    pub fn of_block(&self, block: &BlockSnapshot) -> String {
        match (block.state, block.stream) {
            (BlockState::Live, stream) => self.live(stream, self.size(block.bytes)),
            (BlockState::Cached, Some(stream)) => self.pending(Some(stream)),
            (BlockState::Cached, None) => CACHED.to_owned(),
            (BlockState::Unmapped, _) => format!("url(#{UNMAPPED})"),
        }
    }

    /// The colour of text on a live block.
    pub fn on_live(&self, block: &BlockSnapshot) -> &'static str {
        let [red, green, blue] = shade(self.hue(block.stream), self.size(block.bytes)).map(f64::from);
        if 0.3 * red + 0.59 * green + 0.11 * blue > 150.0 { INK } else { "#ffffff" }
    }
}

/// Paler for what is small, a little darker than the hue for what is large.
fn shade(hue: [u8; 3], size: f64) -> [u8; 3] {
    if size < 0.7 {
        mix(hue, [255; 3], 0.5 * (0.7 - size) / 0.7)
    } else {
        mix(hue, [0; 3], 0.8 * (size - 0.7))
    }
}

fn mix(colour: [u8; 3], with: [u8; 3], part: f64) -> [u8; 3] {
    let mut mixed = colour;
    for (own, other) in mixed.iter_mut().zip(with) {
        *own = (f64::from(*own) * (1.0 - part) + f64::from(other) * part).round() as u8;
    }
    mixed
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use selvedge::driver::SegmentSnapshot;

    use super::*;

    #[test]
    fn the_largest_shares_have_hues_of_their_own() {
        let block = |stream: u64| BlockSnapshot {
            offset: 0,
            bytes: 512 << stream,
            state: BlockState::Live,
            stream: (stream > 0).then_some(stream),
        };
        let blocks = (0..9).map(block).collect();
        let segments = vec![SegmentSnapshot { address: 0, bytes: 0, blocks }];
        let colours = Colours::of(&MemorySnapshot { segments, ..MemorySnapshot::default() });
        assert_eq!((colours.with_hue().len(), colours.without_hue().len()), (7, 2));
        assert_eq!(colours.with_hue()[0], Share { stream: Some(8), bytes: 512 << 8, blocks: 1 });
        assert_eq!(colours.without_hue()[1].stream, None);
        let mut found: Vec<String> = (0..9).map(|stream| colours.live(block(stream).stream, 0.5)).collect();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 8);
        assert!(colours.size(1) == 0.0 && colours.size(u64::MAX) == 1.0);
    }
}
