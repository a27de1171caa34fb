//! `selvedge trace`: where the time of a program went, as tables and as JSON.
//!
//! The file is read up to its break, and a file that breaks off says so. It needs no device.

use crate::failure::Failure;
use crate::options::TraceOptions;
use crate::output::Report;

mod analysis;
mod read;
mod tables;

/// Runs the command.
pub fn trace(options: &TraceOptions) -> Result<Report, Failure> {
    let trace = read::read(&options.file)?;
    let analysis = analysis::Analysis::of(&trace);
    Ok(Report { text: tables::text(&trace, &analysis), json: tables::json(&trace, &analysis) })
}
