//! The output of ranks, line by line, each with the number of its rank.

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::failure::Failure;
use crate::output::{Style, is_read};

/// The longest part of a line that is shown at once, so that a line without an end takes no memory.
const MAX_LINE: u64 = 64 << 10;

/// The output streams, to which one line is written at a time.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Option<Failure>>>);

impl Lines {
    /// Shows a message of the launcher itself.
    pub fn note(&self, message: &str) {
        self.write("selvedge launch", message.as_bytes(), true);
    }

    /// Returns the first error of writing, such as a full disk.
    pub fn failure(&self) -> Option<Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Starts a thread that shows the lines of a stream.
    pub fn read(
        &self,
        rank: usize,
        stream: impl Read + Send + 'static,
        is_error: bool,
    ) -> Result<JoinHandle<()>> {
        let lines = self.clone();
        let name = format!("output of rank {rank}");
        std::thread::Builder::new().name(name).spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            loop {
                line.clear();
                match stream.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                    // The end, or a stream that is no more.
                    Ok(0) | Err(_) => break,
                    Ok(_) => lines.write(
                        &format!("rank {rank}"),
                        line.strip_suffix(b"\n").unwrap_or(&line),
                        is_error,
                    ),
                }
            }
        })
    }

    fn write(&self, who: &str, line: &[u8], is_error: bool) {
        let mut failure = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let style = if is_error { Style::of_stderr() } else { Style::of_stdout() };
        let mut text = style.dim(&format!("[{who}]")).into_bytes();
        text.push(b' ');
        text.extend_from_slice(line);
        text.push(b'\n');
        let written = match is_error {
            true => std::io::stderr().lock().write_all(&text),
            false => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(&text).and_then(|()| stdout.flush())
            }
        };
        // A reader that has gone is no failure, and the ranks go on after one.
        if let Err(error) = is_read(written) {
            failure.get_or_insert(error);
        }
    }
}
