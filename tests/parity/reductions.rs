//! Reductions: each fold, for each dtype, length and layout, on the CPU against the documented tree, and the
//! kernels' texts in the interpreter against the CPU.

use selvedge::fuse::{Fold, Graph, HostInput, HostOutput, LaunchMemory, Number, Reduction};
use selvedge::types::{DType, Layout, Slice};

use super::arrays::{Array, aligned, assert_same, offsets};
use super::harness::run_reduction;
use super::reduced;
use super::texts;
use super::value::{Value, nearest, read, same, special, write};
use crate::common::suite::Test;
use ptx_interpreter::{Kernel, Memory, Schedule};

pub fn contiguous(sizes: &[usize]) -> Layout {
    Layout::contiguous(sizes).expect("a layout")
}

/// Returns the shape with size 1 in these axes.
fn kept(sizes: &[usize], axes: &[usize]) -> Layout {
    let sizes: Vec<usize> =
        sizes.iter().enumerate().map(|(axis, &size)| if axes.contains(&axis) { 1 } else { size }).collect();
    contiguous(&sizes)
}

/// A name, an input and an output, whose axes of size 1 are folded.
type Case = (&'static str, Layout, Layout);

fn cases() -> Vec<Case> {
    let whole = |name, sizes: &[usize], axes: &[usize]| (name, contiguous(sizes), kept(sizes, axes));
    let view = |layout: selvedge::Result<Layout>| layout.expect("a view");
    let mut cases = vec![
        whole("row", &[1300], &[0]),
        whole("rows", &[5, 300], &[1]),
        whole("rows_of_4", &[37, 4], &[1]),
        whole("rows_of_3", &[300, 3], &[1]),
        whole("rows_odd", &[3, 1025], &[1]),
        whole("columns", &[70, 48], &[0]),
        whole("columns_odd", &[1030, 7], &[0]),
        whole("few_columns", &[600, 2], &[0]),
        whole("short_columns", &[3, 600], &[0]),
        whole("long_columns", &[2050, 8], &[0]),
        whole("middle", &[3, 40, 16], &[1]),
        whole("outer_and_inner", &[6, 5, 48], &[0, 2]),
        whole("several_outer", &[4, 6, 20], &[0, 1]),
        whole("kept_between", &[7, 3, 9], &[0, 2]),
        whole("one_element", &[1, 1], &[0, 1]),
        whole("nothing_folded", &[3, 17], &[]),
        whole("no_rows", &[0, 5], &[1]),
        whole("two_warps", &[3, 2048], &[1]),
    ];
    let matrix = contiguous(&[40, 33]);
    cases.push(("all_transposed", view(matrix.transpose(0, 1)), contiguous(&[1, 1])));
    cases.push(("rows_transposed", view(matrix.transpose(0, 1)), contiguous(&[33, 1])));
    cases.push(("backwards", view(matrix.flip(&[0, 1])), contiguous(&[40, 1])));
    cases.push((
        "stepped",
        view(contiguous(&[9, 80]).slice(1, Slice::from(1..).step(2))),
        contiguous(&[9, 1]),
    ));
    cases.push((
        "misaligned",
        Layout::strided(&[5, 64], &[64, 1], 1).expect("a layout"),
        contiguous(&[5, 1]),
    ));
    cases.push((
        "misaligned_columns",
        Layout::strided(&[64, 8], &[9, 1], 1).expect("a layout"),
        contiguous(&[1, 8]),
    ));
    cases.push((
        "broadcast",
        view(contiguous(&[6, 1]).expand(contiguous(&[6, 50]).shape())),
        contiguous(&[6, 1]),
    ));
    cases.push((
        "permuted",
        view(contiguous(&[4, 5, 6, 7]).permute(&[2, 0, 3, 1])),
        kept(&[6, 4, 7, 5], &[0, 2]),
    ));
    let turned = view(contiguous(&[48, 3]).transpose(0, 1));
    cases.push(("output_transposed", contiguous(&[3, 20, 48]), view(turned.unsqueeze(1))));
    let apart = view(contiguous(&[1, 100]).slice(1, Slice::from(..).step(2)));
    cases.push(("output_apart", contiguous(&[30, 50]), apart));
    cases
}

fn reduction(fold: Fold, dtype: DType) -> Reduction {
    let graph = Graph::new();
    graph.reduction(fold, graph.input(dtype)).expect("a reduction")
}

/// Runs on the CPU; the output's memory is changed.
pub fn on_host(reduction: &Reduction, inputs: &[Array], scalars: &[Number], output: &mut Array) {
    let sources: Vec<Vec<u128>> = inputs.iter().map(|input| aligned(&input.bytes)).collect();
    let mut target = aligned(&output.bytes);
    let of_host: Vec<HostInput<'_>> = inputs
        .iter()
        .zip(&sources)
        .map(|(input, words)| {
            let bytes = &bytemuck::cast_slice(words)[..input.bytes.len()];
            HostInput::of_bytes(input.dtype, bytes, input.layout).expect("an input")
        })
        .collect();
    let length = output.bytes.len();
    let bytes = &mut bytemuck::cast_slice_mut(&mut target)[..length];
    let mut to_host = HostOutput::of_bytes(output.dtype, bytes, output.layout).expect("an output");
    reduction.run_host(&of_host, scalars, &mut to_host).expect("a run on the CPU");
    output.bytes.copy_from_slice(&bytemuck::cast_slice(&target)[..length]);
}

/// Runs the kernels' texts. The run passes no scalars: reductions here contain their numbers.
fn as_ptx(
    reduction: &Reduction,
    inputs: &[Array],
    output: &mut Array,
    capability: (i32, i32),
) -> Vec<String> {
    let layouts: Vec<Layout> = inputs.iter().map(|input| input.layout).collect();
    let explanation = reduction.explain(&layouts, &output.layout, capability).expect("a plan");
    run_reduction(explanation, inputs, output, 0xA5, Schedule::IN_ORDER)
}

/// Returns the rows of an array, by the elements of the output in row-major order.
fn rows(input: &Array, output: &Layout) -> Vec<Vec<Value>> {
    let sizes = input.layout.shape();
    let mut rows = vec![Vec::new(); output.count()];
    let elements = input.elements(&input.layout);
    for (index, element) in elements.into_iter().enumerate() {
        let (mut rest, mut row, mut step) = (index, 0, 1);
        for axis in (0..sizes.rank()).rev() {
            let coordinate = rest % sizes[axis];
            rest /= sizes[axis];
            row += coordinate.min(output.shape()[axis] - 1) * step;
            step *= output.shape()[axis];
        }
        rows[row].push(element);
    }
    rows
}

/// Checks the reduction of an array on the CPU against the documented tree, and its text against the CPU.
fn check(fold: Fold, input: &Array, layout: Layout, keep: bool) {
    let reduction = reduction(fold, input.dtype);
    let dtype = reduction.output();
    let before = Array::new(dtype, layout, &special(dtype)[..1], 0);
    let mut on_cpu = before.clone();
    on_host(&reduction, std::slice::from_ref(input), &[], &mut on_cpu);
    for (index, (row, found)) in rows(input, &layout).iter().zip(on_cpu.element_bytes()).enumerate() {
        let wanted = reduced::fold(fold, input.dtype, row).expect("a value");
        let wanted = match wanted {
            Value::Real(x) if matches!(dtype, DType::F16 | DType::BF16) => Value::Real(nearest(dtype, x)),
            other => other,
        };
        let mut bytes = vec![0; dtype.size()];
        write(dtype, wanted, &mut bytes);
        let is = read(dtype, found);
        assert!(
            same(dtype, found, &bytes),
            "{fold:?} of {}: row {index} is {is:?}, not {wanted:?}",
            input.dtype
        );
    }
    for capability in [(9, 0), (7, 5)] {
        let mut as_text = before.clone();
        let all = as_ptx(&reduction, std::slice::from_ref(input), &mut as_text, capability);
        let what = format!("{fold:?} of {}, {:?}", input.dtype, input.layout);
        assert_same(&what, std::slice::from_ref(&on_cpu), &[as_text], std::slice::from_ref(&before));
        texts::keep(&all, keep);
        if !matches!(input.dtype, DType::BF16) && dtype != DType::BF16 {
            break;
        }
    }
}

/// Numbers of mixed order whose sums and products neither vanish nor overflow soon.
pub fn plain(dtype: DType) -> Vec<Value> {
    let number = |k: i64| match dtype {
        DType::Bool => Value::Integer(i128::from(k % 7 != 3)),
        _ if dtype.is_complex() => {
            Value::Complex((k % 17 - 8) as f64 * 0.125 + 1.0, (k % 5 - 2) as f64 * 0.25)
        }
        _ if dtype.is_float() => Value::Real((k * 37 % 101 - 50) as f64 * 0.03125 + 0.25),
        _ if dtype.is_signed_integer() => Value::Integer(i128::from(k * 37 % 101 - 50)),
        _ => Value::Integer(i128::from(k * 37 % 101)),
    };
    let mut all: Vec<Value> = (0..211).map(number).collect();
    if dtype.is_float() || dtype.is_complex() {
        for value in &mut all {
            // Rounded to the dtype.
            let mut bytes = vec![0; dtype.size()];
            let exact = match *value {
                Value::Real(x) if dtype != DType::F64 && dtype != DType::F32 => {
                    Value::Real(nearest(dtype, x))
                }
                other => other,
            };
            write(dtype, exact, &mut bytes);
            *value = read(dtype, &bytes);
        }
    }
    all
}

/// Returns the dtypes that a fold supports.
pub fn dtypes(fold: Fold) -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(move |dtype| fold.result(*dtype).is_ok())
}

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for fold in Fold::SINGLE_RESULT {
        for dtype in dtypes(fold) {
            for (name, input, output) in cases() {
                tests.push(Test::new(format!("reduce::{}::{dtype}::{name}", fold.name()), move || {
                    check(
                        fold,
                        &Array::new(dtype, input, &plain(dtype), 3),
                        output,
                        dtype == DType::F32 || name == "row",
                    );
                    // Infinities, NaN, signed zeros and extremes, also at the start of a row.
                    check(fold, &Array::new(dtype, input, &special(dtype), 5), output, false);
                    Ok(())
                }));
            }
        }
    }
    let lengths = [
        1,
        2,
        3,
        4,
        5,
        31,
        32,
        33,
        127,
        128,
        255,
        256,
        257,
        511,
        1023,
        1024,
        1025,
        2047,
        4096,
        16384 - 1,
        16385,
        70_001,
    ];
    for (fold, dtype) in [
        (Fold::Sum, DType::F32),
        (Fold::Sum, DType::F64),
        (Fold::Sum, DType::BF16),
        (Fold::Sum, DType::U8),
        (Fold::Product, DType::C128),
        (Fold::ArgMaximum, DType::F32),
    ] {
        for length in lengths {
            let name = format!("reduce::{}::{dtype}::of_{length}", fold.name());
            tests.push(Test::new(name, move || {
                let (row, column) = (contiguous(&[length]), contiguous(&[length, 2]));
                check(fold, &Array::new(dtype, row, &plain(dtype), 1), contiguous(&[1]), true);
                check(fold, &Array::new(dtype, column, &plain(dtype), 1), contiguous(&[1, 2]), true);
                Ok(())
            }));
        }
    }
    let mut one = |name: &str, run: fn()| {
        tests.push(Test::new(format!("reduce::{name}"), move || {
            run();
            Ok(())
        }));
    };
    one("empty", empty);
    one("bad_operands_are_errors", bad);
    one("before_and_behind", before_and_behind);
    one("a_long_formula_is_a_loop", long_formula);
    one("far_apart", far_apart);
    one("several_merges", several_merges);
    one("constants_are_folded", constants);
    one("accurate", accurate);
    one("layouts_share_the_bits", layouts_share);
    tests
}

