//! Row programs by blocks of rows: their bits against those of a new program's first run, which is interpreted phase by
//! phase.

use half::bf16;
use selvedge::fuse::{Graph, HostInput, HostOutput, Number, RowProgram};
use selvedge::types::{DType, Element, Layout};

/// The formulas: their inputs beside the rows have a value for each element of a row.
#[derive(Debug, Clone, Copy)]
enum Formula {
    Softmax,
    Norm,
    Extremes,
    /// Several reductions of one long argument, which outputs read too.
    Folded,
}

impl Formula {
    fn program(self, dtype: DType) -> RowProgram {
        let graph = Graph::new();
        let x = graph.input(dtype);
        match self {
            Formula::Softmax => {
                let powers = (x - x.max_group()).exp();
                graph.row_program(&[powers * powers.sum_group().reciprocal()])
            }
            Formula::Norm => {
                let (weight, eps) = (graph.input(dtype), graph.scalar(dtype));
                let centred = x - x.mean_group();
                let variance = centred.square().mean_group();
                graph.row_program(&[centred / (variance + eps).sqrt() * weight, variance])
            }
            Formula::Folded => {
                let (powers, other) = (x.tanh().exp(), (x * x).cos());
                // The value of a group is folded as it is.
                let mean = other.max_group().mean_group();
                let scaled = powers / powers.sum_group() + other * mean;
                graph.row_program(&[
                    scaled,
                    powers - powers.max_group(),
                    powers.cast(dtype),
                    other.sum_group().cast(dtype),
                ])
            }
            Formula::Extremes => {
                graph.row_program(&[x - x.min_group(), x.max_group(), x.sum_group().cast(dtype)])
            }
        }
        .unwrap()
    }
}

/// Returns the outputs of a run on rows of this layout, whose last axis is the row.
fn run<T: Element + Default>(program: &RowProgram, values: &[T], layout: Layout, eps: f64) -> Vec<Vec<T>> {
    let shape = layout.shape().to_vec();
    let (last, row) = (shape.len() - 1, shape[shape.len() - 1]);
    let mut groups = shape.clone();
    groups[last] = 1;
    let mut inputs = vec![HostInput::new(values, layout).unwrap()];
    if program.inputs().len() > 1 {
        inputs.push(HostInput::new(values, Layout::contiguous(&[row]).unwrap()).unwrap());
    }
    let scalars = vec![Number::Real(eps); program.scalars().len()];
    let layouts: Vec<Layout> = (0..program.outputs().len())
        .map(|output| {
            Layout::contiguous(if program.is_per_group(output) { &groups } else { &shape }).unwrap()
        })
        .collect();
    let mut results: Vec<Vec<T>> = layouts.iter().map(|layout| vec![T::default(); layout.count()]).collect();
    let mut outputs: Vec<HostOutput<'_>> = results
        .iter_mut()
        .zip(&layouts)
        .map(|(result, layout)| HostOutput::new(result, *layout).unwrap())
        .collect();
    program.run_host(&inputs, &scalars, &[-1], &mut outputs).unwrap();
    drop(outputs);
    results
}

/// Compares runs of one program, which keeps its plan, with first runs.
fn compare<T: Element + Default + PartialEq + std::fmt::Debug>(
    formula: Formula,
    shape: [usize; 3],
    value: impl Fn(usize) -> T,
) {
    let [outer, inner, row] = shape;
    let values: Vec<T> = (0..outer * inner * (row + 3)).map(value).collect();
    let whole = Layout::contiguous(&shape).unwrap();
    let padded = Layout::contiguous(&[outer, inner, row + 3]).unwrap().narrow(2, 2, row).unwrap();
    let swapped = Layout::contiguous(&[inner, outer, row]).unwrap().transpose(0, 1).unwrap();
    let still = Layout::contiguous(&[outer, inner, 1]).unwrap().expand(whole.shape()).unwrap();
    let kept = formula.program(T::DTYPE);
    for turn in 0..4 {
        for (layout, eps) in [(whole, 1e-5), (whole, 0.25), (padded, 0.25), (swapped, 0.25), (still, 0.25)] {
            let wanted = run(&formula.program(T::DTYPE), &values, layout, eps);
            let found = run(&kept, &values, layout, eps);
            assert!(found == wanted, "{formula:?} of {} {shape:?}, turn {turn}: {layout:?}", T::DTYPE);
        }
    }
}

#[test]
fn blocks_of_rows_have_the_bits_of_a_first_run() {
    let number = |index: usize| ((index * 7919 + 13) % 1009) as f32 / 128.0 - 4.0;
    let shapes = [
        [1, 1, 128],
        [2, 5, 9001],
        [1, 4, 37],
        [7, 10, 33],
        [2, 2, 1500],
        [1, 1, 5000],
        [3, 1, 1],
        [8, 9, 5],
    ];
    // So many blocks that a thread takes several at once.
    let of_many_blocks = [[2, 20, 700], [1, 17, 2100]];
    for shape in shapes.into_iter().chain(of_many_blocks) {
        for formula in [Formula::Softmax, Formula::Norm, Formula::Extremes, Formula::Folded] {
            compare::<f32>(formula, shape, number);
            compare::<bf16>(formula, shape, |index| bf16::from_f32(number(index)));
        }
        compare::<f64>(Formula::Folded, shape, |index| f64::from(number(index)));
        compare::<f64>(Formula::Norm, shape, |index| f64::from(number(index)));
        compare::<i32>(Formula::Extremes, shape, |index| number(index) as i32 * 1000);
    }
}

#[test]
fn streaming_stores_have_the_bits_of_plain_ones() {
    for (rows, row, is_aligned) in [(5, 1600, true), (9, 64, true), (3, 5000, true), (4, 1001, false)] {
        let (layout, graph) = (Layout::contiguous(&[rows, row]).unwrap(), Graph::new());
        let x = graph.input(DType::F32);
        let powers = (x - x.max_group()).exp();
        let program = graph.row_program(&[powers / powers.sum_group()]).unwrap();
        let values: Vec<f32> = (0..rows * row).map(|index| (index * 7919 % 1009) as f32 / 128.0).collect();
        let input = || [HostInput::new(&values, layout).unwrap()];
        // The output begins at a multiple of 64 bytes.
        let mut memory = vec![0.0f32; rows * row + 16];
        let first = (0..16).find(|at| memory[*at..].as_ptr().addr().is_multiple_of(64)).unwrap();
        let mut plain = vec![0.0f32; rows * row];
        program.run_host(&input(), &[], &[-1], &mut [HostOutput::new(&mut plain, layout).unwrap()]).unwrap();
        for (least, streams) in [(4 * rows * row, false), (4 * rows * row - 1, is_aligned)] {
            memory.fill(0.0);
            let output = HostOutput::new(&mut memory[first..][..rows * row], layout).unwrap();
            let calls = program.run_host_streaming(least, &input(), &[], &[-1], &mut [output]).unwrap();
            // Without machine code there is no plan.
            assert!(calls.is_none_or(|calls| (calls > 0) == streams), "{rows} x {row}: {calls:?} of {least}");
            assert!(calls.is_none() || memory[first..][..rows * row] == plain, "{rows} x {row}");
        }
    }
}
