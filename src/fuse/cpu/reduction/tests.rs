//! The vector loops against the interpreter, bit for bit.

use super::*;
use crate::fuse::language::fold::Fold;
use crate::fuse::language::graph::{Expr, Graph};
use crate::types::Slice;

/// Appends a number as an element of a dtype.
pub(in crate::fuse::cpu) fn write(dtype: DType, element: f64, bytes: &mut Vec<u8>) {
    macro_rules! as_type {
        ($($type:ty)*) => {{ $(bytes.extend_from_slice(&(element as $type).to_le_bytes());)* }};
    }
    match dtype {
        DType::Bool => bytes.push(u8::from(element > 0.0)),
        DType::U8 | DType::F8E4M3 | DType::F8E5M2 => as_type!(u8),
        DType::I8 => as_type!(i8),
        DType::U16 => as_type!(u16),
        DType::I16 => as_type!(i16),
        DType::U32 => as_type!(u32),
        DType::I32 => as_type!(i32),
        DType::U64 => as_type!(u64),
        DType::I64 => as_type!(i64),
        DType::F16 => bytes.extend_from_slice(&half::f16::from_f64(element).to_le_bytes()),
        DType::BF16 => bytes.extend_from_slice(&half::bf16::from_f64(element).to_le_bytes()),
        DType::F32 => as_type!(f32),
        DType::F64 => as_type!(f64),
        DType::C64 => as_type!(f32 f32),
        DType::C128 => as_type!(f64 f64),
    }
}

/// Returns the bits of an element; all NaN are one.
pub(in crate::fuse::cpu) fn bits(dtype: DType, element: &[u8]) -> Vec<u8> {
    let nan = match dtype {
        DType::F16 => element.try_into().is_ok_and(|x| half::f16::from_le_bytes(x).is_nan()),
        DType::BF16 => element.try_into().is_ok_and(|x| half::bf16::from_le_bytes(x).is_nan()),
        DType::F32 => element.try_into().is_ok_and(|x| f32::from_le_bytes(x).is_nan()),
        DType::F64 => element.try_into().is_ok_and(|x| f64::from_le_bytes(x).is_nan()),
        _ => false,
    };
    if nan { vec![0xff; element.len()] } else { element.to_vec() }
}

/// Layouts of inputs with their outputs: tails around lanes, segments and blocks, rows, few and many columns.
fn layouts() -> Vec<(Layout, Layout)> {
    let of = |sizes: &[usize]| Layout::contiguous(sizes).unwrap();
    let mut all: Vec<(Layout, Layout)> = [1, 2, 31, 33, 255, 257, 1023, 1024, 1025, 2047, 2049, 4097, 5377]
        .map(|length| (of(&[length]), of(&[1])))
        .to_vec();
    for (shape, axis) in [
        ([3, 1025], 1),
        ([2, 2100], 1),
        ([280, 3], 1),
        ([300, 8], 1),
        ([1030, 7], 0),
        ([2050, 2], 0),
        ([3, 130], 0),
        ([1100, 66], 0),
    ] {
        let mut kept = shape;
        kept[axis] = 1;
        all.push((of(&shape), of(&kept)));
    }
    let transposed = of(&[1027, 5]).transpose(0, 1).unwrap();
    all.push((transposed, of(&[5, 1])));
    all.push((of(&[1500]).slice(0, Slice::from(..).step(2)).unwrap(), of(&[1])));
    all.push((of(&[1300]).flip(&[0]).unwrap(), of(&[1])));
    all.push((of(&[4, 70, 9]), of(&[4, 1, 9])));
    all.push((of(&[5, 3, 70]), of(&[1, 3, 1])));
    all
}

/// Numbers whose sums are rounded, without and with special values at indices that depend on `seed`.
pub(in crate::fuse::cpu) fn elements(count: usize, seed: usize, special: bool) -> Vec<f64> {
    let mut elements: Vec<f64> =
        (0..count).map(|k| ((k * 37 + seed * 11) % 101) as f64 * 0.3701 - 18.0).collect();
    if special {
        let each = [-0.0, 0.0, f64::INFINITY, f64::NAN, f64::NEG_INFINITY, -f64::NAN];
        for (at, value) in each.into_iter().take(1 + seed % 6).enumerate() {
            let index = (seed * 131 + at * 611) % count;
            elements[index] = value;
        }
    }
    elements
}

/// A reduction with its code.
type Compiled = (CompiledReduction, ReductionCode);

fn compiled(graph: &Graph, fold: Fold, of: Expr<'_>) -> Compiled {
    (CompiledReduction::of(graph, fold, of).unwrap(), ReductionCode::default())
}