fn empty() {
    for fold in Fold::SINGLE_RESULT {
        for dtype in dtypes(fold) {
            let reduction = reduction(fold, dtype);
            let input = Array::new(dtype, contiguous(&[3, 0]), &special(dtype), 0);
            let to = reduction.output();
            let before = Array::new(to, contiguous(&[3, 1]), &special(to), 1);
            let Some(wanted) = reduced::fold(fold, dtype, &[]) else {
                let error = reduction.explain(&[input.layout], &before.layout, (9, 0)).expect_err("nothing");
                assert!(error.to_string().contains(fold.name()), "{error}");
                continue;
            };
            let mut output = before.clone();
            on_host(&reduction, &[input], &[], &mut output);
            let mut bytes = vec![0; to.size()];
            write(to, wanted, &mut bytes);
            assert!(output.element_bytes().iter().all(|found| *found == bytes), "{fold:?} of {dtype}");
        }
    }
}

fn bad() {
    let sum = reduction(Fold::Sum, DType::F32);
    let (row, matrix) = (contiguous(&[3]), contiguous(&[2, 3]));
    for (inputs, output) in [
        (vec![matrix], row),
        (vec![matrix], contiguous(&[2, 2])),
        (vec![], row),
        (vec![row, row], row),
        (vec![matrix], contiguous(&[1, 1]).expand(contiguous(&[2, 1]).shape()).expect("a view")),
    ] {
        assert!(sum.explain(&inputs, &output, (9, 0)).is_err(), "{inputs:?} {output:?}");
    }
    let graph = Graph::new();
    for (fold, dtype) in
        [(Fold::Maximum, DType::C64), (Fold::Sum, DType::F8E4M3), (Fold::ArgMinimum, DType::C128)]
    {
        assert!(graph.reduction(fold, graph.input(dtype)).is_err(), "{fold:?} of {dtype}");
    }
    let none = Graph::new();
    assert!(none.reduction(Fold::Sum, none.number(1.0, DType::F32)).is_err());
    // One input of another dtype than that of the sum.
    let other = Graph::new();
    let end = other.expression(&[other.input(DType::F64).sqrt()]).expect("an expression");
    assert!(sum.then(&end).is_err());
    let input = HostInput::new(&[1.0f32, 2.0], contiguous(&[2])).expect("an input");
    let mut memory = [0.0f32];
    let mut output = HostOutput::new(&mut memory, contiguous(&[1])).expect("an output");
    assert!(sum.run_host(&[input], &[1.0.into()], &mut output).is_err());
}

