//! Sums of squares that leave the range: reductions and row programs on the CPU against the same numbers in the range, and their
//! kernels in the interpreter against the CPU bit for bit, for every schedule, and on a device if there is one.

use selvedge::fuse::{Expr, Fold, Graph, Reduction};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same, offsets};
use super::harness::{self, run_reduction};
use super::reductions::{contiguous, on_host as reduce_on_host, plain};
use super::row_runs::{as_ptx, on_device, on_host};
use super::rows::Rows;
use super::texts;
use super::value::{Value, read, special, write};
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

/// The change of the elements of one group after another.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Times(i32),
    Zero,
    /// The first element.
    First(f64),
}

/// The changes of groups: exponents of factors for f32 and bf16, and for f64.
fn changes(dtype: DType) -> [Change; 7] {
    let (large, small) = if dtype == DType::F64 { (600, -700) } else { (100, -110) };
    [
        Change::Times(0),
        Change::Times(large),
        Change::Times(small),
        Change::Zero,
        Change::First(f64::INFINITY),
        Change::Times(0),
        Change::First(f64::NAN),
    ]
}

/// Changes the elements of groups; `group` is that of an element by its place in row-major order.
pub fn change(array: &mut Array, group: impl Fn(usize) -> usize) {
    let (dtype, size, changes) = (array.dtype, array.dtype.size(), changes(array.dtype));
    let mut seen = Vec::new();
    for (place, offset) in offsets(&array.layout).into_iter().enumerate() {
        let bytes = &mut array.bytes[offset * size..(offset + 1) * size];
        let group = group(place);
        let is_first = !seen.contains(&group);
        if is_first {
            seen.push(group);
        }
        let Value::Real(x) = read(dtype, bytes) else { panic!("elements of {dtype}") };
        let changed = match changes[group % changes.len()] {
            Change::Times(exponent) => x * 2f64.powi(exponent),
            Change::Zero => 0.0,
            Change::First(first) if is_first => first,
            Change::First(_) => x,
        };
        write(dtype, Value::Real(changed), bytes);
    }
}

fn squares(dtype: DType) -> Reduction {
    let graph = Graph::new();
    graph.reduction(Fold::SumOfSquares, graph.input(dtype)).expect("a reduction")
}

/// Sums of squares of plain elements have the bits of `sum(x²)` and a factor of 1, whatever the layout; those of changed groups
/// agree with the kernels, and their roots with f64.
fn reductions() {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for (input, output) in [
            (contiguous(&[9, 3]), contiguous(&[9, 1])),
            (contiguous(&[9, 40]), contiguous(&[9, 1])),
            (contiguous(&[9, 300]), contiguous(&[9, 1])),
            (contiguous(&[9, 1025]), contiguous(&[9, 1])),
            (contiguous(&[9, 5000]), contiguous(&[9, 1])),
            (contiguous(&[9, 17_000]), contiguous(&[9, 1])),
            (contiguous(&[3, 9]), contiguous(&[1, 9])),
            (contiguous(&[300, 16]), contiguous(&[1, 16])),
            (contiguous(&[2050, 9]), contiguous(&[1, 9])),
            (contiguous(&[2050, 8]), contiguous(&[1, 8])),
            (contiguous(&[5000, 36]), contiguous(&[1, 36])),
        ] {
            check_reduction(dtype, input, output);
        }
    }
}

