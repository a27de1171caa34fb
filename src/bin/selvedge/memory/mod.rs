//! `selvedge memory`: a snapshot of a device's memory as text, JSON and a picture; and `selvedge memory
//! replay`, which runs a trace through the pool on the CPU.
//!
//! Neither needs a device. A file is read whole and must be right in every part before anything is written.

use std::path::Path;

use selvedge::Error;
use selvedge::driver::{MemorySnapshot, MemoryTrace};

use crate::failure::Failure;
use crate::files;
use crate::options::{MemoryCommand, MemoryOptions};
use crate::output::{Report, printable_name};

mod map;
mod plot;
mod replay;
mod summary;

/// Runs the command.
pub fn memory(options: &MemoryOptions) -> Result<Report, Failure> {
    match (&options.command, &options.file) {
        (Some(MemoryCommand::Replay(options)), _) => replay::replay(options),
        (None, Some(file)) => snapshot(file, options.output.as_deref()),
        // The options say that one of both is needed.
        (None, None) => Err(Failure::failed("no snapshot was named")),
    }
}

fn snapshot(file: &Path, output: Option<&Path>) -> Result<Report, Failure> {
    output.map(files::check_writable).transpose()?;
    let mut snapshot = read(file, "a memory snapshot", MemorySnapshot::from_json)?;
    check_segments(file, &snapshot)?;
    snapshot.device = printable_name(&snapshot.device);
    snapshot.pool = printable_name(&snapshot.pool);
    let mut report = Report { text: summary::text(&snapshot), json: summary::json(&snapshot) };
    if let Some(output) = output {
        picture(output, &map::draw(&snapshot), &mut report)?;
    }
    Ok(report)
}

/// Writes a picture and says so.
fn picture(path: &Path, svg: &str, report: &mut Report) -> Result<(), Failure> {
    files::write(path, svg)?;
    let path = path.display().to_string();
    report.text += &format!("\n  picture in {path}\n");
    report.json["picture"] = path.into();
    Ok(())
}

/// A file's text as what it should be. Errors name the file.
fn read<T>(file: &Path, wanted: &str, from_json: fn(&str) -> selvedge::Result<T>) -> Result<T, Failure> {
    let text = files::read_text(file, wanted)?;
    from_json(&text).map_err(|error| {
        let path = file.display().to_string();
        let error = match error {
            Error::InvalidArgument { found, wanted, .. } => {
                Error::File { path, found, wanted: format!("{wanted}{}", other_command(&text)) }
            }
            other => other,
        };
        error.into()
    })
}

/// Returns advice for a valid file of the other kind.
fn other_command(text: &str) -> &'static str {
    if MemoryTrace::from_json(text).is_ok() {
        " (this is a memory trace: use `selvedge memory replay`)"
    } else if MemorySnapshot::from_json(text).is_ok() {
        " (this is a memory snapshot: use `selvedge memory`)"
    } else {
        ""
    }
}

/// An address is in one segment only.
fn check_segments(file: &Path, snapshot: &MemorySnapshot) -> Result<(), Failure> {
    let mut ranges: Vec<(u64, u64)> =
        snapshot.segments.iter().map(|segment| (segment.address, segment.bytes)).collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        if before.0.saturating_add(before.1) > after.0 {
            let found = format!(
                "segments of {} bytes at {:#x} and of {} bytes at {:#x}",
                before.1, before.0, after.1, after.0
            );
            let wanted = "segments that do not overlap".to_owned();
            return Err(Error::File { path: file.display().to_string(), found, wanted }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use selvedge::driver::{BlockSnapshot, BlockState, SegmentSnapshot};

    use super::*;

    #[test]
    fn whatever_can_be_read_can_be_shown() {
        let block = |offset, bytes, state, stream| BlockSnapshot { offset, bytes, state, stream };
        let blocks = vec![
            block(0, 512, BlockState::Live, Some(1)),
            block(512, 512, BlockState::Cached, None),
            block(1024, 1 << 40, BlockState::Unmapped, None),
        ];
        let segments = vec![
            SegmentSnapshot { address: 1 << 20, bytes: (1 << 40) + 1024, blocks },
            SegmentSnapshot { address: 7, bytes: 0, blocks: Vec::new() },
        ];
        let text = MemorySnapshot { segments, limit_bytes: Some(9), ..MemorySnapshot::default() }.to_json();
        let mut shown = 0;
        for at in 0..text.len() {
            for with in ["", "0", "7", "184467440737095516", "\"", "null", "[]", "live"] {
                let changed = format!("{}{with}{}", &text[..at], &text[at + 1..]);
                let Ok(snapshot) = MemorySnapshot::from_json(&changed) else { continue };
                let svg = map::draw(&snapshot);
                assert!(
                    svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf\""),
                    "{changed}"
                );
                assert!(summary::text(&snapshot).contains("fragmentation"));
                assert!(summary::json(&snapshot).is_object());
                shown += 1;
            }
        }
        assert!(shown > 150, "{shown}");
    }
}