/// The imaginary part of a real number is a constant of the kernel's text.
fn constants() {
    for (fold, dtype) in [
        (Fold::Sum, DType::F32),
        (Fold::Sum, DType::F64),
        (Fold::Sum, DType::I32),
        (Fold::Product, DType::F32),
        (Fold::Maximum, DType::BF16),
        (Fold::ArgMaximum, DType::F32),
        (Fold::Any, DType::F32),
    ] {
        for sizes in [[3, 1], [3, 16], [2, 1024], [2, 4096]] {
            let graph = Graph::new();
            let reduction = graph.reduction(fold, graph.input(dtype).imag()).expect("a reduction");
            let input = Array::new(dtype, contiguous(&sizes), &plain(dtype), 0);
            let to = reduction.output();
            let before = Array::new(to, contiguous(&[sizes[0], 1]), &special(to)[..1], 1);
            let (mut on_cpu, mut as_text) = (before.clone(), before.clone());
            let inputs = [input];
            on_host(&reduction, &inputs, &[], &mut on_cpu);
            texts::keep(&as_ptx(&reduction, &inputs, &mut as_text, (9, 0)), sizes[1] == 16);
            let what = format!("{fold:?} of {dtype}, {sizes:?}");
            assert_same(&what, std::slice::from_ref(&on_cpu), &[as_text], &[before]);
        }
    }
}

