//! Row programs over strided groups, such as the columns of a matrix or the channels of a pixel: tiles of neighbouring groups.

use selvedge::fuse::Graph;
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same};
use super::reductions::{contiguous, plain};
use super::row_runs::{as_ptx, check_faults, on_host};
use super::rows::{PROGRAMS, Program, Rows, check_on, operands, program};
use super::texts;
use super::value::special;
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const LENGTHS: [usize; 10] = [1, 2, 31, 32, 33, 127, 128, 129, 1000, 4097];
const COLUMNS: [usize; 5] = [1, 7, 32, 33, 1000];
/// The most elements of a case, for the sake of the interpreter.
const MAX_ELEMENTS: usize = 40_000;
/// The longest column of one block.
const ONE_BLOCK: usize = 1024;
const NEW: &[(i32, i32)] = &[(9, 0)];
const NEW_AND_OLD: &[(i32, i32)] = &[(9, 0), (7, 5)];

/// Softmax, layer norm, and a program of several reductions, an index and outputs of several dtypes.
const OF_COLUMNS: [Program; 3] = [PROGRAMS[0], PROGRAMS[2], PROGRAMS[5]];

fn view(layout: selvedge::Result<Layout>) -> Layout {
    layout.expect("a view")
}

/// The columns of a matrix.
fn columns(length: usize, columns: usize) -> Rows {
    let elements = contiguous(&[length, columns]);
    Rows {
        elements,
        written: elements,
        axes: &[0],
        groups: contiguous(&[1, columns]),
        along: contiguous(&[length, 1]),
    }
}

/// The channels of each pixel of images of shape (N, C, H, W).
fn channels([n, c, h, w]: [usize; 4]) -> Rows {
    let elements = contiguous(&[n, c, h, w]);
    Rows {
        elements,
        written: elements,
        axes: &[1],
        groups: contiguous(&[n, 1, h, w]),
        along: contiguous(&[c, 1, 1]),
    }
}

/// Returns the words of the schedule of so many columns, if all strides are even.
fn threads_for(dtype: DType, count: usize) -> &'static str {
    match dtype.size() == 2 && count.is_multiple_of(2) {
        true => "for each two columns, in registers",
        false => "for each column, in registers",
    }
}

fn capabilities(length: usize) -> &'static [(i32, i32)] {
    // Longer columns take clusters.
    if length > ONE_BLOCK { NEW } else { NEW_AND_OLD }
}

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for given in OF_COLUMNS {
        for dtype in FLOATS {
            for (length, count) in LENGTHS.iter().flat_map(|length| COLUMNS.map(|count| (*length, count))) {
                if length * count > MAX_ELEMENTS {
                    continue;
                }
                let name = format!("rows::columns::{}::{dtype}::{count}_of_{length}", given.0);
                tests.push(Test::new(name, move || {
                    let rows = columns(length, count);
                    let schedule = match (length, count) {
                        (1, _) | (_, 1) => "",
                        (length, _) if length > ONE_BLOCK => "a cluster of 5 blocks",
                        _ => threads_for(dtype, count),
                    };
                    let of = if count > 1 { capabilities(length) } else { NEW };
                    check_on(given, dtype, &rows, schedule, &[false, true], of);
                    Ok(())
                }));
            }
        }
    }
    tests
}

pub fn always() -> Vec<Test> {
    let one = |name: &str, run: fn()| {
        Test::new(format!("rows::columns::{name}"), move || {
            run();
            Ok(())
        })
    };
    vec![
        one("schedules", schedules),
        one("two_columns_a_thread", pairs),
        one("operands_of_several_dtypes", mixed),
        one("two_blocks_share_a_segment", parts),
        one("layouts", layouts),
        one("faults_are_found", faults),
        one("long_columns_without_clusters_run_as_several_kernels", old_devices),
    ]
}

