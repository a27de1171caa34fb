//! [`Screen`], the output while ids come.

use std::io::IsTerminal;

use crate::failure::Failure;
use crate::output;

/// Prints text as it comes, unless the result is JSON. Its last line is whole, also after an error.
pub struct Screen {
    prints: bool,
    is_inside_line: bool,
}

impl Screen {
    pub fn new(prints: bool) -> Screen {
        Screen { prints, is_inside_line: false }
    }

    /// Returns `false` if the reader of stdout has gone.
    pub fn print(&mut self, text: &str) -> Result<bool, Failure> {
        if !self.prints || text.is_empty() {
            return Ok(true);
        }
        let is_read = output::write_to_reader(text)?;
        self.is_inside_line = is_read && !text.ends_with('\n');
        Ok(is_read)
    }

    /// Ends the line.
    pub fn end_line(&mut self) -> Result<bool, Failure> {
        if self.is_inside_line { self.print("\n") } else { Ok(true) }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Only an error leaves a line open, and it is the one to report.
        let _ = self.end_line();
    }
}

/// Prints a text to a terminal's user.
pub fn print_note(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("{text}");
    }
}
