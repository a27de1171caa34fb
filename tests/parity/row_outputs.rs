//! 16-bit outputs of long rows that begin anywhere: shared memory holds them, and warps copy them by whole lines.

use selvedge::fuse::{Expr, Graph, RowLaunches, RowProgram};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same};
use super::harness;
use super::reductions::{contiguous, plain};
use super::row_runs::{as_ptx, check_faults, on_device, on_host};
use super::texts;
use super::value::special;
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

const ROWS: usize = 2;

/// Rows of so many elements, each `gap` elements behind the end of the previous one, from element `start` of the memory on.
fn layout(length: usize, start: usize, gap: usize) -> Layout {
    let pitch = (length + gap) as isize;
    Layout::strided(&[ROWS, length], &[pitch, 1], start).expect("a layout")
}

/// A softmax, twice the elements minus their mean in another dtype, and a test of 16 bits.
fn outputs<'g>(x: Expr<'g>, other: DType) -> Vec<Expr<'g>> {
    let powers = (x - x.max_group()).exp();
    let centred = (x - x.mean_group()) * 2.0;
    vec![powers / powers.sum_group(), centred.cast(other), x.gt(0.5).cast(DType::I16)]
}

fn program(dtype: DType, other: DType) -> RowProgram {
    let graph = Graph::new();
    graph.row_program(&outputs(graph.input(dtype), other)).expect("a program")
}

/// The elements minus their mean: the last stage reads them again.
fn norm(dtype: DType) -> RowProgram {
    let graph = Graph::new();
    let x = graph.input(dtype);
    graph.row_program(&[x - x.mean_group()]).expect("a program")
}

/// Checks a program with these layouts of the input and of all outputs; `replaced` is the output that has the input's memory.
/// Returns the text.
fn check(program: &RowProgram, input: Layout, output: Layout, replaced: Option<usize>) -> String {
    let dtype = program.inputs()[0];
    let mut kept = String::new();
    for values in [plain(dtype), special(dtype)] {
        let inputs = [Array::new(dtype, input, &values, 3)];
        let before = program.outputs().into_iter().enumerate().map(|(at, of)| match replaced {
            Some(place) if place == at => inputs[0].clone(),
            _ => Array::new(of, output, &special(of)[..1], 0),
        });
        let before: Vec<Array> = before.collect();
        let mut on_cpu = before.clone();
        on_host(program, &inputs, &[1], &mut on_cpu);
        for seed in [None, Some(5)] {
            let mut found = before.clone();
            let order = Schedule { resident: if seed.is_some() { 8 } else { 1 }, seed };
            let run = (&inputs[..], &[1][..], replaced);
            let (plan, text) = as_ptx(program, run, &mut found, ((9, 0), order), &|text| text);
            let what = format!("{dtype} in {input:?} to {output:?}, {plan}");
            assert!(plan.contains("in shared memory"), "{what}");
            assert!(text.contains("st.global.v4.b32"), "{what}");
            assert_same(&what, &on_cpu, &found, &before);
            kept = text;
        }
        if let Ok(stream) = harness::device() {
            let mut found = before.clone();
            on_device(stream, program, &inputs, &[1], replaced, &mut found).expect("a run on the device");
            assert_same(
                &format!("{dtype} in {input:?} to {output:?} on the device"),
                &on_cpu,
                &found,
                &before,
            );
        }
    }
    kept
}

/// Every place of a row's first element in a line, lengths around whole lines and segments, and clusters.
fn places() {
    for dtype in [DType::BF16, DType::F16] {
        for length in [2049, 2055, 2057, 3071, 3073, 5001, 20001, 50257] {
            let text = check(&program(dtype, DType::F32), layout(length, 0, 0), layout(length, 0, 0), None);
            texts::keep(&[text], dtype == DType::BF16);
        }
    }
    for (start, gap) in (0..8).zip([1, 0, 2, 5, 3, 7, 4, 6]) {
        for length in [2051, 3073] {
            // The input and the outputs begin at different places, or at the same ones.
            check(&program(DType::BF16, DType::BF16), layout(length, 1, 2), layout(length, start, gap), None);
            check(&norm(DType::BF16), layout(length, start, gap), layout(length, start, gap), Some(0));
            check(&norm(DType::F16), layout(length, start, gap), layout(length, start + 8, gap), None);
        }
    }
    // Elements of 32 bits.
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let narrowed = graph.row_program(&[(x - x.mean_group()).cast(DType::BF16)]).expect("a program");
    check(&narrowed, contiguous(&[ROWS, 3001]), contiguous(&[ROWS, 3001]), None);
}

/// Short rows, other outputs, and devices without asynchronous copies.
fn others() {
    for (dtype, capability, length) in [
        (DType::BF16, (9, 0), 1001),
        (DType::BF16, (9, 0), 1501),
        (DType::F32, (9, 0), 3001),
        (DType::BF16, (7, 5), 3001),
    ] {
        let layout = contiguous(&[ROWS, length]);
        let plan = norm(dtype).explain(&[layout], &[1], &[layout], capability).expect("a plan");
        let RowLaunches::Rows(launch) = &plan.kernels[0].launches else { panic!("{}", plan.schedule) };
        assert!(!launch.ptx.contains("st.global.v4.b32"), "{}", plan.schedule);
    }
}

/// Faults of the copies.
fn faults() {
    let program = norm(DType::BF16);
    let layout = layout(3001, 3, 2);
    let inputs = [Array::new(DType::BF16, layout, &plain(DType::BF16), 3)];
    let before = [Array::new(DType::BF16, layout, &special(DType::BF16)[..1], 0)];
    let faults = [
        ("a line too few", "st.global.v4.b32", "ld.global.v4.b32"),
        ("elements of a line that are left out", "@%p", "@!%p"),
        ("a last line that begins later", ", -16;\nadd.u32", ", -8;\nadd.u32"),
        ("a first line of seven elements", "setp.lt.u32", "setp.le.u32"),
    ];
    check_faults(&program, &inputs, &[1], &before, &faults);
}

pub fn tests() -> Vec<Test> {
    let tests: [(&str, fn()); 3] = [
        ("narrow_outputs_leave_in_lines", places),
        ("other_outputs_are_stored_by_threads", others),
        ("faults_of_narrow_outputs_are_found", faults),
    ];
    tests.map(|(name, run)| Test::of(format!("rows::{name}"), run)).into()
}
