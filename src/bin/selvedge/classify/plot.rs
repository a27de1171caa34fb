//! The pictures of an evaluation: its confusion matrix and its calibration curve.

use selvedge::classifier::Evaluation;

use super::{class_name, percent};
use crate::output::{counted, grouped};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture};

const MARGIN: f64 = 32.0;
const TOP: f64 = 104.0;
const COLOUR: &str = "#17497c";
/// The shades of a cell, from the least to the largest part of its row.
const SHADES: [&str; 9] =
    ["#f4f7fb", "#e3ebf4", "#cbd9ea", "#aec5de", "#8cacd0", "#6991bf", "#4875aa", "#2d5c93", "#17497c"];
/// Shades from this one on have light text.
const DARK: usize = 5;

fn title(picture: &mut Picture, title: &str, evaluation: &Evaluation) {
    picture.text(MARGIN, 40.0, Font::new(22.0).bold(), title);
    let line = format!("{}, accuracy {}", counted(evaluation.count(), "row"), percent(evaluation.accuracy()));
    picture.text(MARGIN, 62.0, Font::new(13.0).faint(), &line);
}

/// Draws the counts: a row for each label, a column for each class that was found.
pub fn confusion(evaluation: &Evaluation, names: &[String]) -> String {
    let matrix = evaluation.confusion();
    let cell = (640.0 / matrix.len().max(1) as f64).clamp(14.0, 84.0);
    let (left, size) = (112.0, cell * matrix.len() as f64);
    let mut picture = Picture::new((left + size + MARGIN).max(420.0));
    title(&mut picture, "Confusion matrix", evaluation);
    let font = Font::new(11.0).faint();
    // A name that is longer than its place ends with dots.
    let short = |class: usize, width: f64| {
        let name = class_name(names, class);
        let most = ((width / font.width("x")) as usize).max(3);
        match name.chars().count() > most {
            true => name.chars().take(most - 1).chain(['…']).collect(),
            false => name,
        }
    };
    for (label, line) in matrix.iter().enumerate() {
        let (y, total) = (TOP + cell * label as f64, line.iter().sum::<u64>());
        picture.text(left - 8.0, y + cell / 2.0 + 4.0, font.end(), &short(label, left - 12.0));
        for (class, &count) in line.iter().enumerate() {
            let x = left + cell * class as f64;
            let part = if total == 0 { 0.0 } else { count as f64 / total as f64 };
            let shade = ((part * (SHADES.len() - 1) as f64).round() as usize).min(SHADES.len() - 1);
            let area = Area { x, y, width: cell - 1.0, height: cell - 1.0 };
            let text = format!(
                "label {}, class {}: {} ({})",
                class_name(names, label),
                class_name(names, class),
                grouped(count),
                percent(part)
            );
            picture.area_with_title(area, SHADES[shade], &text);
            if cell >= 40.0 {
                let colour = if shade >= DARK { "#ffffff" } else { INK };
                let font = Font::new(12.0).middle().colour(colour);
                picture.text(x + cell / 2.0, y + cell / 2.0 + 4.0, font, &grouped(count));
            }
        }
    }
    for class in 0..matrix.len() {
        let x = left + cell * (class as f64 + 0.5);
        picture.text(x, TOP + size + 17.0, font.middle(), &short(class, cell));
    }
    let middle = left + size / 2.0;
    picture.text(middle, TOP + size + 40.0, Font::new(12.0).faint().middle(), "class that was found");
    picture.text(MARGIN, TOP - 12.0, Font::new(12.0).faint(), "label");
    picture.finish(TOP + size + 64.0, "Confusion matrix")
}

/// Draws the accuracy of each bin of confidence beside the diagonal, on which both are equal.
pub fn calibration(evaluation: &Evaluation) -> String {
    let area = Area { x: 92.0, y: TOP, width: 480.0, height: 360.0 };
    let mut picture = Picture::new(area.right() + 3.0 * MARGIN);
    title(&mut picture, "Calibration", evaluation);
    let error = format!("expected calibration error {:.3}", evaluation.calibration_error());
    picture.text(MARGIN, 80.0, Font::new(13.0).faint(), &error);
    let x = |confidence: f64| area.x + confidence * area.width;
    let y = |accuracy: f64| area.bottom() - accuracy * area.height;
    let font = Font::new(11.0).faint();
    for fifth in 0..=5 {
        let at = f64::from(fifth) / 5.0;
        picture.line((area.x, y(at)), (area.right(), y(at)), GRID, false);
        picture.text(area.x - 10.0, y(at) + 4.0, font.end(), &format!("{at:.1}"));
        picture.line((x(at), area.bottom()), (x(at), area.bottom() + 5.0), FAINT, false);
        picture.text(x(at), area.bottom() + 19.0, font.middle(), &format!("{at:.1}"));
    }
    picture.line((area.x, area.bottom()), (area.right(), area.bottom()), INK, false);
    picture.line((x(0.0), y(0.0)), (x(1.0), y(1.0)), FAINT, true);
    let bins: Vec<_> = evaluation.calibration().iter().filter(|bin| bin.count > 0).collect();
    let points: Vec<(f64, f64)> = bins.iter().map(|bin| (x(bin.confidence), y(bin.accuracy))).collect();
    picture.curve(&points, COLOUR, 1.8);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(1) as f64;
    for (bin, &point) in bins.iter().zip(&points) {
        let text = format!(
            "{}: confidence {}, accuracy {}",
            counted(bin.count, "row"),
            percent(bin.confidence),
            percent(bin.accuracy)
        );
        picture.circle(point, 3.0 + 6.0 * (bin.count as f64 / most).sqrt(), COLOUR, &text);
    }
    let middle = area.x + area.width / 2.0;
    picture.text(middle, area.bottom() + 40.0, Font::new(12.0).faint().middle(), "confidence");
    picture.text(area.x, area.y - 10.0, Font::new(12.0).faint(), "accuracy");
    picture.finish(area.bottom() + 64.0, "Calibration")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_of_any_size_are_drawn() {
        let of = |found: &[i64], classes| {
            Evaluation::new(found, &vec![0.75; found.len()], &vec![0; found.len()], classes).unwrap()
        };
        for evaluation in [of(&[], 0), of(&[], 2), of(&[0, 1, 0], 2), of(&[70], 90)] {
            for picture in [confusion(&evaluation, &[]), calibration(&evaluation)] {
                assert!(picture.ends_with("</svg>\n") && !picture.contains("NaN"), "{picture}");
            }
        }
        let picture = confusion(&of(&[0, 1, 0], 2), &[]);
        assert!(picture.contains("label c0, class c1: 1 (33.3 %)"), "{picture}");
        let names = ["a".to_owned(), "a name that is too long".to_owned()];
        let picture = confusion(&of(&[0, 1, 0], 2), &names);
        assert!(picture.contains("label a, class a name that is too long: 1 (33.3 %)"), "{picture}");
        assert!(picture.contains(">a name that is…<"), "{picture}");
        assert_eq!(calibration(&of(&[0, 1, 0], 2)).matches("<circle").count(), 1);
    }
}
