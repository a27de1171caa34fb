//! The vector loops against the interpreter, bit for bit.

use super::*;
use crate::fuse::cpu::reduction::tests::{bits, elements, write};
use crate::fuse::language::fold::Fold;
use crate::fuse::language::graph::{Expr, Graph};
use crate::types::Slice;

/// A scan with the code of its prologue.
type Compiled = (CompiledReduction, CpuCode);

fn compiled(graph: &Graph, fold: Fold, of: Expr<'_>) -> Compiled {
    (CompiledReduction::of(graph, fold, of).unwrap(), CpuCode::default())
}

fn scanned(
    (scan, code): &Compiled,
    (bytes, layout): (&[u8], Layout),
    output: Layout,
    axis: usize,
    implementation: Implementation,
) -> Vec<u8> {
    let mut aligned = vec![0u128; bytes.len().div_ceil(16)];
    bytemuck::cast_slice_mut::<u128, u8>(&mut aligned)[..bytes.len()].copy_from_slice(bytes);
    let memory = &bytemuck::cast_slice::<u128, u8>(&aligned)[..bytes.len()];
    let input = HostInput::of_bytes(scan.prologue.inputs[0], memory, layout).unwrap();
    let bytes = (output.offset() + output.count()) * scan.output().size();
    let mut result = vec![0u128; bytes.div_ceil(16)];
    let memory = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut result)[..bytes];
    let mut target = HostOutput::of_bytes(scan.output(), memory, output).unwrap();
    run_host((scan, code), &[input], &[], &mut target, axis, implementation).unwrap();
    bytemuck::cast_slice::<u128, u8>(&result)[..bytes].to_vec()
}

/// Layouts of inputs and outputs, and the axis: rows around a quad, a run, eight runs and a tile, and other strides.
fn cases() -> Vec<(Layout, Layout, usize)> {
    let of = |sizes: &[usize]| Layout::contiguous(sizes).unwrap();
    let shapes: [&[usize]; 12] = [
        &[1, 5300],
        &[70, 1],
        &[19, 3],
        &[9, 4],
        &[3, 127],
        &[9, 128],
        &[3, 129],
        &[2, 1024],
        &[1, 1027],
        &[1, 2049],
        &[2, 4100],
        &[1, 9000],
    ];
    let mut cases: Vec<_> = shapes.map(|shape| (of(shape), of(shape), 1)).to_vec();
    cases.push((of(&[300, 5]), of(&[300, 5]), 0));
    cases.push((of(&[2, 1100]).flip(&[1]).unwrap(), of(&[2, 1100]), 1));
    cases.push((of(&[2, 300]).slice(1, Slice::from(..).step(2)).unwrap(), of(&[2, 150]), 1));
    cases.push((of(&[2, 1100]), of(&[1100, 2]).transpose(0, 1).unwrap(), 1));
    cases.push((of(&[5, 66]), of(&[66, 5]).transpose(0, 1).unwrap(), 1));
    cases
}

fn assert_equal(
    what: &str,
    compiled: &Compiled,
    elements: &[f64],
    (layout, output, axis): (Layout, Layout, usize),
) {
    let (scan, _) = compiled;
    let mut bytes = Vec::new();
    elements.iter().for_each(|&element| write(scan.prologue.inputs[0], element, &mut bytes));
    let all =
        [Implementation::Interpreter, Implementation::Vectors(Some(1)), Implementation::Vectors(Some(2))];
    let [wanted, one, two] = all.map(|path| scanned(compiled, (&bytes, layout), output, axis, path));
    let dtype = scan.output();
    for (found, threads) in [(one, 1), (two, 2)] {
        for (at, (found, wanted)) in found.chunks(dtype.size()).zip(wanted.chunks(dtype.size())).enumerate() {
            assert_eq!(
                bits(dtype, found),
                bits(dtype, wanted),
                "{what} of {layout:?}, {threads}: element {at}"
            );
        }
    }
}

#[test]
fn vector_loops_give_the_bits_of_the_interpreter() {
    for (seed, dtype) in DType::ALL.into_iter().enumerate() {
        for fold in [Fold::Sum, Fold::Product, Fold::Minimum, Fold::Maximum] {
            let is_interpreted = fold == Fold::Product && (dtype.is_float() || dtype.is_complex());
            if fold.result(dtype).is_err() || is_interpreted {
                continue;
            }
            let graph = Graph::new();
            let scan = compiled(&graph, fold, graph.input(dtype));
            let every =
                matches!((dtype, fold), (DType::F32 | DType::F64, Fold::Sum) | (DType::F32, Fold::Maximum));
            let step = if every { 1 } else { 6 };
            for (index, case) in cases().into_iter().enumerate().skip(seed % step).step_by(step) {
                let special = index % 2 == 1 && dtype.is_float();
                let elements = elements(case.0.offset() + 2 * case.0.count(), index, special);
                assert_equal(&format!("{fold:?} of {dtype}"), &scan, &elements, case);
            }
        }
    }
}

#[test]
fn expressions_and_rounded_results_give_the_bits_of_the_interpreter() {
    for dtype in [DType::F32, DType::F16, DType::C64] {
        let graph = Graph::new();
        let x = graph.input(dtype);
        let scan = compiled(&graph, Fold::Sum, x * x);
        for case in cases().into_iter().skip(dtype as usize % 2).step_by(2) {
            let elements = elements(2 * case.0.count(), 7, false);
            assert_equal(&format!("sum of {dtype}²"), &scan, &elements, case);
        }
    }
}

#[test]
fn tiles_behind_the_first_group_have_the_prefixes_of_the_tree() {
    use crate::fuse::plan::scan::GROUP;
    // The tree of one, and sums that tell every order apart.
    let totals: Vec<f32> = (0..2 * GROUP + 3).map(|at| 1.0 / (at + 1) as f32).collect();
    let mut prefixes = TilePrefixes::new(-0.0f32);
    let mut both = |left: f32, right: f32| left + right;
    let mut before_group = -0.0f32;
    for (at, &total) in totals.iter().enumerate() {
        let group = &totals[at / GROUP * GROUP..at];
        let mut lanes = [-0.0f32; GROUP];
        lanes[..group.len()].copy_from_slice(group);
        let halves: Vec<f32> = (0..GROUP / 2).map(|lane| lanes[lane] + lanes[lane + GROUP / 2]).collect();
        let mut warps: Vec<f32> = halves
            .chunks(32)
            .map(|warp| {
                let mut warp = warp.to_vec();
                while warp.len() > 1 {
                    let upper = warp.split_off(warp.len() / 2);
                    warp.iter_mut().zip(upper).for_each(|(low, high)| *low += high);
                }
                warp[0]
            })
            .collect();
        while warps.len() > 1 {
            warps = warps.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        }
        let wanted = before_group + warps[0];
        assert_eq!(prefixes.next(&mut both).to_bits(), wanted.to_bits(), "tile {at}");
        prefixes.push(total, &mut both);
        if (at + 1) % GROUP == 0 {
            before_group = wanted + total;
        }
    }
}
