//! What was found, and why not something else: the data behind `selvedge info`.

use std::fmt;

/// One place where a library was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The path or name that was tried.
    pub path: String,
    /// How it came to be tried, such as `SELVEDGE_LIBCUDA` or `$VIRTUAL_ENV`.
    pub source: String,
    /// Whether this is the library that is used.
    pub taken: bool,
    /// Why it was, or was not, taken.
    pub reason: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.path, self.source, self.reason)
    }
}

/// A function that the crate calls and the library does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSymbol {
    /// The function's public name.
    pub name: &'static str,
    /// The CUDA version that has it, such as `12.4`; empty where it is not known.
    pub needs: String,
    /// Whether the library is of no use without it.
    pub required: bool,
}

/// The state of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryReport {
    /// The library, such as `NVRTC`.
    pub name: &'static str,
    /// Where it was loaded from; `None` where it was not.
    pub path: Option<String>,
    /// Its version in words; `None` where it could not be asked.
    pub version: Option<String>,
    /// Whether it can be used.
    pub usable: bool,
    /// Why it cannot be used; `None` where it can.
    pub problem: Option<String>,
    /// Every place that was tried, in order.
    pub attempts: Vec<Attempt>,
    /// The functions that it does not have.
    pub missing: Vec<MissingSymbol>,
}

impl fmt::Display for LibraryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("version unknown");
        match (&self.path, &self.problem) {
            (Some(path), None) => writeln!(f, "{}: {version}, {path}", self.name)?,
            (Some(path), Some(problem)) => {
                writeln!(f, "{}: {version}, {path}, cannot be used: {problem}", self.name)?
            }
            (None, _) => writeln!(f, "{}: not loaded", self.name)?,
        }
        for attempt in &self.attempts {
            writeln!(f, "  {} {attempt}", if attempt.taken { "+" } else { "-" })?;
        }
        for symbol in &self.missing {
            let needs =
                if symbol.needs.is_empty() { String::new() } else { format!(" (CUDA {})", symbol.needs) };
            writeln!(
                f,
                "  has no {}{needs}{}",
                symbol.name,
                if symbol.required { ", which is required" } else { "" }
            )?;
        }
        Ok(())
    }
}

/// The state of every library that the crate can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The driver first, then the optional ones.
    pub libraries: Vec<LibraryReport>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.libraries.iter().try_for_each(|library| write!(f, "{library}"))
    }
}
