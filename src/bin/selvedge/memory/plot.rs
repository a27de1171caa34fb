//! A replay as a picture: what was asked for and what was reserved over time, their peaks, and the ratio and the
//! fragmentation on the way.

use selvedge::driver::ReplaySample;

use super::replay::{Replayed, conditions};
use crate::output::{self, counted, grouped};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 32.0;
const LEFT: f64 = 104.0;
const RIGHT: f64 = 176.0;
const TOP: f64 = 140.0;
const MAIN: f64 = 360.0;
const SMALL: f64 = 110.0;
const BETWEEN: f64 = 46.0;

const LIVE: &str = "#2f6fb3";
const LIVE_AREA: &str = "#bfd4ea";
const RESERVED: &str = "#c6484f";
const RESERVED_AREA: &str = "#f3dcdc";
const FRAGMENTATION: &str = "#8a5cc2";
const CAP: &str = "#1f2933";

/// A chart: its place, and what its edges stand for.
#[derive(Clone, Copy)]
struct Chart {
    area: Area,
    /// The last event.
    events: f64,
    low: f64,
    high: f64,
}

impl Chart {
    fn x(&self, event: f64) -> f64 {
        self.area.x + event / self.events * self.area.width
    }

    fn y(&self, value: f64) -> f64 {
        let part = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.area.bottom() - part * self.area.height
    }
}

/// The picture of a replay.
pub fn draw(replayed: &Replayed) -> String {
    let Replayed { name, events, settings, report } = replayed;
    let numbers = &report.statistics;
    let mut picture = Picture::new(WIDTH);
    picture.text(MARGIN, 40.0, Font::new(22.0).bold(), &format!("Replay of {name}"));
    let refused = match report.refused {
        0 => String::new(),
        refused => format!(", {} refused for want of memory", grouped(refused)),
    };
    let line = format!("{}{refused}  ·  {}", counted(numbers.requests, "request"), conditions(settings));
    picture.text(MARGIN, 62.0, Font::new(13.0).faint(), &line);
    facts(&mut picture, replayed);

    let events = (*events).max(1) as f64;
    let columns = columns(&report.samples, (WIDTH - LEFT - RIGHT) as usize);
    let cap = settings.limit_bytes.map(|limit| limit as f64);
    let peak = numbers.peak_reserved_bytes.max(numbers.peak_requested_bytes).max(1) as f64;
    // A cap far above everything would leave nothing of the rest to see.
    let shown_cap = cap.filter(|cap| *cap < 1.6 * peak);
    let step = step_of_bytes(peak.max(shown_cap.unwrap_or(0.0)) * 1.04 / 5.0);
    let high = (peak.max(shown_cap.unwrap_or(0.0)) * 1.04 / step).ceil() * step;
    let area = Area { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: MAIN };
    let chart = Chart { area, events, low: 0.0, high };
    for mark in 0..=(high / step).round() as u64 {
        let value = mark as f64 * step;
        grid(&mut picture, chart, value, &output::bytes(value as u64));
    }
    band(&mut picture, chart, &columns, |sample| sample.reserved_bytes as f64, RESERVED_AREA);
    band(&mut picture, chart, &columns, |sample| sample.requested_bytes as f64, LIVE_AREA);
    curve(&mut picture, chart, &columns, |sample| sample.requested_bytes as f64, LIVE);
    curve(&mut picture, chart, &columns, |sample| sample.reserved_bytes as f64, RESERVED);
    let mut marks = vec![
        ("peak reserved", numbers.peak_reserved_bytes as f64, RESERVED),
        ("peak asked for", numbers.peak_requested_bytes as f64, LIVE),
    ];
    marks.extend(shown_cap.map(|cap| ("cap", cap, CAP)));
    peaks(&mut picture, chart, &columns, marks);

    let ratios = running_ratio(&columns, report.ratio());
    let highest = ratios.iter().map(|point| point.1).fold(1.0, f64::max);
    let ratio_step = step_of_ratio((highest - 1.0).max(0.04) / 2.0);
    let area = Area { y: chart.area.bottom() + BETWEEN, height: SMALL, ..area };
    let high = 1.0 + ((highest - 1.0).max(0.04) / ratio_step).ceil() * ratio_step;
    let chart = Chart { area, events, low: 1.0, high };
    picture.text(LEFT, area.y - 10.0, Font::new(13.0).bold(), "Peak reserved / peak asked for, so far");
    for mark in 0..=((high - 1.0) / ratio_step).round() as u64 {
        let value = 1.0 + mark as f64 * ratio_step;
        grid(&mut picture, chart, value, &format!("{value:.2}"));
    }
    let points: Vec<_> = ratios.iter().map(|(event, ratio)| (chart.x(*event), chart.y(*ratio))).collect();
    picture.curve(&points, INK, 1.5);
    let end = (area.right() + 10.0, chart.y(report.ratio()) + 4.0);
    picture.text(end.0, end.1, Font::new(12.0).bold(), &format!("{:.4}", report.ratio()));

    let area = Area { y: area.bottom() + BETWEEN, ..area };
    let chart = Chart { area, events, low: 0.0, high: 1.0 };
    let title = "Fragmentation: the fraction of cached memory outside the largest free block";
    picture.text(LEFT, area.y - 10.0, Font::new(13.0).bold(), title);
    for value in [0.0, 0.5, 1.0] {
        grid(&mut picture, chart, value, &format!("{value:.1}"));
    }
    curve(&mut picture, chart, &columns, |sample| sample.fragmentation, FRAGMENTATION);
    let last = format!("{:.3} at the end", numbers.fragmentation());
    let y = chart.y(numbers.fragmentation()) + 4.0;
    picture.text(area.right() + 10.0, y, Font::new(12.0).colour(FRAGMENTATION), &last);
    axis(&mut picture, chart);
    picture.finish(area.bottom() + 62.0, &format!("Replay of {name}"))
}

