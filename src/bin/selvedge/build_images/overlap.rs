//! A check of kernels that may start before the kernel ahead of them has ended (programmatic dependent launch).
//!
//! Such a kernel executes `griddepcontrol.wait` on every path before it accesses memory that another kernel may write. The
//! check reads PTX, where the wait is one instruction that the compiler moves no access across; machine code made of the
//! PTX keeps that order.

use super::Image;
use crate::failure::{BAD_INPUT, Failure};

const WAIT: &str = "griddepcontrol.wait;";

/// Instructions that access only the kernel's own memory and parameters, or that only bring memory into the L2 cache.
const OWN: [&str; 5] = ["ld.param", "ld.shared", "st.shared", "ld.const", "cp.async.bulk.prefetch.tensor"];

/// The beginnings of all instructions that access memory.
const ACCESSES: [&str; 5] = ["ld", "st.", "atom.", "red.", "cp."];

/// Refuses every kernel of PTX images that contains `griddepcontrol` and may access memory before it waits.
pub fn check(images: &[Image]) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for image in images {
        let Ok(text) = std::str::from_utf8(&image.bytes) else { continue };
        if text.starts_with(".version") {
            problems
                .extend(of_text(text).into_iter().map(|problem| format!("{}: {problem}", image.line.file())));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure { code: BAD_INPUT, message: problems.join("\n") })
}

/// Returns the problem of each kernel that has one.
fn of_text(text: &str) -> Vec<String> {
    let kernels = text.split(".entry ").skip(1).filter(|kernel| kernel.contains("griddepcontrol."));
    kernels.filter_map(|kernel| of_kernel(kernel.split('(').next().unwrap_or_default(), kernel)).collect()
}

fn of_kernel(name: &str, kernel: &str) -> Option<String> {
    let Some((before, _)) = kernel.split_once(WAIT) else {
        return Some(format!("{name} has griddepcontrol and no {WAIT}"));
    };
    let lines: Vec<&str> = before.lines().map(str::trim).collect();
    if let Some(line) = lines.iter().find(|line| accesses(line)) {
        return Some(format!("{name} accesses memory before {WAIT} '{line}'"));
    }
    // A jump over the wait would leave it out.
    let labels = lines.iter().filter_map(|line| line.split_once("bra")?.1.split_whitespace().last());
    for label in labels.map(|label| label.trim_end_matches(';')) {
        if !lines.iter().any(|line| line.starts_with(&format!("{label}:"))) {
            return Some(format!("{name} may jump to {label} without {WAIT}"));
        }
    }
    None
}

fn accesses(line: &str) -> bool {
    let instruction =
        if line.starts_with('@') { line.split_once(' ').map_or("", |(_, rest)| rest) } else { line };
    ACCESSES.iter().any(|begin| instruction.starts_with(begin))
        && !OWN.iter().any(|begin| instruction.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(body: &str) -> Option<String> {
        let text = format!(".version 8.0\n.visible .entry k(\n.param .u64 p\n)\n{{\n{body}\nret;\n}}\n");
        of_text(&text).pop()
    }

    #[test]
    fn kernels_access_memory_after_their_wait() {
        for right in [
            "ld.global.u32 %r1, [%rd1];",
            "ld.param.u64 %rd1, [p];\ngriddepcontrol.wait;\nld.global.u32 %r1, [%rd1];",
            "st.shared.u32 [%r2], %r1;\ngriddepcontrol.launch_dependents;\ngriddepcontrol.wait;",
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];\ngriddepcontrol.wait;",
            "@%p1 bra $L;\nmov.u32 %r1, 0;\n$L:\ngriddepcontrol.wait;",
        ] {
            assert_eq!(problem(right), None, "{right}");
        }
        for (wrong, part) in [
            ("ld.global.u32 %r1, [%rd1];\ngriddepcontrol.wait;", "ld.global.u32"),
            ("ldu.global.u32 %r1, [%rd1];\ngriddepcontrol.wait;", "ldu.global"),
            ("@%p1 st.global.u32 [%rd1], %r1;\ngriddepcontrol.wait;", "st.global"),
            ("@!%p1 atom.global.add.u32 %r1, [%rd1], 1;\ngriddepcontrol.wait;", "atom.global"),
            ("cp.async.cg.shared.global [%r1], [%rd1], 16;\ngriddepcontrol.wait;", "cp.async.cg"),
            ("@%p1 bra $L;\ngriddepcontrol.wait;\n$L:", "$L"),
            ("bra.uni $L;\ngriddepcontrol.wait;\n$L:", "$L"),
            ("griddepcontrol.launch_dependents;\nst.global.u32 [%rd1], %r1;", "no griddepcontrol.wait"),
        ] {
            assert!(problem(wrong).is_some_and(|found| found.contains(part)), "{wrong}");
        }
    }
}
