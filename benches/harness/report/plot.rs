//! One bar a figure: our speed over the reference's, with the goal as a mark. Plain SVG, written here, so that the
//! picture follows from the results as the page does and needs no plotting library.

use std::fmt::Write;

use super::{Figure, Report, Verdict};

const LABELS: f64 = 330.0;
const BARS: f64 = 440.0;
const MARGIN: f64 = 70.0;
const ROW: f64 = 22.0;
const TOP: f64 = 46.0;

/// Where another library stands.
const LIBRARY: &str = "#3b6fb6";

/// The plot of every figure of every report.
pub fn render(reports: &[Report]) -> String {
    let rows: Vec<(String, &Figure)> = reports
        .iter()
        .flat_map(|report| {
            report.figures.iter().map(move |figure| (format!("{}: {}", report.name, figure.name), figure))
        })
        .collect();
    let fastest = rows
        .iter()
        .flat_map(|(_, figure)| [Some(speed(figure)), library_speed(figure)])
        .flatten()
        .fold(1.0, f64::max);
    let scale = BARS / (fastest * 1.05);
    let (width, height) = (LABELS + BARS + MARGIN, TOP + ROW * rows.len() as f64 + 30.0);

    // Writing to a `String` cannot fail, so its results are dropped.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"20\" font-size=\"14\" fill=\"#222222\">Speed over the reference's (longer is faster; \
         the black mark is the goal{})</text>\n",
        if rows.iter().any(|(_, figure)| figure.beside.is_some()) {
            ", the blue dot another library"
        } else {
            ""
        }
    );
    for (row, (label, figure)) in rows.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let colour = match figure.verdict() {
            Verdict::Met => "#2f7f6f",
            Verdict::Close => "#c9a227",
            Verdict::Missed(_) => "#c4532d",
            Verdict::NoGoal => "#8a8f98",
        };
        let length = speed(figure) * scale;
        let _ = write!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" fill=\"#222222\">{}</text>\n\
             <rect x=\"{LABELS:.0}\" y=\"{:.0}\" width=\"{length:.1}\" height=\"14\" fill=\"{colour}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.0}\" fill=\"#222222\">{:.3}</text>\n",
            LABELS - 8.0,
            y + 11.0,
            escape(label),
            y,
            LABELS + length + 6.0,
            y + 11.0,
            speed(figure),
        );
        if let Some(goal) = figure.goal_speed() {
            let x = LABELS + goal * scale;
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{:.0}\" x2=\"{x:.1}\" y2=\"{:.0}\" stroke=\"#000000\" stroke-width=\"2\"/>",
                y - 2.0,
                y + 16.0
            );
        }
        if let Some(library) = library_speed(figure) {
            let x = LABELS + library * scale;
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{:.0}\" r=\"4\" fill=\"{LIBRARY}\" stroke=\"#ffffff\"/>",
                y + 7.0
            );
        }
    }
    let one = LABELS + scale;
    let bottom = height - 22.0;
    let _ = write!(
        svg,
        "<line x1=\"{one:.1}\" y1=\"{:.0}\" x2=\"{one:.1}\" y2=\"{bottom:.0}\" stroke=\"#222222\" \
         stroke-dasharray=\"3 3\"/>\n<text x=\"{one:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#222222\">the \
         reference</text>\n</svg>\n",
        TOP - 8.0,
        height - 8.0
    );
    svg
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
