//! Output: reports, tables, quantities with units, and progress.
//!
//! Colour is used only where the stream is a terminal, `NO_COLOR` is unset and `TERM` is not `dumb`; what is printed is
//! otherwise the same, so that logs and pipes read like the screen.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Failure;

/// The result of a command in both forms.
#[derive(Debug)]
pub struct Report {
    pub text: String,
    pub json: serde_json::Value,
}

/// Prints a report to stdout.
pub fn print(report: &Report, json: bool) -> ExitCode {
    if json { write_stdout(&format!("{:#}\n", report.json)) } else { write_stdout(&report.text) }
}

/// Writes to stdout. A reader that has gone is no failure, a full disk is.
pub fn write_stdout(text: &str) -> ExitCode {
    match write_to_reader(text) {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => failure.print(false),
    }
}

/// Writes to stdout. Returns `false` if its reader has gone, which is no failure.
pub fn write_to_reader(text: &str) -> Result<bool, Failure> {
    let mut stdout = std::io::stdout().lock();
    is_read(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Returns `false` for the error of writing to a reader that has gone.
pub fn is_read(written: std::io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("the output cannot be written: {error}"))),
    }
}

/// Emphasis, where the stream can show it.
#[derive(Debug, Clone, Copy)]
pub struct Style(bool);

impl Style {
    pub fn of_stdout() -> Style {
        Style(std::io::stdout().is_terminal() && wanted())
    }

    pub fn of_stderr() -> Style {
        Style(std::io::stderr().is_terminal() && wanted())
    }

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub fn error(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
}

/// Lines of cells in columns as wide as their widest cell, two spaces apart, indented by two.
#[derive(Debug, Default)]
pub struct Table {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
    headed: bool,
}

impl Table {
    /// `alignment` has one letter a column, `<` or `>`.
    pub fn new(alignment: &str) -> Table {
        Table { right: alignment.chars().map(|letter| letter == '>').collect(), ..Table::default() }
    }

    /// A table whose first line, dimmed, names the columns.
    pub fn with_head<const N: usize>(alignment: &str, names: [&str; N]) -> Table {
        let mut table = Table::new(alignment);
        table.row(names.map(str::to_owned));
        table.headed = true;
        table
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub fn render(&self, style: Style) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths.get(column).copied().unwrap_or(0);
                let right = self.right.get(column).copied().unwrap_or(false);
                line += "  ";
                line += &if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
            }
            let line = line.trim_end();
            text += &if number == 0 && self.headed { style.dim(line) } else { line.to_owned() };
            text.push('\n');
        }
        text
    }
}

/// Such as `64.0 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number whose digits stand in groups of three, such as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Such as `1 block` or `2 blocks`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{} {what}s", grouped(count)) }
}

/// A time in the unit that leaves one to three digits before the point.
pub fn seconds(value: f64) -> String {
    match value {
        value if value < 1e-3 => format!("{:.2} us", value * 1e6),
        value if value < 1.0 => format!("{:.2} ms", value * 1e3),
        value => format!("{value:.2} s"),
    }
}

/// A time in microseconds, as [`seconds`] writes it.
pub fn microseconds(value: f64) -> String {
    seconds(value / 1e6)
}

/// The first letters of a text, with dots for the rest.
pub fn shortened(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// A text of a file or a command line on one line of the same length, with U+FFFD for each control character.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter })
        .collect()
}

/// A name of a file, which may hold anything, as it may go to a terminal: [`printable`], and its first 80 letters.
pub fn printable_name(name: &str) -> String {
    shortened(&printable(name), 80)
}

/// Bytes a second in decimal units, as memory bandwidth is given. A time of 0 has no rate.
pub fn rate(bytes: u64, time: f64) -> String {
    match gigabytes_per_second(bytes, time) {
        None => "-".to_owned(),
        Some(rate) if rate >= 1000.0 => format!("{:.2} TB/s", rate / 1000.0),
        Some(rate) if rate >= 0.1 => format!("{rate:.1} GB/s"),
        Some(rate) if rate >= 1e-4 => format!("{:.1} MB/s", rate * 1e3),
        Some(rate) => format!("{:.1} kB/s", rate * 1e6),
    }
}

/// 10⁹ bytes a second, `None` for a time of 0.
pub fn gigabytes_per_second(bytes: u64, time: f64) -> Option<f64> {
    (time > 0.0).then(|| bytes as f64 / time / 1e9)
}

