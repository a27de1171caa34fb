//! The raster plot: which neurons fired in which bursts. A cell holds several neurons and bursts where there are more of them
//! than pixels; its colour then shows its number of spikes.

use super::chart::{Bursts, LEFT, RIGHT, TOP, WIDTH, title};
use super::run::Recording;
use crate::output::{counted, grouped};
use crate::svg::{Area, FAINT, Font, GRID, Picture, round_step};

const HEIGHT: f64 = 520.0;
/// The least size of a cell in pixels.
const CELL: f64 = 2.0;
/// The largest size of the mark of a spike.
const MARK: (f64, f64) = (6.0, 14.0);
/// Colours from few spikes to many.
const SHADES: [&str; 4] = ["#bcd3ea", "#7ba9d6", "#3b79b7", "#143f6e"];
/// Populations that are named beside the plot.
const MAX_NAMES: usize = 24;

/// A grid of cells with their numbers of spikes.
struct Cells {
    columns: u64,
    rows: u64,
    counts: Vec<u32>,
}

impl Cells {
    fn new(recording: &Recording, area: Area) -> Cells {
        let columns = recording.burst_count().min((area.width / CELL) as u64);
        let rows = u64::from(recording.neurons.max(1)).min((area.height / CELL) as u64);
        let mut counts = vec![0; (columns * rows) as usize];
        for (&burst, &id) in recording.bursts.iter().zip(recording.ids) {
            let column = scaled(burst - recording.first, columns, recording.burst_count());
            let row = scaled(id.into(), rows, recording.neurons.max(1).into());
            counts[(row * columns + column) as usize] += 1;
        }
        Cells { columns, rows, counts }
    }
}

/// The cell of a position when `of` positions share `cells` cells.
fn scaled(position: u64, cells: u64, of: u64) -> u64 {
    (u128::from(position) * u128::from(cells) / u128::from(of)) as u64
}

pub fn draw(recording: &Recording) -> String {
    let mut picture = Picture::new(WIDTH);
    title(&mut picture, recording, "Spikes");
    let area = Area { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT };
    let bursts = Bursts::new(recording, area);
    let cells = Cells::new(recording, area);
    let most = cells.counts.iter().copied().max().unwrap_or(0).max(1);

    axis_of_neurons(&mut picture, recording, area);
    for (level, colour) in levels(most).into_iter().enumerate() {
        draw_level(&mut picture, &cells, area, most, level, colour);
    }
    populations(&mut picture, recording, area);
    picture.frame(area, FAINT);
    bursts.axis(&mut picture);
    legend(&mut picture, recording, &cells, most);
    picture.finish(area.bottom() + 60.0, &format!("Spikes of {}", recording.name))
}

/// The colours of the levels: fewer than all where counts are small.
fn levels(most: u32) -> Vec<&'static str> {
    let count = (most as usize).min(SHADES.len());
    SHADES[SHADES.len() - count..].to_vec()
}

/// The level of a count of spikes, of as many levels as [`levels`] returns.
fn level_of(count: u32, most: u32) -> Option<usize> {
    let levels = u64::from(most).min(SHADES.len() as u64);
    (count > 0).then(|| ((u64::from(count) * levels).div_ceil(u64::from(most)) - 1) as usize)
}

/// Draws all cells of one level. Neighbours in a row are one line.
fn draw_level(picture: &mut Picture, cells: &Cells, area: Area, most: u32, level: usize, colour: &str) {
    let (width, height) = (area.width / cells.columns as f64, area.height / cells.rows as f64);
    // Large cells hold a mark in their middle.
    let mark = (width.min(MARK.0), if height > MARK.1 { MARK.1.min(height * 0.7) } else { height });
    let mut lines: Vec<((f64, f64), f64)> = Vec::new();
    for (row, counts) in cells.counts.chunks_exact(cells.columns as usize).enumerate() {
        let y = area.bottom() - (row as f64 + 0.5) * height;
        let mut column = 0;
        while column < counts.len() {
            let start = column;
            while column < counts.len() && level_of(counts[column], most) == Some(level) {
                column += 1;
                // A mark that is smaller than its cell stands alone.
                if mark.0 < width {
                    break;
                }
            }
            if column == start {
                column += 1;
                continue;
            }
            let x = area.x + start as f64 * width + (width - mark.0) / 2.0;
            lines.push(((x, y), (column - start - 1) as f64 * width + mark.0));
        }
    }
    picture.level_lines(&lines, colour, mark.1);
}

