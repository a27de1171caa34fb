//! The frame that the pictures of a run share: a title, an axis of bursts, and round steps.

use super::run::Recording;
use crate::output::{counted, grouped};
use crate::svg::{Area, FAINT, Font, Picture, round_step};

pub const WIDTH: f64 = 1200.0;
pub const LEFT: f64 = 104.0;
pub const RIGHT: f64 = 168.0;
pub const TOP: f64 = 104.0;
pub const MARGIN: f64 = 32.0;

/// The colours of named populations, in turn; the whole network has the first in the rate plot.
pub const COLOURS: [&str; 6] = ["#17497c", "#c6484f", "#2e8b57", "#8a5cc2", "#c77d1e", "#3aa0a8"];

/// A plot of bursts: each has a column of its own from its number to the next.
#[derive(Clone, Copy)]
pub struct Bursts {
    pub area: Area,
    pub first: u64,
    pub count: u64,
}

impl Bursts {
    pub fn new(recording: &Recording, area: Area) -> Bursts {
        Bursts { area, first: recording.first, count: recording.burst_count() }
    }

    /// The left edge of a burst's column.
    pub fn x(&self, burst: f64) -> f64 {
        self.area.x + (burst - self.first as f64) / self.count as f64 * self.area.width
    }

    /// The numbers of bursts below the plot, each at the middle of its column.
    pub fn axis(&self, picture: &mut Picture) {
        let step = round_step((self.count as f64 / 9.0).max(1.0)).ceil();
        let y = self.area.bottom();
        let last = (self.first + self.count - 1) as f64;
        let mut burst = (self.first as f64 / step).ceil() * step;
        while burst <= last {
            let x = self.x(burst + 0.5);
            picture.line((x, y), (x, y + 5.0), FAINT, false);
            picture.text(x, y + 19.0, Font::new(11.0).faint().middle(), &grouped(burst as u64));
            burst += step;
        }
        let middle = self.area.x + self.area.width / 2.0;
        picture.text(middle, y + 40.0, Font::new(12.0).faint().middle(), "burst");
    }
}

/// The title and the line below it.
pub fn title(picture: &mut Picture, recording: &Recording, subject: &str) {
    picture.text(MARGIN, 40.0, Font::new(22.0).bold(), &format!("{subject} of {}", recording.name));
    let line = format!(
        "{} of {} in bursts {} to {}",
        counted(recording.ids.len() as u64, "spike"),
        counted(u64::from(recording.neurons), "neuron"),
        grouped(recording.first),
        grouped(recording.last)
    );
    picture.text(MARGIN, 62.0, Font::new(13.0).faint(), &line);
}