/// A variance: another input that is broadcast, numbers in both expressions, and another dtype at the end.
fn before_and_behind() {
    let graph = Graph::new();
    let [x, mean] = graph.inputs([DType::F16, DType::F32]);
    let squares = graph.reduction(Fold::Sum, (x - mean).square() * 2.0).expect("a reduction");
    let behind = Graph::new();
    let sum = behind.input(DType::F32);
    let reduction = squares
        .then(&behind.expression(&[(sum / 6.0).sqrt().cast(DType::F64)]).expect("an expression"))
        .expect("an end");
    for (sizes, axes) in
        [(&[5, 300][..], &[1][..]), (&[300, 24], &[0]), (&[70_000, 1], &[0]), (&[3, 4000], &[1])]
    {
        let output = kept(sizes, axes);
        let x = Array::new(DType::F16, contiguous(sizes), &plain(DType::F16), 0);
        let mean = Array::new(DType::F32, output, &plain(DType::F32), 7);
        let before = Array::new(DType::F64, output, &[Value::Real(0.5)], 0);
        let (mut on_cpu, mut as_text) = (before.clone(), before.clone());
        on_host(&reduction, &[x.clone(), mean.clone()], &[], &mut on_cpu);
        texts::keep(&as_ptx(&reduction, &[x.clone(), mean.clone()], &mut as_text, (9, 0)), true);
        assert_same("a variance", std::slice::from_ref(&on_cpu), &[as_text], &[before]);
        let means = mean.elements(&output);
        for ((row, mean), found) in rows(&x, &output).iter().zip(means).zip(on_cpu.elements(&output)) {
            let sum: f64 = row.iter().map(|x| 2.0 * (x.real() - mean.real()).powi(2)).sum();
            let wanted = (sum / 6.0).sqrt();
            assert!((found.real() - wanted).abs() <= 1e-5 * wanted, "{found:?} {wanted}");
        }
    }
    // The same number, passed to the run.
    let graph = Graph::new();
    let (x, factor) = (graph.input(DType::F32), graph.scalar(DType::F32));
    let sums = graph.reduction(Fold::Sum, x * factor).expect("a reduction");
    let behind = Graph::new();
    let (sum, factor) = (behind.input(DType::F32), behind.scalar(DType::F32));
    let sums = sums.then(&behind.expression(&[sum + factor]).expect("an expression")).expect("an end");
    let mut output = Array::new(DType::F32, contiguous(&[1]), &[Value::Real(0.0)], 0);
    let input =
        Array::new(DType::F32, contiguous(&[3]), &[Value::Real(1.0), Value::Real(2.0), Value::Real(4.0)], 0);
    on_host(&sums, &[input], &[10.0.into(), 0.5.into()], &mut output);
    assert_eq!(output.elements(&output.layout)[0].real(), 70.5);
}

