//! Faults in machine code that the comparison with the interpreter must find: another opcode, register, immediate,
//! vector length or address in every instruction of a kind, for both instruction sets.

use selvedge::fuse::{CpuBackend, Expression, Graph, Operation};
use selvedge::types::DType;

use super::arrays::{Array, difference, on_host_with, with_host};
use super::native::{BACKENDS, expression_of, inputs_of, outputs_of, shifted};
use super::native_coordinates;
use crate::common::suite::Test;

/// Changes an instruction's bytes. Returns whether it is one of the kind.
type Change = Box<dyn Fn(&mut [u8]) -> bool>;

/// An opcode with its opcode map.
type Opcode = (u8, u8);

/// Returns a vector instruction's opcode, and its place among the bytes. The operands follow.
fn opcode_of(bytes: &[u8]) -> Option<(Opcode, usize)> {
    match bytes[0] {
        0x62 => Some(((bytes[1] & 7, bytes[4]), 4)),
        0xc4 => Some(((bytes[1] & 31, bytes[3]), 3)),
        _ => None,
    }
}

/// Returns a change of instructions with one of these opcodes, given the bytes and the opcode's place.
fn of(opcodes: &'static [Opcode], change: impl Fn(&mut [u8], usize) -> bool + 'static) -> Change {
    Box::new(move |bytes| match opcode_of(bytes) {
        Some((opcode, place)) if opcodes.contains(&opcode) => change(bytes, place),
        _ => false,
    })
}

/// Flips bits of the opcode.
fn opcode(opcodes: &'static [Opcode], flip: u8) -> Change {
    of(opcodes, move |bytes, place| {
        bytes[place] ^= flip;
        true
    })
}

fn immediate(opcodes: &'static [Opcode], from: u8, to: u8) -> Change {
    of(opcodes, move |bytes, _| {
        let last = bytes.len() - 1;
        let is_kind = bytes[last] == from;
        bytes[last] = if is_kind { to } else { bytes[last] };
        is_kind
    })
}

/// Swaps the last two operands, if both are registers below 8.
fn swapped(opcodes: &'static [Opcode]) -> Change {
    of(opcodes, |bytes, place| {
        let extension = if place == 4 { 0x60 } else { 0x20 };
        let (first, last) = (!bytes[2] >> 3 & 15, bytes[place + 1] & 7);
        let is_above = place == 4 && bytes[3] & 8 == 0;
        if bytes[place + 1] < 0xc0 || bytes[1] & extension != extension || first > 7 || is_above {
            return false;
        }
        bytes[2] = bytes[2] & 0x87 | (!last & 15) << 3;
        bytes[place + 1] = bytes[place + 1] & 0xf8 | first;
        true
    })
}

/// Reads the neighbour of the last operand's register.
fn neighbour(opcodes: &'static [Opcode]) -> Change {
    of(opcodes, |bytes, place| {
        let is_register = bytes[place + 1] >= 0xc0;
        bytes[place + 1] ^= u8::from(is_register);
        is_register
    })
}

/// Computes the lower half of the lanes alone.
fn half(opcodes: &'static [Opcode]) -> Change {
    of(opcodes, |bytes, place| {
        match place {
            4 => bytes[3] = bytes[3] & 0x9f | 1 << 5,
            _ => bytes[2] &= 0xfb,
        }
        true
    })
}

/// Accesses the first interleaved group's element for every group.
fn first_group(opcodes: &'static [Opcode]) -> Change {
    of(opcodes, |bytes, place| {
        // An address with an index and a displacement of four bytes.
        if bytes[place + 1] & 0xc7 != 0x84 {
            return false;
        }
        let displacement = &mut bytes[place + 3..place + 7];
        let is_later = displacement != [0; 4];
        displacement.fill(0);
        is_later
    })
}

/// Replaces the mandatory prefix F3 by 66.
fn prefix(opcodes: &'static [Opcode]) -> Change {
    of(opcodes, |bytes, _| {
        let is_kind = bytes[2] & 3 == 2;
        bytes[2] ^= if is_kind { 3 } else { 0 };
        is_kind
    })
}

fn cast(from: DType, to: DType) -> Expression {
    let graph = Graph::new();
    let x = graph.input(from);
    graph.expression(&[x.cast(to)]).expect("an expression")
}

fn choice() -> Expression {
    let graph = Graph::new();
    let (x, y) = (graph.input(DType::F32), graph.input(DType::F32));
    graph.expression(&[x.le(y).choose(x, y)]).expect("an expression")
}

/// Returns the lesser of two numbers by a selection, which is one machine instruction.
fn lesser() -> Expression {
    let graph = Graph::new();
    let (x, y) = (graph.input(DType::F32), graph.input(DType::F32));
    graph.expression(&[x.lt(y).choose(x, y)]).expect("an expression")
}

/// Returns uniform random numbers of f32.
fn random() -> Expression {
    let all = native_coordinates::expressions();
    all.into_iter().find(|(name, _)| *name == "uniform numbers").expect("the program").1
}

