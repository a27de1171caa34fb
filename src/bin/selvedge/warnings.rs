//! Warnings of the library on stderr: the library logs what its user should change, and this program is its user here.

use std::fmt::Arguments;

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::output::Style;

struct Warnings;

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            print(record.args());
        }
    }

    fn flush(&self) {}
}

/// Writes a warning to stderr.
pub fn print(message: &Arguments<'_>) {
    eprintln!("{} {message}", Style::of_stderr().bold("warning:"));
}

/// Shows warnings, unless the process has a logger already.
pub fn show() {
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