fn long_formula() {
    for dtype in [DType::F32, DType::F64] {
        for fold in [Fold::Sum, Fold::ArgMaximum] {
            let graph = Graph::new();
            let x = graph.input(dtype);
            let long = graph.reduction(fold, (x.tanh().exp().log1p() + x).sinh()).expect("a reduction");
            for (input, output) in
                [(contiguous(&[2, 2500]), contiguous(&[2, 1])), (contiguous(&[1500, 8]), contiguous(&[1, 8]))]
            {
                let input = Array::new(dtype, input, &plain(dtype), 0);
                let before = Array::new(long.output(), output, &special(long.output())[..1], 0);
                let (mut on_cpu, mut as_text) = (before.clone(), before.clone());
                on_host(&long, std::slice::from_ref(&input), &[], &mut on_cpu);
                let all = as_ptx(&long, &[input], &mut as_text, (9, 0));
                assert!(all[0].contains("$round"), "a loop");
                assert_same("a long formula", &[on_cpu], &[as_text], &[before]);
                texts::keep(&all, true);
            }
        }
    }
}

/// Indices of 64 bits: two rows in regions of memory that are 2^40 bytes apart.
fn far_apart() {
    for (fold, output) in [(Fold::Sum, DType::F32), (Fold::ArgMinimum, DType::I64)] {
        let reduction = reduction(fold, DType::F32);
        for (sizes, result) in [([2, 1500], [2, 1]), ([2, 300], [1, 300]), ([2, 40], [1, 1])] {
            let far = Layout::strided(&sizes, &[1 << 38, 1], 0).expect("a layout");
            let near = Array::new(DType::F32, contiguous(&sizes), &plain(DType::F32), 2);
            let before = Array::new(output, contiguous(&result), &special(output)[..1], 0);
            let mut on_cpu = before.clone();
            on_host(&reduction, std::slice::from_ref(&near), &[], &mut on_cpu);
            let explanation = reduction.explain(&[far], &before.layout, (9, 0)).expect("a plan");
            let mut memory = Memory::default();
            let half = sizes[1] * 4;
            let start = memory.add(near.bytes[..half].to_vec());
            memory.add(near.bytes[half..2 * half].to_vec());
            let to = memory.add(before.bytes.clone());
            let scratch = memory.add(vec![0; explanation.scratch]);
            for launch in explanation.launches {
                let mut parameters = Vec::new();
                for (place, offset) in &launch.operands {
                    let base = match place {
                        LaunchMemory::Input(_) => start,
                        LaunchMemory::Output => to,
                        LaunchMemory::Scratch => scratch,
                    };
                    parameters.extend((base + *offset as u64).to_le_bytes());
                }
                parameters.extend(&launch.parameters);
                assert!(launch.ptx.contains("setp.lt.u64"), "64 bits");
                Kernel::read(&launch.ptx).run(launch.blocks, launch.threads, &parameters, &mut memory);
                texts::keep(&[launch.ptx], true);
            }
            let as_text = Array { bytes: memory.bytes(to).to_vec(), ..before.clone() };
            assert_same("far apart", &[on_cpu], &[as_text], &[before]);
        }
    }
}

