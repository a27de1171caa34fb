//! A snapshot as a picture: how much of the device is what, and below it every segment from its first to its last byte.

use std::collections::HashMap;

use selvedge::driver::{BlockState, MemorySnapshot, SegmentSnapshot};

use super::summary::{LISTED, Located, Totals, kind_of_pool, largest, optional, stream};
use crate::output::{self, counted};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture};

mod colours;
mod layout;

use colours::{CACHED, Colours, Share, UNMAPPED};
use layout::{Cell, Panel, Strip};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 32.0;
/// The left end of the rows, behind the addresses.
const LEFT: f64 = 156.0;
const ROW: f64 = WIDTH - LEFT - MARGIN;
const HEIGHT: f64 = 26.0;
/// From one row to the next, with and without an axis between.
const PITCH: f64 = 46.0;
const CLOSE_PITCH: f64 = 32.0;
/// Pixels from one mark of an axis to the next, at least.
const MARKS: f64 = 96.0;
const ADDRESS: Font = Font { size: 11.0, colour: FAINT, bold: false, anchor: crate::svg::Anchor::End };

/// The picture of a snapshot.
pub fn draw(snapshot: &MemorySnapshot) -> String {
    let mut map =
        Map { snapshot, colours: Colours::of(snapshot), ranks: HashMap::new(), picture: Picture::new(WIDTH) };
    for (rank, located) in largest(snapshot, BlockState::Live, LISTED).iter().enumerate() {
        map.ranks.insert(located.at, rank + 1);
    }
    map.picture.hatch(UNMAPPED, "#ffffff", "#d3d9df");
    let mut y = map.head();
    y = map.device(y);
    y = map.legend(y);
    for panel in layout::panels(snapshot, ROW) {
        y = map.panel(&panel, y);
    }
    if snapshot.segments.is_empty() {
        map.picture.text(MARGIN, y + 20.0, Font::new(14.0).faint(), "The pool holds no memory.");
        y += 40.0;
    }
    y = map.tables(y);
    map.picture.finish(y + MARGIN, &format!("Memory of {}", snapshot.device))
}

struct Map<'a> {
    snapshot: &'a MemorySnapshot,
    colours: Colours,
    /// The rank of the largest live blocks, by segment and block.
    ranks: HashMap<(usize, usize), usize>,
    picture: Picture,
}

