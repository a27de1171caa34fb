//! The parts of messages that depend on more than a field.

use super::{CompilationDetails, Error};

pub(super) fn on_a_line(advice: Option<&str>) -> String {
    advice.map_or_else(String::new, |advice| format!("\n{advice}"))
}

pub(super) fn culprit_text(culprit: &Option<usize>) -> String {
    culprit.map_or_else(String::new, |culprit| format!(" because of rank {culprit}"))
}

pub(super) fn versioned(library: &str, version: &str) -> String {
    if version.is_empty() { library.to_owned() } else { format!("{library} {version}") }
}

pub(super) fn needs_text(needs: &str, version: &str) -> String {
    let numbers = |text: &str| {
        let text = text.trim_start_matches("CUDA ");
        text.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>()
    };
    match needs {
        "" => String::new(),
        // An old function is missing, so the driver is incomplete, and a newer one of its kind may lack it too.
        _ if numbers(needs) <= numbers(version) => {
            format!(": it needs CUDA {needs}, which this one says it is past; the library is incomplete")
        }
        _ => format!(": it needs CUDA {needs}; install a newer one"),
    }
}

pub(super) fn bracketed(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

pub(super) fn memory_text(error: &Error) -> String {
    let Error::OutOfMemory { device, requested, free, total, cached, live, limit, holders } = error else {
        return String::new();
    };
    let holders = bracketed(holders);
    match device {
        None => format!(
            "the host is out of memory: {requested} bytes were requested{holders}; use fewer elements or a narrower dtype"
        ),
        Some(device) => format!(
            "device {device} is out of memory: {requested} bytes were requested; {free} of {total} are free, {live} are \
             live{holders}, {cached} are cached and cannot be given back yet{}; drop buffers or use smaller ones",
            limit_text(limit)
        ),
    }
}

fn limit_text(limit: &Option<u64>) -> String {
    limit.map_or_else(String::new, |limit| {
        format!(", and buffers may take {limit} in all (Device::set_memory_limit, SELVEDGE_MEMORY_LIMIT)")
    })
}

pub(super) fn compiled_text(details: &CompilationDetails) -> String {
    let CompilationDetails { target, version, file, line, column } = details;
    let location = match (line, column) {
        (0, _) => String::new(),
        (_, 0) => format!(", {file} line {line}"),
        _ => format!(", {file} line {line} column {column}"),
    };
    format!("{target} (NVRTC {version}){location}")
}

pub(super) fn along_text(axis: &Option<usize>) -> String {
    axis.map_or_else(|| " of all elements".to_owned(), |axis| format!(" along axis {axis}"))
}

/// Operations whose indices are classes, ids or positions in a group: a negative one does not count from the end.
const FROM_ZERO: [&str; 4] = ["at_group", "cross_entropy", "embedding", "nll_loss"];

pub(super) fn positions_text(operation: &str, index: i64, size: usize) -> String {
    // An operation that counts from the end would have taken such an index.
    let is_refused = index < 0 && index.unsigned_abs() <= size as u64;
    match size {
        0 => "no index, since there are no positions".to_owned(),
        _ if is_refused || FROM_ZERO.contains(&operation) => format!("one of 0 to {}", size - 1),
        _ => format!("one of 0 to {}, or of -{size} to -1 from the end", size - 1),
    }
}

pub(super) fn list_text(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
