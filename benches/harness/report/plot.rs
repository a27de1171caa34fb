//! Pictures of the results: our speed over the reference's, on a logarithmic axis around 1.
//!
//! [`render`] draws one picture an area and an overview of one row a report. The pictures are plain SVG and follow from
//! the reports alone, so a test compares the committed files with them and no plotting library is needed. Invariant:
//! a picture is at most [`TALLEST`] pixels tall; an area of more figures than fit has one row for all dtypes of an operation.

use std::fmt::Write;

use super::{Figure, Report, Verdict};

/// The most pixels that a picture is tall.
pub const TALLEST: f64 = 1200.0;

const LABELS: f64 = 450.0;
const BARS: f64 = 370.0;
const VALUES: f64 = 300.0;
const WIDTH: f64 = LABELS + BARS + VALUES;
const ROW: f64 = 14.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 34.0;

/// The most figures of an area that have a row each.
const ROWS: usize = 50;

/// The colour of the dot at another library's speed.
const LIBRARY: &str = "#3b6fb6";

const COARSE: [f64; 16] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];

/// The ticks of an axis on which the numbers of [`COARSE`] would touch.
const DECADES: [f64; 6] = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];

/// The least distance of two ticks, in pixels: the width of the longest number, and a space.
const TICK: f64 = 34.0;

const FINE: [f64; 10] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0];

/// An area's file name, its heading, and its reports in the order of their rows.
type Area = (&'static str, &'static str, &'static [&'static str]);

const AREAS: &[Area] = &[
    (
        "products",
        "Matrix products of f16 and bf16",
        &["gemm_square", "gemm_gpt", "gemm_gradients", "gemm_fused", "gemm_batched"],
    ),
    (
        "shapes",
        "Matrix products of other shapes, dtypes and cards",
        &["gemm_small", "gemm_skinny", "gemm_random", "gemm_plain", "gemm_older", "gemm_first"],
    ),
    (
        "elementwise",
        "Elementwise expressions",
        &["vector_add", "fuse", "fuse_host", "fuse_first", "fuse_cpu"],
    ),
    ("functions", "Elementwise functions, a mark a dtype", &["fuse_list"]),
    ("cpu", "The CPU beside NumPy, a mark a dtype", &["cpu", "cpu_first", "cpu_memory", "cpu_cores"]),
    ("reductions", "Reductions, scans, moves by index and sorts", &["reduce", "moving", "sorting"]),
    ("rows", "Softmax and normalisation", &["rows"]),
    ("gradients", "Gradients of softmax, normalisation and losses", &["rows_backward"]),
    (
        "attention",
        "Attention",
        &["attention_forward", "attention_backward", "attention_composed", "attention_cpu"],
    ),
    (
        "models",
        "Spiking networks, classifiers and training",
        &["burst", "burst_cpu", "classifier", "training", "nn", "nn_steps", "nn_cpu"],
    ),
    (
        "decoders",
        "Published models",
        &["decoding", "batch_invariance", "prefill", "decode_attention", "loading"],
    ),
    ("catalogue", "Functions of numerical models", &["catalogue"]),
    ("srt", "Golden-ratio operations", &["srt", "srt_products"]),
    ("copies", "Copies", &["transfer", "overlap", "batch", "peer", "pageable", "files"]),
    (
        "runtime",
        "Launches, graphs, memory and start-up",
        &[
            "launch",
            "run_by_name",
            "graph_launch",
            "graph",
            "allocation",
            "replay",
            "replay_recorded",
            "compile",
            "first_result",
            "run_source",
        ],
    ),
];

/// A picture.
pub struct Picture {
    /// The file's name.
    pub file: String,
    /// The file's text.
    pub svg: String,
    /// How many pixels it is tall.
    pub height: f64,
}

/// The overview and a picture of each area that has a report. Reports of no area are in the area `other`.
pub fn render(reports: &[Report]) -> Vec<Picture> {
    let mut pictures = Vec::new();
    let mut sections = Vec::new();
    let listed = |name: &str| AREAS.iter().any(|(_, _, names)| names.contains(&name));
    let of_area = |names: &[&str]| -> Vec<&Report> {
        names.iter().filter_map(|name| reports.iter().find(|report| report.name == *name)).collect()
    };
    let mut areas: Vec<(&str, &str, Vec<&Report>)> =
        AREAS.iter().map(|(file, heading, names)| (*file, *heading, of_area(names))).collect();
    areas.push(("other", "Other", reports.iter().filter(|report| !listed(&report.name)).collect()));
    for (file, heading, reports) in areas {
        if reports.is_empty() {
            continue;
        }
        sections.push(Row::Heading(heading.to_owned()));
        sections.extend(reports.iter().map(|report| summary(report)));
        pictures.push(draw(&format!("speed-{file}.svg"), heading, &rows(&reports)));
    }
    pictures.insert(0, draw("speed.svg", "All benchmarks", &sections));
    pictures
}