impl Map<'_> {
    /// The title and the pool's numbers.
    fn head(&mut self) -> f64 {
        let snapshot = self.snapshot;
        let numbers = &snapshot.statistics;
        let title = format!("Memory of {} (device {})", snapshot.device, snapshot.ordinal);
        self.picture.text(MARGIN, 42.0, Font::new(22.0).bold(), &title);
        let totals = Totals::of_all(snapshot);
        let line = format!(
            "{}  ·  {}  ·  {}, {} of them live  ·  {} served, {} of them from the cache",
            kind_of_pool(snapshot),
            counted(snapshot.segments.len() as u64, "segment"),
            counted(totals.blocks, "block"),
            output::grouped(totals.live_blocks),
            counted(numbers.requests, "request"),
            output::grouped(numbers.hits)
        );
        self.picture.text(MARGIN, 64.0, Font::new(13.0).faint(), &line);
        let facts = [
            ("live", output::bytes(numbers.live_bytes)),
            ("cached", output::bytes(numbers.cached_bytes)),
            ("reserved", output::bytes(numbers.reserved_bytes)),
            ("peak live", output::bytes(numbers.peak_live_bytes)),
            ("peak reserved", output::bytes(numbers.peak_reserved_bytes)),
            ("fragmentation", format!("{:.3}", numbers.fragmentation())),
            ("cap", optional(snapshot.limit_bytes)),
            ("device", output::bytes(snapshot.total_bytes)),
        ];
        let step = (WIDTH - 2.0 * MARGIN) / facts.len() as f64;
        for (at, (name, value)) in facts.iter().enumerate() {
            let x = MARGIN + at as f64 * step;
            self.picture.text(x, 100.0, Font::new(18.0).bold(), value);
            self.picture.text(x, 117.0, Font::new(11.5).faint(), name);
        }
        136.0
    }

    /// One bar for the device: what is live, cached and free, the peak and the cap.
    fn device(&mut self, y: f64) -> f64 {
        let numbers = &self.snapshot.statistics;
        let limit = self.snapshot.limit_bytes;
        // A file may say less of the device than of its pool.
        let largest = [numbers.reserved_bytes, numbers.peak_reserved_bytes, numbers.live_bytes];
        let whole = largest.into_iter().fold(self.snapshot.total_bytes, u64::max).max(1) as f64;
        let full = WIDTH - 2.0 * MARGIN;
        let x = |bytes: u64| MARGIN + (bytes as f64 / whole).min(1.0) * full;
        let bar = Area { x: MARGIN, y, width: full, height: 20.0 };
        self.picture.area_with_title(bar, "#f4f6f8", &format!("device: {}", output::bytes(whole as u64)));
        let live = Area { width: x(numbers.live_bytes) - MARGIN, ..bar };
        let reserved = Area { width: x(numbers.reserved_bytes) - MARGIN, ..bar };
        let title = format!("reserved: {}", output::bytes(numbers.reserved_bytes));
        self.picture.area_with_title(reserved, "#c3ccd5", &title);
        let title = format!("live: {}", output::bytes(numbers.live_bytes));
        self.picture.area_with_title(live, INK, &title);
        self.picture.frame(bar, "#c3ccd5");
        let mut marks = vec![("peak reserved", numbers.peak_reserved_bytes)];
        marks.extend(limit.filter(|limit| *limit as f64 <= whole).map(|limit| ("cap", limit)));
        let mut free = f64::NEG_INFINITY;
        for (name, bytes) in marks {
            let (x, text) = (x(bytes), format!("{name} {}", output::bytes(bytes)));
            self.picture.line((x, y - 4.0), (x, bar.bottom() + 5.0), "#c6484f", false);
            let font = Font::new(11.0).colour("#c6484f");
            let left = x.max(free);
            let font = if left + font.width(&text) > WIDTH - MARGIN { font.end() } else { font };
            self.picture.text(left, bar.bottom() + 16.0, font, &text);
            free = left + font.width(&text) + 10.0;
        }
        let whole = output::bytes(whole as u64);
        if free < WIDTH - MARGIN - 70.0 {
            self.picture.text(WIDTH - MARGIN, bar.bottom() + 16.0, Font::new(11.0).faint().end(), &whole);
        }
        bar.bottom() + 36.0
    }

    /// Draws the legend.
    fn legend(&mut self, y: f64) -> f64 {
        let mut entries: Vec<(Vec<String>, String)> = Vec::new();
        let levels = [0.0, 0.35, 0.7, 1.0];
        let name = |share: &Share| {
            let blocks = counted(share.blocks, "block");
            format!("{}: {} in {blocks}", stream(share.stream), output::bytes(share.bytes))
        };
        for share in self.colours.with_hue() {
            let shades = levels.iter().map(|size| self.colours.live(share.stream, *size)).collect();
            entries.push((shades, name(share)));
        }
        if let [first, ..] = self.colours.without_hue() {
            let shades = levels.iter().map(|size| self.colours.live(first.stream, *size)).collect();
            let others = self.colours.without_hue();
            let bytes = others.iter().fold(0u64, |sum, share| sum.saturating_add(share.bytes));
            entries.push((
                shades,
                format!("{}: {}", counted(others.len() as u64, "other stream"), output::bytes(bytes)),
            ));
        }
        let totals = Totals::of_all(self.snapshot);
        let pending: Vec<String> =
            self.colours.with_hue().iter().take(4).map(|share| self.colours.pending(share.stream)).collect();
        if !pending.is_empty() {
            entries.push((pending, "cached, a stream may still use it".to_owned()));
        }
        let cached = format!(
            "cached: {} in {} in all",
            output::bytes(totals.cached),
            counted(totals.cached_blocks, "block")
        );
        entries.push((vec![CACHED.to_owned()], cached));
        if totals.unmapped > 0 {
            entries.push((
                vec![format!("url(#{UNMAPPED})")],
                "addresses without memory (long ones shortened)".to_owned(),
            ));
        }
        let (mut x, mut line) = (MARGIN, y);
        for (colours, text) in entries {
            let font = Font::new(12.0);
            let swatch = 13.0 * colours.len().max(2) as f64;
            let width = swatch + 8.0 + font.width(&text) + 24.0;
            if x > MARGIN && x + width > WIDTH - MARGIN {
                (x, line) = (MARGIN, line + 22.0);
            }
            let step = swatch / colours.len() as f64;
            for (at, colour) in colours.iter().enumerate() {
                let area = Area { x: x + at as f64 * step, y: line, width: step, height: 13.0 };
                self.picture.area(area, colour);
            }
            self.picture.frame(Area { x, y: line, width: swatch, height: 13.0 }, "#aab4be");
            self.picture.text(x + swatch + 8.0, line + 11.0, font, &text);
            x += width;
        }
        let legend = "Colours are streams; the larger a block, the darker. The ten largest live blocks have their rank.";
        self.picture.text(MARGIN, line + 34.0, Font::new(12.0).faint(), legend);
        line + 52.0
    }

    /// Segments in their rows. Returns where the next thing may begin.
    fn panel(&mut self, panel: &Panel, y: f64) -> f64 {
        let segments = &self.snapshot.segments[panel.first..panel.first + panel.segments];
        let totals = Totals::of(segments.iter().flat_map(|segment| &segment.blocks));
        let what = match segments {
            [segment] => {
                format!("Segment at {:#x}, {} of addresses", segment.address, output::bytes(segment.bytes))
            }
            several => counted(several.len() as u64, "segment"),
        };
        let detail = format!(
            "{} live in {}, {} cached in {}, {} without memory; a row is {}",
            output::bytes(totals.live),
            counted(totals.live_blocks, "block"),
            output::bytes(totals.cached),
            counted(totals.cached_blocks, "block"),
            output::bytes(totals.unmapped),
            output::bytes(panel.bytes_a_row.round() as u64)
        );
        self.picture.line((MARGIN, y), (WIDTH - MARGIN, y), GRID, false);
        self.picture.text(MARGIN, y + 24.0, Font::new(14.0).bold(), &what);
        self.picture.text(WIDTH - MARGIN, y + 24.0, Font::new(12.0).faint().end(), &detail);
        let has_axis = panel.segments == 1;
        let pitch = if has_axis { PITCH } else { CLOSE_PITCH };
        let top = y + 38.0;
        for strip in &panel.strips {
            self.strip(panel, strip, top + strip.row as f64 * pitch, has_axis);
        }
        let mut bottom = top + panel.rows as f64 * pitch;
        if panel.left_out > 0 {
            let text = format!("{} more are not drawn", counted(panel.left_out as u64, "segment"));
            self.picture.text(LEFT, bottom + 12.0, Font::new(12.0).faint(), &text);
            bottom += 24.0;
        }
        bottom + 12.0
    }

    fn strip(&mut self, panel: &Panel, strip: &Strip, y: f64, has_axis: bool) {
        let segment = &self.snapshot.segments[strip.segment];
        if strip.x == 0.0 {
            let address = segment.address.saturating_add(panel.ends(strip).0);
            self.picture.text(LEFT - 10.0, y + 17.0, ADDRESS, &format!("{address:#x}"));
        }
        let cells = panel.cells(strip, segment);
        for cell in &cells {
            let area = Area { x: LEFT + cell.x, y, width: cell.width, height: HEIGHT };
            if cell.count == 1 { self.block(strip, cell, area) } else { self.together(segment, cell, area) }
        }
        let whole = Area { x: LEFT + strip.x, y, width: strip.width, height: HEIGHT };
        self.picture.frame(whole, "#8d99a5");
        if has_axis {
            self.axis(panel, strip, y + HEIGHT);
        }
    }

    fn block(&mut self, strip: &Strip, cell: &Cell, area: Area) {
        let segment = &self.snapshot.segments[strip.segment];
        let block = &segment.blocks[cell.first];
        let address = segment.address.saturating_add(block.offset);
        let mut title = format!(
            "{}: {} ({} bytes) at {address:#x}",
            block.state.name(),
            output::bytes(block.bytes),
            block.bytes
        );
        if block.state != BlockState::Unmapped {
            title += &format!(", {}", stream(block.stream));
        }
        // A light line separates neighbours that are wide enough.
        let drawn = if area.width > 3.0 { Area { width: area.width - 0.7, ..area } } else { area };
        self.picture.area_with_title(drawn, &self.colours.of_block(block), &title);
        if block.state == BlockState::Unmapped {
            let (font, text) = (Font::new(10.5).faint().middle(), output::bytes(block.bytes));
            if font.width(&text) + 8.0 < area.width {
                let middle = area.x + area.width / 2.0;
                let behind = font.width(&text) + 6.0;
                let paper = Area { x: middle - behind / 2.0, y: area.y + 6.0, width: behind, height: 14.0 };
                self.picture.area(paper, "#ffffff");
                self.picture.text(middle, area.y + 17.0, font, &text);
            }
            return;
        }
        if let Some(rank) = self.ranks.get(&(strip.segment, cell.first)) {
            let font = Font::new(11.5).bold().colour(self.colours.on_live(block)).middle();
            let long = format!("#{rank}  {}", output::bytes(block.bytes));
            for text in [long, format!("#{rank}")] {
                if font.width(&text) + 8.0 < area.width {
                    self.picture.text(area.x + area.width / 2.0, area.y + 17.0, font, &text);
                    return;
                }
            }
        }
    }

    /// Blocks too narrow to be seen: what is live stands on what is cached, as high as its part.
    fn together(&mut self, segment: &SegmentSnapshot, cell: &Cell, area: Area) {
        let blocks = &segment.blocks[cell.first..cell.first + cell.count];
        let totals = Totals::of(blocks);
        let all = totals.live.saturating_add(totals.cached).saturating_add(totals.unmapped).max(1);
        let mut streams: HashMap<Option<u64>, u64> = HashMap::new();
        for block in blocks.iter().filter(|block| block.state == BlockState::Live) {
            let bytes = streams.entry(block.stream).or_default();
            *bytes = bytes.saturating_add(block.bytes);
        }
        let most = streams.iter().max_by_key(|(stream, bytes)| (**bytes, **stream)).map(|most| *most.0);
        let title = format!(
            "{} at {:#x}: {} live in {}, {} cached",
            counted(cell.count as u64, "block"),
            segment.address.saturating_add(blocks[0].offset),
            output::bytes(totals.live),
            counted(totals.live_blocks, "block"),
            output::bytes(totals.cached)
        );
        let rest = if totals.cached > 0 { CACHED.to_owned() } else { format!("url(#{UNMAPPED})") };
        let part = totals.live as f64 / all as f64;
        if part < 1.0 {
            self.picture.area_with_title(area, &rest, &title);
        }
        if let Some(stream) = most {
            let height = (area.height * part).max(1.0);
            let size = self.colours.size(totals.live / totals.live_blocks.max(1));
            let live = Area { y: area.bottom() - height, height, ..area };
            self.picture.area_with_title(live, &self.colours.live(stream, size), &title);
        }
    }

    /// Round offsets below a row.
    fn axis(&mut self, panel: &Panel, strip: &Strip, y: f64) {
        let segment = &self.snapshot.segments[strip.segment];
        let (from, to) = panel.ends(strip);
        let step = (panel.bytes_a_row * MARKS / ROW).max(1.0).log2().ceil().min(63.0);
        let step = 1u64 << step as u32;
        let mut free = f64::NEG_INFINITY;
        for run in segment
            .blocks
            .chunk_by(|one, next| (one.state == BlockState::Unmapped) == (next.state == BlockState::Unmapped))
        {
            let (first, last) = (&run[0], &run[run.len() - 1]);
            let (start, end) = (first.offset.max(from), last.offset.saturating_add(last.bytes).min(to));
            // A shortened segment has no linear axis.
            if first.state == BlockState::Unmapped || start >= end {
                continue;
            }
            let Some(mut offset) = start.checked_next_multiple_of(step) else { continue };
            // The end of a row is the start of the next.
            while offset < end || offset == segment.bytes {
                let x = LEFT + panel.x(strip, offset);
                self.picture.line((x, y), (x, y + 4.0), "#aab4be", false);
                let (font, text) = (Font::new(10.0).faint().middle(), format!("+{}", whole_units(offset)));
                let half = font.width(&text) / 2.0;
                if x - half > free {
                    self.picture.text(x.min(WIDTH - half - 4.0), y + 14.0, font, &text);
                    free = x + half + 6.0;
                }
                let Some(next) = offset.checked_add(step) else { break };
                offset = next;
            }
        }
    }

    /// The largest blocks by name.
    fn tables(&mut self, y: f64) -> f64 {
        self.picture.line((MARGIN, y), (WIDTH - MARGIN, y), GRID, false);
        let middle = WIDTH / 2.0 + 10.0;
        let live = self.table(MARGIN, y + 26.0, "Largest live blocks", BlockState::Live);
        let cached = self.table(middle, y + 26.0, "Largest cached blocks", BlockState::Cached);
        live.max(cached)
    }

    fn table(&mut self, x: f64, y: f64, title: &str, state: BlockState) -> f64 {
        self.picture.text(x, y, Font::new(14.0).bold(), title);
        let found = largest(self.snapshot, state, LISTED);
        let font = Font::new(12.0);
        let mut y = y + 10.0;
        if found.is_empty() {
            self.picture.text(x, y + 14.0, font.faint(), "none");
            return y + 14.0;
        }
        for (rank, Located { address, block, .. }) in found.into_iter().enumerate() {
            y += 19.0;
            self.picture.text(x + 26.0, y, font.faint().end(), &format!("#{}", rank + 1));
            let swatch = Area { x: x + 36.0, y: y - 10.0, width: 12.0, height: 12.0 };
            self.picture.area(swatch, &self.colours.of_block(block));
            self.picture.text(x + 140.0, y, font.bold().end(), &output::bytes(block.bytes));
            self.picture.text(x + 160.0, y, font, &format!("{address:#x}"));
            self.picture.text(x + 326.0, y, font.faint(), &stream(block.stream));
        }
        y
    }
}

/// Returns bytes in the largest unit that leaves no fraction, so that marks of an axis differ.
fn whole_units(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = if bytes == 0 { 0 } else { bytes.trailing_zeros() / 10 };
    format!("{} {}", bytes >> (10 * unit), UNITS[unit as usize])
}

#[cfg(test)]
mod tests {
    use super::whole_units;

    #[test]
    fn marks_have_no_fractions() {
        for (bytes, text) in
            [(0, "0 B"), (1536, "1536 B"), (9 << 27, "1152 MiB"), (3 << 40, "3 TiB"), (1 << 63, "8 EiB")]
        {
            assert_eq!(whole_units(bytes), text);
        }
    }
}