fn check_reduction(dtype: DType, input: Layout, output: Layout) {
    let count = input.shape()[1];
    let is_row = output.shape()[1] == 1;
    let group = |place: usize| if is_row { place / count } else { place % count };
    let groups = output.count();
    let (with_factor, usual) = (squares(dtype), {
        let graph = Graph::new();
        let accumulator = if dtype == DType::F64 { dtype } else { DType::F32 };
        graph.reduction(Fold::Sum, graph.input(dtype).cast(accumulator).square()).expect("a reduction")
    });
    let mut x = Array::new(dtype, input, &plain(dtype), 3);
    let original = x.clone();
    change(&mut x, group);
    let new = |dtype: DType| Array::new(dtype, output, &[Value::Real(7.0)], 0);
    let (mut found, mut sums) = (new(DType::F32), new(usual.output()));
    found.dtype = with_factor.output();
    found.bytes = vec![0xA5; (output.end() + 3) * found.dtype.size()];
    let before = found.clone();
    reduce_on_host(&with_factor, std::slice::from_ref(&x), &[], &mut found);
    reduce_on_host(&usual, std::slice::from_ref(&original), &[], &mut sums);
    let what = format!("squares of {dtype} in {input:?}");
    let (found_values, wanted) = (found.elements(&output), sums.elements(&output));
    for at in 0..groups {
        let (Value::Complex(sum, factor), Value::Real(usual)) = (found_values[at], wanted[at]) else {
            panic!("{what}");
        };
        match changes(dtype)[at % 7] {
            Change::Times(0) => assert_eq!((sum, factor), (usual, 1.0), "{what}"),
            Change::Times(exponent) => {
                assert!(factor != 1.0 && (factor > 1.0) == (exponent < 0), "{what}: {factor}");
                // A power of two changes no digit but those of elements that it takes out of the range of bf16 or f32.
                let root = sum.sqrt() / factor;
                let wanted = usual.sqrt() * 2f64.powi(exponent);
                assert!((root / wanted - 1.0).abs() < 1e-6, "{what}: {root:e}, not {wanted:e}");
            }
            Change::Zero => assert_eq!(sum, 0.0, "{what}"),
            Change::First(first) if first.is_nan() => assert!(sum.is_nan() && factor == 1.0, "{what}"),
            Change::First(_) => assert_eq!(sum, f64::INFINITY, "{what}"),
        }
    }
    for (capability, schedule) in
        [((9, 0), Schedule::IN_ORDER), ((7, 5), Schedule { resident: 3, seed: Some(5) })]
    {
        let plan = with_factor.explain(&[input], &output, capability).expect("a plan");
        let mut on_device = before.clone();
        let texts = run_reduction(plan, std::slice::from_ref(&x), &mut on_device, 0xA5, schedule);
        texts::keep(&texts, input.count() < 20_000);
        assert_same(&what, std::slice::from_ref(&found), &[on_device], std::slice::from_ref(&before));
    }
}

/// A second pass loops over the blocks of the first one.
fn blocks() {
    let (input, output) = (contiguous(&[70_000]), contiguous(&[1]));
    let mut x = Array::new(DType::F32, input, &plain(DType::F32), 3);
    change(&mut x, |_| 1);
    let with_factor = squares(DType::F32);
    let mut on_cpu = Array::new(DType::F32, output, &[Value::Real(7.0)], 0);
    on_cpu.dtype = with_factor.output();
    on_cpu.bytes = vec![0xA5; 4 * 8];
    let before = on_cpu.clone();
    reduce_on_host(&with_factor, std::slice::from_ref(&x), &[], &mut on_cpu);
    let mut plan = with_factor.explain(&[input], &output, (9, 0)).expect("a plan");
    assert_eq!(plan.launches.len(), 4);
    let second = &mut plan.launches[2];
    assert!(second.blocks > 2, "{} blocks", second.blocks);
    second.blocks = 2;
    let step: Vec<&str> =
        second.ptx.lines().filter(|line| line.contains("add.u32") && line.ends_with(" 1024;")).collect();
    assert_eq!(step.len(), 1, "{}", second.ptx);
    second.ptx = second.ptx.replace(step[0], &step[0].replace(" 1024;", " 2;"));
    let mut found = before.clone();
    run_reduction(plan, std::slice::from_ref(&x), &mut found, 0xA5, Schedule::IN_ORDER);
    assert_same("fewer blocks", std::slice::from_ref(&on_cpu), &[found], std::slice::from_ref(&before));
}

/// Squares of the elements in the first stage, and of deviations in the second one.
fn outputs<'g>(x: Expr<'g>, weight: Expr<'g>) -> Vec<Expr<'g>> {
    let (sum, factor) = x.sum_of_squares_group();
    let centred = x - x.mean_group();
    let (mean, of_centred) = centred.mean_of_squares_group();
    vec![
        (x / (sum.sqrt() / factor) * weight).cast(x.dtype()),
        (centred * mean.rsqrt() * of_centred).cast(x.dtype()),
        sum,
        factor,
        mean,
        x.max_group(),
    ]
}

/// Squares in the only stage.
fn norm<'g>(x: Expr<'g>, weight: Expr<'g>) -> Vec<Expr<'g>> {
    let (sum, factor) = x.sum_of_squares_group();
    vec![(x / (sum.sqrt() / factor) * weight).cast(x.dtype()), factor]
}