/// The faults: a name, an expression with the instructions, and the change.
fn faults() -> Vec<(&'static str, Expression, Change)> {
    const MULTIPLY_ADDS: &[Opcode] = &[(2, 0x98), (2, 0xa8), (2, 0xb8), (2, 0x9c), (2, 0xac), (2, 0xbc)];
    const COMPARE: &[Opcode] = &[(1, 0xc2)];
    let f32_of = |operation| expression_of(operation, DType::F32);
    vec![
        ("a difference for a sum", f32_of(Operation::Add), opcode(&[(1, 0x58)], 0x58 ^ 0x5c)),
        ("a sum of half the lanes", f32_of(Operation::Add), half(&[(1, 0x58)])),
        ("an input of another group", f32_of(Operation::Add), first_group(&[(1, 0x10)])),
        ("an output of another group", f32_of(Operation::Add), first_group(&[(1, 0x11)])),
        ("swapped operands of a difference", f32_of(Operation::Sub), swapped(&[(1, 0x5c)])),
        ("another factor", f32_of(Operation::Mul), neighbour(&[(1, 0x59)])),
        ("a multiply-subtract", f32_of(Operation::Fma), opcode(MULTIPLY_ADDS, 2)),
        ("another form of a multiply-add", f32_of(Operation::Fma), opcode(MULTIPLY_ADDS, 0x10)),
        ("another direction of rounding", f32_of(Operation::Floor), immediate(&[(3, 8)], 9, 10)),
        ("the lesser for the greater", f32_of(Operation::Maximum), opcode(&[(1, 0x5f)], 0x5f ^ 0x5d)),
        ("the wrong sign of zeros", f32_of(Operation::Maximum), opcode(&[(1, 0xdb)], 0xdb ^ 0xeb)),
        ("NaN for a number", f32_of(Operation::Maximum), immediate(COMPARE, 3, 7)),
        ("less or equal for less", f32_of(Operation::Less), immediate(COMPARE, 0x11, 0x12)),
        ("the other selection", choice(), swapped(&[(2, 0x64), (3, 0x4a)])),
        ("the greater for the lesser", lesser(), opcode(&[(1, 0x5d)], 0x5d ^ 0x5f)),
        ("the sign alone", f32_of(Operation::Abs), opcode(&[(1, 0xdb)], 0xdb ^ 0xdf)),
        ("half the power of two", f32_of(Operation::Exp), immediate(&[(1, 0x72)], 23, 22)),
        ("no rare body", f32_of(Operation::Sin), immediate(COMPARE, 0x12, 0x0f)),
        (
            "a shift without the sign",
            expression_of(Operation::ShiftRight, DType::I32),
            opcode(&[(2, 0x46)], 3),
        ),
        ("an unsigned minimum", expression_of(Operation::Minimum, DType::I32), opcode(&[(2, 0x39)], 2)),
        ("a quarter of a bf16", expression_of(Operation::Add, DType::BF16), immediate(&[(1, 0x72)], 16, 15)),
        ("zeros for the sign", cast(DType::I32, DType::I64), opcode(&[(2, 0x25)], 0x25 ^ 0x35)),
        ("a product of half the lanes", random(), half(&[(1, 0xf4)])),
        ("a signed product", random(), opcode(&[(1, 0xf4)], 0xf4 ^ 0xf5)),
        (
            "the other halves of products",
            random(),
            of(&[(3, 0x02), (3, 0x25)], |bytes, _| {
                let last = bytes.len() - 1;
                bytes[last] ^= 0xff;
                true
            }),
        ),
        ("words of another group", random(), first_group(&[(1, 0x10)])),
        ("a rounded conversion", cast(DType::F32, DType::I32), prefix(&[(1, 0x5b)])),
    ]
}

/// Runs machine code with the change. Returns the number of changed instructions, and the difference from the interpreter.
fn run(backend: CpuBackend, expression: &Expression, change: &Change) -> (usize, Option<String>) {
    let layout = shifted(515, 0);
    let (inputs, before) = (inputs_of(expression, layout), outputs_of(expression, layout));
    let mut wanted = before.clone();
    on_host_with(CpuBackend::Interpreter, expression, &inputs, &[], &mut wanted).expect("the interpreter");
    let mut found: Vec<Array> = before.clone();
    let mut changed = 0;
    with_host(&inputs, &mut found, |inputs, outputs| {
        let mut each = |bytes: &mut [u8]| changed += usize::from(change(bytes));
        // SAFETY: the caller has asked for the backend. Another register, immediate or form of an arithmetic instruction
        // accesses the same memory or less, and another group's elements are those of the operand.
        let ran = unsafe { expression.run_host_with_fault(backend, &mut each, inputs, &[], outputs) };
        ran.expect("a run").expect("machine code");
    });
    (changed, difference(&wanted, &found, &before))
}

pub fn tests() -> Vec<Test> {
    let test = Test::new("native::faults_are_found", || {
        let mut missed = Vec::new();
        for (name, expression, change) in faults() {
            for backend in BACKENDS.into_iter().filter(|backend| backend.is_available()) {
                let unchanged: Change = Box::new(|_| false);
                assert_eq!(run(backend, &expression, &unchanged), (0, None), "{name}, {backend:?}");
                let (changed, difference) = run(backend, &expression, &change);
                if changed == 0 || difference.is_none() {
                    missed.push(format!("{name}, {backend:?}: {changed} instructions changed"));
                }
            }
        }
        assert!(missed.is_empty(), "{}", missed.join("\n"));
        Ok(())
    });
    vec![test]
}
