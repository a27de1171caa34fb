//! Row programs whose stages share values of several arrays, in rows of one segment: a warp holds the values in shared
//! memory, and each array is read once.

use selvedge::fuse::{Expr, Graph, RowLaunches, RowProgram};
use selvedge::types::DType;

use super::arrays::{Array, assert_same};
use super::harness;
use super::reductions::{contiguous, plain};
use super::row_runs::{as_ptx, check_faults, on_device, on_host};
use super::texts;
use super::value::special;
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

const ROWS: usize = 5;
const SHARED: &str = "a warp for each row, in shared memory";
/// A multiprocessor of compute capability 7.5 has the shared memory for five rows of three arrays of f32.
const READ: &str = "a warp for each row, that each stage reads";
const HELD: &str = "a warp for each row, in registers";

type Outputs<'g> = Vec<Expr<'g>>;
/// A name, the number of arrays, and the outputs.
type Program = (&'static str, usize, for<'g> fn(&[Expr<'g>]) -> Outputs<'g>);

fn softmax<'g>(x: Expr<'g>) -> Expr<'g> {
    let powers = (x - x.max_group()).exp();
    powers / powers.sum_group()
}

/// Every stage reads the value of the arrays, and no stage but the first one reads these.
const OF_THREE: Program =
    ("of_three", 3, |x| vec![softmax(((x[0] + x[1]) * x[2] - x[0]) * x[1] + x[1] * x[2])]);
/// The last stage reads two arrays again, which are copied.
const AGAIN: Program = ("again", 2, |x| {
    let value = (x[0] + x[1]).gelu() * x[1];
    vec![softmax(value) * x[0] - x[1], value.sum_group()]
});
/// A long value of one array, which is computed once. Its text is too long for registers.
const LONG: Program = ("long", 1, |x| vec![softmax(x[0].gelu().gelu())]);
/// Two values that several stages read, one of which is kept until the last stage.
const TWO: Program = ("two", 4, |x| {
    let (left, right) = (x[0] * x[1] - x[2], x[2] * x[3] + x[0]);
    vec![softmax(left) + softmax(right) * left.sum_group(), right - right.mean_group()]
});
/// A sum of two arrays takes half of their registers.
const OF_TWO: Program = ("of_two", 2, |x| vec![softmax(x[0] + x[1])]);

fn program((_, count, outputs): Program, dtype: DType) -> RowProgram {
    let graph = Graph::new();
    let inputs: Vec<Expr<'_>> = (0..count).map(|_| graph.input(dtype)).collect();
    graph.row_program(&outputs(&inputs)).expect("a program")
}

fn operands(program: &RowProgram, length: usize, is_special: bool) -> (Vec<Array>, Vec<Array>) {
    let layout = contiguous(&[ROWS, length]);
    let inputs = program.inputs().iter().enumerate().map(|(at, &dtype)| {
        let values = if is_special && at == 0 { special(dtype) } else { plain(dtype) };
        Array::new(dtype, layout, &values, 3 + 2 * at)
    });
    let outputs = program.outputs().into_iter().enumerate().map(|(at, dtype)| {
        let layout = if program.is_per_group(at) { contiguous(&[ROWS, 1]) } else { layout };
        Array::new(dtype, layout, &special(dtype)[..1], 0)
    });
    (inputs.collect(), outputs.collect())
}

/// Checks the kernel against the CPU, and its schedule.
fn check(given: Program, dtype: DType, length: usize, capability: (i32, i32), schedule: &str) {
    let program = program(given, dtype);
    for is_special in [false, true] {
        let (inputs, before) = operands(&program, length, is_special);
        let mut on_cpu = before.clone();
        on_host(&program, &inputs, &[1], &mut on_cpu);
        if let Ok(stream) = harness::device() {
            let mut found = before.clone();
            on_device(stream, &program, &inputs, &[1], None, &mut found).expect("a run on the device");
            assert_same(&format!("{} of {dtype} on the device", given.0), &on_cpu, &found, &before);
        }
        for seed in [None, Some(1)] {
            let order = Schedule { resident: if seed.is_some() { 8 } else { 1 }, seed };
            let mut found = before.clone();
            let run = (&inputs[..], &[1][..], None);
            let (plan, text) = as_ptx(&program, run, &mut found, (capability, order), &|text| text);
            let what = format!("{} of {dtype} in rows of {length}, {capability:?}, {plan}", given.0);
            assert!(plan.contains(schedule), "{what}, not {schedule}");
            assert_same(&what, &on_cpu, &found, &before);
            texts::keep(&[text], !is_special && seed.is_none());
        }
    }
}

