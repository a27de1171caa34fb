//! The position of each byte of a snapshot in the picture: segments are cut into rows, and blocks into cells of a pixel or more.
//!
//! Long ranges of addresses without memory are drawn short, or nothing else could be seen: a segment's ruler is straight
//! everywhere else. A few segments have a scale each, many share one and stand side by side. Blocks that are too narrow to
//! be seen are drawn together, in a cell that knows how much of it is what.

use selvedge::driver::{BlockSnapshot, BlockState, MemorySnapshot, SegmentSnapshot};

/// Above so many segments they share a panel.
const OWN_PANELS: usize = 12;
/// Rows of all panels together, about.
const ROWS: f64 = 24.0;
/// Blocks for which a row is enough.
const BLOCKS_A_ROW: f64 = 40.0;
/// Rows that a panel has at most.
pub const MAX_ROWS: usize = 120;
/// The part of a row that a long range without memory takes.
const BREAK: f64 = 1.0 / 16.0;
/// A segment's width, and the space between two, in pixels.
const NARROWEST: f64 = 3.0;
const BETWEEN: f64 = 3.0;
/// A cell's width in pixels.
const CELL: f64 = 2.0;

/// Offsets of a segment against positions on its ruler, which are bytes but for what is drawn short.
pub struct Ruler {
    marks: Vec<(u64, f64)>,
}

impl Ruler {
    /// A ruler on which a range without memory has at most this length.
    fn new(segment: &SegmentSnapshot, longest_gap: f64) -> Ruler {
        let mut marks = vec![(0, 0.0)];
        let mut position = 0.0;
        for run in segment.blocks.chunk_by(|one, next| is_memory(one) == is_memory(next)) {
            let (first, last) = (&run[0], &run[run.len() - 1]);
            let end = last.offset + last.bytes;
            let bytes = (end - first.offset) as f64;
            position += if is_memory(first) { bytes } else { bytes.min(longest_gap) };
            marks.push((end, position));
        }
        Ruler { marks }
    }

    pub fn length(&self) -> f64 {
        self.marks.last().map_or(0.0, |mark| mark.1)
    }

    pub fn position_of(&self, offset: u64) -> f64 {
        let at = self.marks.partition_point(|mark| mark.0 <= offset).clamp(1, self.marks.len());
        let (before, position) = self.marks[at - 1];
        match self.marks.get(at) {
            None => position,
            Some(&(after, next)) => {
                position + (offset - before) as f64 / (after - before) as f64 * (next - position)
            }
        }
    }

    pub fn offset(&self, position: f64) -> u64 {
        let at = self.marks.partition_point(|mark| mark.1 <= position).clamp(1, self.marks.len());
        let (before, from) = self.marks[at - 1];
        match self.marks.get(at) {
            None => before,
            Some(&(after, to)) => {
                let part = (position - from) / (to - from);
                before + (((after - before) as f64 * part).round() as u64).min(after - before)
            }
        }
    }
}

fn is_memory(block: &BlockSnapshot) -> bool {
    block.state != BlockState::Unmapped
}

/// A block drawn alone, or several small blocks drawn together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// In pixels.
    pub x: f64,
    pub width: f64,
    /// The segment's blocks.
    pub first: usize,
    pub count: usize,
}

/// The part of a segment that is on one row.
pub struct Strip {
    pub segment: usize,
    pub row: usize,
    /// In pixels.
    pub x: f64,
    pub width: f64,
    /// On the segment's ruler.
    from: f64,
    to: f64,
}

/// Segments that are drawn to one scale.
pub struct Panel {
    pub strips: Vec<Strip>,
    pub rulers: Vec<Ruler>,
    /// The number of the first segment.
    pub first: usize,
    pub segments: usize,
    pub rows: usize,
    pub bytes_a_row: f64,
    /// Segments for which there was no row.
    pub left_out: usize,
    width: f64,
}

/// Every panel of a snapshot, rows being so many pixels wide.
pub fn panels(snapshot: &MemorySnapshot, width: f64) -> Vec<Panel> {
    let segments = &snapshot.segments;
    if segments.is_empty() {
        return Vec::new();
    }
    let blocks: usize = segments.iter().map(|segment| segment.blocks.len()).sum();
    if segments.len() > OWN_PANELS {
        return vec![Panel::new(segments, 0..segments.len(), blocks, width)];
    }
    (0..segments.len()).map(|at| Panel::new(segments, at..at + 1, blocks, width)).collect()
}