/// Enough segments for two merging launches. The test supplies the output of the first launch.
fn several_merges() {
    for (fold, dtype, segments) in [(Fold::Sum, DType::F32, 16_400), (Fold::ArgMaximum, DType::I8, 4_100)] {
        // Columns write one partial value a segment.
        let input = Layout::strided(&[segments * 1024, 2], &[0, 1], 0).expect("a layout");
        let reduction = reduction(fold, dtype);
        let to = reduction.output();
        let explanation = reduction.explain(&[input], &contiguous(&[1, 2]), (9, 0)).expect("a plan");
        assert_eq!(explanation.launches.len(), 3, "launches");
        let value = |index: usize| (index * 7919 % 1009) as f32 * 0.37 - 100.0;
        let mut planes = vec![0; explanation.scratch];
        let second = explanation.launches[1].operands[1].1;
        for index in 0..2 * segments {
            if fold == Fold::Sum {
                planes[4 * index..4 * index + 4].copy_from_slice(&value(index).to_le_bytes());
            } else {
                let number = if index == 2 * 4099 || index == 2 * 4097 { 9 } else { index as i32 % 9 };
                planes[4 * index..4 * index + 4].copy_from_slice(&number.to_le_bytes());
                let place = (index / 2) as u64 * 1024 + 5;
                planes[second + 8 * index..second + 8 * index + 8].copy_from_slice(&place.to_le_bytes());
            }
        }
        let mut memory = Memory::default();
        let scratch = memory.add(planes);
        let result = memory.add(vec![0; 2 * to.size()]);
        for launch in &explanation.launches[1..] {
            let mut parameters = Vec::new();
            for (place, offset) in &launch.operands {
                let base = if *place == LaunchMemory::Scratch { scratch } else { result };
                parameters.extend((base + *offset as u64).to_le_bytes());
            }
            parameters.extend(&launch.parameters);
            Kernel::read(&launch.ptx).run(launch.blocks, launch.threads, &parameters, &mut memory);
            texts::keep(std::slice::from_ref(&launch.ptx), true);
        }
        let found = memory.bytes(result);
        if fold == Fold::Sum {
            for column in 0..2 {
                let mut sums: Vec<f32> = (0..segments).map(|segment| value(2 * segment + column)).collect();
                while sums.len() > 1 {
                    sums = sums
                        .chunks(2)
                        .map(|pair| pair.iter().copied().reduce(|x, y| x + y).expect("one"))
                        .collect();
                }
                assert_eq!(found[4 * column..4 * column + 4], sums[0].to_le_bytes());
            }
        } else {
            // The first of two equal maxima; in the other column the first of many.
            let first = (1..).step_by(2).find(|index| index % 9 == 8).expect("one") / 2;
            let places = [4097 * 1024 + 5, first * 1024 + 5];
            assert_eq!(found, places.map(u64::to_le_bytes).concat());
        }
    }
}