fn schedules() {
    let (softmax, norm, several) = (PROGRAMS[0], PROGRAMS[2], PROGRAMS[5]);
    for (given, dtype, length, count, schedule) in [
        (softmax, DType::F32, 3, 500, "1 threads for each column, in registers; tiles of 256 columns"),
        (softmax, DType::F32, 40, 70, "2 threads for each column, in registers; tiles of 128 columns"),
        (softmax, DType::F32, 256, 70, "8 threads for each column, in registers; tiles of 32 columns"),
        (softmax, DType::BF16, 256, 71, "8 threads for each column, in registers; tiles of 32 columns"),
        (softmax, DType::BF16, 256, 70, "16 threads for each two columns, in registers; tiles of 32 columns"),
        (softmax, DType::F32, 1024, 40, "32 threads for each column, in registers; tiles of 16 columns"),
        (softmax, DType::BF16, 1024, 40, "a cluster of 2 blocks for each tile of 32 columns"),
        (norm, DType::F64, 1024, 20, "for each column, in registers; tiles of 8 columns"),
        (several, DType::F32, 700, 20, "for each column, in registers"),
        (softmax, DType::F32, 2050, 33, "a cluster of 3 blocks for each tile of 16 columns"),
        (norm, DType::BF16, 8192, 4, "a cluster of 8 blocks for each tile of 16 columns"),
    ] {
        check_on(given, dtype, &columns(length, count), schedule, &[false], NEW);
    }
    // Without clusters, narrower tiles.
    let narrow = "64 threads for each two columns, in registers; tiles of 16 columns";
    let found = explained(DType::BF16, &columns(1024, 40).elements, (8, 0));
    assert!(found.contains(narrow), "{found}");
}

/// Returns the schedule of a softmax over the first axis.
fn explained(dtype: DType, elements: &Layout, capability: (i32, i32)) -> String {
    let program = program(PROGRAMS[0], dtype);
    program.explain(&[*elements], &[0], &[*elements], capability).expect("a plan").schedule
}

/// A thread takes two columns if accesses to both are aligned.
fn pairs() {
    let strided = |sizes: &[usize], strides: &[isize], at| view(Layout::strided(sizes, strides, at));
    let (two, one) = ("for each two columns, in registers", "for each column, in registers");
    let of = |elements, written| Rows { elements, written, ..columns(50, 20) };
    let even = contiguous(&[50, 20]);
    let odd_strides = strided(&[50, 20], &[23, 1], 0);
    let transposed = view(contiguous(&[20, 50]).transpose(0, 1));
    for (rows, schedule) in [
        (columns(50, 20), two),
        (columns(50, 21), one),
        (of(strided(&[50, 20], &[24, 1], 2), even), two),
        (of(view(even.flip(&[0])), even), two),
        // Two elements at an odd address, as input and as output.
        (of(strided(&[50, 20], &[24, 1], 1), even), one),
        (of(even, strided(&[50, 20], &[24, 1], 1)), one),
        (of(odd_strides, even), one),
        (of(even, odd_strides), one),
        (of(even, transposed), one),
        // The planes of images.
        (channels([2, 19, 4, 7]), two),
        (channels([2, 19, 5, 7]), one),
        // Rows of an odd number of images, and of groups of two axes around one.
        (channels([3, 40, 2, 1]), two),
        (
            Rows {
                elements: contiguous(&[5, 2, 4, 8]),
                written: contiguous(&[5, 2, 4, 8]),
                axes: &[0, 2],
                groups: contiguous(&[1, 2, 1, 8]),
                along: contiguous(&[5, 1, 4, 1]),
            },
            two,
        ),
    ] {
        for given in OF_COLUMNS {
            for dtype in [DType::F16, DType::BF16] {
                check_on(given, dtype, &rows, schedule, &[false, true], NEW_AND_OLD);
            }
        }
    }
    // Wider elements have a column a thread.
    check_on(PROGRAMS[0], DType::F32, &columns(50, 20), one, &[false], NEW);
}

