//! Pictures as SVG, written by hand: a few shapes and text need no library.
//!
//! The output is valid XML for any text: characters that XML cannot hold are replaced.

use std::fmt::{Display, Write};

/// The colours that every picture shares.
pub const INK: &str = "#1f2933";
pub const FAINT: &str = "#6b7785";
pub const GRID: &str = "#e4e8ec";
pub const PAPER: &str = "#ffffff";

/// The alignment of a text at its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A text's look.
#[derive(Clone, Copy)]
pub struct Font {
    pub size: f64,
    pub colour: &'static str,
    pub bold: bool,
    pub anchor: Anchor,
}

impl Font {
    pub fn new(size: f64) -> Font {
        Font { size, colour: INK, bold: false, anchor: Anchor::Start }
    }

    pub fn faint(self) -> Font {
        Font { colour: FAINT, ..self }
    }

    pub fn bold(self) -> Font {
        Font { bold: true, ..self }
    }

    pub fn colour(self, colour: &'static str) -> Font {
        Font { colour, ..self }
    }

    pub fn middle(self) -> Font {
        Font { anchor: Anchor::Middle, ..self }
    }

    pub fn end(self) -> Font {
        Font { anchor: Anchor::End, ..self }
    }

    /// Estimates the width of a text. The viewer's font decides, so leave some space.
    pub fn width(self, text: &str) -> f64 {
        0.58 * self.size * text.chars().count() as f64
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub fn right(self) -> f64 {
        self.x + self.width
    }

    pub fn bottom(self) -> f64 {
        self.y + self.height
    }
}

/// Returns the least of 1, 2, 2.5 and 5 times a power of ten that is no smaller.
pub fn round_step(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-9).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    // A step that is equal but for rounding is large enough.
    steps.into_iter().find(|step| *step >= value * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// A picture under construction. Its height is known at the end only.
pub struct Picture {
    width: f64,
    body: String,
}

// Writing to a `String` cannot fail, so results of `write!` are dropped in what follows.
impl Picture {
    pub fn new(width: f64) -> Picture {
        Picture { width, body: String::new() }
    }

    /// A rectangle of one colour, or of a pattern: `url(#name)`.
    pub fn area(&mut self, area: Area, fill: &str) {
        self.shape(area, &format!("fill=\"{fill}\""), None);
    }

    /// The same with a text that a browser shows where the pointer rests.
    pub fn area_with_title(&mut self, area: Area, fill: &str, title: &str) {
        self.shape(area, &format!("fill=\"{fill}\""), Some(title));
    }

    /// A rectangle's edge.
    pub fn frame(&mut self, area: Area, colour: &str) {
        self.shape(area, &format!("fill=\"none\" stroke=\"{colour}\""), None);
    }

    fn shape(&mut self, area: Area, look: &str, title: Option<&str>) {
        let Area { x, y, width, height } = area;
        let (x, y, width, height) = (Short(x), Short(y), Short(width), Short(height));
        let _ = write!(self.body, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {look}");
        let _ = match title {
            Some(title) => writeln!(self.body, "><title>{}</title></rect>", Escaped(title)),
            None => writeln!(self.body, "/>"),
        };
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, dashed: bool) {
        let dashes = if dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{colour}\"{dashes}/>",
            Short(from.0),
            Short(from.1),
            Short(to.0),
            Short(to.1)
        );
    }

    /// A line through points.
    pub fn curve(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        let look = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\"", Short(width));
        self.points("polyline", points, &format!("{look} stroke-linejoin=\"round\""));
    }

    /// Level lines of one colour and thickness, each from a point on over a width, as one element: for very many of them.
    pub fn level_lines(&mut self, lines: &[((f64, f64), f64)], colour: &str, thickness: f64) {
        if lines.is_empty() {
            return;
        }
        let thickness = Short(thickness);
        let _ = write!(self.body, "<path stroke=\"{colour}\" stroke-width=\"{thickness}\" d=\"");
        for ((x, y), width) in lines {
            let _ = write!(self.body, "M{} {}h{}", Short(*x), Short(*y), Short(*width));
        }
        self.body.push_str("\"/>\n");
    }

    /// Fills the polygon of these points.
    pub fn filled(&mut self, points: &[(f64, f64)], colour: &str) {
        self.points("polygon", points, &format!("fill=\"{colour}\""));
    }

    fn points(&mut self, name: &str, points: &[(f64, f64)], look: &str) {
        let _ = write!(self.body, "<{name} {look} points=\"");
        for (at, point) in points.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            let _ = write!(self.body, "{space}{},{}", Short(point.0), Short(point.1));
        }
        self.body.push_str("\"/>\n");
    }

    pub fn circle(&mut self, centre: (f64, f64), radius: f64, fill: &str, title: &str) {
        let (x, y, radius) = (Short(centre.0), Short(centre.1), Short(radius));
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{PAPER}\"><title>{}</title></circle>",
            Escaped(title)
        );
    }

    pub fn text(&mut self, x: f64, y: f64, font: Font, text: &str) {
        let anchor = match font.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if font.bold { " font-weight=\"600\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{anchor}{weight}>{}</text>",
            Short(x),
            Short(y),
            Short(font.size),
            font.colour,
            Escaped(text)
        );
    }

    /// A pattern of slanted lines with this name, for [`area`](Self::area).
    pub fn hatch(&mut self, name: &str, paper: &str, ink: &str) {
        let _ = writeln!(
            self.body,
            "<defs><pattern id=\"{name}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
             <rect width=\"6\" height=\"6\" fill=\"{paper}\"/>\
             <path d=\"M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2\" stroke=\"{ink}\"/></pattern></defs>"
        );
    }

    /// The file's text.
    pub fn finish(self, height: f64, title: &str) -> String {
        let (width, height) = (Short(self.width), Short(height));
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>\n{}</svg>\n",
            Escaped(title),
            self.body
        )
    }
}

/// A coordinate with two decimals at most: a hundredth of a pixel is not seen.
struct Short(f64);

impl Display for Short {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        // A number that is not finite would break the picture; -0 would only look odd.
        let rounded = if rounded.is_finite() && rounded != 0.0 { rounded } else { 0.0 };
        rounded.fmt(formatter)
    }
}

/// A text as XML can hold it.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\n' | '\t' => formatter.write_char(character)?,
                '\0'..=' ' if character != ' ' => formatter.write_char('\u{fffd}')?,
                '\u{fffe}' | '\u{ffff}' => formatter.write_char('\u{fffd}')?,
                plain => formatter.write_char(plain)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_written_as_xml() {
        let mut picture = Picture::new(10.0);
        picture.text(0.0, 0.0, Font::new(12.0), "a<b> & \"c\" \u{1b}\u{ffff}é中\n");
        let text = picture.finish(10.0, "x & y");
        assert!(text.contains("a&lt;b&gt; &amp; &quot;c&quot; \u{fffd}\u{fffd}é中\n"), "{text}");
        assert!(text.contains("<title>x &amp; y</title>"));
    }

    #[test]
    fn numbers_are_short_and_finite() {
        for (value, text) in [(1.0, "1"), (1.0 / 3.0, "0.33"), (-1e-9, "0"), (f64::NAN, "0"), (2.5, "2.5")] {
            assert_eq!(Short(value).to_string(), text);
        }
    }

    #[test]
    fn steps_are_round() {
        for (value, step) in [(1.0, 1.0), (1.1, 2.0), (23.0, 25.0), (0.03, 0.05), (0.2, 0.2), (600.0, 1000.0)]
        {
            assert!((round_step(value) - step).abs() < 1e-9 * step, "{value}: {}", round_step(value));
        }
    }
}
