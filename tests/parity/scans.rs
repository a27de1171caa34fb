//! Scans: each fold, for each dtype, length and layout, on the CPU against the documented order, and the
//! kernels' texts in the interpreter against the CPU.

use selvedge::fuse::{Fold, Graph, HostInput, HostOutput, Scan};
use selvedge::types::{DType, Layout, Slice};

use super::arrays::{Array, aligned, assert_same};
use super::harness::run_reduction;
use super::reduced::{self, Item};
use super::reductions::{contiguous, dtypes, plain};
use super::texts;
use super::value::{Value, nearest, read, same, special, write};
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

const FOLDS: [Fold; 4] = [Fold::Sum, Fold::Product, Fold::Minimum, Fold::Maximum];

/// A name, an input, an output and the axis.
type Case = (&'static str, Layout, Layout, usize);

fn cases() -> Vec<Case> {
    let whole = |name, sizes: &[usize], axis| (name, contiguous(sizes), contiguous(sizes), axis);
    let view = |layout: selvedge::Result<Layout>| layout.expect("a view");
    let mut cases = vec![
        whole("row", &[1300], 0),
        whole("rows_of_4", &[70, 4], 1),
        whole("rows_of_3", &[300, 3], 1),
        whole("rows_of_100", &[5, 100], 1),
        whole("rows_of_260", &[3, 260], 1),
        whole("rows_odd", &[3, 1025], 1),
        whole("columns", &[130, 6], 0),
        whole("middle", &[2, 40, 3], 1),
        whole("one_element", &[1, 1], 1),
        whole("rows_of_1", &[40, 1], 1),
        whole("no_rows", &[0, 5], 1),
        whole("empty_rows", &[5, 0], 1),
    ];
    let matrix = contiguous(&[40, 33]);
    cases.push(("transposed", view(matrix.transpose(0, 1)), contiguous(&[33, 40]), 1));
    cases.push(("backwards", view(contiguous(&[4, 64]).flip(&[1])), contiguous(&[4, 64]), 1));
    let stepped = view(contiguous(&[9, 80]).slice(1, Slice::from(1..).step(2)));
    cases.push(("stepped", stepped, contiguous(&[9, 40]), 1));
    let misaligned = Layout::strided(&[5, 64], &[64, 1], 1).expect("a layout");
    cases.push(("misaligned", misaligned, contiguous(&[5, 64]), 1));
    cases.push(("misaligned_output", contiguous(&[5, 64]), misaligned, 1));
    cases.push((
        "broadcast",
        view(contiguous(&[6, 1]).expand(contiguous(&[6, 50]).shape())),
        contiguous(&[6, 50]),
        1,
    ));
    cases
}

fn scan(fold: Fold, dtype: DType) -> Scan {
    let graph = Graph::new();
    graph.scan(fold, graph.input(dtype)).expect("a scan")
}

fn on_host(scan: &Scan, input: &Array, output: &mut Array, axis: usize) {
    let (source, mut target) = (aligned(&input.bytes), aligned(&output.bytes));
    let bytes = &bytemuck::cast_slice(&source)[..input.bytes.len()];
    let from = HostInput::of_bytes(input.dtype, bytes, input.layout).expect("an input");
    let length = output.bytes.len();
    let bytes = &mut bytemuck::cast_slice_mut(&mut target)[..length];
    let mut to = HostOutput::of_bytes(output.dtype, bytes, output.layout).expect("an output");
    scan.run_host(&[from], &[], &mut to, axis).expect("a run on the CPU");
    output.bytes.copy_from_slice(&bytemuck::cast_slice(&target)[..length]);
}

fn as_ptx(scan: &Scan, input: &Array, output: &mut Array, axis: usize, schedule: Schedule) -> Vec<String> {
    let explanation = scan.explain(&[input.layout], &output.layout, axis, (9, 0)).expect("a plan");
    run_reduction(explanation, std::slice::from_ref(input), output, 0, schedule)
}

/// Bytes of a tile's values in the dtype that is folded.
const TILE_BYTES: usize = 16 << 10;
/// Tiles of a group.
const GROUP: usize = 512;

/// Computes the scan of a row in the documented order.
fn reference(fold: Fold, dtype: DType, row: &[Value]) -> Vec<Value> {
    let to = reduced::accumulator(fold, dtype);
    let both = |left: Option<Item>, right: Option<Item>| match (left, right) {
        (Some(left), Some(right)) => Some(reduced::combine(fold, to, left, right)),
        (left, right) => left.or(right),
    };
    let items = reduced::items(fold, dtype, row);
    let tile_of = TILE_BYTES / to.size().max(4);
    let mut results = Vec::new();
    let mut before_group = None;
    for group in items.chunks(GROUP * tile_of) {
        let mut wholes: Vec<Option<Item>> = Vec::new();
        for tile in group.chunks(tile_of) {
            let mut lanes = wholes.clone();
            lanes.resize(GROUP, None);
            let upper = lanes.split_off(GROUP / 2);
            let lanes: Vec<Option<Item>> =
                lanes.into_iter().zip(upper).map(|(low, high)| both(low, high)).collect();
            let mut warps: Vec<Option<Item>> = lanes
                .chunks(32)
                .map(|warp| {
                    let mut warp = warp.to_vec();
                    while warp.len() > 1 {
                        let upper = warp.split_off(warp.len() / 2);
                        warp = warp.into_iter().zip(upper).map(|(low, high)| both(low, high)).collect();
                    }
                    warp[0]
                })
                .collect();
            while warps.len() > 1 {
                warps = warps.chunks(2).map(|pair| both(pair[0], pair[1])).collect();
            }
            let before_tile = both(before_group, warps[0]);
            // The prefix of one of the tile's eight parts.
            let mut before_part = None;
            for part in tile.chunks(tile_of / 8) {
                let mut before_128 = None;
                for run in part.chunks(128) {
                    let before_run = both(before_part, before_128);
                    let mut quads: Vec<Vec<Option<Item>>> = Vec::new();
                    for quad in run.chunks(4) {
                        let mut so_far = None;
                        quads.push(
                            quad.iter()
                                .map(|&item| {
                                    so_far = both(so_far, Some(item));
                                    so_far
                                })
                                .collect(),
                        );
                    }
                    let mut through: Vec<Option<Item>> =
                        quads.iter().map(|quad| quad[quad.len() - 1]).collect();
                    for half in [1, 2, 4, 8, 16] {
                        let old = through.clone();
                        for at in (0..through.len()).filter(|at| at / half % 2 == 1) {
                            through[at] = both(old[at / half * half - 1], old[at]);
                        }
                    }
                    for (at, quad) in quads.iter().enumerate() {
                        let before = if at == 0 { None } else { through[at - 1] };
                        let of_quad = quad
                            .iter()
                            .filter_map(|item| both(before_tile, both(before_run, both(before, *item))));
                        results.extend(of_quad.map(|item| item.value));
                    }
                    before_128 = both(before_128, through[through.len() - 1]);
                }
                before_part = both(before_part, before_128);
            }
            wholes.push(before_part);
            if wholes.len() == GROUP {
                before_group = both(before_tile, before_part);
            }
        }
    }
    results
}

fn check(fold: Fold, input: &Array, layout: Layout, axis: usize, keep: bool) {
    let scan = scan(fold, input.dtype);
    let dtype = scan.output();
    let before = Array::new(dtype, layout, &special(dtype)[..1], 0);
    let (mut on_cpu, mut as_text);
    on_cpu = before.clone();
    on_host(&scan, input, &mut on_cpu, axis);
    let sizes = layout.shape();
    let inner: usize = sizes[axis + 1..].iter().product();
    let (from, found) = (input.elements(&input.layout), on_cpu.element_bytes());
    for start in (0..from.len()).filter(|at| (at / inner).is_multiple_of(sizes[axis])) {
        let places: Vec<usize> = (0..sizes[axis]).map(|k| start + k * inner).collect();
        let row: Vec<Value> = places.iter().map(|&at| from[at]).collect();
        for (&at, wanted) in places.iter().zip(reference(fold, input.dtype, &row)) {
            let wanted = match wanted {
                Value::Real(x) if matches!(dtype, DType::F16 | DType::BF16) => Value::Real(nearest(dtype, x)),
                other => other,
            };
            let mut bytes = vec![0; dtype.size()];
            write(dtype, wanted, &mut bytes);
            let is = read(dtype, found[at]);
            assert!(
                same(dtype, found[at], &bytes),
                "{fold:?} of {}: {at} is {is:?}, not {wanted:?}",
                input.dtype
            );
        }
    }
    // Tiles that wait for each other run in several orders, also with only one resident block.
    let waits = sizes[axis] > TILE_BYTES / accumulated(fold, input.dtype).size().max(4);
    let few = from.len() < 100_000;
    let schedules = match waits {
        true if few => &[Schedule::IN_ORDER, Schedule { resident: 3, seed: Some(1) }][..],
        true => &[Schedule { resident: 5, seed: Some(2) }],
        false => &[Schedule::IN_ORDER],
    };
    for &schedule in schedules {
        as_text = before.clone();
        let all = as_ptx(&scan, input, &mut as_text, axis, schedule);
        let what = format!("scan by {fold:?} of {}, {:?}, {schedule:?}", input.dtype, input.layout);
        assert_same(&what, std::slice::from_ref(&on_cpu), &[as_text], std::slice::from_ref(&before));
        texts::keep(&all, keep);
    }
}

/// Scans products of so many inputs, the last with one number for each row: loaded ahead, or at their use if
/// they are too many.
fn products(count: usize, sizes: &[usize]) {
    let layout = contiguous(sizes);
    let graph = Graph::new();
    let inputs: Vec<_> = (0..count).map(|_| graph.input(DType::F32)).collect();
    let sum = inputs.chunks(2).map(|pair| pair[0] * pair[pair.len() - 1]).reduce(|sum, next| sum + next);
    let scan = graph.scan(Fold::Sum, sum.expect("an input")).expect("a scan");
    let still = contiguous(&[sizes[0], 1]).expand(layout.shape()).expect("a view");
    let arrays: Vec<Array> = (1..=count)
        .map(|at| {
            let mut array = Array::new(DType::F32, layout, &plain(DType::F32), at);
            if at == count {
                array.layout = still;
            }
            array
        })
        .collect();
    let before = Array::new(DType::F32, layout, &special(DType::F32)[..1], 0);
    let memory: Vec<_> = arrays.iter().map(|array| aligned(&array.bytes)).collect();
    let from: Vec<HostInput<'_>> = arrays
        .iter()
        .zip(&memory)
        .map(|(array, memory)| {
            let bytes = &bytemuck::cast_slice(memory)[..array.bytes.len()];
            HostInput::of_bytes(DType::F32, bytes, array.layout).expect("an input")
        })
        .collect();
    let (mut on_cpu, mut target) = (before.clone(), aligned(&before.bytes));
    let length = before.bytes.len();
    let bytes = &mut bytemuck::cast_slice_mut(&mut target)[..length];
    let mut to = HostOutput::of_bytes(DType::F32, bytes, layout).expect("an output");
    scan.run_host(&from, &[], &mut to, 1).expect("a run on the CPU");
    on_cpu.bytes.copy_from_slice(&bytemuck::cast_slice(&target)[..length]);
    let layouts: Vec<Layout> = arrays.iter().map(|array| array.layout).collect();
    for schedule in [Schedule::IN_ORDER, Schedule { resident: 3, seed: Some(11) }] {
        let explanation = scan.explain(&layouts, &layout, 1, (9, 0)).expect("a plan");
        let mut as_text = before.clone();
        let all = run_reduction(explanation, &arrays, &mut as_text, 0, schedule);
        assert_same(
            &format!("{count} inputs"),
            std::slice::from_ref(&on_cpu),
            &[as_text],
            std::slice::from_ref(&before),
        );
        texts::keep(&all, true);
    }
}

/// Returns the dtype of the folded values.
fn accumulated(fold: Fold, dtype: DType) -> DType {
    match reduced::accumulator(fold, dtype) {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// Checks texts in adversarial orders: the result does not depend on the order of blocks, the number of
/// resident blocks, or which block is delayed.
fn orders(dtype: DType, sizes: &[usize]) {
    let layout = contiguous(sizes);
    let scan = scan(Fold::Sum, dtype);
    let input = Array::new(dtype, layout, &plain(dtype), 7);
    let before = Array::new(scan.output(), layout, &special(scan.output())[..1], 0);
    let mut on_cpu = before.clone();
    on_host(&scan, &input, &mut on_cpu, 1);
    for seed in 0..10 {
        let schedule = Schedule { resident: [1, 2, 3, 7, 40][seed as usize % 5], seed: Some(seed) };
        let mut as_text = before.clone();
        as_ptx(&scan, &input, &mut as_text, 1, schedule);
        assert_same(
            &format!("{schedule:?}"),
            std::slice::from_ref(&on_cpu),
            &[as_text],
            std::slice::from_ref(&before),
        );
    }
}

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for fold in FOLDS {
        for dtype in dtypes(fold) {
            for (name, input, output, axis) in cases() {
                tests.push(Test::new(format!("scan::{}::{dtype}::{name}", fold.name()), move || {
                    let keep = dtype == DType::F32 || name == "row" || name == "rows_odd";
                    check(fold, &Array::new(dtype, input, &plain(dtype), 3), output, axis, keep);
                    check(fold, &Array::new(dtype, input, &special(dtype), 5), output, axis, false);
                    Ok(())
                }));
            }
        }
    }
    for (fold, dtype, lengths) in [
        (
            Fold::Sum,
            DType::F32,
            &[
                1, 2, 5, 31, 32, 33, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097, 8192,
                8193, 20_000,
            ][..],
        ),
        (Fold::Sum, DType::BF16, &[4096, 8192, 8200, 16_390]),
        (Fold::Sum, DType::F64, &[2048, 2049, 8193, 12_288]),
        (Fold::Product, DType::C64, &[2047, 4096, 9001]),
        (Fold::Product, DType::C128, &[700, 5000]),
        (Fold::Sum, DType::C128, &[129, 257, 1024, 1025, 4097]),
        (Fold::Maximum, DType::U8, &[8191, 9001]),
        (Fold::Sum, DType::Bool, &[17_000]),
    ] {
        for &length in lengths {
            tests.push(Test::new(format!("scan::{}::{dtype}::of_{length}", fold.name()), move || {
                for sizes in [[1, length], [2, length]] {
                    let layout = contiguous(&sizes);
                    check(fold, &Array::new(dtype, layout, &plain(dtype), 1), layout, 1, true);
                }
                Ok(())
            }));
        }
    }
    for (count, sizes) in [(2, [2, 3 * 4096]), (3, [2, 9001]), (4, [3, 6000]), (7, [2, 8192]), (9, [1, 5001])]
    {
        let name = format!("scan::products::{count}_inputs::{}_of_{}", sizes[0], sizes[1]);
        tests.push(Test::new(name, move || {
            products(count, &sizes);
            Ok(())
        }));
    }
    tests.push(Test::new("scan::constants_are_scanned", || {
        constants();
        Ok(())
    }));
    tests.push(Test::new("scan::bad_operands_are_errors", || {
        bad();
        Ok(())
    }));
    tests
}

/// Scans of many tiles, which take longest.
pub fn large() -> Vec<Test> {
    let mut tests = Vec::new();
    for (dtype, sizes) in
        [(DType::F32, [1, 20 * 4096 + 7]), (DType::F64, [3, 6 * 2048]), (DType::C128, [4, 5 * 1024])]
    {
        let name = format!("scan::orders::{dtype}_{}_of_{}", sizes[0], sizes[1]);
        tests.push(Test::new(name, move || {
            orders(dtype, &sizes);
            Ok(())
        }));
    }
    for (dtype, sizes) in [
        (DType::F32, [1, 513 * 4096 + 77]),
        (DType::C128, [1, 1025 * 1024]),
        (DType::C128, [2, 513 * 1024 - 5]),
    ] {
        let name = format!("scan::several_groups::{dtype}_{}_of_{}", sizes[0], sizes[1]);
        tests.push(Test::new(name, move || {
            groups(dtype, &sizes);
            Ok(())
        }));
    }
    tests
}

/// Scans more tiles than a group has: on the CPU against the documented order, and as text.
fn groups(dtype: DType, sizes: &[usize]) {
    let layout = contiguous(sizes);
    // Strides of 0 keep the memory small, and sums of a fraction still round.
    let value = match dtype {
        DType::I64 => Value::Integer((1 << 33) + 5),
        DType::C128 => Value::Complex(0.1, -0.3),
        _ => Value::Real(0.1f32.into()),
    };
    let one = contiguous(&[1, 1]);
    let mut input = Array::new(dtype, one, &[value], 0);
    input.layout = one.expand(layout.shape()).expect("a view");
    check(Fold::Sum, &input, layout, 1, true);
}

/// The imaginary part of a real number is a constant of the kernel's text.
fn constants() {
    for (fold, dtype) in [(Fold::Sum, DType::F32), (Fold::Sum, DType::F64), (Fold::Maximum, DType::I32)] {
        for length in [4, 128, 4096] {
            let graph = Graph::new();
            let scan = graph.scan(fold, graph.input(dtype).imag()).expect("a scan");
            let input = Array::new(dtype, contiguous(&[2, length]), &plain(dtype), 0);
            let before = Array::new(scan.output(), input.layout, &special(scan.output())[..1], 1);
            let (mut on_cpu, mut as_text) = (before.clone(), before.clone());
            on_host(&scan, &input, &mut on_cpu, 1);
            as_ptx(&scan, &input, &mut as_text, 1, Schedule::IN_ORDER);
            assert_same("a constant", std::slice::from_ref(&on_cpu), &[as_text], &[before]);
        }
    }
}

fn bad() {
    let (graph, matrix) = (Graph::new(), contiguous(&[2, 3]));
    let sums = scan(Fold::Sum, DType::F32);
    assert!(sums.explain(&[matrix], &matrix, 2, (9, 0)).is_err());
    assert!(sums.explain(&[matrix], &contiguous(&[2, 1]), 1, (9, 0)).is_err());
    assert!(sums.explain(&[], &matrix, 1, (9, 0)).is_err());
    for fold in [Fold::Any, Fold::ArgMaximum] {
        assert!(graph.scan(fold, graph.input(DType::F32)).is_err(), "{fold:?}");
    }
    assert!(graph.scan(Fold::Maximum, graph.input(DType::C64)).is_err());
}