fn values() {
    for capability in [(9, 0), (7, 5)] {
        for dtype in [DType::F32, DType::BF16] {
            for length in [1024, 1000, 1001] {
                check(LONG, dtype, length, capability, SHARED);
                let read = capability < (8, 0) && dtype == DType::F32;
                check(AGAIN, dtype, length, capability, if read { READ } else { SHARED });
            }
        }
    }
    for (dtype, length) in [(DType::F32, 1024), (DType::F32, 1001), (DType::BF16, 1000), (DType::BF16, 1001)]
    {
        check(TWO, dtype, length, (9, 0), SHARED);
    }
    for (dtype, length) in [(DType::F32, 1024), (DType::F32, 769), (DType::F16, 1000), (DType::F64, 1024)] {
        check(OF_THREE, dtype, length, (9, 0), SHARED);
    }
    for length in [1024, 1001] {
        check(AGAIN, DType::F16, length, (9, 0), SHARED);
    }
    check(OF_TWO, DType::F32, 1024, (9, 0), HELD);
}

/// The schedule, the bytes of dynamic shared memory, and the most lines of the text. Each array is read once.
fn plans() {
    for (given, dtype, schedule, shared, most) in [
        (OF_THREE, DType::F32, SHARED, 8 * 4096, 380),
        (OF_THREE, DType::BF16, SHARED, 8 * 4096, 540),
        (OF_THREE, DType::F64, SHARED, 4 * 8192, 470),
        (LONG, DType::F32, SHARED, 8 * 4096, 760),
        (OF_TWO, DType::F32, HELD, 0, 600),
    ] {
        let program = program(given, dtype);
        let layout = contiguous(&[64, 1024]);
        let plan = program.explain(&vec![layout; given.1], &[1], &[layout], (9, 0)).expect("a plan");
        let what = format!("{} of {dtype}, {}", given.0, plan.schedule);
        assert!(plan.schedule.contains(schedule), "{what}");
        assert_eq!(plan.bytes_read(), given.1 * 64 * 1024 * dtype.size(), "{what}");
        let RowLaunches::Rows(launch) = &plan.kernels[0].launches else { panic!("{what}") };
        assert_eq!(launch.shared, shared, "{what}");
        let lines = launch.ptx.lines().count();
        assert!(lines < most, "{what}: {lines} lines");
    }
}

/// Injects faults into the text, which the comparison must find.
fn faults() {
    let program = program(OF_THREE, DType::F32);
    let (inputs, before) = operands(&program, 1024, false);
    let faults = [
        ("rounds that share their memory", ", 64, %", ", 32, %"),
        ("groups of a round that share their memory", ", 512;", ", 0;"),
        ("groups in turn that share their memory", ", 32;\nadd", ", 0;\nadd"),
        ("a group too few", ", 2;\n@%", ", 1;\n@%"),
        ("a round too few", ", 4;\n@%", ", 3;\n@%"),
    ];
    check_faults(&program, &inputs, &[1], &before, &faults);
}

/// Tests that always run.
pub fn always() -> Vec<Test> {
    let tests: [(&str, fn()); 3] = [
        ("values_of_several_arrays_are_computed_once", values),
        ("rows_of_several_arrays_read_each_once", plans),
        ("faults_of_rows_in_shared_memory_of_a_warp_are_found", faults),
    ];
    tests.map(|(name, run)| Test::of(format!("rows::{name}"), run)).into()
}
