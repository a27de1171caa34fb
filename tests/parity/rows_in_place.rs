//! Row programs whose output replaces their input: the one kernel in the interpreter, in several orders of its threads, and
//! the CPU, against a run with memory apart.

use selvedge::fuse::{Graph, HostInput, HostOutput, RowProgram};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same};
use super::harness;
use super::reductions::contiguous;
use super::row_runs::{as_ptx, on_device, on_host, try_on_host};
use super::rows::{PROGRAMS, Program, Rows, operands, program};
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

pub fn always() -> Vec<Test> {
    let test = |name: &str, run: fn()| {
        Test::new(format!("rows::in_place::{name}"), move || {
            run();
            Ok(())
        })
    };
    vec![
        test("every_program_and_dtype", programs),
        test("every_storage_of_a_row", storages),
        test("several_kernels_and_views", views),
        test("an_output_that_does_not_suit_is_an_error", errors),
    ]
}

/// Returns the first output that can replace the elements.
fn replacing(program: &RowProgram) -> Option<usize> {
    let suits = |&at: &usize| !program.is_per_group(at) && program.outputs()[at] == program.inputs()[0];
    (0..program.outputs().len()).find(suits)
}

/// Checks a program in place on the CPU and a device, and its kernel if `schedule` is not empty. False if no output suits.
fn check(given: Program, dtype: DType, rows: &Rows, capability: (i32, i32), schedule: &str) -> bool {
    let program = program(given, dtype);
    let Some(at) = replacing(&program) else { return false };
    for is_special in [false, true] {
        let (inputs, before) = operands(&program, given, rows, is_special);
        let mut wanted = before.clone();
        on_host(&program, &inputs, rows.axes, &mut wanted);
        // The elements before are where the output will be.
        let mut start = before;
        start[at] = inputs[0].clone();
        let what = format!("{} of {dtype} in {:?} in place", given.0, rows.elements);
        let same = |what: &str, found: &[Array]| assert_same(what, &wanted, found, &start);
        let mut found = start.clone();
        try_on_host(&program, &inputs, rows.axes, Some(at), &mut found).expect("a run on the CPU");
        same(&format!("{what} on the CPU"), &found);
        if let Ok(stream) = harness::device() {
            let mut found = start.clone();
            on_device(stream, &program, &inputs, rows.axes, Some(at), &mut found).expect("a run");
            same(&format!("{what} on the device"), &found);
        }
        if schedule.is_empty() {
            continue;
        }
        for seed in [None, Some(1), Some(2)] {
            let order = Schedule { resident: if seed.is_some() { 8 } else { 1 }, seed };
            let mut found = start.clone();
            let run = (&inputs[..], rows.axes, Some(at));
            let (plan, _) = as_ptx(&program, run, &mut found, (capability, order), &|text| text);
            assert!(plan.contains(schedule), "{plan}, not {schedule}");
            same(&format!("{what}, {plan}, order {seed:?}"), &found);
        }
    }
    true
}

fn programs() {
    let mut checked = 0;
    for given in PROGRAMS {
        for dtype in [DType::BF16, DType::F16, DType::F32, DType::F64] {
            for (rows, length) in [(5, 1), (37, 6), (9, 40), (3, 257)] {
                let rows = Rows::contiguous(rows, length);
                checked += usize::from(check(given, dtype, &rows, (9, 0), "one kernel"));
            }
        }
    }
    assert_eq!(checked, 9 * 4 * 4 + 2 * 4, "narrow_casts has an output in the dtype of f32 and f64 alone");
}