/// A text from elsewhere, each line indented.
pub fn indented(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{:by$}{line}\n", "")).collect()
}

/// A bar of a histogram, `part` of `width` letters long: in eighths of a letter on a terminal, else of number signs.
pub fn bar(part: f64, width: usize) -> String {
    bar_of(part, width, std::io::stdout().is_terminal())
}

fn bar_of(part: f64, width: usize, fine: bool) -> String {
    const EIGHTHS: [&str; 8] =
        ["", "\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
    let part = part.clamp(0.0, 1.0);
    if !fine {
        return "#".repeat((part * width as f64).round() as usize);
    }
    let eighths = (part * 8.0 * width as f64).round() as usize;
    format!("{}{}", "\u{2588}".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// A bar on stderr for work of many bytes or steps; nothing where stderr is no terminal.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// For `total` bytes; hidden below 32 MiB, which take less time than a bar takes to be read.
    pub fn of_bytes(what: &str, total: u64) -> Progress {
        Progress::bar(what, total, "{msg} {wide_bar:.dim} {bytes:>11} of {total_bytes:<11}", total < 32 << 20)
    }

    /// For `total` steps.
    pub fn of_steps(what: &str, total: u64) -> Progress {
        Progress::bar(what, total, "{msg} {wide_bar:.dim} {pos:>7} of {len:<7}", false)
    }

    /// For work whose end is not known.
    pub fn spinner(what: &str) -> Progress {
        let progress = Progress::bar(what, 0, "{msg} {elapsed}", false);
        progress.0.enable_steady_tick(Duration::from_millis(200));
        progress
    }

    fn bar(what: &str, total: u64, template: &str, hidden: bool) -> Progress {
        let target = if hidden || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        bar.set_message(what.to_owned());
        Progress(bar)
    }

    /// Runs `work`, which may print, without the bar.
    pub fn suspend<R>(&self, work: impl FnOnce() -> R) -> R {
        self.0.suspend(work)
    }

    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Replaces the text beside the bar.
    pub fn describe(&self, text: String) {
        self.0.set_message(text);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_keep_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(bytes(141 << 30), "141.0 GiB");
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1, 1000].map(|count| counted(count, "block")),
            ["0 blocks", "1 block", "1,000 blocks"]
        );
        assert_eq!(seconds(12.3e-6), "12.30 us");
        assert_eq!(seconds(0.25), "250.00 ms");
        assert_eq!(rate(3_900_000_000, 1e-3), "3.90 TB/s");
        assert_eq!(rate(100_000_000, 1.0), "0.1 GB/s");
        assert_eq!(rate(99_000_000, 1.0), "99.0 MB/s");
        assert_eq!(rate(24, 0.01), "2.4 kB/s");
        assert_eq!(rate(1, 0.0), "-");
    }

    #[test]
    fn control_characters_and_endless_names_do_not_reach_a_terminal() {
        assert_eq!(printable("a\tb\u{1b}[31m\nç"), "a\u{fffd}b\u{fffd}[31m\u{fffd}ç");
        assert_eq!(printable_name(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(printable_name(&"\u{7}".repeat(81)), "\u{fffd}".repeat(80) + "...");
    }

    #[test]
    fn bars_are_as_long_as_their_part() {
        assert_eq!(bar_of(1.0, 4, true), "████");
        assert_eq!(bar_of(0.53, 4, true), "██▏");
        assert_eq!(bar_of(0.0, 4, true), "");
        assert_eq!(bar_of(0.5, 4, false), "##");
        assert_eq!([-1.0, f64::NAN, 9.0].map(|part| bar_of(part, 2, false)), ["", "", "##"]);
    }

    #[test]
    fn columns_line_up_and_lines_end_at_their_last_letter() {
        let mut table = Table::with_head("<><", ["name", "size", "where"]);
        table.row(["x".to_owned(), "4 B".to_owned(), String::new()]);
        table.row(["result".to_owned(), "1024 B".to_owned(), "r.npy".to_owned()]);
        let text = table.render(Style(false));
        assert_eq!(text, "  name      size  where\n  x          4 B\n  result  1024 B  r.npy\n");
        assert!(table.render(Style(true)).starts_with("\x1b[2m"));
    }
}