/// The numbers below the title.
fn facts(picture: &mut Picture, replayed: &Replayed) {
    let numbers = &replayed.report.statistics;
    let calls = [numbers.driver_allocations, numbers.driver_frees, numbers.maps, numbers.unmaps];
    let facts = [
        ("peak asked for", output::bytes(numbers.peak_requested_bytes), LIVE),
        ("peak reserved", output::bytes(numbers.peak_reserved_bytes), RESERVED),
        ("ratio", format!("{:.4}", replayed.report.ratio()), INK),
        ("driver calls", grouped(calls.into_iter().fold(0, u64::saturating_add)), INK),
        ("waits for the device", grouped(replayed.report.waits), INK),
    ];
    let mut x = MARGIN;
    for (name, value, colour) in facts {
        picture.text(x, 96.0, Font::new(17.0).bold().colour(colour), &value);
        picture.text(x, 112.0, Font::new(11.0).faint(), name);
        x += Font::new(17.0).width(&value).max(Font::new(11.0).width(name)) + 40.0;
    }
}

/// One sample a pixel column: the largest of each number in it.
fn columns(samples: &[ReplaySample], count: usize) -> Vec<ReplaySample> {
    let size = samples.len().div_ceil(count.max(1)).max(1);
    let largest = samples.chunks(size).map(|chunk| {
        chunk.iter().fold(ReplaySample::default(), |one, next| ReplaySample {
            event: next.event,
            requested_bytes: one.requested_bytes.max(next.requested_bytes),
            live_bytes: one.live_bytes.max(next.live_bytes),
            reserved_bytes: one.reserved_bytes.max(next.reserved_bytes),
            fragmentation: one.fragmentation.max(next.fragmentation),
        })
    });
    largest.collect()
}

/// The ratio of the peaks so far; it ends with the true one, which knows what was between the samples.
fn running_ratio(columns: &[ReplaySample], last: f64) -> Vec<(f64, f64)> {
    let (mut reserved, mut requested) = (0, 0);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for column in columns {
        reserved = reserved.max(column.reserved_bytes);
        requested = requested.max(column.requested_bytes);
        if requested > 0 {
            points.push((column.event as f64, reserved as f64 / requested as f64));
        }
    }
    // The first requests of a program say nothing of it, and pages make their ratio large.
    let most = columns.iter().map(|column| column.requested_bytes).max().unwrap_or(0);
    let early = columns.iter().take_while(|column| column.requested_bytes < most / 10).count();
    points.drain(..early.min(points.len().saturating_sub(2)));
    if let Some(point) = points.last_mut() {
        point.1 = last;
    }
    points
}

fn grid(picture: &mut Picture, chart: Chart, value: f64, label: &str) {
    let y = chart.y(value);
    picture.line((chart.area.x, y), (chart.area.right(), y), GRID, false);
    picture.text(chart.area.x - 10.0, y + 4.0, Font::new(11.0).faint().end(), label);
}