/// The least of a power of two and one and a half of it that is no smaller: a length whose parts are round.
fn round_up(bytes: f64) -> f64 {
    let power = 2f64.powf(bytes.max(1.0).log2().floor());
    let steps = [1.0, 1.5, 2.0];
    steps.map(|step| step * power).into_iter().find(|length| *length >= bytes).unwrap_or(2.0 * power)
}

impl Panel {
    fn new(
        segments: &[SegmentSnapshot],
        which: std::ops::Range<usize>,
        all_blocks: usize,
        width: f64,
    ) -> Panel {
        let own = &segments[which.clone()];
        let blocks = own.iter().map(|segment| segment.blocks.len()).sum::<usize>() as f64;
        let rows = (blocks / BLOCKS_A_ROW).min(ROWS * blocks / all_blocks.max(1) as f64).ceil().max(1.0);
        let memory: f64 = own.iter().flat_map(|segment| &segment.blocks).map(drawn_in_full).sum();
        let bytes_a_row = round_up(memory / rows);
        let rulers: Vec<Ruler> = own.iter().map(|segment| Ruler::new(segment, bytes_a_row * BREAK)).collect();
        // One segment that fits a row but for its gaps is not wrapped for them.
        let longest = rulers.iter().map(Ruler::length).fold(0.0, f64::max);
        let bytes_a_row = if rows == 1.0 && own.len() == 1 { longest.max(1.0) } else { bytes_a_row };
        let mut panel = Panel {
            strips: Vec::new(),
            rulers,
            first: which.start,
            segments: own.len(),
            rows: 0,
            bytes_a_row,
            left_out: 0,
            width,
        };
        panel.arrange();
        panel
    }

    fn arrange(&mut self) {
        let (mut row, mut x) = (0, 0.0);
        for (number, ruler) in self.rulers.iter().enumerate() {
            let whole = (ruler.length() / self.bytes_a_row * self.width).max(NARROWEST);
            // A segment that fits a row stays on one row.
            if x > 0.0 && x + whole > self.width + 0.5 {
                (row, x) = (row + 1, 0.0);
            }
            let mut from = 0.0;
            loop {
                if row >= MAX_ROWS {
                    self.left_out = self.rulers.len() - number;
                    self.rows = row;
                    return;
                }
                let space = self.width - x;
                let to = from + space / self.width * self.bytes_a_row;
                // A small rest, such as a gap at the end, is squeezed into the last row.
                let last = to + self.bytes_a_row * BREAK * 1.001 >= ruler.length();
                let to = if last { ruler.length() } else { to };
                let width =
                    ((to - from) / self.bytes_a_row * self.width).clamp(NARROWEST, space.max(NARROWEST));
                self.strips.push(Strip { segment: self.first + number, row, x, width, from, to });
                if last {
                    x += width + BETWEEN;
                    break;
                }
                from = to;
                (row, x) = (row + 1, 0.0);
            }
        }
        self.rows = row + 1;
    }

    pub fn ruler(&self, strip: &Strip) -> &Ruler {
        &self.rulers[strip.segment - self.first]
    }

    /// The offsets of a strip's two ends.
    pub fn ends(&self, strip: &Strip) -> (u64, u64) {
        let ruler = self.ruler(strip);
        (ruler.offset(strip.from), ruler.offset(strip.to))
    }

    /// Returns the position of an offset on a strip, in pixels from the row's left end.
    pub fn x(&self, strip: &Strip, offset: u64) -> f64 {
        let position = self.ruler(strip).position_of(offset);
        let length = (strip.to - strip.from).max(f64::MIN_POSITIVE);
        strip.x + ((position - strip.from) / length).clamp(0.0, 1.0) * strip.width
    }

    /// The cells of a strip, from left to right, without gaps.
    pub fn cells(&self, strip: &Strip, segment: &SegmentSnapshot) -> Vec<Cell> {
        let (from, to) = self.ends(strip);
        let mut cells: Vec<Cell> = Vec::new();
        let start = segment.blocks.partition_point(|block| block.offset + block.bytes <= from);
        for (number, block) in segment.blocks.iter().enumerate().skip(start) {
            if block.offset >= to {
                break;
            }
            let (x, right) = (self.x(strip, block.offset), self.x(strip, block.offset + block.bytes));
            match cells.last_mut() {
                // Narrow ones are joined until the cell can be seen.
                Some(cell) if right - x < CELL && cell.width < CELL => {
                    cell.width = right - cell.x;
                    cell.count += 1;
                }
                _ => cells.push(Cell { x, width: right - x, first: number, count: 1 }),
            }
        }
        cells
    }
}