/// A row of a picture.
enum Row<'a> {
    Heading(String),
    /// One figure: a bar.
    Figure(&'a Figure),
    /// Figures of one operation: a mark each.
    Group(String, Vec<&'a Figure>),
    /// A report beside one reference: the geometric mean as a bar, and the range as a line.
    Summary {
        label: String,
        mean: f64,
        lowest: f64,
        highest: f64,
        /// The reference, and how many of the figures have it where that is not all.
        against: String,
    },
}

/// The rows of an area: a heading a report, then its figures.
fn rows<'a>(reports: &[&'a Report]) -> Vec<Row<'a>> {
    let count: usize = reports.iter().map(|report| report.figures.len()).sum();
    let mut rows = Vec::new();
    for report in reports {
        rows.push(Row::Heading(report.title.clone()));
        if count <= ROWS {
            rows.extend(report.figures.iter().map(Row::Figure));
            continue;
        }
        let mut groups: Vec<(&str, Vec<&Figure>)> = Vec::new();
        for figure in &report.figures {
            let operation = figure.name.rsplit_once(", ").map_or(figure.name.as_str(), |(name, _)| name);
            match groups.iter_mut().find(|(name, _)| *name == operation) {
                Some((_, figures)) => figures.push(figure),
                None => groups.push((operation, vec![figure])),
            }
        }
        rows.extend(groups.into_iter().map(|(name, figures)| Row::Group(name.to_owned(), figures)));
    }
    rows
}

/// Summarises a report's figures beside the reference that a user would pick: the library, or else the reference of most.
///
/// Figures of other references take no part, because a mean over several references is the speed of nothing. If the
/// report has geometric means itself, they are the mean, and its other figures are the range alone.
fn summary(report: &Report) -> Row<'static> {
    let mut groups: Vec<(String, Vec<&Figure>)> = Vec::new();
    for figure in &report.figures {
        let (picked, name) = match (&figure.beside, &report.library) {
            (Some(beside), Some(library)) => (&**beside, reference_name(library)),
            _ => (figure, reference_name(&figure.against)),
        };
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, figures)) => figures.push(picked),
            None => groups.push((name, vec![picked])),
        }
    }
    let library = report.library.as_deref().map(reference_name);
    // Of equals the first: `max_by_key` takes the last.
    let rank = |(name, figures): &(String, Vec<&Figure>)| (Some(name) == library.as_ref(), figures.len());
    let (name, figures) = groups.into_iter().rev().max_by_key(rank).unwrap_or_default();
    let has_means = figures.iter().any(|figure| figure.is_mean());
    let averaged: Vec<f64> =
        figures.iter().filter(|figure| figure.is_mean() == has_means).map(|figure| speed(figure)).collect();
    let logarithms: f64 = averaged.iter().map(|speed| speed.ln()).sum();
    let speeds = figures.iter().map(|figure| speed(figure));
    Row::Summary {
        label: report.title.clone(),
        mean: (logarithms / averaged.len().max(1) as f64).exp(),
        lowest: speeds.clone().fold(f64::INFINITY, f64::min),
        highest: speeds.fold(0.0, f64::max),
        against: match figures.len() == report.figures.len() {
            true => name,
            false => format!("{name}, {} of {} figures", figures.len(), report.figures.len()),
        },
    }
}

/// The name of a reference in a picture: calls of NumPy are NumPy, and a library has no build in its version.
fn reference_name(against: &str) -> String {
    match against {
        "cuMemcpyDtoDAsync of as many bytes" | "cuMemcpyDtoDAsync of 1 GiB" => "copy".to_owned(),
        call if call.starts_with('`') => "NumPy".to_owned(),
        name => name.split('+').next().unwrap_or(name).to_owned(),
    }
}

/// The most characters of a value that fit on the right.
const VALUE_CHARACTERS: usize = 46;