/// Columns of 16 bits with weights of f32 along them and for each of them, and outputs of other dtypes; in one block, in a
/// cluster, and in one whose blocks share segments.
fn mixed() {
    for dtype in [DType::F16, DType::BF16] {
        let graph = Graph::new();
        let x = graph.input(dtype);
        let [weight, bias, other] = [DType::F32, DType::F32, dtype].map(|dtype| graph.input(dtype));
        let centred = x - x.mean_group();
        let scaled = centred * weight + bias * other;
        let outputs =
            [scaled, scaled.cast(dtype), x.gt(bias), x.argmax_group(), centred.square().mean_group()];
        let program = graph.row_program(&outputs).expect("a program");
        for (length, count) in [(33, 34), (700, 20), (2050, 6), (4097, 4)] {
            let (elements, groups) = (contiguous(&[length, count]), contiguous(&[1, count]));
            let layouts = [elements, contiguous(&[length, 1]), groups, elements];
            let inputs: Vec<Array> = program
                .inputs()
                .iter()
                .zip(layouts)
                .enumerate()
                .map(|(at, (&dtype, layout))| Array::new(dtype, layout, &plain(dtype), 3 + at))
                .collect();
            let before: Vec<Array> = program
                .outputs()
                .into_iter()
                .enumerate()
                .map(|(at, dtype)| {
                    let layout = if program.is_per_group(at) { groups } else { elements };
                    Array::new(dtype, layout, &special(dtype)[..1], 0)
                })
                .collect();
            let mut on_cpu = before.clone();
            on_host(&program, &inputs, &[0], &mut on_cpu);
            for order in [Schedule::IN_ORDER, Schedule { resident: 1, seed: Some(3) }] {
                let mut found = before.clone();
                let (plan, text) =
                    as_ptx(&program, (&inputs, &[0], None), &mut found, ((9, 0), order), &|text| text);
                assert!(plan.contains("for each two columns, in registers"), "{plan}");
                assert_same(&format!("{dtype}, {count} of {length}, {plan}"), &on_cpu, &found, &before);
                texts::keep(&[text], true);
            }
        }
    }
}

/// Lengths around half a segment, a segment and three of them.
fn parts() {
    for given in OF_COLUMNS {
        for dtype in [DType::BF16, DType::F16] {
            for (length, blocks) in [(513, 2), (1023, 2), (1024, 2), (1025, 4), (3073, 8)] {
                let schedule = format!("a cluster of {blocks} blocks");
                check_on(given, dtype, &columns(length, 6), &schedule, &[true], NEW);
            }
        }
    }
}

/// Each element is read once, whatever the layout.
fn layouts() {
    let matrix = |rows: Rows| {
        for given in OF_COLUMNS {
            for dtype in [DType::BF16, DType::F32] {
                check_on(given, dtype, &rows, ", in registers", &[true], capabilities(0));
            }
        }
    };
    let strided = |sizes: &[usize], strides: &[isize], at| view(Layout::strided(sizes, strides, at));
    let turned = view(contiguous(&[20, 50]).transpose(0, 1));
    matrix(channels([2, 19, 5, 7]));
    // Rows a gap apart, in reverse order, and outputs in another order.
    matrix(Rows { elements: strided(&[50, 20], &[23, 1], 3), ..columns(50, 20) });
    matrix(Rows { elements: view(contiguous(&[50, 20]).flip(&[0])), ..columns(50, 20) });
    matrix(Rows { written: turned, ..columns(50, 20) });
    // The last axis of a transposed matrix.
    matrix(Rows {
        elements: turned,
        written: turned,
        axes: &[1],
        groups: contiguous(&[50, 1]),
        along: contiguous(&[20]),
    });
    // Groups of two axes around one.
    matrix(Rows {
        elements: contiguous(&[5, 2, 4, 9]),
        written: contiguous(&[5, 2, 4, 9]),
        axes: &[0, 2],
        groups: contiguous(&[1, 2, 1, 9]),
        along: contiguous(&[5, 1, 4, 1]),
    });
    let program = program(PROGRAMS[0], DType::F32);
    let elements = contiguous(&[4096, 64]);
    let plan = program.explain(&[elements], &[0], &[elements], (9, 0)).expect("a plan");
    assert_eq!(plan.bytes_read(), 4 * elements.count(), "{}", plan.schedule);
}

/// Injects faults into the text, which the comparison must find.
fn faults() {
    let rows = columns(3000, 6);
    let program = program(PROGRAMS[2], DType::BF16);
    let (inputs, before) = operands(&program, PROGRAMS[2], &rows, false);
    let faults = [
        ("another identity", "0f80000000", "0f3F800000"),
        ("an element past the end", "setp.lt.s32", "setp.le.s32"),
        ("another lane", "+128]", "+256]"),
        ("another part of a segment", "and.b32 %r11, %r9, 1", "and.b32 %r11, %r9, 0"),
    ];
    check_faults(&program, &inputs, rows.axes, &before, &faults);
}

fn old_devices() {
    let softmax = program(PROGRAMS[0], DType::F32);
    let layout = contiguous(&[1025, 64]);
    let plan = softmax.explain(&[layout], &[0], &[layout], (8, 0)).expect("a plan");
    assert!(plan.schedule.contains("the device or its driver has no clusters"), "{}", plan.schedule);
    assert_eq!(plan.kernels.len(), 3);
}
