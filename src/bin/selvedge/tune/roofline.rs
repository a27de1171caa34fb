//! The speeds of products as a picture: operations a second over operations a byte, under the roofs that memory and
//! arithmetic set.

use super::{Measured, Tuning};
use crate::svg::{Area, FAINT, Font, GRID, INK, Picture};

const WIDTH: f64 = 1100.0;
const AREA: Area = Area { x: 90.0, y: 110.0, width: 850.0, height: 520.0 };
/// One for each dtype, in the order in which they were asked for.
const COLOURS: [&str; 6] = ["#2f6fb3", "#c6484f", "#3d8b57", "#8a5cc2", "#b5792a", "#46838a"];
const OTHER: &str = "#c3cad1";

/// Logarithmic axes between powers of ten.
struct Axes {
    x: (f64, f64),
    y: (f64, f64),
}

impl Axes {
    fn around(points: impl Iterator<Item = (f64, f64)> + Clone) -> Axes {
        let span = |values: &mut dyn Iterator<Item = f64>| {
            let (low, high) =
                values.fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
            let (low, high) = if low <= high && low > 0.0 { (low, high) } else { (1.0, 10.0) };
            (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0))
        };
        Axes { x: span(&mut points.clone().map(|point| point.0)), y: span(&mut points.map(|point| point.1)) }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let part =
            |value: f64, (low, high): (f64, f64)| ((value.log10() - low) / (high - low)).clamp(0.0, 1.0);
        (AREA.x + part(x, self.x) * AREA.width, AREA.bottom() - part(y, self.y) * AREA.height)
    }
}

/// Operations a byte that a product must move, and operations a second.
fn point(measured: &Measured, seconds: f64) -> (f64, f64) {
    (measured.operations() / measured.bytes(), measured.operations() / seconds)
}

/// Such as `1.5 TFLOP/s`.
fn speed(operations: f64) -> String {
    if operations < 1e12 {
        format!("{:.3} GFLOP/s", operations / 1e9)
    } else {
        format!("{:.1} TFLOP/s", operations / 1e12)
    }
}

/// The picture.
pub fn draw(tuning: &Tuning) -> String {
    let own = tuning.measured.iter().filter_map(|measured| Some((measured, measured.own()?.seconds)));
    let points = own.clone().map(|(measured, seconds)| point(measured, seconds));
    let axes = Axes::around(points);
    let mut picture = Picture::new(WIDTH);
    picture.text(32.0, 40.0, Font::new(22.0).bold(), &format!("Matrix products on {}", tuning.device));
    let line = "each dot the fastest way of this library for one size and layout; grey dots cuBLAS";
    picture.text(32.0, 62.0, Font::new(13.0).faint(), line);
    for power in axes.x.0 as i32..=axes.x.1 as i32 {
        let (x, _) = axes.place((10f64.powi(power), 1.0));
        picture.line((x, AREA.y), (x, AREA.bottom()), GRID, false);
        let label =
            if (0..5).contains(&power) { format!("{}", 10f64.powi(power)) } else { format!("1e{power}") };
        picture.text(x, AREA.bottom() + 18.0, Font::new(11.0).faint().middle(), &label);
    }
    for power in axes.y.0 as i32..=axes.y.1 as i32 {
        let (_, y) = axes.place((1.0, 10f64.powi(power)));
        picture.line((AREA.x, y), (AREA.right(), y), GRID, false);
        picture.text(AREA.x - 10.0, y + 4.0, Font::new(11.0).faint().end(), &speed(10f64.powi(power)));
    }
    picture.text(
        AREA.x + AREA.width / 2.0,
        AREA.bottom() + 42.0,
        Font::new(13.0).middle(),
        "operations for each byte of operands and result",
    );
    // The roof of memory, as far as the fastest product.
    let highest = own.clone().map(|(measured, seconds)| point(measured, seconds).1).fold(0.0, f64::max);
    if highest > 0.0 && tuning.bandwidth > 0.0 {
        let from = 10f64.powf(axes.x.0).max(10f64.powf(axes.y.0) / tuning.bandwidth);
        let to = (highest / tuning.bandwidth).max(from);
        let ends = [from, to].map(|x| axes.place((x, x * tuning.bandwidth)));
        picture.curve(&ends, INK, 1.5);
        let label = format!("{:.2} TB/s", tuning.bandwidth / 1e12);
        picture.text(ends[1].0 + 6.0, AREA.y - 8.0, Font::new(11.0).colour(FAINT), &label);
    }
    for (measured, cublas) in tuning.measured.iter().filter_map(|one| Some((one, one.cublas()?))) {
        let place = point(measured, cublas.seconds);
        picture.circle(axes.place(place), 3.0, OTHER, &format!("{measured} by cuBLAS: {}", speed(place.1)));
    }
    for (index, dtype) in tuning.dtypes.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let mut roof: f64 = 0.0;
        for (measured, seconds) in own.clone().filter(|(measured, _)| measured.dtype == *dtype) {
            let place = point(measured, seconds);
            roof = roof.max(place.1);
            let way = measured.own().map_or(String::new(), |timed| timed.way.to_string());
            picture.circle(
                axes.place(place),
                4.0,
                colour,
                &format!("{measured} by {way}: {}", speed(place.1)),
            );
        }
        if roof > 0.0 {
            let (_, y) = axes.place((1.0, roof));
            picture.line((AREA.x, y), (AREA.right(), y), colour, true);
            let label = format!("{dtype}: {}", speed(roof));
            picture.text(AREA.right() + 8.0, y + 4.0, Font::new(12.0).bold().colour(colour), &label);
        }
    }
    picture.finish(AREA.bottom() + 64.0, &format!("Matrix products on {}", tuning.device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_powers_of_ten() {
        let axes = Axes::around([(3.0, 2e9), (500.0, 7e14)].into_iter());
        assert_eq!((axes.x, axes.y), ((0.0, 3.0), (9.0, 15.0)));
        assert_eq!(axes.place((1.0, 1e9)), (AREA.x, AREA.bottom()));
        assert_eq!(axes.place((1000.0, 1e15)), (AREA.right(), AREA.y));
        // Nothing was measured, or one thing.
        assert_eq!(Axes::around(std::iter::empty()).x, (0.0, 1.0));
        assert_eq!(Axes::around([(10.0, 1e12)].into_iter()).y, (12.0, 13.0));
    }
}