fn run((reduction, code): &Compiled, input: (&[u8], Layout), output: Layout, interpreted: bool) -> Vec<u8> {
    let mut aligned = vec![0u128; input.0.len().div_ceil(16)];
    bytemuck::cast_slice_mut::<u128, u8>(&mut aligned)[..input.0.len()].copy_from_slice(input.0);
    let memory = &bytemuck::cast_slice::<u128, u8>(&aligned)[..input.0.len()];
    let source = HostInput::of_bytes(reduction.prologue.inputs[0], memory, input.1).unwrap();
    let bytes = output.count() * reduction.output().size();
    let mut result = vec![0u128; bytes.div_ceil(16)];
    let memory = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut result)[..bytes];
    let mut target = HostOutput::of_bytes(reduction.output(), memory, output).unwrap();
    run_host((reduction, code), &[source], &[], &mut target, interpreted).unwrap();
    bytemuck::cast_slice::<u128, u8>(&result)[..bytes].to_vec()
}

fn assert_equal(what: &str, compiled: &Compiled, elements: &[f64], layout: Layout, output: Layout) {
    let mut bytes = Vec::new();
    let (reduction, _) = compiled;
    elements.iter().for_each(|&element| write(reduction.prologue.inputs[0], element, &mut bytes));
    let [found, wanted] = [false, true].map(|path| run(compiled, (&bytes, layout), output, path));
    let dtype = reduction.output();
    for (row, (found, wanted)) in found.chunks(dtype.size()).zip(wanted.chunks(dtype.size())).enumerate() {
        assert_eq!(bits(dtype, found), bits(dtype, wanted), "{what} of {layout:?}: row {row}");
    }
}

#[test]
fn vector_loops_give_the_bits_of_the_interpreter() {
    for dtype in DType::ALL {
        for fold in Fold::SINGLE_RESULT.into_iter().filter(|fold| fold.result(dtype).is_ok()) {
            let graph = Graph::new();
            let reduction = compiled(&graph, fold, graph.input(dtype));
            // Kernels are generic, so the layouts are divided among the dtypes that share them.
            let step = match dtype {
                DType::F32 => 1,
                DType::F64 | DType::I64 => 4,
                _ => 9,
            };
            let first = dtype as usize % step;
            for (seed, (layout, output)) in layouts().into_iter().enumerate().skip(first).step_by(step) {
                let special = seed % 2 == 1 && (dtype.is_float() || dtype.is_complex());
                let elements = elements(layout.count().max(5400), seed, special);
                assert_equal(&format!("{fold:?} of {dtype}"), &reduction, &elements, layout, output);
            }
        }
    }
}

#[test]
fn vector_loops_after_an_expression_give_the_bits_of_the_interpreter() {
    for dtype in [DType::F32, DType::F64, DType::I16, DType::C64] {
        for fold in Fold::SINGLE_RESULT.into_iter().filter(|fold| fold.result(dtype).is_ok()) {
            let graph = Graph::new();
            let x = graph.input(dtype);
            let reduction = compiled(&graph, fold, x * x);
            for (seed, (layout, output)) in
                layouts().into_iter().enumerate().skip(dtype as usize % 4).step_by(4)
            {
                let elements = elements(layout.count().max(5400), seed, dtype.is_float());
                assert_equal(&format!("{fold:?} of {dtype}²"), &reduction, &elements, layout, output);
            }
        }
    }
}

#[test]
fn rows_of_many_tasks_and_special_values_anywhere_give_the_bits_of_the_interpreter() {
    let length = 65 * SEGMENT + 300;
    let of = |sizes: &[usize]| Layout::contiguous(sizes).unwrap();
    for fold in [Fold::Sum, Fold::Minimum, Fold::Maximum, Fold::ArgMinimum, Fold::ArgMaximum] {
        let graph = Graph::new();
        let reduction = compiled(&graph, fold, graph.input(DType::F32));
        for (seed, special) in [(3, false), (5, true)] {
            let elements = elements(length, seed, special);
            assert_equal(&format!("{fold:?}"), &reduction, &elements, of(&[length]), of(&[1]));
            let half = length / 2;
            assert_equal(&format!("{fold:?}"), &reduction, &elements, of(&[half, 2]), of(&[1, 2]));
        }
        // Every position of a NaN, of the zeros' signs, and of equal extremes around a step of vectors.
        for length in [1, 8, 33, 65] {
            for (value, rest) in [(f64::NAN, 1.0), (-0.0, 0.0), (0.0, -0.0), (2.0, 1.0), (0.0, 1.0)] {
                for index in (0..length).step_by(1 + length / 16) {
                    let mut elements = vec![rest; length];
                    elements[index] = value;
                    elements[length - 1 - index] = value;
                    assert_equal(&format!("{fold:?}"), &reduction, &elements, of(&[length]), of(&[1]));
                }
            }
        }
    }
}

