//! The picture of a run: the loss of each step, and that of the validation text.

use super::report::Evaluation;
use crate::output::{counted, grouped};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture, round_step};

const WIDTH: f64 = 1000.0;
const AREA: Area = Area { x: 82.0, y: 104.0, width: 790.0, height: 380.0 };
const MARGIN: f64 = 32.0;
/// The least distance between the names of two lines.
const NAME_HEIGHT: f64 = 15.0;
const TRAINING: &str = "#9db8d2";
const VALIDATION: &str = "#17497c";
const ENTROPY: &str = "#b3541e";

/// Draws losses by step, evaluations, and the entropy of single ids, all in nats.
pub fn draw(losses: &[(u64, f64)], evaluations: &[Evaluation], entropy: f64) -> String {
    let mut picture = Picture::new(WIDTH);
    let first = losses.first().map_or(0, |(step, _)| step - 1);
    let last = losses.last().map_or(first + 1, |(step, _)| *step).max(first + 1);
    let finite = losses
        .iter()
        .map(|(_, loss)| *loss)
        .chain(evaluations.iter().map(|evaluation| evaluation.validation))
        .filter(|loss| loss.is_finite());
    let (least, most) = finite.fold((entropy, entropy), |(a, b), loss| (a.min(loss), b.max(loss)));
    let title = "Loss by step";
    picture.text(MARGIN, 40.0, Font::new(22.0).bold(), title);
    let line = match evaluations.last() {
        Some(evaluation) => format!(
            "validation loss {:.4} nats an id after {}; single ids have {entropy:.4}",
            evaluation.validation,
            counted(evaluation.step, "step")
        ),
        None => counted(last - first, "step"),
    };
    picture.text(MARGIN, 62.0, Font::new(13.0).faint(), &line);

    let step = round_step(((most - least) / 5.0).max(1e-3));
    let (low, high) = ((least / step).floor() * step, (most / step).ceil().max(least / step + 1.0) * step);
    let x = |at: u64| AREA.x + (at - first) as f64 / (last - first) as f64 * AREA.width;
    let y = |loss: f64| AREA.bottom() - (loss - low) / (high - low) * AREA.height;
    for mark in 0..=((high - low) / step).round() as u64 {
        let loss = low + mark as f64 * step;
        picture.line((AREA.x, y(loss)), (AREA.right(), y(loss)), GRID, false);
        picture.text(AREA.x - 10.0, y(loss) + 4.0, Font::new(11.0).faint().end(), &format!("{loss:.2}"));
    }
    let between = (round_step(((last - first) as f64 / 9.0).max(1.0)).ceil() as u64).max(1);
    for at in (first.div_ceil(between) * between..=last).step_by(between as usize) {
        picture.line((x(at), AREA.bottom()), (x(at), AREA.bottom() + 5.0), FAINT, false);
        picture.text(x(at), AREA.bottom() + 19.0, Font::new(11.0).faint().middle(), &grouped(at));
    }
    picture.line((AREA.x, AREA.bottom()), (AREA.right(), AREA.bottom()), INK, false);
    let middle = AREA.x + AREA.width / 2.0;
    picture.text(middle, AREA.bottom() + 40.0, Font::new(12.0).faint().middle(), "step");

    picture.line((AREA.x, y(entropy)), (AREA.right(), y(entropy)), ENTROPY, true);
    let training: Vec<(f64, f64)> =
        losses.iter().filter(|(_, loss)| loss.is_finite()).map(|(at, loss)| (x(*at), y(*loss))).collect();
    picture.curve(&training, TRAINING, 1.2);
    let validation: Vec<(f64, f64)> = evaluations
        .iter()
        .filter(|evaluation| evaluation.validation.is_finite() && evaluation.step >= first)
        .map(|evaluation| (x(evaluation.step.min(last)), y(evaluation.validation)))
        .collect();
    picture.curve(&validation, VALIDATION, 2.0);
    for (evaluation, point) in evaluations.iter().zip(&validation) {
        let title = format!("step {}: {:.4}", grouped(evaluation.step), evaluation.validation);
        picture.circle(*point, 3.0, VALIDATION, &title);
    }
    // A line's name stands beside its end.
    let font = Font::new(12.0);
    let mut names = vec![(y(entropy), "single ids", font.colour(ENTROPY))];
    names.extend(training.last().map(|(_, at)| (*at, "training", font.colour(TRAINING))));
    names.extend(validation.last().map(|(_, at)| (*at, "validation", font.bold().colour(VALIDATION))));
    let heights = apart(&names.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), NAME_HEIGHT);
    for ((_, name, font), at) in names.iter().zip(heights) {
        picture.text(AREA.right() + 10.0, at + 4.0, *font, name);
    }
    picture.finish(AREA.bottom() + 64.0, title)
}

/// Returns heights near these, in their order, of which no two are closer than `distance`.
fn apart(heights: &[f64], distance: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    // Groups of names that touch, each as its members and their centre.
    let mut groups: Vec<(Vec<usize>, f64)> = Vec::new();
    for at in order {
        let (mut members, mut centre) = (vec![at], heights[at]);
        while let Some((before, before_centre)) = groups.pop() {
            let half = (members.len() + before.len()) as f64 / 2.0 * distance;
            if centre - before_centre >= half {
                groups.push((before, before_centre));
                break;
            }
            members.splice(0..0, before);
            centre = members.iter().map(|&at| heights[at]).sum::<f64>() / members.len() as f64;
        }
        groups.push((members, centre));
    }
    let mut moved = heights.to_vec();
    for (members, centre) in groups {
        let first = centre - (members.len() - 1) as f64 / 2.0 * distance;
        members.iter().enumerate().for_each(|(number, &at)| moved[at] = first + number as f64 * distance);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance() {
        for (heights, wanted) in [
            (&[10.0, 50.0][..], &[10.0, 50.0][..]),
            (&[10.0, 10.0], &[3.0, 17.0]),
            (&[30.0, 28.0, 29.0], &[43.0, 15.0, 29.0]),
            (&[0.0, 30.0, 31.0], &[0.0, 23.5, 37.5]),
            (&[], &[]),
        ] {
            let moved = apart(heights, 14.0);
            assert_eq!(moved, wanted, "{heights:?}");
        }
    }

    #[test]
    fn losses_of_any_course_are_drawn() {
        for (losses, evaluations) in [
            (vec![], vec![]),
            (vec![], vec![Evaluation::of_validation(0, 4.0)]),
            (
                vec![(1, 4.0), (2, f64::NAN)],
                vec![Evaluation::of_validation(0, 4.0), Evaluation::of_validation(2, f64::INFINITY)],
            ),
            (vec![(7, 4.0), (8, 1e30)], vec![Evaluation::of_validation(8, 3.0)]),
        ] {
            let picture = draw(&losses, &evaluations, 3.0);
            assert!(picture.ends_with("</svg>\n") && !picture.contains("NaN"), "{picture}");
        }
    }
}
