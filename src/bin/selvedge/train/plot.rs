//! The picture of a run: the loss of each step, and that of the validation text.

use super::report::Evaluation;
use crate::output::{counted, grouped};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture, round_step};

const WIDTH: f64 = 1000.0;
const AREA: Area = Area { x: 82.0, y: 104.0, width: 790.0, height: 380.0 };
const MARGIN: f64 = 32.0;
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
    picture.text(AREA.right() + 10.0, y(entropy) + 4.0, Font::new(12.0).colour(ENTROPY), "single ids");
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
    if let Some((_, at)) = validation.last() {
        picture.text(AREA.right() + 10.0, at + 4.0, Font::new(12.0).bold().colour(VALIDATION), "validation");
    }
    let font = Font::new(12.0).colour(TRAINING);
    picture.text(AREA.right() + 10.0, AREA.y + 10.0, font, "training");
    picture.finish(AREA.bottom() + 64.0, title)
}