/// Registers, shared memory with copies of threads, of lines and through registers, and rows that each stage reads.
fn storages() {
    let [softmax, norm, cross_entropy] = [PROGRAMS[0], PROGRAMS[2], PROGRAMS[7]];
    for (given, dtype, rows, length, capability, schedule) in [
        (norm, DType::F32, 2, 4096, (9, 0), "a block of 4 warps for each row, in registers"),
        (norm, DType::F32, 3, 4097, (9, 0), "a block of 5 warps for each row, in shared memory"),
        (norm, DType::F64, 2, 5000, (9, 0), "in shared memory"),
        (cross_entropy, DType::BF16, 2, 9001, (9, 0), "in shared memory"),
        (
            softmax,
            DType::BF16,
            1,
            20001,
            (9, 0),
            "a cluster of 4 blocks of 5 warps for each row, in shared memory",
        ),
        (softmax, DType::BF16, 1, 20001, (7, 5), "a block of 10 warps for each row, in shared memory"),
        (softmax, DType::F64, 1, 30000, (7, 5), "that each stage reads"),
        (cross_entropy, DType::F64, 1, 20001, (7, 5), "that each stage reads"),
    ] {
        assert!(check(given, dtype, &Rows::contiguous(rows, length), capability, schedule));
    }
}

fn views() {
    let view = |layout: selvedge::Result<Layout>| layout.expect("a view");
    let apart = view(Layout::strided(&[3, 64], &[72, 1], 5));
    let columns = view(contiguous(&[40, 33]).transpose(0, 1));
    let flipped = view(contiguous(&[3, 50]).flip(&[1]));
    for (elements, schedule) in [(apart, "one kernel"), (flipped, "element by element"), (columns, "")] {
        let sizes = elements.shape();
        let rows = Rows { elements, written: elements, ..Rows::contiguous(sizes[0], sizes[1]) };
        for given in [PROGRAMS[0], PROGRAMS[2], PROGRAMS[7]] {
            for dtype in [DType::BF16, DType::F32] {
                assert!(check(given, dtype, &rows, (9, 0), schedule));
            }
        }
    }
}

fn errors() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let program = graph.row_program(&[x / x.sum_group(), x.sum_group(), x.sum_group() * x.cast(DType::F64)]);
    let program = program.expect("a program");
    let (square, column) = (contiguous(&[2, 2]), contiguous(&[2, 1]));
    let run = |program: &RowProgram, at: usize, columns: Layout| {
        let (mut one, mut sums, mut wide) = ([1f32; 8], [1f32; 4], [1f64; 4]);
        let all = [
            HostOutput::new(&mut one, square),
            HostOutput::new(&mut sums, columns),
            HostOutput::new(&mut wide, square),
        ];
        let mut all = all.map(|output| output.expect("an output"));
        let input = HostInput::output(at, &all[at.min(2)]);
        let count = program.outputs().len();
        program.run_host(&[input], &[], &[1], &mut all[..count]).map(|()| one)
    };
    assert_eq!(run(&program, 0, column).expect("a run")[..5], [0.5, 0.5, 0.5, 0.5, 1.0]);
    let error = run(&program, 2, column).expect_err("an output in another dtype").to_string();
    assert!(error.contains("wants f32, but found f64"), "{error}");
    for at in [1, 3] {
        let error = run(&program, at, column).expect_err("an unsuitable output").to_string();
        assert!(error.contains(&format!("an in-place input for output {at}")), "{error}");
        assert!(error.contains("a value per element, in the input's layout and dtype"), "{error}");
    }
    // Elements that overlap.
    let mut line = [1f32; 2];
    let expanded = contiguous(&[1, 2]).expand(square.shape()).expect("a view");
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let softmax = graph.row_program(&[x / x.sum_group()]).expect("a program");
    let output = HostOutput::new(&mut line, expanded).expect("an output");
    let input = HostInput::output(0, &output);
    let error = softmax.run_host(&[input], &[], &[1], &mut [output]).expect_err("overlapping elements");
    assert!(error.to_string().contains("do not overlap"), "{error}");
    assert_eq!(line, [1.0; 2]);
    // Sums over groups read elements after the outputs are written.
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let sums = graph.row_program(&[x / x.sum_group(), x.sum_over_groups()]).expect("a program");
    let error = run(&sums, 0, contiguous(&[1, 2])).expect_err("a sum over groups").to_string();
    assert!(error.contains("in-place input beside a sum over groups"), "{error}");
}