fn points(chart: Chart, columns: &[ReplaySample], value: fn(&ReplaySample) -> f64) -> Vec<(f64, f64)> {
    columns.iter().map(|column| (chart.x(column.event as f64), chart.y(value(column)))).collect()
}

fn curve(
    picture: &mut Picture,
    chart: Chart,
    columns: &[ReplaySample],
    value: fn(&ReplaySample) -> f64,
    colour: &str,
) {
    picture.curve(&points(chart, columns, value), colour, 1.5);
}

fn band(
    picture: &mut Picture,
    chart: Chart,
    columns: &[ReplaySample],
    value: fn(&ReplaySample) -> f64,
    colour: &str,
) {
    let mut points = points(chart, columns, value);
    if let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) {
        points.push((last.0, chart.area.bottom()));
        points.push((first.0, chart.area.bottom()));
        picture.filled(&points, colour);
    }
}

/// Dashed lines with names to the right, which give way to each other; a dot where each peak is.
fn peaks(
    picture: &mut Picture,
    chart: Chart,
    columns: &[ReplaySample],
    mut marks: Vec<(&'static str, f64, &'static str)>,
) {
    marks.sort_by(|one, next| next.1.total_cmp(&one.1));
    let mut lowest = f64::NEG_INFINITY;
    for (name, value, colour) in marks {
        let y = chart.y(value);
        picture.line((chart.area.x, y), (chart.area.right(), y), colour, true);
        let text = (y - 4.0).max(lowest);
        let x = chart.area.right() + 10.0;
        picture.text(x, text, Font::new(12.0).bold().colour(colour), name);
        picture.text(x, text + 15.0, Font::new(12.0).colour(colour), &output::bytes(value as u64));
        lowest = text + 36.0;
        let of = |sample: &ReplaySample| match name {
            "peak reserved" => sample.reserved_bytes,
            _ => sample.requested_bytes,
        };
        // Of equals the first: where the peak was reached.
        let peak = columns.iter().rev().max_by_key(|sample| of(sample));
        if let (Some(sample), true) = (peak, name != "cap") {
            let title = format!("{name}: {} at event {}", output::bytes(value as u64), sample.event);
            picture.circle((chart.x(sample.event as f64), y), 4.5, colour, &title);
        }
    }
}

/// The numbers of events below the lowest chart.
fn axis(picture: &mut Picture, chart: Chart) {
    let step = round_decimal(chart.events / 8.0);
    let y = chart.area.bottom();
    let mut mark = 0.0;
    while mark <= chart.events {
        let x = chart.x(mark);
        picture.line((x, y), (x, y + 5.0), FAINT, false);
        picture.text(x, y + 19.0, Font::new(11.0).faint().middle(), &grouped(mark as u64));
        mark += step;
    }
    let middle = chart.area.x + chart.area.width / 2.0;
    picture.text(middle, y + 40.0, Font::new(12.0).faint().middle(), "requests and frees");
}

/// The least power of two that is no smaller.
fn step_of_bytes(bytes: f64) -> f64 {
    2f64.powf(bytes.max(1.0).log2().ceil())
}

fn step_of_ratio(ratio: f64) -> f64 {
    round_decimal(ratio * 100.0) / 100.0
}

/// The least of 1, 2, 2.5 and 5 times a power of ten that is no smaller, whole.
fn round_decimal(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| (step * power).ceil());
    steps.into_iter().find(|step| *step >= value).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (value, step) in [(0.0, 1.0), (1.0, 1.0), (1.1, 2.0), (23.0, 25.0), (300.0, 500.0), (6e6, 1e7)] {
            assert_eq!(round_decimal(value), step, "{value}");
        }
        assert_eq!(step_of_bytes(1000.0), 1024.0);
    }

    #[test]
    fn a_column_keeps_the_largest_of_its_samples() {
        let sample =
            |event, requested_bytes| ReplaySample { event, requested_bytes, ..ReplaySample::default() };
        let samples: Vec<_> = (0..10).map(|at| sample(at, if at == 4 { 9 } else { 1 })).collect();
        let columns = columns(&samples, 3);
        assert_eq!(columns.iter().map(|column| column.event).collect::<Vec<_>>(), [3, 7, 9]);
        assert_eq!(columns.iter().map(|column| column.requested_bytes).collect::<Vec<_>>(), [1, 9, 1]);
    }
}