/// Cuts a value that does not fit.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(VALUE_CHARACTERS) {
        Some(_) => value.chars().take(VALUE_CHARACTERS - 1).chain(['…']).collect(),
        None => value.to_owned(),
    }
}

/// A logarithmic axis.
struct Axis {
    ticks: Vec<f64>,
    low: f64,
    high: f64,
}

impl Axis {
    /// The shortest axis of ticks that holds 1 and the values.
    fn of(values: impl Iterator<Item = f64> + Clone) -> Axis {
        let lowest = values.clone().fold(1.0, f64::min);
        let highest = values.fold(1.0, f64::max);
        let is_fine = lowest >= 0.5 && highest <= 2.0;
        let axis = Axis::between(if is_fine { &FINE } else { &COARSE }, lowest, highest);
        match axis.ticks.windows(2).all(|pair| axis.at(pair[1]) - axis.at(pair[0]) >= TICK) {
            true => axis,
            false => Axis::between(&DECADES, lowest, highest),
        }
    }

    /// The shortest axis of some of the ticks that holds the values, of which the lowest is at most 1 and the highest at least.
    fn between(ticks: &[f64], lowest: f64, highest: f64) -> Axis {
        // One tick more on either side of 1, so that 1 is never at an end.
        let low =
            ticks.iter().copied().filter(|tick| *tick <= lowest && *tick < 1.0).fold(ticks[0], f64::max);
        let last = ticks[ticks.len() - 1];
        let high = ticks.iter().copied().filter(|tick| *tick >= highest && *tick > 1.0).fold(last, f64::min);
        let ticks = ticks.iter().copied().filter(|tick| (low..=high).contains(tick)).collect();
        Axis { ticks, low, high }
    }

    /// The position of a value, in pixels from the left.
    fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        LABELS + BARS * (value / self.low).ln() / (self.high / self.low).ln()
    }
}

/// The values that a row shows on the axis.
fn values(row: &Row<'_>) -> Vec<f64> {
    let of = |figure: &Figure| {
        [Some(speed(figure)), figure.goal_speed(), library_speed(figure)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    match row {
        Row::Heading(_) => Vec::new(),
        Row::Figure(figure) => of(figure),
        Row::Group(_, figures) => figures.iter().map(|figure| speed(figure)).collect(),
        Row::Summary { lowest, highest, .. } => vec![*lowest, *highest],
    }
}

fn draw(file: &str, heading: &str, rows: &[Row<'_>]) -> Picture {
    let shown: Vec<f64> =
        rows.iter().flat_map(values).filter(|value| value.is_finite() && *value > 0.0).collect();
    let axis = Axis::of(shown.iter().copied());
    let height = TOP + ROW * rows.len() as f64 + BOTTOM;
    let has = |found: fn(&Figure) -> bool| {
        rows.iter().any(|row| matches!(row, Row::Figure(figure) if found(figure)))
    };
    let goal = if has(|figure| figure.goal.is_some()) { "; black mark: the goal" } else { "" };
    let library = if has(|figure| figure.beside.is_some()) { "; blue dot: another library" } else { "" };
    let colours = if rows.iter().any(|row| matches!(row, Row::Figure(_) | Row::Group(..))) {
        "green: goal met, yellow: resolved (RESULTS.md), red: missed, grey: no goal"
    } else {
        "bar: geometric mean (green: at least the reference's speed, grey: below it); line: range; on the right: the reference"
    };

    // Writing to a `String` cannot fail, so its results are dropped.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {WIDTH:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n\
         <rect width=\"{WIDTH:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"20\" font-size=\"14\">{}: speed over the reference's (right of 1 is faster)</text>\n\
         <text x=\"12\" y=\"38\" fill=\"#666666\">{colours}{goal}{library}</text>\n",
        escape(heading),
    );
    let bottom = height - BOTTOM + 4.0;
    for tick in &axis.ticks {
        let x = axis.at(*tick);
        let (colour, dashes) =
            if *tick == 1.0 { ("#222222", "") } else { ("#dddddd", " stroke-dasharray=\"2 3\"") };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.0}\" x2=\"{x:.1}\" y2=\"{bottom:.0}\" stroke=\"{colour}\"{dashes}/>\n\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#666666\">{tick}</text>",
            TOP - 6.0,
            bottom + 16.0
        );
    }
    for (place, row) in rows.iter().enumerate() {
        row.draw(&mut svg, &axis, TOP + ROW * place as f64);
    }
    svg.push_str("</svg>\n");
    Picture { file: file.to_owned(), svg, height }
}

