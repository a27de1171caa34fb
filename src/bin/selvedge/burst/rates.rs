//! The rate plot: the share of the neurons that fired in each burst, and how many neurons have each rate.

use std::ops::Range;

use super::chart::{Bursts, COLOURS, LEFT, RIGHT, TOP, WIDTH, title};
use super::run::Recording;
use crate::output::{counted, grouped};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture, round_step};

const HEIGHT: f64 = 320.0;
const LOWER: f64 = 170.0;
const BAND: &str = "#c9d9ea";
const BAR: &str = "#3b79b7";
/// Pixels of a column of bursts at least.
const COLUMN: u64 = 3;
/// Bars of the lower chart at most.
const BARS: u64 = 50;

/// The share of neurons that fired, in percent, over the bursts of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    mean: f64,
    least: f64,
    most: f64,
}

/// A line of the upper chart.
struct Line<'a> {
    name: &'a str,
    colour: &'static str,
    columns: Vec<Column>,
    mean: f64,
}

pub fn draw(recording: &Recording) -> String {
    let mut picture = Picture::new(WIDTH);
    title(&mut picture, recording, "Firing rates");
    let area = Area { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT };
    let lines = lines(recording, area.width as u64 / COLUMN);
    let most = lines.iter().flat_map(|line| &line.columns).map(|column| column.most).fold(0.0, f64::max);
    let step = round_step((most / 4.0).max(1e-4));
    let high = (most / step).ceil().max(1.0) * step;
    let y = |share: f64| area.bottom() - share / high * area.height;

    picture.text(LEFT, area.y - 12.0, Font::new(13.0).bold(), "Neurons that fired in a burst");
    for mark in 0..=(high / step).round() as u64 {
        let share = mark as f64 * step;
        picture.line((area.x, y(share)), (area.right(), y(share)), GRID, false);
        let label = format!("{} %", short(share));
        picture.text(area.x - 10.0, y(share) + 4.0, Font::new(11.0).faint().end(), &label);
    }
    let bursts = Bursts::new(recording, area);
    let columns = lines[0].columns.len();
    let x = |column: usize| {
        bursts.x(recording.first as f64 + (column as f64 + 0.5) / columns as f64 * bursts.count as f64)
    };
    // The range within each column, of the whole network.
    if columns > 1 && bursts.count > columns as u64 {
        let upper = lines[0].columns.iter().enumerate().map(|(at, column)| (x(at), y(column.most)));
        let lower = lines[0].columns.iter().enumerate().rev().map(|(at, column)| (x(at), y(column.least)));
        picture.filled(&upper.chain(lower).collect::<Vec<_>>(), BAND);
    }
    for line in lines.iter().rev() {
        let points: Vec<_> =
            line.columns.iter().enumerate().map(|(at, column)| (x(at), y(column.mean))).collect();
        picture.curve(&points, line.colour, 1.6);
        if points.len() <= 60 {
            for (point, column) in points.iter().zip(&line.columns) {
                picture.circle(*point, 3.0, line.colour, &format!("{} %", short(column.mean)));
            }
        }
    }
    names(&mut picture, &lines, area, &y);
    bursts.axis(&mut picture);
    if bursts.count > columns as u64 {
        let text = format!(
            "line: mean of {}; band: least and most",
            counted(bursts.count.div_ceil(columns as u64), "burst")
        );
        picture.text(area.right(), area.y - 12.0, Font::new(12.0).faint().end(), &text);
    }

    let lower = Area { y: area.bottom() + 104.0, height: LOWER, ..area };
    histogram(&mut picture, recording, lower);
    picture.finish(lower.bottom() + 60.0, &format!("Firing rates of {}", recording.name))
}

/// The whole network first, then populations.
fn lines<'a>(recording: &Recording<'a>, most_columns: u64) -> Vec<Line<'a>> {
    let columns = recording.burst_count().min(most_columns).max(1);
    let mut lines = Vec::new();
    let mut line = |name: &'a str, ids: Range<u32>| {
        let columns = shares(recording, ids.clone(), columns);
        let spikes = recording.ids.iter().filter(|id| ids.contains(id)).count() as f64;
        let of = (ids.len().max(1) as f64) * recording.burst_count() as f64;
        lines.push(Line {
            name,
            colour: COLOURS[lines.len() % COLOURS.len()],
            columns,
            mean: spikes / of * 100.0,
        });
    };
    line("all", 0..recording.neurons);
    for population in recording.populations.iter().take(COLOURS.len() - 1) {
        line(&population.name, population.ids.clone());
    }
    lines
}

/// The share of some neurons that fired, by column.
fn shares(recording: &Recording, ids: Range<u32>, columns: u64) -> Vec<Column> {
    let count = recording.burst_count();
    let mut spikes = vec![0u32; count as usize];
    for (burst, id) in recording.bursts.iter().zip(recording.ids) {
        if ids.contains(id) {
            spikes[(burst - recording.first) as usize] += 1;
        }
    }
    let edge = |column: u64| (u128::from(column) * u128::from(count) / u128::from(columns)) as usize;
    let share = 100.0 / ids.len().max(1) as f64;
    let of_column = |column: u64| {
        let spikes = &spikes[edge(column)..edge(column + 1)];
        let sum: u64 = spikes.iter().map(|&spikes| u64::from(spikes)).sum();
        Column {
            mean: sum as f64 / spikes.len().max(1) as f64 * share,
            least: f64::from(spikes.iter().copied().min().unwrap_or(0)) * share,
            most: f64::from(spikes.iter().copied().max().unwrap_or(0)) * share,
        }
    };
    (0..columns).map(of_column).collect()
}