type Function = for<'g> fn(Expr<'g>, Expr<'g>) -> Vec<Expr<'g>>;

/// Checks a program on changed rows of a layout: the kernel against the CPU.
fn check(function: Function, dtype: DType, rows: &Rows, group: &dyn Fn(usize) -> usize, schedule: &str) {
    let graph = Graph::new();
    let (x, weight) = (graph.input(dtype), graph.input(dtype));
    let program = graph.row_program(&function(x, weight)).expect("a program");
    let mut x = Array::new(dtype, rows.elements, &plain(dtype), 3);
    change(&mut x, group);
    let inputs = vec![x, Array::new(dtype, rows.along, &plain(dtype), 5)];
    let outputs = program.outputs().into_iter().enumerate().map(|(at, dtype)| {
        let layout = if program.is_per_group(at) { rows.groups } else { rows.written };
        Array::new(dtype, layout, &special(dtype)[..1], 0)
    });
    let before: Vec<Array> = outputs.collect();
    let mut on_cpu = before.clone();
    on_host(&program, &inputs, rows.axes, &mut on_cpu);
    if let Ok(stream) = harness::device() {
        let mut found = before.clone();
        on_device(stream, &program, &inputs, rows.axes, None, &mut found).expect("a run on the device");
        assert_same(&format!("squares of {dtype} on the device"), &on_cpu, &found, &before);
    }
    let mut found = before.clone();
    let order = Schedule { resident: 1, seed: schedule.contains("cluster").then_some(3) };
    let (plan, text) =
        as_ptx(&program, (&inputs, rows.axes, None), &mut found, ((9, 0), order), &|text| text);
    assert!(plan.contains(schedule), "{plan}, not {schedule}");
    texts::keep(&[text], rows.elements.count() < 10_000);
    assert_same(&format!("squares of {dtype} in {:?}, {plan}", rows.elements), &on_cpu, &found, &before);
}

fn rows() {
    for (dtype, length, schedule) in [
        (DType::F32, 4, ""),
        (DType::F32, 33, ""),
        (DType::BF16, 33, ""),
        (DType::F64, 40, ""),
        (DType::F32, 256, ""),
        (DType::F32, 1000, ""),
        (DType::BF16, 1001, ""),
        (DType::F32, 1025, ""),
        (DType::F64, 2050, ""),
        (DType::BF16, 4097, ""),
    ] {
        for function in [outputs as Function, norm] {
            check(function, dtype, &Rows::contiguous(9, length), &|place| place / length, schedule);
        }
    }
}

fn long_rows() {
    for (dtype, length, schedule) in
        [(DType::F32, 33_792, "a cluster of 4 blocks"), (DType::BF16, 50_257, "a block of")]
    {
        // Few rows run as several kernels. The first one has a factor.
        let rows = if schedule.starts_with("a block") { 16 } else { 8 };
        check(norm, dtype, &Rows::contiguous(rows, length), &|place| place / length + 1, schedule);
    }
}

fn columns() {
    for (dtype, length, count, schedule) in [
        (DType::F32, 3, 50, "for each column"),
        (DType::F32, 256, 70, "for each column"),
        (DType::BF16, 256, 70, "for each two columns"),
        (DType::BF16, 1024, 40, "a cluster of 2 blocks"),
        (DType::F32, 2050, 33, "a cluster of 3 blocks"),
    ] {
        let elements = contiguous(&[length, count]);
        let rows = Rows {
            elements,
            written: elements,
            axes: &[0],
            groups: contiguous(&[1, count]),
            along: contiguous(&[length, 1]),
        };
        for function in [outputs as Function, norm] {
            check(function, dtype, &rows, &|place| place % count, schedule);
        }
    }
}

pub fn tests() -> Vec<Test> {
    let one = |name: &str, run: fn()| {
        Test::new(format!("squares::{name}"), move || {
            run();
            Ok(())
        })
    };
    vec![
        one("reductions_have_the_bits_of_the_cpu", reductions),
        one("a_second_pass_loops_over_blocks", blocks),
        one("rows_have_the_bits_of_the_cpu", rows),
        one("long_rows_have_the_bits_of_the_cpu", long_rows),
        one("columns_have_the_bits_of_the_cpu", columns),
    ]
}