impl Row<'_> {
    /// Draws the row whose upper edge is `y`.
    fn draw(&self, svg: &mut String, axis: &Axis, y: f64) {
        match self {
            Row::Heading(text) => {
                let _ = writeln!(
                    svg,
                    "<text x=\"12\" y=\"{:.0}\" font-weight=\"bold\">{}</text>",
                    y + 12.0,
                    escape(text)
                );
            }
            Row::Figure(figure) => {
                bar(svg, axis, y, speed(figure), colour(figure));
                if let Some(goal) = figure.goal_speed() {
                    mark(svg, axis.at(goal), y, 15.0, "#000000", "the goal");
                }
                if let Some(library) = library_speed(figure) {
                    let _ = writeln!(
                        svg,
                        "<circle cx=\"{:.1}\" cy=\"{:.0}\" r=\"4\" fill=\"{LIBRARY}\" stroke=\"#ffffff\"/>",
                        axis.at(library),
                        y + 8.0
                    );
                }
                texts(
                    svg,
                    y,
                    &figure.name,
                    &format!("{:.3} of {}", speed(figure), reference_name(&figure.against)),
                );
            }
            Row::Group(name, figures) => {
                for figure in figures {
                    mark(svg, axis.at(speed(figure)), y, 13.0, colour(figure), &figure.name);
                }
                let lowest = figures.iter().map(|figure| speed(figure)).fold(f64::INFINITY, f64::min);
                let highest = figures.iter().map(|figure| speed(figure)).fold(0.0, f64::max);
                let against =
                    figures.first().map(|figure| reference_name(&figure.against)).unwrap_or_default();
                texts(svg, y, name, &format!("{lowest:.2} to {highest:.2} of {against}"));
            }
            Row::Summary { label, mean, lowest, highest, against } => {
                bar(svg, axis, y, *mean, if *mean >= 0.995 { "#2f7f6f" } else { "#8a8f98" });
                let _ = writeln!(
                    svg,
                    "<line x1=\"{:.1}\" y1=\"{:.0}\" x2=\"{:.1}\" y2=\"{:.0}\" stroke=\"#222222\"><title>{}</title></line>",
                    axis.at(*lowest),
                    y + 8.0,
                    axis.at(*highest),
                    y + 8.0,
                    escape(&format!("{lowest:.3} to {highest:.3} of {against}"))
                );
                texts(svg, y, label, &format!("{mean:.2} of {against}"));
            }
        }
    }
}

/// A bar from 1 to a value.
fn bar(svg: &mut String, axis: &Axis, y: f64, value: f64, colour: &str) {
    let (one, end) = (axis.at(1.0), axis.at(value));
    let _ = writeln!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"12\" fill=\"{colour}\"/>",
        one.min(end),
        y + 2.0,
        (one - end).abs().max(2.0)
    );
}

/// An upright mark.
fn mark(svg: &mut String, x: f64, y: f64, length: f64, colour: &str, title: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{:.0}\" x2=\"{x:.1}\" y2=\"{:.0}\" stroke=\"{colour}\" stroke-width=\"2\">\
         <title>{}</title></line>",
        y + 1.0,
        y + 1.0 + length,
        escape(title)
    );
}

/// The label on the left and the value on the right.
fn texts(svg: &mut String, y: f64, label: &str, value: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>\n<text x=\"{:.0}\" y=\"{:.0}\">{}</text>",
        LABELS - 10.0,
        y + 12.0,
        escape(label),
        LABELS + BARS + 14.0,
        y + 12.0,
        escape(&shortened(value))
    );
}

fn colour(figure: &Figure) -> &'static str {
    match figure.verdict() {
        Verdict::Met => "#2f7f6f",
        Verdict::Close => "#c9a227",
        Verdict::Missed(_) => "#c4532d",
        Verdict::NoGoal => "#8a8f98",
    }
}

fn speed(figure: &Figure) -> f64 {
    figure.speed(figure.own.median, figure.reference.median)
}

/// The library's speed over the reference's: by ours over each, since the three were not measured in the same rounds.
fn library_speed(figure: &Figure) -> Option<f64> {
    figure.beside.as_ref().map(|beside| speed(figure) / beside.comparison.median)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