/// The names and means of the lines to the right, which give way to each other.
fn names(picture: &mut Picture, lines: &[Line], area: Area, y: &dyn Fn(f64) -> f64) {
    let mut sorted: Vec<&Line> = lines.iter().collect();
    sorted.sort_by(|one, other| other.mean.total_cmp(&one.mean));
    let mut lowest = f64::NEG_INFINITY;
    let x = area.right() + 12.0;
    for line in sorted {
        let text = (y(line.mean) - 4.0).max(lowest);
        picture.text(x, text, Font::new(12.0).bold().colour(line.colour), line.name);
        let mean = format!("{} % on average", short(line.mean));
        picture.text(x, text + 15.0, Font::new(12.0).colour(line.colour), &mean);
        lowest = text + 34.0;
    }
}

/// How many neurons fired how often.
fn histogram(picture: &mut Picture, recording: &Recording, area: Area) {
    let mut of_neuron = vec![0u64; recording.neurons as usize];
    for &id in recording.ids {
        of_neuron[id as usize] += 1;
    }
    let most = of_neuron.iter().copied().max().unwrap_or(0);
    let size = (most + 1).div_ceil(BARS).max(1);
    let mut bars = vec![0u64; (most / size + 1) as usize];
    for spikes in of_neuron {
        bars[(spikes / size) as usize] += 1;
    }
    picture.text(LEFT, area.y - 12.0, Font::new(13.0).bold(), "Neurons by their number of spikes");
    let highest = bars.iter().copied().max().unwrap_or(0).max(1);
    let step = round_step((highest as f64 / 3.0).max(1.0)).ceil();
    let high = (highest as f64 / step).ceil() * step;
    let y = |count: f64| area.bottom() - count / high * area.height;
    for mark in 0..=(high / step).round() as u64 {
        let count = mark as f64 * step;
        picture.line((area.x, y(count)), (area.right(), y(count)), GRID, false);
        picture.text(area.x - 10.0, y(count) + 4.0, Font::new(11.0).faint().end(), &grouped(count as u64));
    }
    let width = (area.width / bars.len() as f64).min(60.0);
    let gap = if width > 4.0 { 1.0 } else { 0.0 };
    let mut last_label = f64::NEG_INFINITY;
    for (at, &count) in bars.iter().enumerate() {
        let x = area.x + at as f64 * width;
        let (low, high) = (at as u64 * size, at as u64 * size + size - 1);
        let range = if low == high { grouped(low) } else { format!("{}–{}", grouped(low), grouped(high)) };
        if count > 0 {
            let bar = Area {
                x: x + gap,
                y: y(count as f64),
                width: width - 2.0 * gap,
                height: area.bottom() - y(count as f64),
            };
            let title = format!("{} with {range} spikes", counted(count, "neuron"));
            picture.area_with_title(bar, BAR, &title);
        }
        let middle = x + width / 2.0;
        let half = Font::new(11.0).width(&range) / 2.0 + 5.0;
        if middle - half >= last_label {
            picture.text(middle, area.bottom() + 17.0, Font::new(11.0).faint().middle(), &range);
            last_label = middle + half;
        }
    }
    picture.line((area.x, area.bottom()), (area.right(), area.bottom()), INK, false);
    picture.text(area.x - 10.0, area.y - 12.0, Font { colour: FAINT, ..Font::new(12.0).end() }, "neurons");
    let middle = area.x + area.width / 2.0;
    let text = format!("spikes in {}", counted(recording.burst_count(), "burst"));
    picture.text(middle, area.bottom() + 40.0, Font::new(12.0).faint().middle(), &text);
}

/// A share with three digits at most.
fn short(share: f64) -> String {
    let digits = match share {
        share if share >= 100.0 || share == 0.0 => 0,
        share if share >= 10.0 => 1,
        share if share >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{share:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_each_column() {
        let recording = Recording {
            name: "x",
            neurons: 4,
            first: 5,
            last: 8,
            bursts: &[5, 5, 6, 8],
            ids: &[0, 1, 1, 3],
            populations: &[],
        };
        let column = |mean, least, most| Column { mean, least, most };
        assert_eq!(shares(&recording, 0..4, 2), [column(37.5, 25.0, 50.0), column(12.5, 0.0, 25.0)]);
        assert_eq!(shares(&recording, 0..2, 1), [column(37.5, 0.0, 100.0)]);
    }

    #[test]
    fn shares_have_three_digits() {
        let table =
            [(0.0, "0"), (0.25, "0.25"), (1.0, "1"), (12.34, "12.3"), (100.0, "100"), (0.0123, "0.012")];
        for (share, text) in table {
            assert_eq!(short(share), text);
        }
    }
}