/// The bytes that decide a scale: those that are memory.
fn drawn_in_full(block: &BlockSnapshot) -> f64 {
    if is_memory(block) { block.bytes as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(address: u64, blocks: &[(u64, BlockState)]) -> SegmentSnapshot {
        let mut offset = 0;
        let blocks = blocks.iter().map(|&(bytes, state)| {
            let block = BlockSnapshot { offset, bytes, state, stream: None };
            offset += bytes;
            block
        });
        let blocks: Vec<_> = blocks.collect();
        SegmentSnapshot { address, bytes: offset, blocks }
    }

    fn snapshot(segments: Vec<SegmentSnapshot>) -> MemorySnapshot {
        MemorySnapshot { segments, ..MemorySnapshot::default() }
    }

    use BlockState::{Cached, Live, Unmapped};

    #[test]
    fn long_gaps_are_short_and_all_else_is_straight() {
        let segment = segment(0, &[(100, Live), (1_000_000, Unmapped), (100, Cached), (5, Unmapped)]);
        let ruler = Ruler::new(&segment, 10.0);
        assert_eq!(ruler.length(), 215.0);
        for (offset, position) in [(0, 0.0), (50, 50.0), (100, 100.0), (1_000_100, 110.0), (1_000_150, 160.0)]
        {
            assert_eq!(ruler.position_of(offset), position);
            assert_eq!(ruler.offset(position), offset);
        }
        assert_eq!(ruler.offset(1e9), segment.bytes);
        assert_eq!(ruler.position_of(u64::MAX), 215.0);
    }

    #[test]
    fn every_block_is_in_the_cells_of_its_segment() {
        let blocks: Vec<_> = (0..5000u64)
            .map(|at| (512 * (1 + at * at % 97), [Live, Cached, Live][at as usize % 3]))
            .collect();
        let many: Vec<_> =
            (0..300).map(|at| segment(at << 30, &[(1 << 20, Live), (at + 1, Cached)])).collect();
        for snapshot in [
            snapshot(vec![segment(0, &blocks)]),
            snapshot(vec![segment(0, &[(1, Live)]), segment(1 << 40, &[(u64::MAX >> 1, Cached)])]),
            snapshot(vec![segment(7, &[(u64::MAX - 7, Unmapped)])]),
            snapshot(many),
        ] {
            let mut seen = vec![Vec::new(); snapshot.segments.len()];
            for panel in panels(&snapshot, 1000.0) {
                assert_eq!(panel.left_out, 0);
                for strip in &panel.strips {
                    assert!(strip.x >= 0.0 && strip.x + strip.width < 1004.0 && strip.row < panel.rows);
                    let cells = panel.cells(strip, &snapshot.segments[strip.segment]);
                    let mut x = strip.x;
                    for cell in &cells {
                        assert!((cell.x - x).abs() < 1e-6, "a gap before {cell:?}");
                        x = cell.x + cell.width;
                        seen[strip.segment].extend(cell.first..cell.first + cell.count);
                    }
                    assert!((x - strip.x - strip.width).abs() < 1e-6);
                }
            }
            for (segment, mut seen) in snapshot.segments.iter().zip(seen) {
                seen.dedup();
                assert_eq!(seen, (0..segment.blocks.len()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn there_are_few_rows_for_few_blocks_and_an_end_for_many() {
        let rows = |snapshot| panels(&snapshot, 1000.0).iter().map(|panel| panel.rows).sum::<usize>();
        assert_eq!(rows(snapshot(vec![segment(0, &[(1 << 20, Live); 5])])), 1);
        let five_thousand = rows(snapshot(vec![segment(0, &[(1 << 20, Live); 5000])]));
        assert!((16..=26).contains(&five_thousand), "{five_thousand}");
        let endless = snapshot((0..100_000).map(|at| segment(at << 20, &[(512, Live)])).collect());
        let panels = panels(&endless, 1000.0);
        assert_eq!((panels.len(), panels[0].rows), (1, MAX_ROWS));
        assert!(panels[0].left_out > 50_000);
    }
}