#[test]
fn indices_of_few_columns_have_the_bits_of_the_interpreter() {
    let of = |sizes: &[usize]| Layout::contiguous(sizes).unwrap();
    for (dtype, fold) in
        [(DType::F32, Fold::ArgMaximum), (DType::F32, Fold::ArgMinimum), (DType::F64, Fold::ArgMaximum)]
    {
        let graph = Graph::new();
        let x = graph.input(dtype);
        let reductions = [x, x * 2.0].map(|value| compiled(&graph, fold, value));
        let check = |elements: &[f64], width: usize| {
            for reduction in &reductions {
                let (layout, output) = (of(&[elements.len() / width, width]), of(&[1, width]));
                assert_equal(&format!("{fold:?} of {dtype}"), reduction, elements, layout, output);
            }
        };
        for (width, length) in [(2, 40), (2, 71), (3, 40), (4, 33), (4, 9), (8, 50)] {
            for (value, rest) in
                [(f64::NAN, 1.0), (-0.0, 0.0), (0.0, -0.0), (2.0, 1.0), (-2.0, 1.0), (f64::INFINITY, 0.0)]
            {
                for index in (0..length * width).step_by(1 + length) {
                    let mut elements = vec![rest; length * width];
                    elements[index] = value;
                    elements[length * width - 1 - index] = value;
                    check(&elements, width);
                }
            }
            check(&vec![f64::NEG_INFINITY; length * width], width);
        }
        // Extremes of several blocks, the first of which counts.
        let mut elements = elements(4 * 18_000, 7, false);
        for index in [9_000, 9_001, 17_000] {
            elements[4 * index + 1] = 1e6;
            elements[4 * index + 2] = -1e6;
        }
        elements[4 * 17_999 + 3] = 2e6;
        check(&elements, 4);
    }
}

#[test]
fn machine_code_before_a_fold_gives_the_bits_of_the_interpreter() {
    let of = |sizes: &[usize]| Layout::contiguous(sizes).unwrap();
    let matrix = |rows: usize, columns: usize| of(&[rows, columns]);
    let cases = [
        (matrix(70, 128), 1),
        (matrix(5, 300), 1),
        (matrix(3, 5000), 1),
        (matrix(300, 40), 0),
        (matrix(300, 33), 1),
        (matrix(128, 70).transpose(0, 1).unwrap(), 1),
        (matrix(90, 5), 1),
    ];
    for fold in [Fold::Sum, Fold::Maximum, Fold::ArgMinimum] {
        let graph = Graph::new();
        let [x, of_row] = [graph.input(DType::F32), graph.input(DType::F32)];
        // The tangent has a rare body for large numbers, and the factor is passed by each run.
        let value = (x * 40_000.0).tan() * graph.scalar(DType::F32) - of_row.exp();
        let (reduction, code) = compiled(&graph, fold, value);
        // From the third run on there is machine code whatever the size.
        for (seed, (layout, axis)) in cases.into_iter().cycle().enumerate().take(2 + cases.len()) {
            let values = |count: usize, seed: usize| -> Vec<f32> {
                elements(count.max(5400), seed, seed % 2 == 1)
                    .into_iter()
                    .map(|element| element as f32)
                    .collect()
            };
            let mut kept = layout.shape().to_vec();
            kept[axis] = 1;
            let (x, of_row) = (values(layout.count(), seed), values(kept.iter().product(), seed + 3));
            let mut results = [false, true].map(|interpreted| {
                let inputs =
                    [HostInput::new(&x, layout).unwrap(), HostInput::new(&of_row, of(&kept)).unwrap()];
                let mut memory = vec![0u128; kept.iter().product()];
                let bytes = bytemuck::cast_slice_mut::<u128, u8>(&mut memory);
                let mut output = HostOutput::of_bytes(reduction.output(), bytes, of(&kept)).unwrap();
                let reduction = (&reduction, &code);
                run_host(reduction, &inputs, &[0.75.into()], &mut output, interpreted).unwrap();
                let (reduction, _) = reduction;
                let size = reduction.output().size();
                bytemuck::cast_slice::<u128, u8>(&memory)[..kept.iter().product::<usize>() * size]
                    .chunks(size)
                    .map(|element| bits(reduction.output(), element))
                    .collect::<Vec<_>>()
            });
            let wanted = std::mem::take(&mut results[1]);
            assert_eq!(results[0], wanted, "{fold:?} of {layout:?} along {axis}");
        }
    }
}