/// The error of a sum of numbers of mixed signs and sizes grows with the logarithm of their count.
fn accurate() {
    let length = 300_001;
    let values: Vec<f32> =
        (0..length as u32).map(|k| ((k.wrapping_mul(2_654_435_761) >> 8) as f32 / 65536.0) - 100.0).collect();
    let reduction = reduction(Fold::Sum, DType::F32);
    let mut sum = [0.0f32];
    let input = HostInput::new(&values, contiguous(&[length])).expect("an input");
    reduction
        .run_host(&[input], &[], &mut HostOutput::new(&mut sum, contiguous(&[1])).expect("an output"))
        .expect("a sum");
    let (exact, sizes) = values
        .iter()
        .fold((0.0f64, 0.0f64), |(sum, sizes), &x| (sum + f64::from(x), sizes + f64::from(x.abs())));
    // Four elements of a lane, eight halvings and the neighbours above: the largest number of roundings of an
    // element.
    let roundings = 3.0 + 8.0 + 9.0;
    let error = (f64::from(sum[0]) - exact).abs();
    assert!(error <= roundings * 2f64.powi(-24) * sizes, "{error}");
}

/// One array in several layouts gives one sum, bit for bit.
fn layouts_share() {
    let (rows, columns) = (45, 77);
    let values = plain(DType::F32);
    let reduction = reduction(Fold::Sum, DType::F32);
    let straight = Array::new(DType::F32, contiguous(&[rows, columns]), &values, 0);
    let turned = contiguous(&[columns, rows]).transpose(0, 1).expect("a view");
    let turned = Array::new(DType::F32, turned, &values, 0);
    let apart = contiguous(&[rows, 2 * columns]).slice(1, Slice::from(..).step(-2)).expect("a view");
    let apart = Array::new(DType::F32, apart, &values, 0);
    for result in [[1, 1], [rows, 1], [1, columns]] {
        let sums: Vec<Vec<u8>> = [&straight, &turned, &apart]
            .map(|input| {
                let mut output = Array::new(DType::F32, contiguous(&result), &[Value::Real(0.0)], 0);
                let before = output.clone();
                on_host(&reduction, std::slice::from_ref(input), &[], &mut output);
                let mut as_text = before.clone();
                as_ptx(&reduction, std::slice::from_ref(input), &mut as_text, (9, 0));
                assert_same("a layout", std::slice::from_ref(&output), &[as_text], &[before]);
                offsets(&output.layout)
                    .iter()
                    .flat_map(|at| output.bytes[4 * at..4 * at + 4].to_vec())
                    .collect()
            })
            .to_vec();
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{result:?}");
    }
}
