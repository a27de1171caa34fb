//! `selvedge trace`: where the time of a program went, as tables and as JSON.
//!
//! The file is read up to its break, and a file that breaks off says so. It needs no device.

use crate::failure::Failure;
use crate::options::TraceOptions;
use crate::output::Report;

mod analysis;
mod compare;
mod read;
mod spans;
mod tables;

pub use analysis::is_operation;
pub use read::{Event, Trace, read};
pub use spans::{Launched, Spans};

/// Runs the command.
pub fn trace(options: &TraceOptions) -> Result<Report, Failure> {
    if let [before, after] = &options.compare[..] {
        let traces = (read(before)?, read(after)?);
        let analyses = (analysis::Analysis::of(&traces.0), analysis::Analysis::of(&traces.1));
        let names = [before, after].map(|path| path.display().to_string());
        let names = names.each_ref().map(String::as_str);
        let (traces, analyses) = ([&traces.0, &traces.1], [&analyses.0, &analyses.1]);
        let json = compare::json(names, traces, analyses);
        return Ok(Report { text: compare::text(names, traces, analyses), json });
    }
    let Some(file) = &options.file else {
        return Err(Failure::from(selvedge::Error::InvalidArgument {
            operation: "trace",
            found: "no file".to_owned(),
            wanted: "a trace, or --compare with two".to_owned(),
        }));
    };
    let trace = read(file)?;
    let analysis = analysis::Analysis::of(&trace);
    Ok(Report { text: tables::text(&trace, &analysis), json: tables::json(&trace, &analysis) })
}
