//! [`StopFilter`], the text before a stop string.

use crate::error::{Error, Result};

/// Passes a text that comes in parts on, up to the first of some stop strings. The borders of the parts change nothing.
///
/// The end of a part that may begin a stop string waits for the next part. Of several stop strings the one that ends first counts, and
/// of those that end together the longest.
///
/// ```
/// use selvedge::nn::StopFilter;
/// let mut filter = StopFilter::new(["User:", "\n\n"])?;
/// assert_eq!(filter.push("Yes.\nUs"), "Yes.\n");
/// assert_eq!(filter.push("e it.\n"), "Use it.");
/// assert_eq!(filter.push("\nMore"), "");
/// assert!(filter.is_stopped());
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopFilter {
    stops: Vec<String>,
    /// The end of the text so far that may begin a stop string.
    waiting: String,
    is_stopped: bool,
}

impl StopFilter {
    /// Creates a filter. Without stop strings it passes everything on.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a stop string of no characters.
    pub fn new<S: Into<String>>(stops: impl IntoIterator<Item = S>) -> Result<StopFilter> {
        let stops: Vec<String> = stops.into_iter().map(Into::into).collect();
        if let Some(index) = stops.iter().position(String::is_empty) {
            let found = format!("stop string {index} of no characters");
            return Err(Error::invalid("StopFilter", found, "at least one character"));
        }
        Ok(StopFilter { stops, ..StopFilter::default() })
    }

    /// Returns the text that is certainly before a stop string, and not part of one.
    pub fn push(&mut self, text: &str) -> String {
        if self.is_stopped {
            return String::new();
        }
        self.waiting += text;
        // The first occurrence of a stop string is the one of it that ends first.
        let found = self.stops.iter().filter_map(|stop| {
            let start = self.waiting.find(stop.as_str())?;
            Some((start + stop.len(), start))
        });
        if let Some((_, start)) = found.min() {
            self.is_stopped = true;
            self.waiting.truncate(start);
            return std::mem::take(&mut self.waiting);
        }
        let may_begin = |&start: &usize| {
            self.stops.iter().any(|stop| stop.as_bytes().starts_with(&self.waiting.as_bytes()[start..]))
        };
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.waiting.len() - longest.saturating_sub(1).min(self.waiting.len());
        let starts = (from..self.waiting.len()).filter(|&start| self.waiting.is_char_boundary(start));
        let start = starts.into_iter().find(may_begin).unwrap_or(self.waiting.len());
        let rest = self.waiting.split_off(start);
        std::mem::replace(&mut self.waiting, rest)
    }

    /// Ends the text if a token that has no place in it, such as that of the end of a turn, is spelled as a stop string. Returns
    /// whether it is.
    pub fn push_special(&mut self, token: &str) -> bool {
        let is_stop = self.stops.iter().any(|stop| stop == token);
        self.is_stopped |= is_stop;
        is_stop
    }

    /// Returns whether a stop string has come.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns the text that waits, once no more comes.
    pub fn finish(self) -> String {
        self.waiting
    }
}
