//! The picture of an evolution: the best syntony over generations.

use crate::output::{counted, grouped};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture, round_step};

const WIDTH: f64 = 1000.0;
const AREA: Area = Area { x: 92.0, y: 104.0, width: 800.0, height: 360.0 };
const MARGIN: f64 = 32.0;
const COLOUR: &str = "#17497c";
/// Fewer improvements than this have a mark each.
const MARKS: usize = 60;

/// Draws a history: the best syntony at the start and after each generation.
pub fn draw(history: &[f64], is_converged: bool) -> String {
    let mut picture = Picture::new(WIDTH);
    let last = history.len().saturating_sub(1);
    let (least, most) = range(history);
    picture.text(MARGIN, 40.0, Font::new(22.0).bold(), "Best syntony by generation");
    let end = if is_converged { "converged after" } else { "after" };
    let value = |number: f64| format!("{number:.4}");
    let (first, best) = (history.first().copied().unwrap_or(0.0), history.last().copied().unwrap_or(0.0));
    let line =
        format!("from {} to {}, {end} {}", value(first), value(best), counted(last as u64, "generation"));
    picture.text(MARGIN, 62.0, Font::new(13.0).faint(), &line);

    let step = round_step((most - least) / 5.0);
    let (low, high) = ((least / step).floor() * step, (most / step).ceil() * step);
    let x = |generation: usize| AREA.x + generation as f64 / last.max(1) as f64 * AREA.width;
    let y = |syntony: f64| AREA.bottom() - (syntony - low) / (high - low) * AREA.height;
    let digits = (-step.log10().floor()).clamp(1.0, 9.0) as usize + 1;
    for mark in 0..=((high - low) / step).round() as u64 {
        let syntony = low + mark as f64 * step;
        picture.line((AREA.x, y(syntony)), (AREA.right(), y(syntony)), GRID, false);
        let label = format!("{syntony:.digits$}");
        let label = label.trim_end_matches('0').trim_end_matches('.');
        picture.text(AREA.x - 10.0, y(syntony) + 4.0, Font::new(11.0).faint().end(), label);
    }
    let step = round_step((last as f64 / 9.0).max(1.0)).ceil() as usize;
    for generation in (0..=last).step_by(step) {
        let at = x(generation);
        picture.line((at, AREA.bottom()), (at, AREA.bottom() + 5.0), FAINT, false);
        let font = Font::new(11.0).faint().middle();
        picture.text(at, AREA.bottom() + 19.0, font, &grouped(generation as u64));
    }
    picture.line((AREA.x, AREA.bottom()), (AREA.right(), AREA.bottom()), INK, false);
    let middle = AREA.x + AREA.width / 2.0;
    picture.text(middle, AREA.bottom() + 40.0, Font::new(12.0).faint().middle(), "generation");

    // The best syntony stays until a generation improves it, so the curve has steps.
    let mut points = Vec::with_capacity(2 * history.len());
    for (generation, &syntony) in history.iter().enumerate() {
        points.extend(points.last().map(|&(_, before)| (x(generation), before)));
        points.push((x(generation), y(syntony)));
    }
    picture.curve(&points, COLOUR, 1.8);
    let improvements: Vec<usize> =
        (1..history.len()).filter(|&generation| history[generation] > history[generation - 1]).collect();
    if improvements.len() <= MARKS {
        for generation in improvements {
            let title = format!("generation {}: {}", grouped(generation as u64), history[generation]);
            picture.circle((x(generation), y(history[generation])), 3.0, COLOUR, &title);
        }
    }
    let font = Font::new(12.0).bold().colour(COLOUR);
    picture.text(AREA.right() + 10.0, y(best) + 4.0, font, &value(best));
    picture.finish(AREA.bottom() + 64.0, "Best syntony by generation")
}

/// Returns the least and the largest number, apart from each other.
fn range(history: &[f64]) -> (f64, f64) {
    let finite = || history.iter().copied().filter(|number| number.is_finite());
    let (least, most) = (finite().fold(1.0, f64::min), finite().fold(0.0, f64::max));
    if most - least > 1e-9 { (least, most) } else { (least.min(most) - 0.05, least.max(most) + 0.05) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_has_a_curve_and_marks_at_improvements() {
        let picture = draw(&[0.5, 0.5, 0.625, 0.75], false);
        assert_eq!(picture.matches("<circle").count(), 2);
        assert!(picture.contains("from 0.5000 to 0.7500, after 3 generations"), "{picture}");
    }

    #[test]
    fn a_history_without_change_is_drawn() {
        for history in [&[0.5][..], &[0.0, 0.0], &[1.0, 1.0, 1.0]] {
            let picture = draw(history, true);
            assert!(picture.contains("converged") && !picture.contains("NaN"), "{picture}");
        }
    }
}
