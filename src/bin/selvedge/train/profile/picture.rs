//! The picture of a profiled step: one bar a kernel, by time, coloured by its bound.

use super::work::{Limit, Profile, Work};
use crate::output::{counted, microseconds, shortened};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture, round_step};

const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 32.0;
/// The right ends of names.
const NAMES: f64 = 400.0;
const RIGHT: f64 = 880.0;
const TOP: f64 = 128.0;
const LINE: f64 = 20.0;
const BAR: f64 = 13.0;
/// The most bars; the rest is one more.
const MAX_BARS: usize = 60;
/// The most letters of a name.
const LETTERS: usize = 62;
const UNKNOWN: &str = "#a9b3bd";

fn colour(limit: Option<Limit>) -> &'static str {
    match limit {
        Some(Limit::Memory) => "#2b6ca3",
        Some(Limit::Arithmetic) => "#b3541e",
        None => UNKNOWN,
    }
}

/// Draws a profile.
pub fn draw(profile: &Profile) -> String {
    let mut picture = Picture::new(WIDTH);
    let title = if profile.has_device { "Kernels of a step" } else { "Operations of a step" };
    picture.text(MARGIN, 40.0, Font::new(22.0).bold(), title);
    let steps = if profile.steps == 1 { "one step".to_owned() } else { counted(profile.steps, "step") };
    let line = format!(
        "{} of {} in a step, the mean of {steps}",
        microseconds(profile.total()),
        microseconds(profile.step_time)
    );
    picture.text(MARGIN, 62.0, Font::new(13.0).faint(), &line);
    if profile.has_device {
        let mut x = MARGIN;
        for (limit, name) in [
            (Some(Limit::Memory), "bound by memory"),
            (Some(Limit::Arithmetic), "bound by arithmetic"),
            (None, "no known bound"),
        ] {
            picture.area(Area { x, y: 78.0, width: 12.0, height: 12.0 }, colour(limit));
            let font = Font::new(12.0);
            picture.text(x + 18.0, 88.0, font, name);
            x += 18.0 + font.width(name) + 24.0;
        }
        picture.line((x, 77.0), (x, 91.0), INK, false);
        picture.text(x + 8.0, 88.0, Font::new(12.0), "the bound");
    }

    let longest = profile.work.iter().map(|work| work.time).fold(0.0, f64::max);
    let rest: f64 = profile.work.iter().skip(MAX_BARS).map(|work| work.time).sum();
    let most = longest.max(rest).max(1e-3);
    let bars = profile.work.len().min(MAX_BARS) + usize::from(profile.work.len() > MAX_BARS);
    let bottom = TOP + LINE * bars as f64;
    let x = |microseconds: f64| NAMES + microseconds / most * (RIGHT - NAMES);
    let step = round_step(most / 5.0);
    for mark in 0..=(most / step) as u64 {
        let at = mark as f64 * step;
        picture.line((x(at), TOP - 8.0), (x(at), bottom), GRID, false);
        picture.text(x(at), TOP - 14.0, Font::new(11.0).faint().middle(), &microseconds(at));
    }
    let mut y = TOP;
    for work in profile.work.iter().take(MAX_BARS) {
        bar(&mut picture, work, y, x);
        y += LINE;
    }
    if profile.work.len() > MAX_BARS {
        let name = format!("{} more", profile.work.len() - MAX_BARS);
        picture.text(NAMES - 8.0, y + 11.0, Font::new(11.0).end(), &name);
        let area = Area { x: NAMES, y: y + 1.0, width: x(rest) - NAMES, height: BAR };
        picture.area_with_title(area, UNKNOWN, &format!("{name}: {}", microseconds(rest)));
        picture.text(x(rest) + 6.0, y + 11.0, Font::new(11.0).faint(), &microseconds(rest));
    }
    picture.line((NAMES, TOP - 8.0), (NAMES, bottom), FAINT, false);
    picture.finish(bottom + MARGIN, title)
}

fn bar(picture: &mut Picture, work: &Work, y: f64, x: impl Fn(f64) -> f64) {
    picture.text(NAMES - 8.0, y + 11.0, Font::new(11.0).end(), &shortened(&work.name, LETTERS));
    let mut title = format!("{} {}", work.name, work.operands);
    if !work.operation.is_empty() {
        title += &format!(" of {}", work.operation);
    }
    title += &format!(": {}, {:.1} a step", microseconds(work.time), work.count);
    let mut label = microseconds(work.time);
    if let (Some(bound), Some(ratio)) = (work.bound, work.ratio()) {
        title += &format!(", {ratio:.2} times its bound by {}", bound.limit.name());
        label += &format!(", {ratio:.2}x");
    }
    let area = Area { x: NAMES, y: y + 1.0, width: x(work.time) - NAMES, height: BAR };
    picture.area_with_title(area, colour(work.bound.map(|bound| bound.limit)), &title);
    if let Some(bound) = work.bound {
        let at = x(bound.time.min(work.time));
        picture.line((at, y - 1.0), (at, y + BAR + 3.0), INK, false);
    }
    picture.text(x(work.time) + 6.0, y + 11.0, Font::new(11.0).faint(), &label);
}

#[cfg(test)]
mod tests {
    use super::super::work::Bound;
    use super::*;

    fn work(name: &str, time: f64, bound: Option<(f64, Limit)>) -> Work {
        Work {
            name: name.to_owned(),
            operation: "matmul".to_owned(),
            operands: String::new(),
            count: 1.0,
            time,
            bound: bound.map(|(time, limit)| Bound { time, limit }),
        }
    }

    #[test]
    fn every_kernel_is_a_bar_in_the_colour_of_its_bound() {
        let rows = vec![
            work("a<b", 30.0, Some((10.0, Limit::Memory))),
            work("gemm", 20.0, Some((16.0, Limit::Arithmetic))),
            work("other", 10.0, None),
        ];
        let profile = Profile { steps: 1, step_time: 70.0, has_device: true, work: rows };
        let text = draw(&profile);
        for limit in [Some(Limit::Memory), Some(Limit::Arithmetic), None] {
            // One in the legend, one bar.
            assert_eq!(text.matches(colour(limit)).count(), 2, "{text}");
        }
        assert!(text.contains("a&lt;b") && text.contains("3.00x") && text.contains("1.25x"), "{text}");
    }

    #[test]
    fn any_profile_is_drawn() {
        let many = (0..3 * MAX_BARS).map(|index| work(&"k".repeat(index), 1.0, None)).collect();
        for work in [Vec::new(), many, vec![work("k", 0.0, Some((0.0, Limit::Memory)))]] {
            for has_device in [false, true] {
                let picture = draw(&Profile { steps: 1, step_time: 0.0, has_device, work: work.clone() });
                assert!(picture.ends_with("</svg>\n") && !picture.contains("NaN"), "{picture}");
            }
        }
    }
}