fn axis_of_neurons(picture: &mut Picture, recording: &Recording, area: Area) {
    let neurons = f64::from(recording.neurons.max(1));
    let step = round_step((neurons / 6.0).max(1.0)).ceil();
    let mut id = 0.0;
    while id < neurons {
        let y = area.bottom() - (id + 0.5) / neurons * area.height;
        picture.line((area.x - 5.0, y), (area.x, y), FAINT, false);
        picture.text(area.x - 10.0, y + 4.0, Font::new(11.0).faint().end(), &grouped(id as u64));
        id += step;
    }
    picture.text(area.x - 10.0, area.y - 10.0, Font::new(12.0).faint().end(), "neuron");
}

/// A line at the edges of each population, and its name beside the plot.
fn populations(picture: &mut Picture, recording: &Recording, area: Area) {
    let neurons = f64::from(recording.neurons.max(1));
    let mut lowest = f64::INFINITY;
    let mut sorted: Vec<_> = recording.populations.iter().take(MAX_NAMES).collect();
    sorted.sort_by_key(|population| population.ids.start);
    for population in sorted {
        let y = |id: u32| area.bottom() - f64::from(id) / neurons * area.height;
        let (start, end) = (y(population.ids.start), y(population.ids.end));
        for edge in [start, end] {
            picture.line((area.x, edge), (area.right() + 6.0, edge), GRID, false);
        }
        // Names give way to each other, upwards.
        let text = ((start + end) / 2.0 + 4.0).min(lowest);
        picture.text(area.right() + 12.0, text, Font::new(12.0), &population.name);
        lowest = text - 15.0;
    }
}

/// The meaning of cells and colours, above the plot to the right.
fn legend(picture: &mut Picture, recording: &Recording, cells: &Cells, most: u32) {
    let (bursts, neurons) = (recording.burst_count(), u64::from(recording.neurons.max(1)));
    if bursts == cells.columns && neurons == cells.rows {
        return;
    }
    let cell = format!(
        "a cell is {} x {}",
        counted(bursts.div_ceil(cells.columns), "burst"),
        counted(neurons.div_ceil(cells.rows), "neuron")
    );
    let font = Font::new(12.0).faint();
    let y = TOP - 14.0;
    let right = WIDTH - RIGHT;
    let levels = levels(most);
    let mut x = right - levels.len() as f64 * 62.0 - 60.0;
    picture.text(x - 14.0, y, font.end(), &format!("{cell};"));
    picture.text(x + 44.0, y, font.end(), "spikes:");
    x += 54.0;
    let bound = |level: usize| u64::from(most) * level as u64 / levels.len() as u64;
    for (level, colour) in levels.iter().enumerate() {
        picture.area(Area { x, y: y - 10.0, width: 12.0, height: 12.0 }, colour);
        let (low, high) = (bound(level) + 1, bound(level + 1));
        let text = if low >= high { grouped(high) } else { format!("{low}–{high}") };
        picture.text(x + 17.0, y, font, &text);
        x += 62.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_a_level_and_the_largest_has_the_last() {
        for most in [1, 2, 3, 4, 5, 7, 100, u32::MAX] {
            assert_eq!(level_of(0, most), None);
            assert_eq!(level_of(1, most), Some(0));
            assert_eq!(level_of(most, most), Some(levels(most).len() - 1));
        }
    }

    #[test]
    fn spikes_are_counted_in_their_cells() {
        let recording = Recording {
            name: "x",
            neurons: 100_000,
            first: 11,
            last: 10_010,
            bursts: &[11, 11, 10_010],
            ids: &[0, 1, 99_999],
            populations: &[],
        };
        let area = Area { x: 0.0, y: 0.0, width: 100.0, height: 40.0 };
        let cells = Cells::new(&recording, area);
        assert_eq!((cells.columns, cells.rows), (50, 20));
        assert_eq!((cells.counts[0], cells.counts[999]), (2, 1));
        assert_eq!(cells.counts.iter().sum::<u32>(), 3);
    }
}
