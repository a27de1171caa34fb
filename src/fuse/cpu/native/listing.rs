//! The listing of a program's machine code: the bytes of each instruction, and the part of the program that it belongs to.

use std::fmt::Write;

use super::analysis::Analysis;
use super::generate::Draft;
use super::{Bodies, Drafts, Unsupported};
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Step, Value};
use crate::fuse::plan::compiled_expression::CompiledExpression;

/// The part of a program that the following instructions belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Entry,
    /// A constant that stays in a register.
    Constant,
    /// The bytes that align the loop.
    Alignment,
    Step(usize),
    Output(usize),
    /// The flags of elements that need a rare body.
    Flags,
    Next,
}

/// The columns of an instruction's bytes: the longest one has 12.
const BYTES_COLUMNS: usize = 3 * 12;

impl Drafts {
    /// Returns the listing of the kernels of an expression, of which these are the drafts.
    ///
    /// # Errors
    ///
    /// As [`Native::new`](super::Native::new).
    pub(super) fn listing(&self, compiled: &CompiledExpression) -> Result<String, Unsupported> {
        let mut text = String::from(
            "rax counts elements; rdx has constants, rcx spilled values, rdi the operands' addresses, r8 to r15 the \
             first of them\n",
        );
        let program = self.split.as_ref().map_or(&compiled.program, |split| &split.program);
        let mut kernels = vec![("kernel", &self.first, (program, &compiled.outputs), Bodies::Flagged)];
        kernels.extend(
            self.second.as_ref().map(|second| {
                ("kernel with rare bodies", second, (program, &compiled.outputs), Bodies::InLine)
            }),
        );
        let programs = self.split.iter().flat_map(|split| &split.groups);
        for (group, programs) in self.groups.iter().zip(programs) {
            for (name, draft, of) in [
                ("kernel of the counters' halves", &group.counters, &programs.counters),
                ("kernel of random words", &group.cipher, &programs.cipher),
            ] {
                kernels.push((name, draft, (&of.program, &of.outputs), Bodies::Flagged));
            }
        }
        for (name, draft, (program, outputs), bodies) in kernels {
            let analysis = Analysis::new(program, outputs, bodies)?;
            let (turn, bytes) = (draft.turn, draft.code.bytes.len());
            text += &format!("{name}: {turn} elements an iteration, {bytes} bytes\n");
            draft.write(&analysis, &mut text);
        }
        Ok(text)
    }
}

impl Draft {
    fn write(&self, analysis: &Analysis<'_>, text: &mut String) {
        let mut labels = self.labels.iter().peekable();
        let ends = self.code.starts.iter().skip(1).map(|&end| end as usize).chain([self.code.bytes.len()]);
        for (start, end) in self.code.starts.iter().map(|&start| start as usize).zip(ends) {
            let mut comment = None;
            while let Some(&(_, copy, label)) = labels.next_if(|(offset, ..)| *offset <= start) {
                comment = Some(comment_of(analysis, copy, label));
            }
            let mut bytes = String::new();
            for byte in &self.code.bytes[start..end] {
                // Writing to a string does not fail.
                let _ = write!(bytes, "{byte:02x} ");
            }
            *text += &match comment {
                Some(comment) => format!("  {start:04x}  {bytes:BYTES_COLUMNS$} ; {comment}\n"),
                None => format!("  {start:04x}  {}\n", bytes.trim_end()),
            };
        }
    }
}

fn comment_of(analysis: &Analysis<'_>, copy: usize, label: Label) -> String {
    let program = analysis.program;
    let name = |value: Value| operand(program, analysis.of(value));
    let group = if copy == 0 { String::new() } else { format!(", group {copy}") };
    match label {
        Label::Entry => "entry".to_owned(),
        Label::Constant => "a constant".to_owned(),
        Label::Alignment => "alignment of the loop".to_owned(),
        Label::Next => "next iteration, return".to_owned(),
        Label::Flags => format!("flags of rare elements{group}"),
        Label::Output(output) => {
            let [real, imaginary] = program.outputs[output].map(name);
            let parts = if real == imaginary { real } else { format!("{real}, {imaginary}") };
            format!("output {output} = {parts}{group}")
        }
        Label::Step(index) => {
            let (step, kind) = program.steps[index];
            let applied = |instruction: Instruction, operands: [Value; 3]| {
                let names: Vec<String> =
                    operands[..instruction.arity()].iter().map(|&value| name(value)).collect();
                format!("{instruction:?} {}", names.join(", "))
            };
            let value = match step {
                Step::Load { input, part: 0 } => format!("input {input}"),
                Step::Load { input, part } => format!("input {input}, part {part}"),
                Step::Apply(instruction, operands) => applied(instruction, operands),
                Step::Result { rare, result } => {
                    let rare = &program.rares[rare as usize];
                    let [usual, other] = rare.results[result as usize];
                    applied(Instruction::select(kind), [other, usual, rare.condition])
                }
                other => format!("{other:?}"),
            };
            format!("v{index} = {value}{group}")
        }
    }
}

/// Returns a constant's number, or the name of another value.
fn operand(program: &Program, value: usize) -> String {
    let (step, kind) = program.steps[value];
    match (step, kind) {
        (Step::Constant(bits), RegisterKind::Float32) => format!("{:e}", f32::from_bits(bits as u32)),
        (Step::Constant(bits), RegisterKind::Float64) => format!("{:e}", f64::from_bits(bits)),
        (Step::Constant(bits), _) => format!("{bits:#x}"),
        (Step::Parameter { index, .. }, _) => format!("scalar {index}"),
        _ => format!("v{value}"),
    }
}
